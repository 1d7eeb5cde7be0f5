"""How crawls end: a kind, an exit status and a sentence, for twelve mistakes and whatever else ends a crawl.

Each mistake is made in both ways to begin: ``scrapy crawl datasets`` in a project, and ``focus-files`` outside of any.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import pytest
from crawls import Follower, crawl
from forked import Forked
from mocksite import MockSite, Seen
from scrapy.exceptions import UsageError

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.problems import Section, see
from scrapy_focus.engine.ending import STATUS, Facts, Wall, count_type, draw, ending_of, seen
from scrapy_focus.finders.files.spider import DatasetsSpider
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PROJECT = Path(__file__).parents[2] / "example_project"
SETTINGS = {
    "TELNETCONSOLE_ENABLED": "0", "REMOTE_CONTROL_ENABLED": "0", "STATS_DUMP": "0", "DOWNLOAD_DELAY": "0",
    "LOG_LEVEL": "WARNING", "FOCUS_SEED": "1",
}  # fmt: skip
QUICK = {"DOWNLOAD_DELAY": "0", "FOCUS_SEED": "1"}
OPTIONS = {"types": "--types", "budget": "--budget", "out": "--out"}  # of focus-files, by arguments of the spider
ENV = {**os.environ, "PYTHONPATH": str(PROJECT.parent), "PYTHONWARNINGS": "ignore"}
LINES = 3  # at most, where the log is quiet
WAYS = pytest.mark.parametrize("way", ["crawl", "files"])


class Run(NamedTuple):
    """What a process left."""

    status: int
    lines: list[str]


def command(way: str, *arguments: str, **settings: str) -> tuple[list[str], Path]:
    """Return ``scrapy crawl datasets`` with a quiet log, or plain ``focus-files``, and the folder to start it in."""
    if way == "crawl":
        words, cwd = ["scrapy", "crawl", "datasets", *(part for each in arguments for part in ("-a", each))], PROJECT
    else:
        given = [each.partition("=")[::2] for each in arguments]
        words = ["scrapy_focus", "files", *(url for name, value in given if name == "root" for url in value.split(","))]
        words += [part for name, value in given if name != "root" for part in (OPTIONS[name], value)]
        cwd = PROJECT.parent / "tests"
    for name, value in ((SETTINGS if way == "crawl" else QUICK) | settings).items():
        words += ["-s", f"{name}={value}"]
    return [sys.executable, "-m", *words], cwd


def begin(*arguments: str, way: str = "crawl", **settings: str) -> Forked:
    """Start a crawl whose whole output is kept."""
    words, cwd = command(way, *arguments, **settings)
    return Forked(words, cwd=cwd, env=ENV, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)


def end(process: Forked, already: Sequence[str] = ()) -> Run:
    """Wait until a crawl has ended that printed some lines already."""
    said, _ = process.communicate(timeout=HANG)
    return Run(process.returncode, [*already, *said.splitlines()])


def check(run: Run, status: int, *words: str) -> None:
    """Fail unless a run ended with a status and few lines, the last of which gives the reason."""
    assert run.status == status, run.lines
    assert 1 <= len(run.lines) <= LINES, run.lines
    assert all(word in run.lines[-1] for word in words), run.lines
    assert not any("Traceback" in line for line in run.lines)


@pytest.fixture
def served() -> Iterator[MockSite]:
    """A small site with two files on it."""
    pages = {
        "/": '<a href="/one">one</a> <a href="/file?type=application/pdf&size=3">report</a>',
        "/one": '<a href="/file?type=text/csv&size=4">table</a>',
    }
    with MockSite(pages=pages) as site:
        yield site


MISTAKES = {
    "no URL": ((), 2, ("where to start",)),
    "typing error": (("root=htp://example.org/",), 2, ("'htp://example.org/'", "https://example.org/")),
    "unknown host": (("root=http://nowhere.invalid/",), 4, ("http://nowhere.invalid/", "no host of that name")),
    "refused": (("root=http://127.0.0.1:9/",), 4, ("http://127.0.0.1:9/", "connection was refused")),
    "404": (("root={site}nothing",), 4, ("it answers 404", "problems.html#unreachable")),
    "robots": (("root={site}forbidden",), 4, ("robots.txt forbids it", "problems.html#robots-txt")),
    "wrong type": (
        ("root={site}", "types=parquet"),
        3,
        ("No parquet in 5 requests", "2 text/html", "1 application/pdf", "problems.html#nothing-found"),
    ),
    "budget 0": (("root={site}", "budget=0"), 2, ("budget is '0'", "it takes a number")),
    "out a file": (("root={site}", "out={file}"), 2, ("out", "name a")),
    "budget": (
        ("root={site}", "budget=4"),
        0,
        ("budget of requests is used up", "1 file found in 4 requests", "the same command with a larger --budget"),
    ),
}
BOTH = ("no URL", "404", "wrong type", "budget 0")  # ways say the same, and the command is that of most users


@pytest.mark.parametrize(
    ("mistake", "way"),
    [(each, way) for each in MISTAKES for way in ("crawl", "files") if way == "files" or each in BOTH],
)
def test_mistakes(mistake: str, way: str, served: MockSite, tmp_path: Path) -> None:
    """Each has its status, and a last line with the error and what to do; there are three lines at most."""
    arguments, status, words = MISTAKES[mistake]
    (tmp_path / "file").touch()
    filled = [each.format(site=served.url("/"), file=tmp_path / "file") for each in arguments]
    out = [] if any(each.startswith("out=") for each in filled) else [f"out={tmp_path / 'found'}"]
    check(end(begin(*filled, *out, way=way)), status, *words)
    if status == 2:
        assert not served.log, "nothing was requested"


FAREWELL = "Ctrl-C again stops at once"


class Slow(MockSite):
    """A site of many pages that holds back everything after its first page, until a test releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = Event()

    def begin(self, seen: Seen) -> None:
        super().begin(seen)
        if len(self.log) >= 3:
            self.may_answer.wait(HANG)


@pytest.fixture
def slow() -> Iterator[Slow]:
    """A site that is waited for when the crawl is interrupted."""
    with Slow() as site:
        yield site
        site.may_answer.set()


@WAYS
def test_interrupted_once(way: str, slow: Slow, tmp_path: Path) -> None:
    """It says what it waits for and what is kept, ends with 130, and resumes."""
    out, job = tmp_path / "found", {"JOBDIR": str(tmp_path / "job")} if way == "crawl" else {}
    process = begin(f"root={slow.url('/page/0/100')}", f"out={out}", way=way, **job)
    wait_for(slow, 3)
    said = interrupt(process)
    slow.may_answer.set()
    run = end(process, said)
    check(run, 130, "Interrupted", "the same command resumes")
    check_farewell(run.lines[-2], out)


@WAYS
def test_interrupted_twice(way: str, slow: Slow, tmp_path: Path) -> None:
    """The process ends at once, with 130, though the site never answers."""
    process = begin(f"root={slow.url('/page/0/100')}", f"out={tmp_path}", way=way)
    wait_for(slow, 3)
    said = interrupt(process)
    process.send_signal(signal.SIGINT)
    run = end(process, said)
    assert run.status == 130, run.lines
    assert len(run.lines) <= LINES, run.lines
    assert not any("Traceback" in line for line in run.lines)


def interrupt(process: Forked) -> list[str]:
    """Interrupt a crawl, and return its output until it has noticed."""
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    said: list[str] = []
    while not said or FAREWELL not in said[-1]:
        line = process.stdout.readline()
        assert line, said
        said.append(line.rstrip("\n"))
    return said


def check_farewell(line: str, out: Path) -> None:
    assert "after 1 request in flight" in line
    assert FAREWELL in line
    assert str(out) in line


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize("times", [1, 2])
def test_interrupted_on_a_terminal(times: int, way: str, slow: Slow, tmp_path: Path) -> None:
    """Ctrl-C comes from a key of the terminal, and the panel is shown: the status and the messages are the same."""
    words, cwd = command(way, f"root={slow.url('/page/0/100')}", f"out={tmp_path}", FOCUS_PROGRESS="auto")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(cwd)
        os.execve(words[0], words, {**ENV, "TERM": "xterm", "COLUMNS": "300", "LINES": "40"})
    screen: list[bytes] = []
    looks = Thread(target=lambda: screen.extend(iter(lambda: read(terminal), b"")))  # or the process waits for a reader
    looks.start()
    wait_for(slow, 3)
    for awaited in ("per 100 requests:", FAREWELL)[:times]:
        wait_until(lambda awaited=awaited: awaited.encode() in b"".join(screen))  # type: ignore[misc]
        os.write(terminal, b"\x03")
    if times == 1:
        wait_until(lambda: FAREWELL.encode() in b"".join(screen))
        slow.may_answer.set()
    looks.join(HANG)
    shown = b"".join(screen).decode(errors="replace")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130, shown
    assert "per 100 requests:" in shown, "the panel was there"
    assert shown.rfind("\x1b[?25l") < shown.rfind("\x1b[?25h"), "the cursor is back"
    plain = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).strip("\r") for line in shown.split("\n")]
    lines = [line.removeprefix("^C") for line in plain if line.strip("^C ") and line[-1] not in "╮│╯"]
    assert "Traceback" not in shown
    assert len(lines) <= LINES, lines
    if times == 1:
        check_farewell(lines[-2], tmp_path)
        assert "Interrupted" in lines[-1]


def read(terminal: int) -> bytes:
    """Return what a terminal shows next; nothing when the process is gone, which Linux reports as an error."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def wait_for(site: MockSite, requests: int) -> None:
    """Wait until a site had so many requests."""
    wait_until(lambda: len(site.log) >= requests)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    until = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system; only where one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=False)


def test_a_disk_that_is_full(small_disk: Path, tmp_path: Path) -> None:
    """In the middle the crawl stops, with 5, and the same command resumes with room; at the start it is refused."""
    files = "".join(f'<a href="/file?type=text/csv&size={20000 + i}">{i}</a>' for i in range(12))
    with MockSite(pages={"/": files}) as site:
        out, job = f"out={small_disk / 'found'}", str(tmp_path / "job")
        run = end(begin(f"root={site.url('/')}", out, JOBDIR=job))
        check(run, 5, "disk is full", "the same command resumes")
        asked = len(site.log)
        assert asked < 10
        fill(small_disk / "rest")
        check(end(begin(f"root={site.url('/')}", f"out={small_disk / 'other'}")), 2, "No space left")
        assert len(site.log) == asked
        (small_disk / "rest").unlink()
        subprocess.run(["mount", "-o", "remount,size=10m", str(small_disk)], check=True)
        check_found(end(begin(f"root={site.url('/')}", out, JOBDIR=job, LOG_LEVEL="INFO")))
        paths = {path for path in site.paths if "csv" in path}
    assert len(paths) == 12
    stored = [path for path in (small_disk / "found" / "files").rglob("*") if path.is_file()]
    assert len({path.stat().st_size for path in stored}) == 12


def fill(path: Path) -> None:
    """Write to a file until the disk is full."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 1024)
        except OSError:
            pass


def check_found(run: Run) -> None:
    assert run.status == 0, run.lines
    assert any("Done: " in line for line in run.lines)


# In this process


def test_what_was_found(site: MockSite) -> None:
    """Items count if nothing else is looked for; a limit of Scrapy's own changes no status."""
    whole = crawl(Follower, seeds=[site.url("/page/0/20")])
    assert ending_of(whole.crawler).kind == "found"
    assert ending_of(whole.crawler).sentence == "Done: 20 items found in 20 requests."
    closed = crawl(Follower, {"CLOSESPIDER_ITEMCOUNT": 5}, seeds=[site.url("/page/0/20")])
    assert closed.reason == "closespider_itemcount"
    assert ending_of(closed.crawler).status == 0
    assert ending_of(closed.crawler).sentence.startswith("Closed (closespider_itemcount), with ")
    assert whole.logged("Done: 20 items found")


def test_a_budget(site: MockSite) -> None:
    """With finds it is a budget that is used up; without, nothing was found."""
    settings: dict[str, Any] = {"FOCUS_BUDGET_REQUESTS": 5}
    assert ending_of(crawl(Follower, settings, seeds=[site.url("/page/0/20")]).crawler).status == 0
    settings["FOCUS_TARGETS"] = ["parquet"]
    ending = ending_of(crawl(Fruitless, settings, seeds=[site.url("/page/0/20")]).crawler)
    assert ending.kind == "nothing_found"
    assert "No parquet in 5 requests; seen: 5 text/html" in ending.sentence


def test_one_of_several_starts(site: MockSite) -> None:
    """A crawl is unreachable only if no start URL could be read; otherwise it names those that could not."""
    seeds = [site.url("/status?code=404"), "http://127.0.0.1:9/", site.url("/page/0/5")]
    ending = ending_of(crawl(Follower, seeds=seeds).crawler)
    unread = f"{seeds[0]}: it answers 404; {seeds[1]}: the connection was refused"
    assert (ending.status, ending.sentence) == (0, f"Done: 5 items found in 6 requests. Could not read {unread}.")
    ending = ending_of(crawl(Follower, seeds=seeds[:2]).crawler)
    assert ending.sentence == (
        f"No page could be read ({unread}): check the URLs, or try again later. {see('unreachable')}"
    )
    assert ending.status == 4
    several = [f"http://127.0.0.1:9/{n}" for n in range(5)]
    assert "/2: the connection was refused; and 2 more)" in ending_of(crawl(Follower, seeds=several).crawler).sentence


class Fruitless(Follower):
    """Follows links, and yields no items."""

    def parse(self, response: Any) -> Any:
        yield from response.follow_all(css="a")


GUARDED = (403, {"Content-Type": "text/html"}, b"<p>Cloudflare Ray ID: 12. Please enable JavaScript and cookies")
LOG_IN = "log in with a browser and send its cookie"
OWNER = "ask its owner for access, or look for an API or a download of its data."


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (GUARDED, f"it answers 403: a guard (Cloudflare) turns programs away): {OWNER}"),
        (
            (403, {}, b""),
            "it answers 403: access is denied): set USER_AGENT to who you are, or ask its owner for access.",
        ),
        (
            (401, {"WWW-Authenticate": "Basic"}, b""),
            "and asks for a name and a password): set HTTPAUTH_USER, HTTPAUTH_PASS and HTTPAUTH_DOMAIN=127.0.0.1:",
        ),
        (
            (429, {}, b""),
            "it answers 429: it was sent too many requests): try again later, with a larger DOWNLOAD_DELAY.",
        ),
        ((503, {}, b""), "it answers 503: it is overloaded or down): try again later."),
        ((500, {}, b""), "it answers 500: the server fails): try again later."),
        ((404, {}, b""), "it answers 404): check the URL, or try again later."),
    ],
)
def test_a_start_page_that_lets_nobody_in(site: MockSite, answer: Any, said: str) -> None:
    """The last line says what it is, and what to do about it."""
    site.answers["/start"] = lambda n: answer
    ending = ending_of(crawl(Fruitless, {"RETRY_TIMES": 0}, seeds=[site.url("/start")]).crawler)
    assert ending.kind == "unreachable"
    assert ending.sentence.startswith(f"No page could be read ({site.url('/start')}: it answers {answer[0]}")
    assert said in ending.sentence


def test_two_start_pages_that_let_nobody_in(site: MockSite) -> None:
    """Where different things help, the advice is the usual one."""
    site.answers |= {"/a": lambda n: (500, {}, b""), "/b": lambda n: (403, {}, b"")}
    ending = ending_of(crawl(Fruitless, {"RETRY_TIMES": 0}, seeds=[site.url("/a"), site.url("/b")]).crawler)
    assert ending.sentence.endswith(
        f"it answers 403: access is denied): check the URLs, or try again later. {see('unreachable')}"
    )


FORM = '<form method=post><input name=user><input type="password"></form>'
MANY = "".join(f'<a href="/ok?{n}">{n}</a>' for n in range(20))


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ({"/login": FORM + MANY}, f"The start page redirects to {{login}}, a page with a password form: {LOG_IN}"),
        ({"/start": FORM}, f"The start page asks for a password: {LOG_IN}"),
        (
            {"/start": '<script src="/_Incapsula_Resource?1"></script>'},
            f"The start page is that of a guard (Imperva), which turns programs away: {OWNER}",
        ),
        ({"/start": FORM + MANY}, ""),
        ({"/start": "<p>nothing"}, ""),
        ({"/start": '<a href="/next">next</a>', "/next": FORM}, ""),
    ],
)
def test_a_start_page_that_is_a_wall(site: MockSite, pages: dict[str, str], said: str) -> None:
    """A login form, or the page of a guard: it is named if nothing was found; other pages are not."""
    site.pages |= pages
    if "/login" in pages:
        site.answers["/start"] = lambda n: (302, {"Location": "/login"}, b"")
    settings = {"FOCUS_TARGETS": ["parquet"]}
    ending = ending_of(crawl(Fruitless, settings, seeds=[site.url("/start")]).crawler)
    assert ending.kind == "nothing_found"
    assert said.format(login=site.url("/login")) in ending.sentence
    section = "nothing-found" if not said else "blocked" if "guard" in said else "login-wall"
    assert ending.sentence.endswith(f"#{section}")
    assert bool(said) != ("try other types, or another start URL" in ending.sentence)


def test_broken_links_are_no_start_urls(site: MockSite) -> None:
    """A link to a missing page does not affect the ending."""
    site.pages["/start"] = f'<a href="{site.url("/status?code=404")}">a</a>'
    ending = ending_of(crawl(Follower, seeds=[site.url("/start")]).crawler)
    assert ending.sentence == "Done: 1 item found in 2 requests."


@pytest.mark.parametrize("reached", [True, False])
def test_what_failed_is_not_said_twice(reached: bool, site: MockSite) -> None:
    """A failed connection has a line in the log if a page was fetched; otherwise, the ending gives the reason."""
    seeds = ["http://127.0.0.1:9/", *([site.url("/page/0/5")] if reached else [])]
    done = crawl(Follower, {"ROBOTSTXT_OBEY": True}, addon=True, seeds=seeds)
    assert len(done.logged("Failed: ")) == reached
    assert ("Could not read" if reached else "No page could be read") in ending_of(done.crawler).sentence


def test_nothing_is_left_where_nothing_was_seen(site: MockSite) -> None:
    """The summary does not say that 0 targets are left if the crawl could read nothing."""
    settings = {"FOCUS_TARGETS": ["pdf"]}
    nothing = crawl(Follower, settings, addon=True, seeds=[site.url("/status?code=404")])
    [said] = nothing.logged("Finished (")
    assert "left to find" not in said
    [said] = crawl(Follower, settings, addon=True, seeds=[site.url("/page/0/5")]).logged("Finished (")
    assert "files left to find" in said


@pytest.mark.both
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_a_wrong_setting_in_a_script(addon: bool, site: MockSite, caplog: pytest.LogCaptureFixture) -> None:
    """The script gets the exception, the log has one line, and nothing is requested."""
    with pytest.raises(ConfigError, match="FOCUS_COST_LIMIT is 'abc'"):
        crawl(Follower, {"FOCUS_COST_LIMIT": "abc"}, addon=addon, seeds=[site.url("/page/0/5")])
    lines = [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]
    assert len(lines) == 1
    assert "it takes a number" in lines[0].getMessage()
    assert not site.log


@pytest.mark.parametrize(
    ("name", "value"), [("FOCUS_COSTLIMIT", "1"), ("FOCUS_OBEY", ["everything"]), ("FOCUS_BUDGET_BYTES", "many")]
)
def test_a_wrong_setting_of_the_addon(name: str, value: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Settings of its components are checked before these are created, and errors are one line."""
    with pytest.raises(ConfigError):
        crawl(Follower, {name: value}, addon=True, seeds=["http://127.0.0.1:9/"])
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1


def test_a_wrong_argument_in_a_script(caplog: pytest.LogCaptureFixture) -> None:
    """It is raised, and is one line of the log."""
    with pytest.raises(UsageError, match="say where to start"):
        crawl(DatasetsSpider, addon=True)
    [said] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "say where to start" in said.getMessage()
    assert not said.exc_info


SPIDER = """
import scrapy

class One(scrapy.Spider):
    name = "one"
    custom_settings = {
        "LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False, "SCHEDULER": "scrapy_focus.FocusScheduler",
    }

    async def start(self):
        yield scrapy.Request(self.root)

    def parse(self, response):
        if not self.settings.getbool("BARREN"):
            yield {"url": response.url}
"""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("settings", "status", "said"),
    [
        (["FOCUS_EXIT_STATUS=1", "FOCUS_COST_LIMIT=abc"], 2, "FOCUS_COST_LIMIT is 'abc'"),
        (["FOCUS_COST_LIMIT=abc"], 1, "FOCUS_COST_LIMIT is 'abc'"),
        (["FOCUS_EXIT_STATUS=1", "FOCUS_BUDGET_REQUESTS=1"], 0, ""),
        (["FOCUS_EXIT_STATUS=1", "BARREN=1"], 3, "No item"),
        (["BARREN=1"], 0, ""),
    ],
)
def test_the_settings_line_alone(settings: list[str], status: int, said: str, site: MockSite, tmp_path: Path) -> None:
    """``runspider`` with only our scheduler has Scrapy's statuses and no warning, or ours and a line, as set."""
    (tmp_path / "one.py").write_text(SPIDER)
    given = [part for setting in settings for part in ("-s", setting)]
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "runspider", "one.py", "-a", f"root={site.url('/page/0/1')}", *given],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(PROJECT.parent)}, capture_output=True, text=True,
        timeout=HANG, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    if said:
        assert said in done.stderr.splitlines()[-1]
    else:
        assert "WARNING" not in done.stderr
    assert "Traceback" not in done.stderr


class Deaf(Follower):
    """Requests several ports of this machine without a listener."""

    async def start(self) -> Any:
        from scrapy import Request

        for seed in self.seeds:
            yield Request(seed)
        for port in range(9, 13):
            yield Request(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_failed_connections(addon: bool, site: MockSite) -> None:
    """With the add-on they have one line for each kind and are counted; the settings line leaves Scrapy's log alone."""
    result = crawl(Deaf, {"LOG_LEVEL": "INFO", "ROBOTSTXT_OBEY": True}, addon=addon, seeds=[site.url("/page/0/3")])
    assert result.stats["focus/failure/refused"] == 4
    loud = [record for record in result.records if record.levelname == "ERROR" and record.exc_info]
    told = result.logged("Failed: ")
    assert (len(loud), len(told)) == ((0, 1) if addon else (8, 0))
    debug = [record for record in result.records if record.levelname == "DEBUG" and record.exc_info]
    assert len(debug) == (8 if addon else 0)
    if addon:
        assert result.logged("4 failed connections: 4 refused")


# The rules by themselves

FACTS = Facts(
    reason="finished",
    found=0,
    noun="files",
    wanted="csv",
    read=3,
    asked=4,
    requests=5,
    failure="",
    types={"text/html": 3},
)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"found": 2}, "found"),
        ({}, "nothing_found"),
        ({"reason": "focus_budget_requests"}, "nothing_found"),
        ({"reason": "focus_budget_bytes", "found": 1}, "budget"),
        ({"reason": "focus_budget_requests", "asked": 0, "read": 0}, "nothing_found"),
        ({"reason": "closespider_timeout", "found": 1}, "found"),
        ({"reason": "focus_cost_limit", "found": 1}, "found"),
        ({"read": 0, "failure": "http://a/: it answers 500"}, "unreachable"),
        ({"read": 0, "reason": "focus_budget_requests"}, "unreachable"),
        ({"read": 0, "found": 7}, "unreachable"),
        ({"asked": 0, "read": 0, "found": 7}, "found"),
        ({"asked": 0, "read": 0}, "nothing_found"),
        ({"reason": "shutdown", "found": 1}, "interrupted"),
        ({"reason": "shutdown", "read": 0}, "interrupted"),
        ({"error": OSError(28, "No space left on device"), "found": 1}, "disk_full"),
        ({"error": OSError(5, "Input/output error")}, "error"),
    ],
)  # fmt: skip
def test_rules(changes: dict[str, Any], kind: str) -> None:
    """What needs attention first wins, and each ending is one printable line with its status."""
    ending = draw(FACTS._replace(**changes))
    assert ending.kind == kind
    assert ending.status == STATUS[ending.kind]
    assert ending.sentence.isprintable()
    assert without_link(ending.sentence).endswith(".")
    assert ("problems.html#" in ending.sentence) == (ending.kind in LINKED)


LINKED = ("nothing_found", "unreachable", "disk_full")  # status 3, 4 and 5


def without_link(sentence: str) -> str:
    """Return a sentence without the link into the documents at its end."""
    return sentence.partition(" See https://")[0]


@pytest.mark.parametrize(
    ("changes", "section"),
    [
        ({}, "nothing-found"),
        ({"reason": "focus_cost_limit", "cost_limit": 5.0, "waiting": 2}, "nothing-found"),
        ({"unread": ["http://a/: it answers 500"], "n_unread": 1}, "nothing-found"),
        ({"states": {"same": 3}}, "nothing-found"),
        ({"asked": 0, "read": 0}, "nothing-found"),
        ({"reason": "focus_budget_requests", "asked": 0}, "nothing-found"),
        ({"reason": "focus_budget_seconds", "watched": "24 hours"}, "nothing-found"),
        ({"shells": 2}, "needs-a-browser"),
        ({"reason": "memusage_exceeded"}, "out-of-memory"),
        ({"shells": 2, "wall": Wall("It asks for a password.", "login-wall")}, "login-wall"),
        ({"read": 0, "failure": "http://a/: it answers 404"}, "unreachable"),
        ({"read": 0, "section": "robots-txt"}, "robots-txt"),
        ({"error": OSError(28, "No space left on device")}, "disk-is-full"),
    ],
)
def test_what_needs_attention_links_to_its_section(changes: dict[str, Any], section: Section) -> None:
    """At its very end, whatever else it says."""
    assert draw(FACTS._replace(**changes)).sentence.endswith(f". {see(section)}")


def test_each_section_exists() -> None:
    """All sections that a message may name are anchors of the page on problems."""
    page = (PROJECT.parent / "docs/problems.rst").read_text()
    anchors = re.findall(r"(?m)^\.\. _([\w-]+):$", page)
    assert set(get_args(Section)) <= set(anchors)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"found": 2}, "Closed (memusage_exceeded), with 2 files found in"),
        ({}, ": closed (memusage_exceeded)."),
        ({"asked": 0, "read": 0}, "Closed (memusage_exceeded) before any page was asked for."),
    ],
)
def test_who_closed_a_crawl_is_said(changes: dict[str, Any], said: str) -> None:
    """If a spider or another extension closed it, it is not done, and another start URL would not help."""
    assert said in draw(FACTS._replace(reason="memusage_exceeded", **changes)).sentence


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"resumable": True},
         "The next file is expected to cost more than 50 requests, and 1,234 links were not followed: the "
                              "same command with a higher FOCUS_COST_LIMIT, or 0 for none, resumes."),
        ({"waiting": 1},
         "1 link was not followed: start again with a higher FOCUS_COST_LIMIT, or 0 for none, to follow them."),
        ({"waiting": 0}, ""), ({"cost_limit": 0.0}, ""), ({"reason": "finished"}, ""), ({"reason": "focus_enough"}, ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("found", [0, 1, 7])
def test_what_a_cost_limit_left_is_said(changes: dict[str, Any], said: str, found: int) -> None:
    """After what was found, be it something or nothing, and only if such a limit ended the crawl."""
    facts = FACTS._replace(reason="focus_cost_limit", found=found, cost_limit=50.0, waiting=1234)
    ending = draw(facts._replace(**changes))
    assert ending.kind == ("found" if found else "nothing_found")
    assert ending.sentence.isprintable()
    assert without_link(ending.sentence).endswith(said)
    assert ("is expected to cost" in ending.sentence) == bool(said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"shells": 1, "advice": "run x"}, " 1 page may show more in a browser: to use one, run x."),
        ({"shells": 1234}, " 1,234 pages may show more in a browser."),
        ({"cut_lists": 1}, " A list is longer than the part that the browser showed."),
        ({"cut_lists": 2}, " 2 lists are longer than the part that the browser showed."),
    ],
)
@pytest.mark.parametrize("reason", ["finished", "focus_budget_requests"])
@pytest.mark.parametrize("found", [0, 7])
def test_what_scripts_hide_is_said(changes: dict[str, Any], said: str, reason: str, found: int) -> None:
    """After what was found, be it something or nothing."""
    plain = draw(FACTS._replace(reason=reason, found=found))
    ending = draw(FACTS._replace(reason=reason, found=found, **changes))
    assert without_link(ending.sentence) == without_link(plain.sentence) + said
    assert ending.kind == plain.kind


def test_requests_of_a_browser_to_other_hosts_are_said() -> None:
    """Next to all requests, of which they are a part."""
    found, nothing = (draw(FACTS._replace(requests=1000, elsewhere=97, found=n)).sentence for n in (7, 0))
    assert found == "Done: 7 files found in 1,000 requests (97 of them to other hosts, by the browser)."
    assert "No csv in 1,000 requests (97 of them to other hosts, by the browser); seen: " in nothing


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"found": 1, "requests": 1}, "Done: 1 file found in 1 request."),
        ({"requests": 1, "types": {"text/html": 1}}, "No csv in 1 request; seen: 1 text/html: "),
        ({"types": {f"a/{n}": 2 - n // 5 for n in range(6)}}, ", 1 other: "),
        ({"reason": "focus_cost_limit", "cost_limit": 1.0, "waiting": 2}, "cost more than 1 request, and 2 links "),
        ({"found": 3, "cut": 1}, "in 5 requests. 1 file was cut: the next crawl asks for it again."),
        ({"found": 3, "cut": 2, "reason": "shutdown"}, ". 2 files were cut: the next crawl asks for them again."),
    ],
)
def test_one_is_said_as_one(changes: dict[str, Any], said: str) -> None:
    """Nouns are in the singular after 1, and what was cut is counted."""
    assert said in draw(FACTS._replace(**changes)).sentence


def test_hostile_reasons_and_types() -> None:
    """What a site sent is spelled and cut."""
    ugly = "\x1b]0;x\x07\n\u202e" + "a" * 10_000
    for ending in (
        draw(FACTS._replace(read=0, failure=ugly)), draw(FACTS._replace(types={ugly: 1})), draw(FACTS._replace(found=1, where=ugly))
    ):  # fmt: skip
        assert ending.sentence.isprintable()
        assert len(ending.sentence) < 1000


def test_types_are_counted_in_bounded_memory() -> None:
    """However many names a server has for its types; the most frequent are named."""
    from collections import Counter

    types: Counter[str] = Counter()
    for i in range(1000):
        count_type(types, f"application/x-{i}")
        count_type(types, "text/html")
    assert len(types) < 110
    assert types.total() == 2000
    assert seen(types).startswith("1,000 text/html, ")
