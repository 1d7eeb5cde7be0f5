"""``check_ranked`` and ``check_drawn`` report frontiers that break a promise."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from scrapy_focus import FrontierError, Link, Placement, State, check_drawn, check_ranked
from scrapy_focus.frontiers.drawn.frontier import DrawnFrontier
from scrapy_focus.frontiers.memory import MemoryRecords
from scrapy_focus.frontiers.ranked.frontier import RankedFrontier


class InMemory(RankedFrontier):
    def __init__(self):
        super().__init__(MemoryRecords(memos=True))


class DrawnInMemory(DrawnFrontier):
    def __init__(self, keeps):
        super().__init__(MemoryRecords(memos=False), keeps.width)


class PopsTheWorst(InMemory):
    def pop(self, arm, busy=()):
        ranked = sorted((place.rank, link.key) for link, place in self.scan(arm) if link.host not in busy)
        return self.take(ranked[0][1]) if ranked else None


class PopsTheYoungest(InMemory):
    def pop(self, arm, busy=()):
        queue = self._queue
        slots = [slot for slot in queue.worst(arm, 1 << 20) if queue.hosts.names[queue.place(slot)[0]] not in busy]
        best = max(slots, key=lambda slot: (queue.rank[slot], queue.age[slot]), default=None)
        return None if best is None else self._fly(best, self._next_id)


class PopsBusyHosts(InMemory):
    def pop(self, arm, busy=()):
        return super().pop(arm)


class GivesUpAtABusyHost(InMemory):
    def pop(self, arm, busy=()):
        pick = super().pop(arm)
        if pick is not None and pick.host in busy:
            self.release(pick)
            return None
        return pick


class SettlesTwice(InMemory):
    def settle(self, pick, also=()):
        if pick.id in self._flying:
            super().settle(pick, also)


class ForgetsOtherKeys(InMemory):
    def settle(self, pick, also=()):
        super().settle(pick)


class ForgetsWhatFlies(InMemory):
    flying = property(lambda self: {pick.id: pick for pick in list(self._flying.values())[1:]})


class ForgetsProbes(InMemory):
    def settle(self, pick, also=()):
        super().settle(pick._replace(method="GET"), also)


class LosesReleased(InMemory):
    def release(self, pick):
        self.settle(pick)


class ReleasesElsewhere(InMemory):
    def release(self, pick):
        super().release(pick)
        self.move([pick.key], [Placement(pick.arm, -1.0, pick.memo, pick.method)])


class ReleasesBehindItsEquals(InMemory):
    def _wait_again(self, pick, held, host):
        self._records.youngest += 1
        return super()._wait_again(pick, held._replace(age=self._records.youngest), host)


class CountsEveryPush(InMemory):
    def push(self, links, placements, *, origin=-1):
        super().push(links, placements, origin=origin)
        return sum(place is not None for place in placements)


class MovesWhatFlies(InMemory):
    def push(self, links, placements, *, origin=-1):
        for pick in [pick for pick in self._flying.values() if pick.key in {link.key for link in links}]:
            self.release(pick)
        return super().push(links, placements, origin=origin)


class LosesPayloads(InMemory):
    def push(self, links, placements, *, origin=-1):
        return super().push([link._replace(payload=b"") for link in links], placements, origin=origin)


class LosesMemos(InMemory):
    def push(self, links, placements, *, origin=-1):
        return super().push(links, [place and place._replace(memo=None) for place in placements], origin=origin)


class LosesOrigins(InMemory):
    def push(self, links, placements, *, origin=-1):
        return super().push(links, placements)


class KeepsWhatIsGivenUp(InMemory):
    def move(self, keys, placements):
        kept = [(key, place) for key, place in zip(keys, placements, strict=True) if place is not None]
        super().move([key for key, _ in kept], [place for _, place in kept])


class CallsItFetched(InMemory):
    def states(self, keys):
        return [State.FETCHED if state == State.GIVEN_UP else state for state in super().states(keys)]


class DropsTheBest(InMemory):
    def drop(self, arm, n):
        best = sorted((-place.rank, link.key) for link, place in self.scan(arm))[:n]
        self.move([key for _, key in best], [None] * len(best))
        return len(best)


class DropsTheOldest(InMemory):
    def drop(self, arm, n):
        worst = sorted(
            self._queue.worst(arm, 1 << 20), key=lambda slot: (self._queue.rank[slot], self._queue.age[slot])
        )
        return self._give_up_slots(worst[:n])


class DropsTheBestOfEach(InMemory):
    def drop_each(self, counts):
        return sum(DropsTheBest.drop(self, arm, n) for arm, n in counts.items())


class DropsOneArmOnly(InMemory):
    def drop_each(self, counts):
        return super().drop_each(dict([*counts.items()][:1]))


class WakesBusyHosts(InMemory):
    def awake(self, busy=()):
        return super().awake()


class HasNoHeads(InMemory):
    heads = property(lambda self: np.full(len(self.waiting), -np.inf))


class ForgetsStates(InMemory):
    def states(self, keys):
        return [state if state == State.WAITING else State.NEW for state in super().states(keys)]


class HasIdsOfItsOwn(InMemory):
    def take(self, key, *, pick_id=None):
        return super().take(key)


class ScansHalf(InMemory):
    def scan(self, arm):
        return islice(super().scan(arm), int(self.waiting[arm]) // 2 if arm < len(self.waiting) else 0)


class FailsItsOwnCheck(InMemory):
    def check(self):
        raise FrontierError("the frontier is inconsistent: all of it")


class IsNotEmpty(InMemory):
    def __len__(self):
        return super().__len__() + 1


class ForgetsDivisions(DrawnInMemory):
    def divide(self, arm, column, above, new_arm):
        super().divide(arm, column, above, new_arm)
        self._pool.divisions.clear()


class DrawsFromBusyHosts(DrawnInMemory):
    def draw(self, counts, rng, *, busy=(), closed=None):
        return super().draw(counts, rng, closed=closed)


class DrawsFromClosedHosts(DrawnInMemory):
    def draw(self, counts, rng, *, busy=(), closed=None):
        return super().draw(counts, rng, busy=busy)


class DrawsOneTooFew(DrawnInMemory):
    def draw(self, counts, rng, *, busy=(), closed=None):
        drawn = super().draw(counts, rng, busy=busy, closed=closed)
        return drawn if counts is None or rng is None else type(drawn)(*(column[1:] for column in drawn))


class DrawsOldVectors(DrawnInMemory):
    def draw(self, counts, rng, *, busy=(), closed=None):
        drawn = super().draw(counts, rng, busy=busy, closed=closed)
        return drawn._replace(vectors=drawn.vectors ^ 1)


class DrawsByMappingOtherwise(DrawnInMemory):
    def draw(self, counts, rng, *, busy=(), closed=None):
        if isinstance(counts, dict) and rng is not None:
            rng.random()
        return super().draw(counts, rng, busy=busy, closed=closed)


class DrawsAllButOne(DrawnInMemory):
    def draw(self, counts, rng, *, busy=(), closed=None):
        drawn = super().draw(counts, rng, busy=busy, closed=closed)
        return drawn if counts is not None else type(drawn)(*(column[1:] for column in drawn))


class DrawsWhoeverCameHere(DrawnInMemory):
    def draw(self, counts, rng, *, busy=(), closed=None):
        if rng is not None:
            rng.random(self._next_id)
        return super().draw(counts, rng, busy=busy, closed=closed)


class DrawsTheYoungestForTheOldest(DrawnInMemory):
    def draw(self, counts, rng, *, busy=(), closed=None):
        drawn = super().draw(counts, rng, busy=busy, closed=closed)
        return drawn if rng else drawn._replace(vectors=drawn.vectors[::-1])


class DrawsTheOldestOfBusyHosts(DrawnInMemory):
    def draw(self, counts, rng, *, busy=(), closed=None):
        return super().draw(counts, rng, busy=busy if rng else (), closed=closed)


class TakesAnother(DrawnInMemory):
    def take_drawn(self, slot):
        return self.take(next((key for key, its in self._known.items() if its >= 0 and its != slot), -1))


class TakesFloats(DrawnInMemory):
    def take_drawn(self, slot):
        pick = super().take_drawn(slot)
        return pick and pick._replace(memo=pick.memo.astype(np.float32))


class DropsAll(DrawnInMemory):
    def drop(self, slots):
        return super().drop(range(len(self._pool.record)))


class KeepsOnlyWhatSleeps(DrawnInMemory):
    def kept(self, arms):
        return super().kept([])


class KeepsNoTimes(DrawnInMemory):
    def kept(self, arms):
        kept = super().kept(arms)
        return kept._replace(due=kept.due * 0)


class KeepsOtherUrls(DrawnInMemory):
    def urls(self, numbers):
        return super().urls(sorted(numbers))


class KeepsTheFirstVector(DrawnInMemory):
    def push(self, links, placements, *, origin=-1):
        states = self.states([link.key for link in links])
        pairs = zip(placements, states, strict=True)
        placements = [place and place._replace(memo=None) if its == State.WAITING else place for place, its in pairs]
        return super().push(links, placements, origin=origin)


class WakesClosedArms(DrawnInMemory):
    def awake(self, busy=()):
        return super().awake()


class ForgetsVectors(DrawnInMemory):
    def vectors(self, keys):
        return super().vectors(keys) * 0


class SleepsForEver(InMemory):
    def wake(self, now):
        return 0


class WakesBeforeTheTime(InMemory):
    def wake(self, now):
        return super().wake(now + 1.0)


class WakesWhoeverComes(InMemory):
    def push(self, links, placements, *, origin=-1):
        awake = [place and place._replace(after=0.0) for place in placements]
        return super().push(links, awake, origin=origin)


class TakesWhatSleeps(InMemory):
    def take(self, key, *, pick_id=None):
        if self._known.get(key, -1) <= -4:
            super().push([self._link_of(key)], [Placement(0, 0.0)])
        return super().take(key, pick_id=pick_id)

    def _link_of(self, key):
        record = self._records.read([self._sleepers.get(-4 - self._known.get(key, -1)).number])[0]
        return Link(record.url, key, "a", record.depth, payload=record.payload)


class ForgetsWhenItWakes(InMemory):
    @property
    def next_due(self):
        due = super().next_due
        return None if due is None else due + 1.0


class ForgetsWhoSleeps(InMemory):
    @property
    def asleep(self):
        return min(super().asleep, 3)

    def push(self, links, placements, *, origin=-1):
        before = len(self) + super().asleep
        super().push(links, placements, origin=origin)
        return len(self) + super().asleep - before


class WakesInTheFirstArm(InMemory):
    def _let_wait(self, sleepers):
        return super()._let_wait([each._replace(arm=0) for each in sleepers])


class WakesBehindItsEquals(InMemory):
    def _let_wait(self, sleepers):
        self._records.youngest += 1
        return super()._let_wait([each._replace(age=self._records.youngest) for each in sleepers])


class WakesInOldArms(DrawnInMemory):
    def _let_wait(self, sleepers):
        divisions, self._pool.divisions = self._pool.divisions, {}
        try:
            return super()._let_wait(sleepers)
        finally:
            self._pool.divisions = divisions


class SleepsWithoutAVector(DrawnInMemory):
    def _sleep(self, key, place, arm, rank, after, vector=b""):
        super()._sleep(key, place, arm, rank, after, bytes(len(vector)))


RANKED = {
    SleepsForEver: r"wake\(.*\) woke 0 links|links are queued, it should be",
    WakesBeforeTheTime: r"wake\(.*\) woke . links|links are queued, it should be",
    WakesWhoeverComes: "links are queued, it should be|links sleep",
    TakesWhatSleeps: r"take\(\d+\) gave the key",
    ForgetsWhenItWakes: "the next link is due at|until",
    ForgetsWhoSleeps: "links sleep",
    WakesInTheFirstArm: "arm 0 holds",
    WakesBehindItsEquals: r"the best is|drop|states\(\) says|links, it should be",
    PopsTheWorst: "the best is",
    PopsTheYoungest: "the best is",
    PopsBusyHosts: "gave the key|the best is",
    GivesUpAtABusyHost: "gave the key None",
    SettlesTwice: "settling a pick twice must raise",
    ForgetsOtherKeys: r"states\(\) says",
    ForgetsWhatFlies: "flying has the picks",
    ForgetsProbes: r"states\(\)",
    LosesReleased: "links are queued, it should be",
    ReleasesElsewhere: r"its best rank|the best is|with the place|states\(\) says",
    ReleasesBehindItsEquals: r"the best is|drop|states\(\) says",
    CountsEveryPush: r"push\(\) said",
    MovesWhatFlies: r"push\(\) said|links are queued",
    LosesPayloads: "came out as|gave Link",
    LosesMemos: "with the place|gave the place",
    LosesOrigins: "came out as",
    KeepsWhatIsGivenUp: "links are queued, it should be|links sleep, it should be",
    CallsItFetched: r"states\(\) says",
    DropsTheBest: r"states\(\) says|links, it should be|awake, it should be",
    DropsTheOldest: r"states\(\) says|links, it should be|awake, it should be",
    DropsTheBestOfEach: r"states\(\) says|links, it should be|awake, it should be|the best is",
    DropsOneArmOnly: r"drop_each\(.*\) gave . links up, it should be",
    WakesBusyHosts: "links awake",
    HasNoHeads: "its best rank",
    ForgetsStates: r"states\(\)",
    HasIdsOfItsOwn: "its id should be",
    ScansHalf: r"scan\(\d\) gave other links",
    FailsItsOwnCheck: "all of it",
    IsNotEmpty: "must be empty",
}
DRAWN = {
    WakesInOldArms: "arm . holds|is in another",
    SleepsWithoutAVector: r"vectors\(\) does not say",
    ForgetsDivisions: "arm . holds|is in another",
    DrawsFromBusyHosts: "which are busy or closed|gave links of the arms",
    DrawsFromClosedHosts: "which are busy or closed|gave links of the arms",
    DrawsOneTooFew: "gave links of the arms",
    DrawsOldVectors: "which no link queued|draw.None. gave",
    DrawsByMappingOtherwise: "gave other links",
    DrawsAllButOne: "draw.None. gave",
    DrawsWhoeverCameHere: "than a new frontier",
    DrawsTheYoungestForTheOldest: r"draw\(.*, None\) gave",
    DrawsTheOldestOfBusyHosts: r"draw\(.*, None\) gave",
    TakesAnother: "was taken as|gave nothing",
    TakesFloats: "not bytes",
    DropsAll: r"drop\(\) of . links said",
    KeepsOnlyWhatSleeps: "kept.* gave",
    KeepsNoTimes: "kept.* gave",
    KeepsOtherUrls: "kept.* gave",
    KeepsTheFirstVector: "arm . holds|does not say what was pushed last",
    WakesClosedArms: "links awake",
    ForgetsVectors: r"vectors\(\) does not say",
}


@pytest.mark.few(10)
@pytest.mark.parametrize("cls", RANKED, ids=lambda cls: cls.__name__)
def test_a_broken_ranked_frontier_is_reported(cls: type[InMemory]) -> None:
    """The check fails, and its message says what is wrong."""
    with pytest.raises((AssertionError, FrontierError), match=RANKED[cls]):
        check_ranked(cls, seed=0)


@pytest.mark.parametrize("cls", DRAWN, ids=lambda cls: cls.__name__)
def test_a_broken_drawn_frontier_is_reported(cls: type[DrawnInMemory]) -> None:
    """The check fails, and its message says what is wrong."""
    with pytest.raises((AssertionError, FrontierError), match=DRAWN[cls]):
        check_drawn(cls, seed=0)
