"""The synthetic scripted site in a real browser: it shows what the site says that it would, and asks for no more."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus.lab.sites.scripted.plan import MAKES, SHAPES, Api, Mix
from scrapy_focus.lab.sites.scripted.site import ScriptedSite
from scrapy_focus.lab.sites.server import SiteServer
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install playwright)")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium (apt-get install chromium)")
SITE = ScriptedSite(
    mix=Mix(lists=3, app_lists=4, per_app_list=3, collections=2, news=12, exports=4),
    apis=[Api(make, shape) for make, shape in zip(MAKES, SHAPES, strict=True)],
)
EXPORTS = {SITE.blob(path) is not None: path for path in SITE.html_paths("exports")}
PAGE_LINKS = "Array.from(document.querySelectorAll('a[href]'), (a) => a.getAttribute('href'))"


class Shown:
    """Pages of the site in a browser, each until there is what a function of their document says."""

    def __init__(self, context: Any, server: SiteServer) -> None:
        self.context = context
        self.server = server
        self.page = context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self, path: str, until: str = "true") -> Any:
        """Show a page, and return it."""
        answer = self.page.goto(self.server.url + path[1:])
        assert answer.status == 200
        self.page.wait_for_function(until)
        return self.page

    def links(self) -> list[str]:
        """Return the links of the page, each once."""
        assert self.errors == []
        return list(dict.fromkeys(self.page.evaluate(PAGE_LINKS)))

    def asked(self) -> list[str]:
        """Return what the server was asked for, with its method."""
        return [f"{request.method} {request.path}" for request in self.server.log]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield started
        started.close()


@pytest.fixture
def shown(browser: Any) -> Iterator[Shown]:
    with SiteServer(SITE) as server:
        context = browser.new_context(accept_downloads=True)
        context.set_default_timeout(HANG * 1000)
        yield Shown(context, server)
        context.close()


@pytest.mark.parametrize("make", MAKES)
def test_the_app_shows_what_its_api_says(shown: Shown, make: str) -> None:
    """Both lists of each make, and a dataset; before the scripts ran there is nothing."""
    name = next(name for name, section in SITE.sections.items() if section.make == make)
    paths = [path for path in SITE.html_paths("app") if re.match(rf"/app/{name}\b", path)]
    assert len(paths) == 2 + 6
    for path in (*paths[:2], *paths[7:]):
        shown.open(path, "document.querySelector('#root > ul')")
        assert shown.links() == SITE.rendered_links(path)
        assert SITE.plain_links(path) == []
    asked = [each for each in shown.asked() if "/api/" in each]
    assert all(each.startswith(f"GET /api/{name}/") for each in asked)
    assert len(asked) == len(set(asked)) == 3


@pytest.mark.parametrize("path", ["/", "/lists/2", "/news/9", "/news/10"])
def test_scripts_change_nothing_of_use(shown: Shown, path: str) -> None:
    """Lists have no scripts, and those of news change the text of a date and no link."""
    shown.open(path, "true" if "news" not in path else "document.documentElement.className === 'scripted'")
    assert shown.links() == SITE.rendered_links(path) == SITE.plain_links(path)
    assert ("GET /assets/bundle.js" in shown.asked()) == ("news" in path)
    assert not [each for each in shown.asked() if "/api/" in each]


@pytest.mark.parametrize("path", ["/collections/1", "/collections/2"])
def test_collections_show_more(shown: Shown, path: str) -> None:
    """After clicks where there is a button, and after scrolling where there is none."""
    page = shown.open(path)
    assert shown.links() == SITE.rendered_links(path, acted=False) == SITE.plain_links(path)
    for count in (12, 20) if page.query_selector("#more") else ():
        page.click("#more")
        page.wait_for_function(f"document.querySelectorAll('ul.more li').length === {count}")
    if page.query_selector("#end"):
        page.evaluate("document.querySelector('#end').scrollIntoView()")
        page.wait_for_function("document.querySelectorAll('ul.more li').length === 20")
    assert page.query_selector("#more") is None
    assert shown.links() == SITE.rendered_links(path)
    assert len([each for each in shown.asked() if "/api/more" in each]) == 2


@pytest.mark.parametrize("path", [EXPORTS[True], EXPORTS[False]], ids=["blob", "url"])
def test_exports_are_downloaded(shown: Shown, path: str) -> None:
    """From a URL, which is among the links that the site names, or as a blob, whose bytes it knows."""
    page = shown.open(path)
    links = shown.links()
    with page.expect_download() as waiting:
        page.click("#export")
    content = Path(waiting.value.path()).read_bytes()
    blob = SITE.blob(path)
    if blob is None:
        links.append(waiting.value.url.replace(shown.server.url, "/"))
        assert content == SITE.fetch(links[-1]).body
    else:
        assert waiting.value.url.startswith("blob:")
        assert content == blob
    assert links == SITE.rendered_links(path)


def test_assets_are_fetched_once(shown: Shown) -> None:
    """If the browser may keep them, it loads the bundle, the style sheet, the font and the images once for all pages."""
    for path in SITE.html_paths("news"):
        with shown.page.expect_request("**/beacon"):
            shown.open(path, "document.readyState === 'complete' && document.fonts.status === 'loaded'")
    asked = shown.asked()
    for name in ("bundle.js", "site.css", "font.woff2", "0.png", "1.png", "2.png"):
        assert asked.count(f"GET /assets/{name}") == 1, name
