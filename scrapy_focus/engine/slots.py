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

    With a delay, a slot takes as many as start while one is answered. Requests that are out for twice as long as that
    takes do not count, so that a page that hangs, or a file of gigabytes, does not hold up all others of its host.

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
        self._held: dict[str, dict[int, float]] = {}  # since when, in seconds of time.monotonic, by pick
        self._full: dict[str, float] = {}  # when a request of a busy slot will not count any more
        self._latency: dict[str, float] = {}
        self._shut: dict[str, float] = {}  # until when nothing goes to a slot, in seconds of time.monotonic
        self._rests: dict[str, float] = {}  # the same, as a browser asked for more than one request there

    def take(self, slot: str, pick: int) -> None:
        """The request of a pick was handed out to a slot."""
        self._held.setdefault(slot, {})[pick] = monotonic()
        self._mark(slot)

    def free(self, slot: str, pick: int) -> None:
        """The request of a pick left a slot."""
        held = self._held[slot]
        del held[pick]
        if not held:
            del self._held[slot]
        self._mark(slot)

    def observe(self, slot: str, latency: float) -> None:
        """A response of this slot took so many seconds to come, its body too."""
        old = self._latency.get(slot, latency)
        self._latency[slot] = old + 0.2 * (latency - old)

    def latency(self, slot: str) -> float:
        """How many seconds responses of a slot took to come lately; 0 where none came."""
        return self._latency.get(slot, 0.0)

    def is_delayed(self, slot: str) -> bool:
        """Whether some time passes between two requests to a slot."""
        return self._most(slot)[1] > 0

    def put_off(self, slot: str, seconds: float) -> bool:
        """Hand nothing out to a slot for so long, or longer if that was said before; whether this is news."""
        until = monotonic() + seconds
        news = until > self._shut.get(slot, 0.0) + 1
        self._shut[slot] = max(until, self._shut.get(slot, 0.0))
        self._mark(slot)
        return news

    def owe(self, slot: str, n_requests: int) -> None:
        """A browser sent further requests to a slot: let as many delays pass before the next page."""
        delay = self._most(slot)[1]
        if n_requests and delay:
            self._rests[slot] = max(monotonic(), self._rests.get(slot, 0.0)) + n_requests * delay
            self._mark(slot)

    def is_shut(self, slot: str) -> bool:
        """Whether a slot was put off, and its time is not over."""
        return self._shut.get(slot, 0.0) > monotonic()

    def opens_in(self) -> float | None:
        """Open the slots that were put off and whose time is over; return in how many seconds the next one opens,
        ``None`` if none waits.
        """
        return self._open(self._shut)

    def changes_in(self) -> float | None:
        """Let slots take requests again whose time has come; return in how many seconds the next one will, ``None`` if
        only an answer can tell.
        """
        now = monotonic()
        for slot in [slot for slot, until in self._full.items() if until <= now]:
            self._mark(slot)
        times = [until - now for until in self._full.values()]
        times += [opens for closed in (self._shut, self._rests) if (opens := self._open(closed)) is not None]
        return min(times, default=None)

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

    def _open(self, closed: dict[str, float]) -> float | None:
        """Open those of some slots whose time is over; return in how many seconds the next one opens."""
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
        counted = [at for at in held.values() if at > since]  # the oldest first
        if len(counted) < usual:
            return False
        self._full[key] = counted[len(counted) - usual] + slow
        return True

    def _most(self, key: str) -> tuple[int, float]:
        """How many requests a slot may hold, and the delay between two of them, in seconds."""
        downloader = self.crawler.engine.downloader
        slot = downloader.slots.get(key)
        own = downloader.per_slot_settings.get(key, {})
        usual = downloader.ip_concurrency or downloader.domain_concurrency
        concurrency: int = slot.concurrency if slot else own.get("concurrency", usual)
        first = getattr(downloader, "_delay", self.crawler.settings.getfloat("DOWNLOAD_DELAY"))  # AutoThrottle's, if on
        delay: float = slot.delay if slot else own.get("delay", first)
        return min(self.limit, concurrency) if self.limit else concurrency, delay
