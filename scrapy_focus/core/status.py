"""How a crawl stands, for whoever looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy_focus.core.abilities import Left
    from scrapy_focus.core.budget import Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How a crawl stands at one instant."""

    counts: Mapping[str, int]  # as they are written to the stats, without ``focus/``
    waiting: int  # links that may leave now
    asleep: int  # links that wait until a time, and poor ones that wait until nothing else is left
    next_due: float | None  # the first of these times, in seconds since the epoch; None: there is none
    arms: int  # that exist
    awake: int  # arms in which something waits
    in_flight: int  # picks without an outcome
    owed: frozenset[int]  # ids of those that came back, and whose reward comes later
    rewards: float
    found_at: Sequence[tuple[int, float]]  # (requests used, rewards) at the last rewards
    used: Mapping[str, float]  # requests, bytes, seconds
    limits: Mapping[str, float | None]  # of the same
    finished: str  # why it is over, "" if it is not
    at: float  # seconds since the epoch
    due: float | None  # when the next of those that wait may be chosen, likewise; None: now, or not known
    recovered: frozenset[int]  # keys that were in flight when a run was killed, and have no outcome since
    rate: Rate | None = None  # requests that may go out in the long run; None: as many as can
    next_turn: float | None = None  # when the rate lets the next link be chosen, likewise; None: now
    hosts: Sequence[str] = ()  # on which a link ever waited, where the frontier tells
    best_arms: Sequence[tuple[str, float, int]] = ()  # where asked for: name, reward, pulls
    left: Left | None = None  # where asked for: targets still to be found
    cost: float | None = None  # where asked for: requests that the next target is expected to cost
    ends_in: int | None = None  # requests after which a cost limit may end it at the earliest; None: there is none
    said: Sequence[str] = ()  # where asked for: what the goal tells of the crawl, a sentence each
    alarm: str = ""  # where asked for: what goes wrong, as the goal sees it
    whole: Status | None = None  # of the crawl of all machines, where this is what one of them does

    @property
    def unfollowed(self) -> int:
        """How many links were found and not followed: those that wait, and poor ones where nothing else sleeps."""
        return self.waiting + (self.asleep if self.next_due is None else 0)
