"""When a crawl ends at the latest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_focus.core.printable import counted
from scrapy_focus.finders.kit.arguments.argument import Arguments, argument
from scrapy_focus.finders.kit.arguments.readers import number_reader, read_duration

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_focus.core.durations import Duration


@dataclass(frozen=True, kw_only=True)
class LimitArguments(Arguments):
    """When a crawl ends at the latest.

    Arguments
    ---------
    budget
        The limit of requests of all kinds, in all runs of the crawl; none by default.
    time
        How long the crawl may take, in all its runs: ``30min``, ``12h``, ``7d``. No limit by default.
    """

    heading = "limits"

    budget: int | None = argument(
        number_reader("requests", 1000), metavar="N", help="send at most N requests of all kinds (default: no limit)"
    )
    time: Duration | None = argument(
        read_duration, metavar="TIME",
        help="end after this time, summed over all runs, such as 30min, 12h or 7d (default: no limit)",
    )  # fmt: skip

    @property
    def sends(self) -> str:
        """The limits in words; ``""`` for none."""
        limits = [f"at most {counted(self.budget, 'request')}" if self.budget else ""]
        limits.append(f"for {self.time}" if self.time else "")
        return ", ".join(limit for limit in limits if limit)

    def set_up(self, crawler: Crawler) -> None:
        if self.budget:
            crawler.settings.set("FOCUS_BUDGET_REQUESTS", self.budget, "spider")
        if self.time:
            crawler.settings.set("FOCUS_BUDGET_SECONDS", self.time.seconds, "spider")
        super().set_up(crawler)
