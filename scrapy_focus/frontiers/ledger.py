"""The common part of all frontiers of this package: which links are queued, in flight or seen, in any order.

A frontier has two parts that do not know each other. An order chooses which link leaves next, and holds numbers of
slots. Records hold all other data of a link. The ledger knows each URL by its key, and the slot where it is queued.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import islice
from math import inf, isfinite, isnan, nextafter
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from scrapy_focus.core.errors import FrontierError
from scrapy_focus.core.types import Pick, Placement, State
from scrapy_focus.frontiers.keys import KeyMap, KeySet
from scrapy_focus.frontiers.require import require
from scrapy_focus.frontiers.sleepers import Sleeper, Sleepers

if TYPE_CHECKING:
    from array import array
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Memo
    from scrapy_focus.frontiers.hosts import Hosts
    from scrapy_focus.frontiers.records import Record, Records
    from scrapy_focus.frontiers.saved import Saved

NEW, PROBED, FLYING = -1, -2, -3  # value of a key instead of a slot
ASLEEP = -4  # the same for a link that sleeps in bed 0; one less for each further bed
READ_AT_ONCE = 256  # records
_WOKEN_AT_ONCE = 1024  # links
FEW, SHARE = 256, 64  # links, and one in so many of all, from which they are given up together
_STATES = {PROBED: State.PROBED, FLYING: State.FLYING}
_WAITING, _FETCHED, _GIVEN_UP, _NEW = State.WAITING, State.FETCHED, State.GIVEN_UP, State.NEW


class Order(Protocol):
    """Slots of queued links, each with the number of its record, an age (the smaller is older), a host and an arm."""

    hosts: Hosts
    record: array[int]
    age: array[int]

    @property
    def waiting(self) -> NDArray[np.int64]:
        """How many links are queued in each arm, shape (n_arms,)."""

    def __len__(self) -> int:
        """How many links are queued."""

    def awake(self, busy: Collection[str]) -> NDArray[np.int64]:
        """Return how many links of each arm are queued for hosts that are not busy, shape (n_arms,)."""

    def host(self, name: str) -> int:
        """Return the number of a host, a new one if it has none."""

    def place(self, slot: int) -> tuple[int, int, float]:
        """Return the host, the arm and the rank of a queued link."""

    def remove(self, slot: int) -> None:
        """Remove the link of a slot; the slot may be reused."""

    def grow(self, n_arms: int) -> None:
        """Create arms up to this number."""

    def save(self, saved: Saved) -> None:
        """Add all columns except those of the hosts; ages are records."""

    def restore(self, saved: Saved) -> None:
        """Restore the saved columns, with the hosts that are here; ages are records."""

    def check(self) -> None:
        """Raise FrontierError if an invariant is broken; linear."""


class Held(NamedTuple):
    """The rest of the placement of a link in flight."""

    number: int  # of its record, which lasts until the pick is settled
    age: int


class Place(NamedTuple):
    """The data that a link keeps wherever it is placed."""

    number: int  # of its record
    age: int
    host: int


class Ledger(ABC):
    """The part of a :class:`~scrapy_focus.core.frontier.Frontier` that does not depend on its order.

    ``_known`` maps queued keys to slots of the order, and sleeping, probed and flying keys to a negative number.
    Exactly those placed for a time later than ``_woke`` sleep. ``_fetched`` and ``_given_up`` have all other keys
    that are not new: the three are disjoint. ``_flying`` holds the picks in flight by id, and ``_held`` the rest of
    their data.
    """

    def __init__(self, order: Order, records: Records, *, width: int = 0) -> None:
        """``width``: bytes of the vectors that are kept of links."""
        self._order = order
        self._records = records
        self._sleepers = Sleepers(width, ages=not records.by_age)
        self._woke = 0.0  # seconds since the epoch
        self._known = KeyMap()
        self._fetched = KeySet()
        self._given_up = KeySet()
        self._flying: dict[int, Pick] = {}
        self._held: dict[int, Held] = {}
        self._next_id = 1

    @abstractmethod
    def _unpacked(self, memo: bytes | None) -> Memo | None:
        """Return the memo of a placement from the bytes in its record."""

    @abstractmethod
    def _memo(self, slot: int, record: Record) -> Memo | None:
        """Return the memo of a queued link."""

    @abstractmethod
    def _wait_again(self, pick: Pick, held: Held, host: int) -> int:
        """Queue a former pick at its old place, and return its slot."""

    @abstractmethod
    def _let_wait(self, sleepers: Sequence[Sleeper]) -> list[int]:
        """Queue links that slept, and return their slots."""

    @property
    def waiting(self) -> NDArray[np.int64]:
        return self._order.waiting

    @property
    def asleep(self) -> int:
        """How many links sleep."""
        return len(self._sleepers)

    @property
    def next_due(self) -> float | None:
        """When the first of these is due, in seconds since the epoch; ``None`` if none sleeps."""
        return self._sleepers.next_due

    def wake(self, now: float, most: int | None = None) -> int:
        """Queue all links that are due, or up to ``most``, and return how many these were; O(log n) for each."""
        due, known = islice(self._sleepers.due(now), most), self._known
        n = 0
        while some := list(islice(due, _WOKEN_AT_ONCE)):
            for sleeper, slot in zip(some, self._let_wait(some), strict=True):
                known.set(sleeper.key, slot)
            n += len(some)
        left = self.next_due
        self._woke = max(self._woke, now if left is None or left > now else nextafter(left, -inf))
        return n

    @property
    def flying(self) -> Mapping[int, Pick]:
        return self._flying

    def __len__(self) -> int:
        return len(self._order)

    def awake(self, busy: Collection[str] = ()) -> NDArray[np.int64]:
        return self._order.awake(busy)

    @property
    def hosts(self) -> Sequence[str]:
        """The name of each host that ever had a queued link, by its number. Read-only."""
        return self._order.hosts.names

    def states(self, keys: Sequence[int]) -> list[State]:
        slots = self._known.get_many(keys, NEW)
        return [self._state(key, slot) for key, slot in zip(keys, slots, strict=True)]

    def _state(self, key: int, slot: int) -> State:
        if slot >= 0:
            return _WAITING
        if slot == NEW:
            return self._unknown(key)
        return _STATES.get(slot, _WAITING)

    def take(self, key: int, *, pick_id: int | None = None) -> Pick | None:
        slot = self._known.get(key, NEW)
        if slot < 0:
            return None
        if pick_id in self._flying:
            raise FrontierError(f"pick {pick_id} is in flight already; give another id, or none")
        return self._fly(slot, self._next_id if pick_id is None else pick_id)

    def settle(self, pick: Pick, also: Collection[int] = ()) -> None:
        _, held = self._land(pick)
        self._records.erase(held.number)
        if pick.method == "HEAD":
            self._known.set(pick.key, PROBED)
            self._records.note(pick.key, State.PROBED)
        else:
            self._known.pop(pick.key, NEW)
            self._fetched.add(pick.key)
            self._records.note(pick.key, State.FETCHED)
        for key in also:
            if self._known.get(key, NEW) == NEW and self._fetched.add(key):
                self._given_up.discard(key)
                self._records.note(key, State.FETCHED)

    def release(self, pick: Pick) -> None:
        as_taken, held = self._land(pick)
        self._known.set(as_taken.key, self._wait_again(as_taken, held, self._order.host(as_taken.host)))

    def check(self) -> None:
        self._order.check()
        self._check_flying()
        require(len(self._known) == sum(1 for _ in self._known.items()), "there are more keys than are counted")
        self._sleepers.check()
        waiting, asleep = [], 0
        for key, slot in self._known.items():
            require(key not in self._fetched, f"key {key} is fetched and something else at once")
            require(key not in self._given_up, f"key {key} is given up and something else at once")
            if slot >= 0:
                waiting.append((key, slot))
            if slot <= ASLEEP:
                asleep += 1
                sleeper = self._sleepers.get(ASLEEP - slot)
                require(sleeper.key == key and sleeper.arm >= 0, f"key {key} sleeps in the bed of another")
                require(self._records.read([sleeper.number])[0].key == key, f"key {key} sleeps elsewhere than it says")
        require(not any(int(key) in self._fetched for key in self._given_up.array()), "a key is fetched and given up")
        require(asleep == self.asleep, f"{asleep} links sleep by their states, {self.asleep} in beds")
        due = self.next_due
        require(due is None or due > self._woke, f"a link sleeps until {due}, and all woke until {self._woke}")
        require(len(waiting) == len(self), f"{len(waiting)} links are queued by their states, {len(self)} by the order")
        self._check_records(waiting)
        require(len({slot for _, slot in waiting}) == len(waiting), "two links are in one slot")

    def _check_records(self, waiting: list[tuple[int, int]]) -> None:
        """Raise FrontierError if the record of a link, given by key and slot, is that of another."""
        slots = iter(waiting)
        while part := list(islice(slots, READ_AT_ONCE)):
            records = self._records.read([self._order.record[slot] for _, slot in part])
            for (key, _), record in zip(part, records, strict=True):
                require(record.key == key, f"link {record.url} is queued elsewhere than it says")

    def close(self) -> None:
        self._records.close()

    def _save(self, saved: Saved) -> None:
        """Add all columns of queued and sleeping links and of the URLs seen; ages are numbers of records."""
        for name, part in self._parts:
            part.save(saved.under(name))

    def _restore(self, saved: Saved) -> None:
        """Restore the saved columns into a frontier that has only hosts."""
        for name, part in self._parts:
            part.restore(saved.under(name))

    @property
    def _parts(self) -> Sequence[tuple[str, Order | KeyMap | KeySet | Sleepers]]:
        return (
            ("order", self._order), ("sleepers", self._sleepers), ("known", self._known), ("fetched", self._fetched),
            ("given_up", self._given_up),
        )  # fmt: skip

    def _check_flying(self) -> None:
        require(self._held.keys() == self._flying.keys(), "the picks in flight and their records differ")
        flying = {pick.key for pick in self._flying.values()}
        require(len(flying) == len(self._flying), "a link is in flight twice")
        for key, slot in self._known.items():
            require((slot == FLYING) == (key in flying), f"key {key} is in flight by the states or the picks only")
        records = self._records.read([held.number for held in self._held.values()])
        for pick, record in zip(self._flying.values(), records, strict=True):
            require(record.key == pick.key, "a record in flight is another's")
        require(all(id_ < self._next_id for id_ in self._flying), "a pick in flight has an id that is still to come")

    def _unknown(self, key: int) -> State:
        """Return the state of a key that is neither queued nor in flight nor probed."""
        if key in self._fetched:
            return _FETCHED
        return _GIVEN_UP if len(self._given_up) and key in self._given_up else _NEW

    def _refuse(self, key: int) -> None:
        """Give up a link that was pushed without a placement, if it is new."""
        new = self._known.get(key, NEW) == NEW and key not in self._fetched
        if new and self._given_up.add(key):
            self._records.note(key, State.GIVEN_UP)

    def _give_up(self, key: int, slot: int) -> None:
        number = self._rise(slot).number
        self._records.erase(number)
        self._known.pop(key, NEW)
        self._given_up.add(key)
        self._records.note(key, State.GIVEN_UP)

    def _give_up_slots(self, slots: Sequence[int]) -> int:
        for start in range(0, len(slots), READ_AT_ONCE):
            part = slots[start : start + READ_AT_ONCE]
            records = self._records.read([self._order.record[slot] for slot in part])
            for slot, record in zip(part, records, strict=True):
                self._give_up(record.key, slot)
        return len(slots)

    def _rise(self, slot: int) -> Place:
        """Remove a queued or sleeping link, and return its place; ``slot``: the value of its key."""
        if slot <= ASLEEP:
            sleeper = self._sleepers.remove(ASLEEP - slot)
            return Place(sleeper.number, sleeper.age, sleeper.host)
        order = self._order
        number, age, (host, _, _) = order.record[slot], order.age[slot], order.place(slot)
        order.remove(slot)
        return Place(number, age, host)

    def _sleep(self, key: int, place: Place, arm: int, rank: float, after: float, vector: bytes = b"") -> None:
        """Put a link to sleep that is neither queued nor asleep."""
        number, age, host = place
        self._order.grow(arm + 1)
        self._known.set(key, ASLEEP - self._sleepers.add(Sleeper(key, number, age, host, arm, rank, vector), after))

    def _are_many(self, n: int) -> bool:
        """Whether it is better to give so many links up together than one by one."""
        return n >= FEW and n * SHARE >= len(self._known)

    def _gave_up(self, slots: NDArray[np.int32]) -> int:
        """Record that many links were given up by the order, without reading their records; linear."""
        if not len(slots):
            return 0
        chosen = np.zeros(len(self._order.record), np.bool_)
        chosen[slots] = True
        keys = self._known.pop_where(chosen)
        self._records.erase_many(np.frombuffer(self._order.record, np.int32)[slots].tolist())
        self._given_up.update_late(keys)
        self._records.note_many(keys, State.GIVEN_UP)
        return len(keys)

    def _fly(self, slot: int, pick_id: int) -> Pick:
        order = self._order
        number, age, (host, arm, rank) = order.record[slot], order.age[slot], order.place(slot)
        record = self._records.read((number,))[0]
        key, url, depth, origin, payload, _, method = record
        memo = self._memo(slot, record)
        pick = Pick(pick_id, key, url, order.hosts.names[host], depth, arm, rank, memo, origin, method, payload)
        self._next_id = max(self._next_id, pick_id + 1)
        order.remove(slot)
        self._known.set(key, FLYING)
        self._flying[pick_id] = pick
        self._held[pick_id] = Held(number, age)
        return pick

    def _land(self, pick: Pick) -> tuple[Pick, Held]:
        as_taken = self._flying.pop(pick.id, None)
        if as_taken is None:
            raise FrontierError(f"pick {pick.id} ({pick.url}) is not in flight: it was settled or released already")
        return as_taken, self._held.pop(pick.id)


def is_plain(placement: Placement) -> bool:
    """Whether a placement is for now, and has valid plain Python numbers."""
    arm, rank, _, _, after = placement
    return type(arm) is int and type(rank) is float and arm >= 0 and not isnan(rank) and after == 0.0


def plain(placement: Placement) -> Placement:
    """Return a placement with plain Python numbers; NumPy's behave differently in columns.

    Raises
    ------
    FrontierError
        If the arm, the rank or the time is invalid.
    """
    if is_plain(placement):
        return placement
    arm, rank, memo, method, after = placement
    try:
        arm, rank, after = int(arm), float(rank), float(after)
    except (TypeError, ValueError, OverflowError) as error:
        raise FrontierError(f"{placement} is not a valid placement: {error}") from error
    if arm < 0 or isnan(rank) or not isfinite(after):
        raise FrontierError(
            f"{placement} is not a valid placement: an arm is an integer from 0, a rank a number that is not NaN, "
            "after a number of seconds"
        )
    return Placement(arm, rank, memo, method, after)
