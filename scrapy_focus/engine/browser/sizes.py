"""How many bytes a browser receives, as they came over the network."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page, Request, Response

_BODILESS = (204, 304)


class Counts(Protocol):
    """Who counts them."""

    def received(self, n_bytes: int, page: Page | None = None) -> None:
        """So many bytes of an answer came; ``page``: that of which it is the document."""


class Sizes:
    """Listens to the answers in a context.

    The length of one that came whole is what its headers said, which costs nothing to look at. The browser is asked
    only where they said none, in two messages to its driver and back. What is broken off is not counted.
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
        page = page_of(request)
        if response is not None and (length := announced(response)) is not None:
            self.counts.received(length, page)
            return
        task = asyncio.ensure_future(self._ask(request, page))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, request: Request, page: Page | None) -> None:
        with suppress(Exception):  # its page was closed
            sizes = await request.sizes()
            self.counts.received(max(0, sizes["responseHeadersSize"]) + max(0, sizes["responseBodySize"]), page)


def announced(response: Response) -> int | None:
    """Return the bytes of an answer that came whole, headers and body; ``None`` if its headers do not tell."""
    head = sum(len(name) + len(value) + 4 for name, value in response.headers.items()) + len("HTTP/1.1 200 OK\r\n\r\n")
    if response.from_service_worker:
        return 0
    if response.request.method == "HEAD" or response.status in _BODILESS:
        return head
    length = response.headers.get("content-length", "")
    return head + int(length) if re.fullmatch(r"[0-9]{1,15}", length) else None


def page_of(request: Request) -> Page | None:
    """Return the page whose document, and not what leads there, is the answer to a request; ``None`` for others."""
    if not request.is_navigation_request() or request.redirected_to is not None:
        return None
    with suppress(Exception):  # of a page that is just being opened
        frame = request.frame
        return frame.page if frame.parent_frame is None else None
    return None
