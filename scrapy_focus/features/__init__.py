"""What a setting adds to a crawl: one folder for each feature, see :mod:`scrapy_focus.engine.feature`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import ConfigError, FocusError
from scrapy_focus.core.printable import brief, reason_of
from scrapy_focus.engine.feature import Feature

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_focus.engine.host import Host


def add_features(host: Host) -> None:
    """Add the features to a crawl that its settings ask for.

    Each package in this folder has a function ``make(host)``, which returns a feature, or ``None`` where the crawl does
    without. Those of ``FOCUS_FEATURES`` come last.

    Raises
    ------
    ConfigError
        If a feature cannot be used.
    """
    for package in iter_modules(__path__):
        feature = import_module(f"{__name__}.{package.name}").make(host)
        if feature is not None:
            host.features.add(feature)
    for make in host.config.features:
        feature = _made(make, host)
        if feature is not None:
            host.features.add(feature, name=f"feature/{feature.name}")


def _made(make: Callable[[Any], Any], host: Host) -> Feature | None:
    """Return a feature of a project."""
    try:
        feature = make(host)
    except FocusError:
        raise
    except Exception as error:  # whatever code of a project raises
        raise ConfigError(f"FOCUS_FEATURES has {brief(make)}, which cannot be made: {reason_of(error)}") from error
    if feature is None or isinstance(feature, Feature):
        return feature
    raise ConfigError(
        f"FOCUS_FEATURES has {brief(make)}, which made {brief(feature)}; it takes subclasses of scrapy_focus.Feature, "
        "or functions that return a feature or None"
    )
