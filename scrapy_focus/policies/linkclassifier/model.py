"""A linear classifier of links over their most frequent words, trained from scratch each time."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.policies.linkclassifier.words import ANCHOR, AROUND, SORTS, URL, number, sort_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: Words of each sort that are kept: those in most examples.
KEPT = {AROUND: 100, URL: 150, ANCHOR: 150}

_LEAST = 2  # examples that a kept word must be in
_STRENGTH = 1.0  # scikit-learn's C
_FEW = 3  # minimum examples of a class


class LinkModel:
    """Logistic regression over the presence of words of links, by their numbers.

    Parameters
    ----------
    numbers
        Numbers of the kept words, ascending, shape (n_words,).
    weights
        Contribution of each word to the log-odds, shape (n_words,).
    bias
        The log-odds of a link without any of them.
    """

    def __init__(self, numbers: NDArray[np.int64], weights: NDArray[np.float64], bias: float) -> None:
        self.numbers = numbers
        self.weights = weights
        self.bias = bias

    @classmethod
    def fit(cls, positive: Sequence[NDArray[np.float32]], negative: Sequence[NDArray[np.float32]]) -> LinkModel | None:
        """Learn to distinguish two classes of links, each as :func:`~.words.read` returns it; both have the same
        weight.

        ``None`` if a class has fewer than three examples, or no word is in two of them.
        """
        from scipy.sparse import csr_array
        from sklearn.linear_model import LogisticRegression

        rows = [*positive, *negative]
        if min(len(positive), len(negative)) < _FEW:
            return None
        kept = _frequent(rows)
        if not len(kept):
            return None
        owners, columns = _known(rows, kept)
        X = csr_array((np.ones(len(owners)), (owners, columns)), shape=(len(rows), len(kept)))
        y = np.arange(len(rows)) < len(positive)
        model = LogisticRegression(C=_STRENGTH, class_weight="balanced", max_iter=300).fit(X, y)
        return cls(kept, np.asarray(model.coef_[0], np.float64), float(model.intercept_[0]))

    def score(self, rows: Sequence[NDArray[np.float32]]) -> NDArray[np.float64]:
        """Return how likely each link is of the first class, shape (len(rows),)."""
        from scipy.special import expit

        owners, columns = _known(rows, self.numbers)
        scores: NDArray[np.float64] = expit(self.bias + np.bincount(owners, self.weights[columns], len(rows)))
        return scores


def _frequent(rows: Sequence[NDArray[np.float32]]) -> NDArray[np.int64]:
    """Return the numbers of the most frequent words of each sort, ascending."""
    numbers, counts = np.unique(np.concatenate(rows).astype(np.int64), return_counts=True)
    wanted = (counts >= _LEAST) & ~np.isin(numbers, _stop_words())
    numbers, counts = numbers[wanted], counts[wanted]
    order = np.argsort(-counts, kind="stable")
    sorts = sort_of(numbers[order])
    return np.sort(np.concatenate([numbers[order][sorts == sort][:most] for sort, most in KEPT.items()]))


def _known(rows: Sequence[NDArray[np.float32]], kept: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return row and column of each kept word, shapes (n,)."""
    if not len(rows):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    numbers = np.concatenate(rows).astype(np.int64)
    columns = np.minimum(np.searchsorted(kept, numbers), len(kept) - 1)
    known = kept[columns] == numbers
    return owners[known], columns[known]


@cache
def _stop_words() -> NDArray[np.int64]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return np.array([number(sort, word) for word in ENGLISH_STOP_WORDS for sort in range(SORTS)])
