"""Every setting of scrapy_focus, read and checked once."""

from __future__ import annotations

import difflib
import inspect
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args

from scrapy.utils.misc import load_object

from scrapy_focus.core.budget import Budget, Rate
from scrapy_focus.core.contract import missing_of_stop
from scrapy_focus.core.durations import Duration
from scrapy_focus.core.errors import ConfigError, FocusError
from scrapy_focus.core.files import try_to_write
from scrapy_focus.core.goal import ItemsGoal
from scrapy_focus.core.log import EventLog
from scrapy_focus.core.mission import RENDER_COST, Mission, learning
from scrapy_focus.core.policy import Policy, import_path
from scrapy_focus.core.printable import brief, printable, printable_logger, reason_of
from scrapy_focus.core.stop import CostLimit, Plateau
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.goals.structured import StructuredDataGoal
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.web.mime import BLOCKED_MIMES
from scrapy_focus.web.wanted import parse_types, split_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy.settings import BaseSettings

    from scrapy_focus.core.frontier import MakeFrontier
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.mission import Unit
    from scrapy_focus.core.policy import Ability
    from scrapy_focus.core.stop import StopRule

logger = printable_logger(__name__)

#: What a site may ask for, and ``FOCUS_OBEY`` may name.
WISHES = frozenset({"crawl-delay", "nofollow", "noindex", "retry-after", "robots-errors"})

_LONGEST = 300  # characters of a reason
_LONGEST_PATH = 4096  # bytes
_MOST = 1 << 62  # of any number

#: What carries calls to the leader of a cluster, where nothing else is named.
ENGINE = "scrapy_focus.cluster.ray.RayEngine"

Progress = Literal["auto", "panel", "log", "off"]
#: Which pages a browser fetches.
Render = Literal["never", "learn", "always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The ``FOCUS_*`` settings of one crawl; ``docs/reference/settings.rst`` says what each is for."""

    policy: type[Policy]
    params: dict[str, Any] = field(default_factory=dict)
    goal: Goal
    frontier: MakeFrontier | None = None
    budget_requests: int | None = None
    budget_bytes: int | None = None
    budget_seconds: float | None = None
    budget_rate: Rate | None = None
    stop: StopRule | None = None
    learned_from: str = ""
    learned_to: str = ""
    max_copies: int = 100
    max_folders: int = 32
    max_inflight: int = 0
    max_inflight_per_slot: int = 0
    max_links: int = 6000
    max_repeats: int = 5
    most_out: int | None = None
    most_waiting: int | None = None
    poor_last: bool | None = None
    seed: int | None = None
    log: str = ""
    checkpoint_every: int = 1000
    kill_safe_fetch: bool = False
    blocked_mimes: frozenset[str] = frozenset(BLOCKED_MIMES)
    browser_offsite: frozenset[str] = frozenset()
    ignore_parameters: bool = False
    progress: Progress = "auto"
    item_id: str = ""
    keywords: tuple[str, ...] = ()
    exit_status: bool = False
    explain: bool = False
    obey: frozenset[str] = frozenset({"retry-after"})
    longest_wait: float = 300.0
    public_only: bool = False
    render: Render = "learn"
    render_cost: float = RENDER_COST
    max_inflation: float = 0.0
    stored_classes: tuple[str, ...] = ()
    features: tuple[Callable[[Any], Any], ...] = ()
    request_priority: bool = False
    unchanged: bool = False
    cluster: str = ""
    cluster_name: str = ""
    cluster_engine: str | type = ENGINE
    cluster_lease: float = 30.0
    cluster_most_out: int | None = None

    @classmethod
    def from_settings(cls, settings: BaseSettings, default_policy: type[Policy]) -> Config:
        """Read all settings.

        Raises
        ------
        ConfigError
            If a setting is unknown, or has a value that cannot be used.
        """
        check_names(settings)
        targets = _targets(settings)
        progress: Progress = settings.get("FOCUS_PROGRESS", "auto")
        if not isinstance(progress, str) or progress not in get_args(Progress):
            raise ConfigError(f"FOCUS_PROGRESS is {brief(progress)}; it takes 'auto', 'panel', 'log' or 'off'")
        seed = _number(settings, "FOCUS_SEED", int, least=0)
        topic = _topic(settings)
        goal = _goal(_given(settings, "FOCUS_GOAL"), targets, topic, _structured(settings))
        policy = _policy_for(goal, settings, default_policy)
        _check_can(policy, settings)
        return cls(
            policy=policy,
            params=_params(settings),
            goal=goal,
            frontier=_frontier(settings),
            budget_requests=_number(settings, "FOCUS_BUDGET_REQUESTS", int) or None,
            budget_bytes=_number(settings, "FOCUS_BUDGET_BYTES", int) or None,
            budget_seconds=seconds_in(settings, "FOCUS_BUDGET_SECONDS") or None,
            budget_rate=_rate(settings, "FOCUS_BUDGET_RATE"),
            stop=_stop(settings),
            learned_from=_path(settings, "FOCUS_LEARNED_FROM"),
            learned_to=_path(settings, "FOCUS_LEARNED_TO"),
            max_copies=_limit(settings, "FOCUS_MAX_COPIES", 100),
            max_folders=_limit(settings, "FOCUS_MAX_FOLDERS", 32),
            max_inflight=_number(settings, "FOCUS_MAX_INFLIGHT", int) or 0,
            max_inflight_per_slot=_number(settings, "FOCUS_MAX_INFLIGHT_PER_SLOT", int) or 0,
            max_links=_limit(settings, "FOCUS_MAX_LINKS", 6000),
            max_repeats=_limit(settings, "FOCUS_MAX_REPEATS", 5),
            most_out=_number(settings, "FOCUS_MOST_OUT", int),
            most_waiting=_most_waiting(settings),
            poor_last=None if settings.get("FOCUS_POOR_LAST") is None else _flag(settings, "FOCUS_POOR_LAST"),
            seed=seed,
            log=_path(settings, "FOCUS_LOG"),
            checkpoint_every=_number(settings, "FOCUS_CHECKPOINT_EVERY", int, least=1) or 1000,
            kill_safe_fetch=_flag(settings, "FOCUS_KILL_SAFE_FETCH"),
            blocked_mimes=_types(settings, "FOCUS_BLOCKED_MIMES", list(BLOCKED_MIMES)),
            browser_offsite=_resources(settings, "FOCUS_BROWSER_OFFSITE", _MADE_OF),
            ignore_parameters=_flag(settings, "FOCUS_IGNORE_PARAMETERS"),
            progress=progress,
            item_id=item_id_field(settings),
            keywords=tuple(_list(settings, "FOCUS_KEYWORDS", _words_of(topic), "words and phrases")),
            exit_status=_flag(settings, "FOCUS_EXIT_STATUS"),
            explain=_flag(settings, "FOCUS_EXPLAIN"),
            obey=obeyed(settings),
            longest_wait=longest_wait(settings),
            public_only=_flag(settings, "FOCUS_PUBLIC_ONLY"),
            render=render_mode(settings),
            render_cost=_render_cost(settings),
            max_inflation=max_inflation(settings),
            features=_features(settings),
            stored_classes=_paths(settings, "FOCUS_STORED_CLASSES"),
            request_priority=_request_priority(settings, policy),
            unchanged=_flag(settings, "FOCUS_UNCHANGED"),
            cluster=_cluster(settings, goal),
            cluster_name=_name(settings, "FOCUS_CLUSTER_NAME"),
            cluster_engine=ENGINE if (engine := _given(settings, "FOCUS_CLUSTER_ENGINE")) is None else engine,
            cluster_lease=seconds_in(settings, "FOCUS_CLUSTER_LEASE", least=1) or 30.0,
            cluster_most_out=_number(settings, "FOCUS_CLUSTER_MOST_OUT", int, least=1) or None,
        )

    def make_policy(self) -> Policy:
        """Return the policy with its parameters.

        Raises
        ------
        ConfigError
            If the policy does not take the parameters, or cannot decide in a live crawl.
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
        except Exception as error:  # whatever the policy of a user does
            said = reason_of(error, _LONGEST)
            if inspect.isabstract(self.policy):
                raise ConfigError(f"FOCUS_POLICY is {name}, which is no whole policy: {said}") from error
            kind = "" if isinstance(error, FocusError) else f"{type(error).__name__}: "
            raise ConfigError(f"FOCUS_POLICY_PARAMS, for {name}: {kind}{said}") from error
        if policy.needs_truth:
            raise ConfigError(
                f"FOCUS_POLICY is {name}, which is given the truth about a site beforehand: it can "
                "only be tried on recorded ones, with scrapy focus-compare"
            )
        return policy

    def try_files(self) -> None:
        """Make the folder of what is written when the crawl ends, and see whether it can be written.

        Raises
        ------
        ConfigError
            If it cannot: nothing should be crawled for it.
        """
        if not self.learned_to:
            return
        try:
            try_to_write(Path(self.learned_to))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"FOCUS_LEARNED_TO is {brief(self.learned_to)}, which cannot be written: {_why(error)}; name a file in "
                "a folder that can be written"
            ) from error

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
        """Return what is looked for, as every policy is given it.

        What is to be saved is what there is a budget of, if that is one thing and not requests.
        """
        units: dict[Unit, float | None] = {"bytes": self.budget_bytes, "seconds": self.budget_seconds}
        limited = [unit for unit, limit in units.items() if limit is not None]
        unit = limited[0] if len(limited) == 1 and self.budget_requests is None else "requests"
        mission = Mission.of(
            self.goal, words=self.keywords, unit=unit, render_cost=self.render_cost, renders=self.render == "learn"
        )
        return mission.at_rate(None if self.budget_rate is None else self.budget_rate.per_second)


#: Types of resource, as Playwright names them.
RESOURCES = frozenset(
    """
    document eventsource fetch font image manifest media other ping script stylesheet texttrack websocket xhr
    """.split()
)
_MADE_OF = ["fetch", "script", "stylesheet", "xhr"]  # what a page is not itself without

SETTINGS = (
    "FOCUS_BLOCKED_MIMES",
    "FOCUS_BROWSER_OFFSITE",
    "FOCUS_BUDGET_BYTES",
    "FOCUS_BUDGET_RATE",
    "FOCUS_BUDGET_REQUESTS",
    "FOCUS_BUDGET_SECONDS",
    "FOCUS_CHECKPOINT_EVERY",
    "FOCUS_CLUSTER",
    "FOCUS_CLUSTER_ENGINE",
    "FOCUS_CLUSTER_LEASE",
    "FOCUS_CLUSTER_MOST_OUT",
    "FOCUS_CLUSTER_NAME",
    "FOCUS_COST_LIMIT",
    "FOCUS_EXIT_STATUS",
    "FOCUS_EXPLAIN",
    "FOCUS_FEATURES",
    "FOCUS_FRONTIER",
    "FOCUS_GOAL",
    "FOCUS_IGNORE_PARAMETERS",
    "FOCUS_ITEM_ID",
    "FOCUS_KEYWORDS",
    "FOCUS_KILL_SAFE_FETCH",
    "FOCUS_LEARNED_FROM",
    "FOCUS_LEARNED_TO",
    "FOCUS_LOG",
    "FOCUS_LONGEST_WAIT",
    "FOCUS_MAX_COPIES",
    "FOCUS_MAX_FOLDERS",
    "FOCUS_MAX_INFLATION",
    "FOCUS_MAX_INFLIGHT",
    "FOCUS_MAX_INFLIGHT_PER_SLOT",
    "FOCUS_MAX_LINKS",
    "FOCUS_MAX_REPEATS",
    "FOCUS_MOST_OUT",
    "FOCUS_MOST_WAITING",
    "FOCUS_OBEY",
    "FOCUS_PLATEAU",
    "FOCUS_POLICY",
    "FOCUS_POLICY_PARAMS",
    "FOCUS_POOR_LAST",
    "FOCUS_PROGRESS",
    "FOCUS_PUBLIC_ONLY",
    "FOCUS_RENDER",
    "FOCUS_RENDER_COST",
    "FOCUS_REQUEST_PRIORITY",
    "FOCUS_SEED",
    "FOCUS_STOP",
    "FOCUS_STORED_CLASSES",
    "FOCUS_STRUCTURED",
    "FOCUS_TARGETS",
    "FOCUS_TOPIC",
    "FOCUS_UNCHANGED",
)


def check_names(settings: BaseSettings) -> None:
    """Raise :class:`~scrapy_focus.core.errors.ConfigError` for a ``FOCUS_*`` setting that does not exist."""
    for name in settings:
        if isinstance(name, str) and name.startswith("FOCUS_") and name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.5)
            meant = f"did you mean {near[0]}? " if near else ""
            raise ConfigError(f"there is no setting {printable(name)}; {meant}All: {', '.join(SETTINGS)}")


def item_id_field(settings: BaseSettings) -> str:
    """Return the name of the field for the ids of items, ``""`` for none.

    Raises
    ------
    ConfigError
        If it cannot be the name of a field.
    """
    value = _given(settings, "FOCUS_ITEM_ID")
    if value is None:
        return ""
    if not (isinstance(value, str) and value.isidentifier()):
        raise ConfigError(
            f"FOCUS_ITEM_ID is {brief(value)}; it takes the name of a field of your items, such as 'item_id'"
        )
    return value


def _why(error: BaseException) -> str:
    """Return what an error says, without the path that the message names already."""
    return (isinstance(error, OSError) and error.strerror) or reason_of(error)


def obeyed(settings: BaseSettings) -> frozenset[str]:
    """Return which wishes of sites are obeyed (``FOCUS_OBEY``).

    Raises
    ------
    ConfigError
        If there is no such wish.
    """
    given = _list(settings, "FOCUS_OBEY", ["retry-after"], "what sites may ask for")
    words = frozenset(word.strip().lower() for word in given)
    if unknown := words - WISHES - {""}:
        raise ConfigError(f"FOCUS_OBEY has {brief(min(unknown))}; it takes any of {', '.join(sorted(WISHES))}")
    return words - {""}


def longest_wait(settings: BaseSettings) -> float:
    """Return for how many seconds a host is put off at most (``FOCUS_LONGEST_WAIT``)."""
    wait = seconds_in(settings, "FOCUS_LONGEST_WAIT")
    return 300.0 if wait is None else wait


def max_inflation(settings: BaseSettings) -> float:
    """Return how many times its size a compressed body may have (``FOCUS_MAX_INFLATION``), 0 for any."""
    return float(_number(settings, "FOCUS_MAX_INFLATION", float) or 0.0)


def render_mode(settings: BaseSettings) -> Render:
    """Return which pages a browser fetches (``FOCUS_RENDER``).

    Raises
    ------
    ConfigError
        If it is no such word.
    """
    given = _given(settings, "FOCUS_RENDER")
    mode: Render = "learn" if given is None else given
    if not isinstance(mode, str) or mode not in get_args(Render):
        raise ConfigError(f"FOCUS_RENDER is {brief(mode)}; it takes 'never', 'learn' or 'always'")
    return mode


def _render_cost(settings: BaseSettings) -> float:
    cost = _number(settings, "FOCUS_RENDER_COST", float)
    return RENDER_COST if cost is None else float(cost)


def _targets(settings: BaseSettings) -> FilesGoal | None:
    """Return the goal that ``FOCUS_TARGETS`` names, if it names any types."""
    name = "FOCUS_TARGETS"
    given = settings.get(name)
    words = split_words(given) if isinstance(given, str) and given else _list(settings, name, [], "file types")
    try:
        return FilesGoal(types=words) if words else None
    except ConfigError as error:
        raise ConfigError(f"{name}: {reason_of(error, _LONGEST)}") from error


def _types(settings: BaseSettings, name: str, default: list[str]) -> frozenset[str]:
    try:
        return parse_types(_list(settings, name, default, "file types"))
    except ConfigError as error:
        raise error if str(error).startswith(name) else ConfigError(f"{name}: {reason_of(error, _LONGEST)}") from error


def _given(settings: BaseSettings, name: str) -> Any:
    """Return the value of a setting, ``None`` where it is empty or turned off."""
    value = settings.get(name)
    try:
        return value or None
    except Exception:  # it cannot say whether it is empty
        return value


def _list(settings: BaseSettings, name: str, default: Sequence[str], what: str) -> Sequence[str]:
    """Return texts that are given in a list, or separated by commas."""
    value = settings.get(name)
    if value is None:
        return default
    if isinstance(value, str):
        return value.split(",") if value else []
    if not isinstance(value, (list, tuple, set, frozenset)) or not all(isinstance(each, str) for each in value):
        raise ConfigError(f"{name} is {brief(value)}; it takes {what}, in a list, or separated by commas")
    return list(value)


def _flag(settings: BaseSettings, name: str) -> bool:
    try:
        return settings.getbool(name)
    except Exception as error:
        raise ConfigError(f"{name} is {brief(settings.get(name))}; it takes True or False") from error


def _path(settings: BaseSettings, name: str) -> str:
    """Return the path of a file, ``""`` for none."""
    value = _given(settings, name)
    if value is None:
        return ""
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    try:
        if isinstance(path, str) and "\0" not in path and len(os.fsencode(path)) <= _LONGEST_PATH:
            return path
    except UnicodeEncodeError:
        pass
    raise ConfigError(f"{name} is {brief(value)}; it takes the path of a file")


def _resources(settings: BaseSettings, name: str, default: list[str]) -> frozenset[str]:
    kinds = frozenset(_list(settings, name, default, "types of resource, such as 'stylesheet',"))
    if unknown := kinds - RESOURCES:
        raise ConfigError(f"{name} has {brief(min(unknown))}; it takes any of {', '.join(sorted(RESOURCES))}")
    return kinds


def _params(settings: BaseSettings) -> dict[str, Any]:
    try:
        return dict(settings.getdict("FOCUS_POLICY_PARAMS"))
    except Exception as error:  # of the reader of JSON, or of an object that is none
        given = settings.get("FOCUS_POLICY_PARAMS")
        raise ConfigError(
            f"FOCUS_POLICY_PARAMS is {brief(given)}; it takes a dict, on the command line as JSON ({reason_of(error)})"
        ) from error


def _policy_class(value: Any) -> type[Policy]:
    try:
        policy = load_object(value)
    except Exception as error:  # whatever a module does when it is imported
        raise ConfigError(f"FOCUS_POLICY is {brief(value)}, which cannot be imported: {reason_of(error)}") from error
    if not (isinstance(policy, type) and issubclass(policy, Policy)):
        raise ConfigError(
            f"FOCUS_POLICY is {brief(value)}; it takes a subclass of scrapy_focus.Policy, or its import path"
        )
    return policy


def policy_for_topics() -> type[Policy]:
    """Return the policy that decides where a goal has a topic; other crawls do not import it."""
    from scrapy_focus.policies.treeq.policy import TreeQ

    return TreeQ


def _policy_for(goal: Goal, settings: BaseSettings, default: type[Policy]) -> type[Policy]:
    """Return the policy that is named, else that of the scheduler.

    Where the goal has a topic and the default policy of all crawls would decide, which reads none, it is TreeQ. Where
    another one decides that reads none, or settings ask for what TreeQ has not, there is a warning.
    """
    named = _given(settings, "FOCUS_POLICY")
    policy = _policy_class(default if named is None else named)
    if getattr(goal, "relevance", None) is None or policy.reads_topic:
        return policy
    why = f"{policy.__qualname__} is set"
    if named is None and policy is BranchingBandit:
        if not (why := _needs_default(settings)):
            logger.info(
                "the goal has a topic, so TreeQ decides, which reads the words of links; to keep the policy that "
                "learns from rewards alone, set FOCUS_POLICY = %r", import_path(BranchingBandit),
            )  # fmt: skip
            return policy_for_topics()
    elif named is None:
        why = f"{policy.__qualname__} is the policy of the scheduler"
    logger.warning(
        "the goal has a topic, but %s, and %s does not read it: links whose words fit the topic wait among all others. "
        "SCHEDULER = 'scrapy_focus.TreeFrontierScheduler', without FOCUS_POLICY, finds more", why, policy.__qualname__,
    )  # fmt: skip
    return policy


def _needs_default(settings: BaseSettings) -> str:
    """Return which setting only the default policy follows, ``""`` if none is given."""
    tree = policy_for_topics()
    try:
        inspect.signature(tree).bind(**_params(settings))
    except TypeError:
        return "FOCUS_POLICY_PARAMS are those of another policy"
    if _flag(settings, "FOCUS_REQUEST_PRIORITY"):
        return "FOCUS_REQUEST_PRIORITY is on"
    try:
        _check_can(tree, settings)
    except ConfigError as error:
        return f"{str(error).partition(' ')[0]} is set"
    return ""


def _check_can(policy: type[Policy], settings: BaseSettings) -> None:
    """Raise :class:`~scrapy_focus.core.errors.ConfigError` for a setting that the policy cannot follow."""
    needs: dict[str, tuple[Ability, bool]] = {
        "FOCUS_COST_LIMIT": ("expected_cost", _cost_limit(settings) is not None),
        "FOCUS_LEARNED_FROM": ("load", bool(_path(settings, "FOCUS_LEARNED_FROM"))),
        "FOCUS_LEARNED_TO": ("save", bool(_path(settings, "FOCUS_LEARNED_TO"))),
    }
    for name, (ability, is_set) in needs.items():
        if is_set and not policy.can(ability):
            raise ConfigError(
                f"{name} is {brief(settings.get(name))}, for which {policy.__qualname__} lacks {ability}(); use "
                "the default policy of scrapy_focus.FocusScheduler, or remove it"
            )


def _request_priority(settings: BaseSettings, policy: type[Policy]) -> bool:
    chosen = _flag(settings, "FOCUS_REQUEST_PRIORITY")
    if chosen and policy.counts_hosts:
        raise ConfigError(
            f"FOCUS_REQUEST_PRIORITY is on, and {policy.__qualname__} counts pages by host, which priorities part; "
            "choose another policy, or remove the setting"
        )
    return chosen


def _stop(settings: BaseSettings) -> StopRule | None:
    rules = {
        "FOCUS_STOP": _stop_rule(_given(settings, "FOCUS_STOP")),
        "FOCUS_COST_LIMIT": _cost_limit(settings),
        "FOCUS_PLATEAU": _plateau(settings.get("FOCUS_PLATEAU")),
    }
    made = {name: rule for name, rule in rules.items() if rule is not None}
    if len(made) > 1:
        raise ConfigError(f"{' and '.join(made)} each say when to stop; set one of them")
    return next(iter(made.values()), None)


def _stop_rule(value: Any) -> StopRule | None:
    if value is None:
        return None
    rule = _made("FOCUS_STOP", value)
    if missing := missing_of_stop(rule):
        raise ConfigError(
            f"FOCUS_STOP is {brief(value)}, which lacks {', '.join(missing)}; it takes a stop rule such as "
            "scrapy_focus.Plateau, or its import path"
        )
    return rule  # type: ignore[no-any-return]


def _cost_limit(settings: BaseSettings) -> CostLimit | None:
    limit = _number(settings, "FOCUS_COST_LIMIT", float) or None
    if limit is None:
        return None
    rule = CostLimit(limit)
    if _path(settings, "FOCUS_LEARNED_FROM"):  # what finds cost is known from an earlier crawl
        rule.first = rule.patience
    return rule


def _made(name: str, value: Any) -> Any:
    """Return the object that a setting is, or is the import path of, or of whose class it is."""
    try:
        made = load_object(value) if isinstance(value, (str, type)) else value
        return made() if isinstance(made, type) else made
    except Exception as error:
        raise ConfigError(f"{name} is {brief(value)}, which cannot be made: {reason_of(error)}") from error


def _topic(settings: BaseSettings) -> Any:
    """Return what ``FOCUS_TOPIC`` is set to, ``None`` where it is not; on the command line, a dict is JSON."""
    value = _given(settings, "FOCUS_TOPIC")
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"FOCUS_TOPIC is {brief(value)}, which is no JSON: {reason_of(error)}") from error


def _words_of(topic: Any) -> list[str]:
    """Return the keywords of a topic that is given as a dict."""
    words = topic.get("keywords", ()) if isinstance(topic, Mapping) else ()
    return [*words] if isinstance(words, (list, tuple)) else []


def _structured(settings: BaseSettings) -> StructuredDataGoal | None:
    """Return the goal that ``FOCUS_STRUCTURED`` names, ``None`` where it is not set, or turned off."""
    name = "FOCUS_STRUCTURED"
    given = settings.get(name)
    if given is None or given is False or (isinstance(given, str) and not given):
        return None
    return StructuredDataGoal.of(_list(settings, name, [], "types of schema.org, or '*' for any,"), name)


def _goal(value: Any, targets: FilesGoal | None, topic: Any, structured: StructuredDataGoal | None) -> Goal:
    if structured is not None:
        others = {"FOCUS_GOAL": value, "FOCUS_TARGETS": targets, "FOCUS_TOPIC": topic}
        if named := [name for name, other in others.items() if other is not None]:
            raise ConfigError(f"FOCUS_STRUCTURED and {named[0]} both say what to look for; set one of them")
        return structured
    if topic is not None and (value is not None or targets):
        raise ConfigError("FOCUS_TOPIC, FOCUS_GOAL and FOCUS_TARGETS all say what to look for; set one of them")
    if topic is not None:
        try:
            return TopicGoal(topic)
        except Exception as error:  # whatever a model of a user does
            raise ConfigError(f"FOCUS_TOPIC: {reason_of(error, _LONGEST)}") from error
    if value is None:
        return targets or ItemsGoal()
    goal = _made("FOCUS_GOAL", value)
    if not callable(goal):
        raise ConfigError(
            f"FOCUS_GOAL is {brief(value)}; it takes a callable from an Outcome to a number, or its import path"
        )
    if targets:
        raise ConfigError("FOCUS_GOAL and FOCUS_TARGETS both say what to look for; set one of them")
    return goal  # type: ignore[no-any-return]


_NOT_SHARED = ("FOCUS_FRONTIER", "FOCUS_KILL_SAFE_FETCH", "FOCUS_MOST_OUT", "FOCUS_REQUEST_PRIORITY")


def _cluster(settings: BaseSettings, goal: Goal) -> str:
    """Return where the cluster is in which the crawl runs, ``""`` for a crawl of this process alone."""
    value = _given(settings, "FOCUS_CLUSTER")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConfigError(
            f"FOCUS_CLUSTER is {brief(value)}; it takes 'auto' for the cluster of this machine, or an address like "
            "'head.example:6379'"
        )
    if not settings.get("JOBDIR"):
        raise ConfigError(
            f"FOCUS_CLUSTER is {brief(value)}, and JOBDIR is not set: the leader of the crawl needs a folder on its "
            "machine, in which the crawl survives kills"
        )
    if learning(getattr(goal, "relevance", None)) is not None:
        raise ConfigError(
            f"FOCUS_CLUSTER is {brief(value)}, with which a topic that learns from the pages does not work yet: each "
            "machine would learn for itself; train a model with scrapy focus-train, and set FOCUS_TOPIC to its file"
        )
    if others := [name for name in _NOT_SHARED if _given(settings, name) not in (None, "0", "False", "false")]:
        raise ConfigError(
            f"FOCUS_CLUSTER is {brief(value)}, with which {others[0]} does not work yet; remove one of them"
        )
    return value


def _name(settings: BaseSettings, name: str) -> str:
    value = _given(settings, name)
    if value is None:
        return ""
    if not (isinstance(value, str) and len(value) <= _LONGEST and printable(value) == value):
        raise ConfigError(f"{name} is {brief(value)}; it takes a name, such as 'datasets-2026'")
    return value


def _frontier(settings: BaseSettings) -> MakeFrontier | None:
    value = _given(settings, "FOCUS_FRONTIER")
    if value is None:
        return None
    if settings.get("JOBDIR"):
        raise ConfigError(
            f"FOCUS_FRONTIER is {brief(value)}, and JOBDIR is set, which brings a frontier of its own; remove one of "
            "them"
        )
    try:
        make = load_object(value)
    except Exception as error:  # whatever a module does when it is imported
        raise ConfigError(f"FOCUS_FRONTIER is {brief(value)}, which cannot be imported: {reason_of(error)}") from error
    if not callable(make):
        raise ConfigError(
            f"FOCUS_FRONTIER is {brief(value)}; it takes what makes a frontier of what a policy keeps, such as "
            "scrapy_focus.memory_frontier, or its import path"
        )
    return make  # type: ignore[no-any-return]


def _features(settings: BaseSettings) -> tuple[Callable[[Any], Any], ...]:
    """Return what makes the features of a project, each called with the live crawl."""
    value = _given(settings, "FOCUS_FEATURES")
    named = value.split(",") if isinstance(value, str) else (value or ())
    if not isinstance(named, list | tuple):
        raise ConfigError(f"FOCUS_FEATURES is {brief(value)}; it takes a list of features, or of their import paths")
    features = []
    for each in named:
        try:
            make = load_object(each.strip() if isinstance(each, str) else each)
        except Exception as error:  # whatever a module does when it is imported
            raise ConfigError(
                f"FOCUS_FEATURES has {brief(each)}, which cannot be imported: {reason_of(error)}"
            ) from error
        if not callable(make):
            raise ConfigError(
                f"FOCUS_FEATURES has {brief(each)}; it takes subclasses of scrapy_focus.Feature, or functions that "
                "return a feature or None, or their import paths"
            )
        features.append(make)
    return tuple(features)


def _plateau(value: Any) -> Plateau | None:
    plain = isinstance(value, (str, int, NoneType))
    if plain and value in (None, False, "", "0", "False", "false"):
        return None
    params = {} if plain and value in (True, "1", "True", "true") else value
    try:
        params = json.loads(params) if isinstance(params, str) else params
        return Plateau(**params)
    except Exception as error:  # of the reader of JSON, of an object that is no dict, of Plateau
        said = f" ({reason_of(error)})" if isinstance(error, ConfigError) else ""
        raise ConfigError(
            f"FOCUS_PLATEAU is {brief(value)}; it takes True, or a dict with some of window, slope, decay, "
            f"patience{said}"
        ) from error


def _limit(settings: BaseSettings, name: str, default: int) -> int:
    limit = _number(settings, name, int)
    return default if limit is None else int(limit)


def _most_waiting(settings: BaseSettings) -> int | None:
    """Return how many links may wait (``FOCUS_MOST_WAITING``), ``None`` for any number."""
    name = "FOCUS_MOST_WAITING"
    most = int(_number(settings, name, int) or 0)
    if not most:
        return None
    own = int(_number(settings, "FOCUS_MAX_INFLIGHT", int) or 0)
    of_flight = "FOCUS_MAX_INFLIGHT" if own else "CONCURRENT_REQUESTS"
    in_flight = own or int(_number(settings, "CONCURRENT_REQUESTS", int) or 0)
    if most < in_flight:
        raise ConfigError(
            f"{name} is {most}, fewer links than the {in_flight} that may be in flight ({of_flight}); give at least "
            f"{in_flight}, or 0 for any number"
        )
    return most


def _paths(settings: BaseSettings, name: str) -> tuple[str, ...]:
    """Return the import paths in a setting; whether they lead anywhere shows when something is stored."""
    found = [path.strip() for path in _list(settings, name, (), "import paths")]
    if unfit := [path for path in found if not all(part.isidentifier() for part in path.split("."))]:
        raise ConfigError(
            f"{name} has {brief(unfit[0])}; it takes a list of import paths, such as ['somelibrary.models.Model']"
        )
    return tuple(found)


def _rate(settings: BaseSettings, name: str) -> Rate | None:
    value = settings.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return Rate.of(value, name)


def seconds_in(settings: BaseSettings, name: str, *, least: float = 0) -> float | None:
    """Return the seconds in a setting: a number, or a time such as ``"24h"``; ``None`` where it is not set.

    Raises
    ------
    ConfigError
        If it is no time, or shorter than `least` seconds.
    """
    value = settings.get(name)
    has_unit = isinstance(value, str) and value.strip()[-1:].isalpha()
    seconds = Duration.of(value, name, bare="second").seconds if has_unit else least
    return _number(settings, name, float, least) if seconds <= least else seconds


def _number(settings: BaseSettings, name: str, kind: type, least: float = 0) -> Any:
    value = settings.get(name)
    if value is None or (isinstance(value, str) and not value):
        return None
    try:
        number = kind(value)
    except Exception:  # whatever an object does
        number = None
    if number is None or not least <= number <= _MOST:
        raise ConfigError(
            f"{name} is {brief(value)}; it takes {'a whole number' if kind is int else 'a number'} from {least}"
        )
    return number
