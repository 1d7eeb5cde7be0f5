"""When to visit each of many pages again, so that a budget of visits is used up and keeps what is stored current.

What a visit is worth depends on how long ago the last one was: V(t) below, in seconds for which a copy of weight 1 is
current that would not be otherwise. It grows with t. A plan is one number: the threshold at which pages that are
visited whenever their V reaches it, take the whole budget. Rates are never known, so V is the mean over what a page's
rate may be. A plan that takes estimates for the truth is worse than equal intervals.

The best plan for the share of time in which copies are current gives up pages that change too fast to be kept. They
would be months old. So V has a part that grows with the age of a copy, and that counts where the first one does not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from scrapy_focus.learn.changes import DAY, RATES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scrapy_focus.learn.changes import Changes

THRESHOLDS: Final = np.geomspace(1e-9, 1e15, 97)  # target-seconds, shape (97,)
_WAITS = np.geomspace(10.0, 1e9, 81)  # seconds
_LOG_WAITS = np.log(_WAITS)
_LOG_THRESHOLDS = np.log(THRESHOLDS)
_PARTS = 2.0**44  # visits a second are whole numbers of these parts: what is taken off is what was added


class Plan:
    """Keeps, for each of many thresholds, how many visits a second all pages together would take.

    A page is added with its record, and taken off with the same record before that is changed, each in some 20
    microseconds, however many pages there are.

    V(t) = weight * (F + sqrt(F^2 + 4 age A)) / 2 + worth * births * t^2 / 2, where F is the mean over the rates r of
    (1 - exp(-r t) (1 + r t)) / r, and A that of t^2 / 2 - F(r) / r.

    Parameters
    ----------
    changes
        What is known of how pages change.
    shortest, longest
        Seconds that lie between two visits of a page at least and at most, whatever the budget.
    worth
        What a second is worth by which a new link is known earlier.
    age
        How much the age of a copy counts: 0 for the share of time in which copies are current, and nothing else.
    """

    def __init__(
        self,
        changes: Changes,
        *,
        shortest: float = 600.0,
        longest: float = 90 * DAY,
        worth: float = 1.0,
        age: float = 0.05,
    ) -> None:
        if not 0 < shortest <= longest < math.inf:
            raise ValueError(f"shortest={shortest!r} and longest={longest!r} are not seconds: 0 < shortest <= longest")
        self.changes, self.shortest, self.longest, self.worth, self.age = changes, shortest, longest, worth, age
        self.pages = 0
        self._visits = np.zeros(len(THRESHOLDS), dtype=np.int64)

    def add(self, record: np.void) -> None:
        """Plan for a page from now on."""
        self.pages += 1
        self._visits += self._takes(record)

    def remove(self, record: np.void) -> None:
        """Plan for a page no longer; its record must be what it was when it was added."""
        self.pages -= 1
        self._visits -= self._takes(record)

    def threshold(self, visits: float) -> float:
        """Return the V at which to visit pages, so that all together take so many visits a second.

        The smallest threshold where there is more than enough for all, and the largest where there is too little even
        for the longest waits.
        """
        taken = np.maximum(self._visits, 1) / _PARTS
        return math.exp(np.interp(-math.log(max(visits, 1e-300)), -np.log(taken), _LOG_THRESHOLDS))

    def visits(self, threshold: float) -> float:
        """Return how many visits a second the pages take at a threshold."""
        taken = np.maximum(self._visits, 1) / _PARTS
        return math.exp(np.interp(math.log(threshold), _LOG_THRESHOLDS, np.log(taken)))

    def interval(self, record: np.void, threshold: float) -> float:
        """Return how many seconds after its last visit a page is to be visited again."""
        wait = np.interp(math.log(threshold), self._log_values(record), _LOG_WAITS)
        return min(max(math.exp(wait), self.shortest), self.longest)

    def value(self, record: np.void, seconds: float) -> float:
        """Return V: what a visit is worth so many seconds after the last."""
        if seconds <= 0:
            return 0.0
        return math.exp(np.interp(math.log(seconds), _LOG_WAITS, self._log_values(record)))

    def _takes(self, record: np.void) -> NDArray[np.int64]:
        waits = np.exp(np.interp(_LOG_THRESHOLDS, self._log_values(record), _LOG_WAITS))
        return np.rint(_PARTS / np.clip(waits, self.shortest, self.longest)).astype(np.int64)

    def _log_values(self, record: np.void) -> NDArray[np.float64]:
        """Return log V after each of the waits."""
        fresh, age = self.changes.posterior(record) @ _VALUES
        values = float(record["weight"]) / 2 * (fresh + np.sqrt(fresh**2 + 4 * self.age * age))
        values += self.worth * self.changes.births(record) * _SQUARES
        logs: NDArray[np.float64] = np.log(np.maximum(values, 1e-300))
        return logs


def _values() -> NDArray[np.float64]:
    """Return what a visit is worth for each rate after each wait, to copies being current and to their age.

    Shape (2, 16, 81). By series where the differences would be lost in rounding.
    """
    r, t = RATES[:, None], _WAITS
    x = r * t
    small = np.minimum(x, 0.01)
    fresh = np.where(x < 0.01, small**2 / 2 - small**3 / 3 + small**4 / 8, 1 - np.exp(-x) * (1 + x))
    age = np.where(x < 0.01, small**3 / 3 - small**4 / 8 + small**5 / 30, x**2 / 2 - fresh)
    return np.stack([fresh / r, age / r**2])


_VALUES = _values()
_SQUARES = _WAITS**2 / 2
