"""Importance first: what leaves next is what the pages so far speak for, and a crawl that was killed does not notice."""

from __future__ import annotations

import random
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from scrapy_focus import ConfigError, Crawl, HotQueue, Importance, Job, Link, Mission, State, memory_frontier
from scrapy_focus.lab.checks.policy import check_policy
from scrapy_focus.learn.linkgraph import LinkGraph
from scrapy_focus.policies.importance import ORDERS, Said, Scale, location
from scrapy_focus.policies.orderings import BreadthFirst
from tests.made import Clock, failure, fetch, link, links, page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from scrapy_focus import Policy

SUM = {"pagerank": 1, "location": 0.5, "breadth": 0.1}
SIMILAR = {"similarity": 1, "pagerank": 0.5}
SAID = ("", "red wine", "wine", "red")  # anchors by the number of a page, and its text
SIMPLER = (partial(Importance, epsilon=0.01), partial(Importance, by="backlinks"), partial(Importance, by="opic"))


def crawl_of(policy: Policy, *seeds: int, **options: Any) -> Crawl:
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True, clock=Clock(), **options)
    crawl.add(links(*seeds))
    return crawl


def order_of(crawl: Crawl, web: Mapping[int, Sequence[int]], n: int = 10**6) -> list[int]:
    """Crawl a web, or so many pages of it, and return the order of its pages."""
    order = []
    while len(order) < n and (pick := crawl.next()) is not None:
        assert crawl.sent(pick.id)
        found = [link(key, anchor=SAID[key % len(SAID)]) for key in web.get(pick.key, ())]
        crawl.report(page(pick, page=Html("", SAID[pick.key % len(SAID)] * (pick.key % 7))), found)
        order.append(pick.key)
    return order


def made_web(seed: int, n: int = 400) -> dict[int, list[int]]:
    """Return a web where a few pages have most links to them; everything is reached from page 1."""
    rng = random.Random(seed)
    web = {number: [1 + int(n * rng.random() ** 3) for _ in range(rng.randrange(9))] for number in range(1, n + 1)}
    for number in range(1, n):
        web[number].append(number + 1)
    return web


def exact_pagerank(web: Mapping[int, Sequence[int]], n: int) -> np.ndarray[Any, Any]:
    """Return the PageRank of pages 1 to n, where pages without links keep what they have."""
    passes = np.zeros((n, n))
    for number, targets in web.items():
        different = set(targets) - {number}
        for target in different:
            passes[target - 1, number - 1] = 1 / len(different)
    return np.linalg.solve(np.eye(n) - 0.9 * passes, np.full(n, 0.1))


def test_the_next_page_is_the_one_with_the_largest_pagerank_of_what_was_seen() -> None:
    """After every page, as if PageRank were worked out anew."""
    web = made_web(3, 80)
    crawl, seen = crawl_of(Importance(epsilon=1e-9), 1), {}
    while (pick := crawl.next()) is not None:
        waiting = [link.key - 1 for link, _ in crawl.frontier.scan(0)]
        exact = exact_pagerank(seen, 80)
        assert exact[pick.key - 1] >= max(exact[waiting], default=0.0) - 1e-6
        assert crawl.sent(pick.id)
        crawl.report(page(pick), links(*web[pick.key]))
        seen[pick.key] = web[pick.key]
    assert len(seen) == 80


def test_backlinks_count_pages_and_equal_ones_leave_in_the_order_in_which_they_were_found() -> None:
    web = {1: [2, 3, 4], 2: [5, 5, 5, 5, 6], 3: [6], 4: [7]}
    assert order_of(crawl_of(Importance(by="backlinks"), 1), web) == [1, 2, 3, 6, 4, 5, 7]


def test_cash_is_shared_out() -> None:
    """2 has a half, 3 and 4 what is left of the other half: 5 gets all of it from 2."""
    web = {1: [2, 3], 2: [5], 3: [4, 6]}
    crawl = crawl_of(Importance(by="opic"), 1)
    assert order_of(crawl, web, 2) == [1, 2]
    assert order_of(crawl, web) == [3, 5, 4, 6]


def test_breadth_is_breadth_first() -> None:
    web = made_web(0)
    assert order_of(crawl_of(Importance(by="breadth"), 1), web) == order_of(crawl_of(BreadthFirst(), 1), web)


def test_location_reads_the_url_alone() -> None:
    urls = ["http://a.test/x/y/z", "http://a.test/x/home", "http://a.test/x", "http://a.gov/x/y/z"]
    crawl = Crawl(
        Importance(by="location", url_suffixes=[".gov"], url_words=["home"]), frontier=memory_frontier, seed=0
    )  # fmt: skip
    crawl.add([Link(url, key) for key, url in enumerate(urls)])
    assert [crawl.next().key for _ in urls] == [1, 2, 3, 0]
    assert location("http://a.test/x/y/", words=["why"]) == -1.0
    assert location("http://gov.test/x", suffixes=["gov"]) == 0.0


def test_a_page_of_the_paper_that_back_links_delay() -> None:
    """Figure 3: page 2 leads to a cluster of four pages that link to each other, page 3 to page 8 alone.

    After three pages, page 8 has 0.1 + 0.9 * 0.145 = 0.2305 and the cluster 0.1 + 0.9 * 0.145 / 4 = 0.132625 each,
    from 0.1 + 0.9 * 0.1 / 2 = 0.145 of pages 2 and 3. All have one back-link, and the cluster was found first.
    """
    web = {1: [2, 3], 2: [4, 5, 6, 7], 3: [8], 4: [5, 6, 7], 5: [4, 6, 7], 6: [4, 5, 7], 7: [4, 5, 6]}
    assert order_of(crawl_of(Importance(by="backlinks"), 1), web) == [1, 2, 3, 4, 5, 6, 7, 8]
    policy = Importance()
    crawl = crawl_of(policy, 1)
    assert order_of(crawl, web, 3) == [1, 2, 3]
    assert policy.values([8, 4, 7]).tolist() == pytest.approx([0.2305, 0.132625, 0.132625])
    assert order_of(crawl, web) == [8, 4, 5, 6, 7]


def test_a_sum_adds_the_places_among_queued_pages() -> None:
    """Of eight queued pages, those in the middle have the place 1/2 by the first order, weight 1. By the second, weight
    0.5, all are equal: 1/2, too. The fetched page does not count.
    """
    graph, changed = LinkGraph(), {}
    said, same = Said(graph, changed), Said(graph, changed)
    scale = Scale({"said": 1.0, "same": 0.5}, {"said": said, "same": same})
    for value in (100, 1, 2, 2, 2, 2, 2, 2, 3):
        page = graph.add()
        for each in (said, same, scale):
            each.add()
        said.say(page, value)
        same.say(page, 7)
    graph.connect(0, [])
    scale.sweep(graph, changed)
    assert [scale.rank(page) for page in (0, 2, 7)] == [1.25, 0.75, 0.75]
    assert 0.25 < scale.rank(1) < 0.5
    assert 1 < scale.rank(8) < 1.25


def test_a_sum_follows_values_that_change_when_all_pages_are_known() -> None:
    """Page 2 links to most pages, and each page after it to page 99, which so comes before the others."""
    web = {1: range(2, 101), 2: range(30, 101), **{page: [99] for page in range(30, 60)}}
    assert 99 in order_of(crawl_of(Importance(by={"backlinks": 1, "breadth": 1e-6}), 1), web, 15)


def test_similar_links_come_first_and_rare_words_weigh_more() -> None:
    """By its link, page 2 has *wine*, 3 *wine* twice, 4 *red*, and 5 *red* in its URL; page 1 has *wine* three times
    and *red* once, so their weights are 1/9 and 1. Page 5 has *red* twice, so that *red* falls to 1/9, too.
    """
    policy = Importance(by="similarity", query="red wine")
    crawl = crawl_of(policy, 1)
    pick = crawl.next()
    found = [link(6), link(2, anchor="Wine"), link(3, anchor="wine, wine"), link(4, anchor="RED")]
    crawl.report(page(pick, page=Html("Wine", "wine, wine and red")), [*found, link(5, url="http://h/red/5")])
    assert policy.values([1, 6, 2, 3, 4, 5]).tolist() == pytest.approx([1 + 3 / 9, 0, 1 / 9, 2 / 9, 1, 1])
    assert policy.explain(crawl.next())["similarity"] == 1
    pick = crawl.next()
    assert pick.key == 5
    crawl.report(page(pick, page=Html("", "red red")))
    assert policy.values([2, 3]).tolist() == pytest.approx([1 / 9, 2 / 9])
    assert [crawl.next().key for _ in range(3)] == [3, 2, 6]


def test_a_query_is_the_words_of_the_hot_queue_or_of_the_mission() -> None:
    """Unless one is given. Without any, it cannot start, and says what to set."""
    mission = Mission(words=("red wine", "cheese"))
    made = [Importance(by=SIMILAR), HotQueue(base="similarity"), HotQueue(base="similarity", words=["beer"]),
            HotQueue(base="similarity", words=["beer"], query="ale")]  # fmt: skip
    for policy in made:
        crawl_of(policy, 1, mission=mission)
    words = [policy._similarity.query.words for policy in made]
    assert words == [["cheese", "red", "wine"], ["cheese", "red", "wine"], ["beer"], ["ale"]]
    with pytest.raises(ConfigError, match="has none: give it query, or set FOCUS_KEYWORDS") as caught:
        crawl_of(Importance(by="similarity"), 1)
    assert "\n" not in str(caught.value)


def test_pages_are_read_where_they_are_compared_with_a_query() -> None:
    """Only there are links located on their pages, and texts sent from one machine to another."""
    read = [
        (policy.reads_page, policy.reads_outcome) for policy in (Importance(), Importance(by=SIMILAR, query="page"))
    ]
    assert read == [(False, False), (True, True)]


@pytest.mark.few(2)
@pytest.mark.parametrize("by", [*ORDERS, SUM], ids=str)
def test_promises_are_kept_by_every_order(by: Any) -> None:
    check_policy(partial(Importance, by=by, query="page"))
    check_policy(partial(HotQueue, words=["page"], base=by, max_distance=2))


@pytest.mark.parametrize(("epsilon", "least"), [(0.1, 0.97), (0.001, 0.9999)])
def test_at_the_end_the_values_are_the_pagerank_of_the_web(epsilon: float, least: float) -> None:
    web, policy = made_web(1), Importance(epsilon=epsilon)
    order_of(crawl_of(policy, 1), web)
    exact = exact_pagerank(web, len(web))
    assert spearmanr(policy.values(range(1, len(web) + 1)), exact).statistic >= least


def test_what_redirects_to_each_other_is_one_page() -> None:
    """Of 2 and 3, which redirects to 2, each has one link; together they come before 4, which has one, too."""
    policy = Importance(by="backlinks")
    crawl = crawl_of(policy, 1)
    fetch(crawl, *links(4, 3, 5))  # of 1
    crawl.frontier.move([3], [None])
    fetch(crawl, *links(6))  # of 4
    pick = crawl.next()
    assert pick.key == 5
    crawl.report(page(pick, also=(2,)), links(7, 2, 3))
    assert policy.values([5, 2]).tolist() == [1.0, 1.0]  # 2 is 5, so its link to 2 counts for nothing
    assert policy.values([3]).tolist() == [2.0]


def test_what_redirects_to_a_page_that_came_keeps_its_links() -> None:
    policy = Importance()
    crawl = crawl_of(policy, 1)
    fetch(crawl, *links(2, 3))
    fetch(crawl, *links(4, 5))  # of 2
    before = policy.values([4]).tolist()
    pick = next(pick for pick in iter(crawl.next, None) if pick.key == 3)
    crawl.report(failure(pick, None)._replace(error="redirect_seen", also=(2,)))
    assert policy.values([3]).tolist() == policy.values([2]).tolist()
    assert policy.values([4])[0] > before[0]  # 4 has a link from one page that has now the links of two


def test_a_chain_of_redirects_that_ends_where_it_began() -> None:
    policy = Importance()
    crawl = crawl_of(policy, 1)
    pick = crawl.next()
    crawl.report(page(pick, also=tuple(range(2, 22))), links(21, 1, 22))
    assert np.ptp(policy.values(range(1, 22))) == 0
    assert crawl.next().key == 22


def test_links_that_lead_outside_take_their_part() -> None:
    inside, outside, not_counted = (Importance(), Importance(), Importance(outside=False))
    for policy, leaving in ((inside, 0), (outside, 3), (not_counted, 3)):
        crawl = crawl_of(policy, 1)
        crawl.report(page(crawl.next(), outside=leaving), links(2))
    assert inside.values([2])[0] == pytest.approx(0.1 + 0.09) == not_counted.values([2])[0]
    assert outside.values([2])[0] == pytest.approx(0.1 + 0.09 / 4)


def test_a_page_that_failed_has_no_links_and_a_head_is_no_page() -> None:
    policy = Importance()
    crawl = crawl_of(policy, 1, 2)
    crawl.report(failure(crawl.next()))
    assert crawl.next().key == 2
    assert policy.values([1, 2]).tolist() == pytest.approx([0.1, 0.1])


@pytest.mark.slow
def test_a_page_with_very_many_links_loses_none() -> None:
    """All links are queued, and those whose value changed are moved step by step."""
    n, policy = 100_000, Importance()
    crawl = crawl_of(policy, 1)
    fetch(crawl, *links(*range(2, n + 2)), link(1))
    assert len(crawl.frontier) == n
    assert fetch(crawl, *[link(n + 1)] * 10_000, link(2)).key == 2
    assert policy.values([n + 1])[0] > policy.values([3])[0] > 0.1
    order = [fetch(crawl).key for _ in range(200)]
    assert n + 1 in order
    assert len(crawl.frontier) == n - 201


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "make",
    [
        Importance, partial(Importance, by=SUM),
        *(pytest.param(make, marks=pytest.mark.slow) for make in SIMPLER),
        partial(HotQueue, words=["99"], base="pagerank"), partial(Importance, by=SIMILAR, query="red wine"),
    ],
    ids=["pagerank", "sum", "exact", "backlinks", "opic", "hot", "similar"],
)  # fmt: skip
def test_a_crawl_that_was_killed_makes_the_same_choices(make: Any, tmp_path: Path) -> None:
    """Killed at ten places, each time without any chance to say so: the order is that of one that was not."""
    web = made_web(2, 1000)
    whole = order_of(crawl_of(make(), 1), web)
    rng, crawl, order = random.Random(5), None, []
    for number in range(11):
        folder = tmp_path / str(number)
        if crawl is None:
            crawl = Crawl(make(), job=Job(folder / "focus"), seed=0, strict=True, clock=Clock())
            crawl.add(links(1))
        else:
            shutil.copytree(tmp_path / str(number - 1), folder)
            crawl.close()
            crawl = Crawl(make(), job=Job(folder / "focus"), seed=0, strict=True, clock=Clock())
            assert crawl.state.choices.otherwise == 0
        order += order_of(crawl, web, rng.randrange(20, 60))
        crawl.job.flush()
    order += order_of(crawl, web)
    crawl.close()
    assert order == whole


class Html:
    """A page with a title and a text."""

    status = 200
    kind = "text/html"

    def __init__(self, title: str, text: str, url: str = "http://h/") -> None:
        self.url = url
        self.headers: dict[str, str] = {}
        self.text = f"<html><head><title>{title}</title></head><body>{text}</body></html>"


def test_links_that_speak_of_the_topic_come_first_and_among_them_the_important_ones() -> None:
    policy = HotQueue(words=["cheese"], max_distance=0)
    crawl = crawl_of(policy, 1)
    crawl.report(
        page(crawl.next()),
        [link(2), link(3, anchor="All about cheese"), link(4), link(5, url="http://h/cheesemaker"), link(6)],
    )
    assert fetch(crawl, *links(5, 4)).key == 3
    assert crawl.next().key == 5
    assert policy.explain(crawl.next())["queue"] == "other"


@pytest.mark.parametrize(
    ("title", "text", "hot"),
    [
        ("A cheese shop", "", True), ("A shop", "cheese " * 10, False), ("A shop", "Cheese " * 11, True),
        ("A shop", "Cheesemakers " * 11, True), ("", "chess " * 20, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("distance", [0, 1, 2])
def test_links_near_a_hot_page_are_hot(title: str, text: str, hot: bool, distance: int) -> None:
    """A page whose links were known before it turned out to be hot draws them up; as do those behind it."""
    policy = HotQueue(words=["cheese"], max_distance=distance)
    crawl = crawl_of(policy, 1)
    fetch(crawl, *links(2, 3, 4))
    second = crawl.next()
    assert second.key == 2
    crawl.report(page(second), links(5, 6))
    third = next(pick for pick in iter(crawl.next, None) if pick.key == 3)
    crawl.report(page(third, page=Html(title, text)), links(2, 7))
    queues = {key: policy._arm(policy._page(key)) for key in (4, 5, 6, 7)}
    assert queues == {
        4: 1, 5: int(not (hot and distance >= 2)), 6: int(not (hot and distance >= 2)),
        7: int(not (hot and distance >= 1)),
    }  # fmt: skip


def test_pages_are_not_read_where_links_near_hot_ones_count_for_nothing() -> None:
    """That is the default. A link on a hot page that does not speak of the topic is one of the others."""

    class Unread(Html):
        text = property(lambda self: pytest.fail("the page was read"), lambda self, text: None)  # type: ignore[assignment]

    policy = HotQueue(words=["cheese"])
    crawl = crawl_of(policy, 1)
    crawl.report(page(crawl.next(), page=Unread("A cheese shop", "")), links(2))
    assert policy.explain(crawl.next())["queue"] == "other"


def test_a_model_may_stand_in_for_words() -> None:
    class Model:
        digest = "x"

        def score(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
            return np.array([float("wine" in text) for text in texts])

    policy = HotQueue(relevance=Model(), max_distance=1)
    crawl = crawl_of(policy, 1)
    crawl.report(page(crawl.next(), page=Html("A wine shop", "")), links(2))
    assert crawl.next().arm == 0


def test_the_words_of_the_mission_are_taken_where_none_are_given() -> None:
    crawl = crawl_of(HotQueue(), mission=Mission(words=("cheese",)))
    crawl.add([link(1), link(2, anchor="cheese")])
    assert crawl.next().key == 2


def test_without_a_topic_it_says_so_and_takes_the_important_pages(caplog: pytest.LogCaptureFixture) -> None:
    web = made_web(0)
    assert order_of(crawl_of(HotQueue(), 1), web) == order_of(crawl_of(Importance(), 1), web)
    assert "no topic to go by" in caplog.text
    assert "FOCUS_KEYWORDS" in caplog.text


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (partial(Importance, damping=1), "damping=1): damping is a number in [0, 1)"),
        (partial(Importance, epsilon=0), "epsilon=0): epsilon is a number above 0"),
        (partial(Importance, epsilon="0.1"), "epsilon is a number"),
        (partial(Importance, work=0), "work is a whole number from 1"),
        (partial(Importance, by="page_rank"), "did you mean pagerank?"),
        (partial(Importance, by=3), "by is a text, or a dict"),
        (partial(Importance, by={}), "give one of pagerank"),
        (partial(Importance, by={"opic": "1"}), "the weight of opic is '1'; give a number above 0"),
        (partial(Importance, by={"opic": float("nan")}), "the weight of opic is nan; give a number above 0"),
        (partial(Importance, by={"opic": 1, "breadth": 0}), "the weight of breadth is 0; give a number above 0"),
        (partial(Importance, url_words="home"), "url_words is a list of texts"),
        (partial(Importance, query=""), "query=''): give words of two letters or more"),
        (partial(Importance, query="?"), "give words of two letters or more"),
        (partial(Importance, query=["wine"]), "query is a text, or None"),
        (partial(Importance, idf=1), "idf is True or False"),
        (partial(HotQueue, words=[]), "give words or phrases of the topic"),
        (partial(HotQueue, words=["?"]), "give words or phrases of the topic"),
        (partial(HotQueue, words="cheese"), "words is a list of texts"),
        (partial(HotQueue, words=["cheese"], max_distance=-1), "max_distance is a whole number in [0, 255)"),
        (partial(HotQueue, words=["cheese"], base="hits"), "There are pagerank"),
    ],
)
def test_bad_parameters_are_one_clear_line(make: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("by", ["pagerank", "backlinks", SUM], ids=str)
def test_the_least_important_links_are_given_up_and_come_back_when_many_pages_link_to_them(by: Any) -> None:
    policy = Importance(by=by)
    crawl = crawl_of(policy, 1, most_waiting=50)
    fetch(crawl, *links(*range(2, 52)), link(1))
    fetch(crawl, *links(*range(3, 12)))  # of 2: these have two links, and others one
    fetch(crawl, *links(100, 101, 102))
    assert crawl.counts["link/dropped"] > 0
    states = dict(zip(range(1, 120), crawl.knows(range(1, 120)), strict=True))
    gone = [key for key, state in states.items() if state == State.GIVEN_UP]
    assert len(crawl.frontier) <= 50
    assert gone
    assert not set(gone) & set(range(3, 12))
    for _ in range(8):
        fetch(crawl, link(gone[0]), link(gone[-1]))
    fetch(crawl, link(gone[0]), link(gone[-1]))
    assert State.GIVEN_UP not in crawl.knows([gone[0], gone[-1]])
    fetched = [fetch(crawl).key for _ in range(5)]
    assert len(set(fetched)) == 5


def test_no_page_is_fetched_twice_where_few_links_may_wait() -> None:
    web = made_web(4, 800)
    order = order_of(crawl_of(Importance(), 1, most_waiting=40), web)
    assert len(order) == len(set(order)) > 100
    assert len(order_of(crawl_of(Importance(), 1), web)) == 800


def test_what_is_not_hot_is_given_up_first() -> None:
    crawl = crawl_of(HotQueue(words=["cheese"]), 1, most_waiting=20)
    hot = [link(key, anchor="cheese") for key in range(100, 115)]
    fetch(crawl, *links(*range(2, 20)), *hot)
    assert State.GIVEN_UP not in crawl.knows([each.key for each in hot])
    assert crawl.counts["link/dropped"] == 15


def test_a_link_that_was_given_up_stays_so_while_better_ones_wait() -> None:
    """One more link to it, from an unimportant page, does not queue it again."""
    policy = Importance(by="backlinks")
    crawl = crawl_of(policy, 1, most_waiting=30)
    fetch(crawl, *links(*range(2, 32)))
    fetch(crawl, *links(*range(3, 32)))  # of 2: nearly all have two links
    fetch(crawl, *links(100, 101, 102, 103))  # which have one, and are given up with the youngest
    assert crawl.knows([103]) == [State.GIVEN_UP]
    fetch(crawl, link(103))
    assert crawl.knows([103]) == [State.GIVEN_UP]


def test_links_that_lead_outside_are_known_after_a_kill(tmp_path: Path) -> None:
    values = []
    for folder in (tmp_path / "first", tmp_path / "second"):
        policy = Importance()
        crawl = Crawl(policy, job=Job(folder / "focus"), seed=0, strict=True, clock=Clock())
        if folder.name == "first":
            crawl.add(links(1))
            pick = crawl.next()
            assert crawl.sent(pick.id)
            crawl.report(page(pick, outside=3), links(2))
            shutil.copytree(folder, tmp_path / "second")
        values.append(crawl.policy.values([2])[0])
        crawl.close()
    assert values[0] == values[1] == pytest.approx(0.1 + 0.09 / 4)
