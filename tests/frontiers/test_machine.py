"""Frontiers against a dictionary, by Hypothesis: any order of operations; files are opened again at any step."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from scrapy_focus import Placement, memory_frontier
from scrapy_focus.core.frontier import Ranks, Vectors
from scrapy_focus.frontiers import hosts, keys, ledger, runs, sleepers
from scrapy_focus.frontiers.drawn import chunks, pool
from scrapy_focus.frontiers.ranked import queue
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from scrapy_focus.lab.checks.drawn import WIDTH, DrawnMachine
from scrapy_focus.lab.checks.ledger import HOSTS, Model
from scrapy_focus.lab.checks.ranked import RankedMachine
from tests.examples import n_examples

KEYS = st.integers(0, 40)
BUSY = st.sets(st.sampled_from([*HOSTS, "unknown"]))
ARMS = st.integers(0, 12)
FEW = st.integers(0, 2)
RANKS = st.one_of(st.just(1.0), st.integers(-2, 2).map(float), st.floats(allow_nan=False).map(lambda rank: rank + 0.0))
MEMOS = st.one_of(st.none(), st.lists(st.integers(-3, 3), max_size=3).map(lambda memo: np.array(memo, np.float32)))
METHODS = st.sampled_from(["GET", "GET", "HEAD"])
AFTER = st.one_of(st.just(0.0), st.just(0.0), st.integers(-1, 12).map(float), st.floats(0, 12))
PLACES = st.builds(Placement, FEW, RANKS, MEMOS, METHODS, AFTER)
CODES = st.one_of(
    st.none(), st.lists(st.integers(0, 3), min_size=WIDTH, max_size=WIDTH).map(lambda memo: np.array(memo, np.uint8))
)
VECTOR_PLACES = st.builds(Placement, ARMS, st.just(0.0), CODES, METHODS, AFTER)
CLOSED = st.one_of(st.none(), st.lists(st.booleans(), max_size=4))
SIZES = [(512, 8, 16, 100), (2, 2, 1, 1), (3, 2, 2, 2), (4, 3, 1, 100)]
CUTS = [(256, 4096, 16), (0, 2, 1), (0, 4096, 16)]  # FEW of the ledger, LONG of a queue, late keys
BEDS = [(16, 1024), (0, 1)]  # _MANY of the sleepers, _WOKEN_AT_ONCE of the ledger
CHUNKS = [(4096, 32, 8, 1000), (2, 1, 0, 0), (3, 2, 8, 0), (5, 2, 4, 1000)]


class LedgerStates(RuleBasedStateMachine):
    """The operations of all frontiers."""

    machine: Any
    beds = BEDS[0]

    @initialize(beds=st.sampled_from(BEDS))
    def begin_to_sleep(self, beds: tuple[int, int]) -> None:
        """Let entries of those that sleep no longer be sifted out at once, or later."""
        self.beds = sleepers._MANY, ledger._WOKEN_AT_ONCE
        sleepers._MANY, ledger._WOKEN_AT_ONCE = beds

    def teardown(self) -> None:
        sleepers._MANY, ledger._WOKEN_AT_ONCE = self.beds
        self.machine.frontier.close()

    @rule(key=KEYS, own_id=st.booleans())
    def take(self, key: int, own_id: bool) -> None:
        (self.machine.take_as if own_id else self.machine.take)(key)

    @precondition(lambda self: self.machine.model.flying)
    @rule(data=st.data(), also=st.lists(KEYS, max_size=2))
    def settle(self, data: st.DataObject, also: list[int]) -> None:
        self.machine.settle(data.draw(st.sampled_from(sorted(self.machine.model.flying))), also)

    @precondition(lambda self: self.machine.model.flying)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.machine.release(data.draw(st.sampled_from(sorted(self.machine.model.flying))))

    @rule(now=st.one_of(st.integers(0, 12).map(float), st.floats(0, 12)))
    def wake(self, now: float) -> None:
        """Time passes, or somebody asks for one that has passed."""
        self.machine.wake(now)

    @rule(first=KEYS, n=st.integers(1, 20), arm=FEW, after=st.integers(1, 12))
    def sleep(self, first: int, n: int, arm: int, after: int) -> None:
        """Many sleep until one time."""
        self.machine.push([(key, Placement(arm, 0.0, after=float(after))) for key in range(first, first + n)], 0)

    @invariant()
    def agrees(self) -> None:
        self.machine.compare(("a", "c"))


class RankedStates(LedgerStates):
    """The operations of ranked frontiers."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = runs.HOT, runs.FAN, queue.TINY, hosts.NEAR, ledger.FEW, queue.LONG, keys._AT_ONCE
        self.machine = RankedMachine(self.make())

    def make(self) -> Any:
        return memory_frontier(Ranks())

    @initialize(sizes=st.sampled_from(SIZES), cut=st.sampled_from(CUTS))
    def begin(self, sizes: tuple[int, int, int, int], cut: tuple[int, int, int]) -> None:
        """Let merges and purges be common, or rare, and links be given up together, or one by one."""
        runs.HOT, runs.FAN, queue.TINY, hosts.NEAR = sizes
        ledger.FEW, queue.LONG, keys._AT_ONCE = cut

    def teardown(self) -> None:
        runs.HOT, runs.FAN, queue.TINY, hosts.NEAR, ledger.FEW, queue.LONG, keys._AT_ONCE = self.sizes
        super().teardown()

    @rule(pushed=st.lists(st.tuples(KEYS, st.one_of(st.none(), PLACES, PLACES)), max_size=9), origin=ARMS)
    def push(self, pushed: list[tuple[int, Placement | None]], origin: int) -> None:
        self.machine.push(pushed, origin)

    @rule(first=KEYS, n=st.integers(1, 20), arm=FEW, rank=RANKS)
    def push_equals(self, first: int, n: int, arm: int, rank: float) -> None:
        """Many of one rank come."""
        self.machine.push([(key, Placement(arm, rank)) for key in range(first, first + n)], 0)

    @rule(arm=FEW, busy=BUSY, times=st.integers(1, 6))
    def pop(self, arm: int, busy: set[str], times: int) -> None:
        for _ in range(times):
            self.machine.pop(arm, busy)

    @rule(moves=st.dictionaries(KEYS, st.one_of(st.none(), PLACES, PLACES), max_size=8))
    def move(self, moves: dict[int, Placement | None]) -> None:
        self.machine.move(moves)

    @rule(arm=FEW, n=st.integers(0, 4))
    def drop(self, arm: int, n: int) -> None:
        self.machine.drop(arm, n)

    @rule(counts=st.dictionaries(st.integers(0, 3), st.integers(0, 30), max_size=4))
    def drop_each(self, counts: dict[int, int]) -> None:
        self.machine.drop_each(counts)

    @rule(arm=st.integers(-1, 3))
    def scan(self, arm: int) -> None:
        self.machine.compare_arm(arm)


class DrawnStates(LedgerStates):
    """The operations of drawn frontiers."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = chunks.SIZE, chunks.LAZY, pool.FEW_ARMS, pool.MANY_ARMS, ledger.FEW, keys._AT_ONCE
        self.machine = DrawnMachine(self.make(), memory_frontier)

    def make(self) -> Any:
        return memory_frontier(Vectors(WIDTH))

    @initialize(sizes=st.sampled_from(CHUNKS), few=st.sampled_from([0, 256]), at_once=st.sampled_from([1, 16]))
    def begin(self, sizes: tuple[int, int, int, int], few: int, at_once: int) -> None:
        """Let chunks be short or long, divisions put off or not, few arms be looked through or not, and so on."""
        chunks.SIZE, chunks.LAZY, pool.FEW_ARMS, pool.MANY_ARMS = sizes
        ledger.FEW, keys._AT_ONCE = few, at_once

    def teardown(self) -> None:
        chunks.SIZE, chunks.LAZY, pool.FEW_ARMS, pool.MANY_ARMS, ledger.FEW, keys._AT_ONCE = self.sizes
        super().teardown()

    @rule(
        pushed=st.lists(st.tuples(KEYS, st.one_of(st.none(), VECTOR_PLACES, VECTOR_PLACES)), max_size=12), origin=ARMS
    )
    def push(self, pushed: list[tuple[int, Placement | None]], origin: int) -> None:
        self.machine.push(pushed, origin)

    @rule(arm=ARMS, column=st.integers(0, WIDTH - 1), above=st.integers(0, 3))
    def divide(self, arm: int, column: int, above: int) -> None:
        """The links of an arm are queued in two from now on."""
        new_arm = 10 + len(self.machine.model.divisions)
        self.machine.divide(min(arm, new_arm - 1), column, above, new_arm)

    @precondition(lambda self: self.machine.model.divisions)
    @rule(data=st.data(), column=st.integers(0, WIDTH - 1), above=st.integers(0, 3))
    def divide_again(self, data: st.DataObject, column: int, above: int) -> None:
        """A new arm is divided."""
        self.divide(data.draw(st.sampled_from(self.machine.model.divisions))[3], column, above)

    @rule(
        counts=st.one_of(
            st.lists(st.integers(0, 3), max_size=16), st.dictionaries(ARMS, st.integers(1, 3), max_size=3)
        ),
        busy=BUSY,
        closed=CLOSED,
        seed=st.integers(0, 1000),
        then=st.sampled_from(["take", "drop", "nothing"]),
    )
    def draw(self, counts: Any, busy: set[str], closed: Any, seed: int, then: str) -> None:
        """What is drawn can be taken out or given up."""
        drawn = self.machine.draw(counts, seed, busy, closed)
        if then == "take" and len(drawn.slots):
            self.machine.take_drawn(drawn, seed % len(drawn.slots))
        elif then == "drop":
            self.machine.drop(drawn)

    @rule(counts=st.lists(st.integers(0, 3), max_size=16), busy=BUSY, seed=st.integers(0, 1000))
    def draw_from_another(self, counts: list[int], busy: set[str], seed: int) -> None:
        self.machine.draw_from_another(counts, seed, busy)

    @rule(busy=BUSY, closed=CLOSED)
    def draw_all(self, busy: set[str], closed: Any) -> None:
        self.machine.draw_all(busy, closed)


class StoredStates(LedgerStates):
    """Also opens the file again: ``stored`` is the model as it was at the last checkpoint, with the notes."""

    keeps: Any = Ranks()

    def make(self) -> Any:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "frontier.sqlite"
        self.stored: tuple[Model, dict[str, bytes], int] = (Model(), {}, 0)
        return sqlite_frontier(self.path, self.keeps)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()

    @rule(note=st.binary(max_size=3), name=st.sampled_from("xy"), flush=st.booleans())
    def checkpoint(self, note: bytes, name: str, flush: bool) -> None:
        """What is written is what there is now, also if nobody waits for it."""
        frontier = self.machine.frontier
        frontier.checkpoint({name: note})
        assert frontier.changed == 0
        self.stored = copy.deepcopy(self.machine.model), {**self.stored[1], name: note}, len(frontier.waiting)
        if flush:
            frontier.flush()
            assert not frontier.writing

    @rule(kills=st.booleans(), twice=st.booleans())
    def reopen(self, kills: bool, twice: bool) -> None:
        """After a checkpoint nothing is lost, after a kill what came later; divisions are said again."""
        if not kills:
            self.checkpoint(b"", "x", False)
        self.machine.frontier.close()
        frontier = self.machine.frontier = sqlite_frontier(self.path, self.keeps)
        model, notes, arms = self.stored
        self.machine.model = copy.deepcopy(model)
        for division in model.divisions * (1 + twice):
            frontier.divide(*division)
        assert (frontier.notes, len(frontier.waiting), frontier.changed) == (notes, arms, 0)


class StoredRankedStates(StoredStates, RankedStates):
    """Ranked frontiers in a file."""


class StoredDrawnStates(StoredStates, DrawnStates):
    """Drawn frontiers in a file."""

    keeps = Vectors(WIDTH)


SETTINGS = settings(max_examples=n_examples(60), stateful_step_count=30, deadline=None)
TestRankedMemory = RankedStates.TestCase
TestRankedMemory.settings = SETTINGS
TestRankedSqlite = StoredRankedStates.TestCase
TestRankedSqlite.settings = SETTINGS
TestDrawnMemory = DrawnStates.TestCase
TestDrawnMemory.settings = SETTINGS
TestDrawnSqlite = StoredDrawnStates.TestCase
TestDrawnSqlite.settings = SETTINGS
