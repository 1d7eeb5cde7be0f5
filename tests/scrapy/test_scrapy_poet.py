"""Page objects of scrapy-poet, if installed (``pip install scrapy-poet``); otherwise ``Injected`` replaces it."""

# no postponed annotations: scrapy-poet reads those of callbacks, and what they name must be there

from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest
from crawls import STOCK
from habits import Shopper, ran
from scrapy import Request
from scrapy.http import Response

scrapy_poet = pytest.importorskip("scrapy_poet", reason="scrapy-poet is not installed: pip install scrapy-poet")
web_poet = pytest.importorskip("web_poet")

ADDONS = {"scrapy_poet.Addon": 300}


@attrs.define
class Found:
    """The data of a page of a book."""

    title: str
    style: str


class ListPage(web_poet.WebPage):  # type: ignore[name-defined,misc]
    """A list of books."""

    @property
    def links(self) -> list[str]:
        return [self.urljoin(href) for href in self.css("h3 a::attr(href)").getall()]

    @property
    def next(self) -> list[str]:
        return [self.urljoin(href) for href in self.css("li.next a::attr(href)").getall()]


@attrs.define
class BookPage(web_poet.ItemPage[Found]):  # type: ignore[name-defined,misc]
    """The page of a book, which needs that of its category."""

    response: web_poet.HttpResponse
    http: web_poet.HttpClient

    async def to_item(self) -> Found:
        crumbs = self.response.css(".crumbs a::attr(href)").getall()
        category = await self.http.get(self.response.urljoin(crumbs[1]))
        return Found(self.response.css("h1::text").get(), category.css("h1::text").get())


class Poet(Shopper):
    """Reads all pages by page objects, the details first."""

    name = "poet"

    async def start(self) -> Any:
        yield Request(self.site.url("/books/"), self.parse_list)

    def parse_list(self, response: scrapy_poet.DummyResponse, page: ListPage) -> Any:
        for url in page.links:
            yield response.follow(url, self.parse_book, priority=10)
        for url in page.next:
            yield response.follow(url, self.parse_list)

    async def parse_book(self, response: Response, page: BookPage) -> Any:
        yield await page.to_item()


@pytest.mark.parametrize(
    "settings",
    [
        {"SCHEDULER": "scrapy_focus.FocusScheduler", "ADDONS": ADDONS},
        {"ADDONS": {**ADDONS, "scrapy_focus.Addon": 500}},
        {"ADDONS": {"scrapy_focus.Addon": 200, **ADDONS}},
    ],
    ids=["scheduler", "addon", "addon_before"],
)
def test_page_objects(tmp_path: Path, settings: dict[str, Any]) -> None:
    """The same items by the same requests as with Scrapy's own scheduler."""
    for name in ("theirs", "ours"):
        (tmp_path / name).mkdir()
    theirs = ran(Poet, tmp_path / "theirs", {"SCHEDULER": STOCK, "ADDONS": ADDONS})
    ours = ran(Poet, tmp_path / "ours", settings, addon=True)
    assert ours.items == theirs.items
    assert ours.sent == theirs.sent
    assert ours.errors == theirs.errors == Counter()
    assert ours.result.errors == {}
    assert len(theirs.items) == 60
