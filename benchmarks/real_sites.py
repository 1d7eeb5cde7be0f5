"""How many targets of real sites are found after how many requests, in live crawls over HTTP.

Measured: the share of all targets that the server has delivered after 10, 20, 30 and 50 % of the requests of an
exhaustive crawl, for each policy on each site, over several seeds, by ``scrapy crawl datasets`` of the example project,
from the server's own log: HEADs, redirects, dead links and robots.txt count. Not measured: time, and sites that are not
documentation. ::

    python benchmarks/sites.py fetch sklearn2 lily ghc statsm
    python benchmarks/real_sites.py sklearn2 lily ghc statsm --seeds 5
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_focus.engine.ending import STATUS
from scrapy_focus.lab.sites.server import SiteServer
from sites import SITES, open_site, read_truth

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scrapy_focus.lab.sites.server import Request

PROJECT = Path(__file__).parent.parent / "example_project"
SHARES = (0.1, 0.2, 0.3, 0.5)
POLICIES = {
    "BranchingBandit": "scrapy_focus.policies.branching.BranchingBandit",
    "TagPath": "scrapy_focus.policies.tagpath.TagPath",
    "BreadthFirst": "scrapy_focus.policies.orderings.BreadthFirst",
    "Random": "scrapy_focus.policies.orderings.Random",
}


def crawl(root: str, *, policy: str, budget: int, seed: int, settings: Sequence[str] = ()) -> None:
    """Crawl a site with the example project in a separate process; eight requests at a time, without delay."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "scrapy", "crawl", "datasets", "-a", f"root={root}", "-a", f"budget={budget}"]
        command += ["-a", f"out={out}", "-s", f"FOCUS_POLICY={policy}", "-s", f"FOCUS_SEED={seed}"]
        command += ["-s", "DOWNLOAD_DELAY=0", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=8", "-s", "LOG_LEVEL=ERROR"]
        command += ["-s", "TELNETCONSOLE_ENABLED=0", "-s", "REMOTE_CONTROL_ENABLED=0", "-s", "FOCUS_PROGRESS=off"]
        status = subprocess.run([*command, *settings], cwd=PROJECT, check=False).returncode
        if status not in (0, STATUS["budget"], STATUS["nothing_found"]):
            raise RuntimeError(f"the crawl of {root} ended with status {status}; see what it said")


def harvest(log: Iterable[Request], targets: Iterable[str]) -> list[int]:
    """How many targets were delivered after each request, by the server's log; shape (n_requests + 1,)."""
    missing, curve = set(targets), [0]
    for request in log:
        found = request.method == "GET" and request.status == 200 and request.path in missing
        if found:
            missing.remove(request.path)
        curve.append(curve[-1] + found)
    return curve


def measure(name: str, policy: str, seed: int, folder: Path) -> list[float]:
    """The share of all targets found at each of ``SHARES`` of an exhaustive crawl."""
    truth = read_truth(name, folder)
    budget = round(max(SHARES) * truth.requests)
    with SiteServer(open_site(name, folder)) as server:
        root = server.url.removesuffix("/") + SITES[name].start
        crawl(root, policy=POLICIES[policy], budget=budget, seed=seed)
        curve = harvest(server.log, truth.targets)
    return [curve[min(len(curve) - 1, round(share * truth.requests))] / len(truth.targets) for share in SHARES]


def main() -> None:
    """Print one line of JSON for each crawl, then a table in reStructuredText and Markdown's common form."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", metavar="SITE", nargs="+", choices=sorted(SITES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("sites"))
    options = parser.parse_args()
    rows: list[tuple[str, str, list[list[float]]]] = []
    for name in options.names:
        for policy in POLICIES:
            runs = []
            for seed in range(options.seeds):
                runs.append(measure(name, policy, seed, options.folder))
                print(json.dumps({"site": name, "policy": policy, "seed": seed, "found": runs[-1]}), flush=True)
            rows.append((name, policy, runs))
    print("\n| site | policy | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |")
    print("|---|---|" + "---|" * len(SHARES))
    for name, policy, runs in rows:
        cells = []
        for found in zip(*runs, strict=True):
            spread = statistics.stdev(found) if len(found) > 1 else 0.0
            cells.append(f"{100 * statistics.mean(found):.1f} ± {100 * spread:.1f}")
        print(f"| {name} | {policy} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
