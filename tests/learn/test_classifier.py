"""The online classifier, against scikit-learn."""

from __future__ import annotations

import math
import pickle
from typing import TYPE_CHECKING, get_args

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import MultinomialNB

from scrapy_focus.learn import classifier
from scrapy_focus.learn.classifier import Model, OnlineClassifier

if TYPE_CHECKING:
    from collections.abc import Iterable

N = 60
MODELS = get_args(Model)


def examples(n: int, seed: int) -> list[tuple[np.ndarray, bool]]:
    """Return features, some of them repeated, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        label = bool(rng.random() < 0.4)
        features = rng.integers(0, N, int(rng.integers(1, 25)))
        made.append((np.concatenate([features, [3, 3, 9] if label else [4]]).astype(np.intp), label))
    return made


def counts(rows: list[np.ndarray]) -> csr_array:
    """Return the matrix of counts of features."""
    return csr_array(np.array([np.bincount(row, minlength=N) for row in rows], float))


@pytest.mark.parametrize("batch", [1, 10])
@pytest.mark.parametrize(
    ("model", "theirs"),
    [
        ("logistic", SGDClassifier(loss="log_loss", max_iter=100, random_state=42)),
        ("svm", SGDClassifier(loss="hinge", max_iter=100, random_state=42)),
        ("bayes", MultinomialNB()),
    ],
)
def test_it_is_a_model_of_scikit_learn(model: Model, theirs: SGDClassifier | MultinomialNB, batch: int) -> None:
    """After every batch it predicts what scikit-learn's model does after partial_fit on the same examples."""
    ours = OnlineClassifier(n_features=N, batch=batch, seed=42, model=model)
    theirs = clone(theirs)
    test = [features for features, _ in examples(200, seed=1)]
    train = examples(10 * batch, seed=0)
    for start in range(0, len(train), batch):
        part = train[start : start + batch]
        trained = [ours.observe(*example) for example in part]
        assert trained == [False] * (batch - 1) + [True]
        theirs.partial_fit(counts([row for row, _ in part]), [int(label) for _, label in part], classes=[0, 1])
        assert [ours.predict(row) for row in test] == theirs.predict(counts(test)).astype(bool).tolist()
    predicted = [ours.predict(row) for row in test]
    assert True in predicted
    assert False in predicted
    assert ours.labels == 10 * batch


def scores(classifier: OnlineClassifier, *rows: Iterable[int]) -> list[float]:
    """Return what decides about examples."""
    return classifier.decide([np.array(row, np.intp) for row in rows]).tolist()


def test_naive_bayes_by_hand() -> None:
    """Four features, two positive examples with 8 counts after smoothing, a negative one with 6 (section 4.6).

    P(+) = 2/3. P(feature|+) = 3/8, 2/8, 1/8, 2/8. P(feature|-) = 1/6, 2/6, 2/6, 1/6.
    """
    bayes = OnlineClassifier(n_features=4, batch=1, model="bayes")
    for row, label in (([0, 0, 1], True), ([1, 2], False), ([3], True)):
        assert bayes.observe(np.array(row), label)
    # 0 and 3: (2/3 * 3/8 * 2/8) / (1/3 * 1/6 * 1/6) = 6.75; twice 2: (2/3 / 64) / (1/3 * 4/36) = 0.28125
    assert scores(bayes, [0, 3], [2, 2], []) == pytest.approx([math.log(6.75), math.log(0.28125), math.log(2)])
    assert [bayes.predict(np.array(row)) for row in ([0, 3], [2, 2])] == [True, False]


def test_a_tie_is_negative() -> None:
    """With one example of each class, their features in equal numbers say nothing: the first class, as scikit-learn."""
    bayes = OnlineClassifier(n_features=2, batch=2, model="bayes")
    bayes.observe(np.array([0]), True)
    bayes.observe(np.array([1]), False)
    assert scores(bayes, [0, 1]) == [0.0]
    assert not bayes.predict(np.array([0, 1]))


@pytest.mark.parametrize("label", [True, False])
def test_naive_bayes_knows_only_the_classes_it_saw(label: bool) -> None:
    """The prior of a class without examples is 0: nothing belongs to it, until it has one."""
    bayes = OnlineClassifier(n_features=2, batch=1, model="bayes")
    bayes.observe(np.array([0]), label)
    assert [bayes.predict(np.array(row, np.intp)) for row in ([0], [1, 1, 1], [])] == [label] * 3
    assert scores(bayes, [0]) == [math.inf if label else -math.inf]
    bayes.observe(np.array([1]), not label)
    assert [bayes.predict(np.array([feature])) for feature in (0, 1)] == [label, not label]


def test_the_linear_svm_by_hand() -> None:
    """Hinge loss, a step of 10,000 / (999 + t), an L2 penalty of 1e-4, and a hundredth of the step for the bias.

    1. Positive, {0, 1}: the margin is 0, so both weights get 10000 / 1000 = 10, and the bias 0.1.
    2. Negative, {1, 2}: the margin is -10.1, so weights shrink by 1000 / 1001 to 10000 / 1001, and those of 1 and 2
       lose as much; the bias is 0.1 - 100 / 1001.
    3. Positive, {0}: the margin is above 1, so weights only shrink, by 1001 / 1002.
    """
    svm = OnlineClassifier(n_features=3, batch=1, model="svm")
    weights = []
    for row, label in (([0, 1], True), ([1, 2], False), ([0], True)):
        svm.observe(np.array(row), label)
        bias, *all_weights = scores(svm, [], [0], [1], [2])
        weights.append([bias, *(weight - bias for weight in all_weights)])
    rest = 0.1 - 100 / 1001
    assert weights[0] == pytest.approx([0.1, 10.0, 10.0, 0.0])
    assert weights[1] == pytest.approx([rest, 10000 / 1001, 0.0, -10000 / 1001])
    assert weights[2] == pytest.approx([rest, 10000 / 1002, 0.0, -10000 / 1002])


def test_the_passive_aggressive_model_by_hand() -> None:
    """PA-I: a step of min(1, loss / squared length) makes the margin 1; the bias gets a hundredth of it.

    1. Positive, {0, 1}: loss 1, squared length 2, so both weights get 0.5, and the bias 0.005.
    2. Negative, {1, 1, 2}: the margin is -1.005, loss 2.005, squared length 4 + 1, step 0.401.
    3. Positive, {0, 0, 0}: the margin is above 1: passive.
    4. Negative, {0}: loss 1.50099, squared length 1, but the step is 1 at most.
    """
    model = OnlineClassifier(n_features=3, batch=1, model="passive-aggressive")
    weights = []
    for row, label in (([0, 1], True), ([1, 1, 2], False), ([0, 0, 0], True), ([0], False)):
        model.observe(np.array(row), label)
        bias, *all_weights = scores(model, [], [0], [1], [2])
        weights.append([bias, *(weight - bias for weight in all_weights)])
    assert weights[0] == pytest.approx([0.005, 0.5, 0.5, 0.0])
    assert weights[1] == pytest.approx([0.00099, 0.5, -0.302, -0.401])
    assert weights[2] == weights[1]
    assert weights[3] == pytest.approx([-0.00901, -0.5, -0.302, -0.401])


@pytest.mark.parametrize("model", MODELS)
def test_it_says_no_before_it_was_trained(model: Model) -> None:
    """Before the first batch is full nothing is positive, and it is not ready."""
    classifier = OnlineClassifier(n_features=N, batch=3, model=model)
    for features, _ in examples(2, seed=0):
        assert not classifier.observe(features, True)
    assert not classifier.ready
    assert not classifier.predict(np.array([3, 3, 9]))
    assert classifier.observe(np.array([3]), True)
    assert classifier.ready
    assert classifier.predict(np.array([3, 3, 9]))


def test_it_learns_from_one_class() -> None:
    """A batch of equal labels is not an error."""
    classifier = OnlineClassifier(n_features=N, batch=5)
    for features, _ in examples(5, seed=0):
        classifier.observe(features, False)
    assert classifier.ready
    assert not classifier.predict(np.array([4]))


def test_an_example_may_be_empty() -> None:
    """A text without features is an example like others."""
    classifier = OnlineClassifier(n_features=N, batch=2)
    empty = np.array([], np.intp)
    classifier.observe(empty, False)
    classifier.observe(np.array([3, 3]), True)
    assert classifier.ready
    assert classifier.predict(empty) in (True, False)


def test_it_can_be_stored_between_batches() -> None:
    """Examples that wait for their batch are stored too."""
    train, test = examples(35, seed=2), [features for features, _ in examples(50, seed=3)]
    one = OnlineClassifier(n_features=N)
    other = OnlineClassifier(n_features=N)
    for i, example in enumerate(train):
        one.observe(*example)
        other.observe(*example)
        if i == 24:
            other = pickle.loads(pickle.dumps(other))
    assert [one.predict(row) for row in test] == [other.predict(row) for row in test]
    assert one.labels == other.labels == 35


def test_a_training_that_is_put_off_too_long_takes_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples that are only collected are learned, and forgotten, when they have more features than are kept."""
    monkeypatch.setattr(classifier, "_KEPT", 300)
    collecting = OnlineClassifier(n_features=40)
    rng = np.random.default_rng(0)
    for i in range(500):
        collecting.collect(rng.integers(0, 20, size=20) + 20 * (i % 2), bool(i % 2))
        assert sum(len(row) for row, _ in collecting._pending) == collecting._kept <= 300
        assert collecting.ready == (i >= 15)
    assert collecting.labels == 500
    assert collecting.predict(np.array([25, 30]))
    assert not collecting.predict(np.array([5, 10]))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stored_after", [0, 1, 37, 60])
def test_it_can_be_stored_at_any_time(stored_after: int, model: Model) -> None:
    """Before the first label, within a batch and after a batch, what comes out of a pickle learns on in the same way."""
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 40, size=rng.integers(0, 9)) for _ in range(100)]
    whole, stored = (OnlineClassifier(n_features=40, model=model) for _ in range(2))
    for i, row in enumerate(rows):
        if i == stored_after:
            stored = pickle.loads(pickle.dumps(stored, protocol=5))
        assert whole.observe(row, bool(i % 3)) == stored.observe(row, bool(i % 3))
        assert whole.decide(rows).tolist() == stored.decide(rows).tolist()
        assert whole.predict(row) == stored.predict(row)
