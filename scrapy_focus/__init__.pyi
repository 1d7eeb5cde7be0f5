"""The public names of the package, and where they are: type checkers read it, and so does the package itself."""

from scrapy_focus.addon import Addon as Addon
from scrapy_focus.checks import check_frontier as check_frontier
from scrapy_focus.checks import check_policy as check_policy
from scrapy_focus.core.budget import Budget as Budget
from scrapy_focus.core.crawl import Crawl as Crawl
from scrapy_focus.core.errors import ConfigError as ConfigError
from scrapy_focus.core.errors import FocusError as FocusError
from scrapy_focus.core.errors import FrontierError as FrontierError
from scrapy_focus.core.errors import GoalError as GoalError
from scrapy_focus.core.errors import PolicyError as PolicyError
from scrapy_focus.core.errors import RecordingError as RecordingError
from scrapy_focus.core.errors import ResumeError as ResumeError
from scrapy_focus.core.errors import StorageError as StorageError
from scrapy_focus.core.frontier import Frontier as Frontier
from scrapy_focus.core.goal import Goal as Goal
from scrapy_focus.core.log import EventLog as EventLog
from scrapy_focus.core.policy import Left as Left
from scrapy_focus.core.policy import Policy as Policy
from scrapy_focus.core.stop import CostLimit as CostLimit
from scrapy_focus.core.stop import Plateau as Plateau
from scrapy_focus.core.types import Link as Link
from scrapy_focus.core.types import Outcome as Outcome
from scrapy_focus.core.types import Page as Page
from scrapy_focus.core.types import Pick as Pick
from scrapy_focus.core.types import Placement as Placement
from scrapy_focus.core.types import State as State
from scrapy_focus.frontiers.memory import MemoryFrontier as MemoryFrontier
from scrapy_focus.goals.files import FilesGoal as FilesGoal
from scrapy_focus.goals.items import ItemsGoal as ItemsGoal
from scrapy_focus.goals.topic import TopicGoal as TopicGoal
from scrapy_focus.jobs.job import Job as Job
from scrapy_focus.pipelines import RewardPipeline as RewardPipeline
from scrapy_focus.policies.bases import Bandit as Bandit
from scrapy_focus.policies.bases import Ordering as Ordering
from scrapy_focus.scheduler import FocusScheduler as FocusScheduler
from scrapy_focus.schedulers import SleepingBanditScheduler as SleepingBanditScheduler
from scrapy_focus.schedulers import TreeFrontierScheduler as TreeFrontierScheduler

__version__: str
