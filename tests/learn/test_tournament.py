"""The best of many is known at any time, whatever was put and dropped before."""

from __future__ import annotations

import math
import pickle
from itertools import islice, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_focus.policies.hostbandit.tournament import Tournament
from tests.examples import n_examples

SCORES = st.one_of(
    st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, math.inf]), st.floats(allow_nan=False, allow_infinity=False)
)
STEPS = st.lists(st.tuples(st.integers(0, 150), st.none() | SCORES), max_size=60)


def in_order(scores: dict[int, float]) -> list[int]:
    """Return entrants as they should come: the largest score first, the smallest number among equals."""
    return sorted(scores, key=lambda entrant: (-scores[entrant], entrant))


@given(STEPS)
@settings(max_examples=n_examples(150), deadline=None)
def test_it_is_a_sorted_list(steps: list[tuple[int, float | None]]) -> None:
    """After each put and drop: the best, all in order, and the score of each, also of those that never came."""
    tournament, scores = Tournament(), {}
    for entrant, score in steps:
        if score is None:
            tournament.drop(entrant)
            scores.pop(entrant, None)
        else:
            tournament.put(entrant, score)
            scores[entrant] = score
        assert tournament.best() == next(iter(in_order(scores)), -1)
    assert list(tournament.best_first()) == in_order(scores)
    assert [tournament.score(entrant) for entrant in range(200)] == [scores.get(n, -math.inf) for n in range(200)]
    there = tournament.scores()
    assert {entrant: there[entrant] for entrant in np.flatnonzero(there > -math.inf).tolist()} == scores
    again = pickle.loads(pickle.dumps(tournament))
    assert list(again.best_first()) == in_order(scores)


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_who_came_first_does_not_matter(order: tuple[int, ...]) -> None:
    """Scores above and below zero, and equal ones: the order is the same in whatever order they were put."""
    tournament, scores = Tournament(), {0: -2.0, 1: 0.25, 2: -2.0, 3: -7.0}
    for entrant in order:
        tournament.put(entrant, scores[entrant])
    assert list(tournament.best_first()) == [1, 0, 2, 3]


def test_there_is_room_for_whoever_comes() -> None:
    """Numbers far above earlier ones make room and keep all scores; a pickle stores only the scores."""
    tournament = Tournament()
    tournament.put(3, 1.0)
    tournament.put(100_000, 2.0)
    tournament.put(64, 1.5)
    assert list(tournament.best_first()) == [100_000, 64, 3]
    tournament.drop(100_000)
    assert len(pickle.dumps(tournament)) < 2_000
    again = pickle.loads(pickle.dumps(tournament))
    again.put(99_999, 3.0)
    assert list(again.best_first()) == [99_999, 64, 3]


def test_the_first_of_many_are_found_without_the_others() -> None:
    """Of 20,000 with random scores the first ten are those of a sort, after each of many changes."""
    rng = np.random.default_rng(1)
    scores, tournament = rng.random(20_000), Tournament()
    for entrant, score in enumerate(scores.tolist()):
        tournament.put(entrant, score)
    for _ in range(50):
        best = next(iter(tournament.best_first()))
        scores[best] = rng.random()
        tournament.put(best, float(scores[best]))
        assert list(islice(tournament.best_first(), 10)) == np.argsort(-scores, kind="stable")[:10].tolist()


def test_scores_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Tournament().scores()[0] = 1.0
