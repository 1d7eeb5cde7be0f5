"""The main scenarios once more, in a separate process with Twisted's asyncio reactor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from crawls import REACTOR

pytestmark = pytest.mark.skipif(REACTOR, reason="this is that process")


TESTS = Path(__file__).parent
WAITS = TESTS / "test_put_off_hosts.py"  # it takes a minute, mostly waiting
#: What is tried by default: budgets, outcomes, and connections with TLS. Commands run in the reactor anyway.
MAIN = [TESTS / f"test_{name}.py" for name in ("certificates", "exact_budgets", "one_outcome")]


@pytest.mark.slow
def test_the_main_scenarios_are_the_same_with_a_reactor() -> None:
    """The tests of a few files that are marked ``reactor`` pass where crawls run in Twisted's reactor."""
    run_marked("reactor and not slow and not alone", *MAIN, workers=0)


@pytest.mark.slow
def test_the_same_with_a_reactor() -> None:
    """So does every other marked test, with the add-on even if others run it without."""
    run_marked("reactor and not slow and not alone", *(path for path in marked_files() if path not in (WAITS, *MAIN)))


@pytest.mark.slow
def test_the_same_with_a_reactor_alone() -> None:
    """So does every test that compares times."""
    run_marked("reactor and not slow and alone", *marked_files(), workers=0)


@pytest.mark.slow
def test_waiting_is_the_same_with_a_reactor() -> None:
    """So does every test that waits for paused hosts."""
    run_marked("reactor and not slow and not alone", WAITS)


def marked_files() -> list[Path]:
    """Return the files that have such tests, as all others take longer to be read than these tests to run."""
    files = [*TESTS.glob("test_*.py"), *TESTS.parent.glob("features/*/test_*.py")]
    return sorted(path for path in files if "mark.reactor" in path.read_text(encoding="utf-8"))


def run_marked(marked: str, *files: Path, workers: int = 2) -> None:
    """Run the marked tests of these files in Twisted's reactor; most of the time they wait."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", marked, "-q", "-p", "no:cacheprovider", "-n", str(workers), *files],
        env={**os.environ, "FOCUS_TEST_REACTOR": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-10_000:]
    assert " passed" in run.stdout
