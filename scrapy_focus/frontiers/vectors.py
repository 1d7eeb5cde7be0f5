"""A frontier that keeps a vector of each waiting link in memory, for policies that choose by vectors, once it is told to."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from scrapy_focus.core.errors import FrontierError
from scrapy_focus.core.frontier import Drawn
from scrapy_focus.core.types import State
from scrapy_focus.frontiers.drawn.pool import Pool
from scrapy_focus.frontiers.index_check import check_pool
from scrapy_focus.frontiers.indexed import FLYING, NEW, IndexedFrontier, Record, plain

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Method, Pick, Placement


class VectorFrontier(IndexedFrontier):
    """An :class:`~scrapy_focus.frontiers.indexed.IndexedFrontier` whose index may be a pool."""

    _pool: Pool | None = None  # the index, if it is one
    _ages: ClassVar[bool] = True  # whether the numbers of records say nothing about their ages

    @abstractmethod
    def _age(self, number: int) -> int:
        """Return a number that is larger for each record that is younger."""

    @property
    def hosts(self) -> Sequence[str]:
        return self._index.hosts

    @property
    def host_waiting(self) -> NDArray[np.int32]:
        return self._index.host_waiting

    def keep_vectors(self, width: int) -> None:
        if self._pool is not None:
            if self._pool.width != width:
                raise FrontierError(f"the frontier keeps vectors of width {self._pool.width}, it cannot keep {width}")
            return
        if not 0 < width < 1 << 16:
            raise FrontierError(f"a vector cannot have the width {width}")
        if len(self._index) or self._flying:
            raise FrontierError("a frontier in which links wait without vectors cannot begin to keep vectors")
        self._use(Pool(width, ages=self._ages))

    def divide(self, arm: int, column: int, above: int, new_arm: int) -> None:
        self._kept().divide(arm, column, above, new_arm)

    def draw(
        self,
        counts: NDArray[np.integer],
        rng: np.random.Generator,
        *,
        busy: Collection[str] = (),
        closed: NDArray[np.bool_] | None = None,
    ) -> Drawn:
        pool = self._kept()
        slots, arms, hosts = pool.draw(counts, rng, busy, closed)
        return Drawn(slots, arms, hosts, pool.vectors(slots))

    def everything(self, *, busy: Collection[str] = (), closed: NDArray[np.bool_] | None = None) -> Drawn:
        pool = self._kept()
        slots, arms, hosts = pool.everything(busy, closed)
        return Drawn(slots, arms, hosts, pool.vectors(slots))

    def take_slot(self, slot: int) -> Pick | None:
        if self._steered is not None and (pick := self._follow(*self._steered)) is not None:
            return pick
        return self._fly(slot, self._next_id) if self._index.waits(slot) else None

    def give_up(self, slots: Sequence[int] | NDArray[np.integer]) -> int:
        slots = sorted({int(slot) for slot in slots if self._index.waits(slot)})
        records = self._read([self._index.record[slot] for slot in slots])
        for slot, record in zip(slots, records, strict=True):
            self._give_up(record.key, slot)
        return len(slots)

    def vectors(self, keys: Sequence[int]) -> NDArray[np.uint8]:
        pool = self._kept()
        slots = np.array([self._known.get(key, NEW) for key in keys], np.int32)
        found = np.zeros((len(slots), pool.width), np.uint8)
        waits = slots >= 0
        found[waits] = pool.vectors(slots[waits])
        return found

    def push(self, links: Sequence[Link], placements: Sequence[Placement | None], *, origin: int = -1) -> int:
        pool = self._pool
        if pool is None:
            return super().push(links, placements, origin=origin)
        known, fetched, before = self._known, self._fetched, len(pool)
        batch = _Batch(pool, len(links))
        for link, place in zip(links, _placed(pool, placements), strict=True):
            key = link.key
            if place is None:
                if known.get(key, NEW) == NEW and fetched.add(key):
                    self._note(key, State.FETCHED)
                continue
            arm, vector, method = place
            slot = known.setdefault(key, batch.slot, NEW)
            if slot >= 0:
                if slot in batch:  # the link comes twice
                    batch.insert(len(links))
                self._put(pool, slot, arm, vector, method)
            elif slot != FLYING:
                if slot == NEW:
                    fetched.discard(key)
                else:
                    known.set(key, batch.slot)
                if vector is None:
                    vector = bytes(pool.width)
                    arm = pool.follow(arm, vector)
                host = pool.host(link.host)
                number = self._store(link, host, origin, arm, 0.0, vector, method)
                batch.add(number, self._age(number), host, arm, vector)
        batch.insert(0)
        return len(pool) - before

    def move(self, keys: Sequence[int], placements: Sequence[Placement | None]) -> None:
        pool = self._pool
        if pool is None:
            super().move(keys, placements)
            return
        for key, place in zip(keys, _placed(pool, placements), strict=True):
            slot = self._known.get(key, NEW)
            if slot < 0:
                continue
            if place is None:
                self._give_up(key, slot)
            else:
                self._put(pool, slot, *place)

    def _kept(self) -> Pool:
        if self._pool is None:
            raise FrontierError("the frontier keeps no vectors; call keep_vectors(width) before the first push")
        return self._pool

    def _use(self, pool: Pool) -> None:
        for name in self._index.hosts:
            pool.host(name)
        self._index = self._pool = pool

    def _put(self, pool: Pool, slot: int, arm: int, vector: bytes | None, method: Method) -> None:
        """Give a waiting link another place; without a vector it keeps its own."""
        if vector is None:
            vector = pool.vector(slot)
            arm = pool.follow(arm, vector)
        self._replace(pool.record[slot], arm, 0.0, vector, method)
        pool.replace(slot, arm, vector)

    def _fly(self, slot: int, pick_id: int) -> Pick:
        pick = super()._fly(slot, pick_id)
        if self._pool is not None and self._pool.divisions and pick.memo is not None:
            # its record may have an arm that was divided since
            self._replace(self._held[pick.id], pick.arm, 0.0, pick.memo.astype(np.uint8).tobytes(), pick.method)
        return pick

    def _wait_again(self, pick: Pick, number: int, host: int) -> int:
        if self._pool is None or pick.memo is None:
            return super()._wait_again(pick, number, host)
        vector = pick.memo.astype(np.uint8).tobytes()
        slot = self._pool.next_slots(1)[0]
        self._pool.insert((number,), (self._age(number),), (host,), (self._pool.follow(pick.arm, vector),), (vector,))
        return slot

    def _memo(self, slot: int, record: Record) -> NDArray[np.float32] | None:
        if self._pool is None:
            return record.memo
        return np.frombuffer(self._pool.vector(slot), np.uint8).astype(np.float32)

    def _check_index(self) -> None:
        if self._pool is None:
            super()._check_index()
        else:
            check_pool(self._pool)


def _placed(pool: Pool, placements: Sequence[Placement | None]) -> list[tuple[int, bytes | None, Method] | None]:
    """Return the arm, the vector and the method of each placement, the arm as it is after all divisions."""
    places = [place if place is None else plain(place) for place in placements]
    given = [place for place in places if place is not None and place.memo is not None]
    vectors = _bytes_of([place.memo for place in given], pool.width)
    arms = iter(pool.route([place.arm for place in given], vectors))
    raw, width = vectors.tobytes(), pool.width
    ends = iter(range(width, len(raw) + 1, width))
    return [
        place
        if place is None
        else (place.arm, None, place.method)
        if place.memo is None
        else (next(arms), raw[(end := next(ends)) - width : end], place.method)
        for place in places
    ]


def _bytes_of(memos: Sequence[Any], width: int) -> NDArray[np.uint8]:
    """Return memos as one matrix of bytes, shape (n, width).

    Raises
    ------
    FrontierError
        If one has another width, or values that are not whole numbers from 0 to 255.
    """
    if not memos:
        return np.empty((0, width), np.uint8)
    if any(len(memo) != width for memo in memos):
        other = next(len(memo) for memo in memos if len(memo) != width)
        raise FrontierError(f"a placement has a vector of width {other}; this frontier keeps vectors of width {width}")
    given = np.concatenate(memos)
    with np.errstate(invalid="ignore"):
        vectors = given.astype(np.uint8)
    if given.dtype != np.uint8 and not np.array_equal(vectors, given):
        wrong = given[vectors != given][0]
        raise FrontierError(f"a placement has a vector with the value {wrong}; each is a whole number from 0 to 255")
    return vectors.reshape(-1, width)


class _Batch:
    """New links of one push that the pool gets together; ``slot`` is that of the next."""

    def __init__(self, pool: Pool, most: int) -> None:
        self._pool = pool
        self._begin(most)

    def _begin(self, most: int) -> None:
        self._slots = self._pool.next_slots(most + 1)
        self.slot = self._slots[0]
        self._links: list[tuple[int, int, int, int, bytes]] = []

    def __contains__(self, slot: int) -> bool:
        return slot in self._slots[: len(self._links)]

    def add(self, number: int, age: int, host: int, arm: int, vector: bytes) -> None:
        self._links.append((number, age, host, arm, vector))
        self.slot = self._slots[len(self._links)]

    def insert(self, most: int) -> None:
        """Let the pool have them; so many more may come."""
        if self._links:
            self._pool.insert(*zip(*self._links, strict=True))
        self._begin(most)
