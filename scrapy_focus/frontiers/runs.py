"""A queue by rank in four bytes an entry: a few sorted runs, the best of each at its end.

A heap of tuples takes 120 bytes an entry. Here an entry is the number of a slot, and its rank and age are in columns
of the caller. New entries go into one short sorted run by bisection; a full one is stored, and eight of about the
same length are merged into one, so that no step touches more than ``HOT * FAN**2`` entries: some milliseconds at
most.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.frontiers.require import require
from scrapy_focus.frontiers.saved import Pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.frontiers.saved import Saved

    Sift = Callable[[NDArray[np.int32]], NDArray[np.int32]]
    Put = tuple[float, int, int, array[int]]  # -rank and age of the last entry, number of the run, the run

HOT = 512  # entries of the run for new entries
FAN = 8  # runs of one length that are merged
_NO_RUNS: list[Put] = []  # shared by the many queues without runs, and never changed


class Runs:
    """Slots by rank, the older first among equal ranks.

    ``hot`` and each run are sorted by rank, ascending, with the older entry last among equals. ``heap`` holds a tuple
    for each run, none of them empty; a run with a smaller number was stored earlier. An invalid entry stays until it
    is the best, or is sifted out; the caller counts these in ``stale``. Neither the rank nor the age of a slot may
    change while it has an entry.

    ``rank`` and ``age`` are the columns, a smaller age is older, and ``sift`` returns the valid ones of some slots,
    in every method.
    """

    __slots__ = ("heap", "hot", "numbers", "purged", "stale")

    def __init__(self, slots: Iterable[int] = ()) -> None:
        """Start with sorted slots, at most ``HOT``."""
        self.hot = array("i", slots)
        self.heap = _NO_RUNS
        self.numbers = 0  # of the next run
        self.purged = -1  # number of the run that was sifted last
        self.stale = 0

    @classmethod
    def loaded(cls, slots: NDArray[np.int32], rank: array[float], age: array[int]) -> Runs:
        """Return a queue of sorted slots, shape (n,)."""
        runs = cls()
        runs.heap = []
        size = HOT * FAN * FAN
        for end in range(len(slots), 0, -size):
            runs._put(array("i", slots[max(end - size, 0) : end].tobytes()), rank, age)
        return runs

    def __len__(self) -> int:
        return len(self.hot) + sum(len(run) for _, _, _, run in self.heap)

    def __iter__(self) -> Iterator[int]:
        """Yield all entries, including invalid ones, in no order."""
        return chain(self.hot, *(run for _, _, _, run in self.heap))

    def best(self, rank: array[float], age: array[int]) -> int:
        """Return the oldest slot of the largest rank, -1 if there is none."""
        hot, heap = self.hot, self.heap
        if not hot:
            return heap[0][3][-1] if heap else -1
        slot = hot[-1]
        if heap:
            down, oldest, _, run = heap[0]
            if rank[slot] < -down or (rank[slot] == -down and age[slot] > oldest):
                return run[-1]
        return slot

    def drop(self, rank: array[float], age: array[int]) -> None:
        """Remove the slot that :meth:`best` returns."""
        hot, heap = self.hot, self.heap
        if hot and (not heap or self.best(rank, age) == hot[-1]):
            hot.pop()
            return
        _, _, number, run = heap[0]
        run.pop()
        if run:
            heapreplace(heap, (-rank[run[-1]], age[run[-1]], number, run))
        else:
            heappop(heap)

    def insert(self, slot: int, rank: array[float], age: array[int], sift: Sift) -> None:
        """Add a slot; O(log HOT), and every ``HOT`` calls a merge."""
        hot, value = self.hot, rank[slot]
        at = bisect_left(hot, value, key=rank.__getitem__)
        if at < len(hot) and rank[hot[at]] == value and age[hot[at]] > age[slot]:
            equals = bisect_right(hot, value, at, key=rank.__getitem__)
            at = bisect_left(hot, -age[slot], at, equals, key=lambda each: -age[each])
        hot.insert(at, slot)
        if len(hot) >= HOT:
            self.heap = self.heap or []
            self._put(hot, rank, age)
            self.hot = array("i")
            self._merge(rank, age, sift)

    def purge(self, rank: array[float], age: array[int], sift: Sift) -> None:
        """Sift the next run: as many calls as there are runs remove all invalid entries."""
        later = min((number for _, _, number, _ in self.heap if number > self.purged), default=None)
        if later is None:
            self.purged = -1
            self.hot = self._sifted([self.hot], rank, age, sift)
            return
        self.purged = later
        at = next(i for i, (_, _, number, _) in enumerate(self.heap) if number == later)
        run = self._sifted([self.heap[at][3]], rank, age, sift)
        if run:
            self.heap[at] = (-rank[run[-1]], age[run[-1]], later, run)
        else:
            del self.heap[at]
        heapify(self.heap)
        self._merge(rank, age, sift)

    def purge_all(self, rank: array[float], age: array[int], sift: Sift) -> None:
        """Remove all invalid entries; linear."""
        runs, self.heap, self.purged = self.heap, [], -1
        for _, _, number, run in runs:
            kept = self._sifted([run], rank, age, sift)
            if kept:
                self.heap.append((-rank[kept[-1]], age[kept[-1]], number, kept))
        heapify(self.heap)
        self.hot = self._sifted([self.hot], rank, age, sift)
        self._merge(rank, age, sift)

    def check(self, rank: array[float], age: array[int]) -> None:
        """Raise FrontierError if an invariant is broken; linear."""
        for run in [self.hot, *(run for _, _, _, run in self.heap)]:
            order = [(rank[slot], -age[slot]) for slot in run]
            require(order == sorted(order), "a run is not in order")
        for down, oldest, _, run in self.heap:
            require(run, "a run is empty")
            require((down, oldest) == (-rank[run[-1]], age[run[-1]]), "the heap of a queue has other ranks")

    def _put(self, run: array[int], rank: array[float], age: array[int]) -> None:
        heappush(self.heap, (-rank[run[-1]], age[run[-1]], self.numbers, run))
        self.numbers += 1

    def _merge(self, rank: array[float], age: array[int], sift: Sift) -> None:
        """Merge ``FAN`` runs that are about equally short."""
        for least, most in ((0, HOT), (HOT, HOT * FAN)):
            short = [(number, run) for _, _, number, run in self.heap if least < len(run) <= most]
            if len(short) < FAN:
                continue
            short = sorted(short, key=lambda entry: -entry[0])[:FAN]
            numbers = {number for number, _ in short}
            self.heap = [entry for entry in self.heap if entry[2] not in numbers]
            run = self._sifted([run for _, run in short], rank, age, sift)
            if run:
                self.heap.append((-rank[run[-1]], age[run[-1]], min(numbers), run))
            heapify(self.heap)

    def _sifted(self, runs: list[array[int]], rank: array[float], age: array[int], sift: Sift) -> array[int]:
        """Return one run of the valid entries in some."""
        slots = np.concatenate([np.frombuffer(run, np.int32) for run in runs])
        kept = sift(slots)
        self.stale -= len(slots) - len(kept)
        if len(runs) > 1:
            kept = kept[in_order(np.frombuffer(rank)[kept], np.frombuffer(age, np.int32)[kept])]
        return array("i", kept.tobytes())


def save_runs(queues: Sequence[Runs], saved: Saved) -> None:
    """Add all columns of some queues."""
    heaps = [each.heap for each in queues]
    saved.put_ints("hot", (len(each.hot) for each in queues))
    saved.put_ints("runs", map(len, heaps))
    saved.put_ints("next", (each.numbers for each in queues))
    saved.put_ints("purged", (each.purged for each in queues))
    saved.put_ints("stale", (each.stale for each in queues))
    saved.put_ints("numbers", (number for _, _, number, _ in chain.from_iterable(heaps)))
    saved.put_ints("lengths", (len(run) for _, _, _, run in chain.from_iterable(heaps)))
    entries = []
    for each in queues:
        entries.append(each.hot)
        entries += [run for _, _, _, run in each.heap]
    saved.put("entries", "i", *entries)


def restored_runs(saved: Saved, rank: array[float], age: array[int]) -> list[Runs]:
    """Return the queues that were saved, about two microseconds each."""
    entries, found = Pieces(saved.take("entries", "i")), []
    runs = zip(saved.take("numbers", "i"), saved.take("lengths", "i"), strict=True)
    columns = ("hot", "runs", "next", "purged", "stale")
    for hot, n, following, purged, stale in zip(*(saved.take(name, "i") for name in columns), strict=True):
        queue = Runs()
        queue.hot, queue.numbers, queue.purged, queue.stale = entries.cut(hot), following, purged, stale
        if n:
            queue.heap = []
        for number, length in islice(runs, n):
            run = entries.cut(length)
            last = run[-1]
            queue.heap.append((-rank[last], age[last], number, run))
        if hot and not n:  # new entries go into a short run then, at three quarters of the time
            queue.heap = []
            queue._put(queue.hot, rank, age)
            queue.hot = array("i")
        found.append(queue)
    entries.end()
    return found


def in_order(ranks: NDArray[np.float64], ages: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the sorted places of entries: the best at the end, and the older last among equal ranks."""
    return np.lexsort((-ages, ranks))
