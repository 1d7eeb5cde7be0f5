"""What some policies and goals do besides is found by the methods that they have."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import Crawl, FilesGoal, ItemsGoal, Mission, Placement, TopicGoal, memory_frontier
from scrapy_focus.core.abilities import Abilities, FetchesAgain, Renders
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.goal import Learner, Says, Warns, noun_of, types_of
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.core.types import Outcome


class Patient(BreadthFirst):
    """Has two methods of protocols, and inherits from none."""

    def due(self) -> float:
        return math.inf

    def again(self, outcome: Outcome) -> Placement | None:
        return Placement(0, 0.0, after=outcome.at + 1.0)


class Plain(Patient):
    """Fetches nothing again, unlike its base."""

    again = None  # type: ignore[assignment]


def had(policy: Any) -> set[str]:
    """Return the names of the abilities that a policy has."""
    abilities = Abilities.of(policy)
    return {field.name for field in fields(abilities) if getattr(abilities, field.name) is policy}


def test_a_policy_has_what_it_defines() -> None:
    """No more than that: the base class has none of them, and ``None`` takes one away."""
    assert had(BreadthFirst()) == set()
    assert had(Patient()) == {"again", "due"}
    assert had(Plain()) == {"due"}
    assert not issubclass(Plain, FetchesAgain)
    assert had(BranchingBandit()) == {"render", "tables", "expected_cost", "expected_left", "best_arms"}


def test_who_takes_over_is_asked() -> None:
    """The crawl uses the policy that decides now, not the one that it started with."""
    crawl = Crawl(BreadthFirst(), frontier=memory_frontier)
    assert crawl.status().due is None
    crawl.guard.take_up(Patient())
    assert crawl.status().due == math.inf


def test_what_a_policy_learned_cannot_be_saved_without_a_method(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The crawl says which policy that is, and closes."""
    crawl = Crawl(BreadthFirst(), frontier=memory_frontier)
    crawl.close(learned_to=tmp_path / "learned")
    assert crawl.counts["error/save"] == 1
    assert "BreadthFirst cannot save what it learned; choose another policy" in caplog.text
    with pytest.raises(ConfigError, match="BreadthFirst cannot save"):
        Crawl(BreadthFirst(), frontier=memory_frontier, strict=True).close(learned_to=tmp_path / "learned")


def test_a_goal_need_not_say_anything() -> None:
    """A function is a goal."""

    def goal(outcome: Outcome) -> float:
        return outcome.items

    assert (noun_of(goal), set(types_of(goal)), Mission.of(goal)) == ("targets", set(), Mission())
    assert not isinstance(goal, Warns)
    crawl = Crawl(BreadthFirst(), frontier=memory_frontier, goal=goal)
    assert (crawl.status(best=1).said, crawl.status(best=1).alarm) == ([], "")


def test_goals_that_ship_say_what_they_look_for() -> None:
    """By attributes and methods that they have."""
    assert noun_of(ItemsGoal()) == "items"
    assert "text/csv" in types_of(FilesGoal(types=["csv"]))
    assert Mission.of(FilesGoal(types=["csv"])).heads_tell
    topic = TopicGoal({"keywords": ["lake"]})
    assert Mission.of(topic).topic is topic.relevance
    assert all(isinstance(topic, each) for each in (Learner, Says, Warns))


@pytest.mark.parametrize("policy", [BranchingBandit, BreadthFirst])
def test_an_instance_has_what_its_class_has(policy: type[Any]) -> None:
    """Settings ask the class before there is a policy."""
    assert isinstance(policy(), Renders) == issubclass(policy, Renders)
