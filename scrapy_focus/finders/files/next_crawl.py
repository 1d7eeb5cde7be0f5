"""A crawl with a folder that has files of earlier crawls: new files come first, known files are only checked.

Pages fetched by earlier crawls become links of separate kinds, ordered by what they led to, so the policy learns where
new links appear. New links on these pages are treated as in any crawl. Then, or when a third of the budget is used,
come the links that earlier crawls saw but did not follow, with their original places, and pages unrelated to files.
Known files are not links at all: each would be a sure reward, so all of them would come first. They are requested when
nothing else is queued, or when the rest of the budget is just enough for them. None of this begins before the site has
returned a page, as nothing is known about a site that cannot be reached.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider, NotConfigured, UsageError
from scrapy.extensions.httpcache import RFC2616Policy
from scrapy.http import Response
from scrapy.utils.misc import load_object

from scrapy_focus.config import Config
from scrapy_focus.core.abilities import Loads, Saves
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import counted, inflected, printable_logger, reason_of
from scrapy_focus.core.types import State
from scrapy_focus.engine.ending import ending_of
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.marks import FOUND_ON, LINK, page_of
from scrapy_focus.features.revisits.feature import MISSES, NOT_MODIFIED, Visits
from scrapy_focus.features.revisits.lastvisit import Visit
from scrapy_focus.finders.files.asked_urls import Asked
from scrapy_focus.finders.files.file_list import FileList
from scrapy_focus.finders.files.waiting_links import Waiting
from scrapy_focus.finders.kit.records.crawls import (
    LEARNED,
    about_by_crawl,
    next_run,
    note_begin,
    note_end,
    note_going_on,
    note_reached,
)
from scrapy_focus.policies.branching.policy import BranchingBandit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.finders.files.asked_urls import Look, Turn, What
    from scrapy_focus.finders.files.file_list import Known
    from scrapy_focus.finders.files.waiting_links import Seen

logger = printable_logger(__name__)

_CONDITIONAL = "focus_conditional"  # key of request.meta: the conditions in its headers are ours
_CONDITIONS = ("If-None-Match", "If-Modified-Since")
_PLACE = "again/file"  # the place of known files
_KNOWN = "focus_known_file"  # key of request.meta: the request is for a known file
_LOOK = "focus_look"  # key of request.meta: the turn in which a page is revisited
_MOST_LOOKS: dict[Turn, int] = {"lead": 8, "file": 20}  # queued at once, best first
_AT_ONCE = 100  # known files that are queued at once
_BEFORE_END = 100  # requests before a cost limit may end the crawl, when known files are requested
_GIVEN = 500  # links of earlier crawls that are passed to the crawl at once
_NOT_FOLLOWED = frozenset({"failure", "ignored", "filtered", "lost", "budget", "out_of_scope"})  # remain unfollowed


class Again:
    """What a crawl knows from earlier crawls of its folder, and records for the next one.

    Parameters
    ----------
    crawler
        The crawl.
    out
        The folder.
    new_only
        Do not request known files.
    comes_back
        Whether the crawl revisits pages and files by itself. Then links of earlier crawls are ordinary links.
    about, least
        What the files are to be about, and the least relevance of those that are stored.

    Raises
    ------
    UsageError
        If a list in the folder cannot be read.
    """

    def __init__(
        self, crawler: Crawler, out: Path, *, new_only: bool = False, comes_back: bool = False, about: str = "",
        least: float = 0.0,
    ) -> None:  # fmt: skip
        self.crawler = crawler
        self.out = out
        self.new_only = new_only
        self.comes_back = comes_back
        self.about = about
        self.least = least
        job = crawler.settings["JOBDIR"]
        try:
            self.run = next_run(out, Path(job) if job else None)
            self.files = FileList(out, self.run.number)
            self._abouts = about_by_crawl(out)
            self.asked = Asked(out, self.run.number)
            self.waiting: Waiting | None = Waiting(out, self.run.number)  # None: writing its list failed
        except ConfigError as error:
            raise UsageError(str(error)) from error
        self._is_reached = self.run.has_reached  # whether the site returned something readable
        looks = [] if comes_back else self.asked.again()
        waiting = [] if self.waiting is None or comes_back else list(self.waiting.offered(self._was_asked))
        self._later = {look.url for look in looks} | {seen.url for seen in waiting}  # queued in their turn
        self._looks = {turn: self._requests_of(looks, turn) for turn in _MOST_LOOKS}
        self._n_looks = dict.fromkeys(_MOST_LOOKS, 0)  # by turn: number of queued pages
        self._others = chain(self._unfollowed(waiting), self._requests_of(looks, "other"))
        self._checks: Iterator[Request] | None = None
        self._waiting = 0  # known files that were passed to the engine and are not done
        self._configure(crawler.settings)
        crawler.signals.connect(self._on_opened, signals.spider_opened)
        crawler.signals.connect(self._on_closed, signals.spider_closed)
        crawler.signals.connect(self._on_idle, signals.spider_idle)
        crawler.signals.connect(self._on_reached, signals.request_reached_downloader)
        crawler.signals.connect(self._on_left, signals.request_left_downloader)
        crawler.signals.connect(self._look_done, signals.request_dropped)

    def judged(self, url: str) -> Known | None:
        """Return the last line of a file whose relevance was judged by the same words; ``None`` without one."""
        known = self.files.last(url)
        if known is None or known.relevance is None:
            return None
        is_same = known.crawl == self.run.number or self._abouts.get(known.crawl) == self.about
        return known if is_same else None

    def is_kept_out(self, known: Known) -> bool:
        """Whether a known file is not stored, and would not be stored if it were fetched again."""
        judged = None if known.path else self.judged(known.url)
        return judged is not None and judged.relevance is not None and judged.relevance < self.least

    def is_listed(self, url: str) -> bool:
        """Whether a URL is that of a known file, which is not requested as a link."""
        return not self.comes_back and bool(self.files.before) and self.files.is_listed(url.partition("#")[0])

    def comes_later(self, url: str) -> bool:
        """Whether an earlier crawl saw a link: it is queued in its turn, whichever page contains it."""
        return url in self._later

    def place_of_new(self, url: str) -> str:
        """Return the place of a link that no crawl saw before, ``""`` for its place on the page."""
        return self.asked.place_of_new(url)

    def gone(self, response: Response) -> Known | None:
        """Return the known file that a response reports as gone."""
        if response.status not in (404, 410) or (self.comes_back and not self._is_last(response)):
            return None
        known = self.files.last(response.url) if self.comes_back else self.files.before.get(response.url)
        if known is None or known.state == "gone":
            return None
        return known

    def _is_last(self, response: Response) -> bool:
        """Whether a page that is gone will not be requested again."""
        return response.status == 410 or _last_visit(self.crawler, response).misses + 1 >= MISSES

    def note(self, response: Response, what: What) -> None:
        """Note what a requested URL was, and those that redirected to it."""
        page = "" if response.request is None else page_of(response.request)
        self.asked.note(response.url, what, page)
        for url in response.meta.get("redirect_urls", ()):
            self.asked.note(url, "other", page)

    def reached(self) -> None:
        """Note that the site returned a page or a file: URLs of earlier crawls may now be requested."""
        if not self._is_reached:
            self._is_reached = True
            note_reached(self.out, self.run.number)

    def _configure(self, settings: BaseSettings) -> None:
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", AskIfChanged, 560)
        if not _can_learn(settings):
            return
        learned = self.out / LEARNED
        if settings.get("FOCUS_LEARNED_TO") is None:
            settings.set("FOCUS_LEARNED_TO", str(learned), "spider")
        if settings.get("FOCUS_LEARNED_FROM") is None and learned.exists() and not self.run.resumes:
            settings.set("FOCUS_LEARNED_FROM", str(learned), "spider")

    def _on_opened(self, spider: Spider) -> None:
        if (host := host_of(self.crawler)) is not None:
            host.features.on("read_page", self._note_links)
        if not self.run.resumes:
            if self.waiting is not None:
                self.waiting.begin()
            settings = self.crawler.settings
            note_begin(
                self.out, self.run.number, began=_now(), roots=getattr(spider, "roots", []),
                types=repr(getattr(spider, "goal", "")), budget=settings["FOCUS_BUDGET_REQUESTS"],
                new_only=self.new_only, **({"about": self.about} if self.about else {}),
            )  # fmt: skip
        else:
            note_going_on(self.out)
        known = sum(not known.is_copy for known in self.files.before.values())
        if known:
            logger.info(
                "Crawl %d of %s: %s known; new files come first", self.run.number, self.out,
                f"{counted(known, 'file')} {inflected(known, 'is', 'are')}", extra={"spider": spider},
            )  # fmt: skip

    def _on_closed(self, spider: Spider, reason: str) -> None:
        host, counts = host_of(self.crawler), self.files.counts()
        used = {} if host is None else host.status().used
        if self.files.before:
            logger.info(
                "Files: %s", ", ".join(f"{n:,} {state}" for state, n in counts.items()), extra={"spider": spider}
            )
        failed = ending_of(self.crawler).kind == "unreachable" and not self.files.now
        more: dict[str, float] = {}
        if reason == "focus_cost_limit" and (limit := Config.cost_limit.of(self.crawler.settings)):
            more["cost_limit"] = float(limit)
        note_end(
            self.out, self.run.number, reason, failed=failed, ended=_now(), requests=int(used.get("requests", 0)),
            bytes=int(used.get("bytes", 0)), seconds=float(used.get("seconds", 0)), files=counts,
            **more,
        )  # fmt: skip

    # Links

    def _note_links(self, entry: Entry, outcome: Outcome) -> None:
        """Note which link was followed, and the new links of its page, before the crawl receives them."""
        host = host_of(self.crawler)
        if host is None or self.waiting is None or outcome.pick.method != "GET":
            return
        states = host.crawl.knows([link.key for link in entry.links])
        new = [link for link, state in zip(entry.links, states, strict=True) if state == State.NEW]
        page = outcome.pick.url if entry.response is None else entry.response.url
        try:
            self.waiting.note(page, new, followed="" if outcome.error in _NOT_FOLLOWED else outcome.pick.url)
        except OSError as error:
            self.waiting = None
            logger.error("Stopped recording links for the next crawl: %s", reason_of(error))

    def _was_asked(self, url: str) -> bool:
        return url in self.asked.before or self.is_listed(url)

    def _unfollowed(self, waiting: Iterable[Seen]) -> Iterator[Request]:
        for seen in waiting:
            place = {"tag_path": seen.tag_path, "anchor": seen.anchor, "context": seen.context}
            yield self._request(seen.url, place, page=seen.page, anchor=seen.anchor, depth=seen.depth)

    def _requests_of(self, looks: Iterable[Look], turn: Turn) -> Iterator[Request]:
        for look in looks:
            if look.turn == turn:
                yield self._request(look.url, {"tag_path": look.place}, **{_LOOK: turn})

    def _give(self, *, is_idle: bool = False) -> int:
        """Pass some links of earlier crawls to the engine, and return how many.

        Links that may lead to new files come first, a few at a time; then, or when a third of the budget is used, all
        others.
        """
        if is_idle:
            self._n_looks = dict.fromkeys(_MOST_LOOKS, 0)  # whatever their outcomes
        given = []
        for turn, looks in self._looks.items():
            requests = list(islice(looks, max(0, _MOST_LOOKS[turn] - self._n_looks[turn])))
            self._n_looks[turn] += len(requests)
            given += requests
        if self._must_give_all() or not (given or any(self._n_looks.values())):
            given += islice(self._others, _GIVEN)
        for request in given:
            self.crawler.engine.crawl(request)
        return len(given)

    def _must_give_all(self) -> bool:
        host = host_of(self.crawler)
        if host is None:
            return True
        status = host.status()
        limit = status.limits["requests"]
        return limit is not None and status.used["requests"] >= limit / 3

    def _request(self, url: str, place: dict[str, str], *, page: str = "", anchor: str = "", **meta: Any) -> Request:
        """Return a request without a page in this crawl. It is not a start request, whose host would be trusted."""
        spider: Any = self.crawler.spider
        said = {LINK: place, "is_start_request": False, **meta}
        if page:
            said |= {FOUND_ON: page}
        if anchor:
            said |= {"link_text": anchor}
        if self.crawler.settings.get("FOCUS_DEPTH") is not None:
            known = self.files.before.get(url)
            said.setdefault("depth", self.asked.depth_of(url) if known is None else self.asked.depth_of(known.page) + 1)
        return Request(url, spider.parse, errback=spider.skip, meta=said)

    # Known files

    def _on_idle(self, spider: Spider) -> None:
        """Request known files when nothing else is queued; the handler of Scrapy's ``spider_idle``."""
        if self._is_reached and (self._give(is_idle=True) or self._ask()):
            raise DontCloseSpider

    def _on_reached(self, request: Request) -> None:
        """Note the page of a link before it redirects, as its Referer is then the link itself."""
        if "redirect_urls" not in request.meta and (page := page_of(request)):
            request.meta[FOUND_ON] = page

    def _look_done(self, request: Request) -> None:
        """Note that a revisit is done or was dropped; also the handler of Scrapy's ``request_dropped``."""
        turn = request.meta.pop(_LOOK, "")
        if turn in self._n_looks:
            self._n_looks[turn] -= 1

    def _on_left(self, request: Request) -> None:
        """Pass links to the engine, and request known files when they need the rest of the budget."""
        if request.meta.get(_KNOWN):
            self._waiting = max(0, self._waiting - 1)
        self._look_done(request)
        if not self._is_reached:
            return
        self._give()
        if self._checks is None and not self._is_time():
            return
        if self._waiting < _AT_ONCE // 2:
            self._ask()

    def _is_time(self) -> bool:
        host = host_of(self.crawler)
        if host is None:
            return False
        status = host.status()
        limit = status.limits["requests"] or self.run.requests
        left = limit - status.used["requests"]
        is_ending = status.ends_in is not None and status.ends_in <= _BEFORE_END
        return is_ending or (bool(limit) and left <= min(limit / 3, self.files.to_send))

    def _ask(self) -> int:
        """Pass some known files to the engine, and return how many."""
        if self.comes_back or not self.files.before:
            return 0
        if self._checks is None:
            self._checks = self._requests()
        requests = list(islice(self._checks, _AT_ONCE))
        self._waiting += len(requests)
        for request in requests:
            self.crawler.engine.crawl(request)
        return len(requests)

    def _requests(self) -> Iterator[Request]:
        for known in self.files.to_check():
            if self.new_only and not known.cut:  # part of a file that was cut is new
                continue
            meta: dict[str, Any] = {"page": known.page, "anchor": known.anchor, _KNOWN: True}
            if known.url not in self.files.now:
                yield self._request(known.url, {"tag_path": _PLACE}, **meta)
            if known.link != known.url:  # it may redirect to another file now
                yield self._request(known.link, {"tag_path": _PLACE}, **meta)


class AskIfChanged:
    """Makes requests for known files conditional, by their ``ETag`` and ``Last-Modified``.

    A 304 becomes a response with status 200, no body and the flag ``not modified``. Scrapy's
    :class:`~scrapy.extensions.httpcache.RFC2616Policy` sets the conditions. With ``HTTPCACHE_ENABLED``, the middleware
    is disabled, as the cache does the same. Requests that already have conditions are unchanged, as are those for files
    that are no longer in the folder.
    """

    def __init__(self, crawler: Crawler) -> None:
        if crawler.settings.getbool("HTTPCACHE_ENABLED"):
            raise NotConfigured  # without a reason: this is not an error
        self.crawler = crawler
        self.policy = RFC2616Policy(crawler.settings)
        self._remembered: WeakKeyDictionary[Request, Response] = WeakKeyDictionary()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        if request.meta.pop(_CONDITIONAL, False):  # a redirect or retry of a conditional request
            _drop_conditions(request)
        again: Again | None = getattr(self.crawler.spider, "again", None)
        if again is None or request.method != "GET" or _has_conditions(request) or self._is_read(request):
            return
        known = again.files.before.get(request.url)
        if known is None or not (known.etag or known.last_modified):
            return
        if not (again.files.where(known.path).is_file() or again.is_kept_out(known)):
            return
        remembered = response_of(known)
        self.policy.is_cached_response_fresh(remembered, request)  # sets the conditions, as the response is stale
        if _has_conditions(request):
            request.meta[_CONDITIONAL] = True
            self._remembered[request] = remembered

    def _is_read(self, request: Request) -> bool:
        """Whether this crawl has already read the page or file, and makes the request conditional itself."""
        return bool(_last_visit(self.crawler, request).digest)

    def process_response(self, request: Request, response: Response) -> Response:
        remembered = self._remembered.pop(request, None)
        if remembered is None or not self.policy.is_cached_response_valid(remembered, response, request):
            return response
        headers = remembered.headers.copy()
        for name in ("ETag", "Last-Modified"):
            if name in response.headers:
                headers[name] = response.headers[name]
        return remembered.replace(headers=headers, ip_address=response.ip_address, protocol=response.protocol)


def _last_visit(crawler: Crawler, carrier: Request | Response) -> Visit:
    """Return the last visit of a page; the defaults, if there was none."""
    host = host_of(crawler)
    if host is None:
        return Visit()
    entry, visits = host.inflight.find(carrier), host.features.find(Visits)
    if entry is None or visits is None:
        return Visit()
    return visits.last(entry)


def _has_conditions(request: Request) -> bool:
    return any(name in request.headers for name in _CONDITIONS)


def _drop_conditions(request: Request) -> None:
    for name in _CONDITIONS:
        request.headers.pop(name, None)


def response_of(known: Known) -> Response:
    """Return the response of a known file without its body: stale, to be validated."""
    headers = {"Content-Type": known.mime, "Cache-Control": "max-age=0, must-revalidate"}
    if known.etag:
        headers["ETag"] = known.etag
    if known.last_modified:
        headers["Last-Modified"] = known.last_modified
    return Response(known.url, headers=headers, flags=[NOT_MODIFIED])


def _can_learn(settings: BaseSettings) -> bool:
    """Whether the policy can store what it learned, and start from it."""
    policy = policy_of(settings)
    return issubclass(policy, Saves) and issubclass(policy, Loads)


def policy_of(settings: BaseSettings) -> type:
    """Return the class of the policy in the settings, unchecked."""
    scheduler = load_object(settings["SCHEDULER"])  # Scrapy's own, if an add-on will replace it
    policy = settings.get("FOCUS_POLICY") or getattr(scheduler, "default_policy", BranchingBandit)
    found = load_object(policy)
    return found if isinstance(found, type) else object


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
