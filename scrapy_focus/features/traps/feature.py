"""Drops links of a page that look endless, and logs each reason once."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from scrapy.http import HtmlResponse

from scrapy_focus.core.printable import printable_logger
from scrapy_focus.engine.feature import Feature
from scrapy_focus.features.traps.patterns import Copies, Limits, trap_of

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_focus.core.types import Outcome
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry

logger = printable_logger(__name__)

_WHY = {
    "links": "%s has more than %d new links: only the first ones are followed",
    "folders": "%s has a path of more than %d parts: it is not followed",
    "repeats": "%s has the same part in its path more than %d times: it is not followed",
    "copies": "%s is the same page as at %d other URLs: its links are not followed",
}


class _Page:
    """State of a page while its links arrive."""

    __slots__ = ("is_copy", "is_long")

    def __init__(self) -> None:
        self.is_long: bool | None = None  # whether it has the maximum number of links; None: unknown
        self.is_copy: bool | None = None  # whether it was seen at too many URLs; None: unknown


class Traps(Feature):
    """Refuses links of a page. Start requests, redirects and retries are never refused.

    Requests other than for a plain link (with ``dont_filter``, a body, or another method than GET) are not refused for
    their URL or page, but count among the links of the page. Requests that a callback builds itself are not links: an
    HTML page with fewer links than the limit is not too long, however many requests it yields, and neither is a
    sitemap or a table.

    Parameters
    ----------
    limits
        The limits; links beyond them are refused.
    host
        The host, which counts refused links.
    """

    name: ClassVar[str] = "traps"
    order: ClassVar[int] = 100

    def __init__(self, limits: Limits, host: Host) -> None:
        self.limits = limits
        self.host = host
        self._copies = Copies()
        self._pages: dict[int, _Page] = {}  # by pick
        self._said: set[str] = set()  # reasons that were logged

    def refuse(self, request: Request, page: Entry | None) -> bool:
        if page is None:
            return False
        if self._is_full(page):
            page.full = "links"
            self._refuse("links", page.pick.url)
            return True
        if request.dont_filter or request.method != "GET" or request.body:
            return False
        if self._is_copy(page):
            self._refuse("copies", page.pick.url)
            return True
        trap = trap_of(request.url, self.limits)
        if trap:
            self._refuse(trap, request.url)
        return bool(trap)

    def outcome(self, entry: Entry, outcome: Outcome) -> None:
        self._pages.pop(entry.pick.id, None)

    def _is_full(self, page: Entry) -> bool:
        if not 0 < self.limits.links <= page.found:
            return False
        known = self._known(page)
        if known.is_long is None:
            body = page.response.body if isinstance(page.response, HtmlResponse) else b""
            known.is_long = body.lower().count(b"href") > self.limits.links
        return known.is_long

    def _is_copy(self, page: Entry) -> bool:
        known = self._known(page)
        if known.is_copy is None:
            body = page.response.body if isinstance(page.response, HtmlResponse) else b""
            first = not body or page.pick.origin < 0 or not self.limits.copies
            known.is_copy = not first and self._copies.count(page.pick.url, body) > self.limits.copies
        return known.is_copy

    def _known(self, page: Entry) -> _Page:
        known = self._pages.get(page.pick.id)
        if known is None:
            known = self._pages[page.pick.id] = _Page()
        return known

    def _refuse(self, trap: str, url: str) -> None:
        self.host.count(f"trap/{trap}")
        if trap not in self._said:
            self._said.add(trap)
            logger.warning(
                f"{_WHY[trap]} (FOCUS_MAX_%s); logged once, and counted in focus/trap/%s",
                url, getattr(self.limits, trap), trap.upper(), trap,
            )  # fmt: skip
