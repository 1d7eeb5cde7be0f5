"""What TRES looks at before it fetches a link: the path that led there, the words on it, its host; each in six bits.

A vector has two parts. The *codes*, from 0 to 63, stand for numbers from 0 to 1: the tree splits on them, and the
network reads them. What is *carried* behind them is for later: what is needed to count on, and the groups of the link,
whose records are looked up again whenever it is judged.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief
from scrapy_focus.core.types import State
from scrapy_focus.learn.models import relevance_of
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Drawn
    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.types import Link, Outcome, Pick
    from scrapy_focus.policies.domains import Domains

LEVELS = 63  # the largest code
PUBLISHED = (
    "parent relevant", "nearness of a relevant page", "relevant share of the path", "keyword in the URL",
    "keyword in the anchor", "probability", "relevant share of its host", "unknown host",
)  # fmt: skip
IN_LINKS = ("share of links from relevant pages", "links from relevant pages")
GROUPS = ("tag path", "URL pattern", "anchor")
OF_A_GROUP = ("reward of the {}", "reward behind the {}", "unknown {}")
PARENT, NEARNESS, SHARE, KEYWORD_URL, KEYWORD_ANCHOR, PROBABILITY, HOST_SHARE, HOST_UNKNOWN, IN_SHARE, IN_COUNT = range(
    10
)

_BUCKETS = 1 << 16  # of each kind of group
_NUMBER = re.compile(r"\d+")
_READ = 20_000  # links of which it is remembered what they say
_WORDS = 100_000  # of which it is remembered whether they are keywords
_PREFIX = 4  # keywords of so many letters also stand at the beginning of longer words


class Layout(NamedTuple):
    """Where what stands in a vector: ``names`` of its codes, then the bytes that are carried."""

    names: tuple[str, ...]
    in_links: bool
    groups: bool

    @property
    def n_codes(self) -> int:
        """How many codes there are."""
        return len(self.names)

    @property
    def path(self) -> int:
        """First of three bytes: relevant and other pages on the path, clicks since a relevant one."""
        return self.n_codes

    @property
    def counts(self) -> int:
        """First of two bytes: links to it from relevant pages, and all."""
        return self.path + 3

    @property
    def buckets(self) -> int:
        """First of ten bytes: three groups, and the first two of its page."""
        return self.counts + 2 * self.in_links

    @property
    def width(self) -> int:
        """Bytes of a vector."""
        return self.buckets + 10 * self.groups

    def groups_of(self, pick: Pick) -> NDArray[np.uint8]:
        """Return the bytes of the groups of a pick and its page, shape (10,)."""
        return self.vector_of(pick)[self.buckets :]

    def vector_of(self, pick: Pick) -> NDArray[np.uint8]:
        """Return the vector of a pick, shape (width,); zeros where it has none, as the policy could not place it."""
        return np.zeros(self.width, np.uint8) if pick.memo is None else pick.memo.astype(np.uint8, copy=False)


def layout(*, in_links: bool, groups: bool) -> Layout:
    """Return the layout of vectors with or without the features that are not in the paper."""
    names = PUBLISHED + IN_LINKS * in_links
    if groups:
        names += (*(each.format(group) for group in GROUPS for each in OF_A_GROUP), "depth")
    return Layout(names, in_links, groups)


def checked(keywords: Collection[str]) -> tuple[str, ...]:
    """Return keywords as a tuple.

    Raises
    ------
    ConfigError
        If they are not a list of texts.
    """
    listed = [*keywords] if isinstance(keywords, Iterable) and not isinstance(keywords, str) else [None]
    if not all(isinstance(keyword, str) for keyword in listed):
        raise ConfigError(f"keywords is {brief(keywords)}; it takes a list of words and phrases")
    return tuple(map(str, listed))


class Words:
    """Finds keywords in texts, whole or as the beginning of a longer word, in any case; phrases where they stand.

    A keyword of fewer than four letters must be a whole word.
    """

    def __init__(self, keywords: Collection[str]) -> None:
        folded = sorted({" ".join(words_of(keyword)) for keyword in keywords} - {""})
        self._phrases = [phrase for phrase in folded if " " in phrase]
        self._single = frozenset(word for word in folded if " " not in word)
        self._lengths = sorted({len(word) for word in self._single if len(word) >= _PREFIX})
        self._known: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._single or self._phrases)

    def found(self, words: Sequence[str]) -> bool:
        """Whether one of them is among these words, which are in lower case."""
        if any(self._is_keyword(word) for word in words):
            return True
        text = f" {' '.join(words)} " if self._phrases else ""
        return any(f" {phrase} " in text for phrase in self._phrases)

    def count(self, words: Sequence[str]) -> int:
        """Return how often one of them is among these words, which are in lower case, in their order."""
        text = f" {' '.join(words)} " if self._phrases else ""
        return sum(map(self._is_keyword, words)) + sum(text.count(f" {phrase} ") for phrase in self._phrases)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}

    def _is_keyword(self, word: str) -> bool:
        known = self._known.get(word)
        if known is None:
            if len(self._known) >= _WORDS:
                self._known.clear()
            known = word in self._single or any(word[:length] in self._single for length in self._lengths)
            self._known[word] = known
        return known


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


def codes(values: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Return the codes of numbers; what is not between 0 and 1 is cut."""
    coded: NDArray[np.uint8] = (np.minimum(np.maximum(values, 0), 1) * LEVELS + 0.5).astype(np.uint8)
    return coded


def bucket(text: str) -> int:
    """Return the group of a text in which all numbers count as equal, the same in every process."""
    return zlib.crc32(_NUMBER.sub("0", text).encode("utf-8", "surrogatepass")) % _BUCKETS


def url_pattern(url: str) -> str:
    """Return what a URL has in common with others of its kind: its host, folder, extension, and names in its query.

    Examples
    --------
    >>> url_pattern("http://a.example/data/2024/file-7.csv?page=3&q=x")
    'a.example/data/2024/.csv?page&q'
    """
    parts = urlsplit(url)
    folder, _, name = parts.path.rpartition("/")
    names = "&".join(each.partition("=")[0] for each in parts.query.split("&"))
    dot = name.rfind(".")
    return f"{parts.netloc}{folder}/{name[dot:] if dot >= 0 else ''}?{names}"


class LinkReader:
    """Reads the words of links: whether keywords are among them, and how probable they make the topic.

    Parameters
    ----------
    keywords
        Words and phrases, see :class:`Words`.
    relevance
        A classifier of texts, or the file of one that ``scrapy focus-train`` wrote; without one, the probability is 0.
    """

    def __init__(self, keywords: Collection[str], relevance: str | PathLike[str] | Topic | None) -> None:
        self.words = Words(keywords)
        self.relevance: Topic | None = relevance_of(relevance) if isinstance(relevance, (str, PathLike)) else relevance
        if keywords and not self.words:
            raise ConfigError(f"keywords is {keywords!r}: none of them has a word of two letters or more")
        self._known: dict[
            tuple[str, str], tuple[float, float, float]
        ] = {}  # what was read lately, as on each page of a site

    def read(self, links: Sequence[Link]) -> NDArray[np.float64]:
        """Return of each link whether a keyword is in its URL, in its anchor, and its probability, shape (n, 3)."""
        if not self.words and self.relevance is None:
            return np.zeros((len(links), 3))
        if len(self._known) > _READ:
            self._known.clear()
        missing = list(dict.fromkeys(each for link in links if (each := (link.url, link.anchor)) not in self._known))
        if missing:
            read = [(url_words(url), words_of(anchor)) for url, anchor in missing]
            scores = np.zeros(len(missing))
            if self.relevance is not None:
                scores = np.nan_to_num(self.relevance.score([" ".join(a + u) for u, a in read]))
            for each, (in_url, in_anchor), score in zip(missing, read, scores.tolist(), strict=True):
                self._known[each] = self.words.found(in_url), self.words.found(in_anchor), score
        return np.array([self._known[link.url, link.anchor] for link in links])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}


class Features:
    """Makes the vectors of links as they are found, and says what they are when one is to be chosen.

    Parameters
    ----------
    layout
        What is in the vectors.
    reader
        Reads the words of the links.
    domains
        What is known of domains.
    seeds_are_relevant
        Whether the page of a seed counts as relevant for the path behind it, whatever it earned.
    hosts
        Whether the features of domains are there, or 0.
    """

    def __init__(
        self, layout: Layout, reader: LinkReader, domains: Domains, *, seeds_are_relevant: bool, hosts: bool = True
    ) -> None:
        self.layout = layout
        self.reader = reader
        self.domains = domains
        self.groups = Groups() if layout.groups else None
        self.seeds_are_relevant = seeds_are_relevant
        self.hosts = hosts

    def found(self, links: Sequence[Link], source: Outcome | None) -> NDArray[np.uint8]:
        """Return the vectors of links of one page, shape (n, width), as if no other page led there.

        The features of domains and groups are left at 0.
        """
        made = np.zeros((len(links), self.layout.width), np.uint8)
        path, page_groups = np.zeros(3, np.uint8), np.zeros(4, np.uint8)
        if source is not None:
            memo = self.layout.vector_of(source.pick)
            relevant = source.reward > 0 or (self.seeds_are_relevant and source.pick.origin < 0)
            path = path_after(memo[self.layout.path :][:3], relevant=relevant)
            page_groups = memo[self.layout.buckets :][:4]
        hits, others, clicks = (int(byte) for byte in path)
        made[:, PARENT] = LEVELS * (clicks == 1)
        made[:, NEARNESS] = round(LEVELS / clicks) if clicks else 0
        made[:, SHARE] = round(LEVELS * hits / max(hits + others, 1))
        made[:, self.layout.path : self.layout.path + 3] = path
        made[:, [KEYWORD_URL, KEYWORD_ANCHOR, PROBABILITY]] = codes(self.reader.read(links))
        if self.layout.in_links:
            made[:, self.layout.counts : self.layout.counts + 2] = clicks == 1, 1
        if self.layout.groups:
            made[:, self.layout.n_codes - 1] = [min(2 * link.depth, LEVELS) for link in links]
            start = self.layout.buckets
            groups = [(bucket(link.tag_path), bucket(url_pattern(link.url)), bucket(link.anchor)) for link in links]
            made[:, start : start + 6] = np.array(groups, "<u2").view(np.uint8).reshape(len(links), 6)
            made[:, start + 6 : start + 10] = page_groups
        return made

    def keep(self, made: NDArray[np.uint8], links: Sequence[Link], frontier: Drawn) -> None:
        """Of links that wait, keep the path on which they were found first and the best words, and add up pages that
        link.
        """
        known = [i for i, link in enumerate(links) if link.state == State.WAITING]
        if not known:
            return
        old, new = frontier.vectors([links[i].key for i in known]), made[known]
        for column in (KEYWORD_ANCHOR, PROBABILITY):
            old[:, column] = np.maximum(old[:, column], new[:, column])
        if self.layout.in_links:
            start = self.layout.counts
            sums = old[:, start : start + 2].astype(np.int64) + new[:, start : start + 2]
            old[:, start : start + 2] = np.minimum(sums, 255)
        made[known] = old

    def count(self, made: NDArray[np.uint8]) -> None:
        """Write the features that say how many pages link there."""
        if self.layout.in_links:
            relevant, all_ = made[:, self.layout.counts], made[:, self.layout.counts + 1]
            made[:, IN_SHARE] = np.rint(LEVELS * (relevant / all_))
            made[:, IN_COUNT] = np.minimum(np.rint(12 * np.log2(1.0 + relevant)), LEVELS)

    def now(self, vectors: NDArray[np.uint8], rows: NDArray[np.intp]) -> NDArray[np.uint8]:
        """Return the codes of links with what is known now of their domains, by row, and groups, shape (n, n_codes)."""
        x = vectors[:, : self.layout.n_codes].copy()
        if self.hosts:
            x[:, HOST_SHARE : HOST_SHARE + 2] = codes(self.domains.shares(rows))
        if self.groups is not None:
            start, first = self.layout.buckets, self.layout.n_codes - 10
            x[:, first : first + 9] = self.groups.codes(vectors[:, start : start + 6])
        return x

    def of(self, pick: Pick) -> NDArray[np.uint8]:
        """Return the codes of a pick as they are now, shape (n_codes,)."""
        vectors = self.layout.vector_of(pick)[None]
        codes_now: NDArray[np.uint8] = self.now(vectors, np.array([self.domains.row(pick.host)]))[0]
        return codes_now


def path_after(path: NDArray[np.uint8], *, relevant: bool) -> NDArray[np.uint8]:
    """Return the three bytes of a path when one more page is on it. Counts are halved where they would be too large.

    The clicks since a relevant page are 0 where there was none.
    """
    hits, others, clicks = (int(byte) for byte in path)
    hits, others = hits + relevant, others + (not relevant)
    if max(hits, others) > 255:
        hits, others = hits // 2, others // 2
    clicks = 1 if relevant else min(clicks + 1, 255) if clicks else 0
    return np.array([hits, others, clicks], np.uint8)


class Groups:
    """What came of the links of each group: how many were asked for, what they earned, and what was earned behind them.

    Groups are of three kinds, by tag path, by URL pattern and by anchor, of 65,536 each; 3 MB in all.
    """

    def __init__(self) -> None:
        shape = (len(GROUPS), _BUCKETS)
        self.asked = np.zeros(shape, np.float32)
        self.back = np.zeros(shape, np.float32)
        self.rewards = np.zeros(shape, np.float32)
        self.behind = np.zeros(shape, np.float32)  # of what was found on their pages

    def codes(self, groups: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the codes of links whose groups, shape (n, 6), are given: for each kind three, shape (n, 9)."""
        columns = []
        for kind, rows in enumerate(_numbers(groups).T):
            back = np.maximum(self.back[kind, rows], 1)
            behind = np.maximum(self.behind[kind, rows] / back, 0)
            columns += [self.rewards[kind, rows] / back, behind / (1 + behind), self.asked[kind, rows] == 0]
        return codes(np.stack(columns, axis=1))

    def ask(self, carried: NDArray[np.uint8], times: int) -> None:
        """A link with these bytes, shape (10,), is asked for, or not after all (-1)."""
        for kind, group in enumerate(_numbers(carried[:6])):
            self.asked[kind, group] += times

    def settle(self, carried: NDArray[np.uint8], reward: float) -> None:
        """A link with these bytes, shape (10,), earned a reward."""
        for kind, group in enumerate(_numbers(carried[:6])):
            self.back[kind, group] += 1
            self.rewards[kind, group] += reward
        if reward:
            for kind, group in enumerate(_numbers(carried[6:10])):
                self.behind[kind, group] += reward


def _numbers(carried: NDArray[Any]) -> NDArray[np.intp]:
    """Return the numbers that stand in pairs of bytes, shape (..., n / 2)."""
    pairs = carried.astype(np.intp)
    numbers: NDArray[np.intp] = pairs[..., ::2] + 256 * pairs[..., 1::2]
    return numbers
