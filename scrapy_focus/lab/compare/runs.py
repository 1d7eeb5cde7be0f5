"""Makes many simulated crawls in several processes: one task for each site, policy and seed.

A comparison takes hours on large sites, so what fails or kills its process must not take the others along, what is done
when somebody presses Ctrl-C is kept, and of each crawl only what is shown later comes back.

A policy or goal that was defined in a notebook or a script cannot be imported by a new process. On Linux, forks of this
process run such crawls. Other systems have no safe fork: everything runs in this process there, after a warning.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import connection
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.abilities import ShowsTables
from scrapy_focus.core.contract import tables_of
from scrapy_focus.core.errors import ConfigError, RecordingError
from scrapy_focus.core.goal import types_of
from scrapy_focus.core.mission import Mission
from scrapy_focus.lab.recordings.format import Completeness, RecordedSite
from scrapy_focus.lab.replay.importance import IMPORTANCE_METRICS, SiteImportance
from scrapy_focus.lab.replay.latency import Constant, LogNormal, Recorded
from scrapy_focus.lab.replay.metrics import summary
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.learn.arms import rewards_in
from scrapy_focus.web.mime import blocked_extensions

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from multiprocessing.context import BaseContext
    from pathlib import Path

    from numpy.typing import NDArray

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.lab.compare.specs import PolicySpec
    from scrapy_focus.lab.replay.harvest import Exhaustive, Harvest
    from scrapy_focus.lab.replay.importance import ImportanceFacts, Measure, Visits
    from scrapy_focus.lab.replay.latency import Latency

_POINTS = 400  # of a curve
_DIED = "the process of this run died without a word; most often there was not enough memory for it: try fewer --jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions of all crawls in a comparison; see :func:`~scrapy_focus.lab.replay.simulate.simulate`."""

    goal: Goal
    budget: int | None = None  # requests
    concurrency: int = 1
    latency: float | str = 0.0  # seconds, "recorded", or "lognormal:median"
    words: tuple[str, ...] = ()  # that suggest a target, as FOCUS_KEYWORDS
    ignored: frozenset[str] | None = None  # extensions; None: those of images and the like
    importance: Measure | None = None  # by which crawls are judged, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One crawl to make."""

    site: str  # its label
    path: Path
    policy: PolicySpec
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """The properties of a recorded site for those who look for something on it."""

    name: str
    path: Path
    roots: list[str]
    completeness: Completeness
    exhaustive: Exhaustive
    importance: ImportanceFacts | None = None  # if crawls are judged by it


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The course of a crawl at some of its requests, in % of an exhaustive crawl. Arrays have shape (n_points,)."""

    requests: NDArray[np.float64]
    found: NDArray[np.float64]  # of all worth
    waste: NDArray[np.float64]  # of the volume that is worth nothing
    volume: NDArray[np.float64]  # of the volume that is worth something


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitCurve:
    """How early a crawl visited the important pages, at some of its pages. Arrays have shape (n_points,)."""

    pages: NDArray[np.float64]  # visited, in % of all
    pst: NDArray[np.float64]  # % of the hot pages
    pcs: NDArray[np.float64]  # % of the pages visited


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of one crawl."""

    site: str
    policy: str  # its label
    seed: int
    metrics: dict[str, float] = field(default_factory=dict)  # by key, as Comparison.metrics; empty if it failed
    curve: Curve | None = None
    visits: VisitCurve | None = None  # if crawls are judged by importance
    rewards: tuple[float, ...] = ()  # of groups of links at the end, as reward_tables(); () without any
    stopped: str = ""  # why the crawl was over; "": nothing was left
    elapsed: float = 0.0  # seconds that the simulation took
    error: str = ""  # the traceback, if it failed


Result = tuple[Run, SiteFacts | None]


class Runner:
    """Makes one crawl after the other, and opens a site once for consecutive ones.

    Parameters
    ----------
    conditions
        The conditions.
    """

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self._open: tuple[RecordedSite, SiteTruth, SiteImportance | None] | None = None

    def __call__(self, task: Task) -> Result:
        """Make a crawl; an exception becomes the error of the run."""
        started, facts, conditions = perf_counter(), None, self.conditions
        metrics: dict[str, float] = {}
        rewards: tuple[float, ...] = ()
        curve, visits, stopped, error = None, None, "", ""
        try:
            site, truth, importance = self._site(task.path)
            facts = SiteFacts(
                name=task.site, path=task.path, roots=list(site.meta["roots"]), completeness=site.completeness(),
                exhaustive=truth.exhaustive, importance=None if importance is None else importance.facts,
            )  # fmt: skip
            goal, policy = copy.deepcopy(conditions.goal), task.policy.make()
            harvest = simulate(
                policy,
                goal,
                site,
                budget=conditions.budget,
                concurrency=conditions.concurrency,
                latency=read_latency(conditions.latency, site),
                seed=task.seed,
                ignored=conditions.ignored,
                mission=Mission.of(goal, words=conditions.words),
                truth=truth,
            )
            metrics, curve, stopped = summary(harvest), curve_of(harvest), harvest.stopped
            if isinstance(policy, ShowsTables):
                with suppress(Exception):  # a table that fails ends no live crawl either
                    rewards = rewards_in(tables_of(policy))
            if importance is not None:
                visited = importance.visits(harvest)
                metrics |= {key: float(metric.of(visited)) for key, metric in IMPORTANCE_METRICS.items()}
                visits = visit_curve_of(visited)
        except KeyboardInterrupt:
            raise
        except BaseException:  # a policy that calls sys.exit() ends its own crawl only
            error = traceback.format_exc()
        run = Run(
            site=task.site, policy=task.policy.label, seed=task.seed, metrics=metrics, curve=curve, visits=visits,
            rewards=rewards, stopped=stopped, elapsed=perf_counter() - started, error=error,
        )  # fmt: skip
        return run, facts

    def _site(self, path: Path) -> tuple[RecordedSite, SiteTruth, SiteImportance | None]:
        if self._open is None or self._open[0].path != path:
            self._open = None  # close the other one first: two large sites may be too much
            site, goal, ignored = RecordedSite(path), self.conditions.goal, self.conditions.ignored
            if ignored is None:
                ignored = blocked_extensions(types_of(goal))
            truth, measure = SiteTruth(site, goal, ignored=ignored), self.conditions.importance
            self._open = site, truth, None if measure is None else SiteImportance(site, truth, measure)
        return self._open


def run_all(tasks: Sequence[Task], conditions: Conditions, jobs: int) -> Generator[Result, None, None]:
    """Make all crawls, and yield each result as it arrives. Closing the iterator ends running crawls at once.

    Raises
    ------
    ConfigError
        If other processes cannot be started.
    """
    context = None if jobs == 1 else context_of(tasks, conditions)
    if context is None:
        yield from map(Runner(conditions), tasks)
        return
    for path in dict.fromkeys(task.path for task in tasks):
        with suppress(RecordingError):  # any run that needs it reports the error
            RecordedSite(path).close()  # so that its columns exist, and not every process makes them
    left = dict(enumerate(tasks))
    while left:
        try:
            yield from _run_in_pool(left, conditions, jobs, context)
        except BrokenProcessPool:
            if jobs == 1:  # in order, so it was the first that is left
                task = left.pop(min(left))
                yield Run(site=task.site, policy=task.policy.label, seed=task.seed, error=_DIED), None
            jobs = 1  # it is unknown which one it was, or whether memory suffices for two


def context_of(tasks: Sequence[Task], conditions: Conditions) -> BaseContext | None:
    """Return how processes are started that know all policies and the goal; ``None`` if only this process does."""
    try:
        sent = pickle.dumps((tasks, conditions))
    except Exception:  # whatever an object of a user does
        sent = b"__main__"
    if b"__main__" not in sent:
        return multiprocessing.get_context("spawn")
    if sys.platform == "linux":
        return multiprocessing.get_context("fork")
    warnings.warn(
        "a policy or the goal is defined in a notebook or script, where other processes cannot import it: all crawls "
        "run in this process; move it into a module to use several",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _run_in_pool(left: dict[int, Task], conditions: Conditions, jobs: int, context: BaseContext) -> Iterator[Result]:
    """Make crawls in processes, and take those that are done out of ``left``."""
    alive, ours = context.Pipe(duplex=False)
    is_fork = context.get_start_method() == "fork"
    start = partial(_start_fork, alive, ours, conditions, left) if is_fork else partial(_start, alive, conditions)
    executor = ProcessPoolExecutor(jobs, mp_context=context, initializer=start)
    try:
        try:
            with _deaf_children(), warnings.catch_warnings():
                # A fork of a process with threads is a risk where it takes locks that these hold. Crawls take none.
                warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
                first = executor.submit(os.getpid)
            first.result()
        except BrokenProcessPool as error:
            raise ConfigError(
                "no other process could be started; a script calls compare() below if __name__ == '__main__', and "
                "what it defines itself is in a module; or use one job"
            ) from error
        with _deaf_children():
            numbers = {
                executor.submit(_run_number, number) if is_fork else executor.submit(_run, task): number
                for number, task in left.items()
            }
        for future in as_completed(numbers):
            if future.exception() is not None:  # finished ones are neither repeated nor blamed
                continue
            result = future.result()
            del left[numbers.pop(future)]
            yield result
        for future in numbers:
            future.result()
    finally:
        ours.close()
        executor.shutdown(cancel_futures=True)
        alive.close()


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Let processes started meanwhile ignore Ctrl-C, which a terminal sends to all: this one ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_runner: Runner  # of a process that makes crawls for another one
_tasks: Mapping[int, Task]  # of a fork, which has them from the process that it is a copy of


def _start(alive: connection.Connection, conditions: Conditions) -> None:
    """Prepare a new process, which ends with the other end of the pipe, whatever it is doing."""
    global _runner  # noqa: PLW0603 (an executor has no other place for what a process keeps)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()
    _runner = Runner(conditions)


def _start_fork(
    alive: connection.Connection, ours: connection.Connection, conditions: Conditions, tasks: Mapping[int, Task]
) -> None:
    """Prepare a fork, which also holds the end of the pipe whose end it waits for."""
    global _tasks  # noqa: PLW0603 (as above)
    ours.close()
    _tasks = tasks
    _start(alive, conditions)


def _end_with(alive: connection.Connection) -> None:
    connection.wait([alive])
    os._exit(1)


def _run(task: Task) -> Result:
    return _runner(task)


def _run_number(number: int) -> Result:
    return _runner(_tasks[number])


def read_latency(latency: float | str, site: RecordedSite | None) -> float | Latency:
    """Return the meaning of a latency: seconds, ``"recorded"``, or ``"lognormal:median"``, perhaps with ``,sigma``.

    Without a site, it is only checked.

    Raises
    ------
    ConfigError
        If it is none of these.
    """
    kind, _, rest = str(latency).partition(":")
    try:
        if kind == "recorded" and not rest:
            return 0.0 if site is None else Recorded(site)
        if kind == "lognormal":
            return LogNormal(*(float(number) for number in rest.split(",")))
        return Constant(float(latency)).seconds
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the latency is {latency!r}; give seconds, 'recorded', or 'lognormal:0.2' with the median in seconds"
        ) from error


def curve_of(harvest: Harvest) -> Curve:
    """Return the course of a crawl at no more than 400 of its requests, the first and the last among them."""
    rows = np.unique(np.linspace(0, harvest.requests, min(_POINTS, harvest.requests + 1)).round().astype(np.int64))
    whole = harvest.exhaustive
    return Curve(
        requests=_percent(rows.astype(np.float64), whole.requests), found=_percent(harvest.found[rows], whole.worth),
        waste=_percent(harvest.other_bytes[rows], whole.other_bytes),
        volume=_percent(harvest.target_bytes[rows], whole.target_bytes),
    )  # fmt: skip


def visit_curve_of(visits: Visits) -> VisitCurve:
    """Return how early a crawl visited important pages at no more than 400 of its pages, the first and the last too."""
    n = len(visits.pst)
    rows = np.unique(np.linspace(0, n - 1, min(_POINTS, n)).round().astype(np.int64))
    return VisitCurve(
        pages=_percent(rows + 1, visits.n_pages), pst=np.round(visits.pst[rows], 4), pcs=np.round(visits.pcs[rows], 4)
    )


def _percent(values: NDArray[np.float64] | NDArray[np.int64], whole: float) -> NDArray[np.float64]:
    return np.round(100 * values / whole, 4) if whole else np.zeros(len(values))
