"""How many pages of each domain were fetched, and whether more may be requested."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.frontiers.keys import KeyMap
from scrapy_focus.web.domains import domain_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Drawn, Ranked
    from scrapy_focus.core.types import Outcome, Pick


_NEAR = 100_000  # hosts
_FAILURES = 10  # that count as a page
_GIVEN_UP = 200  # links that are given up at once
_UNKNOWN = np.array([0.5, 1.0], np.float32)
_COLUMNS = ("flying", "pages", "relevant", "failed")


class Domains:
    """Counts the pages of each domain that were requested, fetched and relevant, and limits them.

    A domain is that of the host that groups links: in Scrapy, of the download slot. A redirected page counts for the
    domain of its link. It takes 36 bytes for each domain ever seen, if these are millions, and somewhat more if they
    are few.

    Parameters
    ----------
    cap
        Maximum pages of one domain, of any type, including requested ones; ``None``: no limit. Ten failures count as
        one page.
    least
        The cap is halved after each ``falls_every`` requested pages, but not below this; ``None``: it is constant.
    falls_every
        Pages.
    by_host
        Count hosts instead of registered domains: twenty sites below one suffix that is on no list, such as the
        ministries of a country, are twenty.

    Raises
    ------
    ConfigError
        If a cap is not a whole number from 1, or would fall to a larger one.
    """

    def __init__(
        self, cap: int | None = None, *, least: int | None = None, falls_every: int = 6_666, by_host: bool = False
    ) -> None:
        whole = all(type(number) is int and number >= 1 for number in (cap, least, falls_every) if number is not None)
        if not whole or (least is not None and (cap is None or least > cap)):
            raise ConfigError(
                f"per_domain={cap!r}, per_domain_least={least!r}, falls_every={falls_every!r}: a cap is a whole number "
                "of pages from 1, and falls to a smaller one, every so many pages"
            )
        self.cap = self.first_cap = cap
        self.least = least
        self.falls_every = falls_every
        self.by_host = by_host
        self.asked = 0
        self._most_asked = 0  # released pages are requested again
        self.flying = np.zeros(64, np.int32)
        self.pages = np.zeros(64, np.int32)  # pages that were fetched
        self.relevant = np.zeros(64, np.int32)
        self.failed = np.zeros(64, np.int32)
        self._shares = np.tile(_UNKNOWN, (64, 1))  # the columns that shares() returns
        self._rows = KeyMap()
        self._near: dict[str, int] = {}  # rows of recently used hosts

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_near": {}, "_rows": self._rows.arrays()}
        del state["_shares"]
        return state | {name: getattr(self, name)[: len(self._rows) or 1] for name in _COLUMNS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.by_host = False
        self.__dict__.update(state)
        self._rows = KeyMap()
        self._rows.update_many(*state["_rows"])
        back = self.pages + self.failed
        shares = np.where(back > 0, self.relevant / np.maximum(back, 1), 0.5)
        self._shares = np.stack([shares, back + self.flying == 0], axis=1).astype(np.float32)

    def row(self, host: str) -> int:
        """Return the row of the domain of a host."""
        near = self._near.get(host)
        if near is not None:
            return near
        domain = host if self.by_host else domain_of(host)
        key = int.from_bytes(blake2b(domain.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1
        new = len(self._rows)
        row = self._rows.setdefault(key, new, -1)
        if row < 0:
            row = new
            if row >= len(self.pages):
                for name in _COLUMNS:
                    column = getattr(self, name)
                    setattr(self, name, np.concatenate([column, np.zeros_like(column)]))
                self._shares = np.concatenate([self._shares, np.tile(_UNKNOWN, (len(self._shares), 1))])
        if len(self._near) >= _NEAR:
            self._near.clear()
        self._near[host] = row
        return row

    def rows(self, hosts: Collection[str]) -> NDArray[np.intp]:
        """Return the rows of the domains of some hosts, shape (n,)."""
        rows: list[int | None] = [*map(self._near.get, hosts)]
        if None in rows:
            rows = [self.row(host) if row is None else row for host, row in zip(hosts, rows, strict=True)]
        return np.array(rows, np.intp)

    def ask(self, row: int) -> bool:
        """Count a requested page of a domain; ``True`` if that lowered the cap, for all."""
        self.flying[row] += 1
        self._share(row)
        self.asked += 1
        self._most_asked = max(self._most_asked, self.asked)
        if self.first_cap is None or self.least is None:
            return False
        before = self.cap
        self.cap = max(self.first_cap >> (self._most_asked // self.falls_every), self.least)
        return self.cap != before

    def release(self, row: int) -> None:
        """Undo the request of a page of a domain."""
        self.flying[row] -= 1
        self._share(row)
        self.asked -= 1

    def settle(self, row: int, outcome: Outcome) -> None:
        """Count a requested page of a domain that was fetched, of whatever type, or failed."""
        came = outcome.status is not None and 200 <= outcome.status < 300
        self.flying[row] -= 1
        self.pages[row] += came
        self.failed[row] += not came
        self.relevant[row] += outcome.reward > 0
        self._share(row)

    def is_full(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether no more pages of some domains may be requested, shape (n,)."""
        return self._is_at_cap(rows, self.flying[rows])

    def is_done(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether no more pages of some domains may ever be requested, whatever the results of the others, shape
        (n,).
        """
        return self._is_at_cap(rows, 0)

    def shares(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the share of relevant pages of some domains, 0.5 if unknown, and whether none was requested yet.

        Shape (n, 2).
        """
        return self._shares.take(rows, axis=0)

    def pop(self, frontier: Ranked, arm: int, busy: Collection[str]) -> Pick | None:
        """Take out the best link of an arm whose domain is not full; those before it stay in the arm."""
        if self.cap is None:
            return frontier.pop(arm, busy)
        full: set[str] = set()
        while (pick := frontier.pop(arm, full | set(busy))) is not None:
            if not self.is_full(np.array([self.row(pick.host)]))[0]:
                return pick
            full.add(pick.host)
            frontier.release(pick)
        return None

    def sweep(self, frontier: Ranked, arm: int) -> None:
        """Give up the best links of an arm while their domains are finished: some, or all if nothing is in flight.

        Call it in ``learn``: a choice must not give links up.
        """
        if self.cap is None:
            return
        most = _GIVEN_UP if frontier.flying else len(frontier)
        while most and (pick := frontier.pop(arm)) is not None:
            frontier.release(pick)
            if not self.is_done(np.array([self.row(pick.host)]))[0]:
                return
            frontier.move([pick.key], [None])
            most -= 1

    def _share(self, row: int) -> None:
        """Update what :meth:`shares` returns for a domain."""
        back = int(self.pages[row]) + int(self.failed[row])
        self._shares[row] = int(self.relevant[row]) / back if back else 0.5, back + int(self.flying[row]) == 0

    def _is_at_cap(self, rows: NDArray[np.intp], flying: NDArray[np.int32] | int) -> NDArray[np.bool_]:
        if self.cap is None:
            return np.zeros(len(rows), np.bool_)
        at_cap: NDArray[np.bool_] = self.pages[rows] + self.failed[rows] // _FAILURES + flying >= self.cap
        return at_cap


class ClosedHosts:
    """The closed hosts of a frontier: those whose domains are full now.

    For policies that draw: :meth:`mask` is the ``closed`` argument of ``draw``. It is rebuilt whenever a policy gets
    a frontier, and never pickled.

    Parameters
    ----------
    domains
        The counts. Code that requests, receives or releases a page of a domain must call :meth:`update` as well.
    frontier
        Its hosts are looked up on demand, each once.

    Attributes
    ----------
    rows : NDArray[intp]
        The row of the domain of each host that was looked up (:meth:`look`), shape (at least n_hosts,).
    """

    def __init__(self, domains: Domains, frontier: Drawn) -> None:
        self.rows = np.zeros(0, np.intp)
        self._domains = domains
        self._frontier = frontier
        self._closed = np.zeros(0, np.bool_)  # by host
        self._n = 0
        self._shut = np.zeros(0, np.bool_)  # by row of a domain: the value of its hosts in _closed
        self.look()

    def look(self) -> None:
        """Look up the domains of hosts that are new in the frontier."""
        hosts: Sequence[str] = self._frontier.hosts
        first, n = self._n, len(hosts)
        if n == first:
            return
        if n > len(self.rows):
            room = max(64, n, 2 * len(self.rows)) - first
            self.rows = np.append(self.rows[:first], np.zeros(room, np.intp))
            self._closed = np.append(self._closed[:first], np.zeros(room, np.bool_))
        self.rows[first:n] = self._domains.rows(hosts[first:n])
        self._closed[first:n] = self._domains.is_full(self.rows[first:n])
        self._n = n

    def mask(self) -> NDArray[np.bool_] | None:
        """Return which hosts are closed, shape (n_hosts,), ``None`` without a cap."""
        self.look()
        return None if self._domains.cap is None else self._closed[: self._n]

    def is_done(self, hosts: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Whether no more pages of some hosts may ever be requested, by number, shape (n,)."""
        self.look()
        return self._domains.is_done(self.rows[hosts])

    def update(self, row: int, *, everywhere: bool = False) -> None:
        """Update whether a domain may be requested again, or any domain after a fall of the cap."""
        if self._domains.cap is None:
            return
        if len(self._shut) < len(self._domains.pages):
            self._shut = np.append(self._shut, np.zeros(len(self._domains.pages) - len(self._shut), np.bool_))
            everywhere = True
        if everywhere:
            self._shut[:] = self._domains.is_full(np.arange(len(self._shut)))
            self._closed[: self._n] = self._shut[self.rows[: self._n]]
        full = bool(self._domains.is_full(np.array([row]))[0])
        if full != self._shut[row]:
            self._shut[row] = full
            self._closed[: self._n][self.rows[: self._n] == row] = full
