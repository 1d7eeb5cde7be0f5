"""Splits the parameters from a URL, and removes some of them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_PIECES = 24  # parameters of a URL; one with more is not split
_NAME = 64  # characters of the name of a parameter

_IN_PATH = re.compile(r";[^;=/]{1,64}=[^;/]*")  # such as ;jsessionid=1A2B


class Query(NamedTuple):
    """A URL in pieces: the part before its parameters, and the sorted parameters.

    A parameter is its name and its spelling in the URL; one in the path (``;jsessionid=1A2B``) has a name that starts
    with a semicolon.
    """

    head: str
    pieces: tuple[tuple[str, str], ...]
    host: str  # and port, as spelled
    names: tuple[str, ...]  # each once, in order

    def value(self, name: str) -> str:
        """Return the value of a parameter, ``""`` if the URL does not have it."""
        return "&".join(piece for each, piece in self.pieces if each == name)

    def without(self, *names: str) -> str:
        """Return the URL without some parameters.

        The others are in a fixed order, those of the path after it, so that their position does not matter.

        Examples
        --------
        >>> query_of("http://a.test/list;s=1?sort=price&cat=3#top").without("sort")
        'http://a.test/list;s=1?cat=3'
        """
        kept = [(name, piece) for name, piece in self.pieces if name not in names]
        in_path = "".join(piece for name, piece in kept if name[0] == ";")
        query = "&".join(piece for name, piece in kept if name[0] != ";")
        return f"{self.head}{in_path}{'?' if query else ''}{query}"


@lru_cache(maxsize=512)
def query_of(url: str) -> Query:
    """Return the pieces of an absolute URL. One with too many parameters, or too long names, has none.

    A crawl splits the same URL repeatedly; the last 512 results are cached.

    Examples
    --------
    >>> query_of("http://a.test/list;s=1?sort=price&cat=3").names
    (';s', 'cat', 'sort')
    >>> query_of("http://a.test/").names
    ()
    """
    url = url.partition("#")[0]
    head, _, query = url.partition("?")
    in_path = _IN_PATH.findall(head) if ";" in head else []
    if not query and not in_path:
        return _query(head, ())
    parts = [*in_path, *query.split("&", _PIECES)]
    pieces = [(piece.partition("=")[0], piece) for piece in parts if piece]
    if len(parts) > _PIECES or any(not 0 < len(name) <= _NAME for name, _ in pieces):
        return _query(url, ())
    return _query(_IN_PATH.sub("", head) if in_path else head, tuple(sorted(pieces)))


def _query(head: str, pieces: tuple[tuple[str, str], ...]) -> Query:
    parts = head.partition("?")[0].split("/", 3)
    host = parts[2] if len(parts) > 2 else ""
    return Query(head, pieces, host, tuple(dict.fromkeys(name for name, _ in pieces)))
