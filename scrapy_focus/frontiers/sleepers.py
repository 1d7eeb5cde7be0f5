"""Links that do not leave before a time: in the order of these times, in about 45 bytes a link and its vector.

They are kept separately, so that no order of a frontier needs to know about times. A link that is due is queued where
it was placed.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scrapy_focus.frontiers.require import require
from scrapy_focus.frontiers.runs import Runs, in_order, restored_runs, save_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from scrapy_focus.frontiers.saved import Saved

_MANY = 16  # tolerated entries of links that no longer sleep, besides as many as there are of others


class Sleeper(NamedTuple):
    """A link that sleeps: the numbers of its record and host, and its later place."""

    key: int
    number: int
    age: int
    host: int
    arm: int
    rank: float
    vector: bytes


class Sleepers:
    """Beds of sleeping links, each with a record number from the caller, and an age.

    A bed has the key of its link, a time in seconds since the epoch, a host, a rank, and an arm (-1: empty).
    ``_runs`` has the beds by time, the older first among equal times. A bed whose link left before its time keeps its
    entry until that is the first, or is sifted out; then it is reused. The first entry is always valid.
    """

    def __init__(self, width: int, *, ages: bool) -> None:
        """``width``: bytes of the vectors; ``ages``: whether ages differ from record numbers."""
        self.width = width
        self.next_due: float | None = None
        self._key = array("q")
        self._down = array("d")  # times with the other sign: what is larger leaves first
        self._rank = array("d")
        self._record = array("i")
        self._age = array("i") if ages else self._record
        self._host = array("i")
        self._arm = array("i")
        self._vectors = bytearray()
        self._free = array("i")
        self._runs = Runs()
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def add(self, sleeper: Sleeper, after: float) -> int:
        """Put a link to sleep until a time, and return its bed; O(log n)."""
        key, number, age, host, arm, rank, vector = sleeper
        if self._free:
            bed = self._free.pop()
            self._key[bed], self._down[bed], self._rank[bed], self._record[bed] = key, -after, rank, number
            self._host[bed], self._arm[bed], self._age[bed] = host, arm, age
            self._vectors[bed * self.width : (bed + 1) * self.width] = vector
        else:
            bed = len(self._key)
            self._key.append(key)
            self._down.append(-after)
            self._rank.append(rank)
            self._record.append(number)
            if self._age is not self._record:
                self._age.append(age)
            self._host.append(host)
            self._arm.append(arm)
            self._vectors += vector
        self._runs.insert(bed, self._down, self._age, self._sift)
        self._n += 1
        if self.next_due is None or after < self.next_due:
            self.next_due = after
        return bed

    def get(self, bed: int) -> Sleeper:
        """Return the link in a bed."""
        return Sleeper(
            self._key[bed], self._record[bed], self._age[bed], self._host[bed], self._arm[bed], self._rank[bed],
            bytes(self._vectors[bed * self.width : (bed + 1) * self.width]),
        )  # fmt: skip

    def everybody(self) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.uint8]]:
        """Return record numbers, times and vectors of all sleeping links, shapes (n,), (n,) and (n, width); linear."""
        beds = np.flatnonzero(np.frombuffer(self._arm, np.int32) >= 0)
        vectors = np.frombuffer(self._vectors, np.uint8).reshape(-1, self.width)
        return np.frombuffer(self._record, np.int32)[beds], -np.frombuffer(self._down, np.float64)[beds], vectors[beds]

    def remove(self, bed: int) -> Sleeper:
        """Return the link in a bed, and empty the bed."""
        sleeper = self.get(bed)
        self._arm[bed] = -1
        self._n -= 1
        self._runs.stale += 1
        self._clean()
        if self._runs.stale > self._n + _MANY:
            self._runs.purge(self._down, self._age, self._sift)
        return sleeper

    def due(self, now: float) -> Iterator[Sleeper]:
        """Yield the links that sleep until a time at most, earliest first, and empty their beds."""
        while self.next_due is not None and self.next_due <= now:
            bed = self._runs.best(self._down, self._age)
            sleeper = self.get(bed)
            self._arm[bed] = -1
            self._n -= 1
            self._runs.stale += 1
            self._clean()
            yield sleeper

    def load(
        self,
        keys: NDArray[np.int64],
        records: NDArray[np.int32],
        hosts: NDArray[np.int32],
        arms: NDArray[np.int32],
        ranks: NDArray[np.float64],
        after: NDArray[np.float64],
        vectors: bytes,
    ) -> NDArray[np.int32]:
        """Put links to sleep whose ages are their records, and return their beds, all of shape (n,).

        Linear in all; call it once, while no link sleeps.
        """
        for column, values in (
            (self._key, keys), (self._down, -after), (self._rank, ranks), (self._record, records), (self._host, hosts),
            (self._arm, arms),
        ):  # fmt: skip
            column.frombytes(np.ascontiguousarray(values).tobytes())
        self._vectors += vectors
        order = in_order(-after, records).astype(np.int32)
        self._runs = Runs.loaded(order, self._down, self._age)
        self._n = len(keys)
        self._clean()
        return np.arange(len(keys), dtype=np.int32)

    def save(self, saved: Saved) -> None:
        """Add all columns; ages are records."""
        saved.put("key", "q", self._key)
        saved.put("down", "d", self._down)
        saved.put("rank", "d", self._rank)
        saved.put("record", "i", self._record)
        saved.put("host", "i", self._host)
        saved.put("arm", "i", self._arm)
        saved.put("vectors", "B", self._vectors)
        saved.put("free", "i", self._free)
        save_runs([self._runs], saved.under("runs"))

    def restore(self, saved: Saved) -> None:
        """Restore the saved columns; ages are records."""
        self._key, self._down, self._rank = saved.take("key", "q"), saved.take("down", "d"), saved.take("rank", "d")
        self._record = self._age = saved.take("record", "i")
        self._host, self._arm, self._free = (saved.take(name, "i") for name in ("host", "arm", "free"))
        self._vectors = saved.take("vectors", "B")
        (self._runs,) = restored_runs(saved.under("runs"), self._down, self._age)
        self._n = int(np.count_nonzero(np.frombuffer(self._arm, np.int32) >= 0))
        self._clean()

    def check(self) -> None:
        """Raise FrontierError if an invariant is broken; linear."""
        n = len(self._key)
        columns = (self._down, self._rank, self._record, self._age, self._host, self._arm)
        require(all(len(column) == n for column in columns), "the columns of sleeping links differ in length")
        require(len(self._vectors) == n * self.width, "not each bed has a vector")
        taken = [bed for bed in range(n) if self._arm[bed] >= 0]
        require(len(taken) == self._n, f"{self._n} links are said to sleep, {len(taken)} do")
        entries = list(self._runs)
        require(len({*entries}) == len(entries), "a bed is in the order of times twice")
        require({*taken} <= {*entries}, "somebody sleeps for ever")
        require({*self._free}.isdisjoint(entries), "a bed with an entry is used again")
        require(len(entries) + len(self._free) == n, "a bed is never used again")
        require(len(entries) - self._n == self._runs.stale, "the entries of those that sleep no longer are miscounted")
        first = min((-self._down[bed] for bed in taken), default=None)
        require(self.next_due == first, f"the next is due at {first}, not at {self.next_due}")
        self._runs.check(self._down, self._age)

    def _clean(self) -> None:
        """Make the first entry one of a sleeping link."""
        runs, down, age = self._runs, self._down, self._age
        while (bed := runs.best(down, age)) >= 0 and self._arm[bed] < 0:
            runs.drop(down, age)
            runs.stale -= 1
            self._free.append(bed)
        self.next_due = -down[bed] if bed >= 0 else None

    def _sift(self, beds: NDArray[np.int32]) -> NDArray[np.int32]:
        sleeps = np.frombuffer(self._arm, np.int32)[beds] >= 0
        self._free.frombytes(beds[~sleeps].tobytes())
        kept: NDArray[np.int32] = beds[sleeps]
        return kept
