"""Fuzzes every function that reads what a site sent: what raises, and what takes more than half a second, is a finding.

With the package ``atheris`` (``pip install atheris``) it is coverage-guided, else it changes the seeds at random. It
runs in one process until so much CPU time is used, keeps the inputs that were new in ``--corpus``, and writes findings to
``--findings``, one file for each place in the code. ::

    python tests/hostile/fuzz.py --seconds 3600
    python tests/hostile/fuzz.py --replay findings/*
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import logging
import os
import random
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "example_project")]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from scrapy_focus import Crawl, Link

SLOW = 0.5  # seconds of CPU that one call may take
_LONGEST = 1 << 16  # bytes of an input: what is linear in it takes far less
_SEED = 4096  # bytes of an input to begin with
_TEXT = 200  # characters of anchors and contexts
_PATH = 5_000  # characters that no tag path is longer than
_ANEW = 500  # pages after which a new crawl starts
_URL = "http://host.test/folder/page.html"
_ARCHIVE = b"PK\x03\x04" + bytes(22) + b"\x05\0\0\0word/"
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(22)


def message(data: bytes) -> tuple[dict[str, str], bytes]:
    """Return headers and body of the response to read."""
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [line.partition(":") for line in head.decode("latin-1").split("\r\n")]
    return {name.strip().title(): value.strip() for name, colon, value in lines if colon and name.strip()}, body


def has_feature(name: str) -> bool:
    """Whether there is a feature, which can be deleted with its folder."""
    return find_spec(f"scrapy_focus.features.{name}") is not None


def text_of(data: bytes) -> str:
    """Return bytes as decoded text, possibly with lone surrogates."""
    return (
        data.decode("utf-8", "replace")
        if len(data) % 2
        else data.decode("utf-8", "surrogatepass" if _passes(data) else "replace")
    )


def _passes(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeError:
        return False
    return True


def links_of(root: Any) -> list[Link]:
    """Return the links of a parsed page, with their places."""
    from scrapy_focus import Link
    from scrapy_focus.web.html import locate, page_links

    urls = [url for url, _ in itertools.islice(page_links(root, _URL), 200) if _has_fingerprint(url)]
    places = locate(root, _URL, urls)
    for place in places.values():
        assert len(place.tag_path) <= _PATH, f"a tag path of {len(place.tag_path)} characters"
        assert max(len(place.anchor), len(place.context)) <= _TEXT, "a long text"
    return [
        Link(
            url=url,
            key=hash(url) >> 1 & 0x7FFFFFFFFFFFFFFF,
            host="host.test",
            depth=1,
            **(place._asdict() if place else {}),
        )
        for url in dict.fromkeys(urls)
        for place in [places.get(url)]
    ]


def _has_fingerprint(url: str) -> bool:
    """Whether Scrapy makes a fingerprint of a request, without which it goes no further."""
    from w3lib.url import canonicalize_url

    try:
        return bool(canonicalize_url(url))
    except ValueError:
        return False


def html(data: bytes) -> None:
    """What is read of a page: links, their places, text, robots rules."""
    from parsel import Selector

    from scrapy_focus.web.digest import text_digest
    from scrapy_focus.web.html import html_text, page_text, readable, tag_path
    from scrapy_focus.web.robots import asked_of_robots, nofollowed

    text = text_of(data)
    root = Selector(text=text.encode("utf-8", "replace").decode(), type="html").root
    for link in links_of(root):
        readable(link.tag_path)
    page_text(root)
    text_digest(root)
    html_text(text)
    asked_of_robots(root, text.split("\n"))
    nofollowed(root, _URL)
    for element in itertools.islice(root.iter(), 50):
        assert len(tag_path(element)) <= _PATH, "a long tag path"


def entities(data: bytes) -> None:
    """Structured data of a page: as it is, in a script, and in an item."""
    from scrapy_focus.web.entities import read_entities
    from scrapy_focus.web.html import parsed

    text = text_of(data)
    script = f'<script type="application/ld+json">{text}</script>'
    for source in (text, script, f'<div itemscope itemtype="http://schema.org/Event" itemref="a b">{text}</div>'):
        root = parsed(source)
        if root is None:
            continue
        reading = read_entities(root, source, _URL)
        assert len(reading.entities) <= 5_000, "many entities"
        assert reading.facts <= 50_000, "many facts"
        assert reading.broken >= 0
        for entity in reading.entities[:20]:
            assert all(entity.types), "a type without a name"
            json.dumps(entity.values, allow_nan=False, ensure_ascii=False).encode()


def recorded(data: bytes) -> None:
    """A response as recordings read it."""
    from scrapy_focus.lab.recordings.html import decompress, is_page, mime_of, read_page, redirect_of
    from scrapy_focus.lab.recordings.importers.base import identity, merge_headers

    headers, body = message(data)
    merge_headers(headers.items())
    content = decompress(body, headers)
    is_page(mime_of(headers), content)
    read_page(_URL, headers, content)
    for status in (200, 301, 307, None):
        identity(redirect_of(_URL, status, headers) or _URL)


@cache
def _scratch() -> Path:
    """A folder for files to read; in memory, if possible."""
    shared = Path("/dev/shm")
    return Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))


def warc(data: bytes) -> None:
    """A web archive, whose responses are read, too."""
    from scrapy_focus.core.errors import RecordingError
    from scrapy_focus.lab.recordings.importers.warc import WarcImporter

    path = _scratch() / "archive.warc"
    path.write_bytes(data)
    with contextlib.suppress(RecordingError):
        for answer in WarcImporter(path).answers(SimpleNamespace(path=path)):  # type: ignore[arg-type]
            identity_of(answer)


def cached(data: bytes) -> None:
    """An entry of Scrapy's HTTP cache, of either storage."""
    import dbm.dumb

    from scrapy_focus.core.errors import RecordingError
    from scrapy_focus.lab.recordings.importers.httpcache import HttpCacheImporter

    meta, _, rest = data.partition(b"\r\n\r\n")
    headers, _, body = rest.partition(b"\r\n\r\n")
    entry = _scratch() / "files" / "ab" / "abcd"
    entry.mkdir(parents=True, exist_ok=True)
    for name, content in (("meta", meta), ("response_headers", headers), ("response_body", body)):
        (entry / name).write_bytes(content)
    with dbm.dumb.open(str(_scratch() / "spider.db"), "n") as database:
        database[b"key_time"], database[b"key_data"] = b"1.5", data
    for cache_of_it in ("files", "spider.db"):
        with contextlib.suppress(RecordingError):
            for answer in HttpCacheImporter(_scratch() / cache_of_it).read():
                identity_of(answer)


def identity_of(answer: Any) -> None:
    """What a recording uses of a response that an importer found."""
    from scrapy_focus.lab.recordings.html import mime_of, redirect_of
    from scrapy_focus.lab.recordings.importers.base import identity

    identity(answer.url)
    identity(redirect_of(answer.url, answer.status, answer.headers) or _URL)
    mime_of(answer.headers)


def _files() -> Iterator[bytes]:
    """Yield small web archives and cache entries to begin with."""
    import pickle

    said = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=/x.csv>bees</a>"
    for kind, url in (
        (b"response", b"http://host.test/"),
        (b"revisit", b"http://host.test/x"),
        (b"request", b"http://host.test/"),
    ):
        block = said if kind != b"request" else b"GET / HTTP/1.1\r\nHost: host.test\r\n\r\n"
        yield (
            b"WARC/1.0\r\nWARC-Type: "
            + kind
            + b"\r\nWARC-Target-URI: "
            + url
            + b"\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
            b"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000000>\r\nContent-Type: application/http;msgtype=response\r\n"
            b"Content-Length: %d\r\n\r\n" % len(block) + block + b"\r\n\r\n"
        )
    head = b"http://host.test/ 1.2.3.4 20260101000000 text/html %d\n" % len(said)
    yield b"filedesc://x.arc 0.0.0.0 20260101000000 text/plain 9\n1 0 test\n\n" + head + said + b"\n"
    fields = {"url": "http://host.test/", "status": 200, "method": "GET", "timestamp": 1.5}
    yield (
        repr(fields).encode()
        + b"\r\n\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n<a href=/x.csv>bees</a>"
    )
    yield pickle.dumps(
        {**fields, "headers": {b"Content-Type": [b"text/html"]}, "body": b"<a href=/x.csv>bees</a>"}, protocol=4
    )


def _listings() -> Iterator[bytes]:
    """Yield small listings, and URLs with parameters, to begin with."""
    import gzip

    entries = b"".join(
        b"<url><loc>%s</loc></url>" % loc
        for loc in (b"http://host.test/a.csv", b"/b", b"http://[", b"mailto:a", b"https://host.test:99999/", b"&#0;")
    )
    xmlns = b' xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    sitemap = b'<?xml version="1.0" encoding="UTF-8"?><!-- <rss> --><urlset%s>%s</urlset>' % (xmlns, entries)
    index = b"<x:sitemapindex xmlns:x=%s><x:sitemap><x:loc>/s.xml.gz</x:loc></x:sitemap></x:sitemapindex>"
    catalogue = {
        "@type": "dcat:Catalog",
        "dataset": [{"landingPage": "http://[", "distribution": [{"downloadURL": "http://host.test/\u00e9.csv"}]}],
    }
    found = {
        "help": "http://a/help_show?name=package_search",
        "result": {"count": 2, "results": [{"resources": [{"url": "/a", "format": "CSV"}]}]},
    }
    yield json.dumps(found).encode()
    yield b'<script type="application/ld+json">{"@type": "Dataset", "distribution": {"contentUrl": "/a"}}</script>'
    yield b'<a href="/x/api/3/action/"><meta name="generator" content="ckan"><link rel=alternate type=application/json href=/data.json>'
    robots = b"User-agent: *\nDisallow: /x\nSitemap: /s.xml\nSitemap: http://[\nSitemap: https://host.test/t.xml.gz"
    urls = "http://host.test/a;jsessionid=1F/b?sort=price&sid=abc&&=&x=1&x=2#top http://host.test/?utm_source=a&b"
    yield from (sitemap, gzip.compress(sitemap), index % b'"http://www.sitemaps.org/schemas/sitemap/0.9"', robots)
    yield from (json.dumps(catalogue).encode(), json.dumps({"version": "https://jsonfeed.org/version/1"}).encode())
    yield from (b"<rss><channel><item><link>/a</link>", b'<rdf:RDF xmlns="http://purl.org/rss/1.0/"/>', urls.encode())
    yield from (
        b"\xef\xbb\xbfhttp://host.test/a\r\n\r\nhttp://[\nhttps://host.test/b",
        robots.decode().encode("utf-16"),
    )
    yield b"<rss><channel><item><link>/a</link><title>A</title><pubDate>Sun, 22 Nov 2026 10:00:00 -0000</pubDate></item>"
    yield (
        b'<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://["><entry xml:base="x/"><link href="a"/><updated>'
        b'2026-11-22T10:00:00.5+14:00</updated></entry><entry><link rel="self" href="http://["/><title type="xhtml"><b>x'
    )
    yield b'{"version": "https://jsonfeed.org/version/1", "items": [{"url": "/a", "date_modified": "2026-11"}, []]}'
    yield b"<urlset><url><loc>/a</loc><lastmod>9999-12-31T23:59:59-14:00</lastmod></url><url><loc>//x</loc><lastmod>0001"
    yield b'<!DOCTYPE rss [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;"><!ENTITY c SYSTEM "file:///x">]><rss><item><link>&b;&c;'
    yield b"2026\n2026-11\n2026-11-22\n20261122T10\nSun, 22 Nov 26 10:00 EST\n24:00:00\n-0001-01-01\n2026-W53-7"
    yield b'<link rel=alternate type="application/rss+xml;x" href="http://["><link rel=alternate type=application/atom+xml href=a>'
    yield b"csv, .DAT,image/*,/download/\\d+,[a,b]{1,3},data"


def _marked() -> Iterator[bytes]:
    """Yield small pages with markup to begin with."""
    thing = {
        "@context": ["http://schema.org", {"s": "http://schema.org/"}],
        "@graph": [{"@type": ["s:Event", 5], "a": [1, None, {"@id": "#b"}]}],
    }
    script = f'<script type="application/ld+json">{json.dumps(thing)}</script>'
    yield from (json.dumps(thing).encode(), script.encode(), b'// a\n{"@type": "Event", "n": 1e999, "a": NaN,}')
    yield b'{"@context": {"@vocab": "x:", "Event": "a:b", "a": {"@id": "b:"}}, "@type": "Event", "@reverse": [[{}]]}'
    scope = b'<p itemscope itemtype="http://schema.org/Event x" itemid="#i" itemref="a b" itemprop="c d">'
    said = b'<b itemprop=a id=a>x<i itemprop=b>y</i></b><a itemprop=u href="http://[">z</a><meta itemprop=m content=n>'
    yield from (scope + said + b"</p>", scope + said + scope + said, b'<div id="a" itemref="a">' + scope)


def _heads() -> Iterator[bytes]:
    """Yield the beginnings of files, as archives and office programs write them."""
    member = b"PK\x03\x04" + bytes(22)
    yield member + b"\x08\0\0\0mimetypeapplication/epub+zip"
    yield member + b"\x05\0\0\0xl/ab" + member
    entry = "Workbook\0".encode("utf-16-le")
    yield _OLD_OFFICE + b"\x09\0" + bytes(16) + b"\0\0\0\0" + bytes(460) + entry
    yield from (b"%PDF-1.7", b"\x1f\x8b\x08", b"\x89PNG\r\n\x1a\n", b"Rar!\x1a\x07", b"SQLite format 3\0")


@cache
def _datasets() -> Any:
    from scrapy_focus.finders.files.spider import DatasetsSpider

    return DatasetsSpider(root="http://host.test/")


@cache
def _topic() -> Any:
    from scrapy_focus.finders.topic.spider import TopicSpider
    from scrapy_focus.topic.keywords import KeywordRelevance

    spider = TopicSpider(seeds="http://host.test/", keywords="bees,honey", out=tempfile.mkdtemp() + "/out.jsonl")
    spider.relevance = KeywordRelevance(["bees", "honey"])
    return spider


def scraped(spider: Callable[[], Any], data: bytes) -> None:
    """A response as a spider of the example project reads it."""
    from scrapy import Request
    from scrapy.http import Headers
    from scrapy.responsetypes import responsetypes

    from scrapy_focus.finders.kit.spiders.middlewares import redirect_of

    said, body = message(data)
    headers = Headers(
        {name.encode("latin-1", "replace"): value.encode("latin-1", "replace") for name, value in said.items()}
    )
    kind = responsetypes.from_args(headers=headers, url=_URL, body=body)
    for status in (200, 302):
        response = kind(_URL, status=status, headers=headers, body=body, request=Request(_URL))
        redirect_of(response)
        if len(spider().__dict__.get("reached", ())) > 1000:
            spider().reached.clear()
        for _ in spider().parse(response):
            pass


def named(data: bytes) -> None:
    """The name of a file, from a header and from a URL: one part of a path, that can be written."""
    from scrapy.http import Response

    from scrapy_focus.finders.files.spider import file_name

    text = data.decode("latin-1")
    for url, said in ((_URL, text), ("http://host.test/" + text.encode("ascii", "replace").decode(), "")):
        response = Response(url, headers={"Content-Disposition": said.encode("latin-1")})
        for mime in ("text/csv", text[:50]):
            name = file_name(response, mime)
            assert name not in ("", ".", ".."), f"the name {name!r}"
            assert not {"/", "\\", "\0"} & set(name), f"the name {name!r}"
            assert len(os.fsencode(name)) <= 255, "a name that is too long"


def url(data: bytes) -> None:
    """What is read of URLs: words, patterns, addresses, first pages."""
    from w3lib.url import safe_url_string

    from scrapy_focus.core.errors import RecordingError
    from scrapy_focus.lab.recordings.html import _spell, first_pages
    from scrapy_focus.lab.recordings.importers.base import identity
    from scrapy_focus.policies.branching.features import feature, path_of, shape_of
    from scrapy_focus.policies.treeq.features import bucket, url_pattern
    from scrapy_focus.web.addresses import literal, network_of
    from scrapy_focus.web.domains import domain_of
    from scrapy_focus.web.mime import effective_mime, extension
    from scrapy_focus.web.words import url_words

    text = text_of(data[:_SEED])  # Scrapy asks for no longer ones
    with contextlib.suppress(RecordingError):
        first_pages([text])
    identity(text)
    domain_of(text)
    if (address := literal(text)) is not None:
        network_of(address)
    extension(text)
    effective_mime("", text)
    spelled, _ = _spell("http://host.test/", text, "utf-8")
    safe = spelled
    with contextlib.suppress(ValueError):
        safe = safe or safe_url_string("http://host.test/" + text)
    shape_of(path_of(safe))
    feature("url", safe)
    if has_feature("traps"):
        from scrapy_focus.features.traps.patterns import Limits, trap_of

        trap_of(safe, Limits())
    if spelled:  # else no request would be made
        url_words(spelled)
        bucket(url_pattern(spelled))


def words(data: bytes) -> None:
    """What is read of text: words, pairs of characters, keywords, a topic."""
    from scrapy_focus.learn.matching import Keywords
    from scrapy_focus.learn.text import char_pairs
    from scrapy_focus.web.words import numbers_of, words_of

    text = text_of(data)
    found = words_of(text)
    numbers_of(found)
    char_pairs(text)
    Keywords(["bees", "honey bees", text[:20]]).found(found)
    _topic().relevance.score([text])


def header(data: bytes) -> None:
    """What is read of single headers."""
    from scrapy_focus.core.errors import ConfigError
    from scrapy_focus.web.mime import describe_types, effective_mime, matches, parse_mime
    from scrapy_focus.web.names import announced_name
    from scrapy_focus.web.robots import asked_of_robots, retry_after
    from scrapy_focus.web.sniff import sniff
    from scrapy_focus.web.wanted import parse_types

    text = data.decode("latin-1")
    mime = parse_mime(text)
    matches(mime, ["image/*", mime])
    effective_mime(mime, _URL)
    describe_types([mime])
    sniff(data)
    announced_name({"Content-Disposition": text})
    with contextlib.suppress(ConfigError):
        parse_types(text.split(","))
    wait = retry_after(text, now=1.8e9)
    assert wait is None or 0 <= wait <= 1e13, f"a wait of {wait}"
    asked_of_robots(None, [text])


def robots(data: bytes) -> None:
    """A robots.txt, also for URLs that it contains."""
    from protego import Protego

    from scrapy_focus.web.encodings import is_text
    from scrapy_focus.web.robots import rules_of

    is_text(data)
    text = (rules_of(data, is_encoded=data[:1] < b"A") or data).decode("utf-8", "replace")
    rules = Protego.parse(text)
    for path in (text[:100], text[-1000:].replace("\n", ""), "/x"):
        rules.can_fetch("http://host.test/" + path.encode("ascii", "ignore").decode(), "focused")
    rules.crawl_delay("focused")


def shown(data: bytes) -> None:
    """Whatever is displayed of a site's data."""
    from hostilecrawls import unprintable

    from scrapy_focus.core.printable import brief, printable, printable_json, reason_of
    from scrapy_focus.web.html import readable

    text = data.decode("utf-8", "surrogateescape")
    odd = text_of(data)
    for each in (text, odd):
        said = [
            printable(each),
            printable(readable(each)),
            brief(each),
            reason_of(ValueError(each)),
            printable_json({"a": each}),
        ]
        for line in said:
            assert not unprintable(line), f"it says {unprintable(line)}"
            assert "\n" not in line, "it says two lines"
        assert len(printable(each)) <= 200, "it says too much"
        assert json.loads(said[-1]) == {"a": each}, "it reads back otherwise"


class _Crawls:
    """A crawl by each policy that learns; pages are reported to them as outcomes."""

    def __init__(self) -> None:
        self.crawls: list[Crawl] = []
        self.left = 0

    def begin(self) -> None:
        from scrapy_focus import Crawl, memory_frontier
        from scrapy_focus.policies.branching import BranchingBandit
        from scrapy_focus.policies.focused import Focused
        from scrapy_focus.policies.tagpath import TagPath
        from scrapy_focus.policies.treeq import TreeQ

        makers: list[Callable[[], Any]] = [
            BranchingBandit, partial(TagPath, probe=False), partial(Focused), partial(TreeQ, keywords=["bees", "honey"]),
        ]  # fmt: skip
        self.crawls = [Crawl(make(), frontier=memory_frontier, strict=True, seed=0) for make in makers]
        self.left = _ANEW

    def tell(self, data: bytes) -> None:
        """Tell each crawl of a page with these links."""
        from parsel import Selector

        from scrapy_focus import Link, Outcome

        if not self.left:
            self.begin()
        self.left -= 1
        headers, body = message(data)
        links = links_of(Selector(text=body.decode("utf-8", "replace"), type="html").root)
        for crawl in self.crawls:
            if crawl.status().waiting == 0:
                key = random.getrandbits(60)
                crawl.add([Link(url=f"http://host.test/{key}", key=key, host="host.test")])
            if (pick := crawl.next()) is not None:
                mime = headers.get("Content-Type", "text/html").partition(";")[0]
                fresh = [
                    link
                    for link, state in zip(links, crawl.knows([link.key for link in links]), strict=True)
                    if not state
                ]
                crawl.report(Outcome(pick, status=200, mime=mime, size=len(body), items=float(len(body) % 2)), fresh)


def listing(data: bytes) -> None:
    """Sitemaps, feeds and catalogues of data sets, and the requests made for their entries."""
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_focus.finders.kit.spiders.listings import links_of_listing, listing_in

    _, body = message(data)
    for content in (data, body):
        kind = listing_in(Response(_URL, body=content, request=Request(_URL, meta={"sitemap_depth": 0})))
        for each, depth in ((kind, 0), ("sitemap", 2), ("catalogue", 0)):
            response = Response(_URL, body=content, request=Request(_URL, meta={"sitemap_depth": depth}))
            for made in links_of_listing(response, each, feeds=each == "feed"):
                assert made.url.startswith(("http://", "https://")), f"a request for {made.url!r}"
    _named_in(data)


def declared(data: bytes) -> None:
    """What catalogues, pages and headers declare."""
    from scrapy_focus.web.catalogues import Catalogue
    from scrapy_focus.web.declared import (
        catalogues_named_in,
        catalogues_of,
        files_in_json_ld,
        linked_files,
        mentions_datasets,
        next_in,
    )
    from scrapy_focus.web.directories import is_directory, leads_on
    from scrapy_focus.web.html import parsed

    text = text_of(data)
    for body in (data, b'{"dataset": [' + data, b'{"count": 9, "results": [{"resources": [' + data):
        catalogue = Catalogue(body)
        for file in itertools.chain.from_iterable(catalogue):
            assert max(map(len, (file.url, file.text, file.mime))) <= 2 * 4096, "a long text"
            file.text.encode()
        catalogue.next_page(_URL + "?" + text[:100])
    mentions_datasets(text)
    for content in (text, f'<script type="application/ld+json">{text}</script>'):
        if (root := parsed(content)) is not None:
            assert len(files_in_json_ld(root)) <= 1000, "too many files"
            assert len(catalogues_named_in(root)) <= 5, "too many catalogues"
        with contextlib.suppress(ValueError):  # of a base that is no URL
            assert len(catalogues_of(content, _URL, {})) <= 2, "too many addresses"
    assert len(linked_files([text, f"<{text}>; rel=item"])) <= 1000, "too many files"
    next_in([text])
    is_directory(text)
    for line in text.splitlines()[:20]:
        with contextlib.suppress(ValueError):
            leads_on(line, _URL)


def listing_news(data: bytes) -> None:
    """What sitemaps and feeds say about pages, the feeds of a page, dates, and a page's own metadata."""
    from scrapy_focus.web.changed import believed, read_moment
    from scrapy_focus.web.documents import document_of
    from scrapy_focus.web.entries import Reading, feeds_of_page
    from scrapy_focus.web.html import parsed
    from scrapy_focus.web.listing_news import ListingNews

    _, body = message(data)
    seen = ListingNews()
    for content in (data, body, b"<rss>" + data, b"<urlset><url>" + data + b"</url></urlset>"):
        for kind in ("sitemap", "feed"):
            for entry in itertools.chain.from_iterable(Reading(content, kind, largest=1 << 20, most=1000)):
                assert max(map(len, (entry.url, entry.changed))) <= 3 * 4096, "a long text"
                news = seen.news(entry, _URL, 1.8e9)
                assert isinstance(news, str) or news.modified <= 1.8e9, "a date of the future"
    for line in text_of(data).splitlines()[:50]:
        if (moment := read_moment(line)) is not None:
            assert moment.earliest <= moment.at, "an end before its beginning"
            believed(moment, 1.8e9)
    if (root := parsed(text_of(data))) is not None:
        assert len(feeds_of_page(root, _URL)) <= 10, "too many feeds"
    headers = {"last-modified": text_of(data[:100])}
    page: Any = SimpleNamespace(url=_URL, status=200, headers=headers, text=text_of(data), kind="")
    document = document_of(page)
    for at in (document.published_at(1.8e9), document.changed_at(1.8e9)):
        assert at is None or 6e8 < at <= 1.8e9, "a date of the future, or from before the web"


def _named_in(data: bytes) -> None:
    """Ask for the sitemaps that a robots.txt names."""
    from scrapy import Request
    from scrapy.robotstxt import ProtegoRobotParser

    from scrapy_focus.finders.kit.spiders.listings import NamedSitemaps

    asked: list[Request] = []
    signals = SimpleNamespace(connect=lambda *_: None)
    engine = SimpleNamespace(crawl=asked.append)
    named = NamedSitemaps(SimpleNamespace(signals=signals, engine=engine))  # type: ignore[arg-type]
    named.on_parsed(ProtegoRobotParser(data, spider=None), Request("http://host.test/robots.txt"))
    assert len(asked) <= 20, "too many sitemaps"


def file(data: bytes) -> None:
    """The type of a file: by its first bytes, its headers, the user's types; and its path."""
    from scrapy_focus.finders.files.file_names import Names
    from scrapy_focus.web.mime import parse_mime
    from scrapy_focus.web.names import announced_name
    from scrapy_focus.web.safe_names import safe_name
    from scrapy_focus.web.sniff import sniff

    headers, body = message(data)
    for content in (data, body, _ARCHIVE + data, _OLD_OFFICE + data):
        mime = sniff(content)
        assert parse_mime(mime) == mime, f"the type {mime!r}"
    announced = announced_name(headers)
    names = Names()
    for url in (text_of(data[:_SEED]), "http://host.test/" + text_of(body[:_SEED])):
        for mime in (sniff(data), "text/html", parse_mime(headers.get("Content-Type", ""))):
            _wanted().takes(mime, url)
        first, second = names.give(url, announced), names.give(url, announced)
        assert first.casefold() != second.casefold(), f"two files at {first!r}"
        for path in (first, second):
            parts = path.split("/")
            assert [safe_name(part, 255) for part in parts] == parts, f"the path {path!r}"
            assert path.count("/") == 2, f"the path {path!r}"


@cache
def _wanted() -> Any:
    from scrapy_focus.web.wanted import Wanted

    return Wanted.of(["data", "dat", "tar.zst", "image/*", r"/download/\d+", r"[?&]format=(csv|json)"])


def asked_for(data: bytes) -> None:
    """What a user looks for, in words."""
    from scrapy_focus.core.errors import ConfigError
    from scrapy_focus.web.wanted import Wanted, slips, split_words

    words = split_words(text_of(data[:2000]))  # a command line
    slips(words)
    with contextlib.suppress(ConfigError):
        str(Wanted.of(words))


class _Copies:
    """What was learned of parameters from URLs and pages, one after the other."""

    def __init__(self) -> None:
        self.near: Any = None
        self.left = 0

    def tell(self, data: bytes) -> None:
        """Tell of URLs, and of a page that was found at each."""
        from parsel import Selector

        from scrapy_focus.features.near_copies.learner import NearCopies, page_print
        from scrapy_focus.web.queries import query_of

        if not self.left:
            self.near, self.left = NearCopies(), _ANEW
        self.left -= 1
        near = self.near
        text = text_of(data)
        said = page_print(Selector(text=text.encode("utf-8", "replace").decode(), type="html").root)
        assert said == page_print(Selector(text=text.encode("utf-8", "replace").decode(), type="html").root)
        for number, line in enumerate(re.split(r"[\s\"'<>]+", text[:_SEED])[:50]):
            for url in (line, "http://host.test/" + line, f"http://host.test/list?sid={number}&" + line):
                query = query_of(url)
                again = query_of(query.without())
                assert again.without() == query.without(), f"{url!r} is spelled in two ways"
                near.offer(url)
                near.wants(url)
                near.visit(url)
                near.learn(url, said or number % 3)
                stripped = near.stripped(url)
                if stripped is not None:
                    assert not {*query_of(stripped.url).names} & {*stripped.names}, f"{stripped} keeps a parameter"
                    near.was_fetched(stripped)
                    near.drop(stripped)
        if self.left % 50 == 0:
            state = json.loads(json.dumps(near.state()))
            restored = NearCopies()
            restored.restore(state)
            assert json.loads(json.dumps(restored.state())) == state, "it is restored otherwise"


_CRAWLS = _Crawls()
#: What is fuzzed, by name.
PARSERS: dict[str, Callable[[bytes], None]] = {
    "html": html,
    "entities": entities,
    "recorded": recorded,
    "warc": warc,
    "cached": cached,
    "datasets": partial(scraped, _datasets),
    "topic": partial(scraped, _topic),
    "named": named,
    "url": url,
    "words": words,
    "header": header,
    "robots": robots,
    "shown": shown,
    "crawl": _CRAWLS.tell,
    "listing": listing,
    "listing_news": listing_news,
    "declared": declared,
    "file": file,
    "asked_for": asked_for,
    **({"copies": _Copies().tell} if has_feature("near_copies") else {}),
}


def seeds() -> list[bytes]:
    """Return initial inputs: the data of the hostile sites, truncated."""
    from faultserver import Asked
    from scenarios import _BASES, _ENCODED, _FILES, _HREFS, _LATER, _TYPES, SCENARIOS

    found = [
        text.encode("utf-8", "surrogatepass")
        for text in (*_HREFS, *_BASES, *_FILES, *_ENCODED, *_LATER, *filter(None, _TYPES))
    ]
    found += [*_files(), *_listings(), *_marked(), *_heads()]
    for scenario in SCENARIOS:
        for number in (0, 1, 2, 7):
            answer = scenario(Asked("GET", scenario.host, f"/x/{number}.html", 1))
            whole = b"".join(step for step in itertools.islice(answer, 3) if isinstance(step, bytes))
            found.append(whole)
        if scenario.robots is not None:
            found += [
                step[:4096]
                for step in itertools.islice(scenario.robots(Asked("GET", scenario.host, "/robots.txt", 1)), 1)
                if isinstance(step, bytes)
            ]
    return list(dict.fromkeys(data[:_SEED] for data in found))


def unfold(data: bytes) -> tuple[str, bytes]:
    """Return which parser an input is for, and what it reads: from the third byte on, once or many times over."""
    name = [*PARSERS][data[0] % len(PARSERS)]
    times = 1 << (data[1] % 16 if data[1] >= 128 else 0)
    unit = data[2:]
    return name, (unit * times)[:_LONGEST]


class Fuzzer:
    """Calls parsers, and keeps what raised and what was slow, once for each place in the code."""

    def __init__(self, findings: Path) -> None:
        self.findings = findings
        self.calls: Counter[str] = Counter()  # what was called by now
        self.longest: dict[str, float] = {}
        self.found: Counter[str] = Counter()

    def __call__(self, data: bytes) -> None:
        if len(data) < 3:
            return
        name, unfolded = unfold(data)
        self.calls[name] += 1
        begun, where = time.thread_time(), ""
        try:
            PARSERS[name](unfolded)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            last = next(
                (frame for frame in reversed(frames) if re.search("scrapy_focus|focused", frame.filename)), frames[-1]
            )
            place = f"{Path(last.filename).stem}-{last.lineno}"
            where = f"{name}-{type(error).__name__}-{place}"
        taken = time.thread_time() - begun
        self.longest[name] = max(taken, self.longest.get(name, 0.0))
        if taken > SLOW:
            where = f"{name}-slow"
        if where:
            self._keep("".join(c if c.isalnum() or c in "-_." else "_" for c in where), data)

    def warm(self) -> None:
        """Import and create everything that is needed once."""
        from scrapy_focus.lab.recordings import html as recording

        recording.LARGEST = 1 << 20  # it reads 64 MiB; here that would count as slow
        for parse in PARSERS.values():
            with contextlib.suppress(Exception):
                parse(b"Content-Type: text/html\r\n\r\n<a href=/x.csv class='b c' id=d>bees</a>")

    def _keep(self, where: str, data: bytes) -> None:
        self.found[where] += 1
        if self.found[where] <= 3:
            self.findings.mkdir(parents=True, exist_ok=True)
            (self.findings / f"{where}-{self.found[where]}").write_bytes(data)
            print(f"finding: {where} ({len(data)} bytes)", flush=True)

    def report(self) -> str:
        """Print which functions were called, and the results."""
        lines = [
            f"{name:10} {calls:12,} calls, {self.longest[name]:.3f} s at most"
            for name, calls in sorted(self.calls.items())
        ]
        found = [f"{number:6,} times {where}" for where, number in self.found.most_common()]
        return "\n".join([*lines, f"{sum(self.calls.values()):,} calls in all", *(found or ["no finding"])])


def mutations(inputs: list[bytes], rng: random.Random) -> Iterator[bytes]:
    """Yield inputs that were changed at random, without end."""
    while True:
        data = bytearray(rng.choice(inputs))
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(data) + 1)
            kind = rng.randrange(4)
            if kind == 0:
                data[at:at] = rng.randbytes(rng.randrange(1, 5))
            elif kind == 1:
                del data[at : at + rng.randrange(1, 30)]
            elif kind == 2:
                other = rng.choice(inputs)
                start = rng.randrange(len(other) + 1)
                data[at:at] = other[start : start + rng.randrange(1, 200)]
            elif at < len(data):
                data[at] = rng.randrange(256)
        yield bytes([rng.randrange(256), rng.randrange(256)]) + bytes(data)


def beginnings(inputs: Iterable[bytes]) -> list[bytes]:
    """Return each input for each parser, once and repeated."""
    return [bytes([number, times]) + data for data in inputs for number in range(len(PARSERS)) for times in (0, 140)]


def main() -> None:
    """Fuzz, or try findings once more."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of CPU time (%(default)s)")
    parser.add_argument("--corpus", type=Path, default=Path(tempfile.gettempdir(), "focus-corpus"))
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    parser.add_argument("--replay", type=Path, nargs="+", help="findings to try again")
    parser.add_argument("--plain", action="store_true", help="without atheris")
    parser.add_argument("--only", nargs="+", choices=[*PARSERS], help="parsers to be fuzzed")
    options = parser.parse_args()
    for name in set(PARSERS) - set(options.only or PARSERS):
        del PARSERS[name]
    logging.disable(logging.CRITICAL)
    fuzzer = Fuzzer(options.findings)
    if options.replay:
        fuzzer.warm()
    for path in options.replay or ():
        name, data = unfold(path.read_bytes())
        begun = time.thread_time()
        try:
            PARSERS[name](data)
            raised = ""
        except Exception:
            raised = traceback.format_exc()
        print(f"{path}: {name} on {len(data):,} bytes, {time.thread_time() - begun:.3f} s\n{raised}")
    if options.replay:
        return
    try:
        import atheris
    except ImportError:
        atheris = None
    if atheris is None or options.plain:
        fuzzer.warm()
        for data in itertools.chain(beginnings(seeds()), mutations(seeds(), random.Random())):
            fuzzer(data)
            if time.process_time() > options.seconds:
                break
        print(fuzzer.report())
    else:
        _guided(atheris, fuzzer, options.seconds, options.corpus)


def _guided(atheris: Any, fuzzer: Fuzzer, seconds: float, corpus: Path) -> None:
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(beginnings(seeds())):
        (corpus / f"seed-{number}").write_bytes(data)
    said = time.monotonic()
    with atheris.instrument_imports(
        include=["scrapy_focus", "focused", "w3lib", "protego"], enable_loader_override=False
    ):
        fuzzer.warm()

    def once(data: bytes) -> None:
        nonlocal said
        fuzzer(data)
        if time.monotonic() - said > 300:
            said = time.monotonic()
            print(f"--- {time.process_time():.0f} s of CPU\n{fuzzer.report()}", flush=True)
        if time.process_time() > seconds:
            print(f"=== {time.process_time():.0f} s of CPU\n{fuzzer.report()}", flush=True)
            os._exit(0)

    atheris.Setup(
        [sys.argv[0], f"-max_len={_SEED}", "-timeout=60", "-rss_limit_mb=6000", "-print_final_stats=1", str(corpus)],
        once,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
