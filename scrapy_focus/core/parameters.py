"""Whether parameters are of the kinds that are meant, before anything is made of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from typing import NamedTuple

from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief

_LARGEST = 1 << 62  # of a number
_SHORT = 60  # characters of a value, where more is said of it


class Kind(NamedTuple):
    """What a parameter may be."""

    said: str
    fits: Callable[[object], bool]

    def or_none(self) -> Kind:
        """The same, or ``None``."""
        return Kind(f"{self.said}, or None", lambda value: value is None or self.fits(value))


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
TEXT = Kind("a text", lambda value: isinstance(value, str))
TEXTS = Kind("a list of texts", _are_texts)
DICT = Kind("a dict", lambda value: isinstance(value, dict))


def one_of(names: Collection[str]) -> Kind:
    """Return the kind of a text that is one of these."""
    return Kind(f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names)


def check_kinds(owner: object, **parameters: tuple[object, Kind]) -> None:
    """Raise :class:`~scrapy_focus.core.errors.ConfigError` for a parameter that is not of its kind.

    Examples
    --------
    >>> check_kinds(print, theta=("wide", NUMBER))
    Traceback (most recent call last):
        ...
    scrapy_focus.core.errors.ConfigError: builtin_function_or_method(theta='wide'): theta is a number
    """
    for name, (value, kind) in parameters.items():
        if not kind.fits(value):
            raise ConfigError(f"{type(owner).__qualname__}({name}={brief(value)}): {name} is {kind.said}")


@contextmanager
def parameter(owner: object, name: str, value: object) -> Iterator[None]:
    """Let an error that is raised meanwhile name the parameter that it is about."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{type(owner).__qualname__}({name}={brief(value, _SHORT)}): {error}") from error
