"""How often links of a value led to something: a number that a person can read, next to one that ranks."""

from __future__ import annotations

import numpy as np

_KEPT = 400  # results, the newest
_ALIKE = 40  # the results with the closest values that are averaged
_BEFORE = 4.0  # results that the value itself counts for, if it is a probability


class Chances:
    """The share of relevant pages among the results of links with similar values.

    The values of a network order links, and are sums over later rewards. Their meaning is learned from the last 400
    results: it takes 6 kB. Choices do not use it.

    Examples
    --------
    >>> chances = Chances()
    >>> round(chances.of(0.8), 2)
    0.8
    >>> for _ in range(100):
    ...     chances.add(1.2, True)
    ...     chances.add(0.3, False)
    >>> round(chances.of(1.1), 2), round(chances.of(0.3), 2)
    (1.0, 0.03)
    """

    def __init__(self) -> None:
        self._values = np.zeros(_KEPT, np.float64)
        self._relevant = np.zeros(_KEPT, np.bool_)
        self._n = 0

    def add(self, value: float, relevant: bool) -> None:
        """Learn whether the result of a link of this value was relevant."""
        at = self._n % _KEPT
        self._values[at], self._relevant[at] = value, relevant
        self._n += 1

    def of(self, value: float) -> float:
        """Return the probability that the result of a link of this value is relevant, from 0 to 1."""
        n = min(self._n, _KEPT)
        closest = np.argsort(np.abs(self._values[:n] - value), kind="stable")[:_ALIKE]
        found = float(np.count_nonzero(self._relevant[:n][closest]))
        return (found + _BEFORE * min(max(value, 0.0), 1.0)) / (len(closest) + _BEFORE)
