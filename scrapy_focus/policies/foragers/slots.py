"""Numbers for keys, so that their data can be in arrays: thousands of links are compared at each step.

Looking up thousands of keys one by one would take longer than all the rest. The keys that a forager may follow, and
their data, change little from one step to the next. So their numbers are cached between steps.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

NOWHERE = -1  # the number of an unknown key, and the key of a free number

_LATELY = 4096  # keys whose numbers are known to be recent
_FEW = 32  # values that are sorted together


class Slots:
    """Gives numbers to keys, from 0 on; numbers of forgotten keys are reused.

    Keys are ordered by when they got their numbers, or were last touched.
    """

    def __init__(self) -> None:
        self._slots: OrderedDict[int, int] = OrderedDict()  # by key
        self.keys: NDArray[np.int64] = np.zeros(0, np.int64)  # by number
        self.used = 0  # numbers ever given: all are below
        self._free: list[int] = []  # of these, the free ones
        self._lately: deque[int] = deque(maxlen=_LATELY)  # keys that got a number
        self.given = 0  # how many did, ever

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: int) -> bool:
        return key in self._slots

    def __iter__(self) -> Iterator[int]:
        return iter(self._slots)

    def get(self, key: int) -> int:
        """Return the number of a key, -1 if it has none."""
        return self._slots.get(key, NOWHERE)

    def of(self, keys: Iterable[int]) -> NDArray[np.int64]:
        """Return the numbers of keys, shape (n,), -1 for one without."""
        slots = self._slots
        return np.array([slots.get(key, NOWHERE) for key in keys], np.int64)

    def give(self, key: int) -> int:
        """Give a number to a key that has none, and return it."""
        if self._free:
            slot = self._free.pop()
        else:
            slot = self.used
            self.used += 1
            if slot == len(self.keys):
                self.keys = longer(self.keys, NOWHERE)
        self._slots[key] = slot
        self.keys[slot] = key
        self._lately.append(key)
        self.given += 1
        return slot

    def touch(self, key: int) -> None:
        """Move a key that has a number to the end."""
        self._slots.move_to_end(key)

    def take(self, key: int) -> int:
        """Remove a key, and return its number; -1 if it has none."""
        slot = self._slots.pop(key, NOWHERE)
        if slot >= 0:
            self.keys[slot] = NOWHERE
            self._free.append(slot)
        return slot

    def take_first(self) -> tuple[int, int]:
        """Remove the first key, and return its number and the key."""
        key = next(iter(self._slots))
        return key, self.take(key)

    def since(self, given: int) -> list[int] | None:
        """Return the keys that got numbers after so many had; ``None`` if that is forgotten."""
        n = self.given - given
        return list(islice(reversed(self._lately), n)) if n <= len(self._lately) else None

    def __getstate__(self) -> dict[str, Any]:
        slots = np.fromiter(self._slots.values(), np.int32, len(self))
        free = np.array(self._free, np.int32)
        return {"keys": self.keys[slots], "slots": slots, "used": self.used, "free": free, "given": self.given}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Slots.__init__(self)
        self._slots.update(zip(state["keys"].tolist(), state["slots"].tolist(), strict=True))
        self.keys = np.full(state["used"], NOWHERE, np.int64)
        self.keys[state["slots"]] = state["keys"]
        self.used, self._free, self.given = state["used"], state["free"].tolist(), state["given"]


class OpenLinks:
    """Links that a path may still follow, in the order of discovery."""

    def __init__(self) -> None:
        self._found: dict[int, None] = {}
        self._keys: NDArray[np.int64] = np.zeros(0, np.int64)  # of all but the last ones
        self._slots: dict[str, tuple[NDArray[np.int64], int]] = {}  # their numbers, and how many had been given then

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, key: object) -> bool:
        return key in self._found

    def __iter__(self) -> Iterator[int]:
        return iter(self._found)

    @property
    def keys(self) -> NDArray[np.int64]:
        """Their keys, shape (n,). Read-only."""
        if n := len(self._found) - len(self._keys):
            fresh = list(islice(reversed(self._found), n))
            self._keys = np.concatenate([self._keys, np.array(fresh[::-1], np.int64)])
        return self._keys

    def add(self, key: int) -> None:
        """Open a link."""
        self._found[key] = None

    def discard(self, key: int) -> None:
        """Close a link."""
        if key in self._found:
            self._keep(self.keys != key)
            del self._found[key]

    def discard_at(self, places: list[int]) -> None:
        """Close the links at some places."""
        if places:
            for key in self.keys[places].tolist():
                del self._found[key]
            kept = np.ones(len(self._keys), np.bool_)
            kept[places] = False
            self._keep(kept)

    def clear(self) -> None:
        """Close all links."""
        self.__init__()  # type: ignore[misc]

    def slots(self, slots: Slots, name: str) -> NDArray[np.int64]:
        """Return the current numbers of these links, shape (n,), -1 for one without.

        All calls with the same ``name`` must pass the same ``slots``.
        """
        keys = self.keys
        known, given = self._slots.get(name, (keys[:0], 0))
        fresh = slots.since(given)
        if fresh is None:
            known = slots.of(self._found)
        else:
            for key in fresh:
                if key in self._found:
                    known[np.flatnonzero(keys[: len(known)] == key)] = slots.get(key)
            if len(known) < len(keys):
                known = np.concatenate([known, slots.of(keys[len(known) :].tolist())])
        self._slots[name] = known, slots.given
        if not len(slots.keys):
            return np.full(len(keys), NOWHERE, np.int64)
        return np.where((known >= 0) & (slots.keys.take(known, mode="clip") == keys), known, NOWHERE)

    def _keep(self, kept: NDArray[np.bool_]) -> None:
        self._keys = self._keys[kept]
        self._slots = {name: (known[kept[: len(known)]], given) for name, (known, given) in self._slots.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {"keys": self.keys}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self._found = dict.fromkeys(state["keys"].tolist())
        self._keys = state["keys"]


def best_first(values: NDArray[np.float64], rng: np.random.Generator) -> Iterator[int]:
    """Yield the places of values, largest first, equal ones in random order.

    If few are needed, that takes less time than sorting all.
    """
    chances = rng.random(len(values))
    if len(values) <= 2 * _FEW:
        yield from np.lexsort((chances, -values)).tolist()
        return
    least = np.partition(values, -_FEW)[-_FEW]
    above, equal = np.flatnonzero(values > least), np.flatnonzero(values == least)
    yield from above[np.lexsort((chances[above], -values[above]))].tolist()
    chances_of_equals = chances[equal]
    if len(equal) > 2 * _FEW:
        largest = np.partition(chances_of_equals, _FEW)[_FEW]
        first = chances_of_equals <= largest
        yield from equal[first][np.argsort(chances_of_equals[first], kind="stable")].tolist()
        equal, chances_of_equals = equal[~first], chances_of_equals[~first]
    yield from equal[np.argsort(chances_of_equals, kind="stable")].tolist()
    below = np.flatnonzero(~(values >= least))  # NaN is last
    yield from below[np.lexsort((chances[below], -values[below]))].tolist()


def longer(values: NDArray[Any], fill: float = 0) -> NDArray[Any]:
    """Return an array with room for as many again."""
    room = np.full((max(64, len(values)), *values.shape[1:]), fill, values.dtype)
    return np.concatenate([values, room])
