"""``scrapy focus-compare --words``: what speaks for a target reaches the policies of a comparison."""

from __future__ import annotations

import csv
import os
import sys
from typing import TYPE_CHECKING

import pytest
from forked import run as run_forked

from scrapy_focus import FilesGoal, Mission
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.metrics import summary
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.policies.treeq.policy import TreeQ

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_words_on_the_command_line_reach_treeq(tmp_path: Path) -> None:
    """Its numbers are those of a simulation with the words, and the page has the command that repeats it with them."""
    site = tmp_path / "one.sqlite"
    record_site(StatisticsPortal(pages=200, endless=False), site, root="http://portal.example/")
    command = [sys.executable, "-m", "scrapy", "focus-compare", str(site), "--policy", "TreeQ", "--seeds", "4,"]
    command += ["--budget", "150"]
    command += ["--words", "statistics, open data,", "--no-plots", "--jobs", "1", "--out", str(tmp_path / "out")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    done = run_forked(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = next((tmp_path / "out").glob("*.html")).read_text(encoding="utf-8")
    assert "--words &#39;statistics,open data&#39;" in page or "--words 'statistics,open data'" in page
    with (tmp_path / "out" / "runs.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    with_words, without = (
        summary(simulate(TreeQ(), FilesGoal(), site, mission=Mission.of(FilesGoal(), words=words), budget=150, seed=4))
        for words in (("statistics", "open data"), ())
    )
    assert float(row["area"]) == with_words["area"] != without["area"]
