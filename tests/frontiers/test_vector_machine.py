"""Frontiers that keep vectors against a dictionary, by Hypothesis: any order of operations, and what is drawn after them."""

from __future__ import annotations

import copy
import math
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from scrapy_focus import Link, Pick, Placement, State, memory_frontier
from scrapy_focus.frontiers.drawn import chunks as members
from scrapy_focus.frontiers.sqlite.frontier import SqliteFrontier

WIDTH = 3
KEYS = st.integers(0, 40)
HOSTS = ["a", "b", "c", "d"]
BUSY = st.sets(st.sampled_from([*HOSTS, "unknown"]), max_size=2)
ARMS = st.integers(0, 12)
CODES = st.one_of(st.none(), st.tuples(*[st.integers(0, 3)] * WIDTH))
SIZES = [(4096, 32), (2, 1), (3, 2), (5, 2)]


class Waits(NamedTuple):
    """How a link waits by the model."""

    age: int
    arm: int
    vector: tuple[int, ...]
    method: str
    origin: int


class VectorMachine(RuleBasedStateMachine):
    """``waiting`` maps a key to how it waits, ``flying`` the id of a pick to its key and that."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = members.SIZE, members.LAZY
        self.frontier: Any = self.make()
        self.waiting: dict[int, Waits] = {}
        self.flying: dict[int, tuple[int, Waits]] = {}
        self.done: dict[int, State] = {}
        self.divisions: list[tuple[int, int, int, int]] = []
        self.next_age = 0

    def make(self) -> Any:
        return memory_frontier()

    @initialize(sizes=st.sampled_from(SIZES))
    def begin(self, sizes: tuple[int, int]) -> None:
        """Let chunks be short or long, and divisions put off or not."""
        members.SIZE, members.LAZY = sizes
        self.frontier.keep_vectors(WIDTH)

    def teardown(self) -> None:
        members.SIZE, members.LAZY = self.sizes
        self.frontier.close()

    @rule(
        pushed=st.lists(st.tuples(KEYS, st.one_of(st.none(), st.tuples(ARMS, CODES)), st.booleans()), max_size=12),
        origin=ARMS,
        moves=st.booleans(),
    )
    def push(self, pushed: list[tuple[int, Any, bool]], origin: int, moves: bool) -> None:
        """Links come, or get another vector, by push or move; keys may come twice."""
        before = len(self.waiting)
        places: list[Placement | None] = []
        for key, place, heads in pushed:
            method = "HEAD" if heads else "GET"
            places.append(place and Placement(place[0], 3.0, _memo(place[1]), method))
            if key in self._in_flight() or (moves and key not in self.waiting):
                continue
            if place is None:
                if moves:
                    del self.waiting[key]
                    self.done[key] = State.FETCHED
                elif key not in self.waiting:
                    self.done.setdefault(key, State.FETCHED)
                continue
            age, old = self.next_age, None
            if key in self.waiting:
                age, _, old, _, its_origin = self.waiting[key]
            else:
                its_origin, self.next_age = origin, self.next_age + 1
            vector = old if place[1] is None and old is not None else place[1] or (0,) * WIDTH
            self.waiting[key] = Waits(age, self._followed(place[0], vector), vector, method, its_origin)
            self.done.pop(key, None)
        if moves:
            self.frontier.move([key for key, _, _ in pushed], places)
        else:
            added = self.frontier.push([_link(key) for key, _, _ in pushed], places, origin=origin)
            assert added == len(self.waiting) - before

    @rule(arm=ARMS, column=st.integers(0, WIDTH - 1), above=st.integers(0, 3))
    def divide(self, arm: int, column: int, above: int) -> None:
        """The links of an arm wait in two from now on."""
        new_arm = 10 + len(self.divisions)
        arm = min(arm, new_arm - 1)
        self.divisions.append((arm, column, above, new_arm))
        self.frontier.divide(arm, column, above, new_arm)
        for key, waits in self.waiting.items():
            if waits.arm == arm and waits.vector[column] > above:
                self.waiting[key] = waits._replace(arm=new_arm)

    @precondition(lambda self: self.divisions)
    @rule(data=st.data(), column=st.integers(0, WIDTH - 1), above=st.integers(0, 3))
    def divide_again(self, data: st.DataObject, column: int, above: int) -> None:
        """A new arm is divided."""
        self.divide(data.draw(st.sampled_from(self.divisions))[3], column, above)

    @rule(
        counts=st.lists(st.integers(0, 3), max_size=16),
        busy=BUSY,
        closed=st.one_of(st.none(), st.lists(st.booleans(), max_size=5)),
        seed=st.integers(0, 1000),
    )
    def draw(self, counts: list[int], busy: set[str], closed: list[bool] | None, seed: int) -> None:
        """What is drawn waits in its arm on a host that takes something, and is what a new frontier would draw."""
        shut = busy | {name for name, each in zip(self.frontier.hosts, closed or [], strict=False) if each}
        drawn = self._drawn(self.frontier, counts, seed, busy, closed)
        expected = []
        for arm, count in enumerate(counts):
            if any(waits.arm == arm and _link(key).host not in shut for key, waits in self.waiting.items()):
                expected += [arm] * count
        assert [arm for _, arm, _, _ in drawn] == expected
        for key, arm, host, vector in drawn:
            assert self.waiting[key][1:3] == (arm, vector)
            assert host == _link(key).host not in shut
        fresh = self._fresh()
        names = [name in shut for name in fresh.hosts]
        assert drawn == self._drawn(fresh, counts, seed, (), names if closed is not None or busy else None)

    @rule(arm=st.integers(0, 14), seed=st.integers(0, 99))
    def take_drawn(self, arm: int, seed: int) -> None:
        """A link that was drawn can be taken out, once."""
        slots = self.frontier.draw(np.bincount([arm]), np.random.default_rng(seed)).slots
        assert len(slots) == any(waits.arm == arm for waits in self.waiting.values())
        for slot in slots.tolist():
            self._fly(self.frontier.take_slot(slot))
            assert self.frontier.take_slot(slot) is None

    @rule(counts=st.lists(st.integers(0, 2), max_size=14), seed=st.integers(0, 99))
    def give_up(self, counts: list[int], seed: int) -> None:
        drawn = self.frontier.draw(np.array(counts, np.int64), np.random.default_rng(seed))
        keys = set(self._keys(self.frontier, drawn))
        assert self.frontier.give_up(drawn.slots) == len(keys)
        for key in keys:
            del self.waiting[key]
            self.done[key] = State.FETCHED

    @rule(arm=st.integers(0, 14), busy=BUSY)
    def pop(self, arm: int, busy: set[str]) -> None:
        """The oldest link of an arm comes."""
        ages = {
            waits.age: key for key, waits in self.waiting.items() if waits.arm == arm and _link(key).host not in busy
        }
        pick = self.frontier.pop(arm, busy)
        assert (pick and pick.key) == (ages[min(ages)] if ages else None)
        if pick is not None:
            self._fly(pick)

    @rule(key=KEYS)
    def take(self, key: int) -> None:
        pick = self.frontier.take(key)
        assert (pick is not None) == (key in self.waiting)
        if pick is not None:
            self._fly(pick)

    @rule(key=KEYS)
    def steer(self, key: int) -> None:
        """A link that waits comes, whichever slot is asked for."""
        pick_id = 1000 + len(self.flying)
        self.frontier.steer(key, pick_id)
        if key in self.waiting and pick_id not in self.flying:
            pick = self.frontier.take_slot(-1)
            assert (pick.key, pick.id) == (key, pick_id)
            self._fly(pick)
        assert self.frontier.take_slot(-1) is None
        self.frontier.let_go()

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), release=st.booleans())
    def land(self, data: st.DataObject, release: bool) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.flying)))
        key, waits = self.flying.pop(id_)
        pick = self.frontier.flying[id_]
        if release:
            self.frontier.release(pick)
            self.waiting[key] = waits._replace(arm=self._followed(waits.arm, waits.vector))
        else:
            self.frontier.settle(pick)
            self.done[key] = State.PROBED if waits.method == "HEAD" else State.FETCHED

    @rule(arm=st.integers(0, 14), k=st.integers(0, 6), busy=BUSY, seed=st.integers(0, 9))
    def sample(self, arm: int, k: int, busy: set[str], seed: int) -> None:
        drawn = [link for link, _ in self.frontier.sample(arm, k, np.random.default_rng(seed), busy)]
        open_ = {key for key, waits in self.waiting.items() if waits.arm == arm and _link(key).host not in busy}
        assert len({link.key for link in drawn}) == len(drawn) == min(k, len(open_))
        assert {link.key for link in drawn} <= open_

    @rule(busy=BUSY, closed=st.one_of(st.none(), st.lists(st.booleans(), max_size=5)))
    def everything(self, busy: set[str], closed: list[bool] | None) -> None:
        """All that is open comes once, by arm and age."""
        shut = busy | {name for name, each in zip(self.frontier.hosts, closed or [], strict=False) if each}
        all_ = self.frontier.everything(busy=busy, closed=None if closed is None else np.array(closed, np.bool_))
        open_ = sorted((w.arm, w.age, key) for key, w in self.waiting.items() if _link(key).host not in shut)
        assert self._keys(self.frontier, all_) == [key for _, _, key in open_]
        assert all_.arms.tolist() == [arm for arm, _, _ in open_]

    @invariant()
    def agrees(self) -> None:
        """Counts, states, vectors, picks in flight and what each arm holds are those of the dictionary."""
        self.frontier.check()
        states = {
            **dict.fromkeys(range(-1, 42), State.NEW),
            **self.done,
            **dict.fromkeys(self.waiting, State.WAITING),
            **dict.fromkeys(self._in_flight(), State.FLYING),
        }
        assert self.frontier.states(list(states)) == list(states.values())
        assert len(self.frontier) == len(self.waiting)
        flying = {id_: (p.key, p.arm, tuple(p.memo), p.method, p.origin) for id_, p in self.frontier.flying.items()}
        assert flying == {id_: (key, *waits[1:]) for id_, (key, waits) in self.flying.items()}
        awake = self.frontier.awake({"a"})
        for arm, (count, head) in enumerate(zip(self.frontier.waiting, self.frontier.heads, strict=True)):
            mine = {key: waits for key, waits in self.waiting.items() if waits.arm == arm}
            assert (count, awake[arm]) == (len(mine), sum(_link(key).host != "a" for key in mine))
            assert head == (0.0 if mine else -math.inf)
            held = [
                (link.key, place.arm, tuple(place.memo), place.method, link.host)
                for link, place in self.frontier.scan(arm)
            ]
            in_order = sorted(mine.items(), key=lambda each: each[1].age)
            assert held == [(key, arm, waits.vector, waits.method, _link(key).host) for key, waits in in_order]
        assert sum(self.frontier.waiting) == len(self.waiting)
        found = self.frontier.vectors([*self.waiting, 99]).tolist()
        assert found == [*(list(waits.vector) for waits in self.waiting.values()), [0] * WIDTH]
        counts = dict(zip(self.frontier.hosts, self.frontier.host_waiting.tolist(), strict=True))
        for host in HOSTS:
            assert counts.get(host, 0) == sum(_link(key).host == host for key in self.waiting)

    def _drawn(self, frontier: Any, counts: Any, seed: int, busy: Any, closed: Any) -> list[tuple[Any, ...]]:
        rng = np.random.default_rng(seed)
        closed = None if closed is None else np.array(closed, np.bool_)
        drawn = frontier.draw(np.array(counts, np.int64), rng, busy=busy, closed=closed)
        keys, vectors = self._keys(frontier, drawn), map(tuple, drawn.vectors.tolist())
        return list(zip(keys, drawn.arms.tolist(), [frontier.hosts[i] for i in drawn.hosts], vectors, strict=True))

    def _keys(self, frontier: Any, drawn: Any) -> list[int]:
        return [link.key for link, _ in frontier._views(drawn.slots.tolist())]

    def _fresh(self) -> memory_frontier:
        """Return a frontier in which the same waits, and nothing ever happened."""
        frontier = memory_frontier()
        frontier.keep_vectors(WIDTH)
        in_order = sorted(self.waiting.items(), key=lambda each: each[1].age)
        places = [Placement(waits.arm, 0.0, np.array(waits.vector, np.uint8)) for _, waits in in_order]
        frontier.push([_link(key) for key, _ in in_order], places)
        return frontier

    def _followed(self, arm: int, vector: tuple[int, ...]) -> int:
        for of, column, above, new_arm in self.divisions:
            if arm == of and vector[column] > above:
                arm = new_arm
        return arm

    def _in_flight(self) -> set[int]:
        return {key for key, _ in self.flying.values()}

    def _fly(self, pick: Pick) -> None:
        waits, link = self.waiting.pop(pick.key), _link(pick.key)
        assert (pick.url, pick.host, pick.payload) == (link.url, link.host, link.payload)
        assert (pick.arm, tuple(pick.memo), pick.method, pick.origin) == waits[1:]
        assert (pick.rank, pick.memo.dtype) == (0.0, np.float32)
        self.flying[pick.id] = pick.key, waits


class StoredVectorMachine(VectorMachine):
    """Also opens the file again, and tells all divisions then: ``stored`` is the model as it was at the last checkpoint."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.stored: tuple[Any, ...] = ({}, {}, {}, [], 0)
        super().__init__()

    def make(self) -> SqliteFrontier:
        return SqliteFrontier(Path(self.folder.name) / "frontier.sqlite")

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()

    @rule()
    def checkpoint(self) -> None:
        self.frontier.checkpoint()
        self.stored = copy.deepcopy((self.waiting, self.flying, self.done, self.divisions, self.next_age))

    @rule(tells=st.booleans(), kills=st.booleans())
    def reopen(self, tells: bool, kills: bool) -> None:
        """After a checkpoint nothing is lost, after a kill what came later; the divisions are told again."""
        if not kills:
            self.checkpoint()
        self.frontier.close()
        self.frontier = self.make()
        self.frontier.keep_vectors(WIDTH)
        self.waiting, self.flying, self.done, self.divisions, self.next_age = copy.deepcopy(self.stored)
        for division in self.divisions * (1 + tells):
            self.frontier.divide(*division)


def _memo(codes: tuple[int, ...] | None) -> Any:
    return None if codes is None else np.array(codes, np.float32)


def _link(key: int) -> Link:
    host = HOSTS[min(key % 7, 3)]
    return Link(f"http://{host}/{key}", key, host, payload=bytes([key]))


TestMemory = VectorMachine.TestCase
TestMemory.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestSqlite = StoredVectorMachine.TestCase
TestSqlite.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
