"""A crawl with a folder that has files of earlier ones: what is new comes first, what is known is only looked after.

Pages that were fetched before are given to the policy as links of their own kind, in the order of what they led to, so
that it learns where new links appear; and what they have that no crawl saw before are links as in any crawl. Then, or
when a third of the budget is used, come the links that earlier crawls saw and none followed, with the places where they
stood, and pages that had nothing to do with files. Files that are known are no links at all: each would be a sure
reward, and all of them would come first. They are asked for when nothing else waits, or when the rest of the budget is
just enough for them. Nothing of all this is asked for before the site answered with a page: of one that cannot be
reached nothing is known.
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
from scrapy_focus.finders.kit.records.crawls import LEARNED, next_run, note_begin, note_end, note_going_on, note_reached
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
_PLACE = "again/file"  # of a known file
_KNOWN = "focus_known_file"  # key of request.meta: it is for a known file
_LOOK = "focus_look"  # key of request.meta: in which turn a page is looked at again
_MOST_LOOKS: dict[Turn, int] = {"lead": 8, "file": 20}  # of these that wait, so that the best are looked at first
_AT_ONCE = 100  # known files that wait
_BEFORE_END = 100  # requests before a cost limit may end the crawl, at which known files are asked for
_GIVEN = 500  # links of earlier crawls that are given to the crawl at once
_NOT_FOLLOWED = frozenset({"failure", "ignored", "filtered", "lost", "budget"})  # links that came to this still wait


class Again:
    """What a crawl knows of the earlier ones with its folder, and tells the next.

    Parameters
    ----------
    crawler
        The crawl.
    out
        The folder.
    new_only
        Ask for no file that is known.
    comes_back
        Whether the crawl fetches pages and files again by itself. Then links of earlier crawls are links as any others.

    Raises
    ------
    UsageError
        If a list in the folder cannot be read.
    """

    def __init__(self, crawler: Crawler, out: Path, *, new_only: bool = False, comes_back: bool = False) -> None:
        self.crawler = crawler
        self.out = out
        self.new_only = new_only
        self.comes_back = comes_back
        job = crawler.settings["JOBDIR"]
        try:
            self.run = next_run(out, Path(job) if job else None)
            self.files = FileList(out, self.run.number)
            self.asked = Asked(out, self.run.number)
            self.waiting: Waiting | None = Waiting(out, self.run.number)  # None: its list cannot be written any more
        except ConfigError as error:
            raise UsageError(str(error)) from error
        self._is_reached = self.run.has_reached  # whether the site answered with something that can be read
        looks = [] if comes_back else self.asked.again()
        waiting = [] if self.waiting is None or comes_back else list(self.waiting.offered(self._was_asked))
        self._later = {look.url for look in looks} | {seen.url for seen in waiting}  # is given, whatever page has it
        self._looks = {turn: self._requests_of(looks, turn) for turn in _MOST_LOOKS}
        self._n_looks = dict.fromkeys(_MOST_LOOKS, 0)  # by turn: how many wait
        self._others = chain(self._unfollowed(waiting), self._requests_of(looks, "other"))
        self._checks: Iterator[Request] | None = None
        self._waiting = 0  # known files that were given to the engine, and are not back
        self._configure(crawler.settings)
        crawler.signals.connect(self._on_opened, signals.spider_opened)
        crawler.signals.connect(self._on_closed, signals.spider_closed)
        crawler.signals.connect(self._on_idle, signals.spider_idle)
        crawler.signals.connect(self._on_reached, signals.request_reached_downloader)
        crawler.signals.connect(self._on_left, signals.request_left_downloader)
        crawler.signals.connect(self._look_done, signals.request_dropped)

    def is_listed(self, url: str) -> bool:
        """Whether a URL is that of a known file, which is not asked for as a link."""
        return not self.comes_back and bool(self.files.before) and self.files.is_listed(url.partition("#")[0])

    def comes_later(self, url: str) -> bool:
        """Whether an earlier crawl saw a link: the policy gets it in its turn, whatever page has it."""
        return url in self._later

    def place_of_new(self, url: str) -> str:
        """Return where a link stands that no crawl saw before, ``""`` for where it is on its page."""
        return self.asked.place_of_new(url)

    def gone(self, response: Response) -> Known | None:
        """Return the known file that a response says is not there any more."""
        if response.status not in (404, 410) or (self.comes_back and not self._is_last(response)):
            return None
        known = self.files.last(response.url) if self.comes_back else self.files.before.get(response.url)
        if known is None or known.state == "gone":
            return None
        return known

    def _is_last(self, response: Response) -> bool:
        """Whether a page that is gone is not asked for again."""
        return response.status == 410 or _last_visit(self.crawler, response).misses + 1 >= MISSES

    def note(self, response: Response, what: What) -> None:
        """Note what a URL was that was asked for, and those that redirected to it."""
        page = "" if response.request is None else page_of(response.request)
        self.asked.note(response.url, what, page)
        for url in response.meta.get("redirect_urls", ()):
            self.asked.note(url, "other", page)

    def reached(self) -> None:
        """The site answered with a page or a file: what earlier crawls knew of it may be asked for."""
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
                new_only=self.new_only,
            )  # fmt: skip
        else:
            note_going_on(self.out)
        known = sum(not known.is_copy for known in self.files.before.values())
        if known:
            logger.info(
                "Crawl %d of %s: %s known; what is new comes first", self.run.number, self.out,
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
        """Note which link was followed, and the new ones on its page, before the crawl has them."""
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
            logger.error("No more links are remembered for the next crawl: %s", reason_of(error))

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
        """Give some links of earlier crawls to the engine, and return how many.

        What may lead to new files comes first, some at a time; then, or when a third of the budget is used, all else.
        """
        if is_idle:
            self._n_looks = dict.fromkeys(_MOST_LOOKS, 0)  # whatever became of them
        given = []
        for turn, looks in self._looks.items():
            requests = list(islice(looks, max(0, _MOST_LOOKS[turn] - self._n_looks[turn])))
            self._n_looks[turn] += len(requests)
            given += requests
        if self._is_late() or not (given or any(self._n_looks.values())):
            given += islice(self._others, _GIVEN)
        for request in given:
            self.crawler.engine.crawl(request)
        return len(given)

    def _is_late(self) -> bool:
        host = host_of(self.crawler)
        if host is None:
            return True
        status = host.status()
        limit = status.limits["requests"]
        return limit is not None and status.used["requests"] >= limit / 3

    def _request(self, url: str, place: dict[str, str], *, page: str = "", anchor: str = "", **meta: Any) -> Request:
        """Return a request that no page of this crawl led to. It is no start request, whose host would be trusted."""
        spider: Any = self.crawler.spider
        said = {LINK: place, "is_start_request": False, **meta}
        if page:
            said |= {FOUND_ON: page}
        if anchor:
            said |= {"link_text": anchor}
        return Request(url, spider.parse, errback=spider.skip, meta=said)

    # Known files

    def _on_idle(self, spider: Spider) -> None:
        """Ask for known files when nothing else waits; the handler of Scrapy's ``spider_idle``."""
        if self._is_reached and (self._give(is_idle=True) or self._ask()):
            raise DontCloseSpider

    def _on_reached(self, request: Request) -> None:
        """Note the page of a link before it redirects, as its Referer is the link itself then."""
        if "redirect_urls" not in request.meta and (page := page_of(request)):
            request.meta[FOUND_ON] = page

    def _look_done(self, request: Request) -> None:
        """A page is looked at, or was already; the handler of Scrapy's ``request_dropped``, too."""
        turn = request.meta.pop(_LOOK, "")
        if turn in self._n_looks:
            self._n_looks[turn] -= 1

    def _on_left(self, request: Request) -> None:
        """Give links, and ask for known files when the rest of the budget is needed for them."""
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
        """Give some known files to the engine, and return how many."""
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
            if self.new_only and not known.cut:  # of a file that was cut, a part is new
                continue
            meta: dict[str, Any] = {"page": known.page, "anchor": known.anchor, _KNOWN: True}
            if known.url not in self.files.now:
                yield self._request(known.url, {"tag_path": _PLACE}, **meta)
            if known.link != known.url:  # which may redirect to another file by now
                yield self._request(known.link, {"tag_path": _PLACE}, **meta)


class AskIfChanged:
    """Asks for a file that is known only if it has changed since: with its ``ETag`` and ``Last-Modified``.

    The answer 304 becomes a response with status 200, no body and the flag ``not modified``. What to ask is left to
    Scrapy's :class:`~scrapy.extensions.httpcache.RFC2616Policy`. With ``HTTPCACHE_ENABLED`` it is not there, as then
    the cache asks. Requests with conditions of their own are left as they are, and so are those for files that are not
    in the folder any more.
    """

    def __init__(self, crawler: Crawler) -> None:
        if crawler.settings.getbool("HTTPCACHE_ENABLED"):
            raise NotConfigured  # without a reason: it is no mistake
        self.crawler = crawler
        self.policy = RFC2616Policy(crawler.settings)
        self._remembered: WeakKeyDictionary[Request, Response] = WeakKeyDictionary()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        if request.meta.pop(_CONDITIONAL, False):  # a redirect or a retry of one that had conditions
            _drop_conditions(request)
        again: Again | None = getattr(self.crawler.spider, "again", None)
        if again is None or request.method != "GET" or _has_conditions(request) or self._is_read(request):
            return
        known = again.files.before.get(request.url)
        if known is None or not (known.etag or known.last_modified) or not again.files.where(known.path).is_file():
            return
        remembered = response_of(known)
        self.policy.is_cached_response_fresh(remembered, request)  # which sets the conditions, as it is stale
        if _has_conditions(request):
            request.meta[_CONDITIONAL] = True
            self._remembered[request] = remembered

    def _is_read(self, request: Request) -> bool:
        """Whether this crawl has read the page or file before, and asks itself whether it has changed since."""
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
    """Return what is known of a page from its last visit: the defaults, if there was none."""
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
    """Return the response that a known file came with, without its body: stale, and to be validated."""
    headers = {"Content-Type": known.mime, "Cache-Control": "max-age=0, must-revalidate"}
    if known.etag:
        headers["ETag"] = known.etag
    if known.last_modified:
        headers["Last-Modified"] = known.last_modified
    return Response(known.url, headers=headers, flags=[NOT_MODIFIED])


def _can_learn(settings: BaseSettings) -> bool:
    """Whether the policy can write down what it learned, and begin with it."""
    policy = policy_of(settings)
    return issubclass(policy, Saves) and issubclass(policy, Loads)


def policy_of(settings: BaseSettings) -> type:
    """Return the class of the policy that the settings choose; whether it is one is not looked at."""
    scheduler = load_object(settings["SCHEDULER"])  # Scrapy's own where an add-on is to set it
    policy = settings.get("FOCUS_POLICY") or getattr(scheduler, "default_policy", BranchingBandit)
    found = load_object(policy)
    return found if isinstance(found, type) else object


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
