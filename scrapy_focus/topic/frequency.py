"""The frequency of a topic among unlabelled pages, and the meaning of a score at that frequency.

A classifier that was trained on as many pages of one kind as of the other assumes equal frequencies. Its scores still
distinguish the kinds. So a mixture of two kinds is fitted to the scores of fetched pages: the examples show roughly
what the scores of the topic are, and the pages show how many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ON, OFF, UNKNOWN = 1, 0, -1  # labels
_ROUNDS = 40
_START = 0.15
_LOW, _TOP = 0.25, 0.97  # assumed share of pages that score below the kinds' means at first
_EXAMPLE, _EXAMPLES = 5.0, 50.0  # pages that an example counts for, and all of them together, at most
_SEEN_ON, _SEEN_OFF = 1.0, 9.0  # pages on the topic and off it that count as seen before the first
_APART = 0.5  # minimum distance of the kinds in standard deviations
_LEAST = 1e-3
_LESS = 2.0  # standard errors below the estimate: overestimating the topic costs more than underestimating it
_HIGHEST = 0.9  # share of the topic
_BESIDE = 2.5  # minimum distance of the kinds in deviations, if one of them is known ...
_MOST_BESIDE = 0.6  # ... and the largest share of the other
_FLOOR = 0.3  # minimum fraction of the estimate that is used


class Mixture(NamedTuple):
    """Two kinds of scores."""

    slope: float
    shift: float  # log-odds of a score are slope * score + shift
    frequency: float  # share of the topic among the pages that are unknown

    def odds(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-odds that pages with these scores are on the topic, in the same shape."""
        return self.slope * scores + self.shift

    def shares(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities that pages with these scores are on the topic, in the same shape."""
        shares: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(self.odds(scores), -30, 30)))
        return shares


def mixture(scores: NDArray[np.float64], labels: NDArray[np.int8], *, frequency: float | None = None) -> Mixture:
    """Fit two normal distributions of one width to scores, by expectation maximization.

    Parameters
    ----------
    scores, labels
        Shapes (n,): scores by a model that did not learn from the page itself, and ``ON``, ``OFF`` or ``UNKNOWN``. At
        least one page is on the topic, and one is unknown.
    frequency
        The share of the topic among the unknown, if it is known.

    References
    ----------
    Saerens, Latinne, Decaestecker: Adjusting the Outputs of a Classifier to New a Priori Probabilities. Neural
    Computation 14 (2002).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate([rng.normal(2, 1, 10), rng.normal(2, 1, 50), rng.normal(-2, 1, 950)])
    >>> found = mixture(scores, np.repeat([ON, UNKNOWN], [10, 1000]).astype(np.int8))
    >>> 0.03 < found.frequency < 0.07
    True
    """
    unknown = labels == UNKNOWN
    on = np.where(labels == ON, 1.0, 0.0)
    counted = np.where(labels == ON, min(_EXAMPLE, _EXAMPLES / (labels == ON).sum()), 1.0)
    of_unknown = scores[unknown]
    low, top = np.quantile(of_unknown, [_LOW, _TOP]).tolist()
    high = min(max(float(scores[labels == ON].mean()), low), top)
    variance = max((high - low) / 4, _LEAST) ** 2
    share = _START if frequency is None else frequency
    for _ in range(_ROUNDS):
        found = _of(high, low, variance, share)
        on[unknown] = found.shares(of_unknown)
        one, other = on * counted, (1 - on) * counted
        low = float(other @ scores / max(other.sum(), _LEAST))
        high = max(float(one @ scores / one.sum()), low + _APART * variance**0.5)
        squares = float(one @ (scores - high) ** 2 + other @ (scores - low) ** 2)
        variance = max(squares / float(counted.sum()), _LEAST**2)
        if frequency is None:
            share = (float(on[unknown].sum()) + _SEEN_ON) / (len(of_unknown) + _SEEN_ON + _SEEN_OFF)
    return _of(high, low, variance, share)


def mixture_beside(
    scores: NDArray[np.float64], low: float, deviation: float, *, frequency: float | None = None
) -> Mixture:
    """Fit the mean of a second kind of scores, and its share, beside a kind that is known.

    Parameters
    ----------
    scores
        Of pages, shape (n,); at least one.
    low, deviation
        Mean and standard deviation of pages off the topic. Those on it have the same deviation, and a mean that is at
        least 2.5 deviations higher.
    frequency
        The share of the topic, if it is known.

    Notes
    -----
    Pages of 2.5 deviations or more above the mean of others are on the topic, however rare it is: if the two kinds
    overlap, as for a vague sentence, a crawl would find nothing to learn from otherwise.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = mixture_beside(np.concatenate([rng.normal(4, 1, 50), rng.normal(0, 1, 950)]), 0.0, 1.0)
    >>> 0.04 < found.frequency < 0.06, bool(found.shares(np.array([1.0]))[0] < 0.5 < found.shares(np.array([3.0]))[0])
    (True, True)
    """
    least = low + _BESIDE * deviation
    high = max(float(np.quantile(scores, _TOP)), least)
    share = _START if frequency is None else frequency
    for _ in range(_ROUNDS):
        found = _of(high, low, deviation**2, share)
        on = found.shares(scores)
        high = max(float(on @ scores) / max(float(on.sum()), _LEAST), least)
        if frequency is None:
            share = min((float(on.sum()) + _SEEN_ON) / (len(scores) + _SEEN_ON + _SEEN_OFF), _MOST_BESIDE)
    found = _of(high, low, deviation**2, share)
    return found._replace(shift=max(found.shift, -found.slope * least))


def believed(
    examples: NDArray[np.float64], unknown: NDArray[np.float64], share: float, *, at_most: bool = True
) -> tuple[float, float]:
    """Return the frequency of the topic, and a safe lower bound: the lower end of an interval.

    Half of the pages on the topic score above the median of its examples, if these are like them. So twice the share
    of all pages that do is one estimate. Pages that are off the topic can only add to it. The lower of it and
    ``share``, that of a mixture, is used: errors that inflate one of them seldom inflate the other.

    If pages differ from the examples, a mixture finds too few, as measured, and these score lower than the examples.
    Then the higher estimate is used unchanged.

    Parameters
    ----------
    examples, unknown
        Scores of pages on the topic and of others, by models that did not learn from these pages.
    share
        Of the topic among the unknown, by a mixture.
    at_most
        Whether to use the lower of both.

    Examples
    --------
    >>> [round(share, 2) for share in believed(np.array([1.0, 1.7, 2.0]), np.linspace(-3, 2, 100), 0.4)]
    [0.13, 0.06]
    """
    n = len(unknown)
    above = 2 * (float((unknown >= np.median(examples)).sum()) + 0.5) / (n + 1)
    if not at_most:
        share = min(max(share, above), _HIGHEST)
        return share, share
    share = max(min(share, above), _FLOOR * share)
    return share, max(share - _LESS * (share * (1 - share) / n) ** 0.5, _FLOOR * share)


def _of(high: float, low: float, variance: float, share: float) -> Mixture:
    slope = (high - low) / variance
    return Mixture(slope, float(np.log(share / (1 - share))) - slope * (high + low) / 2, share)
