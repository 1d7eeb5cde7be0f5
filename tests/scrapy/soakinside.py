"""Code inside the soaked crawls: a spider independent of scrapy_focus, and an extension that reports the result."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request, Spider, signals
from scrapy.http import HtmlResponse
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_focus.core.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response


class Shop(Spider):
    """Follows every link, and yields an item for each file."""

    name = "shop"
    custom_settings = {"ROBOTSTXT_OBEY": True}
    root: str

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.root)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        if not isinstance(response, HtmlResponse):
            yield {"url": response.url, "size": len(response.body)}
            return
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href)


class Dump(MemoryStatsCollector):
    """Writes to a file how an uninterrupted crawl ended, and to another one the end of each wait.

    So a run that is killed later leaves a record, too.
    """

    def inc_value(self, key: str, count: int = 1, start: int = 0, spider: Spider | None = None) -> None:
        super().inc_value(key, count, start)
        if key == "retry/reason_count/scrapy.exceptions.DownloadTimeoutError":
            with Path(os.environ["SOAK_END"] + ".timeouts").open("a") as file:
                file.write(f"{os.getpid()}\n" * count)

    def close_spider(self, spider: Spider | None = None, reason: str | None = None) -> None:
        if reason not in ("shutdown", "focus_storage"):
            stats = {**self._stats, "finish_reason": reason}
            write_atomically(Path(os.environ["SOAK_END"]), json.dumps(stats, default=str).encode())
        super().close_spider()


class Arrived:
    """Notes each response in a file as soon as it was read completely."""

    def __init__(self, crawler: Crawler) -> None:
        self.file = os.open(os.environ["SOAK_END"] + ".arrived", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.crawler = crawler
        crawler.signals.connect(self.begin, signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Arrived:
        return cls(crawler)

    def begin(self) -> None:
        # after the scheduler has opened, and listens to the same
        self.crawler.signals.connect(self.note, signals.response_downloaded)

    def note(self, request: Request) -> None:
        os.write(self.file, f"{os.getpid()} {urlsplit(request.url).path}\n".encode())
