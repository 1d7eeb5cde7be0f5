"""What time it is in a crawl: told to policies and journals, and never read by them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class FastClock:
    """Seconds since the epoch that pass faster than they do, from now on.

    Parameters
    ----------
    speed
        How many of its seconds pass in one.
    """

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._begin = time.time()
        self._since = time.monotonic()

    def __call__(self) -> float:
        """Return the time."""
        return self._begin + self.speed * (time.monotonic() - self._since)


class Clock:
    """Seconds since the epoch that never go back.

    It is the machine's time. Where that is behind what this clock said before, since somebody set it back, the seconds
    pass on from what it said, until the machine's time has caught up.

    Parameters
    ----------
    machine
        The machine's time, in seconds since the epoch.
    steady
        Seconds since any time, by a clock that nobody sets.

    Examples
    --------
    >>> machine, steady = [1000.0], [5.0]
    >>> clock = Clock(lambda: machine[0], lambda: steady[0])
    >>> clock()
    1000.0
    >>> machine[0], steady[0] = 400.0, 15.0
    >>> clock()
    1010.0
    """

    def __init__(self, machine: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._machine = machine
        self._steady = steady
        self._said = machine()
        self._since = steady()

    def __call__(self) -> float:
        """Return the time."""
        machine, steady = self._machine(), self._steady()
        if machine < self._said:
            machine = self._said + max(0.0, steady - self._since)
        self._said, self._since = machine, steady
        return machine

    def not_before(self, at: float) -> None:
        """Be no earlier than a time that an earlier run of the crawl was told."""
        self._said = max(self(), at)
