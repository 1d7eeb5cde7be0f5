"""``FOCUS_REQUEST_PRIORITY``: a higher priority goes first whatever the policy says, in every frontier and after a stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, crawl
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
POLICIES = [
    BREADTH_FIRST,  # ranked
    "scrapy_focus.policies.branching.BranchingBandit",  # drawn
    "scrapy_focus.policies.tagpath.TagPath",
    "scrapy_focus.policies.focused.Focused",
]


class Levels(Spider):
    """One page that gives three requests of each priority, and a last one of the highest behind each of those of 5."""

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
    """With one request in flight the order is that of the priorities, also of those that come later."""
    settings = {**ONE, "FOCUS_POLICY": policy, "FOCUS_REQUEST_PRIORITY": True, "FOCUS_TARGETS": ["application/pdf"]}
    result = crawl(Levels, settings, addon=True, site=site)
    assert not result.errors
    assert result.spider.seen == [10] * 3 + [5, 7] * 6 + [0] * 6 + [-3] * 6
    assert not result.stats.get("focus/select/none")


def test_without_the_setting_it_is_said_once_that_priorities_are_ignored(site: MockSite) -> None:
    """The policy decides, and the log says so, with the setting that changes it."""
    result = crawl(Levels, {**ONE, "FOCUS_POLICY": BREADTH_FIRST}, site=site)
    assert result.spider.seen[:7] == [0, 0, 0, 5, 5, 5, -3]
    [said] = result.logged("is not looked at")
    assert said.startswith("Request.priority is used")
    assert "FOCUS_REQUEST_PRIORITY" in said


def test_depth_priority_is_named(site: MockSite) -> None:
    """Scrapy's setting that works through priorities is what the user wrote."""
    result = crawl(Levels, {**ONE, "DEPTH_PRIORITY": 1}, site=site)
    [said] = result.logged("is not looked at")
    assert said.startswith("DEPTH_PRIORITY is used")


def test_nothing_is_said_where_no_priority_is_used(site: MockSite) -> None:
    """Redirects and retries, which Scrapy gives a priority, are not the user's."""

    class Plain(Levels):
        def parse(self, response: Response) -> Iterator[Any]:
            yield Request(self.site.url("/redirect?to=/status?code=503"), self.parse_level)

    result = crawl(Plain, ONE, site=site)
    assert not result.logged("is not looked at")


@pytest.mark.parametrize("again", [True, False], ids=["with the setting", "without it then"])
def test_priorities_survive_a_stop(site: MockSite, tmp_path: Path, again: bool) -> None:
    """What waits in a job is in the order of its priorities in the next run, too, and no host is asked for too much."""
    job = {**ONE, "JOBDIR": str(tmp_path / "job")}
    first = crawl(Levels, {**job, "FOCUS_REQUEST_PRIORITY": True, "CLOSESPIDER_PAGECOUNT": 8}, addon=True, site=site)
    second = crawl(Levels, {**job, "FOCUS_REQUEST_PRIORITY": again}, addon=True, site=site)
    assert len(second.spider.seen) > 5
    assert first.spider.seen + second.spider.seen == [10] * 3 + [5, 7] * 6 + [0] * 6 + [-3] * 6


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


@pytest.mark.parametrize("policy", ["scrapy_focus.policies.treeq.TreeQ", "scrapy_focus.policies.bestfirst.BestFirst"])
def test_policies_that_count_hosts_refuse_it(policy: str) -> None:
    """They would take the parts of a host for hosts; the error says what to do."""
    from scrapy.settings import Settings

    with pytest.raises(ConfigError, match=r"FOCUS_REQUEST_PRIORITY is on, and .* counts pages by host"):
        Config.from_settings(Settings({"FOCUS_POLICY": policy, "FOCUS_REQUEST_PRIORITY": True}), BranchingBandit)


def test_names_without_end_are_not_made() -> None:
    """From the 4,097th on, links wait under the name of their host alone; odd hosts and priorities are told again."""
    priorities = Priorities()
    names = [priorities.name("a.test", level) for level in range(5000)]
    assert len(set(names)) == 4096
    assert names[-1] == "a.test"
    odd = ["a.test", "a.test priority -3", "my priority list", "a priority 5 priority 7", "b priority -"]
    again = Priorities(odd)
    assert sorted(next(again.turns(set()))) == sorted(set(odd) - {"a priority 5 priority 7"})
