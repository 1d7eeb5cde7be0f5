"""The queue against sorted lists, with sizes so small that chains, queues, merges and purges come every few steps."""

from __future__ import annotations

import random
import tracemalloc
from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_focus import FrontierError
from scrapy_focus.frontiers import hosts as pairs_module
from scrapy_focus.frontiers import keys as seen
from scrapy_focus.frontiers import runs as runs_module
from scrapy_focus.frontiers.ranked import queue as queue_module
from scrapy_focus.frontiers.ranked.load import Loading
from scrapy_focus.frontiers.ranked.queue import Queue
from scrapy_focus.frontiers.runs import Runs

SIZES = [(2, 2, 1, 1), (3, 2, 2, 2), (4, 3, 1, 100), (512, 8, 16, 100)]


@pytest.fixture(params=SIZES, ids=str)
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything rare happen often."""
    hot, fan, tiny, near = request.param
    monkeypatch.setattr(runs_module, "HOT", hot)
    monkeypatch.setattr(runs_module, "FAN", fan)
    monkeypatch.setattr(queue_module, "TINY", tiny)
    monkeypatch.setattr(pairs_module, "NEAR", near)


class Model:
    """A queue, and a dictionary from its slots to arm, host, rank, record and age, compared after each step."""

    def __init__(self, hosts: int, *, ages: bool = True) -> None:
        self.queue = Queue(ages=ages)
        self.hosts = [f"h{i}" for i in range(hosts)]
        for name in self.hosts:
            self.queue.host(name)
        self.waiting: dict[int, tuple[int, int, float, int, int]] = {}
        self.count = 0

    def insert(self, arm: int, host: int, rank: float, age: int | None = None) -> None:
        """Queue a new link, or one that already has an age."""
        self.count += 1
        age = self.count if age is None else age
        promised = self.queue.next_slot
        slot = self.queue.insert(self.count if self.queue.age is not self.queue.record else age, age, host, arm, rank)
        assert slot == promised
        assert slot not in self.waiting
        self.waiting[slot] = (arm, host, rank, self.queue.record[slot], age)

    def remove(self, slot: int) -> int:
        """Take a link out, and return its age."""
        *_, record, age = self.waiting.pop(slot)
        assert (self.queue.record[slot], self.queue.age[slot]) == (record, age)
        self.queue.remove(slot)
        return age

    def open(self, arm: int, busy: set[str] = frozenset()) -> list[int]:
        """Return the slots of an arm, the best first."""
        slots = [slot for slot, (its, host, *_) in self.waiting.items() if its == arm and self.hosts[host] not in busy]
        return sorted(slots, key=lambda slot: (-self.waiting[slot][2], self.waiting[slot][4]))

    def pop(self, arm: int, busy: set[str]) -> int | None:
        """Take out the best link of an arm, and return its age."""
        slot = self.queue.best(arm, busy)
        slots = self.open(arm, busy)
        assert slot == (slots[0] if slots else -1)
        return self.remove(slot) if slots else None

    def check(self, busy: set[str]) -> None:
        self.queue.check()
        assert len(self.queue) == len(self.waiting)
        for arm in range(len(self.queue.waiting)):
            slots = self.open(arm)
            assert self.queue.waiting[arm] == len(slots)
            assert self.queue.awake(busy)[arm] == len(self.open(arm, busy))
            assert self.queue.heads[arm] == max((self.waiting[slot][2] for slot in slots), default=-np.inf)
            assert sorted(slot for part in self.queue.scan(arm, 3) for slot in part) == sorted(slots)
            assert self.queue.worst(arm, 4) == slots[::-1][:4]


@pytest.mark.few(8)
@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("hosts", "arms", "ranks"), [(1, 1, 1000), (3, 2, 5), (40, 3, 1000), (4, 60, 3)])
def test_a_queue_is_a_set_of_sorted_lists(hosts: int, arms: int, ranks: int, seed: int) -> None:
    """Any order of insertions, removals and pops behind busy hosts gives what sorted lists give."""
    rng = random.Random(seed)
    model = Model(hosts)
    for step in range(400):
        busy = {name for name in [*model.hosts, "unknown"] if rng.random() < 0.3}
        growing = 0.65 if step < 200 else 0.3
        if rng.random() < growing:
            for _ in range(rng.randrange(5)):
                model.insert(rng.randrange(arms), rng.randrange(hosts), float(rng.randrange(ranks)))
        elif rng.random() < 0.5:
            arm, host = rng.randrange(-1, arms + 1), rng.randrange(hosts)
            age = model.pop(arm, busy)
            if age is not None and rng.random() < 0.3:
                model.insert(arm, host, float(rng.randrange(ranks)), age)
        else:
            for slot in rng.sample(sorted(model.waiting), min(3, len(model.waiting))):
                arm, host, rank, *_ = model.waiting[slot]
                age = model.remove(slot)
                if rng.random() < 0.4:
                    model.insert(arm, host, rank if rng.random() < 0.7 else float(rng.randrange(ranks)), age)
        if step % 10 == 0:
            model.check(busy)
    for arm in range(arms):
        while model.open(arm):
            model.pop(arm, set())
    model.check(set())
    assert len(model.queue) == 0


@pytest.mark.few(20)
@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [0, 1, 2, 50, 500])
def test_a_queue_that_is_loaded_is_one_that_was_filled(n: int, seed: int) -> None:
    """Links loaded in parts are queued as if they had come one by one, and may leave and be joined by others."""
    rng = random.Random(seed)
    model = Model(9, ages=False)
    rows = [(rng.randrange(7), rng.randrange(9), float(rng.randrange(30))) for _ in range(n)]
    loading, slots = Loading(model.queue), []
    for start in range(0, n, 70):
        part = rows[start : start + 70]
        arms, hosts, ranks = (np.array(column) for column in zip(*part, strict=True))
        numbers = np.arange(start, start + len(part), dtype=np.int32)
        slots += loading.add(numbers, hosts.astype(np.int32), arms.astype(np.int32), ranks).tolist()
    loading.finish()
    model.waiting = {slot: (*row, number, number) for number, (slot, row) in enumerate(zip(slots, rows, strict=True))}
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
    queue = Queue(ages=False)
    host = queue.host("h")
    if loaded:
        loading, zeros = Loading(queue), np.zeros(100, np.int32)
        loading.add(np.arange(100, dtype=np.int32), zeros, zeros, np.zeros(100))
        loading.finish()
    else:
        for number in range(100):
            queue.insert(number, number, host, 0, 0.0)
    left = []
    while (slot := queue.best(0)) >= 0:
        left.append(queue.record[slot])
        queue.remove(slot)
    assert left == list(range(100))


@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(0, 2).map(float), st.floats(allow_nan=False)), st.integers(0, 9), st.booleans()
        ),
        max_size=120,
    ),
    st.sampled_from([(1, 2), (2, 2), (3, 4)]),
)
@settings(deadline=None)
def test_runs_are_a_sorted_list(steps: list[tuple[float, int, bool]], size: tuple[int, int]) -> None:
    """Entries leave by rank and age, whether they are in the hot run or in merged ones; those that do not count go."""
    before = runs_module.HOT, runs_module.FAN
    runs_module.HOT, runs_module.FAN = size
    try:
        rank, age, gone, runs = array("d"), array("i"), set(), Runs()
        waiting: set[int] = set()

        def sift(slots):
            return slots[[slot not in gone for slot in slots.tolist()]]

        for value, older, leaves in steps:
            rank.append(value)
            age.append(1000 * (9 - older) + len(age))
            runs.insert(len(rank) - 1, rank, age, sift)
            waiting.add(len(rank) - 1)
            if leaves:
                slot = min(waiting)
                waiting.remove(slot)
                gone.add(slot)
                runs.stale += 1
                if runs.stale > len(waiting) + 2:
                    runs.purge(rank, age, sift)
            runs.check(rank, age)
            assert runs.stale + len(waiting) == len(runs) == len(set(runs))
            assert len(runs) <= 2 * len(waiting) + 4 + sum(size)
        left = []
        while (slot := runs.best(rank, age)) >= 0:
            runs.drop(rank, age)
            left += [slot] if slot in waiting else []
        assert left == sorted(waiting, key=lambda slot: (-rank[slot], age[slot]))
    finally:
        runs_module.HOT, runs_module.FAN = before


def test_purging_in_turns_removes_all_that_does_not_count() -> None:
    """Each call sifts one run; as many calls as there are runs leave nothing stale."""
    rank, age = array("d", map(float, range(40_000))), array("i", range(40_000))
    runs = Runs.loaded(np.arange(40_000, dtype=np.int32), rank, age)
    for slot in range(0, 40_000, 2):
        rank.append(rank[slot])
        age.append(age[slot])
        runs.insert(len(rank) - 1, rank, age, lambda slots: slots)
    runs.stale = 20_000
    calls = 0
    while runs.stale:
        before = runs.stale
        runs.purge(rank, age, lambda slots: slots[(slots >= 40_000) | (slots % 2 == 1)])
        calls += 1
        assert before - runs.stale <= runs_module.HOT * runs_module.FAN**2 // 2
    assert calls < 30
    assert len(runs) == 40_000


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("hosts", "per_host", "arms", "most"), [(5_000, 10, 1, 60), (30, 1000, 10, 45), (1, 30_000, 100, 45)]
)
def test_a_queue_is_small(hosts: int, per_host: int, arms: int, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting link takes 45 bytes, and 60 where hosts have only ten each; its key takes 13 more."""
    monkeypatch.setattr(pairs_module, "NEAR", 1000)
    monkeypatch.setattr(seen, "_SHARDS", 97)
    rng = random.Random(0)
    tracemalloc.start()
    try:
        queue = Queue(ages=True)
        for number in range(hosts):
            host = queue.host(f"www.host{number}.example")
            for _ in range(per_host):
                queue.insert(number, number, host, rng.randrange(arms), rng.random())
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 30 < size / len(queue) < most


@pytest.mark.parametrize(
    "spoil",
    [
        lambda queue: queue.rank.__setitem__(3, 99.0),
        lambda queue: queue.age.__setitem__(0, 99),
        lambda queue: queue.age.append(7),
        lambda queue: queue._waiting.__setitem__(1, 7),
        lambda queue: queue._heads.__setitem__(0, 7.0),
        lambda queue: queue.pairs.count.__setitem__(0, 3),
        lambda queue: queue.pairs.arm.__setitem__(0, 7),
        lambda queue: queue.pairs.host.__setitem__(0, 1),
        lambda queue: queue._pair_head.__setitem__(0, 5),
        lambda queue: queue._arms[0].tops.hot.pop(),
        lambda queue: queue._free.append(2),
        lambda queue: setattr(queue, "_n", 4),
        lambda queue: queue._flags.__setitem__(queue._pair_head[0], 0),
    ],
)
@pytest.mark.parametrize("tiny", [1, 16])
def test_check_finds_what_is_wrong(spoil, tiny: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that was changed by a stray hand is found."""
    monkeypatch.setattr(queue_module, "TINY", tiny)
    model = Model(2)
    for i in range(30):
        model.insert(i % 2, i % 4 // 2, float(i // 8))
    model.remove(20)
    model.queue.check()
    spoil(model.queue)
    with pytest.raises((FrontierError, IndexError), match=r"the frontier is inconsistent|out of range"):
        model.queue.check()
