"""An index made at once of millions of links that were stored, in some seconds."""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.frontiers.ranked import queue as index_module
from scrapy_focus.frontiers.ranked.runs import Runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scrapy_focus.frontiers.ranked.queue import Index


class Loading:
    """Fills an index that is empty but for its hosts: :meth:`add` as often as needed, then :meth:`finish` once."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._codes: list[NDArray[np.int64]] = []

    def add(
        self, records: NDArray[np.int32], hosts: NDArray[np.int32], arms: NDArray[np.int32], ranks: NDArray[np.float64]
    ) -> NDArray[np.int32]:
        """Put links in, oldest first, and return their slots; all of shape (n,)."""
        index, first = self._index, len(self._index.record)
        index.record.frombytes(records.tobytes())
        index.rank.frombytes(ranks.tobytes())
        self._codes.append(arms.astype(np.int64) << 32 | hosts)
        return np.arange(first, first + len(records), dtype=np.int32)

    def finish(self) -> None:
        """Make queues and counts of what was put in."""
        index, n = self._index, len(self._index.record)
        if not n:
            return
        codes = np.concatenate(self._codes)
        self._codes.clear()
        order = _in_order(np.frombuffer(index.rank), codes)
        codes = codes[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        ends = np.append(starts[1:], n)
        codes = codes[starts]
        counts = (ends - starts).astype(np.int32)
        arms, hosts = (codes >> 32).astype(np.int32), (codes & 0xFFFFFFFF).astype(np.int32)
        heads = order[ends - 1]
        index._n = n
        index.pair = _scattered(np.repeat(np.arange(len(starts), dtype=np.int32), counts), order)
        behind = np.append(np.int32(-1), order[:-1])
        behind[starts] = -1
        index._next = _scattered(behind, order)
        del behind
        index.pair_arm, index.pair_host = _column(arms), _column(hosts)
        index._pair_count, index._pair_head = _column(counts), _column(heads)
        index._pairs.update_many(hosts.astype(np.int64) << 32 | arms, np.arange(len(starts), dtype=np.int32))
        self._link_pairs(hosts)
        flags = np.zeros(n, np.uint8)
        flags[heads] = index_module.NOTED
        index._queues = [None] * len(starts)
        for pair in np.flatnonzero(counts > index_module.TINY).tolist():
            slots = order[starts[pair] : ends[pair]]
            index._queues[pair] = Runs.loaded(slots, index.rank)
            flags[slots] |= index_module.QUEUED
        index._flags = bytearray(flags.tobytes())
        self._fill_arms(order, arms, starts, heads)

    def _link_pairs(self, hosts: NDArray[np.int32]) -> None:
        """Chain the pairs of each host."""
        order = np.argsort(hosts, kind="stable").astype(np.int32)
        sorted_hosts = hosts[order]
        starts = np.flatnonzero(np.diff(sorted_hosts, prepend=-1))
        after = np.append(order[1:], np.int32(-1))
        after[np.append(starts[1:], len(order)) - 1] = -1
        self._index._pair_next = _scattered(after, order)
        first = np.full(len(self._index.hosts), -1, np.int32)
        first[sorted_hosts[starts]] = order[starts]
        self._index._host_first = _column(first)

    def _fill_arms(
        self, order: NDArray[np.int32], arms: NDArray[np.int32], starts: NDArray[np.int64], heads: NDArray[np.int32]
    ) -> None:
        """Give each arm its members, and the heads of its pairs."""
        index, rank = self._index, np.frombuffer(self._index.rank)
        index.grow(int(arms[-1]) + 1)
        places = np.empty(len(order), np.int32)
        bounds = np.flatnonzero(np.diff(arms, prepend=-1)).tolist()
        for first, last in pairwise([*bounds, len(arms)]):
            number = int(arms[first])
            members = order[starts[first] : starts[last] if last < len(arms) else len(order)]
            places[members] = np.arange(len(members), dtype=np.int32)
            tops = heads[first:last]
            tops = tops[np.argsort(rank[tops], kind="stable")]
            arm = index._arms[number]
            arm.members = _column(members)
            arm.pairs = len(tops)
            arm.tops = Runs.loaded(tops, index.rank)
            index._waiting[number] = len(members)
            index._heads[number] = rank[tops[-1]]
        index._place = _column(places)


def _in_order(ranks: NDArray[np.float64], codes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return slots by arm, host and rank; where all are equal the older link stands behind, and leaves first."""
    order = (len(ranks) - 1 - np.argsort(ranks[::-1], kind="stable")).astype(np.int32)
    for part in (codes & 0xFFFFFFFF, codes >> 32):
        # two bytes are sorted ten times as fast as four
        numbers = part.astype(np.uint16 if part.max() < 1 << 16 else np.int32)[order]
        order = order[np.argsort(numbers, kind="stable")]
    return order


def _column(values: NDArray[np.int32]) -> array[int]:
    return array("i", values.tobytes())


def _scattered(values: NDArray[np.int32], places: NDArray[np.int32]) -> array[int]:
    """Return a column in which each value stands at its place."""
    column = np.empty(len(values), np.int32)
    column[places] = values
    return _column(column)
