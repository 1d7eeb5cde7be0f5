"""Pages that do their worst to a browser: the crawl ends well, and reports what it met."""

from __future__ import annotations

import json
import random
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from badsite import MOST, BadSite, as_json, is_from_browser, page
from crawls import Follower, crawl
from readers import NEEDS
from scrapy import Request
from test_rendering import RENDER_ALL, RenderAtOnce, app, files, send_browsers

from scrapy_focus.engine.browser import guard
from scrapy_focus.engine.browser.visit import Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from crawls import Crawled
    from mocksite import Answer
    from scrapy.http import Response

pytestmark = NEEDS
LISTS = "<ul></ul>"
SHORT = Limits(load=4, quiet=4, seconds=10, rounds=2, painted=4, page_bytes=4 << 20, file_bytes=1 << 20)
MORE = '<button id="more">More</button>'
SAVE = '<button id="save">Download</button>'

# Scripts, and what they add to their page.
SURVIVED = {
    "dialogs": ("alert(1); confirm(2); prompt(3); print(); onbeforeunload = (event) => event.preventDefault();", LISTS),
    "alerts": ("setTimeout(() => { for (;;) alert(1) }, 50)", LISTS),
    "confirming": ("for (let n = 0; n < 50; n++) confirm(n)", LISTS),
    "unloading": ("onbeforeunload = onpagehide = onunload = () => { for (;;); }", LISTS),
    "windows": ("for (let n = 0; n < 5; n++) window.open(`/ok?window${n}`)", LISTS),
    "endless_script": ("setTimeout(() => { for (;;); }, 100)", LISTS),
    "restless": ("setInterval(() => list.append(document.createElement('li')), 20)", LISTS),
    "waiting": ("", f"{LISTS}<script src='/hang' async></script>"),
    "mailing": ("location.href = 'mailto:somebody@example.org'", LISTS),
    "leaving": ("location.href = '/hang'", LISTS),
    "elsewhere": ("location.href = 'chrome://crash'", LISTS),
    "in_file": ("location.href = 'file:///etc/passwd'", LISTS),
    "download": ("location.href = '/endless?type=application/zip&name=a.zip'", LISTS),
    "downloads": ("for (let n = 0; n < 3; n++) save(`/endless?type=application/zip&name=b${n}.zip`, 'b')", LISTS),
    "button": ("on('save', () => save('/endless?type=application/zip&name=c.zip', 'c'))", LISTS + SAVE),
    "made": ("on('save', () => save(URL.createObjectURL(new Blob([new ArrayBuffer(2e8)])), 'd'))", LISTS + SAVE),
    "made_at_once": ("save(URL.createObjectURL(new Blob([new ArrayBuffer(2e8)])), 'e')", LISTS),
    "observers": ("window.MutationObserver = class { observe() { throw 1 } disconnect() { throw 1 } }", LISTS),
    "arrays": ("Array.prototype.map = Array.prototype.some = Array.prototype.push = () => { throw 1 }", LISTS),
    "clocks": ("performance.now = () => 1; window.requestAnimationFrame = window.setTimeout = () => 0", LISTS),
    "closing": ("setTimeout(() => window.close(), 100)", LISTS),
    "pushing": ("setInterval(() => history.pushState({}, '', '/elsewhere/' + Math.random()), 2)", LISTS),
    "other_schemes": ("location.href = 'data:text/html,x'; list.append(new DOMParser().parseFromString('', 'text/html'))", LISTS),
}  # fmt: skip
# The same, for pages whose rendering is abandoned: the name of the failure. Then the plain page counts.
GIVEN_UP = {
    "large": ("fetch('/endless?type=application/json')", LISTS, "too_large"),
    "large_frame": ("", f"{LISTS}<iframe src='/endless?type=text/html'></iframe>", "too_large"),
    "window_after_window": ("for (let n = 0; n < 60; n++) window.open(`/ok?window${n}`)", LISTS, "ignored"),
    "bouncing": ("location.href = '/bad/bouncing?' + Math.random()", LISTS, "ignored"),
    "blank": ("setTimeout(() => location.href = 'about:blank', 20)", LISTS, "browser"),
    "broken": ("window.Promise = window.Map = window.Set = undefined; JSON.stringify = 1", LISTS, "browser"),
}


class Links(Follower):
    """Follows links with an ordinary scheme, and yields no items; counts links that are too many."""

    def parse(self, response: Response) -> Iterator[Any]:
        if response.headers.get("Content-Type", b"").startswith(b"text/html"):
            for href in response.css("a::attr(href)").getall():
                if "/many/" in href:
                    self.crawler.stats.inc_value("many")
                elif not href.startswith(("javascript:", "data:", "#")):
                    yield response.follow(href)


class FromOne(Links):
    """Starts with the given pages only."""

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            yield Request(seed)


def served(site: BadSite, pages: dict[str, str], for_browsers: dict[str, str] | None = None) -> str:
    """Give a site pages, each with a link in its plain copy, and a page that links to them; return its URL."""
    for name, text in pages.items():
        site.pages[f"/bad/{name}"] = text.replace("<body>", f'<body><a href="/ok?plain-{name}">plain</a>', 1)
        if for_browsers and name in for_browsers:
            site.for_browsers[f"/bad/{name}"] = for_browsers[name]
    site.pages["/"] = "".join(f'<a href="/bad/{name}">{name}</a>' for name in pages)
    return site.url("/")


def outcomes(result: Crawled, method: str = "RENDER") -> dict[str, str]:
    """Return how each rendering ended, by the name of its page."""
    picks, ended = {}, {}
    for event in result.events():
        if event["event"] == "pick" and event["method"] == method:
            picks[event["id"]] = event["url"].rpartition("/")[2]
        elif event["event"] == "outcome" and event["id"] in picks:
            ended[picks[event["id"]]] = event["error"]
    return ended


@pytest.fixture
def bad() -> Iterator[BadSite]:
    """A site."""
    with BadSite() as site:
        yield site


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less patience with pages."""
    monkeypatch.setattr(guard, "Limits", lambda: SHORT)


@pytest.mark.usefixtures("short")
def test_whatever_a_page_does_it_is_read(bad: BadSite, tmp_path: Any) -> None:
    """Its content until then is found, and what its scripts did is counted; the crawl continues with the others."""
    pages = {name: page(f"add('/ok?{name}'); {script}", body) for name, (script, body) in SURVIVED.items()}
    pages["good"] = page("get('/late.json').then((urls) => urls.forEach(add))")
    bad.answers["/late.json"] = lambda _: as_json(["/ok?late"])
    result = crawl(Links, {**RENDER_ALL, "FOCUS_LOG": str(tmp_path / "log")}, addon=True, seeds=[served(bad, pages)])
    ended = outcomes(result)
    assert ended == dict.fromkeys(pages, "")
    wanted = {f"/ok?{name}" for name in SURVIVED} | {f"/ok?plain-{name}" for name in pages} | {"/ok?late"}
    assert wanted - set(bad.paths) == set()
    assert result.reason == "finished"
    assert result.errors == {}
    stats = result.stats
    assert 30 <= stats["focus/browser/dialogs"] <= 50
    assert stats["focus/browser/windows"] == 5
    assert stats["focus/browser/downloads"] >= 3
    assert stats["focus/browser/cut"] >= 5
    assert stats["focus/browser/started"] == 1
    assert not [name for name in stats if "hung" in name]
    assert "/endless?type=application/zip&name=a.zip" in [path for path in bad.paths if bad.paths.count(path) == 2], (
        "what is no page is a link of the page that led there, and the browser does not go on asking for it"
    )
    assert all(n < MOST for n in bad.streamed.values())


@pytest.mark.usefixtures("short")
def test_pages_that_are_given_up_are_named(bad: BadSite, tmp_path: Any) -> None:
    """Each has an outcome with the reason, its plain page counts, and no large body is read to its end."""
    pages = {name: page(f"add('/ok?{name}'); {script}", body) for name, (script, body, _) in GIVEN_UP.items()}
    pages["large_page"] = pages["good"] = page("get('/late.json').then((urls) => urls.forEach(add))")
    bad.answers["/late.json"] = lambda _: as_json(["/ok?late"])
    for_browsers = {"large_page": "<script>location.replace('/endless?type=text/html')</script>"}
    bouncing = pages.pop("bouncing")
    root = served(bad, {**pages, "bouncing": bouncing}, for_browsers)
    answer = bad.answer
    bad.answer = lambda path: answer(path.partition("?")[0] if "bouncing?" in path else path)  # type: ignore[method-assign]
    result = crawl(Links, {**RENDER_ALL, "FOCUS_LOG": str(tmp_path / "log")}, addon=True, seeds=[root])
    wanted = {name: label for name, (_, _, label) in GIVEN_UP.items()} | {"large_page": "too_large", "good": ""}
    assert {name: "too_large" if "TooLarge" in label else label for name, label in outcomes(result).items()} == wanted
    assert {f"/ok?plain-{name}" for name in wanted} | {"/ok?late"} <= set(bad.paths)
    assert result.reason == "finished"
    assert result.stats["focus/outcome/too_large"] == 3
    assert result.stats["focus/browser/refused/windows"] == 1
    assert result.stats["focus/browser/refused/moves"] >= 1
    assert all(n < MOST for n in bad.streamed.values())


def test_a_browser_that_is_killed_loses_no_page(site: Any) -> None:
    """Its pages are queued again, and all others are fetched."""
    url = app(site, 12)
    api = site.answers["/api/set/2"]

    def kill_once(n: int) -> Any:
        if n == 1:
            send_browsers(signal.SIGKILL)
        return api(n)

    site.answers["/api/set/2"] = kill_once
    result = crawl(Follower, RENDER_ALL, addon=True, seeds=[url])
    assert len(files(site)) == 24
    assert result.reason == "finished"
    assert result.stats["focus/browser/started"] >= 2
    assert result.stats["retry/reason_count/browser"] >= 1


def test_a_page_asks_for_no_more_than_so_much(bad: BadSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that asks without end, by itself or by its frames, spends not all of the budget; what it shows is read."""
    monkeypatch.setattr(guard, "Limits", partial(Limits, requests=40))
    many = "for (let n = 0; n < 1000; n++) fetch(`/tiny?${location.pathname}-${n}`).catch(() => 0);"
    frame = f"<script>{many}</script>"
    pages = {
        "self": page(f"add('/ok?self'); {many}"),
        "frames": page("add('/ok?frames')", LISTS + "<iframe src='/in'></iframe>"),
    }
    bad.answers["/in"] = lambda _: (200, {"Content-Type": "text/html"}, frame.encode())
    result = crawl(Links, RENDER_ALL, addon=True, seeds=[served(bad, pages)])
    assert {"/ok?self", "/ok?frames"} <= set(bad.paths)
    assert result.stats["focus/browser/refused/many"] >= 1900
    assert len([path for path in bad.paths if path.startswith("/tiny")]) <= 2 * 40
    assert result.stats["focus/browser/cut"] == 2


def test_lists_of_a_hundred_thousand(bad: BadSite) -> None:
    """A list that scripts make is read in whole."""
    script = "list.innerHTML = Array.from({length: 100000}, (_, n) => `<li><a href=/many/${n}>x</a>`).join('')"
    result = crawl(Links, RENDER_ALL, addon=True, seeds=[served(bad, {"list": page(script)})])
    assert result.stats["many"] == 100_000
    assert result.outcomes == {"ok": 4}


def test_links_in_components(bad: BadSite) -> None:
    """Content of an open shadow tree is found, at the place of its element, and its buttons are clicked."""
    script = """customElements.define("x-list", class extends HTMLElement { connectedCallback() {
        const root = this.attachShadow({mode: "open"});
        root.innerHTML = "<ol><li><a href=/ok?shadow>x</a></ol><button>More</button>";
        root.querySelector("button").onclick = () => root.querySelector("ol").innerHTML += "<li><a href=/ok?more>y</a>";
    } })"""
    result = crawl(
        Links, RENDER_ALL, addon=True, seeds=[served(bad, {"list": page(script, LISTS + "<x-list></x-list>")})]
    )
    assert files(bad) == ["/ok?more", "/ok?plain-list", "/ok?shadow"]
    assert result.stats["focus/browser/brought"] == 1


def test_web_sockets_are_counted(bad: BadSite) -> None:
    """Content received through one is shown, and one that stays open blocks nothing."""
    script = """new WebSocket(`ws://${location.host}/socket`).onmessage = (event) => JSON.parse(event.data).forEach(add);
        new WebSocket(`ws://${location.host}/forbidden/socket`)"""
    result = crawl(
        Links, {**RENDER_ALL, "ROBOTSTXT_OBEY": True}, addon=True, seeds=[served(bad, {"page": page(script)})]
    )
    assert "/ok?socket" in bad.paths
    assert not [path for path in bad.paths if path.startswith("/forbidden")]
    assert result.stats["focus/requests"] == len(bad.log)
    assert result.stats["focus/browser/refused/robots"] == 1


WALL = """<html><body><p>text</p><a href="/ok?content">x</a><a href="/ok?{{id}}">x</a><a href="sub/ok?below">x</a><script>
document.body.innerHTML = "<h1>Cookies?</h1><a href='/ok?terms'>terms</a>"</script></body></html>"""


@pytest.mark.parametrize("settings", [RENDER_ALL, {"FOCUS_POLICY": RenderAtOnce}, {"FOCUS_RENDER": "always"}])
def test_walls_hide_nothing(bad: BadSite, settings: dict[str, Any]) -> None:
    """Links of the page as received are found, even if scripts replaced it, and no plain copy was read."""
    bad.pages["/bad/wall"] = WALL
    bad.pages["/"] = '<a href="/bad/wall">wall</a>'
    crawl(Links, settings, addon=True, seeds=[bad.url("/")])
    assert {"/ok?content", "/ok?terms", "/bad/sub/ok?below"} <= set(bad.paths)
    assert bad.asked.count(("GET", "/bad/wall")) == (2 if settings is RENDER_ALL else 1)
    if settings is not RENDER_ALL:
        assert not [path for path in bad.paths if "id" in path]


def test_pages_that_are_others_for_browsers(bad: BadSite) -> None:
    """Content of either copy is found; the crawl identifies itself for both."""
    url = served(bad, {"page": page("add('/ok?robots')")}, {"page": page("add('/ok?browsers')")})
    result = crawl(Links, {**RENDER_ALL, "USER_AGENT": "somebody/1"}, addon=True, seeds=[url])
    assert files(bad) == ["/ok?browsers", "/ok?plain-page"]
    assert {seen.headers["user-agent"] for seen in bad.log} == {"somebody/1"}
    assert {is_from_browser(seen) for seen in bad.log if seen.path == "/bad/page"} == {True, False}
    assert result.errors == {}


def shown(url: str, at: str = "data.files") -> str:
    """Return a page that is an empty shell over an API, whose scripts show the value at a path of its answer."""
    return page(f"get('{url}').then((data) => {at}.forEach((file) => add(`/ok?${{file.name}}`)))")


LEVELS = "[" * 10_000 + "]" * 10_000
ODD: dict[str, Any] = {
    "too_large": lambda i: b'{"files": [{"name": "%d"}], "rest": "' % i + b"x" * (50 << 20) + b'"}',
    "too_deep": lambda i: f'{{"files": [{{"name": "{i}"}}], "rest": {LEVELS}}}'.encode(),
    "": lambda i: json.dumps({"id": 1, "n": 1, "files": [{"name": i, "id": 1, "v": "1"}] + [{"name": 1}] * 3}).encode(),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_answers_are_survived(bad: BadSite, name: str) -> None:
    """50 MB, 10,000 levels and values that occur everywhere: shown content is found, and nothing else is requested."""
    n = 3 if name == "too_large" else 8
    for i in range(n):
        bad.answers[f"/api/{i}"] = lambda _, i=i: (200, {"Content-Type": "application/json"}, ODD[name](i))  # type: ignore[misc]
    url = served(bad, {f"set/{i}": shown(f"/api/{i}") for i in range(n)})
    result = crawl(Links, {**RENDER_ALL, "CONCURRENT_REQUESTS": 1}, addon=True, seeds=[url])
    wanted = (
        {f"/ok?plain-set/{i}" for i in range(n)} | {f"/ok?{i}" for i in range(n)} | ({"/ok?1"} if not name else set())
    )
    assert set(files(bad)) == wanted
    assert result.reason == "finished"
    assert result.errors == {}


def test_links_that_change_at_each_rendering(bad: BadSite) -> None:
    """The site is asked for nothing that no page showed."""
    rng, made = random.Random(1), set()

    def answer(_: int) -> Answer:
        names = [str(rng.randrange(10**9)) for _ in range(3)]
        made.update(names)
        return as_json({"files": [{"name": name[::-1]} for name in names]})

    for i in range(8):
        bad.answers[f"/api/{i}"] = answer
    script = (
        "get('/api/{}').then((data) => data.files.forEach((file) => add('/ok?' + [...file.name].reverse().join(''))))"
    )
    result = crawl(
        Links, RENDER_ALL, addon=True, seeds=[served(bad, {f"set/{i}": page(script.format(i)) for i in range(8)})]
    )
    assert {path[4:] for path in files(bad) if "plain" not in path} == made
    assert result.stats["focus/browser/read"] == 8


def test_files_without_an_extension_are_taken_once(bad: BadSite) -> None:
    """If every page is rendered, the browser downloads what turns out to be a file, unless that is large."""
    headers = {"Content-Type": "text/csv", "Content-Disposition": "attachment; filename=a.csv"}
    bad.answers["/export"] = lambda _: (200, headers, b"a,b")
    bad.pages["/"] = "<a href='/export'>x</a><a href='/endless?type=text/csv&name=b'>y</a>"
    result = crawl(Links, {**RENDER_ALL, "FOCUS_RENDER": "always"}, addon=True, seeds=[bad.url("/")])
    assert bad.paths.count("/export") == 1
    assert result.outcomes == {"ok": 2, "too_large": 1}
    assert all(n < MOST for n in bad.streamed.values())
