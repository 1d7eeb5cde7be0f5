"""Components of the projects that are crawled."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse


class Fingerprinter:
    def fingerprint(self, request):
        x = request.headers.get("X-A") or b""
        return (request.url.split("?")[0]).encode() + (x if request.url.endswith("/head") else b"")


class MetaFingerprinter:
    def fingerprint(self, request):
        return request.url.encode() + str(request.meta.get("fp")).encode()


class PathDupeFilter(BaseDupeFilter):
    def __init__(self):
        self.seen = set()

    @classmethod
    def from_crawler(cls, crawler):
        return cls()

    def request_seen(self, request):
        p = request.url.split("?")[0]
        if p in self.seen:
            return True
        self.seen.add(p)
        return False

    def log(self, request, spider):
        spider.crawler.stats.inc_value("mine/filtered")


class CountingRFP(RFPDupeFilter):
    def request_seen(self, request):
        seen = super().request_seen(request)
        if len(self.fingerprints) > 3:
            return True
        return seen


class MyRequest(Request):
    attributes = (*Request.attributes, "extra")

    def __init__(self, *args, extra=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.extra = extra


class SplashLike(Request):
    pass


class ReplaceOnce:
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
    def process_response(self, request, response, spider=None):
        if response.status == 503:
            r = request.copy()
            r.meta["tries"] = r.meta.get("tries", 0) + 1
            r.dont_filter = True
            return r
        return response


class Cache:
    def process_request(self, request, spider=None):
        if int(request.url.rsplit("/", 1)[-1]) % 2:
            return HtmlResponse(request.url, body=b"<a href='/n/0'>x</a>", request=request)
        return None


class IgnoreSome:
    def process_request(self, request, spider=None):
        if int(request.url.rsplit("/", 1)[-1]) % 5 == 1:
            raise IgnoreRequest("x")


class Mw:
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
    asked = 0

    def next_request(self):
        type(self).asked += 1
        return super().next_request()


@dataclass
class Thing:
    a: str
    b: int


class IntSub(int):
    pass


class StrSub(str):
    pass
