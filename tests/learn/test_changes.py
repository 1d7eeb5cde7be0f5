"""How often pages change: what visits show, the prior from all pages, and what cannot be known."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_focus.learn.changes import DAY, RATES, WATCHED, Changes, memo_of, record_of
from tests.examples import n_examples

HALF = 2.0**-11  # of the last place of float16: how well a log likelihood is kept


def visited(changes: Changes, *visits: tuple[float, bool], births: float = 0.0, arm: int = -1) -> np.void:
    """Return the record of a page after visits: days since the one before, and whether it changed."""
    record, at = changes.new(0.0, arm=arm), 0.0
    for days, changed in visits:
        at += days * DAY
        changes.visited(record, at, changed, births)
    return record


def test_the_rates_reach_from_years_to_minutes() -> None:
    """There are 16, of equal steps, and a record of them and all else takes 64 bytes."""
    assert RATES.shape == (16,)
    assert np.allclose(np.diff(np.log(RATES)), np.log(RATES[1] / RATES[0]))
    assert [1 / RATES[0] / DAY, 1 / RATES[-1]] == pytest.approx([3 * 365, 600])
    assert WATCHED.itemsize == 64


def test_three_visits_by_exact_arithmetic() -> None:
    """Changed within a day, not within three, changed within half a day: Bayes' rule, from a prior that says nothing."""
    changes = Changes(half_life=math.inf)
    record = visited(changes, (1, True), (3, False), (0.5, True))
    exact = [
        (1 - (-Decimal(rate) * 86400).exp()) * (-Decimal(rate) * 259200).exp() * (1 - (-Decimal(rate) * 43200).exp())
        for rate in RATES.tolist()
    ]
    known = [float(odds / sum(exact)) for odds in exact]
    assert changes.posterior(record) == pytest.approx(known, rel=100 * HALF, abs=5 * HALF)
    assert changes.rate(record) == pytest.approx(sum(np.multiply(known, RATES)), rel=10 * HALF)
    assert (record["visits"], record["changes"], record["at"]) == (4, 2, 4.5 * DAY)


def test_births_by_hand() -> None:
    """Of a page nothing is known: half a link in half a month. One that shows three in two days is a hub or is none."""
    changes = Changes(half_life=math.inf)
    plain, hub = 0.5 / 15, 0.5 / 0.25
    share = 0.02 / 1.02
    assert changes.births(changes.new(0.0)) * DAY == pytest.approx(share * hub + (1 - share) * plain)
    weights = [0.98039 * (15 / 17) ** 0.5 / 17**3, 0.01961 * (0.25 / 2.25) ** 0.5 / 2.25**3]
    by_hand = np.average([3.5 / 17, 3.5 / 2.25], weights=weights)
    record = visited(changes, (2, True), births=3)
    assert changes.births(record) * DAY == pytest.approx(by_hand, rel=1e-3)
    assert changes.all_births(np.array([record] * 2)) == pytest.approx(changes.births(record))


def test_births_of_many_pages_are_those_of_each() -> None:
    """Of pages that are read by one prior, not the first, and by several; found in arms that have a prior or none."""
    changes = Changes()
    records = []
    for arm in (-1, 0, 3, 3, 900):
        record = changes.new(0.0, arm=arm)
        for day in range(1, 13):
            changes.visited(record, day * DAY, changed=True, births=arm / 2 + 1)
        records.append(record)
    late = changes.new(0.0, arm=1 << 20)
    assert late["prior"] > 0
    for some in ([late], [late, late], records, [*records, late]):
        alone = [changes.births(record) for record in some]
        assert changes.all_births(np.array(some)) == pytest.approx(alone)


def test_what_is_old_counts_less() -> None:
    """After its half-life a visit counts half, except for the last twenty, none of which counts less than half."""
    changes = Changes(half_life=DAY)
    quick, slow = changes.new(0.0), changes.new(0.0)
    for record, hours, n in ((quick, 1.0, 24), (slow, 1000.0, 20)):
        changes.visited(record, hours * 3600, changed=True, births=8)
        for number in range(2, n + 2):
            changes.visited(record, number * hours * 3600, changed=False)
    assert quick["births"] == pytest.approx(4)
    assert slow["births"] == pytest.approx(4)


def test_a_page_that_becomes_quick_is_followed() -> None:
    """Unchanged through a hundred days and then changed each day: with a half-life it is known after a week."""
    for half_life, least in ((5 * DAY, 0.2), (math.inf, 0.0)):
        changes = Changes(half_life=half_life)
        record = visited(changes, *[(1.0, False)] * 100, *[(1.0, True)] * 7)
        assert (changes.rate(record) * DAY > 0.2) is bool(least)


def test_all_pages_tell_what_a_new_one_is_like() -> None:
    """Each counts once: a half is quick and visited forty times, a half is slow and visited three times."""
    changes = Changes(half_life=math.inf)
    before = changes.new(0.0)
    told = changes.posterior(before)
    for _ in range(60):
        visited(changes, *[(0.1, True)] * 40)
        visited(changes, *[(200.0, False)] * 3)
    assert changes.posterior(before).tolist() == told.tolist()
    known = changes.posterior(changes.new(0.0))
    per_day = RATES * DAY
    assert known[per_day < 0.01].sum() == pytest.approx(0.5, abs=0.08)
    assert known[per_day > 1].sum() == pytest.approx(0.5, abs=0.08)
    changes.visited(before, DAY, changed=False)
    once = known * np.exp(-RATES * DAY)
    assert changes.posterior(before) == pytest.approx(once / once.sum(), abs=0.01)


def test_an_interval_rests_on_all_pages_too() -> None:
    """Of a new page nearly anything is possible, and where all others are slow, it is slow."""
    changes = Changes(half_life=math.inf)
    wide = changes.interval(changes.new(0.0))
    for _ in range(100):
        visited(changes, *[(200.0, False)] * 3)
    _, high = changes.interval(changes.new(0.0))
    assert wide[1] / wide[0] > 10_000
    assert high < 0.1 / DAY < wide[1]


def test_pages_of_an_arm_have_births_in_common() -> None:
    """A page that was never visited again has those of its arm, and of all pages where nothing is known of the arm."""
    changes = Changes()
    for _ in range(20):
        visited(changes, (1, True), births=10, arm=3)
        visited(changes, (1, False), arm=7)
    hub, leaf, other, none = (changes.births(changes.new(0.0, arm=arm)) * DAY for arm in (3, 7, 900, -1))
    assert hub == pytest.approx(10, rel=0.05)
    assert leaf < 0.1
    assert other == none == pytest.approx(5, rel=0.1)


def test_arms_beyond_thousands_share_a_prior() -> None:
    """What is stored stays small, however many arms there are."""
    changes = Changes()
    for arm in range(0, 2_000_000_000, 50_000_000):
        visited(changes, (1, True), births=1, arm=arm)
    assert changes.births(changes.new(0.0, arm=50_000_000)) == changes.births(changes.new(0.0))
    assert len(pickle.dumps(changes)) < 20_000


def test_clocks_that_do_not_advance_tell_nothing() -> None:
    """Such visits are counted; the record of a failed page is unchanged."""
    changes = Changes()
    record = visited(changes, (1, True), births=2)
    for at in (DAY, 0.5 * DAY, -DAY, DAY + 1e-9):
        before = record_of(memo_of(record))
        changes.visited(record, at, changed=True, births=1)
        assert (record["visits"], record["changes"]) == (before["visits"] + 1, before["changes"] + 1)
        assert [record[name].tolist() for name in ("log", "at", "births", "seen")] == [
            before[name].tolist() for name in ("log", "at", "births", "seen")
        ]
    before = record_of(memo_of(record))
    changes.visited(record, 5 * DAY, changed=None, births=9)
    assert record == before


def test_a_record_is_the_memo_of_a_page() -> None:
    """64 bytes, which are read back as they were."""
    record = visited(Changes(), (1, True), (2, False), arm=5)
    record["misses"] = 2
    memo = memo_of(record)
    assert (memo.dtype, memo.shape) == (np.uint8, (64,))
    assert record_of(memo) == record
    assert memo_of(record_of(memo)).tobytes() == memo.tobytes()


@pytest.mark.parametrize("half_life", [0, -1.0, math.nan])
def test_a_half_life_is_above_zero(half_life: float) -> None:
    """Anything else is an error that says what to do."""
    with pytest.raises(ValueError, match=r"use math\.inf for none"):
        Changes(half_life=half_life)


def test_counts_stop_where_they_are_full() -> None:
    """After 65,535 visits a page has as many, and is still learned of."""
    changes = Changes()
    record = visited(changes, (1, True))
    record["visits"], record["changes"] = 65535, 65535
    changes.visited(record, 3 * DAY, changed=True)
    assert (record["visits"], record["changes"], record["at"]) == (65535, 65535, 3 * DAY)


def test_nine_of_ten_intervals_hold_the_truth() -> None:
    """After 3, 10 and 30 visits of pages whose rates differ by thousands."""
    rng, changes = np.random.default_rng(2), Changes(half_life=math.inf)
    rates = 0.3 * np.exp(1.6 * rng.standard_normal(300)) / DAY
    records = [changes.new(0.0) for _ in rates]
    for visit in range(1, 31):
        held = []
        for record, rate in zip(records, rates, strict=True):
            gone = DAY * rng.exponential(3)
            changes.visited(record, float(record["at"]) + gone, bool(rng.random() < -math.expm1(-rate * gone)))
            if visit in (3, 10, 30):
                low, high = changes.interval(record, 0.90)
                held.append(low <= rate <= high)
        assert not held or 0.85 <= np.mean(held) <= 0.96
    low, high = changes.interval(records[0], 0.5)
    assert changes.interval(records[0], 0.9)[0] < low < high < changes.interval(records[0], 0.9)[1]


VISITS = st.tuples(
    st.integers(0, 4), st.floats(-1e5, 1e8), st.sampled_from([True, False, None]), st.sampled_from([0.0, 0.37, 5.0])
)


@settings(deadline=None, max_examples=n_examples(60))
@given(st.lists(VISITS, max_size=60))
def test_whatever_comes_the_sums_are_those_of_the_pages(visits: list[tuple[int, float, bool | None, float]]) -> None:
    """To the last bit; every posterior adds up to 1, and a kill between any two visits changes nothing."""
    changes, at = Changes(), 0.0
    records = [changes.new(0.0, arm=number - 1) for number in range(5)]
    for number, (page, seconds, changed, births) in enumerate(visits):
        if number == len(visits) // 2:
            changes, records = pickle.loads(pickle.dumps((changes, records)))
        at += seconds
        changes.visited(records[page], at, changed, births)
    for record in records:
        odds = changes.posterior(record)
        assert odds.sum() == pytest.approx(1)
        assert record["log"].max() == 0
        low, high = changes.interval(record)
        assert RATES[0] * 0.999 <= low < high <= RATES[-1] * 1.001
        assert changes.births(record) > 0
    again = Changes()
    again._priors, again._means = changes._priors, changes._means
    for record in records:
        again._count(record, 1)
    assert again._shares.tolist() == changes._shares.tolist()
    for mine, theirs in ((again._births, changes._births), (again._seen, changes._seen)):
        assert mine[-1] == theirs[-1]
        assert sorted(filter(None, mine[:-1].tolist())) == sorted(filter(None, theirs[:-1].tolist()))


def test_a_kill_changes_nothing() -> None:
    """Pickled after half of the visits, and without: the same bits at the end."""
    ends = []
    for killed in (False, True):
        rng, changes = np.random.default_rng(3), Changes()
        memos = [memo_of(changes.new(0.0, arm=page % 3)) for page in range(20)]
        for visit in range(400):
            if killed and visit == 200:
                changes, memos = pickle.loads(pickle.dumps((changes, memos)))
            page = int(rng.integers(20))
            record = record_of(memos[page])
            changes.visited(record, visit * 3600.0, bool(rng.random() < 0.4), float(rng.poisson(0.3)))
            memos[page] = memo_of(record)
        ends.append((b"".join(memo.tobytes() for memo in memos), changes.posterior(changes.new(0.0)).tobytes()))
    assert ends[0] == ends[1]


def test_what_a_page_says_of_itself_is_half_a_visit() -> None:
    """Two pages that say so for a day are known as one that was visited after a day, and not counted among all."""
    changes = Changes(half_life=math.inf)
    said, seen = changes.new(0.0), changes.new(0.0)
    changes.expect(said, DAY)
    changes.expect(said, DAY)
    prior = changes.posterior(said)
    changes.visited(seen, DAY, changed=False)
    assert prior == pytest.approx(changes.posterior(seen), rel=0.01)
    assert (said["visits"], seen["visits"]) == (1, 2)
    changes.expect(said, 1e12)
    assert changes.rate(said) * DAY < 0.01
