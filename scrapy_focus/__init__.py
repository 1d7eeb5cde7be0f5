"""A learning frontier for Scrapy: find data files, topics and fresh pages with a fraction of the requests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_focus.addon import Addon
    from scrapy_focus.checks.drawn import check_drawn
    from scrapy_focus.checks.policy import check_policy
    from scrapy_focus.checks.ranked import check_ranked
    from scrapy_focus.core.budget import Budget
    from scrapy_focus.core.crawl import Crawl
    from scrapy_focus.core.errors import (
        ConfigError,
        FocusError,
        FrontierError,
        GoalError,
        PolicyError,
        RecordingError,
        ResumeError,
        StorageError,
    )
    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.log import EventLog
    from scrapy_focus.core.policy import Left, Policy
    from scrapy_focus.core.stop import CostLimit, Plateau
    from scrapy_focus.core.types import Link, Outcome, Page, Pick, Placement, State
    from scrapy_focus.frontiers.memory import memory_frontier
    from scrapy_focus.goals.files import FilesGoal
    from scrapy_focus.goals.items import ItemsGoal
    from scrapy_focus.goals.topic import TopicGoal
    from scrapy_focus.jobs.job import Job
    from scrapy_focus.pipelines import RewardPipeline
    from scrapy_focus.policies.bases import Bandit, Ordering
    from scrapy_focus.scheduler import FocusScheduler
    from scrapy_focus.schedulers import SleepingBanditScheduler, TreeFrontierScheduler

__version__ = "0.1.0"

__all__ = [
    "Addon",
    "Bandit",
    "Budget",
    "ConfigError",
    "CostLimit",
    "Crawl",
    "EventLog",
    "FilesGoal",
    "FocusError",
    "FocusScheduler",
    "Frontier",
    "FrontierError",
    "Goal",
    "GoalError",
    "ItemsGoal",
    "Job",
    "Left",
    "Link",
    "Ordering",
    "Outcome",
    "Page",
    "Pick",
    "Placement",
    "Plateau",
    "Policy",
    "PolicyError",
    "RecordingError",
    "ResumeError",
    "RewardPipeline",
    "SleepingBanditScheduler",
    "State",
    "StorageError",
    "TopicGoal",
    "TreeFrontierScheduler",
    "check_drawn",
    "check_policy",
    "check_ranked",
    "memory_frontier",
]

# Scrapy imports its commands, and this package with them, whatever the command: so nothing is imported before it is used.
_HOMES = {
    "Addon": "addon",
    "Bandit": "policies.bases",
    "Budget": "core.budget",
    "ConfigError": "core.errors",
    "CostLimit": "core.stop",
    "Crawl": "core.crawl",
    "EventLog": "core.log",
    "FilesGoal": "goals.files",
    "FocusError": "core.errors",
    "FocusScheduler": "scheduler",
    "Frontier": "core.frontier",
    "FrontierError": "core.errors",
    "Goal": "core.goal",
    "GoalError": "core.errors",
    "ItemsGoal": "goals.items",
    "Job": "jobs.job",
    "Left": "core.policy",
    "Link": "core.types",
    "Ordering": "policies.bases",
    "Outcome": "core.types",
    "Page": "core.types",
    "Pick": "core.types",
    "Placement": "core.types",
    "Plateau": "core.stop",
    "Policy": "core.policy",
    "PolicyError": "core.errors",
    "RecordingError": "core.errors",
    "ResumeError": "core.errors",
    "RewardPipeline": "pipelines",
    "SleepingBanditScheduler": "schedulers",
    "State": "core.types",
    "StorageError": "core.errors",
    "TopicGoal": "goals.topic",
    "TreeFrontierScheduler": "schedulers",
    "check_drawn": "checks.drawn",
    "check_policy": "checks.policy",
    "check_ranked": "checks.ranked",
    "memory_frontier": "frontiers.memory",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for first; everything but what is for Scrapy works without Scrapy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'scrapy_focus' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"scrapy_focus.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
