"""If pages redirect to a third one, one of the workers fetches that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus import State
from tests.cluster.test_leader import Stage
from tests.jobs.walks import link_to

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.fakes import FakeWorker

THERE = link_to(5000)


def claim(stage: Stage, worker: FakeWorker, pick_id: int, key: int = THERE.key) -> State:
    """Report the target of a worker's redirect."""
    answer = stage.leader.exchange(worker.message()._replace(claims=[(pick_id, key)]))
    worker.hear(answer)
    return State(answer.claimed[0])


def leased(stage: Stage) -> tuple[int, int]:
    """Return a lease of each of the two workers."""
    for worker in stage.workers * 2:
        worker.exchange(stage.leader, want=8)
    first, second = (min(worker.held) for worker in stage.workers)
    return first, second


def told(stage: Stage, worker: FakeWorker) -> State:
    """Report a link to the third page, and return its state."""
    worker.add([THERE])
    worker.exchange(stage.leader)
    return stage.leader.crawl.knows([THERE.key])[0]


def test_the_first_one_gets_it_until_its_pick_is_over(tmp_path: Path) -> None:
    """To all others it is known: their redirects, and links to it."""
    stage = Stage(tmp_path)
    first, second = leased(stage)
    one, other = stage.workers
    assert claim(stage, one, first) == State.NEW
    assert claim(stage, one, first) == State.NEW, "a retry of it"
    assert claim(stage, other, second) == State.FLYING
    assert told(stage, other) == State.NEW, "it is not let wait"
    one.release(first)
    one.exchange(stage.leader)
    assert told(stage, other) == State.WAITING


def test_what_is_known_is_nobodys(tmp_path: Path) -> None:
    """Nor may a worker claim for a lease that it does not have."""
    stage = Stage(tmp_path)
    first, second = leased(stage)
    one, other = stage.workers
    known = stage.leader.crawl.picks[second].key
    assert claim(stage, one, first, known) == State.FLYING
    assert claim(stage, one, second) == State.FLYING
    assert claim(stage, other, second) == State.NEW
