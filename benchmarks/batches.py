"""CPU per page of a leader whose outcomes arrive in batches, each followed by a batch of choices.

Measured: CPU time of this process (including the thread that writes checkpoints) for each page, median and mean of
the rounds of one crawl with a job folder. 64 links are in flight; in each round 8 outcomes arrive, each with 30
links, 10 of them new, and 8 links are chosen. Pages have their links in one of several places, so that there are
twice as many arms; a tenth of the links are files. With ``--closed``, so many hosts can take nothing all the time.
With ``--against``, another state of the package is measured in turn with this one, in separate processes. Not
measured: fetching, parsing, leases and communication. ::

    python benchmarks/batches.py --links 10000 1000000 --hosts 1000 10000
    python benchmarks/batches.py --closed 800 --against ../scrapy_focus-before --repeat 3
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus import Crawl, FilesGoal, ItemsGoal, Job, Link, Mission, Outcome
from scrapy_focus.engine.garbage import freeze
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.web.mime import DATA_TYPES

try:
    from scrapy_focus.core.busy import Busy
except ImportError:  # an earlier state of the package
    Busy = None  # type: ignore[assignment,misc]

if TYPE_CHECKING:
    from scrapy_focus import Pick

HERE = Path(__file__).resolve().parents[1]
OUT, BATCH = 64, 8
NEW, OLD = 10, 20  # links of a page
AT_ONCE = 8  # links in flight to a host


class Web:
    """Pages of many hosts; a third of their links lead to other hosts."""

    def __init__(self, hosts: int, places: int) -> None:
        self.rng = np.random.default_rng(1)
        self.hosts = [f"www.host-{i}.example.org" for i in range(hosts)]
        self.places = places
        self._made = 0
        self._lately: deque[Link] = deque(maxlen=20_000)

    def page(self, host: str, new: int = NEW, old: int = OLD) -> list[Link]:
        """Return the links of a page, in three places on it."""
        places = np.repeat(self.rng.integers(self.places, size=3), -(-new // 3))[:new].tolist()
        others = self.rng.integers(len(self.hosts), size=new).tolist()
        away = (self.rng.random(new) < 0.3).tolist()
        links = [
            self._link(place, self.hosts[other] if leaves else host)
            for place, other, leaves in zip(places, others, away, strict=True)
        ]
        known = (
            [self._lately[i] for i in self.rng.integers(len(self._lately), size=old).tolist()] if self._lately else []
        )
        self._lately.extend(links)
        return links + known

    def _link(self, place: int, host: str) -> Link:
        self._made += 1
        n = self._made
        name = f"table-{n}.csv" if (place * 7 + n) % 10 == 0 else f"series-{n}/index.html"
        url = f"http://{host}/data/section-{place % 40}/{2000 + place % 25}/{name}"
        path = f"html/body/div.a{place}/ul.b{place}/li.c{place}/span.d{place}/a.e{place}"
        key = n * 0x9E3779B97F4A7C15 % (1 << 62)
        return Link(url, key, host, 3, f"Prices of good {n}", path, f"Prices of good {n} by month", payload=b"x" * 60)


class Leader:
    """A crawl whose pages are fetched by others."""

    def __init__(self, web: Web, folder: Path, links: int, closed: int) -> None:
        self.web, self.closed = web, frozenset(web.hosts[:closed])
        self.crawl = Crawl(
            BranchingBandit(targets=DATA_TYPES), job=Job(folder), goal=ItemsGoal(), mission=Mission.of(FilesGoal()),
            seed=0, strict=True,
        )  # fmt: skip
        while len(self.crawl.frontier) < links:
            self.crawl.add(web.page(web.hosts[int(web.rng.integers(len(web.hosts)))], new=100, old=0))
        self.out: deque[Pick] = deque()
        self.on: Counter[str] = Counter()  # links in flight by host

    def choose(self, n: int) -> float:
        """Choose so many links, and return the CPU seconds."""
        before = time.process_time()
        for _ in range(n):
            full = [host for host, there in self.on.items() if there >= AT_ONCE]
            pick = self.crawl.next({*self.closed, *full} if Busy is None else Busy(self.closed, full))
            if pick is None:
                raise SystemExit("nothing can be chosen: give fewer closed hosts")
            self.crawl.sent(pick.id)
            self.on[pick.host] += 1
            self.out.append(pick)
        return time.process_time() - before

    def report(self, n: int) -> float:
        """Report the outcomes of the oldest links in flight, and return the CPU seconds."""
        came = []
        for _ in range(n):
            pick = self.out.popleft()
            self.on[pick.host] -= 1
            items = float(pick.url.endswith(".csv"))
            outcome = Outcome(pick=pick, status=200, mime="text/html", size=1000, items=items, seconds=1.0)
            came.append((outcome, self.web.page(pick.host)))
        before = time.process_time()
        for outcome, links in came:
            self.crawl.report(outcome, links)
        return time.process_time() - before


def measure(options: argparse.Namespace, links: int, hosts: int) -> dict[str, Any]:
    """Return CPU microseconds a page, and the number of queued links."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        leader = Leader(Web(hosts, options.places), Path(folder, "job"), links, options.closed)
        leader.choose(OUT)
        rounds: list[list[float]] = []
        for number in range(options.rounds + options.rounds // 5):
            if number == options.rounds // 5:
                gc.collect()
                freeze(collect=False)
                rounds.clear()
            rounds.append([1e6 / BATCH * each for each in (leader.report(BATCH), leader.choose(BATCH))])
        crawl = leader.crawl
        report, choose = zip(*rounds, strict=True)
        both = [sum(each) for each in rounds]
        figures = {
            "report": statistics.median(report), "choose": statistics.median(choose),
            "page": statistics.median(both), "mean": statistics.fmean(both),
        }  # fmt: skip
        awake = int(np.count_nonzero(crawl.frontier.waiting))
        figures |= {"waiting": len(crawl.frontier), "arms": awake, "rewards": crawl.rewards}
        crawl.close()
        return figures


def in_turn(options: argparse.Namespace, links: int, hosts: int) -> None:
    """Measure each side so many times, one after the other, and print the medians."""
    sides = {"now": HERE} | ({"before": options.against.resolve()} if options.against else {})
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    same = [str(value) for name in ("places", "rounds", "closed") for value in (f"--{name}", getattr(options, name))]
    same += ["--folder", str(options.folder)] if options.folder else []
    for _ in range(options.repeat):
        for side, folder in sides.items():
            command = [sys.executable, __file__, "--one", "--links", str(links), "--hosts", str(hosts), *same]
            environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            found[side].append(json.loads(done.stdout))
    for side, runs in found.items():
        figures = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        print("| {hosts:,} | {waiting:,.0f} in {arms:,.0f} arms | {side} | {report:.0f} | {choose:.0f} | {page:.0f} | {mean:.0f} |"
              .format(hosts=hosts, side=side, **figures), flush=True)  # fmt: skip


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--links", type=int, nargs="+", default=[10_000], help="queued at the start")
    parser.add_argument("--hosts", type=int, nargs="+", default=[1_000])
    parser.add_argument("--places", type=int, default=500, help="on pages, different enough to have separate arms")
    parser.add_argument("--closed", type=int, default=0, help="hosts that can take nothing")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=1, help="times that each side is measured")
    parser.add_argument("--against", type=Path, help="the folder of another state of the package")
    parser.add_argument(
        "--folder", type=Path, help="where to work; the default is the system's place for temporary files"
    )
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options, options.links[0], options.hosts[0])))
        return
    print("| hosts | waiting | side | report, us | choose, us | both | mean |\n|--:|---|---|--:|--:|--:|--:|")
    for links in options.links:
        for hosts in options.hosts:
            in_turn(options, links, hosts)


if __name__ == "__main__":
    main()
