"""A crawl that was stopped resumes by the index of its links as it does by their rows."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import Budget, Crawl, Policy
from scrapy_focus.jobs.doctor.check import check_job
from scrapy_focus.jobs.doctor.status import read_status
from scrapy_focus.jobs.job import Job
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.policies.treeq.policy import TreeQ
from tests.jobs.test_inspection import FILE, POLICIES, SITE, run
from tests.policies.test_treeq import Web, crawl_of, steps

if TYPE_CHECKING:
    from pathlib import Path

INDEX = f"{FILE}-index"


def stopped(jobdir: Path, policy: Policy) -> None:
    """Have a job of a crawl that was stopped as a scheduler does: nothing is in flight."""
    crawl = run(jobdir, policy)
    for pick in [*crawl.picks.values()]:
        crawl.report(*SITE.answer(pick))
    crawl.checkpoint()
    crawl.close()


def resumed(jobdir: Path, policy: Policy) -> list[Any]:
    """Resume a crawl, and return what it did in a hundred steps."""
    crawl = Crawl(policy, strict=True, job=Job(jobdir / "focus", every=25), budget=Budget(requests=500))
    did: list[Any] = [len(crawl.frontier), crawl.frontier.waiting.tolist()]
    for _ in range(100):
        pick = crawl.next()
        if pick is None:
            break
        crawl.sent(pick.id)
        did.append((*pick._replace(memo=None), None if pick.memo is None else pick.memo.tolist()))
        crawl.report(*SITE.answer(pick))
    crawl.frontier.check()
    did += [len(crawl.frontier), dict(crawl.counts), crawl.rewards, crawl.policy.rng.random()]
    crawl.checkpoint()
    crawl.close()
    return did


@pytest.mark.few(3)
@pytest.mark.parametrize("name", POLICIES)
def test_a_stopped_crawl_resumes_the_same_with_and_without_its_index(name: str, tmp_path: Path) -> None:
    """Queued links, choices, outcomes and the next random numbers are equal; each stop leaves an index."""
    stopped(tmp_path / "job", POLICIES[name]())
    assert (tmp_path / "job/focus" / INDEX).exists()
    without = shutil.copytree(tmp_path / "job", tmp_path / "without")
    (without / "focus" / INDEX).unlink()
    did = resumed(tmp_path / "job", POLICIES[name]())
    assert len(did) > 20
    assert did == resumed(without, POLICIES[name]())
    for jobdir in (tmp_path / "job", without):
        assert (jobdir / "focus" / INDEX).exists()


@pytest.mark.slow
def test_a_tree_that_divided_its_links_resumes_the_same(tmp_path: Path) -> None:
    """The divisions are in the index, and the policy makes them again."""
    web = Web()
    crawl = crawl_of(web, TreeQ(keywords=["cheese"]), job=Job(tmp_path / "job", every=50))
    came = [pick.key for pick in steps(crawl, web, 150)]
    assert crawl.policy.tree.splits
    crawl.checkpoint()
    crawl.close()
    without = shutil.copytree(tmp_path / "job", tmp_path / "without")
    (without / INDEX).unlink()
    more = []
    for folder in (tmp_path / "job", without):
        crawl = crawl_of(web, TreeQ(keywords=["cheese"]), job=Job(folder, every=50))
        more.append([pick.key for pick in steps(crawl, web, 150)])
        crawl.frontier.check()
        crawl.close()
    assert more[0] == more[1]
    assert len(more[0]) == 150
    assert not {*more[0]} & {*came}


def test_a_doctor_reads_rows_and_leaves_the_index(tmp_path: Path) -> None:
    """It is listed, a check does not change it, and one that is damaged is noted and does no harm."""
    stopped(tmp_path / "job", BreadthFirst())
    file = tmp_path / "job/focus" / INDEX
    before = file.read_bytes()
    checkup = check_job(tmp_path / "job", say=str)
    assert (checkup.is_well, checkup.harmless) == (True, [])
    assert read_status(tmp_path / "job")["files"][INDEX] == len(before)
    assert file.read_bytes() == before
    file.write_bytes(before[:-100])
    checkup = check_job(tmp_path / "job", say=str)
    assert checkup.is_well
    (said,) = checkup.harmless
    assert said.startswith(f"{INDEX} is not used (it is damaged")
