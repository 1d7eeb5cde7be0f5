"""How the adapter treats pages that are to be rendered, with any browser: these tests need none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl
from handmadebrowser import HANDLERS, SCRIPT, TargetClosedError, put_in
from scrapy import Request, Spider
from scrapy.settings import Settings

from scrapy_focus.core.types import Outcome, Pick, Placement
from scrapy_focus.engine import slots
from scrapy_focus.engine.browser import found, keeper
from scrapy_focus.engine.browser.visit import MadeFile
from scrapy_focus.engine.inflight import Entry
from scrapy_focus.engine.marks import GIVEN, MADE, RENDERED
from scrapy_focus.features.rendering.feature import begin_rendering, take_back
from scrapy_focus.features.rendering.given import Given
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.spidermiddlewares import RenderedItemsMiddleware, given_of, has_spider_middleware

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response


class RenderAll(BreadthFirst):
    """Has every page rendered that has scripts."""

    def render(self, outcome: Outcome) -> Placement:
        return Placement(0, 0.0, method="RENDER")


class RenderAtOnce(BreadthFirst):
    """Has every link rendered, and looks at no plain copy."""

    def place(self, links: Any, source: Any) -> Any:
        return [place._replace(method="RENDER") for place in super().place(links, source)]


class Copier(Follower):
    """Copies all meta of a request to the requests of its page."""

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
    """Return the requests for the links of pages."""
    return sorted(path for path in site.paths if path.startswith("/ok"))


def test_a_second_look(site: MockSite, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It follows the plain page, and additional content is found."""
    browser = put_in(monkeypatch)
    result = crawl(Follower, SETTINGS, addon=True, seeds=[root])
    assert oks(site) == ["/ok?plain", "/ok?shown"]
    assert site.asked.count(("GET", "/")) == 2
    assert browser.started == 1
    assert result.outcomes == {"ok": 4}
    assert result.errors == {}


def test_pages_with_which_a_spider_starts_are_rendered(
    site: MockSite, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even though Scrapy's filter does not see their requests; each is a separate link."""
    put_in(monkeypatch)

    class Usual(Spider):
        name = "usual"
        start_urls = (root,)

        def parse(self, response: Response) -> Iterator[Any]:
            yield from response.follow_all(css="a")

    result = crawl(Usual, SETTINGS, addon=True)
    assert oks(site) == ["/ok?plain", "/ok?shown"]
    assert result.outcomes == {"ok": 4}


def test_what_was_sent_and_came_is_said_of_outcomes(site: MockSite, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Including the browser's further requests, and its failures."""
    put_in(monkeypatch)
    told = crawl_told(SETTINGS, root)
    assert [(outcome.pick.method, outcome.requests) for outcome in told if outcome.pick.url == root] == [
        ("GET", 1), ("RENDER", 2),
    ]  # fmt: skip
    assert all(outcome.received >= outcome.size > 0 for outcome in told)
    assert [outcome.scripted for outcome in told if outcome.pick.url == root] == [True, False]
    put_in(monkeypatch, fails=staticmethod(lambda url: TargetClosedError("it died")))
    assert [(each.error, each.requests) for each in crawl_told(SETTINGS, root) if each.pick.method == "RENDER"] == [
        ("browser", 3)
    ]


def crawl_told(settings: dict[str, Any], root: str) -> list[Outcome]:
    """Crawl, and return the outcomes."""
    told: list[Outcome] = []

    def note(_: Any, outcome: Outcome) -> None:
        told.append(outcome)

    class Telling(Follower):
        def parse(self, response: Response) -> Iterator[Any]:
            features = self.crawler.engine.scheduler.focus_host.features
            if not features.outcome or features.outcome[-1].call is not note:
                features.on("outcome", note)
            yield from super().parse(response)

    crawl(Telling, settings, addon=True, seeds=[root])
    return told


def test_items_come_once(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items of the plain page are not yielded again, and item numbers continue."""
    put_in(monkeypatch)

    class Listing(Follower):
        def parse(self, response: Response) -> Iterator[Any]:
            yield from ({"text": text} for text in response.css("li::text").getall())

    site.pages["/"] = f"<html><body><ul><li>a<li>b</ul>{SCRIPT % '<ul><li>c</ul>'}</body></html>"
    result = crawl(Listing, {**SETTINGS, "FOCUS_ITEM_ID": "item_id"}, addon=True, seeds=[site.url("/")])
    assert [item["text"] for item in result.items] == ["a", "b", "c"]
    assert len({item["item_id"] for item in result.items}) == 3
    assert result.stats["focus/render/item_again"] == 2


@pytest.mark.parametrize("at", [2, 3])
def test_a_rendering_that_a_budget_does_not_allow_waits_in_its_job(
    site: MockSite, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Also where it was to be tried again, and something was sent for it."""
    died = []
    put_in(monkeypatch, fails=staticmethod(lambda url: died.append(url) or TargetClosedError("it died")))
    settings = {**SETTINGS, "JOBDIR": str(tmp_path / "job")}
    first = crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": at}, addon=True, seeds=[root])
    assert first.outcomes.get("browser", 0) == 0
    assert len(died) >= at - 2
    put_in(monkeypatch)
    second = crawl(Follower, settings, addon=True, seeds=[root])
    assert oks(site) == ["/ok?plain", "/ok?shown"]
    assert second.outcomes == {"ok": 4}  # of both
    urls = [item["url"] for item in first.items + second.items]
    assert sorted(urls) == sorted(set(urls))


def test_caches_do_not_answer_for_a_browser(site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrapy's own has the plain page."""
    put_in(monkeypatch)
    site.pages["/"] = PAGE
    settings = {**SETTINGS, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    crawl(Follower, settings, addon=True, seeds=[site.url("/")])
    assert oks(site) == ["/ok?plain", "/ok?shown"]


def test_a_page_is_rendered_where_its_redirect_leads(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though that was seen before, when the plain page was fetched."""
    put_in(monkeypatch)
    site.pages["/to"] = PAGE
    result = crawl(Follower, SETTINGS, addon=True, seeds=[site.url("/redirect?to=/to")])
    assert oks(site) == ["/ok?plain", "/ok?shown"]
    assert result.outcomes == {"ok": 4}


def test_a_browser_is_renewed(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some pages; those in flight are still rendered by the old one, which is closed then."""
    browser = put_in(monkeypatch)
    monkeypatch.setattr(keeper, "_PAGES", 3)
    for i in range(8):
        site.pages[f"/{i}"] = PAGE
    site.pages["/"] = "".join(f'<a href="/{i}">{i}</a>' for i in range(8))
    result = crawl(Follower, SETTINGS, addon=True, seeds=[site.url("/")])
    assert result.stats["focus/browser/started"] == browser.started == len(set(browser.closed)) >= 2
    assert sum(each.shown for each in browser.closed) == 8
    assert browser.most <= 4
    assert result.outcomes == {"ok": 1 + 2 * 8 + 2}


def test_one_that_hangs_is_given_up_when_it_hangs_again_and_again(
    site: MockSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not if other pages succeed in between."""
    monkeypatch.setattr(keeper, "_LONGEST", 0.05)
    for i in range(6):
        site.pages[f"/{i}"] = PAGE
    site.pages["/"] = "".join(f'<a href="/{i}">{i}</a>' for i in range(6))
    put_in(monkeypatch, hangs=staticmethod(lambda url: True))
    result = crawl(Follower, SETTINGS, addon=True, seeds=[site.url("/")])
    assert 4 <= result.stats["focus/browser/hung"] <= 4 + 3
    assert len(result.logged("Pages are no longer rendered")) == 1
    assert result.outcomes["browser"] == 6
    assert oks(site) == ["/ok?plain"]


def test_links_have_nothing_of_the_page_that_they_were_found_on(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if a spider copies all: otherwise each link would store the files of its page."""
    put_in(monkeypatch, files=(MadeFile("a.csv", "text/csv", b"1"),))

    result = crawl(Copier, SETTINGS, addon=True, seeds=[root])
    marks = {item["url"]: item["marks"] for item in result.items}
    assert MADE in marks[root]  # of the second look
    assert all(not marked for url, marked in marks.items() if url != root)
    assert len(marks) == 3


def test_files_that_scripts_make_are_found(site: MockSite, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As items, and in rewards if they are of a wanted type."""
    made = (MadeFile("a.csv", "text/csv", b"a,b\n1,2\n"), MadeFile("b.html", "text/html", b"<p>"))
    put_in(monkeypatch, files=made)
    result = crawl(DatasetsSpider, SETTINGS, addon=True, root=root)
    files = [(item.url, item.mime, item.size, item.page) for item in result.items if item.name == "a.csv"]
    assert files == [(f"{root}#a.csv", "text/csv", 8, root)]
    assert len(result.items) == result.stats["focus/reward"] == 1
    assert FilesGoal(types=["text/csv"])(outcome_of("a.csv", "b.html", "c.csv")) == 2
    stored = FilesGoal(types=["text/csv"], stored=True)
    assert [stored(outcome_of("a.csv", items=items)) for items in (0, 1, 2)] == [0, 1, 1]


def outcome_of(*made: str, items: float = 0.0) -> Outcome:
    """Return the outcome of a page whose scripts made these files."""
    pick = Pick(0, 1, "http://example.org/", "", 0, 0, 0.0, None, -1, "RENDER", b"")
    return Outcome(pick=pick, status=200, mime="text/html", made=made, items=items)


@pytest.mark.parametrize("path", ["/truncated", "/ok"])
def test_what_a_browser_was_not_asked_for_fails_as_ever(
    site: MockSite, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """It is tried no more often than Scrapy does."""
    put_in(monkeypatch)
    result = crawl(Follower, {**SETTINGS, "RETRY_ENABLED": False}, addon=True, seeds=[site.url(path)])
    assert site.paths == [path]
    assert result.outcomes == {"ok" if path == "/ok" else "failure": 1}


def test_a_page_that_a_budget_cut_short_waits_again(site: MockSite, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of its requests were not sent; with a larger budget, it is rendered again."""
    cut = [True]
    browser = put_in(monkeypatch, cuts=staticmethod(lambda url: bool(cut and cut.pop())))
    result = crawl(Follower, SETTINGS, addon=True, seeds=[root])
    assert oks(site) == ["/ok?plain", "/ok?shown"]
    assert result.outcomes == {"ok": 4}
    assert result.stats["focus/released"] == 1
    assert browser.started == 1


def test_one_that_starts_after_some_tries_is_asked_on(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only failures in a row count."""
    starts = [False, False, False, True] * 3
    put_in(monkeypatch, starts=property(lambda _: starts.pop(0)))
    monkeypatch.setattr(keeper, "_PAGES", 1)
    for i in range(6):
        site.pages[f"/{i}"] = PAGE
    site.pages["/"] = "".join(f'<a href="/{i}">{i}</a>' for i in range(6))
    result = crawl(Follower, {**SETTINGS, "CONCURRENT_REQUESTS": 1}, addon=True, seeds=[site.url("/")])
    assert result.outcomes["browser"] == 3
    assert result.stats["focus/browser/unstarted"] == 9
    assert result.logged("Pages are no longer rendered") == []
    assert oks(site) == ["/ok?plain", "/ok?shown"]


def test_only_items_of_pages_with_scripts_are_remembered(
    site: MockSite, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No browser will show the others, which are the most."""
    put_in(monkeypatch)

    class Asking(Follower):
        def parse(self, response: Response) -> Iterator[Any]:
            yield {"url": response.url}
            given = given_of(self.crawler, self.crawler.engine.scheduler.inflight.find(response))
            yield {"path": response.url.removeprefix(root), "remembered": given.n_items}
            yield from response.follow_all(css="a")

    result = crawl(Asking, SETTINGS, addon=True, seeds=[root])
    remembered = [(item["path"], item["remembered"]) for item in result.items if "path" in item]
    assert remembered[0] == ("", 1)
    assert {n for path, n in remembered if path} == {0}


def test_a_request_that_waits_as_it_is_keeps_what_its_plain_page_gave() -> None:
    """The same object is queued again after a release; one without a plain page has no items."""
    given = Given()
    given.add({"a": 1})
    request = Request("http://example.org/", meta={GIVEN: given.pack()})
    direct = Request("http://example.org/")
    for each, is_direct in ((request, False), (direct, True)):
        for _ in range(2):
            entry = Entry(Pick(0, 1, each.url, "", 0, 0, 0.0, None, -1, "RENDER", b""), 0.0)
            left = begin_rendering(entry, each)
            assert GIVEN not in each.meta
            assert entry.is_direct == is_direct
            assert left.has({"a": 1}) != is_direct
            take_back(entry, each, left)


class Posting(Follower):
    """Sends a form, and sets itself that no browser is used."""

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

    def note(_: Any, outcome: Outcome) -> None:
        told.append(outcome.pick.method)

    class Telling(Posting):
        def parse(self, response: Response) -> Iterator[Any]:
            features = self.crawler.engine.scheduler.focus_host.features
            if not features.outcome or features.outcome[-1].call is not note:
                features.on("outcome", note)
            yield {"url": response.url}

    site.pages["/"] = site.pages["/?said"] = PAGE
    result = crawl(Telling, settings, addon=True, seeds=[site.url("/")])
    assert result.outcomes == {"ok": 2}
    assert sorted(method for method, _ in site.asked) == ["GET", "POST"]
    assert told == ["GET", "GET"]
    assert browser.started == 0


@pytest.mark.parametrize(
    ("mode", "browser", "there"), [("learn", True, True), ("learn", False, False), ("never", True, False)]
)
def test_links_cross_no_layer_in_vain(monkeypatch: pytest.MonkeyPatch, mode: str, browser: bool, there: bool) -> None:
    """The layer that drops repeated items exists only if pages may be fetched twice."""
    if browser:
        put_in(monkeypatch)
    else:
        monkeypatch.setattr(found, "find_browser", lambda _: found.Found(reason="this is a test"))
    result = crawl(Follower, {**SETTINGS, "FOCUS_RENDER": mode}, addon=True, seeds=[])
    assert has_spider_middleware(result.crawler, RenderedItemsMiddleware) == there


@pytest.mark.parametrize("mode", ["learn", "always"])
def test_the_log_says_why_there_is_none(root: str, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """In one line, whoever wanted a browser; with ``"never"`` there is none."""
    monkeypatch.setattr(found, "find_browser", lambda _: found.Found(reason="this is a test"))
    result = crawl(Follower, {**SETTINGS, "FOCUS_RENDER": mode}, addon=True, seeds=[root])
    assert result.logged("Pages are not rendered") == ["Pages are not rendered: this is a test"]
    result = crawl(Follower, {**SETTINGS, "FOCUS_RENDER": "never"}, addon=True, seeds=[root])
    assert result.logged("rendered") == []


def test_what_waits_is_not_rendered_where_none_is_wanted_any_more(
    site: MockSite, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plain page counts, though there is a browser."""
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
    """After four times; plain pages count then, and whatever was started is closed."""
    browser = put_in(monkeypatch, starts=False)
    site.pages["/"] = PAGE.replace("<body>", '<body><a href="/more">more</a>')
    site.pages["/more"] = PAGE
    result = crawl(Follower, settings, addon=True, seeds=[root])
    assert oks(site) == ["/ok?plain"]
    assert result.outcomes[label] >= 2
    assert result.stats["focus/browser/unstarted"] == 4
    assert len(result.logged("the browser failed 4 times in a row, it does not start: libnss3.so")) == 1
    assert len(browser.closed) == 4
    assert browser.started == 0


@pytest.mark.parametrize(("error", "asked"), [(TargetClosedError("it died"), 3), (ValueError("no page"), 1)])
@pytest.mark.parametrize(("settings", "label"), [(SETTINGS, "browser"), (AT_ONCE, "ok")])
def test_a_page_that_it_fails_with_is_asked_for_again_where_that_may_help(
    site: MockSite, root: str, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], label: str,
    error: Exception, asked: int,
) -> None:  # fmt: skip
    """Three times in all if it died; then the plain page counts, and is fetched if it was not."""
    tried: list[str] = []
    put_in(monkeypatch, fails=staticmethod(lambda url: (tried.append(url), error)[1] if url == root else None))
    result = crawl(Follower, settings, addon=True, seeds=[root])
    assert tried == [root] * asked
    assert site.asked.count(("GET", "/")) == 1
    assert oks(site) == ["/ok?plain"]
    assert result.outcomes.get("browser", 0) == (label == "browser")
    assert result.stats["focus/outcomes"] == sum(result.outcomes.values())


def test_a_slot_rests_for_what_a_browser_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many delays as it sent requests, one page after another; the host does not count as paused."""
    now = [100.0]
    monkeypatch.setattr(slots, "monotonic", lambda: now[0])
    downloader = SimpleNamespace(
        slots={}, per_slot_settings={"a": {"delay": 2.0}}, domain_concurrency=8, ip_concurrency=0, _delay=0.0
    )
    ours = slots.Slots(SimpleNamespace(engine=SimpleNamespace(downloader=downloader), settings=Settings()))  # type: ignore[arg-type]
    ours.owe("b", 5)
    assert not ours.busy
    ours.owe("a", 3)
    ours.owe("a", 2)
    assert ours.busy == {"a"}
    assert (ours.shut, ours.opens_in(), ours.changes_in()) == (0, None, 10.0)
    assert not ours.is_shut("a")
    ours.put_off("a", 30.0)
    assert (ours.opens_in(), ours.changes_in()) == (30.0, 10.0)
    now[0] = 111.0
    assert ours.changes_in() == 19.0
    assert ours.busy == {"a"}
    now[0] = 131.0
    assert ours.changes_in() is None
    assert not ours.busy
