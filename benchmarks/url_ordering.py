"""The graphs of Cho, Garcia-Molina and Page with their own thresholds on real pages, and orders by similarity.

Measured: crawls without a network of Wikispeedia and of the documentation that ``sites.py`` fetched, as ``hot_queue.py``
makes them: one page in flight, HTML pages alone. ``links`` has Graphs 1 to 5: hot are pages with at least G back-links
(IB) or with a PageRank of at least G (IR). ``topics`` has Graphs 6 and 7 up to 60 % of the pages: hot are pages on a
topic, and those with five back-links. ``queries`` has what no graph has: hot are the 2 % of the pages that are the most
similar to a query of several words (IS). The tables have P_ST in %. Crawls start from several pages; random orders have
several seeds, too.

Not measured: pages off the site, pages that fail or redirect, time. Anchors of Wikispeedia are the titles of the
articles. A page is sent as the words of the topic or of the query, as often as it has them. ::

    python benchmarks/url_ordering.py links wikispeedia.tar.xz sites/ghc sites/statsm sites/nipy sites/rdkit
    python benchmarks/url_ordering.py topics wikispeedia.tar.xz --text computer --text music
    python benchmarks/url_ordering.py queries sites/ghc --text "garbage collection heap" --text "type class instance"
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hot_queue import Web, crawl, documentation, short_pages, wikispeedia
from scrapy_focus import HotQueue, Importance
from scrapy_focus.lab.replay.importance_metrics import crawl_and_stop_with_threshold, page_links, pagerank
from scrapy_focus.learn.matching import Keywords
from scrapy_focus.learn.similarity import Query
from scrapy_focus.policies.orderings import BreadthFirst, Random
from scrapy_focus.web.words import words_of
from sites import SITES
from wikispeedia import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.policy import Policy

    Orders = Mapping[str, Callable[[], Policy]]
    Found = dict[str, list[list[NDArray[np.float64]]]]  # by order, kind of hot pages and crawl: as of measure()

BY_LINKS: Orders = {
    "random": Random,
    "breadth-first": BreadthFirst,
    "back-links": partial(Importance, by="backlinks"),
    "PageRank": Importance,
}
MARKS = {"links": (5, 10, 20, 40), "topics": (20, 40, 60), "queries": (5, 10, 20)}  # % of the pages
FEW = 10  # back-links
HOT = 0.02  # of the pages, by similarity
SEEDS = 3  # of a random order, at least
TIMES = 10  # a word may be in a text that is not hot
POPULAR = 5  # back-links of a page that is hot in the second sense


class Hot(NamedTuple):
    """The hot pages of a web, and their name."""

    name: str
    pages: NDArray[np.bool_]  # shape (n_pages,)


def by_links(web: Web) -> Iterator[Hot]:
    """Yield the hot pages with the thresholds of the paper, if there are any."""
    linked, ranks = web.backlinks(), ranks_of(web)
    for name, pages in (("IB >= 100", linked >= 100), ("IB >= 5", linked >= 5), ("IR >= 13", ranks >= 13)):
        if pages.any():
            yield Hot(name, pages)


def ranks_of(web: Web) -> NDArray[np.float64]:
    """Return the PageRank of the pages of a web, shape (n_pages,)."""
    n = len(web.urls)
    pairs = np.array([(page, other) for page, links in enumerate(web.links) for other in links], np.int64)
    links = page_links(pairs[:, 0], pairs[:, 1], is_page=np.ones(n, np.bool_), redirect=np.full(n, -1, np.int64))
    return pagerank(links)


def on_topic(web: Web, word: str) -> Iterator[Hot]:
    """Yield the pages that are on a topic, and those of them that others link to."""
    said = Keywords([word])
    hot = np.array([said.found(words_of(title)) for title in web.titles])
    hot |= np.array([said.count(words_of(text)) > TIMES for text in web.texts])
    linked = web.backlinks()
    once = 100 * np.count_nonzero(linked[hot] <= 1) / hot.sum()
    yield Hot(f"{word} ({once:.0f} % with one back-link)", hot)
    yield Hot(f"{word}, {POPULAR} back-links", hot & (linked >= POPULAR))


def topic_orders(word: str) -> Orders:
    """Return the crawlers of the paper for a topic: no hot queue, the first one, and the one within three clicks."""
    orders: dict[str, Callable[[], Policy]] = {"random": Random}
    for base in ("breadth", "backlinks", "pagerank"):
        orders[f"{base}, no hot queue"] = partial(Importance, by=base)
        for clicks in (0, 3):
            make = partial(HotQueue, words=[word], base=base, max_distance=clicks, times=TIMES)
            orders[f"{base}, {clicks} clicks"] = make
    return orders


def similar(web: Web, text: str) -> Iterator[Hot]:
    """Yield the pages that are the most similar to a query, and those by the similarity without idf."""
    query = Query(text)
    counts = np.array([query.count(each) for each in web.texts])
    seen = counts.sum(axis=0).tolist()
    for name, idf in (("IS", True), ("IS without idf", False)):
        values = counts @ np.array(query.weights(seen, idf=idf))
        yield Hot(f"{name}: {text}", values >= max(np.quantile(values, 1 - HOT), 1e-12))


def query_orders(text: str) -> Orders:
    """Return orders by the similarity to a query, and others."""
    hot = partial(HotQueue, words=text.split())
    return {
        **BY_LINKS,
        "similarity": partial(Importance, by="similarity", query=text),
        "similarity without idf": partial(Importance, by="similarity", query=text, idf=False),
        "similarity + PageRank / 10": partial(Importance, by={"similarity": 1, "pagerank": 0.1}, query=text),
        "hot queue, by PageRank": hot,
        "hot queue, by similarity": partial(hot, base="similarity"),
    }


def query_pages(web: Web, text: str) -> list[Page]:
    """Return the pages as they are sent: with the words of a query, as often as each has them."""
    query = Query(text)
    pages = []
    for url, whole in zip(web.urls, web.texts, strict=True):
        words = zip(query.words, query.count(whole), strict=True)
        said = " ".join(f"{word} " * n for word, n in words)
        pages.append(Page(url, f"<html><body><p>{said}</p></body></html>"))
    return pages


def topic_pages(web: Web, word: str) -> list[Page]:
    """Return the pages as ``hot_queue.py`` sends them."""
    said = Keywords([word])
    return short_pages(web, word, [said.count(words_of(text)) for text in web.texts])


def measure(
    web: Web, hot: Sequence[Hot], orders: Orders, pages: Sequence[Page], *, starts: int, marks: Sequence[int]
) -> Found:
    """Return P_ST after these % of the pages, by order, kind of hot pages, and crawl; and last, the % of the crawl in
    which it is below that of a random order (the diagonal).
    """
    n = len(web.urls)
    at = [round(mark / 100 * n) - 1 for mark in marks]
    found: Found = {}
    for name, make in orders.items():
        found[name] = [[] for _ in hot]
        for start in web.starts(starts):
            for seed in range(max(1, SEEDS // starts) if name == "random" else 1):
                came = crawl(web, pages, make(), start=start, budget=at[-1] + 1, seed=start + seed)
                diagonal = 100 * np.arange(1, len(came) + 1) / n
                for runs, kind in zip(found[name], hot, strict=True):
                    curve = crawl_and_stop_with_threshold(came, kind.pages.astype(float), 1.0)
                    runs.append(np.array([*curve[at], 100 * np.mean(curve < diagonal)]))
    return found


def table(found: Found, hot: Sequence[Hot]) -> str:
    """Return Markdown: the mean of the crawls, the smallest and the largest at the first mark, and below random."""
    head = " | ".join(f"{kind.name} ({kind.pages.sum()})" for kind in hot)
    lines = [f"| order | {head} |", "|---" + "|--:" * len(hot) + "|"]
    for name, kinds in found.items():
        cells = []
        for runs in kinds:
            every = np.array(runs)
            *means, below = every.mean(axis=0)
            cells.append(
                f"{' '.join(f'{mean:.0f}' for mean in means)} [{every[:, 0].min():.0f}-{every[:, 0].max():.0f}; "
                f"{below:.0f}]"
            )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def mean_table(tables: Sequence[Found]) -> str:
    """Return Markdown: the mean over two or more texts, with the standard deviation over them at each mark."""
    lines = []
    for name, kinds in tables[0].items():
        cells = []
        for kind in range(len(kinds)):
            each = np.array([np.mean(found[name][kind], axis=0)[:-1] for found in tables])
            figures = zip(each.mean(axis=0), each.std(axis=0, ddof=1), strict=True)
            cells.append(" ".join(f"{mean:.0f} ± {deviation:.0f}" for mean, deviation in figures))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def read(path: Path) -> Web:
    """Return the pages of Wikispeedia, or of a site of ``sites.py`` as FOLDER/NAME."""
    return documentation(path.name, path.parent) if path.name in SITES else wikispeedia(path)


def made(graphs: str, web: Web, text: str) -> tuple[list[Hot], Orders, list[Page]]:
    """Return the kinds of hot pages, the orders and the pages of a table."""
    if graphs == "links":
        return list(by_links(web)), BY_LINKS, short_pages(web, "", [0] * len(web.urls))
    if graphs == "topics":
        return list(on_topic(web, text)), topic_orders(text), topic_pages(web, text)
    return list(similar(web, text)), query_orders(text), query_pages(web, text)


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("graphs", choices=MARKS)
    parser.add_argument("paths", metavar="WEB", type=Path, nargs="+", help="Wikispeedia, or FOLDER/NAME of sites.py")
    parser.add_argument("--text", action="append", default=[], help="topic or query; repeat it for each")
    parser.add_argument("--starts", type=int, default=3, help="start pages")
    options = parser.parse_args()
    for path in options.paths:
        web = read(path)
        few = 100 * np.mean(web.backlinks() < FEW)
        print(f"\n{path.name}: {len(web.urls):,} pages, {few:.0f} % with fewer than {FEW} back-links\n", flush=True)
        found = []
        for text in options.text or [""]:
            hot, orders, pages = made(options.graphs, web, text)
            found.append(measure(web, hot, orders, pages, starts=options.starts, marks=MARKS[options.graphs]))
            print(table(found[-1], hot), flush=True)
        if len(found) > 1:
            print(f"\nMean of {len(found)}, ± over them:\n\n{mean_table(found)}", flush=True)


if __name__ == "__main__":
    main()
