"""The scheduler: one settings line replaces Scrapy's queue with a frontier that learns.

Two goals conflict. The engine asks for a request whenever it has room, and needs an answer at once; the policy would
prefer to see the outcomes of earlier requests first. So requests are chosen as late as possible, never more than can
start now, and all finished outcomes are reported before each choice.

The path of a request: :class:`~scrapy_focus.engine.intake.Intake` turns it into a link,
:class:`~scrapy_focus.engine.choices.Choices` chooses it, :class:`~scrapy_focus.engine.inflight.InFlight` tracks what
the engine does with it, and :class:`~scrapy_focus.engine.outcomes.Outcomes` reports its outcome. All four share a
:class:`~scrapy_focus.engine.host.Host`, and features hook into this path (:mod:`scrapy_focus.engine.feature`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.job import job_dir
from scrapy.utils.log import get_scrapy_root_handler
from scrapy.utils.request import RequestFingerprinter

from scrapy_focus.config import Config
from scrapy_focus.core.clock import speed_of
from scrapy_focus.core.errors import FocusError, StorageError
from scrapy_focus.core.printable import brief, printable_elsewhere, printable_logger
from scrapy_focus.downloadermiddlewares import install
from scrapy_focus.engine.choices import Choices
from scrapy_focus.engine.failure import in_words_of_command, said_already
from scrapy_focus.engine.feeds import mend_feeds
from scrapy_focus.engine.garbage import Freezer, thaw
from scrapy_focus.engine.host import Host
from scrapy_focus.engine.inflight import Errback
from scrapy_focus.engine.intake import Intake
from scrapy_focus.engine.outcomes import Outcomes
from scrapy_focus.engine.requests import project_of
from scrapy_focus.engine.stats import persistence, summary
from scrapy_focus.features import add_features, rows_of
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.making import clock_of, make_crawl, make_worker
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.spidermiddlewares import ItemIdMiddleware, has_spider_middleware
from scrapy_focus.web.wanted import slips

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from scrapy_focus.cluster.worker import Worker
    from scrapy_focus.core.crawl import Crawl
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.jobs.job import Job

logger = printable_logger(__name__)

_PATIENCE = 60.0  # seconds that a reward may be late
_WRITTEN = ("answers", "close", "log", "save")  # errors in files that are written when a crawl is closed
_MOST_ERRORS = 100  # of has_pending_requests()


class FocusScheduler(BaseScheduler):
    """A scheduler that orders requests by a policy: ``FOCUS_POLICY``, with ``FOCUS_POLICY_PARAMS``.

    It works without the other components of this package. A link is assigned to its page by the id that our spider
    middleware adds, or else by its Referer header. The policy learns from the places of links on their pages. Items are
    the reward, unless ``FOCUS_TARGETS`` or ``FOCUS_GOAL`` define another. ``Request.priority`` is ignored, as the
    policy decides; with ``FOCUS_REQUEST_PRIORITY``, the policy decides among the requests of the highest priority.

    Job directory contents
    ----------------------
    With ``JOBDIR``, the crawl is stored in its folder ``focus`` (see :class:`~scrapy_focus.jobs.job.Job`), and resumes
    from there after a stop or a kill. Scrapy's dupefilter writes nothing; another one may write its own files.

    Notes
    -----
    Exceptions in a policy, a goal or this class never reach the engine, which could not handle them: they are logged
    and counted as ``focus/error/...``, and the crawl continues, first in first out if nothing better is known. It stops
    only if the files of a job cannot be read or written, with the reason ``focus_storage``.
    """

    default_policy: ClassVar[type[Policy]] = BranchingBandit

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self.crawler = crawler
        self.config = config
        policy = config.make_policy()
        config.try_files()
        self.clock = self._make_clock()
        self.job = self._make_job()
        try:
            speed = speed_of(self.clock)
            self.focus_host = host = Host(crawler, config, self._make_crawl, policy, self.job, speed=speed)
            self.intake = Intake(host)
            self.outcomes = Outcomes(host, self.intake)
            self.choices = Choices(host, self.intake, self.outcomes)
            host.inflight.connect()
            add_features(host)
        except BaseException:
            if self.job is not None:
                self.job.close()
            raise
        self.crawl = host.crawl
        self.inflight, self.slots = host.inflight, host.slots
        self._freezer = Freezer()
        self._has_warned_of_pings = False  # whether a warning about ignored pings was logged

    def _make_clock(self) -> Callable[[], float] | None:
        return clock_of(self.crawler.settings)

    def _make_job(self) -> Job | None:
        folder = "" if self.config.cluster else job_dir(self.crawler.settings)
        if not folder:
            return None
        from scrapy_focus.jobs.job import Job  # imports a database, which crawls without a job do not need

        spider = cast("Spider", self.crawler.spider)
        return Job(
            Path(folder, "focus"),
            every=self.config.checkpoint_every,
            name=spider.name,
            stores=self.config.stored_classes,
            project=project_of(spider),
        )

    def _make_crawl(self, host: Host, policy: Policy) -> Crawl | Worker:
        """Return the crawl, or a worker if another machine leads it."""
        patience = _PATIENCE * host.speed
        if not self.config.cluster:
            return make_crawl(
                self.config, policy, self.job, counts=host.counts, clock=self.clock, patience=patience
            )  # fmt: skip
        return make_worker(
            self.crawler, self.config, policy, counts=host.counts, clock=self.clock, patience=patience,
            when_news=host.ask_again, when_failed=host.fail,
            when_unplaced=lambda urls: host.seen.forget(urls),  # noqa: PLW0108 (host.seen does not exist yet)
        )  # fmt: skip

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        try:
            settings = crawler.settings
            return cls(crawler, Config.from_settings(settings, cls.default_policy, rows_of(settings)))
        except Exception as error:
            logger.error("scrapy_focus cannot start: %s", in_words_of_command(error))
            if isinstance(error, FocusError):
                said_already(error, crawler.settings)
            crawler.engine.spider = None  # nothing is open yet, and Scrapy 2.19 would fail to close it
            raise

    def open(self, spider: Spider) -> Deferred[None] | None:
        host = self.focus_host
        has_scope = host.features.able("scope") is not None
        install(self.crawler, comes_back=self.crawl.comes_back, has_scope=has_scope)
        if (handler := get_scrapy_root_handler()) is not None:
            handler.addFilter(printable_elsewhere)
        if self.config.item_id and not has_spider_middleware(self.crawler, ItemIdMiddleware):
            logger.warning("FOCUS_ITEM_ID does nothing without the add-on, or ItemIdMiddleware in SPIDER_MIDDLEWARES")
        if isinstance(self.crawl.goal, FilesGoal):
            for word, meant in slips(sorted(self.crawl.goal.wanted.extensions)):
                logger.warning("%s is used as an extension; did you mean %s?", word, meant, extra={"spider": spider})
        status = self.crawl.status()
        host.closing.open(status, host.fail)
        host.guard("mend_feeds", None, mend_feeds, self.crawler)
        self._freezer.freeze(status.waiting)
        logger.info("scrapy_focus: %s", self.summary(), extra={"spider": spider})
        return host.seen.open()

    def close(self, reason: str) -> Deferred[None] | None:
        host = self.focus_host
        self.choices.set_alarm(None)
        failed = self._unwritten
        host.guard("close", None, self._shut_down)
        for hook in host.features.close:
            host.guard(hook.name, None, hook.call)
        status = host.guard("close", None, self.crawl.status)
        leaving = self._close_crawl()
        if self._unwritten > failed:
            host.closing.failed(StorageError("files at the end of the crawl could not be written"))
        if status is not None:
            host.flush_stats(status)  # including counts of closing
            host.closing.close(reason, status)
        thaw()
        host.closed = True
        closed = host.seen.close(reason)
        return closed if leaving is None else deferred_from_coro(self._leave(leaving, closed, reason))

    def has_pending_requests(self) -> bool:
        host = self.focus_host
        pending = host.guard("has_pending_requests", None, self._has_pending)
        if pending is not None:
            return pending
        errors = host.counts["error/has_pending_requests"]  # unknown does not mean done, but not forever
        return bool(self.intake.spilled) or not (host.failed or host.stopping or errors > _MOST_ERRORS)

    def enqueue_request(self, request: Request) -> bool:
        host = self.focus_host
        if isinstance(request.errback, Errback):
            request.errback = request.errback.original
        if host.closed:  # start() may continue for a moment; the next run calls it again
            return False
        if type(self.crawler.request_fingerprinter) is not RequestFingerprinter:  # a project's may raise errors
            self.crawler.request_fingerprinter.fingerprint(request)
        accepted = host.guard("enqueue_request", None, self.intake.take, request)
        if accepted is not None:
            return accepted
        if not host.failed:
            self.intake.spilled.append(request)
        return True

    def next_request(self) -> Request | None:
        request = self.focus_host.guard("next_request", None, self._next)
        if request is None and self.intake.spilled and not self.focus_host.stopping:
            return self.intake.spilled.popleft()
        return request

    def summary(self) -> str:
        """Describe the active components in one line."""
        config, crawl = self.config, self.crawl
        described = summary(config.policy, config.goal, config.make_budget())
        kept = persistence(self.job, crawl.status(), resumed=self.focus_host.resumed, where=crawl.where)
        return f"policy {described}, persistence {kept}"

    def hear(self, url: str, modified: float | None = None, *, kind: str = "ping") -> bool:
        """Notify the policy that a page changed.

        For extensions that learn about changes, for instance from a WebSub hub; call it in the thread of the crawl.

        Parameters
        ----------
        url
            The URL of the page.
        modified
            When it changed, in seconds since the epoch; by default, now.
        kind
            The source: each kind is trusted according to its record.

        Returns
        -------
        bool
            ``False`` if that has no effect: the policy does not listen, the URL was never seen, or the time is in the
            future. To crawl an unknown URL, call ``crawler.engine.crawl(Request(url))``.
        """
        host, signals = self.focus_host, self.focus_host.features.able("ping")
        if host.closed or host.failed:
            return False
        if signals is None:
            if not self._has_warned_of_pings:
                self._has_warned_of_pings = True
                logger.info(
                    "%s does not listen to signals: a ping for %s does nothing; see focus/signal/ in the stats",
                    host.policy.__name__, brief(url), extra={"spider": self.crawler.spider},
                )  # fmt: skip
            return False
        heard: bool = host.guard("hear", False, signals.ping, url, modified, kind)
        host.ask_again()
        return heard

    def reward(self, pick_id: int, value: float) -> None:
        """Set the reward of an outcome whose goal returned ``None``; call it at any time, even in its callback."""
        self.focus_host.guard("reward", None, self.outcomes.reward, pick_id, value)
        self.focus_host.ask_again()

    def _has_pending(self) -> bool:
        host, intake = self.focus_host, self.intake
        if not host.failed:
            self._settle()
        if host.failed or host.stopping:
            return False
        if intake.is_waiting or intake.redirects.waiting or intake.spilled or self.outcomes.in_flight:
            return True
        return bool(self.crawl.sleepers.asleep) or (bool(self.crawl.status().waiting) and not self.choices.never)

    def _next(self) -> Request | None:
        host = self.focus_host
        if host.failed:
            return None
        self.choices.never = False
        self._settle()
        host.slots.changes_in()
        reason = self.crawl.finished()
        out = any(entry.request is not None for entry in host.inflight.entries.values())
        if reason and not (reason == "budget_requests" and out):  # requests in flight may be refunded
            host.stop()
        if reason or host.stopping or self.intake.has_loose:
            return None
        return self.choices.next()

    def _settle(self) -> None:
        self.outcomes.settle()
        if self._freezer.is_due(self.focus_host.counts["outcomes"]):
            self._freezer.freeze_more(self.crawl.status().waiting)

    def _shut_down(self) -> None:
        if self.focus_host.failed:
            self.outcomes.turns.drop()
            return
        self.outcomes.finish()
        if self.job is not None and not self.focus_host.failed:
            if n_lost := len(self.focus_host.requests):
                logger.warning("%d queued requests cannot be stored, and are lost with this stop", n_lost)
            self.crawl.checkpoint()
            self.job.flush()

    def _close_crawl(self) -> Awaitable[None] | None:
        """Close the crawl, and store what it learned if requested; return what is still to be awaited."""
        host = self.focus_host
        learned_to = "" if host.closing.is_unreached else self.config.learned_to
        return host.guard("close", None, self.crawl.close, learned_to=learned_to)

    async def _leave(self, leaving: Awaitable[None], closed: Deferred[None] | None, reason: str) -> None:
        """Wait until the leader has received everything; its counts are in the stats and in the ending."""
        host = self.focus_host
        try:
            await leaving
        except Exception:  # as in guard()
            host.count("error/close")
            logger.exception(
                "scrapy_focus failed while disconnecting from the leader", extra={"spider": self.crawler.spider}
            )
        host.flush_stats()
        host.closing.close(reason, self.crawl.status())
        if closed is not None:
            await maybe_deferred_to_future(closed)

    @property
    def _unwritten(self) -> int:
        """How many files could not be written when the crawl was closed."""
        return sum(self.focus_host.counts[f"error/{what}"] for what in _WRITTEN)
