"""Text of a site never controls the terminal or the log: names, titles, MIME types, wherever they are printed."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from forked import Forked
from hypothesis import given, settings
from hypothesis import strategies as st
from mocksite import MockSite
from rich.console import Console

from scrapy_focus import Crawl, EventLog, Left, Outcome, PolicyTable, memory_frontier
from scrapy_focus.commands.status import rows_of, show
from scrapy_focus.engine.finds import Finds
from scrapy_focus.engine.marks import why_of
from scrapy_focus.engine.progress import Speed, View, draw_panel, progress
from scrapy_focus.lab.recordings.summary import describe
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from scrapy_focus.policies.branching.policy import BranchingBandit
from tests.made import Recording, links

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).parents[2] / "example_project"))
from tests.examples import n_examples

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=80)
ROOT = Path(__file__).parents[2]
HOSTILE_NAMES = [
    'class="&#27;[31mRED&#27;]0;PWNED&#7;"', 'id="q\n2026-11-22 00:00:00 [root] ERROR: fake log line"', 'class="[red]hi"',
    'class="&#x202e;back" id="&#x2028;apart"', f'class="{"w" * 3000}"', 'class="&#155;31mC1"',
]  # fmt: skip
OWN_SEQUENCES = re.compile(r"\x1b\[(?:\d*[ABCDGK]|\?25[lh]|[0-9;]*m|H|2J|J)|\r")  # rich draws with these


def assert_shows(text: str) -> None:
    """Fail unless every line of an output is made of characters that show."""
    unprintable = [line for line in text.split("\n") if not line.isprintable()]
    assert not unprintable, ascii(unprintable[:3])


class Naming(Recording):
    """Has one arm with a given name."""

    name = ""

    def best_arms(self, k: int) -> Any:
        return [(self.name, 1.0, 2), (f"html/{self.name}/a", 0.5, 2)]

    def expected_left(self) -> Any:
        return Left(1.0, 2.0, 1e300)

    def explain(self, pick: Any) -> dict[str, Any]:
        return {"at": self.name}

    def tables(self) -> Any:
        return [PolicyTable(self.name, (self.name, "n"), [(self.name, 1), (2, self.name)])]


@settings(max_examples=n_examples(60), deadline=None)
@given(ANYTHING)
def test_the_progress_of_a_crawl(name: str) -> None:
    """In the log and on a terminal, where names of a site are no markup and no commands."""
    policy = Naming()
    policy.name = name
    crawl = Crawl(policy, frontier=memory_frontier)
    host: Any = SimpleNamespace(
        status=crawl.status,
        policy=Naming,
        pace=SimpleNamespace(put_off_hosts=(0, 0.0)),
        shown=list,
        noun="files",
        config=SimpleNamespace(own_policy=Naming),
    )
    lines = progress(host)
    assert all(line.isprintable() and len(line) < 700 for line in lines)
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    console.print(draw_panel(View(host, Finds(), Speed(1.0), tables=crawl.forecasts.tables()), 100))
    assert_shows(console.file.getvalue())  # type: ignore[attr-defined]
    assert "best kinds of links" in console.file.getvalue()  # type: ignore[attr-defined]


def test_names_are_no_markup() -> None:
    """Text that looks like rich's markup is shown unchanged, including a closing tag without an opening one."""
    policy = Naming()
    policy.name = "[red]hi[/blue]"
    host: Any = SimpleNamespace(
        status=Crawl(policy, frontier=memory_frontier).status,
        policy=Naming,
        pace=SimpleNamespace(put_off_hosts=(0, 0.0)),
        shown=list,
        noun="files",
        config=SimpleNamespace(own_policy=None),
    )
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    console.print(draw_panel(View(host, Finds(), Speed(1.0)), 100))
    assert "[red]hi" in console.file.getvalue()  # type: ignore[attr-defined]


def status_of(text: str) -> dict[str, Any]:
    """Return the input of ``focus-status``, with one text wherever there may be one."""
    amounts = {"requests": 1, "bytes": 1, "seconds": 1}
    return {
        "jobdir": text, "folder": text, "state": "damaged", "process": None, "damage": text, "spider": text or "x",
        "policy": text, "goal": text, "mission": {text: text}, "parameters": {text: text}, "used": amounts, "limits": amounts,
        "left": amounts, "outcomes": 1, "rewards": 1.0, "counts": {}, "best_arms": [{"arm": text, "earned": 1.0, "pulls": 1}],
        "best_arms_error": text, "tables": [{"title": text, "columns": (text, text), "rows": [(text, 1), (1, text)]}],
        "tables_error": text, "links": dict.fromkeys(("waiting", "arms", "asleep", "fetched", "given_up", "probed", "in_flight"), 1)
        | {"found_since": 1, "picked_since": 1, "next_due": "2026-01-02T00:00:00+00:00"}, "rate": text, "events_since_checkpoint": 1, "events": {text: 1}, "made": None,
        "written": "2026-01-01T00:00:00+00:00", "written_seconds_ago": 5.0, "versions": {"then": {text: text}, "now": {}},
        "files": {text: 1}, "said": [text], "alarm": text,
    }  # fmt: skip


@settings(max_examples=n_examples(60), deadline=None)
@given(ANYTHING)
def test_the_status_of_a_job(text: str) -> None:
    """``focus-status`` prints only visible characters, whatever is stored."""
    shown = io.StringIO()
    found = status_of(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", shown)
        show(found)
    assert_shows(shown.getvalue())
    assert rows_of(found)


@settings(max_examples=n_examples(25), deadline=None)
@given(st.text(st.characters(max_codepoint=255), max_size=30), st.text(st.characters(max_codepoint=255), max_size=30))
def test_what_a_recording_holds(tmp_path_factory: pytest.TempPathFactory, mime: str, source: str) -> None:
    """``focus-record --info`` prints only visible characters, whatever types the site sent."""
    path = tmp_path_factory.mktemp("recording") / "site.sqlite"
    with SiteWriter(path, roots=["http://h/"], source=source) as writer:
        writer.add(Answer(url="http://h/", status=200, headers={"Content-Type": f"x/{mime}"}, body=b"<p>"))
    assert_shows(describe(path))


@settings(max_examples=n_examples(60), deadline=None)
@given(ANYTHING)
def test_why_a_page_was_fetched(text: str) -> None:
    """The sentences of the policy and of the topic spider, and the decision log."""
    policy = BranchingBandit()
    crawl = Crawl(policy, frontier=memory_frontier, explain=True, seed=0)
    for key in (1, 2, 3):
        [link] = links(key)
        crawl.add([link._replace(tag_path=f"html/{text}/a")])
    for _ in range(3):
        pick = crawl.next()
        assert pick is not None
        assert crawl.why["why"].isprintable()
        assert why_of({"focus_why": crawl.why}).isprintable()
        crawl.report(Outcome(pick=pick, status=200, mime="text/html", items=1))


@settings(max_examples=n_examples(40), deadline=None)
@given(ANYTHING)
def test_the_decision_log(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Its lines are visible, and are read back unchanged, including lone surrogates."""
    policy = Naming()
    policy.name = text
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    crawl = Crawl(policy, frontier=memory_frontier, log=EventLog(path), strict=True)
    crawl.add(links(1))
    pick = crawl.next()
    assert pick is not None
    crawl.report(Outcome(pick=pick, status=200, mime=text, error=text))
    crawl.close()
    content = path.read_text(encoding="utf-8")
    assert_shows(content)
    first, second = map(json.loads, content.splitlines())
    assert (first["why"]["at"], second["mime"]) == (text, text)


SPIDER = """
import scrapy

class Follow(scrapy.Spider):
    name = "follow"

    async def start(self):
        yield scrapy.Request(self.root)

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="a", meta={"link_text": "\\x1b]0;PWNED\\x07"})
"""


@pytest.fixture
def hostile() -> Iterator[MockSite]:
    """A site whose names, titles and types are commands, lines of a log, and markup."""
    title = "<title>&#27;]0;PWNED&#7;\n2026-11-22 00:00:00 [root] ERROR: fake log line</title>"
    pages = {"/": title}
    for i, names in enumerate(HOSTILE_NAMES):
        rows = "".join(f'<div {names}><a href="/{i}/{j}">page</a></div>' for j in range(8))
        pages["/"] += rows
        pages |= {
            f"/{i}/{j}": f'{title}<p {names}><a href="/file?type=text/csv%1B%5D0;PWNED%07&size=5&{i}-{j}">file</a>'
            for j in range(8)
        }
    with MockSite(pages=pages) as site:
        yield site


def on_a_terminal(command: list[str], folder: Path) -> str:
    """Run a command on a pseudo-terminal, and return everything that it wrote there."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    process = Forked(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # nobody has it open any more
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert process.wait() == 0, written[-3000:].decode("utf-8", "replace")
    return written.decode("utf-8", "surrogateescape").replace("\r\n", "\n")


def assert_harmless(output: str) -> None:
    """Fail if any sequence other than those that draw a panel is invisible, or if a line is forged."""
    assert "\x1b[31mRED" not in output
    assert_shows(OWN_SEQUENCES.sub("", output))
    assert not re.search(r"^2026-11-22 00:00:00", output, re.MULTILINE)


def test_a_hostile_site_on_a_terminal(hostile: MockSite, tmp_path: Path) -> None:
    """Panel, log, status and the summary of a recording: no text of the site reaches the terminal unescaped."""
    (tmp_path / "follow.py").write_text(SPIDER)
    scrapy = [sys.executable, "-m", "scrapy"]
    given = {
        "ADDONS": '{"scrapy_focus.Addon": 500}', "JOBDIR": "job", "FOCUS_PROGRESS": "panel", "LOGSTATS_INTERVAL": "0.2",
        "TELNETCONSOLE_ENABLED": "0", "REMOTE_CONTROL_ENABLED": "0", "FOCUS_TARGETS": "csv,html", "FOCUS_LOG": "log.jsonl",
        "FOCUS_EXPLAIN": "1",
    }  # fmt: skip
    options = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    panel = on_a_terminal([*scrapy, "runspider", "follow.py", "-a", f"root={hostile.url('/')}", *options], tmp_path)
    assert "best kinds of links" in panel
    assert "\\x1b" in panel, "the names are there, spelled"
    assert_harmless(panel)
    assert_shows((tmp_path / "log.jsonl").read_text(encoding="utf-8"))
    status = on_a_terminal([*scrapy, "focus-status", "job"], tmp_path)
    assert "best links" in status
    assert_harmless(status)
    assert_harmless(on_a_terminal([*scrapy, "focus-status", "job", "--json"], tmp_path))
    assert_harmless(on_a_terminal([*scrapy, "focus-check", "job"], tmp_path))
    recording = ["focus-record", "site.sqlite", "-a", f"root={hostile.url('/')}", "-s", "DOWNLOAD_DELAY=0"]
    assert_harmless(on_a_terminal([*scrapy, *recording], tmp_path))
    info = on_a_terminal([*scrapy, "focus-record", "site.sqlite", "--info"], tmp_path)
    assert "text/csv\\x1b]0" in info
    assert_harmless(info)
