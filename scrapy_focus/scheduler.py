"""The schedulers: one settings line turns Scrapy's queue into a frontier that learns.

Two wishes conflict. The engine asks for a request whenever it has room and wants an answer at once; the policy would
rather know what came of the last ones first. So requests are handed out as late as possible, never more than can start
now, and before each choice all outcomes are reported that the engine is done with.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections import Counter, deque
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, ParamSpec, TypeVar, cast

from scrapy import signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.job import job_dir
from scrapy.utils.log import get_scrapy_root_handler
from scrapy.utils.request import RequestFingerprinter

from scrapy_focus.config import Config
from scrapy_focus.core.crawl import PART
from scrapy_focus.core.errors import FocusError, StorageError
from scrapy_focus.core.goal import noun_of
from scrapy_focus.core.outstanding import most_out
from scrapy_focus.core.printable import printable, printable_elsewhere, printable_logger, reason_of
from scrapy_focus.core.types import Link, State
from scrapy_focus.downloadermiddlewares import RenderMiddleware, install
from scrapy_focus.dupefilters import Seen
from scrapy_focus.engine.answers import answer_of, question_of, response_of
from scrapy_focus.engine.apis import API_RULES, Apis
from scrapy_focus.engine.browser.found import NO_ADDON, install_commands
from scrapy_focus.engine.closing import Closing, connection_kind
from scrapy_focus.engine.failure import in_words_of_command, said_already
from scrapy_focus.engine.feeds import flush_feeds, mend_feeds
from scrapy_focus.engine.garbage import freeze, thaw
from scrapy_focus.engine.inflight import BudgetExhausted, Entry, Errback, InFlight, engine_slot, unwrap
from scrapy_focus.engine.keptrules import add_rules, read_rules
from scrapy_focus.engine.links import Links
from scrapy_focus.engine.marks import GIVEN, PICK, VISIT, WHY
from scrapy_focus.engine.nearcopies import PARAMETERS, NearCopyFilter
from scrapy_focus.engine.priorities import Priorities
from scrapy_focus.engine.renderings import Renderings, Shells, begin_rendering, take_back
from scrapy_focus.engine.requests import MissingCallback, Requests, Unsendable, project_of
from scrapy_focus.engine.room import Room
from scrapy_focus.engine.signals import Signals
from scrapy_focus.engine.slots import Slots, slot_name
from scrapy_focus.engine.stats import Stats, persistence, summary
from scrapy_focus.engine.structured import CountStructured
from scrapy_focus.engine.traps import Traps
from scrapy_focus.engine.turns import Turns, has_more
from scrapy_focus.engine.visits import Visits, has_conditions
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.goals.structured import StructuredDataGoal
from scrapy_focus.jobs.answers import ANSWERS, KeptAnswers
from scrapy_focus.making import clock_of, make_crawl, make_worker
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.spidermiddlewares import ItemIdMiddleware, has_spider_middleware
from scrapy_focus.web.mime import matches
from scrapy_focus.web.wanted import slips

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
    from typing import Any, Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.utils.asyncio import CallLaterResult
    from twisted.internet.defer import Deferred

    from scrapy_focus.cluster.worker import Worker
    from scrapy_focus.core.crawl import Crawl, Status
    from scrapy_focus.core.policy import Policy, PolicyTable, WatchedPage
    from scrapy_focus.core.types import Outcome, Pick
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.keptrules import Kept
    from scrapy_focus.engine.known import KnownLinks
    from scrapy_focus.jobs.job import Job
    from scrapy_focus.web.nearcopies import Ignored

logger = printable_logger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")

_MANY = 100_000  # waiting links whose objects make a garbage collection long
_HALF_A_DAY = 43_200.0  # seconds; a time that is further away is said with its date
_BETWEEN = 100  # outcomes between two looks at how many wait
_PATIENCE = 60.0  # seconds that a reward may come later
_STOPPED = 5.0  # seconds for which another machine is waited for by a process that was asked to stop
_LONGEST = 60.0  # seconds until the policy is asked again that has nothing yet
_STUCK = 5.0  # seconds after which the links of a page whose callback still runs are placed, if all else is done
_LONGEST_REASON = 1000  # characters
_LONGEST_NOUN = 60
_SHOWN_ERRORS = 3  # with traceback; after that they are only counted
_WRITTEN = ("close", "log", "save")  # errors of what is written when a crawl is closed
_MOST_ERRORS = 100  # of the question whether there is anything to do
_RETURNS = 3  # of a pick to a URL of its own
_SKIPPED = 50  # links to copies that are passed over at once
_WOKEN = 100  # links that slept, at once
_WAKING = 0.01  # seconds for which links are woken in one turn of the event loop


class FocusScheduler(BaseScheduler):
    """A scheduler whose order is decided by a policy: ``FOCUS_POLICY``, with ``FOCUS_POLICY_PARAMS``.

    It needs nothing else of this package. Links are tied to their page by the id that our spider middleware puts into
    them, or else by their Referer header, and learn from where they stand on it. Items are the reward, unless
    ``FOCUS_TARGETS`` or ``FOCUS_GOAL`` say otherwise. ``Request.priority`` is not looked at, as the policy decides, but
    with ``FOCUS_REQUEST_PRIORITY``: then the policy decides among those of the highest priority that waits.

    Job directory contents
    ----------------------
    With ``JOBDIR``, the crawl lives in the folder ``focus`` in it (see :class:`~scrapy_focus.jobs.job.Job`), and
    resumes there, whether it was stopped or killed. Scrapy's own dupefilter writes nothing; another one writes its own
    files.

    Notes
    -----
    Exceptions of a policy, a goal or this class never reach the engine, which is not made for them: they are logged
    and counted as ``focus/error/...``, and the crawl continues, first in first out where nothing better is known. Only
    where the files of a job cannot be read or written does it stop, with the reason ``focus_storage``.
    """

    default_policy: ClassVar[type[Policy]] = BranchingBandit

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self.crawler = crawler
        self.config = config
        self.counts: Counter[str] = Counter()
        policy = config.make_policy()
        config.try_files()
        clock = self._make_clock()
        self._speed = getattr(clock, "speed", 1.0)  # seconds of the crawl in one of the machine's
        jobdir = "" if config.cluster else job_dir(crawler.settings)
        self.job = self._make_job(Path(jobdir, "focus")) if jobdir else None
        self.resumed = self.job is not None and not self.job.is_new
        try:
            self.crawl = self._make_crawl(policy, clock)
            self._stores = self.crawl.is_kept
            self._rules = self._learned_rules()
            self.answers = self._kept_answers()
            self.requests = Requests(
                cast("Spider", crawler.spider),
                durable=self.crawl.is_kept,
                stores=config.stored_classes,
                travels=bool(self.crawl.where),
            )
            self.priorities = self._make_priorities()
            self.links = Links(
                crawler,
                self,
                self.requests,
                reads_page=policy.reads_page,
                priorities=self.priorities,
                comes_back=self.crawl.comes_back,
                salt=secrets.randbits(60) if self.crawl.where else 1,
            )
            self.seen = Seen(
                crawler,
                self,
                self.links,
                wanted=frozenset() if policy.known_by_key else policy.wants_known,
                tells_keys=policy.known_by_key or policy.can("know"),
                recovered=self.crawl.status().recovered,
                resumed=self.resumed,
            )
        except BaseException:
            if self.job is not None:
                self.job.close()
            raise
        self.signals = Signals(crawler, self, self.links, self.crawl.hear, knows_all=not self.crawl.where)
        self.closing = Closing(crawler, self.crawl.goal, resumable=self.crawl.is_kept)
        self.slots = Slots(crawler, limit=config.max_inflight_per_slot)
        self.inflight = InFlight(crawler, self, self.slots)
        self.room = self._make_room(learns=policy.can("learn"))
        self.visits = self._make_visits()
        self.renderings: Renderings | None = None  # known when the engine has its middlewares
        self.apis: Apis | None = None
        self.shells: Shells | None = None  # pages that a browser might show more of, where there is none
        self.traps = Traps(config.limits(), self)
        self.near = self._make_near()
        self.turns = Turns(self._step, self._ask_again)
        self._concluding: set[int] = set()  # picks whose outcomes take more than one turn
        self._successors: deque[tuple[Entry, Request]] = deque()
        self._loose: list[tuple[Link, Request, bool]] = []  # of no page, still to be packed
        self._spilled: deque[Request] = deque()  # taken in spite of an error of ours, outside the policy
        self._stopping = False
        self._closed = False
        self._failed = False  # our files cannot be written or read any more
        self._stats = Stats(crawler)
        self._owing: dict[int, Entry] = {}  # by pick, whose rewards come later
        self._alarm: CallLaterResult | None = None  # when the engine is to ask again
        self.seeds: set[str] = set()  # hosts of start requests
        self._told: dict[str, float] = {}  # seconds for which a slot was put off, as a warning said last
        self.when_earned: list[Callable[[Entry, Outcome, float], None]] = []
        self.listeners: list[Callable[[Entry, Outcome], None]] = []  # told of each outcome before the crawl is
        if isinstance(config.goal, StructuredDataGoal):
            self.listeners.append(CountStructured(self, config.goal))
        self.when_seen: list[Callable[[Entry, Outcome], None]] = []  # the same, when its links have places
        self.when_closing: list[Callable[[], None]] = []  # called while the frontier can still be read
        self._notes_priority = self.priorities is None
        self._never = False  # what waits is due at no time, as the policy said when it was asked last
        self._freeze_from = _MANY  # waiting links
        self._dropped = 0  # links that were given up, as too many waited, when their requests were forgotten
        self._until_look = _BETWEEN  # outcomes

    def _make_crawl(self, policy: Policy, clock: Callable[[], float] | None) -> Crawl | Worker:
        """Return the crawl, or what stands for it where another machine leads it."""
        config = self.config
        patience = _PATIENCE * self._speed
        if config.cluster:
            return make_worker(
                self.crawler, config, policy, counts=self.counts, clock=clock, patience=patience,
                when_news=self._ask_again, when_failed=self._fail,
                when_unplaced=lambda urls: self.seen.forget(urls),  # noqa: PLW0108 (it is not there yet)
            )  # fmt: skip
        return make_crawl(config, policy, self.job, counts=self.counts, clock=clock, patience=patience)

    def _make_clock(self) -> Callable[[], float] | None:
        return clock_of(self.crawler.settings)

    def _make_job(self, folder: Path) -> Job:
        from scrapy_focus.jobs.job import Job  # with a database, which crawls without a job do not import

        spider = cast("Spider", self.crawler.spider)
        return Job(
            folder,
            every=self.config.checkpoint_every,
            name=spider.name,
            stores=self.config.stored_classes,
            project=project_of(spider),
        )

    def _make_near(self) -> NearCopyFilter | None:
        if not self.config.ignore_parameters:
            return None
        return NearCopyFilter(self, self.links, None if self.job is None else self.job.folder / PARAMETERS)

    def _make_room(self, *, learns: bool) -> Room | None:
        """Return what bounds how many picks are out; ``None`` where nothing does, or the leader of a cluster."""
        if self.config.most_out == 0 or self.crawl.where or not (learns or self.config.most_out):
            return None
        return Room(self.inflight, self.slots, most=self._most_out, ask_again=self._ask_again)

    def _most_out(self) -> int:
        """How many picks may be out now; what came back counts as learned, though its reward comes later."""
        hosts = getattr(getattr(self.crawl, "frontier", None), "hosts", ())
        most = self.config.most_out or most_out(self.counts["outcomes"] + len(self._owing), len(hosts))
        return min(most, self.crawler.engine.downloader.total_concurrency or most)

    def _make_visits(self) -> Visits | None:
        if not self.crawl.comes_back:
            return None
        self.inflight.when_arrived = self._arrived
        return Visits(self.crawler, self, shows_unchanged=self.config.unchanged)

    def _make_renderings(self) -> Renderings | None:
        """Return what lets pages wait to be rendered; ``None`` where the policy does not, or no browser is there."""
        mode = self.config.render
        if mode != "always" and not self.config.policy.can("render"):
            return None
        if mode == "never":
            needs = install_commands(self.crawler.settings)
            self._note_shells(f'set FOCUS_RENDER = "learn", which needs {needs}')
            return None
        browser = NO_ADDON if self._renderer is None else self._renderer.browser
        if not browser:
            logger.info("Pages are not rendered: %s", browser.reason)
            self._note_shells(browser.advice)
            return None
        if mode == "always":
            logger.info("All pages are rendered, by %s", browser.what)
            return None
        logger.info("Pages with scripts are rendered where that pays, by %s", browser.what)
        self.apis = self._make_apis()
        self.when_closing += [self.apis.save, self.apis.say]
        return Renderings(self, self.requests)

    def _note_shells(self, advice: str) -> None:
        """Look for pages that scripts fill, as no browser shows them; say at the end how to get one."""
        self.shells = Shells(self)
        self.closing.advice = advice
        self.when_closing.append(self.shells.tell)

    @property
    def _renderer(self) -> RenderMiddleware | None:
        """What asks a browser, where there is the add-on."""
        middlewares = self.crawler.engine.downloader.middleware.middlewares
        return next((each for each in middlewares if isinstance(each, RenderMiddleware)), None)

    def _make_apis(self) -> Apis:
        return Apis(self.count, None if self.job is None else self.job.folder / API_RULES, self._rules)

    def _learned_rules(self) -> Kept | None:
        """Return the rules of APIs that an earlier crawl learned, if this one begins with that."""
        path = self.config.learned_from
        if not path or self.resumed or (self.crawl.where and not Path(path).exists()):  # it is the leader's
            return None
        return read_rules(path)

    def _make_priorities(self) -> Priorities | None:
        """Return what tells priorities apart, if that is asked for, or was in the run that stored links that wait."""
        priorities = Priorities(self.crawl.status().hosts if self.resumed else ())
        return priorities if self.config.request_priority or priorities else None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        try:
            return cls(crawler, Config.from_settings(crawler.settings, cls.default_policy))
        except Exception as error:
            logger.error("scrapy_focus cannot start: %s", in_words_of_command(error))
            if isinstance(error, FocusError):
                said_already(error, crawler.settings)
            crawler.engine.spider = None  # nothing is opened yet, and Scrapy 2.19 fails when it closes what is not
            raise

    @property
    def focus_host(self) -> Host:
        """What our components find it by, see :func:`~scrapy_focus.engine.host.host_of`."""
        return self

    def open(self, spider: Spider) -> Deferred[None] | None:
        install(self.crawler, comes_back=self.crawl.comes_back)
        if (handler := get_scrapy_root_handler()) is not None:
            handler.addFilter(printable_elsewhere)
        self.inflight.connect()
        if self.answers is not None:
            self.crawler.signals.connect(self._on_downloaded, signals.response_downloaded)
        if self.config.item_id and not has_spider_middleware(self.crawler, ItemIdMiddleware):
            logger.warning("FOCUS_ITEM_ID does nothing without the add-on, or ItemIdMiddleware in SPIDER_MIDDLEWARES")
        if isinstance(self.crawl.goal, FilesGoal):
            for word, meant in slips(sorted(self.crawl.goal.wanted.extensions)):
                logger.warning("%s is taken as an extension; did you mean %s?", word, meant, extra={"spider": spider})
        self.closing.open(self.crawl.status(), self._fail)
        self.guard("mend_feeds", None, mend_feeds, self.crawler)
        self.renderings = self._make_renderings()
        self._freeze()
        logger.info("scrapy_focus: %s", self.summary(), extra={"spider": spider})
        return self.seen.open()

    def close(self, reason: str) -> Deferred[None] | None:
        self._set_alarm(None)
        failed = self._unwritten
        self.guard("close", None, self._shut_down)
        for tell in self.when_closing:
            self.guard("note", None, tell)
        status = self.guard("close", None, self.crawl.status)
        if self.answers is not None:
            self.guard("close", None, self.answers.close)
        if self.near is not None:
            self.guard("near", None, self.near.close)
        learned_to = "" if self.closing.is_unreached else self.config.learned_to
        if self.crawl.where and self.apis is not None and (text := self.apis.kept().for_others()):
            self.guard("note", None, cast("Worker", self.crawl).tell_rules, text)
        unsaved = self.counts["error/save"]
        leaving = self.guard("close", None, self.crawl.close, learned_to=learned_to)
        if learned_to and not self.crawl.where and self.counts["error/save"] == unsaved:
            self.guard("save", None, self._save_rules, learned_to)
        if self._unwritten > failed:
            self.closing.failed(StorageError("what a crawl leaves could not be written"))
        if status is not None:
            self._stats.flush(status)  # with what closing counted
            self.closing.close(reason, status)
        thaw()
        self._closed = True
        closed = self.seen.close(reason)
        return closed if leaving is None else deferred_from_coro(self._leave(leaving, closed, reason))

    def _save_rules(self, path: str) -> None:
        """Let the file of what was learned hold the rules of APIs, those too for which no browser was there."""
        add_rules(path, (self.apis or self._make_apis()).kept())

    async def _leave(self, leaving: Awaitable[None], closed: Deferred[None] | None, reason: str) -> None:
        """Wait until the leader heard all; what is counted by then is in the stats, and in the ending."""
        try:
            await leaving
        except Exception:  # as in guard()
            self.count("error/close")
            logger.exception("scrapy_focus failed when it left the leader", extra={"spider": self.crawler.spider})
        self.flush_stats()
        self.closing.close(reason, self.crawl.status())
        if closed is not None:
            await maybe_deferred_to_future(closed)

    def has_pending_requests(self) -> bool:
        pending = self.guard("has_pending_requests", None, self._has_pending)
        if pending is not None:
            return pending
        errors = self.counts["error/has_pending_requests"]  # not known is not done, but not for ever
        return bool(self._spilled) or not (self._failed or self._stopping or errors > _MOST_ERRORS)

    def enqueue_request(self, request: Request) -> bool:
        if isinstance(request.errback, Errback):
            request.errback = request.errback.original
        if self._closed:  # start() may run on for a moment; the next run asks it again
            return False
        if type(self.crawler.request_fingerprinter) is not RequestFingerprinter:  # its errors are the project's
            self.crawler.request_fingerprinter.fingerprint(request)
        accepted = self.guard("enqueue_request", None, self._enqueue, request)
        if accepted is not None:
            return accepted
        if not self._failed:
            self._spilled.append(request)
        return True

    def next_request(self) -> Request | None:
        request = self.guard("next_request", None, self._next)
        if request is None and self._spilled and not self._stopping:
            return self._spilled.popleft()
        return request

    def summary(self) -> str:
        """Say in one line what is active."""
        config, status = self.config, self.crawl.status()
        crawl = summary(config.policy, config.goal, config.make_budget())
        kept = persistence(self.job, status, resumed=self.resumed, where=self.crawl.where)
        return f"policy {crawl}, persistence {kept}"

    # What our components ask, see Host

    @property
    def policy(self) -> type[Policy]:
        """The class of who decides."""
        return self.config.policy

    @property
    def noun(self) -> str:
        """What several things that are looked for are called: ``"files"``."""
        return printable(noun_of(self.config.goal), _LONGEST_NOUN)

    @property
    def progress(self) -> str:
        """How to show progress: ``"auto"``, ``"panel"``, ``"log"`` or ``"off"``."""
        return self.config.progress

    @property
    def is_interrupted(self) -> bool:
        """Whether the process was asked to stop, so that only what is in flight is waited for."""
        slot = engine_slot(self.crawler)
        return slot is not None and slot.closing is not None and not self.crawler.engine.running

    @property
    def is_resumable(self) -> bool:
        """Whether the crawl is kept in a folder, where the next run resumes it."""
        return self.crawl.is_kept

    def is_wanted(self, mime: str, url: str = "") -> bool:
        """Whether bodies of a MIME type are read: not those that are blocked, but always those that are looked for."""
        goal = self.config.goal
        if not matches(mime, self.config.blocked_mimes) or matches(mime, getattr(goal, "types", ())):
            return True
        return isinstance(goal, FilesGoal) and goal.wants(mime, url)

    def status(self, *, best: int = 0) -> Status:
        """Return how the crawl stands; ``best``: with so many of the best arms, and what is expected to be left.

        What is left is not known where a list was cut, and where nothing seems left but pages need a browser.
        """
        status = self.crawl.status(best=best)
        whole = status.whole or status
        is_cut = bool(self.counts["browser/list_cut"])
        if whole.left is None or not (is_cut or (self.counts["page/shell"] and not whole.left.middle)):
            return status
        return replace(status, left=None, whole=status.whole and replace(status.whole, left=None))

    def watched(self, most: int) -> list[WatchedPage]:
        """Return up to so many of the pages that come back, those with most visits first."""
        return self.crawl.watched(most)

    def tables(self) -> list[PolicyTable]:
        """Return the tables that the policy shows of itself, and that of APIs in place of a browser."""
        return [*self.crawl.tables(), *([] if self.apis is None else self.apis.tables())]

    def knows(self, keys: Sequence[int]) -> list[State]:
        """Return what the crawl knows about each key."""
        return self.crawl.knows(keys)

    def count(self, name: str, n: int = 1) -> None:
        """Add to the count that is written to the stats as ``focus/<name>``."""
        self.counts[name] += n

    def note_yielded(self, pick_id: int, request: Request) -> None:
        """The page of a pick gave a request that no spider middleware held back."""
        if self.seen.tells_keys and (entry := self.inflight.entries.get(pick_id)) is not None and entry.returned:
            entry.yielded.add(hash(request.url))

    def drops(self, request: Request, response: Response | None) -> bool:
        """Whether a request from the page of a response goes no further, as its URL was requested before."""
        return self.guard("drops", False, self._drops, request, self.inflight.find(response))

    def known_on(self, response: Response) -> KnownLinks | None:
        """Return what is known of the links of a page, ``None`` where nobody knows."""
        entry = self.inflight.find(response)
        return None if entry is None else self.seen.known_on(entry)

    def is_spent(self) -> bool:
        """Whether nothing more may be asked for: a budget is used up, or the crawl is over."""
        return self._closed or self._failed or bool(self.crawl.finished())

    def loads_elsewhere(self, kind: str) -> bool:
        """Whether pages in a browser may load a type of resource from hosts that the spider does not crawl."""
        return kind in self.config.browser_offsite

    async def is_first(self, request: Request) -> bool:
        """Wait until it is known whether another machine asks for the page to which a request was redirected."""
        entry = self.inflight.find(request)
        if not self.crawl.where or entry is None or request is not entry.request or not entry.also:
            return True
        key = self.links.key(request)
        if key != entry.also[-1]:
            return True
        state = await self._unless_stopped(self.crawl.claim(entry.pick.id, key), State.NEW)
        if state == State.NEW or (entry.visited and state == State.FETCHED):
            return True
        entry.leads_to = entry.also.pop()
        self.links.release([key])
        return False

    async def _unless_stopped(self, waiting: Coroutine[Any, Any, T], default: T) -> T:
        """Wait for another machine, but not for long when this process was asked to stop."""
        task = asyncio.ensure_future(waiting)
        while not (await asyncio.wait([task], timeout=_STOPPED))[0]:
            if self.is_interrupted:
                task.cancel()
                return default
        return task.result()

    async def sent(self, request: Request | None) -> bool:
        """Use one request of the budget for a request on its way out; ``False``: it must not go out.

        ``None`` stands for one that Scrapy does not know: a browser's. Waits where another machine has to allow it.
        """
        if self._closed:  # a browser may still run
            return False
        entry = self.inflight.find(request)
        has_gone = self.guard("sent", False, self.crawl.sent, None if entry is None else entry.pick.id)
        if not has_gone and self.crawl.where:
            has_gone = await self._unless_stopped(self.crawl.more(), False)
        if not has_gone:
            return False
        if entry is not None:
            entry.sent += 1
        return True

    def ask(self, request: Request) -> None:
        """Let a request on its way out ask whether its page has changed, where it was seen before."""
        entry = None if self.visits is None else self.inflight.find(request)
        if self.visits is not None and entry is not None and entry.request is request and entry.coming is not None:
            self.guard("visit", None, self.visits.ask, entry, entry.coming, request)

    def received(self, n_bytes: int | None) -> None:
        """An answer came, of so many bytes; ``None``: its request never left, as no connection could be made."""
        self.guard("received", None, self.crawl.received, n_bytes)

    def recall(self, request: Request) -> Response | None:
        """Return the answer to a request that had arrived when an earlier run was killed, if it did."""
        return None if self.answers is None else self.guard("recall", None, self._recall, self.answers, request)

    def hear(self, url: str, modified: float | None = None, *, kind: str = "ping") -> bool:
        """Somebody says that a page changed, in seconds since the epoch, or just now: the policy hears it.

        For extensions that are told so, by a WebSub hub, say; to be called in the thread of the crawl. ``kind`` says
        who it is, as each kind is believed as far as it proved right.

        Returns
        -------
        bool
            ``False`` where that does nothing: the policy does not listen, the URL was never seen, or the time is to
            come. A URL that is not known may be crawled: ``crawler.engine.crawl(Request(url))``.
        """
        if self._closed or self._failed:
            return False
        heard = self.guard("hear", False, self.signals.ping, url, modified, kind)
        self._ask_again()
        return heard

    def reward(self, pick_id: int, value: float) -> None:
        """Say what an outcome is worth whose goal says ``None``; may be called at any time, in its callback too."""
        self.guard("reward", False, self.crawl.reward, pick_id, value)
        self._ask_again()

    def put_off(self, request: Request, seconds: float, why: str) -> None:
        """Ask the host of a request for nothing for so long, but no longer than ``FOCUS_LONGEST_WAIT``."""
        seconds = min(seconds, self.config.longest_wait)
        slot = self.crawler.engine.downloader.get_slot_key(request)
        if seconds > 0 and self.slots.put_off(slot, seconds):
            self.count("host/put_off")
            is_news = seconds >= 2 * self._told.get(slot, 0.0) and urlparse_cached(request).hostname in self.seeds
            if is_news:
                self._told[slot] = seconds
            until = datetime.now().astimezone() + timedelta(seconds=seconds)
            when = f"{until:%H:%M:%S}" if seconds < _HALF_A_DAY else f"{until:%Y-%m-%d %H:%M}"
            said = "No requests go to %s until %s (for %.0f s): %s"
            logger.log(logging.WARNING if is_news else logging.INFO, said, slot, when, seconds, why)

    def owe(self, request: Request, n_requests: int) -> None:
        """A browser sent further requests for the page of a request: its host is left alone for as many delays."""
        self.slots.owe(self.crawler.engine.downloader.get_slot_key(request), n_requests)

    def is_put_off(self, request: Request) -> bool:
        """Whether the host of a request is to be asked for nothing now."""
        return self.slots.is_shut(self.crawler.engine.downloader.get_slot_key(request))

    def slow_down(self, request: Request, delay: float) -> None:
        """Let so many seconds pass between requests to the host of this one, at most ``FOCUS_LONGEST_WAIT``."""
        self.count("host/slowed_down")
        slot = self.crawler.engine.downloader.get_slot_key(request)
        self.slots.slow_down(slot, min(delay, self.config.longest_wait))

    @property
    def put_off_hosts(self) -> tuple[int, float]:
        """How many hosts are put off, and in how many seconds the first of them is asked again."""
        return self.slots.shut, max(0.0, self.slots.opens_in() or 0.0)

    def ignored_parameters(self) -> list[Ignored]:
        """Return which parameters of URLs do not change the page, by host (``FOCUS_IGNORE_PARAMETERS``)."""
        return [] if self.near is None else self.near.ignored()

    def flush_stats(self) -> None:
        """Write the counts of the crawl to the stats of Scrapy, under ``focus/``."""
        self._stats.flush(self.crawl.status())

    def guard(self, what: str, default: D, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | D:
        """Call something of ours; what it raises is logged and counted, never reaches the engine, and gives the
        default.
        """
        try:
            return call(*args, **kwargs)
        except MissingCallback:
            raise
        except StorageError as error:
            self._fail(error)
        except Exception as error:
            self.counts[f"error/{what}"] += 1
            if self.counts[f"error/{what}"] <= _SHOWN_ERRORS:
                logger.error(
                    "scrapy_focus failed in %s: %s", what, reason_of(error, _LONGEST_REASON),
                    exc_info=not isinstance(error, FocusError), extra={"spider": self.crawler.spider},
                )  # fmt: skip
        return default

    # What the engine asks

    @property
    def _in_flight(self) -> int:
        """How many picks have no outcome yet."""
        return len(self.inflight.entries) + len(self._owing) + len(self._concluding)

    def _has_pending(self) -> bool:
        if not self._failed:
            self._settle()
        if self._failed or self._stopping:
            return False
        if self._loose or self._successors or self._spilled or self._in_flight:
            return True
        if self.near is not None and self.near.gives_back:
            return True
        return bool(self.crawl.asleep) or (bool(self.crawl.status().waiting) and not self._never)

    def _drops(self, request: Request, entry: Entry | None) -> bool:
        return self.seen.drops(request, entry) or self.traps.drops(entry)

    def _enqueue(self, request: Request) -> bool:
        pick_id = request.meta.pop(PICK, None)
        entry = None if pick_id is None else self.inflight.entries.get(pick_id)
        source = entry or self.inflight.page_of(request)
        if entry is not None:
            entry.yielded.discard(hash(request.url))
            entry.quiet = 0
        if source is not None and source.returned and self.seen.passes(request, source):
            return False
        if source is not None and source.returned and self.traps.refuses(request, source):
            return False
        returns = entry is not None and not entry.returned and self._returns(entry, request)
        seen = not returns and self.seen.has(request, entry)
        if seen and self.resumed and request.meta.get("is_start_request"):
            seen = not self.links.is_recalled(request)
        if entry is not None and not entry.returned:
            return self._succeed(entry, request, seen)
        if source is None and request.meta.get("is_start_request"):
            self.seeds.add(urlparse_cached(request).hostname or "")
        if source is None and self._has_begun(request):
            return False
        if seen and not self.seen.is_wanted(request):
            if source is not None:
                self.seen.note(request, source)
            return False
        if not seen and self.near is not None and self.guard("near", False, self.near.refuses, request):
            self.seen.forget([request.url])
            return False
        self._note_priority(request)
        if source is None:  # who scheduled it may change it until it is placed
            self.count("link/loose")
            self._loose.append((self.links.make(request, seen=seen, later=True), request, seen))
            return not seen
        try:
            link = self.links.make(request, seen=seen)
        except Unsendable as error:
            self._note_unsendable(request, error)
            return False
        source.found += 1
        source.links.append(link)
        if not seen:
            self._count_enqueued(link)
        return not seen

    def _packed(self) -> Iterator[Link]:
        """Yield the next links of no page, with their requests as they are now."""
        loose, self._loose = self._loose[:PART], self._loose[PART:]
        for link, request, seen in loose:
            packed = self.guard("enqueue_request", request, self._pack, link, request, seen)
            if packed is request:
                self._spilled.append(request)
            elif isinstance(packed, Link):
                yield packed

    def _pack(self, link: Link, request: Request, seen: bool) -> Link | None:
        """Return a link of no page with its request as it is now; ``None`` if that cannot be sent."""
        try:
            packed = self.links.pack(link, request, seen=seen)
        except Unsendable as error:
            self._note_unsendable(request, error)
            return None
        if not seen:
            self._count_enqueued(packed)
        return packed

    def _count_enqueued(self, link: Link) -> None:
        self._count_as_scrapy("enqueued", stored=bool(link.payload))
        if self._stores and not link.payload:
            self.crawler.stats.inc_value("scheduler/unserializable")

    def _note_unsendable(self, request: Request, error: Unsendable) -> None:
        self.seen.forget([request.url])
        self.count("link/unsendable")
        if self.counts["link/unsendable"] <= _SHOWN_ERRORS:
            logger.error("%s", reason_of(error, _LONGEST_REASON), extra={"spider": self.crawler.spider})

    def _has_begun(self, request: Request) -> bool:
        """Whether it is a start request that this job has from an earlier run."""
        return self.job is not None and self.links.is_stored_start(request)

    def _next(self) -> Request | None:
        if self._failed:
            return None
        self._never = False
        self._settle()
        self.slots.changes_in()
        reason = self.crawl.finished()
        out = any(entry.request is not None for entry in self.inflight.entries.values())
        if reason and not (reason == "budget_requests" and out):  # what is out may be refunded
            self._stop()
        if reason or self._stopping or self._loose:
            return None
        for _ in range(len(self._successors)):
            entry, successor = self._successors.popleft()
            if slot_name(self.crawler.engine.downloader.get_slot_key(successor)) not in self.slots.busy:
                self._count_as_scrapy("dequeued")
                return self.inflight.hand_out(entry, successor)
            self._successors.append((entry, successor))
        if 0 < self.config.max_inflight <= self._in_flight:
            return None
        if self.room is not None and not self.room.is_left(len(self._concluding)):
            self._look_when_due()
            return None
        skipped = 0
        while skipped < _SKIPPED and (pick := self._choose()) is not None:
            entry = self.inflight.entries[pick.id] = Entry(pick, monotonic())
            try:
                request = self.guard("unpack", None, self.requests.unpack, pick.key, pick.url, pick.payload)
            except MissingCallback as error:
                self._release(self.inflight.entries.pop(pick.id))
                self._fail(error)
                return None
            if request is not None and self._skips(request, pick):
                skipped += 1
                entry.verdict = "near_copy"
                self._conclude(entry)
                continue
            if request is not None:
                if any(other.request is request for other in self.inflight.entries.values()):
                    request = request.copy()
                self._count_as_scrapy("dequeued", stored=bool(pick.payload))
                if self.visits is not None and pick.method == "GET":
                    entry.first, entry.visited = request.copy(), VISIT in request.meta
                    entry.coming = self.visits.begin(request)
                if pick.method == "RENDER":
                    self.guard("render", None, begin_rendering, entry, request)
                    entry.is_plain = self._renderer is None
                if self.renderings is not None:
                    self.guard("render", None, self.renderings.begin, entry, request)
                if self.config.explain:
                    request.meta[WHY] = self.crawl.why
                return self.inflight.hand_out(entry, request)
            entry.verdict = "lost"  # its callback is gone since the last run, say
            self._conclude(entry)
        if skipped >= _SKIPPED:
            self._ask_again()
        self._place_stuck()
        self._look_when_due()
        return None

    def _skips(self, request: Request, pick: Pick) -> bool:
        if self.near is None or State.FETCHED in self.seen.wanted or not {VISIT, GIVEN}.isdisjoint(request.meta):
            return False  # else a revisit would count as a copy, and a rendering
        return self.guard("near", False, self.near.skips, request, pick)

    def _choose(self) -> Pick | None:
        """Let the crawl choose among the links of the highest priority that can be sent now; all that are due wait."""
        if self.crawl.asleep > _WOKEN and not self._wake():
            self._ask_again()
            return None
        if not self.priorities:
            return self.crawl.next(self.slots.busy)
        return self.crawl.next(turns=self.priorities.turns(self.slots.busy))

    def _wake(self) -> bool:
        """Let links wait that are due, for as long as the engine can wait; whether these are all."""
        until = monotonic() + _WAKING
        while not self.crawl.wake(_WOKEN):
            if monotonic() > until:
                return False
        return True

    def _note_priority(self, request: Request) -> None:
        """Say once that a priority is not looked at."""
        if request.priority and self._notes_priority and "retry_times" not in request.meta:  # Scrapy's own
            self._notes_priority = False
            by = "DEPTH_PRIORITY" if self.crawler.settings.getint("DEPTH_PRIORITY") else "Request.priority"
            logger.info(
                "%s is used, and is not looked at: the policy decides what comes next. FOCUS_REQUEST_PRIORITY = True "
                "lets higher priorities go first", by, extra={"spider": self.crawler.spider},
            )  # fmt: skip

    # Answers that survive a kill

    def _kept_answers(self) -> KeptAnswers | None:
        if self.job is None:
            return None
        path = self.job.folder / ANSWERS
        if self.config.kill_safe_fetch:
            return KeptAnswers(path, self._states_when_killed)
        with suppress(OSError):
            path.unlink()  # or a later run would take them for new
        return None

    def _states_when_killed(self, keys: Sequence[int]) -> list[State]:
        """Return what is known about keys; a page that is to be fetched again has no answer from before."""
        states = self.crawl.knows(keys)
        if not self.crawl.comes_back:
            return states
        flew = self.crawl.status().recovered
        return [state if key in flew else State.FETCHED for key, state in zip(keys, states, strict=True)]

    def _recall(self, answers: KeptAnswers, request: Request) -> Response | None:
        entry = self.inflight.find(request)
        answer = None if entry is None else answers.take(entry.pick.key, question_of(request))
        if answer is None:
            return None
        response = response_of(answer)
        if response.status == HTTPStatus.NOT_MODIFIED and not has_conditions(request):  # it had some before the kill
            return None
        self.count("answer/recalled")
        return response

    def _on_downloaded(self, request: Request, response: Response) -> None:
        """Keep an answer until its page is done, before the engine does anything else."""
        entry = self.inflight.find(request)
        if entry is not None and (answer := answer_of(request, response)) is not None and self.answers is not None:
            self.guard("keep", None, self.answers.keep, entry.pick.key, question_of(request), answer)

    # How outcomes come about

    def _arrived(self, entry: Entry, response: Response, request: Request) -> None:
        """The response of a pick is there, and the spider has not read it yet."""
        if self.visits is not None and entry.coming is not None:
            self.guard("visit", None, self.visits.arrived, entry.coming, response, request)

    def _succeed(self, entry: Entry, request: Request, seen: bool) -> bool:
        """A redirect or retry: the same pick continues with another request, unless its URL was seen before."""
        if seen and not self._leads_back(entry, request):
            entry.verdict = "redirect_seen"
            entry.leads_to = self.links.key(request)
            return False
        is_other = self.links.key(request) not in (entry.pick.key, *entry.also)
        if is_other and (not request.dont_filter or self.crawl.comes_back):
            entry.also.append(self.links.claim(request))
        self.inflight.succeed(entry)
        self._successors.append((entry, request))
        self.count("requeued")
        self._count_as_scrapy("enqueued")
        return True

    def _returns(self, entry: Entry, request: Request) -> bool:
        """Whether a pick is redirected to a URL of its own that may answer otherwise now: with a cookie that was set on
        the way, or as the URL is spelled in another way. That is so three times at most.
        """
        if request.dont_filter or entry.returns >= _RETURNS:
            return False
        if self.links.key(request) not in (entry.pick.key, *entry.also):
            return False
        url, *before = (each.partition("#")[0] for each in (request.url, *request.meta.get("redirect_urls", ())))
        if url in before and not entry.has_cookie:
            return False
        entry.returns += 1
        entry.has_cookie = False
        return True

    def _leads_back(self, entry: Entry, request: Request) -> bool:
        """Whether a page that was fetched before is redirected to one that was, and does not wait by itself."""
        return entry.visited and self.crawl.knows([self.links.key(request)]) == [State.FETCHED]

    def _add(self, links: list[Link], source: Outcome | None = None) -> None:
        self.crawl.add(links, source)
        self.seen.forget(self.links.placed(links))

    def _count_as_scrapy(self, what: str, *, stored: bool = False) -> None:
        """Count as the stock scheduler does, for dashboards; ``stored``: where there is a job, it has the request."""
        self.crawler.stats.inc_value(f"scheduler/{what}")
        self.crawler.stats.inc_value(f"scheduler/{what}/{'disk' if stored and self._stores else 'memory'}")

    def _settle(self) -> None:
        """Let links of no page be placed, and report all picks that the engine is done with."""
        if self._loose:
            self._add([*self._packed()])
            if self._loose:
                self._ask_again()
        for entry in self.inflight.ended():
            self._conclude(entry)
        if self.near is not None and self.near.gives_back:
            self.guard("near", None, self._take_back, self.near)
        if self._owing:
            self.crawl.expire()
            for pick_id in self._owing.keys() - self.crawl.status().owed:
                self._concluded(self._owing.pop(pick_id))
        if (dropped := self.counts["link/dropped"]) != self._dropped:
            self._dropped = dropped
            self.links.forget_given_up()
        if self._until_look <= 0:
            self._until_look = _BETWEEN
            if self.crawl.status().waiting >= self._freeze_from:
                self._freeze()

    def _conclude(self, entry: Entry) -> None:
        """The engine is done with a pick: report its outcome, now or in some turns if its page has many links."""
        self.inflight.remove(entry)
        if self.visits is not None and entry.coming is not None:
            self.visits.restore(entry.coming, entry.request)
        is_again = bool(self.crawl.where) or entry.pick.method == "RENDER"
        if isinstance(entry.failure, BudgetExhausted) and (not entry.sent or is_again):
            self._release(entry)
            return
        if self.near is not None and not entry.visited:
            self.guard("near", None, self.near.concluded, entry)
        outcome = self._outcome(entry)
        label = entry.label()
        self.count(f"outcome/{label}")
        self.closing.note(entry, label, outcome)
        if kind := connection_kind(entry):
            self.count(f"failure/{kind}")
        if outcome.pick.method == "HEAD":
            self._keep(entry)
        elif self.renderings is not None:
            outcome = self.guard("render", outcome, self.renderings.concluded, entry, outcome)
        elif self.shells is not None:
            self.guard("render", None, self.shells.note, entry)
        if self.crawl.comes_back and outcome.pick.method != "HEAD":
            outcome = self._with_next_visit(entry, outcome)
        if self.crawl.is_kept and not flush_feeds(self.crawler):  # or a kill took items of a page that is done
            raise StorageError("a feed cannot be written, see the log: make room, and start again with the same JOBDIR")
        for listener in self.listeners:
            self.guard("note", None, listener, entry, outcome)
        self._concluding.add(entry.pick.id)
        work = self._reporting(entry, outcome)
        is_long = len(entry.links) > PART or self.guard("hear", False, self.signals.is_long, entry)
        if is_long and not self._stopping:
            self.turns.add(work)
        else:
            deque(work, 0)

    def _outcome(self, entry: Entry) -> Outcome:
        outcome = entry.outcome(monotonic())
        if entry.leads_to is None or self.crawl.knows([entry.leads_to]) == [State.NEW]:  # whose link is to come yet
            return outcome
        return outcome._replace(also=(*outcome.also, entry.leads_to))

    def _with_next_visit(self, entry: Entry, outcome: Outcome) -> Outcome:
        """Keep the request of a page so that it can be sent again, and say how it is stored."""
        if entry.first is None or self.links.key(entry.first) != entry.pick.key:  # it is lost, or a further request
            return outcome._replace(once=True)
        if self.visits is not None and entry.coming is not None:
            visits, last = self.visits, entry.coming.last
            outcome, following = self.guard(
                "visit", (outcome, last), visits.concluded, entry, entry.coming, outcome
            )  # fmt: skip
            entry.first.meta[VISIT] = following.pack()
        return outcome._replace(payload=self.requests.pack(entry.pick.key, entry.first))

    def _take_back(self, near: NearCopyFilter) -> None:
        for request in near.given_back():
            self._loose.append((self.links.make(request, seen=False, later=True), request, False))
        self._ask_again()

    def _reporting(self, entry: Entry, outcome: Outcome) -> Iterator[None]:
        try:
            yield from self._hearing(entry)
            yield from self._locating(entry)
            self._tell_seen(entry, outcome)
            fresh = {link.key for link in entry.links}
            known = [key for key in entry.known if key not in fresh]
            earned, before = 0.0, self.crawl.rewards
            for _ in self.crawl.report(outcome, entry.links, known, in_parts=True):
                earned += self.crawl.rewards - before
                yield
                before = self.crawl.rewards  # what came meanwhile is of other picks
            earned += self.crawl.rewards - before
            for tell in self.when_earned:
                self.guard("progress", None, tell, entry, outcome, earned)
        finally:
            self._concluding.discard(entry.pick.id)
            self._owing[entry.pick.id] = entry
        self._until_look -= 1
        if self.crawl.knows([entry.pick.key]) != [State.FLYING]:  # else its reward comes later
            self._concluded(self._owing.pop(entry.pick.id))

    def _concluded(self, entry: Entry) -> None:
        """The crawl has the outcome of a pick, and its reward."""
        self.seen.concluded(entry.pick.key)
        self.seen.forget(self.links.concluded(entry))
        if self.answers is not None:
            self.answers.forget(entry.pick.key)

    def _hearing(self, entry: Entry) -> Iterator[None]:
        steps = self.signals.hearing(entry)
        while self.guard("hear", False, has_more, steps):
            yield

    def _locating(self, entry: Entry) -> Iterator[None]:
        steps = self.links.locating(entry)
        while self.guard("locate", False, has_more, steps):
            yield

    def _tell_seen(self, entry: Entry, outcome: Outcome) -> None:
        for tell in self.when_seen:
            self.guard("note", None, tell, entry, outcome)

    def _step(self, work: Iterator[None]) -> bool:
        return not self._failed and self.guard("next_request", False, has_more, work)

    def _ask_again(self) -> None:
        """Let the engine ask for requests before its next heartbeat."""
        slot = engine_slot(self.crawler)
        if slot is not None and slot.closing is None:
            slot.nextcall.schedule()

    def _release(self, entry: Entry) -> None:
        """The request of a pick was never sent."""
        self._keep(entry)
        self.links.release(entry.also)
        self.crawl.release(entry.pick.id)

    def _keep(self, entry: Entry) -> None:
        """Let a request wait again that waits as it is."""
        if not entry.pick.payload and entry.request is not None:
            request = unwrap(entry.request)
            if entry.pick.method == "RENDER":
                take_back(entry, request)
            self.requests.pack(entry.pick.key, request)

    def _place_stuck(self) -> None:
        """Let the links go of pages whose callbacks run on and on, if there is nothing else to do.

        They are placed as if the page had earned nothing, which is what is known of it.
        """
        now = monotonic()
        stuck = [entry for entry in self.inflight.entries.values() if entry.links and now - entry.parsed_from > _STUCK]
        if not stuck or self._successors or self.crawl.status().waiting:
            return
        for entry in stuck:
            links, entry.links = entry.links[PART:], entry.links[:PART]
            deque(self._locating(entry), 0)
            outcome = entry.outcome(now)
            self._tell_seen(entry, outcome)
            self._add(entry.links, outcome)
            entry.links = links

    def _look_when_due(self) -> None:
        """Let the engine ask again when the policy has something, a link is due or has its turn, or a host may be asked
        again; or let the crawl end, if that is never.
        """
        changes = [self.slots.changes_in(), None if self.room is None else self.room.changes_in()]
        times = [seconds for seconds in changes if seconds is not None]
        due, turn = self.crawl.next_due, self.crawl.next_turn
        if due is not None or turn is not None or not self._in_flight:
            status = self.crawl.status()
            of_crawl = []
            if due is not None:
                of_crawl.append(due)
            if status.waiting and turn is not None:
                of_crawl.append(turn)
            if not self._in_flight and status.waiting and status.due is not None and status.due > status.at:
                self._never = status.due == math.inf
                of_crawl.append(status.due)
            times += [max(0.0, time - status.at) / self._speed for time in of_crawl]
        if times:
            self._set_alarm(min(*times, _LONGEST))

    def _set_alarm(self, seconds: float | None) -> None:
        """Let the engine ask again in so many seconds, and at no other time that was set before."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None if seconds is None else call_later(seconds, self._ask_again)

    def _freeze(self) -> None:
        """Let the garbage collector pass over what exists: imports and loaded links, later more waiting links."""
        waiting = self.crawl.status().waiting
        freeze(collect=waiting > _MANY)
        self._freeze_from = 2 * max(waiting, _MANY)

    # The end

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            reason = "focus_storage" if self._failed else f"focus_{self.crawl.finished()}"
            logger.info("scrapy_focus stops the crawl: %s", reason, extra={"spider": self.crawler.spider})
            deferred_from_coro(self.crawler.engine.close_spider_async(reason=reason))

    def _shut_down(self) -> None:
        if self._failed:
            self.turns.drop()
            return
        self.turns.finish()
        for entry, _ in self._successors:  # the next run begins with the URL that leads there
            self.inflight.remove(entry)
            self._release(entry)
        self._successors.clear()
        for entry in list(self.inflight.entries.values()):
            self._conclude(entry)
        self.crawl.expire(everything=True)
        self._settle()
        while self._loose or (self.near is not None and self.near.gives_back):
            self._settle()
        if self.job is not None:
            if len(self.requests):
                logger.warning("%d waiting requests cannot be stored, and are lost with this stop", len(self.requests))
            self.crawl.checkpoint()
            self.job.flush()

    def _fail(self, error: StorageError) -> None:
        """Stop at once: the files are whole, and nothing can be added to them."""
        if self._failed or self._closed:  # what was in flight at a stop in haste is asked for by the next run
            return
        self._failed = True
        logger.error("scrapy_focus stops the crawl: %s", error, extra={"spider": self.crawler.spider})
        self.closing.failed(error)
        self._stop()

    @property
    def _unwritten(self) -> int:
        """How often something could not be written that is written when a crawl is closed."""
        return sum(self.counts[f"error/{what}"] for what in _WRITTEN)
