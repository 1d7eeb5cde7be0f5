"""The classifiers of links that a host bandit may use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from scrapy_focus.core.extras import require_extra
from scrapy_focus.learn.classifier import OnlineClassifier
from scrapy_focus.learn.hashed import N_FEATURES, NOTHING, HashedLogistic
from scrapy_focus.policies.hostbandit.bayes import HashedBayes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BATCH = 5  # labels to collect before each training, as released


class Judge(Protocol):
    """Learns from rows of hashed features, shape (width,), ``NOTHING`` in unused places."""

    def decide(self, rows: NDArray[np.uint16]) -> NDArray[np.floating]:
        """Return the log-odds of rows, shape (n, width), as an array of shape (n,)."""

    def learn(self, row: NDArray[np.uint16], label: float, *, offset: float = 0.0) -> object:
        """Learn from one example, with a label from 0 to 1; ``offset``: log-odds known from elsewhere."""


class Descent:
    """scikit-learn's ``SGDClassifier``, which learns from a few examples at a time."""

    def __init__(self) -> None:
        require_extra("classifier='sgd' of HostBandit", "topic", "sklearn")
        self._model = OnlineClassifier(n_features=N_FEATURES, batch=_BATCH)

    def decide(self, rows: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Return the log-odds of rows, shape (n, width), as an array of shape (n,)."""
        return self._model.decide([row[row != NOTHING].astype(np.intp) for row in rows])

    def learn(self, row: NDArray[np.uint16], label: float, *, offset: float = 0.0) -> None:
        """Learn from one example; a label of at least a half counts as good."""
        self._model.observe(row[row != NOTHING].astype(np.intp), label >= 0.5)


def judge_of(name: str) -> Judge:
    """Return a new classifier: ``hashed``, ``bayes`` or ``sgd``."""
    judges: dict[str, type[Judge]] = {"hashed": HashedLogistic, "bayes": HashedBayes, "sgd": Descent}
    return judges[name]()


def probabilities(odds: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the probabilities of log-odds."""
    return 1 / (1 + np.exp(-np.clip(odds.astype(np.float64), -30, 30)))
