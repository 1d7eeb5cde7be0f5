"""The notebooks of the documentation: they run, their results are those that are committed, and they are fit to publish."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.made import HANG

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MOST = 300_000  # bytes of a notebook
RESULT = "result"  # tag of the cells whose printed text has to stay the same


def _load_script() -> Any:
    spec = importlib.util.spec_from_file_location("execute_notebooks", DOCS / "execute_notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = _load_script()
NOTEBOOKS = SCRIPT.notebooks()

#: What a tutorial does, in a few seconds.
CELLS = [
    "from scrapy_focus import Ordering, compare, record\n"
    "from scrapy_focus.lab.sites.portal.portal import StatisticsPortal\n"
    "site = record(StatisticsPortal(pages=200, endless=False), 'site.sqlite')\n"
    "class Mine(Ordering):\n"
    "    def rank(self, link, source):\n"
    "        return -len(link.url)",
    "comparison = compare(site, [Mine, 'BFS'], seeds=2, processes=2, budget=200)\ncomparison",
    "comparison.plot()",
    "import matplotlib.pyplot as plt\ncomparison.plot()",
    "print(comparison.failures)",
]


def printed(notebook: Any) -> list[str]:
    """Return the text that the cells with results print."""
    cells = [cell for cell in notebook.cells if RESULT in cell.metadata.get("tags", ())]
    return [output["text"] for cell in cells for output in cell.outputs]


def kinds(cell: Any) -> list[list[str]]:
    """Return the types of each output of a cell."""
    return [sorted(output.get("data", {output.get("name", output.output_type): ""})) for output in cell.outputs]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels start in this environment, and leave nothing in the home of the user."""
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def test_there_is_a_notebook() -> None:
    """The tutorial on policies is one."""
    assert DOCS / "tutorials" / "policy.ipynb" in NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_fit_to_publish(path: Path) -> None:
    """It was run from top to bottom without an error, is small, has results to check, and names no place of a machine."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stat().st_size < MOST
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]
    assert not [output for cell in code for output in cell.outputs if output.get("name") == "stderr"]
    assert all(printed(notebook))
    text = re.sub(r'"image/png": "[^"]*"', "", path.read_text())
    assert not re.findall(r"/home/|/Users/|[A-Z]:\\\\", text)
    assert not [place for place in (Path.home(), ROOT, tempfile.gettempdir()) if f"{place}/" in text]
    assert not re.findall(r"127\.0\.0\.1:\d+", text)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_is_committed(path: Path) -> None:
    """In a new kernel no cell raises, and the results are the same."""
    found = SCRIPT.execute(path, timeout=HANG)
    committed = nbformat.read(path, as_version=4)
    assert printed(found) == printed(committed)
    for now, before in zip(found.cells, committed.cells, strict=True):
        if before.cell_type == "code":
            assert kinds(now) == kinds(before), before.source


def test_a_comparison_in_a_kernel(tmp_path: Path) -> None:
    """A class from a cell runs in two processes, a table and one picture are shown, and nothing is printed beside."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    nbformat.write(notebook, tmp_path / "short.ipynb")
    cells = SCRIPT.execute(tmp_path / "short.ipynb", timeout=HANG).cells
    assert [kinds(cell) for cell in cells] == [
        [], [["text/html", "text/plain"]], [["image/png", "text/plain"]], [["image/png", "text/plain"]], [["stdout"]],
    ]  # fmt: skip
    assert cells[-1].outputs[0]["text"] == "[]\n"
