"""Reads the arguments of spiders, and says what is wrong with them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.exceptions import UsageError

from scrapy_focus.core.budget import Rate
from scrapy_focus.core.durations import UNITS, Duration
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.files import symbolic_link, try_to_write
from scrapy_focus.core.printable import printable, reason_of
from scrapy_focus.finders.kit.records.entities import ENTITIES
from scrapy_focus.finders.kit.records.listed import FILES, MANIFEST, SKIPPED
from scrapy_focus.finders.kit.records.news import NEWS
from scrapy_focus.finders.kit.records.pages import PAGES
from scrapy_focus.topic.expansion import read_keywords
from scrapy_focus.web.linkurls import hide_credentials

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def refuse_unknown(given: Iterable[str], known: str) -> None:
    """Raise ``UsageError`` for an argument that a spider does not know.

    Those with an underscore in front are for whoever starts the spider, such as Scrapyd's ``_job``.
    """
    unknown = [name for name in given if not name.startswith("_")]
    if unknown:
        raise UsageError(f"there is no argument {', '.join(unknown)}; there are {known}")


def seeds_of(given: str | Sequence[str]) -> list[str]:
    """Return the URLs in a file, one on each line, ``#`` before comments; or those that are given, separated by commas,
    or in a list.

    Raises
    ------
    UsageError
        If there is none, or one is no URL.
    """
    words, place = (given.split(",") if isinstance(given, str) else given), "seeds"
    if isinstance(given, str) and given and "://" not in given:
        try:
            words, place = Path(given).read_text(encoding="utf-8-sig").splitlines(), given
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise UsageError(
                f"the file {given} cannot be read ({reason}): seeds takes URLs with http:// or https://, or a file of "
                "them"
            ) from error
    urls = [url for word in words if (url := re.sub(r"(^|\s)#.*", "", word).strip())]
    for url in urls:
        if not (url.startswith(("http://", "https://")) and _host(url)):
            raise UsageError(
                f"{hide_credentials(repr(url))} in {place} is no URL; write it as https://example.org/page"
            )
    if not urls:
        raise UsageError("where to start? Give some pages: -a seeds=FILE, or -a seeds=https://example.org/,...")
    return list(dict.fromkeys(urls))


def keywords_of(given: str) -> list[str]:
    """Return the keywords in a file, one on each line, or those that are given, separated by commas; ``[]`` for ``""``.

    Raises
    ------
    UsageError
        If there is none, or the file cannot be read.
    """
    if given and "," not in given and (Path(given).is_file() or "/" in given or Path(given).suffix):
        try:
            return read_keywords(given)
        except ConfigError as error:
            raise UsageError(str(error)) from error
    found = [word.strip() for word in given.split(",") if word.strip()]
    if given and not found:
        raise UsageError(f"keywords is {given!r}; it takes words separated by commas, or a file with one on each line")
    return found


def words_in(given: str, name: str, example: str) -> list[str]:
    """Return words that are separated by commas, without empty ones; ``UsageError`` if there is no other."""
    found = [word for each in given.split(",") if (word := each.strip())]
    if not found:
        raise UsageError(f"{name} is {given!r}; it takes words separated by commas: -a {name}={example}")
    return found


def budget_of(given: str) -> int | None:
    """Return a number of requests, ``None`` for ``""``; ``UsageError`` if it is none."""
    return number_of(given, "budget", "requests", example=1000)


def frequency_of(given: str) -> float | None:
    """Return a share of pages, ``None`` for ``""``; ``UsageError`` if it is none.

    Examples
    --------
    >>> frequency_of("0.03"), frequency_of("")
    (0.03, None)
    """
    if not given:
        return None
    share = _number(given)
    if not 0 < share < 1:
        raise UsageError(
            f"frequency is {given!r}; it takes the share of all pages that are on the topic, above 0 and below 1: "
            "-a frequency=0.03"
        )
    return share


def number_of(given: str, name: str, unit: str, *, example: int) -> int | None:
    """Return a number from 1, ``None`` for ``""``; ``UsageError`` if it is none."""
    if given and not (given.isdecimal() and int(given) > 0):
        raise UsageError(f"{name} is {given!r}; it takes a number of {unit}: -a {name}={example}")
    return int(given) if given else None


def rate_of(given: str) -> Rate | None:
    """Return a rate of requests, ``None`` for ``""``; ``UsageError`` if it cannot be meant."""
    try:
        return Rate.of(given, "rate") if given else None
    except ConfigError as error:
        raise UsageError(str(error)) from error


def hours_of(given: str, *, default: float = 24.0) -> float:
    """Return a number of hours, or a time such as ``2d``, in hours, the default for ``""``; ``UsageError`` if none.

    Examples
    --------
    >>> hours_of("36"), hours_of("2d"), hours_of("")
    (36.0, 48.0, 24.0)
    """
    lasts = _duration(given, "hours", bare="hour", hint="such as -a hours=36, -a hours=2d")
    return default if lasts is None else lasts.seconds / UNITS["hour"]


def duration_of(given: str, name: str = "duration") -> Duration | None:
    """Return a time such as ``7d``, ``12h`` or ``30min``, ``None`` for ``""``; ``UsageError`` if it is none.

    Examples
    --------
    >>> str(duration_of("7d")), duration_of("1.5h").seconds, duration_of("")
    ('7 days', 5400.0, None)
    """
    return _duration(given, name, hint=f"such as -a {name}=30min, -a {name}=12h, -a {name}=7d")


def _duration(given: str, name: str, *, bare: str = "", hint: str) -> Duration | None:
    try:
        return Duration.of(given, name, bare=bare, hint=hint) if given else None
    except ConfigError as error:
        raise UsageError(str(error)) from error


def caps_of(per_domain: str, per_host: str = "") -> dict[str, int]:
    """Return the parameters of a policy for a limit of pages of each domain, or of each host; ``UsageError`` if none.

    Examples
    --------
    >>> caps_of("5-2"), caps_of("", "10")
    ({'per_domain': 5, 'per_domain_least': 2}, {'per_domain': 10, 'per_host': True})
    """
    if per_domain and per_host:
        raise UsageError("per_domain and per_host are two ways to count pages; give one of them")
    given, name = (per_host, "per_host") if per_host else (per_domain, "per_domain")
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", given, re.ASCII)
    numbers = [int(number) for number in found.groups() if number] if found else [0]
    if given and (min(numbers) < 1 or numbers[-1] > numbers[0]):
        raise UsageError(
            f"{name} is {given!r}; it takes a number of pages, or two for a limit that falls: -a {name}=10, "
            f"-a {name}=5-2"
        )
    caps = dict(zip(("per_domain", "per_domain_least"), numbers, strict=False)) if given else {}
    return caps | ({"per_host": True} if per_host else {})


_WRITTEN = (FILES, ".focus", MANIFEST, SKIPPED, ENTITIES, NEWS, PAGES)  # in the folder of what is found


def try_out(path: Path, out: Path | None = None) -> None:
    """Make the folder of what a crawl finds, and see whether a file can be written there.

    Parameters
    ----------
    path
        The file.
    out
        The folder, where that is what the user named.

    Raises
    ------
    UsageError
        If it cannot be written, or a symbolic link would lead the crawl out of the folder.
    """
    named = str(out or path)
    try:
        link = symbolic_link(path, *(path.with_name(name) for name in _WRITTEN))
        if link is None:
            try_to_write(path)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or reason_of(error)
        raise UsageError(f"cannot write to -a out={printable(named)}: {reason}; name another one") from error
    if link is not None:
        raise UsageError(
            f"cannot write to -a out={printable(named)}: {printable(str(link))} is a symbolic link, which may lead out "
            "of it; remove that, or name another one"
        )


def _number(given: str) -> float:
    """Return a number, NaN for what is none."""
    try:
        return float(given)
    except ValueError:
        return math.nan


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
