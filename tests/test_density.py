"""How densely the package is written: branches within one function, and within one expression."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from radon.visitors import Class, ComplexityVisitor, Function

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE = Path(__file__).parent.parent / "scrapy_focus"
# Complexity as radon counts it: a branch, a loop, a comprehension, and each "and" or "or" add one.
MOST = 15  # of a function
MUCH = 10  # is exceeded only where parts would read worse than the whole ...
MUCH_SHARE = 0.02  # ... which is so with few functions
FILES = sorted(PACKAGE.rglob("*.py"))


def functions_in(blocks: Iterable[Function | Class]) -> Iterator[Function]:
    """Yield functions, methods, and functions within functions."""
    for block in blocks:
        if isinstance(block, Class):
            yield from functions_in(block.methods)
            yield from functions_in(block.inner_classes)
        else:
            yield block
            yield from functions_in(block.closures)


@cache
def functions_of(source: str) -> list[Function]:
    visitor = ComplexityVisitor.from_code(source)
    return [*functions_in([*visitor.functions, *visitor.classes])]


def nested_conditions_in(source: str) -> list[int]:
    """Return the lines of conditional expressions that are a branch or the condition of another."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.IfExp):
            parts = (node.test, node.body, node.orelse)
            lines += [part.lineno for part in parts if isinstance(part, ast.IfExp)]
    return lines


def test_no_function_has_too_many_branches() -> None:
    """No function has a complexity above 15."""
    found = []
    for path in FILES:
        for function in functions_of(path.read_text(encoding="utf-8")):
            if function.complexity > MOST:
                where = f"{path.relative_to(PACKAGE)}:{function.lineno}"
                found.append(f"{where} {function.name} has {function.complexity}")
    assert not found, "\n".join(found)


def test_few_functions_have_many_branches() -> None:
    """At most two of a hundred functions have a complexity above 10."""
    functions = [each for path in FILES for each in functions_of(path.read_text(encoding="utf-8"))]
    dense = [each.fullname for each in functions if each.complexity > MUCH]
    assert len(dense) <= MUCH_SHARE * len(functions), f"{len(dense)} of {len(functions)}: {', '.join(dense)}"


def test_no_condition_is_within_another() -> None:
    """No conditional expression is nested in another: a statement shows the branches."""
    found = []
    for path in FILES:
        for line in nested_conditions_in(path.read_text(encoding="utf-8")):
            found.append(f"{path.relative_to(PACKAGE)}:{line}")
    assert not found, "\n".join(found)


def test_what_is_counted() -> None:
    """Methods and inner functions count, each by itself, and conditions within conditions are found."""
    source = "class A:\n    def f(self):\n        def g(x):\n            return x and 1\n        return g\n"
    assert {each.name: each.complexity for each in functions_of(source)} == {"f": 1, "g": 2}
    assert nested_conditions_in("a = 1 if b else 2\nc = 1 if d else (2 if e else 3)") == [2]
