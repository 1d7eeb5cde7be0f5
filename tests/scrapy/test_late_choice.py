"""Requests are chosen when they can start: no host starves, nothing goes stale, one at a time is one at a time."""

from __future__ import annotations

import statistics
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, crawl
from mocksite import MockSite, Seen, tree_paths

from scrapy_focus import Ordering

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DELAY = 0.1
TURNS = 24  # requests to a host, about
TOGETHER = threading.Lock()
POLITE = {"DOWNLOAD_DELAY": DELAY, "DOWNLOAD_DELAY_JITTER": 0}


class Greedy(Ordering):
    """Takes everything from one host before it looks at the others, and remembers when it chose what."""

    def __init__(self, *, favourite: str) -> None:
        self.favourite = favourite
        self.chosen: dict[str, float] = {}

    def rank(self, link: Any, source: Any) -> float:
        return float(link.host == self.favourite)

    def explain(self, pick: Any) -> dict[str, Any]:
        self.chosen[pick.url] = time.monotonic()
        return {}


pytestmark = pytest.mark.alone


@pytest.fixture
def hosts() -> Iterator[list[MockSite]]:
    """Four sites, each on a different address."""
    with ExitStack() as stack:
        yield [stack.enter_context(MockSite(f"127.0.0.{i}")) for i in range(1, 5)]


@pytest.mark.few(1)
@pytest.mark.reactor
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
@pytest.mark.parametrize("n_hosts", [2, 4])
def test_no_host_starves(hosts: list[MockSite], n_hosts: int, addon: bool, tmp_path: Path) -> None:
    """With a delay, all hosts serve as many pages, though the policy wants only one; choices are one delay ahead."""
    hosts = hosts[:n_hosts]
    settings = {
        "FOCUS_POLICY": Greedy, "FOCUS_POLICY_PARAMS": {"favourite": hosts[0].host}, "FOCUS_LOG": str(tmp_path / "log"),
        "FOCUS_BUDGET_REQUESTS": TURNS * n_hosts, **POLITE,
        "CONCURRENT_REQUESTS": 400, "CONCURRENT_REQUESTS_PER_DOMAIN": 100,  # no slow answer holds up the next request
    }  # fmt: skip
    seeds = [site.url(f"/ok?{i}") for site in hosts for i in range(100)]
    began = time.monotonic()
    result = crawl(Follower, settings, addon=addon, seeds=seeds)
    pages = [len(site.log) for site in hosts]
    assert sum(pages) == TURNS * n_hosts
    assert min(pages) >= 0.8 * max(pages)
    assert all(seen.at - began >= turn * DELAY - 0.01 for site in hosts for turn, seen in enumerate(site.log))
    chosen = result.scheduler.crawl.policy.chosen
    lags = [seen.at - chosen[site.url(seen.path)] for site in hosts for seen in site.log]
    assert statistics.median(lags) <= 2 * DELAY  # 16 where the engine takes all it can get


def test_a_slow_host_is_kept_busy() -> None:
    """If a response takes longer than the delay, as many requests are in flight as the delay allows."""
    with MockSite(latency=0.3) as site:
        crawl(Follower, {**POLITE, "FOCUS_BUDGET_REQUESTS": TURNS}, seeds=[site.url(f"/ok?{i}") for i in range(100)])
        assert site.most_open >= 3


def test_without_a_delay_all_places_are_used() -> None:
    """Without a delay, as many requests are in flight as Scrapy allows for a host."""
    with MockSite(latency=0.05) as site:
        crawl(Follower, {"CONCURRENT_REQUESTS_PER_DOMAIN": 6}, seeds=[site.url("/page/0/60")])
        assert site.most_open == 6


@pytest.mark.reactor
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_one_at_a_time(addon: bool) -> None:
    """With FOCUS_MAX_INFLIGHT=1, no request is sent before the last one is finished, whatever Scrapy would allow."""
    with MockSite(latency=0.01) as site:
        result = crawl(Sequential, {"FOCUS_MAX_INFLIGHT": 1}, addon=addon, seeds=[site.url("/page/0/50")])
        assert site.most_open == 1
        assert sorted(site.paths) == sorted(tree_paths(50))
    assert result.spider.most == 1


class Sequential(Follower):
    """Counts the pages between the request for one and its last item."""

    most = 0

    def parse(self, response: Any) -> Iterator[Any]:
        yield from super().parse(response)
        self.most = max(self.most, self.crawler.engine.scheduler.focus_host.status().in_flight)


class Together(MockSite):
    """Counts requests that are open on any of several sites, too."""

    def __init__(self, *args: Any, opened: list[int], **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.opened = opened  # how many were open after each change

    def begin(self, seen: Seen) -> None:
        with TOGETHER:
            self.opened.append(self.opened[-1] + 1)
        super().begin(seen)

    def end(self) -> None:
        super().end()
        with TOGETHER:
            self.opened.append(self.opened[-1] - 1)


@pytest.mark.parametrize(("setting", "most"), [("FOCUS_MAX_INFLIGHT", 3), ("FOCUS_MAX_INFLIGHT_PER_SLOT", 2)])
def test_limits_hold(setting: str, most: int) -> None:
    """Never more requests are open than the limit, over all hosts or for each, and the limit is reached."""
    opened = [0]
    with ExitStack() as stack:
        hosts = [stack.enter_context(Together(f"127.0.0.{i}", latency=0.02, opened=opened)) for i in range(1, 5)]
        crawl(Follower, {setting: most}, seeds=[site.url("/page/0/15") for site in hosts])
    assert all(sorted(site.paths) == sorted(tree_paths(15)) for site in hosts)
    if setting == "FOCUS_MAX_INFLIGHT":
        assert max(opened) == most
    else:
        assert [site.most_open for site in hosts] == [most] * 4


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("policy", "params"),
    [
        ("scrapy_focus.policies.orderings.Random", {}),
        ("scrapy_focus.policies.tagpath.TagPath", {}),
        (BREADTH_FIRST, {}),
    ],
    ids=["random", "tagpath", "breadth_first"],
)
def test_one_at_a_time_can_be_repeated(site: MockSite, policy: str, params: dict[str, Any]) -> None:
    """With one in flight and a seed, a second run asks for the same URLs in the same order."""
    orders = []
    for seed in (1, 1, 2):
        settings = {"FOCUS_MAX_INFLIGHT": 1, "FOCUS_SEED": seed, "FOCUS_POLICY": policy}
        crawl(Follower, settings, seeds=[site.url("/page/0/60")])
        orders.append(site.paths)
        site.log.clear()
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == sorted(orders[2]) == sorted(tree_paths(60))
    assert (orders[0] == orders[2]) == (policy == BREADTH_FIRST)


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_autothrottle(hosts: list[MockSite], addon: bool, tmp_path: Path) -> None:
    """AutoThrottle changes the delays during the crawl: all pages are fetched, from all hosts in parallel."""
    settings = {
        "AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.1, "AUTOTHROTTLE_MAX_DELAY": 0.1,
        "FOCUS_POLICY": Greedy, "FOCUS_POLICY_PARAMS": {"favourite": hosts[0].host}, "FOCUS_LOG": str(tmp_path / "log"),
    }  # fmt: skip
    result = crawl(Follower, settings, addon=addon, seeds=[site.url("/page/0/12") for site in hosts])
    assert all(sorted(site.paths) == sorted(tree_paths(12)) for site in hosts)
    chosen = result.scheduler.crawl.policy.chosen
    times = [[chosen[site.url(path)] for path in site.paths] for site in hosts]
    assert max(map(min, times)) < min(map(max, times))
