"""How often pages change, from visits that only show whether they did, and how many new links come up on them.

Three things conflict. A visit shows little: that a page changed since the last one, once or ten times. Intervals
between visits differ, so that the share of visits with a change is not a rate. And there are a million pages, each
with a memo of 64 bytes. So each page has the likelihood of 16 rates, from once in three years to every ten minutes,
and the prior is the distribution over all pages.

A page that changes at random, with rate r, has changed within t seconds with probability 1 - exp(-r t). New links are
counted: their rate has a posterior of two Gamma distributions, one for pages that were found in the same arm, and one
for the rare hub among them.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

DAY: Final = 86400.0  # seconds

#: Rates of change, per second, shape (16,): once in three years to every ten minutes, in equal steps of the logarithm.
RATES: Final = np.geomspace(1 / (3 * 365 * DAY), 1 / 600, 16)
RATES.flags.writeable = False

#: The record of a watched page, 64 bytes. A policy keeps it as the memo of the page.
WATCHED: Final = np.dtype(
    [
        ("log", "<f2", (16,)),  # log likelihood of the rates, the largest 0; without the prior
        ("at", "<f8"),  # the last visit, seconds since the epoch
        ("births", "<f4"),  # new links that came up between visits
        ("seen", "<f4"),  # seconds over which they came up
        ("weight", "<f4"),  # importance of the stored copy: the value of a second in which it is current
        ("arm", "<i4"),  # where the page was found: pages of an arm share a prior of births; -1: unknown
        ("visits", "<u2"),  # visits that showed whether the page changed, and the first
        ("changes", "<u2"),  # visits at which it had changed
        ("misses", "u1"),  # for the policy: failed visits in a row
        ("prior", "u1"),  # number of its prior
        ("mark", "<u2"),  # by which a policy recognises a record
    ]
)

_SCALARS = struct.Struct("<dfffiHHBB")  # of WATCHED, from byte 32: ten times as fast as by name
_MOST = 65535  # visits that are counted
_MOST_ARMS = 4096  # arms with a separate prior of births; pages of others have that of all pages
_PRIORS = 255
_MOMENT = 0.001  # seconds: two visits within it count as simultaneous
_LEAST = -60000.0  # of a log likelihood, as float16 holds
_SHARES = 2.0**32  # sums are whole multiples of this, so that subtractions are exact
_BIRTHS = 2.0**10


class Changes:
    """Statistics of how all pages of a crawl change; a page itself is a record of :data:`WATCHED`.

    The prior is learned during the crawl: from the rates of all pages that were visited twice or more, each counted
    once, however often it is visited. It is renewed whenever a quarter more visits were seen. A record notes its
    prior, and keeps it until its next visit. So values derived from a record never change between two visits, and
    sums over all pages can be updated by subtracting the old value and adding the new one.

    Parameters
    ----------
    half_life
        Seconds after which a visit counts half, so that pages that become quick or slow are followed. ``math.inf``:
        all visits count alike. None of the last twenty visits of a page counts less than half.

    Examples
    --------
    >>> changes = Changes()
    >>> record = changes.new(0.0)
    >>> for day in range(1, 13):
    ...     changes.visited(record, day * DAY, changed=day % 3 == 0, births=0.5)
    >>> low, high = changes.interval(record, 0.90)
    >>> [round(DAY * rate, 2) for rate in (low, changes.rate(record), high, changes.births(record))]
    [0.13, 0.42, 0.84, 0.31]
    """

    def __init__(self, *, half_life: float = 30 * DAY) -> None:
        if not half_life > 0:
            raise ValueError(f"half_life={half_life!r} is not a number of seconds above 0; use math.inf for none")
        self.half_life = half_life
        self.visits = 0  # that showed whether a page changed
        self._renew = 16
        self._shares = np.zeros(16, dtype=np.int64)
        self._births = np.zeros(1, dtype=np.int64)  # by arm; the last is that of all pages
        self._seen = np.zeros(1, dtype=np.int64)
        self._priors = np.zeros((0, 16))  # log
        self._means: list[NDArray[np.float32]] = []  # births a second, by arm; the last is that of all pages
        self._clumps: list[float] = []  # links that come up together, by the number of the prior
        self._excess, self._expected = 1.0, 1.0  # squares of what came up beyond what was expected, and that
        self._read: dict[bytes, NDArray[np.float64]] = {}
        self._add_prior()

    @property
    def newest(self) -> int:
        """The number of the prior for new observations."""
        return len(self._priors) - 1

    def new(self, at: float, *, weight: float = 1.0, arm: int = -1) -> np.void:
        """Return the record of a page that was fetched for the first time."""
        record: np.void = np.zeros(1, dtype=WATCHED)[0]
        record["at"], record["weight"], record["arm"] = at, weight, arm
        record["visits"] = 1
        record["prior"] = len(self._priors) - 1
        return record

    def visited(self, record: np.void, at: float, changed: bool | None, births: float = 0.0) -> None:
        """Learn from a visit: whether the page changed since the last, and how many new links came up. In place.

        ``None`` for a failed visit: the record is unchanged. If no time passed since the last visit, the visit is
        counted and shows nothing.
        """
        if changed is None:
            return
        self._count(record, -1)
        seconds = at - float(record["at"])
        if seconds > _MOMENT:
            self._compare(record, self.births(record) * seconds, births)
            self._weigh(record, seconds, changed, births)
            record["at"] = at
        self.visits += 1
        if self.visits >= self._renew and len(self._priors) < _PRIORS:
            self._add_prior()
            self._renew = max(self.visits + 16, self.visits * 5 // 4)
        record["prior"] = len(self._priors) - 1
        record["visits"] = min(_MOST, int(record["visits"]) + 1)
        record["changes"] = min(_MOST, int(record["changes"]) + changed)
        self._count(record, 1)

    def expect(self, record: np.void, seconds: float) -> None:
        """Learn that a page claims to stay unchanged for a time, as from half a visit that found it so. In place."""
        log = record["log"] - RATES * (_BELIEVED * min(seconds, _LONGEST))
        record["log"] = np.maximum(log - log.max(), _LEAST)

    def posterior(self, record: np.void) -> NDArray[np.float64]:
        """Return the probability of each rate, shape (16,), read-only."""
        key = record.tobytes()
        known = self._read.get(key)
        if known is None:
            if len(self._read) > 3:
                self._read.clear()
            known = self._read[key] = self.posteriors(record)
            known.flags.writeable = False
        return known

    def posteriors(self, records: NDArray[np.void] | np.void) -> NDArray[np.float64]:
        """Return the probability of each rate for each of n pages, shape (n, 16)."""
        odds: NDArray[np.float64] = np.exp(records["log"] + self._priors[records["prior"]])
        odds /= np.add.reduce(odds, axis=-1, keepdims=True)
        return odds

    def rate(self, record: np.void) -> float:
        """Return how often the page is expected to change, per second."""
        return float(self.posterior(record) @ RATES)

    def births(self, record: np.void) -> float:
        """Return how many new links are expected to come up on the page, per second."""
        _, births, seen, _, arm, _, _, _, prior = _SCALARS.unpack_from(record.tobytes(), 32)
        means, clump = self._means[prior], self._clumps[prior]
        births, seen = births / clump, seen / clump
        first = _SHAPE / means[arm if 0 <= arm < len(means) - 1 else -1].item()
        like, hub = first + seen, _HUB + seen
        odds = _HUBS + _SHAPE * math.log(_HUB / hub * like / first) - births * math.log(hub / like)
        is_hub = 1 / (1 + math.exp(-odds)) if odds > -_SURE else 0.0
        return float((_SHAPE + births) * (is_hub / hub + (1 - is_hub) / like))

    def all_births(self, records: NDArray[np.void]) -> NDArray[np.float64]:
        """Return how many new links are expected to come up on each of n pages, per second, shape (n,)."""
        known: NDArray[np.float64] = np.empty(len(records))
        priors, arms = records["prior"], records["arm"]
        numbers = set(priors.tolist())
        for prior in numbers:
            rows, means = priors == prior if len(numbers) > 1 else slice(None), self._means[prior]
            found = arms[rows]
            first = _SHAPE / means[np.where((found >= 0) & (found < len(means) - 1), found, -1)]
            births, seen = (records[name][rows] / self._clumps[prior] for name in ("births", "seen"))
            like, hub = first + seen, _HUB + seen
            odds = _HUBS + _SHAPE * np.log(_HUB / hub * like / first) - births * np.log(hub / like)
            is_hub = 1 / (1 + np.exp(-np.maximum(odds, -_SURE)))
            known[rows] = (_SHAPE + births) * (is_hub / hub + (1 - is_hub) / like)
        return known

    def interval(self, record: np.void, share: float = 0.90) -> tuple[float, float]:
        """Return bounds of the page's rate, per second, with this probability: equal tails.

        Between the 16 rates the logarithm of the posterior is interpolated, without overshooting.
        """
        density = np.exp(_between(record["log"] + self._priors[record["prior"]]))
        sums = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2)))
        low, high = np.interp([(1 - share) / 2, (1 + share) / 2], sums / sums[-1], _FINE)
        return math.exp(low), math.exp(high)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": {}}

    def _compare(self, record: np.void, expected: float, births: float) -> None:
        """Learn whether links come up one by one or in clumps, from a page with a record."""
        if record["visits"] >= _KNOWN:
            self._excess += (births - expected) ** 2
            self._expected += expected

    def _weigh(self, record: np.void, seconds: float, changed: bool, births: float) -> None:
        kept = max(0.5 ** (seconds / self.half_life), _KEPT)
        log = RATES * -seconds
        if changed:
            log = np.log(-np.expm1(log))
        log += kept * record["log"]
        log -= log.max()
        record["log"] = np.maximum(log, _LEAST, out=log)
        record["births"] = kept * float(record["births"]) + births
        record["seen"] = kept * float(record["seen"]) + seconds

    def _count(self, record: np.void, times: int) -> None:
        """Add the record of a page to the sums over all pages, or subtract it."""
        _, births, seen, _, arm, visits, _, _, _ = _SCALARS.unpack_from(record.tobytes(), 32)
        if visits < 2:
            return
        if arm >= _MOST_ARMS:
            arm = -1
        self._shares += (self.posterior(record) * (times * _SHARES)).astype(np.int64)
        if arm >= len(self._births) - 1:
            self._births, self._seen = _longer(self._births, arm), _longer(self._seen, arm)
        for place in (-1, arm) if arm >= 0 else (-1,):
            self._births[place] += times * int(births * _BIRTHS)
            self._seen[place] += times * int(seen)

    def _add_prior(self) -> None:
        """Renew the prior: the rates of all pages, some pages without visits, and smoothing over neighbours."""
        shares = np.pad(self._shares / _SHARES, 1, mode="edge")
        smooth = (shares[:-2] + 2 * shares[1:-1] + shares[2:]) / 4 + _UNKNOWN / 16
        self._priors = np.vstack([self._priors, np.log(smooth / smooth.sum())])
        self._clumps.append(min(max(self._excess / self._expected, 1.0), _MOST_TOGETHER))
        births, seen = self._births / _BIRTHS, self._seen.astype(np.float64)
        mean = (births[-1] + _FIRST) / (seen[-1] + _FIRST * 30 * DAY)
        self._means.append(((births + _LIKE_ALL) / (seen + _LIKE_ALL / mean)).astype(np.float32))
        self._means[-1][-1] = mean


def record_of(memo: NDArray[np.uint8]) -> np.void:
    """Return the record that a memo holds, as a copy."""
    record: np.void = memo.copy().view(WATCHED)[0]
    return record


def memo_of(record: np.void) -> NDArray[np.uint8]:
    """Return a record as the 64 bytes of a memo."""
    return np.frombuffer(record.tobytes(), dtype=np.uint8)


_FIRST = 0.1  # births, one in a month, before any was seen
_HUBS = math.log(0.02)  # odds that a page is a hub, though those of its arm are none
_HUB = 0.25 * DAY  # of the prior of hubs: half a link in so many seconds
_BELIEVED = 0.5  # weight of the claims of pages about themselves
_LONGEST = 365 * DAY
_KNOWN = 4  # visits
_MOST_TOGETHER = 100.0
_SURE = 500.0  # log odds
_SHAPE = 0.5  # of the prior of births: most pages have few, some have many
_LIKE_ALL = 0.2  # births at which an arm's own rate counts half and that of all pages half
_UNKNOWN = 4.0  # pages without visits, in the prior of rates
_KEPT = 0.5**0.05  # minimum decay of earlier visits at each visit
_PARTS = 8  # between two rates
_FINE = np.interp(np.arange(15 * _PARTS + 1) / _PARTS, np.arange(16), np.log(RATES))


def _longer(sums: NDArray[np.int64], arm: int) -> NDArray[np.int64]:
    longer = np.zeros(max(arm + 2, 2 * len(sums)), dtype=np.int64)
    longer[: len(sums) - 1] = sums[:-1]
    longer[-1] = sums[-1]
    return longer


def _between(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Interpolate 16 values, monotone between neighbours (Fritsch and Carlson), the largest 0; shape (121,)."""
    y = np.maximum(y - y.max(), -50.0)
    steps = np.diff(y)
    product = steps[1:] * steps[:-1]
    slopes = np.zeros(16)
    slopes[0], slopes[-1] = steps[0], steps[-1]
    np.divide(2 * product, steps[1:] + steps[:-1], out=slopes[1:-1], where=product > 0)
    t = np.arange(_PARTS) / _PARTS
    fine = (
        y[:-1, None] * (1 + 2 * t) * (1 - t) ** 2
        + slopes[:-1, None] * t * (1 - t) ** 2
        + y[1:, None] * t**2 * (3 - 2 * t)
        + slopes[1:, None] * t**2 * (t - 1)
    )
    return np.append(fine.ravel(), y[-1])
