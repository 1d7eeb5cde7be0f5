"""Poor links, such as logins, are kept until nothing else is left to fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from scrapy_focus.core.events import Woke
from scrapy_focus.core.poor import LAST
from scrapy_focus.core.types import NOT_NOW, State

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from scrapy_focus.core.in_flight import InFlight
    from scrapy_focus.core.poor import Poor
    from scrapy_focus.core.room import Room
    from scrapy_focus.core.sleepers import Sleepers
    from scrapy_focus.core.snapshot import Snapshot
    from scrapy_focus.core.types import Link, Pick, Placement

_WOKEN = 1000  # poor links that are woken at once when nothing else is left


class PoorLast:
    """Puts poor links behind all others, and wakes them when nothing else is left.

    Parameters
    ----------
    poor
        Recognises them; ``None``: no link is poor.
    sleepers
        Where they sleep meanwhile.
    in_flight
        The picks in flight.
    room
        How many of them may sleep.
    comes_back
        Whether the crawl revisits pages: it has no end, and gives them up.
    counts
        Where they are counted, as ``poor/...``.
    """

    def __init__(
        self,
        poor: Poor | None,
        sleepers: Sleepers,
        in_flight: InFlight,
        room: Room,
        *,
        comes_back: bool,
        counts: Counter[str],
    ) -> None:
        self.poor = poor
        self._sleepers = sleepers
        self._in_flight = in_flight
        self._room = room
        self._comes_back = comes_back
        self._counts = counts

    def mark(self, pick: Pick) -> None:
        """Note whether a pick is to be put last; not from the first round of poor links on, as it could be delayed
        for ever.
        """
        poor = self.poor
        if poor is None or pick.origin < 0 or self._counts["poor/rounds"]:
            return
        if poor.is_barren(pick.url) or poor.is_poor(pick.url):
            self._in_flight.poor.add(pick.id)

    def placed(self, links: Sequence[Link], placements: Sequence[Placement | None]) -> Sequence[Placement | None]:
        """Return where placed links are queued: poor ones elsewhere."""
        return [self._placed(link, place) for link, place in zip(links, placements, strict=True)]

    def _placed(self, link: Link, place: Placement | None) -> Placement | None:
        if place is None or place is NOT_NOW or place.after or link.state == State.PROBED:
            return place
        return self.last_place(place) if cast("Poor", self.poor).is_poor(link.url, link.anchor) else place

    def last_place(self, place: Placement) -> Placement | None:
        """Return a placement behind all others; ``None`` if there is none, or too many links have one."""
        self._counts["poor/links"] += 1
        most = self._room.most
        if self._comes_back or (most is not None and self._sleepers.asleep >= most):
            return None
        return place._replace(after=LAST + self._counts["poor/rounds"]) if self._sleepers.can_sleep else place

    def wake(self) -> Woke | None:
        """Return the event that wakes poor links, if nothing else is left to fetch and there are any."""
        due = None if self._in_flight.picks else self._sleepers.first
        return None if due is None or due < LAST else Woke(LAST + self._counts["poor/rounds"], _WOKEN)

    def save(self) -> dict[str, Any]:
        """Return this part's fields of a snapshot."""
        return {"poor": {} if self.poor is None else self.poor.state()}

    def restore(self, state: Snapshot) -> None:
        """Restore a snapshot."""
        if self.poor is not None:
            self.poor.restore(state.poor)
