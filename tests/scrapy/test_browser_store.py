"""Scripts and style sheets are asked for once, for as long as their headers allow."""

from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING

import pytest
from readers import NEEDS, read

from scrapy_focus.engine.browser.sizes import STORED
from scrapy_focus.engine.browser.store import Key, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mocksite import Answer, MockSite


def needs_browser(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test only if there is a browser."""
    for mark in NEEDS:
        test = mark(test)
    return test


NOW = 2_000_000_000.0
DAY = 86_400
A_DAY = {"cache-control": "max-age=86400"}
KEY = Key("default", "https://example.org/a.js")


def on(seconds: float) -> str:
    """Return a date of HTTP, so many seconds from now."""
    return formatdate(NOW + seconds, usegmt=True)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time for stores, as the only value of a list."""
    now = [NOW]
    for module in ("scrapy.extensions.httpcache", "scrapy_focus.engine.browser.store"):
        monkeypatch.setattr(f"{module}.time", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"cache-control": "max-age=60"}, 60),
        ({"cache-control": "public, Max-Age=60, s-maxage=900, immutable"}, 60),
        ({"cache-control": "private, max-age=60"}, 60),
        ({"cache-control": "max-age=60", "expires": on(900)}, 60),
        ({"cache-control": "max-age=60", "age": "50"}, 60 - 50),
        ({"cache-control": "max-age=60", "date": on(-20)}, 40),
        ({"expires": on(60)}, 60),
        ({"expires": on(60), "date": on(-30)}, 60),
        ({"last-modified": on(-600)}, 60),
        ({"last-modified": on(-1000 * DAY)}, DAY),
        ({"cache-control": "max-age=60", "vary": "Accept-Encoding"}, 60),
        ({"cache-control": "public"}, 0),
        ({"cache-control": "s-maxage=60"}, 0),
        ({"cache-control": "no-store, max-age=60"}, 0),
        ({"cache-control": "no-cache, max-age=60"}, 0),
        ({"cache-control": "max-age=0", "expires": on(900)}, 0),
        ({"cache-control": "max-age=60, must-revalidate", "vary": "Cookie"}, 0),
        ({"cache-control": "max-age=60", "vary": "accept-encoding, Origin"}, 0),
        ({"cache-control": "max-age=60", "vary": "*"}, 0),
        ({"cache-control": "max-age=sixty"}, 0),
        ({"expires": "0"}, 0),
        ({"expires": "never", "last-modified": on(-600)}, 0),
        ({"etag": '"1"'}, 0),
        ({}, 0),
    ],
)
def test_how_long_answers_are_kept(clock: list[float], headers: dict[str, str], seconds: int) -> None:
    """A response is kept for as long as its headers allow a private cache, and not a second longer."""
    store = Store()
    store.wait_for(KEY)
    assert store.awaits(KEY, 200, headers) == (seconds > 0)
    assert store.put(KEY, headers, b"run()") == (seconds > 0)
    store.check()
    if not seconds:
        assert store.get(KEY) is None
        return
    clock[0] += seconds - 1
    if "age" not in headers:
        assert store.get(KEY) is not None
    clock[0] += 1 + 60 * ("age" in headers)
    assert store.get(KEY) is None
    assert len(store) == store.used == 0


def test_what_is_kept_of_an_answer() -> None:
    """Headers of its content stay; headers of its connection, or that would set cookies again, are removed."""
    store = Store()
    headers = {
        **A_DAY, "content-type": "text/javascript", "content-encoding": "gzip", "content-length": "9",
        "set-cookie": "a=1", "access-control-allow-origin": "*", STORED: "secret",
    }  # fmt: skip
    assert store.put(KEY, headers, b"run()")
    stored = store.get(KEY)
    assert stored is not None
    assert set(stored.headers) == {"cache-control", "content-type", "access-control-allow-origin"}
    assert (stored.body, stored.size) == ("cnVuKCk=", 5)


def test_whose_answers_are_kept() -> None:
    """Contexts keep theirs apart; fragments of URLs do not matter; only what was asked for is kept, and only a 200."""
    store = Store()
    key = Key.of("one", "https://example.org/a.js#part")
    store.wait_for(key)
    assert not store.awaits(Key("two", key.url), 200, A_DAY)
    assert store.awaits(Key.of("one", "https://example.org/a.js"), 200, A_DAY)
    assert not store.awaits(key, 200, A_DAY), "once"
    store.wait_for(key)
    assert not store.awaits(key, 206, A_DAY)
    assert store.put(key, A_DAY, b"")
    assert store.get(Key("two", key.url)) is None


def test_memory_is_bounded() -> None:
    """The least recently used ones make room; one that is too large is not kept."""
    store = Store(most=100_000, largest=30_000)
    keys = [Key("", f"https://example.org/{n}.js") for n in range(9)]
    for key in keys[:4]:
        assert store.put(key, A_DAY, bytes(12_000))
    assert store.get(keys[0]) is not None
    for key in keys[4:]:
        assert store.put(key, A_DAY, bytes(12_000))
        store.check()
        assert store.get(keys[0]) is not None, "it is used all the time"
    assert store.get(keys[1]) is None
    assert not store.put(keys[1], A_DAY, bytes(30_001))
    assert store.put(keys[0], A_DAY, b"again")
    store.check()
    for n in range(25_000):
        store.wait_for(Key("", str(n)))
    assert len(store._awaited) <= 10_000


def served(kind: str, body: str, **headers: str) -> Answer:
    """Return a response that may be kept for a day, or as its headers say."""
    return 200, {"Content-Type": f"text/{kind}", "Cache-Control": "max-age=86400", **headers}, body.encode()


def adds(name: str) -> str:
    """Return a script that adds a link."""
    return f"document.body.insertAdjacentHTML('beforeend', '<a href=\"/ok?{name}\">{name}</a>');"


SCRIPTS = {
    "/kept.js": served("javascript", adds("kept") + "//" + "x" * 100_000),
    "/kept.css": served("css", "body { color: #010203 }" + " " * 100_000),
    "/fresh.js": served("javascript", adds("fresh"), **{"Cache-Control": "no-store"}),
    "/varies.js": served("javascript", adds("varies"), Vary="Cookie"),
    "/forbidden/forbidden.js": served("javascript", adds("forbidden")),
    "/led.js": served("javascript", adds("led")),
    "/large.js": served("javascript", adds("large") + "//" + "x" * 5_000_000),
}
LOADS = "".join(f'<script src="{path}"></script>' for path in SCRIPTS if path.endswith(".js") and "led" not in path)
PAGE = f"""<html><head><link rel="stylesheet" href="/kept.css"></head><body>{LOADS}
<script src="/redirect?to=/led.js"></script>
<script>if (getComputedStyle(document.body).color == "rgb(1, 2, 3)") {adds("styled")}</script></body></html>"""
N = 3
ONE_BY_ONE = {"CONCURRENT_REQUESTS": 1, "ROBOTSTXT_OBEY": True}


@pytest.fixture
def shop(site: MockSite) -> MockSite:
    """A site with scripts, and pages that load them."""
    for n in range(N):
        site.pages[f"/page{n}"] = PAGE
    for path, answer in SCRIPTS.items():
        site.answers[path] = lambda _, answer=answer: answer
    return site


def seeds(site: MockSite, **meta: object) -> list[tuple[str, dict[str, object]]]:
    """Return the pages; the first may load what robots.txt forbids."""
    return [(site.url(f"/page{n}"), {"dont_obey_robotstxt": n == 0, **meta}) for n in range(N)]


@pytest.mark.parametrize("as_it_is", [False, True], ids=["read", "as it is"])
@needs_browser
def test_scripts_are_asked_for_once(shop: MockSite, as_it_is: bool) -> None:
    """A storable script is requested once; it runs on each page, and does not count as a request or bytes again."""
    result = read(seeds(shop, as_it_is=as_it_is), ONE_BY_ONE)
    asked = {path: shop.paths.count(path) for path in SCRIPTS}
    assert asked == {
        "/kept.js": 1, "/kept.css": 1, "/fresh.js": N, "/varies.js": N, "/forbidden/forbidden.js": 1, "/led.js": 1,
        "/large.js": N,
    }  # fmt: skip
    for n in range(N):
        names = {"kept", "styled", "fresh", "varies", "led", "large"} | ({"forbidden"} if n == 0 else set())
        assert {href.partition("?")[2] for href in result.places(f"page{n}")} == names
    stats = result.result.stats
    assert stats["focus/browser/stored"] == 3 * (N - 1)
    assert stats["focus/browser/stored_bytes"] == (N - 1) * sum(
        len(SCRIPTS[path][2]) for path in SCRIPTS if "/kept" in path or "led" in path
    )
    assert stats["focus/browser/refused/robots"] == N - 1, "what is stored is refused where it would be"
    assert stats["focus/requests"] == len(shop.log)
    sent = sum(len(shop.answer(seen.path)[2]) for seen in shop.log)
    assert sent < stats["focus/bytes"] < sent + 1_000 * len(shop.log)


@needs_browser
def test_a_browser_that_others_may_use(shop: MockSite, tmp_path: Path) -> None:
    """A browser of others' reads pages like one's own, and has what is stored."""
    from test_playwright import shared_browser

    shop.pages["/page2"] += "<button onclick='location.href = \"/left\"'>Next</button>"
    with shared_browser(tmp_path) as address:
        settings = {**ONE_BY_ONE, "PLAYWRIGHT_CDP_URL": address, "PLAYWRIGHT_LAUNCH_OPTIONS": {}}
        result = read(seeds(shop), settings)
    asked = {path: shop.paths.count(path) for path in ("/kept.js", "/kept.css", "/fresh.js", "/left")}
    assert asked == {"/kept.js": 1, "/kept.css": 1, "/fresh.js": N, "/left": 0}
    assert shop.url("/left") in result.places("page2")
    assert result.result.stats["focus/browser/stored"] == 2 * (N - 1)
    assert result.result.stats["focus/requests"] == len(shop.log)
