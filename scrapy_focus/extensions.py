"""Shows a crawl while it runs, and sums it up at its end."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.utils.asyncio import create_looping_call

from scrapy_focus.core.policy import Policy
from scrapy_focus.engine.inflight import scheduler_of
from scrapy_focus.engine.terminal import REFRESH, Footer
from scrapy_focus.web.html import readable

if TYPE_CHECKING:
    from typing import Self

    from rich.panel import Panel
    from scrapy import Spider
    from scrapy.crawler import Crawler

    from scrapy_focus.scheduler import FocusScheduler

logger = logging.getLogger(__name__)

_RECENT = 100  # requests over which the rate "now" is taken
_ROOM = 3  # columns for the ^C that the terminal shows


class FocusExtension:
    """Writes stats and progress while a crawl runs.

    On a terminal progress is a panel that stays below the log (``FOCUS_PROGRESS``), elsewhere a line in the log every
    ``LOGSTATS_INTERVAL`` seconds.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._loop: Any = None
        self._footer: Footer | None = None
        self.scheduler: FocusScheduler | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler)
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        """Start to show progress."""
        self.scheduler = scheduler = scheduler_of(self.crawler)
        if scheduler is None:
            logger.warning(
                "The scheduler is not one of scrapy_focus, so that its add-on does nothing: remove SCHEDULER"
            )
            return
        progress, interval = scheduler.config.progress, self.crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if progress == "panel" or (progress == "auto" and sys.stderr.isatty()):
            self._footer = Footer()
            self._footer.start()
            interval = REFRESH
        elif progress == "off" or not interval:
            return
        self._loop = create_looping_call(self._tick, scheduler)
        self._loop.start(interval, now=False)

    def spider_closed(self, spider: Spider, reason: str) -> None:
        """Stop to show progress, and say what came of the crawl."""
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        if self._footer is not None:
            self._footer.stop()
        if self.scheduler is not None:
            self.scheduler.flush_stats()
            logger.info("Finished (%s): %s", reason, "; ".join(progress(self.scheduler)), extra={"spider": spider})

    def _tick(self, scheduler: FocusScheduler) -> None:
        scheduler.flush_stats()
        if self._footer is not None:
            self._footer.show(draw_panel(scheduler, self._footer.width - _ROOM))
        else:
            logger.info("%s", "; ".join(progress(scheduler)), extra={"spider": self.crawler.spider})


def draw_panel(scheduler: FocusScheduler, width: int) -> Panel:
    """Return a picture of a crawl as it is now."""
    from rich.panel import Panel

    title = f"scrapy_focus: {type(scheduler.crawl.policy).__qualname__}"
    return Panel("\n".join(progress(scheduler)), title=title, title_align="left", width=width)


def progress(scheduler: FocusScheduler) -> list[str]:
    """Say how a crawl stands: requests and targets, rates, bytes, and the best arms."""
    crawl = scheduler.crawl
    used, limit, found = crawl.budget.requests_used, crawl.budget.requests, crawl.rewards
    since = max(0, used - _RECENT)
    before = next((rewards for requests, rewards in reversed(crawl.found_at) if requests <= since), 0.0)
    now = 100 * (found - before) / max(1, used - since)
    lines = [
        f"{used:,}{f' of {limit:,}' if limit else ''} requests, {_amount(found)} targets",
        f"per 100 requests: {now:.1f} now, {100 * found / max(1, used):.1f} overall",
        f"{crawl.budget.bytes_used / 1e6:,.1f} MB, {len(crawl.frontier):,} links wait in "
        f"{int((crawl.frontier.waiting > 0).sum()):,} arms, {crawl.in_flight} in flight",
    ]
    best = [
        f"{readable(name)} ({_amount(earned)} from {pulls})"
        for name, earned, pulls in scheduler.guard("best_arms", lambda: crawl.policy.best_arms(3)) or ()
    ]
    left = scheduler.guard("expected_left", crawl.policy.expected_left)
    if left is not None:
        lines.append(f"about {left.middle:,.0f} targets left to find ({left.low:,.0f} to {left.high:,.0f})")
    elif type(crawl.policy).expected_left is not Policy.expected_left:
        lines.append("targets left to find: not known")
    errors = sum(value for name, value in crawl.counts.items() if name.startswith("error/"))
    if errors:
        lines.append(f"{errors:,} errors, see the log and focus/error/ in the stats")
    return [*lines, f"best arms: {', '.join(best)}"] if best else lines


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
