"""What a crawl tells other programs while it runs, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_focus.finders.kit.arguments.argument import Arguments, argument
from scrapy_focus.finders.kit.arguments.readers import read_text

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


@dataclass(frozen=True, kw_only=True)
class WatchingArguments(Arguments):
    """What a crawl tells other programs while it runs, and when it ends.

    Arguments
    ---------
    stats_file
        A file for the state of the crawl as JSON, rewritten every minute and at the end. None by default.
    metrics_file
        The same as metrics in the OpenMetrics text format, such as for node_exporter. None by default.
    """

    heading = "watching"

    stats_file: str = argument(
        read_text, metavar="FILE", help="write the state of the crawl to FILE as JSON, every minute and at the end"
    )
    metrics_file: str = argument(
        read_text, metavar="FILE",
        help="write the state of the crawl to FILE as OpenMetrics text, every minute and at the end",
    )  # fmt: skip

    def set_up(self, crawler: Crawler) -> None:
        for name, file in (("FOCUS_STATS_FILE", self.stats_file), ("FOCUS_METRICS_FILE", self.metrics_file)):
            if file:
                crawler.settings.set(name, file, "spider")
        super().set_up(crawler)
