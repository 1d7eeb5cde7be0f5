"""``scrapy focus-record --render``: pages as a browser shows them, what that took, and crawls that are simulated on
them.
"""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crawls import REACTOR, crawl
from test_record_command import run

from scrapy_focus import FilesGoal
from scrapy_focus.core.log import EventLog, read_log
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.scripted.plan import Api, Mix
from scrapy_focus.lab.sites.scripted.site import ScriptedSite
from scrapy_focus.lab.sites.server import SiteServer
from scrapy_focus.policies.branching.policy import BranchingBandit
from tests.made import Renders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mocksite import MockSite

sys.path.insert(0, str(Path(__file__).parents[2] / "example_project"))
from scrapy_focus.finders.files.spider import DatasetsSpider

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HAS_BROWSER = find_spec("scrapy_playwright") is not None and CHROMIUM is not None
needs_browser = pytest.mark.skipif(not HAS_BROWSER, reason="needs scrapy-playwright, and Debian's chromium")
pytestmark = pytest.mark.timeout(600)
LIVE = {"FOCUS_MAX_INFLIGHT": 1, "FOCUS_SEED": 5, "ROBOTSTXT_OBEY": True, "COOKIES_ENABLED": False}


def test_other_sources_have_no_browser(tmp_path: Path) -> None:
    """Their error says so, like those of options that do not fit."""
    _, logged = run(tmp_path, "x.sqlite", "--folder", ".", "--render", expect=2)
    assert "--render are for recording a live site, which --folder is not" in logged
    root = ["-a", "root=http://127.0.0.1:9/"]
    _, logged = run(tmp_path, "x.sqlite", *root, "--render-pages", "none", expect=2)
    assert "--render-pages is 'none'; it takes a number from 1" in logged
    assert not (tmp_path / "x.sqlite").exists()


def test_without_a_browser_it_says_what_to_do(tmp_path: Path) -> None:
    """Before anything is asked for."""
    nowhere = 'PLAYWRIGHT_LAUNCH_OPTIONS={"executable_path": "/nowhere/chromium"}'
    _, logged = run(tmp_path, "x.sqlite", "-a", "root=http://127.0.0.1:9/", "--render", "-s", nowhere, expect=2)
    assert "--render needs a browser: " in logged
    assert not (tmp_path / "x.sqlite").exists()


@pytest.fixture(scope="module")
def served() -> Iterator[SiteServer]:
    """A small scripted site."""
    mix = Mix(lists=2, app_lists=2, per_app_list=3, collections=0, news=2, exports=2)
    site = ScriptedSite(mix=mix, seed=1, apis=[Api("next", "urls"), Api("pages", "ids")])
    with SiteServer(site, validators=True) as server:
        yield server


@pytest.fixture(scope="module")
def recorded(served: SiteServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[RecordedSite, Any]:
    """A recording of it, in two runs, and the requests of the server."""
    folder = tmp_path_factory.mktemp("rendered")
    served.log.clear()
    words = ["site.sqlite", "-a", f"root={served.url}", "--bodies"]
    said, _ = run(folder, *words, "--render-pages", "2")
    assert "2 pages were rendered" in said
    assert "with scripts were not" in said
    said, _ = run(folder, *words, "--render")
    assert "with scripts were not" not in said.splitlines()[-2]
    return RecordedSite(folder / "site.sqlite"), [(each.method, each.path) for each in served.log]


@needs_browser
def test_both_copies_are_recorded(served: SiteServer, recorded: tuple[RecordedSite, Any]) -> None:
    """Including links of scripts, which a recording without a browser does not reach; lists have one copy."""
    site, there = recorded[0], served.site
    assert isinstance(there, ScriptedSite)

    def leads(answer: int) -> set[str]:
        urls = [site.urls[target] for target in site.targets[site.links(answer)]]
        return {"/" + url.removeprefix(served.url) for url in urls}

    at = {path: site.ids[served.url + path[1:]] for path in there.html_paths()}
    for path, page in at.items():
        assert leads(page) == set(there.plain_links(path)), path
        assert (page in site.renderings) == (path != "/" and there.kind_of(path) != "lists")
        if page in site.renderings:
            assert leads(site.renderings[page].answer) == set(there.rendered_links(path)), path
    targets = [site.ids[served.url + path[1:]] for path in there.targets()]
    assert site.recorded[targets].all()
    assert site.completeness().unrendered == 0


@needs_browser
def test_what_pages_took_is_recorded(served: SiteServer, recorded: tuple[RecordedSite, Any]) -> None:
    """As many requests as the server saw; the scripts that all pages share are fetched and counted once."""
    site, asked = recorded
    shown = site.renderings
    news = shown[site.ids[f"{served.url}news/1"]]
    app = shown[site.ids[f"{served.url}{next(served.site.html_paths('app'))[1:]}"]]
    assert (news.requests, app.requests) == (0, 1)
    assert len(news.assets) == 2
    assert {asset for each in shown.values() for asset in each.assets} == set(news.assets)
    assert 200_000 < sum(size for _, size in news.assets) < 250_000
    assert news.received < 10_000
    paths = [path for _, path in asked if path != "/robots.txt" and not path.endswith((".js", ".css"))]
    besides = sum(each.requests for each in shown.values())
    assert len(paths) == int(site.recorded.sum()) + len(shown) + besides
    assert 2 * len(news.assets) <= len(asked) - len(paths) - 2 <= 8 * len(news.assets), "2 runs, 4 pages at a time"
    assert not [path for method, path in asked if method == "POST"]


@needs_browser
@pytest.mark.reactor
@pytest.mark.skipif(not REACTOR, reason="scrapy-playwright needs Twisted's reactor: see test_reactor.py")
def test_live_and_simulated_crawls_are_the_same(
    served: SiteServer, recorded: tuple[RecordedSite, Any], tmp_path: Path
) -> None:
    """Pick by pick, including renderings; and if no page is rendered, too."""
    for mode in ("learn", "never"):
        logs = [tmp_path / f"{mode}-{name}.jsonl" for name in ("live", "simulated")]
        settings = {**LIVE, "FOCUS_POLICY": Renders, "FOCUS_LOG": str(logs[0]), "FOCUS_RENDER": mode}
        crawled = crawl(
            DatasetsSpider, settings, addon=True, patience=300, root=served.url, out=str(tmp_path / f"found-{mode}")
        )  # fmt: skip
        assert not crawled.errors
        simulate(Renders(), FilesGoal(), recorded[0], seed=5, log=EventLog(str(logs[1])), render=mode)  # type: ignore[arg-type]
        live, simulated = (
            [(each["method"], each["url"]) for each in read_log(log) if each["event"] == "pick"] for log in logs
        )
        assert live == simulated
        assert any(method == "RENDER" for method, _ in live) == (mode == "learn")


SHELL = "<html><body><ul></ul><script src='/app.js'></script></body></html>"
APP = b"""fetch("/part" + location.pathname).then(answer => answer.text()).then(html => {
    document.querySelector("ul").innerHTML = html;
});"""


def app_of(site: MockSite, n: int) -> None:
    """Give a site pages whose scripts fetch HTML, without an API to learn, and news whose scripts do nothing."""
    news = "".join(f'<a class="news" href="/news/{i}">{i}</a>' for i in range(n))
    site.pages["/"] = f"<nav>{''.join(f'<a href=/set/{i}>{i}</a>' for i in range(n))}</nav>{news}"
    site.answers["/app.js"] = lambda _: (200, {"Content-Type": "text/javascript", "Cache-Control": "max-age=999"}, APP)
    for i in range(n):
        site.pages[f"/set/{i}"] = SHELL
        site.pages[f"/news/{i}"] = (
            f"<p>{i}<a href='/file?type=text/csv&size={900 + i}'>file</a><script>fetch('/forbidden/{i}')</script>"
        )
        files = "".join(f"<li><a href='/file?type=text/csv&size={100 * i + k}'>{k}</a></li>" for k in (1, 2))
        site.pages[f"/part/set/{i}"] = files


def recording_of(site: MockSite, folder: Path, *words: str) -> RecordedSite:
    """Record a site with a browser."""
    run(folder, "mock.sqlite", "-a", f"root={site.url('/')}", "--render", *words)
    return RecordedSite(folder / "mock.sqlite")


@needs_browser
@pytest.mark.reactor
@pytest.mark.skipif(not REACTOR, reason="scrapy-playwright needs Twisted's reactor: see test_reactor.py")
def test_the_default_policy_chooses_the_same(site: MockSite, tmp_path: Path) -> None:
    """Live and simulated, with learned costs; no script leads a crawl to URLs that robots.txt forbids."""
    app_of(site, 6)
    recorded = recording_of(site, tmp_path)
    assert not recorded.unrendered
    logs = [tmp_path / "live.jsonl", tmp_path / "simulated.jsonl"]
    settings = {**LIVE, "FOCUS_POLICY": BranchingBandit, "FOCUS_LOG": str(logs[0]), "FOCUS_PUBLIC_ONLY": False}
    del site.log[:]
    args = {"root": site.url("/"), "out": str(tmp_path / "found"), "sitemaps": "no"}
    crawled = crawl(DatasetsSpider, settings, addon=True, patience=300, **args)
    assert not crawled.errors
    harvest = simulate(BranchingBandit(), FilesGoal(stored=True), recorded, seed=5, log=EventLog(str(logs[1])))
    live, simulated = (
        [
            (each["event"], each.get("method"), each.get("url"), each.get("error"), each.get("reward"))
            for each in read_log(log)
            if each["event"] in ("pick", "outcome")
        ]
        for log in logs
    )
    assert live == simulated
    assert harvest.found[-1] == 18
    assert harvest.counts["browser/read"] > 6
    assert harvest.requests == len([path for path in site.paths if path != "/robots.txt"])
    assert not [path for path in site.paths if path.startswith("/forbidden")]


@needs_browser
def test_a_page_owes_a_delay_for_each_request(site: MockSite, tmp_path: Path) -> None:
    """However fast its scripts ask."""
    asks = "".join(f"fetch('/ok?{{}}-{k}');" for k in range(3))
    site.pages["/"] = "<a href='/one'>one</a><a href='/two'>two</a>"
    for name in ("one", "two"):
        site.pages[f"/{name}"] = f"<script>{asks.replace('{}', name)}</script>"
    slowly = ["-s", "DOWNLOAD_DELAY=0.3", "-s", "RANDOMIZE_DOWNLOAD_DELAY=0", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=1"]
    recorded = recording_of(site, tmp_path, *slowly)
    assert [each.requests for each in recorded.renderings.values()] == [3, 3]
    at = {seen.path: seen.at for seen in site.log}  # the last time of each
    assert at["/two"] - at["/one"] >= 2.5 * 0.3
