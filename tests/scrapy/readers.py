"""Crawls whose pages are read by a browser."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from crawls import REACTOR, crawl
from lxml import html
from scrapy import Request, Spider

from scrapy_focus.downloadermiddlewares import MeterMiddleware
from scrapy_focus.engine.browser.guard import Guard
from scrapy_focus.engine.browser.visit import Limits
from scrapy_focus.web.html import tag_path

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from crawls import Crawled
    from scrapy.http import Response

    from scrapy_focus.engine.browser.visit import Visit

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
NEEDS = [
    pytest.mark.reactor,
    pytest.mark.skipif(
        find_spec("scrapy_playwright") is None,
        reason="needs scrapy-playwright (pip install scrapy-focus[playwright])",
    ),
    pytest.mark.skipif(not REACTOR, reason="scrapy-playwright needs Twisted's reactor: see test_reactor.py"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium (apt-get install chromium)"),
    pytest.mark.timeout(240),
]
PATIENT = Limits(quiet=60, seconds=150, silence=20, painted=30, ending=30)  # a machine may stall
SETTINGS = {
    "DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER},
    "PLAYWRIGHT_LAUNCH_OPTIONS": {
        "executable_path": CHROMIUM,
        "args": ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    },
    "RETRY_ENABLED": False,
}


class ReadingGuard(Guard):
    """Has all pages read, and keeps what they noted."""

    def __init__(self, crawler: Any, host: Any, offsite: Any) -> None:
        super().__init__(crawler, host, offsite)
        self.learns = True
        crawler.visits = {}

    def take(self, request: Request, *, limits: Limits | None = None, is_direct: bool = False) -> None:
        """Have a page read, unless it is marked not to be."""
        given = request.meta.get("limits") or self.crawler.settings.get("LIMITS", PATIENT)
        super().take(request, limits=None if request.meta.get("as_it_is") else given)

    def give_back(self, request: Request) -> Visit | None:
        """Keep what a page noted."""
        visit = super().give_back(request)
        if visit is not None:
            pages = [page for page in visit.frames if not isinstance(page, str)]
            self.crawler.left_open = len(pages[0].context.pages) if pages else 0
            self.crawler.visits[request.url.partition("/")[2].partition("/")[2].partition("/")[2]] = visit
        return visit


class ReadingMeter(MeterMiddleware):
    """Takes its place, with another guard."""

    async def process_request(self, request: Request) -> Any:
        if self.host is not None and self._guard is None:
            self._guard = ReadingGuard(self.crawler, self.host, self.host.config.browser_offsite)
        return await super().process_request(request)


class Reader(Spider):
    """Has each page read, in the given order: pairs of a URL and additional ``meta``."""

    name = "reader"

    def __init__(self, seeds: list[tuple[str, dict[str, Any]]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seeds = seeds

    async def start(self) -> AsyncIterator[Any]:
        for n, (seed, meta) in enumerate(self.seeds):
            yield Request(seed, meta={"playwright": True, **meta}, priority=-n)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"asked": response.request.url, "url": response.url, "text": response.text, "meta": dict(response.meta)}


class Read:
    """What became of the pages that were read."""

    def __init__(self, result: Crawled) -> None:
        self.result = result
        self.visits: dict[str, Visit] = result.crawler.visits  # by path, without its first slash
        self.items = {item["asked"].split("/", 3)[3]: item for item in result.items}

    def places(self, path: str) -> dict[str, str]:
        """Return the links of a page with their tag paths."""
        found = html.fromstring(self.items[path]["text"]).iter("a")
        return {link.get("href"): tag_path(link) for link in found if link.get("href")}


def read(seeds: list[Any], settings: dict[str, Any] | None = None, **args: Any) -> Read:
    """Run a crawl that reads pages: URLs, or pairs of a URL and its ``meta``."""
    pairs = [seed if isinstance(seed, tuple) else (seed, {}) for seed in seeds]
    ours = {**SETTINGS, "DOWNLOADER_MIDDLEWARES": {ReadingMeter: 1000}, **(settings or {})}
    return Read(crawl(Reader, ours, seeds=pairs, patience=220, **args))
