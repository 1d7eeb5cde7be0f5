"""Who decides: where each link waits, which one leaves next, and what is learned from what came back.

A policy needs three verbs. ``place`` gives every link of a page an arm and a rank; ``select`` takes the next link out of
the frontier; ``learn`` sees each outcome once. :class:`Ordering` and :class:`Bandit` cover the two usual kinds, so that a
policy of your own is often one method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from scrapy_focus.core.types import Placement
from scrapy_focus.learn.arms import ArmStats, auer

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Outcome, Pick
    from scrapy_focus.frontiers.base import Frontier


class Left(NamedTuple):
    """How many targets are still to be found, as a number and as a 90 % interval."""

    low: float
    middle: float
    high: float


class Policy(ABC):
    """Base of every policy; it can be constructed and tested without a crawl.

    Parameters of a policy are keyword arguments, stored under their own names. Randomness comes from ``self.rng`` alone.
    A policy is pickled without its frontier; one that holds what cannot be pickled extends ``__getstate__``.
    """

    #: Whether ``place`` reads ``tag_path``, ``anchor`` or ``context``; where no policy does, pages are not parsed for it.
    reads_page: ClassVar[bool] = True
    #: Whether ``place`` also wants links whose URL waits already or was fetched (to move it, to ask for a revisit).
    wants_known: ClassVar[bool] = False
    #: Parameters that a later run of the same job may have otherwise: those with which the crawl began count.
    may_change: ClassVar[frozenset[str]] = frozenset()

    frontier: Frontier
    rng: np.random.Generator

    def open(self, frontier: Frontier, rng: np.random.Generator) -> None:
        """Start a crawl. Called once, before anything else."""
        self.rng = rng
        self.attach(frontier)

    def attach(self, frontier: Frontier) -> None:
        """Go on with a crawl: called by ``open``, and alone when a stored crawl is resumed."""
        self.frontier = frontier

    @abstractmethod
    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        """Say where each link waits: one placement for each, ``None`` to give a new link up for good.

        ``links`` are all links of one page, in document order; ``source`` is the outcome of that page, its reward
        known, and ``None`` for seeds. After a HEAD, the link comes alone, in state ``PROBED``, with the outcome of the
        HEAD as its source (see its ``status`` and ``error``). ``None`` for a link that waits leaves it there.
        """

    @abstractmethod
    def select(self, busy: Collection[str]) -> Pick | None:
        """Take the next link out of the frontier; ``None`` where nothing suits now. ``busy``: hosts to leave alone."""

    def learn(self, outcome: Outcome) -> None:  # noqa: B027 (a policy that learns nothing is complete)
        """See what a pick brought back: once for each pick, after ``place`` for the links of its page.

        The outcome of a HEAD (``outcome.pick.method``) carries the reward that the page promises. It is earned when the
        page is fetched.
        """

    def unselect(self, pick: Pick) -> None:  # noqa: B027 (nothing to undo for a policy that counts nothing)
        """A pick was handed back unsent: undo what ``select`` counted. ``learn`` does not come for it."""

    def explain(self, pick: Pick) -> dict[str, Any]:
        """Say why this pick was chosen, in words and numbers that JSON can hold. Called right after ``select``."""
        return {}

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        """Up to ``k`` arms that earned most, best first: a readable name, what it earned, in how many pulls."""
        return []

    def expected_cost(self) -> float | None:
        """Return what the next reward of 1 is expected to cost, in requests, or ``None`` where that is not known.

        A :class:`~scrapy_focus.core.plateau.CostLimit` asks after each outcome.
        """
        return None

    def expected_left(self) -> Left | None:
        """Return how many targets are still to be found, with a 90 % interval, or ``None`` where that is not known."""
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "frontier"}


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
