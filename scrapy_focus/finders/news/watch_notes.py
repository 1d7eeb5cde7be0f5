"""Record the state of a watch, and update its page, its feed and the table of its pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import signals

from scrapy_focus import __version__
from scrapy_focus.core.errors import FocusError
from scrapy_focus.core.printable import printable_logger, reason_of
from scrapy_focus.engine.ending import ending_of
from scrapy_focus.engine.failure import why_unread
from scrapy_focus.engine.feeds import flush_feeds
from scrapy_focus.engine.host import host_of
from scrapy_focus.finders.kit.page.words import within
from scrapy_focus.finders.kit.records.notes import NoteBook
from scrapy_focus.finders.kit.records.times import time_text
from scrapy_focus.finders.kit.spiders.writings import Writings, list_pages, list_tables
from scrapy_focus.finders.news.hours import HOUR, HourBook
from scrapy_focus.finders.news.output import write_news
from scrapy_focus.finders.news.watched import Gathering

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from scrapy_focus.core.status import Status
    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.inflight import Entry

logger = printable_logger(__name__)

#: Counts of visits, and their names in the hourly counts.
VISITS = {name: f"visit/{name}" for name in ("first", "changed", "unchanged", "error")}


class WatchNotes:
    """Records the state of a watch in ``<out>/.focus``, and writes ``index.html``, ``feed.xml`` and ``fresh.csv``.

    These and the tables of the policy are written while it runs (:class:`Writings`), and at the end. A failed write is
    logged in one line, and does not stop the crawl.

    Parameters
    ----------
    crawler
        Of the crawl, before it begins.
    out
        The folder.
    resumes
        Whether the watch resumes.
    facts
        The arguments of the spider, as values of JSON.
    """

    def __init__(self, crawler: Crawler, *, out: Path, resumes: bool, facts: Mapping[str, Any]) -> None:
        self.crawler = crawler
        self.out = out
        self.facts = facts
        self._resumes = resumes
        self._book: NoteBook | None = None
        self._hours: HourBook | None = None
        self._gathering = Gathering(out)
        self._hour = 0  # of the last outcome, since the epoch
        self._writings = Writings(self._write)
        self._said: set[str] = set()  # errors
        self._has_page = False  # whether a page was read in this run
        self._said_unread = False
        crawler.signals.connect(self._open, signals.spider_opened)
        crawler.signals.connect(self._close, signals.spider_closed)

    def _open(self, spider: Spider) -> None:
        host = host_of(self.crawler)
        self._try(self._begin)
        if host is not None:
            host.features.on("outcome", self._note)
            host.features.on("close", self._list_tables)
        self._writings.now()

    def _begin(self) -> None:
        settings, host = self.crawler.settings, host_of(self.crawler)
        now = None if host is None else host.status().at
        self._book = NoteBook(self.out, resumes=self._resumes, crawl=1)
        self._book.begin({
            "at": time_text(now), "now": now, "version": __version__, **self.facts,
            "policy": "" if host is None else host.policy.__qualname__,
            "robots": settings.getbool("ROBOTSTXT_OBEY"), "delay": settings.getfloat("DOWNLOAD_DELAY"),
            "agent": str(settings["USER_AGENT"]), "resumable": bool(settings["JOBDIR"]),
        })  # fmt: skip
        self._hours = HourBook(self.out)

    def _note(self, entry: Entry, outcome: Outcome) -> None:
        """Count a visit, before the crawl receives its outcome, and schedule a write."""
        host = host_of(self.crawler)
        if host is None:
            return
        hour = int(host.status().at // HOUR)
        if self._hours is not None and hour > self._hour > 0:
            self._try(self._hours.note, self._hour * HOUR, _counts(host.status()))
        self._hour = hour
        self._has_page = self._has_page or not outcome.error
        if outcome.pick.method == "GET" and outcome.error:
            host.count("visit/error")
            self._say_unread(entry, outcome)
        elif outcome.pick.method == "GET" and not entry.visited:
            host.count("visit/first")
        self._writings.came()

    def _say_unread(self, entry: Entry, outcome: Outcome) -> None:
        """Warn once, and at once, if the first page cannot be read: the watch can only wait."""
        if self._has_page or self._said_unread:
            return
        self._said_unread = True
        error = None if outcome.error == "http_error" else entry.failure
        why = why_unread(outcome.pick.url, entry.response, error).why
        logger.warning("Could not read %s: %s", outcome.pick.url, why, extra={"spider": self.crawler.spider})

    def _write(self, reason: str | None = None) -> None:
        """Write the current state of the watch to all files."""
        self._try(self._note_state, reason)
        if reason is None:
            self._try(list_pages, self.crawler, self.out, False)
            self._list_tables()
        self._try(write_news, self.out, self._gathering)

    def _note_state(self, reason: str | None) -> None:
        """Record the state of the watch, and why it ended if it has."""
        host = host_of(self.crawler)
        if host is None or self._book is None or self._hours is None:
            return
        status = host.status()
        facts: dict[str, Any] = {
            "at": time_text(status.at), "now": status.at, "used": dict(status.used), "limits": dict(status.limits),
            "waiting": status.waiting, "asleep": status.asleep, "next_due": status.next_due,
        }  # fmt: skip
        if reason is not None:
            facts |= {"reason": reason, "ending": within(ending_of(self.crawler).sentence, self.out)}
        self._book.state(facts)
        self._hours.note(status.at, _counts(status))

    def list_pages(self) -> None:
        """Write ``fresh.csv`` once more, while the frontier can still be read."""
        self._try(list_pages, self.crawler, self.out, True)

    def _list_tables(self) -> None:
        self._try(list_tables, self.crawler, self.out)

    def _close(self, spider: Spider, reason: str) -> None:
        self._writings.stop()
        flush_feeds(self.crawler)
        self._write(reason)
        if self._book is not None:
            self._try(self._book.close)

    def _try(self, call: Callable[..., object], *args: Any) -> None:
        """Call a function that writes, and log why it fails; each reason once."""
        try:
            call(*args)
        except (OSError, FocusError) as error:
            said = reason_of(error)
            if said not in self._said and ending_of(self.crawler).kind != "disk_full":
                self._said.add(said)
                logger.error("The list of news cannot be written: %s", said)


def _counts(status: Status) -> dict[str, int]:
    """Return the counts that are recorded by the hour."""
    used = {name: int(status.used[name]) for name in ("requests", "bytes")}
    return used | {name: status.counts.get(count, 0) for name, count in VISITS.items()}
