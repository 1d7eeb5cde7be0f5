"""HEAD first where the policy asks for it, and bodies of unwanted types stopped."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, SomeHeadsFirst, crawl
from mocksite import tree_paths
from scrapy import Request, Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
ALL_HEADS = {"FOCUS_POLICY": SomeHeadsFirst, "FOCUS_POLICY_PARAMS": {"modulus": 1}}


class Methods(Follower):
    """Notes how the responses were asked for that reach it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.methods: Counter[str] = Counter()

    def parse(self, response: Response) -> Iterator[Any]:
        self.methods[response.request.method] += 1
        assert response.body
        yield from super().parse(response)


@pytest.mark.reactor
@ADDON
def test_heads_come_first_and_stay_out_of_the_spider(site: MockSite, addon: bool) -> None:
    """Every page is asked for with HEAD and then with GET, and the spider sees the GETs alone."""
    result = crawl(Methods, ALL_HEADS, addon=addon, seeds=[site.url("/page/0/30")])
    assert Counter(site.asked) == Counter([(method, path) for method in ("HEAD", "GET") for path in tree_paths(30)])
    assert result.spider.methods == {"GET": 30}
    assert result.outcomes == {"probed": 30, "ok": 30}
    assert result.stats["focus/selected"] == 60
    assert result.stats["focus/reward"] == 30


@ADDON
def test_what_heads_find(site: MockSite, tmp_path: Path, addon: bool) -> None:
    """A HEAD returns status, type and size; a failed one leaves the rest to the policy, a redirect is followed."""
    paths = [
        "/file?type=text/csv&size=1234", "/status?code=404", "/redirect?to=/ok?x", "/forbidden", "/truncated", "/reset",
    ]  # fmt: skip
    log = tmp_path / "log.jsonl"
    result = crawl(
        Methods, {**ALL_HEADS, "FOCUS_LOG": str(log), "ROBOTSTXT_OBEY": True, "RETRY_ENABLED": False}, addon=addon,
        seeds=[site.url(path) for path in paths],
    )  # fmt: skip
    events = result.events()
    heads = {event["id"]: event["url"] for event in events if event["event"] == "pick" and event["method"] == "HEAD"}
    found = {
        heads[event["id"]].removeprefix(site.url("")): (event["status"], event["mime"], event["size"])
        for event in events
        if event["event"] == "outcome" and event["id"] in heads
    }
    size = len(site.answer("/ok?x")[2])
    assert found["/file?type=text/csv&size=1234"] == (200, "text/csv", 1234)
    assert found["/status?code=404"][:2] == (404, "text/html")
    assert found["/redirect?to=/ok?x"] == (200, "text/html", size)
    assert found["/forbidden"] == (None, "", 0)
    assert found["/reset"] == (None, "", 0)
    assert not any("/forbidden" in path for _, path in site.asked)
    assert ("GET", "/reset") in site.asked
    assert result.outcomes["probed"] == 4


class Attached(Spider):
    """Makes requests that can only be kept in memory."""

    name = "attached"

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site

    async def start(self) -> AsyncIterator[Any]:
        self.box: list[int] = []
        for i in range(5):
            yield Request(
                self.site.url(f"/ok?{i}"), lambda response, i=i: [{"i": i, "same": response.meta["box"] is self.box}],
                errback=lambda failure: [{"failed": 1}], meta={"box": self.box}, headers={"X-I": str(i)}, cookies={"c": "1"},
            )  # fmt: skip


@ADDON
def test_requests_survive_their_heads(site: MockSite, addon: bool) -> None:
    """After the HEAD, the request goes out with its callback, meta, headers and cookies."""
    result = crawl(Attached, ALL_HEADS, addon=addon, site=site)
    assert sorted(item["i"] for item in result.items) == [0, 1, 2, 3, 4]
    assert all(item["same"] for item in result.items)
    assert len(site.log) == 10
    assert all(seen.headers["x-i"] == seen.path[-1] for seen in site.log)


@pytest.mark.reactor
@ADDON
def test_targets_by_heads(site: MockSite, addon: bool) -> None:
    """With FOCUS_TARGETS the sleeping bandit asks with HEAD until it knows targets by their URLs; all targets are found."""
    files = "".join(f'<a href="/file?type=text/csv&amp;size=100&amp;n={i}.csv">{i}</a>' for i in range(60))
    site.pages["/files"] = f'<a href="/page/0/20">tree</a><div class="files">{files}</div>'
    settings = {"FOCUS_TARGETS": "csv", "FOCUS_POLICY": "scrapy_focus.policies.tagpath.TagPath"}
    result = crawl(Follower, settings, addon=addon, seeds=[site.url("/files")])
    asked = [method for method, path in site.asked if path.startswith("/file?")]
    assert asked.count("GET") == 60
    assert 5 <= asked.count("HEAD") <= 40
    assert result.stats["focus/reward"] == 60


LARGE, SMALL = "/file?type=image/png&size=200000", "/file?type=image/png&size=1000"
HIDDEN = "/file?type=video/mp4&size=200000&hide=1"


@pytest.mark.reactor
def test_unwanted_types_are_stopped(site: MockSite) -> None:
    """Large bodies of blocked types are aborted and small ones dropped; neither reaches the spider."""
    seeds = [site.url(path) for path in (LARGE, SMALL, HIDDEN, "/ok")]
    result = crawl(Methods, {}, addon=True, seeds=seeds)
    assert result.spider.methods == {"GET": 1}
    assert result.outcomes == {"mime_stop": 3, "ok": 1}
    assert result.stats["focus/mime/aborted"] == 2
    assert result.stats["focus/mime/aborted_bytes"] == 200_000
    assert result.stats["focus/mime/dropped"] == 1
    assert len(site.log) == 4
    assert result.stats["focus/bytes"] < 5_000


@pytest.mark.parametrize(
    "settings", [{"FOCUS_TARGETS": "image/png,mp4"}, {"FOCUS_BLOCKED_MIMES": "font/woff"}], ids=["targets", "blocked"]
)
def test_wanted_types_are_never_stopped(site: MockSite, settings: dict[str, Any]) -> None:
    """A target is read completely, though its type is blocked by default; so are unblocked types."""
    result = crawl(Methods, settings, addon=True, seeds=[site.url(path) for path in (LARGE, SMALL, HIDDEN)])
    assert result.spider.methods == {"GET": 3}
    assert result.outcomes["ok"] == 3
    assert "focus/mime/aborted" not in result.stats


@pytest.mark.reactor
def test_the_cache_keeps_no_stopped_body(site: MockSite, tmp_path: Path) -> None:
    """A body stopped in a run with the HTTP cache is fetched completely in the next, if it is wanted."""
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    seeds = [site.url(path) for path in (LARGE, SMALL, HIDDEN, "/ok")]
    crawl(Methods, cache, addon=True, seeds=seeds)
    site.log.clear()
    result = crawl(Methods, {**cache, "FOCUS_BLOCKED_MIMES": "font/woff"}, addon=True, seeds=seeds)
    assert sorted(site.paths) == sorted([LARGE, SMALL, HIDDEN])
    assert result.outcomes == {"ok": 4}
