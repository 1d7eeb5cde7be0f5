"""What a policy reports about itself: its best arms, forecasts and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.contract import best_of, cost_of, due_of, left_of, tables_of
from scrapy_focus.core.guard import FAILED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy_focus.core.abilities import Left, PolicyTable, WatchedPage
    from scrapy_focus.core.guard import Guard


class Forecasts:
    """Asks a policy for its reports; a failure counts as no report.

    Parameters
    ----------
    guard
        Calls the policy.
    now
        Returns the time, in seconds since the epoch.
    """

    def __init__(self, guard: Guard, now: Callable[[], float]) -> None:
        self._guard = guard
        self._now = now

    def due(self) -> float | None:
        """When the policy may choose the next link, in seconds since the epoch; ``None``: now, or not known."""
        waiter = self._guard.abilities.due
        due = None if waiter is None else self._guard.ask("due", due_of, waiter)
        return None if due is FAILED else due

    def best_arms(self, k: int) -> Sequence[tuple[str, float, int]]:
        """Return up to ``k`` of the best arms: name, reward, pulls."""
        shower = self._guard.abilities.best_arms
        best = [] if shower is None else self._guard.ask("best_arms", best_of, shower, k)
        return () if best is FAILED else best

    def left(self) -> Left | None:
        """How many targets are expected to be left; ``None``: not known."""
        forecaster = self._guard.abilities.expected_left
        left = None if forecaster is None else self._guard.ask("expected_left", left_of, forecaster)
        return None if left is FAILED else left

    def cost(self) -> float | None:
        """How many requests the next target is expected to cost; ``None``: not known."""
        forecaster = self._guard.abilities.expected_cost
        cost = None if forecaster is None else self._guard.ask("expected_cost", cost_of, forecaster)
        return None if cost is FAILED else cost

    def watched(self, most: int) -> list[WatchedPage]:
        """Return up to ``most`` of the revisited pages, those with most visits first."""
        shower = self._guard.abilities.watched
        found = [] if shower is None else self._guard.ask("watched", shower.watched, most)
        return [] if found is FAILED else found

    def tables(self) -> list[PolicyTable]:
        """Return the policy's tables as of now."""
        shower = self._guard.abilities.tables
        if shower is None:
            return []
        policy, before = self._guard.policy, self._guard.policy.now
        policy.now = self._now()
        found = self._guard.ask("tables", tables_of, shower)
        policy.now = before  # an event set the policy's time; this call must not change it
        return [] if found is FAILED else found
