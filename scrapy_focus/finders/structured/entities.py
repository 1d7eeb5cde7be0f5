"""Read the list of a search for structured data: a line for each entity, with its values.

Types and values come from pages, and the list may be from an unknown source: neither is trusted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.finders.kit.records.contents import NO_CONTENTS, Contents, contents_of
from scrapy_focus.finders.kit.records.folder_names import ENTITIES
from scrapy_focus.finders.kit.records.lines import lines_of, number_in, share_in, text_in
from scrapy_focus.web.url_parts import domain_at, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from scrapy_focus.finders.kit.records.notes import Answer

_NAMES = ("name", "headline", "title", "alternateName", "legalName", "@value", "text", "caption", "description")
_ADDRESSES = ("identifier", "@id", "url")
_SHORT = 100  # characters of a value that is used as a name
_LOOKED_AT = 50  # values of an entity that are read for a name
_DEPTH = 4  # nested lists and entities that are read for a name
_TYPES = 20  # types of an entity that are counted
_LONGEST = 500  # characters of a name


class FoundEntity(NamedTuple):
    """An entity that a page describes."""

    url: str  # of the page
    number: int  # among the entities of its page, from 1
    name: str  # from its values
    types: tuple[str, ...]
    syntax: str
    values: int  # the number of its values, including those of nested entities
    host: str  # with the port
    page: str  # URL of the page with the link, "" for a seed
    anchor: str  # text of the link
    why: str  # why its page was fetched
    at: str  # ISO 8601
    relevance: float | None = None  # of its page to the topic, from 0 to 1; None: not judged
    contents: Contents = NO_CONTENTS  # of its page


class HostSum(NamedTuple):
    """The results of a host."""

    host: str  # with the port
    domain: str
    pages: int  # pages read
    with_entities: int  # pages with entities
    entities: int
    types: dict[str, int]  # number of entities of each type; one of several types counts for each


def read_entities(folder: Path) -> list[FoundEntity]:
    """Return the entities of a folder in the order in which they were found; linear in the lines of its list.

    Raises
    ------
    ConfigError
        If a line is malformed, except a last one that is being written.
    StorageError
        If it cannot be read.
    """
    found: dict[tuple[str, int], FoundEntity] = {}
    for line in lines_of(folder / ENTITIES):
        url, number = text_in(line, "url"), number_in(line, "number")
        types, values = line.get("types"), line.get("values")
        if not isinstance(types, list):
            types = []
        found[url, number] = FoundEntity(
            url=url, number=number, name=name_of(values),
            types=tuple(each for each in types[:_TYPES] if isinstance(each, str)),
            syntax=text_in(line, "syntax"), values=n_values(values), host=parts_of(url)[0], page=text_in(line, "page"),
            anchor=text_in(line, "anchor"), why=text_in(line, "why"), at=text_in(line, "fetched_at"),
            relevance=share_in(line, "relevance"),
            contents=contents_of(line),
        )  # fmt: skip
    return [*found.values()]


def name_of(values: Any) -> str:
    """Return the name of an entity from its values, or else its first short value and property; ``""`` for none.

    Examples
    --------
    >>> [name_of(said) for said in ({"headline": [{"@value": "Soup"}]}, {"url": "/s", "text": "Stir."}, {"url": "/s"})]
    ['Soup', 'Stir.', '/s']
    >>> name_of({"@type": "Rating", "ratingValue": 4.5, "url": "/7"}), name_of({"@type": "Rating"})
    ('ratingValue: 4.5', '')
    """
    if not isinstance(values, dict):
        return ""
    if called := next(filter(None, (_said(values.get(name)) for name in _NAMES)), ""):
        return called
    for name, value in islice(values.items(), _LOOKED_AT):
        if name.startswith("@") or name in _ADDRESSES:
            continue
        short = str(value) if isinstance(value, (int, float)) else _said(value)
        if 0 < len(short) <= _SHORT:
            return f"{name}: {short}"[:_LONGEST]
    return next(filter(None, (_said(values.get(name)) for name in _ADDRESSES)), "")


def _said(value: Any) -> str:
    """Return the text of a value, or the first text in it, in one line; ``""`` if there is none."""
    for _ in range(_DEPTH):
        if isinstance(value, list) and value:
            value = value[0]
        elif isinstance(value, dict):
            value = value.get("@value", value.get("name"))
    return " ".join(value[:_LONGEST].split()) if isinstance(value, str) else ""


def n_values(values: Any) -> int:
    """Return the number of values, counting those in lists and entities one by one, without types.

    Examples
    --------
    >>> n_values({"@type": "Recipe", "name": "Soup", "keywords": ["a", "b"], "author": {"name": "Ann", "knows": {}}})
    4
    """
    n, rest = 0, [values]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            rest.extend(each for name, each in value.items() if name != "@type")
        elif isinstance(value, list):
            rest.extend(value)
        else:
            n += 1
    return n


def types_of(entities: Iterable[FoundEntity]) -> Counter[str]:
    """Return the number of entities of each type; one of several types counts for each."""
    return Counter(name for entity in entities for name in set(entity.types))


def host_sums(entities: Sequence[FoundEntity], answers: Iterable[Answer]) -> list[HostSum]:
    """Return the results of each host with a page that was read, the most entities first."""
    read = {answer.moved_to or answer.url for answer in answers if _is_page(answer)}
    by_host: dict[str, list[FoundEntity]] = defaultdict(list)
    for entity in entities:
        by_host[entity.host].append(entity)
    pages = Counter(parts_of(url)[0] for url in read | {entity.url for entity in entities})
    sums = []
    for host, n_pages in pages.items():
        alike = by_host.get(host, [])
        urls = {entity.url for entity in alike}
        sums.append(HostSum(host, domain_at(host), n_pages, len(urls), len(alike), dict(types_of(alike))))
    return sorted(sums, key=lambda each: (-each.entities, -each.pages, each.host))


def _is_page(answer: Answer) -> bool:
    is_read = not answer.error and answer.status is not None and 200 <= answer.status < 300
    return is_read and answer.method == "GET" and "html" in answer.mime
