"""TP-OFF against the released code: what a group is worth, when the learning phase ends, and what follows."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest
from scipy.stats import chisquare

from scrapy_focus import ConfigError, Crawl, FilesGoal, memory_frontier
from scrapy_focus.learn.arms import rewards_in
from scrapy_focus.policies.tagpath.offline import FIRST, QUEUE, TagPathOffline
from tests.made import failure, fetch, file, link, page
from tests.policies.test_informed import Known, told

NAV, MAIN, LIST = "html/body/nav/ul/li/a", "html/body/main/section.list/h2/a.title", "html/body/footer#end/p/a"


def on(path: str, *numbers: int, **rest):
    """Return a link for each number, all at one place."""
    return [link(number, tag_path=path, **rest) for number in numbers]


def started(policy: TagPathOffline, *found, seed: int = 0) -> Crawl:
    """Return a crawl whose start page, link 0, has these links."""
    crawl = Crawl(policy, frontier=memory_frontier, goal=FilesGoal(), seed=seed, strict=True)
    crawl.add([link(0)])
    fetch(crawl, *found)
    return crawl


def get_file(crawl: Crawl):
    """Let the next pick be a file, and return it."""
    pick = crawl.next()
    crawl.report(file(pick))
    return pick


def stats(policy: TagPathOffline) -> list[tuple[float, float]]:
    """Return pulls and what was earned, for each group."""
    return list(zip(policy.stats.pulls[FIRST:].tolist(), policy.stats.sums[FIRST:].tolist(), strict=True))


def test_the_learning_phase_is_breadth_first_and_ends_on_time() -> None:
    """Exactly as many requests as it lasts are first in first out; the queue then moves to its groups."""
    crawl = started(TagPathOffline(warmup=5), *on(NAV, 1, 2), *on(MAIN, 3))
    assert [fetch(crawl, *on(MAIN, 10 + i), *on(LIST, 20 + i)).key for i in range(4)] == [1, 2, 3, 10]
    assert crawl.frontier.waiting.tolist() == [7]
    assert crawl.policy.steps == 5
    pick = crawl.next()
    assert pick.arm >= FIRST
    assert crawl.frontier.waiting.sum() == 6
    assert crawl.frontier.waiting[QUEUE] == 0


def test_benefits_are_means_over_all_pulls() -> None:
    """By hand: NAV had pages with 2 and 2 targets and a dead link, 4 / 3; MAIN a page with 2 and a file, 2 / 2; LIST 0 / 6."""
    policy = TagPathOffline(warmup=12)
    crawl = started(policy, *on(NAV, 1, 2, 3), *on(MAIN, 4, 5))
    fetch(crawl, *on(LIST, 11, 12))
    fetch(crawl, *on(LIST, 13, 14))
    crawl.report(failure(crawl.next()))
    fetch(crawl, *on(LIST, 15, 16), *on(LIST, 17), *on(MAIN, 6), *on(NAV, 7))
    assert [get_file(crawl).key for _ in range(7)] == [5, 11, 12, 13, 14, 15, 16]
    assert stats(policy) == [(1, 1), (3, 4), (2, 2), (6, 0)], "file 5 was found on the start page"
    benefits = {pick.key: policy.explain(pick)["benefit"] for pick in iter(crawl.next, None)}
    assert list(benefits.items()) == [(7, 4 / 3), (6, 1.0), (17, 0.0)]


@pytest.mark.parametrize("benefit", ["credit", "truth"])
def test_links_leave_by_the_benefit_of_their_group(benefit: str) -> None:
    """MAIN led to two targets, LIST to one: they leave in this order, then those of groups worth nothing, old or new."""
    policy = TagPathOffline(warmup=7, benefit=benefit)
    crawl = told(policy, Known("page", target=(11, 12, 13)))
    crawl.add([link(0)])
    fetch(crawl, *on(NAV, 1), *on(MAIN, 2), *on(LIST, 3))
    path = "html/body/table/tr/td/a"
    fetch(crawl)
    fetch(crawl, *on(path, 11, 12))
    fetch(crawl, *on(path, 13), *on(NAV, 4, 5), *on(LIST, 6), *on(MAIN, 7, 8), *on(path, 9))
    for _ in range(3):
        assert get_file(crawl).arm == QUEUE
    assert stats(policy) == [(1, 0), (1, 0), (1, 2), (1, 1), (3, 0)]
    order = [fetch(crawl, *on("html/body/aside/div.new/div/span/a", 30)).key for _ in range(7)]
    assert sorted(order[:2]) == [7, 8]
    assert order[2] == 6
    assert sorted(order[3:]) == [4, 5, 9, 30]


def test_credit_goes_to_the_group_of_the_page() -> None:
    """A target credits the group of the link to its page, not its own, and only in the learning phase."""
    policy = TagPathOffline(warmup=3)
    crawl = started(policy, *on(NAV, 1))
    fetch(crawl, *on(MAIN, 2, 3))
    assert get_file(crawl).arm == QUEUE
    assert stats(policy) == [(1, 0), (1, 1), (1, 0)]
    assert get_file(crawl).arm == FIRST + 2
    assert stats(policy) == [(1, 0), (1, 1), (1, 0)], "what comes later changes nothing"


def test_truth_counts_what_the_page_has_links_to() -> None:
    """With the truth nothing has to be fetched: the links that the policy was shown count, found anew as they are."""
    policy = TagPathOffline(benefit="truth")
    crawl = told(policy, Known("page", target=(2, 3, 4), dead=(6,), other=(7,)))
    crawl.add([link(0)])
    fetch(crawl, *on(NAV, 1), *on(MAIN, 2))
    fetch(crawl, *on(MAIN, 2, 3, 4, 5, 6, 7))
    assert stats(policy) == [(1, 1), (1, 2)], "link 2 was known already"
    get_file(crawl)
    assert stats(policy)[:2] == [(1, 1), (1, 2)], "what arrives is not counted again"


def test_direct_links_to_targets_come_last() -> None:
    """As released: files lead to no page with targets, so they stay until the group that led to them is empty."""
    crawl = started(TagPathOffline(warmup=3), *on(NAV, 1))
    fetch(crawl, *on(LIST, 10, 11, 12), *on(NAV, 2, 3))
    assert get_file(crawl).key == 10
    keys = [pick.key for pick in iter(crawl.next, None)]
    assert (sorted(keys[:2]), sorted(keys[2:])) == ([2, 3], [11, 12])


@pytest.mark.few(1)
@pytest.mark.parametrize("places", [(NAV, NAV, NAV, NAV), (NAV, MAIN, MAIN, MAIN)])
def test_the_choice_among_equals_is_uniform(places: tuple) -> None:
    """Links of a group, and of groups of equal benefit, leave first equally often, with the chance that the pick says."""
    firsts: Counter[int] = Counter()
    for seed in range(600):
        found = [link(i, tag_path=path) for i, path in enumerate(places, 1)]
        crawl = started(TagPathOffline(warmup=1), *found, *on(LIST, 9, host="busy"), seed=seed)
        pick = crawl.next({"busy"})
        assert pick.chance == 0.25
        firsts[pick.key] += 1
    assert sorted(firsts) == [1, 2, 3, 4]
    assert chisquare(list(firsts.values())).pvalue > 0.01


def test_links_are_grouped_by_their_tag_paths() -> None:
    """Equal and similar paths share a group, others have their own, numbered as they come."""
    policy = TagPathOffline(warmup=0)
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True)
    deep = "html/body.front/div#page/div.content/main/section/ul.teasers/li#item-{}/a"
    paths = [NAV, MAIN, NAV, deep.format(1), deep.format(2), LIST]
    crawl.add([link(i, tag_path=path) for i, path in enumerate(paths)])
    arms = {pick.key: pick.arm - FIRST for pick in iter(crawl.next, None)}
    assert [arms[i] for i in range(6)] == [0, 1, 0, 2, 2, 3]


def test_what_is_handed_back_counts_for_nothing() -> None:
    """An unsent pick is neither a request nor a pull; after the learning phase it is queued in its group."""
    policy = TagPathOffline(warmup=3)
    crawl = started(policy, *on(NAV, 1), *on(MAIN, 2, 3))
    crawl.release(crawl.next().id)
    assert (policy.steps, stats(policy)) == (1, [(1, 0), (0, 0)])
    early = crawl.next()
    fetch(crawl)
    assert (early.key, early.arm) == (1, QUEUE)
    assert crawl.next().key == 3
    crawl.release(early.id)
    again = crawl.next()
    assert (again.key, again.arm, again.memo) == (1, FIRST + 1, None)
    assert stats(policy) == [(1, 0), (1, 0), (1, 0)], "what was learned is frozen"


def test_busy_hosts_are_passed_over() -> None:
    """In both phases links on hosts that can take nothing stay where they are."""
    crawl = started(TagPathOffline(warmup=2), *on(NAV, 1, host="a"), *on(NAV, 2, host="b"), *on(MAIN, 3, host="a"))
    assert crawl.next({"a", "b"}) is None
    assert fetch(crawl, *on(MAIN, 4, host="b"), busy={"a"}).key == 2
    assert crawl.next({"a", "b"}) is None
    assert crawl.next({"a"}).key == 4
    assert {crawl.next({"b"}).key, crawl.next({"b"}).key} == {1, 3}
    assert crawl.next() is None


def test_why() -> None:
    """In the learning phase the group is named, then also what it was worth in how many pulls; best groups are listed."""
    policy = TagPathOffline(warmup=4)
    crawl = started(policy, *on(NAV, 1, 2))
    pick = crawl.next()
    assert policy.explain(pick) == {"kind": "learning: first in, first out", "tag_path": NAV}
    crawl.report(page(pick), [*on(MAIN, 5, 6), *on(NAV, 3)])
    fetch(crawl)
    get_file(crawl)
    assert policy.explain(crawl.next()) == {"kind": "page", "tag_path": NAV, "pulls": 2.0, "benefit": 0.5}
    assert policy.explain(fetch(crawl, *on(LIST, 9))) == {
        "kind": "page",
        "tag_path": MAIN,
        "pulls": 1.0,
        "benefit": 0.0,
    }
    assert policy.explain(crawl.next()) == {"kind": "page", "tag_path": LIST, "pulls": 0.0, "benefit": 0.0}
    assert policy.best_arms(5) == [(NAV, 1.0, 2)]
    assert rewards_in(policy.tables()) == (1, 0.5, 0.0, 0.5)


@pytest.mark.parametrize("stored_after", [2, 9])
def test_it_goes_on_where_it_was_stored(stored_after: int) -> None:
    """A copy of the policy, made in either phase, makes the same choices over the same frontier."""
    orders = []
    for store in (False, True):
        crawl = started(TagPathOffline(warmup=6), *on(NAV, 1, 2, 3), *on(MAIN, 4, 5, 6))
        order = []
        for step in range(16):
            if store and step == stored_after:
                crawl.guard.take_up(pickle.loads(pickle.dumps(crawl.policy)))
                crawl.policy.attach(crawl.frontier)
            order.append(fetch(crawl, *on([NAV, MAIN, LIST][step % 3], 100 + step, 200 + step)).key)
        orders.append(order)
    assert orders[0] == orders[1]


@pytest.mark.parametrize(
    "params", [{"benefit": "thruth"}, {"index": "hnsw"}, {"warmup": -1}, {"theta": 7}, {"m": 16, "w": 15}]
)
def test_parameters_are_checked(params: dict) -> None:
    """An invalid value is refused with the valid ones."""
    with pytest.raises(ConfigError, match=next(iter(params))):
        TagPathOffline(**params)


def test_defaults_are_those_of_the_released_code() -> None:
    """A learning phase of 3,000 requests; groups as in SB-CLASSIFIER."""
    policy = TagPathOffline()
    assert (policy.warmup, policy.theta, policy.n, policy.m, policy.w) == (3000, 0.75, 2, 12, 15)
