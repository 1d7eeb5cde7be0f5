"""The words of a link as numbers: of its surrounding text, its URL and its anchor.

They are kept with each queued link, because all links are scored again whenever the classifier is retrained.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from zlib import crc32

import numpy as np

from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link

AROUND, URL, ANCHOR = range(3)  # sorts of words
SORTS = 3

_SORT = 1 << 21  # numbers of each sort: with three sorts, float32 holds all of them exactly
_WINDOW = 10  # words before a link, and behind it
_MOST = 60  # numbers of a link


def number(sort: int, word: str) -> int:
    """Return the number of a word of some sort, the same in every process."""
    return sort * _SORT + crc32(word.encode("utf-8", "surrogatepass")) % _SORT


def sort_of(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sort of each number, shape (n,)."""
    return numbers // _SORT


def read(link: Link) -> NDArray[np.float32]:
    """Return the different numbers of the words of a link, ascending, shape (n,), n at most 60.

    The words of its URL are those of the path, and its last label as ``.com``.

    Examples
    --------
    >>> from scrapy_focus import Link
    >>> link = Link("http://a.example/red-wine", 1, anchor="Red", context="Buy Red today")
    >>> wanted = [(AROUND, "buy"), (AROUND, "today"), (URL, "red"), (URL, "wine"), (URL, ".example"), (ANCHOR, "red")]
    >>> read(link).tolist() == sorted(number(*each) for each in wanted)
    True
    """
    parts = urlsplit(link.url)
    host = parts.netloc.rpartition("@")[2].partition(":")[0]
    label = f".{host.rpartition('.')[2].lower()}"
    before, _, after = link.context.partition(link.anchor) if link.anchor else (link.context, "", "")
    words = {number(ANCHOR, word): None for word in words_of(link.anchor)}
    words.update((number(URL, word), None) for word in (label, *words_of(unquote(parts.path))))
    words.update((number(AROUND, word), None) for word in _near(words_of(before)[::-1], words_of(after)))
    return np.array(sorted(islice(words, _MOST)), np.float32)


def _near(*sides: list[str]) -> Iterable[str]:
    return (word for side in sides for word in side[:_WINDOW])
