"""What a command is about to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.finders.kit.arguments.finder_arguments import FinderArguments

#: Options that limit a crawl, by what they limit.
BUDGETS = {"requests": "--budget", "bytes": "--size", "seconds": "--time"}


class Plan(NamedTuple):
    """The crawl that a command is about to run."""

    given: dict[str, Any]  # arguments of the spider, as texts
    asked: FinderArguments  # their values
    out: Path | None  # None: standard output
    state: str  # the number of the crawl in words, "" for the first
    resumes: bool = False  # whether it resumes a crawl
    goes_on: bool = False  # whether that crawl had ended because of a limit
    again: bool = False  # whether it is the next crawl, even if the last one could resume

    @property
    def where(self) -> str:
        """The folder, and the number of the crawl."""
        return f"{self.out} ({self.state})" if self.state else str(self.out)

    @property
    def job(self) -> Path | None:
        """The JOBDIR from which an interrupted crawl resumes; none without a folder."""
        if self.out is None:
            return None
        return self.out / ".focus" / "job"
