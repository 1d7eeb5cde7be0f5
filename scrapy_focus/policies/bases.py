"""Base classes for the two usual kinds of policy, so that a custom one is often one method: a rank, or arms with
scores.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from contextlib import closing
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.errors import PolicyError
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.printable import counted
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Placement
from scrapy_focus.learn.arms import ArmHeaps, ArmStats, auer, reward_tables

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.abilities import PolicyTable
    from scrapy_focus.core.frontier import Frontier, Ranked
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Outcome, Pick


_TRIED = 64  # best arms to try, all with busy hosts, before all arms are compared at once


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

    ``self.stats`` counts pulls when they are chosen and rewards when they arrive. An arm without queued links sleeps.
    Ties go to the arm with the smallest number. Within an arm the choice is uniform unless you override :meth:`rank`.

    The score is that of AUER. To change it, override :meth:`score` of one arm, if it changes only with that arm's
    links, pulls or rewards; or :meth:`scores` of all arms, if it changes at each choice, which is linear in the arms.

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

    @abstractmethod
    def arm(self, link: Link) -> int:
        """Return the arm of a link: a small integer from 0, without gaps."""

    def rank(self, link: Link) -> float:
        """How early a link leaves its arm; uniformly random by default."""
        return float(self.rng.random())

    def score(self, arm: int) -> float:
        """Return the score of an arm that has queued links.

        It is called again before a choice if the arm's number of queued links, its pulls or its rewards changed since
        the last one, or if :meth:`place` placed a link in it. Call :meth:`touch` after any other change.
        """
        return float(self.scores()[arm])

    def scores(self) -> NDArray[np.float64]:
        """Return a score for each arm, shape (n_arms,); AUER by default. The scores of sleeping arms are ignored."""
        return auer(self.stats, self.steps, alpha=self.alpha)

    def touch(self, arm: int) -> None:
        """Have the score of an arm computed again before the next choice."""
        self._touched.add(arm)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        placements = [Placement(self.arm(link), self.rank(link)) for link in links]
        arms = {place.arm for place in placements}
        self.stats.ensure(1 + max(arms, default=-1))
        self._touched |= arms
        return placements

    def select(self, busy: Collection[str]) -> Pick | None:
        scores_all = type(self).scores is not Bandit.scores
        pick = self._best_of_all(busy) if scores_all else self._best_of_changed(busy)
        if pick is not None:
            self.steps += 1
            self.stats.pull(pick.arm)
        return pick

    def release(self, pick: Pick) -> None:
        self.steps -= 1
        self.stats.unpull(pick.arm)

    def learn(self, outcome: Outcome) -> None:
        arm = outcome.pick.arm
        if outcome.pick.method == "HEAD":
            self.stats.unpull(arm)
        else:
            self.stats.earn(arm, outcome.reward)

    def explain(self, pick: Pick) -> Mapping[str, Any]:
        pulls, mean = float(self.stats.pulls[pick.arm]), float(self.stats.means[pick.arm])
        sentence = f"{counted(pulls, 'link')} of group {pick.arm} with this one, {mean:.2g} finds each"
        return Reason(depth_of(pick), Part(sentence, {"arm": pick.arm, "pulls": pulls, "mean": mean}))

    def tables(self) -> list[PolicyTable]:
        return reward_tables(self.stats.sums, self.stats.pulls)

    def __getstate__(self) -> dict[str, Any]:
        made_again = ("_heaps", "_own_scores", "_seen", "_touched")  # from the stats and the frontier
        return {name: value for name, value in super().__getstate__().items() if name not in made_again}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_scores()

    def _forget_scores(self) -> None:
        self._heaps = ArmHeaps()  # after _catch_up(): exactly the arms with queued links
        self._own_scores = np.full(16, -np.inf)  # by arm, as last returned by :meth:`score`
        self._seen = np.zeros(16, np.int64)  # queued links of each arm at the last _catch_up()
        self._touched: set[int] = set()

    def _best_of_all(self, busy: Collection[str]) -> Pick | None:
        self._touched.clear()
        awake = self.frontier.awake(busy)
        if not awake.any():
            return None
        self.stats.ensure(len(awake))
        return self.frontier.pop(best_arm(self.scores(), awake), busy)

    def _best_of_changed(self, busy: Collection[str]) -> Pick | None:
        """Take a link of the best arm whose hosts are not all busy; only changed scores are computed again."""
        own_score = type(self).score is not Bandit.score
        self._catch_up(own_score=own_score)
        if not len(self.frontier):
            return None
        awake = self.frontier.awake(busy) if busy else self.frontier.waiting
        value = _own if own_score else partial(_auer_of, alpha=self.alpha, bonus=float(np.log(max(self.steps, 1))))
        with closing(self._heaps.best_first(value)) as best:
            arm = next((arm for arm in islice(best, _TRIED) if awake[arm]), None)
        if arm is None:
            if not awake.any():
                return None
            arm = best_arm(self._own_scores if own_score else self.scores(), awake)
        return self.frontier.pop(arm, busy)

    def _catch_up(self, *, own_score: bool) -> None:
        """Update the place of each arm in which something happened.

        Changes are detected from the counts of the frontier and of the stats, whatever made them: a subclass may have
        further methods, and the crawl places links when a policy fails.
        """
        waiting = self.frontier.waiting
        self.stats.ensure(len(waiting))
        self._make_room(len(waiting))
        seen = self._seen[: len(waiting)]
        moved = np.flatnonzero(waiting != seen)
        changed = self.stats.changes()
        self._touched.update(moved.tolist(), np.flatnonzero(waiting).tolist() if changed is None else changed)
        seen[moved] = waiting[moved]
        ahead, self._touched = sorted(self._touched, reverse=True), set()
        try:
            while ahead:
                arm = ahead[-1]
                if 0 <= arm < len(waiting) and waiting[arm]:
                    self._put(arm, own_score=own_score)
                else:
                    self._heaps.drop(arm)
                ahead.pop()
        finally:
            self._touched.update(ahead)  # if score() raised, it is called again before the next choice

    def _put(self, arm: int, *, own_score: bool) -> None:
        if own_score:
            group, key = 0.0, float(self.score(arm))
            self._own_scores[arm] = key
        else:
            group = float(self.stats.pulls[arm])
            key = float(self.stats.sums[arm]) / max(group, 1.0)
        if math.isnan(key):
            what = f"score({arm})" if own_score else f"the mean of arm {arm} in the stats"
            raise PolicyError(f"{what} of {type(self).__qualname__} is not a number; return a float")
        self._heaps.put(arm, group, key)

    def _make_room(self, n_arms: int) -> None:
        if n_arms > len(self._seen):
            room = max(n_arms, 2 * len(self._seen)) - len(self._seen)
            self._own_scores = np.append(self._own_scores, np.full(room, -np.inf))
            self._seen = np.append(self._seen, np.zeros(room, np.int64))


def best_arm(scores: NDArray[np.float64], awake: NDArray[np.int64]) -> int:
    """Return the arm with the largest score among those with a free link; the smallest number among equals.

    Raises
    ------
    PolicyError
        If an arm with a free link has no score.
    """
    if len(scores) < len(awake) and (awake[len(scores) :] > 0).any():
        raise PolicyError(
            f"scores() gave {len(scores)} scores, and links are queued in {len(awake)} arms; return one for each, or "
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
