"""How often the default policy's estimate of the targets that are left holds the truth, on recorded sites.

Measured: in simulated crawls of whole sites, each time that another twentieth of the targets is found, and some times after
the last one, what ``BranchingBandit.expected_left()`` says, next to what is true. Shares are means over sites, whatever the
number of crawls of each. Not measured: other policies, goals other than data files. Runs are kept in a file as they end, and
none is made twice. ``fit`` prints the constants of ``scrapy_focus/policies/branching/coverage.py``; with ``--leave-one-out``, ``tables``
judges each site by constants that were fitted to all the others, which is what to expect of a site that nobody saw. ::

    python benchmarks/coverage.py run sites/*.sqlite profiles/*.sqlite --output coverage.jsonl
    python benchmarks/coverage.py fit coverage.jsonl
    python benchmarks/coverage.py tables coverage.jsonl --leave-one-out
    python benchmarks/coverage.py tables other.jsonl
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from scrapy_focus.core.policy import Left
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.policies.branching import coverage
from scrapy_focus.policies.branching.coverage import Coverage, Signs
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.recordings.format import RecordedSite
from scrapy_focus.replay.simulate import simulate
from scrapy_focus.replay.truth import SiteTruth
from scrapy_focus.web.mime import DATA_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Outcome

STAGES = (*(step / 20 for step in range(1, 20)), 0.97, 0.99, 1.0)  # shares of the targets that are found
AFTER = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0)  # requests, for each until the last target was found
SHOWN = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0, 1.1)
QUANTILES = {"_LOW": 0.05, "_MIDDLE": 0.5, "_HIGH": 0.95}
Run = dict[str, Any]
Said = dict[str, Any]


class Mark(NamedTuple):
    """What was true, and what was said, at one stage of one crawl."""

    site: str
    stage: float
    left: float
    signs: Signs
    said: Left | None


class Noting(Coverage):
    """Remembers what it judged by."""

    last: Signs

    def left(self, waiting: NDArray[np.generic], kinds: NDArray[np.int8]) -> Left | None:
        self.last = self.signs(waiting, kinds)
        return super().left(waiting, kinds)


class Watched(BranchingBandit):
    """The default policy, asked at each stage what is left."""

    def watch(self, targets: float) -> None:
        self.all = targets
        self.marks: list[Said] = []

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        super().open(frontier, rng, mission)
        self.noting = Noting()
        self.coverage = self.noting
        self.pulls = self.found = self.last = 0
        self.stages = list(STAGES)
        self.after = list(AFTER)

    def learn(self, outcome: Outcome) -> None:
        super().learn(outcome)
        self.pulls += 1
        self.found += outcome.reward > 0
        while self.stages and self.found >= self.stages[0] * self.all:
            self._mark(self.stages.pop(0))
            self.last = self.pulls
        while not self.stages and self.after and self.pulls >= self.after[0] * self.last:
            self._mark(self.after.pop(0))

    def _mark(self, stage: float) -> None:
        said = self.expected_left()
        self.marks.append({"stage": stage, "left": self.all - self.found, "signs": self.noting.last, "said": said})


_known: dict[Path, tuple[RecordedSite, SiteTruth]] = {}  # of this process: the last site


def crawl(path: Path, seed: int, in_flight: int) -> Run:
    """Crawl a whole site, and say what was said of what was left."""
    if path not in _known:
        _known.clear()
        site = RecordedSite(path)
        _known[path] = site, SiteTruth(site, FilesGoal(), ignored=())
    site, truth = _known[path]
    policy = Watched(targets=DATA_TYPES)
    policy.watch(truth.exhaustive.worth)
    simulate(
        policy, FilesGoal(), site, seed=seed, ignored=(), truth=truth, concurrency=in_flight, latency=float(in_flight > 1),
    )  # fmt: skip
    return {"site": path.stem, "seed": seed, "in_flight": in_flight, "marks": policy.marks}


def run(paths: Sequence[Path], seeds: int, in_flight: int, output: Path, jobs: int) -> None:
    """Make all runs that the file has not, and add each to it as it ends."""
    runs = map(json.loads, output.read_text(encoding="utf-8").splitlines()) if output.exists() else ()
    done = {(each["site"], each["seed"], each["in_flight"]) for each in runs}
    left = [(path, seed, in_flight) for path in paths for seed in range(seeds)]
    left = [task for task in left if (task[0].stem, *task[1:]) not in done]
    with ProcessPoolExecutor(jobs) as executor, output.open("a", encoding="utf-8") as file:
        futures = [executor.submit(crawl, *task) for task in left]
        for number, future in enumerate(as_completed(futures), 1):
            made = future.result()
            print(json.dumps(made), file=file, flush=True)
            print(f"{number}/{len(left)} {made['site']} {made['seed']}", file=sys.stderr)


def read(path: Path) -> Iterator[Mark]:
    """Return what was said in the runs of a file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        made = json.loads(line)
        for mark in made["marks"]:
            said = None if mark["said"] is None else Left(*mark["said"])
            yield Mark(made["site"], mark["stage"], mark["left"], Signs(*mark["signs"]), said)


def quantile(
    X: NDArray[np.float64], y: NDArray[np.float64], w: NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    """Return the weights with which a quantile of y is linear in X, shapes (n, d), (n,) and (n,): with w for each row.

    The loss is rounded off at zero, less and less, so that it has slopes.
    """
    weights = np.zeros(X.shape[1])
    for width in (0.3, 0.05, 0.01):

        def loss(weights: NDArray[np.float64], width: float = width) -> tuple[float, NDArray[np.float64]]:
            residual = y - X @ weights
            size = np.sqrt(residual**2 + width**2)
            slope = share - 0.5 + 0.5 * residual / size
            return float(w @ ((share - 0.5) * residual + 0.5 * size)), -X.T @ (w * slope)

        weights = minimize(loss, weights, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    return weights


def fit(marks: Sequence[Mark]) -> dict[str, dict[str, float]]:
    """Return the constants of ``scrapy_focus/policies/branching/coverage.py`` that fit, each site with the same weight."""
    marks = [mark for mark in marks if mark.signs.found >= 5]
    sites = [mark.site for mark in marks]
    w = np.array([1 / sites.count(site) for site in sites])
    y = np.array([math.log1p(mark.left) - math.log1p(mark.signs.guess) for mark in marks])
    terms = [mark.signs.terms() for mark in marks]
    fitted = {}
    for name, share in QUANTILES.items():
        names = list(getattr(coverage, name))
        X = np.array([[each[term] for term in names] for each in terms])
        fitted[name] = dict(zip(names, quantile(X, y, w / w.sum(), share).tolist(), strict=True))
    return fitted


def judged_anew(marks: Sequence[Mark]) -> Iterator[Mark]:
    """Return what would have been said with constants that are fitted to all other sites."""
    shipped = {name: getattr(coverage, name) for name in QUANTILES}
    try:
        for site in dict.fromkeys(mark.site for mark in marks):
            for name, constants in fit([mark for mark in marks if mark.site != site]).items():
                setattr(coverage, name, constants)
            for mark in marks:
                if mark.site == site:
                    nothing_waits = mark.said == (0, 0, 0) and mark.signs.guess == 0
                    yield mark if nothing_waits else mark._replace(said=coverage.known(mark.signs))
    finally:
        for name, constants in shipped.items():
            setattr(coverage, name, constants)


def tables(marks: Sequence[Mark]) -> None:
    """Print by stage how often something is said, how often it holds the truth, and how wide it is; then by site."""
    print(
        "| found | something said | holds the truth | too high | too low | where nothing is said too, holds | high / low | "
        "off by a factor of |\n|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    for stage in SHOWN:
        at = [mark for mark in marks if mark.stage == stage]
        if not at:
            continue
        said = [mark for mark in at if mark.said is not None]
        name = f"{stage:.0%}" if stage <= 1 else f"all, and {stage:g} times the requests"
        shares = [_mean(at, lambda mark: mark.said is not None), _mean(said, holds), _mean(said, too_high)]
        shares += [_mean(said, too_low), _mean(at, holds)]
        numbers = [statistics.median(map(size, said)), statistics.median(map(off, said))] if said else []
        print(f"| {name} | {' | '.join(f'{x:.0%}' for x in shares)} | {' | '.join(f'{x:.1f}' for x in numbers)} |")
    print("\n| site | something said | holds the truth |\n|---|--:|--:|")
    for site in sorted({mark.site for mark in marks}):
        at = [mark for mark in marks if mark.site == site and mark.stage < 1]
        said = [mark for mark in at if mark.said is not None]
        share = f"{_mean(said, holds):.0%}" if said else ""
        print(f"| {site} | {len(said) / max(len(at), 1):.0%} | {share} |")


def limits(mark: Mark) -> Left:
    """Return what was said, or would have been if it always were."""
    return mark.said or coverage.expected(mark.signs)


def holds(mark: Mark) -> bool:
    """Whether the truth is in the interval."""
    return limits(mark).low <= mark.left <= limits(mark).high


def too_high(mark: Mark) -> bool:
    """Whether all of the interval is above the truth."""
    return mark.left < limits(mark).low


def too_low(mark: Mark) -> bool:
    """Whether all of the interval is below the truth."""
    return mark.left > limits(mark).high


def size(mark: Mark) -> float:
    """Return how many times the lower limit the upper one is."""
    return max(limits(mark).high, 1) / max(limits(mark).low, 1)


def off(mark: Mark) -> float:
    """Return by what factor the middle is too large or too small."""
    return math.exp(abs(math.log1p(limits(mark).middle) - math.log1p(mark.left)))


def _mean(marks: Sequence[Mark], of: Callable[[Mark], bool]) -> float:
    """Return the share for which something is true, as a mean over sites."""
    by: dict[str, list[bool]] = {}
    for mark in marks:
        by.setdefault(mark.site, []).append(of(mark))
    return statistics.fmean(map(statistics.fmean, by.values())) if by else math.nan


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    subparser = commands.add_parser("run")
    subparser.add_argument("paths", metavar="SITE.sqlite", type=Path, nargs="+")
    subparser.add_argument("--seeds", type=int, default=3)
    subparser.add_argument("--in-flight", type=int, default=1)
    subparser.add_argument("--output", type=Path, default=Path("coverage.jsonl"))
    subparser.add_argument("--jobs", type=int, default=2)
    subparser = commands.add_parser("fit")
    subparser.add_argument("file", type=Path)
    subparser = commands.add_parser("tables")
    subparser.add_argument("file", type=Path)
    subparser.add_argument("--leave-one-out", action="store_true", help="fit anew for each site, to all others")
    options = parser.parse_args()
    if options.command == "run":
        run(options.paths, options.seeds, options.in_flight, options.output, options.jobs)
    elif options.command == "fit":
        for name, constants in fit([*read(options.file)]).items():
            print(name, "=", {term: round(constant, 2) for term, constant in constants.items()})
    else:
        marks = [*read(options.file)]
        tables([*judged_anew(marks)] if options.leave_one_out else marks)


if __name__ == "__main__":
    main()
