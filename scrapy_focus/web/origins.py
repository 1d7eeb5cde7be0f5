"""Origins of URLs: the scheme, host and port to which a secret may be sent."""

from __future__ import annotations

from urllib.parse import urlsplit

from w3lib.url import safe_url_string

_PORTS = {"http": 80, "https": 443}


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


def origins_of(url: str) -> list[str]:
    """Return the origins that what is meant for a URL may be sent to, its own first; ``[]`` if it is not a URL.

    For ``http`` at its usual port, ``https`` at its usual port is one, too, as sites redirect there.

    Examples
    --------
    >>> origins_of("http://example.org/"), origins_of("https://example.org/")
    (['http:example.org:80', 'https:example.org:443'], ['https:example.org:443'])
    """
    try:
        origin = origin_of(safe_url_string(url))
    except ValueError:
        return []
    if origin.startswith("http:") and origin.endswith(":80"):
        return [origin, f"https{origin[4:-2]}443"]
    return [origin] if origin else []
