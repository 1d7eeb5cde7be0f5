"""CPU of the single steps of a decision: the features of a link, a selection, an update, push and pop.

Measured: CPU time of this process per operation, on made-up tag paths and URLs, with 2,000 arms and the given number of
waiting links. Not measured: parsing, the network, memory beyond what is printed. ::

    python benchmarks/micro.py --links 100000
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import time
from typing import TYPE_CHECKING

import numpy as np
from lxml import html

from scrapy_focus import Bandit, Crawl, FilesGoal, Link, Mission, Outcome, Placement, memory_frontier
from scrapy_focus.learn.clusters import Clusters
from scrapy_focus.learn.text import GramProjector, char_pairs
from scrapy_focus.policies.tagpath.policy import FIRST, TagPath
from scrapy_focus.web.html import locate

if TYPE_CHECKING:
    from collections.abc import Callable


def per_call(call: Callable[[int], object], times: int) -> float:
    """CPU microseconds of one call, called with 0, 1, 2 ..."""
    start = time.process_time()
    for i in range(times):
        call(i)
    return 1e6 * (time.process_time() - start) / times


def tag_paths(n: int) -> list[str]:
    """Different tag paths of eight elements."""
    rng = np.random.default_rng(0)
    words = [f"div.box-{i}" for i in range(3000)]
    return ["html/body/" + "/".join(words[j] for j in rng.integers(0, 3000, 5)) + "/a.link" for _ in range(n)]


def page(n: int) -> tuple[str, list[str]]:
    """A page with ``n`` links in a list with ids, and the URLs of the links."""
    rows = "".join(
        f'<li class="row {"odd" if i % 2 else "even"}" id="t-{i}"><h3><a href="/data/set-{i}?v={i}">Set {i}</a></h3></li>'
        for i in range(n)
    )
    text = f'<html><body class="front"><main id="content"><ul class="list">{rows}</ul></main></body></html>'
    return text, [f"http://127.0.0.1/data/set-{i}?v={i}" for i in range(n)]


def features(report: Callable[[str, float, str], None]) -> None:
    """A link's text and path as vectors, and its cluster: all that ``place`` needs."""
    text, urls = page(100)
    root = html.fromstring(text)
    report(
        "locate: tag path, anchor, context of a link", per_call(lambda _: locate(root, urls[0], urls), 50) / 100, "25"
    )
    report("char_pairs of a URL", per_call(lambda i: char_pairs(urls[i % 100]), 20_000), "")
    paths = tag_paths(2000)
    projector = GramProjector()
    report("project a new tag path", per_call(lambda i: projector.project(paths[i], paths[i].split("/")), 2000), "")
    report("project a known tag path", per_call(lambda i: projector.project(paths[i], []), 2000), "")
    vectors = [projector.project(path, []) for path in paths]
    for index in ("numpy", "hnswlib"):
        if index == "hnswlib" and importlib.util.find_spec("hnswlib") is None:
            continue
        clusters = Clusters(dim=4096, threshold=0.75, index=index)
        for where, values in vectors:
            clusters.assign(where, values)
        few = 2000 if index == "numpy" else 100
        step = per_call(lambda i, c=clusters: c.assign(*vectors[i]), few)  # type: ignore[misc]
        report(f"assign to one of {clusters.n_clusters:,} clusters that move, {index}", step, "")


def decisions(report: Callable[[str, float, str], None], links: int) -> None:
    """One selection plus one update of the sleeping bandit with 2,000 awake arms."""
    policy = TagPath(probe=False)
    crawl = Crawl(policy, frontier=memory_frontier, mission=Mission.of(FilesGoal()), seed=0, strict=True)
    paths = tag_paths(2000)
    for start in range(0, links, 2000):
        crawl.add([
            Link(f"http://127.0.0.1/node/{start + i}/item-{start + i}.html", start + i, "a", 3, tag_path=paths[i])
            for i in range(min(2000, links - start))
        ])  # fmt: skip

    def step(_: int) -> None:
        pick = crawl.next()
        if pick is not None:
            crawl.sent(pick.id)
            crawl.report(Outcome(pick=pick, status=200, mime="text/html", items=float(pick.id % 5 == 0)))

    for i in range(3000):
        step(i)
    arms = int((crawl.frontier.waiting[FIRST:] > 0).sum())
    report(f"selection + update, {arms:,} arms awake, {links:,} links waiting", per_call(step, 2000), "150")


class Numbered(Bandit):
    """An arm for each number that a URL begins with."""

    reads_page = False

    def arm(self, link: Link) -> int:
        return int(link.url.partition(":")[0])


def bandit(report: Callable[[str, float, str], None], arms: int) -> None:
    """One selection of a bandit with the default score, AUER, and its consequences; two links are queued in each arm."""
    crawl = Crawl(Numbered(), frontier=memory_frontier, seed=0, strict=True)
    for start in range(0, 2 * arms, 2000):
        numbers = range(start, min(start + 2000, 2 * arms))
        crawl.add([Link(f"{number % arms}:{number}", number, "a") for number in numbers])
    first = crawl.next()  # makes the scores of all arms
    assert first is not None
    picks = []
    report(f"select of a Bandit with {arms:,} arms", per_call(lambda _: picks.append(crawl.next()), 2000), "")

    def learn(i: int) -> None:
        pick = picks[i]
        assert pick is not None
        crawl.report(Outcome(pick=pick, status=200, mime="text/html", items=float(pick.id % 5 == 0)))

    report(f"update of a Bandit with {arms:,} arms", per_call(learn, 2000), "")
    busy = [f"host-{i}" for i in range(8)]
    report(f"select with eight busy hosts, {arms:,} arms", per_call(lambda _: crawl.next(busy), 200), "")


def frontier(report: Callable[[str, float, str], None], links: int) -> None:
    """Push and pop of the memory frontier, in pages of 60 links with random ranks over 2,000 arms."""
    memory = memory_frontier()
    rng = np.random.default_rng(0)
    arms, ranks = rng.integers(0, 2000, links).tolist(), rng.random(links).tolist()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def push(page_number: int) -> None:
        span = range(60 * page_number, min(60 * page_number + 60, links))
        found = [Link(f"http://127.0.0.1/some/section/page-{i}.html", i, "a", payload=b"%d" % i) for i in span]
        memory.push(found, [Placement(arms[i], ranks[i]) for i in span])

    report("push a link", per_call(push, links // 60) / 60, "")
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    report("pop a link", per_call(lambda i: memory.pop(arms[i]), min(5000, links)), "")
    print(f"| resident memory of a waiting link: {grown / len(memory):.0f} bytes | | |")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--links", type=int, default=100_000)
    parser.add_argument("--arms", type=int, nargs="*", default=[10_000, 100_000, 400_000], help="of a Bandit")
    options = parser.parse_args()
    print("| step | CPU us | budget |\n|---|---|---|")

    def report(what: str, microseconds: float, budget: str) -> None:
        print(f"| {what} | {microseconds:.1f} | {budget} |", flush=True)

    frontier(report, options.links)
    features(report)
    decisions(report, options.links)
    for arms in options.arms:
        bandit(report, arms)


if __name__ == "__main__":
    main()
