"""A frontier where the best rank of an arm leaves first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.types import Link, Placement, State
from scrapy_focus.frontiers.ledger import ASLEEP, FLYING, NEW, READ_AT_ONCE, Ledger, Place, plain
from scrapy_focus.frontiers.ranked.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Memo, Pick
    from scrapy_focus.frontiers.ledger import Held
    from scrapy_focus.frontiers.records import Record, Records
    from scrapy_focus.frontiers.sleepers import Sleeper


class RankedFrontier(Ledger):
    """A :class:`~scrapy_focus.core.frontier.Ranked` frontier: a queue in memory, and any kind of records."""

    def __init__(self, records: Records) -> None:
        self._queue = Queue(ages=not records.by_age)
        super().__init__(order=self._queue, records=records)

    @property
    def heads(self) -> NDArray[np.float64]:
        return self._queue.heads

    def push(self, links: Sequence[Link], placements: Sequence[Placement | None], *, origin: int = -1) -> int:
        places = [place if place is None else plain(place) for place in placements]
        queue, records, known, fetched = self._queue, self._records, self._known, self._fetched
        before = len(queue) + self.asleep
        given_up, host_of, store, insert = self._given_up, queue.hosts.number, records.store, queue.insert
        for link, place in zip(links, places, strict=True):
            key = link.key
            if place is None:
                self._refuse(key)
                continue
            slot = known.setdefault(key, queue.next_slot, NEW)
            if slot >= 0 or slot <= ASLEEP:
                self._move(key, slot, place)
            elif slot != FLYING:
                if slot != NEW:
                    known.set(key, queue.next_slot)
                elif not fetched.discard(key) and given_up:
                    given_up.discard(key)
                host, (arm, rank, memo, method, after) = host_of(link.host), place
                packed = None if memo is None else _packed(memo)
                number = store(link, host, origin, arm, rank, packed, method, after)
                if after > self._woke:
                    self._sleep(key, Place(number, records.youngest, host), arm, rank, after)
                else:
                    insert(number, records.youngest, host, arm, rank)
        return len(queue) + self.asleep - before

    def pop(self, arm: int, busy: Collection[str] = ()) -> Pick | None:
        slot = self._queue.best(arm, busy)
        return None if slot < 0 else self._fly(slot, self._next_id)

    def scan(self, arm: int) -> Iterator[tuple[Link, Placement]]:
        queue, names = self._queue, self._queue.hosts.names
        for slots in queue.scan(arm, READ_AT_ONCE):
            records = self._records.read([queue.record[slot] for slot in slots])
            for slot, (key, url, depth, _, payload, packed, method) in zip(slots, records, strict=True):
                host, _, rank = queue.place(slot)
                link = Link(url, key, names[host], depth, state=State.WAITING, payload=payload)
                yield link, Placement(arm, rank, None if packed is None else self._unpacked(packed), method)

    def move(self, keys: Sequence[int], placements: Sequence[Placement | None]) -> None:
        places = [place if place is None else plain(place) for place in placements]
        for key, place in zip(keys, places, strict=True):
            slot = self._known.get(key, NEW)
            if ASLEEP < slot < 0:
                continue
            if place is None:
                self._give_up(key, slot)
            else:
                self._move(key, slot, place)

    def drop(self, arm: int, n: int) -> int:
        return self.drop_each({arm: n})

    def drop_each(self, counts: Mapping[int, int]) -> int:
        if self._are_many(sum(counts.values())):
            return self._gave_up(self._queue.cut(counts))
        return sum(self._give_up_slots(self._queue.worst(arm, n)) for arm, n in counts.items())

    def _move(self, key: int, slot: int, place: Placement) -> None:
        arm, rank, memo, method, after = place
        number, age, host = kept = self._rise(slot)
        self._records.replace(number, arm, rank, None if memo is None else _packed(memo), method, after)
        if after > self._woke:
            self._sleep(key, kept, arm, rank, after)
        else:
            self._known.set(key, self._queue.insert(number, age, host, arm, rank))

    def _let_wait(self, sleepers: Sequence[Sleeper]) -> list[int]:
        insert = self._queue.insert
        return [insert(each.number, each.age, each.host, each.arm, each.rank) for each in sleepers]

    def _wait_again(self, pick: Pick, held: Held, host: int) -> int:
        return self._queue.insert(held.number, held.age, host, pick.arm, pick.rank)

    def _unpacked(self, memo: bytes | None) -> Memo | None:
        return None if memo is None else np.frombuffer(memo, np.float32)

    def _memo(self, slot: int, record: Record) -> Memo | None:
        return self._unpacked(record.memo)


def _packed(memo: Memo) -> bytes:
    return np.asarray(memo, np.float32).tobytes()
