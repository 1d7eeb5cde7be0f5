"""User names and passwords in start URLs: sent to their hosts only, and hidden everywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from w3lib.http import basic_auth_header
from w3lib.url import safe_url_string

from scrapy_focus.web.linkurls import without_credentials

if TYPE_CHECKING:
    from collections.abc import Iterable

_PORTS = {"http": 80, "https": 443}


def take_credentials(urls: Iterable[str]) -> tuple[list[str], dict[str, bytes]]:
    """Return URLs without user names and passwords, and the values of ``Authorization`` by origin.

    Credentials for ``http`` at its usual port are also valid for ``https`` at its usual port, as sites redirect there.
    Anything that is not a URL stays unchanged.

    Examples
    --------
    >>> take_credentials(["http://me:p%40ss@example.org/x", "http://a.example/"])[0]
    ['http://example.org/x', 'http://a.example/']
    """
    bare: list[str] = []
    headers: dict[str, bytes] = {}
    for url in urls:
        try:
            parts, rest = urlsplit(url), without_credentials(url)
            if rest != url:
                header = basic_auth_header(unquote(parts.username or ""), unquote(parts.password or ""), "utf-8")
                origin = origin_of(safe_url_string(rest))
                headers[origin] = header
                if origin.startswith("http:") and origin.endswith(":80"):
                    headers.setdefault(f"https{origin[4:-2]}443", header)
        except ValueError:
            rest = url
        bare.append(rest)
    return bare, headers


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, ``""`` if the port is invalid.

    Examples
    --------
    >>> origin_of("https://Example.org/x"), origin_of("http://[::1]:81")
    ('https:example.org:443', 'http:::1:81')
    """
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}:{parts.hostname}:{parts.port or _PORTS.get(parts.scheme, '')}"
    except ValueError:
        return ""
