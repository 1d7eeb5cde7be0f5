"""How often targets come up on the pages that foragers visit: what makes a good starting point beyond the paper."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.policy import WatchedPage
from scrapy_focus.learn.changes import DAY, WATCHED, Changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link

_SHOWN = 1 << 15  # links of which it is remembered on which page they came up


class Rates:
    """What is known of the pages that were visited, as far as they change.

    A link that comes up on a page which had been visited without it is one of its births, if its page is rewarded.

    Parameters
    ----------
    most
        Pages that are remembered: those that were visited last.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.changes = Changes()
        self._slots: OrderedDict[int, int] = OrderedDict()  # by key
        self._records = np.zeros(0, WATCHED)
        self._urls: list[str] = []
        self._shown: OrderedDict[int, int] = OrderedDict()  # by key of a link: that of the page on which it came up
        self._born: dict[int, int] = {}  # by key of a page, since its last visit

    def __contains__(self, key: int) -> bool:
        return key in self._slots

    def appeared(self, page: int, links: Sequence[Link]) -> None:
        """Links came up on a page that were on no page before."""
        if page not in self._slots:
            return
        for link in links:
            self._shown[link.key] = page
            if len(self._shown) > _SHOWN:
                self._shown.popitem(last=False)

    def visit(self, key: int, url: str, at: float, *, changed: bool | None, is_target: bool) -> None:
        """A page was fetched, ``at`` in seconds since the epoch."""
        page = self._shown.pop(key, None)
        if is_target and page is not None and page in self._slots:
            self._born[page] = self._born.get(page, 0) + 1
        slot = self._slots.get(key)
        if slot is None:
            self._add(key, url, self.changes.new(at))
            return
        self._slots.move_to_end(key)
        born = self._born.pop(key, 0)
        record = self._records[slot]
        self.changes.visited(record, at, born > 0 if changed is None else changed, float(born))

    def expected(self, keys: Sequence[int], now: float) -> NDArray[np.float64]:
        """Return how many targets are expected to have come up on pages since their last visits, shape (n,).

        Of pages that were never visited none is.
        """
        slots = self._slots
        at = np.array([slots.get(key, -1) for key in keys], np.int64)
        known = at >= 0
        expected = np.zeros(len(at))
        if known.any():
            records = self._records[at[known]]
            expected[known] = self.changes.all_births(records) * np.maximum(now - records["at"], 0.0)
        return expected

    def a_day(self, keys: Sequence[int]) -> NDArray[np.float64]:
        """Return how many targets come up on pages that were visited, a day, shape (n,)."""
        found: NDArray[np.float64] = DAY * self.changes.all_births(self._records[[self._slots[key] for key in keys]])
        return found

    def watched(self, keys: Sequence[int], next_of: dict[int, float]) -> list[WatchedPage]:
        """Return what is known of pages that were visited; ``next_of``: when they may be visited again."""
        return [self._page(key, next_of.get(key)) for key in keys if key in self._slots]

    def _page(self, key: int, due: float | None) -> WatchedPage:
        slot = self._slots[key]
        record = self._records[slot]
        low, high = self.changes.interval(record)
        return WatchedPage(
            url=self._urls[slot], visits=int(record["visits"]), changes=int(record["changes"]),
            rate=min(max(self.changes.rate(record), low), high) * DAY, low=low * DAY, high=high * DAY,
            targets=self.changes.births(record) * DAY, last=float(record["at"]), next=due,
        )  # fmt: skip

    def _add(self, key: int, url: str, record: np.void) -> None:
        if len(self._slots) >= self.most:
            gone, slot = self._slots.popitem(last=False)
            self._born.pop(gone, None)
        else:
            slot = len(self._slots)
            if slot == len(self._records):
                self._records = np.concatenate([self._records, np.zeros(max(64, slot), WATCHED)])
        self._slots[key] = slot
        self._records[slot] = record
        self._urls[slot : slot + 1] = [url]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_records": self._records[: len(self._slots)]}
