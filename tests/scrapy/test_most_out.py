"""A policy that learns chooses only after pending outcomes are learned; pages that wait otherwise block nothing.

Nothing here depends on the speed of the machine: the engine's heartbeat is off, and sites and callbacks hold their
output until as many requests are in flight as expected.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, crawl
from mocksite import MockSite, Seen, tree_paths
from scrapy import Request
from scrapy.core.engine import ExecutionEngine
from scrapy.exceptions import DropItem

from scrapy_focus.core.outstanding import LEAST, most_out
from scrapy_focus.engine import room
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from scrapy_focus import Outcome

pytestmark = pytest.mark.reactor
MANY = {"CONCURRENT_REQUESTS": 64, "CONCURRENT_REQUESTS_PER_DOMAIN": 64}
LATE = 20  # pages whose reward is known later
EIGHT = {"CONCURRENT_REQUESTS": 8, "CONCURRENT_REQUESTS_PER_DOMAIN": 8}


@pytest.fixture(autouse=True)
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every event that allows a request has to wake the engine; and no download counts as slow."""
    monkeypatch.setattr(ExecutionEngine, "_SLOT_HEARTBEAT_INTERVAL", 100 * HANG)
    monkeypatch.setattr(room, "LONGEST", math.inf)


class Counting(BreadthFirst):
    """Counts, before each choice, the picks in flight and those that it has learned."""

    def __init__(self) -> None:
        super().__init__()
        self.out = 0
        self.learned = 0
        self.choices: list[tuple[int, int]] = []  # out, learned

    def select(self, busy: Any) -> Any:
        out = self.out, self.learned
        if (pick := super().select(busy)) is not None:
            self.out += 1
            self.choices.append(out)
        return pick

    def learn(self, outcome: Outcome) -> None:
        self.out -= 1
        self.learned += 1

    def release(self, pick: Any) -> None:
        self.out -= 1


class Together(MockSite):
    """Holds what it is asked for until all of several sites together were asked for so many pages."""

    def __init__(self, host: str = "127.0.0.1", *, until: int, sites: list[MockSite]) -> None:
        super().__init__(host)
        self.until = until
        self.sites = sites
        sites.append(self)
        self.hold(0)

    def begin(self, seen: Seen) -> None:
        if sum(len(site.log) for site in self.sites) + 1 >= self.until:
            for site in self.sites:
                site.go_on()
        super().begin(seen)


class Waiting(Follower):
    """Its callbacks wait until so many of them do, and their output earns a reward."""

    until = 40
    waiting = most = 0

    async def parse(self, response: Any) -> AsyncIterator[Any]:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        while self.most < self.until:
            await asyncio.sleep(0.5)
        self.waiting -= 1
        for found in super().parse(response):
            yield found


@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_no_more_are_out_than_concurrent_requests(site: MockSite, addon: bool) -> None:
    """Not even those whose pages are being read, and as many are."""
    result = crawl(Follower, {**EIGHT, "FOCUS_POLICY": Counting}, addon=addon, seeds=[site.url("/page/0/300")])
    assert sorted(site.paths) == sorted(tree_paths(300))
    assert max(out for out, _ in result.policy.choices) == 8 - 1


@pytest.mark.slow
def test_few_are_out_as_long_as_little_is_known(site: MockSite) -> None:
    """At each choice no more than the rule allows, and as many if enough links are queued."""
    result = crawl(Follower, {**MANY, "FOCUS_POLICY": Counting}, seeds=_linked(site, 400))
    assert len(site.paths) == 401
    assert all(out < min(64, most_out(learned)) for out, learned in result.policy.choices)
    full = [learned for out, learned in result.policy.choices if out + 1 == most_out(learned) > LEAST]
    assert max(full, default=0) > 200


@pytest.mark.slow
def test_the_bound_can_be_another_or_none(site: MockSite) -> None:
    """A number applies to policies that learn nothing, too; 0 disables it."""
    seeds = [site.url("/page/0/60")]
    counted = crawl(Follower, {**MANY, "FOCUS_POLICY": Counting, "FOCUS_MOST_OUT": 3}, seeds=seeds)
    assert max(out for out, _ in counted.policy.choices) == 3 - 1
    with Together(until=30, sites=[]) as held:
        crawl(Follower, {**MANY, "FOCUS_POLICY": Counting, "FOCUS_MOST_OUT": 0}, seeds=_pages(held, 40))
        assert held.most_open >= 30
    with Together(until=30, sites=[]) as held:
        crawl(Follower, {**MANY, "FOCUS_POLICY": BREADTH_FIRST}, seeds=_pages(held, 40))
        assert held.most_open >= 30
    site.log.clear()
    result = crawl(Follower, {**MANY, "FOCUS_POLICY": BREADTH_FIRST, "FOCUS_MOST_OUT": 3}, seeds=_pages(site, 40))
    assert result.scheduler.choices.room is not None
    assert site.most_open <= 3


@pytest.mark.few(1)
@pytest.mark.parametrize("settings", [EIGHT, MANY], ids=["8", "64"])
def test_callbacks_that_wait_hold_nothing_up(site: MockSite, settings: dict[str, Any]) -> None:
    """As many wait as there are pages: everything the site can deliver is requested, without a heartbeat."""
    result = crawl(Waiting, {**settings, "FOCUS_POLICY": Counting}, seeds=_pages(site, 60))
    assert len(site.paths) == 60
    assert result.spider.most >= Waiting.until
    assert max(out for out, _ in result.policy.choices) >= Waiting.until - 1


class Pipeline:
    """Waits until so many items do."""

    waiting = most = 0

    async def process_item(self, item: Any) -> Any:
        cls = type(self)
        cls.waiting += 1
        cls.most = max(cls.most, cls.waiting)
        while cls.most < Waiting.until:
            await asyncio.sleep(0.5)
        cls.waiting -= 1
        return item


def test_pipelines_that_wait_hold_nothing_up(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items wait like callbacks."""
    monkeypatch.setattr(Pipeline, "most", 0)
    settings = {**EIGHT, "FOCUS_POLICY": Counting, "ITEM_PIPELINES": {Pipeline: 100}}
    result = crawl(Follower, settings, seeds=_pages(site, 60))
    assert len(result.items) == 60
    assert Pipeline.most >= Waiting.until


class Taking:
    """Takes items one after another, each some turns later, but at the same time."""

    async def process_item(self, item: Any) -> Any:
        for _ in range(room.TURNS // 2):
            await asyncio.sleep(0)
        return item


class Dropping(Taking):
    """Drops them then."""

    async def process_item(self, item: Any) -> Any:
        await super().process_item(item)
        raise DropItem("like all others")


class Talkative(Follower):
    """Yields so many items that they take more turns than a waiting page is given."""

    def parse(self, response: Any) -> Iterator[Any]:
        for n in range(12):
            yield {"n": n}
        yield from super().parse(response)


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", [Taking, Dropping])
def test_pages_that_take_many_turns_do_not_wait(site: MockSite, pipeline: type) -> None:
    """As long as something happens with them, they are about to be learned."""
    settings = {**EIGHT, "FOCUS_POLICY": Counting, "CONCURRENT_ITEMS": 2, "ITEM_PIPELINES": {pipeline: 100}}
    result = crawl(Talkative, settings, seeds=[site.url("/page/0/60")])
    assert len(site.paths) == 60
    assert max(out for out, _ in result.policy.choices) == 8 - 1


def test_long_downloads_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight that take longer than usual keep nothing else from starting, as long as Scrapy allows it."""
    monkeypatch.setattr(room, "LONGEST", 0.05)
    with Together(until=16, sites=[]) as site:
        crawl(Follower, {"FOCUS_POLICY": Counting, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}, seeds=_pages(site, 40))
        assert len(site.paths) == 40


def test_hosts_with_a_delay_are_all_asked(site: MockSite) -> None:
    """One pick of each does not count, so that all of them have something to do from the beginning."""
    sites: list[MockSite] = []
    with ExitStack() as stack:
        for number in range(20):
            stack.enter_context(Together(f"127.0.0.{number + 1}", until=20, sites=sites))
        settings = {**MANY, "FOCUS_POLICY": Counting, "DOWNLOAD_DELAY": 0.01}
        crawl(Follower, settings, seeds=[site.url("/ok?1") for site in sites])
        assert all(len(site.paths) == 1 for site in sites)


class Rewarding(Follower):
    """Reports rewards once so many are missing."""

    owed = 0

    def parse(self, response: Any) -> Iterator[Any]:
        yield from super().parse(response)
        scheduler = self.crawler.engine.scheduler
        if len(owed := scheduler.focus_host.status().owed) >= LATE:
            self.owed = len(owed)
            for pick_id in owed:
                scheduler.reward(pick_id, 1.0)


def unknown(outcome: Outcome) -> float | None:
    """Answer for the first pages that their rewards come later."""
    return None if int(outcome.pick.url.rpartition("?")[2]) < LATE else 1.0


def test_rewards_that_come_later_hold_nothing_up(site: MockSite) -> None:
    """A fetched page is no longer in flight, whenever its reward is known."""
    settings = {**EIGHT, "FOCUS_POLICY": Counting, "FOCUS_GOAL": unknown}
    result = crawl(Rewarding, settings, seeds=_pages(site, 60))
    assert len(site.paths) == 60
    assert result.spider.owed == LATE
    assert max(out for out, _ in result.policy.choices) >= LATE


class Moved(Follower):
    """Asks for pages that are redirected, and for some that fail twice."""

    async def start(self) -> AsyncIterator[Any]:
        for number in range(60):
            yield Request(self.seeds[0] + f"/redirect?to=/ok?{number}")
            yield Request(self.seeds[0] + f"/status?code=503&n={number}")


def test_redirects_and_retries_are_one_pick(site: MockSite) -> None:
    """None of them is blocked by the others, and no more are in flight."""
    result = crawl(Moved, {**EIGHT, "FOCUS_POLICY": Counting, "RETRY_TIMES": 1}, seeds=[site.url("")])
    assert len(site.paths) == 60 * 2 + 60 * 2
    assert max(out for out, _ in result.policy.choices) == 8 - 1


@pytest.mark.slow
def test_a_resumed_crawl_continues_with_as_many(site: MockSite, tmp_path: Path) -> None:
    """What an earlier run learned counts, from its first choice on."""
    settings = {**MANY, "FOCUS_POLICY": Counting, "JOBDIR": str(tmp_path)}
    crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 150}, seeds=_linked(site, 400))
    second = crawl(Follower, settings, seeds=_linked(site, 400))
    choices = [(out, learned) for out, learned in second.policy.choices if learned >= 150]
    assert all(out < most_out(learned) for out, learned in choices)
    assert max(out for out, learned in choices if learned == 150) == most_out(150) - 1


def _pages(site: MockSite, n: int) -> list[str]:
    """Return the addresses of pages that a spider may start with."""
    return [site.url(f"/ok?{number}") for number in range(n)]


def _linked(site: MockSite, n: int) -> list[str]:
    """Return the address of a page that links to so many."""
    site.pages["/all"] = "".join(f'<a href="/ok?{number}">{number}</a>' for number in range(n))
    return [site.url("/all")]
