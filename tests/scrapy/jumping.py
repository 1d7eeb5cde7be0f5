"""A scheduler whose crawl skips all waiting time, and a spider that yields the crawl's time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from crawls import Follower
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

from scrapy_focus import FocusScheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

BEGIN, DAY = 1_000_000.0, 86_400.0  # seconds


class Jumping(FocusScheduler):
    """Its crawl waits for answers alone: it is later at once; when a day is over, the crawl is closed."""

    def _make_clock(self) -> Callable[[], float]:
        self.now = BEGIN
        return lambda: self.now

    def open(self, spider: Spider) -> Deferred[None] | None:
        self.choices.make_alarm = lambda seconds: call_later(0.0005, self._be_later, seconds)  # type: ignore[method-assign]
        return super().open(spider)

    def _be_later(self, seconds: float) -> None:
        if self.outcomes.in_flight:  # which takes no time
            self.choices.set_alarm(seconds)
        elif self.crawl.status().at + seconds < BEGIN + DAY:
            self.now += seconds
            self.focus_host.ask_again()
        else:
            deferred_from_coro(self.crawler.engine.close_spider_async(reason="a day is over"))


class TellsTime:
    """Each request yields the time of the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> TellsTime:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        request.headers["X-Time"] = repr(self.crawler.engine.scheduler.crawl.status().at)


class Daily(Follower):
    """Crawls for a day."""

    name = "daily"
    custom_settings: ClassVar[dict[str, Any]] = {
        "SCHEDULER": Jumping,
        "DOWNLOADER_MIDDLEWARES": {TellsTime: 999},
        "FOCUS_POLICY": "scrapy_focus.policies.orderings.BreadthFirst",
        "FOCUS_PROGRESS": "off",
        "FOCUS_SEED": 1,
        "LOGSTATS_INTERVAL": 0,
        "REMOTE_CONTROL_ENABLED": False,
        "ROBOTSTXT_OBEY": True,
        "TELNETCONSOLE_ENABLED": False,
    }

    def __init__(self, root: str, out: str = "", **kwargs: Any) -> None:
        super().__init__(seeds=[f"{root}/page/0/2000"], **kwargs)
