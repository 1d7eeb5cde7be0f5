"""Policies that fetch pages again without learning: in turn, only hubs, at random, and anew each day."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import chisquare

from scrapy_focus import Budget, ConfigError, Crawl, FilesGoal, Job, Policy, State, check_policy, memory_frontier
from scrapy_focus.core.placer import PART
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.rounds import DAY, AtRandom, HubsInTurn, InTurn, Restarts
from tests.made import Clock, failure, links
from tests.made import page as came
from tests.replay.handmade import page, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scrapy_focus import Pick

HOUR = 3600.0
ALL = {
    "in turn": InTurn,
    "hubs": partial(HubsInTurn, links=4),
    "random": AtRandom,
    "restarts": partial(Restarts, every=0.001),
}


class World:
    """A crawl of a graph of pages, one at a time; each takes a second."""

    def __init__(
        self, policy: Policy, graph: dict[int, list[int]], *seeds: int, clock: Clock | None = None, **rest: Any
    ) -> None:
        self.graph = graph
        self.clock = Clock() if clock is None else clock
        where = {} if "job" in rest else {"frontier": memory_frontier}
        self.crawl = Crawl(policy, strict=True, clock=self.clock, **{"seed": 0, **where, **rest})
        if seeds:
            self.crawl.add(links(*seeds))

    def visit(self, status: int | None = 200, **rest: Any) -> int | None:
        """Fetch the next page, where there is one, and return its key."""
        pick = self.crawl.next()
        if pick is not None:
            self.crawl.sent(pick.id)
            self.clock.now += 1
            self.report(pick, status, **rest)
        return None if pick is None else pick.key

    def report(self, pick: Pick, status: int | None = 200, **rest: Any) -> None:
        if status != 200:
            self.crawl.report(failure(pick, status))
        elif rest.get("changed") is False:
            self.crawl.report(came(pick, **rest))
        else:
            self.crawl.report(came(pick, **rest), links(*self.graph.get(pick.key, [])))

    def visits(self, n: int) -> list[int | None]:
        return [self.visit() for _ in range(n)]

    def wait(self) -> float:
        """Let the time pass until a link is due; return when that is."""
        due = self.crawl.sleepers.next_due
        assert due is not None
        assert due > self.clock.now
        self.clock.now = due
        return due


def test_known_pages_and_new_ones_by_turns() -> None:
    """In the order of arrival; known ones at equal intervals when all are known."""
    world = World(InTurn(), {1: [2, 3, 4]}, 1)
    assert world.visits(7) == [1, 1, 2, 1, 3, 2, 4]
    visits = world.visits(40)
    assert {key: {b - a for a, b in pairwise(np.flatnonzero(np.array(visits) == key))} for key in (1, 2, 3, 4)} == {
        key: {4} for key in (1, 2, 3, 4)
    }


def test_what_appears_on_a_known_page_is_next() -> None:
    """Before what was found earlier on pages that were new, and one after the other."""
    world = World(InTurn(), {1: [2, 3, 4, 5]}, 1)
    assert world.visits(1) == [1]
    world.graph[1] = [7, 8, 2]
    assert world.visits(5) == [1, 7, 8, 2, 1]


def test_a_pick_that_is_released_changes_no_turn() -> None:
    """It is next again; and to choose nothing changes nothing."""
    world = World(InTurn(), {1: [2, 3]}, 1)
    world.visit()
    for _ in range(3):
        pick = world.crawl.next()
        assert pick is not None
        assert pick.key == 1
        world.crawl.release(pick.id)
        assert world.crawl.next({"h"}) is None
    assert world.visits(3) == [1, 2, 1]


def test_a_page_that_could_not_be_had_waits_an_hour_and_twice_as_long_each_time() -> None:
    """As what it was: a new one is new then, and a known one known; what does not exist is left."""
    world = World(InTurn(), {1: [2, 3, 4]}, 1)
    start = world.clock.now
    waits = []
    for status in (503, None, 429):
        assert world.visit(status) == 1
        at = world.clock.now
        waits.append(world.wait() - at)
    assert waits == [HOUR, 2 * HOUR, 4 * HOUR]
    assert world.visit() == 1
    assert world.visits(6) == [2, 1, 3, 2, 4, 1], "they appeared on no known page"
    assert world.visit(500) == 3
    assert 3 not in world.visits(6)
    world.wait()
    assert 3 in world.visits(4)
    assert (gone := world.visit(404)) is not None
    assert gone not in world.visits(8)
    assert world.crawl.sleepers.asleep == 0
    lost = World(InTurn(), {}, 1)
    while lost.visit(503):
        if lost.crawl.sleepers.next_due is None:
            break
        lost.wait()
    assert 14 * DAY < lost.clock.now - start < 28 * DAY, "then it is given up"


def test_hubs_are_counted_by_all_of_their_links() -> None:
    """Those that were known before, too; other pages are fetched once."""
    world = World(HubsInTurn(links=3), {1: [2, 3, 4], 2: [1, 3, 4], 3: [1, 4], 4: [1, 1, 2, 2]}, 1)
    assert world.visits(5) == [1, 1, 2, 1, 3]
    assert Counter(world.visits(39)) == {1: 19, 2: 19, 4: 1}


def test_a_hub_stays_one() -> None:
    """If it is unchanged, and so without links, and if it has fewer."""
    world = World(HubsInTurn(links=3), {1: [2, 3, 4]}, 1)
    assert world.visit() == 1
    assert [world.visit(changed=False) for _ in range(7)] == [1, 2, 1, 3, 1, 4, 1]
    world.graph[1] = [9]
    assert [world.visit(changed=True) for _ in range(4)] == [1, 9, 1, 1]
    assert not world.crawl.policy._coming  # type: ignore[attr-defined]


def test_a_hub_of_many_links_is_placed_in_parts() -> None:
    """And counted as a whole."""
    world = World(HubsInTurn(links=2 * PART + 5), {1: [*range(2, 2 * PART + 7)], 2: [*range(3, 2 * PART + 7)]}, 1)
    assert world.visits(2) == [1, 1]
    world.visit()
    assert Counter(world.visits(40))[1] >= 20
    assert Counter(world.visits(40))[2] == 0


@pytest.mark.slow
def test_known_pages_at_random() -> None:
    """Each as likely as any other, at intervals of any length; two seeds, two orders."""
    orders = []
    for seed in range(2):
        world = World(AtRandom(), {1: [*range(2, 21)]}, 1, seed=seed)
        world.visits(100)
        orders.append(world.visits(4000))
    assert orders[0] != orders[1]
    counts = Counter(orders[0])
    assert sorted(counts) == [*range(1, 21)]
    assert chisquare([*counts.values()]).pvalue > 0.001
    gaps = np.concatenate([np.diff(np.flatnonzero(np.array(orders[0]) == key)) for key in counts])
    assert 0.8 < gaps.std() / gaps.mean() < 1.1, "as where chance decides anew each time"


def test_a_round_each_day() -> None:
    """Breadth-first from the seed, whatever is known; the last round's links are as good as new."""
    world = World(Restarts(), {1: [2, 3], 2: [4], 3: [1, 2]}, 1)
    began = world.clock.now
    assert world.visits(5) == [1, 2, 3, 4, None]
    assert world.wait() == began + DAY
    world.graph[1] = [3, 5]
    assert world.visits(6) == [1, 3, 5, 2, 4, None]
    world.clock.now += 10 * DAY
    assert world.visits(7) == [1, 3, 5, 2, 4, None, None], "rounds that were missed are not made up for"
    assert world.wait() == began + 12 * DAY
    assert {state.name for state in world.crawl.knows([2, 3, 4, 5])} == {"FETCHED"}


def test_a_round_that_is_not_done_is_broken_off() -> None:
    """Its remaining links are queued behind the new round, and move there when it finds them."""
    world = World(Restarts(every=3 / DAY), {1: [2, 3, 4, 5], 2: [6], 6: [5]}, 1)
    assert world.visits(3) == [1, 2, 3]
    assert world.visits(3) == [1, 2, 3]
    world.graph[1] = [6]
    assert world.visits(3) == [1, 6, 5]
    assert world.visits(2) == [1, 6]


def test_several_seeds_are_one_round() -> None:
    """Each is fetched once in it, also one that comes late, or is found as a link."""
    world = World(Restarts(), {1: [2, 3], 2: [1, 4]}, 1, 2)
    assert world.visits(5) == [1, 2, 3, 4, None]
    world.crawl.add(links(9))
    assert world.visits(2) == [9, None]
    world.crawl.add(links(2, 3, 9))
    assert world.visit() is None, "what is known is no new seed"
    world.wait()
    assert world.visits(6) == [1, 2, 9, 3, 4, None]


@pytest.mark.parametrize("status", [404, 503, None])
def test_a_seed_that_fails_is_tried_in_the_next_round(status: int | None) -> None:
    """And not before."""
    world = World(Restarts(), {1: [2]}, 1)
    began = world.clock.now
    assert world.visit(status) == 1
    assert world.visit() is None
    assert world.wait() == began + DAY
    assert world.visits(3) == [1, 2, None]


def test_what_was_given_up_in_one_round_is_found_in_the_next() -> None:
    """As a link like any other."""
    world = World(Restarts(), {1: [2, 3, 4]}, 1, most_waiting=1)
    assert world.visits(3) == [1, 2, None]
    assert world.crawl.knows([3, 4]) == [State.GIVEN_UP] * 2
    world.crawl.state.room.most = None
    world.wait()
    assert world.visits(5) == [1, 2, 3, 4, None]


@pytest.mark.parametrize("policy", [InTurn, HubsInTurn, AtRandom, Restarts])
def test_a_simulation_that_would_not_end_is_refused(policy: Callable[[], Policy], tmp_path: Path) -> None:
    """It needs a budget, as any of a policy that fetches pages again."""
    site = site_of(tmp_path, {"/": page("/1", "/2"), "/1": page("/2"), "/2": page("/")})
    with pytest.raises(ConfigError, match="fetches pages again and again, so that the simulation would not end"):
        simulate(policy(), FilesGoal(), site)
    harvest = simulate(policy(), FilesGoal(), site, budget=Budget(seconds=3.5 * DAY, rate="4/day"))
    assert harvest.requests > 10 or policy is HubsInTurn
    if policy is Restarts:
        assert harvest.asked[:3] == harvest.asked[3:6]


@pytest.mark.parametrize("params", [{"every": 0}, {"every": "daily"}, {"every": float("nan")}])
def test_days_that_are_none_are_named(params: dict[str, Any]) -> None:
    """With the expected values."""
    with pytest.raises(ConfigError, match=r"Restarts\(every="):
        Restarts(**params)


@pytest.mark.parametrize("links", [0, 2.5, "many"])
def test_numbers_of_links_that_are_none_are_named(links: Any) -> None:
    """Likewise."""
    with pytest.raises(ConfigError, match=r"HubsInTurn\(links="):
        HubsInTurn(links=links)


@pytest.mark.slow
def test_promises_are_kept_with_other_parameters() -> None:
    """Rounds that are broken off, and hubs of few links."""
    check_policy(partial(Restarts, every=100 / DAY))
    check_policy(partial(HubsInTurn, links=2))


def steps(world: World, chosen: list[int]) -> Iterator[str]:
    """Crawl a site that changes, some of whose pages fail; pause at each place where a crawl may be killed."""
    for turn in range(10**6):
        world.clock.now += 0.5 if turn % 30 else 40.0
        pick = world.crawl.next()
        if pick is None:
            continue
        chosen.append(pick.key)
        yield "picked"
        world.crawl.sent(pick.id)
        yield "sent"
        day, key = int(world.clock.now / 60), pick.key
        world.graph[key] = [2 * key + day % 3, 2 * key + 2, *range(1, key % 6)] if key < 60 else []
        status = 503 if key % 7 == 3 and day % 2 else 404 if key % 11 == 5 else 200
        world.report(pick, status, changed=[None, True, False][turn % 3] if key in chosen[:-1] else None)
        yield "reported"


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("place", "after"), [("picked", 100), ("reported", 200)])
def test_a_crawl_that_was_killed_makes_the_same_choices(name: str, place: str, after: int, tmp_path: Path) -> None:
    """Between checkpoints, as one that merely released what was in flight."""
    runs: list[list[int]] = []
    for where in ({}, {"job": Job(tmp_path / "job", every=40)}):
        world, chosen = World(ALL[name](), {}, 1, 2, seed=3, **where), []
        walk = steps(world, chosen)
        next(each for n, each in enumerate(walk) if n >= after and each == place)
        walk.close()
        if where:
            world.crawl.job.flush()  # type: ignore[union-attr]
            shutil.copytree(tmp_path / "job", tmp_path / "killed")
            world.crawl.close()
            job = Job(tmp_path / "killed", every=40)
            world = World(ALL[name](), world.graph, clock=world.clock, seed=9, job=job)
            assert world.crawl.state.choices.otherwise == 0
        else:
            for pick_id in [*world.crawl.picks]:
                world.crawl.release(pick_id)
        walk = steps(world, chosen)
        while len(chosen) < after / 3 + 150:
            next(walk)
        runs.append(chosen)
        world.crawl.close()
    assert runs[0] == runs[1]
    assert len(set(runs[0])) < len(runs[0]) / 2
