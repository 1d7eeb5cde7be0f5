"""Logistic regression on hashed features: it learns, says what it knows, and is the same after pickling."""

from __future__ import annotations

import math
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus.learn.hashed import N_FEATURES, NOTHING, HashedLogistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

RNG_SEED = 4
RATE, FIRST = 0.3, 1e-2  # step of a weight, and the squared gradient that it begins with


def rows_of(*examples: list[int]) -> NDArray[np.uint16]:
    """Return examples as rows of one width."""
    width = max(map(len, examples))
    return np.array([each + [NOTHING] * (width - len(each)) for each in examples], np.uint16)


def odds_of(model: HashedLogistic, *features: int) -> float:
    """Return the log-odds of one example."""
    return float(model.decide(rows_of([*features]))[0])


def trained(examples: int = 2000) -> HashedLogistic:
    """Return a model that saw examples of ten features of a hundred, targets where 5 is among them."""
    rng, model = np.random.default_rng(RNG_SEED), HashedLogistic()
    for _ in range(examples):
        row = rng.choice(np.arange(1, 101), 10, replace=False).astype(np.uint16)
        model.learn(row, float(5 in row))
    return model


def test_nothing_is_known_at_first() -> None:
    """Every example has even odds, one without features too."""
    assert HashedLogistic().decide(rows_of([1, 2, 3], [N_FEATURES - 1], [])).tolist() == [0.0, 0.0, 0.0]


def test_what_makes_a_target_is_learned() -> None:
    """After two thousand examples, one in ten with the decisive feature, every such one is ahead of all others."""
    model, rng = trained(), np.random.default_rng(RNG_SEED + 1)
    rows = np.array([rng.choice(np.arange(1, 101), 10, replace=False) for _ in range(1000)], np.uint16)
    odds, target = model.decide(rows), (rows == 5).any(axis=1)
    assert odds[target].min() > odds[~target].max() + 0.5
    assert ((odds > 0) == target).mean() > 0.9


def test_the_first_step_is_that_of_adagrad() -> None:
    """With p = 1/2 and four features, the gradient is -1/2 / sqrt(4) = -1/4, the step 0.3 / 4 / sqrt(0.01 + 1/16)."""
    model = HashedLogistic(rate=RATE)
    model.learn(rows_of([3, 4, 5, 6])[0], 1.0)
    step = RATE * 0.25 / math.sqrt(FIRST + 0.0625)
    assert model.weights[[3, 4, 5, 6]] == pytest.approx([step] * 4)
    assert odds_of(model, 3, 4, 5, 6) == pytest.approx(4 * step / 2), "a sum, divided by the root of four"
    assert odds_of(model, 3) == pytest.approx(step)
    assert np.count_nonzero(model.weights) == 4


def test_steps_become_smaller() -> None:
    """The second step depends on both gradients, squared and summed."""
    model = HashedLogistic(rate=RATE)
    model.learn(rows_of([3])[0], 1.0)
    first = float(model.weights[3])
    model.learn(rows_of([3])[0], 1.0)
    gradient = 1 / (1 + math.exp(-first)) - 1
    assert model.weights[3] - first == pytest.approx(-RATE * gradient / math.sqrt(FIRST + 0.25 + gradient**2), rel=1e-4)


def test_what_is_known_otherwise_need_not_be_learned() -> None:
    """An offset that is right already leaves next to nothing to learn; one that is wrong much."""
    right, wrong = HashedLogistic(), HashedLogistic()
    right.learn(rows_of([3])[0], 1.0, offset=12.0)
    wrong.learn(rows_of([3])[0], 1.0, offset=-12.0)
    assert 0 <= right.weights[3] < 1e-4
    assert wrong.weights[3] > 0.25


def test_odds_beyond_all_measure_are_learned_from() -> None:
    """Neither an offset of a thousand nor its opposite makes anything but numbers."""
    model = HashedLogistic()
    for offset in (1e3, -1e3, 1e300, -1e300):
        for label in (0.0, 1.0):
            model.learn(rows_of([3, 9])[0], label, offset=offset)
    assert np.isfinite(model.weights).all()


def test_an_example_without_features_teaches_nothing() -> None:
    """What has no features changes nothing, and the place of nothing has no weight."""
    model = trained(50)
    before = model.weights.copy()
    model.learn(np.zeros(10, np.uint16), 1.0)
    assert np.array_equal(model.weights, before)
    assert model.weights[NOTHING] == 0


def test_nothing_may_stand_anywhere_in_a_row() -> None:
    """Zeros between features are none, for learning and for odds."""
    packed, spread = HashedLogistic(), HashedLogistic()
    packed.learn(np.array([7, 8, 0, 0], np.uint16), 1.0)
    spread.learn(np.array([0, 7, 0, 8], np.uint16), 1.0)
    assert np.array_equal(packed.weights, spread.weights)
    assert odds_of(packed, 7, 8) == float(spread.decide(np.array([[0, 7, 0, 8]], np.uint16))[0])


def test_rare_features_learn_fast_when_others_have_settled() -> None:
    """After five hundred examples of one feature, a step of a new one is several times as large."""
    model = HashedLogistic()
    for i in range(500):
        model.learn(rows_of([1])[0], float(i % 2))
    before = model.weights.copy()
    model.learn(rows_of([1, 2])[0], 1.0)
    assert model.weights[2] - before[2] > 3 * (model.weights[1] - before[1]) > 0


def test_pickled_it_is_the_same() -> None:
    """Odds are the same to the bit, and so is what it learns from then on; stored is only what is not as at first."""
    model = trained()
    stored = pickle.dumps(model, protocol=5)
    copy: HashedLogistic = pickle.loads(stored)
    assert len(stored) < 3000, "a hundred features of 65,536"
    rng = np.random.default_rng(9)
    for _ in range(50):
        row = rng.integers(1, 200, 10).astype(np.uint16)
        for each in (model, copy):
            each.learn(row, float(row[0] % 2))
    assert np.array_equal(model.weights, copy.weights)
    assert np.array_equal(model._gradients, copy._gradients)
    assert model.rate == copy.rate


def test_what_is_nearly_nothing_is_pickled_too() -> None:
    """Steps whose squared gradients are too small to be seen in their sum are in the weights, and stay there."""
    model = HashedLogistic()
    for _ in range(10):
        model.learn(rows_of([5, 6])[0], 0.0, offset=-12.0)
    copy: HashedLogistic = pickle.loads(pickle.dumps(model))
    assert model.weights[5] < 0
    assert np.array_equal(model.weights, copy.weights)


def test_weights_that_were_given_are_pickled() -> None:
    """Weights of an earlier crawl, unused so far, are also unchanged."""
    model = HashedLogistic()
    model.weights[[3, 77]] = 1.5, -2.0
    copy: HashedLogistic = pickle.loads(pickle.dumps(model))
    assert np.array_equal(model.weights, copy.weights)


def test_all_features_are_pickled_in_half_a_megabyte() -> None:
    """Ten bytes for each feature that was ever seen."""
    model = HashedLogistic()
    for start in range(1, N_FEATURES, 32):
        model.learn(np.arange(start, min(start + 32, N_FEATURES)).astype(np.uint16), 1.0)
    assert len(pickle.dumps(model, protocol=5)) < 10 * N_FEATURES + 1000
