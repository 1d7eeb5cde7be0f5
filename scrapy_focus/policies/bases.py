"""The two usual kinds of policy, so that one of your own is often one method: a rank in one arm, or arms with scores."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.policy import Policy
from scrapy_focus.core.types import Placement
from scrapy_focus.learn.arms import ArmStats, auer

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.types import Link, Outcome, Pick


class Ordering(Policy):
    """One arm, ordered by a rank: you supply :meth:`rank`.

    Examples
    --------
    >>> class ShallowFirst(Ordering):
    ...     def rank(self, link, source):
    ...         bonus = 0.5 if source is not None and source.reward else 0.0
    ...         return bonus - link.url.count("/")
    """

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

    stats: ArmStats
    steps: int

    def open(self, frontier: Frontier, rng: np.random.Generator) -> None:
        self.stats = ArmStats()
        self.steps = 0
        super().open(frontier, rng)

    @abstractmethod
    def arm(self, link: Link) -> int:
        """Say in which arm a link waits: small integers from 0, without gaps."""

    def rank(self, link: Link) -> float:
        """How early a link leaves its arm; uniformly random by default."""
        return float(self.rng.random())

    def scores(self) -> NDArray[np.float64]:
        """Return a score for each arm, shape (n_arms,); AUER by default. What it says of sleeping arms does not matter."""
        return auer(self.stats, self.steps, alpha=self.alpha)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        placements = [Placement(self.arm(link), self.rank(link)) for link in links]
        self.stats.ensure(1 + max((place.arm for place in placements), default=-1))
        return placements

    def select(self, busy: Collection[str]) -> Pick | None:
        awake = self.frontier.awake(busy)
        if not awake.any():
            return None
        pick = self.frontier.pop(best_arm(self.scores(), awake), busy)
        if pick is not None:
            self.steps += 1
            self.stats.pull(pick.arm)
        return pick

    def unselect(self, pick: Pick) -> None:
        self.steps -= 1
        self.stats.unpull(pick.arm)

    def learn(self, outcome: Outcome) -> None:
        if outcome.pick.method == "HEAD":
            self.stats.unpull(outcome.pick.arm)
        else:
            self.stats.earn(outcome.pick.arm, outcome.reward)

    def explain(self, pick: Pick) -> dict[str, Any]:
        pulls = float(self.stats.pulls[pick.arm])
        return {"arm": pick.arm, "pulls": pulls, "mean": float(self.stats.means[pick.arm])}


def best_arm(scores: NDArray[np.float64], awake: NDArray[np.int64]) -> int:
    """Return the arm with the largest score among those with something to take; the smallest number among equals."""
    n = min(len(scores), len(awake))
    masked = np.where(awake[:n] > 0, scores[:n], -np.inf)
    return int(np.argmax(masked)) if n and masked.max() > -np.inf else int(np.argmax(awake > 0))
