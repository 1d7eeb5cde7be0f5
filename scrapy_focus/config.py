"""The settings of scrapy_focus, except those of features: each is declared once, and checked against the others."""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from scrapy.utils.misc import load_object

from scrapy_focus.core.abilities import ExpectsCost, Loads, NeedsTruth, Saves
from scrapy_focus.core.budget import Budget, Rate
from scrapy_focus.core.contract import missing_of_stop
from scrapy_focus.core.errors import ConfigError, FocusError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.core.files import try_to_write
from scrapy_focus.core.goal import ItemsGoal, types_of
from scrapy_focus.core.log import EventLog
from scrapy_focus.core.mission import RENDER_COST, Mission, Unit, learning, topic_of
from scrapy_focus.core.policy import Policy, import_path
from scrapy_focus.core.printable import REASON, brief, printable, printable_logger, reason_of
from scrapy_focus.core.setting import (
    Kind,
    Setting,
    anything,
    choice,
    flag,
    is_off,
    mapping,
    none_at_zero,
    number,
    path,
    seconds,
    size,
    some_of,
    texts,
    texts_of,
    whole,
)
from scrapy_focus.core.stop import CostLimit
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.goals.structured import StructuredDataGoal
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.jobs.warc_files import first_file
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.web.mime import BLOCKED_MIMES
from scrapy_focus.web.wanted import parse_types, split_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy.settings import BaseSettings

    from scrapy_focus.core.frontier import MakeFrontier
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.stop import StopRule

logger = printable_logger(__name__)

#: The wishes of sites that ``FOCUS_OBEY`` may name.
WISHES = frozenset({"crawl-delay", "nofollow", "noindex", "retry-after", "robots-errors"})

#: Types of resources, by Playwright's names.
RESOURCES = frozenset(
    """
    document eventsource fetch font image manifest media other ping script stylesheet texttrack websocket xhr
    """.split()
)
_MADE_OF = frozenset({"fetch", "script", "stylesheet", "xhr"})  # resources that a page needs to work

_LONGEST_NAME = 300  # characters of the name of a crawl

Progress = Literal["auto", "panel", "log", "off"]
#: Which pages a browser renders.
Render = Literal["never", "learn", "always"]


# Kinds of settings that are specific to this package


def _policy_class(name: str, value: Any) -> type[Policy]:
    try:
        policy = load_object(value)
    except Exception as error:  # importing a module may raise anything
        raise ConfigError(f"{name} is {brief(value)}, which cannot be imported: {reason_of(error)}") from error
    if not (isinstance(policy, type) and issubclass(policy, Policy)):
        raise ConfigError(f"{name} is {brief(value)}; it takes a subclass of scrapy_focus.Policy, or its import path")
    return policy


def _made(name: str, value: Any) -> Any:
    """Return an object from a setting: the object itself, its import path, or its class."""
    try:
        made = load_object(value) if isinstance(value, (str, type)) else value
        return made() if isinstance(made, type) else made
    except Exception as error:
        raise ConfigError(f"{name} is {brief(value)}, which cannot be made: {reason_of(error)}") from error


def _goal(name: str, value: Any) -> Goal:
    goal = _made(name, value)
    if not callable(goal):
        raise TypeError(goal)
    return goal  # type: ignore[no-any-return]


def _stop_rule(name: str, value: Any) -> StopRule:
    rule = _made(name, value)
    if missing := missing_of_stop(rule):
        raise ConfigError(
            f"{name} is {brief(value)}, which lacks {', '.join(missing)}; it takes a stop rule such as "
            "scrapy_focus.Plateau, or its import path"
        )
    return rule  # type: ignore[no-any-return]


def _topic(name: str, value: Any) -> Any:
    """Return a topic unchanged; on the command line, a dict is given as JSON."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is {brief(value)}, which is not JSON: {reason_of(error)}") from error


def _files_goal(name: str, value: Any) -> FilesGoal | None:
    words = split_words(value) if isinstance(value, str) and value else texts_of(value)
    try:
        return FilesGoal(types=words) if words else None
    except ConfigError as error:
        raise ConfigError(f"{name}: {reason_of(error, REASON)}") from error


def _try_file(name: str, value: str, path: Path) -> None:
    try:
        try_to_write(path)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{name} is {brief(value)}, which cannot be written: {_why(error)}; name a file in a folder that can be "
            "written"
        ) from error


def _is_no_type(value: Any) -> bool:
    return value is False or (isinstance(value, str) and not value)


def _types(name: str, given: list[str]) -> frozenset[str]:
    try:
        return parse_types(given)
    except ConfigError as error:
        raise ConfigError(f"{name}: {reason_of(error, REASON)}") from error


def _import_paths(name: str, given: list[str]) -> tuple[str, ...]:
    """Return import paths, which are imported only when something is stored."""
    found = tuple(each.strip() for each in given)
    if unfit := [each for each in found if not all(part.isidentifier() for part in each.split("."))]:
        raise ConfigError(
            f"{name} has {brief(unfit[0])}; it takes a list of import paths, such as ['somelibrary.models.Model']"
        )
    return found


def _frontier(name: str, value: Any) -> MakeFrontier:
    try:
        make = load_object(value)
    except Exception as error:  # importing a module may raise anything
        raise ConfigError(f"{name} is {brief(value)}, which cannot be imported: {reason_of(error)}") from error
    if not callable(make):
        raise TypeError(make)
    return make  # type: ignore[no-any-return]


def _features(name: str, value: Any) -> tuple[Callable[[Any], Any], ...]:
    """Return the factories of a project's features, each called with the live crawl."""
    named = value.split(",") if isinstance(value, str) else value
    if not isinstance(named, list | tuple):
        raise TypeError(named)
    features = []
    for each in named:
        try:
            make = load_object(each.strip() if isinstance(each, str) else each)
        except Exception as error:  # importing a module may raise anything
            raise ConfigError(f"{name} has {brief(each)}, which cannot be imported: {reason_of(error)}") from error
        if not callable(make):
            raise ConfigError(
                f"{name} has {brief(each)}; it takes subclasses of scrapy_focus.Feature, or functions that return a "
                "feature or None, or their import paths"
            )
        features.append(make)
    return tuple(features)


def _text(is_fit: Callable[[str], bool], takes: str) -> Kind[str]:
    """Return the kind of a text setting with a condition."""

    def read(_: str, value: Any) -> str:
        if not (isinstance(value, str) and is_fit(value)):
            raise ValueError(value)
        return value

    return Kind(read, takes, is_off)


_FILES = "file types"
_GOAL = Kind(_goal, "a callable from an Outcome to a number, or its import path", is_off)
_FRONTIER = Kind(
    _frontier,
    "a function that makes a frontier, such as scrapy_focus.memory_frontier, or its import path",
    is_off,
)
_FEATURES = Kind(_features, "a list of features, or of their import paths", is_off)
_STRUCTURED = texts(
    "types of schema.org, or '*' for any,",
    lambda name, given: StructuredDataGoal.of(given, name),
    is_empty=_is_no_type,
)
_RATE = Kind(
    lambda name, value: Rate.of(value, name), "a rate", lambda value: isinstance(value, str) and not value.strip()
)
_CLUSTER = _text(lambda _: True, "'auto' for the cluster of this machine, or an address like 'head.example:6379'")
_NAME = _text(
    lambda value: len(value) <= _LONGEST_NAME and printable(value) == value, "a name, such as 'datasets-2026'"
)


class Config:
    """The ``FOCUS_*`` settings of one crawl; ``docs/reference/settings.rst`` describes them.

    Features declare and read their settings in their own folders. Here each row is a setting: ``Config.most_out`` is
    the setting itself, which reads its value from given settings (``Config.most_out.of(settings)``), and
    ``config.most_out`` is its value in this crawl.
    """

    # The goal, the policy and the stop rule, as given. Values derived from them are below.
    own_goal = Setting("FOCUS_GOAL", _GOAL, default=None)
    targets = Setting("FOCUS_TARGETS", Kind(_files_goal, f"{_FILES}, in a list, or separated by commas"), default=None)
    topic = Setting("FOCUS_TOPIC", Kind(_topic, "a topic", is_off), default=None)
    about = Setting("FOCUS_ABOUT", _text(bool, "a sentence"), default="")
    embedding = Setting("FOCUS_EMBEDDING", _text(bool, "the source of an embedding"), default="")
    structured = Setting("FOCUS_STRUCTURED", _STRUCTURED, default=None)
    own_policy = Setting("FOCUS_POLICY", Kind(_policy_class, "a policy", is_off), default=None)  # of the scheduler
    own_stop = Setting("FOCUS_STOP", Kind(_stop_rule, "a stop rule", is_off), default=None)
    cost_limit = Setting("FOCUS_COST_LIMIT", none_at_zero(number()), default=None, unit="requests")

    params = Setting("FOCUS_POLICY_PARAMS", mapping(), default={})
    keywords = Setting("FOCUS_KEYWORDS", texts("words and phrases", lambda _, given: tuple(given)), default=())
    frontier = Setting("FOCUS_FRONTIER", _FRONTIER, default=None, in_cluster=False)
    features = Setting(
        "FOCUS_FEATURES", Kind(_features, "a list of features, or of their import paths", is_off), default=()
    )
    seed = Setting("FOCUS_SEED", whole(), default=None)
    learned_from = Setting("FOCUS_LEARNED_FROM", path(), default="")
    learned_to = Setting("FOCUS_LEARNED_TO", path(), default="")
    request_priority = Setting("FOCUS_REQUEST_PRIORITY", flag(), default=False, in_cluster=False)
    explain = Setting("FOCUS_EXPLAIN", flag(), default=False)

    budget_requests = Setting("FOCUS_BUDGET_REQUESTS", none_at_zero(whole()), default=None, unit="requests")
    budget_bytes = Setting("FOCUS_BUDGET_BYTES", none_at_zero(size()), default=None, unit="bytes")
    budget_seconds = Setting("FOCUS_BUDGET_SECONDS", none_at_zero(seconds()), default=None, unit="seconds")
    budget_rate = Setting("FOCUS_BUDGET_RATE", _RATE, default=None)
    cost_unit: Setting[Unit | None] = Setting("FOCUS_COST_UNIT", choice(*get_args(Unit), is_empty=is_off), default=None)

    render: Setting[Render] = Setting("FOCUS_RENDER", choice(*get_args(Render), is_empty=is_off), default="learn")
    render_cost = Setting("FOCUS_RENDER_COST", number(), default=RENDER_COST, unit="requests")
    browser_offsite = Setting(
        "FOCUS_BROWSER_OFFSITE", some_of(RESOURCES, "types of resource, such as 'stylesheet',"), default=_MADE_OF
    )
    blocked_mimes = Setting("FOCUS_BLOCKED_MIMES", texts(_FILES, _types), default=frozenset(BLOCKED_MIMES))

    obey = Setting("FOCUS_OBEY", some_of(WISHES, "what sites may ask for"), default=frozenset({"retry-after"}))
    longest_wait = Setting("FOCUS_LONGEST_WAIT", seconds(), default=300.0, unit="seconds")
    public_only = Setting("FOCUS_PUBLIC_ONLY", flag(), default=False)
    max_inflation = Setting("FOCUS_MAX_INFLATION", number(), default=0.0, unit="bytes of a body for each byte")

    poor_last: Setting[bool | None] = Setting("FOCUS_POOR_LAST", flag(), default=None)

    max_inflight = Setting("FOCUS_MAX_INFLIGHT", whole(), default=0, unit="picks without an outcome")
    max_inflight_per_slot = Setting("FOCUS_MAX_INFLIGHT_PER_SLOT", whole(), default=0, unit="requests")
    most_out = Setting("FOCUS_MOST_OUT", whole(), default=None, unit="picks", in_cluster=False)
    most_waiting = Setting("FOCUS_MOST_WAITING", none_at_zero(whole()), default=None, unit="links")

    checkpoint_every = Setting("FOCUS_CHECKPOINT_EVERY", whole(least=1), default=1000, unit="outcomes")
    stored_classes = Setting("FOCUS_STORED_CLASSES", texts("import paths", _import_paths), default=())

    cluster = Setting("FOCUS_CLUSTER", _CLUSTER, default="")
    cluster_name = Setting("FOCUS_CLUSTER_NAME", _NAME, default="")
    cluster_engine = Setting("FOCUS_CLUSTER_ENGINE", anything(), default="scrapy_focus.cluster.ray.RayEngine")
    cluster_lease = Setting("FOCUS_CLUSTER_LEASE", seconds(least=1), default=30.0, unit="seconds")
    cluster_most_out = Setting("FOCUS_CLUSTER_MOST_OUT", whole(least=1), default=None, unit="picks")

    item_id = Setting(
        "FOCUS_ITEM_ID", _text(str.isidentifier, "the name of a field of your items, such as 'item_id'"), default=""
    )
    exit_status = Setting("FOCUS_EXIT_STATUS", flag(), default=False)
    progress: Setting[Progress] = Setting("FOCUS_PROGRESS", choice(*get_args(Progress)), default="auto")
    log = Setting("FOCUS_LOG", path(), default="")
    warc = Setting("FOCUS_WARC", path(), default="")

    # Values derived from several settings
    policy: type[Policy]
    goal: Goal
    stop: StopRule | None

    @classmethod
    def from_settings(
        cls, settings: BaseSettings, default_policy: type[Policy], rows: Sequence[Setting[Any]] = ()
    ) -> Self:
        """Read all settings.

        Parameters
        ----------
        settings
            Scrapy's settings.
        default_policy
            The default policy of the scheduler.
        rows
            The settings of features, which are checked here and read by the features.

        Raises
        ------
        ConfigError
            If a setting is unknown, has an invalid value, or contradicts another one.
        """
        check_names(settings, rows)
        config = cls()
        vars(config).update({field: row.of(settings) for field, row in ROWS.items()})
        for row in rows:
            row.of(settings)
        if settings.get(cls.keywords.name) is None:
            vars(config)["keywords"] = _words_of(config.topic)
        config.goal = config._find_goal()
        config.policy = config._find_policy(settings, default_policy)
        config.stop = config._find_stop()
        config._check_can(config.policy, settings)
        config._check_priority()
        config._check_most_waiting(settings)
        config._check_frontier(settings)
        config._check_cluster(settings, rows)
        return config

    def make_policy(self) -> Policy:
        """Return the policy with its parameters.

        Raises
        ------
        ConfigError
            If the policy does not take the parameters, or cannot run in a live crawl.
        """
        signature, name = inspect.signature(self.policy), self.policy.__qualname__
        try:
            signature.bind(**self.params)
        except TypeError as error:
            raise ConfigError(
                f"FOCUS_POLICY_PARAMS is {brief(self.params)}, which {name} does not take: {reason_of(error)}; "
                f"it takes {', '.join(signature.parameters) or 'none'}"
            ) from error
        try:
            policy = self.policy(**self.params)
        except Exception as error:  # a user's policy may raise anything
            said = reason_of(error, REASON)
            if inspect.isabstract(self.policy):
                raise ConfigError(f"FOCUS_POLICY is {name}, which is not a complete policy: {said}") from error
            kind = "" if isinstance(error, FocusError) else f"{type(error).__name__}: "
            raise ConfigError(f"FOCUS_POLICY_PARAMS, for {name}: {kind}{said}") from error
        if isinstance(policy, NeedsTruth) and policy.needs_truth:
            raise ConfigError(
                f"FOCUS_POLICY is {name}, which needs to know the whole site in advance: it "
                "only runs on recorded sites, with focus compare"
            )
        return policy

    def try_files(self) -> None:
        """Make the folders of files that are written later, and check that they are writable.

        Raises
        ------
        ConfigError
            If one is not, or a package is missing, so that no crawl runs in vain.
        """
        if self.learned_to:
            _try_file("FOCUS_LEARNED_TO", self.learned_to, Path(self.learned_to))
        if self.warc:
            require_extra("FOCUS_WARC", "warc", "warcio")
            _try_file("FOCUS_WARC", self.warc, first_file(self.warc))

    def make_log(self) -> EventLog | None:
        """Return the decision log, if one is to be written.

        Raises
        ------
        ConfigError
            If it cannot be written.
        """
        try:
            return EventLog(self.log) if self.log else None
        except (ConfigError, ValueError) as error:
            raise ConfigError(
                f"FOCUS_LOG is {brief(self.log)}, which cannot be written: {_why(error.__cause__ or error)}; name a "
                "file in a folder that can be written"
            ) from error

    def make_budget(self) -> Budget:
        """Return the budget, with nothing used."""
        return Budget(
            requests=self.budget_requests, bytes=self.budget_bytes, seconds=self.budget_seconds, rate=self.budget_rate
        )

    def mission(self) -> Mission:
        """Return what the crawl looks for, as every policy receives it.

        Unless it is set, the unit of cost is that of the budget, if there is only one and it is not requests.
        """
        units: dict[Unit, float | None] = {"bytes": self.budget_bytes, "seconds": self.budget_seconds}
        limited = [unit for unit, limit in units.items() if limit is not None]
        limited_by = limited[0] if len(limited) == 1 and self.budget_requests is None else "requests"
        unit = self.cost_unit or limited_by
        mission = Mission.of(
            self.goal,
            words=self.keywords,
            unit=unit,
            render_cost=self.render_cost,
            renders=self.render == "learn",
        )
        return mission.at_rate(None if self.budget_rate is None else self.budget_rate.per_second)

    def _find_goal(self) -> Goal:
        """Return the goal from the settings."""
        self._check_one_goal()
        if self.about:
            return self._goal_about()
        if self.structured is not None:
            return self.structured
        if self.topic is not None:
            return _topic_goal(self.topic)
        if self.own_goal is not None:
            return self.own_goal
        return self.targets or ItemsGoal()

    def _goal_about(self) -> Goal:
        """Return the goal for a sentence: pages about it, or files or pages with structured data that are."""
        further = self.topic or {}
        if not isinstance(further, Mapping):
            raise ConfigError(
                f"FOCUS_TOPIC is {brief(self.topic)}, and FOCUS_ABOUT is set; a sentence goes with a topic that is a "
                "dict, not with a finished model: remove one of them"
            )
        if self.own_goal is not None:
            raise ConfigError("FOCUS_GOAL and FOCUS_ABOUT both say what to look for; set one of them")
        said = {"about": self.about, **({"embedding": self.embedding} if self.embedding else {})}
        if double := sorted(said.keys() & further.keys()):
            raise ConfigError(
                f"FOCUS_TOPIC has {double[0]}, and so do the settings: FOCUS_{double[0].upper()}; remove one"
            )
        goal = _topic_goal({**further, **said}, "FOCUS_ABOUT")
        if self.targets is not None:
            return self.targets.on(goal.relevance)
        if self.structured is not None:
            from scrapy_focus.goals.structured_about import StructuredDataAbout

            like = self.structured
            return StructuredDataAbout(goal.relevance, like.given, like.syntaxes, like.least)
        return goal

    def _check_one_goal(self) -> None:
        if self.embedding and not self.about:
            raise ConfigError(
                f"FOCUS_EMBEDDING is {brief(self.embedding)}, and FOCUS_ABOUT is not set: it compares texts with that "
                "sentence; set both"
            )
        goals = {"FOCUS_GOAL": self.own_goal, "FOCUS_TARGETS": self.targets, "FOCUS_TOPIC": self.topic}
        named = [name for name, goal in goals.items() if goal is not None]
        if named and self.structured is not None:
            raise ConfigError(f"FOCUS_STRUCTURED and {named[0]} both say what to look for; set one of them")
        if len(named) > 1 and self.topic is not None:
            raise ConfigError("FOCUS_TOPIC, FOCUS_GOAL and FOCUS_TARGETS all say what to look for; set one of them")
        if len(named) > 1:
            raise ConfigError("FOCUS_GOAL and FOCUS_TARGETS both say what to look for; set one of them")

    def _find_policy(self, settings: BaseSettings, default: type[Policy]) -> type[Policy]:
        """Return the policy in the settings, or that of the scheduler.

        If the goal has a topic and the policy would be the default one, which reads no topics, TreeQ replaces it. If
        another policy reads no topics, or settings need what TreeQ lacks, a warning is logged.
        """
        policy = self.own_policy or _policy_class(Config.own_policy.name, default)
        if topic_of(self.goal) is None or policy.reads_topic or types_of(self.goal):
            return policy  # for files on a topic, any policy learns from rewards how relevant they are
        why = f"{policy.__qualname__} is set"
        if self.own_policy is None and policy is BranchingBandit:
            if not (why := self._needs_default(settings)):
                logger.info(
                    "the goal has a topic, so the policy is TreeQ, which reads the words of links; to keep the one "
                    "that learns from rewards only, set FOCUS_POLICY = %r", import_path(BranchingBandit),
                )  # fmt: skip
                return policy_for_topics()
        elif self.own_policy is None:
            why = f"{policy.__qualname__} is the policy of the scheduler"
        logger.warning(
            "the goal has a topic, but %s, and %s does not read it: links whose words fit the topic get no priority. "
            "SCHEDULER = 'scrapy_focus.TreeFrontierScheduler', without FOCUS_POLICY, finds more", why,
            policy.__qualname__,
        )  # fmt: skip
        return policy

    def _needs_default(self, settings: BaseSettings) -> str:
        """Return the setting that requires the default policy, ``""`` if there is none."""
        tree = policy_for_topics()
        try:
            inspect.signature(tree).bind(**self.params)
        except TypeError:
            return "FOCUS_POLICY_PARAMS are those of another policy"
        if self.request_priority:
            return "FOCUS_REQUEST_PRIORITY is on"
        try:
            self._check_can(tree, settings)
        except ConfigError as error:
            return f"{str(error).partition(' ')[0]} is set"
        return ""

    def _find_stop(self) -> StopRule | None:
        """Return the stop rule of the crawl, if any."""
        rules = {"FOCUS_STOP": self.own_stop, "FOCUS_COST_LIMIT": self._cost_rule()}
        made = {name: rule for name, rule in rules.items() if rule is not None}
        if len(made) > 1:
            raise ConfigError(f"{' and '.join(made)} each say when to stop; set one of them")
        return next(iter(made.values()), None)

    def _cost_rule(self) -> CostLimit | None:
        if self.cost_limit is None:
            return None
        is_graded = topic_of(self.goal) is not None and bool(types_of(self.goal))
        rule = CostLimit(self.cost_limit, least=_RELEVANT if is_graded else 0.0)
        if self.learned_from:  # an earlier crawl learned the cost of finds
            rule.first = rule.patience
        return rule

    def _check_can(self, policy: type[Policy], settings: BaseSettings) -> None:
        """Raise :class:`~scrapy_focus.core.errors.ConfigError` for a setting that the policy does not support."""
        needs = [
            ("FOCUS_COST_LIMIT", "expected_cost", self.cost_limit is None or issubclass(policy, ExpectsCost)),
            ("FOCUS_LEARNED_FROM", "load", not self.learned_from or issubclass(policy, Loads)),
            ("FOCUS_LEARNED_TO", "save", not self.learned_to or issubclass(policy, Saves)),
        ]
        for name, method, is_met in needs:
            if not is_met:
                raise ConfigError(
                    f"{name} is {brief(settings.get(name))}, for which {policy.__qualname__} lacks {method}(); use "
                    "the default policy of scrapy_focus.FocusScheduler, or remove it"
                )

    def _check_priority(self) -> None:
        if self.request_priority and self.policy.counts_hosts:
            raise ConfigError(
                f"FOCUS_REQUEST_PRIORITY is on, but {self.policy.__qualname__} counts pages by host, which does not "
                "work with priorities; choose another policy, or remove the setting"
            )

    def _check_most_waiting(self, settings: BaseSettings) -> None:
        if self.most_waiting is None:
            return
        of_flight = "FOCUS_MAX_INFLIGHT" if self.max_inflight else "CONCURRENT_REQUESTS"
        in_flight = self.max_inflight or _CONCURRENT.of(settings)
        if self.most_waiting < in_flight:
            raise ConfigError(
                f"FOCUS_MOST_WAITING is {self.most_waiting}, fewer links than the {in_flight} that may be in flight "
                f"({of_flight}); give at least {in_flight}, or 0 for any number"
            )

    def _check_frontier(self, settings: BaseSettings) -> None:
        if self.frontier is not None and settings.get("JOBDIR"):
            raise ConfigError(
                f"FOCUS_FRONTIER is {brief(settings.get('FOCUS_FRONTIER'))}, and JOBDIR is set, which has a "
                "separate frontier; remove one of them"
            )

    def _check_cluster(self, settings: BaseSettings, rows: Sequence[Setting[Any]]) -> None:
        if not self.cluster:
            return
        said = f"FOCUS_CLUSTER is {brief(self.cluster)}"
        if not settings.get("JOBDIR"):
            raise ConfigError(
                f"{said}, and JOBDIR is not set: the leader of the crawl needs a folder on its machine, so that the "
                "crawl survives kills"
            )
        if learning(topic_of(self.goal)) is not None:
            raise ConfigError(
                f"{said}, which does not yet support a topic that learns from the pages: each machine would learn "
                "separately; train a model with focus train, and set FOCUS_TOPIC to its file"
            )
        for row in (*ROWS.values(), *rows):
            value = None if row.in_cluster else settings.get(row.name)
            if not is_off(value) and value not in ("0", "False", "false"):
                raise ConfigError(f"{said}, which does not yet support {row.name}; remove one of them")


_RELEVANT = 0.5  # relevance of a file that is a find for the cost limit, or of several together
_CONCURRENT = Setting("CONCURRENT_REQUESTS", whole(), default=0)  # Scrapy's

#: Each field of Config that is a setting.
ROWS: dict[str, Setting[Any]] = {field: row for field, row in vars(Config).items() if isinstance(row, Setting)}

#: The names of all settings that belong to no feature.
SETTINGS = tuple(sorted(row.name for row in ROWS.values()))

#: Settings of earlier versions, and their replacements.
GONE = {"FOCUS_PLATEAU": 'FOCUS_STOP = "scrapy_focus.Plateau"'}


def check_names(settings: BaseSettings, rows: Sequence[Setting[Any]]) -> None:
    """Raise :class:`~scrapy_focus.core.errors.ConfigError` for a ``FOCUS_*`` setting that does not exist.

    ``rows``: the settings of features.
    """
    known = sorted({*SETTINGS, *(row.name for row in rows)})
    for name in settings:
        if isinstance(name, str) and name.startswith("FOCUS_") and name not in known:
            parts = {each.removeprefix("FOCUS_"): each for each in known}
            near = difflib.get_close_matches(name.removeprefix("FOCUS_"), parts, n=1, cutoff=0.4)
            meant = f"did you mean {parts[near[0]]}? " if near else ""
            if name in GONE:
                meant = f"use {GONE[name]}. "
            raise ConfigError(f"unknown setting {printable(name)}; {meant}All settings: {', '.join(known)}")


def policy_for_topics() -> type[Policy]:
    """Return the policy for goals with a topic; other crawls do not import it."""
    from scrapy_focus.policies.treeq.policy import TreeQ

    return TreeQ


def _topic_goal(topic: Any, name: str = "FOCUS_TOPIC") -> TopicGoal:
    try:
        return TopicGoal(topic)
    except Exception as error:  # a user's model may raise anything
        raise ConfigError(f"{name}: {reason_of(error, REASON)}") from error


def _words_of(topic: Any) -> tuple[str, ...]:
    """Return the keywords of a topic given as a dict."""
    words = topic.get("keywords", ()) if isinstance(topic, Mapping) else ()
    return tuple(words) if isinstance(words, (list, tuple)) else ()


def _why(error: BaseException) -> str:
    """Return the reason of an error, without the path that the message already names."""
    return (isinstance(error, OSError) and error.strerror) or reason_of(error)
