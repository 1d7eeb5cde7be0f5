"""Fetched pages that wait again: for their next visit, or to be rendered by a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.contract import check_awake, placed_again, placed_to_render
from scrapy_focus.core.guard import FAILED
from scrapy_focus.core.types import Link, State

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.guard import Guard
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.sleepers import Sleepers
    from scrapy_focus.core.types import Outcome, Placement


class Refetches:
    """Asks a policy that can whether and where a page waits again.

    Parameters
    ----------
    frontier
        Where links wait.
    sleepers
        Whether they can sleep there.
    guard
        How the policy is asked.
    counts
        Where pages are counted that wait again, as ``link/again`` and ``link/render``.
    """

    def __init__(self, frontier: Frontier, sleepers: Sleepers, guard: Guard, counts: Counter[str]) -> None:
        self.comes_back = guard.policy.can("again")  # whether pages that were fetched may wait again
        self._renders = guard.policy.can("render")
        self._frontier = frontier
        self._sleepers = sleepers
        self._guard = guard
        self._counts = counts

    def place(self, outcome: Outcome) -> None:
        """Let the page of an outcome wait again, for a visit, to be rendered, or neither."""
        if outcome.pick.method != "GET":
            return
        if self.comes_back and not outcome.once:
            place = self._guard.ask("again", self._placement_of, placed_again, outcome)
            if place is not FAILED and place is not None:
                self._counts["link/again"] += 1
                self._push(place, outcome)
        can_be_rendered = self._renders and outcome.scripted and not outcome.error
        if can_be_rendered and self._frontier.states([outcome.pick.key]) == [State.FETCHED]:  # else it waits already
            place = self._guard.ask("render", self._placement_of, placed_to_render, outcome)
            if place is not FAILED and place is not None:
                self._counts["link/render"] += 1
                self._push(place, outcome)

    def _push(self, place: Placement, outcome: Outcome) -> None:
        pick = outcome.pick
        payload = pick.payload if outcome.payload is None else outcome.payload
        link = Link(pick.url, pick.key, pick.host, pick.depth, state=State.FETCHED, payload=payload)
        self._frontier.push([link], [place], origin=pick.origin)

    def _placement_of(
        self, placed_by: Callable[[Policy, Outcome], Placement | None], outcome: Outcome
    ) -> Placement | None:
        place = placed_by(self._guard.policy, outcome)
        if not self._sleepers.can_sleep:
            check_awake([place], self._frontier)
        return place
