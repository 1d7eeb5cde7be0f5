"""Trees of categories whose listing pages lie as deep as they are wanted to, and numbers drawn alike everywhere (internal).

Nothing here calls a function of the C library's mathematics, whose last digit differs between machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MASK: Final = (1 << 64) - 1
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """Categories and their listing pages, which are numbered category by category; category 0 is the root.

    `parents` never decreases, so the categories below one are neighbours.
    """

    starts: NDArray[np.int16]  # clicks to the first page of each category
    parents: NDArray[np.int32]  # the category above each, -1 for the root
    first: NDArray[np.int64]  # the first listing page of each category, and one past the last page of all
    depths: NDArray[np.int16]  # clicks to each listing page
    order: NDArray[np.int32]  # listing pages, the least deep first
    reach: list[int]  # how many listing pages are at most d clicks away, by d

    @property
    def n_listings(self) -> int:
        """Number of listing pages."""
        return len(self.depths)

    def category_of(self, listing: int) -> int:
        """Return the category that a listing page belongs to."""
        return int(np.searchsorted(self.first, listing, side="right")) - 1

    def pages_of(self, category: int) -> range:
        """Return the listing pages of a category."""
        return range(int(self.first[category]), int(self.first[category + 1]))

    def below(self, category: int) -> range:
        """Return the categories below a category."""
        low, high = np.searchsorted(self.parents, (category, category + 1))
        return range(int(low), int(high))


def mix(n: int) -> int:
    """Return 64 bits that look random, a function of `n`."""
    n = (n + _STEP) & _MASK
    n = ((n ^ (n >> 30)) * _FIRST) & _MASK
    n = ((n ^ (n >> 27)) * _SECOND) & _MASK
    return n ^ (n >> 31)


def mixes(start: int, n: int) -> NDArray[np.uint64]:
    """Return ``mix(start), mix(start + 1)...``, `n` of them."""
    x = np.arange(n, dtype=np.uint64) + np.uint64((start + _STEP) & _MASK)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_SECOND)
    return np.asarray(x ^ (x >> np.uint64(31)), dtype=np.uint64)


def uniform(bits: int) -> float:
    """Return a number in [0, 1) from 64 bits."""
    return float(bits >> 11) / (1 << 53)


def draws(start: int, n: int) -> NDArray[np.float64]:
    """Return `n` numbers in [0, 1)."""
    return (mixes(start, n) >> np.uint64(11)) / np.float64(1 << 53)


def grow(
    n: int, *, root: int, mean: float, spread: float, stride: int, branching: int, fresh_share: float, key: int
) -> Tree:
    """Return a tree of `n` listing pages.

    Depths follow a negative binomial law where the tree can: no category has more than `branching` below it, so there
    is no room for many pages near the root. What finds no room goes deeper.

    Parameters
    ----------
    n : int
        Listing pages, at least one.
    root : int
        Clicks to the first page of category 0.
    mean, spread : float
        Wanted mean and standard deviation of the depths.
    stride : int
        Pages that a pager leads on by in one click.
    branching : int
        Categories below a category, at most.
    fresh_share : float
        Share of the listing pages of a depth that begin a category, at least; the rest lead categories on.
    key : int
        Seed.
    """
    goals = [int(n * share + 0.5) for share in _law(max(0.05, mean - root), spread)]
    starts, lengths, parents = [np.array([root])], np.array([1]), [np.array([-1])]
    active = newest = np.array([0])
    placed, depth = 1, root
    while placed < n:
        depth += 1
        level = depth - root
        goal, next_goal = (goals[level + j] if level + j < len(goals) else n for j in (0, 1))
        wanted = min(n - placed, max(1, goal - placed))
        key = mix(key)
        fresh = max(
            wanted - stride * len(active),
            int(wanted * fresh_share),
            -(-(next_goal - goal - stride * len(active)) // branching),
            int(placed < 0.9 * n),
        )
        fresh = min(fresh, wanted, branching * len(newest))
        on = min(wanted - fresh, stride * len(active))
        going = np.sort(active[np.argsort(draws(key, len(active)), kind="stable")[: -(-on // stride)]])
        if on:
            lengths[going] += stride
            lengths[going[-1]] -= stride * len(going) - on
        below = np.sort(np.argsort(draws(key + 1, branching * len(newest)), kind="stable")[:fresh]) // branching
        parents.append(newest[below])
        newest = np.arange(len(lengths), len(lengths) + fresh)
        starts.append(np.full(fresh, depth))
        lengths = np.concatenate([lengths, np.ones(fresh, dtype=np.int64)])
        active = np.concatenate([going, newest])
        placed += fresh + on
    return _tree(np.concatenate(starts), np.concatenate(parents), lengths, stride)


def _tree(starts: NDArray[np.int64], parents: NDArray[np.int64], lengths: NDArray[np.int64], stride: int) -> Tree:
    first = np.concatenate([[0], np.cumsum(lengths)])
    steps = np.arange(first[-1]) - np.repeat(first[:-1], lengths)  # pages since the first of the category
    depths = np.repeat(starts, lengths) + -(-steps // stride)
    return Tree(
        starts=starts.astype(np.int16),
        parents=parents.astype(np.int32),
        first=first,
        depths=depths.astype(np.int16),
        order=np.argsort(depths, kind="stable").astype(np.int32),
        reach=np.cumsum(np.bincount(depths)).tolist(),
    )


def _law(mean: float, spread: float) -> list[float]:
    """Return the distribution function of a negative binomial law on 0, 1, 2..., or Poisson's if the spread is small."""
    excess = spread * spread - mean
    weights, total = [1.0], 1.0
    while weights[-1] > 1e-7 * total or len(weights) < mean:
        k = len(weights) - 1
        if excess > 0.01 * mean:
            size = mean * mean / excess
            ratio = (size + k) / (k + 1) * mean / (mean + size)
        else:
            ratio = mean / (k + 1)
        weights.append(weights[-1] * ratio)
        total += weights[-1]
    return [part / total for part in accumulate(weights)]
