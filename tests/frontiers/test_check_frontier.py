"""``check_frontier`` reports frontiers that break a promise."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from scrapy_focus import FrontierError, Placement, State, check_frontier, memory_frontier


class PopsTheWorst(memory_frontier):
    def pop(self, arm, busy=()):
        ranked = sorted((place.rank, link.key) for link, place in self.scan(arm) if link.host not in busy)
        return self.take(ranked[0][1]) if ranked else None


class PopsBusyHosts(memory_frontier):
    def pop(self, arm, busy=()):
        return super().pop(arm)


class GivesUpAtABusyHost(memory_frontier):
    def pop(self, arm, busy=()):
        pick = super().pop(arm)
        if pick is not None and pick.host in busy:
            self.release(pick)
            return None
        return pick


class SettlesTwice(memory_frontier):
    def settle(self, pick):
        if pick.id in self._flying:
            super().settle(pick)


class ForgetsWhatFlies(memory_frontier):
    flying = property(lambda self: {})


class ForgetsProbes(memory_frontier):
    def settle(self, pick):
        super().settle(pick._replace(method="GET"))


class LosesReleased(memory_frontier):
    def release(self, pick):
        self.settle(pick)


class ReleasesElsewhere(memory_frontier):
    def release(self, pick):
        super().release(pick)
        self.move([pick.key], [Placement(pick.arm, -1.0, pick.memo, pick.method)])


class CountsEveryPush(memory_frontier):
    def push(self, links, placements, *, origin=-1):
        super().push(links, placements, origin=origin)
        return sum(place is not None for place in placements)


class MovesWhatFlies(memory_frontier):
    def push(self, links, placements, *, origin=-1):
        for pick in [pick for pick in self._flying.values() if pick.key in {link.key for link in links}]:
            self.release(pick)
        return super().push(links, placements, origin=origin)


class LosesPayloads(memory_frontier):
    def push(self, links, placements, *, origin=-1):
        return super().push([link._replace(payload=b"") for link in links], placements, origin=origin)


class LosesMemos(memory_frontier):
    def push(self, links, placements, *, origin=-1):
        return super().push(links, [place and place._replace(memo=None) for place in placements], origin=origin)


class LosesOrigins(memory_frontier):
    def push(self, links, placements, *, origin=-1):
        return super().push(links, placements)


class KeepsWhatIsGivenUp(memory_frontier):
    def move(self, keys, placements):
        kept = [(key, place) for key, place in zip(keys, placements, strict=True) if place is not None]
        super().move([key for key, _ in kept], [place for _, place in kept])


class WakesBusyHosts(memory_frontier):
    def awake(self, busy=()):
        return super().awake()


class HasNoHeads(memory_frontier):
    heads = property(lambda self: np.full(len(self.waiting), -np.inf))


class ForgetsStates(memory_frontier):
    def states(self, keys):
        return [state if state == State.WAITING else State.NEW for state in super().states(keys)]


class SamplesTwice(memory_frontier):
    def sample(self, arm, k, rng, busy=()):
        return (super().sample(arm, 1, rng, busy) * k)[:k]


class ScansHalf(memory_frontier):
    def scan(self, arm):
        return islice(super().scan(arm), int(self.waiting[arm]) // 2 if arm < len(self.waiting) else 0)


class FailsItsOwnCheck(memory_frontier):
    def check(self):
        raise FrontierError("the frontier is inconsistent: all of it")


class IsNotEmpty(memory_frontier):
    def __len__(self):
        return super().__len__() + 1


class ForgetsDivisions(memory_frontier):
    def divide(self, arm, column, above, new_arm):
        super().divide(arm, column, above, new_arm)
        self._pool.divisions.clear()


class DrawsFromBusyHosts(memory_frontier):
    def draw(self, counts, rng, *, busy=(), closed=None):
        return super().draw(counts, rng, closed=closed)


class DrawsFromClosedHosts(memory_frontier):
    def draw(self, counts, rng, *, busy=(), closed=None):
        return super().draw(counts, rng, busy=busy)


class DrawsOneTooFew(memory_frontier):
    def draw(self, counts, rng, *, busy=(), closed=None):
        return type(super().draw(counts, rng))(
            *(column[1:] for column in super().draw(counts, rng, busy=busy, closed=closed))
        )


class DrawsOldVectors(memory_frontier):
    def draw(self, counts, rng, *, busy=(), closed=None):
        drawn = super().draw(counts, rng, busy=busy, closed=closed)
        return drawn._replace(vectors=drawn.vectors ^ 1)


class TakesAnother(memory_frontier):
    def take_slot(self, slot):
        return self.pop(int(np.argmax(self.waiting)))


class GivesUpAll(memory_frontier):
    def give_up(self, slots):
        return super().give_up(range(len(self._pool.record)))


class KeepsTheFirstVector(memory_frontier):
    def push(self, links, placements, *, origin=-1):
        if self._pool is not None:
            states = self.states([link.key for link in links])
            pairs = zip(placements, states, strict=True)
            placements = [None if state == State.WAITING else place for place, state in pairs]
        return super().push(links, placements, origin=origin)


class CountsHostsTwice(memory_frontier):
    host_waiting = property(lambda self: super().host_waiting * 2)


class ForgetsVectors(memory_frontier):
    def vectors(self, keys):
        return super().vectors(keys) * 0


BROKEN = {
    PopsTheWorst: "the best is",
    PopsBusyHosts: "links to take|busy host",
    GivesUpAtABusyHost: "links to take",
    SettlesTwice: "settling a pick twice must raise",
    ForgetsWhatFlies: "flying has the picks",
    ForgetsProbes: r"states\(\)",
    LosesReleased: "links wait, it should be",
    ReleasesElsewhere: "its best rank|the best is|came out as",
    CountsEveryPush: r"push\(\) said",
    MovesWhatFlies: r"push\(\) said|links wait",
    LosesPayloads: "came out as",
    LosesMemos: "with the memo",
    LosesOrigins: "came out as",
    KeepsWhatIsGivenUp: "links wait, it should be",
    WakesBusyHosts: "links awake",
    HasNoHeads: "its best rank",
    ForgetsStates: r"states\(\)",
    SamplesTwice: r"sample\(\) gave",
    ScansHalf: r"scan\(\d\) gave other links",
    FailsItsOwnCheck: "all of it",
    IsNotEmpty: "must be empty",
    ForgetsDivisions: "after divisions arms hold|is in another",
    DrawsFromBusyHosts: "which are busy or closed|gave links of the arms",
    DrawsFromClosedHosts: "which are busy or closed|gave links of the arms",
    DrawsOneTooFew: "gave links of the arms",
    DrawsOldVectors: "what was drawn as",
    TakesAnother: "was taken as",
    GivesUpAll: r"give_up\(\) of one link said",
    KeepsTheFirstVector: "after divisions arms hold|does not say what was pushed last",
    CountsHostsTwice: "host_waiting says",
    ForgetsVectors: r"vectors\(\) does not say",
}


@pytest.mark.parametrize("cls", BROKEN, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_broken_frontier_is_reported(cls: type[memory_frontier], seed: int) -> None:
    """The check fails, and its message says what is wrong."""
    with pytest.raises((AssertionError, FrontierError), match=BROKEN[cls]):
        check_frontier(cls, seed=seed)
