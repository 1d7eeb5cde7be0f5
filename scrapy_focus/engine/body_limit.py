"""Stops downloads in the middle when a budget of bytes is used up.

Without this, the budget would be checked only between requests, and a file of any size would still be received whole.
Crawls without such a budget do not listen to the signals used here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from scrapy import signals
from scrapy.exceptions import StopDownload

from scrapy_focus.engine.host import host_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers


class Part(NamedTuple):
    """What was counted of a response while it arrived."""

    size: int  # bytes, of headers and body
    is_stopped: bool  # whether it was stopped here


class BodyLimit:
    """Counts the bytes of each response as they arrive, and stops every download that continues beyond the budget."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._counted: WeakKeyDictionary[Request, int] = WeakKeyDictionary()  # bytes, of responses in flight
        self._stopped: WeakSet[Request] = WeakSet()
        crawler.signals.connect(self._on_headers, signals.headers_received)
        crawler.signals.connect(self._on_bytes, signals.bytes_received)

    def take(self, request: Request) -> Part:
        """Return what was counted of the response to a request, which is no longer in flight."""
        part = Part(self._counted.pop(request, 0), request in self._stopped)
        self._stopped.discard(request)
        return part

    def _on_headers(self, headers: Headers, request: Request) -> None:
        self._count(request, len(headers.to_string()))

    def _on_bytes(self, data: bytes, request: Request) -> None:
        self._count(request, len(data))

    def _count(self, request: Request, n_bytes: int) -> None:
        """Count some more bytes of a response; ``StopDownload`` if they exceed the budget."""
        host = host_of(self._crawler)
        if host is None:
            return
        self._counted[request] = self._counted.get(request, 0) + n_bytes
        host.received(n_bytes)
        if host.lacks_bytes():
            self._stopped.add(request)
            raise StopDownload(fail=True)
