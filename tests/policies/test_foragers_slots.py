"""Data of foragers in arrays are the same as if they were looked up one by one."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_focus import Crawl, Link, memory_frontier
from scrapy_focus.jobs.pickles import Classes
from scrapy_focus.learn.changes import DAY
from scrapy_focus.policies.foragers import Foragers, slots
from scrapy_focus.policies.foragers.forager import Forager
from scrapy_focus.policies.foragers.links import LinkBook
from scrapy_focus.policies.foragers.pages import Pages
from scrapy_focus.policies.foragers.rates import Rates
from scrapy_focus.policies.foragers.rules import Rules
from scrapy_focus.policies.foragers.slots import OpenLinks, Slots, best_first
from scrapy_focus.policies.foragers.td import Td

KEYS = 60


def stored(value: object) -> object:
    """Return what a job makes of a value."""
    return Classes().loads(Classes().dumps(value))


def test_numbers_of_forgotten_keys_are_given_again() -> None:
    """No two keys have one number, and the order of keys is that of their last touches."""
    numbers = Slots()
    assert [numbers.give(key) for key in (7, 8, 9)] == [0, 1, 2]
    assert numbers.take_first() == (7, 0)
    numbers.touch(8)
    assert numbers.give(5) == 0
    assert [*numbers] == [9, 8, 5]
    assert numbers.take(4) == -1
    assert numbers.of([5, 7, 8]).tolist() == [0, -1, 1]
    assert numbers.since(2) == [5, 9]


@pytest.mark.parametrize("lately", [2, 4096])
def test_numbers_of_open_links_are_those_of_now(lately: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever keys got, lost or exchanged their numbers since, and whatever links were opened or closed."""
    monkeypatch.setattr(slots, "_LATELY", lately)
    rng = np.random.default_rng(0)
    numbers, links, order, largest = Slots(), OpenLinks(), {}, 0
    for step in range(3000):
        key = int(rng.integers(KEYS))
        match int(rng.integers(9)):
            case 0 | 1:
                numbers.take(key)
            case 2 | 3:
                if key not in numbers:
                    numbers.give(key)
            case 4 | 5:
                for each in rng.integers(KEYS, size=5).tolist():
                    links.add(each)
                    order[each] = None
                largest = max(largest, len(order))
            case 6:
                links.discard(key)
                order.pop(key, None)
            case 7:
                places = sorted(set(rng.integers(0, max(1, len(order)), 2).tolist()) & set(range(len(order))))
                for gone in [[*order][at] for at in places]:
                    del order[gone]
                links.discard_at(places)
            case 8:
                numbers, links = (stored(each) for each in (numbers, links)) if step % 50 == 0 else (numbers, links)
        if rng.random() < 0.3:
            assert links.slots(numbers, "these").tolist() == numbers.of(order).tolist()
        assert [*links] == [*order] == links.keys.tolist()
        assert len(links) == len(order)
    assert largest > KEYS // 3


@pytest.mark.parametrize("n", [0, 1, 50, 3000])
@pytest.mark.parametrize("worth", ["different", "equal", "few", "one above", "not a number"])
def test_the_best_come_first(n: int, worth: str) -> None:
    """They come as if all had been sorted, and as much is drawn."""
    rng = np.random.default_rng(1)
    values = {
        "different": rng.normal(size=n), "equal": np.zeros(n), "few": rng.integers(0, 3, n).astype(float),
        "one above": (np.arange(n) == n // 2).astype(float),
        "not a number": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
    }[worth]  # fmt: skip
    one, other = np.random.default_rng(2), np.random.default_rng(2)
    expected = np.lexsort((other.random(n), -values)).tolist()
    assert [*best_first(values, one)] == expected
    assert one.random() == other.random()


def test_of_a_page_that_was_forgotten_nothing_is_known() -> None:
    """Another page has its place, and none of its data."""
    pages = Pages(2, 2)
    first = pages.see(1)
    first.at, first.changed, first.version, first.links = 5.0, 4.0, 3, np.array([8, 9])
    pages.set_state(first, np.array([1, -1], np.float32))
    assert pages.see(2).changed is None
    pages.see(1)
    pages.see(3)
    assert pages.get(2) is None
    kept = stored(pages)
    assert isinstance(kept, Pages)
    for each in (pages, kept):
        assert [*each] == [1, 3]
        known = each.get(1)
        assert known is not None
        assert (known.at, known.changed, known.version, known.links.tolist()) == (5.0, 4.0, 3, [8, 9])
        assert each.states([1, 2, 3]).tolist() == [[1, -1], [0, 0], [0, 0]]
        again = each.see(4)
        assert (each.get(1), again.at, again.changed, again.version, again.links.tolist()) == (None, 0, None, 0, [])
        assert each.state(4).tolist() == [0, 0]
        again.changed = 2.0
        again.changed = None
        assert again.changed is None


def test_births_are_expected_by_what_is_known_of_the_page() -> None:
    """What is remembered of a page from its last visit is what follows from its record now."""
    rates, rng = Rates(most=30), np.random.default_rng(3)
    for step in range(400):
        key = int(rng.integers(40))
        rates.visit(key, f"http://a.test/{key}", 3600.0 * step, changed=bool(rng.random() < 0.3), is_target=False)
        rates._born[key] = int(rng.poisson(0.4))
    now = 3600.0 * 500
    for each in (rates, stored(rates)):
        assert isinstance(each, Rates)
        numbers = each.slots.of(range(40))
        records = each._records[numbers[numbers >= 0]]
        expected = np.zeros(40)
        expected[numbers >= 0] = each.changes.all_births(records) * (now - records["at"])
        assert each.expected(numbers, now).tolist() == expected.tolist()
        assert np.count_nonzero(expected) == len(each.slots) == 30
        known = [*each.slots]
        assert (
            each.a_day(known).tolist() == (DAY * each.changes.all_births(each._records[each.slots.of(known)])).tolist()
        )
        visits = [page.visits for page in each.watched(known, {})]
        most = each.watched(each.most_visited(known, 5), {})
        assert [page.visits for page in most] == sorted(visits, reverse=True)[:5]
        assert len(most) == 5


def test_links_promise_by_their_own_features() -> None:
    """A link that was forgotten promises nothing, and one that has its place promises what it does itself."""
    links = [Link(f"http://a.test/{'news' if key % 2 else 'help'}/{key}", key) for key in range(200)]
    book = LinkBook(50)
    book.found(links[:100], 0.0)
    assert book.promises(book.slots.of(range(50))).tolist() == [0.0] * 50
    for key in range(50, 100):
        book.fetched(key, float(key % 2))
    book.found(links[100:140], 0.0)
    for each in (book, stored(book)):
        assert isinstance(each, LinkBook)
        promised = each.promises(each.slots.of(range(200)))
        assert promised[101:140:2].min() > 0.6
        assert 0 < promised[100:140:2].max() < 0.4
        assert promised[100:140].min() > 0
        assert not promised[:100].any()
        assert not promised[140:].any()


def test_what_a_forager_sent_is_stored() -> None:
    """A forager that is stored sends again what it would have sent, and forgets in the same order."""
    rules = Rules.of(None)
    forager = Forager(1, seat=0, born=0.0, home=-1, weblog={}, td=Td(rules.k), rules=rules)
    for key in (3, 1, 2):
        forager.send(key, key << 50, 60.0 * key, is_new=False)
    forager.open.add(9)
    kept = stored(forager)
    assert isinstance(kept, Forager)
    assert [*kept._had.items()] == [*forager._had.items()] == [(key, (key << 50, 60.0 * key)) for key in (3, 1, 2)]
    assert [*kept.open] == [9]


@pytest.mark.parametrize("together", [True, False])
def test_of_thousands_of_seeds_so_many_are_in_a_weblog_as_have_room(together: bool) -> None:
    """The first ones are, and no more is remembered of the others by each forager."""
    crawl = Crawl(Foragers(), frontier=memory_frontier, seed=0, strict=True)
    links = [Link(f"http://a.test/{key}", key, "a.test") for key in range(1, 3001)]
    for at in range(0, 3000, 3000 if together else 70):
        crawl.add(links[at : at + (3000 if together else 70)])
    assert isinstance(crawl.policy, Foragers)
    for forager in crawl.policy.fleet.values():
        assert [*forager.weblog] == [*range(1, 101)]
        assert forager.urls.items() >= {key: f"http://a.test/{key}" for key in range(1, 101)}.items()
    if together:
        assert max(len(forager.urls) for forager in crawl.policy.fleet.values()) == 100
