"""How current a budget of visits keeps copies of pages, compared with other rules and with the best possible; and
what a visit costs.

Measured: synthetic pages that change at random, each with a different rate (log-normal, median 0.3 a day, sigma 1.6),
and with an importance by Zipf that is independent of it. Every rule makes exactly one visit each time that the budget
allows one: of the page that is due first. It learns whether the page changed since the last visit, and nothing else.
Freshness is the share of time in which a copy is current. Age is the time since the first change that it lacks, 0
while it is current. Both are weighted by importance. Not measured: fetching, errors, new and deleted pages, sites
whose pages change together. ::

    python benchmarks/allocation.py shares                      # 300 and 1,000 pages, 0.3 and 1 visits a page and day
    python benchmarks/allocation.py shares --zipf 0.5           # importance less unequal
    python benchmarks/allocation.py age                         # how much age counts, and longest waits instead
    python benchmarks/allocation.py intervals                   # how often the interval of a rate holds the truth
    python benchmarks/allocation.py cost --pages 1000000        # CPU a visit, the longest call, memory
"""

from __future__ import annotations

import argparse
import functools
import heapq
import math
import os
import pickle
import re
import time
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from allocation_rules import (
    AnyPage,
    Nutch,
    PlanOfEstimates,
    PlanOfTruth,
    Posterior,
    Proportional,
    RoundRobin,
    SquareRoot,
    StormCrawler,
)
from scrapy_focus import Crawl, Link, Mission, Outcome, Revisits, memory_frontier
from scrapy_focus.learn.allocation import Plan
from scrapy_focus.learn.changes import DAY, Changes, memo_of, record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from allocation_rules import Rule

    Side = Callable[[], Rule | Revisits]

MEDIAN, SIGMA = 0.3 / DAY, 1.6  # of the rates of change, a second
DAYS, LEFT_OUT = 60, 20
SIDES: dict[str, Side] = {
    "any page": AnyPage,
    "equal intervals, round robin": RoundRobin,
    "proportional to the learned rate": Proportional,
    "StormCrawler's rule": StormCrawler,
    "Nutch's rule": Nutch,
    "square root of learned rate x importance": SquareRoot,
    "best plan by plain estimates": PlanOfEstimates,
    "**posterior and threshold**": Posterior,
    "**Revisits, through a Crawl**": functools.partial(Revisits, goal="copies"),
    "best plan by true rates": PlanOfTruth,
}
GUARDS: dict[str, Side] = {
    "age 0, the share of time alone": functools.partial(Posterior, age=0.0),
    "the same, longest wait 30 days": functools.partial(Posterior, age=0.0, longest=30 * DAY),
    "the same, longest wait 14 days": functools.partial(Posterior, age=0.0, longest=14 * DAY),
    "the same, longest wait 7 days": functools.partial(Posterior, age=0.0, longest=7 * DAY),
    **{f"age {age}": functools.partial(Posterior, age=age) for age in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)},
    "age 0.05, longest wait 14 days": functools.partial(Posterior, longest=14 * DAY),
    "age 0.05, nothing fades": functools.partial(Posterior, half_life=math.inf),
}


class Pages(NamedTuple):
    """Pages that change: how often, how important they are (1 on average), and when; times in seconds."""

    rates: NDArray[np.float64]
    weights: NDArray[np.float64]
    changes: list[NDArray[np.float64]]


class Kept(NamedTuple):
    """The state of copies: the share of time that they are current, and the ages in hours, weighted and of the mean
    page.
    """

    freshness: float
    age: float
    plain_age: float


def pages_of(n: int, seed: int, zipf: float) -> Pages:
    """Return n pages."""
    rng = np.random.default_rng([seed, n])
    rates = MEDIAN * np.exp(SIGMA * rng.standard_normal(n))
    weights = rng.permutation(np.arange(1.0, n + 1) ** -zipf)
    changes = [np.sort(rng.random(rng.poisson(rate * DAYS * DAY))) * DAYS * DAY for rate in rates]
    return Pages(rates, weights * n / weights.sum(), changes)


def visits_of(rule: Rule, pages: Pages, per_day: float, seed: int) -> list[list[float]]:
    """Return when each page is visited by a rule; each of the first visits is of a new page."""
    n = len(pages.rates)
    rule.begin(n * per_day / DAY, pages.rates, pages.weights, np.random.default_rng(seed))
    visits: list[list[float]] = [[] for _ in range(n)]
    due: list[tuple[float, int]] = []
    for number in range(int(n * per_day * DAYS)):
        at = number * DAY / (n * per_day)
        if number < n:
            page, wait = number, rule.first(number, at)
        else:
            _, page = heapq.heappop(due)
            before, after = np.searchsorted(pages.changes[page], (visits[page][-1], at), "right")
            wait = rule.again(page, at, at - visits[page][-1], bool(before != after))
        visits[page].append(at)
        heapq.heappush(due, (at + wait, page))
    return visits


def crawled(policy: Revisits, pages: Pages, per_day: float, seed: int) -> list[list[float]]:
    """Return when each page is visited by a crawl that makes a visit whenever the budget allows one.

    First visits are made at once, and then none until the budget allows more. Otherwise the crawl would delay them
    when it pays more to revisit a known page, and rules are compared here, not the order of first visits.
    """
    n, at = len(pages.rates), 0.0
    crawl = Crawl(
        policy, frontier=memory_frontier, mission=Mission(rate=n * per_day / DAY), seed=seed, strict=True, clock=lambda: at
    )  # fmt: skip
    crawl.add([Link(f"https://example.org/{page}", page, "example.org") for page in range(n)])
    visits: list[list[float]] = [[] for _ in range(n)]
    for number in range(int(n * per_day * DAYS)):
        at = number * DAY / (n * per_day) if number >= n else number * 50 / n
        pick = crawl.next()
        if pick is None:
            continue
        before, after = np.searchsorted(pages.changes[pick.key], ((visits[pick.key] or [at])[-1], at), "right")
        changed = bool(before != after) if visits[pick.key] else None
        visits[pick.key].append(at)
        crawl.report(
            Outcome(pick=pick, status=200, mime="text/plain", items=pages.weights[pick.key], changed=changed, at=at)
        )
    return visits


def kept(pages: Pages, visits: Sequence[Sequence[float]]) -> Kept:
    """Return how current copies were, from the end of the warm-up to the last day."""
    begin, end = LEFT_OUT * DAY, DAYS * DAY
    fresh, ages = [], []
    for changes, at in zip(pages.changes, visits, strict=True):
        start, stop = np.array(at), np.array([*at[1:], end])
        stale = np.append(changes, math.inf)[np.searchsorted(changes, start, "right")]  # the first change after a visit
        stale, first = np.minimum(stale, stop), np.maximum(start, begin)
        fresh.append(np.maximum(np.minimum(stale, stop) - first, 0.0).sum())
        since = np.maximum(stale, first)
        ages.append((np.where(stop > since, (stop - stale) ** 2 - (since - stale) ** 2, 0.0) / 2).sum())
    share, age = np.array(fresh) / (end - begin), np.array(ages) / (end - begin) / 3600
    return Kept(
        float(np.average(share, weights=pages.weights)),
        float(np.average(age, weights=pages.weights)),
        float(age.mean()),
    )


def one(sides: dict[str, Side], name: str, n: int, per_day: float, zipf: float, seed: int) -> Kept:
    """Return how current one rule keeps the pages of one seed."""
    pages, side = pages_of(n, seed, zipf), sides[name]()
    if isinstance(side, Revisits):
        return kept(pages, crawled(side, pages, per_day, seed))
    return kept(pages, visits_of(side, pages, per_day, seed))


def shares(
    sides: dict[str, Side],
    sizes: Sequence[int],
    per_day: Sequence[float],
    zipf: float,
    seeds: int,
    jobs: int,
) -> None:
    """Print how current each rule keeps pages; 0 % is equal intervals, 100 % the best that true rates allow."""
    with ProcessPoolExecutor(jobs) as executor:
        for n in sizes:
            for visits in per_day:
                print(
                    f"\n{n} pages, {visits:g} visits a page and day, importance by rank ** -{zipf:g}; means of {seeds} seeds\n"
                )
                print("| rule | freshness | of the way | least of the seeds | age, hours | age of the mean page |")
                print("|---|---|---|---|---|---|")
                best = [best_freshness(pages_of(n, seed, zipf), visits) for seed in range(seeds)]
                tasks = {name: [(name, n, visits, zipf, seed) for seed in range(seeds)] for name in sides}
                told = {
                    name: [executor.submit(one, sides, *task) for task in each] for name, each in tasks.items()
                }  # fmt: skip
                equal = [
                    executor.submit(one, SIDES, "equal intervals, round robin", n, visits, zipf, seed)
                    for seed in range(seeds)
                ]
                base = np.array([future.result().freshness for future in equal])
                for name, futures in told.items():
                    results = np.array([future.result() for future in futures])
                    way = (results[:, 0] - base) / (np.array(best) - base)
                    mean = results.mean(axis=0)
                    total = (mean[0] - base.mean()) / (np.mean(best) - base.mean())
                    print(
                        f"| {name} | {mean[0]:.3f} | {total:.0%} | {way.min():.0%} | {mean[1]:.1f} | {mean[2]:.1f} |",
                        flush=True,
                    )
                print(f"| best, by formula | {np.mean(best):.3f} | 100% | | | |")


def best_freshness(pages: Pages, per_day: float) -> float:
    """Return the mean freshness with the best intervals, by the formula for true rates."""
    rule = PlanOfTruth()
    rule.begin(len(pages.rates) * per_day / DAY, pages.rates, pages.weights, np.random.default_rng(0))
    x = pages.rates * rule.waits
    return float(np.average(-np.expm1(-x) / x, weights=pages.weights))


def intervals(n: int, seeds: int, median: float) -> None:
    """Print the share of pages whose 90 % interval of the rate contains the truth."""
    print("| visited | half-life | after visits | all pages | slowest tenth | quickest tenth | width |")
    print("|---|---|---|---|---|---|---|")
    for how in ("at equal intervals", "by the plan", "by the plan, all pages equally important"):
        for half_life in (math.inf, 30 * DAY):
            told = [mark for seed in range(seeds) for mark in _intervals(n, seed, how, half_life, median)]
            for after in (3, 10, 30):
                rates, low, high = np.array([mark[1:] for mark in told if mark[0] == after]).T
                held = (low <= rates) & (rates <= high)
                slow, quick = np.quantile(rates, (0.1, 0.9))
                print(f"| {how} | {'none' if half_life == math.inf else '30 days'} | {after} | {held.mean():.1%} | "
                      f"{held[rates <= slow].mean():.0%} | {held[rates >= quick].mean():.0%} | "
                      f"x{math.exp(np.log(high / low).mean()):.1f} |", flush=True)  # fmt: skip


def _intervals(
    n: int, seed: int, how: str, half_life: float, median: float
) -> Iterator[tuple[int, float, float, float]]:
    """Yield, for each page when it was visited again 3, 10 and 30 times: its rate, and its 90 % interval."""
    pages, rng = pages_of(n, seed, 1.0), np.random.default_rng(seed)
    weights = pages.weights if how == "by the plan" else np.ones(n)
    rates = pages.rates * (median / DAY / MEDIAN)
    per_second = n * 0.3 / DAY
    changes = Changes(half_life=half_life)
    plan = Plan(changes, worth=0.0)
    records = [changes.new(page / per_second, weight=weights[page]) for page in range(n)]
    for record in records:
        plan.add(record)
    due = [((page + n) / per_second, page) for page in range(n)]
    while due:
        at, page = heapq.heappop(due)
        record = records[page]
        before = record_of(memo_of(record))
        changes.visited(record, at, bool(rng.random() < -math.expm1(-rates[page] * (at - before["at"]))))
        plan.replace(before, record)
        again = int(record["visits"]) - 1
        if again in (3, 10, 30):
            yield (again, float(rates[page]), *changes.interval(record, 0.90))
        if again < 30:
            wait = n / per_second if how == "at equal intervals" else plan.interval(record, plan.threshold(per_second))
            heapq.heappush(due, (at + wait, page))


def cost(n: int, visits: int) -> None:
    """Print the cost of a visit for a million watched pages: estimates and plan, without crawl and frontier."""
    rng = np.random.default_rng(0)
    rates = MEDIAN * np.exp(SIGMA * rng.standard_normal(n))
    memos = np.zeros((n, 64), dtype=np.uint8)
    changes = Changes()
    plan = Plan(changes)
    spent: dict[str, list[float]] = {"first visit": [], "later visit": []}
    for page in range(n):
        started = time.thread_time()
        record = changes.new(page * 0.01, arm=page % 300)
        plan.add(record)
        memos[page] = memo_of(record)
        spent["first visit"].append(time.thread_time() - started)
    at = n * 0.01
    for page in rng.integers(n, size=visits).tolist():
        at += 0.01
        started = time.thread_time()
        before, record = record_of(memos[page]), record_of(memos[page])
        gone = at - record["at"].item()
        changed = gone * rates[page] > 0.3
        changes.visited(record, at, changed, births=float(page % 7 == 0))
        plan.replace(before, record)
        plan.interval(record, plan.threshold(2000 / DAY))
        memos[page] = memo_of(record)
        spent["later visit"].append(time.thread_time() - started)
    print("| | microseconds of CPU, mean | median | longest |\n|---|---|---|---|")
    for name, each in spent.items():
        us = np.array(each) * 1e6
        print(f"| {name} | {us.mean():.1f} | {np.median(us):.1f} | {us.max():.0f} |")
    print(f"\n{n:,} pages, {visits:,} visits; estimates and plan pickled: {len(pickle.dumps((changes, plan))):,} bytes")


def main() -> None:
    """Run the chosen part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["shares", "age", "intervals", "cost"])
    parser.add_argument("--pages", type=int, nargs="*")
    parser.add_argument("--visits", type=float, nargs="*", default=[0.3, 1.0])
    parser.add_argument("--zipf", type=float, default=1.0)
    parser.add_argument("--only", default="", help="a regular expression of the rules")
    parser.add_argument("--median", type=float, default=0.3, help="changes a day of the median page, for intervals")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if given.what == "intervals":
        intervals((given.pages or [1000])[0], given.seeds, given.median)
    elif given.what == "cost":
        cost((given.pages or [1_000_000])[0], 200_000)
    else:
        sides = SIDES if given.what == "shares" else GUARDS
        sides = {name: side for name, side in sides.items() if re.search(given.only, name)}
        shares(sides, given.pages or [300, 1000], given.visits, given.zipf, given.seeds, given.jobs)


if __name__ == "__main__":
    main()
