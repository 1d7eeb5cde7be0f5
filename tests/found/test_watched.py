"""The folder of a watched site: its lists, feed, table and page, after kills and with hostile input."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from scrapy_focus.core.abilities import WatchedPage
from scrapy_focus.finders.kit.page.fresh import read_fresh, write_fresh
from scrapy_focus.finders.kit.records.notes import NoteBook
from scrapy_focus.finders.kit.records.times import time_text
from scrapy_focus.finders.news.atom import atom
from scrapy_focus.finders.news.hours import HOUR, HourBook, read_hours
from scrapy_focus.finders.news.news_list import Article, NewsList, NewsReader, newest
from scrapy_focus.finders.news.watched import NEWEST, Gathering, delays_of, per_day
from scrapy_focus.finders.outputs import write_report
from tests.found.foundfolders import EVIL
from tests.pages import Reader

if TYPE_CHECKING:
    from pathlib import Path

SITE = "https://news.example.org"
NOW = 1_767_571_200.0  # 5 January 2026
ATOM = "{http://www.w3.org/2005/Atom}"


def article(n: int, at: float = NOW, **more: Any) -> Article:
    """Return an article that was seen a minute after publication."""
    return Article(f"{SITE}/{n}", f"Title {n}", "new", at, at, at - 60.0, "page", f"{SITE}/s/", f"Anchor {n}")._replace(
        **more
    )


def watched(folder: Path, articles: list[Article], **state: Any) -> Path:
    """Make a folder of a watch."""
    news = NewsList(folder)
    news.begin()
    for each in articles:
        news.see(each)
    book = NoteBook(folder)
    book.begin({"at": time_text(NOW), "now": NOW, "spider": "news", "roots": [f"{SITE}/"], "rate": "2,000 requests a day",
                "types": "articles of the last 24 hours", "robots": True, "delay": 1.0, "resumable": True})  # fmt: skip
    book.state({"at": time_text(NOW), "now": NOW + 2 * HOUR, **state})
    book.close()
    return folder


def test_an_article_has_a_line_when_it_is_seen_first_and_when_it_changed(tmp_path: Path) -> None:
    """It has no other lines, even after a kill; a change has the time of the previous version, and their number."""
    news = NewsList(tmp_path)
    assert news.see(article(1)) is not None
    assert news.see(article(1, NOW + 5)) is None
    assert news.see(article(2, NOW + 6, state="changed")) is None, "it was never listed"
    news = NewsList(tmp_path)
    assert f"{SITE}/1" in news
    for at in (NOW + 100, NOW + 200):
        assert news.see(article(1, at, state="changed", title="Better", published=None)) is not None
    news = NewsList(tmp_path)
    assert news.see(article(1, NOW + 200, state="changed")) is None, "it was fetched again after a kill"
    lines = [json.loads(line) for line in (tmp_path / "news.jsonl").read_text().splitlines()]
    assert [line["state"] for line in lines] == ["new", "changed", "changed"]
    assert [line.get("changes") for line in lines] == [None, 1, 2]
    assert {line["first_seen"] for line in lines} == {time_text(NOW)}
    assert [line.get("changed_since") for line in lines] == [None, time_text(NOW), time_text(NOW + 100)]
    assert [line["published"] for line in lines] == [time_text(NOW - 60), None, None]
    assert len({line["id"] for line in lines}) == 1
    assert list(NewsReader(tmp_path / "news.jsonl").read())[2].changes == 2


def test_the_main_text_identifies_a_version(tmp_path: Path) -> None:
    """A page that changed only around its text gets no line, nor in a later run."""
    assert NewsList(tmp_path).see(article(1, text="1:a", digest="x")) is not None
    for _ in range(2):
        news = NewsList(tmp_path)
        assert news.see(article(1, NOW + 1, state="changed", text="1:a", digest="y")) is None
        assert news.see(article(1, NOW + 2, state="changed", text="1:b", digest="x")) is not None
        assert news.see(article(1, NOW + 3, state="changed", text="1:b", digest="x")) is None
        (tmp_path / "news.jsonl").write_text((tmp_path / "news.jsonl").read_text().splitlines()[0] + "\n")


@pytest.mark.parametrize("text", ["", "0:a"])
def test_lines_of_an_earlier_version_are_not_changes(tmp_path: Path, text: str) -> None:
    """Without a digest of the main text, or with one of another method, that of the paragraphs is compared."""
    assert NewsList(tmp_path).see(article(1, text=text, digest="x")) is not None
    lines = [json.loads(line) for line in (tmp_path / "news.jsonl").read_text().splitlines()]
    if not text:
        del lines[0]["text"]
    (tmp_path / "news.jsonl").write_text(json.dumps(lines[0]) + "\n")
    news = NewsList(tmp_path)
    assert news.see(article(1, NOW + 1, state="changed", text="1:a", digest="x")) is None
    assert news.see(article(1, NOW + 2, state="changed", text="1:b", digest="y")) is not None
    assert news.see(article(1, NOW + 3, state="changed", text="1:b", digest="z")) is None


def test_one_article_under_two_addresses_is_listed_once(tmp_path: Path) -> None:
    """Its text identifies it, also in a later run."""
    assert NewsList(tmp_path).see(article(1, digest="abc")) is not None
    assert NewsList(tmp_path).see(article(2, digest="abc")) is None
    assert NewsList(tmp_path).see(article(3, digest="abd")) is not None
    assert NewsList(tmp_path).see(article(4)) is not None
    assert NewsList(tmp_path).see(article(5)) is not None


def test_a_cut_line_is_cut_off(tmp_path: Path) -> None:
    """The rest after a kill is not an article, and the next article starts a new line."""
    NewsList(tmp_path).see(article(1))
    with (tmp_path / "news.jsonl").open("a") as file:
        file.write('{"url": "https://news.exa')
    assert [each.url for each in NewsReader(tmp_path / "news.jsonl").read()] == [f"{SITE}/1"]
    NewsList(tmp_path).see(article(2))
    assert [each.url for each in NewsReader(tmp_path / "news.jsonl").read()] == [f"{SITE}/1", f"{SITE}/2"]


def test_a_reader_reads_each_line_once(tmp_path: Path) -> None:
    """Damaged lines are counted, and a file in another format is not an error."""
    path = tmp_path / "news.jsonl"
    reader = NewsReader(path)
    assert list(reader.read()) == []
    news = NewsList(tmp_path)
    news.see(article(1))
    assert len(list(reader.read())) == 1
    with path.open("a") as file:
        file.write('[]\n{"url": 1}\nnothing\n{"url": "x", "at": "never"}\n' + "[" * 100_000 + "\n")
    news.see(article(2))
    assert [each.url for each in reader.read()] == [f"{SITE}/2"]
    assert reader.damaged == 5


def test_the_newest_come_first_and_once() -> None:
    """In the order of their lines, the last ones first."""
    lines = [article(n) for n in range(5)] + [article(1, NOW + 9, state="changed")]
    assert [each.url[-1] for each in newest(iter(lines), 3)] == ["1", "4", "3"]


def test_the_feed_is_atom_with_ids_that_stay() -> None:
    """It has what RFC 4287 requires of feeds and entries, even with bad titles; links are valid addresses."""
    articles = [
        article(1, NOW + 9, state="changed", title="A & B < C"),
        *(article(n, title=text, anchor=text, url=f"{SITE}/{n}?q={text}") for n, text in enumerate(EVIL, 2)),
        article(99, title="", anchor="", published=None),
    ]
    feed = ET.fromstring(atom(articles, roots=[f"{SITE}/"], made=NOW))
    assert feed.tag == f"{ATOM}feed"
    for name in ("id", "title", "updated", "author"):
        assert len(feed.findall(f"{ATOM}{name}")) == 1
    assert feed.findtext(f"{ATOM}updated") == time_text(NOW + 9)
    entries = feed.findall(f"{ATOM}entry")
    assert len(entries) == len(articles)
    for entry in entries:
        for name in ("id", "title", "updated", "link"):
            assert len(entry.findall(f"{ATOM}{name}")) == 1
        assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", entry.findtext(f"{ATOM}id"))
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", entry.findtext(f"{ATOM}updated"))
        href = entry.find(f"{ATOM}link").get("href")
        assert href.startswith(f"{SITE}/")
        assert href.isascii()
        assert entry.findtext(f"{ATOM}title")
    assert entries[0].findtext(f"{ATOM}title") == "A & B < C"
    assert entries[0].findtext(f"{ATOM}published") == time_text(NOW - 60 + 9)
    assert entries[-1].find(f"{ATOM}published") is None
    assert len({entry.findtext(f"{ATOM}id") for entry in entries}) == len(articles)
    same = ET.fromstring(atom([article(1)], roots=[f"{SITE}/"], made=NOW + 99))
    assert same.findtext(f"{ATOM}id") == feed.findtext(f"{ATOM}id")
    assert same.find(f"{ATOM}entry").findtext(f"{ATOM}id") == entries[0].findtext(f"{ATOM}id")


def test_the_table_of_pages_reads_back(tmp_path: Path) -> None:
    """The most visited pages come first; no cell is a formula; malformed rows are skipped."""
    pages = [
        WatchedPage(f"{SITE}/a", 3, 1, 2.5, 0.25, 9.5, 4.0, NOW, NOW + 60),
        WatchedPage('=HYPERLINK("x")', 7, 7, 100.0, 50.0, 200.0, 0.0, NOW, None),
    ]
    write_fresh(tmp_path, pages)
    rows = list(csv.DictReader((tmp_path / "fresh.csv").read_text(encoding="utf-8-sig").splitlines()))
    assert [row["url"] for row in rows] == ['\'=HYPERLINK("x")', f"{SITE}/a"]
    assert rows[1] == {
        "url": f"{SITE}/a", "visits": "3", "changes": "1", "changes_a_day": "2.5", "changes_a_day_low": "0.25",
        "changes_a_day_high": "9.5", "targets_a_day": "4", "last_visit": time_text(NOW),
        "next_visit": time_text(NOW + 60),
    }  # fmt: skip
    assert read_fresh(tmp_path)[1] == pages[0]
    assert read_fresh(tmp_path)[0].next is None
    (tmp_path / "fresh.csv").write_text("url,visits\nx,many\n" + f"{SITE}/b,1\n")
    assert read_fresh(tmp_path) == []
    assert read_fresh(tmp_path / "nowhere") == []


def test_hours_are_differences_of_counts(tmp_path: Path) -> None:
    """Of two lines for one hour the last counts; counts lost in a kill go to the next hour; old lines are skipped."""
    book = HourBook(tmp_path)
    for at, requests in ((0, 5), (1, 10), (HOUR, 10), (2 * HOUR, 40), (5 * HOUR, 41)):
        book.note(NOW + at, {"requests": requests, "error": requests // 10})
    with book.path.open("a") as file:
        file.write('{"hour": "x"}\nnothing\n{"hour": 1, "counts": []}\n{"hou')
    first = int(NOW // HOUR)
    expected = [
        (first, {"requests": 10, "error": 1}),
        (first + 2, {"requests": 30, "error": 3}),
        (first + 5, {"requests": 1}),
    ]
    assert [(int(hour.began // HOUR), hour.counts) for hour in read_hours(tmp_path)] == expected
    HourBook(tmp_path)
    assert len(book.path.read_text().splitlines()) == 4
    assert [(int(hour.began // HOUR), hour.counts) for hour in read_hours(tmp_path)] == expected
    assert per_day(read_hours(tmp_path), "requests", NOW + 3 * HOUR) == 24 * 40 / 3
    assert per_day(read_hours(tmp_path), "requests", NOW) is None


def test_delays_are_those_of_articles_published_during_the_watch(tmp_path: Path) -> None:
    """Older articles, and those without a date, do not count."""
    articles = [article(n, NOW + 100 + n, published=NOW + 10 * n) for n in range(10)]
    articles += [article(20, NOW + 5, published=NOW - 9999.0), article(21, NOW + 6, published=None)]
    delays = Gathering(watched(tmp_path, articles)).read().delays
    assert delays is not None
    assert delays.n == 10
    assert (delays.quantiles[0], delays.quantiles[100]) == (19.0, 100.0)
    assert delays_of([]) is None


def test_added_lines_are_read_once(tmp_path: Path) -> None:
    """The sums equal those of a new reader of the folder."""
    watched(tmp_path, [article(n, NOW + n) for n in range(60)])
    gathering = Gathering(tmp_path)
    gathering.read()
    news = NewsList(tmp_path)
    news.see(article(1, NOW + 3 * HOUR, state="changed"))
    news.see(article(70, NOW + 4 * HOUR, by="feed", page=""))
    later, fresh = gathering.read(), Gathering(tmp_path).read()
    assert later == fresh
    assert (later.n_new, later.n_changes) == (61, 1)
    assert dict(later.by) == {"page": 60, "feed": 1}
    assert later.hubs == [(f"{SITE}/s/", 60)]
    assert later.arrivals == {int(NOW // HOUR): 60, int(NOW // HOUR) + 4: 1}


def test_the_page_speaks_of_one_page_and_of_one_link(tmp_path: Path) -> None:
    """In the singular."""
    watched(tmp_path, [article(1, NOW)], asleep=1, waiting=1, next_due=0)
    assert write_report(tmp_path) == tmp_path / "index.html"
    text = Reader((tmp_path / "index.html").read_text()).text
    assert "1 page waits for its next visit." in text
    assert "1 link is queued: not yet followed, or due." in text


def test_the_page_says_how_fresh_the_site_was_kept(tmp_path: Path) -> None:
    """It has new articles, their delays, watched pages, the number of requests, and the settings."""
    articles = [article(n, NOW + 600 * n, published=NOW + 600 * n - 90) for n in range(1, 12)]
    watched(tmp_path, articles, asleep=1234, waiting=5, next_due=NOW + 3 * HOUR)
    NewsList(tmp_path).see(article(3, NOW + 7000, state="changed", title="Changed 3"))
    book = HourBook(tmp_path)
    for hour in range(3):
        book.note(NOW + hour * HOUR, {"requests": 80 * (hour + 1), "first": hour, "bytes": 1000, "unchanged": hour})
    write_fresh(tmp_path, [WatchedPage(f"{SITE}/s/", 40, 30, 120.0, 80.0, 180.0, 130.0, NOW, NOW + 60)])
    assert write_report(tmp_path) == tmp_path / "index.html"
    text = Reader((tmp_path / "index.html").read_text()).text
    for said in (
        "News of news.example.org",
        "11 new articles and 1 change, on 1 host.",
        "Watched since 05 Jan 00:00, for 2.0 hours.",
        "Of 11 articles with a publication time during the watch, half were seen within 2 minutes, 90 % "
        "within 2 minutes; the mean is 2 minutes.",
        "It sent 1,920 requests per day. It may send 2,000 requests a day.",
        "1,234 pages wait for their next visit; the next visit is at 05 Jan 03:00.",
        "It is running, or was killed: then the same command resumes it.",
        "Changed 3",
        "changed 05 Jan 01:56",
        "120 (80 to 180)",
        "05 January 2026 240",
        "articles of the last 24 hours",
        "Where links to new articles were first found: 11 on a page.",
    ):
        assert said in text, said
    assert len(ET.parse(tmp_path / "feed.xml").getroot().findall(f"{ATOM}entry")) == 11


def test_a_watch_that_saw_nothing_has_a_page(tmp_path: Path) -> None:
    """It says so, and the feed is empty."""
    watched(tmp_path, [])
    write_report(tmp_path)
    assert "No new article has been seen so far." in Reader((tmp_path / "index.html").read_text()).text
    assert ET.parse(tmp_path / "feed.xml").getroot().find(f"{ATOM}entry") is None


@pytest.mark.parametrize("text", EVIL)
def test_the_page_is_harmless(tmp_path: Path, text: str) -> None:
    """Titles, addresses and rates never add an element, handler or link."""
    NewsList(tmp_path).begin()
    url = f"{SITE}/{text}"
    lines = [
        {"url": url, "title": text, "state": text, "at": time_text(NOW), "first_seen": text, "published": text, "by": text,
         "page": text, "anchor": text, "digest": text, "changes": text},
        {"url": text, "title": text, "state": "changed", "at": time_text(NOW), "changed_since": text},
    ]  # fmt: skip
    (tmp_path / "news.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    book = NoteBook(tmp_path)
    book.begin(
        dict.fromkeys(("at", "now", "types", "rate", "agent", "policy", "version", "until"), text) | {"roots": [text]}
    )
    book.state(dict.fromkeys(("at", "now", "asleep", "waiting", "next_due", "ending"), text))
    book.close()
    write_fresh(tmp_path, [WatchedPage(text, 1, 1, 1.0, 0.5, 2.0, 1.0, NOW, None)])
    write_report(tmp_path)
    html = (tmp_path / "index.html").read_text()
    elements = Reader(html).elements
    assert {name for name, _ in elements}.isdisjoint({"script", "img", "iframe", "object"})
    assert not [name for _, attributes in elements for name in attributes if name.startswith("on")]
    links = {attributes["href"] for _, attributes in elements if attributes.get("href")}
    assert {link for link in links if not str(link).startswith(SITE)} <= {"feed.xml", "news.jsonl", "fresh.csv"}
    ET.parse(tmp_path / "feed.xml")


def test_the_feed_has_the_newest_hundred(tmp_path: Path) -> None:
    """The list has more."""
    watched(tmp_path, [article(n, NOW + n) for n in range(NEWEST + 20)])
    write_report(tmp_path)
    entries = ET.parse(tmp_path / "feed.xml").getroot().findall(f"{ATOM}entry")
    assert len(entries) == NEWEST
    assert entries[0].findtext(f"{ATOM}title") == f"Title {NEWEST + 19}"
