"""Assigns hosts to workers: a host stays in one downloader until it has rested longer than any delay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class _Tenure:
    owner: str  # "": the owner left, and the host rests
    last: str  # the last owner
    until: float  # seconds; until then it keeps its owner, even without leases
    out: int = 0  # leases


class Hosts:
    """The owner of each recently requested host; times are seconds of the leader's clock.

    Parameters
    ----------
    linger
        Seconds for which a host stays with its last owner.
    rest
        Seconds for which a host rests when its owner leaves, or hands it on; ``linger`` by default.
    per_host
        Leases of one host at a time.
    """

    def __init__(self, *, linger: float, per_host: int, rest: float | None = None) -> None:
        self.linger = linger
        self.rest = linger if rest is None else rest
        self.per_host = per_host
        self.full: set[str] = set()  # have as many leases as allowed
        self.version = 0  # changes whenever a host gets another owner, or rests
        self.resting: set[str] = set()  # those whose owners left
        self._tenures: dict[str, _Tenure] = {}
        self._of: dict[str, set[str]] = {}  # by owner

    def __len__(self) -> int:
        return len(self._tenures)

    def of(self, owner: str) -> set[str]:
        """Return the hosts of a worker. Do not modify the set."""
        return self._of.get(owner, set())

    def owner(self, host: str) -> str:
        """Return the owner of a host, ``""`` if it has none."""
        tenure = self._tenures.get(host)
        return "" if tenure is None else tenure.owner

    def take(self, host: str, owner: str, now: float) -> None:
        """Give a host to a worker that gets a lease of it."""
        tenure = self._give(host, owner, now)
        tenure.out += 1
        if tenure.out >= self.per_host:
            self.full.add(host)

    def keep(self, host: str, owner: str, now: float) -> None:
        """Give a host to a worker that says it requested it lately, unless another one did later."""
        tenure = self._tenures.get(host)
        if tenure is None or tenure.last == owner:
            self._give(host, owner, now)

    def leave(self, host: str, now: float) -> None:
        """Count a lease of a host as over."""
        tenure = self._tenures[host]
        tenure.out -= 1
        tenure.until = now + (self.linger if tenure.owner else self.rest)
        if tenure.out < self.per_host:
            self.full.discard(host)

    def gone(self, owner: str, now: float) -> None:
        """Let the hosts of a worker that left rest until any delay is over."""
        self._rest(self._of.pop(owner, set()), now)

    def hand_on(self, owner: str, among: int, now: float) -> int:
        """Take from a worker with too much to do its share of the hosts that it has leases of.

        They rest when these leases are over, and are free afterwards; ``among``: the number of workers. Returns the
        number of hosts.
        """
        mine = self.of(owner)
        busy = sorted((self._tenures[host].out, host) for host in mine if self._tenures[host].out)
        handed = [host for _, host in busy[: len(busy) // among]]
        mine.difference_update(handed)
        self._rest(handed, now)
        return len(handed)

    def forget(self, now: float) -> None:
        """Free the hosts that have rested long enough; linear in the hosts."""
        idle = [host for host, tenure in self._tenures.items() if not tenure.out and tenure.until < now]
        for host in idle:
            owner = self._tenures.pop(host).owner
            self.resting.discard(host)
            self.version += 1
            if owner in self._of:
                self._of[owner].discard(host)

    def _rest(self, hosts: Iterable[str], now: float) -> None:
        """Let hosts rest: they have no owner until they have rested long enough."""
        for host in hosts:
            tenure = self._tenures[host]
            tenure.owner, tenure.until = "", now + self.rest
            self.resting.add(host)
            self.version += 1

    def _give(self, host: str, owner: str, now: float) -> _Tenure:
        tenure = self._tenures.get(host)
        if tenure is None or tenure.owner != owner:
            self.version += 1
        if tenure is None:
            tenure = self._tenures[host] = _Tenure(owner, owner, 0.0)
        elif tenure.owner in self._of:
            self._of[tenure.owner].discard(host)
        self._of.setdefault(owner, set()).add(host)
        self.resting.discard(host)
        tenure.owner, tenure.last, tenure.until = owner, owner, now + self.linger
        return tenure
