"""A regression tree that grows as rewards arrive, and whose leaves are arms.

A tree that looks for its best split reads all experiences of a leaf, for each column and each value that occurs:
quadratic in the experiences, again after each result. Here columns are codes of 64 levels, and a leaf keeps counts
and sums of rewards for each level, so every split of a leaf is evaluated in one pass over the levels, however many
experiences it has. Experiences are a sliding window, because the links that a crawl meets change. Statistics with
days of additions and subtractions must not drift, and must be the same when a resume counts them again: rewards are
summed as whole numbers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from scrapy_focus.core.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Rule = Literal["chi2", "variance", "sample-variance"]

LEVELS = 64
_FINE = 22  # bits of the largest reward, so that squares of a full window fit into 63
_LARGEST_WINDOW = 1 << 18
_NO_REWARD = -1100  # below the exponent of any number
_EQUAL = 1 - 1e-12  # splits with this share of the best gain count as equal
_ROUNDED = 1e-12  # of the sample variance, by which gains may be rounded
_AT_ONCE = 64  # leaves
_GROWTH = 64  # experiences of a leaf for which one more changes little
_NEVER = 255  # no code is above


class Split(NamedTuple):
    """Experiences of ``leaf`` with a code above ``above`` in ``column`` move to ``new_leaf``."""

    leaf: int
    column: int
    above: int
    new_leaf: int


class RegressionTree:
    """Leaves numbered from 0 in the order of creation, each with the mean reward of its experiences.

    At first all is one leaf. A leaf that received an experience is split in two, at most once for each experience, if
    its best split is good enough. The best split lowers the variance of the rewards most; among equals it is that of
    the smallest column, then of the smallest threshold. Leaves never merge.

    Parameters
    ----------
    n_columns
        The first so many numbers of a vector are codes 0..63, which the tree splits on. It ignores the others.
    rule
        ``"chi2"``: the share of the variance that the split removes, times the experiences of the leaf, is at least
        ``tau`` (for rewards 0 and 1 that is the chi-square statistic of the 2 x 2 table), and both sides have
        ``min_child`` experiences. A leaf of n is weighed at one experience in ``1 + n // 64`` of the tree only, as one
        more changes little there. ``"variance"``, as released: any split that lowers the variance, once the leaf has
        ``min_samples`` experiences, if both sides have at least one and ``min_share`` of them.
        ``"sample-variance"``, by the text of the paper: the same for the variance with ``n - 1`` in place of ``n``;
        that of a single experience is 0. It takes 512 bytes more for each column of each leaf.
    max_depth
        Splits between the whole and a leaf.
    window
        Number of the latest experiences that count; 262,144 at most. One that leaves the window is subtracted from
        its leaf's statistics.

    Raises
    ------
    ConfigError
        If a parameter cannot be used.

    Notes
    -----
    *Rewards* are rounded to a four-millionth of the power of two above the largest in the window, and statistics are
    exact sums of that. A reward larger than ever causes the whole window to be rounded again.

    *Memory*: 768 bytes for each column of each leaf (15 KB a leaf with 20 columns, 63 MB for 4,096), and
    ``n_columns + 12`` bytes for each experience in the window. The latter and the splits are pickled, the former is
    recomputed.

    *Time*: the cost of an experience does not depend on their number, except for one that splits a leaf, which counts
    those of the smaller side. Most of the time is spent on evaluating splits.

    References
    ----------
    Kontogiannis et al.: Tree-based focused web crawling with reinforcement learning (2021).

    Examples
    --------
    >>> tree = RegressionTree(2, rule="variance")
    >>> for code, reward in [((9, 3), 0.0), ((9, 60), 1.0), ((9, 5), 0.0), ((9, 50), 1.0), ((9, 4), 0.0)]:
    ...     split = tree.add(np.array(code, np.uint8), reward)
    >>> split
    Split(leaf=0, column=1, above=5, new_leaf=1)
    >>> tree.means.tolist(), tree.route(np.array([[0, 5], [0, 6]], np.uint8)).tolist()
    ([0.0, 1.0], [0, 1])
    """

    def __init__(
        self,
        n_columns: int,
        *,
        rule: Rule = "chi2",
        tau: float = 8.0,
        min_samples: int = 5,
        min_child: int = 5,
        min_share: float = 0.0,
        max_depth: int = 18,
        max_leaves: int = 4096,
        window: int = 100_000,
    ) -> None:
        if rule not in get_args(Rule):
            raise ConfigError(f"RegressionTree(rule={rule!r}): the rules are {', '.join(map(repr, get_args(Rule)))}")
        if not (n_columns > 0 and max_leaves > 0 and 0 < window <= _LARGEST_WINDOW):
            raise ConfigError(
                f"RegressionTree({n_columns}, max_leaves={max_leaves}, window={window}): a tree has a column and a "
                f"leaf at least, and a window of 1 to {_LARGEST_WINDOW} experiences"
            )
        self.n_columns = n_columns
        self.rule: Rule = rule
        self.tau = tau
        self.min_samples = min_samples
        self.min_child = min_child
        self.min_share = min_share
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.window = window
        self._added = 0
        self._exponent = _NO_REWARD  # every reward in the window is below 2 ** this
        self._codes = np.zeros((window, n_columns), np.uint8)
        self._rewards = np.zeros(window)
        self._leaves = np.zeros(window, np.int32)  # of each experience
        self._start()

    def _start(self) -> None:
        """Reset to one leaf without statistics."""
        self.splits: list[Split] = []
        self._offsets = LEVELS * np.arange(self.n_columns)
        room = 2 * self.max_leaves - 1
        # Places are forks and leaves. From a fork, codes up to _above lead to _next, those above to the place after
        # that; a leaf leads to itself.
        self._column = np.zeros(room, np.int64)
        self._above = np.full(room, _NEVER, np.uint8)
        self._next = np.zeros(room, np.int64)
        self._leaf = np.full(room, -1, np.int32)
        self._leaf[0] = 0
        # For one vector at a time, three times as fast as the arrays that they mirror.
        self._places = self._leaf.data, self._column.data, self._above.data, self._next.data
        self._place = np.zeros(self.max_leaves, np.int64)
        self._depth = np.zeros(self.max_leaves, np.int32)
        self._count = np.zeros(self.max_leaves, np.int64)
        self._sum = np.zeros(self.max_leaves, np.int64)
        self._square = np.zeros(self.max_leaves, np.int64)
        self._levels = [np.zeros(LEVELS * self.n_columns, np.int32)]  # of each leaf: experiences with each code
        self._level_sums = [np.zeros(LEVELS * self.n_columns, np.int64)]  # and their rewards
        self._level_squares = [np.zeros(self._n_squares, np.int64)]  # and the squares of these, if the rule needs them

    @property
    def _n_squares(self) -> int:
        return LEVELS * self.n_columns * (self.rule == "sample-variance")

    @property
    def n_leaves(self) -> int:
        """How many leaves there are, empty ones included."""
        return len(self.splits) + 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """Experiences of the window in each leaf, shape (n_leaves,)."""
        return self._count[: self.n_leaves].copy()

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean reward of the experiences in each leaf, shape (n_leaves,); 0 for an empty one."""
        sums = np.ldexp(self._sum[: self.n_leaves].astype(np.float64), self._exponent - _FINE)
        return np.asarray(sums / np.maximum(self._count[: self.n_leaves], 1), np.float64)

    def route(self, codes: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Return the leaf of each row of codes : (n, at least n_columns), shape (n,)."""
        flat = codes.ravel()
        rows = codes.shape[1] * np.arange(len(codes))
        places = np.zeros(len(codes), np.int64)
        while self.splits:
            codes_here = flat.take(rows + self._column.take(places))
            further = self._next.take(places) + (codes_here > self._above.take(places))
            if further.tobytes() == places.tobytes():  # the cheapest check that all are at a leaf
                break
            places = further
        return self._leaf.take(places)

    def add(self, code: NDArray[np.uint8], reward: float) -> Split | None:
        """Add an experience, code : (at least n_columns,), and return the split that it caused, if any.

        Raises
        ------
        ValueError
            If a code is above 63, there are too few, or the reward is not a finite number. Nothing is changed.
        """
        codes = code[: self.n_columns].tolist()
        if len(codes) < self.n_columns or max(codes) >= LEVELS or not math.isfinite(reward):
            raise ValueError(
                f"got codes {codes} and reward {reward}; expected {self.n_columns} codes up to {LEVELS - 1} and a "
                "finite number"
            )
        self._fit_scale(reward)
        row = self._added % self.window
        if self._added >= self.window:
            self._tell(int(self._leaves[row]), row, -1)
        leaves, column, above, further = self._places
        place = 0
        while leaves[place] < 0:
            place = further[place] + (codes[column[place]] > above[place])
        leaf = leaves[place]
        self._codes[row] = codes
        self._rewards[row] = reward
        self._leaves[row] = leaf
        self._tell(leaf, row, 1)
        self._added += 1
        best = self._best(leaf) if self._is_due(leaf) else None
        return self._split(leaf, *best) if best is not None else None

    def _is_due(self, leaf: int) -> bool:
        """Whether the splits of a leaf are evaluated now: always while it is small, and less often the larger it is."""
        return self.rule != "chi2" or self._added % (1 + int(self._count[leaf]) // _GROWTH) == 0

    def _fit_scale(self, reward: float) -> None:
        """Make room for a reward larger than ever; once in each window, check whether less room would do."""
        exponent = _exponent(reward)
        if self._added and self._added % self.window == 0:
            exponent = max(exponent, _exponent(float(np.abs(self._rewards).max())))
        elif exponent <= self._exponent:
            return
        if exponent != self._exponent:
            self._exponent = exponent
            self._recount()

    def _tell(self, leaf: int, row: int, sign: int) -> None:
        """Add the experience of a row of the window to the statistics of a leaf, or subtract it."""
        units = round(math.ldexp(float(self._rewards[row]), _FINE - self._exponent))
        columns = self._offsets + self._codes[row]
        self._levels[leaf][columns] += sign
        self._count[leaf] += sign
        if units:
            self._level_sums[leaf][columns] += sign * units
            if self._n_squares:
                self._level_squares[leaf][columns] += sign * units * units
            self._sum[leaf] += sign * units
            self._square[leaf] += sign * units * units

    def _best(self, leaf: int) -> tuple[int, int] | None:
        """Return column and threshold of the best split of a leaf, ``None`` if the rule accepts none."""
        n, total = int(self._count[leaf]), int(self._sum[leaf])
        spread = n * int(self._square[leaf]) - total * total  # n ** 2 times the variance; 0 if all rewards are the same
        if spread == 0 or self.n_leaves >= self.max_leaves or self._depth[leaf] >= self.max_depth:
            return None
        if self.rule == "chi2":
            least = max(1, self.min_child)
        else:
            least = n if n < self.min_samples else max(1, math.ceil(self.min_share * n - 1e-9))
        if n < 2 * least:
            return None
        counts = _below(self._levels[leaf])
        sums = _below(self._level_sums[leaf])
        others = n - counts
        allowed = np.minimum(counts, others) >= least
        if self._n_squares:
            return self._best_sample(leaf, counts, sums, allowed)
        # Both formulas for the distance of the two means are equal, and in whole numbers it is 0 if they are equal.
        distance = (n * sums - total * counts).astype(np.float64)
        gains = distance * distance * allowed / np.maximum(counts * others, 1)
        best = float(gains.max())
        if best <= 0 or (self.rule == "chi2" and n * best / spread < self.tau):
            return None
        column, above = divmod(int(np.argmax(gains >= best * _EQUAL)), LEVELS - 1)
        return column, above

    def _best_sample(
        self, leaf: int, counts: NDArray[np.int64], sums: NDArray[np.int64], allowed: NDArray[np.bool_]
    ) -> tuple[int, int] | None:
        """Return column and threshold of the split that lowers the sample variance most, ``None`` if none does."""
        n, total = int(self._count[leaf]), int(self._sum[leaf])
        middle = total // n  # squares of differences from it are exact, and have nothing in common to cancel
        sums, whole = sums - middle * counts, total - middle * n
        squares = _below(self._level_squares[leaf]) - middle * (2 * sums + middle * counts)
        square = int(self._square[leaf]) - middle * (2 * whole + middle * n)
        variance = _sample_variance(np.array(n), np.array(whole), np.array(square))
        low = counts * _sample_variance(counts, sums, squares)
        high = (n - counts) * _sample_variance(n - counts, whole - sums, square - squares)
        gains = np.where(allowed, variance - (low + high) / n, -1)
        best = float(gains.max())
        if best <= _ROUNDED * variance:
            return None
        column, above = divmod(int(np.argmax(gains >= best - _ROUNDED * variance)), LEVELS - 1)
        return column, above

    def _split(self, leaf: int, column: int, above: int) -> Split:
        """Split a leaf with its statistics."""
        rows = np.flatnonzero(self._leaves[: min(self._added, self.window)] == leaf)
        goes = self._codes[rows, column] > above
        split = self._grow(Split(leaf, column, above, self.n_leaves))
        self._leaves[rows[goes]] = split.new_leaf
        few, many = leaf, split.new_leaf
        if 2 * int(goes.sum()) <= len(rows):
            few, many = many, few
        whole = self._levels[leaf], self._level_sums[leaf], self._level_squares[leaf]
        for table in (self._count, self._sum, self._square):
            table[many] = table[leaf]
        self._recount_leaves(few, few + 1, rows[goes == (few == split.new_leaf)])
        self._levels[many] = whole[0] - self._levels[few]
        self._level_sums[many] = whole[1] - self._level_sums[few]
        self._level_squares[many] = whole[2] - self._level_squares[few]
        for table in (self._count, self._sum, self._square):
            table[many] -= table[few]
        return split

    def _grow(self, split: Split) -> Split:
        """Turn a leaf into a fork with two leaves."""
        fork = self._place[split.leaf]
        kids = 2 * len(self.splits) + 1, 2 * len(self.splits) + 2
        self._column[fork], self._above[fork], self._leaf[fork] = split.column, split.above, -1
        self._next[fork] = kids[0]
        depth = self._depth[split.leaf] + 1
        for place, leaf in zip(kids, (split.leaf, split.new_leaf), strict=True):
            self._next[place], self._leaf[place] = place, leaf
            self._place[leaf], self._depth[leaf] = place, depth
        self.splits.append(split)
        self._levels.append(np.zeros_like(self._levels[0]))
        self._level_sums.append(np.zeros_like(self._level_sums[0]))
        self._level_squares.append(np.zeros_like(self._level_squares[0]))
        return split

    def _recount(self) -> None:
        """Recompute the statistics of all leaves from the window."""
        leaves = self._leaves[: min(self._added, self.window)]
        order = np.argsort(leaves, kind="stable")
        starts = np.searchsorted(leaves[order], np.arange(self.n_leaves + 1))
        for first in range(0, self.n_leaves, _AT_ONCE):
            last = min(first + _AT_ONCE, self.n_leaves)
            self._recount_leaves(first, last, order[starts[first] : starts[last]])

    def _recount_leaves(self, first: int, last: int, rows: NDArray[np.intp]) -> None:
        """Recompute the statistics of leaves from ``first`` until ``last`` from all rows of the window in them."""
        leaves = self._leaves[rows] - first
        units = np.rint(np.ldexp(self._rewards[rows], _FINE - self._exponent))
        columns = (LEVELS * self.n_columns * leaves[:, None] + self._offsets + self._codes[rows]).ravel()
        shape = last - first, LEVELS * self.n_columns
        weights = np.repeat(units, self.n_columns)  # below 2 ** 53 in sum, so exact
        levels = np.bincount(columns, minlength=math.prod(shape)).reshape(shape).astype(np.int32)
        sums = np.bincount(columns, weights, math.prod(shape)).reshape(shape).astype(np.int64)
        self._levels[first:last] = [row.copy() for row in levels]
        self._level_sums[first:last] = [row.copy() for row in sums]
        whole = units.astype(np.int64)
        if self._n_squares:
            squares = np.zeros(math.prod(shape), np.int64)
            np.add.at(squares, columns, np.repeat(whole * whole, self.n_columns))
            self._level_squares[first:last] = [row.copy() for row in squares.reshape(shape)]
        for table, values in ((self._count, np.ones_like(whole)), (self._sum, whole), (self._square, whole * whole)):
            table[first:last] = 0
            np.add.at(table, leaves + first, values)

    def __getstate__(self) -> dict[str, Any]:
        size = min(self._added, self.window)
        kept = (
            "n_columns",
            "rule",
            "tau",
            "min_samples",
            "min_child",
            "min_share",
            "max_depth",
            "max_leaves",
            "window",
        )
        state = {name: self.__dict__[name] for name in (*kept, "_added", "_exponent")}
        state |= {name: self.__dict__[name][:size] for name in ("_codes", "_rewards", "_leaves")}
        state["splits"] = np.array(self.splits, np.int32).reshape(-1, 4)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in ("_codes", "_rewards", "_leaves"):
            rows = state[name]
            self.__dict__[name] = np.zeros((self.window, *rows.shape[1:]), rows.dtype)
            self.__dict__[name][: len(rows)] = rows
        self._start()
        for split in state["splits"].tolist():
            self._grow(Split(*split))
        self._recount()


def _below(levels: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the sums of a table of levels up to each threshold, shape (n_columns, 63)."""
    sums: NDArray[np.int64] = levels.reshape(-1, LEVELS)[:, :-1].cumsum(axis=1, dtype=np.int64)
    return sums


def _sample_variance(n: NDArray[np.int64], sums: NDArray[np.int64], squares: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sample variance of so many numbers, from their sums and those of their squares; 0 for fewer than 2."""
    spread: NDArray[np.float64] = squares - sums.astype(np.float64) ** 2 / np.maximum(n, 1)
    return np.where(n > 1, spread / np.maximum(n - 1, 1), 0.0)


def _exponent(reward: float) -> int:
    """Return the smallest whole number such that the reward is below 2 to the power of it."""
    return math.frexp(reward)[1] if reward else _NO_REWARD
