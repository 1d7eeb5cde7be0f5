"""Each spider yields the same items as with Scrapy's own scheduler, whatever its author's habits."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, STOCK, crawl
from habits import HABITS, Categories, Details, Everywhere, Ran, Rules, ScrollByPost, Shopper, ran
from shopsite import ShopSite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scrapy import Spider
    from scrapy.http import Response

ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Callable[[type[Spider]], Ran]:
    """The items of a spider with Scrapy's own scheduler."""

    @cache
    def run(spider: type[Spider]) -> Ran:
        return ran(spider, tmp_path_factory.mktemp("stock"), {"SCHEDULER": STOCK})

    return run


@pytest.mark.few(4)
@pytest.mark.filterwarnings("ignore:FormRequest.from_response")
@ADDON
@pytest.mark.parametrize("spider", HABITS, ids=[each.name for each in HABITS])
def test_items_are_those_of_the_stock_scheduler(
    stock: Callable[[type[Spider]], Ran], tmp_path: Path, spider: type[Spider], addon: bool
) -> None:
    """The same items are yielded and stored, by the same requests, and there are no other complaints in the log."""
    theirs, ours = stock(spider), ran(spider, tmp_path, addon=addon)
    assert ours.items == theirs.items
    assert ours.fed == theirs.fed
    assert ours.sent == theirs.sent
    assert ours.reason == theirs.reason == "finished"
    assert ours.errors == theirs.errors
    assert ours.result.errors == {}
    assert "lost" not in ours.result.outcomes
    assert len(theirs.items) >= 2


@pytest.mark.slow
@pytest.mark.reactor
@ADDON
@pytest.mark.parametrize("spider", [Details, Rules, Everywhere], ids=lambda spider: spider.name)
def test_a_second_run_from_the_cache(
    stock: Callable[[type[Spider]], Ran], tmp_path: Path, spider: type[Spider], addon: bool
) -> None:
    """With ``HTTPCACHE_ENABLED`` the second run yields the same items, and sends no requests."""
    with ShopSite() as site:
        first = ran(spider, tmp_path, {"HTTPCACHE_ENABLED": True}, addon=addon, site=site)
        second = ran(spider, tmp_path, {"HTTPCACHE_ENABLED": True}, addon=addon, site=site)
    assert first.items == second.items == stock(spider).items
    assert set(first.sent) == set(stock(spider).sent)
    assert second.sent == Counter()
    assert second.reason == "finished"
    assert second.result.stats["httpcache/hit"] == sum(stock(spider).sent.values())
    assert second.errors == Counter()


@pytest.mark.few(2)
@ADDON
@pytest.mark.parametrize("spider", [Details, Categories, Rules, ScrollByPost], ids=lambda spider: spider.name)
def test_two_runs_with_one_job(
    stock: Callable[[type[Spider]], Ran], tmp_path: Path, spider: type[Spider], addon: bool
) -> None:
    """A crawl that is stopped and run again yields each item once, and callbacks get all their values."""
    job = {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 4}
    with ShopSite() as site:
        first = ran(spider, tmp_path, {**job, "CLOSESPIDER_PAGECOUNT": 4}, addon=addon, site=site)
        second = ran(spider, tmp_path, job, addon=addon, site=site)
    assert (first.reason, second.reason) == ("closespider_pagecount", "finished")
    assert first.items + second.items == stock(spider).items
    assert second.items
    assert first.errors == second.errors == Counter()


class Waited(Shopper):
    """Starts with a page that the server answers when all others were asked for."""

    name = "waited"
    paths = ("/ok?slow", *(f"/ok?{number}" for number in range(9)))

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"path": response.url.removeprefix(self.site.url(""))}


@pytest.mark.parametrize(
    ("settings", "addon"),
    [
        pytest.param({"SCHEDULER": STOCK}, False, marks=pytest.mark.slow, id="stock"),
        pytest.param({}, False, marks=pytest.mark.slow, id="scheduler"),
        pytest.param({}, True, id="addon"),
    ],
)
@pytest.mark.parametrize(
    "slow",
    [{"DOWNLOAD_DELAY": 0.02}, {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.02}],
    ids=["delay", "throttle"],
)
def test_a_page_that_does_not_come_holds_up_no_other(
    settings: dict[str, Any], addon: bool, slow: dict[str, Any]
) -> None:
    """Even with a delay, a host gets more requests while one of its pages hangs."""
    with ShopSite() as site:
        site.answers["/ok?slow"] = lambda times: site.wait_for(len(Waited.paths))
        settings = {**settings, **slow, "DOWNLOAD_TIMEOUT": 180, "RETRY_ENABLED": False, "FOCUS_POLICY": BREADTH_FIRST}
        result = crawl(Waited, settings, addon=addon, site=site)
    assert len(result.items) == len(Waited.paths)
    assert result.reason == "finished"
