"""A short soak: kills at random instants, a disk that fills up in mid-crawl, clocks that jump."""

from __future__ import annotations

import os
import random
import threading
from typing import TYPE_CHECKING, Any

import pytest
from soak import soak, table_of
from soaked import SUBJECTS, Cradle, Soak, SoakSite

from tests.made import HANG

if TYPE_CHECKING:
    from pathlib import Path

    from killer import Running
    from mocksite import Seen

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL here")


class HoldingSite(SoakSite):
    """Answers the first request for one page only when it is asked for again."""

    held = "/p/3"

    def __init__(self, **rest: Any) -> None:
        super().__init__(**rest)
        self.again = threading.Event()

    def begin(self, seen: Seen) -> None:
        super().begin(seen)
        if seen.path == self.held and self.asks.count(self.held) > 1:
            self.again.set()
        elif seen.path == self.held:
            self.again.wait(HANG)


class OverdueSoak(Soak):
    """A soak that can kill a run once an answer of it was overdue."""

    site: HoldingSite

    def after_a_timeout(self, running: Running) -> bool:
        """When the page was asked for again."""
        return self._until(running, self.site.again.is_set, 0)


def crawl(folder: Path, plan: list[str], *, seed: int = 3, pages: int = 250) -> Soak:
    """Crawl with the default scheduler and the add-on, breaking in as planned; fail if anything was not as it should be."""
    rng = random.Random(seed)
    with Cradle() as cradle, SoakSite(n=pages, seed=seed) as site:
        crawl = Soak(SUBJECTS[2], site, folder / "crawl", rng)
        crawl.run(cradle, plan)
    assert not crawl.problems
    return crawl


@pytest.mark.slow
def test_a_disk_that_fills_up_in_mid_crawl(tmp_path: Path) -> None:
    """The run ends with status 1 and a message, its files are intact, and the next one misses nothing."""
    assert crawl(tmp_path, ["full_disk", "full_disk"]).done.full >= 1


@pytest.mark.slow
def test_the_time_of_day_may_jump(tmp_path: Path) -> None:
    """Over runs whose clocks are years apart, and jump mid-run, nothing is lost, doubled or reported as wrong."""
    done = crawl(tmp_path, ["after_requests", "wrong_clock", "wrong_clock", "after_requests", "wrong_clock"]).done
    assert done.jumps
    assert done.kills.total() >= 2


@pytest.mark.slow
def test_a_killed_run_has_reported_overdue_answers(tmp_path: Path) -> None:
    """What it asked for again for that reason, before the kill, is not needless."""
    waits = {"DOWNLOAD_TIMEOUT": 1, "RETRY_TIMES": 100}
    with Cradle() as cradle, HoldingSite(n=40, seed=3) as site:
        run = OverdueSoak(SUBJECTS[2], site, tmp_path / "crawl", random.Random(3), settings=waits)
        done = run.run(cradle, ["after_a_timeout"])
    assert not run.problems
    assert done.kills == {"after_a_timeout": 1}
    assert site.asks.count(site.held) >= 2


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_short_soak(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty kills over each kind of crawl: no page and no item lost, no budget overshot, no folder unclean."""
    table = soak(20, 7, folder=tmp_path)
    with capsys.disabled():
        print(f"\n{table_of(table)}")
    assert not any(counts.faults for counts in table.values())
    assert set(table) == {subject.name for subject in SUBJECTS}
