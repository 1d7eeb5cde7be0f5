"""How many targets a crawl has left to find, as an estimate with limits.

The user wants to know whether it is worth continuing. Queued links can be counted, and results of similar links are
recorded. But the best links left first, so that queued ones are worse than the record. Past predictions show how much
worse: of fetched pages that looked like the queued ones, a known share led to targets. No record covers the links of
pages that nobody has seen. So an estimate comes with an interval, derived from the errors of such estimates in crawls
of other sites. If the interval is too wide to be useful, no estimate is given.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scrapy_focus.core.abilities import Left
from scrapy_focus.policies.branching.arms import FIRST_HITS, PAGES, TARGETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_WINDOW = 60.0  # pulls over which a record averages, of an arm or of pages with similar predictions
_RECENT = 200.0  # pulls of all arms that count as recent
_SIZES = 50.0  # pages with targets over which their number is averaged
_SHRINK = 0.3  # pulls without revealed links, added to those of each arm
_STEPS, _STEP, _FIRST = 40, 0.5, -10.0  # log-odds are binned in steps of a half from -10 on
_NEIGHBOUR = 3.0  # pulls that the results of pages a step better count for
_SLACK = 1.25  # targets that may be queued, in multiples of those that pages lately led to
_MIN_FOUND = 10  # with fewer finds, the result is unknown
_MIN_PULLS = 150  # with fewer, unknown while pages reveal a new page each, or more
_STEADY = 0.5  # of the recent finds: unknown with a lower upper limit, if more may be queued
_RECENT_SHARE = 0.5  # of all finds: unknown with more recent ones, if more may be queued than were found
_BLIND = 0.1  # of what may be found several steps on: unknown with a lower upper limit
_MOST_RATIO = 3.0  # largest useful ratio of the limits of the number of all targets

# Fitted with `benchmarks/coverage.py fit`, to crawls of recorded and synthetic sites, each with the same weight
_MIDDLE = {"targets": 0.246, "one": 0.259, "rate": 0.931, "gap": 0.188}
_SPREAD = {"one": -1.54, "middle": -0.02, "gap": 0.085, "pages": 1.149, "news": 0.195}
_LIMITS = {"below": 2.517, "above": 2.243}


class Signs(NamedTuple):
    """The inputs of an estimate, as of now."""

    found: int
    pulls: int
    targets: float  # targets among queued predicted targets, by the records of their arms
    pages: float  # queued pages that lead to targets, by the results of pages with the same prediction
    arms: float  # targets among all queued links and what they reveal, by the records of arms alone
    most: float  # targets behind queued pages, if pages with targets lead to as many as lately
    news: float  # new page links per pull of pages, recently
    recent: float = 0.0  # targets that were found recently
    ahead: float = 0.0  # targets among all queued links and what they reveal, several steps on, by the records of arms

    @property
    def reach(self) -> float:
        """Upper limit of targets, including those behind pages not yet revealed; infinite while the queue keeps
        growing.
        """
        return _SLACK * self.most / (1 - self.news) if self.news < 1 else math.inf

    @property
    def gap(self) -> float:
        """How far apart the two estimates are, as the logarithm of a ratio: far in arms that mix good links and bad."""
        return math.log1p(self.arms) - math.log1p(self.targets + self.pages)

    @property
    def rate(self) -> float:
        """Targets per pull in the whole crawl, as a logarithm."""
        return math.log(max(self.found, 1) / max(self.pulls, 1))


class Coverage:
    """Records what pulls found and revealed, and estimates how many targets are left.

    The share of targets among queued predicted targets is taken from the pulled ones of the same arm. Queued pages
    are judged by their predictions: of pages with the same prediction when picked, some led to targets, and the same
    share is expected. The estimate is lowered where finds are rare, because there are always more links that look a
    little like finds.

    The limits are those of a conformal prediction over sites: as far away as such estimates were wrong on other
    sites, in units of their expected error. That error grows with the disagreement with the estimate from the records
    of arms alone, with the share of pages in the estimate, and with the number of new pages that each page reveals.
    The upper limit is at most the number of targets behind queued links, once pages reveal less than one new page
    each.

    :meth:`left` returns ``None``, for unknown, until ten targets are found; for 150 pulls, while pages reveal one new
    page each or more; and while the limits of the number of all targets, found or not, are more than a factor of 3
    apart. It also returns ``None`` while targets come steadily: while the upper limit is less than half of the recent
    finds, though more may be behind queued links. The records of arms, multiplied over several steps (from a list to
    a data set, its resources and their files), bound how many there may be. The result is unknown while the upper
    limit is below a tenth of that bound, and while the bound is more than was found and most finds are recent.

    Notes
    -----
    *Calibration*: on crawls for data files, by :class:`~scrapy_focus.policies.branching.BranchingBandit`. Where pages
    are targets, or with another policy, the interval need not cover 90 %. ``benchmarks/results/stopping.md`` reports
    its coverage on sites that it was not fitted to.

    *Cost*: about 5 microseconds a pull; :meth:`left` is linear in arms and in the drawn pages, 0.1 ms for 2,048 arms.
    Drawing takes as long with ten arms, and twice as long with a thousand.

    *Memory*: 24 bytes an arm.

    References
    ----------
    Vovk, Gammerman, Shafer: Algorithmic Learning in a Random World (2005), for conformal prediction. Papadopoulos,
    Gammerman, Vovk: Normalized nonconformity measures for regression (2008), for the units. Dunn, Wasserman, Ramdas:
    Distribution-free prediction sets for two-layer hierarchical models (2022), for equally weighted sites.

    Examples
    --------
    A hundred pages are queued in arm 0, and as many were fetched; each of those led to a file.

    >>> kinds = np.array([PAGES, TARGETS], np.int8)
    >>> coverage = Coverage()
    >>> for _ in range(100):
    ...     coverage.note(0, False, {1: 1}, kinds, odds=2.0)
    ...     coverage.note(1, True, {}, kinds)
    >>> coverage.left(np.array([100, 0]), kinds, np.array([0]), np.array([2.0]))
    Left(low=13.0, middle=68.0, high=125.0)
    >>> Coverage().left(np.array([100, 0]), kinds, np.array([0]), np.array([2.0])) is None
    True
    """

    _recent_hits = 0.0  # decayed; here, too, because jobs of earlier versions have none
    _first: Mapping[int, float] = MappingProxyType({})  # by arm: hits expected of a pull, if not those of its kind

    def __init__(self) -> None:
        self.found = 0
        self.pulls = 0
        self._records = np.zeros((64, 3))  # by arm: pulls, hits, revealed links times the hits per pull of their arms
        self._alike = np.zeros((_STEPS, 2))  # by log-odds of pages: pulls, and how many of them led to targets
        self._page_pulls = 0
        self._page_hits = 0
        self._recent = (0.0, 0.0)  # pulls of pages, new page links; decayed
        self._sizes = (0.0, 0.0)  # pages that led to targets, targets; decayed

    def expect(self, arm: int, hits: float) -> None:
        """Set how many targets a pull of an arm is expected to find before the first one, if not those of its kind."""
        self._first = {**self._first, arm: hits}

    def note(
        self, arm: int, hit: bool, revealed: Mapping[int, float], kinds: NDArray[np.int8], odds: float = 0.0
    ) -> None:
        """Record a pull of an arm: whether it found a target, and how many new links of each arm it revealed.

        ``kinds`` gives the kind of each arm, shape (n_arms,): ``PAGES``, ``TARGETS`` or ``RENDERINGS`` of
        ``arms.py``. ``odds`` is the prediction for a link to a page: the log-odds that it leads to a target.
        """
        self._ensure(len(kinds))
        self.found += hit
        self.pulls += 1
        targets = pages = 0.0
        for other, count in revealed.items():
            if kinds[other] == TARGETS:
                pulls, hits, _ = self._records[other]
                targets += count * (hits + self._first.get(other, FIRST_HITS[TARGETS])) / (pulls + 1)
            else:
                pages += count
        _add(self._records[arm], (1.0, float(hit), targets))
        if kinds[arm] != TARGETS:
            self._note_page(hit, targets, odds)
        decay = 1 - 1 / _RECENT
        self._recent_hits = self._recent_hits * decay + hit
        self._recent = self._recent[0] * decay + (kinds[arm] != TARGETS), self._recent[1] * decay + pages

    def left(
        self,
        waiting: NDArray[np.generic],
        kinds: NDArray[np.int8],
        arms: NDArray[np.integer],
        odds: NDArray[np.floating],
        *,
        ahead: float = 0.0,
    ) -> Left | None:
        """Return how many targets are left to find, in whole numbers; ``None`` while that is unknown.

        ``waiting`` is the number of links of each arm that are queued or in flight, shape (n_arms,). ``arms`` and
        ``odds`` belong to queued pages drawn at random within each arm, shapes (n,); arms may have different numbers
        of them.
        """
        if not waiting.any():
            return Left(0.0, 0.0, 0.0)
        return known(self.signs(waiting, kinds, arms, odds)._replace(ahead=ahead))

    def signs(
        self,
        waiting: NDArray[np.generic],
        kinds: NDArray[np.int8],
        arms: NDArray[np.integer],
        odds: NDArray[np.floating],
    ) -> Signs:
        """Return the inputs of :meth:`left`; for fitting it."""
        n = len(kinds)
        self._ensure(n)
        pulls, hits, targets = self._records[:n].T
        first = FIRST_HITS.copy()
        first[PAGES] = (self._page_hits + first[PAGES]) / (self._page_pulls + 1)
        expected = first[kinds]
        if self._first:
            expected[list(self._first)] = list(self._first.values())
        own = (hits + expected) / (pulls + 1)
        is_page = kinds != TARGETS
        predicted, pages = (float(waiting[of].sum()) for of in (~is_page, is_page))
        shares, general = self._shares()
        drawn = np.bincount(arms, minlength=n)
        steps = np.clip((odds - _FIRST) / _STEP, 0, _STEPS - 1).astype(np.intp)
        sums = np.bincount(arms, shares[steps], n)
        lead = np.where(drawn > 0, sums / np.maximum(drawn, 1), general)
        page_pulls, new_pages = self._recent
        each = max(self._sizes[1] / max(self._sizes[0], 1e-9), 1.0)
        return Signs(
            self.found, self.pulls, float((waiting * own)[~is_page].sum()), float((waiting * lead)[is_page].sum()),
            float(waiting @ (own + targets / (pulls + _SHRINK))),
            predicted + pages * each, new_pages / max(page_pulls, 1e-9), self._recent_hits,
        )  # fmt: skip

    def _note_page(self, hit: bool, targets: float, odds: float) -> None:
        found = hit + targets
        self._page_pulls += 1
        self._page_hits += hit
        _add(self._alike[int(min(max((odds - _FIRST) / _STEP, 0), _STEPS - 1))], (1.0, min(found, 1.0)))
        if found > 0.5:
            decay = 1 - 1 / _SIZES
            self._sizes = self._sizes[0] * decay + 1, self._sizes[1] * decay + found

    def _shares(self) -> tuple[NDArray[np.float64], float]:
        """Return the share of pages that lead to targets, by their predictions, shape (_STEPS,), and of all.

        If few pages of a step were pulled, the next better step fills in, with log-odds lowered by the step.
        """
        all_pulls, all_found = self._alike.sum(axis=0).tolist()
        general = share = all_found / max(all_pulls, 1)
        shares = []
        lower = 1.0  # once there is a better step to be below
        for pulls, found in reversed(self._alike.tolist()):
            if pulls:
                lower = math.exp(-_STEP)
            share = share * lower / (1 - share + share * lower)
            share = (found + _NEIGHBOUR * share) / (pulls + _NEIGHBOUR)
            shares.append(share)
        return np.array(shares[::-1]), general

    def _ensure(self, n_arms: int) -> None:
        """Make room for at least this many arms."""
        if n_arms > len(self._records):
            room = max(n_arms, 2 * len(self._records)) - len(self._records)
            self._records = np.concatenate([self._records, np.zeros((room, 3))])


def expected(signs: Signs) -> Left:
    """Return the interval that follows from the inputs, whether useful or not."""
    middle = middle_of(signs, **_MIDDLE)
    spread = spread_of(signs, middle, **_SPREAD)
    low = float(max(math.floor(math.expm1(middle - _LIMITS["below"] * spread)), 0))
    high = max(math.ceil(min(math.expm1(middle + _LIMITS["above"] * spread), signs.reach)), low)
    return Left(low, min(max(float(round(math.expm1(middle))), low), high), float(high))


def middle_of(signs: Signs, targets: float, one: float, rate: float, gap: float) -> float:
    """Return the expected logarithm of 1 + the number of targets left."""
    pages = signs.pages * math.exp(one + rate * signs.rate + gap * signs.gap)
    return math.log1p(signs.targets * math.exp(targets) + pages)


def spread_of(signs: Signs, expected: float, **weights: float) -> float:
    """Return the expected error of that logarithm; ``expected`` is that of :func:`middle_of`."""
    terms = spread_terms(signs, expected)
    return math.exp(sum(weight * terms[name] for name, weight in weights.items()))


def spread_terms(signs: Signs, expected: float) -> dict[str, float]:
    """Return the variables of the linear model of the logarithm of the spread."""
    share = signs.pages / (signs.targets + signs.pages + 1)
    return {
        "one": 1.0, "middle": expected, "gap": abs(signs.gap), "pages": share, "news": math.log1p(signs.news),
    }  # fmt: skip


def known(signs: Signs) -> Left | None:
    """Return the interval that follows from the inputs, if it is useful."""
    left = expected(signs)
    apart = (signs.found + left.high) / max(signs.found + left.low, 1)
    too_early = signs.found < _MIN_FOUND or (signs.pulls < _MIN_PULLS and signs.news >= 1)
    is_steady = left.high < min(_STEADY * signs.recent, signs.reach)
    is_young = signs.ahead > signs.found and signs.recent > _RECENT_SHARE * signs.found
    is_blind = left.high < _BLIND * signs.ahead
    return None if too_early or is_steady or is_young or is_blind or apart > _MOST_RATIO else left


def _add(record: NDArray[np.float64], pull: tuple[float, ...]) -> None:
    """Add a pull to a record whose pulls come first; old pulls fade."""
    if record[0] > _WINDOW:
        record *= 1 - 1 / _WINDOW
    record += pull
