"""What came of the links of each page: a page whose links led to relevant ones is a hub, and has more of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PAGES = 1 << 16  # that are told apart; the oldest makes room for the next
_BEFORE = 2.0  # links for which the share of all counts


class Hubs:
    """How many links of each page were fetched, and how many of these were relevant.

    Pages have numbers of two bytes, which the links found on them carry; 0 is no page. It takes 1.3 MB.

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
        self._fetched = np.zeros(_PAGES, np.float32)
        self._relevant = np.zeros(_PAGES, np.float32)
        # Of each page: its share is the first number, and the second times that of all; the third counts it.
        self._parts = np.zeros((_PAGES, 3), np.float32)
        self._parts[1:] = 0, 1, 1
        self._all = [0, 0]  # links fetched, relevant ones
        self._added = 0

    def add(self) -> int:
        """Return the number of a page that came just now."""
        number = self._added % (_PAGES - 1) + 1
        self._added += 1
        self._fetched[number] = self._relevant[number] = 0
        self._parts[number] = 0, 1, 1
        return number

    def settle(self, pages: NDArray[np.uint16], *, relevant: bool) -> None:
        """A link that these pages have, shape (k,), was fetched."""
        self._all[0] += 1
        self._all[1] += relevant
        of = pages[pages > 0]
        self._fetched[of] += 1
        self._relevant[of] += relevant
        n = self._fetched[of] + np.float32(_BEFORE)
        self._parts[of, 0] = self._relevant[of] / n
        self._parts[of, 1] = np.float32(_BEFORE) / n

    def fetched(self, pages: NDArray[np.uint16]) -> int:
        """Return how many links of these pages, shape (k,), were fetched."""
        return int(self._fetched[pages[pages > 0]].sum())

    def shares(self, pages: NDArray[np.uint16]) -> NDArray[np.float32]:
        """Return of links that have been found on these pages, shape (n, k), the mean share of relevant links there.

        That of a page of which no link was fetched is the share of all; shape (n,).
        """
        fetched, relevant = self._all
        usual = np.float32((relevant + 1) / (fetched + 2))
        parts = self._parts.take(pages, axis=0).sum(axis=1)
        n = parts[:, 2]
        mean: NDArray[np.float32] = (parts[:, 0] + usual * parts[:, 1] + usual * (n == 0)) / np.maximum(n, 1)
        return mean
