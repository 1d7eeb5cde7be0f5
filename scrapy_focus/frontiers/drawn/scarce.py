"""The cache for an arm whose queued links are nearly all on hosts that can take nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.frontiers.drawn.chunks import Members
from scrapy_focus.frontiers.require import require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_HOSTS = 64  # with more, they are not cached


class Scarce:
    """The links of an arm whose hosts were open at the last look, and all added since.

    ``kept`` are these, or ``None`` if they were more than half of the arm; ``hosts`` are at least all hosts of these
    links, or ``None`` if there are many. It is valid until a host is opened again.
    """

    def __init__(
        self,
        slots: NDArray[np.int32],
        hosts: NDArray[np.int32],
        ages: NDArray[np.int32],
        closed: NDArray[np.bool_] | None,
    ) -> None:
        left = slots if closed is None else slots[~closed[hosts[slots]]]
        self.kept: Members | None = None
        if 2 * len(left) <= len(slots):
            self.kept = Members()
            self.kept.merge(left, ages)
        found = np.unique(hosts[left])
        self.hosts: set[int] | None = set(found.tolist()) if len(found) <= _HOSTS else None

    def is_shut(self, shut: NDArray[np.bool_]) -> bool:
        """Whether nothing is left if these hosts take nothing; ``False`` if unknown."""
        return self.hosts is not None and all(shut[host] for host in self.hosts)

    def insert(self, slot: int, age: int, ages: Sequence[int], host: int) -> None:
        """Add a link."""
        if self.kept is not None:
            self.kept.insert(slot, age, ages)
        if self.hosts is not None:
            self.hosts.add(host)
            if len(self.hosts) > _HOSTS:
                self.hosts = None

    def discard(self, slot: int, age: int, ages: Sequence[int]) -> None:
        """Remove a link."""
        if self.kept is not None:
            self.kept.discard(slot, age, ages)

    def check(self, slots: list[int], unclosed: list[int], hosts: Sequence[int], ages: Sequence[int]) -> None:
        """Raise FrontierError if an invariant is broken; the arguments are all slots of the arm, and those on open
        hosts.
        """
        if self.kept is not None:
            self.kept.check(ages, "what is left of an arm")
            kept = {*self.kept.slots().tolist()}
            require({*unclosed} <= kept <= {*slots}, "what is left of an arm is not what is open")
        if self.hosts is not None:
            require({hosts[slot] for slot in unclosed} <= self.hosts, "a host of an arm is not noted")
