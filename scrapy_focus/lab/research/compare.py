"""A comparison of policies on recorded sites, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy_focus.lab.compare import comparison as runs
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.importance import HOT
from scrapy_focus.lab.research.comparison import Comparison
from scrapy_focus.lab.research.targets import check_targets, goal_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import TypeAlias

    from scrapy_focus.lab.compare.runs import Run
    from scrapy_focus.lab.compare.specs import PolicyLike
    from scrapy_focus.lab.research.targets import Targets

    Recording: TypeAlias = "str | Path | RecordedSite"

#: What is compared where no policy is named.
POLICIES = ("BranchingBandit", "SB-CLASSIFIER", "BFS", "KEYWORDS", "RANDOM")


def compare(
    recordings: Recording | Iterable[Recording] | Mapping[str, Recording],
    policies: PolicyLike | Iterable[PolicyLike] | Mapping[str, PolicyLike] = POLICIES,
    *,
    seeds: int | Iterable[int] = 5,
    budget: int | None = None,
    targets: Targets = None,
    processes: int | None = None,
    baseline: str | None = None,
    concurrency: int = 1,
    latency: float | str = 0.0,
    words: Collection[str] = (),
    ignored: Collection[str] | None = None,
    importance: str | Path | None = None,
    hot: float = HOT,
    progress: Callable[[Run, int, int], object] | None = None,
) -> Comparison:
    """Crawl recorded sites with each policy and each seed, without a network, and compare what they find.

    Parameters
    ----------
    recordings
        What :func:`~scrapy_focus.record` returned, or paths: one, several, or by the name that tables show.
    policies
        Names (``"BFS"``, ``"TagPath:alpha=30"``), import paths, classes, functions that make a policy, or new policies:
        one, several, or by the label that tables show. Classes may be defined in a notebook.
    seeds
        How many crawls each policy makes of each site, or the seeds themselves.
    budget
        Requests of each crawl at most; ``None``: until nothing is left.
    targets
        What to look for: file types (``"csv,pdf"``), or a goal. By default data files.
    processes
        As many as there are processors by default. With 1, everything runs in this process. Policies from a notebook or
        script need Linux to run in several.
    baseline
        Label of the policy that the others are compared with; by default breadth-first where it is among them, else the
        first one.
    concurrency
        Requests in flight at most.
    latency
        Seconds that a request takes, ``"recorded"``, or ``"lognormal:0.2"`` with the median.
    words
        Words that speak for a target, as ``FOCUS_KEYWORDS`` in a live crawl.
    ignored
        Extensions of URLs that are not requested; by default those of images, films and the like that are not looked
        for. ``()``: none.
    importance, hot
        Also judge crawls by how early they visit important pages: ``"pagerank"``, ``"backlinks"``,
        ``"similarity:red wine"`` with any query, or the path of a CSV file; ``hot`` is the share or number of pages
        that are important.
    progress
        Called after each run with the run, the number of finished runs, and the number of all.

    Returns
    -------
    Comparison
        A notebook shows it as a table. After Ctrl-C it has the runs finished so far.

    Raises
    ------
    RecordingError
        If a recording is missing or cannot be read.
    ConfigError
        If there is no such policy, if no recording has a target, or if an argument cannot be used.
    """
    sites: Any = [recordings] if isinstance(recordings, str | Path | RecordedSite) else recordings
    sites = sites if isinstance(sites, Mapping) else list(sites)
    goal = goal_of(targets)
    specs = _specs_of(policies)
    if importance is None:
        check_targets(_opened(sites), goal, ignored)
    return Comparison.from_runs(
        runs.compare(
            specs, sites, goal=goal, seeds=range(seeds) if isinstance(seeds, int) else seeds, budget=budget,
            concurrency=concurrency, latency=latency, jobs=processes, progress=progress, baseline=baseline,
            words=words, ignored=ignored, importance=importance, hot=hot,
        )
    )  # fmt: skip


def _specs_of(policies: PolicyLike | Iterable[PolicyLike] | Mapping[str, PolicyLike]) -> list[PolicySpec]:
    if isinstance(policies, Mapping):
        return [PolicySpec.of(policy, label) for label, policy in policies.items()]
    if isinstance(policies, Iterable) and not isinstance(policies, str | type):
        return [PolicySpec.of(policy) for policy in policies]
    return [PolicySpec.of(policies)]


def _opened(sites: Iterable[Recording] | Mapping[str, Recording]) -> Iterator[RecordedSite]:
    for recording in sites.values() if isinstance(sites, Mapping) else sites:
        if isinstance(recording, RecordedSite):
            yield recording
        else:
            with closing(RecordedSite(recording)) as site:
                yield site
