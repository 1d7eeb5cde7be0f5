"""Limits that separate an endless site from a large one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_focus.features.traps import MAX_COPIES, MAX_FOLDERS, MAX_LINKS, MAX_REPEATS
from scrapy_focus.features.traps.patterns import Copies, Limits, trap_of
from tests.examples import n_examples
from tests.features.traps.documented import STATS
from tests.test_growth import PIECES, check


@pytest.mark.parametrize(
    ("path", "trap"),
    [
        ("", ""),
        ("/", ""),
        ("?a/b/a/b/a/b/a/b/a/b/a/b/a/b", ""),  # a query has no folders
        ("/x#/a/a/a/a/a/a/a", ""),
        ("/a" * 5, ""),
        ("/a" * 6, "repeats"),
        ("/a/b/a/c/a/d/a/e/a/f/a/g", "repeats"),
        ("//////", "repeats"),
        ("/2024/01/01/01/01/01/map.png", ""),
        ("".join(f"/{i}" for i in range(32)), ""),
        ("".join(f"/{i}" for i in range(33)), "folders"),
        ("/a" * 100_000, "folders"),
    ],
)
def test_trap_of(path: str, trap: str) -> None:
    """Too many parts of a path, or one of them too often; queries and fragments do not count."""
    assert trap_of(f"http://h{path}", Limits()) == trap


def test_each_limit_can_be_switched_off() -> None:
    """0 disables a limit."""
    assert trap_of("http://h" + "/a" * 40, Limits(folders=0)) == "repeats"
    assert trap_of("http://h" + "/a" * 40, Limits(repeats=0)) == "folders"
    assert trap_of("http://h" + "/a" * 40, Limits(folders=0, repeats=0)) == ""


def test_copies_are_counted_by_url() -> None:
    """A page that is seen again under its own URL is not a further copy."""
    copies = Copies()
    assert [copies.count(f"http://h/{i % 7}", b"same") for i in range(20)] == [*range(1, 8)] + 13 * [7]
    assert copies.count("http://h/0", b"other") == 1


def test_memory_for_copies_is_bounded() -> None:
    """Of very many pages the oldest are forgotten; a frequent one is not."""
    copies = Copies(pages=100)
    for i in range(2000):
        copies.count(f"http://h/{i}", b"%d" % i)
        assert copies.count(f"http://h/s{i}", b"same") == i + 1
    assert len(copies._new) + len(copies._old) <= 402
    assert copies.count("http://h/x", b"0") == 1


@settings(max_examples=n_examples(30), deadline=None)
@given(PIECES, st.text(max_size=3))
def test_reading_a_url_is_linear(piece: str, end: str) -> None:
    """Any piece, again and again."""
    check(lambda n: f"http://h/h{10 * n * piece}{end}", lambda url: trap_of(url, Limits(folders=0)))


def test_each_limit_is_a_documented_stat() -> None:
    """Under its own name."""
    assert {f"focus/trap/{name}" for name in Limits._fields} | {"focus/error/traps"} == STATS


def test_limits_are_those_of_the_settings() -> None:
    """These are the defaults."""
    assert Limits() == Limits(MAX_LINKS.default, MAX_FOLDERS.default, MAX_REPEATS.default, MAX_COPIES.default)


def test_the_table_of_limits_has_the_defaults() -> None:
    """``SECURITY.rst`` has the same numbers."""
    table = " ".join((Path(__file__).parents[3] / "SECURITY.rst").read_text(encoding="utf-8").split())
    limits = Limits()
    assert f"the first {limits.links:,} - ``FOCUS_MAX_LINKS``" in table
    assert f"{limits.folders} parts, and {limits.repeats} times the same one" in table
    assert f"the links of the first {limits.copies} are followed" in table
