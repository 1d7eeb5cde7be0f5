"""The whole state of a crawl at one instant, as a job stores it; each part saves and restores its own fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy_focus.core.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole state of a crawl at one instant, except its frontier."""

    policy: Policy
    at: float = 0.0  # when that is, in seconds since the epoch
    used: Mapping[str, float] = field(default_factory=dict)  # of the budget
    limits: Mapping[str, float | None] = field(default_factory=dict)  # of the budget; for tools that inspect it
    rate: str = ""  # likewise: requests that may be sent in the long run, "": no limit
    stop: Mapping[str, Any] | None = None  # state of the stop rule, with its reason
    counts: Mapping[str, int] = field(default_factory=dict)
    rewards: float = 0.0
    found_at: Sequence[tuple[int, float]] = ()  # (requests used, rewards) at the last rewards
    recovered: Sequence[int] = ()  # keys that were in flight when a run was killed, and have no outcome since
    stranded: Sequence[int] = ()  # keys of links that were placed in place of the policy
    unchosen: Sequence[int] = ()  # ids of picks in flight that were chosen in place of the policy
    closed: Sequence[str] = ()  # hosts that are closed until they are opened again
    poor: Mapping[str, Any] = field(default_factory=dict)  # state of the kinds of links that only give errors
    unsent: Sequence[int] = ()  # ids of picks in flight whose request was not sent yet
    owners: Mapping[int, str] = field(default_factory=dict)  # by pick in flight: which machine fetches it
    granted: Mapping[str, int] = field(default_factory=dict)  # by the same: requests beyond one for each pick
    contents: Sequence[int] = ()  # already counted, if each counts once
    chances: Mapping[int, float] = field(default_factory=dict)  # by pick in flight, where it is known
    goal: Any = None  # state of the goal; None: it does not learn
    said: Sequence[str] = ()  # the goal's description of the crawl, in sentences; for tools that inspect it
    alarm: str = ""  # the problem that the goal reports; likewise
    log: tuple[str, int] | None = None  # how far the decision log is written
