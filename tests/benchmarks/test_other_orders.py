"""The orders of other crawlers that the orders by importance are compared with, by hand on small webs of links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from linkweb.crawl import crawl_web
from linkweb.others import Heritrix, Nutch, SolvedAnew
from linkweb.web import LinkWeb
from scrapy_focus.lab.replay.importance_metrics import crawl_and_stop, pagerank
from scrapy_focus.policies.importance import Importance

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_focus.core.policy import Policy

ALL: list[Callable[[int], Policy]] = [
    lambda n: SolvedAnew(n_urls=n),
    lambda n: Nutch(n_urls=n, top=50),
    lambda n: Heritrix(),
]


def web_of(links: list[list[int]], hosts: list[int]) -> LinkWeb:
    """Return a web of pages with these links."""
    counts = [len(each) for each in links]
    return LinkWeb(
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        targets=np.array([target for each in links for target in each], np.int32),
        hosts=np.array(hosts, np.int32),
        redirects=np.full(len(hosts), -1, np.int32),
    )


@pytest.mark.parametrize("make", ALL)
def test_each_order_fetches_all_that_can_be_reached_once(make: Callable[[int], Policy]) -> None:
    """A crawl to the end has every page, none of them twice."""
    web, start = LinkWeb.make(1500, seed=1).reached()

    order = crawl_web(web, make(web.n_urls), start=start)

    assert sorted(order) == list(range(web.n_urls))


def test_nutch_takes_the_page_first_to_which_most_was_handed() -> None:
    """0 hands 1/3 to 1, 2 and 3; 1 hands all of its third to 5, 2 half of it to 3 and 4: now 3 has 1/2, 5 has 1/3."""
    web = web_of([[1, 2, 3], [5], [3, 4], [], [], []], hosts=[0] * 6)

    assert crawl_web(web, Nutch(n_urls=6, top=1), start=0).tolist() == [0, 1, 2, 3, 5, 4]


def test_what_nutch_hands_out_counts_from_the_next_round_on() -> None:
    """1 makes 4 the best of all, which is fetched next in rounds of one, and after the round in one of three."""
    web = web_of([[1, 2, 3, 4], [4], [4], [], []], hosts=[0] * 5)

    assert crawl_web(web, Nutch(n_urls=5, top=1), start=0).tolist() == [0, 1, 4, 2, 3]
    assert crawl_web(web, Nutch(n_urls=5, top=3), start=0).tolist() == [0, 1, 2, 3, 4]


def test_heritrix_takes_hosts_in_turn() -> None:
    """Pages 1 and 2 are of one host, 3 and 4 of others: the second page of the first host comes last."""
    web = web_of([[1, 2, 3, 4], [], [], [], []], hosts=[0, 1, 1, 2, 3])

    assert crawl_web(web, Heritrix(), start=0).tolist() == [0, 1, 3, 4, 2]


@pytest.mark.slow
def test_pagerank_that_is_solved_anew_is_about_as_good_as_the_one_that_is_kept() -> None:
    """The policy in the benchmark and the one of the package differ by a few points of P_CS."""
    web, start = LinkWeb.make(5000, seed=2).reached()
    importance = pagerank(web.page_links())
    at = [web.n_urls // 10, web.n_urls // 5]
    policy = SolvedAnew(n_urls=web.n_urls)

    solved = crawl_and_stop(crawl_web(web, policy, start=start), importance)[at]
    kept = crawl_and_stop(crawl_web(web, Importance(), start=start), importance)[at]

    assert policy.solves > 20
    assert np.abs(solved - kept).max() < 6
