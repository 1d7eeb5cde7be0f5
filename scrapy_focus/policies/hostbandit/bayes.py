"""Naive Bayes on hashed features, learned one example at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.learn.hashed import N_FEATURES, NOTHING

if TYPE_CHECKING:
    from numpy.typing import NDArray


class HashedBayes:
    """Naive Bayes over the presence of features, each with its frequency among the examples of either class.

    Frequencies are smoothed by one example with the feature and one without. Absent features are ignored, because
    their number would outweigh all present ones; so are features that no example had.

    Notes
    -----
    *Memory*: 16 bytes for each of 65,536 features.

    Examples
    --------
    >>> model = HashedBayes()
    >>> csv, html = np.array([[7, 8, 0], [7, 9, 0]], np.uint16)
    >>> for _ in range(20):
    ...     model.learn(csv, 1.0)
    ...     model.learn(html, 0.0)
    >>> odds = model.decide(np.array([csv, html]))
    >>> bool(odds[0] > 1), bool(odds[1] < -1)
    (True, True)
    """

    def __init__(self) -> None:
        self._seen = np.zeros(2)  # examples of each class: no, and yes
        self._counts = np.zeros((N_FEATURES, 2))

    def decide(self, rows: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Return the log-odds of examples, shape (n, width), as an array of shape (n,)."""
        counts = self._counts[rows]
        tells = np.log((counts + 1) / (self._seen + 2))
        known = (counts.sum(axis=2) > 0) & (rows != NOTHING)
        classes = np.log((self._seen[1] + 1) / (self._seen[0] + 1))
        odds: NDArray[np.float64] = np.where(known, tells[..., 1] - tells[..., 0], 0.0).sum(axis=1) + classes
        return odds

    def learn(self, row: NDArray[np.uint16], label: float, *, offset: float = 0.0) -> None:
        """Learn from one example, shape (width,), with a label from 0 to 1; a label in between counts in part for
        both classes.
        """
        weights = 1 - label, label
        self._seen += weights
        self._counts[row[row != NOTHING]] += weights  # a repeated feature counts once

    def __getstate__(self) -> dict[str, Any]:
        used = np.flatnonzero(self._counts.any(axis=1))
        return {"seen": self._seen, "used": used.astype(np.uint16), "counts": self._counts[used]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        HashedBayes.__init__(self)
        self._seen = state["seen"]
        self._counts[state["used"]] = state["counts"]
