"""Shorter pauses of Python's garbage collector."""

from __future__ import annotations

import gc

_MANY = 100_000  # queued links whose objects make a garbage collection slow
_BETWEEN = 100  # outcomes between two checks of the number of queued links


def freeze(*, collect: bool = True) -> None:
    """Collect garbage, then exclude all remaining objects from later collections.

    A full collection walks every object of the process, every few seconds in a crawl. With Scrapy, scikit-learn and
    some thousand arms these are 150,000 objects, and nothing else happens for up to 140 ms. Excluded objects are freed
    as usual when their last reference disappears; only cycles of such objects stay until :func:`thaw`.
    """
    if collect:
        gc.collect()
    gc.freeze()


def thaw() -> None:
    """Include all objects again: a crawl is over, and its parts refer to each other in cycles."""
    gc.unfreeze()


class Freezer:
    """Excludes existing objects from collections: imports and loaded links, later more queued links."""

    def __init__(self) -> None:
        self._next_look = _BETWEEN  # outcomes
        self._from = _MANY  # queued links

    def freeze(self, waiting: int) -> None:
        """Freeze the existing objects, with so many links queued."""
        freeze(collect=waiting > _MANY)
        self._from = 2 * max(waiting, _MANY)

    def is_due(self, outcomes: int) -> bool:
        """Whether to check the number of queued links, after so many outcomes."""
        if outcomes < self._next_look:
            return False
        self._next_look = outcomes + _BETWEEN
        return True

    def freeze_more(self, waiting: int) -> None:
        """Freeze again if twice as many links are queued as the last time."""
        if waiting >= self._from:
            self.freeze(waiting)
