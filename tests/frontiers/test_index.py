"""The index against sorted lists, with sizes so small that chains, queues, merges and purges come every few steps."""

from __future__ import annotations

import random
import tracemalloc
from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_focus import FrontierError
from scrapy_focus.frontiers import keys as seen
from scrapy_focus.frontiers.index_check import check_index
from scrapy_focus.frontiers.ranked import queue as index_module
from scrapy_focus.frontiers.ranked import runs as runs_module
from scrapy_focus.frontiers.ranked.load import Loading
from scrapy_focus.frontiers.ranked.queue import Index
from scrapy_focus.frontiers.ranked.runs import Runs

SIZES = [(2, 2, 1, 1), (3, 2, 2, 2), (4, 3, 1, 100), (512, 8, 16, 100)]


@pytest.fixture(params=SIZES, ids=str)
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything rare happen often."""
    hot, fan, tiny, near = request.param
    monkeypatch.setattr(runs_module, "HOT", hot)
    monkeypatch.setattr(runs_module, "FAN", fan)
    monkeypatch.setattr(index_module, "TINY", tiny)
    monkeypatch.setattr(index_module, "NEAR", near)


class Model:
    """An index, and a dictionary from its slots to arm, host, rank and record, compared after each step."""

    def __init__(self, hosts: int) -> None:
        self.index = Index()
        self.hosts = [f"h{i}" for i in range(hosts)]
        for name in self.hosts:
            self.index.host(name)
        self.waiting: dict[int, tuple[int, int, float, int]] = {}
        self.count = 0

    def insert(self, arm: int, host: int, rank: float) -> None:
        self.count += 1
        promised = self.index.next_slot
        slot = self.index.insert(self.count, host, arm, rank)
        assert slot == promised
        assert slot not in self.waiting
        self.waiting[slot] = (arm, host, rank, self.count)

    def remove(self, slot: int) -> None:
        assert self.index.record[slot] == self.waiting.pop(slot)[3]
        self.index.remove(slot)

    def open(self, arm: int, busy: set[str] = frozenset()) -> list[int]:
        return [slot for slot, (its, host, *_) in self.waiting.items() if its == arm and self.hosts[host] not in busy]

    def pop(self, arm: int, busy: set[str]) -> None:
        slot = self.index.best(arm, busy)
        slots = self.open(arm, busy)
        assert (slot >= 0) == bool(slots)
        if slots:
            assert slot in slots
            assert self.waiting[slot][2] == max(self.waiting[each][2] for each in slots)
            self.remove(slot)

    def check(self, busy: set[str]) -> None:
        check_index(self.index)
        assert len(self.index) == len(self.waiting)
        for arm in range(len(self.index.waiting)):
            slots = self.open(arm)
            assert self.index.waiting[arm] == len(slots)
            assert self.index.awake(busy)[arm] == len(self.open(arm, busy))
            assert self.index.heads[arm] == max((self.waiting[slot][2] for slot in slots), default=-np.inf)
            assert sorted(slot for part in self.index.scan(arm, 3) for slot in part) == sorted(slots)


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("hosts", "arms", "ranks"), [(1, 1, 1000), (3, 2, 5), (40, 3, 1000), (4, 60, 3)])
def test_an_index_is_a_set_of_sorted_lists(hosts: int, arms: int, ranks: int, seed: int) -> None:
    """Any order of insertions, removals and pops behind busy hosts gives what sorted lists give."""
    rng = random.Random(seed)
    model = Model(hosts)
    for step in range(600):
        busy = {name for name in [*model.hosts, "unknown"] if rng.random() < 0.3}
        growing = 0.65 if step < 300 else 0.3
        if rng.random() < growing:
            for _ in range(rng.randrange(5)):
                model.insert(rng.randrange(arms), rng.randrange(hosts), float(rng.randrange(ranks)))
        elif rng.random() < 0.5:
            model.pop(rng.randrange(-1, arms + 1), busy)
        else:
            for slot in rng.sample(sorted(model.waiting), min(3, len(model.waiting))):
                model.remove(slot)
        if step % 10 == 0:
            model.check(busy)
            arm, k = rng.randrange(arms), rng.randrange(6)
            drawn = model.index.sample(arm, k, np.random.default_rng(step), busy)
            assert len(set(drawn)) == len(drawn) == min(k, len(model.open(arm, busy)))
            assert set(drawn) <= set(model.open(arm, busy))
    for arm in range(arms):
        while model.open(arm):
            model.pop(arm, set())
    model.check(set())
    assert len(model.index) == 0


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [0, 1, 2, 50, 500])
def test_an_index_that_is_loaded_is_one_that_was_filled(n: int, seed: int) -> None:
    """Links that are loaded in parts wait as if they had come one by one, and may leave and be joined by others."""
    rng = random.Random(seed)
    model = Model(9)
    rows = [(rng.randrange(7), rng.randrange(9), float(rng.randrange(30))) for _ in range(n)]
    loading, slots = Loading(model.index), []
    for start in range(0, n, 70):
        part = rows[start : start + 70]
        arms, hosts, ranks = (np.array(column) for column in zip(*part, strict=True))
        numbers = np.arange(start, start + len(part), dtype=np.int32)
        slots += loading.add(numbers, hosts.astype(np.int32), arms.astype(np.int32), ranks).tolist()
    loading.finish()
    model.waiting = {slot: (*row, number) for number, (slot, row) in enumerate(zip(slots, rows, strict=True))}
    model.count = n
    model.check({"h1", "h2"})
    for _ in range(n):
        model.pop(rng.randrange(7), {"h1"} if rng.random() < 0.5 else set())
        model.insert(rng.randrange(8), rng.randrange(9), float(rng.randrange(30)))
        if model.waiting and rng.random() < 0.5:
            model.remove(rng.choice(sorted(model.waiting)))
    model.check({"h3"})


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("loaded", [False, True])
def test_links_of_equal_rank_leave_in_the_order_in_which_they_came(loaded: bool) -> None:
    """Where nothing but insertions and pops happens, a queue with one rank is a queue."""
    index = Index()
    host = index.host("h")
    if loaded:
        loading, zeros = Loading(index), np.zeros(100, np.int32)
        loading.add(np.arange(100, dtype=np.int32), zeros, zeros, np.zeros(100))
        loading.finish()
    else:
        for number in range(100):
            index.insert(number, host, 0, 0.0)
    left = []
    while (slot := index.best(0)) >= 0:
        left.append(index.record[slot])
        index.remove(slot)
    assert left == list(range(100))


@given(
    st.lists(st.tuples(st.floats(allow_nan=False), st.booleans()), max_size=120),
    st.sampled_from([(1, 2), (2, 2), (3, 4)]),
)
@settings(deadline=None)
def test_runs_are_a_sorted_list(steps: list[tuple[float, bool]], size: tuple[int, int]) -> None:
    """Entries leave by rank, whether they are in the hot run or in merged ones; those that do not count are sifted out."""
    before = runs_module.HOT, runs_module.FAN
    runs_module.HOT, runs_module.FAN = size
    try:
        rank, gone, runs = array("d"), set(), Runs()
        waiting: set[int] = set()

        def sift(slots):
            return slots[[slot not in gone for slot in slots.tolist()]]

        for value, leaves in steps:
            rank.append(value)
            runs.insert(len(rank) - 1, rank, sift)
            waiting.add(len(rank) - 1)
            if leaves:
                slot = min(waiting)
                waiting.remove(slot)
                gone.add(slot)
                runs.stale += 1
                if runs.stale > len(waiting) + 2:
                    runs.purge(rank, sift)
            assert runs.stale + len(waiting) == len(runs) == len(set(runs))
            assert len(runs) <= 2 * len(waiting) + 4 + sum(size)
        left = []
        while (slot := runs.best(rank)) >= 0:
            runs.drop(rank)
            left += [rank[slot]] if slot in waiting else []
        assert left == sorted((rank[slot] for slot in waiting), reverse=True)
    finally:
        runs_module.HOT, runs_module.FAN = before


def test_purging_in_turns_removes_all_that_does_not_count() -> None:
    """Each call sifts one run; as many calls as there are runs leave nothing stale."""
    rank = array("d", map(float, range(40_000)))
    runs = Runs.loaded(np.arange(40_000, dtype=np.int32), rank)
    for slot in range(0, 40_000, 2):
        rank.append(rank[slot])
        runs.insert(len(rank) - 1, rank, lambda slots: slots)
    runs.stale = 20_000
    calls = 0
    while runs.stale:
        before = runs.stale
        runs.purge(rank, lambda slots: slots[(slots >= 40_000) | (slots % 2 == 1)])
        calls += 1
        assert before - runs.stale <= runs_module.HOT * runs_module.FAN**2 // 2
    assert calls < 30
    assert len(runs) == 40_000


@pytest.mark.parametrize(
    ("hosts", "per_host", "arms", "most"), [(20_000, 10, 1, 60), (100, 1000, 10, 45), (1, 100_000, 100, 45)]
)
def test_an_index_is_small(hosts: int, per_host: int, arms: int, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting link takes 45 bytes, and 60 where hosts have only ten each; the key that a frontier keeps takes 13 more."""
    monkeypatch.setattr(index_module, "NEAR", 1000)
    monkeypatch.setattr(seen, "_SHARDS", 97)
    rng = random.Random(0)
    tracemalloc.start()
    try:
        index = Index()
        for number in range(hosts):
            host = index.host(f"www.host{number}.example")
            for _ in range(per_host):
                index.insert(number, host, rng.randrange(arms), rng.random())
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 30 < size / len(index) < most


@pytest.mark.parametrize(
    "spoil",
    [
        lambda index: index.rank.__setitem__(3, 99.0),
        lambda index: index._waiting.__setitem__(1, 7),
        lambda index: index._heads.__setitem__(0, 7.0),
        lambda index: index._pair_count.__setitem__(0, 3),
        lambda index: index._pair_head.__setitem__(0, 5),
        lambda index: index._place.__setitem__(2, 40),
        lambda index: index._arms[0].members.append(3),
        lambda index: index._arms[0].tops.hot.pop(),
        lambda index: index._free.append(2),
        lambda index: setattr(index, "_n", 4),
        lambda index: index._flags.__setitem__(index._pair_head[0], 0),
    ],
)
@pytest.mark.parametrize("tiny", [1, 16])
def test_check_finds_what_is_wrong(spoil, tiny: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that was changed by a stray hand is found."""
    monkeypatch.setattr(index_module, "TINY", tiny)
    model = Model(2)
    for i in range(30):
        model.insert(i % 2, i % 4 // 2, float(i))
    model.remove(20)
    check_index(model.index)
    spoil(model.index)
    with pytest.raises((FrontierError, IndexError), match=r"the frontier is inconsistent|out of range"):
        check_index(model.index)
