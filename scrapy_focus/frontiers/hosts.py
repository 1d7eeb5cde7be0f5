"""Hosts by number, and the number of queued links for each pair of an arm and a host, in about 40 bytes a pair."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.frontiers.keys import KeyMap
from scrapy_focus.frontiers.require import require

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.frontiers.saved import Saved

NEAR = 1 << 16  # pairs that are found at once
FEW, SHARE = 16, 256  # hosts, and one for so many pairs, above which all pairs are searched


class Hosts:
    """The name of each host that ever had a queued link, by its number."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def number(self, name: str) -> int:
        """Return the number of a host, a new one if it has none."""
        host = self._numbers.get(name)
        if host is None:
            host = self._numbers[name] = len(self.names)
            self.names.append(name)
        return host

    def all_of(self, names: Sequence[str]) -> list[int]:
        """Return the numbers of some hosts, new ones for those that have none."""
        known = map(self._numbers.get, names)
        return [self.number(name) if host is None else host for name, host in zip(names, known, strict=True)]

    def known(self, names: Iterable[str]) -> list[int]:
        """Return the numbers of those hosts that have one, without repetition."""
        numbers = self._numbers
        return [numbers[name] for name in dict.fromkeys(names) if name in numbers]


class Pairs:
    """Pairs of an arm and a host, by number; a pair lasts for ever.

    ``arm``, ``host`` and ``count``, the number of its queued links, are columns; the code that queues links changes
    the counts. Pairs of a host are chained by ``_next``, from ``_first`` of the host on.
    """

    def __init__(self) -> None:
        self.arm = array("i")
        self.host = array("i")
        self.count = array("i")
        self.near: dict[int, int] = {}  # those used recently, by host << 32 | arm
        self._numbers = KeyMap()
        self._next = array("i")
        self._first = array("i")
        self._asked: dict[int, NDArray[np.int32]] = {}

    def __len__(self) -> int:
        return len(self.arm)

    def number(self, host: int, arm: int) -> int:
        """Return the number of a pair, a new one if it has none."""
        code = host << 32 | arm
        pair = self.near.get(code, -1)
        if pair >= 0:
            return pair
        pair = self._numbers.setdefault(code, len(self.arm), -1)
        if pair < 0:
            pair = self._append(host, arm)
        if len(self.near) >= NEAR:
            self.near.clear()
        self.near[code] = pair
        return pair

    def add(self, host: int, arm: int, n: int) -> None:
        """Count ``n`` more links in a pair."""
        pair = self.near.get(host << 32 | arm, -1)
        self.count[pair if pair >= 0 else self.number(host, arm)] += n

    def load(self, hosts: NDArray[np.int32], arms: NDArray[np.int32], counts: NDArray[np.int32]) -> None:
        """Create these distinct pairs where no pair exists yet; all of shape (n,)."""
        self.arm, self.host, self.count = column(arms), column(hosts), column(counts)
        self._numbers.update_many(hosts.astype(np.int64) << 32 | arms, np.arange(len(hosts), dtype=np.int32))
        if not len(hosts):
            return
        order = np.argsort(hosts, kind="stable").astype(np.int32)
        in_order = hosts[order]
        starts = np.flatnonzero(np.diff(in_order, prepend=-1))
        after = np.append(order[1:], np.int32(-1))
        after[np.append(starts[1:], len(order)) - 1] = -1
        self._next = scattered(after, order)
        first = np.full(int(in_order[-1]) + 1, -1, np.int32)
        first[in_order[starts]] = order[starts]
        self._first = column(first)

    def save(self, saved: Saved) -> None:
        """Add all columns."""
        saved.put("arm", "i", self.arm)
        saved.put("host", "i", self.host)
        saved.put("count", "i", self.count)
        saved.put("next", "i", self._next)
        saved.put("first", "i", self._first)
        self._numbers.save(saved.under("numbers"))

    def restore(self, saved: Saved) -> None:
        """Restore the saved columns."""
        self.arm, self.host, self.count = (saved.take(name, "i") for name in ("arm", "host", "count"))
        self._next, self._first = saved.take("next", "i"), saved.take("first", "i")
        self._numbers.restore(saved.under("numbers"))

    def awake(self, waiting: NDArray[np.int64], shut: Sequence[int]) -> NDArray[np.int64]:
        """Return how many queued links of each arm are on hosts not shut, shape (n_arms,)."""
        counts = waiting.copy()
        self.count_on(shut, counts, -1)
        return counts

    def count_on(self, hosts: Sequence[int], counts: NDArray[np.int64], sign: int) -> None:
        """Add the queued links of each arm on some distinct hosts to counts, shape (n_arms,); with the sign -1,
        subtract them.
        """
        arms, waiting = np.frombuffer(self.arm, np.int32), np.frombuffer(self.count, np.int32)
        if len(hosts) > FEW and len(hosts) * SHARE > len(arms):
            chosen = np.zeros(max(len(self._first), max(hosts) + 1), np.bool_)
            chosen[hosts] = True
            there = np.flatnonzero(chosen[np.frombuffer(self.host, np.int32)])
            counts += sign * np.bincount(arms[there], waiting[there], len(counts)).astype(np.int64)
            return
        for host in hosts:
            pairs = self._of(host)
            counts[arms[pairs]] += sign * waiting[pairs]

    def check(self, n_arms: int) -> None:
        """Raise FrontierError if an invariant is broken; linear."""
        require(len(self.arm) == len(self.host) == len(self.count) == len(self._next), "the pairs have other lengths")
        require(all(0 <= arm < n_arms for arm in self.arm), "a pair has an arm that is none")
        require(all(count >= 0 for count in self.count), "a pair counts fewer than no links")
        for host in range(len(self._first)):
            require(all(self.host[pair] == host for pair in self._of(host)), "a pair is chained to another host")
        chained = sum(len(self._of(host)) for host in range(len(self._first)))
        require(chained == len(self.arm), "a pair is not chained to its host")
        for pair, (host, arm) in enumerate(zip(self.host, self.arm, strict=True)):
            require(self._numbers.get(host << 32 | arm, -1) == pair, "a pair has another number than it says")

    def _append(self, host: int, arm: int) -> int:
        if host >= len(self._first):
            self._first.extend([-1] * (host + 1 - len(self._first)))
        pair = len(self.arm)
        self.arm.append(arm)
        self.host.append(host)
        self.count.append(0)
        self._next.append(self._first[host])
        self._first[host] = pair
        self._asked.pop(host, None)
        return pair

    def _of(self, host: int) -> NDArray[np.int32]:
        """Return the pairs of a host; recent results are cached."""
        pairs = self._asked.get(host)
        if pairs is None:
            found = array("i")
            pair = self._first[host] if host < len(self._first) else -1
            while pair >= 0:
                found.append(pair)
                pair = self._next[pair]
            if len(self._asked) >= NEAR:
                self._asked.clear()
            pairs = self._asked[host] = np.frombuffer(found, np.int32)
        return pairs


def column(values: NDArray[np.int32]) -> array[int]:
    """Return values as a growable column."""
    return array("i", values.tobytes())


def scattered(values: NDArray[np.int32], places: NDArray[np.int32]) -> array[int]:
    """Return a column that maps each value to its place."""
    found = np.empty(len(values), np.int32)
    found[places] = values
    return column(found)
