"""The graph of the synthetic news site: a small world if it is to be one, and rewired with the same degrees."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import news_graph
from scrapy_focus.lab.sites.news.html import _WORDS
from scrapy_focus.lab.sites.news.plan import BEGIN, DAY, Manner, Plan
from scrapy_focus.lab.sites.news.site import NewsSite

pytestmark = pytest.mark.slow

SMALL = {"sections": 6, "topics": 30, "archive": 300, "far": True}


def manner(**other: Any) -> Manner:
    """Return that of a small site."""
    return Manner(**{**SMALL, **other})


def related(plan: Plan) -> list[tuple[int, ...]]:
    """Return the articles that each article links to."""
    return [plan.related(article) for article in range(len(plan))]


@pytest.mark.parametrize("small_world", [True, False])
def test_rewired_articles_have_as_many_links(small_world: bool) -> None:
    """To others and from others, each once; all lead to earlier articles, and hardly one to where it led before."""
    plain = related(Plan(manner(small_world=small_world), days=2.0))
    plan = Plan(manner(small_world=small_world, rewired=True), days=2.0)
    rewired = related(plan)
    assert rewired == related(Plan(manner(small_world=small_world, rewired=True), days=2.0)), "the same each time"
    assert [len(each) for each in rewired] == [len(each) for each in plain]
    assert Counter(chain(*rewired)) == Counter(chain(*plain))
    assert all(len({*each}) == len(each) for each in rewired)
    assert all(plan.born[other] <= plan.born[article] for article, each in enumerate(rewired) for other in each)
    kept = sum(len({*one} & {*other}) for one, other in zip(plain, rewired, strict=True))
    assert kept < 0.15 * sum(map(len, plain))


def test_small_worlds_have_power_laws() -> None:
    """Most articles link to one or two, few to dozens; few are linked from dozens; a fifth at most leads to a list."""
    plan = Plan(manner(small_world=True, archive=5000, topics=400), days=2.0)
    links = related(plan)[500:]  # the first have few to link to
    degrees = np.array([len(each) for each in links])
    assert 0.4 < (degrees <= 2).mean() < 0.7
    assert 0.01 < (degrees >= 20).mean() < 0.15
    linked = Counter(chain(*links))
    assert max(linked.values()) > 100
    assert np.median([linked[article] for article in range(len(plan))]) <= 4
    assert 0.05 < plan.leads_up.mean() < 0.2
    assert Plan(manner()).leads_up.all()


def test_rewiring_takes_clusters_away_and_leaves_the_rest() -> None:
    """Paths are longer than on the site as it is by default, and three times as many neighbours are linked."""
    default, small, rewired = (
        news_graph.figures(
            news_graph.graph(NewsSite(manner(archive=1000, topics=60, **kind), days=1.0), BEGIN + 0.5 * DAY)
        )
        for kind in ({}, {"small_world": True}, {"small_world": True, "rewired": True})
    )
    assert small.clustering > 3 * rewired.clustering
    assert default.clustering > 3 * small.clustering
    assert small.path > 1.3 * default.path
    assert abs(small.links / rewired.links - 1) < 0.03
    assert abs(small.out - rewired.out) < 0.1
    assert abs(small.into - rewired.into) < 0.2


@pytest.mark.parametrize("kind", [{}, {"rewired": True}, {"far": False}])
def test_small_worlds_list_what_is_new(kind: Any) -> None:
    """Rewiring changes no list: readers of the lists find each new article at once, and few others are unreachable."""
    site = NewsSite(manner(small_world=True, **kind), days=1.0)
    at = BEGIN + 0.5 * DAY
    for article in site.born(BEGIN, at)[::20]:
        lists = [path for path in site.hubs() if article.path in site.answer(path, article.at).body.decode()]
        assert any(path.startswith("/s/") for path in lists)
        assert not any(article.path in site.answer(path, article.at - 1).body.decode() for path in lists)
    linked = news_graph.graph(site, at).shape[0]
    assert linked > 0.85 * len(site.plan.born_within(0, at))
    assert site.answer("/archive/", at).status == 404
    assert not any(path.startswith("/archive") for path, _ in site._histories())


def test_what_is_measured_is_right() -> None:
    """By hand: two triangles that share a page, in a circle of clicks; and degrees that follow a power law."""
    links = csr_array((np.ones(6), ([0, 1, 2, 2, 3, 4], [1, 2, 0, 3, 4, 2])), shape=(5, 5))
    assert news_graph.clustering(links) == pytest.approx((4 + 2 / 6) / 5)
    assert news_graph.path_length(links, np.random.default_rng(0)) == pytest.approx(2.1)
    degrees = np.random.default_rng(0).zipf(2.5, 200_000).astype(float)
    assert news_graph.exponent(degrees[degrees < 1000]) == pytest.approx(2.5, abs=0.25)


def test_the_ends_of_links_are_permuted() -> None:
    """Each page keeps its number of links from it and to it; what coincides or leads to itself is one or none."""
    links = news_graph.between(np.arange(40).repeat(2), (np.arange(40)[:, None] + [1, 7]).ravel() % 40, 40)
    found = news_graph.permuted(links, np.random.default_rng(0))
    assert (links != found).nnz
    assert links.nnz - 10 <= found.nnz <= links.nnz == 80
    assert found.sum(axis=1).max() == found.sum(axis=0).max() == 2
    twice = news_graph.between(np.array([0, 0, 1, 1]), np.array([1, 1, 1, 0]), 2)
    assert twice.toarray().tolist() == [[0, 1], [1, 0]]


def test_topical_articles_use_the_words_of_their_topics() -> None:
    """In text and title: two of one topic share more words than two of different sections."""
    site = NewsSite(manner(topical=True, topics=8), days=1.0)
    topics = [same.tolist() for same in site.plan.of_topic]

    def words(article: int) -> Counter[str]:
        text = site._html.article(article, BEGIN).partition("<aside")[0]
        return Counter(word for word in re.findall("[a-z]+", text) if word in _WORDS)

    def alike(one: int, other: int) -> float:
        a, b = words(one), words(other)
        return sum(min(a[word], b[word]) for word in a) / min(sum(a.values()), sum(b.values()))

    pairs = [(same[i], same[i + 1]) for same in topics for i in range(0, 20, 2)]
    others = [(one[i], other[i]) for one, other in pairwise(topics) for i in range(10)]
    assert np.mean([alike(*pair) for pair in pairs]) > 1.3 * np.mean([alike(*pair) for pair in others])
    titles = [{*path.rpartition("/")[2].split("-")[:3:2]} for path in map(site._html.path, topics[0])]
    assert len(set.union(*titles)) <= 10


def test_it_prints_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the published values for comparison."""
    monkeypatch.setitem(news_graph.SITES, "small", manner(small_world=True, archive=200))
    news_graph.main(["--sites", "small"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[2].startswith("| the Web |")
    assert re.fullmatch(r"\| small \| \d{3} \| \d,\d{3} (\| \d\.\d\d ){2}\| 0\.\d{3} \| \d\.\d\d \|", lines[-1])
    assert {line.count("|") for line in lines} == {8}
