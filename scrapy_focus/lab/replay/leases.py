"""Workers that fetch for one simulated crawl, and keep picks that were chosen ahead."""

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
    """How many picks are in flight at once, and at which worker.

    A host stays with a worker while one of its picks is in flight there; after that, the worker with the fewest picks
    takes it. A pick is chosen as soon as there is room for it, and hosts of full workers are skipped. Ready picks
    leave in the order of choice. Communication between workers and crawl takes no time.

    Raises
    ------
    ConfigError
        If a number is invalid.
    """

    workers: int = parameter("How many fetch for the crawl.", default=1, at_least=1)
    slots: int = parameter("Picks that each of them downloads at once.", default=16, at_least=1)
    ahead: int = parameter("Picks kept ready at each of them, beyond these.", default=0, at_least=0)
    per_host: int | None = parameter("Picks of one host in flight; no limit by default.", default=None, at_least=1)
    most_out: int | Callable[[int, int], int] | None = parameter(
        "Picks in flight in all, or a function of the numbers of outcomes and hosts so far, like "
        ":func:`~scrapy_focus.core.outstanding.most_out`; by default as many as the workers have room for.",
        default=None,
        at_least=1,
    )

    def bound(self, outcomes: int, hosts: int) -> int:
        """Return how many picks may be in flight after so many outcomes, with so many hosts; at least one."""
        most = self.workers * (self.slots + self.ahead)
        if self.most_out is None:
            return most
        return max(1, min(most, self.most_out(outcomes, hosts) if callable(self.most_out) else self.most_out))


class Desk:
    """Which worker has which picks."""

    def __init__(self, leases: Leases) -> None:
        self.leases = leases
        self._ready: list[deque[Pick]] = [deque() for _ in range(leases.workers)]
        self._most = leases.slots + leases.ahead  # picks that a worker has
        self._fixed = None if callable(leases.most_out) else leases.bound(0, 0)
        self._n_ready = 0
        self._out = 0
        self._held = [0] * leases.workers  # picks in flight, by worker
        self._started = [0] * leases.workers  # of these, those that were sent
        self._hosts: dict[str, int] = {}  # the worker of each host with a pick in flight
        self._on: Counter[str] = Counter()  # picks in flight, by host

    def has_room(self, seen: Callable[[], tuple[int, int]]) -> bool:
        """Whether another pick may be in flight; ``seen`` returns the numbers of outcomes and hosts, if a rule needs
        them.
        """
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
        """Give a chosen pick to the worker of its host."""
        worker = self._hosts.get(pick.host, -1)
        if worker < 0:
            worker = self._hosts[pick.host] = self._held.index(min(self._held))
        self._out += 1
        self._n_ready += 1
        self._held[worker] += 1
        self._on[pick.host] += 1
        self._ready[worker].append(pick)

    def to_start(self) -> Pick | None:
        """Return the next pick that leaves because its worker has a slot; ``None`` if there is none."""
        if not self._n_ready:
            return None
        for worker, ready in enumerate(self._ready):
            if ready and self._started[worker] < self.leases.slots:
                self._n_ready -= 1
                self._started[worker] += 1
                return ready.popleft()
        return None

    def end(self, pick: Pick) -> None:
        """Remove a pick that is not in flight any more."""
        worker = self._hosts[pick.host]
        self._out -= 1
        self._held[worker] -= 1
        self._started[worker] -= 1
        self._on[pick.host] -= 1
        if not self._on[pick.host]:
            del self._on[pick.host], self._hosts[pick.host]
