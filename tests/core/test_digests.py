"""What a page says in a number, and what headers say of its next visit."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from scrapy_focus.web.digest import bytes_digest, page_digest
from scrapy_focus.web.html import parsed
from scrapy_focus.web.validators import etag_of, max_age_of, modified_of

PAGE = (
    "<html><head><title>Prices</title></head><body><p>" + "Words that stay as they are. " * 6 + "</p>{}</body></html>"
)


def digest(part: str, page: str = PAGE) -> int:
    """Return the digest of a page with this part."""
    root = parsed(page.format(part))
    assert root is not None
    return page_digest(root)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<p>12:30</p>", "<p>14:31:22</p>"),
        ("<p>9:59 am</p>", "<p>10:02 am</p>"),
        ("<i>3 minutes ago</i>", "<i>1 hour ago</i>"),
        ("<i>an hour ago</i>", "<i>2 hours ago</i>"),
        ("<i>by A. 5m ago</i>", "<i>by A. 12 days ago</i>"),
        ("vor 3 Stunden", "vor 14 Minuten"),
        ("il y a 3 heures", "il y a 2 jours"),
        ("hace 3 horas", "hace 2 días"),
        ("1,234 views", "1,235 views"),
        ("Visitors: 12", "Visitors: 13"),
        ("17 guests online", "3 guests online"),
        ("Page generated in 0.123 seconds", "Page generated in 1.2 s"),
        ("<script>nonce = 1</script>", "<script>nonce = 2</script>"),
        ("<style>a {}</style>", "<style>b {}</style>"),
        ("<!-- 1 -->", "<!-- 2 -->"),
        ("<input type=hidden value=1>", "<input type=hidden value=2>"),
        ("id 3f9a7c5b2e1d4f6a", "id a1b2c3d4e5f60718aa"),
        ("550e8400-e29b-41d4-a716-446655440000", "660e8400-e29b-41d4-a716-44665544abcd"),
        ("<a href='/x?sid=3f9a7c5b2e1d4f6a88&p=1'>x</a>", "<a href='/x?sid=aaaa7c5b2e1d4f6a88&p=1'>x</a>"),
        ("<a href='/x?t=1770000000'>x</a>", "<a href='/x?t=1770000999'>x</a>"),
        ("<p>x</p>\n\n", "<p>x </p>"),
    ],
)
def test_what_changes_with_each_request_is_left_out(one: str, other: str) -> None:
    """Nobody is to come back for it."""
    assert digest(one) == digest(other) != 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("12.99 EUR", "13.99 EUR"),
        ("Population 1,234", "Population 1,235"),
        ("<a href=/1>more</a>", "<a href=/2>more</a>"),
        ("<a href='?page=1'>next</a>", "<a href='?page=2'>next</a>"),
        ("12 March", "13 March"),
        ("12 months", "13 months"),
        ("Results in 3 sets", "Results in 4 sets"),
        ("population_2023_q1.csv", "population_2023_q2.csv"),
        ("One headline", "Another headline"),
        ("score 3:1", "score 3:2"),
        ("<td>1</td><td>23</td>", "<td>12</td><td>3</td>"),
    ],
)
def test_what_readers_see_is_a_change(one: str, other: str) -> None:
    """Numbers and dates too."""
    assert digest(one) != digest(other)


def test_a_page_without_much_text_has_no_digest() -> None:
    """What is in its scripts is what it says then."""
    assert digest("", "<html><body><div id=app></div><script>{}</script></body></html>") == 0
    assert digest("short", "<html><body>{}</body></html>") == 0


def test_digests_are_the_same_in_each_process() -> None:
    """They are stored."""
    code = f"from tests.core.test_digests import digest; print(digest({'<i>x</i>'!r}))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(printed) == digest("<i>x</i>")
    assert bytes_digest(b"") > 0
    assert bytes_digest(b"a") != bytes_digest(b"b")


@pytest.mark.parametrize("piece", ["0", "1 ", "1:", "a1", "3 minutes ", "1,", "an ", "=1", " ago", "views 1 "])
def test_a_digest_takes_time_linear_in_the_page(piece: str) -> None:
    """Whatever it says; the limit is for what grows with the square, which would take minutes."""
    since = time.process_time()
    digest(f"<p>{piece * 200_000}</p><a href='?x{piece.replace(' ', '')[:3] * 20_000}'>x</a>")
    digest(f"<i>{piece}</i>" * 50_000)
    assert time.process_time() - since < 60


@pytest.mark.parametrize(
    ("values", "etag"),
    [
        (['"a"'], '"a"'), (['W/"a"'], 'W/"a"'), ([" a "], "a"), ([], ""), ([""], ""), (['"a"', '"a"'], '"a"'),
        (['"a"', '"b"'], ""), (['"' + "x" * 100_000 + '"'], ""), (['"a\x1b[31m"'], ""), (['"é"'], ""), (['"a\r\nB: c"'], ""),
    ],
)  # fmt: skip
def test_an_etag_is_sent_back_as_it_came(values: list[str], etag: str) -> None:
    """Strong or weak; not where it is no such thing."""
    assert etag_of(values) == etag


def test_a_date_is_sent_back_as_it_came() -> None:
    """If it is one."""
    date = "Mon, 02 Feb 2026 10:00:00 GMT"
    assert modified_of([date]) == modified_of([date, date]) == date
    for odd in ([], ["yesterday"], ["0"], [date * 3], [date, "x"], ["Mon, 02 Feb 2026\r\nA: b"], ["\x00"]):
        assert modified_of(odd) == ""


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        (["max-age=60"], 60.0), (["public, Max-Age = 60"], 60.0), (['max-age="60"'], 60.0), (["s-maxage=60"], None),
        (["no-cache"], None), ([], None), (["max-age=60, max-age=30"], 30.0), (["private", "max-age=5"], 5.0),
        (["max-age=-1"], None), (["max-age=soon"], None), (["max-age=" + "9" * 400], 315_360_000.0),
    ],
)  # fmt: skip
def test_how_long_a_page_is_fresh(values: list[str], seconds: float | None) -> None:
    """By what it says to everybody; its age is taken off."""
    assert max_age_of(values) == seconds
    assert max_age_of(["max-age=60"], age="70") == 0.0
    assert max_age_of(["max-age=60"], age="x") == 60.0
