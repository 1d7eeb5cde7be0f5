"""Rules for revisiting pages, for ``allocation.py``: those of other crawlers, simple ones, and the best possible."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.learn.allocation import Plan
from scrapy_focus.learn.changes import DAY, RATES, Changes, memo_of, record_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Rule:
    """Decides how many seconds after each visit of a page the next one is due. This one: equal intervals for all."""

    def begin(
        self, visits: float, rates: NDArray[np.float64], weights: NDArray[np.float64], rng: np.random.Generator
    ) -> None:
        """Begin with so many visits a second for all pages; ``rates`` are true, and hidden from most rules."""
        self.visits = visits
        self.weights = weights
        self.rng = rng
        self.equal = len(rates) / visits

    def first(self, page: int, at: float) -> float:
        """Return when a page is due after its first visit."""
        return self.equal

    def again(self, page: int, at: float, gone: float, changed: bool) -> float:
        """Return when a page is due after another visit, and whether it had changed."""
        return self.equal


RoundRobin = Rule


class AnyPage(Rule):
    """Any page, drawn at random."""

    def first(self, page: int, at: float) -> float:
        return self.rng.exponential(self.equal)

    def again(self, page: int, at: float, gone: float, changed: bool) -> float:
        return self.rng.exponential(self.equal)


class StormCrawler(Rule):
    """AdaptiveScheduler by its defaults: a day at first, half as long again where unchanged, else half way to an hour."""

    beginning: float | None = DAY

    def begin(
        self, visits: float, rates: NDArray[np.float64], weights: NDArray[np.float64], rng: np.random.Generator
    ) -> None:
        super().begin(visits, rates, weights, rng)
        self.waits = np.full(len(rates), self.beginning or self.equal)

    def first(self, page: int, at: float) -> float:
        return float(self.waits[page])

    def again(self, page: int, at: float, gone: float, changed: bool) -> float:
        wait = float(self.waits[page])
        self.waits[page] = wait = (wait + 3600) / 2 if changed else min(1.5 * wait, 14 * DAY)
        return wait


class Nutch(StormCrawler):
    """AdaptiveFetchSchedule by the defaults of its class: a fifth less or more, synchronised with the last change.

    It begins with equal intervals: with its own 30 days it is worse.
    """

    beginning = None

    def begin(
        self, visits: float, rates: NDArray[np.float64], weights: NDArray[np.float64], rng: np.random.Generator
    ) -> None:
        super().begin(visits, rates, weights, rng)
        self.modified = np.zeros(len(rates))

    def first(self, page: int, at: float) -> float:
        self.modified[page] = at
        return self.equal

    def again(self, page: int, at: float, gone: float, changed: bool) -> float:
        wait = float(self.waits[page]) * (0.8 if changed else 1.2)
        if changed:
            self.modified[page] = at
        since = at - float(self.modified[page])
        self.waits[page] = wait = min(max(wait, since, 60.0), 365 * DAY)
        return wait - 0.2 * since


class Learning(Rule):
    """Rules that learn the rate of each page as the package does."""

    def __init__(self, *, half_life: float = 30 * DAY) -> None:
        self.changes = Changes(half_life=half_life)
        self.records: dict[int, np.void] = {}

    def first(self, page: int, at: float) -> float:
        self.records[page] = self.changes.new(at, weight=self.weights[page])
        return min(self.wait(page, None), self.equal)

    def again(self, page: int, at: float, gone: float, changed: bool) -> float:
        before = record_of(memo_of(self.records[page]))
        self.changes.visited(self.records[page], at, changed)
        return self.wait(page, before)

    def wait(self, page: int, before: np.void | None) -> float:
        """Return when a page is due whose record changed."""
        raise NotImplementedError


class Proportional(Learning):
    """A page that changes twice as often is visited twice as often."""

    def begin(
        self, visits: float, rates: NDArray[np.float64], weights: NDArray[np.float64], rng: np.random.Generator
    ) -> None:
        super().begin(visits, rates, weights, rng)
        self.known = np.zeros(len(rates))

    def share(self, page: int) -> float:
        """Return the quantity that visits of a page are proportional to."""
        return self.rate(page)

    def rate(self, page: int) -> float:
        """Return observed changes per time watched, plus a change and a mean interval: so no rate is 0 or huge."""
        record = self.records[page]
        return (float(record["changes"]) + 1) / (float(record["seen"]) + self.equal)

    def wait(self, page: int, before: np.void | None) -> float:
        self.known[page] = share = self.share(page)
        return float(self.known.sum()) / share / self.visits


class SquareRoot(Proportional):
    """Visits by the square root of rate and importance, which is best for the delay of news."""

    def share(self, page: int) -> float:
        return math.sqrt(self.rate(page) * self.weights[page])


class Posterior(Learning):
    """The package's rule: the mean over possible rates, against a threshold that uses up the budget."""

    def __init__(self, *, age: float = 0.05, longest: float = 90 * DAY, half_life: float = 30 * DAY) -> None:
        super().__init__(half_life=half_life)
        self.plan = Plan(self.changes, worth=0.0, age=age, longest=longest)

    def wait(self, page: int, before: np.void | None) -> float:
        self.plan.replace(before, self.records[page])
        return self.plan.interval(self.records[page], self.plan.threshold(self.visits))


class Estimates(Changes):
    """Uses an estimate as if it were true: that of Cho and Garcia-Molina, from the mean interval and the share of
    changes.
    """

    def posteriors(self, records: NDArray[np.void] | np.void) -> NDArray[np.float64]:
        visits, changes = float(records["visits"]) - 1, float(records["changes"])
        if not visits:
            return super().posteriors(records)
        rate = -math.log((visits - changes + 0.5) / (visits + 0.5)) * visits / float(records["seen"])
        at = min(max(float(np.interp(math.log(max(rate, RATES[0])), np.log(RATES), np.arange(16))), 0.0), 14.999)
        odds = np.zeros(16)
        odds[int(at)], odds[int(at) + 1] = 1 - at % 1, at % 1
        return odds


class PlanOfEstimates(Posterior):
    """The best plan, with naively estimated rates."""

    def __init__(self) -> None:
        super().__init__(age=0.0)
        self.changes = Estimates(half_life=math.inf)
        self.plan = Plan(self.changes, worth=0.0, age=0.0)


class PlanOfTruth(Rule):
    """The best plan, with the true rates: no rule is better, except by chance."""

    def begin(
        self, visits: float, rates: NDArray[np.float64], weights: NDArray[np.float64], rng: np.random.Generator
    ) -> None:
        super().begin(visits, rates, weights, rng)
        waits = np.geomspace(60.0, 1e10, 2000)
        x = np.outer(rates, waits)
        values = weights[:, None] * (-np.expm1(-x) - x * np.exp(-x)) / rates[:, None]
        low, high = 1e-6, 1e12
        for _ in range(100):
            threshold = math.sqrt(low * high)
            self.waits = np.array([np.interp(threshold, each, waits, right=1e12) for each in values])
            low, high = (threshold, high) if (1 / self.waits).sum() > visits else (low, threshold)

    def first(self, page: int, at: float) -> float:
        return float(self.waits[page] * self.rng.random())

    def again(self, page: int, at: float, gone: float, changed: bool) -> float:
        return float(self.waits[page])
