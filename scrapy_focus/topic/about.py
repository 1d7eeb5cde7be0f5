"""A topic given by a sentence: texts whose meaning is close to it are on the topic.

An embedding turns the sentence and each text into vectors. Their cosine alone says little, since it depends on the
sentence and on the length of a text. So it is compared with that of texts on a hundred other things. What a crawl
meets then does two things. Pages that are surely on the topic have words that a short sentence lacks: their mean moves
the vector of the topic, as far as the sentence allows. And the share of pages that are similar to it says how frequent
the topic is.
"""

from __future__ import annotations

import re
from copy import deepcopy
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.mission import learning
from scrapy_focus.core.printable import brief
from scrapy_focus.learn.embedding import load_embedding
from scrapy_focus.learn.modelfile import digest_of
from scrapy_focus.topic.drift import Drift
from scrapy_focus.topic.frequency import mixture_beside
from scrapy_focus.topic.unrelated import ASKING, UNRELATED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.mission import Topic
    from scrapy_focus.learn.embedding import Embedding
    from scrapy_focus.topic.frequency import Mixture

    Floats = NDArray[np.float64]

_LONGEST = 1_000  # characters of a sentence
_PAGE = 64  # words of the shortest text that is judged as a page
_ALIKE = 2.0  # deviations above unrelated texts, from which a text is more probably on the topic than not
_SLOPE = 2.0  # log-odds per deviation
_SHORT = 2.0  # words of an unrelated text
_LONGER = 0.055  # deviations by which the mean of unrelated texts rises when they have twice the words
_WIDER = 0.04  # the share by which their deviation then grows
_MOST_DOUBLINGS = 8.0
_READ = 4_000  # characters of a text, as of an embedding
_MOST = 30.0  # log-odds, beyond which floats hardly distinguish the probability from 0 or 1
_LEAST = 1e-9
_NARROWEST = 0.5  # deviations: of pages off the topic, at least
_LOWER, _LOWER_HALF = 0.05, 0.25  # shares of a normal distribution ...
_BELOW_LOWER, _BELOW_HALF = 1.645, 0.674  # ... that are so many deviations, or more, below its mean
_ASSUMED = 200.0  # pages that count as seen, which are like unrelated texts
_MET = 50  # texts of links after which others are also compared with them, and these count for after it learned
_LOWEST, _STEP, _STEPS = -10.0, 0.1, 400  # deviations of the texts of links are counted in steps, from the lowest one
_FIRST = 25  # pages after which it first learns; again whenever they are twice as many
_KEPT = 400  # pages
_FOLLOWS = 0.7  # length of what pages add to the vector of the sentence, which has length 1
_FOLLOWED = 100  # pages seen before the vector follows them
_SURE = 5.0  # pages on the topic, in all, that it takes
_ROUNDS = 3
_GIVEN = 20.0  # examples that halve the weight of the sentence, and have full weight themselves
_CLEAR = 6.0  # log-odds up to which a part of the evidence counts
_SIGN = 1.0  # deviations: a page on the topic has this similarity to the sentence, at least ...
_SIGNS = 0.8  # ... in this share of the cases
_SPEAKS = 2.0  # deviations from which a word speaks for a text
_WORDS = 200  # words of a text that are asked for that
_WORD = re.compile(r"[^\W_]+(?:[-'\u2019][^\W_]+)*")
_STATE = (
    "refits", "frequency", "_alarm", "_seen", "_next", "_every", "_pages", "_lengths", "_vector", "_of_pages",
    "_drift", "_links", "_next_links", "_usual",
)  # fmt: skip


class AboutTopic:
    """The probability that a text is on the topic of a sentence, by an embedding and by the pages seen so far.

    Until 25 pages were seen, only the sentence is used, and examples and keywords if there are any. Then the model
    learns from pages, without labels, and again after 50, 100, 200 and so on: how frequent the topic is among them,
    and, from 100 pages on, which direction the similar ones have in common.

    Parameters
    ----------
    about
        The sentence, in up to 1,000 characters: "municipal budgets and annual accounts". Words such as *pages* and
        *about* are dropped. More specific words find more: "hurricanes, floods and earthquakes" rather than "weather".
    others
        A model of examples and keywords, if there are any: :func:`~scrapy_focus.topic.models.made_of` makes one. Both
        judge each text.
    examples
        How many examples it has: the more there are, the less the sentence counts. With 0, it is one of keywords, and
        a text that has none of them may be on the topic all the same.
    frequency
        The share of pages on the topic among those of the crawl, if it is known.
    embedding
        The embedding, or its source: see :func:`~scrapy_focus.learn.embedding.load_embedding`.

    Raises
    ------
    ConfigError
        If the sentence is empty, too long, or has no word that the embedding knows; if the embedding cannot be read,
        or other data are invalid.

    Attributes
    ----------
    about
        The sentence.
    frequency
        The share of the topic among pages, as estimated or given; ``None`` before the first estimate.
    refits
        How often it learned from pages; after each time, scores of texts may change.

    Notes
    -----
    It keeps the vectors of at most 400 pages. The vector of the topic is that of the sentence plus at most 0.7 times
    the difference between the means of similar and other pages (Rocchio's formula, of length 1), so that their cosine
    is 0.8 or more unless the pages contradict the sentence.

    References
    ----------
    Rocchio: Relevance feedback in information retrieval. In: The SMART Retrieval System (1971).
    """

    def __init__(
        self,
        about: str,
        *,
        others: Topic | None = None,
        examples: int = 0,
        frequency: float | None = None,
        embedding: Embedding | str | PathLike[str] = "",
    ) -> None:
        self.about = _checked(about)
        if frequency is not None and not 0 < frequency < 1:
            raise ConfigError(f"frequency is {frequency!r}; it takes a share between 0 and 1, or None")
        self.embedding: Embedding = load_embedding(embedding) if isinstance(embedding, (str, PathLike)) else embedding
        self._last: tuple[str, Floats] = ("", np.zeros((1, 0)))  # the last single text, and its vector
        self._sentence = self._vector = self._vector_of(self.about)
        self._phrases = self._units(UNRELATED)
        self._known_frequency = self.frequency = frequency
        self._others, self._examples = others, examples
        self.refits = 0
        self._alarm = ""
        self._seen = 0
        self._next = _FIRST
        self._every = 1  # one page in so many is kept
        self._pages: list[NDArray[np.float32]] = []  # vectors of pages, of length 1 ...
        self._lengths: list[int] = []  # ... and how many words they have
        self._of_pages: Mixture | None = None
        self._drift = Drift("at least some similarity to the sentence")
        self._links = np.zeros(_STEPS)  # texts of links, by their deviation from unrelated texts
        self._next_links = float(_MET)  # how many there are when they are next looked at
        self._usual: tuple[float, float] | None = None  # what was found of them

    def score(self, texts: Sequence[str]) -> Floats:
        """Return the probability that each text is on the topic, shape (n,)."""
        if not len(texts):
            return np.zeros(0)
        odds = self._odds(self._units(texts), np.array([_length(text) for text in texts], np.float64))
        if self._others is not None:
            odds = self._with_others(odds, np.asarray(self._others.score(texts), np.float64))
        scores: Floats = 1 / (1 + np.exp(-odds))
        return scores

    def similarity(self, texts: Sequence[str]) -> Floats:
        """Return the cosine between the vector of the topic and that of each text, shape (n,); 0 for a text without a
        known word.
        """
        cosines: Floats = self._units(texts) @ self._vector
        return cosines

    def words_for(self, text: str, *, most: int = 5) -> list[str]:
        """Return the words of a text that speak most for the topic, the strongest first."""
        words = list(dict.fromkeys(_WORD.findall(text)))[:_WORDS]
        words = [word for word in words if word.lower() not in ASKING]
        if not words:
            return []
        away = self._deviations(self._units(words), np.ones(len(words)))
        return [words[i] for i in np.argsort(-away, kind="stable")[:most].tolist() if away[i] >= _SPEAKS]

    def see_links(self, texts: Sequence[str]) -> None:
        """Learn how similar the texts of links usually are.

        All of a site about computers is similar to "HTTP servers". So the text of a link has to be more similar than
        most that the crawl met, and not only than unrelated ones.
        """
        away = self._deviations(self._units(texts), np.array([_length(text) for text in texts], np.float64))
        steps = np.clip((away - _LOWEST) / _STEP, 0, _STEPS - 1).astype(np.intp)
        np.add.at(self._links, steps, 1.0)
        if self._links.sum() >= self._next_links:
            self._next_links = 2 * float(self._links.sum())
            self._usual = self._usual_links()
            self.refits += 1

    def see(self, text: str, host: str = "") -> None:
        """Learn from a fetched page, before it is scored."""
        unit = self._units([text])[0]
        if (learner := learning(self._others)) is not None:
            refits = learner.refits
            learner.see(text, host)
            self.refits += learner.refits - refits
        length = _length(text)
        if length < _PAGE or not unit.any():
            return
        if self._seen % self._every == 0:
            self._pages.append(unit.astype(np.float32))
            self._lengths.append(length)
            if len(self._pages) > _KEPT:
                self._pages, self._lengths, self._every = self._pages[::2], self._lengths[::2], 2 * self._every
        self._seen += 1
        if self._of_pages is not None and not self._alarm:
            self._watch(text, unit, length)
        if self._seen >= self._next:
            self._next *= 2
            self._learn()

    def state(self) -> dict[str, Any]:
        """Return the state learned from pages, to be pickled."""
        state = {name: deepcopy(getattr(self, name)) for name in _STATE}
        if (learner := learning(self._others)) is not None:
            state["others"] = learner.state()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the state of a model with the same arguments."""
        for name in _STATE:
            setattr(self, name, deepcopy(state[name]))
        if (learner := learning(self._others)) is not None:
            learner.restore(state["others"])

    @property
    def alarm(self) -> str:
        """A sentence if pages called relevant have too little in common with the sentence, or if the other model warns;
        else ``""``.
        """
        learner = learning(self._others)
        return self._alarm or ("" if learner is None else learner.alarm)

    @cached_property
    def digest(self) -> str:
        """Identifies the arguments."""
        known = {
            "kind": "about", "about": self.about, "embedding": self.embedding.digest,
            "frequency": self._known_frequency, "examples": self._examples,
            "others": "" if self._others is None else self._others.digest,
        }  # fmt: skip
        return digest_of(known, {})

    def __repr__(self) -> str:
        return f"AboutTopic({brief(self.about)}, {self._seen:,} pages seen, {self.digest})"

    def _vector_of(self, sentence: str) -> Floats:
        """Return the vector of a sentence without the words of a request, of length 1."""
        words = [word for word in _WORD.findall(sentence) if word.lower() not in ASKING]
        for text in (" ".join(words), sentence):
            unit: Floats = self._units([text])[0]
            if unit.any():
                return unit
        raise ConfigError(
            f"no word of {brief(sentence)} is known to the embedding; write the sentence in a language that it knows, "
            "or name another embedding"
        )

    def _units(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts, at length 1; zeros for a text without a known word."""
        if len(texts) == 1 and texts[0] == self._last[0]:  # a page is seen, and then scored
            return self._last[1]
        rows = np.asarray(self.embedding.embed(texts), np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        units: Floats = rows / np.where(lengths > 0, lengths, 1.0)
        if len(texts) == 1:
            self._last = (texts[0], units)
        return units

    def _odds(self, units: Floats, lengths: Floats) -> Floats:
        """Return the log-odds that texts are on the topic, by their vectors and their numbers of words."""
        away = self._deviations(units, lengths)
        odds = _SLOPE * (away - _ALIKE)
        if self._usual is not None:
            middle, spread = self._usual
            among_links = _SLOPE * ((away - middle) / spread - _ALIKE)
            odds = np.where(lengths < _PAGE, np.minimum(odds, among_links), odds)
        if self._of_pages is not None:
            odds = np.where(lengths >= _PAGE, self._of_pages.odds(away), odds)
        clipped: Floats = np.clip(odds, -_MOST, _MOST)
        return clipped

    def _usual_links(self) -> tuple[float, float]:
        """Return the median and the standard deviation of what the similarities of links deviate by.

        The median, since it is among links off the topic even if every third one is on it.
        """
        middle = _LOWEST + _STEP * float(np.searchsorted(self._links.cumsum(), self._links.sum() / 2))
        _, spread = _moments(_LOWEST + _STEP * np.arange(_STEPS, dtype=np.float64), self._links)
        return middle, spread

    def _deviations(self, units: Floats, lengths: Floats, vector: Floats | None = None) -> Floats:
        """Return how many deviations the similarity of texts is above that of unrelated ones.

        ``vector`` is the vector to which they are similar, by default that of the topic.
        """
        vector = self._vector if vector is None else vector
        mean, deviation = _unrelated(self._phrases @ vector, lengths)
        away: Floats = np.where(units.any(axis=1), (units @ vector - mean) / deviation, 0.0)
        return away

    def _with_others(self, odds: Floats, scores: Floats) -> Floats:
        """Return the log-odds of the sentence together with those of examples and keywords."""
        if not self._examples:
            mine = 1 / (1 + np.exp(-odds))
            both = np.clip(1 - (1 - mine) * (1 - scores), 1e-9, 1 - 1e-9)
            joined: Floats = np.log(both / (1 - both))
            return joined
        theirs = np.log(np.clip(scores, 1e-9, 1) / np.clip(1 - scores, 1e-9, 1))
        trust = _GIVEN / (_GIVEN + self._examples)
        weight = min(self._examples / _GIVEN, 1.0)  # a model of few examples is mostly luck
        weighted: Floats = trust * np.clip(odds, -_CLEAR, _CLEAR) + weight * np.clip(theirs, -_CLEAR, _CLEAR)
        return weighted

    def _watch(self, text: str, unit: Floats, length: int) -> None:
        """Warn when pages called relevant have little in common with the sentence; keywords alone need not."""
        units, lengths = unit[np.newaxis], np.array([length], np.float64)
        away = self._deviations(units, lengths, self._sentence)
        called = self.score([text])[0] >= 0.5 if self._examples else self._odds(units, lengths)[0] >= 0
        self._drift.add(called=bool(called), sign=float(away[0]) >= _SIGN)
        self._alarm = self._drift.alarm(of_topic=_SIGNS)

    def _learn(self) -> None:
        """Learn from the kept pages how frequent the topic is, and what similar pages have in common."""
        pages, lengths = np.array(self._pages, np.float64), np.array(self._lengths, np.float64)
        self._vector = self._sentence
        away = self._deviations(pages, lengths)
        self._of_pages = mixture_beside(away, *_others_among(away), frequency=self._known_frequency)
        on = at_first = self._of_pages.shares(away)
        if self._seen >= _FOLLOWED and on.sum() >= _SURE:
            for _ in range(_ROUNDS):
                apart = on @ pages / on.sum() - (1 - on) @ pages / max(float((1 - on).sum()), _LEAST)
                vector = self._sentence + _FOLLOWS * apart / max(float(np.linalg.norm(apart)), _LEAST)
                self._vector = vector / np.linalg.norm(vector)
                away = self._deviations(pages, lengths)
                low, deviation = _moments(away, 1 - at_first)
                self._of_pages = mixture_beside(away, low, deviation, frequency=self._known_frequency)
                on = self._of_pages.shares(away)
        self.frequency = self._of_pages.frequency
        self._links *= min(1.0, _MET / max(float(self._links.sum()), 1.0))  # they were compared with another vector
        self._next_links = 2.0 * _MET
        self.refits += 1


def _checked(about: object) -> str:
    """Return a sentence without surrounding blanks, or raise ``ConfigError``."""
    if not isinstance(about, str) or not about.strip():
        raise ConfigError(
            f"about is {brief(about)}; it takes a sentence that says what you look for, such as 'municipal budgets and "
            "annual accounts'"
        )
    sentence = " ".join(about.split())
    if len(sentence) > _LONGEST:
        raise ConfigError(
            f"about has {len(sentence):,} characters; it takes a sentence of at most {_LONGEST:,}. For longer texts, "
            "give them as example pages"
        )
    return sentence


def _unrelated(cosines: Floats, lengths: Floats) -> tuple[Floats, Floats]:
    """Return mean and deviation of the cosines of unrelated texts of some lengths in words, both of shape (n,).

    ``cosines`` are those of short ones. The longer a text, the more of what all texts have in common is in it.
    """
    doublings = np.clip(np.log2(np.maximum(lengths, 1.0) / _SHORT), -1.0, _MOST_DOUBLINGS)
    mean, deviation = float(cosines.mean()), max(float(cosines.std()), _LEAST)
    return mean + _LONGER * deviation * doublings, deviation * (1 + _WIDER * doublings)


def _others_among(away: Floats) -> tuple[float, float]:
    """Return mean and deviation of pages off the topic, from the lower part of all pages, shape (n,).

    Pages that are not on it are like unrelated texts, 0 and 1, or less similar than these. Where most are on it, only
    the former is known.
    """
    low, higher = np.quantile(away, [_LOWER, _LOWER_HALF]).tolist()
    deviation = (higher - low) / (_BELOW_LOWER - _BELOW_HALF)
    mean = higher + _BELOW_HALF * deviation
    known = len(away) / (len(away) + _ASSUMED)
    return min(known * mean, 0.0), min(max(1 + known * (deviation - 1), _NARROWEST), 1.0)


def _moments(values: Floats, weights: Floats) -> tuple[float, float]:
    """Return weighted mean and deviation."""
    total = max(float(weights.sum()), _LEAST)
    mean = float(weights @ values) / total
    return mean, max((float(weights @ (values - mean) ** 2) / total) ** 0.5, _NARROWEST)


def _length(text: str) -> int:
    """Return the number of words of a text, up to what is read of it."""
    return len(text[:_READ].split())
