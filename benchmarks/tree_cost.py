"""What a step of TRES costs as a crawl grows: CPU, memory, and leaves against waiting links (Figure 4 of the paper).

Measured: the policy and its frontier in one thread, for each page fetched: 43 new links are placed and stored,
representatives are drawn and scored, one link is taken, its result is settled and learned. The frontier is on disk (a
checkpoint each 1,000 steps, written by its own thread, whose CPU is reported separately) or in memory. The word
features of links are synthetic: fetching, parsing, and reading words are not measured. ::

    python benchmarks/tree_cost.py --steps 20000 --sides recommended published synchronous --plot benchmarks/tree_leaves.png
    python benchmarks/tree_cost.py --steps 232558 --sides recommended      # ten million waiting links
    python benchmarks/tree_cost.py --against ../earlier --rules '{"train_every": 4}'   # in turn with another checkout
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus import Link, Mission, Outcome, memory_frontier
from scrapy_focus.engine.garbage import freeze
from scrapy_focus.frontiers.sqlite.frontier import SqliteDrawn, SqliteRanked, sqlite_frontier
from scrapy_focus.policies.branching.features import WIDTH
from scrapy_focus.policies.treeq.policy import TreeQ

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LINKS = 43  # new on each page
HOSTS = 400_000
INTERNAL = 0.7  # of the links lead to the same host
SIDES: dict[str, dict[str, Any]] = {
    "recommended": {},
    "published": {"preset": "tres-2023"},
    "synchronous": {"mode": "synchronous"},
}


class Stream:
    """Pages of links without end: a relevant page has relevant links more often, and their features say so, with noise."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.made = 0

    def page(self, host: int, *, relevant: bool) -> tuple[list[Link], np.ndarray[Any, np.dtype[np.uint8]]]:
        """Return links of a page, and of each the codes that its words would have, shape (n, 3)."""
        wanted = self.rng.random(LINKS) < (0.25 if relevant else 0.02)
        hosts = (self.rng.random(LINKS) ** 3 * HOSTS).astype(np.int64)
        hosts[self.rng.random(LINKS) < INTERNAL] = host
        keys = (2 * np.arange(self.made, self.made + LINKS) + wanted).tolist()
        self.made += LINKS
        links = [
            Link(f"http://h{host}.example/page/{key}", key, f"h{host}.example", 1)
            for host, key in zip(hosts.tolist(), keys, strict=True)
        ]
        said = np.empty((LINKS, 3), np.uint8)
        said[:, :2] = 63 * (self.rng.random((LINKS, 2)) < np.where(wanted, 0.4, 0.05)[:, None])
        said[:, 2] = 63 * np.where(wanted, self.rng.beta(1.6, 1.8, LINKS), self.rng.beta(1, 3, LINKS))
        return links, said


class Told:
    """Replaces the reader of the words of links: it returns given features."""

    relevance = True

    def __init__(self, rng: np.random.Generator) -> None:
        self.said = np.zeros((0, 3), np.uint8)
        self._rows = np.sort(rng.integers(1, 1 << 16, (1000, WIDTH), np.uint16), axis=1)
        self._rows[:, : WIDTH // 3] = 0
        self._rng = rng

    def read(self, links: Sequence[Link]) -> NDArray[np.float64]:
        """Return the features of words, shape (n, 3)."""
        return self.said / 63

    def rows(self, links: Sequence[Link]) -> NDArray[np.uint16]:
        """Return the hashed features of links, shape (n, 32)."""
        return self._rows[self._rng.integers(len(self._rows), size=len(links))]


def run(side: str, steps: int, *, disk: bool, marks: list[int], plot: bool, rules: dict[str, Any]) -> dict[str, Any]:
    """Do the steps, and return what they cost between the marks."""
    policy = TreeQ(keywords=["wanted"], **SIDES[side], rules=rules)
    stream, rewards = Stream(), 0
    with tempfile.TemporaryDirectory() as folder:
        keeps = policy.keeps(Mission())
        frontier = sqlite_frontier(Path(folder, "frontier.sqlite"), keeps) if disk else memory_frontier(keeps)
        policy.open(frontier, np.random.default_rng(0), Mission())
        features: Any = policy._features
        features.reader = told = Told(np.random.default_rng(1))
        if features.model is not None:
            features.model.words._hasher = told
        source: Outcome | None = None
        costs = np.zeros(steps)
        rows, curve = [], []
        gc.collect()
        freeze(collect=False)
        first, process = 0, time.process_time()
        thread = time.thread_time()
        for step in range(steps):
            host = 0 if source is None else int(source.pick.host[1:].partition(".")[0])
            links, told.said = stream.page(host, relevant=source is not None and source.reward > 0)
            started = time.thread_time()
            frontier.push(links, policy.place(links, source), origin=-1 if source is None else source.pick.arm)
            if source is not None:
                policy.learn(source)
            pick = policy.select(())
            assert pick is not None
            frontier.settle(pick)
            costs[step] = time.thread_time() - started
            source = Outcome(pick=pick, status=200, mime="text/html", reward=float(pick.key % 2))
            rewards += pick.key % 2
            if isinstance(frontier, (SqliteDrawn, SqliteRanked)) and step % 1000 == 999:
                started = time.thread_time()
                frontier.checkpoint({})
                costs[step] += time.thread_time() - started
            if plot and step % max(1, steps // 400) == 0:
                curve.append([len(frontier), policy.tree.n_leaves])
            if step + 1 in marks or step + 1 == steps:
                part = 1000 * costs[first : step + 1]
                others = (time.process_time() - process) - (time.thread_time() - thread)
                rows.append({
                    "side": side, "step": step + 1, "waiting": len(frontier), "mean": part.mean(),
                    "p99": float(np.quantile(part, 0.99)), "worst": part.max(), "over_50": int((part > 50).sum()),
                    "others": 1000 * others / (step + 1 - first), "leaves": policy.tree.n_leaves, "resident": resident(),
                    "harvest": rewards / (step + 1),
                })  # fmt: skip
                print(row(rows[-1]), file=sys.stderr, flush=True)
                first, process, thread = step + 1, time.process_time(), time.thread_time()
        frontier.close()
    return {"rows": rows, "curve": curve}


def resident() -> float:
    """Return the megabytes that this process has in memory now."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def row(cost: dict[str, Any]) -> str:
    """Return a row of the table."""
    return (
        f"| {cost['side']} | {cost['step']:,} | {cost['waiting']:,} | {cost['mean']:.2f} | {cost['p99']:.2f} | "
        f"{cost['worst']:.1f} | {cost['over_50']} | {cost['others']:.2f} | {cost['leaves']:,} | {cost['resident']:.0f} | "
        f"{cost['harvest']:.2f} |"
    )


def draw(curves: dict[str, list[list[int]]], path: Path) -> None:
    """Plot leaves against waiting links."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for side, curve in curves.items():
        waiting, leaves = np.array(curve).T
        axes.plot(waiting, leaves, label=side)
    axes.set(xscale="log", yscale="log", xlabel="waiting links", ylabel="leaves", title="Leaves of the Tree-Frontier")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    """The command line, see the module's docstring. Each side runs in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=["recommended"])
    parser.add_argument("--memory", action="store_true", help="a frontier in memory instead of one on disk")
    parser.add_argument("--marks", type=int, nargs="*", default=[1_000, 5_000, 20_000, 120_000])
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--rules", type=json.loads, default={}, help="changes to the rules, as JSON; not of --against")
    parser.add_argument("--against", type=Path, help="another checkout, which is measured in turn with this one")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        found = run(
            options.sides[0], options.steps, disk=not options.memory, marks=options.marks, plot=bool(options.plot),
            rules=options.rules,
        )  # fmt: skip
        print(json.dumps(found))
        return
    print("| rules | steps | waiting | ms a step | p99 | worst | > 50 ms | other threads | leaves | MB | reward |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    curves = {}
    for side in options.sides:
        command = ["--one", "--steps", str(options.steps), "--sides", side, "--marks"]
        command += [*map(str, options.marks), *(["--memory"] if options.memory else [])]
        command += ["--plot", str(options.plot)] if options.plot else []
        here = Path(__file__).resolve().parents[1]
        for checkout in (here, options.against) if options.against else (here,):
            rules = ["--rules", json.dumps(options.rules)] if checkout is here else []
            env = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
            script = [sys.executable, str(checkout / "benchmarks" / Path(__file__).name)]
            done = subprocess.run([*script, *command, *rules], stdout=subprocess.PIPE, text=True, check=True, env=env)
            found = json.loads(done.stdout)
            label = side if checkout is here else f"{side}, {checkout.name}"
            curves[label] = found["curve"]
            for cost in found["rows"]:
                print(row({**cost, "side": label}), flush=True)
    if options.plot:
        draw(curves, options.plot)


if __name__ == "__main__":
    main()
