"""Splits a text in any language into words, for models that identify words by a hash."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# Scripts without blanks between words: Thai to Myanmar, Khmer, kana, Han
_JOINED = (
    "\u0e00-\u0e7f\u0e80-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
)
_WITHIN = "\u200c\u200d"  # (non-)joiners, within words of Persian and of Indian languages
_SYMBOLS = "\U0001f000-\U0001faff"  # emoji and the like, beyond the characters that are classified one by one
_ASCII = re.compile(r"[a-z0-9]{2,}")


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a word, and of a run of a script without blanks.

    Marks belong to words, unlike in ``\\w``. All others are listed, since one class of characters is five times as
    fast as an alternation.
    """
    parts = "".join(
        letter
        for letter in map(chr, range(0x10000))
        if not (letter.isalnum() or letter in _WITHIN or unicodedata.category(letter) in ("Mn", "Mc"))
    )
    return re.compile(rf"[^{re.escape(parts)}{_SYMBOLS}]+"), re.compile(rf"[{_JOINED}]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text, in order: lower case, of two characters or more, including digits.

    Punctuation and ``_`` separate words. A run of a script without blanks yields each pair of neighbouring characters
    (or a single one).

    Examples
    --------
    >>> words_of("The Wine-cellar of DON_JUAN, 1999")
    ['the', 'wine', 'cellar', 'of', 'don', 'juan', '1999']
    >>> words_of("ワイン red")
    ['ワイ', 'イン', 'red']
    """
    if text.isascii():
        return _ASCII.findall(text.lower())
    plain, joined = _patterns()
    found = plain.findall(unicodedata.normalize("NFKC", text).lower())
    if joined.search(text) is None:
        return [word for word in found if len(word) > 1]
    return [piece for word in found for piece in _pieces(word, joined)]


def url_words(url: str) -> list[str]:
    """Return the words of a URL, in lower case: of its host without the last label, its path, and its query.

    Examples
    --------
    >>> url_words("https://www.bike-shop.example/Mountain_bikes/e%2Dbikes?size=28")
    ['bike', 'shop', 'mountain', 'bikes', 'bikes', 'size', '28']
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].partition(":")[0].removeprefix("www.").rpartition(".")[0]
    return words_of(f"{host} {unquote(parts.path)} {unquote(parts.query)}")


def first_word(text: str) -> str:
    """Return the first of :func:`words_of`, ``""`` if there is none.

    Examples
    --------
    >>> first_word("A Wine-cellar")
    'wine'
    """
    if text.isascii():
        found = _ASCII.search(text.lower())
        return found[0] if found else ""
    return next(iter(words_of(text)), "")


def _pieces(word: str, joined: re.Pattern[str]) -> Iterator[str]:
    end = 0
    for run in joined.finditer(word):
        if run.start() - end > 1:
            yield word[end : run.start()]
        end = run.end()
        letters = run[0]
        if len(letters) == 1:
            yield letters
        else:
            yield from map("".join, pairwise(letters))
    if len(word) - end > 1:
        yield word[end:]


def is_joined(letter: str) -> bool:
    """Whether a character belongs to a script without blanks."""
    return _patterns()[1].match(letter) is not None


def numbers_of(words: list[str]) -> NDArray[np.uint32]:
    """Return the number of each word in models, shape (len(words),): the CRC-32 of its UTF-8 bytes."""
    numbers = [crc32(word.encode("utf-8", "surrogatepass")) for word in words]
    return np.array(numbers, np.uint32)
