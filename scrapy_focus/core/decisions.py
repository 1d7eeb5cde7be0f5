"""Why links were chosen: the policy's explanations, and the decision log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_focus.core.contract import explained

if TYPE_CHECKING:
    from scrapy_focus.core.guard import Guard
    from scrapy_focus.core.log import EventLog
    from scrapy_focus.core.snapshot import Snapshot
    from scrapy_focus.core.types import Outcome, Pick


class Decisions:
    """Asks the policy why it chose a link, if anyone wants to know, and writes the decision log.

    Parameters
    ----------
    log
        Where to write decisions; ``None``: nowhere.
    explains
        Keep the last answer in ``why``, even without a log.
    guard
        Calls the policy and the log.
    """

    def __init__(self, log: EventLog | None, *, explains: bool, guard: Guard) -> None:
        self.log = log
        self.explains = explains
        self.why: dict[str, Any] = {}
        self._guard = guard

    def chosen(self, pick: Pick, *, by_policy: bool) -> None:
        """Record a chosen link."""
        if not self.explains and self.log is None:
            return
        why = self._guard.ask("explain", explained, self._guard.policy, pick) if by_policy else {}
        self.why = why if isinstance(why, dict) else {}
        if self.log is not None:
            self._guard.ask("log", self.log.pick, pick, self.why)

    def released(self, pick: Pick) -> None:
        """Record a pick that is queued again."""
        if self.log is not None:
            self._guard.ask("log", self.log.release, pick)

    def concluded(self, outcome: Outcome) -> None:
        """Record the outcome of a pick."""
        if self.log is not None:
            self._guard.ask("log", self.log.outcome, outcome)

    def close(self) -> None:
        """Close the log."""
        if self.log is not None:
            self._guard.ask("log", self.log.close)

    def save(self) -> dict[str, Any]:
        """Return this part's fields of a snapshot."""
        return {"log": None if self.log is None else self.log.mark()}

    def restore(self, state: Snapshot) -> None:
        """Do nothing: the code that restores a crawl cuts its log."""
