"""A site in a thread of the crawl's process; every request is in ``log``."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class Site:
    def __init__(self):
        self.log, self.now, self.most, self.lock = [], 0, 0, threading.Lock()
        self.flaky = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_HEAD(self):
                self.do_GET()

            def do_POST(self):
                self.do_GET()

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = urlsplit(self.path)
                q = {k: v[0] for k, v in parse_qs(parts.query).items()}
                with site.lock:
                    site.now += 1
                    site.most = max(site.most, site.now)
                    site.log.append((time.time(), self.command, self.path, self.headers.get("Host")))
                status, headers, text = 200, {"Content-Type": "text/html"}, ""
                p = parts.path
                if p == "/robots.txt":
                    status, text = 404, "no"
                elif p.startswith("/n/"):  # a tree: /n/0 links to /n/1../n/k
                    i, k, most = int(p[3:]), int(q.get("k", 3)), int(q.get("most", 40))
                    suffix = f"?{parts.query}" if parts.query else ""
                    text = (
                        "<html><body>"
                        + "".join(
                            f'<div class=c{j % 3}><a href="/n/{i * k + j + 1}{suffix}">page {i * k + j + 1}</a></div>'
                            for j in range(k)
                            if i * k + j + 1 < most
                        )
                        + "</body></html>"
                    )
                elif p.startswith("/redirect"):
                    status, headers["Location"] = int(q.get("code", 302)), q["to"]
                elif p.startswith("/status/"):
                    status, text = int(p.split("/")[2]), "status"
                elif p.startswith("/flaky/"):
                    with site.lock:
                        site.flaky[self.path] = site.flaky.get(self.path, 0) + 1
                        n = site.flaky[self.path]
                    status, text = (200, "ok") if n > int(q.get("fails", 1)) else (503, "busy")
                elif p.startswith("/echo"):
                    text = json.dumps(
                        {
                            "method": self.command,
                            "body": body.decode("latin-1"),
                            "headers": dict(self.headers.items()),
                        }
                    )
                    headers["Content-Type"] = "application/json"
                else:
                    text = f"<html><body>{self.path}</body></html>"
                if "slow" in q:
                    time.sleep(float(q["slow"]))
                data = text.encode()
                with site.lock:
                    site.now -= 1
                self.send_response(status)
                for k, v in headers.items():
                    self.send_header(k, v)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def paths(self):
        return [f"{m} {p}" if m != "GET" else p for _, m, p, _ in self.log if p != "/robots.txt"]
