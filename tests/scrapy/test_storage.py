"""Full disks, read-only folders, damaged files: a clear error and status, and no further damage."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from forked import Forked
from forked import run as run_forked
from mocksite import MockSite, tree_paths

from tests.made import HANG

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 200
SPIDER = """
import scrapy

class Follow(scrapy.Spider):
    name = "follow"
    custom_settings = {"TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "FOCUS_PROGRESS": "off"}

    async def start(self):
        yield scrapy.Request(self.root)

    def parse(self, response):
        yield {"url": response.url}
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, meta={"padding": "x" * 4000})
"""


def command(folder: Path, site: MockSite, **settings: Any) -> list[str]:
    """Return the command that crawls a site of ``PAGES`` pages with a job in a folder."""
    spider = folder / "follow.py"
    spider.write_text(SPIDER)
    given = {
        "SCHEDULER": "scrapy_focus.FocusScheduler",
        "FOCUS_EXIT_STATUS": True,
        "JOBDIR": folder / "job",
        "FOCUS_CHECKPOINT_EVERY": 50,
        **settings,
    }
    given.setdefault("FOCUS_POLICY", "scrapy_focus.policies.orderings.BreadthFirst")
    pairs = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    root = site.url(f"/page/0/{PAGES}")
    return [sys.executable, "-m", "scrapy", "runspider", str(spider), "-a", f"root={root}", *pairs]


def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Crawl, in a fork."""
    return run_forked(command, capture_output=True, text=True, timeout=HANG, **options)


def run_other(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)


def content(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder that belongs to a crawl, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name not in ("lock", "pid")}


def check_stopped(done: subprocess.CompletedProcess[str], *words: str, status: int = 1) -> None:
    """Fail unless a run ended with a status, and one line of its log says why and what to do."""
    assert done.returncode == status, done.stderr[-3000:]
    said = [line for line in done.stderr.splitlines() if "ERROR: scrapy_focus" in line]
    assert len(said) == 1, done.stderr[-3000:]
    assert all(word in said[0] for word in words), said[0]
    assert "never retrieved" not in done.stderr
    assert "Traceback" not in done.stderr


def check_finished(done: subprocess.CompletedProcess[str], site: MockSite) -> None:
    """Fail unless the crawl ended normally, with every page fetched, and only those in flight twice."""
    assert done.returncode == 0, done.stderr[-3000:]
    assert "'finish_reason': 'finished'" in done.stderr
    counts = Counter(site.paths)
    assert set(counts) == set(tree_paths(PAGES))
    recovered = re.search(r"'focus/recovered': (\d+)", done.stderr)
    assert sum(counts.values()) - len(counts) <= (int(recovered[1]) if recovered else 0)


@pytest.fixture
def small_disk(tmp_path: Path):
    """A small file system; only where one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = shutil.which("mount") and run_other(["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(folder)])
    if not mounted or mounted.returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    run_other(["umount", str(folder)])


@pytest.mark.few(1)
@pytest.mark.parametrize(("kilobytes", "addon"), [(40, True), (150, False), (400, True)])
def test_files_that_cannot_grow(site: MockSite, tmp_path: Path, kilobytes: int, addon: bool) -> None:
    """The crawl stops with ``focus_storage``; with room again it resumes, and fetches again what was in flight."""
    more = {"SCHEDULER": "", "ADDONS": '{"scrapy_focus.Addon": 500}'} if addon else {}
    start = command(tmp_path, site, **more)
    if addon:
        start = [part for part in start if part != "SCHEDULER="]
        start.remove("-s")
    stopped = run(start, file_size=kilobytes * 1024)
    check_stopped(stopped, str(tmp_path / "job" / "focus"), "again")
    assert "'finish_reason': 'focus_storage'" in stopped.stderr or not site.log
    assert len(site.log) < PAGES
    check_finished(run(start), site)


def test_a_full_disk(site: MockSite, tmp_path: Path, small_disk: Path) -> None:
    """The same with a disk that is full, whichever file it is that finds no room."""
    start = command(tmp_path, site, JOBDIR=small_disk / "job")
    stopped = run(start)
    check_stopped(stopped, str(small_disk), "again", status=5)
    assert run_other(["mount", "-o", "remount,size=60m", str(small_disk)]).returncode == 0
    check_finished(run(start), site)


def test_a_folder_that_is_read_only(site: MockSite, tmp_path: Path) -> None:
    """Nothing is requested, and the message names the folder."""
    job = tmp_path / "job"
    job.mkdir()
    start = command(tmp_path, site)
    if os.geteuid():
        job.chmod(0o555)
        done = run(start)
    else:  # the superuser may write anywhere but where nothing can be written
        script = f'mount --bind "{job}" "{job}" && mount -o remount,ro,bind "{job}" && exec "$@"'
        done = run_other(["unshare", "--mount", "sh", "-c", script, "sh", *start])
        if "unshare" in done.stderr:
            pytest.skip("nothing can be mounted here")
    check_stopped(done, str(job), "cannot be written", "another JOBDIR")
    assert not site.log
    assert list(job.iterdir()) == []


def test_a_file_in_place_of_the_folder(site: MockSite, tmp_path: Path) -> None:
    """Nothing is requested, and the message names the path."""
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "focus").write_text("mine")
    check_stopped(run(command(tmp_path, site)), str(tmp_path / "job" / "focus"), "cannot be written")
    assert not site.log
    assert (tmp_path / "job" / "focus").read_text() == "mine"


@pytest.fixture
def begun(site: MockSite, tmp_path: Path) -> list[str]:
    """A crawl that was stopped in the middle; return the command that resumes it."""
    start = command(tmp_path, site, CONCURRENT_REQUESTS=1)
    assert run([*start, "-s", "CLOSESPIDER_PAGECOUNT=60"]).returncode == 0
    assert 60 <= len(site.log) < PAGES
    return start


def test_a_damaged_file(site: MockSite, tmp_path: Path, begun: list[str]) -> None:
    """Nothing is requested, the message names the file and the check command, and no byte changes.

    With the original file restored, the crawl ends normally.
    """
    file, asked = tmp_path / "job" / "focus" / "frontier.sqlite", len(site.log)
    whole = file.read_bytes()
    damages = {
        "truncated": whole[: len(whole) // 2],
        "overwritten": whole[:4096] + os.urandom(len(whole) - 4096),
        "header": bytes(100) + whole[100:],
        "empty": b"",
        "no database": b"something else entirely, and longer than the header of a database is " * 20,
    }
    for damage, broken in damages.items():
        file.write_bytes(broken)
        before = content(file.parent)
        check_stopped(run(begun), str(file), "focus check" if damage in ("truncated", "overwritten") else "")
        assert len(site.log) == asked, damage
        assert content(file.parent) == before, damage
    file.write_bytes(whole)
    check_finished(run(begun), site)


def test_a_journal_that_is_gone(site: MockSite, tmp_path: Path, begun: list[str]) -> None:
    """What was done since the last checkpoint would be done again: that is not decided in silence."""
    folder, asked = tmp_path / "job" / "focus", len(site.log)
    (journal,) = folder.glob("journal.*")
    kept = journal.rename(tmp_path / journal.name)
    check_stopped(run(begun), journal.name, "is missing", "focus check --fix")
    assert len(site.log) == asked
    kept.rename(journal)
    check_finished(run(begun), site)


def test_a_folder_that_is_in_use(site: MockSite, tmp_path: Path) -> None:
    """The second of two crawls with one job directory does not start, names the first, and does not disturb it."""
    start, refused = command(tmp_path, site, CONCURRENT_REQUESTS=1), threading.Event()
    site.answers[f"/page/1/{PAGES}"] = lambda times: None if refused.wait(HANG) else (500, {}, b"")
    with Forked(start, stderr=subprocess.PIPE, text=True) as first:
        assert first.stderr is not None
        while "Spider opened" not in (line := first.stderr.readline()):
            assert line
        check_stopped(run(start), f"in use by process {first.pid}", status=2)
        refused.set()
        _, said = first.communicate(timeout=HANG)
    assert first.returncode == 0
    assert Counter(site.paths) == Counter(tree_paths(PAGES))
    assert "ERROR" not in said
