"""A model of a topic that keeps learning from the pages of the crawl, so that it is right at the topic's frequency
there, without examples off the topic.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.learn.modelfile import digest_of
from scrapy_focus.topic.background import Background, Bag, Words
from scrapy_focus.topic.drift import Drift, Halves, missed
from scrapy_focus.topic.frequency import OFF, ON, UNKNOWN
from scrapy_focus.topic.keywords import KeywordRelevance
from scrapy_focus.topic.relevance import SURE, UNSURE, LinearRelevance
from scrapy_focus.topic.rounds import ENOUGH, learn

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

_FIRST = 25  # pages after which it first learns from them; again whenever they are twice as many
_KEPT = 400  # pages
_MOST = 200  # examples of each kind that are learned from together with pages
_ANCHORS = 3  # examples, or pages with many keywords: fewer tell nothing of other pages
_FEW = 0.05  # of the words of a page, as in ``LinearRelevance``
_TRUST = 20  # examples that count as much as keywords do, before any page was seen
_OUTWEIGH = 40  # examples that count as much as keywords do, when pages were seen
_HIT_WEIGHT = 0.3
_ENOUGH = 0.5  # of the keywords: as many as ``KeywordRelevance`` needs for a page on the topic
_MANY = 10  # minimum examples for a check of what they have in common
_EACH = 25  # pages
_ENOUGH_PAGES = 100  # pages seen before a warning that examples are not recognised
_HIT = 0.3  # of the keywords: one of them, often enough
_HITS = 0.8  # share of the pages on a topic with that much, without evidence from examples
#: State that changes while pages are seen.
_STATE = (
    "frequency", "alarm", "refits", "_background", "_next", "_learned", "_hit_weight", "_words", "_drift", "_halves",
)  # fmt: skip


def _together(odds: NDArray[np.float64], enough: NDArray[np.bool_], n: int) -> NDArray[np.float64]:
    """Return odds that are above 1 only if keywords and the learned model do not contradict each other.

    Without examples, no page without enough keywords is called relevant, and no page with enough that is clearly off
    the topic. The more examples there are, the less keywords decide. The order of pages with enough of them is
    unchanged, and that of all others.

    Parameters
    ----------
    odds
        Of the learned model.
    enough
        Whether there are enough keywords.
    n
        Examples on the topic.
    """
    trust = np.exp(-_OUTWEIGH / (_OUTWEIGH + n))
    doubt = np.exp(-_OUTWEIGH / n) if n else 0.0
    together: NDArray[np.float64] = np.where(enough, odds + 1 - trust, odds / (1 + odds * (1 - doubt)))
    return together


class AdaptiveRelevance:
    """The probability that a text is on the topic, given examples, keywords or both, and the pages seen so far.

    Until 25 pages were seen it uses only the given data. Then it also learns from these pages without labels, and
    again after 50, 100, 200 and so on. So probabilities fit the topic's frequency in the crawl, and words that are
    common on this web count for little.

    Parameters
    ----------
    positives, negatives
        Texts of pages on the topic and off it; the second may be empty, or both.
    keywords
        Words and phrases of the topic.
    frequency
        The share of pages on the topic among those of the crawl, if it is known.
    seed
        Seed of the choice of pages that are kept.

    Raises
    ------
    ConfigError
        If neither positives nor keywords are given, or the frequency is invalid.

    Attributes
    ----------
    frequency
        The share of the topic among pages, as estimated or given; one half before the first estimate.
    refits
        How often it learned from pages; after each time, scores of texts may change.
    alarm
        A sentence if pages called relevant show too little evidence of the topic, or if fewer than ten examples have
        too little in common, else ``""``. The first alarm stays.

    Notes
    -----
    It keeps at most 400 pages, by their words: about 1 MB. Learning again takes less than a second.

    Examples
    --------
    >>> model = AdaptiveRelevance(positives=["Red wine from grapes", "The grapes of Burgundy"], keywords=["wine"])
    >>> model.score(["a dry wine of Burgundy", "steel for the railway"]).round().tolist()
    [1.0, 0.0]
    """

    def __init__(
        self,
        *,
        positives: Sequence[str] = (),
        negatives: Sequence[str] = (),
        keywords: Collection[str] = (),
        frequency: float | None = None,
        seed: int = 0,
    ) -> None:
        require_extra("learning a topic from pages", "topic", "sklearn")
        if not positives and not keywords:
            raise ConfigError("there is nothing to go by; give texts of pages on the topic, keywords, or both")
        if frequency is not None and not 0 < frequency < 1:
            raise ConfigError(f"frequency is {frequency!r}; it takes a share between 0 and 1, or None")
        self._given: dict[str, Any] = {
            "positives": list(positives), "negatives": list(negatives), "keywords": sorted(set(keywords)),
            "frequency": frequency,
        }  # fmt: skip
        self._known_frequency = frequency
        self.frequency = 0.5 if frequency is None else frequency
        self.alarm = ""
        self._keywords = KeywordRelevance(keywords) if keywords else None
        self._labels = np.repeat(np.array([ON, OFF], np.int8), [len(positives[:_MOST]), len(negatives[:_MOST])])
        self._n_positives = len(positives)
        self._bags = [self._bag(text) for text in (*positives[:_MOST], *negatives[:_MOST])]
        self._background = Background(_KEPT, np.random.default_rng(seed))
        self._next = _FIRST
        self._learned = False
        self.refits = 0
        self._hit_weight = 0.0
        self._words = self._of_examples(positives, negatives)
        self._halves: Halves | None = None
        self._drift = Drift("a keyword or two" if keywords else "both halves of the words for them")

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the probability that each text is on the topic, shape (len(texts),)."""
        hits = None if self._keywords is None else self._keywords.score(texts)
        if self._words is None:
            return np.zeros(len(texts)) if hits is None else hits
        scores = self._words.score(texts)
        if hits is None:
            return scores
        if not self._learned:
            return (self._n_positives * scores + _TRUST * hits) / (self._n_positives + _TRUST)
        odds = np.exp(np.clip(np.log(scores / (1 - scores)) + self._hit_weight * hits, -SURE, SURE))
        odds = _together(odds, hits >= _ENOUGH, self._n_positives)
        scores = odds / (1 + odds)
        return scores

    def see(self, text: str, host: str = "") -> None:
        """Learn from a fetched page, before it is scored."""
        bag = self._bag(text)
        self._background.add(bag)
        if self._learned:
            self._watch(text, bag)
        if self._background.seen >= self._next:
            self._next *= 2
            self._learn()

    def state(self) -> dict[str, Any]:
        """Return the state learned from pages, to be pickled."""
        return {name: deepcopy(getattr(self, name)) for name in _STATE}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the state of a model with the same arguments."""
        for name in _STATE:
            setattr(self, name, deepcopy(state[name]))

    @cached_property
    def digest(self) -> str:
        """Identifies the arguments."""
        return digest_of({"kind": "adaptive", **self._given}, {})

    def __repr__(self) -> str:
        given = ", ".join(f"{len(self._given[name])} {name}" for name in ("positives", "negatives", "keywords"))
        return f"AdaptiveRelevance({given}, {self._background.seen:,} pages seen, {self.digest})"

    @property
    def _of_few(self) -> bool:
        """Whether it depends on so few examples, and nothing else, that these may be insufficient."""
        return self._keywords is None and self._n_positives < _MANY

    def _bag(self, text: str) -> Bag:
        return Bag.of(text, 0.0 if self._keywords is None else float(self._keywords.score([text])[0]))

    def _watch(self, text: str, bag: Bag) -> None:
        """Warn when pages called relevant have too little of a sign: keywords, or both halves of the words."""
        called = float(self.score([text])[0]) >= 0.5
        if self._keywords is not None:
            self._drift.add(called=called, sign=bag.hits >= _HIT)
            of_topic = _HITS
            if self._n_positives >= _ANCHORS:
                hit = [each.hits >= _HIT for each in self._bags[: self._n_positives]]
                of_topic = (sum(hit) + _HITS) / (len(hit) + 1)
        elif self._halves is not None:
            self._drift.add(called=called, sign=self._halves.agree(bag))
            of_topic = self._halves.of_topic
        else:
            return
        if not self.alarm:
            self.alarm = self._drift.alarm(of_topic=of_topic)
        if not self.alarm and self._of_few and not self._background.seen % _EACH:
            self.alarm = self._drift.alarm_of_few(self._bags[: self._n_positives], self._background.bags)

    def _of_examples(self, positives: Sequence[str], negatives: Sequence[str]) -> LinearRelevance | None:
        """Return the model before any page was seen; ``None`` with keywords only."""
        if not positives:
            return None
        if negatives:
            return LinearRelevance().fit([*positives, *negatives], [True] * len(positives) + [False] * len(negatives))
        words = Words(self._bags, least=1)
        X = words.matrix(self._bags)
        similar = (X @ X.T).toarray()
        n = len(positives[:_MOST])
        own = (similar.sum(axis=1) - np.diag(similar)) / max(n - 1, 1) if n > 1 else np.array([0.3])
        least = float(own.min()) * 0.9
        spread = max(float(own.std()), 0.1 * least, 1e-3)
        weights = np.asarray(X.mean(axis=0)).ravel()
        return self._linear(words, weights / spread, -least / spread, self.frequency)

    def _linear(self, words: Words, weights: NDArray[np.float64], bias: float, prior: float) -> LinearRelevance:
        sizes = [len(bag.numbers) for bag in (self._background.bags or self._bags)]
        header = {
            "parameters": {}, "bias": bias, "few": float(np.median(sizes)) * _FEW, "prior": min(prior, UNSURE),
            "telling": {"on topic": [], "off topic": []},
        }  # fmt: skip
        arrays = {
            "numbers": words.numbers, "idf": words.idf, "weights": (weights * words.idf).astype(np.float32),
        }  # fmt: skip
        return LinearRelevance.from_parts(header, arrays)

    def _learn(self) -> None:
        """Learn again from the arguments and the kept pages."""
        pages = self._background.bags
        bags = [*self._bags, *pages]
        labels = np.concatenate([self._labels, np.full(len(pages), UNKNOWN, np.int8)])
        hits = np.array([bag.hits for bag in bags])
        hit = hits[labels == UNKNOWN] >= ENOUGH
        if int((labels == ON).sum() + hit.sum()) < _ANCHORS or hit.all():
            return  # nothing to learn from, or nothing to distinguish
        words = Words(bags)
        found = learn(words.matrix(bags), hits, labels, frequency=self._known_frequency, hit_weight=_HIT_WEIGHT)
        slope, shift, _ = found.mixture
        self.frequency = found.frequency
        self._words = self._linear(words, found.weights * slope, found.bias * slope + shift, self.frequency)
        self._hit_weight = found.hits * slope
        self._learned = True
        if not self.alarm and self._of_few and self._background.seen >= _ENOUGH_PAGES:
            self.alarm = missed(found.recognised, int((labels == ON).sum()))
        self.refits += 1
        if self._keywords is None and self._n_positives >= _ANCHORS:
            self._halves = Halves(self._bags, self._labels, pages, np.argsort(found.unknown, kind="stable"))
