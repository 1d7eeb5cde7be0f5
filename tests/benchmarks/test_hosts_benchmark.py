"""The benchmark of many hosts: it resumes where it was, on several webs, and says by hand who is above whom."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import hosts
from hosts_tables import Marks, Run, read, rivals

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

COMMAND = ["--hosts", "6000", "--budget", "120", "--runs", "1", "--topics", "beekeeping", "--caps", "5"]


def test_resumes_on_several_webs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs that are in the output are not made again; the same policy finds other pages on another web."""
    output = tmp_path / "hosts.json"
    command = [*COMMAND, "--output", str(output), "--policies", "tree", "asynchronous"]
    hosts.main(command)
    first = read(output)
    first[0].marks[-1].harvest = 0.987
    kept = json.loads(output.read_text())
    kept["runs"][0]["marks"][-1]["harvest"] = 0.987
    output.write_text(json.dumps(kept))
    hosts.main([*command, "--web-seeds", "1", "2"])
    runs = read(output)
    assert runs[:2] == first
    assert sorted((run.policy, run.web) for run in runs) == sorted(
        (p, w) for p in ("tree", "asynchronous") for w in (1, 2)
    )
    assert runs[2].marks[-1].harvest != first[0].marks[-1].harvest
    out = capsys.readouterr().out
    assert "| 5 | 2, beekeeping |" in out
    assert "Above:" in out
    hosts.main([*command, "--tables-only"])
    assert read(output) == runs
    with pytest.raises(SystemExit):
        hosts.main([*command, "--budget", "121"])


@pytest.mark.parametrize("name", [*hosts.POLICIES])
@pytest.mark.parametrize("cap", ["none", "5-2"])
def test_each_policy_keeps_to_a_cap(name: str, cap: str) -> None:
    """Each of them crawls to the end of the budget, and gives to a domain what the cap leaves it."""
    run = hosts.do((name, "beekeeping", cap, 0, 1, 3), budget=90, n_hosts=6_000)
    assert (run.policy, run.cap, run.web, run.ended) == (name, cap, 3, "budget_requests")
    assert run.marks[-1].fetches == 90
    assert run.marks[-1].harvest == run.relevant / 90
    if cap != "none":
        assert run.relevant <= 5 * run.marks[-1].domains


def test_relevant_domains() -> None:
    """Equation 7 (section 3.1) counts domains: two of the 23 relevant hosts are of one."""
    run = hosts.do(("best-first", "beekeeping", "none", 0, 1, 3), budget=200, n_hosts=6_000)
    assert (run.marks[-1].hosts, run.marks[-1].domains) == (23, 22)


def made(policy: str, seed: int, harvest: float, domains: int) -> Run:
    """Return a run that ended with so much."""
    last = Marks(
        fetches=10, harvest=harvest, hosts=9, domains=domains, seen_hosts=9, waiting=0, leaves=0, step_ms=0, worst_ms=0
    )
    return Run(policy=policy, topic="t", cap="10", seed=seed, in_flight=1, web=4, marks=[last])


@pytest.mark.parametrize(
    ("harvest", "domains", "word"),
    [(0.5, 4, "above"), (0.6, 3, "above"), (0.6, 4, "**level**"), (0.7, 3, "**mixed**"), (0.7, 4, "**below**")],
)
def test_above_by_hand(harvest: float, domains: int, word: str) -> None:
    """Above is at least as much of both, and more of one; only common seeds count."""
    runs = [made("a", 0, 0.6, 4), made("a", 1, 0.0, 0), made("b", 0, harvest, domains), made("b", 2, 1.0, 99)]
    table = rivals(runs, "a", ["b", "c"])
    assert f"| 10 | 4, t | 0.300 ± 0.424, 2 ± 3 | {harvest:.3f}, {domains}: {word} |  |" in table
    assert table.endswith(f"Above: {int(word == 'above')} of 1.")
