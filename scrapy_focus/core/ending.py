"""When a crawl is over: its budget is used up, or its stop rule says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.contract import cost_of
from scrapy_focus.core.guard import FAILED
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.core.stop import CostLimit

if TYPE_CHECKING:
    from scrapy_focus.core.budget import Budget
    from scrapy_focus.core.guard import Guard
    from scrapy_focus.core.snapshot import Snapshot
    from scrapy_focus.core.stop import StopRule

logger = printable_logger(__name__)


class Ending:
    """Asks a stop rule after each outcome, and records why the crawl is over.

    Parameters
    ----------
    stop
        The rule; ``None``: the budget alone ends the crawl.
    budget
        What may be used.
    guard
        Calls the rule and the policy.
    """

    def __init__(self, stop: StopRule | None, budget: Budget, guard: Guard) -> None:
        self.stop = stop
        self.reason = ""  # of the stop rule, once it is reached
        self._budget = budget
        self._guard = guard
        self._is_doubted = False  # whether a long time without finds was logged

    def why(self) -> str:
        """Return why the crawl is over, ``""`` if it is not."""
        spent = self._budget.exhausted()  # not for good: a request may be refunded
        return self.reason or (f"budget_{spent}" if spent else "")

    def look(self, rewards: float) -> None:
        """Check whether the rule is reached, after so many rewards."""
        if self.stop is None:
            return
        forecaster = self._guard.abilities.expected_cost
        cost = None if forecaster is None else self._guard.ask("expected_cost", cost_of, forecaster)
        known = None if cost is FAILED else cost
        reached = self._guard.ask("stop", self.stop.reached, self._budget.requests_used, rewards, known)
        if reached is not FAILED and reached:
            self.reason = self.reason or self.stop.reason

    def doubt(self) -> None:
        """Log once that any later stretch without finds as long as this one would end the crawl."""
        used = self._budget.requests_used
        if self._is_doubted or not isinstance(self.stop, CostLimit) or (end := self.stop.gives_up_at(used)) is None:
            return
        self._is_doubted = True
        logger.warning(
            "nothing found in %d requests yet, and the next find is expected to cost more than %s: the crawl gives up "
            "at %d requests, unless something is found or links look better", used, f"{self.stop.limit:,.10g}", end,
        )  # fmt: skip

    @property
    def ends_in(self) -> int | None:
        """Requests after which a cost limit may end the crawl at the earliest; ``None`` without one."""
        return self.stop.left(self._budget.requests_used) if isinstance(self.stop, CostLimit) else None

    def save(self) -> dict[str, Any]:
        """Return this part's fields of a snapshot."""
        return {"stop": None if self.stop is None else {"rule": self.stop.reason, **self.stop.state()}}

    def restore(self, state: Snapshot) -> None:
        """Restore a snapshot, if it was of the same rule."""
        if self.stop is not None and state.stop is not None and state.stop.get("rule") == self.stop.reason:
            self.stop.restore(dict(state.stop))
