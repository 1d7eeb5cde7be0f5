"""The default policy next to the crawlers of the SB-CLASSIFIER paper, on recorded sites.

Measured: requests until 90 % of the targets in simulated crawls; HEADs, redirects and dead links count, nothing is left out
for its extension. A crawl ends there, so what it would find later is not measured. Runs are kept in a file as they end, and
none is made twice; tables are made of the file. ::

    python benchmarks/sites.py fetch sklearn2 lily
    python benchmarks/sites.py record sklearn2 lily
    python benchmarks/branching.py run sites/sklearn2.sqlite sites/lily.sqlite --output runs.jsonl
    python benchmarks/branching.py run profiles/*.sqlite --output runs.jsonl --policies default SB-CLASSIFIER
    python benchmarks/branching.py tables runs.jsonl
    python benchmarks/branching.py run sites/*.sqlite --output parts.jsonl --seeds 5 --policies default parts SB-CLASSIFIER
    python benchmarks/branching.py run sites/*.sqlite --output flight.jsonl --seeds 5 --policies default --in-flight 16 64
    python benchmarks/branching.py run sites/*.sqlite --output flight.jsonl --seeds 5 --policies default --in-flight 1 16 64 \
        --sigma 0.5 --most-out any rule 8+n/8
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
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.compare.specs import PolicySpec
from scrapy_focus.core.outstanding import most_out
from scrapy_focus.core.stop import Plateau
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.policies.branching.arms import TARGETS
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.recordings.format import RecordedSite
from scrapy_focus.replay.latency import LogNormal
from scrapy_focus.replay.leases import Leases
from scrapy_focus.replay.simulate import simulate
from scrapy_focus.replay.truth import SiteTruth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from scrapy_focus.core.types import Outcome

SHARE = 0.9  # of the targets, until which requests are counted
DIFFER = 0.1  # sites on which FOCUSED, SB-CLASSIFIER and BFS differ by more than this have something to learn
POLICIES = {
    "default": "BranchingBandit",
    "SB-CLASSIFIER": "TagPath:blocked=()",
    "FOCUSED": "FOCUSED",
    "BFS": "BFS",
    "RANDOM": "RANDOM",
    "OMNISCIENT": "OMNISCIENT",
}
PARTS = {  # the default policy with one part left out, or otherwise
    "failures not counted": "branching.AsReleased",
    "no learned choice": "BranchingBandit:candidates=1",
    "no planning": "BranchingBandit:horizon=0",
    "one pull planned": "BranchingBandit:horizon=1",
    "no noise": "BranchingBandit:noise=0.0",
    "no exploration": "BranchingBandit:explore=0.0",
    "no cold start": "BranchingBandit:targets=()",
    "bytes saved": "BranchingBandit:unit='bytes'",
}
NO_CHANCE = ("FOCUSED", "BFS", "OMNISCIENT")  # for which one seed is all
Run = dict[str, Any]


class AsReleased(BranchingBandit):
    """The accounting of the released SB-CLASSIFIER: a pull that ended in no page does not count, and earns nothing."""

    def learn(self, outcome: Outcome) -> None:
        if outcome.is_html or self.arms.kinds[outcome.pick.arm] == TARGETS:
            super().learn(outcome)
        else:
            self.release(outcome.pick)


class Until(Plateau):
    """Ends a crawl when so many targets are found."""

    def __init__(self, targets: float) -> None:
        super().__init__()
        self.targets = targets

    def reached(self, requests: int, targets: float, cost: float | None = None) -> bool:
        return targets >= self.targets


def rule_of(text: str) -> Callable[[int, int], int] | None:
    """Return what says how many picks may be out: ``any``, ``rule`` for the built-in one, or ``K+n/D``."""
    if text in ("any", "rule"):
        return most_out if text == "rule" else None
    first, _, divisor = text.partition("+n/")
    return lambda outcomes, _: int(first) + outcomes // int(divisor)


_known: dict[Path, tuple[RecordedSite, SiteTruth]] = {}  # of this process: the last site


def crawl(path: Path, label: str, text: str, seed: int, in_flight: int, sigma: float, rule: str) -> Run:
    """Crawl until enough is found, and say what that took."""
    if path not in _known:
        _known.clear()
        site = RecordedSite(path)
        _known[path] = site, SiteTruth(site, FilesGoal(), ignored=())
    site, truth = _known[path]
    whole = truth.exhaustive
    started = process_time()
    harvest = simulate(
        PolicySpec.parse(text).make(), FilesGoal(), site, seed=seed, ignored=(), truth=truth,
        stop=Until(math.ceil(SHARE * whole.worth)), concurrency=Leases(slots=in_flight, most_out=rule_of(rule)),
        latency=0.0 if in_flight == 1 else LogNormal(1.0, sigma),
    )  # fmt: skip
    reached = harvest.found >= SHARE * whole.worth
    at = int(np.argmax(reached))
    return {
        "site": path.stem, "policy": label, "spec": text, "seed": seed, "in_flight": in_flight, "sigma": sigma,
        "most_out": rule, "requests": at if reached.any() else None,
        "half": int(np.argmax(harvest.found >= whole.worth / 2)), "targets": whole.worth, "all": whole.requests,
        "waste": int(harvest.other_bytes[at]),
        "seconds": float(harvest.seconds[at]), "cpu": process_time() - started,
    }  # fmt: skip


def run(paths: Sequence[Path], policies: Sequence[str], flights: Sequence[tuple[int, float, str]], **how: Any) -> None:
    """Make all runs that the file has not, site by site, and add each to it as it ends."""
    seeds, output, jobs = how["seeds"], how["output"], how["jobs"]
    done = {(each["site"], each["spec"], each["seed"], *flight_of(each)) for each in read(output)}
    tasks = [
        (path, label, (POLICIES | PARTS).get(label, label), seed, *flight)
        for path in paths
        for label in [each for name in policies for each in (PARTS if name == "parts" else [name])]
        for flight in flights
        for seed in range(1 if label in NO_CHANCE else seeds)
    ]
    left = [task for task in tasks if (task[0].stem, *task[2:]) not in done]
    with ProcessPoolExecutor(jobs) as executor, output.open("a", encoding="utf-8") as file:
        futures = [executor.submit(crawl, *task) for task in left]
        for number, future in enumerate(as_completed(futures), 1):
            made = future.result()
            print(json.dumps(made), file=file, flush=True)
            print(f"{number}/{len(left)} {made['site']} {made['policy']} {made['seed']}", file=sys.stderr)


def flight_of(made: Run) -> tuple[int, float, str]:
    """Return how many were in flight in a run, the spread of the latency, and the rule for what is out."""
    return made["in_flight"], made.get("sigma", 0.0), made.get("most_out", "any")


def read(path: Path) -> list[Run]:
    """Return the runs of a file, none if there is no file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def tables(runs: Sequence[Run]) -> None:
    """Print requests, overhead and the ratio to SB-CLASSIFIER of each policy on each site, and the geometric means."""
    by: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for each in runs:
        by[each["site"], each["policy"]].append(each)
    sites = list(dict.fromkeys(each["site"] for each in runs))
    policies = list(dict.fromkeys([*POLICIES, *(each["policy"] for each in runs)]))
    policies = [policy for policy in policies if any((site, policy) in by for site in sites)]
    for title, cell in (("requests", _requests), ("overhead", _overhead), ("ratio", _ratio)):
        print(f"\n{title}\n\n| site | URLs | targets | {' | '.join(policies)} |\n|---|--:|--:|{'--:|' * len(policies)}")
        for site in sites:
            one = next(each for each in runs if each["site"] == site)
            cells = [cell(by[site, policy], by[site, "SB-CLASSIFIER"]) for policy in policies]
            print(f"| {site} | {one['all']:,} | {one['targets']:,.0f} | {' | '.join(cells)} |")
    print()
    for policy in policies:
        for name, group in (("something to learn", True), ("nothing to learn", False)):
            compared = [site for site in sites if by[site, policy] and by[site, "SB-CLASSIFIER"]]
            means = [
                (_mean(by[site, policy]), _mean(by[site, "SB-CLASSIFIER"]))
                for site in compared
                if differs(by, site) is group
            ]
            ratios = [mine / its for mine, its in means if math.isfinite(mine) and math.isfinite(its)]
            if ratios:
                geometric = math.exp(statistics.fmean(map(math.log, ratios)))
                print(
                    f"{policy}, {len(ratios)} sites with {name}: {geometric:.3f}, {min(ratios):.2f} to {max(ratios):.2f}"
                )


def differs(by: dict[tuple[str, str], list[Run]], site: str) -> bool | None:
    """Whether FOCUSED, SB-CLASSIFIER and BFS differ on a site, relative to the least; ``None`` where not all of them ran."""
    runs = [by[site, policy] for policy in ("FOCUSED", "SB-CLASSIFIER", "BFS")]
    return max(map(_mean, runs)) > (1 + DIFFER) * min(map(_mean, runs)) if all(runs) else None


def _mean(runs: Sequence[Run]) -> float:
    return statistics.fmean(_numbers(runs))


def _numbers(runs: Sequence[Run]) -> Iterator[float]:
    return (math.inf if each["requests"] is None else each["requests"] for each in runs)


def _requests(runs: Sequence[Run], _: Sequence[Run], less: float = 0.0) -> str:
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
    return _requests(runs, baseline, SHARE * runs[0]["targets"]) if runs else ""


def _ratio(runs: Sequence[Run], baseline: Sequence[Run]) -> str:
    return f"{_mean(runs) / _mean(baseline):.2f}" if runs and baseline else ""


def flights(runs: Sequence[Run]) -> None:
    """Print requests and seconds by what is in flight, and their geometric means to one in flight."""
    by: dict[tuple[str, tuple[int, float, str]], list[Run]] = defaultdict(list)
    for each in runs:
        by[each["site"], (1, 0.0, "any") if each["in_flight"] == 1 else flight_of(each)].append(each)
    sites = list(dict.fromkeys(each["site"] for each in runs))
    ways = sorted({way for _, way in by} - {(1, 0.0, "any")})
    names = [f"{in_flight}, {rule}" for in_flight, _, rule in ways]
    print(f"| site | 1 | {' | '.join(names)} |\n|---|--:|{'--:|' * len(ways)}")
    for site in sites:
        alone = _mean(by[site, (1, 0.0, "any")])
        cells = [f"{_mean(by[site, way]) / alone:.3f}" if by[site, way] else "" for way in ways]
        print(f"| {site} | {alone:,.0f} | {' | '.join(cells)} |")
    for title, value in (("to 90 %", _mean), ("to half", _half), ("seconds", _seconds)):
        for way, name in zip(ways, names, strict=True):
            base = (way[0], way[1], "any") if value is _seconds else (1, 0.0, "any")
            ratios = [
                value(by[site, way]) / value(by[site, base]) for site in sites if by[site, way] and by[site, base]
            ]
            if ratios:
                mean = math.exp(statistics.fmean(map(math.log, ratios)))
                print(f"{name}, {title}, {len(ratios)} sites: {mean:.3f}, {min(ratios):.2f} to {max(ratios):.2f}")


def _half(runs: Sequence[Run]) -> float:
    return statistics.fmean(each["half"] for each in runs)


def _seconds(runs: Sequence[Run]) -> float:
    return statistics.fmean(each["seconds"] for each in runs)


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
    subparser = commands.add_parser("tables")
    subparser.add_argument("file", type=Path)
    subparser = commands.add_parser("flights")
    subparser.add_argument("file", type=Path)
    options = parser.parse_args()
    if options.command == "tables":
        tables(read(options.file))
    elif options.command == "flights":
        flights(read(options.file))
    else:
        ways = [
            (in_flight, options.sigma if in_flight > 1 else 0.0, rule if in_flight > 1 else "any")
            for in_flight in options.in_flight
            for rule in (options.most_out if in_flight > 1 else ["any"])
        ]
        run(
            options.paths, options.policies, ways, seeds=options.seeds, output=options.output, jobs=options.jobs
        )  # fmt: skip


if __name__ == "__main__":
    main()
