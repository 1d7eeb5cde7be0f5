"""Every setting of scrapy_focus, read and checked once."""

from __future__ import annotations

import difflib
import inspect
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from scrapy.utils.misc import load_object

from scrapy_focus.core.budget import Budget
from scrapy_focus.core.contract import missing_of_stop
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.goal import ItemsGoal
from scrapy_focus.core.mission import Mission
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.stop import CostLimit, Plateau
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.web.mime import BLOCKED_MIMES, parse_types

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from scrapy_focus.core.frontier import MakeFrontier
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.mission import Unit
    from scrapy_focus.core.policy import Ability
    from scrapy_focus.core.stop import StopRule

Progress = Literal["auto", "panel", "log", "off"]


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
    stop: StopRule | None = None
    learned_from: str = ""
    learned_to: str = ""
    max_inflight: int = 0
    max_inflight_per_slot: int = 0
    seed: int | None = None
    log: str = ""
    checkpoint_every: int = 1000
    blocked_mimes: frozenset[str] = frozenset(BLOCKED_MIMES)
    progress: Progress = "auto"
    item_id: str = ""
    keywords: tuple[str, ...] = ()
    explain: bool = False
    stored_classes: tuple[str, ...] = ()

    @classmethod
    def from_settings(cls, settings: BaseSettings, default_policy: type[Policy]) -> Config:
        """Read all settings.

        Raises
        ------
        ConfigError
            If a setting is unknown, or has a value that cannot be used.
        """
        check_names(settings)
        types = _types(settings, "FOCUS_TARGETS", [])
        progress = settings.get("FOCUS_PROGRESS", "auto")
        if progress not in ("auto", "panel", "log", "off"):
            raise ConfigError(f"FOCUS_PROGRESS is {progress!r}; it takes 'auto', 'panel', 'log' or 'off'")
        seed = _number(settings, "FOCUS_SEED", int, least=0)
        goal = _goal(settings.get("FOCUS_GOAL"), types, settings.get("FOCUS_TOPIC") or None)
        policy = _policy_class(settings.get("FOCUS_POLICY") or default_policy)
        _check_can(policy, settings)
        return cls(
            policy=policy,
            params=_params(settings),
            goal=goal,
            frontier=_frontier(settings),
            budget_requests=_number(settings, "FOCUS_BUDGET_REQUESTS", int) or None,
            budget_bytes=_number(settings, "FOCUS_BUDGET_BYTES", int) or None,
            budget_seconds=_number(settings, "FOCUS_BUDGET_SECONDS", float) or None,
            stop=_stop(settings),
            learned_from=str(settings.get("FOCUS_LEARNED_FROM") or ""),
            learned_to=str(settings.get("FOCUS_LEARNED_TO") or ""),
            max_inflight=_number(settings, "FOCUS_MAX_INFLIGHT", int) or 0,
            max_inflight_per_slot=_number(settings, "FOCUS_MAX_INFLIGHT_PER_SLOT", int) or 0,
            seed=seed,
            log=settings.get("FOCUS_LOG") or "",
            checkpoint_every=_number(settings, "FOCUS_CHECKPOINT_EVERY", int, least=1) or 1000,
            blocked_mimes=_types(settings, "FOCUS_BLOCKED_MIMES", list(BLOCKED_MIMES)),
            progress=progress,
            item_id=item_id_field(settings),
            keywords=tuple(settings.getlist("FOCUS_KEYWORDS")),
            explain=settings.getbool("FOCUS_EXPLAIN"),
            stored_classes=_paths(settings, "FOCUS_STORED_CLASSES"),
        )

    def make_policy(self) -> Policy:
        """Return the policy with its parameters.

        Raises
        ------
        ConfigError
            If the policy does not take the parameters, or cannot decide in a live crawl.
        """
        signature = inspect.signature(self.policy)
        try:
            signature.bind(**self.params)
        except TypeError as error:
            raise ConfigError(
                f"FOCUS_POLICY_PARAMS is {self.params!r}, which {self.policy.__qualname__} does not take: {error}; it "
                f"takes {', '.join(signature.parameters) or 'none'}"
            ) from error
        policy = self.policy(**self.params)
        if policy.needs_truth:
            raise ConfigError(
                f"FOCUS_POLICY is {self.policy.__qualname__}, which is given the truth about a site beforehand: it can "
                "only be tried on recorded ones, with scrapy focus-compare"
            )
        return policy

    def make_budget(self) -> Budget:
        """Return the budget, with nothing used."""
        return Budget(requests=self.budget_requests, bytes=self.budget_bytes, seconds=self.budget_seconds)

    def mission(self) -> Mission:
        """Return what is looked for, as every policy is given it.

        What is to be saved is what there is a budget of, if that is one thing and not requests.
        """
        units: dict[Unit, float | None] = {"bytes": self.budget_bytes, "seconds": self.budget_seconds}
        limited = [unit for unit, limit in units.items() if limit is not None]
        unit = limited[0] if len(limited) == 1 and self.budget_requests is None else "requests"
        return Mission.of(self.goal, words=self.keywords, unit=unit)


SETTINGS = (
    "FOCUS_BLOCKED_MIMES",
    "FOCUS_BUDGET_BYTES",
    "FOCUS_BUDGET_REQUESTS",
    "FOCUS_BUDGET_SECONDS",
    "FOCUS_CHECKPOINT_EVERY",
    "FOCUS_COST_LIMIT",
    "FOCUS_EXPLAIN",
    "FOCUS_FRONTIER",
    "FOCUS_GOAL",
    "FOCUS_ITEM_ID",
    "FOCUS_KEYWORDS",
    "FOCUS_LEARNED_FROM",
    "FOCUS_LEARNED_TO",
    "FOCUS_LOG",
    "FOCUS_MAX_INFLIGHT",
    "FOCUS_MAX_INFLIGHT_PER_SLOT",
    "FOCUS_PLATEAU",
    "FOCUS_POLICY",
    "FOCUS_POLICY_PARAMS",
    "FOCUS_PROGRESS",
    "FOCUS_SEED",
    "FOCUS_STOP",
    "FOCUS_STORED_CLASSES",
    "FOCUS_TARGETS",
    "FOCUS_TOPIC",
)


def check_names(settings: BaseSettings) -> None:
    """Raise :class:`~scrapy_focus.core.errors.ConfigError` for a ``FOCUS_*`` setting that does not exist."""
    for name in settings:
        if isinstance(name, str) and name.startswith("FOCUS_") and name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.5)
            meant = f"did you mean {near[0]}? " if near else ""
            raise ConfigError(f"there is no setting {name}; {meant}All: {', '.join(SETTINGS)}")


def item_id_field(settings: BaseSettings) -> str:
    """Return the name of the field for the ids of items, ``""`` for none.

    Raises
    ------
    ConfigError
        If it cannot be the name of a field.
    """
    value = settings.get("FOCUS_ITEM_ID") or ""
    if value and not (isinstance(value, str) and value.isidentifier()):
        raise ConfigError(f"FOCUS_ITEM_ID is {value!r}; it takes the name of a field of your items, such as 'item_id'")
    return str(value)


def _types(settings: BaseSettings, name: str, default: list[str]) -> frozenset[str]:
    try:
        return parse_types(settings.getlist(name, default))
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error


def _params(settings: BaseSettings) -> dict[str, Any]:
    try:
        return dict(settings.getdict("FOCUS_POLICY_PARAMS"))
    except (TypeError, ValueError) as error:
        given = settings.get("FOCUS_POLICY_PARAMS")
        raise ConfigError(
            f"FOCUS_POLICY_PARAMS is {given!r}; it takes a dict, on the command line as JSON ({error})"
        ) from error


def _policy_class(value: Any) -> type[Policy]:
    try:
        policy = load_object(value)
    except (ImportError, NameError, ValueError, TypeError) as error:
        raise ConfigError(f"FOCUS_POLICY is {value!r}, which cannot be imported: {error}") from error
    if not (isinstance(policy, type) and issubclass(policy, Policy)):
        raise ConfigError(f"FOCUS_POLICY is {value!r}; it takes a subclass of scrapy_focus.Policy, or its import path")
    return policy


def _check_can(policy: type[Policy], settings: BaseSettings) -> None:
    """Raise :class:`~scrapy_focus.core.errors.ConfigError` for a setting that the policy cannot follow."""
    needs: dict[str, tuple[Ability, bool]] = {
        "FOCUS_COST_LIMIT": ("expected_cost", _cost_limit(settings) is not None),
        "FOCUS_LEARNED_FROM": ("load", bool(settings.get("FOCUS_LEARNED_FROM"))),
        "FOCUS_LEARNED_TO": ("save", bool(settings.get("FOCUS_LEARNED_TO"))),
    }
    for name, (ability, is_set) in needs.items():
        if is_set and not policy.can(ability):
            raise ConfigError(
                f"{name} is {settings.get(name)!r}, for which {policy.__qualname__} lacks {ability}(); use the default "
                "policy of scrapy_focus.FocusScheduler, or remove it"
            )


def _stop(settings: BaseSettings) -> StopRule | None:
    rules = {
        "FOCUS_STOP": _stop_rule(settings.get("FOCUS_STOP")),
        "FOCUS_COST_LIMIT": _cost_limit(settings),
        "FOCUS_PLATEAU": _plateau(settings.get("FOCUS_PLATEAU")),
    }
    made = {name: rule for name, rule in rules.items() if rule is not None}
    if len(made) > 1:
        raise ConfigError(f"{' and '.join(made)} each say when to stop; set one of them")
    return next(iter(made.values()), None)


def _stop_rule(value: Any) -> StopRule | None:
    if not value:
        return None
    rule = _made("FOCUS_STOP", value)
    if missing := missing_of_stop(rule):
        raise ConfigError(
            f"FOCUS_STOP is {value!r}, which lacks {', '.join(missing)}; it takes a stop rule such as "
            "scrapy_focus.Plateau, or its import path"
        )
    return rule  # type: ignore[no-any-return]


def _cost_limit(settings: BaseSettings) -> CostLimit | None:
    limit = _number(settings, "FOCUS_COST_LIMIT", float) or None
    return None if limit is None else CostLimit(limit)


def _made(name: str, value: Any) -> Any:
    """Return the object that a setting is, or is the import path of, or of whose class it is."""
    try:
        made = load_object(value) if isinstance(value, (str, type)) else value
        return made() if isinstance(made, type) else made
    except Exception as error:
        raise ConfigError(f"{name} is {value!r}, which cannot be made: {error}") from error


def _goal(value: Any, types: frozenset[str], topic: Any) -> Goal:
    if topic and (value or types):
        raise ConfigError("FOCUS_TOPIC, FOCUS_GOAL and FOCUS_TARGETS all say what to look for; set one of them")
    if topic:
        try:
            return TopicGoal(topic)
        except ConfigError as error:
            raise ConfigError(f"FOCUS_TOPIC: {error}") from error
    if not value:
        return FilesGoal(types=types) if types else ItemsGoal()
    goal = _made("FOCUS_GOAL", value)
    if not callable(goal):
        raise ConfigError(
            f"FOCUS_GOAL is {value!r}; it takes a callable from an Outcome to a number, or its import path"
        )
    if types:
        raise ConfigError("FOCUS_GOAL and FOCUS_TARGETS both say what to look for; set one of them")
    return goal  # type: ignore[no-any-return]


def _frontier(settings: BaseSettings) -> MakeFrontier | None:
    value = settings.get("FOCUS_FRONTIER")
    if not value:
        return None
    if settings.get("JOBDIR"):
        raise ConfigError(
            f"FOCUS_FRONTIER is {value!r}, and JOBDIR is set, which brings a frontier of its own; remove one of them"
        )
    try:
        make = load_object(value)
    except (ImportError, NameError, ValueError, TypeError) as error:
        raise ConfigError(f"FOCUS_FRONTIER is {value!r}, which cannot be imported: {error}") from error
    if not callable(make):
        raise ConfigError(
            f"FOCUS_FRONTIER is {value!r}; it takes what makes a frontier of what a policy keeps, such as "
            "scrapy_focus.memory_frontier, or its import path"
        )
    return make  # type: ignore[no-any-return]


def _plateau(value: Any) -> Plateau | None:
    if value in (None, False, "", "0", "False", "false"):
        return None
    params = {} if value in (True, "1", "True", "true") else value
    try:
        params = json.loads(params) if isinstance(params, str) else params
        return Plateau(**params)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"FOCUS_PLATEAU is {value!r}; it takes True, or a dict with some of window, slope, decay, patience"
        ) from error


def _paths(settings: BaseSettings, name: str) -> tuple[str, ...]:
    """Return the import paths in a setting; whether they lead anywhere shows when something is stored."""
    value = settings.get(name) or []
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, (list, tuple, set, frozenset)) or not all(
        isinstance(path, str) and all(part.isidentifier() for part in path.strip().split(".")) for path in found
    ):
        raise ConfigError(
            f"{name} is {value!r:.200}; it takes a list of import paths, such as ['somelibrary.models.Model']"
        )
    return tuple(path.strip() for path in found)


def _number(settings: BaseSettings, name: str, kind: type, least: float = 0) -> Any:
    value = settings.get(name)
    if value is None or value == "":
        return None
    try:
        number = kind(value)
    except (TypeError, ValueError):
        number = None
    if number is None or number < least:
        raise ConfigError(
            f"{name} is {value!r}; it takes {'a whole number' if kind is int else 'a number'} from {least}"
        )
    return number
