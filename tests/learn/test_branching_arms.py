"""A branching bandit against numbers that were computed by hand: what an arm earns, costs, reveals, and is worth."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import ConfigError
from scrapy_focus.policies.branching import arms as branching
from scrapy_focus.policies.branching.arms import PAGES, TARGETS, BranchingArms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

FILES, DATASETS, LISTS, NEWS = range(4)
ENDLESS, NOTHING_BEFORE = 1e9, 1e-9  # no decay; and no average of the kind that counts


def pull(arms: BranchingArms, arm: int, times: int, reward: float = 0.0, cost: float = 1.0, **revealed: float) -> None:
    """Pull an arm with the same result; what is revealed by number, with an underscore in front."""
    for _ in range(times):
        arms.earn(arm, reward, cost, {int(name[1:]): count for name, count in revealed.items()})


def portal(news: float = 0.0, *, file_cost: float = 1.0, **params: Any) -> BranchingArms:
    """Return a portal that is known for certain: dataset pages have a file, lists ten dataset pages, news earn something."""
    arms = BranchingArms(**{"window": ENDLESS, "shrink": NOTHING_BEFORE, "noise": 0.0, "discount": 1.0, **params})
    for kind in (TARGETS, PAGES, PAGES, PAGES):
        arms.new(kind)
    pull(arms, FILES, 20, reward=1.0, cost=file_cost)
    pull(arms, DATASETS, 20, _0=1)
    pull(arms, LISTS, 20, _1=10)
    pull(arms, NEWS, 20, reward=news)
    return arms


def awake(*among: int, n: int = 4) -> NDArray[np.bool_]:
    """Return which arms have something to take."""
    mask = np.zeros(n, np.bool_)
    mask[[*among]] = True
    return mask


def best(arms: BranchingArms, *among: int) -> int:
    """Return the best arm among some, after planning for them."""
    arms.plan(awake(*among))
    indices = arms.worth(None).indices
    return max(among, key=lambda arm: float(indices[arm]))


def test_hits_are_counted_several_steps_ahead() -> None:
    """A file is 1, a page of a data set has one file, a list has ten of these, each with one more pull without anything."""
    arms = portal()
    file, share = 20 / 21, 20 / 21
    assert arms.hits_ahead(0) == pytest.approx([file, 0, 0, 0])
    assert arms.hits_ahead(1) == pytest.approx([file, share * file, 0, 0])
    assert arms.hits_ahead(2) == pytest.approx([file, share * file, 10 * share * share * file, 0])


def test_much_is_expected_of_a_callback_that_read_nothing_yet() -> None:
    """0.98 before it read anything, (0.245 + hits) / (0.25 + pulls) after that, for all arms that it reads."""
    arms = BranchingArms(noise=0.0)
    usual, named, named_too = arms.new(PAGES), arms.new(PAGES, "parse_book"), arms.new(PAGES, "parse_book")
    assert arms.worth(None).own[[named, named_too]] == pytest.approx([0.98, 0.98])
    assert arms.worth(None).own[usual] == pytest.approx(0.05)
    pull(arms, named, 1)
    assert arms.worth(None).own[named_too] == pytest.approx(0.245 / 1.25)
    pull(arms, named, 3, reward=1.0)
    assert arms.worth(None).own[named_too] == pytest.approx(3.245 / 4.25)


def test_what_named_callbacks_find_is_not_expected_of_the_usual_one() -> None:
    """Pages of items do not speak for listings, which the usual callback reads."""
    arms = BranchingArms(noise=0.0)
    listed, items = arms.new(PAGES), arms.new(PAGES, "parse_book")
    pull(arms, items, 9, reward=1.0)
    assert arms.worth(None).own[listed] == pytest.approx(0.05)


def test_what_is_drawn_of_pages_to_come_does_not_go_before_what_earns() -> None:
    """With named callbacks, what a page may reveal is never taken for more than is expected; without, it is."""
    above = []
    for name in ("", "parse_book"):
        arms = BranchingArms()
        lists, items = arms.new(PAGES), arms.new(PAGES, name)
        for _ in range(3):
            arms.earn(lists, 0.0, 1.0, {items: 10})
            arms.earn(items, 1.0, 1.0, {})
        arms.plan(np.array([True, False]))  # only lists are queued
        expected, rng = arms.worth(None).later[lists], np.random.default_rng(0)
        assert expected > 0.5
        above.append(any(arms.worth(rng).later[lists] > expected + 1e-9 for _ in range(50)))
    assert above == [True, False]


def test_links_of_the_best_arm_are_worth_nothing_beyond_their_price() -> None:
    """With named callbacks: pages that reveal hundreds of the best links are not valued above these."""
    later = []
    for name in ("", "parse_book"):
        arms = BranchingArms(noise=0.0)
        lists, items = arms.new(PAGES), arms.new(PAGES, name)
        for _ in range(3):
            arms.earn(lists, 0.0, 1.0, {items: 400, lists: 20})
            arms.earn(items, 1.0, 1.0, {})
        arms.plan(np.array([True, True]))
        later.append(float(arms.worth(None).later[lists]))
    assert later[0] > 1
    assert later[1] == 0


def test_an_arm_is_worth_its_mean_and_a_little_of_its_kind() -> None:
    """Rewards 2, 0, 0 and 0 in four pulls: chance (1 + s) / 5, where s is (1 + first) / 5 of the kind, and so on."""
    arms = BranchingArms(noise=0.0)
    arms.new(PAGES)
    pull(arms, 0, 1, reward=2.0, cost=3.0)
    pull(arms, 0, 3, cost=1.0)
    share = (1 + branching.FIRST_HITS[PAGES]) / (4 + 1)
    chance = (1 + share) / (4 + 1)
    each = (2 + share * (2 + 1) / (1 + 1)) / (1 + share)
    worth = arms.worth(None)
    assert worth.own.tolist() == pytest.approx([chance * each])
    assert worth.costs.tolist() == pytest.approx([(6 + 7 / 5) / 5])
    assert worth.later.tolist() == [0.0], "nothing was revealed"
    assert worth.indices.tolist() == pytest.approx([chance * each / (6 + 7 / 5) * 5])


def test_an_arm_that_was_never_pulled_is_like_its_kind() -> None:
    """Its chance, its reward and its cost are those of all pulls of pages; of predicted targets, that they are right."""
    arms = BranchingArms(noise=0.0)
    for kind in (PAGES, PAGES, TARGETS, TARGETS):
        arms.new(kind)
    pull(arms, 0, 10, reward=3.0, cost=2.0)
    pull(arms, 0, 30, cost=2.0)
    pull(arms, 2, 30)
    worth = arms.worth(None)
    assert worth.own[1] == pytest.approx(3 * 10 / 40, rel=0.1)
    assert worth.costs[1] == pytest.approx(2, rel=0.1)
    assert worth.own[3] == pytest.approx(branching.FIRST_HITS[TARGETS], rel=0.05), "though another arm was wrong"
    assert worth.own[2] < 0.05


def test_what_a_pull_reveals_is_counted() -> None:
    """A record says how many pulls there were, what they earned, and how many links of predicted targets they revealed."""
    arms = portal(news=0.5)
    assert arms.record(DATASETS) == (20, 0, 20)
    assert arms.record(LISTS) == (20, 0, 0), "dataset pages are no targets"
    assert arms.record(NEWS) == (20, 10, 0)
    assert arms.pulls.tolist() == [20] * 4
    assert arms.kinds.tolist() == [TARGETS, PAGES, PAGES, PAGES]


def test_without_a_horizon_only_targets_count() -> None:
    """With horizon 0, a dataset page is worth its file, whatever that costs, and a list of dataset pages is worth nothing."""
    arms = portal(news=0.6, horizon=0, file_cost=50.0)
    assert best(arms, DATASETS, LISTS, NEWS) == DATASETS
    assert arms.worth(None).indices == pytest.approx([0.02, 1.0, 0.0, 0.6], abs=1e-6)
    assert best(arms, LISTS, NEWS) == NEWS


def test_with_a_horizon_what_is_revealed_has_its_price() -> None:
    """With horizon 1, file and dataset page take two requests, half a target each, and news with 0.6 go before.

    With news of 0.4, dataset pages do. A list is still worth nothing.
    """
    arms = portal(news=0.6, horizon=1)
    assert best(arms, DATASETS, LISTS, NEWS) == NEWS
    assert arms.index == pytest.approx(0.6, rel=0.05)
    assert arms.worth(None).later[DATASETS] == pytest.approx(1 - arms.index)
    arms = portal(news=0.4, horizon=1)
    assert best(arms, DATASETS, LISTS, NEWS) == DATASETS
    assert arms.index == pytest.approx(1 / 2, rel=0.05)
    assert arms.worth(None).later[LISTS] == pytest.approx(0, abs=1e-6)
    assert best(arms, LISTS, NEWS) == NEWS


def test_with_a_long_horizon_lists_are_worth_their_dataset_pages() -> None:
    """With horizon 4, a list, ten dataset pages and ten files are ten targets of 21 requests: news with 0.4 come behind.

    While dataset pages are queued, these go first: 1 of 2 is better than 10 of 21.
    """
    arms = portal(news=0.4, horizon=4)
    assert best(arms, LISTS, NEWS) == LISTS
    assert arms.index == pytest.approx(10 / 21, rel=0.05)
    assert best(arms, DATASETS, LISTS, NEWS) == DATASETS
    assert best(portal(news=0.52, horizon=4), DATASETS, LISTS, NEWS) == NEWS


def test_what_comes_later_counts_less() -> None:
    """With a discount of 0.5, a dataset page has the index of i = 0.5 (1 - i): a third."""
    arms = portal(horizon=1, discount=0.5)
    arms.plan(awake(DATASETS))
    assert arms.index == pytest.approx(1 / 3, rel=0.05)


def test_what_lists_reveal_of_themselves_does_not_grow_without_end() -> None:
    """Pages that reveal two pages like themselves, and nothing else, are worth nothing."""
    arms = portal(horizon=4)
    pull(arms, NEWS, 20, _3=2)
    arms.plan(awake(NEWS, LISTS))
    worth = arms.worth(None)
    assert worth.indices[NEWS] == pytest.approx(0, abs=1e-6)
    assert np.isfinite(worth.indices).all()


@pytest.mark.parametrize("horizon", [0, 4])
def test_a_dear_arm_sinks(horizon: int) -> None:
    """Of two arms that earn the same, the one that costs ten times as much has a tenth of the index."""
    arms = BranchingArms(window=ENDLESS, shrink=NOTHING_BEFORE, noise=0.0, horizon=horizon)
    for kind in (PAGES, PAGES):
        arms.new(kind)
    pull(arms, 0, 20, reward=0.5, cost=1.0)
    pull(arms, 1, 20, reward=0.5, cost=10.0)
    arms.plan(awake(0, 1, n=2))
    assert arms.worth(None).indices == pytest.approx([0.5, 0.05])


def test_pages_that_reveal_dear_files_sink() -> None:
    """A file that costs ten makes its dataset page one of 11, and news with 0.2 go first; without a horizon they do not."""
    dear = portal(news=0.2, file_cost=10.0)
    assert best(dear, DATASETS, NEWS) == NEWS
    assert best(dear, DATASETS) == DATASETS
    assert dear.index == pytest.approx(1 / 11, rel=0.05)
    assert best(portal(news=0.2, file_cost=10.0, horizon=0), DATASETS, NEWS) == DATASETS


def test_the_price_is_that_of_the_best_that_is_awake() -> None:
    """If only poor news is left, what lists reveal is worth more than while dataset pages are queued."""
    arms = portal(news=0.1)
    arms.plan(awake(DATASETS, LISTS, NEWS))
    before = arms.worth(None).later[LISTS]
    arms.plan(awake(NEWS))
    assert arms.index == pytest.approx(0.1, rel=0.05)
    assert arms.worth(None).later[LISTS] == pytest.approx(10 * (1 - 2 * arms.index), rel=0.01)
    assert arms.worth(None).later[LISTS] > 10 * max(before, 0.1)


def test_only_targets_may_be_awake() -> None:
    """If no page is queued, the price is that of the files."""
    arms = portal()
    assert best(arms, FILES) == FILES
    assert arms.index == pytest.approx(1.0, rel=0.05)


def test_a_site_on_which_nothing_was_found_can_be_planned() -> None:
    """Where nothing earns or reveals anything, every index is a number, and the price is above 0."""
    arms = BranchingArms()
    for kind in (PAGES, TARGETS):
        arms.new(kind)
    pull(arms, 0, 500)
    pull(arms, 1, 500)
    for among in ((0, 1), (0,), (1,)):
        arms.plan(awake(*among, n=2))
        assert np.isfinite(arms.worth(np.random.default_rng(0)).indices).all()
        assert arms.index > 0


def test_pages_that_nobody_knows_are_expected_to_reveal_what_others_do() -> None:
    """Seeds and pages of all arms that revealed files make an arm of pages that was never pulled worth something."""
    arms = BranchingArms(noise=0.0)
    for kind in (TARGETS, PAGES):
        arms.new(kind)
    arms.plan(awake(1, n=2))
    nothing = arms.worth(None).later[1]
    arms.reveal({0: 5.0})
    arms.plan(awake(1, n=2))
    assert nothing == 0
    assert arms.worth(None).later[1] > 0.5
    for _ in range(20):
        arms.reveal({})
    arms.plan(awake(1, n=2))
    assert 0 < arms.worth(None).later[1] < 0.3, "most reveal nothing"


def test_a_record_goes_over_a_window() -> None:
    """With a window of 2 a record is halved before each pull from the fourth on: pulls 1, 2, 3, 2.5, 2.25; revealed too."""
    arms = BranchingArms(window=2.0)
    for kind in (TARGETS, PAGES):
        arms.new(kind)
    seen = []
    for _ in range(5):
        pull(arms, 1, 1, reward=1.0, _0=1)
        seen.append(arms.record(1))
    assert seen == [(n, n, n) for n in (1, 2, 3, 2.5, 2.25)]


def test_what_an_arm_had_to_give_is_forgotten() -> None:
    """After 60 pulls with a reward and 120 without, an arm with a window of 20 is below 0.05, one without at a third."""
    own = []
    for window in (20.0, ENDLESS):
        arms = BranchingArms(window=window, noise=0.0)
        arms.new(PAGES)
        pull(arms, 0, 60, reward=1.0)
        pull(arms, 0, 120)
        own.append(float(arms.worth(None).own[0]))
        assert arms.pulls[0] <= window + 1
    assert own[0] < 0.05
    assert own[1] == pytest.approx(1 / 3, rel=0.05)


def test_without_noise_nothing_is_drawn() -> None:
    """With noise 0, the worth with a generator is that without, and the generator is left alone."""
    arms = portal(news=0.5)
    arms.plan(awake(DATASETS, LISTS, NEWS))
    rng = np.random.default_rng(3)
    before = rng.bit_generator.state
    assert str(arms.worth(rng)) == str(arms.worth(None))
    assert rng.bit_generator.state == before


def drawn(arms: BranchingArms, times: int = 1000) -> NDArray[np.float64]:
    """Return indices that were drawn, shape (times, n_arms)."""
    rng = np.random.default_rng(8)
    return np.array([arms.worth(rng).indices for _ in range(times)])


def test_what_is_drawn_is_right_on_average() -> None:
    """The mean of many draws is what is expected; what was pulled often varies less."""
    arms = portal(news=0.5, noise=1.0, shrink=1.0, discount=0.95)
    pull(arms, NEWS, 200, reward=0.5)
    pull(arms, LISTS, 5, reward=1.0)
    arms.plan(awake(DATASETS, LISTS, NEWS))
    indices, expected = drawn(arms), arms.worth(None).indices
    assert indices.mean(axis=0) == pytest.approx(expected, rel=0.1)
    spread = indices.std(axis=0) / expected
    assert spread[NEWS] < 0.15 < spread[LISTS]


def test_an_arm_that_was_never_pulled_is_tried() -> None:
    """Next to an arm that earns a little and one that earns nothing, it is the best now and then; without noise it is not."""
    arms = BranchingArms()
    for _ in range(3):
        arms.new(PAGES)
    pull(arms, 0, 10, reward=1.0)
    pull(arms, 0, 90)
    pull(arms, 1, 100)
    arms.plan(awake(0, 1, 2, n=3))
    chosen = np.bincount(drawn(arms).argmax(axis=1), minlength=3) / 1000
    assert 0.02 < chosen[2] < 0.5
    assert chosen[1] < 0.02
    assert arms.worth(None).indices.argmax() == 0


@pytest.mark.parametrize(("less", "more"), [(0.25, 1.0), (1.0, 4.0)])
def test_noise_has_a_spread(less: float, more: float) -> None:
    """With four times the noise, draws vary about twice as much."""
    spreads = []
    for noise in (less, more):
        arms = portal(news=0.5, noise=noise, shrink=1.0)
        pull(arms, NEWS, 20)
        arms.plan(awake(DATASETS, NEWS))
        spreads.append(drawn(arms).std(axis=0)[[DATASETS, NEWS]])
    assert spreads[1] / spreads[0] == pytest.approx([2.0, 2.0], rel=0.15)


def test_pulls_in_flight_narrow_the_noise() -> None:
    """With sixty pulls of an arm on their way, there is less to gain by trying it; what is expected of it stays."""
    arms = portal(noise=1.0, shrink=1.0)
    pull(arms, NEWS, 3, reward=1.0)
    arms.plan(awake(DATASETS, NEWS))
    expected, before = arms.worth(None).indices, drawn(arms).std(axis=0)
    arms.flying[[DATASETS, NEWS]] = 63
    after = drawn(arms).std(axis=0)
    assert (after < 0.7 * before)[[DATASETS, NEWS]].all()
    assert after[LISTS] == pytest.approx(before[LISTS], rel=0.4)
    assert np.array_equal(arms.worth(None).indices, expected)


def test_many_arms_are_drawn_in_turn() -> None:
    """Of 600 arms at most 256 are drawn anew at each look, all within three; one that was pulled, at once."""
    arms, rng = BranchingArms(), np.random.default_rng(0)
    for _ in range(600):
        arms.new(PAGES)
    arms.plan(np.ones(600, np.bool_))
    looks = [arms.worth(rng).own]
    for _ in range(6):
        looks.append(arms.worth(rng).own)
        assert 0 < np.count_nonzero(looks[-1] != looks[-2]) <= 256
    assert (np.diff(looks[-4:], axis=0) != 0).any(axis=0).all()
    pulled = int(np.flatnonzero(looks[-1] == looks[-2])[0])
    for arm in (pulled, 599):
        pull(arms, arm, 5, reward=1.0)
        assert arms.worth(rng).own[arm] > 0.2


def test_arms_keep_their_records_when_there_are_many() -> None:
    """Five hundred arms, each made when others have records already, know what they earned and revealed."""
    arms = BranchingArms(window=ENDLESS)
    for i in range(500):
        assert arms.new(i % 2) == i
        pull(arms, i, 1 + i % 3, reward=float(i), **{f"_{i}": 2})
    assert arms.n_arms == 500
    for i in range(500):
        n = 1 + i % 3
        assert arms.record(i) == (n, n * i, 2 * n * (i % 2))


def random_walk(arms: BranchingArms, rng: np.random.Generator, steps: int) -> list[int]:
    """Pull the best arm so many times, planning now and then, and return which; arms are made on the way."""
    chosen = []
    for step in range(steps):
        if step % 7 == 0 or not arms.n_arms:
            arms.new(int(rng.integers(2)))
        if step % 3 == 0:
            arms.plan(np.arange(arms.n_arms) % 5 != step % 5 if arms.n_arms > 1 else awake(0, n=1))
        arm = int(arms.worth(rng).indices.argmax())
        chosen.append(arm)
        arms.flying[arm] = step % 4
        reward = float(rng.random() < 0.1 * (arm % 5))
        revealed = {int(other): 1.0 for other in rng.integers(0, arms.n_arms, 3)}
        arms.earn(arm, reward, 1.0 + float(rng.random()), revealed)
    return chosen


@pytest.mark.parametrize("entries", [1 << 17, 40])
def test_pickled_they_are_the_same(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a copy is made in mid-course, both choose the same and know the same to the bit, past their limit too."""
    monkeypatch.setattr(branching, "_ENTRIES", entries)
    arms = BranchingArms(window=20.0)
    random_walk(arms, np.random.default_rng(1), 300)
    copy: BranchingArms = pickle.loads(pickle.dumps(arms))
    one, two = np.random.default_rng(2), np.random.default_rng(2)
    assert random_walk(arms, one, 300) == random_walk(copy, two, 300)
    assert str(arms.known()) == str(copy.known())
    for mine, other in zip(arms.worth(one), copy.worth(two), strict=True):
        assert np.array_equal(mine, other)


def entries_of(arms: BranchingArms) -> dict[tuple[int, int], float]:
    """Return how many links of each arm the pulls of each arm revealed."""
    known = arms.known()
    return {
        (row, column): count
        for row, column, count in zip(known.rows.tolist(), known.columns.tolist(), known.counts.tolist(), strict=True)
    }


def test_the_largest_counts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is room for ten pairs of arms, the eleventh leaves the five largest, and itself."""
    monkeypatch.setattr(branching, "_ENTRIES", 10)
    arms = BranchingArms()
    for _ in range(12):
        arms.new(PAGES)
    counts = [3, 9, 1, 8, 2, 7, 5, 4, 6, 0.5]
    for i, count in enumerate(counts):
        arms.earn(i, 0.0, 1.0, {i: count})
    assert len(entries_of(arms)) == 10
    arms.earn(10, 0.0, 1.0, {11: 0.1})
    assert entries_of(arms) == {(1, 1): 9, (3, 3): 8, (5, 5): 7, (8, 8): 6, (6, 6): 5, (10, 11): 0.1}
    assert arms.record(2).pulls == 1, "only what it revealed is forgotten"
    arms.earn(1, 0.0, 1.0, {1: 1})
    arms.plan(awake(*range(12), n=12))
    assert entries_of(arms)[1, 1] == 10
    copy: BranchingArms = pickle.loads(pickle.dumps(arms))
    assert entries_of(copy) == entries_of(arms)


def test_of_equal_counts_the_first_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is room for ten pairs and seven have the same count, five stay: those above it, and the first of it."""
    monkeypatch.setattr(branching, "_ENTRIES", 10)
    arms = BranchingArms()
    for _ in range(12):
        arms.new(PAGES)
    for i, count in enumerate([2, 9, 2, 1, 2, 2, 7, 2, 2, 2]):
        arms.earn(i, 0.0, 1.0, {i: count})
    arms.earn(11, 0.0, 1.0, {11: 0.1})
    assert [row for row, _ in entries_of(arms)] == [0, 1, 2, 4, 6, 11]


def test_one_page_may_reveal_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links of a hundred arms on one page leave at most ten pairs, and every number where it belongs."""
    monkeypatch.setattr(branching, "_ENTRIES", 10)
    arms = BranchingArms()
    for _ in range(100):
        arms.new(TARGETS)
    page = arms.new(PAGES)
    revealed = {i: float(i + 1) for i in range(100)}
    arms.earn(page, 0.0, 1.0, revealed)
    found = entries_of(arms)
    assert len(found) <= 10
    assert {row for row, _ in found} == {page}
    assert all(revealed[column] == count for (_, column), count in found.items())


def recalled(arms: BranchingArms, to: Mapping[int, int], *, pulls: float = 5.0, of_kind: float = 20.0) -> BranchingArms:
    """Return arms that start from the statistics of others, at the places ``to``."""
    known = arms.known()
    new = BranchingArms(window=ENDLESS, shrink=NOTHING_BEFORE, noise=0.0, discount=1.0)
    kinds = {to[arm]: int(kind) for arm, kind in enumerate(known.kinds)}
    for arm in range(max(kinds) + 1):
        new.new(kinds[arm])
    new.recall(known, np.array([to[arm] for arm in range(arms.n_arms)]), pulls=pulls, of_kind=of_kind)
    return new


SAME = {arm: arm for arm in range(4)}
BACKWARDS = {arm: 3 - arm for arm in range(4)}


@pytest.mark.parametrize("to", [SAME, BACKWARDS])
def test_what_is_known_is_recalled(to: Mapping[int, int]) -> None:
    """In another order of arms the same indices follow, though each counts for five pulls only."""
    arms = portal(news=0.4)
    new = recalled(arms, to)
    assert new.pulls.tolist() == [5.0] * 4
    for among in ((DATASETS, LISTS, NEWS), (LISTS, NEWS)):
        arms.plan(awake(*among))
        new.plan(awake(*[to[arm] for arm in among]))
        indices = new.worth(None).indices[[to[arm] for arm in range(4)]]
        assert indices == pytest.approx(arms.worth(None).indices, rel=0.01, abs=0.01)
    assert new.record(to[DATASETS]) == pytest.approx((5, 0, 5))


def test_what_is_recalled_fades() -> None:
    """What counted for five pulls is outweighed by twenty others; what was seen twice counts for two."""
    arms = portal(news=1.0)
    new = recalled(arms, SAME)
    assert new.worth(None).own[NEWS] == pytest.approx(1)
    pull(new, NEWS, 20)
    assert new.worth(None).own[NEWS] == pytest.approx(5 / 25)
    few = BranchingArms()
    few.new(PAGES)
    pull(few, 0, 2, reward=1.0)
    assert recalled(few, {0: 0}).pulls.tolist() == [2.0]


def test_averages_of_a_kind_are_recalled() -> None:
    """An arm that neither crawl has pulled is expected to be like the pages of the first; what these revealed too."""
    arms = portal(news=0.6, shrink=1.0)
    new = recalled(arms, SAME)
    for each in (arms, new):
        each.shrink = 1.0
        each.new(PAGES)
        each.plan(awake(4, n=5))
    assert new.worth(None).own[4] == pytest.approx(arms.worth(None).own[4], rel=0.1)
    assert new.worth(None).later[4] == pytest.approx(arms.worth(None).later[4], rel=0.3)
    assert new.worth(None).later[4] > 0.1


def test_arms_that_are_one_now_are_added() -> None:
    """Two arms that the next crawl cannot tell apart make one with the pulls of both."""
    arms = portal(news=0.5)
    new = recalled(arms, {FILES: 0, DATASETS: 1, LISTS: 2, NEWS: 1})
    assert new.pulls.tolist() == [5, 10, 5]
    assert new.worth(None).own[1] == pytest.approx(0.25)
    assert entries_of(new) == pytest.approx({(1, 0): 5, (2, 1): 50})


def test_what_is_known_stays_as_it_was() -> None:
    """What was written down does not change with the arms."""
    arms = portal(news=0.5)
    known = arms.known()
    before = str(known)
    pull(arms, NEWS, 30, reward=1.0, _0=2)
    pull(arms, LISTS, 30, reward=1.0, _1=7)
    assert str(known) == before


@pytest.mark.parametrize(
    "wrong",
    [{"window": 0.5}, {"shrink": 0}, {"horizon": -1}, {"noise": -0.1}, {"discount": 0}, {"discount": 1.1}],
)
def test_parameters_are_checked(wrong: dict[str, Any]) -> None:
    """A value that cannot be used is refused, and the message says what is allowed."""
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))}={next(iter(wrong.values()))}.*{next(iter(wrong))}"):
        BranchingArms(**wrong)


def test_what_pages_reveal_is_worth_at_most_half_of_a_target() -> None:
    """A list that reveals ten pages a pull may look better than a file, but its links have yet to be pulled."""
    arms = portal()
    arms.plan(awake(DATASETS, LISTS))
    worth = arms.worth(None)._replace(later=np.array([0.0, 0.4, 30.0, -0.1]))
    bounded = arms.bounded(worth)
    assert worth.indices[LISTS] > worth.indices[FILES] > bounded.indices[LISTS] > bounded.indices[DATASETS] > 0
    assert bounded.later[LISTS] <= 0.5 * worth.indices[FILES]
    assert bounded.later[[FILES, NEWS]].tolist() == [0.0, -0.1]
    assert (bounded.own == worth.own).all()


def test_without_targets_nothing_bounds_what_pages_reveal() -> None:
    arms = BranchingArms(noise=0.0)
    arms.new(PAGES)
    worth = arms.worth(None)._replace(later=np.array([7.0]))
    assert arms.bounded(worth).later.tolist() == [7.0]
