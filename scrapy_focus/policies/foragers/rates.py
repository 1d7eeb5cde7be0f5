"""How often targets come up on the pages that foragers visit: what makes a good starting point, beyond the paper."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.abilities import WatchedPage
from scrapy_focus.learn.changes import DAY, WATCHED, Changes
from scrapy_focus.policies.foragers.slots import Slots, longer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link

_SHOWN = 1 << 15  # links that came up whose page is remembered


class Rates:
    """The change rates of the visited pages.

    A link is a birth of a page if it came up after an earlier visit of the page, and if its own page is rewarded.

    Parameters
    ----------
    most
        Number of pages to remember: the most recently visited ones.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.changes = Changes()
        self.slots = Slots()
        self._records = np.zeros(0, WATCHED)
        self._rates = np.zeros(0)  # of births, per second: it is the same from one visit to the next
        self._last = np.zeros(0)  # visit, in seconds since the epoch
        self._prior = self.changes.newest  # when the rates were last estimated
        self._urls: list[str] = []
        self._shown: OrderedDict[int, int] = OrderedDict()  # by key of a link: the key of the page where it came up
        self._born: dict[int, int] = {}  # by key of a page, since its last visit

    def __contains__(self, key: int) -> bool:
        return key in self.slots

    def appeared(self, page: int, links: Sequence[Link]) -> None:
        """Record links that came up on a page and were on no page before."""
        if page not in self.slots:
            return
        for link in links:
            self._shown[link.key] = page
            if len(self._shown) > _SHOWN:
                self._shown.popitem(last=False)

    def visit(self, key: int, url: str, at: float, *, changed: bool | None, is_target: bool, arm: int = -1) -> None:
        """Record a fetched page, ``at`` in seconds since the epoch; ``arm`` identifies the place of its link."""
        page = self._shown.pop(key, None)
        if is_target and page is not None and page in self.slots:
            self._born[page] = self._born.get(page, 0) + 1
        slot = self.slots.get(key)
        if slot < 0:
            slot = self._new_slot(key, url)
            self._records[slot] = self.changes.new(at, arm=arm)
        else:
            self.slots.touch(key)
            born = self._born.pop(key, 0)
            record = self._records[slot]
            self.changes.visited(record, at, born > 0 if changed is None else changed, float(born))
        known = self._records[slot : slot + 1]
        self._rates[slot] = self.changes.all_births(known)[0]
        self._last[slot] = known["at"][0]
        if self.changes.newest != self._prior:
            self._read_anew()

    def first(self, arms: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how many targets come up on unvisited pages per second, by the places of their links, shape (n,)."""
        different, which = np.unique(arms, return_inverse=True)
        records = np.zeros(len(different), WATCHED)
        records["arm"], records["prior"] = different, self.changes.newest
        found: NDArray[np.float64] = self.changes.all_births(records)[which]
        return found

    def _read_anew(self) -> None:
        """Estimate all rates again from the current records."""
        self._prior = self.changes.newest
        records = self._records[: self.slots.used].copy()
        records["prior"] = self._prior
        self._rates[: len(records)] = self.changes.all_births(records)

    def expected(self, slots: NDArray[np.int64], now: float) -> NDArray[np.float64]:
        """Return how many targets are expected to have come up on pages since their last visits, by the numbers of
        the pages, shape (n,); 0 for -1, which is an unvisited page.
        """
        expected = np.zeros(len(slots))
        known = slots >= 0
        if known.any():
            found = slots[known]
            expected[known] = self._rates[found] * np.maximum(now - self._last[found], 0.0)
        return expected

    def a_day(self, keys: Sequence[int]) -> NDArray[np.float64]:
        """Return how many targets come up on visited pages per day, shape (n,)."""
        found: NDArray[np.float64] = DAY * self._rates[self.slots.of(keys)]
        return found

    def most_visited(self, keys: Sequence[int], n: int) -> list[int]:
        """Return up to so many of the pages, most visited first."""
        keys = [key for key in keys if key in self.slots]
        visits = self._records["visits"][self.slots.of(keys)].astype(np.int64)
        return [keys[at] for at in np.argsort(-visits, kind="stable")[:n].tolist()]

    def watched(self, keys: Sequence[int], next_of: Mapping[int, float]) -> list[WatchedPage]:
        """Return the records of visited pages; ``next_of`` returns when they may be visited again."""
        return [self._page(key, next_of.get(key)) for key in keys if key in self.slots]

    def _page(self, key: int, due: float | None) -> WatchedPage:
        slot = self.slots.get(key)
        record = self._records[slot]
        low, high = self.changes.interval(record)
        return WatchedPage(
            url=self._urls[slot], visits=int(record["visits"]), changes=int(record["changes"]),
            rate=min(max(self.changes.rate(record), low), high) * DAY, low=low * DAY, high=high * DAY,
            targets=self.changes.births(record) * DAY, last=float(record["at"]), next=due,
        )  # fmt: skip

    def _new_slot(self, key: int, url: str) -> int:
        if len(self.slots) >= self.most:
            gone, _ = self.slots.take_first()
            self._born.pop(gone, None)
        slot = self.slots.give(key)
        if slot == len(self._records):
            self._records, self._rates, self._last = longer(self._records), longer(self._rates), longer(self._last)
        self._urls[slot : slot + 1] = [url]
        return slot

    def __getstate__(self) -> dict[str, Any]:
        n = self.slots.used
        cut = {name: getattr(self, name)[:n] for name in ("_records", "_rates", "_last")}
        return {**self.__dict__, **cut}
