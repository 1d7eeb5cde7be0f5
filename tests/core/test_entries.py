"""Sitemaps and feeds of any kind are read the same way, as far as they go, in bounded time and memory."""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from scrapy_focus.web import entries
from scrapy_focus.web.entries import Listed, Reading, feeds_of_page, read_listing
from scrapy_focus.web.html import parsed
from scrapy_focus.web.listings import listing_of

if TYPE_CHECKING:
    from pathlib import Path

SITEMAP = b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">%s</urlset>'
RSS = b'<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>%s</channel></rss>'
ATOM = b'<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://h.test/dir/">%s</feed>'


def urls(body: bytes) -> list[str]:
    """Return the URLs in a listing, whose kind is recognised by its beginning."""
    return [entry.url for entry in read_listing(body, listing_of(body))]


def test_a_sitemap_has_urls_and_dates() -> None:
    """With or without prefix, and gzipped; URLs within an entry of other things are not pages."""
    body = (
        b'<sm:urlset xmlns:sm="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:i="i"><sm:url><sm:loc> /1\n</sm:loc>'
        b"<sm:lastmod>2026-11-22</sm:lastmod><i:image><i:loc>/picture.png</i:loc></i:image></sm:url>"
        b"<sm:url/><sm:url><sm:loc>/2</sm:loc></sm:url></sm:urlset>"
    )
    expected = [Listed("/1", changed="2026-11-22"), Listed(""), Listed("/2")]
    assert list(read_listing(body, "sitemap")) == expected
    assert list(read_listing(gzip.compress(body), "sitemap")) == expected
    assert list(read_listing(b"\xef\xbb\xbf\n" + body, "sitemap")) == expected
    index = body.replace(b"urlset", b"sitemapindex").replace(b"sm:url", b"sm:sitemap")
    assert [entry.is_listing for entry in read_listing(index, "sitemap")] == [True] * 3


def test_a_text_sitemap_has_a_url_on_each_line() -> None:
    """With a byte order mark, blank lines, or gzipped; URLs that are too long are skipped."""
    body = b"\xef\xbb\xbfhttp://h.test/1\r\n\r\n  http://h.test/2 \rhttp://h.test/\xc3\xbc\n"
    expected = [Listed("http://h.test/1"), Listed("http://h.test/2"), Listed("http://h.test/ü")]
    assert list(read_listing(body, "sitemap")) == expected
    assert list(read_listing(gzip.compress(body), "sitemap")) == expected
    assert list(read_listing(body, "feed")) == []
    many = b"\n".join(b"http://h.test/%d" % n for n in range(60_000))
    assert [entry.url for entry in read_listing(many, "sitemap")][-1] == "http://h.test/49999"
    blank = b"http://h.test/1\n" + b"\r\n" * 20_000_000 + b"http://h.test/2"
    begun = time.process_time()
    assert list(read_listing(gzip.compress(blank), "sitemap")) == expected[:2]
    assert time.process_time() - begun < 20.0
    long = b"http://h.test/1\nhttp://h.test/" + b"a" * 100_000 + b"\nhttp://h.test/2"
    assert [entry.url for entry in read_listing(long, "sitemap")] == ["http://h.test/1", "http://h.test/2"]


def test_an_entry_of_rss_has_a_link_or_an_id_that_is_one() -> None:
    """The links of the channel, and ids that are none, do not count."""
    body = RSS % (
        b'<title>T</title><link>http://h.test/</link><atom:link rel="self" href="/feed.xml"/>'
        b"<item><title>One &amp; <![CDATA[two]]></title><link>/1</link><pubDate>Sun, 22 Nov 2026 10:00:00 GMT</pubDate>"
        b'<guid isPermaLink="false">77</guid></item><item><guid>http://h.test/2</guid></item>'
        b'<item><guid isPermaLink="false">http://h.test/no</guid></item><item><guid>x</guid></item>'
        b'<item><link/><atom:link href="/3"/></item>'
    )
    found = list(read_listing(body, "feed"))
    assert [entry.url for entry in found] == ["/1", "http://h.test/2", "", "", "/3"]
    assert found[0] == Listed("/1", "One & two", "Sun, 22 Nov 2026 10:00:00 GMT")


def test_an_entry_of_atom_has_an_alternate() -> None:
    """Relative to the base of its element; when it was updated goes before when it was published."""
    body = ATOM % (
        b'<link href="/home"/><updated>2000-01-01</updated><entry xml:base="sub/"><title type="xhtml"><div>A <b>b</b>'
        b'</div></title><link rel="edit" href="/e"/><link href="one"/><link rel="enclosure" href="p.mp3"/>'
        b"<published>2001-01-01</published><updated>2002-02-02</updated><source><updated>1999</updated>"
        b'<link href="/other"/></source></entry><entry><link rel="alternate" href="two"/><published>2003</published>'
        b"</entry><entry><id>http://h.test/id</id></entry>"
    )
    assert list(read_listing(body, "feed")) == [
        Listed("http://h.test/dir/sub/one", "A b", "2002-02-02"),
        Listed("http://h.test/dir/two", "", "2003"),
        Listed(""),
    ]


def test_other_feeds() -> None:
    """RSS 1.0, and JSON Feed."""
    rdf = (
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
        b'<channel rdf:about="http://h.test/"><items/></channel><item rdf:about="http://h.test/1"/></rdf:RDF>'
    )
    assert urls(rdf) == ["http://h.test/1"]
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "items": [{"url": "/1", "title": "One", "date_modified": "2026"}, 7, {"url": 8}, {"external_url": "/2"}],
    }
    expected = [Listed("/1", "One", "2026"), Listed(""), Listed("/2")]
    assert list(read_listing(json.dumps(feed).encode(), "feed")) == expected
    assert list(read_listing(gzip.compress(json.dumps(feed).encode()), "feed")) == expected
    assert list(read_listing(b"\xef\xbb\xbf" + json.dumps(feed).encode(), "feed")) == expected
    deep = b'{"version": "https://jsonfeed.org/version/1.1", "items": ' + b"[" * 200_000
    assert list(read_listing(deep, "feed")) == []
    assert list(read_listing(b'{"version": "https://jsonfeed.org/version/1.1"}', "feed")) == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<",
        b"\x1f\x8bnot gzip",
        RSS % b"" + b"<more/>",
        b"<rss>" + b"<x>" * 100_000,
        b"<rss " + b" ".join(b'a%d="b"' % n for n in range(50_000)) + b"/>",
        b"<rss " + b" ".join(b'xmlns:a%d="b"' % n for n in range(20_000)) + b"/>",
    ],
)
def test_what_is_broken_has_nothing(body: bytes) -> None:
    """And takes no time: attributes, namespaces and elements within each other by the thousand, too."""
    begun = time.process_time()
    assert list(read_listing(body, "feed")) == list(read_listing(body, "sitemap")) == []
    assert time.process_time() - begun < 20.0


def test_what_breaks_off_is_read_up_to_there() -> None:
    """In an entry, in gzip, and at characters that XML forbids."""
    entry = b"<item><link>/%d</link></item>"
    assert urls(b"<rss><channel>" + entry % 1 + b"<item><link>/2") == ["/1"]
    assert (
        urls(b"<rss><channel>" + entry % 1 + b"<item><title>\x01 & &nope; \xff</title></item>" + entry % 2)[-1] == "/2"
    )
    packed = gzip.compress(b"<rss><channel>" + b"".join(entry % n for n in range(9999)))
    assert 0 < len(list(read_listing(packed[:-2000], "feed"))) < 9999


def test_entities_neither_grow_nor_read_files(tmp_path: Path) -> None:
    """A document may declare short entities; files are skipped, and so are growing ones."""
    (tmp_path / "secret").write_text("a secret")
    for said, text in (('"n e"', "on e"), (f'SYSTEM "{(tmp_path / "secret").as_uri()}"', "o")):
        document = f"<!DOCTYPE rss [<!ENTITY e {said}>]><rss><item><title>o&e;</title><link>/1</link></item></rss>"
        assert list(read_listing(document.encode(), "feed")) == [Listed("/1", text)]
    laughs = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 10))
    for declared in (
        b'<!ENTITY l0 "lol">' + laughs,
        b'<!ENTITY l9 "' + b"a" * 9000 + b'">',
        b'<!ENTITY l9 SYSTEM "file:///etc/passwd">',
    ):
        document = b"<!DOCTYPE rss [" + declared + b"]>"
        many = b"&l9;" * 5000
        tracemalloc.start()
        found = list(
            read_listing(document + RSS[21:] % (b"<item><title>" + many + b"</title><link>/1</link></item>"), "feed")
        )
        found += read_listing(document + ATOM % (b'<entry><link href="' + many + b'"/></entry>'), "feed")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20_000_000
        assert all(len(entry.title) <= 200 and "root:" not in entry.title for entry in found)


def test_of_what_is_very_long_the_beginning_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many bytes, inflated ones too, so many entries, and so many elements; and it says so."""
    assert (entries.MOST, entries.LARGEST) == (50_000, 50 << 20)  # as the protocol has it
    for n, cut in ((100, False), (101, True)):
        reading = Reading(SITEMAP % (b"<url><loc>/1</loc></url>" * n), "sitemap", most=100)
        assert (sum(map(len, reading)), reading.cut) == (100, cut)
    bomb = gzip.compress(SITEMAP % (b" " * 60_000_000))
    assert len(bomb) < 100_000
    inflated = Reading(bomb, "sitemap")
    assert (sum(map(len, inflated)), inflated.cut) == (0, True)
    short = Reading(SITEMAP % (b"<url><loc>/1</loc></url>" * 9), "sitemap", largest=150, most=2)
    assert (sum(map(len, short)), short.cut) == (2, True)
    monkeypatch.setattr(entries, "_ELEMENTS", 1000)
    crowd = Reading(SITEMAP % (b"<url><loc>/1</loc></url>" + b"<a/>" * 50_000), "sitemap")
    assert (sum(map(len, crowd)), crowd.cut) == (1, True)


def test_texts_are_bounded() -> None:
    """A URL of a megabyte is none that anybody asks for."""
    [entry] = read_listing(
        RSS % (b"<item><title>" + b"a" * 1_000_000 + b"</title><link>/" + b"b" * 1_000_000 + b"</link></item>"), "feed"
    )
    assert (len(entry.title), len(entry.url)) == (200, 4096)


def test_a_page_names_its_feeds() -> None:
    """By their types, each once, ten at most; invalid URLs are skipped."""
    head = (
        '<link rel="alternate" type="application/rss+xml" title=" The  news " href="/rss?a=1&amp;b=2">'
        '<link rel="ALTERNATE stylesheet" type="Application/Atom+XML; charset=utf-8" href="atom.xml">'
        '<link rel="alternate" type="application/rss+xml" href="/rss?a=1&amp;b=2">'
        '<link rel="alternate" type="application/rss+xml" href="javascript:x"><link rel="alternate" type="application/rss+xml">'
        '<link rel="alternate" type="application/rss+xml" href="http://[">'
        '<link rel="alternate" type="text/html" href="/en"><link rel="stylesheet" type="application/rss+xml" href="/css">'
    )
    root = parsed(f"<html><head>{head}</head><body></body></html>")
    assert root is not None
    assert feeds_of_page(root, "http://h.test/dir/page") == [
        ("http://h.test/rss?a=1&b=2", "The news"),
        ("http://h.test/dir/atom.xml", ""),
    ]
    many = "".join(f'<link rel="alternate" type="application/atom+xml" href="/{n}">' for n in range(99))
    root = parsed(f"<html><head>{many}</head></html>")
    assert root is not None
    assert len(feeds_of_page(root, "http://h.test/")) == 10
