"""The value of pulls planned ahead: a page reveals links, whose pulls reveal further ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST, MOST = 1e-6, 1e6  # of an index
MANY = 2048  # entries above which only those with a value are summed

_STEP = 1.25 ** (1 / 8)  # between two indices that are tried


class Dear:
    """Finds the entries of a growing list that belong to arms whose links have a value, or had one lately.

    While these arms do not change, only new entries of the list are read.
    """

    def __init__(self) -> None:
        self._arms = np.zeros(0, np.bool_)  # arms that count
        self._lately = np.zeros(0, np.bool_)  # arms that counted since the last forget()
        self._n = 0  # entries read so far
        self.places = np.zeros(0, np.intp)  # their places in the list, ascending
        self.rows = np.zeros(0, np.intp)
        self.columns = np.zeros(0, np.intp)

    def find(self, worth: NDArray[np.bool_], rows: NDArray[np.intp], columns: NDArray[np.intp]) -> bool:
        """Include all entries of arms whose links have a value, shape (n_arms,); return whether the entries changed."""
        more = len(worth) - len(self._arms)
        if more:
            self._arms, self._lately = (np.append(old, np.zeros(more, np.bool_)) for old in (self._arms, self._lately))
        self._lately |= worth
        if (worth > self._arms).any():
            self._arms |= worth
            self._n = 0
        elif self._n == len(columns):
            return False
        kept = [self.places] if self._n else []
        kept.append(np.flatnonzero(self._arms.take(columns[self._n :])) + self._n)
        self.places, self._n = np.concatenate(kept), len(columns)
        self.rows, self.columns = rows.take(self.places), columns.take(self.places)
        return True

    def forget(self) -> None:
        """Drop arms whose links had no value since the last call, if they are most of all."""
        if 2 * np.count_nonzero(self._lately) < np.count_nonzero(self._arms):
            self._arms, self._n = self._lately, 0
        self._lately = np.zeros(len(self._arms), np.bool_)


class Search(NamedTuple):
    """The search for an index, in steps of 2.8 % upwards from the one found before."""

    near: float  # where it began
    pays: int | None = None  # the largest number of steps known to be worth a pull
    fails: int | None = None  # the smallest number known not to be

    @property
    def next(self) -> int | None:
        """The number of steps to try next; ``None`` if the best index is within one."""
        if self.pays is None:
            return 0 if self.fails is None else min(2 * self.fails, -1)
        if self.fails is None:
            return max(2 * self.pays, 1)
        return None if self.fails - self.pays == 1 else (self.pays + self.fails) // 2

    def at(self, steps: int | None) -> float:
        """Return the index that many steps away."""
        return self.near * _STEP ** (steps or 0)

    def found(self, steps: int, pays: bool) -> Search:
        """Return the search, updated by the result for an index that many steps away."""
        return self._replace(pays=steps) if pays else self._replace(fails=steps)


class Renderings(NamedTuple):
    """Statistics of all arms of renderings together."""

    arms: NDArray[np.bool_]  # which arms these are, shape (n_arms,)
    revealed: NDArray[np.float64]  # links of each arm that they revealed, shape (n_arms,)
    pulls: float  # of them all


class Ahead:
    """Some pulls ahead, by the current statistics of all arms.

    Parameters
    ----------
    rows, columns, counts
        What pulls revealed: those of arm ``rows[i]`` revealed ``counts[i]`` links of arm ``columns[i]`` in all.
    dear
        Which of these entries have a value; it is kept up to date.
    general, general_pulls
        How many links of each arm all pages together revealed, shape (n_arms,), and how many pages these were.
    pages, pulls
        Which arms hold pages, and the number of pulls in each record, shapes (n_arms,).
    renderings
        If some arms hold renderings: what these revealed together. The first one is expected to reveal what pages do.
    shrink, discount, horizon
        Parameters of :class:`~scrapy_focus.policies.branching.arms.BranchingArms`.
    """

    def __init__(
        self,
        rows: NDArray[np.intp],
        columns: NDArray[np.intp],
        counts: NDArray[np.float64],
        dear: Dear,
        general: NDArray[np.float64],
        general_pulls: float,
        pages: NDArray[np.bool_],
        pulls: NDArray[np.float64],
        renderings: Renderings | None = None,
        *,
        shrink: float,
        discount: float,
        horizon: int,
    ) -> None:
        self._rows, self._columns, self._counts = rows, columns, counts
        self._dear = dear
        self._dear_counts: NDArray[np.float64] | None = None
        self._general, self._general_pulls = general, general_pulls
        self._pages = pages
        self._pulls = pulls + shrink
        self._renderings = renderings
        self._shrink, self._discount, self._horizon = shrink, discount, horizon
        self._begun: dict[float, _Begun] = {}  # by index that was tried

    def sum(self, price: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value, at a price, of the links revealed by the pulls of each arm; both of shape (n_arms,)."""
        rows, columns, counts = self._rows, self._columns, self._counts
        if len(rows) >= MANY:  # links without a value add nothing
            dear = self._dear
            if dear.find(price > 0, rows, columns) or self._dear_counts is None:
                self._dear_counts = counts.take(dear.places)
            rows, columns, counts = dear.rows, dear.columns, self._dear_counts
        return np.asarray(np.bincount(rows, counts * price.take(columns), len(price)), np.float64)

    def later(self, revealed: NDArray[np.float64], price: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how much a pull of each arm reveals that is worth pulling; ``revealed`` is for all its pulls
        together.
        """
        general = float(self._general @ price) / self._general_pulls
        prior = self._shrink * general * self._pages
        if self._renderings is not None:
            arms, all_revealed, pulls = self._renderings
            prior = prior + self._shrink * (float(all_revealed @ price) + general) / (pulls + 1) * arms
        later: NDArray[np.float64] = self._discount * (revealed + prior) / self._pulls
        return later

    def look(
        self, own: NDArray[np.float64], costs: NDArray[np.float64], among: NDArray[np.bool_], search: Search
    ) -> Search:
        """Try the next index in the search for the best one of some arms, and return the updated search.

        ``own`` and ``costs`` are the reward and cost of a pull of each arm; both, and ``among``, have shape
        (n_arms,).
        """
        steps = search.next
        if steps is None:
            return search
        index = search.at(steps)
        if index >= MOST:
            return search.found(steps, False)
        return search.found(steps, index <= LEAST or self._pays(own - index * costs, np.flatnonzero(among), index))

    def prices(
        self, own: NDArray[np.float64], costs: NDArray[np.float64], index: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the value above its price of a link of each arm, and that of all links that its pulls revealed.

        ``own`` and ``costs`` are the reward and cost of a pull, and ``index`` is the price of a cost of 1; all but
        that have shape (n_arms,).
        """
        net = own - index * costs
        begun = self._begun.get(index)
        if begun is None:
            price = np.maximum(net, 0)
            begun = _Begun(1, price, self.sum(price))
        done, price, revealed = begun
        for _ in range(self._horizon - done):
            if not price.any():
                break
            price = np.maximum(net + self.later(revealed, price), 0)
            revealed = self.sum(price)
        return price, revealed

    def _pays(self, net: NDArray[np.float64], arms: NDArray[np.intp], index: float) -> bool:
        """Whether a pull of any of some arms is worth its price, with what it reveals.

        A pull that is worth it with few pulls ahead is so with more, which add nothing below zero.
        """
        value = net
        for done in range(self._horizon):
            if value.take(arms).max() >= 0:
                return True
            price = np.maximum(value, 0)
            if not price.any():
                return False
            revealed = self.sum(price)
            self._begun[index] = _Begun(done + 1, price, revealed)
            value = net + self.later(revealed, price)
        return bool(value.take(arms).max() >= 0)


class _Begun(NamedTuple):
    """Prices at some index, with fewer pulls ahead than planned."""

    done: int  # pulls ahead
    price: NDArray[np.float64]  # shape (n_arms,)
    revealed: NDArray[np.float64]  # shape (n_arms,)
