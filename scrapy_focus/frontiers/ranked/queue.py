"""Which link leaves next: the waiting links by arm, host and rank, in 40 to 50 bytes a link.

Three wishes conflict: taking the best link of an arm, passing over busy hosts without digging through their links, and tens
of millions of links in memory. So each pair of an arm and a host has a queue, each arm a queue of the heads of its queues,
and both hold numbers of slots instead of objects. URLs and all else that a link has stand elsewhere, by record.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.frontiers.keys import KeyMap
from scrapy_focus.frontiers.ranked.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numpy.typing import NDArray

TINY = 16  # links of a pair that are chained; more have a queue
NEAR = 1 << 16  # pairs that are found at once
QUEUED, NOTED = 1, 2
_RARE = 64  # a sample is not drawn by trial where fewer than one in so many links may be drawn


class _Arm:
    """The links of one arm: ``members`` are their slots in no order, ``tops`` the heads of its pairs."""

    __slots__ = ("members", "pairs", "tops")

    def __init__(self) -> None:
        self.members = array("i")
        self.tops = Runs()
        self.pairs = 0  # that have a head


class Index:
    """Slots of waiting links, each with a record number that the caller gave it.

    A slot has a rank, a pair (-1: no link waits in it), a record, its place among the members of the arm, and the next
    slot of its pair, which counts while the pair has no queue: the slots of the pair are chained then, best first. Its
    flags say whether it has an entry in the queue of a pair (1), and in the tops of an arm (2); only a slot with neither is
    used again, since ranks in queues may not change. A pair has an arm, a host, a count, a head, and the next pair of its
    host; it lasts for ever. Its head is its best slot, is noted in the tops, and of the same rank as the best entry of its
    queue.
    """

    def __init__(self) -> None:
        self.rank = array("d")
        self.pair = array("i")
        self.record = array("i")
        self._place = array("i")
        self._next = array("i")
        self._flags = bytearray()
        self._free = array("i")
        self.pair_arm = array("i")
        self.pair_host = array("i")
        self._pair_count = array("i")
        self._pair_head = array("i")
        self._pair_next = array("i")
        self._queues: list[Runs | None] = []
        self._pairs = KeyMap()
        self._near: dict[int, int] = {}
        self._asked: dict[int, NDArray[np.int32]] = {}
        self.hosts: list[str] = []
        self.host_ids: dict[str, int] = {}
        self._host_first = array("i")
        self._arms: list[_Arm] = []
        self._waiting = array("q", bytes(8 * 16))
        self._heads = array("d", [-np.inf] * 16)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def waiting(self) -> NDArray[np.int64]:
        """How many links wait in each arm, shape (n_arms,)."""
        return np.frombuffer(self._waiting, np.int64)[: len(self._arms)]

    @property
    def heads(self) -> NDArray[np.float64]:
        """The best rank in each arm, shape (n_arms,)."""
        return np.frombuffer(self._heads)[: len(self._arms)]

    def awake(self, busy: Collection[str]) -> NDArray[np.int64]:
        """Return how many links of each arm wait on hosts that are not busy, shape (n_arms,)."""
        counts = self.waiting.copy()
        for name in busy:
            if name in self.host_ids:
                pairs = self._pairs_of(self.host_ids[name])
                counts[np.frombuffer(self.pair_arm, np.int32)[pairs]] -= np.frombuffer(self._pair_count, np.int32)[
                    pairs
                ]
        return counts

    def host(self, name: str) -> int:
        """Return the number of a host, a new one if it has none."""
        host = self.host_ids.get(name)
        if host is None:
            host = self.host_ids[name] = len(self.hosts)
            self.hosts.append(name)
            self._host_first.append(-1)
        return host

    @property
    def host_waiting(self) -> NDArray[np.int32]:
        """How many links wait on each host, shape (n_hosts,); linear in the pairs."""
        counts = np.frombuffer(self._pair_count, np.int32)
        pairs = np.frombuffer(self.pair_host, np.int32)
        return np.bincount(pairs, counts, minlength=len(self.hosts)).astype(np.int32)

    def place(self, slot: int) -> tuple[int, int, float]:
        """Return the host, the arm and the rank of a waiting link."""
        pair = self.pair[slot]
        return self.pair_host[pair], self.pair_arm[pair], self.rank[slot]

    def waits(self, slot: int) -> bool:
        """Whether a link waits in a slot."""
        return 0 <= slot < len(self.pair) and self.pair[slot] >= 0

    @property
    def next_slot(self) -> int:
        """The slot that the next :meth:`insert` will return."""
        return self._free[-1] if self._free else len(self.rank)

    def insert(self, record: int, host: int, arm: int, rank: float) -> int:
        """Let a record wait, and return its slot; O(log HOT)."""
        pair = self._near.get(host << 32 | arm, -1)
        if pair < 0:
            pair = self._pair_of(host, arm)
        members = self._arms[arm].members
        if self._free:
            slot = self._free.pop()
            self.rank[slot], self.pair[slot], self.record[slot] = rank, pair, record
            self._place[slot] = len(members)
        else:
            slot = len(self.rank)
            self.rank.append(rank)
            self.pair.append(pair)
            self.record.append(record)
            self._place.append(len(members))
            self._next.append(-1)
            self._flags.append(0)
        members.append(slot)
        head = self._pair_head[pair]
        queue = self._queues[pair]
        if queue is None and self._pair_count[pair] == TINY:
            chained = list(self._chain(head))
            for each in chained:
                self._flags[each] |= QUEUED
            queue = self._queues[pair] = Runs(reversed(chained))
        if queue is not None:
            self._flags[slot] |= QUEUED
            queue.insert(slot, self.rank, self._sift)
            if rank > self.rank[head]:
                self._lead(pair, slot)
        else:
            before, after = -1, head
            while after >= 0 and self.rank[after] >= rank:
                before, after = after, self._next[after]
            self._next[slot] = after
            if before >= 0:
                self._next[before] = slot
            else:
                self._lead(pair, slot)
        self._pair_count[pair] += 1
        self._waiting[arm] += 1
        self._n += 1
        if rank > self._heads[arm]:  # noqa: PLR1730 (max() takes three times as long)
            self._heads[arm] = rank
        return slot

    def remove(self, slot: int) -> None:
        """Let the link of a slot wait no longer; its record number is not used again here."""
        pair = self.pair[slot]
        arm = self.pair_arm[pair]
        self.pair[slot] = -1
        if not self._flags[slot]:
            self._free.append(slot)
        members = self._arms[arm].members
        last = members.pop()
        if last != slot:
            place = self._place[slot]
            members[place] = last
            self._place[last] = place
        self._pair_count[pair] -= 1
        self._waiting[arm] -= 1
        self._n -= 1
        queue, head = self._queues[pair], self._pair_head[pair]
        if queue is None and head == slot:
            self._lead(pair, self._next[slot])
        elif queue is None:
            before = head
            while self._next[before] != slot:
                before = self._next[before]
            self._next[before] = self._next[slot]
        else:
            queue.stale += 1
            if head == slot:
                self._lead(pair, self._clean(queue))
            if not self._pair_count[pair]:
                self._queues[pair] = None
            elif queue.stale > self._pair_count[pair] + TINY:
                queue.purge(self.rank, self._sift)
        if self.rank[slot] == self._heads[arm]:
            best = self.best(arm)
            self._heads[arm] = self.rank[best] if best >= 0 else -np.inf

    def best(self, arm: int, busy: Collection[str] = ()) -> int:
        """Return the slot of the best link of an arm on a host that is not busy, -1 where there is none."""
        if not 0 <= arm < len(self._arms) or not self._waiting[arm]:
            return -1
        tops, rank = self._arms[arm].tops, self.rank
        passed = []
        while (slot := tops.best(rank)) >= 0:
            pair = self.pair[slot]
            if pair < 0 or self._pair_head[pair] != slot:
                tops.drop(rank)
                tops.stale -= 1
                self._unflag(slot, NOTED)
            elif busy and self.hosts[self.pair_host[pair]] in busy:
                tops.drop(rank)
                passed.append(slot)
            else:
                break
        for each in reversed(passed):
            tops.insert(each, rank, self._sift_tops)
        return slot

    def sample(self, arm: int, k: int, rng: np.random.Generator, busy: Collection[str] = ()) -> list[int]:
        """Return up to k different slots of an arm on hosts that are not busy, drawn uniformly."""
        if not 0 <= arm < len(self._arms):
            return []
        members = self._arms[arm].members
        shut = {self.host_ids[name] for name in busy if name in self.host_ids}
        available = len(members) - sum(self._count(host, arm) for host in shut)
        if available <= 2 * k or available * _RARE < len(members):
            slots = self._open(arm, shut) if shut else members
            return [slots[at] for at in rng.permutation(len(slots))[:k].tolist()]
        chosen: dict[int, None] = {}
        while len(chosen) < k:
            for at in rng.integers(0, len(members), size=2 * k).tolist():
                slot = members[at]
                if not shut or self.pair_host[self.pair[slot]] not in shut:
                    chosen[slot] = None
                if len(chosen) == k:
                    break
        return list(chosen)

    def scan(self, arm: int, size: int) -> Iterator[array[int]]:
        """Yield the slots of an arm, so many at a time."""
        members = self._arms[arm].members if 0 <= arm < len(self._arms) else array("i")
        for start in range(0, len(members), size):
            yield members[start : start + size]

    def grow(self, n_arms: int) -> None:
        """Have at least so many arms."""
        self._arms.extend(_Arm() for _ in range(n_arms - len(self._arms)))
        more = max(n_arms, 2 * len(self._waiting)) - len(self._waiting)
        if n_arms > len(self._waiting):
            self._waiting = self._waiting + array("q", bytes(8 * more))
            self._heads = self._heads + array("d", [-np.inf]) * more

    def _pair_of(self, host: int, arm: int) -> int:
        code = host << 32 | arm
        pair = self._pairs.get(code, -1)
        if pair < 0:
            pair = len(self.pair_arm)
            self._pairs.set(code, pair)
            self.pair_arm.append(arm)
            self.pair_host.append(host)
            self._pair_count.append(0)
            self._pair_head.append(-1)
            self._pair_next.append(self._host_first[host])
            self._host_first[host] = pair
            self._asked.pop(host, None)
            self._queues.append(None)
            if arm >= len(self._arms):
                self.grow(arm + 1)
        if len(self._near) >= NEAR:
            self._near.clear()
        self._near[code] = pair
        return pair

    def _pairs_of(self, host: int) -> NDArray[np.int32]:
        """Return the pairs of a host; those that were asked for lately are remembered."""
        pairs = self._asked.get(host)
        if pairs is None:
            found = array("i")
            pair = self._host_first[host]
            while pair >= 0:
                found.append(pair)
                pair = self._pair_next[pair]
            if len(self._asked) >= NEAR:
                self._asked.clear()
            pairs = self._asked[host] = np.frombuffer(found, np.int32)
        return pairs

    def _count(self, host: int, arm: int) -> int:
        pair = self._pairs.get(host << 32 | arm, -1)
        return self._pair_count[pair] if pair >= 0 else 0

    def _chain(self, slot: int) -> Iterator[int]:
        while slot >= 0:
            yield slot
            slot = self._next[slot]

    def _slots(self, pair: int) -> list[int]:
        """Return the slots that wait in a pair, in no order."""
        queue = self._queues[pair]
        return list(self._chain(self._pair_head[pair]) if queue is None else (s for s in queue if self.pair[s] >= 0))

    def _open(self, arm: int, shut: set[int]) -> list[int]:
        """Return the slots of an arm on other hosts than some, where these are few; linear in its hosts."""
        pairs = [self.pair[slot] for slot in self._arms[arm].tops if self.pair[slot] >= 0 and self._is_head(slot)]
        return [slot for pair in pairs if self.pair_host[pair] not in shut for slot in self._slots(pair)]

    def _is_head(self, slot: int) -> bool:
        return self._pair_head[self.pair[slot]] == slot

    def _lead(self, pair: int, slot: int) -> None:
        """Let a slot be the head of a pair, which may have none now."""
        old, arm = self._pair_head[pair], self._arms[self.pair_arm[pair]]
        tops = arm.tops
        self._pair_head[pair] = slot
        if old >= 0:
            tops.stale += 1
            arm.pairs -= 1
        if slot >= 0:
            arm.pairs += 1
            if self._flags[slot] & NOTED:
                tops.stale -= 1
            else:
                self._flags[slot] |= NOTED
                tops.insert(slot, self.rank, self._sift_tops)
        if tops.stale > arm.pairs + TINY:
            tops.purge(self.rank, self._sift_tops)

    def _clean(self, queue: Runs) -> int:
        """Drop what does not count from the end of a queue, and return its best slot, -1 where it is empty."""
        while (slot := queue.best(self.rank)) >= 0 and self.pair[slot] < 0:
            queue.drop(self.rank)
            queue.stale -= 1
            self._unflag(slot, QUEUED)
        return slot

    def _unflag(self, slot: int, flag: int) -> None:
        self._flags[slot] &= ~flag
        if not self._flags[slot] and self.pair[slot] < 0:
            self._free.append(slot)

    def _sift(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        counts = np.frombuffer(self.pair, np.int32)[slots] >= 0
        self._unflag_many(slots[~counts], QUEUED)
        return slots[counts]

    def _sift_tops(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        pairs = np.frombuffer(self.pair, np.int32)[slots]
        counts = (pairs >= 0) & (np.frombuffer(self._pair_head, np.int32)[pairs] == slots)
        self._unflag_many(slots[~counts], NOTED)
        kept: NDArray[np.int32] = slots[counts]
        return kept

    def _unflag_many(self, slots: NDArray[np.int32], flag: int) -> None:
        flags = np.frombuffer(self._flags, np.uint8)
        flags[slots] &= np.uint8(~flag & 255)
        free = slots[(flags[slots] == 0) & (np.frombuffer(self.pair, np.int32)[slots] < 0)]
        self._free.frombytes(free.tobytes())
