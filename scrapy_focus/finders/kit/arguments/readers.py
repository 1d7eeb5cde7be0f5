"""Parse the texts of arguments, and report errors.

Each reader takes the text and the user's name for the argument. For an invalid text it raises a ``UsageError`` with
one sentence: what was given, what the argument takes, and an example.
"""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from scrapy_focus.core.budget import Rate
from scrapy_focus.core.durations import UNITS, Duration
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.sizes import Size
from scrapy_focus.finders.kit.arguments.argument import Called, argument
from scrapy_focus.web.expressions import compiled
from scrapy_focus.web.wanted import split_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def read_text(given: object, called: Called) -> str:
    """Return a text unchanged."""
    return str(given)


def read_yes(given: str, called: Called) -> bool:
    """Return whether it is ``yes``."""
    if given not in ("yes", "no"):
        raise UsageError(f"{called} is {given!r}; it takes yes or no")
    return given == "yes"


def read_one(given: str, called: Called) -> bool:
    """Return whether it is ``1``."""
    if given not in ("", "0", "1"):
        raise UsageError(f"{called} is {given!r}; it takes 1 for yes, or 0")
    return given == "1"


def read_keywords(given: str, called: Called) -> list[str]:
    """Return the keywords in a file, one per line, or the given ones, separated by commas; ``[]`` for ``""``."""
    if given and _names_file(given):
        from scrapy_focus.topic import expansion

        try:
            return expansion.read_keywords(given)
        except ConfigError as error:
            raise UsageError(str(error)) from error
    found = [word.strip() for word in given.split(",") if word.strip()]
    if given and not found:
        raise UsageError(f"{called} is {given!r}; it takes words separated by commas, or a file with one per line")
    return found


def _names_file(text: str) -> bool:
    """Whether a text is a file, or looks like a file name, rather than words."""
    if "," in text:
        return False
    return Path(text).is_file() or "/" in text or bool(Path(text).suffix)


def read_expressions(given: str | Sequence[str], called: Called) -> list[str]:
    """Return regular expressions, in a list or separated by commas, except within brackets; ``[]`` for ``""``.

    Examples
    --------
    >>> read_expressions("/a{1,2}/,logout", Called("exclude"))
    ['/a{1,2}/', 'logout']
    """
    if not given:
        return []
    texts = split_words(given) if isinstance(given, str) else list(given)
    for text in texts:
        try:
            compiled(text)
        except ValueError as error:
            raise UsageError(
                f"{called} is {text!r}, which is not a regular expression: {error}; an example: "
                f"{called.like(repr('/archive/'))}"
            ) from error
    return texts


def words_reader(example: str) -> Callable[[str, Called], list[str]]:
    """Return a reader of words that are separated by commas, ``[]`` for ``""``."""

    def read(given: str, called: Called) -> list[str]:
        found = [word for each in given.split(",") if (word := each.strip())]
        if given and not found:
            raise UsageError(f"{called} is {given!r}; it takes words separated by commas: {called.like(example)}")
        return found

    return read


def read_share(given: str, called: Called) -> float | None:
    """Return a share of pages, ``None`` for ``""``.

    Examples
    --------
    >>> read_share("0.03", Called("frequency")), read_share("", Called("frequency"))
    (0.03, None)
    """
    if not given:
        return None
    share = _float_of(given)
    if not 0 < share < 1:
        raise UsageError(
            f"{called} is {given!r}; it takes the share of all pages that are on topic, above 0 and below 1: "
            f"{called.like('0.03')}"
        )
    return share


def read_sentence(given: str, called: Called) -> str:
    """Return a sentence with single blanks, ``""`` for ``""``."""
    sentence = " ".join(given.split())
    if given and not sentence:
        raise UsageError(f"{called} is empty; it takes a few words: {called.like(repr('municipal budgets'))}")
    return sentence


def read_least_relevance(given: str, called: Called) -> float:
    """Return a relevance from 0 to 1; 0 for ``""``.

    Examples
    --------
    >>> read_least_relevance("0.5", Called("about_least")), read_least_relevance("", Called("about_least"))
    (0.5, 0.0)
    """
    least = _float_of(given or "0")
    if not 0 <= least <= 1:
        raise UsageError(f"{called} is {given!r}; it takes a relevance from 0 to 1: {called.like('0.5')}")
    return least


def number_reader(unit: str, example: int) -> Callable[[str, Called], int | None]:
    """Return a reader of a number from 1, ``None`` for ``""``."""
    return partial(_read_number, unit=unit, example=example)


def _read_number(given: str, called: Called, unit: str, example: int) -> int | None:
    if given and not (given.isdecimal() and int(given) > 0):
        raise UsageError(f"{called} is {given!r}; it takes a number of {unit}: {called.like(example)}")
    return int(given) if given else None


def read_rate(given: str, called: Called) -> Rate | None:
    """Return a rate of requests, ``None`` for ``""``."""
    try:
        return Rate.of(given, str(called)) if given else None
    except ConfigError as error:
        raise UsageError(str(error)) from error


def read_hours(given: str, called: Called) -> float | None:
    """Return a number of hours, or a duration such as ``2d``, in hours; ``None`` for ``""``.

    Examples
    --------
    >>> read_hours("36", Called("hours")), read_hours("2d", Called("hours")), read_hours("", Called("hours"))
    (36.0, 48.0, None)
    """
    lasts = _duration(given, called, bare="hour", hint=f"such as {called.like('36', '2d')}")
    if lasts is None:
        return None
    return lasts.seconds / UNITS["hour"]


def read_duration(given: str, called: Called) -> Duration | None:
    """Return a duration such as ``7d``, ``12h`` or ``30min``, ``None`` for ``""``.

    Examples
    --------
    >>> str(read_duration("7d", Called("time"))), read_duration("1.5h", Called("time")).seconds
    ('7 days', 5400.0)
    >>> read_duration("", Called("time"))
    """
    return _duration(given, called, hint=f"such as {called.like('30min', '12h', '7d')}")


def read_size(given: str, called: Called) -> Size | None:
    """Return a size such as ``500MB``, ``2GB`` or ``1GiB``, ``None`` for ``""``.

    Examples
    --------
    >>> str(read_size("2gb", Called("size"))), read_size("1KiB", Called("size")).bytes
    ('2 GB', 1024)
    >>> read_size("", Called("size"))
    """
    try:
        return Size.of(given, str(called), hint=f"such as {called.like('500MB', '2GB', '1GiB')}") if given else None
    except ConfigError as error:
        raise UsageError(str(error)) from error


def _duration(given: str, called: Called, *, bare: str = "", hint: str) -> Duration | None:
    try:
        return Duration.of(given, str(called), bare=bare, hint=hint) if given else None
    except ConfigError as error:
        raise UsageError(str(error)) from error


def read_limit(given: str, called: Called) -> list[int]:
    """Return a limit of pages, or two for a limit that falls from the first to the second; ``[]`` for ``""``.

    Examples
    --------
    >>> read_limit("5-2", Called("per_domain")), read_limit("10", Called("per_domain"))
    ([5, 2], [10])
    """
    if not given:
        return []
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", given, re.ASCII)
    numbers = [int(each) for each in found.groups() if each] if found else [0]
    if min(numbers) < 1 or numbers[-1] > numbers[0]:
        raise UsageError(
            f"{called} is {given!r}; it takes a number of pages, or two for a falling limit: {called.like('10', '5-2')}"
        )
    return numbers


def caps_of(per_domain: Sequence[int], per_host: Sequence[int]) -> dict[str, Any]:
    """Return the parameters of a policy for a limit of pages per domain or per host.

    Examples
    --------
    >>> caps_of([5, 2], []), caps_of([], [10])
    ({'per_domain': 5, 'per_domain_least': 2}, {'per_domain': 10, 'per_host': True})
    """
    caps = dict(zip(("per_domain", "per_domain_least"), per_host or per_domain, strict=False))
    return caps | ({"per_host": True} if per_host else {})


def sitemaps_argument(ignored: str = "the sitemaps that robots.txt names") -> Any:
    """Declare an argument for whether lists for programs are read; ``ignored``: which are not."""
    return argument(read_yes, default="yes", option="no-sitemaps", switch="no", help=f"ignore {ignored}")


def _float_of(given: str) -> float:
    """Return a number, NaN if it is not one."""
    try:
        return float(given)
    except ValueError:
        return math.nan
