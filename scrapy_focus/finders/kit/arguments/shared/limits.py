"""When a crawl ends at the latest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_focus.core.printable import counted
from scrapy_focus.finders.kit.arguments.argument import Arguments, argument
from scrapy_focus.finders.kit.arguments.readers import number_reader, read_duration, read_size

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_focus.core.durations import Duration
    from scrapy_focus.core.sizes import Size


@dataclass(frozen=True, kw_only=True)
class LimitArguments(Arguments):
    """When a crawl ends at the latest.

    Arguments
    ---------
    budget
        The limit of requests of all kinds, in all runs of the crawl; none by default.
    time
        How long the crawl may take, in all its runs: ``30min``, ``12h``, ``7d``. No limit by default.
    size
        How much the crawl may receive, headers and bodies, in all its runs: ``500MB``, ``2GB``, ``1GiB``. A download
        that exceeds it is stopped. No limit by default.
    """

    heading = "limits"

    budget: int | None = argument(
        number_reader("requests", 1000), metavar="N", help="send at most N requests of all kinds (default: no limit)"
    )
    time: Duration | None = argument(
        read_duration, metavar="TIME",
        help="end after this time, summed over all runs, such as 30min, 12h or 7d (default: no limit)",
    )  # fmt: skip

    size: Size | None = argument(
        read_size, metavar="SIZE",
        help="end after receiving this much, summed over all runs, such as 500MB, 2GB or 1GiB; a running download is "
        "stopped (default: no limit)",
    )  # fmt: skip

    @property
    def sends(self) -> str:
        """The limits in words; ``""`` for none."""
        limits = [f"at most {counted(self.budget, 'request')}" if self.budget else ""]
        limits.append(f"for {self.time}" if self.time else "")
        limits.append(f"until {self.size} are received" if self.size else "")
        return ", ".join(limit for limit in limits if limit)

    @property
    def budgets(self) -> dict[str, float]:
        """The limits by what they limit: ``requests``, ``bytes``, ``seconds``; without those that are not given."""
        budgets: dict[str, float | None] = {
            "requests": self.budget, "bytes": self.size and self.size.bytes, "seconds": self.time and self.time.seconds,
        }  # fmt: skip
        return {name: limit for name, limit in budgets.items() if limit is not None}

    def set_up(self, crawler: Crawler) -> None:
        limits = {f"FOCUS_BUDGET_{name.upper()}": limit for name, limit in self.budgets.items()}
        crawler.settings.update(limits, "spider")
        if self.budgets:  # a later crawl with another limit uses what this one learned
            crawler.settings.set("FOCUS_COST_UNIT", "requests", "spider")
        super().set_up(crawler)
