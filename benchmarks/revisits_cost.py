"""The cost of watching a million pages.

``Revisits`` against the simplest revisiting policy: each page sleeps for the same time, and pages leave in the order
of waking. Both have the same crawl around them, in memory. Pages were visited before, once to thirty times, at times
spread over a plan's interval; then so many visits follow, each when its turn comes. Every measurement has a separate
process. CPU is the time of the process, so that other programs count little; of several rounds the median is shown,
and the longest call of all. ::

    python benchmarks/revisits_cost.py                                  # a million pages, ten minutes
    python benchmarks/revisits_cost.py --pages 100000 --rounds 1
"""

from __future__ import annotations

import argparse
import gc
import os
import pickle
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus import Crawl, Job, Link, Outcome, Placement, Revisits, Signal, memory_frontier
from scrapy_focus.learn.changes import DAY, memo_of
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.policies.revisits import MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BEGIN = 1.7e9  # seconds since the epoch
EVERY = 3 * DAY  # between two visits of a page, on average
BATCH = 500
ARMS = 20  # where pages were found
WARM = 1000  # visits before any counts
METHODS = ("select", "learn", "again", "hear")


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class EachAgain(BreadthFirst):
    """Fetches each page again after the same time."""

    def again(self, outcome: Outcome) -> Placement | None:
        return Placement(0, 0.0, after=outcome.at + EVERY)


class Once(BreadthFirst):
    """Fetches each page once: the memory of a queued link."""


def policy_of(name: str, pages: int) -> Any:
    """Return a policy by its name here."""
    if name in ("news", "copies"):
        return Revisits(goal=name, per_day=pages * DAY / EVERY)  # type: ignore[arg-type]
    return EachAgain() if name == "each again" else Once()


def fill(crawl: Crawl, pages: int, rng: np.random.Generator) -> None:
    """Let so many pages sleep, as if they had been visited."""
    policy = crawl.policy
    for start in range(0, pages, BATCH):
        keys = range(start + 1, min(start + BATCH, pages) + 1)
        due = (rng.random(len(keys)) * EVERY + BEGIN).tolist()
        links = [Link(f"http://h.test/pages/{key}", key, "h.test") for key in keys]
        if isinstance(policy, Revisits):
            places = [_known(policy, at, rng) for at in due]
        else:
            places = [Placement(0, 0.0, after=at if isinstance(policy, EachAgain) else 0.0) for at in due]
        crawl.frontier.push(links, places)


def _known(policy: Revisits, due: float, rng: np.random.Generator) -> Placement:
    """Return where a page sleeps that was visited before, with a likelihood of its rate."""
    at = due - EVERY
    record = policy.changes.new(at, weight=float(policy.keeps_copies), arm=int(rng.integers(ARMS)) + 7)
    record["mark"] = MARK
    policy.changes.expect(record, float(rng.exponential(10 * DAY)))
    record["births"], record["seen"] = rng.exponential(0.3), EVERY
    policy.plan.add(record)
    return Placement(policy.known_arms[int(rng.integers(6))], 0.0, memo_of(record), after=due)


def resident() -> float:
    """Return the bytes of this process that are in memory."""
    return float(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(name: str, pages: int) -> float:
    """Return how many bytes a page takes."""
    crawl = Crawl(policy_of(name, pages), frontier=memory_frontier, clock=Clock(), seed=0, strict=True)
    gc.collect()
    before = resident()
    fill(crawl, pages, np.random.default_rng(0))
    gc.collect()
    return (resident() - before) / pages


class Timed:
    """A method of a policy, and the longest time that it took."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.longest = 0.0

    def __call__(self, *args: Any) -> Any:
        """Call it."""
        began = time.process_time()
        answer = self.method(*args)
        self.longest = max(self.longest, time.process_time() - began)
        return answer


def visits(name: str, pages: int, n: int) -> dict[str, float]:
    """Return microseconds of CPU of a visit, and the longest calls, in milliseconds."""
    clock, rng = Clock(), np.random.default_rng(1)
    policy = policy_of(name, pages)
    goal = lambda outcome: float(name == "copies")  # noqa: E731 (of every page, or of none)
    crawl = Crawl(policy, frontier=memory_frontier, goal=goal, clock=clock, seed=0, strict=True)
    fill(crawl, pages, rng)
    gc.collect()
    gc.freeze()
    _visit(crawl, clock, rng, WARM, EVERY / pages)
    seconds = _visit(crawl, clock, rng, n, EVERY / pages)
    timed = {method: Timed(getattr(policy, method)) for method in METHODS if hasattr(policy, method)}
    for method, each in timed.items():
        setattr(policy, method, each)
    _visit(crawl, clock, rng, n, EVERY / pages)
    wake = Timed(crawl.wake)
    clock.now += 600.0
    while not wake(BATCH):
        pass
    found = {f"{method} ms": 1000 * each.longest for method, each in timed.items()}
    return {
        "mean": 1e6 * float(np.mean(seconds)), "median": 1e6 * float(np.median(seconds)),
        "99 %": 1e6 * float(np.quantile(seconds, 0.99)), "longest ms": 1000 * float(np.max(seconds)),
        **found, "wake ms": 1000 * wake.longest,
    }  # fmt: skip


def _visit(crawl: Crawl, clock: Clock, rng: np.random.Generator, n: int, each: float) -> list[float]:
    """Make so many visits, one each so many seconds; return the seconds of CPU that they took."""
    seconds: list[float] = []
    while len(seconds) < n:
        clock.now += each
        began = time.process_time()
        pick = crawl.next()
        if pick is None:
            continue
        crawl.sent(pick.id)
        changed = bool(rng.random() < 0.2)
        crawl.report(Outcome(pick=pick, status=200, mime="text/html", size=9999, changed=changed))
        if len(seconds) % 20 == 0:
            crawl.hear([Signal(int(rng.integers(len(crawl.frontier) + 1)) + 1, "h.test", clock.now - 1.0, "feed")])
        seconds.append(time.process_time() - began)
    return seconds


def stored(name: str, pages: int) -> dict[str, float]:
    """Return how long a checkpoint blocks a crawl with a job, and the size of the pickled policy."""
    with tempfile.TemporaryDirectory() as folder:
        clock, rng = Clock(), np.random.default_rng(1)
        policy = policy_of(name, pages)
        crawl = Crawl(policy, job=Job(Path(folder) / "job"), clock=clock, seed=0, strict=True)
        fill(crawl, pages, rng)
        crawl.checkpoint()
        crawl.job.flush()  # type: ignore[union-attr]
        longest, size = [], 0
        for _ in range(5):
            _visit(crawl, clock, rng, 200, EVERY / pages)
            began = time.process_time()
            crawl.checkpoint()
            longest.append(time.process_time() - began)
            crawl.job.flush()  # type: ignore[union-attr]
        size = len(pickle.dumps(policy))
        crawl.close()
    return {"checkpoint ms": 1000 * float(np.median(longest)), "pickled kB": size / 1000}


def apart(task: Callable[[], Any]) -> Any:
    """Return the result of a task in a separate process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(task).result()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000, help="how many pages are watched (1,000,000)")
    parser.add_argument("--visits", type=int, default=10_000, help="how many visits are made (10,000)")
    parser.add_argument("--rounds", type=int, default=3, help="how often (3)")
    parser.add_argument("--only", nargs="+", choices=("visits", "memory", "stored"), help="not all of it")
    options = parser.parse_args(arguments)
    only = options.only or ("visits", "memory", "stored")
    if "visits" in only:
        for name in ("each again", "news", "copies"):
            rounds = [apart(partial(visits, name, options.pages, options.visits)) for _ in range(options.rounds)]
            merged = {
                key: (np.max if key.endswith("ms") else np.median)([each[key] for each in rounds]) for key in rounds[0]
            }
            print(name, " ".join(f"{key} {value:,.2f}" for key, value in merged.items()), flush=True)
    if "memory" in only:
        for name in ("once", "each again", "news"):
            print(f"{name}: {apart(partial(memory, name, options.pages)):,.0f} bytes a page", flush=True)
    if "stored" in only:
        for name in ("each again", "news"):
            found = apart(partial(stored, name, options.pages // 5))
            print(name, " ".join(f"{key} {value:,.2f}" for key, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
