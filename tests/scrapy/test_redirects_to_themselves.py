"""A link that redirects to itself, directly or over another page, leads to the page after that."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Crawled, crawl
from mocksite import MockSite
from scrapy import Request, Spider, signals
from scrapy.utils.defer import deferred_from_coro

from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.topic.spider import TopicSpider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mocksite import Answer
    from scrapy.http import Response

GATES = ("/gate", "/two", "/way", "/spelled?b=2&amp;a=1", "/again", "/loop")


class GateSite(MockSite):
    """Pages that are shown only to clients with a cookie that a redirect set."""

    def answer(self, path: str) -> Answer:
        cookie = next(seen for seen in reversed(self.log) if seen.path == path).headers.get("cookie", "")
        if path == "/":
            return html("".join(f'<a href="{gate}">on</a>' for gate in GATES))
        if path == "/gate":
            return html('<a href="/inside">on</a>') if "ok=1" in cookie else to("/gate", "ok=1; Path=/")
        if path == "/two" and "one=1" not in cookie:
            return to("/two", "one=1")
        if path == "/two" and "two=2" not in cookie:
            return to("/two", "two=2")
        if path == "/way" and "way=1" not in cookie:
            return to("/set")
        if path == "/set":
            return to("/way", "way=1")
        if path == "/spelled?b=2&a=1":
            return to("/spelled?a=1&b=2")
        if path == "/again":
            return to("/again")
        if path == "/loop":
            return to("/loop", f"n={sum(seen.path == path for seen in self.log)}")
        return html("<p>a page") if not path.startswith("/robots") else (404, {}, b"")


def html(body: str) -> Answer:
    return 200, {"Content-Type": "text/html"}, body.encode()


def to(path: str, cookie: str = "") -> Answer:
    return 302, {"Location": path, **({"Set-Cookie": cookie} if cookie else {})}, b""


@pytest.fixture
def gates() -> Iterator[GateSite]:
    with GateSite() as site:
        yield site


class Walk(Spider):
    """Follows all links, and yields the pages that it saw."""

    name = "walk"

    def __init__(self, root: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [root]

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"path": re.sub("^http://[^/]*", "", response.url)}
        for href in response.css("a::attr(href)").getall():
            yield Request(response.urljoin(href))


SEEN = {"/", "/gate", "/inside", "/two", "/way", "/spelled?a=1&b=2"}
ASKED = {  # at most: a loop ends soon, and no sooner than a site with a cookie or two
    "/": 1, "/gate": 2, "/inside": 1, "/two": 3, "/way": 2, "/set": 1, "/spelled?b=2&a=1": 1, "/spelled?a=1&b=2": 1, "/again": 1,
    "/loop": 4,
}  # fmt: skip


def check(gates: GateSite, *crawls: Crawled) -> None:
    """Each pick has one outcome, and each request was counted, in the last run those of all runs of a job."""
    for crawled in crawls:
        crawled.check()
        assert not crawled.errors
    assert crawls[-1].stats["focus/requests"] == len(gates.log)


@pytest.mark.parametrize("addon", [False, True])
def test_a_redirect_over_a_cookie_is_followed(gates: GateSite, addon: bool) -> None:
    """With the scheduler alone, too; a redirect without a cookie and in the same spelling is not repeated."""
    crawled = crawl(Walk, {"COOKIES_ENABLED": True}, addon=addon, root=gates.url("/"))
    assert Counter(item["path"] for item in crawled.items) == Counter(SEEN)
    assert Counter(gates.paths) == ASKED
    assert crawled.outcomes == {"ok": 6, "redirect_seen": 2}
    check(gates, crawled)


def test_a_crawl_without_cookies_asks_no_more_than_once(gates: GateSite) -> None:
    """Without cookies, the answer would be the same; only a differently spelled URL is another one."""
    crawled = crawl(Walk, {"COOKIES_ENABLED": False}, root=gates.url("/"))
    assert {item["path"] for item in crawled.items} == {"/", "/spelled?a=1&b=2"}
    assert set(Counter(gates.paths).values()) == {1}
    check(gates, crawled)


@pytest.mark.parametrize("name", ["datasets", "topic"])
def test_our_spiders_follow_it_without_keeping_cookies(gates: GateSite, tmp_path: Path, name: str) -> None:
    """Cookies of a redirect go with the requests that follow it, and with no others; a header of a project stays."""
    headers = {"Cookie": "mine=1", "Accept": "*/*"}
    settings = {"COOKIES_ENABLED": False, "DEFAULT_REQUEST_HEADERS": headers}
    root = gates.url("/")
    if name == "datasets":
        crawled = crawl(DatasetsSpider, settings, addon=True, root=root, out=str(tmp_path))
    else:
        args = {"seeds": root, "keywords": "page", "out": str(tmp_path / "out.jsonl")}
        crawled = crawl(TopicSpider, {**settings, "SCHEDULER": "scrapy_focus.FocusScheduler"}, addon=True, **args)
    asked = Counter(path for path in gates.paths if path != "/robots.txt")
    assert asked == ASKED
    cookies = {seen.path: seen.headers["cookie"] for seen in gates.log}  # of the last request for each
    assert cookies["/gate"] == "mine=1; ok=1"
    assert cookies["/two"] == "mine=1; one=1; two=2"
    assert cookies["/"] == cookies["/inside"] == cookies["/again"] == "mine=1"
    check(gates, crawled)


@pytest.mark.parametrize("budget", [3, 5, 8, 11])
def test_no_request_is_beyond_the_budget(gates: GateSite, budget: int) -> None:
    """Each request on the way costs one."""
    crawled = crawl(Walk, {"FOCUS_BUDGET_REQUESTS": budget, "COOKIES_ENABLED": True}, root=gates.url("/"))
    assert len(gates.log) == budget
    check(gates, crawled)


class Stopped(Walk):
    """Is stopped at the first redirect to the gate."""

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.came, signals.response_downloaded)
        return spider

    def came(self, response: Response) -> None:
        if response.url.endswith("/gate") and response.status == 302 and not self.crawler.settings["GOES_ON"]:
            deferred_from_coro(self.crawler.engine.close_spider_async(reason="shutdown"))


def test_a_job_that_is_stopped_on_the_way_resumes(gates: GateSite, tmp_path: Path) -> None:
    """The next run begins with the URL that was linked, and sees each page that the first one did not."""
    settings = {
        "JOBDIR": str(tmp_path / "job"),
        "COOKIES_ENABLED": True,
        "CONCURRENT_REQUESTS": 1,
        "FOCUS_MAX_INFLIGHT": 1,
    }
    first = crawl(Stopped, settings, root=gates.url("/"))
    assert "/inside" not in gates.paths
    second = crawl(Stopped, {**settings, "GOES_ON": True}, root=gates.url("/"))
    paths = Counter(item["path"] for crawled in (first, second) for item in crawled.items)
    assert paths == Counter(SEEN)
    check(gates, first, second)
