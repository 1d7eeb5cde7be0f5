"""What sitemaps, feeds and pings say about known pages reaches policies that listen, and no others."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import socket
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlencode

import pytest
from crawls import Follower, crawl
from scrapy.http import HtmlResponse
from scrapy.spiders import SitemapSpider

from scrapy_focus import ItemsGoal, Link, Placement, State
from scrapy_focus.features.signals import feature as module
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.finders.kit.spiders.listings import listing_links
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.web.listing_news import Reason
from tests.docs.test_snippets import blocks
from tests.features.signals.documented import STATS
from tests.made import HANG, EachAgain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mocksite import MockSite
    from scrapy.http import Response

    from scrapy_focus import Outcome, Signal

SITEMAP = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
INDEX = '<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</sitemapindex>'
RSS = '<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>{}</channel></rss>'
LONG = 900.0  # seconds that no crawl of these tests takes


class Listening(EachAgain):
    """Fetches listings repeatedly, and pages when a signal reports a change."""

    woken = 1.0  # rank of those

    def __init__(self, *, every: float = 0.1) -> None:
        super().__init__(every=every)
        self.heard: list[tuple[str, str, str, float]] = []  # URL, host, kind, modified
        self.paths: dict[str, tuple[str, str]] = {}  # of each URL: tag path, anchor
        self.urls: dict[int, str] = {}

    def place(self, links: Sequence[Link], source: Outcome | None) -> Any:
        self.urls |= {link.key: link.url for link in links}
        self.paths |= {link.url: (link.tag_path, link.anchor) for link in links}
        return super().place(links, source)

    def again(self, outcome: Outcome) -> Placement | None:
        place = super().again(outcome)
        listing = any(word in outcome.pick.url for word in ("sitemap", "feed"))
        return place if place is None or listing else place._replace(after=self.now + LONG)

    def hear(self, signals: Sequence[Signal]) -> None:
        for signal in signals:
            self.heard.append((self.urls[signal.key], signal.host, signal.kind, signal.modified))
            self.frontier.push([Link("", signal.key)], [Placement(0, self.woken)])


class Machines(Follower):
    """Follows links, and the entries of listings."""

    name = "machines"

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}
        yield from listing_links(response)
        if isinstance(response, HtmlResponse):
            yield from response.follow_all(css="a")


def say(site: MockSite, path: str, *bodies: str | bytes, mime: str = "application/xml") -> None:
    """Set the answers of a path: each one in turn, and the last one forever."""
    made = [body.encode() if isinstance(body, str) else body for body in bodies]
    site.answers[path] = lambda times: (200, {"Content-Type": mime}, made[min(times, len(made)) - 1])


def url(site: MockSite, path: str, changed: str = "", element: str = "url") -> str:
    """Return an entry of a sitemap."""
    lastmod = f"<lastmod>{changed}</lastmod>" if changed else ""
    return f"<{element}><loc>{site.url(path)}</loc>{lastmod}</{element}>"


def item(path: str, title: str = "", changed: str = "") -> str:
    """Return an entry of a feed."""
    return f"<item><title>{title}</title><link>{path}</link><pubDate>{changed}</pubDate></item>"


def ago(hours: float) -> str:
    """Return when it was so many hours ago, as sitemaps have it."""
    return (datetime.now(UTC) - timedelta(hours=hours)).isoformat(timespec="seconds")


def listen(site: MockSite, requests: int, spider: Any = Machines, start: str = "/", **more: Any) -> Any:
    """Crawl until so many requests were sent, one at a time: a signal about a page in flight wakes nothing."""
    settings = {
        "FOCUS_POLICY": Listening, "FOCUS_BUDGET_REQUESTS": requests, "ROBOTSTXT_OBEY": False, "CONCURRENT_REQUESTS": 1,
        **more,
    }  # fmt: skip
    args = {"seeds": [site.url(start)]} if issubclass(spider, Follower) else {}
    result = crawl(spider, settings, addon=True, **args)
    assert result.errors == {}
    return result


def counted(result: Any) -> dict[str, int]:
    """Return the counts of signals."""
    return {name.rpartition("/")[2]: n for name, n in result.stats.items() if name.startswith("focus/signal/")}


def test_a_sitemap_tells_when_pages_changed(site: MockSite) -> None:
    """Known pages are signalled; new ones become links. A signal is sent once, and again when it changes."""
    site.pages |= {
        "/": '<a href="/a">a</a><a href="/b">b</a><a href="/sitemap.xml">map</a>',
        "/a": "a",
        "/b": "b",
        "/c": "c",
    }
    first = SITEMAP.format(url(site, "/a", ago(5)) + url(site, "/b") + url(site, "/c", ago(6)))
    later = SITEMAP.format(url(site, "/a", ago(1)) + url(site, "/b") + url(site, "/c", ago(6)))
    say(site, "/sitemap.xml", first, first, later)
    result = listen(site, 12)
    heard = result.policy.heard
    assert [(path.rpartition("/")[2], host, kind) for path, host, kind, _ in heard] == [
        ("a", "127.0.0.1", "sitemap")
    ] * 2
    assert heard[1][3] - heard[0][3] == pytest.approx(4 * 3600, abs=60)
    assert heard[1][3] == pytest.approx(time.time() - 3600, abs=600)
    asked = Counter(site.paths)
    assert (asked["/a"], asked["/b"], asked["/c"]) == (3, 1, 1)
    assert result.policy.paths[site.url("/c")] == ("(sitemap)/url", "")
    counts = counted(result)
    assert counts["heard"] == 2
    assert counts["sitemaps"] == asked["/sitemap.xml"] > 2
    assert counts["entries"] == 3 * counts["sitemaps"] == 3 + counts["undated"] + counts["repeated"]


@pytest.mark.parametrize("policy", [EachAgain, BreadthFirst])
def test_who_does_not_listen_hears_nothing(site: MockSite, policy: Any) -> None:
    """And its sitemaps are not read for it."""
    site.pages |= {"/": '<a href="/a">a</a><a href="/sitemap.xml">map</a>', "/a": "a"}
    say(site, "/sitemap.xml", SITEMAP.format(url(site, "/a", ago(5))))
    result = listen(site, 3, FOCUS_POLICY=policy)
    assert counted(result) == {}
    assert result.scheduler.hear(site.url("/a")) is False


def test_a_feed_tells_what_is_new_and_what_changed(site: MockSite) -> None:
    """It is found by the page's head; the title of an entry is its anchor; entries without a URL are skipped."""
    head = '<link rel="alternate" type="application/rss+xml" title="All news" href="/feed.xml">'
    site.pages |= {"/": f'<html><head>{head}</head><body><a href="/a">a</a></body></html>', "/a": "a", "/new": "new"}
    dated = [format_datetime(datetime.now(UTC) - timedelta(hours=hours)) for hours in (3, 2)]
    odd = (
        item("", "no link", dated[0])
        + item("javascript:x", "script", dated[0])
        + item("mailto:a@b.test")
        + item("http://[")
    )
    away = item("http://elsewhere.test/x", "away", dated[0])
    first = RSS.format(item("/a", "A", dated[0]) + item("new", "What is new", dated[0]) + odd + away)
    say(site, "/feed.xml", first, first.replace(dated[0], dated[1], 1), mime="application/rss+xml; charset=utf-8")
    result = listen(site, 10, Offsite)
    paths = result.policy.paths
    assert paths[site.url("/feed.xml")] == ("(page)/feed", "All news")
    assert paths[site.url("/new")] == ("(feed)/entry", "What is new")
    assert {(where.rpartition("/")[2], kind) for where, _, kind, _ in result.policy.heard} == {("a", "feed")}
    assert len(result.policy.heard) == 2
    assert Counter(site.paths)["/new"] == 1
    counts = counted(result)
    assert counts["no_url"] == 4 * counts["feeds"]
    assert counts["elsewhere"] == 1
    assert result.logged("it is believed about its own domain only")


class Offsite(Machines):
    """Stays on its host."""

    allowed_domains = ["127.0.0.1"]


def test_an_index_tells_which_sitemaps_changed(site: MockSite) -> None:
    """Only these are asked for again; one that names itself, and gzip, do no harm."""
    site.pages |= {"/": '<a href="/sitemap.xml">map</a>', "/a": "a"}

    def index(hours: float) -> str:
        named = url(site, "/sitemap.xml", ago(1), "sitemap") + url(site, "/pages-1.xml.gz", ago(hours), "sitemap")
        return INDEX.format(named + url(site, "/pages-2.xml", ago(9), "sitemap"))

    same = index(8)
    say(site, "/sitemap.xml", same, same, same, index(2))
    say(
        site,
        "/pages-1.xml.gz",
        gzip.compress(SITEMAP.format(url(site, "/a", ago(9))).encode()),
        mime="application/x-gzip",
    )
    say(site, "/pages-2.xml", SITEMAP.format(""))
    result = listen(site, 14)
    asked = Counter(site.paths)
    assert (asked["/pages-1.xml.gz"], asked["/pages-2.xml"], asked["/a"]) == (2, 1, 1)
    assert {where.rpartition("/")[2] for where, *_ in result.policy.heard} == {"pages-1.xml.gz"}
    assert counted(result)["heard"] == 1


def test_no_date_of_the_future_is_believed(site: MockSite) -> None:
    """Nor an invalid one; both are counted, and logged once."""
    site.pages |= {"/": '<a href="/a">a</a><a href="/b">b</a><a href="/c">c</a><a href="/sitemap.xml">map</a>'}
    dates = [(ago(-48), "/a"), ("9999-12-31", "/b"), ("last tuesday", "/c")]
    say(site, "/sitemap.xml", SITEMAP.format("".join(url(site, path, said) for said, path in dates)))
    result = listen(site, 8)
    assert result.policy.heard == []
    counts = counted(result)
    assert (counts["future"], counts["unreadable"]) == (2, 1)
    assert len(result.logged("such dates are ignored")) == 1
    assert len(result.logged("which is not a readable date")) == 1


class Maps(SitemapSpider):
    """Scrapy's own spider for sitemaps, whose callbacks are unaware of this."""

    name = "maps"
    site: Any = None

    async def start(self) -> Any:
        self.sitemap_urls = [self.site.url("/sitemap.xml")]
        async for request in super().start():
            yield request.replace(dont_filter=False)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}


def test_it_does_not_matter_who_asked_for_a_sitemap(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any spider will do."""
    monkeypatch.setattr(Maps, "site", site)
    say(site, "/sitemap.xml", SITEMAP.format(url(site, "/a", ago(9))), SITEMAP.format(url(site, "/a", ago(3))))
    site.pages["/a"] = "a"
    result = listen(site, 6, Maps)
    assert [where.rpartition("/")[2] for where, *_ in result.policy.heard] == ["a"]
    assert Counter(site.paths)["/a"] == 2


def test_the_spider_for_files_fetches_feeds_if_pages_are_revisited(site: MockSite, tmp_path: Path) -> None:
    """A crawl that ends requests none, as before."""
    head = '<link rel="alternate" type="application/atom+xml" href="/feed.xml">'
    site.pages["/start"] = f"<html><head>{head}</head><body><a href='/feed.xml'>feed</a></body></html>"
    say(site, "/feed.xml", RSS.format(item("/in-feed.csv", "A table")))
    say(site, "/in-feed.csv", "1\n", mime="text/csv")
    args = {"root": site.url("/start")}
    settings: dict[str, Any] = {"ROBOTSTXT_OBEY": False}
    result = crawl(DatasetsSpider, settings, addon=True, out=str(tmp_path / "once"), **args)
    assert site.paths == ["/start", "/feed.xml"]
    settings |= {"FOCUS_POLICY": Listening, "FOCUS_BUDGET_REQUESTS": 5}
    result = crawl(DatasetsSpider, settings, addon=True, out=str(tmp_path / "again"), **args)
    assert result.errors == {}
    assert result.policy.paths[site.url("/in-feed.csv")] == ("(feed)/entry", "A table")
    assert [found.url for found in result.items] == [site.url("/in-feed.csv")]


def test_long_listings_are_heard_in_turns(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a million entries block nothing: as many as the protocol allows are read, a few at a time."""
    monkeypatch.setattr(module, "_LONG", 1000)
    site.pages |= {"/": '<a href="/a">a</a><a href="/sitemap.xml">map</a>', "/a": "a"}
    entry = "<url><loc>/x</loc></url>"
    say(site, "/sitemap.xml", SITEMAP.format(url(site, "/a", ago(9)) + entry * 60_000))
    result = listen(site, 3, Follower)
    counts = counted(result)
    assert (counts["entries"], counts["cut"], counts["heard"]) == (50_000, 1, 1)
    assert result.logged("is read up to")


def test_somebody_else_may_say_that_a_page_changed(site: MockSite) -> None:
    """Through the scheduler, of a page that is known: it is fetched again at once."""
    site.pages |= {"/": '<a href="/a">a</a>', "/a": "a"}
    answers: list[bool] = []

    class Pinged(Machines):
        name = "pinged"

        def parse(self, response: Response) -> Any:
            hear = self.crawler.engine.scheduler.hear
            if response.url.endswith("/a") and not answers:
                answers.extend([
                    hear(site.url("/")), hear(site.url("/"), time.time() + 9999), hear(site.url("/unknown")),
                    hear("javascript:x"), hear("/a"), hear(site.url("/"), float("nan")), hear(site.url("/"), 5.0, kind="hub"),
                ])  # fmt: skip
            yield from super().parse(response)

    result = listen(site, 3, Pinged)
    assert answers == [True, False, False, False, False, False, True]
    assert [(kind, modified == 5.0) for _, _, kind, modified in result.policy.heard] == [("ping", False), ("hub", True)]
    assert site.paths == ["/", "/a", "/"]
    assert counted(result) == {"heard": 2, "future": 1, "no_url": 2, "unreadable": 1}


class Woken(Listening):
    """Fetches again only what a signal reports as changed, when nothing else is queued."""

    woken = -1e9

    def again(self, outcome: Outcome) -> Placement | None:
        return Placement(0, 1.0, after=self.now + LONG)

    def hear(self, signals: Sequence[Signal]) -> None:
        asleep = [signal for signal in signals if self.frontier.states([signal.key]) == [State.WAITING]]
        super().hear(asleep)


def documented() -> Any:
    """Return the extension for WebSub, as the documentation has it."""
    page = Path(__file__).parents[3] / "docs" / "reference" / "signals.rst"
    [code] = [block.code for block in blocks(page.read_text(encoding="utf-8")) if "class Pings" in block.code]
    module = ModuleType("pings")
    exec(compile(code, str(page), "exec", dont_inherit=True), module.__dict__)
    return module.Pings


def test_a_hub_has_a_feed_fetched(site: MockSite) -> None:
    """The extension of the documentation: it names its subscription, and trusts senders with the secret."""
    site.pages["/"] = "<p>nothing</p>"
    say(site, "/feed.xml", RSS.format(item("/a", "A")), mime="application/rss+xml")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said: list[tuple[int, str]] = []

    def ask(path: str, body: bytes | None = None, secret: bytes = b"secret") -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=HANG)
        signature = hmac.new(secret, body or b"", hashlib.sha256).hexdigest()
        connection.request("GET" if body is None else "POST", path, body, {"X-Hub-Signature": f"sha256={signature}"})
        answer = connection.getresponse()
        said.append((answer.status, answer.read().decode()))

    def hub() -> None:
        topic = urlencode({"hub.mode": "subscribe", "hub.topic": site.url("/feed.xml"), "hub.challenge": "c&1"})
        for path in (f"/0?{topic}", f"/1?{topic}", "/0?hub.topic=other&hub.challenge=x", "/0"):
            ask(path)
        ask("/0", b"the feed", secret=b"guessed")
        ask("/9", b"the feed")
        said.append((len(site.paths), "before"))
        until = time.monotonic() + HANG
        while site.paths.count("/feed.xml") < 2 and time.monotonic() < until:
            ask("/0", b"the feed")
            time.sleep(0.1)

    thread = Thread(target=hub)

    class Subscriber(Machines):
        name = "subscriber"

        def parse(self, response: Response) -> Any:
            if not thread.is_alive() and not said:
                thread.start()
            yield from super().parse(response)

    settings = {
        "EXTENSIONS": {documented(): 500}, "PINGED_FEEDS": [site.url("/feed.xml")], "PINGED_SECRET": "secret",
        "PINGED_PORT": port, "FOCUS_POLICY": Woken,
    }  # fmt: skip
    result = listen(site, 4, Subscriber, **settings)
    thread.join(HANG)
    assert said[:6] == [(200, "c&1"), (404, ""), (404, ""), (404, ""), (202, ""), (202, "")]
    assert said[6] == (1, "before")
    assert sorted(site.paths) == ["/", "/a", "/feed.xml", "/feed.xml"]
    assert {kind for _, _, kind, _ in result.policy.heard} == {"websub"}


class Once(Listening):
    """Fetches listings three times, and changed pages again, once for each signal."""

    woken = -1e6

    def __init__(self) -> None:
        super().__init__(every=0.0)
        self.rounds: Counter[str] = Counter()

    def again(self, outcome: Outcome) -> Placement | None:
        self.rounds[outcome.pick.url] += 1
        listing = any(word in outcome.pick.url for word in ("sitemap", "feed")) and self.rounds[outcome.pick.url] < 3
        return Placement(0, self.woken, after=0.0 if listing else self.now + LONG)

    def hear(self, signals: Sequence[Signal]) -> None:
        super().hear([signal for signal in signals if self.frontier.states([signal.key]) == [State.WAITING]])


class Paths(Machines):
    """Follows links of pages, and those of no listing, as a recording has it."""

    name = "paths"

    def parse(self, response: Response) -> Any:
        yield from response.follow_all(css="a") if isinstance(response, HtmlResponse) else ()


@pytest.mark.parametrize("mime", ["application/xml", "text/html"])
def test_a_simulation_hears_the_same(site: MockSite, tmp_path: Path, mime: str) -> None:
    """On a recording with bodies, in the same order, with the same requests and counts, whatever a listing is called."""
    long_ago, later, never = "1970-01-01T00:00:00Z", "1969-12-31T23:00:00+00:00", "2970-01-01"
    entries = (
        url(site, "/a", long_ago) + url(site, "/b?y=2&amp;x=1", later) + url(site, "/c", never) + url(site, "/d", later)
    )
    pages = {
        "/": '<a href="/a">a</a><a href="/b?x=1&y=2">b</a><a href="/sitemap.xml">map</a><a href="/feed">feed</a><a href="/c">c</a>',
        "/a": '<a href="/sitemap.xml">map</a>', "/b?x=1&y=2": "b", "/c": "c",
    }  # fmt: skip
    listings = {
        "/sitemap.xml": SITEMAP.format(entries + url(site, "/a", "soon") + "<url/>"),
        "/feed": RSS.format(item("/b?x=1&amp;y=2", "B", "Thu, 01 Jan 1970 00:00:00 GMT") + item("http://else.test/", "", long_ago)),
    }  # fmt: skip
    site.pages |= pages
    for path, body in listings.items():
        say(site, path, body, mime=mime)
    settings = {"FOCUS_MAX_INFLIGHT": 1, "FOCUS_POLICY": Once}
    result = listen(site, 14, Paths, **settings)
    with SiteWriter(tmp_path / "site.sqlite", roots=[site.url("/")], bodies=True, source="test") as writer:
        for path, body in {**pages, **listings}.items():
            headers = {"Content-Type": mime if path in listings else "text/html"}
            writer.add(Answer(url=site.url(path), status=200, headers=headers, body=body.encode()))
        writer.finish()
    policy = Once()
    recorded = RecordedSite(tmp_path / "site.sqlite")
    harvest = simulate(policy, ItemsGoal(), recorded, budget=14, ignored=())
    assert [site.url(path) for path in site.paths] == harvest.asked
    assert [heard[::2] for heard in result.policy.heard] == [heard[::2] for heard in policy.heard]
    assert [heard[3] for heard in result.policy.heard] == [heard[3] for heard in policy.heard]
    assert len(policy.heard) > 2
    assert counted(result) == {
        name.rpartition("/")[2]: n for name, n in harvest.counts.items() if name.startswith("signal/")
    }


def test_what_was_heard_survives_a_stop(site: MockSite, tmp_path: Path) -> None:
    """The next run of a job makes the same of it."""
    site.pages |= {"/": '<a href="/a">a</a><a href="/sitemap.xml">map</a>', "/a": "a"}
    say(site, "/sitemap.xml", SITEMAP.format(url(site, "/a", ago(5))))
    first = listen(site, 4, JOBDIR=str(tmp_path))
    second = listen(site, 6, JOBDIR=str(tmp_path))
    assert second.scheduler.crawl.state.choices.otherwise == 0
    assert second.policy.heard[: len(first.policy.heard)] == first.policy.heard
    assert len(first.policy.heard) == 1


def test_each_reason_is_a_documented_stat() -> None:
    """Of a date that is not believed; and so are the kinds of listings."""
    assert {f"focus/signal/{name}" for name in (*get_args(Reason), "feeds", "sitemaps")} <= STATS
