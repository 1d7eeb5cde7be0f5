"""Downloader middlewares of the spiders in this package."""

from __future__ import annotations

import re
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import ResponseDataLossError
from scrapy.http import HtmlResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.response import get_meta_refresh
from w3lib.url import safe_url_string

from scrapy_focus.engine.marks import CUT
from scrapy_focus.web.domains import domain_of
from scrapy_focus.web.linkurls import without_credentials
from scrapy_focus.web.listings import beginning, listing_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


_TAGS = 50_000  # tags of a page that are read
_BYTES = 1_000_000
_RANGE = re.compile(rb"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")  # from, to, total


class LongPagesAreCut:
    """Truncates a page that has too many tags or bytes to be parsed in little time and memory; counts ``page/cut``.

    Ten kilobytes of gzip can be a page of three million elements, which takes a gigabyte. The middleware runs after
    decompression, so all components receive the same part of the page.
    """

    tags = _TAGS
    size = _BYTES

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        if not isinstance(response, HtmlResponse):
            return response
        end = end_of(response.body, tags=self.tags, size=self.size)
        if end == len(response.body):
            return response
        if self.crawler.stats is not None:
            self.crawler.stats.inc_value("page/cut")
        return response.replace(body=response.body[:end], encoding=None)  # None: detect it again


class VeryLongPagesAreCut(LongPagesAreCut):
    """The same for crawls that need all links of a page, up to a hundred thousand."""

    tags = 300_000
    size = 10_000_000


class LongDataPagesAreCut(LongPagesAreCut):
    """The same for crawls that read the scripts of a page, which are often at its end."""

    tags = 100_000
    size = 4_000_000


def end_of(body: bytes, *, tags: int = _TAGS, size: int = _BYTES) -> int:
    """Return how many bytes of a page are read: all, or those before the first tag or byte beyond a limit."""
    end = min(len(body), size)
    if body.count(b"<", 0, end) <= tags:
        return end
    return next(islice(re.finditer(b"<", body), tags, None)).start()


class CutBodies:
    """Retries a response whose body was cut in transit, and flags a file that remains incomplete as ``cut``.

    It requires ``DOWNLOAD_FAIL_ON_DATALOSS = False``, and uses Scrapy's retries. Pages and listings, which are read
    for their links, fail as without that setting: the last link may be cut, too. A part of a file that was not
    requested (206) also counts as cut, as does a body with incomplete compression. Such a file loses its ``ETag`` and
    ``Last-Modified``, which belong to the whole file, so the next crawl requests it again.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Request | Response:
        if "dataloss" in response.flags:
            again = self._again(request)
            if again is not None:
                return again
            if isinstance(response, HtmlResponse) or request.callback is NO_CALLBACK or _is_listing(response):
                raise ResponseDataLossError
        elif CUT not in response.flags and not _is_part(request, response):
            return response
        headers = response.headers.copy()
        for name in ("ETag", "Last-Modified"):
            headers.pop(name, None)
        return response.replace(headers=headers, flags=list({*response.flags, CUT}))

    def _again(self, request: Request) -> Request | None:
        spider = self.crawler.spider
        if spider is None or not self._may_retry(request):
            return None
        return get_retry_request(request, spider=spider, reason="cut")

    def _may_retry(self, request: Request) -> bool:
        """Whether a retry is left; Scrapy would log an error for the last one."""
        settings = self.crawler.settings
        most = request.meta.get("max_retry_times", settings.getint("RETRY_TIMES"))
        is_on = settings.getbool("RETRY_ENABLED") and not request.meta.get("dont_retry")
        return is_on and request.meta.get("retry_times", 0) < most


def _is_listing(response: Response) -> bool:
    """Whether a response is a sitemap, a feed or a catalogue."""
    return bool(listing_of(beginning(response.body)))


def _is_part(request: Request, response: Response) -> bool:
    """Whether a response is a part of a file, and no part was requested."""
    if response.status != HTTPStatus.PARTIAL_CONTENT or b"Range" in request.headers:
        return False
    said = _RANGE.fullmatch((response.headers.get("Content-Range") or b"").strip())
    return said is None or int(said[1]) != 0 or int(said[2]) + 1 != int(said[3])


class RedirectsAreLinks:
    """Passes redirects to another domain to the spider, which yields them as links; it runs before Scrapy's own.

    If Scrapy followed them at once, the page would be fetched even if its domain had reached its limit, and count for
    the wrong domain. Scrapy still follows redirects within a domain, and those of ``robots.txt``.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        target = redirect_of(response)
        if target and request.callback is not NO_CALLBACK and _domain(target) != _domain(request.url):
            request.meta["handle_httpstatus_list"] = [response.status]
        return response


def redirect_of(response: Response) -> str:
    """Return the absolute target of a redirect; ``""`` if there is none, or if it is not a URL."""
    location = response.headers.get("Location") if 300 <= response.status < 400 else None
    try:
        if location is None:
            return ""
        return without_credentials(urljoin(response.url, safe_url_string(location)))
    except ValueError:
        return ""


def refresh_of(response: HtmlResponse) -> str:
    """Return the target of ``<meta http-equiv="refresh">``, absolute; ``""`` if there is none, or it is not a URL."""
    try:
        return without_credentials(get_meta_refresh(response)[1] or "")
    except ValueError:
        return ""


def _domain(url: str) -> str:
    try:
        return domain_of(urlsplit(url).hostname or "")
    except ValueError:
        return ""
