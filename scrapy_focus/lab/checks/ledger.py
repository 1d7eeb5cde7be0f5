"""A frontier beside a dictionary as its model: the operations that all frontiers have.

Each operation is one method: it changes the frontier, compares the result, and changes the model likewise. The caller
chooses the operations and their arguments: a random generator here, Hypothesis in the tests of this package.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast

import numpy as np

from scrapy_focus.core.errors import FrontierError
from scrapy_focus.core.types import Link, Pick, Placement, State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Drawn, Ranked, Sleeping

HOSTS = ("a", "b", "c", "d")
_WOKEN_SINGLY = 20  # links
F = TypeVar("F", bound="Ranked | Drawn")


class Waits(NamedTuple):
    """How a link is queued by the model; ``place`` has its current arm, and its memo as a tuple."""

    age: int
    origin: int
    arm: int
    rank: float
    memo: tuple[float, ...] | None
    method: str


@dataclass
class Model:
    """The expected content of a frontier: queued links by key, or until when they sleep; picks in flight by id; keys
    seen.
    """

    waiting: dict[int, Waits] = field(default_factory=dict)
    asleep: dict[int, tuple[Waits, float]] = field(default_factory=dict)
    woke: float = 0.0  # until when all were woken
    flying: dict[int, tuple[int, Waits]] = field(default_factory=dict)
    seen: dict[int, State] = field(default_factory=dict)
    divisions: list[tuple[int, int, int, int]] = field(default_factory=list)
    next_age: int = 0


class LedgerMachine(ABC, Generic[F]):
    """The operations of a :class:`~scrapy_focus.core.frontier.Frontier`, on one that is empty at first."""

    def __init__(self, frontier: F) -> None:
        self.frontier = frontier
        self.model = Model()
        self.sleeping = all(hasattr(frontier, name) for name in ("asleep", "next_due", "wake"))
        require(len(frontier) == 0, f"a new frontier must be empty, it has {len(frontier)} links")

    @abstractmethod
    def step(self, rng: np.random.Generator) -> None:
        """Do one operation, drawn at random."""

    @abstractmethod
    def placed(self, key: int, place: Placement) -> tuple[int, tuple[float, ...] | None]:
        """Return the arm and the memo of a link with this placement."""

    def push(self, pushed: Sequence[tuple[int, Placement | None]], origin: int) -> None:
        """Push links; a key may be repeated."""
        before = len(self.model.waiting) + len(self.model.asleep)
        for key, place in pushed:
            if place is None:
                self._refuse(key)
            elif key not in self.in_flight():
                self._place(key, place, origin)
        links = [link(key) for key, _ in pushed]
        added = self.frontier.push(links, [place for _, place in pushed], origin=origin)
        wanted = len(self.model.waiting) + len(self.model.asleep) - before
        require(added == wanted, f"push() said {added} new links, it was {wanted}")

    def take(self, key: int) -> None:
        """Take out a link by its key, if it is queued."""
        self._took(key, self.frontier.take(key))

    def take_as(self, key: int) -> None:
        """Take out a link with a chosen id."""
        pick_id = 1000 + len(self.model.flying)
        while pick_id in self.model.flying:
            pick_id += 1
        pick = self.frontier.take(key, pick_id=pick_id)
        require(pick is None or pick.id == pick_id, f"take() gave {pick}, its id should be {pick_id}")
        self._took(key, pick)

    def wake(self, now: float) -> None:
        """Wake all links that are due, one after the other if they are many."""
        if not self.sleeping:
            return
        due = [key for key, (_, after) in self.model.asleep.items() if after <= now]
        frontier = cast("Sleeping", self.frontier)
        parts = [1] * (len(due) - 2) if len(due) < _WOKEN_SINGLY else []
        for left, part in enumerate(parts):
            said = frontier.wake(now, part)
            require(said == 1, f"wake({now}, 1) woke {said} links, it should be 1")
            require(frontier.asleep == len(self.model.asleep) - left - 1, "wake(..., 1) woke more than it said")
        said, rest = frontier.wake(now), len(due) - len(parts)
        require(said == rest, f"wake({now}) woke {said} links, it should be {rest}")
        self.model.woke = max(self.model.woke, now)
        for key in due:
            self.model.waiting[key] = self.landed(self.model.asleep.pop(key)[0])

    def settle(self, pick_id: int, also: Collection[int] = ()) -> None:
        """Settle a pick."""
        key, waits = self.model.flying.pop(pick_id)
        self.frontier.settle(self.frontier.flying[pick_id], also)
        self.model.seen[key] = State.PROBED if waits.method == "HEAD" else State.FETCHED
        for other in also:
            if self.state(other) in (State.NEW, State.GIVEN_UP):
                self.model.seen[other] = State.FETCHED

    def release(self, pick_id: int) -> None:
        """Queue a pick again."""
        key, waits = self.model.flying.pop(pick_id)
        self.frontier.release(self.frontier.flying[pick_id])
        self.model.waiting[key] = self.landed(waits)

    def landed(self, waits: Waits) -> Waits:
        """Return the placement of a link that was in flight."""
        return waits

    def end(self) -> None:
        """Settle a pick twice, and close the frontier twice."""
        for pick_id in list(self.model.flying)[:1]:
            pick = self.frontier.flying[pick_id]
            self.settle(pick_id)
            try:
                self.frontier.settle(pick)
            except FrontierError:
                continue
            raise AssertionError("settling a pick twice must raise FrontierError")
        self.frontier.close()
        self.frontier.close()

    def compare(self, busy: Collection[str] = ("b",)) -> None:
        """Compare the whole frontier with the model."""
        self.frontier.check()
        waiting = self.model.waiting
        require(
            len(self.frontier) == len(waiting), f"{len(self.frontier)} links are queued, it should be {len(waiting)}"
        )
        self._compare_counts(busy)
        self._compare_sleepers()
        keys = [*waiting, *self.model.asleep, *self.in_flight(), *self.model.seen, -1]
        said = dict(zip(keys, self.frontier.states(keys), strict=True))
        for key, state in said.items():
            require(state == self.state(key), f"states() says that {key} is {state!r}, it is {self.state(key)!r}")
        flying = {id_: pick.key for id_, pick in self.frontier.flying.items()}
        wanted = {id_: key for id_, (key, _) in self.model.flying.items()}
        require(flying == wanted, f"flying has the picks {flying}, it should be {wanted}")
        for id_, (key, waits) in self.model.flying.items():
            self._compare_pick(self.frontier.flying[id_], key, waits)

    def state(self, key: int) -> State:
        """Return the state of a key by the model."""
        if self.placed_before(key) is not None:
            return State.WAITING
        if key in self.in_flight():
            return State.FLYING
        return self.model.seen.get(key, State.NEW)

    def placed_before(self, key: int) -> Waits | None:
        """Return the placement of a queued or sleeping link by the model."""
        return self.model.waiting.get(key) or self.model.asleep.get(key, (None,))[0]

    def in_flight(self) -> set[int]:
        """Return the keys in flight by the model."""
        return {key for key, _ in self.model.flying.values()}

    def keys_in(self, arm: int, shut: Collection[str] = ()) -> list[int]:
        """Return the keys queued in an arm by the model, on hosts that are not shut."""
        return [key for key, waits in self.model.waiting.items() if waits.arm == arm and host_of(key) not in shut]

    def fly(self, pick: Pick) -> None:
        """Record that a link was taken out, as this pick."""
        require(pick.key in self.model.waiting, f"a pick has the key {pick.key}, which is not queued")
        waits = self.model.waiting.pop(pick.key)
        require(pick.id not in self.model.flying, f"a pick has the id {pick.id}, which one in flight has")
        self._compare_pick(pick, pick.key, waits)
        self.model.flying[pick.id] = pick.key, waits

    def give_up(self, keys: Collection[int]) -> None:
        """Record that these links are not queued any more."""
        for key in keys:
            self.model.waiting.pop(key, None)
            self.model.asleep.pop(key, None)
            self.model.seen[key] = State.GIVEN_UP

    def random_pushes(
        self, rng: np.random.Generator, place: Callable[[np.random.Generator], Placement]
    ) -> Iterator[tuple[int, Placement | None]]:
        """Yield some random links, one in ten without a placement."""
        for key in rng.integers(0, 120, int(rng.integers(1, 7))).tolist():
            yield key, None if rng.random() < 0.1 else self.perhaps_later(rng, place(rng))

    def perhaps_later(self, rng: np.random.Generator, place: Placement) -> Placement:
        """Return a placement or, once in three times, the same at a time soon."""
        if not self.sleeping or rng.random() < 0.67:
            return place
        return place._replace(after=self.model.woke + float(rng.integers(-2, 9)))

    def wake_any(self, rng: np.random.Generator) -> None:
        """Let some time pass, or ask for a time that has passed."""
        self.wake(self.model.woke + float(rng.integers(-1, 3)))

    def land_any(self, rng: np.random.Generator) -> None:
        """Settle or release one pick, if any flies."""
        if not self.model.flying:
            return
        pick_id = any_of(rng, self.model.flying)
        if rng.random() < 0.5:
            self.release(pick_id)
        else:
            self.settle(pick_id, rng.integers(0, 120, 2).tolist() if rng.random() < 0.3 else ())

    def take_any(self, rng: np.random.Generator) -> None:
        """Take out some link by its key."""
        known = {**self.model.waiting, **self.model.asleep}
        key = any_of(rng, known) if known else 0
        (self.take if rng.random() < 0.5 else self.take_as)(key)

    def _place(self, key: int, place: Placement, origin: int) -> None:
        old = self.placed_before(key)
        arm, memo = self.placed(key, place)
        age, origin = (self.model.next_age, origin) if old is None else (old.age, old.origin)
        self.model.next_age += old is None
        waits = Waits(age, origin, arm, place.rank, memo, place.method)
        self.model.seen.pop(key, None)
        self.model.waiting.pop(key, None)
        self.model.asleep.pop(key, None)
        if place.after > self.model.woke:
            self.model.asleep[key] = waits, place.after
        else:
            self.model.waiting[key] = waits

    def _refuse(self, key: int) -> None:
        if self.state(key) == State.NEW:
            self.model.seen[key] = State.GIVEN_UP

    def _took(self, key: int, pick: Pick | None) -> None:
        got = None if pick is None else pick.key
        wanted = key if key in self.model.waiting else None
        require(got == wanted, f"take({key}) gave the key {got}, it should be {wanted}")
        if pick is not None:
            self.fly(pick)

    def _compare_counts(self, busy: Collection[str]) -> None:
        waiting, awake = self.frontier.waiting, self.frontier.awake(busy)
        require(
            sum(waiting) == len(self.model.waiting), f"arms hold {sum(waiting)} links in all, it should be another sum"
        )
        for arm, (said, open_) in enumerate(zip(waiting.tolist(), awake.tolist(), strict=True)):
            wanted = len(self.keys_in(arm))
            require(said == wanted, f"arm {arm} holds {said} links, it should be {wanted}")
            wanted = len(self.keys_in(arm, busy))
            require(open_ == wanted, f"arm {arm} has {open_} links awake, it should be {wanted}")

    def _compare_sleepers(self) -> None:
        if not self.sleeping:
            return
        frontier, asleep = cast("Sleeping", self.frontier), self.model.asleep
        require(frontier.asleep == len(asleep), f"{frontier.asleep} links sleep, it should be {len(asleep)}")
        due = min((after for _, after in asleep.values()), default=None)
        require(frontier.next_due == due, f"the next link is due at {frontier.next_due}, it should be {due}")

    def _compare_pick(self, pick: Pick, key: int, waits: Waits) -> None:
        found = link(key)
        got = pick.key, pick.url, pick.host, pick.depth, pick.payload, pick.origin
        wanted = found.key, found.url, found.host, found.depth, found.payload, waits.origin
        require(got == wanted, f"a pick came out as {got} that went in as {wanted}")
        place = pick.arm, pick.rank, as_tuple(pick.memo), pick.method
        require(place == waits[2:], f"a pick came out with the place {place} that went in with {tuple(waits[2:])}")


def link(key: int) -> Link:
    """Return the link of a key: all is made of it."""
    host = host_of(key)
    return Link(f"http://{host}/{key}", key, host, key % 9, payload=b"%d" % key)


def host_of(key: int) -> str:
    """Return the host of a link."""
    return HOSTS[key % 7 % 4]


def as_tuple(memo: NDArray[np.generic] | None) -> tuple[float, ...] | None:
    """Return a memo so that it can be compared."""
    if memo is None:
        return None
    return tuple(np.asarray(memo).tolist())


def any_of(rng: np.random.Generator, numbers: Mapping[int, object]) -> int:
    """Return one of some numbers."""
    return int(rng.choice(list(numbers)))


def some_hosts(rng: np.random.Generator) -> set[str]:
    """Return some hosts, and an unknown one."""
    return {host for host in (*HOSTS, "unknown") if rng.random() < 0.3}


def require(condition: object, what: str) -> None:
    """Raise AssertionError where something does not hold."""
    if not condition:
        raise AssertionError(what)
