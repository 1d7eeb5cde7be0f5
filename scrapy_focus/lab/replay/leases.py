"""Workers that fetch for one simulated crawl, and hold picks that were chosen ahead."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy_focus.core.parameters import configurable, parameter

if TYPE_CHECKING:
    from collections.abc import Set

    from scrapy_focus.core.types import Pick

_NONE: frozenset[str] = frozenset()


@configurable
class Leases:
    """How many picks are out at once, and with whom.

    A host stays with a worker as long as one of its picks is out there; after that, whoever has fewest picks takes it.
    A pick is chosen as soon as there is room for it, and hosts of workers without room are passed over. What lies ready
    leaves in the order in which it was chosen. The way between workers and crawl takes no time.

    Raises
    ------
    ConfigError
        If a number makes no sense.
    """

    workers: int = parameter("How many fetch for the crawl.", default=1, at_least=1)
    slots: int = parameter("Picks that each of them downloads at once.", default=16, at_least=1)
    ahead: int = parameter("Picks that lie ready at each of them, beyond these.", default=0, at_least=0)
    per_host: int | None = parameter("Picks of one host that are out; any number by default.", default=None, at_least=1)
    most_out: int | Callable[[int, int], int] | None = parameter(
        "Picks that are out in all, or what says so of the outcomes and the hosts so far, like "
        ":func:`~scrapy_focus.core.outstanding.most_out`; by default all for which workers have room.",
        default=None,
        at_least=1,
    )

    def bound(self, outcomes: int, hosts: int) -> int:
        """Return how many picks may be out after so many outcomes, with so many hosts; at least one."""
        most = self.workers * (self.slots + self.ahead)
        if self.most_out is None:
            return most
        return max(1, min(most, self.most_out(outcomes, hosts) if callable(self.most_out) else self.most_out))


class Desk:
    """Who has which picks."""

    def __init__(self, leases: Leases) -> None:
        self.leases = leases
        self._ready: list[deque[Pick]] = [deque() for _ in range(leases.workers)]
        self._most = leases.slots + leases.ahead  # picks that a worker has
        self._fixed = None if callable(leases.most_out) else leases.bound(0, 0)
        self._n_ready = 0
        self._out = 0
        self._held = [0] * leases.workers  # picks that are out, by worker
        self._started = [0] * leases.workers  # of these, those that left
        self._hosts: dict[str, int] = {}  # the worker of each host of which a pick is out
        self._on: Counter[str] = Counter()  # picks that are out, by host

    def has_room(self, seen: Callable[[], tuple[int, int]]) -> bool:
        """Whether another pick may be out; ``seen`` says how many outcomes and hosts there were, where a rule asks."""
        return self._out < (self.leases.bound(*seen()) if self._fixed is None else self._fixed)

    def closed(self) -> Set[str]:
        """Return the hosts that take no more."""
        per_host, held = self.leases.per_host, self._held
        if per_host is None and self._out < self._most:
            return _NONE
        return {
            host
            for host, worker in self._hosts.items()
            if held[worker] >= self._most or (per_host is not None and self._on[host] >= per_host)
        }

    def lay_ready(self, pick: Pick) -> None:
        """Give a pick that was chosen to the worker of its host."""
        worker = self._hosts.get(pick.host, -1)
        if worker < 0:
            worker = self._hosts[pick.host] = self._held.index(min(self._held))
        self._out += 1
        self._n_ready += 1
        self._held[worker] += 1
        self._on[pick.host] += 1
        self._ready[worker].append(pick)

    def to_start(self) -> Pick | None:
        """Return the next pick that leaves, as its worker has a slot for it; ``None`` where none does."""
        if not self._n_ready:
            return None
        for worker, ready in enumerate(self._ready):
            if ready and self._started[worker] < self.leases.slots:
                self._n_ready -= 1
                self._started[worker] += 1
                return ready.popleft()
        return None

    def end(self, pick: Pick) -> None:
        """A pick that left is out no more."""
        worker = self._hosts[pick.host]
        self._out -= 1
        self._held[worker] -= 1
        self._started[worker] -= 1
        self._on[pick.host] -= 1
        if not self._on[pick.host]:
            del self._on[pick.host], self._hosts[pick.host]
