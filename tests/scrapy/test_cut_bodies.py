"""Bodies that contradict their headers: not encoded as declared, or incomplete."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any

import brotli
import pytest
from backports import zstd
from crawls import Crawled, Follower, crawl
from mocksite import MockSite

from scrapy_focus.engine.ending import ending_of
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.web.encodings import is_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress,
    "zstd": zstd.compress,
}  # fmt: skip


def table(name: str) -> bytes:
    """Return another table for each name: one content is stored once."""
    return b"a,b\n" + f"{name},1\n".encode() * 50


def serve(answers: dict[str, tuple[int, dict[str, str], bytes]]) -> MockSite:
    """Return a site with a page that links to these."""
    site = MockSite(pages={"/": "".join(f'<a href="{path}">{path}</a>' for path in answers)})
    for path, answer in answers.items():
        site.answers[path] = lambda _, answer=answer: answer  # type: ignore[misc]
    return site


def find(site: MockSite, out: Path, **more: str) -> Crawled:
    said = {"root": site.url("/"), "types": "csv", "out": str(out), **more}
    return crawl(DatasetsSpider, {"RETRY_TIMES": 1}, addon=True, **said)


def manifest(out: Path, crawl: int = 1) -> dict[str, dict[str, Any]]:
    """Return the lines of a crawl by the end of their URLs."""
    lines = map(json.loads, (out / "manifest.jsonl").read_text().splitlines())
    return {line["url"].rpartition("/")[2]: line for line in lines if line["crawl"] == crawl}


def test_what_is_stored_is_what_a_browser_would_save(tmp_path: Path) -> None:
    """A body is decoded if it is encoded as declared, and otherwise stored unchanged; wrong encodings are counted."""
    wrong = ("gzip", "deflate", "br", "zstd", "UTF-8", "aws-chunked")
    bodies = {name: (name, pack(table(name))) for name, pack in PACKERS.items()}
    bodies |= {f"no-{said}": (said, table(f"no-{said}")) for said in (*wrong, "none", "identity", "")}
    bodies["twice"] = "gzip, gzip", gzip.compress(gzip.compress(table("twice")))
    bodies["raw"] = "deflate", zlib.compress(table("raw"))[2:-4]
    bodies["padded"] = "gzip", gzip.compress(table("padded")) + bytes(20)
    answers = {
        f"/{name}.csv": (200, {"Content-Type": "text/csv", "Content-Encoding": said}, body)
        for name, (said, body) in bodies.items()
    }
    with serve(answers) as site:
        found = find(site, tmp_path)
    lines = manifest(tmp_path)
    stored = {name.removesuffix(".csv"): (tmp_path / line["path"]).read_bytes() for name, line in lines.items()}
    assert stored == {name: table(name) for name in bodies}
    assert not [name for name, line in lines.items() if line["cut"]]
    assert found.stats["focus/encoding/wrong"] == len(wrong)
    assert not [record for record in found.records if "decode" in record.getMessage()]


def test_a_page_with_a_wrong_encoding_is_read() -> None:
    """The add-on follows the links of a page that is declared as compressed but is not."""
    with MockSite() as site:
        headers = {"Content-Type": "text/html", "Content-Encoding": "gzip"}
        site.answers["/"] = lambda _: (200, headers, b'<html><a href="/ok">next</a></html>')
        crawl(Follower, {}, seeds=[site.url("/")], addon=True)
        assert "/ok" in site.paths


def test_a_cut_file_is_marked_and_asked_for_again(tmp_path: Path) -> None:
    """Manifest, table, page and last line name the cut files; the next crawl does not trust their validators."""
    said = {"Content-Type": "text/csv", "ETag": '"1"', "Last-Modified": "Mon, 02 Nov 2026 10:00:00 GMT"}
    short = table("short")
    whole, part = table("whole"), table("part")
    packed = gzip.compress(table("packed"))
    answers = {
        "/short.csv": (200, {**said, "Content-Length": "9999", "Connection": "close"}, short),
        "/part.csv": (206, said, part),
        "/range.csv": (206, {**said, "Content-Range": "bytes 0-9/99"}, table("range")[:10]),
        "/packed.csv": (200, {**said, "Content-Encoding": "gzip"}, packed[:-9]),
        "/all.csv": (206, {**said, "Content-Range": f"bytes 0-{len(whole) - 1}/{len(whole)}"}, whole),
        "/good.csv": (200, said, table("good")),
    }
    cut = {"short.csv", "part.csv", "range.csv", "packed.csv"}
    with serve(answers) as site:
        found = find(site, tmp_path)
        lines = manifest(tmp_path)
        assert {name for name, line in lines.items() if line["cut"]} == cut
        assert lines.keys() == cut | {"all.csv", "good.csv"}
        assert (tmp_path / lines["short.csv"]["path"]).read_bytes() == short
        assert site.paths.count("/short.csv") == 2, "it is asked for again at once, as RETRY_TIMES says"
        assert found.stats["file/cut"] == 4
        assert ending_of(found.crawler).sentence.endswith(" 4 files were cut: the next crawl asks for them again.")
        rows = list(csv.DictReader((tmp_path / "files.csv").read_text("utf-8-sig").splitlines()))
        assert {row["name"] for row in rows if row["cut"] == "yes"} == cut
        page = (tmp_path / "index.html").read_text()
        assert "4 files were cut: the server sent only part of them." in page
        assert page.count(" B, cut</td>") == 4
        assert not [record for record in found.records if record.levelname == "ERROR"]
        site.log.clear()
        site.answers["/part.csv"] = lambda _: (200, said, part + b"9,9\n")
        find(site, tmp_path)
        asked = {seen.path[1:] for seen in site.log if seen.path.endswith(".csv")}
        assert asked == lines.keys()
        assert {seen.path[1:] for seen in site.log if "if-none-match" in seen.headers} == {"all.csv", "good.csv"}
        site.log.clear()
        find(site, tmp_path, new_only="1")
        assert {seen.path[1:] for seen in site.log if seen.path.endswith(".csv")} == cut - {"part.csv"}
    again = manifest(tmp_path, crawl=2)
    assert (again["part.csv"]["state"], again["part.csv"]["cut"]) == ("changed", False)
    assert (again["short.csv"]["state"], again["short.csv"]["cut"]) == ("same", True)


def test_what_is_read_for_its_links_fails_when_it_is_cut(tmp_path: Path) -> None:
    """The last link of a page or sitemap that was cut may be, too: neither is read."""
    lost = {"Content-Length": "9999", "Connection": "close"}
    sitemap = b'<?xml version="1.0"?><urlset><url><loc>http://127.0.0.1/a.csv</loc></url><url><loc>http://127.0.0.1/b'
    answers = {
        "/page": (200, {"Content-Type": "text/html", **lost}, b'<html><a href="/next">next</a><a href="/cu'),
        "/sitemap": (200, {"Content-Type": "application/xml", **lost}, sitemap),
    }
    with serve(answers) as site:
        found = find(site, tmp_path)
        assert site.paths.count("/page") == site.paths.count("/sitemap") == 2
        assert {*site.paths} == {"/", "/page", "/sitemap"}
    assert found.stats["focus/failure/cut"] == 2


@pytest.mark.parametrize("encoding", PACKERS)
def test_a_body_is_whole_if_its_encoding_ends(encoding: str) -> None:
    """It may have several parts, and inflate to any size; one byte less, or another encoding, has no end."""
    for content in (b"", b"a,b\n", bytes(range(256)) * 1000, bytes(3 << 20), *(bytes((1 << 16) + n) for n in range(9))):
        packed = PACKERS[encoding](content)
        assert is_whole(packed, encoding)
        assert not is_whole(packed[:-1], encoding)
        assert not is_whole(packed[: len(packed) // 2], encoding)
    assert not is_whole(b"a,b\n", encoding)
    if encoding == "gzip":
        assert is_whole(packed + packed, encoding)
        assert not is_whole(packed + packed[:-1], encoding)
        assert is_whole(packed + b"\0\0", encoding)
