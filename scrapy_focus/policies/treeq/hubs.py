"""The results of the links of each page: a page whose links led to relevant ones is a hub, and has more of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PAGES = 1 << 16  # distinguished pages; the oldest makes room for the next
_BEFORE = 2.0  # links that the share of all counts for


class Hubs:
    """How many links of each page were fetched, and how many of these were relevant.

    Pages have numbers of two bytes, which the links found on them carry; 0 means none. It takes 1.3 MB.

    Examples
    --------
    >>> hubs = Hubs()
    >>> list_, other = hubs.add(), hubs.add()
    >>> for _ in range(6):
    ...     hubs.settle(np.array([list_, 0], np.uint16), relevant=True)
    ...     hubs.settle(np.array([other, 0], np.uint16), relevant=False)
    >>> shares = hubs.shares(np.array([[list_, 0], [other, 0], [list_, other], [0, 0]], np.uint16))
    >>> (100 * shares).round().tolist()
    [88.0, 12.0, 50.0, 50.0]
    """

    def __init__(self) -> None:
        self._counts = np.zeros((_PAGES, 2), np.float32)  # of each page: links fetched, relevant ones
        # For each page: its share is the first number, and the second times the share of all; the third is the number
        # of links.
        self._parts = np.zeros((_PAGES, 3), np.float32)
        self._all = [0, 0]  # links fetched, relevant ones
        self._added = 0

    def add(self) -> int:
        """Return the number of a page that was just fetched."""
        number = self._added % (_PAGES - 1) + 1
        self._added += 1
        self._counts[number] = 0
        self._parts[number] = 0, 1, 1
        return number

    def settle(self, pages: NDArray[np.uint16], *, relevant: bool) -> None:
        """Record the result of a link that is on these pages, shape (k,)."""
        self._all[0] += 1
        self._all[1] += relevant
        of = pages[pages > 0]
        self._counts[of] += 1, relevant
        self._share(of)

    def fetched(self, pages: NDArray[np.uint16]) -> int:
        """Return how many links of these pages, shape (k,), were fetched."""
        return int(self._counts[pages[pages > 0], 0].sum())

    def shares(self, pages: NDArray[np.uint16]) -> NDArray[np.float32]:
        """Return the mean share of relevant links on the pages with each link, shape (n, k).

        A page without a fetched link has the share of all; shape (n,).
        """
        fetched, relevant = self._all
        usual = np.float32((relevant + 1) / (fetched + 2))
        parts = self._parts.take(pages, axis=0).sum(axis=1)
        n = parts[:, 2]
        mean: NDArray[np.float32] = (parts[:, 0] + usual * parts[:, 1] + usual * (n == 0)) / np.maximum(n, 1)
        return mean

    def _share(self, pages: NDArray[np.integer[Any]]) -> None:
        """Update the terms of the shares of some pages."""
        n = self._counts[pages, 0] + np.float32(_BEFORE)
        self._parts[pages, 0] = self._counts[pages, 1] / n
        self._parts[pages, 1] = np.float32(_BEFORE) / n
        self._parts[pages, 2] = 1

    def __getstate__(self) -> dict[str, Any]:
        return {"counts": self._counts[: self._added + 1], "all": self._all, "added": self._added}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Hubs.__init__(self)
        counts = state["counts"]
        self._counts[: len(counts)] = counts
        self._all, self._added = state["all"], state["added"]
        self._share(np.arange(1, len(counts)))
