"""Known links are dropped right after the spider, and only if the dupefilter would drop them too."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Crawled, Follower, crawl
from mocksite import tree_paths
from scrapy import Request, signals
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.request import RequestFingerprinter

from scrapy_focus import State
from scrapy_focus.core.types import NOT_NOW
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mocksite import MockSite
    from scrapy.crawler import Crawler
    from scrapy.http import Response

PAGES = 30
SEED = f"/page/0/{PAGES}"


class Scheduled(Follower):
    """Counts the requests that reach the engine."""

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
    """Not known to be Scrapy's own."""


class OtherFingerprinter(RequestFingerprinter):
    """Likewise."""


class Watchful(BreadthFirst):
    """Notes everything that it receives, and its choices."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[tuple[str, list[tuple[str, State]]]] = []  # by page: URLs of its links, and their states
        self.chosen: list[str] = []

    def place(self, links: Any, source: Any) -> Any:
        self.given.append((source.pick.url if source else "", [(link.url, link.state) for link in links]))
        places = super().place(links, source)
        return [place if link.state == State.NEW else None for link, place in zip(links, places, strict=True)]

    def select(self, busy: Any) -> Any:
        pick = super().select(busy)
        if pick is not None:
            self.chosen.append(pick.url)
        return pick


class Mover(Watchful):
    """Receives links to queued URLs, too."""

    wants_known = frozenset({State.WAITING})


class Visitor(Watchful):
    """Receives links to fetched URLs, too."""

    wants_known = frozenset({State.FETCHED})


class Knower(Watchful):
    """Sees the keys of links to known URLs."""

    def __init__(self) -> None:
        super().__init__()
        self.known: list[tuple[str, list[int]]] = []

    def know(self, keys: Any, source: Any) -> None:
        self.known.append((source.pick.url, list(keys)))


class Hesitant(BreadthFirst):
    """Answers "not now" for each link until a third page has it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = Counter[str]()

    def place(self, links: Any, source: Any) -> Any:
        self.asked.update(link.url for link in links)
        places = super().place(links, source)
        return [
            place if source is None or self.asked[link.url] == 3 else NOT_NOW
            for link, place in zip(links, places, strict=True)
        ]


def test_known_links_go_no_further(site: MockSite) -> None:
    """Each URL reaches the engine about once, and every page is fetched once; without the middleware all do."""
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
    "settings", [{"DUPEFILTER_CLASS": OtherFilter}, {"REQUEST_FINGERPRINTER_CLASS": OtherFingerprinter}],
    ids=["dupefilter", "fingerprinter"],
)  # fmt: skip
def test_where_it_could_differ_it_stands_back(site: MockSite, settings: dict[str, Any]) -> None:
    """With a dupefilter or fingerprinter that is not Scrapy's, none is dropped."""
    result = crawl(Scheduled, {"FOCUS_POLICY": BREADTH_FIRST, **settings}, addon=True, seeds=[site.url(SEED)])
    assert "focus/link/known" not in result.stats
    assert set(site.paths) == set(tree_paths(PAGES))


def with_and_without(site: MockSite, policy: type, seed: str = SEED) -> tuple[Crawled, Crawled]:
    """Crawl with and without the add-on, one request in flight; both yield the same items and fetch the same pages."""
    settings = {"FOCUS_POLICY": policy, "FOCUS_MAX_INFLIGHT": 1}
    ours = crawl(Scheduled, settings, addon=True, seeds=[site.url(seed)])
    asked = list(site.paths)
    site.log.clear()
    alone = crawl(Scheduled, settings, seeds=[site.url(seed)])
    assert list(site.paths) == asked
    assert ours.items == alone.items
    assert ours.errors == alone.errors == {}
    assert "focus/link/known" not in alone.stats
    return ours, alone


@pytest.mark.parametrize("policy", [Mover, Visitor])
def test_only_what_a_policy_does_not_want_is_dropped(site: MockSite, policy: Any) -> None:
    """Links in a wanted state pass, all others are dropped, and it receives the same as without the add-on."""
    for page in range(PAGES):
        near = [(page + step) % PAGES for step in (-3, 0, 1, 2, 2, 9)]
        site.pages[f"/ring/{page}"] = "".join(f'<a href="/ring/{other}">{other}</a>' for other in near)
    ours, alone = with_and_without(site, policy, "/ring/0")
    assert len(site.paths) == PAGES
    assert ours.scheduler.crawl.policy.given == alone.scheduler.crawl.policy.given
    assert ours.scheduler.crawl.policy.chosen == alone.scheduler.crawl.policy.chosen
    states = {state for _, links in alone.scheduler.crawl.policy.given for _, state in links}
    assert states == {State.NEW} | policy.wants_known
    assert 0 < ours.stats["focus/link/known"] <= alone.spider.scheduled - ours.spider.scheduled


def test_a_policy_sees_the_keys_of_known_links(site: MockSite) -> None:
    """In document order, each as often as it occurs, except those that the page is the first to have."""
    ours, alone = with_and_without(site, Knower)
    known, policy = ours.scheduler.crawl.policy.known, ours.scheduler.crawl.policy
    assert known == alone.scheduler.crawl.policy.known
    assert policy.given == alone.scheduler.crawl.policy.given
    assert ours.stats["focus/link/known"] == alone.spider.scheduled - ours.spider.scheduled > 0
    assert {state for _, links in policy.given for _, state in links} == {State.NEW}

    site.pages["/a"] = '<a href="/b">b</a><a href="/a">a</a><a href="/b">b</a><a href="/c">c</a><a href="/a">a</a>'
    site.pages["/b"] = '<a href="/c">c</a><a href="/d">d</a><a href="/b">b</a><a href="/a">a</a><a href="/c">c</a>'
    site.pages |= {"/c": "c", "/d": "d"}
    site.log.clear()
    ours, alone = with_and_without(site, Knower, "/a")
    key_of = {
        url.rpartition("/")[2]: ours.scheduler.focus_host.links.key(Request(url))
        for url in ours.scheduler.crawl.policy.chosen
    }
    a, b, c, _ = (key_of[name] for name in "abcd")
    expected = [(site.url("/a"), [a, a]), (site.url("/b"), [c, b, a, c])]
    assert ours.scheduler.crawl.policy.known == alone.scheduler.crawl.policy.known == expected


def test_not_now_is_no_giving_up(site: MockSite) -> None:
    """A link that the policy left unchanged comes again with the next page that has it."""
    for page in range(4):
        site.pages[f"/from/{page}"] = '<a href="/to/1">1</a><a href="/to/2">2</a><a href="/to/2">2 again</a>'
    site.pages |= {"/to/1": "1", "/to/2": "2"}
    asked = []
    for addon in (True, False):
        site.log.clear()
        seeds = [site.url(f"/from/{page}") for page in range(4)]
        result = crawl(Follower, {"FOCUS_POLICY": Hesitant, "FOCUS_MAX_INFLIGHT": 1}, addon=addon, seeds=seeds)
        assert result.errors == {}
        asked.append(list(site.paths))
    assert asked[0] == asked[1]
    assert asked[0] == ["/from/0", "/from/1", "/from/2", "/from/3", "/to/1", "/to/2"]
    assert "focus/link/given_up" not in result.stats


class Merciful(Watchful):
    """Gives each link up the first time, except seeds, and takes it the second time."""

    wants_known = frozenset({State.GIVEN_UP})

    def place(self, links: Any, source: Any) -> Any:
        super().place(links, source)
        places = BreadthFirst.place(self, links, source)
        return [
            place if source is None or link.state == State.GIVEN_UP else None
            for link, place in zip(links, places, strict=True)
        ]


class Partial(Scheduled):
    """Yields requests that are kept in memory, with a callback that cannot be stored."""

    name = "partial"

    def parse(self, response: Response) -> Iterator[Any]:
        for result in super().parse(response):
            yield result if isinstance(result, dict) else result.replace(callback=partial(self.parse))


def test_what_was_given_up_may_be_placed_after_all(site: MockSite) -> None:
    """Only by a policy that asks for it; the requests of links that are given up are not held."""
    links = '<a href="/once">1</a>', '<a href="/twice">2</a>'
    site.pages |= {"/a": "".join(links), "/b": links[1], "/once": "1", "/twice": "2"}
    seeds = [site.url("/a"), site.url("/b")]
    for addon in (True, False):
        site.log.clear()
        result = crawl(Partial, {"FOCUS_POLICY": Merciful, "FOCUS_MAX_INFLIGHT": 1}, addon=addon, seeds=seeds)
        assert site.paths == ["/a", "/b", "/twice"]
        assert result.policy.given[-2:] == [
            (seeds[0], [(site.url("/once"), State.NEW), (site.url("/twice"), State.NEW)]),
            (seeds[1], [(site.url("/twice"), State.GIVEN_UP)]),
        ]
        assert result.stats["focus/link/given_up"] == 2
        assert result.stats["focus/link/kept"] == 3
        assert len(result.scheduler.focus_host.requests) == 0
        assert result.errors == {}


@pytest.mark.parametrize("addon", [False, True])
def test_a_known_request_costs_no_fingerprint(site: MockSite, monkeypatch: pytest.MonkeyPatch, addon: bool) -> None:
    """Its URL is looked up first: only requests new to the crawl need a fingerprint."""
    asked: dict[int, Request] = {}
    fingerprint = RequestFingerprinter.fingerprint

    def counting(self: RequestFingerprinter, request: Request) -> bytes:
        asked[id(request)] = request
        return fingerprint(self, request)

    monkeypatch.setattr(RequestFingerprinter, "fingerprint", counting)
    for page in range(PAGES):
        site.pages[f"/ring/{page}"] = "".join(
            f'<a href="/ring/{(page + step) % PAGES}">x</a>' for step in (1, 2, 3, 5, 8)
        )
    result = crawl(Scheduled, {"FOCUS_POLICY": BREADTH_FIRST}, addon=addon, seeds=[site.url("/ring/0")])
    assert len(site.paths) == PAGES
    assert len(asked) == PAGES
    if not addon:
        assert result.spider.scheduled == 1 + 5 * PAGES
