"""Signals that pages changed, from sitemaps, feeds and pings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.types import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.core.events import Heard
    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.guard import Guard
    from scrapy_focus.core.types import Signal


class Signals:
    """Passes signals about known pages to a policy that listens.

    Parameters
    ----------
    frontier
        Knows the pages.
    guard
        Calls the policy.
    """

    def __init__(self, frontier: Frontier, guard: Guard) -> None:
        self._frontier = frontier
        self._guard = guard

    def known(self, signals: Sequence[Signal]) -> list[Signal]:
        """Return the signals about known pages; none if the policy does not listen."""
        if self._guard.abilities.hear is None or not signals:
            return []
        states = self._frontier.states([signal.key for signal in signals])
        return [signal for signal, state in zip(signals, states, strict=True) if state != State.NEW]

    def apply(self, event: Heard) -> None:
        """Pass signals to the policy."""
        self._guard.policy.now = event.at
        listener = self._guard.abilities.hear
        if listener is not None:
            self._guard.ask("hear", listener.hear, event.signals)
