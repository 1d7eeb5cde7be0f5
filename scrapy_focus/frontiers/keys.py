"""Sets and maps of 64-bit keys in 8 and 12 bytes a key, for the tens of millions of URLs that a crawl has seen.

A ``set`` takes about 80 bytes a key, and blocks for a second while it grows. Here the keys are in many short sorted
arrays, so that finding one is a bisection, and adding one moves a few thousand bytes: one or two microseconds at ten
million keys, and never more.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.frontiers.saved import Pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.frontiers.saved import Saved

_SHARDS = 16381  # a prime: keys need not be random; at ten million keys a shard is some cache lines
_AT_ONCE = 16  # late keys that are merged into their shards together


class KeySet:
    """A set of integers below 2**63 in size; each costs 8 bytes.

    Each shard is sorted and has no key twice. ``_late`` has further sorted keys that are in no shard: recent bulk
    additions, some of which are merged into their shards whenever the set is read or changed.
    """

    def __init__(self) -> None:
        self._shards: dict[int, array[int]] = {}
        self._late = array("q")
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def __contains__(self, key: int) -> bool:
        if self._late:
            self._settle(_AT_ONCE)
            if _holds(self._late, key):
                return True
        shard = self._shards.get(key % _SHARDS)
        return shard is not None and _holds(shard, key)

    def add(self, key: int) -> bool:
        """Add a key, and return whether it is new."""
        if self._late and key in self:
            return False
        if not self._put(key):
            return False
        self._n += 1
        return True

    def discard(self, key: int) -> bool:
        """Remove a key, and return whether it was present."""
        if self._late:
            self._settle(_AT_ONCE)
        for shard in (self._late, self._shards.get(key % _SHARDS, _NO_KEYS)):
            at = bisect_left(shard, key)
            if at < len(shard) and shard[at] == key:
                del shard[at]
                self._n -= 1
                return True
        return False

    def discard_many(self, keys: Iterable[int]) -> None:
        """Remove those of some keys that are present."""
        if self._late:
            for key in keys:
                self.discard(key)
            return
        shards = self._shards
        for key in keys:
            shard = shards.get(key % _SHARDS)
            if shard:
                at = bisect_left(shard, key)
                if at < len(shard) and shard[at] == key:
                    del shard[at]
                    self._n -= 1

    def update_many(self, keys: NDArray[np.int64]) -> None:
        """Add many keys, shape (n,), about 0.3 us each if there are hundreds of thousands."""
        self._settle(len(self._late))
        for number, part in _by_shard(keys):
            old = self._shards.get(number, _NO_KEYS)
            merged = np.unique(np.concatenate([np.frombuffer(old, np.int64), keys[part]]))
            self._shards[number] = array("q", merged.tobytes())
            self._n += len(merged) - len(old)

    def update_late(self, keys: NDArray[np.int64]) -> None:
        """Add many new keys, shape (n,), at the cost of sorting them; they are merged later."""
        self._settle(len(self._late))
        self._late = array("q", np.sort(keys).tobytes())
        self._n += len(keys)

    def difference_update(self, other: KeySet | KeyMap) -> None:
        """Remove all keys that another set or map has; linear."""
        self._settle(len(self._late))
        if isinstance(other, KeySet):
            other._settle(len(other._late))
        for number, shard in self._shards.items():
            theirs = other._keys_of(number)
            if shard and theirs:
                kept = np.setdiff1d(np.frombuffer(shard, np.int64), np.frombuffer(theirs, np.int64), assume_unique=True)
                self._n -= len(shard) - len(kept)
                self._shards[number] = array("q", kept.tobytes())

    def _keys_of(self, number: int) -> array[int]:
        return self._shards.get(number, _NO_KEYS)

    def array(self) -> NDArray[np.int64]:
        """Return all keys, shape (n,), in no order."""
        return np.frombuffer(b"".join([*self._shards.values(), self._late]), np.int64)

    def save(self, saved: Saved) -> None:
        """Add all columns."""
        saved.put_ints("shards", self._shards)
        saved.put_ints("lengths", map(len, self._shards.values()))
        saved.put("keys", "q", *self._shards.values())
        saved.put("late", "q", self._late)

    def restore(self, saved: Saved) -> None:
        """Restore the saved columns, in a tenth of the time of :meth:`update_many`."""
        column, self._late = saved.take("keys", "q"), saved.take("late", "q")
        keys, shards = Pieces(column), zip(saved.take("shards", "i"), saved.take("lengths", "i"), strict=True)
        self._shards = {number: keys.cut(length) for number, length in shards}
        keys.end()
        self._n = len(column) + len(self._late)

    def _put(self, key: int) -> bool:
        """Add a key to its shard, and return whether it is new there."""
        number = key % _SHARDS
        shard = self._shards.get(number)
        if shard is None:
            shard = self._shards[number] = array("q")
        at = bisect_left(shard, key)
        if at < len(shard) and shard[at] == key:
            return False
        shard.insert(at, key)
        return True

    def _settle(self, n: int) -> None:
        """Merge some of the late keys into their shards."""
        for _ in range(min(n, len(self._late))):
            self._put(self._late.pop())


class KeyMap:
    """A map from integers below 2**63 in size to integers below 2**31; each pair costs 12 bytes.

    A shard is its keys, sorted and distinct, and their values in the same order.
    """

    def __init__(self) -> None:
        self._shards: dict[int, tuple[array[int], array[int]]] = {}
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def get(self, key: int, default: int) -> int:
        """Return the value of a key, or a default."""
        shard = self._shards.get(key % _SHARDS)
        if shard is None:
            return default
        keys, values = shard
        at = bisect_left(keys, key)
        return values[at] if at < len(keys) and keys[at] == key else default

    def get_many(self, keys: Iterable[int], default: int) -> list[int]:
        """Return the value of each key, or a default."""
        shards, found = self._shards, []
        for key in keys:
            value, shard = default, shards.get(key % _SHARDS)
            if shard is not None:
                its_keys, values = shard
                at = bisect_left(its_keys, key)
                if at < len(its_keys) and its_keys[at] == key:
                    value = values[at]
            found.append(value)
        return found

    def set(self, key: int, value: int) -> None:
        """Give a key a value."""
        number = key % _SHARDS
        shard = self._shards.get(number)
        if shard is None:
            shard = self._shards[number] = (array("q"), array("i"))
        keys, values = shard
        at = bisect_left(keys, key)
        if at < len(keys) and keys[at] == key:
            values[at] = value
        else:
            keys.insert(at, key)
            values.insert(at, value)
            self._n += 1

    def setdefault(self, key: int, value: int, default: int) -> int:
        """Give a key a value if it has none; return the value that it had, or a default."""
        number = key % _SHARDS
        shard = self._shards.get(number)
        if shard is None:
            shard = self._shards[number] = (array("q"), array("i"))
        keys, values = shard
        at = bisect_left(keys, key)
        if at < len(keys) and keys[at] == key:
            return values[at]
        keys.insert(at, key)
        values.insert(at, value)
        self._n += 1
        return default

    def setdefault_many(self, keys: Sequence[int], values: Sequence[int], default: int) -> tuple[list[int], list[int]]:
        """Give distinct keys values if they have none; return the values that they had, or a default; and the places
        in ``keys`` of those without.

        The first key without a value gets the first value, the second the second: surplus values are not used.
        """
        shards, had, new, left = self._shards, [], [], iter(values)
        for at, key in enumerate(keys):
            number = key % _SHARDS
            shard = shards.get(number)
            if shard is None:
                shards[number] = array("q", (key,)), array("i", (next(left),))
            else:
                its_keys, its_values = shard
                place = bisect_left(its_keys, key)
                if place < len(its_keys) and its_keys[place] == key:
                    had.append(its_values[place])
                    continue
                its_keys.insert(place, key)
                its_values.insert(place, next(left))
            had.append(default)
            new.append(at)
        self._n += len(new)
        return had, new

    def pop(self, key: int, default: int) -> int:
        """Remove a key, and return its value, or a default."""
        shard = self._shards.get(key % _SHARDS)
        if shard is None:
            return default
        keys, values = shard
        at = bisect_left(keys, key)
        if at == len(keys) or keys[at] != key:
            return default
        del keys[at]
        self._n -= 1
        return values.pop(at)

    def pop_where(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Remove all keys whose value v is at least 0 and has ``chosen[v]``, and return them, shape (n,); linear."""
        shards = [*self._shards.values()]
        values = np.frombuffer(b"".join([values for _, values in shards]), np.int32)
        hit = chosen.take(values, mode="clip")
        hit &= (values >= 0) & (values < len(chosen))
        places = np.flatnonzero(hit)[::-1]  # from the end, because a removal moves what follows
        lengths = np.fromiter((len(keys) for keys, _ in shards), np.int64, len(shards))
        ends = lengths.cumsum()
        numbers = ends.searchsorted(places, side="right")
        within = places - (ends - lengths)[numbers]
        found = array("q")
        for number, at in zip(numbers.tolist(), within.tolist(), strict=True):
            keys, its_values = shards[number]
            found.append(keys.pop(at))
            del its_values[at]
        self._n -= len(found)
        return np.frombuffer(found, np.int64)

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return all keys and their values, both of shape (n,), in no order."""
        shards = self._shards.values()
        keys = np.frombuffer(b"".join(keys for keys, _ in shards), np.int64)
        return keys, np.frombuffer(b"".join(values for _, values in shards), np.int32)

    def update_many(self, keys: NDArray[np.int64], values: NDArray[np.int32]) -> None:
        """Give many keys their values, both of shape (n,); the last value of a repeated key counts."""
        for number, part in _by_shard(keys):
            old_keys, old_values = self._shards.get(number, (_NO_KEYS, _NO_VALUES))
            all_keys = np.concatenate([np.frombuffer(old_keys, np.int64), keys[part]])
            all_values = np.concatenate([np.frombuffer(old_values, np.int32), values[part]])
            order = np.argsort(all_keys, kind="stable")
            all_keys = all_keys[order]
            last = np.append(all_keys[1:] != all_keys[:-1], True)
            kept = all_keys[last]
            self._shards[number] = (array("q", kept.tobytes()), array("i", all_values[order][last].tobytes()))
            self._n += len(kept) - len(old_keys)

    def save(self, saved: Saved) -> None:
        """Add all columns."""
        saved.put_ints("shards", self._shards)
        saved.put_ints("lengths", (len(keys) for keys, _ in self._shards.values()))
        saved.put("keys", "q", *(keys for keys, _ in self._shards.values()))
        saved.put("values", "i", *(values for _, values in self._shards.values()))

    def restore(self, saved: Saved) -> None:
        """Restore the saved columns, in a tenth of the time of :meth:`update_many`."""
        keys, values = Pieces(saved.take("keys", "q")), Pieces(saved.take("values", "i"))
        lengths = saved.take("lengths", "i")
        shards = zip(saved.take("shards", "i"), lengths, strict=True)
        self._shards = {number: (keys.cut(length), values.cut(length)) for number, length in shards}
        keys.end()
        values.end()
        self._n = sum(lengths)

    def _keys_of(self, number: int) -> array[int]:
        return self._shards.get(number, (_NO_KEYS, _NO_VALUES))[0]

    def items(self) -> Iterator[tuple[int, int]]:
        """Yield all pairs, in no order."""
        for keys, values in self._shards.values():
            yield from zip(keys, values, strict=True)


_NO_KEYS = array("q")
_NO_VALUES = array("i")


def _holds(keys: array[int], key: int) -> bool:
    at = bisect_left(keys, key)
    return at < len(keys) and keys[at] == key


def _by_shard(keys: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the number of each shard, and the places of its keys, in order."""
    numbers = (keys % _SHARDS).astype(np.int16)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    for start, end in pairwise([*starts.tolist(), len(keys)]):
        yield int(numbers[start]), order[start:end]
