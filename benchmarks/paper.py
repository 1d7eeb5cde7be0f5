"""The tables of the SB-CLASSIFIER paper, on recorded sites: crawlers, parameters, variants, and profiles of its sites.

Measured: simulated crawls without a network, one request in flight, HEADs, redirects and dead links counted, no
extension ignored (as in the paper's own simulation); the percentage of the requests of an exhaustive crawl until 90 %
of the targets, and of its non-target volume until 90 % of the volume of the targets, as mean and standard deviation
over the seeds. The variants of the classifier have a misclassification rate, too: of the predictions that a crawl acts
on, which are made when a link is found. Not measured: time, and what depends on it. SB-ORACLE, TP-OFF, TRES-FILES and
OMNISCIENT use information that no real crawl has. ::

    python benchmarks/sites.py fetch sklearn2 lily      # real sites, from Debian's documentation packages
    python benchmarks/sites.py record sklearn2 lily     # writes sites/NAME.sqlite
    python benchmarks/paper.py crawlers sites/sklearn2.sqlite sites/lily.sqlite
    python benchmarks/paper.py parameters sites/sklearn2.sqlite sites/lily.sqlite
    python benchmarks/paper.py variants sites/sklearn2.sqlite sites/lily.sqlite
    python benchmarks/paper.py groups sites/sklearn2.sqlite sites/lily.sqlite
    python benchmarks/paper.py record-profiles --scale 1 --requests 6000 --out profiles
    python benchmarks/paper.py crawlers profiles/*.sqlite
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from profiles.profiles import PROFILES, ProfileSite
from scrapy_focus.core.table_lines import text_of
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.compare.comparison import compare
from scrapy_focus.lab.compare.pairs import paired
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.metrics import METRICS
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.learn.arms import REWARD_COLUMNS, rewards_in
from scrapy_focus.policies.tagpath.policy import PROBES, TARGETS, TagPath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus import Link
    from scrapy_focus.lab.compare.comparison import Cell, Comparison
    from scrapy_focus.lab.compare.runs import Run

# As in the paper's own simulation, no extension is ignored.
CRAWLERS = (
    "SB-CLASSIFIER=TagPath:blocked=()", "SB-ORACLE", "FOCUSED", "TP-OFF", "TRES-FILES", "BFS", "DFS", "RANDOM",
    "OMNISCIENT",
)  # fmt: skip
PARAMETERS = {
    "alpha": (0.1, 0.3, 1.0, 2 * math.sqrt(2), 10.0, 30.0),
    "n": (1, 2, 3, 4),
    "theta": (1e-9, 0.5, 0.6, 0.75, 0.85, 0.95, 1.0),  # from one group of all links to one of each path
    "m": (6, 8, 10, 12, 14),
}
#: The variants of the classifier by their names, the default first; the last ones are ours.
VARIANTS = (
    "URL_ONLY-LR", "URL_ONLY-SVM", "URL_ONLY-NB", "URL_ONLY-PA",
    "URL_CONT-LR", "URL_CONT-SVM", "URL_CONT-NB", "URL_CONT-PA",
    "URL_ONLY-LR:case_sensitive=True", "URL_CONT-LR:case_sensitive=True",
)  # fmt: skip
_GAIN = 2.0  # percentage points of the requests from which a variant gains or loses
_LUCK = 0.05  # p-value from which it may be luck


def crawlers(paths: Sequence[Path], seeds: int, jobs: int, *, also: Sequence[str] = ()) -> None:
    """Print tables for requests and for volume: one row for each crawler, one column for each site."""
    comparison = compare([*CRAWLERS, *also], paths, seeds=range(seeds), ignored=(), jobs=jobs, progress=_tell)
    for metric in ("requests_90", "waste_90", "overhead_90"):
        _print(comparison, metric, comparison.labels)


def parameters(paths: Sequence[Path], seeds: int, jobs: int) -> None:
    """Print a table for each hyper-parameter of SB-CLASSIFIER, the others at their defaults."""
    for name, values in PARAMETERS.items():
        specs = [f"{name} = {value:.3g}=TagPath:blocked=(),{name}={value!r}" for value in values]
        comparison = compare(specs, paths, seeds=range(seeds), ignored=(), jobs=jobs, progress=_tell)
        for metric in ("requests_90", "waste_90"):
            _print(comparison, metric, comparison.labels)


class Judged(TagPath):
    """Counts its predictions by the truth, in shape (3, 2): pages, targets and all others, predicted page or target."""

    truth: SiteTruth

    def __init__(self, **params: object) -> None:
        super().__init__(**params, blocked=())  # type: ignore[arg-type]
        self.predictions = np.zeros((3, 2))

    def _classify(self, link: Link, *, seed: bool) -> int | None:
        arm = super()._classify(link, seed=seed)
        if arm != PROBES and not seed:
            self._count(link, arm == TARGETS)
        return arm

    def _classify_probes(self) -> None:
        waiting = [link for link, _ in self.frontier.scan(PROBES)]
        super()._classify_probes()
        targets = {link.key for link, _ in self.frontier.scan(TARGETS)}
        for link in waiting:
            self._count(link, link.key in targets)

    def _count(self, link: Link, is_target: bool) -> None:
        self.predictions[{"page": 0, "target": 1}.get(self.truth.kind(link.url), 2), int(is_target)] += 1


def variants(paths: Sequence[Path], seeds: int) -> None:
    """Print requests and misclassified links of the variants of the classifier, and the differences to the default."""
    requests = np.zeros((len(VARIANTS), len(paths), seeds))
    confusions = np.zeros((len(VARIANTS), len(paths), seeds, 3, 2))  # in % of all predictions
    for j, path in enumerate(paths):
        site = RecordedSite(path)
        truth = SiteTruth(site, FilesGoal())
        for i, text in enumerate(VARIANTS):
            for seed in range(seeds):
                policy = Judged(**PolicySpec.parse(text).params)
                policy.truth = truth
                harvest = simulate(policy, FilesGoal(), site, seed=seed, ignored=(), truth=truth)
                requests[i, j, seed] = METRICS["requests_90"].of(harvest)
                confusions[i, j, seed] = 100 * policy.predictions / policy.predictions.sum()
            print(f"{path.stem} {text}: {requests[i, j]}", file=sys.stderr)
    _print_variants([path.stem for path in paths], requests, confusions.mean(axis=2))


def _print_variants(sites: Sequence[str], requests: NDArray[np.float64], confusions: NDArray[np.float64]) -> None:
    """Print four tables; requests by variant, site and seed, confusions by variant and site."""
    labels = [PolicySpec.parse(text).label for text in VARIANTS]
    means, default = requests.mean(axis=2), requests[0]
    pairs = [[paired(*both) for both in zip(rows, default, strict=True)] for rows in requests]
    cells = [
        [
            f"{'**' * gains}{mean:.1f} ± {sd:.1f}{'**' * gains}"
            for mean, sd, gains in zip(row, sds, (row <= means[0] - _GAIN).tolist(), strict=True)
        ]
        for row, sds in zip(means, requests.std(axis=2, ddof=1), strict=True)
    ]
    rates = [f"{_misclassified(matrix):.2f}" for matrix in confusions.mean(axis=1)]
    _print_table("requests_90", [*sites, "MR"], labels, [[*row, rate] for row, rate in zip(cells, rates, strict=True)])
    _print_table(
        "difference to the default", sites, labels[1:],
        [[f"{pair.difference:+.1f} ± {pair.sd:.1f}{'*' * (pair.p < _LUCK)}" for pair in row] for row in pairs[1:]],
    )  # fmt: skip
    _print_table(
        "misclassified, %", sites, labels, [[f"{_misclassified(matrix):.2f}" for matrix in row] for row in confusions]
    )
    _print_table(
        "% of all predictions", [f"{true} as {said}" for true in ("page", "target", "other") for said in ("page", "target")],
        labels, [[f"{share:.2f}" for share in matrix.ravel()] for matrix in confusions.mean(axis=1)],
    )  # fmt: skip


def _misclassified(confusion: NDArray[np.float64]) -> float:
    """Return the share of wrong predictions for pages and targets, in %."""
    known = confusion[:2]
    return 100 * float((known[0, 1] + known[1, 0]) / known.sum())


def groups(paths: Sequence[Path], seeds: int) -> None:
    """Print the mean rewards of the groups of SB-CLASSIFIER at the end of its crawls, as Figure 5 and Table 6: averages
    over the seeds, and the share of the finds that the group with the best mean brought.
    """
    print(f"| site | {' | '.join(REWARD_COLUMNS)} | finds of the best |")
    print("|---" + "|--:" * (len(REWARD_COLUMNS) + 1) + "|")
    for path in paths:
        found = [_groups(path, seed) for seed in range(seeds)]
        *numbers, share = (statistics.fmean(values) for values in zip(*found, strict=True))
        print(f"| {path.stem} | {' | '.join(map(text_of, numbers))} | {share:.1%} |", flush=True)


def _groups(path: Path, seed: int) -> list[float]:
    """Return the rewards of groups after a crawl, 0 for groups that it does not have, and the share of the best one."""
    policy = TagPath(blocked=())
    simulate(policy, FilesGoal(), path, seed=seed, ignored=())
    numbers, stats = rewards_in(policy.tables()), policy.stats
    share = float(stats.sums[stats.means.argmax()] / max(stats.sums.sum(), 1))
    return [*numbers, *[0.0] * (len(REWARD_COLUMNS) - len(numbers)), share]


def record_profiles(scale: float, requests: float, out: Path, names: Sequence[str]) -> None:
    """Record the synthetic sites, of so many requests each at most, and print their properties."""
    out.mkdir(parents=True, exist_ok=True)
    print("| profile | HTML pages | targets | neither | pages with a target | depth of targets | URLs |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name in names or PROFILES:
        path = out / f"{name}.sqlite"
        profile = PROFILES[name]
        of_all = requests / (profile.pages + profile.targets + profile.other)
        site = ProfileSite(profile, scale=min(scale, of_all), seed=0)
        if not path.exists() or not RecordedSite(path).completeness().finished:
            record_site(site, path, root=f"http://{name}.example/")
        print(
            f"| {name} | {site.n_pages:,} | {site.n_targets:,} | {site.n_other:,} | {site.density:.1%} | "
            f"{site.depth:.1f} ± {site.depth_spread:.1f} | {RecordedSite(path).n_urls:,} |",
            flush=True,
        )


def _print(comparison: Comparison, metric: str, labels: Sequence[str]) -> None:
    rows = [[_cell(comparison.cell(site, label, metric)) for site in comparison.sites] for label in labels]
    _print_table(metric, list(comparison.sites), labels, rows)


def _print_table(title: str, columns: Sequence[str], labels: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n{title}\n\n| | {' | '.join(columns)} |")
    print("|---|" + "---|" * len(columns))
    for label, row in zip(labels, rows, strict=True):
        print(f"| {label} | {' | '.join(row)} |", flush=True)


def _cell(cell: Cell) -> str:
    if cell.failed or not cell.n:
        return f"{cell.failed} failed"
    if cell.never:
        return f"never ({cell.never} of {cell.n})"
    return f"{cell.mean:.1f} ± {0 if math.isnan(cell.sd) else cell.sd:.1f}"


def _tell(run: Run, done: int, planned: int) -> None:
    print(f"{done}/{planned} {run.site} {run.policy} {run.seed}: {run.elapsed:.0f} s {run.error}", file=sys.stderr)


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("crawlers", "parameters", "variants"):
        subparser = commands.add_parser(command)
        subparser.add_argument("paths", metavar="SITE.sqlite", type=Path, nargs="+")
        subparser.add_argument("--seeds", type=int, default=5)
        if command != "variants":
            subparser.add_argument("--jobs", type=int, default=2)
    subparser = commands.add_parser("groups")
    subparser.add_argument("paths", metavar="SITE.sqlite", type=Path, nargs="+")
    subparser.add_argument("--seeds", type=int, default=5)
    subparser = commands.add_parser("record-profiles")
    subparser.add_argument("names", metavar="PROFILE", nargs="*", choices=[[], *PROFILES])
    subparser.add_argument("--scale", type=float, default=0.05)
    subparser.add_argument("--requests", type=float, default=math.inf, help="of each site, at most")
    subparser.add_argument("--out", type=Path, default=Path("profiles"))
    options = parser.parse_args()
    if options.command == "record-profiles":
        record_profiles(options.scale, options.requests, options.out, options.names)
    elif options.command == "variants":
        variants(options.paths, options.seeds)
    elif options.command == "groups":
        groups(options.paths, options.seeds)
    else:
        (crawlers if options.command == "crawlers" else parameters)(options.paths, options.seeds, options.jobs)


if __name__ == "__main__":
    main()
