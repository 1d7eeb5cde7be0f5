"""Simulated crawls that revisit pages: the clock advances to the time when the next page is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from handmade import BUSY, GONE, course, file, moved, page, site_of

from scrapy_focus import Budget, ConfigError, FilesGoal, Placement, Plateau
from scrapy_focus.lab.replay.simulate import simulate
from tests.made import EachAgain

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus import Outcome
    from scrapy_focus.lab.recordings.format import RecordedSite


def small(folder: Path) -> RecordedSite:
    """Record a page with two others and a dead link."""
    return site_of(folder, {"/": page("/1", "/2", "/gone"), "/1": page("/"), "/2": page("/1"), "/gone": GONE})


def test_pages_come_back_at_their_times(tmp_path: Path) -> None:
    """Each some seconds after its fetch, in the order in which they are due; missing ones are not."""
    policy = EachAgain(every=100.0)
    site = small(tmp_path)
    harvest = simulate(policy, FilesGoal(), site, budget=9, latency=2.0)
    assert course(harvest, site) == ["/", "/1", "/2", "/gone", "/", "/1", "/2", "/", "/1"]
    assert harvest.seconds[1:].tolist() == [2, 4, 6, 8, 104, 106, 108, 206, 208]
    assert harvest.stopped == "budget_requests"
    assert harvest.counts["link/again"] == 8


@pytest.mark.parametrize(("concurrency", "came"), [(1, 42.0), (2, 25.0)])
def test_what_is_due_does_not_wait_for_what_is_on_its_way(tmp_path: Path, concurrency: int, came: float) -> None:
    """Where another may be in flight: the root is due at 15 s and takes 10 s, while a page takes 20 s from 10 s on."""
    site = site_of(tmp_path, {"/": page("/20", "/2"), "/20": page(), "/2": page()})

    def seconds(number: int, rng: object) -> float:
        return float(site.urls[number].rpartition("/")[2] or 10)

    policy = EachAgain(every=5.0)
    simulate(policy, FilesGoal(), site, budget=Budget(seconds=40.0), latency=seconds, concurrency=concurrency)
    times = [(url[-1], at) for url, at in policy.learned]
    assert times[0] == ("/", 10.0)
    again = next(at for url, at in times[1:] if url == "/")
    assert again == came


def test_a_budget_of_seconds_ends_a_crawl_in_which_all_sleep(tmp_path: Path) -> None:
    """And so does a stop rule."""
    site = small(tmp_path)
    harvest = simulate(EachAgain(every=50.0), FilesGoal(), site, budget=Budget(seconds=120.0))
    assert (harvest.stopped, harvest.requests) == ("budget_seconds", 4 + 3 + 3)
    stop = Plateau(window=4, patience=2)
    assert simulate(EachAgain(), FilesGoal(), site, stop=stop).stopped == "plateau"


@pytest.mark.parametrize("budget", [None, Budget()])
def test_without_an_end_there_is_no_simulation(tmp_path: Path, budget: Budget | None) -> None:
    """It says what is needed."""
    with pytest.raises(ConfigError, match=r"EachAgain fetches pages again and again.*give it a budget, or a stop rule"):
        simulate(EachAgain(), FilesGoal(), small(tmp_path), budget=budget)


def test_a_policy_that_is_done_with_all_pages_ends(tmp_path: Path) -> None:
    """Where nothing sleeps any more, it is over."""
    site = small(tmp_path)
    harvest = simulate(EachAgain(times=2), FilesGoal(), site, budget=1000)
    assert (harvest.stopped, harvest.requests) == ("", 1 + 3 * 3)


def test_a_redirect_leads_to_the_same_page_again(tmp_path: Path) -> None:
    """Though that was fetched before; but not to one that is revisited by itself."""

    class Patient(EachAgain):
        def again(self, outcome: Outcome) -> Placement | None:
            place = super().again(outcome)
            return None if place is None or outcome.pick.url.endswith("/own") else place

    site = site_of(tmp_path, {"/": page("/old", "/2"), "/old": moved("/new"), "/new": page(), "/2": page("/new")})
    policy = EachAgain()
    harvest = simulate(policy, FilesGoal(), site, budget=8)
    assert course(harvest, site) == ["/", "/old", "/new", "/2", "/", "/old", "/new", "/2"]
    assert harvest.counts["outcome/redirect_seen"] == 0


class Learning(EachAgain):
    """An :class:`EachAgain` that fetches what failed again, too, and notes what it learns."""

    def __init__(self, *, every: float = 100.0) -> None:
        super().__init__(every=every)
        self.came: list[Outcome] = []

    def learn(self, outcome: Outcome) -> None:
        super().learn(outcome)
        self.came.append(outcome)

    def again(self, outcome: Outcome) -> Placement | None:
        return Placement(0, -float(self.visits[outcome.pick.key]), after=self.now + self.every)

    def of(self, path: str) -> list[Outcome]:
        """Return the outcomes of a path."""
        return [outcome for outcome in self.came if outcome.pick.url.endswith(path)]


def test_a_page_with_one_version_does_not_change(tmp_path: Path) -> None:
    """It has neither links nor items nor a reward then, and no body where its server can say so."""
    tagged = file("1,2" * 1000)
    tagged["headers"] |= {"ETag": '"1"', "Cache-Control": "max-age=60"}
    site = site_of(tmp_path, {"/": page("/tagged.csv", "/plain.csv"), "/tagged.csv": tagged, "/plain.csv": file("3")})
    policy = Learning()
    harvest = simulate(policy, FilesGoal(), site, budget=9)
    for path in ("/", "/tagged.csv", "/plain.csv"):
        assert [outcome.changed for outcome in policy.of(path)] == [None, False, False]
    assert [(each.status, each.size, each.max_age) for each in policy.of("/tagged.csv")] == [
        (200, 3000, 60.0), (304, 0, 60.0), (304, 0, 60.0),
    ]  # fmt: skip
    assert [(each.status, each.size, each.max_age) for each in policy.of("/plain.csv")] == [(200, 1, None)] * 3
    assert harvest.found[-1] == 2
    assert harvest.counts["outcome/unchanged"] == 6
    assert harvest.target_bytes[-1] + harvest.other_bytes[-1] < 3000 + 3 * 500


def test_what_is_gone_is_not_fetched_again(tmp_path: Path) -> None:
    """After 410, or 404 three times in a row, as live."""
    site = site_of(tmp_path, {"/": page("/gone", "/missing"), "/gone": page(status=410), "/missing": GONE})
    policy = Learning()
    simulate(policy, FilesGoal(), site, budget=20)
    assert [outcome.once for outcome in policy.of("/gone")] == [True]
    assert [outcome.once for outcome in policy.of("/missing")] == [False, False, True]


def test_failures_are_the_business_of_the_policy(tmp_path: Path) -> None:
    """A page that fails is asked about, too; a file that is as it was is worth nothing again."""

    class Stubborn(EachAgain):
        def again(self, outcome: Outcome) -> Placement | None:
            return Placement(0, 0.0, after=self.now + 10)

    site = site_of(tmp_path, {"/": page("/busy", "/a.csv"), "/busy": BUSY, "/a.csv": file()})
    harvest = simulate(Stubborn(), FilesGoal(), site, budget=2 * (1 + 3 + 1))
    assert course(harvest, site) == ["/", "/busy", "/busy", "/busy", "/a.csv"] * 2
    assert harvest.found[-1] == 1, "it is the same file"
