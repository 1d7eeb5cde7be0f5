"""``focus files`` and ``focus-topic``: from a URL to results, outside of any project."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Semaphore
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from crawls import crawl
from forked import Forked
from mocksite import MockSite
from scrapy.exceptions import UsageError

from scrapy_focus.__main__ import main
from scrapy_focus.finders.files.command import COST_LIMIT
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.important.spider import ImportantSpider
from scrapy_focus.finders.kit.arguments.seeds import url_of
from scrapy_focus.finders.kit.records.crawls import prepare
from scrapy_focus.finders.kit.spiders import polite
from scrapy_focus.finders.structured.spider import StructuredSpider
from scrapy_focus.finders.topic.spider import TopicSpider
from scrapy_focus.lab.sites.portal.portal import Page, StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.topic.relevance import LinearRelevance
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = Path(__file__).parents[2] / "example_project"
FAST = ["-s", "DOWNLOAD_DELAY=0", "-s", "RETRY_TIMES=0"]
PDF = b"%PDF-1.4\n" + b"x" * 100


def start(folder: Path, *words: str, **more: Any) -> Forked:
    """Start ``python -m scrapy_focus`` in a folder."""
    command = [sys.executable, "-m", "scrapy_focus", *words]
    env = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    pipe = subprocess.PIPE
    return Forked(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, env=env, **more)


def run(folder: Path, *words: str, expect: int = 0) -> tuple[str, str]:
    """Run it to its end, and return its output and its log."""
    process = start(folder, *words)
    said, logged = process.communicate(timeout=HANG)
    assert process.returncode == expect, said + logged
    return said, logged


def manifest(folder: Path) -> list[dict[str, Any]]:
    """Return what a crawl listed."""
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]


@pytest.fixture
def files() -> Iterator[MockSite]:
    """A site with one file for each way of recognizing a type."""
    links = ("report", "table.csv", "grid.dem", "get?id=1", "get?id=2", "named", "page.html")
    with MockSite(pages={"/": "".join(f'<a href="/{link}">{link}</a>' for link in links)}) as site:
        octets = {"Content-Type": "application/octet-stream"}
        named = octets | {"Content-Disposition": 'attachment; filename="prices.csv"'}
        site.answers = {
            "/report": lambda _: (200, octets, PDF),
            "/table.csv": lambda _: (200, {"Content-Type": "text/csv"}, b"a,b"),
            "/grid.dem": lambda _: (200, {"Content-Type": "application/x-dem"}, b"1 2 3"),
            "/get?id=1": lambda _: (200, octets, b"some text"),
            "/get?id=2": lambda _: (200, octets, PDF + b"2"),
            "/named": lambda _: (200, named, b"c,d"),
            "/page.html": lambda _: (200, {"Content-Type": "text/html"}, b"<p>no file"),
        }
        yield site


@pytest.mark.parametrize(
    ("types", "found"),
    [
        ("pdf", {"/report", "/get?id=2"}),
        ("csv", {"/table.csv", "/named"}),
        ("dem", {"/grid.dem"}),
        (r"/get\?,DEM", {"/get?id=1", "/get?id=2", "/grid.dem"}),
        ("text/csv,dem", {"/table.csv", "/grid.dem", "/named"}),
        ("bin", {"/report", "/get?id=1", "/get?id=2", "/named"}),
        ("html", {"/", "/page.html"}),
    ],
)
def test_files_are_recognized_by_any_sign(files: MockSite, tmp_path: Path, types: str, found: set[str]) -> None:
    """By extension, known or not, MIME type, expression, name and first bytes; whatever type the server sends."""
    crawled = crawl(
        DatasetsSpider, {"SCHEDULER": "scrapy_focus.FocusScheduler"}, root=[files.url("/")], types=types,
        out=str(tmp_path), addon=True,
    )  # fmt: skip
    assert {line["url"].removeprefix(files.url("")) for line in manifest(tmp_path)} == found
    assert crawled.scheduler.crawl.status().rewards == len(found)


def test_a_url_is_enough(files: MockSite, tmp_path: Path) -> None:
    """In an empty folder: the rules are printed first, files and manifest exist, and the site saw our User-Agent."""
    said, logged = run(tmp_path, "files", files.url("/"), "--types", "pdf,csv", *FAST)
    assert {Path(line["url"]).name for line in manifest(tmp_path / "found")} == {
        "report", "table.csv", "get?id=2", "named",
    }  # fmt: skip
    first, *_ = said.splitlines()
    assert files.url("/") in first
    assert "csv, pdf" in first
    assert "Obeys robots.txt" in first
    assert polite.USER_AGENT in first
    assert files.log[0].path == "/robots.txt"
    assert {seen.headers["user-agent"] for seen in files.log} == {polite.USER_AGENT}
    assert "INFO" not in logged
    assert "Traceback" not in logged


@pytest.mark.parametrize("words", [["files"], ["important"], ["watch", "--rate", "10/day"]])
def test_a_file_of_urls_stands_for_them(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comments and empty lines are skipped; a URL next to the file counts, too."""
    (tmp_path / "seeds.txt").write_text("# sites\nhttp://one.example/\n\nhttps://two.example/data  # tables\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([*words, "seeds.txt", "three.example", "--dry-run"])
    assert not ended.value.code
    begins = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("Starts at"))
    assert begins.split(maxsplit=2)[2] == "http://one.example/, https://two.example/data, https://three.example"


def test_in_a_project_its_settings_count(files: MockSite, tmp_path: Path) -> None:
    """A User-Agent or a log level of the project stays; everything else is polite."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = mine")
    (tmp_path / "mine.py").write_text(f'USER_AGENT = "mine"\nDOWNLOAD_DELAY = 0\nADDONS = {{}}\nDEPTH_LIMIT = {1}\n')
    said, _ = run(tmp_path, "files", files.url("/"), "--types", "csv")
    assert {seen.headers["user-agent"] for seen in files.log} == {"mine"}
    assert "user agent: mine." in said
    assert files.log[0].path == "/robots.txt"


def test_a_dry_run_sends_nothing(files: MockSite, tmp_path: Path) -> None:
    """It names the first URLs, robots.txt, types, budget, delay and folder, and makes none."""
    url = files.url("/")
    said, _ = run(tmp_path, "files", url, "--types", "cvs,/get/", "--budget", "1000", "--dry-run")
    for fact in (url, files.url("/robots.txt"), "cvs", "/get/", "did you mean csv?", "1,000", "every 1 s", "found"):
        assert fact in said
    assert not files.log
    assert not list(tmp_path.iterdir())


def test_a_pipe_may_close_early() -> None:
    """``focus files URL --dry-run | head -1`` ends without a traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "scrapy_focus", "files", "https://example.org/", "--dry-run"]
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_urls_go_to_a_pipe(files: MockSite, tmp_path: Path) -> None:
    """With ``-`` standard output has only the URLs, copies once, and nothing is stored."""
    said, logged = run(tmp_path, "files", files.url("/"), "--types", "pdf,csv", "--out", "-", *FAST)
    assert sorted(said.splitlines()) == sorted(map(files.url, ("/report", "/table.csv", "/get?id=2", "/named")))
    assert "Looking for" in logged
    assert not list(tmp_path.iterdir())


class Held(StatisticsPortal):
    """Answers so many requests, and the others when a test releases it."""

    def __init__(self, answers: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.left = Semaphore(answers)
        self.goes_on = Event()

    def fetch(self, path: str) -> Page:
        if not self.goes_on.is_set() and not self.left.acquire(blocking=False):
            self.goes_on.wait(HANG)
        return super().fetch(path)


def test_nobody_has_to_read_a_pipe_to_its_end(tmp_path: Path) -> None:
    """When the reader is gone, the crawl ends quietly, as it has found something."""
    portal = Held(60, pages=300, seed=0)
    with SiteServer(portal) as server:
        process = start(tmp_path, "files", server.url, "--out", "-", *FAST)
        assert process.stdout is not None
        assert process.stdout.readline().startswith(server.url)
        process.stdout.close()
        portal.goes_on.set()
        assert process.stderr is not None
        logged = process.stderr.read()
        assert process.wait(timeout=HANG) == 0, logged
        assert server.requests < 200
    assert "Traceback" not in logged
    assert "BrokenPipe" not in logged


def test_an_interrupted_crawl_resumes_by_the_same_command(tmp_path: Path) -> None:
    """The job is in the folder, for the same URLs only; when it has ended, the same command is the next crawl."""
    portal = Held(40, pages=300, seed=0)
    with SiteServer(portal) as server:
        words = ["files", server.url, "--budget", "120", "-s", "DOWNLOAD_DELAY=0.02", "-s", "FOCUS_SEED=0"]
        process = start(tmp_path, *words)
        end = time.monotonic() + HANG
        while server.requests < 40 and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=HANG)
        portal.goes_on.set()
        assert "resumes" in run(tmp_path, *words, "--dry-run")[0]
        assert "was interrupted" in run(tmp_path, "files", "https://example.org/", "--dry-run", expect=2)[1]
        said, _ = run(tmp_path, *words)
        assert "resumes" in said.splitlines()[0]
        assert server.requests <= 121
        urls = [line["url"] for line in manifest(tmp_path / "found")]
        assert len(urls) == len(set(urls)) > 5
        said, _ = run(tmp_path, *words, "--new-only")
        assert "crawl 2 with this folder" in said.splitlines()[0]
    later = [line["url"] for line in manifest(tmp_path / "found") if line["crawl"] == 2]
    assert later
    assert not set(later) & set(urls)


def test_a_topic_has_a_page_too(tmp_path: Path) -> None:
    """``focus-topic`` leaves a page and a table in its folder, and ``focus-report`` makes them again."""
    pages = {"/": '<a href="/bees">bees</a> <a href="/steel">steel</a>', "/bees": "bees " * 50, "/steel": "steel"}
    with MockSite(pages=pages) as site:
        run(tmp_path, "topic", site.url("/"), "--keywords", "bees", *FAST)
    found = tmp_path / "pages"
    assert {"index.html", "pages.csv", "pages.jsonl"} <= {path.name for path in found.iterdir()}
    table = (found / "pages.csv").read_text()
    (found / "index.html").unlink()
    said, _ = run(tmp_path, "report", "pages")
    assert said.strip() == f"The results are in {Path('pages', 'index.html')}"
    assert "3 pages were read; 2 of them are on the topic" in (found / "index.html").read_text()
    assert (found / "pages.csv").read_text() == table
    hosts = {(row["host"], row["domain"]) for row in csv.DictReader(table.removeprefix("\ufeff").splitlines())}
    assert hosts == {(urlsplit(site.url("/")).netloc, "127.0.0.1")}, "as in the table of what was asked for"


def test_structured_data_by_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``focus-structured`` says what it will do, and resumes by the same command with a larger budget.

    It prints lines of JSON if requested; each text of a page is one line.
    """
    monkeypatch.chdir(tmp_path)

    def here(*words: str) -> str:
        """Run a command that sends nothing in this process, and return its output."""
        with pytest.raises(SystemExit):
            main([*words])
        shown = capsys.readouterr()
        return shown.out + shown.err

    names = ["Soup", "=1+1", "\x1b[31m\u202e\n<script>", "é" * 20_000]
    soups = [{"@context": "https://schema.org", "@type": "Recipe", "name": name} for name in names]
    script = json.dumps(soups).replace("<", "\\u003c")
    pages = {"/": '<a href="/soups">soups</a>', "/soups": f'<script type="application/ld+json">{script}</script>'}
    with MockSite(pages=pages) as site:
        words = ["structured", site.url("/"), "--types", "Recipe", "--scope", "host", *FAST]
        said = here(*words, "--dry-run")
        for fact in (site.url("/robots.txt"), "pages with Recipe in json-ld or microdata", "127.0.0.1", "entities"):
            assert fact in said
        assert not site.log
        assert not list(tmp_path.iterdir())
        run(tmp_path, *words, "--budget", "2", expect=3)
        _, logged = run(tmp_path, *words, "-s", "FOCUS_POLICY=scrapy_focus.policies.orderings.BreadthFirst", expect=2)
        assert "BreadthFirst; use the same settings (FOCUS_POLICY = " in logged
        assert "or another folder with --out" in logged
        assert "JOBDIR" not in logged
        said, _ = run(tmp_path, *words)
        assert "the last crawl resumes" in said.splitlines()[0]
        assert said.splitlines()[-1].startswith("Done: 1 page with Recipe found in 4 requests")
        printed, logged = run(tmp_path, *words, "--out", "-")
        assert "printing the entities that are found, as JSON" in logged
    found = tmp_path / "entities"
    assert {"index.html", "hosts.csv", "entities.jsonl"} <= {path.name for path in found.iterdir()}
    stored = (found / "entities.jsonl").read_text(encoding="utf-8")
    for text in (stored, printed):
        lines = [json.loads(line) for line in text.split("\n")[:-1]]
        assert [line["values"]["name"] for line in lines] == [*names[:3], "é" * 10_000]
        assert {(line["host"], line["domain"]) for line in lines} == {(urlsplit(site.url("/")).netloc, "127.0.0.1")}
    assert not {"\x1b", "\u202e"} & {*printed}
    (found / "hosts.csv").unlink()
    here("report", "entities")
    [row] = csv.DictReader((found / "hosts.csv").read_text(encoding="utf-8-sig").splitlines())
    assert (row["host"], row["domain"]) == (lines[0]["host"], lines[0]["domain"])
    assert row["host"] in (found / "index.html").read_text()
    shutil.rmtree(found / ".focus")
    assert "entities contains the results of another crawl" in here(*words)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("command", "given", "then", "now", "said"),
    [
        ("structured", {"types": "Recipe"}, ["--types", "schema:Recipe,"], ["--types", "Event,Recipe"],
         "began with --types Recipe, and cannot resume with --types Event,Recipe; give the same, or another folder"),
        ("structured", {"least": "4"}, ["--least", "4", "--syntaxes", "microdata,json-ld"], ["--scope", "host"],
         "began with --least 4, no --scope, and cannot resume with --least 6, --scope host; give the same"),
        ("structured", {}, [], ["--per-domain", "9"], "no --per-domain, and cannot resume with --per-domain 9;"),
        ("topic", {"keywords": "bees"}, ["--keywords", "bees"], ["--keywords", "steel"],
         "began with --keywords bees, and cannot resume with --keywords steel"),
        ("topic", {"keywords": "bees", "per_domain": "5-2", "budget": "3"},
         ["--keywords", "bees", "--per-domain", "5-2", "--budget", "3"], ["--keywords", "bees", "--per-domain", "5"],
         "began with --per-domain 5-2 with --budget 3, and cannot resume with --per-domain 5;"),
        ("topic", {"keywords": "bees", "model": "MODEL"}, ["--model", "MODEL", "--keywords", "bees"],
         ["--keywords", "bees"], "--model with the digest "),
        ("important", {"by": "opic"}, ["--by", "opic"], [], "began with --by opic, and cannot resume with --by pagerank"),
        ("files", {"types": "pdf,csv"}, ["--types", "csv,pdf"], ["--types", "pdf"],
         "began with --types csv, pdf, and cannot resume with --types pdf"),
    ],
)  # fmt: skip
def test_a_crawl_resumes_with_what_it_began_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str,
    given: dict[str, str], then: list[str], now: list[str], said: str,
) -> None:  # fmt: skip
    """A dry run says that it resumes if it does, and otherwise prints the crawl's own error message."""
    monkeypatch.chdir(tmp_path)
    LinearRelevance().fit(["wine " * 9, "bees " * 9] * 5, [False, True] * 5).save("model.npz")
    for words in (then, now):
        words[:] = ["model.npz" if word == "MODEL" else word for word in words]
    spiders = {
        "structured": StructuredSpider, "topic": TopicSpider, "important": ImportantSpider, "files": DatasetsSpider,
    }  # fmt: skip
    with MockSite(pages={"/": '<a href="/1">1</a>', "/1": "bees"}) as site:
        start = "root" if command in ("files", "important") else "seeds"
        where = "out" if start == "root" else "folder"
        arguments = {name: "model.npz" if value == "MODEL" else value for name, value in given.items()}
        arguments |= {start: site.url("/"), where: "out"} | ({} if "budget" in given else {"budget": "2"})
        settings = {"JOBDIR": "out/.focus/job"}
        if command == "files":
            prepare(Path("out"))
            settings |= {"SCHEDULER": "scrapy_focus.FocusScheduler", "CLOSESPIDER_PAGECOUNT": "1"}
        done = crawl(spiders[command], settings, addon=True, **arguments)
        assert done.errors == {}
        if command == "files":  # as if it had been interrupted
            began, *_ = (tmp_path / "out" / ".focus" / "crawls.jsonl").read_text().splitlines(keepends=True)
            (tmp_path / "out" / ".focus" / "crawls.jsonl").write_text(began)
        asked = len(site.log)
        for words, expected, status in ((then, "resumes)", 0), (now, said, 2)):
            for dry in (True, False) if status else (True,):
                with pytest.raises(SystemExit) as ended:
                    main([command, site.url("/"), *words, "--out", "out", *(["--dry-run"] if dry else [])])
                shown = capsys.readouterr()
                assert expected in (shown.err if status else shown.out), shown
                assert ended.value.code == status
                assert shown.err.count("\n") == bool(status)
        assert len(site.log) == asked


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ([], COST_LIMIT), (["--new-only"], COST_LIMIT), (["--out", "-"], COST_LIMIT),
        (["-s", "FOCUS_SEED=1"], COST_LIMIT),
        (["--cost-limit", "50"], 50), (["--cost-limit", "50", "--budget", "9"], 50),
        (["-s", "FOCUS_COST_LIMIT=70"], 70),
        (["--cost-limit", "0"], 0), (["--budget", "9"], 0), (["--rate", "9/day"], 0), (["-s", "FOCUS_COST_LIMIT=0"], 0),
        (["-s", "FOCUS_BUDGET_BYTES=9"], 0), (["-s", "FOCUS_BUDGET_SECONDS=9"], 0),
        (["-s", "CLOSESPIDER_ITEMCOUNT=9"], 0),
        (["-s", "FOCUS_STOP=scrapy_focus.Plateau"], 0),
        (["-s", "FOCUS_POLICY=scrapy_focus.policies.orderings.BreadthFirst"], 0),  # it expects nothing
        (["-s", "SCHEDULER=scrapy_focus.SleepingBanditScheduler"], 0),
        (["-s", "SCHEDULER=scrapy_focus.FreshScheduler"], 0),
        (["-s", "FOCUS_POLICY=there.is.none"], 0),
    ],
)  # fmt: skip
def test_when_a_crawl_ends_that_nobody_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], limit: int
) -> None:
    """By default when files cost too much; not with a given limit, or if the policy cannot tell."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["files", "http://127.0.0.1:1/", *words, "--dry-run"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert ("Ends " in said) == bool(limit)
    if limit:
        assert f"expected to cost more than {limit} requests and {max(200, 3 * limit)} in a row found none" in said
        assert "to follow every link: --cost-limit 0" in said


@pytest.fixture
def deep() -> Iterator[MockSite]:
    """A site with ten files at the start, and none in a thousand later pages."""
    items = "".join(f'<li><a href="/{i}.csv">{i}</a></li>' for i in range(10))
    with MockSite(pages={"/": f'<ul>{items}</ul><p><a href="/page/0/1000">tree</a></p>'}) as site:
        answer = (200, {"Content-Type": "text/csv"})
        site.answers = {f"/{i}.csv": lambda _, i=i: (*answer, b"a,%d" % i) for i in range(10)}
        yield site


@pytest.mark.slow
def test_a_crawl_that_nobody_limits_ends_in_time(deep: MockSite, tmp_path: Path) -> None:
    """It says so before and after; the same command without a limit follows the remaining links, and nothing twice."""
    words = ["files", deep.url("/"), *FAST, "-s", "FOCUS_SEED=0"]
    said, _ = run(tmp_path, *words)
    assert (
        f"The crawl ends when the next file is expected to cost more than {COST_LIMIT} requests" in said.splitlines()[0]
    )
    last = said.splitlines()[-1]
    assert last.startswith("Done: 10 files found in ")
    assert f"is expected to cost more than {COST_LIMIT} requests" in last
    assert last.endswith(
        "links were not followed: the same command with a higher --cost-limit, or 0 for none, resumes."
    )
    assert last in (tmp_path / "found/index.html").read_text()
    asked = len(deep.log)
    assert 3 * COST_LIMIT < asked < 1000
    assert "crawl 2 with" in run(tmp_path, *words, "--dry-run")[0], "as always when a crawl has ended"
    other = [*words, "--cost-limit", "0", "--dry-run"]
    assert "crawl 1 with this folder resumes" in run(tmp_path, *other)[0]
    for more in (["--types", "csv"], [deep.url("/0.csv")]):
        assert "crawl 2 with" in run(tmp_path, *other, *more)[0], "another crawl"
    assert len(deep.log) == asked
    said, _ = run(tmp_path, *words, "--cost-limit", "0")
    assert "crawl 1 with this folder resumes" in said.splitlines()[0]
    assert "The crawl ends" not in said
    assert said.splitlines()[-1].startswith("Done: 10 files found in 1,01")
    paths = [path for path in deep.paths if path != "/robots.txt"]
    assert len(paths) == len(set(paths)) == 1011
    assert {line["crawl"] for line in manifest(tmp_path / "found")} == {1}


@pytest.mark.slow
def test_a_used_up_budget_is_extended(tmp_path: Path) -> None:
    """A larger one fetches what is missing and nothing twice, and finds as much as one crawl with as many requests.

    The same one is the next crawl, and so is any with ``--again``.
    """
    with SiteServer(StatisticsPortal(pages=300, seed=0), validators=True) as server:
        words = ["files", server.url, *FAST, "-s", "FOCUS_SEED=0", "-s", "FOCUS_MAX_INFLIGHT=1"]

        def asks(*more: str) -> tuple[list[str], str]:
            server.log.clear()
            said, _ = run(tmp_path, *words, *more)
            return [request.path for request in server.log if request.path != "/robots.txt"], said.splitlines()[-1]

        first, last = asks("--budget", "60")
        assert " files found in 60 requests: the same command with a larger --budget resumes; see found." in last
        for more, state in (
            (["--budget", "61"], "crawl 1 with this folder resumes"), ([], "crawl 1 with this folder resumes"),
            (["--budget", "60"], "crawl 2 with this folder; crawl 1 resumes with a larger --budget"),
            (["--budget", "59"], "crawl 2 with this folder; crawl 1 resumes with a larger --budget"),
            (["--budget", "99", "--again"], "crawl 2 with this folder"),
            (["--budget", "99", "--types", "csv"], "crawl 2 with this folder; crawl 1 resumes with a larger --budget"),
            (["--budget", "99", "-s", "FOCUS_BUDGET_REQUESTS=60"], "crawl 2 with this folder; crawl 1 resumes with "
             "a larger --budget"),
        ):  # fmt: skip
            assert f"found ({state})\n" in run(tmp_path, *words, *more, "--dry-run")[0]
        second, last = asks("--budget", "120")
        assert " files found in 120 requests: the same command with a larger --budget resumes; see found." in last
        assert (len(first), len(second)) == (59, 59), "and robots.txt, which each process asks for"
        assert not {*first} & {*second}
        whole, _ = asks("--budget", "120", "--out", "whole")
        assert whole[:118] == first + second
        listed = {line["url"] for line in manifest(tmp_path / "found")}
        assert {line["crawl"] for line in manifest(tmp_path / "found")} == {1}
        assert listed == {line["url"] for line in manifest(tmp_path / "whole")[: len(listed)]}
        _, last = asks("--budget", "130", "--again")
        assert re.search(r"with \d+ new, 0 changed, [1-9]\d* same, 0 gone, \d+ not seen, in 130 requests: ", last)
        assert {line["crawl"] for line in manifest(tmp_path / "found")} == {1, 2}


def test_the_next_crawl_is_not_a_pipe(tmp_path: Path) -> None:
    """``--again`` needs a folder."""
    _, logged = run(tmp_path, "files", "https://example.org/", "--out", "-", "--again", "--dry-run", expect=2)
    assert "--again needs a folder" in logged


@pytest.mark.slow
def test_a_limit_is_no_reason_to_forget_known_files(deep: MockSite, tmp_path: Path) -> None:
    """The crawl after a complete one revisits them before it ends because new ones cost too much."""
    words = ["files", deep.url("/"), *FAST, "-s", "FOCUS_SEED=0", "--cost-limit"]
    run(tmp_path, *words, "0")
    asked = len(deep.log)
    said, _ = run(tmp_path, *words, "20")
    assert said.splitlines()[-1].endswith("or 0 for none, resumes.")
    assert [line["state"] for line in manifest(tmp_path / "found") if line["crawl"] == 2] == ["same"] * 10
    assert len(deep.log) < 2 * asked


def test_sitemaps_are_left_alone_if_somebody_says_so(files: MockSite, tmp_path: Path) -> None:
    """The sitemap that robots.txt names is asked for, and not with ``--no-sitemaps``."""
    robots = f"User-agent: *\nDisallow:\nSitemap: {files.url('/sitemap.xml')}".encode()
    files.answers["/robots.txt"] = lambda _: (200, {"Content-Type": "text/plain"}, robots)
    for out, option in (("with", []), ("without", ["--no-sitemaps"])):
        files.log.clear()
        run(tmp_path, "files", files.url("/"), "--types", "pdf", "--out", out, *option, *FAST)
        assert ("/sitemap.xml" in files.paths) == (out == "with")


@pytest.mark.parametrize("link", ["files", "files/host", "files/host/top", ".focus", ".focus/job", "manifest.jsonl"])
def test_a_symbolic_link_in_the_folder_is_refused(
    tmp_path: Path, link: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder from somebody else cannot make a crawl write outside of it."""
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    (out / link).parent.mkdir(parents=True)
    (out / link).symlink_to(elsewhere)
    with pytest.raises(SystemExit) as ended:
        main(["files", "http://127.0.0.1:1/", "--out", str(out)])
    assert ended.value.code == 2
    said = f"cannot write to --out {out}: {out / link} is a symbolic link, which may lead out of it; remove that, or"
    assert said in capsys.readouterr().err
    assert [*elsewhere.iterdir()] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["files"], "where to start"),
        (["files", "htp://example.org"], "did you mean https://example.org"),
        (["files", "https:/example.org/x"], "did you mean https://example.org/x"),
        (["files", "nothing"], "'nothing' is not a URL"),
        (["files", "https://example.org", "--budget", "0"], "--budget is '0'"),
        (["files", "https://example.org", "--budget"], "--budget"),
        (["files", "https://example.org", "--cost-limit", "abc"], "--cost-limit is 'abc'"),
        (["files", "https://example.org", "--types", ""], "--types is ''; give it a value, or leave it out"),
        (["files", "https://example.org", "--types", "("], "--types: '('"),
        (["files", "https://example.org", "--typos", "pdf"], "unknown option --typos"),
        (["files", "https://example.org", "--out", "file"], "--out is 'file', which is a file"),
        (["files", "https://example.org", "--out", "file/found"], "cannot write to --out file/found: "),
        (["files", "https://example.org", "--out", "/proc/x"], "cannot write to --out /proc/x: "),
        (["files", "seeds.txt"], "the file 'seeds.txt' does not exist; give a file of URLs, or a URL"),
        (["important", "seeds.csv"], "the file 'seeds.csv' does not exist"),
        (["watch", "file", "--rate", "9/day"], "file, line 1: 'nothing here' is not a URL"),
        (["topic"], "where to start"),
        (["topic", "example.org"], "--examples DIR"),
        (["topic", "example.org", "--keywords", "a", "--per-domain", "2-3"], "--per-domain is '2-3'"),
        (["topic", "file", "--keywords", "a"], "file, line 1: 'nothing here' is not a URL"),
        (["structured"], "where to start"),
        (["structured", "example.org", "--types", "Recip"], "did you mean Recipe?"),
        (
            ["structured", "example.org", "--types", ","],
            "--types is ','; it takes words separated by commas: --types Recipe",
        ),
        (["structured", "example.org", "--syntaxes", "x"], "there is no syntax 'x'"),
        (["structured", "example.org", "--least", "x"], "--least is 'x'; it takes a number of facts: --least 6"),
        (["structured", "example.org", "--types", "Event", "--least", "3"], "--least is '3', and types are given"),
        (["structured", "example.org", "--per-domain", "0"], "--per-domain is '0'"),
        (
            ["structured", "example.org", "--scope", "prefix", "--per-domain", "5"],
            "limit it by a budget instead: --budget 100",
        ),
        (["structured", "example.org", "--out", "file"], "--out is 'file', which is a file"),
    ],
)
def test_a_wrong_argument_ends_in_one_sentence(
    tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 2, one line, in the words of the command line, and nothing is made."""
    (tmp_path / "file").write_text("nothing here")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(words)
    shown = capsys.readouterr()
    assert ended.value.code == 2
    assert said in shown.err
    assert shown.err.count("\n") == 1
    assert not shown.out
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("word", "url"),
    [
        ("example.org", "https://example.org"),
        ("example.org:8080/a?b", "https://example.org:8080/a?b"),
        ("localhost:8000", "http://localhost:8000"),
        ("wiki.intranet", "https://wiki.intranet"),
        ("example.zip", "https://example.zip"),
        ("127.0.0.1/x", "http://127.0.0.1/x"),
        ("[::1]:8000/x", "http://[::1]:8000/x"),
        ("http://example.org/,a", "http://example.org/,a"),
    ],
)
def test_a_url_needs_no_scheme(word: str, url: str) -> None:
    """It is https, except for this machine, which has no certificate."""
    assert url_of(word) == url


@pytest.mark.parametrize("word", ["", "a", "ftp://example.org", "mailto:a@example.org", "http://", "https://[x"])
def test_what_is_no_url_is_refused(word: str) -> None:
    """The message quotes it."""
    with pytest.raises(UsageError, match="is not a URL"):
        url_of(word)


@pytest.mark.parametrize(
    "word", ["ftp://me:secret@h.test/", "http://me:se,cret@", "//me:secret@h.test", "me:secret@h.test"]
)
def test_what_is_refused_shows_no_password(word: str) -> None:
    """Neither the commands nor the spiders quote it, though they quote the rest."""
    said = []
    for refuses in (url_of, lambda url: DatasetsSpider(root=url), lambda url: TopicSpider(seeds=[url], keywords="a")):
        with pytest.raises(UsageError) as error:
            refuses(word)
        said.append(str(error.value))
    assert not [message for message in said if "cret" in message]
    assert all("me:***@" in message for message in said)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("http://127.0.0.1:99999/", "'http://127.0.0.1:99999/' has the port 99999; ports range from 1 to 65535"),
        ("example.org:0/a", "'example.org:0/a' has the port 0; ports range from 1 to 65535"),
        ("mailto:a@b.c", "'mailto:a@b.c' is not a URL with http:// or https://; write it as https://example.org/"),
        (
            "ftp://a.test/b.c",
            "'ftp://a.test/b.c' is not a URL with http:// or https://; write it as https://example.org/",
        ),
        ("a b.test", "'a b.test' is not a URL with http:// or https://; write it as https://example.org/"),
        ("htp://a.test/b", "'htp://a.test/b' is not a URL with http:// or https://; did you mean https://a.test/b?"),
        ("http:/a.test", "'http:/a.test' is not a URL with http:// or https://; did you mean https://a.test?"),
        ("https//a.test/", "'https//a.test/' is not a URL with http:// or https://; did you mean https://a.test/?"),
    ],
)
def test_only_a_url_is_suggested_in_place_of_what_is_none(word: str, said: str) -> None:
    """What looks like a slip of http:// is mended; a port that cannot be is named."""
    with pytest.raises(UsageError) as raised:
        url_of(word)
    assert str(raised.value) == said


@pytest.mark.parametrize("cls", [DatasetsSpider, TopicSpider])
def test_spiders_take_what_scrapyd_passes(cls: type) -> None:
    """Arguments with a leading underscore are kept for their sender; others must be known."""
    given = {"root": "https://example.org", "seeds": "https://example.org", "keywords": "a"}
    known = {name: given[name] for name in (("root",) if cls is DatasetsSpider else ("seeds", "keywords"))}
    assert cls(**known, _job="26f7", _version="1")._job == "26f7"
    with pytest.raises(UsageError, match="unknown argument job"):
        cls(**known, job="26f7")


def test_a_root_that_redirects_elsewhere_is_followed(tmp_path: Path) -> None:
    """The new host is crawled, too, which is logged once; a link that redirects elsewhere is not followed."""
    with MockSite("127.0.0.2") as other, MockSite("127.0.0.3") as third, MockSite() as first:
        other.pages["/home"] = f'<a href="/a.csv">a</a><a href="/away">b</a><a href="{third.url("/ok")}">c</a>'
        other.answers["/a.csv"] = lambda _: (200, {"Content-Type": "text/csv"}, b"a,b")
        other.answers["/away"] = lambda _: (302, {"Location": third.url("/ok")}, b"")
        first.answers["/"] = lambda _: (301, {"Location": other.url("/home")}, b"")
        settings = {"SCHEDULER": "scrapy_focus.FocusScheduler"}
        crawled = crawl(DatasetsSpider, settings, root=first.url("/"), out=str(tmp_path), addon=True)
        assert [line["url"] for line in manifest(tmp_path)] == [other.url("/a.csv")]
        assert not third.log
        assert len(crawled.logged("that host is crawled, too")) == 1
        again = crawl(DatasetsSpider, settings, root=first.url("/"), out=str(tmp_path), addon=True)
    assert "127.0.0.2" in again.spider.allowed_domains  # as a run that was killed would need it
    assert not again.logged("that host is crawled, too")


def test_the_example_project_is_as_polite_as_the_commands() -> None:
    """There is one list."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        from focused import settings
    finally:
        sys.path.remove(str(EXAMPLE))
    names = [name for name in vars(polite) if name.isupper()]
    assert names
    assert all(getattr(settings, name) == getattr(polite, name) for name in names)


@pytest.mark.parametrize(
    ("owner", "lists"),
    [
        ("files", ["manifest.jsonl"]), ("topic", ["pages.jsonl"]), ("structured", ["entities.jsonl"]),
        ("important", ["pages.jsonl", ".focus/graph.jsonl"]), ("watch", ["news.jsonl"]),
    ],
)  # fmt: skip
def test_the_folder_of_another_command_is_refused(
    owner: str, lists: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or its job would be removed, as one that has ended; the same command may use it."""
    for name in lists:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    asked = {
        "files": [], "topic": ["--keywords", "a"], "structured": ["--types", "Recipe"], "important": [],
        "watch": ["--rate", "1/day"],
    }  # fmt: skip
    for command, words in asked.items():
        with pytest.raises(SystemExit) as ended:
            main([command, "http://127.0.0.1:1/", *words, "--out", str(tmp_path), "--dry-run"])
        assert ended.value.code == (0 if command == owner else 2)
        assert (f"the folder of focus {owner}; name another" in capsys.readouterr().err) == (command != owner)
