"""The cost of the default policy with a long queue: CPU for each page of 100 links, and for each choice.

Measured, in one thread and beside SB-CLASSIFIER in the same run: ``place`` for pages of 100 new links, each with a
different URL and anchor (a page of a real site has fewer), until a million are queued in 2,000 arms; then choices
with their outcomes, and ``learn`` and the frontier separately. Not measured: fetching, parsing, and computing the
places of links. For recordings given by name, ``place`` is also measured for the pages of whole simulated crawls. ::

    python benchmarks/branching_cost.py
    python benchmarks/branching_cost.py --links 100000 sites/sklearn2.sqlite sites/lily.sqlite
"""

from __future__ import annotations

import argparse
import gc
import statistics
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus import FilesGoal, Link, Mission, Outcome, memory_frontier
from scrapy_focus.engine.garbage import freeze
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.tagpath.policy import TagPath
from scrapy_focus.web.mime import DATA_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy_focus.core.policy import Policy

PAGE = 100
PLACES = 1000  # tag paths so different that each is a cluster; half of the links in each have the extension of a file
SIDES: dict[str, Callable[[], Policy]] = {
    "BranchingBandit": lambda: BranchingBandit(targets=DATA_TYPES),
    "TagPath": lambda: TagPath(probe=False, blocked=()),
}


def page(number: int, rng: np.random.Generator) -> list[Link]:
    """Return the links of a page: ten places on it, with ten links each."""
    places = np.repeat(rng.integers(PLACES, size=PAGE // 10), 10).tolist()
    links = []
    for at, place in enumerate(places):
        key = number * PAGE + at
        name = f"table-{key}.csv" if at % 2 else f"series-{key}/index.html"
        url = f"http://www.example.org/data/section-{place % 40}/{2000 + place % 25}/{name}"
        path = f"html/body/div.a{place}/ul.b{place}/li.c{place}/span.d{place}/a.e{place}"
        links.append(
            Link(url, key, "www.example.org", 3, f"Prices of good {key}", path, f"Prices of good {key} by month")
        )
    return links


def fill(side: str, n_links: int, choices: int) -> None:
    """Print the cost of placing so many links, and then of choosing among them."""
    rng, policy, mission = np.random.default_rng(0), SIDES[side](), Mission.of(FilesGoal())
    frontier = memory_frontier(policy.keeps(mission))
    policy.open(frontier, np.random.default_rng(0), mission)
    gc.collect()
    freeze(collect=False)
    placing, choosing, learning = [], [], []
    frontier.push(seeds := page(0, rng), policy.place(seeds, None))
    for number in range(1, n_links // PAGE + choices):
        pick, seconds = _timed(policy.select, ())
        assert pick is not None
        is_file = pick.url.endswith(".csv")
        outcome = Outcome(pick=pick, status=200, mime="text/csv" if is_file else "text/html", reward=float(is_file))
        frontier.settle(pick)
        if number < n_links // PAGE:
            links = page(number, rng)
            placements, spent = _timed(policy.place, links, outcome)
            frontier.push(links, placements, origin=pick.arm)
            placing.append(spent)
        else:
            choosing.append(seconds)
        learning.append(_timed(policy.learn, outcome)[1])
    awake = int(np.count_nonzero(frontier.waiting))
    pairs = len(policy.arms.known().rows) if isinstance(policy, BranchingBandit) else 0
    print(f"| {side} | {len(frontier):,} in {awake:,} arms | {pairs:,} | {_said(placing[len(placing) // 2:])} | {_said(choosing)} "
          f"| {_said(learning)} |", flush=True)  # fmt: skip


class Counted:
    """A policy whose ``place`` is timed."""

    def __init__(self, policy: Policy) -> None:
        self.seconds, self.links = 0.0, 0
        self._place = policy.place
        policy.place = self.place  # type: ignore[method-assign]

    def place(self, links: Sequence[Link], source: Outcome | None) -> Any:
        """As the policy's."""
        placements, seconds = _timed(self._place, links, source)
        self.seconds += seconds
        self.links += len(links)
        return placements


def crawl(path: Path) -> None:
    """Print the cost of placing for the pages of a real site."""
    for side, make in SIDES.items():
        policy = make()
        counted = Counted(policy)
        site = RecordedSite(path)
        simulate(policy, FilesGoal(), site, ignored=())
        pages = sum("html" in mime for mime in site.mimes)
        on_pages = len(site.targets)
        print(f"| {side} | {path.stem} | {on_pages / pages:.0f} | {counted.links / pages:.1f} | "
              f"{1000 * counted.seconds / pages:.3f} | {100_000 * counted.seconds / on_pages:.3f} |", flush=True)  # fmt: skip


def _timed(call: Any, *arguments: Any) -> tuple[Any, float]:
    started = thread_time()
    result = call(*arguments)
    return result, thread_time() - started


def _said(seconds: Sequence[float]) -> str:
    ordered = sorted(1000 * each for each in seconds)
    middle, late = ordered[len(ordered) // 2], ordered[int(0.99 * len(ordered))]
    return f"{statistics.fmean(ordered):.3f} ({middle:.3f}, {late:.2f}, {ordered[-1]:.2f})"


def main() -> None:
    """The command line, see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("paths", metavar="SITE.sqlite", type=Path, nargs="*")
    parser.add_argument("--links", type=int, default=1_000_000)
    parser.add_argument("--choices", type=int, default=2000)
    parser.add_argument("--policies", choices=list(SIDES), nargs="+", default=list(SIDES))
    options = parser.parse_args()
    print(
        "| policy | waiting | pairs of arms | place a page of 100 new links, ms: mean (median, 99 %, longest) | select | learn |\n"
        "|---|---|--:|---|---|---|"
    )
    for side in options.policies:
        fill(side, options.links, options.choices)
    if options.paths:
        print(
            "\n| policy | site | links a page | new ones | place a page, ms | place 100 links of pages, ms |\n|---|---|--:|--:|--:|--:|"
        )
    for path in options.paths:
        crawl(path)


if __name__ == "__main__":
    main()
