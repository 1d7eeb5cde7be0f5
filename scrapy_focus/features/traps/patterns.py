"""Limits that separate an endless site from a large one.

Calendars, sorted copies of a list and links that repeat their own path make URLs without end, and none of them
violates a standard. A policy that learns ignores most of them, as they earn nothing. These limits are for the rest, and
for what would cost too much before anything is learned. Each is far beyond honest sites, and wider than the defaults of
crawlers that do not learn (Heritrix: 20 parts of a path, 2 repeats in a row, 6,000 links a page; Nutch: 3 repeats, 100
links; StormCrawler: 3 repeats, URLs of 1,024 characters). 0 disables a limit. Scrapy itself limits the length of a URL
and the number of clicks from a seed.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

_PAGES = 1 << 15  # at least so many bodies are remembered


class Limits(NamedTuple):
    """How far a site is followed; 0 disables a limit."""

    links: int = 6000  # new links of one page
    folders: int = 32  # parts of a path
    repeats: int = 5  # times that one part occurs in a path
    copies: int = 100  # URLs with the same page whose links are followed


def trap_of(url: str, limits: Limits) -> str:
    """Return the limit that an absolute URL exceeds, ``""`` for none. Time is linear in the URL.

    Examples
    --------
    >>> trap_of("http://a.test/news/2024/may/01/prices.csv", Limits())
    ''
    >>> trap_of("http://a.test/en" + 6 * "/more/en" + "/index.html", Limits())
    'repeats'
    >>> trap_of("http://a.test" + "".join(f"/{i}" for i in range(40)), Limits())
    'folders'
    """
    path = url.partition("?")[0].partition("#")[0]
    n_parts = path.count("/") - 2
    if limits.folders and n_parts > limits.folders:
        return "folders"
    if limits.repeats and n_parts > limits.repeats:
        parts = path.split("/")[3:]
        if n_parts - len(set(parts)) >= limits.repeats and max(Counter(parts).values()) > limits.repeats:
            return "repeats"
    return ""


class Copies:
    """Counts the URLs of each page body, for the last 32,768 pages or more.

    Examples
    --------
    >>> copies = Copies()
    >>> [copies.count(url, b"<html>") for url in ("http://a.test/?id=1", "http://a.test/?id=2", "http://a.test/?id=2")]
    [1, 2, 2]
    """

    def __init__(self, pages: int = _PAGES) -> None:
        self.pages = pages
        self._new: dict[int, int] = {}  # number of URLs by hash of the body; 1 by hash of URL and body
        self._old: dict[int, int] = {}

    def count(self, url: str, body: bytes) -> int:
        """Return the number of URLs with a body, including this one."""
        key, page = hash(body), hash((url, body))
        seen = self._get(key)
        if self._get(page):
            return seen
        if len(self._new) >= 2 * self.pages:
            self._old, self._new = self._new, {}
        self._new[page] = 1
        self._new[key] = seen + 1
        return seen + 1

    def _get(self, key: int) -> int:
        return self._new.get(key) or self._old.get(key, 0)
