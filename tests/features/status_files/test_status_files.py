"""Files that show other programs the state of a crawl: while it runs, and when it has ended."""

from __future__ import annotations

import json
from asyncio import sleep
from typing import TYPE_CHECKING, Any

import pytest
from crawls import Follower, crawl
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from scrapy_focus import ConfigError
from scrapy_focus.engine.ending import ending_of
from scrapy_focus.features.status_files.metrics import metrics_of
from scrapy_focus.finders.files.spider import DatasetsSpider
from scrapy_focus.jobs.doctor.status import read_status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mocksite import MockSite
    from scrapy.http import Response

pytestmark = pytest.mark.reactor


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def samples(text: str) -> dict[tuple[str, str], float]:
    """Return the samples of an OpenMetrics text, by name and last label."""
    families = list(text_string_to_metric_families(text))
    return {
        (each.name, [*each.labels.values()][-1] if len(each.labels) > 2 else ""): each.value
        for family in families
        for each in family.samples
    }


def test_both_files_say_what_the_crawl_did(site: MockSite, tmp_path: Path) -> None:
    """The JSON agrees with the stats, the ending and ``focus status --json``; the metrics agree with the JSON."""
    job = tmp_path / "job"
    settings = {
        "FOCUS_STATS_FILE": str(tmp_path / "new" / "stats.json"), "FOCUS_METRICS_FILE": str(tmp_path / "crawl.prom"),
        "FOCUS_BUDGET_REQUESTS": 10, "FOCUS_BUDGET_SECONDS": "1h", "JOBDIR": str(job),
    }  # fmt: skip
    crawled = crawl(Follower, settings, seeds=[site.url("/page/0/60"), site.url("/status?code=404")])
    said, ending = read(tmp_path / "new" / "stats.json"), ending_of(crawled.crawler)
    assert said["state"] == "ended"
    assert said["ending"] == {
        "kind": ending.kind, "status": ending.status, "reason": "focus_budget_requests", "sentence": ending.sentence,
    }  # fmt: skip
    assert said["used"]["requests"] == len(site.log) == 10
    assert said["used"]["bytes"] == crawled.stats["focus/bytes"]
    assert said["limits"] == {"requests": 10, "bytes": None, "seconds": 3600.0}
    assert said["left"]["requests"] == 0
    status = read_status(job)
    for name in ("jobdir", "spider", "policy", "limits", "outcomes", "rewards", "rate"):
        assert said[name] == status[name], name
    assert {name: status["links"][name] for name in said["links"]} == said["links"]
    metrics = samples((tmp_path / "crawl.prom").read_text())
    assert metrics["focus_requests_total", ""] == 10
    assert metrics["focus_received_bytes_total", ""] == said["used"]["bytes"]
    assert metrics["focus_outcomes_total", "http_error"] == 1
    assert metrics["focus_budget", "seconds"] == 3600
    assert metrics["focus_waiting_links", ""] == said["links"]["waiting"] > 0
    assert metrics["focus_running", ""] == metrics["focus_exit_status", ""] == 0
    assert metrics["focus_ending_info", "focus_budget_requests"] == 1
    assert not [path.name for path in tmp_path.rglob("*.tmp")]


class Waiting(Follower):
    """Waits on its page until each of some conditions was true."""

    name = "waiting"

    def __init__(self, conditions: list[Callable[[], bool]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.conditions = conditions

    async def parse(self, response: Response) -> AsyncIterator[Any]:  # type: ignore[override]
        for is_true in self.conditions:
            while not is_true():
                await sleep(0.01)
        yield {"url": response.url}


def test_they_are_rewritten_while_the_crawl_runs(site: MockSite, tmp_path: Path) -> None:
    """Each version is whole, and a later one knows of the first page."""
    path = tmp_path / "stats.json"
    versions: list[dict[str, Any]] = []

    def knows_of_page() -> bool:
        versions.append(read(path))
        return bool(versions[-1]["used"]["requests"])

    settings = {"FOCUS_STATS_FILE": str(path), "FOCUS_STATS_INTERVAL": "0.1s"}
    crawl(Waiting, settings, conditions=[knows_of_page], seeds=[site.url("/ok")])
    assert {version["state"] for version in versions} == {"running"}
    assert versions[-1]["links"]["in_flight"] == 1
    assert read(path)["state"] == "ended"


def test_a_failed_write_is_one_warning(site: MockSite, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The crawl continues; when the folder exists again, so does the file."""
    path = tmp_path / "folder" / "stats.json"
    elsewhere = tmp_path / "elsewhere"

    def failed() -> bool:
        if path.parent.exists():
            path.parent.rename(elsewhere)
        return "cannot be written any more" in caplog.text

    def is_back() -> bool:
        path.parent.mkdir(exist_ok=True)
        return path.exists()

    settings = {"FOCUS_STATS_FILE": str(path), "FOCUS_STATS_INTERVAL": 0.1}
    crawled = crawl(Waiting, settings, conditions=[failed, is_back], seeds=[site.url("/ok")])
    assert crawled.reason == "finished"
    assert len(crawled.logged("cannot be written any more")) == 1
    assert read(path)["state"] == "ended"


@pytest.mark.parametrize("name", ["FOCUS_STATS_FILE", "FOCUS_METRICS_FILE"])
def test_a_file_that_cannot_be_written_is_refused_at_once(site: MockSite, name: str, tmp_path: Path) -> None:
    """Nothing is requested."""
    with pytest.raises(ConfigError, match=rf"^{name} is .*, which cannot be written: "):
        crawl(Follower, {name: str(tmp_path)}, seeds=[site.url("/ok")])
    one = {"FOCUS_STATS_FILE": str(tmp_path / "a"), "FOCUS_METRICS_FILE": str(tmp_path / "a")}
    with pytest.raises(ConfigError, match="are the same file"):
        crawl(Follower, one, seeds=[site.url("/ok")])
    (tmp_path / "list").write_text('{"url": "http://a.test/"}\n')
    with pytest.raises(ConfigError, match="has other contents, and would be overwritten"):
        crawl(Follower, {name: str(tmp_path / "list")}, seeds=[site.url("/ok")])
    assert not site.log
    for _ in range(2):  # its own file is replaced
        crawl(Follower, {name: str(tmp_path / "own")}, seeds=[site.url("/ok")])


def test_a_crawl_without_them_does_nothing_for_them(site: MockSite) -> None:
    """No feature, and no timer, exists."""
    crawled = crawl(Follower, {}, seeds=[site.url("/ok")])
    assert "status_files" not in {feature.name for feature in crawled.scheduler.focus_host.features}


def test_labels_are_escaped() -> None:
    """Whatever a folder, a spider or an error is called."""
    odd = 'a "b" \\ c\nd{e="f"} 1'
    status: dict[str, Any] = {
        "state": "running", "updated": "2026-11-29T13:21:39+00:00", "process": 1, "spider": odd, "jobdir": odd,
        "used": {"requests": 1, "bytes": 2.0, "seconds": 1.5}, "rewards": 0.25, "items": 3, "ending": None,
        "links": {"waiting": 1, "asleep": 0, "in_flight": 1}, "counts": {f"error/{odd}": 2},
        "limits": {"requests": None}, "expected": {"low": 1.0, "middle": 2.5, "high": 4.0},
    }  # fmt: skip
    text = metrics_of(status)
    [errors] = [each for each in text_string_to_metric_families(text) if each.name == "focus_errors"]
    assert errors.samples[0].labels == {"spider": odd, "crawl": odd, "part": odd}
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert all(family.documentation for family in families.values())
    assert {name: families[name].type for name in ("focus_requests", "focus_running")} == {
        "focus_requests": "counter", "focus_running": "gauge",
    }  # fmt: skip
    assert families["focus_received_bytes"].unit == "bytes"
    assert samples(text)["focus_expected_finds", "middle"] == 2.5


def test_a_finder_takes_them_as_arguments(site: MockSite, tmp_path: Path) -> None:
    """Of its spider, and so as options of its command."""
    files = {"stats_file": str(tmp_path / "a.json"), "metrics_file": str(tmp_path / "a.prom")}
    crawl(DatasetsSpider, {}, addon=True, root=site.url("/ok"), out=str(tmp_path / "out"), **files)
    assert read(tmp_path / "a.json")["noun"] == "files"
    assert samples((tmp_path / "a.prom").read_text())["focus_exit_status", ""] == 3
