"""Hashed features of a link before it is fetched, for a linear model: its URL, its words, its place.

The distinctive words of a site's links are not known beforehand. So each property of a link, such as "its URL has the
word data, followed by a number", is hashed to one of 65,535 features. A row of 32 of them, two bytes each, is kept
with the queued link in the frontier, and hundreds of links can be scored again without reading one.
"""

from __future__ import annotations

import re
from array import array
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.learn.hashed import N_FEATURES, NOTHING, Remembered, feature
from scrapy_focus.web.words import first_word, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link

WIDTH = 32  # features of a link
BYTES = 2 * WIDTH

_URL_WORDS, _ANCHOR_WORDS, _ELEMENTS = 8, 6, 3
_NOTHING = [NOTHING] * _ANCHOR_WORDS
_RANKS = 16
_WORD = re.compile(r"[a-z]+|0+|\|")
_LETTERS = b"abcdefghijklmnopqrstuvwxyz0"
_OTHERS = bytes(byte for byte in range(256) if byte not in _LETTERS and byte != ord("\n"))
_PARTS = bytes.maketrans(_OTHERS + b"\n", b" " * len(_OTHERS) + b"|")  # letters are kept, a bar ends each path
_DIGITS = str.maketrans("123456789", "000000000")
_FOLDERS = 3  # of a path that belong to its template
_LONGEST = 512  # characters of a path; of a longer one, half of them from each end are read
_SHAPE = 64  # characters of each part of the template of a path
_READ = 200  # characters read of an anchor ...
_NEAR = 60  # ... and of the text around it
ANY = 1  # a feature that every link has


class LinkHasher:
    """Hashes links: words of the URL after the host, each alone and with the next; the template of the URL (folders
    without numbers, extension, names in the query) and its extension; words of the anchor and of the text around it;
    its place (its own element, with one and two around it, and the whole tag path); its height on the page; and how
    many links to targets are on that page, alone and with its own element. All numbers are equal.
    """

    def __init__(self) -> None:
        self._words = Remembered(_read_word)
        self._anchor_words = Remembered(partial(feature, "anchor"))
        self._anchors = Remembered(self._read_anchor)
        self._context_words = Remembered(partial(feature, "context"))
        self._templates = Remembered(partial(feature, "template"))
        self._extensions = Remembered(partial(feature, "extension"))
        self._tag_paths = Remembered(_read_tag_path)
        self._beside = Remembered(partial(feature, "beside"))
        self._ranks = [feature("rank", "i" * rank) for rank in range(_RANKS)]

    def rows(self, links: Sequence[Link], beside: int = 0, paths: Sequence[str] | None = None) -> NDArray[np.uint16]:
        """Return the features of links of one page, in document order, shape (n, 32), 0 where a link has fewer.

        ``beside``: how many of them are known to be targets, by their names; ``paths``: their URLs as cut by
        :func:`path_of`, if known.
        """
        cut = [path_of(link.url) for link in links] if paths is None else paths
        text = "\n".join(cut).lower().translate(_DIGITS)
        shapes = [shape_of(path) for path in text.split("\n")]
        many = "i" * beside.bit_length()
        places = {tag_path: self._read_place(tag_path, many) for tag_path in {link.tag_path for link in links}}
        anchors, templates, extensions, ranks = self._anchors, self._templates, self._extensions, self._ranks
        each = array("H", self._read_contexts(links))
        each.extend(array("H", [templates["|".join(shape)] for shape in shapes]))
        each.extend(array("H", [extensions[extension] for _, extension, _ in shapes]))
        each.extend(array("H", [ranks[min(at.bit_length(), _RANKS - 1)] for at in range(1, len(links) + 1)]))
        read = _without_digits([link.anchor[:_READ] for link in links])
        n, words = len(links), self._read_paths(text)
        rows = np.concatenate(
            [
                words, _pairs(words),
                np.frombuffer(b"".join([anchors[anchor] for anchor in read]), np.uint16).reshape(n, -1),
                np.frombuffer(b"".join([places[link.tag_path] for link in links]), np.uint16).reshape(n, -1),
                np.frombuffer(each, np.uint16).reshape(-1, n).T,
            ],
            axis=1,
        )  # fmt: skip
        rows.sort(axis=1)
        rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = 0  # repeated features count once
        return rows

    def anchor_features(self, texts: Iterable[str]) -> list[int]:
        """Return the features of all words of some texts, as they would be in an anchor."""
        return [self._anchor_words[word] for text in texts for word in words_of(text)]

    def __getstate__(self) -> dict[str, Any]:
        return {}  # recomputed from the texts

    def __setstate__(self, state: dict[str, Any]) -> None:
        LinkHasher.__init__(self)

    def _read_paths(self, paths: str) -> NDArray[np.uint16]:
        """Return the features of the last words of each line, at the end of its row, shape (n, 8)."""
        found = [*map(self._words.__getitem__, _words_in(paths + "\n"))]
        features = np.frombuffer(array("H", found), np.uint16)
        ends = np.flatnonzero(features == 0)
        starts = np.concatenate([[0], ends[:-1] + 1])
        at = ends[:, None] - np.arange(_URL_WORDS, 0, -1)
        return np.where(at >= starts[:, None], features[np.maximum(at, 0)], 0).astype(np.uint16)

    def _read_anchor(self, anchor: str) -> bytes:
        """Return the features of the first words of an anchor."""
        words = [self._anchor_words[word] for word in words_of(anchor)[:_ANCHOR_WORDS]]
        return array("H", words + _NOTHING[len(words) :]).tobytes()

    def _read_contexts(self, links: Sequence[Link]) -> list[int]:
        """Return for each link the feature of the first word of the text around it that is not its own."""
        around = [
            link.context[: len(link.anchor) + _READ].replace(link.anchor, " ", 1)[:_NEAR]
            if link.context != link.anchor
            else ""
            for link in links
        ]
        words = map(first_word, _without_digits(around))
        return [self._context_words[word] if word else NOTHING for word in words]

    def _read_place(self, tag_path: str, many: str) -> bytes:
        """Return the features of a link's position and page; any link's features are included."""
        beside = self._beside
        own = beside[f"{many}/{own_element(tag_path)}"]
        return array("H", [*self._tag_paths[tag_path], beside[many], own, ANY]).tobytes()


def path_of(url: str) -> str:
    """Return the path of a URL without its first slash, and the query; both ends of a very long one.

    Examples
    --------
    >>> path_of("http://example.org/Data/2024/prices.CSV?page=2")
    'Data/2024/prices.CSV?page=2'
    """
    url = url.partition("#")[0]
    host = url.find("//") + 2
    behind = url.find("/", host) + 1
    if not behind or "?" in url[host:behind]:
        return ""
    path = url[behind:].replace("\n", " ")
    return path if len(path) <= _LONGEST else path[: _LONGEST // 2] + path[-_LONGEST // 2 :]


def shape_of(path: str) -> tuple[str, str, str]:
    """Return the first three folders of a path, its extension, and the names in its query.

    Examples
    --------
    >>> shape_of("data/2024/prices.csv?page=2&sort=asc")
    ('data/2024', 'csv', 'page&sort')
    """
    path, _, query = path.partition("?")
    folder, _, name = path.rpartition("/")
    extension = name.rpartition(".")[2][:_SHAPE] if "." in name else ""
    if folder.count("/") >= _FOLDERS:
        folder = "/".join(folder.split("/", _FOLDERS)[:_FOLDERS])
    names = "&".join([each.partition("=")[0] for each in query.split("&")]) if query else ""
    return folder[:_SHAPE], extension, names[:_SHAPE]


def extension_of(path: str) -> str:
    """Return the extension of a path, as :func:`shape_of` does."""
    name = path.partition("?")[0].rpartition("/")[2]
    return name.rpartition(".")[2][:_SHAPE] if "." in name else ""


def own_element(tag_path: str) -> str:
    """Return the element of a link itself, without its id.

    Examples
    --------
    >>> own_element("html/body/p/a.file#f7")
    'a.file'
    """
    return tag_path.rpartition("/")[2].partition("#")[0]


def _without_digits(texts: Sequence[str]) -> list[str]:
    """Return texts with all digits replaced by 0."""
    joined = "".join(texts).translate(_DIGITS)  # at once: most of the cost does not depend on the length
    ends = accumulate(map(len, texts))
    return [joined[end - len(text) : end] for text, end in zip(texts, ends, strict=True)]


def _read_tag_path(path: str) -> list[int]:
    """Return the features of the last elements of a tag path, one more in each, and of all of it, without ids."""
    names = [element.partition("#")[0] for element in path.split("/")]
    own = [feature("element", "/".join(names[-n:])) for n in range(1, _ELEMENTS + 1)]
    return [*own, feature("path", "/".join(names))]


def _words_in(paths: str) -> list[str]:
    """Return the words and numbers of paths in lower case without digits but 0, with ``|`` where a line ends."""
    if not paths.isascii():
        return _WORD.findall(paths.replace("|", " ").replace("\n", "|"))
    while "00" in paths:
        paths = paths.replace("00", "0")
    return paths.encode().translate(_PARTS).replace(b"0", b" 0 ").replace(b"|", b" | ").decode().split()


def _read_word(word: str) -> int:
    return feature("url", word) if word != "|" else NOTHING


def _pairs(words: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return a feature for each pair of neighbouring words, shape (n, width - 1) for words of shape (n, width)."""
    left, right = words[:, :-1].astype(np.uint32), words[:, 1:].astype(np.uint32)
    mixed = (left * np.uint32(40_503) + right * np.uint32(27_644_437)) % np.uint32(N_FEATURES - 1) + 1
    return np.where((left > 0) & (right > 0), mixed, 0).astype(np.uint16)
