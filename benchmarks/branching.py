"""The default policy compared with the crawlers of the SB-CLASSIFIER paper and the link floor, on recorded sites.

Measured: requests until 50, 75, 90 and 95 % of the targets in simulated crawls; HEADs, redirects and dead links
count. No extension is ignored, as in the paper; with ``--people`` no policy requests pictures, styles and the like,
as in practice. A crawl ends at 95 %, so later finds are not measured. Runs are kept in a file as they end, and none
is made twice; tables are made from the file. Files of an earlier version have only requests until 90 %: they can be
read, and the same command adds the runs that measure more, which then count in their place. ::

    python benchmarks/sites.py fetch sklearn2 lily
    python benchmarks/sites.py record sklearn2 lily
    python benchmarks/branching.py run sites/sklearn2.sqlite sites/lily.sqlite --output runs.jsonl
    python benchmarks/branching.py run sites/sklearn2.sqlite sites/lily.sqlite --output runs.jsonl --people
    python benchmarks/branching.py run profiles/*.sqlite --output runs.jsonl --policies default SB-CLASSIFIER
    python benchmarks/branching.py tables runs.jsonl
    python benchmarks/branching.py tables runs.jsonl --share 0.5
    python benchmarks/branching.py run sites/*.sqlite --output parts.jsonl --seeds 5 --policies default parts SB-CLASSIFIER
    python benchmarks/branching.py run sites/*.sqlite --output flight.jsonl --seeds 5 --policies default \
        --in-flight 16 64
    python benchmarks/branching.py run sites/*.sqlite --output flight.jsonl --seeds 5 --policies default \
        --in-flight 1 16 64 --sigma 0.5 --most-out any rule 8+n/8
    python benchmarks/branching.py flights flight.jsonl
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scrapy_focus.core.outstanding import most_out
from scrapy_focus.core.stop import Plateau
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.latency import LogNormal
from scrapy_focus.lab.replay.leases import Leases
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.learn.hashed import NOTHING, Remembered
from scrapy_focus.policies.branching.arms import TARGETS
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.web.mime import blocked_extensions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Outcome

SHARES = (0.5, 0.75, 0.9, 0.95)  # of the targets, until which requests are counted
SHARE = 0.9  # the default for tables
DIFFER = 0.1  # there is something to learn on sites where the link floor or any policy is so much below BFS
FLOOR = "LINK-FLOOR"
POLICIES = {
    "default": "BranchingBandit",
    "SB-CLASSIFIER": "TagPath:blocked=()",
    "FOCUSED": "FOCUSED",
    "BFS": "BFS",
    "RANDOM": "RANDOM",
    FLOOR: FLOOR,
    "OMNISCIENT": "OMNISCIENT",
}
PARTS = {  # the default policy without one part, or with a variant
    "failures not counted": "branching.AsReleased",
    "links of the best arm only": "branching.BestArm",
    "no elements of the place": "branching.Unplaced",
    "no targets beside": "branching.Alone",
    "files that are no targets teach nothing": "branching.FilesUnheard",
    "no learned choice": "BranchingBandit:candidates=1",
    "no planning": "BranchingBandit:horizon=0",
    "one pull planned": "BranchingBandit:horizon=1",
    "no noise": "BranchingBandit:noise=0.0",
    "no exploration": "BranchingBandit:explore=0.0",
    "no cold start": "BranchingBandit:targets=()",
    "bytes saved": "BranchingBandit:unit='bytes'",
}
NO_CHANCE = ("FOCUSED", "BFS", FLOOR, "OMNISCIENT")  # for which one seed is enough
Run = dict[str, Any]


class AsReleased(BranchingBandit):
    """The accounting of the released SB-CLASSIFIER: a pull that led to no page does not count, and earns nothing."""

    def learn(self, outcome: Outcome) -> None:
        if outcome.is_html or self.arms.kinds[outcome.pick.arm] == TARGETS:
            super().learn(outcome)
        else:
            self.release(outcome.pick)


class BestArm(BranchingBandit):
    """Chooses among the links of the arm with the best index."""

    def _choose(self, indices: NDArray[np.float64], busy: Collection[str]) -> Any:
        best = np.full_like(indices, -np.inf)
        best[np.argmax(indices)] = indices.max()
        return super()._choose(best, busy)


class Unplaced(BranchingBandit):
    """Distinguishes the links of an arm by their height on the page, and by nothing else of their places."""

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        super().open(frontier, rng, mission)
        self._hasher._tag_paths = Remembered(lambda path: [NOTHING] * 4)


class Alone(BranchingBandit):
    """Ignores the links beside a link."""

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        super().open(frontier, rng, mission)
        self._hasher._beside = Remembered(lambda text: NOTHING)


class FilesUnheard(BranchingBandit):
    """Learns what is not a target from HTML pages only."""

    def learn(self, outcome: Outcome) -> None:
        super().learn(outcome if outcome.is_html else outcome._replace(error=outcome.error or "unheard"))


class Until(Plateau):
    """Ends a crawl when so many targets are found."""

    def __init__(self, targets: float) -> None:
        super().__init__()
        self.targets = targets

    def reached(self, requests: int, targets: float, cost: float | None = None) -> bool:
        return targets >= self.targets


class Way(NamedTuple):
    """How a crawl is made."""

    in_flight: int = 1
    sigma: float = 0.0  # spread of log-normal latencies
    most_out: str = "any"  # the rule for picks in flight
    people: bool = False  # whether pictures, styles and the like are never asked for


def rule_of(text: str) -> Callable[[int, int], int] | None:
    """Return the limit of picks in flight: ``any``, ``rule`` for the built-in one, or ``K+n/D``."""
    if text in ("any", "rule"):
        return most_out if text == "rule" else None
    first, _, divisor = text.partition("+n/")
    return lambda outcomes, _: int(first) + outcomes // int(divisor)


ALONE = Way()
_known: dict[tuple[Path, bool], tuple[RecordedSite, SiteTruth]] = {}  # of this process: the last site


def crawl(path: Path, label: str, text: str, seed: int, way: Way) -> Run:
    """Crawl until enough is found, and return the requests; ``None`` for a share that was not reached."""
    ignored = blocked_extensions(FilesGoal().types) if way.people else ()
    if (path, way.people) not in _known:
        _known.clear()
        site = RecordedSite(path)
        _known[path, way.people] = site, SiteTruth(site, FilesGoal(), ignored=ignored)
    site, truth = _known[path, way.people]
    whole = truth.exhaustive
    started = process_time()
    harvest = simulate(
        PolicySpec.parse(text).make(), FilesGoal(), site, seed=seed, ignored=ignored, truth=truth,
        stop=Until(math.ceil(max(SHARES) * whole.worth)),
        concurrency=Leases(slots=way.in_flight, most_out=rule_of(way.most_out)),
        latency=0.0 if way.in_flight == 1 else LogNormal(1.0, way.sigma),
    )  # fmt: skip
    reached = [harvest.found >= share * whole.worth for share in SHARES]
    at = [int(np.argmax(each)) if each.any() else None for each in reached]
    last = at[SHARES.index(SHARE)]
    return {
        "site": path.stem, "policy": label, "spec": text, "seed": seed, **way._asdict(),
        "requests": dict(zip(map(str, SHARES), at, strict=True)), "targets": whole.worth, "all": whole.requests,
        "waste": int(harvest.other_bytes[-1 if last is None else last]),
        "seconds": float(harvest.seconds[-1 if last is None else last]), "cpu": process_time() - started,
    }  # fmt: skip


def run(
    paths: Sequence[Path], policies: Sequence[str], ways: Sequence[Way], *, seeds: int, output: Path, jobs: int
) -> None:
    """Make all runs that the file lacks, site by site, and add each to it as it ends."""
    done = {
        (each["site"], each["spec"], each["seed"], way_of(each))
        for each in read(output)
        if len(each["requests"]) == len(SHARES)
    }
    tasks = [
        (path, label, (POLICIES | PARTS).get(label, label), seed, way)
        for path in paths
        for label in [each for name in policies for each in (PARTS if name == "parts" else [name])]
        for way in ways
        for seed in range(1 if label in NO_CHANCE else seeds)
    ]
    left = [task for task in tasks if (task[0].stem, *task[2:]) not in done]
    with ProcessPoolExecutor(jobs) as executor, output.open("a", encoding="utf-8") as file:
        futures = [executor.submit(crawl, *task) for task in left]
        for number, future in enumerate(as_completed(futures), 1):
            made = future.result()
            print(json.dumps(made), file=file, flush=True)
            print(f"{number}/{len(left)} {made['site']} {made['policy']} {made['seed']}", file=sys.stderr)


def way_of(made: Run) -> Way:
    """Return how a run was made."""
    return Way(*(made[name] for name in Way._fields))


def read(path: Path) -> list[Run]:
    """Return the runs of a file, none if there is no file; among equal ones the one that measures most.

    Runs of an earlier version have the requests until 90 % alone, and ignore no extension.
    """
    found: dict[tuple[Any, ...], Run] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        each = {**Way()._asdict(), **json.loads(line)}
        if not isinstance(each["requests"], dict):
            each["requests"] = {str(SHARE): each["requests"]}
        key = (each["site"], each["policy"], each["spec"], each["seed"], way_of(each))
        if len(each["requests"]) >= len(found.get(key, each)["requests"]):
            found[key] = each
    return list(found.values())


def tables(runs: Sequence[Run], share: float = SHARE) -> None:
    """Print the tables of :func:`show`: of crawls that ignore nothing, and of those as in practice."""
    for title, people in (("Nothing left out", False), ("As people crawl", True)):
        way = ALONE._replace(people=people)
        if kept := [each for each in runs if way_of(each) == way and str(share) in each["requests"]]:
            print(f"\n## {title}: to {share:.0%} of the targets")
            show(kept, share)


def show(runs: Sequence[Run], share: float) -> None:
    """Print requests, overhead, spread and ratios of each policy on each site, and the geometric means of the ratios.

    The ratios are to SB-CLASSIFIER and to the link floor. The spread is the standard deviation over seeds, in percent
    of the mean.
    """
    by: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for each in runs:
        by[each["site"], each["policy"]].append({**each, "requests": each["requests"][str(share)], "share": share})
    sites = list(dict.fromkeys(each["site"] for each in runs))
    policies = list(dict.fromkeys([*POLICIES, *(each["policy"] for each in runs)]))
    policies = [policy for policy in policies if any((site, policy) in by for site in sites)]
    for title, cell, baseline in (
        ("requests", _requests, ""),
        ("overhead", _overhead, ""),
        ("spread over seeds, %", _spread, ""),
        ("ratio to SB-CLASSIFIER", _ratio, "SB-CLASSIFIER"),
        ("ratio to the link floor", _ratio, FLOOR),
    ):
        print(f"\n{title}\n\n| site | URLs | targets | {' | '.join(policies)} |\n|---|--:|--:|{'--:|' * len(policies)}")
        for site in sites:
            one = next(each for each in runs if each["site"] == site)
            cells = [cell(by[site, policy], by[site, baseline]) for policy in policies]
            print(f"| {site} | {one['all']:,} | {one['targets']:,.0f} | {' | '.join(cells)} |")
    print()
    for baseline, policy in [(baseline, policy) for baseline in ("SB-CLASSIFIER", FLOOR) for policy in policies]:
        for name, group in (("something to learn", True), ("nothing to learn", False)):
            compared = [
                (_mean(by[site, policy]), _mean(by[site, baseline]))
                for site in sites
                if by[site, policy] and by[site, baseline] and differs(by, site) is group
            ]
            ratios = [mine / its for mine, its in compared if its and math.isfinite(mine) and math.isfinite(its)]
            if ratios:
                geometric = math.exp(statistics.fmean(map(math.log, ratios)))
                never = f", {len(compared) - len(ratios)} more not in all seeds" if len(ratios) < len(compared) else ""
                print(
                    f"{policy} to {baseline}, {len(ratios)} sites with {name}: {geometric:.3f}, {min(ratios):.2f} to "
                    f"{max(ratios):.2f}{never}"
                )


def differs(by: Mapping[tuple[str, str], Sequence[Run]], site: str) -> bool | None:
    """Whether there is something to learn on a site: the link floor or any policy is 10 % below breadth-first.

    OMNISCIENT does not count as a policy here, as it follows no links. ``None`` if breadth-first, or all else, is
    missing.
    """
    breadth = by.get((site, "BFS"))
    others = [
        _mean(runs)
        for (where, policy), runs in by.items()
        if where == site and runs and policy not in ("BFS", "OMNISCIENT")
    ]
    return min(others) <= (1 - DIFFER) * _mean(breadth) if breadth and others else None


def _mean(runs: Sequence[Run]) -> float:
    return statistics.fmean(_numbers(runs))


def _numbers(runs: Sequence[Run]) -> Iterator[float]:
    return (math.inf if each["requests"] is None else each["requests"] for each in runs)


def _requests(runs: Sequence[Run], _: Sequence[Run] = (), less: float = 0.0) -> str:
    numbers = [number - less for number in _numbers(runs)]
    if len(numbers) < 2:
        return f"{numbers[0]:,.0f}" if numbers else ""
    never = sum(math.isinf(number) for number in numbers)
    return (
        f"never in {never} of {len(numbers)}"
        if never
        else f"{statistics.fmean(numbers):,.0f} ± {statistics.stdev(numbers):,.0f}"
    )


def _overhead(runs: Sequence[Run], baseline: Sequence[Run]) -> str:
    return _requests(runs, baseline, runs[0]["share"] * runs[0]["targets"]) if runs else ""


def _spread(runs: Sequence[Run], _: Sequence[Run]) -> str:
    numbers = list(_numbers(runs))
    if len(numbers) < 2 or math.inf in numbers:
        return ""
    return f"{100 * statistics.stdev(numbers) / statistics.fmean(numbers):.1f}"


def _ratio(runs: Sequence[Run], baseline: Sequence[Run]) -> str:
    return f"{_mean(runs) / _mean(baseline):.2f}" if runs and baseline and _mean(baseline) else ""


def flights(runs: Sequence[Run]) -> None:
    """Print requests and seconds by the picks in flight, and their geometric means relative to one in flight."""
    by: dict[tuple[str, Way], list[Run]] = defaultdict(list)
    for each in runs:
        by[each["site"], way_of(each)].append(each)
    sites = list(dict.fromkeys(each["site"] for each in runs))
    ways = sorted({way for _, way in by} - {ALONE})
    names = [f"{way.in_flight}, {way.most_out}" for way in ways]
    print(f"| site | 1 | {' | '.join(names)} |\n|---|--:|{'--:|' * len(ways)}")
    for site in sites:
        alone = _to(by[site, ALONE], SHARE)
        cells = [f"{_to(by[site, way], SHARE) / alone:.3f}" if by[site, way] else "" for way in ways]
        print(f"| {site} | {alone:,.0f} | {' | '.join(cells)} |")
    for title, share in (("to 90 %", SHARE), ("to half", 0.5), ("seconds", None)):
        for way, name in zip(ways, names, strict=True):
            base = way._replace(most_out="any") if share is None else ALONE
            compared = [site for site in sites if by[site, way] and by[site, base]]
            ratios = [_to(by[site, way], share) / _to(by[site, base], share) for site in compared]
            if ratios:
                mean = math.exp(statistics.fmean(map(math.log, ratios)))
                print(f"{name}, {title}, {len(ratios)} sites: {mean:.3f}, {min(ratios):.2f} to {max(ratios):.2f}")


def _to(runs: Sequence[Run], share: float | None) -> float:
    """Return the mean requests until a share of the targets; with ``None`` the seconds until 90 %."""
    values = [each["seconds"] if share is None else each["requests"][str(share)] for each in runs]
    return statistics.fmean(math.inf if value is None else value for value in values)


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    subparser = commands.add_parser("run")
    subparser.add_argument("paths", metavar="SITE.sqlite", type=Path, nargs="+")
    subparser.add_argument(
        "--policies", nargs="+", default=[*POLICIES], help="names of these, 'parts', or as for focus-compare"
    )
    subparser.add_argument("--seeds", type=int, default=10)
    subparser.add_argument("--in-flight", type=int, nargs="+", default=[1])
    subparser.add_argument("--sigma", type=float, default=0.0, help="of log-normal latencies; 0: all are equal")
    subparser.add_argument("--most-out", nargs="+", default=["any"], help="'any', 'rule', or like '8+n/8'")
    subparser.add_argument("--output", type=Path, default=Path("branching.jsonl"))
    subparser.add_argument("--jobs", type=int, default=2)
    subparser.add_argument("--people", action="store_true", help="never ask for pictures, styles and the like")
    subparser = commands.add_parser("tables")
    subparser.add_argument("file", type=Path)
    subparser.add_argument("--share", type=float, choices=SHARES, default=SHARE, help="of the targets (default 0.9)")
    subparser = commands.add_parser("flights")
    subparser.add_argument("file", type=Path)
    options = parser.parse_args()
    if options.command == "tables":
        tables(read(options.file), options.share)
    elif options.command == "flights":
        flights(read(options.file))
    else:
        ways = [
            Way(in_flight, options.sigma if in_flight > 1 else 0.0, rule, options.people)
            for in_flight in options.in_flight
            for rule in (options.most_out if in_flight > 1 else ["any"])
        ]
        run(options.paths, options.policies, ways, seeds=options.seeds, output=options.output, jobs=options.jobs)


if __name__ == "__main__":
    main()
