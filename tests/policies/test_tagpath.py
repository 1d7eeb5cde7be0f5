"""TagPath against the paper and its released code: how the classifier starts, what is fetched next, and why."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from scrapy_focus import ConfigError, Crawl, FilesGoal, State, memory_frontier
from scrapy_focus.learn.arms import auer, rewards_in
from scrapy_focus.learn.text import char_pairs
from scrapy_focus.policies.tagpath.policy import FIRST, PROBES, TARGETS, TagPath
from tests.made import fetch, file, link, page

NAV, MAIN, LIST = "html/body/nav/ul/li/a", "html/body/main/section.list/h2/a.title", "html/body/footer#end/p/a"


def dataset(number: int, path: str = MAIN, **rest):
    """Return a link that looks like a file."""
    return link(number, url=f"http://h/files/table-{number}.pdf", tag_path=path, **rest)


def article(number: int, path: str = NAV, **rest):
    """Return a link that looks like a page."""
    return link(number, url=f"http://h/articles/about-{number}.html", tag_path=path, **rest)


def started(policy: TagPath, *, seed: int = 0, trained: bool = True) -> Crawl:
    """Return a crawl whose classifier knows files from pages."""
    if trained:
        for i in range(3 * policy.batch):
            policy.predictor.observe(char_pairs((dataset if i % 2 else article)(i).url), bool(i % 2))
    return Crawl(policy, frontier=memory_frontier, goal=FilesGoal(), seed=seed, strict=True)


def steps(crawl: Crawl, n: int) -> list[tuple[str, int, int]]:
    """Fetch n picks, files as what they look like, and return method, key and arm of each."""
    taken = []
    for _ in range(n):
        pick = crawl.next()
        crawl.sent(pick.id)
        crawl.report((file if "/files/" in pick.url else page)(pick))
        taken.append((pick.method, pick.key, pick.arm))
    return taken


def test_the_first_labels_come_from_heads() -> None:
    """The start page and nine HEADs make the first ten labels; then the classifier is trained and no HEAD is sent."""
    crawl = started(TagPath(), trained=False)
    crawl.add([article(1)])
    fetch(crawl, *[(dataset if i % 2 else article)(i) for i in range(2, 22)])
    assert crawl.frontier.waiting.tolist()[: FIRST + 1] == [0, 20, 0]
    taken = steps(crawl, 13)
    heads = [key for method, key, _ in taken if method == "HEAD"]
    assert heads == list(range(2, 11)), "HEADs go out in the order of the page"
    assert crawl.policy.predictor.labels == 10
    assert [key for method, key, arm in taken if method == "GET"] == [3, 5, 7, 9], "files are fetched at once"
    assert crawl.policy.predictor.ready
    assert crawl.frontier.waiting[PROBES] == 0, "what waits for a HEAD is classified without"
    crawl.add([dataset(50), article(51)], page(crawl.next()))
    assert crawl.frontier.waiting[PROBES] == 0


def test_a_head_and_its_get_are_one_label() -> None:
    """A link that taught the classifier with its HEAD does not teach it again when it is fetched."""
    crawl = started(TagPath(batch=4), trained=False)
    crawl.add([article(1)])
    fetch(crawl, dataset(2), dataset(3), article(4))
    taken = steps(crawl, 6)
    assert [(method, key) for method, key, _ in taken[:5]] == [
        ("HEAD", 2), ("GET", 2), ("HEAD", 3), ("GET", 3), ("HEAD", 4)
    ]  # fmt: skip
    assert crawl.policy.predictor.labels == 4
    assert not crawl.policy._labelled
    crawl.add([article(5)])
    steps(crawl, 1)
    assert crawl.policy.predictor.labels == 5, "what was not looked at before is a label"


def test_seeds_are_pages() -> None:
    """Start URLs are never probed, whatever they look like to a classifier that knows nothing."""
    crawl = started(TagPath(), trained=False)
    crawl.add([dataset(1), article(2)])
    assert crawl.frontier.waiting[:FIRST].sum() == 0


def test_without_probes_nothing_is_a_target_at_first() -> None:
    """With probe=False no HEAD is sent: links are pages until enough of them were fetched."""
    crawl = started(TagPath(probe=False), trained=False)
    crawl.add([article(1)])
    fetch(crawl, *[(dataset if i % 2 else article)(i) for i in range(2, 22)])
    assert crawl.frontier.waiting[:FIRST].sum() == 0
    taken = steps(crawl, 20)
    assert {method for method, *_ in taken} == {"GET"}
    assert crawl.policy.predictor.labels == 21


@pytest.mark.parametrize("status", [403, 405, 501])
def test_servers_that_know_no_head_lose_no_link(status: int) -> None:
    """Where a HEAD is refused, or says no type, the link is fetched as a page; where it is gone, or of a type that is
    neither page nor target, it is given up.
    """
    crawl = started(TagPath(), trained=False)
    crawl.add([article(1)])
    fetch(crawl, article(2), article(3), article(4), article(5))
    for outcome in (
        {"status": status, "mime": "text/plain"}, {"mime": ""}, {"status": 404, "mime": "text/html"},
        {"mime": "image/png"},
    ):  # fmt: skip
        pick = crawl.next()
        crawl.report(page(pick, **outcome))
    assert crawl.frontier.states([2, 3, 4, 5]) == [State.WAITING, State.WAITING, State.PROBED, State.PROBED]
    assert crawl.policy.predictor.labels == 1


@pytest.mark.parametrize("answer", [{"status": 404}, {"status": 429}, {"status": None, "error": "failure: Timeout"}])
def test_a_server_that_answers_no_head_loses_no_link(answer: dict) -> None:
    """After a batch of failed HEADs no more are sent, and all links are pages, those that were asked for too."""
    crawl = started(TagPath(batch=3), trained=False)
    crawl.add([article(1)])
    fetch(crawl, *[article(i) for i in range(2, 20)])
    for _ in range(3):
        pick = crawl.next()
        assert pick.method == "HEAD"
        crawl.report(page(pick, **answer))
    assert sorted(fetch(crawl).key for _ in range(18)) == list(range(2, 20))
    assert crawl.next() is None


def test_what_robots_forbid_is_given_up() -> None:
    """A HEAD that robots.txt does not allow is not followed by a GET."""
    crawl = started(TagPath(), trained=False)
    crawl.add([article(1)])
    fetch(crawl, article(2))
    crawl.report(page(crawl.next(), status=None, mime="", error="ignored"))
    assert crawl.next() is None


@pytest.mark.parametrize(
    "params",
    [
        {"accounting": "ful"}, {"index": "hnsw"}, {"theta": 7}, {"m": 16, "w": 15}, {"n": 0}, {"classifier": "forest"},
        {"features": "anchor"}, {"case_sensitive": 1},
    ],
)  # fmt: skip
def test_parameters_are_checked(params: dict) -> None:
    """An invalid value is refused with the valid ones."""
    with pytest.raises(ConfigError, match=next(iter(params))):
        TagPath(**params)


def test_predicted_targets_come_before_any_page() -> None:
    """What looks like a file is fetched first, first in first out, then pages; with chance 1."""
    crawl = started(TagPath())
    crawl.add([article(1), dataset(2), article(3), dataset(4)])
    pick = crawl.next()
    assert (pick.key, pick.arm, pick.chance) == (2, TARGETS, 1.0)
    crawl.report(file(pick))
    assert fetch(crawl, dataset(5)).key == 4
    assert fetch(crawl).key == 5
    assert crawl.next().arm >= FIRST


@pytest.mark.parametrize("trained", [True, False])
def test_targets_and_probes_queue(trained: bool) -> None:
    """Each link that is to be fetched or looked at soon has a lower rank than the one before, over all pages."""
    policy = TagPath()
    crawl = started(policy, trained=trained)
    crawl.add([article(1), article(2)])
    source = page(crawl.next())
    places = [place for i in range(3) for place in policy.place([dataset(2 * i), dataset(2 * i + 1)], source)]
    assert {place.arm for place in places} == {TARGETS if trained else PROBES}
    ranks = [place.rank for place in places]
    assert ranks == sorted(set(ranks), reverse=True)


def test_links_are_grouped_by_their_tag_paths() -> None:
    """Equal and similar paths share an arm, others have their own, numbered as they come."""
    crawl = started(TagPath())
    deep = "html/body.front/div#page/div.content/main/section/ul.teasers/li#item-{}/a"
    paths = [NAV, MAIN, NAV, deep.format(1), deep.format(2), NAV.replace("ul", "ol"), LIST]
    crawl.add([article(i, path) for i, path in enumerate(paths)])
    arms = {key: arm for _, key, arm in steps(crawl, 7)}
    assert [arms[i] for i in range(7)] == [2, 3, 2, 4, 4, 2, 5]


def test_links_weigh_in_their_cluster_one_by_one() -> None:
    """Three links of one page with the same path move the centroid three times as far as one."""
    policy = TagPath(probe=False)
    crawl = started(policy)
    crawl.add([article(i) for i in range(3)])
    _, values = policy.projector.project(NAV, [])
    assert policy.clusters.centroid(0).sum() == pytest.approx(3 * values.sum())


def test_ids_in_every_teaser_split_short_paths() -> None:
    """One different id changes two of the L + 2 pairs of a path of L elements: 5/7 is below theta, 6/8 is just enough."""
    for extra, arms in (("", 2), ("/div", 1)):
        crawl = started(TagPath())
        crawl.add([article(i, f"html/body{extra}/ul/li#item-{i}/a") for i in range(2)])
        assert len({arm for _, _, arm in steps(crawl, 2)}) == arms


@pytest.mark.slow
def test_the_choice_within_an_arm_is_uniform() -> None:
    """Each link of an arm leaves first equally often, with the chance that the pick says."""
    firsts: Counter[int] = Counter()
    for seed in range(600):
        crawl = Crawl(TagPath(probe=False), frontier=memory_frontier, goal=FilesGoal(), seed=seed, strict=True)
        crawl.add([*[article(i) for i in range(4)], article(9, LIST)])
        pick = crawl.next()
        assert pick.chance == 0.25
        firsts[pick.key] += 1
    assert sorted(firsts) == [0, 1, 2, 3]
    assert chisquare(list(firsts.values())).pvalue > 0.01


def test_arms_that_were_never_pulled_come_first() -> None:
    """From the second request on (ln 1 = 0), arms are pulled once, the oldest first, before any is pulled again."""
    crawl = started(TagPath())
    crawl.add([article(i, path) for i, path in enumerate([NAV, NAV, NAV, MAIN, MAIN, LIST])])
    assert [arm for _, _, arm in steps(crawl, 4)] == [FIRST, FIRST, FIRST + 1, FIRST + 2]


def test_sleeping_and_busy_arms_are_passed_over() -> None:
    """The best arm among those with something to take is chosen; None if all sleep or are busy."""
    policy = TagPath(alpha=0.001)
    crawl = started(policy)
    crawl.add([article(1, NAV, host="a"), article(2, MAIN, host="b"), article(3, MAIN, host="a")])
    policy.stats.earn(FIRST + 1, 50.0)
    for arm in (FIRST, FIRST + 1):
        policy.stats.pull(arm)
    assert crawl.next({"a", "b"}) is None
    assert fetch(crawl, busy={"b"}).key == 3
    assert fetch(crawl, busy={"b"}).key == 1
    assert fetch(crawl).key == 2
    assert crawl.next() is None


def test_explanations_are_the_numbers_of_the_choice() -> None:
    """Mean, bonus and score are those that AUER gave when the arm was chosen, over a crawl with sixteen in flight."""
    policy = TagPath()
    crawl = started(policy)
    rng = np.random.default_rng(0)
    crawl.add([article(i, [NAV, MAIN, LIST][i % 3]) for i in range(60)])
    out = []
    for _ in range(60):
        scores = auer(policy.stats, policy.steps, alpha=policy.alpha)
        pick = crawl.next()
        why = policy.explain(pick)
        assert why["score"] == pytest.approx(scores[pick.arm])
        assert why["score"] == pytest.approx(why["mean"] + why["bonus"])
        assert scores[pick.arm] == scores[FIRST:][crawl.frontier.awake()[FIRST:] > 0].max(initial=scores[pick.arm])
        assert why["tag_path"] in (NAV, MAIN, LIST)
        out.append(pick)
        if len(out) == 16:
            done = out.pop(0)
            policy.stats.earn(done.arm, float(rng.random()))
            crawl.report(page(done))


def test_predictions_are_explained_in_words() -> None:
    """Targets and probes have no score; the words say what they are."""
    policy = TagPath()
    crawl = started(policy, trained=False)
    crawl.add([article(1)])
    fetch(crawl, dataset(2))
    head = crawl.next()
    assert policy.explain(head) == {"kind": "unknown: HEAD first"}
    crawl.report(file(head))
    assert policy.explain(crawl.next()) == {"kind": "predicted target"}


def test_the_step_count_is_that_of_requests() -> None:
    """Every pick counts, HEAD or GET, target or page; one that is handed back does not."""
    policy = TagPath(batch=2)
    crawl = started(policy, trained=False)
    crawl.add([article(1)])
    fetch(crawl, dataset(2), article(3))
    assert len(steps(crawl, 3)) == 3
    assert policy.steps == 4
    crawl.add([article(4)])
    pulls = policy.stats.pulls.copy()
    crawl.release(crawl.next().id)
    assert policy.steps == 4
    assert policy.stats.pulls.tolist() == pulls.tolist()


@pytest.mark.parametrize("url", ["http://h/a.JPG", "http://h/a.jpg?size=2", "http://h/b.mp4", "http://h/c.css#x"])
def test_blocked_extensions_are_never_asked_for(url: str) -> None:
    """Pictures and the like get no placement, in any case of letters and with any query, but as seeds."""
    crawl = started(TagPath())
    crawl.add([article(1)])
    fetch(crawl, link(2, url=url, tag_path=NAV))
    assert crawl.next() is None
    assert crawl.counts["link/given_up"] == 1
    for policy in (TagPath(blocked=()), TagPath()):
        assert started(policy).add([link(1, url=url, tag_path=NAV)]) == 1


def test_where_anything_can_be_a_target_extensions_are_tried() -> None:
    """With full accounting three pictures are fetched before pictures are given up, and pages that end in .js are not."""
    crawl = started(TagPath(accounting="full", probe=False))
    crawl.add([article(1)])
    pictures = [link(i, url=f"http://h/{i}.png", tag_path=NAV) for i in range(2, 5)]
    fetch(crawl, *pictures, link(5, url="http://h/node.js", tag_path=MAIN))
    for _ in range(4):
        pick = crawl.next()
        assert pick is not None
        crawl.report(page(pick, mime="text/html" if pick.key == 5 else "image/png"))
    crawl.add([link(6, url="http://h/seed.html", tag_path=NAV)])
    fetch(crawl, link(7, url="http://h/7.png", tag_path=NAV), link(8, url="http://h/vue.js", tag_path=MAIN))
    assert crawl.frontier.states([7, 8]) == [State.GIVEN_UP, State.WAITING]


def test_the_best_arms_are_named() -> None:
    """Arms with a reward, best first, with their rewards and pulls."""
    policy = TagPath()
    crawl = started(policy)
    crawl.add([article(i, path) for i, path in enumerate([NAV, MAIN, LIST])])
    for arm, pulls, reward in ((2, 2, 1.0), (3, 4, 8.0), (4, 5, 0.0)):
        policy.stats.earn(arm, reward)
        for _ in range(pulls):
            policy.stats.pull(arm)
    assert policy.best_arms(5) == [(MAIN, 8.0, 4), (NAV, 1.0, 2)]
    assert policy.best_arms(1) == [(MAIN, 8.0, 4)]
    assert rewards_in(policy.tables()) == (2, 1.25, 0.75, 2.0, 0.5)


def test_defaults_are_those_of_the_paper() -> None:
    """Section 4 of the paper and the released code: theta 0.75, n 2, m 12, w 15, alpha 2 sqrt 2, batches of 10."""
    policy = TagPath()
    assert (policy.theta, policy.n, policy.m, policy.w, policy.batch) == (0.75, 2, 12, 15, 10)
    assert policy.alpha == pytest.approx(math.sqrt(8))
