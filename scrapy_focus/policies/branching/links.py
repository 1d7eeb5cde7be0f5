"""The value of one link: by the record of its arm, and by its prediction relative to similar links.

An arm holds links of one place, and its record shows the results of its pulls. Its links still differ in their words,
and so do those of several arms of about the same value. A classifier distinguishes them, but its prediction is not a
reward: it only counts relative to the predictions for links picked before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.policies.branching.arms import PAGES, RENDERINGS, TARGETS
from scrapy_focus.policies.branching.logistic import chances

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WINDOW = 60.0  # picks of an arm, and ...
_OF_KIND = 200.0  # ... of all arms of a kind, over which predictions are averaged
_SHRINK = 2.0  # picks that the mean of its kind counts for in that of an arm
_FIRST = {PAGES: 0.2, TARGETS: 0.8, RENDERINGS: 0.2}  # the mean of a kind before the first pick, counting as one pick
_MOST_TIMES = 4.0  # largest factor between the values of a link and its arm
_TIE = 1e-9


class LinkScores:
    """Remembers the predictions for the links picked from each arm, and scores others relative to them.

    The index of an arm is the reward per cost of a pull, averaged over the links that were picked from it. A link
    with twice their predicted probability is valued at twice the index; at most four times, and at least a fourth.
    Because the best links of an arm are picked first, the remaining ones are worth less than its record, and other
    arms get their turn before its record has declined.

    Notes
    -----
    *Memory*: 16 bytes an arm.

    Examples
    --------
    Two arms have the same value. The second one has a queued link that is more promising than those before it.

    >>> scores = LinkScores()
    >>> for _ in range(20):
    ...     scores.note(0, PAGES, 0.0)
    ...     scores.note(1, PAGES, -2.0)
    >>> kinds = np.array([PAGES, PAGES], np.int8)
    >>> scores.score(np.array([0.3, 0.3]), kinds, np.array([0, 1]), np.array([0.0, 0.0])).round(1).tolist()
    [0.3, 1.1]
    """

    def __init__(self) -> None:
        self._records = np.zeros((64, 2))  # by arm: picks, sum of the predicted probabilities
        self._of_kind = {kind: (1.0, first) for kind, first in _FIRST.items()}

    def note(self, arm: int, kind: int, odds: float) -> None:
        """Record the predicted log-odds of a link that was picked from an arm."""
        self._ensure(arm + 1)
        chance = float(chances(np.array(odds)))
        record = self._records[arm]
        if record[0] > _WINDOW:
            record *= 1 - 1 / _WINDOW
        record += 1.0, chance
        picks, total = self._of_kind[kind]
        keep = 1 - 1 / _OF_KIND if picks > _OF_KIND else 1.0
        self._of_kind[kind] = picks * keep + 1, total * keep + chance

    def score(
        self,
        indices: NDArray[np.float64],
        kinds: NDArray[np.int8],
        arms: NDArray[np.integer],
        odds: NDArray[np.floating],
    ) -> NDArray[np.float64]:
        """Return the values of links, in reward per cost, shape (k,).

        ``indices`` and ``kinds`` are those of all arms, shape (n_arms,); ``arms`` and ``odds`` are the arm and the
        predicted log-odds of each link, both of shape (k,).
        """
        self._ensure(len(kinds))
        chance = chances(odds)
        usual, times = indices[arms], self.times(kinds, arms, chance)
        scores: NDArray[np.float64] = np.where(usual < 0, usual / times, usual * times) + _TIE * chance
        return scores

    def times(
        self, kinds: NDArray[np.int8], arms: NDArray[np.integer], chance: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """Return the predictions for links relative to those of the links picked before, shape (k,)."""
        mean = np.zeros(len(_FIRST))
        for kind, (picks, total) in self._of_kind.items():
            mean[kind] = _SHRINK * (total / picks)
        its_picks, its_total = self._records[: len(kinds)].T
        usual = ((its_total + mean.take(kinds)) / (its_picks + _SHRINK)).take(arms)
        times: NDArray[np.float64] = np.minimum(np.maximum(chance / usual, 1 / _MOST_TIMES), _MOST_TIMES)
        return times

    def _ensure(self, n_arms: int) -> None:
        if n_arms > len(self._records):
            room = max(n_arms, 2 * len(self._records)) - len(self._records)
            self._records = np.concatenate([self._records, np.zeros((room, 2))])
