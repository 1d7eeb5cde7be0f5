"""``FOCUS_REQUEST_PRIORITY``: a higher priority goes first with any policy, in every frontier and after a stop."""

from __future__ import annotations

import json
import math
import os
import random
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, crawl
from levels import START, LevelHunt, LevelledNursery, LevelSite, all_paths, below_of, level_of
from scrapy import Request, Spider

from scrapy_focus import ConfigError
from scrapy_focus.config import Config
from scrapy_focus.engine.priorities import Priorities
from scrapy_focus.policies.branching.policy import BranchingBandit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

LEVELS = (0, 5, -3, 10, 5, 0, -3)
ONE = {"FOCUS_MAX_INFLIGHT": 1, "FOCUS_SEED": 1}
DRAWN = "scrapy_focus.policies.branching.BranchingBandit"
POLICIES = [
    BREADTH_FIRST,  # ranked
    DRAWN,
    "scrapy_focus.policies.tagpath.TagPath",
    "scrapy_focus.policies.focused.Focused",
]


class Levels(Spider):
    """One page that yields three requests of each priority, and one of the highest after each of those of 5."""

    name = "levels"

    def __init__(self, site: MockSite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site
        self.seen: list[int] = []

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.site.url("/ok?start"))

    def parse(self, response: Response) -> Iterator[Any]:
        for number, level in enumerate(LEVELS):
            for i in range(3):
                yield Request(self.site.url(f"/ok?{number}-{i}"), self.parse_level, priority=level)

    def parse_level(self, response: Response) -> Iterator[Any]:
        level = response.request.priority
        self.seen.append(level)
        if level == 5:
            yield Request(response.url + "-more", self.parse_level, priority=7)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_highest_priority_goes_first(site: MockSite, policy: str) -> None:
    """With one request in flight the order is that of the priorities, including later ones."""
    settings = {**ONE, "FOCUS_POLICY": policy, "FOCUS_REQUEST_PRIORITY": True, "FOCUS_TARGETS": ["application/pdf"]}
    result = crawl(Levels, settings, addon=True, site=site)
    assert not result.errors
    assert result.spider.seen == [10] * 3 + [5, 7] * 6 + [0] * 6 + [-3] * 6
    assert not result.stats.get("focus/select/none")


def test_without_the_setting_it_is_said_once_that_priorities_are_ignored(site: MockSite) -> None:
    """The policy decides, and the log says so, with the setting that changes it."""
    result = crawl(Levels, {**ONE, "FOCUS_POLICY": BREADTH_FIRST}, site=site)
    assert result.spider.seen[:7] == [0, 0, 0, 5, 5, 5, -3]
    [said] = result.logged("has no effect")
    assert said.startswith("Request.priority is used")
    assert "FOCUS_REQUEST_PRIORITY" in said


def test_depth_priority_is_named(site: MockSite) -> None:
    """Scrapy's setting that works through priorities is what the user wrote."""
    result = crawl(Levels, {**ONE, "DEPTH_PRIORITY": 1}, site=site)
    [said] = result.logged("has no effect")
    assert said.startswith("DEPTH_PRIORITY is used")


def test_nothing_is_said_where_no_priority_is_used(site: MockSite) -> None:
    """Redirects and retries, which Scrapy gives a priority, are not the user's."""

    class Plain(Levels):
        def parse(self, response: Response) -> Iterator[Any]:
            yield Request(self.site.url("/redirect?to=/status?code=503"), self.parse_level)

    result = crawl(Plain, ONE, site=site)
    assert not result.logged("has no effect")


@pytest.mark.slow
@pytest.mark.parametrize("again", [True, False], ids=["with the setting", "without it then"])
def test_priorities_survive_a_stop(site: MockSite, tmp_path: Path, again: bool) -> None:
    """Queued links of a job keep their priorities in the next run, and no host gets too many requests."""
    job = {**ONE, "JOBDIR": str(tmp_path / "job")}
    first = crawl(Levels, {**job, "FOCUS_REQUEST_PRIORITY": True, "CLOSESPIDER_PAGECOUNT": 8}, addon=True, site=site)
    second = crawl(Levels, {**job, "FOCUS_REQUEST_PRIORITY": again}, addon=True, site=site)
    assert len(second.spider.seen) > 5
    assert first.spider.seen + second.spider.seen == [10] * 3 + [5, 7] * 6 + [0] * 6 + [-3] * 6


@pytest.fixture(scope="module")
def nursery() -> Iterator[LevelledNursery]:
    with LevelledNursery() as running:
        yield running


def hunted(nursery: LevelledNursery, folder: Path, plan: list[str], *, policy: str, in_flight: int) -> LevelHunt:
    """Crawl with kills as planned; fail unless all was fetched, and nothing before a higher priority."""
    settings = {
        "FOCUS_POLICY": policy, "FOCUS_MAX_INFLIGHT": in_flight, "FOCUS_CHECKPOINT_EVERY": 7, "FOCUS_SEED": 1,
        "FOCUS_TARGETS": ["application/pdf"],
    }  # fmt: skip
    with LevelSite(latency=0.01) as site:
        site.hold(80 if plan else math.inf)
        hunt = LevelHunt(site, folder, settings, random.Random(1))
        hunt.run(nursery, plan)
    assert set(site.asks) == set(all_paths())
    check_picks(hunt)
    return hunt


def check_picks(hunt: LevelHunt) -> None:
    """Fail unless each pick had the highest priority of all queued then, by the log and the links of each page."""
    waiting, picked = {START}, dict[int, str]()
    for line in (hunt.folder / "log.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "pick":
            path = picked[event["id"]] = event["url"].removeprefix(hunt.site.url(""))
            assert level_of(path) == max(map(level_of, waiting)), f"{path} before others of {waiting}\n{hunt}"
            waiting.remove(path)
        elif event["event"] == "outcome":
            waiting.update(below_of(picked[event["id"]]))
        else:
            waiting.add(picked[event["id"]])
    assert not waiting


def levels_asked(hunt: LevelHunt) -> list[int]:
    """Return the priorities of requests in order, the last time for those repeated after a kill."""
    asks = hunt.site.asks
    last = [path for i, path in enumerate(asks) if path not in asks[i + 1 :]]
    assert len(asks) - len(last) <= len(hunt.kills) * hunt.settings["FOCUS_MAX_INFLIGHT"]
    return [level_of(path) for path in last]


@pytest.fixture(scope="module")
def unkilled(nursery: LevelledNursery, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """The priorities of an uninterrupted crawl, the same for any policy."""
    hunt = hunted(nursery, tmp_path_factory.mktemp("unkilled") / "0", [], policy=BREADTH_FIRST, in_flight=1)
    return levels_asked(hunt)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL here")
@pytest.mark.parametrize(
    ("policy", "in_flight", "plan"),
    [
        (BREADTH_FIRST, 1, ["after_requests", "at_its_start", "after_requests", "at_a_new_journal"]),
        (DRAWN, 1, ["at_a_new_journal", "after_requests", "at_its_start"]),
        (BREADTH_FIRST, 4, ["after_requests", "at_a_new_journal", "after_requests"]),
    ],
    ids=["ranked", "drawn", "several in flight"],
)
def test_priorities_survive_kills(
    nursery: LevelledNursery, tmp_path: Path, unkilled: list[int], policy: str, in_flight: int, plan: list[str]
) -> None:
    """A killed crawl fetches every page, in the same order of priorities as an uninterrupted one.

    With several requests in flight, nothing is picked before a queued link with a higher priority.
    """
    hunt = hunted(nursery, tmp_path / "0", plan, policy=policy, in_flight=in_flight)
    assert hunt.kills
    asked = levels_asked(hunt)
    assert asked == unkilled if in_flight == 1 else sorted(asked) == sorted(unkilled)


def test_among_equals_the_policy_decides(site: MockSite) -> None:
    """With one priority for all, a crawl makes the choices that it makes without any."""

    class AllTheSame(Spider):
        name = "same"

        def __init__(self, site: MockSite, level: int, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.site, self.level = site, level

        async def start(self) -> AsyncIterator[Any]:
            yield Request(self.site.url("/page/0/40"), priority=self.level)

        def parse(self, response: Response) -> Iterator[Any]:
            yield {"url": response.url} if "7" in response.url else None
            for link in response.css("a"):
                yield response.follow(link, priority=self.level)

    orders = []
    for level in (0, 3):
        site.log.clear()
        crawl(AllTheSame, {**ONE, "FOCUS_REQUEST_PRIORITY": True}, addon=True, site=site, level=level)
        orders.append(site.paths)
    assert len(orders[0]) > 30
    assert orders[0] == orders[1]


@pytest.mark.parametrize("policy", ["treeq.TreeQ", "bestfirst.BestFirst", "linkclassifier.OnlineLinkClassifier"])
def test_policies_that_count_hosts_refuse_it(policy: str) -> None:
    """They would count the parts of a host as hosts; the error says what to do."""
    from scrapy.settings import Settings

    with pytest.raises(ConfigError, match=r"FOCUS_REQUEST_PRIORITY is on, but .* counts pages by host"):
        Config.from_settings(
            Settings({"FOCUS_POLICY": f"scrapy_focus.policies.{policy}", "FOCUS_REQUEST_PRIORITY": True}),
            BranchingBandit,
        )


@pytest.mark.slow
def test_names_without_end_are_not_made() -> None:
    """From the 4,097th on, links are queued under their host alone; new hosts and priorities are still separate."""
    priorities = Priorities()
    names = [priorities.name("a.test", level) for level in range(5000)]
    assert len(set(names)) == 4096
    assert names[-1] == "a.test"
    odd = ["a.test", "a.test priority -3", "my priority list", "a priority 5 priority 7", "b priority -"]
    again = Priorities(odd)
    assert sorted(next(again.turns(set()))) == sorted(set(odd) - {"a priority 5 priority 7"})
