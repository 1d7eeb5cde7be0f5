"""A crawl that keeps a site fresh, killed anywhere: it resumes as what it would have been."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import Budget, Crawl, Job, Link, Mission, Outcome, Revisits, Signal, memory_frontier
from scrapy_focus.learn.changes import DAY
from tests.made import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy_focus import Pick

HOUR = 3600.0
EACH = DAY / 300  # seconds between two looks


class Site:
    """Hubs that list targets, a huge one, targets that change, and pages that fail, move or die, all by the clock."""

    hubs = tuple(range(2, 12))
    huge = 12

    def links(self, key: int, now: float) -> list[Link]:
        if key == 1:
            return [self.link(i) for i in (*self.hubs, self.huge, *range(20, 50))]
        if key == self.huge:
            first = 100_000 + 550 * int(now / DAY / 2)
            return [self.link(first + i) for i in range(1200)]
        if key in self.hubs:
            born = int(now / HOUR / key)
            return [self.link(1000 * key + i) for i in range(max(0, born - 10), born)]
        return []

    def link(self, key: int) -> Link:
        path = "html/body/main/ul/li/a" if key >= 1000 else "html/body/nav/a" if key < 20 else "html/body/aside/p/a"
        return Link(f"http://h.test/{key}", key, "h.test", 1, str(key), path)

    def answer(self, pick: Pick, now: float, last: float | None) -> Outcome:
        """Return what a page is now that was fetched last then, or failed."""
        key = pick.key
        if key % 17 == 0 and int(now / HOUR) % 3:
            return Outcome(pick=pick, status=503, error="http_error")
        if key % 19 == 0:
            gone = int(now / DAY) % 2 == 1
            return Outcome(pick=pick, status=410 if gone else 404, error="http_error", once=gone)
        if key % 23 == 0:
            return Outcome(pick=pick, status=200, mime="text/html", also=(10_000_000 + key,), once=key % 2 == 0)
        changed = None if last is None else int(now / HOUR / (key % 7 + 1)) != int(last / HOUR / (key % 7 + 1))
        return Outcome(pick=pick, status=200, mime="text/html", size=1000, changed=changed, max_age=600.0 * (key % 3))


class Walk:
    """Drives a crawl step by step; each step is a place at which it may be killed. It is the world, and survives."""

    def __init__(self, crawl: Crawl, clock: Clock) -> None:
        self.crawl = crawl
        self.clock = clock
        self.site = Site()
        self.last: dict[int, float] = {}
        self.chosen: list[tuple[float, int, int]] = []

    def steps(self) -> Iterator[str]:
        crawl, turn = self.crawl, 0
        if not crawl.counts["outcomes"]:
            crawl.add([Link("http://h.test/1", 1, "h.test")])
            yield "added"
        while True:
            turn += 1
            self.clock.now += EACH if turn % 40 else 6 * HOUR
            if not crawl.wake(1):
                yield "woke"
            if turn % 7 == 0:
                keys = (2, 3, 25, 2000 + turn % 50, 100_000 + turn % 30)
                crawl.hear([Signal(key, "h.test", self.clock.now - turn % 3, "sitemap") for key in keys])
                yield "heard"
            pick = crawl.next()
            if pick is None:
                continue
            self.chosen.append((self.clock.now, pick.key, pick.id))
            yield "picked"
            crawl.sent(pick.id)
            yield "sent"
            links = self.site.links(pick.key, self.clock.now)
            outcome = self.site.answer(pick, self.clock.now, self.last.get(pick.key))
            if not outcome.error:
                self.last[pick.key] = self.clock.now
            for _ in crawl.report_in_parts(outcome, links):
                yield "part"
            yield "reported"


def is_target(outcome: Outcome) -> float:
    """Say that the pages which hubs list are looked for."""
    return float(outcome.pick.key >= 1000)


def begun(clock: Clock, params: dict[str, Any], rate: str | None, **where: Any) -> Crawl:
    where = where or {"frontier": memory_frontier}
    return Crawl(
        Revisits(per_day=300.0, **params), goal=is_target, strict=True, clock=clock, seed=3, budget=Budget(rate=rate),
        mission=Mission(), **where,
    )  # fmt: skip


def state_of(crawl: Crawl) -> dict[str, Any]:
    """Return all that decides about what is fetched when: places, due times, records, plan, estimates."""
    policy = crawl.policy
    assert isinstance(policy, Revisits)
    kept = policy.frontier.kept(range(len(policy.frontier.waiting)))
    urls = policy.frontier.urls(kept.numbers.tolist())
    pages = {url: (float(at), memo.tobytes()) for url, at, memo in zip(urls, kept.due, kept.vectors, strict=True)}
    changes = policy.changes
    return {
        "pages": pages, "plan": (policy.plan.pages, policy.plan._visits.tolist()), "asleep": crawl.sleepers.asleep,
        "priors": changes._priors.tolist(), "births": changes._births.tolist(), "seen": changes._seen.tolist(),
        "shares": changes._shares.tolist(), "said": policy._said, "shown": policy._shown, "born": policy._born, "first": policy._first,
        "typical": policy.typical, "belief": vars(policy.belief), "random": policy.rng.bit_generator.state,
        "turn": crawl.next_turn, "used": crawl.budget.requests_used, "counts": crawl.counts["outcomes"],
        "waiting": np.trim_zeros(policy.frontier.waiting, "b").tolist(), "due": crawl.sleepers.next_due,
    }  # fmt: skip


def to_the_place(walk: Walk, place: str, after: int) -> Iterator[str]:
    """Step until the first place of this kind after so many steps; return the steps, as stored there."""
    steps = walk.steps()
    for n, name in enumerate(steps):
        if n >= after and name == place:
            break
    return steps


def check(tmp_path: Path, places: list[tuple[str, int]], params: dict[str, Any], rate: str | None, more: int) -> None:
    """Kill one crawl at one place after the other; compare each with one that merely released what was in flight."""
    for place, after in places:
        folder = tmp_path / f"{place}-{after}"
        crawls = []
        for where in ({}, {"job": Job(folder, every=70)}):
            walk = Walk(begun(clock := Clock(), params, rate, **where), clock)
            steps = to_the_place(walk, place, after)
            if where:
                walk.crawl.job.flush()
                copy = shutil.copytree(folder, folder.with_suffix(".killed"))
                steps.close()
                walk.crawl.close()
                walk.crawl = begun(clock, params, rate, job=Job(copy, every=70))
                assert walk.crawl.state.choices.otherwise == 0
            else:
                steps.close()
                for pick_id in [*walk.crawl.picks]:
                    walk.crawl.release(pick_id)
            crawls.append(walk)
        whole, killed = crawls
        assert state_of(killed.crawl) == state_of(whole.crawl), (place, after)
        for walk in crawls:
            before, steps = len(walk.chosen), walk.steps()
            while len(walk.chosen) < before + more:
                next(steps)
        assert killed.chosen == whole.chosen, (place, after)
        assert len({key for _, key, _ in whole.chosen}) < len(whole.chosen)
        assert state_of(killed.crawl) == state_of(whole.crawl), (place, after)
        killed.crawl.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("params", "rate", "places"),
    [
        ({}, None, [("picked", 400), ("part", 0), ("part", 500), ("heard", 500)]),
        ({"goal": "copies"}, "280/day", [("sent", 700), ("woke", 300), ("reported", 450)]),
    ],
    ids=["news", "copies, with a rate"],
)
def test_due_times_rates_and_choices_are_what_they_would_have_been(
    params: dict[str, Any], rate: str | None, places: list[tuple[str, int]], tmp_path: Path
) -> None:
    """Whatever happened last: a choice, a request, a part of a page, a signal, a link that woke."""
    check(tmp_path, places, params, rate, more=60)
