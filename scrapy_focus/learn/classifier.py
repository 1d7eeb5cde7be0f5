"""A two-class linear classifier that learns in small batches, and predicts in microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Model = Literal["logistic", "svm", "bayes", "passive-aggressive"]

_KEPT = 1 << 20  # features of all pending examples: 4 MB, some 12,000 URLs


class OnlineClassifier:
    """A linear model over counts of features, trained every ``batch`` labels in one pass over them.

    Training is scikit-learn's; predicting is a sum over the weights of the present features, without a matrix.

    Parameters
    ----------
    n_features
        Indexes of features are below this.
    batch
        Labels to collect before each training.
    seed
        Of the order within a batch.
    model
        ``"logistic"``: logistic regression; ``"svm"``: a linear SVM, both by stochastic gradient descent
        (``SGDClassifier`` with log loss and hinge loss). ``"bayes"``: multinomial naive Bayes (``MultinomialNB``,
        Laplace smoothing, the prior that of the labels so far). ``"passive-aggressive"``: PA-I of Crammer et al.
        (2006) with C = 1.

    Notes
    -----
    *Memory*: the weights, 8 bytes for each of ``n_features``; with ``"bayes"`` 40. Examples are kept until the next
    training. A training that :meth:`collect` delays beyond 1,048,576 features (4 MB, some 12,000 URLs) happens at
    once.
    """

    def __init__(self, *, n_features: int, batch: int = 10, seed: int = 42, model: Model = "logistic") -> None:
        self.n_features = n_features
        self.batch = batch
        self.seed = seed
        self._model = _estimator(model, seed)
        self._pending: list[tuple[NDArray[np.int32], bool]] = []
        self._kept = 0  # features of all that is pending
        self._weights: NDArray[np.float64] | None = None
        self._bias = 0.0
        self.labels = 0

    @property
    def ready(self) -> bool:
        """Whether it was trained at least once."""
        return self._weights is not None

    def observe(self, features: NDArray[np.intp], label: bool) -> bool:
        """Learn from one example (the index of each feature, repeated as often as it occurs); ``True`` if it trained
        now.
        """
        self.collect(features, label)
        if len(self._pending) < self.batch:
            return False
        self.train()
        return True

    def collect(self, features: NDArray[np.intp], label: bool) -> None:
        """Keep an example for the next training; train now if too many are kept."""
        self.labels += 1
        self._pending.append((features.astype(np.int32), label))  # scikit-learn takes no other
        self._kept += len(features)
        if self._kept > _KEPT:
            self.train()

    def train(self) -> None:
        """Learn from the examples that were collected since the last training, if there are any."""
        if not self._pending:
            return
        from scipy.sparse import csr_array
        from sklearn import config_context

        lengths = [len(row) for row, _ in self._pending]
        columns = np.concatenate([row for row, _ in self._pending])
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        X = csr_array((np.ones(len(columns)), columns, starts), shape=(len(lengths), self.n_features))
        X.sum_duplicates()
        y = np.array([label for _, label in self._pending], np.int64)
        with config_context(assume_finite=True, skip_parameter_validation=True):
            self._model.partial_fit(X, y, classes=None if self.ready else np.array([0, 1]))
        self._weights, self._bias = _plane_of(self._model)
        self._pending.clear()
        self._kept = 0

    def predict(self, features: NDArray[np.intp]) -> bool:
        """Whether an example belongs to the positive class; ``False`` before the first training."""
        return self._weights is not None and bool(self._weights[features].sum() + self._bias > 0)

    def decide(self, rows: Sequence[NDArray[np.intp]]) -> NDArray[np.float64]:
        """Return the log-odds of the positive class by example, shape (len(rows),); 0 before the first training.

        The SVM and the passive-aggressive model have no probabilities: theirs are margins, of the same sign.
        """
        if self._weights is None or not rows:
            return np.zeros(len(rows))
        owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        sums = np.bincount(owners, self._weights[np.concatenate(rows)], minlength=len(rows))
        return np.asarray(sums + self._bias, np.float64)

    def __getstate__(self) -> dict[str, Any]:
        rows = [row for row, _ in self._pending]
        pending = (
            np.concatenate([np.zeros(0, np.int32), *rows]),  # one array: thousands take ten times as long to pickle
            np.cumsum([len(row) for row in rows], dtype=np.int64),
            [label for _, label in self._pending],
        )
        return {**self.__dict__, "_pending": pending, "_weights": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        columns, ends, labels = state["_pending"]
        rows = np.split(columns, ends)[: len(labels)]
        self.__dict__.update(state, _pending=list(zip(rows, labels, strict=True)))
        if hasattr(self._model, "classes_"):
            self._weights, self._bias = _plane_of(self._model)


def _estimator(model: Model, seed: int) -> Any:
    """Return the estimator of scikit-learn."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.naive_bayes import MultinomialNB

    if model == "bayes":
        return MultinomialNB()
    if model == "passive-aggressive":  # as PassiveAggressiveClassifier, which newer versions deprecate
        return SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1", eta0=1.0, random_state=seed)
    return SGDClassifier(loss="log_loss" if model == "logistic" else "hinge", max_iter=100, random_state=seed)


def _plane_of(model: Any) -> tuple[NDArray[np.float64], float]:
    """Return the weights, shape (n_features,), and the bias of a trained estimator: their sum is its score.

    The bias of naive Bayes is infinite as long as all labels were equal.
    """
    if hasattr(model, "feature_log_prob_"):
        negative, positive = model.feature_log_prob_
        return positive - negative, float(np.subtract(*model.class_log_prior_[::-1]))
    return model.coef_[0], float(model.intercept_[0])
