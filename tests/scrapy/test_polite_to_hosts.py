"""Crawls of many hosts that change keep the limits of each host."""

from __future__ import annotations

import time
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from crawls import Follower, crawl
from scrapy.core.downloader.handlers import DownloadHandlers

from scrapy_focus import NewsGoal
from scrapy_focus.core.clock import FastClock
from scrapy_focus.lab.sites.news.plan import BEGIN, DAY, Manner
from scrapy_focus.lab.sites.news.web import NewsWeb
from scrapy_focus.lab.sites.server import ProxyServer

if TYPE_CHECKING:
    from crawls import Crawled
    from scrapy import Request
    from scrapy.http import Response

SCHEDULERS: list[dict[str, Any]] = [  # each with its further settings
    {"SCHEDULER": "scrapy_focus.FreshScheduler"},
    {"SCHEDULER": "scrapy_focus.ForagerScheduler", "FOCUS_POLICY_PARAMS": {"territory": "host"}},
]
SPEED = 20_000.0  # an hour in 0.2 s
HOSTS = 5
REQUESTS = 60
SETTINGS: dict[str, Any] = {
    "ROBOTSTXT_OBEY": True, "DOWNLOAD_DELAY": 0.0, "DOWNLOAD_DELAY_JITTER": 0.0, "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "FOCUS_GOAL": NewsGoal(hours=24),
    "FOCUS_SEED": 1, "AUTOTHROTTLE_ENABLED": False,
}  # fmt: skip


def crawl_web(
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    *,
    latency: float = 0.0,
    crawl_delay: float = 0.0,
    requests: int = REQUESTS,
) -> tuple[Crawled, dict[str, list[float]]]:
    """Crawl some hosts, the last with a Crawl-delay; return the times of requests to each, except robots.txt."""
    clock = FastClock(SPEED, BEGIN + DAY)
    tiny: dict[str, Any] = {"sections": 2, "topics": 4, "archive": 30}
    web = NewsWeb([Manner(**tiny)] * (HOSTS - 1) + [Manner(**tiny, crawl_delay=crawl_delay)], days=30.0, clock=clock)
    monkeypatch.setenv("no_proxy", "")
    settings = {**SETTINGS, "_FOCUS_CLOCK": str(clock), "FOCUS_BUDGET_REQUESTS": requests, **settings}
    asked: dict[str, list[float]] = {}
    send = DownloadHandlers.download_request_async

    async def sent(self: DownloadHandlers, request: Request) -> Response:
        if not request.url.endswith("/robots.txt"):
            asked.setdefault(urlsplit(request.url).netloc, []).append(time.monotonic())
        return await send(self, request)

    monkeypatch.setattr(DownloadHandlers, "download_request_async", sent)
    with ProxyServer(web, latency=latency, validators=True) as server:
        monkeypatch.setenv("http_proxy", server.url)
        crawled = crawl(Follower, settings, addon=True, seeds=web.roots)
    came = {
        host: sum(not request.path.endswith("/robots.txt") for request in log) for host, log in server.by_host.items()
    }
    assert {host: len(times) for host, times in asked.items()} == came
    assert {*asked} == {*web.sites}
    assert sum(map(len, asked.values())) == requests - HOSTS
    assert crawled.reason == "focus_budget_requests"
    return crawled, asked


def keeps(asked: list[float], least: float) -> bool:
    """Whether requests are sent so many seconds apart: a late one may be closer to the next."""
    gaps = [later - earlier for earlier, later in pairwise(asked)]
    return median(gaps) > 0.9 * least and sum(gaps) > 0.9 * least * len(gaps)


@pytest.mark.few(1)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_download_delay(scheduler: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """So many seconds pass between two requests to a host, and other hosts are asked meanwhile."""
    _, asked = crawl_web(monkeypatch, {**scheduler, "DOWNLOAD_DELAY": 0.15})
    assert min(map(len, asked.values())) >= 4
    assert all(keeps(each, 0.15) for each in asked.values())
    order = [host for _, host in sorted((at, host) for host, times in asked.items() for at in times)]
    assert sum(one != other for one, other in pairwise(order)) > len(order) / 2


@pytest.mark.slow
def test_one_at_a_time_also_when_pages_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one request in flight for each host, the next one is sent after the response."""
    settings = {"SCHEDULER": "scrapy_focus.FreshScheduler", "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    crawled, asked = crawl_web(monkeypatch, settings, latency=0.1, requests=200)
    assert all(keeps(each, 0.1) for each in asked.values())
    assert crawled.stats["focus/visit/changed"] > 0  # at least 40, however many hours pass between two requests


@pytest.mark.few(1)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_crawl_delay(scheduler: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The host that asks for it in robots.txt has its delay, and it alone."""
    settings = {**scheduler, "FOCUS_OBEY": ["crawl-delay"], "DOWNLOAD_DELAY": 0.1}
    crawled, asked = crawl_web(monkeypatch, settings, crawl_delay=0.4)
    *others, slow = (asked[host] for host in sorted(asked))
    assert keeps(slow, 0.4)
    assert len(slow) >= 3
    assert all(keeps(each, 0.1) for each in others)
    assert crawled.stats["focus/host/slowed_down"] == 1
