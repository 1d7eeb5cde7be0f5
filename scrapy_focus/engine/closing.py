"""Collects facts while a crawl runs, from which its ending is derived when it is closed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import IgnoreRequest

from scrapy_focus.config import Config
from scrapy_focus.core.errors import StorageError
from scrapy_focus.core.goal import noun_of
from scrapy_focus.core.printable import printable_logger, reason_of
from scrapy_focus.engine.access import access_of
from scrapy_focus.engine.ending import (
    Ending,
    Facts,
    Wall,
    count_type,
    draw,
    ending_of,
    is_full,
    note_ending,
)
from scrapy_focus.engine.failure import failure_kind, reports_status, running_command, wall_before, why_unread
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.goals.structured import StructuredDataGoal, types_seen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy.crawler import Crawler

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.problems import Section
    from scrapy_focus.core.status import Status
    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.inflight import Entry

logger = printable_logger(__name__)

_NAMED = 3  # start URLs named, of those that could not be read
_READ = frozenset(  # a server sent a page
    {"ok", "unchanged", "mime_stop", "spider_error", "too_large", "filtered", "redirect_seen"}
)
_UNREAD = frozenset({"http_error", "failure", "ignored", "out_of_scope"})


class Closing:
    """Derives the ending of a crawl, writes it to the stats, and sets the exit status of Scrapy's own commands.

    Scrapy's commands get the status only with ``FOCUS_EXIT_STATUS``. Until it is closed, a crawl counts as interrupted,
    and so does its exit status: a second Ctrl-C ends the process at any point. A full disk ends the crawl, whichever
    pipeline detects it: ``stop`` is called then.
    """

    def __init__(self, crawler: Crawler, goal: Goal, *, resumable: bool) -> None:
        self.crawler = crawler
        self.goal = goal
        self.resumable = resumable
        self.types: Counter[str] = Counter()  # of what was read in this run
        self.error: BaseException | None = None  # for which the crawl stopped itself
        self.advice = ""  # how to install a browser, if there is none
        self._command = running_command()
        self._reports = reports_status(self._command, crawler.settings)
        self._asked = 0
        self._read = 0
        self._answered = False  # whether a server answered in this run
        self._failure = ""
        self._remedies: set[str] = set()  # what to do about unreadable start URLs
        self._sections: set[Section] = set()  # of the documents, on such start URLs
        self._wall: Wall | None = None  # a start page that admits no program
        self._unread: list[str] = []  # start URLs, with the reasons
        self._n_unread = 0
        self._stop: Callable[[StorageError], None] | None = None

    def open(self, status: Status, stop: Callable[[StorageError], None]) -> None:
        """Count the crawl as interrupted from now on."""
        self._stop = stop
        self._end(draw(self._facts("shutdown", status)))
        self.crawler.signals.connect(self._on_item_error, signals.item_error)
        self.crawler.signals.connect(self._on_closed, signals.spider_closed)

    def note(self, entry: Entry, label: str, outcome: Outcome) -> None:
        """Note the outcome of a pick."""
        self._asked += 1
        self._answered = self._answered or outcome.status is not None
        if label in _READ or outcome.items:
            self._read += 1
            if outcome.status is not None:
                count_type(self.types, outcome.mime)
            request = entry.request
            if not self._wall and request is not None and request.meta.get("is_start_request"):
                self._wall = wall_before(request, entry.response)
        else:
            self._note_unread(entry, label, outcome)

    def _note_unread(self, entry: Entry, label: str, outcome: Outcome) -> None:
        request = entry.request
        is_start = label in _UNREAD and request is not None and bool(request.meta.get("is_start_request"))
        self._n_unread += is_start
        is_named = is_start and len(self._unread) < _NAMED
        if is_named or not self._failure:
            failure = None if label == "http_error" else entry.failure
            why, remedy, section = why_unread(outcome.pick.url, entry.response, failure)
            proxy = access_of(self.crawler).proxy
            if proxy is not None and failure is not None and not isinstance(failure, IgnoreRequest):
                why, remedy = f"{why}, through the proxy {proxy.url}", "check that proxy"
            self._remedies.add(remedy)
            self._sections.add(section)
            said = f"{outcome.pick.url}: {why}"
            self._failure = self._failure or said
            if is_named:
                self._unread.append(said)

    @property
    def is_unreached(self) -> bool:
        """Whether pages were requested in this run, and none could be read: nothing was learned."""
        return bool(self._asked) and not self._read

    def failed(self, error: BaseException) -> None:
        """Note the error for which the crawl stops itself, or that occurred when it was closed."""
        self.error = self.error or error

    def close(self, reason: str, status: Status) -> None:
        """Derive the ending: the crawl is closed."""
        self._end(draw(self._facts(reason, status)))

    def _facts(self, reason: str, status: Status) -> Facts:
        items = self.crawler.stats.get_value("item_scraped_count", 0)
        whole = status.whole or status  # a worker has the ending of the whole crawl
        noun, described = _noun(self.goal), _described(self.goal)
        listed: int | None = getattr(self.crawler.spider, "n_found", None)  # of a list that has other pages, too
        rewards = whole.rewards
        if listed is not None:
            rewards, items = listed if status.whole is None else rewards, 0
        if items and not rewards:  # items count if nothing found earned a reward
            noun, described = "items", ""
        n_fetched, own = 0, None
        if status.whole is not None:
            n_fetched = int(whole.counts.get("outcomes", 0))
            own = status.rewards if rewards else items
        return Facts(
            reason=reason,
            found=rewards or items,
            noun=noun,
            wanted=_wanted(self.goal),
            read=self._n_read(status) if self._asked else n_fetched,  # by other workers
            asked=self._asked or n_fetched,
            requests=int(whole.used["requests"]),
            failure=self._failure,
            remedy=next(iter(self._remedies)) if len(self._remedies) == 1 else "",
            section=next(iter(self._sections)) if len(self._sections) == 1 else "unreachable",
            wall=self._wall,
            types=self._types(status),
            error=self.error,
            resumable=self.resumable,
            where=self._where(),
            unread=sorted(self._unread),
            n_unread=self._n_unread,
            described=described,
            own=own,
            waiting=whole.unfollowed,
            cost_limit=Config.cost_limit.of(self.crawler.settings) or 0.0,
            states=getattr(self.crawler.spider, "states", None),
            watched=str(getattr(self.crawler.spider, "duration", None) or ""),
            cut=self.crawler.stats.get_value("file/cut", 0),
            shells=status.counts.get("page/shell", 0),
            advice=self.advice,
            cut_lists=status.counts.get("browser/list_cut", 0),
            elsewhere=status.counts.get("browser/elsewhere", 0),
            hint=str(getattr(self.crawler.spider, "ending_hint", "")),
        )

    def _n_read(self, status: Status) -> int:
        """Return how many pages were read; includes earlier runs if a server answered in this one."""
        if not self._answered:
            return self._read
        return self._read + sum(status.counts.get(f"outcome/{label}", 0) for label in _READ)

    def _types(self, status: Status) -> Mapping[str, int]:
        """Return how many responses were read of each type."""
        if isinstance(self.goal, StructuredDataGoal):
            return types_seen(status.counts)
        return self.types

    def _where(self) -> str:
        """Return the file or folder with what was found, ``""`` if there is none."""
        out = getattr(self.crawler.spider, "out", None)
        return "" if out in (None, "-") else str(out)

    def _end(self, ending: Ending) -> None:
        in_my_words: Callable[[str], str] | None = getattr(self._command, "in_my_words", None)
        if in_my_words is not None:
            ending = replace(ending, sentence=in_my_words(ending.sentence))
        note_ending(self.crawler, ending)
        if self._command is not None and self._is_reported:
            self._command.exitcode = ending.status

    def _on_item_error(self, failure: object) -> None:
        error = getattr(failure, "value", None)
        if isinstance(error, Exception) and is_full(error) and self._stop is not None:
            said = StorageError(f"the disk is full: what was found cannot be stored ({reason_of(error)})")
            said.__cause__ = error
            self._stop(said)

    def _on_closed(self) -> None:
        ending = ending_of(self.crawler)
        extra = {"spider": self.crawler.spider}
        (logger.warning if ending.status and self._is_reported else logger.info)("%s", ending.sentence, extra=extra)

    @property
    def _is_reported(self) -> bool:
        """Whether the exit status reports the ending; always if the crawl stopped itself for an error."""
        return self._reports or self.error is not None


def _wanted(goal: Goal) -> str:
    if isinstance(goal, StructuredDataGoal) and goal.names:
        return f"page {_described(goal)}"
    return f"{goal.wanted} {goal.about}".strip() if isinstance(goal, FilesGoal) else ""


def _described(goal: Goal) -> str:
    """Say which pages are found, ``""`` if their noun says it."""
    if not isinstance(goal, StructuredDataGoal):
        return ""
    return f"with {' or '.join(goal.names) or 'structured data'}"


def _noun(goal: Goal) -> str:
    return "pages" if isinstance(goal, StructuredDataGoal) else noun_of(goal)


def connection_kind(entry: Entry) -> str:
    """Return the kind of failed connection that ended a pick, ``""`` for none."""
    return "" if entry.failure is None else failure_kind(entry.failure)
