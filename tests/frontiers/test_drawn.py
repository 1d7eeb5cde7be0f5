"""Frontiers that keep vectors: draws are uniform and can be had again, and what cannot be is refused in words."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import chisquare

from scrapy_focus import FrontierError, Link, Placement, ResumeError, StorageError, memory_frontier
from scrapy_focus.core.frontier import Ranks, Vectors
from scrapy_focus.frontiers.drawn import chunks, pool
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from tests.made import links

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from scrapy_focus.core.frontier import Drawn

COUNTS = np.array([2, 1, 3, 1])
VECTORS = Vectors(3)


def push(frontier: Drawn, start: int, end: int, *, hosts: int = 5, arm: int = 0) -> None:
    """Put some links in, each with its key as the first value of its vector."""
    found = [Link(f"http://h{i % hosts}/{i}", i, f"h{i % hosts}") for i in range(start, end)]
    vectors = [np.array([i % 256, i * 7 % 64, i * 11 % 64], np.uint8) for i in range(start, end)]
    frontier.push(found, [Placement(arm, 0.0, vector) for vector in vectors])


def filled(n: int = 90, frontier: Drawn | None = None, **how: Any) -> Any:
    """Return a frontier with n links in arm 0."""
    frontier = memory_frontier(VECTORS) if frontier is None else frontier
    push(frontier, 0, n, **how)
    return frontier


def keys_in(frontier: Drawn, arm: int, shut: Collection[str] = ()) -> list[int]:
    """Return the keys of an arm, oldest first: the first values of the vectors."""
    drawn = frontier.draw(None, np.random.default_rng(0), busy=shut)
    return drawn.vectors[drawn.arms == arm, 0].tolist()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have chunks of four links, put every division off, and look through no arm."""
    monkeypatch.setattr(pool, "FEW_ARMS", 0)
    monkeypatch.setattr(chunks, "SIZE", 4)
    monkeypatch.setattr(chunks, "LAZY", 1)


def _untouched(frontier: Drawn, path: Path) -> Drawn:
    return frontier


def _divided(frontier: Drawn, path: Path) -> Drawn:
    frontier.divide(0, 1, 20, 1)
    frontier.divide(0, 2, 31, 2)
    frontier.divide(1, 2, 15, 3)
    return frontier


def _emptied(frontier: Drawn, path: Path) -> Drawn:
    frontier = _divided(frontier, path)
    for key in [*range(0, 90, 4), *range(30, 50)]:
        pick = frontier.take(key)
        if pick is not None and key % 3:
            frontier.settle(pick)
        elif pick is not None:
            frontier.release(pick)
    push(frontier, 90, 110)
    return frontier


def _updated(frontier: Drawn, path: Path) -> Drawn:
    frontier = _emptied(frontier, path)
    keys = [key for arm in range(3) for key in keys_in(frontier, arm)][::2]
    vectors = [np.array([key, key * 5 % 64, key * 3 % 64], np.uint8) for key in keys]
    frontier.push([Link("", key) for key in keys], [Placement(0, 0.0, each) for each in vectors])
    return frontier


def _stored(frontier: Drawn, path: Path) -> Drawn:
    stored = _updated(filled(frontier=sqlite_frontier(path, VECTORS)), path)
    stored.checkpoint()
    stored.close()
    return _divided(sqlite_frontier(path, VECTORS), path)


@pytest.mark.few(4)
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    "shut", [(set(), None), ({"h1"}, None), ({"h0", "h3"}, [False, True]), ({"h0"}, [False, *[True] * 3])]
)
@pytest.mark.parametrize("change", [_untouched, _divided, _emptied, _updated, _stored])
def test_draws_are_uniform(change: Callable[..., Drawn], shut: Any, tmp_path: Path) -> None:
    """In each arm every link on an open host is drawn equally often, whatever came before (chi-square)."""
    frontier, rng = change(filled(), tmp_path / "frontier.sqlite"), np.random.default_rng(1)
    busy, closed = shut[0], None if shut[1] is None else np.array(shut[1])
    names = busy | {frontier.hosts[i] for i in range(len(shut[1] or ())) if shut[1][i]}
    open_ = {arm: keys_in(frontier, arm, names) for arm in range(4)}
    counts = {key: 0 for keys in open_.values() for key in keys}
    for _ in range(1500):
        drawn = frontier.draw(COUNTS, rng, busy=busy, closed=closed)
        for key in drawn.vectors[:, 0].tolist():
            counts[key] += 1
    for arm, keys in open_.items():
        assert sum(counts[key] for key in keys) == (1500 * COUNTS[arm] if keys else 0)
        if len(keys) > 1:
            assert chisquare([counts[key] for key in keys]).pvalue > 1e-4
    frontier.check()
    frontier.close()


def test_draws_in_one_call_do_not_depend_on_each_other() -> None:
    """Pairs that are drawn together are as uniform as single links."""
    frontier, rng, pairs = filled(5), np.random.default_rng(2), np.zeros((5, 5))
    for _ in range(5000):
        np.add.at(pairs, tuple(frontier.draw(np.array([2]), rng).vectors[:, 0]), 1)
    assert chisquare(pairs.ravel()).pvalue > 1e-3


@pytest.mark.parametrize("closed", [False, True])
def test_the_last_open_link_is_found(closed: bool) -> None:
    """One link in thousands whose host takes something is drawn, again and again, and so is one that comes later."""
    frontier, rng = memory_frontier(VECTORS), np.random.default_rng(3)
    push(frontier, 0, 5000, hosts=1)
    frontier.push(links(7001, host="rare"), [Placement(0, 0.0, np.array([9, 9, 9], np.uint8))])
    how = {"closed": np.array([True])} if closed else {"busy": {"h0"}}
    for step in range(6):
        drawn = frontier.draw(np.array([3]), rng, **how)
        assert {frontier.hosts[i] for i in drawn.hosts} <= {"rare", "rarer"}
        assert len(drawn.slots) == 3
        if step == 2:
            frontier.push(links(7002, host="rarer"), [Placement(0, 0.0, np.array([8, 8, 8], np.uint8))])
        if step == 4:
            assert frontier.take(7001).host == "rare"
            assert frontier.draw(np.array([1]), rng, **how).vectors.tolist() == [[8, 8, 8]]
            frontier.push(links(7001, host="rare"), [None])
            break
        frontier.check()
    frontier.settle(frontier.take(7002))
    frontier.check()
    assert not len(frontier.draw(np.array([3]), rng, **how).slots)
    assert len(frontier.draw(np.array([3]), rng).slots) == 3


def test_a_host_that_is_opened_again_is_drawn_from() -> None:
    """What was remembered of hosts that were closed is forgotten when one is open again."""
    frontier, rng = filled(4000, hosts=2), np.random.default_rng(3)
    push(frontier, 4001, 4002, hosts=3, arm=1)
    both, one = np.array([True, True]), np.array([False, True])
    assert frontier.draw(np.array([4, 1]), rng, closed=both).arms.tolist() == [1]
    frontier.check()
    drawn = frontier.draw(np.array([4, 1]), rng, closed=one)
    assert drawn.arms.tolist() == [0] * 4 + [1]
    assert drawn.hosts.tolist() == [0] * 4 + [2]
    assert frontier.draw(np.array([4, 1]), rng, closed=both).arms.tolist() == [1]
    assert len(frontier.draw(np.array([4, 1]), rng).slots) == 5


def test_where_nothing_is_open_no_randomness_is_used() -> None:
    """An empty draw leaves the stream as it was, so that asking in vain changes nothing."""
    frontier, rng = filled(10), np.random.default_rng(4)
    before = rng.bit_generator.state
    hosts = {f"h{i}" for i in range(5)}
    for how in ({"busy": hosts}, {"closed": np.ones(5, np.bool_)}, {"busy": {"h0", "h1"}, "closed": np.arange(5) > 1}):
        drawn = frontier.draw(np.array([9]), rng, **how)
        assert [len(column) for column in drawn] == [0] * 4
        assert drawn.vectors.shape == (0, 3)
    assert rng.bit_generator.state == before
    assert len(frontier.draw(np.array([9]), rng, busy=hosts - {"h4"}).slots) == 9
    assert rng.bit_generator.state != before


@pytest.mark.parametrize("busy", [set(), {"h0", "h2"}])
def test_a_frontier_that_was_stored_draws_the_same(busy: set[str], tmp_path: Path) -> None:
    """After a checkpoint and a reopening, draws continue unchanged; memory and disk draw the same."""
    frontiers = [filled(900, sqlite_frontier(tmp_path / "one.sqlite", VECTORS)), filled(900)]
    for frontier in frontiers:
        _updated(frontier, tmp_path)
        push(frontier, 900, 1000, arm=2)
        frontier.take(700)
    one, other = frontiers
    one.checkpoint()
    drawn, waiting = [], other.waiting.tolist()
    for step in range(3):
        rng = np.random.default_rng(5)
        if step == 2:
            one.close()
            one = sqlite_frontier(one.path, VECTORS)
            assert _divided(one, tmp_path).waiting.tolist() == waiting
        frontier = other if step == 1 else one
        taken = []
        for _ in range(200):
            found = frontier.draw(COUNTS, rng, busy=busy)
            pick = frontier.take_drawn(int(found.slots[-1]))
            taken.append((pick.key, found.vectors.tolist()))
            frontier.settle(pick)
        drawn.append(taken)
        frontier.check()
    assert drawn[0] == drawn[1] == drawn[2]
    one.close()


def test_a_division_of_many_shows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arms of many chunks are divided when somebody looks; counts, draws, scans and vectors are right before that."""
    monkeypatch.setattr(chunks, "SIZE", 64)
    frontier, rng = filled(0), np.random.default_rng(6)
    codes = rng.integers(0, 64, (20_000, 3)).astype(np.uint8)
    found = [Link(f"http://h{i % 9}/{i}", i, f"h{i % 9}") for i in range(20_000)]
    frontier.push(found, [Placement(0, 0.0, code) for code in codes])
    arms = np.zeros(20_000, int)
    for new_arm in range(1, 12):
        arm, column, above = int(rng.integers(new_arm)), int(rng.integers(3)), int(rng.integers(10, 50))
        frontier.divide(arm, column, above, new_arm)
        arms[(arms == arm) & (codes[:, column] > above)] = new_arm
        assert frontier.waiting.tolist() == np.bincount(arms, minlength=new_arm + 1).tolist()
        drawn = frontier.draw(np.full(new_arm + 1, 5), rng, busy={"h1"})
        for slot, arm_, vector in zip(drawn.slots.tolist(), drawn.arms, drawn.vectors, strict=True):
            pick = frontier.take_drawn(slot)
            if pick is not None:
                assert arms[pick.key] == arm_ == pick.arm
                assert (codes[pick.key] == vector).all()
                frontier.release(pick)
    assert any(isinstance(chunk, chunks.Part) for each in frontier._pool._arms for chunk in each.chunks)
    for _ in range(400):
        frontier.draw(COUNTS, rng)
    assert not any(isinstance(chunk, chunks.Part) for each in frontier._pool._arms for chunk in each.chunks)
    assert sum(len(each.chunks) for each in frontier._pool._arms) < 20 * 20_000 // 64
    frontier.check()
    for arm in range(12):
        drawn = frontier.draw(None, rng)
        wanted = codes[arms == arm].tolist()
        assert drawn.vectors[drawn.arms == arm].tolist() == wanted


@pytest.mark.usefixtures("short")
def test_a_division_into_an_arm_that_is_not_empty_keeps_the_order() -> None:
    """As after a reopening: links placed in the new arm are already among the split ones, by their ages."""
    frontier, rng = filled(20), np.random.default_rng(8)
    push(frontier, 20, 40, arm=1)
    push(frontier, 40, 60)
    closed = np.array([True] * 5)
    frontier.push(links(60, host="open"), [Placement(2, 0.0, np.zeros(3, np.uint8))])
    frontier.push(links(61, host="open"), [Placement(0, 0.0, np.array([61, 63, 0], np.uint8))])
    assert frontier.draw(np.array([1, 1, 1]), rng, closed=closed).vectors[:, 0].tolist() == [61, 0]
    frontier.divide(0, 1, 20, 1)
    frontier.check()
    keys = keys_in(frontier, 1)
    assert keys == [*(key for key in range(60) if 20 <= key < 40 or key * 7 % 64 > 20), 61]
    drawn = frontier.draw(np.array([1, 1, 1]), rng, closed=closed)
    assert (drawn.arms.tolist(), drawn.vectors[:, 0].tolist()) == ([1, 2], [61, 0])


def test_slots_are_used_again() -> None:
    """A frontier of a thousand links stays as small as that, however many come and go."""
    frontier, rng = filled(1000), np.random.default_rng(7)
    frontier.divide(0, 1, 30, 1)
    for step in range(300):
        push(frontier, 1000 + 10 * step, 1010 + 10 * step)
        for slot in np.unique(frontier.draw(np.array([10, 10]), rng).slots)[:10].tolist():
            frontier.settle(frontier.take_drawn(slot))
    assert len(frontier._pool.record) < 1300
    frontier.check()


def test_what_is_no_vector_is_refused() -> None:
    """A memo of another width, or with other values than bytes, changes nothing, and the message says what is wrong."""
    frontier = filled(3)
    wrong = [
        (np.zeros(2, np.uint8), "width 2; this frontier keeps vectors of width 3"),
        (np.array([0, 0.5, 0], np.float32), "value 0.5"),
        (np.array([0, 256, 0], np.float32), "value 256"),
        (np.array([0, -1, 0], np.float32), "value -1"),
        (np.array([0, np.nan, 0], np.float32), "value nan"),
    ]
    for memo, words in wrong:
        with pytest.raises(FrontierError, match=words):
            frontier.push(links(10, 11), [Placement(0, 0.0, np.zeros(3, np.uint8)), Placement(0, 0.0, memo)])
        with pytest.raises(FrontierError, match=words):
            frontier.push(links(1), [Placement(0, 0.0, memo)])
    frontier.check()
    assert len(frontier) == 3
    for division in ((0, 3, 1, 1), (0, 0, 1, 0), (0, -1, 1, 1), (0, 0, 256, 1), (-1, 0, 1, 1), (2, 0, 1, 1)):
        with pytest.raises(FrontierError, match="cannot be divided"):
            frontier.divide(*division)


def test_an_arm_that_was_divided_is_no_new_arm() -> None:
    """Its divisions would not hold for links that come from another arm; nothing changes, and the message says so."""
    frontier = filled(40)
    frontier.divide(1, 0, 20, 2)
    with pytest.raises(FrontierError, match=r"arm 1 was divided before; give the number of a new arm"):
        frontier.divide(0, 0, 10, 1)
    frontier.check()
    assert frontier.waiting.tolist() == [40, 0, 0]
    frontier.divide(0, 0, 10, 3)
    with pytest.raises(FrontierError, match="arm 1 was divided before"):
        frontier.divide(0, 1, 10, 1)
    frontier.divide(1, 0, 20, 2)  # once more
    frontier.check()


def test_a_division_is_repeated_though_its_new_arm_was_divided() -> None:
    """Repeating all splits in their order changes nothing."""
    frontier = filled(40)
    divisions = [(0, 1, 20, 1), (1, 2, 30, 2), (0, 0, 20, 2)]
    for division in divisions:
        frontier.divide(*division)
    waiting = frontier.waiting.tolist()
    for division in divisions:
        frontier.divide(*division)
    frontier.check()
    assert frontier.waiting.tolist() == waiting


@pytest.mark.parametrize("width", [0, -1, 1 << 16])
def test_a_width_that_cannot_be_is_refused(width: int, tmp_path: Path) -> None:
    """Vectors have a width from 1 to 65535; nothing is left open where they have not."""
    for make in (memory_frontier, lambda keeps: sqlite_frontier(tmp_path / "frontier.sqlite", keeps)):
        with pytest.raises(FrontierError, match=f"cannot have the width {width}"):
            make(Vectors(width))


def test_a_file_with_other_vectors_is_refused(tmp_path: Path) -> None:
    """A crawl that was stored without vectors, or with those of another width, cannot resume with these."""
    plain, other = sqlite_frontier(tmp_path / "plain"), filled(5, sqlite_frontier(tmp_path / "other", VECTORS))
    plain.push(links(1), [Placement(0, 0.0)])
    cases = [
        (plain, "no vectors", Vectors(4), "vectors of width 4"),
        (other, "vectors of width 3", Ranks(), "no vectors"),
    ]
    cases.append((other, "vectors of width 3", Vectors(4), "vectors of width 4"))
    for frontier, then, keeps, now in cases:
        if frontier.changed:
            frontier.checkpoint()
        frontier.close()
        with pytest.raises(ResumeError, match=f"keeps {then}, but this policy needs {now}; .*another JOBDIR"):
            sqlite_frontier(frontier.path, keeps)
    empty = sqlite_frontier(tmp_path / "empty")
    empty.checkpoint()
    empty.close()
    sqlite_frontier(empty.path, Vectors(2)).close()


@pytest.mark.parametrize(
    "sql", ["UPDATE links SET memo = x'0102' WHERE row = 2", "UPDATE links SET memo = x'01020304' WHERE row = 1"]
)
def test_vectors_that_do_not_fit_are_found(sql: str, tmp_path: Path) -> None:
    """A row with a vector of another width is damage; one without has zeros."""
    frontier = filled(5, sqlite_frontier(tmp_path / "frontier.sqlite", VECTORS))
    frontier.checkpoint()
    frontier.close()
    with sqlite3.connect(frontier.path) as database:
        database.execute("UPDATE links SET memo = NULL WHERE row = 1")
    again = sqlite_frontier(frontier.path, VECTORS)
    assert again.vectors([0, 1]).tolist() == [[0, 0, 0], [1, 7, 11]]
    again.close()
    with sqlite3.connect(frontier.path) as database:
        database.execute(sql)
    with pytest.raises(StorageError, match="vector of another width"):
        sqlite_frontier(frontier.path, VECTORS)


def test_a_pick_has_the_vector_and_the_arm_of_its_time(tmp_path: Path) -> None:
    """A pick in flight keeps its vector; released, it is queued where its vector belongs now."""
    frontier = filled(5, sqlite_frontier(tmp_path / "frontier.sqlite", VECTORS))
    frontier.checkpoint()
    frontier.divide(0, 1, 20, 1)
    pick = frontier.take(3)
    assert (pick.arm, pick.memo.tolist()) == (1, [3, 21, 33])
    frontier.divide(1, 2, 30, 2)
    frontier.checkpoint()
    frontier.close()
    again = sqlite_frontier(frontier.path, VECTORS)
    assert {id_: repr(each) for id_, each in again.flying.items()} == {pick.id: repr(pick)}
    again.divide(0, 1, 20, 1)
    again.divide(1, 2, 30, 2)
    again.release(again.flying[pick.id])
    assert keys_in(again, 2) == [3, 4]
    again.check()
    again.close()


def test_check_finds_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the things that a pool counts twice is compared."""
    monkeypatch.setattr(pool, "FEW_ARMS", 0)

    def spoil(change: Callable[[Any], object], words: str) -> None:
        frontier = _divided(filled(40), None)
        frontier.draw(COUNTS, np.random.default_rng(0), closed=np.array([True] * 4 + [False]))
        frontier.check()
        change(frontier._pool)
        with pytest.raises(FrontierError, match=words):
            frontier.check()

    spoil(lambda pool: pool._free.append(3), "the free slots")
    spoil(
        lambda pool: pool.awake({"h1"}) is None or pool._pairs.count.__setitem__(0, 7), "the counts of arms and hosts"
    )
    spoil(lambda pool: pool._host_waiting.__setitem__(1, 7), "the counts of the hosts")
    spoil(lambda pool: pool._waiting.__setitem__(1, 99), "arm 1 counts 99 links")
    spoil(lambda pool: pool.divide(1, 1, 63, 5) or pool.divisions.update({1: [(1, 0, 6)]}), "is in another")
    spoil(lambda pool: pool._arms[0].chunk(0).reverse(), "not in order")
    spoil(lambda pool: pool._vectors.extend(b"x"), "vectors are not one for each slot")
    spoil(lambda pool: pool._flat[1].__setitem__(0, 1), "the chunks have other lengths")
    spoil(lambda pool: pool._arms[0].lows.__setitem__(0, 99), "begins before its bound")
