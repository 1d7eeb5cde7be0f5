"""Where links are queued: the contract of every frontier, whatever stores it.

A :class:`Frontier` is a ledger: it knows each URL by its key, and which picks are in flight. The order in which links
leave is chosen when it is made. :class:`Ranked` frontiers return the best rank of an arm; :class:`Drawn` ones keep a
vector for each queued link, and a policy draws some of them to choose from. A policy declares which of the two it
needs (:meth:`Policy.keeps <scrapy_focus.core.policy.Policy.keeps>`), and the crawl creates it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Pick, Placement, State


@dataclass(frozen=True, slots=True)
class Ranks:
    """What most policies need: links are queued in arms, ordered by rank. The frontier is :class:`Ranked`."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """Links are queued in arms without an order, each with a vector of ``width`` bytes. The frontier is
    :class:`Drawn`.
    """

    width: int


Keeps = Ranks | Vectors


class Frontier(Protocol):
    """Every queued link, in arms; the picks in flight; the URLs seen.

    A URL (by its key) is in exactly one :class:`~scrapy_focus.core.types.State`. An arm is any integer from 0. It
    exists from the first link placed in it, and sleeps while it has no queued link. A frontier whose links may sleep,
    too, is also :class:`Sleeping`.

    All methods are cheap enough for an event loop: none is linear in the number of queued links except ``check`` and
    those documented as linear.
    """

    @property
    def waiting(self) -> NDArray[np.int64]:
        """How many links are queued in each arm, shape (n_arms,). Read-only."""

    @property
    def flying(self) -> Mapping[int, Pick]:
        """The picks in flight, by id. Read-only."""

    def __len__(self) -> int:
        """How many links are queued."""

    def states(self, keys: Sequence[int]) -> list[State]:
        """The state of each key."""

    def push(self, links: Sequence[Link], placements: Sequence[Placement | None], *, origin: int = -1) -> int:
        """Store each link that has a placement; return how many are queued or asleep now that were neither before.

        A queued link is moved, one in flight is left alone, and one in any other state is queued again. ``None``
        gives a new link up, and leaves any other unchanged.
        """

    def take(self, key: int, *, pick_id: int | None = None) -> Pick | None:
        """Take out one link by its key; ``None`` if it is not queued.

        ``pick_id`` is the id for the pick, which no pick in flight has; by default the next one.
        """

    def settle(self, pick: Pick, also: Collection[int] = ()) -> None:
        """Settle a pick: its URL is fetched now, or probed if the pick was a HEAD.

        Keys in ``also``, to which it was redirected, become fetched as well if they are new or given up.
        """

    def release(self, pick: Pick) -> None:
        """Queue a pick that was not sent again, at its old place."""

    def check(self) -> None:
        """Raise :class:`~scrapy_focus.core.errors.FrontierError` if an invariant is broken; linear."""

    def close(self) -> None:
        """Close files and other resources. Idempotent."""


@runtime_checkable
class NamesHosts(Protocol):
    """A frontier that also knows the hosts of its links, as those of this package do."""

    @property
    def hosts(self) -> Sequence[str]:
        """The name of each host that ever had a queued link. Read-only."""


class Sleeping(Protocol):
    """A frontier that also supports :attr:`Placement.after <scrapy_focus.core.types.Placement.after>`.

    A link sleeps if its placement's time is later than the last time passed to :meth:`wake`. Its state is
    ``WAITING``; ``push``, ``move`` and ``vectors`` treat it as queued, and may wake it or put another to sleep. All
    other methods skip it: it is not counted in its arm or in ``len()``, and is never popped, taken, drawn, scanned or
    dropped. A woken link is queued in its arm with its rank, in the order of first pushes. A released pick is queued.
    """

    @property
    def asleep(self) -> int:
        """How many links sleep."""

    @property
    def next_due(self) -> float | None:
        """When the first of these is due, in seconds since the epoch; ``None`` if none sleeps."""

    def wake(self, now: float, most: int | None = None) -> int:
        """Queue all links that are due, up to ``most``, and return how many these were; O(log n) for each.

        With ``most``, those due for longest come first, and among equals the older first.
        """


class Ranked(Frontier, Protocol):
    """Arms ordered by rank: the link with the largest rank leaves an arm first.

    Equal ranks always leave in the order in which their links were first pushed, even after a release, a move or a
    resume. ``busy`` holds the hosts that can take nothing now: their links stay queued. ``Placement.memo`` is a
    vector of float32 of any length, or ``None``.
    """

    @property
    def heads(self) -> NDArray[np.float64]:
        """The best queued rank of each arm, shape (n_arms,), ``-inf`` for an empty one. Read-only."""

    def awake(self, busy: Collection[str] = ()) -> NDArray[np.int64]:
        """How many links of each arm are queued for hosts that are not busy, shape (n_arms,)."""

    def pop(self, arm: int, busy: Collection[str] = ()) -> Pick | None:
        """Take out the best link of an arm whose host is not busy; ``None`` if there is none."""

    def scan(self, arm: int) -> Iterator[tuple[Link, Placement]]:
        """Yield every queued link of an arm; linear. The frontier must not change meanwhile.

        The order is arbitrary, and may differ in a resumed crawl: sort where it matters.
        """

    def move(self, keys: Sequence[int], placements: Sequence[Placement | None]) -> None:
        """Move queued links; ``None`` gives a link up. Keys that are not queued are skipped."""

    def drop(self, arm: int, n: int) -> int:
        """Give up the ``n`` worst links of an arm, youngest first among equal ranks; return how many. Linear."""

    def drop_each(self, counts: Mapping[int, int]) -> int:
        """Give up the ``counts[arm]`` worst links of some arms; return how many in all. Linear."""


class Draw(NamedTuple):
    """Queued links that were drawn, one per row; a link drawn twice has two rows."""

    slots: NDArray[np.int32]  # shape (k,), for take_drawn() and drop(), until the frontier changes
    arms: NDArray[np.int32]  # shape (k,), ascending
    hosts: NDArray[np.int32]  # shape (k,), numbers of Drawn.hosts
    vectors: NDArray[np.uint8]  # shape (k, width)


class Kept(NamedTuple):
    """Links that are queued in some arms, or sleep, one per row."""

    numbers: NDArray[np.int32]  # shape (n,), for urls(), until the frontier changes
    due: NDArray[np.float64]  # shape (n,), when each is due, in seconds since the epoch; 0 for a queued one
    vectors: NDArray[np.uint8]  # shape (n, width)


class Drawn(Frontier, Protocol):
    """Arms without an order: a vector of bytes for each queued link, in memory; arms can be split and drawn from.

    ``Placement.memo`` is a vector of ``width`` whole numbers from 0 to 255 (uint8), and so is ``Pick.memo``; a link
    pushed without one has zeros. A queued link that is moved without a memo keeps its vector; with one, its vector
    and arm change. A link is queued where its vector belongs after all splits, whatever arm its placement names.
    """

    @property
    def hosts(self) -> Sequence[str]:
        """The name of each host that ever had a queued link, by its number. Read-only."""

    def awake(self, busy: Collection[str] = ()) -> NDArray[np.int64]:
        """How many links of each arm are queued for hosts that are not busy, shape (n_arms,)."""

    def draw(
        self,
        counts: Mapping[int, int] | NDArray[np.integer] | None,
        rng: np.random.Generator | None,
        *,
        busy: Collection[str] = (),
        closed: NDArray[np.bool_] | None = None,
    ) -> Draw:
        """Draw links uniformly with replacement: ``counts[arm]`` of each arm, among those whose host is free. Without
        an ``rng`` the links pushed first are returned, each once.

        ``counts`` is an array by arm, or a mapping if only some arms matter. ``None`` returns every queued link once,
        oldest first in each arm, without using ``rng``; that is linear.

        Hosts are not free if they are in ``busy``, or if ``closed``, shape (n_hosts,), marks them by number; hosts
        beyond its end are free. An arm without a link for a free host gives none; if no arm has one, ``rng`` is not
        used. The draw depends only on ``rng``, the links queued in each arm, the order of their first pushes, and
        ``busy`` and ``closed``. So a frontier that was reopened draws the same links.
        """

    def take_drawn(self, slot: int) -> Pick | None:
        """Take out a drawn link; ``None`` if no link is queued in this slot."""

    def vectors(self, keys: Sequence[int]) -> NDArray[np.uint8]:
        """Return the vectors of queued links, shape (n, width); zeros for a key that is not queued. None is read from
        a disk.
        """

    def hosts_of(self, keys: Sequence[int]) -> NDArray[np.int32]:
        """Return the hosts of queued links, numbers of :attr:`hosts`, shape (n,); -1 for a key that is not queued."""

    def divide(self, arm: int, column: int, above: int, new_arm: int) -> None:
        """Split an arm: links whose vector has more than ``above`` in a column move to a new arm.

        The new arm has a larger number. The split applies to all links placed in ``arm`` later. It is remembered, but
        need not be on disk: after reopening a frontier, repeat the splits in the same order. Repeating a split has no
        effect. Linear in the links of the arm: about 10 ms a million.

        Raises
        ------
        FrontierError
            If the arm, the column or the value is invalid, or the new arm was split before.
        """

    def drop(self, slots: Sequence[int] | NDArray[np.integer]) -> int:
        """Give up drawn links, and return how many; other slots are skipped."""

    def kept(self, arms: Sequence[int]) -> Kept:
        """Return all links queued in some arms, and all that sleep, in any arm; linear in both."""

    def urls(self, numbers: Sequence[int]) -> list[str]:
        """Return the URLs of links of :meth:`kept`; they may be read from a disk."""


#: Makes an empty frontier for what a policy needs: ``scrapy_focus.memory_frontier`` is one.
MakeFrontier: TypeAlias = "Callable[[Keeps], Frontier]"
