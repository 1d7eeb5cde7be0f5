"""The schedulers: one settings line turns Scrapy's queue into a frontier that learns.

Two wishes conflict. The engine asks for a request whenever it has room and wants an answer at once; the policy would
rather know what came of the last ones first. So requests are handed out as late as possible, never more than can start
now, and before each choice all outcomes are reported that the engine is done with.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from scrapy import Request, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.http import HtmlResponse, Response
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.job import job_dir
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.request import RequestFingerprinter
from scrapy.utils.response import get_base_url

from scrapy_focus.config import LINK, PICK, Config
from scrapy_focus.core.crawl import Crawl
from scrapy_focus.core.errors import ConfigError, ResumeError
from scrapy_focus.core.events import EventLog
from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.html import Place, locate
from scrapy_focus.core.mime import blocked_extensions
from scrapy_focus.core.types import Link, State
from scrapy_focus.downloadermiddlewares import install
from scrapy_focus.inflight import BudgetExhausted, Entry, Errback, entry_id
from scrapy_focus.policies.tagpath import TagPath
from scrapy_focus.requests import Requests
from scrapy_focus.slots import Slots

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.dupefilters import BaseDupeFilter
    from twisted.internet.defer import Deferred

    from scrapy_focus.core.policy import Policy

logger = logging.getLogger(__name__)
T = TypeVar("T")

_STUCK = 5.0  # seconds after which the links of a page whose callback still runs are placed, if all else is done
_SHOWN_ERRORS = 3  # with traceback; after that they are only counted


class FocusScheduler(BaseScheduler):
    """A scheduler whose order is decided by a policy: ``FOCUS_POLICY``, with ``FOCUS_POLICY_PARAMS``.

    It needs nothing else of this package. Links are tied to their page by the id that our spider middleware puts into
    them, or else by their Referer header, and learn from where they stand on it. Items are the reward, unless
    ``FOCUS_TARGETS`` or ``FOCUS_GOAL`` say otherwise. ``Request.priority`` is not looked at: the policy decides.

    Job directory contents
    ----------------------
    With ``JOBDIR``, a clean stop writes the folder ``focus`` in it (see :meth:`scrapy_focus.Crawl.checkpoint`), and the
    next run goes on from there. The dupefilter writes its own files.

    Notes
    -----
    Exceptions of a policy, a goal or this class never reach the engine, which is not made for them: they are logged
    and counted as ``focus/error/...``, and the crawl goes on, first in first out where nothing better is known.
    """

    default_policy: ClassVar[type[Policy]] = TagPath

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self.crawler = crawler
        self.config = config
        self.crawl = Crawl(
            config.make_policy(**self.default_params(config)),
            goal=config.goal,
            budget=config.make_budget(),
            plateau=config.make_plateau(),
            seed=config.seed,
            log=EventLog(config.log) if config.log else None,
        )
        self.df: BaseDupeFilter = build_from_crawler(load_object(crawler.settings["DUPEFILTER_CLASS"]), crawler)
        jobdir = job_dir(crawler.settings)
        self.folder = Path(jobdir, "focus") if jobdir else None
        self.slots = Slots(crawler, limit=config.max_inflight_per_slot)
        self.entries: dict[int, Entry] = {}
        self.worth: dict[int, float] = {}  # what RewardPipeline said of items that are on their way, by id(item)
        self.known_urls: set[int] = set()  # hashes of what the dupefilter had, where it looks at nothing but the URL
        self._by_url = self._filters_by_url()
        self._successors: deque[tuple[Entry, Request]] = deque()
        self._loose: list[Link] = []  # links of no page
        self._spilled: deque[Request] = deque()  # taken in spite of an error of ours, outside the policy
        self._pages: dict[str, int] = {}  # URL of each page in flight -> its pick
        self._unplaced: set[int] = set()  # keys of links that are not with the policy yet
        self._salt = itertools.count(1)
        self._stopping = False
        self._closed = False
        self._flushed: dict[str, float] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        try:
            return cls(crawler, Config.from_settings(crawler.settings, cls.default_policy))
        except ConfigError as error:
            logger.error("%s", error)  # Scrapy 2.19 hides it behind "Engine slot not assigned"
            raise

    def default_params(self, config: Config) -> dict[str, Any]:
        """Parameters of the policy that follow from the goal, for those that ``FOCUS_POLICY_PARAMS`` leaves open."""
        if not issubclass(config.policy, TagPath):
            return {}
        heads_tell = bool(getattr(config.goal, "heads_tell", False))
        return {
            "probe": heads_tell,
            "accounting": "released" if heads_tell else "full",
            "blocked": blocked_extensions(getattr(config.goal, "types", ())),
        }

    def open(self, spider: Spider) -> Deferred[None] | None:
        self.requests = Requests(spider)
        if self.folder is not None and (self.folder / "crawl.json").exists():
            folder, self.folder = self.folder, None  # what cannot be resumed is not written over either
            self._resume(folder)
            self.folder = folder
        install(self.crawler)
        connect = self.crawler.signals.connect
        connect(self._on_response, signals.response_received)
        connect(self._on_left, signals.request_left_downloader)
        connect(self._on_scraped, signals.item_scraped)
        connect(self._on_dropped, signals.item_dropped)
        connect(self._on_dropped, signals.item_error)
        connect(self._on_spider_error, signals.spider_error)
        logger.info("scrapy_focus: %s", self.summary(), extra={"spider": spider})
        return self.df.open()

    def close(self, reason: str) -> Deferred[None] | None:
        self._guard("close", self._shut_down)
        self._closed = True
        return self.df.close(reason)

    def has_pending_requests(self) -> bool:
        pending = self._guard("has_pending_requests", self._has_pending)
        return bool(self._spilled) if pending is None else pending

    def enqueue_request(self, request: Request) -> bool:
        if isinstance(request.errback, Errback):
            request.errback = request.errback.original
        if self._closed:  # start() may run on for a moment; the next run asks it again
            return False
        accepted = self._guard("enqueue_request", lambda: self._enqueue(request))
        if accepted is None:
            self._spilled.append(request)
        return accepted is not False

    def next_request(self) -> Request | None:
        request = self._guard("next_request", self._next)
        if request is None and self._spilled and not self._stopping:
            return self._spilled.popleft()
        return request

    def summary(self) -> str:
        """Say in one line what is active."""
        crawl = self.crawl
        resumed = f", resumed with {len(crawl.frontier):,} links waiting" if crawl.counts["selected"] else ""
        return (
            f"policy {type(crawl.policy).__qualname__}, goal {crawl.goal!r}, budget {crawl.budget!r}, "
            f"persistence {self.folder or 'none (JOBDIR is not set)'}{resumed}"
        )

    def sent(self, request: Request) -> bool:
        """Use one request of the budget for a request on its way out; ``False``: it must not go out."""
        entry = self._entry(request)
        if not self.crawl.sent(None if entry is None else entry.pick.id):
            return False
        if entry is not None:
            entry.sent = True
        return True

    def reward(self, pick_id: int, value: float) -> None:
        """Say what an outcome was worth whose goal had said ``None``; may be called at any time."""
        self.crawl.reward(pick_id, value)
        self._engine_slot().nextcall.schedule()  # or the engine would not ask before its next heartbeat

    def flush_stats(self) -> None:
        """Write the counts of the crawl to the stats of Scrapy, under ``focus/``."""
        crawl = self.crawl
        now: dict[str, float] = {f"focus/{name}": value for name, value in crawl.counts.items()}
        now["focus/in_flight"] = crawl.in_flight
        now["focus/waiting"] = len(crawl.frontier)
        now["focus/arms"] = len(crawl.frontier.waiting)
        now["focus/reward"] = crawl.rewards
        now["focus/requests"] = crawl.budget.requests_used
        now["focus/bytes"] = crawl.budget.bytes_used
        for name, value in now.items():
            if self._flushed.get(name) != value:
                self.crawler.stats.set_value(name, value)
        self._flushed = now

    # What the engine asks

    def _has_pending(self) -> bool:
        self._settle()
        if self._stopping:
            return False
        return bool(
            self._loose or self._successors or self._spilled or self.crawl.in_flight or len(self.crawl.frontier)
        )

    def _enqueue(self, request: Request) -> bool:
        pick_id = request.meta.pop(PICK, None)
        entry = None if pick_id is None else self.entries.get(pick_id)
        seen = not request.dont_filter and self.df.request_seen(request)
        if seen:
            self.df.log(request, self.requests.spider)
        if self._by_url and not request.dont_filter and request.method == "GET" and not request.body:
            self.known_urls.add(hash(request.url))
        if entry is not None and not entry.returned:
            return self._succeed(entry, request, seen)
        if seen and not self.crawl.policy.wants_known:
            return False
        source = entry or self._page_of(request)
        if source is None:
            self._loose.append(self._link(request, seen))
            self.crawl.counts["link/loose"] += 1
        else:
            source.links.append(self._link(request, seen))
        if not seen:
            self._count("enqueued")
        return not seen

    def _next(self) -> Request | None:
        self._settle()
        if self._loose:
            links, self._loose = self._loose, []
            self._add(links)
        reason = self.crawl.finished()
        out = any(entry.request is not None for entry in self.entries.values())
        if reason and not (reason == "budget_requests" and out):  # what is out may be given back
            self._stop()
        if reason or self._stopping:
            return None
        for _ in range(len(self._successors)):
            entry, request = self._successors.popleft()
            if self._slot(request) not in self.slots.busy:
                return self._hand_out(entry, request)
            self._successors.append((entry, request))
        if 0 < self.config.max_inflight <= self.crawl.in_flight:
            return None
        while (pick := self.crawl.next(self.slots.busy)) is not None:
            self.entries[pick.id] = entry = Entry(pick, self.crawl.clock())
            unpacked = self._guard("unpack", partial(self.requests.unpack, pick.key, pick.url, pick.payload))
            if unpacked is not None:
                twice = any(other.request is unpacked for other in self.entries.values())
                return self._hand_out(entry, unpacked.copy() if twice else unpacked)
            entry.successor = "lost"  # its callback is gone since the last run, say
            self._conclude(entry)
        self._place_stuck()
        return None

    # Requests on their way in and out

    def _filters_by_url(self) -> bool:
        """Whether two GET requests without a body are the same to the dupefilter if their URLs are."""
        usual = type(self.df) is RFPDupeFilter and type(self.crawler.request_fingerprinter) is RequestFingerprinter
        return usual and not self.crawl.policy.wants_known

    def _succeed(self, entry: Entry, request: Request, seen: bool) -> bool:
        """A redirect or retry: the same pick goes on with another request, unless its URL was had before."""
        if seen:
            entry.successor = "redirect_seen"
            return False
        self._free_slot(entry)
        entry.request = None
        self._successors.append((entry, request))
        self.crawl.counts["requeued"] += 1
        self._count("enqueued")
        return True

    def _page_of(self, request: Request) -> Entry | None:
        referer = request.headers.get("Referer")
        pick_id = self._pages.get(referer.decode("latin-1")) if referer else None
        return None if pick_id is None else self.entries.get(pick_id)

    def _add(self, links: list[Link]) -> None:
        self._unplaced.difference_update(link.key for link in links)
        self.crawl.add(links)

    def _link(self, request: Request, seen: bool) -> Link:
        key = first = int.from_bytes(self.crawler.request_fingerprinter.fingerprint(request)[:8], "big") >> 1
        if not seen:  # the dupefilter lets it pass, so it is to be fetched, again if need be
            while key in self._unplaced or self.crawl.frontier.states([key])[0] != State.NEW:
                key = (first + next(self._salt) * 0x9E3779B97F4A7C15) & ((1 << 63) - 1)
            self._unplaced.add(key)
        said = request.meta.pop(LINK, None) or {}
        kept = len(self.requests)
        payload = self.requests.pack(key, request)
        self.crawl.counts["link/kept"] += len(self.requests) - kept
        return Link(
            request.url, key, self._slot(request), request.meta.get("depth", 0),
            said.get("anchor") or request.meta.get("link_text") or "", said.get("tag_path", ""), said.get("context", ""),
            payload=payload,
        )  # fmt: skip

    def _hand_out(self, entry: Entry, request: Request) -> Request:
        request.meta[PICK] = entry.pick.id
        request.errback = Errback(entry, request.errback)
        entry.request = request
        entry.slot = self._slot(request)
        entry.holds_slot = True
        self.slots.take(entry.slot)
        self._count("dequeued")
        return request

    def _count(self, what: str) -> None:
        """Count as the stock scheduler does: dashboards read these."""
        self.crawler.stats.inc_value(f"scheduler/{what}")
        self.crawler.stats.inc_value(f"scheduler/{what}/memory")

    def _slot(self, request: Request) -> str:
        return self.crawler.engine.downloader.get_slot_key(request)

    def _free_slot(self, entry: Entry) -> None:
        if entry.holds_slot:
            entry.holds_slot = False
            self.slots.free(entry.slot)

    # What is noted of requests that are out

    def _entry(self, carrier: Any) -> Entry | None:
        pick_id = entry_id(carrier)
        return None if pick_id is None else self.entries.get(pick_id)

    def _on_response(self, response: Response, request: Request) -> None:
        entry = self._entry(request)
        if entry is not None and entry.response is None:
            entry.response = response
            self._pages[response.url.partition("#")[0]] = entry.pick.id
            if (latency := request.meta.get("download_latency")) is not None:
                self.slots.observe(entry.slot, latency)

    def _on_left(self, request: Request) -> None:
        if (entry := self._entry(request)) is not None:
            self._free_slot(entry)

    def _on_scraped(self, item: Any, response: Any) -> None:
        worth = self.worth.pop(id(item), 1.0)
        if (entry := self._entry(response)) is not None:
            entry.items += worth

    def _on_dropped(self, item: Any) -> None:
        self.worth.pop(id(item), None)

    def _on_spider_error(self, response: Any) -> None:
        if (entry := self._entry(response)) is not None:
            entry.spider_error = True

    # What becomes of them

    def _engine_slot(self) -> Any:
        """The engine's record of what it works on: private, but there since Scrapy 0.9."""
        return self.crawler.engine._slot

    def _settle(self) -> None:
        """Report all picks that the engine is done with."""
        in_progress = self._engine_slot().inprogress
        entries = self.entries.values()
        for entry in [entry for entry in entries if entry.request is not None and entry.request not in in_progress]:
            self._conclude(entry)

    def _conclude(self, entry: Entry) -> None:
        pick = entry.pick
        del self.entries[pick.id]
        self._free_slot(entry)
        if entry.response is not None:
            self._pages.pop(entry.response.url.partition("#")[0], None)
        if isinstance(entry.failure, BudgetExhausted) and not entry.sent:
            self._put_back(entry)
            return
        outcome = entry.outcome(self.crawl.clock())
        self.crawl.counts[f"outcome/{entry.label()}"] += 1
        if outcome.pick.method == "HEAD" and entry.request is not None:
            self._keep(pick.key, pick.payload, entry.request)
        links = self._located(entry)
        self._unplaced.difference_update(link.key for link in links)
        self.crawl.report(outcome, links)

    def _put_back(self, entry: Entry) -> None:
        pick = entry.pick
        if entry.request is not None:
            self._keep(pick.key, pick.payload, entry.request)
        self.crawl.release(pick.id)

    def _keep(self, key: int, payload: bytes, request: Request) -> None:
        """Let a request wait again that waits as it is."""
        if not payload:
            request.meta.pop(PICK, None)
            if isinstance(request.errback, Errback):
                request.errback = request.errback.original
            self.requests.pack(key, request)

    def _located(self, entry: Entry) -> list[Link]:
        """Return the links of a page, with where they stand on it if the policy reads that."""
        links, response = entry.links, entry.response
        if not links or not self.crawl.policy.reads_page or not isinstance(response, HtmlResponse):
            return links
        urls = [link.url for link in links]
        places = self._guard(
            "locate",
            lambda: locate(response.selector.root, get_base_url(response), urls, encoding=response.encoding),
        )
        if places is None:
            return links
        self.crawl.counts["link/unattributed"] += sum(link.url not in places for link in links)
        none = Place()
        return [
            link._replace(
                tag_path=link.tag_path or places.get(link.url, none).tag_path,
                anchor=link.anchor or places.get(link.url, none).anchor,
                context=link.context or places.get(link.url, none).context,
            )
            for link in links
        ]

    def _place_stuck(self) -> None:
        """Let the links go of pages whose callbacks run on and on, if there is nothing else to do."""
        if len(self.crawl.frontier) or self._successors:
            return
        now = self.crawl.clock()
        for entry in self.entries.values():
            if entry.links and now - entry.since > _STUCK:
                links, entry.links = entry.links, []
                self._add(links)

    # The end

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            reason = f"focus_{self.crawl.finished()}"
            logger.info("scrapy_focus stops the crawl: %s", reason, extra={"spider": self.crawler.spider})
            deferred_from_coro(self.crawler.engine.close_spider_async(reason=reason))

    def _shut_down(self) -> None:
        for entry, request in self._successors:
            del self.entries[entry.pick.id]
            entry.request = request
            self._put_back(entry)
        self._successors.clear()
        for entry in list(self.entries.values()):
            self._conclude(entry)
        self._add(self._loose)
        if self.folder is not None:
            self._checkpoint(self.folder)
        self.flush_stats()
        self.crawl.close()

    def _checkpoint(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        dumped, lost = self.requests.dump()
        if lost:
            logger.warning("%d waiting requests carry what cannot be stored, and are lost with this stop", lost)
            self.crawl.counts["link/lost"] += lost
        write_atomically(folder / "requests.pickle", dumped)
        self.crawl.checkpoint(folder)

    def _resume(self, folder: Path) -> None:
        self.crawl.resume(folder)
        try:
            self.requests.load((folder / "requests.pickle").read_bytes())
        except Exception as error:
            raise ResumeError(
                f"{folder / 'requests.pickle'} cannot be read ({error}); remove {folder} to start afresh"
            ) from error

    def _guard(self, what: str, call: Callable[[], T]) -> T | None:
        """Call something of ours; what it raises is logged and counted, and never reaches the engine: ``None``."""
        try:
            return call()
        except Exception as error:
            self.crawl.counts[f"error/{what}"] += 1
            if self.crawl.counts[f"error/{what}"] <= _SHOWN_ERRORS:
                logger.exception("scrapy_focus failed in %s: %s", what, error, extra={"spider": self.crawler.spider})
            return None


class SleepingBanditScheduler(FocusScheduler):
    """The scheduler of the SB-CLASSIFIER policy, :class:`~scrapy_focus.policies.tagpath.TagPath`."""

    default_policy: ClassVar[type[Policy]] = TagPath
