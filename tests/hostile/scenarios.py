"""Attacks of a site on a crawl: each scenario is a host with something good and something hostile.

The good part is the same everywhere: five pages on bees, each with a data file, one click from the root, after links to
the hostile part. A scenario is a function that answers all other paths; its description is in the table ``SCENARIOS``.
"""

from __future__ import annotations

import gzip
import itertools
import re
import struct
import zlib
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from faultserver import RESET, response

if TYPE_CHECKING:
    from collections.abc import Callable

    from faultserver import Answer, Asked

ALL = ("datasets", "topic", "stock")
GOOD = range(1, 6)
FORGED = "2026-01-02 03:04:05 [root] ERROR: forged by the site"
INSIDE = ("127.0.0.1", "localhost", "169.254.169.254", "10.0.0.1", "192.168.1.1", "[::1]", "0.0.0.0", "2130706433")
OUTSIDE = "elsewhere.test"
_GIB = 1 << 30


@dataclass(frozen=True)
class Scenario:
    """One host, and how to crawl it.

    ``links`` is HTML that comes on the root before the good part, ``head`` in its head. ``settings`` of Scrapy make the
    fault fit into the time of the test; ``limits`` are those that a stock project needs so that the bounds hold.
    """

    name: str
    what: str
    answer: Callable[[Asked], Answer]
    links: str = '<a href="/x/1.html">more</a>'
    head: str = ""
    robots: Callable[[Asked], Answer] | None = None
    spiders: tuple[str, ...] = ALL
    budget: int = 60
    settings: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    once: bool = False  # all spiders meet the same there, and one is enough in little time
    root_headers: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"{self.name.replace('_', '-')}.test"

    @property
    def root(self) -> str:
        return f"http://{self.host}/"

    def __call__(self, asked: Asked) -> Answer:
        path = asked.path
        if path == "/robots.txt":
            return [response(status="404 Not Found")] if self.robots is None else self.robots(asked)
        if path == "/":
            good = "".join(f'<li><a href="/good/{n}.html">bees and honey {n}</a></li>' for n in GOOD)
            body = f"<main><div class=more>{self.links}</div><ul class=good>{good}</ul></main>"
            return [page(body, head=self.head, headers=self.root_headers)]
        if path.startswith("/good/"):
            return [good_page(path)]
        return self.answer(asked)


def page(body: str, *, head: str = "", headers: dict[str, str] | None = None, **more: Any) -> bytes:
    """Return the response with a page."""
    return response(
        f"<!doctype html><html><head><title>Some page</title>{head}</head><body>{body}", headers=headers, **more
    )


def good_page(path: str) -> bytes:
    """Return a page on bees, or its data file."""
    number = path.removeprefix("/good/").partition(".")[0]
    if path.endswith(".csv"):
        return response(f"hive,honey\n{number},{number}\n", mime="text/csv")
    text = "Bees make honey. A hive has a queen. Honey of the bees is sweet. " * 3
    link = f'<a href="/good/{number}.csv">honey of hive {number}</a>'
    return response(f"<html><head><title>Bees {number}</title></head><body><article class=good>{text}{link}</article>")


def links_to(hrefs: list[str]) -> str:
    """Return a list of links, as HTML."""
    return "".join(f'<p><a href="{href}">link {n}</a></p>' for n, href in enumerate(hrefs))


def numbered(n: int, suffix: str = "html") -> str:
    """Return links to ``/x/0.html`` and so on."""
    return links_to([f"/x/{number}.{suffix}" for number in range(n)])


def number_of(asked: Asked) -> int:
    """Return the number of a path of :func:`numbered`, 0 for another path."""
    found = re.match(r"/x/(\d{1,9})", asked.path)
    return int(found[1]) if found else 0


def number_from(text: str) -> int:
    """Return a number that follows from a text, and seems not to."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def raw(head: str, body: bytes | str = b"") -> bytes:
    """Return bytes with line ends as HTTP has them."""
    content = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    return head.replace("\n", "\r\n").encode("latin-1") + content


# Connections


def resets(asked: Asked) -> Answer:
    """End the connection at once, within the status line, within the headers, within the body."""
    whole = page("bees " * 10_000)
    return [(b"", b"HTTP/1", whole[:60], whole[:-9_000])[number_of(asked) % 4], 0.01, RESET]


def closes(asked: Asked) -> Answer:
    """Close the connection at the same points, as if all were well."""
    whole = page("bees " * 10_000)
    return [(b"", b"HTTP/1", whole[:60], whole[:-9_000])[number_of(asked) % 4]]


def slow_head(asked: Asked) -> Answer:
    """Send the headers byte by byte."""
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Slow: "
    while True:
        yield b"z"
        yield 0.2


def slow_body(asked: Asked) -> Answer:
    """Send a body byte by byte."""
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n"
    while True:
        yield b"z"
        yield 0.2


def silent(asked: Asked) -> Answer:
    """Accept the request and send nothing."""
    while True:
        yield 0.5


def endless_body(asked: Asked) -> Answer:
    """Send a page, or a file, without end."""
    kind = "text/csv" if asked.path.endswith("csv") else "text/html"
    yield f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode()
    while True:
        yield b"<p>bees and no end, " * 5_000


def endless_chunks(asked: Asked) -> Answer:
    """Send chunks without end."""
    kind = "text/csv" if asked.path.endswith("csv") else "text/html"
    yield f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    while True:
        yield b"10000\r\n" + b"<b>z" * 0x4000 + b"\r\n"


def endless_head(asked: Asked) -> Answer:
    """Send headers without end."""
    yield b"HTTP/1.1 200 OK\r\n"
    for n in itertools.count():
        yield b"".join(b"X-%d-%d: v\r\n" % (n, i) for i in range(1000))
        yield 0.05


_LENGTHS = (
    "10",
    "-5",
    "many",
    "99999999999999999999",
    "+900",
    "0x10",
    "",
    "1e3",
    "900, 900",
    "900\r\nContent-Length: 5",
)


def lengths(asked: Asked) -> Answer:
    """Say a wrong Content-Length."""
    value = _LENGTHS[number_of(asked) % len(_LENGTHS)]
    return [raw(f"HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: {value}\n\n", "<p>bees " * 100)]


_CHUNKS = (
    b"zz\r\nhello\r\n0\r\n\r\n", b"5\r\nhello", b"-5\r\nhello\r\n0\r\n\r\n", b"FFFFFFFFFFFFFFFF\r\nhello",
    b"5;" + b"x=" * 50_000 + b"\r\nhello\r\n0\r\n\r\n", b"5\r\nhelloworld\r\n0\r\n\r\n", b"0\r\n" + b"T: x\r\n" * 20_000,
    b"\r\n\r\n", b"5\nhello\n0\n\n", b"F" * 100_000,
)  # fmt: skip


def chunks(asked: Asked) -> Answer:
    """Break the chunks of a body."""
    head = raw("HTTP/1.1 200 OK\nContent-Type: text/html\nTransfer-Encoding: chunked\n\n")
    return [head + _CHUNKS[number_of(asked) % len(_CHUNKS)]]


_STATUSES = (
    "HTTP/9.9 200 fine\n\n", "HTTP/1.1 999 \n\n", "HTTP/1.1 0 none\n\n", "HTTP/1.1 -1 none\n\n", "banana\n\n", "\n\n", "ICY 200 OK\n\n",
    "HTTP/1.1 100 Continue\n\n" * 1000, "HTTP/1.1 204 No Content\nContent-Length: 50\n\n", "HTTP/1.1 304 Not Modified\n\n",
    "HTTP/1.1 200 " + "O" * 100_000 + "\n\n", "HTTP/1.1 206 Partial\nContent-Range: bytes 5-1/*\n\n", "HTTP/1.1 401 \nWWW-Authenticate: Basic\n\n",
    "HTTP/1.1 101 Switching\nUpgrade: evil\n\n", "HTTP/1.1 200 \x1b]0;PWNED\x07\nX: y\n\n", "HTTP/1.1 407 \nProxy-Authenticate: Basic\n\n",
)  # fmt: skip


def statuses(asked: Asked) -> Answer:
    """Send an invalid status."""
    return [raw(_STATUSES[number_of(asked) % len(_STATUSES)], "<p>bees " * 10)]


def two_answers(asked: Asked) -> Answer:
    """Send a second response after the first."""
    return [page("one") + page("two <a href=/x/smuggled.html>smuggled</a>") + b"\0" * 1000]


# What is compressed


@cache
def bomb(coding: str, size: int = _GIB) -> bytes:
    """Return what inflates to so many zero bytes; gzip and deflate without a checksum at their end."""
    if coding == "zstd":  # blocks of one byte repeated
        block = (1 << 17 << 3 | 2).to_bytes(3, "little") + b"\0"
        return bytes.fromhex("28b52ffd0058") + block * (size >> 17) + b"\x01\0\0"
    if coding == "br":
        import brotli

        return brotli.compress(bytes(size), quality=1)
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = squeezer.compress(bytes(1 << 20)) + squeezer.flush(zlib.Z_FULL_FLUSH)
    header = b"\x1f\x8b\x08" + bytes(6) + b"\xff" if coding == "gzip" else b"\x78\xda"
    body = header + first * (size >> 20) + b"\x03\x00"
    return body + struct.pack("<II", 0, size & 0xFFFFFFFF) if coding == "gzip" else body


def bombs(coding: str) -> Callable[[Asked], Answer]:
    """Return a site of bombs that are pages and files."""

    def answer(asked: Asked) -> Answer:
        mime = ("text/html", "text/csv")[number_of(asked) % 2]
        size = _GIB >> 2 if coding == "br" else _GIB
        return [response(bomb(coding, size), mime=mime, headers={"Content-Encoding": coding})]

    return answer


@cache
def _layers() -> bytes:
    return gzip.compress(gzip.compress(bomb("gzip")))


def layered_bombs(asked: Asked) -> Answer:
    """Send a bomb that was compressed three times."""
    mime = ("text/html", "text/csv")[number_of(asked) % 2]
    return [response(_layers(), mime=mime, headers={"Content-Encoding": "gzip, gzip, gzip"})]


def codings(asked: Asked) -> Answer:
    """Name a Content-Encoding that does not fit the body."""
    body = gzip.compress(b"<p>bees and honey" * 1000)
    said = [
        ("gzip", b"no gzip at all"), ("gzip", body[:-100]), ("gzip", body[:10] + b"\xff" * 500), ("br", b"\xff" * 100), ("zstd", b"nothing"),
        ("deflate", b"\x78\x9c" + b"\xff" * 99), ("banana", body), (", ".join(["gzip"] * 5000), body), ("gzip\x1b]0;PWNED\x07", body), ("identity, gzip", body),
        ("GZIP", body), ("gzip", b""), ("gzip", body + b"trailing" * 1000), ("gzip", body * 20),
    ]  # fmt: skip
    coding, content = said[number_of(asked) % len(said)]
    return [response(content, headers={"Content-Encoding": coding})]


# Charsets and types

_CHARSETS = (
    "utf-7", "utf-16", "utf-32", "unicode_escape", "raw_unicode_escape", "idna", "punycode", "undefined", "zlib", "rot13", "base64", "hex",
    "bz2", "uu", "quopri", "mbcs", "oem", "x" * 100_000, "utf-8\x1b[31m", "\\..\\..\\etc", "latin-1; charset=utf-16", "", "'", '"utf-8', "utf-8\0",
    "encodings.idna", "../../x", "unicode_internal", "utf_8_sig", "big5", "iso-2022-kr", "hz", "cp1252", "shift_jis",
)  # fmt: skip
_ESCAPES = "\\ud800\\udfff \\x1b]0;PWNED\\x07 \\N{BELL} +2AA-"
_ODD_BYTES = b"\xff\xfe\xed\xa0\x80 \x80\x81\x9b31m \xc0\xaf \x00 \xf4\x90\x80\x80"


def charsets(asked: Asked) -> Answer:
    """Name a charset in the header, or on the page, that is none or does not fit."""
    number = number_of(asked)
    charset = _CHARSETS[number % len(_CHARSETS)]
    link = '<a href="/x/1000.html?a=\\ud800b">\\ud83d</a>'
    body = f"<title>{_ESCAPES}</title><p class='{_ESCAPES}'>{link}".encode() + _ODD_BYTES
    if number % 2:
        return [response(f'<meta charset="{charset}">'.encode("latin-1", "replace") + body, mime="text/html")]
    return [response(body, mime=f"text/html; charset={charset}")]


_TYPES = (
    None, "", "/", "text", "text/html;" * 5000, "text/" + "x" * 100_000, "text/csv\x1b]0;PWNED\x07", "TEXT/HTML", "text/csv\x9b31mred", "*/*",
    "multipart/x-mixed-replace; boundary=z", "application/xhtml+xml", "text/xml", "text/csv, text/html", "text/csv\x85" + FORGED, "text/\u00a0csv",
    "image/svg+xml", "text/html\0", "application/json", "a/b/c", "message/http", "text/css", "text/csv;charset=idna", "application/pdf",
)  # fmt: skip


def types(asked: Asked) -> Answer:
    """Send an invalid MIME type."""
    number = number_of(asked)
    return [response(f"a,b\n{number},<a href='/x/{number + 24}.csv'>x", mime=_TYPES[number % len(_TYPES)])]


def entities(asked: Asked) -> Answer:
    """Define entities that grow, and that refer to files of the machine."""
    lines = ["<!DOCTYPE html [<!ENTITY a0 'bees'><!ENTITY f SYSTEM 'file:///etc/hostname'>"]
    lines += [f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12)]
    body = "\n".join([*lines, "]><html><body>&a11; &f; <a href='/x/&f;.html'>&a11;</a></body></html>"])
    mime = ("text/html", "application/xhtml+xml", "text/xml", "application/rss+xml")[number_of(asked) % 4]
    return [response(f"<?xml version='1.0'?>{body}", mime=mime)]


# Headers


def header_flood(asked: Asked) -> Answer:
    """Send 50,000 headers."""
    return [
        raw(
            "HTTP/1.1 200 OK\n" + "".join(f"X-{n}: {n}\n" for n in range(50_000)) + "Content-Type: text/html\n\n",
            "<p>bees",
        )
    ]


def huge_header(asked: Asked) -> Answer:
    """Send one header of 20 MB."""
    return [b"HTTP/1.1 200 OK\r\nX-Long: ", *[b"y" * (1 << 20)] * 20, b"\r\nContent-Type: text/html\r\n\r\n<p>bees"]


def folded_header(asked: Asked) -> Answer:
    """Fold one header over 200,000 lines."""
    return [b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Folded: y\r\n" + b" y\r\n" * 200_000 + b"\r\n<p>bees"]


def cookies(asked: Asked) -> Answer:
    """Set 2,000 cookies, and some that are none."""
    many = [f"c{number_of(asked)}-{n}={'v' * 100}; path=/; domain=.test" for n in range(2_000)]
    odd = [
        "=",
        ";",
        "a" * 8000,
        "x=\x1b]0;PWNED\x07",
        "a=b; expires=never; max-age=-1e9",
        "a=b; domain=com",
        "a=b; path=" + "/p" * 3000,
        "\x01=\x02",
    ]
    lines = "".join(f"Set-Cookie: {each}\n" for each in [*many, *odd])
    return [raw(f"HTTP/1.1 200 OK\nContent-Type: text/html\n{lines}\n", numbered(3))]


# Redirects

_AWAY = (
    "file:///etc/passwd", "data:text/html,<a href=x>", "javascript:alert(1)", "ftp://127.0.0.1/x", f"http://{OUTSIDE}/x", f"//{OUTSIDE}/x",
    *(f"http://{host}/latest/meta-data/" for host in INSIDE), "http://user:secret@127.0.0.1/x", "http://0x7f.1/", "http://[::ffff:127.0.0.1]/",
    "/x\0y", "\\\\127.0.0.1\\x", "/" + "y" * 15_000, "", " ", "/x/\xff\xfe", "http://", "http:///x", "http://[::1", "http://a:99999/", "http://a:b/",
    "?" * 5000, "#", "//", "///127.0.0.1/x", "http:/\\127.0.0.1/x", "mailto:a@b.c", "about:blank", "/x y\tz", "http://\u2460.test/".encode().decode("latin-1"),
    "gopher://127.0.0.1:25/x", "http://127.0.0.1:1/", "http://xn--a.test/", "http://" + "a" * 300 + ".test/", "http://a..test/", "view-source:/x",
)  # fmt: skip


def redirects(asked: Asked) -> Answer:
    """Redirect to forbidden targets, or to invalid URLs."""
    if not re.match(r"/x/\d+\.html$", asked.path):
        return [page("moved here")]
    location = _AWAY[number_of(asked) % len(_AWAY)]
    status = ("301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent", "300 Choices")[len(location) % 6]
    return [raw(f"HTTP/1.1 {status}\nContent-Length: 0\nContent-Type: text/html\nLocation: {location}\n\n")]


def refreshes(asked: Asked) -> Answer:
    """The same by meta refresh and by a Refresh header."""
    location = _AWAY[number_of(asked) % len(_AWAY)]
    quoted = location.replace('"', "&quot;")
    headers = {"Refresh": f"0; url={location}".replace("\n", " ")} if len(location) % 2 else {}
    return [page("moved", head=f'<meta http-equiv="refresh" content="0; url={quoted}">', headers=headers)]


def loops(asked: Asked) -> Answer:
    """Redirect to itself, in pairs, and on and on with a query that grows."""
    number = number_of(asked)
    where = (
        asked.path,
        f"/x/{number ^ 1}.html",
        f"{asked.path}{'&' if '?' in asked.path else '?'}a=1",
        f"/x/{number + 3}.html",
    )[number % 4]
    return [response(status="302 Found", headers={"Location": where})]


# Sites without end


def calendar(asked: Asked) -> Answer:
    """Link each day to the day before and the day after, and to its month and year."""
    day = int(asked.path.rpartition("=")[2] or 0) if "day=" in asked.path else 0
    near = [f"/calendar?view={view}&day={day + step}" for view in ("day", "month", "year") for step in (1, -1, 30, -30)]
    return [page(f"<table class=calendar>{links_to(near)}</table>")]


def sessions(asked: Asked) -> Answer:
    """Put another session id into each link of each page."""
    spelled = quote(asked.path, safe="")[-20:]
    hrefs = [f"/shop/{n}.html;jsessionid={number_from(f'{asked.path}{n}'):08x}?sid={spelled}{n}" for n in range(20)]
    return [page(f"<div class=shop>{links_to(hrefs)}</div>")]


def splash(asked: Asked) -> Answer:
    """Answer every URL with the same page, with new links each time."""
    base = asked.path.partition("?")[0].rstrip("/")
    return [page("<div class=splash>Welcome" + links_to([f"{base[-60:]}/welcome/{n}" for n in range(10)]) + "</div>")]


def sorted_copies(asked: Asked) -> Answer:
    """Give one list in every order, filter, length and page."""
    keys = ("sort", "dir", "per", "page", "view", "filter")
    query = asked.path.partition("?")[2]
    hrefs = [f"/list?{query and query + '&'}{key}={n}" for key in keys for n in range(4)] if len(query) < 1500 else []
    return [page("<table class=list>" + links_to(hrefs) + "</table>")]


def copies(asked: Asked) -> Answer:
    """Give the same page, with links to 5,000 URLs of the same file."""
    if asked.path.endswith("csv"):
        return [response("same,file\n1,2\n", mime="text/csv")]
    return [page("<div class=copies>" + links_to([f"/x/{n}.csv" for n in range(5_000)]) + "</div>")]


def segments(asked: Asked) -> Answer:
    """Give every URL a page with relative links, so that paths repeat and grow."""
    return [
        page(
            "<div class=relative>" + links_to(["a/b/c/", "img/more/", "../a/b/", "index.php/x/", "x/../a/"]) + "</div>"
        )
    ]


def deeper(asked: Asked) -> Answer:
    """Link each page to a deeper one, with different words."""
    return [page(links_to([f"{asked.path[-500:]}/{n}{number_from(asked.path) % 9973}" for n in range(5)]))]


def subdomains(asked: Asked) -> Answer:
    """Link to ever more names below this one."""
    host = f"{asked.host}"[-150:]
    return [page(links_to([f"http://a{n}-{number_from(asked.host) % 997}.{host.lstrip('.')}/x" for n in range(20)]))]


# Pages


def many_of(make: Callable[[int], str]) -> Callable[[Asked], Answer]:
    """Return a site that answers with pages made of the number in their path."""
    made = lru_cache(maxsize=4)(make)
    return lambda asked: [page(made(number_of(asked)))]


def squeezed(make: Callable[[], str]) -> Callable[[Asked], Answer]:
    """Return a site that answers with one page, compressed."""
    body = cache(lambda: gzip.compress(make().encode(), 6))
    return lambda asked: [response(body(), headers={"Content-Encoding": "gzip"})]


def unclosed(number: int) -> str:
    """Rows that are never closed, as real sites have them."""
    return "".join(
        f'<div class="row item result"><a href="/x/{(number * 31 + n) % 3000}.html">item {n}</a>' for n in range(1_000)
    )


def nested(class_: int, depth: int = 2_000) -> Callable[[], str]:
    """Return a function that nests elements, each with a long class, and some links in the last."""
    return lambda: f'<div class="{"a" * class_}">' * depth + numbered(50)


def big_names(number: int) -> str:
    """One element with a name, a class and an id of a megabyte each."""
    long = "b" * 1_000_000
    if number % 3 == 0:
        return f'<{long}><a href="/x/1.html">x</a></{long}>'
    return f'<div class="{long}" id="{long}"><a href="/x/{number + 1}.html" title="{long}">x</a></div>'


def attributes(number: int) -> str:
    """An element with 3,000 attributes, and one with 100,000 classes. (libxml2 is quadratic in the attributes.)"""
    return (
        f"<p {' '.join(f'a{n}=1' for n in range(3_000))}><div class='{' '.join(f'c{n}' for n in range(100_000))}'>"
        f"<a href=/x/{number + 1}.html>x</a></div>"
    )


def comments(number: int) -> str:
    """Comments, doctypes and processing instructions without number, few of them closed."""
    return "<!---->" * 50_000 + "<!-- <!--" * 20_000 + "<?xml " * 20_000 + numbered(20)


def comments_in_nests(number: int) -> str:
    """Links within links, and within the last of them comments that everybody walks over who reads one's text."""
    return "".join(f'<div><a href="/x/{number + n}.html">' for n in range(60)) + "<!---->" * 20_000


def long_text(number: int) -> str:
    """Unique words in one line of 3 MB, and a link with an anchor of the same size."""
    words = " ".join(f"w{n:x}" for n in range(200_000))
    return f"<p>{words}</p><p>{'z' * 1_000_000}</p><a href='/x/{number + 1}.html'>{words}</a>"


def nuls(number: int) -> str:
    """NULs, lone surrogates and noncharacters everywhere."""
    odd = "\0\ufffe\uffff&#0;&#xD800;&#x1b;&#x9b;\u202e\u2028\ud800"
    return f"<p\0 class='{odd}'>{odd}" + "".join(
        f"<a hr\0ef='/x/{odd}{n}.html' href='/x/{n}.html?{odd}'>{odd}{n}</a>" for n in range(20)
    )


_HREFS = (
    "javascript:alert(1)", "mailto:a@b", "tel:1", "data:text/html,x", "http://", "http:///", "http://[", "http://[::1", "http://a:b/", "http://:80/",
    "//", "///", "////x", "\\\\x\\y", "?", "#", "&", "%", "%zz", "%00", "/x/%00.html", "/x/%0d%0aSet-Cookie:a=b", "/x/\x01\x02\x1b[31m", "/x/\u202e.html",
    "http://\u2460\u2461.test/", "http://\u212b.test/", "http://xn--zzzzzzz.test/", "http://" + "a." * 200 + "test/", "http://a:99999/", "http://a:-1/",
    "/x/a b\tc\nd", "/x/" + "y" * 3000, "/x/" + "../" * 2000, "/x/" + "%2e%2e/" * 500, "/x/;" * 500, "/x/?" + "a=b&" * 2000, "/x/" + "%C3" * 900,
    "http://user:pass@127.0.0.1/", "http://127.0.0.1:22/", "http://169.254.169.254/", "file:///etc/passwd", "ftp://127.0.0.1/", "HTTP://HREFS.TEST/X/UP.HTML",
    "http:/x/1.html", "http:x/2.html", "/x/\u00fc\u00f6.html", "/x/\ud83d.html", "about:blank", "blob:x", "/x/{}|^`<>.html", "/x/'&quot;.html", "view-source:/x",
)  # fmt: skip


def hrefs(number: int) -> str:
    """Links that are no URLs, or odd ones."""
    return links_to([*(href.replace('"', "&quot;") for href in _HREFS), f"/x/{number + 1}.html"])


def huge_hrefs(number: int) -> str:
    """Links of a megabyte each."""
    return links_to(
        [f"/x/{n}.html?{'q' * 1_000_000}" for n in range(3)]
        + ["/x/" + "%C3%BC" * 100_000, "//" + "a" * 1_000_000, f"/x/{number + 1}.html"]
    )


_BASES = (
    "http://",
    "http://[",
    "javascript:x",
    "data:,",
    "//",
    "http://169.254.169.254/",
    f"http://{OUTSIDE}/",
    "http://a:b/",
    "?",
    "\\\\127.0.0.1\\",
    "file:///",
    "z" * 500_000,
)


def bases(number: int) -> str:
    """A ``<base>`` that leads elsewhere, or nowhere."""
    return (
        f'<base href="{_BASES[number % len(_BASES)]}"><base href="/second/">'
        + numbered(12)
        + links_to(["x.html", "../y.html"])
    )


_HOSTILE_NAMES = (
    f"q\n{FORGED}", "\x1b[31mRED\x1b]0;PWNED\x07", "[red]hi[/red]", "[/]", "\u202egnp.exe", "\x9b31mC1\x9c", "a\u2028b\u2029c", "\x7f\x08\x08\x08", "%s %d {0} {x}",
    "$(touch evil)`touch evil`", "'; drop table link; --", "<script>alert(1)</script>", "\r" + FORGED, "\x0b\x0c\x1c\x1d\x85" + FORGED, "\ufeff\u200b\u2066",
)  # fmt: skip


def names(number: int) -> str:
    """Classes, ids, titles and anchors that write to a terminal, or begin a line of a log."""
    rows = []
    for n, name in enumerate(_HOSTILE_NAMES):
        safe = name.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
        rows.append(
            f'<div class="{safe}"><ul id="{safe}"><li><a title="{safe}" href="/x/{number + n + 1}.html">{safe}</a> '
            f'<a href="/x/{(number * 15 + n) % 40}.csv">{safe}</a></li></ul></div>'
        )
    return "<title>" + "".join(_HOSTILE_NAMES).replace("<", "&lt;") + "</title>" + "".join(rows)


def hostile_names(asked: Asked) -> Answer:
    """Serve these pages, and files that their servers name alike."""
    number = number_of(asked)
    if asked.path.endswith("csv"):
        name = _HOSTILE_NAMES[number % len(_HOSTILE_NAMES)].replace("\n", " ").replace("\r", " ")
        return [
            response(
                f"n\n{number}\n", mime="text/csv", headers={"Content-Disposition": f'attachment; filename="{name}"'}
            )
        ]
    return [response(f"<html><body>{names(number)}")]


_FILES = (
    "../../evil-file", "/tmp/evil-file", "..\\..\\evil-file", "C:\\evil-file", ".", "..", "", "a" * 5000, "\0evil", "a\0.csv", "CON.csv", "-rf .csv", "~/evil-file",
    ".bashrc", "manifest.jsonl", "a/../../../../../../../../tmp/evil-file", "%2e%2e%2fevil-file", "\u202ecsv.exe", "\x1b]0;PWNED\x07.csv", "a\nb.csv", "*?.csv", "\u00fc" * 300,
    "$(touch evil-file)", "|touch evil-file", " ", "...", "a.csv/", "\ud83d.csv",
)  # fmt: skip
_ENCODED = (
    "idna''x.csv",
    "undefined''x.csv",
    "utf-8''%2e%2e%2f%2e%2e%2fevil-file",
    "utf-8''%00",
    "x''y",
    "''",
    "utf-16''%ff",
    "zlib''x",
    "utf-8'" * 1000,
    "UTF-8''%1b%5d0;PWNED%07",
)


def dispositions(asked: Asked) -> Answer:
    """Serve files with names that lead elsewhere."""
    number = number_of(asked)
    plain = [f'attachment; filename="{name}"' for name in _FILES]
    values = [
        *plain,
        *(f"attachment; filename*={name}" for name in _ENCODED),
        "attachment; filename",
        "a;" * 5000,
        "filename=x" * 500,
        "\x1b",
        "attachment; filename*0=a; filename*1=b",
    ]
    value = values[number % len(values)].replace("\n", " ")
    head = "HTTP/1.1 200 OK\nContent-Type: text/csv\nContent-Disposition: ".replace("\n", "\r\n")
    return [head.encode() + value.encode("utf-8", "surrogatepass") + f"\r\n\r\nfile,number\n{number},1\n".encode()]


def frames(number: int) -> str:
    """Frames within frames, and forms that would delete something."""
    form = '<form method=post action="/delete?all=1"><input name=a><button>go</button></form><form action="/logout">'
    return f'<iframe src="/x/{number}.html"></iframe><iframe src="/x/{number + 1}.html"></iframe><frame src="/x/{number + 2}.html">{form}'


# robots.txt and sitemaps


def robots(body: bytes | str, *, status: str = "200 OK", mime: str = "text/plain") -> Callable[[Asked], Answer]:
    """Return what answers with a robots.txt."""
    return lambda asked: [response(body, status=status, mime=mime)]


def robots_later(first: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    """Return what answers so at first, and from the second time on with rules that allow everything."""
    return lambda asked: (
        first(asked) if asked.count == 1 else [response("User-agent: *\nAllow: /\n", mime="text/plain")]
    )


@cache
def _big_robots() -> str:
    return "User-agent: *\n" + "".join(f"Disallow: /private/{n:08}/*/x$\n" for n in range(330_000))


_WILD = "User-agent: *\n" + "".join(f"Disallow: /{'*a' * 60}*{n}$\n" for n in range(3_000))
_SITEMAP = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def sitemaps(asked: Asked) -> Answer:
    """Serve sitemaps that name themselves, other hosts, bombs and invalid data."""
    name = asked.path.removeprefix("/maps/")
    index = _SITEMAP.replace("urlset", "sitemapindex")
    kinds = {
        "self.xml": index + f"<sitemap><loc>http://{asked.host}{asked.path}</loc></sitemap></sitemapindex>",
        "grow.xml": index + "".join(f"<sitemap><loc>http://{asked.host}/maps/{n}.xml</loc></sitemap>" for n in range(20)) + "</sitemapindex>",
        "away.xml": _SITEMAP + "".join(f"<url><loc>http://{host}/x</loc></url>" for host in (*INSIDE, OUTSIDE)) + "</urlset>",
        "cut.xml": _SITEMAP + "<url><loc>http://",
        "names.xml": _SITEMAP + "<url><loc>http://[::1\x1b]0;PWNED\x07</loc></url><url><loc>javascript:x</loc></url></urlset>",
        "good.xml": _SITEMAP + "".join(f"<url><loc>http://{asked.host}/good/{n}.html</loc></url>" for n in GOOD) + "</urlset>",
        "entity.xml": "<!DOCTYPE x [<!ENTITY a 'b'>" + "".join(f"<!ENTITY a{n} '{'&a;' * 9}'>" for n in range(99)) + f"]>{_SITEMAP}<url><loc>&a9;</loc></url></urlset>",
    }  # fmt: skip
    if name in kinds:
        return [response(kinds[name], mime="text/xml")]
    if name == "bomb.xml.gz":
        return [response(bomb("gzip"), mime="application/gzip")]
    return [response("<p>none", mime="text/xml")]


_SITEMAPS = (
    "self.xml",
    "grow.xml",
    "away.xml",
    "cut.xml",
    "names.xml",
    "entity.xml",
    "bomb.xml.gz",
    "missing.xml",
    "good.xml",
)

# Requests to return later

_LATER = (
    "1",
    "0",
    "-5",
    "soon",
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "1e9",
    "0x10",
    "1\x1b]0;PWNED\x07",
    "1" * 5000,
    "",
    "Fri, 99 Foo 2026 99:99:99",
    "1, 2",
    " 1 ",
)


def come_back(asked: Asked) -> Answer:
    """Answer 429 or 503 at first, with a Retry-After of any kind."""
    number = number_of(asked)
    if asked.count > 1:
        return [page("<p>thanks")]
    value = _LATER[number % len(_LATER)]
    return [response("later", status=("429 Too Many", "503 Busy")[number % 2], headers={"Retry-After": value})]


def long_wait(asked: Asked) -> Answer:
    """Ask for a million years."""
    return [response("later", status="503 Busy", headers={"Retry-After": "99999999999999"})]


def plain(asked: Asked) -> Answer:
    """Nothing hostile."""
    return [page(numbered(5))]


_SHORT = {"DOWNLOADER_MIDDLEWARES": '{"impatient.Impatient": 400}', "RETRY_TIMES": 0}
_ONCE = {"RETRY_TIMES": 0}
_WAITS = {"FOCUS_LONGEST_WAIT": 0.5}
_SMALL = {"DOWNLOAD_MAXSIZE": 10_000_000}
SCENARIOS = [
    Scenario("plain", "nothing hostile, to compare with", plain, numbered(5)),
    Scenario("resets", "connections reset before, in and after the headers", resets, numbered(8), settings=_ONCE, once=True),
    Scenario("closes", "connections closed at the same points", closes, numbered(8), settings=_ONCE, once=True),
    Scenario("slow_head", "headers byte by byte", slow_head, numbered(2), settings=_SHORT, once=True),
    Scenario("slow_body", "a body byte by byte", slow_body, numbered(2), settings=_SHORT, once=True),
    Scenario("silent", "no answer at all", silent, numbered(2), settings=_SHORT, once=True),
    Scenario("endless_body", "pages and files without end", endless_body, links_to(["/x/1.html", "/x/2.csv"]), settings=_ONCE, limits=_SMALL),
    Scenario("endless_chunks", "chunks without end", endless_chunks, links_to(["/x/1.html", "/x/2.csv"]), settings=_ONCE, limits=_SMALL, once=True),
    Scenario("endless_head", "headers without end, 300 kB a second", endless_head, numbered(2), settings=_SHORT, once=True),
    Scenario("lengths", "wrong, negative, huge and double Content-Length", lengths, numbered(len(_LENGTHS)), settings=_SHORT, once=True),
    Scenario("chunks", "broken chunks", chunks, numbered(len(_CHUNKS)), settings=_SHORT, once=True),
    Scenario("statuses", "status lines that are none", statuses, numbered(len(_STATUSES)), settings=_SHORT, once=True),
    Scenario("two_answers", "a second response behind the first", two_answers, numbered(3), once=True),
    Scenario("gzip_bombs", "1 MB of gzip that is 1 GiB, 4 times", bombs("gzip"), numbered(4), settings=_ONCE, limits=_SMALL, once=True),
    Scenario("deflate_bombs", "1 MB of deflate that is 1 GiB, 4 times", bombs("deflate"), numbered(4), settings=_ONCE, limits=_SMALL, once=True),
    Scenario("br_bombs", "brotli that is 256 MiB, 4 times", bombs("br"), numbered(4), settings=_ONCE, limits=_SMALL, once=True),
    Scenario("zstd_bombs", "32 kB of zstd that are 1 GiB, 4 times", bombs("zstd"), numbered(4), settings=_ONCE, limits=_SMALL, once=True),
    Scenario("layered_bombs", "1 GiB compressed three times, 4 times", layered_bombs, numbered(4), settings=_ONCE, limits=_SMALL, once=True),
    Scenario("codings", "a Content-Encoding that is not true", codings, numbered(14), settings=_ONCE, once=True),
    Scenario("charsets", "wrong and hostile charsets", charsets, numbered(2 * len(_CHARSETS)), budget=120, settings=_ONCE),
    Scenario("types", "wrong and hostile MIME types", types, numbered(len(_TYPES)), budget=80, settings=_ONCE, once=True),
    Scenario("entities", "entities that grow, and that stand for files", entities, numbered(8), once=True),
    Scenario("header_flood", "50,000 headers", header_flood, numbered(3), settings=_ONCE, once=True),
    Scenario("huge_header", "one header of 20 MB", huge_header, numbered(2), settings=_ONCE, once=True),
    Scenario("folded_header", "one header folded over 200,000 lines", folded_header, numbered(2), settings=_ONCE, once=True),
    Scenario("cookies", "2,000 cookies a page", cookies, numbered(3), budget=30, once=True),
    Scenario("redirects", "redirects to files, inside addresses and nonsense", redirects, numbered(len(_AWAY)), budget=150, settings={**_ONCE, **_WAITS}),
    Scenario("refreshes", "the same by meta refresh and Refresh", refreshes, numbered(len(_AWAY)), budget=150, settings={**_ONCE, **_WAITS}, once=True),
    Scenario("redirect_loops", "redirects in circles and without end", loops, numbered(8), budget=150, settings=_ONCE, once=True),
    Scenario("calendar", "a calendar without end", calendar, links_to(["/calendar?day=1"]), budget=150, once=True),
    Scenario("sessions", "another session id in each link", sessions, links_to(["/shop/0.html"]), budget=150, once=True),
    Scenario("splash", "one page under every URL", splash, links_to(["/welcome/1"]), budget=150),
    Scenario("sorted_copies", "one list in every order", sorted_copies, links_to(["/list?sort=1"]), budget=150, once=True),
    Scenario("copies", "the same file under 5,000 URLs", copies, budget=150),
    Scenario("segments", "paths that repeat and grow", segments, links_to(["/x/a/"]), budget=150, once=True),
    Scenario("deeper", "paths that only get longer", deeper, links_to(["/x/a"]), budget=150, once=True),
    Scenario("subdomains", "ever more names below this one", subdomains, links_to(["http://a.subdomains.test/x"]), budget=150, once=True),
    Scenario("deep", "100,000 elements within each other", many_of(lambda n: "<div>" * 100_000 + numbered(20)), budget=25, once=True),
    Scenario("deep_class", "2,000 nested elements, a class of 1,000 characters each, 4 kB of gzip", squeezed(nested(1_000)), budget=25),
    Scenario("deep_class_long", "the same with 5,000 characters", squeezed(nested(5_000)), budget=15, limits={"CONCURRENT_REQUESTS_PER_DOMAIN": 2}, once=True),
    Scenario("unclosed", "1,000 rows a page that are never closed", many_of(unclosed), budget=30),
    Scenario("big_names", "names, classes and ids of a megabyte", many_of(big_names), numbered(3), budget=20, once=True),
    Scenario("attributes", "3,000 attributes and 100,000 classes of an element", many_of(attributes), budget=15, once=True),
    Scenario("comments", "100,000 comments, few of them closed", many_of(comments), budget=30, once=True),
    Scenario("comments_in_nests", "60 links within each other, and 20,000 comments", many_of(comments_in_nests), budget=20),
    Scenario("long_text", "3 MB of words that stand nowhere else", many_of(long_text), budget=15),
    Scenario("elements", "3 million elements, 10 kB of gzip", squeezed(lambda: "<p>" * 3_000_000), budget=15, limits={"DOWNLOAD_MAXSIZE": 2_000_000}),
    Scenario("many_links", "a page of 200,000 links", many_of(lambda n: numbered(200_000 if n == 1 else 3)), budget=40, limits={"DOWNLOAD_MAXSIZE": 2_000_000}, once=True),
    Scenario("nuls", "NULs, surrogates and noncharacters", many_of(nuls), budget=40, once=True),
    Scenario("hrefs", "links that are no URLs, or odd ones", many_of(hrefs), budget=80, settings={**_ONCE, **_WAITS}),
    Scenario("huge_hrefs", "links of a megabyte", many_of(huge_hrefs), budget=20, settings=_ONCE, limits={"DOWNLOAD_MAXSIZE": 2_000_000}),
    Scenario("bases", "a <base> that leads elsewhere or nowhere", many_of(bases), numbered(len(_BASES)), budget=60, once=True),
    Scenario("names", "names that write to terminals and logs", hostile_names, budget=150),
    Scenario("dispositions", "file names that lead elsewhere", dispositions, numbered(45, "csv"), budget=80, spiders=("datasets",)),
    Scenario("frames", "frames within frames, and forms", many_of(frames), budget=60, once=True),
    Scenario("robots_html", "robots.txt is a page", plain, robots=robots("<html>" + "<p>Disallow: /\n" * 999, mime="text/html"), spiders=ALL[:2], once=True),
    Scenario("robots_wild", "robots.txt with 3,000 rules of 60 wildcards", plain, robots=robots(_WILD), spiders=ALL[:2], budget=25, once=True),
    Scenario("robots_500", "robots.txt answers 500 once", plain, robots=robots_later(robots("", status="500 Oops")), spiders=ALL[:2], settings=_WAITS),
    Scenario("robots_binary", "robots.txt is binary", plain, robots=robots(bytes(range(256)) * 999), spiders=ALL[:2], once=True),
    Scenario("robots_loop", "robots.txt redirects to itself", plain, robots=lambda a: [response(status="302 Found", headers={"Location": a.path})], spiders=ALL[:2], budget=100, once=True),
    Scenario("robots_silent", "robots.txt does not answer, once", plain, robots=robots_later(silent), spiders=ALL[:2], settings={**_SHORT, **_WAITS}, once=True),
    Scenario("robots_big", "robots.txt of 11 MB", plain, robots=lambda a: [response(_big_robots(), mime="text/plain")], spiders=ALL[:2], once=True),
    Scenario("robots_bomb", "robots.txt is 1 GiB in 1 MB", plain, robots=lambda a: [response(bomb("gzip"), mime="text/plain", headers={"Content-Encoding": "gzip"})], spiders=ALL[:2], once=True),
    Scenario("sitemaps", "sitemaps of themselves, bombs and nonsense", sitemaps, robots=lambda a: [response("".join(f"Sitemap: /maps/{name}\n" for name in _SITEMAPS), mime="text/plain")], spiders=("sitemaps",), settings=_ONCE, limits=_SMALL),
    Scenario("come_back", "429 and 503 with odd Retry-After", come_back, numbered(len(_LATER)), budget=100, settings=_WAITS, once=True),
    Scenario("long_wait", "503 that asks to wait for a million years", long_wait, numbered(3), budget=30, settings=_WAITS, once=True),
]  # fmt: skip
