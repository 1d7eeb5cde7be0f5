"""Simulated crawls at a rate: the clock advances to the turn of the next link."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from handmade import course, moved, page, site_of

from scrapy_focus import Budget, FilesGoal
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.orderings import BreadthFirst, Random
from tests.made import EachAgain

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.lab.recordings.format import RecordedSite


def star(folder: Path, n: int = 8) -> RecordedSite:
    """Record a page with some others."""
    return site_of(folder, {"/": page(*(f"/{i}" for i in range(1, n))), **{f"/{i}": page() for i in range(1, n)}})


@pytest.mark.parametrize(
    ("concurrency", "latency", "second"), [(1, 0.0, 10.0), (4, 0.0, 10.0), (1, 2.0, 12.0), (4, 25.0, 50.0)]
)
def test_requests_are_even(tmp_path: Path, concurrency: int, latency: float, second: float) -> None:
    """Whatever is in flight: one every ten seconds, from the first two on, as long as there are links."""
    site = star(tmp_path)
    budget = Budget(rate="6/minute")
    harvest = simulate(BreadthFirst(), FilesGoal(), site, budget=budget, concurrency=concurrency, latency=latency)
    assert harvest.seconds[1] == latency
    assert harvest.seconds[2:].tolist() == pytest.approx([second + 10.0 * i for i in range(7)])
    assert harvest.stopped == ""
    assert budget.requests_used == 0, "it is not used up for the next one"


def test_the_rate_decides_when_not_what(tmp_path: Path) -> None:
    """With one request in flight the choices are those without a rate, HEADs, retries and redirects included."""
    site = site_of(tmp_path, {"/": page("/old", "/2", "/3"), "/old": moved("/new"), "/new": page(), "/2": page("/new")})
    with_it, without = (
        simulate(Random(), FilesGoal(), site, budget=Budget(rate=rate), latency=1.0) for rate in ("1/hour", None)
    )
    assert course(with_it, site) == course(without, site)
    assert with_it.seconds[-1] > 3600 * (len(with_it.pages) - 3)


@pytest.mark.slow
def test_pages_that_are_due_wait_for_their_turn(tmp_path: Path) -> None:
    """A rate below what the policy wants is kept; a budget of seconds ends the crawl, and the rate alone would not."""
    site = star(tmp_path, 4)
    policy = EachAgain(every=5.0)
    harvest = simulate(policy, FilesGoal(), site, budget=Budget(rate="6/minute", seconds=86_400.0))
    assert harvest.stopped == "budget_seconds"
    assert len(harvest.pages) - 1 == 8640
    assert policy.budget_rate == 0.1
