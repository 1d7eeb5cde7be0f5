"""Crawls that keep answers are killed again and again, as others are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from soak import soak, table_of
from soaked import SUBJECTS
from test_kills import HASHED, HEADS, RANDOM, hunted, killed_again_and_again

from tests.made import HANG

if TYPE_CHECKING:
    from pathlib import Path

    from killed import Nursery
    from test_kills import Reference

pytestmark = pytest.mark.slow

KILLS = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL here")

KEEPS = {"FOCUS_KILL_SAFE_FETCH": True}


@KILLS
def test_a_killed_crawl_does_what_another_does(nursery: Nursery, tmp_path: Path, english: Reference) -> None:
    """As without kept answers."""
    plan = ["after_requests", "at_its_start", "after_requests"]
    done = hunted(nursery, tmp_path / "0", {**HASHED, **KEEPS}, plan, 1, english)
    assert len(done.hunt.kills) >= len(plan) - 1


@KILLS
@pytest.mark.timeout(10 * HANG)
@pytest.mark.parametrize(
    ("settings", "seed"),
    [({**HEADS, **KEEPS, "FOCUS_BUDGET_REQUESTS": 600}, 120), ({**RANDOM, **KEEPS}, 130)],
    ids=["tagpath_heads", "random"],
)
def test_many_kills(
    nursery: Nursery, tmp_path: Path, settings: dict[str, Any], seed: int, whole: Reference,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Twelve at least in each of these crawls, at random."""
    killed_again_and_again(nursery, tmp_path, settings, seed, whole, capsys)


@KILLS
@pytest.mark.timeout(1800)
def test_a_short_soak(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty kills over each kind of crawl: no page and no item lost, no budget overshot, no folder unclean."""
    table = soak(20, 7, folder=tmp_path, settings=KEEPS)
    with capsys.disabled():
        print(f"\n{table_of(table)}")
    assert not any(counts.faults for counts in table.values())
    assert set(table) == {subject.name for subject in SUBJECTS}
