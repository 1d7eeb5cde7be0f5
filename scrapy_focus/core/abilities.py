"""Optional abilities of policies: protocols of one method each, and the values that they return.

A policy has a protocol if it defines the method; no inheritance is needed. A crawl checks once, when a policy takes
over (:class:`Abilities`). Settings and pages that depend on an ability use ``isinstance`` or ``issubclass``.
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
    """How many targets are left to find: an estimate and a 90 % interval."""

    low: float
    middle: float
    high: float


class WatchedPage(NamedTuple):
    """One page that a policy revisits again and again."""

    url: str
    visits: int
    changes: int  # visits that found new targets
    rate: float  # estimated changes a day
    low: float  # bounds of a 90 % interval of that
    high: float
    targets: float  # new targets a day that are expected on it
    last: float  # visit, in seconds since the epoch
    next: float | None  # next planned visit, likewise; None: it is due


class PolicyTable(NamedTuple):
    """A table that a policy shows about itself: its arms, the pages it watches, or anything else.

    Long texts are cut and shown in one line; a text that is a URL becomes a link on pages. Numbers are finite. The
    most important rows come first, because some places show only these.
    """

    title: str  # the subject of the rows, in a few words
    columns: tuple[str, ...]  # names of the columns; the first names the subject of a row
    rows: list[tuple[str | float | int, ...]]  # a value for each column


# What happens to pages that were fetched


@runtime_checkable
class FetchesAgain(Protocol):
    """Queues fetched pages for another visit."""

    def again(self, outcome: Outcome) -> Placement | None:
        """Return where the page just fetched is queued for another visit; ``None`` leaves it as fetched.

        Called after :meth:`~scrapy_focus.Policy.learn` for each outcome that is not of a HEAD, failed ones included
        (see ``error``). With ``Placement.after`` the page sleeps until then. A crawl whose policy has this method
        ends by a budget or a stop rule, or when no link is queued or asleep.
        """


@runtime_checkable
class Renders(Protocol):
    """Queues pages for a browser, which runs their scripts."""

    def render(self, outcome: Outcome) -> Placement | None:
        """Return where a page is queued for a browser to fetch it again; ``None``: it is not.

        Called after :meth:`~scrapy_focus.Policy.learn` for each outcome of a GET whose page has scripts
        (``outcome.scripted``), if a browser may be available. New links that the browser shows are placed as usual;
        the pick of that outcome has the method ``RENDER``. Its ``requests`` and ``received`` include those of the
        browser. Once a page had ``outcome.scripted``, :meth:`~scrapy_focus.Policy.place` may also queue new links for
        the browser by ``Placement.method``, without a plain fetch first. If the browser is not available after all,
        the page is fetched plainly, and the pick of its outcome has the method ``GET``.
        """


@runtime_checkable
class Hears(Protocol):
    """Receives what sites report about their pages."""

    def hear(self, signals: Sequence[Signal]) -> None:
        """Receive the times at which known pages changed, according to sitemaps, feeds or pings.

        These reports may be wrong, lie in the future, or repeat. The method may wake sleeping pages (a
        ``frontier.push`` with the key moves them). The crawl drops reports about unknown pages.
        """


# Observing links, and timing selection


@runtime_checkable
class Knows(Protocol):
    """Observes links to pages that are already known."""

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        """Receive the keys of links on a page that ``place`` does not get, because their URLs were seen before.

        They come in document order, after :meth:`~scrapy_focus.Policy.place` and before
        :meth:`~scrapy_focus.Policy.learn`.
        """


@runtime_checkable
class Waits(Protocol):
    """May pause selection although links are queued."""

    def due(self) -> float | None:
        """Return when the next link may be chosen, in seconds as :attr:`~scrapy_focus.Policy.now`; ``None``: not
        known.

        Called when ``select`` returned nothing. A crawl with nothing in flight resumes at that time; at ``math.inf``
        it ends.
        """


# Forecasts


@runtime_checkable
class ExpectsCost(Protocol):
    """Forecasts the cost of the next find."""

    def expected_cost(self) -> float | None:
        """Return the expected cost, in requests, of the next reward of 1; ``None`` if it is not known.

        A :class:`~scrapy_focus.core.stop.CostLimit` asks for it after each outcome.
        """


@runtime_checkable
class ExpectsLeft(Protocol):
    """Forecasts how much is left to find."""

    def expected_left(self) -> Left | None:
        """Return how many targets are left to find, with a 90 % interval; ``None`` if not known."""


# Self-description


@runtime_checkable
class ShowsArms(Protocol):
    """Names its best arms."""

    def best_arms(self, k: int) -> list[tuple[str, float, int]]:
        """Return up to ``k`` arms with the highest rewards, best first: a readable name, its reward, its pulls."""


@runtime_checkable
class ShowsTables(Protocol):
    """Shows tables about itself."""

    def tables(self) -> list[PolicyTable]:
        """Return tables about the policy, for the panel of a crawl, its page and ``focus status``.

        It may take time linear in the policy's state: it is called now and then, and at the end. It changes nothing.
        """


@runtime_checkable
class ShowsPages(Protocol):
    """Lists the pages that it revisits again and again."""

    def watched(self, most: int) -> list[WatchedPage]:
        """Return up to ``most`` of the pages that are revisited, those with most visits first.

        It may take time linear in the number of these pages; it is called now and then.
        """


# Before and after a crawl


@runtime_checkable
class Saves(Protocol):
    """Saves what it learned for other crawls."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write what was learned to a file from which another crawl can start.

        Raises
        ------
        ConfigError
            If the file cannot be written.
        """


@runtime_checkable
class Loads(Protocol):
    """Starts from what another crawl learned."""

    def load(self, path: str | PathLike[str]) -> None:
        """Load what another crawl saved. Called before :meth:`~scrapy_focus.Policy.open`.

        Raises
        ------
        ConfigError
            If the file cannot be read.
        """


@runtime_checkable
class NeedsTruth(Protocol):
    """May need the truth about a site beforehand; :class:`~scrapy_focus.Informed` is the base class."""

    @property
    def needs_truth(self) -> bool:
        """Whether it needs the truth beforehand; then it works on recorded sites only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """The optional protocols: each is the policy, or ``None`` if it does not have it."""

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
        """Return the abilities of a policy."""
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
