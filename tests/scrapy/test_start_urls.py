"""Crawls that begin at URLs as people write them: with an international name, an IPv6 address, or a password."""

from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING, Any

import pytest
from crawls import crawl
from handmadehosts import Handmade, html
from mocksite import MockSite
from test_find_commands import FAST, manifest, run

from scrapy_focus.features import existing
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.important.spider import ImportantSpider
from scrapy_focus.finders.kit.arguments.credentials import take_credentials
from scrapy_focus.finders.news.spider import NewsSpider
from scrapy_focus.finders.structured.spider import StructuredSpider
from scrapy_focus.finders.topic.spider import TopicSpider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mocksite import Answer

CITY = "http://xn--mnchen-3ya.test"
SPIDERS = [
    (DatasetsSpider, "root", {}),
    (ImportantSpider, "root", {}),
    (NewsSpider, "root", {"rate": "100000/hour"}),
    (StructuredSpider, "seeds", {"scope": "host"}),
    (TopicSpider, "seeds", {"keywords": "xy"}),
]


@pytest.mark.parametrize("root", ["http://münchen.test/", "http://www.MÜNCHEN.test/", CITY + "/"])
@pytest.mark.parametrize(("spider", "name", "more"), SPIDERS)
def test_an_international_name_is_crawled(
    spider: Any, name: str, more: dict[str, str], root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it is spelled, the crawl stays on it, and sends something."""
    www = "http://www.xn--mnchen-3ya.test/"
    pages = {url: html("/a", "http://other.test/") for url in (CITY + "/", www)}
    pages |= {url + "a": html() for url in (CITY + "/", www)}
    start = www if "www" in root else CITY + "/"
    with Handmade(pages) as server:
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.setenv("no_proxy", "")
        budget = {"FOCUS_BUDGET_REQUESTS": 3 if spider is TopicSpider else 2}  # a watch does not end by itself
        crawled = crawl(spider, budget, addon=True, **{name: root, "out": str(tmp_path / "out"), **more})
    assert crawled.errors == {}
    assert [url for url in dict.fromkeys(server.asked_for) if url != "http://other.test/"] == [start, start + "a"]
    assert ("http://other.test/" in server.asked_for) == (spider is TopicSpider)


def loopback6() -> MockSite:
    """Return a site at ``::1``."""
    try:
        return MockSite("::1")
    except OSError:
        pytest.skip("this machine has no IPv6")


@pytest.mark.few(1)
@pytest.mark.parametrize("command", ["files", "record"])
def test_an_ipv6_address_is_crawled(command: str, tmp_path: Path) -> None:
    """By its address in brackets, which is on this machine and allowed, as the crawl begins there."""
    with loopback6() as site:
        site.pages["/"] = '<a href="/a.csv">a</a>'
        site.answers["/a.csv"] = lambda _: (200, {"Content-Type": "text/csv"}, b"a,b")
        if command == "files":
            run(tmp_path, "files", site.url("/"), "--types", "csv", *FAST)
            assert [line["url"] for line in manifest(tmp_path / "found")] == [site.url("/a.csv")]
        else:
            run(tmp_path, "record", "site.sqlite", "-a", f"root={site.url('/')}", *FAST)
        assert site.paths == ["/", "/a.csv"]


def test_an_ipv6_address_inside_is_refused_where_the_crawl_begins_outside(site: MockSite) -> None:
    """``FOCUS_PUBLIC_ONLY`` reads addresses in brackets, including embedded IPv4 addresses."""
    urls = ["http://[fd00::1]/", "http://[::ffff:10.0.0.1]/", "http://[fe80::1]/", "http://[64:ff9b::a00:1]/"]
    site.pages["/"] = "".join(f'<a href="{url}">on</a>' for url in urls)
    args = {"seeds": site.url("/"), "keywords": "xy", "out": "-"}
    crawled = crawl(TopicSpider, {"FOCUS_PUBLIC_ONLY": True, "RETRY_TIMES": 0}, addon=True, **args)
    assert crawled.stats["focus/address/inside"] == len(urls)


USER, PASSWORD = "mé", "s3cr:t p@ss"
QUOTED = "m%C3%A9:s3cr:t%20p%40ss"
SIGNED = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


class ClosedSite(MockSite):
    """Answers those only who sign in."""

    def answer(self, path: str) -> Answer:
        seen = next(seen for seen in reversed(self.log) if seen.path == path)
        if seen.headers.get("authorization") != SIGNED:
            return 401, {"Content-Type": "text/html", "WWW-Authenticate": "Basic"}, b"<p>who is there?"
        return super().answer(path)


@pytest.fixture
def closed() -> Iterator[tuple[ClosedSite, MockSite]]:
    """A site that requires a login, and another one on the same host that tries to steal the password."""
    with ClosedSite() as site, MockSite() as other:
        there = other.url("/stolen")
        links = [
            "/a.csv", f"http://you:wrong@127.0.0.1:{site.port}/b.csv", "/moved", "/away", there,
            f"http://you:wrong@127.0.0.1:{other.port}/linked", *(f"/ok?{i}" for i in range(9)),
        ]  # fmt: skip
        site.pages["/"] = "".join(f'<p><a href="{link}">{i}</a>' for i, link in enumerate(links))
        csv = {"Content-Type": "text/csv"}
        site.answers = {f"/{name}.csv": lambda _, name=name: (200, csv, name.encode()) for name in "abc"}  # type: ignore[misc]
        site.answers["/moved"] = lambda _: (302, {"Location": f"http://you:wrong@127.0.0.1:{site.port}/c.csv"}, b"")
        site.answers["/away"] = lambda _: (302, {"Location": other.url("/redirected")}, b"")
        yield site, other


def secrets_in(folder: Path) -> list[str]:
    """Return which files tell a password, or what is sent for it.

    Answers of pages that are not done are kept as the server sent them, with its own links.
    """
    telling = []
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            content += gzip.decompress(content) if path.suffix == ".gz" else b""
            words = [PASSWORD, QUOTED.partition(":")[2], SIGNED[6:], *(["wrong"] if path.name != "answers" else [])]
            if any(word.encode() in content for word in words):
                telling.append(str(path))
    return telling


@pytest.mark.parametrize(("spider", "name", "more"), SPIDERS)
def test_a_password_goes_to_its_host_alone(
    closed: tuple[ClosedSite, MockSite], spider: Any, name: str, more: dict[str, str], tmp_path: Path
) -> None:
    """It is in no link, redirect or file, and in no log; user names and passwords in links are removed."""
    site, other = closed
    root = site.url("/").replace("//", f"//{QUOTED}@")
    out = {"out": str(tmp_path)} if name == "root" else {"folder": str(tmp_path)}
    settings = {"JOBDIR": str(tmp_path / "job"), "FOCUS_SEED": 0, "RETRY_TIMES": 0}
    settings |= {"FOCUS_BUDGET_REQUESTS": 12, "ROBOTSTXT_OBEY": True, "COOKIES_ENABLED": False}
    settings |= existing({"FOCUS_KILL_SAFE_FETCH": True})  # the file of responses is checked, too
    crawled = crawl(spider, settings, addon=True, **{name: root, **out, **more})
    assert crawled.errors == {}
    assert crawled.outcomes["ok"] >= 2
    assert {seen.headers.get("authorization") for seen in site.log} == {SIGNED}
    assert site.log[0].path == "/robots.txt"
    assert not [seen for seen in other.log if "authorization" in seen.headers]
    said = [record.getMessage() for record in crawled.records]
    assert not [line for line in said if any(word in line for word in (PASSWORD, "s3cr", "wrong", SIGNED[6:]))]
    assert secrets_in(tmp_path) == []


def test_files_behind_a_password_by_a_command(closed: tuple[ClosedSite, MockSite], tmp_path: Path) -> None:
    """The dry run and the crawl itself show the URL without it; the same command without it does not get in."""
    site, other = closed
    url = site.url("/").replace("//", f"//{QUOTED}@")
    words = ("files", url, "--types", "csv", *FAST)
    said = "".join(run(tmp_path, *words, "--dry-run"))
    assert site.log == []
    said += "".join(run(tmp_path, *words, "-L", "INFO"))
    assert {line["url"] for line in manifest(tmp_path / "found")} == {site.url(f"/{name}.csv") for name in "abc"}
    assert {"/redirected", "/stolen", "/linked"} <= {*other.paths}
    assert not [seen for seen in other.log if "authorization" in seen.headers]
    assert "s3cr" not in said
    assert site.url("/") in said
    assert secrets_in(tmp_path) == []
    _, logged = run(tmp_path, "files", site.url("/"), "--out", "again", *FAST, expect=4)
    assert "it answers 401" in logged


def test_a_site_behind_a_password_is_recorded(closed: tuple[ClosedSite, MockSite], tmp_path: Path) -> None:
    """And the recording does not contain it."""
    site, _ = closed
    url = site.url("/").replace("//", f"//{QUOTED}@")
    said = "".join(run(tmp_path, "record", "site.sqlite", "-a", f"root={url}", *FAST))
    assert {"/", "/a.csv", "/b.csv", "/c.csv"} <= {*site.paths}
    assert {seen.headers.get("authorization") for seen in site.log} == {SIGNED}
    assert "s3cr" not in said
    assert secrets_in(tmp_path) == []


def test_to_which_origins_a_password_goes() -> None:
    """Scheme, host and port have to be the same; from the usual port of http, https at its own may follow."""
    urls, headers = take_credentials(
        ["http://a:b@Münch.test/x", "https://c@h.test:8443/", "http://[x", "http://h.test/"]
    )
    assert urls == ["http://Münch.test/x", "https://h.test:8443/", "http://[x", "http://h.test/"]
    ab, c = (b"Basic " + base64.b64encode(each) for each in (b"a:b", b"c:"))
    assert headers == {"http:xn--mnch-0ra.test:80": ab, "https:xn--mnch-0ra.test:443": ab, "https:h.test:8443": c}
