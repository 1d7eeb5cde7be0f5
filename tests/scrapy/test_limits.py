"""Limits on what a crawl reads: bombs, endless files and robots.txt are cut off, and that is reported."""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import brotli
import pytest
from crawls import Follower, crawl
from forked import run as run_forked
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scrapy.http import Response
from scrapy.robotstxt import ProtegoRobotParser

from scrapy_focus.engine.inflight import ResponsePage
from scrapy_focus.goals.files import FilesGoal
from tests.examples import n_examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mocksite import MockSite
    from scrapy.crawler import Crawler

PROJECT = Path(__file__).parents[2] / "example_project"
KIB, MIB = 1024, 1024 * 1024
CSV = {"Content-Type": "text/csv"}
PLAIN = {"Content-Type": "text/plain"}
CALM = ["-s", "DOWNLOAD_DELAY=0", "-s", "TELNETCONSOLE_ENABLED=0", "-s", "REMOTE_CONTROL_ENABLED=0"]
# A process begins with the peak of the one that started it, and the one that runs the tests is large.
WEIGHED = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


def zeros(n: int, head: bytes = b"") -> bytes:
    """Return so many MiB of zeros, after something else, as gzip."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([squeeze.compress(head), *(squeeze.compress(bytes(MIB)) for _ in range(n)), squeeze.flush()])


class Run(NamedTuple):
    """What a crawl of ``datasets`` left."""

    status: int
    log: str
    resident: int  # bytes, at most; 0 unless it was weighed
    out: Path

    def lines(self, name: str) -> list[dict[str, Any]]:
        path = self.out / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def datasets(site: MockSite, folder: Path, *more: str, weighed: bool = False) -> Run:
    """Crawl a site with the spider of the example project, in a separate process; a fork unless memory is measured."""
    out, log = folder / "out", folder / "log"
    command = [sys.executable, "-m", "scrapy", "crawl", "datasets", "-a", f"root={site.url('/')}", "-a", f"out={out}"]
    env = {**os.environ, "PYTHONPATH": str(PROJECT.parent)}
    words = [*command, *CALM, *more]
    with log.open("w") as file:
        given: dict[str, Any] = {"cwd": PROJECT, "env": env, "stdout": subprocess.PIPE, "stderr": file, "text": True}
        if not weighed:
            return Run(run_forked(words, **given).returncode, log.read_text(), 0, out)
        done = subprocess.run([sys.executable, "-c", WEIGHED, *words], check=False, **given)
    return Run(done.returncode, log.read_text(), int(done.stdout.split()[-1]) * KIB, out)


def serve_files(site: MockSite, *bad: str) -> None:
    """Let the first page link to bad files, and to three good ones."""
    names = [*bad, *(f"/good{i}.csv" for i in range(3))]
    site.pages["/"] = "".join(f'<a href="{name}">{name[1:]}</a>' for name in names)
    for i in range(3):
        site.answers[f"/good{i}.csv"] = lambda n, i=i: (200, CSV, b"a,b\n%d,1\n" % i)  # type: ignore[misc]


def test_bombs_are_skipped_and_said(site: MockSite, tmp_path: Path) -> None:
    """Three answers of a quarter of a megabyte, which inflate to a quarter of a gigabyte each, at once."""
    serve_files(site, "/bomb0.csv", "/bomb1.csv", "/bomb2.csv")
    bomb = zeros(256)
    assert len(bomb) < 300_000
    for i in range(3):
        site.answers[f"/bomb{i}.csv"] = lambda n: (200, {**CSV, "Content-Encoding": "gzip"}, bomb)
    run = datasets(site, tmp_path, "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=8", weighed=True)
    assert run.status == 0
    assert run.resident < 300e6
    assert len(run.lines("manifest.jsonl")) == 3
    skipped = {line.pop("url"): line for line in run.lines("skipped.jsonl")}
    assert skipped == {
        site.url(f"/bomb{i}.csv"): {
            "reason": f"{len(bomb):,} bytes inflate to more than {100 * len(bomb):,}",
            "page": site.url("/"), "anchor": f"bomb{i}.csv",
        }
        for i in range(3)
    }  # fmt: skip
    assert "3 files were skipped" in run.log
    assert "3 answers skipped as too large" in run.log
    assert "'focus/outcome/too_large': 3" in run.log
    assert "ERROR" not in run.log


@pytest.mark.few(1)
@pytest.mark.parametrize("announced", [True, False])
def test_files_above_the_limit_are_skipped_and_said(site: MockSite, tmp_path: Path, announced: bool) -> None:
    """Whether a server sends the size or not; a second crawl with the folder reports it again, and lists it once."""
    serve_files(site, "/large.csv")
    unknown = {} if announced else {"Content-Length": ""}
    site.answers["/large.csv"] = lambda n: (200, {**CSV, **unknown}, bytes(3 * MIB))
    for number in (1, 2):
        run = datasets(site, tmp_path, "-s", f"DOWNLOAD_MAXSIZE={MIB}")
        [line] = run.lines("skipped.jsonl")
        assert line["url"] == site.url("/large.csv")
        assert line["reason"] == f"larger than DOWNLOAD_MAXSIZE, {MIB:,} bytes"
        assert len(run.lines("manifest.jsonl")) == 3 * number
        assert "1 file was skipped" in run.log


def test_files_that_compress_well_are_kept(site: MockSite, tmp_path: Path) -> None:
    """A body that inflates to a thousand times its size is allowed below ten megabytes."""
    serve_files(site, "/sparse.csv")
    site.answers["/sparse.csv"] = lambda n: (200, {**CSV, "Content-Encoding": "gzip"}, zeros(9))
    run = datasets(site, tmp_path)
    assert max(line["size"] for line in run.lines("manifest.jsonl")) == 9 * MIB
    assert run.lines("skipped.jsonl") == []


@pytest.mark.few(1)
@pytest.mark.reactor
@pytest.mark.parametrize(("limit", "passes"), [(None, True), (0, True), (20, False), (2000, True)])
def test_the_ratio_is_a_setting(site: MockSite, limit: float | None, passes: bool) -> None:
    """A project that did not ask for it has none."""
    site.answers["/"] = lambda n: (200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, zeros(12, b"<p>"))
    chosen = {} if limit is None else {"FOCUS_MAX_INFLATION": limit}
    result = crawl(Follower, chosen, addon=True, seeds=[site.url("/")])
    assert result.outcomes == ({"ok": 1} if passes else {"too_large": 1})


@pytest.mark.reactor
@pytest.mark.parametrize("addon", [False, True])
def test_bytes_count_as_they_came(site: MockSite, addon: bool) -> None:
    """A budget of bytes counts a compressed body by its size on the network, not after inflation."""
    body = gzip.compress(b"<p>" + bytes(MIB))
    site.answers["/"] = lambda n: (200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, body)
    result = crawl(Follower, {}, addon=addon, seeds=[site.url("/")])
    assert len(body) < result.stats["focus/bytes"] < len(body) + 300


# robots.txt


class Reading(ProtegoRobotParser):
    """Notes how much it is given to read."""

    read: ClassVar[list[int]] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> Reading:
        if robotstxt_body:
            cls.read.append(len(robotstxt_body))
        return super().from_crawler(crawler, robotstxt_body)


@pytest.mark.reactor
@pytest.mark.parametrize("encoding", ["", "gzip", "br"])
def test_a_long_robots_txt_is_read_to_500_kib(site: MockSite, encoding: str) -> None:
    """The rules in them hold, the rest is not read, however it is sent."""
    body = b"User-agent: *\nDisallow: /forbidden\n" + b"# nothing of use\n" * (11 * MIB // 17)
    coded = {"gzip": gzip.compress, "br": lambda data: brotli.compress(data, quality=1), "": bytes}[encoding](body)
    site.answers["/robots.txt"] = lambda n: (
        200,
        {**PLAIN, **({"Content-Encoding": encoding} if encoding else {})},
        coded,
    )
    site.pages["/"] = '<a href="/forbidden">no</a><a href="/ok">yes</a>'
    Reading.read.clear()
    options = {"ROBOTSTXT_OBEY": True, "ROBOTSTXT_PARSER": Reading, "FOCUS_OBEY": ["robots-errors"]}
    options["DOWNLOAD_MAXSIZE"] = 5 * MIB  # of pages: a longer robots.txt is cut, and does not close its host
    result = crawl(Follower, options, addon=True, seeds=[site.url("/")])
    assert site.paths == ["/", "/ok"]
    assert len(Reading.read) == 1
    assert 400 * KIB < Reading.read[0] <= 500 * KIB
    assert result.stats["focus/bytes"] < 2 * MIB


# Feeds and names


def test_feeds_have_every_file_and_no_body(site: MockSite, tmp_path: Path) -> None:
    """In each format a file is a line, with its path."""
    serve_files(site)
    feeds = [tmp_path / f"items.{kind}" for kind in ("jsonl", "json", "csv", "xml")]
    run = datasets(site, tmp_path, *(word for feed in feeds for word in ("-o", str(feed))))
    assert run.status == 0
    assert "Traceback" not in run.log
    expected = {(line["url"], line["sha256"], line["path"]) for line in run.lines("manifest.jsonl")}
    assert len(expected) == 3
    lines = [json.loads(line) for line in feeds[0].read_text().splitlines()]
    for items in (lines, json.loads(feeds[1].read_text()), list(csv.DictReader(feeds[2].open()))):
        assert {(item["url"], item["sha256"], item["path"]) for item in items} == expected
        assert not any("body" in item or "content" in item for item in items)
    assert feeds[3].read_text().count("<item>") == 3


@pytest.fixture(scope="module")
def _project() -> Iterator[None]:
    sys.path.insert(0, str(PROJECT))
    yield
    sys.path.remove(str(PROJECT))


def name_of(header: str | bytes, url: str = "http://h/from/url.csv") -> str:
    """Return the name of a file with this ``Content-Disposition``."""
    from scrapy_focus.finders.files.spider import file_name

    value = header if isinstance(header, bytes) else header.encode("utf-8", "surrogatepass")
    return str(file_name(Response(url, headers={"Content-Disposition": value}), "text/csv"))


@pytest.mark.usefixtures("_project")
@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("attachment; filename=x.csv", "x.csv"),
        ("attachment; filename*=UTF-8''na%C3%AFve.csv", "naïve.csv"),
        ("attachment; filename*=idna''x.csv", "url.csv"),
        ("attachment; filename*=undefined''x.csv", "url.csv"),
        ("attachment; filename*=rot13''x.csv", "x.csv"),
        ("attachment; filename*=nonsense''x%FF.csv", "xÿ.csv"),
        ("attachment; filename*0*=idna''x; filename*1=y.csv", "url.csv"),
        ("attachment; filename=../../etc/passwd", "passwd.csv"),
        ("", "url.csv"),
        ("attachment; filename=report.html", "report.html.csv"),
        ("attachment; filename=Report.SVG", "Report.SVG.csv"),
        ("attachment; filename=report.exe", "report.exe.csv"),
        ("attachment; filename=report.txt", "report.txt"),
        ('attachment; filename="Übersicht.csv"', "Übersicht.csv"),
        ('attachment; filename="Übersicht.csv"'.encode("latin-1"), "Übersicht.csv"),
        ('attachment; filename="Vœux.csv"'.encode("cp1252"), "Vœux.csv"),
        ('attachment; filename="統計.csv"'.encode("shift_jis"), "v.csv"),
        ("attachment; filename=\"fallback.csv\"; filename*=UTF-8''%C3%9C%20rates.csv", "Ü rates.csv"),
        ("attachment; filename*=UTF-8''%c3%9c2%20rates.csv; filename=fallback.csv", "Ü2 rates.csv"),
        ("attachment; filename=plain.csv; filename*=idna''x.csv", "plain.csv"),
        ("attachment; filename*=%C3%9Cber.csv", "Über.csv"),
        ("filename*=UTF-8''%C3%9Cber.csv", "Über.csv"),
        ('attachment; filename="=?UTF-8?B?w5xiZXJzaWNodC5jc3Y=?="', "Übersicht.csv"),
        ('attachment; filename="=?iso-8859-1?Q?=DCbersicht=2Ecsv?="', "Übersicht.csv"),
        ('attachment; filename="=?undefined?Q?x?=.csv"', "url.csv"),
        ('attachment; filename="annual%20report%202026.csv"', "annual report 2026.csv"),
        ('attachment; filename="100%25.csv"', "100_.csv"),
        ('attachment; filename="%DCber%.csv"', "DCber_.csv"),
        ('attachment; filename="..%2F..%2Fpasswd.csv"', "passwd.csv"),
        ("attachment; filename='single.csv'", "single.csv"),
        ('attachment; filename="a;b.csv"; size=10', "a_b.csv"),
        ('attachment; filename="the \\"best\\".csv"', "the _best_.csv"),
        ('attachment; filename="C:\\data\\win.csv"', "win.csv"),
        ('attachment; filename*0="part1"; filename*1="part2.csv"', "part1part2.csv"),
        ('attachment; filename="..pdf"', "url.pdf"),
        ('attachment; filename=""', "url.csv"),
        ('attachment; filename="con.csv"', "_con.csv"),
    ],
)
def test_a_file_has_a_name_whatever_its_server_says(header: str, name: str) -> None:
    """The name in the header if readable, else the end of the URL."""
    assert name_of(header) == name


@pytest.mark.parametrize(
    "header",
    [
        b"attachment; filename*=UTF-8''prices.csv",
        b"attachment; filename=download; filename*=UTF-8''prices.csv",
        'attachment; filename="Übersicht.csv"'.encode("latin-1"),
        b'attachment; filename="=?UTF-8?B?w5xiZXJzaWNodC5jc3Y=?="',
        b"attachment; filename='single.csv'",
        b'attachment; filename="rates #1.csv"',
    ],
)
def test_a_name_tells_what_a_file_is(header: bytes) -> None:
    """A body that only its name identifies as CSV is a file, however the name is written."""
    headers = {"Content-Type": "application/octet-stream", "Content-Disposition": header}
    page = ResponsePage(Response("http://h/get/1", headers=headers, body=b"1"))
    assert FilesGoal(types=["csv"]).finds("application/octet-stream", page.url, page)


CHARSETS = st.sampled_from(
    ["utf-8", "idna", "undefined", "punycode", "zlib", "rot13", "unicode_escape", "mbcs", "\0", "x" * 99]
)
HEADERS = st.one_of(
    st.binary(max_size=80),
    st.text(max_size=80),
    st.builds("attachment; filename*={}'{}'{}".format, CHARSETS, st.text(max_size=3), st.text(max_size=30)),
    st.builds(
        "attachment; filename*0*={}''{}; filename*1={}".format, CHARSETS, st.text(max_size=9), st.text(max_size=9)
    ),
)


@pytest.mark.slow
@pytest.mark.usefixtures("_project")
@settings(max_examples=n_examples(500), deadline=None)
@given(HEADERS)
@example("attachment; filename*=idna''x.csv")
@example(b"attachment; filename=\r\n \xff")
def test_any_header_gives_a_name(header: str | bytes) -> None:
    """A name is never empty, has no folder and nothing that cannot be printed, and fits into a file system."""
    name = name_of(header)
    assert name
    assert "/" not in name
    assert "\\" not in name
    assert name not in (".", "..")
    assert name.isprintable()
    assert len(name.encode()) <= 160
