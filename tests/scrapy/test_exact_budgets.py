"""Budgets: "100 requests" means that the log of the server shows 100, of whatever kind."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, SomeHeadsFirst, crawl
from mocksite import MockSite, tree_paths
from scrapy import Request, Spider

from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.important.spider import ImportantSpider
from scrapy_focus.finders.news.spider import NewsSpider
from scrapy_focus.finders.structured.spider import StructuredSpider
from scrapy_focus.finders.topic.spider import TopicSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from scrapy.http import Response

pytestmark = pytest.mark.reactor

ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
CONCURRENT = pytest.mark.parametrize("concurrent", [1, 16])
# A seed for each kind of request that is not a plain page; they lead on to a tree that is larger than any budget.
MIXED = [
    "/page/0/400", "/redirect?to=/page/1/400", "/redirect?to=/redirect?to=/page/2/400", "/status?code=500",
    "/status?code=503", "/status?code=404", "/refresh?to=/page/3/400", "/forbidden", "/file?type=image/png&size=200000",
    "/file?type=text/csv&size=90000", "/redirect?to=/status?code=500",
]  # fmt: skip


@pytest.mark.few(6)
@pytest.mark.both
@ADDON
@CONCURRENT
@pytest.mark.parametrize("budget", [1, 7, 40])
def test_the_server_sees_exactly_the_budget(site: MockSite, addon: bool, concurrent: int, budget: int) -> None:
    """robots.txt, HEADs, redirects, retries and pages are as many as were allowed, not one more or less."""
    result = crawl(
        Follower,
        {
            "FOCUS_BUDGET_REQUESTS": budget, "FOCUS_POLICY": SomeHeadsFirst, "ROBOTSTXT_OBEY": True,
            "CONCURRENT_REQUESTS": concurrent, "CONCURRENT_REQUESTS_PER_DOMAIN": concurrent,
        },
        addon=addon,
        seeds=[site.url(path) for path in MIXED],
    )  # fmt: skip
    assert len(site.log) == budget
    assert result.stats["focus/requests"] == budget
    assert result.reason == "focus_budget_requests"
    assert result.errors == {}
    if budget == 40:
        kinds = {path.split("?")[0] for _, path in site.asked}
        assert {"/robots.txt", "/redirect", "/status"} < kinds, "by GET or, where HEADs were late, only by these"
        assert {method for method, _ in site.asked} == {"GET", "HEAD"}


def test_a_budget_that_is_not_used_up_changes_nothing(site: MockSite) -> None:
    """A crawl that needs less than it may use ends as usual."""
    result = crawl(Follower, {"FOCUS_BUDGET_REQUESTS": 31}, seeds=[site.url("/page/0/30")])
    assert sorted(site.paths) == sorted(tree_paths(30))
    assert result.reason == "finished"


def test_a_budget_that_just_suffices(site: MockSite) -> None:
    """A site of 30 pages is crawled whole with a budget of 30 requests."""
    crawl(Follower, {"FOCUS_BUDGET_REQUESTS": 30}, seeds=[site.url("/page/0/30")])
    assert sorted(site.paths) == sorted(tree_paths(30))


@ADDON
@CONCURRENT
def test_requests_that_could_not_be_sent_are_given_back(site: MockSite, addon: bool, concurrent: int) -> None:
    """If nobody listens, or a name has no address, nothing was sent and nothing is used up."""
    nowhere = [f"http://127.0.0.1:9/{i}" for i in range(5)] + ["http://nonexistent.invalid/"]
    result = crawl(
        Follower,
        {
            "FOCUS_BUDGET_REQUESTS": 20, "FOCUS_POLICY": BREADTH_FIRST, "RETRY_TIMES": 1,
            "CONCURRENT_REQUESTS": concurrent, "CONCURRENT_REQUESTS_PER_DOMAIN": concurrent,
        },
        addon=addon,
        seeds=[*nowhere, site.url("/page/0/100")],
    )  # fmt: skip
    assert len(site.log) == 20
    assert result.stats["focus/requests"] == 20
    assert 4 <= result.outcomes["failure"] <= 6  # retries that found the budget used up wait for another run


class Downloader(Spider):
    """Asks for two more pages from within each callback, past the scheduler."""

    name = "downloader"

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site
        self.refused = 0

    async def start(self) -> AsyncIterator[Any]:
        for i in range(50):
            yield Request(self.site.url(f"/ok?{i}"))

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        for which in "ab":
            try:
                await self.crawler.engine.download_async(Request(response.url + which))
            except Exception:
                self.refused += 1
                raise
            yield {"more": which}


@CONCURRENT
def test_what_callbacks_download_counts_too(site: MockSite, concurrent: int) -> None:
    """Requests that go past the scheduler use the same budget, and are refused when it is used up."""
    settings = {"FOCUS_BUDGET_REQUESTS": 20, "CONCURRENT_REQUESTS_PER_DOMAIN": concurrent}
    result = crawl(Downloader, settings, site=site)
    assert len(site.log) == 20
    assert result.spider.refused


@ADDON
def test_bytes_stop_the_crawl(site: MockSite, addon: bool) -> None:
    """After the bytes of the budget nothing new is sent, and the reason says so."""
    seeds = [site.url(f"/file?type=text/html&size=5000&{i}") for i in range(60)]
    result = crawl(
        Follower, {"FOCUS_BUDGET_BYTES": 50_000, "CONCURRENT_REQUESTS_PER_DOMAIN": 4}, addon=addon, seeds=seeds
    )
    assert result.reason == "focus_budget_bytes"
    assert 50_000 <= result.stats["focus/bytes"] < 50_000 + 9 * 6_000  # up to 4 in flight, and 4 just arrived
    assert 9 <= len(site.log) <= 18


@ADDON
def test_seconds_stop_the_crawl(addon: bool) -> None:
    """After the seconds of the budget nothing new is sent, and the reason says so."""
    with MockSite(latency=0.05) as site:
        begin = time.monotonic()
        result = crawl(Follower, {"FOCUS_BUDGET_SECONDS": 0.6}, addon=addon, seeds=[site.url("/page/0/4000")])
        assert time.monotonic() - begin >= 0.6
    assert result.reason == "focus_budget_seconds"
    assert len(site.log) < 400


def test_seconds_stop_a_crawl_that_waits(site: MockSite) -> None:
    """The time also runs out while the only request in flight hangs, and the crawl stops once that is over."""
    result = crawl(
        Follower,
        {"FOCUS_BUDGET_SECONDS": 0.5, "DOWNLOAD_TIMEOUT": 1, "RETRY_ENABLED": False, "CONCURRENT_REQUESTS": 1},
        seeds=[site.url("/hang"), site.url("/ok?1"), site.url("/ok?2")],
    )
    assert result.reason == "focus_budget_seconds"
    assert len(site.log) <= 3


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("spider", "given"),
    [
        (TopicSpider, {"keywords": "page", "seeds": "{}"}),
        (StructuredSpider, {"types": "Recipe", "seeds": "{}"}),
        (ImportantSpider, {"root": "{}"}),
        (NewsSpider, {"root": "{}", "rate": "9999/s"}),
        (DatasetsSpider, {"root": "{}", "types": "csv"}),
    ],
)
def test_a_used_up_budget_is_extended(
    site: MockSite, tmp_path: Path, spider: type[Spider], given: dict[str, str]
) -> None:
    """For any goal: the same budget sends nothing, a larger one fetches what is missing, and nothing twice."""
    site.pages |= {
        "/": "".join(f'<a href="/{i}">page {i}</a>' for i in range(20)),
        **{f"/{i}": f"page {i}" for i in range(20)},
    }
    out = {"folder" if "seeds" in given else "out": str(tmp_path)}
    arguments = {name: value.format(site.url("/")) for name, value in given.items()} | out
    settings = {"JOBDIR": str(tmp_path / ".focus" / "job"), "ROBOTSTXT_OBEY": False}
    for budget, sent in ((5, 5), (5, 0), (9, 4)):
        before = len(site.log)
        result = crawl(spider, settings, addon=True, budget=str(budget), **arguments)
        assert result.reason == "focus_budget_requests"
        assert len(site.log) - before == sent
    assert max(Counter(site.paths).values()) == 1
