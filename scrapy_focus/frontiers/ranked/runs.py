"""A queue by rank in four bytes an entry: a few sorted runs, the best of each at its end.

A heap of tuples takes 120 bytes an entry. Here an entry is the number of a slot, and its rank stands in a column that
belongs to the caller. New entries go into one short sorted run by bisection; a full one is put away, and eight of about the
same length become one, so that nothing ever touches more than ``HOT * FAN**2`` entries: some milliseconds at most.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    Sift = Callable[[NDArray[np.int32]], NDArray[np.int32]]

HOT = 512  # entries of the run that takes what is new
FAN = 8  # runs of one length that become one
_NO_RUNS: list[tuple[float, int, array[int]]] = []  # shared by the many queues that have none, and never changed


class Runs:
    """Slots by rank; those of equal rank leave about in the order in which they came.

    ``hot`` and each run are sorted by rank, ascending, and where ranks are equal the older entry stands behind. ``heap``
    holds ``(-rank of the last entry, age, run)`` for each run, none of them empty; a smaller age is older. An entry that no
    longer counts stays until it is the best, or is sifted out; the caller counts these in ``stale``. The rank of a slot may
    not change while it has an entry.

    ``rank`` is the column, and ``sift`` what returns those of some slots that still count, in every method.
    """

    __slots__ = ("ages", "heap", "hot", "purged", "stale")

    def __init__(self, slots: Iterable[int] = ()) -> None:
        """Begin with slots that are sorted already, at most ``HOT``."""
        self.hot = array("i", slots)
        self.heap = _NO_RUNS
        self.ages = 0  # of the next run
        self.purged = -1  # age of the run that was sifted last
        self.stale = 0

    @classmethod
    def loaded(cls, slots: NDArray[np.int32], rank: array[float]) -> Runs:
        """Return a queue of slots that are sorted already, shape (n,)."""
        runs = cls()
        runs.heap = []
        size = HOT * FAN * FAN
        for end in range(len(slots), 0, -size):
            run = array("i", slots[max(end - size, 0) : end].tobytes())
            runs.heap.append((-rank[run[-1]], runs.ages, run))
            runs.ages += 1
        heapify(runs.heap)
        return runs

    def __len__(self) -> int:
        return len(self.hot) + sum(len(run) for _, _, run in self.heap)

    def __iter__(self) -> Iterator[int]:
        """Yield all entries, also those that do not count, in no order."""
        return chain(self.hot, *(run for _, _, run in self.heap))

    def best(self, rank: array[float]) -> int:
        """Return the slot of largest rank, -1 where there is none."""
        hot, heap = self.hot, self.heap
        if hot and (not heap or rank[hot[-1]] > -heap[0][0]):
            return hot[-1]
        return heap[0][2][-1] if heap else -1

    def drop(self, rank: array[float]) -> None:
        """Remove what :meth:`best` returns."""
        hot, heap = self.hot, self.heap
        if hot and (not heap or rank[hot[-1]] > -heap[0][0]):
            hot.pop()
            return
        _, age, run = heap[0]
        run.pop()
        if run:
            heapreplace(heap, (-rank[run[-1]], age, run))
        else:
            heappop(heap)

    def insert(self, slot: int, rank: array[float], sift: Sift) -> None:
        """Put a slot in; O(log HOT), and every ``HOT`` calls a merge."""
        hot = self.hot
        hot.insert(bisect_left(hot, rank[slot], key=rank.__getitem__), slot)
        if len(hot) >= HOT:
            self.heap = self.heap or []
            heappush(self.heap, (-rank[hot[-1]], self.ages, hot))
            self.ages += 1
            self.hot = array("i")
            self._merge(rank, sift)

    def purge(self, rank: array[float], sift: Sift) -> None:
        """Sift the next run: as many calls as there are runs remove all entries that do not count."""
        later = min((age for _, age, _ in self.heap if age > self.purged), default=None)
        if later is None:
            self.purged = -1
            self.hot = self._sifted([self.hot], rank, sift)
            return
        self.purged = later
        at = next(i for i, (_, age, _) in enumerate(self.heap) if age == later)
        run = self._sifted([self.heap[at][2]], rank, sift)
        if run:
            self.heap[at] = (-rank[run[-1]], later, run)
        else:
            del self.heap[at]
        heapify(self.heap)
        self._merge(rank, sift)

    def _merge(self, rank: array[float], sift: Sift) -> None:
        """Where ``FAN`` runs are about equally short, make one of them."""
        for least, most in ((0, HOT), (HOT, HOT * FAN)):
            short = [entry for entry in self.heap if least < len(entry[2]) <= most]
            if len(short) < FAN:
                continue
            short = sorted(short, key=lambda entry: -entry[1])[:FAN]
            ages = {age for _, age, _ in short}
            self.heap = [entry for entry in self.heap if entry[1] not in ages]
            run = self._sifted([run for _, _, run in short], rank, sift)
            if run:
                self.heap.append((-rank[run[-1]], min(ages), run))
            heapify(self.heap)

    def _sifted(self, runs: list[array[int]], rank: array[float], sift: Sift) -> array[int]:
        """Return one run of what still counts in some, the newest of which comes first."""
        slots = np.concatenate([np.frombuffer(run, np.int32) for run in runs])
        kept = sift(slots)
        self.stale -= len(slots) - len(kept)
        if len(runs) > 1:
            kept = kept[np.argsort(np.frombuffer(rank)[kept], kind="stable")]
        return array("i", kept.tobytes())
