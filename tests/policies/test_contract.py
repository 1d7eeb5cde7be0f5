"""Every policy keeps the promises of ``core.policy``."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

import scrapy_focus.policies
from scrapy_focus import FilesGoal, Mission, Policy, check_policy
from scrapy_focus.core.abilities import FetchesAgain
from scrapy_focus.goals.topic import TopicGoal
from scrapy_focus.lab.checks.policy import _Site
from scrapy_focus.policies.bestfirst import BestFirst
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.focused import Focused
from scrapy_focus.policies.linkclassifier import OnlineLinkClassifier
from scrapy_focus.policies.linkfloor import LinkFloor
from scrapy_focus.policies.tagpath.offline import TagPathOffline
from scrapy_focus.policies.tagpath.oracles import Omniscient, OracleTagPath
from scrapy_focus.policies.tagpath.policy import TagPath
from scrapy_focus.policies.treeq.files import OracleTreeQ
from scrapy_focus.policies.treeq.policy import TreeQ
from scrapy_focus.topic.about import AboutTopic
from tests.made import classes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class EveryThird:
    """A truth where every third URL of the small web is a target and the others are pages, including dead ones."""

    def kind(self, url):
        return "page" if int(url.rpartition("/")[2]) % 3 else "target"

    def targets(self):
        return []


class OnlyTargets(EveryThird):
    """A truth with targets only."""

    def kind(self, url):
        return "target"


class ToldOmniscient(Omniscient):
    """Informed again by the code that opens or resumes the crawl, unlike in ``check_policy``."""

    def attach(self, frontier):
        self.inform(OnlyTargets())
        super().attach(frontier)


class Web(OnlyTargets):
    """The same, for policies that need the links of the small web."""

    def __init__(self, site):
        self.site = site

    def targets(self):
        return [self.site.link(page) for page in range(self.site.pages)]

    def leads_to(self, key):
        return np.unique([] if key in self.site.dead else self.site.links[key]).astype(np.int64)


class ToldLinkFloor(LinkFloor):
    """The same for the link floor."""

    def attach(self, frontier):
        self.inform(Web(_Site(60)))
        super().attach(frontier)


class ToldOracle(OracleTagPath):
    """The same for the oracle."""

    def attach(self, frontier):
        self.inform(EveryThird())
        super().attach(frontier)


class ToldTreeQ(OracleTreeQ):
    """The same for TRES adapted to files, where every third URL is a target."""

    def attach(self, frontier):
        truth = Web(_Site(60))
        truth.kind = EveryThird().kind
        self.inform(truth)
        super().attach(frontier)


class ToldOffline(TagPathOffline):
    """The same for the offline baseline where it counts by the truth."""

    def attach(self, frontier):
        self.inform(EveryThird())
        super().attach(frontier)


TOLD = {
    LinkFloor: ToldLinkFloor,
    Omniscient: ToldOmniscient,
    OracleTagPath: ToldOracle,
    OracleTreeQ: ToldTreeQ,
}
POLICIES = [cls for cls in classes_of(scrapy_focus.policies) if issubclass(cls, Policy) and not inspect.isabstract(cls)]
MODES = [
    partial(TagPath, probe=False),
    partial(TagPath, accounting="full"),
    partial(TagPath, features="context", classifier="passive-aggressive", case_sensitive=True),
    partial(TagPath, probe=False, features="context", classifier="bayes"),
    partial(TagPath, probe=False, accounting="full", max_clusters=1),
    partial(Focused, warmup=20, batch=5),
    partial(Focused, warmup=0, batch=1),
    partial(TagPathOffline, warmup=20),
    partial(ToldOffline, warmup=20, benefit="truth"),
    partial(ToldOracle, accounting="full"),
    *[partial(TreeQ, mode=mode) for mode in ("tree-random", "synchronous", "asynchronous", "random")],
    *[partial(TreeQ, keywords=["page"], mode=mode, rules={"warmup": 10}) for mode in ("tree", "synchronous")],
    partial(TreeQ, keywords=["page"], preset="tres-2023", rules={"warmup": 20}),
    partial(TreeQ, per_domain=1000, rules={"split": "variance"}),
    partial(ToldTreeQ, preset="", mode="asynchronous"),
    partial(BestFirst, keywords=["page", "1"], per_domain=1000),
    partial(OnlineLinkClassifier, learning_limit=7, begin="topic", keywords=["page"], per_domain=1000),
    *[partial(OnlineLinkClassifier, mode="bipartite", learning_limit=limit, most_scored=4) for limit in (9, 500)],
    partial(BranchingBandit, targets=["text/csv"], words=["page"], unit="bytes"),
    partial(BranchingBandit, unit="seconds", horizon=0, noise=0.0),
    partial(BranchingBandit, window=2, explore=1.0, candidates=1, theta=1.0),
]


def test_policies_are_found() -> None:
    """The policies that everybody knows are among those that are tested."""
    assert {"BreadthFirst", "DepthFirst", "Random", "TagPath"} <= {cls.__name__ for cls in POLICIES}


MISSIONS = {
    "files, words": Mission.of(FilesGoal(), words=["page"]),
    "files, bytes": Mission.of(FilesGoal(), unit="bytes"),
    "anything": Mission(),
}
SMALL = 20  # pages, of a site that is fetched ten times


def each() -> Iterator[object]:
    """Yield every policy with each mission, one of them by default, and every mode of one with a mission, in turn."""
    for seed, name in enumerate(MISSIONS):
        for n, cls in enumerate(POLICIES):
            marks = [] if n % len(MISSIONS) == seed else [pytest.mark.slow]
            yield pytest.param(TOLD.get(cls, cls), seed, name, id=f"{cls.__name__}-{name}", marks=marks)
    for n, mode in enumerate(MODES):
        name = list(MISSIONS)[n % len(MISSIONS)]
        marks = [] if mode.func not in [earlier.func for earlier in MODES[:n]] else [pytest.mark.slow]
        yield pytest.param(mode, n, name, id=f"{n}-{mode.func.__name__}-{name}", marks=marks)


@pytest.mark.parametrize(("make", "seed", "mission"), list(each()))
def test_promises_are_kept(make: Callable[[], Policy], seed: int, mission: str) -> None:
    """A policy fetches every page, chooses the same again for the same seed, and survives failures and pickling."""
    policy = make()
    pages = SMALL if policy.never_ends or isinstance(policy, FetchesAgain) else 60
    check_policy(make, pages=pages, seed=seed, mission=MISSIONS[mission])


@pytest.mark.parametrize("make", [TreeQ, BestFirst, partial(TreeQ, mode="asynchronous")])
def test_promises_are_kept_with_a_sentence(make: Callable[[], Policy]) -> None:
    """Policies that read links by a topic keep them where it is given by a sentence, which pickles name by its table."""
    goal = TopicGoal(AboutTopic("numbers and counting"))
    check_policy(make, mission=Mission.of(goal, words=["page"]))


def test_promises_are_kept_with_hnswlib() -> None:
    """TagPath with hnswlib as its index keeps them too."""
    pytest.importorskip("hnswlib", reason="hnswlib is not installed: pip install 'scrapy-focus[hnsw]'")
    check_policy(partial(TagPath, index="hnswlib"), pages=30, mission=Mission.of(FilesGoal()))


@pytest.mark.parametrize("cls", POLICIES)
def test_parameters_are_kept_under_their_names(cls: type[Policy]) -> None:
    """Parameters are keywords with defaults, stored under their own names: a resume compares them."""
    policy = cls()
    for name, parameter in inspect.signature(cls).parameters.items():
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY, name
        assert getattr(policy, name) == parameter.default, name
