"""Every pick has exactly one outcome, whatever becomes of its request: the table of section 5 of Scrapy's paths."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from crawls import BREADTH_FIRST, STOCK, Crawled, crawl, without_ours
from scrapy import Request, Spider, signals
from scrapy.exceptions import DropItem, IgnoreRequest, StopDownload
from scrapy.http import HtmlResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path
    from typing import Self

    from mocksite import MockSite
    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response
    from twisted.python.failure import Failure

pytestmark = pytest.mark.reactor


class Case(NamedTuple):
    path: str
    label: str
    items: int = 0
    meta: dict[str, Any] = {}
    callback: str = "parse"
    errback: str = ""


NO_RETRY = {"max_retry_times": 0}
CASES = {
    "had_before": Case("/ok?had", "ok", 1),
    "ok": Case("/ok?1", "ok", 1),
    "no_content": Case("/status?code=204", "ok", 1),
    "data_url": Case("data:text/html,<b>x", "ok", 1, {"allow_offsite": True}),
    "not_found": Case("/status?code=404", "http_error"),
    "server_error": Case("/status?code=500", "http_error"),
    "redirect": Case("/redirect?to=/ok?redirected", "ok", 1),
    "redirect_to_seen": Case("/redirect?to=/ok?had", "redirect_seen"),
    "redirect_loop": Case("/redirect?to=/redirect?to=/redirect?to=/redirect?to=/ok?far", "ignored"),
    "redirect_offsite": Case("/redirect?to=http://localhost:9/", "filtered"),
    "meta_refresh": Case("/refresh?to=/ok?refreshed", "ok", 1),
    "timeout": Case("/hang", "failure", meta={"download_timeout": 0.5}),
    "reset": Case("/reset", "failure"),
    "data_loss": Case("/truncated", "failure"),
    "too_large": Case("/file?type=text/html&size=9000", "too_large", meta={"download_maxsize": 1000}),
    "stopped_and_failed": Case("/file?type=odd/fail", "mime_stop"),
    "stopped_and_passed_on": Case("/file?type=odd/pass", "ok", 1),
    "bad_gzip": Case("/badgzip", "failure", meta={"dont_retry": True}),
    "robots": Case("/forbidden", "ignored"),
    "dns": Case("http://nonexistent.invalid/", "failure", meta=NO_RETRY),
    "scheme": Case("foo://x/y", "failure", meta={"allow_offsite": True}),
    "refused": Case("http://127.0.0.1:9/", "failure", meta=NO_RETRY),
    "middleware_ignores": Case("/ok?middleware_ignores", "ignored"),
    "middleware_fails": Case("/ok?middleware_fails", "failure"),
    "middleware_answers": Case("/ok?middleware_answers", "ok", 1),
    "middleware_sends_elsewhere": Case("/ok?middleware_sends_elsewhere", "ok", 1),
    "middleware_ignores_response": Case("/ok?middleware_ignores_response", "ignored"),
    "middleware_fails_on_response": Case("/ok?middleware_fails_on_response", "failure"),
    "spider_middleware_fails": Case("/ok?spider_middleware_fails", "spider_error"),
    "errback_of_http_error": Case("/status?code=404&e=1", "http_error", 1, errback="rescue"),
    "errback_raises": Case("/status?code=404&e=2", "spider_error", errback="rescue_badly"),
    "errback_of_reset": Case("/reset?1", "failure", 1, NO_RETRY, errback="rescue"),
    "callback_raises": Case("/ok?raises", "spider_error", callback="raises"),
    "callback_raises_late": Case("/ok?raises_late", "spider_error", 1, callback="raises_late"),
    "async_callback_raises": Case("/ok?raises_async", "spider_error", 1, callback="raises_async"),
    "callback_gives_nothing": Case("/ok?nothing", "ok", callback="nothing"),
    "item_dropped": Case("/ok?dropped", "ok", callback="dropped"),
    "item_fails": Case("/ok?fails", "ok", callback="fails"),
    "two_items": Case("/ok?two", "ok", 2, callback="two"),
    "duplicate_link": Case("/ok?duplicate", "ok", callback="duplicate"),
    "long_link": Case("/ok?long", "ok", callback="long_link"),
}
REJECTED = ("/ok?1", "http://localhost:9/ok")  # a duplicate, and an offsite one: never selected
REQUEUED = {
    "server_error": 1, "redirect": 1, "redirect_loop": 2, "meta_refresh": 1, "timeout": 1, "reset": 1, "data_loss": 1,
    "middleware_sends_elsewhere": 1,
}  # fmt: skip


class Odd(Spider):
    """Asks for one URL per case."""

    name = "odd"
    allowed_domains = ["127.0.0.1", "nonexistent.invalid"]

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.on_headers, signals.headers_received)
        return spider

    def on_headers(self, headers: Headers) -> None:
        kind = headers.get("Content-Type") or b""
        if kind.startswith(b"odd/"):
            raise StopDownload(fail=kind == b"odd/fail")

    def absolute(self, path: str) -> str:
        return self.site.url(path) if path.startswith("/") else path

    async def start(self) -> AsyncIterator[Any]:
        for name, case in CASES.items():
            errback = getattr(self, case.errback) if case.errback else None
            meta = {"case": name, **case.meta}
            yield Request(self.absolute(case.path), getattr(self, case.callback), meta=meta, errback=errback)
        for path in REJECTED:
            yield Request(self.absolute(path))

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"from": "parse"}

    def rescue(self, failure: Failure) -> Iterator[Any]:
        yield {"from": "errback"}

    def rescue_badly(self, failure: Failure) -> None:
        raise RuntimeError("errback")

    def raises(self, response: Response) -> None:
        raise RuntimeError("at once")

    def raises_late(self, response: Response) -> Iterator[Any]:
        yield {"from": "raises_late"}
        raise RuntimeError("late")

    async def raises_async(self, response: Response) -> AsyncIterator[Any]:
        yield {"from": "raises_async"}
        raise RuntimeError("async")

    def nothing(self, response: Response) -> None:
        pass

    def dropped(self, response: Response) -> Iterator[Any]:
        yield {"from": "dropped", "drop": True}

    def fails(self, response: Response) -> Iterator[Any]:
        yield {"from": "fails", "fail": True}

    def two(self, response: Response) -> Iterator[Any]:
        yield {"from": "two"}
        yield {"from": "two"}

    def duplicate(self, response: Response) -> Iterator[Any]:
        yield response.follow("/ok?had")

    def long_link(self, response: Response) -> Iterator[Any]:
        yield response.follow("/" + "x" * 3000)


class OddDownloads:
    """Innermost: ends requests in every way that a downloader middleware may."""

    def process_request(self, request: Request) -> Any:
        case = request.meta.get("case")
        if case == "middleware_ignores":
            raise IgnoreRequest("as asked")
        if case == "middleware_fails":
            raise RuntimeError("as asked")
        if case == "middleware_answers":
            return HtmlResponse(request.url, body=b"<html></html>")
        if case == "middleware_sends_elsewhere" and "elsewhere" not in request.url[-9:]:
            return None
        if case == "middleware_sends_elsewhere" and not request.meta.get("again"):
            return request.replace(url=f"{request.url}?again", meta={**request.meta, "again": True})
        return None

    def process_response(self, request: Request, response: Response) -> Response:
        if request.meta.get("case") == "middleware_ignores_response":
            raise IgnoreRequest("as asked")
        if request.meta.get("case") == "middleware_fails_on_response":
            raise RuntimeError("as asked")
        return response


class OddInput:
    """A spider middleware that refuses a response."""

    def process_spider_input(self, response: Response) -> None:
        if response.meta.get("case") == "spider_middleware_fails":
            raise RuntimeError("as asked")


class OddItems:
    """Drops items, or fails on them."""

    def process_item(self, item: Any) -> Any:
        if "drop" in item:
            raise DropItem("as asked")
        if "fail" in item:
            raise ValueError("as asked")
        return item


SETTINGS = {
    "ROBOTSTXT_OBEY": True,
    "RETRY_TIMES": 1,
    "REDIRECT_MAX_TIMES": 2,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOADER_MIDDLEWARES": {OddDownloads: 999},
    "SPIDER_MIDDLEWARES": {OddInput: 500},
    "ITEM_PIPELINES": {OddItems: 1},
}


def odd_crawl(site: MockSite, log: Path, *, addon: bool = False, **more: Any) -> Crawled:
    return crawl(Odd, {**SETTINGS, "FOCUS_LOG": str(log), **more}, addon=addon, site=site)


@pytest.mark.few(1)
@pytest.mark.both
@pytest.mark.parametrize("policy", ["", BREADTH_FIRST], ids=["bandit", "breadth_first"])
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_every_case_has_one_outcome(site: MockSite, tmp_path: Path, addon: bool, policy: str) -> None:
    """Each of 41 ways to end has one outcome with its label and items; rejected requests have none."""
    result = odd_crawl(site, tmp_path / "log.jsonl", addon=addon, FOCUS_POLICY=policy)
    events = result.events()
    case_of = {Request(result.spider.absolute(case.path)).url: name for name, case in CASES.items()}
    picked = {event["id"]: case_of[event["url"]] for event in events if event["event"] == "pick"}
    outcomes = [event for event in events if event["event"] == "outcome"]
    errors = {picked[event["id"]]: event["error"].partition(":")[0] or "ok" for event in outcomes}
    named = {"too_large": "failure"}  # as recordings have it
    assert errors == {name: named.get(case.label, case.label) for name, case in CASES.items()}
    assert len(outcomes) == len(picked) == len(CASES) == 41
    items = {picked[event["id"]]: event["items"] for event in outcomes}
    assert items == {name: case.items for name, case in CASES.items()}
    assert result.outcomes == Counter(case.label for case in CASES.values())
    assert result.stats["focus/requeued"] == sum(REQUEUED.values())
    assert result.stats["focus/in_flight"] == 0
    assert result.errors == {}
    assert result.reason == "finished"


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_stats_are_those_of_the_stock_scheduler(site: MockSite, tmp_path: Path, addon: bool) -> None:
    """Scrapy's counts of downloads, retries, items and errors are as without us; its log has only one more line."""
    ours = odd_crawl(site, tmp_path / "log.jsonl", addon=addon)
    asked = set(site.asked)  # not how often: HTTP clients try again by themselves where a used connection breaks
    site.log.clear()
    theirs = crawl(Odd, {**SETTINGS, "SCHEDULER": STOCK}, site=site)
    assert set(site.asked) == asked
    filtered = ours.stats.pop("dupefilter/filtered") + ours.stats.pop("focus/link/known", 0)
    assert filtered == theirs.stats.pop("dupefilter/filtered")
    assert without_ours(ours.stats) == without_ours(theirs.stats)
    for level in ("WARNING", "ERROR", "CRITICAL") if not addon else ():  # which has a line for each kind of failure
        assert ours.stats.get(f"log_count/{level}") == theirs.stats.get(f"log_count/{level}"), level
