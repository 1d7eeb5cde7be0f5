"""A queue built at once from millions of stored links, in some seconds."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.frontiers.hosts import column, scattered
from scrapy_focus.frontiers.ranked import queue as queues
from scrapy_focus.frontiers.runs import Runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scrapy_focus.frontiers.ranked.queue import Queue


class Loading:
    """Fills a queue that has only hosts, and whose ages are its records.

    :meth:`add` as often as needed, then :meth:`finish` once.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._codes: list[NDArray[np.int64]] = []

    def add(
        self, records: NDArray[np.int32], hosts: NDArray[np.int32], arms: NDArray[np.int32], ranks: NDArray[np.float64]
    ) -> NDArray[np.int32]:
        """Add links, oldest first, and return their slots; all of shape (n,)."""
        queue, first = self._queue, len(self._queue.record)
        queue.record.frombytes(records.tobytes())
        queue.rank.frombytes(ranks.tobytes())
        self._codes.append(arms.astype(np.int64) << 32 | hosts)
        return np.arange(first, first + len(records), dtype=np.int32)

    def finish(self) -> None:
        """Build queues and counts from what was added."""
        queue, n = self._queue, len(self._queue.record)
        if not n:
            return
        codes = np.concatenate(self._codes)
        self._codes.clear()
        order = _in_order(np.frombuffer(queue.rank), codes)
        codes = codes[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        ends = np.append(starts[1:], n)
        codes = codes[starts]
        counts = (ends - starts).astype(np.int32)
        arms, hosts = (codes >> 32).astype(np.int32), (codes & 0xFFFFFFFF).astype(np.int32)
        heads = order[ends - 1]
        queue._n = n
        queue.pairs.load(hosts, arms, counts)
        queue.pair = scattered(np.repeat(np.arange(len(starts), dtype=np.int32), counts), order)
        behind = np.append(np.int32(-1), order[:-1])
        behind[starts] = -1
        queue._next = scattered(behind, order)
        del behind
        queue._pair_head = column(heads)
        flags = np.zeros(n, np.uint8)
        flags[heads] = queues.NOTED
        queue._queues = [None] * len(starts)
        for pair in np.flatnonzero(counts > queues.TINY).tolist():
            slots = order[starts[pair] : ends[pair]]
            queue._queues[pair] = Runs.loaded(slots, queue.rank, queue.age)
            flags[slots] |= queues.QUEUED
        queue._flags = bytearray(flags.tobytes())
        self._fill_arms(arms, heads, counts)

    def _fill_arms(self, arms: NDArray[np.int32], heads: NDArray[np.int32], counts: NDArray[np.int32]) -> None:
        """Give each arm the heads of its pairs."""
        queue, rank = self._queue, np.frombuffer(self._queue.rank)
        queue.grow(int(arms[-1]) + 1)
        bounds = np.flatnonzero(np.diff(arms, prepend=-1)).tolist()
        for first, last in pairwise([*bounds, len(arms)]):
            number = int(arms[first])
            tops = heads[first:last]
            tops = tops[np.lexsort((-tops, rank[tops]))]  # slots are in the order of ages
            arm = queue._arms[number]
            arm.pairs = len(tops)
            arm.tops = Runs.loaded(tops, queue.rank, queue.age)
            queue._waiting[number] = int(counts[first:last].sum())
            queue._heads[number] = rank[tops[-1]]


def _in_order(ranks: NDArray[np.float64], codes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return slots by arm, host and rank; among equals the older link is last, and leaves first."""
    order = (len(ranks) - 1 - np.argsort(ranks[::-1], kind="stable")).astype(np.int32)
    for part in (codes & 0xFFFFFFFF, codes >> 32):
        # two bytes are sorted ten times as fast as four
        numbers = part.astype(np.uint16 if part.max() < 1 << 16 else np.int32)[order]
        order = order[np.argsort(numbers, kind="stable")]
    return order
