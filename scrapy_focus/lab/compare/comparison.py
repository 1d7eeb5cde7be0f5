"""Compares policies on recorded sites: every policy on every site with every seed, and what the numbers say.

A mean over five crawls is soon computed and easily believed. So what was never reached is counted and not averaged,
differences are taken between crawls of the same site with the same seed, each site counts as much as any other, and
crawls that failed are shown.
"""

from __future__ import annotations

import difflib
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from scrapy_focus.core.budget import Budget
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.goals.files import FilesGoal
from scrapy_focus.lab.compare.pairs import Paired, paired
from scrapy_focus.lab.compare.runs import Conditions, Run, SiteFacts, Task, read_latency, run_all
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.recordings.format import RecordedSite, open_recording
from scrapy_focus.lab.replay.importance import HOT, IMPORTANCE_METRICS, KNOWN_METRICS, Measure
from scrapy_focus.lab.replay.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.lab.compare.specs import PolicyLike
    from scrapy_focus.lab.replay.metrics import Metric

Verdict = Literal["better", "worse", "unclear", "neither"]

_LUCK = 0.05  # p-value from which a difference may be luck

#: By whether a policy gets there with more seeds (1), as many (0) or fewer (-1), and by whether it is ahead (1), equal
#: (0) or behind (-1) in the mean of the seeds with which both do.
_VERDICTS: dict[tuple[int, int], Verdict] = {
    (1, 1): "better",
    (1, 0): "better",
    (1, -1): "unclear",
    (0, 1): "better",
    (0, 0): "unclear",
    (0, -1): "worse",
    (-1, 1): "unclear",
    (-1, 0): "worse",
    (-1, -1): "worse",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What the runs of one policy on one site say about one metric."""

    mean: float  # inf if one run never got there; nan if there is no run
    sd: float  # with n - 1; nan for n < 2, or where the mean is not finite
    n: int  # runs that have a value
    never: int  # of these, runs that never got there
    reached: float  # mean of the others; nan if there are none
    failed: int  # runs that failed, and have no value


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """What a policy differs by from the baseline in one metric."""

    pairs: Paired  # policy - baseline, by site and seed
    ratios: dict[str, float]  # mean of the policy / mean of the baseline, by site; only where both are above 0
    verdicts: dict[str, Verdict]  # by site, where both have runs

    @property
    def ratio(self) -> float:
        """Geometric mean of the ratios; nan if there are none."""
        if self.ratios:
            return math.exp(np.mean(np.log(list(self.ratios.values()))))
        return math.nan

    def sites(self, verdict: Verdict) -> list[str]:
        """Return the sites with this verdict."""
        return [site for site, said in self.verdicts.items() if said == verdict]


@dataclass(kw_only=True)
class Comparison:
    """What came of comparing policies. Runs are in the order of sites, policies and seeds."""

    policies: list[PolicySpec]
    sites: dict[str, SiteFacts | None]  # by name; None where no run could read the site
    seeds: list[int]
    conditions: Conditions
    baseline: str  # label of a policy
    runs: list[Run] = field(default_factory=list)
    interrupted: bool = False

    @property
    def labels(self) -> list[str]:
        """What the policies are called."""
        return [policy.label for policy in self.policies]

    @cached_property
    def informed(self) -> frozenset[str]:
        """Labels of the policies that are given the truth beforehand."""
        return frozenset(policy.label for policy in self.policies if policy.is_informed())

    @property
    def planned(self) -> int:
        """How many runs there should be."""
        return len(self.policies) * len(self.sites) * len(self.seeds)

    @property
    def failures(self) -> list[Run]:
        """The runs that failed."""
        return [run for run in self.runs if run.error]

    @property
    def metrics(self) -> Mapping[str, Metric[Any]]:
        """The metrics that its runs have, by key; those of important pages too, where crawls are judged by them."""
        return METRICS if self.conditions.importance is None else KNOWN_METRICS

    @property
    def empty(self) -> list[str]:
        """The sites on which there is nothing to find; they say nothing of any policy, and are in no difference."""
        return [site for site, facts in self.sites.items() if facts is not None and not facts.exhaustive.worth]

    def empty_for(self, metric: str) -> list[str]:
        """Return the sites that say nothing in a metric: no page is important there, or there is nothing to find."""
        if metric not in IMPORTANCE_METRICS:
            return self.empty
        found = {site: facts.importance for site, facts in self.sites.items() if facts is not None}
        return [site for site, importance in found.items() if importance is not None and not importance.n_hot]

    def of(self, site: str, policy: str) -> list[Run]:
        """Return the runs of one policy on one site."""
        return [run for run in self.runs if run.site == site and run.policy == policy]

    def cell(self, site: str, policy: str, metric: str) -> Cell:
        """Return mean and standard deviation of a metric over the seeds."""
        runs = self.of(site, policy)
        values = np.array([run.metrics.get(metric, math.nan) for run in runs if not run.error], np.float64)
        known = values[np.isfinite(values)]
        never = int(np.count_nonzero(np.isinf(values)))
        reached = float(known.mean()) if len(known) else math.nan
        return Cell(
            mean=math.inf if never else reached,
            sd=float(known.std(ddof=1)) if len(known) > 1 and not never else math.nan,
            n=len(values),
            never=never,
            reached=reached,
            failed=len(runs) - len(values),
        )

    def rewards(self, site: str, policy: str) -> list[float]:
        """Return the rewards of groups of links at the end of the crawls, as
        :func:`~scrapy_focus.learn.arms.reward_tables`, averaged over the seeds; none if the policy has no such table.

        A crawl with fewer groups than another counts as 0 from there on.
        """
        rows = [run.rewards for run in self.of(site, policy) if run.rewards]
        width = max(map(len, rows), default=0)
        return [float(np.mean([row[i] if i < len(row) else 0.0 for row in rows])) for i in range(width)]

    def table(self, metric: str) -> dict[tuple[str, str], Cell]:
        """Return mean and standard deviation of a metric, by site and policy."""
        check_metric(metric, self.metrics)
        return {(site, policy): self.cell(site, policy, metric) for site in self.sites for policy in self.labels}

    def best(self, site: str, metric: str) -> list[str]:
        """Return the policies with the best mean on a site, of those that are not given the truth."""
        sign = 1 if check_metric(metric, self.metrics) == "less" else -1
        if site in self.empty_for(metric):
            return []
        means = {}
        for policy in self.labels:
            if policy in self.informed:
                continue
            mean = sign * self.cell(site, policy, metric).mean
            if math.isfinite(mean):
                means[policy] = mean
        best = min(means.values(), default=math.inf)
        return [policy for policy, mean in means.items() if math.isclose(mean, best)]

    def paired(self, metric: str, baseline: str | None = None) -> dict[str, Contrast]:
        """Compare every other policy with the baseline, run by run of the same site and seed.

        On a site a policy is better or worse where a paired t-test over the seeds gives p < 0.05, where both have the
        same difference with every seed, or where it gets there with more seeds or with fewer, unless it is the other
        way round with the seeds with which both do. Otherwise it is not clear, as with one seed, unless neither gets
        there at all.
        """
        check_metric(metric, self.metrics)
        baseline = self.baseline if baseline is None else baseline
        if baseline not in self.labels:
            raise ConfigError(f"the baseline {baseline!r} is not compared; there are {', '.join(self.labels)}")
        return {policy: self._contrast(metric, policy, baseline) for policy in self.labels if policy != baseline}

    def _contrast(self, metric: str, policy: str, baseline: str) -> Contrast:
        all_ours: list[float] = []
        all_theirs: list[float] = []
        ratios: dict[str, float] = {}
        verdicts: dict[str, Verdict] = {}
        empty = self.empty_for(metric)
        for site in self.sites:
            ours, theirs = self._of_same_seeds(site, policy, baseline, metric)
            if site in empty or not ours:
                continue
            all_ours += ours
            all_theirs += theirs
            means = float(np.mean(ours)), float(np.mean(theirs))
            if all(math.isfinite(mean) and mean > 0 for mean in means):
                ratios[site] = means[0] / means[1]
            verdicts[site] = _judge(paired(ours, theirs), KNOWN_METRICS[metric].better)
        return Contrast(pairs=paired(all_ours, all_theirs), ratios=ratios, verdicts=verdicts)

    def _of_same_seeds(self, site: str, policy: str, baseline: str, metric: str) -> tuple[list[float], list[float]]:
        """Return the values of a policy and of the baseline for the seeds with which both ran, in the same order."""
        ours, theirs = self._by_seed(site, policy, metric), self._by_seed(site, baseline, metric)
        seeds = [seed for seed in ours if seed in theirs]
        return [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]

    def _by_seed(self, site: str, policy: str, metric: str) -> dict[int, float]:
        return {run.seed: run.metrics[metric] for run in self.of(site, policy) if metric in run.metrics}


def compare(
    policies: Iterable[PolicyLike],
    sites: Iterable[str | Path | RecordedSite] | Mapping[str, str | Path | RecordedSite],
    *,
    goal: Goal | None = None,
    seeds: Iterable[int] = range(5),
    budget: int | None = None,
    concurrency: int = 1,
    latency: float | str = 0.0,
    ignored: Collection[str] | None = None,
    jobs: int | None = None,
    progress: Callable[[Run, int, int], object] | None = None,
    baseline: str | None = None,
    words: Collection[str] = (),
    importance: str | Path | None = None,
    hot: float = HOT,
) -> Comparison:
    """Crawl every site with every policy and every seed, in several processes.

    Parameters
    ----------
    policies
        What :meth:`PolicySpec.of <scrapy_focus.lab.compare.specs.PolicySpec.of>` takes.
    sites
        Recorded sites, or the paths of their files; a mapping gives their names.
    goal
        What is worth something; data files by default. It is copied for each crawl.
    seeds
        Of the randomness; each is another crawl.
    budget, concurrency, ignored
        See :func:`~scrapy_focus.lab.replay.simulate.simulate`.
    latency
        Seconds that a request takes, ``"recorded"`` for those of the recording, or ``"lognormal:0.2"`` with the median.
    jobs
        Processes; as many as there are processors by default. With 1, everything runs in this one.
    progress
        Called after each run with the run, the number of runs that are done, and that of all.
    baseline
        Label of the policy that the others are compared with; breadth-first by default, where it is among them, and the
        first one otherwise.
    words
        Words that speak for a target, which every policy is given with the goal: live, ``FOCUS_KEYWORDS``.
    importance
        Also judge crawls by how early they visit the important pages: ``"pagerank"``, ``"backlinks"``,
        ``"similarity:red wine"`` with any query, or the path of a CSV file with a URL and a number in each line.
    hot
        How many pages are hot, that is, important enough: a share below 1, or a whole number.

    Returns
    -------
    Comparison
        With what was done so far if Ctrl-C was pressed. A run that failed has its traceback; the others are made.

    Raises
    ------
    RecordingError
        If a site cannot be opened.
    ConfigError
        If an argument cannot be used.
    """
    require_extra("comparing policies", "lab", "sklearn")
    specs = [PolicySpec.of(policy) for policy in policies]
    given = sites.values() if isinstance(sites, Mapping) else sites
    paths = [site.path if isinstance(site, RecordedSite) else Path(site) for site in given]
    numbers = list(seeds)
    # Whatever is wrong shows now, not in one of many processes after an hour.
    _check_all(specs, paths, numbers)
    measure = _measure(importance, hot, paths)
    Budget(requests=budget)
    read_latency(latency, None)
    if concurrency < 1 or (jobs is not None and jobs < 1):
        raise ConfigError(f"compare(concurrency={concurrency}, jobs={jobs}): both are at least 1")
    conditions = Conditions(
        goal=FilesGoal() if goal is None else goal, budget=budget, concurrency=concurrency, latency=latency,
        words=tuple(words), ignored=None if ignored is None else frozenset(ignored),
        importance=measure,
    )  # fmt: skip
    names = list(sites) if isinstance(sites, Mapping) else _names(paths)
    comparison = Comparison(
        policies=specs, sites=dict.fromkeys(names), seeds=numbers, conditions=conditions,
        baseline=_baseline(specs, baseline),
    )  # fmt: skip
    runs = product(zip(names, paths, strict=True), specs, numbers)
    tasks = [Task(site=name, path=path, policy=spec, seed=seed) for (name, path), spec, seed in runs]
    _run(comparison, tasks, min(jobs or os.cpu_count() or 1, len(tasks)), progress)
    return comparison


def _check_all(specs: Sequence[PolicySpec], paths: Sequence[Path], seeds: Sequence[int]) -> None:
    """Raise an error if one is missing or given twice, a policy cannot be made, or a site cannot be opened."""
    _check_given("policy", [spec.label for spec in specs])
    _check_given("site", paths)
    _check_given("seed", seeds)
    for spec in specs:
        spec.make()
    for path in paths:
        open_recording(path, writable=False).close()


def _measure(importance: str | Path | None, hot: float, paths: Sequence[Path]) -> Measure | None:
    if importance is None:
        return None
    measure = Measure.of(importance, hot)
    measure.check(paths)
    return measure


def check_metric(metric: str, known: Mapping[str, Metric[Any]] = METRICS) -> Literal["less", "more"]:
    """Return whether less or more of a metric is better.

    Raises
    ------
    ConfigError
        If there is no such metric among those that are known.
    """
    if metric in known:
        return known[metric].better
    if metric in IMPORTANCE_METRICS:
        raise ConfigError(
            f"the metric {metric!r} says how early important pages are visited; say which ones are important "
            "(--importance pagerank)"
        )
    near = difflib.get_close_matches(metric, known, n=1)
    meant = f"did you mean {near[0]}? There" if near else "there"
    raise ConfigError(f"there is no metric {metric!r}; {meant} are {', '.join(known)}")


def _run(
    comparison: Comparison, tasks: list[Task], jobs: int, progress: Callable[[Run, int, int], object] | None
) -> None:
    results = run_all(tasks, comparison.conditions, jobs)
    try:
        for run, facts in results:
            comparison.runs.append(run)
            comparison.sites[run.site] = facts or comparison.sites[run.site]
            if progress is not None:
                progress(run, len(comparison.runs), len(tasks))
    except KeyboardInterrupt:
        comparison.interrupted = True
    finally:
        results.close()
    order = {(task.site, task.policy.label, task.seed): number for number, task in enumerate(tasks)}
    comparison.runs.sort(key=lambda run: order[run.site, run.policy, run.seed])


def _judge(pairs: Paired, better: Literal["less", "more"]) -> Verdict:
    """Say how clear it is that a policy does better on a site than another, from their crawls with the same seeds."""
    seeds = pairs.n + pairs.only_a + pairs.only_b + pairs.neither
    if pairs.neither == seeds:
        return "neither"
    if seeds == 1 or (pairs.only_a and pairs.only_b):
        return "unclear"
    reaches = _sign(pairs.only_b - pairs.only_a)
    ahead = _sign(-pairs.difference if better == "less" else pairs.difference)
    may_be_luck = not pairs.p < _LUCK  # also where p is nan, for want of pairs
    return _VERDICTS[reaches, 0 if may_be_luck and not reaches else ahead]


def _sign(value: float) -> int:
    """Return 1, 0 or -1; 0 for nan."""
    return (value > 0) - (value < 0)


def _check_given(what: str, given: Sequence[object]) -> None:
    if not given:
        raise ConfigError(f"nothing to compare: give at least one {what}")
    twice = [value for value, times in Counter(given).items() if times > 1]
    if twice:
        hint = "; call one of them otherwise: label=name" if what == "policy" else ""
        raise ConfigError(f"{what} {twice[0]} is given twice{hint}")


def _names(paths: Sequence[Path]) -> list[str]:
    """Return what to call each site: the name of its file, with that of its folder where two are called the same."""
    stems = Counter(path.stem for path in paths)
    names = [path.stem if stems[path.stem] == 1 else f"{path.absolute().parent.name}/{path.stem}" for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _baseline(specs: Sequence[PolicySpec], wanted: str | None) -> str:
    """Return the label of the policy with this label or name; by default breadth-first, or else the first one."""
    if wanted is None:
        return _label_of("BFS", specs) or specs[0].label
    labels = {spec.label.lower(): spec.label for spec in specs}
    label = labels.get(wanted.lower()) or _label_of(wanted, specs)
    if label is None:
        raise ConfigError(
            f"the baseline {wanted!r} is none of the policies: {', '.join(labels.values())}; add it, or name one of "
            "them"
        )
    return label


def _label_of(name: str, specs: Sequence[PolicySpec]) -> str | None:
    try:
        meant = PolicySpec.parse(name)
    except ConfigError:
        return None
    return next((spec.label for spec in specs if (spec.path, spec.params) == (meant.path, meant.params)), None)
