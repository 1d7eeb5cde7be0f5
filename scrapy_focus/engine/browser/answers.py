"""Copies scripts and style sheets from the browser into the store of the crawl, without using the network."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from scrapy_focus.engine.browser.sizes import STORED, page_of
from scrapy_focus.engine.browser.store import KEPT, Key, Store

if TYPE_CHECKING:
    from collections.abc import Hashable

    from playwright.async_api import BrowserContext, Request, Response

    from scrapy_focus.engine.browser.visit import Visit


class Visits(Protocol):
    """Finds visits by page."""

    store: Store
    token: str

    def visit_of(self, frame: Hashable) -> Visit | None:
        """Return the visit of a page, or of the id of its main frame."""


class Answers:
    """Reads complete responses in a browser context.

    A response that is too large by its headers is not read; one that turns out to be too large is dropped. A page ends
    only when all of its responses are read.
    """

    def __init__(self, visits: Visits) -> None:
        self.visits = visits
        self._answers: WeakKeyDictionary[Request, Response] = WeakKeyDictionary()

    def watch(self, context: BrowserContext) -> None:
        """Read the responses that all pages of a context receive."""
        context.on("response", self._begin)
        context.on("requestfinished", self._finish)

    def _begin(self, response: Response) -> None:
        is_new = response.headers.get(STORED) != self.visits.token
        if is_new and response.request.resource_type in KEPT:
            self._answers[response.request] = response

    def _finish(self, request: Request) -> None:
        response, page = self._answers.pop(request, None), page_of(request)
        visit = None if page is None else self.visits.visit_of(page)
        if response is None or visit is None or request.method != "GET" or response.from_service_worker:
            return
        key = Key.of(visit.context, request.url)
        awaited = self.visits.store.awaits(key, response.status, response.headers)
        if awaited and _length(response) <= self.visits.store.largest:
            visit.start(self._store(key, response))

    async def _store(self, key: Key, response: Response) -> None:
        with suppress(Exception):  # its page was closed
            self.visits.store.put(key, response.headers, await response.body())


def _length(response: Response) -> int:
    """Return the bytes that the headers announce, 0 if they announce none."""
    length = response.headers.get("content-length", "")
    return int(length) if re.fullmatch(r"[0-9]{1,15}", length) else 0
