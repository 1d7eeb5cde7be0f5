"""Shorter pauses of Python's garbage collector."""

from __future__ import annotations

import gc

_MANY = 100_000  # waiting links whose objects make a garbage collection long
_BETWEEN = 100  # outcomes between two looks at how many wait


def freeze(*, collect: bool = True) -> None:
    """Collect garbage, if there may be any, and let the collector pass over all that is left from now on.

    A full collection walks every object of the process, in a crawl every few seconds: with Scrapy, scikit-learn and
    some thousand arms that is 150,000 objects and up to 140 ms in which nothing else happens. What is passed over is
    freed as ever when nobody refers to it any more; only a cycle of such objects stays, until :func:`thaw`.
    """
    if collect:
        gc.collect()
    gc.freeze()


def thaw() -> None:
    """Let the collector see everything again: a crawl is over, and its parts refer to each other in cycles."""
    gc.unfreeze()


class Freezer:
    """Lets the garbage collector pass over what exists: imports and loaded links, later more waiting links."""

    def __init__(self) -> None:
        self._next_look = _BETWEEN  # outcomes
        self._from = _MANY  # waiting links

    def freeze(self, waiting: int) -> None:
        """Freeze what exists, with so many links waiting."""
        freeze(collect=waiting > _MANY)
        self._from = 2 * max(waiting, _MANY)

    def is_due(self, outcomes: int) -> bool:
        """Whether to look at how many links wait, after so many outcomes."""
        if outcomes < self._next_look:
            return False
        self._next_look = outcomes + _BETWEEN
        return True

    def freeze_more(self, waiting: int) -> None:
        """Freeze again where twice as many links wait as at the last time."""
        if waiting >= self._from:
            self.freeze(waiting)
