"""The part of the web around some start URLs: their pages, folders, hosts or domains."""

from __future__ import annotations

from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit

from scrapy_focus.web.domains import domain_of

#: How far an area reaches, from the narrowest to the widest.
REACHES = ("page", "prefix", "host", "domain", "any")

Reach = Literal["page", "prefix", "host", "domain", "any"]

_PORTS = {"http": 80, "https": 443}


class Area:
    """The URLs that belong to some start URLs.

    The scheme does not matter, nor does ``www.`` at the beginning of a host. Ports matter for pages and folders.

    Parameters
    ----------
    reach
        ``page``: the start URLs; ``prefix``: URLs in the folder of one, and below it; ``host``: their hosts and
        subdomains; ``domain``: all hosts of their registered domains; ``any``: all URLs.

    Examples
    --------
    >>> area = Area("prefix")
    >>> area.add("https://www.example.org/docs/index.html")
    >>> ["http://example.org" + path in area for path in ("/docs/a/b.pdf", "/docs", "/docs/../a", "/docs/%2E%2e/a")]
    [True, False, False, False]
    """

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self._places: dict[str, set[str]] = {}  # of the start URLs, by host or domain

    def add(self, url: str) -> None:
        """Add a start URL."""
        name, place = self._place(url)
        if name:
            self._places.setdefault(name, set()).add(place)

    def __contains__(self, url: str) -> bool:
        if self.reach == "any":
            return True
        name, place = self._place(url)
        places = self._places.get(name)
        if self.reach == "host":
            return places is not None or any(ending in self._places for ending in _endings(name))
        if places is None:
            return False
        if self.reach == "prefix":
            return any(place.startswith(folder) for folder in places)
        return place in places

    def __bool__(self) -> bool:
        """Whether there are start URLs."""
        return bool(self._places)

    def has_host(self, url: str) -> bool:
        """Whether a start URL has the host of a URL."""
        return self._place(url)[0] in self._places

    def _place(self, url: str) -> tuple[str, str]:
        """Return the host or domain of a URL, and its place there, as far as they matter."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return "", ""
        host = (parts.hostname or "").rstrip(".").removeprefix("www.")
        if self.reach == "host":
            return host, ""
        if self.reach == "domain":
            return domain_of(host), ""
        if port not in (None, _PORTS.get(parts.scheme)):
            host = f"{host}:{port}"
        path = _path(parts)
        return host, path.rpartition("/")[0] + "/" if self.reach == "prefix" else f"{path}?{parts.query}"


def prefix_of(url: str) -> str:
    """Return the host and folder of a URL, below which the area ``prefix`` lies.

    Examples
    --------
    >>> prefix_of("https://www.example.org/docs/index.html"), prefix_of("http://localhost:8000")
    ('example.org/docs/', 'localhost:8000/')
    """
    return "".join(Area("prefix")._place(url))


def _endings(host: str) -> list[str]:
    """Return the domains that contain a host."""
    labels = host.split(".")
    return [".".join(labels[at:]) for at in range(1, len(labels))]


def _path(parts: SplitResult) -> str:
    """Return the path that a server sees: without escapes, ``.`` and ``..``."""
    path = unquote(parts.path) or "/"
    if "/." not in path:
        return path
    kept: list[str] = []
    for part in path.split("/")[1:]:
        if part == "..":
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    if path.endswith(("/.", "/..")) and kept:
        kept.append("")
    return f"/{'/'.join(kept)}"
