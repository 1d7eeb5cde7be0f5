"""What a browser may ask for: the budget, robots.txt and allowed hosts of a crawl, without any browser."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl
from mocksite import MockSite, Seen
from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import Settings

from scrapy_focus import FocusScheduler
from scrapy_focus.config import Config
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.engine.browser.rules import Rules
from scrapy_focus.engine.browser.ways import Asked, kind_of
from scrapy_focus.engine.host import host_of
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response

pytestmark = pytest.mark.reactor
ELSEWHERE = "127.0.0.2"


class Asking(Spider):
    """Sends requests for a page, like its browser, and yields the answers as items."""

    name = "asking"

    def __init__(self, site: MockSite, asked: list[tuple[str, str]], **kwargs: Any) -> None:
        self.page = kwargs.pop("page", None)
        super().__init__(**kwargs)
        self.site = site
        self.asked = asked

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.site.url("/ok"))

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        host = host_of(self.crawler)
        assert host is not None
        rules = Rules(self.crawler, host, host.config.browser_offsite)
        asked = [rules.refusal(url, kind, self.page) for url, kind in self.asked]
        for (url, _), refused in zip(self.asked, await asyncio.gather(*asked), strict=True):
            yield {"url": url, "refused": refused}


def answers(site: MockSite, asked: list[tuple[str, str]], settings: dict[str, Any] | None = None, **args: Any) -> Any:
    """Return the answers to each request, and the crawl."""
    result = crawl(Asking, settings, site=site, asked=asked, **args)
    assert result.errors == {}
    return [item["refused"] for item in result.items], result


def test_what_many_ask_at_once_is_counted_exactly(site: MockSite) -> None:
    """Of fifty requests that ask at the same time just as many may go out as the budget has left."""
    asked = [(site.url(f"/ok?{i}"), "xhr") for i in range(50)]
    refused, result = answers(site, asked, {"FOCUS_BUDGET_REQUESTS": 12})
    assert refused.count("") == 11
    assert refused.count("budget") == 39
    assert result.stats["focus/requests"] == 12
    assert result.reason == "focus_budget_requests"


@pytest.mark.parametrize("limit", ["FOCUS_BUDGET_BYTES", "FOCUS_BUDGET_SECONDS"])
def test_any_budget_that_is_used_up_ends_it(site: MockSite, limit: str) -> None:
    """When bytes or time are used up, a page in a browser gets no more, however many requests there may be."""
    refused, _ = answers(site, [(site.url("/ok?1"), "xhr")], {limit: 1e-9 if "SECONDS" in limit else 1})
    assert refused in (["budget"], [])  # if time was up before the page existed, nothing was requested


def test_robots_txt_holds(site: MockSite) -> None:
    """Forbidden URLs are refused, on each host by its own robots.txt, and neither counted nor sent."""
    with MockSite(ELSEWHERE) as other:
        asked = [
            (site.url("/forbidden/api"), "fetch"), (site.url("/ok?1"), "fetch"), (other.url("/forbidden/x.js"), "script"),
            (other.url("/ok.js"), "script"), (site.url("/forbidden/ws").replace("http", "ws"), "websocket"),
        ]  # fmt: skip
        refused, result = answers(site, asked, {"ROBOTSTXT_OBEY": True})
        assert refused == ["robots", "", "robots", "", "robots"]
        assert result.stats["focus/requests"] == 3 + 2  # page and two robots.txt; two of the five
        assert [seen.path for seen in other.log] == ["/robots.txt"]


def test_a_page_that_need_not_obey_may_ask_for_all(site: MockSite) -> None:
    """``dont_obey_robotstxt`` of the page's request also applies to the requests of its page."""
    page = Request(site.url("/ok"), meta={"dont_obey_robotstxt": True})
    refused, _ = answers(site, [(site.url("/forbidden/api"), "fetch")], {"ROBOTSTXT_OBEY": True}, page=page)
    assert refused == [""]


class Hanging(MockSite):
    """Keeps every request for robots.txt waiting."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.may_answer = Event()

    def begin(self, seen: Seen) -> None:
        super().begin(seen)
        if seen.path == "/robots.txt":
            self.may_answer.wait(HANG)


class Leaving(Asking):
    """Starts a site once its answers are known."""

    def __init__(self, other: Hanging, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.other = other

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        async for each in super().parse(response):
            self.other.may_answer.set()
            yield each


def test_a_robots_txt_that_does_not_come_refuses(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A robots.txt that does not arrive does not block pages, and allows nothing until it arrives."""
    monkeypatch.setattr("scrapy_focus.engine.browser.rules._LONGEST", 0.3)
    with Hanging(ELSEWHERE) as other:
        asked = [(other.url(f"/ok?{i}"), "xhr") for i in range(3)]
        result = crawl(Leaving, {"ROBOTSTXT_OBEY": True, "RETRY_ENABLED": False}, site=site, asked=asked, other=other)
        assert result.errors == {}
        assert [item["refused"] for item in result.items] == ["robots"] * 3
        assert [seen.path for seen in other.log if seen.path != "/robots.txt"] == []


@pytest.mark.parametrize(
    ("kind", "default", "strict"),
    [
        ("document", "offsite", "offsite"),
        ("ping", "offsite", "offsite"),
        ("script", "", "offsite"),
        ("xhr", "", "offsite"),
    ],
)
def test_other_hosts_give_what_a_page_is_made_of(site: MockSite, kind: str, default: str, strict: str) -> None:
    """Documents come from the hosts that the spider crawls; scripts and data from anywhere, unless set otherwise."""
    asked = [(f"http://cdn.invalid/{kind}", kind), (site.url("/ok?own"), kind)]
    args = {"allowed_domains": ["127.0.0.1"]}
    assert answers(site, asked, **args)[0] == [default, ""]
    assert answers(site, asked, {"FOCUS_BROWSER_OFFSITE": []}, **args)[0] == [strict, ""]
    assert answers(site, asked, {"FOCUS_BROWSER_OFFSITE": []})[0] == ["", ""], "nothing says which hosts"
    page = Request(site.url("/ok"), meta={"allow_offsite": True})
    assert answers(site, asked, {"FOCUS_BROWSER_OFFSITE": []}, page=page, **args)[0] == ["", ""]


def test_what_only_dresses_a_page_is_refused(site: MockSite) -> None:
    """Images, films, sound and letters are loaded only where images, films or sound are wanted at all."""
    asked = [(site.url(f"/{kind}"), kind) for kind in ("image", "media", "font", "script", "stylesheet")]
    assert answers(site, asked)[0] == ["type", "type", "type", "", ""]
    assert answers(site, asked, {"FOCUS_BLOCKED_MIMES": []})[0] == ["", "", "", "", ""]
    assert answers(site, asked, {"FOCUS_BLOCKED_MIMES": ["video/*"]})[0] == ["", "", "", "", ""]
    assert answers(site, asked, {"FOCUS_TARGETS": ["image/*"]})[0] == ["", "type", "", "", ""]


class NoSecrets:
    """A downloader middleware that holds for browsers, too."""

    guards_browsers = True

    async def process_request(self, request: Request) -> None:
        if "secret" in request.url:
            raise IgnoreRequest("it is a secret")


def test_other_middlewares_may_hold_for_browsers(site: MockSite) -> None:
    """A middleware with ``guards_browsers`` is asked about each of their requests."""
    asked = [(site.url("/ok?secret"), "script"), (site.url("/ok?1"), "script")]
    refused, result = answers(site, asked, {"DOWNLOADER_MIDDLEWARES": {NoSecrets: 500}})
    assert refused == ["middleware", ""]
    assert result.stats["focus/requests"] == 2


def test_a_browser_reaches_no_inside_address(site: MockSite) -> None:
    """With FOCUS_PUBLIC_ONLY a script on a page cannot request URLs in private networks."""
    asked = [("http://169.254.169.254/latest", "xhr"), ("http://10.0.0.1/", "script"), (site.url("/ok?1"), "script")]
    assert answers(site, asked, {"FOCUS_PUBLIC_ONLY": True})[0] == ["middleware", "middleware", ""]


def test_what_needs_no_network_is_free(site: MockSite) -> None:
    """What a page has within itself is neither refused nor counted."""
    asked = [("data:text/plain,x", "fetch"), ("blob:http://127.0.0.1/5", "fetch"), ("about:blank", "document")]
    refused, result = answers(site, asked, {"FOCUS_BUDGET_REQUESTS": 1})
    assert refused == ["", "", ""]
    assert result.stats["focus/requests"] == 1


class Marked(Follower):
    """Requests pages in a browser, with a custom callback."""

    name = "marked"

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"callback": response.meta.get("playwright_page_init_callback"), "keys": sorted(response.meta)}
        for link in super().parse(response):
            if isinstance(link, Request):
                yield link.replace(meta={name: response.meta[name] for name in response.meta if "playwright" in name})

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            yield Request(seed, meta={"playwright": True, "playwright_page_init_callback": "myproject.init"})
            yield Request(f"{seed}{'&' if '?' in seed else '?'}plain", meta={"playwright": True})


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_a_spider_sees_its_own_callback_only(site: MockSite, addon: bool) -> None:
    """The browser's keys in ``meta`` are removed again, even if no browser answered; also from retries."""
    seeds = [site.url("/page/0/7"), site.url("/status?code=500"), site.url("/redirect?to=/ok")]
    result = crawl(Marked, addon=addon, seeds=seeds)
    assert result.errors == {}
    callbacks = {item["callback"] for item in result.items if "callback" in item}
    assert callbacks == {"myproject.init", None}
    assert result.stats["focus/requests"] == len(site.log)
    assert "focus/link/kept" not in result.stats


def test_types_of_resource() -> None:
    """Chromium's names become Playwright's; the icon of a page is an image, the script of a worker is not."""
    asks = {"request": {"headers": {"Accept": "image/avif,image/webp,*/*;q=0.8"}}}
    assert kind_of({"resourceType": "Other", **asks}) == "image"
    assert kind_of({"resourceType": "Other", "request": {"headers": {"Accept": "*/*"}}}) == "other"
    assert kind_of({"resourceType": "XHR", **asks}) == "xhr"
    assert kind_of({"request": {}}) == "other"


@pytest.mark.parametrize("value", [["scripts"], "script,css", 5, [["script"]]])
def test_settings_that_are_refused(value: Any) -> None:
    """For an unknown type of resource, the message names the setting and the existing types."""
    with pytest.raises(ConfigError, match=r"FOCUS_BROWSER_OFFSITE.*stylesheet"):
        Config.from_settings(Settings({"FOCUS_BROWSER_OFFSITE": value}), FocusScheduler.default_policy)


@pytest.mark.parametrize(
    ("path", "kind", "refused"),
    [
        ("/ok?in", "document", ""),
        ("/ok?in&logout", "document", "scope"),
        ("/ok", "document", "scope"),
        ("/app.js", "script", ""),
        ("/logout.js", "script", "scope"),
        ("/logout", "xhr", "scope"),
        ("/logout", "websocket", "scope"),
    ],
)
def test_what_is_out_of_scope_is_refused(site: MockSite, path: str, kind: str, refused: str) -> None:
    """A document has to be included, and everything not to be excluded; with a reason, and once in the counts."""
    settings = {"FOCUS_INCLUDE": [r"\?in"], "FOCUS_EXCLUDE": ["logout"]}
    url = site.url(path).replace("http", "ws" if kind == "websocket" else "http", 1)
    found, result = answers(site, [(url, kind)] * 2, settings)
    assert found == [refused] * 2
    assert result.stats["focus/requests"] == 1 + 2 * (not refused)
    assert sum(n for name, n in result.stats.items() if name.startswith("focus/scope/")) == bool(refused)


class Redirected(Asking):
    """Asks as the page of its own request does, after a redirect."""

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        self.page = response.request
        async for each in super().parse(response):
            yield each


@pytest.mark.parametrize(("scope", "refused"), [("host", ["", "", "scope"]), ("any", ["", "", "scope"])])
def test_a_browser_follows_a_start_url_as_far_as_the_crawl_does(site: MockSite, scope: str, refused: list[str]) -> None:
    """To another host, which then is in scope, but to nothing that is excluded."""
    asked = [(f"http://{ELSEWHERE}/home", "document"), (site.url("/x"), "document"), (site.url("/logout"), "document")]
    settings = {"FOCUS_SCOPE": scope, "FOCUS_EXCLUDE": ["logout"]}
    result = crawl(Redirected, settings, site=site, asked=asked)
    assert [item["refused"] for item in result.items] == refused
    assert len(result.logged("that is in the scope of the crawl, too")) == (scope == "host")


class Loading:
    """A browser in which each page redirects to an excluded URL, as far as the crawl lets it."""

    lazy = True

    def __init__(self, crawler: Any) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Any) -> Loading:
        return cls(crawler)

    async def download_request(self, request: Request) -> Any:
        visit = request.meta["playwright_page_init_callback"]
        asked = Asked(request.url.replace("/ok", "/logout"), "document", frame="frame", is_first=False)
        visit.guard._frames["frame"] = visit
        visit.is_paid = False
        assert await visit.guard.refusal(asked) == "scope"
        raise OSError("net::ERR_BLOCKED_BY_CLIENT")

    async def close(self) -> None:
        """End."""


class Shown(Follower):
    """Asks for a page in a browser."""

    name = "shown"

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            yield Request(seed, meta={"playwright": True})


def test_a_page_that_redirects_out_of_scope_in_a_browser(site: MockSite) -> None:
    """It has one outcome, which says so."""
    settings = {"DOWNLOAD_HANDLERS": {"http": Loading}, "FOCUS_EXCLUDE": ["logout"], "RETRY_ENABLED": False}
    result = crawl(Shown, settings, seeds=[site.url("/ok")])
    assert result.outcomes == {"out_of_scope": 1}
    assert result.stats["focus/browser/refused/scope"] == 1
    assert result.stats["focus/scope/excluded"] == 1
