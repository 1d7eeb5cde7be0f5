"""Whole crawls of several workers in one event loop, including their leader."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from crawls import Crawled, crawl_all

from tests.cluster.local import NearEngine
from tests.made import HANG

if TYPE_CHECKING:
    from pathlib import Path

    from mocksite import MockSite
    from scrapy import Spider

    from scrapy_focus.cluster.leader import Leader

_ADDRESSES = itertools.count()


@dataclass
class Shared:
    """What a crawl of several workers left."""

    workers: list[Crawled]
    leaders: list[Leader]  # in the order of their creation

    @property
    def leader(self) -> Leader:
        return self.leaders[-1]

    @property
    def crawl(self) -> Any:
        """The crawl of all workers."""
        return self.leader.crawl

    @cached_property
    def items(self) -> list[Any]:
        return [item for worker in self.workers for item in worker.items]

    @property
    def reasons(self) -> set[str]:
        return {worker.reason for worker in self.workers}

    @cached_property
    def outcomes(self) -> Counter[str]:
        """The counts under ``focus/outcome/``, by label, of all workers."""
        return sum((Counter(worker.outcomes) for worker in self.workers), Counter())

    @property
    def errors(self) -> dict[str, int]:
        found = sum((Counter(worker.errors) for worker in self.workers), Counter())
        found.update({name: n for name, n in self.crawl.counts.items() if name.startswith("error/")})
        return dict(found)

    def total(self, name: str) -> float:
        """Return the sum of a stat over all workers."""
        return sum(worker.stats.get(name, 0) for worker in self.workers)

    def logged(self, text: str) -> list[str]:
        """Return the messages of the log that contain a text."""
        return self.workers[0].logged(text)

    def check(self) -> None:
        """Fail unless nothing is in flight, and leader and workers have equal counts."""
        assert self.leader.is_closed
        assert not self.crawl.picks
        assert not self.crawl.leases.owners
        assert not self.crawl.state.in_flight.unsent
        assert not self.logged("no answer from the leader")


def settings_of(folder: Path, **more: Any) -> dict[str, Any]:
    """Return the settings of the workers of one crawl, whose folder is in ``folder``."""
    return {
        "FOCUS_CLUSTER": f"near-{next(_ADDRESSES)}",
        "FOCUS_CLUSTER_ENGINE": "tests.cluster.local.NearEngine",
        "JOBDIR": str(folder / "job"),
        **more,
    }


def share(
    spider: type[Spider],
    folder: Path,
    settings: dict[str, Any] | None = None,
    *,
    workers: int = 2,
    addon: bool = False,
    patience: float = HANG,
    checks: bool = True,
    **args: Any,
) -> Shared:
    """Run one crawl to its end with so many workers."""
    return share_among(
        [(spider, settings or {}, args)] * workers, folder, addon=addon, patience=patience, checks=checks
    )


def share_among(
    jobs: list[tuple[type[Spider], dict[str, Any], dict[str, Any]]],
    folder: Path,
    *,
    addon: bool = False,
    patience: float = HANG,
    checks: bool = True,
) -> Shared:
    """Run one crawl to its end with these workers: their spiders, settings and arguments."""
    common = settings_of(folder)
    before = len(NearEngine.made)
    results = crawl_all(
        [(spider, {**common, **own}, args) for spider, own, args in jobs], addon=addon, patience=patience
    )
    shared = Shared(results, NearEngine.made[before:])
    if checks:
        shared.check()
    return shared


def asked(site: MockSite) -> Counter[tuple[str, str]]:
    """Return how often each method and path was asked for, robots.txt apart."""
    return Counter(pair for pair in site.asked if pair[1] != "/robots.txt")


def fetched(sites: list[MockSite]) -> list[str]:
    """Return the URLs that were asked for with GET, robots.txt apart."""
    return [site.url(path) for site in sites for path in site.paths]
