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
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from scrapy_focus.learn.changes import DAY, RATES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scrapy_focus.learn.changes import Changes

#: The thresholds for which a plan knows the visits that they take, in target-seconds; shape (73,).
THRESHOLDS: Final = np.geomspace(1e-6, 1e12, 73)
_WAITS = np.geomspace(1.0, 1e8, 57)  # seconds
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
        self._read: tuple[bytes, NDArray[np.float64]] = (b"", _VALUES[0])

    def replace(self, before: np.void | None, after: np.void | None) -> None:
        """Plan for a page by another record than before. ``None``: it was not, or is no longer, planned for.

        ``before`` must be, to the last bit, what the page was planned for with.
        """
        if before is not None and after is not None:
            old, new = self._takes(before, after)
            self._visits += new - old
        elif after is not None:
            self.pages += 1
            self._visits += self._takes(after)[0]
        elif before is not None:
            self.pages -= 1
            self._visits -= self._takes(before)[0]

    def add(self, record: np.void) -> None:
        """Plan for a page from now on."""
        self.replace(None, record)

    def remove(self, record: np.void) -> None:
        """Plan for a page no longer; its record must be what it was planned for with."""
        self.replace(record, None)

    def threshold(self, visits: float) -> float:
        """Return the V at which to visit pages, so that all together take so many visits a second.

        The smallest threshold where there is more than enough for all, and the largest where there is too little even
        for the longest waits.
        """
        taken = -np.log(np.maximum(self._visits, 1) / _PARTS)
        return math.exp(np.interp(-math.log(max(visits, 1e-300)), taken, _LOG_THRESHOLDS))

    def visits(self, threshold: float) -> float:
        """Return how many visits a second the pages take at a threshold."""
        taken = np.log(np.maximum(self._visits, 1) / _PARTS)
        return math.exp(np.interp(math.log(threshold), _LOG_THRESHOLDS, taken))

    def interval(self, record: np.void, threshold: float) -> float:
        """Return how many seconds after its last visit a page is to be visited again."""
        if record["weight"].item() == 0:
            wait = math.sqrt(2 * threshold / max(self.worth * self.changes.births(record), _TINY))
        else:
            wait = math.exp(np.interp(math.log(threshold), self._log_values(record)[0], _LOG_WAITS))
        return min(max(wait, self.shortest), self.longest)

    def values(
        self, records: NDArray[np.void], seconds: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return V of n pages so many seconds after their last visits, and what a visit is expected to find.

        Both of shape (n,). What is found are copies that are no longer current, by their weight, and new links.
        """
        t = np.maximum(seconds, 0.0)
        births, weights = self.worth * self.changes.all_births(records), records["weight"].astype(np.float64)
        if not weights.any():
            return births * t**2 / 2, births * t
        odds = self.changes.posteriors(records)
        fresh, age = ((odds * part).sum(axis=1) for part in _parts(t[:, None]))
        changed = (odds * -np.expm1(-RATES * t[:, None])).sum(axis=1)
        return self._value(weights, fresh, age, births * t**2 / 2), weights * changed + births * t

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": (b"", _VALUES[0])}

    def _takes(self, *records: np.void) -> NDArray[np.int64]:
        """Return how many visits each page takes at each threshold, in parts of a visit a second; shape (n, 73)."""
        if any(record["weight"].item() for record in records):
            logs = [np.interp(_LOG_THRESHOLDS, values, _LOG_WAITS) for values in self._log_values(*records)]
            waits = np.exp(logs)
        else:
            waits = _ROOTS / np.sqrt([[max(self.worth * self.changes.births(record), _TINY)] for record in records])
        np.minimum(np.maximum(waits, self.shortest, out=waits), self.longest, out=waits)
        return (_PARTS / waits).astype(np.int64)

    def _log_values(self, *records: np.void) -> NDArray[np.float64]:
        """Return log V after each of the waits, shape (n, 57); that of the last record is remembered."""
        if len(records) == 1 and self._read[0] == records[0].tobytes():
            return self._read[1]
        fresh, age = np.stack([self.changes.posterior(record) @ _VALUES for record in records], axis=1)
        births = np.array([[self.changes.births(record)] for record in records])
        weights = np.array([[float(record["weight"])] for record in records])
        values = np.log(np.maximum(self._value(weights, fresh, age, self.worth * births * _SQUARES), 1e-300))
        self._read = (records[-1].tobytes(), values[-1:])
        return values

    def _value(
        self, weight: Any, fresh: NDArray[np.float64], age: NDArray[np.float64], births: Any
    ) -> NDArray[np.float64]:
        copies = weight / 2 * (fresh + np.sqrt(fresh * fresh + 4 * self.age * age))
        both: NDArray[np.float64] = copies + births
        return both


def _parts(seconds: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return F and A for each wait and each rate, both of shape (n, 16), for waits of shape (n, 1).

    By series where differences would be lost in rounding.
    """
    x = RATES * seconds
    small = np.minimum(x, 0.01)
    fresh = np.where(x < 0.01, small**2 / 2 - small**3 / 3 + small**4 / 8, 1 - np.exp(-x) * (1 + x))
    age = np.where(x < 0.01, small**3 / 3 - small**4 / 8 + small**5 / 30, x**2 / 2 - fresh)
    return fresh / RATES, age / RATES**2


_VALUES = np.stack([part.T for part in _parts(_WAITS[:, None])])  # shape (2, 16, 57)
_SQUARES = _WAITS**2 / 2
_TINY = 1e-300
_ROOTS = np.sqrt(2 * THRESHOLDS)
