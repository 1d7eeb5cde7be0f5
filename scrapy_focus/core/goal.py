"""The value of an outcome: a goal is any callable from an outcome to a number.

``None`` means that the value follows later, through :meth:`~scrapy_focus.core.crawl.Crawl.reward`. Optional abilities
of goals are protocols of their own; a goal has one if it has the attribute or method, and need not inherit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from scrapy_focus.core.types import Link, Outcome


class Goal(Protocol):
    """Turns an outcome into a number: 0 for nothing, 1 for one target."""

    def __call__(self, outcome: Outcome) -> float | None:
        """Return the reward, or ``None`` if it comes later."""


# What the goal looks for, as far as it is known beforehand


@runtime_checkable
class Named(Protocol):
    """Names what it looks for."""

    @property
    def noun(self) -> str:
        """The plural name of what it looks for."""


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
        """A model of the topic, a :class:`~scrapy_focus.Topic`; ``None`` without one."""


@runtime_checkable
class JudgesHeaders(Protocol):
    """Declares whether the headers of a response are enough."""

    @property
    def heads_tell(self) -> bool:
        """Whether headers determine the reward, so that a HEAD is enough."""


@runtime_checkable
class CountsContents(Protocol):
    """Declares whether each content counts once."""

    @property
    def stored(self) -> bool:
        """Whether a target whose content was seen before has reward 0."""


# Methods called during a crawl


@runtime_checkable
class SeesUnchanged(Protocol):
    """Observes pages that are unchanged since their last visit."""

    def unchanged(self, outcome: Outcome) -> None:
        """Receive the outcome of such a page, whose reward is 0."""


@runtime_checkable
class SeesLinks(Protocol):
    """Observes the links that the crawl finds, before the policy places them."""

    def see_links(self, links: Sequence[Link], source: Outcome | None) -> None:
        """Receive the new links of a page, at most a few hundred at a time, after the goal judged that page.

        Each URL is shown once, even if the policy receives known links again.

        ``source`` is the outcome of the page, with its reward; ``None`` for seeds and other links of no page. A job
        records what is read of its page, so read little: a value that is computed from the page by
        ``source.page.made(name, make)``, if the page has this method. After a kill, links that came since the last
        checkpoint are shown again, with what was read of their pages.
        """


@runtime_checkable
class Learner(Protocol):
    """Learns while it crawls; a ``JOBDIR`` keeps its state."""

    def state(self) -> Any:
        """Return the state: plain values, arrays of NumPy, and containers of them."""

    def restore(self, state: Any) -> None:
        """Restore a state."""


@runtime_checkable
class Says(Protocol):
    """Describes how it sees the crawl."""

    def said(self) -> Sequence[str]:
        """Return the description, one sentence each."""


@runtime_checkable
class Warns(Protocol):
    """Warns when something goes wrong."""

    @property
    def alarm(self) -> str:
        """The problem in a sentence; ``""`` for none."""


def noun_of(goal: Goal) -> str:
    """Return the plural name of what a goal looks for."""
    return str(goal.noun) if isinstance(goal, Named) else "targets"


def types_of(goal: Goal) -> Collection[str]:
    """Return the MIME types that a goal looks for; none if it declares none."""
    return goal.types if isinstance(goal, Typed) else frozenset()


def heads_tell(goal: Goal) -> bool:
    """Whether headers are enough for a goal."""
    return isinstance(goal, JudgesHeaders) and bool(goal.heads_tell)


def reads_links(goal: Goal) -> bool:
    """Whether a goal needs the texts of links, whatever the policy reads."""
    return isinstance(goal, SeesLinks)


def counts_contents(goal: Goal) -> bool:
    """Whether each content counts once for a goal."""
    return isinstance(goal, CountsContents) and bool(goal.stored)


class ItemsGoal:
    """The reward of an outcome is the number of items of its page that left the item pipelines."""

    #: What the goal counts.
    noun = "items"

    #: Whether headers determine the reward, so that a HEAD is enough.
    heads_tell = False

    def __call__(self, outcome: Outcome) -> float:
        return outcome.items

    def __repr__(self) -> str:
        return "items scraped"
