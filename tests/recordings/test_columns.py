"""The columns beside a recording: they say what the recording says, or nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from mmap import mmap
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from recordings import HTML, ROOT, links, page, record, redirect

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.lab.recordings.columns import key_of, open_columns, path_of, save_columns
from scrapy_focus.lab.recordings.format import RecordedSite, open_recording
from scrapy_focus.lab.recordings.loading import load
from scrapy_focus.lab.recordings.writer import Answer, Asset, Rendering, SiteWriter

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.lab.recordings.columns import Arrays

N = 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A recording with all that one can have: versions, renderings, redirects, failures, two hosts, texts of all kinds."""
    path = tmp_path / "site.sqlite"
    names = [f"{number}.html" for number in range(N)]
    with SiteWriter(path, roots=[ROOT], bodies=True, renderings=True) as writer:
        writer.add(page("/", links(*names, "ä/ö.csv", "dead", "moved", "http://www.example.org/there")))
        for name in names:
            writer.add(page(name, links(*names[:7], f"more/{name}") + "<script>1</script>"))
        writer.add(Answer(url=f"{ROOT}dead", error="failure: TimeoutError"))
        writer.add(redirect("moved", "/1.html"))
        for since in (300.0, 100.0):
            writer.add(page("2.html", links(f"at/{since}"), since=since))
        writer.add(page("new", links("1.html"), since=50.0))
        asset = Asset(f"{ROOT}app.js", 1000)
        for name in names[3:5]:
            html = links("drawn.csv").encode()
            writer.add(
                Rendering(url=ROOT + name, status=200, headers=HTML, body=html, requests=2, received=99, assets=[asset])
            )
        writer.finish()
    return aged(path)


def aged(path: Path) -> Path:
    """Make a recording one that was last written to a while ago; a bit earlier each time."""
    when = path.stat().st_mtime_ns - 10_000_000_000
    os.utime(path, ns=(when, when))
    return path


def loaded(path: Path) -> Arrays:
    """Read the columns out of the recording itself."""
    with closing(open_recording(path, writable=False)) as database:
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        return load(database, has_versions="versions" in names, has_renderings="renderings" in names)


def contents(site: RecordedSite) -> list[Any]:
    """Return all that a reader can see of the columns of a recording."""
    places = np.arange(len(site.targets))
    answers = range(len(site.answers.status))
    return [
        list(site.urls), list(site.hosts), list(site.mimes), list(site.answers.mimes), dict(site.errors),
        dict(site.answers.errors), site.status.tolist(), site.recorded.tolist(), site.answers.redirect.tolist(),
        site.answers.digest.tolist(), site.depth.tolist(), site.targets.tolist(), site.tag_paths.tolist(),
        [site.links(answer) for answer in answers], [site.tag_path(link) for link in places], site.texts(places),
        [site.history(number) for number in range(site.n_urls)], site.begin, site.end, dict(site.renderings),
        set(site.unrendered), site.roots, [site.ids[url] for url in site.urls],
        site.with_extension(["csv", "html"]).tolist(), str(site.completeness()),
    ]  # fmt: skip


def is_mapped(site: RecordedSite) -> bool:
    """Whether the columns of a recording come from the file beside it."""
    base: Any = site.targets
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base.obj if isinstance(base, memoryview) else base, mmap)


def unsaved(path: Path) -> RecordedSite:
    """Open a recording beside which nothing can be written, not even by root."""
    path_of(path).mkdir()
    try:
        return RecordedSite(path)
    finally:
        path_of(path).rmdir()


def test_the_first_opening_leaves_the_columns(path: Path) -> None:
    """They are beside the recording, as readable as it is, and nothing else is left."""
    path.chmod(0o640)
    assert is_mapped(RecordedSite(path))
    assert sorted(path.parent.iterdir()) == [path, path_of(path)]
    if os.name == "posix":
        assert path_of(path).stat().st_mode & 0o777 == 0o640


def test_columns_say_what_the_recording_says(path: Path) -> None:
    """Each of them, value by value; and so does whatever is made of them."""
    site, read = RecordedSite(path), loaded(path)
    key = key_of(path, site.meta)
    assert key is not None
    kept = open_columns(path, key)
    assert kept is not None
    assert kept.keys() == read.keys()
    for name, column in read.items():
        assert kept[name].dtype == column.dtype, name
        assert np.array_equal(kept[name], column), name
        assert not kept[name].flags.writeable
    mapped, fresh = RecordedSite(path), unsaved_copy(path)
    assert is_mapped(mapped)
    assert not is_mapped(fresh)
    assert contents(mapped) == contents(fresh)


def unsaved_copy(path: Path) -> RecordedSite:
    """Open a copy of a recording without columns."""
    folder = path.parent / "copy"
    folder.mkdir()
    return unsaved(shutil.copy2(path, folder / path.name))


def test_the_next_opening_reads_the_columns(path: Path) -> None:
    """And not the recording: what is changed in them is what a reader sees."""
    site = RecordedSite(path)
    arrays, key = loaded(path), key_of(path, site.meta)
    assert key is not None
    arrays["answers.status"] = np.full_like(arrays["answers.status"], 299)
    save_columns(path, key, arrays)
    assert set(RecordedSite(path).status.tolist()) == {299}
    assert set(site.status.tolist()) > {200, 301}, "who has mapped the earlier file keeps it"


def test_a_recording_without_anything(tmp_path: Path) -> None:
    """A new one has columns, too, most of them empty."""
    with SiteWriter(tmp_path / "new.sqlite", roots=[ROOT]):
        pass
    path = aged(tmp_path / "new.sqlite")
    assert not is_mapped(unsaved(path))
    for _ in range(2):
        site = RecordedSite(path)
        assert is_mapped(site)
        assert (list(site.urls), len(site.targets), site.mimes, site.errors) == ([ROOT], 0, [""], {})


def test_a_recording_that_went_on(path: Path) -> None:
    """Columns of an earlier state are not used, and are replaced."""
    before = RecordedSite(path)
    with SiteWriter(path, roots=[ROOT], renderings=True) as writer:
        writer.add(page("more/1.html", links("/yet-another")))
    after = RecordedSite(aged(path))
    assert f"{ROOT}yet-another" in after.ids
    assert f"{ROOT}yet-another" not in before.ids
    assert is_mapped(RecordedSite(path))
    assert contents(after) == contents(unsaved_copy(path))


def test_a_recording_that_has_just_been_written(path: Path) -> None:
    """Its next change might leave it with the same time, so there are no columns of it as yet."""
    os.utime(path)
    assert not is_mapped(RecordedSite(path))
    assert list(path.parent.iterdir()) == [path]
    assert is_mapped(RecordedSite(aged(path)))


def test_a_change_that_size_does_not_show(path: Path) -> None:
    """The time does."""
    RecordedSite(path)
    before = path.stat()
    change(path, "UPDATE pages SET status = 418 WHERE id = 3")
    assert path.stat().st_size == before.st_size
    assert RecordedSite(path).status[3] == 418


def test_another_recording_in_its_place(tmp_path: Path) -> None:
    """Even one of the same size and time: recordings have checksums of their contents."""
    one, other = tmp_path / "one.sqlite", tmp_path / "other.sqlite"
    for file, name in ((one, "a"), (other, "b")):
        record(file, page("/", links(name))).close()
    assert is_mapped(RecordedSite(aged(one)))
    was = one.stat()
    assert was.st_size == other.stat().st_size
    shutil.copy(other, one)
    os.utime(one, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert list(RecordedSite(one).urls) == [ROOT, f"{ROOT}b"]


def test_changes_in_a_write_ahead_log(path: Path) -> None:
    """While they lie there, the file is as it was. So columns are neither used nor written then."""
    RecordedSite(path).close()
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        RecordedSite(aged(path)).close()
        before, columns = path.stat(), path_of(path).read_bytes()
        with writer:
            writer.execute("UPDATE pages SET status = 418 WHERE id = 3")
        assert path.stat().st_mtime_ns == before.st_mtime_ns
        site = RecordedSite(path)
        assert site.status[3] == 418
        assert not is_mapped(site)
        assert path_of(path).read_bytes() == columns
        site.close()
        path_of(path).unlink()
        RecordedSite(path).close()
        assert not path_of(path).exists()
    assert RecordedSite(path).status[3] == 418
    assert is_mapped(RecordedSite(aged(path)))


def test_a_recording_that_is_written_to_all_the_time(path: Path) -> None:
    """A reader sees one state of it, and none that ended before it was opened."""
    tables = ("pages", "versions", "renderings")
    for table in tables:
        change(path, f"UPDATE {table} SET size = 0")
    written, is_over = [0], threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, timeout=60)) as database:
            while not is_over.wait(0.005):
                with database:
                    for table in tables:
                        database.execute(f"UPDATE {table} SET size = ?", (written[0] + 1,))
                written[0] += 1
                if written[0] % 2:  # as if it had not been written to for a while
                    when = time.time() - 1000 + written[0]
                    os.utime(path, (when, when))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(40):
            least = written[0]
            with closing(RecordedSite(path)) as site:
                sizes = set(site.answers.size.tolist())
            assert len(sizes) == 1
            assert sizes.pop() >= least
    finally:
        is_over.set()
        writer.join()


def test_an_opening_that_fails_keeps_nobody_from_writing(path: Path) -> None:
    """However long its error is looked at."""
    change(path, "UPDATE links SET target = 100000 WHERE source = 3")
    with pytest.raises(RecordingError, match="damaged") as failed:
        RecordedSite(path)
    with closing(sqlite3.connect(path, timeout=0)) as database, database:
        database.execute("UPDATE pages SET size = 1")
    assert failed.traceback
    assert not path_of(path).exists()


def change(path: Path, statement: str) -> None:
    """Change a recording."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


def test_damaged_columns_are_made_anew(path: Path) -> None:
    """Wherever a byte has changed, and wherever the file is cut off."""
    expected = contents(RecordedSite(path))
    whole = path_of(path).read_bytes()
    rng = np.random.default_rng(0)
    places = [0, len(whole) - 1, len(whole) - 9, *rng.integers(len(whole), size=60).tolist()]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.integers(1, 256))
        check_replaced(path, bytes(damaged), whole, expected)
    for length in (0, 1, 19, 20, 21, len(whole) // 2, len(whole) - 1):
        check_replaced(path, whole[:length], whole, expected)


@pytest.mark.parametrize(
    "content", [b"", b"text\n", bytes(100_000), b"\xff" * 5000, b"{}" + b"\x02" + bytes(7) + b"C" * 4 + b"\nFOCUSCL"]
)
def test_files_that_are_no_columns_are_replaced(content: bytes, path: Path) -> None:
    """They have the name, and nothing else."""
    expected = contents(RecordedSite(path))
    check_replaced(path, content, path_of(path).read_bytes(), expected)


def check_replaced(path: Path, content: bytes, whole: bytes, expected: list[Any]) -> None:
    """Check that a recording is read as ever beside a file that makes no sense, and that this is replaced."""
    path_of(path).unlink()  # a process that has mapped it keeps it as it was
    path_of(path).write_bytes(content)
    assert contents(RecordedSite(path)) == expected
    assert path_of(path).read_bytes() == whole


def test_columns_of_another_format_are_replaced(path: Path) -> None:
    """What is in them is not looked at."""
    expected = contents(RecordedSite(path))
    whole = path_of(path).read_bytes()
    save_columns(path, "of an earlier format", {"answers.status": np.zeros(3)})
    assert contents(RecordedSite(path)) == expected
    assert path_of(path).read_bytes() == whole


def test_columns_of_another_recording_are_replaced(path: Path, tmp_path: Path) -> None:
    """A file that was copied with the wrong recording is not used."""
    expected = contents(RecordedSite(path))
    record(tmp_path / "other.sqlite", page("/", links("a"))).close()
    assert is_mapped(RecordedSite(aged(tmp_path / "other.sqlite")))
    shutil.copy(path_of(tmp_path / "other.sqlite"), path_of(path))
    assert contents(RecordedSite(path)) == expected


def test_nothing_can_be_written(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The recording is read each time then, and one line says why."""
    path_of(path).mkdir()
    sites = [RecordedSite(path)]
    assert [record.getMessage().partition(": ")[0] for record in caplog.records] == [
        f"{path_of(path)} cannot be written, so {path} is read anew each time"
    ]
    path_of(path).rmdir()
    sites.append(RecordedSite(path))
    assert [is_mapped(site) for site in sites] == [False, True]
    assert contents(sites[0]) == contents(sites[1])
    assert sorted(path.parent.iterdir()) == [path, path_of(path)], "no half of a file is left"


_FULL = """
import resource, sys
from pathlib import Path
from scrapy_focus.lab.recordings.format import RecordedSite
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
print(len(RecordedSite(Path(sys.argv[1])).urls))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
def test_a_full_disk(path: Path) -> None:
    """Without room for the columns, none are left, and the run continues."""
    done = subprocess.run([sys.executable, "-c", _FULL, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) > N
    assert done.stderr.count("\n") == 1
    assert "cannot be written" in done.stderr
    assert list(path.parent.iterdir()) == [path]


_OPEN = """
import sys
from pathlib import Path
from scrapy_focus.lab.recordings.format import RecordedSite
sys.stdin.readline()
site = RecordedSite(Path(sys.argv[1]))
print(len(site.urls), len(site.targets), sum(site.targets.tolist()))
"""


@pytest.mark.slow
def test_processes_that_open_at_once(path: Path) -> None:
    """All write the same columns, and do no harm to each other."""
    command = [sys.executable, "-c", _OPEN, str(path)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate() for process in processes]
    targets = loaded(path)["links.targets"]
    assert {out.split()[1] for out, _ in said} == {str(len(targets))}
    assert {out.split()[2] for out, _ in said} == {str(targets.sum())}
    assert not any(error for _, error in said)
    assert sorted(path.parent.iterdir()) == [path, path_of(path)]
    assert is_mapped(RecordedSite(path))
