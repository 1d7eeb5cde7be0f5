"""The cost of giving up a tenth of the queued links, as a crawl with ``FOCUS_MOST_WAITING`` does.

Measured: time and CPU of one call of ``Policy.give_up``, which is a pause for the event loop; for a ranked and a
drawn frontier, in memory and in a file; the best and the worst of some rounds, between which as many new links arrive
as were given up. For a file also the time of the next checkpoint, in its own thread, and the longest pause of a loop
beside it. Not measured: a crawl. ::

    python benchmarks/giving_up.py --links 1000000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus import Link, Placement, Vectors, memory_frontier
from scrapy_focus.core.frontier import Ranks
from scrapy_focus.core.giving_up import give_up
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier

if TYPE_CHECKING:
    from collections.abc import Iterator

AT_ONCE = 10_000


def links_of(rng: np.random.Generator, hosts: int) -> list[Link]:
    """Links on hosts, few of which have many."""
    keys = rng.integers(0, 1 << 62, AT_ONCE).tolist()
    numbers = (hosts * rng.random(AT_ONCE) ** 2).astype(int).tolist()
    return [Link(f"https://h{n}.test/{key:x}/page", key, f"h{n}.test") for key, n in zip(keys, numbers, strict=True)]


def push(frontier: Any, n: int, options: argparse.Namespace, rng: np.random.Generator) -> None:
    """Queue links, at random ranks, in random arms, and write them."""
    memo = np.zeros(options.width, np.uint8) if isinstance(frontier_keeps(options), Vectors) else None
    for _ in range(0, n, AT_ONCE):
        arms, ranks = rng.integers(0, options.arms, AT_ONCE).tolist(), rng.random(AT_ONCE).tolist()
        places = [Placement(arm, rank, memo) for arm, rank in zip(arms, ranks, strict=True)]
        frontier.push(links_of(rng, options.hosts), places)
        if hasattr(frontier, "checkpoint") and frontier.changed > 10 * AT_ONCE:
            frontier.checkpoint()
            frontier.flush()


def frontier_keeps(options: argparse.Namespace) -> Ranks | Vectors:
    """The data that the policy would keep."""
    return Ranks() if options.order == "ranked" else Vectors(options.width)


def written(frontier: Any) -> tuple[float, float]:
    """Write a checkpoint; return its time, and the longest pause meanwhile, in milliseconds."""
    start = last = time.perf_counter()
    longest = 0.0
    frontier.checkpoint()
    while frontier.writing:
        time.sleep(0.0005)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return 1e3 * (time.perf_counter() - start), 1e3 * longest


def rounds(frontier: Any, options: argparse.Namespace) -> Iterator[dict[str, float]]:
    """Give up a tenth, several times."""
    rng = np.random.default_rng(0)
    push(frontier, options.links, options, rng)
    for _ in range(options.rounds):
        if hasattr(frontier, "checkpoint"):
            frontier.checkpoint()
            frontier.flush()
        n = len(frontier) - options.links * 9 // 10
        wall, cpu = time.perf_counter(), time.process_time()
        give_up(frontier, n, rng)
        row = {"ms": 1e3 * (time.perf_counter() - wall), "CPU ms": 1e3 * (time.process_time() - cpu)}
        if hasattr(frontier, "checkpoint"):
            row["checkpoint ms"], row["pause ms"] = written(frontier)
        yield row
        push(frontier, options.links - len(frontier), options, rng)


def main() -> None:
    """Measure, and print a line for each frontier."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--links", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--arms", type=int, default=1)
    parser.add_argument("--width", type=int, default=32, help="bytes of a vector")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(
        f"{options.links:,} links on {options.hosts:,} hosts in {options.arms:,} arms; best and worst of {options.rounds}"
    )
    for options.order in ("ranked", "drawn"):
        for kind in ("memory", "sqlite"):
            keeps = frontier_keeps(options)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "frontier.sqlite"
                frontier: Any = memory_frontier(keeps) if kind == "memory" else sqlite_frontier(path, keeps)
                rows = list(rounds(frontier, options))
                frontier.close()
            said = ", ".join(
                f"{name} {min(row[name] for row in rows):.0f} to {max(row[name] for row in rows):.0f}"
                for name in rows[0]
            )
            print(f"{options.order} {kind:<7} {said}", flush=True)


if __name__ == "__main__":
    main()
