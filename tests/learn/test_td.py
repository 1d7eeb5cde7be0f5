"""Temporal differences: one step by hand, what is learned in the end, and which step diverges."""

from __future__ import annotations

import copy
import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus.jobs.pickles import Classes
from scrapy_focus.policies.foragers.td import LARGEST, Td

if TYPE_CHECKING:
    from numpy.typing import NDArray

K = 50
BEFORE, AFTER = np.array([0.5, -1.0], np.float32), np.array([1.0, 0.5], np.float32)


def with_weights(*weights: float, normalised: bool) -> Td:
    """Return an estimator with alpha 0.1 and gamma 0.9 that has these weights."""
    td = Td(len(weights), normalised=normalised)
    td.weights = np.array(weights)
    return td


def saturated(squared: float, n: int, seed: int = 3) -> NDArray[np.float32]:
    """Return random states of one squared length, shape (n, 50), all components equally far from 0."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (n, K))
    return (signs * math.sqrt(squared / K)).astype(np.float32)


def walked(td: Td, states: NDArray[np.float32]) -> list[float]:
    """Return the largest weight after each of the steps from state to state, each with the reward 1."""
    largest = []
    for before, after in pairwise(states):
        td.step(before, 1.0, after)
        largest.append(float(abs(td.weights).max()))
    return largest


def test_one_raw_step() -> None:
    """v = 2 * 0.5 - 3 = -2, v' = 2 + 3 * 0.5 = 3.5, so delta = 3 + 0.9 * 3.5 + 2 = 8.15 and w += 0.815 * (0.5, -1)."""
    td = with_weights(2.0, 3.0, normalised=False)
    assert td.step(BEFORE, 3.0, AFTER) == pytest.approx(8.15)
    assert td.weights == pytest.approx([2.4075, 2.185])


def test_one_normalised_step() -> None:
    """The same error, 8.15, divided by the squared length 1.25: w += 0.652 * (0.5, -1), and v moves by 0.1 * 8.15."""
    td = with_weights(2.0, 3.0, normalised=True)
    assert td.step(BEFORE, 3.0, AFTER) == pytest.approx(8.15)
    assert td.weights == pytest.approx([2.326, 2.348], abs=1e-5)
    assert td.value(BEFORE[None])[0] == pytest.approx(-2 + 0.815, abs=1e-5)


@pytest.mark.parametrize("normalised", [True, False])
def test_states_come_to_be_worth_what_follows(normalised: bool) -> None:
    """On a circle of three states with a reward of 1 behind the first, v1 = 1 / (1 - 0.9 ** 3), v3 = 0.9 v1, v2 = 0.81 v1."""
    td, states = Td(3, normalised=normalised, rng=np.random.default_rng(1)), np.eye(3)
    for i in range(6000):
        td.step(states[i % 3], float(i % 3 == 0), states[(i + 1) % 3])
    first = 1 / (1 - 0.9**3)
    assert td.value(states) == pytest.approx([first, 0.81 * first, 0.9 * first], rel=0.01)


def test_raw_steps_diverge_where_states_are_long() -> None:
    """With a squared length of 41 of 50 weights grow to their limit and stay there; with 10 they do not grow."""
    grown = walked(Td(K, normalised=False), saturated(41, 1500))
    assert grown[50] > 10
    assert grown[-1] == LARGEST
    assert max(walked(Td(K, normalised=False), saturated(10, 1500))) < 5


def test_normalised_steps_do_not_diverge() -> None:
    """With states as long as they can be, 50 squared, weights stay small."""
    assert max(walked(Td(K), saturated(50, 5000))) < 5


def test_nothing_makes_weights_that_are_no_numbers() -> None:
    """Rewards that are no numbers teach nothing, huge ones as much as fits, and a state of zeros nothing."""
    td = Td(K, normalised=False)
    states = saturated(50, 2)
    for reward in (math.nan, math.inf, -math.inf):
        assert td.step(states[0], reward, states[1]) == 0.0
    assert not td.weights.any()
    td.step(np.zeros(K, np.float32), 100.0, states[1])
    assert not td.weights.any()
    for _ in range(100):
        td.step(states[0], 1e300, states[1])
        td.step(states[1], -1e300, states[0])
    assert abs(td.weights).max() == LARGEST
    tiny = Td(2)
    tiny.step(np.array([1e-9, 0.0]), 1e308, np.zeros(2))
    assert tiny.weights.tolist() == [LARGEST, 0.0]
    assert np.isfinite(td.value(states)).all()


def test_weights_begin_as_the_generator_says() -> None:
    """They are drawn around 0 with a deviation of 0.1, the same from the same seed."""
    first = Td(10_000, rng=np.random.default_rng(5)).weights
    assert first.tolist() == Td(10_000, rng=np.random.default_rng(5)).weights.tolist()
    assert first.std() == pytest.approx(0.1, rel=0.05)
    assert abs(first.mean()) < 0.005


def test_a_stored_one_continues_where_it_was() -> None:
    """What a JOBDIR holds of it learns the same from then on; a copy learns for itself."""
    states = saturated(20, 40)
    td = Td(K, rng=np.random.default_rng(2))
    walked(td, states[:20])
    other, child = Classes().loads(Classes().dumps(td)), copy.deepcopy(td)
    assert walked(other, states[19:]) == walked(td, states[19:])
    assert other.weights.tolist() == td.weights.tolist() != child.weights.tolist()


@pytest.mark.parametrize(("alpha", "gamma"), [(0, 0.9), (1.0, 0.9), (math.nan, 0.9), (0.1, 1.0), (0.1, -0.1)])
def test_numbers_that_make_no_sense_are_refused(alpha: float, gamma: float) -> None:
    """The message says what was given and what could be."""
    with pytest.raises(ValueError, match=f"alpha={alpha!r}, gamma={gamma!r}; alpha is above 0"):
        Td(K, alpha=alpha, gamma=gamma)
