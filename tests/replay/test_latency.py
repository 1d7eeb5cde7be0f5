"""How long the simulated network takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from handmade import course, failing, file, moved, page, site_of

from scrapy_focus import ConfigError, FilesGoal
from scrapy_focus.lab.replay.latency import Constant, LogNormal, Recorded
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from pathlib import Path


def test_a_number_is_a_constant(tmp_path: Path) -> None:
    """Each request takes so long: HEADs, redirects and retries alike."""
    site = site_of(tmp_path, {"/": page("/a", "/b"), "/a": moved("/c"), "/c": page(), "/b": failing()})
    harvest = simulate(BreadthFirst(), FilesGoal(), site, latency=2)
    assert harvest.seconds.tolist() == [0, 2, 4, 6, 8, 10, 12]
    assert np.array_equal(simulate(BreadthFirst(), FilesGoal(), site, latency=Constant(2.0)).seconds, harvest.seconds)


def test_half_of_the_requests_stay_below_the_median() -> None:
    """The logarithm has the standard deviation that is asked for; 0 makes it a constant."""
    rng = np.random.default_rng(0)
    drawn = np.array([LogNormal(0.3, 0.7)(0, rng) for _ in range(20_000)])
    assert np.median(drawn) == pytest.approx(0.3, rel=0.03)
    assert np.log(drawn).std() == pytest.approx(0.7, rel=0.03)
    assert LogNormal(0.3, 0)(0, rng) == 0.3


def test_recorded_times_are_taken_where_they_are_known(tmp_path: Path) -> None:
    """Otherwise, and for unrecorded URLs, a given time."""
    answers = {"/": page("/a.csv", "/b.csv", "/c"), "/a.csv": file(seconds=3.0), "/b.csv": file("2", seconds=0.5)}
    site = site_of(tmp_path, answers)
    harvest = simulate(BreadthFirst(), FilesGoal(), site, latency=Recorded(site, otherwise=10.0))
    assert course(harvest, site) == ["/", "/a.csv", "/b.csv", "/c"]
    assert np.diff(harvest.seconds).tolist() == [10, 3, 0.5, 10]
    assert simulate(BreadthFirst(), FilesGoal(), site, latency=Recorded(site)).seconds[1] == 0.2


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (Constant, (-1,)), (Constant, (math.nan,)), (Constant, (math.inf,)), (LogNormal, (0,)), (LogNormal, (math.inf,)),
        (LogNormal, (1, -1)), (LogNormal, (1, math.inf)), (LogNormal, (math.nan,)), (LogNormal, (1, math.nan)),
    ],
)  # fmt: skip
def test_times_that_make_no_sense_are_mistakes(make: Any, arguments: tuple[float, ...]) -> None:
    """Before anything is simulated."""
    with pytest.raises(ConfigError, match=r"latency|LogNormal"):
        make(*arguments)


def test_a_time_for_the_unknown_makes_sense_too(tmp_path: Path) -> None:
    """It is not a negative number either."""
    with pytest.raises(ConfigError, match="-1"):
        Recorded(site_of(tmp_path, {"/": page()}), otherwise=-1)
