"""What a link is worth next to those that were picked before it."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_focus.policies.branching.arms import PAGES, TARGETS
from scrapy_focus.policies.branching.links import LinkScores

KINDS = np.array([PAGES, PAGES, TARGETS], np.int8)
INDICES = np.array([0.2, 0.2, 0.2])


def scored(scores: LinkScores, arms: list[int], odds: list[float]) -> list[float]:
    return scores.score(INDICES, KINDS, np.array(arms), np.array(odds)).tolist()


def test_the_more_promising_link_of_an_arm_is_worth_more() -> None:
    """In proportion to its prediction, at most four times the value of its arm, and at least a fourth."""
    scores = LinkScores()
    for _ in range(50):
        scores.note(0, PAGES, -2.0)  # 12 %
    usual, twice, most, least = scored(scores, [0] * 4, [-2.0, -1.16, 20.0, -20.0])
    assert usual == pytest.approx(0.2, rel=0.1)
    assert twice / usual == pytest.approx(2.0, rel=0.02)
    assert (most, least) == pytest.approx((0.8, 0.05))


def test_links_that_are_left_are_worth_less_than_the_record_of_their_arm() -> None:
    """Where the promising ones were picked, another arm with the same index goes before what is left."""
    scores = LinkScores()
    for _ in range(20):
        scores.note(0, PAGES, 1.0)
        scores.note(1, PAGES, -1.0)
    left, same = scored(scores, [0, 1], [-1.0, -1.0])
    assert same > 2 * left


def test_an_arm_without_picks_is_like_its_kind() -> None:
    """The predictions for other arms of the kind are used at first, and fade as the arm has picks."""
    scores = LinkScores()
    for _ in range(200):
        scores.note(0, PAGES, -2.0)
    kind, new = scored(scores, [0, 1], [-2.0, -2.0])
    assert new == pytest.approx(kind, rel=0.1)
    for _ in range(20):
        scores.note(1, PAGES, 2.0)
    assert scored(scores, [1], [-2.0])[0] < new / 2


def test_kinds_are_apart() -> None:
    """Predictions for pages, that they lead to targets, do not affect those for links to targets."""
    scores = LinkScores()
    before = scored(scores, [2], [1.0])
    for _ in range(50):
        scores.note(0, PAGES, -5.0)
    assert scored(scores, [2], [1.0]) == before


def test_old_picks_fade() -> None:
    """A record goes over the last picks: after a few hundred others, it is as if the first had not been."""
    scores, other = LinkScores(), LinkScores()
    for _ in range(100):
        scores.note(0, PAGES, 5.0)
    for _ in range(1500):
        scores.note(0, PAGES, -1.0)
        other.note(0, PAGES, -1.0)
    assert scored(scores, [0], [0.0]) == pytest.approx(scored(other, [0], [0.0]), rel=0.01)


def test_where_arms_are_worth_nothing_the_prediction_decides() -> None:
    """Links of arms with index 0 are still distinguished."""
    scores = LinkScores()
    low, high = scores.score(np.zeros(3), KINDS, np.array([0, 1]), np.array([-1.0, 1.0])).tolist()
    assert 0 < low < high


def test_the_more_promising_link_of_an_arm_that_loses_is_worth_more() -> None:
    """What is worth less than nothing becomes less bad, not worse."""
    scores = LinkScores()
    low, high = scores.score(np.full(3, -0.2), KINDS, np.array([0, 0]), np.array([-3.0, 1.0])).tolist()
    assert low < high < 0
