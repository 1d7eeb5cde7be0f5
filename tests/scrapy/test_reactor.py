"""The main scenarios once more, in a process of their own with Twisted's asyncio reactor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from crawls import REACTOR

pytestmark = pytest.mark.skipif(REACTOR, reason="this is that process")


def test_the_same_with_a_reactor() -> None:
    """Every test that is marked ``reactor`` passes where crawls run in Twisted's reactor."""
    run_marked("reactor and not slow and not alone")


@pytest.mark.slow
def test_the_same_with_a_reactor_alone() -> None:
    """So does every one of those that compare times."""
    run_marked("reactor and not slow and alone")


def run_marked(marked: str) -> None:
    """Run the tests that are marked so, in Twisted's reactor."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", str(Path(__file__).parent), "-m", marked, "-q", "-p", "no:cacheprovider"],
        env={**os.environ, "FOCUS_TEST_REACTOR": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-10_000:]
    assert " passed" in run.stdout
