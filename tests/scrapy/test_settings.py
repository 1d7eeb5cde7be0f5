"""The add-on leaves alone what users set themselves, and both ways in say what is wrong with a setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import STOCK, Follower, crawl
from mocksite import tree_paths
from scrapy.settings import Settings

from scrapy_focus import Addon, ConfigError, FocusScheduler
from scrapy_focus.downloadermiddlewares import MeterMiddleware, MimeMiddleware, ProbeMiddleware
from scrapy_focus.extensions import FocusExtension
from scrapy_focus.pipelines import RewardPipeline
from scrapy_focus.spidermiddlewares import ItemIdMiddleware, KnownLinkMiddleware, LinkMiddleware

if TYPE_CHECKING:
    from mocksite import MockSite

ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])
COMPONENTS = [
    ("SPIDER_MIDDLEWARES", LinkMiddleware), ("SPIDER_MIDDLEWARES", KnownLinkMiddleware),
    ("SPIDER_MIDDLEWARES", ItemIdMiddleware), ("DOWNLOADER_MIDDLEWARES", ProbeMiddleware), ("DOWNLOADER_MIDDLEWARES", MimeMiddleware),
    ("DOWNLOADER_MIDDLEWARES", MeterMiddleware), ("ITEM_PIPELINES", RewardPipeline), ("EXTENSIONS", FocusExtension),
]  # fmt: skip


def with_addon(values: dict[str, Any], priority: str = "project") -> Settings:
    """Return the settings that a project has after the add-on."""
    settings = Settings()
    settings.setdict(values, priority)
    Addon().update_settings(settings)
    return settings


def test_the_addon_turns_everything_on() -> None:
    """In a project with no settings of its own, the add-on sets the scheduler and all components."""
    settings = with_addon({})
    assert issubclass(settings["SCHEDULER"], FocusScheduler)
    assert settings.getint("CONCURRENT_ITEMS") == 4
    for name, component in COMPONENTS:
        assert component in settings[name]


@pytest.mark.parametrize("priority", ["project", "spider", "cmdline"])
def test_the_addon_overrides_nothing(priority: str) -> None:
    """A scheduler, a number of items and an order of a component that somebody set stay."""
    mine = {"SCHEDULER": STOCK, "CONCURRENT_ITEMS": 7}
    mine |= {name: {component: 77} for name, component in COMPONENTS}
    settings = with_addon(mine, priority)
    assert settings["SCHEDULER"] == STOCK
    assert settings.getint("CONCURRENT_ITEMS") == 7
    for name, component in dict(COMPONENTS).items():
        assert settings[name][component] == 77


@pytest.mark.parametrize(("name", "component"), COMPONENTS)
@pytest.mark.parametrize("order", [None, 123])
def test_components_can_be_moved_or_turned_off(name: str, component: type, order: int | None) -> None:
    """A component keeps the order, or the None, under which a project names it, by class or by path."""
    for key in (component, f"{component.__module__}.{component.__qualname__}"):
        assert [
            value
            for other, value in with_addon({name: {key: order}})[name].items()
            if other in (component, f"{component.__module__}.{component.__qualname__}")
        ] == [order]


@pytest.mark.parametrize(("name", "component"), COMPONENTS)
def test_crawls_go_on_without_a_component(site: MockSite, name: str, component: type) -> None:
    """With any one component turned off, the whole site is crawled."""
    result = crawl(Follower, {name: {component: None}}, addon=True, seeds=[site.url("/page/0/20")])
    assert sorted(site.paths) == sorted(tree_paths(20))
    assert result.reason == "finished"
    assert result.errors == {}


@pytest.mark.reactor
def test_another_scheduler_with_the_addon(site: MockSite) -> None:
    """With a scheduler that is not ours, the add-on warns once and does nothing else."""
    result = crawl(Follower, {"SCHEDULER": STOCK}, addon=True, seeds=[site.url("/page/0/20")])
    assert sorted(site.paths) == sorted(tree_paths(20))
    assert len(result.logged("its add-on does nothing")) == 1
    assert not any(name.startswith("focus/") for name in result.stats)
    assert result.stats.get("log_count/ERROR", 0) == 0
    assert result.stats["item_scraped_count"] == 20


def test_the_log_says_what_is_active(site: MockSite) -> None:
    """One line at the start names the policy, the goal, the budget and what is kept; one at the end sums up."""
    result = crawl(Follower, {"FOCUS_BUDGET_REQUESTS": 5}, addon=True, seeds=[site.url("/page/0/20")])
    [start] = result.logged("scrapy_focus: policy")
    assert "policy TagPath" in start
    assert "goal items scraped" in start
    assert "budget 5 requests" in start
    assert "JOBDIR is not set" in start
    [end] = result.logged("Finished (focus_budget_requests)")
    assert "5 of 5 requests" in end


@ADDON
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"FOCUS_BUDGET_REQUEST": 5}, "did you mean FOCUS_BUDGET_REQUESTS?"),
        ({"FOCUS_TARGET": "csv"}, "did you mean FOCUS_TARGETS?"),
        (
            {"FOCUS_POLICY": "scrapy_focus.policies.NoSuchPolicy"},
            "FOCUS_POLICY is 'scrapy_focus.policies.NoSuchPolicy'",
        ),
        ({"FOCUS_POLICY": "json.loads"}, "takes a subclass of scrapy_focus.Policy"),
        ({"FOCUS_POLICY": "scrapy_focus.policies.informed.Omniscient"}, "FOCUS_POLICY is Omniscient, which is told"),
        (
            {"FOCUS_POLICY": "scrapy_focus.policies.informed.OracleTagPath"},
            "FOCUS_POLICY is OracleTagPath, which is told",
        ),
        ({"FOCUS_POLICY_PARAMS": {"theta_": 1}}, "FOCUS_POLICY_PARAMS is {'theta_': 1}"),
        ({"FOCUS_BUDGET_REQUESTS": "many"}, "FOCUS_BUDGET_REQUESTS is 'many'; it takes a whole number"),
        ({"FOCUS_BUDGET_REQUESTS": -1}, "FOCUS_BUDGET_REQUESTS is -1"),
        ({"FOCUS_BUDGET_SECONDS": "1h"}, "FOCUS_BUDGET_SECONDS is '1h'; it takes a number"),
        ({"FOCUS_SEED": "x"}, "FOCUS_SEED is 'x'"),
        ({"FOCUS_TARGETS": "csv,nonsense!"}, "'nonsense!' is not a file type"),
        ({"FOCUS_BLOCKED_MIMES": "no such"}, "'no such' is not a file type"),
        ({"FOCUS_GOAL": "os.nothing"}, "FOCUS_GOAL is 'os.nothing'"),
        ({"FOCUS_GOAL": "os.sep"}, "takes a callable"),
        ({"FOCUS_GOAL": "scrapy_focus.ItemsGoal", "FOCUS_TARGETS": "csv"}, "set one of them"),
        ({"FOCUS_PLATEAU": {"windows": 3}}, "FOCUS_PLATEAU is {'windows': 3}"),
        ({"FOCUS_PROGRESS": "loud"}, "'auto', 'panel', 'log' or 'off'"),
        ({"FOCUS_LOG": "/proc/no/log.jsonl"}, "the decision log /proc/no/log.jsonl cannot be written"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_settings_stop_the_crawl_before_it_starts(
    site: MockSite, caplog: pytest.LogCaptureFixture, addon: bool, settings: dict[str, Any], said: str
) -> None:
    """A setting that does not exist, or has a value that cannot be used, is an error that says what would be right."""
    with pytest.raises((ConfigError, RuntimeError)) as caught:
        crawl(Follower, settings, addon=addon, seeds=[site.url("/page/0/20")])
    error = caught.value
    if not isinstance(error, ConfigError):  # Scrapy 2.19 fails once more while it closes what it had not opened
        error = error.__context__
        assert f"scrapy_focus cannot start: {error}" in [record.getMessage() for record in caplog.records]
    assert isinstance(error, ConfigError)
    assert said in str(error)
    assert site.log == []


@ADDON
def test_settings_may_be_text(site: MockSite, addon: bool) -> None:
    """Everything can be given as text, as on the command line."""
    settings = {
        "FOCUS_BUDGET_REQUESTS": "7", "FOCUS_BUDGET_BYTES": "1000000", "FOCUS_BUDGET_SECONDS": "60.5", "FOCUS_SEED": "3",
        "FOCUS_MAX_INFLIGHT": "2", "FOCUS_MAX_INFLIGHT_PER_SLOT": "1", "FOCUS_TARGETS": "csv,pdf", "FOCUS_PLATEAU": "1",
        "FOCUS_POLICY": "scrapy_focus.policies.tagpath.TagPath", "FOCUS_POLICY_PARAMS": '{"theta": 0.8, "probe": false}',
        "FOCUS_BLOCKED_MIMES": "image/*,font/woff",
    }  # fmt: skip
    result = crawl(Follower, settings, addon=addon, seeds=[site.url("/page/0/20")])
    assert len(site.log) == 7
    assert result.scheduler.crawl.policy.theta == 0.8
