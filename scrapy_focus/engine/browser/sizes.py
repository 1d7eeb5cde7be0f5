"""Counts the bytes that a browser receives over the network."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page, Request, Response

#: Name of the header of responses that did not come over the network. Its value is a secret of the crawl.
STORED = "x-focus-stored"
_BODILESS = (204, 304)


class Counts(Protocol):
    """Who counts them."""

    token: str  # value of the header `STORED` in our responses

    def received(self, n_bytes: int, page: Page | None = None, *, is_document: bool = False) -> None:
        """Count so many bytes of a response; ``page``: the page that requested it, or whose document it is."""


class Sizes:
    """Counts the responses in a browser context.

    The length of a complete response comes from its headers, at no cost. Only without such a header the browser is
    asked, with a round trip to its driver. Interrupted responses are not counted.
    """

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self._answers: WeakKeyDictionary[Request, Response] = WeakKeyDictionary()
        self._asking: set[asyncio.Task[None]] = set()

    def watch(self, context: BrowserContext) -> None:
        """Count what all pages of a context receive."""
        context.on("response", self._begin)
        context.on("requestfinished", self._finish)

    def _begin(self, response: Response) -> None:
        self._answers[response.request] = response

    def _finish(self, request: Request) -> None:
        response = self._answers.pop(request, None)
        if response is not None and response.headers.get(STORED) == self.counts.token:
            return
        page, is_document = page_of(request), is_document_of_page(request)
        if response is not None and (length := announced(response)) is not None:
            self.counts.received(length, page, is_document=is_document)
            return
        task = asyncio.ensure_future(self._ask(request, page, is_document))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, request: Request, page: Page | None, is_document: bool) -> None:
        with suppress(Exception):  # its page was closed
            sizes = await request.sizes()
            received = max(0, sizes["responseHeadersSize"]) + max(0, sizes["responseBodySize"])
            self.counts.received(received, page, is_document=is_document)


def announced(response: Response) -> int | None:
    """Return the bytes of a complete response, headers and body; ``None`` if its headers do not say."""
    head = sum(len(name) + len(value) + 4 for name, value in response.headers.items()) + len("HTTP/1.1 200 OK\r\n\r\n")
    if response.from_service_worker:
        return 0
    if response.request.method == "HEAD" or response.status in _BODILESS:
        return head
    length = response.headers.get("content-length", "")
    return head + int(length) if re.fullmatch(r"[0-9]{1,15}", length) else None


def page_of(request: Request) -> Page | None:
    """Return the page that made a request; ``None`` if unknown, as for a worker."""
    with suppress(Exception):  # of a page that is just being opened
        return request.frame.page
    return None


def is_document_of_page(request: Request) -> bool:
    """Whether the response is the document of a page, and not a redirect to it."""
    if not request.is_navigation_request() or request.redirected_to is not None:
        return False
    with suppress(Exception):  # of a page that is just being opened
        return request.frame.parent_frame is None
    return False
