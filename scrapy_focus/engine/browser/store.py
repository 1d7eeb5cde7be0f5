"""Scripts and style sheets of a crawl, so that each is asked for once and not with every page that a browser loads.

A browser's own cache is off where its requests are looked at. What is kept here stays in memory.
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

#: Types of resources that are kept, as Playwright names them.
KEPT = frozenset({"script", "stylesheet"})
LARGEST = 4 << 20  # bytes of a script
_MOST = 64 << 20  # bytes of memory
_AWAITED = 10_000  # answers
_OVERHEAD = 2_000  # bytes of memory for one that is empty
_LONGEST_GUESS = 86_400.0  # seconds
_NOT_KEPT = frozenset({  # of a connection, of an encoding that is gone, or of one answer only
    STORED,
    "connection", "content-encoding", "content-length", "keep-alive", "proxy-connection", "set-cookie", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip


class Key(NamedTuple):
    """Whose it is. Browsers keep what they have by context, too, as each may be somebody else."""

    context: str  # its name with scrapy-playwright
    url: str

    @classmethod
    def of(cls, context: str, url: str) -> Self:
        """Return the key of a URL, with or without a fragment."""
        return cls(context, url.partition("#")[0])


class Stored(NamedTuple):
    """An answer that is kept."""

    headers: dict[str, str]
    body: str  # in Base64, as Chromium takes it
    size: int  # bytes of the body


class _Entry(NamedTuple):
    stored: Stored
    response: Response  # without its body
    guessed: float  # when it is too old whatever its headers say; inf: they say when
    weight: int  # bytes of memory


class Store:
    """Answers to GETs of scripts and style sheets, for as long as their headers allow (RFC 9111).

    The arithmetic is that of Scrapy's HTTP cache (``RFC2616Policy``): ``max-age``, else ``Expires``, less the age that
    the answer had. ``s-maxage`` is for caches that many share, and says nothing here. Not kept is what says
    ``no-store`` or ``no-cache``, what varies with anything but ``Accept-Encoding``, and what is no 200. Where the
    headers name no time, an answer is kept for a tenth of its age since ``Last-Modified``, a day at most, and not at
    all without that date. Nothing is asked for again to see whether it has changed: it is forgotten, and asked for.

    Parameters
    ----------
    most
        Bytes of memory; those that were not used for longest go first.
    largest
        Bytes of one answer.
    """

    def __init__(self, *, most: int = _MOST, largest: int = LARGEST) -> None:
        self.most = most
        self.largest = largest
        self.used = 0  # bytes: the sum of the weights of all entries
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._awaited: set[Key] = set()  # asked for, and to be kept when it is there
        self._policy = RFC2616Policy(Settings())

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Stored | None:
        """Return what is kept, if it is still fresh."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if not self._is_fresh(entry):
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.stored

    def wait_for(self, key: Key) -> None:
        """Something is asked for, whose answer may be kept."""
        if len(self._awaited) >= _AWAITED:  # requests that failed
            self._awaited.clear()
        self._awaited.add(key)

    def awaits(self, key: Key, status: int, headers: Mapping[str, str]) -> bool:
        """Whether an answer that came should be read and given to `put`.

        ``headers`` have names in lower case. Only true for what the network was asked for, and once: an answer that a
        handler of the user's made up is none.
        """
        if key not in self._awaited:
            return False
        self._awaited.discard(key)
        return status == 200 and self._entry(key, headers, b"") is not None

    def put(self, key: Key, headers: Mapping[str, str], body: bytes) -> bool:
        """Keep the answer to a GET that was a 200, if that is allowed; the body is no longer compressed."""
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
        """Fail unless what is kept weighs what it is said to weigh, and not too much."""
        assert self.used == sum(entry.weight for entry in self._entries.values()) <= self.most  # noqa: S101

    def _entry(self, key: Key, headers: Mapping[str, str], body: bytes) -> _Entry | None:
        varies = {name.strip().lower() for name in headers.get("vary", "").split(",")}
        if varies - {"", "accept-encoding"}:
            return None
        now = time()
        response = Response(key.url, headers=[(name.encode(), value.encode()) for name, value in headers.items()])
        if rfc1123_to_epoch(response.headers.get(b"Date")) is None:
            response.headers[b"Date"] = formatdate(now, usegmt=True).encode()  # without one it would never grow older
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
