"""How queued links are drawn, in arms with vectors and without an order.

A policy with a tree over links needs a fair sample of each leaf, without busy hosts. And a resumed crawl must
continue as if it had not been stopped. So a draw is a function of a random number and of the links queued in each
arm, by their ages. It does not depend on links that left before, nor on cached results.
"""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import accumulate, chain
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.busy import parts_of
from scrapy_focus.frontiers.drawn.chunks import Part
from scrapy_focus.frontiers.drawn.closing import Closing, ClosingPairs
from scrapy_focus.frontiers.drawn.columns import Columns
from scrapy_focus.frontiers.drawn.scarce import Scarce

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

TRIALS = (4, 16, 64)  # tries for a link before its whole arm is read
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_MASK = (1 << 64) - 1
_BLOCK = 1 << 14  # hosts that are checked together
_AT_ONCE = 8  # delayed splits that are done at a time
FEW_ARMS, FEW_CHUNKS = 8, 16  # checked one by one, not with all others ...
MANY_ARMS = 16  # ... if these are so many


class Pool(Columns):
    """Queued links to draw from."""

    def __init__(self, width: int, *, ages: bool) -> None:
        super().__init__(width, ages=ages)
        self._closing = Closing(self.hosts)
        self._asked = b"", _NOTHING  # how many were drawn of each arm, and the arm of each

    def shut(
        self, busy: Collection[str], closed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
        """Return which hosts are busy or closed, shape (n_hosts,), ``None`` if none of them has a queued link; and
        which are closed.
        """
        names, more = parts_of(busy)
        closed, mask = self._fitted(closed), self._closing.mask(names)
        if mask is not None:
            closed = mask if closed is None else closed | mask
        ids = self._busy(more)
        if closed is None and not ids:
            return None, None
        shut = np.zeros(len(self.hosts), np.bool_) if closed is None else closed.copy()
        shut[ids] = True
        return shut, closed

    def _busy(self, busy: Collection[str]) -> list[int]:
        """Return the numbers of the busy hosts with queued links."""
        return [host for host in self.hosts.known(busy) if self._host_waiting[host]]

    def is_open(self, shut: NDArray[np.bool_] | None) -> bool:
        """Whether any link is queued for a host that is not shut; fast if many are."""
        if shut is None or not self._n:
            return self._n > 0
        waiting = self.host_waiting
        starts = range(0, len(waiting), _BLOCK)
        return any(((waiting[at : at + _BLOCK] > 0) & ~shut[at : at + _BLOCK]).any() for at in starts)

    def awake(self, busy: Collection[str]) -> NDArray[np.int64]:
        """Return how many links of each arm are queued for hosts that are not busy, shape (n_arms,).

        Linear in all links, about 0.1 us each, the first time that a busy host has a queued link, and the first time
        after a split.
        """
        names, more = parts_of(busy)
        mask, shut = self._closing.mask(names), self._busy(more)
        if mask is None and not shut:
            return self.waiting.copy()
        if self._pairs is None:
            self._pairs = self._counted()
        if mask is None:
            return self._pairs.awake(self.waiting, shut)
        self._pairs.close(mask)
        return self._pairs.awake_beside(self.waiting, shut)

    def draw(
        self,
        counts: Mapping[int, int] | NDArray[np.integer],
        rng: np.random.Generator,
        busy: Collection[str],
        closed: NDArray[np.bool_] | None,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Return the slots, arms and hosts of links drawn with replacement, so many of each arm, shape (k,) each.

        Each draw has separate random numbers for each link that it tries, so that the result does not depend on
        skipped tries.
        """
        shut, closed = self.shut(busy, closed)
        if not self.is_open(shut):
            return _NOTHING, _NOTHING, _NOTHING
        arms = self._wanted(counts)
        seed = int(rng.bit_generator.random_raw()) >> 2
        hosts = np.frombuffer(self._host, np.int32)
        numbers = np.arange(len(arms))
        waiting = self.waiting
        slots = self._at(arms, (_uniform(seed, numbers) * waiting[arms]).astype(np.int64))
        if shut is None:
            return slots, arms, hosts[slots]
        if self._scarce:
            self._remember(closed)
        missing = self._hopeful(np.flatnonzero(shut[hosts[slots]]), arms, slots, shut)
        done = 1
        for trials in TRIALS:
            if not len(missing):
                break
            codes = (missing[:, None] + (np.arange(done, done + trials) << 32)).ravel()
            of = np.repeat(arms[missing], trials)
            found = self._at(of, (_uniform(seed, codes) * waiting[of]).astype(np.int64)).reshape(-1, trials)
            fits = ~shut[hosts[found]]
            first = fits.argmax(axis=1)
            rows = np.arange(len(missing))
            well = fits[rows, first]
            slots[missing[well]] = found[rows, first][well]
            missing = missing[~well]
            done += trials
        for arm in np.unique(arms[missing]).tolist() if len(missing) else ():
            mine = missing[arms[missing] == arm]
            left = self._open(arm, closed, shut)
            if len(left):
                slots[mine] = left[(_uniform(seed, mine + (done << 32)) * len(left)).astype(np.int64)]
            else:
                slots[mine] = -1
        kept = slots >= 0
        slots, arms = slots[kept], arms[kept]
        return slots, arms, hosts[slots]

    def _wanted(self, counts: Mapping[int, int] | NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the arm of each link that is to be drawn, ascending, shape (k,)."""
        if isinstance(counts, np.ndarray):
            counts = counts[: len(self._arms)]
            wanted = np.where(self.waiting[: len(counts)] > 0, counts, 0)
            before, arms = self._asked
            if (now := wanted.tobytes()) != before:
                arms = np.repeat(np.arange(len(wanted), dtype=np.int32), wanted)
                self._asked = now, arms
            return arms.copy()
        some = sorted(arm for arm in counts if 0 <= arm < len(self._arms) and self._waiting[arm])
        return np.repeat(np.array(some, np.int32), [counts[arm] for arm in some])

    def everything(
        self, busy: Collection[str], closed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Return the slots, arms and hosts of all links on open hosts, oldest first in each arm."""
        shut, _ = self.shut(busy, closed)
        slots = np.concatenate([_NOTHING, *(members.slots() for members in self._arms)])
        arms = np.repeat(np.arange(len(self._arms), dtype=np.int32), self.waiting)
        hosts = np.frombuffer(self._host, np.int32)[slots]
        if shut is not None:
            slots, arms, hosts = slots[~shut[hosts]], arms[~shut[hosts]], hosts[~shut[hosts]]
        return slots, arms, hosts

    def oldest(
        self,
        counts: Mapping[int, int] | NDArray[np.integer],
        busy: Collection[str],
        closed: NDArray[np.bool_] | None,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Return the slots, arms and hosts of the oldest links on open hosts, so many of each arm at most, shape (k,)
        each; linear in those on other hosts.
        """
        shut, _ = self.shut(busy, closed)
        hosts = np.frombuffer(self._host, np.int32)
        found: list[int] = []
        arms: list[int] = []
        for arm, count in Counter(self._wanted(counts).tolist()).items():
            first: list[int] = []
            for at in range(len(self._arms[arm].chunks)):
                members = np.frombuffer(self._arms[arm].chunk(at), np.int32)
                some = members if shut is None else members[~shut[hosts[members]]]
                first += some[: count - len(first)].tolist()
                if len(first) == count:
                    break
            found += first
            arms += [arm] * len(first)
        slots = np.array(found, np.int32)
        return slots, np.array(arms, np.int32), hosts[slots]

    def _counted(self) -> ClosingPairs:
        """Count the links of each arm and host; linear."""
        _, arms, hosts = self.everything((), None)
        codes, counts = np.unique(hosts.astype(np.int64) << 32 | arms, return_counts=True)
        pairs = ClosingPairs()
        pairs.load((codes >> 32).astype(np.int32), codes.astype(np.int32), counts.astype(np.int32))
        return pairs

    def _fitted(self, closed: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        """Return which hosts are closed, shape (n_hosts,)."""
        if closed is None or len(closed) == len(self.hosts):
            return closed
        fitted = np.zeros(len(self.hosts), np.bool_)
        fitted[: len(closed)] = closed[: len(fitted)]
        return fitted

    def _at(self, arms: NDArray[np.integer], places: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the slots at ascending places of some arms, counted from the oldest, all of shape (n,).

        Linear in the arms and their chunks, except for small requests.
        """
        if self._put_off:
            self._take_apart()
        some = self._few(arms)
        if some:
            ends = arms.searchsorted(some, side="right").tolist()
            parts = zip(some, [0, *ends], ends, strict=False)
            return np.concatenate([self._arms[arm].at(places[start:end]) for arm, start, end in parts])
        if self._flat is None:
            self._flat = self._flattened()
        chunks, lengths, firsts = self._flat
        ends = np.frombuffer(lengths, np.int32).cumsum(dtype=np.int64)
        waiting = self.waiting
        places = places + (waiting.cumsum() - waiting)[arms]
        found = ends.searchsorted(places, side="right")
        within = (places - ends[found]).tolist()  # counted from the end
        if chunks is None:
            starts = np.array(firsts)
            which = (found - starts[arms]).tolist()
            members = [self._arms[arm] for arm in arms.tolist()]
            return np.array([m.chunk(c)[w] for m, c, w in zip(members, which, within, strict=True)], np.int32)
        return np.array([chunks[c][w] for c, w in zip(found.tolist(), within, strict=True)], np.int32)

    def _few(self, arms: NDArray[np.integer]) -> list[int]:
        """Return these arms, ascending, if they and their chunks are few; else nothing."""
        if not len(arms) or not FEW_ARMS:
            return []
        some = [int(arms[0])]
        if arms[0] != arms[-1]:
            changes = arms[1:] != arms[:-1] if len(self._arms) >= MANY_ARMS else None
            if changes is None or np.count_nonzero(changes) >= FEW_ARMS:
                return []
            some += arms[1:][changes].tolist()
        return some if sum(len(self._arms[arm].chunks) for arm in some) <= FEW_CHUNKS else []

    def _flattened(self) -> tuple[list[array[int]] | None, array[int], list[int]]:
        chunks = list(chain.from_iterable(members.chunks for members in self._arms))
        firsts = [0, *accumulate(len(members.chunks) for members in self._arms)]
        whole = [chunk for chunk in chunks if not isinstance(chunk, Part)]
        return whole if len(whole) == len(chunks) else None, array("i", map(len, chunks)), firsts[:-1]

    def _take_apart(self) -> None:
        """Do some delayed splits."""
        if self._arms[self._put_off[-1]].take_apart(_AT_ONCE):
            self._put_off.pop()
            self._flat = None

    def _hopeful(
        self, missing: NDArray[np.int64], arms: NDArray[np.int32], slots: NDArray[np.int32], shut: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Return the draws that may still find something, and give the others the slot -1."""
        if not self._scarce or not len(missing):
            return missing
        of = arms[missing]
        none = [arm for arm in set(of.tolist()) if arm in self._scarce and self._scarce[arm].is_shut(shut)]
        hopeless = np.isin(of, none)
        slots[missing[hopeless]] = -1
        return missing[~hopeless]

    def _open(self, arm: int, closed: NDArray[np.bool_] | None, shut: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return the slots of an arm on hosts not shut, oldest first; linear in those on hosts not closed."""
        hosts, members = np.frombuffer(self._host, np.int32), self._arms[arm]
        scarce = self._scarce.get(arm)
        if scarce is None:
            scarce = Scarce(members.slots(), hosts, np.frombuffer(self.age, np.int32), closed)
            self._scarce[arm] = scarce
            self._remember(closed)
        slots = (members if scarce.kept is None else scarce.kept).slots()
        theirs = hosts[slots]
        if closed is not None and 2 * np.count_nonzero(~closed[theirs]) < len(slots):
            del self._scarce[arm]  # many hosts closed since: read again
        left: NDArray[np.int32] = slots[~shut[theirs]]
        return left

    def _remember(self, closed: NDArray[np.bool_] | None) -> None:
        """Record the closed hosts; once one is opened again, the cached scarce arms are invalid."""
        if closed is None:
            closed = np.zeros(len(self.hosts), np.bool_)
        if self._closed is not None and (self._closed & ~closed[: len(self._closed)]).any():
            self._scarce.clear()
        self._closed = closed.copy() if self._scarce else None


_NOTHING = np.empty(0, np.int32)


def _uniform(seed: int, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a number from [0, 1) for each code below 2**40: SplitMix64, entered at the code.

    Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    first, second, third, last = _SHIFTS
    z = codes.astype(np.uint64)
    z *= _GOLDEN
    z += np.uint64((seed * 2 + 1) & _MASK)
    z ^= z >> first
    z *= _FIRST
    z ^= z >> second
    z *= _SECOND
    z ^= z >> third
    z >>= last
    found: NDArray[np.float64] = z * np.float64(2.0**-53)
    return found
