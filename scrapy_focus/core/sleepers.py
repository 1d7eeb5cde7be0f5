"""Links that sleep until a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.contract import sleeping_of
from scrapy_focus.core.events import Woke
from scrapy_focus.core.poor import LAST

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_focus.core.frontier import Frontier


class Sleepers:
    """The sleeping links of a frontier; none in a frontier that does not support times.

    Parameters
    ----------
    frontier
        Where they sleep.
    """

    def __init__(self, frontier: Frontier) -> None:
        self._sleeping = sleeping_of(frontier)
        self.can_sleep = self._sleeping is not None

    @property
    def asleep(self) -> int:
        """How many links sleep."""
        return 0 if self._sleeping is None else self._sleeping.asleep

    @property
    def first(self) -> float | None:
        """When the first of all is due, in seconds since the epoch, including those put last."""
        return None if self._sleeping is None else self._sleeping.next_due

    @property
    def next_due(self) -> float | None:
        """When the first with a time is due, in seconds since the epoch; ``None`` if there is none."""
        due = None if self._sleeping is None else self._sleeping.next_due
        return None if due is None or due >= LAST else due

    def wake(self, now: Callable[[], float], most: int | None) -> Woke | None:
        """Return the event that wakes up to ``most`` of the links that are due; ``None`` if none is."""
        due = self.next_due
        if due is None or due > (at := now()):
            return None
        return Woke(at, most)

    def apply(self, event: Woke) -> None:
        """Wake links."""
        if self._sleeping is not None:
            self._sleeping.wake(*(event if event.most is not None else (event.at,)))
