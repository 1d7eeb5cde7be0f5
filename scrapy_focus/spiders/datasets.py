"""``scrapy crawl datasets -a root=https://...``: as many data files of a site as possible, with few requests."""

from __future__ import annotations

import logging
import mimetypes
import re
import warnings
from email.message import Message
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import scrapy
from scrapy.exceptions import DownloadCancelledError, UsageError
from scrapy.http import HtmlResponse
from scrapy.utils.response import get_base_url

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief
from scrapy_focus.engine.inflight import TooLarge
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.spiders.arguments import try_out
from scrapy_focus.spiders.items import DataFile, SkippedFile
from scrapy_focus.spiders.listings import NamedSitemaps, links_of_listing
from scrapy_focus.web.html import link_text, page_links
from scrapy_focus.web.listings import beginning, listing_of
from scrapy_focus.web.mime import blocked_extensions, effective_mime, extension, matches, parse_mime, parse_types

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

_LINKS = 10_000  # of a page that are looked at
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
        Folder for the files and their manifest, ``manifest.jsonl``; ``skipped.jsonl`` says what was too large.
    sitemaps
        ``yes``, the default: the sitemaps that robots.txt names are links, too, in a place of their own; ``no``: they
        are not asked for.

    Notes
    -----
    Sitemaps, feeds, catalogues of data sets and descriptions for browsers are no data files, whatever their MIME type
    (:func:`~scrapy_focus.web.listings.listing_of`), but where ``targets`` names the type: with ``xml`` all XML counts.
    The URLs of sitemaps and catalogues are followed.
    """

    name = "datasets"
    custom_settings = {
        "ITEM_PIPELINES": {"scrapy_focus.spiders.pipelines.StoreFiles": 300},
        "LOG_LEVEL": "INFO",
    }

    def __init__(
        self,
        root: str = "",
        targets: str = "data",
        budget: str = "",
        out: str = "found",
        sitemaps: str = "yes",
        **kwargs: Any,
    ) -> None:
        if kwargs:
            raise UsageError(
                f"there is no argument {', '.join(kwargs)}; there are root, targets, budget, out and sitemaps"
            )
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
        named = [word for word in targets.split(",") if word.strip().lower() != "data"]
        self.named = parse_types(named) if named else frozenset()  # types of which listings count, too
        if sitemaps not in ("yes", "no"):
            raise UsageError(f"sitemaps is {sitemaps!r}; it takes yes or no")
        self.sitemaps = sitemaps == "yes"
        self.named_sitemaps: NamedSitemaps | None = None  # those of robots.txt
        if budget and not (budget.isdecimal() and int(budget) > 0):
            raise UsageError(f"budget is {budget!r}; it takes a number of requests: -a budget=1000")
        self.budget = int(budget) if budget else None
        self.out = out
        self.ignored = blocked_extensions(self.goal.types)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        try_out(Path(spider.out, "manifest.jsonl"))
        crawler.settings.set("FOCUS_GOAL", spider.goal, "spider")
        if spider.sitemaps:
            spider.named_sitemaps = NamedSitemaps(crawler)
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
        listing = "" if "html" in mime else listing_of(beginning(response.body))
        if listing and (listing != "sitemap" or self.sitemaps):
            for request in links_of_listing(response, listing):
                if extension(request.url) not in self.ignored:
                    yield request.replace(errback=self.skip)
        is_named = matches(mime, self.named) or matches(effective_mime(mime, response.url), self.named)
        if self.goal.wants(mime, response.url) and (is_named or not listing):
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

    def skip(self, failure: Failure) -> Any:
        """Return the item for what is too large, and any other failure as it is."""
        error = failure.value
        if not isinstance(error, (TooLarge, DownloadCancelledError)):
            return failure
        request: scrapy.Request = failure.request  # type: ignore[attr-defined]
        most = f"larger than DOWNLOAD_MAXSIZE, {self.settings.getint('DOWNLOAD_MAXSIZE'):,} bytes"
        return SkippedFile(
            url=request.url,
            reason=str(error) if isinstance(error, TooLarge) else most,
            page=(request.headers.get("Referer") or b"").decode("latin-1"),
            anchor=request.meta.get("link_text", ""),
        )

    def links(self, response: HtmlResponse) -> Iterator[scrapy.Request]:
        """Return a request for each link of a page, in document order."""
        for url, element in islice(page_links(response.selector.root, get_base_url(response)), _LINKS):
            if extension(url) in self.ignored:
                continue
            anchor = link_text(element)
            try:
                request = scrapy.Request(url, errback=self.skip, meta={"link_text": anchor} if anchor else None)
            except ValueError:
                self.logger.debug("No URL: %s on %s", brief(url), brief(response.url))
            else:
                yield request


def file_name(response: Response, mime: str) -> str:
    """Return a name for a file: what its server calls it, or the end of its URL, with an extension."""
    name = _announced(response) or unquote(urlsplit(response.url).path).rpartition("/")[2]
    name = re.sub(r"[^\w.\- ]+", "_", name.replace("\\", "/").rpartition("/")[2]).strip(". ")
    name = name.encode()[-150:].decode(errors="ignore")  # file systems count bytes
    return (name or "file") + ("" if "." in name else mimetypes.guess_extension(mime) or "")


def _announced(response: Response) -> str:
    """Return the name that a server gives to a file, ``""`` for none that can be read."""
    message = Message()
    with warnings.catch_warnings():  # some codecs of Python's warn
        warnings.simplefilter("ignore")
        try:
            message["Content-Disposition"] = (response.headers.get("Content-Disposition") or b"").decode("latin-1")
            return message.get_filename() or ""
        except (ValueError, LookupError, TypeError):  # line breaks; an unknown charset, or one like idna; broken parts
            return ""
