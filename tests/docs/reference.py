"""Reads the pages of the reference, and the corresponding facts in the source."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_focus.engine.inflight import LABELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "scrapy_focus"


def read(page: str) -> str:
    """Return the text of a page."""
    return (DOCS / page).read_text()


def documented_settings() -> dict[str, dict[str, str]]:
    """Return the fields (Type, Default, ...) of each setting on its page."""
    parts = re.split(r"^(FOCUS_\w+)\n-+\n", read("reference/settings.rst"), flags=re.MULTILINE)
    return {
        name: dict(re.findall(r"^:([A-Z][a-z ]+): +(.*)$", text, re.MULTILINE))
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def documented_stats() -> list[str]:
    """Return the names of the stats on their page."""
    return re.findall(r"^``(focus/[\w/]+)``$", read("reference/stats.rst"), re.MULTILINE)


def stats_in(paths: Iterable[Path]) -> tuple[set[str], set[str]]:
    """Return the stats that files count or write under ``focus/``, and the families of others, such as ``error/``."""
    names: set[str] = set()
    families: set[str] = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and re.fullmatch(r"focus/[\w/]+\w", str(node.value)):
                names.add(str(node.value))
            elif (counted := counted_in(node)) is not None:
                if isinstance(counted, ast.Constant):
                    of_all = "cluster/" if path.name == "leader.py" else ""
                    names.add(f"focus/{of_all}{counted.value}")
                elif isinstance(counted, ast.JoinedStr):
                    families.add(str(counted.values[0].value))  # type: ignore[attr-defined]
                else:  # Host.count counts any name; its callers are checked here
                    assert ast.unparse(counted) == "name", f"{path}:{node.lineno}"  # type: ignore[attr-defined]
            elif isinstance(node, ast.Call) and _is_guarded(node) and isinstance(node.args[0], ast.Constant):
                names.add(f"focus/error/{node.args[0].value}")
            elif (
                isinstance(node, ast.AnnAssign)
                and "features" in path.parts
                and _name(node.target) == "name"
                and node.value
            ):
                names.add(f"focus/error/{ast.literal_eval(node.value)}")  # of a feature
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("features.on"):
                said = [word.value for word in node.keywords if word.arg == "name"]
                names.add(f"focus/error/{ast.literal_eval(said[0]) if said else 'note'}")
            elif isinstance(node, ast.Assign) and _name(node.targets[0]) == "verdict":
                verdicts = [each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
                names |= {f"focus/outcome/{verdict}" for verdict in verdicts if verdict}
    return names, families


def _is_guarded(node: ast.Call) -> bool:
    """Whether a call counts exceptions under ``error/``, by its first argument."""
    return _name(node.func) == "guard" or ast.unparse(node.func) in ("self._guard.ask", "self.guard.ask")


def counted_in(node: ast.AST) -> ast.expr | None:
    """Return the name of a count: ``self.counts[name]`` or ``self._counts[name]``, or ``self.count(name)`` of the scheduler."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("self.counts", "self._counts"):
        return node.slice
    if isinstance(node, ast.Call) and ast.unparse(node.func) in (
        "self.count", "host.count", "self.host.count", "visit.guard.note", "self.guard.note",
    ):  # fmt: skip
        return node.args[0]
    return None


def labels() -> Iterator[str]:
    """Yield the possible values of ``Entry.label``, except verdicts."""
    tree = ast.parse((PACKAGE / "engine/inflight.py").read_text())
    label = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "label")
    yield from (*LABELS.values(), "failure")
    for node in ast.walk(label):
        if isinstance(node, ast.Return) and node.value is not None:
            yield from (each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant))


def _name(node: ast.expr) -> str:
    return getattr(node, "attr", None) or getattr(node, "id", "")
