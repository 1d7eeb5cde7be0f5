"""Which fetched pages link to several relevant ones, as far as the crawl has seen."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from scrapy_focus.frontiers.keys import KeyMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NONE = -1


class Hubs:
    """The links among the pages of a crawl, both ways, and how many relevant pages each page links to.

    A page is identified by its key. It is a hub as soon as it links to ``least`` relevant pages, whichever was
    fetched first, the page or those.

    Notes
    -----
    *Memory*: 37 bytes for each URL with a known link, and 12 bytes for each link.

    Examples
    --------
    >>> hubs = Hubs(2)
    >>> hubs.connect(1, [2, 3, 4]), hubs.mark(2), hubs.mark(4)
    (False, [], [1])
    >>> hubs.connect(5, [4, 2]), list(hubs.links(5))
    (True, [4, 2])
    """

    def __init__(self, least: int) -> None:
        self.least = least
        self._numbers = KeyMap()
        self._keys = array("q")  # by number, as all that follow
        self._hits = array("i")  # relevant pages that a page links to
        self._relevant = bytearray()
        self._last = array("i")  # the last link to a page, or none
        self._first = array("i")  # the first link of a page, or none
        self._n_links = array("i")
        self._targets = array("i")  # by link, as all that follow
        self._sources = array("i")
        self._before = array("i")  # the link to the same page before it, or none

    def connect(self, key: int, targets: Iterable[int]) -> bool:
        """Add a page with its links; return whether it is a hub. The links of a page added before are kept."""
        page = self._number(key)
        if self._first[page] == _NONE:
            self._first[page] = len(self._targets)
            for target in dict.fromkeys(map(self._number, targets)):
                self._before.append(self._last[target])
                self._last[target] = len(self._targets)
                self._targets.append(target)
                self._sources.append(page)
                self._hits[page] += self._relevant[target]
            self._n_links[page] = len(self._targets) - self._first[page]
        return self._hits[page] >= self.least

    def mark(self, key: int) -> list[int]:
        """Mark a page as relevant; return the keys of pages that become hubs by that, the oldest first."""
        page = self._number(key)
        if self._relevant[page]:
            return []
        self._relevant[page] = True
        made, link = [], self._last[page]
        while link != _NONE:
            source = self._sources[link]
            self._hits[source] += 1
            if self._hits[source] == self.least:
                made.append(self._keys[source])
            link = self._before[link]
        return made[::-1]

    def links(self, key: int) -> Iterator[int]:
        """Yield the keys that a page links to, in document order; none if it was not added."""
        page = self._number(key)
        first = self._first[page]
        return (self._keys[target] for target in self._targets[first : first + self._n_links[page]])

    def is_hub(self, key: int) -> bool:
        """Whether an added page is a hub now."""
        return self._hits[self._number(key)] >= self.least

    def _number(self, key: int) -> int:
        number = self._numbers.setdefault(key, len(self._keys), _NONE)
        if number == _NONE:
            number = len(self._keys)
            self._keys.append(key)
            self._relevant.append(False)
            for column, value in ((self._hits, 0), (self._last, _NONE), (self._first, _NONE), (self._n_links, 0)):
                column.append(value)
        return number

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_numbers": self._numbers.arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._numbers = KeyMap()
        self._numbers.update_many(*state["_numbers"])
