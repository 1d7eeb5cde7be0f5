"""When pages are visited again: what a visit is worth, the threshold that uses a budget up, and sums that never drift."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocation import best_freshness, kept, pages_of, visits_of
from allocation_rules import Posterior, RoundRobin
from scrapy_focus.learn.allocation import THRESHOLDS, Plan
from scrapy_focus.learn.changes import DAY, RATES, Changes, memo_of, record_of
from tests.examples import n_examples


def page_of(changes: Changes, *, every: float = 1.0, changed: float = 0.5, weight: float = 1.0, n: int = 20) -> np.void:
    """Return the record of a page that was visited every so many days, and was another one at this share of visits."""
    record = changes.new(0.0, weight=weight)
    for visit in range(1, n + 1):
        changes.visited(record, visit * every * DAY, int(visit * changed) > int((visit - 1) * changed))
    return record


def value_of(plan: Plan, record: np.void, seconds: float) -> float:
    """Return what a visit of one page is worth."""
    values, _ = plan.values(np.array([record]), np.array([seconds]))
    return float(values[0])


def planned(plan: Plan, n: int = 200, seed: int = 1) -> list[np.void]:
    """Return n pages of all kinds, and plan for them."""
    rng, records = np.random.default_rng(seed), []
    for number in range(n):
        record = plan.changes.new(0.0, weight=n / (number + 1), arm=number % 4)
        for visit in range(1, int(rng.integers(2, 9))):
            plan.changes.visited(record, visit * DAY * rng.exponential(3), bool(rng.random() < 0.4), rng.poisson(0.3))
        plan.add(record)
        records.append(record)
    return records


def test_what_a_visit_is_worth_by_hand() -> None:
    """The formula, with the standard library alone, over the 16 rates of a page without data."""
    changes = Changes()
    plan = Plan(changes, worth=3.0, age=0.05)
    record, t = changes.new(0.0, weight=2.5), 0.7 * DAY
    births = (0.5 / 15 + 0.02 * 0.5 / 0.25) / 1.02 / DAY
    fresh = age = 0.0
    for rate in RATES.tolist():
        seconds = (1 - math.exp(-rate * t) * (1 + rate * t)) / rate
        fresh += seconds / 16
        age += (t**2 / 2 - seconds / rate) / 16
    by_hand = 2.5 / 2 * (fresh + math.sqrt(fresh**2 + 4 * 0.05 * age)) + 3.0 * births * t**2 / 2
    values, found = plan.values(np.array([record]), np.array([t]))
    assert values == pytest.approx([by_hand], rel=0.001)
    changed = sum(1 - math.exp(-rate * t) for rate in RATES.tolist()) / 16
    assert found == pytest.approx([2.5 * changed + 3.0 * births * t], rel=0.001)
    assert plan.interval(record, by_hand) == pytest.approx(t, rel=0.005)


def test_two_pages_that_are_alike_share_the_visits() -> None:
    """With two visits a day, each is visited once a day; the threshold is what a visit after a day is worth."""
    changes = Changes()
    plan = Plan(changes)
    record = page_of(changes)
    for each in (record, record_of(memo_of(record))):
        plan.add(each)
    threshold = plan.threshold(2 / DAY)
    assert plan.interval(record, threshold) == pytest.approx(DAY, rel=0.01)
    assert threshold == pytest.approx(value_of(plan, record, DAY), rel=0.02)


@pytest.mark.parametrize("per_day", [3, 30, 300, 3000])
def test_the_budget_is_used_up(per_day: float) -> None:
    """All pages together take as many visits as there are, within 2 %."""
    plan = Plan(Changes())
    records = planned(plan)
    threshold = plan.threshold(per_day / DAY)
    taken = sum(DAY / plan.interval(record, threshold) for record in records)
    assert taken == pytest.approx(per_day, rel=0.02)
    assert plan.visits(threshold) * DAY == pytest.approx(per_day, rel=1e-6)


def test_more_than_enough_and_too_little() -> None:
    """Then all pages have the shortest interval, or the longest one."""
    plan = Plan(Changes(), shortest=3600, longest=10 * DAY)
    records = planned(plan, 20)
    assert {plan.interval(record, plan.threshold(1e9)) for record in records} == {3600.0}
    assert {plan.interval(record, plan.threshold(1e-12)) for record in records} == {10 * DAY}
    assert Plan(Changes()).threshold(1.0) == pytest.approx(THRESHOLDS[0])


def test_what_changes_too_fast_is_not_given_up() -> None:
    """It is visited less often than what can be kept, but as often as its age asks; without it, as late as may be."""
    changes = Changes(half_life=math.inf)
    quick, middle, slow = (page_of(changes, every=every, changed=0.5, n=200) for every in (0.02, 1.0, 50.0))
    for age, longest in ((0.05, 12 * DAY), (0.0, 90 * DAY)):
        plan = Plan(changes, age=age, worth=0.0)
        threshold = value_of(plan, middle, 2 * DAY)
        waits = [plan.interval(record, threshold) for record in (quick, middle, slow)]
        assert waits[1] == min(waits)
        assert (waits[0] < longest) is bool(age)


def test_births_go_by_the_square_root() -> None:
    """If copies are worth nothing, a page where four times as many links come up is visited twice as often."""
    changes = Changes(half_life=math.inf)
    plan = Plan(changes)
    waits = []
    for births in (10, 40):
        record = changes.new(0.0, weight=0.0)
        for visit in range(1, 1000):
            changes.visited(record, visit * DAY, changed=True, births=births)
        waits.append(plan.interval(record, 1e6))
    assert waits[0] / waits[1] == pytest.approx(2, rel=0.01)


def test_a_page_without_a_copy_is_planned_by_a_short_cut() -> None:
    """It is visited as one whose copy is worth next to nothing."""
    plan = Plan(Changes(), longest=1e8)
    waits = []
    for weight in (0.0, 1e-12):
        record = plan.changes.new(0.0, weight=weight)
        plan.add(record)
        threshold = plan.threshold(1 / DAY)
        waits.append((plan.interval(record, 1e5), threshold, value_of(plan, record, DAY)))
        plan.remove(record)
    assert waits[0] == pytest.approx(waits[1], rel=0.02)


def test_a_page_that_is_worth_nothing_waits_longest() -> None:
    """Neither its copy nor what comes up on it is wanted: there is nothing to divide by."""
    plan = Plan(Changes(), worth=0.0)
    record = plan.changes.new(0.0, weight=0.0)
    plan.add(record)
    assert plan.interval(record, plan.threshold(1 / DAY)) == plan.longest


@settings(deadline=None, max_examples=n_examples(50))
@given(
    st.lists(st.tuples(st.floats(0.0, 1e7), st.booleans()), max_size=12),
    st.floats(0.0, 1e4),
    st.lists(st.floats(0.0, 1e8), min_size=2, max_size=9),
)
def test_it_never_pays_less_to_wait(visits: list[tuple[float, bool]], weight: float, times: list[float]) -> None:
    """What a visit is worth grows with time, from 0, and intervals with the threshold, between the shortest and longest."""
    changes, at = Changes(), 0.0
    record = changes.new(0.0, weight=weight)
    for seconds, changed in visits:
        at += seconds
        changes.visited(record, at, changed)
    plan = Plan(changes, longest=1e6)
    values = [value_of(plan, record, seconds) for seconds in (-5.0, 0.0, *sorted(times))]
    assert values[:2] == [0.0, 0.0]
    assert all(after >= before * (1 - 1e-9) for before, after in pairwise(values))
    waits = [plan.interval(record, threshold) for threshold in THRESHOLDS[::9]]
    assert waits == sorted(waits)
    assert plan.shortest <= waits[0] <= waits[-1] <= plan.longest


@settings(deadline=None, max_examples=n_examples(40))
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["add", "visit", "remove"]), st.floats(0, 1e7)), max_size=50)
)
def test_the_sums_never_drift(steps: list[tuple[int, str, float]]) -> None:
    """After any sequence of updates they are, to the last bit, those of the pages that are planned for."""
    changes, at = Changes(), 0.0
    plan, known = Plan(changes), dict[int, np.void]()
    for number, (page, step, seconds) in enumerate(steps):
        at += seconds
        if number == 25:
            plan, known = pickle.loads(pickle.dumps((plan, known)))
            changes = plan.changes
        if step == "remove" and page in known:
            plan.remove(known.pop(page))
        elif step == "add" and page not in known:
            known[page] = changes.new(at, weight=float(page), arm=page - 1)
            plan.add(known[page])
        elif step == "visit" and page in known:
            before = record_of(memo_of(known[page]))
            known[page]["weight"] = (page + number) % 3
            changes.visited(known[page], at, number % 3 == 0, births=page)
            plan.replace(before, known[page])
    fresh = Plan(changes)
    for record in known.values():
        fresh.add(record)
    assert plan.pages == fresh.pages
    assert [plan.visits(mu) for mu in THRESHOLDS] == [fresh.visits(mu) for mu in THRESHOLDS]
    for record in known.values():
        plan.remove(record)
    assert {plan.visits(mu) for mu in THRESHOLDS} == {Plan(changes).visits(1.0)}


@pytest.mark.parametrize(("shortest", "longest"), [(0, 10), (20, 10), (math.nan, 10), (10, math.inf)])
def test_waits_are_in_order(shortest: float, longest: float) -> None:
    """Anything else is an error that says what was expected."""
    with pytest.raises(ValueError, match="0 < shortest <= longest"):
        Plan(Changes(), shortest=shortest, longest=longest)


@pytest.mark.slow
def test_copies_are_kept_nearly_as_well_as_by_true_rates() -> None:
    """Three quarters of the way from equal intervals to the best there is, and a mean age at most half as long again."""
    ways, ages = [], []
    for seed in range(1, 5):
        pages = pages_of(60, seed, 1.0)
        equal, ours = (kept(pages, visits_of(rule(), pages, 0.3, seed)) for rule in (RoundRobin, Posterior))
        ways.append((ours.freshness - equal.freshness) / (best_freshness(pages, 0.3) - equal.freshness))
        ages.append((equal.age, ours.age))
    assert np.mean(ways) > 0.75
    equal_age, our_age = np.mean(ages, axis=0)
    assert our_age < 1.5 * equal_age


def test_what_a_visit_is_worth_where_no_copy_counts() -> None:
    """As many seconds as targets were unknown together, and as many targets as appeared."""
    changes = Changes()
    record = changes.new(0.0, weight=0.0)
    values, found = Plan(changes).values(np.array([record] * 2), np.array([10.0, DAY]))
    births = changes.births(record)
    assert values == pytest.approx([births * 50, births * DAY**2 / 2])
    assert found == pytest.approx([births * 10, births * DAY])
