"""A site in a thread of the crawl's process, which notes every request."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


def tree_page(number, query, suffix):
    """Return a page of a tree: page i links to the pages i * k + 1 to i * k + k, as far as they exist."""
    branches, pages = int(query.get("k", 3)), int(query.get("most", 40))
    children = range(number * branches + 1, min(number * branches + branches + 1, pages))
    links = (
        f'<div class=c{place % 3}><a href="/n/{child}{suffix}">page {child}</a></div>'
        for place, child in enumerate(children)
    )
    return f"<html><body>{''.join(links)}</body></html>"


class Handler(BaseHTTPRequestHandler):
    """Answers a request; head and body are sent apart, some 40 ms between them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        """Print nothing."""

    def do_GET(self):
        """Note the request, wait if the query has ``slow``, and answer."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        with self.server.site.answering(self):
            status, headers, text = self.answer(body, query)
            time.sleep(float(query.get("slow", 0)))
        self.send_response(status)
        data = text.encode()
        for name, value in ({"Content-Type": "text/html"} | headers | {"Content-Length": str(len(data))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_HEAD = do_POST = do_PUT = do_GET

    def answer(self, body, query):
        """Return the status, headers and the text of a page."""
        parts = urlsplit(self.path)
        if parts.path == "/robots.txt":
            return 404, {}, "no"
        if parts.path.startswith("/n/"):
            return 200, {}, tree_page(int(parts.path[3:]), query, f"?{parts.query}" if parts.query else "")
        if parts.path.startswith("/redirect"):
            return int(query.get("code", 302)), {"Location": query["to"]}, ""
        if parts.path.startswith("/status/"):
            return int(parts.path.split("/")[2]), {}, "status"
        if parts.path.startswith("/flaky/"):
            is_up = self.server.site.times(self.path) > int(query.get("fails", 1))
            return (200, {}, "ok") if is_up else (503, {}, "busy")
        if parts.path.startswith("/echo"):
            said = {"method": self.command, "body": body.decode("latin-1"), "headers": dict(self.headers.items())}
            return 200, {"Content-Type": "application/json"}, json.dumps(said)
        return 200, {}, f"<html><body>{self.path}</body></html>"


class Site:
    """Has ``log``, each request as its time, method, path and host, and ``most``, how many were answered at once."""

    def __init__(self):
        self.log, self.now, self.most, self.lock = [], 0, 0, threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.site = self
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @contextmanager
    def answering(self, handler):
        """Note a request, and count it as one that is being answered."""
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.log.append((time.time(), handler.command, handler.path, handler.headers.get("Host")))
        yield
        with self.lock:
            self.now -= 1

    def times(self, path):
        """Return how often a path was asked for."""
        with self.lock:
            return sum(each == path for _, _, each, _ in self.log)

    def paths(self):
        """Return what was asked for, in this order: paths, after the method where it is not GET."""
        return [
            path if method == "GET" else f"{method} {path}" for _, method, path, _ in self.log if path != "/robots.txt"
        ]
