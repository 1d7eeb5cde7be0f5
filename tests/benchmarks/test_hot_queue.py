"""The benchmark of the hot queue: its pages say what the whole ones say, and its figures are those worked by hand."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hot_queue import Page, Web, crawl, measure, policies, short_pages
from scrapy_focus.learn.matching import Keywords
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.core.policy import Policy

# The start leads to two dull pages, which lead to more of them, and to page 3, which is hot by its title; that one
# leads to page 7, hot by its text, and that to page 8, hot by its title. No anchor or URL says so.
LINKS = [
    {1: "a", 2: "b", 3: "hub"},
    {4: "c", 5: "d"},
    {6: "e"},
    {7: "more"},
    {},
    {},
    {},
    {8: "next", 3: "back"},
    {},
    {},
]
TITLES = ["Home", "A", "B", "All on cheese & wine", "C", "D", "E", "F", "Cheeses", "G"]


def small_web() -> Web:
    """Return nine pages that can be reached, and one that cannot."""
    texts = ["<b>" for _ in TITLES]
    texts[7] = "cheese, " * 11
    texts[2] = "cheese, " * 10  # as often as a page may say it that is not hot
    return Web([f"http://x/{i}" for i in range(10)], TITLES, texts, LINKS)


def long_pages(web: Web) -> list[Page]:
    """Return pages as a server would send them."""
    body = "<html><head><title>{}</title></head><body><p>{}</p></body></html>"
    texts = zip(web.urls, web.titles, web.texts, strict=True)
    return [Page(url, body.format(html.escape(title), html.escape(text))) for url, title, text in texts]


def random_web(seed: int) -> Web:
    """Return pages with random links and texts; some often mention their topic."""
    rng = np.random.default_rng(seed)
    texts = ["cheese " * int(n) + "wine < bread" for n in rng.integers(0, 14, 60)]
    titles = ["Cheese" if n < 0.1 else "Wine" for n in rng.random(60)]
    links = [{int(page): titles[page] for page in rng.integers(0, 60, 5)} for _ in range(60)]
    return Web([f"http://x/{i}" for i in range(60)], titles, texts, links)


def times(web: Web) -> Sequence[int]:
    """Return how often each page says the word."""
    return [Keywords(["cheese"]).count(words_of(text)) for text in web.texts]


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_short_page_leads_a_crawl_the_same_way_as_the_whole_one(seed: int) -> None:
    """Each policy asks for the same pages in the same order; orders of different policies differ."""
    web = random_web(seed)
    orders = []
    for (_, _, one), (_, _, other) in zip(policies("cheese"), policies("cheese"), strict=True):
        short = crawl(web, short_pages(web, "cheese", times(web)), one, start=0, budget=60)
        assert short == crawl(web, long_pages(web), other, start=0, budget=60)
        orders.append(tuple(short))
    assert len(set(orders)) > 6


def test_only_what_can_be_reached_is_part_of_a_web() -> None:
    """The page without links to it is removed, and the numbers of the others are adjusted."""
    web = small_web()
    assert web.reached(0) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    part = web.part([0, 3, 7])
    assert part.titles == ["Home", "All on cheese & wine", "F"]
    assert part.links == [{1: "hub"}, {2: "more"}, {1: "back"}]
    assert web.backlinks().tolist() == [0, 1, 1, 2, 1, 1, 1, 1, 1, 0]


def test_starts_are_the_first_page_and_pages_from_which_much_can_be_reached() -> None:
    """The largest strongly connected part has two here."""
    first, *others = small_web().starts(3)
    assert first == 0
    assert sorted(others) == [3, 7]


def test_orders_and_figures_are_those_worked_by_hand() -> None:
    """Pages 3, 7 and 8 are hot. Within one click of 3, page 7 comes before the links of pages 1 and 2."""
    web = small_web()
    runs = {(run["base"], run["distance"]): run for run in measure(web, ["cheese"], 1)}
    assert {run["n_hot"] for run in runs.values()} == {3}
    assert runs["breadth", None]["hot"] == [0, 0, 0]
    order = crawl(web, short_pages(web, "cheese", times(web)), _hot_queue(1), start=0, budget=9)
    assert order == [0, 1, 2, 3, 7, 8, 4, 5, 6]
    order = crawl(web, short_pages(web, "cheese", times(web)), _hot_queue(0), start=0, budget=9)
    assert order == [0, 1, 2, 3, 4, 5, 6, 7, 8]


def _hot_queue(distance: int) -> Policy:
    return next(policy for base, clicks, policy in policies("cheese") if (base, clicks) == ("breadth", distance))
