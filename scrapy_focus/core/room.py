"""How many links may be queued, and which are given up when there are more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.contract import gave_up
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.events import GaveUp
from scrapy_focus.core.giving_up import give_up
from scrapy_focus.core.printable import printable_logger

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.guard import Guard

logger = printable_logger(__name__)


class Room:
    """Gives up the links that the policy wants least when too many are queued.

    Parameters
    ----------
    most
        Links that may be queued, sleeping ones not counted; ``None`` for any number.
    frontier
        Where they are queued.
    guard
        Calls the policy.
    counts
        Where links given up are counted, as ``link/dropped``.
    """

    def __init__(self, most: int | None, frontier: Frontier, guard: Guard, counts: Counter[str]) -> None:
        self.most = most
        self._frontier = frontier
        self._guard = guard
        self._counts = counts
        self._first = 0  # queued links when some are given up for the first time

    def make(self, now: Callable[[], float]) -> GaveUp | None:
        """Return the event that gives up links if too many are queued; ``None`` if not."""
        n = 0 if self.most is None else self.excess()
        if not n:
            return None
        if not self._counts["link/dropped"]:
            self._first = len(self._frontier)
        return GaveUp(n, now())

    def excess(self) -> int:
        """Return how many links to give up so that nine tenths of the limit are left; 0 for none."""
        waiting = len(self._frontier)
        if self.most is None or waiting <= self.most:
            return 0
        return waiting - -(-self.most * 9 // 10)

    def apply(self, event: GaveUp) -> None:
        """Give up links, and count them."""
        before = len(self._frontier)
        self._give_up(event.n)
        self._counts["link/dropped"] += before - len(self._frontier)
        if self._first:
            self._log(self._first)
            self._first = 0

    def _give_up(self, n: int) -> None:
        """Let the policy give up queued links; if it fails or gives up too few, others are chosen."""
        left = len(self._frontier) - n
        self._guard.ask("give_up", gave_up, self._guard.policy, n)
        if len(self._frontier) > left:
            give_up(self._frontier, len(self._frontier) - left, np.random.default_rng(0))

    def _log(self, waiting: int) -> None:
        """Log the first time that links are given up."""
        logger.info(
            "%d links were queued, above the limit of %d: the %d least wanted were given up, as will happen whenever "
            "there are so many again (focus/link/dropped)", waiting, self.most, self._counts["link/dropped"],
        )  # fmt: skip


def check_most_waiting(most: int | None) -> None:
    """Raise :class:`~scrapy_focus.core.errors.ConfigError` if no link may be queued."""
    if most is not None and most < 1:
        raise ConfigError(f"most_waiting is {most}; it is at least 1, or None for any number of links")
