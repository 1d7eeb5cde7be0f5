"""Where links wait: what every frontier promises, whatever it is stored in.

A :class:`Frontier` is a ledger: it knows each URL by its key, and who is in flight. In which order links leave is
another matter, given when it is made: :class:`Ranked` frontiers give out the best rank of an arm, :class:`Drawn` ones
have a vector of each waiting link, from which a policy draws some to choose among. A policy says which of the two it
needs (:meth:`Policy.keeps <scrapy_focus.core.policy.Policy.keeps>`), and the crawl has the store made so.
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
    """What most policies keep: links wait in arms, in the order of their ranks. The frontier is :class:`Ranked`."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """Links wait in arms without an order, each with a vector of ``width`` bytes. The frontier is :class:`Drawn`."""

    width: int


Keeps = Ranks | Vectors


class Frontier(Protocol):
    """Every waiting link, in arms; who is in flight; what was seen.

    A URL (by its key) is in exactly one :class:`~scrapy_focus.core.types.State`. An arm is any integer from 0; it
    exists from the first link placed in it, and sleeps while nothing waits in it. A frontier in which links may sleep,
    too, is also :class:`Sleeping`.

    All methods are cheap enough for an event loop: none is linear in the number of waiting links but ``check``, and
    those of an order that say so.
    """

    @property
    def waiting(self) -> NDArray[np.int64]:
        """How many links wait in each arm, shape (n_arms,). Not to be written to."""

    @property
    def flying(self) -> Mapping[int, Pick]:
        """The picks in flight, by id. Not to be written to."""

    def __len__(self) -> int:
        """How many links wait."""

    def states(self, keys: Sequence[int]) -> list[State]:
        """What is known about each key."""

    def push(self, links: Sequence[Link], placements: Sequence[Placement | None], *, origin: int = -1) -> int:
        """Store each link that has a placement, and return how many wait or sleep now that did neither before.

        A link that waits already is moved, one that is in flight is left alone, one in any other state waits again.
        ``None`` gives a new link up, and leaves any other as it is.
        """

    def take(self, key: int, *, pick_id: int | None = None) -> Pick | None:
        """Take out one link by its key, or ``None`` where it does not wait.

        ``pick_id`` is the id that its pick gets, one that no pick in flight has; by default the next one.
        """

    def settle(self, pick: Pick, also: Collection[int] = ()) -> None:
        """A pick in flight has its outcome: its URL is fetched now, or probed if the pick was a HEAD.

        Keys in ``also`` are fetched, too, where they are new or were given up: those that it was redirected to.
        """

    def release(self, pick: Pick) -> None:
        """A pick that was never sent waits again, where it was."""

    def check(self) -> None:
        """Raise :class:`~scrapy_focus.core.errors.FrontierError` if an invariant does not hold; linear."""

    def close(self) -> None:
        """Release what is held open. Idempotent."""


@runtime_checkable
class NamesHosts(Protocol):
    """What a frontier can besides that knows the hosts of its links, as those of this package do."""

    @property
    def hosts(self) -> Sequence[str]:
        """The name of each host on which a link ever waited. Not to be written to."""


class Sleeping(Protocol):
    """What a frontier can besides that knows :attr:`Placement.after <scrapy_focus.core.types.Placement.after>`.

    A link that is placed for a time later than the last one until which :meth:`wake` woke all sleeps. Its state is
    ``WAITING``; ``push``, ``move`` and ``vectors`` treat it as one that waits, and may wake it or let another one
    sleep. All else passes it over until it is woken: it is in no count of its arm nor in ``len()``, and is neither
    popped, taken, drawn, scanned nor dropped. When it is woken it waits in the arm and with the rank that it has, in
    the order in which it was first pushed. A pick that is released waits.
    """

    @property
    def asleep(self) -> int:
        """How many links sleep."""

    @property
    def next_due(self) -> float | None:
        """When the first of these is due, in seconds since the epoch; ``None`` where none sleeps."""

    def wake(self, now: float, most: int | None = None) -> int:
        """Let all links wait that are due, or so many of them, and return how many these were; O(log n) for each.

        With ``most``, those that have been due for longest come first, and the older first where that is equal.
        """


class Ranked(Frontier, Protocol):
    """Arms in the order of ranks: within an arm the link with the largest rank leaves first.

    Equal ranks leave in the order in which their links were first pushed, always: after a release, a move and a resume
    too. ``busy`` holds the hosts that can take nothing now: their links stay where they are. ``Placement.memo`` is a
    vector of float32 of any length, or ``None``.
    """

    @property
    def heads(self) -> NDArray[np.float64]:
        """The best rank that waits in each arm, shape (n_arms,), ``-inf`` where nothing does. Not to be written to."""

    def awake(self, busy: Collection[str] = ()) -> NDArray[np.int64]:
        """How many links of each arm wait on hosts that are not busy, shape (n_arms,)."""

    def pop(self, arm: int, busy: Collection[str] = ()) -> Pick | None:
        """Take out the best link of an arm, or ``None`` where no host that is not busy has one."""

    def scan(self, arm: int) -> Iterator[tuple[Link, Placement]]:
        """Every waiting link of an arm; linear. The frontier may not be changed meanwhile.

        The order is none, and another one in a crawl that was resumed: sort where it matters.
        """

    def move(self, keys: Sequence[int], placements: Sequence[Placement | None]) -> None:
        """Give waiting links another place; ``None`` gives a link up. Keys that do not wait are passed over."""

    def drop(self, arm: int, n: int) -> int:
        """Give up the ``n`` worst links of an arm, of equal ranks the youngest; return how many these were. Linear."""

    def drop_each(self, counts: Mapping[int, int]) -> int:
        """Give up the ``counts[arm]`` worst links of some arms; return how many these were in all. Linear."""


class Draw(NamedTuple):
    """Waiting links that were drawn, row by row; where one was drawn twice it is here twice."""

    slots: NDArray[np.int32]  # shape (k,), for take_drawn() and drop(), until the frontier changes
    arms: NDArray[np.int32]  # shape (k,), ascending
    hosts: NDArray[np.int32]  # shape (k,), numbers of Drawn.hosts
    vectors: NDArray[np.uint8]  # shape (k, width)


class Kept(NamedTuple):
    """Links that wait in some arms, or sleep, row by row."""

    numbers: NDArray[np.int32]  # shape (n,), for urls(), until the frontier changes
    due: NDArray[np.float64]  # shape (n,), when each of them is, in seconds since the epoch; 0 where it waits
    vectors: NDArray[np.uint8]  # shape (n, width)


class Drawn(Frontier, Protocol):
    """Arms without an order: a vector of bytes in memory for each waiting link, arms that divide, and fair draws.

    ``Placement.memo`` is a vector of ``width`` whole numbers from 0 to 255 (uint8), and so is ``Pick.memo``; a link
    that is pushed without one has zeros. One that waits already and is moved without a memo keeps its vector; its
    vector and arm change with one. A link waits where its vector belongs after all divisions, whatever arm a placement
    names.
    """

    @property
    def hosts(self) -> Sequence[str]:
        """The name of each host on which a link ever waited, by its number. Not to be written to."""

    def awake(self, busy: Collection[str] = ()) -> NDArray[np.int64]:
        """How many links of each arm wait on hosts that are not busy, shape (n_arms,)."""

    def draw(
        self,
        counts: Mapping[int, int] | NDArray[np.integer] | None,
        rng: np.random.Generator | None,
        *,
        busy: Collection[str] = (),
        closed: NDArray[np.bool_] | None = None,
    ) -> Draw:
        """Links drawn uniformly with replacement: ``counts[arm]`` of each arm among those whose host takes something.
        Without an ``rng`` those are given that were pushed first, each once.

        ``counts`` is an array by arm, or a mapping where only some arms matter; ``None`` gives every waiting link once,
        oldest first in each arm, without use of ``rng``, and is linear.

        Neither hosts in ``busy`` take anything nor those that ``closed`` names, shape (n_hosts,), by number; hosts
        behind its end are open. Of an arm that has no such link there are none; where no arm has, ``rng`` is not used.
        What is drawn depends on nothing but ``rng``, which links wait in which arm, the order of their first pushes,
        and ``busy`` and ``closed``; so a frontier that was opened again draws the same.
        """

    def take_drawn(self, slot: int) -> Pick | None:
        """Take out a link that was drawn, or ``None`` where none waits in this slot."""

    def vectors(self, keys: Sequence[int]) -> NDArray[np.uint8]:
        """The vectors of waiting links, shape (n, width); zeros where a key does not wait. None is read from a disk."""

    def hosts_of(self, keys: Sequence[int]) -> NDArray[np.int32]:
        """The hosts of waiting links, numbers of :attr:`hosts`, shape (n,); -1 where a key does not wait."""

    def divide(self, arm: int, column: int, above: int, new_arm: int) -> None:
        """Let links of an arm whose vector has more than ``above`` in a column wait in a new arm from now on.

        The number of the new arm is larger. It holds for all that will be placed in ``arm`` and is remembered, but a
        disk need not have it: whoever opens a frontier again divides it again, in the same order. To divide twice does
        no harm.
        Linear in the links of the arm: about 10 ms a million.

        Raises
        ------
        FrontierError
            If an arm, the column or the value cannot be, or the new arm was divided before.
        """

    def drop(self, slots: Sequence[int] | NDArray[np.integer]) -> int:
        """Give up links that were drawn, and return how many these were; other slots are passed over."""

    def kept(self, arms: Sequence[int]) -> Kept:
        """All links that wait in some arms, and all that sleep, in whatever arm; linear in both."""

    def urls(self, numbers: Sequence[int]) -> list[str]:
        """The URLs of links of :meth:`kept`; they may be read from a disk."""


#: Makes an empty frontier for what a policy keeps: ``scrapy_focus.memory_frontier`` is one.
MakeFrontier: TypeAlias = "Callable[[Keeps], Frontier]"
