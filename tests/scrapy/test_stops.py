"""A crawl that has stopped finding anything stops itself, and what the user turned off stays off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, crawl
from mocksite import tree_paths

from scrapy_focus.core.stop import Plateau
from scrapy_focus.jobs.doctor.check import check_job

if TYPE_CHECKING:
    from pathlib import Path

    from mocksite import MockSite

PAGES = 63
SEED = f"/page/0/{PAGES}"


def plateau() -> Plateau:
    return Plateau(window=5, slope=0.5, decay=1.0, patience=3)


class FirstTen(Follower):
    """Gives items for the first ten pages only."""

    name = "first_ten"

    def parse(self, response: Any) -> Any:
        for result in super().parse(response):
            if not isinstance(result, dict) or int(response.url.split("/")[-2]) < 10:
                yield result


@pytest.mark.reactor
def test_a_plateau_ends_the_crawl(site: MockSite) -> None:
    """Three windows of five requests with nothing found after the first ten end it, with the reason in stats and log."""
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_STOP": plateau(), "FOCUS_MAX_INFLIGHT": 1}
    result = crawl(FirstTen, settings, seeds=[site.url(SEED)])
    assert result.reason == "focus_plateau"
    assert result.logged("scrapy_focus stops the crawl: focus_plateau")
    assert len(site.asked) == 25
    assert len(result.items) == 10


def test_a_plateau_is_remembered(site: MockSite, tmp_path: Path) -> None:
    """What was seen of it before a stop counts after the resume."""
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_MAX_INFLIGHT": 1, "JOBDIR": str(tmp_path)}
    first, second = (
        crawl(FirstTen, {**settings, "FOCUS_STOP": plateau(), "FOCUS_BUDGET_REQUESTS": budget}, seeds=[site.url(SEED)])
        for budget in (22, 60)
    )
    assert first.reason == "focus_budget_requests"
    assert second.reason == "focus_plateau"
    assert len(site.asked) == 25


class FewFiles(Follower):
    """Gives items for the ten pages of the first list only; all else is a tree without any."""

    name = "few_files"

    def parse(self, response: Any) -> Any:
        for result in super().parse(response):
            if not isinstance(result, dict) or "/ok?item" in response.url:
                yield result


def two_parts(site: MockSite) -> list[str]:
    """Make a page that links to ten items and to a tree of a thousand pages, and return where to start."""
    items = "".join(f'<li><a href="/ok?item={i}">{i}</a></li>' for i in range(10))
    site.pages["/start"] = f'<ul class="items">{items}</ul><p><a href="/page/0/1000">tree</a></p>'
    return [site.url("/start")]


COST = {"FOCUS_COST_LIMIT": 20, "FOCUS_MAX_INFLIGHT": 4, "FOCUS_SEED": 0}


@pytest.mark.reactor
def test_a_cost_limit_ends_the_crawl(site: MockSite) -> None:
    """Where ten items are all there is, a crawl ends some 200 requests after the last, with the reason in stats and log."""
    result = crawl(FewFiles, {**COST, "FOCUS_MAX_INFLIGHT": 1}, addon=True, seeds=two_parts(site))
    assert result.reason == "focus_cost_limit"
    assert result.logged("scrapy_focus stops the crawl: focus_cost_limit")
    assert len(result.items) == 10
    assert 210 <= len(site.asked) <= 320
    assert result.scheduler.crawl.policy.expected_cost() > 20
    assert result.errors == {}


def test_a_cost_limit_that_is_not_exceeded_ends_nothing(site: MockSite) -> None:
    """Where every page is worth something, or a target may cost anything, the whole site is crawled."""
    result = crawl(Follower, {**COST, "FOCUS_COST_LIMIT": 1.5}, addon=True, seeds=[site.url("/page/0/120")])
    assert result.reason == "finished"
    assert len(site.asked) == 120
    result = crawl(FewFiles, {**COST, "FOCUS_COST_LIMIT": 1e6}, addon=True, seeds=[site.url("/page/0/120")])
    assert result.reason == "finished"


@pytest.mark.slow
def test_a_cost_limit_is_remembered(site: MockSite, tmp_path: Path) -> None:
    """Expensive requests before a stop count after the resume; the stored state is valid."""
    settings = {**COST, "FOCUS_MAX_INFLIGHT": 1}
    seeds = two_parts(site)
    whole = crawl(FewFiles, settings, seeds=seeds)
    asked = len(site.asked)
    site.log.clear()
    job = {**settings, "JOBDIR": str(tmp_path)}
    for budget in (60, 150, 151):
        part = crawl(FewFiles, {**job, "FOCUS_BUDGET_REQUESTS": budget}, seeds=seeds)
        assert part.reason == "focus_budget_requests"
        assert check_job(tmp_path, say=str).is_well
        assert part.scheduler.crawl.stop.state().keys() == {"since", "targets"}
    last = crawl(FewFiles, {**job, "FOCUS_BUDGET_REQUESTS": 1000}, seeds=seeds)
    assert whole.reason == last.reason == "focus_cost_limit"
    assert abs(len(site.asked) - asked) <= 60
    assert check_job(tmp_path, say=str).is_well
    site.log.clear()
    again = crawl(FewFiles, {**job, "FOCUS_BUDGET_REQUESTS": 1000}, seeds=seeds)
    assert again.reason == "focus_cost_limit"
    assert len(site.asked) <= 5, "it is over, and stays so"


class Enough:
    """Says that so many targets are enough, and remembers how often it was asked."""

    reason = "enough"

    def __init__(self, targets: float = 3) -> None:
        self.targets = targets
        self.asked = 0

    def reached(self, requests: int, targets: float, cost: float | None = None) -> bool:
        self.asked += 1
        return targets >= self.targets

    def state(self) -> dict[str, Any]:
        return {"asked": self.asked}

    def restore(self, state: dict[str, Any]) -> None:
        self.asked = state["asked"]


@pytest.mark.reactor
@pytest.mark.parametrize("rule", [Enough, "tests.scrapy.test_stops.Enough", Enough(3)], ids=["class", "path", "object"])
@pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
def test_a_rule_of_ones_own_ends_the_crawl(site: MockSite, rule: Any, addon: bool) -> None:
    """By its class, import path or as an object; its reason is that of the crawl."""
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_STOP": rule, "FOCUS_MAX_INFLIGHT": 1}
    result = crawl(Follower, settings, addon=addon, seeds=[site.url(SEED)])
    assert result.reason == "focus_enough"
    assert len(site.asked) == len(result.items) == 3


def test_a_rule_of_ones_own_is_remembered(site: MockSite, tmp_path: Path) -> None:
    """Its state before a stop is restored on resume."""
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_MAX_INFLIGHT": 1, "JOBDIR": str(tmp_path)}
    first = crawl(Follower, {**settings, "FOCUS_STOP": Enough(9), "FOCUS_BUDGET_REQUESTS": 5}, seeds=[site.url(SEED)])
    assert (first.reason, first.scheduler.crawl.stop.asked) == ("focus_budget_requests", 5)
    second = crawl(Follower, {**settings, "FOCUS_STOP": Enough(9), "FOCUS_BUDGET_REQUESTS": 50}, seeds=[site.url(SEED)])
    assert (second.reason, second.scheduler.crawl.stop.asked) == ("focus_enough", 9)


def test_what_is_turned_off_stays_off(site: MockSite) -> None:
    """With ``MeterMiddleware`` set to ``None`` nothing is counted, even if only the scheduler is used."""
    off = {"DOWNLOADER_MIDDLEWARES": {"scrapy_focus.downloadermiddlewares.MeterMiddleware": None}}
    for addon in (False, True):
        result = crawl(Follower, {"FOCUS_POLICY": BREADTH_FIRST, **off}, addon=addon, seeds=[site.url(SEED)])
        assert len(result.items) == len(tree_paths(PAGES))
        assert result.stats["focus/requests"] == 0


@pytest.mark.slow
def test_the_queues_of_a_stock_crawl_are_ignored(site: MockSite, tmp_path: Path) -> None:
    """The list of seen URLs in a job directory that was Scrapy's own takes no page away from a crawl of ours."""
    settings = {"SCHEDULER": "scrapy.core.scheduler.Scheduler", "JOBDIR": str(tmp_path)}
    stock = crawl(Follower, settings, seeds=[site.url(SEED)])
    seen = (tmp_path / "requests.seen").read_bytes()
    assert stock.reason == "finished"
    ours = crawl(Follower, {"FOCUS_POLICY": BREADTH_FIRST, "JOBDIR": str(tmp_path)}, seeds=[site.url(SEED)])
    assert len(ours.items) == len(stock.items) == len(tree_paths(PAGES))
    assert (tmp_path / "requests.seen").read_bytes() == seen
