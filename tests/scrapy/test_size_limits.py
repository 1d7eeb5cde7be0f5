"""A budget of bytes holds within a body."""

from __future__ import annotations

import json
import socket
import threading
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Crawled, Follower, crawl
from scrapy import Request

from scrapy_focus.engine.ending import ending_of
from scrapy_focus.finders.files.spider import DatasetsSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from mocksite import MockSite

pytestmark = pytest.mark.reactor

MB = 1_000_000
ROOM = 8 * MB  # of the buffers of two sockets, at most, and of the threads that fill them
PIECE = b"a,b\n" * 4096


class LargeFiles(ThreadingTCPServer):
    """Serves a page with links to files of 100 MB, and counts the bytes of files that it sent."""

    daemon_threads = True

    def __init__(self, n_files: int) -> None:
        super().__init__(("127.0.0.1", 0), _Sender)
        self.links = "".join(f'<a href="/{i}.csv">file {i}</a>' for i in range(n_files))
        self.size = 100 * MB  # of a file
        self.sent = 0
        self.asked: list[str] = []
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Sender(StreamRequestHandler):
    server: LargeFiles

    def handle(self) -> None:
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        path = self.rfile.readline().split()[1].decode()
        while self.rfile.readline().strip():
            pass
        with self.server.lock:
            self.server.asked.append(path)
        if not path.endswith(".csv"):
            body = f"<html>{self.server.links}".encode()
            self.answer("text/html", len(body), "200 OK" if path == "/" else "404 Not Found")
            self.wfile.write(body)
            return
        self.answer("text/csv", self.server.size, "200 OK")
        left = self.server.size - len(path)
        try:
            self.wfile.write(path.encode())
            while left > 0:
                self.wfile.write(PIECE[:left])
                left -= len(PIECE)
                with self.server.lock:
                    self.server.sent += len(PIECE)
        except OSError:  # the crawl closed the connection
            pass

    def answer(self, kind: str, size: int, status: str) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
        self.wfile.write(head.encode())


@pytest.fixture
def files() -> Iterator[LargeFiles]:
    with LargeFiles(4) as server:
        yield server
        server.shutdown()


def find(files: LargeFiles, out: Path, *, at_once: int = 1, **given: str) -> Crawled:
    settings = {
        "JOBDIR": str(out / ".focus" / "job"), "CONCURRENT_REQUESTS_PER_DOMAIN": at_once, "DOWNLOAD_WARNSIZE": 0,
    }  # fmt: skip
    return crawl(DatasetsSpider, settings, addon=True, root=files.url, types="csv", out=str(out), **given)


@pytest.mark.parametrize("at_once", [1, 4])
def test_downloads_are_stopped(files: LargeFiles, tmp_path: Path, at_once: int) -> None:
    """A file of 100 MB ends a crawl of 1 MB after about 1 MB, also if several arrive; none of it is stored."""
    found = find(files, tmp_path, at_once=at_once, size="1MB")
    assert found.reason == "focus_budget_bytes"
    assert MB <= found.stats["focus/bytes"] < 2 * MB
    assert files.sent < MB + at_once * ROOM < files.size
    assert found.stats["focus/bytes/stopped"] == found.stats["focus/released"] >= 1
    assert found.outcomes == {"ok": 1}
    assert found.errors == {}
    assert not (tmp_path / "manifest.jsonl").exists() or not (tmp_path / "manifest.jsonl").read_text()
    assert not list(tmp_path.glob("files/*"))
    assert "<dd>1.0 MB</dd>" in (tmp_path / "index.html").read_text()


def test_a_stopped_file_waits_for_a_larger_budget(files: LargeFiles, tmp_path: Path) -> None:
    """The same size sends nothing more; with a larger one, the stopped file is requested again, and stored whole."""
    find(files, tmp_path, size="1MB")
    asked = len(files.asked)
    find(files, tmp_path, size="1MB")
    assert len(files.asked) == asked
    files.size = MB
    found = find(files, tmp_path, size="1GB")
    assert found.reason == "finished"
    lines = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]
    assert sorted(line["url"] for line in lines) == [f"{files.url}{i}.csv" for i in range(4)]
    assert {(line["size"], line["cut"]) for line in lines} == {(MB, False)}
    assert ending_of(found.crawler).status == 0


def test_another_limit_may_replace_it(files: LargeFiles, tmp_path: Path) -> None:
    """When the crawl resumes, and for the next crawl: the unit of what is learned stays requests."""
    files.size = 1000
    assert find(files, tmp_path, size="1kB").reason == "focus_budget_bytes"
    assert find(files, tmp_path, time="1h", budget="3").reason == "focus_budget_requests"
    assert find(files, tmp_path, time="1h").reason == "finished"
    assert ending_of(find(files, tmp_path, size="1GB").crawler).kind == "found"


class Poster(Follower):
    """Sends its start requests as POST."""

    name = "poster"

    async def start(self) -> AsyncIterator[Any]:
        for url in self.seeds:
            yield Request(url, method="POST", body=b"x")


def test_a_stopped_post_is_not_queued_again(site: MockSite) -> None:
    """A second one might do twice what the first one did."""
    result = crawl(Poster, {"FOCUS_BUDGET_BYTES": 1000}, seeds=[site.url("/file?type=text/html&size=30000")])
    assert result.outcomes == {"budget": 1}
    assert "focus/released" not in result.stats


def test_pages_that_arrived_keep_their_outcomes(site: MockSite) -> None:
    """Only the page that was stopped is queued again."""
    seeds = [site.url(f"/file?type=text/html&size=30000&{i}") for i in range(5)]
    result = crawl(Follower, {"FOCUS_BUDGET_BYTES": "100kB", "CONCURRENT_REQUESTS": 1}, seeds=seeds)
    assert result.outcomes == {"ok": 3}
    assert len(site.paths) == 4
    assert 100_000 < result.stats["focus/bytes"] <= 140_000


def test_a_budget_that_suffices_changes_nothing(site: MockSite) -> None:
    """Every byte is counted once, whether it is counted while it arrives or afterwards."""
    seeds = [site.url(f"/file?type=text/html&size=30000&{i}") for i in range(5)] + [site.url("/truncated")]
    settings = {"CONCURRENT_REQUESTS": 1, "RETRY_ENABLED": False, "DOWNLOAD_FAIL_ON_DATALOSS": False}
    plain = crawl(Follower, settings, seeds=seeds)
    limited = crawl(Follower, settings | {"FOCUS_BUDGET_BYTES": "1GB"}, seeds=seeds)
    assert limited.stats["focus/bytes"] == plain.stats["focus/bytes"] > 150_000
    assert limited.outcomes == plain.outcomes
