"""Caches scripts and style sheets of a crawl, so that a browser does not request each with every page.

A browser's own cache is off when its requests are intercepted. This cache is in memory only.
"""

from __future__ import annotations

from base64 import b64encode
from collections import OrderedDict
from email.utils import formatdate
from time import time
from typing import TYPE_CHECKING, NamedTuple

from scrapy.extensions.httpcache import RFC2616Policy, rfc1123_to_epoch
from scrapy.http import Request, Response
from scrapy.settings import Settings

from scrapy_focus.engine.browser.sizes import STORED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

#: Types of resources that are stored, by Playwright's names.
KEPT = frozenset({"script", "stylesheet"})
LARGEST = 4 << 20  # bytes of a script
_MOST = 64 << 20  # bytes of memory
_AWAITED = 10_000  # responses
_OVERHEAD = 2_000  # bytes of memory for an empty one
_LONGEST_GUESS = 86_400.0  # seconds
_NOT_KEPT = frozenset({  # headers of a connection, of an encoding already undone, or of one response only
    STORED,
    "connection", "content-encoding", "content-length", "keep-alive", "proxy-connection", "set-cookie", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip


class Key(NamedTuple):
    """A URL in a context. Browsers, too, cache by context, as each may be a different user."""

    context: str  # its name with scrapy-playwright
    url: str

    @classmethod
    def of(cls, context: str, url: str) -> Self:
        """Return the key of a URL, with or without a fragment."""
        return cls(context, url.partition("#")[0])


class Stored(NamedTuple):
    """A stored response."""

    headers: dict[str, str]
    body: str  # in Base64, as Chromium expects it
    size: int  # bytes of the body


class _Entry(NamedTuple):
    stored: Stored
    response: Response  # without its body
    guessed: float  # when it is too old whatever its headers say; inf: its headers say when
    weight: int  # bytes of memory


class Store:
    """Responses to GET requests of scripts and style sheets, for as long as their headers allow (RFC 9111).

    The arithmetic is that of Scrapy's HTTP cache (``RFC2616Policy``): ``max-age``, else ``Expires``, minus the age of
    the response. ``s-maxage`` concerns shared caches, and is ignored. Not stored are responses with ``no-store`` or
    ``no-cache``, those that vary with anything but ``Accept-Encoding``, and those with a status other than 200. If the
    headers name no time, a response is stored for a tenth of its age since ``Last-Modified``, a day at most, and not
    at all without that date. Nothing is revalidated: a stale response is forgotten, and requested in full.

    Parameters
    ----------
    most
        Bytes of memory; the least recently used responses are removed first.
    largest
        Bytes of one response.
    """

    def __init__(self, *, most: int = _MOST, largest: int = LARGEST) -> None:
        self.most = most
        self.largest = largest
        self.used = 0  # bytes: the sum of the weights of all entries
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._awaited: set[Key] = set()  # requested, and to be stored on arrival
        self._policy = RFC2616Policy(Settings())

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Stored | None:
        """Return the stored response, if it is still fresh."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if not self._is_fresh(entry):
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.stored

    def wait_for(self, key: Key) -> None:
        """Note a request whose response may be stored."""
        if len(self._awaited) >= _AWAITED:  # requests that failed
            self._awaited.clear()
        self._awaited.add(key)

    def awaits(self, key: Key, status: int, headers: Mapping[str, str]) -> bool:
        """Whether a response should be read and given to `put`.

        ``headers`` have lower-case names. Only true for a response to a request on the network, and once: a response
        made by a user's handler does not count.
        """
        if key not in self._awaited:
            return False
        self._awaited.discard(key)
        return status == 200 and self._entry(key, headers, b"") is not None

    def put(self, key: Key, headers: Mapping[str, str], body: bytes) -> bool:
        """Store the response to a GET request, if that is allowed; the status was 200, and the body is decompressed."""
        entry = self._entry(key, headers, body)
        if entry is None or len(body) > self.largest or entry.weight > self.most:
            return False
        self._drop(key)
        self._entries[key] = entry
        self.used += entry.weight
        while self.used > self.most:
            self._drop(next(iter(self._entries)))
        return True

    def check(self) -> None:
        """Fail unless the total weight is the sum of the entries, and within the limit."""
        assert self.used == sum(entry.weight for entry in self._entries.values()) <= self.most  # noqa: S101

    def _entry(self, key: Key, headers: Mapping[str, str], body: bytes) -> _Entry | None:
        varies = {name.strip().lower() for name in headers.get("vary", "").split(",")}
        if varies - {"", "accept-encoding"}:
            return None
        now = time()
        response = Response(key.url, headers=[(name.encode(), value.encode()) for name, value in headers.items()])
        if rfc1123_to_epoch(response.headers.get(b"Date")) is None:
            response.headers[b"Date"] = formatdate(now, usegmt=True).encode()  # without a date it would never age
        says_when = "max-age" in headers.get("cache-control", "").lower() or "expires" in headers
        kept = {name: value for name, value in headers.items() if name not in _NOT_KEPT}
        entry = _Entry(
            Stored(kept, b64encode(body).decode(), len(body)),
            response,
            float("inf") if says_when else now + _LONGEST_GUESS,
            _OVERHEAD + sum(len(name) + len(value) for name, value in headers.items()) * 2 + len(body) * 4 // 3,
        )
        keeps = self._policy.should_cache_response(response, Request(key.url)) and self._is_fresh(entry)
        return entry if keeps else None

    def _is_fresh(self, entry: _Entry) -> bool:
        fresh = self._policy.is_cached_response_fresh(entry.response, Request(entry.response.url))
        return bool(fresh) and time() < entry.guessed

    def _drop(self, key: Key) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self.used -= entry.weight
