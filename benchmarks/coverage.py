"""How often the default policy's estimate of the targets left contains the truth, on recorded sites.

Measured: in simulated crawls of whole sites, each time that another twentieth of the targets is found, and some times
after the last one, the result of ``BranchingBandit.expected_left()`` and the truth. Crawls with even seeds request
every link; those with odd ones ignore pictures, styles and the like, as in practice. Shares are means over sites,
whatever the number of crawls of each. Not measured: other policies, goals other than data files. Runs are kept in a
file as they end, and none is made twice. ``fit`` prints the constants of
``scrapy_focus/policies/branching/coverage.py``; with ``--leave-one-out``, ``tables`` tests each site with constants
that were fitted to all the others, which is what to expect of a new site. ::

    python benchmarks/paper.py record-profiles --requests 6000 --out profiles
    python benchmarks/coverage.py record --out synthetic
    python benchmarks/coverage.py run sites/*.sqlite profiles/*.sqlite synthetic/*.sqlite --output coverage.jsonl
    python benchmarks/coverage.py run sites/*.sqlite profiles/*.sqlite synthetic/*.sqlite --in-flight 8
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
from scipy.optimize import least_squares

from catalogues.catalogues import SHAPES, Catalogue
from profiles.profiles import PROFILES
from scrapy_focus.core.abilities import Left
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.lab.sites.portal.portal import Page, StatisticsPortal
from scrapy_focus.lab.sites.scripted.site import ScriptedSite
from scrapy_focus.policies.branching import coverage
from scrapy_focus.policies.branching.coverage import Coverage, Signs
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.web.mime import DATA_TYPES, blocked_extensions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Outcome

STAGES = (*(step / 20 for step in range(1, 20)), 0.97, 0.99, 1.0)  # shares of the targets that are found
AFTER = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0)  # requests, for each until the last target was found
SHOWN = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0, 1.1)
JUDGED = (0.5, 0.75, 0.9, 0.95)
BY_KIND = (0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
SYNTHETIC = ("catalogue", "portal", "scripted")
FITTED_FROM = 0.2  # of the targets; before, there is hardly any estimate
FEW = 12  # minimum targets of a site, or there would never be an estimate
SAME = {"sklearn2": "sklearn", "lilyfr": "lily"}  # the same pages: held out together
SHARE = 0.05  # of the truths beyond each limit
RIDGE = 2.0, 1.0  # of the weights of the middle and of the spread, in standard deviations, for each site
LEAST = 0.1  # added to the error of an estimate, before its logarithm is taken
Constants = dict[str, dict[str, float]]
Run = dict[str, Any]
Said = dict[str, Any]


class Mark(NamedTuple):
    """The truth and the estimate at one stage of one crawl."""

    site: str
    stage: float
    left: float
    signs: Signs
    said: Left | None

    @property
    def all(self) -> float:
        """Targets of the site."""
        return self.signs.found + self.left


class Noting(Coverage):
    """Remembers its inputs."""

    last: Signs

    def left(
        self,
        waiting: NDArray[np.generic],
        kinds: NDArray[np.int8],
        arms: NDArray[np.integer],
        odds: NDArray[np.floating],
        *,
        ahead: float = 0.0,
    ) -> Left | None:
        if waiting.any():
            self.last = self.signs(waiting, kinds, arms, odds)._replace(ahead=ahead)
        return super().left(waiting, kinds, arms, odds, ahead=ahead)


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
        self.noting.last = Signs(self.found, self.pulls, 0.0, 0.0, 0.0, 0.0, 0.0)  # where nothing is queued
        said = self.expected_left()
        self.marks.append({"stage": stage, "left": self.all - self.found, "signs": self.noting.last, "said": said})


def crawl(path: Path, seed: int, in_flight: int) -> Run:
    """Crawl a whole site, and return the estimates of what was left."""
    site, ignored = RecordedSite(path), blocked_extensions(DATA_TYPES) if seed % 2 else ()
    truth = SiteTruth(site, FilesGoal(), ignored=ignored)
    if truth.exhaustive.worth < FEW:
        return {"site": path.stem, "seed": seed, "in_flight": in_flight, "marks": []}
    policy = Watched(targets=DATA_TYPES)
    policy.watch(truth.exhaustive.worth)
    simulate(
        policy, FilesGoal(), site, seed=seed, ignored=ignored, truth=truth, concurrency=in_flight,
        latency=float(in_flight > 1),
    )  # fmt: skip
    return {"site": path.stem, "seed": seed, "in_flight": in_flight, "marks": policy.marks}


class PlainPages:
    """The scripted site as it is without a browser."""

    def __init__(self) -> None:
        self.site = ScriptedSite(seed=0)

    def fetch(self, path: str) -> Page:
        """Return the answer to a GET."""
        return self.site.ask("GET", path, {}, b"")


def record(out: Path) -> None:
    """Record a synthetic catalogue of each shape, the bundled portal in three sizes, and the scripted site."""
    out.mkdir(parents=True, exist_ok=True)
    for name, shape in SHAPES.items():
        record_site(Catalogue(shape), out / f"{name}.sqlite", root="http://catalogue.example/")
    for seed, pages in enumerate((2000, 1000, 600)):
        portal = StatisticsPortal(pages=pages, seed=seed, endless=False)
        record_site(portal, out / f"portal_{pages}.sqlite", root="http://portal.example/")
    record_site(PlainPages(), out / "scripted.sqlite", root="http://scripted.example/")


def run(paths: Sequence[Path], seeds: int, in_flight: int, output: Path, jobs: int) -> None:
    """Make all runs that the file lacks, and add each to it as it ends."""
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
    """Return the estimates in the runs of a file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        made = json.loads(line)
        for mark in made["marks"]:
            said = None if mark["said"] is None else Left(*mark["said"])
            yield Mark(made["site"], mark["stage"], mark["left"], Signs(*mark["signs"]), said)


def fit(marks: Sequence[Mark]) -> Constants:
    """Return the constants of ``coverage.py`` that fit, each site with the same weight.

    The expected error of estimates is learned from sites that they were not fitted to.
    """
    marks = [mark for mark in marks if mark.stage >= FITTED_FROM and mark.signs.found >= 10]
    groups = [SAME.get(mark.site, mark.site) for mark in marks]
    w = np.array([1 / groups.count(group) for group in groups])
    where = np.array(groups)
    y = np.array([math.log1p(mark.left) for mark in marks])
    signs = [mark.signs for mark in marks]
    expected = np.zeros(len(y))
    for group in dict.fromkeys(groups):
        others = np.flatnonzero(where != group)
        middle = fit_middle([signs[i] for i in others], y[others], w[others])
        for i in np.flatnonzero(where == group):
            expected[i] = coverage.middle_of(signs[i], **middle)
    off = y - expected
    spread = fit_spread(signs, expected, off, w)
    units = off / [coverage.spread_of(sign, at, **spread) for sign, at in zip(signs, expected, strict=True)]
    limits = {"below": quantile(-units, w, 1 - SHARE), "above": quantile(units, w, 1 - SHARE)}
    return {"_MIDDLE": fit_middle(signs, y, w), "_SPREAD": spread, "_LIMITS": limits}


def fit_middle(signs: Sequence[Signs], y: NDArray[np.float64], w: NDArray[np.float64]) -> dict[str, float]:
    """Return the weights of a linear model of y, shape (n,), with weights w of each, shape (n,)."""
    targets, pages = (np.array([getattr(sign, name) for sign in signs]) for name in ("targets", "pages"))
    X = np.array([[1.0, sign.rate, sign.gap] for sign in signs])
    sizes = np.array([1.0, 0.0, *X[:, 1:].std(axis=0)]) * math.sqrt(RIDGE[0])

    def residuals(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        first, others = np.exp(np.clip(weights[0], -3, 3)), np.exp(np.clip(X @ weights[1:], -8, 4))
        return np.concatenate([np.sqrt(w) * (np.log1p(targets * first + pages * others) - y), sizes * weights])

    fitted = least_squares(residuals, np.zeros(4)).x
    return dict(zip(("targets", "one", "rate", "gap"), fitted.tolist(), strict=True))


def fit_spread(
    signs: Sequence[Signs], expected: NDArray[np.float64], off: NDArray[np.float64], w: NDArray[np.float64]
) -> dict[str, float]:
    """Return the weights of the expected error of a model of y, shapes (n,)."""
    terms = [coverage.spread_terms(sign, at) for sign, at in zip(signs, expected.tolist(), strict=True)]
    X = np.array([[*each.values()] for each in terms])
    penalty = np.diag(X.std(axis=0) ** 2) * RIDGE[1]
    weights = np.linalg.solve(X.T @ (w[:, None] * X) + penalty, X.T @ (w * np.log(np.abs(off) + LEAST)))
    return dict(zip(terms[0], weights.tolist(), strict=True))


def quantile(x: NDArray[np.float64], w: NDArray[np.float64], share: float) -> float:
    """Return the least of x, shape (n,), that is at least as large as a share of them by weight."""
    order = np.argsort(x)
    at = np.searchsorted(np.cumsum(w[order]), share * w.sum())
    return float(x[order][min(at, len(x) - 1)])


def judged_anew(marks: Sequence[Mark]) -> Iterator[Mark]:
    """Return the estimates with constants that are fitted to all other sites."""
    groups = [SAME.get(mark.site, mark.site) for mark in marks]
    shipped = {name: getattr(coverage, name) for name in ("_MIDDLE", "_SPREAD", "_LIMITS")}
    try:
        for left_out in dict.fromkeys(groups):
            here = [mark for mark, group in zip(marks, groups, strict=True) if group == left_out]
            others = [mark for mark, group in zip(marks, groups, strict=True) if group != left_out]
            for name, constants in fit(others).items():
                setattr(coverage, name, constants)
            for mark in here:
                yield mark if mark.said == (0, 0, 0) else mark._replace(said=coverage.known(mark.signs))
    finally:
        for name, constants in shipped.items():
            setattr(coverage, name, constants)


def tables(marks: Sequence[Mark]) -> None:
    """Print by stage how often there is an estimate, how often it contains the truth, and how wide it is; then by
    site.
    """
    print(
        "| found | says unknown | holds the truth | too high | too low | where nothing is said too, holds | "
        "high - low, of all targets | the same, said or not | middle off by a factor of |\n"
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    for stage in SHOWN:
        at = [mark for mark in marks if mark.stage == stage]
        if not at:
            continue
        said = [mark for mark in at if mark.said is not None]
        name = f"{stage:.0%}" if stage <= 1 else f"all, and {stage:g} times the requests"
        shares = [_mean(at, lambda mark: mark.said is None), _mean(said, holds), _mean(said, too_high)]
        shares += [_mean(said, too_low), _mean(at, holds)]
        numbers = [_median(said, width), _median(at, width), _median(said, off)]
        print(f"| {name} | {' | '.join(f'{x:.0%}' for x in shares)} | {' | '.join(f'{x:.2f}' for x in numbers)} |")
    print("\n| kind | found | says unknown | holds the truth |\n|---|--:|--:|--:|")
    for kind in dict.fromkeys(kind_of(mark.site) for mark in marks):
        for stage in BY_KIND:
            at = [mark for mark in marks if mark.stage == stage and kind_of(mark.site) == kind]
            said = [mark for mark in at if mark.said is not None]
            shares = [_mean(at, lambda mark: mark.said is None), _mean(said, holds)]
            print(f"| {kind} | {stage:.0%} | {' | '.join('' if math.isnan(x) else f'{x:.0%}' for x in shares)} |")
    print("\n| site | says unknown | holds the truth | too high | too low |\n|---|--:|--:|--:|--:|")
    for site in sorted({mark.site for mark in marks}):
        at = [mark for mark in marks if mark.site == site and mark.stage in JUDGED]
        said = [mark for mark in at if mark.said is not None]
        shares = [_mean(said, of) for of in (holds, too_high, too_low)]
        unknown = 1 - len(said) / max(len(at), 1)
        print(f"| {site} | {unknown:.0%} | {' | '.join('' if math.isnan(x) else f'{x:.0%}' for x in shares)} |")


def kind_of(site: str) -> str:
    """Return what kind of site a recording is of, by its name."""
    if (kind := site.partition("_")[0]) in SYNTHETIC:
        return kind
    return "profile" if site in PROFILES else "recorded"


def limits(mark: Mark) -> Left:
    """Return the estimate, or what it would have been if it were always given."""
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


def width(mark: Mark) -> float:
    """Return the distance of the limits, as a share of all targets."""
    return (limits(mark).high - limits(mark).low) / mark.all


def off(mark: Mark) -> float:
    """Return the factor by which the middle is too large or too small."""
    return math.exp(abs(math.log1p(limits(mark).middle) - math.log1p(mark.left)))


def _mean(marks: Sequence[Mark], of: Callable[[Mark], bool]) -> float:
    """Return the share of stages that satisfy a condition, as a mean over sites."""
    by: dict[str, list[bool]] = {}
    for mark in marks:
        by.setdefault(mark.site, []).append(of(mark))
    return statistics.fmean(map(statistics.fmean, by.values())) if by else math.nan


def _median(marks: Sequence[Mark], of: Callable[[Mark], float]) -> float:
    return statistics.median(map(of, marks)) if marks else math.nan


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    subparser = commands.add_parser("run")
    subparser.add_argument("paths", metavar="SITE.sqlite", type=Path, nargs="+")
    subparser.add_argument("--seeds", type=int, default=4)
    subparser.add_argument("--in-flight", type=int, default=1)
    subparser.add_argument("--output", type=Path, default=Path("coverage.jsonl"))
    subparser.add_argument("--jobs", type=int, default=2)
    subparser = commands.add_parser("record")
    subparser.add_argument("--out", type=Path, default=Path("synthetic"))
    subparser = commands.add_parser("fit")
    subparser.add_argument("file", type=Path)
    subparser = commands.add_parser("tables")
    subparser.add_argument("file", type=Path)
    subparser.add_argument("--leave-one-out", action="store_true", help="fit anew for each site, to all others")
    options = parser.parse_args()
    if options.command == "record":
        record(options.out)
    elif options.command == "run":
        run(options.paths, options.seeds, options.in_flight, options.output, options.jobs)
    elif options.command == "fit":
        for name, constants in fit([*read(options.file)]).items():
            print(name, "=", json.dumps({term: round(constant, 3) for term, constant in constants.items()}))
    else:
        marks = [*read(options.file)]
        tables([*judged_anew(marks)] if options.leave_one_out else marks)


if __name__ == "__main__":
    main()
