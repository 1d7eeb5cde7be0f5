"""Each spider gives the same items as with Scrapy's own scheduler, whatever habits who wrote it has."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest
from crawls import STOCK
from habits import HABITS, Categories, Details, Everywhere, Ran, Rules, ScrollByPost, ran
from shopsite import ShopSite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy import Spider

ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Callable[[type[Spider]], Ran]:
    """What a spider gives with Scrapy's own scheduler."""

    @cache
    def run(spider: type[Spider]) -> Ran:
        return ran(spider, tmp_path_factory.mktemp("stock"), {"SCHEDULER": STOCK})

    return run


@pytest.mark.filterwarnings("ignore:FormRequest.from_response")
@ADDON
@pytest.mark.parametrize("spider", HABITS, ids=[each.name for each in HABITS])
def test_items_are_those_of_the_stock_scheduler(
    stock: Callable[[type[Spider]], Ran], tmp_path: Path, spider: type[Spider], addon: bool
) -> None:
    """The same items come out and into the feed, by the same requests, and nothing else is complained of."""
    theirs, ours = stock(spider), ran(spider, tmp_path, addon=addon)
    assert ours.items == theirs.items
    assert ours.fed == theirs.fed
    assert ours.sent == theirs.sent
    assert ours.reason == theirs.reason == "finished"
    assert ours.errors == theirs.errors
    assert ours.result.errors == {}
    assert "lost" not in ours.result.outcomes
    assert len(theirs.items) >= 2


@pytest.mark.reactor
@ADDON
@pytest.mark.parametrize("spider", [Details, Rules, Everywhere], ids=lambda spider: spider.name)
def test_a_second_run_from_the_cache(
    stock: Callable[[type[Spider]], Ran], tmp_path: Path, spider: type[Spider], addon: bool
) -> None:
    """With ``HTTPCACHE_ENABLED`` the second run gives the same items, and asks the server for nothing."""
    with ShopSite() as site:
        first = ran(spider, tmp_path, {"HTTPCACHE_ENABLED": True}, addon=addon, site=site)
        second = ran(spider, tmp_path, {"HTTPCACHE_ENABLED": True}, addon=addon, site=site)
    assert first.items == second.items == stock(spider).items
    assert set(first.sent) == set(stock(spider).sent)
    assert second.sent == Counter()
    assert second.reason == "finished"
    assert second.result.stats["httpcache/hit"] == sum(stock(spider).sent.values())
    assert second.errors == Counter()


@ADDON
@pytest.mark.parametrize("spider", [Details, Categories, Rules, ScrollByPost], ids=lambda spider: spider.name)
def test_two_runs_with_one_job(
    stock: Callable[[type[Spider]], Ran], tmp_path: Path, spider: type[Spider], addon: bool
) -> None:
    """A crawl that is stopped in the middle and run again gives each item once, callbacks with all that they carry."""
    job = {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 4}
    with ShopSite() as site:
        first = ran(spider, tmp_path, {**job, "CLOSESPIDER_PAGECOUNT": 4}, addon=addon, site=site)
        second = ran(spider, tmp_path, job, addon=addon, site=site)
    assert (first.reason, second.reason) == ("closespider_pagecount", "finished")
    assert first.items + second.items == stock(spider).items
    assert second.items
    assert first.errors == second.errors == Counter()
