"""``focus status`` and ``focus check``: their output and statuses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forked import Forked
from mocksite import MockSite
from scrapy.cmdline import execute

from scrapy_focus import Budget, Crawl
from scrapy_focus.commands.status import duration
from scrapy_focus.jobs.job import Job
from scrapy_focus.lab.checks.policy import _Site
from scrapy_focus.policies.tagpath.policy import TagPath
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = Path(__file__).parents[2] / "example_project"
SITE = _Site(200)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of a crawl that was killed after 30 outcomes, 5 of them since its last checkpoint."""
    jobdir = tmp_path_factory.mktemp("made") / "job"
    job = Job(jobdir / "focus", every=25)
    crawl = Crawl(TagPath(probe=False), seed=1, job=job, budget=Budget(requests=100))
    crawl.add([SITE.link(0)])
    for _ in range(30):
        pick = crawl.next()
        crawl.sent(pick.id)
        crawl.report(*SITE.answer(pick))
        job.flush()
    crawl.close()
    return jobdir


@pytest.fixture
def job(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as ``job`` in the current folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made, tmp_path / "job")
    return Path("job")


def call(capsys: pytest.CaptureFixture[str], *words: str, expect: int = 0) -> str:
    """Run a command in this process, and return its output."""
    with pytest.raises(SystemExit) as ended:
        execute(["scrapy", *words])
    said = "".join(capsys.readouterr())
    assert int(ended.value.code or 0) == expect, said
    return said


def test_the_commands_run_as_commands(job: Path) -> None:
    """Both are found by ``scrapy``, in a process of their own, and print nothing but what they have to say."""
    for command, last in (("focus-status", "files"), ("focus-check", "job is good")):
        words = [sys.executable, "-m", "scrapy", command, "job"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1].startswith(last)
    listed = subprocess.run([sys.executable, "-m", "scrapy", "-h"], capture_output=True, text=True, check=True).stdout
    assert "Show the status of a crawl" in listed
    assert "Verify the JOBDIR of a crawl, and repair it" in listed


def test_the_state_is_said_in_aligned_lines(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each line begins with its label; a long one continues under its text; nothing is wider than the screen."""
    lines = call(capsys, "focus-status", "job").splitlines()
    assert lines[:2] == [
        "job",
        "killed or interrupted; the same command replays 15 events from the journal, and resumes the crawl",
    ]
    said = {line[:12].strip(): line[12:] for line in lines[2:] if line[:12].strip()}
    assert said["policy"].startswith("TagPath(theta=0.75, n=2")
    assert said["goal"] == "items scraped"
    assert said["mission"] == "anything"
    assert said["in flight"] == "0"
    assert said["requests"] == "30 used of 100, 70 left"
    assert said["outcomes"].startswith("30, rewards ")
    assert said["journal"] == "15 events since the last checkpoint (5 outcome, 5 pick, 5 sent)"
    assert said["written"].endswith(" ago")
    assert "UTC" in said["made"]
    assert said["versions"].startswith("python 3.")
    assert said["files"].startswith("frontier.sqlite ")
    assert " from " in said["best links"]
    assert all(line == line.rstrip() and len(line) <= 120 for line in lines)


def test_the_folder_of_a_command_stands_for_its_job(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder of --out is enough: nobody has to know where its JOBDIR is."""
    Path("found/.focus").mkdir(parents=True)
    job.rename("found/.focus/job")
    assert call(capsys, "focus-status", "found").splitlines()[0] == "found/.focus/job"
    assert call(capsys, "focus-check", "found").splitlines()[-1].startswith("found/.focus/job is good")


def test_the_json_has_all_of_it(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every field exists, with its type: scripts rely on them."""
    found = json.loads(call(capsys, "focus-status", "job", "--json"))
    kinds: dict[str, Any] = {
        "jobdir": str, "folder": str, "state": str, "process": type(None), "damage": str, "spider": str, "policy": str, "goal": str,
        "mission": dict, "parameters": dict, "used": dict, "limits": dict, "rate": str, "said": list, "alarm": str, "left": dict, "outcomes": int, "rewards": float, "counts": dict,
        "links": dict, "best_arms": list, "best_arms_error": str, "tables": list, "tables_error": str, "events_since_checkpoint": int, "events": dict,
        "versions": dict, "made": str, "made_seconds_ago": float, "written": str, "written_seconds_ago": float, "files": dict,
    }  # fmt: skip
    assert {name: type(value) for name, value in found.items()} == kinds
    assert set(found["links"]) == {
        "waiting", "arms", "asleep", "next_due", "in_flight", "fetched", "given_up", "probed", "found_since", "picked_since"
    }  # fmt: skip
    assert found["limits"] == {"requests": 100, "bytes": None, "seconds": None}
    assert found["left"] == {"requests": 70, "bytes": None, "seconds": None}
    assert (found["state"], found["rate"]) == ("killed", "")


def test_a_check_says_what_is_wrong_and_repairs_it(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 1 for damage, 0 after the repair, and from then on."""
    (journal,) = (job / "focus").glob("journal.*")
    journal.write_bytes(journal.read_bytes()[:-7])
    said = call(capsys, "focus-status", "job", expect=1)
    assert "damaged: journal.2 is cut off at byte" in said
    said = call(capsys, "focus-check", "job", expect=1)
    assert said.startswith("wrong: journal.2 is cut off at byte")
    assert "job is damaged; focus check --fix job repairs what can be repaired" in said
    assert not list((job / "focus").glob("damaged-*"))
    said = call(capsys, "focus-check", "job", "--fix")
    assert "repaired: cut journal.2 after" in said
    assert "copies of changed files are in job/focus/damaged-" in said
    assert said.endswith("job is now good; the next run replays 14 events since the last checkpoint first\n")
    assert "job is good; the next run" in call(capsys, "focus-check", "job")
    assert call(capsys, "focus-check", str(job / "focus")).endswith("first\n"), "the folder in it will do"


def test_what_cannot_be_repaired_is_said(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 1, one line on standard error, and nothing is changed."""
    (job / "focus" / "frontier.sqlite").write_bytes(b"no database" * 1000)
    for command in (("focus-status", "job"), ("focus-check", "job", "--fix")):
        said = call(capsys, *command, expect=1)
        assert "Error: " in said
        assert "frontier.sqlite" in said
    assert "cannot be repaired: no link can be read from it" in said
    assert (job / "focus" / "frontier.sqlite").read_bytes() == b"no database" * 1000


@pytest.mark.parametrize("command", ["focus-status", "focus-check"])
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "name one JOBDIR"),
        (["a", "b"], 2, "name one JOBDIR"),
        (["job", "--repair"], 2, "unknown option --repair"),
        (["nowhere"], 1, "Error: nowhere does not exist; name the JOBDIR of a crawl"),
        (["."], 1, "Error: . is not a JOBDIR of scrapy_focus: it has no folder focus"),
        (["stock"], 1, "Error: stock is a JOBDIR of Scrapy's own scheduler"),
        (["old"], 1, "Error: old/focus was written by scrapy_focus 0.1.0"),
    ],
)
def test_bad_arguments_are_explained(
    command: str, words: list[str], status: int, message: str, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For anything but a crawl of ours, one line says what it is."""
    Path("stock/requests.queue").mkdir(parents=True)
    Path("old/focus").mkdir(parents=True)
    Path("old/focus/crawl.json").write_text("{}")
    assert message in " ".join(call(capsys, command, *words, expect=status).split())


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Forked, Path]]:
    """A long crawl of the example project, and its JOBDIR."""
    with MockSite(latency=0.02) as site:
        root, out = site.url("/page/0/1000000000"), tmp_path / "found"
        words = ["crawl", "datasets", "-a", f"root={root}", "-a", f"out={out}", "-s", f"JOBDIR={tmp_path / 'job'}"]
        words += ["-s", "FOCUS_CHECKPOINT_EVERY=5", "-s", "DOWNLOAD_DELAY=0", "-s", "TELNETCONSOLE_ENABLED=0"]
        words += ["-s", "AUTOTHROTTLE_ENABLED=0", "-s", "ROBOTSTXT_OBEY=0", "-s", "REMOTE_CONTROL_ENABLED=0"]
        process = Forked([sys.executable, "-m", "scrapy", *words], cwd=EXAMPLE, stderr=subprocess.DEVNULL)
        try:
            yield process, tmp_path / "job"
        finally:
            process.kill()
            process.wait()


def size(path: Path) -> int:
    """Return the size of a file; 0 if it is gone by now, as a journal is after a checkpoint."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_a_crawl_can_be_watched(running: tuple[Forked, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """While it runs, its state is "running", and a check is refused; after a kill it is "killed", and intact."""
    process, jobdir = running
    end = time.monotonic() + HANG
    outcomes: list[int] = []
    while len(set(outcomes)) < 4:
        assert time.monotonic() < end, outcomes
        assert process.poll() is None
        time.sleep(0.1)
        if any(map(size, (jobdir / "focus").glob("journal.*"))):  # the first checkpoint exists
            found = json.loads(call(capsys, "focus-status", str(jobdir), "--json"))
            assert (found["state"], found["process"]) == ("in use", process.pid)
            outcomes.append(found["outcomes"])
    assert outcomes == sorted(outcomes)
    assert f"in use by process {process.pid}" in call(capsys, "focus-status", str(jobdir))
    assert f"is in use by process {process.pid}" in call(capsys, "focus-check", str(jobdir), expect=1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    found = json.loads(call(capsys, "focus-status", str(jobdir), "--json"))
    assert found["state"] == "killed"
    assert found["outcomes"] >= outcomes[-1]
    assert "is good" in call(capsys, "focus-check", str(jobdir)), "the kill may come right after a checkpoint"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 seconds"),
        (1.9, "1 second"),
        (61, "1 minute 1 second"),
        (3600, "1 hour"),
        (3 * 86400 + 7205, "3 days 2 hours"),
        (86400 + 59, "1 day 59 seconds"),
    ],
)
def test_durations_are_short(seconds: float, said: str) -> None:
    """The two largest non-zero units."""
    assert duration(seconds) == said


def test_commands_import_little() -> None:
    """Each start of ``scrapy`` imports the commands, and nothing that they need only when they run."""
    code = (
        "import scrapy_focus.commands.status, scrapy_focus.commands.check, sys; "
        "print([m for m in sys.modules if m.partition('.')[0] in ('numpy', 'rich', 'sqlite3', 'filelock')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
