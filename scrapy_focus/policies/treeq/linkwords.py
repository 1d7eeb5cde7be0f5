"""Which links lead to relevant pages, by their words and places: learned during the crawl as a correction of prior
log-odds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.learn.hashed import HashedLogistic
from scrapy_focus.policies.branching.features import WIDTH, LinkHasher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link

_KEPT = 1 << 16  # links that are remembered, until others take their place


class LinkWords:
    """Learns from each fetched page a correction of the log-odds of links with similar words or places.

    A model of pages knows few of the words of links. This one starts from nothing, and learns from the fetched pages
    by the features of their links (:class:`~scrapy_focus.policies.branching.features.LinkHasher`): words of URL and
    anchor, the place on the page.

    Notes
    -----
    *Memory*: 0.5 MB of weights, and 5 MB for the features of about the last 65,536 links. A forgotten link keeps its
    last prediction, and teaches nothing.

    Examples
    --------
    >>> from scrapy_focus import Link
    >>> words = LinkWords()
    >>> links = [Link("http://a.test/1", 1, anchor="Hives"), Link("http://a.test/2", 2, anchor="Shop")]
    >>> words.read(links).tolist()
    [0.0, 0.0]
    >>> for _ in range(5):
    ...     words.learn(1, True, odds=0.0)
    ...     words.learn(2, False, odds=0.0)
    >>> others = [Link("http://b.test/1", 3, anchor="Hives"), Link("http://b.test/2", 4, anchor="Shop")]
    >>> hives, shop = words.read(others)
    >>> bool(hives > 0.2), bool(shop < -0.2)
    (True, True)
    """

    def __init__(self) -> None:
        self.model = HashedLogistic()
        self._hasher = LinkHasher()
        self._make_room()

    def _make_room(self) -> None:
        self._keys = np.full(_KEPT, -1, np.int64)
        # Unwritten memory is never allocated.
        self._rows = np.zeros((_KEPT, WIDTH), np.uint16)

    def read(self, links: Sequence[Link]) -> NDArray[np.float32]:
        """Return the corrections of the log-odds of links of one page, shape (n,), and remember the links."""
        rows = self._hasher.rows(links)
        keys = np.array([link.key for link in links], np.int64)
        at = keys % _KEPT
        self._keys[at], self._rows[at] = keys, rows
        return self.model.decide(rows)

    def read_again(self, keys: Sequence[int]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Return which of some links are remembered, shape (m,), and their current corrections, shape (m,)."""
        wanted = np.array(keys, np.int64)
        at = wanted % _KEPT
        kept = np.flatnonzero(self._keys[at] == wanted)
        return kept, self.model.decide(self._rows[at[kept]])

    def learn(self, key: int, relevant: bool, *, odds: float) -> None:
        """Learn from a page, if its link is remembered; ``odds``: the prior log-odds of the link."""
        at = key % _KEPT
        if self._keys[at] == key:
            self.model.learn(self._rows[at], float(relevant), offset=odds)

    def __getstate__(self) -> dict[str, Any]:
        used = np.flatnonzero(self._keys >= 0)
        return {"model": self.model, "keys": self._keys[used], "rows": self._rows[used]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.model = state["model"]
        self._hasher = LinkHasher()
        self._make_room()
        at = state["keys"] % _KEPT
        self._keys[at], self._rows[at] = state["keys"], state["rows"]
