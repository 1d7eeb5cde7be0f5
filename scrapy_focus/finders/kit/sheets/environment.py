"""Templates that escape everything from the web."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined

_SHARED = "sheets"  # name of this folder in templates


def environment(package: str) -> Environment:
    """Return the template environment of a package, with the shared style and parts under ``sheets/``.

    Everything that is not marked as safe is escaped, and a missing value is an error.
    """
    shared = PrefixLoader({_SHARED: PackageLoader(__package__, ".")})
    return Environment(
        loader=ChoiceLoader([shared, PackageLoader(package, ".")]), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
