"""``--json``: one object that says how a crawl ended, and nothing else on the same stream."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from forked import Forked
from mocksite import MockSite

from scrapy_focus.__main__ import main
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAST = ["-s", "DOWNLOAD_DELAY=0", "-s", "RETRY_TIMES=0", "--json"]


@pytest.fixture
def files() -> Iterator[MockSite]:
    """A site with three files."""
    with MockSite(pages={"/": "".join(f'<a href="/{i}.csv">{i}</a>' for i in range(3))}) as site:
        for i in range(3):
            site.answers[f"/{i}.csv"] = lambda _, i=i: (200, {"Content-Type": "text/csv"}, b"a,b\n%d" % i)  # type: ignore[misc]
        yield site


def start(folder: Path, *words: str) -> Forked:
    command = [sys.executable, "-m", "scrapy_focus", *words, *FAST]
    env = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    return Forked(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def run(folder: Path, *words: str) -> tuple[int, str, str]:
    """Run a command; return its status and what it printed."""
    process = start(folder, *words)
    said, logged = process.communicate(timeout=HANG)
    return int(process.returncode or 0), said, logged


def test_what_was_found_and_what_it_cost(files: MockSite, tmp_path: Path) -> None:
    """A limit ends the crawl, the same command with a larger one resumes it, and then nothing is left."""
    status, said, logged = run(tmp_path, "files", files.url("/"), "--budget", "3")
    told = json.loads(said)
    assert (status, told["status"], told["ending"], told["reason"]) == (0, 0, "budget", "focus_budget_requests")
    assert (told["found"], told["noun"], told["requests"]) == (1, "files", 3)
    assert told["limits"] == {"requests": 3, "bytes": None, "seconds": None}
    assert told["resume"] == "the same command with a larger --budget"
    assert told["list"] == str(tmp_path / "found" / "manifest.jsonl")
    assert told["starts"] == [files.url("/")]
    assert "Looking for" in logged
    assert told["sentence"] in logged
    status, said, _ = run(tmp_path, "files", files.url("/"), "--budget", "30")
    told = json.loads(said)
    assert (told["ending"], told["reason"], told["found"], told["requests"]) == ("found", "finished", 3, 6)
    assert (told["resumable"], told["resume"]) == (False, None)
    assert len(files.log) == 6, "each run asks for robots.txt"


def test_urls_have_standard_output_to_themselves(files: MockSite, tmp_path: Path) -> None:
    """With ``--out -``, the object is the last line of standard error."""
    status, said, logged = run(tmp_path, "files", files.url("/"), "--out", "-")
    assert sorted(said.splitlines()) == [files.url(f"/{i}.csv") for i in range(3)]
    told = json.loads(logged.splitlines()[-1])
    assert (status, told["found"], told["folder"], told["resumable"]) == (0, 3, None, False)


def test_an_interrupted_crawl_says_how_to_resume(files: MockSite, tmp_path: Path) -> None:
    """It has the status of the process."""
    files.hold(3)
    process = start(tmp_path, "files", files.url("/"), "--stats-file", "stats.json")
    assert files.wait_until_it_holds(HANG)
    process.send_signal(signal.SIGTERM)
    while json.loads((tmp_path / "stats.json").read_text())["state"] != "running":
        pass
    files.go_on()
    said, _ = process.communicate(timeout=HANG)
    told = json.loads(said)
    assert (process.returncode, told["status"], told["ending"], told["resume"]) == (
        130, 130, "interrupted", "the same command",
    )  # fmt: skip
    assert json.loads((tmp_path / "stats.json").read_text())["ending"]["kind"] == "interrupted"


def test_a_site_that_cannot_be_read(tmp_path: Path) -> None:
    """The reason is in the sentence."""
    status, said, _ = run(tmp_path, "important", "http://127.0.0.1:9/")
    told = json.loads(said)
    assert (status, told["status"], told["ending"]) == (4, 4, "unreachable")
    assert "the connection was refused" in told["sentence"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "0"], "--budget is '0'; it takes a number of requests"),
        (["--budget"], "argument --budget: expected one argument"),
        (["--bogus"], "unknown option --bogus"),
        (["--size", "3"], "--size is '3'; it takes a size with its unit"),
    ],
)
def test_a_wrong_argument(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence is that of standard error; with ``--out -`` the object goes there, too."""
    monkeypatch.chdir(tmp_path)
    for out in ([], ["--out", "-"], ["--out=-"]):
        with pytest.raises(SystemExit) as ended:
            main(["files", "https://example.org/", "--json", *out, *words])
        assert ended.value.code == 2
        shown = capsys.readouterr()
        assert shown.err.startswith(f"Error: {said}")
        told = json.loads(shown.err.splitlines()[1] if out else shown.out)
        assert not (out and shown.out)
        assert (told["status"], told["ending"]) == (2, "wrong_argument")
        assert told["sentence"].startswith(said)


def test_a_setting_that_cannot_be_used(tmp_path: Path) -> None:
    """The crawl does not begin, and the object says why."""
    status, said, _ = run(tmp_path, "files", "http://127.0.0.1:9/", "-s", "FOCUS_BUDGET_BYTES=many")
    told = json.loads(said)
    assert (status, told["status"], told["ending"]) == (2, 2, "wrong_argument")
    assert told["sentence"].startswith("FOCUS_BUDGET_BYTES is 'many'")


def test_a_dry_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It says what the lines would say."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["files", "example.org", "--json", "--dry-run", "--size", "2GB", "--time", "1h"])
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (told["ending"], told["status"], told["starts"]) == ("dry_run", 0, ["https://example.org"])
    assert told["sends"] == "for 1 hour, until 2 GB are received"
