"""How to repeat a comparison: the command, and the versions that its numbers depend on."""

from __future__ import annotations

import platform
import shlex
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, NamedTuple

import scrapy_focus
from scrapy_focus.core.policy import import_path
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.goals.structured import ANY, StructuredDataGoal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.lab.compare.comparison import Comparison
    from scrapy_focus.lab.replay.importance import Measure

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "scrapy")


class Repeat(NamedTuple):
    """How to repeat a comparison."""

    made: datetime
    command: str
    versions: dict[str, str]
    unnamed: Sequence[str] = ()  # policies without an import path, which the command cannot find


def repeat_of(comparison: Comparison, metric: str) -> Repeat:
    """Return how to repeat a comparison, as of now."""
    unnamed = [spec.label for spec in comparison.policies if spec.factory is not None]
    command = command_of(comparison, metric)
    return Repeat(made=datetime.now(UTC), command=command, versions=versions(), unnamed=unnamed)


def command_of(comparison: Comparison, metric: str) -> str:
    """Return the command that makes the same comparison, from the same folder."""
    conditions = comparison.conditions
    options = {
        "--seeds": _seeds(comparison.seeds),
        **_goal_options(conditions.goal),
        "--words": ",".join(conditions.words) or None,
        "--budget": conditions.budget,
        "--concurrency": conditions.concurrency if conditions.concurrency > 1 else None,
        "--latency": conditions.latency or None,
        **_importance_options(conditions.importance),
        "--baseline": comparison.baseline,
        "--metric": metric,
    }
    words = ["focus", "compare"]
    words += [str(facts.path) if facts else name for name, facts in comparison.sites.items()]
    for policy in comparison.policies:
        words += ["--policy", str(policy)]
    words += _in_words(options)
    if conditions.ignored is not None and not conditions.ignored:
        words.append("--ignore-nothing")
    return shlex.join(words)


def _in_words(options: Mapping[str, object]) -> Iterator[str]:
    """Yield options with their values, except those that are ``None``."""
    for option, value in options.items():
        if value is not None:
            yield option
            yield str(value)


def _goal_options(goal: Goal) -> dict[str, str | None]:
    """Return the option for a goal."""
    if isinstance(goal, FilesGoal):
        return {"--targets": str(goal.wanted).replace(", ", ",")}
    if type(goal) is StructuredDataGoal:
        return {"--structured": ",".join(goal.given) or ANY}
    return {"--goal": goal_path(goal)}


def _importance_options(measure: Measure | None) -> dict[str, str]:
    if measure is None:
        return {}
    return {"--importance": str(measure.by), "--hot": str(measure.hot)}


def goal_path(goal: object) -> str:
    """Return the import path of a goal, or of its class."""
    return import_path(goal if hasattr(goal, "__qualname__") else type(goal))


def versions() -> dict[str, str]:
    """Return the versions that the numbers depend on."""
    found = {"scrapy_focus": scrapy_focus.__version__, "Python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found | {"platform": platform.platform(terse=True)}


def _seeds(seeds: Sequence[int]) -> str:
    """Return the number of seeds if they count from 0, and the seeds themselves otherwise."""
    if list(seeds) == list(range(len(seeds))):
        return str(len(seeds))
    return ",".join(map(str, seeds)) + ("," if len(seeds) == 1 else "")
