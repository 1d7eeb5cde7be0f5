"""Whole crawls inside a test: run one, and look at what it left.

Crawls run without a Twisted reactor, or in a thread with one if the environment variable ``FOCUS_TEST_REACTOR`` is set:
Scrapy allows only one of the two in a process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerRunner

from scrapy_focus import FocusScheduler, State
from scrapy_focus.engine.inflight import engine_slot
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response

REACTOR = bool(os.environ.get("FOCUS_TEST_REACTOR"))
BREADTH_FIRST = "scrapy_focus.policies.orderings.BreadthFirst"
STOCK = "scrapy.core.scheduler.Scheduler"
BASE = {
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "TWISTED_REACTOR_ENABLED": REACTOR,
    "LOGSTATS_INTERVAL": 0,
    "FOCUS_PROGRESS": "off",
}


@dataclass
class Crawled:
    """What a crawl left."""

    crawler: Crawler
    scheduler: Any
    items: list[Any] = field(default_factory=list)
    records: list[logging.LogRecord] = field(default_factory=list)

    @property
    def stats(self) -> dict[str, Any]:
        return self.crawler.stats.get_stats()

    @property
    def spider(self) -> Any:
        return self.crawler.spider

    @property
    def policy(self) -> Any:
        return self.scheduler.crawl.policy

    @property
    def reason(self) -> str:
        return str(self.stats["finish_reason"])

    @property
    def outcomes(self) -> dict[str, int]:
        """The counts under ``focus/outcome/``, by label."""
        return {k.rpartition("/")[2]: v for k, v in self.stats.items() if k.startswith("focus/outcome/")}

    @property
    def errors(self) -> dict[str, int]:
        """The counts under ``focus/error/``."""
        return {k.rpartition("/")[2]: v for k, v in self.stats.items() if k.startswith("focus/error/")}

    def logged(self, text: str) -> list[str]:
        """Return the messages of the log that contain a text."""
        return [message for record in self.records if text in (message := record.getMessage())]

    def events(self) -> list[dict[str, Any]]:
        """The decision log (``FOCUS_LOG``)."""
        lines = Path(self.crawler.settings["FOCUS_LOG"]).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def check(self) -> None:
        """Fail unless every pick has exactly one outcome, and no state is left over."""
        if FocusScheduler not in type(self.scheduler).__mro__:  # isinstance() says yes to every scheduler
            return
        counts, crawl = self.scheduler.crawl.counts, self.scheduler.crawl
        if crawl.finished() == "storage":  # what was in flight is asked for by the next run
            return
        if self.crawler.settings["FOCUS_CLUSTER"]:
            assert not crawl.status().in_flight or crawl.finished() == "refused"  # links are queued at the leader
        elif self.scheduler.job is None:
            crawl.frontier.check()
        else:  # it was closed
            keeps = crawl.policy.keeps(crawl.mission)
            stored = sqlite_frontier(self.scheduler.job.folder / "frontier.sqlite", keeps)
            stored.check()
            stored.close()
        labelled = sum(n for name, n in counts.items() if name.startswith("outcome/"))
        assert counts["selected"] == labelled + counts["released"], counts
        assert counts["outcomes"] + crawl.status().in_flight == labelled, counts
        assert not self.scheduler.inflight.entries
        assert not self.scheduler.slots.busy or self.scheduler.slots.shut
        assert not self.scheduler.inflight.worth


class _Records(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self.emit = records.append  # type: ignore[method-assign,assignment]


def crawl(
    spider: type[Spider],
    settings: dict[str, Any] | None = None,
    *,
    addon: bool = False,
    patience: float = HANG,
    **args: Any,
) -> Crawled:
    """Run one crawl to its end; with our scheduler only, unless ``SCHEDULER`` is set, or with the add-on."""
    return crawl_all([(spider, settings, args)], addon=addon, patience=patience)[0]


def crawl_all(
    jobs: list[tuple[type[Spider], dict[str, Any] | None, dict[str, Any]]],
    *,
    addon: bool = False,
    patience: float = HANG,
) -> list[Crawled]:
    """Run several crawls at once."""
    results: list[Crawled] = []
    records: list[logging.LogRecord] = []
    handler = _Records(records)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        _run(_crawl_all(jobs, addon, results), patience)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    for result in results:
        result.records = records
        result.check()
    return results


async def _crawl_all(jobs: list[Any], addon: bool, results: list[Crawled]) -> None:
    runs = []
    for spider, settings, args in jobs:
        ours = {"ADDONS": {"scrapy_focus.Addon": 500}} if addon else {"SCHEDULER": FocusScheduler}
        runner = AsyncCrawlerRunner({**BASE, **ours, **(settings or {})})
        crawler = runner.create_crawler(spider)
        result = Crawled(crawler, None)
        results.append(result)
        _watch(crawler, result)
        runs.append(runner.crawl(crawler, **args))
    await asyncio.gather(*runs)


def _watch(crawler: Crawler, result: Crawled) -> None:
    def opened(spider: Spider) -> None:
        result.scheduler = engine_slot(crawler).scheduler

    def scraped(item: Any) -> None:
        result.items.append(item)

    crawler.signals.connect(opened, signals.spider_opened, weak=False)
    crawler.signals.connect(scraped, signals.item_scraped, weak=False)


def _run(coroutine: Coroutine[Any, Any, None], patience: float) -> None:
    if REACTOR:
        asyncio.run_coroutine_threadsafe(asyncio.wait_for(coroutine, patience), _reactor_loop()).result()
    else:
        asyncio.run(asyncio.wait_for(coroutine, patience))


@cache
def _reactor_loop() -> asyncio.AbstractEventLoop:
    """Start the reactor in a thread, once, and return its loop."""
    from twisted.internet import asyncioreactor

    loop = asyncio.new_event_loop()
    asyncioreactor.install(loop)
    from twisted.internet import reactor

    threading.Thread(target=reactor.run, kwargs={"installSignalHandlers": False}, daemon=True).start()
    return loop


class Follower(Spider):
    """Follows every link from a given start, and yields an item for each page."""

    name = "follower"

    def __init__(self, seeds: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seeds = seeds

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            yield Request(seed)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        if response.headers.get("Content-Type", b"").startswith(b"text/html"):
            yield from response.follow_all(css="a")


class SomeHeadsFirst(BreadthFirst):
    """Looks at every ``modulus``-th link with a HEAD first."""

    def __init__(self, *, modulus: int = 2) -> None:
        super().__init__()
        self.modulus = modulus

    def place(self, links: Any, source: Any) -> Any:
        return [
            place._replace(method="HEAD") if link.key % self.modulus == 0 and link.state != State.PROBED else place
            for link, place in zip(links, super().place(links, source), strict=True)
        ]


def without_ours(stats: dict[str, Any]) -> dict[str, Any]:
    """Return the stats that a crawl with the stock scheduler has too, and that do not depend on time or memory."""
    own = (
        "focus/",
        "memusage/",
        "elapsed_time",
        "start_time",
        "finish_time",
        "log_count/",
        "items_per",
        "responses_per",
    )
    return {name: value for name, value in stats.items() if not name.startswith(own)}
