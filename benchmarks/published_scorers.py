"""Two orders of links by a query, as Crawl4AI publishes them, to compare crawls by a sentence with.

Each was written from its description. Where the description leaves something open, the docstring says what was chosen,
or that the released code was read for that fact. Neither learns from rewards.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from scrapy_focus.core.policy import Policy
from scrapy_focus.core.types import Placement
from scrapy_focus.policies.bases import Ordering
from scrapy_focus.web.html import html_blocks

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from scrapy_focus.core.frontier import Ranked
    from scrapy_focus.core.types import Link, Outcome, Pick

#: Words of a request that say nothing of the topic.
FUNCTION_WORDS = frozenset(
    "a about all and any articles do documents everything for how in is kinds live lives of on or other pages people's "
    "that the their things those to what which who with".split()
)
_LEAST_LETTERS = 3  # of a word that counts
_A_LEVEL = 1e-3  # of a rank, for each level of depth: it only decides among equal shares
_PER_ROUND = 3  # links that are followed before all are ranked again
_K1, _B = 1.2, 0.75  # of BM25
_RELEVANCE, _NOVELTY = 0.5, 0.3  # weights of the released sum


def words_in(text: str) -> list[str]:
    """Return the words of three letters or more, in lower case.

    Examples
    --------
    >>> words_in("The Moon (of Earth), 1999")
    ['the', 'moon', 'earth', '1999']
    """
    return [word for word in re.findall(r"\w+", text.lower()) if len(word) >= _LEAST_LETTERS]


def query_words(sentence: str) -> list[str]:
    """Return the words of a request that name its topic, each once; all of them if there is no such word.

    Examples
    --------
    >>> query_words("pages about world religions"), query_words("everything")
    (['world', 'religions'], ['everything'])
    """
    words = list(dict.fromkeys(words_in(sentence)))
    return [word for word in words if word not in FUNCTION_WORDS] or words


class QueryShare(Ordering):
    """Best-first by the share of the query's words that occur in the link's URL, or in its text.

    A word occurs if its letters do, in a longer word, too; case does not matter, and the URL is decoded (``%20``).
    Among equal shares the link of the smaller depth is first, then the older one, as in the released queue. The
    released crawler fetches ten links at a time; here it is as many as the crawl has in flight.

    Parameters
    ----------
    words
        The words of the query.
    """

    def __init__(self, words: Collection[str]) -> None:
        self.words = [word.lower() for word in words]

    def rank(self, link: Link, source: Outcome | None) -> float:
        parts = urlsplit(link.url)
        text = f"{unquote(parts.path)} {parts.query} {link.anchor}".lower()
        return sum(word in text for word in self.words) / len(self.words) - _A_LEVEL * link.depth


class _Waiting(NamedTuple):
    """A link that may be followed."""

    terms: frozenset[str]  # of its text
    counts: Counter[str]
    number: int  # in the order of discovery


class CoverageOrder(Policy):
    """The links of an adaptive crawl by coverage and saturation: what is relevant to the query and new, first.

    All links are ranked again after every three fetches. Coverage and saturation say when such a crawl stops; they
    are no part of the order, and with a budget to use up, nothing stops it. The preview of a link is its text: the
    description in the linked page's head would cost a request for each link.

    Parameters
    ----------
    sentence
        The query.
    formula
        ``"documented"``: relevance x novelty x authority. Relevance is BM25 of the text for the query, over the texts
        found so far; novelty is one minus the largest similarity to a fetched page, where the description does not say
        of which kind: here, the share of the text's words that are on the page. Authority follows from the depth of the
        URL, which is the same for all links of one site of articles: 1.
        ``"released"``: 0.5 x relevance + 0.3 x novelty + 0.2, with the share of the query's words in the text as
        relevance, and the share of the text's words that were on no fetched page as novelty. The weights and both
        shares were read in the released code.
    """

    reads_outcome = True
    frontier: Ranked

    def __init__(self, sentence: str, *, formula: Literal["documented", "released"] = "documented") -> None:
        self.sentence = sentence
        self.formula = formula
        self._query = frozenset(words_in(sentence))
        self._waiting: dict[int, _Waiting] = {}
        self._next: list[int] = []  # keys of this round, the first one last
        self._containing: Counter[str] = Counter()  # texts of links with each word of the query
        self._texts = 0
        self._words = 0  # of all texts
        self._pages: list[frozenset[str]] = []
        self._seen: set[str] = set()  # words of fetched pages

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        if source is not None and source.page is not None:
            words = frozenset(words_in(" ".join(html_blocks(source.page.text))))
            self._pages.append(words)
            self._seen |= words
        for link in links:
            counts = Counter(words_in(link.anchor))
            self._waiting[link.key] = _Waiting(frozenset(counts), counts, self._texts)
            self._containing.update(self._query & counts.keys())
            self._texts += 1
            self._words += counts.total()
        return [Placement(0, -float(self._waiting[link.key].number)) for link in links]

    def select(self, busy: Collection[str]) -> Pick | None:
        if not self._next:
            best = sorted(self._waiting, key=lambda key: (-self.score(key), self._waiting[key].number))
            self._next = best[:_PER_ROUND][::-1]
        if not self._next:
            return None
        key = self._next.pop()
        del self._waiting[key]
        return self.frontier.take(key)

    def score(self, key: int) -> float:
        """Return the expected gain of a waiting link."""
        link = self._waiting[key]
        if self.formula == "released":
            relevance = len(link.terms & self._query) / len(self._query)
            novelty = len(link.terms - self._seen) / len(link.terms) if link.terms else 0.5
            return _RELEVANCE * relevance + (_NOVELTY * novelty if self._pages else _NOVELTY)
        relevance = self._bm25(link)
        if not relevance:
            return 0.0
        return relevance * (1 - max((len(link.terms & page) for page in self._pages), default=0) / len(link.terms))

    def _bm25(self, link: _Waiting) -> float:
        mean = max(self._words, 1) / self._texts
        size = _K1 * (1 - _B + _B * link.counts.total() / mean)
        found = 0.0
        for word in self._query & link.terms:
            n = self._containing[word]
            rarity = math.log(1 + (self._texts - n + 0.5) / (n + 0.5))
            found += rarity * link.counts[word] * (_K1 + 1) / (link.counts[word] + size)
        return found
