"""Crawls that Scrapy's own settings end early: for the same reason as with its own scheduler, and no later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import STOCK, Crawled, crawl
from habits import Details, Everywhere, Shopper
from scrapy import Request
from shopsite import ShopSite

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy import Spider
    from scrapy.http import Response

ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])


class Endless(Shopper):
    """Asks for one page again and again, and finds nothing."""

    name = "endless"
    paths = ("/ok?endless",)

    def parse(self, response: Response) -> Any:
        return Request(response.url, dont_filter=True)


class Failing(Shopper):
    """Fails on each page of a book."""

    name = "failing"

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        yield from response.follow_all(css="h3 a", callback=self.parse_book)
        yield from response.follow_all(css="li.next a")

    def parse_book(self, response: Response) -> Iterator[Any]:
        raise LookupError("as asked")


class Hanging(Shopper):
    """Starts with pages that never arrive."""

    name = "hanging"

    async def start(self) -> AsyncIterator[Any]:
        for number in range(3):
            yield Request(self.site.url(f"/hang?{number}"), meta={"download_timeout": 3})
            yield Request(self.site.url(f"/ok?{number}"))

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


def ended(spider: type[Spider], settings: dict[str, Any], *, addon: bool = False) -> Crawled:
    with ShopSite() as site:
        return crawl(spider, settings, addon=addon, site=site)


SCHEDULERS = pytest.mark.parametrize(
    ("settings", "addon"),
    [
        pytest.param({"SCHEDULER": STOCK}, False, marks=pytest.mark.slow, id="stock"),
        pytest.param({}, False, marks=pytest.mark.slow, id="scheduler"),
        pytest.param({}, True, id="addon"),
    ],
)


@pytest.mark.few(4)
@SCHEDULERS
@pytest.mark.parametrize("concurrent", [1, 4])
@pytest.mark.parametrize(
    ("spider", "limit", "asked", "stat"),
    [
        (Details, "CLOSESPIDER_ITEMCOUNT", 20, "item_scraped_count"),
        (Everywhere, "CLOSESPIDER_PAGECOUNT", 30, "response_received_count"),
        (Failing, "CLOSESPIDER_ERRORCOUNT", 3, "spider_exceptions/count"),
        (Endless, "CLOSESPIDER_PAGECOUNT_NO_ITEM", 9, "response_received_count"),
    ],
)
def test_a_count_ends_a_crawl(
    spider: type[Spider], limit: str, asked: int, stat: str, concurrent: int, settings: dict[str, Any], addon: bool
) -> None:
    """As many as requested, plus at most the ones in flight then: twice the number of concurrent downloads."""
    result = ended(spider, {**settings, limit: asked, "CONCURRENT_REQUESTS": concurrent}, addon=addon)
    assert result.reason == limit.lower()
    assert asked <= result.stats[stat] < asked + 2 * concurrent
    assert result.errors == {}


@pytest.mark.few(2)
@SCHEDULERS
@pytest.mark.parametrize(
    ("spider", "limit"),
    [
        (Endless, "CLOSESPIDER_TIMEOUT"),
        (Endless, "CLOSESPIDER_TIMEOUT_NO_ITEM"),
        (Hanging, "CLOSESPIDER_TIMEOUT"),
    ],
)
def test_a_time_ends_a_crawl(spider: type[Spider], limit: str, settings: dict[str, Any], addon: bool) -> None:
    """Also while it waits for pages that never arrive; earlier pages are there."""
    waits = {"DOWNLOAD_DELAY": 0.05 if spider is Endless else 0, "RETRY_ENABLED": False}
    with ShopSite() as site:
        result = crawl(spider, {**settings, **waits, limit: 2}, addon=addon, site=site)
    assert result.reason == limit.lower()
    assert sorted(item["url"] for item in result.items) == sorted(
        site.url(path) for path in site.paths if path.startswith("/ok") and spider is Hanging
    )
    assert result.errors == {}
