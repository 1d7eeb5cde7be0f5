"""Pages with very many links, which are placed in parts, so that the event loop is not held up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, crawl
from scrapy import Request

from scrapy_focus.core.placer import PART
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

    from scrapy_focus import Link, Outcome, Placement

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


class Parts(BreadthFirst):
    """Notes how many links it receives at once, in which turn of the loop, and the state of their page."""

    given: list[tuple[int, int, float]] = []
    paths: list[str] = []
    reads_page = True

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        if source is not None:
            Parts.given.append((len(links), Ticking.ticks, source.reward))
            Parts.paths += [link.tag_path for link in links]
        return super().place(links, source)


@pytest.mark.slow
@pytest.mark.reactor
@ADDON
@pytest.mark.parametrize("job", [False, True], ids=["memory", "job"])
def test_a_page_with_many_links_is_placed_in_turns(
    site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, addon: bool, job: bool
) -> None:
    """Every link is placed once, with its path and the reward of its page, and the loop runs between the parts."""
    monkeypatch.setattr("scrapy_focus.engine.turns._TURN", 0.0)  # however fast the machine is
    n = 4 * PART + 100
    site.pages["/"] = links([f"/a{i}" for i in range(n)])
    settings = LINKS | {"FOCUS_POLICY": Parts, "FOCUS_BUDGET_REQUESTS": 2, "FOCUS_GOAL": lambda _: 1.0}
    settings |= {"JOBDIR": str(tmp_path)} if job else {}
    Parts.given, Parts.paths = [], []
    result = crawl(Ticking, settings, addon=addon, seeds=[site.url("/")])
    assert [size for size, _, _ in Parts.given[:5]] == [PART, PART, PART, PART, 100]
    turns = [turn for _, turn, _ in Parts.given[:5]]
    assert turns[0] < turns[-1]
    assert {reward for _, _, reward in Parts.given[:5]} == {1.0}
    assert set(Parts.paths[:n]) == {"html/body/li.row/a"}
    assert result.stats["focus/waiting"] == n - 1
    assert site.paths == ["/", "/a0"]
    assert result.errors == {}


class Stops(BreadthFirst):
    """Ends the crawl with its second part."""

    parts = 0

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        Stops.parts += 1
        if source is not None and Stops.parts == 3:
            asyncio.get_running_loop().create_task(Stopped.engine.close_spider_async(reason="stopped"))
        return super().place(links, source)


class Stopped(Follower):
    name = "stopped"
    engine: Any = None

    def parse(self, response: Response) -> Iterator[Any]:
        Stopped.engine = self.crawler.engine
        yield from super().parse(response)


def test_a_stop_in_the_middle_of_a_page_loses_no_link(site: MockSite, tmp_path: Path) -> None:
    """A crawl that is stopped while links of a page are placed places the rest before it ends."""
    n = 6 * PART
    site.pages["/"] = links([f"/a{i}" for i in range(n)])

    settings = LINKS | {"FOCUS_POLICY": Stops, "JOBDIR": str(tmp_path), "FOCUS_BUDGET_REQUESTS": 10}
    result = crawl(Stopped, settings, seeds=[site.url("/")])
    assert result.reason == "stopped"
    assert result.stats["focus/waiting"] + len(site.paths) - 1 == n


@ADDON
def test_links_of_no_page_are_placed_in_parts(site: MockSite, addon: bool) -> None:
    """So many start requests at once, or links of an unknown page, do not block the loop either."""

    class Loose(Follower):
        name = "loose"

        def parse(self, response: Response) -> Iterator[Any]:
            for i in range(3 * PART + 7):
                request = Request(site.url(f"/a{i}"))
                self.crawler.engine.scheduler.enqueue_request(request)
            yield None

    class Sizes(BreadthFirst):
        sizes: list[int] = []

        def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
            Sizes.sizes.append(len(links))
            return super().place(links, source)

    site.pages["/"] = "x"
    result = crawl(
        Loose, LINKS | {"FOCUS_POLICY": Sizes, "FOCUS_BUDGET_REQUESTS": 3}, addon=addon, seeds=[site.url("/")]
    )
    assert max(Sizes.sizes) <= PART
    assert sum(Sizes.sizes) == 3 * PART + 8
    assert result.stats["focus/waiting"] + len(site.paths) == sum(Sizes.sizes)


def test_urls_that_scrapy_finds_too_long_are_counted_with_the_rest(site: MockSite) -> None:
    """Scrapy's limit is not doubled, only shown."""
    site.pages["/"] = links(["/" + "a" * 3000, "/b"])
    result = crawl(Follower, LINKS, seeds=[site.url("/")])
    assert result.stats["focus/trap/length"] == 1
