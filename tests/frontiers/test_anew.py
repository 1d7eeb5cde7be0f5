"""A file whose links are placed anew: some at a time, under another policy, with a kill at any time."""

from __future__ import annotations

import sqlite3
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import Link, Placement, State, StorageError
from scrapy_focus.core.frontier import Ranks, Vectors
from scrapy_focus.frontiers.sqlite import frontier as frontier_module
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.core.frontier import Keeps

N = 1000
NOTES = {"journal": b"7"}


@pytest.fixture(params=[Ranks(), Vectors(3)], ids=str)
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of a thousand links, some of them fetched, given up or probed, and two in flight."""
    monkeypatch.setattr(frontier_module, "_PLACED_AT_ONCE", 100)
    frontier = sqlite_frontier(tmp_path / "frontier.sqlite", request.param)
    found = [Link(f"http://h{i % 3}/{i}", i, f"h{i % 3}", i % 5, payload=b"%d" % i) for i in range(N)]
    frontier.push(found, [Placement(i % 4, 0.0, None, "HEAD" if i == 3 else "GET") for i in range(N)], origin=2)
    for key in (1, 2, 3):
        frontier.settle(frontier.take(key))
    frontier.push(found[2:3], [Placement(0, 0.0)])
    frontier.push([Link("", N + 1)], [None])
    frontier.take(10)
    frontier.take(20)
    frontier.checkpoint(NOTES)
    frontier.close()
    return frontier.path


def anew(path: Path, keeps: Keeps) -> Any:
    return sqlite_frontier(path, keeps, anew=True)


def place(frontier: Any, links: list[Link], keeps: Keeps) -> None:
    """Push links; the new policy gives up every tenth."""
    memo = np.full(keeps.width, 3, np.uint8) if isinstance(keeps, Vectors) else None
    frontier.push(links, [None if link.key % 10 == 9 else Placement(1, 0.0, memo) for link in links])


def keys_in(path: Path) -> list[int]:
    """Return the keys of all links in a file."""
    database = sqlite3.connect(path)
    keys = [key for (key,) in database.execute("SELECT key FROM links")]
    database.close()
    return sorted(keys)


@pytest.mark.few(3)
@pytest.mark.parametrize("keeps", [Ranks(), Vectors(3), Vectors(5)], ids=str)
@pytest.mark.parametrize("kills", [(), (3,), (0, 1, 9), (10,)], ids=str)
def test_links_are_placed_anew(path: Path, keeps: Keeps, kills: tuple[int, ...]) -> None:
    """Whatever was kept, and whenever it is killed: all queued and flying links are queued again, and states are
    unchanged.
    """
    waited = sorted({*range(N)} - {1, 3})
    for kill in (*kills, -1):
        frontier = anew(path, keeps)
        assert (len(frontier), frontier.flying, frontier.notes) == (0, {}, NOTES)
        assert frontier.states([1, 3, N + 1, 50]) == [State.FETCHED, State.PROBED, State.GIVEN_UP, State.NEW]
        assert dict(frontier.interrupted) == {4: 10, 5: 20}
        for part, links in enumerate(frontier.stored()):
            assert {link.state for link in links} == {State.NEW}
            assert all(link == make(link.key) for link in links)
            place(frontier, links, keeps)
            if part == kill:  # before its checkpoint
                break
            frontier.checkpoint(NOTES)
            frontier.check()
        frontier.close()
        assert {*keys_in(path)} == {*waited}  # also what was given up, until all is placed
        if kill:  # else the file is as it was
            with pytest.raises(StorageError, match="open it anew"):
                sqlite_frontier(path, keeps)
    frontier = anew(path, keeps)
    for links in frontier.stored():
        place(frontier, links, keeps)
        frontier.checkpoint(NOTES)
    for pick_id, key in frontier.interrupted.items():
        assert frontier.take(key, pick_id=pick_id).key == key
    frontier.checkpoint({**NOTES, "policy": b"new"})
    frontier.close()
    again = sqlite_frontier(path, keeps)
    again.check()
    assert {id_: pick.key for id_, pick in again.flying.items()} == {4: 10, 5: 20}
    assert dict(again.interrupted) == {}
    assert list(again.stored()) == []
    assert keys_in(path) == [key for key in waited if key % 10 != 9]
    states = again.states(range(N))
    assert [key for key in range(N) if states[key] == State.WAITING] == [
        key for key in waited if key % 10 != 9 and key not in (10, 20)
    ]
    assert {key for key in range(N) if states[key] == State.GIVEN_UP} == {key for key in waited if key % 10 == 9}
    assert again.waiting.tolist() == [0, len(again)]
    again.close()


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of 60 links that are queued again or in flight, and of 30 others: 20 probed, fetched, given up
    each.
    """
    monkeypatch.setattr(frontier_module, "_PLACED_AT_ONCE", 10)
    frontier = sqlite_frontier(tmp_path / "frontier.sqlite", Ranks())
    found = [make(key) for key in range(90)]
    frontier.push(found, [Placement(0, 0.0, None, "HEAD" if key % 3 == 0 else "GET") for key in range(90)])
    for key in range(90):
        if key % 3 < 2:
            frontier.settle(frontier.take(key))
    frontier.drop(0, 30)
    assert frontier.states(range(90)) == [DONE[key % 3] for key in range(90)]
    frontier.checkpoint(NOTES)
    frontier.push(found[:60], [Placement(0, 1.0)] * 60)
    for key in (0, 1, 2):
        frontier.take(key)
    frontier.checkpoint(NOTES)
    frontier.close()
    return frontier.path


DONE = (State.PROBED, State.FETCHED, State.GIVEN_UP)


@pytest.mark.parametrize("keeps", [Ranks(), Vectors(3)], ids=str)
@pytest.mark.parametrize("kills", [(), (0,), (2, 4), (6,)], ids=str)
def test_links_that_wait_again_are_new(known: Path, keeps: Keeps, kills: tuple[int, ...]) -> None:
    """Their earlier states are forgotten until they are placed; the states of all others are unchanged."""
    for kill in (*kills, None):
        frontier = anew(known, keeps)
        assert frontier.states(range(90)) == [State.NEW] * 60 + [DONE[key % 3] for key in range(60, 90)]
        frontier.check()
        for part, links in enumerate(frontier.stored()):
            assert links == [make(key) for key in range(10 * part, 10 * part + 10)]
            place(frontier, links, keeps)
            frontier.checkpoint(NOTES)
            if part == kill:
                break
        if kill is None:
            for pick_id, key in frontier.interrupted.items():
                assert frontier.take(key, pick_id=pick_id).url == make(key).url
            frontier.checkpoint(NOTES)
        frontier.close()
    again = sqlite_frontier(known, keeps)
    again.check()
    expected = [State.GIVEN_UP if key % 10 == 9 else State.WAITING for key in range(60)]
    assert again.states(range(90)) == [State.FLYING] * 3 + expected[3:] + [DONE[key % 3] for key in range(60, 90)]
    assert keys_in(known) == [key for key in range(60) if key % 10 != 9]
    again.close()


def test_a_second_attempt_finds_what_the_first_one_found(known: Path) -> None:
    """What was placed, moved, dropped and given up before a kill is forgotten: the same links come in the same order."""
    for parts in (2, 1, 5):
        frontier = anew(known, Ranks())
        for part, links in enumerate(frontier.stored()):
            assert links == [make(key) for key in range(10 * part, 10 * part + 10)]
            frontier.push(links, [None if link.key % 2 else Placement(part, 0.0) for link in links])
            frontier.move([links[0].key], [Placement(7, 1.0)])
            frontier.drop(part, 2)
            frontier.checkpoint(NOTES)
            if part == parts:
                break
        frontier.close()
    frontier = anew(known, Ranks())
    assert [link for links in frontier.stored() for link in links] == [make(key) for key in range(60)]
    assert list(frontier.stored()) == []
    frontier.close()


def test_what_an_interrupted_attempt_placed_is_erased(known: Path) -> None:
    """The file has each link twice at most, however often it is killed."""
    for _ in range(4):
        frontier = anew(known, Ranks())
        for part, links in enumerate(frontier.stored()):
            frontier.push(links, [Placement(0, 0.0)] * 10)
            frontier.checkpoint(NOTES)
            if part == 3:
                break
        frontier.close()
        assert len(keys_in(known)) == 60 + 40


def make(key: int) -> Link:
    """Return a link as it was stored."""
    return Link(f"http://h{key % 3}/{key}", key, f"h{key % 3}", key % 5, payload=b"%d" % key)


def test_links_come_oldest_first(path: Path) -> None:
    """They come in the order of their first pushes; one that was fetched and queued again is younger."""
    frontier = anew(path, Ranks())
    keys = [link.key for links in frontier.stored() for link in links]
    assert keys == [key for key in range(N) if key not in (1, 2, 3)] + [2]
    frontier.close()
    frontier = anew(path, Ranks())
    assert [len(links) for links in frontier.stored()] == [100] * 9 + [98]
    frontier.close()
    assert len(keys_in(path)) == N - 2


def test_an_empty_file_has_nothing_to_place(tmp_path: Path) -> None:
    """A new file that is opened anew is one that is empty."""
    frontier = anew(tmp_path / "frontier.sqlite", Vectors(2))
    assert list(frontier.stored()) == []
    frontier.push([make(5)], [Placement(0, 0.0)])
    frontier.checkpoint()
    frontier.close()
    again = sqlite_frontier(frontier.path, Vectors(2))
    assert len(again) == 1
    again.close()


@pytest.mark.slow
def test_memory_does_not_grow_with_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is written before the next one is read: what is in memory of records is never more than one part."""
    monkeypatch.setattr(frontier_module, "_PLACED_AT_ONCE", 500)
    frontier = sqlite_frontier(tmp_path / "frontier.sqlite")
    long = "x" * 1000
    frontier.push([Link(f"http://h/{long}/{i}", i, "h") for i in range(20_000)], [Placement(0, 0.0)] * 20_000)
    frontier.checkpoint()
    frontier.close()
    frontier = anew(frontier.path, Ranks())
    tracemalloc.start()
    try:
        for links in frontier.stored():
            frontier.push(links, [Placement(0, 0.0)] * len(links))
            frontier.checkpoint()
            assert frontier.changed == 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    frontier.close()
    assert peak < 8 << 20  # the URLs of all have 20 MB
