"""The cost of a choice among a thousand to a million hosts, and of a page of ten links, with a bandit of hosts.

Measured: CPU of ``Crawl.next`` and ``Crawl.report`` for pages of ten links to any hosts, mean and maximum, after so
many links on so many hosts are queued, beside breadth-first order on the same pages; and the resident memory of the
links and hosts. Links are fetched at once, so that only the crawl loop is measured. Not measured: parsing, a network.
::

    python benchmarks/structured_cost.py --hosts 1000000 --links 5000000
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from scrapy_focus import Crawl, HostBandit, Link, Outcome, memory_frontier
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from scrapy_focus import Policy

AT_ONCE = 10_000
WORDS = ("recipes", "news", "event", "shop", "lemon", "tart", "about", "archive", "tag", "page", "category", "item")
PLACES = ("html/body/div.main/ul/li/a", "html/body/nav/ul/li/a", "html/body/div.main/p/a", "html/body/footer/a")


class Pages:
    """Pages of ten links each, to hosts few of which get most."""

    def __init__(self, hosts: int, seed: int) -> None:
        self.hosts = hosts
        self.rng = np.random.default_rng(seed)

    def links(self, n: int, *, spread: float = 2.0) -> list[Link]:
        """Return new links."""
        rng = self.rng
        hosts = (self.hosts * rng.random(n) ** spread).astype(int).tolist()
        keys = rng.integers(0, 1 << 62, n).tolist()
        words = rng.integers(0, len(WORDS), (n, 4)).tolist()
        return [
            Link(
                f"https://www.host{host}.test/{WORDS[a]}/{WORDS[b]}-{WORDS[c]}-{key:x}.html", key, f"www.host{host}.test",
                2, f"{WORDS[b]} {WORDS[c]} {WORDS[d]}", PLACES[d % len(PLACES)],
            )
            for host, key, (a, b, c, d) in zip(hosts, keys, words, strict=True)
        ]  # fmt: skip


def goal(outcome: Outcome) -> float:
    """A twentieth of the hosts, and of these most pages, are worth something."""
    host = int(outcome.pick.host[8:-5])
    return float(host * 2654435761 % 1000 < 50 and outcome.pick.key % 10 < 8)


def resident() -> int:
    """Return the resident memory, in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Fill a crawl, and measure choices and pages."""
    policy: Policy = BreadthFirst() if name == "breadth-first" else HostBandit(score=name)
    crawl, pages = Crawl(policy, frontier=memory_frontier, goal=goal, seed=1), Pages(options.hosts, 1)
    empty = resident()
    clock = time.thread_time()
    for at in range(0, options.links, AT_ONCE):
        crawl.add(pages.links(min(AT_ONCE, options.links - at), spread=1.0))
    filled = time.thread_time() - clock
    memory = resident() - empty
    gc.collect()
    gc.freeze()
    choices, reports = [], []
    flying: list[Any] = []
    for _ in range(options.choices):
        busy = {pick.host for pick in flying}
        clock = time.thread_time()
        pick = crawl.next(busy)
        choices.append(time.thread_time() - clock)
        if pick is None:
            break
        flying.append(pick)
        if len(flying) < options.in_flight:
            continue
        outcome, links = Outcome(flying.pop(0), 200, "text/html", 20_000), pages.links(10)
        clock = time.thread_time()
        crawl.report(outcome, links)
        reports.append(time.thread_time() - clock)
    figures = {
        "policy": name, "hosts": options.hosts, "links": options.links, "in flight": options.in_flight,
        "fill, us a link": 1e6 * filled / options.links, "bytes a link": memory / options.links,
    }  # fmt: skip
    for what, spent in (("choice", choices), ("page", reports)):
        figures |= {
            f"{what}, us": 1e6 * float(np.mean(spent)), f"{what}, 99 %, us": 1e6 * float(np.quantile(spent, 0.99)),
            f"{what}, worst, ms": 1e3 * max(spent),
        }  # fmt: skip
    return figures | {"rewards": crawl.rewards}


def main() -> None:
    """Measure each policy in a separate process, and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--links", type=int, default=500_000)
    parser.add_argument("--choices", type=int, default=5_000)
    parser.add_argument("--in-flight", type=int, default=1)
    parser.add_argument("--policies", nargs="+", default=["breadth-first", "joint", "thompson x best"])
    options = parser.parse_args()
    for name in options.policies:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            figures = pool.apply(measure, (name, options))
        print(json.dumps({k: round(v, 2) if isinstance(v, float) else v for k, v in figures.items()}), flush=True)


if __name__ == "__main__":
    main()
