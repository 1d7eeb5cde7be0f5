"""Links that were not fetched: what is promised by their features."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.policies.linkvalues import LinkValues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link


class LinkBook:
    """Remembers the features of links until their pages come, and learns from what these are worth.

    Parameters
    ----------
    most
        Links that are remembered: those that were found last.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.values = LinkValues()
        self._rows: OrderedDict[int, NDArray[np.uint16]] = OrderedDict()  # by key

    def found(self, links: Sequence[Link]) -> None:
        """Links were found on a page, in document order."""
        for link, row in zip(links, self.values.rows(links), strict=True):
            self._rows[link.key] = row.copy()
            if len(self._rows) > self.most:
                self._rows.popitem(last=False)

    def fetched(self, key: int, reward: float) -> None:
        """The page of a link came."""
        row = self._rows.pop(key, None)
        if row is not None:
            self.values.learn(row, reward)

    def promises(self, keys: Sequence[int]) -> NDArray[np.float64]:
        """Return the probability of a reward for each link, shape (n,); 0 for those that are not remembered."""
        rows = [self._rows.get(key) for key in keys]
        known = [at for at, row in enumerate(rows) if row is not None]
        found = np.zeros(len(rows))
        if known:
            odds = self.values.decide(np.array([rows[at] for at in known])).astype(np.float64)
            found[known] = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
        return found
