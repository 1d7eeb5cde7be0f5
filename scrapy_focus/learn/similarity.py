"""The similarity of pages to a query by the texts seen so far: the importance IS of the paper, and its estimate IS'.

A text is a vector: the number of times that each word occurs in it, times the inverse document frequency (idf) of the
word, which is one divided by the number of times that it occurs in all texts. The similarity of a page to a query is
the inner product of their vectors. Only words of the query add to it, so only these are counted.

References
----------
Cho, Garcia-Molina, Page: Efficient crawling through URL ordering. Computer Networks 30 (1998), section 2.
"""

from __future__ import annotations

from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from scrapy_focus.learn.linkgraph import Value
from scrapy_focus.learn.matching import Keywords
from scrapy_focus.web.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from scrapy_focus.learn.linkgraph import LinkGraph

_GROWTH = 0.1  # of the count of a word, before its idf is computed again


class Query:
    """A query: words whose occurrences are counted as :class:`~scrapy_focus.learn.matching.Keywords` finds them.

    ``words`` has each word once; ``times`` says how often each is in the query.

    Examples
    --------
    >>> query = Query("red wine, white wine")
    >>> query.words, query.times
    (['red', 'white', 'wine'], (1, 1, 2))
    >>> query.count("A red wine. Another wine.")
    (1, 0, 2)
    >>> query.weights([10, 0, 4])
    (0.01, 1.0, 0.125)
    """

    def __init__(self, text: str) -> None:
        self._keywords = Keywords(text.split())
        self.words = self._keywords.listed
        self.times = self.count(text)

    def __bool__(self) -> bool:
        return bool(self.words)

    def count(self, text: str) -> tuple[int, ...]:
        """Return how often each word of the query is in a text."""
        counts = [0] * len(self.words)
        for number in self._keywords.each(words_of(text), text):
            counts[number] += 1
        return tuple(counts)

    def weights(self, seen: Sequence[int], *, idf: bool = True) -> tuple[float, ...]:
        """Return the addition to the similarity by each occurrence of each word, from its occurrences in all texts.

        It is ``times * idf ** 2``, as both vectors have the idf. A word that never occurred has the idf 1. Without
        idf, it is ``times``.
        """
        if not idf:
            return tuple(map(float, self.times))
        return tuple(times / max(1, n) ** 2 for times, n in zip(self.times, seen, strict=True))


class Similarity(Value):
    """The estimated similarity IS' of pages to a query: that of the text of a fetched page, and of the links to others.

    The idf comes from the texts of the pages fetched so far. It is updated whenever the count of a word has changed by
    a tenth, for all pages at once.

    Parameters
    ----------
    graph, changed
        See :class:`~scrapy_focus.learn.linkgraph.Value`.
    idf
        Whether words have an idf; otherwise all words count alike.

    Notes
    -----
    *Memory*: some 200 bytes for a page that has a word of the query in its text, or in the link that found it.

    *Time*: linear in these pages whenever the idf is updated, 0.1 s for a million.

    Examples
    --------
    >>> from scrapy_focus.learn.linkgraph import LinkGraph
    >>> graph = LinkGraph()
    >>> similarity = Similarity(graph, {})
    >>> query = Query("red wine")
    >>> similarity.ask(query)
    >>> page, other = graph.add(), graph.add()
    >>> similarity.say(other, query.count("wine from here"))
    >>> similarity.say(page, query.count("red wine, white wine"))
    >>> graph.connect(page, [other])
    >>> similarity.link(page)
    >>> similarity.column().tolist()
    [1.5, 0.25]
    """

    def __init__(self, graph: LinkGraph, changed: dict[int, None], *, idf: bool = True) -> None:
        super().__init__(graph, changed)
        self.idf = idf
        self._counts: dict[int, tuple[int, ...]] = {}  # by page: of each word, where there is any
        self.ask(Query(""))

    def ask(self, query: Query) -> None:
        """Set the query, before any page is added."""
        self.query = query
        self.seen = [0] * len(query.words)  # occurrences in the texts of fetched pages
        self._used = self.seen.copy()  # those that the weights were computed from
        self._weights = query.weights(self._used, idf=self.idf)

    def say(self, page: int, counts: tuple[int, ...]) -> None:
        """Set how often each word of the query is in the text of an unlinked page, or in the text of a link to it."""
        if any(counts):
            self._counts[page] = counts
        else:
            self._counts.pop(page, None)

    def add(self) -> None:
        """Do nothing: a page without text has no similarity."""

    def unlink(self, page: int) -> None:
        if self.graph.is_fetched(page):
            self._collect(page, -1)

    def link(self, page: int) -> None:
        if not self.graph.is_fetched(page):
            return
        self._collect(page, 1)
        if self.idf and any(abs(n - used) > _GROWTH * used for n, used in zip(self.seen, self._used, strict=True)):
            self._used = self.seen.copy()
            self._weights = self.query.weights(self._used, idf=self.idf)
            self.changed.update((other, None) for other in self._counts if not self.graph.is_fetched(other))

    def merge(self, page: int, other: int) -> None:
        counts = self._counts.pop(other, None)
        if counts is not None and self.graph.is_fetched(other) and not self.graph.is_fetched(page):
            self._counts[page] = counts

    def of(self, page: int) -> float:
        counts = self._counts.get(page)
        return 0.0 if counts is None else sum(map(mul, self._weights, counts))

    def column(self) -> NDArray[np.float64]:
        column = np.zeros(len(self.graph))
        for page in self._counts:
            column[page] = self.of(page)
        return column

    def _collect(self, page: int, sign: int) -> None:
        """Count the text of a page among those of the fetched pages, or no longer."""
        counts = self._counts.get(page)
        if counts is not None:
            self.seen = [n + sign * count for n, count in zip(self.seen, counts, strict=True)]
