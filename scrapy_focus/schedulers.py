"""Schedulers of published systems: each is one settings line."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from scrapy_focus.policies.foragers.policy import Foragers
from scrapy_focus.policies.hostbandit.policy import HostBandit
from scrapy_focus.policies.importance import Importance
from scrapy_focus.policies.revisits import Revisits
from scrapy_focus.policies.tagpath.policy import TagPath
from scrapy_focus.policies.treeq.policy import TreeQ
from scrapy_focus.scheduler import FocusScheduler

if TYPE_CHECKING:
    from scrapy_focus.core.policy import Policy


class SleepingBanditScheduler(FocusScheduler):
    """The scheduler of SB-CLASSIFIER, :class:`~scrapy_focus.policies.tagpath.TagPath`, whatever the default is."""

    default_policy: ClassVar[type[Policy]] = TagPath


class AnthelionScheduler(FocusScheduler):
    """The scheduler for crawls of many hosts: it learns which hosts and which of their pages are worth fetching.

    With ``FOCUS_STRUCTURED`` it looks for pages with structured data. See
    :class:`~scrapy_focus.policies.hostbandit.HostBandit`.
    """

    default_policy: ClassVar[type[Policy]] = HostBandit


class ForagerScheduler(FocusScheduler):
    """The scheduler of foragers, a fleet of small crawlers that look for news and learn where to start.

    With ``FOCUS_BUDGET_RATE`` they send at most that many requests a day. See
    :class:`~scrapy_focus.policies.foragers.Foragers`.
    """

    default_policy: ClassVar[type[Policy]] = Foragers


class FreshScheduler(FocusScheduler):
    """The scheduler that keeps a site fresh: it revisits pages when that is worthwhile, on a budget.

    With ``FOCUS_BUDGET_RATE`` it sends at most that many requests a day. See
    :class:`~scrapy_focus.policies.revisits.Revisits`.
    """

    default_policy: ClassVar[type[Policy]] = Revisits


class ImportanceScheduler(FocusScheduler):
    """The scheduler that fetches the most important pages first, judged by the links seen so far.

    See :class:`~scrapy_focus.policies.importance.Importance`.
    """

    default_policy: ClassVar[type[Policy]] = Importance


class TreeFrontierScheduler(FocusScheduler):
    """The scheduler of the TRES policy, :class:`~scrapy_focus.policies.treeq.TreeQ`.

    With ``FOCUS_TOPIC`` or ``FOCUS_KEYWORDS`` it looks for pages on a topic, on many hosts; otherwise it learns which
    links lead to items, from their places, URLs and anchors.
    """

    default_policy: ClassVar[type[Policy]] = TreeQ
