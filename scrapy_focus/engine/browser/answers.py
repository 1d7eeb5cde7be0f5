"""Answers that a browser has, read from it without asking the network again.

JSON that scripts fetched is kept with its page, scripts and style sheets in the store of the crawl.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from scrapy_focus.engine.browser.sizes import STORED, page_of
from scrapy_focus.engine.browser.store import KEPT, Key, Store
from scrapy_focus.engine.browser.visit import Answer
from scrapy_focus.web.domains import domain_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from playwright.async_api import BrowserContext, Request, Response

    from scrapy_focus.engine.browser.visit import Visit

_JSON = re.compile(r"(?:application|text)/(?:[\w.-]{1,60}\+)?json", re.IGNORECASE)
_FETCHED = frozenset({"xhr", "fetch"})


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
        if is_new and response.request.resource_type in KEPT | _FETCHED:
            self._answers[response.request] = response

    def _finish(self, request: Request) -> None:
        response, page = self._answers.pop(request, None), page_of(request)
        visit = None if page is None else self.visits.visit_of(page)
        if response is None or visit is None or request.method != "GET" or response.from_service_worker:
            return
        if request.resource_type in KEPT:
            key = Key.of(visit.context, request.url)
            awaited = self.visits.store.awaits(key, response.status, response.headers)
            if awaited and _length(response) <= self.visits.store.largest:
                visit.start(self._store(key, response))
        elif visit.limits is not None and _is_answer(response, visit):
            if _has_room(visit, _length(response)):
                visit.start(self._note(response, visit))
            else:
                visit.guard.note("api/unread/too_large")

    async def _store(self, key: Key, response: Response) -> None:
        with suppress(Exception):  # its page was closed
            self.visits.store.put(key, response.headers, await response.body())

    async def _note(self, response: Response, visit: Visit) -> None:
        with suppress(Exception):  # its page was closed
            body = await response.body()
            if _has_room(visit, len(body)):
                visit.answers.append(Answer(response.url, body))
            else:
                visit.guard.note("api/unread/too_large")


def _is_answer(response: Response, visit: Visit) -> bool:
    """Whether an answer is JSON of the site of the page."""
    mine, theirs = (urlsplit(url).hostname or "" for url in (visit.request.url, response.url))
    return (
        response.status == 200
        and domain_of(mine) == domain_of(theirs)
        and _JSON.match(response.headers.get("content-type", "")) is not None
    )


def _has_room(visit: Visit, size: int) -> bool:
    limits, used = visit.limits, sum(len(answer.body) for answer in visit.answers)
    return (
        limits is not None
        and len(visit.answers) < limits.answers
        and size <= min(limits.answer_bytes, limits.answers_bytes - used)
    )


def _length(response: Response) -> int:
    """Return the bytes that the headers announce, 0 if they announce none."""
    length = response.headers.get("content-length", "")
    return int(length) if re.fullmatch(r"[0-9]{1,15}", length) else 0
