"""A policy whose links may be chosen later is asked again at that time, and not before."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl
from scrapy.core.engine import ExecutionEngine

from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mocksite import MockSite

LATER = 0.5  # seconds
_HEARTBEAT = 120.0  # seconds after which the engine asks in any case


class Later(BreadthFirst):
    """Chooses links of a page at the earliest half a second after it arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = 0.0
        self.asked = 0

    def place(self, links: Any, source: Any) -> Any:
        self.ready = self.now + LATER
        return super().place(links, source)

    def select(self, busy: Any) -> Any:
        self.asked += 1
        return super().select(busy) if self.now >= self.ready else None

    def due(self) -> float | None:
        return self.ready


class MuchLater(Later):
    """Says that it will have a link after the end of all waiting."""

    days: float = 1e9

    def place(self, links: Any, source: Any) -> Any:
        places = super().place(links, source)
        self.ready = self.now + self.days if source is not None else self.now
        return places


class Never(MuchLater):
    """Says that it will never have anything again."""

    days = float("inf")


@pytest.fixture(autouse=True)
def _slow_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExecutionEngine, "_SLOT_HEARTBEAT_INTERVAL", _HEARTBEAT)


@pytest.mark.reactor
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_a_crawl_waits_until_a_link_is_due(site: MockSite, addon: bool) -> None:
    """Nothing else wakes the engine: it asks at that time, and neither ends nor asks in vain meanwhile."""
    site.pages |= {"/": '<a href="/1">1</a>', "/1": '<a href="/2">2</a>', "/2": "2"}
    began = time.monotonic()
    result = crawl(Follower, {"FOCUS_POLICY": Later}, addon=addon, seeds=[site.url("/")])
    elapsed = time.monotonic() - began
    assert site.paths == ["/", "/1", "/2"]
    assert result.reason == "finished"
    assert result.errors == {}
    assert 3 * LATER <= elapsed < _HEARTBEAT
    assert result.scheduler.crawl.policy.asked < 30


class StopsSoon(Follower):
    """Ends half a second after a link is queued."""

    async def start(self) -> AsyncIterator[Any]:
        async for each in super().start():
            yield each
        while not self.crawler.engine.scheduler.focus_host.status().waiting:
            await asyncio.sleep(0.01)
        loop, engine = asyncio.get_running_loop(), self.crawler.engine
        loop.call_later(LATER, lambda: loop.create_task(engine.close_spider_async(reason="soon")))


def test_what_is_due_later_ends_with_the_crawl(site: MockSite, tmp_path: Path) -> None:
    """A crawl that is stopped while it waits ends at once, and the next run of its job waits again."""
    site.pages |= {"/": '<a href="/1">1</a>', "/1": "1"}
    settings = {"FOCUS_POLICY": MuchLater, "JOBDIR": str(tmp_path)}
    for _ in range(2):
        began = time.monotonic()
        result = crawl(StopsSoon, settings, seeds=[site.url("/")])
        assert result.reason == "soon"
        assert time.monotonic() - began < _HEARTBEAT
        assert result.stats["focus/waiting"] == 1
        assert result.scheduler.crawl.policy.asked < 30
    assert site.paths == ["/"]


def test_what_is_never_due_does_not_hold_up_the_end(site: MockSite) -> None:
    """A crawl ends if the policy says that it will never choose the queued links, like a simulated one."""
    site.pages |= {"/": '<a href="/1">1</a>', "/1": "1"}
    result = crawl(Follower, {"FOCUS_POLICY": Never}, seeds=[site.url("/")])
    assert site.paths == ["/"]
    assert result.reason == "finished"
    assert result.stats["focus/waiting"] == 1
    assert result.errors == {}
