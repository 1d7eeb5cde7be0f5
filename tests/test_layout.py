"""How the package is laid out: what works without Scrapy, what is public, what is documented."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import scrapy_focus
from scrapy_focus.core import abilities

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(scrapy_focus.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
BELOW = [
    "core",
    "finders",
    "frontiers",
    "goals",
    "jobs",
    "lab",
    "learn",
    "policies",
    "topic",
    "web",
]
#: What imports Scrapy within these folders.
ABOVE = [
    "finders/*/arguments.py",
    "finders/*/command.py",
    "finders/*/spider.py",
    "finders/files/next_crawl.py",
    "finders/files/pipelines.py",
    "finders/important/link_notes.py",
    "finders/kit/arguments/*.py",
    "finders/kit/arguments/shared/*.py",
    "finders/kit/commands/*.py",
    "finders/kit/spiders/*.py",
    "finders/news/watch_notes.py",
    "lab/commands/*.py",
    "lab/spiders/*.py",
]

WITHOUT_SCRAPY = """
import importlib, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("scrapy", "twisted"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
for name in sys.argv[1:]:
    importlib.import_module(name)
from scrapy_focus import Budget, Crawl, FilesGoal, Link, Outcome, check_policy, check_ranked, memory_frontier
from scrapy_focus.policies.tagpath.policy import TagPath
check_policy(TagPath, pages=20)
check_ranked(memory_frontier, steps=50)
assert not {"scrapy", "twisted"} & {name.partition(".")[0] for name in sys.modules}
try:
    from scrapy_focus import Addon
except ImportError as error:
    print(error)
"""


def module_of(path: Path) -> str:
    """Return the name of the module in a file."""
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def is_below(path: Path) -> bool:
    """Whether a file is one of those that know nothing of Scrapy."""
    inside = path.relative_to(ROOT)
    return inside.with_suffix("").parts[0] in BELOW and not any(inside.match(pattern) for pattern in ABOVE)


def test_everything_below_the_line_works_without_scrapy() -> None:
    """With Scrapy and Twisted made unimportable, all of it imports, and a policy can be checked; only adapters fail."""
    names = [module_of(path) for path in FILES if is_below(path)]
    assert len(names) > 20
    assert "scrapy_focus.core.crawl" in names
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_SCRAPY, *names], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("is blocked")


def test_the_public_names_are_sorted_and_there() -> None:
    """Each name of ``__all__`` can be imported, stands there once and in order, and nothing else is public."""
    names = scrapy_focus.__all__
    assert names == sorted(set(names))
    for name in names:
        assert getattr(scrapy_focus, name).__doc__, name
    ours = {
        name
        for name, value in vars(scrapy_focus).items()
        if inspect.isclass(value) or inspect.isfunction(value)
        if value.__module__.startswith("scrapy_focus") and not name.startswith("_")
    }
    assert ours <= set(names)


def test_commands_of_scrapy_are_not_slowed_down() -> None:
    """Scrapy imports the commands of this package at every start, and none of the packages that take long come along."""
    modules = [each.module for each in entry_points(group="scrapy.commands") if each.module.startswith("scrapy_focus.")]
    assert len(modules) > 10
    words = (
        f"import sys, scrapy.commands; before = set(sys.modules); import {', '.join(modules)}; "
        "print(*sorted(name for name in set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} <= {
        "scrapy",
        "scrapy_focus",
    } | sys.stdlib_module_names


def test_a_name_that_does_not_exist_is_no_attribute() -> None:
    """What is asked for by a wrong name raises AttributeError with the name."""
    with pytest.raises(AttributeError, match="NoSuchThing"):
        scrapy_focus.NoSuchThing  # noqa: B018


def test_everything_public_is_documented() -> None:
    """Modules, public classes and functions have a docstring; below the line also methods that no base class describes."""
    undocumented = [f"{path.relative_to(ROOT)}: {name}" for path in FILES for name in _undocumented(path)]
    assert not undocumented


def _undocumented(path: Path) -> Iterator[str]:
    """Yield the public names of a file that have no docstring."""
    tree = ast.parse(path.read_text())
    if not ast.get_docstring(tree):
        yield "the module"
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name.startswith("_") or _is_overload(node):
            continue
        if not ast.get_docstring(node):
            yield node.name
        if isinstance(node, ast.ClassDef) and is_below(path):
            yield from _undocumented_methods(getattr(import_module(module_of(path)), node.name), node)


def _is_overload(node: ast.ClassDef | ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)


def _undocumented_methods(cls: type, node: ast.ClassDef) -> Iterator[str]:
    for method in node.body:
        if not isinstance(method, ast.FunctionDef) or method.name.startswith("_") or _is_overload(method):
            continue
        if not ast.get_docstring(method) and not _is_promised(cls, method.name):
            yield f"{node.name}.{method.name}"


def _is_promised(cls: type, name: str) -> bool:
    """Return whether a base class, or a protocol of frontiers or policies, says what a method is for."""
    bases = [*cls.__mro__[1:], scrapy_focus.Frontier, scrapy_focus.Ranked, scrapy_focus.Drawn]
    bases += [each for each in vars(abilities).values() if isinstance(each, type)]
    return any(getattr(vars(base).get(name), "__doc__", None) for base in bases)


def test_nothing_below_the_line_imports_scrapy() -> None:
    """Not even where it is used, or for types."""
    importing = [path for path in FILES if is_below(path) and {"scrapy", "twisted"} & _imported_packages(path)]
    assert not importing


def _imported_packages(path: Path) -> set[str]:
    """Return the first parts of the names that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def test_all_that_is_logged_is_printable() -> None:
    """Every module that logs does so through ``printable_logger``: what a site sent may be in any record."""
    loggers = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in FILES
        if path.name != "printable.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("logging.getLogger(")
    ]
    assert not loggers


def test_commands_print_through_one_function() -> None:
    """``say``, ``one_line`` and ``printable_json`` make printable what they are given; a text of our own needs none."""
    known = ("one_line(", "printable_json(", "'\\n'.join(map(one_line")
    loose = []
    commands = [path for path in FILES if path.parent.name == "commands" or path.name == "command.py"]
    assert ROOT / "finders/files/command.py" in commands
    for path in commands:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                said = node.args[0]
                if not isinstance(said, ast.Constant) and not ast.unparse(said).startswith(known):
                    loose.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert not loose
