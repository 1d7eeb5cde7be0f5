"""Parameters of classes, each declared once: its purpose, its default, and its valid values.

The constructor, its signature, the check, the error and the section "Parameters" of the docstring follow from the
declaration::

    @configurable
    class Sections(Bandit):
        alpha: float = parameter("Weight of exploration.", default=1.0, at_least=0)

Values computed from parameters belong in ``__attrs_post_init__``, and so do checks of several parameters at once. An
annotated attribute that is not a parameter is ``attrs.field(init=False)`` for type checkers.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import attrs

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import VALUE, brief

T = TypeVar("T")

_LARGEST = 1 << 62  # of a number
_WIDTH = 96  # characters of a line of documentation
_SECTION = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)  # the title of that section in a docstring


class Kind(NamedTuple):
    """The valid values of a parameter."""

    said: str
    fits: Callable[[Any], bool]

    def or_none(self) -> Kind:
        """The same, or ``None``."""
        return Kind(f"{self.said}, or None", lambda value: value is None or self.fits(value))


class Bounds(NamedTuple):
    """The bounds of a number; ``None`` for no bound."""

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None

    def of(self, kind: Kind) -> Kind:
        """Return a kind of numbers within these bounds."""
        return Kind(f"{kind.said}{self}", lambda value: kind.fits(value) and self.hold(value))

    def hold(self, value: float) -> bool:
        """Whether a number is within the bounds."""
        return (
            (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.below is None or value < self.below)
            and (self.at_most is None or value <= self.at_most)
        )

    def __str__(self) -> str:
        lower = self.above if self.at_least is None else self.at_least
        upper = self.below if self.at_most is None else self.at_most
        if lower is not None and upper is not None:
            begin, end = "(" if self.at_least is None else "[", ")" if self.at_most is None else "]"
            return f" in {begin}{lower}, {upper}{end}"
        words = {"above": self.above, "from": self.at_least, "below": self.below, "up to": self.at_most}
        return "".join(f" {word} {bound}" for word, bound in words.items() if bound is not None)


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and abs(float(value)) <= _LARGEST  # not for NaN
    except OverflowError:
        return False


def _are_texts(value: object) -> bool:
    listed = isinstance(value, Collection) and not isinstance(value, (str, bytes, bytearray, Mapping))
    return listed and all(isinstance(each, str) for each in value)  # type: ignore[attr-defined]


NUMBER = Kind("a number", _is_number)
WHOLE = Kind("a whole number", lambda value: isinstance(value, Integral) and _is_number(value))
FLAG = Kind("True or False", lambda value: isinstance(value, bool))
_TEXT = Kind("a text", lambda value: isinstance(value, str))
_TEXTS = Kind("a list of texts", _are_texts)
_DICT = Kind("a dict", lambda value: isinstance(value, dict))
_FUNCTION = Kind("a function", callable)


def parameter(
    doc: str,
    *,
    default: Any = attrs.NOTHING,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    one_of: Collection[str] = (),
    convert: Callable[[Any], object] | None = None,
    check: Callable[[Any], object] | None = None,
) -> Any:
    """Declare a parameter of a class that is :func:`configurable`.

    Its valid values follow from its annotation: a number (``float``), a whole number (``int``), ``True`` or
    ``False``, a text, a list of texts (``Collection[str]`` and the like), a dict, a function, one of the texts of a
    ``Literal``, several of these, and ``None``. With any other annotation it may be anything for which `convert` and
    `check` do not raise.

    Parameters
    ----------
    doc
        Its purpose, as the documentation prints it.
    default
        Its default value; without one the parameter is required.
    above, at_least, below, at_most
        Bounds of a number.
    one_of
        The valid texts, if the annotation is not a ``Literal``.
    convert
        Converts a value that is not ``None`` to the attribute.
    check
        Raises :class:`~scrapy_focus.ConfigError` for a value that is not ``None`` and cannot be used.
    """
    declared = _Declared(doc, Bounds(above, at_least, below, at_most), tuple(one_of), convert, check)
    return attrs.field(default=default, kw_only=True, metadata={_Declared: declared})


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter, attrs.field))
def configurable(cls: type[T]) -> type[T]:
    """Give a class the parameters that it declares with :func:`parameter`, in addition to those of its bases.

    Each is given by its name, and stored under it. A subclass may declare others in this way, or have an ``__init__``
    that calls ``super().__init__()``.

    Examples
    --------
    >>> @configurable
    ... class Clusters:
    ...     theta: float = parameter("Similarity from which a path joins a cluster.", default=0.75, above=0, at_most=1)
    >>> inspect.signature(Clusters)
    <Signature (*, theta: 'float' = 0.75) -> None>
    >>> Clusters(theta=0.5).theta
    0.5
    >>> Clusters(theta="wide")
    Traceback (most recent call last):
        ...
    scrapy_focus.core.errors.ConfigError: Clusters(theta='wide'): theta is a number in (0, 1]
    """
    made = attrs.define(  # without an own __setattr__, because policies count in attributes
        cls, slots=False, eq=False, repr=False, match_args=False, auto_attribs=False,
        on_setattr=attrs.setters.NO_OP, field_transformer=_with_checks,
    )  # fmt: skip
    fields = [field for field in attrs.fields(cast("type[attrs.AttrsInstance]", made)) if field.init]
    made.__init__.__annotations__.update({field.name: field.type for field in fields})  # attrs has those of converters
    if vars(made).get("__doc__"):
        made.__doc__ = _documented(made.__doc__ or "", fields)
    return made


@contextmanager
def error_about(owner: object, name: str, value: object) -> Iterator[None]:
    """Name the parameter in any error raised in this block."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{type(owner).__qualname__}({name}={brief(value, VALUE)}): {error}") from error


class _Declared(NamedTuple):
    """The declaration of a parameter, apart from its default."""

    doc: str
    bounds: Bounds
    one_of: tuple[str, ...]
    convert: Callable[[Any], object] | None
    check: Callable[[Any], object] | None
    kind: Kind | None = None  # None: anything

    def read(self, value: object, owner: object, field: attrs.Attribute[Any]) -> object:
        """Return what the attribute is.

        Raises
        ------
        ConfigError
            If the value cannot be used.
        """
        if self.kind is not None and not self.kind.fits(value):
            raise ConfigError(
                f"{type(owner).__qualname__}({field.name}={brief(value)}): {field.name} is {self.kind.said}"
            )
        if value is None:
            return None
        with error_about(owner, field.name, value):
            if self.check is not None:
                self.check(value)
            return value if self.convert is None else self.convert(value)

    def kind_of(self, hint: Any) -> Kind | None:
        """Return the valid values of a parameter with such an annotation; ``None`` for anything."""
        hints = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        kinds = [self._kind_of_one(each) for each in hints if each is not NoneType]
        known = [kind for kind in kinds if kind is not None]
        if len(known) < len(kinds):
            return None
        either = Kind(", or ".join(kind.said for kind in known), lambda value: any(kind.fits(value) for kind in known))
        return either.or_none() if NoneType in hints else either

    def _kind_of_one(self, hint: Any) -> Kind | None:
        text = _one_of(self.one_of) if self.one_of else _TEXT
        plain = {float: self.bounds.of(NUMBER), int: self.bounds.of(WHOLE), bool: FLAG, str: text}
        if hint in plain:
            return plain[hint]
        origin = get_origin(hint) or hint
        if origin is Literal:
            return _one_of(get_args(hint))
        if origin is Callable:
            return _FUNCTION
        if not isinstance(origin, type):
            return None
        if issubclass(origin, Mapping):
            return _DICT
        has_texts = issubclass(origin, Collection) and get_args(hint) in ((str,), (str, ...))
        return _TEXTS if has_texts else None


def _one_of(texts: Collection[str]) -> Kind:
    return Kind(f"one of {', '.join(map(repr, texts))}", lambda value: isinstance(value, str) and value in texts)


def _with_checks(cls: type, fields: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
    """Let parameters be checked when an object is made; those of a base are already."""
    return [
        _with_check(cls, field) if _Declared in field.metadata and not field.converter else field for field in fields
    ]


def _with_check(cls: type, field: attrs.Attribute[Any]) -> attrs.Attribute[Any]:
    declared: _Declared = field.metadata[_Declared]
    declared = declared._replace(kind=declared.kind_of(_hint_of(cls, field)))
    converter = attrs.Converter(declared.read, takes_self=True, takes_field=True)
    return field.evolve(converter=converter, metadata={_Declared: declared})


def _hint_of(cls: type, field: attrs.Attribute[Any]) -> Any:
    """Return the annotation of a parameter as an object."""
    annotated = SimpleNamespace(__annotations__={field.name: field.type})
    try:
        return get_type_hints(annotated, getattr(sys.modules.get(cls.__module__), "__dict__", {}))[field.name]
    except NameError as error:
        raise TypeError(
            f"{cls.__qualname__}.{field.name} has the annotation {field.type}, and {error.name!r} is not defined; "
            "import it where it is imported at run time, too"
        ) from error


def _documented(doc: str, fields: Collection[attrs.Attribute[Any]]) -> str:
    """Return a docstring with a section about parameters before its other sections, unless it has one."""
    doc = inspect.cleandoc(doc)
    sections = [*_SECTION.finditer(doc)]
    entries = [_entry(field) for field in fields if _Declared in field.metadata]
    if not entries or any(section.group().startswith("Parameters\n") for section in sections):
        return doc
    at = sections[0].start() if sections else len(doc)
    parts = doc[:at].rstrip(), "\n".join(["Parameters\n----------", *entries]), doc[at:]
    return "\n\n".join(part for part in parts if part)


def _entry(field: attrs.Attribute[Any]) -> str:
    declared: _Declared = field.metadata[_Declared]
    takes = str(field.type) if declared.kind is None else declared.kind.said
    default = "" if field.default is attrs.NOTHING else f", default {field.default!r}"
    doc = inspect.cleandoc(declared.doc)
    doc = doc if "\n" in doc else textwrap.fill(doc, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return f"{field.name} : {takes}{default}\n{textwrap.indent(doc, ' ' * 4)}"
