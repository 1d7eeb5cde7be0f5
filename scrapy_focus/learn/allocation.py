"""When to revisit each of many pages, so that visits use up a budget and keep copies current.

The value of a visit depends on the time since the last one: V(t) below, in seconds that a copy of weight 1 is current
because of the visit. It grows with t. A plan is one number: the threshold at which visits use the whole budget, if
each page is visited when its V reaches it. Rates are never known, so V is the mean over the possible rates of a page.
A plan that treats estimates as the truth can be worse than equal intervals.

The best plan for the share of time in which copies are current gives up pages that change too fast to be kept. They
would be months old. So V has a part that grows with the age of a copy, which counts where the first part does not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from scrapy_focus.learn.changes import DAY, RATES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scrapy_focus.learn.changes import Changes

#: The thresholds for which a plan tracks the visits, in target-seconds; shape (73,).
THRESHOLDS: Final = np.geomspace(1e-6, 1e12, 73)
_WAITS = np.geomspace(1.0, 1e8, 57)  # seconds
_LOG_WAITS = np.log(_WAITS)
_LOG_THRESHOLDS = np.log(THRESHOLDS)
_PARTS = 2.0**40  # visits a second are whole multiples of this, so that subtractions are exact


class Plan:
    """Tracks, for each of many thresholds, how many visits a second all pages together would take.

    A page is added with its record, and removed with the same record before that is changed, each in some 20
    microseconds, however many pages there are.

    V(t) = weight * (F + sqrt(F^2 + 4 age A)) / 2 + worth * births * t^2 / 2, where F is the mean over the rates r of
    (1 - exp(-r t) (1 + r t)) / r, and A that of t^2 / 2 - F(r) / r.

    Parameters
    ----------
    changes
        Statistics of how pages change.
    shortest, longest
        Minimum and maximum seconds between two visits of a page, whatever the budget.
    worth
        Value of knowing a new link one second earlier.
    age
        Weight of the age of a copy: 0 to count only the share of time in which copies are current.
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
        self._read: tuple[bytes, NDArray[np.float64]] = (b"", _LOG_WAITS)

    def replace(self, before: np.void | None, after: np.void | None) -> None:
        """Replace the record of a page in the plan. ``None``: it was not, or is no longer, in the plan.

        ``before`` must equal, to the last bit, the record that the page was added with.
        """
        if before is not None:
            self.pages -= 1
            self._visits -= self._takes(before)
        if after is not None:
            self.pages += 1
            self._visits += self._takes(after)

    def add(self, record: np.void) -> None:
        """Add a page to the plan."""
        self.replace(None, record)

    def remove(self, record: np.void) -> None:
        """Remove a page from the plan; its record must be the one that it was added with."""
        self.replace(record, None)

    def threshold(self, visits: float) -> float:
        """Return the V at which to visit pages, so that all together take so many visits a second.

        The smallest threshold if the budget is more than enough for all, and the largest if it is too small even for
        the longest intervals.
        """
        taken = -np.log(np.maximum(self._visits, 1) / _PARTS)
        return math.exp(np.interp(-math.log(max(visits, 1e-300)), taken, _LOG_THRESHOLDS))

    def visits(self, threshold: float) -> float:
        """Return how many visits a second the pages take at a threshold."""
        taken = np.log(np.maximum(self._visits, 1) / _PARTS)
        return math.exp(np.interp(math.log(threshold), _LOG_THRESHOLDS, taken))

    def interval(self, record: np.void, threshold: float) -> float:
        """Return how many seconds after its last visit a page is due."""
        if record["weight"] == 0:
            wait = math.sqrt(2 * threshold / self._births(record))
        else:
            wait = math.exp(np.interp(math.log(threshold), self._log_values(record), _LOG_WAITS))
        return min(max(wait, self.shortest), self.longest)

    def values(
        self, records: NDArray[np.void], seconds: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return V of n pages so many seconds after their last visits, and the expected finds of a visit.

        Both of shape (n,). Finds are outdated copies, by their weight, and new links.
        """
        t = np.maximum(seconds, 0.0)
        births, weights = self.worth * self.changes.all_births(records), records["weight"].astype(np.float64)
        if not weights.any():
            return births * t**2 / 2, births * t
        odds = self.changes.posteriors(records)
        place = np.clip(np.log(np.maximum(t, 1.0)) * _FINENESS, 0.0, len(_FINE) - 1.001)
        low = place.astype(np.int64)
        parts = _FINE[low] + (_FINE[low + 1] - _FINE[low]) * (place - low)[:, None, None]
        fresh, age, changed = np.minimum(t, 1.0) * np.einsum("ikj,ij->ki", parts, odds)
        return self._value(weights, fresh, age, births * t**2 / 2), weights * changed + births * t

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": (b"", _LOG_WAITS)}

    def _takes(self, record: np.void) -> NDArray[np.int64]:
        """Return how many visits a page takes at each threshold, in parts of a visit a second."""
        if record["weight"] == 0:
            waits = _ROOTS / math.sqrt(self._births(record))
        else:
            waits = np.exp(np.interp(_LOG_THRESHOLDS, self._log_values(record), _LOG_WAITS))
        np.minimum(np.maximum(waits, self.shortest, out=waits), self.longest, out=waits)
        return (_PARTS / waits).astype(np.int64)

    def _births(self, record: np.void) -> float:
        return max(self.worth * self.changes.births(record), 1e-300)

    def _log_values(self, record: np.void) -> NDArray[np.float64]:
        """Return log V after each of the intervals; the last record is cached."""
        key = record.tobytes()
        if self._read[0] != key:
            fresh, age = self.changes.posterior(record) @ _VALUES
            values = self._value(float(record["weight"]), fresh, age, self._births(record) * _SQUARES)
            self._read = (key, np.log(np.maximum(values, 1e-300, out=values), out=values))
        return self._read[1]

    def _value(
        self, weight: Any, fresh: NDArray[np.float64], age: NDArray[np.float64], births: Any
    ) -> NDArray[np.float64]:
        copies = weight / 2 * (fresh + np.sqrt(fresh * fresh + 4 * self.age * age))
        both: NDArray[np.float64] = copies + births
        return both


def _parts(seconds: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return F and A for each interval and each rate, both of shape (n, 16), for intervals of shape (n, 1).

    By series where differences would be lost in rounding.
    """
    x = RATES * seconds
    small = np.minimum(x, 0.01)
    fresh = np.where(x < 0.01, small**2 / 2 - small**3 / 3 + small**4 / 8, 1 - np.exp(-x) * (1 + x))
    age = np.where(x < 0.01, small**3 / 3 - small**4 / 8 + small**5 / 30, x**2 / 2 - fresh)
    return fresh / RATES, age / RATES**2


_VALUES = np.stack([part.T for part in _parts(_WAITS[:, None])])  # shape (2, 16, 57)
_SQUARES = _WAITS**2 / 2
_ROOTS = np.sqrt(2 * THRESHOLDS)
_FINENESS = 40 / math.log(10)  # places for each step of the logarithm of the interval, in _FINE
_FINE = np.exp(np.arange(321) / _FINENESS)[:, None]
_FINE = np.stack([*_parts(_FINE), -np.expm1(-RATES * _FINE)], axis=1)  # shape (321, 3, 16)
