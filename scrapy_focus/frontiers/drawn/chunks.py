"""The links of one arm in the order of their ages, in four bytes each; any can be found, drawn or split off.

Three requirements conflict: draws may depend on the queued links but not on links that left before, an arm of
millions is to be split in some milliseconds, and adding or removing a link takes one microsecond. So the slots of an
arm are in short arrays, oldest first. A split only counts how many slots of each array move, and divides the array
when it is next read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.frontiers.require import require
from scrapy_focus.frontiers.saved import Pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.frontiers.saved import Saved

SIZE = 4096  # slots of a full chunk; a chunk is cut at twice as many
LAZY = 32  # chunks of an arm from which a split is delayed
_FEW = 4  # a part smaller than one in so many is taken out at once


class Part:
    """The slots of a chunk selected by a mask, not yet taken out; a shared chunk is never changed."""

    __slots__ = ("chunk", "length", "mask")

    def __init__(self, chunk: array[int], mask: NDArray[np.bool_], length: int) -> None:
        self.chunk = chunk
        self.mask = mask
        self.length = length

    def __len__(self) -> int:
        return self.length

    def whole(self) -> array[int]:
        """Return the slots."""
        return array("i", np.frombuffer(self.chunk, np.int32)[self.mask].tobytes())


class Members:
    """Slots, oldest first; ``ages`` is the column of the caller with the age of each, in every method.

    ``chunks`` are sorted by age, and none is empty. ``lows`` has an age for each: at most those of its own slots, and
    above all those of the chunk before. No slot is younger than ``last``. A slot may not change its age while it is
    here.
    """

    __slots__ = ("chunks", "last", "lows")

    def __init__(self) -> None:
        self.chunks: list[array[int] | Part] = []
        self.lows: list[int] = []
        self.last = -1

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def slots(self) -> NDArray[np.int32]:
        """Return all slots, shape (n,); linear."""
        return np.frombuffer(b"".join([self.chunk(at) for at in range(len(self.chunks))]), np.int32)

    def chunk(self, at: int) -> array[int]:
        """Return a chunk, after any delayed split."""
        found = self.chunks[at]
        if isinstance(found, Part):
            found = self.chunks[at] = found.whole()
        return found

    def at(self, places: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the slots at some places, counted from the oldest, shape (n,) both; linear in the chunks."""
        if len(self.chunks) == 1:
            found: NDArray[np.int32] = np.frombuffer(self.chunk(0), np.int32)[places]
            return found
        ends = np.array([len(chunk) for chunk in self.chunks]).cumsum()
        chunks = ends.searchsorted(places, side="right")
        within = (places - ends[chunks]).tolist()  # counted from the end
        return np.array([self.chunk(at)[w] for at, w in zip(chunks.tolist(), within, strict=True)], np.int32)

    def take_apart(self, most: int) -> bool:
        """Do the delayed splits of some chunks, and return whether none is left."""
        for at, chunk in enumerate(self.chunks):
            if isinstance(chunk, Part):
                if not most:
                    return False
                self.chunk(at)
                most -= 1
        return True

    def insert(self, slot: int, age: int, ages: Sequence[int]) -> int:
        """Put a slot in, and return the number of the chunk that grew, -1 if the chunks were renumbered."""
        chunks = self.chunks
        if age > self.last:
            self.last = age
            if chunks and len(chunks[-1]) < SIZE and not isinstance(chunks[-1], Part):
                chunks[-1].append(slot)
                return len(chunks) - 1
            chunks.append(array("i", (slot,)))
            self.lows.append(age)
            return -1
        if not chunks:
            chunks.append(array("i", (slot,)))
            self.lows.append(age)
            return -1
        at = max(bisect_right(self.lows, age) - 1, 0)
        chunk = self.chunk(at)
        chunk.insert(bisect_left(chunk, age, key=ages.__getitem__), slot)
        self.lows[at] = min(self.lows[at], age)
        if len(chunk) < 2 * SIZE:
            return at
        chunks.insert(at + 1, chunk[SIZE:])
        self.lows.insert(at + 1, ages[chunk[SIZE]])
        del chunk[SIZE:]
        return -1

    def append(self, slots: Sequence[int], young: Sequence[int]) -> int:
        """Put slots in, oldest first, all younger than those here; return as :meth:`insert` does, for all."""
        self.last = young[-1]
        chunks = self.chunks
        if chunks and len(chunks[-1]) + len(slots) <= SIZE and not isinstance(chunks[-1], Part):
            chunks[-1].extend(slots)
            return len(chunks) - 1
        for start in range(0, len(slots), SIZE):
            chunks.append(array("i", slots[start : start + SIZE]))
            self.lows.append(young[start])
        return -1

    def discard(self, slot: int, age: int, ages: Sequence[int]) -> int | None:
        """Take a slot out, and return as :meth:`insert` does; ``None`` if it is not here."""
        at = bisect_right(self.lows, age) - 1
        if at < 0:
            return None
        chunk = self.chunk(at)
        where = bisect_left(chunk, age, key=ages.__getitem__)
        if where == len(chunk) or chunk[where] != slot:
            return None
        del chunk[where]
        if not chunk:
            del self.chunks[at], self.lows[at]
            return -1
        if at and len(chunk) < SIZE // 4 and len(chunk) + len(self.chunks[at - 1]) <= SIZE:
            self.chunk(at - 1).extend(chunk)
            del self.chunks[at], self.lows[at]
            return -1
        return at

    def take_out(self, gone: NDArray[np.bool_]) -> None:
        """Take out the slots with ``gone[slot]``; linear."""
        chunks, lows, self.chunks, self.lows = [self.chunk(at) for at in range(len(self.chunks))], self.lows, [], []
        for chunk, low in zip(chunks, lows, strict=True):
            slots = np.frombuffer(chunk, np.int32)
            kept = slots[~gone[slots]]
            if len(kept):
                self.chunks.append(chunk if len(kept) == len(chunk) else array("i", kept.tobytes()))
                self.lows.append(low)
        self._join()

    def merge(self, slots: NDArray[np.int32], ages: NDArray[np.int32]) -> None:
        """Put slots in, oldest first, shape (n,); linear in all unless they are younger than those here."""
        if not len(slots):
            return
        last = int(ages[slots[-1]])
        if self.chunks and ages[slots[0]] <= self.last:
            slots = np.concatenate([self.slots(), slots])
            slots = slots[np.argsort(ages[slots], kind="stable")]
            self.chunks, self.lows = [], []
        start = 0
        if self.chunks and (room := SIZE - len(self.chunks[-1])) > 0:
            self.chunk(len(self.chunks) - 1).frombytes(slots[:room].tobytes())
            start = room
        for first in range(start, len(slots), SIZE):
            self.chunks.append(array("i", slots[first : first + SIZE].tobytes()))
            self.lows.append(int(ages[slots[first]]))
        self.last = max(self.last, last)

    def divide(self, above: Callable[[NDArray[np.int32]], NDArray[np.bool_]]) -> tuple[Members, Members]:
        """Return two in place of this one: the slots with the answer no, and those with yes.

        Linear, about five nanoseconds a slot; if there are many, they are only counted, and moved on demand
        (:meth:`chunk`).
        """
        self._join()
        chunks = [self.chunk(at) for at in range(len(self.chunks))]
        masks = [above(np.frombuffer(chunk, np.int32)) for chunk in chunks]
        counts = [int(np.count_nonzero(mask)) for mask in masks]
        total, gone = sum(map(len, chunks)), sum(counts)
        parts = []
        for each in (gone, total - gone):
            parts.append(len(chunks) >= LAZY and each * _FEW >= total)
        yes = self._side(chunks, masks, counts, parts[0])
        no = self._side(
            chunks, [~mask for mask in masks], [len(c) - n for c, n in zip(chunks, counts, strict=True)], parts[1]
        )
        return no, yes

    def check(self, ages: Sequence[int], where: str) -> None:
        """Raise FrontierError if an invariant is broken; linear. ``where`` names the owner in errors."""
        theirs = [ages[slot] for slot in self.slots()]
        require(theirs == sorted(set(theirs)), f"the members of {where} are not in order")
        require(all(age <= self.last for age in theirs), f"a member of {where} is younger than the youngest")
        require(len(self.lows) == len(self.chunks), f"{where} has other bounds than chunks")
        for at, low in enumerate(self.lows):
            its_ages = [ages[slot] for slot in self.chunk(at)]
            require(its_ages and its_ages[0] >= low, f"a chunk of {where} begins before its bound, or is empty")
            ends = not at or ages[self.chunk(at - 1)[-1]] < low
            require(ends, f"a chunk of {where} ends behind the bound of the next")

    def _join(self) -> None:
        """Merge short chunks."""
        if len(self) * 2 >= len(self.chunks) * SIZE:
            return
        chunks = [self.chunk(at) for at in range(len(self.chunks))]
        lows, self.chunks, self.lows = self.lows, [], []
        for chunk, low in zip(chunks, lows, strict=True):
            if self.chunks and len(self.chunks[-1]) + len(chunk) <= SIZE:
                self.chunk(-1).extend(chunk)
            else:
                self.chunks.append(chunk)
                self.lows.append(low)

    def _side(
        self, chunks: list[array[int]], masks: list[NDArray[np.bool_]], counts: list[int], put_off: bool
    ) -> Members:
        side = Members()
        side.last = self.last
        if put_off:
            for chunk, mask, count, low in zip(chunks, masks, counts, self.lows, strict=True):
                if count:
                    side.chunks.append(chunk if count == len(chunk) else Part(chunk, mask, count))
                    side.lows.append(low)
            return side
        taken: list[NDArray[np.int32]] = []
        lows: list[int] = []
        n = 0
        for chunk, mask, count, low in zip(chunks, masks, counts, self.lows, strict=True):
            if not count:
                continue
            if n and n + count > SIZE:
                side._close(taken, lows)
                n = 0
            taken.append(np.frombuffer(chunk, np.int32)[mask])
            lows.append(low)
            n += count
        if taken:
            side._close(taken, lows)
        return side

    def _close(self, taken: list[NDArray[np.int32]], lows: list[int]) -> None:
        """Make one chunk of some pieces, and forget them."""
        self.chunks.append(array("i", b"".join([piece.tobytes() for piece in taken])))
        self.lows.append(lows[0])
        taken.clear()
        lows.clear()


def save_members(arms: Sequence[Members], saved: Saved) -> None:
    """Add all columns of the members of some arms; delayed splits are done."""
    chunks = [members.chunk(at) for members in arms for at in range(len(members.chunks))]
    saved.put_ints("last", (members.last for members in arms))
    saved.put_ints("chunks", (len(members.chunks) for members in arms))
    saved.put_ints("lows", (low for members in arms for low in members.lows))
    saved.put_ints("lengths", map(len, chunks))
    saved.put("slots", "i", *chunks)


def restored_members(saved: Saved) -> list[Members]:
    """Return the members of the arms that were saved."""
    slots, found = Pieces(saved.take("slots", "i")), []
    chunks = zip(saved.take("lows", "i"), saved.take("lengths", "i"), strict=True)
    for last, n in zip(saved.take("last", "i"), saved.take("chunks", "i"), strict=True):
        members = Members()
        members.last = last
        for low, length in islice(chunks, n):
            members.lows.append(low)
            members.chunks.append(slots.cut(length))
        found.append(members)
    slots.end()
    return found
