"""The tables of the SB-CLASSIFIER paper, on recorded sites: crawlers, hyper-parameters, and the profiles of its sites.

Measured: simulated crawls without a network, one request in flight, HEADs, redirects and dead links counted, no
extension ignored (as in the paper's own simulation); the percentage of the requests of an exhaustive crawl until 90 %
of the targets, and of its non-target volume until 90 % of the volume of the targets, as mean and standard deviation
over the seeds. Not measured: time, and what depends on it. SB-ORACLE, TP-OFF and OMNISCIENT use information that no
real crawl has. ::

    python benchmarks/sites.py fetch sklearn2 lily      # real sites, from Debian's documentation packages
    python benchmarks/sites.py record sklearn2 lily     # writes sites/NAME.sqlite
    python benchmarks/paper.py crawlers sites/sklearn2.sqlite sites/lily.sqlite
    python benchmarks/paper.py parameters sites/sklearn2.sqlite sites/lily.sqlite
    python benchmarks/paper.py record-profiles --scale 0.05 --out profiles
    python benchmarks/paper.py crawlers profiles/*.sqlite
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from profiles.profiles import PROFILES, ProfileSite
from scrapy_focus.lab.compare.comparison import compare
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.folder import record_site

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.lab.compare.comparison import Cell, Comparison
    from scrapy_focus.lab.compare.runs import Run

# As in the paper's own simulation, no extension is ignored.
CRAWLERS = (
    "SB-CLASSIFIER=TagPath:blocked=()", "SB-ORACLE", "FOCUSED", "TP-OFF", "BFS", "DFS", "RANDOM",
    "OMNISCIENT",
)  # fmt: skip
PARAMETERS = {
    "alpha": (0.1, 0.3, 1.0, 2 * math.sqrt(2), 10.0, 30.0),
    "n": (1, 2, 3, 4),
    "theta": (0.5, 0.6, 0.75, 0.85, 0.95),
}


def crawlers(paths: Sequence[Path], seeds: int, jobs: int) -> None:
    """Print two tables, for requests and for volume: one row for each crawler, one column for each site."""
    comparison = compare(CRAWLERS, paths, seeds=range(seeds), ignored=(), jobs=jobs, progress=_tell)
    for metric in ("requests_90", "waste_90", "overhead_90"):
        _print(comparison, metric, comparison.labels)


def parameters(paths: Sequence[Path], seeds: int, jobs: int) -> None:
    """Print a table for each hyper-parameter of SB-CLASSIFIER, the others at their defaults."""
    for name, values in PARAMETERS.items():
        specs = [f"{name} = {value:.3g}=TagPath:blocked=(),{name}={value!r}" for value in values]
        comparison = compare(specs, paths, seeds=range(seeds), ignored=(), jobs=jobs, progress=_tell)
        for metric in ("requests_90", "waste_90"):
            _print(comparison, metric, comparison.labels)


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
    print(f"\n{metric}\n\n| | {' | '.join(comparison.sites)} |")
    print("|---|" + "---|" * len(comparison.sites))
    for label in labels:
        cells = [_cell(comparison.cell(site, label, metric)) for site in comparison.sites]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


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
    for command in ("crawlers", "parameters"):
        subparser = commands.add_parser(command)
        subparser.add_argument("paths", metavar="SITE.sqlite", type=Path, nargs="+")
        subparser.add_argument("--seeds", type=int, default=5)
        subparser.add_argument("--jobs", type=int, default=2)
    subparser = commands.add_parser("record-profiles")
    subparser.add_argument("names", metavar="PROFILE", nargs="*", choices=[[], *PROFILES])
    subparser.add_argument("--scale", type=float, default=0.05)
    subparser.add_argument("--requests", type=float, default=math.inf, help="of each site, at most")
    subparser.add_argument("--out", type=Path, default=Path("profiles"))
    options = parser.parse_args()
    if options.command == "record-profiles":
        record_profiles(options.scale, options.requests, options.out, options.names)
    else:
        (crawlers if options.command == "crawlers" else parameters)(options.paths, options.seeds, options.jobs)


if __name__ == "__main__":
    main()
