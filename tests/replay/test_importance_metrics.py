"""Important pages first: the measures of Cho et al. against numbers worked out by hand, and against their definitions."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_focus.core.errors import ConfigError, RecordingError
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.writer import Answer, SiteWriter
from scrapy_focus.lab.replay.importance_metrics import (
    at_random,
    backlinks,
    crawl_and_stop,
    crawl_and_stop_with_threshold,
    ideal_with_threshold,
    limited_buffer,
    pagerank,
    similarity,
)

if TYPE_CHECKING:
    from pathlib import Path

IMPORTANCE = [5.0, 1.0, 3.0, 4.0]
ORDER = [0, 2, 1, 3]


def test_crawl_and_stop() -> None:
    """Of the most important 1, 2, 3 and 4 pages, this order has visited 1, 1, 2 and 4."""
    assert crawl_and_stop(ORDER, IMPORTANCE) == pytest.approx([100, 50, 200 / 3, 100])


def test_crawl_and_stop_with_equals() -> None:
    """Pages as important as the K-th are hot too: three share the second place."""
    assert crawl_and_stop([1, 2, 3, 0], [9.0, 3.0, 3.0, 3.0]) == pytest.approx([0, 100, 100, 100])


def test_crawl_and_stop_with_threshold() -> None:
    """Two pages are hot from 4 on; the first and the last of this order."""
    assert crawl_and_stop_with_threshold(ORDER, IMPORTANCE, 4).tolist() == [50, 50, 50, 100]
    assert crawl_and_stop_with_threshold(ORDER, IMPORTANCE, 6).tolist() == [100] * 4


def test_limited_buffer() -> None:
    """Of two places, one holds a hot page; which one stays depends on the crawl's estimates."""
    assert limited_buffer([0, 2, 1], IMPORTANCE, 2) == 50
    assert limited_buffer([0, 2, 1], IMPORTANCE, 2, threshold=3) == 100
    assert limited_buffer([0, 2, 1], IMPORTANCE, 2, estimates=[0.0, 1.0, 2.0, 3.0]) == 0
    assert limited_buffer([0], IMPORTANCE, 4) == 25
    for size in (0, 5):
        with pytest.raises(ConfigError, match=f"buffer of {size} pages"):
            limited_buffer([0], IMPORTANCE, size)
    with pytest.raises(ConfigError, match="1 estimates and 4 pages"):
        limited_buffer([0], IMPORTANCE, 2, estimates=[1.0])


def test_references() -> None:
    """Random orders gain 100 / T with each page, the ideal 100 / H until all hot pages are visited."""
    assert at_random(np.arange(1, 5), 4).tolist() == [25, 50, 75, 100]
    assert ideal_with_threshold(np.arange(1, 5), 2).tolist() == [50, 100, 100, 100]
    assert ideal_with_threshold(1, 0) == 100


@pytest.mark.parametrize("order", [[0, 4], [-1, 0], [0, 0]])
def test_an_order_visits_pages_that_are_there_once(order: list[int]) -> None:
    """Other numbers, and second visits, are refused."""
    with pytest.raises(ConfigError, match="the order"):
        crawl_and_stop(order, IMPORTANCE)


@st.composite
def orders(draw: st.DrawFn) -> tuple[list[int], list[float]]:
    """Some pages in some order, and the importance of all, where equals are frequent."""
    importance = draw(st.lists(st.integers(0, 6).map(float), min_size=1, max_size=12))
    order = draw(st.permutations(range(len(importance))))
    return order[: draw(st.integers(1, len(order)))], importance


@given(orders())
def test_crawl_and_stop_is_its_definition(given_order: tuple[list[int], list[float]]) -> None:
    """The curve made with one sort is the one counted page by page; it ends at 100 if all is visited."""
    order, importance = given_order
    ranked = sorted(importance, reverse=True)
    expected = [
        100 * sum(importance[page] >= ranked[k - 1] for page in order[:k]) / k for k in range(1, len(order) + 1)
    ]
    found = crawl_and_stop(order, importance)
    assert found == pytest.approx(expected)
    if len(order) == len(importance):
        assert found[-1] == 100


@given(orders())
def test_the_ideal_order_is_ideal(given_order: tuple[list[int], list[float]]) -> None:
    """The most important first is 100 everywhere, and reaches the ideal for thresholds and buffers."""
    _, importance = given_order
    order = sorted(range(len(importance)), key=lambda page: -importance[page])
    assert (crawl_and_stop(order, importance) == 100).all()
    n_hot = sum(value >= 3 for value in importance)
    visited = np.arange(1, len(order) + 1)
    assert crawl_and_stop_with_threshold(order, importance, 3) == pytest.approx(ideal_with_threshold(visited, n_hot))
    for size in visited.tolist():
        assert limited_buffer(order[:size], importance, size) == 100


@given(orders(), st.data())
def test_a_limited_buffer_evicts(given_order: tuple[list[int], list[float]], data: st.DataObject) -> None:
    """What is left is what a buffer holds that lets go of a page whenever it is full, one after the other."""
    order, importance = given_order
    size = data.draw(st.integers(1, len(importance)))
    estimates = data.draw(st.permutations(importance))
    buffer: list[tuple[float, int, int]] = []
    for position, page in enumerate(order):
        heapq.heappush(buffer, (estimates[page], -position, page))
        if len(buffer) > size:
            heapq.heappop(buffer)
    hot = sorted(importance, reverse=True)[size - 1]
    expected = 100 * sum(importance[page] >= hot for _, _, page in buffer) / size
    assert limited_buffer(order, importance, size, estimates=estimates) == pytest.approx(expected)


def test_random_orders_have_the_expected_value() -> None:
    """The mean of all orders of four different pages is the reference."""
    rng = np.random.default_rng(0)
    curves = [crawl_and_stop(rng.permutation(4), IMPORTANCE) for _ in range(4000)]
    assert np.mean(curves, axis=0) == pytest.approx(at_random(np.arange(1, 5), 4), abs=2)


# Importance on a recorded site

ROOT = "https://site.example/"
HTML = {"Content-Type": "text/html"}


def record(path: Path, pages: dict[str, str | int], *, bodies: bool = False) -> RecordedSite:
    """Record pages: what they link to, separated by blanks; ``> x`` redirects to x; a number is a failing status."""
    with SiteWriter(path / "site.sqlite", roots=[ROOT], bodies=bodies) as writer:
        for name, links in pages.items():
            url = ROOT + name
            if isinstance(links, int):
                writer.add(Answer(url=url, status=links, headers=HTML))
            elif links.startswith("> "):
                writer.add(Answer(url=url, status=302, headers={"Location": ROOT + links[2:]}))
            else:
                body = "".join(f'<p><a href="/{link}">{link}</a></p>' for link in links.split())
                writer.add(Answer(url=url, status=200, headers=HTML, body=f"<html><body>{body}</body></html>".encode()))
        writer.finish()
    return RecordedSite(path / "site.sqlite")


def by_name(site: RecordedSite, values: np.ndarray) -> dict[str, float]:
    return {url.removeprefix(ROOT): value for url, value in zip(site.urls, values.tolist(), strict=True)}


def test_backlinks(tmp_path: Path) -> None:
    """Pages that link are counted once; links to itself, dead links and unknown pages are not, redirects lead on."""
    site = record(
        tmp_path,
        {"": "a b b dead old", "a": "b a", "b": "older never", "old": "> b", "older": "> oldest", "oldest": "> a",
         "dead": 404, "loop": "> pool", "pool": "> loop"},
    )  # fmt: skip
    expected = {"": 0, "a": 2, "b": 2, "dead": 0, "old": 0, "older": 0, "never": 0, "oldest": 0, "loop": 0, "pool": 0}
    assert by_name(site, backlinks(site)) == expected


def test_pagerank_by_hand(tmp_path: Path) -> None:
    """A links to B, and B to nothing, so to both: A = 0.1 + 0.45 B and A + B = 2 give A = 1 / 1.45."""
    site = record(tmp_path, {"": "b dead", "b": "", "dead": 500})
    ranks = by_name(site, pagerank(site))
    assert ranks == pytest.approx({"": 1 / 1.45, "b": 2 - 1 / 1.45, "dead": 0}, abs=1e-7)


def test_pagerank_solves_the_equations(tmp_path: Path) -> None:
    """On a site with a hub, a cycle, a dead end and a redirect, it is the solution of the linear equations; mean 1."""
    site = record(tmp_path, {"": "a b c", "a": "b", "b": "c old", "c": "", "old": "> a"})
    votes = np.zeros((4, 4))
    for source, targets in enumerate([(1, 2, 3), (2,), (3, 1), (0, 1, 2, 3)]):
        votes[list(targets), source] = 1 / len(targets)
    for damping in (0.0, 0.5, 0.9):
        solved = np.linalg.solve(np.eye(4) - damping * votes, np.full(4, 1 - damping))
        ranks = by_name(site, pagerank(site, damping=damping))
        assert [ranks[name] for name in ("", "a", "b", "c")] == pytest.approx(solved.tolist(), abs=1e-7)
        assert sum(ranks.values()) == pytest.approx(4)
        assert ranks["old"] == 0


@pytest.mark.parametrize("bad", [{"damping": 1.0}, {"damping": -0.1}, {"tolerance": 0.0}])
def test_pagerank_refuses_what_does_not_converge(tmp_path: Path, bad: dict[str, float]) -> None:
    """A damping of 1 or a tolerance of 0 would never end."""
    with pytest.raises(ConfigError, match="damping must be in"):
        pagerank(record(tmp_path, {"": ""}), **bad)


def test_similarity_by_hand(tmp_path: Path) -> None:
    """Of the words of three pages, *red* occurs 2 times and *wine* 3 times: idf 1/2 and 1/3. The query has the vector
    (1/2, 1/3), and the pages have (1/2, 1/3), (0, 2/3) and (1/2, 0).
    """
    pages = {"": "red wine beer", "red": "wine wine", "wine": "red", "beer": 404, "old": "> red"}
    site = record(tmp_path, pages, bodies=True)
    values = by_name(site, similarity(site, "Red wine"))
    assert values == pytest.approx({"": 1 / 4 + 1 / 9, "red": 2 / 9, "wine": 1 / 4, "beer": 0, "old": 0})
    values = by_name(site, similarity(site, "Red wine", idf=False))
    assert values == {"": 2, "red": 2, "wine": 1, "beer": 0, "old": 0}
    assert similarity(site, "nowhere").tolist() == [0] * 5
    with pytest.raises(ConfigError, match="the query '' has no word"):
        similarity(site, "")
    (tmp_path / "short").mkdir()
    with pytest.raises(RecordingError, match="record the site again with --bodies"):
        similarity(record(tmp_path / "short", pages), "red")


def test_a_site_without_links(tmp_path: Path) -> None:
    """A single page has the mean PageRank 1 and no back-links; a site that answered nothing has no page."""
    site = record(tmp_path, {"": ""})
    assert pagerank(site).tolist() == [1]
    assert backlinks(site).tolist() == [0]
    (tmp_path / "empty").mkdir()
    site = record(tmp_path / "empty", {})
    assert pagerank(site).tolist() == backlinks(site).tolist() == [0]
