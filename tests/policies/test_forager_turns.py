"""Foragers that want the same pages: nobody is passed over for ever."""

from __future__ import annotations

from collections import Counter

from scrapy_focus import Crawl, Foragers, memory_frontier
from tests.made import Clock, link
from tests.made import page as came


def test_who_waits_for_what_another_one_asked_for_has_its_turn() -> None:
    """Two foragers on one host want the same page all the time. It is asked for in the name of the first one alone, so
    the turn of the second one would never end, while one on another host can always be served.
    """
    clock = Clock()
    policy = Foragers(mode="fixed", territory="host", fewest=2, shortest=0, rules={"slice": 3})
    crawl = Crawl(policy, strict=True, clock=clock, seed=0, frontier=memory_frontier, goal=lambda outcome: 0.0)
    crawl.add([link(1, host="a"), link(2, host="b")])
    assert [forager.home for forager in policy.fleet.values()] == [0, 0, 1]
    visits: Counter[int] = Counter()
    for _ in range(60):
        pick = crawl.next(())
        assert pick is not None
        crawl.sent(pick.id)
        clock.now += 1
        crawl.report(came(pick), [])
        visits[pick.key] += 1
    assert min(visits[1], visits[2]) >= 20
