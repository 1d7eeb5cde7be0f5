"""Record what a crawl does, and write the page and the table of its folder when it ends."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware

from scrapy_focus import __version__
from scrapy_focus.core.abilities import ShowsTables
from scrapy_focus.core.errors import FocusError
from scrapy_focus.core.printable import printable_logger, reason_of
from scrapy_focus.engine.ending import ending_of, is_full
from scrapy_focus.engine.failure import failure_kind, in_words
from scrapy_focus.engine.feeds import flush_feeds
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.marks import page_of
from scrapy_focus.finders.kit.page.folder import PAGE, write_page
from scrapy_focus.finders.kit.page.words import within
from scrapy_focus.finders.kit.records.notes import Answer, NoteBook, link_key
from scrapy_focus.finders.kit.spiders.writings import Writings, list_pages, list_tables
from scrapy_focus.goals.structured import types_seen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.finders.kit.page.output import Output
    from scrapy_focus.finders.kit.records.crawls import Run

logger = printable_logger(__name__)

_BETWEEN = 10.0  # seconds between two notes of the state of the crawl
_MOST = 1000  # hosts and extensions that are recorded
_LINKS = 1000  # links of a page whose keys are recorded
_FINE = 50_000  # working links that are remembered
_OF_BROWSERS = "browser/"  # prefix of the stats of rendering, ...
_OF_LISTS = "declared/"  # ... and of those of catalogues


class CrawlNotes:
    """Writes notes to ``<out>/.focus/log`` while a crawl runs, and ``<out>/index.html`` and a table at its end.

    A failed write is logged in one line, and does not stop the crawl. If the scheduler is not one of this package, the
    page shows only the finds.

    Parameters
    ----------
    crawler
        Of the crawl, before it begins.
    out
        The folder.
    output
        The output of the finder.
    run
        The number of this crawl of the folder.
    facts
        The arguments of the spider, as values of JSON.
    left_out
        Extensions of links that the spider skips; it may add to them while it crawls.
    comes_back
        Whether the crawl revisits pages and does not end. Then the page, the table and ``fresh.csv`` are also written
        while it runs, and later visits of a page are recorded only if it had changed or failed.
    """

    def __init__(
        self, crawler: Crawler, *, out: Path, output: type[Output], run: Run, facts: Mapping[str, Any],
        left_out: set[str], comes_back: bool = False,
    ) -> None:  # fmt: skip
        self.crawler = crawler
        self.out = out
        self.output = output
        self.run = run
        self.facts = facts
        self._left_out = left_out
        self._comes_back = comes_back
        self._elsewhere: set[str] = set()
        self._noted: tuple[set[str], set[str]] = set(), set()  # hosts and extensions
        self._fine: set[str] = set()  # keys of links that worked
        self._links: dict[str, dict[str, None]] = {}  # keys of the links of each page that is being read
        self._book: NoteBook | None = None
        self._is_broken = False  # a write failed
        self._due = 0.0  # seconds of time.monotonic
        self._writings = Writings(self._write) if comes_back else None
        crawler.signals.connect(self._open, signals.spider_opened)
        crawler.signals.connect(self._close, signals.spider_closed)

    def link(self, page: str, url: str) -> None:
        """Record a link of a page that is being read."""
        links = self._links.setdefault(page, {})
        if len(links) < _LINKS:
            links[link_key(url)] = None

    def _open(self, spider: Spider) -> None:
        self._try(self._begin)
        host = host_of(self.crawler)
        offsite = self.crawler.get_downloader_middleware(OffsiteMiddleware)
        if offsite is not None:
            self._elsewhere = offsite.domains_seen
        if host is not None:
            host.features.on("outcome", self._note)
            host.features.on("close", self._list_tables)
            self._list_tables()
            if issubclass(host.policy, ShowsTables) and self._writings is None:
                self._writings = Writings(self._list_tables)

    def _begin(self) -> None:
        settings, host = self.crawler.settings, host_of(self.crawler)
        self._book = NoteBook(self.out, resumes=self.run.resumes, crawl=self.run.number)
        self._book.begin({
            "at": _now(), "version": __version__, **self.facts,
            "policy": "" if host is None else host.policy.__qualname__,
            "robots": settings.getbool("ROBOTSTXT_OBEY"), "delay": settings.getfloat("DOWNLOAD_DELAY"),
            "agent": str(settings["USER_AGENT"]), "resumable": bool(settings["JOBDIR"]),
        })  # fmt: skip

    def _note(self, entry: Entry, outcome: Outcome) -> None:
        """Record an outcome, and periodically the state of the crawl."""
        book = self._book
        if self._writings is not None:
            self._writings.came()
        if book is None or outcome.changed is False:
            return
        answer = _answer(entry, outcome)
        hosts, extensions = (
            _unrecorded(*each) for each in zip((self._elsewhere, self._left_out), self._noted, strict=True)
        )
        links = self._links_of(answer.moved_to or answer.url, outcome)
        self._try(book.outcome, answer, elsewhere=hosts, left_out=extensions, links=links)
        if monotonic() >= self._due:
            self._try(self._note_state)

    def _links_of(self, page: str, outcome: Outcome) -> list[str]:
        """Return the keys of the links of a page that are not yet known to work."""
        if outcome.status is not None and outcome.status < HTTPStatus.BAD_REQUEST and len(self._fine) < _FINE:
            self._fine.add(link_key(outcome.pick.url))
        return [key for key in self._links.pop(page, ()) if key not in self._fine]

    def _note_state(self, reason: str | None = None) -> None:
        """Record the state of the crawl, and why it ended if it has."""
        host, self._due = host_of(self.crawler), monotonic() + _BETWEEN
        facts: dict[str, Any] = {"at": _now()}
        if reason is not None:
            facts["reason"] = reason
        if host is not None and reason is not None:
            facts["ending"] = within(ending_of(self.crawler).sentence, self.out)
        if host is not None:
            facts |= _facts_of(host)
        if self._book is not None:
            self._book.state(facts)

    def list_pages(self) -> None:
        """Write ``fresh.csv`` once more, while the frontier can still be read, if the crawl revisits pages."""
        if self._comes_back:
            self._write_table(list_pages, self.crawler, self.out, True)

    def _list_tables(self) -> None:
        self._write_table(list_tables, self.crawler, self.out)

    def _write_table(self, write: Callable[..., None], *args: Any) -> None:
        try:
            write(*args)
        except (OSError, FocusError) as error:
            if not self._is_full():
                logger.error("A table of the crawl cannot be written: %s", reason_of(error))

    def _write(self) -> None:
        self._try(self._note_state)
        self._write_table(list_pages, self.crawler, self.out, False)
        self._list_tables()
        self._write_page()

    def _close(self, spider: Spider, reason: str) -> None:
        if self._writings is not None:
            self._writings.stop()
        self._try(self._end, reason)
        flush_feeds(self.crawler)  # Scrapy closes them after this
        if self._write_page():
            logger.info("The results are listed in %s", self.out / PAGE)

    def _write_page(self) -> bool:
        try:
            write_page(self.out, self.output)
        except (OSError, FocusError) as error:
            if not self._is_broken and not self._is_full():  # otherwise it was reported already
                logger.error("The page of the results cannot be written: %s", reason_of(error))
            return False
        return True

    def _is_full(self) -> bool:
        """Whether the crawl ended, or is about to end, because its disk is full."""
        host = host_of(self.crawler)
        return host is not None and is_full(host.closing.error)

    def _end(self, reason: str) -> None:
        if self._book is not None:
            self._note_state(reason)
        if self._book is not None:
            self._book.close()

    def _try(self, call: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        """Write to the notes, or report once that they end here."""
        try:
            call(*args, **kwargs)
        except OSError as error:
            self._book, self._is_broken = None, True
            logger.error("The notes of this crawl end here, and its page will be incomplete: %s", reason_of(error))


def _facts_of(host: Host) -> dict[str, Any]:
    """Return the state of a crawl."""
    status = host.status(best=1)
    facts: dict[str, Any] = {
        "used": dict(status.used), "limits": dict(status.limits), "waiting": status.unfollowed,
        "in_flight": status.in_flight, "left": status.left, "cost": status.cost,
        "parameters": [],
    }  # fmt: skip
    for shown in host.shown():
        facts |= shown.notes
    if status.said:
        facts["said"] = [*status.said]
    if status.alarm:
        facts["alarm"] = status.alarm
    if seen := types_seen(status.counts):
        facts["seen"] = seen
    if host.unchecked:
        facts["unchecked"] = host.unchecked
    if rendered := {name: n for name, n in status.counts.items() if name.startswith(_OF_BROWSERS)}:
        facts["rendered"] = rendered
    if declared := {name: n for name, n in status.counts.items() if name.startswith(_OF_LISTS)}:
        facts["declared"] = declared
    return facts


def _unrecorded(names: set[str], noted: set[str]) -> list[str]:
    """Return the values that were not recorded before, and record them."""
    if len(names) == len(noted) or len(noted) >= _MOST:
        return []
    news = sorted(names - noted)[: _MOST - len(noted)]
    noted.update(news)
    return news


def _answer(entry: Entry, outcome: Outcome) -> Answer:
    """Return the note of an outcome."""
    pick, request, response = outcome.pick, entry.request, entry.response
    page = anchor = moved_to = ""
    if request is not None:
        page, anchor = page_of(request), str(request.meta.get("link_text", ""))
    if response is not None and response.url != pick.url:
        moved_to = response.url
    return Answer(
        url=pick.url, method=pick.method, status=outcome.status, mime=outcome.mime, size=outcome.size,
        sent=entry.sent, files=outcome.items, error=outcome.error, why=_why(entry, outcome), page=page, anchor=anchor,
        moved_to=moved_to,
    )  # fmt: skip


def _why(entry: Entry, outcome: Outcome) -> str:
    """Return why a pick failed, if its outcome does not say."""
    if entry.failure is None or not (outcome.error == "ignored" or failure_kind(entry.failure)):
        return ""
    return in_words(entry.failure)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
