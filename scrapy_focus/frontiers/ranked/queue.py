"""Which link leaves next: the queued links by arm, host, rank and age, in 30 to 45 bytes a link.

Three requirements conflict: taking the best link of an arm, skipping busy hosts without searching their links, and
tens of millions of links in memory. So each pair of an arm and a host has a queue, each arm a queue of the heads of
its queues, and both hold numbers of slots instead of objects. URLs and all other data of a link are elsewhere, by
record.
"""

from __future__ import annotations

from array import array
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.frontiers.hosts import Hosts, Pairs
from scrapy_focus.frontiers.require import require
from scrapy_focus.frontiers.runs import Runs, in_order, restored_runs, save_runs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from scrapy_focus.frontiers.saved import Saved

TINY = 16  # chained links of a pair; with more, it has a queue
LONG = 4096  # links of a pair from which a cut sifts its queue at once, so that their slots are reused
QUEUED, NOTED = 1, 2


class _Arm:
    """``tops`` are the heads of the pairs of an arm, ``pairs`` is the number of pairs with a head."""

    __slots__ = ("pairs", "tops")

    def __init__(self) -> None:
        self.tops = Runs()
        self.pairs = 0


class Queue:
    """Slots of queued links, each with a record number from the caller, and an age: the smaller is older.

    A slot has a rank, a pair (-1: not in use), a record, an age, and the next slot of its pair. The latter counts
    while the pair has no queue: then the slots of the pair are chained, best first. Of two links of equal rank the
    older is better. Flags tell whether a slot has an entry in the queue of a pair (1), and in the tops of an arm (2).
    Only a slot with neither is reused, since ranks and ages in queues may not change. The head of a pair is its best
    slot, is noted in the tops of its arm, and is the best valid entry of its queue.
    """

    def __init__(self, *, ages: bool) -> None:
        """``ages``: whether ages differ from record numbers."""
        self.hosts = Hosts()
        self.pairs = Pairs()
        self.rank = array("d")
        self.pair = array("i")
        self.record = array("i")
        self.age = array("i") if ages else self.record
        self._next = array("i")
        self._flags = bytearray()
        self._free = array("i")
        self._pair_head = array("i")
        self._queues: list[Runs | None] = []
        self._arms: list[_Arm] = []
        self._waiting = array("q", bytes(8 * 16))
        self._heads = array("d", [-np.inf] * 16)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def waiting(self) -> NDArray[np.int64]:
        """How many links are queued in each arm, shape (n_arms,)."""
        return np.frombuffer(self._waiting, np.int64)[: len(self._arms)]

    @property
    def heads(self) -> NDArray[np.float64]:
        """The best rank in each arm, shape (n_arms,)."""
        return np.frombuffer(self._heads)[: len(self._arms)]

    def awake(self, busy: Collection[str]) -> NDArray[np.int64]:
        """Return how many links of each arm are queued for hosts that are not busy, shape (n_arms,)."""
        return self.pairs.awake(self.waiting, self.hosts.known(busy)) if busy else self.waiting.copy()

    def host(self, name: str) -> int:
        """Return the number of a host, a new one if it has none."""
        return self.hosts.number(name)

    def place(self, slot: int) -> tuple[int, int, float]:
        """Return the host, the arm and the rank of a queued link."""
        pair = self.pair[slot]
        return self.pairs.host[pair], self.pairs.arm[pair], self.rank[slot]

    @property
    def next_slot(self) -> int:
        """The slot that the next :meth:`insert` will return."""
        return self._free[-1] if self._free else len(self.rank)

    def insert(self, record: int, age: int, host: int, arm: int, rank: float) -> int:
        """Queue a record, and return its slot; O(log HOT)."""
        pair = self.pairs.near.get(host << 32 | arm, -1)
        if pair < 0:
            pair = self._pair_of(host, arm)
        ranks = self.rank
        if self._free:
            slot = self._free.pop()
            ranks[slot], self.pair[slot], self.record[slot], self.age[slot] = rank, pair, record, age
        else:
            slot = len(ranks)
            ranks.append(rank)
            self.pair.append(pair)
            self.record.append(record)
            if self.age is not self.record:
                self.age.append(age)
            self._next.append(-1)
            self._flags.append(0)
        head, counts = self._pair_head[pair], self.pairs.count
        queue = self._queues[pair]
        if queue is None and counts[pair] == TINY:
            queue = self._queues[pair] = self._unchained(head)
        if queue is not None:
            self._flags[slot] |= QUEUED
            queue.insert(slot, ranks, self.age, self._sift)
            if rank > ranks[head] or (rank == ranks[head] and age < self.age[head]):
                self._lead(pair, slot)
        else:
            self._enchain(slot, pair)
        counts[pair] += 1
        self._waiting[arm] += 1
        self._n += 1
        if rank > self._heads[arm]:  # noqa: PLR1730 (max() takes three times as long)
            self._heads[arm] = rank
        return slot

    def remove(self, slot: int) -> None:
        """Remove the link of a slot; its record number is not used again here."""
        pair = self.pair[slot]
        arm, counts = self.pairs.arm[pair], self.pairs.count
        self.pair[slot] = -1
        if not self._flags[slot]:
            self._free.append(slot)
        counts[pair] -= 1
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
            if not counts[pair]:
                self._queues[pair] = None
            elif queue.stale > counts[pair] + TINY:
                queue.purge(self.rank, self.age, self._sift)
        if self.rank[slot] == self._heads[arm]:
            best = self.best(arm)
            self._heads[arm] = self.rank[best] if best >= 0 else -np.inf

    def best(self, arm: int, busy: Collection[str] = ()) -> int:
        """Return the slot of the best link of an arm on a host that is not busy, -1 if there is none."""
        if not 0 <= arm < len(self._arms) or not self._waiting[arm]:
            return -1
        tops, rank, age = self._arms[arm].tops, self.rank, self.age
        passed = []
        while (slot := tops.best(rank, age)) >= 0:
            pair = self.pair[slot]
            if pair < 0 or self._pair_head[pair] != slot:
                tops.drop(rank, age)
                tops.stale -= 1
                self._unflag(slot, NOTED)
            elif busy and self.hosts.names[self.pairs.host[pair]] in busy:
                tops.drop(rank, age)
                passed.append(slot)
            else:
                break
        for each in reversed(passed):
            tops.insert(each, rank, age, self._sift_tops)
        return slot

    def worst(self, arm: int, n: int) -> list[int]:
        """Return the slots of the worst links of an arm, up to ``n``, the worst first; linear."""
        slots = np.fromiter(self._in(arm), np.int32)
        order = in_order(np.frombuffer(self.rank)[slots], np.frombuffer(self.age, np.int32)[slots])
        found: list[int] = slots[order[: max(n, 0)]].tolist()
        return found

    def cut(self, counts: Mapping[int, int]) -> NDArray[np.int32]:
        """Remove the ``counts[arm]`` worst links of some arms, and return their slots; linear in all.

        Some nanoseconds for each link queued in one of these arms, and about a tenth of a microsecond for each that
        leaves.
        """
        slots = self._worst_of(counts)
        if not len(slots):
            return slots
        pairs, lost = np.unique(np.frombuffer(self.pair, np.int32)[slots], return_counts=True)
        np.frombuffer(self.pair, np.int32)[slots] = -1
        counts_now = np.frombuffer(self.pairs.count, np.int32)
        counts_now[pairs] -= lost.astype(np.int32)
        arms = np.frombuffer(self.pairs.arm, np.int32)[pairs]
        np.subtract.at(self.waiting, arms, lost)
        self._n -= len(slots)
        flags = np.frombuffer(self._flags, np.uint8)
        self._free.frombytes(slots[flags[slots] == 0].tobytes())
        self._shorten(pairs, lost)
        left = counts_now[pairs]
        for arm in np.unique(arms).tolist():
            self._forget_heads(arm, pairs[(arms == arm) & (left == 0)])
        return slots

    def scan(self, arm: int, size: int) -> Iterator[list[int]]:
        """Yield the slots of an arm, so many at a time, in memory order."""
        slots = np.sort(np.fromiter(self._in(arm), np.int32))
        for start in range(0, len(slots), size):
            yield slots[start : start + size].tolist()

    def grow(self, n_arms: int) -> None:
        """Create arms up to this number."""
        self._arms.extend(_Arm() for _ in range(n_arms - len(self._arms)))
        more = max(n_arms, 2 * len(self._waiting)) - len(self._waiting)
        if n_arms > len(self._waiting):
            self._waiting = self._waiting + array("q", bytes(8 * more))
            self._heads = self._heads + array("d", [-np.inf]) * more

    def save(self, saved: Saved) -> None:
        """Add all columns except those of the hosts; ages are records."""
        saved.put("rank", "d", self.rank)
        saved.put("pair", "i", self.pair)
        saved.put("record", "i", self.record)
        saved.put("next", "i", self._next)
        saved.put("flags", "B", self._flags)
        saved.put("free", "i", self._free)
        saved.put("pair_head", "i", self._pair_head)
        saved.put("waiting", "q", self._waiting)
        saved.put("heads", "d", self._heads)
        self.pairs.save(saved.under("pairs"))
        saved.put_ints("queued", (pair for pair, queue in enumerate(self._queues) if queue is not None))
        save_runs([queue for queue in self._queues if queue is not None], saved.under("queues"))
        saved.put_ints("arm_pairs", (arm.pairs for arm in self._arms))
        save_runs([arm.tops for arm in self._arms], saved.under("tops"))

    def restore(self, saved: Saved) -> None:
        """Restore the saved columns, with the hosts that are here; ages are records."""
        self.rank, self._heads, self._waiting = (
            saved.take("rank", "d"), saved.take("heads", "d"), saved.take("waiting", "q")
        )  # fmt: skip
        self.pair, self._next, self._free = (saved.take(name, "i") for name in ("pair", "next", "free"))
        self.record = self.age = saved.take("record", "i")
        self._flags, self._pair_head = saved.take("flags", "B"), saved.take("pair_head", "i")
        self.pairs.restore(saved.under("pairs"))
        self._queues = [None] * len(self._pair_head)
        queues = restored_runs(saved.under("queues"), self.rank, self.age)
        for pair, queue in zip(saved.take("queued", "i"), queues, strict=True):
            self._queues[pair] = queue
        tops = restored_runs(saved.under("tops"), self.rank, self.age)
        for n, runs in zip(saved.take("arm_pairs", "i"), tops, strict=True):
            arm = _Arm()
            arm.pairs, arm.tops = n, runs
            self._arms.append(arm)
        self._n = int(self.waiting.sum())

    def check(self) -> None:
        """Raise FrontierError if an invariant is broken; linear."""
        waiting = [slot for slot in range(len(self.pair)) if self.pair[slot] >= 0]
        require(len(waiting) == len(self), f"{len(self)} links are counted, {len(waiting)} are queued")
        require(len(self.age) == len(self.record) == len(self.rank), "the columns have other lengths")
        self.pairs.check(len(self._arms))
        found = [slot for pair in range(len(self._queues)) for slot in self._check_pair(pair)]
        require(sorted(found) == waiting, "a link is in no queue, or in two")
        for arm, pairs in enumerate(self._pairs_by_arm()):
            self._check_arm(arm, pairs)
        unused = {slot for slot, flags in enumerate(self._flags) if not flags and self.pair[slot] < 0}
        free = set(self._free)
        require(unused == free and len(unused) == len(self._free), "the free slots are not those that are")

    def _pairs_by_arm(self) -> list[list[int]]:
        """Return the pairs of each arm that have queued links."""
        pairs: list[list[int]] = [[] for _ in self._arms]
        for pair, arm in enumerate(self.pairs.arm):
            if self._pair_head[pair] >= 0:
                pairs[arm].append(pair)
        return pairs

    def _check_pair(self, pair: int) -> list[int]:
        slots, count, head = list(self._slots(pair)), self.pairs.count[pair], self._pair_head[pair]
        where = f"the queue of {self.hosts.names[self.pairs.host[pair]]} in arm {self.pairs.arm[pair]}"
        order = [self._goodness(slot) for slot in slots]
        require(len(slots) == count, f"{where} counts {count} links, not {len(slots)}")
        require(all(self.pair[slot] == pair for slot in slots), f"{where} holds a link of another")
        require(head in slots if slots else head < 0, f"the head of {where} is not queued in it")
        require(not slots or self._goodness(head) == max(order), f"the head of {where} is not its best link")
        require(head < 0 or self._flags[head] & NOTED, f"the head of {where} is not noted")
        queue = self._queues[pair]
        if queue is None:
            require(order == sorted(order, reverse=True), f"{where} is not in order")
            return slots
        stale = sum(self.pair[slot] < 0 for slot in queue)
        require(stale == queue.stale, f"{where} counts {queue.stale} stale entries, not {stale}")
        best = queue.best(self.rank, self.age)
        require(
            best >= 0 and self._goodness(best) == self._goodness(head), f"the head of {where} is not its last entry"
        )
        require(all(self._flags[slot] & QUEUED for slot in queue), f"{where} has an entry without a flag")
        queue.check(self.rank, self.age)
        return slots

    def _check_arm(self, number: int, pairs: list[int]) -> None:
        arm, count = self._arms[number], self._waiting[number]
        waiting = sum(self.pairs.count[pair] for pair in pairs)
        require(waiting == count, f"arm {number} counts {count} links, not {waiting}")
        best = max((self.rank[self._pair_head[pair]] for pair in pairs), default=-np.inf)
        require(best == self._heads[number], f"the head of arm {number} is not its best link")
        require(len(pairs) == arm.pairs, f"arm {number} counts {arm.pairs} hosts, not {len(pairs)}")
        tops = list(arm.tops)
        stale = sum(not self._is_head(slot) for slot in tops)
        require(len(set(tops)) == len(tops), f"a head of arm {number} is noted twice")
        require(all(self._flags[slot] & NOTED for slot in tops), f"arm {number} notes a head without a flag")
        require(len(tops) - stale == arm.pairs, f"arm {number} does not note all of its heads")
        require(stale == arm.tops.stale, f"arm {number} counts {arm.tops.stale} stale heads, not {stale}")
        arm.tops.check(self.rank, self.age)

    def _worst_of(self, counts: Mapping[int, int]) -> NDArray[np.int32]:
        """Return the slots of the ``counts[arm]`` worst links of some arms, in no order."""
        pair, arm_of = np.frombuffer(self.pair, np.int32), np.frombuffer(self.pairs.arm, np.int32)
        slots = np.flatnonzero(pair >= 0).astype(np.int32)
        wanted = {arm: n for arm, n in counts.items() if 0 <= arm < len(self._arms) and n > 0 and self._waiting[arm]}
        if not wanted:
            return slots[:0]
        if np.count_nonzero(self.waiting) == 1:
            return self._worst_among(slots, next(iter(wanted.values())))
        arms = arm_of[pair[slots]]
        # two bytes are sorted ten times as fast as four
        order = np.argsort(arms.astype(np.uint16 if len(self._arms) < 1 << 16 else np.int32), kind="stable")
        slots, ends = slots[order], self.waiting.cumsum()
        starts = ends - self.waiting
        return np.concatenate([self._worst_among(slots[starts[arm] : ends[arm]], n) for arm, n in wanted.items()])

    def _worst_among(self, slots: NDArray[np.int32], n: int) -> NDArray[np.int32]:
        """Return the slots with the ``n`` worst links, in no order."""
        if n >= len(slots):
            return slots
        ranks = np.frombuffer(self.rank)[slots]
        bound = np.partition(ranks, n - 1)[n - 1]
        worst, equals = slots[ranks < bound], slots[ranks == bound]
        youngest = len(equals) - (n - len(worst))
        if youngest:
            ages = np.frombuffer(self.age, np.int32)[equals]
            equals = equals[np.argpartition(ages, youngest)[youngest:]]
        return np.concatenate([worst, equals])

    def _shorten(self, pairs: NDArray[np.int32], lost: NDArray[np.int64]) -> None:
        """Drop the last links, so many each, of the chains and queues of some pairs; they are not queued any more."""
        counts, queues = self.pairs.count, self._queues
        chained = np.array([queues[pair] is None for pair in pairs.tolist()], np.bool_)
        self._shorten_chains(pairs[chained])
        for pair, n_lost in zip(pairs[~chained].tolist(), lost[~chained].tolist(), strict=True):
            queue = queues[pair]
            if queue is None:
                continue
            queue.stale += n_lost
            if not counts[pair]:
                self._unflag_many(np.fromiter(queue, np.int32), QUEUED)
                self._queues[pair] = None
            elif queue.stale > (0 if len(queue) > LONG else counts[pair] + TINY):
                queue.purge_all(self.rank, self.age, self._sift)

    def _shorten_chains(self, pairs: NDArray[np.int32]) -> None:
        """Cut the chains of some pairs at their counts."""
        following, left = np.frombuffer(self._next, np.int32), np.frombuffer(self.pairs.count, np.int32)[pairs]
        last, left = np.frombuffer(self._pair_head, np.int32)[pairs[left > 0]], left[left > 0]
        while len(last):
            following[last[left == 1]] = -1
            last, left = following[last[left > 1]], left[left > 1] - 1

    def _forget_heads(self, arm: int, pairs: NDArray[np.int32]) -> None:
        """Remove the heads of some pairs of an arm without queued links."""
        np.frombuffer(self._pair_head, np.int32)[pairs] = -1
        tops = self._arms[arm].tops
        tops.stale += len(pairs)
        self._arms[arm].pairs -= len(pairs)
        if tops.stale > self._arms[arm].pairs + TINY:
            tops.purge_all(self.rank, self.age, self._sift_tops)
        if not self._waiting[arm]:
            self._heads[arm] = -np.inf

    def _goodness(self, slot: int) -> tuple[float, int]:
        return self.rank[slot], -self.age[slot]

    def _pair_of(self, host: int, arm: int) -> int:
        pair = self.pairs.number(host, arm)
        if pair == len(self._queues):
            self._queues.append(None)
            self._pair_head.append(-1)
            self.grow(arm + 1)
        return pair

    def _chain(self, slot: int) -> Iterator[int]:
        while slot >= 0:
            yield slot
            slot = self._next[slot]

    def _enchain(self, slot: int, pair: int) -> None:
        """Insert a slot into the chain of its pair."""
        ranks, ages = self.rank, self.age
        rank, age = ranks[slot], ages[slot]
        before, after = -1, self._pair_head[pair]
        while after >= 0 and (ranks[after] > rank or (ranks[after] == rank and ages[after] < age)):
            before, after = after, self._next[after]
        self._next[slot] = after
        if before >= 0:
            self._next[before] = slot
        else:
            self._lead(pair, slot)

    def _unchained(self, head: int) -> Runs:
        """Return a queue of the links chained from a head on."""
        chained = list(self._chain(head))
        for each in chained:
            self._flags[each] |= QUEUED
        return Runs(reversed(chained))

    def _slots(self, pair: int) -> Iterable[int]:
        """Return the queued slots of a pair, in no order."""
        queue = self._queues[pair]
        return self._chain(self._pair_head[pair]) if queue is None else (s for s in queue if self.pair[s] >= 0)

    def _in(self, arm: int) -> Iterable[int]:
        """Return the slots of an arm, in no order."""
        tops = list(self._arms[arm].tops) if 0 <= arm < len(self._arms) else []
        return chain.from_iterable(self._slots(self.pair[slot]) for slot in tops if self._is_head(slot))

    def _is_head(self, slot: int) -> bool:
        pair = self.pair[slot]
        return pair >= 0 and self._pair_head[pair] == slot

    def _lead(self, pair: int, slot: int) -> None:
        """Make a slot the head of a pair, or none."""
        old, arm = self._pair_head[pair], self._arms[self.pairs.arm[pair]]
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
                tops.insert(slot, self.rank, self.age, self._sift_tops)
        if tops.stale > arm.pairs + TINY:
            tops.purge(self.rank, self.age, self._sift_tops)

    def _clean(self, queue: Runs) -> int:
        """Drop invalid entries from the end of a queue, and return its best slot, -1 if it is empty."""
        while (slot := queue.best(self.rank, self.age)) >= 0 and self.pair[slot] < 0:
            queue.drop(self.rank, self.age)
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
