"""Describes what has to be unchanged for a stored crawl to resume."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.policy import import_path

if TYPE_CHECKING:
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.policy import Policy

_FIRST = ("spider", "policy", "goal")


def describe(policy: Policy, goal: Goal, mission: Mission, name: str = "") -> dict[str, Any]:
    """Return the values that must not change until a resume, as text.

    These are the spider (``name``), the goal, the mission, the import path of the policy, and its parameters.
    """
    spider = {"spider": name} if name else {}
    mission_ = {f"mission: {field}": value for field, value in mission.describe().items() if value}
    params = {_key(name): text_of(getattr(policy, name)) for name in _defaults(policy)}
    return {**spider, "policy": import_path(type(policy)), "goal": text_of(goal), **mission_, **params}


def default_parameters(policy: Policy) -> set[str]:
    """Return the names, as in a description, of the parameters that have their default values."""
    return {
        _key(name) for name, default in _defaults(policy).items() if text_of(getattr(policy, name)) == text_of(default)
    }


def _key(name: str) -> str:
    """Return the name of a parameter in a description."""
    return f"policy: {name}" if name in _FIRST else name


def _defaults(policy: Policy) -> dict[str, Any]:
    """Return the default of each parameter that a policy has as an attribute."""
    # a constructor that passes unknown arguments on has the parameters of its bases, too
    defaults: dict[str, Any] = {}
    for base in type(policy).__mro__[:-1]:
        for name, parameter in inspect.signature(base).parameters.items():
            defaults.setdefault(name, parameter.default)
    return {name: default for name, default in defaults.items() if hasattr(policy, name)}


def text_of(value: object) -> str:
    """Return the repr of a value, the same in every process: sets sorted, no addresses."""
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(text_of, value)))}}}"
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))


def differences(then: dict[str, Any], now: dict[str, Any]) -> str:
    """Describe the differences of two descriptions, ``""`` for none."""
    names = [name for name in {**now, **then} if then.get(name) != now.get(name)]
    if "spider" in names and ("spider" not in now or "spider" not in then):
        names.remove("spider")  # there is no spider if the job is opened by hand
    names = [name for name in names if name in _FIRST] or names  # the others follow from these
    return ", ".join(f"{name} was {then.get(name)} and is {now.get(name)}" for name in names)
