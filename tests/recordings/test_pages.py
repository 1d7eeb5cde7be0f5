"""The data read from a page: its text, its links, and their places, as Scrapy and the spider middleware read it."""

from __future__ import annotations

import gzip
import random
import sys
import zlib

import pytest
from parsel import Selector
from w3lib.html import get_base_url

from scrapy_focus.lab.recordings import html as pages
from scrapy_focus.lab.recordings.html import decode, decompress, is_page, read_page, redirect_of
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.web.html import Place, locate, page_links

HTML = {"Content-Type": "text/html; charset=utf-8"}
HREFS = [
    "a", "a/b", "/a", "./a", "../a", "../../../a", "?q=1", "?q=é", "#top", "a#top", "", " a ", "\ta\n", "a b", "a%20b", "é",
    "//example.org/a", "//other.org/a", "http://example.org/a", "http:a", "HTTP://EXAMPLE.ORG/a", "https:/a", ";p", "a;p?q",
    "a?x=1&amp;y=2", "mailto:x@y", "javascript:void(0)", "data:,x", "tel:1", "http://[x", "http://", "//", "a//b", "..", ".",
    "a|b", "a\\b", "a'b", "a%", "a%zz", "http://example.org:80/a", "http://user@example.org/a", "x" * 3000, "a:b",
    "\\a", "\\\\other.org\\a", "///other.org/a", "http:/a", "https:other.org/a", "?q=\\", "//me:pw@other.org/?é",
    "http://EXAMPLE.org/é?é",
]  # fmt: skip
BASES = [
    "", "<base href='/dir/sub/'>", "<base href='x/y.html?z#f'>", "<base href='http://example.org/'>", "<base href=''>",
    "<base href='//www.example.org/é/'>", "<base target=_blank>",
]  # fmt: skip
URLS = [
    "http://example.org/", "http://example.org/a/b.html?c=/d/e", "http://example.org/a//b/../c/d",
    "http://example.org/a;p/b;p?q",
]  # fmt: skip


def expected(url: str, body: bytes, headers: dict[str, str]) -> list[tuple[str, Place]]:
    """Return the links of a page and their places, link by link, as a spider and the spider middleware find them."""
    text, encoding = decode(body, headers)
    base, root = get_base_url(text[:4096], url, encoding), Selector(text=text, type="html").root
    urls = [link for link, _ in page_links(root, base, encoding=encoding)]
    places = locate(root, base, urls, encoding=encoding)
    return [(link, places[link]) for link in urls if len(link) <= 2083]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("url", URLS)
def test_links_are_those_of_scrapy(url: str, base: str) -> None:
    """Whatever the links and the base look like, URLs and places are those that are found one by one."""
    rng = random.Random(f"{url} {base}")
    for _ in range(5):
        hrefs = rng.choices(HREFS, k=60)
        parts = [
            f'<p class="c{rng.randrange(5)}">{rng.choice(["see ", ""])}<{tag} {name}="{href}">{rng.choice(["text", ""])}</{tag}>'
            for href in hrefs
            for tag, name in [rng.choice([("a", "href"), ("area", "href"), ("iframe", "src"), ("a", "name")])]
        ]
        html = f"<html><head>{base}<link href=a><link href='/b'></head><body>{''.join(parts)}"
        for encoding in ("utf-8", "latin-1", "shift_jis", "utf-16"):
            headers = {"Content-Type": f"text/html; charset={encoding}"}
            body = html.encode(encoding, "xmlcharrefreplace")
            assert list(map(tuple, read_page(url, headers, body).links)) == expected(url, body, headers)


def test_links_of_the_portal() -> None:
    """The same on pages that look like pages."""
    portal = StatisticsPortal(pages=200)
    for path in list(portal.html_paths())[::20]:
        url, body = f"http://localhost{path}", portal.fetch(path).body
        found = read_page(url, HTML, body).links
        assert list(map(tuple, found)) == expected(url, body, HTML)
        assert found


def test_a_query_is_quoted_in_the_encoding_of_the_page() -> None:
    """And the path in UTF-8, as browsers do it."""
    headers, body = {"Content-Type": "text/html; charset=latin-1"}, "<a href='/é?é'>".encode("latin-1")
    assert [link.url for link in read_page("http://a.org/", headers, body).links] == ["http://a.org/%C3%A9?%E9"]


@pytest.mark.parametrize(
    ("mime", "body", "answer"),
    [
        ("text/html", b"", True),
        ("application/xhtml+xml", b"", True),
        ("text/plain", b"<html>", False),
        ("", b"\n <!DOCTYPE HTML>", True),
        ("", b"<html", True),
        ("", b"%PDF", False),
    ],
)
def test_what_is_a_page(mime: str, body: bytes, answer: bool) -> None:
    """HTML by its type, or by its start without a type."""
    assert is_page(mime, body) is answer


@pytest.mark.parametrize("body", [b"", b"\0\0", b"<", b"\xff\xfe<\0a\0", b"<a href=x" + b"<" * 10_000, b"<a>" * 5000])
def test_no_page_is_too_odd(body: bytes) -> None:
    """Reading never fails, whatever the bytes."""
    read_page("http://a.org/", {}, body)


def test_a_redirect_keeps_the_scheme() -> None:
    """If only the host is given; with any number of slashes."""
    for location in ("//b.org/x", "///b.org/x"):
        assert redirect_of("https://a.org/", 302, {"Location": location}) == "https://b.org/x"
    assert redirect_of("https://a.org/", 200, {"Location": "/x"}) == ""


def test_a_body_that_cannot_be_unpacked(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """It is unchanged: an unknown encoding, no body at all, a missing package, with one warning."""
    for name in ("brotli", "backports.zstd", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    pages._cannot_unpack.cache_clear()
    for encoding in ("br", "br", "zstd"):
        assert decompress(b"body", {"content-encoding": encoding}) == b"body"
    assert [message.split(" need")[0] for message in caplog.messages] == [
        "Bodies with Content-Encoding br",
        "Bodies with Content-Encoding zstd",
    ]
    for encoding in ("br", "zstd", "unknown", "identity", "", "gzip"):
        assert decompress(b"body", {"content-encoding": encoding}) == b"body"
    assert decompress(b"", {"Content-Encoding": "gzip"}) == b""
    assert decompress(gzip.compress(b"body"), {"Content-Encoding": "GZIP"}) == b"body"


def _packed(encoding: str, body: bytes) -> bytes:
    if encoding == "br":
        return bytes(pytest.importorskip("brotli").compress(body))
    if encoding == "zstd":
        name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
        return bytes(pytest.importorskip(name).compress(body))
    raw = zlib.compressobj(wbits=-15)
    packed = {"gzip": gzip.compress(body), "deflate": zlib.compress(body), "raw": raw.compress(body) + raw.flush()}
    return packed[encoding]


@pytest.mark.few(1)
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw", "br", "zstd"])
def test_bodies_are_unpacked_as_scrapy_does(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the packages that Scrapy installs; a body that was cut off gives what it has, and none gives without end."""
    body = random.Random(0).randbytes(300_000)
    packed, headers = _packed(encoding, body), {"Content-Encoding": "deflate" if encoding == "raw" else encoding}
    assert decompress(packed, headers) == body
    cut = decompress(packed[: len(packed) * 2 // 3], headers)
    assert body.startswith(cut)
    assert len(cut) > 100_000
    monkeypatch.setattr(pages, "LARGEST", 1_000_000)
    assert len(decompress(_packed(encoding, bytes(50_000_000)), headers)) < 2_000_000


def test_a_body_of_several_parts() -> None:
    """Whatever was compressed in parts is put together, and several encodings are undone one after the other."""
    twice = gzip.compress(gzip.compress(b"one") + gzip.compress(b" two"))
    assert decompress(twice, {"Content-Encoding": "gzip, GZIP"}) == b"one two"


def test_data_in_links_is_not_remembered() -> None:
    """A page may have megabytes of data in its links: these are no links, and no memory is kept for them."""
    pages._spell.cache_clear()
    html = "".join(f"<a href='data:,{number}{'x' * 10_000}'>x</a>" for number in range(20)) + "<a href=y>y</a>"
    assert [link.url for link in read_page("http://a.org/", HTML, html.encode()).links] == ["http://a.org/y"]
    assert pages._spell.cache_info().currsize == 1
