"""The page of a crawl: at its end, while it runs, after Ctrl-C, after kills; and shown in a browser."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from crawls import BREADTH_FIRST, crawl
from forked import Forked
from mocksite import MockSite

from scrapy_focus.commands.report import ReportCommand
from scrapy_focus.core.printable import counted
from scrapy_focus.finders.files.found_files import read_list
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.kit.records.notes import NOTES, NoteBook, read_notes
from scrapy_focus.finders.outputs import report_of, write_report
from scrapy_focus.finders.topic.spider import TopicSpider
from scrapy_focus.lab.sites.portal.portal import TARGET_MIMES, StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer
from tests.made import HANG
from tests.pages import Reader

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from scrapy_focus.lab.sites.portal.portal import Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ROOT = Path(__file__).parents[2]
#: Runs the spider of this package, and ends it like a kill when so many outcomes are in the journal of its job.
RUN = """
import os, signal, sys
from scrapy.crawler import AsyncCrawlerProcess
from scrapy_focus.core.events import Concluded
from scrapy_focus.jobs.job import Job
from scrapy_focus.finders.files.spider import DatasetsSpider

root, out, job, until = *sys.argv[1:4], int(sys.argv[4])
tell, told = Job.tell, [0]

def tell_and_die(self, event):
    tell(self, event)
    told[0] += isinstance(event, Concluded)
    if until and told[0] == until:
        os.kill(os.getpid(), signal.SIGKILL)

Job.tell = tell_and_die
process = AsyncCrawlerProcess({
    "ADDONS": {"scrapy_focus.Addon": 500}, "JOBDIR": job, "FOCUS_SEED": 1, "FOCUS_MAX_INFLIGHT": 1, "ROBOTSTXT_OBEY": True,
    "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "TWISTED_REACTOR_ENABLED": False,
    "FOCUS_PROGRESS": "off", "DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "DEPTH_LIMIT": 2,
})
process.crawl(DatasetsSpider, root=root, out=out)
process.start()
"""


class HeldPortal:
    """A portal that serves ten files, and then answers nothing until it is released."""

    def __init__(self) -> None:
        self.portal = StatisticsPortal(pages=200, seed=0, endless=False)
        self.files = 0
        self.let_go = threading.Event()

    def fetch(self, path: str) -> Page:
        """Answer as the portal does."""
        if self.files >= 10:
            self.let_go.wait(HANG)
        page = self.portal.fetch(path)
        self.files += page.status == 200 and page.mime in TARGET_MIMES
        return page


@pytest.fixture(scope="module")
def server() -> Iterator[SiteServer]:
    with SiteServer(StatisticsPortal(pages=200, seed=0, endless=False), latency=0.0) as running:
        yield running


def start(server: SiteServer, folder: Path, until: int = 0) -> Forked:
    """Start the spider in a separate process, to be killed after so many outcomes of this run."""
    words = [sys.executable, "-c", RUN, server.url, str(folder / "out"), str(folder / "job"), str(until)]
    with (folder / "log").open("ab") as log:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        return Forked(words, env=env, stdout=log, stderr=log)


def run(server: SiteServer, folder: Path, until: int = 0) -> int:
    folder.mkdir(exist_ok=True)
    return start(server, folder, until).wait(HANG)


def timeless(path: Path) -> str:
    """Return a page or table without the times in it, how often it was started, and what it asked for again."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00|\d+ \w+ \d{4}, \d\d:\d\d UTC", "then", path.read_text())
    text = re.sub(r"<li>It sent [\d,]+ requests in total, including .*?\.</li>\n?", "", text)
    text = re.sub(r"found in \d+ requests", "found", text)
    return re.sub(r"<dt>(Runs|Total requests)</dt>\s*<dd>.*?</dd>", r"<dt>\1</dt>", text)


def test_each_crawl_ends_with_a_page(server: SiteServer, tmp_path: Path) -> None:
    """It has all stored files, the reason for the end and the obeyed rules, and is named in the log."""
    out = tmp_path / "out"
    done = crawl(
        DatasetsSpider, {"ROBOTSTXT_OBEY": True, "FOCUS_SEED": 1}, addon=True, root=server.url, out=str(out), budget="150"
    )  # fmt: skip
    assert done.errors == {}
    reader = Reader((out / "index.html").read_text())
    files = [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]
    assert len(files) > 20
    assert f"What was found on {server.url[7:-1]} {len(files)} files" in reader.text
    assert "The budget of requests is used up, with" in reader.text
    assert "robots.txt obeyed" in reader.text
    assert "Links to 1 other host were not followed: social.example.org." in reader.text
    assert done.logged("The results are listed in")
    with (out / "files.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["url"] for row in rows] == [line["url"] for line in files]
    assert all((out / row["path"]).is_file() for row in rows)
    for link in reader.all("a"):
        if not (link["href"] or "").startswith("http"):
            assert (out / str(link["href"]).replace("%20", " ")).is_file()


@pytest.mark.slow
def test_the_notes_are_what_the_crawl_counted(server: SiteServer, tmp_path: Path) -> None:
    """One line for each outcome, with the files and requests of the stats, and the kind of each link."""
    out = tmp_path / "out"
    done = crawl(DatasetsSpider, {"ROBOTSTXT_OBEY": True, "FOCUS_SEED": 1}, addon=True, root=server.url, out=str(out))
    notes = read_notes(out)
    assert len(notes.answers) == done.stats["focus/outcomes"]
    assert sum(answer.files for answer in notes.answers) == done.stats["focus/reward"]
    assert sum(answer.sent for answer in notes.answers) == done.stats["focus/requests"] - 1  # robots.txt
    assert {answer.url: (answer.page, answer.anchor) for answer in notes.answers if answer.files} == {
        answer.url: (item.page, item.anchor)
        for item in done.items
        for answer in notes.answers
        if answer.files and answer.page == item.page and answer.anchor == item.anchor and answer.size == item.size
    }
    assert sum(answer.status == 404 for answer in notes.answers) == done.stats["downloader/response_status_count/404"]
    assert [answer.why for answer in notes.answers if answer.why] == ["robots.txt forbids it"] * 4
    assert notes.state["reason"] == "finished"
    assert notes.state["waiting"] == 0


@pytest.mark.slow
def test_killed_and_resumed_it_is_the_same_page(server: SiteServer, tmp_path: Path) -> None:
    """A crawl that was killed has the page and the table of one that was not, but for times and runs."""
    assert run(server, tmp_path / "whole") == 0
    folder = tmp_path / "killed"
    for until in (40,):
        assert run(server, folder, until) == -signal.SIGKILL
        assert "It is running, or was killed" in write_report(folder / "out").read_text()
    assert run(server, folder) == 0
    assert len(list((folder / "out" / NOTES).iterdir())) == 2
    assert "<dd>2, the first from" in (folder / "out/index.html").read_text()
    for name in ("index.html", "files.csv"):
        whole, killed = (timeless(tmp_path / each / "out" / name) for each in ("whole", "killed"))
        assert killed.replace(str(folder), "") == whole.replace(str(tmp_path / "whole"), "")


def test_interrupted_it_has_a_page(tmp_path: Path) -> None:
    """While it runs, the command writes a page of what exists; after Ctrl-C there is one that says so."""
    portal = HeldPortal()
    with SiteServer(portal) as slow:
        process = start(slow, tmp_path)
        out = tmp_path / "out"
        wait_for(process, lambda: (out / "manifest.jsonl").exists() and len(read_list(out)) > 3)
        page = write_report(out)
        assert "It is running, or was killed" in page.read_text()
        assert len(read_list(out)) > 3
        page.unlink()
        process.send_signal(signal.SIGINT)
        portal.let_go.set()
        process.wait(HANG)
    assert re.search("Interrupted, with .*; the same command resumes", page.read_text())


def wait_for(process: subprocess.Popen[bytes], what: Callable[[], bool]) -> None:
    while process.poll() is None and not what():
        time.sleep(0.01)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("there", "said"),
    [(".focus/log", "The notes of this crawl end here"), ("index.html/x", "The page of the results cannot be written")],
    ids=["notes", "page"],
)  # fmt: skip
def test_what_cannot_be_written_harms_no_crawl(server: SiteServer, tmp_path: Path, there: str, said: str) -> None:
    """With a file in place of the notes, or a folder in place of the page, files are found; one message reports it."""
    out = tmp_path / "out"
    (out / there).parent.mkdir(parents=True)
    (out / there).write_bytes(b"")
    done = crawl(DatasetsSpider, {"FOCUS_SEED": 1}, addon=True, root=server.url, out=str(out), budget="60")
    assert len(done.items) > 3
    assert done.errors == {}
    assert len(done.logged(said)) == 1
    assert not done.logged("Traceback")


def test_all_pages_with_a_broken_link_are_noted(tmp_path: Path) -> None:
    """Those that were read before the link was followed, after it, and those that were moved."""
    menu = '<a href="/gone">Imprint</a> <a href="/">home</a>'
    pages = {f"/p{n}": f"{menu} <p>{n}</p>" for n in range(16)}
    first, last = ("".join(f'<a href="/p{n}">{n}</a>' for n in half) for half in (range(8), range(8, 16)))
    with MockSite(pages={"/": first + menu + last, **pages}) as site:
        site.answers["/gone"] = lambda _: (404, {"Content-Type": "text/html"}, b"")
        site.answers["/p3"] = lambda _: (302, {"Location": site.url("/p3/moved")}, b"")
        site.pages["/p3/moved"] = menu
        in_order = {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_MAX_INFLIGHT": 1}
        crawl(DatasetsSpider, in_order, addon=True, root=site.url("/"), out=str(tmp_path))
        (broken,) = report_of(tmp_path).broken
        asked = [seen.path for seen in site.log]
        assert 1 < asked.index("/gone") < len(asked) - 1, asked
        there = [site.url(path) for path in asked if path not in ("/robots.txt", "/gone", "/p3", "/favicon.ico")]
    assert (broken.url, broken.why, broken.anchor) == (site.url("/gone"), "404", "Imprint")
    assert (sorted(broken.pages), broken.more) == (sorted(there), 0)
    assert site.url("/p3/moved") in there
    assert len(there) == 17


def test_roots_that_could_not_be_read_are_on_the_page(server: SiteServer, tmp_path: Path) -> None:
    """The ending names them, and so does the page: after a kill, too, when the run that ended did not ask for them."""
    roots = f"{server.url},http://127.0.0.1:9/"
    done = crawl(DatasetsSpider, {"FOCUS_SEED": 1}, addon=True, root=roots, out=str(tmp_path), budget="40")
    assert "Could not read http://127.0.0.1:9/: the connection was refused." in done.stats["focus/ending_sentence"]
    assert Reader((tmp_path / "index.html").read_text()).text.count("Could not read http://127.0.0.1:9/: the conn") == 1
    NoteBook(tmp_path, resumes=True).close()
    said = "The start URL http://127.0.0.1:9/ could not be read: the connection was refused."
    assert said in Reader(write_report(tmp_path).read_text()).text


def test_a_search_for_a_topic_has_a_page(tmp_path: Path) -> None:
    """With a folder, all pages read are in a table, those on the topic on a page; a resumed job is one crawl."""
    pages = {"/": "".join(f'<a href="/p{n}">{"honey" if n % 3 else "steel"} {n}</a>' for n in range(20))}
    pages |= {f"/p{n}": "honey bees " * 40 if n % 3 else "steel" for n in range(20)}
    pages["/p1"] += '<a href="/gone">honey</a>'
    job, seen = str(tmp_path / "job"), []
    with MockSite(pages=pages) as site:
        site.answers["/gone"] = lambda _: (404, {"Content-Type": "text/html"}, b"")
        for budget in (9, 100):
            settings = {"JOBDIR": job, "FOCUS_SEED": 1, "FOCUS_BUDGET_REQUESTS": budget, "FOCUS_MAX_INFLIGHT": 1}
            done = crawl(
                TopicSpider, settings, addon=True, seeds=site.url("/"), keywords="honey,bees", folder=str(tmp_path / "found")
            )  # fmt: skip
            assert done.errors == {}
            seen.append(report_of(tmp_path / "found"))
    first, second = seen
    assert len(first.notes.answers) < len(second.notes.answers) == 22
    assert (second.notes.crawl, len(second.notes.runs)) == (1, 2)
    lines = [json.loads(line) for line in (tmp_path / "found" / "pages.jsonl").read_text().splitlines()]
    assert [page.url for page in second.output.pages] == [line["url"] for line in lines]
    on = {page.url for page in second.files}
    assert on == {line["url"] for line in lines if line["relevance"] >= 0.5}
    assert on == {site.url(f"/p{n}") for n in range(20) if n % 3}
    assert sum(answer.files for answer in second.notes.answers) == len(on)
    (broken,) = second.broken
    assert (broken.url, broken.pages) == (site.url("/gone"), [site.url("/p1")])
    text = Reader((tmp_path / "found" / "index.html").read_text()).text
    assert str(tmp_path) not in text
    assert "; see pages.jsonl." in text
    assert f"21 pages were read; {len(on)} of them are on the topic, on 1 host." in text
    assert "Looked for pages with the words honey, bees" in text
    with (tmp_path / "found" / "pages.csv").open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.DictReader(file))) == 21


def test_with_scrapys_own_scheduler_there_is_a_list(server: SiteServer, tmp_path: Path) -> None:
    """Without a scheduler that reports outcomes, the page has the files."""
    out = tmp_path / "out"
    settings = {"SCHEDULER": "scrapy.core.scheduler.Scheduler", "CLOSESPIDER_ITEMCOUNT": 5}
    crawl(DatasetsSpider, settings, root=server.url, out=str(out))
    assert read_list(out)
    assert counted(len(read_list(out)), "file") in Reader((out / "index.html").read_text()).text


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the page that it wrote; a folder without a crawl, or a damaged one, is one line, with status 2."""
    command = ReportCommand()
    folders: dict[str, bytes | None] = {"empty": None, "foreign": b"some notes\n", "damaged": b'{"url": "x"}\n{"url\n'}
    for name, content in folders.items():
        (tmp_path / name).mkdir()
        if content is not None:
            file = "readme.txt" if name == "foreign" else "manifest.jsonl"
            (tmp_path / name / file).write_bytes(content)
        assert command.work([str(tmp_path / name)], None) == 2  # type: ignore[arg-type]
        said = capsys.readouterr()
        assert said.out == ""
        assert re.fullmatch(r"Error: [^\n]+\n", said.err)
    assert command.work([str(tmp_path / "not there")], None) == 2  # type: ignore[arg-type]
    assert "is not a folder; name the folder with the results of a crawl" in capsys.readouterr().err
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "manifest.jsonl").write_text('{"url": "https://x/a.csv"}\n')
    assert command.work([str(tmp_path / "good")], None) == 0  # type: ignore[arg-type]
    assert capsys.readouterr().out == f"The results are in {tmp_path / 'good' / 'index.html'}\n"
