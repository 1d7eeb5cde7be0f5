"""Which worker has which host: a host stays in one downloader until it was left alone for longer than any delay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class _Tenure:
    owner: str  # "": who had it went, and it rests
    last: str  # who had it last
    until: float  # seconds; until then it stays as it is where nobody has a lease of it
    out: int = 0  # leases


class Hosts:
    """Who has each host that was asked lately; times are seconds of the leader's clock.

    Parameters
    ----------
    linger
        Seconds for which a host stays with its last owner.
    rest
        Seconds for which a host rests when its owner goes, or hands it on; ``linger`` by default.
    per_host
        Leases of one host at a time.
    """

    def __init__(self, *, linger: float, per_host: int, rest: float | None = None) -> None:
        self.linger = linger
        self.rest = linger if rest is None else rest
        self.per_host = per_host
        self.full: set[str] = set()  # have as many leases as they may
        self.version = 0  # another one whenever a host gets another owner, or rests
        self.resting: set[str] = set()  # those whose owners went
        self._tenures: dict[str, _Tenure] = {}
        self._of: dict[str, set[str]] = {}  # by owner

    def __len__(self) -> int:
        return len(self._tenures)

    def of(self, owner: str) -> set[str]:
        """Return the hosts that a worker has. Not to be changed."""
        return self._of.get(owner, set())

    def owner(self, host: str) -> str:
        """Return who has a host, ``""`` if anybody may have it."""
        tenure = self._tenures.get(host)
        return "" if tenure is None else tenure.owner

    def take(self, host: str, owner: str, now: float) -> None:
        """A worker gets a lease of a host, and has that host from now on."""
        tenure = self._give(host, owner, now)
        tenure.out += 1
        if tenure.out >= self.per_host:
            self.full.add(host)

    def keep(self, host: str, owner: str, now: float) -> None:
        """A worker says that it asked a host lately: it has it, unless another one did later."""
        tenure = self._tenures.get(host)
        if tenure is None or tenure.last == owner:
            self._give(host, owner, now)

    def leave(self, host: str, now: float) -> None:
        """A lease of a host is over."""
        tenure = self._tenures[host]
        tenure.out -= 1
        tenure.until = now + (self.linger if tenure.owner else self.rest)
        if tenure.out < self.per_host:
            self.full.discard(host)

    def gone(self, owner: str, now: float) -> None:
        """A worker went: nobody asks its hosts until any delay is over."""
        self._rest(self._of.pop(owner, set()), now)

    def hand_on(self, owner: str, among: int, now: float) -> int:
        """A worker that has more to do than it can gives up its share of those hosts of which it has leases.

        They rest when these are over, and anybody may have them then; ``among``: how many workers share. Returns how
        many these are.
        """
        mine = self.of(owner)
        asked = sorted((self._tenures[host].out, host) for host in mine if self._tenures[host].out)
        given = [host for _, host in asked[: len(asked) // among]]
        mine.difference_update(given)
        self._rest(given, now)
        return len(given)

    def forget(self, now: float) -> None:
        """Let anybody have the hosts that were left alone for long enough; linear in the hosts."""
        idle = [host for host, tenure in self._tenures.items() if not tenure.out and tenure.until < now]
        for host in idle:
            owner = self._tenures.pop(host).owner
            self.resting.discard(host)
            self.version += 1
            if owner in self._of:
                self._of[owner].discard(host)

    def _rest(self, hosts: Iterable[str], now: float) -> None:
        """Nobody has these from now on, until they were left alone for long enough."""
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
