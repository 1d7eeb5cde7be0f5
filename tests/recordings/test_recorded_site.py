"""Files that are no recordings, or were: each gets an error that says so, and stays as it was."""

from __future__ import annotations

import shutil
import sqlite3
from typing import TYPE_CHECKING

import numpy as np
import pytest
from recordings import ROOT, links, page, record

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.lab.recordings import format as module
from scrapy_focus.lab.recordings.checksums import verify
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.summary import describe
from scrapy_focus.lab.recordings.writer import SiteWriter

if TYPE_CHECKING:
    from pathlib import Path


def refuse(path: Path, match: str) -> None:
    """Check that neither reader nor writer takes a file, and that it stays as it was."""
    before, files = path.read_bytes(), sorted(path.parent.iterdir())
    with pytest.raises(RecordingError, match=match):
        RecordedSite(path)
    with pytest.raises(RecordingError):
        go_on(path)
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == files


def go_on(path: Path) -> None:
    """Try to resume a recording."""
    with SiteWriter(path, roots=[ROOT]) as writer:
        for url in writer.missing():
            writer.add(page(url))
        writer.finish()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A recording with a hundred pages."""
    names = [str(number) for number in range(100)]
    answers = [page(name, links(*names[:20], f"dead/{name}")) for name in names]
    record(tmp_path / "site.sqlite", page("/", links(*names)), *answers, bodies=True).close()
    return tmp_path / "site.sqlite"


def test_no_file(tmp_path: Path) -> None:
    """Where nothing is, or a folder, the error says how a recording is made."""
    with pytest.raises(RecordingError, match=r"nothing.sqlite is not there: make one with focus record"):
        RecordedSite(tmp_path / "nothing.sqlite")
    with pytest.raises(RecordingError, match="is a folder"):
        RecordedSite(tmp_path)
    with pytest.raises(RecordingError, match="is a folder"):
        SiteWriter(tmp_path, roots=[ROOT])


@pytest.mark.parametrize("content", [b"", b"no database\n", b"SQLite format 3\0" + bytes(500), bytes(5000)])
def test_no_recording(content: bytes, tmp_path: Path) -> None:
    """A file that somebody else wrote is not taken for a recording."""
    path = tmp_path / "site.sqlite"
    path.write_bytes(content)
    refuse(path, "no recorded site|not a recorded site")


def test_another_database(tmp_path: Path) -> None:
    """Nor is a database of another program."""
    path = tmp_path / "site.sqlite"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE pages (url)")
    database.close()
    refuse(path, "is not a recorded site")


def test_another_format(path: Path) -> None:
    """A recording of a later version says which, and what to do."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    refuse(path, r"has format 99, and this version of scrapy_focus reads the formats 1 to 3: record the site again")


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.6, 0.9])
def test_a_truncated_file(share: float, path: Path) -> None:
    """A recording that was cut off, by a copy that failed, is not read as a smaller one."""
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    before = path.read_bytes()
    with pytest.raises(RecordingError, match=r"damaged or no recorded site|cannot be read"):
        RecordedSite(path)
    assert path.read_bytes() == before
    with pytest.raises(RecordingError, match=r"damaged or no recorded site|cannot be"):
        go_on(path)


@pytest.mark.few(5)
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM pages WHERE id = 7",
        "DELETE FROM meta WHERE name = 'roots'",
        "UPDATE meta SET value = '[' WHERE name = 'roots'",
        "UPDATE meta SET value = '[\"http://nowhere/\"]' WHERE name = 'roots'",
        "UPDATE pages SET redirect = 100000 WHERE id = 3",
        "UPDATE pages SET status = 'abc' WHERE id = 3",
        "UPDATE pages SET status = 1000000 WHERE id = 3",
        "UPDATE links SET target = 100000 WHERE source = 3",
        "UPDATE links SET target = 1 << 40 WHERE source = 3",
        "UPDATE links SET tag_path = 100000 WHERE source = 3",
        "UPDATE links SET tag_path = 2000000000 WHERE source = 3",
        "UPDATE links SET tag_path = -1 WHERE source = 3",
        "DROP TABLE links",
    ],
)
def test_contents_that_make_no_sense(change: str, path: Path) -> None:
    """Rows that lead nowhere are found when a recording is opened."""
    database = sqlite3.connect(path)
    with database:
        database.execute(change)
    database.close()
    with pytest.raises(RecordingError, match=r"cannot be read"):
        RecordedSite(path)


def test_damage_is_said_when_it_is_met(path: Path) -> None:
    """What is read from the file later may be damaged too."""
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE pages SET body = x'00', headers = 99999 WHERE id = 3")
        database.execute("UPDATE links SET anchor = 99999 WHERE source = 3")
    database.close()
    site = RecordedSite(path)
    with pytest.raises(RecordingError, match="damaged"):
        site.body(3)
    with pytest.raises(RecordingError, match="damaged"):
        site.headers(3)
    with pytest.raises(RecordingError, match="damaged"):
        site.texts(np.array([site.links(3).start]))
    assert site.text(4)


def test_a_body_that_is_no_body(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was cut off is not taken for a shorter one, and one that would fill the memory is not unpacked."""
    site = RecordedSite(path)
    whole = site.body(3)
    assert whole
    with monkeypatch.context() as patch:
        patch.setattr(module, "_LARGEST", len(whole) - 1)
        with pytest.raises(RecordingError, match="cut off or has more than"):
            site.body(3)
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE pages SET body = substr(body, 1, length(body) - 1) WHERE id = 3")
    database.close()
    with pytest.raises(RecordingError, match="cut off or has more than"):
        site.body(3)


def test_a_recording_that_is_being_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not called damaged."""
    database = sqlite3.connect(path)
    database.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(sqlite3, "connect", lambda *args, real=sqlite3.connect, **kw: real(*args, timeout=0, **kw))
    with pytest.raises(RecordingError, match="is being written by another process"):
        RecordedSite(path)
    database.close()


def test_texts_of_some_links(path: Path) -> None:
    """Only the requested ones are read, in the requested order, on any page."""
    site = RecordedSite(path)
    for url in (ROOT, f"{ROOT}7"):
        places = np.arange(site.links(site.ids[url]).start, site.links(site.ids[url]).stop)
        some = places[[-1, 3, 0]]
        names = [site.urls[target].removeprefix(ROOT) for target in site.targets[some]]
        assert [anchor for anchor, _ in site.texts(some)] == names
        assert site.texts(some[:0]) == []


def test_extensions(path: Path) -> None:
    """URLs are recognised by their extensions; without any, there are none."""
    site = RecordedSite(path)
    assert site.with_extension(["csv"]).sum() == site.with_extension([]).sum() == 0
    assert site.with_extension([""]).all()


def sites(path: Path) -> str:
    """Return all that a reader sees of a recording."""
    site = RecordedSite(path)
    try:
        columns = [site.status, site.size, site.redirect, site.depth, site.digest, site.targets, site.tag_paths]
        pages = [(site.headers(page), site.body(page)) for page in range(site.n_urls)]
        texts = [site.texts(np.arange(site.links(page).start, site.links(page).stop)) for page in range(site.n_urls)]
        return repr((site.urls, site.mimes, site.meta["roots"], [column.tolist() for column in columns], pages, texts))
    finally:
        site.close()


@pytest.mark.slow
def test_a_byte_that_changed_is_found(path: Path, tmp_path: Path) -> None:
    """Of 200 changes of one byte, none gives another site without a word of ``verify``; most are read without an error."""
    original, reference = path.read_bytes(), sites(path)
    assert verify(path) == "all is as it was written"
    rng = np.random.default_rng(4)
    changed = tmp_path / "changed.sqlite"
    read_as_another = 0
    for place, bits in zip(rng.integers(len(original), size=200), rng.integers(1, 256, size=200), strict=True):
        content = bytearray(original)
        content[place] ^= bits
        changed.write_bytes(content)
        try:
            is_another = sites(changed) != reference
        except RecordingError:
            continue
        read_as_another += is_another
        if is_another:
            with pytest.raises(RecordingError, match=r"(is not what was written|is damaged).*take another copy"):
                verify(changed)
    assert read_as_another > 10


def test_a_recording_without_checksums_says_so(path: Path) -> None:
    """One of an earlier version, or of a recorder that was killed; where it is resumed and closed, it has some."""
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM meta WHERE name = 'sums'")
    database.close()
    assert verify(path).startswith("it has no checksums")
    assert "checksums  none" in describe(path)
    writer = SiteWriter(path, roots=[ROOT])
    writer.add(page("more"))
    assert verify_copy(path).startswith("it has no checksums")
    writer.close()
    assert verify(path) == "all is as it was written"
    assert "checksums  there" in describe(path)


def verify_copy(path: Path) -> str:
    """Verify what a kill at this instant would leave."""
    copy = path.with_name("killed.sqlite")
    shutil.copy(path, copy)
    return verify(copy)


def test_two_recorders_leave_checksums_of_what_both_wrote(path: Path) -> None:
    """Those of the one that ended first are no more than the other has written since."""
    writers = [SiteWriter(path, roots=[ROOT]) for _ in range(2)]
    writers[0].add(page("dead/1"))
    writers[0].close()
    assert verify(path) == "all is as it was written"
    writers[1].add(page("dead/2"))
    writers[1].finish()
    assert verify(path).startswith("it has no checksums")
    writers[1].close()
    assert verify(path) == "all is as it was written"


def test_programs_in_a_file_are_refused(path: Path) -> None:
    """A view in the place of a table could take for ever to read."""
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE texts RENAME TO saved")
        database.execute(
            "CREATE VIEW texts AS WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, 'a' AS text FROM n"
        )
    database.close()
    refuse(path, "views or triggers")
