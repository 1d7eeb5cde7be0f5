"""Pages that need a browser: links made by JavaScript are followed, and a HEAD never starts a browser."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from crawls import REACTOR, SomeHeadsFirst, crawl
from scrapy import Request, Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
pytest.importorskip("scrapy_playwright", reason="needs scrapy-playwright (pip install scrapy-focus[playwright])")
pytestmark = [
    pytest.mark.reactor,
    pytest.mark.skipif(not REACTOR, reason="scrapy-playwright needs Twisted's reactor: see test_reactor.py"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium (apt-get install chromium)"),
    pytest.mark.timeout(90),
]
SETTINGS = {
    "DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER},
    "PLAYWRIGHT_LAUNCH_OPTIONS": {
        "executable_path": CHROMIUM,
        "args": ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    },
}
SCRIPTED = """<html><body><ul class="made"></ul><script>
for (const path of ["/ok?one", "/ok?two", "/file?type=text/csv&size=100"]) {
    document.querySelector("ul").insertAdjacentHTML("beforeend", `<li><a href="${path}">${path}</a></li>`);
}</script></body></html>"""


class Rendered(Spider):
    """Has the first page rendered, and fetches what it links to as it is."""

    name = "rendered"

    def __init__(self, site: MockSite, everywhere: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site
        self.meta = {"playwright": True} if everywhere else {}

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.site.url("/scripted"), meta={"playwright": True})

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        for link in response.css("a"):
            yield response.follow(link, meta=self.meta)


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_links_made_by_scripts(site: MockSite, tmp_path: Path, addon: bool) -> None:
    """Links that only exist in the browser are followed, and stand where the script put them."""
    site.pages["/scripted"] = SCRIPTED
    result = crawl(Rendered, {**SETTINGS, "FOCUS_LOG": str(tmp_path / "log.jsonl")}, addon=addon, site=site)
    assert len(result.items) == 4
    assert result.outcomes == {"ok": 4}
    assert result.stats.get("focus/link/unattributed", 0) == 0
    paths = [event["why"]["tag_path"] for event in result.events() if event["event"] == "pick"]
    assert paths == ["", *["html/body/ul.made/li/a"] * 3]


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_heads_need_no_browser(site: MockSite, addon: bool) -> None:
    """A HEAD of a page that is to be rendered goes through the plain handler, before the browser gets it."""
    site.pages["/scripted"] = SCRIPTED
    settings = {**SETTINGS, "FOCUS_POLICY": SomeHeadsFirst, "FOCUS_POLICY_PARAMS": {"modulus": 1}}
    result = crawl(Rendered, settings, addon=addon, site=site, everywhere=True)
    heads = [seen for seen in site.log if seen.method == "HEAD"]
    assert sorted(seen.path for seen in heads) == sorted(
        ["/scripted", "/ok?one", "/ok?two", "/file?type=text/csv&size=100"]
    )
    assert all("Scrapy" in seen.headers["user-agent"] for seen in heads)
    assert result.stats["playwright/request_count/method/GET"] >= 3
    assert "playwright/request_count/method/HEAD" not in result.stats
    assert result.outcomes["probed"] == 4
