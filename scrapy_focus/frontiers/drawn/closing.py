"""Closed hosts: their hidden links are counted as links come and go, and not at each question."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.busy import NOTHING
from scrapy_focus.frontiers.hosts import Pairs
from scrapy_focus.frontiers.require import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scrapy_focus.frontiers.hosts import Hosts

_NO_HOSTS = np.zeros(0, np.bool_)


class Closing:
    """The numbers of a set of names, cached while the same set is passed."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._names = NOTHING
        self._mask = _NO_HOSTS

    def mask(self, names: frozenset[str]) -> NDArray[np.bool_] | None:
        """Return which hosts are among the names, shape (n_hosts,), ``None`` for no names. Read-only.

        The same array is returned while the names and the hosts are unchanged.
        """
        if not names:
            return None
        if len(self._mask) < len(self._hosts):
            more = [name in self._names for name in self._hosts.names[len(self._mask) :]]
            self._mask = np.concatenate([self._mask, np.array(more, np.bool_)])
        if names is not self._names and names != self._names:
            self._mask = self._mask.copy()
            self._mask[self._hosts.known(names - self._names)] = True
            self._mask[self._hosts.known(self._names - names)] = False
        self._names = names
        return self._mask


class ClosingPairs(Pairs):
    """Pairs that count how many links of each arm are queued for closed hosts.

    ``_hidden`` has that count by arm, ``_closed`` a byte for each host, which is 1 if it is closed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._mask = _NO_HOSTS
        self._closed = bytearray()
        self._hidden = array("q")

    def add(self, host: int, arm: int, n: int) -> None:
        super().add(host, arm, n)
        if host < len(self._closed) and self._closed[host]:
            self._hide(arm, n)

    def close(self, mask: NDArray[np.bool_]) -> None:
        """Close these hosts, shape (n_hosts,), and open all others; linear in the pairs of hosts that change, at most
        in all.
        """
        if mask is self._mask:
            return
        before = np.zeros(len(mask), np.bool_)
        before[: len(self._mask)] = self._mask
        self._mask, self._closed = mask, bytearray(mask.tobytes())
        hidden = np.zeros(int(np.frombuffer(self.arm, np.int32).max(initial=-1)) + 1, np.int64)
        hidden[: len(self._hidden)] = self._hidden
        self.count_on(np.flatnonzero(mask > before).tolist(), hidden, 1)
        self.count_on(np.flatnonzero(before > mask).tolist(), hidden, -1)
        self._hidden = array("q", hidden.tobytes())

    def awake_beside(self, waiting: NDArray[np.int64], shut: list[int]) -> NDArray[np.int64]:
        """Return how many queued links of each arm are on hosts neither closed nor shut, shape (n_arms,)."""
        counts = self.awake(waiting, [host for host in shut if not self._closed[host]])
        hidden = np.frombuffer(self._hidden, np.int64)
        counts[: len(hidden)] -= hidden
        return counts

    def check_hidden(self) -> None:
        """Raise FrontierError if the hidden counts are wrong; linear."""
        hidden = [0] * len(self._hidden)
        for arm, host, n in zip(self.arm, self.host, self.count, strict=True):
            if n and host < len(self._closed) and self._closed[host]:
                require(arm < len(hidden), f"arm {arm} has links on closed hosts and counts none")
                hidden[arm] += n
        require(hidden == list(self._hidden), "the counts of links on closed hosts are not those of their pairs")

    def _hide(self, arm: int, n: int) -> None:
        if arm >= len(self._hidden):
            self._hidden.extend([0] * (arm + 1 - len(self._hidden)))
        self._hidden[arm] += n
