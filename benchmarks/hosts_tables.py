"""What ``hosts.py`` measured: its runs as JSON, and as tables in Markdown."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from runfiles import mean, stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

CAPS = ("none", "100", "10", "5", "5-2")  # pages per domain; the last falls to 2 after a third of the budget


@dataclass(kw_only=True)
class Marks:
    """What was counted after some fetches."""

    fetches: int
    harvest: float  # share of the fetches that brought a page about the topic
    hosts: int  # with such a page
    domains: int
    seen_hosts: int  # that answered anything
    waiting: int
    leaves: int  # 0 where the policy has none
    step_ms: float  # CPU of policy and frontier, mean since the last mark
    worst_ms: float


@dataclass(kw_only=True)
class Run:
    """A crawl, and what it found."""

    policy: str
    topic: str
    cap: str
    seed: int
    in_flight: int
    web: int  # its seed
    marks: list[Marks] = field(default_factory=list)
    ended: str = ""
    rewarded: int = 0  # pages that the classifier found relevant
    right: int = 0  # of these, about the topic
    relevant: int = 0  # pages about the topic
    failures: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)  # counts of the crawl
    seconds: float = 0.0  # wall time, with making the pages

    @property
    def key(self) -> tuple[str, str, str, int, int, int]:
        """What tells runs apart."""
        return (self.policy, self.topic, self.cap, self.seed, self.in_flight, self.web)


def tables(runs: Sequence[Run]) -> str:
    """Return Markdown tables: harvest rates, the Pareto table, and what each policy cost and judged.

    Means are over seeds, topics and webs together.
    """
    lines = []
    groups: defaultdict[tuple[str, int], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.cap, run.in_flight].append(run)
    for (cap, in_flight), group in sorted(
        groups.items(), key=lambda item: ((*CAPS, item[0][0]).index(item[0][0]), item[0][1])
    ):
        topics, policies = sorted({run.topic for run in group}), list(dict.fromkeys(run.policy for run in group))
        marks = sorted({mark.fetches for run in group for mark in run.marks})
        flying = f", {in_flight} in flight" if in_flight > 1 else ""
        webs = ", ".join(f"web {web}" for web in sorted({run.web for run in group}))
        lines += [f"## Cap {cap}{flying}: {', '.join(topics)}; {webs}", ""]
        of = {name: [run for run in group if run.policy == name] for name in policies}
        lines += _table(
            ["policy", *(f"HR@{mark:,}" for mark in marks), "runs"],
            ([name, *(mean([m.harvest for r in of[name] for m in r.marks if m.fetches == mark], 3) for mark in marks), str(len(of[name]))]
             for name in policies),
        )  # fmt: skip
        last = {name: [run.marks[-1] for run in of[name] if run.marks] for name in policies}
        points = {
            name: (float(np.mean([m.harvest for m in ms])), float(np.mean([m.domains for m in ms])))
            for name, ms in last.items()
            if ms
        }
        best = {
            n for n, p in points.items() if not any(q[0] >= p[0] and q[1] >= p[1] and q != p for q in points.values())
        }
        lines += ["Pareto: policies marked * are beaten by none in both harvest rate and relevant domains.", ""]
        lines += _table(
            ["policy", "harvest rate", "relevant hosts", "relevant domains", "hosts that answered", "leaves", "waiting",
             "ms a step", "worst ms", "reward: precision", "recall"],
            (
                [name + (" *" if name in best else ""), mean([m.harvest for m in ms], 3), mean([m.hosts for m in ms]),
                 mean([m.domains for m in ms]), mean([m.seen_hosts for m in ms]), mean([m.leaves for m in ms]),
                 mean([m.waiting for m in ms]), mean([m.step_ms for m in ms], 2),
                 mean([max(m.worst_ms for m in r.marks) for r in of[name]], 1),
                 mean([r.right / max(r.rewarded, 1) for r in of[name]], 2),
                 mean([r.right / max(r.relevant, 1) for r in of[name]], 2)]
                for name, ms in last.items() if ms
            ),
        )  # fmt: skip
    return "\n".join(lines)


def rivals(runs: Sequence[Run], first: str, others: Sequence[str]) -> str:
    """Return a Markdown table: is one policy above each of some others, in harvest rate and relevant domains at the end?

    One line for each cap, web and topic. Means of two policies are over the seeds that both have. ``above`` is at least
    as much of both, and more of one; ``mixed`` is more of one and less of the other.
    """
    ends: defaultdict[tuple[int, int, int, str], defaultdict[str, dict[int, Marks]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for run in runs:
        if run.marks:
            ends[CAPS.index(run.cap), run.in_flight, run.web, run.topic][run.policy][run.seed] = run.marks[-1]
    rows, above, compared = [], 0, 0
    for (cap, in_flight, web, topic), by in sorted(ends.items()):
        if first not in by:
            continue
        cells = [
            CAPS[cap] + (f", {in_flight} in flight" if in_flight > 1 else ""),
            f"{web}, {topic}",
            _point(by[first].values()),
        ]
        for other in others:
            seeds = sorted(by[first].keys() & by[other].keys())
            word = _compared([by[first][seed] for seed in seeds], [by[other][seed] for seed in seeds])
            compared, above = compared + bool(seeds), above + (word == "above")
            word = word if word == "above" else f"**{word}**"
            cells.append(f"{_point(by[other][seed] for seed in seeds)}: {word}" if seeds else "")
        rows.append(cells)
    head = ["cap", "web", f"{first}: harvest rate, relevant domains", *(f"{other}; {first} is" for other in others)]
    return "\n".join([*_table(head, rows), f"Above: {above} of {compared}."])


def _point(marks: Iterable[Marks]) -> str:
    both = [(mark.harvest, mark.domains) for mark in marks]
    return f"{mean([each[0] for each in both], 3)}, {mean([each[1] for each in both])}"


def _compared(ours: Sequence[Marks], theirs: Sequence[Marks]) -> str:
    harvest = sum(mark.harvest for mark in ours) - sum(mark.harvest for mark in theirs)
    domains = sum(mark.domains for mark in ours) - sum(mark.domains for mark in theirs)
    if not harvest and not domains:
        return "level"
    if harvest >= 0 and domains >= 0:
        return "above"
    return "below" if harvest <= 0 and domains <= 0 else "mixed"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *body, ""]


def read(path: Path) -> list[Run]:
    """Return the runs in a file; none if there is no file."""
    return [Run(**{**fields, "marks": [Marks(**mark) for mark in fields["marks"]]}) for fields in stored(path)]
