"""The server: real sockets on 127.0.0.1, one connection for many requests, clients that leave."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, closing
from http.client import HTTPConnection, HTTPException
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeAlias

import pytest

from scrapy_focus.lab.sites.portal.portal import Page, StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer, main
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Connect: TypeAlias = Callable[[SiteServer], HTTPConnection]


class Tiny:
    """A site with one page, one failure, and one large file."""

    def fetch(self, path: str) -> Page:
        if path == "/broken":
            raise KeyError(path)
        if path == "/large":
            return Page(status=200, mime="video/mp4", size=20_000_000, make=lambda: bytes(20_000_000))
        return Page.of(path.encode(), mime="text/plain")


class Echo(Tiny):
    """A site that is asked with all of a request, and says it again."""

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Page:
        if path == "/broken":
            raise KeyError(path)
        if path == "/no":
            return Page.of(b"", status=405, headers={"Allow": "GET"})
        return Page.of(f"{method} {path} {headers.get('x-key')} ".encode() + body, mime="text/plain")


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer(Tiny()) as running:
        yield running


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Yield a function that opens connections, which are closed after the test."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(closing(HTTPConnection("127.0.0.1", port_of(server), timeout=HANG)))


def port_of(server: SiteServer) -> int:
    return int(server.url.rstrip("/").rpartition(":")[2])


def ask_again(client: HTTPConnection) -> None:
    client.request("GET", "/2")
    client.getresponse()


def raw(server: SiteServer, request: bytes) -> bytes:
    """Return everything that the server sends until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=HANG) as client:
        client.sendall(request)
        return b"".join(iter(lambda: client.recv(65_536), b""))


def test_serves_the_portal_to_the_byte(connect: Connect) -> None:
    """Status, headers and body of an answer are those of the page, for pages, files, redirects and errors."""
    site = StatisticsPortal(pages=200, seed=0)
    redirect = next(path for path in map("/download/{}".format, range(100_000)) if site.fetch(path).status == 302)
    with SiteServer(site) as server:
        client = connect(server)
        for path in ("/", "/news?page=1", "/nothing", "/index.html", redirect, *list(site.targets())[:20]):
            client.request("GET", path)
            answer = client.getresponse()
            page = site.fetch(path)
            assert answer.read() == page.body
            assert (answer.status, answer.headers["Content-Type"]) == (page.status, page.mime)
            assert (answer.headers["Content-Length"], answer.headers["Location"]) == (str(page.size), page.location)


def test_urllib_follows_redirects() -> None:
    """An ordinary client ends at the page that a redirect leads to."""
    with (
        SiteServer(StatisticsPortal(pages=200)) as server,
        urllib.request.urlopen(server.url + "index.html") as answer,
    ):
        assert answer.url == server.url
        assert [request.status for request in server.log] == [301, 200]


def test_head_has_the_headers_of_get(server: SiteServer, connect: Connect) -> None:
    """HEAD is answered with the headers of GET and no body, and the connection stays usable."""
    client = connect(server)
    client.request("HEAD", "/page")
    head = client.getresponse()
    assert head.read() == b""
    client.request("GET", "/page")
    get = client.getresponse()
    assert get.read() == b"/page"
    assert head.getheaders() == get.getheaders()
    assert [request.bytes_sent for request in server.log] == [0, 5]


def test_head_does_not_make_the_body(connect: Connect) -> None:
    """The body of a page is not made to answer HEAD."""

    def make() -> bytes:
        raise AssertionError("made")

    class Lazy:
        def fetch(self, path: str) -> Page:
            return Page(status=200, mime="text/csv", size=12_345, make=make)

    with SiteServer(Lazy()) as server:
        client = connect(server)
        client.request("HEAD", "/")
        assert client.getresponse().headers["Content-Length"] == "12345"


def test_one_connection_for_many_requests(server: SiteServer, connect: Connect) -> None:
    """Connections are kept open: a hundred requests use the same socket."""
    client = connect(server)
    client.connect()
    port = client.sock.getsockname()[1]
    for k in range(100):
        client.request("GET", f"/{k}")
        assert client.getresponse().read() == f"/{k}".encode()
        assert client.sock is not None
        assert client.sock.getsockname()[1] == port


def test_pipelined_requests_are_answered_in_order(server: SiteServer) -> None:
    """Requests sent at once are answered one after the other, and `Connection: close` ends the connection."""
    sent = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    answer = raw(server, sent)
    assert re.findall(rb"\r\n\r\n(/.)", answer) == [b"/a", b"/b"]
    assert answer.count(b"HTTP/1.1 200 OK") == 2


def test_http_1_0_closes(server: SiteServer) -> None:
    """A client that speaks HTTP/1.0 gets its answer and the end of the connection."""
    assert raw(server, b"GET /old HTTP/1.0\r\n\r\n").endswith(b"Connection: close\r\n\r\n/old")


def test_proxy_form(server: SiteServer) -> None:
    """A request with a whole URL, as sent to proxies, is one for its path."""
    raw(server, b"GET http://any.example/path?q=1 HTTP/1.0\r\n\r\n")
    assert [request[:4] for request in server.log] == [("GET", "/path?q=1", 200, 9)]


def test_other_methods_are_refused(server: SiteServer) -> None:
    """Anything but GET and HEAD is answered with 405 and the methods allowed."""
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(server.url + "form", data=b"user=me")
    assert (error.value.code, error.value.headers["Allow"]) == (405, "GET, HEAD")
    error.value.close()
    assert [(request.method, request.path, request.status) for request in server.log] == [("POST", "/form", 405)]


def test_sites_that_are_asked_take_posts_and_headers(connect: Connect) -> None:
    """Such a site gets method, headers and body of each request; the connection is kept, and HEAD has no body."""
    with SiteServer(Echo()) as server:
        client = connect(server)
        client.connect()
        port = client.sock.getsockname()[1]
        said = []
        for method, path, body in (
            ("POST", "/a?b=1", b"x=1"),
            ("GET", "/c", None),
            ("POST", "/d", None),
            ("HEAD", "/e", None),
        ):
            client.request(method, path, body=body, headers={"X-Key": "k"})
            said.append(client.getresponse().read())
        client.request("GET", "/f", body=b"of a GET")
        said.append(client.getresponse().read())
        assert said == [b"POST /a?b=1 k x=1", b"GET /c k ", b"POST /d k ", b"", b"GET /f None of a GET"]
        assert client.sock is not None
        assert client.sock.getsockname()[1] == port
        client.request("POST", "/no")
        answer = client.getresponse()
        assert (answer.read(), answer.headers.get_all("Allow")) == (b"", ["GET"])
        client.request("PUT", "/f")
        assert client.getresponse().status == 405
    assert [request.method for request in server.log] == ["POST", "GET", "POST", "HEAD", "GET", "POST", "PUT"]
    assert server.log[0][:4] == ("POST", "/a?b=1", 200, 17)


def test_failures_of_a_site_that_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    """They are answered with 500, as others are."""
    with SiteServer(Echo()) as server:
        assert raw(server, b"POST /broken HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 500 ")
    assert "The site failed on /broken" in caplog.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Content-Length: 2000000", 413),
        (b"Content-Length: " + b"9" * 5000, 413),
        (b"Content-Length: -1", 411),
        (b"Content-Length: few", 411),
        (b"Transfer-Encoding: chunked", 411),
    ],
    ids=["large", "huge", "negative", "word", "chunked"],
)
def test_bodies_that_cannot_be_read_are_refused(headers: bytes, status: int) -> None:
    """What is too long, or of unknown length, is refused; the server answers the next."""
    with SiteServer(Echo()) as server:
        assert raw(server, b"POST / HTTP/1.1\r\n" + headers + b"\r\n\r\n").startswith(f"HTTP/1.1 {status} ".encode())
        with socket.create_connection(("127.0.0.1", port_of(server))) as client:
            client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab")  # and leaves
        assert raw(server, b"POST /a HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi").endswith(b"POST /a None hi")


def test_refused_clients_may_finish(server: SiteServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is refused while it sends can send the rest, and then reads why."""
    monkeypatch.setattr("scrapy_focus.lab.sites.server._PATIENCE", HANG)
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=HANG) as client:
        client.sendall(b"POST /form HTTP/1.1\r\nContent-Length: 40000\r\n\r\n")
        for _ in range(4):
            time.sleep(0.05)
            client.sendall(bytes(10_000))
        assert client.recv(1_000).startswith(b"HTTP/1.1 405 Method Not Allowed\r\n")


@pytest.mark.parametrize(
    "request_bytes",
    [b"nonsense\r\n\r\n", b"GET / SPDY/3\r\n\r\n", b"GET /" + b"a" * 70_000, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200],
    ids=["words", "version", "long", "headers"],
)
def test_nonsense_is_a_bad_request(server: SiteServer, request_bytes: bytes) -> None:
    """An invalid request is answered with 400, and the server continues."""
    assert raw(server, request_bytes).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert urllib.request.urlopen(server.url + "next").read() == b"/next"


def test_log_has_every_request_of_every_thread(server: SiteServer, connect: Connect) -> None:
    """Requests of many connections are all logged, those of one connection in their order."""

    def fetch(name: int) -> None:
        client = connect(server)
        for k in range(50):
            client.request("GET", f"/{name}/{k}")
            client.getresponse().read()

    threads = [threading.Thread(target=fetch, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.requests == 400
    for name in range(8):
        mine = [request.path for request in server.log if request.path.startswith(f"/{name}/")]
        assert mine == [f"/{name}/{k}" for k in range(50)]


def test_clients_may_leave(
    server: SiteServer, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Clients that close before, during or after a request stop nothing and cause no output."""
    for sent in (b"", b"GET /lar", b"GET /large HTTP/1.1\r\n\r\n", b"GET /large HTTP/1.1\r\nHost: h"):
        client = socket.create_connection(("127.0.0.1", port_of(server)))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close with a reset
        client.sendall(sent)
        if sent.endswith(b"\r\n\r\n"):
            client.recv(1_000)
        client.close()
    assert urllib.request.urlopen(server.url + "alive").read() == b"/alive"
    time.sleep(0.1)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_failures_of_the_site_are_logged(
    server: SiteServer, caplog: pytest.LogCaptureFixture, connect: Connect
) -> None:
    """An exception of the site becomes an answer of status 500 and one line in the log with the path."""
    client = connect(server)
    with caplog.at_level(logging.ERROR, "scrapy_focus.lab.sites.server"):
        client.request("GET", "/broken")
        assert client.getresponse().status == 500
    assert [record.getMessage() for record in caplog.records] == ["The site failed on /broken"]
    assert [request[:4] for request in server.log] == [("GET", "/broken", 500, 26)]


def test_stop_ends_open_connections(connect: Connect) -> None:
    """After the block, nothing is answered, not even on a connection that was open before."""
    with SiteServer(Tiny()) as server:
        client = connect(server)
        client.request("GET", "/1")
        client.getresponse().read()
    with pytest.raises((HTTPException, OSError)):
        ask_again(client)
    assert server.requests == 1


def test_latency_delays_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer waits for the latency, and eight wait at once."""
    together, slept = threading.Barrier(8), []

    def sleep(seconds: float) -> None:
        together.wait(HANG)  # for all others
        slept.append(seconds)

    with SiteServer(Tiny(), latency=1.5) as server:

        def fetch() -> None:
            urllib.request.urlopen(server.url).close()

        monkeypatch.setattr(
            "scrapy_focus.lab.sites.server.time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic)
        )
        threads = [threading.Thread(target=fetch) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG)
        assert slept == [1.5] * 8
        assert server.requests == 8


def test_messages_of_errors() -> None:
    """Wrong arguments and wrong times are refused with the given value and what to do."""
    with pytest.raises(ValueError, match=r"but latency=-1 was given; use 0 for none"):
        SiteServer(Tiny(), latency=-1)
    with pytest.raises(RuntimeError, match=r"not running; write `with SiteServer\(site\) as server:`"):
        _ = SiteServer(Tiny()).url
    with SiteServer(Tiny()) as server:
        with pytest.raises(RuntimeError, match="running already, at http://127"):
            server.start()
        port = port_of(server)
        with pytest.raises(OSError, match=rf"cannot listen on 127.0.0.1 port {port} .*; use port 0"):
            SiteServer(Tiny(), port=port).start()


def test_wrong_options_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    """The command refuses a wrong size with the message of the portal."""
    with pytest.raises(SystemExit):
        main(["--pages", "5"])
    assert "200 to 1,000,000 pages" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="needs Ctrl-C as a POSIX signal")
def test_command_serves_until_interrupted() -> None:
    """The command prints the address and the size first, serves, and ends quietly on Ctrl-C."""
    command = [sys.executable, "-m", "scrapy_focus.lab.sites.server", "--pages", "300", "--seed", "7", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+/) (\d+) pages (\d+) targets\n", process.stdout.readline())
        assert found is not None
        site = StatisticsPortal(pages=300, seed=7)
        assert urllib.request.urlopen(found[1]).read() == site.fetch("/").body
        assert (int(found[2]), int(found[3])) == (site.n_pages, site.n_targets)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=HANG) == ("", "")
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
