"""The metrics: each against numbers computed by hand on a harvest that fits into a line, and for invariants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.stop import Plateau
from scrapy_focus.lab.compare.pairs import paired
from scrapy_focus.lab.replay.harvest import Exhaustive, Harvest
from scrapy_focus.lab.replay.importance_metrics import page_order
from scrapy_focus.lab.replay.metrics import (
    METRICS,
    area,
    cumulative_regret,
    early_stop,
    found_after,
    found_share,
    harvest_rate,
    overhead,
    regret,
    relevant_hosts,
    requests_until,
    stages,
    summary,
    waste_until,
)


def crawl(
    *rewards: float,
    requests: int = 10,
    worth: float = 4.0,
    heads: tuple[int, ...] = (),
    pages: tuple[int, ...] | None = None,
    target_total: int = 400,
    other_total: int = 60,
) -> Harvest:
    """Return a crawl that earned these rewards; each target has 100 bytes, each other answer 10, each request 2 seconds."""
    earned = np.array([0.0, *rewards])
    others = np.array([0, *(10 * (reward <= 0) for reward in rewards)])
    return Harvest(
        found=earned.cumsum(),
        target_bytes=100 * (earned > 0).cumsum(),
        other_bytes=others.cumsum(),
        seconds=2.0 * np.arange(len(earned)),
        pages=np.array([-1, *(range(len(rewards)) if pages is None else pages)]),
        heads=np.isin(np.arange(len(earned)), heads),
        rewards=earned,
        hosts=np.minimum(2, (earned > 0).cumsum()),
        exhaustive=Exhaustive(
            requests=requests, worth=worth, target_bytes=target_total, other_bytes=other_total, hosts=3
        ),
        asked=["a", "b", "c", "d"],
        missed=1,
    )


PARTIAL = crawl(0, 1, 1, 0, 1, heads=(1,))  # found 0 0 1 2 2 3 of 4

rewards_of_a_crawl = st.lists(st.sampled_from([0.0, 1.0]), max_size=30)


@st.composite
def crawls(draw: st.DrawFn) -> Harvest:
    """A crawl whose targets are worth 1 each, of a site with at least as many of them."""
    rewards = draw(rewards_of_a_crawl)
    worth = sum(rewards) + draw(st.integers(0, 5))
    return crawl(*rewards, requests=draw(st.integers(max(1, int(worth)), 60)), worth=worth)


# Shares and areas


def test_requests_until_a_share() -> None:
    """It is the first request that reaches the share, in percent of an exhaustive crawl, or never."""
    assert requests_until(PARTIAL, 0.25) == 20
    assert requests_until(PARTIAL, 0.5) == 30
    assert requests_until(PARTIAL, 0.75) == 50
    assert requests_until(PARTIAL, 0.9) == math.inf
    assert requests_until(PARTIAL, 0) == 0


@pytest.mark.parametrize("worth", [3, 7, 10, 29, 100, 1009])
def test_rounding_does_not_cost_a_request(worth: int) -> None:
    """All targets but one of N are the share 1 - 1 / N, whatever floating point makes of it; and tenths are fine too."""
    harvest = crawl(*[1.0] * worth, requests=100, worth=worth)
    for found in range(worth + 1):
        assert requests_until(harvest, found / worth) == found
    tenths = crawl(*[0.1] * worth, requests=100, worth=0.1 * worth)
    assert requests_until(tenths, 1.0) == worth


def test_nothing_to_find_is_found_at_once() -> None:
    """On a site without targets all shares are reached before the first request."""
    harvest = crawl(0, 0, worth=0, target_total=0)
    assert requests_until(harvest, 0.9) == overhead(harvest) == waste_until(harvest) == regret(harvest) == 0
    assert area(harvest) == found_share(harvest) == early_stop(harvest, Plateau()).share == 1


def test_a_share_in_percent_is_refused() -> None:
    """A share of 90 instead of 0.9 is an error, instead of never."""
    with pytest.raises(ConfigError, match=r"90; give one from 0 to 1, 0\.9 for 90 %"):
        requests_until(PARTIAL, 90)


def test_overhead_is_in_requests() -> None:
    """Three of four targets after five requests are two requests too many."""
    assert overhead(PARTIAL, 0.75) == 2
    assert overhead(PARTIAL, 0.9) == math.inf


def test_waste_until_a_share_of_the_volume() -> None:
    """When three quarters of the target bytes are received, 20 of 60 other bytes are too."""
    assert waste_until(PARTIAL, 0.5) == pytest.approx(100 * 10 / 60)
    assert waste_until(PARTIAL, 0.75) == pytest.approx(100 * 20 / 60)
    assert waste_until(PARTIAL) == math.inf


def test_area_pads_and_cuts() -> None:
    """A short crawl keeps what it had until the end, and what comes after the end does not count."""
    assert area(PARTIAL) == (0 + 0 + 1 + 2 + 2 + 6 * 3) / (11 * 4)
    assert area(crawl(1, 0, 1, 1, requests=2, worth=4)) == (0 + 1 + 1) / (3 * 4)


def test_regret_is_the_delay_against_omniscient() -> None:
    """Targets found at requests 2, 3 and 5 instead of 1, 2 and 3 are 4 late, and the missed one is found after the end."""
    assert cumulative_regret(PARTIAL).tolist() == [0, 1, 1, 1, 2, 1]
    assert regret(crawl(0, 1, 1, 0, 1, worth=3)) == pytest.approx(4 / 3)
    assert regret(PARTIAL) == (4 + 7) / 4  # as if at request 11, not 4
    assert regret(crawl(0, 1, 1, 0, 1, requests=2, worth=3)) == pytest.approx(4 / 3)
    assert regret(crawl(1, 1, 1, 1)) == 0


def test_harvest_rate_counts_gets() -> None:
    """Three of four GETs brought something; the HEAD does not count, and without a GET the rate is 0."""
    assert harvest_rate(PARTIAL) == 0.75
    assert harvest_rate(crawl(0, 0, heads=(1, 2))) == harvest_rate(crawl()) == 0
    assert harvest_rate(crawl(2.5, -1, 0, 0.1)) == 0.5
    assert relevant_hosts(PARTIAL) == 2


def test_page_order_of_a_crawl() -> None:
    """Each URL counts where it was first asked for with GET; HEADs do not."""
    harvest = crawl(0, 0, 0, 0, 0, 0, pages=(7, 3, 7, 9, 3, 1), heads=(1, 5))
    assert page_order(harvest).tolist() == [3, 7, 9, 1]
    assert page_order(crawl()).tolist() == []


@given(crawls(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_takes_no_fewer_requests(harvest: Harvest, one: float, other: float) -> None:
    """Requests, overhead of all there is, and waste never fall as the share rises."""
    less, more = sorted([one, other])
    assert requests_until(harvest, less) <= requests_until(harvest, more)
    assert waste_until(harvest, less) <= waste_until(harvest, more)
    assert overhead(harvest, more) >= -1e-6


@given(crawls())
def test_bounds(harvest: Harvest) -> None:
    """Area and shares are between 0 and 1, nobody beats OMNISCIENT, and all is found when the curve says so."""
    assert 0 <= area(harvest) <= 1
    assert 0 <= found_share(harvest) <= 1
    assert 0 <= harvest_rate(harvest) <= 1
    assert cumulative_regret(harvest).min() >= 0
    assert regret(harvest) >= 0
    assert (found_share(harvest) == 1) == (requests_until(harvest, 1) < math.inf)


# Stopping early


def test_early_stop() -> None:
    """With windows of two requests and one below half a target per request, this crawl stops after four of five."""
    harvest = crawl(1, 1, 0, 0, 1)
    plateau = Plateau(window=2, slope=0.5, decay=1.0, patience=1)
    stop = early_stop(harvest, plateau)
    assert (stop.requests, stop.saved, stop.lost, stop.share) == (4, 20, pytest.approx(100 / 3), 0.5)


def test_early_stop_starts_anew_and_leaves_the_plateau_alone() -> None:
    """A plateau that has reached its end is as good as a new one, and stays as it was."""
    plateau = Plateau(window=2, slope=0.5, decay=1.0, patience=1)
    assert plateau.reached(2, 0)
    before = plateau.state()
    assert early_stop(crawl(1, 1, 0, 0, 1), plateau).requests == 4
    assert plateau.state() == before


def test_a_plateau_that_is_never_reached_saves_nothing() -> None:
    """With the windows of a large crawl a small one runs to its end."""
    assert early_stop(PARTIAL, Plateau()) == (5, 0.0, 0.0, 0.75)
    assert early_stop(crawl(), Plateau()) == (0, 0.0, 0.0, 0.0)


# The first requests, and stages


def test_found_after_some_requests() -> None:
    """It is the worth found by then; a crawl that ended earlier has what it found in all."""
    assert [found_after(PARTIAL, requests) for requests in (0, 1, 2, 3, 5, 6, 1000)] == [0, 0, 1, 2, 3, 3, 3]
    with pytest.raises(ConfigError, match="the number of requests is -1; give one from 0"):
        found_after(PARTIAL, -1)


def test_stages_of_a_large_site() -> None:
    """The tenth find, half and 90 % of 40 targets end the stages; one that was not completed is infinite."""
    rewards = [0.0] * 5 + [1.0] * 10 + [0.0] * 3 + [1.0] * 10 + [0.0, 1.0] * 16
    assert stages(crawl(*rewards, requests=80, worth=40)) == (15, 13, 32)
    assert stages(crawl(*rewards[:30], requests=80, worth=40)) == (15, 13, math.inf)
    assert stages(crawl(*rewards[:20], requests=80, worth=40)) == (15, math.inf, math.inf)


def test_stages_of_a_small_site_end_at_half() -> None:
    """With fewer than twenty targets the first stage ends at half of them; the stages add up to 90 %."""
    harvest = crawl(0, 1, 1, 0, 1, 1)
    assert stages(harvest) == (3, 0, 3)
    assert sum(stages(harvest)) == requests_until(harvest, 0.9) * harvest.exhaustive.requests / 100
    assert stages(crawl(0, 0, worth=0)) == (0, 0, 0)


# All of them


def test_summary_has_every_metric() -> None:
    """It has a number for each metric, under the same keys in the same order."""
    found = summary(PARTIAL)
    assert list(found) == list(METRICS)
    assert all(type(value) is float for value in found.values())
    assert found == {
        "requests_50": 30, "requests_75": 50, "requests_90": math.inf, "requests_99": math.inf,
        "found_at_100": 3, "found_at_300": 3, "found_at_1000": 3, "early_requests": 3, "middle_requests": 0,
        "late_requests": math.inf, "waste_90": math.inf,
        "overhead_90": math.inf, "area": 23 / 44, "regret": 11 / 4, "harvest_rate": 0.75, "relevant_hosts": 2,
        "stop_saved": 0.0, "stop_lost": 0.0,
        "found": 3, "found_share": 0.75, "requests": 5, "bytes": 320, "missed": 1, "coverage": 0.75, "seconds": 10,
    }  # fmt: skip


def test_metrics_can_be_shown() -> None:
    """Each has a label, a unit, a direction and one sentence."""
    for metric in METRICS.values():
        assert metric.label
        assert metric.unit
        assert metric.better in ("less", "more")
        assert metric.description.endswith(".")
        assert ". " not in metric.description
    assert METRICS["requests_90"].label == "Requests until 90 %"
    assert len({metric.label for metric in METRICS.values()}) == len(METRICS)


# Two policies


def test_paired_is_the_paired_t_test() -> None:
    """Differences 2, 3, 1 and 4 have the mean 2.5 and the sd 1.29; the p-value is that of scipy."""
    a, b = [5.0, 7.0, 3.0, 9.0], [3.0, 4.0, 2.0, 5.0]
    found = paired(a, b)
    assert found.difference == 2.5
    assert found.sd == pytest.approx(math.sqrt(5 / 3))
    assert found.n == 4
    assert found.p == pytest.approx(ttest_rel(a, b).pvalue)
    assert found.p == pytest.approx(paired(b, a).p)


def test_paired_counts_what_was_never_reached() -> None:
    """Pairs with an infinite number are excluded from the mean, and counted by policy."""
    inf = math.inf
    found = paired([1.0, inf, inf, 4.0, 5.0, inf], [2.0, 1.0, inf, inf, 7.0, 3.0])
    assert (found.difference, found.n, found.only_a, found.only_b, found.neither) == (-1.5, 2, 2, 1, 1)


def test_paired_is_not_misled_by_rounding() -> None:
    """If all differences are equal there is no deviation, not even in the sixteenth digit."""
    for a, b in np.random.default_rng(0).random((200, 2)).tolist():
        for n in (3, 5, 6, 7):
            found = paired([a] * n, [b] * n)
            assert (found.difference, found.sd, found.p) == (a - b, 0, 0)


def test_paired_with_too_little_to_say() -> None:
    """Without two pairs there is no p-value, equal differences leave no doubt, and lists must be as long."""
    assert math.isnan(paired([], []).difference)
    one = paired([2.0], [1.0])
    assert (one.difference, one.n) == (1.0, 1)
    assert math.isnan(one.sd)
    assert math.isnan(one.p)
    assert paired([1.0, 2.0], [1.0, 2.0]).p == 1
    assert paired([2.0, 3.0], [1.0, 2.0]).p == 0
    with pytest.raises(ConfigError, match="1 and 2 values"):
        paired([1.0], [1.0, 2.0])
