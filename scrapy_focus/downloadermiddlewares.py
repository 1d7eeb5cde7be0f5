"""Requests on their way out and answers on their way in: HEAD first, wanted types only, all of them counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from scrapy import Request, signals
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    IgnoreRequest,
    NotConfigured,
    StopDownload,
)
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.misc import load_object

from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.inflight import BudgetExhausted, MimeStop, Probed, ProbeFailed
from scrapy_focus.engine.marks import PICK
from scrapy_focus.web.mime import parse_mime

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response

    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry

_SMALL = 64 * 1024  # bytes: stopping a smaller body saves nothing, and costs the connection


class _FocusMiddleware:
    """What our downloader middlewares share: they do nothing in a crawl whose scheduler is not ours."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @property
    def host(self) -> Host | None:
        return host_of(self.crawler)

    def entry(self, request: Request) -> Entry | None:
        """Return what is known of the pick that a request was made for, if it was made for one."""
        host = self.host
        return None if host is None else host.inflight.find(request)


class ProbeMiddleware(_FocusMiddleware):
    """Looks at a link with a HEAD request where the policy asked for that, and fetches nothing.

    Only for GET requests without a body; any other is sent as it is. The HEAD goes through all downloader middlewares
    and takes its turn of politeness. It is never rendered by a browser.
    """

    async def process_request(self, request: Request) -> None:
        entry = self.entry(request)
        if entry is None or entry.pick.method != "HEAD" or request.method != "GET" or request.body:
            return
        meta = {key: value for key, value in request.meta.items() if key != PICK and not key.startswith("playwright")}
        head = request.replace(method="HEAD", body=b"", callback=NO_CALLBACK, errback=None, meta=meta)
        try:
            response = await self.crawler.engine.download_async(head)
        except IgnoreRequest:
            raise
        except Exception as error:  # its retries are used up: those of the page would come on top
            raise ProbeFailed(error) from error
        raise Probed(response)


class MimeMiddleware(_FocusMiddleware):
    """Stops bodies of types that nobody wants (``FOCUS_BLOCKED_MIMES``) as soon as the headers are there.

    Stopping costs the connection, and what the server had sent until then, so bodies of less than 64 KiB are let
    through to here. What a goal counts as a target is never stopped.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        middleware = super().from_crawler(crawler)
        crawler.signals.connect(middleware.on_headers, signals.headers_received)
        return middleware

    def on_headers(self, headers: Headers, body_length: Any, request: Request) -> None:
        """Decide on a response as its headers arrive; the handler of Scrapy's ``headers_received``."""
        host, entry = self.host, self.entry(request)
        kind = (headers.get("Content-Type") or b"").decode("latin-1")
        if host is None or entry is None or host.is_wanted(parse_mime(kind)):
            return
        entry.stopped = True
        request.meta["dont_cache"] = True  # or the HTTP cache would replay an empty body
        length = body_length if isinstance(body_length, int) else None  # Twisted has a constant for "unknown"
        if length is None or length >= _SMALL:
            host.count("mime/aborted")
            host.count("mime/aborted_bytes", length or 0)
            raise StopDownload(fail=True)

    def process_response(self, request: Request, response: Response) -> Response:
        host, entry = self.host, self.entry(request)
        if host is not None and entry is not None and entry.stopped:
            host.count("mime/dropped")
            kind = response.headers.get("Content-Type")
            raise MimeStop(f"{response.url} is {kind!r}, which FOCUS_BLOCKED_MIMES names")
        return response


class MeterMiddleware(_FocusMiddleware):
    """Counts every request at the last moment before it goes out, and lets none out that the budget does not allow.

    It is the innermost middleware: answers from the HTTP cache are not counted, and robots.txt, HEADs, redirects,
    retries and what a pipeline downloads are. What had arrived when an earlier run was killed is not asked for again
    (``FOCUS_KILL_SAFE_FETCH``).
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._out: WeakSet[Request] = WeakSet()  # an answer to another request came from the cache, say

    def process_request(self, request: Request) -> Response | None:
        host = self.host
        if host is None or not request.url.startswith("http"):
            return None
        if (answer := host.recall(request)) is not None:
            host.received(_size(answer))
            return answer
        if not host.sent(request):
            raise BudgetExhausted("the budget of requests (FOCUS_BUDGET_REQUESTS) is used up")
        self._out.add(request)
        return None

    def process_response(self, request: Request, response: Response) -> Response:
        if (host := self._back(request)) is not None:
            host.received(_size(response))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        host = self._back(request)
        if host is not None and isinstance(exception, (CannotResolveHostError, DownloadConnectionRefusedError)):
            host.received(None)

    def _back(self, request: Request) -> Host | None:
        if request not in self._out:
            return None
        self._out.discard(request)
        return self.host


def _size(response: Response) -> int:
    return len(response.body) + len(response.headers.to_string())


def install(crawler: Crawler) -> None:
    """Add the middlewares that a policy cannot do without to a crawl that has only our scheduler.

    One that the user turned off (``None`` in ``DOWNLOADER_MIDDLEWARES``) stays off.

    Raises
    ------
    NotConfigured
        If this version of Scrapy cannot be added to.
    """
    manager = crawler.engine.downloader.middleware
    chosen = crawler.settings.getdict("DOWNLOADER_MIDDLEWARES")
    off = {load_object(component) for component, order in chosen.items() if order is None}
    for cls in (ProbeMiddleware, MeterMiddleware):
        if cls not in off and not any(isinstance(middleware, cls) for middleware in manager.middlewares):
            middleware = cls.from_crawler(crawler)
            add = getattr(manager, "_add_middleware", None)
            if add is None:
                raise NotConfigured(
                    'this version of Scrapy takes no middleware at run time: set ADDONS = {"scrapy_focus.Addon": 500}'
                )
            add(middleware)
            manager.middlewares = (*manager.middlewares, middleware)
