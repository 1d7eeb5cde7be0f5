"""Where a crawl lives on: the port through which it is written down and found again."""

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
    """What a keeper needs of a crawl before it has a frontier: what has to be equal in all runs."""

    @property
    def policy(self) -> Policy:
        """Who decides."""

    goal: Goal
    mission: Mission


class Keeper(Protocol):
    """Keeps a crawl, so that it survives its process; :class:`~scrapy_focus.jobs.job.Job` is one.

    A crawl asks for its frontier, has itself restored, and from then on tells every event before it has any effect
    outside the process. What it tells and the last checkpoint together are the crawl.
    """

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""

    def open(self, crawl: Described) -> Frontier:
        """Return where the links of a new crawl wait, as its policy keeps them: those of the last checkpoint, if there
        is one.

        Raises
        ------
        ResumeError
            If what is kept is a crawl with another goal, mission, policy or parameters.
        """

    def restore(self, state: CrawlState) -> bool:
        """Bring the state of a new crawl to where the kept one was; ``False`` where there is none,
        and nothing was changed.

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
