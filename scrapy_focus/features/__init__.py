"""Features that settings add to a crawl: one folder for each, see :mod:`scrapy_focus.engine.feature`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from scrapy_focus.config import SETTINGS, Config
from scrapy_focus.core.errors import ConfigError, FocusError
from scrapy_focus.core.printable import brief, reason_of
from scrapy_focus.core.setting import Setting
from scrapy_focus.engine.feature import Feature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from scrapy_focus.core.setting import Values
    from scrapy_focus.engine.host import Host


def rows_of(settings: Values) -> tuple[Setting[Any], ...]:
    """Return the settings that features declare.

    A package in this folder has them in ``SETTINGS``; a feature that ``FOCUS_FEATURES`` names, in its attribute
    ``own_settings``.

    Raises
    ------
    ConfigError
        If ``FOCUS_FEATURES`` cannot be used, or declares an existing setting.
    """
    rows = list(_own_rows())
    for make in Config.features.of(settings):
        declared = _declared(make)
        if taken := {row.name for row in declared} & {*SETTINGS, *(row.name for row in rows)}:
            raise ConfigError(f"FOCUS_FEATURES has {brief(make)}, whose setting {brief(min(taken))} already exists")
        rows += declared
    return tuple(rows)


def existing(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of features that exist here, as a feature can be deleted with its folder."""
    names = {row.name for row in _own_rows()}
    return {name: value for name, value in values.items() if name in names}


def add_features(host: Host) -> None:
    """Add the features to a crawl that its settings enable.

    Each package in this folder has a function ``make(host)``, which returns a feature, or ``None`` if the crawl does
    not use it, and ``SETTINGS`` if it has any. Features of ``FOCUS_FEATURES`` come last.

    Raises
    ------
    ConfigError
        If a feature cannot be used.
    """
    for package in _packages():
        feature = package.make(host)
        if feature is not None:
            host.features.add(feature)
    for make in host.config.features:
        feature = _made(make, host)
        if feature is not None:
            host.features.add(feature, name=f"feature/{feature.name}")


def _packages() -> Iterator[ModuleType]:
    for package in iter_modules(__path__):
        yield import_module(f"{__name__}.{package.name}")


def _own_rows() -> Iterator[Setting[Any]]:
    for package in _packages():
        yield from getattr(package, "SETTINGS", ())


def _declared(make: Callable[[Any], Any]) -> list[Setting[Any]]:
    """Return the settings of a project's feature."""
    rows = getattr(make, "own_settings", ())
    if isinstance(rows, list | tuple) and all(isinstance(row, Setting) for row in rows):
        return list(rows)
    raise ConfigError(
        f"FOCUS_FEATURES has {brief(make)}, whose own_settings are {brief(rows)}; it takes a list of Setting"
    )


def _made(make: Callable[[Any], Any], host: Host) -> Feature | None:
    """Return a feature of a project."""
    try:
        feature = make(host)
    except FocusError:
        raise
    except Exception as error:  # whatever a project's code raises
        raise ConfigError(f"FOCUS_FEATURES has {brief(make)}, which raised an error: {reason_of(error)}") from error
    if feature is None or isinstance(feature, Feature):
        return feature
    raise ConfigError(
        f"FOCUS_FEATURES has {brief(make)}, which returned {brief(feature)}; it takes subclasses of "
        "scrapy_focus.Feature, or functions that return a feature or None"
    )
