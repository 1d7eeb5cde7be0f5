"""Features of a link before it is fetched, and of the pages that link to it.

The words of a link never change, and are read once. The rewards of its parents (the pages where it was found) and
siblings (the other links of these pages) become known while it is queued. So a queued link carries its words and the
numbers of its parents, whose current data are looked up when the link is scored.

References
----------
Meusel, Mika, Blanco: Focused Crawling for Structured Data. CIKM 2014; section 1.1 of the authors' page about it.
"""

from __future__ import annotations

import re
from array import array
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from scrapy_focus.frontiers.keys import KeyMap
from scrapy_focus.learn.hashed import N_FEATURES, NOTHING, Remembered, exact_feature, feature
from scrapy_focus.policies.branching.features import path_of, shape_of
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link

WIDTH = 24  # features of a link itself
PARENTS = 3  # remembered pages that link to it

_TOKENS = 10
_ANCHOR_WORDS = 5
_ANCHOR = 200  # characters of an anchor that are read
_FRAGMENT = 100  # characters of a fragment that are read
_SHORTEST, _LONGEST = 3, 30  # letters of a token
_SHOWN = 80  # characters read of a tag path, from its end
_TOKEN = re.compile(r"[^\W_]+")
_DIGITS = re.compile(r"\d+")
_NUMBER = "0"
_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_ANY = 1  # a feature that every link has
_UNKNOWN = -1

_COUNTS = 7  # classes of counts that are distinguished: 0, 1, 2, 3, up to 7, up to 15, and more
_SHARES = 7  # kinds of shares: none known, and six parts


def tokens_of(url: str) -> list[str]:
    """Return the tokens of the path, the query and the fragment of a URL: lower case, without repetition, in order.

    All numbers are one token, ``0``. Digits are removed from tokens with letters. Then tokens of less than three
    letters or more than thirty are dropped.

    Examples
    --------
    >>> tokens_of("http://shop.example/Cakes/a4711b-2024-lemon_tart.html?page=2#the-top")
    ['cakes', '0', 'lemon', 'tart', 'html', 'page', 'the', 'top']
    """
    return list(dict.fromkeys(filter(None, map(_plain, _TOKEN.findall(_text_of(url))))))


def _text_of(url: str) -> str:
    """Return the text to split into tokens: the path, the query and the fragment, lower case, each digit a zero."""
    text = path_of(url)
    if "#" in url:
        text = f"{text} {url.partition('#')[2][:_FRAGMENT]}"
    if "%" in text:
        text = unquote(text)
    return _without_digits(text.lower())


def _without_digits(text: str) -> str:
    """Return a text with each digit replaced by a zero; bytes are translated five times as fast."""
    return text.encode("utf-8", "surrogatepass").translate(_ZEROS).decode("utf-8", "surrogatepass")


def _plain(token: str) -> str:
    """Return a token without its digits, ``0`` for a number, and ``""`` for one that is dropped."""
    word = token if token.isalpha() else _DIGITS.sub("", token)
    if not word:
        return _NUMBER
    if _SHORTEST <= len(word) <= _LONGEST:
        return word
    return ""


class LinkFeatures:
    """Hashes links: the tokens of their URLs, their hosts, and optionally their places.

    A place is the text of the link and its position on its page: on any host, and on this one. The shape of a URL
    (its folders, its extension, the names in its query, without numbers) is hashed in the same two ways.

    Parameters
    ----------
    published
        Read only what the paper reads: the tokens, and the host.
    places
        Whether anchors and tag paths are read.
    """

    def __init__(self, *, published: bool, places: bool) -> None:
        self.published = published
        self.places = places
        self._make()

    def _make(self) -> None:
        self._tokens = Remembered(_read_token)
        self._hosts = Remembered(partial(exact_feature, "host"))
        self._anchors = Remembered(_read_anchor)
        self._shapes = Remembered(partial(feature, "shape"))
        self._places = Remembered(partial(feature, "place"))

    def rows(self, links: Sequence[Link]) -> NDArray[np.uint16]:
        """Return the features of some links, shape (n, 24), 0 where one has fewer."""
        found = array("H")
        tokens, hosts, published, find = self._tokens, self._hosts, self.published, _TOKEN.findall
        for link in links:
            text, host = _text_of(link.url), hosts[link.host]
            row = list(dict.fromkeys([tokens[token] for token in find(text)]))[:_TOKENS]
            row += host, _ANY
            if not published:
                folder, extension, names = shape_of(text)
                shape = self._shapes[f"{folder}|{extension}|{names}"]
                row += shape, _both(host, shape)
                if self.places:
                    row += self._anchors[_without_digits(link.anchor[:_ANCHOR])]
                    if link.tag_path:
                        place = self._places[link.tag_path[-_SHOWN:]]
                        row += place, _both(host, place)
            found.extend(row)
            found.extend(_REST[len(row)])
        return np.frombuffer(found, np.uint16).reshape(-1, WIDTH)

    def __getstate__(self) -> dict[str, Any]:
        return {"published": self.published, "places": self.places}  # the rest is recomputed from the texts

    def __setstate__(self, state: dict[str, Any]) -> None:
        LinkFeatures.__init__(self, **state)


class Pages:
    """The rewards of fetched pages and of the pages that they link to.

    *Memory*: 35 bytes a page.
    """

    def __init__(self) -> None:
        self._numbers = KeyMap()  # by key
        self._worth = array("b", (_UNKNOWN,))  # page 0 is a placeholder for none
        self._good = array("i", (0,))  # children with a reward
        self._bad = array("i", (0,))
        self._said = array("H", _NONE)  # features around a link with this parent alone

    def __len__(self) -> int:
        return len(self._worth)

    def number(self, key: int) -> int:
        """Return the number of a page, a new one if it has none."""
        number = self._numbers.get(key, 0)
        if not number:
            number = len(self._worth)
            self._numbers.set(key, number)
            self._worth.append(_UNKNOWN)
            self._good.append(0)
            self._bad.append(0)
            self._said.extend(_NONE)
        return number

    def also(self, key: int, page: int) -> None:
        """Add another key of a page."""
        self._numbers.set(key, page)

    def known(self, key: int) -> int:
        """Return the number of a page, 0 if it has none."""
        return self._numbers.get(key, 0)

    def worth(self, page: int) -> int:
        """Return 1 for a page with a reward, 0 for one without, -1 if unknown."""
        return self._worth[page]

    def label(self, page: int, *, good: bool) -> None:
        """Record the reward of a page."""
        if self._worth[page] != good:
            self._worth[page] = good
            self._say(page)

    def labelled_child(self, page: int, *, good: bool) -> None:
        """Record the reward of a page that another one links to."""
        if good:
            self._good[page] += 1
        else:
            self._bad[page] += 1
        self._say(page)

    def children(self, page: int) -> tuple[int, int]:
        """Return how many pages that a page links to are known to have a reward, and to have none."""
        return self._good[page], self._bad[page]

    def evidence(self, parents: Collection[int]) -> tuple[int, int, int, int]:
        """Return the evidence around a link with these parents; 0 for none.

        How many parents had a reward and how many none, and how many siblings.
        """
        worth = [self._worth[page] for page in parents]
        good, bad = sum(self._good[page] for page in parents), sum(self._bad[page] for page in parents)
        return worth.count(1), worth.count(0), good, bad

    def features(self, parents: NDArray[np.uint32]) -> NDArray[np.uint16]:
        """Return features of the evidence around links, shape (n, 7), for the numbers of their parents, shape (n, 3).

        Each count of :meth:`evidence`, whether any parent and any sibling had a reward, and the share of the siblings
        that did, combined with whether a parent did.
        """
        rows = np.frombuffer(self._said, np.uint16).reshape(-1, len(_NONE))[parents[:, 0]]
        if parents[:, 1].any():
            for at in np.flatnonzero(parents[:, 1]).tolist():
                rows[at] = _said_of(*self.evidence(parents[at].tolist()))
        return rows

    def _say(self, page: int) -> None:
        width = len(_NONE)
        self._said[page * width : (page + 1) * width] = array("H", _said_of(*self.evidence((page,))))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_numbers": self._numbers.arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _numbers=KeyMap())
        self._numbers.update_many(*state["_numbers"])


def size_features(sizes: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Return a feature of how many links of its host are known, shape (n, 1), in powers of two."""
    return _SIZED[np.minimum(np.log2(sizes + 1), len(_SIZED) - 1).astype(np.intp)][:, None]


def _said_of(*counts: int) -> tuple[int, ...]:
    """Return the features of the counts from :meth:`Pages.evidence`."""
    parents, _, good, bad = counts
    share = 1 + (good * (_SHARES - 2) + (good + bad) // 2) // (good + bad) if good + bad else 0
    grades = [_COUNTED[k][min(n if n < 3 else n.bit_length() + 1, _COUNTS - 1)] for k, n in enumerate(counts)]
    return (*grades, _ANY_PARENT[parents > 0], _ANY_SIBLING[good > 0], _SHARED[parents > 0][share])


def _both(one: int, other: int) -> int:
    """Return the feature of two that occur together."""
    return (one * 40_503 + other * 27_644_437) % (N_FEATURES - 1) + 1


def _read_token(token: str) -> int:
    word = _plain(token)
    return exact_feature("token", word) if word else NOTHING


def _read_anchor(anchor: str) -> tuple[int, ...]:
    return tuple(feature("anchor", word) for word in words_of(anchor)[:_ANCHOR_WORDS])


_REST = [[NOTHING] * (WIDTH - n) for n in range(WIDTH + 1)]
_COUNTED = [[feature(f"count {k}", "i" * n) for n in range(_COUNTS)] for k in range(4)]
_ANY_PARENT = [feature("any parent", word) for word in ("no", "yes")]
_ANY_SIBLING = [feature("any sibling", word) for word in ("no", "yes")]
_SHARED = [[feature(f"share {parent}", "i" * n) for n in range(_SHARES)] for parent in ("no", "yes")]
_SIZED = np.array([feature("size", "i" * n) for n in range(14)], np.uint16)
_NONE = _said_of(0, 0, 0, 0)
