"""A crawl of a recording whose columns are mapped takes the same steps as one that read the recording."""

from __future__ import annotations

import dataclasses
import os
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scrapy_focus import FilesGoal
from scrapy_focus.core.log import EventLog
from scrapy_focus.lab.compare.comparison import compare
from scrapy_focus.lab.compare.specs import PolicySpec
from scrapy_focus.lab.recordings.columns import path_of
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.lab.sites.portal.portal import StatisticsPortal

if TYPE_CHECKING:
    from pathlib import Path

POLICIES = [
    "BFS", "RANDOM", "SB-CLASSIFIER", "SB-ORACLE", "FOCUSED", "TP-OFF", "LINK-FLOOR", "OMNISCIENT", "BranchingBandit",
    "TreeQ", "TRES-FILES", "OnlineLinkClassifier", "HostBandit", "BestFirst",
]  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded portal, which was last written to a while ago."""
    path = tmp_path_factory.mktemp("recorded") / "portal.sqlite"
    record_site(StatisticsPortal(pages=200, endless=False), path, root="http://portal.example/", bodies=True)
    when = path.stat().st_mtime - 100
    os.utime(path, (when, when))
    return path


@pytest.fixture(scope="module")
def sites(path: Path) -> list[RecordedSite]:
    """The site as it is read, and as it is mapped."""
    path_of(path).mkdir()  # so that no columns can be written
    read = RecordedSite(path)
    path_of(path).rmdir()
    RecordedSite(path)
    mapped = RecordedSite(path)
    assert path_of(path).is_file()
    assert read.targets.flags.writeable
    assert not mapped.targets.flags.writeable
    return [read, mapped]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", POLICIES)
def test_the_same_steps(name: str, sites: list[RecordedSite], tmp_path: Path) -> None:
    """Each choice with its reasons, each outcome, and the whole course of the crawl, bit by bit."""
    harvests, logs = [], []
    for i, site in enumerate(sites):
        log = tmp_path / f"{i}.jsonl"
        policy = PolicySpec.parse(name).make()
        harvests.append(simulate(policy, FilesGoal(), site, budget=150, seed=1, log=EventLog(log)))
        logs.append(log.read_text())
    assert logs[0] == logs[1]
    assert logs[0].count('"pick"') > 50
    for column in dataclasses.fields(harvests[0]):
        one, other = (getattr(harvest, column.name) for harvest in harvests)
        assert np.array_equal(one, other), column.name


def test_the_same_truth(sites: list[RecordedSite]) -> None:
    """And the same ground truth, in columns too."""
    one, other = (SiteTruth(site, FilesGoal()) for site in sites)
    assert one.exhaustive == other.exhaustive
    assert np.array_equal(one.order, other.order)
    assert np.array_equal(one.worth, other.worth)
    assert one.targets() == other.targets()
    urls = list(sites[0].urls)
    assert [one.kind(url) for url in urls] == [other.kind(url) for url in urls]


@pytest.mark.slow
def test_processes_map_the_columns(path: Path, sites: list[RecordedSite]) -> None:
    """A comparison in two processes finds what one in this process does, and leaves the columns as they are."""
    before = path_of(path).stat()
    tables = [compare(["BFS", "BranchingBandit"], [path], budget=60, seeds=range(2), jobs=jobs) for jobs in (1, 2)]
    one, other = ([(run.policy, run.seed, run.metrics) for run in sorted(table.runs, key=str)] for table in tables)
    assert sorted(map(str, one)) == sorted(map(str, other))
    assert len(one) == 4
    after = path_of(path).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.slow
def test_a_comparison_reads_each_recording_once(path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Before it starts other processes, so that these find the columns."""
    copies = [shutil.copy2(path, tmp_path / f"{name}.sqlite") for name in "ab"]
    path_of(copies[1]).mkdir()
    compared = compare(["BFS"], copies, budget=20, seeds=range(2), jobs=2)
    assert [run.error for run in compared.runs] == [""] * 4
    assert path_of(copies[0]).is_file()
    assert [str(copies[1]) in record.getMessage() for record in caplog.records] == [True]
