"""TreeQ: its choices and explanations, its modes, the published rules, caps of domains, and resuming."""

from __future__ import annotations

import pickle
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import ConfigError, Crawl, ItemsGoal, Job, Mission, ResumeError, State, memory_frontier
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.learn.arms import rewards_in
from scrapy_focus.policies.bestfirst import BestFirst
from scrapy_focus.policies.linkclassifier import OnlineLinkClassifier
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.policies.treeq.features import KEYWORD_ANCHOR
from scrapy_focus.policies.treeq.policy import TreeQ, worth
from scrapy_focus.policies.treeq.rules import Rules
from tests.made import Clock, failure, fetch, link, links, page
from tests.policies.portal import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy_focus import Pick

MODES = ["tree", "tree-random", "synchronous", "asynchronous", "random"]


class Web:
    """Pages of hosts, each of which links to its neighbours and to others drawn by its number; some are on the topic.

    On even hosts every page is relevant, on odd ones none is. Anchors say so in two of three cases.
    """

    def __init__(self, hosts: int = 20, pages: int = 30, fan: int = 6) -> None:
        self.hosts, self.pages, self.fan = hosts, pages, fan

    def link(self, number: int) -> Any:
        host = number % self.hosts
        honest = number % 3 > 0
        anchor = "cheese" if (host % 2 == 0) == honest else "bread"
        return link(number, host=f"h{host}.test", anchor=anchor, tag_path=f"html/body/p.{number % 4}/a")

    def relevant(self, number: int) -> float:
        return float(number % self.hosts % 2 == 0)

    def links(self, number: int) -> list[Any]:
        n = self.hosts * self.pages
        rng = np.random.default_rng(number)
        return [self.link(i) for i in sorted({(number + self.hosts) % n, *rng.integers(0, n, self.fan).tolist()})]


def crawl_of(web: Web, policy: Any, *, seed: int = 0, **rest: Any) -> Crawl:
    """Return a crawl that begins with the first two pages."""
    where = {} if "job" in rest else {"frontier": memory_frontier}
    crawl = Crawl(policy, goal=lambda outcome: web.relevant(outcome.pick.key), seed=seed, strict=True, **where, **rest)
    if not crawl.recovered and not len(crawl.frontier) and not crawl.counts["selected"]:
        crawl.add([web.link(0), web.link(1)])
    return crawl


def steps(crawl: Crawl, web: Web, n: int = 10**6) -> Iterator[Pick]:
    """Fetch up to n pages; each seventh fails."""
    for _ in range(n):
        pick = crawl.next()
        if pick is None:
            return
        crawl.sent(pick.id)
        dead = pick.key % 7 == 6
        crawl.report(failure(pick) if dead else page(pick), [] if dead else web.links(pick.key))
        yield pick


def test_it_learns_which_hosts_are_relevant() -> None:
    """Half of the pages are relevant; of the first 150, nearly all are, whatever their anchors say."""
    web = Web()
    crawl = crawl_of(web, TreeQ(keywords=["cheese"]))
    found = [web.relevant(pick.key) for pick in steps(crawl, web, 150)]
    assert np.mean(found[50:]) > 0.85
    blind = crawl_of(web, BreadthFirst())
    assert np.mean([web.relevant(pick.key) for pick in steps(blind, web, 150)][50:]) < 0.65


@pytest.mark.few(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("preset", ["", "tres-2023"])
def test_every_page_is_fetched_once(mode: Any, preset: str) -> None:
    """In every mode a crawl ends when it had all that can be reached, and what was learned can be explained."""
    web = Web(6, 12)
    policy = TreeQ(keywords=["cheese"], mode=mode, preset=preset, rules={"warmup": 20})
    crawl = crawl_of(web, policy)
    came = [pick.key for pick in steps(crawl, web)]
    reached, queue = {0, 1}, [0, 1]
    while queue:
        number = queue.pop()
        fresh = {each.key for each in web.links(number)} - reached if number % 7 < 6 else set()
        reached |= fresh
        queue.extend(fresh)
    assert sorted(came) == sorted(reached)
    assert len(crawl.frontier) == 0
    crawl.frontier.check()
    if policy.chooses_in_tree:
        assert policy.tree.counts.sum() > 0
        assert all(name for name, _, _ in policy.best_arms(3))
        assert rewards_in(policy.tables())[0] == np.count_nonzero(policy.tree.means > 0)


def test_the_best_representative_is_chosen() -> None:
    """The synchronous mode takes the queued link that the network values most; the tree the best of the drawn ones."""
    web = Web()
    policy = TreeQ(keywords=["cheese"], mode="synchronous")
    crawl = crawl_of(web, policy)
    for _ in steps(crawl, web, 80):
        everything = crawl.frontier.draw(None, np.random.default_rng(0))
        policy._hosts.look()
        x = policy._features.now(everything.vectors, policy._hosts.rows[everything.hosts])
        values = policy.network.values(x)
        pick = crawl.next()
        if pick is None:
            break
        assert policy.network.values(policy._chosen[pick.id][None])[0] == pytest.approx(values.max(), abs=1e-5)
        crawl.release(pick.id)


def two_leaves(mode: Any, preset: str) -> tuple[TreeQ, Crawl]:
    """Return a crawl whose tree has a link with a keyword in one leaf and forty without in the other."""
    policy = TreeQ(keywords=["cheese"], mode=mode, preset=preset, rules={"seeds_are_experience": False})
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True)
    crawl.add([link(1, anchor="cheese"), *(link(key, anchor="bread") for key in range(2, 42))])
    for i in range(40):
        x = np.zeros(policy.layout.n_codes, np.uint8)
        x[KEYWORD_ANCHOR] = 63 * (i % 2)
        policy._experience(x, i % 2, x[None][:0])
    assert crawl.frontier.waiting.tolist() == [40, 1]
    return policy, crawl


def test_representatives_by_hand() -> None:
    """Algorithm 2 (section 2.6): one of each leaf; as recommended 256 of all leaves, and so 128 of each of two."""
    assert two_leaves("tree", "tres-2023")[0]._counts().tolist() == [1, 1]
    assert two_leaves("tree", "")[0]._counts().tolist() == [128, 128]


def test_tree_random_takes_any_link_of_any_leaf() -> None:
    """Section 3.2: the only link of one leaf is taken as often as the forty of the other together."""
    policy, crawl = two_leaves("tree-random", "tres-2023")
    policy.results = 1_000  # after any warm-up
    taken = []
    for _ in range(400):
        pick = crawl.next()
        taken.append(pick.key)
        crawl.release(pick.id)
    assert 160 <= taken.count(1) <= 240
    assert len({*taken}) >= 38


def test_an_asynchronous_link_is_ranked_when_it_is_found() -> None:
    """Section 3.2: the link of the largest value is first; a queued one keeps its value when a page has it again."""
    policy = TreeQ(keywords=["cheese"], mode="asynchronous")
    crawl = Crawl(policy, frontier=memory_frontier, goal=lambda outcome: 1.0, seed=0, strict=True)
    crawl.add([link(1)])
    fetch(crawl, link(2, anchor="bread"), link(3, anchor="bread"), link(4, anchor="cheese"))
    assert fetch(crawl, link(3, anchor="cheese")).key == 4
    assert [crawl.next().key, crawl.next().key] == [2, 3]


def test_links_of_a_leaf_are_where_the_tree_says() -> None:
    """However the tree grew, each arm has the links that it routes there."""
    web = Web()
    policy = TreeQ(keywords=["cheese"], rules={"split": "variance"})
    crawl = crawl_of(web, policy)
    for i, _ in enumerate(steps(crawl, web, 300)):
        if i % 30 == 0:
            found = crawl.frontier.draw(None, np.random.default_rng(0))
            assert policy.tree.route(found.vectors).tolist() == found.arms.tolist()
    assert policy.tree.n_leaves > 3
    names = {policy.describe(leaf) for leaf in range(policy.tree.n_leaves)}
    assert len(names) == policy.tree.n_leaves


def test_experiences_by_hand() -> None:
    """A page teaches its reward and the vectors of its links and of the next choice; a failure teaches 0, and nothing behind."""
    policy = TreeQ(keywords=["cheese"])
    crawl = Crawl(
        policy, frontier=memory_frontier, goal=lambda outcome: 3.0 * (outcome.pick.key == 1), seed=0, strict=True
    )
    crawl.add([link(1)])
    fetch(crawl, link(2, anchor="cheese"), link(3))
    pick = crawl.next()
    assert pick.key == 2
    crawl.sent(pick.id)
    crawl.report(failure(pick))
    replay = policy.network.replay
    x, rewards, nexts, counts = replay.rows(np.arange(2))
    assert rewards.tolist() == [2.0, 0.0], "log2(1 + 3)"
    assert counts.tolist() == [3, 0]
    waiting = crawl.frontier.vectors([3])[0, : policy.layout.n_codes]
    assert waiting.tolist() in nexts[0, :2].tolist()
    assert x[1].tolist() in nexts[0, :3].tolist()
    assert policy.tree.counts.tolist() == [2]
    assert policy.tree.means.tolist() == [1.0]
    fetch(crawl)
    assert replay.rows(np.arange(2))[3].tolist() == [3, 0], "the next choice does not follow from a dead end"


@pytest.mark.parametrize(("reward", "learned"), [(0.0, 0.0), (1.0, 1.0), (3.0, 2.0), (-1.0, -1.0)])
def test_rewards(reward: float, learned: float) -> None:
    """0 and 1 are what they are; more counts less and less."""
    assert worth(reward) == learned


def published(cap: int | None = None, mode: str = "tree") -> Rules:
    """Return the published rules under a cap."""
    return Rules.of("tres-2023", mode, {}, topical=True, cap=cap)


def test_published_rules() -> None:
    """The behaviour of the released code, as far as numbers determine it."""
    rules = published()
    assert (rules.gamma, rules.split, rules.representatives, rules.warmup, rules.train_every) == (
        0.99,
        "variance",
        1,
        300,
        3,
    )
    assert (rules.min_samples, rules.batch, rules.in_links, rules.prior) == (5, 60, False, False)
    assert (rules.max_depth, rules.learning_rate, rules.target_every) == (18, 0.001, 500)
    assert published(5).batch == 128
    assert [published(cap).warmup for cap in (None, 5, 10, 20, 100, 50)] == [300, 300, 300, 500, 500, 300]
    assert (published(20).min_samples, published(20).min_share) == (10, 0.2)
    assert (published(mode="tree-random").min_samples, published(mode="tree-random").min_share) == (20, 0.2)
    policy = TreeQ(preset="tres-2023", rules={"split": "sample-variance"})
    Crawl(policy, frontier=memory_frontier)
    assert policy.layout.n_codes == 8, "section 2.4.1: three of the state, five of the action"
    assert policy.tree.rule == "sample-variance"
    assert policy.network.replay.capacity == 20_000


def test_recommended_rules() -> None:
    """Those that the page of the system names."""
    rules = Rules.of("", "tree", {}, topical=True, cap=None)
    assert (rules.gamma, rules.split, rules.tau, rules.min_child, rules.representatives) == (0.3, "chi2", 16, 5, 256)
    assert (rules.warmup, rules.eager, rules.train_every, rules.fan, rules.learning_rate) == (0, 500, 4, 16, 0.003)


def test_the_published_warm_up_is_random() -> None:
    """Until it ends, nothing is trained, and the choice is that of Tree-Random with the same seed."""
    web = Web()
    orders = []
    same = {"min_samples": 5, "min_share": 0.0, "batch": 5}
    for mode in ("tree", "tree-random"):
        policy = TreeQ(keywords=["cheese"], preset="tres-2023", mode=mode, rules={"warmup": 60, **same})
        crawl = crawl_of(web, policy)
        before = policy.network.online.weights.copy()
        orders.append([pick.key for pick in steps(crawl, web, 59)])
        assert (policy.network.online.weights == before).all()
        for _ in steps(crawl, web, 60):
            pass
        assert (policy.network.online.weights == before).all() == (mode == "tree-random")
    assert orders[0] == orders[1]


def test_a_seed_is_an_experience_by_the_published_rules() -> None:
    """It earns 1 before it is fetched."""
    policy = TreeQ(keywords=["cheese"], preset="tres-2023")
    Crawl(policy, frontier=memory_frontier, seed=0, strict=True).add(links(1, 2))
    assert policy.tree.counts.tolist() == [2]
    assert policy.tree.means.tolist() == [1.0]


@pytest.mark.parametrize(("preset", "tree", "network"), [("tres-2023", [4], 2), ("", [4], 4)])
def test_dead_ends_teach_the_tree(preset: str, tree: list[int], network: int) -> None:
    """By the published rules, a page without a new link is an experience of the tree only, and a failure of neither."""
    policy = TreeQ(keywords=["cheese"], preset=preset)
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True)
    crawl.add([link(1)])
    fetch(crawl, link(2), link(3), link(4))
    fetch(crawl)
    fetch(crawl)
    if preset:  # besides the seed
        pick = crawl.next()
        crawl.sent(pick.id)
        crawl.report(failure(pick))
    else:
        fetch(crawl)
    assert policy.tree.counts.tolist() == tree
    assert len(policy.network.replay) == network


@pytest.mark.few(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("in_flight", [1, 5])
def test_no_domain_gets_more_than_its_cap(mode: Any, in_flight: int) -> None:
    """With several in flight, too; failures do not use it up, nothing waits for ever, and each domain gets what there is."""
    web = Web(8, 40)
    crawl = crawl_of(web, TreeQ(keywords=["cheese"], per_domain=5, mode=mode))
    check_caps(crawl, web, in_flight, 5)


@pytest.mark.few(3)
@pytest.mark.parametrize("make", [BestFirst, OnlineLinkClassifier, partial(OnlineLinkClassifier, mode="bipartite")])
@pytest.mark.parametrize("in_flight", [1, 5])
def test_other_policies_keep_to_their_cap(make: Any, in_flight: int) -> None:
    """As TreeQ does."""
    web = Web(8, 40)
    check_caps(crawl_of(web, make(keywords=["cheese"], per_domain=5)), web, in_flight, 5)


def check_caps(crawl: Crawl, web: Web, in_flight: int, cap: int) -> None:
    """Crawl to the end, and see that each host gave exactly as many pages as it may."""
    came: Counter[str] = Counter()
    flying: list[Pick] = []
    while True:
        while len(flying) < in_flight and (pick := crawl.next()) is not None:
            flying.append(pick)
            crawl.sent(pick.id)
        if not flying:
            break
        pick = flying.pop(0)
        dead = pick.key % 7 == 6
        came[pick.host] += not dead
        assert came[pick.host] <= cap
        crawl.report(failure(pick) if dead else page(pick), [] if dead else web.links(pick.key))
    assert len(crawl.frontier) == 0, "what may never be asked for does not wait"
    assert came == dict.fromkeys([f"h{i}.test" for i in range(web.hosts)], cap)


def test_a_falling_cap_gives_up_what_is_above() -> None:
    """When the cap falls from 6 to 3, domains that have 3 pages get no more."""
    web = Web(8, 40)
    policy = TreeQ(keywords=["cheese"], per_domain=6, per_domain_least=3, falls_every=30)
    crawl = crawl_of(web, policy)
    early, late = Counter(), Counter()
    for i, pick in enumerate(steps(crawl, web)):
        dead = pick.key % 7 == 6
        if i >= 30 and early[pick.host] + late[pick.host] >= 3:
            pytest.fail(f"{pick.host} has {early[pick.host] + late[pick.host]} pages, and gave another one")
        (early if i < 30 else late)[pick.host] += not dead
    assert policy.domains.cap == 3
    assert early.most_common(1)[0][1] > 3
    assert len(crawl.frontier) == 0


def test_links_of_a_full_domain_are_given_up() -> None:
    """Links of a domain that is full only because of picks in flight stay queued."""
    policy = TreeQ(keywords=["xx"], per_domain=1)
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True)
    crawl.add(links(1, 2, host="a.test"))
    first = crawl.next()
    crawl.sent(first.id)
    assert crawl.next() is None
    crawl.add(links(3, host="www.a.test"))
    assert len(crawl.frontier) == 2, "the page in flight may fail"
    crawl.report(failure(first))
    second = crawl.next()
    crawl.sent(second.id)
    crawl.report(page(second), links(4, host="a.test"))
    assert crawl.next() is None
    assert crawl.frontier.states([3, 4]) == [State.GIVEN_UP] * 2
    crawl.add(links(5, host="a.test"))
    assert crawl.frontier.states([5]) == [State.GIVEN_UP], "it never waits"


def test_busy_hosts_are_left_alone() -> None:
    """Nothing of a busy host is chosen; where all are busy, nothing is, and nothing changes."""
    web = Web(4, 20)
    policy = TreeQ(keywords=["cheese"])
    crawl = crawl_of(web, policy, clock=Clock())
    for _ in steps(crawl, web, 10):
        pass
    all_hosts = {f"h{i}.test" for i in range(4)}
    for busy in ({"h0.test"}, {"h0.test", "h2.test"}, all_hosts - {"h3.test"}):
        pick = crawl.next(busy)
        assert pick.host not in busy
        crawl.release(pick.id)
    before = pickle.dumps(policy)
    assert crawl.next(all_hosts) is None
    assert pickle.dumps(policy) == before


@pytest.mark.parametrize("make", [TreeQ, BestFirst, OnlineLinkClassifier])
@pytest.mark.parametrize("rest", [{"mime": "application/pdf"}, {"error": "spider_error"}])
def test_a_cap_counts_whatever_came(make: Any, rest: dict[str, str]) -> None:
    """Files, and pages whose callback failed, are pages of their domain."""
    crawl = Crawl(make(keywords=["xx"], per_domain=2), frontier=memory_frontier, seed=0, strict=True)
    crawl.add(links(*range(50)))
    n = 0
    while (pick := crawl.next()) is not None:
        n += 1
        crawl.sent(pick.id)
        crawl.report(page(pick, **rest))
    assert n == 2
    assert len(crawl.frontier) == 0


@pytest.mark.parametrize("make", [TreeQ, BestFirst, OnlineLinkClassifier])
def test_a_dead_domain_is_left_at_last(make: Any) -> None:
    """Ten failures count as a page."""
    crawl = Crawl(make(keywords=["xx"], per_domain=2), frontier=memory_frontier, seed=0, strict=True)
    crawl.add(links(*range(50)))
    n = 0
    while (pick := crawl.next()) is not None:
        n += 1
        crawl.sent(pick.id)
        crawl.report(failure(pick))
    assert n == 20


def test_an_open_link_is_found_among_closed_ones() -> None:
    """However many links of its leaf are on a host that is full because of picks in flight."""
    policy = TreeQ(keywords=["cheese"], per_domain=1, rules={"representatives": 1})
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True)
    crawl.add(links(*range(300), host="full.test"))
    assert crawl.next().host == "full.test"
    crawl.add(links(1000, host="open.test"))
    assert crawl.next().key == 1000
    assert crawl.next() is None


def test_a_choice_of_nothing_changes_nothing() -> None:
    """If every domain is full because of picks in flight, nothing is given up, and no random number is used."""
    policy = TreeQ(keywords=["cheese"], per_domain=1)
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True, clock=Clock())
    crawl.add([*links(1, 2, host="a.test"), *links(3, 4, host="b.test")])
    assert crawl.next() is not None
    assert crawl.next() is not None
    before = pickle.dumps(policy)
    assert crawl.next() is None
    assert len(crawl.frontier) == 2
    assert pickle.dumps(policy) == before


def test_links_of_a_page_that_earned_nothing_have_no_relevant_parent() -> None:
    """Also where nothing led to that page: the start page of a site, say."""
    policy = TreeQ()
    crawl = Crawl(policy, frontier=memory_frontier, goal=lambda outcome: 0.0, seed=0, strict=True)
    crawl.add([link(1)])
    fetch(crawl, link(2))
    x = crawl.frontier.vectors([2])[0]
    names = policy.layout.names
    assert [int(x[names.index(name)]) for name in names[:3]] == [0, 0, 0]
    assert x[names.index("share of links from relevant pages")] == 0


@pytest.mark.parametrize("mode", MODES)
def test_links_that_could_not_be_placed_keep_to_the_cap(mode: Any) -> None:
    """They are chosen at last, as if nothing were known of them, and count for their domain."""

    class Failing(TreeQ):
        def place(self, links: Any, source: Any) -> Any:
            if source is None:
                raise ValueError("on purpose")
            return super().place(links, source)

    crawl = Crawl(Failing(keywords=["xx"], per_domain=2, mode=mode), frontier=memory_frontier, seed=0)
    crawl.add([*links(*range(40), host="a.test"), *links(*range(50, 90), host="b.test")])
    came: Counter[str] = Counter()
    flying: list[Pick] = []
    while True:
        while len(flying) < 4 and (pick := crawl.next()) is not None:
            flying.append(pick)
            crawl.sent(pick.id)
        if not flying:
            break
        came[flying[0].host] += 1
        crawl.report(page(flying.pop(0)))
    assert came == {"a.test": 2, "b.test": 2}
    assert crawl.counts["error/select"] == crawl.counts["error/learn"] == 0


@pytest.mark.parametrize("base", [TreeQ, BestFirst])
def test_a_subclass_without_parameters_knows_the_mission(base: Any) -> None:
    """A subclass whose constructor takes nothing gets keywords and classifier from the mission all the same."""

    class Mine(base):
        def __init__(self) -> None:
            super().__init__(per_domain=5)

    policy = Mine()
    crawl = Crawl(policy, frontier=memory_frontier, mission=Mission(words=("cheese",)), seed=0, strict=True)
    crawl.add([link(1), link(2, anchor="cheese")])
    assert crawl.next().key == 2
    if base is TreeQ:
        assert not policy.layout.groups


def test_a_cap_falls_once_at_each_step() -> None:
    """Whatever is taken back and asked for again there."""
    policy = TreeQ(keywords=["xx"], per_domain=40, per_domain_least=2, falls_every=10)
    domains = policy.domains
    for _ in range(9):
        domains.ask(domains.row("a.test"))
    for _ in range(5):
        domains.ask(domains.row("b.test"))
        domains.release(domains.row("b.test"))
    assert domains.cap == 20


def test_the_adaptive_cap_of_the_paper_by_hand() -> None:
    """Section 3.5: from five pages of a domain to two, after a third of the crawl, and no further."""
    domains = TreeQ(keywords=["xx"], per_domain=5, per_domain_least=2, falls_every=3).domains
    caps = []
    for i in range(10):
        domains.ask(domains.row(f"h{i}.test"))
        caps.append(domains.cap)
    assert caps == [5, 5, 2, 2, 2, 2, 2, 2, 2, 2]
    assert TreeQ(keywords=["xx"], per_domain=5, per_domain_least=2).domains.falls_every == 6_666, "a third of 20,000"


def test_what_is_taken_back_leaves_no_trace() -> None:
    """A pick that is released counts nowhere: not for its domain, its groups, or as what came next."""
    policy = TreeQ(per_domain=3)
    crawl = Crawl(policy, frontier=memory_frontier, goal=lambda outcome: 1.0, seed=0, strict=True)
    crawl.add([link(1)])
    fetch(crawl, *links(2, 3, 4))
    before = (policy.domains.flying.copy(), policy._features.groups.asked.copy(), policy.steps, policy._recent)
    pick = crawl.next()
    crawl.release(pick.id)
    for now, then in zip(
        (policy.domains.flying, policy._features.groups.asked, policy.steps, policy._recent), before, strict=True
    ):
        assert np.array_equal(now, then)
    fetch(crawl)
    _, _, _, counts = policy.network.replay.rows(np.arange(1))
    assert counts.tolist() == [4], "three links, and what came next"


def test_negative_rewards_do_not_make_a_group_look_good() -> None:
    """What was lost behind a page counts as nothing earned there."""
    policy = TreeQ()
    crawl = Crawl(policy, frontier=memory_frontier, goal=lambda outcome: -1.0, seed=0, strict=True)
    crawl.add([link(1)])
    fetch(crawl, link(2))
    fetch(crawl, link(3))
    pick = crawl.next()
    x = policy._chosen[pick.id]
    behind = [i for i, name in enumerate(policy.layout.names) if name.startswith("reward")]
    assert x[behind].tolist() == [0] * 6


def test_the_first_choice_follows_the_classifier() -> None:
    """Before anything was learned, what the features promise decides, the probability first."""

    class Cheese:
        digest = "cheese"

        def score(self, texts: Any) -> Any:
            return np.array([0.9 if "cheese" in text else 0.2 for text in texts])

    for prior, keys in ((True, {7}), (False, None)):
        chosen = set()
        for seed in range(8):
            crawl = Crawl(
                TreeQ(relevance=Cheese(), rules={"prior": prior}), frontier=memory_frontier, seed=seed, strict=True
            )
            crawl.add([link(i, anchor="cheese" if i == 7 else "bread") for i in range(30)])
            chosen.add(crawl.next().key)
        assert chosen == keys if keys else len(chosen) > 1


def test_seeds_of_a_crawl_that_runs_are_no_experience() -> None:
    """By the published rules, a seed earns 1 before it is fetched; links without a page that come later do not."""
    policy = TreeQ(keywords=["xx"], preset="tres-2023")
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True)
    crawl.add([link(1), link(2, depth=3)])
    assert policy.tree.counts.sum() == 1
    fetch(crawl)
    crawl.add([link(5)])
    assert policy.tree.counts.sum() == 2, "the seed and the page"


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "how"), [*((mode, "killed") for mode in MODES), ("tree", "stopped")])
def test_a_crawl_that_goes_on_makes_the_same_choices(tmp_path: Path, mode: Any, how: str) -> None:
    """Stopped or killed after each 37 pages, a crawl on disk asks for the same pages in the same order as in one piece."""
    web = Web(fan=40)

    def policy() -> TreeQ:
        return TreeQ(keywords=["cheese"], mode=mode, rules={"tau": 3.0}, per_domain=20)

    whole = [pick.key for pick in steps(crawl_of(web, policy()), web, 260)]
    parts: list[int] = []
    while len(parts) < 260:
        crawl = crawl_of(web, policy(), job=Job(tmp_path / "job", every=50))
        parts += [pick.key for pick in steps(crawl, web, min(37, 260 - len(parts)))]
        if how == "stopped":
            crawl.checkpoint()
        crawl.close()  # without a checkpoint, what is on disk is what a kill leaves
    assert parts == whole
    assert len(set(whole)) == 260


@pytest.mark.few(1)
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_the_same_choices_with_several_in_flight(tmp_path: Path, how: str) -> None:
    """If picks in flight arrive before the stop, with empty choices in between."""
    web = Web(fan=20)

    def policy() -> TreeQ:
        return TreeQ(keywords=["cheese"], per_domain=4)

    def part(crawl: Crawl, n: int) -> list[int]:
        came: list[int] = []
        flying: list[Pick] = []
        while True:
            while len(flying) < 6 and len(came) + len(flying) < n and (pick := crawl.next()) is not None:
                crawl.sent(pick.id)
                flying.append(pick)
            if not flying:
                return came
            came.append(flying[0].key)
            crawl.report(page(flying[0]), web.links(flying.pop(0).key))

    crawl, whole, parts = crawl_of(web, policy()), [], []
    for _ in range(8):
        whole += part(crawl, 9)
        going_on = crawl_of(web, policy(), job=Job(tmp_path / "job", every=20))
        parts += part(going_on, 9)
        if how == "stopped":
            going_on.checkpoint()
        going_on.close()
    assert parts == whole
    assert len(set(whole)) == 72


def test_other_parameters_are_refused_on_resume(tmp_path: Path) -> None:
    """The message names what differs."""
    web = Web()
    crawl = crawl_of(web, TreeQ(keywords=["cheese"]), job=Job(tmp_path / "job"))
    list(steps(crawl, web, 5))
    crawl.checkpoint()
    crawl.close()
    with pytest.raises(ResumeError, match="keywords was"):
        crawl_of(web, TreeQ(keywords=["bread"]), job=Job(tmp_path / "job"))


@pytest.mark.slow
def test_16_in_flight_lose_little() -> None:
    """With 16 in flight, at most a tenth of the harvest of one in flight is lost; over three webs."""
    shares = []
    for size in (20, 24, 28):
        web = Web(size, 40)
        rates = []
        for in_flight in (1, 16):
            crawl = crawl_of(web, TreeQ(keywords=["cheese"]))
            flying: list[Pick] = []
            hits = []
            while len(hits) < 250:
                while len(flying) < in_flight and (pick := crawl.next()) is not None:
                    flying.append(pick)
                    crawl.sent(pick.id)
                pick = flying.pop(0)
                crawl.report(page(pick), web.links(pick.key))
                hits.append(web.relevant(pick.key))
            rates.append(np.mean(hits))
        shares.append(rates[1] / rates[0])
    assert np.mean(shares) > 0.9


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"keywords": "cheese"}, "list of texts"),
        ({"keywords": [1]}, "list of texts"),
        ({"keywords": ["R"]}, "two letters"),
        ({"per_domain": 2.5}, "whole number"),
        ({"per_domain": True}, "whole number"),
        ({"per_domain": "10"}, "whole number"),
        ({"per_domain": 5, "per_domain_least": 0}, "whole number"),
        ({"rules": "x"}, "rules is a dict"),
        ({"rules": {"gamma": 7}}, "gamma"),
        ({"rules": {"gamma": -1.0}}, "gamma"),
        ({"rules": {"train_every": -1}}, "train_every"),
        ({"keywords": ["cheese"], "rules": {"link_model": True, "in_links": False}}, "in_links, which it needs"),
        ({"rules": {"tau": "x"}}, "tau"),
        ({"rules": {"batch": 1.5}}, "batch"),
        ({"rules": {"batch": 10**6}}, "batch"),
        ({"rules": {"representatives": 0}}, "representatives"),
        ({"rules": {"in_links": "no"}}, "in_links"),
        ({"rules": {"prior": None}}, "prior"),
        ({"rules": {"split": "gini"}}, "chi2"),
        ({"mode": "sync"}, "synchronous"),
        ({"preset": "tres"}, "tres-2023"),
        ({"rules": {"gama": 1}}, "gamma"),
        ({"relevance": "nowhere.npz"}, "nowhere.npz"),
        ({"relevance": 3}, "relevance is 3"),
    ],
)
def test_bad_parameters(params: dict[str, Any], said: str) -> None:
    """They are refused with the given and the expected value."""
    with pytest.raises(ConfigError, match=said):
        TreeQ(**params)


def test_it_is_small() -> None:
    """At its caps, a policy is pickled in at most 20 MB."""
    policy = TreeQ()
    crawl = Crawl(policy, frontier=memory_frontier, seed=0, strict=True)
    crawl.add([link(1)])
    x = np.random.default_rng(0).integers(0, 64, (33, policy.layout.n_codes)).astype(np.uint8)
    for i in range(20_000):
        policy.network.add(x[i % 33], 1.0, x[: policy.network.fan])
    for i in range(2000):
        policy.tree.add(x[i % 33], float(i % 2))
    assert len(pickle.dumps(policy)) < 22e6


@pytest.mark.slow
def test_on_a_single_site_it_finds_more_than_breadth_first() -> None:
    """Without keywords and classifier, items as reward: on the bundled portal, three times as many of the first fifth."""
    site = recorded(400, 0)
    found = []
    for policy in (TreeQ(), BreadthFirst()):
        harvest = simulate(policy, ItemsGoal(), site, budget=site.n_urls // 5, seed=0)
        found.append(harvest.found[-1] / harvest.exhaustive.worth)
    assert found[0] > 3 * found[1]


def test_leaves_are_described() -> None:
    """By the range of each feature in the tree's splits; the ranges of two leaves never overlap in all features."""
    policy = TreeQ(keywords=["xx"], rules={"link_model": False})
    Crawl(policy, frontier=memory_frontier, seed=0)
    x = np.zeros(policy.layout.n_codes, np.uint8)
    for i in range(60):
        x[5], x[2] = i, 63 * (i % 2)
        policy.tree.add(x, float(i >= 30))
    assert policy.tree.splits[0][:3] == (0, 5, 27)
    assert [policy.describe(leaf) for leaf in (0, 1)] == ["probability up to 0.43", "probability from 0.44"]
    for i in range(60):
        x[5], x[2] = 50, 63 * (i % 2)
        policy.tree.add(x, float(i % 2))
    assert policy.describe(2) == "relevant share of the path from 0.02 and probability from 0.44"
    assert policy.describe(3) == "no relevant share of the path and probability from 0.78"


def test_leaves_are_described_in_probabilities() -> None:
    """Even if the codes hold log-odds."""
    policy = TreeQ(keywords=["xx"])
    Crawl(policy, frontier=memory_frontier, seed=0)
    x = np.zeros(policy.layout.n_codes, np.uint8)
    for i in range(60):
        x[5] = i
        policy.tree.add(x, float(i >= 30))
    assert policy.tree.splits[0][:3] == (0, 5, 27)
    assert [policy.describe(leaf) for leaf in (0, 1)] == ["probability up to 0.33", "probability from 0.36"]


@pytest.mark.slow
def test_what_is_said_of_a_choice_is_a_probability() -> None:
    """As many pages were relevant as the probabilities add up to; to say them changes no choice."""
    web = Web(hosts=40)
    crawl, other = (crawl_of(web, TreeQ(keywords=["cheese"]), seed=1) for _ in range(2))
    came, said, found, values = [], [], [], []
    for _ in range(900):
        pick = crawl.next()
        assert pick is not None
        came.append(pick.key)
        why = crawl.policy.explain(pick)
        said.append(why["chance"])
        values.append(why["value"])
        crawl.sent(pick.id)
        dead = pick.key % 7 == 6
        found.append(web.relevant(pick.key))
        crawl.report(failure(pick) if dead else page(pick), [] if dead else web.links(pick.key))
    for i in range(0, 900, 150):
        assert abs(np.mean(said[i : i + 150]) - np.mean(found[i : i + 150])) < 0.2, i
    assert np.mean(said) == pytest.approx(np.mean(found), abs=0.03)
    assert max(values) > 1 >= max(said)
    assert min(said) >= 0
    order = np.argsort(said, kind="stable")
    low, high = (np.array(found)[part] for part in (order[:200], order[-200:]))
    assert low.mean() + 0.2 < high.mean()
    assert [pick.key for pick in steps(other, web, 900)] == came
