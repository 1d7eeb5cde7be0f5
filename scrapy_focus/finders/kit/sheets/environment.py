"""Makes pages from templates in which whatever comes from the web is escaped."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined

_SHARED = "sheets"  # what templates call this folder


def environment(package: str) -> Environment:
    """Return where the templates of a package are, and under ``sheets/`` the style and the parts that all share.

    Everything is escaped that is not marked as safe, and a value that is not there is an error.
    """
    shared = PrefixLoader({_SHARED: PackageLoader(__package__, ".")})
    return Environment(
        loader=ChoiceLoader([shared, PackageLoader(package, ".")]), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
