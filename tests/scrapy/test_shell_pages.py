"""Messages of a crawl without a browser about pages that scripts fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from crawls import BREADTH_FIRST, Follower, crawl

from scrapy_focus.engine.browser import found
from scrapy_focus.engine.ending import ending_of
from scrapy_focus.finders.files.spider import DatasetsSpider

if TYPE_CHECKING:
    from pathlib import Path

    from mocksite import MockSite

MENU = '<nav><a href="/">Home</a> <a href="/publications">Publications</a> <a href="/press">Press</a></nav>'
LIST = f"<html><body>{MENU}<div id=list></div><button id=next>Next</button><script src=/app.js></script></body></html>"
PRESS = (
    f"<html><body>{MENU}<p>{'A text for the press. ' * 20}</p><script src=/js/jquery.js></script>"
    "<noscript><img src=https://stats.example/pixel.gif></noscript></body></html>"
)
ADVICE = 'run pip install "scrapy-focus[playwright]", then playwright install chromium'


@pytest.fixture
def ministry(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> MockSite:
    """A site with a list that a script fills, for a machine without a browser."""
    monkeypatch.setattr(found, "find_browser", lambda _: found.Found(reason="this is a test", advice=ADVICE))
    site.pages |= {"/": f"<html>{MENU}<a href=/a.pdf>A</a></html>", "/publications": LIST, "/press": PRESS}
    site.answers["/a.pdf"] = lambda _: (200, {"Content-Type": "application/pdf"}, b"%PDF-1.4 a")
    return site


def test_the_last_line_and_the_page_of_results_say_it(ministry: MockSite, tmp_path: Path) -> None:
    """How many pages there are, and how to get a browser; and that what is left is not known."""
    result = crawl(
        DatasetsSpider, {"DOWNLOAD_DELAY": 0}, addon=True, root=ministry.url("/"), out=str(tmp_path / "found"),
        types="pdf",
    )  # fmt: skip
    said = f"1 page may show more in a browser: to use one, {ADVICE}."
    ending = ending_of(result.crawler)
    assert ending.sentence.startswith("Done: 1 file found in")
    assert ending.sentence.endswith(said)
    assert said.replace('"', "&#34;") in (tmp_path / "found" / "index.html").read_text()
    assert result.stats["focus/page/shell"] == 1
    (finished,) = result.logged("Finished (")
    assert "1 page may show more in a browser" in finished
    assert "files left to find: unknown" in finished
    assert result.logged("Scripts seem to fill these pages")


def test_ordinary_scripts_are_passed_over(ministry: MockSite) -> None:
    """Libraries and pixels that count visitors are no reason to speak."""
    del ministry.pages["/publications"]
    result = crawl(Follower, {"FOCUS_TARGETS": ["pdf"]}, addon=True, seeds=[ministry.url("/")])
    assert "browser" not in ending_of(result.crawler).sentence
    assert "focus/page/shell" not in result.stats
    assert not result.logged("Scripts seem to fill")


def test_nothing_is_logged_for_a_policy_without_renderings(ministry: MockSite) -> None:
    """A crawl that would not use it logs nothing."""
    result = crawl(Follower, {"FOCUS_POLICY": BREADTH_FIRST}, addon=True, seeds=[ministry.url("/")])
    assert "browser" not in ending_of(result.crawler).sentence


def test_the_log_says_how_to_turn_browsers_on(ministry: MockSite) -> None:
    """It names the setting, and what has to be installed."""
    result = crawl(Follower, {"FOCUS_RENDER": "never"}, addon=True, seeds=[ministry.url("/")])
    said = 'to use one, set FOCUS_RENDER = "learn", which needs pip install "scrapy-focus[playwright]"'
    assert said in ending_of(result.crawler).sentence


def test_a_crawl_without_the_addon_says_what_is_missing(ministry: MockSite) -> None:
    """The setting that enables rendering."""
    result = crawl(Follower, {"FOCUS_TARGETS": ["pdf"]}, seeds=[ministry.url("/")])
    assert ending_of(result.crawler).sentence.endswith('to use one, set ADDONS = {"scrapy_focus.Addon": 500}.')
