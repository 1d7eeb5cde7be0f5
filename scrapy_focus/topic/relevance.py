"""The probability that a text is on the topic: a model trained on examples that scores a page or forty link texts in
a millisecond.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.learn.modelfile import digest_of, write_model
from scrapy_focus.topic.nearby import weights_nearby
from scrapy_focus.web.words import numbers_of, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from scrapy_focus.learn.vectors import Vectors

_FOLDS = 5  # of the calibration
_FEW = 0.05  # of the words of a page
_TELLING = 50  # words of each class that a model can name
UNSURE = 0.49  # maximum probability of a text without a known word: it is not on the topic
SURE = 30.0  # log-odds beyond which floats hardly distinguish the probability from 0 or 1


class LinearRelevance:
    """Logistic regression over the words of a text, weighted by TF-IDF: trained in seconds on ten examples or 10,000.

    It works for any language: words are runs of letters and digits in lower case, and pairs of characters in scripts
    without spaces. Probabilities are calibrated on examples that the model was not trained on: pages of 0.5 or more
    are on the topic, if it is as frequent on the web as among the examples, or as ``frequency`` says.

    Parameters
    ----------
    max_words
        Words that are kept, those that occur in most examples.
    strength
        How closely the examples are followed: the inverse of the regularization, scikit-learn's ``C``. A larger
        number makes scores of pages a little better, and those of link texts worse.
    frequency
        The share of the pages of the web to crawl that are on the topic, between 0 and 1, if it is known. By default,
        it is assumed to be that of the examples, which is far too much for most webs.
    svm
        Train a linear support vector machine instead, as the crawler ACHE does. The rest is the same.

    Attributes
    ----------
    prior
        The probability of a text without a known word: ``frequency``, or the share of examples on the topic; but
        below one half.
    telling
        The strongest words for each of the classes, ``"on topic"`` and ``"off topic"``, the strongest first.

    Notes
    -----
    A word is known by 32 bits of a hash. A model of 65,536 words takes 0.8 MB of memory. A page of 20 kB is scored in
    about a millisecond, forty link texts in a tenth of one.

    The part of the log-odds that does not depend on words compensates for what is common to all pages. A link text
    has nothing of that: the fewer words a text has, compared with a page, the closer is this part to that of
    ``prior``. Otherwise links without any known word would rank before or after all others, only because pages are
    long.

    Examples
    --------
    >>> wine = ["Red wine from grapes", "The grapes of Burgundy", "White wine, dry"]
    >>> other = ["The price of steel", "Red cars are sold", "A history of the railway"]
    >>> model = LinearRelevance().fit(wine + other, [True] * 3 + [False] * 3)
    >>> model.score(["a dry wine of Burgundy", "steel for the railway", ""]).round(1).tolist()
    [0.8, 0.2, 0.5]
    """

    kind = "linear"

    def __init__(
        self, *, max_words: int = 1 << 16, strength: float = 1.0, frequency: float | None = None, svm: bool = False
    ) -> None:
        if frequency is not None and not 0 < frequency < 1:
            raise ConfigError(
                f"frequency is {frequency!r}; it takes a share of all pages, between 0 and 1, such as 0.03"
            )
        self.max_words = max_words
        self.strength = strength
        self.frequency = frequency
        self.svm = svm
        self.prior = UNSURE
        self.telling: dict[str, list[str]] = {"on topic": [], "off topic": []}
        self._numbers = np.zeros(0, np.uint32)  # of the words, ascending
        self._idf = np.zeros(0, np.float32)
        self._weights = np.zeros(0, np.float32)  # for a word of a text: its weight times its idf
        self._bias = 0.0
        self._few = 0.0  # words of a text at which prior and bias have the same weight

    def fit(self, texts: Sequence[str], labels: Sequence[bool]) -> LinearRelevance:
        """Learn from examples, discarding earlier learning; ``labels`` say which texts are on the topic.

        Raises
        ------
        ConfigError
            If there are not examples of both classes, or they have no words.
        """
        require_extra("learning a topic from pages", "topic", "sklearn")
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC

        y = np.asarray(labels, bool)
        check_classes(y)
        self.__dict__.pop("digest", None)
        names: dict[int, str] = {}
        rows = []
        for text in texts:
            words = words_of(text)
            rows.append(numbers_of(words))
            names.update(zip(rows[-1].tolist(), words, strict=True))
        if not names:
            raise ConfigError("the examples have no words to learn from; give texts with words of two letters or more")
        X = self._matrix(rows)
        if self.svm:
            model = LinearSVC(C=self.strength, class_weight="balanced", random_state=0)
        else:
            model = LogisticRegression(C=self.strength, class_weight="balanced", max_iter=1000)
        slope, shift, share = _calibration(model, X, y)
        model.fit(X, y)
        weights = model.coef_[0]
        self._weights = (weights * self._idf * slope).astype(np.float32)
        self._bias = float(model.intercept_[0] * slope + shift)
        if self.frequency is not None:
            self._bias += log_odds(self.frequency) - log_odds(share)
        self._few = float(np.median(np.diff(X.indptr)) * _FEW)
        self.prior = min(float(y.mean()) if self.frequency is None else self.frequency, UNSURE)
        order = np.argsort(weights, kind="stable")
        self.telling = {
            "on topic": [names[int(self._numbers[i])] for i in order[::-1][:_TELLING] if weights[i] > 0],
            "off topic": [names[int(self._numbers[i])] for i in order[:_TELLING] if weights[i] < 0],
        }
        return self

    def widen(self, vectors: Vectors, texts: Sequence[str]) -> int:
        """Add words that the examples did not have, by word vectors; return how many there are.

        Few words of a link are in any example, so that scores of links improve. Pages have enough that are, and their
        scores hardly change. See :func:`~scrapy_focus.topic.nearby.weights_nearby`.

        Parameters
        ----------
        vectors
            Of the language of the topic, such as :func:`~scrapy_focus.learn.vectors.load_vectors` returns.
        texts
            The examples that the model was trained on: it knows their words by hashes alone.
        """
        self.__dict__.pop("digest", None)
        weights = dict(zip(self._numbers.tolist(), (self._weights / self._idf).tolist(), strict=True))
        words = sorted({word for text in texts for word in words_of(text)})
        numbers = zip(words, numbers_of(words).tolist(), strict=True)
        found = weights_nearby({word: weights[number] for word, number in numbers if number in weights}, vectors)
        names = [*found]
        added = {
            number: found[name]
            for name, number in zip(names, numbers_of(names).tolist(), strict=True)
            if number not in weights
        }
        if added:
            rare = float(self._idf.max())
            all_numbers = np.concatenate([self._numbers, np.fromiter(added, np.uint32)])
            order = np.argsort(all_numbers)
            self._numbers = all_numbers[order]
            self._idf = np.concatenate([self._idf, np.full(len(added), rare, np.float32)])[order]
            more = np.fromiter(added.values(), np.float64) * rare
            self._weights = np.concatenate([self._weights, more.astype(np.float32)])[order]
        return len(added)

    def _matrix(self, rows: Sequence[NDArray[np.uint32]]) -> Any:
        """Choose the known words from those of examples, and return TF-IDF, shape (len(rows), n_words), rows of
        length 1.
        """
        from scipy.sparse import csr_array

        numbers, frequencies = np.unique(np.concatenate([np.unique(row) for row in rows]), return_counts=True)
        kept = np.sort(np.argsort(-frequencies, kind="stable")[: self.max_words])
        self._numbers = numbers[kept]
        self._idf = (np.log((1 + len(rows)) / (1 + frequencies[kept])) + 1).astype(np.float32)
        owners, columns, values = self._values(rows)
        values *= self._idf[columns]
        values /= np.sqrt(np.bincount(owners, values**2, len(rows)))[owners]
        starts = np.searchsorted(owners, np.arange(len(rows) + 1)).astype(np.int32)
        return csr_array((values, columns.astype(np.int32), starts), shape=(len(rows), len(kept)))

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the probability that each text is on the topic, shape (len(texts),); time is linear in the words."""
        scores = np.full(len(texts), self.prior)
        if not len(texts) or not len(self._numbers):
            return scores
        n = len(texts)
        owners, columns, values = self._values([numbers_of(words_of(text)) for text in texts])
        counts = np.bincount(owners, minlength=n)
        known = counts > 0
        lengths = np.sqrt(np.bincount(owners, (values * self._idf[columns]) ** 2, n)[known])
        sums = np.bincount(owners, values * self._weights[columns], n)[known]
        share = counts[known] / (counts[known] + self._few)
        neutral = log_odds(self.prior)
        odds = sums / lengths + self._bias * share + neutral * (1 - share)
        scores[known] = 1 / (1 + np.exp(-np.clip(odds, -SURE, SURE)))
        return scores

    def _values(
        self, rows: Sequence[NDArray[np.uint32]]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        """Return row, column and damped count of each known word of each row, shapes (n_known,), in this order."""
        owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        found, counts = np.unique(owners << 32 | np.concatenate(rows), return_counts=True)
        numbers = (found & 0xFFFFFFFF).astype(np.uint32)
        columns = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        known = self._numbers[columns] == numbers
        return (found >> 32)[known], columns[known], 1 + np.log(counts[known])

    @cached_property
    def digest(self) -> str:
        """Identifies the parameters: two models with one digest give the same scores."""
        return digest_of({"kind": self.kind, **self._scalars()}, self._arrays())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, ``.npz``; :func:`~scrapy_focus.topic.models.load_relevance` reads it."""
        said: dict[str, Any] = {} if self.frequency is None else {"frequency": self.frequency}
        said |= {"svm": True} if self.svm else {}
        header = {
            "kind": self.kind,
            "version": 1,
            "parameters": {"max_words": self.max_words, "strength": self.strength, **said},
            **self._scalars(),
            "telling": self.telling,
        }
        write_model(path, header, self._arrays())

    @classmethod
    def from_parts(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> LinearRelevance:
        """Make a model from the contents of a file; ``KeyError``, ``TypeError`` or ``ValueError`` if they are
        inconsistent.
        """
        model = cls(**header["parameters"])
        model._numbers = arrays["numbers"].astype(np.uint32, casting="equiv")
        model._idf = arrays["idf"].astype(np.float32, casting="equiv")
        model._weights = arrays["weights"].astype(np.float32, casting="equiv")
        model._bias, model._few, model.prior = (float(header[name]) for name in ("bias", "few", "prior"))
        model.telling = {name: [str(word) for word in header["telling"][name]] for name in model.telling}
        if not model._fits():
            raise ValueError("its numbers do not fit together")
        return model

    def _fits(self) -> bool:
        """Whether arrays are of one size, the numbers of words rise, and all values are valid."""
        if len({array.shape for array in self._arrays().values()}) != 1:
            return False
        if self._numbers.ndim != 1 or (np.diff(self._numbers.astype(np.int64)) <= 0).any():
            return False
        for array in (self._idf, self._weights, self._bias, self._few):
            if not np.isfinite(array).all():
                return False
        return 0 < self.prior < 1 and self._few >= 0

    def _scalars(self) -> dict[str, float]:
        return {"bias": self._bias, "few": self._few, "prior": self.prior}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"numbers": self._numbers, "idf": self._idf, "weights": self._weights}

    def __repr__(self) -> str:
        return f"LinearRelevance({len(self._numbers):,} words, {self.digest})"


def _calibration(model: Any, X: Any, y: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return slope and shift of log-odds that calibrate them on held-out examples, and the share of pages on the
    topic that this assumes: that of the examples.

    It leaves ``model`` trained on a part of them. (1, 0, 0.5) if there are too few examples, or the learned part does
    not predict the others: classes have equal weight in training.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    folds = min(_FOLDS, int(y.sum()), int((~y).sum()))
    if folds < 2:
        return 1.0, 0.0, 0.5
    odds = np.zeros(len(y))
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(y, y):
        odds[test] = model.fit(X[train], y[train]).decision_function(X[test])
    spread = float(odds.std()) or 1.0
    scale = LogisticRegression().fit(odds[:, None] / spread, y)
    slope = float(scale.coef_[0, 0]) / spread
    return (slope, float(scale.intercept_[0]), float(y.mean())) if slope > 0 else (1.0, 0.0, 0.5)


def log_odds(share: float) -> float:
    """Return the logarithm of the odds of a share between 0 and 1."""
    return math.log(share / (1 - share))


def check_classes(labels: NDArray[np.bool_]) -> None:
    """Raise ``ConfigError`` unless there are examples that are on the topic and examples that are not."""
    n, on = len(labels), int(labels.sum())
    if not 0 < on < n:
        raise ConfigError(
            f"got {on} examples on the topic and {n - on} off it; both are needed: a model learns what tells them "
            "apart, so give it pages that a crawl would meet and should not want, too"
        )
