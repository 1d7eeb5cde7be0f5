"""The memory of a policy is bounded: past its limits it continues, and below them nothing is different."""

from __future__ import annotations

import pickle
from array import array
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus import Budget, Crawl, FilesGoal, Mission, memory_frontier
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.portal.portal import TARGET_MIMES
from scrapy_focus.learn import classifier as classifiers
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.focused import Focused, _features
from scrapy_focus.policies.tagpath import policy as tagpath
from scrapy_focus.policies.tagpath.offline import TagPathOffline
from scrapy_focus.policies.tagpath.policy import FIRST, PROBES, TARGETS, TagPath
from tests.made import fetch, file, link, page
from tests.policies.portal import recorded
from tests.policies.test_tagpath import LIST, MAIN, NAV, article, dataset, started

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_focus import Frontier, Policy


def path(number: int) -> str:
    """Return one of any number of tag paths, each with an id."""
    return f"html/body/main/ul/li#item-{number}/div/a"


def numbered(policy: TagPath) -> int:
    """Return how much of the room for tag paths is used, after checking that nothing else is kept of them."""
    assert list(policy._paths) == policy._path_names
    assert list(policy._paths.values()) == list(range(len(policy._path_names)))
    return sum(len(name) + 64 for name in policy._path_names)


def test_links_keep_their_paths_when_there_is_room_for_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links queued before the limit resolve to their own path, later ones to the cluster nearest to theirs."""
    monkeypatch.setattr(tagpath, "_ROOM", 64 + len(MAIN))
    policy = TagPath()
    crawl = started(policy)
    crawl.add([article(1, NAV), article(2, LIST)])
    first = crawl.next()
    crawl.add([dataset(3, MAIN)], page(first))
    before = numbered(policy)
    assert before == 64 + len(MAIN)
    crawl.add([dataset(4, NAV + "/b"), dataset(5, LIST), dataset(6, LIST + "/b"), dataset(7, NAV)], page(first))
    crawl.report(page(first))
    assert numbered(policy) == before
    notes = {found.key: int(place.memo[0]) for found, place in crawl.frontier.scan(TARGETS)}
    assert notes == {3: 0, 4: -FIRST, 5: -FIRST - 1, 6: -FIRST - 1, 7: -FIRST}
    policy = pickle.loads(pickle.dumps(policy))
    crawl.guard.take_up(policy)
    policy.attach(crawl.frontier)
    n_clusters = policy.clusters.n_clusters
    arms = {}
    for _ in range(5):
        pick = crawl.next()
        arms[pick.key] = policy._page_arm(page(pick))
        crawl.report(file(pick))
    assert arms == {3: FIRST + 2, 4: FIRST, 5: FIRST + 1, 6: FIRST + 1, 7: FIRST}
    assert policy._names[FIRST + 2] == MAIN
    assert policy.clusters.n_clusters == n_clusters + 1, "that of the path that had a number"


def test_probes_keep_their_paths_when_there_is_room_for_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for links that wait for a HEAD, whether they get it or are classified without."""
    monkeypatch.setattr(tagpath, "_ROOM", 64 + len(MAIN))
    policy = TagPath(batch=3)
    crawl = started(policy, trained=False)
    crawl.add([article(1, NAV)])
    fetch(crawl, article(2, MAIN), article(3, LIST), *[article(i, path(i)) for i in range(4, 9)])
    assert crawl.frontier.waiting[PROBES] == 7
    assert numbered(policy) <= 64 + len(MAIN)
    while not policy.predictor.ready:
        fetch(crawl)
    assert crawl.frontier.waiting[PROBES] == 0
    arms = {found.key: place.arm for arm in range(FIRST, FIRST + 3) for found, place in crawl.frontier.scan(arm)}
    assert arms[2] == FIRST + 1
    assert {arms[key] for key in arms if key > 2} == {FIRST}


def test_queued_links_note_their_texts_in_their_memos(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pages are queued in context, the policy keeps no more; a memo has 103 numbers at most.

    Beyond the room for tag paths, a link has the path of its cluster for the classifier.
    """
    monkeypatch.setattr(tagpath, "_ROOM", 64 + len(NAV))
    policy = TagPath(features="context", probe=False)
    crawl = started(policy, trained=False)
    texts = {"anchor": "Anchor " * 100, "context": "Context " * 100}
    crawl.add([article(0, **texts)])
    fetch(crawl, *[article(i, MAIN, **texts) for i in range(1, 9)])
    stored = len(pickle.dumps(policy))
    fetch(crawl, *[article(i, MAIN, **texts) for i in range(10, 500)])
    assert len(pickle.dumps(policy)) < stored + 3000, "the label of one more page"
    assert {len(place.memo) for _, place in crawl.frontier.scan(FIRST + 1)} == {103}
    fetch(crawl, article(600, MAIN + "/b", **texts))
    place = next(place for found, place in crawl.frontier.scan(FIRST + 1) if found.key == 600)
    features = policy._texts.found(article(600, MAIN, **texts)).tolist()
    assert policy._noted(article(600).url, place.memo).tolist() == features


def test_a_path_is_numbered_without_any_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is near because there is nothing yet, the path makes its own cluster."""
    monkeypatch.setattr(tagpath, "_ROOM", 0)
    policy = TagPath()
    crawl = started(policy)
    crawl.add([dataset(1)])
    pick = crawl.next()
    assert (pick.arm, int(pick.memo[0])) == (TARGETS, -FIRST)
    crawl.report(page(pick))
    assert policy.clusters.n_clusters == 1


def test_names_are_cut() -> None:
    """A cluster is called by the end of its first path, of thousands of elements on pages that close none."""
    deep = "html/body" + "/font" * 50_000 + "/a#here"
    for policy in (TagPath(probe=False), TagPathOffline()):
        crawl = Crawl(policy, frontier=memory_frontier, strict=True)
        crawl.add([article(1, deep)])
        assert policy.explain(crawl.next())["tag_path"] == deep[-500:]


def test_pages_without_an_outcome_are_forgotten() -> None:
    """Asking for the arms of pages that are never reported takes memory for 4,096 pages at most."""
    policy = TagPath()
    crawl = started(policy)
    crawl.add([dataset(1)])
    pick = crawl.next()
    for i in range(5000):
        policy.place([dataset(2)], page(pick._replace(id=i)))
    assert list(policy._adopted) == list(range(5000 - 4096, 5000))


def small(policy: Policy) -> Policy:
    """Lower every limit of a policy that is not a parameter, so that a small site is too large for it."""
    if isinstance(policy, (TagPath, TagPathOffline)):
        policy.projector.max_grams = 300
        policy.clusters._max_entries = 700
    if isinstance(policy, TagPath):
        policy._room = 2000
    if isinstance(policy, BranchingBandit):
        policy.__class__ = SmallBranchingBandit
    return policy


class SmallBranchingBandit(BranchingBandit):
    """One with room for little, whenever a crawl begins."""

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        super().open(frontier, rng, mission)
        self._room = 600
        self._projector.max_grams = 300
        self._clusters._max_entries = 700
        self._clusters.max_clusters = 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [TagPath, lambda: TagPath(accounting="full"), lambda: TagPathOffline(warmup=100), BranchingBandit]
)
def test_a_crawl_goes_on_past_all_limits(make: Callable[[], Policy]) -> None:
    """On a portal that is too large for its limits, a policy fetches everything all the same, and keeps to them."""
    site = recorded(400, 0)
    policy = small(make())
    harvest = simulate(policy, FilesGoal(types=TARGET_MIMES), site, concurrency=8, latency=1.0)
    assert harvest.found[-1] == harvest.exhaustive.worth
    if isinstance(policy, BranchingBandit):
        assert policy._room >= 0
        assert sum(len(name) + 64 for name in policy.paths) <= 600
        assert policy._clusters._n_entries == np.count_nonzero(policy._clusters._sums) <= 700
        assert policy._clusters.n_clusters <= 20
        assert policy.arms.n_arms <= 40
        assert not policy._revealed
        return
    assert isinstance(policy, (TagPath, TagPathOffline))
    assert len(policy.projector._vocabulary) == policy.projector._sizes.sum() == 300
    assert policy.clusters._n_entries == np.count_nonzero(policy.clusters._sums) <= 700
    if isinstance(policy, TagPath):
        assert numbered(policy) <= 2000
        assert not policy._labelled
        assert not policy._adopted


@pytest.mark.slow
def test_small_limits_leave_something_to_learn() -> None:
    """With a vocabulary of 300 and two entries a cluster, 30 % of the requests still find far more than random order does.

    Measured over four sites: 0.59 of the targets; 0.70 without these limits, random 0.24.
    """
    shares = []
    for seed in range(4):
        site = recorded(400, seed)
        harvest = simulate(
            small(TagPath()), FilesGoal(types=TARGET_MIMES), site, budget=int(0.3 * site.n_urls), seed=seed
        )
        shares.append(harvest.found[-1] / harvest.exhaustive.worth)
    assert np.mean(shares) > 0.45


def test_a_long_warm_up_is_learned_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels do not pile up in an endless warm-up, and their effect is there when it is over."""
    monkeypatch.setattr(classifiers, "_KEPT", 3000)
    policy = Focused(warmup=300)
    crawl = Crawl(policy, frontier=memory_frontier, goal=FilesGoal(), budget=Budget(requests=1000), strict=True)
    crawl.add([link(0)])
    fetch(crawl, *[(dataset if i % 2 else article)(i) for i in range(1, 400)])
    for _ in range(299):
        pick = crawl.next()
        crawl.report((file if "/files/" in pick.url else page)(pick))
        assert policy.classifier._kept <= 3000
    assert all("/files/" in fetch(crawl).url for _ in range(40))


def test_the_depth_of_a_trap_counts_to_a_thousand() -> None:
    """A link a million clicks away costs what one a thousand clicks away does, and 999 still differ from 1,000."""
    assert [len(_features("", depth, None)) for depth in (999, 1000, 1_000_000)] == [999, 1000, 1000]


def full(policy: TagPath | TagPathOffline) -> None:
    """Fill everything that a policy keeps of tag paths: 4,096 clusters with 128 entries on average, all n-grams and paths."""
    rng = np.random.default_rng(0)
    clusters, projector = policy.clusters, policy.projector
    clusters.n_clusters = clusters.max_clusters
    clusters._sums = np.zeros((4096, 4096), np.float32)
    clusters._norms, clusters._entries = np.ones(4096), np.full(4096, 128)
    clusters._n_entries = 1 << 19
    clusters._sums.ravel()[rng.choice(1 << 24, 1 << 19, replace=False)] = 1.0
    clusters._where = array("q", clusters._occupied().tobytes())
    for i in range(1 << 16):
        projector._bucket(f"li#{i}")
    for i in range(30_000):
        projector.project(path(i), ["", *path(i).split("/")])
    policy.stats.ensure(FIRST + 4096)
    policy._names = {arm: path(arm).rjust(500, "/") for arm in range(FIRST, FIRST + 4096)}
    if isinstance(policy, TagPath):
        i = 0
        while policy._room >= 200:
            policy._number(path(i).rjust(80, "/"))
            i += 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "megabytes"),
    [(TagPath, 12), (lambda: TagPath(features="context", classifier="bayes"), 14), (TagPathOffline, 8)],
)
def test_a_policy_at_its_limits_is_stored_in_a_few_megabytes(make: Callable[[], TagPath], megabytes: float) -> None:
    """Full of everything, a pickle is as large as documented, and what comes out of it decides as before."""
    policy = make()
    policy.open(memory_frontier(), np.random.default_rng(0), Mission.of(FilesGoal()))
    full(policy)
    stored = pickle.dumps(policy, protocol=5)
    assert len(stored) < megabytes * 1e6
    copy = pickle.loads(stored)
    copy.attach(memory_frontier())
    links = [link(i, tag_path=path(40_000 + i), url=f"http://h/{i}.html") for i in range(30)]
    assert str(policy.place(links, None)) == str(copy.place(links, None))
    assert len(policy.projector._vocabulary) == len(copy.projector._vocabulary) == 1 << 16
    assert len(pickle.dumps(copy, protocol=5)) < megabytes * 1e6
