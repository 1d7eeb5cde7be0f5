"""Paths for stored files: readable for people, and never outside the folder, whatever name the server sends.

Names are not trusted, are read by people, and must work on every file system. So a path always has three parts (host,
section, name). No part is a parent folder, hidden, or reserved on any system, and no two paths differ only in case.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from scrapy_focus.web.safe_names import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterable

_FOLDER = 60  # bytes of a host or a section
_READ = 2000  # characters of a URL that are read
_TOP = "top"  # section of files in no folder


def folder_of(url: str) -> str:
    """Return host and section of a URL, as the folder for its file: ``host/section``.

    Examples
    --------
    >>> folder_of("https://www.example.org/statistics/2024/prices.csv"), folder_of("http://example.org:8000/a.csv")
    ('www.example.org/statistics', 'example.org_8000/top')
    """
    try:
        parts = urlsplit(url[:_READ])
        host, port, path = parts.hostname or "", parts.port, parts.path
    except ValueError:
        host, port, path = "", None, ""
    folders = [part for part in unquote(path).split("/")[:-1] if part.strip(". ")]
    place = f"{host}_{port}" if port else host
    return f"{safe_name(place or 'host', _FOLDER)}/{safe_name(folders[0], _FOLDER) if folders else _TOP}"


class Names:
    """Gives every file a unique path, relative to the folder of files; a name that is taken gets a number.

    Parameters
    ----------
    taken
        Paths given earlier.

    Examples
    --------
    >>> names = Names()
    >>> [names.give("http://a.test/x/1", name) for name in ("prices.csv", "Prices.CSV", "prices.csv")]
    ['a.test/x/prices.csv', 'a.test/x/Prices-2.CSV', 'a.test/x/prices-3.csv']
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {_same(path) for path in taken}
        self._next: dict[str, int] = {}  # the number to try first for each path

    def give(self, url: str, name: str) -> str:
        """Return and reserve the path for a file of this name from this URL."""
        folder, name = folder_of(url), safe_name(name)
        path = f"{folder}/{name}"
        first = _same(path)
        number = self._next.get(first, 2)
        while _same(path) in self._taken:
            path = f"{folder}/{_numbered(name, number)}"
            number += 1
        self._next[first] = number
        self._taken.add(_same(path))
        return path


def _numbered(name: str, number: int) -> str:
    stem, dot, ending = name.rpartition(".")
    return f"{stem}-{number}{dot}{ending}" if dot else f"{name}-{number}"


def _same(path: str) -> str:
    """Return a key that is equal for all paths that a file system may treat as one."""
    return unicodedata.normalize("NFKC", path).casefold()
