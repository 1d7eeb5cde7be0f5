"""A learning frontier for Scrapy: find data files, topics and fresh pages with a fraction of the requests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scrapy_focus.checks import check_frontier, check_policy
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
)
from scrapy_focus.core.events import EventLog
from scrapy_focus.core.goals import FilesGoal, Goal, ItemsGoal
from scrapy_focus.core.plateau import Plateau
from scrapy_focus.core.policy import Bandit, Ordering, Policy
from scrapy_focus.core.types import Link, Outcome, Page, Pick, Placement, State
from scrapy_focus.frontiers.base import Frontier
from scrapy_focus.frontiers.memory import MemoryFrontier

if TYPE_CHECKING:
    from scrapy_focus.addon import Addon
    from scrapy_focus.pipelines import RewardPipeline
    from scrapy_focus.scheduler import FocusScheduler, SleepingBanditScheduler

__version__ = "0.1.0"

__all__ = [
    "Addon",
    "Bandit",
    "Budget",
    "ConfigError",
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
    "Link",
    "MemoryFrontier",
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
    "check_frontier",
    "check_policy",
]

_SCRAPY_SIDE = {
    "Addon": "addon",
    "FocusScheduler": "scheduler",
    "RewardPipeline": "pipelines",
    "SleepingBanditScheduler": "scheduler",
}


def __getattr__(name: str) -> Any:
    """Import what needs Scrapy only when it is asked for, so that everything else works without Scrapy."""
    if name in _SCRAPY_SIDE:
        return getattr(import_module(f"scrapy_focus.{_SCRAPY_SIDE[name]}"), name)
    raise AttributeError(f"module 'scrapy_focus' has no attribute {name!r}")
