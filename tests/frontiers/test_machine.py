"""Frontiers against a dictionary, by Hypothesis: any order of operations; those on disk are opened again at any step."""

from __future__ import annotations

import copy
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scrapy_focus import Link, Pick, Placement, State, memory_frontier
from scrapy_focus.frontiers.ranked import queue as index
from scrapy_focus.frontiers.ranked import runs
from scrapy_focus.frontiers.sqlite.frontier import SqliteFrontier

KEYS = st.integers(0, 30)
HOSTS = ["a", "b", "c"]
BUSY = st.sets(st.sampled_from([*HOSTS, "unknown"]))
ARMS = st.integers(0, 4)
RANKS = st.one_of(st.integers(-3, 3).map(float), st.floats(allow_nan=False).map(lambda rank: rank + 0.0))
PLACES = st.builds(
    Placement,
    ARMS,
    RANKS,
    st.one_of(st.none(), st.just(np.array([1.5], np.float32))),
    st.sampled_from(["GET", "HEAD"]),
)
SIZES = [(512, 8, 16), (2, 2, 1), (3, 2, 2)]


class FrontierMachine(RuleBasedStateMachine):
    """``waiting`` maps a key to its placement and the origin of its first push, ``flying`` the id of a pick to both."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = runs.HOT, runs.FAN, index.TINY
        self.frontier: Any = self.make()
        self.waiting: dict[int, tuple[Placement, int]] = {}
        self.flying: dict[int, tuple[Pick, Placement, int]] = {}
        self.done: dict[int, State] = {}

    def make(self) -> Any:
        return memory_frontier()

    def teardown(self) -> None:
        runs.HOT, runs.FAN, index.TINY = self.sizes
        self.frontier.close()

    @precondition(lambda self: not self.waiting)
    @rule(sizes=st.sampled_from(SIZES))
    def resize(self, sizes: tuple[int, int, int]) -> None:
        """Let merges and purges be common, or rare."""
        runs.HOT, runs.FAN, index.TINY = sizes

    @rule(pushed=st.lists(st.tuples(KEYS, st.one_of(st.none(), PLACES, PLACES)), max_size=5), origin=ARMS)
    def push(self, pushed: list[tuple[int, Placement | None]], origin: int) -> None:
        """Keys may come twice in one push; the last placement counts."""
        before = len(self.waiting)
        for key, place in pushed:
            if place is not None and key not in self._in_flight():
                self.waiting[key] = (place, self.waiting[key][1] if key in self.waiting else origin)
                self.done.pop(key, None)
            elif place is None and key not in self.waiting and key not in self._in_flight():
                self.done.setdefault(key, State.FETCHED)
        links = [_link(key) for key, _ in pushed]
        assert self.frontier.push(links, [place for _, place in pushed], origin=origin) == len(self.waiting) - before

    @rule(arm=ARMS, busy=BUSY)
    def pop(self, arm: int, busy: set[str]) -> None:
        ranks = self._open_ranks(arm, busy)
        pick = self.frontier.pop(arm, busy)
        assert (pick.rank if pick else None) == max(ranks, default=None)
        if pick is not None:
            assert pick.arm == arm
            assert pick.host not in busy
            self._fly(pick)

    @rule(key=KEYS)
    def take(self, key: int) -> None:
        pick = self.frontier.take(key)
        assert (pick is not None) == (key in self.waiting)
        if pick is not None:
            self._fly(pick)

    @rule(key=KEYS, arm=ARMS, pops=st.booleans())
    def steer(self, key: int, arm: int, pops: bool) -> None:
        """A link that waits is the next pick, whatever is asked for, and under the id that was asked for."""
        pick_id = 1000 + len(self.flying) if pops else 1
        self.frontier.steer(key, pick_id)
        if key in self.waiting and pick_id not in self.flying:
            pick = self.frontier.pop(arm, HOSTS) if pops else self.frontier.take(99)
            assert (pick.key, pick.id) == (key, pick_id)
            self._fly(pick)
        assert self.frontier.pop(arm, HOSTS) is self.frontier.take(99) is None
        self.frontier.let_go()

    @rule(moves=st.dictionaries(KEYS, st.one_of(st.none(), PLACES, PLACES), max_size=8))
    def move(self, moves: dict[int, Placement | None]) -> None:
        self.frontier.move(list(moves), list(moves.values()))
        for key, place in moves.items():
            if key in self.waiting and place is None:
                del self.waiting[key]
                self.done[key] = State.FETCHED
            elif key in self.waiting and place is not None:
                self.waiting[key] = (place, self.waiting[key][1])

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), release=st.booleans())
    def land(self, data: st.DataObject, release: bool) -> None:
        pick, place, origin = self.flying.pop(data.draw(st.sampled_from(list(self.flying))))
        if release:
            self.frontier.release(pick)
            self.waiting[pick.key] = (place, origin)
        else:
            self.frontier.settle(pick)
            self.done[pick.key] = State.PROBED if place.method == "HEAD" else State.FETCHED

    @rule(arm=ARMS, k=st.integers(0, 6), busy=BUSY, seed=st.integers(0, 9))
    def sample(self, arm: int, k: int, busy: set[str], seed: int) -> None:
        drawn = [link for link, _ in self.frontier.sample(arm, k, np.random.default_rng(seed), busy)]
        assert len({link.key for link in drawn}) == len(drawn) == min(k, len(self._open_ranks(arm, busy)))
        assert all(self.waiting[link.key][0].arm == arm and link.host not in busy for link in drawn)

    @invariant()
    def agrees(self) -> None:
        """Counts, heads, states, picks in flight and what each arm holds are those of the dictionary."""
        self.frontier.check()
        states = {
            **dict.fromkeys(range(-1, 32), State.NEW),
            **self.done,
            **dict.fromkeys(self.waiting, State.WAITING),
            **dict.fromkeys(self._in_flight(), State.FLYING),
        }
        assert self.frontier.states(list(states)) == list(states.values())
        assert len(self.frontier) == len(self.waiting)
        assert {id_: _said(pick) for id_, pick in self.frontier.flying.items()} == {
            id_: _said(pick) for id_, (pick, _, _) in self.flying.items()
        }
        for arm, (count, head, awake) in enumerate(
            zip(self.frontier.waiting, self.frontier.heads, self.frontier.awake({"a"}), strict=True)
        ):
            ranks = self._open_ranks(arm)
            assert (count, awake) == (len(ranks), len(self._open_ranks(arm, {"a"})))
            assert head == max(ranks, default=-math.inf)
            held = {link.key: (link.host, tuple(map(repr, place))) for link, place in self.frontier.scan(arm)}
            assert held == {
                key: (_link(key).host, tuple(map(repr, place)))
                for key, (place, _) in self.waiting.items()
                if place.arm == arm
            }

    def _open_ranks(self, arm: int, busy: set[str] | None = None) -> list[float]:
        return [
            place.rank
            for key, (place, _) in self.waiting.items()
            if place.arm == arm and _link(key).host not in (busy or ())
        ]

    def _in_flight(self) -> set[int]:
        return {pick.key for pick, _, _ in self.flying.values()}

    def _fly(self, pick: Pick) -> None:
        place, origin = self.waiting.pop(pick.key)
        link = _link(pick.key)
        assert (pick.url, pick.host, pick.payload, pick.origin) == (link.url, link.host, link.payload, origin)
        assert repr((pick.arm, pick.rank, pick.memo, pick.method)) == repr(tuple(place))
        assert pick.id not in self.flying
        self.flying[pick.id] = (pick, place, origin)


class SqliteMachine(FrontierMachine):
    """Also opens the file again: ``stored`` is the dictionary as it was at the last checkpoint, with the notes."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.stored: tuple[Any, ...] = ({}, {}, {}, {}, 0)
        self.notes: dict[str, bytes] = {}
        super().__init__()

    def make(self) -> SqliteFrontier:
        return SqliteFrontier(Path(self.folder.name) / "frontier.sqlite")

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()

    @rule(note=st.binary(max_size=3), name=st.sampled_from("xy"), flush=st.booleans())
    def checkpoint(self, note: bytes, name: str, flush: bool) -> None:
        """What is written is what there is now, also if nobody waits for it."""
        self.notes = {**self.notes, name: note}
        self.frontier.checkpoint({name: note})
        assert self.frontier.changed == 0
        self.stored = copy.copy(self.waiting), copy.copy(self.flying), copy.copy(self.done), self.notes, self._arms()
        if flush:
            self.frontier.flush()
            assert not self.frontier.writing

    @rule()
    def reopen(self) -> None:
        """After a checkpoint nothing is lost: what was in flight is in flight."""
        self.checkpoint(b"", "x", False)
        self._open_again()

    @rule()
    def kill(self) -> None:
        """What came after the last checkpoint is lost, all of it and nothing else."""
        self._open_again()

    def _open_again(self) -> None:
        self.frontier.close()
        self.frontier = self.make()
        waiting, flying, done, self.notes, arms = self.stored
        self.waiting, self.flying, self.done = copy.copy(waiting), copy.copy(flying), copy.copy(done)
        assert self.frontier.notes == self.notes
        assert self._arms() == arms
        assert self.frontier.changed == 0

    def _arms(self) -> int:
        return len(self.frontier.waiting)


def _said(pick: Pick) -> str:
    return repr(tuple(pick))


def _link(key: int) -> Link:
    host = HOSTS[key % 3]
    return Link(f"http://{host}/{key}", key, host, payload=bytes([key]))


TestMemory = FrontierMachine.TestCase
TestMemory.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestSqlite = SqliteMachine.TestCase
TestSqlite.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
