"""Long work, a little in each turn of the event loop: answers and timers come in between."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy.utils.asyncio import CallLaterResult

_TURN = 0.02  # seconds of work in one turn, and what one step takes


class Turns:
    """Works off iterators, one after the other, step by step.

    Parameters
    ----------
    step
        Takes an iterator one step further, and says whether it has more; raises nothing.
    done
        Called whenever an iterator came to its end.
    """

    def __init__(self, step: Callable[[Iterator[None]], bool], done: Callable[[], None]) -> None:
        self._step = step
        self._done = done
        self._work: deque[Iterator[None]] = deque()
        self._next: CallLaterResult | None = None

    def add(self, work: Iterator[None]) -> None:
        """Begin with a work in the next turn, or when those before it are done."""
        self._work.append(work)
        self._go_on()

    def finish(self) -> None:
        """Do all that is left, now."""
        while self._work:
            work = self._work.popleft()
            while self._step(work):
                pass

    def drop(self) -> None:
        """Leave all that is left."""
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
    """Take an iterator one step further, and say whether it has more."""
    return next(work, work) is not work
