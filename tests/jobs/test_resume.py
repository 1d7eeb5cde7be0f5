"""A crawl that stops and resumes: nothing is lost, and it refuses to resume as a different crawl."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import Budget, Crawl, FilesGoal, Job, Plateau, Policy, ResumeError, StorageError, memory_frontier
from scrapy_focus.core import clock as time
from scrapy_focus.core.stop import CostLimit
from scrapy_focus.jobs.checksums import summed
from scrapy_focus.jobs.description import describe
from scrapy_focus.jobs.doctor.check import check_job
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst, Random
from scrapy_focus.policies.revisits import Revisits
from scrapy_focus.policies.tagpath.policy import TagPath
from tests.made import Clock, fetch, link, links

if TYPE_CHECKING:
    from pathlib import Path


def stopped(policy: Policy, folder: Path, **options: Any) -> Crawl:
    """Return a crawl that was closed in mid-crawl, one pick in flight."""
    crawl = Crawl(policy, seed=5, strict=True, job=Job(folder), **options)
    crawl.add([link(i, tag_path="html/body/a") for i in range(8)])
    for i in range(3):
        fetch(crawl, link(20 + i, tag_path="html/body/a"), items=i)
    crawl.checkpoint()
    crawl.sent(crawl.next().id)
    crawl.close()
    return crawl


def resumed(policy: Policy, folder: Path, **options: Any) -> Crawl:
    """Return the crawl in a folder, open; it is closed if it is refused."""
    job = Job(folder)
    try:
        return Crawl(policy, strict=True, job=job, **options)
    except BaseException:
        job.close()
        raise


@pytest.mark.parametrize("policy", [BreadthFirst, Random, lambda: TagPath(probe=False), BranchingBandit])
def test_a_crawl_resumes_as_if_it_had_not_stopped(policy: Any, tmp_path: Path) -> None:
    """Counts, rewards and budget continue, picks in flight are queued again, and the policy chooses as before."""
    clock = Clock()
    stopped(policy(), tmp_path / "stopped", budget=Budget(requests=100), clock=clock)
    later = resumed(policy(), tmp_path / "stopped", seed=99, budget=Budget(requests=100), clock=clock)
    crawl = Crawl(
        policy(), frontier=memory_frontier, seed=5, strict=True, budget=Budget(requests=100), clock=clock
    )  # one that does not stop
    crawl.add([link(i, tag_path="html/body/a") for i in range(8)])
    for i in range(3):
        fetch(crawl, link(20 + i, tag_path="html/body/a"), items=i)
    flying = crawl.next()
    crawl.sent(flying.id)
    crawl.release(flying.id)
    assert later.counts == crawl.counts | {"recovered": 1}
    assert (later.rewards, later.found_at) == (crawl.rewards, crawl.found_at)
    assert later.budget.requests_used == 4
    assert later.recovered == {flying.key}
    assert later.frontier.states([flying.key]) == [1]
    later.frontier.check()
    assert later.policy.rng.random() == crawl.policy.rng.random()
    assert [fetch(later).key for _ in range(8)] == [fetch(crawl).key for _ in range(8)]
    later.close()


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (BreadthFirst(), "policy was scrapy_focus.policies.tagpath.TagPath and is .*BreadthFirst"),
        (TagPath(alpha=1.0), "alpha was 2.5 and is 1.0"),
        (TagPath(alpha=2.5, blocked=("exe",)), "blocked was {'exe', 'jpg'} and is {'exe'}"),
    ],
)
def test_other_settings_are_refused(other: Policy, difference: str, tmp_path: Path) -> None:
    """A crawl does not resume with another policy or parameters; the message names only the differences."""
    stopped(TagPath(alpha=2.5, blocked=("jpg", "exe")), tmp_path)
    kept = everything(tmp_path)
    with pytest.raises(ResumeError, match=difference) as caught:
        resumed(other, tmp_path)
    assert "theta was 0.75 and" not in str(caught.value)
    assert "another JOBDIR" in str(caught.value)
    assert everything(tmp_path) == kept


def test_a_parameter_newer_than_the_job_had_its_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job begun by a version without a parameter resumes with its default, and with no other value."""

    def described(*crawl: Any) -> dict[str, Any]:
        return {name: value for name, value in describe(*crawl).items() if name != "features"}

    with monkeypatch.context() as before:
        before.setattr("scrapy_focus.jobs.job.describe", described)
        stopped(TagPath(), tmp_path)
    with pytest.raises(ResumeError, match="features was None and is 'context'"):
        resumed(TagPath(features="context"), tmp_path)
    resumed(TagPath(), tmp_path).close()


@pytest.mark.parametrize("jump", [-1e9, -60.0, 0.0, 60.0, 1e9], ids=lambda jump: f"{jump:+.0f}")
def test_the_time_of_day_may_jump_between_runs(jump: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of a crawl never goes back, a budget of seconds has nothing to do with the time of day, and what comes
    next is the same.
    """
    day, clock = Clock(), Clock()
    monkeypatch.setattr("scrapy_focus.core.crawl.time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr("scrapy_focus.core.crawl.Clock", partial(time.Clock, day, clock))
    budget, after = {"budget": Budget(seconds=1000)}, []
    for name, forward in (("same", 0.0), ("jumped", jump)):
        day.now, clock.now = 2e9, 0.0
        folder = tmp_path / name
        at = stopped(Random(), folder, **budget).status().at
        day.now += forward
        later = resumed(Random(), folder, budget=Budget(seconds=1000))
        assert later.status().at == at + max(0.0, forward)
        assert later.budget.seconds_used == 0
        clock.now += 5
        assert later.budget.seconds_used == 5
        after.append([fetch(later).key for _ in range(8)])
        later.close()
    assert after[0] == after[1]


def everything(folder: Path) -> dict[str, bytes]:
    """Return the content of the files of a closed crawl."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "pid"}


def test_a_plateau_is_restored(tmp_path: Path) -> None:
    """The average of the slopes, and how long it was low, are kept for the next run."""

    def plateau() -> Plateau:
        return Plateau(window=1, slope=0.9, decay=0.5, patience=50)

    crawl = stopped(BreadthFirst(), tmp_path, stop=plateau())
    later = resumed(BreadthFirst(), tmp_path, stop=plateau())
    assert later.stop.average == crawl.stop.average == 1.25, "slopes 0, 1, 2"
    assert vars(later.stop) == vars(crawl.stop)
    later.close()


def test_a_cost_limit_is_restored(tmp_path: Path) -> None:
    """The time of the last find is kept for the next run; the stored state is valid."""

    def run(folder: Path, steps: list[int]) -> list[str]:
        reasons = []
        for n in steps:
            job = Job(folder / "focus")
            policy = BranchingBandit(noise=0.0)
            crawl = Crawl(policy, seed=5, strict=True, job=job, stop=CostLimit(10, patience=60))
            crawl.add([link(i, tag_path="html/body/a") for i in range(300)])
            for _ in range(n):
                if crawl.finished():
                    break
                fetch(crawl, items=float(crawl.budget.requests_used < 20))
            reasons.append(
                f"{crawl.finished()} {crawl.budget.requests_used} {crawl.stop.state() if crawl.stop else ''}"
            )
            crawl.checkpoint()
            crawl.close()
            assert check_job(folder, say=str).is_well
        return reasons

    once = run(tmp_path / "once", [250])
    often = run(tmp_path / "often", [30, 50, 25, 5, 140])
    assert once[-1] == often[-1]
    assert once[-1].startswith("cost_limit ")
    assert not often[0].startswith("cost_limit")


def test_another_goal_is_refused(tmp_path: Path) -> None:
    """What was learned for one goal does not serve another."""
    stopped(BreadthFirst(), tmp_path)
    with pytest.raises(ResumeError, match="goal was items scraped and is files: image"):
        resumed(BreadthFirst(), tmp_path, goal=FilesGoal(types=["image/*"]))


def test_another_goal_is_refused_where_the_policy_has_a_parameter_of_that_name(tmp_path: Path) -> None:
    stopped(Revisits(goal="news"), tmp_path)
    with pytest.raises(ResumeError, match="goal was items scraped and is files: image"):
        resumed(Revisits(goal="news"), tmp_path, goal=FilesGoal(types=["image/*"]))
    with pytest.raises(ResumeError, match="policy: goal was 'news' and is 'copies'"):
        resumed(Revisits(goal="copies"), tmp_path)


@pytest.mark.slow
def test_the_same_settings_are_the_same_in_another_process(tmp_path: Path) -> None:
    """Sets of words have another order in each process; that is not a difference."""
    stopped(TagPath(), tmp_path)
    code = f"""
from pathlib import Path
from scrapy_focus import Crawl, Job
from scrapy_focus.policies.tagpath.policy import TagPath
crawl = Crawl(TagPath(), job=Job(Path({str(tmp_path)!r})))
print(crawl.counts["outcomes"])
"""
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "3\n", done.stderr


class Weighed(BreadthFirst):
    """Has a parameter without a repr."""

    def __init__(self, *, weigh: object) -> None:
        super().__init__()
        self.weigh = weigh


def test_a_parameter_without_a_repr_is_the_same_in_another_process(tmp_path: Path) -> None:
    """The address of an object in memory is not a difference."""
    stopped(Weighed(weigh=object()), tmp_path)
    resumed(Weighed(weigh=object()), tmp_path).close()


def test_links_are_not_forgotten(tmp_path: Path) -> None:
    """What was fetched before the stop is not fetched again after it."""
    stopped(BreadthFirst(), tmp_path)
    crawl = resumed(BreadthFirst(), tmp_path)
    assert crawl.add(links(0, 1, 2, 3, 20)) == 0
    assert crawl.add(links(100)) == 1
    crawl.close()


@pytest.mark.parametrize("content", [None, b"", b"[]", b"SQLite format 3\0garbage", b"\x80\x05garbage" * 2000])
def test_a_file_that_cannot_be_read_is_named(content: bytes | None, tmp_path: Path) -> None:
    """Without its links a crawl does not resume, and the message names the file; existing files stay."""
    stopped(BreadthFirst(), tmp_path)
    path = tmp_path / "frontier.sqlite"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StorageError, match=r"frontier\.sqlite"):
        resumed(BreadthFirst(), tmp_path)
    assert path.exists() == (content is not None)
    assert content is None or path.read_bytes() == content


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("policy", b"", "the policy in .* cannot be restored"),
        ("policy", b"\x80\x05garbage", "the policy in .* cannot be restored"),
        ("crawl", b"garbage", "the state of the crawl in .* cannot be read"),
        ("crawl", b"[]", "the state of the crawl in .* cannot be read"),
    ],
)
def test_notes_that_cannot_be_read_are_named(name: str, value: bytes, said: str, tmp_path: Path) -> None:
    """Each unreadable part of a checkpoint is named, with what to do about it, and the versions changed since."""
    stopped(BreadthFirst(), tmp_path)
    note(tmp_path, name, value, summed_anew=False)
    with pytest.raises(StorageError, match=f"the {name} in .* is damaged; see focus check"):
        resumed(BreadthFirst(), tmp_path)
    note(tmp_path, name, value)
    with pytest.raises((ResumeError, StorageError), match=f"{said}.*focus check"):
        resumed(BreadthFirst(), tmp_path)


def note(folder: Path, name: str, value: bytes, *, summed_anew: bool = True) -> None:
    """Change the state in a checkpoint."""
    with sqlite3.connect(folder / "frontier.sqlite") as connection:
        connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))
        if summed_anew:
            notes = dict(connection.execute("SELECT name, value FROM notes"))
            connection.executemany("INSERT OR REPLACE INTO notes VALUES (?, ?)", summed(notes).items())
    connection.close()


def test_versions_that_changed_are_named(tmp_path: Path) -> None:
    """If the learned state cannot be read, it helps to know that another numpy wrote it."""
    stopped(BreadthFirst(), tmp_path)
    job = Job(tmp_path)
    state = json.loads(job.notes["crawl"])
    job.close()
    state["versions"]["numpy"] = "0.1"
    note(tmp_path, "crawl", json.dumps(state).encode())
    note(tmp_path, "policy", b"\x80")
    with pytest.raises(ResumeError, match=r"numpy was 0\.1 and is \d.*install these versions"):
        resumed(BreadthFirst(), tmp_path)


class Heavy(BreadthFirst):
    """Has much to store."""

    def __init__(self, size: int = 100_000) -> None:
        super().__init__()
        self.size = size
        self.ballast = b"x" * size


@pytest.mark.parametrize(("size", "between"), [(0, 10), (100_000, 20)])
def test_large_policies_are_stored_more_seldom(size: int, between: int, tmp_path: Path) -> None:
    """One more outcome is waited for per 5,000 bytes."""
    job = Job(tmp_path / "focus", every=10)
    crawl = Crawl(Heavy(size), job=job, seed=0, strict=True)
    crawl.add(links(*range(100)))
    numbers = []
    for _ in range(90):
        fetch(crawl)
        job.flush()
        numbers.append(job._number)
    crawl.close()
    made = [at for at, (before, now) in enumerate(pairwise(numbers)) if now > before]
    assert min(np.diff(made)) == max(np.diff(made)) == between
