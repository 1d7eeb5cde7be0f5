"""The frontier in a file: it holds the last checkpoint, whatever happens, and says what is wrong with it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus import FrontierError, Link, Placement, ResumeError, State
from scrapy_focus.core.errors import StorageError
from scrapy_focus.frontiers.sqlite import database
from scrapy_focus.frontiers.sqlite.database import read_notes
from scrapy_focus.frontiers.sqlite.frontier import SqliteRanked, sqlite_frontier
from tests.made import HANG, links

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a frontier may be."""
    return tmp_path / "frontier.sqlite"


@pytest.fixture
def frontier(path: Path) -> Iterator[SqliteRanked]:
    """Return a frontier with a hundred links of three hosts in two arms, ranks rising, not yet on disk."""
    frontier = sqlite_frontier(path)
    push(frontier, 0, 100)
    yield frontier
    frontier.close()


def push(frontier: SqliteRanked, start: int, end: int) -> None:
    """Put some links in."""
    found = [Link(f"http://h{i % 3}/{i}", i, f"h{i % 3}", payload=b"%d" % i) for i in range(start, end)]
    frontier.push(found, [Placement(i % 2, float(i), np.array([i], np.float32)) for i in range(start, end)], origin=1)


def contents(frontier: SqliteRanked) -> dict[int, tuple[object, ...]]:
    """Return the queued links, by key; check the frontier."""
    frontier.check()
    views = [view for arm in range(len(frontier.waiting)) for view in frontier.scan(arm)]
    return {link.key: (link.url, link.payload, place.arm, place.rank, place.memo.tolist()) for link, place in views}


def reopened(frontier: SqliteRanked) -> SqliteRanked:
    """Close a frontier, and open its file."""
    frontier.close()
    return sqlite_frontier(frontier.path)


class Gate:
    """Keeps the writer of a frontier from writing until it is opened."""

    def __init__(self, frontier: SqliteRanked, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.entered = threading.Event()
        write = frontier._records._writer._write

        def wait(changes):
            self.entered.set()
            assert self.open.wait(HANG)
            write(changes)

        monkeypatch.setattr(frontier._records._writer, "_write", wait)


def test_the_file_holds_the_last_checkpoint(frontier: SqliteRanked) -> None:
    """What comes, moves, leaves or is fetched after a checkpoint is not in the file."""
    before = contents(frontier)
    frontier.checkpoint({"a": b"1", "b": b"2"})
    push(frontier, 100, 150)
    frontier.move([1, 2, 3], [Placement(5, 0.5), None, Placement(0, 9.0)])
    frontier.settle(frontier.take(4))
    frontier.take(5)
    frontier.push(links(777), [None])
    again = reopened(frontier)
    assert contents(again) == before
    assert again.notes == {"a": b"1", "b": b"2"}
    assert again.states([4, 5, 110, 777]) == [State.WAITING, State.WAITING, State.NEW, State.NEW]
    assert len(again.waiting) == 2
    again.checkpoint({"b": b"3"})
    again = reopened(again)
    assert again.notes == {"a": b"1", "b": b"3"}
    again.close()


def test_a_record_that_moved_comes_back_as_it_moved(frontier: SqliteRanked) -> None:
    """A placement given to a link on disk, twice even, counts before and after the checkpoint that writes it."""
    frontier.checkpoint()
    for rank in (5.0, 500.0):
        frontier.move([10], [Placement(1, rank, np.array([7, 8]), "HEAD")])
    assert frontier.changed == 1
    for _ in range(2):
        pick = frontier.pop(1)
        assert (pick.key, pick.rank, pick.method, pick.memo.tolist()) == (10, 500.0, "HEAD", [7.0, 8.0])
        assert pick.memo.dtype == np.float32
        frontier.release(pick)
        frontier.checkpoint()
        frontier.flush()
    frontier.move([10], [Placement(1, 500.0)])
    frontier.checkpoint()
    frontier.close()
    again = sqlite_frontier(frontier.path)
    pick = again.pop(1)
    assert (pick.key, pick.rank, pick.method, pick.memo) == (10, 500.0, "GET", None)
    again.close()


def test_states_come_back(frontier: SqliteRanked) -> None:
    """A key has the last of its states, in whatever order it had them, over many checkpoints."""
    states = {}
    for step, (key, method) in enumerate(
        [(1, "HEAD"), (1, "GET"), (2, "GET"), (2, "HEAD"), (3, "HEAD"), (4, "GET")] * 2
    ):
        frontier.push(links(key), [Placement(0, 1.0, None, method)])
        frontier.settle(frontier.take(key))
        states[key] = State.PROBED if method == "HEAD" else State.FETCHED
        if step % 3:
            frontier.checkpoint()
    frontier.push(links(5, 6), [None, None])
    frontier.push(links(3, 4), [Placement(0, 0.0)] * 2)
    frontier.move([6], [None])
    frontier.checkpoint()
    again = reopened(frontier)
    assert {key: again.states([key])[0] for key in (1, 2)} == {1: State.FETCHED, 2: State.PROBED}
    assert again.states([3, 4, 5, 6]) == [State.WAITING, State.WAITING, State.WAITING, State.GIVEN_UP]
    again.check()
    again.close()


def test_a_pick_in_flight_keeps_its_record_until_it_is_settled(frontier: SqliteRanked) -> None:
    """A pick survives checkpoints in flight; settled, its row goes with the next checkpoint."""
    pick = frontier.pop(0)
    for _ in range(2):
        frontier.checkpoint()
        frontier = reopened(frontier)
        assert {id_: repr(each) for id_, each in frontier.flying.items()} == {pick.id: repr(pick)}
        frontier.check()
    frontier.settle(pick)
    frontier.close()
    frontier = sqlite_frontier(frontier.path)
    frontier.settle(pick)
    frontier.checkpoint()
    frontier = reopened(frontier)
    assert not frontier.flying
    assert frontier.states([pick.key]) == [State.FETCHED]
    assert frontier._records._reader.execute("SELECT count(*) FROM links").fetchone() == (99,)
    frontier.close()


KILLED = """
import os, random, signal, sys
from pathlib import Path
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from tests.frontiers.test_sqlite import contents, push
frontier = sqlite_frontier(Path(sys.argv[1]))
for step in range(5):
    push(frontier, 1000 * step, 1000 * step + 900)
    said = lambda step=step: print(f"committed {step}\\n", end="", flush=True)
    frontier.checkpoint({"step": b"%d" % step}, then=said)
    push(frontier, 1000 * step + 900, 1000 * step + 1000)
    frontier.settle(frontier.pop(0))
    if step == 3:
        frontier.flush()
push(frontier, 9000, 9900)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("_", range(3))
def test_a_kill_leaves_the_last_checkpoint(path: Path, _: int) -> None:
    """However it ends, the file holds exactly what was given to the last checkpoint that was committed."""
    done = subprocess.run([sys.executable, "-c", KILLED, path], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    told = int(done.stdout.split()[-1])
    again = sqlite_frontier(path)
    step = int(again.notes["step"])
    assert step in (told, told + 1)
    assert step >= 3
    fetched = [key for key in range(9900) if again.states([key])[0] == State.FETCHED]
    assert len(fetched) == step
    assert contents(again).keys() == {*range(1000 * step + 900)} - set(fetched)
    again.close()


FULL = """
import resource, sys
from pathlib import Path
from scrapy_focus.core.errors import StorageError
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from tests.frontiers.test_sqlite import contents, push
frontier = sqlite_frontier(Path(sys.argv[1]))
push(frontier, 0, 500)
frontier.checkpoint({"step": b"1"})
frontier.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
push(frontier, 500, 20_000)
told = []
frontier.checkpoint({"step": b"2"}, then=lambda: told.append("committed"))
for ask in (frontier.flush, frontier.checkpoint, frontier.checkpoint, frontier.flush):
    try:
        ask()
    except StorageError as error:
        print(error)
assert not told and not frontier.writing
assert len(contents(frontier)) == 20_000
frontier.close()
frontier.close()
"""


def test_a_full_disk_is_told_and_loses_nothing(path: Path) -> None:
    """Where a checkpoint cannot be written, everybody learns it, reading works, and the one before stays."""
    done = subprocess.run([sys.executable, "-c", FULL, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == 4
    assert len(set(told)) == 1
    assert str(path) in told[0]
    assert "everything up to the last checkpoint is saved" in told[0]
    again = sqlite_frontier(path)
    assert contents(again).keys() == {*range(500)}
    assert again.notes == {"step": b"1"}
    push(again, 500, 1000)
    again.checkpoint()
    assert len(contents(reopened(again))) == 1000


def test_what_fails_after_a_commit_is_told(frontier: SqliteRanked, path: Path) -> None:
    """An error of ``then`` is raised at the end, if nobody asked before; the transaction is kept."""

    def then() -> None:
        raise PermissionError("the journal cannot be removed")

    frontier.checkpoint(then=then)
    frontier._records._writer._queue.put(None)
    with pytest.raises(StorageError, match="the journal cannot be removed"):
        frontier.close()
    frontier.close()
    again = sqlite_frontier(path)
    assert len(again) == 100
    again.close()


def test_nobody_waits_for_a_checkpoint(frontier: SqliteRanked, monkeypatch: pytest.MonkeyPatch) -> None:
    """While two are written, all can be read, chosen and changed, and a third may be given; each is as it was."""
    gate, done = Gate(frontier, monkeypatch), []
    frontier.checkpoint({"step": b"1"}, then=lambda: done.append(1))
    assert gate.entered.wait(HANG)
    assert frontier.writing
    assert frontier.changed == 0
    before = contents(frontier)
    assert len(before) == 100
    moved = frontier.pop(0)
    frontier.release(moved)
    frontier.move([moved.key, 1], [Placement(3, -5.0, np.zeros(2, np.float32)), None])
    push(frontier, 100, 120)
    frontier.settle(frontier.take(3))
    frontier.checkpoint({"step": b"2"}, then=lambda: done.append(2))
    second = contents(frontier)
    assert second[moved.key][2:] == (3, -5.0, [0.0, 0.0])
    frontier.move([moved.key], [Placement(0, 7.0, np.ones(1, np.float32))])
    frontier.settle(frontier.take(50))
    frontier.take(51)
    assert contents(frontier)[moved.key][2:] == (0, 7.0, [1.0])
    assert frontier.changed == 2
    assert done == []
    gate.open.set()
    frontier.flush()
    assert done == [1, 2]
    assert not frontier.writing
    third = contents(frontier)
    copied = frontier.path.with_name("copy.sqlite")
    with sqlite3.connect(copied) as copy:
        frontier._records._reader.backup(copy)
    copy.close()
    stored = sqlite_frontier(copied)
    assert contents(stored) == second
    stored.close()
    frontier.checkpoint({"step": b"3"})
    again = reopened(frontier)
    assert contents(again) == third
    assert [pick.key for pick in again.flying.values()] == [51]
    again.close()


def test_the_log_shrinks(frontier: SqliteRanked) -> None:
    """The write-ahead log is emptied after each checkpoint, also while links are scanned."""
    frontier.checkpoint()
    frontier.flush()
    scan = frontier.scan(0)
    next(scan)
    frontier._records._writer._connection.execute("PRAGMA wal_autocheckpoint = 20")
    sizes = []
    for step in range(1, 20):
        push(frontier, 1000 * step, 1000 * step + 1000)
        frontier.checkpoint()
        frontier.flush()
        sizes.append(frontier.path.with_name(frontier.path.name + "-wal").stat().st_size)
    assert max(sizes) < 4 * sizes[0]


def test_a_frontier_without_a_path_leaves_nothing_behind() -> None:
    """Its file is a temporary one, removed when it is closed; closing twice does no harm."""
    frontier = sqlite_frontier()
    push(frontier, 0, 10)
    frontier.checkpoint()
    frontier.flush()
    assert frontier.path.exists()
    frontier.close()
    frontier.close()
    assert not frontier.path.parent.exists()
    with pytest.raises(StorageError, match="was closed"):
        frontier.checkpoint()


def test_a_row_that_cannot_be_written_fails_in_the_writer(frontier: SqliteRanked) -> None:
    """A checkpoint swaps the changes and walks through none of them; errors are reported later."""
    frontier._records._fresh.rows[1] = None  # type: ignore[assignment]
    frontier.checkpoint()
    with pytest.raises(StorageError):
        frontier.flush()


def damaged(path: Path, change: Callable[[bytearray], None]) -> bytes:
    """Make a file of a thousand links, and change its bytes; return them."""
    frontier = sqlite_frontier(path)
    push(frontier, 0, 1000)
    frontier.checkpoint()
    frontier.close()
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)
    return bytes(content)


def _cut(content: bytearray) -> None:
    del content[len(content) // 2 :]


def _scribble(content: bytearray) -> None:
    content[3 * 4096 :] = b"\xff" * (len(content) - 3 * 4096)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_cut, "is cut off: it has .* bytes; put a copy .* or run focus check"),
        (lambda content: content.__setitem__(slice(0, 16), b"something else.."), "is not the frontier of a crawl"),
        (lambda content: content.__setitem__(slice(0, None), b"short"), "is not the frontier of a crawl"),
        (lambda content: content.__setitem__(slice(68, 72), bytes(4)), "is not the frontier of a crawl"),
        (_scribble, "it is damaged: run focus check"),
    ],
)
def test_a_damaged_file_is_named_and_left_alone(change: Callable[[bytearray], None], words: str, path: Path) -> None:
    """What cannot be read gives a StorageError with the path and what to do, and stays as it is."""
    content = damaged(path, change)
    with pytest.raises(StorageError, match=f"frontier.sqlite.*{words}"):
        sqlite_frontier(path)
    assert path.read_bytes() == content
    assert [each.name for each in path.parent.iterdir() if each.name.endswith("wal") and each.stat().st_size] == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (database.OLDEST_FORMAT - 1, "of an earlier state of scrapy_focus"),
        (database.FORMAT + 1, "of a later version of scrapy_focus"),
    ],
)
def test_a_file_of_another_format_is_refused(path: Path, found: int, words: str) -> None:
    """A file of an earlier or later format is refused in one line that says how old it is, and what to do."""
    damaged(path, lambda content: None)
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version = {found}")
    for ask in (sqlite_frontier, read_notes):
        with pytest.raises(
            ResumeError,
            match=rf"has format {found}, {words}; this one reads {database.OLDEST_FORMAT} to {database.FORMAT}: finish the "
            "crawl with what began it, or use another JOBDIR$",
        ):
            ask(path)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM hosts WHERE host = 1",
        "UPDATE links SET host = 77 WHERE row = 5",
        "UPDATE links SET arm = -1 WHERE row = 5",
        "UPDATE links SET key = 'x' WHERE row = 5",
        "UPDATE links SET row = 1 << 40 WHERE row = 5",
        "INSERT INTO flying VALUES (9, 5000, 1)",
        "UPDATE seen SET keys = x'0102'",
        "DROP TABLE seen",
    ],
)
def test_a_file_that_contradicts_itself_is_refused(sql: str, path: Path) -> None:
    """Rows that cannot be are found at the opening."""
    frontier = sqlite_frontier(path)
    push(frontier, 0, 10)
    frontier.settle(frontier.pop(0))
    frontier.checkpoint()
    frontier.close()
    connection = sqlite3.connect(path)
    connection.execute(sql)
    connection.commit()
    connection.close()
    with pytest.raises(StorageError, match=r"it is damaged: run focus check"):
        sqlite_frontier(path)


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A folder that is not there, or a folder in place of the file, gives a StorageError that says what to do."""
    for path in (tmp_path / "no" / "frontier.sqlite", tmp_path):
        with pytest.raises(StorageError, match=r"cannot be used .*; (allow reading and writing|make sure)"):
            sqlite_frontier(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_cannot_be_written_is_refused(path: Path) -> None:
    """A read-only file is refused when it is opened, not at the first checkpoint."""
    damaged(path, lambda content: None)
    path.chmod(0o444)
    with pytest.raises(StorageError, match=r"readonly.*allow reading and writing"):
        sqlite_frontier(path)


def test_what_is_half_made_is_made_again(path: Path) -> None:
    """Leftovers of a kill while the file was made do no harm."""
    path.touch()
    path.with_name("frontier.sqlite.new").write_bytes(b"half")
    path.with_name("frontier.sqlite.new-wal").write_bytes(b"half")
    frontier = sqlite_frontier(path)
    push(frontier, 0, 3)
    frontier.checkpoint()
    again = reopened(frontier)
    assert len(contents(again)) == 3
    assert {each.name for each in path.parent.iterdir()} <= {path.name + end for end in ("", "-wal", "-shm", "-index")}
    again.close()


def test_a_file_that_breaks_in_mid_crawl_is_told(frontier: SqliteRanked, path: Path) -> None:
    """If a link cannot be read when it is chosen, a StorageError says so, and the link stays queued."""
    frontier.checkpoint()
    frontier.flush()
    frontier._records._reader.execute("DELETE FROM links WHERE row = 100")
    with pytest.raises(StorageError, match=r"row 100 of its links is missing.*it is damaged"):
        frontier.pop(1)
    assert frontier.states([99]) == [State.WAITING]
    assert frontier.pop(0).key == 98
    frontier._records._reader.close()
    with pytest.raises(StorageError, match="closed"):
        frontier.pop(0)


def test_another_program_may_not_write_meanwhile(frontier: SqliteRanked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that another program holds is named."""
    frontier.checkpoint()
    frontier.flush()
    other = sqlite3.connect(frontier.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    frontier._records._writer._connection.execute("PRAGMA busy_timeout = 10")
    push(frontier, 100, 101)
    frontier.checkpoint()
    with pytest.raises(StorageError, match=r"locked.*another program has it open"):
        frontier.flush()
    other.close()


def test_a_copy_of_the_file_is_all_there_is(frontier: SqliteRanked, path: Path, tmp_path: Path) -> None:
    """Once it is closed, the one file is enough."""
    before = contents(frontier)
    frontier.checkpoint()
    frontier.close()
    shutil.copy(path, tmp_path / "copy.sqlite")
    copy = sqlite_frontier(tmp_path / "copy.sqlite")
    assert contents(copy) == before
    copy.close()


def test_many_rows_are_read_and_written(path: Path) -> None:
    """More rows than one statement takes, of every kind, in one checkpoint."""
    frontier = sqlite_frontier(path)
    push(frontier, 0, 3000)
    frontier.checkpoint()
    frontier.move(range(1500), [Placement(9, float(-i), np.array([-i], np.float32)) for i in range(1500)])
    for key in range(1500, 2700):
        frontier.take(key)
    for pick in list(frontier.flying.values())[:1100]:
        frontier.settle(pick)
    frontier.push(
        [Link(f"http://other{i}/", -1 - i, f"other{i}") for i in range(1200)],
        [Placement(0, 0.0, np.ones(1, np.float32))] * 1200,
    )
    before, flying = contents(frontier), len(frontier.flying)
    frontier.checkpoint()
    again = reopened(frontier)
    assert contents(again) == before
    assert len(again.flying) == flying == 100
    assert again.states(range(1500, 1505)) == [State.FETCHED] * 5
    again.close()


def test_check_finds_a_record_that_is_missing(frontier: SqliteRanked) -> None:
    """A queued link without a record, or with that of another key, is found."""
    frontier.checkpoint()
    frontier.flush()
    frontier.check()
    frontier._records._reader.execute("UPDATE links SET key = 5000, sum = NULL WHERE row = 7")
    with pytest.raises(FrontierError, match="is queued elsewhere than it says"):
        frontier.check()
    frontier._records._reader.execute("DELETE FROM links WHERE row = 7")
    with pytest.raises(StorageError, match="row 7 of its links is missing"):
        frontier.check()


def test_notes_are_read_alone(frontier: SqliteRanked, path: Path, tmp_path: Path) -> None:
    """What a checkpoint was given can be read without a link; a file that is not there has none."""
    frontier.checkpoint({"a": b"1"})
    frontier.close()
    assert read_notes(path) == {"a": b"1"}
    assert read_notes(tmp_path / "no") == {}
    assert not (tmp_path / "no").exists()
    path.write_bytes(b"")
    assert read_notes(path) == {}
    path.write_bytes(b"short")
    with pytest.raises(StorageError, match="is not the frontier of a crawl"):
        read_notes(path)


def test_given_up_and_fetched_are_apart(frontier: SqliteRanked) -> None:
    """The last state of a key is restored, even if it was given up before or after it was fetched."""
    states = {}
    for step in range(4):
        frontier.push(links(1000, 1001), [None, None])
        frontier.drop(0, 1)
        given_up = [key for key in range(100) if frontier.states([key]) == [State.GIVEN_UP]]
        assert given_up[-1] == 2 * step
        frontier.settle(frontier.take(2 * step + 1), also=[2 * step, 1001, 2000 + step])
        frontier.push(links(2 * step + 1, host="h0"), [Placement(0, -1.0)])
        frontier.drop(0, 1)
        states |= {2 * step: State.FETCHED, 2 * step + 1: State.GIVEN_UP, 2000 + step: State.FETCHED}
        frontier.checkpoint()
    states |= {1000: State.GIVEN_UP, 1001: State.FETCHED, 90: State.WAITING, 5000: State.NEW}
    again = reopened(frontier)
    assert dict(zip(states, again.states(list(states)), strict=True)) == states
    again.check()
    again.push(links(1000, 1001), [Placement(0, 1.0)] * 2)
    assert again.states([1000, 1001]) == [State.WAITING] * 2
    again.check()
    again.close()
