"""Hosts that ask for a pause get one: ``Retry-After``, an unavailable robots.txt, ``Crawl-delay``."""

from __future__ import annotations

import codecs
import gzip
import re
import time
from email.utils import formatdate
from itertools import pairwise
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, SomeHeadsFirst, crawl
from mocksite import MockSite
from scrapy.core.engine import ExecutionEngine

from scrapy_focus.downloadermiddlewares import RobotsMiddleware
from scrapy_focus.engine.ending import ending_of
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mocksite import Answer
    from scrapy import Request

WAIT = 1  # seconds
HTML = {"Content-Type": "text/html"}
PLAIN = {"Content-Type": "text/plain"}
ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])


@pytest.fixture(autouse=True)
def _slow_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but us wakes the engine."""
    monkeypatch.setattr(ExecutionEngine, "_SLOT_HEARTBEAT_INTERVAL", 60.0)


@pytest.fixture
def other() -> Iterator[MockSite]:
    with MockSite("127.0.0.2") as running:
        yield running


def busy_at_first(
    status: int, times: int = 1, *, retry_after: str | Callable[[], str]
) -> Callable[[int], Answer | None]:
    """Return what answers so for some times."""

    def answer(n: int) -> Answer | None:
        value = retry_after if isinstance(retry_after, str) else retry_after()
        return (status, {**HTML, "Retry-After": value}, b"not now") if n <= times else None

    return answer


def tree(site: MockSite, first: str, n: int = 12) -> None:
    """Let the first page link to ``first`` and then to more."""
    site.pages["/"] = f'<a href="{first}">x</a>' + "".join(f'<a href="/ok?{i}">x</a>' for i in range(n))


def gap(site: MockSite, path: str) -> float:
    """Return the seconds between the first answer under a path and whatever the server was asked next."""
    first = next(i for i, seen in enumerate(site.log) if seen.path == path)
    return site.log[first + 1].at - site.log[first].at


@pytest.mark.few(1)
@pytest.mark.reactor
@pytest.mark.parametrize(
    ("status", "how", "addon"),
    [(429, "seconds", False), (503, "date", False), (503, "seconds", True), (429, "date", True)],
)
def test_retry_after_puts_the_host_off(site: MockSite, other: MockSite, addon: bool, status: int, how: str) -> None:
    """Nothing is sent to it for so long, but to other hosts; then the page is fetched, and all its others."""

    value = str(WAIT) if how == "seconds" else formatdate(time.time() + 86_400, usegmt=True)  # cut to WAIT

    def busy(n: int) -> Answer | None:
        """Until others were asked meanwhile."""
        is_over = n > 1 and any(seen.at > first("/busy") for seen in other.log)
        return None if is_over else (status, {**HTML, "Retry-After": value}, b"not now")

    def others(n: int) -> None:
        """From the first time on that it is busy."""
        until = time.monotonic() + HANG
        while "/busy" not in site.paths and time.monotonic() < until:
            time.sleep(0.02)

    def first(path: str) -> float:
        return next(seen.at for seen in site.log if seen.path == path)

    site.answers["/busy"] = busy
    site.pages["/busy"] = "now"
    tree(site, "/busy")
    other.answers["/"] = others  # type: ignore[assignment]
    other.pages["/"] = "".join(f'<a href="/ok?{i}">x</a>' for i in range(9))
    settings = {
        "FOCUS_POLICY": BREADTH_FIRST, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "FOCUS_LONGEST_WAIT": WAIT,
        "RETRY_TIMES": 30,
    }  # fmt: skip
    result = crawl(Follower, settings, addon=addon, seeds=[site.url("/"), other.url("/")])
    assert gap(site, "/busy") >= WAIT / 2
    *times, again = (seen.at for seen in site.log if seen.path == "/busy")
    assert [seen for seen in other.log if times[0] < seen.at < again]
    assert len(site.paths) == 14 + len(times)
    assert result.stats["focus/host/put_off"] == len(times)
    assert result.outcomes == {"ok": 24}
    assert result.reason == "finished"
    line, *_ = result.logged("No requests go to 127.0.0.1 until")
    assert f"it answered {status} with Retry-After" in line


@pytest.mark.few(2)
@pytest.mark.reactor
@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ({"FOCUS_LONGEST_WAIT": 0.5}, "86400"),
        ({"FOCUS_OBEY": []}, "86400"),
        ({"FOCUS_LONGEST_WAIT": 0}, "9"),
        ({}, "soon"),
    ],
)
def test_nobody_is_put_off_for_longer_than_is_allowed(site: MockSite, settings: dict[str, Any], value: str) -> None:
    """The host asks for a day, and the pause is as long as the settings allow; an invalid value has no effect."""
    site.answers["/busy"] = busy_at_first(503, retry_after=value)
    tree(site, "/busy")
    site.pages["/busy"] = "now"
    begin = time.monotonic()
    result = crawl(Follower, settings, seeds=[site.url("/")])
    assert time.monotonic() - begin < 250  # without the cut, the wait takes 300 at least
    assert result.outcomes == {"ok": 14}


@pytest.mark.reactor
def test_what_was_chosen_already_waits(site: MockSite) -> None:
    """Requests that are in flight with the one that was refused are the last ones, and count for no retry."""
    site.latency = 0.2
    for i in range(4):
        site.answers[f"/busy?{i}"] = busy_at_first(429, retry_after=str(WAIT))
        site.pages[f"/busy?{i}"] = "now"
    site.pages["/"] = "".join(f'<a href="/busy?{i}">x</a>' for i in range(4)) + '<a href="/ok">x</a>' * 1
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 4, "FOCUS_POLICY": BREADTH_FIRST}
    result = crawl(Follower, settings, seeds=[site.url("/")])
    assert result.outcomes == {"ok": 6}
    at = sorted(seen.at for seen in site.log)
    assert max(later - before for before, later in pairwise(at)) >= WAIT / 2
    assert result.stats["retry/count"] == 4


@pytest.mark.reactor
def test_a_head_that_is_refused_comes_again(site: MockSite) -> None:
    """A HEAD is not taken for an answer that asks for patience, nor repeated at once."""
    site.answers["/busy"] = busy_at_first(503, retry_after=str(WAIT))
    site.pages |= {"/": '<a href="/busy">x</a>', "/busy": "now"}
    settings = {"FOCUS_POLICY": SomeHeadsFirst, "FOCUS_POLICY_PARAMS": {"modulus": 1}}
    result = crawl(Follower, settings, seeds=[site.url("/")])
    heads = [seen for seen in site.log if seen.path == "/busy"]
    assert [seen.method for seen in heads][:2] == ["HEAD", "HEAD"]
    assert heads[1].at - heads[0].at >= WAIT / 2
    assert result.stats["focus/host/put_off"] == 1


@pytest.mark.reactor
def test_a_host_that_never_answers_otherwise_ends(site: MockSite) -> None:
    """Scrapy's number of retries does not change, so the crawl ends."""
    site.answers["/busy"] = busy_at_first(503, 99, retry_after="1")
    result = crawl(Follower, {"RETRY_TIMES": 2}, seeds=[site.url("/busy")])
    assert site.paths == ["/busy"] * 3
    assert result.outcomes == {"http_error": 1}
    assert result.stats["focus/host/put_off"] == 3


# robots.txt


class Soon(RobotsMiddleware):
    """Asks again soon."""

    first_wait = 0.5


class Impatient:
    """Does not wait for responses that never come; waits for others as long as they take."""

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/hang"):
            request.meta["download_timeout"] = 1


ROBOTS: dict[str, Any] = {
    "ROBOTSTXT_OBEY": True, "FOCUS_OBEY": ["robots-errors"], "FOCUS_LONGEST_WAIT": 1, "RETRY_TIMES": 0,
    "DOWNLOADER_MIDDLEWARES": {RobotsMiddleware: None, Soon: 100},
}  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.reactor
@pytest.mark.parametrize("how", ["500", "503", "429", "reset", "hang"])
def test_a_robots_txt_that_cannot_be_had_closes_its_host_for_now(site: MockSite, other: MockSite, how: str) -> None:
    """Nothing is sent to the host until it arrives; then its pages are fetched, as far as it allows."""
    failing = "/reset" if how == "reset" else "/hang"
    redirect = (302, {"Location": failing}, b"")
    answer: Answer = (int(how), PLAIN, b"") if how.isdigit() else redirect
    site.answers["/robots.txt"] = lambda n: answer if n <= 2 else None
    tree(site, "/forbidden", 3)
    settings = {**ROBOTS, "DOWNLOADER_MIDDLEWARES": {**ROBOTS["DOWNLOADER_MIDDLEWARES"], Impatient: 400}}
    result = crawl(Follower, settings, addon=True, seeds=[site.url("/"), other.url("/ok")])
    assert other.paths == ["/ok"]
    asked = [seen.path for seen in site.log if seen.path != failing]
    assert asked[:3] == ["/robots.txt"] * 3
    assert sorted(asked[3:]) == ["/", "/ok?0", "/ok?1", "/ok?2"]
    assert result.outcomes == {"ok": 5, "ignored": 1}
    assert result.stats["robotstxt/unreachable"] == 2
    why = f"answers {how}" if how.isdigit() else "could not be read: no answer in time" if how == "hang" else "lost"
    assert result.logged("No requests go to 127.0.0.1 until")
    assert result.logged(why)


@pytest.mark.reactor
def test_a_host_without_robots_txt_for_good_is_given_up(site: MockSite) -> None:
    """After three times its links are ignored, and the crawl ends."""
    site.answers["/robots.txt"] = lambda n: (500, PLAIN, b"")
    seeds = [site.url(f"/ok?{i}") for i in range(20)]
    result = crawl(Follower, ROBOTS, addon=True, seeds=seeds)
    assert site.paths == []
    assert 3 <= len(site.log) <= 6
    assert result.outcomes == {"ignored": 20}
    assert result.reason == "finished"


RULES = b"User-agent: *\r\nDisallow: /forbidden\r\n"


@pytest.mark.reactor
@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", RULES),
        ("x-gzip", codecs.BOM_UTF8 + RULES),
        ("deflate", b"\n\n" + RULES),
        ("br", RULES),
        ("zstd", RULES),
        ("compress", RULES),
        ("gzip", b"# B\xfccher\r\n" + RULES),
        ("br", gzip.compress(RULES, mtime=0)),
        ("gzip", gzip.compress(RULES, mtime=0)),
        ("gzip", gzip.compress(RULES, mtime=0)[:-8]),
        ("", gzip.compress(RULES, mtime=0)),
        ("", RULES.decode().encode("utf-16")),
    ],
)
def test_a_robots_txt_is_read_whatever_its_encoding_is_called(site: MockSite, encoding: str, body: bytes) -> None:
    """Plain text labelled as compressed is obeyed, and vice versa; nothing waits for it."""
    label = {"Content-Encoding": encoding} if encoding else {}
    site.answers["/robots.txt"] = lambda n: (200, {**PLAIN, **label}, body)
    seeds = [site.url("/ok"), site.url("/forbidden")]
    result = crawl(Follower, ROBOTS, addon=True, seeds=seeds)
    assert site.paths == ["/ok"]
    assert len(site.log) == 2
    assert result.outcomes == {"ok": 1, "ignored": 1}
    assert ending_of(result.crawler).sentence.endswith(f"Could not read {seeds[1]}: robots.txt forbids it.")


@pytest.mark.few(2)
@pytest.mark.reactor
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((200, {**PLAIN, "Content-Encoding": "gzip"}, b"\x1f\x8bnot gzip"), "could not be decoded"),
        ((200, {**PLAIN, "Content-Encoding": "br"}, b"\x89PNG\r\n\x1a\n\x00"), "could not be decoded"),
        ((200, {**PLAIN, "Content-Encoding": "compress"}, b"\x1f\x9d\x90\x00"), "could not be decoded"),
        ((503, {**PLAIN, "Retry-After": "1"}, b""), "answers 503"),
        ((302, {"Location": "/reset"}, b""), "could not be read: the connection was lost"),
    ],
)
def test_why_a_host_is_closed_is_said_at_once(site: MockSite, answer: Answer, why: str) -> None:
    """A warning says until when the host of a start URL is paused, and the last line gives the reason."""
    site.answers["/robots.txt"] = lambda n: answer
    settings = {
        "ROBOTSTXT_OBEY": True, "FOCUS_OBEY": ["robots-errors", "retry-after"], "FOCUS_LONGEST_WAIT": 1,
    }  # fmt: skip
    result = crawl(Follower, settings, addon=True, seeds=[site.url("/ok")])
    assert site.paths.count("/ok") == 0
    first, *_ = [record for record in result.records if "No requests go to 127.0.0.1 until" in record.getMessage()]
    assert first.levelname == "WARNING"
    assert re.search(rf"until \d\d:\d\d:\d\d \(for 1 s\): its robots.txt {why}", first.getMessage())
    assert f"No page could be read ({site.url('/ok')}: its robots.txt {why}" in ending_of(result.crawler).sentence
    assert "forbids" not in ending_of(result.crawler).sentence


@pytest.mark.reactor
def test_only_start_hosts_and_longer_waits_are_worth_a_warning(site: MockSite, other: MockSite) -> None:
    """Hosts of other links, and pauses no longer than the last one, are logged without a warning."""
    site.pages["/"] = f'<a href="{other.url("/busy")}">x</a>' + "".join(f'<a href="/busy?{i}">x</a>' for i in range(2))
    for i in range(2):
        site.answers[f"/busy?{i}"] = busy_at_first(429, retry_after="2")
    other.answers["/busy"] = busy_at_first(429, retry_after="2")
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "FOCUS_POLICY": BREADTH_FIRST}
    result = crawl(Follower, settings, seeds=[site.url("/")])
    assert result.stats["focus/host/put_off"] == 3
    said = [record for record in result.records if "No requests go to" in record.getMessage()]
    assert [record.levelname for record in said if "127.0.0.1" in record.getMessage()] == ["WARNING", "INFO"]
    assert [record.levelname for record in said if "127.0.0.2" in record.getMessage()] == ["INFO"]


class PlainOnly(BaseRequestHandler):
    """Answers anything but HTTP like an HTTP server."""

    def handle(self) -> None:
        self.request.recv(4096)
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.reactor
def test_https_where_there_is_none_fails_at_once() -> None:
    """The page itself reports that no TLS connection can be made; nothing waits for robots.txt."""
    with ThreadingTCPServer(("127.0.0.1", 0), PlainOnly) as server:
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        url = f"https://127.0.0.1:{server.server_address[1]}/ok"
        result = crawl(Follower, ROBOTS, addon=True, seeds=[url])
        server.shutdown()
    sentence = ending_of(result.crawler).sentence
    assert sentence.startswith(f"No page could be read ({url}: no TLS connection: is it http://?)")
    assert result.outcomes == {"failure": 1}
    assert "robotstxt/unreachable" not in result.stats


@pytest.mark.reactor
def test_a_robots_txt_that_is_asked_for_again_later_is_not_retried(site: MockSite) -> None:
    """With Scrapy's two retries, a file that never arrives is requested no more often than without retries."""
    site.answers["/robots.txt"] = lambda n: (500, PLAIN, b"")
    result = crawl(Follower, {**ROBOTS, "RETRY_TIMES": 2}, addon=True, seeds=[site.url("/ok")])
    assert site.paths == []
    assert len(site.log) == 3
    assert result.outcomes == {"ignored": 1}


@pytest.mark.reactor
def test_a_robots_txt_is_asked_for_once_for_each_host_of_which_a_page_is(site: MockSite, other: MockSite) -> None:
    """However many pages, redirects and links there are; and not where no page is asked for."""
    tree(site, "/ok?a", 4)
    site.answers["/there"] = lambda n: (302, {"Location": other.url("/ok")}, b"")
    result = crawl(Follower, ROBOTS, addon=True, seeds=[site.url("/"), site.url("/there")])
    assert result.outcomes["ok"] == 7
    for each in (site, other):
        assert [seen.path for seen in each.log].count("/robots.txt") == 1


@pytest.mark.reactor
def test_all_who_wait_for_a_robots_txt_obey_it(site: MockSite) -> None:
    """Requests made while it was in flight are refused like the first one."""

    def slow(n: int) -> None:
        time.sleep(0.5)

    site.answers["/robots.txt"] = slow  # type: ignore[assignment]
    seeds = [site.url(f"/forbidden?{i}") for i in range(8)]
    result = crawl(Follower, {"ROBOTSTXT_OBEY": True}, addon=True, seeds=seeds)
    assert site.paths == []
    assert result.outcomes == {"ignored": 8}


@pytest.mark.reactor
def test_a_missing_robots_txt_allows_everything(site: MockSite) -> None:
    """404 is an answer, and so is a host that does not listen: the page itself reports that."""
    site.answers["/robots.txt"] = lambda n: (404, PLAIN, b"none")
    result = crawl(Follower, ROBOTS, addon=True, seeds=[site.url("/ok"), "http://127.0.0.1:9/ok"])
    assert site.paths == ["/ok"]
    assert result.outcomes == {"ok": 1, "failure": 1}
    assert "focus/host/put_off" not in result.stats


@pytest.mark.reactor
def test_without_the_wish_it_is_as_in_scrapy(site: MockSite) -> None:
    """A project that did not ask for it crawls on where robots.txt fails."""
    site.answers["/robots.txt"] = lambda n: (500, PLAIN, b"")
    result = crawl(Follower, {"ROBOTSTXT_OBEY": True, "RETRY_TIMES": 0}, addon=True, seeds=[site.url("/ok")])
    assert site.paths == ["/ok"]
    assert result.outcomes == {"ok": 1}


@pytest.mark.reactor
@pytest.mark.parametrize(
    ("obey", "longest", "least"), [(["crawl-delay"], 300, 0.5), (["crawl-delay"], 0.1, 0.1), ([], 300, 0)]
)
def test_crawl_delay(site: MockSite, obey: list[str], longest: float, least: float) -> None:
    """So many seconds pass between two requests, but no more than is allowed, and only where it is asked for."""
    site.answers["/robots.txt"] = lambda n: (200, PLAIN, b"User-agent: *\nCrawl-delay: 0.5\n")
    tree(site, "/ok?a", 4)
    settings = {"ROBOTSTXT_OBEY": True, "FOCUS_OBEY": obey, "FOCUS_LONGEST_WAIT": longest, "DOWNLOAD_DELAY_JITTER": 0}
    result = crawl(Follower, settings, addon=True, seeds=[site.url("/")])
    at = [seen.at for seen in site.log]
    assert len(site.paths) == 6
    assert at[-1] - at[0] >= 0.9 * 5 * least  # from robots.txt on, which came before the first of six was sent
    assert result.stats.get("focus/host/slowed_down", 0) == len(obey)


# nofollow, noindex


PAGE_WISHES = pytest.mark.parametrize("header", [False, True], ids=["meta", "header"])


def wishing(wish: str, header: bool, body: str) -> Answer:
    """Return a page that asks for something, in its header or in its HTML."""
    if header:
        return 200, {**HTML, "X-Robots-Tag": wish}, body.encode()
    return 200, HTML, f'<head><meta name="robots" content="{wish}"></head><body>{body}'.encode()


@pytest.mark.few(2)
@pytest.mark.reactor
@PAGE_WISHES
@pytest.mark.parametrize("obey", [True, False])
def test_nofollow(site: MockSite, header: bool, obey: bool) -> None:
    """Links of a page that asks for it, and single links that do, are not followed; elsewhere they are."""
    site.pages["/"] = (
        '<a href="/ok?1">x</a><a rel="nofollow" href="/ok?2">x</a><a rel=nofollow href="/ok?1">x</a><a href="/closed">x</a>'
    )
    site.answers["/closed"] = lambda n: wishing("nofollow", header, '<a href="/ok?3">x</a>')
    result = crawl(Follower, {"FOCUS_OBEY": ["nofollow"] if obey else []}, addon=True, seeds=[site.url("/")])
    more = [] if obey else ["/ok?2", "/ok?3"]
    assert sorted(site.paths) == sorted(["/", "/closed", "/ok?1", *more])
    assert result.stats.get("focus/link/nofollow", 0) == (2 if obey else 0)
    assert len(result.items) == len(site.paths)


@pytest.mark.few(2)
@pytest.mark.reactor
@PAGE_WISHES
@pytest.mark.parametrize("obey", [True, False])
def test_noindex(site: MockSite, header: bool, obey: bool) -> None:
    """Such a page is not a result and earns nothing; its links are followed."""
    site.pages["/"] = '<a href="/closed">x</a>'
    site.answers["/closed"] = lambda n: wishing("noindex", header, '<a href="/ok">x</a>')
    result = crawl(Follower, {"FOCUS_OBEY": ["noindex"] if obey else []}, addon=True, seeds=[site.url("/")])
    assert site.paths == ["/", "/closed", "/ok"]
    found = {item["url"] for item in result.items}
    assert (site.url("/closed") not in found) == obey
    assert result.stats["focus/reward"] == (2 if obey else 3)
    assert result.stats.get("focus/page/noindex", 0) == int(obey)


def test_goals_do_not_read_a_page_that_asks_not_to_be(site: MockSite) -> None:
    """A goal that judges pages by their text is not given it."""
    site.answers["/"] = lambda n: wishing("noindex", False, '<a href="/ok">x</a>')
    given: list[bool] = []

    def goal(outcome: Any) -> float:
        given.append(outcome.page is not None)
        return 0.0

    crawl(Follower, {"FOCUS_OBEY": ["noindex"], "FOCUS_GOAL": goal}, addon=True, seeds=[site.url("/")])
    assert given == [False, True]
