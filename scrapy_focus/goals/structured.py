"""A goal for pages with structured data: recipes, events, jobs, products, data sets."""

from __future__ import annotations

import difflib
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.extras import require_extra
from scrapy_focus.core.printable import PARAGRAPH, brief, printable
from scrapy_focus.web.entities import SYNTAXES, Reading, may_have_entities, read_entities
from scrapy_focus.web.html import parsed
from scrapy_focus.web.schemaorg import plain_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Self

    from scrapy_focus.core.types import Outcome, Page
    from scrapy_focus.web.entities import Entity

ANY = "*"  # instead of types
TYPE_COUNT = "structured/type/"  # prefix of the counts of types


class StructuredDataGoal:
    """The reward is 1 for a page that describes a thing of a wanted type, as JSON-LD or microdata.

    Nested things count, and those in a ``@graph``. Failures and documents other than HTML earn nothing. Reading takes
    the package ``extruct``: ``pip install "scrapy-focus[structured]"``.

    Parameters
    ----------
    types
        Names of schema.org: ``Recipe``, ``schema:Recipe`` or ``https://schema.org/Recipe``, all equivalent; for other
        vocabularies, full addresses. Without any, a page earns 1 if it has enough facts, whatever they are about.
    syntaxes
        The syntaxes to read: ``"json-ld"``, ``"microdata"`` or both.
    least
        Facts that a page needs if no types are given: values that are not things themselves. Many pages today have
        some, only to name their site; the plugin of Anthelion requires 6.

    Raises
    ------
    ConfigError
        If a type, not given by its full address, is not a name of schema.org; if a syntax does not exist, ``least``
        is not a whole number from 1, or ``extruct`` is not installed.

    Notes
    -----
    Types are compared by name; the hierarchy of types is not used. So to find events, name ``MusicEvent``,
    ``SportsEvent`` and others besides ``Event``. Names that schema.org added since 2022 are not known, either: give
    their full address.

    A page without any sign of markup costs a search through its text. Others are read only once, and in a live crawl
    from the tree that Scrapy has parsed.
    """

    heads_tell = False
    #: The noun for what is counted.
    noun = "pages with structured data"

    def __init__(self, types: Collection[str] = (), syntaxes: Collection[str] = SYNTAXES, least: int = 1) -> None:
        _check_parameters(types, syntaxes, least)
        require_extra("reading structured data", "structured", "extruct")
        self.given = tuple(types)
        self.names = tuple(dict.fromkeys(map(_checked, types)))
        wanted = set(map(_syntax, syntaxes))
        self.syntaxes = tuple(syntax for syntax in SYNTAXES if syntax in wanted)
        self.least = least
        self._wanted = frozenset(self.names)
        self._readings: WeakKeyDictionary[Any, Reading] = WeakKeyDictionary()  # by the root of the page

    @classmethod
    def of(cls, words: Collection[str], name: str) -> Self:
        """Return the goal for a setting or option of this name: its words are types, or ``*`` for any.

        Raises
        ------
        ConfigError
            If there are no words, or they are not types; the message names the setting.
        """
        types = [word.strip() for word in words]
        if not types or (ANY in types and len(types) > 1):
            raise ConfigError(
                f"{name} is {brief(list(words))}; it takes types of schema.org, such as ['Recipe', 'Event'], or "
                f"{ANY!r} alone for any"
            )
        try:
            return cls(() if types == [ANY] else types)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from error

    def __call__(self, outcome: Outcome) -> float:
        page = self.page_of(outcome)
        return float(page is not None and self.finds(self.reading(page)))

    def page_of(self, outcome: Outcome) -> Page | None:
        """Return the page of an outcome if it can be read, ``None`` for a failure or anything but HTML."""
        fetched = outcome.status is not None and 200 <= outcome.status < 300 and outcome.is_html
        return outcome.page if fetched else None

    def reading(self, page: Page) -> Reading:
        """Return what a page describes; uses its tree if it has one as ``root``, and parses its text otherwise."""
        source = page.text
        if not may_have_entities(source, self.syntaxes):
            return Reading()
        root = getattr(page, "root", None)
        if root is None:
            root = parsed(source)
        if root is None:
            return Reading()
        found = self._readings.get(root)
        if found is None:
            found = self._readings[root] = read_entities(root, source, page.url, syntaxes=self.syntaxes)
        return found

    def finds(self, reading: Reading) -> bool:
        """Whether a page with this reading earns a reward."""
        return bool(self.wanted(reading)) if self.names else reading.facts >= self.least

    def wanted(self, reading: Reading) -> tuple[Entity, ...]:
        """Return the things on a page that are of a wanted type; all of them if no types are wanted."""
        if not self.names:
            return reading.entities
        return tuple(entity for entity in reading.entities if not self._wanted.isdisjoint(entity.types))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_readings": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _readings=WeakKeyDictionary())

    def __repr__(self) -> str:
        what = f"pages with {', '.join(self.names)}" if self.names else f"pages with {self.least} facts or more"
        return printable(f"{what} in {' or '.join(self.syntaxes)}", PARAGRAPH)


def _check_parameters(types: Collection[str], syntaxes: Collection[str], least: int) -> None:
    if isinstance(types, str) or not all(isinstance(each, str) for each in types):
        raise ConfigError(f"types is {brief(types)}; it takes a list of types, such as ['Recipe', 'Event']")
    if isinstance(syntaxes, str) or not syntaxes:
        raise ConfigError(f"syntaxes is {brief(syntaxes)}; it takes a list with any of {', '.join(SYNTAXES)}")
    if isinstance(least, bool) or not isinstance(least, int) or least < 1:
        raise ConfigError(f"least is {brief(least)}; it takes a number of facts from 1")


def _checked(name: str) -> str:
    """Return the name of a type, in the form of :attr:`~scrapy_focus.web.entities.Entity.types`."""
    plain = plain_name(name)
    if not plain:
        raise ConfigError(f"one of the types is {brief(name)}, which is not a name; remove it, or write, say, Recipe")
    if "://" in name:
        return plain
    names = _names()
    if plain in names:
        return plain
    near = {each.lower(): each for each in names}
    close = difflib.get_close_matches(plain.lower(), near, n=1, cutoff=0.6)
    meant = f"did you mean {near[close[0]]}? Newer" if close else "newer"
    raise ConfigError(
        f"{brief(name)} is not a type of schema.org; {meant} types, and those of other vocabularies, need their "
        "full address, such as https://schema.org/Recipe"
    )


def _syntax(name: str) -> str:
    if name in SYNTAXES:
        return name
    close = difflib.get_close_matches(str(name).lower(), SYNTAXES, n=1, cutoff=0.4)
    meant = f"did you mean {close[0]}? It" if close else "it"
    raise ConfigError(f"there is no syntax {brief(name)}; {meant} is one of {', '.join(SYNTAXES)}")


@cache
def _names() -> frozenset[str]:
    """Return the types of schema.org as of the end of 2021. Takes a tenth of a second."""
    from rdflib.namespace import SDO

    return frozenset(name for name in SDO.__annotations__ if name[:1].isupper()) | {"3DModel"}


def types_seen(counts: Mapping[str, float]) -> dict[str, int]:
    """Return how many entities of each type were seen, from the counts of a crawl."""
    return {name.removeprefix(TYPE_COUNT): int(n) for name, n in counts.items() if name.startswith(TYPE_COUNT) and n}
