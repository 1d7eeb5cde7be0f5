"""Cookies, headers and passwords go to their own hosts, whatever redirects and links say, and are stored nowhere."""

from __future__ import annotations

import asyncio
import base64
import socket
import zlib
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from crawls import crawl
from handmadebrowser import HANDLERS, put_in
from mocksite import MockSite
from scrapy import Request
from test_find_commands import FAST, manifest, run
from test_start_urls import SPIDERS

from scrapy_focus.engine.browser.cookies import add_cookies, cookies_of
from scrapy_focus.engine.browser.ways import Network
from scrapy_focus.engine.ending import ending_of
from scrapy_focus.features import existing
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.news.spider import NewsSpider
from scrapy_focus.finders.topic.spider import TopicSpider
from scrapy_focus.web.access import Access
from scrapy_focus.web.cookies import read_cookies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy.http import Response

COOKIE, PLAIN, DEEP, THEIRS = "s3cret-session", "s3cret-plain", "s3cret-deep", "s3cret-theirs"
KEY, PASSWORD = "s3cret-key", "s3cret-password"
SIGNED = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
COOKIES = f"""# Netscape HTTP Cookie File
127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t{COOKIE}
127.0.0.1\tFALSE\t/\tFALSE\t0\tplain\t{PLAIN}
#HttpOnly_127.0.0.1\tFALSE\t/deep\tFALSE\t0\tdeep\t{DEEP}
127.0.0.1\tFALSE\t/\tTRUE\t0\tsecure\ts3cret-secure
localhost\tFALSE\t/\tFALSE\t0\ttheirs\t{THEIRS}
"""
CSV = {"Content-Type": "text/csv"}
AGAIN = ("-s", "RETRY_TIMES=1", "-L", "DEBUG", "--user-agent", "mybot")
WARC = ("--warc",) if find_spec("warcio") else ()
TO_GATE = {"Location": "/gate", "Set-Cookie": "session=of-gate"}


@pytest.fixture
def sites() -> Iterator[tuple[MockSite, MockSite]]:
    """A site that redirects and links to another host, whose pages link back."""
    with MockSite() as mine, MockSite("localhost") as other:
        links = [
            "/a.csv",
            "/away",
            "/again",
            "/gate",
            "/deep/b.csv",
            other.url("/linked"),
            *(f"/ok?{i}" for i in range(3)),
        ]
        mine.pages["/"] = "".join(f'<p><a href="{link}">{i}</a>' for i, link in enumerate(links))
        for path in ("/a.csv", "/deep/b.csv"):
            mine.answers[path] = lambda _, path=path: (200, CSV, path.encode())  # type: ignore[misc]
        mine.answers["/away"] = lambda _: (302, {"Location": other.url("/stolen")}, b"")
        mine.answers["/again"] = lambda n: (503, {}, b"") if n == 1 else (200, CSV, b"again")
        mine.answers["/gate"] = lambda n: (302, TO_GATE, b"") if n == 1 else None
        mine.pages["/gate"] = "<p>inside"
        for path in ("/linked", "/stolen"):
            other.pages[path] = f'<a href="{mine.url("/back")}">back</a>'
        mine.pages["/back"] = "<p>back"
        yield mine, other


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file with cookies, outside of the folder of the crawl."""
    (tmp_path / "cookies.txt").write_text(COOKIES, encoding="utf-8")
    return str(tmp_path / "cookies.txt")


def secrets_in(*folders: Path, said: str = "") -> list[str]:
    """Return which files, and whether a text, contain a secret or what is sent for it."""
    telling = ["what is said"] if any(secret in said for secret in ("s3cret", SIGNED[6:])) else []
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if path.suffix == ".gz":
            content += b"".join(unpacked(content))
        if any(secret in content for secret in (b"s3cret", SIGNED[6:].encode())):
            telling.append(str(path))
    return telling


def unpacked(content: bytes) -> Iterator[bytes]:
    """Yield the members of a gzip file, whose end may be cut."""
    while content:
        member = zlib.decompressobj(wbits=31)
        yield member.decompress(content)
        content = member.unused_data


def check_headers(mine: MockSite, other: MockSite) -> None:
    """Fail unless each site received what is meant for it in every request, and nothing else."""
    for seen in mine.log:
        cookies = {*seen.headers.get("cookie", "").split("; ")}
        is_later = seen.path == "/gate" and "session=of-gate" in cookies
        session = "session=of-gate" if is_later else f"session={COOKIE}"
        deep = [f"deep={DEEP}"] if seen.path.startswith("/deep/") else []
        assert cookies == {session, f"plain={PLAIN}", *deep}, seen.path
        assert (seen.headers.get("x-key"), seen.headers.get("authorization")) == (KEY, SIGNED), seen.path
        assert seen.headers["user-agent"] == "mybot"
    for seen in other.log:
        assert seen.headers.get("cookie") == f"theirs={THEIRS}", seen.path
        assert {"x-key", "authorization"}.isdisjoint(seen.headers), seen.path
        assert seen.headers["user-agent"] == "mybot"


@pytest.mark.reactor
@pytest.mark.parametrize(("spider", "name", "more"), SPIDERS)
def test_each_host_receives_its_own(
    sites: tuple[MockSite, MockSite], spider: Any, name: str, more: dict[str, str], file: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """In robots.txt, pages, retries and redirects; none of it is logged, or is in a file of the crawl."""
    monkeypatch.setenv("FOCUS_PASSWORD", PASSWORD)
    mine, other = sites
    folder = tmp_path / "out"
    out = {"out": str(folder)} if name == "root" else {"folder": str(folder)}
    settings = {"JOBDIR": str(folder / "job"), "FOCUS_SEED": 0, "ROBOTSTXT_OBEY": True, "COOKIES_ENABLED": False}
    if spider is DatasetsSpider:
        settings |= {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(folder / "cache")}
        settings |= {"HTTPCACHE_IGNORE_HTTP_CODES": [302, 503]}
    settings |= {"FOCUS_BUDGET_REQUESTS": 10 if spider is NewsSpider else 24}  # a watch does not end by itself
    settings |= {"FOCUS_LOG": str(folder / "events.jsonl"), **existing({"FOCUS_KILL_SAFE_FETCH": True})}
    sent = {"cookies": file, "header": f"X-Key: {KEY}", "auth": "me", "user_agent": "mybot", "delay": "0"}
    crawled = crawl(spider, settings, addon=True, **{name: mine.url("/"), **out, **more, **sent})
    assert crawled.errors == {}
    assert mine.log[0].path == "/robots.txt"
    assert {"/", "/away"} <= {*mine.paths}
    assert mine.paths.count("/gate") >= 2
    if spider is TopicSpider:
        assert {"/robots.txt", "/stolen", "/linked"} <= {seen.path for seen in other.log}
    check_headers(mine, other)
    said = "\n".join(record.getMessage() for record in crawled.records)
    assert secrets_in(folder, said=said) == []


def test_a_crawl_that_resumes_sends_what_it_is_given_again(
    sites: tuple[MockSite, MockSite], file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run without these options sends nothing of the run before. No run, dry run or status shows a secret."""
    monkeypatch.setenv("FOCUS_PASSWORD", PASSWORD)
    mine, _ = sites
    words = ("files", mine.url("/"), "--types", "csv", *WARC, *FAST, *AGAIN)
    sent = ("--cookies", file, "--header", f"X-Key: {KEY}", "--auth", "me")
    announced = run(tmp_path, *words, *sent, "--dry-run")
    assert mine.log == []
    first = run(tmp_path, *words, *sent, "--budget", "3")
    n_first = len(mine.log)
    check_headers(*sites)
    second = run(tmp_path, *words, "--budget", "6")
    without = mine.log[n_first:]
    assert without
    assert all({"cookie", "x-key", "authorization"}.isdisjoint(seen.headers) for seen in without)
    del mine.log[n_first:]
    third = run(tmp_path, *words, *sent, "--budget", "40")
    check_headers(*sites)
    status = run(tmp_path, "status", "found")
    assert {line["url"] for line in manifest(tmp_path / "found")} == {
        mine.url("/a.csv"), mine.url("/deep/b.csv"), mine.url("/again"),
    }  # fmt: skip
    said = "".join((*announced, *first, *second, *third, *status)).replace(file, "")
    assert secrets_in(tmp_path / "found", said=said) == []
    place = f"127.0.0.1:{mine.port}"
    for each in (announced[0], first[0]):
        assert f"the name me with its password to {place}" in each
        assert f"X-Key to {place}" in each
        assert f"the cookies of {file} to 127.0.0.1 and 1 other domain" in each
    assert "Sends along" not in second[0]


class Noting(DatasetsSpider):
    """Notes the pages whose requests name a proxy when they are read."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.with_proxy: list[str] = []

    def parse(self, response: Response, **kwargs: Any) -> Any:
        if "proxy" in response.meta or "Proxy-Authorization" in response.request.headers:
            self.with_proxy.append(response.url)
        return super().parse(response, **kwargs)


@pytest.mark.reactor
@pytest.mark.parametrize("signed", [SIGNED, None], ids=["password", "none"])
def test_all_requests_go_through_the_proxy(signed: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its password, which is stored nowhere; names are left to it, and proxies of the environment are ignored."""
    monkeypatch.setenv("http_proxy", "http://you:s3cret-other@127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    with MockSite() as proxy:
        proxy.pages["http://one.test/"] = '<a href="/moved">a</a>'
        proxy.answers["http://one.test/moved"] = lambda _: (302, {"Location": "/b.csv"}, b"")
        proxy.answers["http://one.test/b.csv"] = lambda n: (503, {}, b"") if n == 1 else (200, CSV, b"b")
        url = proxy.url("").replace("//", f"//me:{PASSWORD}@" if signed else "//")
        settings = {"ROBOTSTXT_OBEY": True, "FOCUS_PUBLIC_ONLY": True, "JOBDIR": str(tmp_path / "job")}
        out = {"out": str(tmp_path / "out"), "proxy": url, "delay": "0"}
        crawled = crawl(Noting, settings, addon=True, root="http://one.test/", **out)
        assert [seen.path.removeprefix("http://one.test") for seen in proxy.log] == [
            "/robots.txt", "/", "/moved", "/b.csv", "/b.csv",
        ]  # fmt: skip
        assert {seen.headers.get("proxy-authorization") for seen in proxy.log} == {signed}
    assert len(manifest(tmp_path / "out")) == 1
    said = "\n".join(record.getMessage() for record in crawled.records)
    assert secrets_in(tmp_path, said=said) == []
    assert crawled.spider.with_proxy == [], "a queued request would keep the proxy for the next run"


def test_an_unreachable_proxy_is_named(tmp_path: Path) -> None:
    """Not only the start URL, which may be fine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    out = {"out": str(tmp_path / "out"), "proxy": f"http://me:{PASSWORD}@127.0.0.1:{port}", "delay": "0"}
    crawled = crawl(Noting, {"RETRY_ENABLED": False}, addon=True, root="http://one.test/", **out)
    sentence = ending_of(crawled.crawler).sentence
    assert f"the connection was refused, through the proxy http://127.0.0.1:{port}): check that proxy" in sentence


@pytest.mark.parametrize("most", [1, 4])
def test_so_many_requests_are_in_flight_at_once(most: int, tmp_path: Path) -> None:
    """Without a delay, the server sees as many at a time as were asked for."""
    with MockSite(pages={"/": "".join(f'<a href="/ok?{i}">{i}</a>' for i in range(12))}, latency=0.05) as site:
        given = {"delay": "0", "concurrency": str(most), "out": str(tmp_path)}
        crawl(DatasetsSpider, {"DOWNLOAD_DELAY": 5}, addon=True, root=site.url("/"), **given)
        assert site.most_open == most


def test_cookies_that_scrapy_keeps_are_newer(tmp_path: Path) -> None:
    """With ``COOKIES_ENABLED``, the cookie of a site replaces the one of the file."""
    (tmp_path / "cookies.txt").write_text("127.0.0.1\tFALSE\t/\tFALSE\t0\tvisited\tbefore\n")
    with MockSite(pages={"/": '<a href="/cookie">a</a>'}) as site:
        site.answers["/cookie"] = lambda _: (
            200, {"Content-Type": "text/html", "Set-Cookie": "visited=yes; Path=/"}, b'<a href="/ok">on</a>',
        )  # fmt: skip
        given = {"cookies": str(tmp_path / "cookies.txt"), "delay": "0", "out": str(tmp_path / "out")}
        crawl(DatasetsSpider, {"COOKIES_ENABLED": True}, addon=True, root=site.url("/"), **given)
        assert [(seen.path, seen.headers["cookie"]) for seen in site.log] == [
            ("/", "visited=before"), ("/cookie", "visited=before"), ("/ok", "visited=yes"),
        ]  # fmt: skip


def test_a_browser_gets_the_proxy_and_no_headers(
    sites: tuple[MockSite, MockSite], file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """scrapy-playwright would send the headers of a request to the target of its redirect, too."""
    mine, _ = sites
    seen: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def note(browser: Any, request: Request) -> Any:
        seen.append((request.headers.to_unicode_dict(), dict(request.meta["playwright_context_kwargs"])))
        return download(browser, request)

    browser = put_in(monkeypatch)
    download = browser.download_request
    monkeypatch.setattr(browser, "download_request", note)
    proxy = f"http://me:x@127.0.0.1:{mine.port}"
    given: dict[str, Any] = {"cookies": file, "header": [f"X-Key: {KEY}"], "insecure": "yes", "proxy": proxy}
    settings = {**HANDLERS, "FOCUS_RENDER": "always", "FOCUS_BUDGET_REQUESTS": 4, "FOCUS_PUBLIC_ONLY": True}
    crawl(DatasetsSpider, settings, addon=True, root=mine.url("/"), delay="0", out=str(tmp_path / "out"), **given)
    assert seen
    for headers, options in seen:
        assert {"X-Key", "Cookie", "Authorization"}.isdisjoint(headers)
        assert options["ignore_https_errors"] is True
        assert options["proxy"] == {"server": f"http://127.0.0.1:{mine.port}", "username": "me", "password": "x"}


def test_headers_of_a_browser_depend_on_each_url() -> None:
    """Those of the crawl replace the page's own of that name; a request to another origin is sent unchanged."""
    access = Access(headers={"http:a.test:80": {"X-Key": b"1", "Authorization": b"Basic x"}})
    network = Network(SimpleNamespace(), SimpleNamespace(headers=access.headers_for))  # type: ignore[arg-type]
    event = {"request": {"url": "http://a.test/x", "headers": {"Accept": "*/*", "x-KEY": "page"}}}
    assert network._with_ours(event) == {
        "headers": [
            {"name": "accept", "value": "*/*"}, {"name": "x-key", "value": "1"},
            {"name": "authorization", "value": "Basic x"},
        ]
    }  # fmt: skip
    for url in ("https://a.test/x", "http://a.test:81/", "http://b.test/"):
        assert network._with_ours({"request": {"url": url, "headers": {}}}) == {}


class _Context:
    """Takes cookies as a browser does: all at once or none, and not every one."""

    def __init__(self) -> None:
        self.cookies: list[dict[str, Any]] = []

    async def add_cookies(self, cookies: list[dict[str, Any]]) -> None:
        if any(cookie["name"].startswith("__Host-") and not cookie["secure"] for cookie in cookies):
            raise ValueError("Invalid cookie fields")
        self.cookies += cookies


def test_a_cookie_that_a_browser_refuses_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """The others are there, as the file has them."""
    lines = [
        "a.test\tFALSE\t/\tFALSE\t0\t__Host-a\ts3cret", "#HttpOnly_.a.test\tTRUE\t/x\tTRUE\t9999999999\tb\t2",
        "a.test\tFALSE\t/\tFALSE\t0\t\tbare",
    ]  # fmt: skip
    context: Any = _Context()
    asyncio.run(add_cookies(context, read_cookies("\n".join(lines))))
    assert context.cookies == [
        {"name": "b", "value": "2", "domain": ".a.test", "path": "/x", "expires": 9999999999, "secure": True, "httpOnly": True},
        {"name": "", "value": "bare", "domain": "a.test", "path": "/", "expires": -1, "secure": False, "httpOnly": False},
    ]  # fmt: skip
    assert "The browser refuses 1 cookie" in caplog.text
    assert "s3cret" not in caplog.text


def test_the_cookie_header_of_a_request_becomes_cookies() -> None:
    """For its host alone, as a browser ignores the header."""
    cookies = cookies_of(Request("https://A.test:81/x", headers={"Cookie": "a=1; b=2"}))
    assert [(each.name, each.value, each.domain, each.domain_specified, each.secure) for each in cookies] == [
        ("a", "1", "a.test", False, True), ("b", "2", "a.test", False, True),
    ]  # fmt: skip
    assert cookies_of(Request("https://a.test/")) == []
