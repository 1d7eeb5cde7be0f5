"""Keeps the facts about each pick in flight, from the moment it is handed out until its outcome.

No hook of Scrapy sees every way in which a request can end: an exception in ``process_response`` and a redirect that a
signal handler vetoes show up nowhere. But the engine removes every request from ``inprogress`` at the very end, after
callbacks, items and errbacks. So the hooks only note facts, and the outcome is derived from them when the engine has
finished the request: exactly once, on every path. A redirect or retry of a request belongs to the same pick.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import DownloadCancelledError, IgnoreRequest, StopDownload
from scrapy.http import HtmlResponse

from scrapy_focus.core.types import Link, Outcome, Pick
from scrapy_focus.engine.known import PickId
from scrapy_focus.engine.marks import MADE, PICK
from scrapy_focus.engine.pages import can_be_read, text_of
from scrapy_focus.web.mime import parse_mime
from scrapy_focus.web.names import header_text
from scrapy_focus.web.scripts import has_scripts
from scrapy_focus.web.sniff import sniff

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from scrapy_focus.engine.known import Knowing
    from scrapy_focus.engine.slots import Slots

_WELL = ("ok", "probed", "unchanged")  # outcomes without an error
_ITEMS = 10_000  # in the pipelines, at most


class BudgetExhausted(IgnoreRequest):
    """Raised in the downloader middleware for a request that the budget does not allow."""


class BodyStopped(BudgetExhausted):
    """Raised in the downloader middleware for a response that was stopped because the budget of bytes was used up."""


class RedirectSeen(IgnoreRequest):
    """Raised in the downloader middleware for a redirect to a page that another process of the crawl fetches."""


class MimeStop(IgnoreRequest):
    """Raised in the downloader middleware for a body of an unwanted type."""


class TooLarge(IgnoreRequest):
    """Raised in the downloader middleware for a body that inflates to more than is allowed."""


class InsideAddress(IgnoreRequest):
    """Raised in the downloader middleware for a host with a private address that outsiders must not make us visit."""


class OutOfScope(IgnoreRequest):
    """Raised in the downloader middleware for a request that is out of the scope of the crawl: a redirect, say."""


class Probed(IgnoreRequest):
    """Raised in the downloader middleware after a successful HEAD: there is no page for the spider."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"HEAD of {response.url}: {response.status}")
        self.response = response


class ProbeFailed(IgnoreRequest):
    """Raised in the downloader middleware when a HEAD got no response, so that the page is not tried instead."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"HEAD failed: {cause}")
        self.cause = cause


class BrowserFailed(Exception):
    """Raised if no browser answers: it died, hangs, does not start, or cannot load the page."""


class ResponsePage:
    """A :class:`~scrapy_focus.core.types.Page` that reads a response of Scrapy on demand."""

    __slots__ = ("_response",)

    def __init__(self, response: Response) -> None:
        self._response = response

    @property
    def url(self) -> str:
        return self._response.url

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        items = self._response.headers.items()
        return {name.decode("latin-1"): header_text(b",".join(values)) for name, values in items}

    @property
    def text(self) -> str:
        return text_of(self._response)

    @property
    def kind(self) -> str:
        return sniff(self._response.body)

    @property
    def content(self) -> int:
        """A digest of its body, in 63 bits."""
        return int.from_bytes(blake2b(self._response.body, digest_size=8).digest(), "big") >> 1

    @property
    def root(self) -> Any:
        """The tree, parsed once by Scrapy; ``None`` if it cannot be parsed."""
        response = self._response
        if isinstance(response, HtmlResponse) and can_be_read(response):
            return response.selector.root
        return None


class Entry:
    """One pick in flight, and the facts about it so far."""

    __slots__ = (
        "also", "failure", "first", "found", "full", "has_cookie", "holds_slot", "is_cut", "is_direct",
        "is_unchanged", "items", "known", "leads_to", "links", "noindex", "parsed_from", "pick", "quiet",
        "received", "request", "response", "returns", "scripted", "sent", "shown", "since", "slot",
        "spider_error", "stopped", "takes_turns", "verdict", "visited", "waits", "yielded",
    )  # fmt: skip

    def __init__(self, pick: Pick, since: float) -> None:
        self.pick = pick
        self.since = since
        self.parsed_from = inf  # when its response arrived, in seconds of time.monotonic
        self.first: Request | None = None  # as it was at first, if its page may be requested again
        self.request: Request | None = None  # None while its redirect or retry is queued
        self.slot = ""
        self.holds_slot = False
        self.sent = 0  # requests sent for it, including a browser's
        self.received = 0  # bytes received for it over the network, likewise
        self.response: Response | None = None
        self.failure: BaseException | None = None
        self.spider_error = False
        self.items = 0.0
        self.stopped = False  # whether its body was refused for its MIME type
        self.noindex = False  # whether its page asks goals and policies not to read it
        self.visited = False  # whether its page was fetched before
        self.is_unchanged = False  # whether its page is the same as at its last visit
        self.verdict = ""  # why it, or its last redirect, was dropped
        self.links: list[Link] = []  # not yet given to the policy
        self.found = 0  # links that it gave to the policy, or will give
        self.full = ""  # the trap that refuses further requests of its page; "": none
        self.takes_turns = False  # whether its page is read over several turns of the event loop
        self.is_cut = False  # whether clicking its page had to stop while that still brought links
        self.scripted: bool | None = None  # whether its page has scripts that no browser ran; None: unknown
        self.is_direct = True  # whether no plain copy of its page was fetched before it is rendered
        self.shown: bool | None = None  # whether a browser shows its page; None: undecided
        self.known: list[int] = []  # keys of further links of the page, to URLs already seen
        self.also: list[int] = []  # keys of the requests that it was redirected to
        self.has_cookie = False  # whether a response set a cookie since it was last redirected to a URL of its own
        self.returns = 0  # how often that happened
        self.leads_to: int | None = None  # key of an already seen request, the target of its last redirect
        self.quiet = 0  # turns of the event loop without activity on its page, as far as they are counted
        self.waits = False  # whether these are so many that its callback or a pipeline must be waiting
        self.yielded: set[int] = set()  # hashes of URLs that its page requests, not yet scheduled

    @property
    def returned(self) -> bool:
        """Whether the downloader has finished it, so that a request with its id comes from the spider."""
        return self.response is not None or self.failure is not None

    @property
    def has_scripts(self) -> bool:
        """Whether its page, which has arrived, has scripts that no browser has run.

        Linear in the page on the first call.
        """
        if self.scripted is None:
            response = self.response
            is_page = isinstance(response, HtmlResponse) and "playwright" not in response.flags
            self.scripted = response is not None and is_page and has_scripts(text_of(response))
        return self.scripted

    def label(self) -> str:
        """Return how it ended, as counted in ``focus/outcome/...``."""
        failure, response = self.failure, self.response
        if isinstance(failure, _SAYS_ALL):
            return _label_of(failure)
        if self.stopped or isinstance(failure, (MimeStop, StopDownload)):
            return "mime_stop"
        if self.spider_error:
            return "spider_error"
        if self.is_unchanged:
            return "unchanged"
        if response is not None and not 200 <= response.status < 300:
            return "http_error"
        if failure is not None:
            return _label_of(failure)
        if response is not None:
            return "ok"
        return self.verdict or "filtered"

    def _made(self) -> tuple[str, ...]:
        meta = {} if self.request is None else self.request.meta
        return tuple(each.name for each in meta.get(MADE, ()))

    def outcome(self, now: float) -> Outcome:
        """Derive the outcome from the facts; the goal computes the reward."""
        label, pick = self.label(), self.pick
        response = self.failure.response if isinstance(self.failure, Probed) else self.response
        error = "" if label in _WELL else label
        if label in ("failure", "too_large"):  # as in a recording
            error = f"failure: {type(self.failure).__name__}"
        if response is None:
            return Outcome(
                pick=pick, error=error, items=self.items, seconds=now - self.since, also=tuple(self.also),
                requests=self.sent, received=self.received,
            )  # fmt: skip
        if label != "probed" and pick.method == "HEAD":
            pick = pick._replace(method="GET")  # a cache answered with the page itself
        if pick.method == "RENDER" and not self.shown:
            pick = pick._replace(method="GET")
        mime = (response.headers.get("Content-Type") or b"").decode("latin-1")
        return Outcome(
            pick=pick, status=response.status, mime=parse_mime(mime), error=error, items=self.items,
            size=len(response.body) or _announced(response), seconds=now - self.since,
            also=tuple(self.also), outside=len(self.yielded), requests=self.sent, received=self.received,
            made=self._made(), page=None if self.noindex else ResponsePage(response),
        )  # fmt: skip


_SAYS_ALL = (Probed, BudgetExhausted, BrowserFailed, RedirectSeen)  # whatever the other facts about the pick
#: Labels of failures, and of their subclasses.
LABELS: dict[type, str] = {
    Probed: "probed",
    BudgetExhausted: "budget",
    BrowserFailed: "browser",
    RedirectSeen: "redirect_seen",
    OutOfScope: "out_of_scope",
    TooLarge: "too_large",
    DownloadCancelledError: "too_large",
    IgnoreRequest: "ignored",
}


def _label_of(failure: BaseException) -> str:
    for kind in type(failure).__mro__:
        if kind in LABELS:
            return LABELS[kind]
    return "failure"


def _announced(response: Response) -> int:
    """Return the announced size of a body, in bytes; 0 if none is announced."""
    size = response.headers.get("Content-Length") or b""
    return int(size) if size.isdigit() else 0


class Errback:
    """Replaces the errback of a request in flight: notes the failure, then calls the original.

    Without an original it returns the failure, which Scrapy treats as if there were no errback.
    """

    def __init__(self, entry: Entry, original: Callable[[Failure], Any] | None) -> None:
        self.entry = entry
        self.original = original
        self.__name__ = getattr(original, "__name__", "errback")

    def __call__(self, failure: Failure) -> Any:
        self.entry.failure = failure.value.cause if isinstance(failure.value, ProbeFailed) else failure.value
        if isinstance(failure.value, (Probed, ProbeFailed, BudgetExhausted, BrowserFailed, RedirectSeen)):
            return None  # nothing that concerns a page of the spider
        if self.entry.stopped and self.original is None:
            return None  # intended: not an error to log
        return failure if self.original is None else self.original(failure)


class InFlight:
    """The picks in flight, and the signal handlers that note facts about their requests.

    ``entries`` holds them by id. ``worth`` holds the rewards that the reward pipeline gave to items in the pipelines,
    with the items, so that no other object gets the same id meanwhile.
    """

    def __init__(self, crawler: Crawler, host: Knowing, slots: Slots) -> None:
        self.crawler = crawler
        self.host = host
        self.slots = slots
        self.entries: dict[int, Entry] = {}
        self.worth: OrderedDict[int, tuple[Any, float]] = OrderedDict()
        self._pages: dict[str, list[int]] = {}  # picks by the URL of their page
        self._hears_headers = False
        # By pick, with delays: when the headers of the response came, and the seconds to read the body at that time.
        self._headers_at: dict[int, float] = {}
        self._reading: dict[int, float] = {}

    def connect(self) -> None:
        """Connect the signal handlers."""
        connect = self.crawler.signals.connect
        connect(self._on_response, signals.response_received)
        connect(self._on_left, signals.request_left_downloader)
        connect(self._on_scraped, signals.item_scraped)
        connect(self._on_dropped, signals.item_dropped)
        connect(self._on_dropped, signals.item_error)
        connect(self._on_spider_error, signals.spider_error)

    def find(self, carrier: Any) -> Entry | None:
        """Return the entry of the pick of a request, or of the request of a response or failure."""
        pick_id = entry_id(carrier)
        if pick_id is None:
            return None
        return self.entries.get(pick_id)

    def page_of(self, request: Request) -> Entry | None:
        """Return the entry of the page that a request names as its referrer; ``None`` if several have its URL.

        A link that is assigned to a wrong page is lost if a kill comes between the outcomes of the two pages.
        """
        referer = request.headers.get("Referer")
        pick_ids = self._pages.get(referer.decode("latin-1"), ()) if referer else ()
        return self.entries.get(pick_ids[0]) if len(pick_ids) == 1 else None

    def hand_out(self, entry: Entry, request: Request) -> Request:
        """Mark a request as that of a pick, and note that the engine has it."""
        request.meta[PICK] = PickId.of(entry.pick.id, self.host)
        request.errback = Errback(entry, request.errback)
        entry.request = request
        entry.slot = self.crawler.engine.downloader.get_slot_key(request)
        entry.holds_slot = True
        self.slots.take(entry.slot, entry.pick.id)
        if not self._hears_headers and self.slots.is_delayed(entry.slot):
            self._hears_headers = True
            self.crawler.signals.connect(self._on_headers, signals.headers_received)
        return request

    def succeed(self, entry: Entry) -> None:
        """Note that the request of a pick ended in a redirect or retry, which is queued."""
        self._free_slot(entry)
        entry.request = None
        entry.stopped = False

    def ended(self) -> list[Entry]:
        """Return the entries whose request the engine has finished."""
        in_progress = engine_slot(self.crawler).inprogress
        entries = self.entries.values()
        return [entry for entry in entries if entry.request is not None and entry.request not in in_progress]

    def remove(self, entry: Entry) -> None:
        """Forget a pick: its outcome exists."""
        del self.entries[entry.pick.id]
        self._free_slot(entry)
        if self._hears_headers:
            self._headers_at.pop(entry.pick.id, None)
            self._reading.pop(entry.pick.id, None)
        if entry.request is not None:
            _restore_errback(entry.request)
        if entry.response is not None:
            url = _bare(entry.response.url)
            self._pages[url].remove(entry.pick.id)
            if not self._pages[url]:
                del self._pages[url]

    def is_appraised(self, item: Any) -> bool:
        """Whether an item has a reward."""
        return id(item) in self.worth

    def appraise(self, item: Any, worth: float) -> None:
        """Note the reward of an item until it is scraped or dropped."""
        self.worth[id(item)] = item, worth
        if len(self.worth) > _ITEMS:  # pipelines that replace items leave the originals here
            self.worth.popitem(last=False)

    def _free_slot(self, entry: Entry) -> None:
        if entry.holds_slot:
            entry.holds_slot = False
            self.slots.free(entry.slot, entry.pick.id)

    def _on_response(self, response: Response, request: Request) -> None:
        entry = self.find(request)
        if entry is None or entry.request is None or entry.response is not None:
            return
        if request is entry.request or request not in engine_slot(self.crawler).inprogress:  # else a copy of it
            entry.response = response
            entry.parsed_from = monotonic()
            _restore_errback(entry.request)  # so that callbacks see the original request
            self._pages.setdefault(_bare(response.url), []).append(entry.pick.id)
            if (latency := request.meta.get("download_latency")) is not None:
                self.slots.observe(entry.slot, latency + self._reading.get(entry.pick.id, 0.0))

    def _on_headers(self, request: Request) -> None:
        if (entry := self.find(request)) is not None:
            self._headers_at[entry.pick.id] = monotonic()

    def _on_left(self, request: Request) -> None:
        if (entry := self.find(request)) is not None:
            self._free_slot(entry)
            if self._headers_at and (came := self._headers_at.pop(entry.pick.id, None)) is not None:
                self._reading[entry.pick.id] = monotonic() - came

    def _on_scraped(self, item: Any, response: Any) -> None:
        _, worth = self.worth.pop(id(item), (None, 1.0))
        if (entry := self.find(response)) is not None:
            entry.items += worth
            entry.quiet = 0

    def _on_dropped(self, item: Any, response: Any) -> None:
        self.worth.pop(id(item), None)
        if (entry := self.find(response)) is not None:
            entry.quiet = 0

    def _on_spider_error(self, response: Any) -> None:
        if (entry := self.find(response)) is not None:
            entry.spider_error = True


def engine_slot(crawler: Crawler) -> Any:
    """Return the engine's record of requests in progress: private, but in Scrapy since 0.9."""
    return crawler.engine._slot


def unwrap(request: Request) -> Request:
    """Undo what :meth:`InFlight.hand_out` did to a request."""
    request.meta.pop(PICK, None)
    return _restore_errback(request)


def entry_id(carrier: Any) -> int | None:
    """Return the id of the pick that a request carries, or the request of a response or failure."""
    request = getattr(carrier, "request", None) or carrier
    pick_id = getattr(request, "meta", {}).get(PICK)
    return pick_id if isinstance(pick_id, int) else None


def _restore_errback(request: Request) -> Request:
    """Restore the errback of a request: otherwise request, errback, entry and response form a cycle in memory."""
    if isinstance(request.errback, Errback):
        request.errback = request.errback.original
    return request


def _bare(url: str) -> str:
    return url.partition("#")[0]
