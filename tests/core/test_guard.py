"""What happens when a policy or goal fails: let through when strict; else logged, counted, and the crawl goes on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from scrapy_focus import Crawl, EventLog, FocusError, GoalError, Placement, PolicyError, memory_frontier
from tests.made import Recording, fetch, links


def failing(verb: str) -> Recording:
    """Return a policy that raises in one verb."""

    def fail(*args):
        raise ZeroDivisionError(f"no {verb} today")

    policy = Recording()
    setattr(policy, verb, fail)
    return policy


@pytest.mark.parametrize("verb", ["place", "select", "learn", "explain", "release"])
def test_errors_come_through_when_strict(verb: str, tmp_path) -> None:
    """A strict crawl stops at the first error of its policy."""
    crawl = Crawl(failing(verb), frontier=memory_frontier, strict=True, log=EventLog(tmp_path / "log"))

    def run() -> None:
        crawl.add(links(1))
        crawl.release(crawl.next().id)
        fetch(crawl)

    with pytest.raises(ZeroDivisionError, match=f"no {verb} today"):
        run()
    crawl.close()


@pytest.mark.parametrize("verb", ["place", "select", "learn", "explain", "release"])
def test_errors_of_a_policy_do_not_stop_a_crawl(verb: str, tmp_path, caplog) -> None:
    """Every link is fetched although one verb always fails; errors are counted, and shown three times with the name."""
    crawl = Crawl(failing(verb), frontier=memory_frontier, log=EventLog(tmp_path / "log"))
    crawl.add(links(1))
    pick = crawl.next()
    crawl.release(pick.id)
    order = [fetch(crawl, *links(2, 3, 4)).key, *(fetch(crawl).key for _ in range(3))]
    assert sorted(order) == [1, 2, 3, 4]
    assert order[0] == 1
    assert crawl.counts[f"error/{verb}"] >= 1
    assert crawl.counts["outcomes"] == 4
    shown = [record for record in caplog.records if f"{verb} of Recording failed" in record.message]
    assert len(shown) == min(3, crawl.counts[f"error/{verb}"])
    crawl.close()


def test_links_that_cannot_be_placed_leave_first_in_first_out() -> None:
    """The order in which links are found is kept where place fails, over all pages."""
    policy = failing("place")
    crawl = Crawl(policy, frontier=memory_frontier)
    crawl.add(links(1, 2))
    assert [fetch(crawl, *links(3, 4)).key, *(fetch(crawl).key for _ in range(3))] == [1, 2, 3, 4]


def test_what_is_selected_instead_is_not_busy() -> None:
    """Where select fails, any waiting link of a host that is not busy leaves."""
    crawl = Crawl(failing("select"), frontier=memory_frontier)
    crawl.add([*links(1, host="a"), *links(2, host="b")])
    assert crawl.next({"a"}).key == 2
    assert crawl.next({"a"}) is None


def test_what_a_failing_select_had_taken_out_waits_again() -> None:
    """A policy that takes a link out and then raises, or gives the same pick twice, loses no link."""

    class Forgetful(Recording):
        def select(self, busy):
            self.taken = getattr(self, "taken", None) or self.frontier.pop(0, busy)
            if self.taken.key == 1:
                self.taken = None
                raise KeyError("where was I")
            return self.taken

    crawl = Crawl(Forgetful(), frontier=memory_frontier)
    crawl.add(links(1, 2, 3))
    assert sorted(fetch(crawl).key for _ in range(3)) == [1, 2, 3]
    assert crawl.counts["error/select"] >= 1
    crawl.frontier.check()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda links: [], "0 placements for 2 links"),
        (lambda links: [Placement(0, 0.0)] * 3, "3 placements for 2 links"),
        (lambda links: [Placement(-1, 0.0), None], "an arm is an integer from 0"),
        (lambda links: [Placement(0, math.nan), None], "not NaN"),
        (lambda links: [None, Placement(1.5, 0.0)], "an arm is an integer from 0"),
    ],
)
def test_placements_that_make_no_sense_are_refused(answer, message: str) -> None:
    """The number of placements, arms and ranks are checked before the frontier sees them; the message says what is wrong."""
    policy = Recording()
    policy.place = lambda links, source: answer(links)  # type: ignore[method-assign]
    with pytest.raises(PolicyError, match=message):
        Crawl(policy, frontier=memory_frontier, strict=True).add(links(1, 2))
    assert Crawl(policy, frontier=memory_frontier).add(links(1, 2)) == 2


def test_a_selection_that_is_no_pick_is_refused() -> None:
    """Select must return a pick; the message says what it returned."""
    policy = Recording()
    policy.select = lambda busy: "http://h/1"  # type: ignore[assignment, method-assign, return-value]
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add(links(1))
    with pytest.raises(PolicyError, match="select\\(\\) returned 'http://h/1'"):
        crawl.next()


@pytest.mark.parametrize("answer", ["many", math.nan, math.inf, [1.0]])
def test_a_reward_that_is_no_number_is_refused(answer) -> None:
    """A strict crawl refuses a reward that is not a finite number, another takes it as 0."""
    crawl = Crawl(Recording(), frontier=memory_frontier, goal=lambda outcome: answer, strict=True)
    crawl.add(links(1))
    with pytest.raises(GoalError, match="return a finite number"):
        fetch(crawl)
    lenient = Crawl(Recording(), frontier=memory_frontier, goal=lambda outcome: answer)
    lenient.add(links(1))
    fetch(lenient)
    assert (lenient.rewards, lenient.counts["error/goal"]) == (0.0, 1)


@pytest.mark.parametrize("answer", [2, 2.0, np.float32(2), np.int64(2), True])
def test_a_reward_may_be_any_number(answer) -> None:
    """Integers, booleans and NumPy's numbers are rewards."""
    crawl = Crawl(Recording(), frontier=memory_frontier, goal=lambda outcome: answer, strict=True)
    crawl.add(links(1))
    fetch(crawl)
    assert crawl.rewards == float(answer)
    assert type(crawl.rewards) is float


def test_all_errors_have_one_base() -> None:
    """Whoever wants to catch what this package raises on purpose needs one name."""
    assert issubclass(PolicyError, FocusError)
    assert issubclass(GoalError, FocusError)
