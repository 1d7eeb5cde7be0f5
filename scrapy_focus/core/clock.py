"""The time in a crawl: policies and journals receive it, and never read a clock."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from scrapy_focus.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self


class Clock:
    """Seconds since the epoch that never decrease.

    It follows the machine's time. If that is set back, the seconds continue from the last value until the machine's
    time has caught up.

    Parameters
    ----------
    machine
        The machine's time, in seconds since the epoch.
    steady
        Seconds from any starting point, by a clock that nobody sets.

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
        """Never return less than a time that an earlier run of the crawl received."""
        self._said = max(self(), at)


class FastClock:
    """Seconds since the epoch that run faster than the machine's, so that days take minutes.

    Two processes on one machine that build it from the same three numbers, or from its text, get the same time.

    Parameters
    ----------
    speed
        Its seconds per second of the machine.
    begin
        Its time at the start.
    since
        The machine's time at that start; now by default.
    machine
        The machine's time, in seconds since the epoch.

    Raises
    ------
    ConfigError
        If the speed is not positive.

    Examples
    --------
    >>> clock = FastClock(1440.0, begin=1000.0, since=5.0, machine=lambda: 65.0)
    >>> clock()
    87400.0
    >>> FastClock.of(str(clock)).speed
    1440.0
    """

    def __init__(
        self, speed: float, begin: float, since: float | None = None, *, machine: Callable[[], float] = time.time
    ) -> None:
        if not (math.isfinite(speed) and speed > 0 and math.isfinite(begin)):
            raise ConfigError(f"a clock of speed {speed} from {begin}: the speed is a number above 0, such as 1440")
        self.speed = speed
        self.begin = begin
        self.since = machine() if since is None else since
        self._machine = machine

    def __call__(self) -> float:
        """Return the time."""
        return self.begin + (self._machine() - self.since) * self.speed

    def __str__(self) -> str:
        return f"{self.speed!r} {self.begin!r} {self.since!r}"

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the clock that a text describes.

        Raises
        ------
        ConfigError
            If the text does not describe one.
        """
        try:
            speed, begin, since = map(float, text.split())
        except ValueError:
            raise ConfigError(
                f"{text!r} is not a clock; give its speed, its beginning and the machine's time then, such as "
                "'1440 0 1767571200'"
            ) from None
        return cls(speed, begin, since)


def speed_of(clock: Callable[[], float] | None) -> float:
    """Return how many seconds of a clock pass in one second of the machine."""
    return clock.speed if isinstance(clock, FastClock) else 1.0
