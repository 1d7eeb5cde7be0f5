"""The cost of sharing a crawl: CPU a page of a leader and of its workers, and the size of their messages.

``leader``: workers that fetch nothing report synthetic pages to one leader with a ``JOBDIR``, whose policy is the
default one or breadth-first. CPU is that of the leader's calls alone; nothing is sent, but messages are pickled,
outside the timed part, for their size. ``crawls``: the bundled portal over HTTP, crawled by one process, and by a
worker whose leader is in the same process, with all messages pickled and unpickled; the CPU of the whole process
minus the cost of a crawl of one page. Configurations take turns, and medians over the rounds are given. ::

    python benchmarks/cluster.py leader --pages 3000 --rounds 3
    python benchmarks/cluster.py leader --waiting 1000000 --workers 8 --hosts 1000
    python benchmarks/cluster.py crawls --pages 1000 --rounds 3
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus import Budget, Crawl, FilesGoal, Job, Link, Outcome
from scrapy_focus.cluster.leader import Leader, RemoteGoal
from scrapy_focus.cluster.messages import Exchange, Hello, outcome_said
from scrapy_focus.making import make_leader
from scrapy_focus.policies.branching import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_focus.making import LeaderPlan

LINKS = 30  # of a page
NEW = 10  # of these
POLICIES: dict[str, Callable[[], Any]] = {"default": BranchingBandit, "breadth-first": BreadthFirst}
PATHS = ("html/body/main/ul/li/a", "html/body/nav/ul/li/a", "html/body/main/table/tr/td/a.file", "html/body/footer/a")
WORDS = ("report", "data", "download", "annual", "table", "contact", "about", "archive", "statistics", "press")
BATCH = 8  # leases that a worker wants at a time


class Web:
    """Pages generated on demand: each has links to new pages of all hosts, and to known ones."""

    def __init__(self, hosts: int, seed: int) -> None:
        self.hosts = [f"host{i}.test" for i in range(hosts)]
        self.rng = np.random.default_rng(seed)
        self.n = 0

    def new(self, host: str) -> Link:
        """Return a link to a page that nobody has seen."""
        self.n += 1
        kind = int(self.rng.integers(len(PATHS)))
        words = " ".join(WORDS[i] for i in self.rng.integers(len(WORDS), size=2))
        key = (self.n * 0x9E3779B97F4A7C15) & ((1 << 63) - 1)
        return Link(
            f"http://{host}/{WORDS[kind]}/{self.n}.html", key, host, 3, words, PATHS[kind], f"{words} of the year",
            payload=b"\x80\x05}\x94.",
        )  # fmt: skip

    def page(self, host: str, known: list[Link]) -> list[Link]:
        """Return the links of a page: most stay on its host."""
        links = []
        for i in range(LINKS):
            if i >= NEW and known:
                links.append(known[int(self.rng.integers(len(known)))])
            else:
                stays = self.rng.random() < 0.7
                links.append(self.new(host if stays else self.hosts[int(self.rng.integers(len(self.hosts)))]))
        return links


def measure_leader(policy: str, workers: int, hosts: int, pages: int, waiting: int, batch: int) -> dict[str, float]:
    """Return the cost of a page for a leader, in microseconds of CPU, and the size of its messages, in bytes."""
    web = Web(hosts, 1)
    with tempfile.TemporaryDirectory() as folder:
        goal = RemoteGoal(FilesGoal())
        crawl = Crawl(POLICIES[policy](), job=Job(Path(folder)), goal=goal, budget=Budget(), seed=0, is_shared=True)
        leader = Leader(crawl, per_host=8, most_out=2 * workers * batch)
        sessions = {f"w{i}": leader.join(Hello(f"w{i}", {}, [], [], 0)).session for i in range(workers)}
        seeds = [web.new(web.hosts[i % hosts]) for i in range(max(hosts, waiting))]
        for start in range(0, len(seeds), 500):
            crawl.add(seeds[start : start + 500])
        crawl.checkpoint()
        said: dict[str, list[Any]] = {name: [] for name in sessions}
        known: list[Link] = seeds[:200]
        done = calls = 0
        cpu, size, told = 0.0, 0, 0
        gc.collect()
        gc.freeze()
        warm = pages // 5
        while done < pages + warm:
            for name, session in sessions.items():
                message = Exchange(name, session, said[name], batch)
                n = sum(each[0] == "outcome" for each in said[name])
                began = time.process_time()
                answer = leader.exchange(message)
                took = time.process_time() - began
                if done >= warm:
                    cpu += took
                    calls += 1
                    size += len(pickle.dumps((message, answer), protocol=5))
                    told += n
                done += n
                said[name] = []
                for lease in answer.leases:
                    links = web.page(lease.host, known)
                    known = (known + links[:2])[-500:]
                    is_target = "table" in lease.url and is_worth(lease.id)
                    outcome = Outcome(
                        pick=lease.pick(), status=200, mime="text/html", size=4000, seconds=0.2,
                        reward=float(is_target),
                    )  # fmt: skip
                    fresh = links[:NEW]
                    said[name].append(outcome_said(outcome, fresh, [], is_sent=True, read=None))
        leader.close()
    return {
        "us a page": 1e6 * cpu / told, "bytes a page": size / told, "pages a call": told / calls,
        "passed over": 1e3 * leader.counts["passed_over"] / done,
    }  # fmt: skip


def is_worth(n: int) -> bool:
    """Whether a page has a reward: half of the candidates."""
    return n % 2 == 0


def compare_leaders(args: argparse.Namespace) -> None:
    """Measure leaders, in turn."""
    cases = list(product(args.policies, args.workers, args.hosts))
    found: dict[Any, list[dict[str, float]]] = {case: [] for case in cases}
    for _ in range(args.rounds):
        for policy, workers, hosts in cases:
            values = (policy, *map(str, (workers, hosts, args.pages, args.waiting, args.batch)))
            command = [sys.executable, __file__, "one", *values]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found[policy, workers, hosts].append(json.loads(out.splitlines()[-1]))
    print("| policy | workers | hosts | us of CPU a page, median (least) | bytes a page | pages a call |")
    print("|---|---|---|---|---|---|")
    for (policy, workers, hosts), rounds in found.items():
        cost = [each["us a page"] for each in rounds]
        size, pages = (statistics.median(each[name] for each in rounds) for name in ("bytes a page", "pages a call"))
        case = f"| {policy} | {workers} | {hosts:,} "
        print(f"{case}| {statistics.median(cost):,.0f} ({min(cost):,.0f}) | {size:,.0f} | {pages:.1f} |", flush=True)


class InOneProcess:
    """An engine whose leader is in the process of its worker; messages are pickled, as if they were sent."""

    def __init__(self, address: str, name: str, plan: LeaderPlan) -> None:
        self.plan = plan
        self.leader: Leader | None = None

    async def call(self, method: str, *args: Any) -> Any:
        """Call the leader, which is made at the first call."""
        if self.leader is None:
            self.leader = make_leader(self.plan)
        answer = getattr(self.leader, method)(*pickle.loads(pickle.dumps(args, protocol=5)))
        return pickle.loads(pickle.dumps(answer, protocol=5))

    async def reset(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


def compare_crawls(args: argparse.Namespace) -> None:
    """Measure whole crawls over HTTP, in turn."""
    import overhead

    focus = {"SCHEDULER": overhead.FOCUS}
    shared = {"FOCUS_CLUSTER": "here", "FOCUS_CLUSTER_ENGINE": "cluster.InOneProcess"}
    ways = {"one process": {}, "a worker and its leader": shared}
    policies = {"default": {}, "breadth-first": overhead.BREADTH}
    cases = {f"{policy}, {way}": {**focus, **policies[policy], **ways[way]} for policy in args.policies for way in ways}
    figures: dict[str, list[float]] = {name: [] for name in cases}
    serve = [sys.executable, "-m", "scrapy_focus.lab.sites.server", "--pages", str(args.pages), "--port", "0"]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            root = server.stdout.readline().split()[0]
            spider = Path(folder, "follow.py")
            spider.write_text(overhead.SPIDER)
            spider.with_name("stats_file.py").write_text(overhead.STATS)
            for _ in range(args.rounds):
                for name, settings in cases.items():
                    idle, _ = overhead.crawl(spider, root, settings, one=True, jobdir=True)
                    cpu, pages = overhead.crawl(spider, root, settings, jobdir=True)
                    figures[name].append(1000 * (cpu - idle) / pages)
                    print(f"{name:40} {pages:5} pages {figures[name][-1]:6.2f} ms", file=sys.stderr, flush=True)
        finally:
            server.terminate()
    for name, values in figures.items():
        print(f"{name:40} {statistics.median(values):6.2f} ms a page ({min(values):.2f} to {max(values):.2f})")


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    leader = commands.add_parser("leader")
    leader.add_argument("--pages", type=int, default=3000)
    leader.add_argument("--rounds", type=int, default=3)
    leader.add_argument("--waiting", type=int, default=0)
    leader.add_argument("--batch", type=int, default=BATCH)
    leader.add_argument("--workers", type=int, nargs="+", default=[1, 4, 8, 32])
    leader.add_argument("--hosts", type=int, nargs="+", default=[100, 1000, 10_000])
    leader.add_argument("--policies", nargs="+", default=["default"])
    crawls = commands.add_parser("crawls")
    crawls.add_argument("--pages", type=int, default=1000)
    crawls.add_argument("--rounds", type=int, default=3)
    crawls.add_argument("--policies", nargs="+", default=["default"])
    one = commands.add_parser("one")
    one.add_argument("case", nargs=6)
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if args.command == "one":
        policy, *numbers = args.case
        print(json.dumps(measure_leader(policy, *map(int, numbers))))
    elif args.command == "crawls":
        compare_crawls(args)
    else:
        compare_leaders(args)


if __name__ == "__main__":
    main()
