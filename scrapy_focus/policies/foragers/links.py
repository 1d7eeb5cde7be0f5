"""Links that were not fetched: predictions from their features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.learn.hashed import NOTHING
from scrapy_focus.policies.foragers.slots import Slots, longer
from scrapy_focus.policies.linkvalues import WIDTH, LinkValues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link


_ARMS = 1024  # places on pages that are distinguished
_CAME_UP = np.uint16(0x5BD1)  # turns features into those of links that came up


class LinkBook:
    """Remembers the features of links until their pages arrive, and learns from the rewards of these.

    Parameters
    ----------
    most
        Number of links to remember: the most recently found ones.

    Notes
    -----
    *Memory*: about 250 bytes a link.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.values = LinkValues()
        self.slots = Slots()
        self._rows = np.zeros((0, WIDTH), np.uint16)
        self._at = np.zeros(0)  # when each was found, in seconds since the epoch

    def found(self, links: Sequence[Link], at: float, *, came_up: bool = False) -> None:
        """Record links found on a page, in document order; ``came_up``: the page had been visited before without
        them.

        Such links are likely to be new, whatever their words. So they have features of their own.
        """
        rows = self.values.rows(links)
        if came_up:
            rows = np.where(rows != NOTHING, rows ^ _CAME_UP, NOTHING)
        for link, row in zip(links, rows, strict=True):
            slot = self.slots.get(link.key)
            if slot < 0:
                if len(self.slots) >= self.most:
                    self.slots.take_first()
                slot = self.slots.give(link.key)
                if slot == len(self._rows):
                    self._rows, self._at = longer(self._rows), longer(self._at)
                self._at[slot] = at
            self._rows[slot] = row

    def fetched(self, key: int, reward: float) -> None:
        """Learn from the page of a link."""
        slot = self.slots.take(key)
        if slot >= 0:
            self.values.learn(self._rows[slot], reward)

    def arms(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where links were found, as numbers of places on pages, shape (n,); -1 if unknown."""
        places = self._rows[slots, -1].astype(np.int64)
        return np.where(places != NOTHING, places % _ARMS, -1)

    def ages(self, slots: NDArray[np.int64], now: float) -> NDArray[np.float64]:
        """Return the time since links were found, in seconds, shape (n,)."""
        found: NDArray[np.float64] = np.maximum(now - self._at[slots], 0.0)
        return found

    def promises(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability of a reward for each link, by its number, shape (n,); 0 where that is -1."""
        known = slots >= 0
        found = np.zeros(len(slots))
        if known.any():
            odds = self.values.decide(self._rows[slots[known]]).astype(np.float64)
            found[known] = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rows": self._rows[: self.slots.used], "_at": self._at[: self.slots.used]}
