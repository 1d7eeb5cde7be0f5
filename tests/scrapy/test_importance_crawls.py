"""Live crawls by importance: what the policy receives about pages, external links and redirects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from crawls import Crawled, crawl
from scrapy import Spider
from scrapy.linkextractors import LinkExtractor

from scrapy_focus import Importance
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response

LINKS = {
    "/": ["/a", "/a", "/b", "http://elsewhere.example/1", "http://elsewhere.example/1", "http://elsewhere.example/2"],
    "/a": ["/b", "/", "/a", "/old"],
    "/b": ["/c", "/moved", "/moved-again"],
    "/c": ["/a", "http://elsewhere.example/3"],
}
MOVED = {"/moved": "/c", "/moved-again": "/moved", "/old": "/"}


class Web:
    """A few pages, some of which redirect."""

    def fetch(self, path: str) -> Page:
        """Answer with the links of a page, or send the visitor on."""
        if path in MOVED:
            return Page.of(b"", status=302, location=MOVED[path])
        links = "".join(f'<a href="{url}">x</a>' for url in LINKS.get(path, ()))
        return Page.of(f"<html><body>{links}</body></html>".encode())


class Follow(Spider):
    """Requests every link, including external ones: Scrapy drops them."""

    name = "follow"
    allowed_domains: ClassVar[list[str]] = ["127.0.0.1"]

    def parse(self, response: Response) -> Iterator[Any]:
        yield from response.follow_all(LinkExtractor(unique=False).extract_links(response))


class Told(Importance):
    """Notes the data that it receives about each page."""

    stores = frozenset({__name__})

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, tuple[int, int]] = {}
        self.numbers: dict[str, int] = {}

    def place(self, links: Any, source: Any) -> Any:
        self.numbers.update((link.url.rpartition("/")[2], link.key) for link in links)
        return super().place(links, source)

    def learn(self, outcome: Any) -> None:
        self.told["/" + outcome.pick.url.rpartition("/")[2]] = outcome.outside, len(outcome.also)
        super().learn(outcome)


@pytest.fixture(scope="module")
def server() -> Iterator[SiteServer]:
    with SiteServer(Web()) as server:
        yield server


def crawled(server: SiteServer, *, addon: bool) -> Crawled:
    settings = {"FOCUS_POLICY": Told, "FOCUS_MAX_INFLIGHT": 1, "FOCUS_SEED": 1}
    result = crawl(Follow, settings, addon=addon, start_urls=[server.url])
    assert not result.errors
    return result


@pytest.mark.parametrize("addon", [False, True])
def test_a_policy_receives_external_links_and_redirects(server: SiteServer, addon: bool) -> None:
    """Different links count once. A redirect to a known page counts as that page."""
    policy = crawled(server, addon=addon).policy
    assert {path: outside for path, (outside, _) in policy.told.items()} == {
        "/": 2 if addon else 0, "/a": 0, "/b": 0, "/c": 1 if addon else 0, "/moved": 0, "/moved-again": 0, "/old": 0,
    }  # fmt: skip
    assert {path for path, (_, also) in policy.told.items() if also} == {"/moved", "/moved-again", "/old"}
    values = {name: policy.values([key])[0] for name, key in policy.numbers.items()}
    assert values["moved"] == values["moved-again"] == values["c"]
    assert values["old"] == values[""]


def test_the_scheduler_is_one_settings_line(server: SiteServer) -> None:
    server.log.clear()
    result = crawl(Follow, {"SCHEDULER": "scrapy_focus.ImportanceScheduler"}, start_urls=[server.url])
    assert type(result.policy) is Importance
    assert {request.path for request in server.log} >= {"/", "/a", "/b", "/c", "/moved", "/old"}
    assert not result.errors
