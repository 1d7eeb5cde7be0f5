"""A crawl that stops and goes on: nothing is lost, and it refuses what would not be the same crawl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from scrapy_focus import Budget, Crawl, FilesGoal, Plateau, Policy, ResumeError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.policies.orderings import BreadthFirst, Random
from scrapy_focus.policies.tagpath import TagPath
from tests.made import Clock, fetch, link, links

if TYPE_CHECKING:
    from pathlib import Path


def stopped(policy: Policy, folder: Path, **options) -> Crawl:
    """Return a crawl that was written to a folder in mid-crawl, one pick in flight."""
    crawl = Crawl(policy, seed=5, strict=True, **options)
    crawl.add([link(i, tag_path="html/body/a") for i in range(8)])
    for i in range(3):
        fetch(crawl, link(20 + i, tag_path="html/body/a"), items=i)
    crawl.checkpoint(folder)
    crawl.sent(crawl.next().id)
    crawl.checkpoint(folder)
    return crawl


@pytest.mark.parametrize("policy", [BreadthFirst, Random, lambda: TagPath(probe=False)])
def test_a_crawl_goes_on_as_if_it_had_not_stopped(policy, tmp_path: Path) -> None:
    """Counts, rewards and the budget go on, what was in flight waits again, and the policy chooses as it would have."""
    clock = Clock()
    crawl = stopped(policy(), tmp_path, budget=Budget(requests=100), clock=clock)
    flying = crawl._flying.popitem()[1]
    later = Crawl(policy(), seed=99, strict=True, budget=Budget(requests=100), clock=clock)
    later.resume(tmp_path)
    assert (later.counts, later.rewards, later.found_at) == (crawl.counts, crawl.rewards, crawl.found_at)
    assert later.budget.requests_used == 4
    assert later.frontier.states([flying.key]) == [1]
    later.frontier.check()
    crawl.frontier.release(flying)
    assert later.policy.rng.random() == crawl.policy.rng.random()
    assert [fetch(later).key for _ in range(8)] == [fetch(crawl).key for _ in range(8)]


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (BreadthFirst(), "policy was scrapy_focus.policies.tagpath.TagPath and is .*BreadthFirst"),
        (TagPath(alpha=1.0), "alpha was 2.5 and is 1.0"),
        (TagPath(alpha=2.5, blocked=("exe",)), "blocked was {'exe', 'jpg'} and is {'exe'}"),
    ],
)
def test_other_settings_are_refused(other: Policy, difference: str, tmp_path: Path) -> None:
    """A crawl does not go on under another policy or parameters; the message names what differs, and nothing else."""
    stopped(TagPath(alpha=2.5, blocked=("jpg", "exe")), tmp_path)
    with pytest.raises(ResumeError, match=difference) as caught:
        Crawl(other).resume(tmp_path)
    assert "theta was 0.75 and" not in str(caught.value)
    assert "another JOBDIR" in str(caught.value)


def test_a_plateau_goes_on(tmp_path: Path) -> None:
    """The average of the slopes, and how long it was low, go on in the next run."""

    def plateau() -> Plateau:
        return Plateau(window=1, slope=0.9, decay=0.5, patience=50)

    crawl = stopped(BreadthFirst(), tmp_path, plateau=plateau())
    later = Crawl(BreadthFirst(), strict=True, plateau=plateau())
    later.resume(tmp_path)
    assert later.plateau.average == crawl.plateau.average == 1.25, "slopes 0, 1, 2"
    assert vars(later.plateau) == vars(crawl.plateau)


def test_another_goal_is_refused(tmp_path: Path) -> None:
    """What was learned for one goal does not serve another."""
    stopped(BreadthFirst(), tmp_path)
    with pytest.raises(ResumeError, match="goal was items scraped and is files: image"):
        Crawl(BreadthFirst(), goal=FilesGoal(types=["image/*"])).resume(tmp_path)


def test_the_same_settings_are_the_same_in_another_process(tmp_path: Path) -> None:
    """Sets of words have another order in each process; that is no difference."""
    stopped(TagPath(), tmp_path)
    code = f"""
from pathlib import Path
from scrapy_focus import Crawl
from scrapy_focus.policies.tagpath import TagPath
crawl = Crawl(TagPath())
crawl.resume(Path({str(tmp_path)!r}))
print(crawl.counts["outcomes"])
"""
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "3\n", done.stderr


def test_a_parameter_without_a_repr_is_the_same_in_another_process(tmp_path: Path) -> None:
    """The address of an object in memory is no difference."""

    class Weighed(BreadthFirst):
        def __init__(self, *, weigh: object) -> None:
            super().__init__()
            self.weigh = weigh

    crawl = Crawl(Weighed(weigh=object()))
    Weighed.__qualname__ = "BreadthFirst"  # so that it can be pickled
    Weighed.__module__ = BreadthFirst.__module__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[BreadthFirst.__module__], "BreadthFirst", Weighed)
        crawl.checkpoint(tmp_path)
        Crawl(Weighed(weigh=object())).resume(tmp_path)


def test_another_format_is_refused(tmp_path: Path) -> None:
    """A crawl that a later version wrote is not read, and the message says so."""
    stopped(BreadthFirst(), tmp_path)
    path = tmp_path / "crawl.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(ResumeError, match="format was 99 and is 1"):
        Crawl(BreadthFirst()).resume(tmp_path)


@pytest.mark.parametrize("name", ["crawl.json", "policy.pickle", "frontier.pickle"])
@pytest.mark.parametrize("content", [None, b"", b"[]", b"\x80\x05garbage", b"{}"])
def test_files_that_cannot_be_read_are_named(name: str, content: bytes | None, tmp_path: Path) -> None:
    """A missing or broken file gives a ResumeError that names it and says what to do; the crawl is left as it was."""
    stopped(BreadthFirst(), tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    crawl = Crawl(BreadthFirst())
    policy, frontier = crawl.policy, crawl.frontier
    with pytest.raises(ResumeError, match=f"{name}.* cannot be read .*start afresh"):
        crawl.resume(tmp_path)
    assert (crawl.policy, crawl.frontier) == (policy, frontier)


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """What fails in writing leaves the old content, and no other file."""
    path = tmp_path / "state"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "no bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_not_forgotten(tmp_path: Path) -> None:
    """What was fetched before the stop is not fetched again after it."""
    stopped(BreadthFirst(), tmp_path)
    crawl = Crawl(BreadthFirst(), strict=True)
    crawl.resume(tmp_path)
    assert crawl.add(links(0, 1, 2, 3, 20)) == 0
    assert crawl.add(links(100)) == 1
