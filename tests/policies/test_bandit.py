"""A custom bandit: scores are computed again only after changes, and the same arms are chosen."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_focus import Bandit, Crawl, Outcome, Placement, PolicyError, State, check_policy, memory_frontier
from scrapy_focus.learn.arms import ArmStats, auer
from scrapy_focus.policies import bases
from scrapy_focus.policies.bases import best_arm
from tests.examples import n_examples
from tests.made import link, links, page

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus import Link, Pick

BUSY = 8  # hosts
Choice = tuple[int, str] | None


class Numbered(Bandit):
    """The arm of a link is in its URL; every fifth link is requested with HEAD first."""

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
    """A custom score of one arm: its reward, and less with each pull."""

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


def walk(
    policy: Bandit, *, arms: int, seed: int, steps: int = 1000, pickled: bool = False, strict: bool = True
) -> list[Choice]:
    """Choose, report and release at random, and return what was chosen; ``None`` where nothing was.

    Half of the choices find some hosts busy. What happens depends on the seed and the choices alone.
    """
    rng = np.random.default_rng(seed)
    crawl = Crawl(policy, frontier=memory_frontier, seed=seed, strict=strict)
    n_links = max(400, 2 * arms)
    crawl.add([made_link(rng, key, arms) for key in range(n_links)])
    out, chosen = list[Any](), list[Choice]()
    for step in range(steps):
        if pickled and step % 100 == 99:
            crawl.guard.take_up(pickle.loads(pickle.dumps(crawl.policy)))
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
    assert {name for name in crawl.counts if name.startswith("error/")} <= {"error/place"}
    return chosen


@pytest.mark.few(1)
@pytest.mark.parametrize(("arms", "seed"), [(3, 0), (40, 1), (400, 2)])
@pytest.mark.parametrize("base", [Numbered, Explorer, Greedy])
def test_auer_chooses_as_the_formula_does(base: type[Numbered], arms: int, seed: int) -> None:
    """Over long walks with busy hosts, releases and HEADs, link by link, as if all scores were made at each choice."""

    class Reference(AllAtOnce):
        alpha = base.alpha

    wanted = walk(Reference(), arms=arms, seed=seed)
    assert walk(base(), arms=arms, seed=seed) == wanted
    assert walk(base(), arms=arms, seed=seed, pickled=True) == wanted
    assert len({key for key, _ in filter(None, wanted)}) > 250


@pytest.mark.few(1)
@pytest.mark.parametrize(("arms", "seed"), [(3, 0), (40, 1), (400, 2)])
def test_a_score_of_one_arm_chooses_as_one_of_all(arms: int, seed: int) -> None:
    """The same walks with a custom score."""
    wanted = walk(WearingAtOnce(), arms=arms, seed=seed)
    assert walk(Wearing(), arms=arms, seed=seed) == wanted
    assert walk(Wearing(), arms=arms, seed=seed, pickled=True) == wanted
    assert len({key for key, _ in filter(None, wanted)}) > 250


class Unruly(Numbered):
    """A bandit that overrides whatever it likes, without a word to the one below it.

    ``ways`` says what: ``place`` gives places, ``fail`` fails to sometimes, ``learn`` gives rewards to another arm,
    ``release`` keeps pulls, ``move`` moves links between arms, and ``forget`` begins with new stats.
    """

    def __init__(self, *, ways: frozenset[str]) -> None:
        self.ways = ways

    def arm(self, link: Link) -> int:
        if "fail" in self.ways and link.key % 37 == 0:
            raise ValueError("this link has no arm")
        return super().arm(link)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        if "place" in self.ways:
            return [Placement(self.arm(link), float(link.key % 11)) for link in links]
        return super().place(links, source)

    def learn(self, outcome: Outcome) -> None:
        arm, key = outcome.pick.arm, outcome.pick.key
        if "learn" in self.ways:
            self.stats.earn((arm + key) % 50, 0.1 * outcome.reward)
        else:
            super().learn(outcome)
        if "forget" in self.ways and key % 53 == 0:
            self.stats = ArmStats()
        if "move" in self.ways and key % 3 == 0:
            waiting = sorted(link.key for link, _ in self.frontier.scan(arm))[:7]
            self.frontier.move(waiting, [Placement((arm + each) % 60, 0.5) if each % 5 else None for each in waiting])

    def release(self, pick: Pick) -> None:
        if "release" in self.ways:
            self.steps -= 1
        else:
            super().release(pick)


class UnrulyExplorer(Unruly):
    """Its bonus swallows small differences of means."""

    alpha = 1e15


class UnrulyGreedy(Unruly):
    """Without a bonus."""

    alpha = 0.0


class UnrulyOwn(Unruly):
    """A custom score with changes: infinite for an arm without any."""

    def score(self, arm: int) -> float:
        pulls, waiting = float(self.stats.pulls[arm]), int(self.frontier.waiting[arm])
        return float(self.stats.sums[arm]) + 0.1 * (waiting % 7) - 0.3 * pulls if pulls else -np.inf


@pytest.mark.slow
@settings(max_examples=n_examples(30), deadline=None)
@given(
    base=st.sampled_from([Unruly, UnrulyExplorer, UnrulyGreedy, UnrulyOwn]),
    ways=st.frozensets(st.sampled_from(["place", "fail", "learn", "release", "move", "forget"])),
    arms=st.sampled_from([3, 40, 150]),
    tried=st.sampled_from([1, 3, 64]),
    seed=st.integers(0, 10_000),
)
def test_whatever_is_overridden_the_formula_holds(
    base: type[Unruly], ways: frozenset[str], arms: int, tried: int, seed: int
) -> None:
    """Link by link as with all scores made at each choice, also where the policy comes from a pickle now and then.

    ``tried``: after how many arms with busy hosts all are looked at together.
    """

    class Reference(base):  # type: ignore[valid-type,misc]
        def scores(self) -> NDArray[np.float64]:
            if base.score is Bandit.score:
                return auer(self.stats, self.steps, alpha=self.alpha)
            return np.array([self.score(arm) for arm in range(len(self.frontier.waiting))])

    kinds: dict[str, Any] = {"arms": arms, "seed": seed, "steps": 400, "strict": False}
    wanted = walk(Reference(ways=ways), **kinds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bases, "_TRIED", tried)
        assert walk(base(ways=ways), **kinds) == wanted
        assert walk(base(ways=ways), **kinds, pickled=True) == wanted


def test_links_that_nobody_placed_take_their_turn() -> None:
    """The crawl queues links in arm 0 if a policy could not place them; that arm is the best one here."""

    class Stranding(Numbered):
        def score(self, arm: int) -> float:
            return -float(arm)

        def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
            if any(link.key >= 100 for link in links):
                raise ValueError("too large a key")
            return super().place(links, source)

    crawl = Crawl(Stranding(), frontier=memory_frontier)
    crawl.add([link(key, url=f"http://h/{key % 2 + 1}") for key in (1, 2, 3)])
    crawl.add(links(100, 101))
    picks = [crawl.next() for _ in range(5)]
    assert [pick.arm for pick in picks if pick is not None] == [0, 0, 1, 2, 2]


def test_an_arm_whose_score_failed_is_asked_again() -> None:
    """An error in ``score`` starves nobody: every arm that it kept from being judged is judged at the next choice."""

    class Failing(Numbered):
        fails = True

        def score(self, arm: int) -> float:
            if self.fails and arm == 4:
                raise ValueError("not now")
            return float(arm)

    policy = Failing()
    crawl = Crawl(policy, frontier=memory_frontier)
    crawl.add([link(key, url=f"http://h/{key}") for key in range(1, 10)])
    first = crawl.next()
    assert first is not None
    assert first.arm == 1, "any link, for a policy that could not select"
    assert crawl.counts["error/select"] == 1
    policy.fails = False
    picks = [crawl.next() for _ in range(8)]
    assert [pick.arm for pick in picks if pick is not None] == [9, 8, 7, 6, 5, 4, 3, 2]


class Asked(Wearing):
    """Records the arms whose score is computed."""

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
    """A choice asks for scores of the arm chosen before, and of those learned from, released, placed in or touched."""
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
    assert policy.taken() == [300], "nothing waits in arm 0 any more"
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
    """Links in the others would stay for ever: the crawl reports the first queued one, and so does the check."""
    crawl = Crawl(TooShort(), frontier=memory_frontier, strict=True)
    crawl.add([*links(1, host="a"), *links(2, host="b")])
    first = crawl.next()
    assert first is not None
    crawl.add(links(3, host="c"))
    with pytest.raises(
        PolicyError, match=r"scores\(\) gave 2 scores, and links are queued in 3 arms; return one for each"
    ):
        crawl.next()
    with pytest.raises(PolicyError, match=r"scores\(\) gave 2 scores, and links are queued in 3 arms"):
        check_policy(TooShort)


def test_scores_for_some_arms_starve_nobody() -> None:
    """A crawl that is not strict counts the error, and still fetches the links of the other arms."""
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
