"""Logistic regression on hashed features that learns from one example at a time and predicts many at once."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

N_FEATURES = 1 << 16  # hashed features are numbers below this, so that two bytes hold one
NOTHING = 0  # fills the unused places of an example

_FIRST_GRADIENT = 1e-2  # squared, as if seen before the first example
_MOST_ODDS = 30.0
_NUMBER = re.compile(r"\d+")
_REMEMBERED = 1 << 16  # texts of each sort whose hashes are cached


def feature(sort: str, text: str) -> int:
    """Return the feature of a text of some sort, with all numbers treated as equal; the same in every process."""
    return exact_feature(sort, _NUMBER.sub("0", text))


def exact_feature(sort: str, text: str) -> int:
    """Return the feature of a text of some sort, with its numbers unchanged; the same in every process."""
    return crc32(f"{sort}:{text}".encode("utf-8", "surrogatepass")) % (N_FEATURES - 1) + 1


class Remembered(dict[str, Any]):
    """The results of a function of texts, cached for recent ones."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, text: str) -> Any:
        if len(self) >= _REMEMBERED:
            self.clear()
        made = self[text] = self._make(text)
        return made


class HashedLogistic:
    """Log-odds as a sum of weights, divided by the root of the number of features, trained by AdaGrad.

    An example is a row of hashed features, with ``NOTHING`` in unused places at its end. Each weight has a separate
    step size, which falls with its gradients: rare features still learn fast when common ones have settled.

    Parameters
    ----------
    rate
        Step of a weight at its first example.

    Notes
    -----
    *Memory*: 8 bytes for each of 65,536 features.

    References
    ----------
    Duchi, Hazan, Singer: Adaptive Subgradient Methods for Online Learning and Stochastic Optimization. JMLR 12 (2011).

    Examples
    --------
    >>> model = HashedLogistic()
    >>> csv, html = np.array([[7, 8, NOTHING], [7, 9, NOTHING]], np.uint16)
    >>> for _ in range(20):
    ...     _ = model.learn(csv, 1.0), model.learn(html, 0.0)
    >>> odds = model.decide(np.array([csv, html]))
    >>> bool(odds[0] > 1), bool(odds[1] < -1)
    (True, True)
    """

    def __init__(self, *, rate: float = 0.3) -> None:
        self.rate = rate
        self.weights: NDArray[np.float32] = np.zeros(N_FEATURES, np.float32)
        self._gradients: NDArray[np.float32] = np.full(N_FEATURES, _FIRST_GRADIENT, np.float32)  # squared, summed

    def decide(self, rows: NDArray[np.uint16]) -> NDArray[np.float32]:
        """Return the log-odds of examples, shape (n, width), as an array of shape (n,)."""
        sums: NDArray[np.float32] = self.weights.take(rows).sum(axis=1)
        lengths = np.count_nonzero(rows, axis=1)
        odds: NDArray[np.float32] = sums / np.sqrt(np.maximum(lengths, 1)).astype(np.float32)
        return odds

    def learn(self, row: NDArray[np.uint16], label: float, *, offset: float = 0.0) -> float:
        """Learn from one example, shape (width,), with a label from 0 to 1; ``offset``: log-odds known from
        elsewhere.

        Returns the predicted log-odds before that, including the offset.
        """
        features = row[row != NOTHING].astype(np.intp)
        if not len(features):
            return offset
        scale = 1 / math.sqrt(len(features))
        weights = self.weights.take(features)
        odds = offset + scale * float(weights.sum())
        probability = 1 / (1 + math.exp(-min(max(odds, -_MOST_ODDS), _MOST_ODDS)))
        gradient = (probability - label) * scale
        summed = self._gradients.take(features) + gradient * gradient
        self._gradients[features] = summed
        self.weights[features] = weights - self.rate * gradient / np.sqrt(summed)
        return odds

    def __getstate__(self) -> dict[str, Any]:
        used = np.flatnonzero((self._gradients != np.float32(_FIRST_GRADIENT)) | (self.weights != 0)).astype(np.uint16)
        kept = {"where": used, "weights": self.weights[used], "gradients": self._gradients[used]}
        return {"rate": self.rate, "kept": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        HashedLogistic.__init__(self, rate=state["rate"])
        kept = state["kept"]
        self.weights[kept["where"]] = kept["weights"]
        self._gradients[kept["where"]] = kept["gradients"]
