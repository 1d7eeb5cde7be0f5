"""What to go by where there are no example pages: how many keywords of a topic a text has, and how often."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

_ENOUGH = 2  # different keywords on a page that is on the topic, if there are so many
_DENSE = 0.01  # share of the words of such a page that are keywords
_PREFIX = 4  # keywords of so many letters also count at the beginning of longer words
_KNOWN = 100_000  # words of which it is remembered which keyword they are


class KeywordRelevance:
    """A page is on the topic if two different keywords are on it, and one word in a hundred is a keyword; or
    more of them, where they are rarer.

    Keywords count in any case, also as the beginning of a longer word if they have four letters or more, and phrases
    where they stand. It knows no other words of the topic, nor what else the keywords mean: a model that was trained on
    twenty pages of each kind is better. It is an object with the interface of those, and so can be what a crawl goes
    by.

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
        self.keywords = sorted({" ".join(words_of(keyword)) for keyword in keywords} - {""})
        if not self.keywords:
            raise ConfigError(f"keywords is {list(keywords)!r}; give words or phrases of two letters or more")
        self._phrases = [(i, f" {keyword} ") for i, keyword in enumerate(self.keywords) if " " in keyword]
        self._single = {keyword: i for i, keyword in enumerate(self.keywords) if " " not in keyword}
        self._lengths = sorted({len(word) for word in self._single if len(word) >= _PREFIX}, reverse=True)
        self._known: dict[str, int] = {}

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return how far each text is on the topic, from 0 to 1, shape (len(texts),): 0.5 is enough for a page."""
        return np.array([self._score(words_of(text)) for text in texts], np.float64)

    @cached_property
    def digest(self) -> str:
        """Identifies the keywords."""
        return hashlib.sha256("\n".join(self.keywords).encode("utf-8", "surrogatepass")).hexdigest()

    def __repr__(self) -> str:
        return f"KeywordRelevance({len(self.keywords)} keywords, {self.digest})"

    def _score(self, words: list[str]) -> float:
        found = [number for word in words if (number := self._keyword(word)) >= 0]
        text = f" {' '.join(words)} " if self._phrases else ""
        for number, phrase in self._phrases:
            found += [number] * text.count(phrase)
        if not found:
            return 0.0
        weight = len(set(found)) * min(1.0, len(found) / (len(words) * _DENSE))
        return weight / (weight + min(_ENOUGH, len(self.keywords)))

    def _keyword(self, word: str) -> int:
        """Return the number of the keyword that a word is, -1 for none."""
        number = self._known.get(word)
        if number is None:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            number = self._single.get(word, -1)
            for length in self._lengths if number < 0 else ():
                number = self._single.get(word[:length], -1)
                if number >= 0:
                    break
            self._known[word] = number
        return number
