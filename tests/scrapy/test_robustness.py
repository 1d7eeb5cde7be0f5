"""What a long crawl, a slow page, a stop at a bad moment or a careless policy must not do."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, Follower, SomeHeadsFirst, crawl
from mocksite import tree_paths
from scrapy import FormRequest, Request, Spider

from scrapy_focus import FilesGoal, Ordering, RewardPipeline
from scrapy_focus.engine import outcomes
from scrapy_focus.policies.tagpath.policy import TagPath

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
ALL_HEADS = {"FOCUS_POLICY": SomeHeadsFirst, "FOCUS_POLICY_PARAMS": {"modulus": 1}}


class Files(Follower):
    """Follows links, and counts the responses that are still in memory."""

    name = "files"
    alive = 0

    def parse(self, response: Response) -> Iterator[Any]:
        self.responses = [ref for ref in getattr(self, "responses", []) if ref() is not None]
        self.responses.append(weakref.ref(response))
        self.alive = max(self.alive, len(self.responses))
        assert response.request.to_dict(spider=self)["url"] == response.url  # as without us
        if "html" in response.headers["Content-Type"].decode():
            yield from response.follow_all(css="a")


@pytest.mark.reactor
@ADDON
def test_responses_do_not_stay(site: MockSite, addon: bool) -> None:
    """A response is freed when its callback is done, without the garbage collector; requests serialise in callbacks."""
    site.pages["/"] = "".join(f'<a href="/file?type=text/csv&size=1000&n={i}">f</a>' for i in range(60))
    gc.disable()
    try:
        settings = {"FOCUS_POLICY": BREADTH_FIRST, "CONCURRENT_REQUESTS": 2}
        result = crawl(Files, settings, addon=addon, seeds=[site.url("/")])
    finally:
        gc.enable()
    assert len(site.paths) == 61
    assert result.spider.alive <= 10


def test_a_redirect_survives_a_stop(site: MockSite, tmp_path: Path) -> None:
    """Redirects still queued when the budget ends are followed in the next run, though their URLs were seen."""
    site.pages["/"] = "".join(f'<a href="/redirect?to=/target/{i}">a</a>' for i in range(12))
    site.pages |= {f"/target/{i}": "t" for i in range(12)}
    for budget in (8, 100):
        settings = {"FOCUS_POLICY": BREADTH_FIRST, "JOBDIR": str(tmp_path), "FOCUS_BUDGET_REQUESTS": budget}
        crawl(Follower, settings, seeds=[site.url("/")])
    assert {path for path in site.paths if path.startswith("/target")} == {f"/target/{i}" for i in range(12)}


class Slow(Follower):
    """A first page that yields its links, and then takes its time; others are slow."""

    name = "slow"

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        for request in response.follow_all(css="a"):
            yield request
        if response.url.endswith("/"):
            await asyncio.sleep(1)


def test_links_of_a_slow_page_keep_their_place(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links of a page that is parsed for long are placed before it ends, with their tag paths."""
    monkeypatch.setattr(outcomes, "_STUCK", 0.1)
    monkeypatch.setattr("scrapy.core.engine.ExecutionEngine._SLOT_HEARTBEAT_INTERVAL", 0.1)
    site.pages["/"] = '<ul class="nav"><li><a href="/ok?1">1</a></ul><table><tr><td><a href="/ok?2">2</a></table>'
    result = crawl(Slow, {"FOCUS_POLICY": TagPath}, seeds=[site.url("/")])
    paths = set(result.scheduler.crawl.policy._names.values())
    assert {"html/body/ul.nav/li/a", "html/body/table/tr/td/a"} <= paths


def unknown(outcome: Any) -> None:
    """A goal that never knows."""


def test_what_a_goal_owes_at_a_stop_loses_no_link(site: MockSite, tmp_path: Path) -> None:
    """Links of pages whose reward is missing are crawled by the next run."""
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_GOAL": unknown, "JOBDIR": str(tmp_path), "FOCUS_MAX_INFLIGHT": 1}
    crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 1}, seeds=[site.url("/page/0/3")])
    assert site.paths == ["/page/0/3"]
    crawl(Follower, {**settings, "FOCUS_BUDGET_REQUESTS": 2}, seeds=[site.url("/page/0/3")])
    assert len(set(site.paths)) == 2


class NoReturn(Ordering):
    """Forgets to return its rank."""

    def rank(self, link: Any, source: Any) -> Any:
        pass


@ADDON
def test_a_rank_that_is_forgotten_loses_no_link(site: MockSite, addon: bool) -> None:
    """A policy whose rank is None is logged by name, and links are chosen first in, first out."""
    result = crawl(Follower, {"FOCUS_POLICY": NoReturn}, addon=addon, seeds=[site.url("/page/0/20")])
    assert sorted(site.paths) == sorted(tree_paths(20))
    assert set(result.errors) == {"place"}
    assert result.logged("place of NoReturn failed")


def test_a_log_that_cannot_be_written_stops_nothing(site: MockSite) -> None:
    """On a full disk the decision log is counted as failed, and every page is fetched."""
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "FOCUS_LOG": "/dev/full"}
    result = crawl(Follower, settings, seeds=[site.url("/page/0/200")])
    assert sorted(site.paths) == sorted(tree_paths(200))
    assert set(result.errors) <= {"log", "close"}
    assert result.errors


class Unsure(RewardPipeline):
    """Cannot compute the reward of items."""

    def worth(self, item: Any) -> float:
        return float(item["no such field"])


def test_an_item_of_unknown_worth_is_kept(site: MockSite) -> None:
    """An exception in ``worth`` costs no item: it is worth 1, and counted as an error."""
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "ITEM_PIPELINES": {Unsure: 500}}
    result = crawl(Follower, settings, addon=True, seeds=[site.url("/page/0/5")])
    assert len(result.items) == 5
    assert result.stats["focus/reward"] == 5
    assert result.errors == {"worth": 5}


class Halved(RewardPipeline):
    """Every item is worth a half."""

    def worth(self, item: Any) -> float:
        return 0.5


def test_a_reward_pipeline_of_ones_own_counts(site: MockSite) -> None:
    """The pipeline that the add-on brings does not overrule a subclass."""
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "ITEM_PIPELINES": {Halved: 500}}
    result = crawl(Follower, settings, addon=True, seeds=[site.url("/page/0/6")])
    assert result.stats["focus/reward"] == 3


class Posting(Spider):
    """Posts a form, as for a login."""

    name = "posting"

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    async def start(self) -> AsyncIterator[Any]:
        yield FormRequest(self.url, formdata={"user": "me"})

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"method": response.request.method}


@ADDON
def test_a_form_is_not_probed_with_a_head(site: MockSite, addon: bool) -> None:
    """If a policy asks for a HEAD, a request with a body is sent unchanged."""
    result = crawl(Posting, ALL_HEADS, addon=addon, url=site.url("/ok"))
    assert site.asked == [("POST", "/ok")]
    assert result.items == [{"method": "POST"}]


class AtHome(Follower):
    """Stays on one host."""

    name = "at_home"
    allowed_domains = ["127.0.0.1"]

    async def start(self) -> AsyncIterator[Any]:
        for seed in self.seeds:
            yield Request(seed)


@ADDON
def test_heads_stay_on_the_site(site: MockSite, addon: bool) -> None:
    """The redirect of a HEAD is not followed to a host that the spider may not visit."""
    from mocksite import MockSite as Site

    with Site("127.0.0.2") as foreign:
        seeds = [site.url(f"/redirect?to={foreign.url('/ok')}")]
        crawl(AtHome, ALL_HEADS, addon=addon, seeds=seeds)
        assert foreign.asked == []


class Narrow(TagPath):
    """Ignores the mission's fields."""

    def __init__(self, *, alpha: float = 0.5) -> None:
        super().__init__(alpha=alpha)


@pytest.mark.parametrize(("goal", "probe"), [(None, False), (FilesGoal(types={"text/csv"}), True)])
def test_a_narrow_subclass_is_fitted_to_the_goal(site: MockSite, goal: Any, probe: bool) -> None:
    """It has the fields that follow from the goal even if the constructor does not take them."""
    result = crawl(Follower, {"FOCUS_POLICY": Narrow, "FOCUS_GOAL": goal}, seeds=[site.url("/page/0/20")])
    assert result.scheduler.crawl.mission.heads_tell is probe
    assert any(method == "HEAD" for method, _ in site.asked) is probe


class Counting(Follower):
    """Counts its pages in the state that Scrapy keeps with a job."""

    name = "counting"

    def parse(self, response: Response) -> Iterator[Any]:
        self.state["pages"] = self.state.get("pages", 0) + 1
        yield from super().parse(response)


def test_a_refused_resume_damages_nothing(site: MockSite, tmp_path: Path) -> None:
    """After a refused resume with another policy, the job resumes with the right one, including the spider's state."""
    settings = {"FOCUS_POLICY": BREADTH_FIRST, "JOBDIR": str(tmp_path)}
    crawl(Counting, {**settings, "FOCUS_BUDGET_REQUESTS": 5}, seeds=[site.url("/page/0/20")])
    with pytest.raises(Exception):  # noqa: B017, PT011 (Scrapy hides which)
        crawl(Counting, {**settings, "FOCUS_POLICY": TagPath}, seeds=[site.url("/page/0/20")])
    result = crawl(Counting, {**settings, "FOCUS_BUDGET_REQUESTS": 50}, seeds=[site.url("/page/0/20")])
    assert result.spider.state["pages"] == 20
    assert sorted(site.paths) == sorted(tree_paths(20))
