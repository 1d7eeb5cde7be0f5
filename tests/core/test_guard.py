"""What happens when a policy or goal fails: raised when strict; else logged and counted, and the crawl continues."""

from __future__ import annotations

import math
from itertools import count

import numpy as np
import pytest

from scrapy_focus import (
    Crawl,
    EventLog,
    FocusError,
    GoalError,
    Outcome,
    Placement,
    PolicyError,
    PolicyTable,
    memory_frontier,
)
from scrapy_focus.core.abilities import ShowsTables
from scrapy_focus.core.stop import CostLimit
from tests.made import Clock, Recording, fetch, links


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
    """The order of discovery is kept when place fails, over all pages."""
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
    """One name catches all exceptions that this package raises."""
    assert issubclass(PolicyError, FocusError)
    assert issubclass(GoalError, FocusError)


def kind(value: object) -> str:
    """Name a value in the id of a test, the same in each process."""
    return type(value).__name__


NONSENSE = ["dear", math.nan, [1.0, 2.0], np.zeros(3), object(), 10**400, 1j, {}, b"5"]


class Answering(Recording):
    """Answers what it is asked about itself with anything."""

    def __init__(self, **answers: object) -> None:
        super().__init__()
        for name, answer in answers.items():
            setattr(self, name, lambda *_, answer=answer: answer)


@pytest.mark.parametrize("cost", NONSENSE, ids=kind)
def test_a_cost_that_is_no_number_does_not_end_a_crawl(cost, caplog) -> None:
    """It counts as unknown: every outcome is recorded, the crawl is neither stopped nor kept from closing."""
    rule = CostLimit(1, patience=2, first=2)
    crawl = Crawl(Answering(expected_cost=cost), frontier=memory_frontier, stop=rule)
    crawl.add(links(*range(1, 9)))
    while crawl.next() is not None:
        pick = next(iter(crawl.picks.values()))
        crawl.sent(pick.id)
        crawl.report(Outcome(pick=pick, status=200, mime="text/html"))
    assert (crawl.counts["outcomes"], crawl.finished()) == (8, "")
    assert crawl.counts["error/expected_cost"] == 8
    assert crawl.counts["error/stop"] == 0
    [record] = [record for record in caplog.records if "expected_cost of Answering failed" in record.getMessage()]
    assert "return a number of requests, or None" in record.getMessage()
    crawl.close()


@pytest.mark.parametrize("cost", [np.float32(70), 70, math.inf], ids=repr)
def test_a_cost_may_be_any_number(cost) -> None:
    """NumPy's numbers and infinity are costs."""
    crawl = Crawl(
        Answering(expected_cost=cost), frontier=memory_frontier, stop=CostLimit(1, patience=2, first=2), strict=True
    )
    crawl.add(links(*range(1, 9)))
    while crawl.next() is not None:
        pick = next(iter(crawl.picks.values()))
        crawl.sent(pick.id)
        crawl.report(Outcome(pick=pick, status=200, mime="text/html"))
    assert (crawl.counts["outcomes"], crawl.finished()) == (3, "cost_limit")


ARMS = [
    "best", 5, [("a", 1.0)], [("a", "1", 2)], [("a", math.nan, 2)], [("a", 1.0, math.inf)], [(None, 1.0, 2)], [None],
    [("a", 10**400, 2)], math.nan, np.zeros((2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("best", ARMS, ids=kind)
def test_best_arms_that_are_none_are_left_out(best, caplog) -> None:
    """The status of a crawl can still be read; the log names the error once."""
    crawl = Crawl(Answering(best_arms=best), frontier=memory_frontier)
    assert [crawl.status(best=3).best_arms for _ in range(5)] == [()] * 5
    assert crawl.counts["error/best_arms"] == 5
    assert len([record for record in caplog.records if "best_arms of Answering failed" in record.getMessage()]) == 1


def test_best_arms_may_have_any_numbers() -> None:
    """They come as numbers of Python, and no more than were asked for."""
    best = (("a", np.float32(0.5), np.int64(i)) for i in count())
    crawl = Crawl(Answering(best_arms=best), frontier=memory_frontier, strict=True)
    assert crawl.status(best=2).best_arms == [("a", 0.5, 0), ("a", 0.5, 1)]


TABLES = [
    "tables", 5, None, [None], [("a", ("b",))], [(1, ("b",), [])], [("a", "b", [])], [("a", (), [])], [("a", (1,), [])],
    [("a", ("b",), "c")], [("a", ("b",), [("c", "d")])], [("a", ("b",), ["c"])], [("a", ("b",), [(None,)])],
    [("a", ("b",), [(math.nan,)])], [("a", ("b",), [(np.inf,)])], [("a", ("b",), [(10**400,)])],
    [("a", ("b",), [(b"c",)])], PolicyTable("a", ("b",), [("c",)]),
]  # fmt: skip


@pytest.mark.parametrize("tables", TABLES, ids=kind)
def test_tables_that_are_none_are_not_shown(tables, caplog) -> None:
    """There is none then; the log says once what is wrong, and what is expected."""
    crawl = Crawl(Answering(tables=tables), frontier=memory_frontier)
    assert [crawl.forecasts.tables() for _ in range(5)] == [[]] * 5
    assert crawl.counts["error/tables"] == 5
    [record] = [record for record in caplog.records if "tables of Answering failed" in record.getMessage()]
    assert any(said in record.getMessage() for said in ("return a list of PolicyTable", "values", "finite numbers"))


def test_tables_come_as_plain_values_of_a_bounded_size() -> None:
    """Numbers are plain Python ones, texts are cut and in one line, and only the first of many things are kept."""
    row = ("=1\n\x1b" + "x" * 1100, np.int64(3), np.float32(0.5), True, 10**300)
    table = PolicyTable("t\n" * 900, ["a\n", *"bcde"], [row, *[("", 1, 1, 1, 1)] * 1000])
    [*tables, last] = Crawl(Answering(tables=(table,) * 11), frontier=memory_frontier, strict=True).forecasts.tables()
    assert len(tables) == 9
    assert isinstance(last, PolicyTable)
    assert (last.columns, len(last.rows), len(last.title)) == (("a\\n", *"bcde"), 1000, 100)
    text, *numbers = last.rows[0]
    assert (text[:7], len(text)) == ("=1\\n\\x1b"[:7], 1000)
    assert [type(number) for number in numbers] == [int, float, int, int]
    wide = PolicyTable("t", ("c",) * 50, [(1,) * 50])
    [cut] = Crawl(Answering(tables=[wide]), frontier=memory_frontier, strict=True).forecasts.tables()
    assert (len(cut.columns), len(cut.rows[0])) == (20, 20)


class Aging(Recording):
    """Shows what time it is."""

    def tables(self):
        return [PolicyTable("Time", ("now",), [(self.now,)])]


def test_tables_are_those_of_the_time_at_which_they_are_asked_for() -> None:
    """However long nothing happened; the policy receives no more of that time than that."""
    clock = Clock()
    crawl = Crawl(Aging(), frontier=memory_frontier, strict=True, clock=clock)
    clock.now = 2005.0
    crawl.add(links(1))
    clock.now = 2099.0
    assert crawl.forecasts.tables()[0].rows == [(2099.0,)]
    assert crawl.policy.now == 2005.0


def test_a_policy_without_tables_has_none() -> None:
    """A policy need not show anything of itself."""
    crawl = Crawl(Recording(), frontier=memory_frontier, strict=True)
    assert (crawl.forecasts.tables(), isinstance(crawl.policy, ShowsTables)) == ([], False)


@pytest.mark.parametrize(
    "left", ["3", 3, (1, 2), (1, 2, math.nan), (1, 2, "3"), (1, 2, 10**400), NONSENSE[3]], ids=kind
)
def test_what_is_left_is_not_known_where_it_is_no_number(left, caplog) -> None:
    """The status of a crawl can still be read; the log names the error once."""
    crawl = Crawl(Answering(expected_left=left), frontier=memory_frontier)
    assert [crawl.status(best=3).left for _ in range(5)] == [None] * 5
    assert crawl.counts["error/expected_left"] == 5
    assert len([record for record in caplog.records if "expected_left of Answering failed" in record.getMessage()]) == 1


@pytest.mark.parametrize("due", NONSENSE, ids=kind)
def test_a_time_that_is_none_is_not_waited_for(due) -> None:
    """A policy that says it at no time has its links fetched."""
    crawl = Crawl(Answering(due=due, select=None), frontier=memory_frontier)
    crawl.add(links(1, 2))
    assert crawl.status().due is None
    assert sorted(fetch(crawl).key for _ in range(2)) == [1, 2]


@pytest.mark.parametrize("reasons", [None, "because", ["a"], 5, math.nan], ids=repr)
def test_reasons_that_are_no_dict_are_left_out(reasons) -> None:
    """Readers get a dict in any case."""
    crawl = Crawl(Answering(explain=reasons), frontier=memory_frontier, explain=True)
    crawl.add(links(1))
    assert crawl.next() is not None
    assert crawl.why == {}
    assert crawl.counts["error/explain"] == 1


class Idle(Recording):
    """Chooses nothing; its links are due at a time."""

    time: float | None = None

    def select(self, busy):
        return None

    def due(self):
        return self.time


def test_what_a_policy_never_chooses_is_taken(caplog) -> None:
    """Where it chooses nothing though hosts are free, nothing is in flight and nothing due; the log says so once."""
    crawl = Crawl(Idle(), frontier=memory_frontier, strict=True)
    crawl.add([*links(1, 2, host="a"), *links(3, host="b")])
    assert crawl.next({"a", "b"}) is None, "both hosts are busy"
    pick = crawl.next({"a"})
    assert pick.key == 3
    assert crawl.next() is None, "something is in flight, and may lead the policy to choose"
    crawl.sent(pick.id)
    crawl.report(Outcome(pick=pick, status=200, mime="text/html"))
    assert sorted(fetch(crawl).key for _ in range(2)) == [1, 2]
    assert crawl.next() is None
    assert crawl.counts["select/none"] == 3
    [record] = [record for record in caplog.records if "select of Idle chose nothing" in record.getMessage()]
    assert "Let select() return a pick" in record.getMessage()
    crawl.frontier.check()


@pytest.mark.parametrize(("time", "taken"), [(0.5, True), (1.0, True), (1.5, False), (math.inf, False)])
def test_what_is_due_later_is_not_taken(time: float, taken: bool) -> None:
    """A policy that says when it will choose, or that it never will, is left alone."""
    clock = Clock()
    policy = Idle()
    policy.time = clock.now + time
    crawl = Crawl(policy, frontier=memory_frontier, clock=clock)
    crawl.add(links(1))
    clock.now += 1.0
    assert (crawl.next() is not None) == taken


class Service:
    """A goal whose rewards come later, if at all."""

    def __call__(self, outcome):
        return None


def wait_for(crawl: Crawl, clock: Clock) -> float:
    """Fetch a page, and return how many seconds pass until its reward is given up."""
    pick = crawl.next()
    crawl.sent(pick.id)
    began = clock.now
    crawl.report(Outcome(pick=pick, status=200, mime="text/html"))
    while pick.id in crawl.picks:
        clock.now += 0.5
        crawl.expire()
    return clock.now - began


def test_a_goal_that_forgets_to_return_does_not_stop_a_crawl(caplog) -> None:
    """The wait becomes shorter, until there is none; the log says once what to do."""
    clock = Clock()
    crawl = Crawl(Recording(), frontier=memory_frontier, goal=Service(), clock=clock, patience=60.0)
    crawl.add(links(*range(1, 30)))
    waits = [wait_for(crawl, clock) for _ in range(29)]
    assert waits[:4] == [60.5, 60.5, 30.5, 15.5]
    assert waits[8:] == [0.0] * 21
    assert sum(waits) < 190
    assert crawl.counts["reward/late"] == crawl.counts["outcomes"] == 29
    [record] = [record for record in caplog.records if "answered None" in record.getMessage()]
    assert "The goal Service answered None for http://" in record.getMessage()
    assert "return a number from the goal" in record.getMessage()


def test_many_late_rewards_at_a_time_cost_patience_once() -> None:
    """Sixteen pages that wait together count as one sign that rewards come later."""
    clock = Clock()
    crawl = Crawl(Recording(), frontier=memory_frontier, goal=Service(), clock=clock, patience=60.0)
    crawl.add(links(*range(1, 40)))
    for _ in range(16):
        crawl.report(Outcome(pick=crawl.next(), status=200, mime="text/html"))
    clock.now += 61.0
    crawl.expire()
    assert crawl.counts["reward/late"] == 16
    assert wait_for(crawl, clock) == 60.5


def test_a_goal_whose_rewards_do_come_is_waited_for() -> None:
    """However many are late: the first reward, late or not, restores the patience for good."""
    clock = Clock()
    crawl = Crawl(Recording(), frontier=memory_frontier, goal=Service(), clock=clock, patience=60.0)
    crawl.add(links(*range(1, 40)))
    for _ in range(10):
        wait_for(crawl, clock)
    assert wait_for(crawl, clock) == 0.0
    assert crawl.reward(0, 1.0) is False, "it came too late"
    assert [wait_for(crawl, clock) for _ in range(5)] == [60.5] * 5
