"""Crawls with a small limit of queued links, over HTTP."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl
from mocksite import MockSite
from scrapy.cmdline import execute

from scrapy_focus import Placement, State
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy.http import Response

PAGES, FEW = 200, 40


@pytest.fixture
def web() -> Iterator[MockSite]:
    """Pages that link to 30 others each."""
    pages = {
        f"/{n}": "".join(f'<a href="/{(7 * n + i * i + 1) % PAGES}">{i}</a>' for i in range(30)) for n in range(PAGES)
    }
    with MockSite(pages=pages) as site:
        yield site


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", [BreadthFirst, None], ids=["ranked", "drawn"])
@pytest.mark.parametrize("stored", [False, True])
def test_nothing_is_fetched_twice(
    web: MockSite, tmp_path: Path, policy: Any, stored: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each seen link is fetched or given up; the number of the latter is in the stats, the log and focus-status."""
    settings = {"FOCUS_MOST_WAITING": FEW, "CONCURRENT_REQUESTS": 8, "LOG_LEVEL": "INFO"}
    settings |= {"FOCUS_POLICY": policy} if policy else {}
    settings |= {"JOBDIR": str(tmp_path / "job")} if stored else {}
    result = crawl(Follower, settings, addon=True, seeds=[web.url("/0")])
    paths = [path for path in web.paths if path != "/robots.txt"]
    assert len(paths) == len(set(paths))
    dropped = result.stats["focus/link/dropped"]
    assert dropped > 50
    assert PAGES // 2 < dropped + len(paths) <= PAGES
    assert result.stats["focus/waiting"] == 0
    assert result.errors == {}
    assert len(result.logged("links were queued, above the limit of 40")) == 1
    assert f"{dropped:,} links given up, as too many were queued" in result.logged("Finished (finished)")[0]
    if stored:
        with pytest.raises(SystemExit):
            execute(["scrapy", "focus-status", settings["JOBDIR"]])
        assert f"dropped     {dropped:,} links given up, as too many were queued" in capsys.readouterr().out
        with pytest.raises(SystemExit):
            execute(["scrapy", "focus-status", settings["JOBDIR"], "--json"])
        links = json.loads(capsys.readouterr().out)["links"]
        assert (links["waiting"], links["fetched"], links["given_up"]) == (0, len(paths), dropped)


def test_the_limit_may_change_between_runs(web: MockSite, tmp_path: Path) -> None:
    """A run with a lower one starts by giving links up; none fetches again what another one fetched."""
    settings = {"JOBDIR": str(tmp_path / "job"), "FOCUS_POLICY": BreadthFirst, "FOCUS_MAX_INFLIGHT": 4}
    first = crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 20}, seeds=[web.url("/0")])
    waiting = first.stats["focus/waiting"]
    assert waiting > 2 * FEW
    second = crawl(
        Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 40, "FOCUS_MOST_WAITING": FEW}, seeds=[web.url("/0")]
    )
    assert second.stats["focus/link/dropped"] >= waiting - FEW
    assert second.stats["focus/waiting"] <= FEW + 4
    crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": None}, seeds=[web.url("/0")])
    paths = [path for path in web.paths if path != "/robots.txt"]
    assert len(paths) == len(set(paths))


class Popular(BreadthFirst):
    """Takes a link back that was given up when the fifth page links to it."""

    wants_known = frozenset({State.GIVEN_UP})

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[int, int] = {}
        self.back: list[str] = []

    def place(self, links: Any, source: Any) -> Any:
        places: list[Placement | None] = []
        for link, place in zip(links, super().place(links, source), strict=True):
            n = self.seen[link.key] = self.seen.get(link.key, 0) + 1
            if link.state == State.GIVEN_UP and n >= 5:
                self.back.append(link.url)
            places.append(place if link.state != State.GIVEN_UP or n >= 5 else None)
        return places


class Kept(Follower):
    """Yields requests that are kept in memory, with a callback that cannot be stored."""

    name = "kept"

    def parse(self, response: Response) -> Iterator[Any]:
        for result in super().parse(response):
            yield result if isinstance(result, dict) else result.replace(callback=partial(self.parse))


@pytest.mark.slow
@pytest.mark.parametrize("spider", [Follower, Kept])
@pytest.mark.parametrize("addon", [False, True])
def test_links_given_up_can_be_found_again(web: MockSite, spider: type[Follower], addon: bool) -> None:
    """Links that are found often later are fetched after all, once; requests of those given up are not held."""
    settings = {"FOCUS_POLICY": Popular, "FOCUS_MOST_WAITING": FEW, "CONCURRENT_REQUESTS": 8}
    result = crawl(spider, settings, addon=addon, seeds=[web.url("/0")])
    paths = [path for path in web.paths if path != "/robots.txt"]
    assert len(paths) == len(set(paths))
    back = {url.removeprefix(web.url("")) for url in result.policy.back}
    assert len(back & set(paths)) > 10
    assert len(result.scheduler.focus_host.requests) == 0
    assert result.outcomes == {"ok": len(paths)}
    assert result.errors == {}


def test_requests_of_links_that_are_given_up_are_not_held(web: MockSite) -> None:
    """Even if they are kept in memory, and no link is found again."""
    settings = {"FOCUS_POLICY": BreadthFirst, "FOCUS_MOST_WAITING": FEW}
    result = crawl(Kept, settings, addon=True, seeds=[web.url("/0")])
    assert result.stats["focus/link/dropped"] > 50
    assert len(result.scheduler.focus_host.requests) == 0
    assert set(result.outcomes) == {"ok"}
