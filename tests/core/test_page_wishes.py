"""What pages ask of robots in headers, ``<meta>`` and ``rel``, and servers in ``Retry-After``."""

from __future__ import annotations

from email.utils import formatdate
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsel import Selector

from scrapy_focus.web.robots import asked_of_robots, nofollowed, retry_after

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("html", "headers", "asked"),
    [
        ("<meta name=robots content='noindex, NoFollow'>", [], {"noindex", "nofollow"}),
        ("<meta name=ROBOTS content=none>", [], {"none", "noindex", "nofollow"}),
        ("<body><meta name=' robots ' content=nofollow>", [], {"nofollow"}),
        ("<meta name=googlebot content=noindex><meta name=description content=nofollow>", [], set()),
        ("", ["noindex", "nofollow, noarchive"], {"noindex", "nofollow", "noarchive"}),
        ("", ["googlebot: noindex"], set()),
        ("", ["unavailable_after: 25 Jun 2010 15:00:00 PST"], {"unavailable_after: 25 jun 2010 15:00:00 pst"}),
        ("", ["noindex, max-snippet: 3"], {"noindex", "max-snippet: 3"}),
        ("<meta name=robots><meta content=noindex>", [""], {""}),
    ],
)  # fmt: skip
def test_what_a_page_asks(html: str, headers: list[str], asked: set[str]) -> None:
    """Of all robots, in any case; what is said to one robot by name is not meant for us."""
    assert asked_of_robots(Selector(text=html or "<p>").root, headers) == asked


def test_a_file_asks_in_its_headers() -> None:
    """Anything but HTML can only ask there."""
    assert asked_of_robots(None, ["noindex"]) == {"noindex"}


def test_nofollow_of_single_links() -> None:
    """A URL counts whose links all have it, however they spell it; one other link is enough to follow."""
    html = """<a rel=nofollow href=/a>a</a> <a rel="NoFollow ugc" href="b#x">b</a> <a href=/c>c</a>
        <a rel=nofollow href=/c>c</a> <a rel=nofollow href="/é">é</a> <area rel=nofollow href="http://[broken">
        <a rel=nofollow>no link</a> <a rel=follow href=/d>d</a> <a href=/e rel=nofollow><a href=" /e ">e</a>"""
    urls = nofollowed(Selector(text=html).root, "http://h/p/")
    assert urls - {""} == {"http://h/a", "http://h/p/b", "http://h/%C3%A9"}


def test_nofollow_takes_time_that_grows_with_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each link is joined to its base once, and none on a page where no link asks for anything."""
    from scrapy_focus.web import robots

    steps = 0
    join = robots.spellings

    def counted(base: str, url: str, encoding: str) -> set[str]:
        nonlocal steps
        steps += 1
        return join(base, url, encoding)

    monkeypatch.setattr(robots, "spellings", counted)
    counts = []
    for n in (100, 200, 400):
        steps = 0
        root = Selector(text="".join(f"<a href=/{i} {'rel=nofollow' * (i % 2)}>x</a>" for i in range(n))).root
        assert len(nofollowed(root, "http://h/")) == n // 2
        counts.append(steps)
    assert all(later == 2 * before for before, later in pairwise(counts))
    steps = 0
    nofollowed(Selector(text="<a href=/a>a</a>" * 100).root, "http://h/")
    assert steps == 0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120), (" 7 ", 7), ("0", 0), (formatdate(NOW + 90, usegmt=True), 90), (formatdate(NOW - 90, usegmt=True), 0),
        ("Fri, 15 Jan 2027 08:01:00", 60), ("9" * 400, 999_999_999_999), ("", None), ("soon", None), ("-5", None), ("1.5", None),
        ("٣", None), ("Fri, 99 Jan 2027 08:00:00 GMT", None), ("Fri, 15 Jan 99999999999 08:00:00 GMT", None),
    ],
)  # fmt: skip
def test_retry_after(value: str, seconds: float | None) -> None:
    """Seconds or an HTTP date, counted from now; anything else says nothing."""
    assert retry_after(value, now=NOW) == seconds


@given(st.text(max_size=60))
def test_any_retry_after_is_read(value: str) -> None:
    """No header makes it raise, and no answer is negative or endless."""
    seconds = retry_after(value, now=NOW)
    assert seconds is None or 0 <= seconds < 1e12
