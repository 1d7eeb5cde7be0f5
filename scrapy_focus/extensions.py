"""Shows a crawl while it runs, and sums it up at its end."""

from __future__ import annotations

import atexit
import logging
import sys
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.utils.asyncio import create_looping_call

from scrapy_focus.engine.host import host_of
from scrapy_focus.web.html import readable

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from scrapy_focus.engine.host import Host

logger = logging.getLogger(__name__)

_RECENT = 100  # requests over which the rate "now" is taken
_REFRESH = 0.5  # seconds between two pictures of the panel


class FocusExtension:
    """Writes stats and progress while a crawl runs.

    On a terminal progress is a panel that stays below the log (``FOCUS_PROGRESS``), elsewhere a line in the log every
    ``LOGSTATS_INTERVAL`` seconds.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._loop: Any = None
        self._panel: Panel | None = None
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
            self._panel = Panel(host)
            self._panel.start()
            interval = _REFRESH
        elif progress == "off" or not interval:
            return
        self._loop = create_looping_call(self._tick, host)
        self._loop.start(interval, now=False)

    def spider_closed(self, spider: Spider, reason: str) -> None:
        """Stop to show progress, and say what came of the crawl."""
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        if self._panel is not None:
            self._panel.stop()
        if self.host is not None:
            self.host.flush_stats()
            logger.info("Finished (%s): %s", reason, "; ".join(progress(self.host)), extra={"spider": spider})

    def _tick(self, host: Host) -> None:
        host.flush_stats()
        if self._panel is not None:
            self._panel.refresh()
        else:
            logger.info("%s", "; ".join(progress(host)), extra={"spider": self.crawler.spider})


class Panel:
    """A live picture of a crawl at the bottom of a terminal; log lines scroll above it."""

    def __init__(self, host: Host) -> None:
        from rich.console import Console
        from rich.live import Live

        self.host = host
        self._handlers: list[tuple[logging.StreamHandler[Any], Any]] = []
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)

    def start(self) -> None:
        """Show it, and let all log handlers of the terminal write above it."""
        stream = sys.stderr
        self._live.start()
        atexit.register(self._live.stop)  # a second Ctrl-C ends the process, and would leave the cursor hidden
        for handler in logging.root.handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is stream:
                self._handlers.append((handler, handler.setStream(sys.stderr)))

    def refresh(self) -> None:
        """Show the crawl as it is now."""
        from rich.panel import Panel as Box

        title = f"scrapy_focus: {self.host.policy.__qualname__}"
        width = self._live.console.width - 3  # room for the ^C that the terminal shows
        box = Box("\n".join(progress(self.host)), title=title, title_align="left", width=width)
        self._live.update(box, refresh=True)

    def stop(self) -> None:
        """Take it away."""
        for handler, stream in self._handlers:
            handler.setStream(stream)
        self._live.stop()
        atexit.unregister(self._live.stop)


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
    if status.left is not None:
        left = status.left
        lines.append(f"about {left.middle:,.0f} targets left to find ({left.low:,.0f} to {left.high:,.0f})")
    elif host.policy.can("expected_left"):
        lines.append("targets left to find: not known")
    errors = sum(value for name, value in status.counts.items() if name.startswith("error/"))
    if errors:
        lines.append(f"{errors:,} errors, see the log and focus/error/ in the stats")
    best = [f"{readable(name)} ({_amount(earned)} from {pulls})" for name, earned, pulls in status.best_arms]
    return [*lines, f"best arms: {', '.join(best)}"] if best else lines


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
