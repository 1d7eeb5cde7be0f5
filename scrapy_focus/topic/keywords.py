"""Scoring without example pages: how many keywords of a topic a text has, and how often."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.learn.matching import Keywords
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

_ENOUGH = 2  # different keywords on a page that is on the topic, if the topic has so many
_DENSE = 0.01  # share of the words of such a page that are keywords


class KeywordRelevance:
    """A page is on the topic if it has two different keywords, and one word in a hundred is a keyword; or more
    different ones, if they are rarer.

    :class:`~scrapy_focus.learn.matching.Keywords` defines what counts as a keyword. This model knows no other words
    of the topic, nor other meanings of the keywords: a model that was trained on twenty pages of each kind is better.
    It has the same interface, and so can guide a crawl.

    Parameters
    ----------
    keywords
        Words and phrases, of any language.

    Raises
    ------
    ConfigError
        If none of them has a word.

    Examples
    --------
    >>> KeywordRelevance(["bees", "honey"]).score(["Honey of our bees", "Honey", "Steel"]).round(2).tolist()
    [0.5, 0.33, 0.0]
    """

    def __init__(self, keywords: Collection[str]) -> None:
        self._finder = Keywords(keywords)
        self.keywords = self._finder.listed
        if not self.keywords:
            raise ConfigError(f"keywords is {list(keywords)!r}; give words or phrases of two letters or more")

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return how far each text is on the topic, from 0 to 1, shape (len(texts),): 0.5 is enough for a page."""
        return np.array([self._score(text) for text in texts], np.float64)

    @cached_property
    def digest(self) -> str:
        """Identifies the keywords."""
        return hashlib.sha256("\n".join(self.keywords).encode("utf-8", "surrogatepass")).hexdigest()

    def __repr__(self) -> str:
        return f"KeywordRelevance({len(self.keywords)} keywords, {self.digest})"

    def _score(self, text: str) -> float:
        words = words_of(text)
        found = self._finder.each(words, text)
        if not found:
            return 0.0
        weight = len(set(found)) * min(1.0, len(found) / (len(words) * _DENSE or 1))
        return weight / (weight + min(_ENOUGH, len(self.keywords)))
