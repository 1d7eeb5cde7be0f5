"""Projects without our settings: whatever a spider does, it gets the same pages and items as with Scrapy's queue."""

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from crawls import HANG, STOCK, Crawled, crawl
from mocksite import MockSite
from scrapy import FormRequest, Request, Spider
from scrapy.http import JsonRequest
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider
from scrapy.utils.test import get_crawler

from scrapy_focus.downloadermiddlewares import MeterMiddleware, MimeMiddleware
from scrapy_focus.engine import outcomes
from scrapy_focus.engine.host import host_of
from scrapy_focus.spidermiddlewares import KnownLinkMiddleware

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from scrapy.http import Response
    from twisted.python.failure import Failure

ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])


class _OnSite:
    """Remembers the site that it crawls."""

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        self.site = site
        super().__init__(**kwargs)


class Plain(_OnSite, Spider):
    """As in Scrapy's tutorial, with everything in ``start_urls``."""

    name = "plain"

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(site, **kwargs)
        self.start_urls = [site.url("/page/0/50"), site.url("/page/0/50"), site.url("/page/20/50")]

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        for link in response.css("a"):
            yield response.follow(link, callback=self.parse)


class Rules(_OnSite, CrawlSpider):
    """Follows some links by rules, and has others parsed."""

    name = "rules"
    rules = (
        Rule(LinkExtractor(allow=r"/page/\d/"), callback="parse_page", follow=True),
        Rule(LinkExtractor(allow=r"/page/\d\d/", deny="/page/1"), callback="parse_page", cb_kwargs={"deep": True}),
    )

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(site, **kwargs)
        self.start_urls = [site.url("/page/0/50")]

    def parse_page(self, response: Response, deep: bool = False) -> Iterator[Any]:
        yield {"url": response.url, "deep": deep, "text": response.meta["link_text"]}


class Sitemap(_OnSite, SitemapSpider):
    """Reads an index of sitemaps."""

    name = "sitemap"

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(site, **kwargs)
        ns = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        pages = "".join(f"<url><loc>{site.url(f'/ok?{i}')}</loc></url>" for i in range(10))
        more = f"<sitemap><loc>{site.url('/more.xml')}</loc></sitemap>"
        site.pages["/index.xml"] = f"<!--<html--><sitemapindex {ns}>{more}</sitemapindex>"
        site.pages["/more.xml"] = f"<!--<html--><urlset {ns}>{pages}</urlset>"
        self.sitemap_urls = [site.url("/index.xml")]

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


class Forms(_OnSite, Spider):
    """Sends forms, JSON and raw bodies, also the same ones twice."""

    name = "forms"

    async def start(self) -> AsyncIterator[Any]:
        yield {"from": "start"}
        for user in ("a", "b", "a"):
            yield FormRequest(self.site.url("/ok?form"), formdata={"user": user, "text": "für"})
            yield JsonRequest(self.site.url("/ok?json"), data={"user": user, "list": [1, 2]})
            yield Request(self.site.url("/ok?put"), method="PUT", body=user.encode(), headers={"X-User": user})

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "sent": response.request.body}
        if "form" in response.url:
            yield Request(response.url, method="POST", body=b"from a page\xff", callback=self.parse_post)

    def parse_post(self, response: Response) -> Iterator[Any]:
        yield {"post": response.request.body}


class Again(_OnSite, Spider):
    """Asks for the same page over and over, with ``dont_filter``, and copies its meta along."""

    name = "again"

    async def start(self) -> AsyncIterator[Any]:
        for _ in range(3):
            yield Request(self.site.url("/ok?same"), dont_filter=True, meta={"left": 4})

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"left": response.meta["left"]}
        if response.meta["left"]:
            yield Request(response.url, dont_filter=True, meta={**response.meta, "left": response.meta["left"] - 1})
            yield Request(response.url, meta=dict(response.meta))  # filtered


class Twice(_OnSite, Spider):
    """Asks for one URL twice on one page, for two callbacks, and for another as a link and once more."""

    name = "twice"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.site.url("/ok?start"))

    def parse(self, response: Response) -> Iterator[Any]:
        yield response.follow("/ok?same", self.parse_one, dont_filter=True)
        yield response.follow("/ok?same", self.parse_two, dont_filter=True)
        yield response.follow("/ok?other", self.parse_one)
        yield response.follow("/ok?other", lambda response: [{"lambda": response.url}], dont_filter=True)
        yield response.follow("/ok?start", self.parse_two, dont_filter=True)

    def parse_one(self, response: Response) -> Iterator[Any]:
        yield {"one": response.url}

    def parse_two(self, response: Response) -> Iterator[Any]:
        yield {"two": response.url}


class Unfiltered(Plain):
    """Has no duplicates filter."""

    name = "unfiltered"
    custom_settings = {"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter", "DEPTH_LIMIT": 3}


class Errbacks(_OnSite, Spider):
    """Follows links from errbacks, with keyword arguments."""

    name = "errbacks"

    async def start(self) -> AsyncIterator[Any]:
        for i in range(5):
            url = self.site.url(f"/status?code=404&{i}")
            yield Request(url, errback=self.rescue, cb_kwargs={"i": i}, meta={"i": i})
            yield Request(f"http://127.0.0.1:9/{i}", errback=self.rescue, meta={"i": i, "max_retry_times": 0})

    def rescue(self, failure: Failure) -> Iterator[Any]:
        i = failure.request.meta["i"]
        yield {"failed": type(failure.value).__name__, "i": i}
        yield Request(self.site.url(f"/ok?rescue{i}"), self.parse_kwargs, cb_kwargs={"i": i, "name": "x"})

    def parse_kwargs(self, response: Response, i: int, name: str) -> Iterator[Any]:
        yield {"i": i, "name": name}


class Closures(_OnSite, Spider):
    """Uses lambdas, closures and partial functions as callbacks, and shares objects through requests."""

    name = "closures"

    async def start(self) -> AsyncIterator[Any]:
        self.box: list[str] = []
        for i in range(4):
            yield Request(self.site.url(f"/ok?lambda{i}"), lambda response, i=i: [{"lambda": i}])
            yield Request(self.site.url(f"/ok?partial{i}"), functools.partial(self.parse_more, extra=i))
            yield Request(self.site.url(f"/ok?meta{i}"), meta={"box": self.box, "i": i})
            yield Request(self.site.url(f"/ok?kwargs{i}"), self.parse_box, cb_kwargs={"box": self.box})

    def parse(self, response: Response) -> Iterator[Any]:
        box = response.meta["box"]
        box.append(response.url)
        yield {"same": box is self.box}
        lost: list[str] = []

        def closure(response: Response) -> Iterator[Any]:
            lost.append(response.url)
            yield {"closure": len(lost)}

        yield response.follow(f"/ok?closure{response.meta['i']}", closure, meta={"box": box})

    def parse_more(self, response: Response, extra: int) -> Iterator[Any]:
        yield {"extra": extra}

    def parse_box(self, response: Response, box: list[str]) -> Iterator[Any]:
        yield {"same": box is self.box}


class Items(_OnSite, Spider):
    """Gives items from ``start()`` between its requests, and from coroutines."""

    name = "items"

    async def start(self) -> AsyncIterator[Any]:
        for i in range(10):
            yield {"start": i}
            yield Request(self.site.url(f"/ok?{i}"))

    async def parse(self, response: Response) -> list[Any]:
        await asyncio.sleep(0.01)
        return [{"url": response.url}, response.follow("/ok?last")]


def told(result: Crawled) -> Counter[str]:
    return Counter(str(item) for item in result.items)


@pytest.mark.few(3)
@pytest.mark.reactor
@ADDON
@pytest.mark.parametrize("spider", [Plain, Rules, Sitemap, Forms, Again, Twice, Unfiltered, Errbacks, Closures, Items])
def test_same_as_with_the_stock_scheduler(site: MockSite, spider: type[Spider], addon: bool) -> None:
    """The same requests are sent, with the same bodies, and the same items yielded, as with Scrapy's scheduler."""
    theirs = crawl(spider, {"SCHEDULER": STOCK}, site=site)
    sent = Counter((seen.method, seen.path, seen.body) for seen in site.log)
    site.log.clear()
    ours = crawl(spider, {}, addon=addon, site=site)
    assert Counter((seen.method, seen.path, seen.body) for seen in site.log) == sent
    assert told(ours) == told(theirs)
    assert len(sent) >= 1
    assert ours.reason == "finished"
    assert ours.errors == {}


class Seeds(_OnSite, Spider):
    """Starts from thousands of URLs."""

    name = "seeds"

    async def start(self) -> AsyncIterator[Any]:
        for i in range(5000):
            yield Request(self.site.url(f"/ok?{i}"))
            if i % 1000 == 0:
                yield {"start": i}

    def parse(self, response: Response) -> None:
        pass


@pytest.mark.slow
@ADDON
def test_thousands_of_seeds(addon: bool) -> None:
    """All seeds of a flood are taken, and queued as small records."""
    with MockSite(latency=0.05) as site:
        result = crawl(Seeds, {"FOCUS_BUDGET_REQUESTS": 40, "CONCURRENT_REQUESTS": 4}, addon=addon, site=site)
        assert len(site.log) == 40
    assert len(result.items) == 5
    assert result.stats["scheduler/enqueued"] == 5000
    assert result.stats["focus/waiting"] == 4960
    assert result.stats.get("focus/link/kept", 0) == 0


class Waiting(_OnSite, Spider):
    """Each callback yields a request and then waits for its page, three deep."""

    name = "waiting"

    async def start(self) -> AsyncIterator[Any]:
        self.came = {left: asyncio.Event() for left in range(4)}
        yield Request(self.site.url("/ok?3"), cb_kwargs={"left": 3})

    async def parse(self, response: Response, left: int) -> AsyncIterator[Any]:
        if left:
            yield response.follow(f"/ok?{left - 1}", cb_kwargs={"left": left - 1})
            await self.came[left - 1].wait()
        yield {"left": left}
        self.came[left].set()


@pytest.mark.reactor
@ADDON
@pytest.mark.parametrize("concurrent", [1, 16])
def test_callbacks_may_wait_for_other_pages(
    site: MockSite, monkeypatch: pytest.MonkeyPatch, addon: bool, concurrent: int
) -> None:
    """A callback that waits for a page that it asked for itself gets it, after a while, and nothing locks up."""
    monkeypatch.setattr(outcomes, "_STUCK", 0.2)
    result = crawl(Waiting, {"CONCURRENT_REQUESTS": concurrent}, addon=addon, site=site)
    assert [item["left"] for item in result.items] == [0, 1, 2, 3]
    assert result.outcomes == {"ok": 4}


class Listed(_OnSite, Spider):
    """Has a list of pages without links."""

    name = "listed"

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(site, **kwargs)
        self.start_urls = [site.url(f"/page/{number * 7919 % 101}/0") for number in range(60)]

    def parse(self, response: Response) -> None:
        """Yield nothing: no page is better than another."""


@ADDON
def test_start_requests_leave_in_their_order(addon: bool, site: MockSite, tmp_path: Path) -> None:
    """As long as nothing was found, they are sent in their order; also in the next run of a job."""
    given = [f"/page/{number * 7919 % 101}/0" for number in range(60)]
    one = {"CONCURRENT_REQUESTS": 1, "JOBDIR": str(tmp_path / "job")}
    crawl(Listed, one | {"FOCUS_BUDGET_REQUESTS": 25}, addon=addon, site=site)
    assert site.paths == given[:25]
    crawl(Listed, one | {"FOCUS_BUDGET_REQUESTS": 60}, addon=addon, site=site)
    assert site.paths == given


@pytest.mark.slow
@ADDON
@pytest.mark.parametrize("url", ["scrapy.Request('{}')", "'{}'", "'{}', redirect=False"])
def test_the_shell_fetches(addon: bool, url: str, site: MockSite) -> None:
    """``fetch()`` in ``scrapy shell`` schedules a request, and then sets another callback."""
    ours = "ADDONS={'scrapy_focus.Addon': 500}" if addon else "SCHEDULER=scrapy_focus.FocusScheduler"
    code = f"[fetch({url.format(site.url('/page/1/0'))}), response.status][1]"
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "shell", "-s", ours.replace("'", '"'), "-c", code],
        capture_output=True, text=True, check=False, timeout=HANG,
    )  # fmt: skip
    assert done.stdout.split() == ["200"], done.stderr
    assert site.paths == ["/page/1/0"]


class ChangesItsMind(_OnSite, Spider):
    """Schedules a request, and changes it before it is sent."""

    name = "changes"

    async def start(self) -> AsyncIterator[Request]:
        request = Request(self.site.url("/page/1/0"))
        self.crawler.engine.crawl(request)
        request.callback = self.late
        request.meta["late"] = True
        yield Request(self.site.url("/page/2/0"), callback=self.late, meta={"late": False})

    def late(self, response: Response) -> Iterator[Any]:
        yield {"late": response.meta["late"]}


@ADDON
def test_a_scheduled_request_may_change(addon: bool, site: MockSite) -> None:
    """As in Scrapy's queues, what is changed in a request before anything else happens is sent."""
    result = crawl(ChangesItsMind, addon=addon, site=site)
    assert Counter(item["late"] for item in result.items) == {True: 1, False: 1}


class Unstored(_OnSite, Spider):
    """Has a request that can be stored, and one that cannot."""

    name = "unstored"

    async def start(self) -> AsyncIterator[Request]:
        yield Request(self.site.url("/ok?1"))
        yield Request(self.site.url("/ok?2"), meta={"function": lambda: None})

    def parse(self, response: Response) -> None:
        """Yield nothing."""


@ADDON
def test_stats_say_what_is_on_the_disk(addon: bool, site: MockSite, tmp_path: Path) -> None:
    """With JOBDIR requests are counted like by Scrapy's scheduler: on disk, except those that cannot be stored."""
    result = crawl(Unstored, {"JOBDIR": str(tmp_path)}, addon=addon, site=site)
    counts = {name: n for name, n in result.stats.items() if name.startswith("scheduler/")}
    assert counts == {
        "scheduler/enqueued": 2, "scheduler/enqueued/disk": 1, "scheduler/enqueued/memory": 1,
        "scheduler/dequeued": 2, "scheduler/dequeued/disk": 1, "scheduler/dequeued/memory": 1,
        "scheduler/unserializable": 1,
    }  # fmt: skip


class BrokenFingerprinter:
    """Fails, as a mistake in a project does."""

    def fingerprint(self, request: Request) -> bytes:
        raise ValueError("broken")


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_errors_of_a_fingerprinter_are_logged_as_scrapy_logs_them(addon: bool, site: MockSite) -> None:
    """An error of the project's own fingerprinter reaches Scrapy, which ends the crawl."""
    settings = {"REQUEST_FINGERPRINTER_CLASS": BrokenFingerprinter}
    result = crawl(Plain, settings, addon=addon, site=site)
    assert result.logged("Error while processing requests from start()")
    assert not result.logged("scrapy_focus failed")
    assert not site.log


@pytest.mark.parametrize(
    "middleware", [MimeMiddleware, MeterMiddleware, KnownLinkMiddleware], ids=lambda cls: cls.__name__
)
def test_middlewares_without_a_crawl_know_no_scheduler(middleware: type) -> None:
    """A middleware can be made and asked before a crawl has an engine, as tests of middlewares do."""
    crawler = get_crawler(Plain)
    assert host_of(middleware.from_crawler(crawler).crawler) is None
