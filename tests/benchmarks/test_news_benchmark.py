"""The benchmark of news, on a small site: what it counts, and what its baselines do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import news
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.sites.news.plan import HOUR, Manner

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have one small site and a short time."""
    monkeypatch.setattr(news, "SITES", {"near": Manner(sections=3, topics=9, archive=60)})
    monkeypatch.setattr(news, "DAYS", 1.0)
    monkeypatch.setattr(news, "FIRST", 6 * HOUR)
    monkeypatch.setattr(news, "LAST", 20 * HOUR)


@pytest.mark.usefixtures("small")
def test_all_policies_find_news(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that fetch again find nearly all, lists sooner than all pages; who starts anew each day finds nothing in the first."""
    lines = tmp_path / "runs.jsonl"
    for policy in news.POLICIES:
        done = news.run(tmp_path, "near", 2400, policy, 0)
        lines.open("a").write(json.dumps(done) + "\n")
    runs = {each["policy"]: each for each in map(json.loads, lines.read_text().splitlines())}
    assert {each["born"] for each in runs.values()} == {runs["equal"]["born"]}
    assert runs["equal"]["born"] > 60
    assert max(each["requests"] for each in runs.values()) == 2400
    for name in ("Revisits", "equal", "lists", "random"):
        assert runs[name]["recall"] > 0.95, name
        assert runs[name]["rewards"] > 0.9 * runs[name]["born"], name
        assert runs[name]["median"] <= runs[name]["90 %"]
    assert runs["Revisits"]["mean"] < runs["equal"]["mean"] / 2
    assert runs["lists"]["mean"] < runs["equal"]["mean"]
    assert runs["restarts"]["recall"] == 0
    shown = news.table(runs.values())
    assert shown.count("\n") == 1 + len(news.POLICIES)
    assert f"| near | 2,400 | equal | {runs['equal']['recall']:.3f} |" in shown


@pytest.mark.usefixtures("small")
def test_sites_are_recorded_once(tmp_path: Path) -> None:
    """With validators and dates, and all that is linked."""
    path = news.record(tmp_path, "near", 0)
    before = path.stat().st_mtime_ns
    assert news.record(tmp_path, "near", 0) == path
    assert path.stat().st_mtime_ns == before
    site = RecordedSite(path)
    assert site.completeness().missing == 0
    assert {"ETag", "Last-Modified", "Content-Type"} <= site.headers(site.roots[0]).keys()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
