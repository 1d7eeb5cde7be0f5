"""The orders of the simplest policies."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from scrapy_focus import Bandit, ConfigError, Crawl, Link, Ordering, Policy, PolicyError, memory_frontier
from scrapy_focus.policies.bases import best_arm
from scrapy_focus.policies.orderings import BreadthFirst, DepthFirst, KeywordFirst, Random
from tests.made import fetch, link, links

TREE = {1: [2, 3], 2: [4, 5], 3: [6], 4: [7]}


def order(policy: Policy, seed: int = 0) -> list[int]:
    """Return the order of fetches of a small tree."""
    crawl = Crawl(policy, frontier=memory_frontier, seed=seed, strict=True)
    crawl.add(links(1))
    fetched = []
    while (pick := crawl.next()) is not None:
        crawl.release(pick.id)
        fetched.append(fetch(crawl, *links(*TREE.get(pick.key, []))).key)
    return fetched


def test_breadth_first() -> None:
    """Links leave in the order of discovery."""
    assert order(BreadthFirst()) == [1, 2, 3, 4, 5, 6, 7]


def test_depth_first() -> None:
    """The first link of the page fetched last is next."""
    assert order(DepthFirst()) == [1, 2, 4, 7, 5, 3, 6]


def test_depth_first_as_a_plain_stack() -> None:
    """The last link of the page fetched last is next."""
    assert order(DepthFirst(last_first=True)) == [1, 3, 6, 2, 5, 4, 7]


def urls_in_order(policy: Policy, *paths: str) -> list[str]:
    """Return the paths in the order in which a policy fetches them."""
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add([Link(f"http://a.test{path}", key) for key, path in enumerate(paths)])
    return [fetch(crawl).url.removeprefix("http://a.test") for _ in paths]


def test_most_keywords_first() -> None:
    """The URL with the most of the words is first, in any case; among equals the one found first."""
    found = urls_in_order(KeywordFirst(), "/about", "/news", "/x.PDF", "/data/x.csv", "/data/", "/Download/Data/y.xls")
    assert found == ["/Download/Data/y.xls", "/data/x.csv", "/x.PDF", "/data/", "/about", "/news"]


def test_a_keyword_counts_once() -> None:
    """A word counts once in a URL, however often it occurs there and in the list."""
    assert urls_in_order(KeywordFirst(words=["A1", "a1", "b2"]), "/a1/a1", "/b2", "/c", "/b2/a1") == [
        "/b2/a1", "/a1/a1", "/b2", "/c",
    ]  # fmt: skip


def test_other_keywords_replace_the_known_ones() -> None:
    """With words of its own a policy knows no others."""
    assert urls_in_order(KeywordFirst(words=["news"]), "/x.pdf", "/news") == ["/news", "/x.pdf"]


def test_keywords_explain_a_choice() -> None:
    """The reason names the words that the URL contains, and their share of all."""
    crawl = Crawl(KeywordFirst(words=["csv", "data"]), frontier=memory_frontier, strict=True)
    crawl.add([Link("http://a.test/about", 1), Link("http://a.test/x.csv", 2)])
    reasons = [crawl.policy.explain(fetch(crawl)) for _ in range(2)]
    assert [reason.parts[-1].numbers for reason in reasons] == [
        {"words": ["csv"], "score": 0.5}, {"words": [], "score": 0.0},
    ]  # fmt: skip


@pytest.mark.parametrize("words", [[], [""], ["csv", " "], "csv", [1]])
def test_keywords_have_to_be_words(words: object) -> None:
    """An empty list, an empty word, a text and a number are refused with the name of the parameter."""
    with pytest.raises(ConfigError, match="words"):
        KeywordFirst(words=words)


def test_random_is_uniform() -> None:
    """Each queued link is chosen first equally often, with the chance that the pick states."""
    firsts: Counter[int] = Counter()
    for seed in range(1500):
        crawl = Crawl(Random(), frontier=memory_frontier, seed=seed, strict=True)
        crawl.add([*links(1, 2, 3), link(4, host="busy")])
        pick = crawl.next({"busy"})
        assert pick.chance == pytest.approx(1 / 3)
        firsts[pick.key] += 1
    assert sorted(firsts) == [1, 2, 3]
    assert chisquare(list(firsts.values())).pvalue > 0.01


def test_an_ordering_of_ones_own() -> None:
    """Who supplies a rank has a policy; the rank may read the outcome of the page."""

    class EarnedFirst(Ordering):
        def rank(self, link, source):
            return (source.reward if source else 0) - link.key / 100

    crawl = Crawl(EarnedFirst(), frontier=memory_frontier, strict=True)
    crawl.add(links(1, 2, 3))
    fetch(crawl, link(8))
    fetch(crawl, link(9), items=1)
    assert [fetch(crawl).key for _ in range(3)] == [9, 3, 8]


class Hosts(Bandit):
    """An arm for each host, with custom scores."""

    def __init__(self, values=(1.0, 3.0, 3.0, 0.5)) -> None:
        self.values = values

    def arm(self, link):
        return "abcd".index(link.host)

    def scores(self):
        return np.array(self.values)


def test_a_bandit_of_ones_own() -> None:
    """The arm with the best score comes first, the smaller of equals; sleeping and busy arms are passed over."""
    crawl = Crawl(Hosts(), frontier=memory_frontier, strict=True)
    crawl.add([link(i, host=host) for i, host in enumerate("abcabcd")])
    busy_b = crawl.next({"b"})
    assert busy_b.host == "c"
    crawl.release(busy_b.id)
    assert "".join(fetch(crawl).host for _ in range(7)) == "bbccaad"
    assert crawl.next() is None
    crawl.add([link(9, host="b")])
    assert crawl.next({"b"}) is None


def test_an_arm_scored_minus_infinity_comes_last() -> None:
    """Arms with -inf are taken when no other is awake, not lost; scores beyond the arms that exist do not matter."""
    assert best_arm(np.array([-math.inf, 1.0, 0.5]), np.array([3, 0, 2])) == 2
    assert best_arm(np.array([-math.inf, 1.0]), np.array([3, 0])) == 0
    assert best_arm(np.array([0.5, -math.inf, -math.inf]), np.array([0, 1, 2])) == 1
    assert best_arm(np.array([0.5, -7.0, 9.0]), np.array([0, 1])) == 1


def test_an_awake_arm_beyond_the_scores_is_an_error() -> None:
    """Links in arms that got no score would never be chosen; where such arms sleep, all is well."""
    for scores, awake in (([-math.inf, 1.0], [3, 0, 2]), ([0.5], [0, 0, 2]), ([], [0, 1])):
        with pytest.raises(PolicyError, match=f"gave {len(scores)} scores, and links are queued in {len(awake)} arms"):
            best_arm(np.array(scores), np.array(awake))
    assert best_arm(np.array([0.5, 0.7]), np.array([1, 1, 0])) == 1


def test_a_bandit_chooses_uniformly_within_an_arm() -> None:
    """Unless it says otherwise, each link of an arm leaves first equally often."""
    firsts: Counter[int] = Counter()
    for seed in range(900):
        crawl = Crawl(Hosts(), frontier=memory_frontier, seed=seed, strict=True)
        crawl.add(links(1, 2, 3, host="a"))
        firsts[crawl.next().key] += 1
    assert chisquare([firsts[key] for key in (1, 2, 3)]).pvalue > 0.01
