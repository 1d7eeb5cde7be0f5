"""Recordings and comparisons to test with: a small portal, and comparisons whose numbers are given by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus import FilesGoal
from scrapy_focus.lab.compare.comparison import Comparison
from scrapy_focus.lab.compare.runs import Conditions, Curve, Run, SiteFacts
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.recordings.format import Completeness
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.harvest import Exhaustive
from scrapy_focus.lab.replay.metrics import METRICS
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal

if TYPE_CHECKING:
    from collections.abc import Sequence

WHOLE = Exhaustive(requests=200, worth=50.0, target_bytes=1_000_000, other_bytes=9_000_000, hosts=1)

#: A module of a user: policies that go wrong, and goals.
USER_MODULE = '''
import os
import sys
import time

from scrapy_focus import FilesGoal, Ordering


class Short(Ordering):
    """Short URLs first."""

    def __init__(self, *, sign=1):
        self.sign = sign

    def rank(self, link, source):
        return -self.sign * len(link.url)


class Failing(Short):
    def rank(self, link, source):
        raise RuntimeError("no idea <b>")


class Leaving(Short):
    def rank(self, link, source):
        sys.exit("I am off")


class Dying(Short):
    def rank(self, link, source):
        os._exit(7)


class Endless(Short):
    def rank(self, link, source):
        time.sleep(1000)


class Pages(FilesGoal):
    """Counts the pages that it saw, so that it has to be copied."""

    def __init__(self):
        super().__init__(types=["text/html"])
        self.seen = 0

    def __call__(self, outcome):
        self.seen += 1
        return super().__call__(outcome) if self.seen <= 100 else 0.0


def nothing(outcome):
    return 0.0
'''


def record(path: Path, *, seed: int = 0) -> Path:
    """Record a portal."""
    assert record_site(
        StatisticsPortal(pages=200, seed=seed, endless=False), path, root="http://portal.example/"
    ).finished
    return path


def curve(speed: float, *, end: float = 100.0) -> Curve:
    """Return a curve that climbs so many percent with each percent of requests or waste."""
    x = np.linspace(0, end, 101)
    return Curve(requests=x, found=(speed * x).clip(max=100), waste=x, volume=(speed * x).clip(max=100))


def comparison(
    values: dict[str, dict[str, Sequence[float]]],
    *,
    metric: str = "requests_90",
    baseline: str = "BFS",
    budget: int | None = None,
    complete: bool = True,
    goal: FilesGoal | None = None,
) -> Comparison:
    """Return a comparison where a metric has these values: by site, policy and seed. nan means a failed run."""
    policies = [PolicySpec.parse(text) for text in next(iter(values.values()))]
    seeds = list(range(len(next(iter(next(iter(values.values())).values())))))
    runs = [
        Run(site=site, policy=policies[number].label, seed=seed, error="Traceback:\nValueError: <oh & no>")
        if math.isnan(value)
        else Run(
            site=site, policy=policies[number].label, seed=seed,
            metrics=dict.fromkeys(METRICS, 1.0) | {"missed": 0.0, metric: value},
            curve=curve(100 / value if 0 < value < math.inf else 0.0), elapsed=0.5,
        )
        for site, of_site in values.items()
        for number, numbers in enumerate(of_site.values())
        for seed, value in enumerate(numbers)
    ]  # fmt: skip
    completeness = Completeness(190, 0, 0, True) if complete else Completeness(190, 10, 0, False)
    sites = {
        site: SiteFacts(
            name=site, path=Path(f"{site}.sqlite"), roots=["https://example.org/a?b&c"], completeness=completeness,
            exhaustive=WHOLE,
        )
        for site in values
    }  # fmt: skip
    return Comparison(
        policies=policies, sites=dict(sites), seeds=seeds, baseline=baseline, runs=runs,
        conditions=Conditions(goal=goal or FilesGoal(), budget=budget),
    )  # fmt: skip
