"""The benchmark of picks in flight: its layouts and rules, its webs, and that it crawls until enough is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import cluster_harvest
from scrapy_focus.core.outstanding import most_out
from scrapy_focus.lab.recordings.format import RecordedSite
from scrapy_focus.lab.replay.leases import Leases

if TYPE_CHECKING:
    from pathlib import Path


def test_layouts_and_rules_are_read() -> None:
    """As they are written in the tables."""
    leases = Leases(workers=8, slots=4, ahead=2, per_host=3)
    assert vars(cluster_harvest.leases_of("8x4+2", "none", 3)) == vars(leases)
    assert cluster_harvest.leases_of("1x8+0", "built", None).most_out is most_out
    rule = cluster_harvest.rule_of("16:2:0.1:0.5")
    assert rule is not None
    assert [rule(0, 1), rule(100, 1), rule(1_000, 1), rule(100, 90)] == [16, 20, 100, 45]
    with pytest.raises(ValueError, match="8x4"):
        cluster_harvest.leases_of("8 workers", "none", None)


@pytest.mark.slow
def test_runs_are_made_once_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a web of a few hosts: a table has a row for each site and policy, and a column for each way."""
    path, output = tmp_path / "web.sqlite", tmp_path / "leases.jsonl"
    cluster_harvest.record_hosts(path, seed=0, hosts=2)
    site = RecordedSite(path)
    assert len(site.roots) == len(set(site.hosts)) == 2
    assert site.completeness().missing == 0
    arguments = [
        "run",
        str(path),
        "--policies",
        "default",
        "BFS",
        "--layouts",
        "2x4+4",
        "--per-host",
        "8",
        "--rules",
        "none",
    ]
    for seeds in ("1", "2"):
        cluster_harvest.main([*arguments, "--seeds", seeds, "--output", str(output)])
    runs = [json.loads(line) for line in output.read_text().splitlines()]
    made = [(each["policy"], each["layout"], each["rule"], each["seed"]) for each in runs]
    assert len(made) == len(set(made)) == 2 * (2 + 1)  # of an order without chance one
    assert all(each["requests"] <= each["all"] for each in runs)
    assert max(each["seconds"] for each in runs) > 100 > min(each["seconds"] for each in runs)
    capsys.readouterr()
    for until in ("requests", "tenth"):
        cluster_harvest.main(["tables", str(output), *(["--until", until] if until != "requests" else [])])
        shown = capsys.readouterr().out
        assert shown.count("\n") == 6
        one, many = (
            sum(each[until] for each in runs if each["policy"] == "default" and each["layout"] == layout) / n
            for layout, n in (("1x1+0", 2), ("2x4+4", 2))
        )
        assert f"| {one:,.0f}" in shown
        assert f"({many / one - 1:+.0%})" in shown
