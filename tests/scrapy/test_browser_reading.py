"""When a page in a browser is done, and what it is made to show: the log of the server is the judge."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from mocksite import MockSite
from readers import NEEDS, PATIENT, read

from scrapy_focus.engine.browser.visit import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mocksite import Answer
    from readers import Read

pytestmark = NEEDS
ELSEWHERE = "127.0.0.2"
ADD = """<script>
const list = document.querySelector("ul");
const add = (path) => list.insertAdjacentHTML("beforeend", `<li><a href="${path}">${path}</a></li>`);
const get = async (path) => (await fetch(path)).json();
const on = (id, action) => document.getElementById(id).onclick = action;
const save = (url, name) => Object.assign(document.createElement("a"), {href: url, download: name}).click();
SCRIPT
</script>"""


def page(script: str, body: str = "<ul></ul>") -> str:
    """Return a page with a body and a script."""
    return f"<html><body>{body}{ADD.replace('SCRIPT', script)}</body></html>"


def button(name: str, label: str) -> str:
    """Return a button."""
    return f'<button id="{name}">{label}</button>'


PAGES = {
    "late": page("get('/slow?1').then(() => get('/slow?2')).then(() => add('/ok?late'))"),
    "more": page(
        "let n = 0; on('more', async () => { n += 1; await get(`/slow?more${n}`); add(`/ok?more${n}`);"
        " if (n == 2) document.getElementById('more').remove() })",
        f"<ul></ul>{button('more', 'Load <b>more</b>')}",
    ),
    "next": page(
        "let n = 1; const show = () => { list.innerHTML = ''; add(`item?${n}`); };"
        "show(); on('next', () => { n = Math.min(n + 1, 3); show(); history.pushState({}, '', `/paged/${n}`) })",
        f'<div class="list"><ul></ul></div>{button("next", "Weiter")}',
    ),
    "long": page(
        "let n = 0; on('next', () => { n = Math.min(n + 1, 12); add(`/ok?part${n}`) })",
        f"<ul></ul>{button('next', 'Next')}",
    ),
    "scroll": page(
        """let n = 0, busy = false; const end = document.getElementById("end");
        const seen = new IntersectionObserver(async (all) => {
            if (!all.at(-1).isIntersecting || busy || n == 3) return;
            busy = true; n += 1; await get(`/slow?scroll${n}`); add(`/ok?scroll${n}`); busy = false;
            seen.unobserve(end); seen.observe(end);
        }); seen.observe(end);""",
        '<ul></ul><div style="height: 5000px"></div><div id="end">.</div>',
    ),
    "inner": page(
        "document.querySelector('main').addEventListener('scroll', () => add('/ok?inner'), {once: true})",
        '<main style="height: 300px; overflow: auto"><ul></ul><div style="height: 5000px"></div></main>',
    ),
    "careful": page(
        """for (const element of document.querySelectorAll("button, a, input")) element.onclick = () => {
            fetch(`/harm?${element.id}`); return true };""",
        f"""<ul></ul>{button("delete", "Delete, and show more")}{button("buy", "Buy more")}{button("out", "Log out")}
        {button("label", "More")}<a id="away" href="/ok?away">Next</a>
        <form action="/harm?form">{button("form", "Show more")}<input id="input" type="button" value="More">
        <a id="within" href="#">More</a></form>
        <button id="hidden" style="display: none">More</button><button id="off" disabled>More</button>
        <script>document.getElementById("label").setAttribute("aria-label", "Delete all")</script>""",
    ),
    "posting": page(
        """fetch("/posted?load", {method: "POST"});
        let n = 0; on("more", () => { n += 1; get(`/slow?clicked${n}`);
            fetch("/posted?click", {method: "POST"}).catch(() => add("/ok?refused")) });
        on("form", () => document.querySelector("form").submit());""",
        f"""<ul></ul><form method="post" action="/posted?form"></form>{button("more", "More")}
        {button("form", "Show all")}""",
    ),
    "leaving": page(
        """on("next", () => location.href = "/left?next"); on("all", () => window.open("/left?all"));
        on("hash", () => { document.forms[0].submit(); return false });""",
        f"""<ul></ul><p class="here">{button("next", "Next")}</p>{button("all", "Show all")}
        <a id="hash" href="#">Load all</a><form action="/left"><input name="form" value="1"></form>""",
    ),
    "exports": page(
        """on("url", () => location.href = "/export?url"); on("link", () => save("/export?link", "x.csv"));
        on("script", async () => { await get("/slow?rows");
            save(URL.createObjectURL(new Blob(["a,b\\n1,2\\n"], {type: "text/csv"})), "made.csv") });""",
        f"""<ul></ul><p class="files">{button("url", "Download")}{button("link", "Export as CSV")}
        {button("script", "Save as CSV")}</p>""",
    ),
    "json": page(
        """Promise.all([get("/data.json"), get("/large.json"), get("OTHER/data.json"), fetch("/ok?html"),
            fetch("/data.json?post", {method: "POST"})]).then(() => add("/ok?json"))"""
    ),
    "heavy": page(
        """navigator.sendBeacon("/unseen?beacon", "x"); navigator.serviceWorker?.register("/unseen?worker");
        get("/slow?heavy").then(() => add("/ok?heavy"))""",
        """<style>@font-face{font-family:F;src:url(/unseen?font)}ul{font-family:F;background:url(/unseen?back)}</style>
        <ul><li>x</li></ul><img src="/unseen?image"><video src="/unseen?video"></video>
        <a href="/ok?ping" ping="/unseen?ping">x</a>""",
    ),
    "untouched": page("add('/ok?load'); on('more', () => add('/ok?clicked'))", f"<ul></ul>{button('more', 'More')}"),
    "own": page("get('/slow?own').then(() => add('/ok?own'))"),
    "as_it_is": page("navigator.sendBeacon('/seen?beacon', 'x')", "<ul></ul><img src='/seen?image'>"),
    "forwarding": "<html><body><script>location.replace('/forwarded')</script></body></html>",
    "forwarded": page("get('/slow?forwarded').then(() => add('/ok?forwarded'))"),
}


def slowly(_: int) -> Answer:
    """Answer JSON, but not at once."""
    time.sleep(0.2)
    return 200, {"Content-Type": "application/json"}, b'{"slow": true}'


def as_json(body: bytes) -> Answer:
    """Return JSON, which any site may read."""
    headers = {"Content-Type": "application/json; charset=utf-8", "Access-Control-Allow-Origin": "*"}
    return 200, headers, body


class SlowSite(MockSite):
    """Has the pages, and answers what they ask for."""

    def answer(self, path: str) -> Answer:
        """Return the answer to a path."""
        kind = path.partition("?")[0]
        if kind == "/slow":
            return slowly(0)
        if kind == "/data.json":
            return as_json(b'{"url": "/ok?data"}')
        if kind == "/large.json":
            return as_json(json.dumps(["x" * 3_000_000]).encode())
        if kind == "/export":
            return 200, {"Content-Type": "text/csv", "Content-Disposition": "attachment"}, b"a,b\n"
        return super().answer(kind if kind in self.pages else path)


@pytest.fixture(scope="module")
def sites() -> Iterator[tuple[SlowSite, SlowSite]]:
    """Two sites with the pages."""
    with SlowSite() as site, SlowSite(ELSEWHERE) as other:
        site.pages = {f"/{name}": text.replace("OTHER", other.url("")) for name, text in PAGES.items()}
        yield site, other


@pytest.fixture(scope="module")
def pages(sites: tuple[SlowSite, SlowSite]) -> Read:
    """The pages, read in one crawl that would also look at images."""
    from scrapy_playwright.page import PageMethod

    add = PageMethod("evaluate", "add('/ok?method')")
    metas = {
        "untouched": {"limits": replace(PATIENT, rounds=0)},
        "own": {"playwright_page_methods": [add]},
        "as_it_is": {"as_it_is": True},
    }
    seeds = [(sites[0].url(f"/{name}"), metas.get(name, {})) for name in PAGES if name != "forwarded"]
    pages = read(seeds, {"FOCUS_BLOCKED_MIMES": [], "CONCURRENT_REQUESTS_PER_DOMAIN": 4})
    assert pages.result.outcomes == {"ok": len(seeds)}
    assert pages.result.errors == {}
    assert pages.result.stats["focus/browser/read"] == len(seeds) - 1
    return pages


def test_what_scripts_fetch_is_waited_for(pages: Read) -> None:
    """A page is quiet when nothing is in flight, however often its scripts fetch again."""
    assert "/ok?late" in pages.places("late")
    assert not pages.visits["late"].is_cut


def test_buttons_are_clicked_while_links_come(pages: Read) -> None:
    """Buttons for more are clicked until they bring nothing; the results are counted by kind."""
    assert {"/ok?more1", "/ok?more2"} <= set(pages.places("more"))
    assert pages.visits["more"].actions == {"scroll": 0, "more": 2}


def test_long_lists_are_clicked_through(pages: Read) -> None:
    """However many parts a list has, within the limits of a page."""
    assert set(pages.places("long")) == {f"/ok?part{n}" for n in range(1, 13)}
    assert pages.visits["long"].actions == {"scroll": 0, "next": 12}
    assert not pages.visits["long"].is_growing
    assert not pages.visits["long"].is_cut


def test_links_that_vanish_are_kept(pages: Read) -> None:
    """A page that shows one part after another has the links of all, at their places, and its original URL."""
    places = pages.places("next")
    assert {path.rpartition("/")[2] for path in places} == {"item?1", "item?2", "item?3"}
    assert set(places.values()) == {"html/body/div.list/ul/li/a"}
    assert pages.items["next"]["url"] == pages.items["next"]["asked"]
    assert pages.visits["next"].actions == {"scroll": 0, "next": 2}


def test_addresses_stay_what_they_were(pages: Read, sites: tuple[SlowSite, SlowSite]) -> None:
    """A link that was made when scripts had changed the address leads where it led then."""
    assert sites[0].url("/paged/item?3") in pages.places("next")


def test_ends_are_scrolled_to(pages: Read) -> None:
    """Content that loads when the end of a page scrolls into view is read, whichever of several pages is visible."""
    assert {"/ok?scroll1", "/ok?scroll2", "/ok?scroll3"} <= set(pages.places("scroll"))
    assert "/ok?inner" in pages.places("inner")
    assert pages.visits["scroll"].actions == {"scroll": 3}


def test_some_buttons_are_left_alone(pages: Read, sites: tuple[SlowSite, SlowSite]) -> None:
    """Not clicked are buttons with harmful words, in forms, invisible or disabled ones, and links to other pages."""
    assert [path for path in sites[0].paths if path.startswith("/harm")] == []
    assert set(pages.places("careful")) == {"/ok?away", "#"}


def test_pages_are_acted_on_by_get(pages: Read, sites: tuple[SlowSite, SlowSite]) -> None:
    """A button whose click would send a POST is skipped, and nothing is sent; the page's own POSTs are allowed."""
    asked = sites[0].asked
    assert [path for method, path in asked if method == "POST" and path.startswith("/posted")] == ["/posted?load"]
    assert [path for path in sites[0].paths if path.startswith("/slow?clicked")] == ["/slow?clicked1"]
    assert "/ok?refused" in pages.places("posting")
    assert pages.result.stats["focus/browser/refused/method"] >= 2


def test_pages_stay_where_they_are(pages: Read, sites: tuple[SlowSite, SlowSite]) -> None:
    """If a click navigates elsewhere, nothing is requested; instead there is a link in place of the button."""
    assert [path for path in sites[0].paths if path.startswith("/left")] == []
    base = sites[0].url("")
    places = pages.places("leaving")
    assert places[f"{base}/left?next"] == "html/body/p.here/button#next/a"
    assert places[f"{base}/left?all"] == "html/body/button#all/a"
    assert places[f"{base}/left?form=1"] == "html/body/a#hash"


def test_downloads_become_links(pages: Read, sites: tuple[SlowSite, SlowSite]) -> None:
    """Files of buttons are not fetched by the browser but become links; files made by scripts are kept."""
    assert [path for path in sites[0].paths if path.startswith("/export?")] == []
    places = pages.places("exports")
    assert places[sites[0].url("/export?url")] == "html/body/p.files/button#url/a"
    assert places[sites[0].url("/export?link")] == "html/body/p.files/button#link/a"
    [made] = pages.visits["exports"].files
    assert made == ("made.csv", "text/csv", b"a,b\n1,2\n")
    assert pages.visits["exports"].actions == {"scroll": 0, "download": 3}


def test_a_script_gets_its_json(pages: Read, sites: tuple[SlowSite, SlowSite]) -> None:
    """Of the page's own site and of another one; it is asked for once."""
    assert sites[0].paths.count("/data.json") == 1
    assert "/data.json" in sites[1].paths
    assert "/ok?json" in pages.places("json")


def test_what_nobody_reads_is_not_loaded(pages: Read, sites: tuple[SlowSite, SlowSite]) -> None:
    """Images, fonts, films and beacons are not asked for, even in a crawl that looks for images."""
    assert [path for _, path in sites[0].asked if path.startswith("/unseen")] == []
    assert "/ok?heavy" in pages.places("heavy")


def test_scripts_may_lead_on_before_a_page_is_acted_on(pages: Read) -> None:
    """A page whose script navigates to another one at once counts as that page, and is read completely."""
    assert pages.items["forwarding"]["url"].endswith("/forwarded")
    assert "/ok?forwarded" in pages.places("forwarding")


def test_what_the_user_does_with_a_page_comes_first(pages: Read) -> None:
    """The user's methods are called, and are the only ones in the meta of the response."""
    assert {"/ok?own", "/ok?method"} <= set(pages.places("own"))
    [method] = pages.items["own"]["meta"]["playwright_page_methods"]
    assert method.method == "evaluate"
    assert "playwright_page_methods" not in pages.items["late"]["meta"]
    assert "playwright_page_init_callback" not in pages.items["late"]["meta"]


def test_pages_that_are_only_waited_for(pages: Read) -> None:
    """Without rounds nothing is done to a page."""
    assert set(pages.places("untouched")) == {"/ok?load"}
    assert not pages.visits["untouched"].actions
    assert not pages.visits["untouched"].is_cut


def test_pages_that_are_not_read(pages: Read, sites: tuple[SlowSite, SlowSite]) -> None:
    """A page that the spider itself wants rendered loads everything, and no actions are done."""
    assert {"/seen?beacon", "/seen?image"} <= {path for _, path in sites[0].asked}
    assert pages.visits["as_it_is"].actions == {}


def test_all_is_counted(pages: Read, sites: tuple[SlowSite, SlowSite]) -> None:
    """The servers saw as many requests as were counted, and those to another host are counted apart."""
    assert pages.result.stats["focus/requests"] == sum(len(site.log) for site in sites)
    assert pages.result.stats["focus/browser/elsewhere"] == len(sites[1].log) > 0


BAD = {
    "restless": page("setInterval(() => add(`/ok?${Math.random()}`), 20)"),
    "endless": page(
        """let n = 0; document.onscroll = async () => { for (let k = 0; k < 20; k++) add(`/ok?endless${n++}`) };
        document.onscroll()""",
        "<ul></ul><style>li { height: 200px }</style>",
    ),
    "alert": page(
        "alert(1); on('more', () => { alert(confirm(2)); add('/ok?alert') })", f"<ul></ul>{button('more', 'More')}"
    ),
    "windows": page("for (let n = 0; n < 10; n++) window.open(`/ok?window${n}`)"),
    "loop": page("add('/ok?loop'); on('more', () => { for (;;); })", f"<ul></ul>{button('more', 'More')}"),
    "stuck": page("add('/ok?stuck'); setTimeout(() => { for (;;); }, 100)"),
    "loops": page("setTimeout(() => { const again = () => { setTimeout(again); for (;;); }; again() }, 100)"),
    "bouncing": "<html><body><script>location.href = '/bouncing?' + Math.random()</script></body></html>",
    "closing": page(
        "on('more', () => { window.close(); document.write('gone') })", f"<ul></ul>{button('more', 'More')}"
    ),
    "hanging": page("add('/ok?hanging'); fetch('/hang')"),
    "streaming": page("add('/ok?streaming'); new EventSource('/hang')"),
    "broken": page(
        """add("/ok?broken"); on("more", () => { Map.prototype.has = Array.prototype.push = () => { throw 1 };
        document.querySelectorAll = () => null; history.replaceState = null })""",
        f"<ul></ul>{button('more', 'More')}",
    ),
    "many": page(
        "on('file', () => { for (let k = 0; k < 50; k++) save(`/export?${k}`, 'x.csv') })",
        f"<ul></ul>{button('file', 'Download')}",
    ),
    "large": page(
        "on('file', () => save(URL.createObjectURL(new Blob([new ArrayBuffer(3e6)])), 'large.csv'))",
        f"<ul></ul>{button('file', 'Download')}",
    ),
    "nothing": "<html></html>",
}
SHORT = Limits(quiet=2, restless=0.5, seconds=6, rounds=3, silence=3, painted=3, ending=2, file_bytes=1_000_000)


@pytest.fixture(scope="module")
def bad() -> Iterator[tuple[Read, SlowSite]]:
    """The bad pages, read in one crawl, and their site."""
    with SlowSite() as site:
        site.pages = {f"/{name}": text for name, text in BAD.items()}
        settings = {"LIMITS": SHORT, "CONCURRENT_REQUESTS_PER_DOMAIN": 4}
        yield read([site.url(f"/{name}") for name in BAD], settings), site


def test_pages_that_never_end(bad: tuple[Read, SlowSite]) -> None:
    """Whatever a page does, it has an outcome, and its content until then is read; one that hangs is skipped."""
    pages, site = bad
    assert pages.result.outcomes == {"ok": len(BAD) - 2, "failure": 1, "ignored": 1}
    assert set(BAD) - set(pages.items) == {"loops", "bouncing"}
    assert pages.result.stats["downloader/exception_type_count/scrapy_focus.engine.browser.reading.PageHangs"] == 1
    for name in ("alert", "loop", "stuck", "hanging", "streaming", "broken"):
        assert f"/ok?{name}" in pages.places(name)
    for name in ("restless", "endless", "loop", "hanging", "broken", "large"):
        assert pages.visits[name].is_cut, name
    assert pages.result.stats["focus/requests"] == len(site.log)
    assert pages.result.stats["playwright/page_count"] == len(BAD)
    assert len([path for path in site.paths if "window" in path]) > 1
    assert pages.result.crawler.left_open == 0, "new windows are closed"


def test_pages_bring_no_more_than_so_much(bad: tuple[Read, SlowSite]) -> None:
    """Lists without an end, files without number, large ones, and pages that lead on and on are bounded."""
    pages, site = bad
    assert 20 < len(pages.places("endless")) <= 20 * (1 + 2 * SHORT.rounds)
    assert pages.visits["endless"].is_growing
    assert not pages.visits["broken"].is_growing
    assert not [path for path in site.paths if path.startswith("/export")]
    assert 0 < len(pages.places("many")) <= 20
    assert pages.visits["large"].files == []
    assert 1 < len([path for path in site.paths if path.startswith("/bouncing")]) < 50


def test_reading_ends_with_the_budget(sites: tuple[SlowSite, SlowSite]) -> None:
    """The servers get no more requests than allowed, whatever pages do; open pages are read in their present state."""
    before = sum(len(site.log) for site in sites)
    seeds = [sites[0].url(f"/{name}") for name in ("late", "more", "scroll", "json")]
    pages = read(seeds, {"FOCUS_BUDGET_REQUESTS": 10, "CONCURRENT_REQUESTS": 2})
    assert pages.result.stats["focus/requests"] == 10
    assert sum(len(site.log) for site in sites) == before + 10
    assert pages.result.reason == "focus_budget_requests"
