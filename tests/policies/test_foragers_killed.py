"""Foragers whose crawl is killed anywhere: they resume as what they would have been."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from scrapy_focus import Crawl, Job, Link, Mission, Outcome, memory_frontier
from scrapy_focus.policies.foragers import Foragers
from tests.made import Clock
from tests.policies.test_revisits_killed import EACH, Site, is_target, to_the_place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from scrapy_focus import Pick

WORDS = "wine steel rail moon goal vote tax song film war law sea ship bird tree snow rain sun red price".split()
RULES = {"slice": 15, "k": 4, "sample": 20, "steps": 20, "weblog": 12, "start": 4, "high": 108.0, "low": 98.0}


class Text(NamedTuple):
    """A page of a few words."""

    url: str
    text: str
    status: int = 200
    headers: Mapping[str, str] = {}
    kind: str = "text/html"


class Words(Site):
    """The site of hubs, failures and moves, with something to read on it."""

    def answer(self, pick: Pick, now: float, last: float | None) -> Outcome:
        outcome = super().answer(pick, now, last)
        if outcome.error or outcome.changed is False:
            return outcome
        said = " ".join(WORDS[(pick.key * n + int(now / EACH / 300)) % len(WORDS)] for n in range(1, 30))
        return outcome._replace(page=Text(pick.url, f"<html><body><p>{said}</p></body></html>"))


class Walk:
    """Drives a crawl step by step, so many at a time; each step is a place at which it may be killed."""

    def __init__(self, crawl: Crawl, clock: Clock, in_flight: int) -> None:
        self.crawl = crawl
        self.clock = clock
        self.in_flight = in_flight
        self.site = Words()
        self.last: dict[int, float] = {}
        self.chosen: list[tuple[float, int, int]] = []

    def steps(self) -> Iterator[str]:
        crawl = self.crawl
        if not crawl.counts["outcomes"]:
            crawl.add([Link("http://h.test/1", 1, "h.test")])
            yield "added"
        while True:
            self.clock.now += EACH
            if not crawl.wake(1):
                yield "woke"
            while len(crawl.picks) < self.in_flight and (pick := crawl.next()) is not None:
                self.chosen.append((self.clock.now, pick.key, pick.id))
                yield "picked"
                crawl.sent(pick.id)
                yield "sent"
            for pick in list(crawl.picks.values())[: max(1, self.in_flight // 2)]:
                links = self.site.links(pick.key, self.clock.now)
                outcome = self.site.answer(pick, self.clock.now, self.last.get(pick.key))
                if not outcome.error:
                    self.last[pick.key] = self.clock.now
                for _ in crawl.report_in_parts(outcome, [] if outcome.changed is False else links):
                    yield "part"
                yield "reported"


def begun(clock: Clock, params: dict[str, Any], most_waiting: int | None, **where: Any) -> Crawl:
    where = where or {"frontier": memory_frontier}
    return Crawl(
        Foragers(**{"rules": RULES, **params}), goal=is_target, strict=True, clock=clock, seed=3, mission=Mission(),
        most_waiting=most_waiting, **where,
    )  # fmt: skip


def state_of(crawl: Crawl) -> dict[str, Any]:
    """Return all that decides about what is fetched when."""
    policy = crawl.policy
    assert isinstance(policy, Foragers)
    fleet = [
        (
            each.number, each.seat, each.home, each.score, each.sent, each.earned, each.requests, each.used,
            list(each.weblog.items()), each.td.weights.tolist(), each.path, list(each.open), each.visited,
            None if each.step is None else (each.step.key, each.step.reward, list(each.step.waits)),
        )
        for each in policy.fleet.values()
    ]  # fmt: skip
    return {
        "fleet": fleet, "wanted": policy._wanted, "turn": policy._turn, "n": policy._n, "failing": policy._failing,
        "moved": policy._moved, "found": policy._found, "seeds": policy.seeds, "asleep": crawl.sleepers.asleep,
        "pages": [(key, page.at, page.changed, page.version, page.links.tolist(), policy.pages.state(key).tolist())
                  for key in policy.pages if (page := policy.pages.get(key)) is not None],
        "random": policy.rng.bit_generator.state, "due": crawl.sleepers.next_due,
        "waiting": np.trim_zeros(policy.frontier.waiting, "b").tolist(), "counts": crawl.counts["outcomes"],
    }  # fmt: skip


def check(
    tmp_path: Path, places: list[tuple[str, int]], params: dict[str, Any], in_flight: int, more: int,
    most_waiting: int | None = None,
) -> None:  # fmt: skip
    """Kill a crawl at one place after the other; compare each with one that merely released what was in flight."""
    for place, after in places:
        folder = tmp_path / f"{place}-{after}"
        walks = []
        for where in ({}, {"job": Job(folder, every=70)}):
            walk = Walk(begun(clock := Clock(), params, most_waiting, **where), clock, in_flight)
            steps = to_the_place(walk, place, after)
            if where:
                walk.crawl.job.flush()
                copy = shutil.copytree(folder, folder.with_suffix(".killed"))
                steps.close()
                walk.crawl.close()
                walk.crawl = begun(clock, params, most_waiting, job=Job(copy, every=70))
                assert walk.crawl.state.choices.otherwise == 0
            else:
                steps.close()
                for pick_id in [*walk.crawl.picks]:
                    walk.crawl.release(pick_id)
            walks.append(walk)
        whole, killed = walks
        assert state_of(killed.crawl) == state_of(whole.crawl), (place, after)
        assert not killed.crawl.policy._found, "nothing is on its way"
        for walk in walks:
            before, steps = len(walk.chosen), walk.steps()
            while len(walk.chosen) < before + more:
                next(steps)
        assert killed.chosen == whole.chosen, (place, after)
        assert len({key for _, key, _ in whole.chosen}) < len(whole.chosen)
        assert state_of(killed.crawl) == state_of(whole.crawl), (place, after)
        killed.crawl.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("params", "in_flight", "places"),
    [
        ({}, 1, [("picked", 300), ("part", 0)]),
        ({"mode": "WLRL", "lookahead": 3}, 16, [("sent", 500), ("reported", 250)]),
        ({"mode": "RL", "preset": "palotai-2005"}, 4, [("part", 300)]),
    ],
    ids=["learned", "WLRL, sixteen in flight", "as published, in the middle of a page"],
)
def test_choices_are_what_they_would_have_been(
    params: dict[str, Any], in_flight: int, places: list[tuple[str, int]], tmp_path: Path
) -> None:
    """Whatever happened last, though pages fail, move, or are unchanged."""
    check(tmp_path, places, params, in_flight, more=60)
