"""What policies find with their first requests on recorded sites, and where they lose against the link floor.

Each crawl is simulated as people crawl (no pictures, styles and the like) and ends with 90 % of the files. The default
policy starts from the prior of ``--priors``, which is not fitted to the site itself (``prior.py leave-one-out``), or
from that of the package::

    python benchmarks/early_files.py run sites/*.sqlite --priors priors --out runs.jsonl
    python benchmarks/early_files.py run sites/*.sqlite --policies "BranchingBandit:prior=''" --out runs.jsonl
    python benchmarks/early_files.py tables runs.jsonl
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scrapy_focus.core.stop import Plateau
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.web.mime import blocked_extensions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OURS, FLOOR = "BranchingBandit", "LINK-FLOOR"
POLICIES = (OURS, "SB-CLASSIFIER", "KEYWORDS", "BFS", FLOOR)
DETERMINISTIC = frozenset(("KEYWORDS", "BFS", FLOOR))
REQUESTS = (100, 300, 1000)
TENTH = 10


class Until(Plateau):
    """Stops when so many targets are found."""

    def __init__(self, targets: float) -> None:
        super().__init__()
        self.targets = targets

    def reached(self, requests: int, targets: float, cost: float | None = None) -> bool:
        return targets >= self.targets


class Task(NamedTuple):
    """One crawl."""

    site: Path
    policy: str
    seed: int
    prior: str  # a file, "": that of the package

    @property
    def key(self) -> tuple[str, str, int]:
        return self.site.stem, self.policy, self.seed


def crawl(task: Task) -> dict[str, Any]:
    """Crawl a site until 90 % of its files are found, and return what was found when."""
    ignored = blocked_extensions(FilesGoal().types)
    params = f":prior={task.prior!r}" if task.policy == OURS and task.prior else ""
    with closing(RecordedSite(task.site)) as site:
        truth = SiteTruth(site, FilesGoal(), ignored=ignored)
        worth = truth.exhaustive.worth
        found = simulate(
            PolicySpec.parse(task.policy + params).make(), FilesGoal(), site, seed=task.seed, ignored=ignored,
            truth=truth, stop=Until(math.ceil(0.9 * worth)), learn_redirects=False,
        ).found  # fmt: skip

    def until(files: float) -> int | None:
        return int(np.argmax(found >= files)) if (found >= files).any() else None

    return {
        "site": task.site.stem, "policy": task.policy, "seed": task.seed, "targets": worth,
        "urls": truth.exhaustive.requests,
        **{f"found_{n}": float(found[min(n, len(found) - 1)]) for n in REQUESTS},
        "tenth": until(min(TENTH, 0.5 * worth)), "half": until(0.5 * worth), "most": until(0.9 * worth),
    }  # fmt: skip


def run(args: argparse.Namespace) -> None:
    """Make all crawls that the output lacks."""
    done = set()
    if args.out.exists():
        done = {(each["site"], each["policy"], each["seed"]) for each in _read(args.out)}
    tasks = []
    for site in args.sites:
        prior = args.priors / f"{site.stem}.npz" if args.priors else None
        for policy in args.policies:
            for seed in range(1 if policy in DETERMINISTIC else args.seeds):
                tasks.append(Task(site, policy, seed, str(prior) if prior and prior.exists() else ""))
    with ProcessPoolExecutor(args.processes) as pool, args.out.open("a") as out:
        for finished in as_completed([pool.submit(crawl, task) for task in tasks if task.key not in done]):
            print(json.dumps(finished.result()), file=out, flush=True)


def tables(args: argparse.Namespace) -> None:
    """Print what was found with the first requests, and where requests beyond the link floor are lost."""
    runs: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for each in _read(args.runs):
        runs[each["site"]][each["policy"]].append(each)
    runs = {site: of for site, of in runs.items() if of[OURS] and of[OURS][0]["targets"]}
    sites = sorted(runs, key=lambda site: runs[site][OURS][0]["urls"])
    policies = list(dict.fromkeys(policy for site in sites for policy in runs[site]))
    for name, unit in (
        *((f"found_{n}", f"files after {n:,} requests") for n in REQUESTS),
        ("half", "requests to half of the files"), ("most", "requests to 90 % of the files"),
    ):  # fmt: skip
        print(f"\n{unit[0].upper()}{unit[1:]}:\n")
        _print_row(["site", "URLs", "files", *policies])
        print("|---|" + "--:|" * (2 + len(policies)))
        for site in sites:
            of = runs[site]
            first = of[OURS][0]
            _print_row(
                [site, f"{first['urls']:,}", f"{first['targets']:,.0f}", *(_cell(of[p], name) for p in policies)]
            )
        _print_row(["geometric mean, to ours", "", "", *(_ratio(runs, sites, policy, name) for policy in policies)])
    _print_losses(runs, sites)


def _print_losses(runs: Any, sites: Sequence[str]) -> None:
    print("\nRequests of the default policy beyond those of the link floor:\n")
    _print_row(["site", "files", "to the tenth file", "from there to half", "from half to 90 %", "to 90 %, times"])
    print("|---|" + "--:|" * 5)
    for site in sites:
        if not runs[site][FLOOR]:
            continue
        ours, floor = ([_mean(runs[site][p], stage) for stage in ("tenth", "half", "most")] for p in (OURS, FLOOR))
        beyond = np.diff([0.0, *np.subtract(ours, floor)])
        files = f"{runs[site][OURS][0]['targets']:,.0f}"
        _print_row([site, files, *(f"{each:,.0f}" for each in beyond), f"{ours[2] / floor[2]:.2f}"])


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _mean(found: Sequence[dict[str, Any]], name: str) -> float:
    """Return the mean over seeds; nan if a crawl did not come so far."""
    return float(np.mean([math.nan if each[name] is None else each[name] for each in found])) if found else math.nan


def _cell(found: Sequence[dict[str, Any]], name: str) -> str:
    mean = _mean(found, name)
    if math.isnan(mean):
        return "-"
    spread = f" ± {np.std([each[name] for each in found], ddof=1):,.0f}" if len(found) > 1 else ""
    return f"{mean:,.0f}{spread}"


def _ratio(runs: Any, sites: Sequence[str], policy: str, name: str) -> str:
    """Return the geometric mean over sites; files count with one more, as some policies find none."""
    more = int(name.startswith("found"))
    ratios = [(_mean(runs[site][policy], name) + more) / (_mean(runs[site][OURS], name) + more) for site in sites]
    known = [ratio for ratio in ratios if not math.isnan(ratio)]
    return f"{math.exp(np.mean(np.log(known))):.2f}" if known else "-"


def _print_row(cells: Iterable[str]) -> None:
    print("| " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run", help="crawl recorded sites; goes on where an earlier run ended")
    running.add_argument("sites", nargs="+", type=Path, help="recordings")
    running.add_argument("--policies", nargs="+", default=POLICIES, help=f"default: {' '.join(POLICIES)}")
    running.add_argument("--priors", type=Path, help="folder with the prior of each site")
    running.add_argument("--seeds", type=int, default=10, help="crawls of each site by each policy (default: 10)")
    running.add_argument("--processes", type=int, default=2, help="crawls at a time (default: 2)")
    running.add_argument("--out", type=Path, default=Path("runs.jsonl"), help="file (default: runs.jsonl)")
    running.set_defaults(call=run)
    printing = commands.add_parser("tables", help="print the tables of a run")
    printing.add_argument("runs", type=Path, help="file of run")
    printing.set_defaults(call=tables)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
