"""Tells which hosts cannot take a request now, so that requests are chosen as late as possible.

A request in a queue of the downloader cannot be taken back. With a delay of 0.25 s and 16 requests in flight, the
stock scheduler chooses 4 s ahead. What the crawl learns in these 4 s is wasted, and a host that the policy prefers
starves the others.
"""

from __future__ import annotations

import math
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def slot_name(slot: object) -> str:
    """Return the key of a download slot as text that can be stored; spiders may use any object as key."""
    return str(slot).encode("utf-8", "backslashreplace").decode()


class Slots:
    """Counts, for each slot of the downloader, the requests handed out that have not left it.

    The downloader's own count cannot be used: a coroutine updates it, and that has not started when the engine asks
    for the next request.

    With a delay, a slot takes as many requests as start while one is answered. Requests in flight for twice as long as
    that are not counted, so a page that hangs, or a file of gigabytes, does not block its host.

    Parameters
    ----------
    crawler
        The crawler that owns the downloader.
    limit
        Requests that a slot may hold, at most its concurrency; 0 means as many as it can start now.
    """

    def __init__(self, crawler: Crawler, *, limit: int = 0) -> None:
        self.crawler = crawler
        self.limit = limit
        self.busy: set[str] = set()
        self._held: dict[str, dict[int, float]] = {}  # by pick: start in seconds of time.monotonic
        self._full: dict[str, float] = {}  # when a request of a busy slot is no longer counted
        self._latency: dict[str, float] = {}
        self._shut: dict[str, float] = {}  # when a paused slot opens, in seconds of time.monotonic
        self._rests: dict[str, float] = {}  # likewise, for delays owed after a browser sent several requests

    def take(self, slot: str, pick: int) -> None:
        """Count the request of a pick in a slot."""
        self._held.setdefault(slot, {})[pick] = monotonic()
        self._mark(slot)

    def free(self, slot: str, pick: int) -> None:
        """Stop counting the request of a pick: it left the slot."""
        held = self._held[slot]
        del held[pick]
        if not held:
            del self._held[slot]
        self._mark(slot)

    def observe(self, slot: str, latency: float) -> None:
        """Note how long a response of this slot took, body included."""
        old = self._latency.get(slot, latency)
        self._latency[slot] = old + 0.2 * (latency - old)

    def latency(self, slot: str) -> float:
        """Return how many seconds recent responses of a slot took; 0 without any."""
        return self._latency.get(slot, 0.0)

    def is_delayed(self, slot: str) -> bool:
        """Whether the slot has a delay between requests."""
        return self._most(slot)[1] > 0

    def put_off(self, slot: str, seconds: float) -> bool:
        """Pause a slot for at least so many seconds; return whether that is longer than before."""
        until = monotonic() + seconds
        news = until > self._shut.get(slot, 0.0) + 1
        self._shut[slot] = max(until, self._shut.get(slot, 0.0))
        self._mark(slot)
        return news

    def owe(self, slot: str, n_requests: int) -> None:
        """Wait one delay for each further request that a browser sent to a slot, before its next page."""
        delay = self._most(slot)[1]
        if n_requests and delay:
            self._rests[slot] = max(monotonic(), self._rests.get(slot, 0.0)) + n_requests * delay
            self._mark(slot)

    def is_shut(self, slot: str) -> bool:
        """Whether a slot is paused now."""
        return self._shut.get(slot, 0.0) > monotonic()

    def opens_in(self) -> float | None:
        """Open the paused slots whose time is over.

        Return the seconds until the next one opens, ``None`` if none is paused.
        """
        return self._open(self._shut)

    def changes_in(self) -> float | None:
        """Open the slots whose time has come.

        Return the seconds until the next one opens, ``None`` if only a response can open one.
        """
        now = monotonic()
        for slot in [slot for slot, until in self._full.items() if until <= now]:
            self._mark(slot)
        times = [until - now for until in self._full.values()]
        times += [opens for closed in (self._shut, self._rests) if (opens := self._open(closed)) is not None]
        return min(times, default=None)

    @property
    def shut(self) -> int:
        """How many slots are paused."""
        return len(self._shut)

    def slow_down(self, slot: str, delay: float) -> None:
        """Leave at least so many seconds between requests to a slot from now on."""
        downloader = self.crawler.engine.downloader
        own = downloader.per_slot_settings.get(slot, {})  # the downloader forgets idle slots, and reads this again
        first = own.get("delay", getattr(downloader, "_delay", self.crawler.settings.getfloat("DOWNLOAD_DELAY")))
        downloader.per_slot_settings[slot] = {**own, "delay": max(first, delay)}
        if (there := downloader.slots.get(slot)) is not None:
            there.delay = max(there.delay, delay)
        self._mark(slot)

    def _open(self, closed: dict[str, float]) -> float | None:
        """Open the slots whose time is over; return the seconds until the next one opens."""
        if not closed:
            return None
        now = monotonic()
        for slot in [slot for slot, until in closed.items() if until <= now]:
            del closed[slot]
            self._mark(slot)
        return min(closed.values()) - now if closed else None

    def _mark(self, slot: str) -> None:
        self._full.pop(slot, None)
        if slot in self._shut or slot in self._rests or self._is_full(slot):
            self.busy.add(slot_name(slot))
        else:
            self.busy.discard(slot_name(slot))

    def _is_full(self, key: str) -> bool:
        held = self._held.get(key, {})
        most, delay = self._most(key)
        if len(held) >= most:
            return True
        if not delay or self.limit:
            return False
        latency = self.latency(key)
        usual = max(1, math.ceil(latency / delay))  # as many start while one is answered
        slow = 2 * (delay + latency)
        since = monotonic() - slow
        counted = [at for at in held.values() if at > since]  # oldest first
        if len(counted) < usual:
            return False
        self._full[key] = counted[len(counted) - usual] + slow
        return True

    def _most(self, key: str) -> tuple[int, float]:
        """Return how many requests a slot may hold, and its delay in seconds."""
        downloader = self.crawler.engine.downloader
        slot = downloader.slots.get(key)
        own = downloader.per_slot_settings.get(key, {})
        usual = downloader.ip_concurrency or downloader.domain_concurrency
        concurrency: int = slot.concurrency if slot else own.get("concurrency", usual)
        first = getattr(downloader, "_delay", self.crawler.settings.getfloat("DOWNLOAD_DELAY"))  # AutoThrottle's, if on
        delay: float = slot.delay if slot else own.get("delay", first)
        return min(self.limit, concurrency) if self.limit else concurrency, delay
