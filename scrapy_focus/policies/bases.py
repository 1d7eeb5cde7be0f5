"""The two usual kinds of policy, so that yours is often one method: a rank in one arm, or arms with scores."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.errors import PolicyError
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.types import Placement
from scrapy_focus.learn.arms import ArmHeaps, ArmStats, auer

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Frontier, Ranked
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Outcome, Pick


_TRIED = 64  # of the best arms, all of whose hosts are busy, after which all arms are looked at together


class Ordering(Policy):
    """One arm, ordered by a rank: you supply :meth:`rank`.

    Examples
    --------
    >>> class ShallowFirst(Ordering):
    ...     def rank(self, link, source):
    ...         bonus = 0.5 if source is not None and source.reward else 0.0
    ...         return bonus - link.url.count("/")
    """

    frontier: Ranked

    @abstractmethod
    def rank(self, link: Link, source: Outcome | None) -> float:
        """How early this link should leave; the largest leaves first."""

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        return [Placement(0, self.rank(link, source)) for link in links]

    def select(self, busy: Collection[str]) -> Pick | None:
        return self.frontier.pop(0, busy)


class Bandit(Policy):
    """Links in arms, the arm with the best score first: you supply :meth:`arm`.

    Pulls are counted when they are chosen and rewards when they come, in ``self.stats``. An arm in which nothing waits
    sleeps. Ties go to the arm with the smallest number. Within an arm the choice is uniform unless :meth:`rank` says
    otherwise.

    The score is that of AUER. Another one is :meth:`score`, of one arm, where it changes only when something happens to
    that arm; or :meth:`scores`, of all arms, where they change at each choice, which is linear in the arms.

    Examples
    --------
    >>> class Hosts(Bandit):
    ...     def __init__(self):
    ...         self.numbers = {}
    ...     def arm(self, link):
    ...         return self.numbers.setdefault(link.host, len(self.numbers))
    """

    #: Weight of exploration in the AUER score; for rewards of about 1.
    alpha: float = 1.0

    frontier: Ranked
    stats: ArmStats
    steps: int

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        self.stats = ArmStats()
        self.steps = 0
        super().open(frontier, rng, mission)

    def attach(self, frontier: Frontier) -> None:
        super().attach(frontier)
        self._forget_scores()
        self._touched.update(np.flatnonzero(self.frontier.waiting).tolist())

    @abstractmethod
    def arm(self, link: Link) -> int:
        """Say in which arm a link waits: small integers from 0, without gaps."""

    def rank(self, link: Link) -> float:
        """How early a link leaves its arm; uniformly random by default."""
        return float(self.rng.random())

    def score(self, arm: int) -> float:
        """Return the score of an arm; asked when a link of it was placed, chosen, released or learned from.

        Call :meth:`touch` where anything else changes it.
        """
        return float(self.scores()[arm])

    def scores(self) -> NDArray[np.float64]:
        """Return a score for each arm, shape (n_arms,); AUER by default. Those of sleeping arms do not matter."""
        return auer(self.stats, self.steps, alpha=self.alpha)

    def touch(self, arm: int) -> None:
        """Let the score of an arm be asked for again before the next choice."""
        self._touched.add(arm)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        placements = [Placement(self.arm(link), self.rank(link)) for link in links]
        arms = {place.arm for place in placements}
        self.stats.ensure(1 + max(arms, default=-1))
        self._touched |= arms
        return placements

    def select(self, busy: Collection[str]) -> Pick | None:
        scores_all = type(self).scores is not Bandit.scores
        pick = self._best_of_all(busy) if scores_all else self._best_of_touched(busy)
        if pick is not None:
            self.steps += 1
            self.stats.pull(pick.arm)
            self.touch(pick.arm)
        return pick

    def release(self, pick: Pick) -> None:
        self.steps -= 1
        self.stats.unpull(pick.arm)
        self.touch(pick.arm)

    def learn(self, outcome: Outcome) -> None:
        arm = outcome.pick.arm
        if outcome.pick.method == "HEAD":
            self.stats.unpull(arm)
        else:
            self.stats.earn(arm, outcome.reward)
        self.touch(arm)

    def explain(self, pick: Pick) -> dict[str, Any]:
        pulls = float(self.stats.pulls[pick.arm])
        return {"arm": pick.arm, "pulls": pulls, "mean": float(self.stats.means[pick.arm])}

    def __getstate__(self) -> dict[str, Any]:
        made_again = ("_heaps", "_own_scores", "_touched")  # by attach(), from the stats
        return {name: value for name, value in super().__getstate__().items() if name not in made_again}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_scores()

    def _forget_scores(self) -> None:
        self._heaps = ArmHeaps()
        self._own_scores = np.full(16, -np.inf)  # by arm, as :meth:`score` said last
        self._touched: set[int] = set()

    def _best_of_all(self, busy: Collection[str]) -> Pick | None:
        awake = self.frontier.awake(busy)
        if not awake.any():
            return None
        self.stats.ensure(len(awake))
        return self.frontier.pop(best_arm(self.scores(), awake), busy)

    def _best_of_touched(self, busy: Collection[str]) -> Pick | None:
        """Take a link of the best arm whose hosts are not all busy; only the scores of touched arms are made again."""
        own_score = type(self).score is not Bandit.score
        for arm in self._touched:
            self._put(arm, own_score=own_score)
        self._touched.clear()
        waiting = self.frontier.waiting
        awake = self.frontier.awake(busy) if busy else waiting
        if not (awake.any() if busy else len(self.frontier)):
            return None
        value = _own if own_score else partial(_auer_of, alpha=self.alpha, bonus=math.log(max(self.steps, 1)))
        asleep, tried, pick = [], 0, None
        for arm in self._heaps.best_first(value):
            if arm < len(awake) and awake[arm]:
                pick = self.frontier.pop(arm, busy)
                break
            if arm >= len(waiting) or not waiting[arm]:
                asleep.append(arm)
            elif (tried := tried + 1) > _TRIED:
                break
        for arm in asleep:  # it is touched when a link is placed in it
            self._heaps.drop(arm)
        if pick is None:  # most arms are on busy hosts, or their links were placed by somebody else
            self.stats.ensure(len(awake))
            self._make_room(len(awake))
            scores = self._own_scores if own_score else self.scores()
            pick = self.frontier.pop(best_arm(scores, awake), busy)
        return pick

    def _put(self, arm: int, *, own_score: bool) -> None:
        """Let an arm stand where it belongs now."""
        self.stats.ensure(arm + 1)
        if own_score:
            score = float(self.score(arm))
            if math.isnan(score):
                raise PolicyError(f"score({arm}) of {type(self).__qualname__} is not a number; return a float")
            self._make_room(arm + 1)
            self._own_scores[arm] = score
            self._heaps.put(arm, 0.0, score)
        else:
            pulls = float(self.stats.pulls[arm])
            self._heaps.put(arm, pulls, float(self.stats.sums[arm]) / max(pulls, 1.0))

    def _make_room(self, n_arms: int) -> None:
        if n_arms > len(self._own_scores):
            room = max(n_arms, 2 * len(self._own_scores)) - len(self._own_scores)
            self._own_scores = np.append(self._own_scores, np.full(room, -np.inf))


def best_arm(scores: NDArray[np.float64], awake: NDArray[np.int64]) -> int:
    """Return the arm with the largest score among those with something to take; the smallest number among equals.

    Raises
    ------
    PolicyError
        If an arm with something to take has no score.
    """
    if len(scores) < len(awake) and (awake[len(scores) :] > 0).any():
        raise PolicyError(
            f"scores() gave {len(scores)} scores, and links wait in {len(awake)} arms; return one for each arm, or "
            "those without one would never be chosen"
        )
    masked = np.full(len(awake), -np.inf)
    np.copyto(masked[: len(scores)], scores[: len(awake)], where=awake[: len(scores)] > 0)
    best = int(np.argmax(masked))
    return best if masked[best] > -np.inf else int(np.argmax(awake > 0))


def _own(_: float, score: float) -> float:
    return score


def _auer_of(pulls: float, mean: float, *, alpha: float, bonus: float) -> float:
    return mean + alpha * math.sqrt(bonus / (pulls + 1e-6))
