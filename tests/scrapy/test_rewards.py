"""The reward of a page: its items after the pipelines, or the value of a goal, at once or later."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, crawl
from mocksite import tree_paths
from scrapy.core.engine import ExecutionEngine
from scrapy.exceptions import DropItem

from scrapy_focus import RewardPipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])


class Rated(Follower):
    """Gives two items a page, with its number."""

    name = "rated"

    def parse(self, response: Response) -> Iterator[Any]:
        number = int(response.url.split("/")[-2])
        yield {"n": number, "half": 1}
        yield {"n": number, "half": 2}
        yield from response.follow_all(css="a")


class Halves:
    """Drops the second half of each page, except for page 3, which fails; starts later than other pipelines."""

    async def process_item(self, item: Any) -> Any:
        await asyncio.sleep(0.01)
        if item["half"] == 2:
            raise ValueError("as asked") if item["n"] == 3 else DropItem("as asked")
        return dict(item)  # another object


class ByNumber(RewardPipeline):
    """An item is worth its number."""

    def worth(self, item: Any) -> float:
        return float(item["n"])


def rewards(result: Any) -> dict[str, float]:
    """Return the reward of each URL, from the decision log."""
    events = result.events()
    urls = {event["id"]: event["url"] for event in events if event["event"] == "pick"}
    return {urls[event["id"]]: event["reward"] for event in events if event["event"] == "outcome"}


@ADDON
def test_dropped_items_are_worth_nothing(site: MockSite, tmp_path: Path, addon: bool) -> None:
    """Of two items a page, one that is dropped or fails in a pipeline does not count."""
    settings = {"ITEM_PIPELINES": {Halves: 100}, "FOCUS_LOG": str(tmp_path / "log.jsonl")}
    result = crawl(Rated, settings, addon=addon, seeds=[site.url("/page/0/10")])
    assert rewards(result) == {site.url(path): 1.0 for path in tree_paths(10)}
    assert result.stats["focus/reward"] == 10


@pytest.mark.reactor
@ADDON
def test_items_of_your_own_worth(site: MockSite, tmp_path: Path, addon: bool) -> None:
    """A subclass of RewardPipeline returns the reward of each item, and that of a page is their sum."""
    settings = {
        "ITEM_PIPELINES": {Halves: 100, ByNumber: 900, RewardPipeline: None}, "FOCUS_LOG": str(tmp_path / "log.jsonl"),
    }  # fmt: skip
    result = crawl(Rated, settings, addon=addon, seeds=[site.url("/page/0/10")])
    assert rewards(result) == {site.url(f"/page/{k}/10"): float(k) for k in range(10)}
    settings["ITEM_PIPELINES"] = {ByNumber: 900, RewardPipeline: None}
    settings["FOCUS_LOG"] = str(tmp_path / "all.jsonl")
    result = crawl(Rated, settings, addon=addon, seeds=[site.url("/page/0/10")])
    assert rewards(result) == {site.url(f"/page/{k}/10"): 2.0 * k for k in range(10)}


def shallow(outcome: Any) -> float:
    """A goal: pages with a small number are worth 2, others nothing."""
    return 2.0 if outcome.page is not None and "/page/1/" in outcome.page.url and "top" in outcome.page.text else 0.0


@ADDON
def test_goals_read_the_page(site: MockSite, addon: bool) -> None:
    """A goal may read the URL and the text of the fetched page."""
    result = crawl(Follower, {"FOCUS_GOAL": shallow}, addon=addon, seeds=[site.url("/page/0/10")])
    assert result.stats["focus/reward"] == 2


def later(outcome: Any) -> None:
    """A goal that never knows at once."""


class SaysLater(Follower):
    """Tells the worth of each page a tenth of a second after it was parsed."""

    name = "says_later"

    def parse(self, response: Response) -> Iterator[Any]:
        scheduler, pick = self.crawler.engine.scheduler, response.meta["focus_pick"]
        asyncio.get_running_loop().call_later(0.1, scheduler.reward, pick, 0.5)
        yield from response.follow_all(css="a")


@pytest.mark.reactor
@ADDON
def test_rewards_may_come_later(site: MockSite, monkeypatch: pytest.MonkeyPatch, addon: bool) -> None:
    """A page whose goal returned None is settled by scheduler.reward, which also wakes the engine at once."""
    monkeypatch.setattr(ExecutionEngine, "_SLOT_HEARTBEAT_INTERVAL", 30.0)
    settings = {"FOCUS_GOAL": later, "FOCUS_MAX_INFLIGHT": 1, "FOCUS_POLICY": BREADTH_FIRST}
    begin = time.monotonic()
    result = crawl(SaysLater, settings, addon=addon, seeds=[site.url("/page/0/10")])
    assert 1.0 <= time.monotonic() - begin < 200  # 300 if it slept until each heartbeat
    assert sorted(site.paths) == sorted(tree_paths(10))
    assert result.stats["focus/reward"] == 5
    assert result.stats["focus/in_flight"] == 0
    assert result.errors == {}


def test_rewards_that_never_come(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing reward is 0 after a while, and the crawl continues and ends."""
    monkeypatch.setattr("scrapy_focus.scheduler._PATIENCE", 0.25)
    result = crawl(Follower, {"FOCUS_GOAL": later}, seeds=[site.url("/page/0/10")])
    assert sorted(site.paths) == sorted(tree_paths(10))
    assert result.stats["focus/reward/late"] == 10
    assert result.stats["focus/reward"] == 0
    assert result.reason == "finished"
