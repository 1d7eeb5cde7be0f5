"""The status of a crawl, for pages and commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy_focus.core.abilities import Left
    from scrapy_focus.core.budget import Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status of a crawl at one instant."""

    counts: Mapping[str, int]  # as they are written to the stats, without ``focus/``
    waiting: int  # links that may leave now
    asleep: int  # links that sleep until a time, and poor ones, until nothing else is left
    next_due: float | None  # the first of these times, in seconds since the epoch; None: there is none
    arms: int  # that exist
    awake: int  # arms with queued links
    in_flight: int  # picks without an outcome
    owed: frozenset[int]  # ids of fetched picks whose reward comes later
    rewards: float
    found_at: Sequence[tuple[int, float]]  # (requests used, rewards) at the last rewards
    used: Mapping[str, float]  # requests, bytes, seconds
    limits: Mapping[str, float | None]  # likewise, used so far
    finished: str  # why it is over, "" if it is not
    at: float  # seconds since the epoch
    due: float | None  # when the next queued link may be chosen, likewise; None: now, or not known
    recovered: frozenset[int]  # keys that were in flight when a run was killed, and have no outcome since
    rate: Rate | None = None  # requests that may be sent in the long run; None: no limit
    next_turn: float | None = None  # when the rate lets the next link be chosen, likewise; None: now
    hosts: Sequence[str] = ()  # hosts that ever had a queued link, where the frontier counts them
    best_arms: Sequence[tuple[str, float, int]] = ()  # if asked for: name, reward, pulls
    left: Left | None = None  # if asked for: targets left to find
    cost: float | None = None  # if asked for: requests that the next target is expected to cost
    ends_in: int | None = None  # requests after which a cost limit may end it at the earliest; None: there is none
    said: Sequence[str] = ()  # if asked for: the goal's description of the crawl, one sentence each
    alarm: str = ""  # if asked for: the problem that the goal reports
    whole: Status | None = None  # of the crawl on all machines, if this is one of them

    @property
    def unfollowed(self) -> int:
        """How many links were found and not followed: queued links, and poor ones if no other link sleeps."""
        return self.waiting + (self.asleep if self.next_due is None else 0)
