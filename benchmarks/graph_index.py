"""The published graph index next to exact search: whether SB-CLASSIFIER finds the same clusters, and as many files.

Measured: simulated crawls of recorded sites by SB-CLASSIFIER with ``index="numpy"`` and ``index="hnswlib"``, one request
in flight, no extension ignored. For each site, as mean and standard deviation over the seeds: requests until 90 % of the
targets in percent of an exhaustive crawl, clusters at the end, the share of look-ups where the cluster is not the
nearest, and the CPU of a look-up and of a move in microseconds. Not measured: memory. It needs the extra ``hnsw``. ::

    python benchmarks/graph_index.py sites/sklearn2.sqlite sites/lily.sqlite --seeds 5
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

from scrapy_focus import FilesGoal, Mission
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.metrics import summary
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.learn.clusters import Clusters, Index
from scrapy_focus.policies.tagpath import TagPath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SAME = 1e-6  # cosines that count as equal
_HEAD = ("requests until 90 %", "clusters", "look-ups", "not the nearest, %", "CPU us of a look-up", "of a move")


class CountedClusters(Clusters):
    """Clusters that count how often they miss the nearest, and the CPU that they take."""

    look_ups = misses = 0
    looking = moving = 0.0  # seconds

    def nearest(self, where: NDArray[np.intp], values: NDArray[np.float32]) -> tuple[int, float]:
        start = time.process_time()
        found = super().nearest(where, values)
        end = time.process_time()
        self.look_ups += 1
        self.looking += end - start
        graph, self._graph = self._graph, None
        self.misses += super().nearest(where, values)[1] > found[1] + _SAME
        self._graph = graph
        self.moving -= time.process_time() - start  # assign adds it all
        return found

    def assign(self, where: NDArray[np.intp], values: NDArray[np.float32], count: int = 1) -> int:
        start = time.process_time()
        cluster = super().assign(where, values, count)
        self.moving += time.process_time() - start
        return cluster


def crawl(site: RecordedSite, truth: SiteTruth, index: Index, seed: int) -> list[float]:
    """Crawl a site once, and return the numbers of a row."""
    policy = TagPath(blocked=(), index=index)
    clusters = CountedClusters(dim=4096, threshold=policy.theta, max_clusters=policy.max_clusters, index=policy.index)
    policy.clusters = clusters
    goal = FilesGoal()
    harvest = simulate(policy, goal, site, mission=Mission.of(goal), seed=seed, ignored=(), truth=truth)
    look_ups = clusters.look_ups
    return [
        summary(harvest)["requests_90"], clusters.n_clusters, look_ups, 100 * clusters.misses / look_ups,
        1e6 * clusters.looking / look_ups, 1e6 * clusters.moving / look_ups,
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("paths", metavar="SITE.sqlite", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    print(f"| site | index | {' | '.join(_HEAD)} |\n|---|---|{'--:|' * len(_HEAD)}")
    for path in options.paths:
        site = RecordedSite(path)
        truth = SiteTruth(site, FilesGoal(), ignored=())
        for index in get_args(Index):
            rows = np.array([crawl(site, truth, index, seed) for seed in range(options.seeds)])
            means, spreads = rows.mean(axis=0), rows.std(axis=0, ddof=min(1, options.seeds - 1))
            cells = [f"{mean:,.1f} ± {spread:,.1f}" for mean, spread in zip(means, spreads, strict=True)]
            print(f"| {path.stem} | {index} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
