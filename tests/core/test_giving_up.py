"""If too many links are queued, those that the policy wants least are given up; some return."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from scrapy_focus import ConfigError, Crawl, Ordering, Placement, Policy, State, Vectors, memory_frontier
from scrapy_focus.core.frontier import Ranks
from scrapy_focus.core.giving_up import give_up
from scrapy_focus.frontiers.sqlite.frontier import sqlite_frontier
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import Recording, fetch, link, links, page

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from scrapy_focus import Drawn, Link, Mission, Outcome, Pick, Ranked


class ByKey(Ordering):
    """The smaller key comes first."""

    def rank(self, link: Link, source: Outcome | None) -> float:
        return -float(link.key)


def waiting(crawl: Crawl, keys: range) -> list[int]:
    """Return the queued keys."""
    return [key for key, state in zip(keys, crawl.knows([*keys]), strict=True) if state == State.WAITING]


def test_the_least_ranks_are_given_up() -> None:
    """Down to nine tenths of the limit, once it is exceeded, and counted; what is in flight does not count."""
    crawl = Crawl(ByKey(), frontier=memory_frontier, strict=True, most_waiting=20)
    assert crawl.add(links(*range(1, 22))) == 21
    assert waiting(crawl, range(1, 22)) == [*range(1, 19)]
    assert crawl.counts["link/dropped"] == 3
    picks = [crawl.next(), crawl.next()]
    crawl.add(links(30, 31, 32, 33))
    assert len(crawl.frontier) == 20
    crawl.release(picks[0].id)
    assert len(crawl.frontier) == 21
    crawl.add([])
    assert waiting(crawl, range(1, 34)) == [1, *range(3, 19), 30]
    assert crawl.counts["link/dropped"] == 6
    assert crawl.knows([20, 31, 2]) == [State.GIVEN_UP, State.GIVEN_UP, State.FLYING]
    crawl.frontier.check()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("keeps", [Ranks(), Vectors(2)], ids=["ranked", "drawn"])
def test_each_arm_gives_up_its_share(kind: str, keeps: Any) -> None:
    """Exactly as many as were asked for leave, or all; by rank, each arm is within one of its share."""
    frontier = memory_frontier(keeps) if kind == "memory" else sqlite_frontier(None, keeps)
    memo = None if keeps == Ranks() else np.zeros(2, np.uint8)
    arms = [0] * 100 + [1] * 200 + [3] * 300
    frontier.push(links(*range(600)), [Placement(arm, 0.0, memo) for arm in arms])
    for n, left in ((60, [90, 180, 0, 270]), (1, None), (529, None), (5, None), (99, [0, 0, 0, 0])):
        before, shares = len(frontier), frontier.waiting * (min(n, len(frontier)) / len(frontier))
        counts = frontier.waiting.copy()
        assert give_up(frontier, n, np.random.default_rng(0)) == min(n, before)
        assert len(frontier) == max(before - n, 0)
        frontier.check()
        if keeps == Ranks():
            assert (abs(counts - frontier.waiting - shares) < 1).all()
            assert left is None or frontier.waiting.tolist() == left
    assert give_up(frontier, 10, np.random.default_rng(0)) == 0
    assert set(frontier.states(range(600))) == {State.GIVEN_UP}
    frontier.close()


@pytest.mark.parametrize("policy", [ByKey, lambda: BranchingBandit(targets=["text/csv"])], ids=["ranked", "drawn"])
def test_no_more_wait_and_nothing_is_fetched_twice(policy: Any) -> None:
    """On a web of 3,000 pages, each of which links to 40: after no page are more than 100 links queued."""
    crawl = Crawl(policy(), frontier=memory_frontier, seed=1, strict=True, most_waiting=100)
    crawl.add(links(0))
    fetched = []
    while len(crawl.frontier):
        pick = crawl.next()
        assert crawl.sent(pick.id)
        crawl.report(page(pick), links(*((pick.key * 7 + i * i + 1) % 3000 for i in range(40))))
        fetched.append(pick.key)
        assert len(crawl.frontier) <= 100
    assert len(set(fetched)) == len(fetched) > 300
    states = crawl.knows(range(3000))
    assert states.count(State.FETCHED) == len(fetched)
    assert states.count(State.GIVEN_UP) == crawl.counts["link/dropped"]
    crawl.frontier.check()


class Popular(Policy):
    """Ranks a link by how many links to it were seen, and takes those back that were given up once three are known."""

    wants_known: ClassVar[frozenset[State]] = frozenset({State.WAITING, State.GIVEN_UP})

    frontier: Ranked

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        for each in links:
            self.seen[each.key] = self.seen.get(each.key, 0) + 1
        return [
            None if each.state == State.GIVEN_UP and self.seen[each.key] < 3 else Placement(0, self.seen[each.key])
            for each in links
        ]

    def select(self, busy: Collection[str]) -> Pick | None:
        return self.frontier.pop(0, busy)


def test_a_link_that_many_link_to_later_comes_back() -> None:
    """If the policy wants it: it is queued again, fetched once, and never after that; otherwise it stays given up."""
    for policy, comes_back in ((Popular(), True), (Recording(), False)):
        crawl = Crawl(policy, frontier=memory_frontier, strict=True, most_waiting=10)
        crawl.add(links(*range(1, 12)))
        assert crawl.knows([10, 11]) == [State.GIVEN_UP] * 2
        fetch(crawl, *links(11))
        assert crawl.knows([11]) == [State.GIVEN_UP]
        fetch(crawl, *links(11))
        assert crawl.knows([11]) == [State.WAITING if comes_back else State.GIVEN_UP]
        left = [fetch(crawl, *links(11)).key for _ in range(len(crawl.frontier))]
        assert left.count(11) == comes_back
        assert not len(crawl.frontier)


class Failing(BreadthFirst):
    """Raises, gives up fewer, or says nothing."""

    def __init__(self, *, how: str = "") -> None:
        super().__init__()
        self.how = how

    def give_up(self, n: int) -> int:
        if self.how == "raises":
            raise KeyError("gone")
        super().give_up(n if self.how == "silent" else 1)
        return None if self.how == "silent" else 1


@pytest.mark.parametrize(("how", "errors"), [("raises", 1), ("silent", 1), ("fewer", 0)])
def test_the_limit_holds_whatever_a_policy_does(how: str, errors: int, caplog: pytest.LogCaptureFixture) -> None:
    """What it does not give up is given up by the default; an error is counted and logged."""
    crawl = Crawl(Failing(how=how), frontier=memory_frontier, most_waiting=10)
    crawl.add(links(*range(20)))
    assert (len(crawl.frontier), crawl.counts["link/dropped"]) == (9, 11)
    assert crawl.counts["error/give_up"] == errors
    assert ("give_up of Failing failed" in caplog.text) is bool(errors)


class Uneven(Policy):
    """Gives up all of the second arm first."""

    frontier: Drawn

    def keeps(self, mission: Mission) -> Vectors:
        return Vectors(1)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        return [Placement(each.key % 2, 0.0) for each in links]

    def select(self, busy: Collection[str]) -> Pick | None:
        return self.frontier.take_drawn(int(self.frontier.draw(None, self.rng, busy=busy).slots[0]))

    def give_up(self, n: int) -> int:
        every = self.frontier.draw(None, self.rng)
        return self.frontier.drop(every.slots[np.argsort(-every.arms, kind="stable")][:n])


def test_a_policy_may_have_a_rule_of_its_own() -> None:
    """What it gives up is given up, and nothing else."""
    crawl = Crawl(Uneven(), frontier=memory_frontier, strict=True, most_waiting=20)
    crawl.add(links(*range(21)))
    assert waiting(crawl, range(21)) == sorted([*range(0, 21, 2), *range(7, 21, 2)])


def test_the_first_time_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Once, with both numbers."""
    caplog.set_level(logging.INFO)
    crawl = Crawl(ByKey(), frontier=memory_frontier, most_waiting=10)
    for start in range(0, 100, 20):
        crawl.add(links(*range(start, start + 20)))
    said = [record.getMessage() for record in caplog.records if "least wanted" in record.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("20 links were queued, above the limit of 10: the 11 least wanted were given up")


@pytest.mark.parametrize("most", [0, -3])
def test_a_limit_is_at_least_one(most: int) -> None:
    """With a limit of one, one link is queued."""
    with pytest.raises(ConfigError, match=f"most_waiting is {most}; it is at least 1, or None"):
        Crawl(ByKey(), frontier=memory_frontier, most_waiting=most)
    crawl = Crawl(ByKey(), frontier=memory_frontier, most_waiting=1)
    crawl.add([link(3), link(2)])
    assert waiting(crawl, range(4)) == [2]


def test_long_pages_are_cut_on_the_way() -> None:
    """After each part of the links of a page no more are queued than allowed."""
    crawl = Crawl(ByKey(), frontier=memory_frontier, strict=True, most_waiting=100)
    crawl.add(links(0))
    pick = crawl.next()
    for _ in crawl.report_in_parts(page(pick), links(*range(1, 2001))):
        assert len(crawl.frontier) <= 100
    assert waiting(crawl, range(2001)) == [*range(1, 91)]
    assert crawl.counts["link/dropped"] == 2000 - 90
