"""A web server on a loopback address whose pages misbehave as asked, and which remembers every request."""

from __future__ import annotations

import math
import socket
import struct
import threading
import time
from http import HTTPStatus
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Answer = tuple[int, dict[str, str], bytes]  # status, headers, body
ROBOTS = "User-agent: *\nDisallow: /forbidden\n"


class Seen(NamedTuple):
    """One request, as it arrived."""

    method: str
    path: str  # with the query
    body: bytes
    headers: dict[str, str]  # names in lower case
    at: float  # time.monotonic()

    def __repr__(self) -> str:
        return f"{self.method} {self.path}"


class MockSite:
    """Answers on one address; the first part of a path selects the kind of answer.

    ========================= =======================================================================================
    ``/ok``, ``/ok?x``        a page without links
    ``/page/K/N``             page K of a tree of N pages: two links further down, one to the root, one to itself
    ``/status?code=C``        that status, with a page
    ``/redirect?to=U``        302 to U
    ``/refresh?to=U``         a page with a meta refresh to U
    ``/hang``                 nothing, until the server stops
    ``/reset``                the connection is reset
    ``/truncated``            half of the body that was announced
    ``/badgzip``              a body that is not gzip, announced as such
    ``/file?type=T&size=N``   N bytes of type T; ``hide=1``: without Content-Length
    ``/cookie``               sets the cookie ``visited=yes``
    ``/robots.txt``           forbids ``/forbidden``
    ========================= =======================================================================================

    Parameters
    ----------
    pages
        HTML for further paths, which take precedence over the above.
    answers (attribute)
        Functions that answer a path, given its number of requests, from 1; ``None``: answer as usual.
    latency
        Seconds to wait before each answer, except robots.txt.
    """

    def __init__(self, host: str = "127.0.0.1", *, pages: Mapping[str, str] | None = None, latency: float = 0) -> None:
        self.host = host
        self.pages = dict(pages or {})
        self.answers: dict[str, Callable[[int], Answer | None]] = {}
        self.latency = latency
        self.log: list[Seen] = []
        self.connected: set[tuple[str, int]] = set()  # addresses of clients
        self.most_open = 0  # requests that were being answered at once, at most
        self._open = 0
        self._lock = threading.Lock()
        self._most = math.inf  # requests that it answers
        self._held: set[int] = set()  # positions in the log of requests held back for now
        self._answers_more = threading.Condition(self._lock)
        self.stopped = threading.Event()
        self._server = (_Server6 if ":" in host else _Server)((host, 0), _Handler)
        self._server.site = self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> MockSite:
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.go_on()
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str) -> str:
        """Return the address of a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{path}"

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Method and path of every request so far."""
        return [(seen.method, seen.path) for seen in self.log]

    @property
    def paths(self) -> list[str]:
        """Paths of the GET requests so far, robots.txt apart."""
        return [seen.path for seen in self.log if seen.method == "GET" and seen.path != "/robots.txt"]

    def answer(self, path: str) -> Answer:
        """Return the answer to a path that does not break the connection."""
        parts = urlsplit(path)
        query = dict(parse_qsl(parts.query))
        kind = parts.path.split("/")[1]
        if path in self.answers:
            found = self.answers[path](sum(seen.path == path for seen in self.log))
            if found is not None:
                return found[0], dict(found[1]), found[2]
        if path in self.pages:
            return _html(self.pages[path])
        if kind in _ANSWERS:
            return _ANSWERS[kind](query)
        if kind == "page":
            return _html(tree_page(*map(int, parts.path.split("/")[2:4])))
        return _html(f"no {path}", 404)

    def respond(self, seen: Seen) -> Answer:
        """Return the answer to a request that does not break the connection, by its path."""
        return self.answer(seen.path)

    def begin(self, seen: Seen) -> None:
        """Note a request, and wait."""
        with self._lock:
            self.log.append(seen)
            self._open += 1
            self.most_open = max(self.most_open, self._open)
            place = len(self.log)
            if place > self._most:
                self._held.add(place)
                self._answers_more.notify_all()
                self._answers_more.wait_for(lambda: place <= self._most)
                self._held.discard(place)
        if self.latency and seen.path != "/robots.txt":
            time.sleep(self.latency)

    def hold(self, most: float) -> None:
        """Answer no more than so many requests in all, until this is called again."""
        with self._lock:
            self._most = most
            self._answers_more.notify_all()

    def go_on(self) -> None:
        """Answer all requests."""
        self.hold(math.inf)

    @property
    def holds(self) -> bool:
        """Whether there are requests held back for now."""
        with self._lock:
            return self._is_holding()

    def wait_until_it_holds(self, seconds: float) -> bool:
        """Wait, at most so long, until a request is held back; return whether one is."""
        with self._lock:
            return self._answers_more.wait_for(self._is_holding, seconds)

    def _is_holding(self) -> bool:
        return any(place > self._most for place in self._held)

    def end(self) -> None:
        """Note that the last byte of an answer is about to go."""
        with self._lock:
            self._open -= 1

    def sent(self, path: str) -> None:
        """Note that all of an answer was given to the operating system."""

    def rest(self) -> None:
        """Wait until all requests of a finished or killed crawl have arrived, and nobody is connected any more."""
        with socket.create_connection((self.host, self.port)) as last:  # connections are accepted in their order
            me = last.getsockname()
            while me not in self.connected:
                time.sleep(0.005)
        while self.connected:
            time.sleep(0.005)


def tree_page(k: int, n: int) -> str:
    """Return the HTML of page ``k`` of a tree of ``n`` pages."""
    below = "".join(f'<li><a href="/page/{j}/{n}">{j}</a>' for j in (2 * k + 1, 2 * k + 2) if j < n)
    return f'<nav><a href="/page/0/{n}">top</a></nav><ul>{below}</ul><p><a href="/page/{k}/{n}">this</a>'


def tree_paths(n: int) -> list[str]:
    """Return the paths of all pages of a tree."""
    return [f"/page/{k}/{n}" for k in range(n)]


def _html(body: str, status: int = 200) -> Answer:
    text = body if "<html" in body else f"<html><head><title>mock</title></head><body>{body}</body></html>"
    return status, {"Content-Type": "text/html; charset=utf-8"}, text.encode()


def _file(query: dict[str, str]) -> Answer:
    headers = {"Content-Type": query.get("type", "application/pdf")}
    if "hide" in query:
        headers["Content-Length"] = ""
    return 200, headers, bytes(int(query.get("size", "1000")))


_ANSWERS: dict[str, Callable[[dict[str, str]], Answer]] = {
    "ok": lambda query: _html(f"ok {query}"),
    "status": lambda query: _html("as asked", int(query["code"])),
    "redirect": lambda query: (302, {"Location": query["to"]}, b""),
    "refresh": lambda query: _html(f'<html><meta http-equiv="refresh" content="0;url={query["to"]}"></html>'),
    "badgzip": lambda query: (200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, b"\x1f\x8bnot gzip"),
    "file": _file,
    "cookie": lambda query: (200, {"Content-Type": "text/html", "Set-Cookie": "visited=yes; Path=/"}, b"<html></html>"),
    "forbidden": lambda query: _html("nobody comes here"),
    "robots.txt": lambda query: (200, {"Content-Type": "text/plain"}, ROBOTS.encode()),
}


class _Server(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    site: MockSite

    def process_request(self, request: Any, client_address: Any) -> None:
        self.site.connected.add(client_address)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.site.connected.discard(client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients may leave at any time."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(StreamRequestHandler):
    disable_nagle_algorithm = True
    server: _Server

    def handle(self) -> None:
        while not self.server.site.stopped.is_set() and self._one():
            pass

    def _one(self) -> bool:
        line = self.rfile.readline().decode("latin-1").split()
        if len(line) != 3:
            return False
        headers: dict[str, str] = {}
        while (header := self.rfile.readline().decode("latin-1").strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        body = self.rfile.read(int(headers.get("content-length", "0")))
        site = self.server.site
        seen = Seen(line[0], line[1], body, headers, time.monotonic())
        site.begin(seen)
        return self._answer(site, seen)

    def _answer(self, site: MockSite, seen: Seen) -> bool:
        method, path = seen.method, seen.path
        kind = path.partition("?")[0]
        if kind == "/hang":
            site.stopped.wait()
        if kind in ("/hang", "/reset"):
            site.end()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        status, headers, body = site.respond(seen._replace(path="/ok") if kind == "/truncated" else seen)
        if status == HTTPStatus.NO_CONTENT:
            body = b""
        length = headers.pop("Content-Length", str(len(body)))
        if kind == "/truncated":
            body = body[: len(body) // 2]
            headers["Connection"] = "close"
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head += f"Content-Length: {length}\r\n" if length else "Connection: close\r\n"
        site.end()
        self.connection.sendall(f"{head}\r\n".encode("latin-1") + (b"" if method == "HEAD" else body))
        site.sent(path)
        return bool(length) and headers.get("Connection") != "close"
