"""The add-on leaves alone what users set themselves, and both ways in say what is wrong with a setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, STOCK, Follower, crawl
from mocksite import tree_paths
from scrapy.settings import Settings

from scrapy_focus import Addon, ConfigError, FocusScheduler, SleepingBanditScheduler, TreeFrontierScheduler
from scrapy_focus.config import Config
from scrapy_focus.core.stop import CostLimit, Plateau
from scrapy_focus.downloadermiddlewares import MeterMiddleware, MimeMiddleware, ProbeMiddleware
from scrapy_focus.extensions import FocusExtension
from scrapy_focus.pipelines import RewardPipeline
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.tagpath.policy import TagPath
from scrapy_focus.policies.treeq.policy import TreeQ
from scrapy_focus.spidermiddlewares import ItemIdMiddleware, KnownLinkMiddleware, LinkMiddleware

if TYPE_CHECKING:
    from mocksite import MockSite

TAG_PATH = "scrapy_focus.policies.tagpath.TagPath"
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
    assert "policy BranchingBandit" in start
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
        (
            {"FOCUS_POLICY": "scrapy_focus.policies.tagpath.oracles.Omniscient"},
            "FOCUS_POLICY is Omniscient, which is told",
        ),
        (
            {"FOCUS_POLICY": "scrapy_focus.policies.tagpath.oracles.OracleTagPath"},
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
        ({"FOCUS_COST_LIMIT": "dear"}, "FOCUS_COST_LIMIT is 'dear'; it takes a number from 0"),
        ({"FOCUS_COST_LIMIT": -5}, "FOCUS_COST_LIMIT is -5; it takes a number from 0"),
        ({"FOCUS_COST_LIMIT": "inf"}, "limit is a number above 0"),
        ({"FOCUS_COST_LIMIT": "nan"}, "limit is a number above 0"),
        ({"FOCUS_COST_LIMIT": 50, "FOCUS_PLATEAU": True}, "both say when to stop; set one of them"),
        (
            {"FOCUS_COST_LIMIT": 50, "FOCUS_POLICY": BREADTH_FIRST},
            "FOCUS_COST_LIMIT is 50, which BreadthFirst cannot do",
        ),
        ({"FOCUS_COST_LIMIT": "50", "FOCUS_POLICY": TAG_PATH}, "FOCUS_COST_LIMIT is '50', which TagPath cannot do"),
        (
            {"FOCUS_LEARNED_TO": "x", "FOCUS_POLICY": BREADTH_FIRST},
            "FOCUS_LEARNED_TO is 'x', which BreadthFirst cannot do",
        ),
        ({"FOCUS_LEARNED_FROM": "x", "FOCUS_POLICY": TAG_PATH}, "FOCUS_LEARNED_FROM is 'x', which TagPath cannot do"),
        ({"FOCUS_LEARNED_FROM": "/no/such/file.npz"}, "there is no file /no/such/file.npz; let a crawl write one"),
        ({"FOCUS_POLICY_PARAMS": {"unit": "hours"}}, "unit is 'hours'; it is one of requests, bytes, seconds"),
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


def configured(**settings: Any) -> Config:
    """Return what the settings of a project mean, with ``FOCUS_`` in front of each name."""
    return Config.from_settings(Settings({f"FOCUS_{name}": value for name, value in settings.items()}), BranchingBandit)


def policy_of(**settings: Any) -> Any:
    """Return the policy that a project gets with these settings."""
    config = configured(**settings)
    return config.make_policy(**config.implied_params())


def test_schedulers_have_their_policies() -> None:
    """The default is the branching bandit, also with the add-on; the schedulers of published systems have their own."""
    assert FocusScheduler.default_policy is BranchingBandit
    assert issubclass(with_addon({})["SCHEDULER"], FocusScheduler)
    assert with_addon({})["SCHEDULER"].default_policy is BranchingBandit
    assert SleepingBanditScheduler.default_policy is TagPath
    assert TreeFrontierScheduler.default_policy is TreeQ


@pytest.mark.parametrize(
    ("budgets", "unit"),
    [
        ({}, "requests"),
        ({"BUDGET_REQUESTS": 9}, "requests"),
        ({"BUDGET_BYTES": 9}, "bytes"),
        ({"BUDGET_SECONDS": 9}, "seconds"),
        ({"BUDGET_SECONDS": 9, "BUDGET_BYTES": 0}, "seconds"),
        ({"BUDGET_BYTES": "9", "BUDGET_REQUESTS": "0"}, "bytes"),
        ({"BUDGET_REQUESTS": 9, "BUDGET_BYTES": 9}, "requests"),
        ({"BUDGET_REQUESTS": 9, "BUDGET_SECONDS": 9}, "requests"),
        ({"BUDGET_SECONDS": 9, "BUDGET_BYTES": 9}, "requests"),
        ({"BUDGET_SECONDS": 9, "POLICY_PARAMS": {"unit": "bytes"}}, "bytes"),
    ],
)
def test_what_is_saved_is_what_there_is_a_budget_of(budgets: dict[str, Any], unit: str) -> None:
    """The unit is that of the only budget, requests where there is none or more than one, and what the user says before all."""
    assert policy_of(**budgets).unit == unit


def test_what_is_looked_for_is_told_to_the_policy() -> None:
    """Types, keywords and the file to begin with; items have no type, and what a user says goes before."""
    config = configured(TARGETS="csv,pdf", KEYWORDS="wine,olive", LEARNED_FROM="a.npz")
    assert config.implied_params() == {
        "targets": config.goal.types, "words": ("wine", "olive"), "learned": "a.npz",
    }  # fmt: skip
    assert {"text/csv", "application/pdf"} <= policy_of(TARGETS="csv,pdf").targets
    assert not policy_of().targets
    assert policy_of(TARGETS="csv", POLICY_PARAMS={"targets": ["image/*"]}).targets == ["image/*"]
    assert policy_of(GOAL="scrapy_focus.FilesGoal").targets


class Mine(BranchingBandit):
    """A subclass with a constructor of its own."""

    def __init__(self, *, more: int = 1) -> None:
        super().__init__(theta=0.5)
        self.more = more


def test_a_subclass_is_told_too() -> None:
    """Though its constructor leaves these parameters out, and it may stop by its cost and write what it learned."""
    made = policy_of(
        POLICY=Mine, TARGETS="csv", BUDGET_BYTES=5, COST_LIMIT=9, LEARNED_TO="x", POLICY_PARAMS={"more": 2}
    )
    assert (made.theta, made.more, made.unit) == (0.5, 2, "bytes")
    assert "text/csv" in made.targets


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({}, None), ({"COST_LIMIT": 0}, None), ({"COST_LIMIT": ""}, None), ({"COST_LIMIT": 20}, CostLimit), ({"COST_LIMIT": "0.5"}, CostLimit),
        ({"PLATEAU": True}, Plateau), ({"COST_LIMIT": 0, "PLATEAU": True}, Plateau), ({"COST_LIMIT": "0", "PLATEAU": True}, Plateau),
        ({"COST_LIMIT": 20, "PLATEAU": False}, CostLimit), ({"COST_LIMIT": 20, "PLATEAU": "0"}, CostLimit),
        ({"COST_LIMIT": "20", "PLATEAU": "False"}, CostLimit), ({"COST_LIMIT": "0", "PLATEAU": "0", "POLICY": BREADTH_FIRST}, None),
    ],
)  # fmt: skip
def test_one_rule_stops_a_crawl(settings: dict[str, Any], rule: type | None) -> None:
    """What is turned off, also as text on the command line, is as if it were not set."""
    made = configured(**settings).make_plateau()
    assert made is None if rule is None else type(made) is rule
    if isinstance(made, CostLimit):
        assert made.limit == float(settings["COST_LIMIT"])
