"""Describes a crawl, and writes its counts to Scrapy's stats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.printable import counted

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_focus.core.budget import Budget
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.status import Status
    from scrapy_focus.jobs.job import Job


class Stats:
    """The counts of a crawl, under ``focus/``; unchanged ones are not written again."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._flushed: dict[str, float] = {}

    def flush(self, status: Status) -> None:
        """Write what changed."""
        now: dict[str, float] = {f"focus/{name}": value for name, value in status.counts.items() if value}
        now["focus/in_flight"] = status.in_flight
        now["focus/waiting"] = status.waiting
        now["focus/asleep"] = status.asleep
        now["focus/arms"] = status.arms
        now["focus/reward"] = status.rewards
        now["focus/requests"] = status.used["requests"]
        now["focus/bytes"] = status.used["bytes"]
        if long := self.crawler.stats.get_value("urllength/request_ignored_count"):
            now["focus/trap/length"] = long
        for name, value in now.items():
            if self._flushed.get(name) != value:
                self.crawler.stats.set_value(name, value)
        self._flushed = now


def summary(policy: type[Policy], goal: Goal, budget: Budget) -> str:
    """Return policy, goal and budget of a crawl, in words."""
    return f"{policy.__qualname__}, goal {getattr(goal, '__qualname__', goal)!s}, budget {budget!r}"


def persistence(job: Job | None, status: Status, *, resumed: bool, where: str = "") -> str:
    """Return where a crawl is stored, and its state at the start; ``where``: the cluster crawl that it is part of."""
    if where:
        return where
    if job is None:
        return "none (JOBDIR is not set)"
    if not resumed:
        stock = " (the queues of Scrapy's own scheduler in this JOBDIR are ignored)"
        return f"{job.folder}{stock if (job.folder.parent / 'requests.queue').exists() else ''}"
    if not status.waiting and not status.asleep:
        return f"{job.folder}, resumed with no links queued: it was finished; use another JOBDIR to start again"
    again = f", {len(status.recovered):,} of them in flight when it was killed" if status.recovered else ""
    used = f"{counted(status.used['requests'], 'request')} and {status.rewards:,.6g} rewards so far"
    asleep = f" and {status.asleep:,} asleep" if status.asleep else ""
    return f"{job.folder}, resumed with {counted(status.waiting, 'link')} queued{asleep}{again}, {used}"
