"""The picks in flight: which were sent, and which the policy itself chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from scrapy_focus.core.budget import Budget
    from scrapy_focus.core.events import Sent
    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.snapshot import Snapshot
    from scrapy_focus.core.types import Pick


class InFlight:
    """Keeps each pick from its choice to its outcome or release, with its reserved request and turn.

    Parameters
    ----------
    frontier
        Where the picks come from.
    budget
        Gives each pick a turn, and counts the requests sent.
    """

    def __init__(self, frontier: Frontier, budget: Budget) -> None:
        self.picks: dict[int, Pick] = {}  # by id
        self.recovered: set[int] = set()  # keys that were in flight when a run was killed, without an outcome since
        self.unsent: set[int] = set()  # ids of picks whose request is still reserved
        self.unchosen: set[int] = set()  # ids of picks that this policy did not choose
        self.poor: set[int] = set()  # ids of picks to put last when they are released
        self._frontier = frontier
        self._budget = budget

    def take_off(self, pick: Pick, at: float, *, by_policy: bool) -> None:
        """Add a chosen pick: it takes a turn, and reserves one request of the budget."""
        self.picks[pick.id] = pick
        self.unsent.add(pick.id)
        self._budget.take_turn(at)
        if not by_policy:
            self.unchosen.add(pick.id)

    def land(self, pick_id: int) -> None:
        """Remove a pick that has its outcome or is released; its turn is returned if no request was sent."""
        del self.picks[pick_id]
        if pick_id in self.unsent:
            self.unsent.remove(pick_id)
            self._budget.give_back_turn()

    def forget(self, pick_id: int) -> None:
        """Forget a pick that has landed."""
        self.unchosen.discard(pick_id)
        self.poor.discard(pick_id)

    def apply_sent(self, event: Sent) -> None:
        """Count a request; it takes a turn, unless it is the first of a pick that has one."""
        budget, has_turn = self._budget, event.pick_id in self.unsent
        if event.requests > budget.requests_used and not has_turn:
            budget.take_turn(event.at)
        budget.requests_used = event.requests
        if has_turn:
            self.unsent.remove(cast("int", event.pick_id))

    def save(self) -> dict[str, Any]:
        """Return this part's fields of a snapshot."""
        return {
            "recovered": sorted(self.recovered),
            "unchosen": sorted(self.unchosen),
            "unsent": sorted(self.unsent),
            "chances": {pick.id: pick.chance for pick in self.picks.values() if pick.chance is not None},
        }

    def restore(self, state: Snapshot) -> None:
        """Restore a snapshot: the picks in flight of the frontier are in flight."""
        self.recovered.update(state.recovered)
        self.unchosen.update(state.unchosen)
        for pick in self._frontier.flying.values():
            self.picks[pick.id] = pick._replace(chance=state.chances.get(pick.id))
        self.unsent.update(state.unsent)
