"""Values that a job must not store, and foreign files in its folder."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import time
from collections import Counter
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import Crawl, EventLog, FrontierError, Job, Placement, Policy, State, StorageError
from scrapy_focus.core.log import read_log
from scrapy_focus.frontiers.memory import memory_frontier
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from scrapy_focus.jobs.doctor.check import check_job
from scrapy_focus.jobs.job import lock
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import fetch, links, page

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from scrapy_focus import Link, Outcome, Pick

NUMBERS = pytest.mark.parametrize(
    ("arm", "rank"),
    [("int64", "float64"), ("int32", "float32"), ("uint8", "float32"), ("int64", "int64"), ("uint8", "int64")],
)
NO_PLACES = pytest.mark.parametrize(
    "bad",
    [
        Placement(0, float("nan")), Placement(0, np.float32("nan")), Placement(-1, 0.0), Placement(np.int64(-1), 0.0),
        Placement(0, 10**400),
    ],
    ids=["nan", "numpy_nan", "arm", "numpy_arm", "huge"],
)  # fmt: skip


class Numbers(Policy):
    """Returns placements with numbers of NumPy, and moves all queued links with every outcome."""

    def __init__(self, *, arm: str = "int64", rank: str = "float32") -> None:
        self.arm = arm
        self.rank = rank

    def place(self, links: Sequence[Link], source: Outcome | None) -> list[Placement]:
        return [self.at(2 * (link.key % 2), link.key) for link in links]

    def at(self, arm: int, rank: int) -> Placement:
        return Placement(getattr(np, self.arm)(arm), getattr(np, self.rank)(rank))

    def select(self, busy: Collection[str]) -> Pick | None:
        awake = self.frontier.awake(busy)
        return self.frontier.pop(int(np.argmax(awake > 0)), busy) if awake.any() else None

    def learn(self, outcome: Outcome) -> None:
        keys = sorted(link.key for arm in range(len(self.frontier.waiting)) for link, _ in self.frontier.scan(arm))
        self.frontier.move(keys, [self.at(1 + key % 3, 100 - key) for key in keys])


@pytest.fixture(params=["memory", "sqlite"])
def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """An empty frontier of each kind."""
    made = memory_frontier() if request.param == "memory" else sqlite_frontier(tmp_path / "links.sqlite")
    yield made
    made.close()


@NUMBERS
def test_numbers_of_numpy_are_places(frontier: Any, arm: str, rank: str) -> None:
    """Links that are pushed and moved with them leave by rank, from the arms that were meant, as Python's own numbers."""
    policy, hosts = Numbers(arm=arm, rank=rank), ["a", "b", "c"]
    found = [link._replace(host=hosts[link.key % 3]) for link in links(*range(1, 13))]
    assert frontier.push(found, [policy.at(link.key % 2, link.key) for link in found]) == 12
    frontier.check()
    frontier.move([2, 4, 6], [policy.at(3, 9 - key) for key in (2, 4, 6)])
    frontier.check()
    assert frontier.waiting.tolist() == [3, 6, 0, 3]
    left = {n: [frontier.pop(n) for _ in range(int(frontier.waiting[n]))] for n in range(4)}
    assert {n: [pick.key for pick in picks] for n, picks in left.items()} == {
        0: [12, 10, 8], 1: [11, 9, 7, 5, 3, 1], 2: [], 3: [2, 4, 6],
    }  # fmt: skip
    assert {(type(pick.arm), type(pick.rank)) for picks in left.values() for pick in picks} == {(int, float)}
    for pick in left[0]:
        frontier.release(pick)
    frontier.check()


@NUMBERS
def test_numbers_of_numpy_are_stored(tmp_path: Path, arm: str, rank: str) -> None:
    """A crawl whose policy places and moves with them is opened again from its file, which is well."""
    folder, keys = tmp_path / "focus", set()
    for run in range(3):
        crawl = Crawl(Numbers(arm=arm, rank=rank), job=Job(folder), strict=True)
        if not run:
            crawl.add(links(*range(1, 21)))
        crawl.frontier.check()
        assert len(crawl.frontier) == 20 - len(keys)
        keys |= {fetch(crawl).key for _ in range(5)}
        crawl.frontier.check()
        crawl.checkpoint()
        crawl.close()
        assert check_job(tmp_path, say=lambda _: None).found == []
    with closing(sqlite3.connect(folder / "frontier.sqlite")) as database:
        assert set(database.execute("SELECT typeof(arm), typeof(rank) FROM links")) == {("integer", "real")}
    assert len(keys) == 15


@NO_PLACES
def test_what_is_no_place_changes_nothing(frontier: Any, bad: Placement) -> None:
    """It is refused before any link is pushed or moved, those before it in the list included."""
    frontier.push(links(1, 2), [Placement(0, 1.0), Placement(0, 2.0)])
    with pytest.raises(FrontierError, match="is not a valid placement"):
        frontier.push(links(3, 4, 5), [Placement(5, 9.0), bad, None])
    with pytest.raises(FrontierError, match="is not a valid placement"):
        frontier.move([1, 2], [Placement(5, 9.0), bad])
    frontier.check()
    assert frontier.states([3, 4, 5]) == [State.NEW] * 3
    assert frontier.waiting.tolist() == [2]
    assert [frontier.pop(0).key for _ in range(2)] == [2, 1]


def run(folder: Path, *, pages: int = 5, log: Path | None = None, stop: bool = False, **more: Any) -> Crawl:
    """Continue a crawl for some pages, then stop it, or leave it like a kill: without a last checkpoint."""
    log_file = None if log is None else EventLog(log)
    crawl = Crawl(BreadthFirst(), job=Job(folder, **more), log=log_file, strict=True)
    if not crawl.counts["selected"]:
        crawl.add(links(*range(1, 101)))
    for _ in range(pages):
        fetch(crawl)
    if stop:
        crawl.checkpoint()
    crawl.close()
    return crawl


def picked(log: Path) -> list[int]:
    """Return the ids of all picks of a log, in order."""
    return sorted(event["id"] for event in read_log(log) if event["event"] == "pick")


@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_a_log_that_begins_later(tmp_path: Path, name: str, stop: bool) -> None:
    """With a log from the second run on, no pick is logged twice, however often the crawl ends."""
    folder, log = tmp_path / "focus", tmp_path / name
    run(folder, stop=stop)
    for _ in range(4):
        crawl = run(folder, log=log, stop=stop)
    ids = [id_ for id_ in picked(log) if id_ > 5]  # those of the first run may be logged again
    assert ids == list(range(6, 26))
    assert len(set(picked(log))) == len(picked(log))
    assert crawl.counts["outcomes"] == 25


@pytest.mark.parametrize("stop", [False, True], ids=["killed", "stopped"])
@pytest.mark.parametrize("copied", [False, True], ids=["new", "moved"])
def test_a_log_somewhere_else(tmp_path: Path, copied: bool, stop: bool) -> None:
    """The same for a log that was moved, or that continues in another file, between two stops of the crawl."""
    folder, log, other = tmp_path / "focus", tmp_path / "log", tmp_path / "other"
    run(folder, log=log, stop=True)
    if copied:
        shutil.move(log, other)
    for _ in range(4):
        run(folder, log=other, stop=stop)
    assert picked(other) == list(range(1 if copied else 6, 26))


def test_a_journal_that_is_damaged_in_the_middle(tmp_path: Path) -> None:
    """Whole records after the damage are not dropped silently: the crawl does not resume."""
    folder = tmp_path / "focus"
    run(folder)
    journal = max(folder.glob("journal.*"))
    content = bytearray(journal.read_bytes())
    content[len(content) // 2] ^= 0xFF
    journal.write_bytes(content)
    job = Job(folder)
    with pytest.raises(StorageError, match="focus check"):
        Crawl(BreadthFirst(), job=job)
    job.close()
    assert journal.read_bytes() == content


def test_a_record_that_is_cut_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A kill in the middle of writing costs one record, and the log says so."""
    folder = tmp_path / "focus"
    run(folder)
    journal = max(folder.glob("journal.*"))
    journal.write_bytes(journal.read_bytes()[:-3])
    with caplog.at_level(logging.WARNING, "scrapy_focus"):
        crawl = run(folder, pages=0)
    assert crawl.counts["outcomes"] == 4
    assert len(crawl.frontier) == 96
    assert [record.getMessage() for record in caplog.records if "cut off or damaged" in record.getMessage()]


def test_a_checkpoint_every_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is due a minute after the last if there was an outcome since, and not if there was none."""
    now = 1000.0
    monkeypatch.setattr("scrapy_focus.jobs.job.time", SimpleNamespace(monotonic=lambda: now, time=time.time))
    job = Job(tmp_path)
    crawl = Crawl(BreadthFirst(), job=job)
    crawl.add(links(*range(1, 9)))
    job.flush()
    first = job.journals()
    now += 3600
    assert not job.due
    crawl.checkpoint()
    job.flush()
    assert job.journals() != first
    fetch(crawl)
    now += 59
    assert not job.due
    now += 2
    assert job.due
    before = job.journals()
    fetch(crawl)
    job.flush()
    assert max(job.journals()) > max(before)
    assert not job.due
    now += 3600
    assert not job.due
    crawl.close()


def test_large_checkpoints_are_more_rarely_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored policy of 9 MB is written again after 90 seconds, and not each minute."""
    now = 1000.0
    monkeypatch.setattr("scrapy_focus.jobs.job.time", SimpleNamespace(monotonic=lambda: now, time=time.time))
    policy = BreadthFirst()
    policy.large = bytes(9_000_000)  # type: ignore[attr-defined]
    job = Job(tmp_path)
    crawl = Crawl(policy, job=job)
    crawl.add(links(*range(1, 9)))
    job.flush()
    fetch(crawl)
    now += 89
    assert not job.due
    now += 2
    assert job.due
    crawl.close()


def test_a_checkpoint_that_fails_is_put_off(tmp_path: Path) -> None:
    """If a policy can no longer be pickled, the next attempt comes after as many outcomes as between checkpoints."""
    crawl = Crawl(BreadthFirst(), job=Job(tmp_path, every=5))
    crawl.add(links(*range(1, 31)))
    crawl.policy.spoiled = lambda: 0  # type: ignore[attr-defined]
    for _ in range(20):
        fetch(crawl)
    assert crawl.counts["error/checkpoint"] == 4
    crawl.close()
    crawl = Crawl(BreadthFirst(), job=Job(tmp_path))
    assert crawl.counts["outcomes"] == 20
    assert len(crawl.frontier) == 10
    crawl.close()


@pytest.mark.parametrize("name", ["journal.bak.7", "journal.x", "journal.7.bak", "journal.\u0667"])
def test_files_that_are_none_of_ours(tmp_path: Path, name: str) -> None:
    """Other files next to the journals are not read, and stay."""
    folder = tmp_path / "focus"
    run(folder, stop=True)
    (folder / name).write_bytes(b"mine")
    run(folder)
    assert run(folder, stop=True).counts["outcomes"] == 15
    assert (folder / name).read_bytes() == b"mine"
    assert check_job(tmp_path, say=lambda _: None).is_well


def test_a_journal_that_has_no_number(tmp_path: Path) -> None:
    """If the file does not name its journal, the message says what to do, and the folder is released."""
    folder = tmp_path / "focus"
    run(folder)
    with closing(sqlite3.connect(folder / "frontier.sqlite")) as database, database:
        database.execute("UPDATE notes SET value = ? WHERE name = 'journal'", (b"x",))
    with pytest.raises(StorageError, match="focus check") as raised:
        Job(folder)
    lock(folder).release()
    assert raised.value  # and with it all that it refers to, including the job
    assert not check_job(tmp_path, say=lambda _: None).is_well


class Careless(BreadthFirst):
    """Takes out more than it returns, every third time."""

    def __init__(self, *, returns: bool) -> None:
        super().__init__()
        self.returns = returns
        self.asked = 0

    def select(self, busy: Collection[str]) -> Pick | None:
        self.asked += 1
        if self.asked % 3:
            return super().select(busy)
        pick = super().select(busy)
        return (pick if super().select(busy) else None) if self.returns else None


@pytest.mark.parametrize("returns", [False, True], ids=["none", "one"])
def test_what_select_forgets_waits_again(returns: bool) -> None:
    """No pick is in flight without the crawl; picks already in flight stay."""
    crawl = Crawl(Careless(returns=returns), frontier=memory_frontier)
    crawl.add(links(*range(1, 31)))
    picks = []
    while (pick := crawl.next()) is not None:
        picks.append(pick)
        assert set(crawl.frontier.flying) == {each.id for each in picks}
        crawl.frontier.check()
    assert Counter(pick.key for pick in picks) == Counter(range(1, 31))
    assert crawl.counts["error/select"] >= 9
    for pick in picks:
        crawl.report(page(pick))
    assert not crawl.frontier.flying
