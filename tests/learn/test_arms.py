"""Counts of arms and the AUER score, by hand."""

from __future__ import annotations

import math
import pickle
from itertools import islice

import numpy as np
import pytest

from scrapy_focus.learn.arms import REWARD_COLUMNS, REWARDS, ArmHeaps, ArmStats, auer, reward_tables, rewards_in


def table() -> ArmStats:
    """Return four arms: pulled 3, 1, 0 and 10 times, with rewards 2, 0, 0 and 15."""
    stats = ArmStats()
    for arm, pulls, reward in ((0, 3, 2.0), (1, 1, 0.0), (3, 10, 15.0)):
        for _ in range(pulls):
            stats.pull(arm)
        stats.earn(arm, reward)
    return stats


def test_the_score_is_that_of_the_paper() -> None:
    """With ln(100) = 4.60517 and alpha = 2 sqrt 2, the bonuses are 3.5044, 6.0697, 6069.7 and 1.9194."""
    scores = auer(table(), 100, alpha=2 * math.sqrt(2))
    assert scores[[0, 1, 3]] == pytest.approx([0.66667 + 3.50436, 6.06971, 1.5 + 1.91942], abs=2e-5)
    assert scores[2] == pytest.approx(6069.7, abs=0.1)
    assert np.argmax(scores) == 2, "an arm that was never pulled comes first"


def test_epsilon_and_alpha_count_as_written() -> None:
    """The bonus of 3 pulls with epsilon 1 at ln(t) = 1 is alpha / 2."""
    assert auer(table(), 1, alpha=7.0, epsilon=1.0)[0] == pytest.approx(2 / 3), "ln(1) = 0"
    stats = table()
    bonus = auer(stats, 1000, alpha=4.0, epsilon=1.0)[0] - stats.means[0]
    assert bonus == pytest.approx(4.0 * math.sqrt(math.log(1000)) / 2)


@pytest.mark.parametrize("steps", [0, 1])
def test_before_the_second_step_only_means_count(steps: int) -> None:
    """At t = 0, where ln is not defined, and t = 1, there is no bonus."""
    assert auer(table(), steps, alpha=3.0).tolist() == pytest.approx([2 / 3, 0, 0, 1.5])


def test_means_are_rewards_per_pull() -> None:
    """An arm that was never pulled has the mean 0, also if it earned something."""
    stats = table()
    assert stats.means.tolist() == pytest.approx([2 / 3, 0, 0, 1.5])
    assert stats.pulls.tolist() == [3, 1, 0, 10]
    stats.earn(2, 4.0)
    assert stats.means[2] == 4.0


def test_the_table_of_rewards_is_that_of_the_paper() -> None:
    """Section 4.7 of SB-CLASSIFIER: mean and deviation over the groups with a reward, and the best mean rewards.

    By hand: the means are 12 / 4 = 3, 1, 8 / 1 = 8 and none; (8 + 3 + 1) / 3 = 4 and ((16 + 1 + 9) / 3) ** 0.5 = 2.9439.
    """
    [table] = reward_tables([12.0, 1.0, 0.0, 8.0], [4, 1, 50, 1])
    assert table.rows == [(3, 4.0, 2.9439, 8.0, 3.0, 1.0)]
    assert table.columns == ("groups with a reward", "mean", "deviation", "best", "2nd", "3rd")
    assert rewards_in([table._replace(title="Pages"), table]) == (3, 4.0, 2.9439, 8.0, 3.0, 1.0)


def test_the_table_of_rewards_has_ten_groups_at_most() -> None:
    """Without a reward there is no table, and of twelve groups the ten best are shown, while all count for the mean."""
    assert reward_tables([0.0], [3]) == []
    assert reward_tables([], []) == []
    assert rewards_in([]) == ()
    [table] = reward_tables(np.arange(13.0), np.ones(13))
    assert table.title == REWARDS
    assert table.columns == REWARD_COLUMNS
    assert table.rows == [(12, 6.5, 3.4521, *range(12, 2, -1))]


def test_a_pull_can_be_taken_back() -> None:
    """A pull that turned out to be none leaves the counts as they were."""
    stats = table()
    stats.pull(3)
    stats.unpull(3)
    assert stats.pulls[3] == 10


def test_arms_come_into_being_when_used() -> None:
    """Arms keep what they have while others come, far beyond the room that there was at first."""
    stats = table()
    stats.earn(500, 1.0)
    assert (stats.n_arms, len(stats.pulls), stats.sums[500], stats.sums[3]) == (501, 501, 1.0, 15.0)
    assert stats.pulls[3] == 10
    stats.ensure(20)
    assert stats.n_arms == 501
    assert len(auer(stats, 10, alpha=1.0)) == 501


def first_of(heaps: ArmHeaps, n: int | None = None) -> list[int]:
    """Return the first arms by the sum of group and key, all by default."""
    return list(islice(heaps.best_first(lambda group, key: group + key), n))


def test_the_best_arms_come_first() -> None:
    """By value, whatever group they are in, the smaller number first among equals; an arm that moved comes once."""
    heaps = ArmHeaps()
    for arm, group, key in ((0, 0.0, 2.0), (1, 1.0, 1.5), (2, 0.0, 1.0), (4, 0.5, 1.5), (3, 2.0, 0.0), (2, 5.0, 1.0)):
        heaps.put(arm, group, key)
    assert first_of(heaps) == [2, 1, 0, 3, 4]
    assert first_of(heaps, 2) == [2, 1]
    assert first_of(heaps) == [2, 1, 0, 3, 4], "looking changes nothing"
    heaps.drop(1)
    heaps.drop(99)
    assert first_of(heaps) == [2, 0, 3, 4]


def test_an_arm_that_comes_back_has_only_its_new_key() -> None:
    """Its value before its removal no longer counts, however often it was put in since."""
    heaps = ArmHeaps()
    heaps.put(5, 0.0, 10.0)
    heaps.drop(5)
    heaps.put(6, 0.0, 5.0)
    heaps.put(5, 0.0, 0.0)
    assert first_of(heaps) == [6, 5]


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(5))
def test_heaps_of_arms_are_a_sorted_list(seed: int) -> None:
    """Over thousands of steps the order is that of a sorted dictionary, and outdated entries stay within bounds."""
    rng = np.random.default_rng(seed)
    heaps, model = ArmHeaps(), dict[int, tuple[float, float]]()
    for _ in range(3000):
        arm, group, key = int(rng.integers(30)), float(rng.integers(4)), float(rng.integers(8))
        if rng.random() < 0.15:
            heaps.drop(arm)
            model.pop(arm, None)
        else:
            heaps.put(arm, group, key)
            model[arm] = group, key
        wanted = sorted(model, key=lambda arm: (-sum(model[arm]), arm))
        n = int(rng.integers(1, 31))
        assert first_of(heaps, n) == wanted[:n]
        levels = heaps._levels.values()
        assert heaps._n_entries == sum(len(level.arms) for level in levels)
        assert heaps._n_entries + len(levels) <= 65 + 3 * 30
        assert len(levels) == sum(map(len, heaps._groups.values()))


def test_keys_that_a_bonus_swallows_are_equal() -> None:
    """The smallest arm comes first where values are equal, though keys differ, as they do by rounding."""
    heaps = ArmHeaps()
    for arm, group, key in ((7, 0.0, 0.1 + 0.2), (5, 0.0, 0.3), (3, 0.0, 0.2), (6, 1.0, 0.3), (2, 1.0, 0.1)):
        heaps.put(arm, group, key)
    assert list(heaps.best_first(lambda _, key: key)) == [7, 5, 6, 3, 2]
    assert list(heaps.best_first(lambda _, key: key + 1.0)) == [5, 6, 7, 3, 2]
    assert list(heaps.best_first(lambda _, key: key + 1e20)) == [2, 3, 5, 6, 7]


def test_what_is_looked_at_stands_where_it_stood() -> None:
    """An arm that left a place and returned is there once, however far the iterator got."""
    heaps = ArmHeaps()
    for key in (1.0, 2.0, 1.0, 2.0, 1.0):
        heaps.put(4, 0.0, key)
    heaps.put(9, 0.0, 1.0)
    for n in (1, 2, None):
        assert first_of(heaps, n) == [4, 9][:n]
    assert first_of(heaps) == [4, 9]


def test_changes_are_noted_for_whoever_asks() -> None:
    """From the first question on, and not in a copy: there any arm may have changed; who never asks keeps no notes."""
    stats = table()
    assert stats._changed is None
    assert stats.changes() is None
    assert stats.changes() == set()
    stats.pull(2)
    stats.earn(700, 1.0)
    stats.unpull(900)
    stats.earn(2, 0.0)
    assert stats.changes() == {2, 700, 900}
    assert stats.changes() == set()
    stats.ensure(2000)
    assert stats.changes() == set()
    copy = pickle.loads(pickle.dumps(stats))
    assert copy.changes() is None
    assert copy.sums.tolist() == stats.sums.tolist()


def test_counts_change_by_methods_alone() -> None:
    """An array that somebody wrote to would change unnoticed."""
    with pytest.raises(ValueError, match="read-only"):
        table().sums[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        table().pulls[0] += 1.0
