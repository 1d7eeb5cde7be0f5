"""Says what a crawl is, and writes what it counts to the stats of Scrapy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_focus.core.crawl import Crawl


class Stats:
    """The counts of a crawl, under ``focus/``; those that did not change are not written again."""

    def __init__(self, crawler: Crawler, crawl: Crawl) -> None:
        self.crawler = crawler
        self.crawl = crawl
        self._flushed: dict[str, float] = {}

    def flush(self) -> None:
        """Write what changed."""
        crawl = self.crawl
        now: dict[str, float] = {f"focus/{name}": value for name, value in crawl.counts.items() if value}
        now["focus/in_flight"] = crawl.in_flight
        now["focus/waiting"] = len(crawl.frontier)
        now["focus/arms"] = len(crawl.frontier.waiting)
        now["focus/reward"] = crawl.rewards
        now["focus/requests"] = crawl.budget.requests_used
        now["focus/bytes"] = crawl.budget.bytes_used
        for name, value in now.items():
            if self._flushed.get(name) != value:
                self.crawler.stats.set_value(name, value)
        self._flushed = now


def summary(crawl: Crawl) -> str:
    """Return policy, goal and budget of a crawl, in words."""
    goal = getattr(crawl.goal, "__qualname__", crawl.goal)
    return f"{type(crawl.policy).__qualname__}, goal {goal!s}, budget {crawl.budget!r}"


def persistence(crawl: Crawl, *, resumed: bool) -> str:
    """Return where a crawl is stored, and what it begins with."""
    job = crawl.job
    if job is None:
        return "none (JOBDIR is not set)"
    if not resumed:
        stock = " (what Scrapy's own scheduler left in this JOBDIR is not looked at)"
        return f"{job.folder}{stock if (job.folder.parent / 'requests.queue').exists() else ''}"
    if not len(crawl.frontier):
        return f"{job.folder}, resumed with no links waiting: it was finished; use another JOBDIR to begin anew"
    again = f", {len(crawl.recovered):,} of them in flight when it was killed" if crawl.recovered else ""
    used = f"{crawl.budget.requests_used:,} requests and {crawl.rewards:,.6g} rewards so far"
    return f"{job.folder}, resumed with {len(crawl.frontier):,} links waiting{again}, {used}"
