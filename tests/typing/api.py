"""What users write, to be checked by ``mypy --strict`` and never run: a frontier of typed pieces, each of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, assert_type

import numpy as np

from scrapy_focus import (
    Bandit,
    Budget,
    Crawl,
    EventLog,
    FilesGoal,
    Frontier,
    Goal,
    ItemsGoal,
    Job,
    Link,
    Ordering,
    Outcome,
    Page,
    Pick,
    Placement,
    Plateau,
    Policy,
    State,
    check_frontier,
    check_policy,
    memory_frontier,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from numpy.typing import NDArray


class ShallowFirst(Ordering):
    """One method makes an ordering."""

    def rank(self, link: Link, source: Outcome | None) -> float:
        bonus = 0.5 if source is not None and source.reward else 0.0
        return bonus - link.url.count("/")


class BestHost(Bandit):
    """Two methods make a bandit; parameters are keywords."""

    reads_page: ClassVar[bool] = False

    def __init__(self, *, prior: float = 1.0) -> None:
        self.prior = prior
        self.numbers: dict[str, int] = {}
        self.earned: list[float] = []

    def arm(self, link: Link) -> int:
        number = self.numbers.setdefault(link.host, len(self.numbers))
        if number == len(self.earned):
            self.earned.append(self.prior)
        return number

    def scores(self) -> NDArray[np.float64]:
        return np.array(self.earned)

    def learn(self, outcome: Outcome) -> None:
        self.earned[outcome.pick.arm] += outcome.reward

    def explain(self, pick: Pick) -> dict[str, Any]:
        return {"host": pick.host, "earned": self.earned[pick.arm]}


class Sampling(Policy):
    """All three verbs."""

    wants_known: ClassVar[bool] = True

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        memo = np.array([0.0 if source is None else source.reward], np.float32)
        return [Placement(0, 0.0, memo, "HEAD") if link.state == State.NEW else None for link in links]

    def select(self, busy: Collection[str]) -> Pick | None:
        for link, placement in self.frontier.sample(0, 8, self.rng, busy):
            assert_type(link, Link)
            assert_type(placement, Placement)
            return self.frontier.take(link.key)
        return None

    def release(self, pick: Pick) -> None:
        self.frontier.move([pick.key], [None])

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        return [("all", 0.0, len(self.frontier))][:k]


class LongPages:
    """A goal is any callable from an outcome to a number."""

    def __call__(self, outcome: Outcome) -> float | None:
        page: Page | None = outcome.page
        return None if page is None else float(len(page.text) > 10_000)


def by_hand(outcome: Outcome) -> float:
    """A function is a goal too."""
    return float("price" in outcome.pick.url)


GOALS: list[Goal] = [LongPages(), by_hand, ItemsGoal(), FilesGoal(types=["text/csv"]), lambda outcome: None]
FRONTIER: Frontier = memory_frontier()


def crawl_by_hand(folder: Path) -> float:
    """Drive a crawl without Scrapy."""
    crawl = Crawl(
        ShallowFirst(),
        frontier=FRONTIER,
        goal=GOALS[0],
        budget=Budget(requests=100, seconds=1.5),
        stop=Plateau(window=10),
        log=EventLog(folder / "events.jsonl.gz"),
        seed=0,
    )
    crawl.add([Link("http://a/", 1, "a")])
    while (pick := crawl.next(busy={"b"})) is not None:
        assert_type(pick, Pick)
        crawl.report(Outcome(pick=pick, status=200, mime="text/html"), [Link("http://a/x", 2, "a", anchor="x")])
    crawl.close()
    with_job = Crawl(ShallowFirst(), job=Job(folder / "job", every=10))
    with_job.checkpoint()
    assert_type(with_job.recovered, set[int])
    with_job.close()
    return crawl.rewards


def checks() -> None:
    """Both kinds of pieces can be checked by class, or by what makes one."""
    check_policy(ShallowFirst)
    check_policy(lambda: BestHost(prior=2.0), pages=10)
    check_frontier(memory_frontier, seed=1)
