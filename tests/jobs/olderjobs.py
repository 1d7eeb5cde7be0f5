"""Makes the jobs that later versions must be able to resume: crawls of each policy that were killed, in one archive.

Before ``FORMAT`` in ``core/events.py`` is raised, run this with the version that still writes the format before::

    python -m tests.jobs.olderjobs tests/jobs/data/format-12.tar.xz
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sklearn

from scrapy_focus import Budget, Crawl, HostBandit, HotQueue, Importance, Policy, Revisits
from scrapy_focus.jobs.job import Job
from scrapy_focus.lab.checks.policy import _Site
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.foragers import Foragers
from scrapy_focus.policies.orderings import BreadthFirst, DepthFirst, Random
from scrapy_focus.policies.tagpath.policy import TagPath
from scrapy_focus.policies.treeq.policy import TreeQ

if TYPE_CHECKING:
    from collections.abc import Callable

SITE = _Site(300)
FACTS = "facts.json"  # what a resumed crawl must know, by the name of its job
POLICIES: dict[str, Callable[[], Policy]] = {
    "branching": BranchingBandit,
    "breadth": BreadthFirst,
    "depth": DepthFirst,
    "foragers": Foragers,
    "hosts": HostBandit,
    "hot": lambda: HotQueue(words=["page"]),
    "importance": Importance,
    "random": Random,
    "revisits": Revisits,
    "tagpath": TagPath,
    "tree": lambda: TreeQ(keywords=["page"]),
}


def opened(folder: Path, name: str) -> Crawl:
    """Begin or resume a job."""
    return Crawl(POLICIES[name](), seed=3, job=Job(folder / "focus", every=25), budget=Budget(requests=1000))


def step(crawl: Crawl) -> bool:
    """Fetch one page; ``False`` if none is left."""
    if (pick := crawl.next()) is None:
        return False
    crawl.sent(pick.id)
    crawl.report(*SITE.answer(pick))
    return True


def facts_of(crawl: Crawl) -> dict[str, Any]:
    """Return what must be the same after a resume."""
    states = crawl.frontier.states([SITE.link(page).key for page in range(SITE.pages)])
    return {
        "states": [state.name for state in states],
        "outcomes": crawl.counts["outcomes"],
        "requests": crawl.budget.requests_used,
        "rewards": crawl.rewards,
    }


def make(folder: Path) -> None:
    """Write a job of each policy, killed after its 110th page with one in flight, and its state."""
    facts = {}
    for name in POLICIES:
        crawl = opened(folder / name, name)
        crawl.add([SITE.link(0)])
        for _ in range(110):
            step(crawl)
            crawl.job.flush()
        facts[name] = facts_of(crawl)
        crawl.job.close()
        for left in ("lock", "pid", "frontier.sqlite-shm", "frontier.sqlite-wal"):
            (folder / name / "focus" / left).unlink(missing_ok=True)
    facts["tagpath"]["needs"] = sklearn.__version__  # which reads its own classifiers only
    (folder / FACTS).write_text(json.dumps(facts))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, tarfile.open(sys.argv[1], "w:xz") as archive:
        make(Path(made))
        for path in sorted(Path(made).iterdir()):
            archive.add(path, path.name)
