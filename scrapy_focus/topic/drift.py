"""Whether the pages that a model calls relevant are so, as far as an independent sign can show.

A crawl that is rewarded by its own model looks for more of the same, and where the model is wrong it finds ever more
of its errors. Its figures look good then. A sign that the model was not trained on reveals this: how often it occurs
among the pages called relevant. With few examples there may be no useful sign; a warning is also given if the
examples have nothing in common that not all pages have.
"""

from __future__ import annotations

from collections import deque
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.topic.background import Bag, Words
from scrapy_focus.topic.frequency import ON
from scrapy_focus.topic.rounds import fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_WINDOW = 100  # pages
_LEAST = 20  # pages called relevant in it before any warning
_SURE = 2.6  # standard deviations: one in two hundred
_WRONG = 0.5  # share of relevant pages among those called so, below which something is wrong


class Drift:
    """Compares the frequency of a sign among the last pages called relevant with that among pages on the topic and
    off it.

    Let a share t of the pages called relevant really be so. Of pages on the topic a share r has the sign, of others a
    share f. Then ``t * r + (1 - t) * f`` of the pages called relevant should have it.

    Parameters
    ----------
    name
        The sign, in words.

    Examples
    --------
    >>> drift = Drift("two keywords")
    >>> for i in range(100):
    ...     drift.add(called=i % 2 == 0, sign=i % 20 == 0)
    >>> drift.alarm(of_topic=0.8)[:70]
    'of the last 100 pages 50 were called relevant, and 5 of these have two'
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._last: deque[tuple[bool, bool]] = deque(maxlen=_WINDOW)
        self._others = [0, 0]  # pages that were not called relevant, and those of them with the sign

    def add(self, *, called: bool, sign: bool) -> None:
        """Record a page: whether the model calls it relevant, and whether it has the sign."""
        self._last.append((called, sign))
        if not called:
            self._others[0] += 1
            self._others[1] += sign

    @property
    def called(self) -> int:
        """How many of the last pages were called relevant."""
        return sum(called for called, _ in self._last)

    def alarm_of_few(self, examples: Sequence[Bag], pages: Sequence[Bag]) -> str:
        """Return a sentence if pages are called relevant although the examples have nothing specific in common, else
        ``""``.

        Then the model's notion of relevance does not come from them. A crawl with nearly all pages on the topic looks
        the same: a few examples cannot distinguish the two.

        Parameters
        ----------
        examples
            Of the topic, two at least.
        pages
            A sample of those that were seen.
        """
        if self.called < _LEAST or in_common(examples, pages) > 0:
            return ""
        return (
            f"of the last {len(self._last)} pages {self.called} were called relevant, and the {len(examples)} examples "
            "have no more in common with one another than with all pages: they are too few to tell whether the model "
            "is right; give more examples or keywords"
        )

    def alarm(self, *, of_topic: float) -> str:
        """Return a sentence if most pages recently called relevant certainly are not, else ``""``.

        ``of_topic`` is the share of pages on the topic that have the sign.
        """
        signs = [sign for called, sign in self._last if called]
        n, found = len(signs), sum(signs)
        of_others = (self._others[1] + 1) / (self._others[0] + 2)
        if n < _LEAST or of_topic <= of_others:
            return ""
        expected = _WRONG * of_topic + (1 - _WRONG) * of_others
        if found / n + _SURE * sqrt(expected * (1 - expected) / n) >= expected:
            return ""
        return (
            f"of the last {len(self._last)} pages {n} were called relevant, and {found} of these have {self.name}, "
            f"where at least {round(expected * n)} would if half of them were: the model may be wrong; give more "
            "examples or keywords"
        )


def missed(recognised: int, n: int) -> str:
    """Return a sentence if most of n examples are not recognised by a model trained without them, else ``""``.

    >>> missed(1, 3)[:83]
    'of 3 examples 1 would be called relevant if the model had not been trained on them:'
    """
    if 2 * recognised >= n:
        return ""
    return (
        f"of {n} examples {recognised} would be called relevant if the model had not been trained on them: it may miss "
        "most of the topic; give more examples or keywords"
    )


def in_common(examples: Sequence[Bag], pages: Sequence[Bag]) -> float:
    """Return the mean similarity of two examples, without what is common to all pages: below 0 if there is nothing
    else.

    It is the cosine of TF-IDF vectors after subtracting the mean of the pages.

    Examples
    --------
    >>> wine, other = (Bag.of(f"the page {word}") for word in ("wine", "steel"))
    >>> in_common([wine, wine], [other] * 9 + [wine]) > 0.9, in_common([wine, other], [wine, other] * 9) < 0
    (True, True)
    """
    words = Words([*examples, *pages])
    X = words.matrix(examples).toarray() - np.asarray(words.matrix(pages).mean(axis=0)).ravel()
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    n = len(examples)
    return float(((X.sum(axis=0) ** 2).sum() - (X**2).sum()) / (n * (n - 1)))


class Halves:
    """Two models of the examples, each of which uses one half of the words: if both agree, the topic is likely.

    Words in both models are common to examples and page; agreement of one may be chance. They do not learn from pages
    that were called relevant, only from those least similar to the examples.

    Parameters
    ----------
    examples, labels
        The examples, ``ON`` or ``OFF``.
    pages, order
        Pages that were seen, and their numbers, the least similar to the examples first.

    Attributes
    ----------
    of_topic
        Share of examples on the topic where both agree, without training on them.
    """

    def __init__(
        self, examples: Sequence[Bag], labels: NDArray[np.int8], pages: Sequence[Bag], order: NDArray[np.intp]
    ) -> None:
        bags = [*examples, *(pages[i] for i in order[: len(order) // 3])]
        on = np.concatenate([labels == ON, np.zeros(len(bags) - len(labels), np.bool_)])
        positive = on.astype(np.float64)
        (these,) = np.nonzero(on)
        self._words = Words([*examples, *pages])
        X = self._words.matrix(bags)
        self._models: list[tuple[NDArray[np.float64], float]] = []  # weights, and the lowest sufficient score
        held_out = np.empty((2, len(these)))
        for half in (0, 1):
            mine = X * (self._words.numbers % 2 == half)
            K = (mine @ mine.T).toarray()
            for fold in range(min(_FOLDS, len(these))):
                out = np.zeros(len(bags), np.bool_)
                out[these[fold::_FOLDS]] = True
                i, alphas, bias = fit(K, positive * ~out, 1.0 - positive, on)
                held_out[half, fold::_FOLDS] = K[np.ix_(out, i)] @ alphas + bias
            i, alphas, bias = fit(K, positive, 1.0 - positive, on)
            least = float(np.quantile(held_out[half], _LOWEST))
            self._models.append((mine[i].T @ alphas, least - bias))
        enough = [held_out[half] >= least for half, least in enumerate(np.quantile(held_out, _LOWEST, axis=1))]
        self.of_topic = float((enough[0] & enough[1]).sum() + 0.5) / (len(these) + 1)

    def agree(self, bag: Bag) -> bool:
        """Whether both find a page on the topic."""
        x = self._words.matrix([bag])
        return all(float((x @ weights)[0]) >= least for weights, least in self._models)


_FOLDS = 10
_LOWEST = 0.1  # share of the examples that a model may miss
