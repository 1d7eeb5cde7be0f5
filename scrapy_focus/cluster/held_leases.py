"""The leases that a worker holds: waiting here, in flight, or lost."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from scrapy_focus.cluster.messages import Lease
    from scrapy_focus.core.types import Pick


class HeldLeases:
    """Holds each lease from the leader's answer until its pick is reported or given back.

    Parameters
    ----------
    linger
        Seconds for which a host that was asked is this worker's.
    """

    def __init__(self, linger: float) -> None:
        self.linger = linger
        self.waiting: deque[Pick] = deque()  # not handed out
        self.flying: dict[int, Pick] = {}  # by id
        self.flying_keys: set[int] = set()
        self.lost: set[int] = set()  # ids of picks in flight whose lease ended: nothing that comes of them counts
        self.unsent: set[int] = set()  # ids of leases whose request did not go out
        self._probes: set[int] = set()  # ids of picks in flight that are looked at with a HEAD
        self._whys: dict[int, dict[str, Any]] = {}  # by id of a waiting lease: what the policy said of its choice
        self._hosts: dict[str, float] = {}  # when a lease of each was here last, in seconds of time.monotonic

    @property
    def ids(self) -> list[int]:
        """The ids of all that wait or are in flight."""
        return [*(pick.id for pick in self.waiting), *self.flying]

    def take(self, lease: Lease) -> Pick:
        """A lease came; return its pick, which waits here now."""
        pick = lease.pick()
        self.waiting.append(pick)
        self.unsent.add(pick.id)
        self._hosts[pick.host] = time.monotonic()
        if lease.why is not None:
            self._whys[pick.id] = lease.why
        return pick

    def hand_out(self, busy: Collection[str]) -> tuple[Pick, dict[str, Any]] | None:
        """Return the first that waits for a host that is not busy, and what the policy said of it: it is in flight.

        A page that is in flight by a lease that ended is not asked for beside that: links of the one would be known to
        the other.
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
        """A pick is not in flight any more; return whether its request went out."""
        pick = self.flying.pop(pick_id)
        self.lost.discard(pick_id)
        self.flying_keys.discard(pick.key)
        self._probes.discard(pick_id)
        is_sent = pick_id not in self.unsent
        self.unsent.discard(pick_id)
        return is_sent

    def give_back(self) -> Iterator[int]:
        """Yield the ids of all that wait; none of them waits any more."""
        while self.waiting:
            yield self._forget(self.waiting.popleft())

    def give_back_last(self) -> int:
        """Return the id of the last that waits; it does not wait any more."""
        return self._forget(self.waiting.pop())

    def lose(self, lost: set[int]) -> None:
        """Leases ended; their requests are counted as sent."""
        self.waiting = deque(pick for pick in self.waiting if pick.id not in lost)
        self.lost |= lost & self.flying.keys()
        self.unsent -= lost - self.lost
        for pick_id in lost:
            self._whys.pop(pick_id, None)

    def use_probe(self) -> bool:
        """Use the request of a pick that is looked at with a HEAD, which goes out by itself; ``False``: there is
        none.
        """
        probe = next(iter(self._probes & self.unsent), None)
        if probe is None:
            return False
        self.unsent.discard(probe)
        return True

    def recent_hosts(self) -> list[str]:
        """Return the hosts that are this worker's still."""
        since = time.monotonic() - self.linger
        self._hosts = {host: at for host, at in self._hosts.items() if at > since}
        return [*self._hosts]

    def _forget(self, pick: Pick) -> int:
        self.unsent.discard(pick.id)
        self._whys.pop(pick.id, None)
        return pick.id
