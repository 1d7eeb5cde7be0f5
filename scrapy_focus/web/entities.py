"""Reads the structured data of a page: JSON-LD and microdata.

``extruct`` reads both, from the tree that is already parsed. This module adds limits: on what is read at all, so that
no page takes more than a fraction of a second, and on what is kept. No content of a page raises an error.
"""

from __future__ import annotations

from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin

from scrapy_focus.web.microdata import read_items
from scrapy_focus.web.schemaorg import Vocabulary, plain_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from lxml.etree import _Element

#: The syntaxes that can be read.
SYNTAXES = ("json-ld", "microdata")

_PAGE = 10_000_000  # characters of a page; a longer one is not read
_SCRIPTS = 1_000  # of a page that are read ...
_SCRIPTED = 2_000_000  # ... and characters of them
_ENTITIES = 5_000  # of a page
_FACTS = 50_000  # of a page
_DEPTH = 32  # nested objects and lists
_TYPES = 20  # of an entity
_NAME = 500  # characters of the name of a property
_TEXT = 10_000  # characters of a value
_LARGEST = 1 << 63  # of whole numbers, as in other languages
_KEYWORDS = frozenset(("@context", "@type", "@language", "@index", "@version"))


class Entity(NamedTuple):
    """A thing that a page describes.

    ``types`` are names of schema.org (``Recipe``), and full addresses for other vocabularies. ``values`` is the thing
    as written in JSON-LD, without its context, whatever the syntax was: properties with a text, a number, another
    thing, or a list of them; ``@type`` and ``@id``, if it has them. It can be written as JSON. A thing that is the
    value of several properties is complete in the first of them. Texts are cut after 10,000 characters.
    """

    types: tuple[str, ...]
    values: dict[str, Any]
    syntax: str


class Reading(NamedTuple):
    """The structured data of a page.

    ``entities`` are in the order of the page, JSON-LD first, each before its nested ones. A thing without a type is not
    an entity, but its facts count. ``facts`` are values that are not objects: non-empty texts, numbers, booleans,
    references. ``broken`` is the number of unreadable scripts, items and values, and ``cut`` is true if a limit was
    exceeded.
    """

    entities: tuple[Entity, ...] = ()
    facts: int = 0
    broken: int = 0
    cut: bool = False


def may_have_entities(source: str, syntaxes: Collection[str] = SYNTAXES) -> bool:
    """Whether a page may describe anything, judging by its source; takes a fraction of the time of parsing."""
    return bool(_likely(source, syntaxes))


def _likely(source: str, syntaxes: Collection[str]) -> list[str]:
    """Return the syntaxes that a page may contain."""
    lowered = source.lower()
    signs = {"json-ld": ("ld+json", "ld&#"), "microdata": ("itemscope",)}  # some frameworks write &#x2B; for +
    return [syntax for syntax in syntaxes if any(sign in lowered for sign in signs[syntax])]


def read_entities(root: _Element, source: str, url: str, *, syntaxes: Collection[str] = SYNTAXES) -> Reading:
    """Return the structured data of a page.

    Parameters
    ----------
    root
        The page as parsed by ``lxml.html``; it is not changed.
    source
        The page as text. A page without any sign of entities is not examined further.
    url
        The URL of the page, to which relative URLs in microdata are joined, after its ``<base>``.
    syntaxes
        Which of ``"json-ld"`` and ``"microdata"`` to read.

    Raises
    ------
    ImportError
        If ``extruct`` is not installed, and there is anything to read.
    """
    given = _likely(source, syntaxes)
    if not given:
        return Reading()
    if len(source) > _PAGE:
        return Reading(cut=True)
    reader = _Reader()
    if "json-ld" in given:
        reader.read_scripts(root)
    if "microdata" in given:
        reader.read_microdata(root, _base(root, url))
    return Reading(tuple(reader.entities), reader.facts, reader.broken, reader.cut)


def _base(root: _Element, url: str) -> str:
    base = root.find("head/base[@href]")
    try:
        return urljoin(url, base.get("href").strip()) if base is not None else url
    except ValueError:
        return url


class _Reader:
    """Collects the content of a page's blocks."""

    def __init__(self) -> None:
        self.entities: list[Entity] = []
        self.facts = 0
        self.broken = 0
        self.cut = False
        self._known: dict[int, dict[str, Any]] = {}  # result for each item, by its id; the items are kept alive

    def read_scripts(self, root: _Element) -> None:
        """Read the JSON-LD of a page."""
        from extruct.jsonld import JsonLdExtractor

        extractor = JsonLdExtractor()
        scripts = (each for each in root.iter("script") if each.get("type") == "application/ld+json")
        room = _SCRIPTED
        for script in islice(scripts, _SCRIPTS):
            length = sum(map(len, script.itertext()))
            if length > room:
                self.cut = True
                continue
            room -= length
            try:
                found = extractor.extract_items(script)
            except Exception:  # invalid JSON, or nested too deeply, or whatever a library raises for a site's data
                self.broken += 1
                continue
            for each in found:
                if isinstance(each, (dict, list)):
                    self._take(each, Vocabulary())
        self.cut |= next(scripts, None) is not None

    def read_microdata(self, root: _Element, base: str) -> None:
        """Read the microdata of a page."""
        items, broken, cut = read_items(root, base)
        self.broken += broken
        self.cut |= cut
        for item in items:
            self._item(item, 0)

    def _take(self, value: Any, vocabulary: Vocabulary, depth: int = 0) -> Any:
        """Collect a value of JSON-LD, and return it within the limits; ``None`` if nothing is left."""
        if not isinstance(value, (dict, list)):
            return self._fact(value)
        if depth >= _DEPTH:
            self.cut = True
            return None
        if isinstance(value, list):
            found = [self._take(each, vocabulary, depth + 1) for each in self._some(value)]
            return [each for each in found if each is not None] or None
        return self._take_object(value, vocabulary, depth)

    def _take_object(self, value: dict[str, Any], vocabulary: Vocabulary, depth: int) -> dict[str, Any]:
        if "@context" in value:
            vocabulary = vocabulary.within(value["@context"])
        types = [vocabulary.name(name) for name in _texts(value.get("@type"))]
        values = self._entity(types, "json-ld")
        for name, each in self._some(value.items()):
            if name in _KEYWORDS:
                continue
            # An identifier alone is a reference to a thing; with other properties, it is the name of these.
            if name == "@id" and len(value) > 1:
                kept = _bounded(each)
            else:
                kept = self._take(each, vocabulary, depth + 1)
            if kept is not None:
                values[_property(name)] = kept
        return values

    def _item(self, item: Any, depth: int) -> Any:
        """Collect an item of microdata, and return it as written in JSON-LD."""
        if not isinstance(item, dict):
            return self._fact(item)
        if id(item) in self._known:  # a value of several properties; complete in each, it would exceed all limits
            known = self._known[id(item)]
            return {name: known[name] for name in ("@type", "@id") if name in known}
        if depth >= _DEPTH:
            self.cut = True
            return None
        values = self._known[id(item)] = self._entity(map(plain_name, _texts(item.get("type"))), "microdata")
        if "id" in item:
            values["@id"] = _bounded(item["id"])
        if item.get("value"):
            values["@value"] = _bounded(item["value"])
        for name, given in self._some(item.get("properties", {}).items()):
            kept = self._items(given, depth + 1)
            if kept is not None:
                values[_property(name)] = kept
        return values

    def _items(self, given: Any, depth: int) -> Any:
        """Return the values of a property, single or as a list as given; ``None`` if nothing is left."""
        if not isinstance(given, list):
            return self._item(given, depth)
        found = [self._item(each, depth) for each in given]
        return [each for each in found if each is not None] or None

    def _entity(self, types: Any, syntax: str) -> dict[str, Any]:
        """Collect an entity, if it has a type, and return the dict for its values."""
        names = tuple(dict.fromkeys(_clean(name) for name in types if name))
        if not names:
            return {}
        values: dict[str, Any] = {"@type": names[0] if len(names) == 1 else list(names)}
        if len(self.entities) < _ENTITIES:
            self.entities.append(Entity(names, values, syntax))
        else:
            self.cut = True
        return values

    def _fact(self, value: Any) -> Any:
        if value is None or value == "":
            return None
        if self.facts >= _FACTS:
            self.cut = True
            return None
        self.facts += 1
        return _bounded(value)

    def _some(self, values: Any) -> Iterator[Any]:
        """Yield values while the limits of facts and entities allow."""
        for value in values:
            if self.facts >= _FACTS or len(self.entities) >= _ENTITIES:
                self.cut = True
                return
            yield value


def _property(name: str) -> str:
    return _clean(plain_name(name) if ":" in name else name[:_NAME])


def _texts(value: Any) -> list[str]:
    """Return the first twenty texts in a value that may be a text or a list."""
    given = value[:_TYPES] if isinstance(value, list) else [value]
    return [text for text in given if isinstance(text, str) and text.strip()]


def _bounded(value: Any) -> Any:
    """Return a plain value that any program can read as JSON."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_LARGEST <= value < _LARGEST else str(value)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    return _clean(value[:_TEXT]) if isinstance(value, str) else None


def _clean(text: str) -> str:
    """Return a text without lone surrogates, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
