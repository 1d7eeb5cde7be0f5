"""Crawls of the synthetic portal, simulated: how much a policy finds."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_focus import FilesGoal
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.portal.portal import TARGET_MIMES, StatisticsPortal

if TYPE_CHECKING:
    from scrapy_focus import Policy


def share_found(policy: Policy, *, pages: int, seed: int, share: float, in_flight: int) -> float:
    """Return the share of the targets found with a share of the requests that the whole portal would take."""
    site = recorded(pages, seed)
    goal = FilesGoal(types=TARGET_MIMES)
    budget = int(share * site.n_urls)
    harvest = simulate(policy, goal, site, budget=budget, concurrency=in_flight, latency=1.0, seed=seed)
    return float(harvest.found[-1] / harvest.exhaustive.worth)


@cache
def recorded(pages: int, seed: int) -> RecordedSite:
    """Return a recording of a portal; made once, and gone from the disk at once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "portal.sqlite")
        record_site(StatisticsPortal(pages=pages, seed=seed, endless=False), path, root="http://portal.example/")
        return RecordedSite(path)
