"""The bandit of hosts keeps its promises in every form: killed, pickled, with few links, and with wrong parameters."""

from __future__ import annotations

import pickle
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import ConfigError, HostBandit, Job, Outcome, ResumeError
from scrapy_focus.lab.checks.policy import check_policy
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.hostbandit import ParentFirst
from scrapy_focus.policies.hostbandit.scores import SCORES
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.topic.models import load_relevance
from scrapy_focus.topic.relevance import LinearRelevance
from tests.made import links
from tests.policies.manyhosts import ManyHosts, crawl_of, keys, steps

if TYPE_CHECKING:
    from scrapy_focus import Crawl

PRESET = "cikm-2014"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a model where recipes and cakes are good, and news and about pages are not."""
    path = tmp_path_factory.mktemp("model") / "cakes.npz"
    texts = ["recipes 0 html", "recipes cakes html", "cakes 0", "news 0 html", "about 0 html", "shop item 0 html"]
    LinearRelevance().fit(texts * 3, [True, True, True, False, False, False] * 3).save(path)
    return str(path)


def made(score: str | None = None, preset: str = "", classifier: str = "hashed", **params: Any) -> Any:
    """Return what makes a bandit that draws some hosts at random."""
    return partial(HostBandit, score=score, preset=preset, classifier=classifier, explore=0.2, **params)


FORMS = [made(score) for score in SCORES]
FORMS += [made(score, PRESET) for score in SCORES if score != "joint"]
FORMS += [made(None, preset, classifier) for preset, classifier in (("", "bayes"), (PRESET, "bayes"), ("", "sgd"))]
FORMS += [made(arm=arm, decay="exponential", places=False, candidates=1) for arm in ("host", "section")]


@pytest.mark.few(3)
@pytest.mark.parametrize("make", FORMS, ids=lambda make: " ".join(map(str, make.keywords.values())))
def test_promises_are_kept_with_every_score_and_classifier(make: Any) -> None:
    check_policy(make, pages=40)


@pytest.mark.parametrize("preset", ["", PRESET])
def test_promises_are_kept_with_a_static_classifier(model: str, preset: str) -> None:
    check_policy(made(None, preset, "static", model=model), pages=40)


# Killed, pickled


BUSY = ("w0.d0.test", "w1.d0.test")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "make",
    [
        made(), made("pooled thompson x best"), made("thompson", PRESET), made(classifier="bayes", arm="section"),
        made(None, PRESET, per_domain=20), made(per_domain=20, arm="host"),
    ],
    ids=["joint", "pooled thompson", "published", "sections", "published, capped", "capped"],
)  # fmt: skip
def test_a_crawl_that_was_killed_makes_the_same_choices(make: Any, tmp_path: Path) -> None:
    """Killed at seven places, each time without any chance to say so: the order is that of one that was not."""
    web = ManyHosts(200, seed=3, dead=0.05)
    whole: list[int] = []
    lengths = (11, 3, 24, 7, 30, 16, 9)
    crawl = crawl_of(make(), web.link(0))
    for n in (*lengths, 10**6):
        whole += one_by_one(crawl, web, n)
    order = []
    for number, n in enumerate((*lengths, 10**6)):
        folder = tmp_path / str(number)
        if number:
            shutil.copytree(tmp_path / str(number - 1), folder)
            crawl.close()
        crawl = crawl_of(make(), job=Job(folder / "focus"))
        if not number:
            crawl.add([web.link(0)])
        assert crawl.state.choices.otherwise == 0
        order += one_by_one(crawl, web, n)
        crawl.job.flush()
    crawl.close()
    assert order == whole
    assert len(order) > 100


def one_by_one(crawl: Crawl, web: ManyHosts, n: int) -> list[int]:
    """Fetch so many pages, one after the other, with hosts that are busy at some times."""
    order = []
    while len(order) < n:
        busy = BUSY[: len(order) % 3]
        pick = crawl.next(busy) or crawl.next()
        if pick is None:
            break
        assert crawl.sent(pick.id)
        web.report(crawl, pick)
        order.append(pick.key)
    return order


@pytest.mark.few(1)
@pytest.mark.parametrize("make", [made(), made("thompson x best", PRESET), made("holistic", arm="section")], ids=str)
def test_pickled_in_mid_crawl_it_chooses_the_same(make: Any) -> None:
    """With 16 in flight, which are still there after."""
    web, orders = ManyHosts(250, seed=6), []
    for stored in (False, True):
        crawl, flying = crawl_of(make(), *map(web.link, range(20))), []
        order = keys(steps(crawl, web, in_flight=16, n=80, flying=flying))
        if stored:
            crawl.guard.take_up(pickle.loads(pickle.dumps(crawl.policy)))
            crawl.policy.attach(crawl.frontier)
        orders.append(order + keys(steps(crawl, web, in_flight=16, flying=flying)))
    assert orders[0] == orders[1]
    assert len(orders[0]) > 150


@pytest.mark.few(3)
@pytest.mark.parametrize("preset", ["", PRESET])
@pytest.mark.parametrize("arm", ["domain", "section"])
@pytest.mark.parametrize("score", ["thompson x best", "pooled thompson", "posterior x best"])
def test_a_choice_of_nothing_changes_nothing(score: str, arm: str, preset: str) -> None:
    """With all hosts busy, or all domains full: the policy is the same to the byte, and what it chooses then."""
    web = ManyHosts(200, seed=8)
    busy = {web.link(number).host for number in range(200)}
    policy = HostBandit(score=score, arm=arm, preset=preset, explore=0.5, per_domain=20)
    crawl = crawl_of(policy, *map(web.link, range(60)))
    for _ in steps(crawl, web, n=30):
        pass
    while True:
        before = pickle.dumps(policy)
        assert policy.select(busy) is None
        assert pickle.dumps(policy) == before
        if (pick := crawl.next()) is None:
            break
    assert len(crawl.frontier) > 0
    assert pick is None
    assert pickle.dumps(policy) == before


@pytest.mark.few(1)
@pytest.mark.parametrize("make", [made(), made(None, PRESET), made(per_domain=30)], ids=["", PRESET, "capped"])
def test_where_few_links_may_wait_the_crawl_goes_on(make: Any) -> None:
    """Hosts whose links were all given up are no choice, until there are new ones."""
    web = ManyHosts(400, domains=60, seed=9)
    orders = []
    for _ in range(2):
        crawl = crawl_of(make(), *map(web.link, range(100)), most_waiting=30)
        order = []
        for pick in steps(crawl, web, in_flight=4):
            order.append(pick.key)
            assert crawl.frontier.waiting[list(crawl.policy.hosts.awake)].all()
        orders.append(order)
        assert crawl.counts["link/dropped"] > 50
        assert len(crawl.frontier) == 0
        assert not crawl.policy.hosts.awake
        assert crawl.counts["select/none"] == 0
    assert orders[0] == orders[1]
    assert len(orders[0]) == len(set(orders[0])) > 100


# Classifiers and baselines


def shares(policy: Any, web: ManyHosts, n: int) -> float:
    """Return the share of good pages among the first so many."""
    crawl = crawl_of(policy, *map(web.link, range(0, web.n, 4)))
    return sum(web.good[key - 1] for key in keys(steps(crawl, web, n=n))) / n


@pytest.mark.slow
def test_each_form_finds_more_than_breadth_first() -> None:
    """On a web where a third of the hosts have data on most of their recipes, in a quarter of the requests."""
    web = ManyHosts(1_200, domains=12, seed=11)
    base = shares(BreadthFirst(), web, 300)
    found = {
        (classifier, preset): shares(HostBandit(classifier=classifier, preset=preset), web, 300)
        for classifier in ("hashed", "bayes") for preset in ("", PRESET)
    }  # fmt: skip
    assert all(share > (1.2 if preset else 2) * base for (_, preset), share in found.items()), (base, found)


def test_a_static_model_is_never_taught(model: str) -> None:
    """Its links keep their score from when they are found; hosts are still learned."""
    crawl = crawl_of(HostBandit(classifier="static", model=model, score="best", explore=0, per_domain=1_000))
    web = ManyHosts(200, seed=3)
    crawl.add([web.link(number) for number in range(200)])
    relevance = load_relevance(model)
    ranks = []
    for pick in steps(crawl, web):
        kind = web.kind[pick.key - 1].replace("/", " ")
        assert pick.rank == pytest.approx(relevance.score([f"{kind} 0 html "])[0], abs=1e-6)
        ranks.append(pick.rank)
    assert ranks == sorted(ranks, reverse=True)
    assert "/recipes/" in crawl.policy.best_arms(1)[0][0] or crawl.policy.best_arms(1)[0][1] > 3
    anchored = HostBandit(classifier="static", model=model)
    plain = HostBandit(classifier="static", model=model, places=False)
    said = []
    for policy in (anchored, plain):
        crawl = crawl_of(policy, links(1, url="http://h/x", anchor="cakes recipes")[0])
        said.append(crawl.next().rank)
    assert said[0] > said[1]


def test_links_of_pages_worth_something_come_first_and_equal_ones_in_the_order_in_which_they_were_found() -> None:
    web = {1: [10, 11], 2: [20, 21], 3: [30]}
    crawl = crawl_of(ParentFirst(), *links(1, 2, 3))
    order = []
    while (pick := crawl.next()) is not None:
        order.append(pick.key)
        crawl.report(Outcome(pick, 200, "text/html", items=float(pick.key in (2, 21))), links(*web.get(pick.key, ())))
    assert order == [1, 2, 20, 21, 3, 10, 11, 30]


# Parameters


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"score": "best score"}, "score is one of"), ({"score": 1}, "score is one of"), ({"arm": "page"}, "arm is"),
        ({"arm": None}, "arm is one of"), ({"explore": -0.1}, "explore is a number in [0, 1]"),
        ({"explore": 1.01}, "explore is a number in [0, 1]"), ({"explore": "0.1"}, "explore is a number"),
        ({"explore": float("nan")}, "explore is a number"), ({"explore": True}, "explore is a number"),
        ({"decay": "linear"}, "decay is one of"), ({"decay_every": 0}, "decay_every"),
        ({"decay_every": 10.5}, "decay_every is a whole number"), ({"classifier": "forest"}, "classifier is one of"),
        ({"classifier": "static"}, "focus train"), ({"model": "x.npz"}, "focus train"), ({"model": 7}, "model is a text"),
        ({"classifier": "static", "model": "nowhere.npz"}, "nowhere.npz"), ({"places": 1}, "places is True or False"),
        ({"per_domain": 0}, "per_domain"), ({"per_domain": True}, "per_domain"), ({"per_domain": 2.0}, "per_domain"),
        ({"candidates": 0}, "candidates"), ({"candidates": 2.5}, "candidates is a whole number"),
        ({"per_domain": "10"}, "per_domain"), ({"strength": 0}, "strength is a number above 0"), ({"strength": float("inf")}, "strength is a number"),
        ({"preset": "cikm"}, "preset is one of"), ({"score": "joint", "preset": PRESET}, "joint"),
        ({"score": "joint", "classifier": "bayes"}, "joint"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_parameters_are_refused_in_one_line(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        HostBandit(**wrong)
    assert said in str(error.value)
    assert str(error.value).startswith("HostBandit(")
    assert "\n" not in str(error.value)


def test_files_that_are_no_model_are_refused_in_one_line(model: str, tmp_path: Path) -> None:
    """A torn one, one of another kind, what a policy learned, and a folder."""
    torn, text, learned = tmp_path / "torn.npz", tmp_path / "text.npz", tmp_path / "learned.npz"
    torn.write_bytes(Path(model).read_bytes()[:-200])
    text.write_text("recipes and cakes")
    bandit = BranchingBandit()
    crawl_of(bandit, *links(1, 2)).next()
    bandit.save(learned)
    for path in (torn, text, learned, tmp_path):
        with pytest.raises(ConfigError) as error:
            HostBandit(classifier="static", model=str(path))
        assert path.name in str(error.value)
        assert "\n" not in str(error.value)


def test_a_stored_crawl_of_other_parameters_is_refused(tmp_path: Path) -> None:
    """But for lambda, which a later run may set otherwise."""
    crawl_of(HostBandit(), *links(1, 2), job=Job(tmp_path / "focus")).close()
    crawl_of(HostBandit(explore=0.5), job=Job(tmp_path / "focus")).close()
    with pytest.raises(ResumeError, match="score was None and is 'best'"):
        crawl_of(HostBandit(score="best"), job=Job(tmp_path / "focus"))
