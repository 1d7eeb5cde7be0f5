"""The early-stopping rule, with averages computed by hand, and the limit on the cost of the next target."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import ConfigError, Plateau
from scrapy_focus.core.stop import CostLimit

if TYPE_CHECKING:
    from scrapy_focus.core.stop import StopRule


@pytest.mark.parametrize(("decay", "averages"), [(0.25, [0.5, 0.4, 0.3]), (0.75, [0.5, 0.2, 0.05])])
def test_slopes_are_averaged_with_exponential_weights(decay: float, averages: list[float]) -> None:
    """Section 4.8: slopes 0.5, 0.1, 0.0, of which the first counts in full; gamma = 0.25 weighs the newest slope, and
    where it weighs the earlier ones, ``decay`` is 0.75.
    """
    plateau, found = Plateau(window=10, slope=0.2, decay=decay, patience=9), []
    for requests, targets in ((10, 5), (20, 6), (30, 6)):
        plateau.reached(requests, targets)
        found.append(plateau.average)
    assert found == pytest.approx(averages)


def test_the_plateau_is_reached_after_so_many_windows_in_a_row() -> None:
    """With weight 1, slopes 0.1, 0.3, 0.1, 0.1 and patience 2: the third is the first of a row, the fourth the last."""
    plateau = Plateau(window=10, slope=0.2, decay=1.0, patience=2)
    assert [plateau.reached(*at) for at in ((10, 1), (20, 4), (30, 5), (40, 6))] == [False, False, False, True]
    assert plateau.reached(41, 6), "it stays reached until the next look"


def test_an_average_at_the_slope_is_good_enough() -> None:
    """Only an average below the slope counts."""
    plateau = Plateau(window=10, slope=0.5, decay=1.0, patience=1)
    assert [plateau.reached(*at) for at in ((10, 5), (20, 9))] == [False, True]


def test_it_may_be_asked_at_any_time() -> None:
    """Questions within a window change nothing; a window that was overrun counts with the requests that it had."""
    plateau = Plateau(window=10, slope=0.2, decay=1.0, patience=1)
    assert [plateau.reached(n, 0) for n in range(10)] == [False] * 10
    assert plateau.average is None
    assert not plateau.reached(20, 10)
    assert plateau.average == 0.5
    assert [plateau.reached(n, 11) for n in (21, 25, 29)] == [False] * 3
    assert plateau.reached(30, 11)
    assert plateau.average == pytest.approx(0.1)


def test_defaults_let_a_crawl_run() -> None:
    """With the defaults a crawl that finds nothing stops after 15 windows of 1000 requests."""
    plateau = Plateau()
    reached = [plateau.reached(n, 0) for n in range(1000, 16_000, 1000)]
    assert reached == [False] * 14 + [True]


@pytest.mark.parametrize("wrong", [{"window": 0}, {"slope": -0.1}, {"decay": 0.0}, {"decay": 1.1}, {"patience": 0}])
def test_parameters_are_checked(wrong: dict[str, Any]) -> None:
    """What makes no sense is refused, and the message shows all four values."""
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))}={next(iter(wrong.values()))}"):
        Plateau(**wrong)


def asked(rule: StopRule, *seen: tuple[int, float, float | None]) -> list[bool]:
    """Ask with requests, targets and cost, and return the answers."""
    return [rule.reached(*each) for each in seen]


def test_a_cost_limit_is_reached_after_so_many_dear_requests() -> None:
    """With patience 3 the third request after one that was not too dear is the last."""
    seen = [(10, 1.0, 40.0), (11, 1.0, 60.0), (12, 1.0, 60.0), (13, 1.0, 60.0), (14, 1.0, 60.0)]
    assert asked(CostLimit(50, patience=3), *seen) == [False, False, False, True, True]


@pytest.mark.parametrize(
    "good",
    [(12, 1.0, 50.0), (12, 1.0, 0.0), (12, 2.0, 60.0), (12, 1.5, 1e9), (12, 1.0, None)],
    ids=["as dear as it may be", "cheap", "a target", "half a target", "not known"],
)
def test_patience_begins_anew(good: tuple[int, float, float | None]) -> None:
    """Any find, even one expected to be expensive, and any cheap or unknown forecast, restarts the count."""
    seen = [(10, 1.0, None), (11, 1.0, 60.0), good, (13, good[1], 60.0), (14, good[1], 60.0), (15, good[1], 60.0)]
    assert asked(CostLimit(50, patience=3), *seen) == [False] * 5 + [True]


def test_a_policy_that_knows_no_cost_is_never_stopped() -> None:
    """Without a number there is nothing to go by."""
    assert asked(CostLimit(1, patience=1), *[(i, 0.0, None) for i in range(100)]) == [False] * 100


def test_a_target_less_is_no_target_more() -> None:
    """A reward below zero begins nothing anew; only what is above all before does."""
    rule = CostLimit(50, patience=4)
    seen = [(1, 5.0, 60.0), (2, 4.0, 60.0), (3, 5.0, 60.0), (4, 4.5, 60.0), (5, 5.0, 60.0)]
    assert asked(rule, *seen) == [False] * 4 + [True]


def test_requests_count_and_not_questions() -> None:
    """It may be asked more often than there are requests, and less often."""
    rule = CostLimit(50, patience=10)
    assert asked(rule, *[(5, 1.0, 60.0)] * 50) == [False] * 50
    assert asked(rule, (14, 1.0, 60.0), (40, 1.0, 60.0)) == [False, True]


def test_a_cost_limit_says_how_near_it_is() -> None:
    """All its patience is left as long as finds come or are cheap; then it shrinks with each request, to nothing."""
    rule, left = CostLimit(50, patience=10, first=10), []
    for requests, targets, cost in [(1, 0.0, 60.0), (5, 0.0, 60.0), (7, 1.0, 60.0), (9, 1.0, 60.0), (30, 1.0, 60.0)]:
        left += [rule.left(requests)]
        rule.reached(requests, targets, cost)
        left += [rule.left(requests)]
    assert left == [10, 10, 6, 6, 4, 10, 8, 8, 0, 0]


@pytest.mark.parametrize(
    ("limit", "patience"), [(0.5, 200), (10, 200), (66, 200), (67, 201), (100.1, 301), (1000, 3000)]
)
def test_patience_is_three_times_the_limit(limit: float, patience: int) -> None:
    """And two hundred requests at least."""
    rule = CostLimit(limit)
    assert rule.patience == patience
    assert not rule.reached(0, 1.0, 2e9)
    assert not rule.reached(patience - 1, 1.0, 2e9)
    assert rule.reached(patience, 1.0, 2e9)


def test_before_the_first_find_patience_is_five_times_as_long() -> None:
    """A file after 493 requests is not missed with a limit of 50; then 200 requests in a row without one are enough."""
    rule = CostLimit(50)
    assert asked(rule, (0, 0.0, 2e9), (200, 0.0, 2e9), (492, 0.0, 2e9)) == [False] * 3
    assert asked(rule, (493, 1.0, 2e9), (692, 1.0, 2e9), (693, 1.0, 2e9)) == [False, False, True]
    nothing = CostLimit(50)
    assert asked(nothing, (0, 0.0, 2e9), (999, 0.0, 2e9), (1000, 0.0, 2e9)) == [False, False, True]


def test_a_cost_limit_says_when_it_gives_up() -> None:
    """Once nothing was found for as long as ends any other crawl; not after a find, nor where links look cheap."""
    rule = CostLimit(50, patience=10, first=30)
    said = []
    for requests, targets, cost in ((1, 0.0, 60.0), (10, 0.0, 60.0), (11, 0.0, 60.0), (12, 0.0, 9.0), (13, 0.0, 60.0)):
        rule.reached(requests, targets, cost)
        said.append(rule.gives_up_at(requests))
    assert said == [None, None, 31, None, None]
    rule.reached(40, 0.0, 60.0)
    assert rule.gives_up_at(40) == 42
    rule.reached(41, 1.0, 60.0)
    assert rule.gives_up_at(60) is None


def test_a_cost_limit_goes_on() -> None:
    """Its state is JSON, and a rule that restores it answers as the first would have."""
    first, second = CostLimit(50, patience=5), CostLimit(50, patience=5)
    asked(first, (10, 3.0, 10.0), (12, 3.0, 60.0), (13, 3.0, 60.0))
    second.restore(json.loads(json.dumps(first.state())))
    for rule in (first, second):
        assert asked(rule, (14, 3.0, 60.0), (15, 3.0, 60.0)) == [False, True]
    assert first.state() == second.state()


def test_rules_say_why() -> None:
    """In a word that becomes Scrapy's finish reason."""
    rules: list[StopRule] = [Plateau(), CostLimit(1)]
    assert [rule.reason for rule in rules] == ["plateau", "cost_limit"]


def test_what_a_plateau_is_asked_the_cost_of_does_not_matter() -> None:
    """It uses the finds so far."""
    with_cost, without = Plateau(window=1, slope=0.5, patience=2), Plateau(window=1, slope=0.5, patience=2)
    for requests in range(5):
        assert with_cost.reached(requests, 0, 1.0) == without.reached(requests, 0)


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, -math.inf])
def test_a_limit_is_a_number_above_0(wrong: float) -> None:
    """Invalid values are refused with the valid ones."""
    with pytest.raises(ConfigError, match="limit is a number above 0"):
        CostLimit(wrong)


def test_patience_is_at_least_one_request() -> None:
    """The message shows all numbers, and so it does for the patience before the first find."""
    with pytest.raises(ConfigError, match=r"CostLimit\(5, patience=0, first=None\)"):
        CostLimit(5, patience=0)
    with pytest.raises(ConfigError, match=r"CostLimit\(5, patience=None, first=0\)"):
        CostLimit(5, first=0)


def test_poor_rewards_are_no_find_for_a_cost_limit() -> None:
    """Where rewards are graded, the patience begins anew when they add up to a find; otherwise with each reward."""
    rewards = [0.5, 0.6, 0.7, 0.8, 1.0, 1.1]
    graded, plain = CostLimit(10, patience=3, first=3, least=0.5), CostLimit(10, patience=3, first=3)
    reached = [graded.reached(n, reward, 99.0) for n, reward in enumerate(rewards)]
    assert reached == [False, False, False, True, False, False]
    assert not any(plain.reached(n, reward, 99.0) for n, reward in enumerate(rewards))
    assert graded.left(6) == 1
