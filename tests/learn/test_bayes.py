"""Naive Bayes by hand: frequencies count for present features only."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from scrapy_focus.learn.hashed import HashedLogistic
from scrapy_focus.policies.hostbandit.bayes import HashedBayes
from scrapy_focus.policies.hostbandit.judge import judge_of


def row(*features: int) -> np.ndarray:
    """Return features as a row of four."""
    return np.array([*features, 0, 0, 0, 0][:4], np.uint16)


def taught() -> HashedBayes:
    """Three good pages, all with 7, one of them with 8; one bad page with 8 and 9."""
    model = HashedBayes()
    for features, label in (((7,), 1.0), ((7,), 1.0), ((7, 8), 1.0), ((8, 9), 0.0)):
        model.learn(row(*features), label)
    return model


@pytest.mark.parametrize(
    ("features", "odds"),
    [
        ((), math.log(4 / 2)),  # the classes alone, each with one more
        ((7,), math.log(2) + math.log(4 / 5) - math.log(1 / 3)),
        ((8,), math.log(2) + math.log(2 / 5) - math.log(2 / 3)),
        ((9,), math.log(2) + math.log(1 / 5) - math.log(2 / 3)),
        ((7, 9), math.log(2) + math.log(4 / 5) - math.log(1 / 3) + math.log(1 / 5) - math.log(2 / 3)),
        ((7, 10, 11), math.log(2) + math.log(4 / 5) - math.log(1 / 3)),  # what nobody saw says nothing
    ],
)
def test_log_odds_by_hand(features: tuple[int, ...], odds: float) -> None:
    assert taught().decide(np.array([row(*features)])) == pytest.approx([odds])


def test_nothing_learned_is_an_even_chance() -> None:
    assert HashedBayes().decide(np.array([row(1, 2), row()])).tolist() == [0.0, 0.0]


def test_a_label_in_between_counts_for_both() -> None:
    model = HashedBayes()
    model.learn(row(5), 0.25)
    assert model.decide(np.array([row(5)])) == pytest.approx([
        math.log(1.25 / 1.75) + math.log(1.25 / 2.25) - math.log(1.75 / 2.75)
    ])  # fmt: skip


def test_a_feature_that_is_there_twice_counts_once() -> None:
    """What is learned of a row says how many examples had a feature, not how often."""
    once, twice = HashedBayes(), HashedBayes()
    once.learn(row(5, 6), 1.0)
    twice.learn(row(5, 6, 5), 1.0)
    assert once.decide(np.array([row(5)])) == twice.decide(np.array([row(5)]))


def test_pickled_it_says_the_same() -> None:
    """And takes no more than what it has seen."""
    model = taught()
    rows = np.array([row(7), row(8, 9), row(10), row()])
    data = pickle.dumps(model)
    assert len(data) < 2_000
    again = pickle.loads(data)
    assert again.decide(rows).tolist() == model.decide(rows).tolist()
    for each in (model, again):
        each.learn(row(9, 10), 1.0)
    assert again.decide(rows).tolist() == model.decide(rows).tolist()


def test_what_is_known_otherwise_is_not_learned_again() -> None:
    """Logistic regression with an offset learns what is beyond it: nothing, where the offset says it all."""
    beyond, alone = HashedLogistic(), HashedLogistic()
    for _ in range(50):
        beyond.learn(row(7), 1.0, offset=30.0)
        alone.learn(row(7), 1.0)
    assert abs(float(beyond.decide(np.array([row(7)]))[0])) < 1e-6
    assert float(alone.decide(np.array([row(7)]))[0]) > 1
    against = HashedLogistic()
    for _ in range(50):
        against.learn(row(7), 0.0, offset=3.0)
    assert float(against.decide(np.array([row(7)]))[0]) < -3


def test_gradient_descent_learns_from_five_labels_at_once() -> None:
    """As the program of Anthelion does; naive Bayes learns from each."""
    batched, each = judge_of("sgd"), judge_of("bayes")
    learned = []
    for _ in range(5):
        for judge in (batched, each):
            judge.learn(row(7), 1.0)
        learned.append([bool(judge.decide(np.array([row(7)]))[0] > 0) for judge in (batched, each)])
    assert learned == [[False, True]] * 4 + [[True, True]]
