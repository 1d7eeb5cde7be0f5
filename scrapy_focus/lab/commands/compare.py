"""``focus compare``: which policy finds more with fewer requests, on sites that were recorded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.finders.kit.commands.base import FocusCommand, called, make, make_console, one_line, read_numbers, say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.lab.compare.comparison import Comparison
    from scrapy_focus.lab.compare.runs import Run
    from scrapy_focus.lab.replay.metrics import Metric

    Progress = Callable[[Run, int, int], object]

POLICIES = ("BranchingBandit", "SB-CLASSIFIER", "BFS", "KEYWORDS", "RANDOM", "OMNISCIENT")
#: Where crawls are judged by important pages.
IMPORTANCE_POLICIES = (
    "PageRank=Importance", "back-links=Importance:by=backlinks", "BFS", "KEYWORDS", "RANDOM", "BranchingBandit",
)  # fmt: skip
#: Where no metric is named: what matters most first, and what the first requests found in a table of their own.
_METRICS = ("requests_90", "requests_50")
_FIRST_METRICS = ("found_at_100", "found_at_300", "found_at_1000")
_IMPORTANCE_METRICS = ("pst_5", "pcs_5", "requests_90")
_SHOWN = 10  # failures
_BAR = 16  # columns of a terminal for the bar
_BESIDE = 44  # columns for all numbers around it


class CompareCommand(FocusCommand):
    """Compares policies on recorded sites."""

    command = "focus-compare"
    arguments = "SITE.sqlite [SITE.sqlite ...] [options]"
    summary = "Compare policies on recorded sites"
    details = (
        "Crawl recorded sites with several policies and several seeds, without a network, and compare what they find "
        "with how many requests. Shows a table, and writes a folder with one page to read (index.html), all numbers "
        "(runs.csv, summary.json, curves.json) and pictures. Ctrl-C ends it, and keeps what was done."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add = parser.add_argument
        add(
            "--policy", metavar="[LABEL=]NAME[:PARAM=VALUE,...]", action="append", default=[],
            help="a name of the paper (SB-CLASSIFIER, BFS, ...), a class (TagPath:alpha=30), or an import path "
            f"(mine=myproject.policies.Mine); repeat it for each policy (default {', '.join(POLICIES)})",
        )  # fmt: skip
        add("--seeds", metavar="N", default="5", help="crawls with each policy, or the seeds, as 3,7,9 (default 5)")
        add("--budget", metavar="N", help="stop each crawl after N requests")
        add("--concurrency", metavar="N", default="1", help="requests in flight (default 1)")
        add(
            "--latency", metavar="SECONDS", default="0",
            help="of a request, or 'recorded', or 'lognormal:0.2' with the median (default 0)",
        )  # fmt: skip
        add("--targets", metavar="TYPES", default="", help="what to look for, as csv,pdf,image/* (default data)")
        add("--goal", metavar="PATH", default="", help="import path of a goal, instead of --targets")
        add(
            "--structured", metavar="TYPES", default="",
            help="pages with structured data, as Recipe,Event, instead of --targets; for recordings with --bodies",
        )  # fmt: skip
        add("--words", metavar="WORDS", default="", help="words that suggest a target, as price,inflation rate")
        add(
            "--metric", metavar="NAME", action="append", default=[],
            help="what to show; the first one matters most (default requests_90 and "
            "requests_50, and what the first 100, 300 and 1,000 requests found)",
        )  # fmt: skip
        add(
            "--importance", metavar="MEASURE",
            help="also judge crawls by how early they visit important pages, by pagerank, backlinks, similarity:QUERY "
            "(for recordings with --bodies), or a CSV file with a URL and a number in each line",
        )  # fmt: skip
        add("--hot", metavar="SHARE", help="pages that are important enough, as 0.008, or a number (default 0.008)")
        add(
            "--baseline",
            metavar="LABEL",
            help="the policy that the others are compared with (default BFS, or else the first one)",
        )
        add("--jobs", metavar="N", help="processes (default one for each processor)")
        add("--out", metavar="FOLDER", default="comparison", help="where to write (default comparison)")
        add("--no-plots", action="store_true", help="draw nothing, which needs no matplotlib")
        add("--ignore-nothing", action="store_true", help="ask for images, films and the like too")

    def check(self, args: list[str], opts: argparse.Namespace) -> None:
        if not args:
            raise UsageError("name at least one recorded site; focus record makes one")
        wanted = [name for name in ("targets", "goal", "structured") if getattr(opts, name)]
        if len(wanted) > 1:
            raise UsageError(f"--{wanted[0]} and --{wanted[1]} both say what to look for; give one")
        if opts.hot is not None and opts.importance is None:
            raise UsageError("--hot says how many important pages count; say which ones are, as --importance pagerank")
        opts.hot = _hot(opts.hot)
        opts.seeds = _seeds(opts.seeds)
        read_numbers(opts, "budget", "concurrency", "jobs")

    def work(self, args: list[str], opts: argparse.Namespace) -> int:
        from scrapy_focus.lab.compare.comparison import check_metric, compare
        from scrapy_focus.lab.compare.folder import check_folder, write
        from scrapy_focus.lab.compare.plots import require_matplotlib
        from scrapy_focus.lab.replay.importance import HOT, KNOWN_METRICS
        from scrapy_focus.lab.replay.metrics import METRICS

        require_extra(called(self.command), "lab", "sklearn")
        known: Mapping[str, Metric[Any]] = METRICS
        metrics, policies = list(_METRICS), POLICIES
        if opts.importance is not None:
            known, metrics, policies = KNOWN_METRICS, list(_IMPORTANCE_METRICS), IMPORTANCE_POLICIES
        metrics = opts.metric or metrics
        for metric in metrics:
            check_metric(metric, known)
        if not opts.no_plots:
            require_matplotlib()
        goal = _goal(opts.goal, opts.targets, opts.structured)
        check_folder(Path(opts.out))
        with _progress(metrics[0]) as progress:
            comparison = compare(
                opts.policy or policies, args, goal=goal, seeds=opts.seeds,
                budget=opts.budget, concurrency=opts.concurrency, latency=_latency(opts.latency),
                ignored=frozenset() if opts.ignore_nothing else None, jobs=opts.jobs, progress=progress,
                baseline=opts.baseline, importance=opts.importance, hot=HOT if opts.hot is None else opts.hot,
                words=_words(opts.words),
            )  # fmt: skip
        if not comparison.runs:
            print("Interrupted before any crawl was done; nothing was written.", file=sys.stderr)
            return 130
        page = write(comparison, opts.out, metric=metrics[0], plots=not opts.no_plots)
        show(comparison, metrics, first=() if opts.metric or opts.importance else _FIRST_METRICS)
        say(f"The page to read: {page}", f"The numbers: {page.parent / 'runs.csv'}, {page.parent / 'summary.json'}")
        if comparison.interrupted:
            return 130
        return int(bool(comparison.failures))


def show(comparison: Comparison, metrics: list[str], *, first: Sequence[str] = ()) -> None:
    """Print tables, their summary in words, and the caveats; `first` are metrics in a table of their own."""
    from rich.text import Text

    from scrapy_focus.lab.compare.tables import found_table, loss_table, terminal_table
    from scrapy_focus.lab.compare.words import headline, warnings_of

    console = make_console()
    console.print(terminal_table(comparison, metrics))
    if first:
        console.print(found_table(comparison, first))
    if (lost := loss_table(comparison)) is not None:
        console.print(lost)
    for policy, contrast in comparison.paired(metrics[0]).items():
        if policy not in comparison.informed:
            console.print(Text(one_line(headline(comparison, metrics[0], policy, contrast))))
    for warning in warnings_of(comparison):
        console.print(Text(one_line(f"Warning: {warning}"), style="yellow"))
    failures = comparison.failures
    for run in failures[:_SHOWN]:
        last = run.error.strip().rpartition("\n")[2]
        failed = one_line(f"Failed: {run.policy} on {run.site}, seed {run.seed}: {last}")
        console.print(Text(failed, style="red"))
    if len(failures) > _SHOWN:
        console.print(Text(f"Failed: {len(failures) - _SHOWN} more; the page has them all", style="red"))


class _Lines:
    """Reports each finished run on a line, for logs and pipes."""

    def __init__(self, metric: str) -> None:
        self.metric = metric

    def __enter__(self) -> Progress:
        return self._show

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def _show(self, run: Run, done: int, planned: int) -> None:
        print(one_line(f"{done}/{planned} {_said(run, self.metric)}"), file=sys.stderr, flush=True)


class _Bar(_Lines):
    """Shows the progress on a terminal, and the time left."""

    def __init__(self, metric: str) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        super().__init__(metric)
        self._bar = Progress(
            TextColumn("Crawling"), BarColumn(_BAR), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left:"),
            TimeRemainingColumn(), TextColumn("{task.description}", markup=False), console=Console(stderr=True),
            transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self._show

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def _show(self, run: Run, done: int, planned: int) -> None:
        said = _said(run, self.metric)[
            : max(0, self._bar.console.width - _BAR - _BESIDE)
        ]  # or all columns would shrink
        self._bar.update(self._task, completed=done, total=planned, description=said)


def _progress(metric: str) -> AbstractContextManager[Progress]:
    return _Bar(metric) if sys.stderr.isatty() else _Lines(metric)


def _said(run: Run, metric: str) -> str:
    from scrapy_focus.lab.compare.words import number
    from scrapy_focus.lab.replay.importance import KNOWN_METRICS

    value = "failed" if run.error else f"{metric} {number(run.metrics[metric], KNOWN_METRICS[metric].unit)}"
    return one_line(f"{run.site}, {run.policy}, seed {run.seed}: {value}")


def _seeds(text: str) -> list[int]:
    """Read a number of seeds, or the seeds themselves."""
    words = [word.strip() for word in text.split(",")]
    if words[-1] == "" and len(words) == 2:  # "7," is the seed 7
        words.pop()
    if not all(word.isdecimal() for word in words) or text.strip() == "0":
        raise UsageError(f"--seeds is {text!r}; it takes how many from 1, or the seeds themselves: 3,7,9")
    return [int(word) for word in words] if "," in text else list(range(int(text)))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _hot(text: str | None) -> float | None:
    """Read a share of the pages, or a number of them."""
    if text is None:
        return None
    try:
        return int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        raise UsageError(f"--hot is {text!r}; it takes a share of the pages, as 0.008, or a number of pages") from None


def _latency(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _goal(path: str, targets: str, structured: str) -> Goal | None:
    from scrapy_focus.goals.files import FilesGoal
    from scrapy_focus.goals.structured import StructuredDataGoal
    from scrapy_focus.web.wanted import split_words

    if structured:
        return StructuredDataGoal.of(structured.split(","), "--structured")
    if not path:
        try:
            return FilesGoal(types=split_words(targets)) if targets else None
        except ConfigError as error:
            raise ConfigError(f"--targets: {error}") from error
    goal = make(f"--goal {path}", path)
    if not callable(goal):
        raise ConfigError(f"--goal {path} is not a goal: it takes a callable from an Outcome to a number")
    return goal  # type: ignore[no-any-return]
