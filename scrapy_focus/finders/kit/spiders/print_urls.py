"""Print the finds, for the next program in a pipe."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import DropItem
from scrapy.utils.defer import deferred_from_coro

from scrapy_focus.core.printable import printable, printable_json
from scrapy_focus.finders.kit.spiders.items import (
    RELEVANT,
    DataFile,
    ImportantPage,
    NewsArticle,
    SkippedFile,
    StructuredEntity,
    TopicPage,
    listed_fields,
)

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class PrintUrls:
    """Writes the URL of each file or page to standard output at once, one per line, or each entity as a line of JSON.

    With the contents of pages, each page is a line of JSON, too. It stores nothing. Copies of a file under other URLs
    are dropped. When the reader closes the pipe (``| head -3``), the crawl ends with the reason ``focus_unread``.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._seen: set[bytes] = set()
        self._unread = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        if isinstance(item, TopicPage):
            if item.relevance >= RELEVANT:
                self._print(item.url, self._line(item) if item.source else "")
        elif isinstance(item, ImportantPage):
            self._print(item.url, self._line(item) if item.source else "")
        elif isinstance(item, NewsArticle):
            self._print(item.url)
        elif isinstance(item, StructuredEntity):
            self._print(item.url, self._line(item))
        elif isinstance(item, DataFile):
            digest = hashlib.sha256(item.content).digest()
            item.content = b""
            if not item.is_relevant:
                raise DropItem(f"{item.url} is not relevant enough", log_level="DEBUG")
            if digest in self._seen:
                raise DropItem(f"{item.url} is a copy of another file", log_level="DEBUG")
            self._seen.add(digest)
            item.sha256 = digest.hex()
            self._print(item.url)
        elif isinstance(item, SkippedFile):
            raise DropItem(f"{item.url} was skipped: {item.reason}", log_level="DEBUG")
        return item

    def _line(self, item: Any) -> str:
        """Return an item as JSON, as a list has it."""
        fields = listed_fields(item, self.crawler.spider.asked.contents)  # type: ignore[union-attr]  # finders have arguments
        return printable_json({name: getattr(item, name) for name in fields})

    def _print(self, url: str, line: str = "") -> None:
        if self._unread:
            raise DropItem(f"{url}: standard output is closed", log_level="DEBUG")
        try:
            print(line or printable(url, sys.maxsize), flush=True)
        except BrokenPipeError:
            self._stop()

    def _stop(self) -> None:
        self._unread = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it ends
        deferred_from_coro(self.crawler.engine.close_spider_async(reason="focus_unread"))
