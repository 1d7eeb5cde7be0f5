"""The names of each feature in the reference.

Each folder here has ``documented.py``, with the names of its feature's settings and stats. They are listed again here
so that other tests know them after a feature was deleted; with this folder, its part of the reference must go as well.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import NamedTuple


class Documented(NamedTuple):
    """The names of a feature in the reference."""

    name: str
    settings: tuple[str, ...]
    stats: frozenset[str]


def documented_features() -> list[Documented]:
    """Return the names in the reference of the features that have tests here."""
    names = sorted(path.parent.name for path in Path(__file__).parent.glob("*/documented.py"))
    modules = [(name, import_module(f"tests.features.{name}.documented")) for name in names]
    return [Documented(name, module.SETTINGS, frozenset(module.STATS)) for name, module in modules]
