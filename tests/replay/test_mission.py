"""What is looked for reaches every policy alike: in a check, a simulation and a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from handmade import file, page, site_of

from scrapy_focus import (
    ConfigError,
    Crawl,
    FilesGoal,
    ItemsGoal,
    Link,
    Mission,
    Ordering,
    TopicGoal,
    check_policy,
    memory_frontier,
)
from scrapy_focus.lab.compare.comparison import compare
from scrapy_focus.lab.replay.metrics import summary
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.bestfirst import BestFirst
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.tagpath.policy import TagPath
from scrapy_focus.policies.treeq.policy import TreeQ

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy_focus import Frontier, Outcome, Policy

#: Policies of a user, in a module that other processes can import: the order says what was looked for.
USER_MODULE = '''
from scrapy_focus import Ordering


class Telling(Ordering):
    """Links with a word of the mission first, the shortest first where a CSV file is wanted, else the longest."""

    given = []  # missions, by keeps() and open()

    def __init__(self, *, targets=None):
        self.targets = targets  # which no setting and no comparison fills

    def keeps(self, mission):
        self.given.append(mission)
        return super().keeps(mission)

    def open(self, frontier, rng, mission):
        self.given.append(mission)
        self.looks_for = mission.types if self.targets is None else self.targets
        self.words = mission.words
        super().open(frontier, rng, mission)

    def rank(self, link, source):
        length = len(link.url) if "text/csv" in self.looks_for else -len(link.url)
        return 100.0 * sum(word in link.url for word in self.words) - length
'''


class Topic:
    """A model of a topic: what mentions cheese."""

    digest = "cheese"

    def score(self, texts: Sequence[str]) -> Any:
        return np.array([0.9 if "cheese" in text else 0.2 for text in texts])


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module of a user."""
    name = f"mission_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(USER_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A recording of five pages of different length, one with a word in its URL."""
    names = ("/a", "/bb", "/ccc", "/wine-dddd", "/eeeeeeeeeeeeee")
    return site_of(tmp_path, {"/": page(*names), **{name: page(f"{name}.csv") for name in names},
                              **{f"{name}.csv": file(name) for name in names}}).path  # fmt: skip


def test_a_users_policy_is_given_the_same_everywhere(user: str, shop: Path) -> None:
    """The check, a simulation and a comparison give it equal missions, before and when it is opened."""
    telling: Any = __import__(user).Telling
    goal = FilesGoal(types=["text/csv"])
    mission = Mission.of(goal, words=["wine"])
    assert mission == Mission(types=frozenset(["text/csv"]), words=("wine",), heads_tell=True)
    check_policy(telling, mission=mission)
    in_check, telling.given[:] = [*telling.given], []
    simulate(telling(), goal, shop, mission=mission)
    in_simulation, telling.given[:] = [*telling.given], []
    Crawl(telling(), frontier=memory_frontier, mission=mission)
    in_crawl = telling.given
    assert len(in_check) >= 10
    assert len(in_simulation) == len(in_crawl) == 2
    assert all(given == mission for given in (*in_check, *in_simulation, *in_crawl))
    found = compare([f"{user}.Telling"], [shop], goal=goal, words=["wine"], seeds=[4])
    (run,) = found.runs
    asked = simulate(telling(), goal, shop, mission=mission, seed=run.seed)
    otherwise = simulate(telling(), goal, shop, seed=run.seed)
    assert [url.rpartition("/")[2] for url in asked.asked[:4]] == ["", "wine-dddd", "wine-dddd.csv", "a"]
    assert [url.rpartition("/")[2] for url in otherwise.asked[:3]] == ["", "a", "bb"]
    assert run.metrics == summary(asked) != summary(otherwise)


def test_a_mission_follows_from_the_goal() -> None:
    """Types, topic and whether headers tell, where the goal has them; nothing where it is a plain function."""
    assert Mission.of(lambda outcome: 0.0) == Mission() == Mission.of(ItemsGoal())
    files = Mission.of(FilesGoal(types=["image/*", "text/csv"]), unit="bytes")
    assert files == Mission(types=frozenset(["image/*", "text/csv"]), unit="bytes", heads_tell=True)
    topic = Topic()
    assert Mission.of(TopicGoal(topic)).topic is topic
    assert Mission.of(TopicGoal(topic), topic=(other := Topic())).topic is other
    assert files.saving("seconds").unit == "seconds"
    assert files.saving("seconds").describe() == files.describe(), "what is to be saved may change"
    assert Mission(words=("a",)).describe() != Mission().describe()
    with pytest.raises(ConfigError, match="unit is 'hours'; it is one of requests, bytes, seconds"):
        Mission(unit="hours")  # type: ignore[arg-type]


def opened(policy: Policy, mission: Mission) -> Any:
    """Return a policy in a crawl with a mission."""
    Crawl(policy, frontier=memory_frontier, mission=mission, seed=0, strict=True)
    return policy


ALL = Mission(types=frozenset(["text/csv"]), words=("wine",), topic=Topic(), unit="bytes", heads_tell=True)


def test_branching_takes_what_nobody_gave() -> None:
    """Types, words and unit are those of the mission; what is a parameter is as it was given, an empty one too."""
    taken = opened(BranchingBandit(), ALL)
    assert (taken.looks_for, taken.saves) == ({"text/csv"}, "bytes")
    assert np.count_nonzero(taken.is_target.weights) > 0
    given = opened(BranchingBandit(targets=["image/*"], words=(), unit="seconds"), ALL)
    assert (given.looks_for, given.saves) == ({"image/*"}, "seconds")
    nothing = opened(BranchingBandit(targets=(), words=()), ALL)
    assert nothing.looks_for == frozenset()
    assert np.count_nonzero(nothing.is_target.weights) == 0
    assert (given.targets, given.words, taken.targets, taken.unit) == (["image/*"], (), None, None)


def test_tagpath_takes_what_nobody_gave() -> None:
    """Where headers tell a target it sends HEADs and counts as published, and asks for no pictures unless they are wanted."""
    published = opened(TagPath(), ALL)
    assert (published._probes, published._accounting) == (True, "released")
    assert "png" in {name.strip(".") for name in published._blocked}
    anything = opened(TagPath(), Mission())
    assert (anything._probes, anything._accounting) == (False, "full")
    given = opened(TagPath(probe=False, accounting="full", blocked=()), ALL)
    assert (given._probes, given._accounting, given._blocked) == (False, "full", frozenset())
    pictures = opened(TagPath(), Mission(types=frozenset(["image/*"])))
    assert "png" not in {name.strip(".") for name in pictures._blocked}


@pytest.mark.parametrize("make", [TreeQ, BestFirst])
def test_topical_policies_take_what_nobody_gave(make: type[TreeQ] | type[BestFirst]) -> None:
    """Words and topic of the mission decide the first choice, unless keywords or a classifier were given."""

    def first(policy: Policy, mission: Mission) -> str:
        crawl = Crawl(policy, frontier=memory_frontier, mission=mission, seed=0, strict=True)
        anchors = ("bread", "red wine", "cheese", "ham")
        crawl.add([Link(f"http://h/{i}", i, "h", anchor=anchor) for i, anchor in enumerate(anchors)])
        pick = crawl.next()
        assert pick is not None
        return anchors[pick.key]

    assert first(make(), Mission(words=("wine",))) == "red wine"
    assert first(make(), Mission(topic=Topic())) == "cheese"
    assert first(make(keywords=["ham"]), Mission(words=("wine",))) == "ham"
    assert first(make(relevance=Topic(), keywords=()), Mission(words=("wine",))) == "cheese"


class Sorted(Ordering):
    """Alphabetically; keeps what it was opened with."""

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        super().open(frontier, rng, mission)
        self.frontier_given: Frontier = frontier
        self.mission = mission

    def rank(self, link: Link, source: Outcome | None) -> float:
        return -float(ord(link.url[-1]))


def test_by_default_a_simulation_gives_what_follows_from_the_goal(shop: Path) -> None:
    """As a crawl does."""
    goal = FilesGoal(types=["image/*"])
    policy = Sorted()
    simulate(policy, goal, shop)
    assert policy.mission == Mission.of(goal) == opened(Sorted(), Mission.of(goal)).mission


def test_a_comparison_gives_words_to_treeq(shop: Path) -> None:
    """Its runs are those of a simulation with the words, and not those without."""
    goal = FilesGoal(types=["text/csv"])
    runs = {}
    for words in ((), ("wine",)):
        (run,) = compare(["TreeQ"], [shop], goal=goal, words=words, seeds=[4]).runs
        assert not run.error
        own = simulate(TreeQ(), goal, shop, mission=Mission.of(goal, words=words), seed=run.seed)
        runs[words] = own.asked
        assert run.metrics == summary(own)
    assert runs["wine",] != runs[()]
    assert runs["wine",].index("http://a.example/wine-dddd") == 1, "the only link that says so"
