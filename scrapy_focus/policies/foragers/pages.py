"""What is remembered of the pages that a crawl saw last: their links, what they are about, and when they changed.

A page that comes back as it was has no links and no text, and yet a forager goes on from it. So what it said is
remembered, of so many pages as have room.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LINKS = 300  # of a page that are remembered

_NONE = np.zeros(0, np.int64)


class Known:
    """What is known of one page."""

    __slots__ = ("at", "changed", "links", "row", "version")

    def __init__(self) -> None:
        self.at = 0.0  # when it was visited last, in seconds since the epoch; 0: never
        self.changed: float | None = None  # when the document changed last; None: it says nothing, or is none
        self.links: NDArray[np.int64] = _NONE  # keys
        self.row = -1  # of its state; -1: it has none
        self.version = 0  # another number for another content


class Pages:
    """Remembers the pages that were seen last.

    Parameters
    ----------
    k
        Length of the state of a page.
    most
        Pages that are remembered.

    Notes
    -----
    *Memory*: about 300 bytes a page, ``4 * k`` for its state, and 8 for each of its links: up to 3 kB.
    """

    def __init__(self, k: int, most: int) -> None:
        self.most = most
        self._pages: OrderedDict[int, Known] = OrderedDict()
        self._states = np.zeros((0, k), np.float32)
        self._n_rows = 0  # of the states that were ever used
        self._free: list[int] = []  # of these, those of pages that are forgotten
        self._k = k

    def __len__(self) -> int:
        return len(self._pages)

    def get(self, key: int) -> Known | None:
        """Return what is known of a page, ``None`` where nothing is."""
        return self._pages.get(key)

    def see(self, key: int) -> Known:
        """Return what is known of a page that is seen now, which makes room for it."""
        page = self._pages.get(key)
        if page is None:
            page = self._pages[key] = Known()
            if len(self._pages) > self.most:
                _, gone = self._pages.popitem(last=False)
                if gone.row >= 0:
                    self._free.append(gone.row)
        else:
            self._pages.move_to_end(key)
        return page

    def set_state(self, page: Known, state: NDArray[np.float32]) -> None:
        """Remember the state of a page, shape (k,)."""
        if page.row < 0:
            page.row = self._new_row()
        self._states[page.row] = state

    def state(self, key: int) -> NDArray[np.float32]:
        """Return the state of a page, shape (k,); zeros where it is not known."""
        page = self._pages.get(key)
        if page is None or page.row < 0:
            return np.zeros(self._k, np.float32)
        state: NDArray[np.float32] = self._states[page.row].copy()
        return state

    def states(self, keys: Sequence[int]) -> NDArray[np.float32]:
        """Return the states of pages, shape (n, k); zeros where they are not known."""
        pages = self._pages
        rows = np.array([page.row if (page := pages.get(key)) is not None else -1 for key in keys], np.int64)
        found = np.zeros((len(rows), self._k), np.float32)
        known = rows >= 0
        found[known] = self._states[rows[known]]
        return found

    def __getstate__(self) -> dict[str, Any]:
        pages = list(self._pages.values())
        return {
            "most": self.most, "k": self._k, "keys": np.fromiter(self._pages, np.int64, len(pages)),
            "facts": np.array([(each.at, np.nan if each.changed is None else each.changed) for each in pages]),
            "versions": np.array([each.version for each in pages], np.int64),
            "lengths": np.array([len(each.links) for each in pages], np.int64),
            "links": np.concatenate([_NONE, *(each.links for each in pages)]),
            "rows": np.array([each.row for each in pages], np.int64),
            "states": self._states[: self._n_rows], "free": self._free,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        Pages.__init__(self, state["k"], state["most"])
        ends = np.cumsum(state["lengths"])
        for i, key in enumerate(state["keys"].tolist()):
            page = self._pages[key] = Known()
            at, changed = state["facts"][i].tolist()
            page.at, page.changed = at, None if np.isnan(changed) else changed
            page.version, page.row = int(state["versions"][i]), int(state["rows"][i])
            page.links = state["links"][ends[i] - state["lengths"][i] : ends[i]].copy()
        self._states = state["states"].copy()
        self._n_rows = len(self._states)
        self._free = list(state["free"])

    def _new_row(self) -> int:
        if self._free:
            return self._free.pop()
        if self._n_rows == len(self._states):
            room = max(64, len(self._states))
            self._states = np.concatenate([self._states, np.zeros((room, self._k), np.float32)])
        self._n_rows += 1
        return self._n_rows - 1
