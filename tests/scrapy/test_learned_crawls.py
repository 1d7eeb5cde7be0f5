"""Whole crawls that write what they learned, and whole crawls that begin with it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Crawled, Follower, crawl

from scrapy_focus.lab.sites.portal.portal import StatisticsPortal
from scrapy_focus.lab.sites.server import SiteServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mocksite import MockSite

sys.path.insert(0, str(Path(__file__).parents[2] / "example_project"))
from scrapy_focus.core.errors import ConfigError
from scrapy_focus.engine.ending import ending_of
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.policies.revisits import Revisits

ADDON = pytest.mark.parametrize("addon", [False, True], ids=["scheduler", "addon"])


@pytest.fixture(scope="module")
def portal() -> Iterator[SiteServer]:
    """A portal with some hundred files."""
    with SiteServer(StatisticsPortal(pages=300, seed=2, endless=False)) as server:
        yield server


def visit(portal: SiteServer, out: Path, budget: int, **settings: Any) -> Crawled:
    """Crawl the portal with the spider ``datasets`` and one request in flight, so that it can be repeated."""
    common = {"FOCUS_MAX_INFLIGHT": 1, "COOKIES_ENABLED": False}
    args = {"root": portal.url, "budget": str(budget), "out": str(out)}
    result = crawl(DatasetsSpider, {**common, **settings}, addon=True, **args)
    assert result.errors == {}
    return result


@pytest.mark.slow
def test_what_one_crawl_learned_helps_the_next(portal: SiteServer, tmp_path: Path) -> None:
    """With FOCUS_LEARNED_TO and then FOCUS_LEARNED_FROM, the second crawl finds more with 80 requests than without."""
    learned = tmp_path / "learned.npz"
    first = visit(portal, tmp_path / "1", 400, FOCUS_LEARNED_TO=str(learned), FOCUS_SEED=1)
    assert first.logged(f"What was learned is in {learned}")
    assert 1000 < learned.stat().st_size < 200_000
    found: dict[str, float] = {"": 0, str(learned): 0}
    for name in found:
        for seed in range(3):
            result = visit(portal, tmp_path / f"{seed}{bool(name)}", 80, FOCUS_LEARNED_FROM=name, FOCUS_SEED=seed)
            found[name] += result.stats["focus/reward"]
            assert result.scheduler.crawl.policy.learned == name
    cold, warm = found.values()
    assert warm > 1.1 * cold > 0  # 1.55 times


@ADDON
def test_what_was_learned_is_written_however_a_crawl_ends(site: MockSite, tmp_path: Path, addon: bool) -> None:
    """By its budget, by Scrapy, or because nothing is left; an existing file is replaced."""
    path = tmp_path / "learned.npz"
    sizes = []
    for settings in ({"FOCUS_BUDGET_REQUESTS": 3}, {"CLOSESPIDER_PAGECOUNT": 20}, {}):
        crawl(
            Follower,
            {**settings, "FOCUS_LEARNED_TO": str(path), "FOCUS_SEED": 0},
            addon=addon,
            seeds=[site.url("/page/0/60")],
        )
        sizes.append(path.read_bytes())
    assert len({*sizes}) == 3
    assert [each.name for each in tmp_path.iterdir()] == ["learned.npz"]


def test_a_job_resumes_with_its_original_file(site: MockSite, tmp_path: Path) -> None:
    """The file is read once: a resumed crawl has its own record, and its learned state is written again."""
    path = tmp_path / "learned.npz"
    seeds = [site.url("/page/0/120")]
    crawl(Follower, {"FOCUS_LEARNED_TO": str(path), "FOCUS_BUDGET_REQUESTS": 60}, seeds=seeds)
    site.log.clear()
    job = {
        "JOBDIR": str(tmp_path / "job"),
        "FOCUS_LEARNED_FROM": str(path),
        "FOCUS_LEARNED_TO": str(tmp_path / "later.npz"),
    }
    first = crawl(Follower, {**job, "FOCUS_BUDGET_REQUESTS": 40}, seeds=seeds)
    assert first.reason == "focus_budget_requests"
    known = first.scheduler.crawl.policy.arms.known().records.sum()
    second = crawl(Follower, {**job, "FOCUS_BUDGET_REQUESTS": 500}, seeds=seeds)
    assert second.reason == "finished"
    assert sorted(site.paths) == sorted(f"/page/{i}/120" for i in range(120))
    assert second.scheduler.crawl.policy.steps == 120
    assert second.scheduler.crawl.policy.arms.known().records.sum() > known
    assert (tmp_path / "later.npz").stat().st_size > 500


def test_a_crawl_with_revisits_starts_with_what_another_learned(site: MockSite, tmp_path: Path) -> None:
    """Its own pages that are known are no part of it."""
    path = tmp_path / "learned.npz"
    settings = {"FOCUS_POLICY": Revisits, "FOCUS_BUDGET_REQUESTS": 30, "FOCUS_LEARNED_TO": str(path)}
    for begin in ({}, {"FOCUS_LEARNED_FROM": str(path)}):
        result = crawl(Follower, {**settings, **begin}, seeds=[site.url("/page/0/60")])
        assert result.errors == {}
        assert result.reason == "focus_budget_requests"
    assert result.policy.new.arms.known().records.sum() > 0


class Wrecker(Follower):
    """Puts a file in place of the folder for the learned state."""

    def parse(self, response: Any) -> Any:
        folder = Path(self.settings["FOCUS_LEARNED_TO"]).parent
        if folder.is_dir():
            folder.rmdir()
            folder.touch()
        yield from super().parse(response)


def test_a_folder_that_is_not_there_is_made(site: MockSite, tmp_path: Path) -> None:
    """At the start, so that nothing is lost at the end."""
    learned = tmp_path / "not/yet/learned.npz"
    result = crawl(Follower, {"FOCUS_LEARNED_TO": str(learned)}, seeds=[site.url("/page/0/20")])
    assert result.errors == {}
    assert [path.name for path in learned.parent.iterdir()] == [learned.name]
    assert ending_of(result.crawler).status == 0


@pytest.mark.parametrize("setting", ["FOCUS_LEARNED_TO", "FOCUS_LOG"])
@pytest.mark.parametrize("path", ["/proc/no/file", "file/below", "."])
def test_a_file_that_cannot_be_written_is_refused(
    site: MockSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, path: str, caplog: Any
) -> None:
    """One line names the setting, and nothing is requested, nor any job begun."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="which cannot be written"):
        crawl(Follower, {setting: path}, seeds=[site.url("/page/0/20")])
    [said] = [record.getMessage() for record in caplog.records if "cannot start" in record.getMessage()]
    assert f"{setting} is '{path}', which cannot be written: " in said
    assert not site.log
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_log_that_finds_no_room(site: MockSite) -> None:
    """The loss is reported without a traceback, and the process ends with status 1."""
    result = crawl(Follower, {"FOCUS_LOG": "/dev/full"}, seeds=[site.url("/page/0/20")])
    assert len(result.items) == 20
    assert set(result.errors) == {"log"}
    said = [record for record in result.records if "No space left" in record.getMessage()]
    assert said
    assert not any(record.exc_info for record in said)
    assert ending_of(result.crawler).status == 1


def test_what_cannot_be_written_in_the_end(site: MockSite, tmp_path: Path) -> None:
    """It is logged in a line and counted, all else is closed as usual, and the process ends with status 1."""
    folder = tmp_path / "learned"
    settings = {"FOCUS_LEARNED_TO": str(folder / "learned.npz"), "JOBDIR": str(tmp_path / "job")}
    result = crawl(Wrecker, settings, seeds=[site.url("/page/0/20")])
    assert result.reason == "finished"
    assert result.errors == {"save": 1}
    [said] = [record for record in result.records if "learned.npz" in record.getMessage()]
    assert "cannot be written" in said.getMessage()
    assert not said.exc_info
    assert len(result.items) == 20
    assert ending_of(result.crawler).status == 1
