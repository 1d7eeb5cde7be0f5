"""The benchmark of the paper's graphs: which pages are hot, and the figures of a crawl that is worked out by hand."""

from __future__ import annotations

import numpy as np

from hot_queue import Web
from scrapy_focus.policies.orderings import BreadthFirst
from url_ordering import by_links, mean_table, measure, on_topic, query_orders, query_pages, similar, table, topic_pages

LINKS = [{1: "a", 2: "b"}, {0: "home", 3: "c"}, {3: "c"}, {4: "on cheese"}, {0: "home"}]
TEXTS = ["home", "cheese " * 11, "cheese " * 10, "red wine", "wine"]


def small_web() -> Web:
    """Return five pages; 0 and 3 have two back-links, the others one."""
    return Web([f"http://x/{i}" for i in range(5)], ["Home", "A", "B", "C", "On cheese"], TEXTS, LINKS)


def test_hot_pages_by_links_and_by_topic() -> None:
    """Eleven times are hot, and a word in a title; ten times are not. Nothing has five back-links here."""
    hot, popular = on_topic(small_web(), "cheese")
    assert hot.name == "cheese (100 % with one back-link)"
    assert np.flatnonzero(hot.pages).tolist() == [1, 4]
    assert not popular.pages.any()
    assert not list(by_links(small_web()))
    star = Web([f"http://x/{i}" for i in range(101)], [""] * 101, [""] * 101, [{1: "a"}, *[{0: "home"}] * 100])
    assert [(kind.name, np.flatnonzero(kind.pages).tolist()) for kind in by_links(star)] == [
        ("IB >= 100", [0]), ("IB >= 5", [0]), ("IR >= 13", [0, 1]),
    ]  # fmt: skip


def test_hot_pages_by_similarity() -> None:
    """*Red* occurs once and *wine* twice, so page 3 has 1 + 1/4, and page 4 has 1/4; without idf 2 and 1."""
    for kind in similar(small_web(), "red wine"):
        assert np.flatnonzero(kind.pages).tolist() == [3]
    pages = query_pages(small_web(), "red wine")
    assert [page.text.count("wine") for page in pages] == [0, 0, 0, 1, 1]
    assert query_orders("red wine")["similarity"]().query == "red wine"


def test_figures_of_a_crawl_by_hand() -> None:
    """Breadth-first takes 0, 1, 2, 3, 4: pages 1 and 4 are hot. A random order has 20, 40, ... %, more at first."""
    web = small_web()
    hot = list(on_topic(web, "cheese"))[:1]
    found = measure(web, hot, {"BFS": BreadthFirst}, topic_pages(web, "cheese"), starts=1, marks=(40, 60, 100))
    [[[run]]] = found.values()
    assert run.tolist() == [50, 50, 100, 60]  # below the diagonal after pages 1, 3 and 4
    assert table(found, hot).splitlines()[-1] == "| BFS | 50 50 100 [50-50; 60] |"
    assert mean_table([found, found]) == "| BFS | 50 ± 0 50 ± 0 100 ± 0 |"
