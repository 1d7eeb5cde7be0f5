"""A memory of the most recently seen pages: their links, their topic, and when they changed.

An unchanged page arrives without links and text, and yet a forager continues from it. So the contents of recent pages
are remembered, up to a limit.
"""

from __future__ import annotations

from array import array
from math import isnan, nan
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from scrapy_focus.policies.foragers.slots import Slots, longer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

LINKS = 300  # links of a page that are remembered

_NONE = np.zeros(0, np.int64)


class Known:
    """The record of one page, while it is remembered."""

    __slots__ = ("_pages", "slot")

    def __init__(self, pages: Pages, slot: int) -> None:
        self._pages = pages
        self.slot = slot

    @property
    def at(self) -> float:
        """Time of the last visit, in seconds since the epoch; 0: never."""
        return self._pages.at[self.slot]

    @at.setter
    def at(self, value: float) -> None:
        """Set it."""
        self._pages.at[self.slot] = value

    @property
    def changed(self) -> float | None:
        """Time of the last change of the document, likewise; ``None``: not stated, or not a document."""
        changed = self._pages.changed[self.slot]
        return None if isnan(changed) else changed

    @changed.setter
    def changed(self, value: float | None) -> None:
        """Set it."""
        self._pages.changed[self.slot] = nan if value is None else value

    @property
    def links(self) -> NDArray[np.int64]:
        """Keys, shape (n,)."""
        return self._pages.links[self.slot]

    @links.setter
    def links(self, value: NDArray[np.int64]) -> None:
        """Set them."""
        self._pages.links[self.slot] = value

    @property
    def version(self) -> int:
        """A number that identifies the content."""
        return self._pages.version[self.slot]

    @version.setter
    def version(self, value: int) -> None:
        """Set it."""
        self._pages.version[self.slot] = value


class Pages:
    """Remembers the most recently seen pages.

    Parameters
    ----------
    k
        Length of the state of a page.
    most
        Number of pages to remember.

    Notes
    -----
    *Memory*: about 300 bytes a page, ``4 * k`` for its state where any page has one, and 8 for each of its links: up
    to 3 kB.
    """

    def __init__(self, k: int, most: int) -> None:
        self.most = most
        self.k = k
        self.slots = Slots()
        self.at = array("d")  # of these and the following, by number, the fields of Known
        self.changed = array("d")
        self.version = array("q")
        self.links: list[NDArray[np.int64]] = []
        self._states = np.zeros((0, k), np.float32)

    def __len__(self) -> int:
        return len(self.slots)

    def __iter__(self) -> Iterator[int]:
        return iter(self.slots)

    def get(self, key: int) -> Known | None:
        """Return the record of a page, ``None`` if there is none."""
        slot = self.slots.get(key)
        return None if slot < 0 else Known(self, slot)

    def visited(self, key: int) -> float:
        """Return the time of the last visit of a page, in seconds since the epoch; 0 if unknown."""
        slot = self.slots.get(key)
        return 0.0 if slot < 0 else self.at[slot]

    def see(self, key: int) -> Known:
        """Return the record of a page that is seen now; an old record may be dropped for it."""
        slot = self.slots.get(key)
        if slot < 0:
            if len(self.slots) >= self.most:
                self.slots.take_first()
            slot = self.slots.give(key)
            if slot == len(self.at):
                self.at.append(0.0)
                self.changed.append(nan)
                self.version.append(0)
                self.links.append(_NONE)
            else:
                self.at[slot], self.changed[slot], self.version[slot], self.links[slot] = 0.0, nan, 0, _NONE
                self._states[slot : slot + 1] = 0.0
        else:
            self.slots.touch(key)
        return Known(self, slot)

    def set_state(self, page: Known, state: NDArray[np.float32]) -> None:
        """Remember the state of a page, shape (k,)."""
        while page.slot >= len(self._states):
            self._states = longer(self._states)
        self._states[page.slot] = state

    def state(self, key: int) -> NDArray[np.float32]:
        """Return the state of a page, shape (k,); zeros if unknown."""
        state: NDArray[np.float32] = self.states([key])[0]
        return state

    def states(self, keys: Sequence[int]) -> NDArray[np.float32]:
        """Return the states of pages, shape (n, k); zeros if unknown."""
        return self.states_at(self.slots.of(keys))

    def states_at(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the states of pages by their numbers, shape (n, k); zeros if unknown, or if the number is -1."""
        found = np.zeros((len(slots), self.k), np.float32)
        known = (slots >= 0) & (slots < len(self._states))
        found[known] = self._states[slots[known]]
        return found

    def __getstate__(self) -> dict[str, Any]:
        columns = {name: np.array(getattr(self, name)) for name in ("at", "changed", "version")}
        return {
            "most": self.most, "k": self.k, "slots": self.slots, **columns,
            "lengths": np.fromiter(map(len, self.links), np.int64, len(self.links)),
            "links": b"".join(cast("list[bytes]", self.links)),
            "states": self._states[: self.slots.used],
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        Pages.__init__(self, state["k"], state["most"])
        self.slots = state["slots"]
        for name in ("at", "changed", "version"):
            getattr(self, name).extend(state[name].tolist())
        ends = np.cumsum(state["lengths"]).tolist()
        self.links = (
            [part.copy() for part in np.split(np.frombuffer(state["links"], np.int64), ends[:-1])] if ends else []
        )
        self._states = state["states"]
