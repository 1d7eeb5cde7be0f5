"""What the job of a crawl is told besides its events: the counts that changed, and what was read of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.noted import NotedPage

if TYPE_CHECKING:
    from collections import Counter

    from scrapy_focus.core.events import Concluded
    from scrapy_focus.core.keeper import Keeper
    from scrapy_focus.core.types import Outcome


class JobWriter:
    """Completes what the job of a crawl is told; does nothing as long as there is none.

    Parameters
    ----------
    counts
        What is counted; those that changed are told with each outcome.
    """

    def __init__(self, counts: Counter[str]) -> None:
        self.job: Keeper | None = None  # once everything that it kept is applied
        self._counts = counts
        self._told: dict[str, int] = {}  # the counts that the job has

    def begin(self, job: Keeper) -> None:
        """Tell this job from now on; it has all that happened until now."""
        self.job = job
        self._told = dict(self._counts)

    def conclude(self, event: Concluded) -> None:
        """Tell an outcome that was applied, with the counts that changed since the last."""
        if self.job is not None:
            changed = {name: value for name, value in self._counts.items() if self._told.get(name) != value}
            self._told.update(changed)
            self.job.tell(event._replace(counts=changed))

    def noted(self, outcome: Outcome) -> Outcome:
        """Return an outcome of whose page the job gets what the policy reads."""
        return outcome if self.job is None or outcome.page is None else outcome._replace(page=NotedPage(outcome.page))
