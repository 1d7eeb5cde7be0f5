"""A JOBDIR from somebody else: inspecting it runs none of its code, and a crawl does not resume in it."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sqlite3
import struct
import zlib
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import Budget, Crawl, FocusError, Policy, ResumeError, StorageError
from scrapy_focus.jobs.checksums import summed
from scrapy_focus.jobs.doctor.check import check_job
from scrapy_focus.jobs.doctor.cures import repair_job
from scrapy_focus.jobs.doctor.status import read_status
from scrapy_focus.jobs.job import Job
from scrapy_focus.jobs.journal import HEAD, Journal, journals_in, read_journal, whole_behind
from scrapy_focus.lab.checks.policy import _Site
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SITE = _Site(100)
LOOKS: list[Callable[[Path], object]] = [
    read_status,
    lambda jobdir: check_job(jobdir, say=str),
    lambda jobdir: repair_job(jobdir, say=str),
    lambda jobdir: repair_job(jobdir, anew=True, say=str),
]


class Bomb:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that was killed after 30 of 100 pages, ten of them since its last checkpoint."""
    jobdir = tmp_path_factory.mktemp("made") / "job"
    crawl = crawl_in(jobdir, BranchingBandit())
    crawl.add([SITE.link(0)])
    for _ in range(30):
        pick = crawl.next()
        crawl.sent(pick.id)
        crawl.report(*SITE.answer(pick))
        crawl.job.flush()
    crawl.job.close()
    return jobdir


def crawl_in(jobdir: Path, policy: Policy) -> Crawl:
    return Crawl(policy, seed=3, strict=True, job=Job(jobdir / "focus", every=20), budget=Budget(requests=500))


def write(jobdir: Path, statement: str, *values: object) -> None:
    """Change what is in the file of a frontier, and its checksums with it."""
    with closing(sqlite3.connect(jobdir / "focus" / "frontier.sqlite", isolation_level=None)) as database:
        database.execute(statement, values)
        notes = {name: value for name, value in database.execute("SELECT name, value FROM notes") if name != "sums"}
        sums = summed({name: value if isinstance(value, bytes) else b"" for name, value in notes.items()})["sums"]
        database.execute("INSERT OR REPLACE INTO notes VALUES ('sums', ?)", (sums,))


def append(jobdir: Path, body: bytes) -> None:
    """Put a whole record at the end of the last journal."""
    number = journals_in(jobdir / "focus")[-1]
    with (jobdir / "focus" / f"journal.{number}").open("ab") as file:
        file.write(HEAD.pack(len(body), zlib.crc32(body)) + body)


PLACES: dict[str, Callable[[Path, bytes], None]] = {
    "policy": lambda jobdir, data: write(jobdir, "UPDATE notes SET value = ? WHERE name = 'policy'", data),
    "crawl": lambda jobdir, data: write(jobdir, "UPDATE notes SET value = ? WHERE name = 'crawl'", data),
    "number": lambda jobdir, data: write(jobdir, "UPDATE notes SET value = ? WHERE name = 'journal'", data),
    "made": lambda jobdir, data: write(jobdir, "UPDATE notes SET value = ? WHERE name = 'made'", data),
    "another note": lambda jobdir, data: write(jobdir, "INSERT INTO notes VALUES ('other', ?)", data),
    "event": append,
    "within an event": lambda jobdir, data: append(jobdir, pickle.dumps(("add", [], None, 0.0))[:-1] + data[2:]),
    "requests": lambda jobdir, data: write(jobdir, "UPDATE links SET payload = ?", data),
    "vectors": lambda jobdir, data: write(jobdir, "UPDATE links SET memo = ?", data),
    "URLs": lambda jobdir, data: write(jobdir, "UPDATE links SET url = ?", data),
    "hosts": lambda jobdir, data: write(jobdir, "UPDATE hosts SET name = ?", data),
    "keys": lambda jobdir, data: write(jobdir, "UPDATE seen SET keys = ?", data),
    "counters": lambda jobdir, data: write(jobdir, "UPDATE counters SET value = ?", data),
}


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_run_by_looking(place: str, made: Path, tmp_path: Path) -> None:
    """A pickle wherever one may be, with right checksums: status, check and every repair do not run it."""
    touched = tmp_path / "touched"
    for look in LOOKS:
        jobdir = shutil.copytree(made, tmp_path / "job")
        PLACES[place](jobdir, pickle.dumps(Bomb(touched), protocol=5))
        with suppress(FocusError):
            look(jobdir)
        assert not touched.exists()
        shutil.rmtree(jobdir)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "policy",
            r"the policy in .* cannot be read: it names 'posix.system', which a JOBDIR may not contain",
        ),
        ("crawl", r"the state of the crawl in .* cannot be read"),
        (
            "event",
            r"journal\.\d cannot be read from byte [\d,]+ on: the stored data .* has more than plain values",
        ),
        (
            "within an event",
            r"journal\.\d cannot be read from byte [\d,]+ on: the stored data .* has more than plain values",
        ),
    ],
)
def test_a_crawl_does_not_resume(place: str, said: str, made: Path, tmp_path: Path) -> None:
    """It says in one line what is refused."""
    touched = tmp_path / "touched"
    jobdir = shutil.copytree(made, tmp_path / "job")
    PLACES[place](jobdir, pickle.dumps(Bomb(touched), protocol=5))
    with pytest.raises((ResumeError, StorageError), match=said) as raised:
        crawl_in(jobdir, BranchingBandit())
    assert "\n" not in str(raised.value)
    assert not touched.exists()


def test_a_policy_of_another_class_is_refused(made: Path, tmp_path: Path) -> None:
    """It is refused even though every name in it is allowed."""
    jobdir = shutil.copytree(made, tmp_path / "job")
    with closing(sqlite3.connect(made / "focus" / "frontier.sqlite")) as database:
        (data,) = database.execute("SELECT value FROM notes WHERE name = 'policy'").fetchone()
    assert b"BranchingBandit" in data
    write(jobdir, "UPDATE notes SET value = ? WHERE name = 'policy'", pickle.dumps([1, 2]))
    with pytest.raises(ResumeError, match=r"it is a list, not a BranchingBandit.*focus check --fix --anew"):
        crawl_in(jobdir, BranchingBandit())


SENSELESS = [
    b"", b"null", b"[]", b"{}", b"3", b"[" * 100_000, b"1e999", b'"' + b"x" * 1000 + b'"', b"\xff\xfe", b"9" * 10_000, b"-1",
]  # fmt: skip


@pytest.mark.parametrize("value", SENSELESS, ids=range(len(SENSELESS)))
@pytest.mark.parametrize("name", ["crawl", "journal", "made", "policy"])
def test_notes_that_make_no_sense_are_an_error_or_a_finding(
    name: str, value: bytes, made: Path, tmp_path: Path
) -> None:
    """And never another exception."""
    jobdir = shutil.copytree(made, tmp_path / "job")
    write(jobdir, "UPDATE notes SET value = ? WHERE name = ?", value, name)
    for look in LOOKS[:2]:
        with suppress(FocusError):
            look(jobdir)


@pytest.mark.few(25)
@pytest.mark.parametrize(
    "field",
    [
        "at",
        "best_arms",
        "counts",
        "description",
        "limits",
        "log",
        "rate",
        "rewards",
        "tables",
        "unsent",
        "used",
        "versions",
        "found_at",
    ],
)
@pytest.mark.parametrize("value", [None, "text", 1e400, [], [[]], [1, 2, 3], {"a": []}, {"requests": "x"}, {"": {}}])
def test_numbers_that_make_no_sense_are_an_error_or_shown(
    field: str, value: object, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status can print any of them."""
    from scrapy_focus.commands.status import show

    jobdir = shutil.copytree(made, tmp_path / "job")
    with closing(sqlite3.connect(jobdir / "focus" / "frontier.sqlite")) as database:
        state = json.loads(database.execute("SELECT value FROM notes WHERE name = 'crawl'").fetchone()[0])
    assert field in state
    write(jobdir, "UPDATE notes SET value = ? WHERE name = 'crawl'", json.dumps({**state, field: value}).encode())
    with suppress(FocusError):
        show(read_status(jobdir))
    with suppress(FocusError):
        check_job(jobdir, say=str)


@pytest.mark.parametrize("name", ["lock", "pid", "journal.2", "frontier.sqlite", "frontier.sqlite-wal", "anything"])
def test_files_that_lead_elsewhere_are_refused(name: str, made: Path, tmp_path: Path) -> None:
    """Otherwise, what is written to them, such as a process id, would go to another file of the user."""
    jobdir = shutil.copytree(made, tmp_path / "job")
    other = tmp_path / "other"
    path = jobdir / "focus" / name
    if path.exists():
        shutil.move(path, other)
    else:
        other.write_text("precious")
    before = other.read_bytes()
    path.symlink_to(other)
    for look in LOOKS:
        with pytest.raises(ResumeError, match=rf"{name} is not a regular file"):
            look(jobdir)
    assert other.read_bytes() == before
    path.unlink()
    os.mkfifo(path)
    for look in LOOKS:
        with pytest.raises((ResumeError, StorageError)):
            look(jobdir)


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE VIEW notes AS {ENDLESS} SELECT 'crawl' AS name, x AS value FROM n",
        "CREATE TRIGGER t AFTER DELETE ON saved BEGIN DELETE FROM links; END",
        "CREATE VIRTUAL TABLE notes USING fts5(name, value)",
    ],
)
def test_programs_in_the_file_are_refused(statement: str, made: Path, tmp_path: Path) -> None:
    """A view in place of a table could take forever to read."""
    jobdir = shutil.copytree(made, tmp_path / "job")
    with closing(sqlite3.connect(jobdir / "focus" / "frontier.sqlite", isolation_level=None)) as database:
        database.execute("ALTER TABLE notes RENAME TO saved")
        database.execute(statement)
    with pytest.raises(StorageError, match=r"contains a (view|trigger|virtual)"):
        read_status(jobdir)
    for repair in (check_job, repair_job):
        with suppress(StorageError):
            assert not repair(jobdir, say=str).is_well


def test_a_journal_full_of_beginnings_is_looked_through_in_bounded_time(tmp_path: Path) -> None:
    """Each of 20,000 places claims to be a record as long as the rest of the file; most of them are not summed."""
    n = 20_000
    part = HEAD.size + 2
    data = b"".join(struct.pack("<II", n * part - (i + 1) * part, 1) + b"\x80\x05" for i in range(n))
    path = tmp_path / "journal.1"
    path.write_bytes(data)
    summed_bytes = 0

    def crc32(body: bytes) -> int:
        nonlocal summed_bytes
        summed_bytes += len(body)
        return zlib.crc32(body)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scrapy_focus.jobs.journal.zlib", type("Counted", (), {"crc32": staticmethod(crc32)}))
        assert not list(whole_behind(path, 0))
    assert summed_bytes <= 10 * len(data)


def test_an_event_that_cannot_be_stored_is_an_error_at_once(tmp_path: Path) -> None:
    """The error occurs when it is written, and not on resume; earlier events stay."""
    journal = Journal(tmp_path / "journal.1")
    journal.append(("sent", None, 1))
    for _ in range(2):
        with pytest.raises(StorageError, match=r"cannot be stored in .*journal\.1: .* is a Bomb"):
            journal.append(("sent", Bomb(tmp_path), 1))
    journal.close()
    assert [event for event, _ in read_journal(tmp_path / "journal.1")] == [("sent", None, 1)]


class Holder(BreadthFirst):
    """Holds something of another library."""

    held: object = None


class Declared(Holder):
    """And says so."""

    stores = frozenset({"fractions", "xml.etree.ElementTree.Element"})


def test_what_another_library_makes_is_stored_where_it_is_named(tmp_path: Path) -> None:
    """By an attribute of the policy, or for a job; else the crawl does not start, and the message says what to do."""
    from xml.etree.ElementTree import Element

    holder = Holder()
    holder.held = Element("a")
    said = r"the policy Holder cannot be stored.*names 'xml.etree.ElementTree.Element'.*FOCUS_STORED_CLASSES.*stores"
    with pytest.raises(Exception, match=said):
        crawl_in(tmp_path / "a", holder)
    for name, policy, stores in [("b", Declared, []), ("c", Holder, ["xml.etree"])]:
        holder = policy()
        holder.held = Element("a")
        Crawl(holder, job=Job(tmp_path / name, stores=stores)).close()
        crawl = Crawl(policy(), job=Job(tmp_path / name, stores=stores))
        assert crawl.policy.held.tag == "a"
        crawl.close()
    with pytest.raises(ResumeError, match=r"cannot be read: it names 'xml"):
        Crawl(Holder(), job=Job(tmp_path / "c"))
