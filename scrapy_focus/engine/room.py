"""Whether another pick may be in flight: a choice waits only for outcomes that are about to be learned.

Two goals conflict. Scrapy requests the next pick when a download ends, but the page is learned some turns of the event
loop later: with 8 concurrent requests, 12 picks are in flight at the next choice. On the other hand, a page may spend a
long time in its callback or its pipelines, and must not block requests. Time does not separate these cases, as
everything is slow on a busy machine. Turns do: a page that shows no activity for some turns is waiting.
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

TURNS = 30  # of the event loop; Scrapy needs ten at most to call a callback and to take an item
LONGEST = 10.0  # seconds after which a running download is no longer counted


class Room:
    """Counts the picks in flight, and has the engine request the next pick when there are fewer.

    Not counted are: pages that wait in callbacks or pipelines; downloads that take longer than ten seconds; and one
    pick of each slot with a delay, as the delay alone decides when it starts.

    Parameters
    ----------
    inflight
        The picks in flight.
    slots
        The download slots.
    most
        Returns how many may be in flight now.
    ask_again
        Has the engine request the next pick.
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
        self._changes_at: float | None = None  # seconds of time.monotonic; when a download is no longer counted

    def is_left(self, reported: int) -> bool:
        """Whether another pick may be in flight, with so many finished ones that are just being learned."""
        left = self.most() - reported
        self._is_full = len(self.inflight.entries) >= left and self._count() >= left
        if self._is_full:
            self._watch()
        return not self._is_full

    def changes_in(self) -> float | None:
        """Return the seconds until a download is no longer counted, ``None`` if there is room, or none will be."""
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
        """Count turns while there are pages that should show activity."""
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
