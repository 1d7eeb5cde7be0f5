"""Pages that a policy wants rendered are, whichever worker has them, and count for all."""

from __future__ import annotations

import json
import os
import shutil
import signal
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crawls import REACTOR, Follower

from scrapy_focus.core.types import Placement
from scrapy_focus.engine.browser import found
from scrapy_focus.policies.orderings import BreadthFirst
from tests.cluster.workers import share, share_among

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mocksite import MockSite
    from scrapy.http import Response

    from scrapy_focus.core.types import Outcome

pytestmark = [
    pytest.mark.skipif(find_spec("scrapy_playwright") is None, reason="needs scrapy-playwright"),
    pytest.mark.skipif(not REACTOR, reason="scrapy-playwright needs Twisted's reactor: see test_reactor.py"),
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium"),
    pytest.mark.timeout(600),
]
SCRIPT = b"""const n = location.pathname.slice(-1);
for (const name of ["a", "b"]) document.body.insertAdjacentHTML("beforeend", `<a href="/ok?${n}${name}">${name}</a>`);"""


class RenderAll(BreadthFirst):
    """Has every page rendered that has scripts."""

    def render(self, outcome: Outcome) -> Placement:
        return Placement(0, 0.0, method="RENDER")


class RenderAtOnce(RenderAll):
    """Has every page rendered, and looks at no plain one."""

    def place(self, links: Any, source: Any) -> Any:
        return [place._replace(method="RENDER") for place in super().place(links, source)]


class Finder(Follower):
    """Yields an item for each page without further links, and follows links."""

    def parse(self, response: Response) -> Iterator[Any]:
        if "/ok?" in response.url:
            yield {"url": response.url}
        else:
            yield from response.follow_all(css="a")


@pytest.fixture
def sites(sites: list[MockSite]) -> list[MockSite]:
    """Sites with four pages each, whose scripts show two links each."""
    for site in sites:
        site.answers["/show.js"] = lambda _: (200, {"Content-Type": "text/javascript"}, SCRIPT)
        for i in range(4):
            site.pages[f"/page{i}"] = '<html><body><script src="/show.js"></script></body></html>'
    return sites


def test_workers_render(sites: list[MockSite], tmp_path: Path) -> None:
    """Each page is fetched twice, and the links that its scripts show once."""
    seeds = [site.url(f"/page{i}") for site in sites for i in range(4)]
    result = share(Follower, tmp_path, {"FOCUS_POLICY": RenderAll}, addon=True, seeds=seeds)
    for site in sites:
        paths = [path for path in site.paths if path != "/show.js"]
        shown = [f"/ok?{i}{x}" for i in range(4) for x in "ab"]
        assert sorted(paths) == sorted([f"/page{i}" for i in range(4)] * 2 + shown)
    assert result.outcomes == {"ok": 16 * len(sites)}
    assert result.errors == {}
    assert result.crawl.budget.requests_used == sum(len(site.log) for site in sites)


@pytest.mark.few(1)
@pytest.mark.parametrize("mode", ["learn", "always"])
def test_the_servers_see_exactly_the_budget(sites: list[MockSite], tmp_path: Path, mode: str) -> None:
    """The requests of all workers' browsers are a part of it."""
    seeds = [site.url(f"/page{i}") for site in sites for i in range(4)]
    settings = {"FOCUS_POLICY": RenderAll, "FOCUS_BUDGET_REQUESTS": 15, "FOCUS_RENDER": mode}
    result = share(Follower, tmp_path, settings, addon=True, seeds=seeds)
    assert sum(len(site.log) for site in sites) == result.crawl.budget.requests_used == 15
    assert result.reasons == {"focus_budget_requests"}


def plain_and_shown(sites: list[MockSite]) -> tuple[list[str], list[str]]:
    """Return the requests: for pages known from the beginning, and for those that scripts show."""
    paths = [site.url(path) for site in sites for path in site.paths if path != "/show.js"]
    return sorted(path for path in paths if "/page" in path), sorted(path for path in paths if "/ok" in path)


def seeds_of(sites: list[MockSite]) -> list[str]:
    return sorted(site.url(f"/page{i}") for site in sites for i in range(4))


def shown_on(site: MockSite) -> list[str]:
    return sorted(site.url(f"/ok?{i}{x}") for i in range(4) for x in "ab")


def test_all_pages_are_rendered(sites: list[MockSite], tmp_path: Path) -> None:
    """With FOCUS_RENDER = "always" each is rendered at once, by any worker; all requests are counted."""
    result = share(Follower, tmp_path, {"FOCUS_RENDER": "always"}, addon=True, seeds=seeds_of(sites))
    pages, shown = plain_and_shown(sites)
    assert pages == seeds_of(sites)
    assert shown == sorted(url for site in sites for url in shown_on(site))
    assert result.reasons == {"finished"}
    assert result.errors == {}
    assert result.crawl.budget.requests_used == sum(len(site.log) for site in sites)
    assert len(result.logged("All pages are rendered, by ")) == 2


@pytest.mark.few(1)
@pytest.mark.parametrize("mode", ["learn", "at once", "always"])
def test_a_worker_without_a_browser_takes_part(
    sites: list[MockSite], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """It logs that in one line, and fetches the pages of its hosts unrendered; none is lost or fetched twice."""

    def find(settings: Any, really: Any = found.find_browser) -> found.Found:
        return found.Found(reason="this is a test") if settings.getbool("WITHOUT") else really(settings)

    monkeypatch.setattr(found, "find_browser", find)
    policy = {"learn": RenderAll, "at once": RenderAtOnce, "always": BreadthFirst}[mode]
    settings = {"FOCUS_POLICY": policy, "FOCUS_RENDER": "always" if mode == "always" else "learn"}
    args = {"seeds": seeds_of(sites)}
    result = share_among(
        [(Follower, settings, args), (Follower, {**settings, "WITHOUT": True}, args)], tmp_path, addon=True
    )
    pages, shown = plain_and_shown(sites)
    assert {*pages} == {*seeds_of(sites)}
    rendered = [site for site in sites if site.paths.count("/show.js")]
    assert shown == sorted(url for site in rendered for url in shown_on(site))
    assert len(pages) == 4 * len(sites) + 4 * len(rendered) * (mode == "learn")
    assert result.reasons == {"finished"}
    assert result.errors == {}
    assert {*result.outcomes} == {"ok"}
    assert len(result.logged("Pages are not rendered: this is a test")) == 1
    assert result.crawl.budget.requests_used == sum(len(site.log) for site in sites)


def test_no_worker_has_one(sites: list[MockSite], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that were to be rendered are fetched unrendered."""
    monkeypatch.setattr(found, "find_browser", lambda _: found.Found(reason="this is a test"))
    result = share(Follower, tmp_path, {"FOCUS_POLICY": RenderAtOnce}, addon=True, seeds=seeds_of(sites))
    assert plain_and_shown(sites) == (seeds_of(sites), [])
    assert result.outcomes == {"ok": 4 * len(sites)}
    assert result.errors == {}


def kill_browsers() -> None:
    """Kill all browsers that descend from this process."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            parents[int(path.parent.name)] = int(rest.split()[1]), name
    for pid, (parent, name) in parents.items():
        above = parent
        while above in parents and above != os.getpid():
            above, _ = parents[above]
        if above == os.getpid() and "chrom" in name:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_a_browser_of_a_worker_that_is_killed_is_started_again(sites: list[MockSite], tmp_path: Path) -> None:
    """Its page is queued again, and nothing is lost. Requests about to be sent count as sent."""
    asked = []

    def kill_once(_: int) -> Any:
        asked.append(1)
        if len(asked) == 3:
            kill_browsers()
        return 200, {"Content-Type": "text/javascript"}, SCRIPT

    for site in sites:
        site.answers["/show.js"] = kill_once
    result = share(Follower, tmp_path, {"FOCUS_POLICY": RenderAll}, addon=True, seeds=seeds_of(sites))
    assert len(asked) >= 3
    assert plain_and_shown(sites)[1] == sorted(url for site in sites for url in shown_on(site))
    assert result.outcomes == {"ok": 16 * len(sites)}
    assert result.errors == {}
    assert result.crawl.budget.requests_used >= sum(len(site.log) for site in sites)


APP = b"""fetch("/api" + location.pathname).then(answer => answer.json()).then(data => data.files.forEach(file =>
    document.querySelector("ul").insertAdjacentHTML("beforeend",
        `<li><a href="/ok?${data.id}-${file.name}">${file.name}</a></li>`)));"""
SETS = 8


@pytest.fixture
def apps(sites: list[MockSite]) -> list[MockSite]:
    """Sites of pages that are all the same shell over an API."""
    for site in sites:
        site.pages["/"] = "".join(f'<a href="/set/{i}">{i}</a>' for i in range(1, SETS + 1))
        site.answers["/app.js"] = lambda _: (200, {"Content-Type": "text/javascript"}, APP)
        for i in range(1, SETS + 1):
            site.pages[f"/set/{i}"] = "<html><body><ul></ul><script src='/app.js'></script></body></html>"
            data = json.dumps({"id": i, "files": [{"name": f"a{i}"}, {"name": f"b{7 * i}"}]}).encode()
            site.answers[f"/api/set/{i}"] = lambda _, data=data: (200, {"Content-Type": "application/json"}, data)  # type: ignore[misc]
    return sites


def test_the_next_workers_need_fewer_plain_pages(apps: list[MockSite], tmp_path: Path) -> None:
    """What renderings taught is in the file of the leader."""
    path, plain = tmp_path / "learned.npz", []
    for run in range(2):
        for site in apps:
            site.log.clear()
        settings = {"FOCUS_LEARNED_TO": str(path), "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "FOCUS_SEED": 1}
        if run:
            settings["FOCUS_LEARNED_FROM"] = str(path)
        result = share(Finder, tmp_path / str(run), settings, addon=True, seeds=[site.url("/") for site in apps])
        assert result.reasons == {"finished"}
        assert result.errors == {}
        assert len({item["url"] for item in result.items}) == len(result.items) == 2 * SETS * len(apps)
        assert result.crawl.budget.requests_used == sum(len(site.log) for site in apps)
        assert result.total("focus/browser/read") == SETS * len(apps)
        plain.append(sum(len(site.log) for site in apps))
    assert plain[1] < plain[0]
