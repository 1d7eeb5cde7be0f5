"""Counts of arms and the AUER score, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from scrapy_focus.learn.arms import ArmStats, auer


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
