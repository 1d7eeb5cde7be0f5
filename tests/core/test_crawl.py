"""The loop: the calls of goal, frontier and policy, their order, and their number."""

from __future__ import annotations

import itertools

import pytest

from scrapy_focus import Crawl, Outcome, Placement, Plateau, PolicyError, State, memory_frontier
from tests.made import Clock, Curious, Recording, failure, fetch, link, links, page


def test_report_settles_places_and_learns_in_this_order() -> None:
    """The goal is asked first, links are placed with the reward known and the pick settled, and learn comes last."""
    policy, seen = Recording(), []
    crawl = Crawl(
        policy,
        frontier=memory_frontier,
        goal=lambda outcome: seen.append((outcome.reward, len(policy.calls))) or 3.0,
        strict=True,
    )
    crawl.add(links(1))
    fetch(crawl, *links(2, 3))
    assert seen == [(0.0, 1)]
    assert policy.calls == [("place", [1], None), ("place", [2, 3], 3.0), ("learn", 1, 3.0, "FETCHED")]


def test_learn_comes_once_for_each_pick() -> None:
    """Whatever becomes of a pick (page, failure, HEAD), learn comes exactly once; a second report is refused."""
    policy = Recording(
        answer=lambda link, source: Placement(1, 0.0, None, "HEAD" if link.key == 3 and not source else "GET")
    )
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add(links(1, 2, 3))
    for number in itertools.count():
        pick = crawl.next()
        if pick is None:
            break
        crawl.report(failure(pick) if number == 1 else page(pick))
        with pytest.raises(PolicyError, match="was reported already"):
            crawl.report(page(pick))
    assert sorted(key for key, *_ in policy.called("learn")) == [1, 2, 3, 3]
    assert crawl.status().in_flight == 0
    assert crawl.counts["outcomes"] == 4


def test_a_page_without_links_is_not_placed() -> None:
    """Place is not asked about nothing."""
    policy = Recording()
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    assert crawl.add([]) == 0
    crawl.add(links(1))
    fetch(crawl)
    assert policy.called("place") == [([1], None)]


def test_links_know_the_arm_of_their_page() -> None:
    """The origin of a pick is the arm of the page where its link was first found, -1 for seeds."""
    crawl = Crawl(Recording(), frontier=memory_frontier, strict=True)
    crawl.add(links(1))
    assert fetch(crawl, *links(2)).origin == -1
    assert fetch(crawl).origin == 1


def test_a_policy_is_asked_about_new_links_only() -> None:
    """Queued, flying, fetched and repeated links are not placed (again); add counts new ones."""
    policy = Recording()
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    assert crawl.add([*links(1, 2), link(1, url="http://h/again")]) == 2
    fetch(crawl, *links(1, 2, 3, 3))
    pick = crawl.next()
    assert pick is not None
    assert crawl.add(links(1, 2, 3)) == 0
    assert policy.called("place") == [([1, 2], None), ([3], 0.0)]
    assert pick.url == "http://h/2"


def test_the_first_of_two_links_to_a_url_counts() -> None:
    """Of links with the same key on one page, the first is placed."""
    crawl = Crawl(Recording(), frontier=memory_frontier, strict=True)
    crawl.add([link(1, url="http://h/one"), link(2), link(1, url="http://h/another")])
    assert [fetch(crawl).url, fetch(crawl).url] == ["http://h/one", "http://h/2"]


def test_a_pick_is_settled_when_its_links_are_placed() -> None:
    """A policy that looks at the frontier while it places finds the page FETCHED."""
    states: list[list[State]] = []
    policy = Recording(answer=lambda link, source: states.append(policy.frontier.states([1])) or Placement(1, 0.0))
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add(links(1))
    fetch(crawl, *links(2))
    assert states == [[State.NEW], [State.FETCHED]]


def test_a_waiting_link_can_be_moved() -> None:
    """A policy that wants known links receives their state, and moves a queued one by placing it again."""
    policy = Curious(answer=lambda link, source: Placement(1, float(-link.key) if source is None else 9.0))
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add(links(1, 2, 3))
    assert fetch(crawl, *links(3)).key == 1
    assert policy.called("place")[-1] == ([3], 0.0)
    assert fetch(crawl).key == 3
    crawl.frontier.check()


def test_a_fetched_link_can_be_visited_again() -> None:
    """A placement queues a fetched link again; None leaves it fetched."""
    states: list[State] = []
    policy = Curious(
        answer=lambda link, source: states.append(link.state) or (Placement(1, 0.0) if len(states) < 3 else None)
    )
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add(links(1))
    fetch(crawl)
    assert crawl.add(links(1)) == 1
    fetch(crawl)
    assert crawl.add(links(1)) == 0
    assert states == [State.NEW, State.FETCHED, State.FETCHED]
    assert crawl.frontier.states([1]) == [State.FETCHED]


def test_a_head_is_placed_again_with_what_it_told() -> None:
    """After a HEAD the link comes alone, PROBED, with the outcome of the HEAD; its origin is that of the link."""
    asked = []

    def answer(link, source):
        asked.append((link.state, None if source is None else source.mime, link.payload))
        return Placement(1, 0.0) if link.state == State.PROBED or source is None else Placement(2, 0.0, None, "HEAD")

    policy = Recording(answer=answer)
    policy.select = lambda busy: policy.frontier.pop(1) or policy.frontier.pop(2)  # type: ignore[method-assign]
    crawl = Crawl(policy, frontier=memory_frontier, goal=lambda outcome: 1.0, strict=True)
    crawl.add(links(1))
    fetch(crawl, link(2, payload=b"p"))
    head = fetch(crawl, mime="text/csv")
    get = fetch(crawl)
    assert (head.method, get.method, get.key, get.origin, get.payload) == ("HEAD", "GET", 2, head.origin, b"p")
    assert asked[1:] == [(State.NEW, "text/html", b"p"), (State.PROBED, "text/csv", b"p")]
    assert crawl.rewards == 2.0, "a HEAD earns nothing for the crawl"
    assert list(crawl.found_at) == [(1, 1.0), (3, 2.0)]


@pytest.mark.parametrize("failed", [True, False])
def test_a_probed_link_can_be_given_up(failed: bool) -> None:
    """A HEAD that failed, or that the policy does not want to follow, leaves the link PROBED and never fetched."""
    policy = Recording(answer=lambda link, source: None if source else Placement(1, 0.0, None, "HEAD"))
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add(links(1))
    pick = crawl.next()
    assert pick is not None
    crawl.report(failure(pick) if failed else page(pick))
    assert len(policy.called("place")) == 2
    assert crawl.frontier.states([1]) == [State.PROBED]
    assert crawl.add(links(1)) == 0


def test_a_released_pick_waits_again_and_counts_for_nothing() -> None:
    """Release puts a pick back where it was and undoes what select counted; learn does not come for it."""
    policy = Recording()
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add(links(1, 2))
    first = crawl.next()
    assert first is not None
    crawl.release(first.id)
    assert policy.called("release") == [(1,)]
    assert policy.called("learn") == []
    again = crawl.next()
    assert again is not None
    assert again._replace(id=0) == first._replace(id=0)
    assert crawl.status().in_flight == 1
    with pytest.raises(PolicyError):
        crawl.report(page(first))


def test_nothing_is_selected_while_nothing_waits() -> None:
    """Next is None, without a call of the policy, while no link is queued."""
    policy = Recording()
    policy.select = lambda busy: pytest.fail("select was asked")  # type: ignore[method-assign]
    assert Crawl(policy, frontier=memory_frontier, strict=True).next() is None


def test_busy_hosts_are_left_alone() -> None:
    """What is busy is passed on to the policy."""
    crawl = Crawl(Recording(), frontier=memory_frontier, strict=True)
    crawl.add([link(1, host="a"), link(2, host="b")])
    assert fetch(crawl, busy={"a"}).key == 2
    assert crawl.next({"a"}) is None


def test_a_reward_that_comes_later_concludes_the_pick() -> None:
    """Where the goal says None, links are placed and the policy learns when the reward comes; a second one is refused."""
    policy = Recording()
    crawl = Crawl(policy, frontier=memory_frontier, goal=lambda outcome: None, strict=True)
    crawl.add(links(1))
    pick = fetch(crawl, *links(2))
    assert policy.called("learn") == []
    assert crawl.status().in_flight == 1
    with pytest.raises(PolicyError, match="reported already"):
        crawl.report(page(pick))
    assert crawl.reward(pick.id, 2)
    assert policy.calls[1:] == [("place", [2], 2.0), ("learn", 1, 2.0, "FETCHED")]
    assert not crawl.reward(pick.id, 5)
    assert crawl.rewards == 2.0


def test_a_reward_may_come_before_its_outcome() -> None:
    """A callback that knows at once may say so: what the goal says goes before it, and it is for one fetch alone."""
    policy, says = Recording(), [None, 7.0, None]
    crawl = Crawl(policy, frontier=memory_frontier, goal=lambda outcome: says.pop(0), strict=True)
    crawl.add(links(1, 2))
    pick = crawl.next()
    assert crawl.reward(pick.id, 2)
    assert crawl.reward(pick.id, 3)
    crawl.report(page(pick))
    assert policy.called("learn") == [(1, 3.0, "FETCHED")]
    assert not crawl.reward(pick.id, 4)
    pick = crawl.next()
    assert crawl.reward(pick.id, 5)
    crawl.release(pick.id)
    pick = crawl.next()
    assert crawl.reward(pick.id, 6)
    crawl.report(page(pick))
    assert crawl.rewards == 10.0
    crawl.add(links(3))
    released = crawl.next()
    assert crawl.reward(released.id, 8)
    crawl.release(released.id)
    crawl.report(page(crawl.next()))
    assert (crawl.rewards, len(crawl.status().owed)) == (10.0, 1)


def test_patience_for_a_late_reward_ends() -> None:
    """After `patience` seconds a reward that did not come is 0; at exactly so many it is still waited for."""
    clock, policy = Clock(), Recording()
    crawl = Crawl(policy, frontier=memory_frontier, goal=lambda outcome: None, strict=True, clock=clock, patience=60.0)
    crawl.add(links(1))
    pick = fetch(crawl, *links(2))
    clock.now += 60.0
    assert crawl.next() is None
    assert policy.called("learn") == []
    clock.now += 0.1
    assert crawl.next() is not None, "the links of the page wait now"
    assert policy.called("learn") == [(1, 0.0, "FETCHED")]
    assert crawl.counts["reward/late"] == 1
    assert not crawl.reward(pick.id, 1.0)


def test_a_plateau_ends_the_crawl() -> None:
    """When the plateau is reached, no more picks are returned, and the reason is given."""
    crawl = Crawl(
        Recording(), frontier=memory_frontier, stop=Plateau(window=2, slope=0.5, decay=1.0, patience=1), strict=True
    )
    crawl.add(links(*range(9)))
    for items in (1, 1, 0, 0):
        assert not crawl.finished()
        fetch(crawl, items=items)
    assert crawl.finished() == "plateau"
    assert crawl.next() is None


def test_the_same_seed_makes_the_same_choices() -> None:
    """All randomness of a crawl comes from its seed."""

    class Shuffled(Recording):
        def place(self, links, source):
            return [Placement(1, float(self.rng.random())) for _ in links]

    def order(seed: int) -> list[int]:
        crawl = Crawl(Shuffled(), frontier=memory_frontier, seed=seed, strict=True)
        crawl.add(links(*range(20)))
        return [fetch(crawl).key for _ in range(20)]

    assert order(1) == order(1) != order(2)


def test_a_crawl_takes_the_frontier_it_is_given() -> None:
    """An empty frontier is a frontier: it is used, not replaced by a new one."""
    frontier = memory_frontier()
    crawl = Crawl(Recording(), frontier=frontier)
    assert crawl.frontier is crawl.policy.frontier is frontier


def test_an_outcome_is_html_only_without_error() -> None:
    """Links can be found in complete HTML and XHTML."""
    crawl = Crawl(Recording(), frontier=memory_frontier)
    crawl.add(links(1))
    pick = crawl.next()
    assert pick is not None
    mimes = {mime: page(pick, mime=mime).is_html for mime in ("text/html", "application/xhtml+xml", "text/csv", "")}
    assert mimes == {"text/html": True, "application/xhtml+xml": True, "text/csv": False, "": False}
    assert not page(pick, error="ignored").is_html
    assert not Outcome(pick=pick).is_html
