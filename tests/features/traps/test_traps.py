"""Endless sites, and pages with more links than needed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, crawl
from scrapy import Request

from scrapy_focus.engine.intake import Intake

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from mocksite import MockSite
    from scrapy.http import Response


ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
LINKS = {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_MAX_INFLIGHT": 1}


def links(urls: Sequence[str]) -> str:
    """Return a page with a list of links."""
    return "".join(f'<li class="row"><a href="{url}">{url}</a></li>' for url in urls)


class Ticking(Follower):
    """Counts the turns of the event loop."""

    name = "ticking"
    ticks = 0

    async def start(self) -> AsyncIterator[Any]:
        self.task = asyncio.ensure_future(self.tick())
        async for each in super().start():
            yield each

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(0)
            Ticking.ticks += 1


@pytest.mark.both
@pytest.mark.reactor
@ADDON
def test_the_first_links_of_a_page_are_followed(site: MockSite, addon: bool) -> None:
    """Links beyond the limit are counted and logged once; the first ones are followed in their order on the page."""
    site.pages["/"] = links([f"/a{i}" for i in range(50)])
    site.pages |= {f"/a{i}": links([f"/b{i}-{j}" for j in range(20)]) for i in range(50)}
    settings = LINKS | {"FOCUS_MAX_LINKS": 12, "FOCUS_BUDGET_REQUESTS": 14}
    result = crawl(Follower, settings, addon=addon, seeds=[site.url("/")])
    assert site.paths == ["/", *(f"/a{i}" for i in range(12)), "/b0-0"]
    assert result.stats["focus/trap/links"] == 38 + 13 * 8 - 8
    [said] = result.logged("new links")
    assert site.url("/") in said
    assert "FOCUS_MAX_LINKS" in said


@pytest.mark.reactor
@ADDON
def test_the_loop_runs_while_links_are_refused(site: MockSite, addon: bool) -> None:
    """A callback that yields thousands of links too many yields to the event loop repeatedly."""
    site.pages["/"] = links([f"/a{i}" for i in range(5000)])

    class Floods(Ticking):
        """Gives very many links."""

        name = "floods"
        turns = 0

        def parse(self, response: Response) -> Iterator[Any]:
            began = Ticking.ticks
            yield from (Request(site.url(f"/a{i}")) for i in range(5000))
            self.turns = Ticking.ticks - began

    settings = LINKS | {"FOCUS_MAX_LINKS": 10, "FOCUS_BUDGET_REQUESTS": 1}
    result = crawl(Floods, settings, addon=addon, seeds=[site.url("/")])
    assert result.stats["focus/trap/links"] == 4990
    assert result.spider.turns >= 5


class Generates(Follower):
    """Makes many requests of a page that names two numbers."""

    name = "generates"

    def parse(self, response: Response) -> Iterator[Any]:
        if response.url.endswith("/numbers"):
            yield from (Request(response.urljoin(f"/ok?{i}")) for i in range(50))


@ADDON
@pytest.mark.parametrize("kind", ["text/html", "application/json", "application/xml"])
def test_requests_that_code_makes_are_no_links(site: MockSite, addon: bool, kind: str) -> None:
    """A callback may make as many requests as it likes of a page without as many links."""
    xml = "<urlset>" + "<url><loc>href</loc></url>" * 50 + "</urlset>"
    body = {"text/html": links(["/ok?0", "/ok?1"]), "application/json": "[1, 50]", "application/xml": xml}[
        kind
    ].encode()
    site.answers["/numbers"] = lambda _: (200, {"Content-Type": kind}, body)
    result = crawl(Generates, LINKS | {"FOCUS_MAX_LINKS": 10}, addon=addon, seeds=[site.url("/numbers")])
    assert set(site.paths) == {"/numbers", *(f"/ok?{i}" for i in range(50))}
    assert "focus/trap/links" not in result.stats


@ADDON
def test_links_that_are_known_do_not_count(site: MockSite, addon: bool) -> None:
    """A page whose first links are known may have as many new ones as any."""
    known = [f"/a{i}" for i in range(10)]
    site.pages |= {"/": links(known), "/a0": links([*known, *(f"/b{i}" for i in range(20))])}
    crawl(Follower, LINKS | {"FOCUS_MAX_LINKS": 10}, addon=addon, seeds=[site.url("/")])
    assert {path for path in site.paths if path.startswith("/b")} == {f"/b{i}" for i in range(10)}


@ADDON
def test_a_path_that_repeats_itself_ends(site: MockSite, addon: bool) -> None:
    """Relative links that lead deeper and deeper are followed a few times; other links are found."""
    site.pages["/"] = links(["en/x", "/good"])
    deep = "/"
    for _ in range(40):
        deep += "en/"
        site.pages[f"{deep}x"] = links(["en/x"])
    result = crawl(Follower, LINKS, addon=addon, seeds=[site.url("/")])
    assert site.paths[-1] == f"/{'en/' * 5}x"
    assert len(site.paths) == 7
    assert result.stats["focus/trap/repeats"] == 1
    assert result.reason == "finished"
    site.log.clear()
    off = crawl(Follower, LINKS | {"FOCUS_MAX_REPEATS": 0}, addon=addon, seeds=[site.url("/")])
    assert len(site.paths) == 2 + 31
    assert off.stats["focus/trap/folders"] == 1


@ADDON
def test_the_same_page_under_ever_new_urls_ends(site: MockSite, addon: bool) -> None:
    """Links of so many copies of a page are followed; revisits of one URL are no copies."""
    site.pages["/"] = links(["/s/0/"])
    site.pages |= {f"/s/{'z/' * i}0/": '<a href="../z/0/">next</a>' for i in range(30)}
    settings = LINKS | {"FOCUS_MAX_COPIES": 4, "FOCUS_MAX_REPEATS": 0}
    result = crawl(Follower, settings, addon=addon, seeds=[site.url("/")])
    assert len(site.paths) == 6
    assert result.stats["focus/trap/copies"] == 1
    assert len(result.logged("same page")) == 1


@ADDON
def test_what_is_asked_for_outright_is_not_refused(site: MockSite, addon: bool) -> None:
    """Start requests, redirects, and requests that are no plain links go out, however their URLs look."""
    endless = "/" + "en/" * 40
    site.pages |= {endless: "x", "/": f'<a href="/redirect?to={endless}to">r</a>', f"{endless}to": "y"}

    class Asks(Follower):
        name = "asks"

        def parse(self, response: Response) -> Iterator[Any]:
            yield from super().parse(response)
            if response.url == site.url("/"):
                yield Request(site.url(f"{endless}again"), dont_filter=True, callback=self.done)
                yield Request(site.url(f"{endless}post"), method="POST", body=b"x", callback=self.done)

        def done(self, response: Response) -> None:
            pass

    result = crawl(Asks, LINKS, addon=addon, seeds=[site.url(endless), site.url("/")])
    assert {endless, f"{endless}to", f"{endless}again"} <= set(site.paths)
    assert ("POST", f"{endless}post") in site.asked
    assert not any(name.startswith("focus/trap") for name in result.stats)


def test_few_requests_of_a_full_page_go_the_whole_way(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the add-on most of them are dropped right after the spider, and counted all the same."""
    taken: list[str] = []
    take = Intake.take

    def counting(self: Intake, request: Request) -> bool:
        taken.append(request.url)
        return take(self, request)

    monkeypatch.setattr(Intake, "take", counting)
    site.pages["/"] = "".join(f'<a href="/ok?{i}">{i}</a>' for i in range(500))
    result = crawl(Follower, {"FOCUS_MAX_LINKS": 10}, addon=True, seeds=[site.url("/")])
    assert len(result.items) == 11
    assert result.stats["focus/trap/links"] == 490
    assert len(taken) < 30
