"""A frontier that is opened by its index does what one does that is opened by its rows, and whatever happens to the
index costs nothing but time.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import rule

from scrapy_focus import Placement
from scrapy_focus.core.frontier import Ranks, Vectors
from scrapy_focus.frontiers.drawn import chunks
from scrapy_focus.frontiers.drawn.frontier import DrawnFrontier
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from scrapy_focus.frontiers.sqlite.index import Index
from scrapy_focus.lab.checks.drawn import WIDTH
from scrapy_focus.lab.checks.ledger import link
from tests.examples import n_examples
from tests.frontiers.test_machine import StoredDrawnStates, StoredRankedStates, StoredStates
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy_focus.core.frontier import Keeps

VECTORS = Vectors(WIDTH)
BOTH = pytest.mark.parametrize("keeps", [Ranks(), VECTORS], ids=["ranked", "drawn"])
DIVISIONS = ((0, 1, 1, 4), (0, 2, 2, 5), (4, 0, 0, 6))
SOME = [(), ("a",), ("b", "d"), ("a", "c", "unknown")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a frontier may be."""
    folder = tmp_path / "job"
    folder.mkdir()
    return folder / "frontier.sqlite"


def push(frontier: Any, keys: range, seed: int = 0) -> None:
    """Push links to places that are drawn, a fifth of them for later."""
    rng = np.random.default_rng(seed)
    is_drawn = hasattr(frontier, "draw")
    places = [
        Placement(
            int(rng.integers(4)), 0.0 if is_drawn else float(rng.integers(5)), rng.integers(0, 4, WIDTH).astype(np.uint8),
            "HEAD" if rng.random() < 0.2 else "GET", float(rng.integers(1, 9)) if rng.random() < 0.2 else 0.0,
        )
        for _ in keys
    ]  # fmt: skip
    frontier.push([link(key) for key in keys], places, origin=3)


def fill(frontier: Any, n: int = 400) -> None:
    """Queue, fetch, probe and give up links, put some to sleep or in flight, and split an arm if possible."""
    push(frontier, range(n))
    for division in DIVISIONS if hasattr(frontier, "divide") else ():
        frontier.divide(*division)
    for key in range(0, n, 5):
        frontier.take(key)
    for number, pick in enumerate([*frontier.flying.values()]):
        if number % 4:
            frontier.settle(pick)
        elif number % 8:
            frontier.release(pick)
    push(frontier, range(n - 40, n + 40), 1)
    frontier.push([link(-2)], [None])
    frontier.wake(3.0)


def stopped(path: Path, keeps: Keeps) -> None:
    """Have a frontier in a file that was closed with nothing newer than its last checkpoint."""
    frontier = sqlite_frontier(path, keeps)
    fill(frontier)
    frontier.checkpoint({"note": b"1"})
    frontier.close()


def index_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-index")


def stamp_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        (stamp,) = database.execute("SELECT value FROM counters WHERE name = 'stamp'").fetchone()
    return int(stamp)


def behaviour(frontier: Any, divisions: Any = DIVISIONS) -> list[Any]:
    """Return what a frontier says and does in a few hundred operations, and close it."""
    frontier.check()
    is_drawn = hasattr(frontier, "draw")
    for division in divisions if is_drawn else ():
        frontier.divide(*division)
    said = [view(frontier)]
    rng = np.random.default_rng(7)
    push(frontier, range(100, 108), 2)
    for step in range(60):
        busy = SOME[step % len(SOME)]
        if is_drawn:
            drawn = frontier.draw([2] * len(frontier.waiting), rng, busy=busy)
            said.append((drawn.arms.tolist(), drawn.vectors.tolist(), [frontier.hosts[host] for host in drawn.hosts]))
            pick = frontier.take_drawn(int(drawn.slots[-1])) if len(drawn.slots) else None
        else:
            pick = frontier.pop(int(rng.integers(5)), busy)
        said.append(pick and plain(pick))
        if pick is not None:
            (frontier.release if step % 5 == 0 else frontier.settle)(pick)
        if step % 20 == 0:
            frontier.wake(float(step))
            push(frontier, range(step, step + 30), step)
            said.append(view(frontier))
    frontier.check()
    said.append(view(frontier))
    frontier.close()
    return said


def plain(pick: Any) -> tuple[Any, ...]:
    return *pick._replace(memo=None), None if pick.memo is None else pick.memo.tolist()


def view(frontier: Any) -> list[Any]:
    """Return all that a frontier says and that does not change it."""
    said: list[Any] = [
        len(frontier), frontier.waiting.tolist(), [*frontier.hosts], frontier.asleep, frontier.next_due,
        sorted(plain(pick) for pick in frontier.flying.values()), frontier.states([*range(-3, 450)]),
        [frontier.awake(busy).tolist() for busy in SOME],
    ]  # fmt: skip
    if hasattr(frontier, "draw"):
        kept = frontier.kept(range(len(frontier.waiting)))
        order = np.argsort(kept.numbers)
        everything = frontier.draw(None, np.random.default_rng(0))
        said += [each[order].tolist() for each in kept]
        said += [everything.arms.tolist(), everything.vectors.tolist(), frontier.vectors(range(450)).tolist()]
    else:
        said += [frontier.heads.tolist()]
        for arm in range(len(frontier.waiting)):
            places = sorted(frontier.scan(arm), key=lambda each: each[0].key)
            said.append([(link, place._replace(memo=None)) for link, place in places])
    return said


def both_ways(path: Path, keeps: Keeps, into: Path, divisions: Any) -> None:
    """Open copies of a folder by its index and by its rows, and find no difference."""
    assert Index(path).read(stamp_of(path)) is not None
    did = []
    for by_rows in (False, True):
        shutil.copytree(path.parent, into)
        did.append(behaviour(sqlite_frontier(into / path.name, keeps, by_rows=by_rows), divisions))
        shutil.rmtree(into)
    assert did[0] == did[1]


class BothWays(StoredStates):
    """Opens the results of any operations by the index and by the rows."""

    @rule()
    def open_both_ways(self) -> None:
        self.checkpoint(b"", "x", False)
        self.machine.frontier.close()
        both_ways(self.path, self.keeps, self.path.parent / "copy", self.machine.model.divisions)
        self.machine.frontier = sqlite_frontier(self.path, self.keeps)
        for division in self.machine.model.divisions:
            self.machine.frontier.divide(*division)


class RankedBothWays(BothWays, StoredRankedStates):
    """Ranked frontiers."""


class DrawnBothWays(BothWays, StoredDrawnStates):
    """Drawn frontiers."""


SETTINGS = settings(max_examples=n_examples(25), stateful_step_count=20, deadline=None)
TestRankedBothWays = RankedBothWays.TestCase
TestRankedBothWays.settings = SETTINGS
TestDrawnBothWays = DrawnBothWays.TestCase
TestDrawnBothWays.settings = SETTINGS


@pytest.mark.slow
@BOTH
def test_many_links_come_back(keeps: Keeps, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues of several runs, and arms of several chunks, are as they were."""
    monkeypatch.setattr(chunks, "SIZE", 300)
    frontier = sqlite_frontier(path, keeps)
    fill(frontier, 9_000)
    frontier.checkpoint()
    frontier.close()
    both_ways(path, keeps, tmp_path / "copy", DIVISIONS)


@pytest.mark.slow
@BOTH
def test_many_that_were_given_up_together_come_back(keeps: Keeps, path: Path, tmp_path: Path) -> None:
    """Nobody has asked for them since, so their keys are not where others are."""
    frontier = sqlite_frontier(path, keeps)
    fill(frontier, 3000)
    if isinstance(frontier, DrawnFrontier):
        frontier.drop(frontier.draw(None, np.random.default_rng(0)).slots[:900])
    else:
        frontier.drop(1, 400)
    frontier.checkpoint()
    frontier.close()
    late = Index(path).read(stamp_of(path)).columns["given_up.late"]
    assert len(late.parts[0]) >= 400
    both_ways(path, keeps, tmp_path / "copy", DIVISIONS)


@BOTH
def test_a_kill_before_the_first_checkpoint_leaves_the_index(keeps: Keeps, path: Path, tmp_path: Path) -> None:
    """What a process leaves that opened a frontier, changed it and wrote nothing opens by the index again."""
    stopped(path, keeps)
    frontier = sqlite_frontier(path, keeps)
    push(frontier, range(500, 520), 4)
    copy = shutil.copytree(path.parent, tmp_path / "copy") / path.name
    frontier.close()
    assert copy.with_name(f"{copy.name}-wal").exists()
    again = sqlite_frontier(copy, keeps)
    again.close()
    assert Index(copy).read(stamp_of(copy)) is not None
    assert behaviour(sqlite_frontier(copy, keeps)) == behaviour(sqlite_frontier(path, keeps, by_rows=True))


@BOTH
def test_an_index_is_used_again_until_something_is_written(keeps: Keeps, path: Path) -> None:
    """Who opens a frontier and writes nothing leaves the index; the first checkpoint removes it."""
    stopped(path, keeps)
    before = index_of(path).read_bytes()
    for _ in range(2):
        frontier = sqlite_frontier(path, keeps)
        frontier.take(3)
        frontier.close()
        assert index_of(path).read_bytes() == before
    frontier = sqlite_frontier(path, keeps)
    frontier.take(3)
    frontier.checkpoint()
    frontier.flush()
    assert not index_of(path).exists()
    frontier.close()
    assert index_of(path).exists()


def test_what_is_in_the_index_is_what_counts(path: Path) -> None:
    """No row is read when it is used: with another index for the same state, other links are queued."""
    stopped(path, Ranks())
    stamp = stamp_of(path)
    saved = Index(path).read(stamp)
    assert saved is not None
    (column,) = saved.columns["fetched.late"].parts
    column.append(123_456_789)  # type: ignore[union-attr]
    Index(path).write(saved, stamp)
    frontier = sqlite_frontier(path)
    assert 123_456_789 in frontier._fetched
    frontier.close()


def _fly(frontier: Any) -> None:
    frontier.take(next(key for key in range(400) if frontier.states([key])[0].name == "WAITING"))


CHANGES: dict[str, Callable[[Any], object]] = {
    "a link came": lambda frontier: frontier.push([link(9000)], [Placement(0, 0.0)]),
    "a link was refused": lambda frontier: frontier.push([link(9000)], [None]),
    "a host came": lambda frontier: frontier._order.host("new"),
    "a link flies": _fly,
    "a pick is settled": lambda frontier: frontier.settle(next(iter(frontier.flying.values()))),
    "a pick is released": lambda frontier: frontier.release(next(iter(frontier.flying.values()))),
    "time passed": lambda frontier: frontier.wake(5.0),
}
OF_ONE_KIND: dict[str, tuple[Keeps, Callable[[Any], object]]] = {
    "a link moved": (Ranks(), lambda frontier: frontier.move([2], [Placement(1, 9.0)])),
    "links were given up": (Ranks(), lambda frontier: frontier.drop(1, 5)),
    "an arm was divided": (VECTORS, lambda frontier: frontier.divide(1, 0, 1, 3)),
}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("keeps", "change"),
    [(keeps, change) for change in CHANGES.values() for keeps in (Ranks(), VECTORS)] + [*OF_ONE_KIND.values()],
    ids=[f"{kind}: {name}" for name in CHANGES for kind in ("ranked", "drawn")] + [*OF_ONE_KIND],
)
@pytest.mark.parametrize("opened", ["now", "again"])
def test_what_came_after_a_checkpoint_is_in_no_index(
    opened: str, keeps: Keeps, change: Callable[[Any], object], path: Path, tmp_path: Path
) -> None:
    """Where anything changed since the last checkpoint, that one is found again, as if the process had been killed."""
    stopped(path, keeps)
    wanted = behaviour(
        sqlite_frontier(shutil.copytree(path.parent, tmp_path / "copy") / path.name, keeps, by_rows=True)
    )
    frontier = sqlite_frontier(path, keeps)
    if opened == "now":
        frontier.checkpoint()
        frontier.flush()
    change(frontier)
    frontier.close()
    assert index_of(path).exists() == (opened == "again")
    assert behaviour(sqlite_frontier(path, keeps)) == wanted


@pytest.mark.few(4)
@BOTH
@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_index_is_not_used(
    seed: int, keeps: Keeps, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it is, the rows are read, and the log says so in one line."""
    stopped(path, keeps)
    wanted = behaviour(
        sqlite_frontier(shutil.copytree(path.parent, tmp_path / "copy") / path.name, keeps, by_rows=True)
    )
    file, rng = index_of(path), random.Random(seed)
    content = bytearray(file.read_bytes())
    at = rng.randrange(len(content))
    match seed % 4:
        case 0:
            content[at] ^= 1 << rng.randrange(8)
        case 1:
            del content[at:]
        case 2:
            content[at : at + 50] = bytes(50) if any(content[at : at + 50]) else b"x" * 50
        case 3:
            content += content[-200:]
    file.write_bytes(content)
    with caplog.at_level(logging.INFO):
        frontier = sqlite_frontier(path, keeps)
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == [f"{file} is not used"]
    assert behaviour(frontier) == wanted


@pytest.mark.parametrize(
    "content",
    [b"", b"scrapy_focus index 0 little\n", b"scrapy_focus index 2 big\n" + bytes(500), b"\0" * 500, bytes(range(256))],
)
def test_a_file_that_is_no_index_is_not_used(content: bytes, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It may be of another version, of another machine, or of nobody."""
    stopped(path, Ranks())
    assert Index(path).read(stamp_of(path) + 1) is None
    index_of(path).write_bytes(content)
    frontier = sqlite_frontier(path)
    assert len(frontier) > 200
    assert "is not used" in caplog.text
    frontier.check()
    frontier.close()


@pytest.mark.slow
def test_columns_that_do_not_fit_are_not_used(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also an index that says of itself that it is whole may be somebody else's work."""
    stopped(path, Ranks())
    stamp = stamp_of(path)
    whole = Index(path).read(stamp)
    assert whole is not None
    for name in whole.columns:
        saved = Index(path).read(stamp)
        assert saved is not None
        del saved.columns[name]
        Index(path).write(saved, stamp)
        caplog.clear()
        frontier = sqlite_frontier(path)
        assert caplog.text.count("is not used") == 1, name
        frontier.check()
        frontier.close()
        Index(path).write(whole, stamp)


@BOTH
@pytest.mark.parametrize("how", ["of an earlier state", "of another job", "of a copy that went on"])
def test_an_index_of_another_state_is_not_used(how: str, keeps: Keeps, path: Path, tmp_path: Path) -> None:
    """An index that is put beside another state of the file, or another file, is not believed."""
    stopped(path, keeps)
    other = shutil.copytree(path.parent, tmp_path / "other") / path.name
    if how == "of an earlier state":
        frontier = sqlite_frontier(path, keeps)
        push(frontier, range(500, 520), 4)
        frontier.checkpoint()
        frontier.close()
    elif how == "of another job":
        other.unlink()
        frontier = sqlite_frontier(other, keeps)
        fill(frontier, 300)
        frontier.checkpoint()
        frontier.close()
    else:
        frontier = sqlite_frontier(other, keeps)
        frontier.checkpoint()
        frontier.close()
    wanted = behaviour(
        sqlite_frontier(shutil.copytree(path.parent, tmp_path / "copy") / path.name, keeps, by_rows=True)
    )
    shutil.copy2(index_of(other), index_of(path))
    assert behaviour(sqlite_frontier(path, keeps)) == wanted


@BOTH
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "killed"])
def test_another_program_may_have_written(closed: bool, keeps: Keeps, path: Path, tmp_path: Path) -> None:
    """A version without indexes leaves the stamp as it is: what it wrote is found all the same, also after a kill."""
    stopped(path, keeps)
    before = index_of(path).read_bytes()
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA wal_autocheckpoint = 0")
    database.execute("UPDATE links SET arm = 2 WHERE arm = 1")
    if closed:
        database.close()
    copy = shutil.copytree(path.parent, tmp_path / "copy") / path.name
    assert index_of(copy).read_bytes() == before
    frontier = sqlite_frontier(copy, keeps)
    assert frontier.waiting[1] == 0
    frontier.close()
    database.close()


@BOTH
@pytest.mark.parametrize("with_times", [True, False])
def test_a_folder_may_be_copied(with_times: bool, keeps: Keeps, path: Path, tmp_path: Path) -> None:
    """With the times of its files a copy opens by its index, without them by its rows."""
    stopped(path, keeps)
    how = shutil.copy2 if with_times else shutil.copyfile
    copy = shutil.copytree(path.parent, tmp_path / "copy", copy_function=how) / path.name
    if not with_times:
        os.utime(copy, ns=(0, 0))
    assert (Index(copy).read(stamp_of(copy)) is not None) == with_times
    assert behaviour(sqlite_frontier(copy, keeps)) == behaviour(sqlite_frontier(path, keeps, by_rows=True))


def test_a_disk_that_is_full_costs_the_index_only(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where it cannot be written, a stop is a stop all the same, and nothing is left of it."""
    stopped(path, Ranks())
    frontier = sqlite_frontier(path)
    frontier.checkpoint()
    frontier.flush()
    new = path.with_name(f"{path.name}-index.new")
    new.mkdir()  # in its way
    frontier.close()
    assert "was not written" in caplog.text
    assert not index_of(path).exists()
    new.rmdir()
    again = sqlite_frontier(path)
    assert len(again) > 200
    again.close()


@BOTH
def test_who_looks_while_it_is_closed_costs_the_index_only(
    keeps: Keeps, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As long as another process reads, the log of the database cannot be put into its file."""
    frontier = sqlite_frontier(path, keeps)
    fill(frontier)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN")
        database.execute("SELECT * FROM links LIMIT 1").fetchone()
        frontier.checkpoint()
        frontier.close()
        assert "was not written" in caplog.text
        assert not index_of(path).exists()
        database.execute("ROLLBACK")
    copy = shutil.copytree(path.parent, tmp_path / "copy") / path.name
    assert behaviour(sqlite_frontier(path, keeps)) == behaviour(sqlite_frontier(copy, keeps, by_rows=True))


@BOTH
def test_what_somebody_else_wrote_meanwhile_is_in_no_index(keeps: Keeps, path: Path) -> None:
    """Who changes the file of a frontier that is open changes rows, and not what is in memory."""
    frontier = sqlite_frontier(path, keeps)
    fill(frontier)
    frontier.checkpoint()
    frontier.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE links SET arm = 2 WHERE arm = 1")
    frontier.checkpoint()
    frontier.close()
    assert not index_of(path).exists()
    again = sqlite_frontier(path, keeps)
    assert again.waiting[1] == 0
    again.close()


def test_a_frontier_without_a_path_has_no_index() -> None:
    """It ends with its process."""
    frontier = sqlite_frontier()
    fill(frontier)
    frontier.checkpoint()
    folder = frontier.path.parent
    frontier.close()
    assert not folder.exists()


KILLED = """
import sys
from pathlib import Path
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from tests.frontiers.test_index import push
step = 0
while True:
    frontier = sqlite_frontier(Path(sys.argv[1]))
    if step:
        push(frontier, range(500 * step, 500 * step + 500), step)
        frontier.checkpoint({"step": b"%d" % step})
        frontier.flush()
    print(step, flush=True)
    step = int(frontier.notes.get("step", b"0")) + 1 + (step > 0)
    frontier.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_kill_at_any_moment_leaves_the_last_checkpoint(seed: int, path: Path, tmp_path: Path) -> None:
    """While a frontier is opened, written to and closed over and over, it may be killed at any time."""
    rng = random.Random(seed)
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            for _ in range(rng.randrange(2, 5)):
                process.stdout.readline()
            time.sleep(rng.random() * 0.1)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(HANG)
        copy = shutil.copytree(path.parent, tmp_path / f"copy{rng.random()}") / path.name
        rows = sqlite_frontier(copy, by_rows=True)
        step, n = int(rows.notes["step"]), len(rows) + rows.asleep
        assert n == 500 * step
        wanted = behaviour(rows)
        again = shutil.copytree(path.parent, tmp_path / f"again{rng.random()}") / path.name
        assert behaviour(sqlite_frontier(again)) == wanted
