"""``check_policy`` reports policies that break a promise."""

from __future__ import annotations

import itertools
import random

import pytest

from scrapy_focus import FocusError, Ordering, Placement, PolicyTable, check_policy
from scrapy_focus.core.types import State
from scrapy_focus.policies.orderings import BreadthFirst
from scrapy_focus.policies.orderings import Random as Shuffled


class DropsLinks(BreadthFirst):
    def place(self, links, source):
        return [
            None if link.key == 17 else place for link, place in zip(links, super().place(links, source), strict=True)
        ]


class LosesProbed(BreadthFirst):
    def place(self, links, source):
        places = super().place(links, source)
        if links[0].state == State.PROBED:
            return [None]
        return [
            place._replace(method="HEAD" if link.key == 9 else "GET") for link, place in zip(links, places, strict=True)
        ]


class ProbesForever(BreadthFirst):
    def place(self, links, source):
        return [place._replace(method="HEAD") for place in super().place(links, source)]


class SelectsBusyHosts(BreadthFirst):
    def select(self, busy):
        return self.frontier.pop(0)


class NeverLooksAtArmOne(BreadthFirst):
    def place(self, links, source):
        return [
            place._replace(arm=link.key % 2) for link, place in zip(links, super().place(links, source), strict=True)
        ]


class StopsAtFailures(BreadthFirst):
    failed = False

    def select(self, busy):
        return None if self.failed else super().select(busy)

    def learn(self, outcome):
        self.failed = bool(outcome.error)


class RollsItsOwnDice(BreadthFirst):
    def rank(self, link, source):
        return random.random()


class LosesItsDice(Shuffled):
    def __getstate__(self):
        return {}

    def attach(self, frontier):
        super().attach(frontier)
        if not hasattr(self, "rng"):
            import numpy

            self.rng = numpy.random.default_rng(0)


class CannotBePickled(BreadthFirst):
    def __init__(self):
        super().__init__()
        self.key = lambda link: link.url


class PicklesItsFrontier(BreadthFirst):
    def __getstate__(self):
        return self.__dict__


class PlacesTooFew(BreadthFirst):
    def place(self, links, source):
        return super().place(links, source)[:2]


class PlacesInNoArm(BreadthFirst):
    def place(self, links, source):
        return [Placement(-1, 0.0) for _ in links]


class ExplainsInSets(BreadthFirst):
    def explain(self, pick):
        return {"hosts": {pick.host}}


class ExplainsWithNothing(BreadthFirst):
    def explain(self, pick):
        return {"score": float("nan")}


class ExplainsInProse(BreadthFirst):
    def explain(self, pick):
        return "because"


class SortsWhatItIsGiven(BreadthFirst):
    def place(self, links, source):
        links.sort(key=lambda link: -link.key)
        return super().place(links, source)


class SelectsLinks(BreadthFirst):
    def select(self, busy):
        return next((link for link, _ in self.frontier.scan(0)), None)


class SelectsOutOfNothing(BreadthFirst):
    last = None

    def select(self, busy):
        self.last = super().select(busy) or self.last or "something"
        return self.last


class SelectsTwice(BreadthFirst):
    last = None

    def select(self, busy):
        pick = super().select(busy)
        self.last, again = pick, self.last
        return again if again is not None and again.key == 5 else pick


class FailsInLearn(BreadthFirst):
    def learn(self, outcome):
        if outcome.status == 404:
            raise KeyError("no page")


class VisitsForever(BreadthFirst):
    wants_known = frozenset({State.WAITING, State.FETCHED})


class WantsAnything(BreadthFirst):
    wants_known = True


class CountsInTheClass(Ordering):
    count = itertools.count()

    def rank(self, link, source):
        return (next(self.count) * 7 % 11) + link.key / 1000


class GivesUpTooFew(BreadthFirst):
    def give_up(self, n):
        return super().give_up(n - 1)


class ClaimsToGiveUp(BreadthFirst):
    def give_up(self, n):
        super().give_up(n)
        return 2 * n


class GivesUpByChance(BreadthFirst):
    def give_up(self, n):
        keys = [link.key for link, _ in self.frontier.scan(0)]
        self.frontier.move(random.sample(keys, n), [None] * n)
        return n


class ShowsNothingOfUse(BreadthFirst):
    def tables(self):
        return [PolicyTable("Links", ("link", "worth"), [("a", 1), ("b",)])]


class DrawsWhatItShows(Shuffled):
    def tables(self):
        return [PolicyTable("Luck", ("throw",), [(self.rng.random(),)])]


class TakesWhatItGivesUp(BreadthFirst):
    def give_up(self, n):
        for _ in range(n):
            self.frontier.pop(0)
        return n


BROKEN = {
    DropsLinks: "never fetched .*/17'",
    LosesProbed: "never fetched .*/9'",
    ProbesForever: "again and again",
    SelectsBusyHosts: "busy host",
    NeverLooksAtArmOne: "never fetched|gives nothing though",
    StopsAtFailures: "gives nothing though",
    RollsItsOwnDice: "the same seed gave another order: step",
    LosesItsDice: "after pickling it chose otherwise",
    CannotBePickled: "cannot be pickled",
    PicklesItsFrontier: "pickled with its frontier",
    PlacesTooFew: "placements for",
    PlacesInNoArm: "an arm is an integer from 0",
    ExplainsInSets: "which JSON cannot hold",
    ExplainsWithNothing: "which JSON cannot hold",
    ExplainsInProse: "return a Reason or a dict",
    SortsWhatItIsGiven: "changed the links",
    SelectsLinks: r"select\(\) returned",
    SelectsOutOfNothing: r"select\(\)",
    SelectsTwice: "gave just now",
    FailsInLearn: "no page",
    VisitsForever: "again and again",
    WantsAnything: "it is a set of states",
    GivesUpTooFew: r"give_up\(\d+\) answered \d+, and gave up \d+ of 1\d links",
    ClaimsToGiveUp: r"give_up\(\d+\) answered \d+, and gave up",
    GivesUpByChance: "where few links may be queued, step",
    TakesWhatItGivesUp: "took links out",
    ShowsNothingOfUse: "it takes 2 values, one a column",
    DrawsWhatItShows: r"tables\(\) changed its choices: step",
    CountsInTheClass: "the same seed gave another order",
}


@pytest.mark.parametrize("cls", BROKEN, ids=lambda cls: cls.__name__)
def test_a_broken_policy_is_reported(cls: type) -> None:
    """The check fails, and its message says what is wrong."""
    with pytest.raises((AssertionError, FocusError, KeyError), match=BROKEN[cls]):
        check_policy(cls)


class ByTheHour(Ordering):
    """Looks at the time: what was found later comes first."""

    def rank(self, link, source):
        return self.now


class OncePerMinute(BreadthFirst):
    """Chooses one link a minute, and says when the next may be chosen."""

    next_at = 0.0

    def select(self, busy):
        pick = super().select(busy) if self.now >= self.next_at else None
        if pick is not None:
            self.next_at = self.now + 60
        return pick

    def release(self, pick):
        self.next_at = self.now

    def due(self):
        return self.next_at


class NeverAgain(OncePerMinute):
    """Says that the next link may be chosen at the end of all times."""

    def due(self):
        return float("inf")


@pytest.mark.parametrize("cls", [ByTheHour, OncePerMinute])
def test_a_policy_may_look_at_the_time(cls: type) -> None:
    """The time passes in the same way each time, and until the next link is due."""
    check_policy(cls)


def test_links_that_are_never_due_are_reported() -> None:
    """Nobody waits for ever."""
    with pytest.raises(AssertionError, match=r"never fetched|gives nothing though"):
        check_policy(NeverAgain)
