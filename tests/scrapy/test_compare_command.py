"""``focus compare``: what it shows and writes, with the policies of a project too, and its error messages."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from forked import Forked
from scrapy.cmdline import execute

from scrapy_focus.lab.recordings.importers.base import record
from scrapy_focus.lab.recordings.importers.folder import FolderImporter, record_site
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from tests.made import HANG

if TYPE_CHECKING:
    from pathlib import Path

POLICIES = """
import time

from scrapy_focus import Ordering


class Short(Ordering):
    def __init__(self, *, sign=1):
        self.sign = sign

    def rank(self, link, source):
        return -self.sign * len(link.url)


class Failing(Short):
    def rank(self, link, source):
        raise RuntimeError("no idea")


class Endless(Short):
    def rank(self, link, source):
        time.sleep(1000)


def pages(outcome):
    return float(outcome.mime == "text/html")
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with custom policies, and a recording next to it."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = mine.settings\n")
    (folder / "mine").mkdir()
    for name, text in (("__init__", ""), ("settings", "BOT_NAME = 'mine'\n"), ("policies", POLICIES)):
        (folder / "mine" / f"{name}.py").write_text(text)
    (folder / "elsewhere.csv").write_text("http://portal.example/,3\nhttp://elsewhere.example/,2\n")
    (folder / "words.csv").write_text("url,importance\nhttp://portal.example/,high\n")
    record_site(StatisticsPortal(pages=200, endless=False), folder / "one.sqlite", root="http://portal.example/")
    return folder


def start(project: Path, *words: str) -> Forked:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    command = [sys.executable, "-m", "scrapy", "focus-compare", *words]
    pipe = subprocess.PIPE
    return Forked(command, cwd=project, stdout=pipe, stderr=pipe, text=True, env=environment)


def run(project: Path, *words: str, expect: int = 0) -> tuple[str, str]:
    """Run the command in the project, and return its output and its log."""
    process = start(project, *words)
    said, logged = process.communicate(timeout=HANG)
    assert process.returncode == expect, said + logged
    return said, logged


def call(*words: str) -> int:
    """Run the command in this process, and return its exit status."""
    with patch.dict(os.environ), pytest.raises(SystemExit) as ended:  # Scrapy stores the project there
        execute(["scrapy", "focus-compare", *words])
    return int(ended.value.code or 0)


@pytest.mark.slow
def test_policies_of_a_project_are_compared(project: Path, tmp_path: Path) -> None:
    """In other processes, with their parameters; there is a table, a line for each run, and the page."""
    out = tmp_path / "out"
    said, logged = run(
        project, "one.sqlite", "--policy", "long=mine.policies.Short:sign=-1", "--policy", "BFS", "--policy", "DFS",
        "--seeds", "2", "--jobs", "2", "--metric", "area", "--metric", "found", "--baseline", "dfs",
        "--goal", "mine.policies.pages", "--budget", "60", "--out", str(out), "--ignore-nothing",
    )  # fmt: skip
    assert len(re.findall(r"^\d/6 one, \S+, seed \d: area ", logged, re.MULTILINE)) == 6
    assert "6/6" in logged
    assert "Area under the curve" in said
    assert re.search(r"long +│ .*│ +x \d", said)
    assert "against" in said
    assert f"The page to read: {out / 'index.html'}" in said
    data = json.loads((out / "summary.json").read_text())
    assert (data["baseline"], data["metric"], data["budget"], data["ignored"]) == ("DFS", "area", 60, [])
    assert data["policies"][0] == {
        "label": "long", "path": "mine.policies.Short", "params": {"sign": -1}, "informed": False
    }  # fmt: skip
    assert "what pages counts" in (out / "index.html").read_text()
    again = tmp_path / "again"
    words = data["command"].split()[2:]
    assert "mine.policies.pages" in words
    run(project, *words, "--out", str(again), "--no-plots", "--jobs", "1")
    assert strip(again) == strip(out)
    assert not list(again.glob("*.png"))


def test_structured_data_is_looked_for_in_the_text_of_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a recording with bodies; the report repeats the command. Without bodies it says what is missing."""
    monkeypatch.chdir(tmp_path)
    pages = tmp_path / "pages"
    pages.mkdir()
    event = '<p itemscope itemtype="https://schema.org/Event"><b itemprop="name">x</b></p>'
    (pages / "index.html").write_text("".join(f"<a href=/{i}.html>{i}</a>" for i in range(6)))
    for i in range(6):
        (pages / f"{i}.html").write_text(f"<p>{i}{event * (i % 2)}")
    words = ["--structured", "schema:Event", "--policy", "BFS", "--seeds", "1", "--jobs", "1", "--no-plots"]
    for name, bodies in (("with", True), ("without", False)):
        record(FolderImporter(pages), f"{name}.sqlite", root="http://a.example/", bodies=bodies)
    assert call("with.sqlite", *words, "--metric", "found", "--out", "found") == 0
    data = json.loads((tmp_path / "found" / "summary.json").read_text())
    assert "--structured schema:Event" in data["command"]
    [run_] = csv.DictReader((tmp_path / "found" / "runs.csv").read_text().splitlines())
    assert float(run_["found"]) == 3
    assert call("without.sqlite", *words, "--out", "none") == 1
    assert "record the site again with --bodies" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_crawls_are_judged_by_important_pages(project: Path, tmp_path: Path) -> None:
    """Both measures are side by side, with the best order and a random one; the same command gives the same."""
    out, again = tmp_path / "out", tmp_path / "again"
    said, logged = run(
        project, "one.sqlite", "--importance", "backlinks", "--hot", "20", "--policy", "BFS", "--policy", "RANDOM",
        "--seeds", "2", "--jobs", "1", "--out", str(out),
    )  # fmt: skip
    assert len(re.findall(r"^\d/4 one, \S+, seed \d: pst_5 ", logged, re.MULTILINE)) == 4
    for words in ("Hot pages after 5 %", "Best 5 % after 5 %", "Requests until 90 %", "ideal order", "by chance"):
        assert words in said
    data = json.loads((out / "summary.json").read_text())
    assert data["importance"] == {"by": "backlinks", "hot": 20}
    assert data["metric"] == "pst_5"
    run(project, *data["command"].split()[2:], "--out", str(again), "--no-plots", "--jobs", "1")
    assert strip(again) == strip(out)


def test_defaults_where_pages_are_important(project: Path, tmp_path: Path) -> None:
    """Without names, orders are compared with the default policy."""
    out = tmp_path / "out"
    words = ["--importance", "pagerank", "--seeds", "1", "--no-plots", "--metric", "pcs_10", "--budget", "60"]
    said, _ = run(project, "one.sqlite", *words, "--jobs", "1", "--out", str(out))
    assert "Best 10 % after 10 %" in said
    data = json.loads((out / "summary.json").read_text())
    assert data["importance"] == {"by": "pagerank", "hot": 0.008}
    labels = [policy["label"] for policy in data["policies"]]
    assert labels == ["PageRank", "back-links", "BFS", "KEYWORDS", "RANDOM", "BranchingBandit"]


def strip(folder: Path) -> list[str]:
    """Return the rows of all runs without the time that they took."""
    rows = [row.split(",") for row in (folder / "runs.csv").read_text().splitlines()]
    return [",".join(row[:4] + row[5:]) for row in rows]


def test_defaults_are_those_of_the_paper(project: Path, tmp_path: Path) -> None:
    """Without options SB-CLASSIFIER is compared with the baselines and OMNISCIENT, in a folder here."""
    process = start(project, "one.sqlite", "--seeds", "1", "--no-plots", "--budget", "60")
    said, logged = process.communicate(timeout=HANG)
    assert process.returncode == 0, logged
    for name in ("SB-CLASSIFIER", "BFS", "KEYWORDS", "RANDOM", "OMNISCIENT *"):
        assert (
            len(re.findall(rf"{re.escape(name)} +│", said)) == 2
        )  # in the table of shares, and in that of the first requests
    assert "what the first requests found" in said
    assert "requests beyond the link floor" not in said
    assert (project / "comparison" / "index.html").is_file()
    assert "There is one seed" in said


def test_losses_are_shown_next_to_the_link_floor(project: Path, tmp_path: Path) -> None:
    """With the link floor among the policies there is a table of the requests beyond it, on the page too."""
    out = tmp_path / "out"
    words = ["--policy", "BFS", "--policy", "LINK-FLOOR", "--seeds", "1", "--no-plots", "--jobs", "1"]
    said, _ = run(project, "one.sqlite", *words, "--out", str(out))
    lost = said.partition("requests beyond the link floor")[2]
    beyond = re.search(r"BFS +│ +([\d,]+) │ +([\d,]+) │ +([\d,]+) │", lost)
    assert beyond is not None
    with (out / "runs.csv").open() as file:
        bfs, floor = csv.DictReader(file)
    stages = ("early_requests", "middle_requests", "late_requests")
    assert [int(text.replace(",", "")) for text in beyond.groups()] == [
        float(bfs[stage]) - float(floor[stage]) for stage in stages
    ]
    assert "Where requests are lost" in (out / "index.html").read_text()


def test_a_run_that_fails_is_shown_and_changes_the_status(project: Path, tmp_path: Path) -> None:
    """The others are completed, the table names the failed one, and the exit status is 1."""
    said, _ = run(
        project, "one.sqlite", "--policy", "BFS", "--policy", "mine.policies.Failing", "--seeds", "2", "--jobs", "1",
        "--no-plots", "--out", str(tmp_path / "out"), expect=1,
    )  # fmt: skip
    assert "2 of 4 runs failed" in said
    assert "Failed: Failing on one, seed 1: RuntimeError: no idea" in said
    assert "RuntimeError: no idea" in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.slow
def test_an_interrupt_keeps_what_is_done(project: Path, tmp_path: Path) -> None:
    """Ctrl-C ends all processes at once, and what is done is shown and written; the status is 130."""
    words = ["--policy", "BFS", "--policy", "mine.policies.Endless", "--seeds", "1", "--jobs", "2", "--no-plots"]
    process = start(project, "one.sqlite", *words, "--out", str(tmp_path / "out"))
    assert process.stderr is not None
    assert process.stderr.readline().startswith("1/2 one, BFS")
    process.send_signal(signal.SIGINT)
    said, logged = process.communicate(timeout=HANG)
    assert process.returncode == 130
    assert "The comparison was interrupted: 1 of 2 runs were made." in said
    assert "Traceback" not in logged
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["runs"]["interrupted"]


@pytest.mark.slow
def test_a_terminal_shows_a_bar(project: Path, tmp_path: Path) -> None:
    """On a terminal progress is a bar with the number of runs and the time that is left."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "scrapy", "focus-compare", "one.sqlite", "--policy", "BFS", "--policy", "RANDOM",
               "--seeds", "3", "--jobs", "1", "--budget", "60", "--no-plots", "--out", str(tmp_path / "out")]  # fmt: skip
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "150"}
    process = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    assert process.wait(timeout=HANG) == 0
    assert process.stdout is not None
    process.stdout.close()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode(errors="replace"))
    assert "Crawling" in text
    assert re.search(r"[1-6]/6", text)
    assert "left:" in text
    assert not re.search(r"^\d/6 one", text, re.MULTILINE)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux's way of saying that all writers are gone
        return b""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name at least one recorded site; focus record makes one"),
        (["--polcy", "BFS"], "unknown option --polcy"),
        (["--seeds", "0"], "--seeds is '0'; it takes how many from 1"),
        (["--seeds", "3,x"], "--seeds is '3,x'"),
        (["--budget", "-5"], "--budget"),
        (["--jobs", "none"], "--jobs is 'none'; it takes a number from 1"),
        (["--targets", "csv", "--goal", "a.b"], "--targets and --goal both say what to look for"),
        (["--targets", "csv", "--structured", "Event"], "--targets and --structured both say what to look for"),
        (["--hot", "0.1"], "--hot says how many important pages count; say which ones are, as --importance pagerank"),
        (["--importance", "pagerank", "--hot", "few"], "--hot is 'few'; it takes a share of the pages, as 0.008, or a"),
    ],
)
def test_bad_options_are_explained(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what is wrong, and the exit status is 2."""
    assert call(*(["one.sqlite", *words] if words else [])) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.sqlite"], "none.sqlite"),
        (["one.sqlite", "--policy", "BFZ"], "there is no policy 'BFZ'; did you mean BFS?"),
        (["one.sqlite", "--policy", "BFS:x=1"], "policy 'BFS x=1' cannot be made"),
        (["one.sqlite", "--metric", "request_90"], "did you mean requests_90?"),
        (["one.sqlite", "--latency", "slow"], "the latency is 'slow'; give seconds, 'recorded'"),
        (["one.sqlite", "--targets", "no such"], "--targets: 'no such' is not a file type"),
        (
            ["one.sqlite", "--structured", "Evnt"],
            "--structured: 'Evnt' is not a type of schema.org; did you mean Event?",
        ),
        (["one.sqlite", "--goal", "no.such"], "--goal no.such cannot be loaded: ModuleNotFoundError"),
        (["one.sqlite", "--goal", "os.sep"], "--goal os.sep is not a goal"),
        (["one.sqlite", "--out", "mine"], "mine holds something other than a comparison"),
        (["one.sqlite", "--metric", "pst_5"], "say which ones are important (--importance pagerank)"),
        (
            ["one.sqlite", "--importance", "pagerank", "--hot", "1.5"],
            "1.5 is not a number of hot pages; give a share below 1",
        ),
        (
            ["one.sqlite", "--importance", "pagerank", "--hot", "0"],
            "0 is not a number of hot pages; give a share below 1",
        ),
        (
            ["one.sqlite", "--importance", "pagrank"],
            "give pagerank, backlinks, similarity:QUERY, or a CSV file with a URL and a number",
        ),
        (
            ["one.sqlite", "--importance", "elsewhere.csv"],
            "no recording has: 'http://elsewhere.example/'; leave them out",
        ),
        (
            ["one.sqlite", "--importance", "words.csv"],
            "words.csv, line 2: the importance is 'high'; give a number from 0",
        ),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    words: list[str], message: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error says what to do, the exit status is 1, and nothing is written."""
    monkeypatch.chdir(project)
    before = {path.name for path in project.iterdir()}
    assert call(*words) == 1
    error = capsys.readouterr().err
    assert error.startswith("Error: ")
    assert message in error
    assert error.count("\n") == 1
    assert {path.name for path in project.iterdir()} == before


def test_the_command_imports_little() -> None:
    """Each start of ``scrapy`` imports the command, and nothing that it needs only when it runs."""
    code = (
        "import scrapy_focus.lab.commands.compare, sys; print([m for m in sys.modules if 'replay' in m or 'rich' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["focus-compare", "focus-record"])
@pytest.mark.parametrize("width", ["60", "80", "81", "97", "120"])
def test_help_is_no_heading(
    command: str, width: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scrapy makes a heading of every line that ends with a colon, so no line of a help text does, at any width."""
    monkeypatch.setenv("COLUMNS", width)
    with patch.dict(os.environ), pytest.raises(SystemExit):
        execute(["scrapy", command, "-h"])
    lines = capsys.readouterr().out.splitlines()
    heads = {above for above, line in pairwise(lines) if line and not line.strip("=-")}
    assert heads <= {"Usage", "Options", "Global Options", "Sources Other Than The Site Itself, One Of"}
