"""Which links of a page go no further, as its site may be endless; says so once for each reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse

from scrapy_focus.core.printable import printable_logger
from scrapy_focus.web.traps import Copies, Limits, trap_of

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry

logger = printable_logger(__name__)

_PASSED = 64
_WHY = {
    "links": "%s has more than %d new links: the first ones are followed",
    "folders": "%s has a path of more than %d parts: it is not followed",
    "repeats": "%s has the same part in its path more than %d times: it is not followed",
    "copies": "%s is the same page as at %d other URLs: its links are not followed",
}


class Traps:
    """Refuses links that a page gives. Start requests, redirects and retries are never refused.

    What a spider asks for by other means than a plain link (``dont_filter``, a body, another method than GET) is not
    refused for its URL or its page, but counts among the links of the page. Requests that a callback makes by itself
    are no links: a page in HTML that has fewer links than are followed is not too long, however many it gives, and
    neither is a sitemap or a table.

    Parameters
    ----------
    limits
        Beyond which a link is refused.
    host
        Where refused links are counted.
    """

    def __init__(self, limits: Limits, host: Host) -> None:
        self.limits = limits
        self.host = host
        self._copies = Copies()
        self._dropped = 0
        self._told: set[str] = set()

    def drops(self, page: Entry | None) -> bool:
        """Whether a request of a page that has given as many links as are followed goes no further, at an early point.

        One of 64 does, to be refused later: while all are dropped, the callback is not parted from the event loop.
        """
        if page is None or not self._is_full(page):
            return False
        self._dropped += 1
        if self._dropped % _PASSED == 0:
            return False
        self._refuse("links", page.pick.url)
        return True

    def refuses(self, request: Request, page: Entry) -> bool:
        """Whether a request that a page gave goes no further."""
        if self._is_full(page):
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

    def _is_full(self, page: Entry) -> bool:
        if not 0 < self.limits.links <= page.found:
            return False
        if page.is_long is None:
            body = page.response.body if isinstance(page.response, HtmlResponse) else b""
            page.is_long = body.lower().count(b"href") > self.limits.links
        return page.is_long

    def _is_copy(self, page: Entry) -> bool:
        if page.is_copy is None:
            body = page.response.body if isinstance(page.response, HtmlResponse) else b""
            first = not body or page.pick.origin < 0 or not self.limits.copies
            page.is_copy = not first and self._copies.count(page.pick.url, body) > self.limits.copies
        return page.is_copy

    def _refuse(self, trap: str, url: str) -> None:
        self.host.count(f"trap/{trap}")
        if trap not in self._told:
            self._told.add(trap)
            logger.warning(
                f"{_WHY[trap]} (FOCUS_MAX_%s); this is said once, and counted in focus/trap/%s",
                url, getattr(self.limits, trap), trap.upper(), trap,
            )  # fmt: skip
