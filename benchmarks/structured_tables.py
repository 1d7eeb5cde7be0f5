"""What ``structured.py`` measured: its runs as JSON, and as tables in reStructuredText."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from manyhosts.web import Found
from runfiles import mean, stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


@dataclass(kw_only=True)
class Mark:
    """What was counted after some fetches."""

    fetches: int
    pages: int  # that are worth something
    entities: int  # that are wanted, on these
    hosts: int  # with such a page
    domains: int
    seen_hosts: int  # that answered anything
    waiting: int
    step_us: float  # CPU of policy and frontier, mean since the last mark
    worst_ms: float


@dataclass(kw_only=True)
class Run:
    """A crawl, and what it found."""

    policy: str
    setting: str
    cap: str
    seed: int
    in_flight: int
    there: Found  # to be found
    marks: list[Mark] = field(default_factory=list)
    fetches: int = 0
    pages: int = 0  # that are worth something
    ended: str = ""
    seconds: float = 0.0  # wall time, with making the pages

    @property
    def key(self) -> tuple[str, str, str, int, int]:
        """What tells runs apart."""
        return (self.policy, self.setting, self.cap, self.seed, self.in_flight)

    @property
    def precision(self) -> float:
        """Share of the fetches that brought a page that is worth something."""
        return self.pages / max(self.fetches, 1)


def tables(runs: Sequence[Run], settings: Sequence[str]) -> str:
    """Return a table for each setting, cap and number in flight: precision by fetches, recall, and what it costs."""
    groups: defaultdict[tuple[str, str, int], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.setting, run.cap, run.in_flight].append(run)
    lines: list[str] = []
    for (setting, cap, in_flight), group in sorted(
        groups.items(), key=lambda each: (settings.index(each[0][0]), each[0][1:])
    ):
        marks = sorted({mark.fetches for run in group for mark in run.marks})
        title = f"{setting}, {in_flight} in flight" + (f", at most {cap} pages a domain" if cap != "none" else "")
        base = np.mean([run.there.pages / run.there.of for run in group])
        head = [
            "policy", *(f"precision {mark:,}" for mark in marks), "entities", "hosts", "domains", "hosts seen", "µs a fetch",
            "worst ms", "runs",
        ]  # fmt: skip
        rows = [
            _row(name, [run for run in group if run.policy == name], marks)
            for name in dict.fromkeys(run.policy for run in group)
        ]
        lines += _table(f"{title} (base rate {base:.3f})", head, rows)
    return "\n".join(lines)


def _row(name: str, runs: Sequence[Run], marks: Sequence[int]) -> list[str]:
    last = [(run.marks[-1], run.there) for run in runs if run.marks]
    return [
        name,
        *(mean([mark.pages / at for run in runs for mark in run.marks if mark.fetches == at], 3) for at in marks),
        mean([mark.entities / there.entities for mark, there in last], 3),
        mean([mark.hosts / there.hosts for mark, there in last], 3),
        mean([mark.domains / there.domains for mark, there in last], 3),
        mean([mark.seen_hosts for mark, _ in last]),
        mean([_weighted(run.marks) for run in runs if run.marks]),
        mean([max(mark.worst_ms for mark in run.marks) for run in runs if run.marks], 1),
        str(len(runs)),
    ]


def _weighted(marks: Sequence[Mark]) -> float:
    """Return the mean CPU of a fetch of all of a run."""
    before, total = 0, 0.0
    for mark in marks:
        total += mark.step_us * (mark.fetches - before)
        before = mark.fetches
    return total / max(before, 1)


def describe(there: Mapping[tuple[str, int], Found]) -> str:
    """Return a table of what there is to find, by setting and seed of the web."""
    head = ["setting", "seed", "pages", "worth something", "share", "entities", "hosts", "domains"]
    rows = [
        [setting, str(seed), f"{of.of:,}", f"{of.pages:,}", f"{of.pages / of.of:.3f}", f"{of.entities:,}", f"{of.hosts:,}",
         f"{of.domains:,}"]
        for (setting, seed), of in there.items()
    ]  # fmt: skip
    return "\n".join(_table("What there is to be found", head, rows))


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f".. list-table:: {title}", "   :header-rows: 1", ""]
    for row in (head, *rows):
        lines += [f"   {'* -' if at == 0 else '  -'} {cell}".rstrip() for at, cell in enumerate(row)]
    return [*lines, ""]


def read(path: Path) -> list[Run]:
    """Return the runs in a file; none if there is no file."""
    return [
        Run(**{**fields, "marks": [Mark(**mark) for mark in fields["marks"]], "there": Found(*fields["there"])})
        for fields in stored(path)
    ]
