"""A custom policy, goal, stop rule and frontier: named in the settings, one class each and no registration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from crawls import Follower, crawl

from scrapy_focus import ConfigError, Mission, Ordering, memory_frontier
from scrapy_focus.config import Config
from scrapy_focus.policies.orderings import BreadthFirst

if TYPE_CHECKING:
    from mocksite import MockSite

    from scrapy_focus import Frontier, Link, Outcome


class Wordy(Ordering):
    """Links with a wanted word or of a wanted type first."""

    given: ClassVar[list[Mission]] = []

    def open(self, frontier: Any, rng: Any, mission: Mission) -> None:
        self.given.append(mission)
        self.words = mission.words
        super().open(frontier, rng, mission)

    def rank(self, link: Link, source: Outcome | None) -> float:
        return float(any(word in link.url for word in self.words))


class Short:
    """URLs of few characters are worth something; so are files of one type."""

    types = frozenset({"text/x-short"})

    def __call__(self, outcome: Outcome) -> float:
        return float(len(outcome.pick.url) < 60)


class AfterThree:
    """Ends a crawl with the third outcome that it hears of."""

    reason = "three"

    def __init__(self) -> None:
        self.heard = 0

    def reached(self, requests: int, targets: float, cost: float | None = None) -> bool:
        self.heard += 1
        return self.heard >= 3

    def state(self) -> dict[str, float | None]:
        return {"heard": self.heard}

    def restore(self, state: dict[str, Any]) -> None:
        self.heard = state["heard"]


class Counting:
    """What makes a frontier, and counts how many it made."""

    made: ClassVar[list[Frontier]] = []

    def __call__(self, keeps: Any) -> Frontier:
        self.made.append(memory_frontier(keeps))
        return self.made[-1]


counting = Counting()


def test_everything_of_ones_own_in_one_crawl(site: MockSite) -> None:
    """The policy receives the types of the goal and the words of the settings, and each of the four pieces works."""
    Wordy.given.clear()
    Counting.made.clear()
    settings = {
        "FOCUS_POLICY": f"{__name__}.Wordy",
        "FOCUS_GOAL": f"{__name__}.Short",
        "FOCUS_STOP": f"{__name__}.AfterThree",
        "FOCUS_FRONTIER": f"{__name__}.counting",
        "FOCUS_KEYWORDS": ["page"],
        "FOCUS_MAX_INFLIGHT": 1,
    }
    result = crawl(Follower, settings, seeds=[site.url("/page/0/9")])
    assert Wordy.given == [Mission(types=Short.types, words=("page",))]
    assert result.stats["finish_reason"] == "focus_three"
    assert result.stats["focus/outcomes"] == 3
    assert result.stats["focus/reward"] == 3
    assert len(Counting.made) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"FOCUS_FRONTIER": "nowhere.at_all"}, "FOCUS_FRONTIER is 'nowhere.at_all', which cannot be imported"),
        ({"FOCUS_FRONTIER": "os.sep"}, "FOCUS_FRONTIER is 'os.sep'; it takes a function that makes a frontier"),
        ({"FOCUS_FRONTIER": counting, "JOBDIR": "here"}, "JOBDIR is set, which has a separate frontier"),
    ],
)
def test_a_frontier_that_cannot_be_made_is_an_error(settings: dict[str, Any], message: str) -> None:
    """The message says what was got, what is expected, and what to do."""
    from scrapy.settings import Settings

    with pytest.raises(ConfigError, match=message):
        Config.from_settings(Settings(settings), BreadthFirst)
