"""Responses whose headers arrive at once and whose bodies are slow, like those of large files."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY = 0.3  # seconds


class Slow(BaseHTTPRequestHandler):
    """Sends headers, and some time later the body: a page that links to three others."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b"".join(b'<a href="/%d">a</a>' % number for number in range(3))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.flush()
        time.sleep(BODY)
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """Return the address of such a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_the_body_belongs_to_the_answer(url: str, addon: bool) -> None:
    """How many requests to a host with a delay may be out follows from whole answers, and not from their headers."""
    result = crawl(Follower, {"DOWNLOAD_DELAY": 0.02, "ROBOTSTXT_OBEY": False}, addon=addon, seeds=[url])
    assert result.stats["response_received_count"] == 4
    assert result.scheduler.slots.latency("127.0.0.1") >= BODY
