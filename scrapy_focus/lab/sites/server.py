"""Serves a site over HTTP on this machine, and logs every request.

A crawler under test should meet real sockets, and a benchmark of a crawler should not measure its server: the
standard library's request parser takes longer than a page of the synthetic portal. The handler here reads what a GET
or a HEAD needs, answers with one write, and keeps connections open. Headers and bodies are kept only for sites that
read them.
"""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
from email.utils import formatdate
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from socketserver import StreamRequestHandler, TCPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from scrapy_focus.core.printable import printable_logger
from scrapy_focus.lab.sites.portal.portal import Page, StatisticsPortal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import TypeAlias

    _Ask: TypeAlias = "Callable[[str, str, Mapping[str, str], bytes], Page]"

logger = printable_logger(__name__)

_MAX_LINE, _MAX_HEADERS = 65_536, 200  # bytes, lines
_MAX_UNREAD, _PATIENCE = 1 << 20, 0.5  # bytes, seconds
_MAX_BODY = 1 << 20  # bytes that may be posted
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Site(Protocol):
    """Anything that answers paths; `fetch` is called from several threads at once."""

    def fetch(self, path: str) -> Page:
        """Return the answer to a request for `path`, which begins with a slash and may have a query."""
        ...


class AskedSite(Site, Protocol):
    """A site that reads more of a request than its path; it is called in place of `fetch`, and also takes POST."""

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Page:
        """Return the answer to a request.

        Parameters
        ----------
        method : str
            ``"GET"`` or ``"POST"``; a HEAD is asked for as a GET.
        path : str
            As for `Site.fetch`.
        headers : mapping of str to str
            As sent, by their names in lower case.
        body : bytes
            What was posted, 1 MiB at most.
        """
        ...


class Request(NamedTuple):
    """One answered request."""

    method: str
    path: str  # as asked for, with the query
    status: int
    bytes_sent: int  # of the body; 0 for HEAD
    at: float = 0.0  # when it arrived, in seconds of time.monotonic()

    @property
    def host(self) -> str:
        """The host that it names, "" without one."""
        return self.path.partition("://")[2].partition("/")[0]


class SiteServer:
    """Serves a site from a thread, as a context manager or between `start` and `stop`.

    GET and HEAD are answered (HTTP/1.1, persistent connections, always ``Content-Length``), and POST if the site is
    an :class:`AskedSite`; anything else with 405. An exception of the site is logged and answered with 500; the
    server continues.

    Parameters
    ----------
    site : Site
        What to serve.
    host : str
        Address to listen on.
    port : int
        0 for any free one.
    latency : float
        Seconds to wait before each answer; requests wait in parallel.
    validators : bool
        Whether to send ``ETag`` and ``Last-Modified`` if the site knows them, and to answer a conditional request for
        unchanged content with 304.

    Attributes
    ----------
    log : list of Request
        One entry per request, in the order of the answers; it is added before its answer is sent.

    Raises
    ------
    ValueError
        If `latency` is negative.
    """

    def __init__(
        self, site: Site, host: str = "127.0.0.1", port: int = 0, latency: float = 0.0, *, validators: bool = False
    ) -> None:
        if latency < 0:
            raise ValueError(
                f"latency is in seconds and not negative, but latency={latency!r} was given; use 0 for none"
            )
        self.site = site
        self.host = host
        self.port = port
        self.latency = latency
        self.validators = validators
        self.log: list[Request] = []
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        """The address of the root, with a slash at the end; RuntimeError if the server is not running."""
        if self._server is None:
            raise RuntimeError("this server is not running; write `with SiteServer(site) as server:` or call start()")
        return f"http://{self.host}:{self._server.server_address[1]}/"

    @property
    def requests(self) -> int:
        """Number of requests answered."""
        return len(self.log)

    def start(self) -> None:
        """Listen, and answer from now on; OSError with the address if it is taken."""
        if self._server is not None:
            raise RuntimeError(f"this server is running already, at {self.url}; stop it first or make another one")
        try:
            self._server = _Server((self.host, self.port), self)
        except OSError as error:
            message = f"cannot listen on {self.host} port {self.port} ({error.strerror}); use port 0 for any free one"
            raise OSError(error.errno, message) from error
        loop = {"poll_interval": 0.05}  # seconds that stop() may take
        threading.Thread(target=self._server.serve_forever, kwargs=loop, daemon=True).start()

    def stop(self) -> None:
        """Stop answering, even on open connections; the log is kept."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def serve_until_interrupted(self) -> None:
        """Return at Ctrl-C, when the server is stopped."""
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            self.stop()

    def asked(self, target: str) -> str:
        """Return the requested path, even if the request names a host, as for a proxy."""
        is_absolute = target.startswith(("http://", "https://"))
        if is_absolute:
            return "/" + target.partition("//")[2].partition("/")[2]
        return target

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class ProxyServer(SiteServer):
    """The same for many hosts: an HTTP proxy that passes whole URLs to its site, with nothing else behind it.

    No name has to be resolved: with ``http_proxy`` set to its address in the environment, a crawler finds all hosts
    there. The ``log`` has whole URLs.
    """

    def asked(self, target: str) -> str:
        """Return the requested URL, with the host."""
        return target

    @property
    def by_host(self) -> dict[str, list[Request]]:
        """The log of each host, by the time of arrival."""
        hosts: dict[str, list[Request]] = {}
        for request in sorted(self.log, key=lambda request: request.at):
            hosts.setdefault(request.host, []).append(request)
        return hosts


class _Server(ThreadingHTTPServer):
    request_queue_size = 256  # the default of 5 refuses a crawler that opens 64 connections at once

    def __init__(self, address: tuple[str, int], owner: SiteServer) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer looks its own name up, which may take seconds without a name server.
        TCPServer.server_bind(self)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.discard(request)

    def server_close(self) -> None:
        super().server_close()
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # clients may leave at any time
            logger.exception("Error while answering %s", client_address)


class _Handler(StreamRequestHandler):
    disable_nagle_algorithm = True
    server: _Server

    def handle(self) -> None:
        while self._answer_one():
            pass

    def _answer_one(self) -> bool:
        """Answer the next request of this connection; return whether there may be another."""
        line = self.rfile.readline(_MAX_LINE + 1)
        self._arrived = time.monotonic()
        if not line.strip():
            return line in (b"\r\n", b"\n")
        try:
            method, target, version = line.decode("latin-1").split()
        except ValueError:
            version = ""
        self._conditions: dict[bytes, bytes] = {}
        self._ask: _Ask | None = getattr(self.server.owner.site, "ask", None)
        self._headers: dict[str, str] = {}  # empty if nobody needs them
        keep_alive = None
        if version.startswith("HTTP/1.") and line.endswith(b"\n"):
            keep_alive = self._read_headers(version)
        if keep_alive is None:
            return self._refuse("-", line[:80].decode("latin-1").strip(), 400)
        target = self.server.owner.asked(target)
        if method not in ("GET", "HEAD") and (method != "POST" or self._ask is None):
            return self._refuse(method, target, 405)
        length = self._length()
        if length < 0:
            return self._refuse(method, target, 411)
        if length > _MAX_BODY:
            return self._refuse(method, target, 413)
        body = self.rfile.read(length)
        if len(body) < length:
            return False
        if self.server.owner.latency:
            time.sleep(self.server.owner.latency)
        return self._send(method, target, self._fetch(method, target, body), keep_alive=keep_alive)

    def _read_headers(self, version: str) -> bool | None:
        """Return whether the connection is to stay open, or None if the headers make no sense."""
        keep_alive = version == "HTTP/1.1"
        for _ in range(_MAX_HEADERS):
            line = self.rfile.readline(_MAX_LINE + 1)
            if line in (b"\r\n", b"\n", b""):
                return keep_alive
            if len(line) > _MAX_LINE:
                return None
            name, _, value = line.partition(b":")
            if self._ask is not None:
                self._headers[name.decode("latin-1").strip().lower()] = value.decode("latin-1").strip()
            keep_alive = self._read_header(name.lower(), value, keep_alive)
        return None

    def _read_header(self, name: bytes, value: bytes, keep_alive: bool) -> bool:
        """Record a conditional header; return whether the connection stays open after this header."""
        if name in (b"if-none-match", b"if-modified-since"):
            self._conditions[name] = value.strip()
        elif name == b"connection":
            value = value.lower()
            return b"close" not in value and (keep_alive or b"keep-alive" in value)
        elif name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0"):
            return keep_alive and self._ask is not None  # else the body stays unread
        return keep_alive

    def _length(self) -> int:
        """Return how many bytes of a body to read: none if no site needs them, -1 if unknown."""
        length = self._headers.get("content-length", "0")
        is_known = length.isascii() and length.isdigit() and "transfer-encoding" not in self._headers
        return min(int(length[:20]), _MAX_BODY + 1) if is_known else -1

    def _fetch(self, method: str, path: str, body: bytes) -> Page:
        try:
            if self._ask is not None:
                return self._ask("GET" if method == "HEAD" else method, path, self._headers, body)
            return self.server.owner.site.fetch(path)
        except Exception:
            logger.exception("The site failed on %s", path)
            return _error(500)

    def _refuse(self, method: str, path: str, status: int) -> bool:
        """Send an error and end the connection."""
        self._send(method, path, _error(status), keep_alive=False)
        # Closing a socket with unread input resets it, and the client may never see the answer.
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(_PATIENCE)
        unread = _MAX_UNREAD
        while unread > 0 and (data := self.connection.recv(_MAX_LINE)):
            unread -= len(data)
        return False

    def _send(self, method: str, path: str, page: Page, *, keep_alive: bool) -> bool:
        validators = _validators(page) if self.server.owner.validators else {}
        is_same = _is_same(self._conditions, validators)
        status = HTTPStatus.NOT_MODIFIED.value if is_same else page.status
        body = b"" if method == "HEAD" or is_same else page.body
        headers = {} if is_same else {"Content-Type": page.mime, "Content-Length": str(page.size)}
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in [*headers.items(), *validators.items(), *page.headers.items()]]
        if page.location is not None:
            lines.append(f"Location: {page.location}")
        if page.status == HTTPStatus.METHOD_NOT_ALLOWED and "Allow" not in page.headers:
            lines.append("Allow: GET, HEAD")
        lines.append(f"Connection: {'keep-alive' if keep_alive else 'close'}")
        head = "\r\n".join(lines) + "\r\n\r\n"
        self.server.owner.log.append(Request(method, path, status, len(body), self._arrived))
        self.connection.sendall(head.encode("latin-1") + body)
        return keep_alive


def _validators(page: Page) -> dict[str, str]:
    """Return the headers that let a client check whether a page has changed."""
    if page.status != HTTPStatus.OK:
        return {}
    tag = {"ETag": f'"{page.etag}"'} if page.etag else {}
    return tag | ({"Last-Modified": formatdate(page.modified, usegmt=True)} if page.modified else {})


def _is_same(conditions: Mapping[bytes, bytes], validators: Mapping[str, str]) -> bool:
    """Whether a client's copy is current: by its ETag if it names one, else by the time of the last change."""
    if not validators:
        return False
    if (tags := conditions.get(b"if-none-match")) is not None:
        return validators.get("ETag") in [tag.strip().removeprefix("W/") for tag in tags.decode("latin-1").split(",")]
    return conditions.get(b"if-modified-since", b"").decode("latin-1") == validators.get("Last-Modified")


def _error(status: int) -> Page:
    return Page.of(f"{status} {_REASONS[status]}\n".encode(), status=status, mime="text/plain")


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a synthetic portal until Ctrl-C; the first line printed is its address and its size."""
    parser = argparse.ArgumentParser(
        prog="python -m scrapy_focus.lab.sites.server", description="Serve a synthetic statistics portal."
    )
    parser.add_argument("--pages", type=int, default=2000, help="number of HTML pages, 200 to 1000000 (2000)")
    parser.add_argument("--seed", type=int, default=0, help="another seed is another portal (0)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port, 0 for any free one (8000)")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds to wait before each answer (0)")
    parser.add_argument("--months", type=int, default=0, help="the portal as it is so many months later (0)")
    parser.add_argument(
        "--validators", action="store_true", help="send ETag and Last-Modified, and 304 for unchanged content"
    )
    options = parser.parse_args(arguments)
    try:
        site = StatisticsPortal(pages=options.pages, seed=options.seed, months=options.months)
        server = SiteServer(site, options.host, options.port, options.latency, validators=options.validators)
        server.start()
    except (ValueError, OSError) as error:
        parser.error(str(error))
    try:
        print(f"{server.url} {site.n_pages} pages {site.n_targets} targets", flush=True)
        server.serve_until_interrupted()
    except KeyboardInterrupt:  # before it blocks
        server.stop()


if __name__ == "__main__":
    main()
