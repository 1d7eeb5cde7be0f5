"""Untrusted text, made safe to print and log.

A class of an element, a MIME type or the message of an exception may hold anything that a site sent: escape sequences
for terminals, line ends that forge log lines, characters that reverse the text direction, a million letters.
Everything that this package prints or logs goes through here; what it stores is unchanged.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
import unicodedata
from functools import cache
from typing import Any

# How many characters of a text are printed; TEXT by default.
WORD = 40  # a kind, a rate, one text in a list
VALUE = 60  # a value or a noun within a sentence
NAME = 80  # a host or a MIME type
TEXT = 200  # a URL, a name, a text of a page
REASON = 300  # the message of an error, within a message
PARAGRAPH = 1000  # the message of an error in a log, or of a goal about itself
EXPLANATION = 2000  # the whole of what is said about one thing
LINE = 4000  # a line of a log or on a terminal

_MAYBE_UNPRINTABLE = re.compile(r"[^\n !-~]")


def printable(text: str, longest: int = TEXT) -> str:
    r"""Return a text in one line of at most so many printable characters: ``str.isprintable`` holds.

    Controls, line ends, direction marks, lone surrogates and all invisible characters are escaped as in Python; other
    white space becomes one space. A short text without them is returned unchanged.

    Examples
    --------
    >>> print(printable("\x1b]0;mine\x07 naïve\nERROR"))
    \x1b]0;mine\x07 naïve\nERROR
    >>> printable("a" * 1000, longest=8)
    'aaaaa...'
    """
    if len(text) > longest:
        spelled = "".join(_spelled(char) for char in text[:longest])
        return f"{spelled[: max(0, longest - 3)]}..."
    if text.isprintable():
        return text
    spelled = "".join(_spelled(char) for char in text)
    if len(spelled) <= longest:
        return spelled
    return f"{spelled[: max(0, longest - 3)]}..."


def brief(value: object, longest: int = TEXT) -> str:
    """Return the start of a value's ``repr``, printable, for a message."""
    try:
        return printable(repr(value), longest)
    except Exception:  # any exception of a user's object
        return f"<{type(value).__name__}, which cannot be shown>"


def counted(n: float, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "file"), counted(1234, "address")
    ('1 file', '1,234 addresses')
    """
    return f"{n:,.0f} {noun if n == 1 else plural(noun)}"


def inflected(n: float, one: str, several: str) -> str:
    """Return the word that agrees with a number: a verb or a pronoun, say.

    Examples
    --------
    >>> inflected(1, "was", "were"), inflected(0, "was", "were")
    ('was', 'were')
    """
    return one if n == 1 else several


def plural(noun: str) -> str:
    """Return the plural of a noun.

    Examples
    --------
    >>> [plural(noun) for noun in ("file", "day", "entity", "address")]
    ['files', 'days', 'entities', 'addresses']
    """
    if noun.endswith("s"):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def reason_of(error: BaseException, longest: int = TEXT) -> str:
    """Return the message of an exception, printable; its type if it has none."""
    try:
        said = str(error)
    except Exception:
        said = ""
    return printable(said or type(error).__name__, longest)


def printable_json(value: Any, **options: Any) -> str:
    r"""Return JSON without characters that harm a terminal or a log; it reads back unchanged.

    ``options`` are those of :func:`json.dumps`. Printable characters are unchanged, all others become ``\uXXXX``.

    Examples
    --------
    >>> print(printable_json({"title": "naïve\x1b\x9b\u2028\ud800"}))
    {"title": "naïve\u001b\u009b\u2028\ud800"}
    """
    text = json.dumps(value, ensure_ascii=False, **options)
    return _MAYBE_UNPRINTABLE.sub(lambda found: _escaped(found[0]), text)


def printable_logger(name: str) -> logging.Logger:
    """Return the logger of a module with printable records: messages in one line, tracebacks without controls."""
    logger = logging.getLogger(name)
    logger.addFilter(_make_printable)
    return logger


def printable_elsewhere(record: logging.LogRecord) -> bool:
    """Escape the controls in a record of another package, except line ends; a filter for handlers.

    Scrapy's messages about a site may contain them, and may have many lines. Always returns ``True``.
    """
    try:
        message = record.getMessage()
    except Exception:  # the handler's own marker
        return True
    if not message.isprintable():
        record.msg, record.args = _printable_lines(message), ()
    if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
        record.exc_text = _printable_lines("".join(traceback.format_exception(record.exc_info[1])).removesuffix("\n"))
    return True


def _printable_lines(text: str) -> str:
    return "\n".join(printable(line.expandtabs(), sys.maxsize) for line in text.split("\n"))


def _make_printable(record: logging.LogRecord) -> bool:
    try:
        message = record.getMessage()
    except Exception as error:  # an argument that cannot be shown
        message = record.msg = f"{record.msg} ({type(error).__name__} while this was put into words)"
        record.args = ()
    if not (message.isprintable() and len(message) <= LINE):
        record.msg, record.args = printable(message, LINE), ()
    raised = record.exc_info[1] if record.exc_info else None
    if raised is not None and not record.exc_text:
        record.exc_text = _traceback(raised)
    return True


def _traceback(error: BaseException) -> str:
    """Return a traceback in which the exception's message cannot start a line."""
    try:
        parts = traceback.format_exception(error)
    except Exception:
        return f"{type(error).__name__}, which cannot be shown"
    lines: list[str] = []
    for part in parts:
        code = part.startswith("  ")  # file and source, on a line each
        whole = part.strip("\n") if part.startswith("\n") else part.removesuffix("\n")  # the former names a cause
        lines += whole.split("\n") if code else [whole]
    return "\n".join(printable(line, LINE) for line in lines)


@cache
def _spelled(char: str) -> str:
    if char.isprintable():
        return char
    return " " if unicodedata.category(char) == "Zs" else repr(char)[1:-1]


@cache
def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else json.dumps(char)[1:-1]
