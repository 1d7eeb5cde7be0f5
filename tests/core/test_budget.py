"""A budget is exact: what may be sent, what is reserved for picks, what is refunded, over several runs."""

from __future__ import annotations

import pytest

from scrapy_focus import Budget, ConfigError, Crawl, memory_frontier
from tests.made import Clock, Recording, fetch, links, page


def started(**limits) -> tuple[Crawl, Clock]:
    """Return a crawl with ten queued links, and its clock."""
    clock = Clock()
    crawl = Crawl(Recording(), frontier=memory_frontier, budget=Budget(**limits), clock=clock, strict=True)
    crawl.add(links(*range(10)))
    return crawl, clock


def test_a_pick_holds_a_request_until_it_is_sent() -> None:
    """No more picks are handed out than requests are left, sent or not."""
    crawl, _ = started(requests=3)
    picks = [crawl.next() for _ in range(4)]
    assert [pick is None for pick in picks] == [False, False, False, True]
    assert not crawl.finished(), "nothing has gone out yet"
    assert [crawl.sent(pick.id) for pick in picks[:3]] == [True, True, True]
    assert crawl.finished() == "budget_requests"
    assert not crawl.sent()


def test_whatever_goes_out_counts() -> None:
    """Redirects and robots.txt use requests too; when none is left, what was picked must not go out."""
    crawl, _ = started(requests=3)
    pick, other = crawl.next(), crawl.next()
    assert [crawl.sent(pick.id), crawl.sent(pick.id), crawl.sent()] == [True, True, True]
    assert not crawl.sent(other.id)
    crawl.release(other.id)
    crawl.report(page(pick))
    assert crawl.finished() == "budget_requests"
    assert crawl.budget.requests_used == 3


@pytest.mark.parametrize("back", ["release", "report"])
def test_a_request_that_was_held_is_free_again(back: str) -> None:
    """A pick that is released or settled without having been sent holds nothing any more."""
    crawl, _ = started(requests=1)
    pick = crawl.next()
    assert crawl.next() is None
    if back == "release":
        crawl.release(pick.id)
    else:
        crawl.report(page(pick, error="dropped"))
    assert crawl.next() is not None


def test_a_request_that_never_left_is_refunded() -> None:
    """A request that was sent and one that never left undo each other; left sees both."""
    crawl, _ = started(requests=2)
    budget = crawl.budget
    assert budget.left(1)
    assert not budget.left(2)
    assert crawl.sent()
    assert not budget.left(1)
    crawl.received(None)
    assert budget.left(1)
    assert [crawl.sent(), crawl.sent(), crawl.sent()] == [True, True, False]
    assert budget.requests_used == 2


def test_bytes_are_counted_as_they_come() -> None:
    """The crawl ends with the answer that brings the bytes to the limit."""
    crawl, _ = started(bytes=1000)
    for n in (400, 599):
        crawl.received(n)
        fetch(crawl)
        assert not crawl.finished()
    crawl.received(1)
    assert crawl.finished() == "budget_bytes"
    assert crawl.next() is None


def test_seconds_run_from_the_start() -> None:
    """The crawl ends when the clock has gone on by the limit."""
    crawl, clock = started(seconds=60)
    clock.now += 59.9
    assert crawl.next() is not None
    clock.now += 0.1
    assert crawl.finished() == "budget_seconds"


def test_no_budget_never_ends() -> None:
    """Without limits everything may go out, and is counted nevertheless."""
    crawl, _ = started()
    assert all(crawl.sent() for _ in range(100))
    crawl.received(10**12)
    assert crawl.budget.left(10**6)
    assert (crawl.finished(), crawl.budget.requests_used) == ("", 100)


def test_a_budget_goes_on_in_the_next_run() -> None:
    """Requests, bytes and seconds of earlier runs count, the time between the runs does not."""
    clock = Clock()
    budget = Budget(requests=2, seconds=10)
    budget.start(clock)
    budget.requests_used += 1
    budget.bytes_used += 5
    clock.now += 4
    later, state = Budget(requests=2, seconds=10), budget.state()
    assert state == {"requests": 1, "bytes": 5, "seconds": 4.0}
    later.restore(state)
    clock.now += 1000
    later.start(clock)
    clock.now += 5.9
    assert (later.exhausted(), later.seconds_used) == ("", pytest.approx(9.9))
    clock.now += 0.1
    assert later.exhausted() == "seconds"
    later.requests_used += 1
    assert later.exhausted() == "requests"


@pytest.mark.parametrize("limits", [{"requests": 0}, {"bytes": -1}, {"seconds": float("nan")}])
def test_a_budget_of_nothing_is_a_mistake(limits) -> None:
    """Limits must be positive, and the message names the one that is not."""
    with pytest.raises(ConfigError, match=next(iter(limits))):
        Budget(**limits)


def test_a_budget_can_be_read() -> None:
    """Its repr names the limits, for logs."""
    assert repr(Budget(requests=10_000, seconds=1.5)) == "10,000 requests, 1.5 seconds"
    assert repr(Budget()) == "unlimited"
