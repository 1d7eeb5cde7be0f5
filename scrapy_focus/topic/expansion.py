"""More keywords of a topic: words of its pages that are as close to the first keywords as those are to each other."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.learn.vectors import entry_of
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from scrapy_focus.learn.vectors import Vectors

_TIMES = 1.2  # minimum ratio of a word's share of pages on the topic to that of others
_CHANCE = 6.63  # exceeded by chance once in a hundred times


class Judged(NamedTuple):
    """A word, its mean cosine to the first keywords, and the nearest and the farthest of these with their cosines."""

    word: str
    score: float
    nearest: str
    nearest_score: float
    farthest: str
    farthest_score: float


class Expansion(NamedTuple):
    """Which words became keywords, which did not, and why. Scores are mean cosines, from -1 to 1."""

    keywords: list[str]  # the first ones, phrases among them, in lower case
    added: list[Judged]  # above the threshold, the highest first
    rejected: list[Judged]  # the others, the highest first
    threshold: float
    without_vector: list[str]  # keywords that were not used
    phrases: list[str]  # keywords of more than one word: also not used
    unknown: int  # words of the pages without a vector

    @property
    def all_keywords(self) -> list[str]:
        """The first keywords, then the added ones."""
        return self.keywords + [judged.word for judged in self.added]


def expand(keywords: Sequence[str], words: Iterable[str], vectors: Vectors) -> Expansion:
    """Add to the keywords of a topic those of some words that are close to them.

    The threshold is the mean cosine of all pairs of different keywords. A word is added if its mean cosine to the
    first keywords is above it.

    Parameters
    ----------
    keywords
        At least two single words with a vector among them.
    words
        Of pages on the topic, as :func:`~scrapy_focus.web.words.words_of` returns them.

    Raises
    ------
    ConfigError
        If fewer than two keywords have a vector.

    References
    ----------
    Kontogiannis, Kelesis, Pollatos, Giannakopoulos, Paliouras: Tree-based Focused Web Crawling with Reinforcement
    Learning (2021), Algorithm 1. As released, punctuation stays on the words of pages, so that those at the end of a
    sentence are lost; here it is stripped.
    """
    first = list(dict.fromkeys(filter(None, map(_plain, keywords))))
    singles = [keyword for keyword in first if " " not in keyword]
    known = _with_vector(singles, vectors)
    _check_known(known, first)
    units = units_of([entry_of(word, vectors) for word in known], vectors)
    cosines = units @ units.T
    pairs = len(known) * (len(known) - 1)
    threshold = float((cosines.sum() - np.trace(cosines)) / pairs)
    others = sorted(set(words) - set(first))
    judged = _with_vector(others, vectors)
    expansion = Expansion(
        keywords=first,
        added=[],
        rejected=[],
        threshold=threshold,
        without_vector=[keyword for keyword in singles if keyword not in known],
        phrases=[keyword for keyword in first if " " in keyword],
        unknown=len(others) - len(judged),
    )
    if judged:
        for each in _judge(judged, known, units, vectors):
            if each.score > threshold:
                expansion.added.append(each)
            else:
                expansion.rejected.append(each)
    return expansion


def _check_known(known: Sequence[str], keywords: Sequence[str]) -> None:
    if len(known) < 2:
        raise ConfigError(
            f"the word vectors know {', '.join(known) or 'none'} of the keywords {', '.join(keywords) or '(none)'}; "
            "two single words that they know are needed: add keywords, or name vectors of their language"
        )


def _with_vector(words: Iterable[str], vectors: Vectors) -> list[str]:
    return [word for word in words if entry_of(word, vectors)]


class Telling(NamedTuple):
    """Which words of pages on a topic distinguish these from other pages."""

    words: list[str]
    common: list[str]  # those that do not, or are on too few pages to decide, the most frequent first


def telling(keywords: Sequence[str], pages: Sequence[str], others: Sequence[str]) -> Telling:
    """Split the words of pages on a topic into distinctive ones and those of any page.

    A word is kept if its share of the pages is high enough relative to that of the others: 1.2 times, and at least
    the square root of the keywords' ratio, in the geometric mean. And that must not be chance, which it is for one
    word in a hundred (by the log-likelihood ratio, Dunning 1993): of ten pages, a word is on five, and on none of ten
    others. Without other pages there is less evidence: then a word must be on two pages, and at most on as many as
    the most frequent of the keywords, or on half of them.

    Parameters
    ----------
    keywords
        The first ones. Those on none of the pages are not used.
    pages, others
        Texts of pages on the topic, and of others.
    """
    on, off = _on_pages(pages), _on_pages(others)
    known = [each for each in map(_plain, keywords) if on[each]]
    if others:
        common = _common_beside(on, off, known, (len(pages), len(others)))
    else:
        most = max([len(pages) / 2, *(on[each] for each in known)])
        common = [word for word, n in on.items() if not 2 <= n <= most]
    common.sort(key=lambda word: (-on[word], word))
    return Telling(sorted(on.keys() - {*common}), common)


def _common_beside(
    on: Mapping[str, int], off: Mapping[str, int], known: Sequence[str], sizes: tuple[int, int]
) -> list[str]:
    """Return the words that are about as frequent on other pages; ``sizes`` are the numbers of pages and of others."""
    times = {word: _share(n, sizes[0]) / _share(off[word], sizes[1]) for word, n in on.items()}
    least = _TIMES
    if known:
        mean = sum(math.log(times[each]) for each in known) / len(known)
        least = max(_TIMES, math.exp(mean / 2))  # half of a logarithm: the square root
    common = []
    for word, n in times.items():
        if n < least or _surprise((on[word], off[word]), sizes) < _CHANCE:
            common.append(word)
    return common


def _on_pages(texts: Sequence[str]) -> Counter[str]:
    """Return on how many pages each word is."""
    return Counter(word for text in texts for word in set(words_of(text)))


def _surprise(there: tuple[int, int], sizes: tuple[int, int]) -> float:
    """Return the log-likelihood ratio of two shares against one, on the scale of chi-square."""
    both = sum(there) / sum(sizes)
    found = 0.0
    for n, size in zip(there, sizes, strict=True):
        for part, share in ((n, both), (size - n, 1 - both)):
            if part:
                found += 2 * part * math.log(part / (size * share))
    return found


def _share(n: int, pages: int) -> float:
    """Return the share of pages with a word, above 0 even if there are none."""
    return (n + 0.5) / (pages + 1)


def _judge(words: list[str], keywords: list[str], units: NDArray[np.float64], vectors: Vectors) -> list[Judged]:
    cosines = units_of([entry_of(word, vectors) for word in words], vectors) @ units.T
    scores = cosines.mean(axis=1)
    found = []
    for i in np.argsort(-scores, kind="stable").tolist():
        near, far = int(cosines[i].argmax()), int(cosines[i].argmin())
        nearest, farthest = float(cosines[i, near]), float(cosines[i, far])
        found.append(Judged(words[i], float(scores[i]), keywords[near], nearest, keywords[far], farthest))
    return found


def units_of(entries: Sequence[str], vectors: Vectors) -> NDArray[np.float64]:
    """Return the vectors of some entries, at length 1, shape (len(entries), d)."""
    rows = np.array([vectors[entry] for entry in entries], np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1))


def _plain(keyword: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", keyword).lower().split())


def read_keywords(path: str | PathLike[str]) -> list[str]:
    """Return the keywords in a text file, UTF-8: one on each line, including phrases; text after ``#`` is a comment.

    Raises
    ------
    ConfigError
        If the file cannot be read, or has no keyword.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"the keywords in {path} cannot be read: {reason}; it takes a text file") from error
    found = [keyword for line in lines if (keyword := _plain(line.partition("#")[0]))]
    if not found:
        raise ConfigError(f"{path} has no keyword; write one on each line")
    return list(dict.fromkeys(found))
