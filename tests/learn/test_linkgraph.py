"""What pages are worth by their links, kept up to date with every page: the same as worked out anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus.learn.linkgraph import Backlinks, Cash, LinkGraph, PageRank
from scrapy_focus.learn.pagerank import solve

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.learn.linkgraph import Value

DAMPING = 0.9


class Web:
    """A graph with one value, and all its inputs, to compute the value from scratch."""

    def __init__(self, make: type[Value], **parameters: float) -> None:
        self.graph = LinkGraph()
        self.changed: dict[int, None] = {}
        self.value: Value = make(self.graph, self.changed, **parameters)

    def know(self, n: int) -> None:
        """Let so many pages be known."""
        while len(self.graph) < n:
            self.graph.add()
            self.value.add()

    def fetch(self, page: int, links: Iterable[int], outside: int = 0) -> None:
        """A page is fetched, with links."""
        links = list(links)
        self.know(1 + max([page, *links]))
        page = self.graph.page(page)
        self.value.unlink(page)
        self.graph.connect(page, links, outside)
        self.value.link(page)

    def join(self, page: int, other: int) -> None:
        """A page redirects to another one."""
        page, other = self.graph.page(page), self.graph.page(other)
        if page != other:
            self.value.unlink(page)
            self.value.unlink(other)
            self.value.merge(page, other)
            self.graph.join(page, other)
            self.value.link(page)

    def values(self) -> NDArray[np.float64]:
        """Return the value of every number, that of the page that it was joined with."""
        return np.array([self.value.of(self.graph.page(number)) for number in range(len(self.graph))])


def pagerank_web(epsilon: float = 1e-9, work: int = 10**9) -> Web:
    return Web(PageRank, damping=DAMPING, epsilon=epsilon, work=work)


def solved(web: Web) -> NDArray[np.float64]:
    """Return the PageRank of every number by a system of equations; what pages without links have stays with them."""
    graph, n = web.graph, len(web.graph)
    passes = np.zeros((n, n))
    for page in {graph.page(number) for number in range(n)}:
        for other in graph.links(page):
            passes[other, page] += 1 / graph.n_links(page)
    values = np.linalg.solve(np.eye(n) - DAMPING * passes, np.full(n, 1 - DAMPING))
    return np.array([values[graph.page(number)] for number in range(n)])


def test_five_pages_by_hand() -> None:
    """d = 0.5, so each page begins with 1/2: what every page has received and holds after every page that comes."""
    web = Web(PageRank, damping=0.5, epsilon=0.3, work=1000)
    rank = web.value
    assert isinstance(rank, PageRank)
    web.know(5)
    web.fetch(0, [1, 2])
    assert rank.received.tolist() == [0.5, 0.625, 0.625, 0.5, 0.5]
    assert rank.held.tolist() == [0.0, 0.625, 0.625, 0.5, 0.5]
    assert list(web.changed) == [1, 2]
    web.changed.clear()
    web.fetch(1, [0, 3])  # 0.625 / 2 / 2 to each; what home holds is not more than 0.3
    assert rank.received.tolist() == [0.65625, 0.625, 0.625, 0.65625, 0.5]
    assert rank.held.tolist() == [0.15625, 0.0, 0.625, 0.65625, 0.5]
    assert list(web.changed) == [3]
    web.changed.clear()
    web.fetch(3, [0], outside=1)  # half of what it passes on leaves: home holds 0.3203125 now, and passes it on
    assert rank.received.tolist() == [0.8203125, 0.705078125, 0.705078125, 0.65625, 0.5]
    assert rank.held.tolist() == [0.0, 0.080078125, 0.705078125, 0.0, 0.5]
    assert list(web.changed) == [2]
    web.changed.clear()
    web.fetch(2, [])  # a page without links keeps what it has
    assert rank.received.tolist() == [0.8203125, 0.705078125, 0.705078125, 0.65625, 0.5]
    assert rank.held[2] == 0.0
    assert not web.changed
    web.fetch(4, [2, 2, 4])
    assert rank.received.tolist() == [0.8203125, 0.705078125, 0.955078125, 0.65625, 0.5]
    assert rank.held.tolist() == [0.0, 0.080078125, 0.25, 0.0, 0.0]
    assert not web.changed


def test_a_page_without_links_changes_no_order() -> None:
    """The paper lets pages 1 and 2 link to all three: with 14.5/13 each, page 0 has 0.1 + 0.9 * (29/13) / 3 = 10/13. Here
    they keep 0.1 + 0.9 * 0.1 / 2 = 0.145, and page 0 has 0.1: 13/100 of each value.
    """
    web = pagerank_web()
    web.fetch(0, [1, 2])
    assert web.values().tolist() == pytest.approx([0.1, 0.145, 0.145])
    published = solve(np.array([0, 0]), np.array([1, 2]), is_page=np.ones(3, np.bool_))
    assert published == pytest.approx([10 / 13, 14.5 / 13, 14.5 / 13], abs=1e-6)


def random_order(rng: np.random.Generator, n: int) -> tuple[list[int], list[list[int]]]:
    """Return an order of pages, and links among them: repeated ones, links to itself, pages without links."""
    links = [rng.integers(0, n, rng.integers(0, 8)).tolist() * int(rng.integers(1, 3)) for _ in range(n)]
    return rng.permutation(n).tolist(), links


@pytest.mark.parametrize("seed", range(20))
def test_pagerank_is_that_of_the_whole_graph_whatever_the_order_of_pages(seed: int) -> None:
    rng = np.random.default_rng(seed)
    web, (order, links) = pagerank_web(), random_order(rng, 40)
    web.know(40)
    for page in order:
        web.fetch(page, links[page], outside=int(rng.integers(0, 3)))
    np.testing.assert_allclose(web.values(), solved(web), rtol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_pagerank_follows_pages_that_come_again_with_other_links_and_redirects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    web = pagerank_web()
    web.know(30)
    for _ in range(120):
        page = int(rng.integers(0, 30))
        if rng.random() < 0.15:
            web.join(page, int(rng.integers(0, 30)))
        else:
            web.fetch(page, rng.integers(0, 30, rng.integers(0, 6)).tolist(), int(rng.integers(0, 2)))
    np.testing.assert_allclose(web.values(), solved(web), rtol=1e-5)


def test_a_page_that_links_to_two_which_turn_out_to_be_one_passes_on_once_when_it_receives_more() -> None:
    web = pagerank_web()
    web.fetch(0, [1, 2, 3])
    web.fetch(3, [0, 4])
    web.join(1, 2)
    web.fetch(2, [3, 5])  # which 0 hears of by 3
    assert web.graph.n_links(0) == 2
    assert list(web.graph.links(0)) == [1, 3]
    exact = pagerank_web()
    for page, links in ((0, [1, 3]), (3, [0, 4]), (1, [3, 5])):
        exact.fetch(page, links)
    np.testing.assert_allclose(web.values()[[0, 1, 3, 4, 5]], exact.values()[[0, 1, 3, 4, 5]], rtol=1e-6)


def test_with_a_larger_epsilon_values_are_off_by_no_more_than_is_held() -> None:
    rng = np.random.default_rng(3)
    rough, exact = pagerank_web(epsilon=0.1), pagerank_web()
    order, links = random_order(rng, 200)
    for page in order:
        rough.fetch(page, links[page])
        exact.fetch(page, links[page])
    fetched = ~rough.graph.waiting()
    assert isinstance(rough.value, PageRank)
    assert (np.abs(np.array(rough.value.held)[fetched]) <= 0.1).all()
    missing = exact.values() - rough.values()
    assert 0 < missing.max() < 1
    assert missing.min() > -1e-6
    assert np.corrcoef(exact.values(), rough.values())[0, 1] > 0.99


def test_work_that_is_left_over_is_done_with_the_next_pages() -> None:
    rng = np.random.default_rng(4)
    slow, fast = pagerank_web(epsilon=1e-3, work=5), pagerank_web(epsilon=1e-3)
    order, links = random_order(rng, 60)
    for page in order:
        slow.fetch(page, links[page])
        fast.fetch(page, links[page])
    before = np.abs(slow.values() - fast.values()).max()
    assert before > 0.1
    for page in range(60, 3000):
        slow.fetch(page, [])
    assert np.abs(slow.values()[:60] - fast.values()).max() < 0.05


@pytest.mark.parametrize("seed", range(5))
def test_backlinks_are_counted_from_the_last_version_of_each_page(seed: int) -> None:
    rng = np.random.default_rng(seed)
    web, last = Web(Backlinks), {}
    web.know(20)
    for _ in range(60):
        page, links = int(rng.integers(0, 20)), rng.integers(0, 20, 5).tolist()
        web.fetch(page, links)
        last[page] = set(links) - {page}
    assert web.values().tolist() == [sum(page in links for links in last.values()) for page in range(20)]


def test_a_page_that_redirects_has_the_backlinks_of_both() -> None:
    web = Web(Backlinks)
    web.fetch(0, [1, 2])
    web.fetch(3, [2])
    web.join(1, 2)
    assert web.values().tolist() == [0.0, 3.0, 3.0, 0.0]
    web.fetch(4, [2, 1])
    assert web.values()[1] == 4.0


@pytest.mark.parametrize("seed", range(5))
def test_cash_is_neither_made_nor_lost_but_outside(seed: int) -> None:
    rng = np.random.default_rng(seed)
    web, (order, links) = Web(Cash), random_order(rng, 30)
    cash = web.value
    assert isinstance(cash, Cash)
    web.know(30)
    for page in range(3):
        cash.give(page)
    for page in order:
        web.fetch(page, links[page])
    assert sum(cash.cash) == pytest.approx(3)
    before = cash.of(order[0])
    web.fetch(order[0], [order[1]], outside=3)
    assert sum(cash.cash) == pytest.approx(3 - 0.75 * before)


def test_a_chain_of_redirects_that_ends_where_it_began_is_one_page() -> None:
    web = pagerank_web()
    web.fetch(30, range(20))
    for page in range(20):
        web.join(page, (page + 1) % 20)
    assert len({web.graph.page(page) for page in range(20)}) == 1
    assert web.values()[0] == pytest.approx(0.1 + 0.9 * 0.1)
    web.fetch(0, [30, 5, 30])
    assert list(web.graph.links(web.graph.page(7))) == [30]


@pytest.mark.parametrize("links", [list(range(1, 100_001)), [0] * 10_000, [0] * 10_000 + [1]], ids=len)
def test_a_page_with_very_many_links(links: Sequence[int]) -> None:
    web = pagerank_web(epsilon=0.1)
    web.fetch(0, links)
    others = set(links) - {0}
    assert sorted(web.graph.links(0)) == sorted(others)
    assert web.values().sum() == pytest.approx(0.1 * len(web.graph) + (0.09 if others else 0))


@pytest.mark.slow
def test_columns_take_no_more_than_is_promised() -> None:
    """At most 60 bytes a known page with its key and number, 20 of them for the policy, and 4 a link."""
    rng = np.random.default_rng(0)
    n, degree = 50_000, 6
    web = pagerank_web(epsilon=0.1)
    web.know(n)
    targets = rng.integers(0, n, (n, degree))
    for page, links in enumerate(targets.tolist()):
        web.fetch(page, links)
    assert isinstance(web.value, PageRank)
    columns = (web.graph.at, web.graph._links, web.value.received, web.value.held)
    taken = sum(column.__sizeof__() for column in columns)
    n_links = sum(len(list(web.graph.links(page))) for page in range(n))
    assert taken <= 1.13 * ((4 + 16 + 8) * n + 4 * n_links)
    assert taken <= 40 * n + 4 * 1.13 * n_links
