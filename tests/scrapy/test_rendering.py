"""Pages are rendered where the policy wants it: a second look, whose links and items are those that are new."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from crawls import REACTOR, Follower, crawl

from scrapy_focus.core.types import Placement
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from pathlib import Path

    from mocksite import MockSite

    from scrapy_focus.core.types import Outcome

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytest.importorskip("scrapy_playwright", reason="needs scrapy-playwright (pip install scrapy-focus[playwright])")
pytestmark = [
    pytest.mark.reactor,
    pytest.mark.skipif(not REACTOR, reason="scrapy-playwright needs Twisted's reactor: see test_reactor.py"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium (apt-get install chromium)"),
    pytest.mark.timeout(240),
]
PLAIN = """<html><body><a href="/ok?plain">plain</a><ul></ul><script src="/list.js"></script></body></html>"""
LIST = b"""fetch("/list.json").then(answer => answer.json()).then(urls => urls.forEach(url =>
    document.querySelector("ul").insertAdjacentHTML("beforeend", `<li><a href="${url}">${url}</a></li>`)));"""


class RenderAll(BreadthFirst):
    """Has every page rendered that has scripts."""

    def render(self, outcome: Outcome) -> Placement:
        return Placement(0, 0.0, method="RENDER")


def served(site: MockSite) -> MockSite:
    """Give a site a page whose scripts make a list of two links, after they asked for it."""
    site.pages["/"] = PLAIN
    site.answers["/list.js"] = lambda _: (200, {"Content-Type": "text/javascript"}, LIST)
    site.answers["/list.json"] = lambda _: (200, {"Content-Type": "application/json"}, b'["/ok?one", "/ok?two"]')
    return site


def test_a_second_look_finds_what_scripts_show(site: MockSite, tmp_path: Path) -> None:
    """Its links are found once, its items given once, and all that was sent is counted."""
    served(site)
    result = crawl(Follower, {"FOCUS_POLICY": RenderAll}, addon=True, seeds=[site.url("/")])
    assert result.reason == "finished"
    print(result.stats, site.paths)
    assert sorted(path for path in site.paths if path.startswith("/ok")) == ["/ok?one", "/ok?plain", "/ok?two"]
    assert result.stats["focus/requests"] == len(site.log)
    assert len(result.items) == 4
