"""Dates in any format are read, future ones are ignored, and each change is reported once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from scrapy_focus.web import listing_news as module
from scrapy_focus.web.changed import Moment, believed, read_moment
from scrapy_focus.web.entries import Listed
from scrapy_focus.web.listing_news import Change, ListingNews, absolute

if TYPE_CHECKING:
    from scrapy_focus.web.listing_news import Reason

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
HOUR = 3600.0
FEED = "http://www.h.test/feed.xml"


@pytest.mark.parametrize(
    ("said", "at"),
    [
        ("2026-11-22T12:00:00Z", NOON),
        ("2026-11-22T14:00+02:00", NOON),
        ("2026-11-22T12:00:00.45Z", NOON + 0.45),
        (" 2026-11-22T07:00:00-0500 ", NOON),
        ("Sun, 22 Nov 2026 12:00:00 GMT", NOON),
        ("22 Nov 26 07:00 EST", NOON),
    ],
)
def test_moments_are_what_they_say(said: str, at: float) -> None:
    """As W3C, ISO 8601 and RFC 822 write them, in any zone."""
    assert read_moment(said) == Moment(at, at)


@pytest.mark.parametrize(
    ("said", "at"),
    [("2026-11-22T12:00:00", NOON), ("2026-11-22 12:00", NOON), ("20261122T120000", NOON), ("Sun, 22 Nov 2026 12:00:00 -0000", NOON)],
)  # fmt: skip
def test_without_a_zone_it_is_taken_to_be_utc(said: str, at: float) -> None:
    """It may have been fourteen hours earlier."""
    assert read_moment(said) == Moment(at - 14 * HOUR, at)


def test_days_end_and_months_and_years_begin() -> None:
    """What changed on a day may have done so until its end; a month or a year says next to nothing."""
    assert read_moment("2026-11-22") == Moment(NOON - 26 * HOUR, NOON + 12 * HOUR)
    assert read_moment("2026-11") == Moment(NOON - (21 * 24 + 26) * HOUR, NOON - (21 * 24 + 12) * HOUR)
    first = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    assert read_moment("2026") == Moment(first - 14 * HOUR, first)


@pytest.mark.parametrize(
    "said",
    [
        "", "now", "yesterday", "2026-13-01", "2026-11-31T00:00:00Z", "0000", "99999", "2026-11-22T10:00:00+99:00",
        "Sun, 99 Nov 99999999999999999999 10:00:00 GMT", "1 1 1 1 1 1", "\u0662\u0660\u0662\u0666", "2" * 100_000, "Nov 22, 2026",
        "-1", "1e99", "nan", "2026-11-22T10:00:00Z<script>",
    ],
)  # fmt: skip
def test_what_is_no_date_is_none(said: str) -> None:
    """However long it is, whatever digits it has."""
    assert read_moment(said) is None


def test_the_future_is_not_believed() -> None:
    """But a clock may be some seconds ahead, a day is not over, and without a zone it may be now."""
    for said, expected in (
        ("2026-11-22T11:00:00Z", NOON - HOUR),
        ("2026-11-22T12:00:30Z", NOON),
        ("2026-11-22T12:02:00Z", None),
        ("2026-11-22", NOON),
        ("2026-11-24", None),
        ("2026-11-22T20:00:00", NOON),
        ("2026-11-23T20:00:00", None),
        ("2027", None),
        ("9999-12-31T23:59:59-14:00", None),
    ):
        moment = read_moment(said)
        assert moment is not None
        assert believed(moment, NOON) == expected, said


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (Listed("", changed="2026"), "no_url"),
        (Listed("javascript:x", changed="2026"), "no_url"),
        (Listed("http://[", changed="2026"), "no_url"),
        (Listed("https:///x", changed="2026"), "no_url"),
        (Listed("/" + "a" * 5000, changed="2026"), "no_url"),
        (Listed("/a"), "undated"),
        (Listed("/a", changed="soon"), "unreadable"),
        (Listed("/a", changed="2027-01-01"), "future"),
        (Listed("http://other.test/a", changed="2026"), "elsewhere"),
    ],
)
def test_why_an_entry_is_no_news(entry: Listed, reason: Reason) -> None:
    """Each reason has a name."""
    assert ListingNews().news(entry, FEED, NOON) == reason


def test_a_date_is_reported_once() -> None:
    """And another one again; of all hosts of a domain, also by relative URLs, and whatever their fragment."""
    seen = ListingNews()
    entry = Listed("http://shop.h.test/a#b", changed="2026-11-21T12:00:00Z")
    assert seen.news(entry, FEED, NOON) == Change("http://shop.h.test/a", NOON - 24 * HOUR)
    assert seen.news(entry, FEED, NOON) == "repeated"
    later = entry._replace(changed="2026-11-22")
    assert seen.news(later, FEED, NOON) == Change("http://shop.h.test/a", NOON)
    assert seen.news(later, FEED, NOON + HOUR) == "repeated"
    other = "http://www.h.test/other.xml"  # which writes it otherwise
    assert isinstance(seen.news(entry, other, NOON), Change)
    assert seen.news(later, FEED, NOON) == seen.news(entry, other, NOON) == "repeated"
    assert seen.news(Listed("a", changed="2026"), FEED, NOON) == Change("http://www.h.test/a", absolute_year())


def absolute_year() -> float:
    return datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def test_old_reports_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """So memory is bounded; what is read again and again is kept."""
    monkeypatch.setattr(module, "_REMEMBERED", 10)
    seen, kept = ListingNews(), Listed("/kept", changed="2026")
    seen.news(kept, FEED, NOON)
    for n in range(100):
        seen.news(Listed(f"/{n}", changed="2026"), FEED, NOON)
        assert seen.news(kept, FEED, NOON) == "repeated"
    assert isinstance(seen.news(Listed("/0", changed="2026"), FEED, NOON), Change)


def test_urls_become_absolute() -> None:
    """Or nothing."""
    assert absolute(FEED, " ../a?b#c ") == "http://www.h.test/a?b"
    assert absolute("", "http://h.test/a") == "http://h.test/a"
    assert absolute("", "/a") == absolute(FEED, "mailto:a@h.test") == absolute(FEED, "ftp://h.test/") == ""
