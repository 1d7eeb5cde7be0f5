"""What the job of a crawl is told besides its events: checkpoints, the counts that changed, what was read of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.guard import FAILED
from scrapy_focus.core.noted import NotedPage

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_focus.core.crawl_state import CrawlState
    from scrapy_focus.core.events import Concluded
    from scrapy_focus.core.keeper import Keeper
    from scrapy_focus.core.types import Outcome


class JobWriter:
    """Completes what the job of a crawl is told; does nothing as long as there is none.

    Parameters
    ----------
    state
        What a checkpoint is of. Its counts are told with each outcome, where they changed.
    now
        What time it is, in seconds since the epoch.
    """

    def __init__(self, state: CrawlState, now: Callable[[], float]) -> None:
        self.job: Keeper | None = None  # once everything that it kept is applied
        self._state = state
        self._guard = state.guard
        self._now = now
        self._counts = state.counts
        self._told: dict[str, int] = {}  # the counts that the job has

    def begin(self, job: Keeper) -> None:
        """Tell this job from now on; it has all that happened until now."""
        self.job = job
        self._told = dict(self._counts)

    def checkpoint(self) -> None:
        """Let the job write everything as it is now, without waiting for it."""
        if self.job is not None:
            self.job.checkpoint(self._state.save(self._now()))

    def keep_up(self) -> None:
        """Let the job write a checkpoint, if it is time for one; where that fails, it waits for the next time."""
        job = self.job
        if job is not None and job.due and self._guard.ask("checkpoint", self.checkpoint) is FAILED:
            job.postpone()

    def conclude(self, event: Concluded) -> None:
        """Tell an outcome that was applied, with the counts that changed since the last."""
        if self.job is not None:
            changed = {name: value for name, value in self._counts.items() if self._told.get(name) != value}
            self._told.update(changed)
            self.job.tell(event._replace(counts=changed))

    def noted(self, outcome: Outcome) -> Outcome:
        """Return an outcome of whose page the job gets what the policy reads."""
        return outcome if self.job is None or outcome.page is None else outcome._replace(page=NotedPage(outcome.page))
