"""Finds keywords of a topic in texts: in any case and language, in compounds, in scripts without spaces, with signs.

A keyword should match the words that are built from it, and no words that merely look similar; there is no
dictionary. Its length decides which words count, as measured below.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from scrapy_focus.web.words import is_joined, words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_PREFIX = 4  # keywords of so many letters also count at the beginning of longer words
_LAST = 5  # ... and of so many at their end
_FIRST = 3  # letters before them, not all of them consonants
_CONSONANTS = frozenset("bcdfghjklmnpqrstvwxz")
_ENDINGS = ("", "n", "s", "e", "en", "es")  # that may follow a last part
_WORDS = 100_000  # words whose keywords are cached
_SIGNED = re.compile(r"[^\W_][+#]|(?<!\S)\.[^\W_]|\b\w&\w|\w&\w\b")


class Keywords:
    """Finds which keywords of a topic are in a text.

    A keyword counts in any case:

    * as a whole word;
    * as the beginning of a longer word, if it has four letters or more: ``honig`` is in *Honigbiene*;
    * as the last part of a longer word, if it has five or more and three precede it, not only consonants: ``honig``
      is in *Blütenhonig*, ``biene`` in *Honigbienen*, with an ending;
    * a phrase, if its words are adjacent;
    * in a script without spaces, in any position, even a single character: ``茶`` is in 喝茶的人;
    * with ``+``, ``#``, ``&``, or a dot before it, if it is written in this way: ``c++``, ``c#``, ``.net``, ``r&d``.

    Parameters
    ----------
    keywords
        Words and phrases. Those without any word are dropped.

    Notes
    -----
    *Last parts*: of the German nouns in a list of 356,000 words that end with a shorter noun, these are compounds of
    it (mean over the shorter nouns, by their letters): 3: 37 %, 4: 68 %, 5: 79 %, 6: 84 %, 7: 80 %; of all longer
    nouns, 23, 49, 71, 82 and 75 %. *Vorrat* and *Apparat* are not of *rat*, *Schwein* is not of *wein*, nor 194 words
    with *-preis* and *-kreis* of *reis*. In English articles, keywords of four letters would match 2.2 times as often
    as they occur as words (*-ship*, *-port*), those of five 1.3 times, those of six 1.1 times.

    Time is linear in the words. The keywords in a word are cached, for 100,000 words.

    Examples
    --------
    >>> keywords = Keywords(["honig", "queen excluder", "茶", "c++"])
    >>> texts = ["Blütenhonig", "a queen-excluder", "喝茶的人", "C++ for bees", "the queen", "C+"]
    >>> [keywords.found(words_of(text), text) for text in texts]
    [True, True, True, True, False, False]
    """

    def __init__(self, keywords: Collection[str]) -> None:
        spelled = {_plain(keyword) for keyword in keywords}
        signed = {keyword for keyword in spelled if _SIGNED.search(keyword)}
        folded = {" ".join(words_of(keyword)) for keyword in spelled - signed} - {""}
        self.listed = sorted(folded | signed)
        self._single: dict[str, int] = {}
        self._phrases: list[tuple[int, str]] = []
        self._letters: dict[str, int] = {}  # single characters of scripts without blanks
        self._signed: list[tuple[int, re.Pattern[str]]] = []
        for i, keyword in enumerate(self.listed):
            if keyword in signed:
                self._signed.append((i, _pattern(keyword)))
            elif " " in keyword:
                self._phrases.append((i, f" {keyword} "))
            elif len(keyword) == 1 and is_joined(keyword):
                self._letters[keyword] = i
            else:
                self._single[keyword] = i
        self._prefixes = self._lengths(_PREFIX)
        self._lasts = self._lengths(_LAST)
        self._known: dict[str, tuple[int, ...]] = {}

    def _lengths(self, least: int) -> list[int]:
        """Return the lengths of single words from ``least`` on, the longest first."""
        return sorted({len(word) for word in self._single if len(word) >= least}, reverse=True)

    def __bool__(self) -> bool:
        return bool(self.listed)

    def __len__(self) -> int:
        return len(self.listed)

    def found(self, words: Sequence[str], text: str = "") -> bool:
        """Whether one of them is in a text.

        Parameters
        ----------
        words
            Its words, as :func:`~scrapy_focus.web.words.words_of` returns them.
        text
            The text itself. Without it, keywords with signs are not found.
        """
        known = self._known
        if any(known[word] if word in known else self._look_up(word) for word in words):
            return True
        return any(True for _ in self._others(words, text))

    def count(self, words: Sequence[str], text: str = "") -> int:
        """Return how often one of them is in a text, which is given as for :meth:`found`."""
        return len(self.each(words, text))

    def each(self, words: Sequence[str], text: str = "") -> list[int]:
        """Return the numbers of all keywords in a text, in ``listed``, as often as they occur; in no order."""
        known = self._known
        found = [i for word in words for i in (known[word] if word in known else self._look_up(word))]
        if self._letters:
            shared = Counter(self._letters.get(_shared(word, following), -1) for word, following in pairwise(words))
            found = list((Counter(found) - shared).elements())
        return [*found, *self._others(words, text)]

    def __reduce__(self) -> tuple[type[Keywords], tuple[list[str]]]:
        return type(self), (self.listed,)

    def _others(self, words: Sequence[str], text: str) -> Iterator[int]:
        """Yield the numbers of keywords that no single word contains."""
        if self._phrases:
            joined = f" {' '.join(words)} "
            for i, phrase in self._phrases:
                yield from (i for _ in range(joined.count(phrase)))
        if self._signed and text:
            plain = unicodedata.normalize("NFKC", text).lower()
            for i, pattern in self._signed:
                yield from (i for _ in pattern.finditer(plain))

    def _look_up(self, word: str) -> tuple[int, ...]:
        """Return the numbers of the keywords in a word: the longest one that it begins with, and that it ends with."""
        if len(self._known) >= _WORDS:
            self._known.clear()
        found = self._known[word] = tuple(self._in(word))
        return found

    def _in(self, word: str) -> Iterator[int]:
        if word in self._single:
            yield self._single[word]
            return
        if self._letters:
            yield from (self._letters[letter] for letter in word if letter in self._letters)
        for length in self._prefixes:
            if word[:length] in self._single:
                yield self._single[word[:length]]
                break
        last = self._last_part(word)
        if last:
            yield self._single[last]

    def _last_part(self, word: str) -> str:
        """Return the longest keyword at the end of a compound, before its ending; ``""`` for none."""
        for length in self._lasts:
            for ending in _ENDINGS:
                first = len(word) - length - len(ending)
                if first < _FIRST or not word.endswith(ending):
                    continue
                last = word[first : first + length]
                # The part before it is a word only with a vowel.
                if last in self._single and not _CONSONANTS.issuperset(word[:first]):
                    return last
        return ""


def _plain(keyword: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", keyword).lower().split())


def _shared(word: str, following: str) -> str:
    """Return the character that two neighbouring pairs share, or ``""``."""
    letter = word[1:] if len(word) == 2 == len(following) else ""
    return letter if letter == following[0] and is_joined(letter) else ""


def _pattern(keyword: str) -> re.Pattern[str]:
    """Return a matcher for a keyword with signs that ignores longer names beginning or ending with it: ``c+`` is not
    in C++.
    """
    before = r"(?<![^\W_])" if keyword[0].isalnum() else rf"(?<![^\W_])(?<!{re.escape(keyword[0])})"
    after = r"(?![^\W_])" if keyword[-1].isalnum() else r"(?![^\W\d_]|[+#])"
    return re.compile(before + r"\s+".join(map(re.escape, keyword.split())) + after)
