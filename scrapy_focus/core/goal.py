"""What an outcome is worth: a goal is any callable from an outcome to a number.

``None`` says that the worth will be known later, through :meth:`~scrapy_focus.core.crawl.Crawl.reward`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from scrapy_focus.core.types import Outcome


class Goal(Protocol):
    """Turns an outcome into a number: 0 for nothing, 1 for one target.

    One that learns while it crawls has methods ``state`` and ``restore``, by which a ``JOBDIR`` keeps that: plain
    values, arrays of NumPy, and containers of them. With ``said`` it tells in sentences how it sees the crawl, and with
    ``alarm``, as a sentence, that something goes wrong (:class:`~scrapy_focus.goals.topic.TopicGoal` has all four).
    """

    def __call__(self, outcome: Outcome) -> float | None:
        """Return the reward, or ``None`` if it comes later."""


def noun_of(goal: Goal) -> str:
    """Return what several things that a goal looks for are called, as it says itself in ``noun``."""
    return str(getattr(goal, "noun", "targets"))


class ItemsGoal:
    """An outcome is worth the items that its page gave, as they came out of the item pipelines."""

    #: What is counted.
    noun = "items"

    #: Whether the headers of a response are enough to know what it is worth, so that a HEAD can tell.
    heads_tell = False

    def __call__(self, outcome: Outcome) -> float:
        return outcome.items

    def __repr__(self) -> str:
        return "items scraped"
