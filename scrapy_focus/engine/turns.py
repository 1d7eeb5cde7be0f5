"""Long work in small steps: each turn of the event loop does some, so that responses and timers are handled."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy.utils.asyncio import CallLaterResult

_TURN = 0.02  # seconds of work in one turn, plus one step


class Turns:
    """Runs iterators one after another, step by step.

    Parameters
    ----------
    step
        Advances an iterator by one step, and returns whether it has more; raises nothing.
    done
        Called whenever an iterator ends.
    """

    def __init__(self, step: Callable[[Iterator[None]], bool], done: Callable[[], None]) -> None:
        self._step = step
        self._done = done
        self._work: deque[Iterator[None]] = deque()
        self._next: CallLaterResult | None = None

    def add(self, work: Iterator[None]) -> None:
        """Start an iterator in the next turn, or after those before it."""
        self._work.append(work)
        self._go_on()

    def finish(self) -> None:
        """Do all the remaining work now."""
        while self._work:
            work = self._work.popleft()
            while self._step(work):
                pass

    def drop(self) -> None:
        """Discard all the remaining work."""
        self._work.clear()

    def _go_on(self) -> None:
        if self._next is None and self._work:
            self._next = call_later(0, self._turn)

    def _turn(self) -> None:
        self._next = None
        end = monotonic() + _TURN
        while self._work:
            if not self._step(self._work[0]) and self._work:
                self._work.popleft()
                self._done()
            if monotonic() >= end:
                break
        self._go_on()


def has_more(work: Iterator[None]) -> bool:
    """Advance an iterator by one step, and return whether it has more."""
    return next(work, work) is not work
