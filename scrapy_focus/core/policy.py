"""Who decides: where each link waits, which one leaves next, and what is learned from what came back.

A policy needs three verbs. ``place`` gives every link of a page an arm and a rank; ``select`` takes the next link out of
the frontier; ``learn`` sees each outcome once. :class:`Ordering` and :class:`Bandit` cover the two usual kinds, so that a
policy of your own is often one method.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy as np

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.types import Link, Outcome, Pick, Placement


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

        A :class:`~scrapy_focus.core.stop.CostLimit` asks after each outcome.
        """
        return None

    def expected_left(self) -> Left | None:
        """Return how many targets are still to be found, with a 90 % interval, or ``None`` where that is not known."""
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "frontier"}


def import_path(named: Any) -> str:
    """Return where a class or a function is imported from: the shortest parent package that exports it, and its name.

    Examples
    --------
    >>> from scrapy_focus.policies.tagpath.policy import TagPath
    >>> import_path(TagPath), import_path(Left)
    ('scrapy_focus.policies.tagpath.TagPath', 'scrapy_focus.Left')
    """
    module, name = named.__module__, named.__qualname__
    parents = module.split(".")
    for depth in range(1, len(parents)):
        package = ".".join(parents[:depth])
        if getattr(sys.modules.get(package), name, None) is named:
            return f"{package}.{name}"
    return f"{module}.{name}"
