"""What a crawl sends to some hosts alone, and how it reaches all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.web.cookies import cookies_in
from scrapy_focus.web.origins import origin_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from http.cookiejar import Cookie

_NONE: Mapping[str, bytes] = {}


class Proxy(NamedTuple):
    """An HTTP proxy."""

    url: str  # without user name and password
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self.url!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a crawl sends to some hosts alone, and how it reaches all of them.

    None of it is stored: whoever sends a request adds its headers at the last moment.
    """

    headers: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict, repr=False)  # by origin and name
    cookies: Sequence[Cookie] = field(default=(), repr=False)
    proxy: Proxy | None = None
    takes_any_certificate: bool = False

    def headers_for(self, url: str) -> Mapping[str, bytes]:
        """Return the headers of requests to the origin of a URL, by name; cookies of :attr:`cookies` excluded."""
        if not self.headers:
            return _NONE
        return self.headers.get(origin_of(url), _NONE)

    def header_cookies(self) -> Iterator[Cookie]:
        """Yield the cookies of headers, each for the host of its origin."""
        for origin, headers in self.headers.items():
            scheme, _, rest = origin.partition(":")
            host = rest.rpartition(":")[0]
            secure = scheme == "https" and f"http:{host}:80" not in self.headers
            yield from cookies_in(headers.get("Cookie", b"").decode(errors="replace"), host, secure=secure)


#: A crawl without any of it.
PLAIN = Access()
