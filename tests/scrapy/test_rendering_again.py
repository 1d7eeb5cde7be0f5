"""A crawl that starts with what another one learned about renderings needs fewer, and finds as much."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from crawls import REACTOR, Crawled, crawl
from scrapy import Request, Spider
from scrapy.http import HtmlResponse

from scrapy_focus.engine.browser import found
from scrapy_focus.lab.sites.scripted.plan import Mix
from scrapy_focus.lab.sites.scripted.site import ScriptedSite
from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytest.importorskip("scrapy_playwright", reason="needs scrapy-playwright (pip install scrapy-focus[playwright])")
pytestmark = [
    pytest.mark.reactor,
    pytest.mark.skipif(not REACTOR, reason="scrapy-playwright needs Twisted's reactor: see test_reactor.py"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium (apt-get install chromium)"),
    pytest.mark.timeout(600),
]
SETS = 14
SHELL = "<html><body><ul></ul><script src='/app.js'></script></body></html>"
APP = b"""fetch("/api" + location.pathname).then(answer => answer.json()).then(data => data.files.forEach(file =>
    document.querySelector("ul").insertAdjacentHTML("beforeend",
        `<li><a href="/ok?${data.id}-${file.name}">${file.name}</a></li>`)));"""


class Finder(Spider):
    """Follows all links of a site, and yields an item for each file of its app."""

    name = "finder"

    def __init__(self, url: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.url = url

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.url)

    def parse(self, response: Response) -> Iterator[Any]:
        if "/ok?" in response.url:
            yield {"url": response.url}
        elif isinstance(response, HtmlResponse):
            yield from response.follow_all(css="a")


@pytest.fixture
def app(site: MockSite) -> MockSite:
    """A site of pages that are all the same shell over an API."""
    site.pages["/"] = "".join(f'<a href="/set/{i}">{i}</a>' for i in range(1, SETS + 1))
    site.answers["/app.js"] = lambda _: (200, {"Content-Type": "text/javascript"}, APP)
    for i in range(1, SETS + 1):
        site.pages[f"/set/{i}"] = SHELL
        data = json.dumps({"id": i, "files": [{"name": f"a{i}"}, {"name": f"b{7 * i}"}]}).encode()
        site.answers[f"/api/set/{i}"] = lambda _, data=data: (200, {"Content-Type": "application/json"}, data)  # type: ignore[misc]
    return site


@pytest.fixture
def learned(app: MockSite, tmp_path: Path) -> Path:
    """The learned state of a first crawl of it."""
    path = tmp_path / "learned.npz"
    first = visit(app, FOCUS_LEARNED_TO=str(path))
    assert first.stats["focus/browser/read"] >= 2
    assert sum(path.startswith("/set/") for path in app.paths) >= SETS, "each is fetched as it is"
    return path


def visit(app: MockSite, begin: Path | None = None, *, n: int = 2 * SETS, **settings: Any) -> Crawled:
    """Crawl the site with one request at a time, and see that each file is found."""
    app.log.clear()
    if begin is not None:
        settings["FOCUS_LEARNED_FROM"] = str(begin)
    result = crawl(Finder, {"CONCURRENT_REQUESTS": 1, "FOCUS_SEED": 1, **settings}, addon=True, url=app.url("/"))
    assert result.errors == {}
    assert len(result.items) == n
    assert len({item["url"] for item in result.items}) == n
    return result


def test_pages_that_need_a_browser_are_rendered_at_once(app: MockSite, learned: Path) -> None:
    """No page is fetched unrendered first, and none is rendered in vain."""
    result = visit(app, learned)
    assert result.stats["focus/browser/read"] == SETS
    assert app.paths.count("/") == 1
    assert sum(path.startswith("/set/") for path in app.paths) == SETS


class FollowAll(Finder):
    """Follows all links, and yields no items."""

    def parse(self, response: Response) -> Iterator[Any]:
        if isinstance(response, HtmlResponse):
            yield from response.follow_all(css="a[href]")


def test_the_next_crawl_of_the_scripted_site_needs_fewer(tmp_path: Path) -> None:
    """As many files with fewer requests, several at once, as no page is fetched in vain."""
    site = ScriptedSite(mix=Mix(lists=1, app_lists=4, per_app_list=6, collections=1, news=4, exports=0))
    settings = {"FOCUS_TARGETS": "csv", "FOCUS_SEED": 1, "FOCUS_LEARNED_TO": str(tmp_path / "learned")}
    read, asked = [], []
    with SiteServer(site, validators=True) as server:
        for begin in ({}, {"FOCUS_LEARNED_FROM": str(tmp_path / "learned")}):
            before = len(server.log)
            result = crawl(FollowAll, {**settings, **begin}, addon=True, url=server.url)
            path = [each.path for each in server.log[before:] if each.status == 200]
            assert {*site.targets()} <= {*path}
            assert result.errors == {}
            assert result.stats["focus/requests"] == len(server.log) - before
            read.append(result.stats["focus/browser/read"])
            asked.append(len(path))
    assert read[1] <= read[0]
    assert asked[1] < asked[0]


def test_what_was_learned_outlives_a_crawl_without_a_browser(
    app: MockSite, learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fetches each page once, unrendered, and passes the learned state on."""
    with monkeypatch.context() as patch:
        patch.setattr(found, "find_browser", lambda _: found.Found(reason="this is a test"))
        visit(app, learned, n=0, FOCUS_LEARNED_TO=str(learned))
    assert sorted(app.paths) == sorted(["/", *(f"/set/{i}" for i in range(1, SETS + 1))])
    result = visit(app, learned)
    assert sum(path.startswith("/set/") for path in app.paths) == result.stats["focus/browser/read"] == SETS


@pytest.mark.parametrize("mode", ["never", "always"])
def test_what_the_user_says_is_done(app: MockSite, learned: Path, mode: str) -> None:
    """No page is rendered, or each, whatever was learned."""
    result = visit(app, learned, FOCUS_RENDER=mode, n=2 * SETS * (mode == "always"))
    assert (app.paths.count("/app.js") > 0) == (mode == "always")
    assert (result.stats.get("focus/browser/read", 0) >= SETS) == (mode == "always")
