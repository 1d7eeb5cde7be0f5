"""Rendered pages get the cookies and headers of the crawl, and no other host does, in a real browser."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from crawls import REACTOR, crawl
from mocksite import MockSite

from scrapy_focus.finders.topic.spider import TopicSpider

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("scrapy_playwright", reason="needs scrapy-playwright (pip install scrapy-focus[playwright])")
pytestmark = [
    pytest.mark.reactor,
    pytest.mark.skipif(not REACTOR, reason="scrapy-playwright needs Twisted's reactor: see test_reactor.py"),
    pytest.mark.skipif(
        not (shutil.which("chromium") or shutil.which("chromium-browser")),
        reason="needs Debian's chromium (apt-get install chromium)",
    ),
    pytest.mark.timeout(240),
]
PAGE = """<html><body><a href="/moved">moved</a><ul></ul>
<script src="/script.js"></script><script src="/away.js"></script><script src="OTHER/direct.js"></script>
<iframe src="/away-frame"></iframe><script>
fetch("/away-data").catch(() => 0); fetch("OTHER/data", {credentials: "include", mode: "no-cors"}).catch(() => 0);
fetch("/data").then(answer => answer.text()).then(text => document.querySelector("ul").innerHTML = text);
</script></body></html>"""
COOKIES = "127.0.0.1\tFALSE\t/\tFALSE\t0\tmine\t1\nlocalhost\tFALSE\t/\tFALSE\t0\ttheirs\t2\n"


@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "proxy"])
def test_a_browser_sends_them_to_their_hosts_alone(tmp_path: Path, proxied: bool) -> None:
    """In the page, what it loads, redirects of both, and the redirect of a page to another host."""
    (tmp_path / "cookies.txt").write_text(COOKIES)
    with MockSite() as mine, MockSite("localhost") as other, MockSite() as proxy:
        there, script = other.url(""), {"Content-Type": "text/javascript"}
        answers = {
            "/script.js": lambda _: (200, script, b"1"),
            "/data": lambda _: (200, {"Content-Type": "text/html"}, b'<li><a href="/ok?made">made</a>'),
        }  # fmt: skip
        for path in ("/away.js", "/away-frame", "/away-data", "/moved"):
            answers[path] = lambda _, path=path: (302, {"Location": f"{there}/stolen{path}"}, b"")  # type: ignore[misc]
        server = proxy if proxied else mine
        before = mine.url("") if proxied else ""
        server.pages[f"{before}/"] = PAGE.replace("OTHER", there)
        server.answers = {before + path: answer for path, answer in answers.items()}
        server.pages[f"{before}/ok?made"] = "made"
        given = {"cookies": str(tmp_path / "cookies.txt"), "header": ["X-Key: k", "Cookie: more=3"], "delay": "0"}
        if proxied:
            given["proxy"] = proxy.url("")
        settings = {"FOCUS_RENDER": "always", "FOCUS_BUDGET_REQUESTS": 40, "COOKIES_ENABLED": False}
        crawled = crawl(
            TopicSpider, settings, addon=True, patience=200, seeds=mine.url("/"), keywords="xy",
            out=str(tmp_path / "out.jsonl"), **given,
        )  # fmt: skip
        assert crawled.stats["focus/browser/read"] >= 1
        log = [(seen, seen.path.removeprefix(before)) for seen in server.log if there not in seen.path]
        own = [(seen, path) for seen, path in log if path.startswith("/")]
        assert {"/", "/script.js", "/away.js", "/away-frame", "/away-data", "/data", "/moved"} <= {
            path for _, path in own
        }
        for seen, path in own:
            assert {*seen.headers.get("cookie", "").split("; ")} == {"mine=1", "more=3"}, path
            assert seen.headers.get("x-key") == "k", path
        foreign = other.log + [seen for seen in server.log if seen.path.startswith(there)]
        paths = {seen.path.removeprefix(there) for seen in foreign}
        assert {"/direct.js", "/data", "/stolen/away.js", "/stolen/away-frame", "/stolen/moved"} <= paths
        for seen in foreign:
            assert "x-key" not in seen.headers, seen.path
            assert seen.headers.get("cookie", "") in {"", "theirs=2"}, seen.path
