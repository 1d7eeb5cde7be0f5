"""The bookshop and the quotes on a server: with covers, sitemaps, an API, logins, servers that fail."""

from __future__ import annotations

import gzip
import itertools
import json
import struct
import zlib
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from mocksite import MockSite
from shops import Books, Quotes

if TYPE_CHECKING:
    from mocksite import Answer, Seen

BOOKS = Books()
QUOTES = Quotes()
PAGES = BOOKS.pages() | QUOTES.pages()
MINE = 4  # pages that only who is logged in may see


class ShopSite(MockSite):
    """Answers like :class:`MockSite`, and below ``/books/`` and ``/quotes/``.

    ============================== ==================================================================================
    ``/books/media/N.png``         the cover of a book
    ``/quotes/api?page=N``         JSON, for a list that grows while one scrolls; by POST with ``{"page": N}``
    ``/quotes/login``              a form with a token that holds in one session; POST: 302, or the form again
    ``/quotes/mine/N``             who is logged in, and a link to page N + 1; 403 without a login
    ``/robots.txt``                forbids ``/forbidden``, and names ``/sitemap.xml``, an index with a gzipped sitemap
    ``/weary/N``                   503 the first two times, and then a page
    ``/captcha/N``                 200 with a page to wait on the first time, and then the page
    ============================== ==================================================================================
    """

    def __init__(self) -> None:
        super().__init__(pages=PAGES)
        self._sessions: dict[str, str | None] = {}  # who is logged in
        self._numbers = itertools.count(1)

    def respond(self, seen: Seen) -> Answer:
        """Return the answer to a request."""
        parts = urlsplit(seen.path)
        match parts.path.strip("/").split("/"):
            case ["books", "media", name]:
                return 200, {"Content-Type": "image/png"}, cover(int(name.partition(".")[0]))
            case ["quotes", "api"]:
                asked = json.loads(seen.body) if seen.method == "POST" else {"page": parse_qs(parts.query)["page"][0]}
                return _json(api_page(int(asked["page"])))
            case ["quotes", "login"]:
                return self._login(seen)
            case ["quotes", "mine", number]:
                return self._mine(seen, int(number))
            case ["robots.txt"]:
                text = f"User-agent: *\nDisallow: /forbidden\nSitemap: {self.url('/sitemap.xml')}\n"
                return 200, {"Content-Type": "text/plain"}, text.encode()
            case ["sitemap.xml"]:
                return 200, {"Content-Type": "application/xml"}, self._index()
            case ["sitemap-books.xml.gz"]:
                paths = [path for path in PAGES if path.startswith("/books/book-")]
                return 200, {"Content-Type": "application/gzip"}, gzip.compress(self._urls(paths), mtime=0)
            case ["sitemap-quotes.xml"]:
                paths = [path for path in PAGES if path.startswith("/quotes/author")]
                return 200, {"Content-Type": "application/xml"}, self._urls(paths)
            case ["weary" | "captcha" as kind, number]:
                times = sum(each.path == seen.path for each in self.log)
                return _trouble(kind, int(number), times)
        return self.answer(seen.path)

    def wait_for(self, requests: int) -> None:
        """Wait until so many requests arrived, or the site stops."""
        while len(self.log) < requests and not self.stopped.wait(0.01):
            pass

    def _login(self, seen: Seen) -> Answer:
        session = _session(seen)
        if session not in self._sessions:
            session = f"s{next(self._numbers)}"
            self._sessions[session] = None
        sent = {name: values[0] for name, values in parse_qs(seen.body.decode()).items()}
        cookie = {"Set-Cookie": f"session={session}; Path=/"}
        if seen.method == "POST" and sent.get("token") == _token(session) and sent.get("username"):
            self._sessions[session] = sent["username"]
            return 302, {"Location": "/quotes/mine/1", **cookie}, b""
        form = (
            '<form action="/quotes/login" method="post">'
            f'<input type="hidden" name="token" value="{_token(session)}"><input name="username" value="">'
            '<input type="password" name="password"><input type="submit" value="Login"></form>'
        )
        return 200, {"Content-Type": "text/html", **cookie}, f"<html><body>{form}</body></html>".encode()

    def _mine(self, seen: Seen, number: int) -> Answer:
        user = self._sessions.get(_session(seen))
        if user is None:
            return 403, {"Content-Type": "text/html"}, b"<html><body>who are you?</body></html>"
        on = f'<a class="next" href="/quotes/mine/{number + 1}">more</a>' if number < MINE else ""
        body = f'<html><body><a href="/quotes/logout">Logout</a><b>{user}</b><i>{number}</i>{on}</body></html>'
        return 200, {"Content-Type": "text/html"}, body.encode()

    def _index(self) -> bytes:
        names = ("/sitemap-books.xml.gz", "/sitemap-quotes.xml", "/sitemap-gone.xml")
        rows = "".join(f"<sitemap><loc>{self.url(name)}</loc></sitemap>" for name in names)
        return f'<?xml version="1.0"?><sitemapindex xmlns="{SITEMAPS}">{rows}</sitemapindex>'.encode()

    def _urls(self, paths: list[str]) -> bytes:
        rows = "".join(
            f"<url><loc>{self.url(path)}</loc><lastmod>2024-01-0{1 + i % 9}</lastmod></url>"
            for i, path in enumerate(paths)
        )
        return f'<?xml version="1.0"?><urlset xmlns="{SITEMAPS}">{rows}</urlset>'.encode()


SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"


def cover(book: int) -> bytes:
    """Return a PNG of two by two grey points, another one for each book."""
    rows = b"".join(bytes([0, book % 256, (book * 3) % 256]) for _ in range(2))
    head = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def api_page(number: int) -> dict[str, object]:
    """Return the API's data for a page."""
    start = (number - 1) * QUOTES.listed
    numbers = range(start, min(start + QUOTES.listed, QUOTES.quotes))
    said = [{"text": QUOTES.text(n), "author": QUOTES.author(n), "tags": QUOTES.tags(n)} for n in numbers]
    return {"page": number, "has_next": numbers.stop < QUOTES.quotes, "quotes": said}


def _session(seen: Seen) -> str:
    cookie = SimpleCookie(seen.headers.get("cookie", "")).get("session")
    return "" if cookie is None else cookie.value


def _token(session: str) -> str:
    return f"{zlib.crc32(session.encode()):08x}"


def _json(value: object) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def _trouble(kind: str, number: int, times: int) -> Answer:
    if kind == "weary" and times <= 2:
        return 503, {"Content-Type": "text/html"}, b"<html><body>later</body></html>"
    if kind == "captcha" and times == 1:
        return 200, {"Content-Type": "text/html"}, b'<html><body><h1 id="captcha">wait</h1></body></html>'
    return 200, {"Content-Type": "text/html"}, f"<html><body><h1>{kind} {number}</h1></body></html>".encode()
