"""The benchmark of foragers, on small sites: what it measures, how it is resumed, and what it shows."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import foragers
import news
from scrapy_focus.lab.replay.foraging import births_of
from scrapy_focus.lab.replay.truth import SiteTruth
from scrapy_focus.lab.sites.news.plan import BEGIN, HOUR, Manner
from scrapy_focus.lab.sites.news.site import NewsSite

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SMALL = Manner(sections=9, topics=12, archive=40, per_hour=4.0)
DAYS, PACE = 0.5, 1_200


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have one small site and a short time."""
    monkeypatch.setattr(foragers, "FIRST", 2 * HOUR)
    monkeypatch.setattr(foragers, "END", 1 * HOUR)
    for name, experiment in foragers.EXPERIMENTS.items():
        few = dataclasses.replace(experiment, sites={"small": SMALL}, rates=(PACE,), days=DAYS)
        monkeypatch.setitem(foragers.EXPERIMENTS, name, few)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Have a folder of recordings, which are made once."""
    return tmp_path_factory.mktemp("sites")


def made(sites: Path, folder: Path, experiment: str, *policies: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the benchmark, in this process; return its tables."""
    foragers.main([
        experiment, "--folder", str(sites), "--seeds", "1", "--jobs", "0", "--lines", str(folder / "runs.jsonl"),
        "--policies", *policies,
    ])  # fmt: skip
    return capsys.readouterr().out


def runs_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the runs that were written down, by policy."""
    lines = map(json.loads, (folder / "runs.jsonl").read_text().splitlines())
    return {each["policy"]: each for each in lines}


def test_the_nine_measures_are_shown_beside_the_published_ones(
    sites: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Foragers begin at ten pages and are paid for versions; one forager sends nothing twice."""
    shown = made(sites, tmp_path, "paper", "WL 2005", "RL 2005", "equal", capsys=capsys)
    runs = runs_of(tmp_path)
    assert [*runs] == ["WL 2005", "RL 2005", "equal"]
    for run in runs.values():
        assert run["downloaded"] == pytest.approx(PACE * DAYS, abs=2)
        assert 0 < run["relevant"] <= run["sent"]
        assert 0 < run["freshness"] <= 1
        assert run["sent efficiency"] == run["relevant"] / run["sent"]
    assert runs["equal"]["sent efficiency"] == 1 > runs["RL 2005"]["sent efficiency"]
    rows = shown.splitlines()
    assert rows[0] == "| small | WL 2005 | RL 2005 | equal | published: WL | RL | seeds in their order |"
    row = next(row for row in rows if row.startswith("| sent efficiency |")).split(" | ")
    assert row[1].startswith(f"{runs['WL 2005']['sent efficiency']:.3f} ± 0.000")
    assert row[4:6] == ["0.490", "0.248"]


def test_directions_are_counted_by_seed() -> None:
    """WL had the younger copies: in one of two seeds here, each compared with itself."""
    ages = {"WL 2005": [{"seed": 0, "age": 1.0}, {"seed": 1, "age": 3.0}], "RL 2005": [{"seed": 1, "age": 2.0}]}
    assert foragers.order(ages, "age", (1.56, 1.79)) == "0 of 1"
    ages["RL 2005"].append({"seed": 0, "age": 2.5})
    assert foragers.order(ages, "age", (1.56, 1.79)) == "1 of 2"
    assert foragers.order({}, "age", (1.56, 1.79)) == ""


def test_windows_without_the_first_day_say_how_even_a_crawl_is() -> None:
    """After a first day, one of 1 and 3 in turn, and one of 4: their mean is 3, the mean of squared differences 1.5."""
    windows = np.array([50.0] * 8 + [1.0, 3.0] * 4 + [4.0] * 8)
    expected = {"peak": pytest.approx(4 / 3), "deviation": pytest.approx(0.40825, abs=1e-5)}
    assert foragers.unevenness(windows) == expected
    assert np.isnan([*foragers.unevenness(windows[:8]).values()]).all()


def test_first_weights_are_drawn_again(sites: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two crawls of one site differ only by chance."""
    made(sites, tmp_path, "paper", "RL 2005", "--draws", "2", capsys=capsys)
    first, second = map(json.loads, (tmp_path / "runs.jsonl").read_text().splitlines())
    assert [(run["seed"], run["draw"]) for run in (first, second)] == [(0, 0), (0, 1)]
    assert first["sent"] != second["sent"]


def test_a_benchmark_is_resumed(
    sites: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written down is not made again, though a kill may have cut off the last line."""
    first = made(sites, tmp_path, "news", "restarts", "equal", capsys=capsys)
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    (tmp_path / "runs.jsonl").write_text(f"{lines[0]}\n{lines[1][:50]}\n")
    asked, really = [], foragers.crawl

    def crawl(task: foragers.Task, *rest: Any) -> dict[str, Any]:
        asked.append(task.policy)
        return really(task, *rest)

    monkeypatch.setattr(foragers, "crawl", crawl)
    again = made(sites, tmp_path, "news", "restarts", "equal", capsys=capsys)
    assert asked == ["equal"]
    without_time = [[row.rpartition(" | ")[0] for row in shown.splitlines()] for shown in (first, again)]
    assert without_time[0] == without_time[1]


def test_crawls_are_as_without_what_makes_them_quick(sites: Path) -> None:
    """What is born is what the site says, and the goals are those of the package; a second crawl is as the first."""
    task = foragers.Task("news", "small", PACE, "WL", 0, DAYS)
    path = foragers.record(sites, task)
    site = foragers.Site(path)
    born = NewsSite(SMALL, seed=0, days=DAYS).born(BEGIN + 2 * HOUR, BEGIN + 11 * HOUR)
    of_site = {site.ids[news.HOST + each.path]: each.at - BEGIN for each in born}
    assert births_of(site, 2 * HOUR, 11 * HOUR) == of_site
    truth = SiteTruth(site, news.NewsGoal())
    with foragers.reading_once():
        runs = [foragers.crawl(task, site, truth) for _ in range(2)]
    plain = dataclasses.replace(foragers.EXPERIMENTS["news"], goal=news.NewsGoal)
    foragers.EXPERIMENTS["news"] = plain
    runs.append(foragers.crawl(task, foragers.RecordedSite(path), truth))
    assert len({json.dumps({**run, "ms": 0}) for run in runs}) == 1
    assert runs[0]["relevant"] > 0
