"""Pages that a browser shows while a site is recorded, and the cost of each.

A recording has no scheduler of this package to send requests, count them, and know their cost. So the guard between a
browser and the network has another host here, which allows all that robots.txt does.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.exceptions import IgnoreRequest

from scrapy_focus.engine.browser.guard import Guard
from scrapy_focus.engine.browser.store import KEPT, Key
from scrapy_focus.engine.browser.visit import INIT, Visit
from scrapy_focus.engine.marks import RENDERED
from scrapy_focus.lab.recordings.writer import Asset, Rendering

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_focus.engine.browser.store import Stored
    from scrapy_focus.engine.browser.ways import Asked

RENDER = "focus_to_render"  # meta key: whether a browser is to show the page
_TOOK = "focus_took"  # meta key: the cost of that
_ELSEWHERE = ("fetch", "script", "stylesheet", "xhr")  # what a page is not itself without


class Took(NamedTuple):
    """The requests of a browser for a page."""

    requests: int = 0  # besides the page's own, and those for shared assets
    received: int = 0  # bytes of the network for the page and these
    assets: tuple[Asset, ...] = ()


class RecordedBrowser:
    """A downloader middleware of recordings: a browser answers the requests to be rendered.

    Its rules are those of live crawls, including robots.txt for each request. A page with further requests owes the
    host as many delays.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.guard = _NotingGuard(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        middleware = cls(crawler)
        crawler.signals.connect(middleware.response_downloaded, signals.response_downloaded)
        return middleware

    def response_downloaded(self, response: Response, request: Request) -> None:
        """Leave the host of a page alone for one delay per further request; the handler of Scrapy's signal, after
        which the next request leaves.
        """
        visit = request.meta.get(INIT)
        slot = self.crawler.engine.downloader.slots.get(request.meta.get("download_slot", ""))
        if isinstance(visit, Visit) and slot is not None:
            slot.lastseen = max(slot.lastseen, monotonic() - slot.delay) + visit.requests * slot.delay

    def process_request(self, request: Request) -> None:
        if request.meta.get(RENDER):
            request.meta["playwright"] = request.meta[RENDERED] = True
            self.guard.take(request)

    def process_response(self, request: Request, response: Response) -> Response:
        visit = self._back(request)
        if visit is not None and not visit.is_weighed:
            took: Took = request.meta[_TOOK]
            request.meta[_TOOK] = took._replace(received=took.received + len(response.body))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        visit = self._back(request)
        if visit is not None and visit.refused:
            raise IgnoreRequest(f"{request.url} leads where it must not ({visit.refused})") from exception

    def _back(self, request: Request) -> Visit | None:
        visit = self.guard.give_back(request)
        if visit is not None:
            request.meta[_TOOK] = self.guard.took(visit)
        return visit


def rendering_of(response: Response, url: str, headers: Mapping[str, str]) -> Rendering:
    """Return what a browser showed of a page, and its cost."""
    took: Took = response.meta.get(_TOOK, Took())
    return Rendering(
        url=url, status=response.status, headers=headers, body=response.body, shown_at=response.url,
        seconds=response.meta.get("download_latency", 0.0), **took._asdict(),
    )  # fmt: skip


def failed_rendering(request: Request, url: str, error: str) -> Rendering:
    """Return why a browser could not show a page, and the cost of finding out."""
    took: Took = request.meta.get(_TOOK, Took())
    return Rendering(url=url, error=error, **took._asdict())


class _Asks(NamedTuple):
    """A script or style sheet that a page needs."""

    key: Key
    is_sent: bool  # whether the network was used for it


class _NotingGuard(Guard):
    """Records which scripts and style sheets each page needs, whoever requested them."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler, _Recording(crawler), _ELSEWHERE)
        self.learns = True
        self._needs: WeakKeyDictionary[Visit, list[_Asks]] = WeakKeyDictionary()
        self._sizes: dict[str, int] = {}  # bytes of those that were kept, by URL

    def stored(self, asked: Asked) -> Stored | None:
        stored = super().stored(asked)
        visit = self.visit_of(asked.frame)
        if visit is not None and asked.kind in KEPT and asked.method == "GET":
            self._needs.setdefault(visit, []).append(_Asks(Key.of(visit.context, asked.url), stored is None))
        return stored

    def took(self, visit: Visit) -> Took:
        """Return the cost of a page: shared assets count separately."""
        requests, received, assets = visit.requests, visit.received, {}
        for asks in self._needs.pop(visit, ()):
            kept = self.store.get(asks.key)
            if kept is None:
                continue
            size = kept.size + sum(len(name) + len(value) + 4 for name, value in kept.headers.items())
            assets[asks.key.url] = size
            if asks.is_sent:
                requests -= 1
                received -= size
        return Took(max(0, requests), max(0, received), tuple(Asset(*each) for each in assets.items()))


class _Recording:
    """What the guard of a browser needs from a crawl, if a recording takes the place of the scheduler."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.unchecked: dict[str, str] = {}

    def is_spent(self) -> bool:
        """Nothing is."""
        return False

    def is_wanted(self, mime: str, url: str = "") -> bool:
        """Unneeded resources are blocked by the guard."""
        return True

    async def sent(self, request: Request | None) -> bool:
        """A request may go out."""
        return True

    def received(self, n_bytes: int | None) -> None:
        """An answer came."""

    def lacks_bytes(self) -> bool:
        """A recording has no budget of bytes."""
        return False

    def count(self, name: str, n: int = 1) -> None:
        """Count in the stats of Scrapy, where live crawls do."""
        if (stats := self.crawler.stats) is not None:
            stats.inc_value(f"focus/{name}", n)
