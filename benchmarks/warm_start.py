"""The benefit of starting from what another crawl learned: the same site, a similar one, and another one.

Simulated crawls by the default policy: the targets that are found with the first 100 and 300 requests, and the requests until
90 % of them. The file is written by a crawl of 1,000 requests with another seed. The sites that are made alike are two bundled
portals, made with different seeds: other data sets, texts and dates, the same templates. ::

    python benchmarks/warm_start.py --other sites/lily.sqlite --seeds 10
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np

from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.web.mime import DATA_TYPES

_MARKS = (100, 300)


def learn(site: Path, seed: int, file: Path) -> str:
    """Crawl a little, and write down what was learned; return the name of the file."""
    policy = BranchingBandit(targets=DATA_TYPES)
    simulate(policy, FilesGoal(), site, budget=1000, seed=1000 + seed)
    policy.save(file)
    return str(file)


def crawl(site: Path, seed: int, learned: str) -> tuple[float, ...]:
    """Return the targets after so many requests, and the requests until 90 % of them."""
    harvest = simulate(BranchingBandit(targets=DATA_TYPES, learned=learned), FilesGoal(), site, seed=seed)
    enough = harvest.found >= 0.9 * harvest.exhaustive.worth
    return (*(float(harvest.found[mark]) for mark in _MARKS), float(np.argmax(enough)))


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--other", type=Path, required=True, help="the recording of a site that is made otherwise")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sites = []
        for seed in (0, 7):
            sites.append(Path(folder, f"portal{seed}.sqlite"))
            record_site(
                StatisticsPortal(pages=2000, seed=seed, endless=False), sites[-1], root=f"http://p{seed}.example/"
            )
        print(
            f"| begins with | {' | '.join(f'targets after {mark} requests' for mark in _MARKS)} | requests until 90 % |"
        )
        print("|---|--:|--:|--:|")
        for name, source in (
            ("nothing", None),
            ("the same site", sites[0]),
            ("one made alike", sites[1]),
            ("another one", options.other),
        ):
            rows = []
            for seed in range(options.seeds):
                file = "" if source is None else learn(source, seed, Path(folder, f"{seed}.npz"))
                rows.append(crawl(sites[0], seed, file))
            cells = [
                f"{statistics.fmean(column):,.0f} ± {statistics.stdev(column):,.0f}"
                for column in zip(*rows, strict=True)
            ]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
