"""How much a crawl may use: with "100 requests" the server's log shows 100."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple, Self

from scrapy_focus.core.durations import UNITS, unit_of
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_RATE = re.compile(r"([+-]?[\d.,_e+-]+) ?(?:requests? ?)?(?:(?:/|per|an?) ?([a-z]+))?")
_LONGEST = 100  # characters of a rate
_MOST = 1e9  # requests a second
_EXAMPLES = "such as '2000/day', '50/h', '10/min' or '2/s'"


class Rate(NamedTuple):
    """How many requests may be sent in a time, on average.

    Examples
    --------
    >>> rate = Rate.of("2000/day")
    >>> str(rate), rate.interval
    ('2,000 requests a day', 43.2)
    """

    requests: float
    unit: str  # "second", "minute", "hour", "day" or "week"

    @classmethod
    def of(cls, text: object, name: str = "rate") -> Self:
        """Read a rate like ``2000/day``, ``50/h``, ``10/min`` or ``50 an hour``; ``name`` names it in errors.

        Raises
        ------
        ConfigError
            If it is not a rate, lacks the unit of time, or allows nothing.
        """
        words = " ".join(text.lower().split()) if isinstance(text, str) and len(text) <= _LONGEST else brief(text)
        n, unit = _parts(words)
        said = f"{name} is {brief(text)}"
        if math.isnan(n) or (unit and not unit_of(unit)):
            raise ConfigError(f"{said}; it takes a number of requests in a unit of time, {_EXAMPLES}")
        if not n > 0:
            raise ConfigError(f"{said}, which allows nothing; give a positive number, or no rate at all")
        if not unit:
            raise ConfigError(f"{said}: requests a day or an hour? Give '{n:.15g}/day' or '{n:.15g}/hour', say")
        unit = unit_of(unit)
        if not 1 / _MOST < UNITS[unit] / n < math.inf:
            raise ConfigError(f"{said}, which is not a rate of requests; give one {_EXAMPLES}")
        return cls(n, unit)

    @property
    def interval(self) -> float:
        """Seconds from one request to the next."""
        return UNITS[self.unit] / self.requests

    @property
    def per_second(self) -> float:
        """Requests per second."""
        return self.requests / UNITS[self.unit]

    def __str__(self) -> str:
        n = f"{self.requests:,.10g}" if self.requests == int(self.requests) else f"{self.requests:,g}"
        return f"{n} request{'s' * (self.requests != 1)} {'an' if self.unit == 'hour' else 'a'} {self.unit}"


def _parts(words: str) -> tuple[float, str]:
    """Return the number and the unit in a text: NaN without a number, ``""`` without a unit."""
    found = _RATE.fullmatch(words)
    try:
        n = float(found[1].replace(",", "").replace("_", "")) if found else math.nan
    except ValueError:
        n = math.nan
    unit = (found and found[2]) or ""
    return n, unit


class Pace:
    """Decides when the next request may be sent, so that a rate holds in the long run.

    The caller passes the time, in seconds since the epoch. Each request takes a turn, and the next turn is an
    interval later. Within any time from the first request on, at most one more request is sent than that time has
    intervals. A request that is late by less than an interval (or a second, if that is longer) takes its own turn;
    turns missed for longer are lost, so that no burst follows.

    Parameters
    ----------
    rate
        How many requests may be sent in the long run.

    Examples
    --------
    >>> pace = Pace(Rate.of("6/minute"))
    >>> pace.take(1000.0), pace.take(1012.5), pace.take(5000.0)
    (1010.0, 1020.0, 5010.0)
    """

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self._begin = -math.inf  # start of a series of turns, in seconds since the epoch
        self._turns = 0  # turns taken in that series

    @property
    def next(self) -> float:
        """When the next turn is, in seconds since the epoch."""
        return self._begin + self._turns * self.rate.interval

    def take(self, at: float) -> float:
        """Take a turn for a request that is sent now, or is about to be, and return the time of the next."""
        if at - self.next >= max(self.rate.interval, 1.0):
            self._begin, self._turns = at, 0
        self._turns += 1
        return self.next

    def give_back(self) -> None:
        """Return the turn of a request that is not sent."""
        self._turns -= 1

    def waits(self, at: float) -> bool:
        """Whether the next turn is in the future."""
        return at < self.next

    def state(self) -> dict[str, float]:
        """Return the state, for :meth:`restore`."""
        begun = {"row": self._begin, "turns": self._turns} if math.isfinite(self._begin) else {}
        return {**begun, "interval": self.rate.interval}

    def restore(self, state: Mapping[str, float]) -> None:
        """Adopt the state of another pace; if its rate differed, the next turn is an interval after its last one."""
        self._begin, self._turns = state.get("row", -math.inf), int(state.get("turns", 0))
        interval = state.get("interval", self.rate.interval)
        if interval != self.rate.interval and self._turns:
            self._begin, self._turns = self._begin + (self._turns - 1) * interval, 1


class Budget:
    """Counts all requests of every kind, and reports what is used up.

    :meth:`left` is called at the last moment before a request is sent, whatever made it: a pick, its redirect or
    retry, a HEAD, robots.txt. A refused request is not sent, so the number of requests is exact. Bytes and seconds
    are counted as they arrive. A driver may stop what is in flight when the bytes run out; what arrived of it counts.

    Parameters
    ----------
    requests
        Requests of all kinds.
    bytes
        Bytes received, headers and bodies, as sent over the network.
    seconds
        Seconds of wall-clock time since the crawl started, over all its runs.
    rate
        Requests of all kinds in a time, on average: ``"2000/day"``, or a :class:`Rate`. It does not end a crawl but
        paces it: the next link is chosen when its turn comes (:attr:`pace`). Redirects, retries and robots.txt cannot
        be delayed; they are sent at once, and take one of the later turns.
    """

    def __init__(
        self,
        *,
        requests: int | None = None,
        bytes: int | None = None,
        seconds: float | None = None,
        rate: Rate | str | None = None,
    ) -> None:
        for name, value in (("requests", requests), ("bytes", bytes), ("seconds", seconds)):
            if value is not None and not value > 0:
                raise ConfigError(f"a budget of {value} {name} allows nothing; give a positive number, or none at all")
        self.requests = None if requests is None else int(requests)
        self.bytes = None if bytes is None else int(bytes)
        self.seconds = None if seconds is None else float(seconds)
        rate = Rate.of(rate, "the rate of a budget") if isinstance(rate, str) else rate
        self.pace = None if rate is None else Pace(rate)
        self.requests_used = 0
        self.bytes_used = 0
        self.seconds_before = 0.0
        self._clock: Callable[[], float] | None = None
        self._started = 0.0

    def start(self, clock: Callable[[], float]) -> None:
        """Start the clock, in seconds of this clock."""
        self._clock = clock
        self._started = clock()

    @property
    def seconds_used(self) -> float:
        """Seconds since the crawl started, over all its runs."""
        return self.seconds_before + (self._clock() - self._started if self._clock else 0.0)

    def left(self, reserved: int = 0) -> bool:
        """Whether one more request may be sent, or reserved while ``reserved`` others are unsent."""
        return self.requests is None or self.requests_used + reserved < self.requests

    @property
    def rate(self) -> Rate | None:
        """How many requests may be sent in the long run; ``None``: no limit."""
        return None if self.pace is None else self.pace.rate

    def take_turn(self, at: float) -> None:
        """Take a turn for a request that is about to be sent: under a rate, the next link is delayed."""
        if self.pace is not None:
            self.pace.take(at)

    def give_back_turn(self) -> None:
        """Return the turn of a request that is not sent."""
        if self.pace is not None:
            self.pace.give_back()

    def next_turn(self, at: float) -> float | None:
        """When the next link may be chosen, in seconds since the epoch; ``None``: now, without a limit."""
        return self.pace.next if self.pace is not None and self.pace.waits(at) else None

    def exhausted(self) -> str:
        """Return what is used up (``"requests"``, ``"bytes"``, ``"seconds"``), or ``""``."""
        if self.requests is not None and self.requests_used >= self.requests:
            return "requests"
        if self.bytes is not None and self.bytes_used >= self.bytes:
            return "bytes"
        if self.seconds is not None and self.seconds_used >= self.seconds:
            return "seconds"
        return ""

    @property
    def limits(self) -> dict[str, float | None]:
        """The limits, ``None`` for no limit."""
        return {"requests": self.requests, "bytes": self.bytes, "seconds": self.seconds}

    def state(self) -> dict[str, float]:
        """What was used so far, for :meth:`restore` in the next run."""
        used = {"requests": self.requests_used, "bytes": self.bytes_used, "seconds": self.seconds_used}
        return used if self.pace is None else {**used, **self.pace.state()}

    def restore(self, state: Mapping[str, float]) -> None:
        """Continue from the usage in a saved state."""
        self.requests_used = int(state["requests"])
        self.bytes_used = int(state["bytes"])
        self.seconds_before += float(state["seconds"]) - self.seconds_used
        if self.pace is not None:
            self.pace.restore(state)

    def __repr__(self) -> str:
        limits = [f"{getattr(self, name):,} {name}" for name in ("requests", "bytes", "seconds") if getattr(self, name)]
        limits += [] if self.rate is None else [f"at most {self.rate}"]
        return ", ".join(limits) or "unlimited"
