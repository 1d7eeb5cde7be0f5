"""What a crawl repeats after a kill equals the first time: indirect choices, probabilities, links, and counts."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import Crawl, Job, Link, Outcome, Placement, PolicyError, Signal, State, memory_frontier
from scrapy_focus.policies.bases import Bandit, Ordering
from scrapy_focus.policies.bestfirst import BestFirst
from tests.made import Clock, EachAgain, Recording, link, links, page

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from scrapy_focus import Pick, Policy


def begun(folder: Path, policy: Policy, **options: Any) -> Crawl:
    return Crawl(policy, job=Job(folder / "focus"), seed=1, clock=Clock(), **options)


def killed(crawl: Crawl, folder: Path, policy: Policy, **options: Any) -> Crawl:
    """Return the crawl as another process finds it after a kill now."""
    copy = shutil.copytree(folder, folder.with_name(f"{folder.name}-killed"))
    crawl.close()
    return begun(copy, policy, **options)


def fetch(crawl: Crawl, n: int) -> list[int]:
    picks = [crawl.next() for _ in range(n)]
    for pick in picks:
        assert crawl.sent(pick.id)
        crawl.report(page(pick, items=1.0))
    return [pick.key for pick in picks]


class Detour(Bandit):
    """Takes a link out, releases it, and takes another, every second time."""

    def arm(self, link: Link) -> int:
        return link.key % 2

    def rank(self, link: Link) -> float:
        return -float(link.key)

    def select(self, busy: Collection[str]) -> Pick | None:
        pick = self.frontier.pop(1, busy)
        if pick is not None and self.steps % 2 == 0:
            self.frontier.release(pick)
            pick = self.frontier.pop(0, busy)
        if pick is not None:
            self.steps += 1
            self.stats.pull(pick.arm)
        return pick


def test_a_choice_with_a_detour_is_made_again(tmp_path: Path) -> None:
    """A select that releases what it took first counts once, and for the policy, when it is done again."""
    crawl = begun(tmp_path / "a", Detour(), strict=True)
    crawl.add(links(*range(20)))
    fetch(crawl, 6)
    pulls, steps = crawl.policy.stats.pulls.tolist(), crawl.policy.steps
    again = killed(crawl, tmp_path / "a", Detour(), strict=True)
    assert (again.policy.stats.pulls.tolist(), again.policy.steps) == (pulls, steps) == ([3.0, 3.0], 6)
    assert again.state.choices.otherwise == 0
    again.close()


def test_what_a_full_domain_gave_up_stays_given_up(tmp_path: Path) -> None:
    """With a limit for each domain, the same links are queued after a kill, and the same are given up."""

    def made() -> BestFirst:
        return BestFirst(per_domain=2, keywords=("word",))

    crawl = begun(tmp_path / "a", made(), strict=True)
    crawl.add([link(i, host=f"h{i // 6}.test") for i in range(24)])
    fetch(crawl, 5)
    states = crawl.knows(range(24))
    again = killed(crawl, tmp_path / "a", made(), strict=True)
    assert again.knows(range(24)) == states
    assert states.count(State.GIVEN_UP) == 8
    again.close()


class Weighing(Ordering):
    """Notes the probability with which the pages it learned from were chosen."""

    def __init__(self) -> None:
        self.seen: list[float | None] = []

    def rank(self, link: Link, source: Outcome | None) -> float:
        return -float(link.key)

    def select(self, busy: Collection[str]) -> Pick | None:
        pick = super().select(busy)
        return None if pick is None else pick._replace(chance=np.float32(0.25))  # type: ignore[arg-type]

    def learn(self, outcome: Outcome) -> None:
        self.seen.append(outcome.pick.chance)


def test_chances_are_there_again(tmp_path: Path) -> None:
    """The chance of a choice is learned from again, and a number of NumPy is stored like any other."""
    crawl = begun(tmp_path / "a", Weighing(), strict=True)
    crawl.add(links(*range(5)))
    fetch(crawl, 2)
    flying = crawl.next()
    crawl.checkpoint()
    crawl.job.flush()  # type: ignore[union-attr]
    crawl.report(page(flying))
    again = killed(crawl, tmp_path / "a", Weighing(), strict=True)
    assert again.policy.seen == [0.25, 0.25, 0.25]
    again.close()


class Fickle(Ordering):
    """Gives up different links in each process."""

    def __init__(self, *, keeps: Callable[[int], bool]) -> None:
        self._keeps = keeps

    def rank(self, link: Link, source: Outcome | None) -> float:
        return 0.0

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        return [Placement(0, 0.0) if self._keeps(link.key) else None for link in links]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_keeps"}

    def attach(self, frontier: Any) -> None:
        super().attach(frontier)
        self._keeps = getattr(self, "_keeps", lambda key: key % 2 == 1)


def test_a_link_in_flight_has_its_url_again_whatever_the_policy_does(tmp_path: Path) -> None:
    """A link that the policy placed the first time, but not the second time, is queued with all its data."""
    crawl = begun(tmp_path / "a", Fickle(keeps=lambda key: key % 2 == 0))
    crawl.add([link(i, payload=b"callback") for i in range(20)])
    flying = {pick.key for pick in (crawl.next(), crawl.next(), crawl.next()) if pick is not None}
    again = killed(crawl, tmp_path / "a", Fickle(keeps=lambda key: True))
    assert again.recovered == flying == {0, 2, 4}
    waiting = {}
    while (pick := again.next()) is not None:
        waiting[pick.key] = (pick.url, pick.host, pick.payload)
    assert {key: waiting[key] for key in flying} == {key: (f"http://h/{key}", "h", b"callback") for key in flying}
    again.close()


class Failing(Bandit):
    """Fails at every second choice."""

    def __init__(self) -> None:
        self.asked = 0

    def arm(self, link: Link) -> int:
        return 0

    def select(self, busy: Collection[str]) -> Pick | None:
        self.asked += 1
        if self.asked % 2 == 0:
            raise ValueError("not today")
        return super().select(busy)


def test_what_the_crawl_chose_is_not_taken_back_from_the_policy() -> None:
    """Picks that the crawl chose for a failing policy are released without calling it."""
    crawl = Crawl(Failing(), frontier=memory_frontier, seed=1)
    crawl.add(links(*range(20)))
    for i in range(10):
        pick = crawl.next()
        if i % 2:
            crawl.release(pick.id)
        else:
            crawl.report(page(pick))
    assert (crawl.policy.steps, crawl.policy.stats.pulls.tolist()) == (5, [5.0])


def test_links_that_come_too_late_are_refused() -> None:
    """Links of a page whose outcome was reported could not be repeated: an error, and nothing is changed."""
    crawl = Crawl(Recording(), frontier=memory_frontier, strict=True)
    crawl.add(links(1))
    pick = crawl.next()
    outcome = page(pick)
    assert crawl.add(links(2), outcome) == 1
    crawl.report(outcome)
    with pytest.raises(PolicyError, match="which is not in flight: give them to report"):
        crawl.add(links(3), outcome)
    assert crawl.knows([3]) == [State.NEW]


def test_a_pick_is_released_once() -> None:
    """Neither a second time nor when its reward comes later."""
    crawl = Crawl(Recording(), frontier=memory_frontier, goal=lambda outcome: None, strict=True)
    crawl.add(links(1, 2))
    first, second = crawl.next(), crawl.next()
    crawl.release(first.id)
    crawl.report(page(second))
    for pick in (first, second):
        with pytest.raises(PolicyError, match="was released or reported already"):
            crawl.release(pick.id)
    assert crawl.reward(second.id, 1.0)


def test_what_was_recovered_is_counted_once(tmp_path: Path) -> None:
    """A crawl that is killed again while it recovers does not count its links twice."""
    crawl = begun(tmp_path / "a", Recording(), strict=True)
    crawl.add(links(*range(1, 9)))
    for _ in range(4):
        crawl.next()
    again = killed(crawl, tmp_path / "a", Recording(), strict=True)
    assert again.counts["recovered"] == 4
    again.next()
    third = killed(again, tmp_path / "a-killed", Recording(), strict=True)
    assert third.counts["recovered"] == 4
    third.close()


class Clumsy(Ordering):
    """Cannot place anything."""

    def rank(self, link: Link, source: Outcome | None) -> float:
        raise ValueError("no rank")


def test_links_that_nobody_placed_are_forgotten_when_they_are_fetched(tmp_path: Path) -> None:
    """What is remembered of a policy that failed to place does not grow with the crawl."""
    crawl = Crawl(Clumsy(), job=Job(tmp_path / "focus"), seed=1)
    crawl.add(links(*range(200)))
    fetch(crawl, 150)
    crawl.checkpoint()
    assert len(crawl.state.choices._stranded) <= 50
    crawl.close()


class Listening(EachAgain):
    """Wakes the pages that a signal reports as changed."""

    def hear(self, signals: Sequence[Signal]) -> None:
        self.frontier.push([Link("", signal.key) for signal in signals], [Placement(0, 0.0)] * len(signals))


def test_what_was_heard_of_pages_is_heard_again(tmp_path: Path) -> None:
    """A page woken by a signal is awake in the next run, and an unchanged one is unchanged in both."""
    policy = Listening()
    crawl = begun(tmp_path / "one", policy)
    crawl.add(links(1, 2))
    pick = crawl.next()
    assert pick is not None
    crawl.sent(pick.id)
    crawl.report(page(pick)._replace(changed=False, max_age=60.0))
    crawl.hear([Signal(pick.key, "h", 5.0, "feed")])
    again = killed(crawl, tmp_path / "one", Listening())
    assert (again.status().waiting, again.sleepers.asleep) == (2, 0)
    assert again.frontier.states([1, 2]) == [State.WAITING, State.WAITING]
    again.close()
