"""What links promise is learned from the pages behind others, from each of the things that are said of a link."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus.core.types import Link
from scrapy_focus.jobs.pickles import Classes
from scrapy_focus.policies.linkvalues import WIDTH, LinkValues

if TYPE_CHECKING:
    from collections.abc import Callable


def by_path(n: int, good: bool) -> Link:
    """Return a link that differs from others by its place alone."""
    return Link(f"http://a.test/{n}", n, tag_path=f"html/body/div.{'latest' if good else 'foot'}/a")


def by_url(n: int, good: bool) -> Link:
    """Return a link that differs from others by its URL alone."""
    return Link(f"http://a.test/{'news' if good else 'help'}/{n}", n)


def by_anchor(n: int, good: bool) -> Link:
    """Return a link that differs from others by its words alone."""
    return Link(f"http://a.test/{n}", n, anchor=f"{'breaking' if good else 'old'} story {n}")


def by_context(n: int, good: bool) -> Link:
    """Return a link that differs from others by the words around it alone."""
    return Link(f"http://a.test/{n}", n, anchor="more", context=f"{'today' if good else 'archive'}: more")


def learned(made: Callable[[int, bool], Link]) -> LinkValues:
    """Return values that saw thirty pages of each kind."""
    values = LinkValues()
    for n in range(60):
        values.learn(values.rows([made(n, n % 2 == 0)])[0], 100.0 if n % 2 == 0 else -1.0)
    return values


@pytest.mark.parametrize("made", [by_path, by_url, by_anchor, by_context])
def test_links_promise_what_their_like_earned(made: Callable[[int, bool], Link]) -> None:
    """New links like those whose pages were rewarded have odds above even, the others below."""
    values = learned(made)
    odds = values.decide(values.rows([made(n, n % 2 == 0) for n in range(1000, 1010)]))
    assert odds[::2].min() > 0 > odds[1::2].max()
    assert odds[::2].min() > odds[1::2].max() + 1


def test_nothing_is_known_at_first() -> None:
    """All links have even odds, whatever is said of them, and no links no rows."""
    values = LinkValues()
    rows = values.rows([by_path(1, True), by_context(2, True), Link("http://a.test/", 3)])
    assert (rows.shape, rows.dtype) == ((3, WIDTH), np.uint16)
    assert values.decide(rows).tolist() == [0.0] * 3
    assert values.rows([]).shape == (0, WIDTH)


def test_stored_values_continue_where_they_were() -> None:
    """What a JOBDIR holds of them says the same of links, and learns the same from then on."""
    values = learned(by_path)
    other = Classes().loads(Classes().dumps(values))
    rows = values.rows([by_path(7, True), by_path(8, False), by_url(9, True)])
    assert other.rows([by_path(7, True), by_path(8, False), by_url(9, True)]).tolist() == rows.tolist()
    for each in (values, other):
        each.learn(rows[2], 1.0)
    assert other.decide(rows).tolist() == values.decide(rows).tolist()
