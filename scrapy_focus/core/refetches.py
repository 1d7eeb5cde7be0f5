"""Fetched pages that are queued again: for their next visit, or to be rendered by a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from scrapy_focus.core.contract import check_awake, placed_again, placed_to_render
from scrapy_focus.core.guard import FAILED
from scrapy_focus.core.types import Link, State

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.guard import Guard
    from scrapy_focus.core.sleepers import Sleepers
    from scrapy_focus.core.types import Outcome, Placement

P = TypeVar("P")


class Refetches:
    """Asks a policy, if it supports that, whether and where a page is queued again.

    Parameters
    ----------
    frontier
        Where links are queued.
    sleepers
        Whether links can sleep there.
    guard
        Calls the policy.
    counts
        Where pages queued again are counted, as ``link/again`` and ``link/render``.
    """

    def __init__(self, frontier: Frontier, sleepers: Sleepers, guard: Guard, counts: Counter[str]) -> None:
        self.comes_back = guard.abilities.again is not None  # whether fetched pages may be queued again
        self._frontier = frontier
        self._sleepers = sleepers
        self._guard = guard
        self._counts = counts

    def place(self, outcome: Outcome) -> None:
        """Queue the page of an outcome again, for a visit, to be rendered, or not at all."""
        if outcome.pick.method != "GET":
            return
        abilities = self._guard.abilities
        if abilities.again is not None and not outcome.once:
            place = self._guard.ask("again", self._awake, placed_again, abilities.again, outcome)
            if place is not FAILED and place is not None:
                self._counts["link/again"] += 1
                self._push(place, outcome)
        if abilities.render is None or not outcome.scripted or outcome.error:
            return
        if self._frontier.states([outcome.pick.key]) == [State.FETCHED]:  # else it is queued already
            place = self._guard.ask("render", self._awake, placed_to_render, abilities.render, outcome)
            if place is not FAILED and place is not None:
                self._counts["link/render"] += 1
                self._push(place, outcome)

    def _push(self, place: Placement, outcome: Outcome) -> None:
        pick = outcome.pick
        payload = pick.payload if outcome.payload is None else outcome.payload
        link = Link(pick.url, pick.key, pick.host, pick.depth, state=State.FETCHED, payload=payload)
        self._frontier.push([link], [place], origin=pick.origin)

    def _awake(
        self, placed_by: Callable[[P, Outcome], Placement | None], policy: P, outcome: Outcome
    ) -> Placement | None:
        """Return where a policy places a page; it must not sleep in a frontier without times."""
        place = placed_by(policy, outcome)
        if not self._sleepers.can_sleep:
            check_awake([place], self._frontier)
        return place
