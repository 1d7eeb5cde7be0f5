"""Whole crawls with the folder of earlier ones: new files come first, and each is new, changed, same or gone."""

from __future__ import annotations

import json
import signal
from collections import Counter
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Crawled, crawl
from scrapy.exceptions import CannotResolveHostError, DownloadConnectionRefusedError, UsageError
from scrapy.http import Request, Response
from test_datasets_kills import Crawls

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.problems import see
from scrapy_focus.engine.ending import ending_of
from scrapy_focus.finders.files.next_crawl import AskIfChanged, response_of
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.kit.records.crawls import last_crawl, prepare
from scrapy_focus.finders.kit.records.notes import read_notes
from scrapy_focus.lab.sites.portal.portal import Page, StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Failing:
    """No request gets through."""

    def process_request(self, request: Request) -> None:
        raise DownloadConnectionRefusedError("refused")


class Unknown:
    """No name is known."""

    def process_request(self, request: Request) -> None:
        raise CannotResolveHostError("no such name")


class Shelf:
    """A site with a list of pages, each with a file that can be changed between two crawls."""

    def __init__(self, files: int = 6) -> None:
        self.most: int | None = None  # files that are answered until a test says that the others may be, too
        self.goes_on = Event()
        self.files = {f"/files/{i}.csv": f"number\n{i}\n".encode() * 500 for i in range(files)}
        self.moved: dict[str, str] = {}  # redirects
        self.status: dict[str, int] = {}  # of files that answer something else

    def fetch(self, path: str) -> Page:
        if path in self.status:
            return Page.of(b"", status=self.status[path], mime="text/csv")
        if path in self.moved:
            return Page.of(b"", status=302, location=self.moved[path])
        if path in self.files:
            if self.most is not None and not self.goes_on.is_set():
                self.most -= 1
                if self.most < 0:
                    self.goes_on.wait(HANG)
            body = self.files[path]
            etag = f"{hash(body):x}"
            return Page(status=200, mime="text/csv", size=len(body), etag=etag, modified=1e9, make=lambda: body)
        names = [*self.files, *self.moved]
        if path == "/":
            return self.page(f'<a href="/page/{i}">page {i}</a>' for i in range(len(names)))
        if path.startswith("/page/") and int(path[6:]) < len(names):
            return self.page([f'<a class="file" href="{names[int(path[6:])]}">file</a>'])
        return Page.of(b"", status=404)

    def page(self, links: Any) -> Page:
        return Page.of(f"<!DOCTYPE html><title>Shelf</title><ul>{'<br>'.join(links)}</ul>".encode())


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def server(shelf: Shelf) -> Iterator[SiteServer]:
    with SiteServer(shelf, validators=True) as running:
        yield running


def visit(server: SiteServer, out: Path, settings: dict[str, Any] | None = None, **args: str) -> Crawled:
    server.log.clear()
    common = {"CONCURRENT_REQUESTS": 2, "COOKIES_ENABLED": False, "FOCUS_SEED": 0}
    result = crawl(DatasetsSpider, {**common, **(settings or {})}, addon=True, root=server.url, out=str(out), **args)
    assert result.errors == {}
    assert not [record for record in result.records if record.levelname == "ERROR"]
    return result


def states(out: Path, crawl: int) -> dict[str, str]:
    """Return the state of each file that a crawl listed, by its path on the server."""
    lines = [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]
    return {"/" + line["url"].split("/", 3)[3]: line["state"] for line in lines if line["crawl"] == crawl}


def asked(server: SiteServer, beginning: str = "/files/") -> dict[str, int]:
    """Return the status that each file was answered with."""
    return {request.path: request.status for request in server.log if request.path.startswith(beginning)}


def test_new_changed_same_and_gone(shelf: Shelf, server: SiteServer, tmp_path: Path) -> None:
    """The second crawl lists each file with its state, counts existing ones as found, and keeps old versions."""
    first = visit(server, tmp_path)
    assert first.stats["file/new"] == first.stats["focus/reward"] == 6
    assert set(states(tmp_path, 1).values()) == {"new"}
    old = shelf.files["/files/1.csv"]
    shelf.files["/files/1.csv"] = b"number\nchanged\n"
    shelf.files["/files/9.csv"] = b"number\nnew\n"
    shelf.status["/files/2.csv"] = 410
    shelf.status["/files/3.csv"] = 500
    second = visit(server, tmp_path, {"RETRY_ENABLED": False})
    expected = {f"/files/{i}.csv": "same" for i in (0, 4, 5)}
    expected |= {"/files/1.csv": "changed", "/files/2.csv": "gone", "/files/9.csv": "new"}
    assert states(tmp_path, 2) == expected
    assert {second.stats[f"file/{state}"] for state in ("new", "changed", "gone")} == {1}
    assert second.stats["file/same"] == 3
    assert second.stats["focus/reward"] == 5
    assert [item.state for item in second.items].count("same") == 3
    assert {"again/page.files.page?", "again/page.new.page?"} <= {*second.scheduler.crawl.policy.paths}
    assert asked(server) == {
        "/files/0.csv": 304, "/files/1.csv": 200, "/files/2.csv": 410, "/files/3.csv": 500, "/files/4.csv": 304,
        "/files/5.csv": 304, "/files/9.csv": 200,
    }  # fmt: skip
    stored = [path.read_bytes() for path in (tmp_path / "files").rglob("*.csv")]
    assert len(stored) == 8
    assert old in stored
    assert second.logged("Files: 1 new, 1 changed, 3 same, 1 gone, 1 unseen")
    assert ending_of(second.crawler).sentence == (
        f"Done: 1 new, 1 changed, 3 same, 1 gone, 1 not seen, in {len(server.log)} requests; see {tmp_path}."
    )
    assert second.logged("5 files, 4 of them known")
    page = (tmp_path / "index.html").read_text()
    assert "found 1 file that no earlier crawl had found" in page
    assert "Half of the files (the dot) were found" in page
    third = visit(server, tmp_path, {"RETRY_ENABLED": False})
    assert "Half of the files (the dot)" not in (tmp_path / "index.html").read_text(), "there is nothing new to draw"
    assert third.stats["file/same"] == 5
    assert asked(server)["/files/2.csv"] == 410  # it is still linked
    assert "/files/2.csv" not in states(tmp_path, 3)
    assert last_crawl(tmp_path).number == 3


def test_a_server_without_validators(shelf: Shelf, server: SiteServer, tmp_path: Path) -> None:
    """Files are asked for in full, and compared."""
    server.validators = False
    visit(server, tmp_path)
    shelf.files["/files/1.csv"] = b"number\nchanged\n"
    result = visit(server, tmp_path)
    assert set(asked(server).values()) == {200}
    assert (result.stats["file/same"], result.stats["file/changed"]) == (5, 1)
    assert len([*(tmp_path / "files").rglob("*.csv")]) == 7


def test_only_what_is_new(shelf: Shelf, server: SiteServer, tmp_path: Path) -> None:
    """With new_only no known file is asked for, and none gets a line."""
    visit(server, tmp_path)
    shelf.files["/files/9.csv"] = b"number\nnew\n"
    result = visit(server, tmp_path, new_only="1")
    assert asked(server) == {"/files/9.csv": 200}
    assert states(tmp_path, 2) == {"/files/9.csv": "new"}
    assert result.logged("Files: 1 new, 0 changed, 0 same, 0 gone, 6 unseen")
    last = ending_of(visit(server, tmp_path, new_only="1").crawler)
    assert (last.status, last.sentence) == (
        3, f"Done: 0 new, 0 changed, 0 same, 0 gone, 7 not seen, in {len(server.log)} requests. {see('nothing-found')}",
    )  # fmt: skip
    assert "7 not seen this time" in (tmp_path / "index.html").read_text()


def test_a_file_behind_a_redirect(shelf: Shelf, server: SiteServer, tmp_path: Path) -> None:
    """It is asked for where it is linked, conditionally where it is; and what is linked there next is found. The page
    that led there is the one with the link.
    """
    shelf.moved["/latest"] = "/files/0.csv"
    shelf.moved["/newest"] = "/hidden/1.csv"
    visit(server, tmp_path)
    shelf.moved["/latest"] = "/files/8.csv"
    shelf.files["/files/8.csv"] = b"number\nnew\n"
    visit(server, tmp_path)
    assert states(tmp_path, 2)["/files/8.csv"] == "new"
    assert asked(server)["/files/0.csv"] == 304
    assert "/files/8.csv" not in states(tmp_path, 1)
    lines = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]
    pages = {line["url"]: line["page"] for line in lines}
    assert all(page.startswith(f"{server.url}page/") for page in pages.values()), pages


def test_a_file_that_is_not_in_the_folder_any_more(server: SiteServer, tmp_path: Path) -> None:
    """It is asked for in full, stored again, and the same."""
    visit(server, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]
    lost = next(line for line in lines if line["url"].endswith("/files/1.csv"))
    (tmp_path / lost["path"]).unlink()
    visit(server, tmp_path)
    assert asked(server)["/files/1.csv"] == 200
    assert (tmp_path / lost["path"]).stat().st_size == lost["size"]
    assert states(tmp_path, 2)["/files/1.csv"] == "same"


def test_copies_are_known_too(shelf: Shelf, server: SiteServer, tmp_path: Path) -> None:
    """A second URL with the same content is requested conditionally, and is a separate file once it differs."""
    shelf.files["/files/copy.csv"] = shelf.files["/files/0.csv"]
    first = visit(server, tmp_path)
    assert first.stats["file/new"] == 6
    second = visit(server, tmp_path)
    assert second.stats["file/same"] == second.stats["focus/reward"] == 6
    assert set(asked(server).values()) == {304}
    copy = next(path for path in ("/files/0.csv", "/files/copy.csv") if path not in states(tmp_path, 1))
    shelf.files[copy] = b"number\nof its own\n"
    visit(server, tmp_path)
    assert states(tmp_path, 3)[copy] == "new"


def test_a_cache_asks_in_its_own_way(server: SiteServer, tmp_path: Path) -> None:
    """With HTTPCACHE_ENABLED no conditions are added to requests, and the cache's responses are compared."""
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    visit(server, tmp_path / "out", settings)
    assert asked(server)
    result = visit(server, tmp_path / "out", settings)
    assert asked(server) == {}
    assert result.stats["file/same"] == 6


def test_an_answer_304_that_nobody_asked_for(shelf: Shelf, server: SiteServer, tmp_path: Path) -> None:
    """It is not a find, and says nothing about a file."""
    visit(server, tmp_path)
    server.validators = False
    shelf.files["/files/9.csv"] = b"number\nnew\n"
    shelf.status["/files/9.csv"] = 304
    visit(server, tmp_path)
    assert "/files/9.csv" not in states(tmp_path, 2)


def test_conditions_follow_a_request_through_retries_and_redirects(server: SiteServer, tmp_path: Path) -> None:
    """Those of one URL are not sent to another, and those of a user are not changed."""
    result = visit(server, tmp_path)
    middleware = AskIfChanged(result.crawler)
    known = result.spider.again.files.now[f"{server.url}files/1.csv"]
    result.spider.again.files.before = {known.url: known}
    request = Request(known.url)
    middleware.process_request(request)
    assert request.headers["If-None-Match"].decode() == known.etag
    assert request.headers["If-Modified-Since"].decode() == known.last_modified
    retry = request.copy()
    middleware.process_request(retry)
    answer = middleware.process_response(retry, Response(known.url, status=304, headers={"ETag": '"other"'}))
    assert (answer.status, answer.body, answer.flags) == (200, b"", ["not modified"])
    assert answer.headers["ETag"] == b'"other"'
    assert middleware.process_response(request, Response(known.url, status=200, body=b"1")).body == b"1"
    for status in (500, 200, 404):
        middleware.process_request(again := Request(known.url))
        assert middleware.process_response(again, Response(known.url, status=status)).status == status
    redirected = request.replace(url=f"{server.url}files/2.csv")
    middleware.process_request(redirected)
    assert "If-None-Match" not in redirected.headers
    for other in (
        Request(known.url, headers={"If-None-Match": '"mine"'}), Request(known.url, method="HEAD"),
        Request(known.url, method="POST"), Request(known.url, headers={"Cache-Control": "no-cache"}),
    ):  # fmt: skip
        headers = other.headers.to_string()
        middleware.process_request(other)
        assert other.headers.to_string() == headers
    assert response_of(known._replace(etag="")).headers.get("ETag") is None


def test_known_files_have_the_last_third_of_a_budget(shelf: Shelf, server: SiteServer, tmp_path: Path) -> None:
    """Before that, only pages and what is new are asked for; and the budget is exact."""
    shelf.files |= {f"/files/{i}.csv": b"%d" % i * 99 for i in range(20, 60)}
    first = visit(server, tmp_path)
    assert first.stats["file/new"] == 46
    shelf.files["/files/9.csv"] = b"number\nnew\n"
    result = visit(server, tmp_path, {"FOCUS_MAX_INFLIGHT": 1}, budget="30")
    known = [number for number, request in enumerate(server.log) if request.status == 304]
    assert len(server.log) == result.stats["focus/requests"] == 30
    assert len(known) >= 5
    assert known[0] >= 18


def test_what_was_learned_stays_in_the_folder(server: SiteServer, tmp_path: Path) -> None:
    """The next crawl starts with it, unless set otherwise or the policy cannot."""
    visit(server, tmp_path)
    learned = tmp_path / ".focus/learned"
    assert learned.stat().st_size > 100
    second = visit(server, tmp_path)
    assert second.policy.learned == str(learned)
    mine = visit(server, tmp_path, {"FOCUS_LEARNED_FROM": "", "FOCUS_LEARNED_TO": str(tmp_path / "mine")})
    assert mine.policy.learned == ""
    assert (tmp_path / "mine").exists()
    visit(server, tmp_path, {"FOCUS_POLICY": "scrapy_focus.policies.orderings.BreadthFirst"})
    assert last_crawl(tmp_path).number == 4


def test_killed_in_the_second_crawl(tmp_path: Path) -> None:
    """It resumes as the second crawl, and lists each file once, with the state that it has since the first."""
    shelf = Shelf(30)
    with SiteServer(shelf, latency=0.01, validators=True) as server:
        job = Crawls(server, tmp_path / "job")
        settings = f"JOBDIR={job.out / '.focus/job'}"
        job.command[job.command.index(f"JOBDIR={job.folder / 'job'}")] = settings
        assert job.run() == 0
        assert prepare(job.out).number == 2
        shelf.files["/files/1.csv"] = b"changed"
        shelf.files["/files/99.csv"] = b"new"
        shelf.most = 20
        job.run(lambda: job.lines() >= 40, signal.SIGKILL)
        shelf.goes_on.set()
        assert prepare(job.out)[:2] == (2, True)
        assert job.run() == 0
    found = states(job.out, 2)
    lines = [json.loads(line) for line in (job.out / "manifest.jsonl").read_text().splitlines()]
    assert len(lines) == 30 + 31
    assert found == {
        path: {"/files/1.csv": "changed", "/files/99.csv": "new"}.get(path, "same") for path in shelf.files
    }
    assert job.stats()["focus/reward"] == 31
    assert (last_crawl(job.out).number, last_crawl(job.out).has_ended) == (2, True)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["REQUESTS", "BYTES"])
def test_a_larger_budget_resumes_the_crawl(shelf: Shelf, server: SiteServer, tmp_path: Path, name: str) -> None:
    """With its job: it is the same crawl, which asks for no whole answer twice and finds all."""
    shelf.files |= {f"/files/{i}.csv": b"%d" % i * 99 for i in range(20, 60)}
    few, many = {"REQUESTS": (30, 60), "BYTES": (9_000, 12_000)}[name]
    budget, job = f"FOCUS_BUDGET_{name}", {"JOBDIR": str(tmp_path / "job"), "FOCUS_MAX_INFLIGHT": 1}
    asked_for: Counter[str] = Counter()
    for most in (few, many, 10 * many):
        result = visit(server, tmp_path, {**job, budget: most})
        asked_for.update(request.path for request in server.log)
    assert result.reason == "finished"
    assert len(asked_for) == 1 + 46 + 46
    cut = {"REQUESTS": 0, "BYTES": 2}[name]  # answers that the two budgets of bytes stopped, which are asked for again
    assert sum(asked_for.values()) - len(asked_for) == cut
    assert set(states(tmp_path, 1).values()) == {"new"}
    assert len(states(tmp_path, 1)) == 46
    assert last_crawl(tmp_path)[:2] == (1, True)
    kinds = [
        json.loads(line).get("goes_on", False) for line in (tmp_path / ".focus/crawls.jsonl").read_text().splitlines()
    ]
    assert kinds.count(True) == 2
    assert ending_of(result.crawler).sentence == f"Done: 46 files found in {93 + cut} requests; see {tmp_path}."


def budgeted(server: SiteServer, out: Path, budget: int, settings: dict[str, Any] | None = None) -> Crawled:
    return visit(server, out, settings, budget=str(budget), new_only="1")


@pytest.mark.slow
def test_what_earlier_crawls_saw_waits_for_looks(shelf: Shelf, server: SiteServer, tmp_path: Path) -> None:
    """A link that no crawl followed comes after a third of the budget, or when pages with files are revisited."""
    shelf.files |= {f"/files/{i}.csv": b"%d" % i * 99 for i in range(20, 60)}
    visit(server, tmp_path)
    for number, (budget, latest) in enumerate(((60, 30), (400, 60)), 2):
        shelf.files[name := f"/waits-{number}.csv"] = b"%d" % number
        line = {"crawl": number - 1, "page": server.url, "links": {"html/ul/a": [[f"{server.url}{name[1:]}", "", ""]]}}
        with (tmp_path / ".focus/links.jsonl").open("a") as links:
            links.write(json.dumps(line) + "\n")
        shelf.page = lambda links: Page.of(b"<!DOCTYPE html><title>Shelf</title>")  # type: ignore[method-assign]
        budgeted(server, tmp_path, budget, {"FOCUS_MAX_INFLIGHT": 1})
        paths = [request.path for request in server.log]
        assert budget / 3 <= paths.index(name) <= latest if number == 2 else 46 <= paths.index(name) <= latest
        assert len({*paths} & {f"/page/{i}" for i in range(46)}) == 46


@pytest.mark.slow
@pytest.mark.parametrize("has_job", [False, True])
def test_links_that_no_crawl_followed(shelf: Shelf, server: SiteServer, tmp_path: Path, has_job: bool) -> None:
    """They are fetched in the next crawl though no page has them any more; and in the one after that, if queued."""
    shelf.files |= {f"/files/{i}.csv": b"%d" % i * 99 for i in range(20, 60)}
    job = {"JOBDIR": str(tmp_path / ".focus/job")} if has_job else {}
    asked_for: Counter[str] = Counter()
    for number, budget in enumerate((20, 40, 200), 1):
        assert prepare(tmp_path)[:2] == (number, False)
        result = budgeted(server, tmp_path, budget, job)
        asked_for.update(request.path for request in server.log if request.path.startswith("/page/"))
        shelf.page = lambda links: Page.of(  # type: ignore[method-assign]
            b"<!DOCTYPE html>" + "".join(link for link in links if "file" in link).encode()
        )
    assert {state for number in (1, 2, 3) for state in states(tmp_path, number).values()} == {"new"}
    assert sum(len(states(tmp_path, number)) for number in (1, 2, 3)) == 46
    assert len(states(tmp_path, 2)) > 10
    assert asked_for.keys() == {f"/page/{i}" for i in range(46)}
    links = [request for request in result.scheduler.crawl.policy.paths if request.endswith("/ul/a")]
    assert links  # the place where they stood


def test_what_earlier_crawls_saw_is_on_the_page_of_the_folder(shelf: Shelf, server: SiteServer, tmp_path: Path) -> None:
    """A file found through such a link has the page and the text of that link."""
    budgeted(server, tmp_path, 5)
    shelf.files = {"/page-is-file.csv": b"1"}
    waiting = tmp_path / ".focus/links.jsonl"
    url, page = f"{server.url}page-is-file.csv", server.url
    line = {"crawl": 1, "page": page, "depth": 1, "links": {"html/ul/a": [[url, "The file", ""]]}}
    waiting.write_text(waiting.read_text() + json.dumps(line) + "\n")
    visit(server, tmp_path)
    listed = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]
    assert {(line["page"], line["anchor"]) for line in listed if line["url"] == url} == {(page, "The file")}


def test_links_survive_a_kill_without_a_job(tmp_path: Path) -> None:
    """The next crawl of the folder starts with the links that the killed one saw, up to its last page."""
    shelf = Shelf(40)
    with SiteServer(shelf, latency=0.01, validators=True) as server:
        killed = Crawls(server, tmp_path / "job")
        at = killed.command.index(f"JOBDIR={killed.folder / 'job'}")
        del killed.command[at - 1 : at + 1]
        shelf.most = 20
        killed.run(lambda: killed.lines() >= 5, signal.SIGKILL)
        shelf.goes_on.set()
        found = killed.lines()
        assert 5 <= found < 40
        shelf.page = lambda links: Page.of(  # type: ignore[method-assign]
            b"<!DOCTYPE html>" + "".join(link for link in links if "file" in link).encode()
        )
        assert killed.run() == 0
        assert last_crawl(killed.out)[:2] == (2, True)
    assert len(states(killed.out, 1) | states(killed.out, 2)) == 40


@pytest.mark.few(1)
@pytest.mark.parametrize("way", ["refused", "unknown name", "404", "robots.txt"])
def test_a_crawl_that_failed_does_not_count(
    shelf: Shelf, server: SiteServer, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is gone, the learned state stays, the next crawl has its number; and hardly anything was requested."""
    visit(server, tmp_path)
    listed, learned = ((tmp_path / name).read_bytes() for name in ("manifest.jsonl", ".focus/learned"))
    answer = shelf.fetch
    settings: dict[str, Any] = {"RETRY_ENABLED": False, "ROBOTSTXT_OBEY": True}
    if way == "refused":
        settings["DOWNLOADER_MIDDLEWARES"] = {Failing: 590}
    elif way == "unknown name":
        settings["DOWNLOADER_MIDDLEWARES"] = {Unknown: 590}
    elif way == "404":
        monkeypatch.setattr(shelf, "fetch", lambda path: Page.of(b"", status=404))
    else:
        rules = Page.of(b"User-agent: *\nDisallow: /", mime="text/plain")
        monkeypatch.setattr(shelf, "fetch", lambda path: rules if path == "/robots.txt" else answer(path))
    result = visit(server, tmp_path, settings)
    assert ending_of(result.crawler).kind == "unreachable"
    assert len(server.log) <= 2
    assert ((tmp_path / "manifest.jsonl").read_bytes(), (tmp_path / ".focus/learned").read_bytes()) == (listed, learned)
    last = last_crawl(tmp_path)
    assert (last.number, last.has_ended, last.failed) == (1, True, 2)
    assert prepare(tmp_path)[:2] == (2, False)
    monkeypatch.setattr(shelf, "fetch", answer)
    shelf.files["/files/9.csv"] = b"number\nnew\n"
    visit(server, tmp_path)
    assert Counter(states(tmp_path, 2).values()) == {"same": 6, "new": 1}
    assert len(read_notes(tmp_path).runs) == 1  # the page of the folder shows nothing of the failed crawl
    assert last_crawl(tmp_path).number == 2


def test_a_crawl_that_cannot_start_does_not_count(server: SiteServer, tmp_path: Path) -> None:
    """A wrong setting does not change the folder."""
    visit(server, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError):
        visit(server, tmp_path, {"FOCUS_COST_LIMIT": "abc"})
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_killed_when_only_known_files_were_left(server: SiteServer, tmp_path: Path) -> None:
    """The run that resumes asks for them, though it reads no page."""
    visit(server, tmp_path)
    job = {"JOBDIR": str(tmp_path / ".focus/job")}
    visit(server, tmp_path, job, new_only="1")
    crawls = tmp_path / ".focus/crawls.jsonl"
    *lines, _ = crawls.read_text().splitlines(keepends=True)
    crawls.write_text("".join(lines))  # as a kill leaves it
    visit(server, tmp_path, job)
    assert set(asked(server).values()) == {304}
    assert set(states(tmp_path, 2).values()) == {"same"}


def test_a_first_crawl_that_failed(shelf: Shelf, server: SiteServer, tmp_path: Path) -> None:
    """The next one is the first."""
    shelf.status["/"] = 503
    visit(server, tmp_path, {"RETRY_ENABLED": False})
    assert last_crawl(tmp_path).number == 0
    del shelf.status["/"]
    visit(server, tmp_path)
    assert set(states(tmp_path, 1).values()) == {"new"}


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".focus/links.jsonl", '{"links": {"a": [["file:///etc/passwd", "", ""]]}}\n'),
        (".focus/links.jsonl", "[" * 100_000 + "\n"), (".focus/asked.jsonl", '{"url": "no url"}\n'),
        (".focus/hosts.json", '{"http://a.test/": 1}'), (".focus/hosts.json", "{"), ("manifest.jsonl", '{"size": "1"}\n'),
    ],
)  # fmt: skip
def test_a_folder_that_nobody_wrote_so(name: str, text: str, server: SiteServer, tmp_path: Path) -> None:
    """It is refused in one line before anything is asked for or changed."""
    (tmp_path / ".focus").mkdir()
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=r"remove it|name another folder") as raised:
        visit(server, tmp_path)
    assert "\n" not in str(raised.value)
    assert server.log == []
    assert (tmp_path / name).read_text() == text


@pytest.mark.slow
def test_new_files_are_found_early(tmp_path: Path) -> None:
    """On a portal a month later, nine in ten of the new files are found with half of the requests as from nothing.

    Measured here: 33 and 121. ``benchmarks/results/revisits.md`` has larger portals.
    """
    before, after = (StatisticsPortal(pages=200, seed=0, endless=False, months=months) for months in (0, 1))
    new = {*after.targets()} - {*before.targets()}
    needed = {}
    with SiteServer(before, validators=True) as server:
        visit(server, tmp_path / "again", {"FOCUS_MAX_INFLIGHT": 1}, budget="500")
        server.site = after
        for out, budget in (("again", "100"), ("nothing", "200")):
            visit(server, tmp_path / out, {"FOCUS_MAX_INFLIGHT": 1}, budget=budget)
            first: dict[str, int] = {}
            for number, request in enumerate(server.log):
                if request.path in new and request.status == 200:
                    first.setdefault(request.path, number)
            needed[out] = sorted(first.values())[int(0.9 * len(new)) - 1]
    assert needed["again"] < 0.5 * needed["nothing"], needed
