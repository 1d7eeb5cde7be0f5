"""How reliable the reports of changed pages are: from sitemaps, feeds and pings, by host."""

from __future__ import annotations

_HOSTS = 10_000  # hosts with separate records
_STRENGTH = 4.0  # visits that the record of all hosts counts for in that of one
_FIRST = 0.5  # assumed before the first visit
_MOST = 500.0  # visits of a host that count: beyond these they are halved, so that a host may get better or worse


class Belief:
    """The value of a signal: how often pages really changed that were reported as changed.

    Each host has a record for each kind of signal: visits that found a page changed that was reported as changed, and
    visits that did not. These give a Beta posterior, whose prior is the record of all hosts together. Recent visits
    count more. The first 10,000 hosts have separate records, the others share one.

    Examples
    --------
    >>> belief = Belief()
    >>> for _ in range(20):
    ...     belief.said("a.test", "sitemap", right=True)
    ...     belief.said("b.test", "sitemap", right=False)
    >>> belief.trust("a.test", "sitemap") > 0.9, belief.trust("b.test", "sitemap") < 0.1
    (True, True)
    >>> belief.trust("c.test", "sitemap"), belief.trust("c.test", "feed")
    (0.5, 0.5)
    """

    def __init__(self) -> None:
        self._hosts: dict[str, int] = {}  # number of each host, from 1; the others are 0
        self._counts: dict[tuple[int, str], list[float]] = {}  # right, wrong; by host and kind
        self._sums: dict[str, list[float]] = {}  # of the same, over all hosts

    def said(self, host: str, kind: str, right: bool) -> None:
        """Record a visit of a page reported as changed since its last visit; ``right``: it had."""
        self._note(host, kind, 0 if right else 1)

    def trust(self, host: str, kind: str) -> float:
        """Return the probability that a page reported as changed really changed: the mean of the posterior."""
        right, wrong = self._of(host, kind)
        all_right, all_wrong = self._all(kind)
        return _mean(right, wrong, _mean(all_right, all_wrong, _FIRST))

    def _note(self, host: str, kind: str, which: int) -> None:
        if host not in self._hosts and len(self._hosts) < _HOSTS:
            self._hosts[host] = len(self._hosts) + 1
        counts = self._counts.setdefault((self._hosts.get(host, 0), kind), [0.0, 0.0])
        for each in (counts, self._sums.setdefault(kind, [0.0, 0.0])):
            each[which] += 1.0
            if sum(each) > _MOST:
                each[:] = [count / 2 for count in each]

    def _of(self, host: str, kind: str) -> list[float]:
        return self._counts.get((self._hosts.get(host, 0), kind)) or [0.0, 0.0]

    def _all(self, kind: str) -> list[float]:
        return self._sums.get(kind) or [0.0, 0.0]


def _mean(yes: float, no: float, prior: float) -> float:
    """Return the mean of a Beta posterior, whose prior has this mean and the weight of a few visits."""
    return (yes + _STRENGTH * prior) / (yes + no + _STRENGTH)
