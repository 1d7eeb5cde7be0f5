"""What every frontier promises, whatever it is stored in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Pick, Placement, State


class Frontier(Protocol):
    """Every waiting link, in arms; who is in flight; what was seen.

    A URL (by its key) is in exactly one :class:`~scrapy_focus.core.types.State`. An arm is any integer from 0; it
    exists from the first link placed in it, and sleeps while nothing waits in it. Within an arm the link with the
    largest rank leaves first; the order of equal ranks is not promised. ``busy`` holds the hosts that can take nothing
    now: their links stay where they are.

    All methods are cheap enough for an event loop: none is linear in the number of waiting links but ``scan`` and
    ``check``.
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

    def check(self) -> None:
        """Raise :class:`~scrapy_focus.core.errors.FrontierError` if an invariant does not hold; linear."""

    def close(self) -> None:
        """Give back what is held open. Idempotent."""
