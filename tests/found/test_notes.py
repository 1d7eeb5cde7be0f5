"""The notes of a crawl keep the outcome of each link, survive a kill at any byte, and never fail on invalid data."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus.finders.kit.records.notes import NOTES, Answer, NoteBook, Notes, read_notes

if TYPE_CHECKING:
    from pathlib import Path


def answers(n: int, first: int = 0) -> list[Answer]:
    return [
        Answer(url=f"https://x/{i}", status=200, mime="text/csv", size=i, sent=1, files=float(i % 2), page="https://x/")
        for i in range(first, first + n)
    ]


def write(folder: Path, noted: list[Answer], *, resumes: bool = False, reason: str | None = None) -> NoteBook:
    """Note a run; with a reason, it has ended."""
    book = NoteBook(folder, resumes=resumes)
    book.begin({"budget": 7})
    for answer in noted:
        book.outcome(answer, elsewhere=["other.example"] if answer.size == 0 else [], left_out=[])
    if reason is not None:
        book.state({"reason": reason, "waiting": 3})
        book.close()
    return book


def test_notes_can_be_read_at_once(tmp_path: Path) -> None:
    """Each outcome is on the disk as soon as it is noted, while the crawl continues."""
    book = NoteBook(tmp_path)
    for n, answer in enumerate(answers(5), 1):
        book.outcome(answer, elsewhere=[], left_out=["jpg"] if n == 1 else [])
        found = read_notes(tmp_path)
        assert found.answers == answers(n)
        assert (found.crawl, found.left_out, found.state, found.damaged) == (1, ["jpg"], {}, 0)
    book.close()
    book.close()
    assert read_notes(tmp_path).answers == answers(5)


def test_every_field_is_restored(tmp_path: Path) -> None:
    """Any text of a site is kept, except the end of long ones; defaults are not written."""
    odd = Answer(
        url="https://x/\ud800\u202e", method="HEAD", status=None, mime="\x1b", size=1, sent=2, files=0.5,
        error="failure: X", why="w" * 5000, page="p\n", anchor="a" * 5000,
    )  # fmt: skip
    write(tmp_path, [odd, Answer(url="https://x/", size=1)], reason="finished")
    found = read_notes(tmp_path)
    assert found.answers == [odd._replace(why="w" * 1000, anchor="a" * 1000), Answer(url="https://x/", size=1)]
    assert found.runs == [{"budget": 7}]
    assert found.state == {"reason": "finished", "waiting": 3}
    (path,) = (tmp_path / NOTES).iterdir()
    line = json.loads(gzip.decompress(path.read_bytes()).splitlines()[2])
    assert line == {"kind": "outcome", "url": "https://x/", "size": 1}


def test_a_resumed_crawl_writes_a_new_file(tmp_path: Path) -> None:
    """Its runs are one crawl, of outcomes noted twice the last counts, and the next crawl is separate."""
    write(tmp_path, answers(6), reason="shutdown")
    again = answers(1, 5)[0]._replace(status=404)
    write(tmp_path, [again, *answers(2, 6)], resumes=True)
    found = read_notes(tmp_path)
    assert (found.crawl, len(found.runs)) == (1, 2)
    assert found.answers == [*answers(5), again, *answers(2, 6)]
    assert found.state == {"waiting": 3}  # it is running again
    assert found.elsewhere == ["other.example"]
    write(tmp_path, answers(1, 20), reason="finished")
    assert read_notes(tmp_path).answers == answers(1, 20)
    assert sorted(path.name for path in (tmp_path / NOTES).iterdir()) == [
        "1-1.jsonl.gz", "1-2.jsonl.gz", "2-1.jsonl.gz"
    ]  # fmt: skip


def test_a_number_that_is_given_counts(tmp_path: Path) -> None:
    """A given number takes precedence, and a resume without notes is the first crawl."""
    NoteBook(tmp_path / "a", crawl=7).close()
    assert read_notes(tmp_path / "a").crawl == 7
    NoteBook(tmp_path / "b", resumes=True).close()
    assert read_notes(tmp_path / "b").crawl == 1


def test_cut_at_every_byte(tmp_path: Path) -> None:
    """If a kill or a full disk cut a file, all complete lines are read."""
    write(tmp_path, answers(12))
    (path,) = (tmp_path / NOTES).iterdir()
    whole, before = path.read_bytes(), 0
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        found = read_notes(tmp_path)
        assert before <= len(found.answers)
        assert found.answers == answers(len(found.answers))
        before = len(found.answers)
    assert before == 12


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe", b"[]", b"{}", b'{"kind": "outcome"}', b'{"kind": "outcome", "url": 1, "size": "many"}',
        b'{"kind": "outcome", "url": "u", "status": 1e999}', b"[" * 100_000, b'{"kind": 3}',
    ],
)  # fmt: skip
def test_invalid_lines_are_counted(tmp_path: Path, line: bytes) -> None:
    """An invalid line is skipped, and the others are read."""
    folder = tmp_path / NOTES
    folder.mkdir(parents=True)
    good = b'{"kind": "outcome", "url": "https://x/"}'
    (folder / "1-1.jsonl.gz").write_bytes(gzip.compress(b"\n".join([good, line, good, b""])))
    found = read_notes(tmp_path)
    assert found.answers == [Answer(url="https://x/")]
    assert found.damaged == 1


def test_notes_of_later_versions_are_read(tmp_path: Path) -> None:
    """Unknown fields in a line are ignored."""
    folder = tmp_path / NOTES
    folder.mkdir(parents=True)
    line = b'{"kind": "outcome", "url": "https://x/", "more": {"a": 1}}\n'
    (folder / "1-1.jsonl.gz").write_bytes(gzip.compress(line))
    assert read_notes(tmp_path).answers == [Answer(url="https://x/")]


@pytest.mark.parametrize("damage", [b"", b"no gzip at all", gzip.compress(b"x" * 10_000_000), b"\0" * 100])
def test_damaged_files_are_harmless(tmp_path: Path, damage: bytes) -> None:
    """A damaged file, or one with an endless line, is read up to that point."""
    folder = tmp_path / NOTES
    folder.mkdir(parents=True)
    (folder / "1-1.jsonl.gz").write_bytes(damage)
    (folder / "readme.txt").write_bytes(b"")
    assert read_notes(tmp_path).answers == []


def test_no_notes(tmp_path: Path) -> None:
    """A folder without notes is read as empty notes."""
    nothing = Notes(crawl=0, runs=[], answers=[], state={})
    assert read_notes(tmp_path) == nothing
    (tmp_path / ".focus").write_bytes(b"")
    assert read_notes(tmp_path) == nothing


def test_they_stay_small(tmp_path: Path) -> None:
    """An outcome takes less than a hundred bytes."""
    noted = [
        Answer(
            url=f"https://statistics.example.org/publication/{i * 7919 % 10_007}/table-{zlib.crc32(b'%d' % i)}.csv",
            status=200, mime="text/csv", size=zlib.crc32(b"%d" % i), sent=1, files=1.0, anchor=f"Download ({i} kB)",
            page=f"https://statistics.example.org/publication/{i * 7919 % 10_007}/",
        )
        for i in range(3000)
    ]  # fmt: skip
    write(tmp_path, noted, reason="finished")
    (path,) = (tmp_path / NOTES).iterdir()
    assert path.stat().st_size < 100 * len(noted)
    found: Any = read_notes(tmp_path).answers
    assert found == noted
