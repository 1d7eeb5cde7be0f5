"""The online classifier, against scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import SGDClassifier

from scrapy_focus.learn import classifier
from scrapy_focus.learn.classifier import OnlineClassifier

N = 60


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
def test_it_is_sgd_of_scikit_learn(batch: int) -> None:
    """After every batch it predicts what SGDClassifier does after partial_fit on the same examples."""
    ours = OnlineClassifier(n_features=N, batch=batch, seed=42)
    theirs = SGDClassifier(loss="log_loss", max_iter=100, random_state=42)
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


def test_it_says_no_before_it_was_trained() -> None:
    """Before the first batch is full nothing is positive, and it is not ready."""
    classifier = OnlineClassifier(n_features=N, batch=3)
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


@pytest.mark.parametrize("stored_after", [0, 1, 37, 60])
def test_it_can_be_stored_at_any_time(stored_after: int) -> None:
    """Before the first label, within a batch and after a batch, what comes out of a pickle learns on in the same way."""
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 40, size=rng.integers(0, 9)) for _ in range(100)]
    whole, stored = OnlineClassifier(n_features=40), OnlineClassifier(n_features=40)
    for i, row in enumerate(rows):
        if i == stored_after:
            stored = pickle.loads(pickle.dumps(stored, protocol=5))
        assert whole.observe(row, bool(i % 3)) == stored.observe(row, bool(i % 3))
        assert whole.decide(rows).tolist() == stored.decide(rows).tolist()
        assert whole.predict(row) == stored.predict(row)
