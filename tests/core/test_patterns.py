"""Places of links that code made: equal for URLs of one pattern and callback, different for others, never too long."""

from __future__ import annotations

import pytest

from scrapy_focus.web.patterns import made_place

SAME = [
    ("http://a.test/catalogue/page-2.html", "http://a.test/catalogue/page-30.html"),
    ("http://a.test/page/2/", "http://a.test/page/3/"),
    ("http://a.test/?page=2&q=tea", "http://a.test/?page=3&q=coffee"),
    (
        "http://a.test/catalogue/a-light-in-the-attic_1000/index.html",
        "http://a.test/catalogue/soumission_998/index.html",
    ),
    ("http://a.test/2024-05-01/rates", "http://a.test/2024-05-02/rates"),
    ("http://a.test/Catalogue/1", "http://a.test/catalogue/2"),
]
OTHER = [
    ("http://a.test/catalogue/page-2.html", "http://a.test/catalogue/title-2/index.html"),
    ("http://a.test/authors/2", "http://a.test/books/2"),
    ("http://a.test/books?page=2", "http://a.test/books?id=2"),
    ("http://a.test/books/2.html", "http://a.test/books/2.json"),
    ("http://a.test/", "http://a.test/books"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_urls_of_one_pattern_have_one_place(one: str, other: str) -> None:
    """Numbers, names and values do not matter."""
    assert made_place(one, "") == made_place(other, "")


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_patterns_have_other_places(one: str, other: str) -> None:
    """Folders, their number, the extension and the names of a query do."""
    assert made_place(one, "") != made_place(other, "")


def test_who_reads_a_page_is_part_of_its_place() -> None:
    """One URL that two callbacks read has two places."""
    assert made_place("http://a.test/1", "parse_book") != made_place("http://a.test/1", "")


@pytest.mark.parametrize(
    "url",
    ["", "http://[", "http://a.test", "mailto:a@b.c", "http://a.test/" + "x/" * 9999, "http://a.test/?" + "a&" * 9999],
)
def test_no_url_is_too_odd(url: str) -> None:
    """A place is short, and has three elements: tag paths are split at slashes, and ids follow a hash."""
    place = made_place(url, "")
    assert len(place) < 200
    assert place.count("/") <= 2
    assert "#" not in place
