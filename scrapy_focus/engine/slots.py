"""Which hosts can take nothing now: decide late, so that what was learned in between counts.

A request that waits in a queue of the downloader cannot be taken back. With a delay of 0.25 s and 16 requests in
flight, the stock scheduler chooses 4 s ahead, and a host that a policy likes starves the others.
"""

from __future__ import annotations

import math
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def slot_name(slot: object) -> str:
    """Return the key of a download slot as text that can be stored; spiders may use whatever they like."""
    return str(slot).encode("utf-8", "backslashreplace").decode()


class Slots:
    """Counts, for each slot of the downloader, the requests handed out that have not left it.

    The downloader's own count is updated by a coroutine that has not begun while the engine asks for the next request,
    so it cannot be used.

    Parameters
    ----------
    crawler
        Whose downloader it is.
    limit
        Requests that a slot may hold, at most its concurrency; 0: as many as it can start now.
    """

    def __init__(self, crawler: Crawler, *, limit: int = 0) -> None:
        self.crawler = crawler
        self.limit = limit
        self.busy: set[str] = set()
        self._held: dict[str, int] = {}
        self._latency: dict[str, float] = {}
        self._shut: dict[str, float] = {}  # until when nothing goes to a slot, in seconds of time.monotonic

    def take(self, slot: str) -> None:
        """One more request was handed out to a slot."""
        self._held[slot] = self._held.get(slot, 0) + 1
        self._mark(slot)

    def free(self, slot: str) -> None:
        """One request left a slot."""
        self._held[slot] -= 1
        if not self._held[slot]:
            del self._held[slot]
        self._mark(slot)

    def observe(self, slot: str, latency: float) -> None:
        """A response of this slot took so many seconds to come."""
        old = self._latency.get(slot, latency)
        self._latency[slot] = old + 0.2 * (latency - old)

    def put_off(self, slot: str, seconds: float) -> bool:
        """Hand nothing out to a slot for so long, or longer if that was said before; whether this is news."""
        until = monotonic() + seconds
        news = until > self._shut.get(slot, 0.0) + 1
        self._shut[slot] = max(until, self._shut.get(slot, 0.0))
        self._mark(slot)
        return news

    def is_shut(self, slot: str) -> bool:
        """Whether a slot was put off, and its time is not over."""
        return self._shut.get(slot, 0.0) > monotonic()

    def opens_in(self) -> float | None:
        """Open the slots whose time is over; return in how many seconds the next one opens, ``None`` if none waits."""
        if not self._shut:
            return None
        now = monotonic()
        for slot in [slot for slot, until in self._shut.items() if until <= now]:
            del self._shut[slot]
            self._mark(slot)
        return min(self._shut.values()) - now if self._shut else None

    @property
    def shut(self) -> int:
        """How many slots are put off."""
        return len(self._shut)

    def slow_down(self, slot: str, delay: float) -> None:
        """Let at least so many seconds pass between two requests to a slot, from now on."""
        downloader = self.crawler.engine.downloader
        own = downloader.per_slot_settings.get(slot, {})  # the downloader forgets slots that rest, and reads this again
        first = own.get("delay", getattr(downloader, "_delay", self.crawler.settings.getfloat("DOWNLOAD_DELAY")))
        downloader.per_slot_settings[slot] = {**own, "delay": max(first, delay)}
        if (there := downloader.slots.get(slot)) is not None:
            there.delay = max(there.delay, delay)
        self._mark(slot)

    def _mark(self, slot: str) -> None:
        if slot in self._shut or self._held.get(slot, 0) >= self._capacity(slot):
            self.busy.add(slot_name(slot))
        else:
            self.busy.discard(slot_name(slot))

    def _capacity(self, key: str) -> int:
        """The concurrency of a slot; with a delay, as many requests as start while one is answered."""
        downloader = self.crawler.engine.downloader
        slot = downloader.slots.get(key)
        own = downloader.per_slot_settings.get(key, {})
        concurrency: int = slot.concurrency if slot else own.get("concurrency", downloader.domain_concurrency)
        first = getattr(downloader, "_delay", self.crawler.settings.getfloat("DOWNLOAD_DELAY"))  # AutoThrottle's, if on
        delay: float = slot.delay if slot else own.get("delay", first)
        if self.limit:
            return min(self.limit, concurrency)
        if not delay:
            return concurrency
        return max(1, min(concurrency, math.ceil(self._latency.get(key, 0.0) / delay)))
