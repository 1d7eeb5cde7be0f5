"""Sites that lie in a folder: answered as a web server would, and recorded without a network."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from recordings import leads_to

from profiles.profiles import PROFILES, ProfileSite
from scrapy_focus.core.errors import RecordingError
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.base import record
from scrapy_focus.lab.recordings.importers.folder import FolderImporter, FolderSite, record_site
from scrapy_focus.lab.sites.portal.portal import Page, StatisticsPortal

if TYPE_CHECKING:
    from pathlib import Path

HOME = "http://localhost/index.html"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A site with a sub-folder, a compressed page, a file, dead links and links out of the folder."""
    root = tmp_path / "site"
    (root / "sub").mkdir(parents=True)
    (root / "index.html").write_text(
        "<a href=sub>sub</a> <a href=zipped.html>z</a> <a href='data.CSV?x=1'>d</a> <a href=gone.html>g</a> "
        "<a href=unknown.xyz>u</a> <a href=out.txt>o</a> <a href='http://elsewhere.net/'>e</a> "
        "<a href='http://localhost:81/'>p</a> <a href='a%20b%C3%A9.txt'>s</a>"
    )
    (root / "sub" / "index.html").write_text("<a href=../index.html>up</a> <a href=.>self</a>")
    (root / "zipped.html.gz").write_bytes(gzip.compress(b"<a href=/sub/>sub</a>"))
    (root / "data.CSV").write_text("1,2")
    (root / "unknown.xyz").write_text("?")
    (root / "a bé.txt").write_text("text")
    (tmp_path / "secret.txt").write_text("secret")
    (root / "out.txt").symlink_to(tmp_path / "secret.txt")
    return root


def test_a_folder_is_answered_as_by_a_server(folder: Path) -> None:
    """Types by suffix, index pages behind a redirect, nothing from outside of the folder."""
    site = FolderSite(folder)
    answers = {
        path: (page.status, page.mime, page.location)
        for path in (
            "/",
            "/sub",
            "/sub?q",
            "/sub/",
            "/zipped.html",
            "/data.CSV",
            "/unknown.xyz",
            "/out.txt",
            "/x",
            "/x/",
        )
        for page in [site.fetch(path)]
    }
    assert answers == {
        "/": (200, "text/html", None), "/sub": (301, "text/html", "/sub/"), "/sub?q": (301, "text/html", "/sub/?q"),
        "/sub/": (200, "text/html", None), "/zipped.html": (200, "text/html", None), "/data.CSV": (200, "text/csv", None),
        "/unknown.xyz": (200, "application/octet-stream", None), "/out.txt": (404, "text/plain", None),
        "/x": (404, "text/plain", None), "/x/": (404, "text/plain", None),
    }  # fmt: skip
    assert site.fetch("/../secret.txt").status == site.fetch("/%2e%2e/secret.txt").status == 404
    assert site.fetch("/index.html/").status == site.fetch("/\0").status == site.fetch("/" + "x" * 5000).status == 404
    inside_tree = FolderSite(folder, tree=folder.parent)
    assert inside_tree.fetch("/out.txt").body == b"secret"
    assert inside_tree.fetch("/../secret.txt").status == 404, "the folder is left by symbolic links only"
    assert FolderSite(folder, types={".xyz": "text/plain"}).fetch("/unknown.xyz").mime == "text/plain"


def test_a_folder_is_recorded(folder: Path, tmp_path: Path) -> None:
    """Everything that its pages link to is recorded, with the headers that a server would send."""
    counts: list[int] = []
    done = record(FolderImporter(folder), tmp_path / "new" / "site.sqlite", bodies=True, progress=counts.append)
    site = RecordedSite(tmp_path / "new" / "site.sqlite")
    answered = {url: int(site.status[page]) for page, url in enumerate(site.urls)}
    assert answered == {
        HOME: 200, "http://localhost/sub": 301, "http://localhost/zipped.html": 200, "http://localhost/data.CSV?x=1": 200,
        "http://localhost/gone.html": 404, "http://localhost/unknown.xyz": 200, "http://localhost/out.txt": 404,
        "http://localhost:81/": 0, "http://localhost/a%20b%C3%A9.txt": 200, "http://localhost/sub/": 200,
    }  # fmt: skip
    assert (done.recorded, done.missing, done.finished) == (9, 1, True), "another port is another server"
    assert counts == list(range(1, 10))
    assert site.headers(3) == {"Content-Type": "text/csv", "Content-Length": "3"}
    assert site.headers(1) == {"Content-Type": "text/html", "Content-Length": "0", "Location": "/sub/"}
    assert leads_to(site, "http://localhost/zipped.html") == ["http://localhost/sub/"]
    assert site.text(2) == "<a href=/sub/>sub</a>"
    assert site.meta["source"] == f"the folder {folder}"
    assert record(FolderImporter(folder), tmp_path / "new" / "site.sqlite") == done, "again: nothing is left to do"


def test_a_root_behind_a_redirect(folder: Path, tmp_path: Path) -> None:
    """The root may be a folder, on any host."""
    record(FolderImporter(folder), tmp_path / "site.sqlite", root="http://example.org/sub")
    site = RecordedSite(tmp_path / "site.sqlite")
    assert site.urls[:3] == [
        "http://example.org/sub", "http://example.org/sub/", "http://example.org/index.html",
    ]  # fmt: skip


def test_a_folder_without_a_root_page(folder: Path, tmp_path: Path) -> None:
    """The error names the pages that there are, those near the top first, and no file is made."""
    path = tmp_path / "site.sqlite"
    expected = (
        f"{folder.parent} has no HTML page /index.html, for the root {HOME}: start at one that exists, as "
        "root=http://localhost/site/index.html, http://localhost/site/sub/index.html"
    )
    with pytest.raises(RecordingError) as raised:
        record(FolderImporter(folder.parent), path)
    assert str(raised.value).startswith(expected)
    assert str(raised.value).endswith(f"; or name the folder {folder}")
    for root in ("http://localhost/data.CSV", "http://localhost/gone.html", "http://localhost/out.txt"):
        with pytest.raises(RecordingError, match=r"as root=http://localhost/index.html"):
            record(FolderImporter(folder), path, root=root)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordingError, match="no other HTML page either"):
        record(FolderImporter(tmp_path / "empty"), path)
    for nothing in (tmp_path / "nothing", folder / "data.CSV"):
        with pytest.raises(RecordingError, match="there is no folder"):
            record(FolderImporter(nothing), path)
    assert not path.exists()


@pytest.mark.parametrize("suffix", ["", ".html"])
@pytest.mark.parametrize("mark", ["?", "@"])
def test_what_wget_mirrors_is_recorded_as_the_site_was(tmp_path: Path, suffix: str, mark: str) -> None:
    """Pages without a suffix are pages, queries are in the names of files; with ``--adjust-extension`` or without."""
    mirror = tmp_path / "www.example.org"
    (mirror / "news").mkdir(parents=True)
    pages = {
        "index.html": "<a href='/news?page=1&amp;sort=a%2Fb'>n</a> <a href='/contact?x=1'>c</a> <a href='/?page=2'>2</a>",
        f"news{mark}page=1&sort=a%2Fb{suffix}": "<a href='/news/first'>f</a> <a href='/gone?page=9'>gone</a>",
        f"news/first{suffix}": "<a href='/table'>t</a> <a href='/get?id=3'>g</a>",
        f"contact{suffix}": "<a href='/'>home</a>",
        f"index.html{mark}page=2{suffix}": "<a href='/list.csv'>l</a>",
    }
    for name, text in pages.items():
        (mirror / name).write_text(f"\n<!-- x --><!DOCTYPE html>\n{text}")
    (mirror / "table").write_text("1,2")
    (mirror / f"get{mark}id=3").write_text("<p>no page</p>")
    (mirror / "list.csv").write_text("<html>")
    record(FolderImporter(mirror), tmp_path / "site.sqlite", root="https://www.example.org/")
    site = RecordedSite(tmp_path / "site.sqlite")
    answered = {
        url.removeprefix("https://www.example.org"): mime for url, mime in zip(site.urls, site.mimes, strict=True)
    }
    page, other = "text/html", "application/octet-stream"
    assert answered == {
        "/": page, "/news?page=1&sort=a%2Fb": page, "/contact?x=1": page, "/?page=2": page, "/news/first": page,
        "/gone?page=9": "text/plain", "/table": other, "/get?id=3": other, "/list.csv": "text/csv",
    }  # fmt: skip
    assert leads_to(site, "https://www.example.org/?page=2") == ["https://www.example.org/list.csv"]


def test_files_that_cannot_be_read(folder: Path, tmp_path: Path) -> None:
    """They are answered with an error as a server would answer them, and the rest is recorded."""
    (folder / "zipped.html.gz").write_bytes(b"no gzip")
    done = record(FolderImporter(folder), tmp_path / "site.sqlite")
    site = RecordedSite(tmp_path / "site.sqlite")
    assert site.status[site.ids["http://localhost/zipped.html"]] == 500
    assert done.missing == 1


@pytest.mark.slow
def test_a_made_up_portal_is_recorded(tmp_path: Path) -> None:
    """What answers without a network is recorded; a site that never ends, up to a limit and unfinished."""
    portal = StatisticsPortal(pages=200)
    done = record_site(portal, tmp_path / "site.sqlite", root="http://localhost", limit=1500)
    assert (done.recorded, done.finished) == (1500, False)
    more = record_site(portal, tmp_path / "site.sqlite", root="http://localhost/", limit=10)
    assert more.recorded == 1510
    site = RecordedSite(tmp_path / "site.sqlite")
    assert {f"http://localhost{path}" for path in portal.targets()} <= set(site.urls)
    assert site.meta["source"] == "StatisticsPortal(pages=200, seed=0)"


@pytest.mark.slow
def test_a_site_with_a_profile_is_recorded_whole(tmp_path: Path) -> None:
    """Nothing is missing from a recording of a site that ends."""
    site = ProfileSite(PROFILES["justice"], scale=0.02)
    done = record_site(site, tmp_path / "site.sqlite", root="http://localhost/")
    assert done.finished
    assert not done.missing


def test_a_path_with_two_slashes(tmp_path: Path) -> None:
    """The path that is asked for is that of the URL."""
    asked = []

    class Asked:
        def fetch(self, path: str) -> Page:
            asked.append(path)
            return Page.of(b"<a href='http://localhost//x//y?#z'>x</a> <a href='?q=/'>q</a>")

    record_site(Asked(), tmp_path / "site.sqlite", root="http://localhost")
    assert asked == ["/", "//x//y", "/?q=/", "//x//y?q=/"]
