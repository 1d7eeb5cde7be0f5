"""Components of the projects that are crawled."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse


class Fingerprinter:
    """Leaves out the query, and takes in a header where the path is ``/head``."""

    def fingerprint(self, request):
        header = request.headers.get("X-A") or b""
        return request.url.split("?")[0].encode() + (header if request.url.endswith("/head") else b"")


class MetaFingerprinter:
    """Takes in a value of meta."""

    def fingerprint(self, request):
        return request.url.encode() + str(request.meta.get("fp")).encode()


class PathDupeFilter(BaseDupeFilter):
    """Knows paths, without queries."""

    def __init__(self):
        self.seen = set()

    @classmethod
    def from_crawler(cls, crawler):
        return cls()

    def request_seen(self, request):
        path = request.url.split("?")[0]
        if path in self.seen:
            return True
        self.seen.add(path)
        return False

    def log(self, request, spider):
        spider.crawler.stats.inc_value("mine/filtered")


class CountingRFP(RFPDupeFilter):
    """Lets no more than four requests pass."""

    def request_seen(self, request):
        seen = super().request_seen(request)
        if len(self.fingerprints) > 3:
            return True
        return seen


class MyRequest(Request):
    """A request with one more attribute."""

    attributes = (*Request.attributes, "extra")

    def __init__(self, *args, extra=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.extra = extra


class SplashLike(Request):
    """What ``ReplaceOnce`` makes of a request."""


class ReplaceOnce:
    """Replaces each request by one of another class and URL."""

    def process_request(self, request, spider=None):
        if request.meta.get("replaced"):
            return None
        return request.replace(
            cls=SplashLike,
            meta={**request.meta, "replaced": True},
            priority=request.priority + 100,
            url=request.url + ("&" if "?" in request.url else "?") + "via=splash",
        )


class BanRetry:
    """Sends a request again as long as the site is busy."""

    def process_response(self, request, response, spider=None):
        if response.status == 503:
            again = request.copy()
            again.meta["tries"] = again.meta.get("tries", 0) + 1
            again.dont_filter = True
            return again
        return response


class Cache:
    """Answers every other page itself."""

    def process_request(self, request, spider=None):
        if int(request.url.rsplit("/", 1)[-1]) % 2:
            return HtmlResponse(request.url, body=b"<a href='/n/0'>x</a>", request=request)
        return None


class IgnoreSome:
    """Drops every fifth page."""

    def process_request(self, request, spider=None):
        if int(request.url.rsplit("/", 1)[-1]) % 5 == 1:
            raise IgnoreRequest("x")


class CountingMiddleware:
    """Counts what goes by."""

    seen = {"start": 0, "in": 0, "out": 0}

    async def process_start(self, start):
        async for each in start:
            self.seen["start"] += 1
            yield each

    def process_spider_input(self, response):
        self.seen["in"] += 1

    async def process_spider_output_async(self, response, result):
        async for each in result:
            self.seen["out"] += 1
            yield each

    def process_spider_output(self, response, result):
        for each in result:
            self.seen["out"] += 1
            yield each


class MyScheduler(Scheduler):
    """The scheduler of a project."""

    asked = 0

    def next_request(self):
        type(self).asked += 1
        return super().next_request()


@dataclass
class Thing:
    """An item."""

    a: str
    b: int


class IntSub(int):
    """A number that is more than a number."""


class StrSub(str):
    """A text that is more than a text."""
