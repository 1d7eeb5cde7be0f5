"""Where a crawl lives on: the port through which it is written down and found again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from scrapy_focus.core.events import Event
    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.log import EventLog
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.types import Pick


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


class Kept(Protocol):
    """What a keeper needs of a crawl; :class:`~scrapy_focus.core.crawl.Crawl` is one."""

    policy: Policy
    goal: Goal
    mission: Mission
    frontier: Frontier
    log: EventLog | None
    counts: Counter[str]
    picks: dict[int, Pick]  # in flight, by id
    otherwise: int  # choices that came out otherwise when they were made again

    def apply(self, event: Event | Snapshot) -> None:
        """Let an event happen once more; a snapshot is the state before the first."""


class Keeper(Protocol):
    """Keeps a crawl, so that it survives its process; :class:`~scrapy_focus.jobs.job.Job` is one.

    A crawl asks for its frontier, has itself restored, and from then on tells every event before it has any effect
    outside the process. What it tells and the last checkpoint together are the crawl.
    """

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""

    def open(self, crawl: Kept) -> Frontier:
        """Return where the links of a new crawl wait, as its policy keeps them: those of the last checkpoint, if there
        is one.

        Raises
        ------
        ResumeError
            If what is kept is a crawl with another goal, mission, policy or parameters.
        """

    def restore(self, crawl: Kept) -> bool:
        """Bring a new crawl to where the kept one was; ``False`` where there is none, and nothing was changed.

        What was in flight is in flight again; the crawl releases it, unless others fetch it.
        """

    def tell(self, event: Event) -> None:
        """Write an event down."""

    def checkpoint(self, state: Snapshot) -> None:
        """Write down everything as it is now; may return before that is done."""

    def postpone(self) -> None:
        """A checkpoint that was due could not be made: wait as long again for the next."""

    def flush(self) -> None:
        """Wait until the last checkpoint is on disk."""

    def close(self) -> None:
        """Finish what is being written, and let others have the crawl. Idempotent."""
