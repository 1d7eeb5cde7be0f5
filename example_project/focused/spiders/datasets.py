"""``scrapy crawl datasets -a root=https://...``: as many data files of a site as possible, with few requests."""

from __future__ import annotations

import logging
import mimetypes
import re
from email.message import Message
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import scrapy
from scrapy.exceptions import UsageError
from scrapy.http import HtmlResponse
from scrapy.utils.response import get_base_url

from focused.items import DataFile
from focused.pages import can_be_read
from scrapy_focus import ConfigError, FilesGoal
from scrapy_focus.web.html import page_links
from scrapy_focus.web.mime import blocked_extensions, extension, parse_mime, parse_types

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

_CHATTY = ("scrapy.addons", "scrapy.middleware", "scrapy.spidermiddlewares.httperror")  # loggers


class DatasetsSpider(scrapy.Spider):
    """Finds and stores the data files of one or more sites.

    Arguments
    ---------
    root
        URL to start from; several are separated by commas. The crawl stays on their hosts and sub-domains, ``www.``
        ignored.
    targets
        What to look for, by extension or MIME type, separated by commas; ``data``, the default, stands for all kinds of
        data files and documents.
    budget
        Requests of all kinds that may be sent; no limit by default.
    out
        Folder for the files and their manifest, ``manifest.jsonl``.
    """

    name = "datasets"
    custom_settings = {
        "ITEM_PIPELINES": {"focused.pipelines.StoreFiles": 300},
        "LOG_LEVEL": "INFO",
    }

    def __init__(
        self, root: str = "", targets: str = "data", budget: str = "", out: str = "found", **kwargs: Any
    ) -> None:
        if kwargs:
            raise UsageError(f"there is no argument {', '.join(kwargs)}; there are root, targets, budget and out")
        super().__init__()
        self.roots = [url.strip() for url in root.split(",") if url.strip()]
        hosts = [urlsplit(url).hostname or "" for url in self.roots if url.startswith(("http://", "https://"))]
        if not self.roots or len(hosts) < len(self.roots) or not all(hosts):
            raise UsageError(
                f"root is {root!r}; say where to start: scrapy crawl datasets -a root=https://example.org/"
            )
        self.allowed_domains = [host.removeprefix("www.") for host in hosts]
        try:
            self.goal = FilesGoal(types=parse_types(targets.split(",")), stored=True)
        except ConfigError as error:
            raise UsageError(f"targets: {error}") from error
        if budget and not (budget.isdecimal() and int(budget) > 0):
            raise UsageError(f"budget is {budget!r}; it takes a number of requests: -a budget=1000")
        self.budget = int(budget) if budget else None
        self.out = out
        self.ignored = blocked_extensions(self.goal.types)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.settings.set("FOCUS_GOAL", spider.goal, "spider")
        if spider.budget:
            crawler.settings.set("FOCUS_BUDGET_REQUESTS", spider.budget, "spider")
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.WARNING)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        for url in self.roots:
            yield scrapy.Request(url)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        mime = parse_mime((response.headers.get("Content-Type") or b"").decode("latin-1"))
        if self.goal.wants(mime, response.url):
            yield self.file(response, mime)
        elif isinstance(response, HtmlResponse) and can_be_read(response):
            yield from self.links(response)

    def file(self, response: Response, mime: str) -> DataFile:
        """Return the item for a file."""
        return DataFile(
            url=response.url,
            mime=mime,
            size=len(response.body),
            page=(response.request.headers.get("Referer") or b"").decode("latin-1") if response.request else "",
            anchor=response.meta.get("link_text", ""),
            name=file_name(response, mime),
            body=response.body,
        )

    def links(self, response: HtmlResponse) -> Iterator[scrapy.Request]:
        """Return a request for each link of a page, in document order."""
        for url, element in page_links(response.selector.root, get_base_url(response)):
            if extension(url) in self.ignored:
                continue
            anchor = " ".join("".join(element.itertext()).split())[:200]
            try:
                request = scrapy.Request(url, meta={"link_text": anchor} if anchor else None)
            except ValueError:
                self.logger.debug("No URL: %r on %s", url, response.url)
            else:
                yield request


def file_name(response: Response, mime: str) -> str:
    """Return a name for a file: what its server calls it, or the end of its URL, with an extension."""
    message = Message()
    message["Content-Disposition"] = (response.headers.get("Content-Disposition") or b"").decode("latin-1")
    name = message.get_filename() or unquote(urlsplit(response.url).path).rpartition("/")[2]
    name = re.sub(r"[^\w.\- ]+", "_", name.replace("\\", "/").rpartition("/")[2]).strip(". ")
    name = name.encode()[-150:].decode(errors="ignore")  # file systems count bytes
    return (name or "file") + ("" if "." in name else mimetypes.guess_extension(mime) or "")
