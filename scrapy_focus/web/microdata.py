"""Reads microdata with ``extruct``, in bounded time.

The time that ``extruct`` takes is quadratic in some pages: it copies and cleans the content of each property, and
compares each property of an item with those of nested items. So the work is estimated first, and if it is too much,
only the types of items are read.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from lxml import etree

if TYPE_CHECKING:
    from lxml.etree import _Element

_MARKED = 5_000  # elements with microdata
_NESTED = 32  # items nested in one another, or referring to one another
_DEEPEST = 256  # nested elements: copies are made by recursion
_WORK = 300_000  # about as many microseconds; the following costs are in the same unit
_PROPERTY = 10  # to read one, without its content
_REFERENCE = 5  # to follow one to an element
_LOOKED = 1 / 50  # to check a node for marks
_NAMED = 10_000  # items whose types at least are read
_PLAIN = frozenset("a area audio data embed iframe img link meta meter object source time track video".split())

_marked = etree.XPath(f"(descendant-or-self::*[@itemscope or @itemprop or @itemref])[position() <= {_MARKED + 1}]")
_scopes = etree.XPath(f"(descendant-or-self::*[@itemscope])[position() <= {_NAMED}]")
_properties = etree.XPath("descendant-or-self::*[@itemprop]")
_dropped = " + ".join(
    f"count(descendant::{kind})"
    for kind in ("script", "style", "link", "meta", "comment()", "processing-instruction()")
)
_weight = etree.XPath(  # of a cleaned copy: a removed element passes its tail to the text before it, which grows
    "1 + count(descendant::node()) + count(descendant-or-self::*/@*) div 3 + string-length(.) div 20 + "
    f"({_dropped}) * string-length(.) div 300"
)
_inner = etree.XPath("count(descendant::*[@itemprop])")
_named = etree.XPath("id($name)[1]")
_too_deep = etree.XPath("boolean(" + "/*" * (_DEEPEST + 1) + ")")


def read_items(root: _Element, base: str) -> tuple[list[dict[str, Any]], int, bool]:
    """Return the top-level items of a page, the number of unreadable ones, and whether only types were read.

    Only the types of all items are read if the rest would be too much. Items are as in ``extruct``: with ``type``,
    ``id``, ``properties`` or ``value``. The tree is not changed.
    """
    if is_too_much(root):
        return types_of(root), 0, True
    extractor = _extractor()()
    try:
        return extractor.extract_items(root, base), extractor.broken, False
    except _TooDeep:
        return types_of(root), extractor.broken, True
    except Exception:  # whatever a library raises for a site's data
        return types_of(root), extractor.broken + 1, False


def types_of(root: _Element) -> list[dict[str, Any]]:
    """Return the items of a page in document order, including nested ones, with types only; linear in the page."""
    return [{"type": (scope.get("itemtype") or "").split()} for scope in _scopes(root)]


def is_too_much(root: _Element) -> bool:
    """Whether reading the microdata of a page would take more than some tenths of a second."""
    if _too_deep(root):
        return True
    marked = _marked(root)
    if len(marked) > _MARKED:
        return True
    refers = [element for element in marked if element.get("itemref")]
    if not refers and len(marked) * (_weight(root) + _PROPERTY) < _WORK:
        return False  # however they are nested
    work = 0.0
    properties: dict[_Element, float] = {}  # cost of each
    for element in marked:
        work += _work_of(element, properties)
        if work > _WORK:
            return True
    return _refers_too_much(refers, properties, work)


def _work_of(element: _Element, properties: dict[_Element, float]) -> float:
    """Return the cost of a marked element; one without properties of its own is a property, and is noted."""
    if element.get("itemscope") is not None:
        inner: float = _inner(element)
        if inner:
            return inner * inner / 200 + _copied(element)
    work: float = _PROPERTY
    if element.tag not in _PLAIN:
        work += _copied(element)
    properties[element] = work
    return work


def _refers_too_much(refers: list[_Element], properties: dict[_Element, float], work: float) -> bool:
    """Whether references cost more than the remaining work."""
    costs: dict[str, float] = {}  # of a reference to an element
    for element in refers:
        for name in element.get("itemref").split():
            if name not in costs:
                costs[name] = _REFERENCE + sum(_cost(target, properties) for target in _target(element, name))
            work += costs[name]
            if work > _WORK:
                return True
    return False


def _copied(element: _Element) -> float:
    """Return the cost of copying and cleaning an element."""
    if len(element):
        return float(_weight(element))
    return 1 + len(element.attrib) / 3 + len(element.text or "") / 20


def _target(element: _Element, name: str) -> list[_Element]:
    try:
        return list(_named(element, name=name))
    except ValueError:  # characters that XML does not allow
        return []


def _cost(target: _Element, properties: dict[_Element, float]) -> float:
    """Return the cost of reading the properties in an element once more."""
    found = sum(properties.get(each, _PROPERTY) + _PROPERTY for each in _properties(target))
    return found + _copied(target) * _LOOKED


class _TooDeep(Exception):
    """Raised if items refer to one another almost endlessly."""


@cache
def _extractor() -> Any:
    """Return a class that reads microdata like ``extruct``, but skips unreadable values.

    It is imported here, as that takes a quarter of a second and 26 MB.
    """
    from extruct.w3cmicrodata import MicrodataExtractor

    class Extractor(MicrodataExtractor):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.broken = 0
            self._depth = 0

        def _extract_item(self, *args: Any, **kwargs: Any) -> Any:
            # a RecursionError within an XPath of lxml leaves it locked, and its next use would hang forever
            if self._depth >= _NESTED:
                raise _TooDeep
            self._depth += 1
            try:
                return super()._extract_item(*args, **kwargs)
            finally:
                self._depth -= 1

        def _extract_property_value(self, node: _Element, *args: Any, **kwargs: Any) -> Any:
            try:
                return super()._extract_property_value(node, *args, **kwargs)
            except ValueError:  # an invalid URL
                self.broken += 1
                return ""

    return Extractor
