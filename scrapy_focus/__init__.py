"""A learning frontier for Scrapy: find data files, topics and fresh pages with a fraction of the requests."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _read_homes() -> dict[str, str]:
    """Return the module of each public name, from the list that type checkers read."""
    tree = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return dict(sorted((name.name, str(node.module)) for node in imports for name in node.names))


# Scrapy imports this package with its commands, whichever command runs: so nothing is imported before it is used.
_HOMES = _read_homes()

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name on first use; everything except the Scrapy components works without Scrapy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'scrapy_focus' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
