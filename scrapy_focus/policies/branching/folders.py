"""What the pages of each folder of a site led to, as features of the links into it.

The same menu or list links to many folders, and so their links share an arm. But a folder of tags never leads to a
file, and another one always does. Where one page of a folder leads to a file that all of its pages link to, only the
first page of each folder is worth a request. Which of these holds differs from site to site, so it is learned: each
link gets the record of its folder as a feature at the moment of the choice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.learn.hashed import N_FEATURES, Remembered, exact_feature, feature
from scrapy_focus.policies.branching.features import ANY, WIDTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LEVELS = 2  # folders of a link that are told apart: its own, and the first one of its path
KEPT = WIDTH - LEVELS  # features that are queued with a link, before the numbers of its folders

_PAGES = np.array([0.5, 1.5, 2.5, 4.5, 9.5, 29.5])  # limits between the numbers of pages that are told apart ...
_SHARES = np.array([1e-9, 0.2, 0.6])  # ... and between the shares of them that led to targets


class Folders:
    """Counts the pages that were fetched from each folder, and those of them that led to targets.

    Folders are hashed to 65,535 numbers. A record is read as one of 28 features: by seven ranges of the number of
    pages, and four of the share that led to targets.

    Notes
    -----
    *Memory*: 1.3 MB.

    Examples
    --------
    >>> folders = Folders()
    >>> numbers = folders.numbers(["tags/red", "data/sales.html", "data/2024/may.html"])
    >>> bool(numbers[0, 0] == numbers[1, 0]), bool(numbers[1, 1] == numbers[2, 1])
    (False, True)
    >>> rows = folders.append(np.ones((3, WIDTH), np.uint16), ["tags/red", "data/sales.html", "data/2024/may.html"])
    >>> before = folders.read(rows)
    >>> folders.note(numbers[0], led=False)
    >>> (folders.read(rows) != before).any(axis=1).tolist()
    [True, False, False]
    """

    def __init__(self) -> None:
        self._counts = np.zeros((2, LEVELS, N_FEATURES), np.float32)  # pages, and those that led to targets
        self._numbers = Remembered(partial(exact_feature, "folder"))
        self._features = np.array(
            [
                [[feature(f"folder {level}", f"{'i' * pages}/{'i' * share}") for share in range(len(_SHARES) + 1)]
                for pages in range(len(_PAGES) + 1)]
                for level in range(LEVELS)
            ],
            np.uint16,
        )  # fmt: skip
        self._now = np.repeat(self._features[:, 0, 0], N_FEATURES).reshape(LEVELS, N_FEATURES)

    def append(self, rows: NDArray[np.uint16], paths: Sequence[str]) -> NDArray[np.uint16]:
        """Return the features of links with the numbers of their folders behind them, both of shape (n, 32).

        ``paths`` are those of the links as cut by :func:`~scrapy_focus.policies.branching.features.path_of`. Few links
        have more than 30 features, and these lose the two that come first.
        """
        kept = rows[:, LEVELS:].copy()
        np.copyto(kept[:, 0], ANY, where=rows[:, LEVELS - 1] > 0)
        return np.concatenate([kept, self.numbers(paths)], axis=1)

    def numbers(self, paths: Sequence[str]) -> NDArray[np.uint16]:
        """Return the numbers of the folders of links, shape (n, 2)."""
        numbers = self._numbers
        places = [path.partition("?")[0] for path in paths]
        own = [numbers[place.rstrip("/").rpartition("/")[0]] for place in places]
        first = [numbers[place.partition("/")[0] if "/" in place else ""] for place in places]
        return np.array([own, first], np.uint16).T

    def read(self, rows: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Return queued links with the features of their folders' records in place of the numbers of the folders.

        Both have shape (n, 32).
        """
        found = [rows[:, :KEPT], *(self._now[level].take(rows[:, [KEPT + level]]) for level in range(LEVELS))]
        return np.concatenate(found, axis=1)

    def note(self, numbers: NDArray[np.uint16], *, led: float) -> None:
        """Record a page of these folders, shape (2,): whether it is a target or led to one, or how far, from 0 to 1."""
        for level, number in enumerate(numbers.tolist()):
            self._counts[:, level, number] += 1, led
            pages, hits = self._counts[:, level, number]
            self._now[level, number] = self._features[
                level, np.searchsorted(_PAGES, pages), np.searchsorted(_SHARES, hits / pages)
            ]

    def __getstate__(self) -> dict[str, Any]:
        used = np.flatnonzero(self._counts[0])
        return {"used": used, "counts": self._counts.reshape(2, -1)[:, used], "now": self._now.ravel()[used]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Folders.__init__(self)
        self._counts.reshape(2, -1)[:, state["used"]] = state["counts"]
        self._now.ravel()[state["used"]] = state["now"]
