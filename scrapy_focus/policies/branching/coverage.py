"""How many targets a crawl has still to find, and between what limits.

Whoever watches a crawl wants to know whether it pays to go on. What waits can be counted, and what links like it earned
is on record, so a first guess is cheap. It is wrong in two ways that pull apart: the best links left first, so those
that wait are worse than their record; and what is behind pages that nobody has seen yet is in no record. So the guess
is given with an interval, whose limits come from how far such guesses were off in replays, and where these say nothing,
nothing is said.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scrapy_focus.core.policy import Left
from scrapy_focus.policies.branching.arms import FIRST_HITS, PAGES, TARGETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_WINDOW = 60.0  # pulls over which the record of an arm goes
_RECENT = 200.0  # pulls of all arms over which goes what is called recent
_SHRINK = 0.3  # pulls that reveal nothing, added to those of each arm
_MIN_FOUND = 10  # with fewer found, nothing is said
_MOST_NEWS = 2.0  # page links that each page reveals; with more, nobody can see how large the site is
_MOST_RATIO = 3.0  # between the limits of the number of all targets; with more, they say nothing

# log(1 + left) - log(1 + guess) is expected to be a sum of these: quantiles of it, fitted with `benchmarks/coverage.py
# fit` to crawls of 29 recorded and made-up sites, each with the same weight
_LOW = {"one": -4.98, "hits": 4.13, "pages": -0.29}  # quantile 0.05
_MIDDLE = {"one": -0.64, "hits": 0.80}  # 0.5
_HIGH = {"one": 0.02, "news": 1.32}  # 0.95


class Signs(NamedTuple):
    """What an estimate is made of, as of now."""

    found: int
    guess: float  # targets among what waits, and among what that reveals
    hits: float  # targets per pull, recently
    news: float  # new page links per pull of pages, recently
    pages: float  # links that wait and are taken for pages, for each page that was fetched

    def terms(self) -> dict[str, float]:
        """Return what the quantiles are linear in."""
        return {
            "one": 1.0, "hits": math.sqrt(self.hits), "news": math.log1p(self.news), "pages": math.log(self.pages),
        }  # fmt: skip


class Coverage:
    """Keeps a record of what the pulls of each arm found and revealed, and tells how many targets are left.

    The guess is what the links that wait are expected to earn, each by the record of its arm, and what the links to
    targets are that they are expected to reveal. Nothing further ahead is guessed: that is in the interval. It reaches
    up as far as pages still reveal new pages, for then there is more to come that nobody has seen. It reaches down the
    further, the rarer finds have become and the more pages wait for each that was fetched, for then what waits is what
    nobody wanted.

    :meth:`left` says ``None``, for unknown, until ten targets are found; while pages reveal more than two new pages
    each; and while the limits of the number of all targets, found or not, are more than a factor of 3 apart.

    Notes
    -----
    *Calibration*: on crawls for data files, by :class:`~scrapy_focus.policies.branching.BranchingBandit`. Where pages
    are targets, or another policy chooses, the interval need not hold 90 %. ``benchmarks/RESULTS.md`` says how often it
    held.

    *Cost*: some 20 microseconds a pull; :meth:`left` is linear in arms, 0.15 ms for 2,048.

    *Memory*: 24 bytes an arm.

    References
    ----------
    Koenker, Bassett: Regression quantiles. Econometrica 46 (1978), for the limits.

    Examples
    --------
    A hundred pages wait in arm 0, and as many were fetched; each of those led to a file.

    >>> kinds = np.array([PAGES, TARGETS], np.int8)
    >>> coverage = Coverage()
    >>> for _ in range(100):
    ...     coverage.note(0, False, {1: 1}, kinds)
    ...     coverage.note(1, True, {}, kinds)
    >>> coverage.left(np.array([100, 0]), kinds)
    Left(low=11.0, middle=92.0, high=102.0)
    >>> Coverage().left(np.array([100, 0]), kinds) is None
    True
    """

    def __init__(self) -> None:
        self.found = 0
        self._records = np.zeros((64, 3))  # by arm: pulls, hits, revealed links times the hits per pull of their arms
        self._page_pulls = 0
        self._page_hits = 0
        self._recent = (0.0, 0.0, 0.0, 0.0)  # pulls, pulls of pages, hits, new page links; decayed

    def note(self, arm: int, hit: bool, revealed: Mapping[int, float], kinds: NDArray[np.int8]) -> None:
        """A pull of an arm found a target or did not, and revealed so many new links of each arm.

        ``kinds`` says of which kind each arm is, shape (n_arms,): ``PAGES`` or ``TARGETS`` of ``learn/branching.py``.
        """
        self._ensure(len(kinds))
        is_page = kinds[arm] == PAGES
        self.found += hit
        self._page_pulls += int(is_page)
        self._page_hits += int(is_page and hit)
        targets = pages = 0.0
        for other, count in revealed.items():
            if kinds[other] == TARGETS:
                pulls, hits, _ = self._records[other]
                targets += count * (hits + FIRST_HITS[TARGETS]) / (pulls + 1)
            else:
                pages += count
        record = self._records[arm]
        if record[0] > _WINDOW:
            record *= 1 - 1 / _WINDOW
        record += 1.0, float(hit), targets
        now = 1.0, float(is_page), float(hit), pages
        decay = 1 - 1 / _RECENT
        a, b, c, d = (old * decay + new for old, new in zip(self._recent, now, strict=True))
        self._recent = a, b, c, d

    def left(self, waiting: NDArray[np.generic], kinds: NDArray[np.int8]) -> Left | None:
        """Return how many targets are left to be found, in whole numbers, or ``None`` while that is unknown.

        ``waiting`` says how many links of each arm wait or are in flight, shape (n_arms,).
        """
        if not waiting.any():
            return Left(0.0, 0.0, 0.0)
        return known(self.signs(waiting, kinds))

    def signs(self, waiting: NDArray[np.generic], kinds: NDArray[np.int8]) -> Signs:
        """Return what :meth:`left` judges by; for whoever fits it anew."""
        self._ensure(len(kinds))
        pulls, hits, targets = self._records[: len(kinds)].T
        first = FIRST_HITS.copy()
        first[PAGES] = (self._page_hits + first[PAGES]) / (self._page_pulls + 1)
        each = (hits + first[kinds]) / (pulls + 1) + targets / (pulls + _SHRINK)
        recent, recent_pages, recent_hits, new_pages = self._recent
        pages = float(waiting[kinds == PAGES].sum())
        return Signs(
            self.found, float(waiting @ each), recent_hits / max(recent, 1), new_pages / max(recent_pages, 1e-9),
            (1 + pages) / (1 + self._page_pulls),
        )  # fmt: skip

    def _ensure(self, n_arms: int) -> None:
        """Let at least this many arms have a record."""
        if n_arms > len(self._records):
            room = max(n_arms, 2 * len(self._records)) - len(self._records)
            self._records = np.concatenate([self._records, np.zeros((room, 3))])


def expected(signs: Signs) -> Left:
    """Return the interval that follows from the signs, whether it says anything or not."""
    terms = signs.terms()
    low, middle, high = (
        (1 + signs.guess) * math.exp(sum(weight * terms[name] for name, weight in weights.items())) - 1
        for weights in (_LOW, _MIDDLE, _HIGH)
    )
    low = float(max(math.floor(low), 0))
    high = max(float(math.ceil(high)), low)
    return Left(low, min(max(float(round(middle)), low), high), high)


def known(signs: Signs) -> Left | None:
    """Return the interval that follows from the signs, if it says something."""
    left = expected(signs)
    apart = (signs.found + left.high) / max(signs.found + left.low, 1)
    return left if signs.found >= _MIN_FOUND and signs.news <= _MOST_NEWS and apart <= _MOST_RATIO else None
