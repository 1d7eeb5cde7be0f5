"""The port through which a crawl is stored and restored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from scrapy_focus.core.crawl_state import CrawlState
    from scrapy_focus.core.events import Event
    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.snapshot import Snapshot


class Described(Protocol):
    """What a keeper needs from a crawl before it has a frontier: what must be equal in all runs."""

    @property
    def policy(self) -> Policy:
        """The policy."""

    goal: Goal
    mission: Mission


class Keeper(Protocol):
    """Stores a crawl so that it survives its process; :class:`~scrapy_focus.jobs.job.Job` is one.

    A crawl asks for its frontier, has its state restored, and from then on writes every event before it has any
    effect outside the process. The last checkpoint and the events after it are the crawl.
    """

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""

    def open(self, crawl: Described) -> Frontier:
        """Return the frontier of a new crawl, for its policy: with the links of the last checkpoint, if there is one.

        Raises
        ------
        ResumeError
            If the stored crawl has another goal, mission, policy or parameters.
        """

    def restore(self, state: CrawlState) -> bool:
        """Bring the state of a new crawl to that of the stored one; ``False`` without one, and the state is
        unchanged.

        What was in flight is in flight again; the crawl releases it, unless others fetch it.
        """

    def tell(self, event: Event) -> None:
        """Write an event."""

    def checkpoint(self, state: Snapshot) -> None:
        """Write a checkpoint; may return before that is done."""

    def postpone(self) -> None:
        """A checkpoint failed: the next one is due after the usual time."""

    def flush(self) -> None:
        """Block until the last checkpoint is on disk."""

    def close(self) -> None:
        """Finish writing, and free the folder for others. Idempotent."""
