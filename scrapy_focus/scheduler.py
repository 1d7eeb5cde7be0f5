"""The schedulers: one settings line turns Scrapy's queue into a frontier that learns.

Two wishes conflict. The engine asks for a request whenever it has room and wants an answer at once; the policy would
rather know what came of the last ones first. So requests are handed out as late as possible, never more than can start
now, and before each choice all outcomes are reported that the engine is done with.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from scrapy import signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.job import job_dir

from scrapy_focus.config import PICK, WHY, Config
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.core.errors import StorageError
from scrapy_focus.core.log import EventLog
from scrapy_focus.downloadermiddlewares import install
from scrapy_focus.dupefilters import Had
from scrapy_focus.engine.feeds import flush_feeds, mend_feeds
from scrapy_focus.engine.garbage import freeze, thaw
from scrapy_focus.engine.inflight import BudgetExhausted, Entry, Errback, InFlight, engine_slot, unwrap
from scrapy_focus.engine.links import Links
from scrapy_focus.engine.requests import MissingCallback, Requests
from scrapy_focus.engine.slots import Slots, slot_name
from scrapy_focus.engine.stats import Stats, persistence, summary
from scrapy_focus.jobs.job import Job
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.spidermiddlewares import ItemIdMiddleware, has_spider_middleware

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.types import Link, Outcome

logger = logging.getLogger(__name__)
T = TypeVar("T")

_MANY = 100_000  # waiting links whose objects make a garbage collection long
_STUCK = 5.0  # seconds after which the links of a page whose callback still runs are placed, if all else is done
_SHOWN_ERRORS = 3  # with traceback; after that they are only counted
_MOST_ERRORS = 100  # of the question whether there is anything to do


class FocusScheduler(BaseScheduler):
    """A scheduler whose order is decided by a policy: ``FOCUS_POLICY``, with ``FOCUS_POLICY_PARAMS``.

    It needs nothing else of this package. Links are tied to their page by the id that our spider middleware puts into
    them, or else by their Referer header, and learn from where they stand on it. Items are the reward, unless
    ``FOCUS_TARGETS`` or ``FOCUS_GOAL`` say otherwise. ``Request.priority`` is not looked at: the policy decides.

    Job directory contents
    ----------------------
    With ``JOBDIR``, the crawl lives in the folder ``focus`` in it (see :class:`~scrapy_focus.jobs.job.Job`), and goes on
    from there, whether it was stopped or killed. Scrapy's own dupefilter writes nothing; another one writes its own files.

    Notes
    -----
    Exceptions of a policy, a goal or this class never reach the engine, which is not made for them: they are logged
    and counted as ``focus/error/...``, and the crawl goes on, first in first out where nothing better is known. Only where
    the files of a job cannot be read or written does it stop, with the reason ``focus_storage``.
    """

    default_policy: ClassVar[type[Policy]] = BranchingBandit

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self.crawler = crawler
        self.config = config
        jobdir = job_dir(crawler.settings)
        name = getattr(crawler.spider, "name", "")
        self.job = Job(Path(jobdir, "focus"), every=config.checkpoint_every, name=name) if jobdir else None
        self.resumed = self.job is not None and not self.job.is_new
        params = self.default_params(config)
        if self.resumed:
            params.pop("learned", None)  # it is in the stored policy
        try:
            self.crawl = Crawl(
                config.make_policy(**params),
                goal=config.goal,
                budget=config.make_budget(),
                plateau=config.make_plateau(),
                seed=config.seed,
                log=EventLog(config.log) if config.log else None,
                job=self.job,
            )
            self.requests = Requests(cast("Spider", crawler.spider), durable=self.job is not None)
            self.links = Links(crawler, self.crawl, self.requests)
            self.had = Had(crawler, self.crawl, self.links, resumed=self.resumed)
        except BaseException:
            if self.job is not None:
                self.job.close()
            raise
        self.slots = Slots(crawler, limit=config.max_inflight_per_slot)
        self.inflight = InFlight(crawler, self.slots)
        self._successors: deque[tuple[Entry, Request]] = deque()
        self._loose: list[Link] = []  # of no page
        self._spilled: deque[Request] = deque()  # taken in spite of an error of ours, outside the policy
        self._stopping = False
        self._closed = False
        self._failed = False  # our files cannot be written or read any more
        self._stats = Stats(crawler, self.crawl)
        self._owing: dict[int, Entry] = {}  # whose rewards come later
        self._freeze_from = _MANY  # waiting links

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        try:
            return cls(crawler, Config.from_settings(crawler.settings, cls.default_policy))
        except Exception as error:
            logger.error("scrapy_focus cannot start: %s", error)  # Scrapy 2.19 ends in "Engine slot not assigned"
            raise

    def default_params(self, config: Config) -> dict[str, Any]:
        """Parameters of the policy that follow from other settings, for those that ``FOCUS_POLICY_PARAMS`` leaves open."""
        return config.implied_params()

    def open(self, spider: Spider) -> Deferred[None] | None:
        install(self.crawler)
        self.inflight.connect()
        if self.config.item_id and not has_spider_middleware(self.crawler, ItemIdMiddleware):
            logger.warning("FOCUS_ITEM_ID does nothing without the add-on, or ItemIdMiddleware in SPIDER_MIDDLEWARES")
        self.guard("mend_feeds", lambda: mend_feeds(self.crawler))
        self._freeze()
        logger.info("scrapy_focus: %s", self.summary(), extra={"spider": spider})
        return self.had.open()

    def close(self, reason: str) -> Deferred[None] | None:
        self.guard("close", self._shut_down)
        self.guard("save", self._save_learned)
        self.guard("close", self.flush_stats)
        self.guard("close", self.crawl.close)
        thaw()
        self._closed = True
        return self.had.close(reason)

    def has_pending_requests(self) -> bool:
        pending = self.guard("has_pending_requests", self._has_pending)
        if pending is None:  # not known is not done, but not for ever
            errors = self.crawl.counts["error/has_pending_requests"]
            return bool(self._spilled) or not (self._failed or self._stopping or errors > _MOST_ERRORS)
        return pending

    def enqueue_request(self, request: Request) -> bool:
        if isinstance(request.errback, Errback):
            request.errback = request.errback.original
        if self._closed:  # start() may run on for a moment; the next run asks it again
            return False
        accepted = self.guard("enqueue_request", lambda: self._enqueue(request))
        if accepted is None and not self._failed:
            self._spilled.append(request)
        return accepted is not False

    def next_request(self) -> Request | None:
        request = self.guard("next_request", self._next)
        if request is None and self._spilled and not self._stopping:
            return self._spilled.popleft()
        return request

    def summary(self) -> str:
        """Say in one line what is active."""
        return f"policy {summary(self.crawl)}, persistence {persistence(self.crawl, resumed=self.resumed)}"

    def sent(self, request: Request) -> bool:
        """Use one request of the budget for a request on its way out; ``False``: it must not go out."""
        entry = self.inflight.find(request)
        if not self.guard("sent", lambda: self.crawl.sent(None if entry is None else entry.pick.id)):
            return False
        if entry is not None:
            entry.sent = True
        return True

    def reward(self, pick_id: int, value: float) -> None:
        """Say what an outcome was worth whose goal had said ``None``; may be called at any time."""
        self.guard("reward", lambda: self.crawl.reward(pick_id, value))
        engine_slot(self.crawler).nextcall.schedule()  # or the engine would not ask before its next heartbeat

    def flush_stats(self) -> None:
        """Write the counts of the crawl to the stats of Scrapy, under ``focus/``."""
        self._stats.flush()

    # What the engine asks

    def _has_pending(self) -> bool:
        if not self._failed:
            self._settle()
        if self._failed or self._stopping:
            return False
        return bool(self._successors or self._spilled or self.crawl.in_flight or len(self.crawl.frontier))

    def _enqueue(self, request: Request) -> bool:
        pick_id = request.meta.pop(PICK, None)
        entry = None if pick_id is None else self.inflight.entries.get(pick_id)
        seen = self.had.seen(request, entry)
        if seen and self.resumed and request.meta.get("is_start_request"):
            seen = not self.links.is_recalled(request)
        if entry is not None and not entry.returned:
            return self._succeed(entry, request, seen)
        source = entry or self.inflight.page_of(request)
        if (seen and not self.crawl.policy.wants_known) or (source is None and self._has_begun(request)):
            return False
        self.crawl.counts["link/loose"] += source is None
        (self._loose if source is None else source.links).append(self.links.make(request, seen=seen))
        if not seen:
            self._count("enqueued")
        return not seen

    def _has_begun(self, request: Request) -> bool:
        """Whether it is a start request that this job has from an earlier run."""
        return self.job is not None and self.links.is_stored_start(request)

    def _next(self) -> Request | None:
        if self._failed:
            return None
        self._settle()
        reason = self.crawl.finished()
        out = any(entry.request is not None for entry in self.inflight.entries.values())
        if reason and not (reason == "budget_requests" and out):  # what is out may be given back
            self._stop()
        if reason or self._stopping:
            return None
        for _ in range(len(self._successors)):
            entry, successor = self._successors.popleft()
            if slot_name(self.crawler.engine.downloader.get_slot_key(successor)) not in self.slots.busy:
                self._count("dequeued")
                return self.inflight.hand_out(entry, successor)
            self._successors.append((entry, successor))
        self.crawl.expire()
        if 0 < self.config.max_inflight <= self.crawl.in_flight:
            return None
        while (pick := self.crawl.next(self.slots.busy)) is not None:
            entry = self.inflight.entries[pick.id] = Entry(pick, self.crawl.clock())
            try:
                request = self.guard("unpack", partial(self.requests.unpack, pick.key, pick.url, pick.payload))
            except MissingCallback as error:
                self._put_back(self.inflight.entries.pop(pick.id))
                self._fail(error)
                return None
            if request is not None:
                if any(other.request is request for other in self.inflight.entries.values()):
                    request = request.copy()
                self._count("dequeued")
                if self.config.explain:
                    request.meta[WHY] = self.crawl.explain(pick)
                return self.inflight.hand_out(entry, request)
            entry.verdict = "lost"  # its callback is gone since the last run, say
            self._conclude(entry)
        self._place_stuck()
        return None

    # How the answers come about

    def _succeed(self, entry: Entry, request: Request, seen: bool) -> bool:
        """A redirect or retry: the same pick goes on with another request, unless its URL was had before."""
        if seen:
            entry.verdict = "redirect_seen"
            return False
        if not request.dont_filter:
            entry.also.append(self.links.claim(request))
        self.inflight.succeed(entry)
        self._successors.append((entry, request))
        self.crawl.counts["requeued"] += 1
        self._count("enqueued")
        return True

    def _add(self, links: list[Link], source: Outcome | None = None) -> None:
        self.crawl.add(links, source)
        self.links.placed(links)

    def _count(self, what: str) -> None:
        """Count as the stock scheduler does: dashboards read these."""
        self.crawler.stats.inc_value(f"scheduler/{what}")
        self.crawler.stats.inc_value(f"scheduler/{what}/memory")

    def _settle(self) -> None:
        """Let links of no page be placed, and report all picks that the engine is done with."""
        if self._loose:
            links, self._loose = self._loose, []
            self._add(links)
        for entry in self.inflight.ended():
            self._conclude(entry)
        if len(self.crawl.frontier) >= self._freeze_from:
            self._freeze()
        for pick_id in self._owing.keys() - self.crawl.owed:
            self.links.concluded(self._owing.pop(pick_id))

    def _conclude(self, entry: Entry) -> None:
        self.inflight.remove(entry)
        if isinstance(entry.failure, BudgetExhausted) and not entry.sent:
            self._put_back(entry)
            return
        outcome = entry.outcome(self.crawl.clock())
        self.crawl.counts[f"outcome/{entry.label()}"] += 1
        if outcome.pick.method == "HEAD":
            self._keep(entry)
        if self.job is not None and not flush_feeds(self.crawler):  # or a kill took items of a page that is done
            raise StorageError("a feed cannot be written, see the log: make room, and start again with the same JOBDIR")
        self._owing[entry.pick.id] = entry
        self.crawl.report(outcome, self._located(entry), entry.also)
        if entry.pick.id not in self.crawl.owed:
            self.links.concluded(self._owing.pop(entry.pick.id))

    def _located(self, entry: Entry) -> list[Link]:
        located = self.guard("locate", lambda: self.links.locate(entry.links, entry.response))
        return entry.links if located is None else located

    def _put_back(self, entry: Entry) -> None:
        self._keep(entry)
        self.links.give_back(entry.also)
        self.crawl.release(entry.pick.id)

    def _keep(self, entry: Entry) -> None:
        """Let a request wait again that waits as it is."""
        if not entry.pick.payload and entry.request is not None:
            self.requests.pack(entry.pick.key, unwrap(entry.request))

    def _place_stuck(self) -> None:
        """Let the links go of pages whose callbacks run on and on, if there is nothing else to do.

        They are placed as if the page had earned nothing, which is what is known of it.
        """
        if len(self.crawl.frontier) or self._successors:
            return
        now = monotonic()
        for entry in self.inflight.entries.values():
            if entry.links and now - entry.parsed_from > _STUCK:
                self._add(self._located(entry), entry.outcome(self.crawl.clock()))
                entry.links = []

    def _freeze(self) -> None:
        """Let the garbage collector pass over what is there: imports and loaded links, later ever more waiting links."""
        waiting = len(self.crawl.frontier)
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
            return
        for entry, _ in self._successors:  # the next run begins with the URL that leads there
            self.inflight.remove(entry)
            self._put_back(entry)
        self._successors.clear()
        for entry in list(self.inflight.entries.values()):
            self._conclude(entry)
        self.crawl.expire(everything=True)
        self._settle()
        if self.job is not None:
            if len(self.requests):
                logger.warning("%d waiting requests cannot be stored, and are lost with this stop", len(self.requests))
            self.crawl.checkpoint()
            self.job.flush()

    def _save_learned(self) -> None:
        if self.config.learned_to and isinstance(self.crawl.policy, BranchingBandit):
            self.crawl.policy.save(self.config.learned_to)
            logger.info("What was learned is in %s", self.config.learned_to, extra={"spider": self.crawler.spider})

    def guard(self, what: str, call: Callable[[], T]) -> T | None:
        """Call something of ours; what it raises is logged and counted, and never reaches the engine: ``None``."""
        try:
            return call()
        except MissingCallback:
            raise
        except StorageError as error:
            self._fail(error)
            return None
        except Exception as error:
            self.crawl.counts[f"error/{what}"] += 1
            if self.crawl.counts[f"error/{what}"] <= _SHOWN_ERRORS:
                logger.exception("scrapy_focus failed in %s: %s", what, error, extra={"spider": self.crawler.spider})
            return None

    def _fail(self, error: StorageError) -> None:
        """Stop at once: what is in the files is whole, and nothing can be added to it. The process ends with status 1."""
        if self._failed:
            return
        self._failed = True
        logger.error("scrapy_focus stops the crawl: %s", error, extra={"spider": self.crawler.spider})
        self.crawler.signals.connect(self._end_in_failure, signals.engine_stopped, weak=False)
        if not self._closed:
            self._stop()

    def _end_in_failure(self) -> None:
        self.crawler.spider = None  # all that the commands of Scrapy look at for their exit status
