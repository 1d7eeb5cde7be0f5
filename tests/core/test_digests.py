"""What a page says in a number, and what headers say of its next visit."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from scrapy_focus.web.digest import bytes_digest, page_digest, text_digest
from scrapy_focus.web.html import parsed
from scrapy_focus.web.main_text import main_blocks
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
    """It is never revisited."""
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


@pytest.mark.few(3)
@pytest.mark.parametrize("piece", ["0", "1 ", "1:", "a1", "3 minutes ", "1,", "an ", "=1", " ago", "views 1 "])
def test_a_digest_takes_time_linear_in_the_page(piece: str) -> None:
    """Whatever the text; the limit prevents quadratic time, which would take minutes."""
    since = time.process_time()
    digest(f"<p>{piece * 200_000}</p><a href='?x{piece.replace(' ', '')[:3] * 20_000}'>x</a>")
    digest(f"<i>{piece}</i>" * 50_000)
    assert time.process_time() - since < 60


ARTICLE = "<body><article><h1>Prices</h1><p>They rose by <a href=/1>12 %</a> in May.</p>{}</article>{}</body>"


def blocks(page: str) -> list[str]:
    """Return the main text of a page."""
    root = parsed(page)
    assert root is not None
    return main_blocks(root)


def text_of(within: str, beside: str = "", page: str = ARTICLE) -> str:
    """Return the digest of the main text of an article, with something in it and something beside it."""
    root = parsed(page.format(within, beside))
    assert root is not None
    return text_digest(root)


@pytest.mark.parametrize("page", [ARTICLE, ARTICLE.replace("article", "main"), ARTICLE.replace("article", "div")])
@pytest.mark.parametrize(
    "part",
    [
        "<ul><li><a href=/{n}>recent {n}</a></ul>",
        "<ol><li><a href=/{n}>A title</a> {n} May</ol>",
        "<ul><li><a href=/{n}>A title of a post</a><p>{n} May</p></ul>",
        "<table><tr><td><a href=/{n}>recent {n}</a></table>",
        "<aside><h2>Recent</h2><p>A teaser of post {n}, which is longer than its link.</aside>",
        "<nav>{n}</nav>",
        "<form><p>Reply to {n}</form>",
        "<div role=complementary><p>Text {n}</div>",
        "<div class='post-related wide'><ul><li>Post {n}</ul></div>",
        "<div id=rightSidebar><ul><li>Post {n}</ul><p>Some words</div>",
        "<p><a href=/{n}>Permalink {n}</a> by A",
        "<div hidden><ul><li>{n}</ul></div>",
        "<script>{n}</script>",
        "<p>{n} minutes ago",
        "<p>{n},123 views",
        "<p>\n</p><!-- {n} -->",
    ],
)
def test_what_stands_beside_a_text_is_not_its_text(part: str, page: str) -> None:
    """Menus, lists of links and what changes with each request do not count, wherever they are."""
    one, other = part.format(n=1), part.format(n=27)
    assert text_of(one, page=page) == text_of(other, page=page) != ""
    assert text_of("", one, page=page) == text_of("", other, page=page)
    assert text_of(one * 3, page=page) == text_of(one * 4, page=page)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<p>It is so.", "<p>It is not so."),
        ("<ul><li>One<li>Two</ul>", "<ul><li>One<li>Three</ul>"),
        ("<table><tr><td>12<td>13</table>", "<table><tr><td>12<td>14</table>"),
        ("<p>See <a href=/1>the list</a> of all those names.", "<p>See <a href=/1>the page</a> of all those names."),
        ("<h2>Update</h2>", "<h2>Correction</h2>"),
        ("<div class='no-sidebar'>a</div>", "<div class='no-sidebar'>b</div>"),
        ("<blockquote>a</blockquote>", "<blockquote>b</blockquote>"),
        ("", "<p>Correction."),
    ],
)
def test_a_change_of_the_text_is_one(one: str, other: str) -> None:
    """Also of a word, a number or a headline; a page without an article is read as a whole."""
    assert text_of(one) != text_of(other)
    assert text_of(one, page=ARTICLE.replace("article", "div")) != text_of(
        other, page=ARTICLE.replace("article", "div")
    )


def test_the_main_text_is_that_of_the_article() -> None:
    """Of the only one, with its blocks in order; of several none is the main one."""
    said = blocks("<header>Site</header>" + ARTICLE.format("<ul><li>One<li>Two</ul>after<!-- x --> it", "<p>beside"))
    assert said == ["Prices", "They rose by 12 % in May.", "One", "Two", "after it"]
    assert blocks(ARTICLE.format("", "<article><p>Another") + "<p>x") == [
        "Prices", "They rose by 12 % in May.", "Another", "x",
    ]  # fmt: skip
    assert blocks("<article><p>One<article><p>comment</article></article>") == ["One", "comment"]
    assert blocks("<ul class=related><li><a>x</a></ul><ul><li>kept</ul><p>text") == ["kept", "text"]


def test_a_digest_of_a_text_names_its_way() -> None:
    """It is stored in lists, and is the same in each process; a page without a text has none."""
    assert text_of("") == "1:3f955907d493cdaa"
    assert text_of("", page="<body><ul><li><a href=/>x</a></ul></body>") == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["<ul>", "<ul><li><a>", "<div class=related>", "<div>x", "<a>x", "<article>", "<ul><li>x</ul>", "<!-- x -->y"],
)
def test_a_main_text_takes_time_linear_in_the_page(piece: str) -> None:
    """However its elements are nested, and whether they are closed or not."""
    since = time.process_time()
    text_of(piece * 10_000)
    assert time.process_time() - since < 60


@pytest.mark.parametrize(
    ("values", "etag"),
    [
        (['"a"'], '"a"'), (['W/"a"'], 'W/"a"'), ([" a "], "a"), ([], ""), ([""], ""), (['"a"', '"a"'], '"a"'),
        (['"a"', '"b"'], ""), (['"' + "x" * 100_000 + '"'], ""), (['"a\x1b[31m"'], ""), (['"é"'], ""), (['"a\r\nB: c"'], ""),
    ],
)  # fmt: skip
def test_an_etag_is_sent_back_as_it_came(values: list[str], etag: str) -> None:
    """Strong or weak; not if it is invalid."""
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
    """From the shared directives; the page's age is subtracted."""
    assert max_age_of(values) == seconds
    assert max_age_of(["max-age=60"], age="70") == 0.0
    assert max_age_of(["max-age=60"], age="x") == 60.0
