"""One row for each setting: its name, how it is read, its default, its unit.

A row is the only place that states any of these. All code reads a setting through its row, so that two readers cannot
disagree. Error messages follow from it, and a test compares the reference with it. A feature declares its own rows
beside its code; the others are fields of :class:`~scrapy_focus.config.Config`::

    MAX_LINKS = Setting("FOCUS_MAX_LINKS", whole(), default=6000, unit="new links of one page")
    MAX_LINKS.of(crawler.settings)
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, overload

from scrapy_focus.core.durations import Duration
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.core.printable import brief, reason_of
from scrapy_focus.core.sizes import Size

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
N = TypeVar("N", int, float)

_MOST = 1 << 62  # of any number
_LONGEST_PATH = 4096  # bytes


class Values(Protocol):
    """Holds the values of settings by name, such as the settings of Scrapy."""

    def get(self, name: str, /) -> Any:
        """Return a value, ``None`` if there is none."""


def is_no_text(value: Any) -> bool:
    """Whether a value is the empty text."""
    return isinstance(value, str) and not value


def is_off(value: Any) -> bool:
    """Whether a value is empty, zero or ``False``."""
    try:
        return not value
    except Exception:  # it has no truth value
        return False


def never(value: Any) -> bool:
    """Return ``False``: no value is empty."""
    return False


@dataclass(frozen=True, slots=True)
class Kind(Generic[T_co]):
    """How the value of a setting is read.

    Parameters
    ----------
    read
        Takes the name of a setting and its value, and returns the parsed value. A ``ConfigError`` from it is the
        error of the setting; after any other exception the error says what the setting takes.
    takes
        What the setting takes, in words that follow "it takes": ``"a whole number from 0"``.
    is_empty
        Whether a value means the default, as ``None`` does.
    """

    read: Callable[[str, Any], T_co]
    takes: str
    is_empty: Callable[[Any], bool] = never


@dataclass(frozen=True, slots=True)
class Setting(Generic[T_co]):
    """A setting. On the class, the attribute is the setting; on an instance, its value.

    Parameters
    ----------
    name
        The name under which users set it.
    kind
        How its value is read.
    default
        Its value if nobody sets it, as `kind` would return it.
    unit
        What a number counts, ``""`` for nothing. Errors name it.
    in_cluster
        Whether it works together with ``FOCUS_CLUSTER``.
    """

    name: str
    kind: Kind[T_co]
    default: T_co
    unit: str = ""
    in_cluster: bool = True

    def of(self, settings: Values) -> T_co:
        """Return the value of the setting.

        Raises
        ------
        ConfigError
            If its value cannot be used.
        """
        value = settings.get(self.name)
        if value is None or self.kind.is_empty(value):
            return self.default
        try:
            return self.kind.read(self.name, value)
        except ConfigError:
            raise
        except Exception as error:  # any exception of an object
            unit = f" ({self.unit})" if self.unit else ""
            raise ConfigError(f"{self.name} is {brief(value)}; it takes {self.kind.takes}{unit}") from error

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T_co: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T_co:
        # Without __set__, a value in the instance's dictionary takes precedence, and is as fast as any attribute.
        return self if instance is None else self.default


def flag() -> Kind[bool]:
    """``True`` or ``False``, also as text."""
    return Kind(lambda _, value: _truth(value), "True or False")


def whole(least: int = 0) -> Kind[int]:
    """A whole number, also as text."""
    return Kind(lambda _, value: _checked(int(value), least), f"a whole number from {least}", is_no_text)


def number(least: float = 0) -> Kind[float]:
    """A number, also as text."""
    return Kind(lambda _, value: _checked(float(value), least), f"a number from {least}", is_no_text)


def seconds(least: float = 0) -> Kind[float]:
    """A number of seconds, or a time with its unit, such as ``"24h"``."""

    def read(name: str, value: Any) -> float:
        lasts = Duration.of(value, name, bare="second").seconds if _has_unit(value) else float(value)
        return _checked(lasts, least)

    return Kind(read, f"a number from {least}", is_no_text)


def size(least: int = 0) -> Kind[int]:
    """A number of bytes, or a size with its unit, such as ``"2GB"``."""

    def read(name: str, value: Any) -> int:
        return _checked(Size.of(value, name).bytes if _has_unit(value) else int(value), least)

    return Kind(read, f"a whole number from {least}, or a size such as '2GB'", is_no_text)


def none_at_zero(kind: Kind[T]) -> Kind[T | None]:
    """As another kind, but ``None`` in place of 0."""
    return Kind(lambda name, value: kind.read(name, value) or None, kind.takes, kind.is_empty)


def choice(*words: str, is_empty: Callable[[Any], bool] = never) -> Kind[Any]:
    """One of some words."""

    def read(name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(value)
        return words[words.index(value)]

    quoted = [repr(word) for word in words]
    return Kind(read, f"{', '.join(quoted[:-1])} or {quoted[-1]}", is_empty)


def path() -> Kind[str]:
    """The path of a file."""
    return Kind(lambda _, value: _path(value), "the path of a file", is_off)


def mapping() -> Kind[dict[str, Any]]:
    """A dict, as JSON where it is text."""

    def read(name: str, value: Any) -> dict[str, Any]:
        try:
            return dict(json.loads(value) if isinstance(value, str) else value)
        except Exception as error:  # from the JSON reader, or from an object that is not a dict
            raise ConfigError(
                f"{name} is {brief(value)}; it takes a dict, on the command line as JSON ({reason_of(error)})"
            ) from error

    return Kind(read, "a dict")


def texts(what: str, convert: Callable[[str, list[str]], T], *, is_empty: Callable[[Any], bool] = never) -> Kind[T]:
    """A list of texts, or one text with commas between them; `convert` takes the name of the setting and the list."""
    takes = f"{what}, in a list, or separated by commas"
    return Kind(lambda name, value: convert(name, texts_of(value)), takes, is_empty)


def some_of(words: frozenset[str], what: str) -> Kind[frozenset[str]]:
    """Any number of some words, in any case."""

    def convert(name: str, given: list[str]) -> frozenset[str]:
        chosen = frozenset(word.strip().lower() for word in given) - {""}
        if unknown := chosen - words:
            raise ConfigError(f"{name} has {brief(min(unknown))}; it takes any of {', '.join(sorted(words))}")
        return chosen

    return texts(what, convert)


def anything() -> Kind[Any]:
    """Any object, as it is; one that is empty, zero or ``False`` means the default."""
    return Kind(lambda _, value: value, "an object", is_off)


def texts_of(value: Any) -> list[str]:
    """Return texts from a list, or from one text separated by commas.

    Raises
    ------
    TypeError
        If they are neither.
    """
    if isinstance(value, str):
        return value.split(",") if value else []
    if not isinstance(value, (list, tuple, set, frozenset)) or not all(isinstance(each, str) for each in value):
        raise TypeError(value)
    return list(value)


def _has_unit(value: Any) -> bool:
    return isinstance(value, str) and value.strip()[-1:].isalpha()


def _checked(number: N, least: float) -> N:
    if not least <= number <= _MOST:
        raise ValueError(number)
    return number


def _truth(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return bool(int(value))


def _path(value: Any) -> str:
    found: str | bytes = os.fspath(value)
    if not isinstance(found, str) or "\0" in found or len(os.fsencode(found)) > _LONGEST_PATH:
        raise ValueError(found)
    return found
