"""Time and memory of everything that reads a page grow with the page, and not with its square.

Steps are lines of Python that run and elements of the page that are touched; bytes are those that are allocated at most
at one time. Seconds depend on the machine, these do not.
"""

from __future__ import annotations

import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from scrapy_focus import Crawl, Link, memory_frontier
from scrapy_focus.lab.recordings.html import decode, decompress, read_page, redirect_of
from scrapy_focus.learn.text import GramProjector, char_pairs
from scrapy_focus.policies.branching.features import LinkHasher, path_of, shape_of
from scrapy_focus.policies.branching.layout import Places
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.treeq.features import url_pattern
from scrapy_focus.web.domains import domain_of
from scrapy_focus.web.html import PlaceReader, html_text, link_text, locate, page_links, page_text
from scrapy_focus.web.mime import effective_mime, extension, parse_mime
from scrapy_focus.web.shells import is_shell
from scrapy_focus.web.words import url_words, words_of
from tests.examples import n_examples

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (80, 160, 320)  # pieces of a page; parsers stop at some 2,000 nested elements
URL = "http://h.test/d/page"


class Touched(etree.ElementBase):
    """An element that counts itself whenever somebody looks at it."""

    count = 0

    def _init(self) -> None:
        Touched.count += 1


def parsed(source: str) -> Any:
    """Return a page whose elements count themselves."""
    parser = etree.HTMLParser(huge_tree=True)
    parser.set_element_class_lookup(etree.ElementDefaultClassLookup(element=Touched))
    return etree.fromstring(f"<html><body>{source}", parser)


def steps(work: Callable[[], object]) -> int:
    """Return how many lines ran and how many elements were touched."""
    lines = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    Touched.count = 0
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines + Touched.count


def peak(work: Callable[[], object]) -> int:
    """Return how many bytes were allocated at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def is_linear(counts: list[int], least: int) -> bool:
    """Whether counts at n, 2n, 4n grow as n does: the second rise is twice the first, and with the square four times."""
    first, second = counts[1] - counts[0], counts[2] - counts[1]
    return second <= 2.6 * max(first, 0) + least


def all_links(root: Any) -> list[str]:
    return [url for url, _ in page_links(root, URL)]


def all_places(root: Any) -> list[Any]:
    reader = PlaceReader()
    return [reader.place(element) for _, element in page_links(root, URL)]


def all_link_texts(root: Any) -> list[str]:
    return [link_text(element) for element in root.iter("a")]


def place(root: Any) -> None:
    """Locate the links of a page, and let the default policy place them."""
    found = locate(root, URL, [f"http://h.test/x{i}" for i in range(max(SIZES))])
    crawl = Crawl(BranchingBandit(targets=["text/csv"]), frontier=memory_frontier, seed=0, strict=True)
    crawl.add([
        Link(url, i, "h.test", 1, each.anchor, each.tag_path, each.context) for i, (url, each) in enumerate(found.items())
    ])  # fmt: skip


TREES = [is_shell, all_links, all_places, all_link_texts, page_text, place]
PAGES = {
    "flat": '<li class="row"><a href="/x{i}">Text of {i}</a></li>',
    "one parent": '<a href="/x{i}">Text of {i}</a> and ',
    "no text": '<a href="/x{i}"><img src="{i}"></a>',
    "nothing in it": '<a href="/x{i}"></a>',
    "unclosed": '<div class="row item result"><a href="/x{i}">Text',
    "unclosed, no text": '<div class="row"><a href="/x{i}">',
    "unclosed, ids": '<div id="row-{i}"><p class="c{i}"><a href="/x{i}">{i}</a>',
    "long class": '<div class="' + 300 * "c" + '{i}"><a href="/x{i}">x</a></div>',
    "long class, unclosed": '<div class="' + 300 * "c" + '{i}"><a href="/x{i}">x</a>',
    "long id, unclosed": '<b id="' + 300 * "/" + '{i}"><a href="/x{i}">x</a>',
    "odd spelling": '<p><a href="/d/../x%7b{i}?b=ä&amp;a=1#z">x</a></p>',
    "same link": '<p><a href="/x">x</a></p>',
    "comments": '<!-- {i} --><a href="/x{i}">x</a><?pi {i}?>',
    "tables": "<table><tr><td><a href=/x{i}>x",
    "lists": "<ul><li>a<li><a href=/x{i}>x</a><dl><dt>b<dd>c",
    "forms": "<form action=/x{i}><select><option>a<textarea>b</textarea></select></form><iframe src=/x{i}></iframe>",
    "scripts": "<script>{i}</script><style>{i}</style><noscript><a href=/x{i}>x</a></noscript><p hidden>no</p>",
    "text": "word{i} größer 漢字 &amp; ",
}


def check(make: Callable[[int], Any], work: Callable[[Any], object]) -> None:
    """Fail unless work on what is made of n, 2n and 4n pieces is linear in steps and in bytes.

    What is bounded for each link, as the elements around it that are read, may grow until it is: then n is larger.
    """
    work(make(SIZES[0]))  # imports and caches
    for sizes in (SIZES, [4 * n for n in SIZES]):
        made = [make(n) for n in sizes]
        counts = [steps(lambda each=each: work(each)) for each in made]
        if is_linear(counts, 2000):
            break
    assert is_linear(counts, 2000), f"steps {counts}"
    made = [make(n) for n in sizes]
    most = [peak(lambda each=each: work(each)) for each in made]
    assert is_linear(most, 200_000), f"bytes {most}"


def repeated(piece: str) -> Callable[[int], str]:
    return lambda n: "".join(piece.replace("{i}", str(i)) for i in range(n))


@pytest.mark.few(6)
@pytest.mark.parametrize("work", TREES)
@pytest.mark.parametrize("piece", PAGES.values(), ids=PAGES)
def test_reading_a_parsed_page_is_linear(piece: str, work: Callable[[Any], object]) -> None:
    """However its elements are nested, named and closed."""
    check(lambda n: parsed(repeated(piece)(n)), work)


MIXTURES = st.lists(
    st.sampled_from([*PAGES.values(), "</div>", "</a>", "<div>", "<p>", "<a>", " ", "<b class=x>"]), max_size=4
)
ENDS = st.sampled_from(["", "</div>", 200 * "y "])


@pytest.mark.slow
@settings(max_examples=n_examples(20), deadline=None)
@given(MIXTURES, ENDS, st.sampled_from(TREES))
@example(['<div class="row"><a href="/x{i}">'], 200 * "y ", all_places)
def test_reading_any_mixture_is_linear(pieces: list[str], end: str, work: Callable[[Any], object]) -> None:
    """Pieces one after the other, again and again, with any end."""
    check(lambda n: parsed(repeated("".join(pieces))(n) + end), work)


@pytest.mark.few(2)
@pytest.mark.parametrize("piece", PAGES.values(), ids=PAGES)
def test_reading_a_recorded_page_is_linear(piece: str) -> None:
    """As an importer reads it, from its bytes."""
    headers = {"Content-Type": "text/html; charset=utf-8"}
    check(lambda n: repeated(piece)(n).encode(), lambda body: read_page(URL, headers, body))
    check(repeated(piece), html_text)


def headers_of(text: str) -> object:
    headers = {"Content-Type": text, "Location": text, "Content-Encoding": text}
    return parse_mime(text), decode(b"<p>x", headers), decompress(b"x", headers), redirect_of(URL, 301, headers)


TEXTS: dict[str, Callable[[str], object]] = {
    "words_of": words_of,
    "char_pairs": char_pairs,
    "grams": lambda text: GramProjector().project(text, text.split("/")),
    "layout": lambda text: Places().read([text]),
    "features": lambda text: LinkHasher().rows([Link(f"http://h/{text}", 1, "h", 1, text, text, text + text)]),
    "shape": lambda text: shape_of(path_of(f"http://h/{text}")),
    "url_words": lambda text: url_words(f"http://h/{text}".replace("[", "").replace("]", "")),
    "url_pattern": lambda text: url_pattern(f"http://h/{text}".replace("[", "").replace("]", "")),
    "domain_of": domain_of,
    "extension": lambda text: extension(f"http://h/{text}"),
    "effective_mime": lambda text: effective_mime("application/octet-stream", f"http://h/{text}"),
    "headers": headers_of,
}  # fmt: skip


PIECES = st.text(st.sampled_from("aA0é漢 ./#-_?&=%+;,:@\n\u0301"), min_size=1, max_size=6)


@pytest.mark.parametrize("work", TEXTS.values(), ids=TEXTS)
@settings(max_examples=n_examples(30), deadline=None)
@given(PIECES, st.text(max_size=3))
def test_reading_a_text_is_linear(work: Callable[[str], object], piece: str, end: str) -> None:
    """URLs, paths, anchors, headers: any piece, again and again."""
    check(lambda n: "h" + 10 * n * piece + end, work)
