"""The work of other machines for a crawl: the picks they fetch, and the requests they may send besides."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.events import Granted

if TYPE_CHECKING:
    from scrapy_focus.core.budget import Budget
    from scrapy_focus.core.events import Leased
    from scrapy_focus.core.in_flight import InFlight
    from scrapy_focus.core.snapshot import Snapshot


class Leases:
    """Records which machine fetches each pick in flight, and the requests granted to each beyond one per pick.

    Parameters
    ----------
    in_flight
        The picks in flight.
    budget
        Where granted requests count as used.
    """

    def __init__(self, in_flight: InFlight, budget: Budget) -> None:
        self.owners: dict[int, str] = {}  # by id of a pick in flight
        self.granted: Counter[str] = Counter()  # requests, by owner
        self._in_flight = in_flight
        self._budget = budget

    def is_reserved(self, pick_id: int) -> bool:
        """Whether a pick in flight reserves a request that was not sent, as far as is known."""
        return pick_id in self._in_flight.unsent

    def grant(self, owner: str, n: int, at: float) -> Granted | None:
        """Return the event that grants an owner up to ``n`` more requests, as many as the budget allows; ``None`` if
        that is none. Below 0, so many unsent ones are returned.
        """
        budget = self._budget
        if n > 0 and budget.requests is not None:
            n = max(0, min(n, budget.requests - budget.requests_used - len(self._in_flight.unsent)))
        return Granted(owner, n, budget.requests_used + n, at) if n else None

    def end(self, pick_id: int) -> None:
        """Remove the lease of a pick that nobody fetches any more."""
        self.owners.pop(pick_id, None)

    def apply_leased(self, event: Leased) -> None:
        """Record that another machine fetches a pick."""
        self.owners[event.pick_id] = event.owner

    def apply_granted(self, event: Granted) -> None:
        """Count granted requests as used."""
        self.granted[event.owner] += event.n
        self._budget.requests_used = event.requests
        for _ in range(event.n):  # a turn that was taken stays taken, as after a refused connection
            self._budget.take_turn(event.at)

    def save(self) -> dict[str, Any]:
        """Return this part's fields of a snapshot."""
        return {"owners": dict(self.owners), "granted": dict(self.granted)}

    def restore(self, state: Snapshot) -> None:
        """Restore a snapshot."""
        self.owners.update(state.owners)
        self.granted.update(state.granted)
