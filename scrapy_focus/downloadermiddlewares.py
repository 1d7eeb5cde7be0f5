"""Requests on their way out and answers on their way in: what is asked, what is read, and all of it counted."""

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
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import load_object

from scrapy_focus.config import Config
from scrapy_focus.core.printable import printable_logger, reason_of
from scrapy_focus.engine.browser.found import Found, browser_of, has_died
from scrapy_focus.engine.failure import failure_kind, in_words
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.inflight import (
    BrowserFailed,
    BudgetExhausted,
    InsideAddress,
    MimeStop,
    Probed,
    ProbeFailed,
    RedirectSeen,
    TooLarge,
)
from scrapy_focus.engine.marks import CUT, MADE, PICK, RENDERED
from scrapy_focus.engine.resolve import addresses_of
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

_ROBOTS_ROUNDS = 3  # in which a robots.txt is asked for before its host counts as closed
_ANY_RATIO = 10_000_000  # bytes to which a body may inflate whatever its size was
_ENCODINGS = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd"})  # that Scrapy decodes
_NO_ENCODINGS = frozenset({"", "identity", "none"})
_SHOWN = 3  # refusals that are logged; after that they are only counted
_NETWORKED = frozenset({"http", "https", "ftp"})
_PAGES = ("text/html", "application/xhtml+xml")
_RENDERINGS = 2  # further ones that a page is given with which the browser failed
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
        except Exception as error:  # its retries are used up: those of the page would come on top
            raise ProbeFailed(error) from error
        spider = self.crawler.spider
        is_put_off = self.host is not None and self.host.pace.is_put_off(request)
        if is_put_off and entry.request is request and spider is not None:
            again = get_retry_request(request, spider=spider, reason="Retry-After")
            if again is not None:
                return again
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
        if host is None or entry is None or host.is_wanted(parse_mime(kind), request.url):
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
    retries and what a pipeline downloads are. So is what a browser asks for on behalf of a page
    (:mod:`scrapy_focus.engine.browser`). Bodies count as they came, compressed. What had arrived
    when an earlier run was killed is not asked for again (``FOCUS_KILL_SAFE_FETCH``).

    A host that answers 429 or 503 with ``Retry-After`` is put off for as long (``FOCUS_OBEY``, ``FOCUS_LONGEST_WAIT``):
    nothing is chosen for it meanwhile, and what was chosen already waits with the scheduler. Scrapy's retries follow.
    What no pick asked for, such as a robots.txt, is not retried then, as it would be at once.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._out: WeakSet[Request] = WeakSet()  # an answer to another request came from the cache, say
        self._waits = "retry-after" in Config.obey.of(crawler.settings)
        self._keeps_cookies = crawler.settings.getbool("COOKIES_ENABLED")
        self._guard: Guard | None = None

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
            raise RedirectSeen(f"{request.url} is asked for by another process of this crawl")
        if not await host.sent(request):
            raise BudgetExhausted("the budget of requests (FOCUS_BUDGET_REQUESTS) is used up")
        self._out.add(request)
        if request.meta.get("playwright"):
            self._guard = self._guard or self._make_guard(host)
            self._guard.take(request, is_direct=entry is not None and entry.is_direct)
        return None

    def _make_guard(self, host: Host) -> Guard:
        from scrapy_focus.engine.browser.guard import Guard  # crawls without a browser do not import it

        return Guard(self.crawler, host, host.config.browser_offsite)

    def process_response(self, request: Request, response: Response) -> Response:
        visit, entry = self._visit(request), self.entry(request)
        if entry is not None and self._keeps_cookies and "Set-Cookie" in response.headers:
            entry.has_cookie = True
        host = self._back(request)
        if host is not None and not (visit is not None and visit.is_weighed):
            self._weigh(host, request, response, entry)
        if visit is not None and visit.is_too_large:
            raise TooLarge(f"{request.url} brought {visit.unpacked:,} bytes, and was closed")
        if visit is not None and visit.is_short and entry is not None and entry.pick.method == "RENDER":
            raise BudgetExhausted(f"a budget was used up before {request.url} had all that it asked for")
        return response

    def _weigh(self, host: Host, request: Request, response: Response, entry: Entry | None) -> None:
        """Count the bytes of a response, and put off its host where it asks for that."""
        size = _size(response)
        host.received(size)
        if entry is not None:
            entry.received += size
        if self._waits and response.status in (429, 503):
            self._wait(host, request, response)

    def _wait(self, host: Host, request: Request, response: Response) -> None:
        """Put a host off for as long as its answer asks for, if it does."""
        if _asks_for_robots(request) and request.meta.get("dont_retry"):
            return  # RobotsMiddleware closes the host
        asked = (response.headers.get("Retry-After") or b"").decode("latin-1")
        if seconds := retry_after(asked, now=time()):
            host.pace.put_off(request, seconds, f"it answered {response.status} with Retry-After: {asked[:40]!r}")
            entry = self.entry(request)
            if entry is None or entry.request is not request:
                request.meta["dont_retry"] = True

    def process_exception(self, request: Request, exception: Exception) -> None:
        visit, host = self._visit(request), self._back(request)
        if host is not None and isinstance(exception, (CannotResolveHostError, DownloadConnectionRefusedError)):
            host.received(None)
        if visit is not None and visit.is_too_large:
            raise TooLarge(f"{request.url} brought {visit.unpacked:,} bytes, and was closed") from exception
        if visit is not None and visit.refused == "budget":
            raise BudgetExhausted("a budget was used up before the page could be loaded") from exception
        if visit is not None and visit.refused:
            raise IgnoreRequest(f"{request.url} leads where it must not ({visit.refused})") from exception

    def _visit(self, request: Request) -> Visit | None:
        """Return what a browser did for a request, if one did, once that counts for its pick."""
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
    """Has a browser fetch what the policy wants rendered (``render``), or every page (``FOCUS_RENDER``).

    The settings of scrapy-playwright are added as late as here, and taken off when the answer is back. So a request
    that waits stays small, and survives in a job directory. Forms and requests with a body are sent as they are. A page
    that the browser dies or hangs with is tried twice more; then its plain copy stands, or is fetched where none was.
    ``meta["playwright"]`` of a spider keeps the last word, ``False`` too.
    """

    renders = True  # by which a crawl finds it

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._mode = Config.render.of(crawler.settings)
        self._browser: Found | None = None
        self._out: WeakSet[Request] = WeakSet()  # that a browser is to answer

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
                raise BrowserFailed(f"{request.url} waited for a browser, and there is none: {self.browser.reason}")
        elif not self._shows_anyway(request, entry):
            return
        request.meta["playwright"] = request.meta[RENDERED] = entry.shown = True
        self._out.add(request)

    def _shows_anyway(self, request: Request, entry: Entry) -> bool:
        """Whether a page is rendered that no policy wants rendered, as all are."""
        return self._mode == "always" and entry.shown is not False and _may_be_page(request) and bool(self.browser)

    def process_response(self, request: Request, response: Response) -> Response:
        _take_off(request)
        host = self.host
        entry = self.entry(request)
        if host is not None and entry is not None and entry.is_cut:
            host.count("browser/list_cut")
        return response

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        _take_off(request)
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
        """The browser, looked for once; none where none is wanted."""
        if self._browser is None:
            is_wanted = self._mode != "never"
            self._browser = browser_of(self.crawler.settings) if is_wanted else Found(reason="FOCUS_RENDER is 'never'")
        return self._browser


class RevisitMiddleware(_FocusMiddleware):
    """Asks whether a page has changed since its last visit, where pages are fetched again (``again``).

    The request gets ``If-None-Match`` and ``If-Modified-Since``, with what the server said at the last visit that the
    spider read; a 304 then saves the body. Requests with conditions of their own are left as they are, and all of them
    are where Scrapy's HTTP cache is on, which asks itself.
    """

    def process_request(self, request: Request) -> None:
        visits = None if self.host is None else self.host.features.able("revisit")
        if visits is not None:
            visits.ask(request)


class PublicOnlyMiddleware(_FocusMiddleware):
    """Refuses requests to addresses that are not public, with ``FOCUS_PUBLIC_ONLY``; without, it is not there.

    Links and redirects of strangers could else make this machine ask itself, its router or its neighbours. The
    addresses that the name has now are looked at, whoever made the request: links, redirects, robots.txt, HEADs. Where
    a start request has none but addresses on this machine, on the link or in private networks, all others may have such
    addresses too: of the same of these three kinds.

    It stands within all middlewares but the one that counts, and behind the cache of names from which Twisted's
    handlers connect. With other handlers a name may change in between; so the address that answered is looked at, too,
    and what came from inside is dropped. Where a proxy looks names up, only addresses that stand in the URL are seen.
    """

    guards_browsers = True  # which look names up by themselves: what a name leads to may change in between

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if not Config.public_only.of(crawler.settings):
            raise NotConfigured
        self._seen: set[str] = set()  # hosts of start requests whose networks are known
        self._allowed: set[Network] = {"public"}
        self._refused = 0

    def network(self, address: Address) -> Network:
        """Return which network an address belongs to; a subclass may know other networks to be its own."""
        return network_of(address)

    def seeds(self) -> set[str]:
        """Return the hosts of the start requests so far, or those that a spider without our scheduler names."""
        return getattr(self.crawler.spider, "seed_hosts", set()) if self.host is None else self.host.seeds

    async def process_request(self, request: Request) -> None:
        url = urlparse_cached(request)
        if url.scheme not in _NETWORKED or not url.hostname:
            return
        proxied = bool(request.meta.get("proxy"))
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
        if response.ip_address is not None and not request.meta.get("proxy"):
            inside = {self.network(response.ip_address)} - self._allowed
            if inside:
                self._refuse(request, inside)
        return response

    async def _networks(self, host: str, *, proxied: bool) -> set[Network]:
        own = literal(host)
        if own is not None:
            return {self.network(own)}
        return set() if proxied else {self.network(address) for address in await addresses_of(host)}

    def _trust(self, seed: str, networks: set[Network]) -> None:
        """Allow what a start request has, as its name was when it came first, and not as it is changed to later."""
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
            logger.info("Not asked for: %s", where, extra={"spider": self.crawler.spider})
        raise InsideAddress(where)


class CompressionMiddleware(HttpCompressionMiddleware):
    """Inflates bodies as Scrapy does, up to a limit that follows from their size (``FOCUS_MAX_INFLATION``).

    Scrapy stops at ``DOWNLOAD_MAXSIZE``. A body that grows to more than ten megabytes and to more than so many times
    its size is given up as well. Of a robots.txt only what is read of it is inflated, and what cannot be decoded is
    left to :class:`RobotsMiddleware`. Any other body that is not encoded as its ``Content-Encoding`` says is left as it
    came. One whose encoding has no end gets the flag ``cut``, unless it is a page.
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
            pass  # and be gone: its traceback holds what was inflated so far
        except Exception:  # each library raises its own
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
        """Return what was decoded, marked where it was cut; or what came, where that is a text after all."""
        if isinstance(decoded, HtmlResponse) or is_whole(response.body, encoding):
            return decoded
        if is_text(response.body):  # which some encodings take for the beginning of something
            return self._as_it_came(response)
        if isinstance(decoded, Response):
            return decoded.replace(flags=[*decoded.flags, CUT])
        return decoded

    def _as_it_came(self, response: Response, *, is_said: bool = True) -> Response:
        """Return a response without its ``Content-Encoding``, which is wrong; ``is_said``: and count it."""
        if is_said and self.stats is not None:
            self.stats.inc_value("focus/encoding/wrong")
        headers = response.headers.copy()
        del headers["Content-Encoding"]
        kind = responsetypes.from_args(headers=headers, url=response.url, body=response.body)
        unread = {"encoding": None} if issubclass(kind, TextResponse) else {}  # to be found again
        return response.replace(cls=kind, headers=headers, **unread)

    def _limit(self, request: Request, size: int) -> int:
        """Return to how many bytes a body of so many may inflate; 0: any."""
        if _asks_for_robots(request):
            return ROBOTS_BYTES
        largest = int(request.meta.get("download_maxsize", self._max_size)) or math.inf
        by_ratio = max(_ANY_RATIO, self._ratio * size) if self._ratio else math.inf
        limit = min(largest, by_ratio)
        return 0 if limit == math.inf else int(limit)


@contextmanager
def _largest(request: Request, limit: int) -> Iterator[None]:
    """Let Scrapy decode so many bytes at most for a request, whatever was set for it."""
    asked = request.meta.get("download_maxsize")
    request.meta["download_maxsize"] = limit
    try:
        yield
    finally:
        del request.meta["download_maxsize"]
        if asked is not None:
            request.meta["download_maxsize"] = asked


class RobotsMiddleware(RobotsTxtMiddleware):
    """Obeys robots.txt as Scrapy does, and reads 500 KiB of it at most: whatever lines can be read (RFC 9309, 2.3.1.5).

    Two more things can be asked for in ``FOCUS_OBEY``. ``robots-errors``: a host whose robots.txt cannot be read is
    closed for now (RFC 9309, 2.3.1.4): its server fails, hangs or answers 429, or what it sends cannot be decoded. The
    host is put off, its requests wait, and the file is asked for again, in place of Scrapy's retries: after
    ``first_wait`` seconds, or later where ``Retry-After`` says so, then after twice as many. If that is in vain, too,
    requests to it are ignored; the file is still asked for every ``FOCUS_LONGEST_WAIT`` seconds.
    ``crawl-delay``: so many seconds are left between requests, at most ``FOCUS_LONGEST_WAIT``.
    """

    first_wait = 30.0

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        wishes = Config.obey.of(crawler.settings)
        self._closes = "robots-errors" in wishes
        self._waits = "retry-after" in wishes
        self._longest = Config.longest_wait.of(crawler.settings)
        self._rounds: dict[str, int] = {}  # in vain, for each closed host with its port
        self._again: dict[str, float] = {}  # when to ask it again, in seconds of time.monotonic
        self._read: WeakKeyDictionary[Request, int] = WeakKeyDictionary()  # bytes so far
        crawler.signals.connect(self.on_bytes, signals.bytes_received)
        if "crawl-delay" in wishes:
            crawler.signals.connect(self.on_parsed, signals.robots_parsed)

    async def process_request(self, request: Request) -> Request | None:  # type: ignore[override]
        if _asks_for_robots(request):
            request.meta["download_maxsize"] = 0  # it is cut when as much as is read of it has come
            if self._closes:
                request.meta["dont_retry"] = True  # at once: it is asked for again after a wait
        if request.meta.get("dont_obey_robotstxt") or request.url.startswith(("data:", "file:")):
            return None
        netloc = urlparse_cached(request).netloc
        if self._again.get(netloc, math.inf) <= monotonic():
            del self._again[netloc]
            self._parsers.pop(netloc, None)
        parser = await self.robot_parser(request)
        if parser is None and isinstance(known := self._parsers.get(netloc), RobotParser):
            parser = known  # Scrapy 2.19 gives it to the first of those who wait for it, and None to the others
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
        # what becomes of the page itself, too: that no connection can be made, or that its URL cannot be sent
        same = isinstance(exc, (IgnoreRequest, ValueError)) or failure_kind(exc) in ("unknown_host", "refused", "tls")
        if self._closes and not same:
            self._close(netloc, f"its robots.txt could not be read: {in_words(exc)}")
        else:
            super()._robots_error(exc, netloc)

    def _close(self, netloc: str, why: str, at_least: float = 0.0) -> None:
        """Let nothing through to a host for now, at least for some seconds."""
        self._stats.inc_value("robotstxt/unreachable")
        rounds = self._rounds[netloc] = self._rounds.get(netloc, 0) + 1
        wait = self.first_wait * 2 ** (rounds - 1) if rounds < _ROBOTS_ROUNDS else self._longest
        self._again[netloc] = monotonic() + min(max(wait, at_least), self._longest)
        waiting: Deferred[RobotParser | None] = self._parsers[netloc]  # type: ignore[assignment]
        self._parsers[netloc] = closed = _Closed(why)
        waiting.callback(closed)

    def _postpone(self, request: Request, netloc: str, why: str) -> Request:
        """Return a request that is to wait with the scheduler until robots.txt is asked for again.

        Raises
        ------
        IgnoreRequest
            If that was done often enough, or the scheduler is not ours, or it is not a pick that asks.
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
    """What is known of a robots.txt that cannot be read: everything is forbidden, and why."""

    def __init__(self, why: str) -> None:
        self.why = why

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> Self:
        return cls("")

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        return False


def replace_stock(settings: BaseSettings) -> None:
    """Put our middlewares for robots.txt and compression in the place of Scrapy's, unless the settings name those."""
    chosen = {load_object(component) for component in settings.getdict("DOWNLOADER_MIDDLEWARES")}
    for stock, ours, order in (
        (RobotsTxtMiddleware, RobotsMiddleware, 100),
        (HttpCompressionMiddleware, CompressionMiddleware, 590),
    ):
        if stock not in chosen:
            settings.set_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", stock, None)
            settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", ours, order)


def _asks_for_robots(request: Request) -> bool:
    """Whether Scrapy made a request to read a robots.txt."""
    return (
        request.callback is NO_CALLBACK
        and "dont_obey_robotstxt" in request.meta
        and urlparse_cached(request).path == "/robots.txt"
    )


def _begin(response: Response) -> Response:
    """Return a compressed robots.txt with what is read of it: nothing, in an encoding that is rarer than Brotli."""
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
    """Return a response with a body in no encoding."""
    plain = response.replace(body=body)
    del plain.headers["Content-Encoding"]
    return plain


def _take_off(request: Request) -> None:
    """Take off a request what has a browser answer it, where nobody sent it there after all."""
    if request.meta.pop(RENDERED, False):
        del request.meta["playwright"]


def _may_be_page(request: Request) -> bool:
    """Whether a request may be for a page, as far as it tells: its URL does not end like that of a file."""
    kind, packed = mimetypes.guess_type(urlparse_cached(request).path)
    return packed is None and kind in (None, *_PAGES)


def _again(request: Request) -> Request:
    """Return a request that goes back to the scheduler, to wait there as the same pick."""
    again = request.copy()
    again.dont_filter = True
    return again


def _size(response: Response) -> int:
    return len(response.body) + len(response.headers.to_string())


_NEEDED: tuple[type[_FocusMiddleware], ...] = (
    ProbeMiddleware,
    PublicOnlyMiddleware,
    RevisitMiddleware,
    MeterMiddleware,
)


def install(crawler: Crawler, *, comes_back: bool) -> None:
    """Add the middlewares that a policy cannot do without to a crawl that has only our scheduler.

    One that the user turned off (``None`` in ``DOWNLOADER_MIDDLEWARES``) stays off. ``comes_back`` says whether pages
    are fetched again.

    Raises
    ------
    NotConfigured
        If this version of Scrapy cannot be added to.
    """
    manager = crawler.engine.downloader.middleware
    chosen = crawler.settings.getdict("DOWNLOADER_MIDDLEWARES")
    off = {load_object(component) for component, order in chosen.items() if order is None}
    for cls in _NEEDED:
        if cls not in off and not any(isinstance(middleware, cls) for middleware in manager.middlewares):
            if not _is_needed(cls, crawler.settings, comes_back=comes_back):
                continue
            middleware = cls.from_crawler(crawler)
            add = getattr(manager, "_add_middleware", None)
            if add is None:
                raise NotConfigured(
                    'this version of Scrapy takes no middleware at run time: set ADDONS = {"scrapy_focus.Addon": 500}'
                )
            add(middleware)
            manager.middlewares = (*manager.middlewares, middleware)


def _is_needed(cls: type, settings: BaseSettings, *, comes_back: bool) -> bool:
    if cls is PublicOnlyMiddleware:
        return Config.public_only.of(settings)
    if cls is RevisitMiddleware:
        return comes_back
    return True
