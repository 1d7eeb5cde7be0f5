"""The main scenarios once more, in a process of their own with Twisted's asyncio reactor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from crawls import REACTOR


@pytest.mark.alone
@pytest.mark.skipif(REACTOR, reason="this is that process")
def test_the_same_with_a_reactor() -> None:
    """Every test that is marked ``reactor`` passes where crawls run in Twisted's reactor."""
    here, together = str(Path(__file__).parent), ["-n", "auto", "--dist", "loadfile"]
    for which, how in (("not alone", together), ("alone", [])):
        run = subprocess.run(
            [sys.executable, "-m", "pytest", here, "-m", f"reactor and not slow and {which}", *how, "-q", "-p", "no:cacheprovider"],
            env={**os.environ, "FOCUS_TEST_REACTOR": "1"},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stdout[-10_000:]
        assert " passed" in run.stdout
