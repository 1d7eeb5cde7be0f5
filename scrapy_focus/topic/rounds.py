"""Learning from a few examples and from many unlabelled pages.

Pages of a crawl are mostly off the topic, but which? Many are on it if the crawl does well. Treating them as off the
topic would teach that the very words of the topic are off it. So first only those are used that have least in common
with the examples. Then each page counts as on the topic to the extent that the model of the last round found, when it
was trained without this page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scrapy_focus.topic.frequency import OFF, ON, UNKNOWN, Mixture, believed, mixture

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_SAME_ORDER = 0.6  # rank correlation of pages before and after learning: 0.67 to 0.95 on one web, to 0.43 across webs
_RARE = 0.15  # share of the topic up to which nearly all pages may count as off it at first
_SOME_EXAMPLES = 5  # minimum number of values for a median
_FOLDS = 4
_STRENGTH = 5.0  # inverse of the regularization
_STEPS = 8  # of Newton
_TOO_LITTLE = 1e-3
ENOUGH = 0.5  # of the keywords that a page needs to count as on the topic


class Learned(NamedTuple):
    """A linear model of words, and statistics of its scores."""

    weights: Floats  # of each word of a text of length 1, shape (n_words,)
    hits: float  # weight of how many keywords a text has
    bias: float
    mixture: Mixture
    frequency: float  # share of the topic among the unknown
    unknown: Floats  # scores of these, each by a model that was trained without it
    recognised: int  # examples on the topic that are called relevant by a model that was trained without them


def learn(X: Any, hits: Floats, labels: NDArray[np.int8], *, frequency: float | None, hit_weight: float) -> Learned:
    """Learn what is on the topic.

    Parameters
    ----------
    X
        Texts, a sparse array of shape (n, n_words).
    hits
        How much of the keywords each text has, from 0 to 1, shape (n,).
    labels
        ``ON``, ``OFF`` or ``UNKNOWN``, shape (n,). Some are on the topic, or have ``ENOUGH`` of the keywords.
    frequency
        Share of the topic among the unknown, if it is known.
    hit_weight
        Weight of the keywords in the score of a text.
    """
    K = (X @ X.T).toarray() + hit_weight**2 * np.outer(hits, hits)
    unknown, off = labels == UNKNOWN, labels == OFF
    hit = unknown & (hits >= ENOUGH)
    on = (labels == ON) | hit
    folds = _folds(labels)
    alike = _alike(K, on, off, hits)
    found = _rounds(K, labels, alike, hit, folds, RARE, frequency)
    if found.positive[unknown].mean() > _RARE:
        found = _rounds(K, labels, alike, hit, folds, SOME, frequency)
    if _correlation(alike[unknown], found.scores[unknown]) < _SAME_ORDER:
        found = _rounds(K, labels, alike, hit, folds, OFTEN, frequency)
    i, alphas, bias = fit(K, found.positive, found.negative, on, found.way.anchored)
    mixed, share = found.mixture, frequency
    if share is None:
        sure = np.where(hit, np.int8(ON), labels)
        examples = found.scores[labels == ON] if (labels == ON).any() else found.scores[hit]
        often = found.way is OFTEN and len(examples) >= _SOME_EXAMPLES
        share, low = believed(examples, found.scores[unknown], float(found.positive[unknown].mean()), at_most=not often)
        mixed = mixture(found.scores, sure, frequency=low)
    hits_say = hit_weight**2 * float(hits[i] @ alphas)
    recognised = int((mixed.odds(found.scores[labels == ON]) >= 0).sum())
    return Learned(X[i].T @ alphas, hits_say, bias, mixed, share, found.scores[unknown], recognised)


class Way(NamedTuple):
    """How unlabelled pages are used."""

    first_on: float  # share of them that count as on the topic at first
    first_off: float  # share that count as off the topic at first
    last_off: float  # share that may do so at last
    anchored: float  # minimum weight of what is on the topic: the examples, at least


#: If nearly all pages are off the topic, and those on it are like the examples.
RARE = Way(0.0, 0.9, 1.0, 0.9)
#: If many are on it, as in a crawl that goes well.
SOME = Way(0.0, 0.3, 1.0, 0.8)
#: If many are on it, or all pages differ from the examples, as those of another web do: it learns what distinguishes
#: pages of this web.
OFTEN = Way(0.1, 0.3, 0.6, 0.1)


class _Found(NamedTuple):
    positive: Floats
    negative: Floats
    way: Way
    scores: Floats
    mixture: Mixture


def _rounds(
    K: Floats, labels: NDArray[np.int8], alike: Floats, hit: NDArray[np.bool_], folds: NDArray[np.intp], way: Way,
    frequency: float | None,
) -> _Found:  # fmt: skip
    """Learn in two rounds: from those pages that are most and least like the examples, then from all."""
    unknown = labels == UNKNOWN
    on = (labels == ON) | hit
    sure = np.where(hit, np.int8(ON), labels)
    of_unknown = alike[unknown]
    positive, negative = on.astype(np.float64), (labels == OFF).astype(np.float64)
    if way.first_on:
        positive[unknown] = np.maximum(hit[unknown], of_unknown >= np.quantile(of_unknown, 1 - way.first_on))
    negative[unknown] = (of_unknown <= np.quantile(of_unknown, way.first_off)) & (positive[unknown] == 0)
    for round_ in (0, 1):
        scores = np.empty(len(labels))
        for fold in range(_FOLDS):
            rest, these = folds != fold, folds == fold
            i, alphas, bias = fit(K, positive * rest, negative * rest, on, way.anchored)
            scores[these] = K[np.ix_(these, i)] @ alphas + bias
        found = mixture(scores, sure, frequency=frequency)
        if round_ == 0:
            likely = 1 / (1 + np.exp(-np.clip(found.odds(scores[unknown]), -30, 30)))
            positive[unknown] = np.maximum(likely, ENOUGH * hit[unknown])
            within = scores[unknown] <= np.quantile(scores[unknown], way.last_off)
            negative[unknown] = (1 - positive[unknown]) * within
    return _Found(positive, negative, way, scores, found)


def _correlation(one: Floats, other: Floats) -> float:
    """Return the rank correlation of two orders of the same pages."""
    ranks = np.argsort(np.argsort([one, other], axis=1), axis=1) - (len(one) - 1) / 2
    return float((ranks[0] @ ranks[1]) / (ranks[0] @ ranks[0]))


def _folds(labels: NDArray[np.int8]) -> NDArray[np.intp]:
    """Return which of the folds each text is in, as many of each label in all."""
    rng = np.random.default_rng(0)
    folds = np.empty(len(labels), np.intp)
    for label in (ON, OFF, UNKNOWN):
        (these,) = np.nonzero(labels == label)
        folds[these] = rng.permutation(np.arange(len(these)) % _FOLDS)
    return folds


def _alike(K: Floats, on: NDArray[np.bool_], off: NDArray[np.bool_], hits: Floats) -> Floats:
    """Return the similarity of texts to those on the topic, before anything is learned from the unknown."""
    parts = [(K[:, on].sum(axis=1) - np.where(on, np.diag(K), 0)) / np.maximum(on.sum() - on, 1), hits]
    if off.any():
        i, alphas, bias = fit(K, on.astype(np.float64), off.astype(np.float64), on)
        parts.append(K[:, i] @ alphas + bias)
    alike: Floats = np.sum([part / (part.std() or 1) for part in parts], axis=0)
    return alike


def fit(
    K: Floats, positive: Floats, negative: Floats, anchors: NDArray[np.bool_], anchored: float = 0.0
) -> tuple[NDArray[np.intp], Floats, float]:
    """Return which texts are learned from, the coefficient of each, and the bias of a logistic regression.

    Both classes have the same weight, and in the positive one the anchors at least ``anchored``.
    """
    (i,) = np.nonzero(positive + negative > _TOO_LITTLE)
    one, other, anchors = positive[i], negative[i], anchors[i]
    weight, rest = one[anchors].sum(), one[~anchors].sum()
    if 0 < weight < anchored * (weight + rest):
        one = np.where(anchors, one * rest / weight * anchored / (1 - anchored), one)
    one = one * len(i) / 2 / max(one.sum(), _TOO_LITTLE)
    other = other * len(i) / 2 / max(other.sum(), _TOO_LITTLE)
    return i, *_logistic(K[np.ix_(i, i)], one / (one + other), one + other)


def _logistic(K: Floats, y: Floats, weights: Floats) -> tuple[Floats, float]:
    """Return coefficients and bias of a logistic regression on similarities, by Newton's method; O(n**3)."""
    alphas, bias = np.zeros(len(y)), 0.0
    for _ in range(_STEPS):
        odds = K @ alphas + bias
        p = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
        curvature = np.maximum(weights * p * (1 - p), 1e-6)
        target = odds + weights * (y - p) / curvature
        solved = np.linalg.solve(K + np.diag(1 / (_STRENGTH * curvature)), np.stack([target, np.ones(len(y))], axis=1))
        bias = float(solved[:, 0].sum() / solved[:, 1].sum())
        alphas = solved[:, 0] - bias * solved[:, 1]
    return alphas, bias
