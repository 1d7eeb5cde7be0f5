"""What the crawls of these spiders do otherwise than Scrapy."""

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
from scrapy_focus.web.listings import beginning, listing_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

_TAGS = 50_000  # of a page that are read
_BYTES = 1_000_000
_RANGE = re.compile(rb"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")  # from, to, and how many there are


class LongPagesAreCut:
    """Cuts a page behind so many tags or bytes that it can be parsed in little time and memory; counts ``page/cut``.

    Ten kilobytes of gzip can be a page of three million elements, which takes a gigabyte. It stands behind what
    decompresses, so that whoever asks for the page is given the same part of it.
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
        return response.replace(body=response.body[:end], encoding=None)  # to be found again


class VeryLongPagesAreCut(LongPagesAreCut):
    """The same for crawls that want all links of a page: it may have a hundred thousand."""

    tags = 300_000
    size = 10_000_000


class LongDataPagesAreCut(LongPagesAreCut):
    """The same for crawls that want what scripts of a page say: these often stand at its end."""

    tags = 100_000
    size = 4_000_000


def end_of(body: bytes, *, tags: int = _TAGS, size: int = _BYTES) -> int:
    """Return up to where a page is read: all of it, or what stands before one tag too many or one byte too many."""
    end = min(len(body), size)
    if body.count(b"<", 0, end) <= tags:
        return end
    return next(islice(re.finditer(b"<", body), tags, None)).start()


class CutBodies:
    """Asks again for a body that was cut on its way, and marks a file that stays so with the flag ``cut``.

    It needs ``DOWNLOAD_FAIL_ON_DATALOSS = False``, and takes the turn of Scrapy's own retries. What is read for its
    links fails as without that setting: the last link may be cut, too. A part of a file that
    nobody asked for (206) counts as cut, too, as does a body whose compression has no end. None keeps its ``ETag`` and
    ``Last-Modified``, which are those of the whole: so the next crawl asks for it again.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Request | Response:
        is_lost = "dataloss" in response.flags
        if not (is_lost or CUT in response.flags or _is_part(request, response)):
            return response
        spider = self.crawler.spider
        if is_lost and spider is not None and self._may_retry(request):
            again = get_retry_request(request, spider=spider, reason="cut")
            if again is not None:
                return again
        if is_lost and (isinstance(response, HtmlResponse) or request.callback is NO_CALLBACK or _is_listing(response)):
            raise ResponseDataLossError
        headers = response.headers.copy()
        for name in ("ETag", "Last-Modified"):
            headers.pop(name, None)
        return response.replace(headers=headers, flags=list({*response.flags, CUT}))

    def _may_retry(self, request: Request) -> bool:
        """Whether there is a retry left; Scrapy would log an error for the last one."""
        settings = self.crawler.settings
        most = request.meta.get("max_retry_times", settings.getint("RETRY_TIMES"))
        is_on = settings.getbool("RETRY_ENABLED") and not request.meta.get("dont_retry")
        return is_on and request.meta.get("retry_times", 0) < most


def _is_listing(response: Response) -> bool:
    """Whether a response is a sitemap, a feed or a catalogue."""
    return bool(listing_of(beginning(response.body)))


def _is_part(request: Request, response: Response) -> bool:
    """Whether a response is a part of a file that nobody asked for."""
    if response.status != HTTPStatus.PARTIAL_CONTENT or b"Range" in request.headers:
        return False
    said = _RANGE.fullmatch((response.headers.get("Content-Range") or b"").strip())
    return said is None or int(said[1]) != 0 or int(said[2]) + 1 != int(said[3])


class RedirectsAreLinks:
    """Hands redirects to another domain to the spider, which gives them as links; it stands before Scrapy's own.

    Followed at once, the page would be fetched even if its domain had its share of pages, and count for the wrong one.
    Redirects within a domain, and those of ``robots.txt``, are left to Scrapy.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        target = redirect_of(response)
        if target and request.callback is not NO_CALLBACK and _domain(target) != _domain(request.url):
            request.meta["handle_httpstatus_list"] = [response.status]
        return response


def redirect_of(response: Response) -> str:
    """Return where a response redirects to, absolute; ``""`` if it does not, or to what is no URL."""
    location = response.headers.get("Location") if 300 <= response.status < 400 else None
    try:
        return "" if location is None else urljoin(response.url, safe_url_string(location))
    except ValueError:
        return ""


def refresh_of(response: HtmlResponse) -> str:
    """Return where the ``<meta http-equiv="refresh">`` of a page leads; ``""`` if it has none, or to what is no URL."""
    try:
        return get_meta_refresh(response)[1] or ""
    except ValueError:
        return ""


def _domain(url: str) -> str:
    try:
        return domain_of(urlsplit(url).hostname or "")
    except ValueError:
        return ""
