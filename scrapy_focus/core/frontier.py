"""What every frontier promises, whatever it is stored in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Pick, Placement, State


class Drawn(NamedTuple):
    """Waiting links that were drawn, row by row; where one was drawn twice it is here twice."""

    slots: NDArray[np.int32]  # shape (k,), for take_slot() and give_up(), until the frontier changes
    arms: NDArray[np.int32]  # shape (k,), ascending
    hosts: NDArray[np.int32]  # shape (k,), numbers of Frontier.hosts
    vectors: NDArray[np.uint8]  # shape (k, width)


class Frontier(Protocol):
    """Every waiting link, in arms; who is in flight; what was seen.

    A URL (by its key) is in exactly one :class:`~scrapy_focus.core.types.State`. An arm is any integer from 0; it
    exists from the first link placed in it, and sleeps while nothing waits in it. Within an arm the link with the
    largest rank leaves first; the order of equal ranks is not promised. ``busy`` holds the hosts that can take nothing
    now: their links stay where they are.

    All methods are cheap enough for an event loop: none is linear in the number of waiting links but ``scan`` and
    ``check``, and where vectors are kept ``divide`` in the links of one arm, and ``awake``, ``pop`` and ``sample`` where
    hosts are busy.

    After :meth:`keep_vectors` a frontier is another: the memo of each waiting link is a vector of bytes in memory, arms have
    no order (all ranks are 0.0), and can be divided, and :meth:`draw` draws from many at once.
    """

    @property
    def waiting(self) -> NDArray[np.int64]:
        """How many links wait in each arm, shape (n_arms,). Not to be written to."""

    @property
    def heads(self) -> NDArray[np.float64]:
        """The best rank that waits in each arm, shape (n_arms,), ``-inf`` where nothing does. Not to be written to."""

    @property
    def flying(self) -> Mapping[int, Pick]:
        """The picks in flight, by id. Not to be written to."""

    def __len__(self) -> int:
        """How many links wait."""

    def awake(self, busy: Collection[str] = ()) -> NDArray[np.int64]:
        """How many links of each arm wait on hosts that are not busy, shape (n_arms,)."""

    def states(self, keys: Sequence[int]) -> list[State]:
        """What is known about each key."""

    def push(self, links: Sequence[Link], placements: Sequence[Placement | None], *, origin: int = -1) -> int:
        """Store each link that has a placement, and say how many wait now that did not before.

        A link that waits already is moved, one that is in flight is left alone, one that was fetched or probed
        waits again. ``None`` gives a new link up, which counts as fetched from then on, and leaves any other as it is.
        """

    def pop(self, arm: int, busy: Collection[str] = ()) -> Pick | None:
        """Take out the best link of an arm, or ``None`` where no host that is not busy has one."""

    def take(self, key: int) -> Pick | None:
        """Take out one link by its key, or ``None`` where it does not wait."""

    def sample(
        self, arm: int, k: int, rng: np.random.Generator, busy: Collection[str] = ()
    ) -> list[tuple[Link, Placement]]:
        """Up to ``k`` different waiting links of an arm, drawn uniformly; they stay where they are."""

    def scan(self, arm: int) -> Iterator[tuple[Link, Placement]]:
        """Every waiting link of an arm. The frontier may not be changed meanwhile.

        The order is none, and another one in a crawl that was resumed: sort where it matters.
        """

    def move(self, keys: Sequence[int], placements: Sequence[Placement | None]) -> None:
        """Give waiting links another place; ``None`` gives a link up. Keys that do not wait are passed over."""

    def settle(self, pick: Pick) -> None:
        """A pick in flight has its outcome: its URL is fetched now, or probed if the pick was a HEAD."""

    def release(self, pick: Pick) -> None:
        """A pick that was never sent waits again, where it was."""

    @property
    def hosts(self) -> Sequence[str]:
        """The name of each host on which a link ever waited, by its number. Not to be written to."""

    @property
    def host_waiting(self) -> NDArray[np.int32]:
        """How many links wait on each host, shape (n_hosts,), by its number. Not to be written to, and gone at a change."""

    def keep_vectors(self, width: int) -> None:
        """Keep the memo of every waiting link in memory from now on, as ``width`` whole numbers from 0 to 255.

        ``pop`` gives the oldest link of an arm then, ``heads`` are 0.0 where something waits. A link that is pushed without
        a memo has zeros; one that waits already is moved without a memo keeps its vector, and its vector and arm change with
        one. A link waits where its vector belongs after all divisions, whatever arm a placement names.

        Does nothing where vectors of that width are kept already: in a frontier that was opened again, say.

        Raises
        ------
        FrontierError
            If links wait without vectors, or with vectors of another width.
        ResumeError
            If they were stored so.
        """

    def divide(self, arm: int, column: int, above: int, new_arm: int) -> None:
        """Let links of an arm whose vector has more than ``above`` in a column wait in a new arm from now on.

        The number of the new arm is larger. It holds for all that will be placed in ``arm`` and is remembered, but not on disk: whoever opens a frontier again
        tells all divisions again in their order. To tell one twice does no harm. Linear in the links of the arm: about
        10 ms a million.
        """

    def draw(
        self,
        counts: NDArray[np.integer],
        rng: np.random.Generator,
        *,
        busy: Collection[str] = (),
        closed: NDArray[np.bool_] | None = None,
    ) -> Drawn:
        """Links drawn uniformly with replacement: ``counts[arm]`` of each arm among those whose host takes something.

        Neither hosts in ``busy`` do nor those that ``closed`` names, shape (n_hosts,), by number; hosts behind its end are
        open. Of an arm that has no such link there are none; where no arm has, ``rng`` is not used. What is drawn depends on
        nothing but ``rng``, which links wait in which arm, the order of their first pushes, and ``busy`` and ``closed``; so
        a frontier that was opened again draws the same.
        """

    def everything(self, *, busy: Collection[str] = (), closed: NDArray[np.bool_] | None = None) -> Drawn:
        """Every waiting link whose host takes something, once, oldest first in each arm; linear in all that wait."""

    def take_slot(self, slot: int) -> Pick | None:
        """Take out a link that was drawn, or ``None`` where none waits in this slot."""

    def give_up(self, slots: Sequence[int] | NDArray[np.integer]) -> int:
        """Let links that were drawn count as fetched from now on, and say how many these were; other slots are passed over."""

    def vectors(self, keys: Sequence[int]) -> NDArray[np.uint8]:
        """The vectors of waiting links, shape (n, width); zeros where a key does not wait. None is read from a disk."""

    def check(self) -> None:
        """Raise :class:`~scrapy_focus.core.errors.FrontierError` if an invariant does not hold; linear."""

    def close(self) -> None:
        """Give back what is held open. Idempotent."""
