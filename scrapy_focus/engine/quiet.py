"""Keeps failed connections from filling the log: one line for each kind, and all of them with ``LOG_LEVEL = "DEBUG"``.

Scrapy logs each with a traceback of forty lines, again when it gives up, and the same for each robots.txt. The causes
are a handful of network errors, and none can be fixed with the traceback.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.http.request import NO_CALLBACK

from scrapy_focus.core.printable import printable_logger
from scrapy_focus.engine.ending import is_full
from scrapy_focus.engine.failure import failure_kind, in_words

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

logger = printable_logger(__name__)

_LOGGERS = ("scrapy.core.scraper", "scrapy.downloadermiddlewares.retry", "scrapy.downloadermiddlewares.robotstxt")


class Quiet(logging.Filter):
    """Logs the first failed connection of each kind in one line, and lowers Scrapy's own messages to debug.

    The lines are held until a page is fetched: if none is, the ending says why. If a pipeline cannot write to a full
    disk, its message is lowered, too: the crawl ends for that reason, and says so.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__()
        self.crawler = crawler
        self._said: set[str] = set()
        self._held: list[str] | None = []  # held lines; None: a page was fetched

    def start(self) -> None:
        """Filter what Scrapy logs."""
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)
        self.crawler.signals.connect(self._on_response, signals.response_received)

    def stop(self) -> None:
        """Remove the filter. Idempotent."""
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Lower the level of a record that is reported in other words."""
        error, spider = _error_of(record), self.crawler.spider
        if error is None or record.levelno <= logging.DEBUG or getattr(record, "spider", spider) is not spider:
            return True
        if kind := failure_kind(error):
            self._say(kind, error, record)
        elif not is_full(error):
            return True
        record.levelno, record.levelname = logging.DEBUG, "DEBUG"
        return True

    def _say(self, kind: str, error: BaseException, record: logging.LogRecord) -> None:
        if kind not in self._said:
            self._said.add(kind)
            where = record.args.get("request", "") if isinstance(record.args, dict) else ""
            said = f"Failed: {where}: {in_words(error)}; others like it are only counted (focus/failure/{kind})"
            if self._held is None:
                self._warn(said)
            else:
                self._held.append(said)

    def _on_response(self, request: Request) -> None:
        """Log the held lines when a page is fetched; handles Scrapy's signal. robots.txt does not count."""
        if self._held is not None and request.callback is not NO_CALLBACK:
            held, self._held = self._held, None
            for said in held:
                self._warn(said)

    def _warn(self, said: str) -> None:
        logger.warning("%s", said, extra={"spider": self.crawler.spider})


def _error_of(record: logging.LogRecord) -> BaseException | None:
    if record.exc_info and record.exc_info[1] is not None:
        return record.exc_info[1]
    reason = record.args.get("reason") if isinstance(record.args, dict) else None
    return reason if isinstance(reason, BaseException) else None
