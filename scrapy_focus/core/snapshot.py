"""All that a crawl is at one instant, as a job stores it; each part of a crawl saves and restores its own fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy_focus.core.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that a crawl is at one instant, besides its frontier."""

    policy: Policy
    at: float = 0.0  # when that is, in seconds since the epoch
    used: Mapping[str, float] = field(default_factory=dict)  # of the budget
    limits: Mapping[str, float | None] = field(default_factory=dict)  # of the budget; for those who look at it
    rate: str = ""  # the same: requests that may go out in the long run, "": as many as can
    stop: Mapping[str, Any] | None = None  # what the stop rule saw, with its reason
    counts: Mapping[str, int] = field(default_factory=dict)
    rewards: float = 0.0
    found_at: Sequence[tuple[int, float]] = ()  # (requests used, rewards) at the last rewards
    recovered: Sequence[int] = ()  # keys that were in flight when a run was killed, and have no outcome since
    stranded: Sequence[int] = ()  # keys of links that were placed for a policy that could not
    unchosen: Sequence[int] = ()  # ids of picks in flight that were chosen for a policy that could not
    closed: Sequence[str] = ()  # hosts that take nothing until it is said that they are open
    poor: Mapping[str, Any] = field(default_factory=dict)  # what is known of kinds of links that bring errors alone
    unsent: Sequence[int] = ()  # ids of picks in flight for which no request went out yet
    owners: Mapping[int, str] = field(default_factory=dict)  # by pick in flight: who else fetches it
    granted: Mapping[str, int] = field(default_factory=dict)  # by the same: requests beyond one for each pick
    contents: Sequence[int] = ()  # that counted, where each counts once
    chances: Mapping[int, float] = field(default_factory=dict)  # by pick in flight, where it is known
    goal: Any = None  # what the goal learned; None: it learns nothing
    said: Sequence[str] = ()  # what the goal tells of the crawl, in sentences; for those who look at it
    alarm: str = ""  # what goes wrong, as the goal sees it; likewise
    log: tuple[str, int] | None = None  # how far the decision log is written
