"""Examples of the documentation that need a server: they are read from their pages, and do in a crawl what is said."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest
from scrapy.core.engine import ExecutionEngine

from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer
from tests.docs.test_snippets import ROOT, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

COOKIE = "session=abc"
FORM = b"<form method=post action=/login><input name=user><input type=password name=password></form>"


class MembersSite:
    """Shows a list of five files to those who have logged in, and a form to all others."""

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Page:
        if method == "POST" and parse_qs(body) == {b"user": [b"me"], b"password": [b"secret"]}:
            return Page.of(b"", status=302, location="/members/", headers={"Set-Cookie": f"{COOKIE}; Path=/"})
        if path == "/robots.txt":
            return Page.of(b"", status=404)
        if COOKIE not in headers.get("cookie", ""):
            return Page.of(FORM)
        if path.startswith("/file"):
            return Page.of(f"a,b\n{path},1\n".encode(), mime="text/csv")
        links = "".join(f"<li><a href=/file{number}.csv>Data {number}</a>" for number in range(5))
        return Page.of(f"<a href=/logout>Log out</a><ul>{links}</ul>".encode())

    def fetch(self, path: str) -> Page:
        raise NotImplementedError(path)


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(MembersSite()) as running:
        yield running


def write_example(page: str, start: str, path: Path) -> str:
    """Write the block of a page that has a text into a file, and return it."""
    text = (ROOT / "docs" / "how-to" / f"{page}.rst").read_text()
    [code] = [block.code for block in blocks(text) if start in block.code and block.language == "python"]
    path.write_text(code)
    return code


def run(folder: Path, *words: str, **variables: str) -> str:
    """Run a command of Scrapy in a folder whose modules it can import, and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", **variables}
    command = [sys.executable, "-m", "scrapy", *words, "-s", "DOWNLOAD_DELAY=0"]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


def test_cookies_txt_lets_a_crawl_in_and_an_exclusion_keeps_it_in(tmp_path: Path, server: SiteServer) -> None:
    """A session cookie, which browsers write with the time 0, goes to its site."""
    cookie = "\t".join(["127.0.0.1", "FALSE", "/", "FALSE", "0", *COOKIE.split("=")])
    (tmp_path / "cookies.txt").write_text(f"# Netscape HTTP Cookie File\n{cookie}\n")
    words = ["focus-files", server.url, "--types", "csv"]
    assert "a password" in run(tmp_path, *words, "--out", "outside")
    inside = ["--out", "inside", "--cookies", "cookies.txt", "--exclude", "logout"]
    said = run(tmp_path, *words, *inside)
    assert "5 files found" in said
    assert not any(request.path == "/logout" for request in server.log)


@pytest.mark.skipif(not hasattr(ExecutionEngine, "download_async"), reason="Scrapy 2.14 or later")
def test_spider_logs_in_again_when_it_resumes(tmp_path: Path, server: SiteServer) -> None:
    """The links of a job are fetched with the new session."""
    code = write_example("login", "class MembersSpider", tmp_path / "members.py")
    moved = code.replace("https://www.example.org/", server.url).replace('"www.example.org"', '"127.0.0.1"')
    (tmp_path / "members.py").write_text(moved)
    words = ["runspider", "members.py", "-s", "SCHEDULER=scrapy_focus.FocusScheduler", "-s", "FOCUS_TARGETS=csv"]
    words += ["-s", 'ADDONS={"scrapy_focus.Addon": 500}', "-s", "JOBDIR=job"]
    who = {"SITE_USER": "me", "SITE_PASSWORD": "secret"}
    run(tmp_path, *words, "-s", "FOCUS_BUDGET_REQUESTS=5", **who)
    assert len(server.log) == 5
    said = run(tmp_path, *words, "-s", "FOCUS_BUDGET_REQUESTS=20", **who)
    assert "'focus/reward': 5.0" in said
    assert not any(request.path == "/logout" for request in server.log)
    refused = run(tmp_path, *words[:-2], SITE_USER="me", SITE_PASSWORD="wrong")
    assert "Spider closed (login_failed)" in refused


def test_metrics_file_has_the_documented_metrics(tmp_path: Path, server: SiteServer) -> None:
    """The table names each metric, and no other; some exist only in crawls with failures or errors."""
    run(
        tmp_path, "focus-files", server.url, "--types", "csv", "--budget", "50", "--metrics-file", "crawl.prom",
        "-s", f"DEFAULT_REQUEST_HEADERS={{\"Cookie\": \"{COOKIE}\"}}",
    )  # fmt: skip
    values = dict(line.rsplit(" ", 1) for line in (tmp_path / "crawl.prom").read_text().splitlines())
    written = {name.partition("{")[0]: value for name, value in values.items() if not name.startswith("#")}
    page = (ROOT / "docs" / "how-to" / "server.rst").read_text()
    table = page.partition("Prometheus\n====")[2].partition("Useful alerts")[0]
    documented = {
        name for row in re.findall(r"^``focus_.*?  ", table, re.MULTILINE) for name in re.findall(r"\w+", row)
    }
    rare = {"focus_failed_connections_total", "focus_errors_total", "focus_expected_finds"}
    assert written.keys() - rare == documented - rare
    assert rare <= documented
    assert written["focus_finds_total"] == "5"
    assert written["focus_requests_total"] == str(len(server.log))
