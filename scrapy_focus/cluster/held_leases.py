"""The leases of a worker: queued here, in flight, or lost."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from scrapy_focus.cluster.messages import Lease
    from scrapy_focus.core.types import Pick


class HeldLeases:
    """Holds each lease from the leader's answer until its pick is reported or returned.

    Parameters
    ----------
    linger
        Seconds for which a host belongs to this worker after its last request.
    """

    def __init__(self, linger: float) -> None:
        self.linger = linger
        self.waiting: deque[Pick] = deque()  # not handed out
        self.flying: dict[int, Pick] = {}  # by id
        self.flying_keys: set[int] = set()
        self.lost: set[int] = set()  # ids of picks in flight whose lease ended: their outcomes do not count
        self.unsent: set[int] = set()  # ids of leases whose request was not sent
        self._probes: set[int] = set()  # ids of picks in flight that are probed with a HEAD
        self._whys: dict[int, dict[str, Any]] = {}  # by id of a queued lease: the policy's reason for its choice
        self._hosts: dict[str, float] = {}  # time of the last lease of each host, in seconds of time.monotonic

    @property
    def ids(self) -> list[int]:
        """The ids of all leases that are queued or in flight."""
        return [*(pick.id for pick in self.waiting), *self.flying]

    def take(self, lease: Lease) -> Pick:
        """Queue a new lease; return its pick."""
        pick = lease.pick()
        self.waiting.append(pick)
        self.unsent.add(pick.id)
        self._hosts[pick.host] = time.monotonic()
        if lease.why is not None:
            self._whys[pick.id] = lease.why
        return pick

    def hand_out(self, busy: Collection[str]) -> tuple[Pick, dict[str, Any]] | None:
        """Return the first pick whose host is free, now in flight, and the policy's reason for it.

        A page that is in flight by a lease that ended is not fetched in parallel: links of one would be known to the
        other.
        """
        for at, pick in enumerate(self.waiting):
            if pick.host not in busy and pick.key not in self.flying_keys:
                del self.waiting[at]
                self.flying[pick.id] = pick
                self.flying_keys.add(pick.key)
                if pick.method == "HEAD":
                    self._probes.add(pick.id)
                self._hosts[pick.host] = time.monotonic()
                return pick, self._whys.pop(pick.id, {})
        return None

    def land(self, pick_id: int) -> bool:
        """Remove a pick from those in flight; return whether its request was sent."""
        pick = self.flying.pop(pick_id)
        self.lost.discard(pick_id)
        self.flying_keys.discard(pick.key)
        self._probes.discard(pick_id)
        is_sent = pick_id not in self.unsent
        self.unsent.discard(pick_id)
        return is_sent

    def give_back(self) -> Iterator[int]:
        """Yield the ids of all queued leases, and remove them."""
        while self.waiting:
            yield self._forget(self.waiting.popleft())

    def give_back_last(self) -> int:
        """Remove the last queued lease, and return its id."""
        return self._forget(self.waiting.pop())

    def lose(self, lost: set[int]) -> None:
        """Note leases that ended; their requests count as sent."""
        self.waiting = deque(pick for pick in self.waiting if pick.id not in lost)
        self.lost |= lost & self.flying.keys()
        self.unsent -= lost - self.lost
        for pick_id in lost:
            self._whys.pop(pick_id, None)

    def use_probe(self) -> bool:
        """Use the request of a pick that is probed with a HEAD, which is sent separately; ``False``: there is none."""
        probe = next(iter(self._probes & self.unsent), None)
        if probe is None:
            return False
        self.unsent.discard(probe)
        return True

    def recent_hosts(self) -> list[str]:
        """Return the hosts that still belong to this worker."""
        since = time.monotonic() - self.linger
        self._hosts = {host: at for host, at in self._hosts.items() if at > since}
        return [*self._hosts]

    def _forget(self, pick: Pick) -> int:
        self.unsent.discard(pick.id)
        self._whys.pop(pick.id, None)
        return pick.id
