"""Best-first by a classifier of links that is trained again while the crawl runs: its numbers, its hubs, what it finds."""

from __future__ import annotations

import pickle
import shutil
from functools import partial
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from scrapy_focus import ConfigError, Crawl, Job, Link, Mission, State, memory_frontier
from scrapy_focus.policies.linkclassifier import OnlineLinkClassifier
from scrapy_focus.policies.linkclassifier.hubs import Hubs
from scrapy_focus.policies.linkclassifier.model import LinkModel
from scrapy_focus.policies.linkclassifier.policy import FIRST, SECOND, Samples
from scrapy_focus.policies.linkclassifier.words import ANCHOR, AROUND, URL, number, read
from scrapy_focus.policies.orderings import BreadthFirst, Random
from tests.made import failure, fetch, link, page
from tests.policies.manyhosts import ManyHosts, crawl_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from scrapy_focus import Pick, Policy


def numbers(*words: tuple[int, str]) -> np.ndarray:
    """Return the words of a link that has these and no others."""
    return np.array(sorted(number(*word) for word in words), np.float32)


def started(policy: OnlineLinkClassifier, *found: Link, reward: float = 0.0, **options: Any) -> Crawl:
    """Return a crawl whose start page, link 0, has these links."""
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True, **options)
    crawl.add([link(0)])
    fetch(crawl, *found, items=reward)
    return crawl


def ranks(crawl: Crawl, arm: int = FIRST) -> dict[int, float]:
    """Return the rank of each link queued in an arm."""
    return {link.key: place.rank for link, place in crawl.frontier.scan(arm)}  # type: ignore[attr-defined]


def test_words_near_a_link_count_and_no_others() -> None:
    """Ten on either side of the anchor, those of the path but not of host or query, and the last label of the host."""
    before, after = [f"b{i}" for i in range(12)], [f"a{i}" for i in range(12)]
    context = f"{' '.join(before)} Good wine {' '.join(after)}"
    found = read(
        Link("http://me@cellar.shop.Example:80/red%20grapes/7?page=next", 1, anchor="Good wine", context=context)
    )
    assert found.tolist() == numbers(
        *((AROUND, word) for word in (*before[2:], *after[:10])),
        *((URL, word) for word in (".example", "red", "grapes")),
        *((ANCHOR, word) for word in ("good", "wine")),
    ).tolist()  # fmt: skip
    many = read(link(1, anchor=" ".join(f"word{i}" for i in range(500))))
    assert len(many) == 60
    assert (many == np.unique(many)).all()


def test_numbers_of_words_are_exact_in_a_memo() -> None:
    """Each sort of word has separate numbers, and float32 distinguishes the largest from its neighbours."""
    words = [f"w{i}" for i in range(20_000)]
    sorts = [np.array([number(sort, word) for word in words]) for sort in (AROUND, URL, ANCHOR)]
    assert all(a.max() < b.min() for a, b in pairwise(sorts))
    assert sorts[-1].max() < 1 << 24


def test_most_frequent_words_of_each_sort_are_kept() -> None:
    """A hundred around links, 150 of URLs and of anchors, in two links at least, and no English stop words."""
    words = [(sort, f"w{i}") for sort in (AROUND, URL, ANCHOR) for i in range(200)]
    common = numbers(*words, (ANCHOR, "the"), (URL, "once"))
    usual = [numbers(*((sort, f"w{i}") for sort in (AROUND, URL, ANCHOR) for i in range(50, 200)), (ANCHOR, "the"))] * 5
    model = LinkModel.fit([common, *usual], usual)
    assert model is not None
    kept = {*model.numbers.tolist()}
    assert [sum((number(sort, f"w{i}") in kept) for i in range(200)) for sort in (AROUND, URL, ANCHOR)] == [
        100,
        150,
        150,
    ]
    assert all(number(URL, f"w{i}") in kept for i in range(50, 200)), "the frequent ones"
    assert len(kept) == 400


def test_probabilities_are_those_of_scikit_learn() -> None:
    """Over the words that are kept, C = 1, both classes weigh the same; a link without any has the bias."""
    wine, red, steel = (ANCHOR, "wine"), (ANCHOR, "red"), (URL, "steel")
    positive = [numbers(wine, red), numbers(wine), numbers(red)]
    negative = [numbers(steel), numbers(steel, red), numbers(steel), numbers(red), numbers((URL, "once"))]
    model = LinkModel.fit(positive, negative)
    assert model is not None
    X = [[1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [0, 0, 1], [0, 1, 0], [0, 0, 0]]
    wanted = LogisticRegression(class_weight="balanced").fit(X, [1] * 3 + [0] * 5)
    got = model.score([numbers(wine), numbers(steel, red), numbers((URL, "other")), numbers()])
    assert got == pytest.approx(wanted.predict_proba([[1, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0]])[:, 1], abs=1e-3)
    assert got[0] > got[1] + 0.3
    assert LinkModel.fit(positive[:2], negative) is None, "too few"
    assert (
        LinkModel.fit([numbers((URL, f"p{i}")) for i in range(3)], [numbers((URL, f"n{i}")) for i in range(3)]) is None
    )


def test_links_of_relevant_pages_come_first_until_something_is_learned() -> None:
    """In one of a hundred steps at random above 1; those of other pages at 0, in the order of discovery."""
    crawl = started(OnlineLinkClassifier(), *[link(i) for i in range(1, 40)], reward=1.0)
    of_relevant = ranks(crawl)
    fetch(crawl, *[link(i) for i in range(100, 105)])
    assert len({*of_relevant.values()}) > 20
    assert all(1 <= rank < 2 and 100 * rank == pytest.approx(round(100 * rank)) for rank in of_relevant.values())
    assert {key: rank for key, rank in ranks(crawl).items() if key >= 100} == dict.fromkeys(range(100, 105), 0.0)
    order = []
    while (pick := crawl.next()) is not None:
        order.append(pick.key)
        crawl.report(page(pick))
    assert order[-5:] == [100, 101, 102, 103, 104]


def test_topic_decides_at_the_beginning_where_that_is_wanted() -> None:
    """The words of the mission do until something is learned."""
    policy = OnlineLinkClassifier(begin="topic")
    crawl = started(policy, link(1, anchor="steel"), link(2, anchor="wine"), mission=Mission(words=("wine",)))
    pick = crawl.next()
    assert (pick.key, policy.explain(pick)["words"]) == (2, 0.05)


def followed(n: int) -> list[Link]:
    """Return links to pages on wine, every other one, and on steel."""
    return [link(i, anchor=("steel", "wine")[i % 2]) for i in range(1, n + 1)]


def test_all_that_waits_is_scored_when_it_learned() -> None:
    """After so many pages, by those that came; what is found later as well, and trained again after as many."""
    policy = OnlineLinkClassifier(learning_limit=9)
    crawl = started(policy, *followed(20))
    for i in range(8):
        assert policy.trained == 0
        pick = crawl.next()
        crawl.sent(pick.id)
        crawl.report(page(pick, items=float(pick.key % 2)), [link(99, anchor="wine")] if i == 7 else [])
    assert (policy.trained, len(policy._samples[0].keys), len(policy._samples[1].keys)) == (1, 4, 4)
    model = policy.models[FIRST]
    assert model is not None
    waiting = ranks(crawl)
    wine, steel = model.score([read(followed(1)[0]), read(followed(2)[1])])
    assert wine > steel + 0.4
    assert waiting == {key: pytest.approx(wine if key % 2 else steel) for key in waiting}
    assert 99 in waiting
    fetch(crawl, link(200, anchor="wine"), link(201, anchor="steel"), items=1.0)
    assert (ranks(crawl)[200], ranks(crawl)[201]) == (pytest.approx(wine), pytest.approx(steel))
    for _ in range(7):
        fetch(crawl)
    assert policy.trained == 1
    fetch(crawl)
    assert policy.trained == 2


def test_so_many_links_are_scored_and_no_more() -> None:
    """Those of the best ranks; all others keep theirs."""
    policy = OnlineLinkClassifier(learning_limit=9, most_scored=3)
    crawl = started(policy, *followed(20), reward=1.0)
    before = ranks(crawl)
    while policy.trained == 0:
        pick = crawl.next()
        crawl.sent(pick.id)
        crawl.report(page(pick, items=float(pick.key % 2)))
    waiting = ranks(crawl)
    changed = [key for key in waiting if waiting[key] != before[key]]
    assert sorted(changed) == sorted(sorted(waiting, key=lambda key: (-before[key], key))[:3])


def test_failures_are_followed_links_that_were_not_relevant() -> None:
    """They are in the sample, but no page of those after which it learns; what was given is in neither."""
    policy = OnlineLinkClassifier(learning_limit=100)
    crawl = started(policy, *followed(4))
    pick = crawl.next()
    crawl.sent(pick.id)
    crawl.report(failure(pick))
    assert (policy._samples[1].keys, policy._samples[0].keys, policy._pages) == ([pick.key], [], 1)


def test_hard_focus_takes_links_of_relevant_pages_only() -> None:
    """A link may still come by another page; only relevant pages count for learning."""
    policy = OnlineLinkClassifier(hard_focus=True)
    crawl = started(policy, link(1), link(2), reward=1.0)
    first = fetch(crawl, link(3), link(4))
    assert crawl.knows([3, 4]) == [State.NEW, State.NEW]
    assert policy._pages == 1
    fetch(crawl, link(4), link(first.key), items=1.0)
    assert (crawl.knows([3, 4]), policy._pages) == ([State.NEW, State.WAITING], 2)


def test_a_sample_is_uniform_and_bounded() -> None:
    """Each of a thousand is in a sample of a hundred one time in ten, wherever it came."""
    counts = np.zeros(1000)
    for seed in range(200):
        sample, rng = Samples(100), np.random.default_rng(seed)
        for key in range(1000):
            sample.add(key, np.full(2, key, np.float32), rng)
        assert len(sample.keys) == len({*sample.keys}) == 100
        assert [row[0] for row in sample.rows] == sample.keys
        counts[sample.keys] += 1
    assert counts.reshape(10, 100).mean(axis=1) == pytest.approx(np.full(10, 20.0), abs=2.0)


def test_hubs_by_hand() -> None:
    """Pages that link to two relevant ones, in whichever order they come; a link twice, or a page twice, counts once."""
    hubs = Hubs(2)
    assert not hubs.connect(1, [10, 10, 11, 1])
    assert hubs.mark(10) == []
    assert not hubs.connect(2, [11, 12, 10])
    assert hubs.mark(10) == [], "it is known"
    hubs = pickle.loads(pickle.dumps(hubs))
    assert hubs.mark(11) == [1, 2]
    assert hubs.mark(12) == [], "2 is one already"
    assert hubs.connect(3, [12, 99, 11])
    assert hubs.connect(1, [98]), "it came before"
    assert [*hubs.links(1)] == [10, 11, 1]
    assert [hubs.is_hub(key) for key in (1, 2, 3, 10, 500)] == [True, True, True, False, False]


def bipartite(**parameters: Any) -> tuple[OnlineLinkClassifier, Crawl]:
    """Return a crawl whose start page links to 1, 2 and 3; page 1 to 10 and 11, page 2 to 10, 11, 12 and 13."""
    policy = OnlineLinkClassifier(mode="bipartite", **parameters)
    crawl = started(policy, link(1), link(2), link(3))
    fetch(crawl, link(10), link(11))
    fetch(crawl, link(10), link(11), link(12), link(13))
    return policy, crawl


def answer(crawl: Crawl, key: int, *found: Link, reward: float = 1.0) -> None:
    """Report the outcome of a link, whether or not it would have been the next."""
    pick = crawl.frontier.take(key)
    assert pick is not None
    crawl.picks[pick.id] = pick
    crawl.report(page(pick, items=reward), list(found))


def test_links_of_hubs_come_before_all_others() -> None:
    """From its second link to a relevant page on, a page's other links come first, including known ones."""
    policy, crawl = bipartite()
    assert set(ranks(crawl, SECOND)) == {3, 10, 11, 12, 13}
    answer(crawl, 10)
    assert not ranks(crawl, FIRST)
    answer(crawl, 11, link(20))
    assert set(ranks(crawl, FIRST)) == {12, 13}
    assert set(ranks(crawl, SECOND)) == {3, 20}
    pick = crawl.next()
    assert (pick.key, policy.explain(pick)["kind"]) == (12, "linked from a hub")
    crawl.sent(pick.id)
    crawl.report(page(pick), [link(10), link(11), link(30)])
    assert set(ranks(crawl, FIRST)) == {13, 30}, "it is a hub when it comes"
    crawl.frontier.check()


def test_a_hub_needs_as_many_relevant_pages_as_is_said() -> None:
    """And pages that were redirected count for those that link to where they came from."""
    _, crawl = bipartite(hub_links=3)
    for key in (10, 11):
        answer(crawl, key)
    assert not ranks(crawl, FIRST)
    answer(crawl, 12)
    assert set(ranks(crawl, FIRST)) == {13}


def test_other_links_are_scored_by_whether_they_lead_to_hubs() -> None:
    """What is linked from a hub is scored by whether it leads to relevant pages, all else by whether to further hubs."""
    policy = OnlineLinkClassifier(mode="bipartite", learning_limit=41, most_samples=50)
    kinds = ["list", "wine", "steel", "news"]
    crawl = started(policy, *[link(i, anchor=kinds[i % 4]) for i in range(1, 80)])
    while policy.trained == 0:
        pick = crawl.next()
        crawl.sent(pick.id)
        is_list = pick.key % 4 == 0
        crawl.report(page(pick, items=float(pick.key % 4 == 1)), [link(1), link(5)] if is_list else [])
    first, second = policy.models
    assert first is not None
    assert second is not None
    rows = [read(link(1, anchor=kind)) for kind in kinds]
    relevant, hub = first.score(rows), second.score(rows)
    assert relevant.argmax() == 1
    assert hub.argmax() == 0
    fetch(crawl, *[link(i, anchor=kinds[i % 4]) for i in range(100, 104)])
    waiting, others = ranks(crawl, FIRST), ranks(crawl, SECOND)
    assert len(waiting) > 20, "the start page is a hub"
    assert waiting == {key: pytest.approx(relevant[key % 4]) for key in waiting}
    assert others == {key: pytest.approx(hub[key % 4]) for key in range(100, 104)}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "parameters",
    [
        {"learning_limit": 20}, {"learning_limit": 15, "mode": "bipartite", "most_samples": 20, "most_scored": 30},
        {"learning_limit": 10, "mode": "bipartite", "per_domain": 20},
    ],
    ids=str,
)  # fmt: skip
def test_a_crawl_that_was_killed_makes_the_same_choices(parameters: dict[str, Any], tmp_path: Path) -> None:
    """Killed at six places, each time without any chance to say so: the order is that of one that was not."""
    web = ManyHosts(200, seed=3, dead=0.05)
    lengths = (11, 3, 24, 7, 30, 16, 10**6)
    crawl = crawl_of(OnlineLinkClassifier(**parameters), web.link(0))
    whole = [pick.key for n in lengths for pick in one_by_one(crawl, web, n)]
    trained = crawl.policy.trained  # type: ignore[attr-defined]
    order = []
    for run, n in enumerate(lengths):
        folder = tmp_path / str(run)
        if run:
            shutil.copytree(tmp_path / str(run - 1), folder)
            crawl.close()
        crawl = crawl_of(OnlineLinkClassifier(**parameters), job=Job(folder / "focus"))
        if not run:
            crawl.add([web.link(0)])
        assert crawl.state.choices.otherwise == 0
        order += [pick.key for pick in one_by_one(crawl, web, n)]
        crawl.job.flush()
    crawl.close()
    assert order == whole
    assert crawl.policy.trained == trained >= 3  # type: ignore[attr-defined]
    assert len(order) > 60


def one_by_one(crawl: Crawl, web: ManyHosts, n: int) -> Iterator[Pick]:
    """Fetch so many pages, one after the other."""
    for _ in range(n):
        pick = crawl.next()
        if pick is None:
            return
        assert crawl.sent(pick.id)
        web.report(crawl, pick)
        yield pick


@pytest.mark.parametrize(
    "given",
    [
        {"mode": "backward"}, {"begin": "seed"}, {"learning_limit": 0}, {"most_samples": -1}, {"most_scored": 0},
        {"hub_links": 0}, {"hard_focus": 1}, {"keywords": "wine"}, {"per_domain": 0},
    ],
)  # fmt: skip
def test_parameters_are_checked(given: dict[str, Any]) -> None:
    """The message names what is wrong."""
    with pytest.raises(ConfigError, match=next(iter(given))):
        OnlineLinkClassifier(**given)


class Web:
    """3,000 pages, one in six relevant; anchors say so of three in four, and are wrong of one in ten others.

    With ``lists``, anchors say nothing, and every twentieth page has links to 40 relevant ones. All others have 8 links,
    at random.
    """

    def __init__(self, seed: int, *, lists: bool) -> None:
        rng = np.random.default_rng([9, seed])
        n = 3000
        self.relevant = rng.random(n) < 1 / 6
        told = np.where(self.relevant, rng.random(n) < 0.75, rng.random(n) < 0.1) & (not lists)
        self.links = [link(i, anchor=f"{('about', 'grapes wine')[t]} w{i}") for i, t in enumerate(told.tolist())]
        good = np.flatnonzero(self.relevant)
        self.targets = [
            (rng.choice(good, 40, replace=False) if lists and i % 20 == 10 else rng.integers(0, n, 8)).tolist()
            for i in range(n)
        ]

    def harvest(self, policy: Policy, seed: int, budget: int = 300) -> float:
        """Return the share of relevant pages among so many."""
        crawl = Crawl(policy, frontier=memory_frontier, seed=seed, strict=True)
        crawl.add([self.links[0]])
        found = 0.0
        for _ in range(budget):
            pick = crawl.next()
            crawl.sent(pick.id)
            found += self.relevant[pick.key]
            outcome = page(pick, items=float(self.relevant[pick.key]))
            crawl.report(outcome, [self.links[target] for target in self.targets[pick.key]])
        return found / budget


def shares(make: Callable[[], Policy], *, lists: bool, seeds: Sequence[int] = range(3)) -> float:
    """Return the mean harvest over some webs."""
    return mean(Web(seed, lists=lists).harvest(make(), seed) for seed in seeds)


@pytest.mark.slow
def test_beats_an_order_that_learns_nothing_where_words_tell() -> None:
    """By .25 over breadth-first and random order, where anchors say of most pages what they are on."""
    learned = shares(partial(OnlineLinkClassifier, learning_limit=50), lists=False)
    assert learned > 0.25 + shares(BreadthFirst, lists=False)
    assert learned > 0.25 + shares(Random, lists=False)


@pytest.mark.slow
def test_beats_them_where_lists_tell() -> None:
    """By .2 with its hubs, where no word says anything, and by .1 its own forward mode."""
    learned = shares(partial(OnlineLinkClassifier, mode="bipartite"), lists=True)
    assert learned > 0.2 + shares(BreadthFirst, lists=True)
    assert learned > 0.2 + shares(Random, lists=True)
    assert learned > 0.1 + shares(OnlineLinkClassifier, lists=True)
