"""Applies the rules for requests of a crawl to those of a browser."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import ensure_awaitable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from scrapy.crawler import Crawler

#: Why a request must not be sent; ``""``: it may.
Refusal: TypeAlias = Literal[
    "", "type", "scope", "offsite", "robots", "middleware", "budget", "left", "moves", "method", "many", "windows",
]  # fmt: skip

_LONGEST = 10.0  # seconds: a robots.txt may wait for the slot of the very page that waits for it
_TYPES = {  # Playwright's names -> MIME types, all of which must be unwanted
    "image": ("image/*",),
    "media": ("audio/*", "video/*"),
    "font": ("image/*",),  # a crawl without images needs no fonts either
}


class BrowsingCrawl(Protocol):
    """The parts of a crawl that a browser uses; :class:`~scrapy_focus.engine.host.Host` has them."""

    unchecked: dict[str, str]  # hosts whose certificates were not checked, and what is wrong with them

    def is_spent(self) -> bool:
        """Whether no more requests may be sent."""

    def is_wanted(self, mime: str, url: str = "") -> bool:
        """Whether bodies of a MIME type are read."""

    async def sent(self, request: Request | None) -> bool:
        """Use one request of the budget; ``False``: it must not be sent."""

    def received(self, n_bytes: int | None) -> None:
        """Count a response of so many bytes."""

    def lacks_bytes(self) -> bool:
        """Whether more bytes were received than the budget allows."""

    def count(self, name: str, n: int = 1) -> None:
        """Add to the count that is written to the stats as ``focus/<name>``."""


class Rules:
    """Decides on each request of a browser, and counts the allowed ones.

    The scope, robots.txt and allowed hosts are checked with the crawl's own downloader middlewares. So a crawl without
    them, or with others in their place, gets what it has set. Any other middleware whose attribute ``guards_browsers``
    is true is checked as well. Pages may load the types of resources in ``offsite`` from other hosts.
    """

    def __init__(self, crawler: Crawler, host: BrowsingCrawl, offsite: Collection[str]) -> None:
        self.crawler = crawler
        self.host = host
        self.offsite = offsite

    async def refusal(self, url: str, kind: str, page: Request | None = None, *, is_sent: bool = True) -> Refusal:
        """Return why a request must not be sent, or ``""``: then it is counted, if `is_sent`, and has to be sent.

        Parameters
        ----------
        url
            The URL of the request. Only ``http``, ``https``, ``ws`` and ``wss`` reach a network.
        kind
            The type of resource, by Playwright's names: ``document``, ``script``, ``xhr``, ``websocket`` and so on.
        page
            The request of the page, whose ``meta`` may lift a rule; ``None`` if unknown.
        is_sent
            Whether the network is used, or the response is stored.
        """
        scheme = url.partition(":")[0].lower()
        if scheme not in ("http", "https", "ws", "wss"):
            return ""
        if scheme.startswith("ws"):
            url = "http" + url[2:]
        if self.host.is_spent():
            return "budget"
        if kind in _TYPES and not any(self.host.is_wanted(mime) for mime in _TYPES[kind]):
            return "type"
        if not all(each.should_load(url, page, is_document=kind == "document") for each in self._with("should_load")):
            return "scope"
        meta = {} if page is None else page.meta
        request = Request(url, dont_filter=True, meta={"dont_obey_robotstxt": meta.get("dont_obey_robotstxt", False)})
        if not self._may_go_elsewhere(kind, page) and not self._is_on_site(request):
            return "offsite"
        refused = await self._refused_by_middleware(request)
        if refused:
            return refused
        if is_sent and not await self.host.sent(None):
            return "budget"
        return ""

    def _may_go_elsewhere(self, kind: str, page: Request | None) -> bool:
        """Whether the site of a resource does not matter: for the page's own request, or for its parts."""
        if page is not None:
            is_free = kind == "document" and page.dont_filter
            if is_free or page.meta.get("allow_offsite"):
                return True
        return kind in self.offsite

    async def _refused_by_middleware(self, request: Request) -> Refusal:
        for middleware in self._middlewares():
            if hasattr(middleware, "robot_parser") and not await _passes(middleware, request):
                return "robots"
            if getattr(middleware, "guards_browsers", False) and not await _passes(middleware, request):
                return "middleware"
        return ""

    def _is_on_site(self, request: Request) -> bool:
        return all(each.should_follow(request, self.crawler.spider) for each in self._with("should_follow"))

    def _with(self, method: str) -> Iterable[Any]:
        """Return the middlewares with a method."""
        return [middleware for middleware in self._middlewares() if hasattr(middleware, method)]

    def _middlewares(self) -> Iterable[Any]:
        return self.crawler.engine.downloader.middleware.middlewares


async def _passes(middleware: Any, request: Request) -> bool:
    """Whether a downloader middleware allows a request, and answers in time."""
    asked = asyncio.ensure_future(_lets_out(middleware, request))
    try:
        return await asyncio.wait_for(asyncio.shield(asked), _LONGEST)  # others wait for the same robots.txt
    except TimeoutError:
        return False


async def _lets_out(middleware: Any, request: Request) -> bool:
    try:
        return await ensure_awaitable(middleware.process_request(request)) is None
    except IgnoreRequest:
        return False
