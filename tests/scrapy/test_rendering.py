"""Pages are rendered if the policy wants it: a second visit that yields only new links and items."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crawls import REACTOR, Follower, crawl
from scrapy import Request, Spider
from scrapy.http import HtmlResponse

from scrapy_focus.core.types import Placement
from scrapy_focus.downloadermiddlewares import MeterMiddleware
from scrapy_focus.engine.browser import found, guard, keeper
from scrapy_focus.engine.browser.visit import Limits
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mocksite import MockSite
    from scrapy.http import Response

    from scrapy_focus.core.types import Outcome

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytest.importorskip("scrapy_playwright", reason="needs scrapy-playwright (pip install scrapy-focus[playwright])")
pytestmark = [
    pytest.mark.reactor,
    pytest.mark.skipif(not REACTOR, reason="scrapy-playwright needs Twisted's reactor: see test_reactor.py"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium (apt-get install chromium)"),
    pytest.mark.timeout(600),
]
PLAIN = '<html><body><a href="/ok?plain">plain</a><ul></ul><script src="/list.js"></script></body></html>'
LIST = b"""fetch("/list.json").then(answer => answer.json()).then(urls => urls.forEach(url =>
    document.querySelector("ul").insertAdjacentHTML("beforeend", `<li><a href="${url}">${url}</a></li>`)));"""
SHELL = "<html><body><ul></ul><script src='/app.js'></script></body></html>"
APP = b"""fetch("/api" + location.pathname).then(answer => answer.json()).then(data => data.files.forEach(file =>
    document.querySelector("ul").insertAdjacentHTML("beforeend",
        `<li><a href="/ok?${data.id}-${file.name}">${file.name}</a></li>`)));"""


class RenderAll(BreadthFirst):
    """Has every page rendered that has scripts."""

    def render(self, outcome: Outcome) -> Placement:
        return Placement(0, 0.0, method="RENDER")


class RenderAtOnce(BreadthFirst):
    """Has every page rendered that has no extension, and looks at no plain one."""

    def place(self, links: Any, source: Any) -> Any:
        return [place._replace(method="RENDER") for place in super().place(links, source)]


RENDER_ALL = {"FOCUS_POLICY": RenderAll}


class Described(Spider):
    """Yields the title of each page and the entries of its list as items, and follows links."""

    name = "described"
    meta: dict[str, Any] = {}

    def __init__(self, seeds: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seeds = seeds

    async def start(self) -> AsyncIterator[Any]:
        for url in self.seeds:
            yield Request(url, meta=dict(self.meta))

    def parse(self, response: Response) -> Iterator[Any]:
        if isinstance(response, HtmlResponse):
            yield {"page": response.url}
            yield from ({"entry": text} for text in response.css("li ::text").getall())
            yield from response.follow_all(css="a")


class LeftToScrapy(Described):
    """Says itself that no browser is wanted."""

    meta = {"playwright": False}


class LinksOnly(Described):
    """Follows links, and yields no items."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from response.follow_all(css="a")


def served(site: MockSite) -> str:
    """Give a site a page whose scripts add a list of two links, after a request for it; return its URL."""
    site.pages["/"] = PLAIN
    site.answers["/list.js"] = lambda _: (200, {"Content-Type": "text/javascript"}, LIST)
    site.answers["/list.json"] = lambda _: (200, {"Content-Type": "application/json"}, b'["/ok?one", "/ok?two"]')
    return site.url("/")


def app(site: MockSite, n: int) -> str:
    """Give a site pages that are all the same shell over an API, and a page that links to them; return its URL."""
    site.pages["/"] = "".join(f'<a href="/set/{i}">{i}</a>' for i in range(1, n + 1))
    site.answers["/app.js"] = lambda _: (200, {"Content-Type": "text/javascript"}, APP)
    for i in range(1, n + 1):
        site.pages[f"/set/{i}"] = SHELL
        data = json.dumps({"id": i, "files": [{"name": f"a{i}"}, {"name": f"b{7 * i}"}]}).encode()
        site.answers[f"/api/set/{i}"] = lambda _, data=data: (200, {"Content-Type": "application/json"}, data)  # type: ignore[misc]
    return site.url("/")


def files(site: MockSite) -> list[str]:
    """Return the requests for the links of lists."""
    return sorted(path for path in site.paths if path.startswith("/ok"))


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any."""
    monkeypatch.setattr(found, "find_browser", lambda _: found.Found(reason="this is a test"))


def test_a_second_look_finds_what_scripts_show(site: MockSite) -> None:
    """Its links are found once, all requests are counted, and nothing is kept of a finished page."""
    result = crawl(Follower, RENDER_ALL, addon=True, seeds=[served(site)])
    middlewares = result.crawler.engine.downloader.middleware.middlewares
    (meter,) = (each for each in middlewares if isinstance(each, MeterMiddleware))
    assert meter._guard is not None
    assert not meter._guard._frames
    assert result.reason == "finished"
    assert files(site) == ["/ok?one", "/ok?plain", "/ok?two"]
    assert result.stats["focus/requests"] == len(site.log)
    assert result.stats["focus/link/render"] == 1
    assert result.outcomes == {"ok": 5}
    assert result.errors == {}


def test_items_come_once(site: MockSite) -> None:
    """Items of the plain page are not yielded again, with ids that continue."""
    settings = {**RENDER_ALL, "FOCUS_ITEM_ID": "item_id"}
    result = crawl(Described, settings, addon=True, seeds=[served(site)])
    assert Counter(str(item.get("page") or item.get("entry")) for item in result.items) == {
        site.url("/"): 1, "/ok?one": 1, "/ok?two": 1, site.url("/ok?plain"): 1, site.url("/ok?one"): 1,
        site.url("/ok?two"): 1,
    }  # fmt: skip
    assert len({item["item_id"] for item in result.items}) == len(result.items)
    assert result.stats["focus/render/item_again"] == 1


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 5])
def test_the_server_sees_exactly_the_budget(site: MockSite, budget: int) -> None:
    """The browser's requests are a part of it."""
    result = crawl(Follower, {**RENDER_ALL, "FOCUS_BUDGET_REQUESTS": budget}, addon=True, seeds=[served(site)])
    assert len(site.log) == budget
    assert result.stats["focus/requests"] == budget
    assert result.reason == "focus_budget_requests"
    assert result.errors == {}


@pytest.mark.parametrize("mode", ["never", "always"])
def test_what_the_user_says_is_done(site: MockSite, mode: str) -> None:
    """No page is rendered, or each that may be, at once; files are fetched unrendered."""
    url = served(site)
    site.pages["/"] += '<a href="/file.csv">file</a>'
    site.answers["/file.csv"] = lambda _: (200, {"Content-Type": "text/csv"}, b"a,b")
    result = crawl(Follower, {**RENDER_ALL, "FOCUS_RENDER": mode}, addon=True, seeds=[url])
    assert site.asked.count(("GET", "/")) == 1
    assert site.asked.count(("GET", "/list.js")) == (mode == "always")
    assert files(site) == (["/ok?one", "/ok?plain", "/ok?two"] if mode == "always" else ["/ok?plain"])
    assert result.stats.get("focus/browser/read", 0) == (4 if mode == "always" else 0)
    assert result.stats.get("focus/link/render", 0) == 0


def test_a_spider_has_the_last_word(site: MockSite) -> None:
    """What it does not want rendered is not."""
    crawl(LeftToScrapy, RENDER_ALL, addon=True, seeds=[served(site)])
    assert site.asked.count(("GET", "/")) == 1


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_pages_wait_in_a_job_to_be_rendered(site: MockSite, tmp_path: Path, budget: int) -> None:
    """With their items; including those for which the budget was too small."""
    settings = {**RENDER_ALL, "JOBDIR": str(tmp_path / "job")}
    first = crawl(Described, {**settings, "FOCUS_BUDGET_REQUESTS": budget}, addon=True, seeds=[served(site)])
    assert first.reason == "focus_budget_requests"
    second = crawl(Described, settings, addon=True, seeds=[site.url("/")])
    assert files(site) == ["/ok?one", "/ok?plain", "/ok?two"]
    assert Counter(item.get("page") for item in first.items + second.items)[site.url("/")] == 1


@pytest.mark.usefixtures("no_browser")
def test_none_is_needed(site: MockSite) -> None:
    """One line says that there is none, and the crawl continues."""
    result = crawl(Follower, RENDER_ALL, addon=True, seeds=[served(site)])
    assert files(site) == ["/ok?plain"]
    assert result.outcomes == {"ok": 2}


@pytest.mark.usefixtures("no_browser")
def test_the_log_names_pages_that_seem_to_need_one(site: MockSite) -> None:
    """Pages that scripts seem to fill, by their template; not those without scripts."""
    url = app(site, 5)
    site.pages["/"] += "".join(f'<a href="/note/{i}">note</a>' for i in range(1, 6))
    for i in range(1, 6):
        site.pages[f"/note/{i}"] = "<html><body>nothing</body></html>"
    result = crawl(LinksOnly, RENDER_ALL, addon=True, seeds=[url])
    (said,) = (each.getMessage() for each in result.records if "Scripts seem to fill" in each.getMessage())
    assert f"{url.removeprefix('http://')}set/#' (5)" in said
    assert "note" not in said


def test_a_job_resumes_on_a_machine_without(site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages queued for a browser are done, and their plain pages count."""
    settings = {**RENDER_ALL, "JOBDIR": str(tmp_path / "job")}
    crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 1}, addon=True, seeds=[served(site)])
    monkeypatch.setattr(found, "find_browser", lambda _: found.Found(reason="this is a test"))
    result = crawl(Follower, settings, addon=True, seeds=[site.url("/")])
    assert result.reason == "finished"
    assert result.outcomes == {"browser": 1, "ok": 2}
    assert files(site) == ["/ok?plain"]


def processes_of(parent: int) -> list[int]:
    """Return the browsers among the processes that descend from one."""
    children: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        children[int(rest.split()[1])].append((int(path.parent.name), name))
    found_there, left = [], [parent]
    while left:
        for pid, name in children[left.pop()]:
            left.append(pid)
            if "chrom" in name:
                found_there.append(pid)
    return found_there


def send_browsers(number: int, kind: str = "") -> None:
    """Send a signal to all browsers of this process, or to those of their processes that are of a kind."""
    for pid in processes_of(os.getpid()):
        try:
            if kind and f"--type={kind}".encode() not in Path(f"/proc/{pid}/cmdline").read_bytes():
                continue
            os.kill(pid, number)
        except (ProcessLookupError, FileNotFoundError):
            continue


@pytest.mark.parametrize("kind", ["", "renderer"])
def test_a_browser_that_is_killed_is_started_again(site: MockSite, kind: str) -> None:
    """Its page is queued again, and is fetched; also if only the process of the page is killed.

    Requests about to be sent count as sent.
    """
    url = served(site)
    asked = []

    def kill_once(n: int) -> Any:
        asked.append(n)
        if n == 1:
            send_browsers(signal.SIGKILL, kind)
        return 200, {"Content-Type": "application/json"}, b'["/ok?one", "/ok?two"]'

    site.answers["/list.json"] = kill_once
    result = crawl(Follower, RENDER_ALL, addon=True, seeds=[url])
    assert len(asked) == 2
    assert files(site) == ["/ok?one", "/ok?plain", "/ok?two"]
    assert result.outcomes == {"ok": 5}
    assert len(site.log) <= result.stats["focus/requests"] <= len(site.log) + 2
    assert result.stats["focus/browser/started"] == (1 if kind else 2)


def test_one_that_always_dies_is_given_up(site: MockSite) -> None:
    """After three times the plain page counts."""
    url = served(site)
    site.answers["/list.json"] = lambda _: send_browsers(signal.SIGKILL)
    result = crawl(Follower, RENDER_ALL, addon=True, seeds=[url])
    assert result.reason == "finished"
    assert result.outcomes == {"ok": 2, "browser": 1}
    assert files(site) == ["/ok?plain"]
    assert result.errors == {}


def test_pages_that_are_rendered_at_once_have_no_plain_copy(site: MockSite) -> None:
    """Where the browser always dies with one, that is fetched."""
    url = served(site)
    site.answers["/list.json"] = lambda _: send_browsers(signal.SIGKILL)
    result = crawl(Follower, {"FOCUS_POLICY": RenderAtOnce}, addon=True, seeds=[url])
    assert files(site) == ["/ok?plain"]
    assert result.outcomes == {"ok": 2}
    assert site.asked.count(("GET", "/")) == 4


@pytest.mark.usefixtures("no_browser")
def test_pages_that_were_to_be_rendered_at_once_are_fetched_where_there_is_none(site: MockSite) -> None:
    """Unrendered, and once."""
    result = crawl(Follower, {"FOCUS_POLICY": RenderAtOnce}, addon=True, seeds=[served(site)])
    assert site.asked == [("GET", "/"), ("GET", "/ok?plain")]
    assert result.outcomes == {"ok": 2}


class Noting(RenderAtOnce):
    """Notes the methods by which pages were fetched."""

    def learn(self, outcome: Outcome) -> None:
        self.came = [*getattr(self, "came", []), outcome.pick.method]


@pytest.mark.parametrize("settings", [{}, {"FOCUS_RENDER": "never"}])
def test_the_policy_learns_that_no_browser_may_be_used(site: MockSite, settings: dict[str, Any]) -> None:
    """Without the add-on, or with rendering turned off, pages are fetched unrendered, and reported so."""
    result = crawl(Follower, {"FOCUS_POLICY": Noting, **settings}, addon=bool(settings), seeds=[served(site)])
    assert site.asked == [("GET", "/"), ("GET", "/ok?plain")]
    assert result.policy.came == ["GET", "GET"]


def test_one_that_hangs_is_given_up(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pages do not hold up the crawl for ever, and it is not closed for ever."""
    url = served(site)
    monkeypatch.setattr(keeper, "_LONGEST", 6.0)
    monkeypatch.setattr(keeper, "_CLOSING", 3.0)
    site.answers["/list.json"] = lambda _: send_browsers(signal.SIGSTOP)
    try:
        result = crawl(Follower, RENDER_ALL, addon=True, seeds=[url])
    finally:
        send_browsers(signal.SIGKILL)
    assert result.reason == "finished"
    assert result.outcomes == {"ok": 2, "browser": 1}
    assert result.stats["focus/browser/hung"] >= 1


def test_a_page_that_brings_too_much_is_closed(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then its plain copy counts, and it is not tried again."""
    monkeypatch.setattr(guard, "Limits", partial(Limits, page_bytes=1 << 20))
    url = served(site)
    site.answers["/list.json"] = lambda _: (200, {"Content-Type": "application/json"}, b" " * (8 << 20) + b"[]")
    result = crawl(Follower, RENDER_ALL, addon=True, seeds=[url])
    assert result.outcomes == {"ok": 2, "too_large": 1}
    assert site.asked.count(("GET", "/list.json")) == 1


def test_a_page_owes_the_delays_of_what_it_asked_for(site: MockSite) -> None:
    """The next page of its host is fetched so much later."""
    settings = {**RENDER_ALL, "DOWNLOAD_DELAY": 0.5, "DOWNLOAD_DELAY_JITTER": 0}
    crawl(Follower, settings, addon=True, seeds=[served(site)])
    at = {path: seen.at for seen in site.log if (path := seen.path) in ("/list.json", "/ok?one", "/ok?two")}
    first = min(at["/ok?one"], at["/ok?two"])
    assert first - at["/list.json"] >= 1.0, "two delays for two requests"


def test_files_that_scripts_make_are_stored(site: MockSite, tmp_path: Path) -> None:
    """Though no URL leads to them; each counts as a find."""
    site.pages["/"] = """<html><body><button id="save">Download CSV</button><script>
        document.getElementById("save").onclick = () => {
            const link = document.createElement("a");
            link.href = URL.createObjectURL(new Blob(["a,b"], {type: "text/csv"}));
            link.download = "prices.csv";
            link.click();
        };</script></body></html>"""
    settings = {**RENDER_ALL, "DOWNLOAD_DELAY": 0}
    result = crawl(DatasetsSpider, settings, addon=True, root=site.url("/"), out=str(tmp_path / "found"))
    (item,) = result.items
    assert (item.url, item.mime, item.page) == (site.url("/#prices.csv"), "text/csv", site.url("/"))
    assert (tmp_path / "found" / item.path).read_text() == "a,b"
    assert "A browser rendered 1 page, with" in (tmp_path / "found" / "index.html").read_text()
    assert result.stats["focus/reward"] == 1
