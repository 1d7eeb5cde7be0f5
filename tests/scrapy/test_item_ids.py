"""Items with an id that is the same whenever their page is fetched, so that repeats can be dropped."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import logging
import re
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import scrapy
from crawls import STOCK, Crawled, crawl
from mocksite import MockSite, tree_paths
from scrapy import Request, Spider
from scrapy.settings import Settings

from scrapy_focus import ConfigError
from scrapy_focus.config import Config
from scrapy_focus.policies.orderings import BreadthFirst, Random
from scrapy_focus.spidermiddlewares import ItemIdMiddleware

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from scrapy.http import Response

IDS: dict[str, Any] = {"FOCUS_ITEM_ID": "item_id"}


class _OnSite(Spider):
    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site


class Several(_OnSite):
    """Yields two items for each page of a tree, and one more by another callback for another page."""

    name = "several"

    async def start(self) -> AsyncIterator[Any]:
        yield {"what": "start"}
        yield {"what": "start again"}
        yield Request(self.site.url("/page/0/20"))

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        path = response.url.removeprefix(self.site.url(""))
        yield {"what": f"{path} first"}
        await asyncio.sleep(0.001)
        yield None
        yield response.follow(f"/ok?{path}", self.parse_more)
        yield {"what": f"{path} second"}
        for link in response.follow_all(css="a"):
            yield link

    def parse_more(self, response: Response) -> list[Any]:
        return [{"what": f"{response.url.removeprefix(self.site.url(''))} {i}"} for i in range(3)]


def ids(result: Crawled) -> dict[str, str]:
    """Return the id of each item."""
    found = {item["what"]: item["item_id"] for item in result.items}
    assert len(found) == len(result.items)
    assert len(set(found.values())) == len(found)
    return found


@pytest.mark.reactor
def test_the_same_in_every_run(site: MockSite) -> None:
    """Each item has a unique id, and the same one in a crawl with another order of pages."""
    first = ids(crawl(Several, {**IDS, "FOCUS_POLICY": BreadthFirst}, addon=True, site=site))
    order = list(site.paths)
    site.log.clear()
    second = ids(crawl(Several, {**IDS, "FOCUS_POLICY": Random, "FOCUS_SEED": 3}, addon=True, site=site))
    assert order != site.paths
    assert first == second
    assert len(first) == 2 + 20 * 5
    assert all(re.fullmatch(r"[0-9a-f]{16}-[1-9]", value) for value in first.values())
    assert {first["start"], first["start again"]} == {f"{0:016x}-1", f"{0:016x}-2"}
    for path in tree_paths(20):
        assert first[f"{path} first"].endswith("-1")
        assert first[f"{path} first"][:-1] == first[f"{path} second"][:-1] != first[f"/ok?{path} 0"][:-1]


def test_the_same_after_a_stop(site: MockSite, tmp_path: Path) -> None:
    """Over two runs with one JOBDIR the ids are those of one run, and a page's id is the key of its pick."""
    whole = ids(crawl(Several, IDS, addon=True, site=site))
    settings = {**IDS, "JOBDIR": str(tmp_path)}
    first = crawl(Several, {**settings, "CLOSESPIDER_PAGECOUNT": 9}, addon=True, site=site)
    second = crawl(Several, settings, addon=True, site=site)
    assert 0 < len(first.items) < len(whole)
    assert ids(first) | ids(second) == whole
    keys = {int(value.partition("-")[0], 16) for value in whole.values()} - {0}
    fingerprint = second.crawler.request_fingerprinter.fingerprint
    urls = [*tree_paths(20), *(f"/ok?{path}" for path in tree_paths(20))]
    assert keys == {int.from_bytes(fingerprint(Request(site.url(url)))[:8], "big") >> 1 for url in urls}


class Redirected(_OnSite):
    """Requests pages that redirect, fail at first, or are fetched twice with different callbacks."""

    name = "redirected"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.site.url("/redirect?to=/ok?there"), cb_kwargs={"what": "redirected"})
        yield Request(self.site.url("/status?code=404"), cb_kwargs={"what": "x"}, errback=self.rescue)
        yield Request(self.site.url("/ok?same"), cb_kwargs={"what": "one"}, dont_filter=True)
        yield Request(self.site.url("/ok?same"), cb_kwargs={"what": "two"}, dont_filter=True)
        yield Request("http://127.0.0.1:9/", cb_kwargs={"what": "x"}, errback=self.rescue, meta={"max_retry_times": 0})

    def parse(self, response: Response, what: str) -> Iterator[Any]:
        yield {"what": what}

    def rescue(self, failure: Any) -> Iterator[Any]:
        yield {"what": "error page" if hasattr(failure.value, "response") else "no page"}


def test_redirects_errbacks_and_pages_that_come_twice(site: MockSite) -> None:
    """A redirect keeps the id of its request, a second request for a URL has another; without a page there is none."""
    result = crawl(Redirected, IDS, addon=True, site=site)
    items = {item["what"]: item.get("item_id") for item in result.items}
    assert items.pop("no page") is None
    assert len(items) == len(set(items.values())) == 4
    fingerprint = result.crawler.request_fingerprinter.fingerprint
    key = int.from_bytes(fingerprint(Request(site.url("/redirect?to=/ok?there")))[:8], "big") >> 1
    assert items["redirected"] == f"{key:016x}-1"


@dataclasses.dataclass
class Data:
    """A dataclass with the field."""

    what: str
    item_id: str = ""


@attrs.define
class Attrs:
    """A class of attrs with the field."""

    what: str
    item_id: str | None = None


class Classic(scrapy.Item):
    """An item of Scrapy with the field."""

    what = scrapy.Field()
    item_id = scrapy.Field()


@dataclasses.dataclass
class Bare:
    """A dataclass without the field."""

    what: str


class BareClassic(scrapy.Item):
    """An item of Scrapy without the field."""

    what = scrapy.Field()


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A dataclass whose fields cannot be set."""

    what: str
    item_id: str = ""


class Kinds(_OnSite):
    """Yields the given items, on two pages."""

    name = "kinds"
    kinds: list[Any] = []

    async def start(self) -> AsyncIterator[Any]:
        for i in range(2):
            yield Request(self.site.url(f"/ok?{i}"))

    def parse(self, response: Response) -> Iterator[Any]:
        for kind in self.kinds:
            yield kind(what="x") if callable(kind) else kind


@pytest.mark.parametrize("scheduler", ["ours", "stock"])
@pytest.mark.parametrize("kind", [dict, Data, Attrs, Classic])
def test_every_kind_of_item(site: MockSite, kind: Any, scheduler: str) -> None:
    """Dicts and items of classes that have the field get an id; with another scheduler, that of their request."""
    spider = type("OneKind", (Kinds,), {"kinds": [kind]})
    settings = IDS if scheduler == "ours" else {**IDS, "SCHEDULER": STOCK}
    result = crawl(spider, settings, addon=True, site=site)
    fingerprint = result.crawler.request_fingerprinter.fingerprint
    keys = [int.from_bytes(fingerprint(Request(site.url(f"/ok?{i}")))[:8], "big") >> 1 for i in range(2)]
    found = {item.item_id if hasattr(item, "item_id") else item["item_id"] for item in result.items}
    assert found == {f"{key:016x}-1" for key in keys}
    assert not result.errors


@pytest.mark.parametrize("scheduler", ["ours", "stock"])
def test_items_without_the_field(site: MockSite, scheduler: str) -> None:
    """An item without room for an id is unchanged; the log says once for each class what to do, and all are counted."""
    spider = type("Unfit", (Kinds,), {"kinds": [Bare, BareClassic, dict, Frozen]})
    result = crawl(spider, IDS if scheduler == "ours" else {**IDS, "SCHEDULER": STOCK}, addon=True, site=site)
    assert len(result.items) == 8
    assert all(item["item_id"].endswith("-3") for item in result.items if isinstance(item, dict))
    for kind in ("Bare", "BareClassic", "Frozen"):
        [message] = result.logged(f"items of {kind} get no id")
        assert "give the class a field item_id" in message
    assert result.stats["log_count/ERROR"] == 3
    assert result.errors == ({"item_id": 6} if scheduler == "ours" else {})


class Reused(_OnSite):
    """Yields items that have an id already: an own one, or that of the item before, in the same object or a copy."""

    name = "reused"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.site.url("/ok"))

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"what": "own", "item_id": "mine"}
        yield {"what": "number", "item_id": 7}
        item: dict[str, Any] = {"what": "object", "item_id": None}
        yield item
        yield {**item, "what": "copy"}
        yield response.follow("/ok?more", self.parse_more, meta={"item": item})

    def parse_more(self, response: Response) -> Iterator[Any]:
        yield {**response.meta["item"], "what": "finished"}


def test_a_field_that_is_filled(site: MockSite) -> None:
    """An id that the spider gave stays, also that of the page where an item was begun; a copy of an item gets its own."""
    found = {item["what"]: item["item_id"] for item in crawl(Reused, IDS, addon=True, site=site).items}
    assert found["own"] == "mine"
    assert found["number"] == 7
    assert found["object"].endswith("-3")
    assert found["copy"] == found["object"][:-1] + "4"
    assert found["finished"] == found["object"]


def test_nothing_is_remembered_of_pages_that_are_done(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of a page go with its response."""
    monkeypatch.setattr(logging.getLogger("scrapy.core.scraper"), "disabled", True)  # its records keep responses
    result = crawl(Several, IDS, addon=True, site=site)
    middleware = result.crawler.get_spider_middleware(ItemIdMiddleware)
    assert middleware is not None
    gc.collect()
    assert len(middleware._given) == 0


@pytest.mark.parametrize("addon", [False, True])
def test_off_by_default(site: MockSite, addon: bool) -> None:
    """Without the setting items are not changed, nothing is logged about it, and the middleware does not exist."""
    result = crawl(Several, {}, addon=addon, site=site)
    assert not any("item_id" in item for item in result.items)
    assert result.crawler.get_spider_middleware(ItemIdMiddleware) is None
    assert not result.logged("ItemIdMiddleware")


@pytest.mark.parametrize("value", [True, "two words", "1st", 7, ["item_id"]])
def test_values_that_name_no_field(site: MockSite, value: Any) -> None:
    """What cannot be the name of a field is an error before anything is sent."""
    with pytest.raises(ConfigError, match=r"FOCUS_ITEM_ID is .*; it takes the name of a field"):
        Config.from_settings(Settings({"FOCUS_ITEM_ID": value}), BreadthFirst)
    with pytest.raises(ConfigError, match="FOCUS_ITEM_ID"):
        crawl(Several, {"FOCUS_ITEM_ID": value}, addon=True, site=site)
    assert site.log == []
