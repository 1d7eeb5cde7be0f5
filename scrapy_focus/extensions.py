"""Shows a crawl while it runs, and sums it up at its end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.utils.asyncio import create_looping_call

from scrapy_focus.core.printable import printable, printable_logger
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.terminal import REFRESH, Footer
from scrapy_focus.web.html import readable

if TYPE_CHECKING:
    from typing import Self

    from rich.panel import Panel
    from scrapy import Spider
    from scrapy.crawler import Crawler

    from scrapy_focus.engine.host import Host

logger = printable_logger(__name__)

_RECENT = 100  # requests over which the rate "now" is taken
_LONGEST = 120  # characters of the name of an arm
_LONGEST_NAME = 20  # characters of the name of a parameter
_NAMES = 3  # of parameters
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
        self.host: Host | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler)
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        """Start to show progress."""
        self.host = host = host_of(self.crawler)
        if host is None:
            logger.warning(
                "The scheduler is not one of scrapy_focus, so that its add-on does nothing: remove SCHEDULER"
            )
            return
        progress, interval = host.progress, self.crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if progress == "panel" or (progress == "auto" and sys.stderr.isatty()):
            self._footer = Footer()
            self._footer.start()
            interval = REFRESH
        elif progress == "off" or not interval:
            return
        self._loop = create_looping_call(self._tick, host)
        self._loop.start(interval, now=False)

    def spider_closed(self, spider: Spider, reason: str) -> None:
        """Stop to show progress, and say what came of the crawl."""
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        if self._footer is not None:
            self._footer.stop()
        if self.host is not None:
            self.host.flush_stats()
            logger.info("Finished (%s): %s", reason, "; ".join(progress(self.host)), extra={"spider": spider})

    def _tick(self, host: Host) -> None:
        host.guard("progress", None, self._show, host)  # or Scrapy would never ask again

    def _show(self, host: Host) -> None:
        host.flush_stats()
        if self._footer is not None:
            self._footer.show(draw_panel(host, self._footer.width - _ROOM))
        else:
            logger.info("%s", "; ".join(progress(host)), extra={"spider": self.crawler.spider})


def draw_panel(host: Host, width: int) -> Panel:
    """Return a picture of a crawl as it is now."""
    from rich.panel import Panel
    from rich.text import Text

    title = Text(f"scrapy_focus: {host.policy.__qualname__}")
    return Panel(Text("\n".join(progress(host))), title=title, title_align="left", width=width)


def progress(host: Host) -> list[str]:
    """Say how a crawl stands: requests and targets, rates, bytes, and the best arms."""
    status = host.status(best=3)
    used, limit, found = int(status.used["requests"]), status.limits["requests"], status.rewards
    since = max(0, used - _RECENT)
    before = next((rewards for requests, rewards in reversed(status.found_at) if requests <= since), 0.0)
    now = 100 * (found - before) / max(1, used - since)
    lines = [
        f"{used:,}{f' of {limit:,}' if limit else ''} requests, {_amount(found)} targets",
        f"per 100 requests: {now:.1f} now, {100 * found / max(1, used):.1f} overall",
        f"{status.used['bytes'] / 1e6:,.1f} MB, {status.waiting:,} links wait in {status.awake:,} arms, "
        f"{status.in_flight} in flight",
    ]
    if large := status.counts.get("outcome/too_large", 0):
        lines.append(f"{large:,} answers skipped as too large")
    if copies := status.counts.get("near/dropped", 0):
        names = sorted({each.name for each in host.ignored_parameters() if each.links})
        lines.append(f"{copies:,} links not followed, as they differ only in {_listed(names)}")
    hosts, seconds = host.put_off_hosts
    if hosts:
        lines.append(f"{hosts:,} hosts put off, the next is asked again in {seconds:,.0f} s")
    if status.left is not None:
        left = status.left
        lines.append(f"about {left.middle:,.0f} targets left to find ({left.low:,.0f} to {left.high:,.0f})")
    elif host.policy.can("expected_left"):
        lines.append("targets left to find: not known")
    errors = sum(value for name, value in status.counts.items() if name.startswith("error/"))
    if errors:
        lines.append(f"{errors:,} errors, see the log and focus/error/ in the stats")
    best = [
        f"{printable(readable(name), _LONGEST)} ({_amount(earned)} from {pulls})"
        for name, earned, pulls in status.best_arms
    ]
    return [*lines, f"best arms: {', '.join(best)}"] if best else lines


def _listed(names: list[str]) -> str:
    shown = ", ".join(printable(name, _LONGEST_NAME) for name in names[:_NAMES])
    return f"{shown} and {len(names) - _NAMES:,} more" if len(names) > _NAMES else shown


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
