"""Which order takes important pages first, and what it costs: the graphs of Cho, Garcia-Molina and Page on a web of links.

Measured: the order in which crawls of a synthetic web take its pages (``benchmarks/linkweb``), CPU of the policy, the
frontier and the loop, and their memory. Not measured: fetching, parsing, the network, and any real site. CPU is that of the
process, and is more where other programs share the caches. ::

    python benchmarks/importance.py orders --seeds 1 2 3               # Graphs 3 (IR) and 1 (IB): 190,000 pages
    python benchmarks/importance.py orders --clusters 600 --pages 60000  # the same with dense clusters
    python benchmarks/importance.py cluster --clusters 50 --pages 30000    # when orders enter such clusters, and stay
    python benchmarks/importance.py missed                             # the pages with the most links that come late
    python benchmarks/importance.py site                               # one host of 1,100 pages
    python benchmarks/importance.py flight                             # 16 at once
    python benchmarks/importance.py exact                              # values at the end of a crawl, against PageRank
    python benchmarks/importance.py buffer                             # few links may wait
    python benchmarks/importance.py cost --pages 1000000               # CPU a page, memory, the longest call
    python benchmarks/importance.py job --pages 100000                 # checkpoints of a crawl with a JOBDIR
"""

from __future__ import annotations

import argparse
import functools
import gc
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkweb.crawl import WebCrawl, crawl_web, key_of
from linkweb.others import BreadthFirstThatKnows, Heritrix, Nutch, SolvedAnew
from linkweb.web import LinkWeb
from scrapy_focus.engine.garbage import freeze
from scrapy_focus.jobs.job import Job
from scrapy_focus.jobs.pickles import Classes
from scrapy_focus.jobs.snapshots import classes_of
from scrapy_focus.lab.replay.importance_metrics import (
    backlinks,
    crawl_and_stop,
    crawl_and_stop_with_threshold,
    limited_buffer,
    pagerank,
)
from scrapy_focus.policies.importance import Importance
from scrapy_focus.policies.orderings import BreadthFirst, Random

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.policy import Policy

HOT = 0.008  # of the pages, as in the paper
AT = (0.05, 0.1, 0.2)  # parts of the pages after which an order is judged
ORDERS: dict[str, Callable[[LinkWeb], Policy]] = {
    "PageRank, epsilon 1": lambda web: Importance(epsilon=1),
    "PageRank, epsilon 0.1": lambda web: Importance(),
    "PageRank, epsilon 0.01": lambda web: Importance(epsilon=0.01),
    "PageRank, solved anew": lambda web: SolvedAnew(n_urls=web.n_urls),
    "OPIC": lambda web: Importance(by="opic"),
    "Nutch": lambda web: Nutch(n_urls=web.n_urls),
    "back-links": lambda web: Importance(by="backlinks"),
    "breadth-first": lambda web: BreadthFirst(),
    "Heritrix": lambda web: Heritrix(),
    "random": lambda web: Random(),
}
SIDES: dict[str, Callable[[], Policy]] = {
    "breadth": BreadthFirstThatKnows,
    "epsilon 0.1": Importance,
    "epsilon 0.01": functools.partial(Importance, epsilon=0.01),
    "backlinks": functools.partial(Importance, by="backlinks"),
}


class Judged(NamedTuple):
    """A web, and what its pages are worth."""

    web: LinkWeb
    start: int
    importance: dict[str, NDArray[np.float64]]  # IR and IB of each page
    threshold: dict[str, float]  # from which on a page is hot
    in_cluster: NDArray[np.bool_]  # of each page

    @classmethod
    def of(cls, web: LinkWeb, start: int, hot: float = HOT, first_cluster: int = sys.maxsize) -> Judged:
        """Return a web with the importance of its pages, and such a share of hot ones; clusters are hosts from one
        on.
        """
        links = web.page_links()
        importance = {"IR": pagerank(links), "IB": backlinks(links)}
        n_hot = max(1, round(hot * web.n_urls))
        threshold = {name: float(np.sort(values)[-n_hot]) for name, values in importance.items()}
        return cls(web, start, importance, threshold, web.hosts >= first_cluster)

    def judge(self, order: NDArray[np.int64]) -> dict[str, list[float]]:
        """Return P_ST and P_CS at each of the points, by both importances."""
        at = [int(part * self.web.n_urls) - 1 for part in AT]
        shown = {}
        for name, values in self.importance.items():
            shown[f"{name} P_ST"] = crawl_and_stop_with_threshold(order, values, self.threshold[name])[at].tolist()
            shown[f"{name} P_CS"] = crawl_and_stop(order, values)[at].tolist()
        return shown


def made(options: argparse.Namespace, seed: int) -> Judged:
    """Return the part of a web that can be reached."""
    whole = LinkWeb.make(
        options.pages, seed=seed, links=options.links, clusters=options.clusters, cluster_pages=options.cluster_pages
    )
    web, start = whole.reached()
    judged = Judged.of(web, start, first_cluster=int(whole.hosts.max()) + 1 - options.clusters)
    say(f"seed {seed}: {web.n_urls:,} pages reached, {web.n_links:,} links, G {judged.threshold}")
    return judged


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def row(cells: Iterable[object]) -> str:
    """Return a row of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"


def head(cells: Sequence[str]) -> str:
    """Return the first two rows of such a table."""
    return f"{row(cells)}\n|{'---|' * len(cells)}"


def alone(call: Callable[..., Any], *args: Any) -> Any:
    """Return the result of a call in a separate process, which starts with the memory of this one."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=lambda: send.send(call(*args)))
    process.start()
    send.close()
    try:
        return receive.recv()
    finally:
        process.join()


# The orders


def orders(options: argparse.Namespace) -> None:
    """Crawl up to the last point in each order, for each seed; print P_ST and P_CS, and their means."""
    names = [name for name in ORDERS if not options.only or any(each in name for each in options.only)]
    rows: dict[str, list[dict[str, list[float]]]] = {name: [] for name in names}
    for seed in options.seeds:
        judged = made(options, seed)
        say(head(["order", "IR P_ST", "IR P_CS", "IB P_ST", "IB P_CS", "us a page"]))
        for name in names:
            shown, cost = _crawled(judged, ORDERS[name], seed=seed)
            rows[name].append(shown)
            say(row([name, *map(_points, shown.values()), round(cost)]))
    if len(options.seeds) > 1:
        _print_means(rows)


def _print_means(rows: dict[str, list[dict[str, list[float]]]]) -> None:
    say(head(["mean of all seeds", "IR P_ST", "IR P_CS", "IB P_ST", "IB P_CS"]))
    for name, found in rows.items():
        say(row([name, *(_points(np.mean([each[key] for each in found], axis=0)) for key in found[0])]))


def _crawled(
    judged: Judged, make: Callable[[LinkWeb], Policy], *, seed: int, in_flight: int = 1
) -> tuple[dict[str, list[float]], float]:
    """Return how good an order is, and CPU microseconds a page."""
    budget = int(max(AT) * judged.web.n_urls) + 1
    began = time.process_time()
    order = crawl_web(judged.web, make(judged.web), start=judged.start, budget=budget, concurrency=in_flight, seed=seed)
    return judged.judge(order), 1e6 * (time.process_time() - began) / budget


def _points(values: Iterable[float]) -> str:
    return " ".join(f"{value:.0f}" for value in values)


def site(options: argparse.Namespace) -> None:
    """Crawl the first pages of the largest host of some webs, each a site that nobody else links to; print the means."""
    rows: dict[str, list[dict[str, list[float]]]] = {name: [] for name in ORDERS}
    for seed in options.seeds:
        judged = Judged.of(*_one_host(options.pages, seed), hot=options.hot)
        say(f"seed {seed}: {judged.web.n_urls:,} pages, {judged.web.n_links:,} links")
        for name, make in ORDERS.items():
            rows[name].append(_crawled(judged, make, seed=seed)[0])
    _print_means(rows)


def _one_host(n_pages: int, seed: int) -> tuple[LinkWeb, int]:
    """Return what can be reached among the first pages of a large host, from the one of the first ten that leads to most."""
    whole = LinkWeb.make(30 * n_pages, seed=seed)
    largest = int(np.argmax(np.bincount(whole.hosts)))
    web = whole.part(np.flatnonzero(whole.hosts == largest)[:n_pages])
    pages = max((web.reachable(page) for page in range(10)), key=len)
    return web.part(pages), int(np.searchsorted(np.sort(pages), pages[0]))


def flight(options: argparse.Namespace) -> None:
    """Crawl with one and with 16 pages in flight."""
    judged = made(options, options.seeds[0])
    say(head(["in flight", "IR P_ST", "IR P_CS", "IB P_ST", "IB P_CS"]))
    for in_flight in (1, 16):
        shown, _ = _crawled(judged, ORDERS["PageRank, epsilon 0.1"], seed=options.seeds[0], in_flight=in_flight)
        say(row([in_flight, *(" ".join(f"{value:.1f}" for value in values) for values in shown.values())]))


def cluster(options: argparse.Namespace) -> None:
    """Follow orders into the dense clusters, to the end of a crawl: when they enter them, and what follows."""
    judged = made(options, options.seeds[0])
    web, inside = judged.web, judged.in_cluster
    hosts = np.unique(web.hosts[inside])
    at = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
    say(f"{inside.sum():,} pages in {len(hosts)} clusters ({100 * inside.mean():.1f} %)")
    say(head(["order", "% of the pages of clusters fetched after 5 10 20 40 60 80 % of all", "clusters with two pages fetched by then",
              "of the 20 pages after the second, in the cluster: median", "IB, IR of these: median",
              "IB, IR of the pages before: median"]))  # fmt: skip
    for name in ("back-links", "PageRank, epsilon 0.1", "OPIC", "breadth-first"):
        order = crawl_web(web, ORDERS[name](web), start=judged.start)
        marks = [int(part * len(order)) for part in at]
        share = [100 * inside[order[:mark]].sum() / inside.sum() for mark in marks]
        came = [np.flatnonzero(web.hosts[order] == host) for host in hosts]
        seconds = np.array([places[1] for places in came])
        follow = [np.count_nonzero(places <= places[1] + 20) - 2 for places in came]
        after = np.concatenate([order[place : place + 20] for place in seconds])
        before = np.concatenate([order[max(0, place - 20) : place] for place in seconds])
        say(row([name, _points(share), " ".join(str((seconds < mark).sum()) for mark in marks),
                 f"{np.median(follow):.0f}", _medians(judged, after), _medians(judged, before)]))  # fmt: skip
        first = came[int(np.argmin(seconds))] + 1
        say(f"  the first of them: its pages came as numbers {' '.join(map(str, first))}")


def _medians(judged: Judged, pages: NDArray[np.int64]) -> str:
    return ", ".join(f"{np.median(judged.importance[by][pages]):.1f}" for by in ("IB", "IR"))


def missed(options: argparse.Namespace) -> None:
    """Show where the pages with the most links (IB) are that an order has not fetched at the last point."""
    judged = made(options, options.seeds[0])
    web, worth = judged.web, judged.importance
    hot = worth["IB"] >= judged.threshold["IB"]
    sizes = np.bincount(web.hosts)
    links = web.page_links()
    local = np.bincount(links.target[web.hosts[links.source] == web.hosts[links.target]], minlength=web.n_urls)
    say(head(["hot by IB, and not fetched", "pages", "hosts", "pages of their hosts: median", "IB: median",
              "links from their own host, %", "IR: median"]))  # fmt: skip
    budget = int(max(AT) * web.n_urls) + 1
    came = {}
    for name in ("back-links", "PageRank, epsilon 0.1"):
        came[name] = np.zeros(web.n_urls, np.bool_)
        came[name][crawl_web(web, ORDERS[name](web), start=judged.start, budget=budget)] = True
    first, second = came.values()
    for name, pages in {"(all that are hot)": hot, **{name: hot & ~there for name, there in came.items()},
                        "PageRank alone": hot & first & ~second, "back-links alone": hot & second & ~first}.items():  # fmt: skip
        say(row([name, pages.sum(), len(np.unique(web.hosts[pages])), f"{np.median(sizes[web.hosts[pages]]):.0f}",
                 f"{np.median(worth['IB'][pages]):.0f}", f"{100 * local[pages].sum() / worth['IB'][pages].sum():.0f}",
                 f"{np.median(worth['IR'][pages]):.1f}"]))  # fmt: skip


def exact(options: argparse.Namespace) -> None:
    """Crawl a web to its end, and compare the values of the policy with PageRank: Spearman's correlation."""
    from scipy.stats import spearmanr

    judged = made(options, options.seeds[0])
    keys = [key_of(page) for page in range(judged.web.n_urls)]
    say(head(["epsilon", "Spearman", "largest error, % of the value"]))
    for epsilon in options.epsilons:
        policy = Importance(epsilon=epsilon)
        crawl_web(judged.web, policy, start=judged.start)
        values, true = policy.values(keys), judged.importance["IR"]
        error = np.abs(values / values.mean() / true - 1).max()
        say(row([epsilon, f"{spearmanr(values, true).statistic:.6f}", f"{100 * error:.2f}"]))


def buffer(options: argparse.Namespace) -> None:
    """Crawl a web to its end without a limit and with one of a tenth of the links that waited at the peak."""
    judged = made(options, options.seeds[0])
    say(head(["most waiting", "peak", "pages fetched", "P_CS (IR) after 5 10 20 %", "P_BC (IR), 10 % of the pages",
              "given up", "MB for the crawl", "us a page"]))  # fmt: skip
    peak = None
    for part in (None, *options.parts):
        most = None if part is None else int(part * peak)
        found = alone(_buffered, judged, most, options.seeds[0])
        peak = found[0] if peak is None else peak
        say(row([f"{most:,}" if most else "any", f"{found[0]:,}", *found[1:]]))


def _buffered(judged: Judged, most: int | None, seed: int) -> list[Any]:
    web, policy, began, before = judged.web, Importance(), time.process_time(), resident()
    crawl = WebCrawl(web, policy, start=judged.start, seed=seed, most_waiting=most)
    peak, last = 0, -1
    order = crawl.go(0)
    while len(order) > last:
        last = len(order)
        order = crawl.go(last + 500)
        peak = max(peak, len(crawl.crawl.frontier))
    importance = judged.importance["IR"]
    estimates = np.full(web.n_urls, -1.0)
    estimates[order] = policy.values([key_of(page) for page in order.tolist()])
    held = limited_buffer(order, importance, web.n_urls // 10, estimates=estimates)
    cost = 1e6 * (time.process_time() - began) / len(order)
    at = [int(part * web.n_urls) - 1 for part in AT]
    return [peak, f"{len(order):,}", _points(crawl_and_stop(order, importance)[at]), f"{held:.1f}",
            f"{crawl.crawl.counts['link/dropped']:,}", f"{resident() - before:.0f}", round(cost)]  # fmt: skip


# What it costs


class Clocked:
    """Wraps a method of an object: how often it was called, CPU seconds of all calls and of the longest one."""

    def __init__(self, owner: Any, name: str) -> None:
        self.calls, self.seconds, self.longest = 0, 0.0, 0.0
        method = getattr(owner, name)
        clock = time.thread_time

        def call(*args: Any, **kwargs: Any) -> Any:
            began = clock()
            result = method(*args, **kwargs)
            took = clock() - began
            self.calls += 1
            self.seconds += took
            self.longest = max(took, self.longest)
            return result

        setattr(owner, name, call)


def cost(options: argparse.Namespace) -> None:
    """Crawl a web in each order; print CPU a page, the longest call, moves and memory at each mark."""
    web, start = LinkWeb.make(options.pages, seed=options.seeds[0], links=options.links).reached()
    crawl = WebCrawl(web, BreadthFirst(), start=start)
    _, shared = web.urls, (crawl._keys, crawl._hosts)  # made before the processes of the sides, which share them
    say(f"{web.n_urls:,} pages reached, {web.n_links:,} links ({web.n_links / web.n_urls:.1f} a page)")
    say(head(["order", "pages", "waiting", "us a page", "us a page since the last mark", "policy alone, us a page",
              "longest call, ms", "moves a page", "MB for the crawl", "of it columns of the policy, MB",
              "pickled, MB", "in s"]))  # fmt: skip
    for side in options.sides:
        alone(_cost, web, start, side, options, shared)


def _cost(web: LinkWeb, start: int, side: str, options: argparse.Namespace, shared: tuple[Any, Any]) -> None:
    policy, before = SIDES[side](), resident()
    crawl = WebCrawl(web, policy, start=start)
    crawl._keys, crawl._hosts = shared
    moved = _count_moves(crawl)
    clocked = {name: Clocked(policy, name) for name in ("place", "know", "learn", "select")}
    gc.collect()
    freeze(collect=False)
    used, came = 0.0, 0
    marks = marks_of(web, options)
    for mark in marks:
        began = time.process_time()
        done = len(crawl.go(mark))
        took = time.process_time() - began
        used, since, came = used + took, 1e6 * took / (done - came), done
        held = resident() - before
        columns = columns_of(policy) if isinstance(policy, Importance) else 0
        last = done in (marks[0], marks[-1])
        pickled = _pickled(policy, [*clocked]) if last else ("", "")
        longest = {name: 1000 * each.longest for name, each in clocked.items()}
        worst = max(longest, key=lambda name: longest[name])
        say(row([side, f"{done:,}", f"{len(crawl.crawl.frontier):,}", round(1e6 * used / done), round(since),
                 round(1e6 * sum(each.seconds for each in clocked.values()) / done), f"{longest[worst]:.1f} ({worst})",
                 f"{sum(moved) / done:.2f}", f"{held:.0f}", f"{columns / 1e6:.0f}", *pickled]))  # fmt: skip
        if isinstance(policy, Importance) and last:
            say(f"  columns: {_columns(policy)}")


def marks_of(web: LinkWeb, options: argparse.Namespace) -> list[int]:
    """Return after how many pages to look, the last one at the end."""
    end = min(web.n_urls, options.until or web.n_urls)
    return [*range(options.mark, end, options.mark), end]


def _count_moves(crawl: WebCrawl) -> list[int]:
    """Return a list that gets the number of moved links with every call that moves some."""
    frontier: Any = crawl.crawl.frontier
    moved: list[int] = []
    move = frontier.move

    def counted(keys: Sequence[int], placements: Any) -> None:
        moved.append(len(keys))
        move(keys, placements)

    frontier.move = counted
    return moved


def _pickled(policy: Policy, clocked: Iterable[str]) -> tuple[str, str]:
    """Return MB of a policy as a checkpoint stores it, and CPU seconds that this takes."""
    wrapped = {name: policy.__dict__.pop(name) for name in clocked}
    began = time.thread_time()
    data = classes_of(type(policy), Classes()).dumps(policy)
    took = time.thread_time() - began
    policy.__dict__.update(wrapped)
    return f"{len(data) / 1e6:.1f}", f"{took:.3f}"


def _columns(policy: Importance) -> dict[str, int]:
    """Return the bytes of each column of a policy by PageRank, as they are reserved."""
    values: Any = policy._values["pagerank" if "pagerank" in policy._values else "backlinks"]
    shards = policy._numbers._shards.values()
    return {
        "keys": sys.getsizeof(policy._keys),
        "numbers of keys": sum(sys.getsizeof(keys) + sys.getsizeof(numbers) for keys, numbers in shards),
        "where links stand": sys.getsizeof(policy._graph.at),
        "links": sys.getsizeof(policy._graph._links),
        "values": sum(
            sys.getsizeof(getattr(values, name)) for name in ("received", "held", "n") if hasattr(values, name)
        ),
    }


def columns_of(policy: Importance) -> int:
    """Return the bytes of all columns of a policy."""
    return sum(_columns(policy).values())


def resident() -> float:
    """Return the MB of this process that are in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def job(options: argparse.Namespace) -> None:
    """Crawl a web with a JOBDIR in each order; print what a checkpoint writes, and how long it blocks the crawl."""
    web, start = LinkWeb.make(options.pages, seed=options.seeds[0], links=options.links).reached()
    say(f"{web.n_urls:,} pages reached, {web.n_links:,} links")
    say(head(["order", "pages", "us a page, all threads", "moves a page", "checkpoints", "MB written for each",
              "of it the policy, MB", "making one: median, longest, ms of CPU", "on disk, MB"]))  # fmt: skip
    for side in options.sides:
        alone(_job, web, start, side, options)


def _job(web: LinkWeb, start: int, side: str, options: argparse.Namespace) -> None:
    policy = SIDES[side]()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        kept = Job(Path(folder))
        crawl = WebCrawl(web, policy, start=start, job=kept)
        moved, stalls = _count_moves(crawl), []
        checkpoint = crawl.crawl.checkpoint

        def timed() -> None:
            began = time.thread_time()
            checkpoint()
            stalls.append(1000 * (time.thread_time() - began))

        crawl.crawl.checkpoint = timed  # type: ignore[method-assign]
        gc.collect()
        freeze(collect=False)
        for mark in marks_of(web, options):
            del stalls[:], moved[:]
            began, wrote, before = time.process_time(), written(), len(crawl._order)
            done = len(crawl.go(mark)) - before
            used, wrote = time.process_time() - began, written() - wrote
            size = len(classes_of(type(policy), Classes()).dumps(policy)) / 1e6
            disk = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
            say(row([side, f"{before + done:,}", round(1e6 * used / done), f"{sum(moved) / done:.2f}", len(stalls),
                     f"{wrote / max(1, len(stalls)) / 1e6:.1f}", f"{size:.1f}",
                     f"{np.median(stalls):.0f}, {max(stalls):.0f}" if stalls else "", f"{disk:.0f}"]))  # fmt: skip
        crawl.close()


def written() -> int:
    """Return the bytes that this process wrote to files so far."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def _of_every_part() -> argparse.ArgumentParser:
    every = argparse.ArgumentParser(add_help=False)
    every.add_argument("--pages", type=int, default=200_000, help="pages of the web; 95 %% can be reached")
    every.add_argument("--links", type=float, default=8.0, help="mean number of links on a page, with repeated ones")
    every.add_argument("--clusters", type=int, default=0, help="dense clusters")
    every.add_argument("--cluster-pages", type=int, default=30, help="pages of each")
    every.add_argument("--seeds", type=int, nargs="+", default=[1])
    return every


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True, metavar="part")
    for call in (orders, site, flight, cluster, missed, exact, buffer, cost, job):
        part = parts.add_parser(call.__name__, parents=[_of_every_part()], help=(call.__doc__ or "").splitlines()[0])
        part.set_defaults(call=call)
        if call is orders:
            part.add_argument("--only", nargs="+", default=[], help="only orders with one of these in their names")
        if call is site:
            part.set_defaults(pages=1100, seeds=[*range(1, 11)])
            part.add_argument("--hot", type=float, default=0.05, help="part of the pages that is hot")
        if call is exact:
            part.add_argument("--epsilons", type=float, nargs="+", default=[1, 0.1, 0.01])
        if call is buffer:
            part.add_argument(
                "--parts", type=float, nargs="+", default=[0.1], help="of the links that waited at the peak"
            )
        if call in (cost, job):
            part.add_argument("--sides", nargs="+", choices=SIDES, default=["breadth", "epsilon 0.1", "epsilon 0.01"])
            part.add_argument("--mark", type=int, default=100_000, help="pages after which to print a row")
            part.add_argument("--until", type=int, help="pages after which to end; by default, all")
        if call is job:
            part.add_argument("--folder", default=os.environ.get("TMPDIR", "/tmp"), help="where the JOBDIR is made")
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
