"""Runs the notebooks of the documentation, and saves them with their outputs.

The documentation is built without running them. Run this after a change that they show, and commit the result::

    python docs/execute_notebooks.py                        # all of them
    python docs/execute_notebooks.py docs/tutorials/policy.ipynb
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).parent


def notebooks() -> list[Path]:
    """Return all notebooks of the documentation."""
    return sorted(path for path in DOCS.rglob("*.ipynb") if "_build" not in path.parts)


def execute(path: Path, *, timeout: float | None = None) -> Any:
    """Run a notebook in a new kernel and an empty folder, and return it with its outputs.

    Parameters
    ----------
    path
        The notebook.
    timeout
        Seconds for each cell.
    """
    notebook: Any = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=timeout, kernel_name="python3", record_timing=False,
            resources={"metadata": {"path": folder}},
        )  # fmt: skip
        client.execute()
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def main() -> None:
    """Run the notebooks that the command line names, or all."""
    parser = argparse.ArgumentParser(description="Run the notebooks of the documentation, and save their outputs.")
    parser.add_argument("paths", metavar="NOTEBOOK", type=Path, nargs="*", help="default: all")
    for path in parser.parse_args().paths or notebooks():
        nbformat.write(execute(path), path)
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
