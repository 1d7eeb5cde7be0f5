"""What others say of when pages changed, and what is not asked of pages that did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus import Crawl, Link, Placement, Signal, State, memory_frontier
from tests.made import Clock, EachAgain, Recording, fetch, link, links, page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus import Outcome


class Listening(EachAgain):
    """Wakes the pages reported as changed."""

    def __init__(self, *, every: float = 1000.0, times: int = 10) -> None:
        super().__init__(every=every, times=times)

    def hear(self, signals: Sequence[Signal]) -> None:
        for signal in signals:
            self.frontier.push([Link("", signal.key)], [Placement(0, 0.0)])


def signal(key: int, modified: float = 5.0) -> Signal:
    """Return what a sitemap says of a page."""
    return Signal(key, "h.test", modified, "sitemap")


def test_a_policy_hears_of_the_pages_that_are_known() -> None:
    """All others are skipped, and a policy that does not listen receives nothing."""
    crawl = Crawl(Listening(), frontier=memory_frontier, strict=True, clock=Clock())
    crawl.add(links(1, 2))
    fetch(crawl)
    assert (crawl.sleepers.asleep, crawl.status().waiting) == (1, 1)
    crawl.hear([signal(1), signal(77)])
    assert (crawl.sleepers.asleep, crawl.status().waiting, crawl.counts["signal/heard"]) == (0, 2, 1)
    assert crawl.knows([77]) == [State.NEW]
    crawl.hear([signal(77)])
    assert crawl.counts["signal/heard"] == 1
    deaf = Crawl(Recording(), frontier=memory_frontier, strict=True)
    deaf.add(links(1))
    deaf.hear([signal(1)])
    assert deaf.counts["signal/heard"] == 0


def test_what_has_not_changed_is_worth_nothing() -> None:
    """The goal is not asked about it."""
    asked: list[Any] = []

    def goal(outcome: Outcome) -> float:
        asked.append(outcome.changed)
        return 1.0

    crawl = Crawl(EachAgain(every=0.0, times=9), frontier=memory_frontier, strict=True, goal=goal, clock=Clock())
    crawl.add([link(1)])
    for changed in (None, False, True, False):
        pick = crawl.next()
        assert pick is not None
        crawl.sent(pick.id)
        crawl.report(page(pick)._replace(changed=changed))
    assert asked == [None, True]
    assert crawl.rewards == 2.0
