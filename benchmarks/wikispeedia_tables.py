"""What ``wikispeedia.py`` measured: its runs as JSON, and as tables in Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from runfiles import mean, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

Key = tuple[str, int, str, str, str, str]
Seeds = dict[int, float]  # seed -> harvest rate, or a difference of two


@dataclass(kw_only=True)
class Run:
    """A crawl, and its harvest rates."""

    subject: str
    seed: int
    policy: str  # what the row is called
    spec: str  # what it is
    classifier: str
    rewards: str
    fetched: int
    rates: dict[str, float]  # by the number of fetches
    precision: float  # of the classifier's rewards
    recall: float

    @property
    def key(self) -> Key:
        """What tells runs apart."""
        return (self.subject, self.seed, self.policy, self.spec, self.classifier, self.rewards)


def read(path: Path) -> list[Run]:
    """Return the runs in a file; none if there is no file."""
    return [Run(**fields) for fields in stored(path)]


def name_of(subject: str) -> str:
    """Return what a subject, or a union of some, is called."""
    return subject.partition("=")[0].removeprefix("subject.")


class Tables:
    """Markdown tables of runs. The first policy is the one that is compared with all others.

    A cell is a mean over seeds and their standard deviation. It is empty without a run. The mean over several
    subjects, and every difference of two policies, is over the seeds for which each of them has a run.
    """

    def __init__(self, runs: Sequence[Run], policies: Sequence[str]) -> None:
        there = {run.policy for run in runs}
        self.policies = [*(name for name in policies if name in there), *sorted(there - {*policies})]
        self.subjects = list(dict.fromkeys(run.subject for run in runs))
        points = sorted({int(n) for run in runs for n in run.rates})
        self.columns = [(rewards, n) for rewards in dict.fromkeys(run.rewards for run in runs) for n in points]
        self._runs = runs
        self._rates: dict[tuple[str, str, str, int], Seeds] = {}
        for run in runs:
            for n, rate in run.rates.items():
                self._rates.setdefault((run.subject, run.policy, run.rewards, int(n)), {})[run.seed] = rate

    def report(self) -> str:
        """Return a table for each subject, and three over all: means, what is ahead of whom, and where it is not."""
        if not self._runs:
            return "No runs yet."
        lines: list[str] = []
        for subject in self.subjects:
            of = [run for run in self._runs if run.subject == subject]
            quality = {run.seed: (run.precision, run.recall) for run in of}
            precision, recall = (mean(values, 3) for values in zip(*quality.values(), strict=True))
            lines += [f"### {name_of(subject)}", ""]
            lines += [f"The linear classifier's rewards: precision {precision}, recall {recall}.", ""]
            lines += self._table((name, partial(self._of, subject, name)) for name in self.policies)
        several = f"Mean over {len(self.subjects)} subjects"
        lines += [f"### {several}", ""]
        lines += self._table((name, partial(self._over, name)) for name in self.policies)
        first, *others = self.policies
        if others:
            lines += [f"### {several}, {first} minus each other, by seed", ""]
            lines += self._table((name, partial(self._ahead, name)) for name in others)
            lines += [f"### {first}, and the best of all others", ""]
            lines += ["**!**: below the best other by more than half the spread of its own seeds.", ""]
            lines += self._rivals(first, others)
        return "\n".join(lines)

    def _of(self, subject: str, policy: str, rewards: str, n: int) -> Seeds:
        return self._rates.get((subject, policy, rewards, n), {})

    def _over(self, policy: str, rewards: str, n: int) -> Seeds:
        return _joined([self._of(subject, policy, rewards, n) for subject in self.subjects])

    def _ahead(self, policy: str, rewards: str, n: int) -> Seeds:
        own, other = (self._over(name, rewards, n) for name in (self.policies[0], policy))
        return {seed: own[seed] - other[seed] for seed in own if seed in other}

    def _table(self, rows: Iterable[tuple[str, Callable[[str, int], Seeds]]]) -> list[str]:
        lines = self._head("--:")
        for name, cell in rows:
            lines += [f"| {name} | " + " | ".join(mean([*cell(*column).values()], 3) for column in self.columns) + " |"]
        return [*lines, ""]

    def _head(self, rule: str) -> list[str]:
        names = " | ".join(f"{rewards}, {n:,}" for rewards, n in self.columns)
        return [f"| | {names} |", "|---" + f"|{rule}" * len(self.columns) + "|"]

    def _rivals(self, first: str, others: Sequence[str]) -> list[str]:
        lines, short = self._head("---"), 0
        for subject in self.subjects:
            cells = []
            for column in self.columns:
                own = self._of(subject, first, *column)
                rivals = {name: [*self._of(subject, name, *column).values()] for name in others}
                rivals = {name: values for name, values in rivals.items() if values}
                if not own or not rivals:
                    cells.append("")
                    continue
                best = max(rivals, key=lambda name: float(np.mean(rivals[name])))
                behind = is_behind([*own.values()], rivals[best])
                short += behind
                mark = "**!** " if behind else ""
                cells.append(f"{mark}{mean([*own.values()], 3)}; {best} {np.mean(rivals[best]):.3f}")
            lines.append(f"| {name_of(subject)} | " + " | ".join(cells) + " |")
        return [*lines, "", f"Marked: {short} of {len(self.subjects) * len(self.columns)}.", ""]


def is_behind(own: Sequence[float], other: Sequence[float]) -> bool:
    """Whether a mean is below another one by more than half the standard deviation of its values.

    Examples
    --------
    >>> is_behind([0.5, 0.7], [0.66]), is_behind([0.5, 0.7], [0.68]), is_behind([0.6], [0.61])
    (False, True, True)
    """
    spread = float(np.std(own, ddof=1)) if len(own) > 1 else 0.0
    return float(np.mean(own)) < float(np.mean(other)) - spread / 2


def _joined(of: Sequence[Seeds]) -> Seeds:
    """Return the mean for each seed that all have."""
    seeds = [seed for seed in of[0] if all(seed in each for each in of)]
    return {seed: float(np.mean([each[seed] for each in of])) for seed in seeds}
