"""Text that a site sent can be printed and logged, whatever it is."""

from __future__ import annotations

import io
import json
import logging
import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_focus.core.printable import (
    brief,
    printable,
    printable_elsewhere,
    printable_json,
    printable_logger,
    reason_of,
)
from tests.examples import n_examples

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=60)
HOSTILE = [
    "\x1b]0;mine\x07", "\x9b31m", "a\nb", "a\r\nb", "a\u2028b\u2029c\x85d", "\u202eabc\u2066", "\ud800", "\x7f\x08", "\u200b\u200e\ufeff",
    "\U000e0041", "a\x00b",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_nothing_that_does_not_show_is_left(text: str) -> None:
    """It is spelled as in Python."""
    assert printable(text).isprintable()
    assert printable(text) == "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


@pytest.mark.parametrize(
    "text", ["", "html/body.front/div.a b#main/a", "Größe 数据 بيانات € 😀", "[red]hi[/red]", "back\\slash"]
)
def test_what_shows_stays_as_it_is(text: str) -> None:
    """Ordinary names, of any language, are not touched."""
    assert printable(text) is text


def test_blanks_are_spaces() -> None:
    """Those of typography too; but for line ends, which are spelled."""
    assert printable("a\xa0b\u3000c d") == "a b c d"


@settings(max_examples=n_examples(300), deadline=None)
@given(ANYTHING, st.integers(0, 40))
def test_a_text_is_one_short_line(text: str, longest: int) -> None:
    """Of characters that show, at most as many as are allowed, but for the dots that say that it was longer."""
    said = printable(text, longest)
    assert said.isprintable()
    assert len(said) <= max(3, longest)
    assert printable(said, max(3, longest)) == said


@settings(max_examples=n_examples(300), deadline=None)
@given(st.dictionaries(ANYTHING, ANYTHING | st.lists(ANYTHING) | st.floats(allow_nan=False) | st.none()))
def test_json_is_printable_and_reads_back(value: dict[str, object]) -> None:
    """Each of its lines, indented or not; and a file of UTF-8 holds it."""
    for indent in (None, 2):
        text = printable_json(value, indent=indent)
        assert all(line.isprintable() for line in text.split("\n"))
        text.encode()
        assert json.loads(text) == value


def test_a_value_is_shown_in_a_message() -> None:
    """Its repr, cut; and where that cannot be had, its type."""

    class Shy:
        def __repr__(self) -> str:
            raise ZeroDivisionError

    assert brief(["a"]) == "['a']"
    assert len(brief("a" * 10**6)) == 200
    assert brief(Shy()) == "<Shy, which cannot be shown>"
    assert reason_of(ValueError("a\x1bb\nc")) == "a\\x1bb\\nc"
    assert reason_of(ValueError()) == "ValueError"


@settings(max_examples=n_examples(150), deadline=None)
@given(ANYTHING)
def test_a_log_has_no_line_that_a_site_wrote(text: str) -> None:
    """Neither in messages nor in tracebacks, with causes and notes: all that a line holds shows, and it is one."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logger = printable_logger("tests.printable")
    logger.addHandler(handler)
    logger.propagate = False
    try:
        logger.warning("Seen: %s", text)
        try:
            try:
                raise KeyError(text)
            except KeyError as error:
                error.add_note(text)
                raise ValueError(f"no good: {text}") from error
        except ValueError:
            logger.exception("It failed: %s", text)
    finally:
        logger.removeHandler(handler)
    lines = stream.getvalue().split("\n")
    assert all(line.isprintable() for line in lines)
    first = [line for line in lines if re.match(r"WARNING|ERROR", line)]
    assert first[0] == f"WARNING: Seen: {printable(text, 4000)}"
    assert first[1] == f"ERROR: It failed: {printable(text, 4000)}"
    assert f"ValueError: no good: {printable(text, 4000)}" in lines
    assert lines[0] == first[0]


def test_a_log_keeps_what_is_no_text_of_others() -> None:
    """A record with plain arguments stays as it is, and one that cannot be put into words ends nobody."""
    records: list[logging.LogRecord] = []

    class Shy:
        def __str__(self) -> str:
            raise ZeroDivisionError

    logger = printable_logger("tests.printable")
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign,assignment]
    logger.addHandler(handler)
    logger.propagate = False
    logger.warning("%d of %s", 3, "csv")
    logger.warning("from %s", Shy())
    logger.removeHandler(handler)
    assert (records[0].msg, records[0].args) == ("%d of %s", (3, "csv"))
    assert records[1].getMessage() == "from %s (ZeroDivisionError while this was put into words)"


def test_records_of_others_keep_their_lines() -> None:
    """What Scrapy logs of a site has no controls at the handler; its line ends and tracebacks stay."""
    try:
        raise ValueError("a\x1b]0;title\x07\nb")
    except ValueError:
        raised = sys.exc_info()
    record = logging.LogRecord("scrapy", logging.WARNING, __file__, 1, "%s\n%s", ("x\x1b[31m", "y\u202e\tz"), raised)
    assert printable_elsewhere(record)
    assert record.getMessage() == "x\\x1b[31m\ny\\u202e      z"
    assert record.exc_text is not None
    assert record.exc_text.endswith("ValueError: a\\x1b]0;title\\x07\nb")
    plain = logging.LogRecord("scrapy", logging.INFO, __file__, 1, "Crawled %d", (5,), None)
    assert printable_elsewhere(plain)
    assert plain.args == (5,), "what shows is left as it is"
    odd = logging.LogRecord("scrapy", logging.INFO, __file__, 1, "%d", ("five",), None)
    assert printable_elsewhere(odd), "logging says what is wrong with it"
