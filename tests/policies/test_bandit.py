"""A bandit of one's own: that scores are made again only where something happened, and the same arms are chosen."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrapy_focus import Bandit, Crawl, Outcome, PolicyError, State, check_policy, memory_frontier
from scrapy_focus.learn.arms import auer
from scrapy_focus.policies.bases import best_arm
from tests.made import link, links, page

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus import Link, Pick, Placement

BUSY = 8  # hosts
Choice = tuple[int, str] | None


class Numbered(Bandit):
    """The arm of a link stands in its URL; every fifth link is looked at by a HEAD first."""

    def arm(self, link: Link) -> int:
        return int(link.url.rpartition("/")[2])

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        return [
            place and place._replace(method="HEAD" if link.key % 5 == 0 and link.state == State.NEW else "GET")
            for link, place in zip(links, super().place(links, source), strict=True)
        ]


class Explorer(Numbered):
    """AUER with other weights."""

    alpha = 30.0


class Greedy(Numbered):
    """AUER without exploration: arms are equal until something is found, and many are after that."""

    alpha = 0.0


class AllAtOnce(Numbered):
    """Makes the scores of all arms at each choice, by the formula: what the heaps must agree with."""

    def select(self, busy: Collection[str]) -> Pick | None:
        awake = self.frontier.awake(busy)
        if not awake.any():
            return None
        self.stats.ensure(len(awake))
        pick = self.frontier.pop(best_arm(auer(self.stats, self.steps, alpha=self.alpha), awake), busy)
        assert pick is not None
        self.steps += 1
        self.stats.pull(pick.arm)
        return pick


class Wearing(Numbered):
    """A score of one's own, of one arm: what it earned, and less with each pull."""

    def score(self, arm: int) -> float:
        return float(self.stats.sums[arm] - 0.3 * self.stats.pulls[arm])


class WearingAtOnce(Numbered):
    """The same score, of all arms."""

    def scores(self) -> NDArray[np.float64]:
        return self.stats.sums - 0.3 * self.stats.pulls


def made_link(rng: np.random.Generator, key: int, arms: int) -> Link:
    """Return a link in an arm drawn at random, low numbers more often, on one of ten hosts that depends on both."""
    arm = int(arms * rng.random() ** 2)
    return link(key, host=f"h{(arm + int(rng.integers(3))) % 10}", url=f"http://a/{key}/{arm}")


def walk(policy: Bandit, *, arms: int, seed: int, steps: int = 1000, pickled: bool = False) -> list[Choice]:
    """Choose, report and release at random, and return what was chosen; ``None`` where nothing was.

    Half of the choices find some hosts busy. What happens depends on the seed and the choices alone.
    """
    rng = np.random.default_rng(seed)
    crawl = Crawl(policy, frontier=memory_frontier, seed=seed, strict=True)
    n_links = max(400, 2 * arms)
    crawl.add([made_link(rng, key, arms) for key in range(n_links)])
    out, chosen = list[Any](), list[Choice]()
    for step in range(steps):
        if pickled and step % 100 == 99:
            crawl.policy = pickle.loads(pickle.dumps(crawl.policy))
            crawl.policy.attach(crawl.frontier)
        action = rng.random()
        busy = {f"h{host}" for host in rng.integers(10, size=BUSY)} if rng.random() < 0.5 else ()
        if action < 0.55:
            pick = crawl.next(busy)
            chosen.append(None if pick is None else (pick.key, pick.method))
            if pick is not None:
                assert pick.host not in busy
                out.append(pick)
        elif out:
            pick = out.pop(int(rng.integers(len(out))))
            if action < 0.65:
                crawl.release(pick.id)
                continue
            fresh = [made_link(rng, n_links + i, arms) for i in range(int(rng.integers(3)))]
            n_links += len(fresh)
            crawl.report(page(pick, items=float(rng.choice([0.0, 0.0, 0.0, 1.0, 2.5, -0.5]))), fresh)
    crawl.frontier.check()
    return chosen


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("arms", [3, 40, 400])
@pytest.mark.parametrize("base", [Numbered, Explorer, Greedy])
def test_auer_chooses_as_the_formula_does(base: type[Numbered], arms: int, seed: int) -> None:
    """Over long walks with busy hosts, releases and HEADs, link by link, as if all scores were made at each choice."""

    class Reference(AllAtOnce):
        alpha = base.alpha

    wanted = walk(Reference(), arms=arms, seed=seed)
    assert walk(base(), arms=arms, seed=seed) == wanted
    assert walk(base(), arms=arms, seed=seed, pickled=True) == wanted
    assert len({key for key, _ in filter(None, wanted)}) > 250


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("arms", [3, 40, 400])
def test_a_score_of_one_arm_chooses_as_one_of_all(arms: int, seed: int) -> None:
    """The same walks with a score of one's own."""
    wanted = walk(WearingAtOnce(), arms=arms, seed=seed)
    assert walk(Wearing(), arms=arms, seed=seed) == wanted
    assert walk(Wearing(), arms=arms, seed=seed, pickled=True) == wanted
    assert len({key for key, _ in filter(None, wanted)}) > 250


class Asked(Wearing):
    """Writes down of which arms the score is asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        return Bandit.place(self, links, source)  # without HEADs

    def score(self, arm: int) -> float:
        self.asked.append(arm)
        return super().score(arm)

    def taken(self) -> list[int]:
        """Return the arms that were asked about since the last time."""
        asked, self.asked = sorted(self.asked), []
        return asked


def test_only_arms_in_which_something_happened_are_asked() -> None:
    """A choice asks for the score of the arm chosen before, and of those that were learned from, released, placed in or touched."""
    policy = Asked()
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add([link(key, url=f"http://h/{key % 500}") for key in range(1, 1001)])
    first = crawl.next()
    assert first is not None
    assert policy.taken() == list(range(500))
    second = crawl.next()
    assert second is not None
    assert policy.taken() == [first.arm] == [0]
    crawl.report(page(first, items=1.0), [link(2000, url="http://h/77")])
    crawl.release(second.id)
    third = crawl.next()
    assert third is not None
    assert third.arm == first.arm, "it earned 1, less 0.3 for its pull"
    assert policy.taken() == [0, 1, 77]
    policy.touch(300)
    policy.touch(300)
    assert crawl.next({"h"}) is None
    assert policy.taken() == [0, 300]
    assert crawl.next() is not None
    assert policy.taken() == []


def test_an_arm_that_is_touched_is_judged_again() -> None:
    """A score that changes by itself counts from the next choice on, once the arm is touched."""

    class Liked(Numbered):
        liked = -1

        def score(self, arm: int) -> float:
            return float(arm == self.liked)

    policy = Liked()
    crawl = Crawl(policy, frontier=memory_frontier, strict=True)
    crawl.add([link(key, url=f"http://h/{key % 9}") for key in range(1, 50)])
    assert crawl.next().arm == 0  # type: ignore[union-attr]
    policy.liked = 6
    assert crawl.next().arm == 0  # type: ignore[union-attr]
    policy.touch(6)
    assert crawl.next().arm == 6  # type: ignore[union-attr]


def test_a_score_that_is_no_number_is_an_error() -> None:
    """The message names the arm and the policy."""

    class Confused(Numbered):
        def score(self, arm: int) -> float:
            return float("nan") if arm == 2 else 0.0

    crawl = Crawl(Confused(), frontier=memory_frontier, strict=True)
    crawl.add([link(key, url=f"http://h/{key}") for key in (1, 2, 3)])
    with pytest.raises(PolicyError, match=r"score\(2\) of .*Confused is not a number"):
        crawl.next()


class TooShort(Bandit):
    """An arm for each host, and scores for two of them."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def arm(self, link: Link) -> int:
        return self.numbers.setdefault(link.host, len(self.numbers))

    def scores(self) -> NDArray[np.float64]:
        return np.zeros(2)


def test_scores_for_some_arms_are_an_error() -> None:
    """Links in the others would wait for ever: the crawl says so as soon as one waits there, and the check does."""
    crawl = Crawl(TooShort(), frontier=memory_frontier, strict=True)
    crawl.add([*links(1, host="a"), *links(2, host="b")])
    first = crawl.next()
    assert first is not None
    crawl.add(links(3, host="c"))
    with pytest.raises(
        PolicyError, match=r"scores\(\) gave 2 scores, and links wait in 3 arms; return one for each arm"
    ):
        crawl.next()
    with pytest.raises(PolicyError, match=r"scores\(\) gave 2 scores, and links wait in 3 arms"):
        check_policy(TooShort)


def test_scores_for_some_arms_starve_nobody() -> None:
    """A crawl that is not strict counts the error, and fetches what waits in the other arms all the same."""
    crawl = Crawl(TooShort(), frontier=memory_frontier)
    crawl.add([link(key, host="abcd"[key % 4]) for key in range(1, 21)])
    came = []
    while (pick := crawl.next()) is not None:
        came.append(pick.key)
        crawl.report(page(pick))
    assert sorted(came) == list(range(1, 21))
    assert crawl.counts["error/select"] > 0


@pytest.mark.parametrize("make", [Numbered, Explorer, Greedy, Wearing, WearingAtOnce, AllAtOnce])
def test_bandits_keep_their_promises(make: type[Numbered]) -> None:
    """Each of these, with the arms that the small site of the check has: one for each page."""
    check_policy(make)
