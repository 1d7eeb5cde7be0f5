"""A page that lists the crawls in a folder of folders."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from crawls import crawl
from lxml import html

from scrapy_focus.__main__ import main
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.important.spider import ImportantSpider
from scrapy_focus.finders.outputs import write_report

if TYPE_CHECKING:
    from pathlib import Path

    from mocksite import MockSite

ODD = "<b onclick=alert(1)>a & b: javascript"


@pytest.fixture
def folder(site: MockSite, tmp_path: Path) -> Path:
    """A folder with a crawl that ended, an odd one, a damaged one, a file, and an empty folder."""
    site.pages["/"] = '<a href="/a.csv">a</a> <a href="/b.csv">b</a>'
    for name in "ab":
        site.answers[f"/{name}.csv"] = lambda _, name=name: (200, {"Content-Type": "text/csv"}, name.encode())  # type: ignore[misc]
    crawl(DatasetsSpider, {}, addon=True, root=site.url("/"), types="csv", out=str(tmp_path / "files"), budget="9")
    crawl(ImportantSpider, {}, addon=True, root=site.url("/"), out=str(tmp_path / ODD), budget="2")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "manifest.jsonl").write_text("<script>\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    return tmp_path


def test_each_crawl_is_listed(site: MockSite, folder: Path) -> None:
    """With what it looked for and found, what it cost, how it ended, and a link to its page."""
    (folder / "files" / "index.html").unlink()
    page = write_report(folder)
    assert page == folder / "index.html"
    text = page.read_text()
    tree = html.fromstring(text)
    cards = {card.findtext(".//h2/bdi") or card.findtext(".//h2//a"): card for card in tree.iterfind(".//ul/li")}
    assert sorted(map(str, cards)) == sorted([ODD, "damaged", "files"])
    said = " ".join(cards["files"].text_content().split())
    for fact in (
        "Looked for csv",
        site.url("/").removeprefix("http://"),
        "Found 2 files",
        "Sent 3 requests",
        "Done: 2",
    ):
        assert fact in said
    assert "Found 1 page " in " ".join(cards[ODD].text_content().split())
    assert "It cannot be read: line 1" in cards["damaged"].text_content()
    assert "3 crawls, 3 finds, 4 requests." in tree.findtext(".//header/p")
    links = [a.get("href") for a in tree.iterfind(".//h2//a")]
    assert len(links) == 2
    for link in links:
        assert (folder / unquote(link)).is_file(), "a missing page is written"
        assert ":" not in link
    assert not tree.xpath("//script | //b | //*[@onclick]")
    policy = tree.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")[0]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy
    assert write_report(folder) == page, "it is written again"


def test_a_page_of_someone_else_stays(folder: Path) -> None:
    """Such as the front page of a web server's folder."""
    (folder / "index.html").write_text("<h1>mine</h1>")
    with pytest.raises(ConfigError, match="was not written by focus report, and stays"):
        write_report(folder)
    assert (folder / "index.html").read_text() == "<h1>mine</h1>"


def test_a_folder_of_a_crawl_has_its_own_page(folder: Path) -> None:
    """Even if another crawl lies in it."""
    shutil.copytree(folder / "files", folder / "files" / "inner")
    assert "What was found on" in write_report(folder / "files").read_text()


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the path; a folder without crawls is an error that says what is missing."""
    for path, status, said in ((folder, 0, f"The results are in {folder / 'index.html'}"), (folder / "empty", 2, "")):
        with pytest.raises(SystemExit) as ended:
            main(["report", str(path)])
        assert (ended.value.code or 0) == status
        shown = capsys.readouterr()
        assert said in shown.out
        assert ("no folder in it has" in shown.err) == bool(status)
