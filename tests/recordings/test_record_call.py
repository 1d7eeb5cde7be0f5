"""``record()``: a site in one call, from whatever there is of it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import ConfigError, RecordingError, record
from scrapy_focus.lab.recordings.importers.folder import FolderImporter
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer
from tests.made import HANG

if TYPE_CHECKING:
    from pathlib import Path

#: What a cell of a notebook does: an event loop runs, and Twisted's reactor is installed already.
NOTEBOOK = """
import asyncio, sys
import twisted.internet.reactor
from scrapy_focus import record

async def cell():
    for budget in (20, 20, 30):
        site = record(sys.argv[1], sys.argv[2], budget=budget, settings={"DOWNLOAD_DELAY": 0})
        print(site.completeness().recorded, site.meta["roots"] == [sys.argv[1]])

asyncio.run(cell())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a site."""
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "index.html").write_text("<a href='a.csv'>a</a> <a href='b.html'>b</a>")
    (copy / "b.html").write_text("<p>")
    (copy / "a.csv").write_text("1,2\n")
    return copy


def test_a_live_site_is_recorded_while_an_event_loop_runs(tmp_path: Path) -> None:
    """The budget counts all URLs of the recording: the same call makes no request, and a larger one resumes."""
    with SiteServer(StatisticsPortal(pages=200, endless=False)) as server:
        words = [sys.executable, "-W", "error", "-c", NOTEBOOK, server.url, str(tmp_path / "site.sqlite")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=HANG, check=False)
        requests = server.requests
    assert done.stdout == "20 True\n20 True\n30 True\n", done.stderr
    assert requests <= 32, "robots.txt for each of two crawls, besides"


def test_a_site_without_a_response_is_an_error_of_one_line(tmp_path: Path) -> None:
    """It names the reason."""
    with SiteServer(StatisticsPortal(pages=200)) as server:
        url = server.url
    with pytest.raises(RecordingError, match="no response: DownloadConnectionRefusedError") as said:
        record(url, tmp_path / "site.sqlite", settings={"DOWNLOAD_DELAY": 0, "RETRY_TIMES": 0})
    assert "\n" not in str(said.value)


def test_copies_of_a_site_are_recorded_here(folder: Path, tmp_path: Path) -> None:
    """A folder, an importer and a synthetic site need no other process; a second call reads nothing anew."""
    site = record(folder, tmp_path / "folder.sqlite", root="http://localhost/index.html")
    assert list(site.urls) == [f"http://localhost/{name}" for name in ("index.html", "a.csv", "b.html")]
    assert record(str(folder), tmp_path / "folder.sqlite", budget=2).completeness().recorded == 3
    assert record(FolderImporter(folder), tmp_path / "importer.sqlite").n_urls == 3
    part = record(StatisticsPortal(pages=200), tmp_path / "portal.sqlite", budget=25)
    assert (part.completeness().recorded, part.completeness().finished) == (25, False)
    more = record(StatisticsPortal(pages=200), tmp_path / "portal.sqlite", budget=40, root="http://localhost/")
    assert more.completeness().recorded == 40


def test_bodies_are_kept_where_they_are_asked_for(folder: Path, tmp_path: Path) -> None:
    """As ``--bodies``."""
    assert record(folder, tmp_path / "site.sqlite", bodies=True).body(2) == b"<p>"


@pytest.mark.parametrize(
    ("source", "given", "message"),
    [
        ("www.example.org", {}, "no such folder or file; write a URL with its scheme, https://www.example.org"),
        ("nowhere", {}, "there is no such folder or file$"),
        ("crawl.warc.gz", {}, "there is no such folder or file$"),
        ([], {}, r"record\(\[\]\): give a URL, a folder, WARC files"),
        (3, {}, "give a URL, a folder, WARC files"),
        ("https://example.org/", {"budget": 0}, "give at least 1 URL, or None for all"),
        ("https://example.org/", {"root": "https://example.org/a"}, "a live site starts at its source"),
        (StatisticsPortal(pages=200), {"settings": {"DOWNLOAD_DELAY": 0}}, "the source is a copy of one"),
        (StatisticsPortal(pages=200), {}, "this site is endless; give a budget, or make it with endless=False"),
    ],
)
def test_what_cannot_be_recorded_is_said(tmp_path: Path, source: Any, given: dict[str, Any], message: str) -> None:
    """Each error says what to give, and nothing is written."""
    with pytest.raises(ConfigError, match=message):
        record(source, tmp_path / "site.sqlite", **given)
    assert not list(tmp_path.iterdir())


def test_a_file_holds_one_source(folder: Path, tmp_path: Path) -> None:
    """A recording of another source is left alone."""
    path = tmp_path / "site.sqlite"
    record(folder, path)
    before = path.read_bytes()
    with pytest.raises(RecordingError, match=r"holds the folder .*, not StatisticsPortal\(.*name another file"):
        record(StatisticsPortal(pages=200), path, budget=25)
    assert path.read_bytes() == before
