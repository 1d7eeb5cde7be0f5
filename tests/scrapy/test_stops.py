"""A crawl that has stopped finding anything stops itself, and what the user turned off stays off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, crawl
from mocksite import tree_paths

if TYPE_CHECKING:
    from pathlib import Path

    from mocksite import MockSite

PAGES = 63
SEED = f"/page/0/{PAGES}"
RULE = {"window": 5, "slope": 0.5, "decay": 1.0, "patience": 3}


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
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_PLATEAU": RULE, "FOCUS_MAX_INFLIGHT": 1}
    result = crawl(FirstTen, settings, seeds=[site.url(SEED)])
    assert result.reason == "focus_plateau"
    assert result.logged("scrapy_focus stops the crawl: focus_plateau")
    assert len(site.asked) == 25
    assert len(result.items) == 10


def test_a_plateau_is_remembered(site: MockSite, tmp_path: Path) -> None:
    """What was seen of it before a stop counts after the resume."""
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_PLATEAU": RULE, "FOCUS_MAX_INFLIGHT": 1, "JOBDIR": str(tmp_path)}
    first = crawl(FirstTen, {**settings, "FOCUS_BUDGET_REQUESTS": 22}, seeds=[site.url(SEED)])
    assert first.reason == "focus_budget_requests"
    second = crawl(FirstTen, {**settings, "FOCUS_BUDGET_REQUESTS": 60}, seeds=[site.url(SEED)])
    assert second.reason == "focus_plateau"
    assert len(site.asked) == 25


def test_what_is_turned_off_stays_off(site: MockSite) -> None:
    """With ``MeterMiddleware`` set to ``None`` nothing is counted, also where only the scheduler is used."""
    off = {"DOWNLOADER_MIDDLEWARES": {"scrapy_focus.downloadermiddlewares.MeterMiddleware": None}}
    for addon in (False, True):
        result = crawl(Follower, {"FOCUS_POLICY": BREADTH_FIRST, **off}, addon=addon, seeds=[site.url(SEED)])
        assert len(result.items) == len(tree_paths(PAGES))
        assert result.stats["focus/requests"] == 0


def test_what_a_stock_crawl_left_is_not_looked_at(site: MockSite, tmp_path: Path) -> None:
    """The list of seen URLs in a job directory that was Scrapy's own takes no page away from a crawl of ours."""
    settings = {"SCHEDULER": "scrapy.core.scheduler.Scheduler", "JOBDIR": str(tmp_path)}
    stock = crawl(Follower, settings, seeds=[site.url(SEED)])
    seen = (tmp_path / "requests.seen").read_bytes()
    assert stock.reason == "finished"
    ours = crawl(Follower, {"FOCUS_POLICY": BREADTH_FIRST, "JOBDIR": str(tmp_path)}, seeds=[site.url(SEED)])
    assert len(ours.items) == len(stock.items) == len(tree_paths(PAGES))
    assert (tmp_path / "requests.seen").read_bytes() == seen
