"""A small web site with one page of each odd kind, and the expected record of each."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from mocksite import MockSite

if TYPE_CHECKING:
    from mocksite import Answer

HTML = {"Content-Type": "text/html; charset=utf-8"}
PLAIN = "<html><body>" + '<p>the same words</p><a href="/from/gzip">on</a>' * 50 + "</body></html>"
LARGE = 10**9  # bytes that are announced and never sent
HUGE = 2 * 10**9  # more than DOWNLOAD_MAXSIZE

LINKS = """
    /redirect/new /redirect/seen /redirect/chain /redirect/off /redirect/loop /redirect/relative /redirect/latin /redirect/nowhere
    /status?code=404 /status?code=500 /empty /gzip /plain /refresh?to=/after/refresh /forbidden /picture /thumbnail
    /film /archive.zip /untyped /bytes /based /latin /reset /truncated /badgzip /broken /twice
    /query?b=2&amp;a=1 /query?a=1&amp;b=2 /ok#one /ok#two /ok?q=%C3%A9 /ok?q=é http://localhost:1/off mailto:a@b.c
    http://[broken javascript:void(0)
""".split()


class OddSite(MockSite):
    """Answers with everything that a recorder may meet. All of it is linked from ``/``."""

    def answer(self, path: str) -> Answer:
        """Return status, headers and body; what is not odd is answered as by any other mock site."""
        found = self._odd().get(path)
        if found is None:
            return super().answer(path)
        status, headers, body = found
        return status, dict(headers), body

    def _odd(self) -> dict[str, Answer]:
        links = "".join(f'<li><a href="{link}">{link}</a></li>' for link in LINKS)
        return {
            "/": _html(f"<ul>{links}</ul><iframe src='/framed'></iframe><area href='/mapped'>"),
            "/redirect/new": (301, {"Location": "/target"}, b""),
            "/redirect/seen": (302, {"Location": "/"}, b""),
            "/redirect/chain": (307, {"Location": "/redirect/chain/2"}, b""),
            "/redirect/chain/2": (308, {"Location": self.url("/chained")}, b""),
            "/redirect/off": (302, {"Location": "http://localhost:1/elsewhere"}, b""),
            "/redirect/loop": (302, {"Location": "/redirect/loop/2"}, b""),
            "/redirect/loop/2": (302, {"Location": "/redirect/loop"}, b""),
            "/redirect/relative": (303, {"Location": "../relative/é".encode().decode("latin-1")}, b""),
            "/redirect/latin": (302, {"Location": "/latin/é"}, b""),
            "/redirect/nowhere": (302, {}, b""),
            "/latin/%E9": _html("where a redirect leads that is not UTF-8"),
            "/target": _html('<a href="/after/target">on</a>'),
            "/chained": _html("the end of a chain"),
            "/relative/%C3%A9": _html("where a relative redirect leads"),
            "/after/target": _html("found behind a redirect"),
            "/after/refresh": _html("where a refresh leads"),
            "/empty": (200, HTML, b""),
            "/plain": _html(PLAIN),
            "/gzip": (200, {**HTML, "Content-Encoding": "gzip"}, gzip.compress(PLAIN.encode())),
            "/from/gzip": _html("found on a compressed page"),
            "/picture": (200, {"Content-Type": "image/png", "Content-Length": str(LARGE)}, b"PNG"),
            "/thumbnail": (200, {"Content-Type": "image/png"}, b"P" * 3000),
            "/film": (
                200,
                {"Content-Type": "video/mp4", "Content-Encoding": "gzip", "Content-Length": str(LARGE)},
                b"",
            ),
            "/archive.zip": (200, {"Content-Type": "application/zip", "Content-Length": str(HUGE)}, b"PK"),
            "/untyped": (200, {}, b"<!doctype html><a href='/from/untyped'>on</a>"),
            "/from/untyped": _html("found on a page without a type"),
            "/bytes": (200, {}, bytes(range(256)) * 4),
            "/based": _html('<base href="/deep/er/"><a href="below">on</a>'),
            "/deep/er/below": _html("found through a base"),
            "/latin": (200, {"Content-Type": "text/html; charset=latin-1"}, '<a href="/né">é</a>'.encode("latin-1")),
            "/n%C3%A9": _html("found by a name that is not ASCII"),
            "/broken": (200, HTML, b"<html><a href='/from/broken'<b>\x00\xff</p></body><a href=/unquoted>"),
            "/from/broken": _html("found on a broken page"),
            "/unquoted": _html("found on a broken page too"),
            "/twice": (200, {**HTML, "Set-Cookie": "a=1"}, b'<a href="/ok"></a><a href="/ok">once</a>'),
            "/query?a=1&b=2": _html("the same for both orders"),
            "/query?b=2&a=1": _html("the same for both orders"),
            "/framed": _html("in a frame"),
            "/mapped": _html("on a map"),
        }


#: What a recording has for each URL: its status, or why there is none.
EXPECTED: dict[str, int | str] = {
    "/": 200, "/redirect/new": 301, "/redirect/seen": 302, "/redirect/chain": 307, "/redirect/chain/2": 308,
    "/redirect/off": 302, "/redirect/loop": 302, "/redirect/loop/2": 302, "/redirect/relative": 303, "/redirect/latin": 302, "/latin/%E9": 200,
    "/redirect/nowhere": 302, "/target": 200, "/chained": 200, "/relative/%C3%A9": 200, "/after/target": 200,
    "/status?code=404": 404, "/status?code=500": 500, "/empty": 200, "/gzip": 200, "/plain": 200, "/from/gzip": 200,
    "/refresh?to=/after/refresh": 200, "/after/refresh": 200, "/forbidden": "ignored", "/picture": 200,
    "/thumbnail": 200, "/film": 200, "/archive.zip": 200, "/untyped": 200, "/from/untyped": 200, "/bytes": 200,
    "/based": 200, "/deep/er/below": 200, "/latin": 200, "/n%C3%A9": 200, "/reset": "failure: DownloadFailedError",
    "/truncated": "failure: ResponseDataLossError", "/badgzip": "failure: BadGzipFile", "/broken": 200,
    "/from/broken": 200, "/unquoted": 200, "/twice": 200, "/query?b=2&a=1": 200, "/ok": 200, "/ok?q=%C3%A9": 200,
    "/framed": 200, "/mapped": 200,
}  # fmt: skip

#: Where redirects lead, meta refreshes among them.
LEADS = {
    "/redirect/new": "/target", "/redirect/seen": "/", "/redirect/chain": "/redirect/chain/2",
    "/redirect/chain/2": "/chained", "/redirect/loop": "/redirect/loop/2", "/redirect/loop/2": "/redirect/loop",
    "/redirect/relative": "/relative/%C3%A9", "/redirect/latin": "/latin/%E9", "/refresh?to=/after/refresh": "/after/refresh",
}  # fmt: skip


def _html(body: str) -> Answer:
    return 200, HTML, body.encode()
