"""Web archives: those of a foreign program, their records of all kinds, and those that are cut off."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import shutil
import subprocess
import sys
import tracemalloc
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crawls import Follower, crawl
from mocksite import MockSite, tree_page
from recordings import leads_to

pytest.importorskip("warcio")

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from scrapy_focus import FilesGoal
from scrapy_focus.core.errors import ConfigError, RecordingError
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.base import record
from scrapy_focus.lab.recordings.importers.warc import WarcImporter
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.policies.orderings import BreadthFirst

WGET = Path(__file__).parent / "data" / "wget.warc.gz"  # wget 1.21.3 --recursive, of a site with ten URLs
HOST = "http://127.0.0.1:8642"
ROOT = "http://example.org/"
HTML = [("Content-Type", "text/html")]


class Archive:
    """An archive that a test writes record by record."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = path
        self._file = path.open("wb")
        self._writer = WARCWriter(self._file, **options)

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(
        self,
        path: str,
        body: bytes = b"",
        *,
        kind: str = "response",
        status: str = "200 OK",
        headers: Any = HTML,
        more: Any = None,
    ) -> str:
        """Write a record, and return its id."""
        http = None
        if kind == "request":
            http = StatusAndHeaders(status, headers, is_http_request=True)
        elif kind != "resource" and headers is not None:
            http = StatusAndHeaders(status, headers, protocol="HTTP/1.1")
        record = self._writer.create_warc_record(
            path if ":" in path else ROOT + path, kind, payload=BytesIO(body), http_headers=http,
            warc_headers_dict=dict(more or {}), length=len(body), warc_content_type="" if http else "text/csv",
        )  # fmt: skip
        self._writer.write_record(record)
        return str(record.rec_headers.get_header("WARC-Record-ID"))


def statuses(site: RecordedSite, host: str = ROOT) -> dict[str, int]:
    return {url.removeprefix(host): int(site.status[page]) for page, url in enumerate(site.urls)}


def test_an_archive_of_wget(tmp_path: Path) -> None:
    """The fetches of Debian's wget are recorded as answered, and its crawl starts where wget did."""
    done = record(WarcImporter(WGET), tmp_path / "site.sqlite", bodies=True)
    site = RecordedSite(tmp_path / "site.sqlite")
    assert (done.recorded, done.missing, done.finished) == (10, 0, True)
    assert [site.urls[root] for root in site.roots] == [f"{HOST}/"]
    assert statuses(site, HOST) == {
        "/": 302, "/home": 200, "/robots.txt": 200, "/about": 200, "/data.csv": 200, "/old": 301, "/missing": 404,
        "/data.csv?year=2024&all": 200, "/new": 200, "/never": 404,
    }  # fmt: skip
    assert leads_to(site, f"{HOST}/home") == [HOST + path for path in ("/about", "/data.csv", "/old", "/missing")]
    assert site.depth[site.ids[f"{HOST}/about"]] == 1
    assert "Größe" in site.text(site.ids[f"{HOST}/about"])
    assert site.digest[site.ids[f"{HOST}/data.csv"]] == site.digest[site.ids[f"{HOST}/data.csv?year=2024&all"]] != 0
    assert site.headers(site.ids[f"{HOST}/data.csv"])["Content-Type"] == "text/csv"
    assert simulate(BreadthFirst(), FilesGoal(), site).found[-1] == 2


@pytest.mark.skipif(shutil.which("wget") is None, reason="wget is not installed")
def test_what_wget_fetches_is_replayed(tmp_path: Path) -> None:
    """A portal is crawled by wget, its archive is imported, and a replay finds each data file that wget fetched."""
    portal = StatisticsPortal(pages=200)
    with SiteServer(portal) as server:
        options = [
            "--quiet",
            "--recursive",
            "--level=inf",
            "--delete-after",
            "--no-directories",
            "--execute=robots=off",
        ]
        command = ["wget", *options, "--reject-regex=/calendar|/media/", "--warc-file=portal", server.url]
        subprocess.run(command, cwd=tmp_path, check=False)  # dead links make it fail
        fetched = {request.path for request in server.log if request.status == 200}
    files = {path for path in fetched if portal.is_target(path)}
    assert len(files) > 50
    record(WarcImporter(tmp_path / "portal.warc.gz"), tmp_path / "site.sqlite")
    harvest = simulate(BreadthFirst(), FilesGoal(), tmp_path / "site.sqlite")
    assert harvest.found[-1] == len(files)
    assert portal.n_targets - len(files) <= harvest.missed


def test_a_crawl_of_this_package_is_replayed(tmp_path: Path) -> None:
    """The recording of its archive has the URLs, statuses, types and links that the site has."""
    with MockSite() as served:
        pages = {f"/page/{k}/15": tree_page(k, 15) for k in range(15)}
        csv, gone, moved = "/file?type=text/csv", "/status?code=404", "/redirect?to=/page/1/15"
        pages["/page/0/15"] += "".join(f'<a href="{path}">x</a>' for path in (csv, gone, moved))
        for path, html in pages.items():
            packed = gzip.compress(html.encode())
            served.answers[path] = lambda _, packed=packed: (
                200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, packed
            )  # fmt: skip
        crawl(Follower, {"FOCUS_WARC": str(tmp_path)}, addon=True, seeds=[served.url("/page/0/15")])
        asked = {path for _, path in served.asked}
        root = served.url("")
    done = record(WarcImporter(tmp_path / "crawl-00001.warc.gz"), tmp_path / "site.sqlite")
    site = RecordedSite(tmp_path / "site.sqlite")
    assert (done.recorded, done.missing, done.finished) == (18, 0, True)
    assert [site.urls[each] for each in site.roots] == [f"{root}/page/0/15"]
    others = {csv: (200, "text/csv"), gone: (404, "text/html"), moved: (302, "")}
    found = {url.removeprefix(root): (int(site.status[n]), site.mimes[n]) for n, url in enumerate(site.urls)}
    assert found == {**dict.fromkeys(pages, (200, "text/html")), **others}
    assert asked == found.keys()
    for path, html in pages.items():
        hrefs = list(dict.fromkeys(re.findall(r'href="(.*?)"', html)))
        assert leads_to(site, root + path) == [root + href for href in hrefs], path


@pytest.mark.parametrize("options", [{"gzip": True}, {"gzip": False}, {"gzip": True, "warc_version": "WARC/1.1"}])
def test_records_of_all_kinds(options: dict[str, Any], tmp_path: Path) -> None:
    """Responses and resources are answers; everything else in an archive is not."""
    with Archive(tmp_path / "a.warc", **options) as archive:
        archive.add("dns:example.org", b"127.0.0.1", kind="response", headers=None)
        archive.add("ftp://example.org/x", b"x", kind="resource")
        archive.add("robots.txt", b"<p>no robots here")
        archive.add("start", headers=[("Location", "/middle")], status="301 Moved")
        archive.add("middle", headers=[("Location", ROOT)], status="302 Found")
        archive.add("http://elsewhere.net/", b"<a href='http://example.org/no'>")
        first = archive.add("", b"<a href=r.csv>r</a> <a href=p>p</a> <a href=unknown>u</a>")
        archive.add("", b"", kind="request", status="GET / HTTP/1.1", more={"WARC-Concurrent-To": first})
        archive.add("", b"later", status="500 Error")
        archive.add("r.csv", b"1,2", kind="resource")
        post = archive.add("p", b"by POST")
        archive.add("p", b"", kind="request", status="POST / HTTP/1.1", more={"WARC-Concurrent-To": post})
        head = archive.add("p", b"", kind="request", status="HEAD / HTTP/1.1")
        archive.add("p", b"", more={"WARC-Concurrent-To": head})  # wget says it this way round
        archive.add("p", b"by GET, and longer")
        archive.add("m", b"note", kind="metadata")
    done = record(WarcImporter(str(archive.path)), tmp_path / "site.sqlite", root=ROOT)
    site = RecordedSite(tmp_path / "site.sqlite")
    assert statuses(site) == {
        "": 200, "robots.txt": 200, "start": 301, "middle": 302, "r.csv": 200, "p": 200, "unknown": 0,
    }  # fmt: skip
    assert (site.mimes[site.ids[f"{ROOT}r.csv"]], site.size[site.ids[f"{ROOT}p"]]) == ("text/csv", 18)
    assert done.missing == 1
    record(WarcImporter(archive.path), tmp_path / "other.sqlite")
    assert RecordedSite(tmp_path / "other.sqlite").urls[0] == "http://elsewhere.net/", "the first HTML page"


def test_compressed_and_chunked_bodies(tmp_path: Path) -> None:
    """They are unpacked, and count as many bytes as came; one that is not what it says it is stays as it is."""
    html = b"<a href=x>x</a>" * 30
    raw = zlib.compressobj(wbits=-15)
    deflated = raw.compress(html) + raw.flush()
    bodies = {
        "": (gzip.compress(html), "gzip"),
        "deflate": (zlib.compress(html), "deflate"),
        "raw": (deflated, "deflate"),
        "lie": (html, "gzip"),
        "lie2": (html, "deflate"),
        "odd": (html, "sdch"),
        "cut": (gzip.compress(html)[:-8], "x-gzip"),
        "twice": (gzip.compress(zlib.compress(html)), "deflate, gzip"),
    }
    with Archive(tmp_path / "a.warc.gz") as archive:
        for path, (body, encoding) in bodies.items():
            archive.add(path, body, headers=[*HTML, ("Content-Encoding", encoding)])
        half = len(bodies[""][0]) // 2
        first, second = bodies[""][0][:half], bodies[""][0][half:]
        chunked = b"%x\r\n%s\r\n%x;a=b\r\n%s\r\n0\r\n\r\n" % (len(first), first, len(second), second)
        chunked_headers = [*HTML, ("Content-Encoding", "gzip"), ("Transfer-Encoding", "Chunked")]
        archive.add("chunked", chunked, headers=chunked_headers)
    record(WarcImporter(archive.path), tmp_path / "site.sqlite", bodies=True)
    site = RecordedSite(tmp_path / "site.sqlite")
    for path, (body, _) in {**bodies, "chunked": bodies[""]}.items():
        page = site.ids[ROOT + path]
        assert site.body(page) == html, path
        assert site.size[page] == len(body), path
        assert leads_to(site, ROOT + path) == [f"{ROOT}x"]
    assert len(set(site.digest[site.recorded].tolist())) == 1


def test_revisits(tmp_path: Path) -> None:
    """A revisit has the body of its original, by digest or URL, even if that comes later; its own headers count."""
    digest = {"WARC-Payload-Digest": "sha1:AAAA"}
    same = {"WARC-Refers-To-Target-URI": f"{ROOT}b"}
    with Archive(tmp_path / "1.warc.gz") as archive:
        archive.add("", b"<a href=a>a</a>")
        archive.add("early", kind="revisit", more=digest)
        archive.add("a", b"<a href=x>x</a>", more=digest)
        archive.add("", kind="revisit", more={"WARC-Refers-To-Target-URI": ROOT})
    with Archive(tmp_path / "2.warc.gz") as other:
        other.add("b", b"1,2", headers=[("Content-Type", "text/csv")])
        other.add("b2", kind="revisit", headers=[("Content-Type", "text/plain"), ("X-A", "1")], more=same)
        other.add("b3", kind="revisit", headers=None, more=same)
        other.add("b4", kind="revisit", status="304 Not Modified", headers=[("X-A", "1")], more=same)
        other.add("lost", kind="revisit", headers=[*HTML, ("Content-Length", "77")], more={"WARC-Payload-Digest": "x"})
        other.add("unknown", kind="revisit", status="304 Not Modified", headers=[("X-A", "1")])
    record(WarcImporter(archive.path, other.path), tmp_path / "site.sqlite", root=ROOT)
    site = RecordedSite(tmp_path / "site.sqlite")
    found = {
        url.removeprefix(ROOT): (int(site.status[page]), site.mimes[page], int(site.size[page]))
        for page, url in enumerate(site.urls)
        if site.recorded[page]
    }
    csv, html = (200, "text/csv", 3), (200, "text/html", 15)
    assert found == {
        "": html, "a": html, "early": html, "b": csv, "b2": (200, "text/plain", 3), "b3": csv, "b4": csv,
        "lost": (200, "text/html", 77),
    }  # fmt: skip
    assert leads_to(site, f"{ROOT}early") == [f"{ROOT}x"]
    digests = site.digest[[site.ids[ROOT + path] for path in ("b", "b2", "b3", "b4")]]
    assert len(np.unique(digests)) == 1
    assert site.digest[site.ids[f"{ROOT}lost"]] == 0


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_an_arc_file(pack: Any, tmp_path: Path) -> None:
    """The elder format is read too, compressed or not."""
    answer = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=/a>a</a>"
    about = b"1 0 Archive\nURL IP-address Archive-date Content-type Archive-length\n"
    records = b"filedesc://x.arc 0.0.0.0 20060101000000 text/plain %d\n%s\n" % (len(about), about)
    for path in ("", "b"):
        records += f"{ROOT}{path} 127.0.0.1 20060101000000 text/html {len(answer)}\n".encode() + answer + b"\n"
    (tmp_path / "x.arc").write_bytes(pack(records))
    done = record(WarcImporter(tmp_path / "x.arc"), tmp_path / "site.sqlite")
    assert statuses(RecordedSite(tmp_path / "site.sqlite")) == {"": 200, "a": 0, "b": 200}
    assert done.missing == 1


def members(path: Path) -> list[int]:
    """Return where each record of a compressed archive begins, and where the last one ends."""
    content, starts = path.read_bytes(), [0]
    while starts[-1] < len(content):
        unpacker = zlib.decompressobj(31)
        unpacker.decompress(content[starts[-1] :])
        starts.append(len(content) - len(unpacker.unused_data))
    return starts


@pytest.mark.few(1)
@pytest.mark.parametrize("compressed", [True, False])
def test_an_archive_that_was_cut_off(compressed: bool, tmp_path: Path) -> None:
    """Wherever it ends, what comes before is recorded and unfinished, and the error says where the damage is."""
    content = WGET.read_bytes() if compressed else gzip.decompress(WGET.read_bytes())
    whole = [0, *(match.start() for match in re.finditer(rb"(?<=\n)WARC/1.0\r\n", gzip.decompress(WGET.read_bytes())))]
    clean = members(WGET) if compressed else [*whole, *(start - skip for start in whole for skip in (1, 2, 3, 4))]
    steps = set(range(0, len(content), 97)) | {start + skip for start in whole for skip in (-5, 1, 9, 12, 40)}
    cuts = sorted(cut for cut in steps if 600 < cut < len(content) and cut not in clean)
    rng = np.random.default_rng(0)
    for cut in rng.choice(cuts, 60, replace=False).tolist():
        archive, path = tmp_path / f"{cut}.warc.gz", tmp_path / f"{cut}.sqlite"
        archive.write_bytes(content[:cut])
        with pytest.raises(RecordingError) as raised:
            record(WarcImporter(archive), path)
        said = str(raised.value)
        found = re.search(r"damaged at byte ([\d,]+)( of its decompressed content)?, after (\d+) records", said)
        assert found, (cut, said)
        assert bool(found[2]) == compressed
        assert int(found[1].replace(",", "")) in whole, (cut, said)
        assert whole.index(int(found[1].replace(",", ""))) == int(found[3]), (cut, said)
        assert str(archive) in said
        if not path.exists():
            assert "has no HTML page" in said
            continue
        assert f"what comes before it is in {path}, marked as unfinished" in said
        done = RecordedSite(path).completeness()
        assert not done.finished
        assert 2 <= done.recorded <= 10


def test_a_cut_archive_is_gone_on_with(tmp_path: Path) -> None:
    """With the whole file, the same call adds what was missing."""
    archive = tmp_path / "cut.warc.gz"
    archive.write_bytes(WGET.read_bytes()[:5000])
    with pytest.raises(RecordingError):
        record(WarcImporter(archive), tmp_path / "site.sqlite")
    done = record(WarcImporter(WGET), tmp_path / "site.sqlite")
    assert (done.recorded, done.missing, done.finished) == (10, 0, True)


def test_a_byte_that_changed(tmp_path: Path) -> None:
    """A compressed archive with a wrong byte is not taken for a whole one."""
    content = bytearray(WGET.read_bytes())
    for place in (3000, 6000, 9000):
        content[place] ^= 0xFF
        (tmp_path / "a.warc.gz").write_bytes(content)
        with pytest.raises(RecordingError, match="is damaged at byte"):
            record(WarcImporter(tmp_path / "a.warc.gz"), tmp_path / f"{place}.sqlite")


def test_an_archive_in_one_piece(tmp_path: Path) -> None:
    """One that was compressed as a whole, against the standard, is read."""
    (tmp_path / "a.warc.gz").write_bytes(gzip.compress(gzip.decompress(WGET.read_bytes())))
    assert record(WarcImporter(tmp_path / "a.warc.gz"), tmp_path / "site.sqlite").recorded == 10


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "neither a WARC nor an ARC file"),
        (b"This is a text of several words\n", r"neither a WARC nor an ARC file: it begins with b'This is a t'"),
        (gzip.compress(b"text", mtime=0), "neither a WARC nor an ARC file"),
        (b"\x1f\x8b", "cannot be read as a web archive"),
        (b"\x1f\x8bnonsense", "cannot be read as a web archive"),
        (b"WARC/1.0\r\nnonsense", "has no HTML page"),
        (b"filedesc://", "has no HTML page"),
        (None, "cannot be read as a web archive"),
    ],
)
def test_no_archive(content: bytes | None, said: str, tmp_path: Path) -> None:
    """A file that is not a web archive, or does not exist, gives an error, and no recording is made."""
    archive = tmp_path / "a.warc"
    if content is not None:
        archive.write_bytes(content)
    with pytest.raises(RecordingError, match=said):
        record(WarcImporter(*([WGET, archive] if content is None else [archive])), tmp_path / "site.sqlite")
    assert not (tmp_path / "site.sqlite").exists()


def test_an_archive_without_the_root(tmp_path: Path) -> None:
    """A root that no record answers is an error, which names one that would do."""
    said = rf"has no answer of http://example.org/; its first page is {HOST}/"
    with pytest.raises(RecordingError, match=said):
        record(WarcImporter(WGET), tmp_path / "site.sqlite", root=ROOT)
    with Archive(tmp_path / "a.warc") as archive:
        archive.add("a.csv", b"1,2", headers=[("Content-Type", "text/csv")])
        archive.add("b", b"<p>", status="404 Not Found")
    with pytest.raises(RecordingError, match=r"has no HTML page that was answered with status 200: give root="):
        record(WarcImporter(archive.path), tmp_path / "site.sqlite")
    assert not (tmp_path / "site.sqlite").exists()


def test_records_that_make_no_sense(tmp_path: Path) -> None:
    """URLs that are none and statuses that are none are passed over."""
    with Archive(tmp_path / "a.warc.gz") as archive:
        archive.add("http://[x/", b"<p>")
        archive.add("http:", b"<p>")
        archive.add("x", b"<p>", status="OK")
        archive.add("y", b"<p>", status="99999 Too much")
        archive.add("", b"<p>")
    record(WarcImporter(archive.path), tmp_path / "site.sqlite", root=ROOT)
    assert statuses(RecordedSite(tmp_path / "site.sqlite")) == {"": 200}


def test_without_warcio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "warcio", None)
    with pytest.raises(ConfigError, match=r'needs warcio: pip install "scrapy-focus\[lab\]"'):
        record(WarcImporter(WGET), tmp_path / "site.sqlite")


@pytest.mark.parametrize("digests", ["both", "block", "payload"])
def test_records_that_changed_are_left_out(digests: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each has a digest, and what does not fit it is counted, said, and not recorded."""
    with Archive(tmp_path / "a.warc", gzip=False) as archive:
        archive.add("", b'<a href="one.html">One</a><a href="two.html">Two</a>')
        archive.add("one.html", b"the first page")
        archive.add("two.html", b"the second page")
    content = archive.path.read_bytes()
    for kind in ("Block", "Payload"):
        if digests not in ("both", kind.lower()):
            content = re.sub(rf"WARC-{kind}-Digest: [^\r]*\r\n".encode(), b"", content)
    archive.path.write_bytes(content)
    assert statuses_of(archive.path, tmp_path / "as-it-was.sqlite") == {"": 200, "one.html": 200, "two.html": 200}
    assert not caplog.text
    archive.path.write_bytes(content.replace(b"the first page", b"the worst page"))
    assert statuses_of(archive.path, tmp_path / "changed.sqlite") == {"": 200, "one.html": 0, "two.html": 200}
    assert "1 record does not match their digests, and are skipped" in caplog.text


def statuses_of(archive: Path, target: Path) -> dict[str, int]:
    """Record an archive, and return what its URLs answered."""
    record(WarcImporter(archive), target)
    site = RecordedSite(target)
    try:
        return statuses(site)
    finally:
        site.close()


@pytest.mark.parametrize("with_block", [True, False])
def test_a_digest_of_a_payload_may_be_without_its_chunks(
    with_block: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Archives differ in the digested part; either is accepted, and that of the whole record counts most."""
    page = b'<a href="a.csv">A</a>'
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(page), page)
    digest = "sha1:" + base64.b32encode(hashlib.sha1(page).digest()).decode()
    with Archive(tmp_path / "a.warc", gzip=False) as archive:
        archive.add(
            "", chunked, headers=[*HTML, ("Transfer-Encoding", "chunked")], more={"WARC-Payload-Digest": digest}
        )
    content = archive.path.read_bytes()
    assert digest.encode() in content
    if not with_block:
        archive.path.write_bytes(re.sub(rb"WARC-Block-Digest: [^\r]*\r\n", b"", content))
    assert statuses_of(archive.path, tmp_path / "site.sqlite")[""] == 200
    assert "digest" not in caplog.text


def test_every_byte_of_an_uncompressed_archive_counts(tmp_path: Path) -> None:
    """If any byte of a body changes, the page is skipped: none is recorded with another content."""
    with Archive(tmp_path / "a.warc", gzip=False) as archive:
        archive.add("", b'<a href="one.html">One</a>')
        archive.add("one.html", b"<p>a page of a few words</p>")
    content = archive.path.read_bytes()
    start = content.index(b"<p>a page")
    for place in range(start, start + 28, 3):
        changed = bytearray(content)
        changed[place] ^= 1
        archive.path.write_bytes(changed)
        assert statuses_of(archive.path, tmp_path / f"{place}.sqlite") == {"": 200, "one.html": 0}


@pytest.mark.slow
def test_a_small_archive_that_inflates_to_a_large_one_is_read_in_little_memory(tmp_path: Path) -> None:
    """A body, or its decompressed form, is read up to the limit; its size is the original one."""
    zeros = bytes(150 << 20)
    with Archive(tmp_path / "a.warc.gz", gzip=True) as archive:
        archive.add("", b'<a href="one.csv">One</a><a href="two.csv">Two</a>')
        archive.add("one.csv", zeros, headers=[("Content-Type", "text/csv")])
        archive.add(
            "two.csv", gzip.compress(zeros), headers=[("Content-Type", "text/csv"), ("Content-Encoding", "gzip")]
        )
    assert archive.path.stat().st_size < 1e6
    tracemalloc.start()
    try:
        record(WarcImporter(archive.path), tmp_path / "site.sqlite")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 250e6
    site = RecordedSite(tmp_path / "site.sqlite")
    assert site.size[site.ids[f"{ROOT}one.csv"]] == len(zeros)
    site.close()
