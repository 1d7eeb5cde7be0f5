"""What frontiers on this machine have in common: an index and the states in memory, the records wherever they like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import isnan
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from scrapy_focus.core.errors import FrontierError
from scrapy_focus.core.types import Link, Pick, Placement, State
from scrapy_focus.frontiers.index_check import check_index, require
from scrapy_focus.frontiers.keys import KeyMap, KeySet
from scrapy_focus.frontiers.ranked.queue import Index

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from scrapy_focus.core.types import Method
    from scrapy_focus.frontiers.drawn.pool import Pool

NEW, PROBED, FLYING = -1, -2, -3
_WAITING, _FETCHED = State.WAITING, State.FETCHED
_STATES = {NEW: State.NEW, PROBED: State.PROBED, FLYING: State.FLYING}
_CHUNK = 256  # records that a scan reads at once


Memo: TypeAlias = "NDArray[np.float32] | bytes | None"


class Record(NamedTuple):
    """What a waiting link has beside its place in the index."""

    key: int
    url: str
    depth: int
    origin: int
    payload: bytes
    memo: NDArray[np.float32] | None
    method: Method


class IndexedFrontier(ABC):
    """A :class:`~scrapy_focus.core.frontier.Frontier` with its index in memory; a subclass keeps the records.

    ``_known`` maps keys that wait to slots of the index, and keys that are probed or fly to a negative number;
    ``_fetched`` has all other keys that are not new: they are disjoint. ``_flying`` holds the picks in flight by id, and
    ``_held`` the numbers of their records, which last until they are settled.
    """

    def __init__(self) -> None:
        self._index: Index | Pool = Index()
        self._known = KeyMap()
        self._fetched = KeySet()
        self._flying: dict[int, Pick] = {}
        self._held: dict[int, int] = {}
        self._next_id = 1
        self._steered: tuple[int, int] | None = None  # key, id

    @abstractmethod
    def _store(self, link: Link, host: int, origin: int, arm: int, rank: float, memo: Memo, method: Method) -> int:
        """Keep a record, and return its number; a memo in bytes is one that the index has too."""

    @abstractmethod
    def _replace(self, number: int, arm: int, rank: float, memo: Memo, method: Method) -> None:
        """Give a record another placement."""

    @abstractmethod
    def _erase(self, number: int) -> None:
        """Forget a record; its number may be used again."""

    @abstractmethod
    def _read(self, numbers: Sequence[int]) -> list[Record]:
        """Return some records, in order."""

    def _note(self, key: int, state: State) -> None:  # noqa: B027 (not every frontier writes it down)
        """A key is fetched or probed from now on."""

    @property
    def waiting(self) -> NDArray[np.int64]:
        return self._index.waiting

    @property
    def heads(self) -> NDArray[np.float64]:
        return self._index.heads

    @property
    def flying(self) -> Mapping[int, Pick]:
        return self._flying

    def __len__(self) -> int:
        return len(self._index)

    def awake(self, busy: Collection[str] = ()) -> NDArray[np.int64]:
        return self._index.awake(busy)

    def states(self, keys: Sequence[int]) -> list[State]:
        known, fetched = self._known, self._fetched
        slots = [known.get(key, NEW) for key in keys]
        return [
            _WAITING if slot >= 0 else _FETCHED if slot == NEW and key in fetched else _STATES[slot]
            for key, slot in zip(keys, slots, strict=True)
        ]

    def push(self, links: Sequence[Link], placements: Sequence[Placement | None], *, origin: int = -1) -> int:
        placements = [place if place is None else plain(place) for place in placements]
        index, known, fetched = cast("Index", self._index), self._known, self._fetched
        before = len(index)
        for link, placement in zip(links, placements, strict=True):
            key = link.key
            if placement is None:
                if known.get(key, NEW) == NEW and fetched.add(key):
                    self._note(key, State.FETCHED)
                continue
            slot = known.setdefault(key, index.next_slot, NEW)
            if slot >= 0:
                self._move(key, slot, placement)
            elif slot != FLYING:
                if slot == NEW:
                    fetched.discard(key)
                else:
                    known.set(key, index.next_slot)
                host, (arm, rank, memo, method) = index.host(link.host), placement
                index.insert(self._store(link, host, origin, arm, rank, memo, method), host, arm, rank)
        return len(index) - before

    def pop(self, arm: int, busy: Collection[str] = ()) -> Pick | None:
        if self._steered is not None and (pick := self._follow(*self._steered)) is not None:
            return pick
        slot = self._index.best(arm, busy)
        return None if slot < 0 else self._fly(slot, self._next_id)

    def take(self, key: int) -> Pick | None:
        if self._steered is not None and (pick := self._follow(*self._steered)) is not None:
            return pick
        slot = self._known.get(key, NEW)
        return None if slot < 0 else self._fly(slot, self._next_id)

    def steer(self, key: int, pick_id: int) -> None:
        """Let the next :meth:`pop` or :meth:`take` give out this link if it waits, whatever is asked for, under this id.

        A crawl that is done again from a journal is led in this way along the choices that it made. It counts for one pick,
        and until :meth:`let_go`.
        """
        self._steered = key, pick_id

    def let_go(self) -> None:
        """Steer no more."""
        self._steered = None

    def sample(
        self, arm: int, k: int, rng: np.random.Generator, busy: Collection[str] = ()
    ) -> list[tuple[Link, Placement]]:
        return self._views(self._index.sample(arm, k, rng, busy))

    def scan(self, arm: int) -> Iterator[tuple[Link, Placement]]:
        for slots in self._index.scan(arm, _CHUNK):
            yield from self._views(slots)

    def move(self, keys: Sequence[int], placements: Sequence[Placement | None]) -> None:
        placements = [place if place is None else plain(place) for place in placements]
        for key, placement in zip(keys, placements, strict=True):
            slot = self._known.get(key, NEW)
            if slot < 0:
                continue
            if placement is not None:
                self._move(key, slot, placement)
            else:
                self._give_up(key, slot)

    def settle(self, pick: Pick) -> None:
        _, number = self._land(pick)
        self._erase(number)
        self._settle(pick.key, State.PROBED if pick.method == "HEAD" else State.FETCHED)

    def release(self, pick: Pick) -> None:
        as_taken, number = self._land(pick)
        self._known.set(as_taken.key, self._wait_again(as_taken, number, self._index.host(as_taken.host)))

    def amend(self, pick: Pick) -> None:
        """Keep a pick in flight as it is now: with the chance at which the policy chose it."""
        if pick.id in self._flying:
            self._flying[pick.id] = pick

    def check(self) -> None:
        self._check_index()
        require(len(self._held) == len(self._flying), "the picks in flight and their records differ")
        flying = {pick.key for pick in self._flying.values()}
        require(len(flying) == len(self._flying), "a link is in flight twice")
        waiting = 0
        for key, slot in self._known.items():
            require(key not in self._fetched, f"key {key} is fetched and something else at once")
            require((slot == FLYING) == (key in flying), f"key {key} is in flight by the states or the picks only")
            waiting += slot >= 0
        require(waiting == len(self._index), f"{waiting} links wait by their states, {len(self._index)} by the index")
        for arm in range(len(self._index.waiting)):
            for slots in self._index.scan(arm, _CHUNK):
                for slot, record in zip(slots, self._read([self._index.record[s] for s in slots]), strict=True):
                    require(self._known.get(record.key, NEW) == slot, f"link {record.url} waits elsewhere than it says")
        for number in self._held.values():
            require(self._known.get(self._read([number])[0].key, NEW) == FLYING, "a record in flight is another's")

    def close(self) -> None:  # noqa: B027 (one in memory holds nothing open)
        """Give back what is held open. Idempotent."""

    def _check_index(self) -> None:
        check_index(cast("Index", self._index))

    def _wait_again(self, pick: Pick, number: int, host: int) -> int:
        """Let what was a pick wait where it waited, and return its slot."""
        return cast("Index", self._index).insert(number, host, pick.arm, pick.rank)

    def _memo(self, slot: int, record: Record) -> NDArray[np.float32] | None:
        """Return the memo of a waiting link."""
        return record.memo

    def _give_up(self, key: int, slot: int) -> None:
        number = self._index.record[slot]
        self._index.remove(slot)
        self._erase(number)
        self._settle(key, State.FETCHED)

    def _follow(self, key: int, pick_id: int) -> Pick | None:
        """Give out the link to which the frontier is steered, if it waits."""
        slot = self._known.get(key, NEW)
        if slot < 0 or pick_id in self._flying:
            return None
        self._steered = None
        return self._fly(slot, pick_id)

    def _fly(self, slot: int, pick_id: int) -> Pick:
        index = self._index
        number, (host, arm, rank) = index.record[slot], index.place(slot)
        record = self._read((number,))[0]
        key, url, depth, origin, payload, _, method = record
        memo = self._memo(slot, record)
        pick = Pick(pick_id, key, url, index.hosts[host], depth, arm, rank, memo, origin, method, payload)
        self._next_id = max(self._next_id, pick_id + 1)
        index.remove(slot)
        self._known.set(key, FLYING)
        self._flying[pick.id] = pick
        self._held[pick.id] = number
        return pick

    def _land(self, pick: Pick) -> tuple[Pick, int]:
        as_taken = self._flying.pop(pick.id, None)
        if as_taken is None:
            raise FrontierError(f"pick {pick.id} ({pick.url}) is not in flight: it was settled or released already")
        return as_taken, self._held.pop(pick.id)

    def _move(self, key: int, slot: int, placement: Placement) -> None:
        index = cast("Index", self._index)
        number, host = index.record[slot], index.pair_host[index.pair[slot]]
        self._replace(number, *placement)
        index.remove(slot)
        self._known.set(key, index.insert(number, host, placement.arm, placement.rank))

    def _settle(self, key: int, state: State) -> None:
        if state == State.PROBED:
            self._known.set(key, PROBED)
        else:
            self._known.pop(key, NEW)
            self._fetched.add(key)
        self._note(key, state)

    def _views(self, slots: Sequence[int]) -> list[tuple[Link, Placement]]:
        index, views = self._index, []
        for slot, record in zip(slots, self._read([index.record[slot] for slot in slots]), strict=True):
            host, arm, rank = index.place(slot)
            link = Link(
                record.url, record.key, index.hosts[host], record.depth, state=State.WAITING, payload=record.payload
            )
            views.append((link, Placement(arm, rank, self._memo(slot, record), record.method)))
        return views


def plain(placement: Placement) -> Placement:
    """Return a placement with an arm and a rank of Python's own types; those of NumPy behave otherwise in columns and files."""
    arm, rank, memo, method = placement
    if type(arm) is int and type(rank) is float and arm >= 0 and not isnan(rank):
        return placement
    try:
        arm, rank = int(arm), float(rank)
    except (TypeError, ValueError, OverflowError) as error:
        raise FrontierError(f"{placement} is no place: {error}") from error
    if arm < 0 or isnan(rank):
        raise FrontierError(f"{placement} is no place: an arm is an integer from 0, a rank a number that is not NaN")
    return Placement(arm, rank, memo, method)
