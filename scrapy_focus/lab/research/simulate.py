"""One simulated crawl of a recorded site, in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.mission import Mission
from scrapy_focus.core.policy import Policy
from scrapy_focus.lab.compare.runs import read_latency
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay import simulate as replay
from scrapy_focus.lab.research.targets import check_targets, goal_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from scrapy_focus.core.budget import Budget
    from scrapy_focus.lab.compare.specs import PolicyLike
    from scrapy_focus.lab.replay.harvest import Harvest
    from scrapy_focus.lab.research.targets import Targets


def simulate(
    recording: str | Path | RecordedSite,
    policy: PolicyLike = "BranchingBandit",
    *,
    budget: int | Budget | None = None,
    seed: int = 0,
    targets: Targets = None,
    concurrency: int = 1,
    latency: float | str = 0.0,
    words: Collection[str] = (),
    ignored: Collection[str] | None = None,
) -> Harvest:
    """Crawl a recorded site with one policy, without a network.

    Parameters
    ----------
    recording
        What :func:`~scrapy_focus.record` returned, or the path of its file.
    policy
        A name (``"BFS"``, ``"TagPath:alpha=30"``), an import path, a class, a function that makes a policy, or a new
        policy. A class may be defined in a notebook.
    budget
        Requests to make at most, or a :class:`~scrapy_focus.Budget`; ``None``: until nothing is left.
    seed
        Of the randomness.
    targets
        What to look for: file types (``"csv,pdf"``), or a goal. By default data files.
    concurrency
        Requests in flight at most.
    latency
        Seconds that a request takes, ``"recorded"``, or ``"lognormal:0.2"`` with the median.
    words
        Words that speak for a target, as ``FOCUS_KEYWORDS`` in a live crawl.
    ignored
        Extensions of URLs that are not requested; by default those of images, films and the like that are not looked
        for. ``()``: none.

    Returns
    -------
    Harvest
        What was found after each request.

    Raises
    ------
    RecordingError
        If the recording is missing or cannot be read.
    ConfigError
        If there is no such policy, if the recording has no target, or if an argument cannot be used.
    """
    spec = PolicySpec.of(policy)
    made = policy if isinstance(policy, Policy) else spec.make()  # the caller can look into it afterwards
    goal = goal_of(targets)
    site = recording if isinstance(recording, RecordedSite) else RecordedSite(recording)
    truth = check_targets([site], goal, ignored)
    return replay.simulate(
        made, goal, site, budget=budget, seed=seed, ignored=ignored, concurrency=concurrency,
        latency=read_latency(latency, site), mission=Mission.of(goal, words=words), truth=truth,
    )  # fmt: skip
