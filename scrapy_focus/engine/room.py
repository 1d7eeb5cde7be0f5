"""Whether another pick may be out: a choice waits for what is about to be learned, and for nothing else.

Two goals conflict. Scrapy asks for a request when a download ends, while its page is learned some turns of the event
loop later: with 8 concurrent requests, 12 picks are out when the next is chosen. But a page may wait for long in its
callback or its pipelines, which must hold up no request. What tells these apart is no time, as a busy machine takes
long for anything: a page with which nothing happens for some turns, though all that could be done was done, waits.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_focus.engine.inflight import InFlight
    from scrapy_focus.engine.slots import Slots

TURNS = 30  # of the event loop; ten are enough for Scrapy to call a callback and to take an item
LONGEST = 10.0  # seconds after which a pick counts no more that still downloads


class Room:
    """Counts the picks that are out, and lets the engine ask again when fewer are.

    These do not count: pages that wait in callbacks or pipelines; downloads that take longer than ten seconds; and one
    pick of each slot that has a delay, as that alone says when it starts.

    Parameters
    ----------
    inflight
        The picks that the engine has.
    slots
        The slots in which they are.
    most
        Says how many may be out now.
    ask_again
        Lets the engine ask for requests.
    """

    def __init__(
        self, inflight: InFlight, slots: Slots, *, most: Callable[[], int], ask_again: Callable[[], None]
    ) -> None:
        self.inflight = inflight
        self.slots = slots
        self.most = most
        self._ask_again = ask_again
        self._is_full = False
        self._next_turn: CallLaterResult | None = None
        self._changes_at: float | None = None  # seconds of time.monotonic; when a download counts no more

    def is_left(self, reported: int) -> bool:
        """Whether another pick may be out, with so many that come back and are just being learned."""
        left = self.most() - reported
        self._is_full = len(self.inflight.entries) >= left and self._count() >= left
        if self._is_full:
            self._watch()
        return not self._is_full

    def changes_in(self) -> float | None:
        """Return in how many seconds a download counts no more, ``None`` where there is room, or none does."""
        return None if not self._is_full or self._changes_at is None else max(0.0, self._changes_at - monotonic())

    def _count(self) -> int:
        now, n, slots = monotonic(), 0, set()
        self._changes_at = None
        for entry in self.inflight.entries.values():
            if entry.waits:
                continue
            if not entry.returned:
                ends = entry.since + LONGEST
                if ends <= now:
                    continue
                self._changes_at = min(ends, self._changes_at or ends)
            if entry.slot not in slots:
                slots.add(entry.slot)
                if self.slots.is_delayed(entry.slot):
                    continue
            n += 1
        return n

    def _watch(self) -> None:
        """Count turns, if any page is there with which something should happen."""
        if self._next_turn is None and any(
            entry.returned and not entry.waits for entry in self.inflight.entries.values()
        ):
            self._next_turn = call_later(0, self._turn)

    def _turn(self) -> None:
        self._next_turn = None
        some_wait = False
        for entry in self.inflight.entries.values():
            if entry.returned and not entry.waits:
                entry.quiet += 1
                if entry.quiet > TURNS:
                    entry.waits = some_wait = True
        if some_wait:
            self._ask_again()
        if self._is_full:
            self._watch()
