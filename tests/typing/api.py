"""What users write, to be checked by ``mypy --strict`` and never run: a frontier of typed pieces, each of one's own."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar, assert_type

import numpy as np
from attrs import field

from scrapy_focus import (
    NOT_NOW,
    Bandit,
    Budget,
    Comparison,
    CostLimit,
    Crawl,
    Draw,
    Drawn,
    EventLog,
    FilesGoal,
    Frontier,
    Goal,
    ItemsGoal,
    Job,
    Link,
    Mission,
    Ordering,
    Outcome,
    Page,
    Pick,
    Placement,
    Plateau,
    Policy,
    Ranked,
    Sleeping,
    State,
    StopRule,
    Vectors,
    check_drawn,
    check_policy,
    check_ranked,
    compare,
    configurable,
    memory_frontier,
    parameter,
    record,
    simulate,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
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


@configurable
class Weighted(Ordering):
    """Parameters that are declared make the constructor; other attributes are none."""

    frontier: Ranked = field(init=False)
    weight: float = parameter("What a link of the topic counts for.", default=1.0, above=0)
    words: Collection[str] | None = parameter("Words of the topic.", default=None, convert=frozenset)

    def __attrs_post_init__(self) -> None:
        self.found = 0

    def rank(self, link: Link, source: Outcome | None) -> float:
        return self.weight * (link.anchor in (self.words or ()))


class HalfWeighted(Weighted):
    """A subclass with a constructor of its own."""

    def __init__(self, *, words: Collection[str]) -> None:
        super().__init__(weight=0.5, words=words)


def weigh() -> None:
    """Parameters have their types, and only they can be given."""
    assert_type(Weighted(weight=2, words=["wine"]).weight, float)
    HalfWeighted(words=["wine"])
    Weighted(weight="2")  # type: ignore[arg-type]
    Weighted(frontier=None)  # type: ignore[call-arg]
    Weighted(2.0)  # type: ignore[call-arg]


class PerHost(Bandit):
    """A score of one arm alone, and something from the mission."""

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        self.words = mission.words
        self.looks_for: frozenset[str] = mission.types
        super().open(frontier, rng, mission)

    def arm(self, link: Link) -> int:
        return len(link.host) % 7

    def score(self, arm: int) -> float:
        return float(self.stats.means[arm])


class Sweeping(Ordering):
    """Looks through what waits in the order of ranks."""

    def rank(self, link: Link, source: Outcome | None) -> float:
        return self.now

    def release(self, pick: Pick) -> None:
        for link, placement in self.frontier.scan(0):
            assert_type(link, Link)
            assert_type(placement, Placement)
        self.frontier.move([pick.key], [None])
        assert_type(self.frontier.drop(0, 3), int)

    def again(self, outcome: Outcome) -> Placement | None:
        sleeping: Sleeping = memory_frontier()
        assert_type(sleeping.next_due, float | None)
        assert_type(sleeping.asleep + sleeping.wake(self.now), int)
        return None if outcome.error or outcome.once else Placement(0, 0.0, after=outcome.at + 60.0)

    def give_up(self, n: int) -> int:
        return self.frontier.drop_each({0: n - 1}) + super().give_up(1)

    def due(self) -> float | None:
        return self.now + 1.0 if len(self.frontier) else None


class Sampling(Policy):
    """All three verbs, over links that wait with a vector."""

    wants_known: ClassVar[frozenset[State]] = frozenset({State.WAITING, State.GIVEN_UP})

    frontier: Drawn

    def keeps(self, mission: Mission) -> Vectors:
        return Vectors(2 if mission.heads_tell else 4)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        memo = np.zeros(4, np.uint8)
        return [Placement(0, 0.0, memo, "HEAD") if link.state == State.NEW else NOT_NOW for link in links]

    def select(self, busy: Collection[str]) -> Pick | None:
        drawn = self.frontier.draw({0: 8}, self.rng, busy=busy)
        assert_type(drawn, Draw)
        return self.frontier.take_drawn(int(drawn.slots[0])) if len(drawn.slots) else None

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        assert_type(source.also, tuple[int, ...])

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        return [("all", 0.0, len(self.frontier))][:k]


class AfterTen:
    """A stop rule is any object with these four."""

    reason = "ten"

    def reached(self, requests: int, targets: float, cost: float | None = None) -> bool:
        return targets >= 10

    def state(self) -> dict[str, float | None]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass


class LongPages:
    """A goal is any callable from an outcome to a number."""

    def __call__(self, outcome: Outcome) -> float | None:
        page: Page | None = outcome.page
        return None if page is None else float(len(page.text) > 10_000)


def by_hand(outcome: Outcome) -> float:
    """A function is a goal too."""
    return float("price" in outcome.pick.url)


GOALS: list[Goal] = [LongPages(), by_hand, ItemsGoal(), FilesGoal(types=["text/csv"]), lambda outcome: None]
STOPS: list[StopRule] = [Plateau(window=10), CostLimit(50.0), AfterTen()]
RANKED: Ranked = memory_frontier()
DRAWN: Drawn = memory_frontier(Vectors(4))
FRONTIER: Frontier = RANKED


def crawl_by_hand(folder: Path) -> float:
    """Drive a crawl without Scrapy."""
    crawl = Crawl(
        ShallowFirst(),
        frontier=FRONTIER,
        goal=GOALS[0],
        budget=Budget(requests=100, seconds=1.5),
        stop=STOPS[0],
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
    assert_type(with_job.status().recovered, frozenset[int])
    assert_type(with_job.knows([1]), list[State])
    with_job.close()
    return crawl.rewards


def checks() -> None:
    """Both kinds of pieces can be checked by class, or by what makes one."""
    check_policy(ShallowFirst)
    check_policy(lambda: BestHost(prior=2.0), pages=10)
    check_policy(Sampling, mission=Mission(words=("wine",), unit="bytes"))
    check_ranked(memory_frontier, seed=1)
    check_drawn(memory_frontier, steps=10)


def research(path: Path) -> str:
    """Record, simulate and compare, with whatever can stand for a recording, a policy or a target."""
    site = record("https://example.org/", path, budget=100, settings={"DOWNLOAD_DELAY": 0.5})
    record([path, "b.warc.gz"], "b.sqlite", root="https://example.org/", bodies=True)
    assert_type(simulate(site, ShallowFirst, budget=100, targets="csv,pdf").requests, int)
    simulate("b.sqlite", BestHost(prior=2.0), targets=by_hand)
    simulate("b.sqlite", lambda: BestHost(prior=2.0), targets=["csv"], seed=3)
    found = compare(site, ShallowFirst)
    assert_type(found, Comparison)
    compare([site, path], ["BFS", ShallowFirst, BestHost()], seeds=[3, 5], processes=1)
    compare({"one": site}, {"mine": ShallowFirst, "best": BestHost()}, seeds=3, targets=FilesGoal(types=["csv"]))
    simulate(site, 3)  # type: ignore[arg-type]
    return found.to_latex(["requests_90"], caption="Policies")
