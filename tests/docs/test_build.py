"""The documentation builds without a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.made import HANG

DOCS = Path(__file__).parents[2] / "docs"


def build(source: Path, target: Path, *more: str, builder: str = "html") -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        builder,
        *more,
        str(source),
        str(target),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)


@pytest.mark.slow
def test_docs_have_no_warning(tmp_path: Path) -> None:
    """Sphinx reads every page and docstring, and resolves all references, without a warning."""
    pytest.importorskip("sphinx")
    done = build(DOCS, tmp_path, "-D", "smartquotes=0", builder="dummy")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_docs_build(tmp_path: Path) -> None:
    """Every page becomes HTML without a warning."""
    pytest.importorskip("sphinx")
    done = build(DOCS, tmp_path)
    assert done.returncode == 0, done.stderr
    for page in DOCS.glob("**/*.rst"):
        assert (tmp_path / page.relative_to(DOCS).with_suffix(".html")).is_file()


@pytest.mark.slow
def test_every_name_is_documented_from_its_docstring(tmp_path: Path) -> None:
    """A page that refers to a missing name does not build."""
    pytest.importorskip("sphinx")
    (tmp_path / "conf.py").write_text((DOCS / "conf.py").read_text())
    (tmp_path / "index.rst").write_text("T\n=\n\n.. autoclass:: scrapy_focus.NoSuchThing\n")
    done = build(tmp_path, tmp_path / "out")
    assert done.returncode != 0
    assert "NoSuchThing" in done.stderr
