"""A site whose pages do their worst to a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from typing import TYPE_CHECKING

from mocksite import MockSite, _Handler

if TYPE_CHECKING:
    from mocksite import Answer, Seen

ANNOUNCED = 2 << 30  # bytes of an endless body
MOST = 512 << 20  # bytes of it that are sent at most, if nobody disconnects
_PIECE = 256 << 10
_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
ADD = """<script>
const list = document.querySelector("ul");
const add = (path) => list.insertAdjacentHTML("beforeend", `<li><a href="${path}">${path}</a></li>`);
const get = async (path) => (await fetch(path)).json();
const on = (id, action) => document.getElementById(id).onclick = action;
const save = (url, name) => Object.assign(document.createElement("a"), {href: url, download: name}).click();
SCRIPT
</script>"""


def page(script: str, body: str = "<ul></ul>") -> str:
    """Return a page with a body and a script."""
    return f"<html><body>{body}{ADD.replace('SCRIPT', script)}</body></html>"


def as_json(data: object) -> Answer:
    """Return an answer in JSON."""
    return 200, {"Content-Type": "application/json"}, json.dumps(data).encode()


def is_from_browser(seen: Seen) -> bool:
    """Whether a browser sent a request: the crawl's own requests have the same User-Agent, but differ in this."""
    return "sec-fetch-mode" in seen.headers


class BadSite(MockSite):
    """Has pages for browsers (``for_browsers``), endless bodies, and web sockets.

    ``/endless?type=T`` announces 2 GB, and sends 512 MiB at most; with ``&name=F`` as a file. ``streamed`` has the
    bytes sent of each. ``/socket`` is a web socket that sends a message, and stays open.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__(host)
        self.for_browsers: dict[str, str] = {}
        self.streamed: dict[str, int] = {}
        self._server.RequestHandlerClass = _BadHandler

    def respond(self, seen: Seen) -> Answer:
        """Return what browsers get."""
        if seen.path in self.for_browsers and is_from_browser(seen):
            return 200, {"Content-Type": "text/html; charset=utf-8"}, self.for_browsers[seen.path].encode()
        return super().respond(seen)


class _BadHandler(_Handler):
    def _answer(self, site: MockSite, seen: Seen) -> bool:
        kind, _, query = seen.path.partition("?")
        if kind == "/endless" and isinstance(site, BadSite):
            return self._stream(site, seen.path, dict(each.split("=") for each in query.split("&")))
        if kind == "/socket":
            return self._socket(site, seen)
        return super()._answer(site, seen)

    def _stream(self, site: BadSite, path: str, query: dict[str, str]) -> bool:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {query['type']}\r\n"
        if query.get("hide"):
            head += "Connection: close\r\n"
        else:
            head += f"Content-Length: {ANNOUNCED}\r\n"
        if "name" in query:
            head += f"Content-Disposition: attachment; filename={query['name']}\r\n"
        site.end()
        self.connection.sendall(f"{head}\r\n".encode())
        if query["type"] == "text/html":
            self.connection.sendall(b"<html><body>")
        for _ in range(MOST // _PIECE):
            self.connection.sendall(b" " * _PIECE)
            site.streamed[path] = site.streamed.get(path, 0) + _PIECE
        return False

    def _socket(self, site: MockSite, seen: Seen) -> bool:
        digest = hashlib.sha1((seen.headers["sec-websocket-key"] + _MAGIC).encode()).digest()
        site.end()
        said = json.dumps(["/ok?socket"]).encode()
        self.connection.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: "
            + base64.b64encode(digest)
            + b"\r\n\r\n"
            + struct.pack("BB", 0x81, len(said))
            + said
        )
        while self.connection.recv(4096):
            pass
        return False
