"""Dates of documents: in all formats, and invalid ones."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_focus.web.dates import at_most, read_markup, seconds_of
from scrapy_focus.web.html import parsed

NINE = datetime(2026, 1, 5, 9, tzinfo=UTC).timestamp()
END = datetime(2026, 1, 5, 23, 59, 59, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-05T09:00:00Z", "2026-01-05T10:00:00+01:00", "2026-01-05T10:00:00+0100", "2026-01-05T09:00:00.000Z",
        "2026-01-05 09:00:00", "2026-01-05T09:00", " 2026-01-05T09:00:00\n", "20260105T090000Z", "1767603600",
        "1767603600000", "Mon, 05 Jan 2026 09:00:00 GMT", "Mon, 05 Jan 2026 04:00:00 -0500", "5 Jan 2026 09:00:00 +0000",
        "2026/01/05 09:00:00", "2026/1/5 09:00",
    ],
)  # fmt: skip
def test_a_time_in_many_ways(text: str) -> None:
    """Without a time zone it is UTC."""
    assert seconds_of(text) == NINE


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-05",
        "20260105",
        "2026/01/05",
        "2026.1.5",
        "Jan 5, 2026",
        "January 5 2026",
        "5 January 2026",
        "05. Jan 2026",
    ],
)
def test_a_date_is_the_end_of_its_day(text: str) -> None:
    """So that what was published on it is not too old before it is."""
    assert seconds_of(text) == END


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "today", "yesterday at 9", "0001-01-01", "1970-01-01T00:00:00Z", "0", "12345", "2026-13-45", "9" * 13 + "9",
        "31 Foo 2026", "x" * 200, "{{ date }}", "99999-01-01", "32 Jan 2026",
        "Mon, 99 Jan 2026 09:00:00 GMT", "2026-01-05T09:00:00+99:00", "null", "\x00", "١٢٣٤٥٦٧٨٩٠",
    ],
)  # fmt: skip
def test_what_is_no_date(text: str) -> None:
    """Is none."""
    assert seconds_of(text) is None


@given(st.text(max_size=60) | st.from_regex(r"[0-9T:.+Z/ -]{1,40}"))
def test_no_text_is_too_odd(text: str) -> None:
    """A number comes of it, or nothing."""
    at = seconds_of(text)
    assert at is None or at >= 631_152_000


def test_what_is_ahead_is_bounded() -> None:
    """By less than a day it may be of another time zone; beyond, nobody knows what it is."""
    assert at_most(NINE, NINE + 5) == NINE
    assert at_most(NINE + 80_000, NINE) == NINE
    assert at_most(NINE + 90_000, NINE) is None


def ld(*things: Any, kind: str = "application/ld+json") -> str:
    """Return scripts with JSON-LD."""
    return "".join(
        f'<script type="{kind}">{each if isinstance(each, str) else json.dumps(each)}</script>' for each in things
    )


def meta(**contents: str) -> str:
    """Return meta elements, names with colons and dots for underscores."""
    return "".join(
        f'<meta name="{name.replace("__", ":").replace("_", ".")}" content="{said}">' for name, said in contents.items()
    )


ARTICLE = {"@context": "https://schema.org", "@type": "NewsArticle", "datePublished": "2026-01-05T09:00:00Z"}
OTHER = "2020-02-02T02:02:02Z"


@pytest.mark.parametrize(
    ("html", "by"),
    [
        (ld(ARTICLE), "json-ld"),
        (ld({"@graph": [{"@type": "WebPage", "datePublished": OTHER}, ARTICLE]}), "json-ld"),
        (ld([{"@type": "Organization"}, {**ARTICLE, "@type": ["Thing", "BlogPosting"]}]), "json-ld"),
        (ld({"@type": "WebPage", "mainEntity": ARTICLE}), "json-ld"),
        (ld("{broken", ARTICLE) + meta(date=OTHER), "json-ld"),
        (ld({**ARTICLE, "datePublished": "soon", "dateModified": ARTICLE["datePublished"]}), "json-ld"),
        (ld({**ARTICLE, "datePublished": 5}) + meta(date="2026-01-05T09:00:00Z"), "meta"),
        (ld(ARTICLE, kind="text/x-template") + meta(article__published__time=OTHER.replace("2020-02-02T02:02:02", "2026-01-05T09:00:00")).replace("published:time", "published_time"), "meta"),
        (meta(DC_date_issued="2026-01-05T09:00:00Z"), "meta"),
        ('<meta itemprop="datePublished" content="2026-01-05T09:00:00Z">', "meta"),
        (meta(dc_date="garbage", date="2026-01-05T09:00:00Z"), "meta"),
        ('<meta property="article:published_time" content="2026-01-05T09:00:00Z">' + meta(date=OTHER), "meta"),
        ('<time itemprop="datePublished" datetime="2026-01-05T09:00:00Z">now</time><time datetime="2020-01-01">x</time>', "time"),
        ('<article><time datetime="2026-01-05T09:00:00Z"></time><time datetime="2026-01-06"></time></article>', "time"),
        ('<p><time datetime="2026-01-05T09:00:00Z"></time></p>', "time"),
    ],
)  # fmt: skip
def test_where_a_date_stands(html: str, by: str) -> None:
    """The surest place counts first, and where it says nothing that can be read, the next does."""
    root = parsed(f"<html><head></head><body>{html}<p>text</p></body></html>")
    assert root is not None
    found = read_markup(root).published
    assert found is not None
    assert found == (NINE, by)


@pytest.mark.parametrize(
    "html",
    [
        "", ld({"@type": "WebSite", "datePublished": OTHER}), ld(ARTICLE, {**ARTICLE, "datePublished": OTHER}),
        ld({"@type": "ItemList", "itemListElement": [ARTICLE, ARTICLE]}), '<time datetime="2026-01-05"></time><time datetime="2026-01-04"></time>',
        '<article><time datetime="2026-01-05"></time></article><article><time datetime="2026-01-04"></time></article>',
        "<time>2026-01-05</time>", meta(updated=OTHER), ld("[" * 100_000), ld("null"), ld('"datePublished"'),
    ],
)  # fmt: skip
def test_lists_and_others_have_none(html: str) -> None:
    """A date there belongs to a listed item, or to something else."""
    root = parsed(f"<html><head></head><body>{html}<p>text</p></body></html>")
    assert root is not None
    assert read_markup(root).published is None


def test_who_is_an_article() -> None:
    """By its own word."""

    def said(html: str) -> bool:
        root = parsed(f"<html><body>{html}</body></html>")
        assert root is not None
        return read_markup(root).is_article

    assert said(ld({"@type": "Report"}).replace("Report", 'Report", "x": "date'))
    assert said('<meta property="og:type" content="Article">')
    assert not said('<meta property="og:type" content="website">')
    assert not said(ld(ARTICLE, ARTICLE))
    assert not said("<article>teaser</article>")


def test_large_pages_take_no_longer_than_they_are() -> None:
    """Ten thousand scripts, times, metas and values."""
    many = 10_000
    html = (
        ld({"@graph": [[[{"date": 1}] * 100] * 100] * 20}) + ld(*[ARTICLE] * 100) + '<time datetime="2026-01-05">' * many
        + '<meta name="date" content="x">' * many + "<article>" * 1000
    )  # fmt: skip
    root = parsed(f"<html><body>{html}</body></html>")
    assert root is not None
    start = time.process_time()
    assert read_markup(root).published is not None
    assert time.process_time() - start < 20
