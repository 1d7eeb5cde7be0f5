"""``focus record``: what it records of a site, how it resumes, and its error messages."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BASE, STOCK, crawl
from forked import Forked
from mocksite import MockSite, Seen, tree_paths
from oddsite import EXPECTED, HUGE, LARGE, LEADS, PLAIN, OddSite
from scrapy.cmdline import execute
from scrapy.http import HtmlResponse

from scrapy_focus.core.errors import RecordingError
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.html import read_page
from scrapy_focus.lab.recordings.writer import SiteWriter
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.spiders.recorder import RecordSpider
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy_focus.lab.recordings.writer import Answer

EXAMPLE = Path(__file__).parents[2] / "example_project"
QUICK = [
    "-s",
    "DOWNLOAD_DELAY=0",
    "-s",
    "CONCURRENT_REQUESTS_PER_DOMAIN=4",
    "-s",
    "RETRY_TIMES=1",
    "-s",
    "REMOTE_CONTROL_ENABLED=0",
]


def start(folder: Path, *words: str) -> Forked:
    """Start the command in a folder."""
    command = [sys.executable, "-m", "scrapy", "focus-record", *QUICK, *words]
    pipe = subprocess.PIPE
    return Forked(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, env=environment())


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}


def run(folder: Path, *words: str, expect: int = 0) -> tuple[str, str]:
    """Run the command in a folder to its end, and return its output and its log."""
    process = start(folder, *words)
    said, logged = process.communicate(timeout=HANG)
    assert process.returncode == expect, said + logged
    return said, logged


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def recorded_pages(path: Path) -> int:
    """Return how many pages of a recording are in its file for good."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return int(database.execute("SELECT count(*) FROM pages WHERE status IS NOT NULL").fetchone()[0])
    except sqlite3.OperationalError:  # it does not exist yet, or is being written
        return 0


def contents(path: Path) -> dict[str, Any]:
    """Return the record of each URL, whatever the order in which they were found."""
    site = RecordedSite(path)
    try:
        return {
            url: (
                int(site.status[page]), site.errors.get(page), site.mimes[page], int(site.size[page]),
                int(site.redirect[page]) >= 0 and site.urls[site.redirect[page]], int(site.depth[page]),
                int(site.digest[page]), [(site.urls[site.targets[link]], site.tag_path(link)) for link in links],
            )
            for page, url in enumerate(site.urls)
            for links in [range(site.n_urls and site.links(page).start, site.links(page).stop)]
        }  # fmt: skip
    finally:
        site.close()


class Recorded:
    """A recording of the odd site, made by the command outside of any project."""

    def __init__(self, folder: Path) -> None:
        with OddSite() as server:
            begun = time.monotonic()
            self.said, self.logged = run(folder, "odd.sqlite", "-a", f"root={server.url('/')}", "--bodies")
            self.took = time.monotonic() - begun
            self.asked = Counter(server.paths)
            self.headers = server.log[-1].headers
            self.root = server.url("")
        self.path = folder / "odd.sqlite"
        self.site = RecordedSite(self.path)

    def page(self, path: str) -> int:
        """Return the number of a URL."""
        return self.site.ids[self.root + path]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    recorded = Recorded(tmp_path_factory.mktemp("odd"))
    yield recorded
    recorded.site.close()


def test_everything_linked_is_recorded(odd: Recorded) -> None:
    """Each URL that is linked, framed or a redirect target has its own response, and nothing else is recorded."""
    site = odd.site
    found = {
        url.removeprefix(odd.root): int(site.status[page]) or site.errors.get(page)
        for page, url in enumerate(site.urls)
    }
    assert found == EXPECTED
    done = site.completeness()
    assert (done.recorded, done.missing, done.failed, done.finished) == (len(EXPECTED), 0, 4, True)
    assert site.roots == [odd.page("/")]


def test_each_url_is_asked_for_once(odd: Recorded) -> None:
    """Failures are tried again as set, what robots.txt forbids is not asked for, and all else once."""
    again = {"/status?code=500", "/reset", "/truncated"}
    expected = {path: 2 if path in again else 1 for path, answer in EXPECTED.items() if answer != "ignored"}
    expected["/reset"] = max(
        2, min(odd.asked["/reset"], 4)
    )  # Twisted tries once more where a connection was used before
    checks = odd.asked - Counter(expected)  # after a failure: does the site exist at all
    assert odd.asked == Counter(expected) + checks
    assert checks.total() <= 2


def test_redirects_are_recorded_themselves(odd: Recorded) -> None:
    """A redirect or a refresh is an answer with a target; one that leads off the site or nowhere has none."""
    site = odd.site
    leads = {
        site.urls[page].removeprefix(odd.root): site.urls[target].removeprefix(odd.root)
        for page, target in enumerate(site.redirect)
        if target >= 0
    }
    assert leads == LEADS
    assert site.headers(odd.page("/redirect/new"))["Location"] == "/target"


def test_sizes_are_what_came_over_the_wire(odd: Recorded) -> None:
    """A compressed page counts compressed, and its text, links and digest are those of the page."""
    site, zipped, plain = odd.site, odd.page("/gzip"), odd.page("/plain")
    assert site.size[zipped] < 200 < len(PLAIN) == site.size[plain]
    assert site.text(zipped) == site.text(plain) == PLAIN
    assert site.digest[zipped] == site.digest[plain] != 0
    assert site.links(zipped).stop - site.links(zipped).start == 1


def test_large_media_are_not_downloaded(odd: Recorded) -> None:
    """For images and videos, and for too large files, the announced size is enough; small ones are read."""
    site = odd.site
    sizes = {path: int(site.size[odd.page(path)]) for path in ("/picture", "/film", "/archive.zip", "/thumbnail")}
    assert sizes == {"/picture": LARGE, "/film": LARGE, "/archive.zip": HUGE, "/thumbnail": 3000}
    stopped = {int(site.digest[odd.page(path)]) for path in ("/picture", "/film", "/archive.zip")}
    assert stopped == {0}, "bodies that nobody saw are not the same"


def test_answers_carry_their_headers_and_time(odd: Recorded) -> None:
    """All headers are recorded, and how long the response took."""
    page = odd.page("/twice")
    assert odd.site.headers(page)["Set-Cookie"] == "a=1"
    assert odd.site.headers(page)["Content-Type"] == "text/html; charset=utf-8"
    assert 0 < odd.site.seconds[page] < odd.took
    assert "cookie" not in odd.headers, "answers depend on no cookie"


def test_the_command_says_what_it_does(odd: Recorded) -> None:
    """It says what it records and into which file, how complete it is, and the next steps."""
    assert f"Recording {odd.root}/ into odd.sqlite" in odd.said
    assert f"{len(EXPECTED)} URLs are recorded (4 without an answer), 0 linked ones are not (100.0%)" in odd.said
    assert "Next: focus compare odd.sqlite" in odd.said
    assert "Traceback" not in odd.logged


def test_a_finished_recording_is_left_alone(odd: Recorded) -> None:
    """The same command on a finished recording asks for nothing: here, the server is gone."""
    before = contents(odd.path)
    said, logged = run(odd.path.parent, "odd.sqlite")
    assert said.startswith(f"odd.sqlite: {len(EXPECTED)} URLs are recorded")
    assert "Spider opened" not in logged
    assert contents(odd.path) == before


def test_info_says_what_a_recording_holds(odd: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    """``--info`` lists roots, completeness, kinds and types."""
    assert call(str(odd.path), "--info") == 0
    said = capsys.readouterr().out
    assert f"starts at  {odd.root}/" in said
    assert "made from  the live site, 2" in said
    assert "1 not to be asked for, 3 without response" in said
    assert f"{sum(answer in (301, 302, 303, 307, 308) for answer in EXPECTED.values())} redirects" in said
    assert "video/mp4" in said


def test_verify_says_whether_a_recording_is_what_was_written(
    odd: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With status 1 if it is not; also together with its content."""
    assert call(str(odd.path), "--verify") == 0
    assert capsys.readouterr().out == f"{odd.path}: all is as it was written\n"
    changed = tmp_path / "changed.sqlite"
    shutil.copy(odd.path, changed)
    with closing(sqlite3.connect(changed, isolation_level=None)) as database:
        database.execute("UPDATE pages SET size = size + 1 WHERE id = 1")
    assert call(str(changed), "--info", "--verify") == 1
    said = capsys.readouterr()
    assert "checksums  there" in said.out
    assert "changed.sqlite is not what was written: its pages changed; take another copy" in said.err


@pytest.mark.slow
def test_a_kill_loses_nothing(tmp_path: Path) -> None:
    """A recording that is killed twice and then finished is the same as one that never was."""
    n = 250
    path = tmp_path / "killed.sqlite"
    with MockSite(latency=0.1) as site:  # no faster than 40 a second, so that more than two pass
        site.hold(150)
        root = f"root={site.url(f'/page/0/{n}')}"
        for pages in (0, 10):  # before and after the first time that anything is written
            process, asked = start(tmp_path, path.name, "-a", root), len(site.paths)
            wait_for(partial(lambda asked: len(site.paths) > asked, asked))
            wait_for(partial(lambda pages: recorded_pages(path) >= pages, pages))
            process.kill()
            process.communicate()
        site.go_on()
        said, _ = run(tmp_path, "killed.sqlite", "-a", root)
        assert "Resuming killed.sqlite: " in said
        assert not re.search(r"killed.sqlite: \d URLs", said), "what was written before the kill is there"
        assert f"{n} URLs are recorded, 0 linked ones are not" in said
        assert set(site.paths) == set(tree_paths(n))
        site.latency = 0
        with SiteWriter(tmp_path / "whole.sqlite", roots=[site.url(f"/page/0/{n}")]) as writer:
            crawl_with(writer)
            writer.finish()
    assert contents(tmp_path / "killed.sqlite") == contents(tmp_path / "whole.sqlite")


def test_an_interrupt_is_no_error_and_can_be_gone_on_from(tmp_path: Path) -> None:
    """Ctrl-C ends it with what was recorded so far; another run within a limit requests new URLs only."""
    with MockSite(latency=0.05) as site:
        site.hold(40)
        root = f"root={site.url('/page/0/400')}"
        process = start(tmp_path, "site.sqlite", "-a", root)
        wait_for(lambda: len(site.paths) > 10)
        process.send_signal(signal.SIGINT)
        site.go_on()
        said, logged = process.communicate(timeout=HANG)
        assert process.returncode == 130
        assert "Stopped (shutdown); the same command resumes there." in said
        assert "Send again to force" in logged
        assert "Overridden settings" not in logged
        asked = len(site.paths)
        site.latency = 0
        said, _ = run(tmp_path, "site.sqlite", "--limit", "20")
        assert "Stopped after 20 URLs" in said
        assert len(site.paths) == len(set(site.paths)) == asked + 20
    recorded = RecordedSite(tmp_path / "site.sqlite")
    assert recorded.completeness().recorded == asked + 20
    recorded.close()


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/redirect?to=http://localhost:1/", "answered 302 and leads to http://localhost:1/."),
        ("/status?code=403", "answered 403."),
        ("/forbidden", "was not requested: robots.txt forbids it, or could not be read."),
        ("/badgzip", "gave no response (failure: BadGzipFile)."),
    ],
)
def test_a_root_that_leads_nowhere_is_explained(site: MockSite, tmp_path: Path, path: str, reason: str) -> None:
    """If nothing but the root can be recorded, the command gives the reason."""
    said, _ = run(tmp_path, "site.sqlite", "-a", f"root={site.url(path)}")
    assert f"There is no link to follow: {site.url(path)} {reason} Start at another URL" in said


class Unsteady(MockSite):
    """Gives no response after so many requests."""

    answers_until = 0.0

    def begin(self, seen: Seen) -> None:
        super().begin(seen)
        if len(self.log) > self.answers_until:
            self.end()
            raise ConnectionAbortedError


def test_a_site_that_goes_down_is_not_recorded_as_gone(tmp_path: Path) -> None:
    """Failures while nothing responds are requested again by the same command, including the root."""
    with Unsteady(latency=0.02) as site:
        root = f"root={site.url('/page/0/100')}"
        said, _ = run(tmp_path, "site.sqlite", "-a", root, expect=1)
        assert "site.sqlite: 0 URLs are recorded, 1 linked one is not (0.0%)" in said
        assert "Stopped (no response: DownloadFailedError); the same command resumes there." in said
        site.answers_until = len(site.log) + 40
        said, _ = run(tmp_path, "site.sqlite", "-a", root, expect=1)
        assert re.search(r"site.sqlite: \d\d URLs are recorded, \d+ linked ones are not", said), "and none is a failure"
        site.answers_until = inf
        said, _ = run(tmp_path, "site.sqlite")
        assert "site.sqlite: 100 URLs are recorded, 0 linked ones are not (100.0%)" in said


def test_many_dead_hosts_are_recorded(tmp_path: Path) -> None:
    """If the site responds and its links do not, the failures are recorded, however many in a row."""
    dead = "".join(f"<a href='http://sub.localhost:1/{n}'>{n}</a> " for n in range(50))
    with MockSite(host="localhost", pages={"/": f"{dead}<a href=/reset>r</a>"}) as site:
        said, _ = run(tmp_path, "site.sqlite", "-a", f"root={site.url('/')}", "-s", "RETRY_ENABLED=0")
    assert "site.sqlite: 52 URLs are recorded (51 without an answer), 0 linked ones are not (100.0%)" in said
    assert site.paths.count("/") <= 6, "it is asked for again once for sixteen failures"


def test_a_second_interrupt_waits_for_nobody(tmp_path: Path) -> None:
    """If a response never comes, Ctrl-C twice ends at once, and everything recorded before is safe."""
    with MockSite(pages={"/": "<a href=/hang>x</a>"}) as site:
        process = start(tmp_path, "site.sqlite", "-a", f"root={site.url('/')}")
        wait_for(lambda: "/hang" in site.paths)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while "Send again to force" not in (line := process.stderr.readline()):
            assert line
        process.send_signal(signal.SIGINT)
        said, logged = process.communicate(timeout=HANG)
    assert process.returncode == 130, said + logged
    assert "site.sqlite: 1 URL is recorded, 1 linked one is not (50.0%)" in said
    assert "Stopped (killed)" in said


@pytest.mark.slow
def test_a_terminal_shows_how_it_stands(tmp_path: Path) -> None:
    """On a terminal the last line is updated, and log lines are above it."""
    outer, inner = pty.openpty()
    with MockSite(latency=0.05) as site:
        command = [
            sys.executable,
            "-m",
            "scrapy",
            "focus-record",
            "site.sqlite",
            "-a",
            f"root={site.url('/page/0/60')}",
        ]
        process = subprocess.Popen([*command, *QUICK], cwd=tmp_path, stdout=inner, stderr=inner, env=environment())
        os.close(inner)
        shown = b""
        while chunk := _read(outer):
            shown += chunk
        os.close(outer)
        assert process.wait(timeout=HANG) == 0
    assert re.search(rb"\d+ URLs? recorded, 0.0 MB, \d+ more (is|are) linked", shown)
    assert b"site.sqlite: 60 URLs are recorded, 0 linked ones are not" in shown
    assert shown.rfind(b"\x1b[?25l") < shown.rfind(b"\x1b[?25h"), "the cursor is back"


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other end is closed
        return b""


def test_projects_only_say_how_to_ask(tmp_path: Path) -> None:
    """User agent and headers of a project are used; its scheduler, add-ons, pipelines and spiders are not even loaded."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = ours.settings\n")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "__init__.py").touch()
    (tmp_path / "ours" / "settings.py").write_text(
        'USER_AGENT = "ours"\nROBOTSTXT_OBEY = True\nDEPTH_LIMIT = 1\nJOBDIR = "job"\nFEEDS = {"items.csv": {}}\n'
        'ADDONS = {"ours.no.Addon": 1}\nSPIDER_MODULES = ["ours.no"]\nITEM_PIPELINES = {"ours.no.Pipeline": 1}\n'
        'SCHEDULER = DUPEFILTER_CLASS = "ours.no.Class"\nEXTENSIONS = {"ours.no.Extension": 1}\n'
        'SPIDER_MIDDLEWARES = {"ours.no.Middleware": 1}\n'
    )
    with MockSite() as site:
        said, _ = run(tmp_path, "site.sqlite", "-a", f"root={site.url('/page/0/15')}")
        assert {seen.headers["user-agent"] for seen in site.log} == {"ours"}
    assert "15 URLs are recorded, 0 linked ones are not" in said
    assert not (tmp_path / "job").exists()
    assert not (tmp_path / "items.csv").exists()


def test_it_works_in_the_example_project(tmp_path: Path) -> None:
    """The add-on of the example project, which is our own, has no part in a recording."""
    words = ["-L", "INFO", "-s", "CONCURRENT_REQUESTS=1"]
    with MockSite() as site:
        said, logged = run(EXAMPLE, str(tmp_path / "site.sqlite"), "-a", f"root={site.url('/page/0/30')}", *words)
        assert site.paths == tree_paths(30), "breadth-first"
    assert "30 URLs are recorded, 0 linked ones are not" in said
    assert "Enabled addons:\n[]" in logged
    assert "scrapy_focus.scheduler" not in logged


def test_files_need_not_be_downloaded(tmp_path: Path) -> None:
    """With ``--no-files`` large bodies of anything but pages stay where they are."""
    links = "".join(f"<a href='/file?type={kind}&size=300000'>x</a>" for kind in ("text/csv", "text/html"))
    with MockSite(pages={"/": links}) as site:
        run(tmp_path, "site.sqlite", "-a", f"root={site.url('/')}", "--no-files", "--bodies")
    recorded = RecordedSite(tmp_path / "site.sqlite")
    csv, html = (recorded.ids[site.url(f"/file?type={kind}&size=300000")] for kind in ("text/csv", "text/html"))
    assert recorded.size[csv] == recorded.size[html] == 300_000
    assert recorded.digest[csv] == 0 != recorded.digest[html]
    recorded.close()


class Failing(SiteWriter):
    """Finds the disk full at its third answer."""

    def add(self, answer: Answer) -> None:
        if self.added == 2:
            raise RecordingError("the disk is full")
        super().add(answer)


def crawl_with(writer: SiteWriter, **settings: Any) -> Any:
    """Record in this process."""
    return crawl(RecordSpider, {**BASE, "SCHEDULER": STOCK, **settings}, writer=writer)


def test_a_full_disk_stops_the_recording(site: MockSite, tmp_path: Path) -> None:
    """What cannot be written down is not asked for."""
    with Failing(tmp_path / "site.sqlite", roots=[site.url("/page/0/100")]) as writer:
        done = crawl_with(writer, CONCURRENT_REQUESTS=1)
        assert done.reason == "recording_error"
        assert str(done.spider.error) == "the disk is full"
        assert writer.completeness().recorded == 2
    assert len(site.paths) < 10


def test_a_page_that_cannot_be_read_is_recorded_without_links(tmp_path: Path) -> None:
    """That is logged, loses only the links of this page, and the crawl continues."""
    pages = {"/": "<a href='/odd'>1</a> <a href='/last'>2</a>", "/odd": "<base href='http://[x'><a href='/lost'>3</a>"}
    with MockSite(pages={**pages, "/last": "<p>here"}) as site:
        with SiteWriter(tmp_path / "site.sqlite", roots=[site.url("/")]) as writer:
            done = crawl_with(writer)
            assert done.logged(f"The links of {site.url('/odd')}")
            assert not writer.completeness().missing
            assert writer.has(site.url("/odd"))
            assert writer.has(site.url("/last"))
        assert sorted(site.paths) == ["/", "/last", "/odd"]


def test_a_failure_that_comes_last_is_recorded(tmp_path: Path) -> None:
    """The check whether the site is still up works even if Scrapy filters repeated requests."""
    with MockSite(pages={"/": "<a href='/reset'>x</a>"}) as site:
        with SiteWriter(tmp_path / "site.sqlite", roots=[site.url("/")]) as writer:
            crawl_with(writer, DUPEFILTER_CLASS="scrapy.dupefilters.RFPDupeFilter", RETRY_ENABLED=False)
            assert not writer.completeness().missing
        assert [path for path in site.paths if path != "/reset"] == ["/", "/"]


def test_urls_that_scrapy_would_drop_are_not_asked_for(tmp_path: Path) -> None:
    """A URL beyond ``URLLENGTH_LIMIT``, or an invalid one, is recorded with the reason."""
    long = "/ok?" + "x" * 100
    with MockSite(pages={"/": f"<a href='{long}'>x</a>"}) as site:
        with SiteWriter(tmp_path / "site.sqlite", roots=[site.url("/")]) as writer:
            crawl_with(writer, URLLENGTH_LIMIT=100)
        assert site.paths == ["/"]
    recorded = RecordedSite(tmp_path / "site.sqlite")
    assert recorded.errors == {recorded.ids[site.url(long)]: "ignored"}
    recorded.close()


def test_what_was_stopped_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    """A body that was not downloaded is not kept by Scrapy's HTTP cache, where it would be an empty one."""
    cached = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    with OddSite() as site:
        for name in ("first", "second"):
            with SiteWriter(tmp_path / name, roots=[site.url("/picture")]) as writer:
                crawl_with(writer, **cached)
            recorded = RecordedSite(tmp_path / name)
            assert recorded.size.tolist() == [LARGE]
            recorded.close()


def test_answers_of_the_cache_are_recorded(site: MockSite, tmp_path: Path) -> None:
    """With Scrapy's HTTP cache, a second recording needs no site, and is equal; so is ``--httpcache``."""
    cached = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    for name in ("first", "second"):
        with SiteWriter(tmp_path / name, roots=[site.url("/page/0/20")]) as writer:
            crawl_with(writer, **cached)
            writer.finish()
    assert len(site.paths) == 20
    assert call(str(tmp_path / "third"), "--httpcache", str(tmp_path / "cache" / "focus-record")) == 0
    assert contents(tmp_path / "first") == contents(tmp_path / "second") == contents(tmp_path / "third")


def test_recorder_and_spider_see_the_same_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spider of the example project asks for exactly what is recorded as a link, in the same order."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from scrapy_focus.finders.files.spider import DatasetsSpider

    with OddSite() as server:
        for path in ("/", "/plain", "/based", "/latin", "/broken", "/twice", "/untyped"):
            _, headers, body = server.answer(path)
            response = HtmlResponse(server.url(path), headers=headers, body=body)
            spider = DatasetsSpider(root=server.url("/"))
            asked = list(dict.fromkeys(request.url for request in spider.links(response)))
            assert asked == [link.url for link in read_page(response.url, headers, body).links], path
            assert asked


# Other sources


def test_a_portal_is_recorded_without_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--portal`` makes a whole recording with all of the portal's pages and files."""
    path = tmp_path / "portal.sqlite"
    assert call(str(path), "--portal", "200") == 0
    assert "0 linked ones are not (100.0%)\nNext: focus compare" in capsys.readouterr().out
    site, portal = RecordedSite(path), StatisticsPortal(pages=200)
    paths = {url.removeprefix("http://portal.example") for url in site.urls}
    assert set(portal.html_paths()) <= paths
    assert set(portal.targets()) <= paths
    assert site.completeness().finished
    site.close()


def test_a_folder_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--folder`` records files, under the URL of ``-a root``."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<a href='a.csv'>x</a>")
    (tmp_path / "site" / "a.csv").write_text("1")
    path = tmp_path / "folder.sqlite"
    assert call(str(path), "--folder", str(tmp_path / "site"), "-a", "root=http://a.b/index.html", "--bodies") == 0
    site = RecordedSite(path)
    assert site.urls == ["http://a.b/index.html", "http://a.b/a.csv"]
    assert "a.csv" in site.text(0)
    site.close()
    assert call(str(path), "--folder", str(tmp_path / "none")) == 1
    assert "Error: there is no folder" in capsys.readouterr().err


def test_another_source_is_refused(
    odd: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file holds one source: another one is refused with the file's source, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "other folder"):
        Path(name).mkdir()
        Path(name, "index.html").write_text(f"<a href='{name[:3]}.csv'>x</a>")
        Path(name, f"{name[:3]}.csv").write_text("1")
    path = tmp_path / "a.sqlite"
    assert call("a.sqlite", "--folder", "one") == 0
    before = path.read_bytes()
    capsys.readouterr()
    for words in (
        ["--folder", "other folder"],
        ["--folder", "other folder", "-a", "root=http://a.b/"],
        ["--portal", "200"],
    ):
        assert call("a.sqlite", *words) == 2
        said = capsys.readouterr()
        assert said.err.startswith("Error: a.sqlite holds the folder one, not ")
        assert said.err.endswith("; name another file\n")
        assert not said.out
    assert path.read_bytes() == before
    for spelled in ("one", "./one/", str(tmp_path / "one")):
        assert call("a.sqlite", "--folder", spelled) == 0
    shutil.copy(odd.path, "live.sqlite")
    assert call("live.sqlite", "--folder", "one") == 2
    assert "live.sqlite holds the live site, 2" in capsys.readouterr().err


def test_a_wrong_root_is_doubted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command suggests the likely one instead of the next steps."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<a href='https://a.b/x.csv'>x</a>")
    (tmp_path / "site" / "x.csv").write_text("1")
    words = ["--folder", str(tmp_path / "site"), "-a"]
    assert call(str(tmp_path / "wrong.sqlite"), *words, "root=http://a.b/") == 0
    said = capsys.readouterr().out
    assert (
        "Warning: 1 of 2 URLs (50.0%) are at https://a.b and missing, or redirect there: is https://a.b/ its root?"
        in said
    )
    assert "Next:" not in said
    assert call(str(tmp_path / "right.sqlite"), *words, "root=https://a.b/") == 0
    said = capsys.readouterr().out
    assert "Warning" not in said
    assert "Next: focus compare" in said


def test_web_archives_are_recorded(tmp_path: Path) -> None:
    """``--warc`` takes several files after one another, and ends at the next option."""
    writer = pytest.importorskip("warcio.warcwriter")
    headers = pytest.importorskip("warcio.statusandheaders").StatusAndHeaders
    files = []
    for name, body in (("", b"<a href='a.html'>x</a>"), ("a.html", b"<a href='/'>x</a>")):
        files.append(str(tmp_path / f"{name or 'root'}.warc.gz"))
        with Path(files[-1]).open("wb") as stream:
            archive = writer.WARCWriter(stream, gzip=True)
            answer = headers("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
            archive.write_record(
                archive.create_warc_record(f"http://a.b/{name}", "response", io.BytesIO(body), http_headers=answer)
            )
    assert call(str(tmp_path / "site.sqlite"), "--warc", *files, "-a", "root=http://a.b/") == 0
    site = RecordedSite(tmp_path / "site.sqlite")
    assert site.urls == ["http://a.b/", "http://a.b/a.html"]
    assert site.completeness().missing == 0
    site.close()


HAR_IMPORTER = """
import json
from pathlib import Path

from scrapy_focus.lab.recordings.importers.base import Archive
from scrapy_focus.lab.recordings.writer import Answer


class HarImporter(Archive):
    def __init__(self, *files):
        if not files:
            raise ValueError("name a HAR file")
        self.files = files
        self.source = "HAR files"

    def read(self):
        for file in self.files:
            for entry in json.loads(Path(file).read_text())["log"]["entries"]:
                headers = {"Content-Type": "text/html"}
                yield Answer(url=entry["url"], status=200, headers=headers, body=entry["text"].encode())


class Wrong(HarImporter):
    def read(self):
        yield self.files[0]


class NoImporter:
    def __init__(self, *files):
        pass
"""


@pytest.fixture
def har_project(tmp_path: Path) -> Path:
    """A Scrapy project with an importer in a module, and two files for it."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = ours.settings\n")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "__init__.py").touch()
    (tmp_path / "ours" / "settings.py").touch()
    (tmp_path / "ours" / "importers.py").write_text(HAR_IMPORTER)
    for name, path, text in (("one", "", "<a href='/b'>b</a>"), ("two", "b", "<a href='/c'>c</a>")):
        entry = {"url": f"http://a.b/{path}", "text": text}
        (tmp_path / f"{name}.har").write_text(json.dumps({"log": {"entries": [entry]}}))
    return tmp_path


def test_an_importer_of_a_user_is_found_by_its_path(har_project: Path) -> None:
    """A class in one file of a project records what it reads, with the options that other sources have."""
    words = ["site.sqlite", "--importer", "ours.importers.HarImporter", "one.har", "two.har", "--bodies"]
    said, _ = run(har_project, *words)
    assert said == ("site.sqlite: 2 URLs are recorded, 1 linked one is not (66.6%)\nNext: focus compare site.sqlite\n")
    site = RecordedSite(har_project / "site.sqlite")
    assert site.urls == ["http://a.b/", "http://a.b/b", "http://a.b/c"]
    assert site.meta["source"] == "HAR files"
    assert site.text(1) == "<a href='/c'>c</a>"
    site.close()
    _, logged = run(har_project, "new.sqlite", *words[1:], "-a", "root=http://c.d/", expect=1)
    assert logged == "Error: HAR files has no answer of http://c.d/; its first page is http://a.b/\n"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["ours.importers.Wrong", "one.har"], 1, "Error: Wrong yielded str, 'one.har'; yield an Answer of"),
        (
            ["ours.importers.HarImporter"],
            2,
            "--importer ours.importers.HarImporter cannot be loaded: ValueError: name a",
        ),
        (
            ["ours.importers.NoImporter", "x"],
            2,
            "a NoImporter, which is not an importer, as it has no source and no find_root",
        ),
        (
            ["ours.none.Importer", "x"],
            2,
            "cannot be loaded: ModuleNotFoundError: No module named 'ours.none'; outside of a",
        ),
        (["Importer", "x"], 2, "--importer Importer cannot be loaded: ValueError: Error loading object 'Importer'"),
        (
            ["ours.importers.HarImporter", "x", "--warc", "y"],
            2,
            "--warc and --importer are different sources; name one",
        ),
    ],
)
def test_what_is_no_importer_is_explained(har_project: Path, words: list[str], status: int, said: str) -> None:
    """Whatever is wrong with it, the error names the class, and nothing is recorded."""
    root = ["-a", "root=http://a.b/"]
    _, logged = run(har_project, "site.sqlite", *root, "--importer", *words, expect=status)
    assert said in " ".join(logged.split())
    assert "Traceback" not in logged


# What is said to those who err


def call(*words: str) -> int:
    """Run the command in this process, without a crawl, and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        execute(["scrapy", "focus-record", *words])
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name one file to record into"),
        (["a.sqlite", "b.sqlite"], "name one file to record into"),
        (["a.sqlite"], "say where the site starts: focus record a.sqlite -a root=https://example.org/"),
        (["a.sqlite", "-a", "root=example.org"], "'example.org' in root is neither a URL nor a file; give the URL of"),
        (["a.sqlite", "-a", "root"], "-a takes NAME=VALUE"),
        (["a.sqlite", "-a", "roots=http://a.b/"], "there is no argument roots; the only one is root"),
        (["a.sqlite", "--limits", "3"], "unknown option --limits"),
        (["a.sqlite", "-a", "root=http://a.b/", "--limit", "0"], "--limit is '0'; it takes a number from 1"),
        (["a.sqlite", "--portal", "20"], "a portal has 200 to 1,000,000 pages"),
        (["a.sqlite", "--portal", "many"], "--portal is 'many'; it takes a number from 1"),
        (["a.sqlite", "--folder", "a", "--warc", "b"], "--folder and --warc are different sources; name one"),
        (["a.sqlite", "--folder", "a", "-a", "root=http://a.b/,http://c.d/"], "--folder takes one root; got 2"),
        (["a.sqlite", "--warc", "b", "--limit", "3"], "--limit, --no-files and --render are for recording a live site"),
        (["a.sqlite", "--info", "-a", "root=http://a.b/"], "--info says what a recording holds"),
    ],
)
def test_bad_arguments_are_explained(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be done ends with status 2 and a sentence that says what to do."""
    monkeypatch.chdir(tmp_path)
    assert call(*words) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [None, b"", b"no recording at all", b"SQLite format 3\0"])
def test_a_file_that_is_no_recording_is_one_line(
    content: bytes | None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A file that is missing, empty or something else ends with status 1 and one line."""
    path = tmp_path / "site.sqlite"
    if content is not None:
        path.write_bytes(content)
    assert call(str(path), "--info") == 1
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert str(path) in said
    assert said.count("\n") == 1


def test_another_root_is_refused(odd: Recorded, tmp_path: Path) -> None:
    """A recording of one site is not gone on with from another."""
    said, logged = run(odd.path.parent, "odd.sqlite", "-a", "root=http://127.0.0.2/", expect=1)
    assert "Traceback" not in logged
    assert f"Error: odd.sqlite is a recording of {odd.root}/, not of http://127.0.0.2/" in logged
    assert not said


def test_commands_import_little() -> None:
    """Each start of ``scrapy`` imports the command, and nothing that it needs only when it runs."""
    code = (
        "import scrapy_focus.lab.commands.record, sys; print([m for m in sys.modules if 'replay' in m or 'rich' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
