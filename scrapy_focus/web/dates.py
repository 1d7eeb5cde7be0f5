"""Reads when a document was published and changed, from the many kinds of metadata in use.

Dates on the web are wrong in every way: without a time zone, in the future, of the year 1, of the moment at which the
page was generated. So the common formats are read, impossible dates are ignored, and the next source is used instead.
The amount read of a page is bounded, and time is linear in it.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lxml.etree import _Element

_LONGEST = 100  # characters of a date
_SCRIPTS, _SCRIPT = 50, 1_000_000  # JSON-LD scripts of a page that are read; characters of each
_VALUES = 10_000  # of these that are read
_EARLIEST = 631_152_000.0  # 1990: before the web, nothing was published on it
_AHEAD = 86_400.0  # seconds that a date may be in the future: without a time zone, it may be in any
_DAY = timedelta(days=1) - timedelta(seconds=1)

_NUMBER = re.compile(r"\d{10}(?:\d{3})?\Z", re.ASCII)  # seconds or milliseconds
_DATE_ONLY = re.compile(r"\d{4}-?\d\d-?\d\d\Z", re.ASCII)
_SLASHES = re.compile(r"(\d{4})[/.](\d\d?)[/.](\d\d?)(?=\D|\Z)", re.ASCII)
_NAMED = re.compile(r"(?:(\d{1,2})\.? ([a-z]{3})[a-z]{0,6}|([a-z]{3})[a-z]{0,6}\.? (\d{1,2})),? (\d{4})\Z", re.ASCII)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()

_PUBLISHED = (  # names of meta elements, the most reliable first
    "article:published_time", "og:article:published_time", "og:published_time", "datepublished", "article.published",
    "parsely-pub-date", "sailthru.date", "citation_publication_date", "citation_online_date", "publication_date",
    "publish_date", "publish-date", "publishdate", "pubdate", "dc.date.issued", "dcterms.issued", "dc.date.created",
    "dcterms.created", "dc.date", "dcterms.date", "date",
)  # fmt: skip
_MODIFIED = (  # likewise
    "article:modified_time", "og:article:modified_time", "og:updated_time", "og:modified_time", "datemodified",
    "article.updated", "dcterms.modified", "dc.date.modified", "last-modified",
)  # fmt: skip
_ARTICLE_WORDS = ("article", "posting", "report")  # endings of the types of documents


class Said(NamedTuple):
    """A publication or modification time, as stated by the page."""

    at: float  # seconds since the epoch
    by: str  # the source: "json-ld", "meta", "time"


class Markup(NamedTuple):
    """The metadata of a page as a document."""

    is_article: bool = False  # whether it says that it is one document, and not a list of several
    published: Said | None = None  # None: missing or unreadable
    modified: Said | None = None  # the last change, likewise


def seconds_of(text: str) -> float | None:
    """Return the time of a date in a page or header, in seconds since the epoch; ``None`` if there is none.

    A date without a time means the end of its day; without a time zone, UTC. A date before 1990 is invalid.

    Examples
    --------
    >>> seconds_of("2026-01-05T10:00:00+01:00"), seconds_of("Mon, 05 Jan 2026 09:00:00 GMT")
    (1767603600.0, 1767603600.0)
    >>> seconds_of("Jan 5, 2026") == seconds_of("20260105") == seconds_of("2026-01-05T23:59:59")
    True
    >>> seconds_of("0001-01-01") is seconds_of("today") is None
    True
    """
    said = " ".join(text[: _LONGEST + 1].split())
    if not said or len(said) > _LONGEST:
        return None
    at = _number(said) if _NUMBER.match(said) else _moment(said)
    return at if at is not None and at >= _EARLIEST else None


def at_most(at: float, now: float) -> float | None:
    """Return a time stated at ``now``: less than a day in the future becomes ``now``, later ones ``None``."""
    return min(at, now) if at <= now + _AHEAD else None


def read_markup(root: _Element) -> Markup:
    """Return the metadata of a parsed page: from JSON-LD, or else its head, or else its ``time`` elements."""
    articles = list(_json_articles(root))
    names = dict(_metas(root))
    is_article = names.get("og:type", "").strip().lower() == "article" or "article:published_time" in names
    of_itself = articles[0] if len(articles) == 1 else {}
    published = _first(
        [
            *((text, "json-ld") for text in _dates_of(of_itself, "datePublished", "dateCreated", "dateModified")),
            *_named(names, _PUBLISHED),
            *((text, "time") for text in _times(root)),
        ]
    )
    modified = _first(
        [
            *((text, "json-ld") for text in _dates_of(of_itself, "dateModified")),
            *_named(names, _MODIFIED),
            *((text, "time") for text in _times_of_change(root)),
        ]
    )
    return Markup(is_article or len(articles) == 1, published, modified)


def _named(metas: dict[str, str], wanted: Iterable[str]) -> list[tuple[str, str]]:
    return [(metas[name], "meta") for name in wanted if name in metas]


def _first(said: Iterable[tuple[str, str]]) -> Said | None:
    """Return the first readable one of these dates."""
    return next((Said(at, by) for text, by in said if (at := seconds_of(text)) is not None), None)


def _number(said: str) -> float:
    return int(said) / (1000 if len(said) > 10 else 1)


def _moment(said: str) -> float | None:
    """Return the time of a date written in ISO 8601, as in mails, or in words; ``None`` otherwise."""
    when: datetime | None
    try:
        when = datetime.fromisoformat(said)
    except ValueError:
        when = _written(said)
    if when is None:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    if _DATE_ONLY.match(said) or not any(mark in said for mark in ":T"):
        when = when + _DAY if when.year < 9999 else when
    try:
        return when.timestamp()
    except (OverflowError, ValueError):
        return None


def _written(said: str) -> datetime | None:
    try:
        if found := _SLASHES.match(said):
            rest = said[found.end() :].strip()
            year, month, day = found.groups()
            return datetime.fromisoformat(f"{year}-{int(month):02}-{int(day):02} {rest}".strip())
        if (found := _NAMED.match(said.lower())) and (name := found[2] or found[3]) in _MONTHS:
            return datetime(int(found[5]), _MONTHS.index(name) + 1, int(found[1] or found[4]))
        return parsedate_to_datetime(said) if ":" in said else None
    except (ValueError, OverflowError, IndexError, TypeError):  # whatever the standard library raises
        return None


def _json_articles(root: _Element) -> Iterator[dict[str, Any]]:
    """Yield the page's own documents in JSON-LD, at the top level or in a graph."""
    scripts = 0
    for script in root.iter("script"):
        if "ld+json" not in (script.get("type") or "").lower() or scripts >= _SCRIPTS:
            continue
        scripts += 1
        text = script.text or ""
        if len(text) > _SCRIPT or "date" not in text:
            continue
        try:
            yield from _articles_in(json.loads(text, strict=False))
        except (ValueError, RecursionError):
            continue


def _articles_in(value: Any) -> Iterator[dict[str, Any]]:
    waiting, looked = [value], 0
    while waiting and looked < _VALUES:
        # In order, unless there are so many that taking the first would be slow.
        each = waiting.pop(0) if len(waiting) < 100 else waiting.pop()
        looked += 1
        if isinstance(each, list):
            waiting += each[: _VALUES - looked]
        elif isinstance(each, dict):
            if _is_article(each):
                yield each
            else:
                waiting += [each[key] for key in ("@graph", "mainEntity") if each.get(key) is not None]


def _is_article(value: dict[str, Any]) -> bool:
    types = value.get("@type")
    names = types if isinstance(types, list) else [types]
    return any(isinstance(name, str) and name.lower().endswith(_ARTICLE_WORDS) for name in names)


def _dates_of(article: dict[str, Any], *names: str) -> Iterator[str]:
    for name in names:
        said = article.get(name)
        said = said[0] if isinstance(said, list) and said else said
        if isinstance(said, str):
            yield said


def _metas(root: _Element) -> Iterator[tuple[str, str]]:
    """Yield names and contents of the meta elements in reverse order, so that a dict keeps the first of a name."""
    for element in reversed(list(root.iter("meta"))):
        name = element.get("property") or element.get("name") or element.get("itemprop") or ""
        content = element.get("content") or ""
        if name and content.strip():
            yield name.strip().lower(), content


def _times(root: _Element) -> list[str]:
    """Return the dates of ``time`` elements for the publication; none if they may belong to other documents."""
    times = _dated(root)
    published = [each for each in times if _says(each, "datepublished") or each.get("pubdate") is not None]
    if published:
        return _one_date(published)
    articles = list(islice(root.iter("article"), 2))
    if len(articles) == 1:
        times = _dated(articles[0])[:1] or times
    return _one_date(times)


def _dated(element: _Element) -> list[_Element]:
    return [each for each in element.iter("time") if each.get("datetime")]


def _times_of_change(root: _Element) -> list[str]:
    """Return the date of ``time`` elements for the last change; none if they differ."""
    return _one_date([each for each in root.iter("time") if each.get("datetime") and _says(each, "datemodified")])


def _one_date(times: Iterable[_Element]) -> list[str]:
    different = list(dict.fromkeys(str(each.get("datetime")) for each in times))
    return different if len(different) == 1 else []


def _says(time: _Element, what: str) -> bool:
    return what in (time.get("itemprop") or "").lower()
