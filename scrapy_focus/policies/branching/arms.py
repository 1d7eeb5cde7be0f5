"""What a pull of each arm earns and reveals, and its value: a branching bandit.

In a crawl a pull does more than earn a reward: a page reveals links, which wakes other arms. Such bandits are called
branching, and the arm to pull is the one with the largest index: its reward per cost if the revealed links are
pulled, too, while that is worth it.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.policies.branching.ahead import LEAST, MOST, Ahead, Dear, Renderings, Search

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

PAGES, TARGETS, RENDERINGS = 0, 1, 2  # kinds of arms: predicted pages, predicted targets, renderings by a browser

FIRST_HITS = np.array([0.05, 0.9, 0.05])  # of one pull that is added to those of a kind
_FIRST_OF_READER = np.array([0.245, 0.25])  # hits and pulls that are added to those of a reader
_GENERAL = 200.0  # pulls of pages over which revealed links are averaged
_BLOCK = 256  # arms drawn at once
_READERS = 1024  # readers that are distinguished
_MOST_AHEAD = 0.5  # of what the best target earns: the value of what a page reveals, per cost, at most
_TINY = 1e-3  # lower bound of a parameter of a draw
_ENTRIES = 1 << 17  # of all arms: links revealed, by pairs of arms
_SHIFT = 20  # bits of an arm's number
_FOUND_AGAIN = frozenset(  # and is not pickled
    "kinds pulls flying _rows _columns _counts _where _of_row _n_entries _means _later _dear".split()
)


class Worth(NamedTuple):
    """The value of a pull of each arm, shapes (n_arms,); its index is ``(own + later) / costs``."""

    own: NDArray[np.float64]  # its reward
    later: NDArray[np.float64]  # the reward, above its price, of what it reveals
    costs: NDArray[np.float64]

    @property
    def indices(self) -> NDArray[np.float64]:
        """Reward per cost, shape (n_arms,)."""
        return (self.own + self.later) / self.costs


class Record(NamedTuple):
    """The results of the pulls of an arm, weighted towards the newest."""

    pulls: float
    rewards: float
    revealed: float  # links of predicted targets


class Known(NamedTuple):
    """Statistics of arms, for storage; :meth:`BranchingArms.recall` reads them."""

    kinds: NDArray[np.int8]  # shape (n_arms,)
    records: NDArray[np.float64]  # shape (n_arms, 4): pulls, hits, rewards, costs
    rows: NDArray[np.intp]  # shape (n,): arms whose pulls revealed ...
    columns: NDArray[np.intp]  # ... links of arms, shape (n,) ...
    counts: NDArray[np.float64]  # ... so many, shape (n,)

    def only(self, arms: NDArray[np.intp]) -> Known:
        """Return the statistics of some of the arms, renumbered from 0, and of what they revealed of each other."""
        numbers = np.full(len(self.kinds), -1, np.intp)
        numbers[arms] = np.arange(len(arms))
        rows, columns = numbers[self.rows], numbers[self.columns]
        among = (rows >= 0) & (columns >= 0)
        return Known(self.kinds[arms], self.records[arms], rows[among], columns[among], self.counts[among])


class _Means(NamedTuple):
    """The expected results of a pull of each arm by its record, shapes (n_arms,)."""

    chance: NDArray[np.float64]  # of a hit
    each: NDArray[np.float64]  # reward of a hit
    costs: NDArray[np.float64]


class BranchingArms:
    """Records of what pulls of each arm earned, cost and revealed, and the resulting indices.

    A record is a decayed mean, because the yield of an arm changes: its first links are not like its last. An arm
    that was never pulled gets the average of its kind. If its links are read by a named callback, it gets the average
    of that callback; and a callback that has read nothing yet gets a high expectation, because the spider has it for
    a purpose.

    Parameters
    ----------
    window
        Pulls of an arm over which its record averages.
    shrink
        Pulls that the average of its kind counts for.
    horizon
        Pulls that are planned ahead. With 0, only revealed targets count, and costs do not.
    noise
        Spread of the draws from the posterior of each record, 1 for Thompson sampling, 0 for none.
    discount
        Of each pull that is planned ahead.
    rendering
        Expected cost of the first rendering, relative to a page's expected cost of 1.

    Notes
    -----
    *Memory*: 80 bytes an arm; for revealed links, 144 bytes for each of 131,072 pairs of arms; when there are more
    pairs, the smaller half is forgotten. Pickled, 16 bytes a pair.

    References
    ----------
    Weiss: Branching bandit processes. Probability in the Engineering and Informational Sciences 2 (1988).

    Examples
    --------
    >>> arms = BranchingArms(noise=0.0)
    >>> pages, lists, files = arms.new(PAGES), arms.new(PAGES), arms.new(TARGETS)
    >>> for _ in range(20):
    ...     arms.earn(lists, 0.0, 1.0, {files: 3})
    ...     arms.earn(files, 1.0, 1.0, {})
    ...     arms.earn(pages, 0.0, 1.0, {pages: 1})
    >>> arms.plan(np.array([True, True, False]))
    >>> worth = arms.worth(np.random.default_rng(0))
    >>> bool(worth.indices[lists] > worth.indices[pages])
    True
    """

    _first: Mapping[int, float] = MappingProxyType({})  # by arm: expected share of hits, if not that of its kind

    #: The kind of each arm, shape (n_arms,).
    kinds: NDArray[np.int8]
    #: How many pulls the record of each arm has, shape (n_arms,): at most about the window.
    pulls: NDArray[np.float64]
    #: How many pulls of each arm are in flight, shape (n_arms,); writable.
    flying: NDArray[np.float64]

    def __init__(
        self,
        *,
        window: float = 60.0,
        shrink: float = 1.0,
        horizon: int = 4,
        noise: float = 1.0,
        discount: float = 0.95,
        rendering: float = 1.0,
    ) -> None:
        if not (window >= 1 and shrink > 0 and horizon >= 0 and noise >= 0 and 0 < discount <= 1):
            raise ConfigError(
                f"BranchingArms(window={window}, shrink={shrink}, horizon={horizon}, noise={noise}, "
                f"discount={discount}): window is at least 1, shrink above 0, horizon and noise at least 0, and "
                "discount in (0, 1]"
            )
        self.window = window
        self.shrink = shrink
        self.horizon = horizon
        self.noise = noise
        self.discount = discount
        self.rendering = rendering
        self.n_arms = 0
        self.index = 0.1  # reward per cost of the best arm of pages in the last plan
        self._records = np.zeros((64, 4))  # by arm: pulls, hits, rewards, costs
        self._of_kind = np.zeros((len(FIRST_HITS), 4))
        self._kinds = np.zeros(64, np.int8)
        self._readers = np.zeros(64, np.int16)  # number of the callback for the links of each arm, 0: the usual one
        self._of_reader = np.zeros((1, 2))  # pulls, hits of arms of pages
        self._reader_names: dict[str, int] = {"": 0}
        self._flying = np.zeros(64)
        self._general = np.zeros(64)  # revealed by all pulls of pages
        self._general_pulls = 0.0
        self._rendered = np.zeros(64)  # revealed by all renderings
        self._rendered_pulls = 0.0
        self._has_renderings = False
        self._price = np.zeros(64)  # by arm: value above its price of one of its links, in the last plan
        self._revealed = np.zeros(64)  # by arm: likewise of all links that its pulls revealed
        self._drawn = np.zeros((2, 64))
        self._changed: dict[int, None] = {}  # arms not drawn since their record changed
        self._next_drawn = 0
        self._means: _Means | None = None  # until a record changes
        self._later: NDArray[np.float64] | None = None  # until a record, a price or a revealed count changes
        self._rows = np.zeros(256, np.intp)
        self._columns = np.zeros(256, np.intp)
        self._counts = np.zeros(256)
        self._n_entries = 0
        self._dear = Dear()
        self._where: dict[int, int] = {}
        self._of_row: list[array[int]] = []
        self._search: Search | None = None  # of an unfinished plan
        self._show()

    @property
    def names_readers(self) -> bool:
        """Whether links of some arm are read by a named callback.

        If so, known rewards go before pages that may reveal as much: draws for those are capped at their expectation,
        and the index is at most 3 % too high, where it is otherwise as much too low. With an index that is too low,
        each link of the best arm seems to pay a little, which adds up over all that pages seem to reveal.
        """
        return len(self._of_reader) > 1

    @property
    def mean_cost(self) -> float:
        """The average cost of a pull without renderings; 1 before the first."""
        pulls, *_, costs = self._of_kind[[PAGES, TARGETS]].sum(axis=0)
        return float((costs + 1) / (pulls + 1))

    def new(self, kind: int, reader: str = "", first: float | None = None) -> int:
        """Create an arm of a kind, and return its number; ``reader``: the name of the callback that reads its links,
        if any; ``first``: the expected share of hits of its pulls, if that of its kind is not.
        """
        if self.n_arms == len(self._kinds):
            for name in ("_records", "_kinds", "_readers", "_flying", "_general", "_rendered", "_price", "_revealed"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
            self._drawn = np.concatenate([self._drawn, np.zeros_like(self._drawn)], axis=1)
        self._kinds[self.n_arms] = kind
        self._has_renderings |= kind == RENDERINGS
        self._readers[self.n_arms] = self._reader(reader)
        self._of_row.append(array("q"))
        self._changed[self.n_arms] = None
        if first is not None:
            self._first = {**self._first, self.n_arms: first}
        self.n_arms += 1
        self._means = self._later = None
        self._show()
        return self.n_arms - 1

    def earn(
        self, arm: int, reward: float, cost: float, revealed: Mapping[int, float], *, hit: float | None = None
    ) -> None:
        """Record a pull of an arm: its reward, its cost, and the number of revealed links of each arm.

        ``hit``: how far it counts as a hit, from 0 to 1; by default any reward is one.
        """
        if self._records[arm, 0] > self.window:
            self._records[arm] *= 1 - 1 / self.window
            self._counts[self._entries_of(arm)] *= 1 - 1 / self.window
        self._changed[arm] = None
        self._means = self._later = None
        record = 1.0, float(reward > 0) if hit is None else hit, reward, cost
        self._records[arm] += record
        self._of_kind[self._kinds[arm]] += record
        if self._kinds[arm] == PAGES:
            self._of_reader[self._readers[arm]] += record[:2]
        self._add(arm, revealed)
        if self._kinds[arm] == PAGES:
            self.reveal(revealed)
        elif self._kinds[arm] == RENDERINGS:
            self._reveal_rendered(revealed)

    def earn_more(self, arm: int, revealed: Mapping[int, float]) -> None:
        """Add revealed links of each arm to the last pull of an arm."""
        self._later = None
        self._add(arm, revealed)
        if self._kinds[arm] == PAGES:
            for other, count in revealed.items():
                self._general[other] += count

    def _add(self, arm: int, revealed: Mapping[int, float]) -> None:
        for other, count in revealed.items():
            entry = self._entry(arm, other)  # may reallocate the arrays
            self._counts[entry] += count
        row = self._entries_of(arm)
        self._revealed[arm] = self._counts[row] @ self._price[self._columns[row]]

    def reveal(self, revealed: Mapping[int, float]) -> None:
        """Record a page that revealed links of each arm: for :meth:`earn`, and for pages that no pull led to."""
        self._later = None
        if self._general_pulls > _GENERAL:
            self._general *= 1 - 1 / _GENERAL
            self._general_pulls *= 1 - 1 / _GENERAL
        self._general_pulls += 1
        for other, count in revealed.items():
            self._general[other] += count

    def _reveal_rendered(self, revealed: Mapping[int, float]) -> None:
        if self._rendered_pulls > _GENERAL:
            self._rendered *= 1 - 1 / _GENERAL
            self._rendered_pulls *= 1 - 1 / _GENERAL
        self._rendered_pulls += 1
        for other, count in revealed.items():
            self._rendered[other] += count

    def plan(self, awake: NDArray[np.bool_]) -> None:
        """Compute the value above its price of a link of each arm, if everything is pulled that pays.

        The price is the index of the best awake arm of pages or renderings, shape (n_arms,). This usually takes about
        eight passes over all entries of revealed links.
        """
        self._search = None
        self.plan_on(awake, math.inf)

    def plan_on(self, awake: NDArray[np.bool_], most: float) -> bool:
        """Begin or continue a :meth:`plan`, and return whether it is finished.

        It stops before it would read more entries than ``most``, but tries at least one index, or computes the
        prices.
        """
        own, _, costs = self.worth(None)
        ahead = self._ahead()
        if not self.horizon:
            price = own * (self.kinds == TARGETS)
            self._set_price(price, ahead.sum(price))
            return True
        pages = awake & (self.kinds != TARGETS)
        among = pages if pages.any() else awake
        search = Search(self.index) if self._search is None else self._search
        each, done = self.horizon * self._n_entries, 0
        while search.next is not None:
            if done and done + each > most:
                self._search = search
                return False
            search = ahead.look(own, costs, among, search)
            done += each
        if done and done + each > most:
            self._search = search
            return False
        index = search.at(search.fails if self.names_readers else search.pays)
        self.index = min(max(index, LEAST), MOST)
        self._set_price(*ahead.prices(own, costs, self.index))
        self._dear.forget()
        self._search = None
        return True

    def worth(self, rng: np.random.Generator | None) -> Worth:
        """Return the value of a pull of each arm by the last plan; with ``rng``, drawn from its posterior.

        The draw for an arm is renewed when its record changes, and otherwise after as many calls as there are blocks
        of 256 arms.
        """
        chance, each, costs = self._means = self._means or self._expected()
        if self._later is None:
            self._later = self._ahead().later(self._revealed[: self.n_arms], self._price[: self.n_arms])
        if rng is None or not self.noise:
            return Worth(chance * each, self._later, costs)
        self._draw(chance, rng)
        return Worth(self._drawn[0, : self.n_arms] * each, self._drawn[1, : self.n_arms] * self._later, costs)

    def bounded(self, worth: Worth) -> Worth:
        """Return the same values, but for what pages reveal: per cost at most half of what the best target earns.

        What a page reveals has yet to be pulled, and that costs requests, too. Where pages reveal many links, small
        errors of each price add up, and a page would always look better than a link to a file. The order of pages by
        this value stays.
        """
        targets = np.flatnonzero(self.kinds == TARGETS)
        if not len(targets):
            return worth
        chance, each, costs = self._means = self._means or self._expected()
        best = float((chance.take(targets) * each.take(targets) / costs.take(targets)).max())
        pages = np.flatnonzero((worth.later > 0) & (self.kinds == PAGES))
        most = _MOST_AHEAD * max(best, _TINY) * costs.take(pages)
        later = worth.later.copy()
        later[pages] = most - most * np.exp(-later.take(pages) / most)
        return worth._replace(later=later)

    def _expected(self) -> _Means:
        shrink, kinds = self.shrink, self.kinds
        pulls, hits, rewards, costs = self._records[: self.n_arms].T
        share, each, cost = self._averages()
        prior = self._expected_hits(share)
        prior *= shrink
        all_pulls, all_hits = pulls + shrink, hits + prior
        rewards = rewards + prior * each.take(kinds)
        rewards /= all_hits
        costs = costs + (shrink * cost).take(kinds)
        costs /= all_pulls
        return _Means(all_hits / all_pulls, rewards, costs)

    def _averages(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the share of hits, the reward of a hit and the cost of a pull of each kind, shape (3,) all."""
        found = [
            ((hits + first) / (pulls + 1), (rewards + 1) / (hits + 1), (costs + cost) / (pulls + 1))
            for (pulls, hits, rewards, costs), first, cost in zip(
                self._of_kind.tolist(), FIRST_HITS.tolist(), (1, 1, self.rendering), strict=True
            )
        ]
        share, each, cost = np.array(found).T
        share[TARGETS] = FIRST_HITS[TARGETS]
        return share, each, cost

    def _expected_hits(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected share of hits of each arm that was never pulled, shape (n_arms,).

        ``share``: that of each kind.
        """
        expected: NDArray[np.float64] = share.take(self.kinds)
        if self._first:
            expected[list(self._first)] = list(self._first.values())
        if not self.names_readers:
            return expected
        pulls, hits = self._of_reader.T
        first_hits, first_pulls = np.tile(_FIRST_OF_READER[:, None], len(pulls))
        first_hits[0], first_pulls[0] = FIRST_HITS[PAGES], 1.0
        by_reader = ((hits + first_hits) / (pulls + first_pulls))[self._readers[: self.n_arms]]
        return np.where(self.kinds == PAGES, by_reader, expected)

    def _reader(self, name: str) -> int:
        """Return the number of a reader, 0 for new ones beyond the limit."""
        number = self._reader_names.get(name, 0)
        if name and not number and len(self._of_reader) < _READERS:
            number = self._reader_names[name] = len(self._of_reader)
            self._of_reader = np.concatenate([self._of_reader, np.zeros((1, 2))])
        return number

    def _draw(self, chance: NDArray[np.float64], rng: np.random.Generator) -> None:
        """Draw the chance of a hit, and a factor for revealed links, for a block of arms and those whose record
        changed.
        """
        n = self.n_arms
        start = self._next_drawn if self._next_drawn < n else 0
        end = min(start + _BLOCK, n)
        self._next_drawn = end
        others = sorted(arm for arm in self._changed if not start <= arm < end)
        self._changed.clear()
        arms: slice | NDArray[np.intp] = slice(start, end)
        if others:
            below = bisect_left(others, start)
            before, behind = np.array(others[:below], np.intp), np.array(others[below:], np.intp)
            arms = np.concatenate([before, np.arange(start, end), behind])
        known = self.pulls[arms] + self.flying[arms]
        known += self.shrink
        known /= self.noise
        hits = chance[arms] * known
        misses = known - hits
        np.maximum(hits, _TINY, out=hits)
        np.maximum(misses, _TINY, out=misses)
        self._drawn[0, arms] = rng.beta(hits, misses)
        times = rng.standard_gamma(known)
        times /= known
        if self.names_readers:
            np.minimum(times, 1.0, out=times)
        self._drawn[1, arms] = times

    def hits_ahead(self, steps: int) -> NDArray[np.float64]:
        """Return how many hits a pull of each arm brings, including those of links revealed so many steps on.

        Shape (n_arms,). Uses the records of arms alone, each with one more pull without a result.
        """
        n, m = self.n_arms, self._n_entries
        pulls, hits = self._records[:n, 0] + 1, self._records[:n, 1]
        rows, columns, counts = self._rows[:m], self._columns[:m], self._counts[:m]
        ahead = own = hits / pulls
        for _ in range(steps):
            ahead = own + np.bincount(rows, counts * ahead[columns], n) / pulls
        return ahead

    def lead_to_hits(self, hopeful: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """Return which arms ever had a hit, themselves or through arms that they revealed, and so on, shape
        (n_arms,).

        ``hopeful``, shape (n_arms,): arms that may still have hits.
        """
        rows, columns = self._rows[: self._n_entries], self._columns[: self._n_entries]
        lead = self._records[: self.n_arms, 1] > 0
        if hopeful is not None:
            lead |= hopeful
        while len(more := rows[lead[columns] & ~lead[rows]]):
            lead[more] = True
        return lead

    def record(self, arm: int) -> Record:
        """Return the results of the pulls of an arm."""
        row = self._entries_of(arm)
        targets = self._kinds[self._columns[row]] == TARGETS
        return Record(
            float(self._records[arm, 0]), float(self._records[arm, 2]), float(self._counts[row][targets].sum())
        )

    def known(self) -> Known:
        """Return the statistics of all arms."""
        n, m = self.n_arms, self._n_entries
        return Known(
            self.kinds.copy(), self._records[:n].copy(), self._rows[:m], self._columns[:m], self._counts[:m].copy()
        )

    def recall(self, known: Known, arms: NDArray[np.intp], *, pulls: float, of_kind: float) -> None:
        """Load statistics of arms; ``arms[i]`` is the arm here that was ``i`` there, shape (n_arms,).

        They count as at most so many pulls of each arm, and of all arms of a kind together.
        """
        share = np.minimum(1, pulls / np.maximum(known.records[:, 0], 1))
        self._means = self._later = None
        np.add.at(self._records, arms, known.records * share[:, None])
        counts = known.counts * share[known.rows]
        for row, column, count in zip(
            arms[known.rows].tolist(), arms[known.columns].tolist(), counts.tolist(), strict=True
        ):
            entry = self._entry(row, column)
            self._counts[entry] += count
        for kind in (PAGES, TARGETS, RENDERINGS):
            total = known.records[known.kinds == kind].sum(axis=0)
            self._of_kind[kind] += total * min(1, of_kind / max(total[0], 1))
        pages = known.kinds[known.rows] == PAGES
        all_pulls = float(known.records[known.kinds == PAGES, 0].sum())
        share_of_all = min(1, of_kind / max(all_pulls, 1))
        np.add.at(self._general, arms[known.columns[pages]], known.counts[pages] * share_of_all)
        self._general_pulls += all_pulls * share_of_all
        rendered = known.kinds[known.rows] == RENDERINGS
        all_pulls = float(known.records[known.kinds == RENDERINGS, 0].sum())
        share_of_all = min(1, of_kind / max(all_pulls, 1))
        np.add.at(self._rendered, arms[known.columns[rendered]], known.counts[rendered] * share_of_all)
        self._rendered_pulls += all_pulls * share_of_all

    def __getstate__(self) -> dict[str, Any]:
        n = self._n_entries
        keys = (self._rows[:n] << _SHIFT) | self._columns[:n]
        kept = {name: value for name, value in self.__dict__.items() if name not in _FOUND_AGAIN}
        return {**kept, "_entries": (keys, self._counts[:n])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        keys, counts = state.pop("_entries")
        self.__dict__.update(state)
        self._means = self._later = None
        self._load(keys, counts)
        self._show()

    def _show(self) -> None:
        self.kinds = self._kinds[: self.n_arms]
        self.pulls = self._records[: self.n_arms, 0]
        self.flying = self._flying[: self.n_arms]

    def _load(self, keys: NDArray[np.intp], counts: NDArray[np.float64]) -> None:
        self._rows, self._columns, self._counts = keys >> _SHIFT, keys & ((1 << _SHIFT) - 1), counts.copy()
        self._n_entries = len(keys)
        self._dear = Dear()
        self._where = dict(zip(keys.tolist(), range(len(keys)), strict=True))
        entries = np.argsort(self._rows, kind="stable").astype(np.int64)
        ends = np.bincount(self._rows, minlength=self.n_arms).cumsum().tolist()
        self._of_row = [array("q", entries[start:end].tobytes()) for start, end in pairwise([0, *ends])]

    def _entries_of(self, row: int) -> NDArray[np.int64]:
        """Return which entries belong to a row; invalid once an entry is added."""
        return np.frombuffer(self._of_row[row], np.int64)

    def _entry(self, row: int, column: int) -> int:
        key = row << _SHIFT | column
        entry = self._where.get(key)
        if entry is not None:
            return entry
        if self._n_entries >= _ENTRIES:
            kept = _largest(self._counts[: self._n_entries], _ENTRIES // 2)
            self._load((self._rows[kept] << _SHIFT) | self._columns[kept], self._counts[kept])
        if self._n_entries == len(self._rows):
            room = max(256, self._n_entries)
            self._rows, self._columns = (np.append(old, np.zeros(room, np.intp)) for old in (self._rows, self._columns))
            self._counts = np.append(self._counts, np.zeros(room))
        entry = self._where[key] = self._n_entries
        self._rows[entry], self._columns[entry] = row, column
        self._of_row[row].append(entry)
        self._n_entries += 1
        return entry

    def _ahead(self) -> Ahead:
        n, m = self.n_arms, self._n_entries
        rendered = None
        if self._has_renderings:
            rendered = Renderings(self.kinds == RENDERINGS, self._rendered[:n], self._rendered_pulls)
        return Ahead(
            self._rows[:m], self._columns[:m], self._counts[:m], self._dear, self._general[:n],
            max(self._general_pulls, 1), self.kinds == PAGES, self.pulls, rendered,
            shrink=self.shrink, discount=self.discount, horizon=self.horizon,
        )  # fmt: skip

    def _set_price(self, price: NDArray[np.float64], revealed: NDArray[np.float64]) -> None:
        self._price[: self.n_arms], self._revealed[: self.n_arms] = price, revealed
        self._later = None


def _largest(counts: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    """Return the places of the ``n`` largest of more counts, ascending; the first among equals."""
    least = np.partition(counts, len(counts) - n)[len(counts) - n]
    above, equal = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
    return np.sort(np.concatenate([above, equal[: n - len(above)]]))
