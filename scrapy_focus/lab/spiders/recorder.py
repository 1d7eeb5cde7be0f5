"""The spider that records a site: it requests every linked URL, and records the answers.

The requests still to be made follow from the recording alone. So nothing else is stored, and a killed crawl resumes
where it was.
"""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import scrapy
from scrapy import signals
from scrapy.exceptions import CloseSpider, IgnoreRequest, StopDownload
from scrapy.utils.asyncio import create_looping_call

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.core.printable import counted, inflected, printable_logger
from scrapy_focus.engine.terminal import REFRESH, Footer
from scrapy_focus.lab.recordings.writer import Answer
from scrapy_focus.lab.spiders.rendering import RENDER, failed_rendering, rendering_of
from scrapy_focus.web.access import Access
from scrapy_focus.web.mime import BLOCKED_MIMES, matches, parse_mime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response
    from twisted.python.failure import Failure

    from scrapy_focus.lab.recordings.writer import Rendering, SiteWriter

logger = printable_logger(__name__)

RECEIVED = "focus_received"  # meta key: bytes of the body, as they came
_META = {"dont_redirect": True, "handle_httpstatus_all": True, "referrer_policy": "no-referrer"}
_SMALL = 64 * 1024  # bytes: stopping a smaller body saves nothing, and costs the connection
_SHOWN = "#shown"  # behind the URL of a page that a browser is asked for
_DOUBTFUL = 16  # failures in a row after which the site itself is checked


class RecordSpider(scrapy.Spider):
    """Requests what is missing in a recording until nothing is, in the order in which the URLs were found.

    Redirects and failures are answers like any other: the writer says where they lead. But a URL without a response
    is recorded only when another one responds: a network failure says nothing about a site. Bodies of sounds, images
    and films, and any that are larger than ``DOWNLOAD_MAXSIZE``, are not downloaded if the server states their size.

    If the writer notes which pages have scripts, a browser shows these when nothing else is missing. Their new links
    are requested as well.

    Parameters
    ----------
    writer
        Receives the answers. It is not closed.
    limit
        URLs to record at most.
    files
        Download files; if not, only possible pages are downloaded if the server states the size of the rest.
    renderings
        Maximum pages to show in a browser; no limit by default.
    credentials
        What to send in ``Authorization``, by origin, see
        :func:`~scrapy_focus.finders.kit.arguments.credentials.take_credentials`.

    Attributes
    ----------
    recorded, received
        URLs recorded and bytes of bodies received since the start.
    rendered
        Pages that a browser showed since the start.
    error
        Why the recording cannot be written any more.
    silence
        Why the site gives no response any more.
    """

    name = "focus-record"

    def __init__(
        self, writer: SiteWriter, *, limit: int | None = None, files: bool = True, renderings: int | None = None,
        credentials: Mapping[str, bytes] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.writer = writer
        self.seed_hosts = {urlsplit(root).hostname or "" for root in writer.roots}
        self.limit = limit
        self.files = files
        self.renderings = renderings
        sent = {origin: {"Authorization": value} for origin, value in (credentials or {}).items()}
        self.access = Access(headers=sent)  # to some hosts alone
        self.recorded = 0
        self.rendered = 0
        self.received = 0
        self.error: RecordingError | None = None
        self.silence = ""
        self.progress: Progress | None = None  # held here, as signals hold nobody
        self.ahead = 1  # requests that are given to Scrapy at once
        self.longest = 0  # characters of a URL; 0: no limit
        self.largest = 0  # bytes of a body; 0: no limit
        self._asked = 0
        self._alive = ""  # the URL that responded last
        self._doubted: dict[str, Answer | Rendering] = {}  # failures since then, by URL
        self._flying: set[str] = set()
        self._waiting: Iterator[str] = iter(())
        self._to_render: Iterator[str] = iter(())
        self._shown = 0  # pages passed to a browser

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.ahead = 2 * (crawler.settings.getint("CONCURRENT_REQUESTS") or 16)
        spider.longest = crawler.settings.getint("URLLENGTH_LIMIT")
        spider.largest = crawler.settings.getint("DOWNLOAD_MAXSIZE")
        crawler.signals.connect(spider.headers_received, signals.headers_received)
        crawler.signals.connect(spider.response_downloaded, signals.response_downloaded)
        spider.progress = Progress(spider, crawler)
        return spider

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for request in self.requests():
            yield request

    def requests(self) -> Iterator[scrapy.Request]:
        """Yield a request for each URL that may be asked for now."""
        while self._has_room():
            if (url := self._next()) is not None:
                request = self._request(url)
                if request is not None:
                    yield request
            elif (url := self._next_to_render()) is not None:
                yield self._rendering_request(url)
            else:
                break
        if self._doubted and not self._flying and self._goes_on:
            yield self._probe()

    @property
    def _goes_on(self) -> bool:
        return self.error is None and not self.silence

    def _has_room(self) -> bool:
        is_full = len(self._flying) >= self.ahead or len(self._doubted) >= _DOUBTFUL
        return self._goes_on and not is_full and self._asked != self.limit

    def _request(self, url: str) -> scrapy.Request | None:
        """Return the request for a URL; one that cannot be requested is recorded at once."""
        self._asked += 1
        if 0 < self.longest < len(url):  # Scrapy would drop the link, which keeps a crawl out of endless sites
            self.record(Answer(url=url, error="ignored"))
            return None
        try:
            request = scrapy.Request(url, self.parse, errback=self.failed, cb_kwargs={"url": url}, meta=_META)
        except ValueError as error:
            self.record(Answer(url=url, error=f"failure: {type(error).__name__}"))
            return None
        self._flying.add(url)
        return request

    def _rendering_request(self, url: str) -> scrapy.Request:
        """Return the request for a page that a browser is to show."""
        self._asked += 1
        self._shown += 1
        self._flying.add(url + _SHOWN)
        meta = {**_META, RENDER: True, "dont_cache": True}  # a cache has the plain page
        return scrapy.Request(url, self.show, errback=self.not_shown, cb_kwargs={"url": url}, meta=meta)

    def _probe(self) -> scrapy.Request:
        """Return a request that shows whether the site can be reached at all."""
        self._flying.add("")  # one at a time
        url = self._alive or next(iter(self._doubted)).removesuffix(_SHOWN)
        again = {**_META, "dont_cache": True}
        return scrapy.Request(url, self.resume, errback=self.give_up, meta=again, dont_filter=True)

    def resume(self, response: Response) -> Iterator[scrapy.Request]:
        """Record the failures, because the site can be reached, and continue."""
        self._flying.discard("")
        self._believe()
        yield from self.requests()

    def give_up(self, failure: Failure) -> None:
        """Leave failed URLs unrecorded, because nothing else gets a response either.

        Raises
        ------
        CloseSpider
            Always.
        """
        self.silence = type(failure.value).__name__
        raise CloseSpider("no_response")

    def parse(self, response: Response, url: str) -> Iterator[scrapy.Request]:
        """Record a response, and continue."""
        meta = response.meta
        self._flying.discard(url)
        if "cached" not in response.flags:
            self._alive = url
            self._believe()
        self.record(
            Answer(
                url=url, status=response.status, headers=headers_of(response), body=response.body,
                size=meta.get(RECEIVED), seconds=meta.get("download_latency", 0.0),
            )
        )  # fmt: skip
        yield from self.requests()

    def failed(self, failure: Failure) -> Iterator[scrapy.Request]:
        """Record why there is no response, and continue."""
        request: scrapy.Request = failure.request  # type: ignore[attr-defined]
        url = request.cb_kwargs["url"]
        self._flying.discard(url)
        forbidden = isinstance(failure.value, IgnoreRequest) and RECEIVED not in request.meta
        answer = Answer(url=url, error="ignored" if forbidden else f"failure: {type(failure.value).__name__}")
        if forbidden or RECEIVED in request.meta:
            self.record(answer)
        else:
            self._doubted[url] = answer
        yield from self.requests()

    def show(self, response: Response, url: str) -> Iterator[scrapy.Request]:
        """Record how a browser showed a page, and continue."""
        self._flying.discard(url + _SHOWN)
        self._alive = url
        self._believe()
        self.record(rendering_of(response, url, headers_of(response)))
        yield from self.requests()

    def not_shown(self, failure: Failure) -> Iterator[scrapy.Request]:
        """Record why a browser did not show a page, and continue."""
        request: scrapy.Request = failure.request  # type: ignore[attr-defined]
        url = request.cb_kwargs["url"]
        self._flying.discard(url + _SHOWN)
        forbidden = isinstance(failure.value, IgnoreRequest)
        why = "ignored" if forbidden else f"failure: {type(failure.value).__name__}"
        rendering = failed_rendering(request, url, why)
        if forbidden:
            self.record(rendering)
        else:
            self._doubted[url + _SHOWN] = rendering
        yield from self.requests()

    def record(self, answer: Answer | Rendering) -> None:
        """Write an answer, or how a browser showed a page.

        Raises
        ------
        CloseSpider
            If it cannot be written; :attr:`error` says why.
        """
        if self.error is not None:
            return
        try:
            self.writer.add(answer)
        except RecordingError as error:
            self.error = error
            raise CloseSpider("recording_error") from error
        if isinstance(answer, Answer):
            self.recorded += 1
        else:
            self.rendered += 1

    def headers_received(self, headers: Headers, request: scrapy.Request) -> None:
        """Stop a body that nobody needs; the handler of Scrapy's signal."""
        if request.callback == self.resume:
            raise StopDownload(fail=False)
        request.meta[RECEIVED] = 0  # so far
        size = _length(headers)
        if request.callback != self.parse or size is None:
            return
        mime = parse_mime((headers.get("Content-Type") or b"").decode("latin-1"))
        may_be_page = "html" in mime or not mime
        needed = may_be_page or (self.files and not matches(mime, BLOCKED_MIMES))
        if (size >= _SMALL and not needed) or 0 < self.largest < size:
            request.meta["dont_cache"] = True  # or the HTTP cache would replay an empty body
            raise StopDownload(fail=False)

    def response_downloaded(self, response: Response, request: scrapy.Request) -> None:
        """Note how many bytes came before any middleware unpacks them; the handler of Scrapy's signal."""
        self.received += len(response.body)
        request.meta[RECEIVED] = len(response.body)
        if "download_stopped" in response.flags:
            request.meta[RECEIVED] = _length(response.headers) or 0
            response.headers.pop("Content-Encoding", None)  # there is nothing to unpack

    def _believe(self) -> None:
        doubted, self._doubted = self._doubted, {}
        for answer in doubted.values():
            self.record(answer)

    def _next(self) -> str | None:
        url = next(self._waiting, None)
        if url is None:  # what was found since the last one is seen by a new search only
            self._waiting = (
                url
                for url in self.writer.missing()
                if url not in self._flying and url not in self._doubted and not self.writer.has(url)
            )
            url = next(self._waiting, None)
        return url

    def _next_to_render(self) -> str | None:
        if self.renderings is not None and self._shown >= self.renderings:
            return None
        url = next(self._to_render, None)
        if url is None:
            self._to_render = (
                url
                for url in self.writer.unrendered()
                if (at := url + _SHOWN) not in self._flying and at not in self._doubted
            )
            url = next(self._to_render, None)
        return url


class Progress:
    """Reports the progress of a recording: in the last line of a terminal, elsewhere every ``LOGSTATS_INTERVAL``
    seconds in the log.
    """

    def __init__(self, spider: RecordSpider, crawler: Crawler) -> None:
        self.spider = spider
        self._interval = crawler.settings.getfloat("LOGSTATS_INTERVAL")
        self._loop: Any = None
        self._footer: Footer | None = None
        self._missing = 0
        self._count_at = 0.0
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signals.spider_closed)

    def spider_opened(self) -> None:
        """Start reporting."""
        if sys.stderr.isatty():
            self._footer = Footer()
            self._footer.start()
            self._interval = REFRESH
        if self._interval > 0:
            self._loop = create_looping_call(self._tick)
            self._loop.start(self._interval, now=False)

    def spider_closed(self) -> None:
        """Stop."""
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        if self._footer is not None:
            self._footer.stop()

    def __str__(self) -> str:
        spider, now = self.spider, monotonic()
        if now >= self._count_at:  # counting reads the whole table, and may take a twentieth of the time
            self._missing = spider.writer.completeness().missing
            self._count_at = monotonic() + 20 * (monotonic() - now)
        rendered = f", {counted(spider.rendered, 'page')} rendered" if spider.rendered else ""
        received = f"{spider.received / 1e6:,.1f} MB"
        are = inflected(self._missing, "is", "are")
        return f"{counted(spider.recorded, 'URL')} recorded{rendered}, {received}, {self._missing:,} more {are} linked"

    def _tick(self) -> None:
        from rich.text import Text

        if self._footer is None:
            logger.info("%s", self, extra={"spider": self.spider})
        else:
            self._footer.show(Text(str(self)))


def headers_of(response: Response) -> dict[str, str]:
    """Return the headers of a response as text; those that came several times are joined by commas."""
    headers = {}
    for raw, values in response.headers.items():
        name = raw.decode("latin-1")
        if name == "Location":  # read as Scrapy does, which takes the last one, as of the next
            headers[name] = values[-1].decode("utf-8", "percentencode")
        else:
            headers[name] = ", ".join(_decode(value) for value in values[-1 if name == "Content-Type" else 0 :])
    return headers


def _decode(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _length(headers: Headers) -> int | None:
    value = headers.get("Content-Length") or b""
    return int(value) if value.isdigit() else None
