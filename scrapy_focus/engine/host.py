"""A live crawl, as its parts and Scrapy's components see it.

Scrapy makes each component from its settings. A component finds the crawl by :func:`host_of`; with another scheduler
it does nothing.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from scrapy.utils.defer import deferred_from_coro

from scrapy_focus.core.abilities import Knows
from scrapy_focus.core.errors import FocusError, StorageError
from scrapy_focus.core.goal import noun_of, reads_links, types_of
from scrapy_focus.core.printable import PARAGRAPH, VALUE, printable, printable_logger, reason_of
from scrapy_focus.core.types import State
from scrapy_focus.engine.closing import Closing
from scrapy_focus.engine.feature import Features, Shown
from scrapy_focus.engine.inflight import InFlight, engine_slot
from scrapy_focus.engine.links import Links
from scrapy_focus.engine.pace import Pace
from scrapy_focus.engine.priorities import Priorities
from scrapy_focus.engine.requests import MissingCallback, Requests
from scrapy_focus.engine.seen import Seen
from scrapy_focus.engine.slots import Slots
from scrapy_focus.engine.stats import Stats
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.web.mime import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_focus.cluster.worker import Worker
    from scrapy_focus.config import Config
    from scrapy_focus.core.abilities import PolicyTable
    from scrapy_focus.core.crawl import Crawl
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.status import Status
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.engine.known import KnownLinks
    from scrapy_focus.jobs.job import Job

logger = printable_logger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")

_SHOWN_ERRORS = 3  # logged with traceback; later ones are only counted
_STOPPED = 5.0  # seconds that a process asked to stop still waits for another machine
_PASSED = 64  # of so many links of a page at its limit, one is not dropped early


class Host:
    """The state that the parts of a live crawl share.

    Parameters
    ----------
    crawler
        The crawler of Scrapy.
    config
        The settings of the crawl.
    make_crawl
        Makes the crawl of a policy, with or without a job, or a stand-in if another machine leads it.
    policy
        The policy.
    job
        The folder of the crawl; ``None`` without one.
    speed
        Seconds of the crawl per second of the machine's clock.

    Raises
    ------
    FocusError
        If the crawl cannot begin.
    """

    def __init__(
        self,
        crawler: Crawler,
        config: Config,
        make_crawl: Callable[[Host, Policy], Crawl | Worker],
        policy: Policy,
        job: Job | None,
        *,
        speed: float = 1.0,
    ) -> None:
        self.crawler = crawler
        self.config = config
        self.job = job
        self.speed = speed
        self.counts: Counter[str] = Counter()
        self.resumed = job is not None and not job.is_new
        self.stopping = False
        self.closed = False
        self.failed = False  # a file of the crawl cannot be written or read any more
        self.seeds: set[str] = set()  # hosts of start requests
        self.unchecked: dict[str, str] = {}  # hosts whose certificates were not checked, and what is wrong with them
        self.features = Features()
        self.returned: list[Iterator[Request]] = []  # requests that a feature refused before, and returns
        self.crawl = make_crawl(self, policy)
        self.requests = Requests(
            cast("Spider", crawler.spider),
            durable=self.crawl.is_kept,
            stores=config.stored_classes,
            travels=bool(self.crawl.where),
        )
        self.priorities = self._make_priorities()
        self.links = Links(
            crawler,
            self.crawl,
            self.counts,
            self.requests,
            reads_page=policy.reads_page or reads_links(config.goal),
            priorities=self.priorities,
            comes_back=self.crawl.comes_back,
            salt=secrets.randbits(60) if self.crawl.where else 1,
        )
        self.seen = Seen(
            crawler,
            self.crawl,
            self.counts,
            self.links,
            wanted=frozenset() if policy.known_by_key else policy.wants_known,
            tells_keys=policy.known_by_key or isinstance(policy, Knows),
            recovered=self.crawl.status().recovered,
            resumed=self.resumed,
        )
        self.closing = Closing(crawler, self.crawl.goal, resumable=self.crawl.is_kept)
        self.slots = Slots(crawler, limit=config.max_inflight_per_slot)
        self.inflight = InFlight(crawler, self, self.slots)
        self.pace = Pace(crawler, self.slots, self.counts, seeds=self.seeds, longest=config.longest_wait)
        self._stats = Stats(crawler)
        self._n_dropped = 0  # requests dropped because their page is at its limit

    def _make_priorities(self) -> Priorities | None:
        """Return the object that separates priorities, if enabled now or in the run that stored the queued links."""
        priorities = Priorities(self.crawl.status().hosts if self.resumed else ())
        return priorities if self.config.request_priority or priorities else None

    @property
    def policy(self) -> type[Policy]:
        """The class of the policy."""
        return self.config.policy

    @property
    def noun(self) -> str:
        """The plural noun for what is looked for: ``"files"``."""
        return printable(noun_of(self.config.goal), VALUE)

    @property
    def is_interrupted(self) -> bool:
        """Whether the process was asked to stop, so that only requests in flight are finished."""
        slot = engine_slot(self.crawler)
        return slot is not None and slot.closing is not None and not self.crawler.engine.running

    def is_spent(self) -> bool:
        """Whether no more requests may be sent: a budget is used up, or the crawl is over."""
        return self.closed or self.failed or bool(self.crawl.finished())

    def is_wanted(self, mime: str, url: str = "") -> bool:
        """Whether bodies of a MIME type are read: all but the blocked ones, and always the types looked for."""
        goal = self.config.goal
        if not matches(mime, self.config.blocked_mimes) or matches(mime, types_of(goal)):
            return True
        return isinstance(goal, FilesGoal) and goal.wants(mime, url)

    def status(self, *, best: int = 0) -> Status:
        """Return the state of the crawl; ``best``: include so many of the best arms, and the expected remainder.

        The remainder is unknown if a list was cut, or if no links are left but some pages need a browser.
        """
        status = self.crawl.status(best=best)
        whole = status.whole or status
        is_cut = bool(self.counts["browser/list_cut"])
        if whole.left is None or not (is_cut or (self.counts["page/shell"] and not whole.left.middle)):
            return status
        return replace(status, left=None, whole=status.whole and replace(status.whole, left=None))

    def shown(self) -> list[Shown]:
        """Return what the features report about themselves."""
        return [self.guard(feature.name, Shown(), feature.shown) for feature in self.features]

    def tables(self) -> list[PolicyTable]:
        """Return the tables of the policy, and those of features."""
        return [*self.crawl.forecasts.tables(), *(table for shown in self.shown() for table in shown.tables)]

    def count(self, name: str, n: int = 1) -> None:
        """Add to the count that is written to the stats as ``focus/<name>``."""
        self.counts[name] += n

    def count_as_scrapy(self, what: str, *, stored: bool = False) -> None:
        """Count like the stock scheduler, for dashboards; ``stored``: a job, if there is one, has the request."""
        self.crawler.stats.inc_value(f"scheduler/{what}")
        where = "disk" if stored and self.crawl.is_kept else "memory"
        self.crawler.stats.inc_value(f"scheduler/{what}/{where}")

    def flush_stats(self, status: Status | None = None) -> None:
        """Write counts to the stats of Scrapy, under ``focus/``: those of a status, or the current ones."""
        self._stats.flush(status or self.crawl.status())

    # Requests and pages

    def take_back(self, requests: Iterator[Request]) -> None:
        """Queue requests that a feature had refused, some before each choice."""
        self.returned.append(requests)

    def drops(self, request: Request, response: Response | None) -> bool:
        """Whether to drop a request from the page of a response: its URL is known, or the page is at its limit."""
        return self.guard("drops", False, self._drops, request, self.inflight.find(response))

    def _drops(self, request: Request, entry: Entry | None) -> bool:
        if self.seen.drops(request, entry):
            return True
        if entry is None or not entry.full:
            return False
        self._n_dropped += 1
        if self._n_dropped % _PASSED == 0:  # dropped later, so that the callback yields to the event loop
            return False
        self.count(f"trap/{entry.full}")
        return True

    def note_yielded(self, pick_id: int, request: Request) -> None:
        """Note that the page of a pick yielded a request that all spider middlewares let pass."""
        if self.seen.tells_keys and (entry := self.inflight.entries.get(pick_id)) is not None and entry.returned:
            entry.yielded.add(hash(request.url))

    def known_on(self, response: Response) -> KnownLinks | None:
        """Return which links of a page are known, ``None`` if that is unknown."""
        entry = self.inflight.find(response)
        return None if entry is None else self.seen.known_on(entry)

    # The budget

    async def is_first(self, request: Request) -> bool:
        """Wait for the answer whether another machine fetches the redirect target; ``False`` if so."""
        entry = self.inflight.find(request)
        if not self.crawl.where or entry is None or request is not entry.request or not entry.also:
            return True
        key = self.links.key(request)
        if key != entry.also[-1]:
            return True
        state = await self._unless_stopped(cast("Worker", self.crawl).claim(entry.pick.id, key), State.NEW)
        if state == State.NEW or (entry.visited and state == State.FETCHED):
            return True
        entry.leads_to = entry.also.pop()
        self.links.release([key])
        return False

    async def sent(self, request: Request | None) -> bool:
        """Use one request of the budget for a request about to be sent; ``False``: do not send it.

        ``None`` stands for a request that Scrapy does not see: a browser's. Waits if another machine has to allow it.
        """
        if self.closed:  # a browser may still run
            return False
        entry = self.inflight.find(request)
        has_gone = self.guard("sent", False, self.crawl.sent, None if entry is None else entry.pick.id)
        if not has_gone and self.crawl.where:
            has_gone = await self._unless_stopped(cast("Worker", self.crawl).more(), False)
        if not has_gone:
            return False
        if entry is not None:
            entry.sent += 1
        return True

    def received(self, n_bytes: int | None) -> None:
        """Count a response of so many bytes; ``None``: the request was never sent, as no connection could be made."""
        self.guard("received", None, self.crawl.received, n_bytes)

    def lacks_bytes(self) -> bool:
        """Whether more bytes were received than the budget allows."""
        most = self.config.budget_bytes
        return most is not None and self.crawl.bytes_used > most

    async def _unless_stopped(self, waiting: Coroutine[Any, Any, T], default: T) -> T:
        """Wait for another machine, but only briefly if this process was asked to stop."""
        task = asyncio.ensure_future(waiting)
        while not (await asyncio.wait([task], timeout=_STOPPED))[0]:
            if self.is_interrupted:
                task.cancel()
                return default
        return task.result()

    # Errors, and the end

    def guard(self, what: str, default: D, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | D:
        """Call a function; if it raises, log and count the error and return the default."""
        try:
            return call(*args, **kwargs)
        except MissingCallback:
            raise
        except Exception as error:
            self.note_error(what, error)
        return default

    def note_error(self, what: str, error: Exception) -> None:
        """Log and count an internal error; an error with the crawl's files stops the crawl."""
        if isinstance(error, StorageError):
            self.fail(error)
            return
        self.counts[f"error/{what}"] += 1
        if self.counts[f"error/{what}"] <= _SHOWN_ERRORS:
            logger.error(
                "scrapy_focus failed in %s: %s", what, reason_of(error, PARAGRAPH),
                exc_info=None if isinstance(error, FocusError) else error, extra={"spider": self.crawler.spider},
            )  # fmt: skip

    def fail(self, error: StorageError) -> None:
        """Stop at once: the files are intact, but cannot be written any more."""
        if self.failed or self.closed:  # after a forced stop, the next run fetches what was in flight
            return
        self.failed = True
        logger.error("scrapy_focus stops the crawl: %s", error, extra={"spider": self.crawler.spider})
        self.closing.failed(error)
        self.stop()

    def stop(self) -> None:
        """Have the engine close the crawl, with our reason."""
        if not self.stopping:
            self.stopping = True
            reason = "focus_storage" if self.failed else f"focus_{self.crawl.finished()}"
            logger.info("scrapy_focus stops the crawl: %s", reason, extra={"spider": self.crawler.spider})
            deferred_from_coro(self.crawler.engine.close_spider_async(reason=reason))

    def ask_again(self) -> None:
        """Have the engine request the next pick before its next heartbeat."""
        slot = engine_slot(self.crawler)
        if slot is not None and slot.closing is None:
            slot.nextcall.schedule()


def host_of(crawler: Crawler) -> Host | None:
    """Return the live crawl of a crawler, if its scheduler is one of ours.

    ``isinstance`` cannot be used: Scrapy's metaclass accepts any class with a scheduler's methods.
    """
    try:
        engine = crawler.engine
    except RuntimeError:  # no crawl runs: in a test of a middleware, for example
        return None
    if not hasattr(engine, "scheduler"):  # before Scrapy 2.19
        engine = engine_slot(crawler)
    return getattr(getattr(engine, "scheduler", None), "focus_host", None)
