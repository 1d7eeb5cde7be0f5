"""Pages of the example project that are too long to be parsed, or cannot be parsed at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from scrapy_focus.engine.inflight import ResponsePage

sys.path.insert(0, str(Path(__file__).parents[2] / "example_project"))

from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.finders.kit.spiders.middlewares import LongPagesAreCut, end_of, refresh_of


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b"", b""),
        (b"<p>one<p>two", b"<p>one<p>two"),
        (b"<p>one<p>two<p>three", b"<p>one<p>two"),
        (b"<<<<<", b"<<"),
        (b"a long text", b"a long text"),
        (b"a text that is too long for it", b"a text that is too l"),
        (b"<p>a text that is <p>too", b"<p>a text that is <p"),
    ],
)
def test_a_page_ends_before_one_tag_or_one_byte_too_many(body: bytes, kept: bytes) -> None:
    """Two tags and twenty bytes are kept, if there are so many, and no piece of a further tag."""
    assert body[: end_of(body, tags=2, size=20)] == kept


def test_long_pages_are_cut_for_all_who_ask_and_counted() -> None:
    """A page of a million elements is cut, in its own encoding; files and short pages are unchanged."""
    crawler = get_crawler()
    middleware = LongPagesAreCut.from_crawler(crawler)
    request = Request("http://a.test/")
    head = '<meta charset="cp1251"><a href="/x">Ж</a>'.encode("cp1251")
    page = HtmlResponse(request.url, body=head + b"<p>" * 1_000_000)
    cut = middleware.process_response(request, page)
    assert isinstance(cut, HtmlResponse)
    assert cut.css("a::text").get() == "Ж"
    assert 40_000 < len(cut.css("p")) <= 50_000
    assert crawler.stats.get_value("page/cut") == 1
    for whole in (Response(request.url, body=b"<p>" * 1_000_000), HtmlResponse(request.url, body=head)):
        assert middleware.process_response(request, whole) is whole


@pytest.mark.parametrize(
    ("location", "followed"), [("/x", "http://a.test/x"), ("http://[::1", ""), ("http://a:b/", "")]
)
def test_what_a_page_sends_its_visitors_on_to(location: str, followed: str) -> None:
    """A refresh gives an absolute URL, an invalid one gives none."""
    body = f'<meta http-equiv="refresh" content="0; url={location}">'.encode()
    assert refresh_of(HtmlResponse("http://a.test/", body=body)) == followed


@pytest.mark.parametrize(
    ("body", "readable"),
    [
        (b"<p>a page", True),
        (b"", True),
        (b'<base href="http://[">', False),
        (b'<base href="http://a:b/">', False),
        (b'<meta charset="undefined">', False),
        (b'<meta charset="unicode_escape">\\ud800', False),
        (b'<meta charset="no such charset">', True),
    ],
)
def test_what_scrapy_cannot_parse_is_no_page(body: bytes, readable: bool) -> None:
    """A page can be read exactly if its selector works."""
    response = HtmlResponse("http://a.test/", body=body)
    assert can_be_read(response) is readable
    if not readable:
        with pytest.raises((ValueError, LookupError)):
            response.selector  # noqa: B018


def test_a_page_whose_charset_makes_no_text_has_none_for_goals() -> None:
    """Goals are given an empty text, and no exception."""
    texts = [
        ResponsePage(HtmlResponse("http://a.test/", body=f'<meta charset="{name}">a'.encode())).text
        for name in ("undefined", "idna", "utf-8")
    ]
    assert texts == ["", "", '<meta charset="utf-8">a']
