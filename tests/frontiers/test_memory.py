"""The ranked frontier in memory: flat memory, busy hosts that cost nothing, errors that help."""

from __future__ import annotations

import time
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus import FrontierError, Link, Placement, memory_frontier
from scrapy_focus.frontiers.ledger import Held
from tests.made import links

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_focus.frontiers.ranked.frontier import RankedFrontier


def filled(n: int, *, hosts: int = 3, arms: int = 1) -> RankedFrontier:
    """Return a frontier with n links, ranks rising."""
    frontier = memory_frontier()
    found = [Link(f"http://h{i % hosts}/{i}", i, f"h{i % hosts}") for i in range(n)]
    frontier.push(found, [Placement(i % arms, float(i)) for i in range(n)])
    return frontier


@pytest.mark.slow
def test_moving_everything_again_and_again_takes_no_more_memory() -> None:
    """After 50 rounds of new ranks for all links, rows and heaps hold no more than three entries a link."""
    n, rng = 2000, np.random.default_rng(0)
    frontier = filled(n)
    for _ in range(50):
        frontier.move(range(n), [Placement(0, float(rank)) for rank in rng.random(n)])
    frontier.check()
    assert len(frontier._records._url) == n
    assert len(frontier._queue.rank) <= 3 * n + 100
    assert sum(len(queue) for queue in frontier._queue._queues) <= 2 * n + 100


def test_better_links_that_come_and_go_take_no_more_memory() -> None:
    """A queued link is noted a few times while better ones come and leave, not once for each of them."""
    frontier = filled(1)
    for i in range(1, 5000):
        frontier.push(links(i, host="h0"), [Placement(0, float(i))])
        frontier.settle(frontier.pop(0))
    frontier.check()
    assert len(frontier._queue._arms[0].tops) < 50
    assert len(frontier._records._url) < 10
    assert len(frontier._queue.rank) < 100


def test_links_that_come_and_go_leave_no_rows() -> None:
    """The rows of links that left are used again."""
    frontier = memory_frontier()
    for i in range(5000):
        frontier.push(links(i), [Placement(i % 3, -float(i))])
        if i >= 10:
            frontier.settle(frontier.pop(int(np.argmax(frontier.waiting))))
    assert len(frontier) == 10
    assert len(frontier._records._url) < 60
    assert len(frontier._queue.rank) < 200


def seconds_of(call: Callable[[], object]) -> float:
    """Return the shortest of three times."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.alone
def test_passing_over_a_busy_host_does_not_depend_on_its_links() -> None:
    """A pop behind a busy host with 40,000 better links takes about as long as behind one with 40."""

    def pops(n: int) -> Callable[[], object]:
        frontier = memory_frontier()
        frontier.push(links(*range(n), host="busy"), [Placement(0, float(i)) for i in range(n)])
        frontier.push(links(n, host="free"), [Placement(0, -1.0)])

        def run() -> None:
            for _ in range(300):
                pick = frontier.pop(0, {"busy"})
                assert pick is not None
                assert pick.host == "free"
                frontier.release(pick)

        return run

    assert seconds_of(pops(40_000)) < 5 * seconds_of(pops(40))


@pytest.mark.parametrize("hosts", [200])
def test_passing_over_busy_hosts_notes_each_once(hosts: int) -> None:
    """However often busy hosts are passed over, each of them stays noted a few times at most."""
    frontier = filled(2000, hosts=hosts)
    busy = {f"h{i}" for i in range(hosts - 1)}
    for _ in range(10):
        pick = frontier.pop(0, busy)
        assert pick is not None
        assert pick.host == f"h{hosts - 1}"
    assert frontier.pop(0, {*busy, f"h{hosts - 1}"}) is None
    assert len(frontier._queue._arms[0].tops) <= 2 * hosts + 17
    assert frontier.pop(0).rank == 1998.0


@pytest.mark.slow
def test_a_waiting_link_takes_less_than_280_bytes() -> None:
    """100,000 links with URLs of 75 characters, 125 bytes as a string, cost less than 280 bytes each, URL included."""
    tracemalloc.start()
    try:
        frontier = memory_frontier()
        for start in range(0, 100_000, 100):
            numbers = range(start, start + 100)
            found = [
                Link(f"https://www.stat.example/en/data/publications/2024/{i:06d}/price-index-table", 7919 * i, "h")
                for i in numbers
            ]
            frontier.push(found, [Placement(i % 50, i * 0.37) for i in numbers])
        del found
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(frontier) == 100_000
    assert 150 < size / 100_000 < 280


@pytest.mark.parametrize("verb", ["settle", "release"])
def test_a_pick_is_landed_once(verb: str) -> None:
    """A pick that was settled or released cannot be landed again; the message names its URL."""
    frontier = filled(2)
    pick = frontier.pop(0)
    getattr(frontier, verb)(pick)
    for again in (frontier.settle, frontier.release):
        with pytest.raises(FrontierError, match=r"http://h1/1.* is not in flight"):
            again(pick)
    frontier.check()


def test_check_finds_what_is_wrong() -> None:
    """A state or a record that was changed by a stray hand is found."""
    for spoil in (
        lambda frontier: frontier._fetched.add(3),
        lambda frontier: frontier._known.set(3, -3),
        lambda frontier: frontier._known.pop(3, 0),
        lambda frontier: frontier._known.set(3, frontier._known.get(2, 0)),
        lambda frontier: frontier._records._key.__setitem__(3, 4),
        lambda frontier: frontier._held.popitem(),
        lambda frontier: frontier._held.update({1: Held(0, 0)}),
        lambda frontier: frontier._given_up.add(3),
        lambda frontier: (frontier._given_up.add(99), frontier._fetched.add(99)),
        lambda frontier: setattr(frontier, "_next_id", 1),
    ):
        frontier = filled(5, arms=2)
        frontier.pop(0)
        frontier.check()
        spoil(frontier)
        with pytest.raises(FrontierError, match="the frontier is inconsistent"):
            frontier.check()


def test_arms_come_into_being_when_used() -> None:
    """Counts and heads have an entry for each arm up to the largest; arms without links sleep."""
    frontier = memory_frontier()
    assert len(frontier.waiting) == len(frontier.heads) == 0
    frontier.push(links(1), [Placement(40, 2.5)])
    assert (len(frontier.waiting), len(frontier.heads)) == (41, 41)
    assert (frontier.waiting.sum(), frontier.waiting[40], frontier.heads[40]) == (1, 1, 2.5)
    assert np.isneginf(frontier.heads[:40]).all()
    assert frontier.pop(39) is frontier.pop(41) is frontier.pop(-1) is None
