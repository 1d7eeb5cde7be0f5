"""Which links are given up when too many are queued and the policy has no rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Drawn, Frontier, Ranked


def give_up(frontier: Frontier, n: int, rng: np.random.Generator, *, spared: Sequence[int] = ()) -> int:
    """Give up ``n`` queued links, or all if there are fewer; return how many. Some arms may be spared.

    Each arm gives up its share: its lowest ranks, or links drawn at random if there are no ranks.
    """
    if hasattr(frontier, "drop_each"):
        counts = _shares(_of_others(frontier, spared), n)
        arms = np.flatnonzero(counts).tolist()
        return cast("Ranked", frontier).drop_each({arm: int(counts[arm]) for arm in arms})
    drawn, before = cast("Drawn", frontier), len(frontier)
    most = min(n, before if not spared else int(_of_others(frontier, spared).sum()))
    while (left := most - (before - len(drawn))) > 0:  # a link drawn twice is given up once
        if not spared and 2 * left > len(drawn):
            slots = rng.permutation(drawn.draw(None, rng).slots)[:left]
        else:
            slots = drawn.draw(_shares(_of_others(frontier, spared), left), rng).slots
        drawn.drop(slots)
    return most


def _of_others(frontier: Frontier, spared: Sequence[int]) -> NDArray[np.int64]:
    waiting = frontier.waiting
    if spared:
        waiting = waiting.copy()
        waiting[[arm for arm in spared if arm < len(waiting)]] = 0
    return waiting


def _shares(waiting: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return how many of ``n`` links each arm gives up, in proportion to its queue, shape (n_arms,)."""
    total = int(waiting.sum())
    n = min(n, total)
    counts, rests = np.divmod(waiting * n, max(total, 1))
    counts[np.argsort(-rests, kind="stable")[: n - int(counts.sum())]] += 1
    return counts
