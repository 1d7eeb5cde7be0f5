"""The add-on does not change users' settings, and both ways of enabling us report wrong settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from crawls import BREADTH_FIRST, STOCK, Follower, crawl
from mocksite import tree_paths
from scrapy.settings import Settings

from scrapy_focus import Addon, ConfigError, FilesGoal, FocusScheduler, SleepingBanditScheduler, TreeFrontierScheduler
from scrapy_focus.config import Config
from scrapy_focus.core.mission import Mission
from scrapy_focus.core.stop import CostLimit, Plateau
from scrapy_focus.downloadermiddlewares import MeterMiddleware, MimeMiddleware, ProbeMiddleware
from scrapy_focus.extensions import FocusExtension
from scrapy_focus.pipelines import RewardPipeline
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst
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


class Half:
    """Half of a stop rule."""

    reason = "half"

    def reached(self, requests: int, targets: float, cost: float | None = None) -> bool:
        return False


def with_addon(values: dict[str, Any], priority: str = "project") -> Settings:
    """Return the settings that a project has after the add-on."""
    settings = Settings()
    settings.setdict(values, priority)
    Addon().update_settings(settings)
    return settings


def test_the_addon_turns_everything_on() -> None:
    """In a project without settings, the add-on sets the scheduler and all components."""
    settings = with_addon({})
    assert issubclass(settings["SCHEDULER"], FocusScheduler)
    assert settings.getint("CONCURRENT_ITEMS") == 4
    for name, component in COMPONENTS:
        assert component in settings[name]


@pytest.mark.parametrize("priority", ["project", "spider", "cmdline"])
def test_the_addon_overrides_nothing(priority: str) -> None:
    """A scheduler, a number of items and an order of a component that were set stay."""
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


@pytest.mark.few(3)
@pytest.mark.parametrize(("name", "component"), COMPONENTS)
def test_crawls_continue_without_a_component(site: MockSite, name: str, component: type) -> None:
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


@pytest.mark.both
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
            "FOCUS_POLICY is Omniscient, which needs to know",
        ),
        (
            {"FOCUS_POLICY": "scrapy_focus.policies.tagpath.oracles.OracleTagPath"},
            "FOCUS_POLICY is OracleTagPath, which needs to know",
        ),
        ({"FOCUS_POLICY_PARAMS": {"theta_": 1}}, "FOCUS_POLICY_PARAMS is {'theta_': 1}"),
        ({"FOCUS_BUDGET_REQUESTS": "many"}, "FOCUS_BUDGET_REQUESTS is 'many'; it takes a whole number"),
        ({"FOCUS_BUDGET_REQUESTS": -1}, "FOCUS_BUDGET_REQUESTS is -1"),
        ({"FOCUS_BUDGET_SECONDS": "1x"}, "FOCUS_BUDGET_SECONDS is '1x'; it takes a number"),
        ({"FOCUS_SEED": "x"}, "FOCUS_SEED is 'x'"),
        ({"FOCUS_MOST_OUT": "few"}, "FOCUS_MOST_OUT is 'few'; it takes a whole number from 0"),
        ({"FOCUS_MAX_OUT": 8}, "did you mean FOCUS_MOST_OUT?"),
        ({"FOCUS_MOST_WAITING": "few"}, "FOCUS_MOST_WAITING is 'few'; it takes a whole number from 0"),
        (
            {"FOCUS_MOST_WAITING": 9, "FOCUS_MAX_INFLIGHT": 0, "CONCURRENT_REQUESTS": 10},
            "FOCUS_MOST_WAITING is 9, fewer links than the 10 that may be in flight (CONCURRENT_REQUESTS); give at "
            "least 10, or 0 for any number",
        ),
        (
            {"FOCUS_MOST_WAITING": "3", "FOCUS_MAX_INFLIGHT": 4},
            "FOCUS_MOST_WAITING is 3, fewer links than the 4 that may be in flight (FOCUS_MAX_INFLIGHT)",
        ),
        ({"FOCUS_TARGETS": "csv,nonsense!"}, "'nonsense!' is not a file type"),
        ({"FOCUS_BLOCKED_MIMES": "no such"}, "'no such' is not a file type"),
        ({"FOCUS_GOAL": "os.nothing"}, "FOCUS_GOAL is 'os.nothing'"),
        ({"FOCUS_GOAL": "os.sep"}, "takes a callable"),
        ({"FOCUS_GOAL": "scrapy_focus.ItemsGoal", "FOCUS_TARGETS": "csv"}, "set one of them"),
        (
            {"FOCUS_PLATEAU": True},
            'unknown setting FOCUS_PLATEAU; use FOCUS_STOP = "scrapy_focus.Plateau". All settings: ',
        ),
        ({"FOCUS_RENDER": "sometimes"}, "FOCUS_RENDER is 'sometimes'; it takes 'never', 'learn' or 'always'"),
        ({"FOCUS_RENDER": True}, "FOCUS_RENDER is True; it takes 'never', 'learn' or 'always'"),
        ({"FOCUS_RENDER_COST": -1}, "FOCUS_RENDER_COST is -1; it takes a number from 0"),
        ({"FOCUS_RENDER_COST": "inf"}, "FOCUS_RENDER_COST is 'inf'; it takes a number from 0"),
        ({"FOCUS_COST_LIMIT": "dear"}, "FOCUS_COST_LIMIT is 'dear'; it takes a number from 0"),
        ({"FOCUS_COST_LIMIT": -5}, "FOCUS_COST_LIMIT is -5; it takes a number from 0"),
        ({"FOCUS_COST_LIMIT": "inf"}, "FOCUS_COST_LIMIT is 'inf'; it takes a number from 0"),
        ({"FOCUS_COST_LIMIT": "nan"}, "FOCUS_COST_LIMIT is 'nan'; it takes a number from 0"),
        (
            {"FOCUS_STOP": "scrapy_focus.Plateau", "FOCUS_COST_LIMIT": 50},
            "FOCUS_STOP and FOCUS_COST_LIMIT each say when to stop",
        ),
        ({"FOCUS_STOP": "scrapy_focus.Platypus"}, "FOCUS_STOP is 'scrapy_focus.Platypus', which cannot be made"),
        ({"FOCUS_STOP": "scrapy_focus.CostLimit"}, "FOCUS_STOP is 'scrapy_focus.CostLimit', which cannot be made"),
        ({"FOCUS_STOP": "os.sep"}, "FOCUS_STOP is 'os.sep', which lacks reason, reached(), state(), restore()"),
        ({"FOCUS_STOP": Half}, "which lacks state(), restore(); it takes a stop rule such as scrapy_focus.Plateau"),
        (
            {"FOCUS_COST_LIMIT": 50, "FOCUS_POLICY": BREADTH_FIRST},
            "FOCUS_COST_LIMIT is 50, for which BreadthFirst lacks expected_cost(); use",
        ),
        (
            {"FOCUS_COST_LIMIT": "50", "FOCUS_POLICY": TAG_PATH},
            "FOCUS_COST_LIMIT is '50', for which TagPath lacks expected_cost()",
        ),
        (
            {"FOCUS_LEARNED_TO": "x", "FOCUS_POLICY": BREADTH_FIRST},
            "FOCUS_LEARNED_TO is 'x', for which BreadthFirst lacks save()",
        ),
        (
            {"FOCUS_LEARNED_FROM": "x", "FOCUS_POLICY": TAG_PATH},
            "FOCUS_LEARNED_FROM is 'x', for which TagPath lacks load()",
        ),
        ({"FOCUS_LEARNED_FROM": "/no/such/file.npz"}, "there is no file /no/such/file.npz; let a crawl write one"),
        (
            {"FOCUS_POLICY_PARAMS": {"unit": "hours"}},
            "BranchingBandit(unit='hours'): unit is one of 'requests', 'bytes', 'seconds'",
        ),
        ({"FOCUS_PROGRESS": "loud"}, "'auto', 'panel', 'log' or 'off'"),
        ({"FOCUS_LOG": "/proc/no/log.jsonl"}, "FOCUS_LOG is '/proc/no/log.jsonl', which cannot be written"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_settings_stop_the_crawl_before_it_starts(
    site: MockSite, caplog: pytest.LogCaptureFixture, addon: bool, settings: dict[str, Any], said: str
) -> None:
    """A setting that does not exist, or has an unusable value, is an error that says what would be right."""
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
        "FOCUS_MAX_INFLIGHT": "2", "FOCUS_MAX_INFLIGHT_PER_SLOT": "1", "FOCUS_TARGETS": "csv,pdf", "FOCUS_STOP": "scrapy_focus.Plateau",
        "FOCUS_POLICY": "scrapy_focus.policies.tagpath.TagPath", "FOCUS_POLICY_PARAMS": '{"theta": 0.8, "probe": false}',
        "FOCUS_BLOCKED_MIMES": "image/*,font/woff",
    }  # fmt: skip
    result = crawl(Follower, settings, addon=addon, seeds=[site.url("/page/0/20")])
    assert len(site.log) == 7
    assert result.scheduler.crawl.policy.theta == 0.8


def configured(**settings: Any) -> Config:
    """Return the parsed settings of a project, with ``FOCUS_`` in front of each name."""
    return Config.from_settings(Settings({f"FOCUS_{name}": value for name, value in settings.items()}), BranchingBandit)


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
    ],
)
def test_what_is_saved_is_what_there_is_a_budget_of(budgets: dict[str, Any], unit: str) -> None:
    """The unit is that of the only budget, and requests if there is none or more than one."""
    assert configured(**budgets).mission().unit == unit


def test_what_is_looked_for_is_the_mission() -> None:
    """Types of targets or of a goal, keywords, and whether headers decide; items have no type."""
    config = configured(TARGETS="csv,pdf", KEYWORDS="wine,olive")
    assert config.mission() == Mission(types=config.goal.types, words=("wine", "olive"), heads_tell=True)  # type: ignore[attr-defined]
    assert {"text/csv", "application/pdf"} <= config.mission().types
    assert configured().mission() == Mission()
    assert configured(GOAL="scrapy_focus.FilesGoal").mission() == Mission(types=FilesGoal().types, heads_tell=True)


class Mine(BranchingBandit):
    """A subclass with its own constructor."""

    def __init__(self, *, more: int = 1) -> None:
        super().__init__(theta=0.5)
        self.more = more


class Targeted(BreadthFirst):
    """Has parameters with names that other policies use for fields of the mission."""

    def __init__(self, *, targets: tuple[str, ...] = (), words: tuple[str, ...] = (), unit: str = "") -> None:
        super().__init__()
        self.targets, self.words, self.unit = targets, words, unit

    def open(self, frontier: Any, rng: Any, mission: Any) -> None:
        super().open(frontier, rng, mission)
        self.mission = mission


@ADDON
def test_every_policy_is_given_the_mission(site: MockSite, addon: bool) -> None:
    """Including a custom one, whose parameters do not change, and a subclass without some parameters."""
    settings = {"FOCUS_TARGETS": "csv", "FOCUS_KEYWORDS": "wine", "FOCUS_BUDGET_BYTES": 10**6}
    policy = crawl(Follower, {**settings, "FOCUS_POLICY": Targeted}, addon=addon, seeds=[site.url("/ok")]).policy
    assert (policy.targets, policy.words, policy.unit) == ((), (), "")
    assert "text/csv" in policy.mission.types
    assert (policy.mission.words, policy.mission.unit) == (("wine",), "bytes")
    mine = {**settings, "FOCUS_POLICY": Mine, "FOCUS_COST_LIMIT": 9, "FOCUS_POLICY_PARAMS": {"more": 2}}
    policy = crawl(Follower, mine, addon=addon, seeds=[site.url("/ok")]).policy
    assert (policy.theta, policy.more, policy.saves) == (0.5, 2, "bytes")
    assert "text/csv" in policy.looks_for
    said = {**settings, "FOCUS_POLICY_PARAMS": {"unit": "seconds", "targets": ["image/*"]}}
    policy = crawl(Follower, said, addon=addon, seeds=[site.url("/ok")]).policy
    assert (policy.saves, policy.looks_for) == ("seconds", {"image/*"})


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({}, None), ({"COST_LIMIT": 0}, None), ({"COST_LIMIT": ""}, None), ({"COST_LIMIT": 20}, CostLimit), ({"COST_LIMIT": "0.5"}, CostLimit),
        ({"STOP": Plateau}, Plateau), ({"COST_LIMIT": 0, "STOP": Plateau}, Plateau), ({"COST_LIMIT": "0", "STOP": Plateau}, Plateau),
        ({"COST_LIMIT": 20, "STOP": None}, CostLimit), ({"COST_LIMIT": 20, "STOP": ""}, CostLimit),
        ({"COST_LIMIT": "0", "STOP": "", "POLICY": BREADTH_FIRST}, None),
    ],
)  # fmt: skip
def test_one_rule_stops_a_crawl(settings: dict[str, Any], rule: type | None) -> None:
    """What is turned off, also as text on the command line, is as if it were not set."""
    made = configured(**settings).stop
    assert made is None if rule is None else type(made) is rule
    if isinstance(made, CostLimit):
        assert made.limit == float(settings["COST_LIMIT"])
