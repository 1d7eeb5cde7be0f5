"""Known links are dropped next to the spider, and only where the dupefilter would drop them too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, crawl
from mocksite import tree_paths
from scrapy import Request, signals
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.request import RequestFingerprinter

from scrapy_focus import State
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mocksite import MockSite
    from scrapy.crawler import Crawler
    from scrapy.http import Response

PAGES = 30
SEED = f"/page/0/{PAGES}"


class Scheduled(Follower):
    """Counts the requests that come as far as the engine."""

    name = "scheduled"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.scheduled = 0
        crawler.signals.connect(spider.count, signals.request_scheduled)
        return spider

    def count(self) -> None:
        self.scheduled += 1


class Twice(Scheduled):
    """Asks for its first page a second time, in spite of the dupefilter."""

    name = "twice"

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        if response.url.endswith(SEED) and not response.meta.get("again"):
            yield Request(response.url, dont_filter=True, meta={"again": True})


class OtherFilter(RFPDupeFilter):
    """Not Scrapy's own, for all that anybody knows."""


class OtherFingerprinter(RequestFingerprinter):
    """Likewise."""


class Curious(BreadthFirst):
    """Wants to be told of known links, and leaves them as they are."""

    wants_known = True

    def place(self, links: Any, source: Any) -> Any:
        places = super().place(links, source)
        return [place if link.state == State.NEW else None for link, place in zip(links, places, strict=True)]


def test_known_links_go_no_further(site: MockSite) -> None:
    """Each URL comes to the engine about once, and every page is fetched once; without the middleware all come."""
    result = crawl(Scheduled, {"FOCUS_POLICY": BREADTH_FIRST}, addon=True, seeds=[site.url(SEED)])
    assert sorted(site.paths) == sorted(tree_paths(PAGES))
    assert result.stats["focus/link/known"] >= PAGES
    alone = crawl(Scheduled, {"FOCUS_POLICY": BREADTH_FIRST}, seeds=[site.url(SEED)])
    assert result.spider.scheduled + result.stats["focus/link/known"] == alone.spider.scheduled
    assert "focus/link/known" not in alone.stats


def test_what_is_not_to_be_filtered_is_not_dropped(site: MockSite) -> None:
    """A request with ``dont_filter`` goes out though its URL is known."""
    crawl(Twice, {"FOCUS_POLICY": BREADTH_FIRST}, addon=True, seeds=[site.url(SEED)])
    assert sorted(site.paths) == sorted([*tree_paths(PAGES), SEED])


@pytest.mark.parametrize(
    "settings",
    [{"DUPEFILTER_CLASS": OtherFilter}, {"REQUEST_FINGERPRINTER_CLASS": OtherFingerprinter}, {"FOCUS_POLICY": Curious}],
    ids=["dupefilter", "fingerprinter", "policy"],
)
def test_where_it_could_differ_it_stands_back(site: MockSite, settings: dict[str, Any]) -> None:
    """With a dupefilter or fingerprinter that is not Scrapy's, or a policy that wants known links, none is dropped."""
    result = crawl(Scheduled, {"FOCUS_POLICY": BREADTH_FIRST, **settings}, addon=True, seeds=[site.url(SEED)])
    assert "focus/link/known" not in result.stats
    assert set(site.paths) == set(tree_paths(PAGES))
