"""The state of a crawl as plain values, for other programs.

The names are those of ``focus status --json`` where both say the same, so that a program reads either.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.utils.job import job_dir

from scrapy_focus.core.policy import import_path
from scrapy_focus.core.printable import printable
from scrapy_focus.engine.ending import ending_of

if TYPE_CHECKING:
    from scrapy_focus.core.status import Status
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.progress import Speed

_BEST = 10  # kinds of links that are named
_LAST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


def live_status(host: Host, speed: Speed | None = None, *, reason: str = "") -> dict[str, Any]:
    """Return the state of a crawl that runs or has just ended.

    Parameters
    ----------
    host
        The crawl.
    speed
        Estimates when a budget will be used up; the status is recorded with it. ``None``: no estimate.
    reason
        For which Scrapy closed the spider, if it did.
    """
    status = host.status(best=_BEST)
    if speed is not None:
        speed.note(status)
    crawler, spider = host.crawler, host.crawler.spider
    left, folder = (status.whole or status).left, job_dir(crawler.settings)
    return {
        "state": _state(host),
        "updated": datetime.now(UTC).isoformat(timespec="seconds"),
        "process": os.getpid(),
        "spider": "" if spider is None else spider.name,
        "jobdir": str(Path(folder).absolute()) if folder else None,
        "policy": import_path(host.policy),
        "goal": printable(str(getattr(host.config.goal, "__qualname__", host.config.goal))),
        **_numbers(status),
        "left": _left(status),
        "seconds_left": None if speed is None else speed.left(status),
        "noun": host.noun,
        "items": crawler.stats.get_value("item_scraped_count", 0),
        "expected": None if left is None else left._asdict(),
        "cost": status.cost,
        "said": [*status.said],
        "alarm": status.alarm,
        "counts": dict(sorted(status.counts.items())),
        "best_arms": [
            {"arm": printable(str(arm)), "earned": earned, "pulls": pulls} for arm, earned, pulls in status.best_arms
        ],
        "whole": None if status.whole is None else _numbers(status.whole),
        "ending": _ending(host, reason) if host.closed else None,
    }


def _state(host: Host) -> str:
    if host.closed:
        return "ended"
    return "stopping" if host.stopping or host.is_interrupted else "running"


def _numbers(status: Status) -> dict[str, Any]:
    """Return the counts of a crawl, or of the part of one worker."""
    return {
        "used": {name: status.used[name] for name in ("requests", "bytes", "seconds")},
        "limits": dict(status.limits),
        "rate": str(status.rate or ""),
        "links": {
            "waiting": status.waiting,
            "arms": status.awake,
            "asleep": status.asleep,
            "next_due": None if status.next_due is None else _iso(status.next_due),
            "in_flight": status.in_flight,
        },
        "outcomes": status.counts.get("outcomes", 0),
        "rewards": status.rewards,
    }


def _left(status: Status) -> dict[str, float | None]:
    """Return what is left of each budget, ``None`` if there is no limit."""
    limits = status.limits.items()
    return {name: None if limit is None else max(0, limit - status.used[name]) for name, limit in limits}


def _iso(at: float) -> str:
    return datetime.fromtimestamp(min(at, _LAST), UTC).isoformat(timespec="seconds")


def _ending(host: Host, reason: str) -> dict[str, Any]:
    ending = ending_of(host.crawler)
    return {"kind": ending.kind, "status": ending.status, "reason": reason, "sentence": ending.sentence}
