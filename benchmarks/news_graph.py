"""Whether the synthetic news site, recorded sites and Wikispeedia are scale-free small worlds.

Measured, on the graph of all pages that links lead to from the first page at an instant: exponents of the power laws of
degrees, clustering, and average path length. Palotai, Farkas and Lőrincz (2005) give these figures for the Web as their
foragers found it. Exponents are slopes of a line through the logarithms of a histogram with 14 bins of growing width.
Clustering is the mean of that of each page with two neighbours at least, where links have no direction. Paths follow the
direction of links, from 300 pages drawn at random to all that can be reached from each.

``Manner(rewired=True)`` rewires the links between articles of a news site, which still lead to earlier articles only.
Recorded sites and Wikispeedia are rewired as in the paper: the ends of all links are permuted. ::

    python benchmarks/news_graph.py                        # all news sites, 10 seconds
    python benchmarks/news_graph.py --sites small rewired --seeds 3
    python benchmarks/news_graph.py --recorded sites/ghc.sqlite sites/statsm.sqlite wikispeedia.tar.xz
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.importance_metrics import page_links, pages_of
from scrapy_focus.lab.sites.news.plan import BEGIN, DAY, Manner
from scrapy_focus.lab.sites.news.site import NewsSite
from wikispeedia import read_web

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_LINK = re.compile(r'<a href="([^"]+)"')
_BINS, _FROM = 14, 300
SITES = {
    "near": Manner(),
    "far": Manner(far=True, archive=1000),
    "small": Manner(far=True, small_world=True, topical=True),
    "rewired": Manner(far=True, small_world=True, topical=True, rewired=True),
    "near-small": Manner(small_world=True, topical=True),
    "near-rewired": Manner(small_world=True, topical=True, rewired=True),
}
PAPER = "the Web | | | 1.30 | 2.57 | 0.020 | 7.29", "the Web, rewired | | | 1.30 | 2.57 | 0.003 | 8.22"


class Figures(NamedTuple):
    """Properties of a graph."""

    pages: int
    links: int
    out: float  # exponent of the degrees
    into: float
    clustering: float
    path: float  # average length


def graph(site: NewsSite, at: float) -> csr_array:
    """Return which pages link to which at a time; the first page is number 0."""
    ids = {"/": 0}
    queue = ["/"]
    links: set[tuple[int, int]] = set()
    for path in queue:
        page = site.answer(path, at)
        for other in _LINK.findall(page.body.decode()) if page.status == 200 else []:
            if other not in ids:
                ids[other] = len(ids)
                queue.append(other)
            if other != path:
                links.add((ids[path], ids[other]))
    rows, columns = np.array(sorted(links)).T
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(ids), len(ids)))


def recorded(path: Path) -> csr_array:
    """Return which pages link to which, of a recorded site or of Wikispeedia's archive."""
    if path.suffix != ".sqlite":
        targets = read_web(path, 0).targets
        source = np.repeat(np.arange(len(targets)), [len(each) for each in targets])
        return between(source, np.concatenate([np.array(each, np.int64) for each in targets]), len(targets))
    site = RecordedSite(path)
    source = np.repeat(np.arange(site.n_urls), np.diff(site.starts[: site.n_urls + 1]))
    links = page_links(source, site.targets[: len(source)], is_page=pages_of(site), redirect=site.redirect)
    linked, numbers = np.unique([links.source, links.target], return_inverse=True)
    source, target = numbers.reshape(2, -1)
    return between(source, target, len(linked))


def between(source: NDArray[np.int64], target: NDArray[np.int64], n: int) -> csr_array:
    """Return the graph of n pages with these links, each pair once and none to the page itself."""
    links = csr_array((np.ones(len(source)), (source, target)), shape=(n, n))
    links.setdiag(0)
    links.eliminate_zeros()
    links.data[:] = 1
    return links


def permuted(links: csr_array, rng: np.random.Generator) -> csr_array:
    """Return a graph with the ends of all links permuted; those that coincide afterwards become one."""
    source, target = links.nonzero()
    return between(source, rng.permutation(target), links.shape[0])


def exponent(degrees: NDArray[np.float64]) -> float:
    """Return the exponent of the power law of degrees; those of 0 are left aside."""
    some = degrees[degrees > 0]
    edges = np.unique(np.geomspace(1, some.max() + 1, _BINS).round())
    heights = np.histogram(some, edges)[0] / np.diff(edges)
    middles = np.sqrt(edges[:-1] * (edges[1:] - 1))
    there = heights > 0
    return -float(np.polyfit(np.log(middles[there]), np.log(heights[there]), 1)[0])


def clustering(links: csr_array) -> float:
    """Return which share of the pairs of neighbours of a page are neighbours, on average."""
    both = ((links + links.T) > 0).astype(float)
    degrees = both.sum(axis=1)
    linked = (both @ both).multiply(both).sum(axis=1)
    several = degrees > 1
    return float((linked[several] / (degrees[several] * (degrees[several] - 1))).mean())


def path_length(links: csr_array, rng: np.random.Generator) -> float:
    """Return how many clicks it takes from one page to another, on average."""
    some = rng.choice(links.shape[0], min(_FROM, links.shape[0]), replace=False)
    clicks = shortest_path(links, method="D", unweighted=True, indices=some)
    return float(clicks[np.isfinite(clicks) & (clicks > 0)].mean())


def figures(links: csr_array) -> Figures:
    """Return the properties of a graph."""
    return Figures(
        links.shape[0], links.nnz, exponent(links.sum(axis=1)), exponent(links.sum(axis=0)), clustering(links),
        path_length(links, np.random.default_rng(0)),
    )  # fmt: skip


def lines_of(names: Sequence[str], recordings: Sequence[Path], seeds: int) -> Iterator[tuple[str, Sequence[Figures]]]:
    """Yield the name and the figures of each kind of graph: by news sites, or by permutations of a recorded one."""
    for name in names:
        sites = (NewsSite(SITES[name], seed=seed, days=4.0) for seed in range(seeds))
        yield name, [figures(graph(site, BEGIN + 3 * DAY)) for site in sites]
    for path in recordings:
        links, name = recorded(path), path.name.partition(".")[0]
        yield name, [figures(links)]
        yield f"{name}, rewired", [figures(permuted(links, np.random.default_rng(seed))) for seed in range(seeds)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", nargs="+", choices=SITES, help="which news sites (all, if none is recorded)")
    parser.add_argument("--recorded", type=Path, nargs="+", default=[], help="recordings, or Wikispeedia's archive")
    parser.add_argument("--seeds", type=int, default=1, help="how many news sites of each kind, or permutations (1)")
    options = parser.parse_args(arguments)
    print("| site | pages | links | out | in | clustering | path |\n|---|" + "--:|" * 6)
    for line in PAPER:
        print(f"| {line} |")
    names = options.sites or ([] if options.recorded else [*SITES])
    for name, graphs in lines_of(names, options.recorded, options.seeds):
        found = Figures(*np.mean(graphs, axis=0).tolist())
        print(
            f"| {name} | {found.pages:,.0f} | {found.links:,.0f} | {found.out:.2f} | {found.into:.2f} | "
            f"{found.clustering:.3f} | {found.path:.2f} |"
        )


if __name__ == "__main__":
    main()
