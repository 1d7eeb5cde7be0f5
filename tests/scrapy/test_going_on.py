"""Crawls that continue although something in them failed, in the same run or in the next."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Crawled, Follower, crawl
from mocksite import tree_paths
from scrapy import Request, Spider

from scrapy_focus.engine.ending import ending_of
from scrapy_focus.engine.marks import PICK
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

    from scrapy_focus import Outcome, Pick

ONE_AT_A_TIME = {"CONCURRENT_REQUESTS": 1, "FOCUS_MAX_INFLIGHT": 1}


class Spoiled(BreadthFirst):
    """Cannot be pickled any more when it has learned something."""

    spoils = True

    def learn(self, outcome: Outcome) -> None:
        if self.spoils:
            self.answer = lambda: 42


def test_a_policy_that_cannot_be_stored_any_more(
    site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every page is fetched, each failed checkpoint is counted, and the next run has all from the journal."""
    settings = {"FOCUS_POLICY": Spoiled, "JOBDIR": str(tmp_path), "FOCUS_CHECKPOINT_EVERY": 5}
    seeds = [site.url("/page/0/60")]
    first = crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 30}, seeds=seeds)
    assert len(site.log) == 30
    assert first.errors["checkpoint"] == 6
    assert first.logged("checkpoint of Spoiled failed")
    assert first.logged("remove what cannot be pickled in Spoiled.__getstate__")
    asked = len(site.log)
    with pytest.raises(Exception):  # noqa: B017, PT011 (Scrapy hides which)
        crawl(Follower, {**settings, "FOCUS_POLICY": BREADTH_FIRST}, seeds=seeds)
    assert len(site.log) == asked
    monkeypatch.setattr(Spoiled, "spoils", False)
    second = crawl(Follower, settings, seeds=seeds)
    assert second.reason == "finished"
    assert second.stats["focus/reward"] == 60
    assert Counter(site.paths) == Counter(tree_paths(60))


def test_a_policy_that_can_never_be_stored_again(site: MockSite, tmp_path: Path) -> None:
    """A crawl whose policy stays unpicklable ends normally, and the next run finds it."""
    settings = {"FOCUS_POLICY": Spoiled, "JOBDIR": str(tmp_path), "FOCUS_CHECKPOINT_EVERY": 5}
    for _ in range(2):
        result = crawl(Follower, settings, seeds=[site.url("/page/0/60")])
        assert result.reason == "finished"
        assert result.stats["focus/reward"] == 60
    assert result.logged("it was finished")
    assert Counter(site.paths) == Counter(tree_paths(60))


class Late(Spider):
    """Reports rewards a while after the pages; its requests cannot be turned into plain values."""

    name = "late"
    seconds = 0.2

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.url, meta={"shared": [1]})

    def parse(self, response: Response) -> Iterator[Any]:
        pick_id, reward = response.meta[PICK], self.crawler.engine.scheduler.reward
        asyncio.get_running_loop().call_later(self.seconds, reward, pick_id, 1.0)
        yield from response.follow_all(css="a", meta={"shared": [1]})


def never(outcome: Outcome) -> None:
    """A goal that knows of no page at once."""


@pytest.mark.parametrize("pages", [2, 100], ids=["stopped", "whole"])
def test_a_redirect_target_is_known_afterwards(site: MockSite, tmp_path: Path, pages: int) -> None:
    """What a redirect led to is not fetched again when a later page links it, in the same run or in the next."""
    site.pages["/"] = '<a href="/redirect?to=/target">r</a> <a href="/after">a</a>'
    site.pages["/after"] = '<a href="/target">t</a> <a href="/last">l</a>'
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "JOBDIR": str(tmp_path), **ONE_AT_A_TIME}
    first = crawl(Follower, {**settings, "CLOSESPIDER_PAGECOUNT": pages}, seeds=[site.url("/")])
    assert ("/last" in site.paths) == (first.reason == "finished") == (pages == 100)
    crawl(Follower, settings, seeds=[site.url("/")])
    assert site.paths == ["/", "/redirect?to=/target", "/target", "/after", "/last"]


def redirects_later(outcome: Outcome) -> float | None:
    """A goal that does not know at once the reward of redirect targets."""
    return None if "redirect" in outcome.pick.url else 0.0


def test_links_of_pages_whose_rewards_come_late(site: MockSite) -> None:
    """Requests kept in memory, not as records, still exist when the reward of their page comes."""
    result = crawl(Late, {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_GOAL": never}, url=site.url("/page/0/15"))
    assert Counter(site.paths) == Counter(tree_paths(15))
    assert result.outcomes == {"ok": 15}
    assert result.stats["focus/reward"] == 15
    assert len(result.scheduler.focus_host.requests) == 0


def test_a_redirect_target_whose_reward_is_owed(site: MockSite) -> None:
    """It is known while its reward is not: a link to it from another page is not followed."""
    site.pages["/"] = '<a href="/redirect?to=/target">r</a> <a href="/other">o</a>'
    site.pages |= {"/target": "t", "/other": '<a href="/target">t</a>'}
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_GOAL": redirects_later, "CONCURRENT_REQUESTS": 1}
    result = crawl(Late, settings, url=site.url("/"))
    assert site.paths == ["/", "/redirect?to=/target", "/target", "/other"]
    assert result.stats["focus/reward"] == 1


class Deep(Follower):
    """Follows links with a custom method."""

    name = "deep"

    def parse(self, response: Response) -> Iterator[Any]:
        yield from response.follow_all(css="a", callback=self.parse_deep)

    def parse_deep(self, response: Response) -> Iterator[Any]:
        yield from self.parse(response)


class Shallow(Follower):
    """Has the name of the other, and not its method."""

    name = "deep"


class Renamed(Deep):
    """Has the methods of the other, and not its name."""

    name = "renamed"


def content(folder: Path) -> dict[str, bytes]:
    """Return every file of a crawl, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in ("pid", "lock")}


def stopped(site: MockSite, tmp_path: Path) -> dict[str, Any]:
    """Stop a crawl after five pages, and return its settings."""
    settings = {"JOBDIR": str(tmp_path), "FOCUS_POLICY": BREADTH_FIRST}
    crawl(Deep, {**settings, "FOCUS_BUDGET_REQUESTS": 5}, seeds=[site.url("/page/0/40")])
    assert len(site.log) == 5
    return settings


def goes_on(site: MockSite, settings: dict[str, Any]) -> Crawled:
    """Fail unless the right spider fetches everything left, each page once."""
    result = crawl(Deep, settings, seeds=[site.url("/page/0/40")])
    assert result.reason == "finished"
    assert Counter(site.paths) == Counter(tree_paths(40))
    return result


def test_a_spider_without_the_callback(site: MockSite, tmp_path: Path) -> None:
    """It requests nothing, and loses nothing: the message names the missing method."""
    settings = stopped(site, tmp_path)
    wrong = crawl(Shallow, settings, seeds=[site.url("/page/0/40")])
    assert wrong.reason == "focus_storage"
    assert wrong.logged("Shallow.parse_deep()")
    assert ending_of(wrong.crawler).status == 1
    assert len(site.log) == 5
    assert "lost" not in goes_on(site, settings).outcomes


def test_a_spider_of_another_name(site: MockSite, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is refused, with both names, before anything is changed."""
    settings = stopped(site, tmp_path)
    before = content(tmp_path / "focus")
    caplog.clear()
    with pytest.raises(Exception):  # noqa: B017, PT011 (Scrapy hides which)
        crawl(Renamed, settings, seeds=[site.url("/page/0/40")])
    assert [each for each in caplog.messages if "spider was deep and is renamed" in each]
    assert content(tmp_path / "focus") == before
    assert len(site.log) == 5
    goes_on(site, settings)


class Anonymous(Spider):
    """Starts from requests that cannot be stored."""

    name = "anonymous"

    def __init__(self, site: MockSite, dont_filter: bool) -> None:
        super().__init__()
        self.site = site
        self.dont_filter = dont_filter

    async def start(self) -> AsyncIterator[Any]:
        for i in range(8):
            yield Request(
                self.site.url(f"/ok?{i}"), lambda response: [{"url": response.url}], dont_filter=self.dont_filter
            )


@pytest.mark.parametrize("dont_filter", [False, True])
def test_start_requests_that_cannot_be_stored(site: MockSite, tmp_path: Path, dont_filter: bool) -> None:
    """The next run has them from ``start()`` again, callbacks and all."""
    settings = {"JOBDIR": str(tmp_path), "FOCUS_POLICY": BREADTH_FIRST, **ONE_AT_A_TIME}
    args = {"site": site, "dont_filter": dont_filter}
    first = crawl(Anonymous, {**settings, "CLOSESPIDER_PAGECOUNT": 1}, **args)
    assert first.stats["focus/waiting"] > 0
    assert len(site.paths) < 8
    second = crawl(Anonymous, settings, **args)
    assert Counter(site.paths) == Counter(f"/ok?{i}" for i in range(8))
    assert set(second.outcomes) <= {"ok", "lost"}  # those of the first run are lost, and come as new ones
    assert len(first.items) + len(second.items) == 8
    assert second.reason == "finished"


class Slotted(Follower):
    """Uses a number for a download slot."""

    name = "slotted"

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            yield Request(seed, meta={"download_slot": 5})

    def parse(self, response: Response) -> Iterator[Any]:
        yield from response.follow_all(css="a", meta={"download_slot": 5})


def test_a_download_slot_that_is_a_number(site: MockSite, tmp_path: Path) -> None:
    """It is kept from run to run, and its concurrency is too."""
    for budget in (5, 12, 100):
        settings = {"JOBDIR": str(tmp_path), "FOCUS_POLICY": BREADTH_FIRST, "FOCUS_BUDGET_REQUESTS": budget}
        settings["DOWNLOAD_SLOTS"] = {5: {"concurrency": 1, "delay": 0.0}}
        result = crawl(Slotted, settings, seeds=[site.url("/page/0/30")])
        assert result.errors == {}
        assert set(result.crawler.engine.downloader.slots) <= {5}
    assert result.reason == "finished"
    assert Counter(site.paths) == Counter(tree_paths(30))
    assert site.most_open == 1


class TakesTwo(BreadthFirst):
    """Takes out two links, and returns one, every third time."""

    asked = 0

    def select(self, busy: Collection[str]) -> Pick | None:
        self.asked += 1
        pick = super().select(busy)
        if self.asked % 3 == 0:
            super().select(busy)
        return pick


class Forgets(TakesTwo):
    """Takes out a link, and returns none, every third time."""

    def select(self, busy: Collection[str]) -> Pick | None:
        pick = super().select(busy)
        return None if self.asked % 3 == 0 else pick


@pytest.mark.few(2)
@pytest.mark.parametrize("policy", [TakesTwo, Forgets])
@pytest.mark.parametrize("at_once", [1, 8])
def test_a_policy_that_keeps_what_it_took(site: MockSite, policy: type[BreadthFirst], at_once: int) -> None:
    """Links that it does not return are queued again: every page is fetched, and nothing stays in flight."""
    settings = {"FOCUS_POLICY": policy, "FOCUS_MAX_INFLIGHT": at_once}
    result = crawl(Follower, settings, seeds=[site.url("/page/0/40")])
    assert Counter(site.paths) == Counter(tree_paths(40))
    assert result.reason == "finished"
    assert set(result.errors) == {"select"}
    assert not result.scheduler.crawl.frontier.flying
    assert result.logged(f"select of {policy.__name__} failed")


def test_a_log_from_the_second_run_on(site: MockSite, tmp_path: Path) -> None:
    """Over several runs, each pick made with a log is in it once, also after the log was moved."""
    settings = {"JOBDIR": str(tmp_path / "job"), "FOCUS_POLICY": BREADTH_FIRST, "FOCUS_CHECKPOINT_EVERY": 4}
    log, moved = tmp_path / "log.jsonl", tmp_path / "moved.jsonl"
    for budget, path in ((10, None), (20, log), (30, log), (40, moved), (100, moved)):
        if path is moved and log.exists():
            log.rename(moved)
        more = {} if path is None else {"FOCUS_LOG": str(path)}
        result = crawl(Follower, {**settings, **more, "FOCUS_BUDGET_REQUESTS": budget}, seeds=[site.url("/page/0/50")])
    assert result.reason == "finished"
    counts = Counter((event["event"], event["id"]) for event in result.events())
    assert set(counts.values()) == {1}
    assert sum(kind == "outcome" for kind, _ in counts) == 40


def test_a_crawl_that_was_finished(site: MockSite, tmp_path: Path) -> None:
    """If it is started again, the log says why nothing happens."""
    for _ in range(2):
        settings = {"JOBDIR": str(tmp_path), "FOCUS_POLICY": BREADTH_FIRST}
        result = crawl(Follower, settings, seeds=[site.url("/page/0/10")])
        assert bool(result.logged("it was finished; use another JOBDIR")) == (len(result.items) == 0)
    assert len(site.log) == 10


def test_item_ids_that_nobody_makes(site: MockSite) -> None:
    """Without the middleware that makes them, the setting is answered with a warning; with the add-on it is not."""
    for addon in (False, True):
        settings = {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_ITEM_ID": "id"}
        result = crawl(Follower, settings, addon=addon, seeds=[site.url("/ok")])
        assert bool(result.logged("FOCUS_ITEM_ID does nothing without the add-on")) is not addon


class Frozen(Follower):
    """Checks what the garbage collector skips."""

    name = "frozen"

    def parse(self, response: Response) -> Iterator[Any]:
        self.frozen = gc.get_freeze_count()
        yield from super().parse(response)


@pytest.mark.few(1)
@pytest.mark.parametrize("job", [False, True], ids=["memory", "job"])
def test_a_crawl_freezes_and_thaws(site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: bool) -> None:
    """When a crawl is over, nothing is passed over any more."""
    monkeypatch.setattr(Crawled, "check", lambda self: None)  # it opens and closes a frontier
    gc.unfreeze()
    settings = {"FOCUS_POLICY": BREADTH_FIRST, **({"JOBDIR": str(tmp_path)} if job else {})}
    result = crawl(Frozen, settings, seeds=[site.url("/page/0/5")])
    assert result.spider.frozen > 1000
    assert gc.get_freeze_count() == 0
