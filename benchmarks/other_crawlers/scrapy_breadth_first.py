"""A stock Scrapy project that crawls one host breadth-first, and saves the files of the wanted types.

Breadth-first order is set as the documentation of Scrapy says. ``first_requests.py`` runs it with ``scrapy runspider``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.web.mime import parse_mime

if TYPE_CHECKING:
    from scrapy.http import Response


class BreadthFirst(CrawlSpider):
    """Follows all links of a host but those to the extensions in `skip`, separated by commas."""

    name = "breadth_first"
    custom_settings = {
        "ROBOTSTXT_OBEY": True,
        "DOWNLOAD_DELAY": 0,
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "TELNETCONSOLE_ENABLED": False,
    }

    def __init__(self, *, url: str, out: str, skip: str, **kwargs: Any) -> None:
        self.rules = (Rule(LinkExtractor(deny_extensions=skip.split(",")), callback="save", follow=True),)
        super().__init__(**kwargs)
        self.start_urls = [url]
        self.allowed_domains = [urlsplit(url).hostname or ""]
        self.folder = Path(out)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.goal = FilesGoal()

    def save(self, response: Response) -> None:
        """Store the body of a wanted file, under a checksum of its URL."""
        mime = parse_mime((response.headers.get("Content-Type") or b"").decode("latin-1"))
        if self.goal.wants(mime, response.url):
            (self.folder / hashlib.sha256(response.url.encode()).hexdigest()).write_bytes(response.body)
