"""Time in a simulation: what a policy reads of it, when a crawl resumes by itself, and custom stop rules."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from handmade import Watching, course, file, page, site_of

from scrapy_focus import Budget, Crawl, FilesGoal, memory_frontier
from scrapy_focus.core.abilities import Waits
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import Clock, fetch, links

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from scrapy_focus import Link, Outcome, Pick, Placement
    from scrapy_focus.lab.recordings.format import RecordedSite


class Timed(Watching):
    """Writes down what time it is whenever it is asked something."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[tuple[str, float]] = []

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        self.times.append(("place", self.now))
        assert source is None or source.at == self.now
        return super().place(links, source)

    def select(self, busy: Collection[str]) -> Pick | None:
        self.times.append(("select", self.now))
        return super().select(busy)

    def learn(self, outcome: Outcome) -> None:
        self.times.append(("learn", self.now))
        assert outcome.at == self.now
        super().learn(outcome)


def chain(folder: Path, n: int = 4) -> RecordedSite:
    """Record a few pages, each of which links to the next."""
    pages = {f"/{i}": page(f"/{i + 1}") for i in range(1, n)}
    return site_of(folder, {"/": page("/1"), **pages, f"/{n}": page()})


def test_the_time_is_that_of_the_simulation(tmp_path: Path) -> None:
    """With 2.5 seconds for each request: seeds at 0, each outcome 2.5 later, and the next choice at once."""
    policy = Timed()
    simulate(policy, FilesGoal(), chain(tmp_path, 2), latency=2.5)
    assert policy.times == [
        ("place", 0.0), ("select", 0.0), ("place", 2.5), ("learn", 2.5), ("select", 2.5), ("place", 5.0), ("learn", 5.0),
        ("select", 5.0), ("learn", 7.5),
    ]  # fmt: skip
    assert [outcome.at for outcome in policy.learnt] == [2.5, 5.0, 7.5]
    assert [outcome.seconds for outcome in policy.learnt] == [2.5, 2.5, 2.5]


def test_outcomes_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    """With several in flight, and requests that take as long as their number says."""
    site = site_of(tmp_path, {"/": page("/3", "/1", "/2"), **{f"/{i}": page() for i in (1, 2, 3)}})

    def seconds(number: int, rng: Any) -> float:
        return float(site.urls[number].rpartition("/")[2] or 10)

    policy = Timed()
    simulate(policy, FilesGoal(), site, concurrency=3, latency=seconds)
    assert [(outcome.pick.url[-1], outcome.at, outcome.seconds) for outcome in policy.learnt] == [
        ("/", 10.0, 10.0), ("1", 11.0, 1.0), ("2", 12.0, 2.0), ("3", 13.0, 3.0),
    ]  # fmt: skip
    times = [time for _, time in policy.times]
    assert times == sorted(times)


def test_a_crawl_of_ones_own_has_its_clock() -> None:
    """The time is what the clock says, and the outcome gets it from the crawl."""
    clock, policy = Clock(), Timed()
    crawl = Crawl(policy, frontier=memory_frontier, clock=clock, strict=True)
    clock.now += 3
    crawl.add(links(1))
    clock.now += 4
    fetch(crawl, at=99.0)
    assert policy.times == [("place", 1003.0), ("select", 1007.0), ("learn", 1007.0)]


class Waiting(Watching):
    """A page may be fetched from the time on that its number says, the root at once."""

    def open(self, *given: Any) -> None:
        super().open(*given)
        self.times: dict[int, float] = {}  # by key
        self.asked_at: list[float] = []

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        self.times |= {link.key: float(link.url.rpartition("/")[2] or 0) for link in links}
        return super().place(links, source)

    def select(self, busy: Collection[str]) -> Pick | None:
        for key in sorted(self.times, key=lambda key: self.times[key]):
            if self.times[key] <= self.now and (pick := self.frontier.take(key)) is not None:
                del self.times[key]
                self.asked_at.append(self.now)
                return pick
        return None

    def due(self) -> float | None:
        return min(self.times.values(), default=None)


TIMES = (500, 20, 90, 1000, 7)


def waiting_site(folder: Path) -> RecordedSite:
    """Record pages that may be fetched at times that are far from each other, in another order."""
    return site_of(folder, {"/": page(*(f"/{time}" for time in TIMES)), **{f"/{time}": page() for time in TIMES}})


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("latency", [0.0, 2.0])
def test_a_crawl_resumes_when_links_are_due(tmp_path: Path, concurrency: int, latency: float) -> None:
    """All pages are found, each at its time, not one of them earlier; and the crawl ends after the last."""
    site, policy = waiting_site(tmp_path), Waiting()
    harvest = simulate(policy, FilesGoal(), site, concurrency=concurrency, latency=latency)
    assert course(harvest, site) == ["/", *(f"/{time}" for time in sorted(TIMES))]
    assert policy.asked_at == [0.0, *map(float, sorted(TIMES))]
    assert harvest.seconds[-1] == 1000 + latency
    assert harvest.stopped == ""


def test_what_is_due_within_the_budget_is_fetched(tmp_path: Path) -> None:
    """Time that passes while nothing is due counts."""
    site = waiting_site(tmp_path)
    harvest = simulate(Waiting(), FilesGoal(), site, budget=Budget(seconds=100.0))
    assert course(harvest, site) == ["/", "/7", "/20", "/90"]
    assert harvest.stopped == "budget_seconds"


@pytest.mark.parametrize("due", [None, 0.0, -5.0, 7.0, -math.inf])
def test_a_policy_that_chooses_nothing_does_not_end_a_crawl(tmp_path: Path, due: float | None) -> None:
    """Where no time is known, or one that has passed and at which nothing was chosen, any link is taken."""

    class Stuck(Waiting):
        def select(self, busy: Collection[str]) -> Pick | None:
            return super().select(busy) if self.now < 7 else None

        def due(self) -> float | None:
            return due

    site = waiting_site(tmp_path)
    harvest = simulate(Stuck(), FilesGoal(), site)
    assert sorted(course(harvest, site)) == sorted(["/", *(f"/{time}" for time in TIMES)])
    assert harvest.counts["select/none"] == len(TIMES)
    assert harvest.stopped == ""


def test_a_time_that_never_comes_ends_a_crawl(tmp_path: Path) -> None:
    """A policy that says that its links are due at the end of all times has none to wait for."""

    class Never(Waiting):
        def due(self) -> float | None:
            times = [time for time in self.times.values() if time < 50]
            return min(times, default=math.inf)

    site = waiting_site(tmp_path)
    harvest = simulate(Never(), FilesGoal(), site)
    assert course(harvest, site) == ["/", "/7", "/20"]
    assert harvest.seconds[-1] == 20


def test_a_status_says_when_a_link_is_due() -> None:
    """For drivers of a crawl; policies without the method have none."""
    policy = Waiting()
    crawl = Crawl(policy, frontier=memory_frontier, clock=Clock(), strict=True)
    crawl.add(links(1030, 1012))
    assert crawl.next() is None
    assert crawl.status().due == 1012.0
    assert isinstance(policy, Waits)
    other = Crawl(BreadthFirst(), frontier=memory_frontier)
    other.add(links(1))
    assert other.status().due is None
    assert not isinstance(other.policy, Waits)


class Satisfied:
    """A custom stop rule: after three targets, or a maximum cost. Records its calls."""

    reason = "satisfied"

    def __init__(self) -> None:
        self.asked: list[tuple[int, float, float | None]] = []

    def reached(self, requests: int, targets: float, cost: float | None = None) -> bool:
        self.asked.append((requests, targets, cost))
        Satisfied.last = self.asked
        return targets >= 3

    def state(self) -> dict[str, float | None]:
        return {"asked": float(len(self.asked))}

    def restore(self, state: dict[str, Any]) -> None:
        raise AssertionError("nothing is resumed here")

    last: list[tuple[int, float, float | None]] = []


class Costly(BreadthFirst):
    """Expects each target to cost more than the one before."""

    reports = 0

    def learn(self, outcome: Outcome) -> None:
        self.reports += 1

    def expected_cost(self) -> float | None:
        return 10.0 * self.reports if self.reports > 1 else None


def test_a_stop_rule_of_ones_own(tmp_path: Path) -> None:
    """It is asked after each outcome, ends the crawl with its reason, and a simulation asks a copy of it."""
    site = site_of(
        tmp_path, {"/": page(*(f"/{i}.csv" for i in range(9))), **{f"/{i}.csv": file(str(i)) for i in range(9)}}
    )
    rule = Satisfied()
    for _ in range(2):
        harvest = simulate(Costly(), FilesGoal(), site, stop=rule)
        assert (harvest.stopped, harvest.requests, harvest.found[-1]) == ("satisfied", 4, 3)
        assert Satisfied.last == [(1, 0.0, None), (2, 1.0, 20.0), (3, 2.0, 30.0), (4, 3.0, 40.0)]
    assert rule.asked == []
    assert simulate(BreadthFirst(), FilesGoal(), site, stop=rule).stopped == "satisfied"
    assert Satisfied.last[-1] == (4, 3.0, None)
