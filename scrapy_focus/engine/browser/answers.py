"""Scripts and style sheets that a browser has, read from it into the store of the crawl without asking the network."""

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
    """Who knows the pages."""

    store: Store
    token: str

    def visit_of(self, frame: Hashable) -> Visit | None:
        """Return the visit of a page, or of what its way knows its main frame by."""


class Answers:
    """Reads answers in a context when they are there in whole.

    What is too large by its headers is not read; what turns out to be is dropped. Pages end only when all of theirs
    are read.
    """

    def __init__(self, visits: Visits) -> None:
        self.visits = visits
        self._answers: WeakKeyDictionary[Request, Response] = WeakKeyDictionary()

    def watch(self, context: BrowserContext) -> None:
        """Read what all pages of a context get."""
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
