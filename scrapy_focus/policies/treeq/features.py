"""The features of a link in TRES before it is fetched: the path to it, its words, its host; each in six bits.

A vector has two parts. The *codes*, from 0 to 63, represent numbers from 0 to 1: the tree splits on them, and the
network reads them. The *carried* bytes behind them are for later: counts to continue from, and the groups of the
link, whose records are looked up again whenever it is scored.
"""

from __future__ import annotations

import math
import re
import zlib
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

import numpy as np

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.types import State
from scrapy_focus.learn.matching import Keywords
from scrapy_focus.policies.treeq.hubs import Hubs
from scrapy_focus.policies.treeq.linkwords import LinkWords
from scrapy_focus.topic.models import relevance_of
from scrapy_focus.web.words import url_words, words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.core.frontier import Drawn, Frontier
    from scrapy_focus.core.mission import Topic
    from scrapy_focus.core.types import Link, Outcome, Pick
    from scrapy_focus.policies.domains import Domains

LEVELS = 63  # the largest code
PUBLISHED = (
    "parent relevant", "nearness of a relevant page", "relevant share of the path", "keyword in the URL",
    "keyword in the anchor", "probability", "relevant share of its host", "unknown host",
)  # fmt: skip
IN_LINKS = ("share of links from relevant pages", "links from relevant pages")
LEARNED = ("relevant share of the links beside it", "words that led to relevant pages")
GROUPS = ("tag path", "URL pattern", "anchor")
OF_A_GROUP = ("reward of the {}", "reward behind the {}", "unknown {}")
PARENT, NEARNESS, SHARE, KEYWORD_URL, KEYWORD_ANCHOR, PROBABILITY, HOST_SHARE, HOST_UNKNOWN = range(8)
IN_SHARE, IN_COUNT, HUB, WORDS = range(8, 12)  # the places of these features
MOST_ODDS = 5.0  # largest log-odds that a code represents, in either direction

_SOURCES = 3  # remembered pages that link to a page, the most recent
_WEIGHT = 60.0  # of a link is this by the logarithm of how many its page has: a list of all pages says little of each
_USUAL = 10.0  # weight of a link of a page with the maximum number
_WITH, _WITHOUT = 0.5, 0.1  # probability that a link with a keyword is on the topic, and one without, by keywords alone
_BUCKETS = 1 << 16  # of each kind of group
_NUMBER = re.compile(r"\d+")
_READ = 20_000  # links whose words are cached


class Layout(NamedTuple):
    """The layout of a vector: ``names`` of its codes, then the carried bytes.

    With a link model, the code of the probability holds its log-odds, and links of pages with many links weigh less.
    """

    names: tuple[str, ...]
    in_links: bool
    groups: bool
    link_model: bool

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
        """First of two bytes: links to it from relevant pages, and all, or the sums of their weights."""
        return self.path + 3

    @property
    def buckets(self) -> int:
        """First of ten bytes: three groups, and the first two of its page."""
        return self.counts + 2 * self.in_links

    @property
    def sources(self) -> int:
        """First of the bytes that say which pages link to it, two for each."""
        return self.buckets + 10 * self.groups

    @property
    def width(self) -> int:
        """Bytes of a vector."""
        return self.sources + 2 * _SOURCES * self.link_model

    def sources_of(self, vectors: NDArray[np.uint8]) -> NDArray[np.uint16]:
        """Return the numbers of pages that have some links, shape (n, 3), 0 for unused places."""
        carried = np.ascontiguousarray(vectors[:, self.sources : self.width])
        numbers: NDArray[np.uint16] = carried.view("<u2").astype(np.uint16, copy=False)
        return numbers

    def groups_of(self, pick: Pick) -> NDArray[np.uint8]:
        """Return the bytes of the groups of a pick and its page, shape (10,)."""
        return self.vector_of(pick)[self.buckets :]

    def vector_of(self, pick: Pick) -> NDArray[np.uint8]:
        """Return the vector of a pick, shape (width,); zeros if it has none, because the policy could not place it."""
        return np.zeros(self.width, np.uint8) if pick.memo is None else pick.memo.astype(np.uint8, copy=False)

    def said(self, code: int, column: int) -> float:
        """Return the number that a code represents, from 0 to 1."""
        share = code / LEVELS
        if self.link_model and column == PROBABILITY:
            return 1 / (1 + math.exp(-2 * MOST_ODDS * (share - 0.5)))
        return share


def layout(*, in_links: bool, groups: bool, link_model: bool) -> Layout:
    """Return the layout of vectors with or without the features that are not in the paper.

    Those of a link model come after the in-link features, which it needs.
    """
    names = PUBLISHED + IN_LINKS * in_links + LEARNED * link_model
    if groups:
        names += (*(each.format(group) for group in GROUPS for each in OF_A_GROUP), "depth")
    return Layout(names, in_links, groups, link_model)


def codes(values: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Return the codes of numbers; those outside 0 to 1 are clipped."""
    coded: NDArray[np.uint8] = (np.minimum(np.maximum(values, 0), 1) * LEVELS + 0.5).astype(np.uint8)
    return coded


def odds_of(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-odds of probabilities."""
    inside = np.clip(probabilities, 1e-6, 1 - 1e-6)
    odds: NDArray[np.float64] = np.log(inside / (1 - inside))
    return odds


def odds_codes(odds: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Return the codes of log-odds from -5 to 5; 31.5 would be 0."""
    return codes(np.asarray(odds, np.float64) / (2 * MOST_ODDS) + 0.5)


def bucket(text: str) -> int:
    """Return the group of a text, with all numbers treated as equal; the same in every process."""
    return zlib.crc32(_NUMBER.sub("0", text).encode("utf-8", "surrogatepass")) % _BUCKETS


def url_pattern(url: str) -> str:
    """Return the pattern of a URL: its host, folder, extension, and names in its query.

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
    """Reads the words of links: whether keywords are among them, and the probability of the topic.

    Parameters
    ----------
    keywords
        Words and phrases, see :class:`~scrapy_focus.learn.matching.Keywords`.
    relevance
        A classifier of texts, or the file of one that ``focus train`` wrote; without one, the probability is 0.
    url_words
        The classifier reads the words of the URL after those of the anchor; otherwise the anchor alone.
    """

    def __init__(
        self, keywords: Collection[str], relevance: str | PathLike[str] | Topic | None, *, url_words: bool = True
    ) -> None:
        self.words = Keywords(keywords)
        self.url_words = url_words
        self.relevance: Topic | None = relevance_of(relevance) if isinstance(relevance, (str, PathLike)) else relevance
        if keywords and not self.words:
            raise ConfigError(f"keywords is {keywords!r}: none of them has a word of two letters or more")
        self._known: dict[
            tuple[str, str], tuple[float, float, float]
        ] = {}  # recent results, because a site repeats its links
        self._refits = 0  # for a topic that learns, the version that was read

    @property
    def about(self) -> str:
        """The sentence of the topic; ``""`` if it is not given by one."""
        return str(getattr(self.relevance, "about", ""))

    def read(self, links: Sequence[Link]) -> NDArray[np.float64]:
        """Return for each link whether a keyword is in its URL, in its anchor, and its probability, shape (n, 3)."""
        if not self.words and self.relevance is None:
            return np.zeros((len(links), 3))
        refits = getattr(self.relevance, "refits", 0)
        if len(self._known) > _READ or refits != self._refits:
            self._known.clear()
            self._refits = refits
        missing = list(dict.fromkeys(each for link in links if (each := (link.url, link.anchor)) not in self._known))
        if missing:
            self._read_missing(missing)
        return np.array([self._known[link.url, link.anchor] for link in links])

    def _read_missing(self, missing: Sequence[tuple[str, str]]) -> None:
        """Read uncached links, given by URL and anchor."""
        read = [(url_words(url), words_of(anchor)) for url, anchor in missing]
        scores = np.zeros(len(missing))
        if self.relevance is not None:
            texts = [" ".join(a + u if self.url_words else a) for u, a in read]
            scores = np.nan_to_num(self.relevance.score(texts))
        for each, (in_url, in_anchor), score in zip(missing, read, scores.tolist(), strict=True):
            url, anchor = each
            self._known[each] = self.words.found(in_url, unquote(url)), self.words.found(in_anchor, anchor), score

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"url_words": True} | state)


class Features:
    """Makes the vectors of links as they are found, and updates them when one is to be chosen.

    Parameters
    ----------
    layout
        What is in the vectors.
    reader
        Reads the words of the links.
    domains
        The records of domains.
    seeds_are_relevant
        Whether the page of a seed counts as relevant for the path behind it, whatever its reward.
    hosts
        Whether the features of domains are used, or 0.
    words
        Whether the link model, where there is one, learns words.
    """

    def __init__(
        self,
        layout: Layout,
        reader: LinkReader,
        domains: Domains,
        *,
        seeds_are_relevant: bool,
        hosts: bool = True,
        words: bool = True,
    ) -> None:
        self.layout = layout
        self.reader = reader
        self.domains = domains
        self.groups = Groups() if layout.groups else None
        self.model = LinkModel(words=words) if layout.link_model else None
        self.seeds_are_relevant = seeds_are_relevant
        self.hosts = hosts

    def found(
        self, links: Sequence[Link], source: Outcome | None, frontier: Frontier | None = None
    ) -> NDArray[np.uint8]:
        """Return the vectors of links of one page, shape (n, width).

        Vectors of queued links come from the frontier. They keep the path and the words with which they were found
        first, and this page is added. The features of domains, groups, and of the pages that link to them are not
        updated here.
        """
        page = self._page(source, len(links))
        new = [i for i, link in enumerate(links) if link.state != State.WAITING]
        if len(new) == len(links):
            return self._new(links, page)
        made = np.empty((len(links), self.layout.width), np.uint8)
        if new:
            made[new] = self._new([links[i] for i in new], page)
        known = [i for i, link in enumerate(links) if link.state == State.WAITING]
        made[known] = self._known([links[i].key for i in known], page, cast("Drawn", frontier))
        return made

    def _page(self, source: Outcome | None, n_links: int) -> _Page:
        """Return the data of a page for its links."""
        path, groups = np.zeros(3, np.uint8), np.zeros(4, np.uint8)
        if source is not None:
            memo = self.layout.vector_of(source.pick)
            relevant = source.reward > 0 or (self.seeds_are_relevant and source.pick.origin < 0)
            path = path_after(memo[self.layout.path :][:3], relevant=relevant)
            groups = memo[self.layout.buckets :][:4]
        with_model = self.model is not None
        weight = round(_WEIGHT / math.log2(2 + n_links)) if with_model else 1
        number = self.model.hubs.add() if self.model is not None and source is not None else 0
        return _Page(path, groups, weight, number)

    def _new(self, links: Sequence[Link], page: _Page) -> NDArray[np.uint8]:
        """Return the vectors of links as if no other page linked to them, shape (n, width)."""
        made = np.zeros((len(links), self.layout.width), np.uint8)
        hits, others, clicks = (int(byte) for byte in page.path)
        made[:, PARENT] = LEVELS * (clicks == 1)
        made[:, NEARNESS] = round(LEVELS / clicks) if clicks else 0
        made[:, SHARE] = round(LEVELS * hits / max(hits + others, 1))
        made[:, self.layout.path : self.layout.path + 3] = page.path
        read = self.reader.read(links)
        made[:, [KEYWORD_URL, KEYWORD_ANCHOR, PROBABILITY]] = codes(read)
        if self.layout.in_links:
            made[:, self.layout.counts : self.layout.counts + 2] = page.counts
        if self.model is not None:
            if self.reader.relevance is None:
                read[:, 2] = np.where(read[:, :2].any(axis=1), _WITH, _WITHOUT)
            made[:, PROBABILITY] = odds_codes(odds_of(read[:, 2]))
            made[:, WORDS] = odds_codes(self.model.read(links))
            made[:, self.layout.sources : self.layout.sources + 2] = two_bytes(page.number)
        if self.layout.groups:
            made[:, self.layout.n_codes - 1] = [min(2 * link.depth, LEVELS) for link in links]
            start = self.layout.buckets
            groups = [(bucket(link.tag_path), bucket(url_pattern(link.url)), bucket(link.anchor)) for link in links]
            made[:, start : start + 6] = np.array(groups, "<u2").view(np.uint8).reshape(len(links), 6)
            made[:, start + 6 : start + 10] = page.groups
        return made

    def _known(self, keys: Sequence[int], page: _Page, frontier: Drawn) -> NDArray[np.uint8]:
        """Return the vectors of queued links when one more page has them, shape (n, width)."""
        kept = frontier.vectors(keys)
        if self.layout.in_links:
            start = self.layout.counts
            sums = kept[:, start : start + 2].astype(np.int64) + page.counts
            if self.layout.link_model:
                sums >>= (sums[:, 1] > 255)[:, None]
            kept[:, start : start + 2] = np.minimum(sums, 255)
        if self.model is not None:
            first, end = self.layout.sources, self.layout.width
            kept[:, first + 2 : end] = kept[:, first : end - 2].copy()
            kept[:, first : first + 2] = two_bytes(page.number)
            self.model.read_again(keys, kept)
        return kept

    def count(self, made: NDArray[np.uint8]) -> None:
        """Write the features of how many pages link to it."""
        if self.layout.in_links:
            relevant, all_ = made[:, self.layout.counts], made[:, self.layout.counts + 1]
            made[:, IN_SHARE] = np.rint(LEVELS * (relevant / all_))
            number = relevant / _USUAL if self.layout.link_model else relevant
            made[:, IN_COUNT] = np.minimum(np.rint(12 * np.log2(1.0 + number)), LEVELS)

    def now(self, vectors: NDArray[np.uint8], rows: NDArray[np.intp]) -> NDArray[np.uint8]:
        """Return the codes of links with the current records of their domains, by row, and groups, shape (n,
        n_codes).
        """
        x = vectors[:, : self.layout.n_codes].copy()
        if self.hosts:
            x[:, HOST_SHARE : HOST_SHARE + 2] = codes(self.domains.shares(rows))
        if self.model is not None:
            x[:, HUB] = codes(self.model.hubs.shares(self.layout.sources_of(vectors)))
        if self.groups is not None:
            start, first = self.layout.buckets, self.layout.n_codes - 10
            x[:, first : first + 9] = self.groups.codes(vectors[:, start : start + 6])
        return x

    def of(self, pick: Pick) -> NDArray[np.uint8]:
        """Return the current codes of a pick, shape (n_codes,)."""
        vectors = self.layout.vector_of(pick)[None]
        codes_now: NDArray[np.uint8] = self.now(vectors, np.array([self.domains.row(pick.host)]))[0]
        return codes_now

    def known(self, x: NDArray[np.uint8], pick: Pick) -> dict[str, float]:
        """Return the features of a pick by name, from its codes, without unknown ones."""
        known = {name: round(self.layout.said(int(x[i]), i), 2) for i, name in enumerate(self.layout.names)}
        if self.model is None:
            return known
        if self.reader.relevance is None:
            del known[PUBLISHED[PROBABILITY]]
        if not self.model.hubs.fetched(self.layout.sources_of(self.layout.vector_of(pick)[None])[0]):
            del known[LEARNED[0]]
        return known


class _Page(NamedTuple):
    """The data of a page for its links."""

    path: NDArray[np.uint8]  # to its links, as three bytes
    groups: NDArray[np.uint8]  # its first two groups, as four bytes
    weight: int  # of a link on it
    number: int  # its number in the link model; 0: none

    @property
    def counts(self) -> tuple[int, int]:
        """The weight of a link on it among the links from relevant pages, and among all."""
        return self.weight * (int(self.path[2]) == 1), self.weight


class LinkModel:
    """The part of link features that is learned during the crawl."""

    def __init__(self, *, words: bool) -> None:
        self.hubs = Hubs()
        self.words = LinkWords() if words else None

    def read(self, links: Sequence[Link]) -> NDArray[np.float32]:
        """Return what words add to the log-odds of links of one page, shape (n,)."""
        return np.zeros(len(links), np.float32) if self.words is None else self.words.read(links)

    def read_again(self, keys: Sequence[int], vectors: NDArray[np.uint8]) -> None:
        """Write the current contribution of their words to the vectors of remembered links, shape (n, width)."""
        if self.words is not None:
            at, odds = self.words.read_again(keys)
            vectors[at, WORDS] = odds_codes(odds)


def two_bytes(number: int) -> NDArray[np.uint8]:
    """Return a number below 65,536 as two bytes, the lower first, shape (2,)."""
    return np.array([number], "<u2").view(np.uint8)


def path_after(path: NDArray[np.uint8], *, relevant: bool) -> NDArray[np.uint8]:
    """Return the three bytes of a path after one more page. Counts that would be too large are halved.

    The clicks since a relevant page are 0 if there was none.
    """
    hits, others, clicks = (int(byte) for byte in path)
    hits, others = hits + relevant, others + (not relevant)
    if max(hits, others) > 255:
        hits, others = hits // 2, others // 2
    if relevant:
        clicks = 1
    elif clicks:
        clicks = min(clicks + 1, 255)
    return np.array([hits, others, clicks], np.uint8)


class Groups:
    """The results of the links of each group: how many were requested, their rewards, and the rewards behind them.

    Groups are of three kinds, by tag path, by URL pattern and by anchor, of 65,536 each; 3 MB in all.
    """

    def __init__(self) -> None:
        shape = (len(GROUPS), _BUCKETS)
        self.asked = np.zeros(shape, np.float32)
        self.back = np.zeros(shape, np.float32)
        self.rewards = np.zeros(shape, np.float32)
        self.behind = np.zeros(shape, np.float32)  # rewards of links found on their pages

    def codes(self, groups: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the codes of links for their groups, shape (n, 6): for each kind three, shape (n, 9)."""
        columns = []
        for kind, rows in enumerate(_numbers(groups).T):
            back = np.maximum(self.back[kind, rows], 1)
            behind = np.maximum(self.behind[kind, rows] / back, 0)
            columns += [self.rewards[kind, rows] / back, behind / (1 + behind), self.asked[kind, rows] == 0]
        return codes(np.stack(columns, axis=1))

    def ask(self, carried: NDArray[np.uint8], times: int) -> None:
        """Count a request for a link with these bytes, shape (10,), or its release (-1)."""
        for kind, group in enumerate(_numbers(carried[:6])):
            self.asked[kind, group] += times

    def settle(self, carried: NDArray[np.uint8], reward: float) -> None:
        """Record the reward of a link with these bytes, shape (10,)."""
        for kind, group in enumerate(_numbers(carried[:6])):
            self.back[kind, group] += 1
            self.rewards[kind, group] += reward
        if reward:
            for kind, group in enumerate(_numbers(carried[6:10])):
                self.behind[kind, group] += reward


def _numbers(carried: NDArray[Any]) -> NDArray[np.intp]:
    """Return the numbers in pairs of bytes, shape (..., n / 2)."""
    pairs = carried.astype(np.intp)
    numbers: NDArray[np.intp] = pairs[..., ::2] + 256 * pairs[..., 1::2]
    return numbers
