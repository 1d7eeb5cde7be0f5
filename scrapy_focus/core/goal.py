"""What an outcome is worth: a goal is any callable from an outcome to a number.

``None`` says that the worth will be known later, through :meth:`~scrapy_focus.core.crawl.Crawl.reward`. What some goals
say or do besides is a protocol of its own; a goal has it if it has the attribute or method, and inherits from nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from scrapy_focus.core.types import Outcome


class Goal(Protocol):
    """Turns an outcome into a number: 0 for nothing, 1 for one target."""

    def __call__(self, outcome: Outcome) -> float | None:
        """Return the reward, or ``None`` if it comes later."""


# What is looked for, as far as it is known beforehand


@runtime_checkable
class Named(Protocol):
    """Has a name for what it looks for."""

    @property
    def noun(self) -> str:
        """What several of these things are called."""


@runtime_checkable
class Typed(Protocol):
    """Looks for files of some types."""

    @property
    def types(self) -> Collection[str]:
        """MIME types, or patterns such as ``image/*``."""


@runtime_checkable
class OnTopic(Protocol):
    """Looks for pages on a topic."""

    @property
    def relevance(self) -> Any:
        """A model of the topic, a :class:`~scrapy_focus.Topic`; ``None``: there is none."""


@runtime_checkable
class JudgesHeaders(Protocol):
    """Says whether the headers of a response are enough."""

    @property
    def heads_tell(self) -> bool:
        """Whether these tell what a response is worth, so that a HEAD is enough."""


@runtime_checkable
class CountsContents(Protocol):
    """Says whether each content counts once."""

    @property
    def stored(self) -> bool:
        """Whether a target whose content was seen before is worth nothing."""


# What it is asked during a crawl


@runtime_checkable
class SeesUnchanged(Protocol):
    """Takes note of pages that are as they were at their last visit."""

    def unchanged(self, outcome: Outcome) -> None:
        """See the outcome of such a page, which is worth nothing."""


@runtime_checkable
class Learner(Protocol):
    """Learns while it crawls; a ``JOBDIR`` keeps what."""

    def state(self) -> Any:
        """Return what was learned: plain values, arrays of NumPy, and containers of them."""

    def restore(self, state: Any) -> None:
        """Be as when this state was returned."""


@runtime_checkable
class Says(Protocol):
    """Says how it sees the crawl."""

    def said(self) -> Sequence[str]:
        """Return that, a sentence each."""


@runtime_checkable
class Warns(Protocol):
    """Warns when something goes wrong."""

    @property
    def alarm(self) -> str:
        """What, in a sentence; ``""``: nothing does."""


def noun_of(goal: Goal) -> str:
    """Return what several things that a goal looks for are called."""
    return str(goal.noun) if isinstance(goal, Named) else "targets"


def types_of(goal: Goal) -> Collection[str]:
    """Return the MIME types that a goal looks for; none where it doesn't say."""
    return goal.types if isinstance(goal, Typed) else frozenset()


def heads_tell(goal: Goal) -> bool:
    """Whether headers are enough for a goal."""
    return isinstance(goal, JudgesHeaders) and bool(goal.heads_tell)


def counts_contents(goal: Goal) -> bool:
    """Whether each content counts once for a goal."""
    return isinstance(goal, CountsContents) and bool(goal.stored)


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
