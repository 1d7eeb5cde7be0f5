"""How much a crawl may use: "100 requests" means that the server's log shows 100."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Budget:
    """Counts every request of every kind, and says when something is used up.

    :meth:`left` is asked at the last moment before a request goes out, whoever made it: a pick, its redirect or retry,
    a HEAD, robots.txt. What it refuses is not sent, so the number of requests is exact. Bytes and seconds are counted
    as they come: what is in flight when they run out still arrives.

    Parameters
    ----------
    requests
        Requests of all kinds.
    bytes
        Bytes received, headers and bodies, as sent over the network.
    seconds
        Seconds of wall-clock time since the crawl started, over all its runs.
    """

    def __init__(self, *, requests: int | None = None, bytes: int | None = None, seconds: float | None = None) -> None:
        for name, value in (("requests", requests), ("bytes", bytes), ("seconds", seconds)):
            if value is not None and not value > 0:
                raise ConfigError(f"a budget of {value} {name} allows nothing; give a positive number, or none at all")
        self.requests = None if requests is None else int(requests)
        self.bytes = None if bytes is None else int(bytes)
        self.seconds = None if seconds is None else float(seconds)
        self.requests_used = 0
        self.bytes_used = 0
        self.seconds_before = 0.0
        self._clock: Callable[[], float] | None = None
        self._started = 0.0

    def start(self, clock: Callable[[], float]) -> None:
        """Let the time run, in seconds of this clock."""
        self._clock = clock
        self._started = clock()

    @property
    def seconds_used(self) -> float:
        """Seconds since the crawl started, over all its runs."""
        return self.seconds_before + (self._clock() - self._started if self._clock else 0.0)

    def left(self, reserved: int = 0) -> bool:
        """Whether one more request may go out, or be handed out while ``reserved`` others wait to be sent."""
        return self.requests is None or self.requests_used + reserved < self.requests

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
        """What may be used, ``None`` where nothing is limited."""
        return {"requests": self.requests, "bytes": self.bytes, "seconds": self.seconds}

    def state(self) -> dict[str, float]:
        """What was used so far, to be given to :meth:`restore` in the next run."""
        return {"requests": self.requests_used, "bytes": self.bytes_used, "seconds": self.seconds_used}

    def restore(self, state: Mapping[str, float]) -> None:
        """Count from what was used when a state was taken."""
        self.requests_used = int(state["requests"])
        self.bytes_used = int(state["bytes"])
        self.seconds_before += float(state["seconds"]) - self.seconds_used

    def __repr__(self) -> str:
        limits = [f"{getattr(self, name):,} {name}" for name in ("requests", "bytes", "seconds") if getattr(self, name)]
        return ", ".join(limits) or "unlimited"
