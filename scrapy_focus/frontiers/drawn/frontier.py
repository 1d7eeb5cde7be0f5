"""A frontier that keeps a vector of each queued link in memory, for policies that choose by vectors."""

from __future__ import annotations

from contextlib import suppress
from math import isnan
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scrapy_focus.core.errors import FrontierError
from scrapy_focus.core.frontier import Draw, Kept
from scrapy_focus.frontiers.drawn.pool import Pool
from scrapy_focus.frontiers.ledger import ASLEEP, FLYING, NEW, PROBED, Ledger, Place, is_plain, plain

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Memo, Method, Pick, Placement
    from scrapy_focus.frontiers.ledger import Held
    from scrapy_focus.frontiers.records import Record, Records
    from scrapy_focus.frontiers.sleepers import Sleeper

_DTYPE, _BYTES = attrgetter("dtype"), {np.dtype(np.uint8)}


class DrawnFrontier(Ledger):
    """A :class:`~scrapy_focus.core.frontier.Drawn` frontier: a pool in memory, and any kind of records.

    Raises
    ------
    FrontierError
        If the width of vectors is invalid.
    """

    def __init__(self, records: Records, width: int) -> None:
        if not 0 < width < 1 << 16:
            raise FrontierError(f"a vector cannot have the width {width}; it has from 1 to {(1 << 16) - 1:,} bytes")
        self._pool = Pool(width, ages=not records.by_age)
        super().__init__(order=self._pool, records=records, width=width)

    @property
    def hosts(self) -> Sequence[str]:
        return self._pool.hosts.names

    def push(self, links: Sequence[Link], placements: Sequence[Placement | None], *, origin: int = -1) -> int:
        before = len(self._pool) + self.asleep
        if len(links) != len(placements):
            raise ValueError(f"{len(links)} links have {len(placements)} placements")
        together = _Together.of(self._pool, links, placements)
        if together is None or not self._push_together(together, origin):
            places = [place if place is None or is_plain(place) else plain(place) for place in placements]
            self._push_each(links, _placed(self._pool, places), origin)
        elif len(together.links) < len(links):
            for link, place in zip(links, placements, strict=True):
                if place is None:
                    self._refuse(link.key)
        return len(self._pool) + self.asleep - before

    def _push_together(self, given: _Together, origin: int) -> bool:
        """Push distinct links for now; if one sleeps or was probed, change nothing and return ``False``."""
        pool, links = self._pool, given.links
        keys = [link.key for link in links]
        slots, new = self._known.setdefault_many(keys, pool.next_slots(len(links)), NEW)
        moved: list[int] = []
        if len(new) < len(links):
            if any(slot < FLYING or slot == PROBED for slot in slots):
                for at in new:
                    self._known.pop(keys[at], NEW)
                return False
            moved = [at for at, slot in enumerate(slots) if slot >= 0]
        came = given if len(new) == len(links) else given.some(new)
        for seen in (self._fetched, self._given_up):
            if len(seen):
                seen.discard_many([link.key for link in came.links])
        if new:
            self._insert(came, origin)
        for at in moved:
            self._move(slots[at], _Place(given.arms[at], given.vectors[at], given.methods[at], 0.0))
        return True

    def _insert(self, came: _Together, origin: int) -> None:
        """Store and queue new links."""
        pool = self._pool
        hosts = pool.numbers([link.host for link in came.links])
        numbers = self._records.store_many(came.links, hosts, origin, came.arms, came.vectors, came.methods)
        youngest = self._records.youngest
        ages = range(youngest - len(came.links) + 1, youngest + 1)
        pool.insert(numbers, ages, hosts, came.arms, came.vectors)

    def _push_each(self, links: Sequence[Link], places: Sequence[_Place | None], origin: int) -> None:
        pool, records, known, fetched = self._pool, self._records, self._known, self._fetched
        batch = _Batch(pool, len(links))
        for link, place in zip(links, places, strict=True):
            key = link.key
            if place is None:
                self._refuse(key)
                continue
            slot = known.setdefault(key, batch.slot, NEW)
            if slot <= ASLEEP or (slot >= 0 and place.after > self._woke):
                batch.insert(len(links))
                self._move_sleeper(key, slot, place)
                batch.insert(len(links))
            elif slot >= 0:
                if slot in batch:  # the link is repeated
                    batch.insert(len(links))
                self._move(slot, place)
            elif slot != FLYING:
                if slot != NEW:
                    known.set(key, batch.slot)
                elif not fetched.discard(key):
                    self._given_up.discard(key)
                arm, vector, method, after = place
                if vector is None:
                    vector = bytes(pool.width)
                    arm = pool.follow(arm, vector)
                host = pool.host(link.host)
                number = records.store(link, host, origin, arm, 0.0, vector, method, after)
                if after > self._woke:
                    self._sleep(key, Place(number, records.youngest, host), arm, 0.0, after, vector)
                else:
                    batch.add(number, records.youngest, host, arm, vector)
        batch.insert(0)

    def draw(
        self,
        counts: Mapping[int, int] | NDArray[np.integer] | None,
        rng: np.random.Generator | None,
        *,
        busy: Collection[str] = (),
        closed: NDArray[np.bool_] | None = None,
    ) -> Draw:
        pool = self._pool
        if counts is None:
            slots, arms, hosts = pool.everything(busy, closed)
        elif rng is None:
            slots, arms, hosts = pool.oldest(counts, busy, closed)
        else:
            slots, arms, hosts = pool.draw(counts, rng, busy, closed)
        return Draw(slots, arms, hosts, pool.vectors(slots))

    def take_drawn(self, slot: int) -> Pick | None:
        return self._fly(slot, self._next_id) if self._pool.waits(slot) else None

    def vectors(self, keys: Sequence[int]) -> NDArray[np.uint8]:
        pool = self._pool
        slots = np.array(self._known.get_many(keys, NEW), np.int32)
        found = np.zeros((len(slots), pool.width), np.uint8)
        waits = slots >= 0
        found[waits] = pool.vectors(slots[waits])
        for at in np.flatnonzero(slots <= ASLEEP).tolist():
            found[at] = np.frombuffer(self._sleepers.get(ASLEEP - int(slots[at])).vector, np.uint8)
        return found

    def hosts_of(self, keys: Sequence[int]) -> NDArray[np.int32]:
        slots = np.array(self._known.get_many(keys, NEW), np.int32)
        found = np.full(len(slots), -1, np.int32)
        waits = slots >= 0
        found[waits] = self._pool.hosts_of(slots[waits])
        for at in np.flatnonzero(slots <= ASLEEP).tolist():
            found[at] = self._sleepers.get(ASLEEP - int(slots[at])).host
        return found

    def divide(self, arm: int, column: int, above: int, new_arm: int) -> None:
        self._pool.divide(arm, column, above, new_arm)

    def drop(self, slots: Sequence[int] | NDArray[np.integer]) -> int:
        given = np.asarray(slots, np.int64)
        chosen = self._pool.waiting_among(given)
        if not self._are_many(len(chosen)):
            return self._give_up_slots(chosen.tolist())
        self._pool.remove_many(chosen)
        return self._gave_up(chosen)

    def kept(self, arms: Sequence[int]) -> Kept:
        pool = self._pool
        slots = np.concatenate([np.zeros(0, np.int32), *map(pool.members, arms)])
        numbers, due, vectors = self._sleepers.everybody()
        return Kept(
            numbers=np.concatenate([np.frombuffer(pool.record, np.int32)[slots], numbers]),
            due=np.concatenate([np.zeros(len(slots)), due]),
            vectors=np.concatenate([pool.vectors(slots), vectors]),
        )

    def urls(self, numbers: Sequence[int]) -> list[str]:
        return [record.url for record in self._records.read([int(number) for number in numbers])]

    def _move(self, slot: int, place: _Place) -> None:
        """Move a queued link; without a vector it keeps its own."""
        pool, (arm, vector, method, after) = self._pool, place
        if vector is None:
            vector = pool.vector(slot)
            arm = pool.follow(arm, vector)
        self._records.replace(pool.record[slot], arm, 0.0, vector, method, after)
        pool.replace(slot, arm, vector)

    def _move_sleeper(self, key: int, slot: int, place: _Place) -> None:
        """Move a link that sleeps, or is to sleep."""
        pool, (arm, vector, method, after) = self._pool, place
        if vector is None:
            vector = self._sleepers.get(ASLEEP - slot).vector if slot <= ASLEEP else pool.vector(slot)
            arm = pool.follow(arm, vector)
        number, age, host = kept = self._rise(slot)
        self._records.replace(number, arm, 0.0, vector, method, after)
        if after > self._woke:
            self._sleep(key, kept, arm, 0.0, after, vector)
        else:
            self._known.set(key, pool.next_slots(1)[0])
            pool.insert((number,), (age,), (host,), (arm,), (vector,))

    def _let_wait(self, sleepers: Sequence[Sleeper]) -> list[int]:
        pool = self._pool
        slots = pool.next_slots(len(sleepers))
        arms = [pool.follow(each.arm, each.vector) for each in sleepers]
        _, numbers, ages, hosts, _, _, vectors = zip(*sleepers, strict=True)
        pool.insert(numbers, ages, hosts, arms, vectors)
        return slots

    def _fly(self, slot: int, pick_id: int) -> Pick:
        pick = super()._fly(slot, pick_id)
        if self._pool.divisions and pick.memo is not None:  # its record may have an arm that was split since
            self._records.replace(self._held[pick.id].number, pick.arm, 0.0, pick.memo.tobytes(), pick.method, 0.0)
        return pick

    def _wait_again(self, pick: Pick, held: Held, host: int) -> int:
        vector = bytes(self._pool.width) if pick.memo is None else pick.memo.tobytes()
        slot = self._pool.next_slots(1)[0]
        arm = self._pool.follow(pick.arm, vector)
        self._pool.insert((held.number,), (held.age,), (host,), (arm,), (vector,))
        return slot

    def _unpacked(self, memo: bytes | None) -> Memo | None:
        width = self._pool.width
        vector = np.frombuffer(memo or bytes(width), np.uint8)
        if len(vector) != width:
            raise LookupError("a link has a vector of another width")
        return vector

    def _memo(self, slot: int, record: Record) -> Memo | None:
        return np.frombuffer(self._pool.vector(slot), np.uint8)


class _Place(NamedTuple):
    """Return where a link is to be queued."""

    arm: int  # after all splits, if there is a vector
    vector: bytes | None
    method: Method
    after: float


def _are_plain(arms: Sequence[Any], ranks: Sequence[Any]) -> bool:
    """Whether arms and ranks are valid plain Python numbers."""
    if {*map(type, arms)} != {int} or {*map(type, ranks)} != {float}:
        return False
    return min(arms) >= 0 and not any(map(isnan, ranks))


class _Together(NamedTuple):
    """Distinct links, all with a vector and for now; and their places."""

    links: Sequence[Link]
    arms: list[int]  # after all splits
    vectors: list[bytes]
    methods: list[Method]

    @classmethod
    def of(cls, pool: Pool, links: Sequence[Link], placements: Sequence[Placement | None]) -> _Together | None:
        """Return the links that have a placement; ``None`` if there is none, or if one has no vector, is for later,
        is repeated, or has NumPy numbers.
        """
        given: Sequence[Any] = placements
        if None in placements:
            links = [link for link, place in zip(links, placements, strict=True) if place is not None]
            given = [place for place in placements if place is not None]
        if not given:
            return None
        arms, ranks, memos, methods, afters = zip(*given, strict=True)
        if not _are_plain(arms, ranks) or any(afters) or type(None) in map(type, memos):
            return None
        if len({link.key for link in links}) < len(links):
            return None
        vectors = _bytes_of(memos, pool.width)
        return cls(links, pool.route([*arms], vectors), _pieces(vectors), [*methods])

    def some(self, at: Sequence[int]) -> _Together:
        """Return some of them."""
        links, arms, vectors, methods = self
        return _Together(
            [links[i] for i in at], [arms[i] for i in at], [vectors[i] for i in at], [methods[i] for i in at]
        )


def _placed(pool: Pool, places: Sequence[Placement | None]) -> list[_Place | None]:
    """Return the place of each placement."""
    given = [place for place in places if place is not None and place.memo is not None]
    vectors = _bytes_of([place.memo for place in given], pool.width)
    routed = iter(zip(pool.route([place.arm for place in given], vectors), _pieces(vectors), strict=True))
    found: list[_Place | None] = []
    for place in places:
        if place is None:
            found.append(None)
        elif place.memo is None:
            found.append(_Place(place.arm, None, place.method, place.after))
        else:
            arm, vector = next(routed)
            found.append(_Place(arm, vector, place.method, place.after))
    return found


def _pieces(vectors: NDArray[np.uint8]) -> list[bytes]:
    """Return the rows of a matrix of bytes."""
    raw, width = vectors.tobytes(), vectors.shape[1]
    return [raw[start : start + width] for start in range(0, len(raw), width)]


def _bytes_of(memos: Sequence[Any], width: int) -> NDArray[np.uint8]:
    """Return memos as one matrix of bytes, shape (n, width).

    Raises
    ------
    FrontierError
        If one has another width, or values that are not whole numbers from 0 to 255.
    """
    if not memos:
        return np.empty((0, width), np.uint8)
    if {*map(len, memos)} != {width}:
        other = next(len(memo) for memo in memos if len(memo) != width)
        raise FrontierError(f"a placement has a vector of width {other}; this frontier keeps vectors of width {width}")
    if {*map(_DTYPE, memos)} == _BYTES:
        with suppress(TypeError):  # a ragged list raises one of these
            return np.frombuffer(b"".join(memos), np.uint8).reshape(-1, width)
    given = np.concatenate(memos)
    with np.errstate(invalid="ignore"):
        vectors = given.astype(np.uint8, copy=False)
    if given.dtype != np.uint8 and not np.array_equal(vectors, given):
        wrong = given[vectors != given][0]
        raise FrontierError(f"a placement has a vector with the value {wrong}; each is a whole number from 0 to 255")
    return vectors.reshape(-1, width)


class _Batch:
    """New links of one push that the pool receives together; ``slot`` is the next free one."""

    def __init__(self, pool: Pool, most: int) -> None:
        self._pool = pool
        self._begin(most)

    def _begin(self, most: int) -> None:
        self._slots = self._pool.next_slots(most + 1)
        self.slot = self._slots[0]
        self._links: list[tuple[int, int, int, int, bytes]] = []  # as Pool.insert() takes them

    def __contains__(self, slot: int) -> bool:
        return slot in self._slots[: len(self._links)]

    def add(self, number: int, age: int, host: int, arm: int, vector: bytes) -> None:
        self._links.append((number, age, host, arm, vector))
        self.slot = self._slots[len(self._links)]

    def insert(self, most: int) -> None:
        """Add them to the pool; so many more may come."""
        if self._links:
            self._pool.insert(*zip(*self._links, strict=True))
        self._begin(most)
