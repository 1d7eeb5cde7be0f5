"""Pages that a policy fetches again, and links that sleep until a time."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import Budget, Crawl, Placement, PolicyError, State, check_policy, memory_frontier
from scrapy_focus.core.abilities import FetchesAgain
from tests.made import Clock, Curious, EachAgain, Recording, failure, fetch, link, links, page

if TYPE_CHECKING:
    from scrapy_focus import Frontier, Outcome
    from scrapy_focus.core.frontier import Keeps


class Rounds(Recording):
    """Fetches each page again so many seconds after it came, and those that failed never."""

    def __init__(self, *, every: float = 10.0, answer: Any = None) -> None:
        super().__init__(answer=answer)
        self.every = every

    def again(self, outcome: Outcome) -> Placement | None:
        [state] = self.frontier.states([outcome.pick.key])
        self.calls.append(("again", outcome.pick.key, outcome.at - self.now, state.name))
        return None if outcome.error else Placement(1, 0.0, after=self.now + self.every)


def crawl_of(policy: Any, clock: Clock, **options: Any) -> Crawl:
    """Return a crawl in memory, strict."""
    return Crawl(policy, frontier=memory_frontier, strict=True, clock=clock, **options)


def test_a_page_comes_back_at_its_time() -> None:
    """Called after learn, once for each page; it sleeps until its time, and is revisited again and again."""
    policy, clock = Rounds(), Clock()
    crawl = crawl_of(policy, clock)
    crawl.add([link(1, payload=b"its own", depth=3)])
    first = fetch(crawl)
    assert policy.calls[-2:] == [("learn", 1, 0.0, "FETCHED"), ("again", 1, 0.0, "FETCHED")]
    status = crawl.status()
    assert (status.waiting, status.asleep, status.next_due, crawl.counts["link/again"]) == (0, 1, 1010.0, 1)
    assert crawl.knows([1]) == [State.WAITING]
    clock.now = 1009.9
    assert crawl.next() is None
    for now in (1010.0, 1021.5):
        clock.now = now
        pick = fetch(crawl)
        assert pick._replace(id=first.id, rank=first.rank) == first
    assert crawl.sleepers.next_due == 1031.5
    crawl.frontier.check()


def test_a_page_is_left_as_it_is_where_the_policy_says_none() -> None:
    """It is fetched then, as usual; so are all pages if the policy does not revisit."""
    policy, clock = Rounds(), Clock()
    crawl = crawl_of(policy, clock)
    crawl.add(links(1))
    pick = crawl.next()
    assert pick is not None
    crawl.report(failure(pick))
    assert crawl.knows([1]) == [State.FETCHED]
    assert (crawl.sleepers.asleep, crawl.sleepers.next_due) == (0, None)
    assert not issubclass(Recording, FetchesAgain)
    assert crawl.comes_back
    assert not crawl_of(Recording(), clock).comes_back


def test_the_origin_is_that_of_the_first_visit() -> None:
    """The outcome of a later visit also counts for the page where the link was found."""
    policy, clock = Rounds(), Clock()
    crawl = crawl_of(policy, clock)
    crawl.add(links(1))
    fetch(crawl, link(2))
    fetch(crawl)
    clock.now += 10
    assert [fetch(crawl).origin for _ in range(2)] == [-1, 1]


def test_a_head_is_no_visit() -> None:
    """After a HEAD the link is placed once more, and the page may be revisited after its fetch."""
    policy, clock = Rounds(), Clock()
    policy.answer = lambda link, source: Placement(1, 0.0, None, "GET" if source else "HEAD")
    crawl = crawl_of(policy, clock)
    crawl.add(links(1))
    fetch(crawl)
    assert policy.called("again") == []
    fetch(crawl)
    assert [key for key, *_ in policy.called("again")] == [1]


def test_an_adapter_may_store_the_next_request_otherwise() -> None:
    """Or report that the page is revisited under another key."""
    policy, clock = Rounds(), Clock()
    crawl = crawl_of(policy, clock)
    crawl.add([link(1, payload=b"first"), link(2, payload=b"first")])
    fetch(crawl, payload=b"later")
    fetch(crawl, once=True)
    clock.now += 10
    assert fetch(crawl).payload == b"later"
    assert (crawl.next(), crawl.knows([2])) == (None, [State.FETCHED])


@pytest.mark.parametrize(
    "answer", [7, Placement(-3, 0.0), Placement(0, math.nan), (0, 0.0), *(Placement(0, 0.0, after=at) for at in
    (math.nan, math.inf, "soon"))]  # type: ignore[arg-type]
)  # fmt: skip
def test_a_wrong_answer_is_named(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It ends a strict crawl; any other continues without the page."""

    class Wrong(Rounds):
        def again(self, outcome: Outcome) -> Placement | None:
            return answer

    for strict in (True, False):
        crawl = Crawl(Wrong(), frontier=memory_frontier, strict=strict)
        crawl.add(links(1))
        if strict:
            with pytest.raises(PolicyError, match=r"again\(\) (answered|gave)"):
                fetch(crawl)
        else:
            fetch(crawl)
    assert crawl.counts["error/again"] == 1
    assert crawl.knows([1]) == [State.FETCHED]
    assert "Wrong failed: again() " in caplog.text


def test_new_links_may_sleep() -> None:
    """They are counted as links that were added, and leave in the order of their arms when they are due."""
    clock = Clock()
    policy = Recording(answer=lambda link, source: Placement(1, float(link.key), after=1000.0 + link.key))
    crawl = crawl_of(policy, clock)
    assert crawl.add(links(1, 2, 3)) == 3
    assert (len(crawl.frontier), crawl.sleepers.asleep) == (0, 3)
    clock.now += 2
    assert [fetch(crawl).key for _ in range(2)] == [2, 1]
    assert crawl.next() is None


def test_a_sleeping_link_may_be_placed_again() -> None:
    """Like a queued one: if the policy wants such links, a placement without a time wakes it."""
    clock = Clock()
    policy = Curious(answer=lambda link, source: Placement(1, 0.0, after=0.0 if source else 2000.0))
    crawl = crawl_of(policy, clock)
    crawl.add(links(1, 2))
    clock.now = 2000.0
    pick = crawl.next()
    assert pick is not None
    crawl.add([link(3)])
    assert crawl.sleepers.asleep == 0  # until a time that has passed
    crawl.report(page(pick), links(2))
    assert policy.called("place")[-1] == ([2], 0.0)


def test_what_sleeps_does_not_count_among_those_that_wait() -> None:
    """Neither is anything given up that sleeps."""
    clock = Clock()
    policy = Recording(answer=lambda link, source: Placement(1, 0.0, after=5000.0 if link.key > 10 else 0.0))
    crawl = crawl_of(policy, clock, most_waiting=5)
    crawl.add(links(*range(1, 6), *range(11, 40)))
    assert (crawl.status().waiting, crawl.sleepers.asleep, crawl.counts["link/dropped"]) == (5, 29, 0)
    crawl.add(links(6))
    assert (crawl.status().waiting, crawl.sleepers.asleep, crawl.counts["link/dropped"]) == (5, 29, 1)


def test_a_clock_that_is_set_back_delays_nothing_for_ever() -> None:
    """The crawl's time advances by the clock."""
    policy, clock = Rounds(), Clock()
    crawl = crawl_of(policy, clock)
    crawl.add(links(1))
    fetch(crawl)
    clock.now = 200.0
    assert crawl.next() is None
    clock.now += 9
    assert crawl.next() is None
    clock.now += 1
    assert fetch(crawl).key == 1


def test_a_crawl_in_which_all_sleep_ends_by_its_budget() -> None:
    """Nothing is chosen in place of sleeping links, and only the budget ends the crawl."""
    policy, clock = Rounds(), Clock()
    crawl = crawl_of(policy, clock, budget=Budget(requests=3))
    crawl.add(links(1))
    for _ in range(3):
        assert crawl.finished() == ""
        fetch(crawl)
        assert crawl.next() is None
        clock.now += 10
    assert crawl.finished() == "budget_requests"
    assert crawl.counts["select/none"] == 0


class Wakeless:
    """A frontier that knows nothing of times."""

    def __init__(self, keeps: Keeps) -> None:
        self._frontier = memory_frontier(keeps)

    def __len__(self) -> int:
        return len(self._frontier)

    def __getattr__(self, name: str) -> Any:
        if name in ("asleep", "next_due", "wake"):
            raise AttributeError(name)
        return getattr(self._frontier, name)


def wakeless(keeps: Keeps) -> Frontier:
    """Return an empty one."""
    return Wakeless(keeps)  # type: ignore[return-value]


def test_a_frontier_may_know_nothing_of_times() -> None:
    """As long as no link is to sleep: then the error says what is missing, and what to do."""
    crawl = Crawl(Recording(), frontier=wakeless, strict=True)
    crawl.add(links(1))
    fetch(crawl)
    assert (crawl.sleepers.asleep, crawl.sleepers.next_due) == (0, None)
    at_once = Crawl(Rounds(every=-1e9), frontier=wakeless, strict=True, clock=Clock())
    at_once.add(links(1))
    assert [fetch(at_once).key for _ in range(3)] == [1, 1, 1]
    words = r"Wakeless has no asleep, next_due and wake\(\): take another frontier"
    for policy, do in (
        (Rounds(), fetch),
        (Recording(answer=lambda link, source: Placement(1, 0.0, after=5.0)), lambda crawl: crawl.add(links(1))),
    ):
        crawl = Crawl(policy, frontier=wakeless, strict=True)
        if do is fetch:
            crawl.add(links(1))
        with pytest.raises(PolicyError, match=words):
            do(crawl)


class Hurried(EachAgain):
    """Fetches what was fetched before anything new."""

    def again(self, outcome: Outcome) -> Placement | None:
        return Placement(0, 1e9)


class Forgetful(EachAgain):
    """Is revisited sooner after it was stored."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "every": 1.0}


@pytest.mark.slow
def test_check_policy_knows_policies_that_come_back() -> None:
    """It ends their crawls, lets time pass, and finds those that forget what they have to keep."""
    check_policy(partial(EachAgain, every=0.0))
    check_policy(EachAgain)

    with pytest.raises(AssertionError, match="it never fetched"):
        check_policy(Hurried)

    with pytest.raises(AssertionError, match="after pickling it chose otherwise"):
        check_policy(Forgetful)
