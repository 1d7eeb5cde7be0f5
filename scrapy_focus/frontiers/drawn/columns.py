"""Queued links with their vectors, in arms that can be split: 16 bytes a link, and its vector.

A tree over links grows while millions are queued in its leaves. So a split is declared and nothing is moved on disk:
the vector of a link determines its arm, whichever arm was stored for it.
"""

from __future__ import annotations

from array import array
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.errors import FrontierError
from scrapy_focus.frontiers.drawn.chunks import Members, restored_members, save_members
from scrapy_focus.frontiers.hosts import Hosts
from scrapy_focus.frontiers.require import require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.frontiers.drawn.closing import ClosingPairs
    from scrapy_focus.frontiers.drawn.scarce import Scarce
    from scrapy_focus.frontiers.saved import Saved

_DENSE = 1000  # slots for which single lookups are as fast as a search in the whole column


class Columns:
    """Slots of queued links, each with a record number from the caller, and an age.

    A slot has an arm (-1: not in use), a host, a record, and a vector of ``width`` bytes. The arm in its column may
    be an old one: :meth:`arm` leads from it along later splits to the current one, by the vector. ``_most`` has for
    each arm the largest value of each column with which a link stays in it.

    The data of :class:`~scrapy_focus.frontiers.drawn.pool.Pool` are maintained here. ``_flat`` is made at a draw, and
    lasts until arms have other chunks: all of them (``None`` while splits are delayed), their lengths, and the number
    of the first one of each arm. ``_scarce`` is by arm. ``_pairs`` counts the links of each arm and host, from the
    first request until an arm is split.
    """

    def __init__(self, width: int, *, ages: bool) -> None:
        """``ages``: whether ages differ from record numbers."""
        self.width = width
        self.record = array("i")
        self.age = array("i") if ages else self.record
        self.hosts = Hosts()
        self.divisions: dict[int, list[tuple[int, int, int]]] = {}  # by arm: column, above, new arm
        self._arm = array("i")
        self._host = array("i")
        self._vectors = bytearray()
        self._free = array("i")
        self._arms: list[Members] = []
        self._waiting = array("q", bytes(8 * 16))
        self._host_waiting = array("i")
        self._most = bytearray()
        self._pairs: ClosingPairs | None = None
        self._scarce: dict[int, Scarce] = {}
        self._closed: NDArray[np.bool_] | None = None  # at the last draw, while _scarce is not empty
        self._put_off: list[int] = []  # arms that may have delayed splits
        self._flat: tuple[list[array[int]] | None, array[int], list[int]] | None = None
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def waiting(self) -> NDArray[np.int64]:
        """How many links are queued in each arm, shape (n_arms,)."""
        return np.frombuffer(self._waiting, np.int64)[: len(self._arms)]

    @property
    def host_waiting(self) -> NDArray[np.int32]:
        """How many links are queued for each host, shape (n_hosts,); invalid once a host is added."""
        return np.frombuffer(self._host_waiting, np.int32)

    def host(self, name: str) -> int:
        """Return the number of a host, a new one if it has none."""
        host = self.hosts.number(name)
        if host == len(self._host_waiting):
            self._host_waiting.append(0)
        return host

    def numbers(self, names: Sequence[str]) -> list[int]:
        """Return the numbers of some hosts, new ones for those that have none."""
        hosts = self.hosts.all_of(names)
        self._host_waiting.extend([0] * (len(self.hosts) - len(self._host_waiting)))
        return hosts

    def next_slots(self, n: int) -> list[int]:
        """Return the slots that the next ``n`` links will get (:meth:`insert`)."""
        free = self._free[-1 : -n - 1 : -1].tolist() if self._free else []
        return free + list(range(len(self.record), len(self.record) + n - len(free)))

    def insert(
        self,
        records: Sequence[int],
        ages: Sequence[int],
        hosts: Sequence[int],
        arms: Sequence[int],
        vectors: Sequence[bytes],
    ) -> None:
        """Queue records in arms that their vectors belong to (:meth:`route`), in the :meth:`next_slots`."""
        slots, free = self.next_slots(len(records)), min(len(records), len(self._free))
        own_ages, width = self.age is not self.record, self.width
        for at in range(free):
            slot = self._free.pop()
            self.record[slot], self._arm[slot], self._host[slot] = records[at], arms[at], hosts[at]
            self._vectors[slot * width : (slot + 1) * width] = vectors[at]
            if own_ages:
                self.age[slot] = ages[at]
        if free < len(records):
            self.record.extend(records[free:])
            self._arm.extend(arms[free:])
            self._host.extend(hosts[free:])
            self._vectors += b"".join(vectors[free:])
            if own_ages:
                self.age.extend(ages[free:])
        self._n += len(records)
        host_waiting = self._host_waiting
        for host in hosts:
            host_waiting[host] += 1
        if len(slots) == 1:
            self._enter(slots[0], ages[0], arms[0], hosts[0])
            return
        by_arm: dict[int, tuple[list[int], list[int], list[int]]] = {}
        for slot, age, arm, host in zip(slots, ages, arms, hosts, strict=True):
            if (some := by_arm.get(arm)) is None:
                by_arm[arm] = [slot], [age], [host]
            else:
                some[0].append(slot)
                some[1].append(age)
                some[2].append(host)
        for arm, (its_slots, its_ages, its_hosts) in by_arm.items():
            self._enter_many(its_slots, its_ages, arm, its_hosts)

    def remove(self, slot: int) -> None:
        """Remove the link of a slot; the slot is reused."""
        host = self._host[slot]
        self._leave(slot, self.arm(slot), host)
        self._host_waiting[host] -= 1
        self._arm[slot] = -1
        self._free.append(slot)
        self._n -= 1

    def remove_many(self, slots: NDArray[np.int32]) -> None:
        """Remove the links of different slots; linear in the links of their arms."""
        if not len(slots):
            return
        hosts = np.frombuffer(self._host, np.int32)[slots]
        arms = np.frombuffer(self._arm, np.int32)[slots]
        if self.divisions:
            arms = np.array(self.route(arms.tolist(), self.vectors(slots)), np.int32)
        gone = np.zeros(len(self.record), np.bool_)
        gone[slots] = True
        for arm, n in zip(*np.unique(arms, return_counts=True), strict=True):
            self._arms[arm].take_out(gone)
            self._waiting[arm] -= n
            self._scarce.pop(int(arm), None)
        self.host_waiting[:] -= np.bincount(hosts, minlength=len(self._host_waiting)).astype(np.int32)
        if self._pairs is not None:
            codes, counts = np.unique(hosts.astype(np.int64) << 32 | arms, return_counts=True)
            for code, n in zip(codes.tolist(), counts.tolist(), strict=True):
                self._pairs.add(code >> 32, code & 0xFFFFFFFF, -n)
        np.frombuffer(self._arm, np.int32)[slots] = -1
        self._free.frombytes(slots.tobytes())
        self._n -= len(slots)
        self._flat = None

    def replace(self, slot: int, arm: int, vector: bytes) -> None:
        """Give a queued link another vector, and its arm."""
        old = self.arm(slot)
        self._vectors[slot * self.width : (slot + 1) * self.width] = vector
        self._arm[slot] = arm
        if old != arm:
            host = self._host[slot]
            self._leave(slot, old, host)
            self._enter(slot, self.age[slot], arm, host)

    def waits(self, slot: int) -> bool:
        """Whether a slot has a queued link."""
        return 0 <= slot < len(self._arm) and self._arm[slot] >= 0

    def waiting_among(self, slots: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the numbers that are slots with a queued link, ascending, without repetition."""
        if len(slots) * _DENSE < len(self._arm):
            return np.array(sorted({slot for slot in slots.tolist() if self.waits(slot)}), np.int32)
        chosen = np.zeros(len(self._arm), np.bool_)
        chosen[slots[(slots >= 0) & (slots < len(chosen))]] = True
        chosen &= np.frombuffer(self._arm, np.int32) >= 0
        return np.flatnonzero(chosen).astype(np.int32)

    def place(self, slot: int) -> tuple[int, int, float]:
        """Return the host, the arm and the rank of a queued link."""
        return self._host[slot], self.arm(slot), 0.0

    def arm(self, slot: int) -> int:
        """Return the arm where a link is queued."""
        arm = self._arm[slot]
        if arm in self.divisions:
            arm = self._arm[slot] = self.follow(arm, self.vector(slot))
        return arm

    def members(self, arm: int) -> NDArray[np.int32]:
        """Return the slots of the links queued in an arm, the oldest first."""
        return self._arms[arm].slots() if 0 <= arm < len(self._arms) else np.zeros(0, np.int32)

    def vector(self, slot: int) -> bytes:
        """Return the vector of a queued link."""
        return bytes(self._vectors[slot * self.width : (slot + 1) * self.width])

    def vectors(self, slots: Sequence[int] | NDArray[np.int32]) -> NDArray[np.uint8]:
        """Return the vectors of some slots, shape (n, width)."""
        return self._matrix().take(slots, axis=0)

    def hosts_of(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the numbers of the hosts of some slots, shape (n,)."""
        return np.frombuffer(self._host, np.int32)[slots]

    def follow(self, arm: int, vector: bytes) -> int:
        """Return the arm of a link with this vector whose stored arm is given."""
        while arm in self.divisions:
            for column, above, new_arm in self.divisions[arm]:
                if vector[column] > above:
                    arm = new_arm
                    break
            else:
                return arm
        return arm

    def route(self, arms: list[int], vectors: NDArray[np.uint8]) -> list[int]:
        """Return the arms of links with these vectors, shape (n, width), whose stored arms are given."""
        if not self.divisions or not arms:
            return arms
        most = np.frombuffer(self._most, np.uint8).reshape(-1, self.width)
        away = vectors > most.take(arms, axis=0, mode="clip")
        if away.any():
            for at in np.flatnonzero(away.any(axis=1)).tolist():
                arms[at] = self.follow(arms[at], vectors[at].tobytes())
        return arms

    def divide(self, arm: int, column: int, above: int, new_arm: int) -> None:
        """Move the links of an arm with more than ``above`` in a column to another one, now and in future.

        Linear in the links of the arm, some five nanoseconds each.
        """
        self._check_division(arm, column, above, new_arm)
        if (column, above, new_arm) in self.divisions.get(arm, ()):
            return
        if new_arm in self.divisions:
            raise FrontierError(
                f"arm {arm} cannot be divided into itself and {new_arm}, as arm {new_arm} was divided before; give "
                "the number of a new arm"
            )
        self.grow(max(arm, new_arm) + 1)
        self.divisions.setdefault(arm, []).append((column, above, new_arm))
        at = arm * self.width + column
        self._most[at] = min(self._most[at], above)
        matrix = self._matrix()
        no, yes = self._arms[arm].divide(lambda slots: matrix[slots, column] > above)
        self._arms[arm] = no
        gone = len(yes)
        if gone and self._waiting[new_arm]:
            self._arms[new_arm].merge(yes.slots(), np.frombuffer(self.age, np.int32))
        elif gone:
            self._arms[new_arm] = yes
        self._waiting[arm] -= gone
        self._waiting[new_arm] += gone
        self._put_off = [each for each in self._put_off if each not in (arm, new_arm)] + [new_arm, arm]
        self._flat = self._pairs = None
        self._scarce.pop(arm, None)
        self._scarce.pop(new_arm, None)

    def _check_division(self, arm: int, column: int, above: int, new_arm: int) -> None:
        if not (0 <= arm < new_arm and 0 <= column < self.width and 0 <= above < 256):
            raise FrontierError(
                f"arm {arm} cannot be divided into itself and {new_arm} where column {column} is above {above}: a "
                f"new arm has a larger number, and there are {self.width} columns of values from 0 to 255"
            )

    def grow(self, n_arms: int) -> None:
        """Create arms up to this number."""
        more = n_arms - len(self._arms)
        if more <= 0:
            return
        self._arms.extend(Members() for _ in range(more))
        self._most.extend(b"\xff" * (more * self.width))
        self._flat = None
        if n_arms > len(self._waiting):
            self._waiting = self._waiting + array(
                "q", bytes(8 * (max(n_arms, 2 * len(self._waiting)) - len(self._waiting)))
            )

    def load(
        self, records: NDArray[np.int32], hosts: NDArray[np.int32], arms: NDArray[np.int32], vectors: NDArray[np.uint8]
    ) -> NDArray[np.int32]:
        """Add links, oldest first, with their records as ages, and return their slots; before any split."""
        first = len(self.record)
        slots = np.arange(first, first + len(records), dtype=np.int32)
        self.record.frombytes(records.tobytes())
        self._host.frombytes(hosts.tobytes())
        self._arm.frombytes(arms.tobytes())
        self._vectors += vectors.tobytes()
        self.grow(int(arms.max()) + 1)
        ages = np.frombuffer(self.age, np.int32)
        order = np.argsort(arms, kind="stable")
        found, starts = np.unique(arms[order], return_index=True)
        for arm, part in zip(found.tolist(), np.split(slots[order], starts[1:]), strict=True):
            self._arms[arm].merge(part, ages)
            self._waiting[arm] += len(part)
        counts = self.host_waiting
        counts += np.bincount(hosts, minlength=len(counts)).astype(np.int32)
        self._n += len(records)
        self._flat = self._pairs = None
        return slots

    def save(self, saved: Saved) -> None:
        """Add all columns except those of the hosts, with all splits; ages are records."""
        saved.put("record", "i", self.record)
        saved.put("arm", "i", self._arm)
        saved.put("host", "i", self._host)
        saved.put("vectors", "B", self._vectors)
        saved.put("free", "i", self._free)
        saved.put("waiting", "q", self._waiting)
        saved.put("host_waiting", "i", self._host_waiting)
        saved.put("most", "B", self._most)
        splits = ((arm, *split) for arm, some in self.divisions.items() for split in some)
        saved.put_ints("divisions", chain.from_iterable(splits))
        save_members(self._arms, saved.under("arms"))

    def restore(self, saved: Saved) -> None:
        """Restore the saved columns, with the hosts that are here; ages are records."""
        self.record = self.age = saved.take("record", "i")
        self._arm, self._host, self._free = (saved.take(name, "i") for name in ("arm", "host", "free"))
        self._vectors, self._most = saved.take("vectors", "B"), saved.take("most", "B")
        self._waiting, self._host_waiting = saved.take("waiting", "q"), saved.take("host_waiting", "i")
        numbers = iter(saved.take("divisions", "i"))
        for arm, column, above, new_arm in zip(numbers, numbers, numbers, numbers, strict=True):
            self.divisions.setdefault(arm, []).append((column, above, new_arm))
        self._arms = restored_members(saved.under("arms"))
        self._n = int(self.waiting.sum())

    def check(self) -> None:
        """Raise FrontierError if an invariant is broken; linear."""
        n = len(self.record)
        require(len(self._arm) == len(self._host) == len(self.age) == n, "the columns have other lengths")
        require(len(self._vectors) == n * self.width, "the vectors are not one for each slot")
        waiting = [slot for slot in range(n) if self.waits(slot)]
        require(len(waiting) == len(self), f"{len(self)} links are counted, {len(waiting)} are queued")
        require(sorted(self._free) == sorted({*range(n)} - {*waiting}), "the free slots are not those that are")
        counts = np.bincount([self._host[slot] for slot in waiting], minlength=len(self.hosts))
        require(np.array_equal(counts, self.host_waiting), "the counts of the hosts are not those of their links")
        found = [slot for arm, members in enumerate(self._arms) for slot in self._check_arm(arm, members)]
        require(sorted(found) == waiting, "a link is in no arm, or in two")
        if self._flat is not None:
            lengths = [len(chunk) for members in self._arms for chunk in members.chunks]
            require(list(self._flat[1]) == lengths, "the chunks have other lengths than they say")
        if self._pairs is not None:
            self._check_pairs(self._pairs, waiting)

    def _check_arm(self, arm: int, members: Members) -> list[int]:
        slots: list[int] = members.slots().tolist()
        require(len(slots) == self.waiting[arm], f"arm {arm} counts {self.waiting[arm]} links, not {len(slots)}")
        require(all(self.arm(slot) == arm for slot in slots), f"a member of arm {arm} is in another")
        members.check(self.age, f"arm {arm}")
        scarce = self._scarce.get(arm)
        if scarce is not None:
            require(self._closed is not None, "nobody knows which hosts were closed")
            closed = set() if self._closed is None else set(np.flatnonzero(self._closed).tolist())
            scarce.check(slots, [slot for slot in slots if self._host[slot] not in closed], self._host, self.age)
        return slots

    def _check_pairs(self, pairs: ClosingPairs, waiting: list[int]) -> None:
        pairs.check(len(self._arms))
        counts: dict[tuple[int, int], int] = {}
        for slot in waiting:
            pair = self.arm(slot), self._host[slot]
            counts[pair] = counts.get(pair, 0) + 1
        counted = {(arm, host): n for arm, host, n in zip(pairs.arm, pairs.host, pairs.count, strict=True) if n}
        require(counted == counts, "the counts of arms and hosts are not those of their links")
        pairs.check_hidden()

    def _matrix(self) -> NDArray[np.uint8]:
        return np.frombuffer(self._vectors, np.uint8).reshape(-1, self.width)

    def _enter(self, slot: int, age: int, arm: int, host: int) -> None:
        if arm >= len(self._arms):
            self.grow(arm + 1)
        at = self._arms[arm].insert(slot, age, self.age)
        self._waiting[arm] += 1
        if at < 0:
            self._flat = None
        elif self._flat is not None:
            self._flat[1][self._flat[2][arm] + at] += 1
        if self._scarce and (scarce := self._scarce.get(arm)) is not None:
            scarce.insert(slot, age, self.age, host)
        if self._pairs is not None:
            self._pairs.add(host, arm, 1)

    def _enter_many(self, slots: list[int], ages: list[int], arm: int, hosts: list[int]) -> None:
        """Queue links in an arm, oldest first."""
        if arm >= len(self._arms):
            self.grow(arm + 1)
        members = self._arms[arm]
        if ages[0] <= members.last or ages != sorted(ages):
            for slot, age, host in zip(slots, ages, hosts, strict=True):
                self._enter(slot, age, arm, host)
            return
        at = members.append(slots, ages)
        self._waiting[arm] += len(slots)
        if at < 0:
            self._flat = None
        elif self._flat is not None:
            self._flat[1][self._flat[2][arm] + at] += len(slots)
        if self._scarce and (scarce := self._scarce.get(arm)) is not None:
            for slot, age, host in zip(slots, ages, hosts, strict=True):
                scarce.insert(slot, age, self.age, host)
        if self._pairs is not None:
            for host in hosts:
                self._pairs.add(host, arm, 1)

    def _leave(self, slot: int, arm: int, host: int) -> None:
        at = self._arms[arm].discard(slot, self.age[slot], self.age)
        if at is None:
            raise FrontierError(f"the frontier is inconsistent: slot {slot} is not in arm {arm}")
        self._waiting[arm] -= 1
        if at < 0:
            self._flat = None
        elif self._flat is not None:
            self._flat[1][self._flat[2][arm] + at] -= 1
        if self._scarce and (scarce := self._scarce.get(arm)) is not None:
            scarce.discard(slot, self.age[slot], self.age)
        if self._pairs is not None:
            self._pairs.add(host, arm, -1)
