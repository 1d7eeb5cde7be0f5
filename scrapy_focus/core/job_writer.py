"""Writes to the job of a crawl what its events lack: checkpoints, changed counts, data read from pages."""

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
    """Adds to the job of a crawl what its events lack; does nothing without a job.

    Parameters
    ----------
    state
        The state for checkpoints. Its counts are written with each outcome, if they changed.
    now
        Returns the time, in seconds since the epoch.
    """

    def __init__(self, state: CrawlState, now: Callable[[], float]) -> None:
        self.job: Keeper | None = None  # once everything in it is applied
        self._state = state
        self._guard = state.guard
        self._now = now
        self._counts = state.counts
        self._told: dict[str, int] = {}  # the counts that the job has

    def begin(self, job: Keeper) -> None:
        """Write to this job from now on; it has everything up to now."""
        self.job = job
        self._told = dict(self._counts)

    def checkpoint(self) -> None:
        """Let the job write a checkpoint, without waiting for it."""
        if self.job is not None:
            self.job.checkpoint(self._state.save(self._now()))

    def keep_up(self) -> None:
        """Let the job write a checkpoint if one is due; a failed one is delayed to the next date."""
        job = self.job
        if job is not None and job.due and self._guard.ask("checkpoint", self.checkpoint) is FAILED:
            job.postpone()

    def conclude(self, event: Concluded) -> None:
        """Write an outcome that was applied, with the counts that changed since the last."""
        if self.job is not None:
            changed = {name: value for name, value in self._counts.items() if self._told.get(name) != value}
            self._told.update(changed)
            self.job.tell(event._replace(counts=changed))

    def noted(self, outcome: Outcome) -> Outcome:
        """Return an outcome whose page records for the job what the policy reads."""
        return outcome if self.job is None or outcome.page is None else outcome._replace(page=NotedPage(outcome.page))
