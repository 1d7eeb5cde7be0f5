"""A model of a topic whose probabilities fit the frequency of the topic in the crawl.

A classifier that was trained on as many pages on a topic as off it assumes that frequency everywhere. If the topic is
rare, most of the pages that it calls relevant are not. The comparison of two pages stays valid, though: only the
log-odds of all pages are too high, by one number.
"""

from __future__ import annotations

from collections import deque
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.topic.relevance import log_odds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.mission import Topic

_FIRST = 25  # pages before the first estimate; again whenever they are half as many more
_KEPT = 1_000  # pages, the last
_USUAL, _BEFORE = 0.05, 10.0  # how frequent a topic is before any page was seen, and for how many pages that counts
_MOST_FREQUENT = 0.5
_WINDOW, _ALL = 100, 0.85  # the last pages, and the share of them called relevant that indicates a problem
_ROUNDS = 100
_MOST = 30.0  # log-odds beyond which floats hardly distinguish a probability from 0 or 1


class ShiftedRelevance:
    """The probabilities of a model, at the frequency of the topic among the pages that were seen.

    That frequency is estimated by expectation maximization over the last 1,000 pages, without labels. Pages count by
    their probability at the current estimate, and 10 prior pages are added, of which 5 % are on the topic. It is one
    half at most, as among the examples: a crawl goes where the model finds the topic, even where it errs, and a
    higher frequency would make it more certain of its errors. The order of texts is that of the model.

    Parameters
    ----------
    model
        A model that assumes equal frequencies, such as :class:`~scrapy_focus.topic.relevance.LinearRelevance`.
    frequency
        The share of pages on the topic, if it is known.

    Raises
    ------
    ConfigError
        If the frequency is not a share between 0 and 1.

    Attributes
    ----------
    frequency
        As estimated or given; ``None`` before the first estimate, while probabilities are those of the model.
    refits
        How often it was estimated.
    alarm
        A sentence if nearly all of the last 100 pages were called relevant, else ``""``.

    Notes
    -----
    A page takes some microseconds besides its score. *Memory*: 8 KB.

    References
    ----------
    Saerens, Latinne, Decaestecker: Adjusting the Outputs of a Classifier to New a Priori Probabilities. Neural
    Computation 14 (2002).

    Examples
    --------
    >>> from scrapy_focus.topic.relevance import LinearRelevance
    >>> wine = ["Red wine from grapes", "The grapes of Burgundy", "White wine, dry"]
    >>> other = ["The price of steel", "Red cars are sold", "A history of the railway"]
    >>> model = ShiftedRelevance(LinearRelevance().fit(wine + other, [True] * 3 + [False] * 3))
    >>> texts = ["a dry wine of Burgundy", "steel for the railway"]
    >>> before = model.score(texts)
    >>> for _ in range(100):
    ...     model.see("steel for the railway")
    >>> after = model.score(texts)
    >>> model.frequency < 0.1, bool((after < before).all()), bool(after[0] > after[1])
    (True, True, True)
    """

    def __init__(self, model: Topic, *, frequency: float | None = None) -> None:
        if frequency is not None and not 0 < frequency < 1:
            raise ConfigError(f"frequency is {frequency!r}; it takes a share between 0 and 1, or None")
        self.model = model
        self.frequency = self._known = frequency
        self.refits = 0
        self.alarm = ""
        self._odds: deque[float] = deque(maxlen=_KEPT)  # of pages, by the model
        self._called: deque[bool] = deque(maxlen=_WINDOW)  # whether each was called relevant
        self._seen = 0
        self._next = _FIRST

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the probability that each text is on the topic, shape (len(texts),)."""
        scores = self.model.score(texts)
        return scores if self.frequency is None else _probabilities(_odds(scores) + log_odds(self.frequency))

    def see(self, text: str, host: str = "") -> None:
        """Learn from a fetched page, before it is scored."""
        odds = float(_odds(self.model.score([text]))[0])
        self._odds.append(odds)
        self._called.append(odds + (0.0 if self.frequency is None else log_odds(self.frequency)) >= 0)
        self._seen += 1
        if not self.alarm and sum(self._called) >= _ALL * _WINDOW:
            self.alarm = (
                f"of the last {_WINDOW} pages {sum(self._called)} were called relevant, as most are where a model "
                "cannot tell pages apart: look at some, and give those that are not on the topic as negative examples, "
                "or keywords"
            )
        if self._known is None and self._seen >= self._next:
            self._next += max(self._next // 2, 1)
            self._estimate()

    def state(self) -> dict[str, Any]:
        """Return the state learned from pages."""
        names = ("frequency", "refits", "alarm", "_seen", "_next")
        last = {"_odds": np.array(self._odds), "_called": np.array(self._called, np.bool_)}
        return {name: getattr(self, name) for name in names} | last

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of an object with the same model."""
        self.__dict__.update(
            state, _odds=deque(state["_odds"].tolist(), _KEPT), _called=deque(state["_called"].tolist(), _WINDOW)
        )

    @cached_property
    def digest(self) -> str:
        """Identifies the model and the known frequency."""
        return blake2b(f"shifted {self.model.digest} {self._known}".encode(), digest_size=16).hexdigest()

    def __repr__(self) -> str:
        return f"ShiftedRelevance({self.model!r}, frequency={self.frequency}, {self._seen:,} pages seen)"

    def _estimate(self) -> None:
        odds = np.array(self._odds)
        share = 0.5 if self.frequency is None else self.frequency
        for _ in range(_ROUNDS):
            on = float(_probabilities(odds + log_odds(share)).sum())
            share, before = min((on + _BEFORE * _USUAL) / (len(odds) + _BEFORE), _MOST_FREQUENT), share
            if abs(share - before) < 1e-5:
                break
        self.frequency = share
        self.refits += 1


def _odds(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = np.clip(probabilities, 1e-9, 1 - 1e-9)
    odds: NDArray[np.float64] = np.log(inside / (1 - inside))
    return odds


def _probabilities(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(odds, -_MOST, _MOST)))
    return probabilities
