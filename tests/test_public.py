"""The public names: what type checkers see of them is what there is at run time."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import scrapy_focus


def test_public_names_come_from_where_the_stub_says() -> None:
    """Each name that the stub imports is public, sorted, known to ``dir``, and the same object as in its module."""
    stub = ast.parse(Path(scrapy_focus.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    named = [(name.name, name.asname, str(node.module)) for node in imports for name in node.names]
    assert sorted(name for name, _, _ in named) == scrapy_focus.__all__
    assert set(scrapy_focus.__all__) < set(dir(scrapy_focus))
    for name, seen, module in named:
        assert name == seen, "without 'as', type checkers take a name in a stub for private"
        assert getattr(scrapy_focus, name) is getattr(import_module(module), name)


def test_unknown_names_are_attribute_errors() -> None:
    """A name that is misspelt is an error as in any module."""
    with pytest.raises(AttributeError, match="has no attribute 'Crawler'"):
        scrapy_focus.Crawler  # type: ignore[attr-defined]  # noqa: B018
