"""Weights for words that no example has: those of the nearest words, by word vectors.

A model of few examples knows enough words of pages, and few of those in links: an anchor has three words, and none of
them need be in any example. Files of word vectors know which words have similar meanings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.learn.vectors import entry_of
from scrapy_focus.topic.expansion import units_of
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy_focus.learn.vectors import Vectors

_NEAREST = 10
_MOST = 200_000  # words of a file that are used: the most frequent ones, which are first
_AT_ONCE = 1_000


def weights_nearby(weights: Mapping[str, float], vectors: Vectors) -> dict[str, float]:
    """Return weights of words that have none, from those of the ten nearest words that have one.

    It is their mean, each weighted by the square of its cosine; opposite words do not count. If fewer than ten words
    with a weight have a vector, there is no result.

    Parameters
    ----------
    weights
        Of words, as :func:`~scrapy_focus.web.words.words_of` returns them.
    vectors
        Its first 200,000 words are used; entries that are not one word are skipped.

    Notes
    -----
    Time is that of a matrix product of the words of both.

    Examples
    --------
    >>> class Plane(dict):
    ...     key_to_index = property(lambda self: dict.fromkeys(self, 0))
    >>> vectors = Plane({f"wine{i}": np.array([1, i / 100]) for i in range(10)})
    >>> vectors |= {"steel": np.array([-1, 0]), "grape": np.array([1, 0.5])}
    >>> weights_nearby({f"wine{i}": 2.0 for i in range(10)}, vectors)
    {'steel': 0.0, 'grape': 2.0}
    """
    known = [word for word in weights if entry_of(word, vectors)]
    entries = _entries_without_weight(weights, vectors)
    if len(known) < _NEAREST or not entries:
        return {}
    near = units_of([entry_of(word, vectors) for word in known], vectors)
    values = np.array([weights[word] for word in known])
    others = [*entries.values()]
    found: list[float] = []
    for start in range(0, len(others), _AT_ONCE):
        cosines = units_of(others[start : start + _AT_ONCE], vectors) @ near.T
        nearest = np.argpartition(-cosines, _NEAREST - 1, axis=1)[:, :_NEAREST]
        shares = np.maximum(np.take_along_axis(cosines, nearest, axis=1), 0) ** 2
        found += ((shares * values[nearest]).sum(axis=1) / np.maximum(shares.sum(axis=1), 1e-9)).tolist()
    return dict(zip(entries, found, strict=True))


def _entries_without_weight(weights: Mapping[str, float], vectors: Vectors) -> dict[str, str]:
    """Return the words with a vector that have no weight, with the first of their names among the vectors."""
    entries: dict[str, str] = {}
    for entry in list(vectors.key_to_index)[:_MOST]:
        text = entry
        stem, _, tag = entry.rpartition("_")
        if tag.isupper():
            text = stem  # some vectors have a part of speech behind each word, as in wine_NOUN
        words = words_of(text)
        if len(words) == 1 and words[0] not in weights:
            entries.setdefault(words[0], entry)
    return entries
