"""Downloader middlewares: they decide which requests are sent and which responses are read, and count all of them."""

from __future__ import annotations

import math
import mimetypes
import zlib
from contextlib import contextmanager, suppress
from time import monotonic, time
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from scrapy import Request, signals
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    IgnoreRequest,
    NotConfigured,
    StopDownload,
)
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.responsetypes import responsetypes
from scrapy.robotstxt import RobotParser
from scrapy.utils.asyncio import run_in_thread
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import load_object

from scrapy_focus.config import Config
from scrapy_focus.core.errors import StorageError
from scrapy_focus.core.printable import printable_logger, reason_of
from scrapy_focus.engine.access import access_of
from scrapy_focus.engine.archive import archive_info, exchange_of
from scrapy_focus.engine.body_limit import BodyLimit
from scrapy_focus.engine.browser.found import Found, browser_of, has_died
from scrapy_focus.engine.failure import failure_kind, in_words
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.inflight import (
    BodyStopped,
    BrowserFailed,
    BudgetExhausted,
    InsideAddress,
    MimeStop,
    OutOfScope,
    Probed,
    ProbeFailed,
    RedirectSeen,
    TooLarge,
)
from scrapy_focus.engine.marks import CUT, MADE, PICK, RENDERED
from scrapy_focus.engine.resolve import addresses_of
from scrapy_focus.jobs.warc_files import WarcFiles
from scrapy_focus.web.addresses import literal, network_of
from scrapy_focus.web.encodings import begins_encoded, is_text, is_whole
from scrapy_focus.web.mime import parse_mime
from scrapy_focus.web.robots import ROBOTS_BYTES, retry_after, rules_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Headers
    from scrapy.settings import BaseSettings
    from twisted.internet.defer import Deferred

    from scrapy_focus.engine.browser.guard import Guard, Visit
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.web.addresses import Address, Network

logger = printable_logger(__name__)

_ROBOTS_ROUNDS = 3  # attempts to fetch a robots.txt before its host counts as closed
_ANY_RATIO = 10_000_000  # bytes that a body may always inflate to
_ENCODINGS = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd"})  # encodings that Scrapy decodes
_NO_ENCODINGS = frozenset({"", "identity", "none"})
_SHOWN = 3  # refusals that are logged; after that they are only counted
_NETWORKED = frozenset({"http", "https", "ftp"})
_PAGES = ("text/html", "application/xhtml+xml")
_RENDERINGS = 2  # retries of a page after the browser failed
_SMALL = 64 * 1024  # bytes: stopping a smaller body saves nothing, and costs the connection


class _FocusMiddleware:
    """Base class of our downloader middlewares: they do nothing in a crawl with another scheduler."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @property
    def host(self) -> Host | None:
        return host_of(self.crawler)

    def entry(self, request: Request) -> Entry | None:
        """Return the entry of the pick that a request was made for, if any."""
        host = self.host
        return None if host is None else host.inflight.find(request)


class ScopeMiddleware(_FocusMiddleware):
    """Refuses requests out of scope: redirects, HEADs, and what a browser loads (``FOCUS_EXCLUDE`` and the like).

    Links are refused earlier. A crawl with such a setting adds the middleware outside all others, so that robots.txt
    of another host is not requested either. Requests for robots.txt themselves are always sent.
    """

    def process_request(self, request: Request) -> None:
        host = self.host
        scope = None if host is None else host.features.able("scope")
        if host is None or scope is None or _asks_for_robots(request):
            return
        entry = host.inflight.find(request)
        reason = host.guard("scope", "unknown", scope.refusal, request, entry)
        if not reason:
            return
        if entry is not None and entry.also and entry.also[-1] == host.links.key(request):
            host.links.release([entry.also.pop()])  # a later run with other rules may request it
        raise OutOfScope(f"{request.url} is out of scope ({reason})")

    def should_load(self, url: str, page: Request | None, *, is_document: bool) -> bool:
        """Whether a browser may load a URL for a page."""
        host = self.host
        scope = None if host is None else host.features.able("scope")
        if host is None or scope is None:
            return True
        return not host.guard("scope", "unknown", scope.loading_refusal, url, page, is_document=is_document)


class ProbeMiddleware(_FocusMiddleware):
    """Probes a link with a HEAD request if the policy asked for that, and fetches nothing.

    This applies to GET requests without a body; others are sent unchanged. The HEAD passes through all downloader
    middlewares, and observes the same delays. It is never rendered by a browser.
    """

    async def process_request(self, request: Request) -> Request | None:
        entry = self.entry(request)
        if entry is None or entry.pick.method != "HEAD" or request.method != "GET" or request.body:
            return None
        meta = {key: value for key, value in request.meta.items() if key != PICK and not key.startswith("playwright")}
        head = request.replace(method="HEAD", body=b"", callback=NO_CALLBACK, errback=None, meta=meta)
        try:
            response = await self.crawler.engine.download_async(head)
        except IgnoreRequest:
            raise
        except Exception as error:  # its retries are used up: retries of the page would add to them
            raise ProbeFailed(error) from error
        spider = self.crawler.spider
        is_put_off = self.host is not None and self.host.pace.is_put_off(request)
        if is_put_off and entry.request is request and spider is not None:
            again = get_retry_request(request, spider=spider, reason="Retry-After")
            if again is not None:
                return again
        raise Probed(response)


class MimeMiddleware(_FocusMiddleware):
    """Stops bodies of unwanted types (``FOCUS_BLOCKED_MIMES``) as soon as their headers have arrived.

    Stopping costs the connection, and the bytes sent until then, so bodies of less than 64 KiB are read and dropped
    here. A response that the goal counts as a target is never stopped.
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
        if host is None or entry is None or host.is_wanted(parse_mime(kind), request.url):
            return
        entry.stopped = True
        request.meta["dont_cache"] = True  # otherwise the HTTP cache would replay an empty body
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
    """Counts every request immediately before it is sent, and blocks those beyond the budget.

    It is the innermost middleware: responses from the HTTP cache are not counted; robots.txt, HEADs, redirects, retries
    and downloads of pipelines are. So are the requests that a browser sends for a page
    (:mod:`scrapy_focus.engine.browser`). Bodies are counted as received, compressed. A response that had arrived when
    an earlier run was killed is not requested again (``FOCUS_KILL_SAFE_FETCH``).

    A budget of bytes (``FOCUS_BUDGET_BYTES``) holds within a body: the download that exceeds it is stopped, and so are
    all others in flight. What arrived of them is counted and dropped, and their URLs stay queued for a larger budget.

    A host that answers 429 or 503 with ``Retry-After`` is paused for that time (``FOCUS_OBEY``,
    ``FOCUS_LONGEST_WAIT``): nothing is chosen for it meanwhile, and requests already chosen return to the queue. Then
    Scrapy retries. A request without a pick, such as one for robots.txt, is not retried, as that would happen at once.

    If a request was sent to the target of a redirect that a feature foresaw, and that fails, the original URL is
    requested.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._out: WeakSet[Request] = WeakSet()  # sent; a response to another request may be from the cache
        self._waits = "retry-after" in Config.obey.of(crawler.settings)
        self._keeps_cookies = crawler.settings.getbool("COOKIES_ENABLED")
        self._guard: Guard | None = None
        is_limited = Config.budget_bytes.of(crawler.settings) is not None
        self._bodies = BodyLimit(crawler) if is_limited else None

    async def process_request(self, request: Request) -> Request | Response | None:
        host = self.host
        if host is None or not request.url.startswith("http"):
            return None
        answers = host.features.able("recall")
        answer: Response | None = None if answers is None else answers.recall(request)
        if answer is not None:
            host.received(_size(answer))
            return answer
        entry = self.entry(request)
        if entry is not None and entry.request is request and host.pace.is_put_off(request):
            return _again(request)
        if not await host.is_first(request):
            raise RedirectSeen(f"{request.url} is fetched by another process of this crawl")
        if not await host.sent(request):
            raise BudgetExhausted("the budget of requests (FOCUS_BUDGET_REQUESTS) is used up")
        self._out.add(request)
        if request.meta.get("playwright"):
            self._guard = self._guard or self._make_guard(host)
            self._guard.take(request, is_direct=entry is not None and entry.is_direct)
        return None

    def _make_guard(self, host: Host) -> Guard:
        from scrapy_focus.engine.browser.guard import Guard  # crawls without a browser do not import it

        return Guard(self.crawler, host, host.config.browser_offsite, weighs=self._bodies is not None)

    def process_response(self, request: Request, response: Response) -> Request | Response:
        visit, entry = self._visit(request), self.entry(request)
        if entry is not None and self._keeps_cookies and "Set-Cookie" in response.headers:
            entry.has_cookie = True
        host = self._back(request)
        if host is not None and not (visit is not None and visit.is_weighed):
            self._weigh(host, request, response, entry)
        if visit is not None:
            _check_loaded(visit, request, entry)
        return self._unless_foreseen("answered", request, response) or response

    def _unless_foreseen(self, what: str, request: Request, found: Response | Exception) -> Request | None:
        """Return the request for the original URL if a redirect was foreseen and a guess failed."""
        host = self.host
        redirects = None if host is None else host.features.able("redirects")
        if host is None or redirects is None:
            return None
        again: Request | None = host.guard("redirect", None, getattr(redirects, what), request, found)
        return again

    def _weigh(self, host: Host, request: Request, response: Response, entry: Entry | None) -> None:
        """Count the bytes of a response, and pause its host if requested."""
        size = _size(response)
        host.received(size if self._bodies is None else size - self._bodies.take(request).size)
        if entry is not None:
            entry.received += size
        if self._waits and response.status in (429, 503):
            self._wait(host, request, response)

    def _wait(self, host: Host, request: Request, response: Response) -> None:
        """Pause a host for the time that its response requests, if any."""
        if _asks_for_robots(request) and request.meta.get("dont_retry"):
            return  # RobotsMiddleware closes the host
        asked = (response.headers.get("Retry-After") or b"").decode("latin-1")
        if seconds := retry_after(asked, now=time()):
            host.pace.put_off(request, seconds, f"it answered {response.status} with Retry-After: {asked[:40]!r}")
            entry = self.entry(request)
            if entry is None or entry.request is not request:
                request.meta["dont_retry"] = True

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        visit, host = self._visit(request), self._back(request)
        if host is not None and isinstance(exception, (CannotResolveHostError, DownloadConnectionRefusedError)):
            host.received(None)
        if host is not None and self._bodies is not None:
            self._end_part(host, request, self._bodies, exception)
        if visit is not None and visit.is_too_large:
            raise TooLarge(f"{request.url} received {visit.unpacked:,} bytes, and was closed") from exception
        if visit is not None and visit.refused == "budget":
            stopped = BodyStopped if visit.is_stopped else BudgetExhausted
            raise stopped("a budget was used up before the page could be loaded") from exception
        if visit is not None and visit.refused == "scope":
            raise OutOfScope(f"{request.url} redirects out of scope") from exception
        if visit is not None and visit.refused:
            raise IgnoreRequest(f"{request.url} leads to a forbidden address ({visit.refused})") from exception
        return self._unless_foreseen("failed", request, exception)

    def _end_part(self, host: Host, request: Request, bodies: BodyLimit, exception: Exception) -> None:
        """Forget a response that did not arrive whole; ``BodyStopped`` if the budget of bytes was used up meanwhile."""
        part = bodies.take(request)
        if (entry := self.entry(request)) is not None:
            entry.received += part.size
        if part.is_stopped:
            host.count("bytes/stopped")
            raise BodyStopped(f"the budget of bytes was used up while {request.url} arrived") from exception

    def _visit(self, request: Request) -> Visit | None:
        """Return the visit of a browser for a request, if any, after counting it for its pick."""
        visit = None if self._guard is None else self._guard.give_back(request)
        if visit is not None and (entry := self.entry(request)) is not None:
            entry.sent += visit.requests
            entry.received += visit.received
            entry.is_cut = visit.is_growing
            if visit.files:
                request.meta[MADE] = visit.files
            if self.host is not None:
                self.host.pace.owe(request, visit.requests)
        return visit

    def _back(self, request: Request) -> Host | None:
        if request not in self._out:
            return None
        self._out.discard(request)
        return self.host


class RenderMiddleware(_FocusMiddleware):
    """Lets a browser fetch the pages that the policy wants rendered (``render``), or all pages (``FOCUS_RENDER``).

    It adds the ``meta`` of scrapy-playwright at the last moment, and removes it when the response arrives. So a queued
    request stays small, and can be stored in a job directory. Forms and requests with a body are sent unchanged. If the
    browser crashes or hangs with a page, the page is tried twice more; then its plain copy is used, and fetched if
    there is none. ``meta["playwright"]`` of a spider always takes precedence, even ``False``.
    """

    renders = True  # a crawl identifies the middleware by it

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._mode = Config.render.of(crawler.settings)
        self._browser: Found | None = None
        self._out: WeakSet[Request] = WeakSet()  # requests for a browser

    def process_request(self, request: Request) -> None:
        entry = self.entry(request)
        if entry is None or entry.request is not request:
            return
        is_said = "playwright" in request.meta and RENDERED not in request.meta
        if is_said or request.method != "GET" or request.body:
            entry.shown = bool(request.meta.get("playwright"))
            return
        if entry.pick.method == "RENDER" and entry.shown is not False:
            if not self.browser and entry.is_direct:
                entry.shown = False
                return
            if not self.browser:
                raise BrowserFailed(f"{request.url} needs a browser, but none is available: {self.browser.reason}")
        elif not self._shows_anyway(request, entry):
            return
        request.meta["playwright"] = request.meta[RENDERED] = entry.shown = True
        self._out.add(request)

    def _shows_anyway(self, request: Request, entry: Entry) -> bool:
        """Whether a page is rendered only because all pages are."""
        return self._mode == "always" and entry.shown is not False and _may_be_page(request) and bool(self.browser)

    def process_response(self, request: Request, response: Response) -> Response:
        _remove_browser_keys(request)
        host = self.host
        entry = self.entry(request)
        if host is not None and entry is not None and entry.is_cut:
            host.count("browser/list_cut")
        return response

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        _remove_browser_keys(request)
        entry, spider = self.entry(request), self.crawler.spider
        if request not in self._out or isinstance(exception, IgnoreRequest) or entry is None or spider is None:
            return None
        if isinstance(exception, BrowserFailed) or has_died(exception):
            again = get_retry_request(request, spider=spider, reason="browser", max_retry_times=_RENDERINGS)
            if again is not None:
                return again
        if entry.pick.method == "RENDER" and not entry.is_direct:
            raise BrowserFailed(f"{request.url}: {reason_of(exception)}") from exception
        entry.shown = False
        return request.replace(dont_filter=True)

    @property
    def browser(self) -> Found:
        """The browser, looked up once; none if none is wanted."""
        if self._browser is None:
            is_wanted = self._mode != "never"
            self._browser = browser_of(self.crawler.settings) if is_wanted else Found(reason="FOCUS_RENDER is 'never'")
        return self._browser


class RevisitMiddleware(_FocusMiddleware):
    """Makes revisits conditional, in crawls that revisit pages (``again``).

    The request gets ``If-None-Match`` and ``If-Modified-Since``, with the values of the last visit that the spider
    read; a 304 then saves the body. Requests that already have conditions are unchanged. With Scrapy's HTTP cache,
    which does the same, all are.
    """

    def process_request(self, request: Request) -> None:
        visits = None if self.host is None else self.host.features.able("revisit")
        if visits is not None:
            visits.ask(request)


class PublicOnlyMiddleware(_FocusMiddleware):
    """Refuses requests to addresses that are not public; enabled by ``FOCUS_PUBLIC_ONLY``.

    Otherwise links and redirects on untrusted pages could make this machine contact itself, its router or its
    neighbours. The current addresses of the host are checked for every request: links, redirects, robots.txt, HEADs. If
    all addresses of a start request are on this machine, link-local or in private networks, other requests may use
    addresses of the same of these three kinds.

    It runs inside all middlewares except the one that counts, and uses the same name cache as Twisted's handlers. With
    other handlers, a name may change in between; so the address of the response is checked as well, and a response from
    inside is dropped. If a proxy resolves names, only addresses in the URL are checked.
    """

    guards_browsers = True  # browsers resolve names themselves, and a name may change in between

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if not Config.public_only.of(crawler.settings):
            raise NotConfigured
        self._seen: set[str] = set()  # hosts of start requests whose networks are known
        self._allowed: set[Network] = {"public"}
        self._refused = 0

    def network(self, address: Address) -> Network:
        """Return the network of an address; a subclass may treat other networks as internal."""
        return network_of(address)

    def seeds(self) -> set[str]:
        """Return the hosts of the start requests so far, or, without our scheduler, those that the spider names."""
        return getattr(self.crawler.spider, "seed_hosts", set()) if self.host is None else self.host.seeds

    async def process_request(self, request: Request) -> None:
        url = urlparse_cached(request)
        if url.scheme not in _NETWORKED or not url.hostname:
            return
        proxied = self._is_proxied(request)
        networks = await self._networks(url.hostname, proxied=proxied)
        seeds = self.seeds()
        if url.hostname in seeds:
            self._trust(url.hostname, networks)
        if networks <= self._allowed:
            return
        for seed in seeds - self._seen:
            self._trust(seed, await self._networks(seed, proxied=proxied))
        if inside := networks - self._allowed:
            self._refuse(request, inside)

    def process_response(self, request: Request, response: Response) -> Response:
        if response.ip_address is not None and not self._is_proxied(request):
            inside = {self.network(response.ip_address)} - self._allowed
            if inside:
                self._refuse(request, inside)
        return response

    def _is_proxied(self, request: Request) -> bool:
        return bool(request.meta.get("proxy") or access_of(self.crawler).proxy)

    async def _networks(self, host: str, *, proxied: bool) -> set[Network]:
        own = literal(host)
        if own is not None:
            return {self.network(own)}
        return set() if proxied else {self.network(address) for address in await addresses_of(host)}

    def _trust(self, seed: str, networks: set[Network]) -> None:
        """Allow the networks of a start request, as first resolved, not as its name may change later."""
        if seed not in self._seen:
            self._seen.add(seed)
            if "public" not in networks:
                self._allowed |= networks

    def _refuse(self, request: Request, inside: set[Network]) -> None:
        self._refused += 1
        if self.host is not None:
            self.host.count("address/inside")
        where = f"{request.url[:200]!r} has a {' and '.join(sorted(inside))} address (FOCUS_PUBLIC_ONLY)"
        if self._refused <= _SHOWN:
            logger.info("Not requested: %s", where, extra={"spider": self.crawler.spider})
        raise InsideAddress(where)


class WarcMiddleware(_FocusMiddleware):
    """Stores every answer and its request in a web archive, as the server sent it; enabled by ``FOCUS_WARC``.

    It runs inside all middlewares except those that add headers to requests for the moment of sending, so bodies are
    still compressed and secrets are not there yet. The answer is passed on when it is stored, so a crawl that is killed
    has stored all that it used, and no more answers wait in memory than requests are sent at once. A thread does the
    work. If the archive cannot be written any more, the crawl stops.

    Not stored: answers from a cache, requests without an answer, and what a browser requests for a page. Of a rendered
    page, its HTML is.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        path = Config.warc.of(crawler.settings)
        if not path:
            raise NotConfigured
        self._files = WarcFiles(path, archive_info(crawler))
        self._sent: WeakSet[Request] = WeakSet()
        self._is_broken = False
        crawler.signals.connect(self.on_closed, signals.spider_closed)

    def process_request(self, request: Request) -> None:
        if request.url.startswith("http"):
            self._sent.add(request)

    async def process_response(self, request: Request, response: Response) -> Response:
        answers = None if self.host is None else self.host.features.able("recall")
        is_recalled = answers is not None and request in answers.recalled
        if request in self._sent or is_recalled:
            await self._store(request, response, unless_stored=is_recalled)
        return response

    async def process_exception(self, request: Request, exception: Exception) -> None:
        if request in self._sent and isinstance(exception, StopDownload) and exception.response is not None:
            await self._store(request, exception.response)
        self._sent.discard(request)

    def on_closed(self) -> None:
        """Close the file; the handler of Scrapy's ``spider_closed``."""
        self._files.close()

    async def _store(self, request: Request, response: Response, *, unless_stored: bool = False) -> None:
        self._sent.discard(request)
        if self._is_broken:
            return
        try:
            size = await run_in_thread(self._files.write, exchange_of(request, response), unless_stored=unless_stored)
        except OSError as error:
            self._fail(error)
        else:
            if self.host is not None and size:
                self.host.count("warc/stored")
                self.host.count("warc/bytes", size)

    def _fail(self, error: OSError) -> None:
        self._is_broken = True
        failure = StorageError(f"the web archive (FOCUS_WARC) cannot be written: {reason_of(error)}")
        failure.__cause__ = error
        if self.host is not None:
            self.host.fail(failure)
        else:
            logger.error("%s", failure, extra={"spider": self.crawler.spider})


class CompressionMiddleware(HttpCompressionMiddleware):
    """Inflates bodies as Scrapy does, up to a limit relative to their size (``FOCUS_MAX_INFLATION``).

    Scrapy stops at ``DOWNLOAD_MAXSIZE``. A body that grows to more than ten megabytes and to more than that multiple
    of its size is also given up. Only the part of a robots.txt that is read is inflated, and
    :class:`RobotsMiddleware` handles one that cannot be decoded. Any other body that does not match its
    ``Content-Encoding`` is left unchanged. A body with an incomplete encoding gets the flag ``cut``, unless it is a
    page.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler=crawler)
        self._ratio = Config.max_inflation.of(crawler.settings)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawler.settings.getbool("COMPRESSION_ENABLED"):
            raise NotConfigured
        return cls(crawler)

    def process_response(  # type: ignore[override]
        self, request: Request, response: Response
    ) -> Request | Response:
        if b"Content-Encoding" not in response.headers or request.method == "HEAD":
            return response
        is_robots = _asks_for_robots(request)
        if is_robots and is_text(response.body):
            return _plain(response, response.body)
        said = (response.headers.get("Content-Encoding") or b"").decode("latin-1")
        encoding = said.rpartition(",")[2].strip().lower()
        if encoding not in _ENCODINGS and not is_robots:
            return self._as_it_came(response, is_said=encoding not in _NO_ENCODINGS)
        limit = self._limit(request, len(response.body))
        try:
            with _largest(request, limit):
                decoded = super().process_response(request, response)
        except IgnoreRequest:
            pass  # release the exception: its traceback holds the inflated bytes
        except Exception:  # each library raises its own type
            if is_robots:
                return response
            if begins_encoded(response.body, encoding):
                raise
            return self._as_it_came(response)
        else:
            if is_robots:
                return decoded
            return self._checked(response, decoded, encoding)
        if is_robots:
            return _begin(response)
        raise TooLarge(f"{len(response.body):,} bytes inflate to more than {limit:,}")

    def _checked(self, response: Response, decoded: Request | Response, encoding: str) -> Request | Response:
        """Return the decoded response, flagged if it was cut; or the original if it is plain text after all."""
        if isinstance(decoded, HtmlResponse) or is_whole(response.body, encoding):
            return decoded
        if is_text(response.body):  # some decoders accept text as the beginning of a stream
            return self._as_it_came(response)
        if isinstance(decoded, Response):
            return decoded.replace(flags=[*decoded.flags, CUT])
        return decoded

    def _as_it_came(self, response: Response, *, is_said: bool = True) -> Response:
        """Return a response without its wrong ``Content-Encoding``; ``is_said``: count it, too."""
        if is_said and self.stats is not None:
            self.stats.inc_value("focus/encoding/wrong")
        headers = response.headers.copy()
        del headers["Content-Encoding"]
        kind = responsetypes.from_args(headers=headers, url=response.url, body=response.body)
        unread = {"encoding": None} if issubclass(kind, TextResponse) else {}  # detect it again
        return response.replace(cls=kind, headers=headers, **unread)

    def _limit(self, request: Request, size: int) -> int:
        """Return the limit of the inflated size of a body; 0: none."""
        if _asks_for_robots(request):
            return ROBOTS_BYTES
        largest = int(request.meta.get("download_maxsize", self._max_size)) or math.inf
        by_ratio = max(_ANY_RATIO, self._ratio * size) if self._ratio else math.inf
        limit = min(largest, by_ratio)
        return 0 if limit == math.inf else int(limit)


@contextmanager
def _largest(request: Request, limit: int) -> Iterator[None]:
    """Limit the bytes that Scrapy decodes for a request, whatever its settings."""
    asked = request.meta.get("download_maxsize")
    request.meta["download_maxsize"] = limit
    try:
        yield
    finally:
        del request.meta["download_maxsize"]
        if asked is not None:
            request.meta["download_maxsize"] = asked


class RobotsMiddleware(RobotsTxtMiddleware):
    """Obeys robots.txt as Scrapy does, and reads all valid lines in its first 500 KiB (RFC 9309, 2.3.1.5).

    ``FOCUS_OBEY`` can turn on two more rules. ``robots-errors``: a host is closed for now if its robots.txt cannot be
    read (RFC 9309, 2.3.1.4), because its server fails, hangs or answers 429, or because the file cannot be decoded. The
    host is paused, its requests stay queued, and the file is requested again, instead of Scrapy's retries: after
    ``first_wait`` seconds, or later if ``Retry-After`` says so, then after twice as many. If that also fails, requests
    to the host are ignored; the file is still requested every ``FOCUS_LONGEST_WAIT`` seconds.
    ``crawl-delay``: the delay between requests is at least this long, up to ``FOCUS_LONGEST_WAIT``.
    """

    first_wait = 30.0

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        wishes = Config.obey.of(crawler.settings)
        self._closes = "robots-errors" in wishes
        self._waits = "retry-after" in wishes
        self._longest = Config.longest_wait.of(crawler.settings)
        self._rounds: dict[str, int] = {}  # failed attempts, for each closed host with its port
        self._again: dict[str, float] = {}  # time of the next attempt, in seconds of time.monotonic
        self._read: WeakKeyDictionary[Request, int] = WeakKeyDictionary()  # bytes so far
        crawler.signals.connect(self.on_bytes, signals.bytes_received)
        if "crawl-delay" in wishes:
            crawler.signals.connect(self.on_parsed, signals.robots_parsed)

    async def process_request(self, request: Request) -> Request | None:  # type: ignore[override]
        if _asks_for_robots(request):
            request.meta["download_maxsize"] = 0  # it is cut as soon as enough has been read
            if self._closes:
                request.meta["dont_retry"] = True  # not at once, but after a pause
        if request.meta.get("dont_obey_robotstxt") or request.url.startswith(("data:", "file:")):
            return None
        netloc = urlparse_cached(request).netloc
        if self._again.get(netloc, math.inf) <= monotonic():
            del self._again[netloc]
            self._parsers.pop(netloc, None)
        parser = await self.robot_parser(request)
        if parser is None and isinstance(known := self._parsers.get(netloc), RobotParser):
            parser = known  # Scrapy 2.19 passes it to the first waiting caller, and None to the others
        if isinstance(parser, _Closed):
            return self._postpone(request, netloc, parser.why)
        self.process_request_2(parser, request)
        return None

    def on_bytes(self, data: bytes, request: Request) -> None:
        """Stop a robots.txt that is too long; the handler of Scrapy's ``bytes_received``."""
        if _asks_for_robots(request):
            self._read[request] = read = self._read.get(request, 0) + len(data)
            if read >= ROBOTS_BYTES:
                raise StopDownload(fail=False)

    def on_parsed(self, robotparser: RobotParser, request: Request) -> None:
        """Heed a ``Crawl-delay``; the handler of Scrapy's ``robots_parsed``."""
        agent = self._robotstxt_useragent or request.headers.get(b"User-Agent", self._default_useragent)
        delay = robotparser.crawl_delay(agent or "")
        host = host_of(self.crawler)
        if host is not None and delay is not None and delay > 0:
            host.pace.slow_down(request, delay)

    async def _parse_robots(self, response: Response, netloc: str, request: Request) -> None:
        if self._closes and (response.status >= 500 or response.status == 429):
            self._stats.inc_value("robotstxt/response_count")
            self._stats.inc_value(f"robotstxt/response_status_count/{response.status}")
            asked = (response.headers.get("Retry-After") or b"").decode("latin-1") if self._waits else ""
            self._close(netloc, f"its robots.txt answers {response.status}", retry_after(asked, now=time()) or 0.0)
            return
        rules = rules_of(response.body, is_encoded=b"Content-Encoding" in response.headers)
        if self._closes and rules is None and response.status < 400:
            self._close(netloc, "its robots.txt could not be decoded")
            return
        self._rounds.pop(netloc, None)
        await super()._parse_robots(response.replace(body=rules or b""), netloc, request)

    def _robots_error(self, exc: Exception, netloc: str) -> None:
        # the page itself fails in the same way: no connection can be made, or its URL cannot be sent
        same = isinstance(exc, (IgnoreRequest, ValueError)) or failure_kind(exc) in ("unknown_host", "refused", "tls")
        if self._closes and not same:
            self._close(netloc, f"its robots.txt could not be read: {in_words(exc)}")
        else:
            super()._robots_error(exc, netloc)

    def _close(self, netloc: str, why: str, at_least: float = 0.0) -> None:
        """Close a host for now, for at least some seconds."""
        self._stats.inc_value("robotstxt/unreachable")
        rounds = self._rounds[netloc] = self._rounds.get(netloc, 0) + 1
        wait = self.first_wait * 2 ** (rounds - 1) if rounds < _ROBOTS_ROUNDS else self._longest
        self._again[netloc] = monotonic() + min(max(wait, at_least), self._longest)
        waiting: Deferred[RobotParser | None] = self._parsers[netloc]  # type: ignore[assignment]
        self._parsers[netloc] = closed = _Closed(why)
        waiting.callback(closed)

    def _postpone(self, request: Request, netloc: str, why: str) -> Request:
        """Return a request that stays queued until robots.txt is requested again.

        Raises
        ------
        IgnoreRequest
            If that was done often enough, or the scheduler is not ours, or the request has no pick.
        """
        host = host_of(self.crawler)
        entry = None if host is None else host.inflight.find(request)
        if (
            host is None
            or entry is None
            or entry.request is not request
            or self._rounds.get(netloc, 0) >= _ROBOTS_ROUNDS
        ):
            self._stats.inc_value("robotstxt/forbidden")
            raise IgnoreRequest(why)
        wait = self._again.get(netloc, 0.0) - monotonic()
        host.pace.put_off(request, wait, why)
        return _again(request)


class _Closed(RobotParser):
    """Stands for a robots.txt that cannot be read: everything is forbidden, with the reason."""

    def __init__(self, why: str) -> None:
        self.why = why

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> Self:
        return cls("")

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        return False


def replace_stock(settings: BaseSettings) -> None:
    """Replace Scrapy's middlewares for robots.txt and compression with ours, unless the settings name them."""
    chosen = {load_object(component) for component in settings.getdict("DOWNLOADER_MIDDLEWARES")}
    for stock, ours, order in (
        (RobotsTxtMiddleware, RobotsMiddleware, 100),
        (HttpCompressionMiddleware, CompressionMiddleware, 590),
    ):
        if stock not in chosen:
            settings.set_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", stock, None)
            settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", ours, order)


def _asks_for_robots(request: Request) -> bool:
    """Whether a request is Scrapy's own for a robots.txt."""
    return (
        request.callback is NO_CALLBACK
        and "dont_obey_robotstxt" in request.meta
        and urlparse_cached(request).path == "/robots.txt"
    )


def _begin(response: Response) -> Response:
    """Return a compressed robots.txt, cut to the part that is read: nothing, in an encoding rarer than Brotli."""
    encoding = (response.headers.get("Content-Encoding") or b"").strip().lower()
    body = b""
    if encoding == b"br":
        import brotli

        body = brotli.Decompressor().process(response.body, output_buffer_limit=ROBOTS_BYTES)
    elif encoding in (b"gzip", b"x-gzip", b"deflate"):
        with suppress(zlib.error):
            body = zlib.decompressobj(wbits=47).decompress(response.body, ROBOTS_BYTES)
    return _plain(response, body)


def _plain(response: Response, body: bytes) -> Response:
    """Return a response with an unencoded body."""
    plain = response.replace(body=body)
    del plain.headers["Content-Encoding"]
    return plain


def _remove_browser_keys(request: Request) -> None:
    """Remove the browser's keys from a request that was not sent to a browser after all."""
    if request.meta.pop(RENDERED, False):
        del request.meta["playwright"]


def _may_be_page(request: Request) -> bool:
    """Whether a request may be for a page: its URL does not end like that of a file."""
    kind, packed = mimetypes.guess_type(urlparse_cached(request).path)
    return packed is None and kind in (None, *_PAGES)


def _check_loaded(visit: Visit, request: Request, entry: Entry | None) -> None:
    """Raise ``IgnoreRequest`` if a page in a browser is not whole, because it was too large or a budget was used up."""
    if visit.is_too_large:
        raise TooLarge(f"{request.url} received {visit.unpacked:,} bytes, and was closed")
    if visit.is_stopped:
        raise BodyStopped(f"the budget of bytes was used up before {request.url} was fully loaded")
    if visit.is_short and entry is not None and entry.pick.method == "RENDER":
        raise BudgetExhausted(f"a budget was used up before {request.url} was fully loaded")


def _again(request: Request) -> Request:
    """Return a request that returns to the scheduler, queued as the same pick."""
    again = request.copy()
    again.dont_filter = True
    return again


def _size(response: Response) -> int:
    return len(response.body) + len(response.headers.to_string())


_NEEDED: tuple[type[_FocusMiddleware], ...] = (
    ScopeMiddleware,
    ProbeMiddleware,
    PublicOnlyMiddleware,
    RevisitMiddleware,
    MeterMiddleware,
    WarcMiddleware,
)


def install(crawler: Crawler, *, comes_back: bool, has_scope: bool) -> None:
    """Add the middlewares that a policy or a feature requires and the settings do not name.

    A middleware that the user disabled (``None`` in ``DOWNLOADER_MIDDLEWARES``) stays disabled. ``comes_back``: whether
    the crawl revisits pages; ``has_scope``: whether a feature limits its scope.

    Raises
    ------
    NotConfigured
        If this version of Scrapy does not allow it.
    """
    manager = crawler.engine.downloader.middleware
    chosen = crawler.settings.getdict("DOWNLOADER_MIDDLEWARES")
    off = {load_object(component) for component, order in chosen.items() if order is None}
    for cls in _NEEDED:
        if cls not in off and not any(isinstance(middleware, cls) for middleware in manager.middlewares):
            if not _is_needed(cls, crawler.settings, comes_back=comes_back, has_scope=has_scope):
                continue
            middleware = cls.from_crawler(crawler)
            add = getattr(manager, "_add_middleware", None)
            if add is None:
                raise NotConfigured(
                    'this version of Scrapy takes no middleware at run time: set ADDONS = {"scrapy_focus.Addon": 500}'
                )
            add(middleware)
            if cls is ScopeMiddleware:
                manager.methods["process_request"].rotate(1)
            manager.middlewares = (*manager.middlewares, middleware)


def _is_needed(cls: type, settings: BaseSettings, *, comes_back: bool, has_scope: bool) -> bool:
    if cls is ScopeMiddleware:
        return has_scope
    if cls is PublicOnlyMiddleware:
        return Config.public_only.of(settings)
    if cls is RevisitMiddleware:
        return comes_back
    if cls is WarcMiddleware:
        return bool(Config.warc.of(settings))
    return True
