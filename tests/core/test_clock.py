"""The time that a policy receives never decreases, whoever sets the machine's clock."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from scrapy_focus import Crawl, Job, memory_frontier
from scrapy_focus.core.clock import Clock
from tests.made import Recording, fetch, links

if TYPE_CHECKING:
    from pathlib import Path


class Machine:
    """A machine whose clock may be set, and one beside it that may not."""

    def __init__(self) -> None:
        self.now, self.steady = 1e9, 7.0

    def passes(self, seconds: float) -> None:
        """Let the time pass."""
        self.now += seconds
        self.steady += seconds


def test_it_is_the_time_of_the_machine() -> None:
    """Also where that is set ahead, or the machine was asleep, which the steady clock does not count."""
    machine = Machine()
    clock = Clock(lambda: machine.now, lambda: machine.steady)
    machine.passes(5)
    assert clock() == 1e9 + 5
    machine.now += 3600
    assert clock() == 1e9 + 3605


def test_a_clock_that_is_set_back_does_not_stand_still() -> None:
    """The seconds pass on until the machine's time has caught up, and then it is that again."""
    machine = Machine()
    clock = Clock(lambda: machine.now, lambda: machine.steady)
    machine.now -= 3600
    said = []
    for _ in range(5):
        machine.passes(2)
        said.append(clock())
    assert said == [1e9 + 2 * i for i in range(1, 6)]
    machine.now += 3600
    assert clock() == 1e9 + 10


def test_it_is_no_earlier_than_what_was_said_before() -> None:
    """In another run, whose machine may think that it is earlier."""
    machine = Machine()
    clock = Clock(lambda: machine.now, lambda: machine.steady)
    clock.not_before(2e9)
    assert clock() == 2e9
    machine.passes(3)
    assert clock() == 2e9 + 3
    clock.not_before(1.5e9)
    assert clock() == 2e9 + 3


class Told(Recording):
    """Records the times that it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def learn(self, outcome) -> None:  # type: ignore[no-untyped-def]
        super().learn(outcome)
        assert outcome.at == self.now
        self.times.append(self.now)


def test_a_crawl_tells_the_time_of_the_machine() -> None:
    """Seconds since the epoch, by default."""
    policy = Told()
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add(links(1))
    fetch(crawl)
    assert policy.times == [pytest.approx(Clock()(), abs=900)]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_the_next_run_is_not_told_an_earlier_time(tmp_path: Path, checkpoint: bool) -> None:
    """The clock of the machine is two days behind in the second run, which was killed before or after a checkpoint."""
    times = []
    for now in (1e9, 1e9 - 172_800, 1e9 + 50):
        policy, machine = Told(), Machine()
        machine.now = now
        crawl = Crawl(policy, job=Job(tmp_path), strict=True, clock=lambda: machine.now)  # noqa: B023
        policy = crawl.policy  # type: ignore[assignment]
        if now == 1e9:
            crawl.add(links(1, 2, 3, 4, 5, 6))
        for _ in range(2):
            machine.passes(10)
            fetch(crawl)
        if checkpoint:
            crawl.checkpoint()
        times.append([*policy.times])
        crawl.close()
    assert times[-1] == [1e9 + seconds for seconds in (10, 20, 30, 40, 60, 70)]
    assert all(one < two for one, two in pairwise(times[-1]))
