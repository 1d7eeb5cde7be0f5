"""The similarity of pages to a query: numbers worked out from section 2 of the paper, and estimates in a crawl."""

from __future__ import annotations

import pickle

import pytest

from scrapy_focus.learn.linkgraph import LinkGraph
from scrapy_focus.learn.similarity import Query, Similarity

QUERY = "red wine, more wine"
TEXTS = ["Red wine and more", "white wine, wine", "a red house"]


class Pages:
    """Pages that are fetched one after the other."""

    def __init__(self, query: str, n: int, *, idf: bool = True) -> None:
        self.graph = LinkGraph()
        self.changed: dict[int, None] = {}
        self.value = Similarity(self.graph, self.changed, idf=idf)
        self.value.ask(Query(query))
        for _ in range(n):
            self.graph.add()
            self.value.add()

    def say(self, page: int, text: str) -> None:
        """Note the text of a link to a page."""
        self.value.say(page, self.value.query.count(text))

    def fetch(self, page: int, text: str) -> None:
        """A page is fetched."""
        self.value.unlink(page)
        self.graph.connect(page, [])
        self.say(page, text)
        self.value.link(page)

    def join(self, page: int, other: int) -> None:
        """A page redirects to another one."""
        self.value.unlink(other)
        self.value.merge(page, other)
        self.graph.join(page, other)


def test_tfidf_by_hand() -> None:
    """In all texts, red occurs 2 times, wine 3 times, more once: idf 1/2, 1/3, 1. So the query is (1/2, 2/3, 1), the
    first text (1/2, 1/3, 1), the second (0, 2/3, 0), the third (1/2, 0, 0).
    """
    query = Query(QUERY)
    assert (query.words, query.times) == (["more", "red", "wine"], (1, 1, 2))
    assert [query.count(text) for text in TEXTS] == [(1, 1, 1), (0, 0, 2), (0, 1, 0)]
    assert query.weights([1, 2, 3]) == pytest.approx((1, 1 / 4, 2 / 9))
    pages = Pages(QUERY, 3)
    for page, text in enumerate(TEXTS):
        pages.fetch(page, text)
    assert pages.value.column().tolist() == pytest.approx([1 / 4 + 2 / 9 + 1, 4 / 9, 1 / 4])


def test_without_idf_words_count_alike() -> None:
    """The vectors are those of the counts: (1, 1, 2) for the query, so 1 + 1 + 2, 2 * 2 and 1, fetched or not."""
    assert Query(QUERY).weights([1, 2, 3], idf=False) == (1, 1, 2)
    pages = Pages(QUERY, 3, idf=False)
    for page, text in enumerate(TEXTS):
        pages.say(page, text)
    assert pages.value.column().tolist() == [4, 4, 1]
    pages.fetch(0, TEXTS[0])
    assert pages.value.column().tolist() == [4, 4, 1]
    assert not pages.changed


def test_the_idf_comes_from_the_pages_that_were_fetched() -> None:
    """The link to page 1 has each word once. Before any page, each idf is 1. Then red occurred once, wine 2 times,
    later 4 times; a page that is fetched again counts with its last text alone.
    """
    pages = Pages("red wine", 4)
    pages.say(1, "Red wine")
    assert pages.value.of(1) == 1 + 1
    pages.fetch(0, "red wine wine")
    assert pages.value.of(1) == 1 + 1 / 4
    assert list(pages.changed) == [1]
    pages.fetch(2, "wine, wine")
    assert pages.value.of(1) == 1 + 1 / 16
    assert pages.value.of(2) == 2 / 16
    pages.fetch(2, "")
    assert (pages.value.of(1), pages.value.of(2)) == (1 + 1 / 4, 0)
    assert pickle.loads(pickle.dumps(pages.value)).column().tolist() == pages.value.column().tolist()


def test_an_idf_is_used_until_a_count_has_changed_by_a_tenth() -> None:
    """11 occurrences are no more than a tenth above 10; 12 are, and all queued pages are to be moved."""
    pages = Pages("wine", 9)
    pages.say(8, "wine")
    pages.fetch(0, "wine " * 10)
    pages.changed.clear()
    pages.fetch(1, "wine")
    assert pages.value.of(8) == 1 / 100
    assert not pages.changed
    pages.fetch(2, "wine")
    assert pages.value.of(8) == 1 / 144
    assert list(pages.changed) == [8]


def test_a_redirect_and_its_target_are_one_text() -> None:
    """Its own text counts once, in place of the text of the link; what a fetched page was joined with, no more."""
    pages = Pages("wine", 4)
    pages.say(0, "wine")
    pages.fetch(1, "wine wine")
    pages.join(0, 1)
    pages.value.link(0)
    assert pages.value.seen == [2]
    assert pages.value.of(0) == 2 / 4
    pages.fetch(2, "wine")
    pages.join(0, 2)
    assert pages.value.seen == [2]


def test_words_that_never_occur_are_worth_nothing() -> None:
    """Neither an empty text nor one without them has any similarity; nothing is kept of such pages."""
    pages = Pages("cheese", 2)
    pages.say(0, "wine")
    pages.fetch(1, "")
    assert pages.value.column().tolist() == [0, 0]
    assert not pages.value._counts
    assert not Query("a ? !")
