"""A recording made from Scrapy's HTTP cache, by Scrapy itself."""

from __future__ import annotations

import gzip
import os
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from crawls import STOCK, Follower, crawl
from scrapy import Request

from scrapy_focus import FilesGoal
from scrapy_focus.core.errors import RecordingError
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.base import record
from scrapy_focus.lab.recordings.importers.httpcache import HttpCacheImporter
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.portal.portal import Page
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

FILES = "scrapy.extensions.httpcache.FilesystemCacheStorage"
DBM = "scrapy.extensions.httpcache.DbmCacheStorage"
STORAGES = [(FILES, False), (FILES, True), (DBM, False)]


class SmallSite:
    """A site with pages, files, a redirect at its root, a dead link, and a page that is sent compressed."""

    pages = {
        "/": Page.of(b"", status=302, location="/home"),
        "/home": Page.of(b"<a href=/about>a</a> <a href=/data.csv>d</a> <a href=/old>o</a> <a href=/missing>m</a>"),
        "/about": Page.of("<meta charset=utf-8><a href=/>größer</a>".encode()),
        "/old": Page.of(b"", status=301, location="/new"),
        "/new": Page.of(b"<a href=/data.csv?all>d</a>"),
        "/data.csv": Page.of(b"year,value\n", mime="text/csv"),
        "/data.csv?all": Page.of(b"year,value\n2024,1\n", mime="text/csv"),
    }

    def fetch(self, path: str) -> Page:
        return self.pages.get(path) or Page.of(b"not here", status=404)


class Asker(Follower):
    """Also sends a HEAD and a POST, which are stored as well; DBM storages do not mark the POST."""

    posts = True

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield Request(request.url + "about", method="HEAD", priority=9)
            if self.posts:
                yield Request(request.url + "data.csv", method="POST", body=b"x", priority=9)
            yield request


def fill(folder: Path, storage: str = FILES, *, gzipped: bool = False, name: str = "follower") -> str:
    """Crawl the small site with the cache on; return its root."""
    settings = {
        "SCHEDULER": STOCK, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(folder), "HTTPCACHE_STORAGE": storage,
        "HTTPCACHE_GZIP": gzipped, "CONCURRENT_REQUESTS": 1,
    }  # fmt: skip
    with SiteServer(SmallSite()) as server:
        done = crawl(type("Named", (Asker,), {"name": name, "posts": storage != DBM}), settings, seeds=[server.url])
        assert done.reason == "finished"
        return server.url


@pytest.fixture(params=STORAGES, ids=["files", "gzipped", "dbm"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A cache of each kind, and the root of the site."""
    storage, gzipped = request.param
    return tmp_path / "httpcache", fill(tmp_path / "httpcache", storage, gzipped=gzipped)


def test_a_cache_is_recorded(cache: tuple[Path, str], tmp_path: Path) -> None:
    """Each URL has its response to the GET; the recording starts where the crawl did, and can be replayed."""
    folder, root = cache
    counts: list[int] = []
    done = record(HttpCacheImporter(folder), tmp_path / "site.sqlite", bodies=True, progress=counts.append)
    site = RecordedSite(tmp_path / "site.sqlite")
    answered = {url.removeprefix(root): int(site.status[page]) for page, url in enumerate(site.urls)}
    assert answered == {
        "": 302, "home": 200, "about": 200, "data.csv": 200, "old": 301, "missing": 404, "new": 200, "data.csv?all": 200,
    }  # fmt: skip
    assert (done.recorded, done.missing, done.finished) == (8, 0, True)
    assert counts == list(range(1, len(counts) + 1))
    assert [site.urls[page] for page in site.roots] == [root]
    for page, url in enumerate(site.urls):
        answer = SmallSite().fetch("/" + url.removeprefix(root))
        assert (site.size[page], site.mimes[page]) == (answer.size, answer.mime)
        assert site.headers(page).get("Location") == answer.location
    assert "größer" in site.text(site.ids[f"{root}about"])
    assert simulate(BreadthFirst(), FilesGoal(), site).found[-1] == 2


def test_where_the_cache_is(cache: tuple[Path, str], tmp_path: Path) -> None:
    """The cache of the spider may be named, or a folder that holds it alone."""
    folder, root = cache
    spider = folder / "follower" if (folder / "follower").is_dir() else folder / "follower.db"
    assert record(HttpCacheImporter(spider), tmp_path / "named.sqlite", root=root).recorded == 8
    with pytest.raises(RecordingError, match=r"has no answer of http://example.org/; its first page is http://127"):
        record(HttpCacheImporter(spider), tmp_path / "other.sqlite", root="http://example.org/")
    assert not (tmp_path / "other.sqlite").exists()


def test_several_spiders(tmp_path: Path) -> None:
    """Of a folder with the caches of several spiders, the error names them."""
    fill(tmp_path / "httpcache", FILES, name="one")
    fill(tmp_path / "httpcache", DBM, name="two")
    with pytest.raises(RecordingError, match=r"several spiders: name one of .*httpcache/one, .*httpcache/two\.db$"):
        record(HttpCacheImporter(tmp_path / "httpcache"), tmp_path / "site.sqlite")
    assert record(HttpCacheImporter(tmp_path / "httpcache" / "two.db"), tmp_path / "site.sqlite").recorded == 8


def test_no_cache(tmp_path: Path) -> None:
    """A folder without a cache, no folder, and a file are errors that say what to name."""
    (tmp_path / "file").write_text("text")
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "file"):
        with pytest.raises(RecordingError, match=r"holds no HTTP cache of Scrapy: name the folder .scrapy/httpcache"):
            record(HttpCacheImporter(path), tmp_path / "site.sqlite")


@pytest.mark.parametrize("change", ["no body", "half a body", "no headers", "other meta", "no literal", "empty meta"])
def test_a_half_written_entry(change: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An incomplete entry of a kill is skipped, with a warning that names it; the rest is recorded."""
    fill(tmp_path / "httpcache", gzipped=change == "half a body")
    metas = (tmp_path / "httpcache").glob("*/??/*/meta")
    unpack = gzip.decompress if change == "half a body" else bytes
    meta = next(meta for meta in metas if b"/new'" in unpack(meta.read_bytes()))
    entry = meta.parent
    match change:
        case "no body":
            (entry / "response_body").unlink()
        case "half a body":
            (entry / "response_body").write_bytes((entry / "response_body").read_bytes()[:12])
        case "no headers":
            (entry / "response_headers").unlink()
        case "other meta":
            meta.write_text("{'timestamp': 1}")
        case "no literal":
            meta.write_text("__import__('os').abort()")
        case "empty meta":
            meta.write_text("")
    done = record(HttpCacheImporter(tmp_path / "httpcache"), tmp_path / "site.sqlite")
    assert (done.recorded, done.missing) == (7, 1)
    assert f"The cache entry {entry} cannot be read and is skipped" in caplog.text


def test_a_pickle_runs_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A DBM cache from somebody else is read without importing or calling the names in it."""
    import dbm

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f"touch {tmp_path / 'evil'}",)

    good = {"url": "http://a.org/", "status": 200, "body": b"<p>", "headers": {b"Content-Type": [b"text/html"]}}
    with dbm.open(str(tmp_path / "spider.db"), "c") as database:
        for number, fields in enumerate((good, {**good, "flags": Evil()}, Evil(), {**good, "headers": Evil()})):
            if isinstance(fields, dict):
                fields["url"] += str(number)
            database[f"{number}_time"] = str(number)
            database[f"{number}_data"] = pickle.dumps(fields)
        for number, broken in ((8, b"\x80\x04\x95" + b"\xff" * 8), (9, b"no pickle")):  # a frame of 16 EiB
            database[f"{number}_time"] = str(number)
            database[f"{number}_data"] = broken
    done = record(HttpCacheImporter(tmp_path / "spider.db"), tmp_path / "site.sqlite")
    assert not (tmp_path / "evil").exists()
    assert done.recorded == 2
    assert caplog.text.count("cannot be read and is skipped") >= 4


def test_headers_that_came_several_times(tmp_path: Path) -> None:
    """Compressed bodies are unpacked; a repeated header keeps both values, except that the last type counts."""
    entry = tmp_path / "spider" / "ab" / "abcd"
    entry.mkdir(parents=True)
    (entry / "meta").write_text(repr({"url": "http://a.org/", "method": "GET", "status": 200, "timestamp": 1.5}))
    lines = [
        b"Content-Type: text/plain", b"Set-Cookie: a=1", b"Set-Cookie: b=\xe9", b"Content-Encoding: gzip",
        b"Content-Type: text/html; charset=utf-8", b"",
    ]  # fmt: skip
    (entry / "response_headers").write_bytes(b"\r\n".join(lines))
    (entry / "response_body").write_bytes(gzip.compress(b"<a href=/b>b</a>"))
    record(HttpCacheImporter(tmp_path / "spider"), tmp_path / "site.sqlite")
    site = RecordedSite(tmp_path / "site.sqlite")
    assert site.urls == ["http://a.org/", "http://a.org/b"]
    assert site.headers(0) == {
        "Content-Type": "text/html; charset=utf-8", "Set-Cookie": "a=1, b=é", "Content-Encoding": "gzip",
    }  # fmt: skip
    assert site.size[0] == len(gzip.compress(b"<a href=/b>b</a>"))
