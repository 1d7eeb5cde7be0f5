"""Web archives of crawls (``FOCUS_WARC``, ``--warc``) have every answer once, as the server sent it, and no secret."""

from __future__ import annotations

import errno
import gzip
import os
import signal
import subprocess
import sys
import zlib
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from crawls import Crawled, Follower, SomeHeadsFirst, crawl
from forked import Forked
from handmadebrowser import HANDLERS, SCRIPT, put_in
from mocksite import MockSite, tree_paths
from scrapy import FormRequest, Request, Spider

pytest.importorskip("warcio")

from warcio.archiveiterator import ArchiveIterator

from scrapy_focus.engine.ending import ending_of
from scrapy_focus.jobs import warc_files
from scrapy_focus.jobs.warc_files import WarcFiles
from scrapy_focus.web.warc_records import Exchange
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from scrapy.http import Response

FULL = OSError(errno.ENOSPC, "No space left on device")


class Record(NamedTuple):
    """A record of an archive, read by warcio, with right digests."""

    kind: str
    path: str  # of the URL
    headers: dict[str, str]  # of the record, names in lower case
    first: str  # line of HTTP
    said: dict[str, str]  # headers of HTTP, names in lower case
    raw: bytes  # the payload as stored
    body: bytes  # decoded


def records_in(*files: Path) -> list[Record]:
    """Return the records of some files; a wrong digest or a cut end is an error."""
    found = []
    for file in files:
        gzip.decompress(file.read_bytes())
        for raw, decoded in zip(_read(file, raw=True), _read(file, raw=False), strict=True):
            found.append(Record(*raw[:-1], raw[-1], decoded[-1]))
    return found


def _read(file: Path, *, raw: bool) -> Iterator[tuple[Any, ...]]:
    with file.open("rb") as stream:
        for each in ArchiveIterator(stream, check_digests="raise"):
            body = each.raw_stream.read() if raw else each.content_stream().read()
            http, headers = each.http_headers, {name.lower(): value for name, value in each.rec_headers.headers}
            url = headers.get("warc-target-uri", "")
            line = "" if http is None else f"{http.protocol} {http.statusline}"
            said = {} if http is None else {name.lower(): value for name, value in http.headers}
            yield each.rec_type, f"/{url.split('/', 3)[-1]}", headers, line, said, body


def asked_in(records: Sequence[Record]) -> Counter[tuple[str, str]]:
    """Return method and path of each answer; each has one request, and the other way round."""
    answers = {each.headers["warc-record-id"]: each for each in records if each.kind in ("response", "revisit")}
    asked: Counter[tuple[str, str]] = Counter()
    for request in (each for each in records if each.kind == "request"):
        answer = answers.pop(request.headers["warc-concurrent-to"])
        assert answer.headers["warc-target-uri"] == request.headers["warc-target-uri"]
        assert answer.headers["warc-date"] == request.headers["warc-date"]
        method, path, _ = request.first.split(" ")
        asked[method, path] += 1
    assert not answers
    return asked


def archived(folder: Path) -> list[Path]:
    """Return the files of an archive, in order; no lock is left."""
    assert not list(folder.glob("*.lock"))
    return sorted(folder.glob("*.warc.gz"))


def html(body: str, **headers: str) -> Any:
    """Return what a site answers with each time."""
    return lambda n: (200, {"Content-Type": "text/html", **headers}, body.encode())


def packed(body: str, pack: Any, name: str) -> Any:
    return lambda n: (200, {"Content-Type": "text/html", "Content-Encoding": name}, pack(body.encode()))


@pytest.fixture
def odd(site: MockSite) -> MockSite:
    """A site with all kinds of answers, linked from one page."""
    site.answers["/gzip"] = packed("<p>gzip</p>", partial(gzip.compress, mtime=0), "gzip")
    site.answers["/deflate"] = packed("<p>deflate</p>", zlib.compress, "deflate")
    site.answers["/twice"] = lambda n: (503 if n == 1 else 200, {"Content-Type": "text/html"}, b"<p>in the end</p>")
    site.answers["/session"] = html("<p>session</p>", **{"Set-Cookie": "id=s3cret"})
    links = (
        "/gzip", "/deflate", "/twice", "/session", "/redirect?to=/redirect?to=/ok?end", "/status?code=404",
        "/file?type=image/png&size=100", "/file?type=video/mp4&size=200000", "/file?type=text/csv&size=100000",
        "/badgzip", "/reset", "/forbidden", "/file?type=text/csv&size=10&hide=1",
    )  # fmt: skip
    site.pages["/"] = "".join(f'<a href="{link}">x</a>' for link in links)
    return site


@pytest.mark.reactor
@pytest.mark.both
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_every_answer_is_stored_once(odd: MockSite, tmp_path: Path, addon: bool) -> None:
    """The archive has what the server's log has: robots.txt, redirects, retries, errors, HEADs, and stopped bodies."""
    settings = {"FOCUS_WARC": str(tmp_path / "warc"), "ROBOTSTXT_OBEY": True, "FOCUS_POLICY": SomeHeadsFirst}
    done = crawl(Follower, settings, addon=addon, seeds=[odd.url("/")])
    (file,) = archived(tmp_path / "warc")
    assert file.name == "crawl-00001.warc.gz"
    records = records_in(file)
    expected = Counter(each for each in odd.asked if each[1] != "/reset")  # it has no answer
    assert asked_in(records) == expected
    assert {"HEAD", "GET"} == {method for method, _ in expected}
    assert ("GET", "/robots.txt") in expected
    assert done.stats["focus/warc/stored"] == expected.total()
    assert done.stats["focus/warc/bytes"] < file.stat().st_size
    info = records[0]
    assert info.kind == "warcinfo"
    assert b"software: scrapy-focus/" in info.raw
    assert b"robots: obey" in info.raw


@pytest.mark.reactor
def test_bodies_are_stored_as_they_came(odd: MockSite, tmp_path: Path) -> None:
    """A compressed body is still compressed, so that its headers are right; the address is that of the server."""
    crawl(Follower, {"FOCUS_WARC": str(tmp_path)}, addon=True, seeds=[odd.url("/")])
    records = {each.path: each for each in records_in(*archived(tmp_path)) if each.kind == "response"}
    for name in ("gzip", "deflate"):
        answer = records[f"/{name}"]
        assert answer.raw == odd.answers[f"/{name}"](1)[2]
        assert answer.said["content-encoding"] == name
        assert answer.said["content-length"] == str(len(answer.raw))
        assert answer.body == f"<p>{name}</p>".encode()
        assert answer.headers["warc-ip-address"] == "127.0.0.1"
    assert records["/status?code=404"].first == "HTTP/1.1 404 Not Found"
    assert records["/redirect?to=/ok?end"].said["location"] == "/ok?end"
    assert records["/badgzip"].raw == odd.answer("/badgzip")[2]
    assert "content-length" not in records["/file?type=text/csv&size=10&hide=1"].said
    written = datetime.fromisoformat(records["/"].headers["warc-date"])
    assert abs((datetime.now(UTC) - written).total_seconds()) < HANG


class Stops(Follower):
    """Reads some bodies that break off."""

    custom_settings = {"DOWNLOAD_FAIL_ON_DATALOSS": False, "RETRY_ENABLED": False}


@pytest.mark.reactor
def test_incomplete_bodies_say_so(site: MockSite, tmp_path: Path) -> None:
    """A type that is not wanted, a robots.txt that is too long, and a connection that broke have three reasons."""
    rules = b"User-agent: *\nDisallow: /no\n" + b"#" * 3_000_000
    site.answers["/robots.txt"] = lambda n: (200, {"Content-Type": "text/plain"}, rules)
    large = "/file?type=video/mp4&size=200000"
    site.pages["/"] = f'<a href="/truncated">x</a><a href="{large}">x</a><a href="/ok">x</a>'
    crawl(Stops, {"FOCUS_WARC": str(tmp_path), "ROBOTSTXT_OBEY": True}, addon=True, seeds=[site.url("/")])
    records = {each.path: each for each in records_in(*archived(tmp_path)) if each.kind == "response"}
    reasons = {path: each.headers.get("warc-truncated", "") for path, each in records.items()}
    assert reasons == {
        "/robots.txt": "length", "/": "", "/truncated": "disconnect", large: "unspecified", "/ok": ""
    }  # fmt: skip
    assert rules.startswith(records["/robots.txt"].raw)
    assert 500 * 1024 <= len(records["/robots.txt"].raw) < len(rules)
    assert records[large].raw == b""


class Secretive(Spider):
    """Sends all kinds of secrets."""

    name = "secretive"
    custom_settings = {"COOKIES_ENABLED": True}

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site

    async def start(self) -> AsyncIterator[Any]:
        headers = {"X-Api-Key": "s3cret-key", "Accept-Language": "de", "Authorization": "Basic s3cret-user"}
        yield Request(self.site.url("/cookie"), headers=headers, cookies={"id": "s3cret-cookie"})
        yield Request(self.site.url("/ok?user").replace("//", "//me:s3cret-user@"))
        yield FormRequest(self.site.url("/ok?form"), formdata={"password": "s3cret-form"})

    def parse(self, response: Response) -> None:
        """There is nothing more."""


def test_no_secret_is_stored(site: MockSite, tmp_path: Path) -> None:
    """Cookies, credentials, unknown headers and forms are sent and not stored; nor is a cookie that a server sets."""
    crawl(Secretive, {"FOCUS_WARC": str(tmp_path)}, addon=True, site=site)
    sent = " ".join(f"{seen.headers} {seen.body!r}" for seen in site.log)
    assert all(secret in sent for secret in ("s3cret-key", "s3cret-cookie", "s3cret-form", "Basic "))
    (file,) = archived(tmp_path)
    stored = gzip.decompress(file.read_bytes()).lower()
    for secret in (b"s3cret", b"cookie: ", b"authorization: ", b"visited=yes", b"basic ", b"//me"):
        assert secret not in stored, secret
    assert b"accept-language: de" in stored
    assert asked_in(records_in(file)) == Counter(site.asked)


class Conditional(Spider):
    """Fetches a page, and asks whether it has changed."""

    name = "conditional"
    handle_httpstatus_list = [304]

    def __init__(self, url: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.url = url

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.url)

    def parse(self, response: Response) -> Iterator[Request]:
        if response.status == 200:
            yield Request(self.url, headers={"If-None-Match": '"1"'}, dont_filter=True)


def test_not_modified_is_a_revisit(site: MockSite, tmp_path: Path) -> None:
    """It refers to the page; its request has the condition."""
    site.answers["/same"] = lambda n: (200 if n == 1 else 304, {"ETag": '"1"'}, b"<p>same</p>" if n == 1 else b"")
    crawl(Conditional, {"FOCUS_WARC": str(tmp_path)}, addon=True, url=site.url("/same"))
    _, page, _, answer, asked = records_in(*archived(tmp_path))
    assert (answer.kind, answer.first) == ("revisit", "HTTP/1.1 304 Not Modified")
    assert answer.headers["warc-profile"].endswith("/revisit/server-not-modified")
    assert answer.headers["warc-refers-to-target-uri"] == site.url("/same")
    assert answer.headers["warc-refers-to-date"] == page.headers["warc-date"]
    assert answer.headers["warc-payload-digest"] == page.headers["warc-payload-digest"]
    assert asked.said["if-none-match"] == '"1"'


def test_answers_of_a_cache_are_not_stored(site: MockSite, tmp_path: Path) -> None:
    """They did not come from the server; without any other, there is no file."""
    settings = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path / "cache"),
        "FOCUS_WARC": str(tmp_path / "warc"),
    }
    for _ in range(2):
        crawl(Follower, settings, addon=True, seeds=[site.url("/page/0/3")])
    assert len(archived(tmp_path / "warc")) == 1
    assert asked_in(records_in(*archived(tmp_path / "warc"))) == Counter(site.asked)


def test_rendered_pages_are_resources(site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a browser shows is not what the server sent."""
    browser = put_in(monkeypatch)
    site.pages["/"] = SCRIPT % '<a href="/status?code=404">x</a>'
    settings = {**HANDLERS, "FOCUS_RENDER": "always", "FOCUS_WARC": str(tmp_path)}
    crawl(Follower, settings, addon=True, seeds=[site.url("/")])
    assert browser.started
    records = records_in(*archived(tmp_path))
    page = next(each for each in records if each.kind == "resource")
    assert page.path == "/"
    assert b'<a href="/status?code=404">' in page.raw
    assert page.headers["content-type"].startswith("text/html")
    assert [each.kind for each in records].count("resource") == 1  # there is no place for the status of the other


# Files, and kills


def exchange(path: str = "/", body: bytes = b"<p>page</p>") -> Exchange:
    return Exchange(
        url=f"https://a.example{path}", method="GET", asked=[(b"Accept", b"*/*")], status=200, protocol="HTTP/1.1",
        headers=[(b"Content-Type", b"text/html"), (b"X-\xfc", b"\xfc; a=\xc3\xbc\xff")], body=body, at=datetime.now(UTC),
    )  # fmt: skip


def test_each_run_has_a_file_of_its_own(tmp_path: Path) -> None:
    """Files are numbered, also when two are written at once; a path names them."""
    one, other = (WarcFiles(tmp_path / "mine.warc.gz", {}) for _ in range(2))
    for each in (one, other, one):
        each.write(exchange())
    assert b"\r\nX-\xfc: \xfc; a=\xc3\xbc\xff\r\n\r\n<p>" in gzip.decompress(
        (tmp_path / "mine-00001.warc.gz").read_bytes()
    )
    assert len(list(tmp_path.glob("*.lock"))) == 2
    one.close()
    other.close()
    third = WarcFiles(tmp_path / "mine.warc.gz", {})
    third.write(exchange())
    third.close()
    WarcFiles(tmp_path / "mine.warc.gz", {}).close()  # it has nothing to write
    names = [f"mine-{number:05d}.warc.gz" for number in (1, 2, 3)]
    assert [path.name for path in archived(tmp_path)] == names
    assert [len(records_in(path)) for path in archived(tmp_path)] == [5, 3, 3]


def test_a_record_that_was_cut_is_removed(tmp_path: Path) -> None:
    """Wherever a kill cut the file, the next run leaves whole records, and does not touch a file that is in use."""
    written = WarcFiles(tmp_path, {"software": "test"})
    ends = []
    for number in range(3):
        written.write(exchange(f"/{number}", os.urandom(200)))
        ends.append((tmp_path / "crawl-00001.warc.gz").stat().st_size)
    whole = (tmp_path / "crawl-00001.warc.gz").read_bytes()
    in_use = WarcFiles(tmp_path, {})
    in_use.write(exchange())
    written.close()
    live = (tmp_path / "crawl-00002.warc.gz").read_bytes()
    counts = set()
    for size in (*range(0, len(whole), 37), len(whole) - 1, len(whole)):
        (tmp_path / "crawl-00001.warc.gz").write_bytes(whole[:size])
        (tmp_path / "crawl-00001.warc.gz.lock").touch()
        following = WarcFiles(tmp_path, {})
        following.write(exchange())
        following.close()
        assert (tmp_path / "crawl-00002.warc.gz").read_bytes() == live
        assert not (tmp_path / "crawl-00001.warc.gz.lock").exists()
        left = (tmp_path / "crawl-00001.warc.gz").read_bytes()
        assert whole.startswith(left)
        assert len(left) <= size
        counts.add(len(records_in(tmp_path / "crawl-00001.warc.gz")) if left else 0)
    assert counts == set(range(8))  # the first, and three pairs
    in_use.close()


def test_a_failed_write_leaves_whole_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written of a record before the disk was full is removed."""
    files = WarcFiles(tmp_path, {})
    files.write(exchange())
    size = (tmp_path / "crawl-00001.warc.gz").stat().st_size

    class Full:
        """A file on a disk with room for ten bytes."""

        def __init__(self, file: Any) -> None:
            self.file, self.room = file, 10

        def write(self, data: memoryview) -> int:
            if not self.room:
                raise FULL
            self.room = 0
            return int(self.file.write(data[:10]))

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    monkeypatch.setattr(files, "_file", Full(files._file))
    with pytest.raises(OSError, match="No space"):
        files.write(exchange())
    assert (tmp_path / "crawl-00001.warc.gz").stat().st_size == size
    files.close()


def test_a_full_disk_ends_the_crawl(site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for its other files: the archive would lack answers."""
    real = warc_files._append

    def append(file: Any, data: bytes) -> None:
        if file.tell() > 5000:
            raise FULL
        real(file, data)

    monkeypatch.setattr(warc_files, "_append", append)
    monkeypatch.setattr(Crawled, "check", lambda _: None)  # what was in flight has no outcome
    done = crawl(Follower, {"FOCUS_WARC": str(tmp_path)}, addon=True, seeds=[site.url("/page/0/100")])
    assert ending_of(done.crawler).kind == "disk_full"
    assert len(site.log) < 60
    assert done.logged("the web archive (FOCUS_WARC) cannot be written")
    assert records_in(*archived(tmp_path))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL here")
def test_kill_and_resume(tmp_path: Path) -> None:
    """What arrived before a kill is stored; the next run has a file of its own, with what was missing."""
    with MockSite() as site:
        words = ["-m", "scrapy_focus", "important", site.url("/page/0/30"), "--out", "out", "--warc"]
        words += ["-s", "DOWNLOAD_DELAY=0", "-s", "FOCUS_PUBLIC_ONLY=False"]
        site.hold(12)
        process = Forked([sys.executable, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert site.wait_until_it_holds(HANG)
        process.send_signal(signal.SIGKILL)
        process.wait(HANG)
        site.go_on()
        site.rest()
        before, n_before = Counter(site.asked), len(site.log)
        with (tmp_path / "out" / "crawl-00001.warc.gz").open("ab") as file:
            file.write(gzip.compress(b"WARC/1.1\r\nWARC-Type: response\r\n")[:-3])
        process = Forked([sys.executable, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said, _ = process.communicate(timeout=HANG)
        assert process.wait() == 0, said
        after = Counter(site.asked[n_before:])
    first, second = archived(tmp_path / "out")
    stored = asked_in(records_in(first))
    assert stored <= before
    assert before - stored <= Counter(site.asked[n_before - 2 : n_before])  # held back, or not yet used
    assert asked_in(records_in(second)) == after


DYING = '''
import os, pathlib, signal, sys
sys.path[:0] = {path!r}
from crawls import Follower

class Dying(Follower):
    """Kills itself in the callback of a page, the first time."""

    custom_settings = dict(FOCUS_MAX_INFLIGHT=1)

    def __init__(self, root, **kwargs):
        super().__init__(seeds=[root], **kwargs)

    def parse(self, response):
        if "/page/3/" in response.url and not os.path.exists("died"):
            pathlib.Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().parse(response)
'''


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL here")
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not yet"])
def test_an_answer_of_the_run_before(site: MockSite, tmp_path: Path, stored: bool) -> None:
    """With FOCUS_KILL_SAFE_FETCH, an answer is not requested again; it is stored if the run before had not."""
    (tmp_path / "dying.py").write_text(DYING.format(path=[str(Path(__file__).parent), str(Path(__file__).parents[2])]))
    words = [sys.executable, "-m", "scrapy", "runspider", "dying.py", "-a", f"root={site.url('/page/0/12')}"]
    settings = {
        "SCHEDULER": "scrapy_focus.FocusScheduler", "JOBDIR": "job", "FOCUS_KILL_SAFE_FETCH": "1", "FOCUS_WARC": "warc",
        "FOCUS_PROGRESS": "off", "TELNETCONSOLE_ENABLED": "0",
    }  # fmt: skip
    for name, value in settings.items():
        words += ["-s", f"{name}={value}"]
    for status in (-signal.SIGKILL, 0):
        process = Forked(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said, _ = process.communicate(timeout=HANG)
        assert process.wait() == status, said[-3000:]
        if status and not stored:  # as if the kill had come before the last answer was stored
            path = tmp_path / "warc" / "crawl-00001.warc.gz"
            n_kept = len(records_in(path)) - 2
            path.write_bytes(path.read_bytes()[: _end_of(path, n_kept) + 10])
    assert sorted(path for _, path in site.asked) == sorted(tree_paths(12))
    assert asked_in(records_in(*archived(tmp_path / "warc"))) == Counter(site.asked)


def _end_of(path: Path, n_records: int) -> int:
    """Return where a number of records end in a file."""
    with path.open("rb") as file:
        return [end for end, _ in warc_files._members(file)][n_records - 1]
