"""What foragers learn beyond the paper: how often targets come up on pages, and which links lead to them."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_focus import Crawl, Foragers, Outcome, memory_frontier
from scrapy_focus.learn.changes import DAY
from scrapy_focus.policies.foragers.links import LinkBook
from scrapy_focus.policies.foragers.rates import Rates
from tests.made import link, links

HOUR = 3600.0


def watch(rates: Rates, hub: int, born: int, *, is_target: bool = True) -> None:
    """Visit a page every hour where so many links come up each time; their pages are fetched at once."""
    for hour in range(20):
        rates.visit(hub, f"http://h/{hub}", hour * HOUR, changed=None, is_target=False)
        fresh = [1000 * hub + 10 * hour + n for n in range(born)]
        rates.appeared(hub, links(*fresh))
        for key in fresh:
            rates.visit(key, "", hour * HOUR + 60, changed=None, is_target=is_target)


def expected(rates: Rates, keys: list[int], now: float) -> list[float]:
    """Return what is expected of pages, by their keys."""
    return rates.expected(rates.slots.of(keys), now).tolist()


def test_most_is_expected_where_most_targets_came_up_since_the_last_visit() -> None:
    """In proportion to the time since then; nothing of pages that were never visited."""
    rates = Rates(most=1000)
    watch(rates, 1, 3)
    watch(rates, 2, 1)
    watch(rates, 3, 3, is_target=False)
    many, few, none, never = expected(rates, [1, 2, 3, 4], 25 * HOUR)
    assert many == pytest.approx(3 * 6, rel=0.3)
    assert many > 2 * few > 4 * none
    assert never == 0
    assert expected(rates, [1], 31 * HOUR)[0] == pytest.approx(2 * many)
    assert expected(rates, [1], 0.0)[0] == 0
    assert rates.a_day([1])[0] == pytest.approx(many * DAY / (6 * HOUR))
    page, other = rates.watched([1, 3], {3: 5.0})
    assert (page.url, page.visits, page.changes, page.next) == ("http://h/1", 20, 19, None)
    assert (other.changes, other.next) == (0, 5.0)


def test_links_of_a_page_that_was_not_visited_before_came_up_nowhere() -> None:
    """They may have been there always."""
    rates = Rates(most=10)
    rates.appeared(1, links(5))
    rates.visit(1, "", 0.0, changed=None, is_target=False)
    rates.visit(5, "", 1.0, changed=None, is_target=True)
    assert not rates._born
    rates.appeared(1, links(6))
    rates.visit(6, "", 2.0, changed=None, is_target=True)
    assert rates._born == {1: 1}
    rates.visit(6, "", 3.0, changed=None, is_target=True)
    assert rates._born == {1: 1}, "once"


def test_no_more_pages_have_rates_than_have_room() -> None:
    """Those that were visited last."""
    rates = Rates(most=3)
    for at, key in enumerate((1, 2, 3)):
        rates.visit(key, f"http://h/{key}", at, changed=None, is_target=False)
    rates.appeared(2, links(9))
    rates.visit(1, "http://h/1", 4.0, changed=None, is_target=False)
    rates.visit(9, "http://h/9", 5.0, changed=None, is_target=True)
    assert rates._born == {}, "of those that are forgotten nothing is left"
    rates.visit(4, "http://h/4", 6.0, changed=None, is_target=False)
    assert [key in rates for key in (1, 2, 3, 4, 9)] == [True, False, False, True, True]
    assert {page.url for page in rates.watched([1, 4, 9], {})} == {"http://h/1", "http://h/4", "http://h/9"}


def test_links_promise_what_others_of_their_kind_led_to() -> None:
    """Those that are remembered: the last ones, until their pages come."""
    book = LinkBook(most=50)
    for n in range(40):
        new = link(n, url=f"http://h/news/{n}", tag_path="html/body/main/a")
        old = link(1000 + n, url=f"http://h/archive/{n}", tag_path="html/body/nav/a")
        book.found([new, old], 0.0)
        book.fetched(new.key, 1.0)
        book.fetched(old.key, 0.0)
    assert not book.promises(book.slots.of([0, 1000])).any(), "their pages came"
    book.found([link(n, url=f"http://h/news/{n}", tag_path="html/body/main/a") for n in range(50, 110)], 0.0)
    book.found([link(2000, url="http://h/archive/2000", tag_path="html/body/nav/a")], 0.0)
    new, old, forgotten = book.promises(book.slots.of([109, 2000, 55]))
    assert new > 0.7
    assert 0 < old < 0.3
    assert forgotten == 0
    assert isinstance(book.promises(book.slots.of([])), np.ndarray)


def test_links_that_came_up_are_told_from_others_that_look_the_same() -> None:
    """What leads to new pages looks like what leads to old ones, but it was not there at the last visit."""
    book = LinkBook(most=200)
    for n in range(0, 120, 2):
        new, old = (link(key, url=f"http://h/{key}", tag_path="html/body/main/a") for key in (n, n + 1))
        book.found([new], 0.0, came_up=True)
        book.found([old], 0.0)
        book.fetched(new.key, 1.0)
        book.fetched(old.key, 0.0)
    new, old = (link(key, url=f"http://h/{key}", tag_path="html/body/main/a") for key in (200, 201))
    book.found([new], 0.0, came_up=True)
    book.found([old], 0.0)
    promised = book.promises(book.slots.of([200, 201]))
    assert promised[0] > 0.8
    assert promised[1] < 0.2
    apart = book.arms(book.slots.of([200, 201]))
    assert apart[0] != apart[1]


def test_of_pages_that_were_never_visited_is_expected_what_came_up_on_pages_like_them() -> None:
    """Pages whose links are at the same place are alike."""
    rates = Rates(most=10_000)
    for hub in range(1, 31):
        arm, born = (3, 2) if hub % 2 else (5, 0)
        for hour in range(8):
            rates.visit(hub, f"http://h/{hub}", hour * HOUR, changed=None, is_target=False, arm=arm)
            fresh = [1000 * hub + 10 * hour + n for n in range(born)]
            rates.appeared(hub, links(*fresh))
            for key in fresh:
                rates.visit(key, "", hour * HOUR + 60, changed=None, is_target=True)
    much, little, again, unknown = (HOUR * rates.first(np.array([3, 5, 3, -1]))).tolist()
    assert much == again > unknown > little
    assert much == pytest.approx(2, rel=0.5)
    assert little < 0.1


def test_where_most_is_expected_a_link_waits_or_a_page() -> None:
    """A link is worth more the longer it is known, if its page is like pages where targets come up."""
    policy = Foragers()
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True)
    crawl.add([link(1)])
    policy.links.found([link(2, tag_path="html/body/nav/a")], 0.0)
    [arm] = policy.links.arms(policy.links.slots.of([2])).tolist()
    for key in range(50, 90):
        for hour in range(6):
            policy.rates.visit(key, "", hour * HOUR, changed=None, is_target=False, arm=arm)
            policy.rates.appeared(key, links(100 * key + hour))
            policy.rates.visit(100 * key + hour, "", hour * HOUR + 1, changed=None, is_target=True)
    policy.now = HOUR
    soon, known = policy._expected([2, 50]).tolist()
    policy.now = 10 * HOUR
    later = policy._expected([2])[0]
    assert later == pytest.approx(10 * HOUR * policy.rates.first(np.array([arm]))[0])
    assert later > soon
    assert known == 0.0, "it was visited after that time"


def test_a_page_of_the_weblog_begins_a_new_path() -> None:
    """The weblog is learned then; a link of the path is followed with it."""
    for explore, roam in ((0.5, 0.0), (0.0, 1.0)):
        policy = Foragers(fewest=1, most=1, shortest=0, explore=explore, roam=roam, rules={"steps": 1000})
        crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True, goal=lambda outcome: 0.0)
        crawl.add([link(1)])
        longest = 0
        for turn in range(60):
            pick = crawl.next()
            assert pick is not None
            crawl.report(Outcome(pick, 200, "text/html"), links(pick.key % 500 + 1, 1000 + turn))
            [forager] = policy.fleet.values()
            longest = max(longest, len(forager.path))
        assert len(forager.weblog) > 3 or not explore
        assert longest < 20 if explore else longest >= 59
