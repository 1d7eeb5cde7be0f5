"""Pages that need a browser: what it asks for is counted and refused, and a HEAD never starts one."""

from __future__ import annotations

import runpy
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest
from crawls import REACTOR, SomeHeadsFirst, crawl
from mocksite import MockSite
from scrapy import Request, Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from crawls import Crawled
    from scrapy.http import Response

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
pytest.importorskip("scrapy_playwright", reason="needs scrapy-playwright (pip install scrapy-focus[playwright])")
pytestmark = [
    pytest.mark.reactor,
    pytest.mark.skipif(not REACTOR, reason="scrapy-playwright needs Twisted's reactor: see test_reactor.py"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium (apt-get install chromium)"),
    pytest.mark.timeout(240),
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
    """Has the first page rendered, and fetches its links unrendered."""

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
    """Links that only exist in the browser are followed, and have the place that the script gave them."""
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


PageMethod = pytest.importorskip("scrapy_playwright.page").PageMethod
ELSEWHERE = "127.0.0.2"
# Whatever a page can make a browser ask for: by redirects, in frames, popups and workers, in the background.
GREEDY = """<html><head><link rel="stylesheet" href="/redirect?to=/file?type=text/css%26size=0"></head><body>
<a href="/greedy?2">2</a><a href="/greedy?3">3</a><a href="/greedy?4">4</a><a href="/greedy?5">5</a>
<img src="/file?type=image/png&size=9"><iframe src="/redirect?to=/framed"></iframe><iframe src="OTHER/framed"></iframe>
<script>
fetch("/redirect?to=/redirect?to=/ok?fetched"); fetch("OTHER/redirect?to=/ok?fetched").catch(() => 0);
fetch("/forbidden/api").catch(() => 0); fetch("/redirect?to=/forbidden/more").catch(() => 0);
navigator.sendBeacon("/redirect?to=/ok?beacon", "x"); fetch("/ok?kept", {keepalive: true});
const work = new Blob(["fetch('BASE/redirect?to=/ok?worker')"], {type: "text/javascript"});
new Worker(URL.createObjectURL(work)); new WebSocket("WSBASE/ok?socket"); new EventSource("/ok?events");
if (navigator.serviceWorker) navigator.serviceWorker.register("/file?type=text/javascript&size=0").catch(() => 0);
window.open("/framed?popup"); window.open("OTHER/framed?popup");
</script></body></html>"""
FRAMED = "<html><script>fetch('/redirect?to=/ok?framed'); new WebSocket('ws://' + location.host + '/ok?socket')</script></html>"
# Its links appear with a script's response, long after the page itself is loaded.
FETCHING = """<html><body><ul class="made"></ul><script>
const wait = new Promise(done => setTimeout(done, 1000));
wait.then(() => fetch("/ok?data")).then(answer => answer.text()).then(() => {
    for (const path of ["/ok?one", "/ok?two"])
        document.querySelector("ul").insertAdjacentHTML("beforeend", `<li><a href="${path}">${path}</a></li>`);
});
</script></body></html>"""


class Everywhere(Spider):
    """Has every page rendered, and follows its links."""

    name = "everywhere"

    def __init__(self, seeds: list[str], meta: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seeds = seeds
        self.meta = {"playwright": True, **(meta or {})}

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            yield Request(seed, meta=self.meta)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "links": response.css("a::attr(href)").getall(), "meta": dict(response.meta)}
        for link in response.css("a"):
            yield response.follow(link, meta=self.meta)


def pausing(milliseconds: int = 1500) -> dict[str, Any]:
    """Return the meta of a page that gets some time before it is read."""
    return {"playwright_page_methods": [PageMethod("wait_for_timeout", milliseconds)]}


@contextmanager
def greedy_sites(site: MockSite) -> Iterator[MockSite]:
    """Put greedy pages on a site, which ask another site too, and yield that one."""
    with MockSite(ELSEWHERE) as other:
        for name in ("", "?2", "?3", "?4", "?5"):
            page = GREEDY.replace("OTHER", other.url("")).replace("WSBASE", site.url("").replace("http", "ws"))
            site.pages[f"/greedy{name}"] = page.replace("BASE", site.url(""))
        for each in (site, other):
            each.pages["/framed"] = each.pages["/framed?popup"] = FRAMED
        yield other


def counted(result: Crawled, *sites: MockSite) -> tuple[int, int]:
    """Return how many requests the crawl counted, and how many lines the logs of the servers have."""
    assert result.errors == {}
    return result.stats["focus/requests"], sum(len(site.log) for site in sites)


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_the_servers_see_exactly_the_budget(site: MockSite, addon: bool) -> None:
    """Whatever the pages of a browser ask for, several at a time, the servers see as many requests as were allowed."""
    with greedy_sites(site) as other:
        settings = {**SETTINGS, "FOCUS_BUDGET_REQUESTS": 70, "ROBOTSTXT_OBEY": True, "FOCUS_BLOCKED_MIMES": []}
        result = crawl(Everywhere, settings, addon=addon, patience=200, seeds=[site.url("/greedy")], meta=pausing())
        assert counted(result, site, other) == (70, 70)
        assert result.reason == "focus_budget_requests"
        assert result.stats["focus/browser/refused/budget"] > 0
        assert result.stats["playwright/page_count/max_concurrent"] > 1
        assert "focus/browser/over" not in result.stats


def test_all_is_counted_and_robots_txt_holds(site: MockSite) -> None:
    """Without a budget each line in the logs is one counted request, and none is below a forbidden path."""
    with greedy_sites(site) as other:
        settings = {**SETTINGS, "ROBOTSTXT_OBEY": True, "FOCUS_BLOCKED_MIMES": []}
        result = crawl(Everywhere, settings, patience=200, seeds=[site.url("/greedy")], meta=pausing())
        mine, theirs = counted(result, site, other)
        assert mine == theirs > 100
        paths = [seen.path for each in (site, other) for seen in each.log]
        assert not [path for path in paths if path.startswith("/forbidden")]
        assert result.stats["focus/browser/refused/robots"] == 10
        assert {"/ok?fetched", "/ok?beacon", "/ok?worker", "/ok?socket", "/framed?popup"} <= set(paths)
        assert "/file?type=text/javascript&size=0" not in paths, "service workers are turned off"
        assert sorted(item["url"] for item in result.items) == sorted(
            site.url(f"/greedy{n}") for n in ("", "?2", "?3", "?4", "?5")
        )


def test_pages_load_from_where_they_may(site: MockSite) -> None:
    """With allowed domains, documents in frames and popups come only from these; scripts from anywhere, by default."""
    with greedy_sites(site) as other:
        crawl(
            Everywhere,
            SETTINGS,
            patience=200,
            seeds=[site.url("/greedy")],
            meta=pausing(),
            allowed_domains=["127.0.0.1"],
        )
        assert {seen.path for seen in other.log} == {"/redirect?to=/ok?fetched"}
        assert "/file?type=image/png&size=9" not in site.paths, "no images where nobody looks for any"
        del other.log[:]
        settings = {**SETTINGS, "FOCUS_BROWSER_OFFSITE": []}
        crawl(
            Everywhere,
            settings,
            patience=200,
            seeds=[site.url("/greedy")],
            meta=pausing(),
            allowed_domains=["127.0.0.1"],
        )
        assert other.log == []


def test_pages_that_lead_where_they_must_not(site: MockSite) -> None:
    """A page whose redirect is refused is ignored, or waits for a larger budget; it is not a failure."""
    seeds = [site.url("/redirect?to=/forbidden/page"), site.url("/ok")]
    result = crawl(Everywhere, {**SETTINGS, "ROBOTSTXT_OBEY": True}, seeds=seeds)
    assert result.outcomes == {"ignored": 1, "ok": 1}
    assert "/forbidden/page" not in site.paths
    del site.log[:]
    result = crawl(Everywhere, {**SETTINGS, "FOCUS_BUDGET_REQUESTS": 1}, seeds=[site.url("/redirect?to=/ok?2")])
    assert result.outcomes == {"budget": 1}
    assert counted(result, site) == (1, 1)


def test_bytes_of_all_answers_count(site: MockSite) -> None:
    """Bytes are those received over the network, of the page and all its requests, announced or not."""
    files = ["/file?type=text/plain&size=200000", "/file?type=text/plain&size=300000&hide=1"]
    site.pages["/big"] = f"<html><script>for (const file of {files}) fetch(file).then(a => a.text())</script></html>"
    result = crawl(Everywhere, SETTINGS, seeds=[site.url("/big")], meta=pausing())
    assert 500_000 < result.stats["focus/bytes"] < 505_000
    assert result.stats["focus/browser/bytes"] == result.stats["focus/bytes"]


def test_a_budget_of_bytes_ends_what_a_page_asks_for(site: MockSite) -> None:
    """A page that asks on and on gets no more when the bytes are used up."""
    site.pages["/endless"] = """<html><script>
    (async () => { for (let i = 0; i < 400; i++) await (await fetch(`/file?type=text/plain&size=100000&n=${i}`)).text(); })();
    </script></html>"""
    settings = {**SETTINGS, "FOCUS_BUDGET_BYTES": 1_000_000}
    result = crawl(Everywhere, settings, seeds=[site.url("/endless")], meta=pausing(5000))
    assert 10 <= len(site.log) < 30
    assert result.reason == "focus_budget_bytes"


def test_sockets_of_workers_end_with_the_budget(site: MockSite) -> None:
    """A worker that opens one web socket after the other is closed, with its page, when nothing is left for them."""
    work = "let i = 0; setInterval(() => new WebSocket(`WSBASE/ok?${i++}`), 50)".replace(
        "WSBASE", site.url("").replace("http", "ws")
    )
    site.pages["/worker"] = f"""<html><script>
    new Worker(URL.createObjectURL(new Blob([{work!r}], {{type: "text/javascript"}})));
    </script></html>"""
    result = crawl(
        Everywhere, {**SETTINGS, "FOCUS_BUDGET_REQUESTS": 10}, seeds=[site.url("/worker")], meta=pausing(8000)
    )
    assert result.stats["focus/requests"] == 10
    assert 10 <= len(site.log) < 60, "one each 50 ms for 8 s are 160"
    assert result.outcomes == {"budget": 1}


async def visited(page: Any, request: Request) -> None:
    """A callback of the user's."""
    request.meta["visited"] = [*request.meta.get("visited", []), page.url]


def is_unwanted(request: Any) -> bool:
    """What the user aborts."""
    return "events" in request.url or "kept" in request.url


@pytest.mark.parametrize("callback", [visited, f"{__name__}.visited"], ids=["function", "path"])
def test_what_the_user_has_set_holds_too(site: MockSite, callback: Any) -> None:
    """The user's callback is called with each page, and what the user aborts is not sent, and not counted."""
    with greedy_sites(site) as other:
        settings = {**SETTINGS, "PLAYWRIGHT_ABORT_REQUEST": is_unwanted}
        meta = {**pausing(), "playwright_page_init_callback": callback}
        result = crawl(Everywhere, settings, patience=200, seeds=[site.url("/greedy")], meta=meta)
        assert [item["meta"]["visited"] for item in result.items] == [["about:blank"]] * 5
        assert {str(item["meta"]["playwright_page_init_callback"]) for item in result.items} == {str(callback)}
        mine, theirs = counted(result, site, other)
        assert mine == theirs
        assert not {"/ok?events", "/ok?kept"} & set(site.paths)


def test_a_page_that_cannot_be_watched_loads_nothing(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a page cannot be watched, it sends nothing, and the crawl continues without it."""

    async def fail(*_: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("scrapy_focus.engine.browser.ways.Sockets.watch", fail)
    result = crawl(Everywhere, {**SETTINGS, "RETRY_ENABLED": False}, seeds=[site.url("/greedy")])
    assert site.log == []
    assert result.outcomes == {"failure": 1}
    assert result.errors["browser"] >= 1


@contextmanager
def shared_browser(folder: Path) -> Iterator[str]:
    """Run a Chromium that others may use too, and yield its address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [
        CHROMIUM,
        *SETTINGS["PLAYWRIGHT_LAUNCH_OPTIONS"]["args"],
        "--headless=new",
        f"--remote-debugging-port={port}",
    ]
    with subprocess.Popen([*command, f"--user-data-dir={folder}", "about:blank"], stderr=subprocess.DEVNULL) as browser:
        try:
            for _ in range(600):
                try:
                    with urlopen(f"http://127.0.0.1:{port}/json/version"):
                        break
                except OSError:
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            browser.terminate()


def test_a_browser_that_is_shared(site: MockSite, tmp_path: Path) -> None:
    """In a shared browser, budget and robots.txt hold for all requests except redirects and those of a closing page.

    An event source, for example, tries again and again.
    """
    page = (
        GREEDY.replace("/redirect?to=", "").replace("OTHER", "").replace("WSBASE", site.url("").replace("http", "ws"))
    )
    page = page.replace("new EventSource", "String")
    for name in ("", "?2", "?3", "?4", "?5"):
        site.pages[f"/greedy{name}"] = page.replace("BASE", site.url("")).replace("new WebSocket", "String")
    site.pages["/framed"] = site.pages["/framed?popup"] = FRAMED.replace("/redirect?to=", "")
    with shared_browser(tmp_path) as address:
        settings = {**SETTINGS, "PLAYWRIGHT_CDP_URL": address, "ROBOTSTXT_OBEY": True, "FOCUS_BUDGET_REQUESTS": 40}
        settings["PLAYWRIGHT_ABORT_REQUEST"] = is_unwanted
        del settings["PLAYWRIGHT_LAUNCH_OPTIONS"]
        result = crawl(Everywhere, settings, patience=200, seeds=[site.url("/greedy")], meta=pausing())
    assert counted(result, site) == (40, 40)
    assert not [seen for seen in site.log if seen.path.startswith("/forbidden")]
    assert result.stats["focus/browser/refused/robots"] >= 2
    assert "/ok?kept" not in site.paths


def snippet() -> str:
    """Return the documentation's example of waiting for what scripts fetch."""
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "javascript.rst").read_text()
    blocks = text.split(".. code-block:: python\n")[1:]
    block = next(block for block in blocks if "wait_for_selector" in block)
    lines = []
    for line in block.splitlines()[1:]:
        if line.strip() and not line.startswith("   "):
            break
        lines.append(line[3:])
    return "\n".join(lines)


def test_what_scripts_fetch_has_to_be_waited_for(site: MockSite, tmp_path: Path) -> None:
    """A page is read when it is loaded, before scripts have what they fetch; the example of the docs waits for it."""
    site.pages["/fetching"] = FETCHING
    assert crawl(Everywhere, SETTINGS, seeds=[site.url("/fetching")]).items[0]["links"] == []
    file = tmp_path / "catalogue.py"  # Scrapy reads the source of callbacks
    file.write_text(snippet())
    result = crawl(runpy.run_path(str(file))["Catalogue"], SETTINGS, start_urls=[site.url("/fetching")])
    assert sorted(item["url"] for item in result.items) == [site.url("/ok?one"), site.url("/ok?two")]
    assert result.errors == {}


def test_waiting_until_nothing_is_fetched(site: MockSite) -> None:
    """``networkidle`` waits for immediate requests, whatever they are."""
    site.pages["/fetching"] = FETCHING.replace("1000", "100")
    meta = {"playwright_page_goto_kwargs": {"wait_until": "networkidle"}}
    result = crawl(Everywhere, SETTINGS, seeds=[site.url("/fetching")], meta=meta)
    assert result.items[0]["links"] == ["/ok?one", "/ok?two"]
