"""The savings and losses of stopping early: a limit on the cost of the next target, and the rule of the SB-CLASSIFIER
paper.

Whole simulated crawls of recorded sites by the default policy; where each rule would have ended them is found out
afterwards from the same crawl, so the rules are compared on equal terms. Saved are requests, in % of the whole crawl; lost
are targets, in % of all. The rule of the paper has the values of :class:`~scrapy_focus.core.stop.Plateau`, which are ours.
``first`` compares how patient a limit is before the first find, in times of its patience later; with ``--types`` that no
site has, what that costs where nothing is to be found. ``published`` asks the rule of the paper alone, after crawls of
SB-CLASSIFIER, with some values of the parameters whose values we do not know. ::

    python benchmarks/stopping.py run sites/*.sqlite profiles/*.sqlite --seeds 3 --output stops.jsonl
    python benchmarks/stopping.py tables stops.jsonl
    python benchmarks/stopping.py first stops.jsonl
    python benchmarks/stopping.py run profiles/*.sqlite --types epub --output none.jsonl
    python benchmarks/stopping.py first none.jsonl
    python benchmarks/stopping.py published sites/*.sqlite --seeds 5
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.stop import CostLimit, Plateau
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.replay.metrics import early_stop
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.tagpath import TagPath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.core.stop import StopRule

LIMITS = (20, 50, 100, 200)
FIRST = (1, 2, 3, 5, 10)  # times the patience, before the first find
# gamma weighs the newest slope; where it weighs the earlier ones, it is 1 - decay
PUBLISHED = [
    Plateau(),
    *(Plateau(window=100, slope=slope, decay=decay) for slope in (0.2, 0.02) for decay in (0.05, 0.95)),
]


class Watched(Plateau):
    """Asks other rules, records when each would have ended the crawl, and never ends it."""

    stops: dict[
        str, tuple[int, float]
    ]  # of the last crawl: requests and targets by rule; the rule is copied for a crawl

    def __init__(self) -> None:
        super().__init__()
        self.rules: dict[str, StopRule] = {f"cost limit {limit}": CostLimit(limit) for limit in LIMITS}
        for limit in LIMITS:
            patience = CostLimit(limit).patience
            self.rules |= {f"{limit}, first {n}": CostLimit(limit, first=n * patience) for n in FIRST}
        self.rules["plateau"] = Plateau()

    def reached(self, requests: int, targets: float, cost: float | None = None) -> bool:
        for name, rule in self.rules.items():
            if name not in Watched.stops and rule.reached(requests, targets, cost):
                Watched.stops[name] = requests, targets
        return False


def crawl(path: Path, seed: int, types: Sequence[str]) -> dict[str, Any]:
    """Crawl a whole site, and return when each rule would have ended that."""
    Watched.stops = {}
    goal = FilesGoal(types=types)
    harvest = simulate(BranchingBandit(), goal, path, seed=seed, stop=Watched())
    first = int((harvest.found > 0).argmax()) if harvest.found[-1] else None
    return {"site": path.stem, "seed": seed, "requests": harvest.requests, "targets": float(harvest.found[-1]),
            "first": first, "stops": Watched.stops}  # fmt: skip


def run(paths: Sequence[Path], seeds: int, output: Path, jobs: int, types: Sequence[str]) -> None:
    """Make all crawls that the file lacks, and add each to it as it ends."""
    done = {(each["site"], each["seed"]) for each in read(output)}
    tasks = [(path, seed) for path in paths for seed in range(seeds) if (path.stem, seed) not in done]
    with ProcessPoolExecutor(jobs) as executor, output.open("a", encoding="utf-8") as file:
        for number, future in enumerate(as_completed([executor.submit(crawl, *task, types) for task in tasks]), 1):
            made = future.result()
            print(json.dumps(made), file=file, flush=True)
            print(f"{number}/{len(tasks)} {made['site']} {made['seed']}", file=sys.stderr)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the crawls of a file, none if there is no file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def tables(crawls: Sequence[dict[str, Any]]) -> None:
    """Print what each rule saves and loses on each site, as means over the seeds, and over all sites."""
    rules = [*(f"cost limit {limit}" for limit in LIMITS), "plateau"]
    print(f"| site | requests | targets | {' | '.join(rules)} |\n|---|--:|--:|{'--:|' * len(rules)}")
    means: dict[str, list[tuple[float, float]]] = {rule: [] for rule in rules}
    for site in dict.fromkeys(each["site"] for each in crawls):
        mine = [each for each in crawls if each["site"] == site]
        cells = []
        for rule in rules:
            stops = [each["stops"].get(rule, (each["requests"], each["targets"])) for each in mine]
            saved = [100 * (1 - stop[0] / each["requests"]) for stop, each in zip(stops, mine, strict=True)]
            lost = [100 * (1 - stop[1] / max(1, each["targets"])) * (each["targets"] > 0)
                    for stop, each in zip(stops, mine, strict=True)]  # fmt: skip
            means[rule].append((statistics.fmean(saved), statistics.fmean(lost)))
            cells.append("{:.0f} / {:.1f}".format(*means[rule][-1]))
        print(f"| {site} | {mine[0]['requests']:,} | {mine[0]['targets']:,.0f} | {' | '.join(cells)} |")
    all_means = [[statistics.fmean(part) for part in zip(*means[rule], strict=True)] for rule in rules]
    print(f"| mean | | | {' | '.join('{:.0f} / {:.1f}'.format(*each) for each in all_means)} |")


def first(crawls: Sequence[dict[str, Any]]) -> None:
    """Print for each limit and patience before the first find: requests and finds of all crawls together, and how many
    crawls ended before their first find though there was one.
    """
    print(f"| limit | {' | '.join(f'{n} times' for n in FIRST)} |\n|---|{'--:|' * len(FIRST)}")
    for limit in LIMITS:
        cells = []
        for n in FIRST:
            stops = [each["stops"].get(f"{limit}, first {n}", (each["requests"], each["targets"])) for each in crawls]
            early = sum(not stop[1] and each["targets"] > 0 for stop, each in zip(stops, crawls, strict=True))
            requests, targets = (sum(part) for part in zip(*stops, strict=True))
            cells.append(f"{requests:,} / {targets:,.0f} / {early}")
        print(f"| {limit} | {' | '.join(cells)} |")
    firsts = sorted(each["first"] for each in crawls if each["first"] is not None)
    whole = sum(each["requests"] for each in crawls)
    print(f"\n{len(crawls)} crawls of {whole:,} requests as a whole; first finds after {firsts or 'none'}")


def published(paths: Sequence[Path], seeds: int) -> None:
    """Print what the rule of the paper would have saved and lost in crawls of SB-CLASSIFIER that nothing stops."""
    rules = [f"{rule.window:,} / {rule.slope:g} / {rule.decay:g}" for rule in PUBLISHED]
    print(f"| site | requests | {' | '.join(rules)} |\n|---|--:|{'--:|' * len(rules)}")
    for path in paths:
        crawls = [simulate(TagPath(blocked=()), FilesGoal(), path, seed=seed, ignored=()) for seed in range(seeds)]
        cells = []
        for rule in PUBLISHED:
            stops = [early_stop(crawl, rule) for crawl in crawls]
            saved, lost = (statistics.fmean(part) for part in ([s.saved for s in stops], [s.lost for s in stops]))
            cells.append(f"{saved:.0f} / {lost:.1f}")
        requests = statistics.fmean(crawl.requests for crawl in crawls)
        print(f"| {path.stem} | {requests:,.0f} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    subparser = commands.add_parser("run")
    subparser.add_argument("paths", metavar="SITE.sqlite", type=Path, nargs="+")
    subparser.add_argument("--seeds", type=int, default=3)
    subparser.add_argument("--output", type=Path, default=Path("stops.jsonl"))
    subparser.add_argument("--jobs", type=int, default=2)
    subparser.add_argument("--types", nargs="+", default=["data"])
    for name in ("tables", "first"):
        commands.add_parser(name).add_argument("file", type=Path)
    subparser = commands.add_parser("published")
    subparser.add_argument("paths", metavar="SITE.sqlite", type=Path, nargs="+")
    subparser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    if options.command == "run":
        run(options.paths, options.seeds, options.output, options.jobs, options.types)
    elif options.command == "published":
        published(options.paths, options.seeds)
    else:
        (tables if options.command == "tables" else first)(read(options.file))


if __name__ == "__main__":
    main()
