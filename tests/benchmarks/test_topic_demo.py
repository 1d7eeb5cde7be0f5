"""The demo of topics, as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import Reader

DEMO = Path(__file__).parents[2] / "example_project" / "topic_demo.py"


@pytest.mark.slow
def test_it_leaves_a_page_to_read(tmp_path: Path) -> None:
    """It says which page to open; the page has the pages found."""
    command = [sys.executable, str(DEMO), "--hosts", "2000", "--budget", "60", "--out", "found"]
    env = os.environ | {"COLUMNS": "300"}
    said = subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True, text=True).stdout
    page = tmp_path / "found" / "found" / "index.html"
    assert "Open this page in a browser: found/found/index.html" in said
    text = Reader(page.read_text()).text
    assert "on the topic" in text
    assert "Which links paid off" in text
