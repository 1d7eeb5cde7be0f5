"""Signals in a crawl of several workers."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from crawls import Follower
from mocksite import tree_paths

from scrapy_focus import State
from tests.cluster.workers import share
from tests.made import EachAgain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from mocksite import MockSite


def test_sitemaps_are_heard(sites: list[MockSite], tmp_path: Path) -> None:
    """What a listing says about pages reaches the policy, whichever worker fetched it."""
    entries = "".join(
        f"<url><loc>{sites[0].url(f'/page/{k}/7')}</loc><lastmod>2020-01-01</lastmod></url>" for k in range(7)
    )
    sitemap = f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    sites[0].answers["/sitemap.xml"] = lambda _: (200, {"Content-Type": "application/xml"}, sitemap.encode())
    result = share(
        Follower, tmp_path, {"FOCUS_POLICY": Hears, "FOCUS_BUDGET_REQUESTS": 60},
        seeds=[sites[0].url("/page/0/7"), sites[0].url("/sitemap.xml")],
    )  # fmt: skip
    assert result.crawl.counts["signal/heard"] > 0
    assert result.errors == {}


class Hears(EachAgain):
    """Listens, and fetches each page three times."""

    def __init__(self) -> None:
        super().__init__(every=0.1, times=2)

    def hear(self, signals: Any) -> None:
        assert all(self.frontier.states([signal.key]) != [State.NEW] for signal in signals)


class Pings(Follower):
    """Says that all pages changed, once the leader knows them all."""

    sites: Sequence[MockSite] = ()

    async def start(self) -> AsyncIterator[Any]:
        async for each in super().start():
            yield each
        while min(Counter(site.paths)[path] for site in self.sites for path in tree_paths(7)) < 2:
            await asyncio.sleep(0.02)  # the leader received what is fetched again
        for seed in self.seeds:
            for k in range(7):
                self.crawler.engine.scheduler.hear(seed.replace("/0/", f"/{k}/"))


def test_a_signal_to_one_worker_reaches_all(sites: list[MockSite], tmp_path: Path) -> None:
    """A ping reaches the policy even if it was sent to a worker that never saw the page."""
    seeds = [site.url("/page/0/7") for site in sites]
    result = share(Pings, tmp_path, {"FOCUS_POLICY": Hears}, seeds=seeds, sites=sites)
    assert result.crawl.counts["signal/heard"] == 2 * 21
    assert result.errors == {}
