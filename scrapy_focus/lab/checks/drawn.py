"""Checks a custom frontier against the contract of :class:`~scrapy_focus.core.frontier.Drawn`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.frontier import Drawn, Vectors
from scrapy_focus.core.types import METHODS, Placement
from scrapy_focus.lab.checks.ledger import LedgerMachine, as_tuple, host_of, link, require, some_hosts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from scrapy_focus.core.frontier import Draw
    from scrapy_focus.lab.checks.ledger import Waits

WIDTH = 3
_ARMS = 4
_MOST_DIVISIONS = 8


def check_drawn(make: Callable[[Vectors], Drawn], *, steps: int = 1000, seed: int = 0) -> None:
    """Raise ``AssertionError`` if a frontier breaks its contract; compares it with a dictionary over random steps.

    Parameters
    ----------
    make
        Returns a new, empty frontier each time, for vectors of a width.
    steps
        Operations to try.
    seed
        Of the operations.

    Notes
    -----
    Exceptions of the frontier itself pass through. Uniformity of draws is not checked. But equal random numbers must
    draw equal links from frontiers with the same queue, a mapping must draw what an array does, and nothing may be
    drawn from shut hosts. Links sleep only in a frontier that is also :class:`~scrapy_focus.core.frontier.Sleeping`.
    """
    rng = np.random.default_rng(seed)
    machine = DrawnMachine(make(Vectors(WIDTH)), make)
    for _ in range(steps):
        machine.step(rng)
        machine.compare(some_hosts(rng))
    machine.end()


class DrawnMachine(LedgerMachine[Drawn]):
    """The operations of a :class:`~scrapy_focus.core.frontier.Drawn` frontier; ``make`` makes another one."""

    def __init__(self, frontier: Drawn, make: Callable[[Vectors], Drawn]) -> None:
        super().__init__(frontier)
        self._make = make

    def placed(self, key: int, place: Placement) -> tuple[int, tuple[float, ...] | None]:
        old = self.placed_before(key)
        memo = as_tuple(place.memo) or (old.memo if old is not None else (0,) * WIDTH)
        return self.followed(place.arm, memo), memo

    def landed(self, waits: Waits) -> Waits:
        return waits._replace(arm=self.followed(waits.arm, waits.memo))

    def followed(self, arm: int, vector: Sequence[float] | None) -> int:
        """Return the arm where a link with a vector is queued that was placed in an arm."""
        for of, column, above, new_arm in self.model.divisions:
            if arm == of and vector is not None and vector[column] > above:
                arm = new_arm
        return arm

    def divide(self, arm: int, column: int, above: int, new_arm: int) -> None:
        """Split an arm."""
        self.model.divisions.append((arm, column, above, new_arm))
        self.frontier.divide(arm, column, above, new_arm)
        for key, waits in self.model.waiting.items():
            if waits.arm == arm and waits.memo is not None and waits.memo[column] > above:
                self.model.waiting[key] = waits._replace(arm=new_arm)

    def draw(
        self,
        counts: Mapping[int, int] | Sequence[int],
        seed: int,
        busy: Collection[str] = (),
        closed: Sequence[bool] | None = None,
    ) -> Draw:
        """Draw links, and return them."""
        shut = self._shut(busy, closed)
        wanted: list[int] = []
        for arm, count in sorted(counts.items() if isinstance(counts, dict) else enumerate(counts)):
            if self.keys_in(arm, shut):
                wanted += [arm] * count
        drawn = self._drawn(self.frontier, counts, seed, busy, closed)
        arms = drawn.arms.tolist()
        require(arms == wanted, f"draw({counts}) gave links of the arms {arms}, it should be {wanted}")
        hosts = {self.frontier.hosts[host] for host in drawn.hosts}
        require(not hosts & shut, f"draw() gave links of {sorted(hosts & shut)}, which are busy or closed")
        for host, arm, vector in zip(drawn.hosts, arms, drawn.vectors.tolist(), strict=True):
            keys = [key for key in self.keys_in(arm) if host_of(key) == self.frontier.hosts[host]]
            vectors = [self.model.waiting[key].memo for key in keys]
            require(tuple(vector) in vectors, f"draw() gave the vector {vector}, which no link queued in arm {arm} has")
        self._draw_otherwise(drawn, counts, seed, busy, closed)
        return drawn

    def draw_from_another(self, counts: Sequence[int], seed: int, busy: Collection[str] = ()) -> None:
        """Draw the same links from a new frontier with the same queue."""
        fresh = self._make(Vectors(WIDTH))
        others = DrawnMachine(fresh, self._make)
        oldest = sorted(self.model.waiting.items(), key=lambda each: each[1].age)
        others.push([(key, Placement(waits.arm, 0.0, _memo(waits.memo))) for key, waits in oldest], 0)
        one, other = self._drawn(self.frontier, counts, seed, busy), self._drawn(fresh, counts, seed, busy)
        same = one.arms.tolist() == other.arms.tolist() and one.vectors.tolist() == other.vectors.tolist()
        require(same, "draw() gave other links than a new frontier with the same queue")
        fresh.close()

    def draw_all(self, busy: Collection[str] = (), closed: Sequence[bool] | None = None) -> Draw:
        """Get every link once, oldest first in each arm, and the oldest of each; nothing changes."""
        everything = self._drawn(self.frontier, None, 0, busy, closed)
        shut = self._shut(busy, closed)
        keys = [key for key in self.model.waiting if host_of(key) not in shut]
        order = sorted(keys, key=lambda key: (self.model.waiting[key].arm, self.model.waiting[key].age))
        wanted = [self.model.waiting[key] for key in order]
        got = list(zip(everything.arms.tolist(), map(tuple, everything.vectors.tolist()), strict=True))
        require(got == [(each.arm, each.memo) for each in wanted], f"draw(None) gave {got}, it should be {wanted}")
        hosts = [self.frontier.hosts[host] for host in everything.hosts]
        require(
            hosts == [host_of(key) for key in order], "draw(None) gave links of other hosts than those of its links"
        )
        self.draw_oldest([1 + arm % 3 for arm in range(len(self.frontier.waiting) + 1)], busy, closed)
        return everything

    def draw_oldest(
        self, counts: Sequence[int], busy: Collection[str] = (), closed: Sequence[bool] | None = None
    ) -> None:
        """Get the oldest links of each arm, each once; nothing changes."""
        found = self._drawn(self.frontier, counts, None, busy, closed)
        shut = self._shut(busy, closed)
        wanted = []
        for arm, count in enumerate(counts):
            keys = sorted(self.keys_in(arm, shut), key=lambda key: self.model.waiting[key].age)[:count]
            wanted += [(arm, host_of(key), self.model.waiting[key].memo) for key in keys]
        hosts = [self.frontier.hosts[host] for host in found.hosts]
        got = list(zip(found.arms.tolist(), hosts, map(tuple, found.vectors.tolist()), strict=True))
        require(got == wanted, f"draw({counts}, None) gave {got}, it should be {wanted}")

    def take_drawn(self, drawn: Draw, at: int) -> None:
        """Take one of the drawn links; a second time it is not there."""
        slot, arm, vector = int(drawn.slots[at]), int(drawn.arms[at]), tuple(drawn.vectors[at].tolist())
        pick = self.frontier.take_drawn(slot)
        require(pick is not None, f"take_drawn() gave nothing for a link that was drawn from arm {arm}")
        if pick is None:
            return
        require(pick.key in self.model.waiting, f"take_drawn() gave the key {pick.key}, which is not queued")
        known = self.model.waiting[pick.key]
        got = pick.arm, as_tuple(pick.memo)
        same = got == (known.arm, known.memo) == (arm, vector)
        require(same, f"what was drawn as {arm, vector} is {known.arm, known.memo}, and was taken as {got}")
        require(pick.memo is not None and pick.memo.dtype == np.uint8, f"a pick has the memo {pick.memo!r}, not bytes")
        self.fly(pick)
        require(self.frontier.take_drawn(slot) is None, "take_drawn() gave a link twice")

    def drop(self, drawn: Draw) -> None:
        """Give up drawn links, with repetitions and missing ones."""
        keys = self._keys_of(drawn)
        said = self.frontier.drop([*drawn.slots.tolist(), 1 << 30, -1])
        require(said == len(keys), f"drop() of {len(keys)} links said {said}")
        self.give_up(keys)

    def compare(self, busy: Collection[str] = ("b",)) -> None:
        super().compare(busy)
        asleep = {key: waits for key, (waits, _) in self.model.asleep.items()}
        keys = [*self.model.waiting, *asleep, -1]
        vectors = [list(each.memo or ()) for each in [*self.model.waiting.values(), *asleep.values()]] + [[0] * WIDTH]
        require(self.frontier.vectors(keys).tolist() == vectors, "vectors() does not say what was pushed last")
        self.draw_all()
        self._compare_kept([arm for arm in range(len(self.frontier.waiting)) if arm % 2])

    def _compare_kept(self, arms: Sequence[int]) -> None:
        """Check that queued and sleeping links are returned with their URLs, times and vectors."""
        kept = self.frontier.kept(arms)
        urls = self.frontier.urls(kept.numbers.tolist())
        got = sorted(zip(urls, kept.due.tolist(), map(tuple, kept.vectors.tolist()), strict=True))
        waiting, asleep = self.model.waiting.items(), self.model.asleep.items()
        wanted = [(link(key).url, 0.0, waits.memo) for key, waits in waiting if waits.arm in arms]
        wanted += [(link(key).url, after, waits.memo) for key, (waits, after) in asleep]
        require(got == sorted(wanted), f"kept({arms}) gave {got}, it should be {sorted(wanted)}")

    def step(self, rng: np.random.Generator) -> None:
        action = int(rng.integers(0, 12))
        if action < 4:
            self.push(list(self.random_pushes(rng, _random_place)), int(rng.integers(-1, 99)))
        elif action == 4:
            self._divide_any(rng)
        elif action < 7:
            self.land_any(rng)
        elif action == 7:
            self.take_any(rng)
        elif action == 11:
            self.wake_any(rng)
        else:
            self._draw_any(rng, action)

    def _divide_any(self, rng: np.random.Generator) -> None:
        new_arm = _ARMS + len(self.model.divisions)
        if new_arm < _ARMS + _MOST_DIVISIONS and rng.random() < 0.2:
            self.divide(int(rng.integers(0, new_arm)), int(rng.integers(WIDTH)), int(rng.integers(8)), new_arm)

    def _draw_any(self, rng: np.random.Generator, action: int) -> None:
        closed = (rng.random(len(self.frontier.hosts)) < 0.3).tolist() if rng.random() < 0.5 else None
        counts = rng.integers(0, 3, len(self.frontier.waiting)).tolist()
        drawn = self.draw(counts, int(rng.integers(1000)), some_hosts(rng), closed)
        if action == 8 and len(drawn.slots):
            self.take_drawn(drawn, int(rng.integers(len(drawn.slots))))
        elif action == 9:
            self.drop(drawn._replace(slots=drawn.slots[:1]))
        elif rng.random() < 0.1:
            self.draw_from_another(counts, int(rng.integers(1000)), some_hosts(rng))
            self.draw_all(some_hosts(rng), closed)

    def _draw_otherwise(
        self, drawn: Draw, counts: Mapping[int, int] | Sequence[int], seed: int, busy: Collection[str], closed: Any
    ) -> None:
        """Draw the same with a mapping in place of an array, or the other way round."""
        if isinstance(counts, dict):
            other: Any = [counts.get(arm, 0) for arm in range(max(counts, default=-1) + 1)]
        else:
            other = {arm: count for arm, count in enumerate(counts) if count}
        slots = self._drawn(self.frontier, other, seed, busy, closed).slots.tolist()
        require(slots == drawn.slots.tolist(), f"draw({counts}) and draw({other}) gave other links")

    def _keys_of(self, drawn: Draw) -> set[int]:
        """Return the keys of what was drawn, which only a pick reveals, and the other queued keys."""
        before = self.frontier.draw(None, np.random.default_rng(0))
        order = sorted(self.model.waiting, key=lambda key: (self.model.waiting[key].arm, self.model.waiting[key].age))
        keys = dict(zip(before.slots.tolist(), order, strict=True))
        return {keys[slot] for slot in drawn.slots.tolist()}

    def _shut(self, busy: Collection[str], closed: Sequence[bool] | None) -> set[str]:
        names = zip(self.frontier.hosts, closed or (), strict=False)
        return {*busy, *(name for name, is_closed in names if is_closed)}

    def _drawn(
        self,
        frontier: Drawn,
        counts: Mapping[int, int] | Sequence[int] | None,
        seed: int | None,
        busy: Collection[str],
        closed: Sequence[bool] | None = None,
    ) -> Draw:
        rng = None if seed is None else np.random.default_rng(seed)
        how = counts if counts is None or isinstance(counts, dict) else np.array(counts, np.int64)
        shut = None if closed is None else np.array(closed, np.bool_)
        return frontier.draw(how, rng, busy=busy, closed=shut)


def _memo(vector: Sequence[float] | None) -> Any:
    if vector is None:
        return None
    return np.array(vector, np.uint8)


def _random_place(rng: np.random.Generator) -> Placement:
    memo = None if rng.random() < 0.1 else rng.integers(0, 8, WIDTH).astype(np.uint8)
    return Placement(int(rng.integers(0, _ARMS)), 0.0, memo, METHODS[int(rng.integers(len(METHODS)))])
