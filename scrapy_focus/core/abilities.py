"""What some policies do besides: protocols of one method each, and what these methods return.

A policy has a protocol if it defines the method; it inherits from nothing for that. A crawl asks once, when a policy
begins to decide (:class:`Abilities`). Where a setting or a page depends on what a policy does, ``isinstance`` or
``issubclass`` tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.types import Outcome, Placement, Signal


class Left(NamedTuple):
    """How many targets are still to be found, as a number and as a 90 % interval."""

    low: float
    middle: float
    high: float


class WatchedPage(NamedTuple):
    """One page that a policy fetches again and again."""

    url: str
    visits: int
    changes: int  # that visits found
    rate: float  # changes a day, as far as that can be known
    low: float  # of a 90 % interval of that
    high: float
    targets: float  # new targets a day that are expected on it
    last: float  # visit, in seconds since the epoch
    next: float | None  # planned visit, likewise; None: it is due


class PolicyTable(NamedTuple):
    """A table that a policy shows of itself: of its arms, of what it watches, of whatever it is made of.

    Texts are cut where they are long, and shown in one line; a text that is a URL becomes a link on pages. Numbers are
    finite. The rows that matter most come first, as some places show only these.
    """

    title: str  # what the rows are, in a few words
    columns: tuple[str, ...]  # their names; the first says what a row is about
    rows: list[tuple[str | float | int, ...]]  # a value for each column


# What happens to pages that were fetched


@runtime_checkable
class FetchesAgain(Protocol):
    """Lets pages that were fetched wait for another visit."""

    def again(self, outcome: Outcome) -> Placement | None:
        """Say where a page waits that was fetched just now, to be fetched again; ``None`` leaves it as fetched.

        Asked after :meth:`~scrapy_focus.Policy.learn`, for each outcome that is not of a HEAD, also where nothing came
        back (see its ``error``). With ``Placement.after`` the page sleeps until then. A crawl whose policy has this
        method ends by a budget or a stop rule, or where nothing waits or sleeps any more.
        """


@runtime_checkable
class Renders(Protocol):
    """Lets pages wait for a browser, which runs their scripts."""

    def render(self, outcome: Outcome) -> Placement | None:
        """Say where a page waits to be fetched again by a browser, which runs its scripts; ``None``: it is not.

        Asked after :meth:`~scrapy_focus.Policy.learn`, for each outcome of a GET whose page has scripts
        (``outcome.scripted``), where a browser may be asked at all. The links of the page that the browser shows and
        that are not known are placed as ever; the outcome's pick then has the method ``RENDER``. What was sent for it,
        by the browser too, is in its ``requests`` and ``received``. Once a page came with ``outcome.scripted``,
        :meth:`~scrapy_focus.Policy.place` may also let new links wait so, by ``Placement.method``: then there is no
        plain page before. Where no browser is there after all, its page is fetched as it is, and the pick of its
        outcome has the method ``GET``.
        """


@runtime_checkable
class Hears(Protocol):
    """Sees what sites say of their pages."""

    def hear(self, signals: Sequence[Signal]) -> None:
        """See what sitemaps, feeds or pings say of known pages: when they changed.

        What is said may be wrong, of the future, or said again and again. Pages that sleep may be woken here (a
        ``frontier.push`` with the key moves them); those of which nothing is known are left out by the crawl.
        """


# What a policy sees of links, and when it selects


@runtime_checkable
class Knows(Protocol):
    """Sees links to pages that are known already."""

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        """See the keys of the links of a page that ``place`` is not given, as their URLs were seen before.

        In document order, after :meth:`~scrapy_focus.Policy.place` and before :meth:`~scrapy_focus.Policy.learn`.
        """


@runtime_checkable
class Waits(Protocol):
    """Selects nothing for a while, though links wait."""

    def due(self) -> float | None:
        """Return when the next link may be chosen, in seconds as :attr:`~scrapy_focus.Policy.now`; ``None``: not known.

        Asked where ``select`` gave nothing: a crawl without anything in flight resumes at that time; at ``math.inf``,
        never, and it ends.
        """


# What a policy expects


@runtime_checkable
class ExpectsCost(Protocol):
    """Forecasts what a find costs."""

    def expected_cost(self) -> float | None:
        """Return what the next reward of 1 is expected to cost, in requests, or ``None`` where that is not known.

        A :class:`~scrapy_focus.core.stop.CostLimit` asks after each outcome.
        """


@runtime_checkable
class ExpectsLeft(Protocol):
    """Forecasts how much is left to find."""

    def expected_left(self) -> Left | None:
        """Return how many targets are still to be found, with a 90 % interval, or ``None`` where that is not known."""


# What a policy shows of itself


@runtime_checkable
class ShowsArms(Protocol):
    """Shows which of its arms are best."""

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        """Return up to ``k`` arms that earned most, best first: a readable name, what it earned, in how many pulls."""


@runtime_checkable
class ShowsTables(Protocol):
    """Shows tables of itself."""

    def tables(self) -> list[PolicyTable]:
        """Return what the policy shows of itself, for the panel of a crawl, its page and ``focus-status``.

        It may be linear in what the policy knows, and is asked now and then, and at the end. It changes nothing.
        """


@runtime_checkable
class ShowsPages(Protocol):
    """Shows which pages it fetches again and again."""

    def watched(self, most: int) -> list[WatchedPage]:
        """Return up to ``most`` of the pages that are fetched again and again, those with most visits first.

        It may be linear in these pages, and is asked now and then.
        """


# Before and after a crawl


@runtime_checkable
class Saves(Protocol):
    """Writes what it learned for other crawls."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write what was learned to a file with which another crawl can begin.

        Raises
        ------
        ConfigError
            If the file cannot be written.
        """


@runtime_checkable
class Loads(Protocol):
    """Begins with what another crawl learned."""

    def load(self, path: str | PathLike[str]) -> None:
        """Begin with what another crawl saved. Called before :meth:`~scrapy_focus.Policy.open`.

        Raises
        ------
        ConfigError
            If the file cannot be read.
        """


@runtime_checkable
class NeedsTruth(Protocol):
    """May have to be given the truth about a site; :class:`~scrapy_focus.Informed` is the base of those."""

    @property
    def needs_truth(self) -> bool:
        """Whether it must be given that beforehand: then it can only be tried on recorded sites."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """The protocols that a crawl asks its policy for: each is the policy, or ``None`` where it does not have it."""

    again: FetchesAgain | None
    render: Renders | None
    hear: Hears | None
    know: Knows | None
    due: Waits | None
    expected_cost: ExpectsCost | None
    expected_left: ExpectsLeft | None
    best_arms: ShowsArms | None
    tables: ShowsTables | None
    watched: ShowsPages | None

    @classmethod
    def of(cls, policy: Policy) -> Self:
        """Return those of a policy."""
        return cls(**{name: policy if isinstance(policy, each) else None for name, each in _PROTOCOLS.items()})


_PROTOCOLS: dict[str, Any] = {
    "again": FetchesAgain,
    "render": Renders,
    "hear": Hears,
    "know": Knows,
    "due": Waits,
    "expected_cost": ExpectsCost,
    "expected_left": ExpectsLeft,
    "best_arms": ShowsArms,
    "tables": ShowsTables,
    "watched": ShowsPages,
}
