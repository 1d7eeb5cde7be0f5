"""Show the progress of a crawl, and sum it up at its end."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.utils.asyncio import create_looping_call

from scrapy_focus.core.printable import printable, printable_logger
from scrapy_focus.engine.certificates import Certificates
from scrapy_focus.engine.finds import Finds
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.progress import Speed, Tables, View, draw_panel, progress
from scrapy_focus.engine.quiet import Quiet
from scrapy_focus.engine.terminal import REFRESH, Footer

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from scrapy_focus.engine.host import Host

logger = printable_logger(__name__)

_ROOM = 3  # columns for the ^C that the terminal shows


class FocusExtension:
    """Writes stats and progress while a crawl runs, and reports what it waits for when it is interrupted.

    On a terminal, progress is a panel that stays below the log (``FOCUS_PROGRESS``); elsewhere, it is a line in the log
    every ``LOGSTATS_INTERVAL`` seconds. The first failed connection of each kind is logged.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.host: Host | None = None
        self.finds = Finds()
        self._quiet = Quiet(crawler)
        self._certificates = Certificates(crawler)
        self._speed = Speed(crawler.settings.getfloat("DOWNLOAD_DELAY"))
        self._loop: Any = None
        self._footer: Footer | None = None
        self._tables: Tables | None = None
        self._between = 0.0  # seconds between two lines in the log; 0: no lines
        self._due = 0.0  # time of the next line, in seconds of time.monotonic
        self._has_said_farewell = False  # whether the effect of Ctrl-C was reported

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler)
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        """Start showing progress."""
        self.host = host = host_of(self.crawler)
        if host is None:
            logger.warning("The scheduler is not one of scrapy_focus, so its add-on does nothing: remove SCHEDULER")
            return
        self._quiet.start()
        self._certificates.start()
        host.features.on("settled", self.finds.note, name="progress")
        if host.config.progress == "panel" or (host.config.progress == "auto" and sys.stderr.isatty()):
            self._footer, self._tables = Footer(), Tables(host)
            self._footer.start()
        elif host.config.progress != "off":
            self._between = self.crawler.settings.getfloat("LOGSTATS_INTERVAL")
            self._due = monotonic() + self._between
        self._loop = create_looping_call(self._tick, host)
        self._loop.start(min(REFRESH, self._between or REFRESH), now=False)

    def spider_closed(self, spider: Spider, reason: str) -> None:
        """Stop showing progress, and log a summary of the crawl."""
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        if self._footer is not None:
            self._footer.stop()
        self._quiet.stop()
        if self.host is not None:
            self.host.flush_stats()
            said = "; ".join(progress(self.host, self._count()))
            logger.info("Finished (%s): %s", reason, said, extra={"spider": spider})

    def _count(self) -> Finds:
        """Return the finds of this run, and how many of them earlier crawls had found."""
        self.finds.known = getattr(self.crawler.spider, "n_known", 0)
        return self.finds

    def _tick(self, host: Host) -> None:
        host.guard("progress", None, self._show, host)  # after an exception, Scrapy would never call again

    def _show(self, host: Host) -> None:
        if host.is_interrupted and not self._has_said_farewell:
            self._has_said_farewell = True
            logger.warning("%s", self._farewell(host), extra={"spider": self.crawler.spider})
        if self._footer is not None and self._tables is not None:
            host.flush_stats()
            advice = "" if self._has_said_farewell else self._advice(host)
            view = View(host, self._count(), self._speed, advice, self._tables.now())
            self._footer.show(draw_panel(view, self._footer.width - _ROOM, self._footer.height))
        elif self._between and monotonic() >= self._due:
            self._due += self._between
            host.flush_stats()
            logger.info("%s", "; ".join(progress(host, self._count())), extra={"spider": self.crawler.spider})

    def _farewell(self, host: Host) -> str:
        """Say, after a Ctrl-C, what the crawl waits for, what another Ctrl-C does, and what is kept."""
        flying, longest = host.status().in_flight, self.crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
        flying_now = f"{flying:,} request{'s' * (flying != 1)} in flight"
        waits = f" after {flying_now} (at most {longest:,.0f} s)" if flying else ""
        return f"Stopping{waits}. Ctrl-C again stops at once. {self._left(host)}"

    def _advice(self, host: Host) -> str:
        return f"Ctrl-C stops. {self._left(host)}"

    def _left(self, host: Host) -> str:
        out = getattr(self.crawler.spider, "out", None)
        kept = "The results stay" if out in (None, "", "-") else f"The results stay in {printable(str(out))}"
        return f"{kept}; {'the same command resumes' if host.crawl.is_kept else 'without JOBDIR, nothing can resume'}."
