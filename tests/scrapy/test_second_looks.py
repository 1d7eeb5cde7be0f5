"""What the adapter does with pages that are to be rendered, whatever browser there is: none is needed for these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl
from handmadebrowser import HANDLERS, SCRIPT, TargetClosedError, put_in
from scrapy import Request

from scrapy_focus.core.types import Pick, Placement
from scrapy_focus.engine.browser import found
from scrapy_focus.engine.browser.visit import MadeFile
from scrapy_focus.engine.given import Given
from scrapy_focus.engine.inflight import Entry
from scrapy_focus.engine.marks import GIVEN, MADE, RENDERED
from scrapy_focus.engine.renderings import begin_rendering, take_back
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

    from scrapy_focus.core.types import Outcome


class RenderAll(BreadthFirst):
    """Has every page rendered that has scripts."""

    def render(self, outcome: Outcome) -> Placement:
        return Placement(0, 0.0, method="RENDER")


class RenderAtOnce(BreadthFirst):
    """Has every link rendered, and looks at no plain copy."""

    def place(self, links: Any, source: Any) -> Any:
        return [place._replace(method="RENDER") for place in super().place(links, source)]


class Copier(Follower):
    """Gives all that a request has in its meta to those that it leads to."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "marks": sorted({GIVEN, MADE, RENDERED, "playwright"} & response.meta.keys())}
        for link in response.css("a"):
            yield response.follow(link, meta={**response.meta})


PAGE = f'<html><body><a href="/ok?plain">plain</a>{SCRIPT % "<a href=/ok?shown>shown</a>"}</body></html>'
SETTINGS = {**HANDLERS, "FOCUS_POLICY": RenderAll}
AT_ONCE = {**HANDLERS, "FOCUS_POLICY": RenderAtOnce}


@pytest.fixture
def root(site: MockSite) -> str:
    """Give a site a page that shows one link more in a browser; return its URL."""
    site.pages["/"] = PAGE
    return site.url("/")


def oks(site: MockSite) -> list[str]:
    """Return what was asked for of what pages link to."""
    return sorted(path for path in site.paths if path.startswith("/ok"))


def test_a_second_look(site: MockSite, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes after the plain page, and what it shows more is found."""
    browser = put_in(monkeypatch)
    result = crawl(Follower, SETTINGS, addon=True, seeds=[root])
    assert oks(site) == ["/ok?plain", "/ok?shown"]
    assert site.asked.count(("GET", "/")) == 2
    assert browser.started == 1
    assert result.outcomes == {"ok": 4}
    assert result.errors == {}


def test_links_have_nothing_of_the_page_that_they_were_found_on(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where a spider copies all: else files of a page would wait with each of its links."""
    put_in(monkeypatch)

    class Maker(Copier):
        async def start(self) -> AsyncIterator[Any]:
            made = {MADE: (MadeFile("a.csv", "text/csv", b"1"),), GIVEN: b"1234", RENDERED: True}
            yield Request(self.seeds[0], meta={"playwright": False})
            yield Request(self.seeds[0] + "?made", meta=made)

    result = crawl(Maker, SETTINGS, addon=True, seeds=[root])
    assert [item["marks"] for item in result.items if "made" not in item["url"]]
    assert all(item["marks"] in ([], ["playwright"]) for item in result.items), result.items


def test_only_items_of_pages_with_scripts_are_remembered(
    site: MockSite, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No browser will show the others, which are the most."""
    put_in(monkeypatch)

    class Asking(Follower):
        def parse(self, response: Response) -> Iterator[Any]:
            yield {"url": response.url}
            given = self.crawler.engine.scheduler.inflight.find(response).given
            yield {"path": response.url.removeprefix(root), "remembered": given.n_items}
            yield from response.follow_all(css="a")

    result = crawl(Asking, SETTINGS, addon=True, seeds=[root])
    remembered = [(item["path"], item["remembered"]) for item in result.items if "path" in item]
    assert remembered[0] == ("", 1)
    assert {n for path, n in remembered if path} == {0}


def test_a_request_that_waits_as_it_is_keeps_what_its_plain_page_gave() -> None:
    """It is the same object that was about to be sent, and came back; one without a plain page gave nothing."""
    given = Given()
    given.add({"a": 1})
    request = Request("http://example.org/", meta={GIVEN: given.pack()})
    direct = Request("http://example.org/")
    for each, is_direct in ((request, False), (direct, True)):
        for _ in range(2):
            entry = Entry(Pick(0, 1, each.url, "", 0, 0, 0.0, None, -1, "RENDER", b""), 0.0)
            begin_rendering(entry, each)
            assert GIVEN not in each.meta
            assert entry.is_direct == is_direct
            assert entry.given is not None
            assert entry.given.has({"a": 1}) != is_direct
            take_back(entry, each)


class Posting(Follower):
    """Sends a form, and what it says itself that no browser is wanted for."""

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.seeds[0], method="POST", body=b"a=1")
        yield Request(self.seeds[0] + "?said", meta={"playwright": False})


@pytest.mark.parametrize("settings", [AT_ONCE, {**SETTINGS, "FOCUS_RENDER": "always"}])
def test_what_is_no_page_of_a_link_is_sent_as_it_is(
    site: MockSite, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    """And was no rendering then, whatever the policy had in mind."""
    browser = put_in(monkeypatch)
    told = []

    class Telling(Posting):
        def parse(self, response: Response) -> Iterator[Any]:
            scheduler = self.crawler.engine.scheduler
            if not scheduler.listeners:
                scheduler.listeners.append(lambda _, outcome: told.append(outcome.pick.method))
            yield {"url": response.url}

    site.pages["/"] = site.pages["/?said"] = PAGE
    result = crawl(Telling, settings, addon=True, seeds=[site.url("/")])
    assert result.outcomes == {"ok": 2}
    assert sorted(method for method, _ in site.asked) == ["GET", "POST"]
    assert told == ["GET", "GET"]
    assert browser.started == 0


@pytest.mark.parametrize("mode", ["learn", "always"])
def test_why_there_is_none_is_told(root: str, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """In one line, whoever asked for a browser; with ``"never"`` nobody did."""
    monkeypatch.setattr(found, "find_browser", lambda _: found.Found(reason="this is a test"))
    result = crawl(Follower, {**SETTINGS, "FOCUS_RENDER": mode}, addon=True, seeds=[root])
    assert result.logged("Pages are not rendered") == ["Pages are not rendered: this is a test"]
    result = crawl(Follower, {**SETTINGS, "FOCUS_RENDER": "never"}, addon=True, seeds=[root])
    assert result.logged("rendered") == []


def test_what_waits_is_not_rendered_where_none_is_wanted_any_more(
    site: MockSite, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plain page stands, though there is a browser."""
    browser = put_in(monkeypatch)
    settings = {**SETTINGS, "JOBDIR": str(tmp_path / "job")}
    crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 1}, addon=True, seeds=[root])
    result = crawl(Follower, {**settings, "FOCUS_RENDER": "never"}, addon=True, seeds=[root])
    assert result.outcomes == {"browser": 1, "ok": 2}
    assert oks(site) == ["/ok?plain"]
    assert browser.started == 0


@pytest.mark.parametrize(("settings", "label"), [(SETTINGS, "browser"), (AT_ONCE, "ok")])
def test_one_that_does_not_start_is_given_up(
    site: MockSite, root: str, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], label: str
) -> None:
    """After four times; plain pages stand then, and what was started for it is closed."""
    closed: list[Any] = []
    browser = put_in(monkeypatch, starts=False, close=lambda self: _note(closed, self))
    site.pages["/"] = PAGE.replace("<body>", '<body><a href="/more">more</a>')
    site.pages["/more"] = PAGE
    result = crawl(Follower, settings, addon=True, seeds=[root])
    assert oks(site) == ["/ok?plain"]
    assert result.outcomes[label] >= 2
    assert result.stats["focus/browser/unstarted"] == 4
    assert len(result.logged("the browser failed 4 times in a row, it does not start: libnss3.so")) == 1
    assert len(closed) == 4
    assert browser.started == 0


async def _note(seen: list[Any], what: Any) -> None:
    seen.append(what)


@pytest.mark.parametrize(("error", "asked"), [(TargetClosedError("it died"), 3), (ValueError("no page"), 1)])
@pytest.mark.parametrize(("settings", "label"), [(SETTINGS, "browser"), (AT_ONCE, "ok")])
def test_a_page_that_it_fails_with_is_asked_for_again_where_that_may_help(
    site: MockSite, root: str, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], label: str,
    error: Exception, asked: int,
) -> None:  # fmt: skip
    """Three times in all where it died; then the plain page stands, and is fetched where it was not."""
    tried: list[str] = []
    put_in(monkeypatch, fails=staticmethod(lambda url: (tried.append(url), error)[1] if url == root else None))
    result = crawl(Follower, settings, addon=True, seeds=[root])
    assert tried == [root] * asked
    assert site.asked.count(("GET", "/")) == 1
    assert oks(site) == ["/ok?plain"]
    assert result.outcomes.get("browser", 0) == (label == "browser")
    assert result.stats["focus/outcomes"] == sum(result.outcomes.values())
