"""Tag paths of links without identifiers of single elements, so that equal places of many pages have equal paths."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Prefixes of tag paths for pages that brought targets in an earlier crawl, for those that led to such pages, and for
#: new ones like them.
AGAIN = {"files": "again/page.files", "leads": "again/page.leads", "new": "again/page.new"}

_ID = re.compile(r"(?<![^/])([^/]*)#([^/# ]*)(?![^/])")  # of one element, behind its name and classes
_DIGIT = re.compile(r"\d")
_SHARE = 0.25  # of the pages with an id, for an id that belongs to the layout ...
_LEAST = 3  # ... and pages, at least
_MOST = 1 << 14  # ids that are counted; any further one counts as one of a single page
_LONGEST = 100  # characters of an id that is counted


class Places:
    """Removes ids from tag paths, except those that belong to the layout of a site.

    The ids of teasers, rows and sections differ from page to page, and every path with one would be a separate place.
    The id of a sidebar or footer may be all that distinguishes it from the rest. So an id is kept if its element has
    no class, it contains no number, and new links are below it on a quarter of the pages that have any.

    Notes
    -----
    *Memory*: 16,384 ids with the number of pages that have each, 3 MB at most.

    Examples
    --------
    >>> places = Places()
    >>> for i in range(3):
    ...     plain = places.read([f"html/div#footer/ul/li.row#item-{i}/a"])
    >>> list(plain.values())
    ['html/div#footer/ul/li.row/a']
    """

    def __init__(self) -> None:
        self._pages = 0
        self._counts: Counter[str] = Counter()

    def read(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the tag paths of one page without such ids, by the paths with them."""
        distinct = dict.fromkeys(paths)
        self._pages += 1
        for each in _ids_in(distinct):
            known = each in self._counts or (len(self._counts) < _MOST and len(each) <= _LONGEST)
            if known and not _DIGIT.search(each):
                self._counts[each] += 1
        return {path: _ID.sub(self._kept, path) if "#" in path else path for path in distinct}

    def _kept(self, found: re.Match[str]) -> str:
        often = self._counts.get(found[2], 0) >= max(_LEAST, _SHARE * self._pages)
        return found[0] if often and "." not in found[1] else found[1]


def _ids_in(paths: Iterable[str]) -> dict[str, None]:
    """Return the ids in tag paths, each once, in order."""
    ids: dict[str, None] = {}
    for path in paths:
        if "#" in path:
            for found in _ID.finditer(path):
                if "." not in found[1]:
                    ids[found[2]] = None
    return ids
