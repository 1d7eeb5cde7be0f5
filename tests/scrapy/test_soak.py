"""A short soak: kills at random instants, a disk that fills up in mid-crawl, clocks that jump."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import pytest
from soak import soak, table_of
from soaked import SUBJECTS, Cradle, Soak, SoakSite

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL here")


def crawl(folder: Path, plan: list[str], *, seed: int = 3, pages: int = 250) -> Soak:
    """Crawl with the default scheduler and the add-on, breaking in as planned; fail if anything was not as it should be."""
    rng = random.Random(seed)
    with Cradle() as cradle, SoakSite(n=pages, seed=seed) as site:
        crawl = Soak(SUBJECTS[2], site, folder / "crawl", rng)
        crawl.run(cradle, plan)
    assert not crawl.problems
    return crawl


def test_a_disk_that_fills_up_in_mid_crawl(tmp_path: Path) -> None:
    """The run ends with status 1 and says so, what it wrote is well, and the next one misses nothing."""
    assert crawl(tmp_path, ["full_disk", "full_disk"]).done.full >= 1


def test_the_time_of_day_may_jump(tmp_path: Path) -> None:
    """Over runs whose clocks are years apart, and jump in mid-run, nothing is lost, doubled or said to be wrong."""
    done = crawl(tmp_path, ["after_requests", "wrong_clock", "wrong_clock", "after_requests", "wrong_clock"]).done
    assert done.jumps
    assert done.kills.total() >= 2


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("settings", [{}, {"FOCUS_KILL_SAFE_FETCH": True}], ids=["", "kill_safe_fetch"])
def test_a_short_soak(tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: dict[str, Any]) -> None:
    """Twenty kills over each kind of crawl: no page and no item lost, no budget overshot, no folder unclean."""
    table = soak(20, 7, folder=tmp_path, settings=settings)
    with capsys.disabled():
        print(f"\n{table_of(table)}")
    assert not any(counts.faults for counts in table.values())
    assert set(table) == {subject.name for subject in SUBJECTS}
