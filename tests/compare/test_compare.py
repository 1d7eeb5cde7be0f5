"""Comparisons: what they compute, what they do when a run goes wrong, and how policies are named."""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from concurrent.futures import wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from compared import USER_MODULE, comparison, record
from rich.console import Console

from scrapy_focus import ConfigError, FilesGoal, Link, Outcome
from scrapy_focus.core.errors import RecordingError
from scrapy_focus.lab.compare import runs
from scrapy_focus.lab.compare.comparison import Comparison, compare
from scrapy_focus.lab.compare.folder import write
from scrapy_focus.lab.compare.losses import losses
from scrapy_focus.lab.compare.runs import read_latency
from scrapy_focus.lab.compare.specs import PolicySpec, known_policies, paper_names
from scrapy_focus.lab.compare.tables import found_table, loss_table, terminal_table
from scrapy_focus.lab.compare.words import cell_text, headline, number, value_text, warnings_of
from scrapy_focus.lab.replay.metrics import METRICS, summary
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.policies.orderings import BreadthFirst, DepthFirst, Random
from scrapy_focus.policies.tagpath.policy import TagPath
from tests.made import HANG

if TYPE_CHECKING:
    from rich.table import Table

inf, nan = math.inf, math.nan


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("sites")
    return [record(folder / "one.sqlite", seed=0), record(folder / "two.sqlite", seed=1)]


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module of a user, which other processes can import too."""
    name = f"user_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(USER_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def identical(left: Comparison, right: Comparison) -> bool:
    return [(run.site, run.policy, run.seed, run.metrics) for run in left.runs] == [
        (run.site, run.policy, run.seed, run.metrics) for run in right.runs
    ]


# Numbers


def test_numbers_are_those_of_simulate(sites: list[Path]) -> None:
    """Other processes give the metrics that a simulation gives here, and the table their mean and deviation."""
    seen: list[tuple[int, int]] = []
    found = compare(
        ["RANDOM", "BFS"], sites, seeds=[3, 5], jobs=2, progress=lambda run, done, all_: seen.append((done, all_))
    )
    assert [(run.site, run.policy, run.seed) for run in found.runs] == [
        (site, policy, seed) for site in ("one", "two") for policy in ("RANDOM", "BFS") for seed in (3, 5)
    ]
    assert seen == [(done, 8) for done in range(1, 9)]
    values = []
    for seed in (3, 5):
        harvest = simulate(Random(), FilesGoal(), sites[1], seed=seed)
        (run,) = (run for run in found.of("two", "RANDOM") if run.seed == seed)
        assert run.metrics == summary(harvest)
        assert run.curve is not None
        assert run.curve.found[-1] == 100
        assert len(run.curve.found) <= 400
        assert run.curve.requests[-1] == pytest.approx(100 * harvest.requests / harvest.exhaustive.requests, abs=1e-3)
        values.append(summary(harvest)["requests_90"])
    cell = found.table("requests_90")["two", "RANDOM"]
    assert cell.mean == pytest.approx(statistics.mean(values))
    assert cell.sd == pytest.approx(statistics.stdev(values))
    assert (cell.n, cell.never, cell.failed) == (2, 0, 0)
    facts = found.sites["two"]
    assert facts is not None
    assert facts.exhaustive == harvest.exhaustive
    assert facts.completeness.finished


def test_one_process_gives_the_same(sites: list[Path]) -> None:
    """With one job nothing leaves this process, classes stand for policies too, and the numbers are the same."""
    classes = compare([BreadthFirst, DepthFirst], sites[:1], seeds=range(2), jobs=1)
    names = compare(["BreadthFirst", "DepthFirst"], sites[:1], seeds=range(2), jobs=2)
    assert identical(classes, names)


@pytest.mark.slow
def test_conditions_reach_the_simulation(sites: list[Path], user: str) -> None:
    """Budget, requests in flight, latency, extensions and goal are those that were asked for; goals are copied."""
    counting = importlib.import_module(user).Pages()
    given: dict[str, Any] = {"budget": 150, "concurrency": 4, "ignored": ()}
    found = compare(["SB-CLASSIFIER"], sites[:1], goal=counting, seeds=[1, 2], latency="lognormal:0.3", jobs=2, **given)
    assert counting.seen == 0
    for run in found.runs:
        latency = read_latency("lognormal:0.3", None)
        own = simulate(TagPath(), type(counting)(), sites[0], seed=run.seed, latency=latency, **given)
        assert run.metrics == summary(own)
        assert run.metrics["requests"] == 150
        assert run.metrics["seconds"] > 0
        assert run.stopped == "budget_requests"


def test_each_run_has_a_goal_of_its_own(sites: list[Path], user: str) -> None:
    """A goal that remembers what it saw starts anew with each run, also where all runs are made in one process."""
    counting = importlib.import_module(user).Pages()
    found = compare(["BFS"], sites[:1], goal=counting, seeds=[1, 2], jobs=1)
    assert counting.seen == 0
    assert found.runs[0].metrics == found.runs[1].metrics
    assert found.runs[1].metrics["found"] > 10


def test_shares_never_reached_are_not_averaged() -> None:
    """A mean with a run that never got there is infinite, and what is shown counts such runs."""
    found = comparison({"s": {"BFS": [40.0, 50.0, 60.0], "RANDOM": [50.0, inf, inf], "DFS": [inf, inf, inf]}})
    table = found.table("requests_90")
    assert table["s", "BFS"].mean == 50
    assert table["s", "RANDOM"].mean == inf
    assert math.isnan(table["s", "RANDOM"].sd)
    assert cell_text(table["s", "BFS"], "requests_90") == "50.0 ± 10.0"
    assert cell_text(table["s", "RANDOM"], "requests_90") == "never (2 of 3 seeds), else 50.0"
    assert cell_text(table["s", "RANDOM"], "requests_90", budget=100) == "> budget (2 of 3 seeds), else 50.0"
    assert cell_text(table["s", "DFS"], "requests_90") == "never (3 of 3 seeds)"
    assert found.best("s", "requests_90") == ["BFS"]


def test_paired_differences_by_hand() -> None:
    """Differences are taken by site and seed; ratios by site, and the geometric mean of them counts each site once."""
    found = comparison(
        {
            "a": {"BFS": [40.0, 60.0, 50.0], "RANDOM": [20.0, 28.0, 27.0]},
            "b": {"BFS": [10.0, 10.0, 10.0], "RANDOM": [20.0, 20.0, 20.0]},
            "c": {"BFS": [10.0, 10.0, 10.0], "RANDOM": [11.0, 5.0, 15.0]},
            "d": {"BFS": [10.0, 10.0, 10.0], "RANDOM": [1.0, inf, 1.0]},
            "e": {"BFS": [inf, 10.0, 10.0], "RANDOM": [1.0, 30.0, 30.0]},
            "f": {"BFS": [inf, inf, inf], "RANDOM": [inf, inf, inf]},
        }
    )
    # on d and e, one gets there with more seeds, and is behind with those with which both do
    contrast = found.paired("requests_90")["RANDOM"]
    differences = [-20, -32, -23, 10, 10, 10, 1, -5, 5, -9, -9, 20, 20]
    assert contrast.pairs.difference == pytest.approx(np.mean(differences))
    assert contrast.pairs.sd == pytest.approx(np.std(differences, ddof=1))
    assert (contrast.pairs.n, contrast.pairs.only_a, contrast.pairs.only_b) == (13, 1, 1)
    assert contrast.ratios == pytest.approx({"a": 0.5, "b": 2.0, "c": 31 / 30})
    assert contrast.ratio == pytest.approx((0.5 * 2 * 31 / 30) ** (1 / 3))
    assert contrast.verdicts == {
        "a": "better",
        "b": "worse",
        "c": "unclear",
        "d": "unclear",
        "e": "unclear",
        "f": "neither",
    }
    assert set(found.paired("requests_90", "RANDOM")) == {"BFS"}
    assert found.paired("area")["RANDOM"].verdicts["a"] == "unclear"  # equal
    with pytest.raises(ConfigError, match="baseline 'DFS' is not compared"):
        found.paired("requests_90", "DFS")


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([20.0], [50.0], "unclear"),
        ([20.0], [inf], "unclear"),
        ([20.0, 20.0], [50.0, inf], "better"),
        ([50.0, 20.0], [20.0, inf], "unclear"),
        ([20.0, inf], [50.0, 20.0], "unclear"),
        ([50.0, inf], [50.0, 20.0], "worse"),
        ([20.0, 20.0], [inf, inf], "better"),
        ([inf, 20.0], [20.0, inf], "unclear"),
        ([20.0, inf], [50.0, inf], "unclear"),
        ([inf, inf], [inf, inf], "neither"),
        ([20.0, 20.0], [50.0, 50.0], "better"),
        ([20.0, 60.0], [50.0, 50.0], "unclear"),
    ],
)
def test_what_is_called_clear(ours: list[float], theirs: list[float], verdict: str) -> None:
    """Nothing with a single seed, or where one gets there more often and the other one earlier."""
    found = comparison({"s": {"BFS": theirs, "RANDOM": ours}})
    assert found.paired("requests_90")["RANDOM"].verdicts == {"s": verdict}
    turned = {"better": "worse", "worse": "better"}
    assert found.paired("requests_90", "RANDOM")["BFS"].verdicts == {"s": turned.get(verdict, verdict)}


def test_more_can_be_better() -> None:
    """The verdict and the best follow the direction of the metric; who is told the truth is not the best."""
    values = {"s": {"BFS": [0.5, 0.6], "RANDOM": [0.7, 0.8], "OMNISCIENT": [1.0, 1.0]}}
    found = comparison(values, metric="area")
    assert found.paired("area")["RANDOM"].verdicts == {"s": "better"}
    assert found.best("s", "area") == ["RANDOM"]
    assert found.informed == {"OMNISCIENT"}


# Words


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"a": [20.0, 22.0, 21.0], "b": [25.0, 30.0, 20.0], "c": [60.0, 61.0, 62.0], "d": [50.0, 30.0, 70.0]},
            "RANDOM needs 29 % fewer requests than BFS to find 90 % of what there is (geometric mean over 4 sites): it "
            "is clearly better on 2 of 4 (a and b), clearly worse on c, no difference is clear on d.",
        ),
        ({"a": [20.0, 22.0]}, "RANDOM needs 58 % fewer requests than BFS to find 90 % of what there is on a."),
        (
            {"a": [20.0, 90.0]},
            "RANDOM needs 10 % more requests than BFS to find 90 % of what there is on a, but the difference is not "
            "clear.",
        ),
        (
            {"a": [inf, 20.0]},
            "RANDOM got there in 1 of 2 crawls, BFS in 2 (requests until 90 %) on a, but the difference is not clear.",
        ),
        ({"a": [inf, 50.0]}, "RANDOM got there in 1 of 2 crawls, BFS in 2 (requests until 90 %) on a."),
    ],
)
def test_the_headline_says_what_the_numbers_say(values: dict[str, list[float]], sentence: str) -> None:
    """Gains and losses are named with their sites, and nothing is claimed that may be luck."""
    made = comparison({site: {"BFS": [50.0] * len(numbers), "RANDOM": numbers} for site, numbers in values.items()})
    assert headline(made, "requests_90", "RANDOM", made.paired("requests_90")["RANDOM"]) == sentence


def test_warnings_say_what_to_know_first() -> None:
    """Failures, incomplete recordings, requests to what was never recorded, and a single seed are named."""
    made = comparison({"s": {"BFS": [50.0], "RANDOM": [nan]}}, complete=False)
    made.runs[0].metrics["missed"] = 12.0
    text = "\n".join(warnings_of(made))
    assert "1 of 2 runs failed, and are in no mean." in text
    assert "The recording of s is not complete: 190 URLs are recorded, 10 linked ones are not (95.0%)" in text
    assert "On s up to 12 requests of a crawl went to URLs that were never recorded" in text
    assert "There is one seed" in text
    assert not warnings_of(comparison({"s": {"BFS": [50.0, 51.0]}}))


def test_sites_with_nothing_to_find_say_nothing() -> None:
    """They are named, have no numbers and no best policy, and are in no difference."""
    values = {"BFS": [50.0, 50.0], "RANDOM": [20.0, 30.0]}
    made = comparison({"a": values, "b": {"BFS": [0.0, 0.0], "RANDOM": [0.0, 0.0]}})
    facts = made.sites["b"]
    assert facts is not None
    made.sites["b"] = replace(facts, exhaustive=replace(facts.exhaustive, worth=0.0))
    contrast = made.paired("requests_90")["RANDOM"]
    assert (contrast.pairs.n, contrast.verdicts) == (2, {"a": "unclear"})
    assert made.best("b", "requests_90") == []
    assert value_text(made, "b", "RANDOM", "requests_90") == "nothing to find"
    assert value_text(made, "a", "RANDOM", "requests_90") == "25.0 ± 7.1"
    assert warnings_of(made)[0].startswith("There is nothing to find on b: no recorded URL is a target.")
    made.sites.pop("a")
    told = headline(made, "requests_90", "RANDOM", made.paired("requests_90")["RANDOM"])
    assert told == "RANDOM and BFS cannot be compared: there is nothing to find."


def test_the_terminal_table_has_it_all() -> None:
    """The table has every site and policy, its spread and its ratio to the baseline; names are no markup."""
    made = comparison({"s[bold]": {"BFS": [50.0, 50.0], "RANDOM": [20.0, 30.0], "OMNISCIENT": [nan, nan]}})
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
    console.print(terminal_table(made, ["requests_90", "area"]))
    text = console.export_text()
    assert "s[bold]" in text
    assert "25.0 ± 7.1" in text
    assert "x 0.50" in text
    assert "OMNISCIENT *" in text
    assert "failed" in text


def printed(table: Table) -> str:
    """Return what a table looks like in a terminal."""
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_the_first_requests_have_a_table() -> None:
    """It has a column for each number of requests, and no ratios; an earlier run without the metric has a dash."""
    made = comparison({"s": {"BFS": [4.0, 6.0], "RANDOM": [9.0, 9.0]}}, metric="found_at_100")
    for run in made.of("s", "RANDOM"):
        del run.metrics["found_at_300"]
    rows = printed(found_table(made, ["found_at_100", "found_at_300"])).splitlines()
    assert any("5 ± 1.4" in row and "1 ± 0" in row for row in rows if "BFS" in row)
    assert any("9 ± 0" in row and "-" in row for row in rows if "RANDOM" in row)
    assert "s" not in made.paired("found_at_300")["RANDOM"].ratios


def test_losses_are_counted_from_the_link_floor() -> None:
    """Each stage has the requests beyond the floor; what was never reached is said, and without a floor all is."""
    made = comparison({"s": {"BFS": [50.0], "DFS": [inf], "LINK-FLOOR": [20.0]}}, metric="early_requests")
    assert [(loss.policy, loss.requests) for loss in losses(made)] == [("BFS", [30, 0, 0]), ("DFS", [inf, 0, 0])]
    table = loss_table(made)
    assert table is not None
    assert any("never" in row for row in printed(table).splitlines() if "DFS" in row)
    assert loss_table(comparison({"s": {"BFS": [50.0]}})) is None
    headlined = comparison({"s": {"BFS": [50.0, 50.0], "RANDOM": [60.0, 60.0]}}, metric="found_at_1000")
    said = headline(headlined, "found_at_1000", "RANDOM", headlined.paired("found_at_1000")["RANDOM"])
    assert said == "RANDOM finds 20 % more targets than BFS in the first 1,000 requests on s."


# Runs that go wrong


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_policy_does_not_stop_the_others(sites: list[Path], user: str, jobs: int) -> None:
    """An exception or ``sys.exit()`` in a policy is recorded with its traceback, and everything else is done."""
    found = compare(["BFS", f"{user}.Failing", f"{user}.Leaving"], sites[:1], seeds=range(2), jobs=jobs)
    assert len(found.runs) == 6
    assert {run.policy for run in found.failures} == {"Failing", "Leaving"}
    assert "RuntimeError: no idea <b>" in found.failures[0].error
    assert "in rank" in found.failures[0].error
    assert found.table("requests_90")["one", "BFS"].n == 2
    assert cell_text(found.table("requests_90")["one", "Failing"], "requests_90") == "failed"
    assert not found.paired("requests_90")["Failing"].verdicts


@pytest.mark.slow
def test_a_process_that_dies_takes_one_run_along(sites: list[Path], user: str) -> None:
    """Where a run kills its process, that run failed, and all others are made."""
    found = compare(["BFS", f"{user}.Dying", "DFS"], sites[:1], seeds=range(1), jobs=2)
    assert [run.policy for run in found.failures] == ["Dying"]
    assert "died without a word" in found.failures[0].error
    assert len(found.runs) == 3


@pytest.mark.slow
def test_what_is_done_when_a_process_dies_is_kept(
    sites: list[Path], user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was done before is not made again, let alone blamed, in whatever order the news of both come."""

    def last_first(futures: dict[Any, int]) -> list[Any]:
        wait(futures)
        return sorted(futures, key=lambda future: future.exception() is None)

    monkeypatch.setattr(runs, "as_completed", last_first)
    found = compare(["BFS", f"{user}.Dying", "DFS"], sites[:1], seeds=range(1), jobs=2)
    assert [(run.policy, bool(run.error)) for run in found.runs] == [("BFS", False), ("Dying", True), ("DFS", False)]


def test_a_damaged_recording_fails_alone(sites: list[Path], tmp_path: Path) -> None:
    """A recording that opens and cannot be read makes its own runs fail, and no others."""
    (tmp_path / "bad.sqlite").write_bytes(sites[0].read_bytes())
    database = sqlite3.connect(tmp_path / "bad.sqlite")
    database.execute("UPDATE meta SET value = '[' WHERE name = 'roots'")
    database.commit()
    database.close()
    found = compare(["BFS"], [tmp_path / "bad.sqlite", sites[1]], seeds=[0], jobs=1)
    assert [run.site for run in found.failures] == ["bad"]
    assert found.sites["bad"] is None
    assert found.sites["two"] is not None
    assert "Nothing could be made of bad." in warnings_of(found)


SCRIPT = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from scrapy_focus import Ordering
from scrapy_focus.lab.compare.comparison import compare

class Endless(Ordering):
    def rank(self, link, source):
        time.sleep(1000)

def progress(run, done, planned):
    print("done", run.policy, flush=True)

if __name__ == "__main__":
    own = Endless if sys.argv[2] == "__main__" else sys.argv[2] + ".Endless"
    policies, jobs = ["BFS", own], int(sys.argv[4])
    found = compare(policies, [sys.argv[3]], seeds=[0, 1], jobs=jobs, progress=progress)
    print("kept", [run.policy for run in found.runs], found.interrupted, flush=True)
"""


@pytest.mark.parametrize(
    ("jobs", "how", "is_fork"),
    [
        pytest.param(1, signal.SIGINT, False, marks=pytest.mark.slow),
        (2, signal.SIGINT, False),
        (2, signal.SIGINT, True),
        pytest.param(2, signal.SIGKILL, False, marks=pytest.mark.slow),
        (2, signal.SIGKILL, True),
    ],
)
def test_an_interrupt_ends_all_processes_and_keeps_what_is_done(
    sites: list[Path], user: str, tmp_path: Path, jobs: int, how: signal.Signals, is_fork: bool
) -> None:
    """Ctrl-C returns at once with the runs that were done; whatever ends the main process, no other one stays."""
    (tmp_path / "script.py").write_text(SCRIPT)
    module = "__main__" if is_fork else user
    words = [sys.executable, str(tmp_path / "script.py"), str(tmp_path), module, str(sites[0]), str(jobs)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["done BFS\n"] * 2
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    others = [int(word) for word in children.read_text().split()] if children.exists() else []
    assert len(others) >= jobs * (jobs > 1)
    time.sleep(0.3)
    if how is signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does it
    else:
        process.send_signal(how)
    said, logged = process.communicate(timeout=HANG)
    if how is signal.SIGINT:
        assert said == "kept ['BFS', 'BFS'] True\n", logged
        assert not logged
    while any(_runs(pid) for pid in others):
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_forks_run_what_cannot_be_sent(sites: list[Path]) -> None:
    """A goal and a policy of a function run in other processes, with the same numbers as in this one."""

    class Backwards(BreadthFirst):
        def rank(self, link: Link, source: Outcome | None) -> float:
            return -super().rank(link, source)

    def goal(outcome: Any) -> float:
        return float(outcome.pick.key % 7 == 0)

    policies = [Backwards, PolicySpec.of(partial(Backwards), "made"), "BFS"]
    forked = compare(policies, sites[:1], goal=goal, seeds=range(2), jobs=2, budget=100)
    assert not forked.failures
    assert identical(forked, compare(policies, sites[:1], goal=goal, seeds=range(2), jobs=1, budget=100))
    assert forked.runs[0].metrics != forked.runs[-1].metrics


def test_one_process_runs_what_cannot_be_sent_without_forks(sites: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where processes are not forked, one warning says that everything runs here, and the runs are made."""
    monkeypatch.setattr(runs.sys, "platform", "darwin")
    with pytest.warns(RuntimeWarning, match="all crawls run in this process") as said:
        found = compare(["BFS", "DFS"], sites[:1], goal=lambda outcome: 1.0, seeds=[0], jobs=2, budget=50)
    assert len(said) == 1
    assert len(found.runs) == 2
    assert not found.failures


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policies": []}, "give at least one policy"),
        ({"policies": ["BFS", "bfs"]}, "policy BFS is given twice; call one of them otherwise: label=name"),
        ({"policies": ["BFZ"]}, "there is no policy 'BFZ'; did you mean BFS?"),
        ({"policies": ["TagPath:alhpa=1"]}, "unexpected keyword argument 'alhpa'; TagPath takes theta, n, m"),
        ({"policies": ["TagPath:alpha=-1"]}, "alpha is a number from 0"),
        ({"seeds": []}, "give at least one seed"),
        ({"seeds": [1, 1]}, "seed 1 is given twice"),
        ({"budget": 0}, "a budget of 0 requests"),
        ({"concurrency": 0}, "both are at least 1"),
        ({"jobs": 0}, "both are at least 1"),
        ({"latency": "slow"}, "give seconds, 'recorded', or 'lognormal:0.2'"),
        ({"latency": -1.0}, "a latency of -1.0 seconds cannot be simulated"),
        ({"latency": "lognormal:"}, "give seconds, 'recorded'"),
        ({"baseline": "DFS"}, "the baseline 'DFS' is none of the policies: BFS"),
    ],
)
def test_bad_arguments_are_refused_before_anything_runs(
    sites: list[Path], arguments: dict[str, Any], message: str
) -> None:
    """Each says what is wrong with what was given."""
    given = {"policies": ["BFS"], "sites": sites[:1], "jobs": 1} | arguments
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        compare(**given)


def test_sites_have_to_be_there_and_get_names_of_their_own(sites: list[Path], tmp_path: Path) -> None:
    """A missing recording is an error; files of the same name in two folders are told apart."""
    with pytest.raises(RecordingError, match="focus record"):
        compare(["BFS"], [tmp_path / "none.sqlite"])
    with pytest.raises(ConfigError, match="given twice"):
        compare(["BFS"], [sites[0], sites[0]])
    (tmp_path / "one.sqlite").write_bytes(sites[0].read_bytes())
    found = compare(["BFS"], [sites[0], tmp_path / "one.sqlite"], seeds=[0], jobs=1)
    assert list(found.sites) == [f"{sites[0].parent.name}/one", f"{tmp_path.name}/one"]


# Names of policies


def test_every_policy_has_a_name() -> None:
    """All policies of the package are found by scanning, and each name of the paper stands for one."""
    assert {"TagPath", "Focused", "BreadthFirst", "Omniscient", "TagPathOffline"} <= known_policies().keys()
    assert not {"Informed", "Policy", "Ordering"} & known_policies().keys()
    assert list(paper_names()) == [
        "SB-CLASSIFIER", "SB-ORACLE", "FOCUSED", "TP-OFF", "TRES-FILES", "BFS", "DFS", "RANDOM", "KEYWORDS",
        "LINK-FLOOR", "OMNISCIENT", "WL", "RL", "WLRL",
        *[f"URL_{features}-{model}" for features in ("ONLY", "CONT") for model in ("LR", "SVM", "NB", "PA")],
        "TRES",
    ]  # fmt: skip
    for name, preset in paper_names().items():
        spec = PolicySpec.parse(name)
        assert (spec.label, spec.path, spec.params) == (name, preset.path, preset.params)
        assert preset.path in {known.path for known in known_policies().values()}
        spec.make()
    assert {name for name in paper_names() if PolicySpec.parse(name).is_informed()} == {
        "SB-ORACLE",
        "TP-OFF",
        "TRES-FILES",
        "LINK-FLOOR",
        "OMNISCIENT",
    }
    assert not PolicySpec.parse("TagPathOffline:benefit=credit").is_informed()


def test_a_class_goes_by_its_shortest_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the package which exports it under its name, where there is one; it reads back as the same."""
    assert PolicySpec.of(TagPath).path == "scrapy_focus.policies.tagpath.TagPath"
    assert PolicySpec.of(TagPath) == PolicySpec.parse("TagPath")
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "__init__.py").write_text("from shown.inner import Out, Taken as Other\nTaken = Out\n")
    module = "from scrapy_focus.policies.orderings import Random\n"
    (tmp_path / "shown" / "inner.py").write_text(
        module + "".join(f"class {name}(Random): ...\n" for name in ("Out", "Taken"))
    )
    monkeypatch.syspath_prepend(tmp_path)
    inner = importlib.import_module("shown.inner")
    for cls, path in ((inner.Out, "shown.Out"), (inner.Taken, "shown.inner.Taken")):
        assert PolicySpec.of(cls).path == path
        assert PolicySpec.of(cls).load() is cls


@pytest.mark.parametrize(
    ("text", "label", "params"),
    [
        ("sb-classifier", "SB-CLASSIFIER", {}),
        ("Random", "Random", {}),
        ("TagPath:alpha=30,n=3", "TagPath alpha=30 n=3", {"alpha": 30, "n": 3}),
        ("my own=TagPath:alpha=30", "my own", {"alpha": 30}),
        ("a=b=TagPath:blocked=('a,b','c')", "a=b", {"blocked": ("a,b", "c")}),
        ("TP-OFF:warmup=10", "TP-OFF warmup=10", {"benefit": "truth", "warmup": 10}),
        ("TagPathOffline:benefit=credit,index='numpy'", "TagPathOffline benefit=credit index=numpy",
         {"benefit": "credit", "index": "numpy"}),
        ("x=scrapy_focus.policies.tagpath.TagPath", "x", {}),
        ("TagPath:probe=False", "TagPath probe=False", {"probe": False}),
    ],
)  # fmt: skip
def test_names_are_read_and_written(text: str, label: str, params: dict[str, Any]) -> None:
    """A text is read into label, class and parameters, and written so that it is read back as the same."""
    spec = PolicySpec.parse(text)
    assert (spec.label, spec.params) == (label, params)
    assert PolicySpec.parse(str(spec)) == spec
    spec.make()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no policy ''"),
        ("=BFS", "has an empty label"),
        ("TagPath:30", "each has a name and a value"),
        ("TagPath:alpha", "each has a name and a value"),
        ("TagPath:alpha=__import__('os')", "cannot be read"),
        ("TagPath:**{}", "each has a name and a value"),
        ("no.such.Policy", "cannot be imported: ModuleNotFoundError"),
        ("os.path.join", "is not a policy"),
        ("scrapy_focus.Ordering", "is not a policy"),
    ],
)
def test_names_that_cannot_be_read_are_explained(text: str, message: str) -> None:
    """Each says what is wrong; nothing in a text is executed."""
    with pytest.raises(ConfigError) as error:
        PolicySpec.parse(text)
    assert message in str(error.value)


# What is written


@pytest.mark.slow
def test_no_picture_replaces_another(tmp_path: Path) -> None:
    """Whatever sites are called, where file names know no capitals too."""
    made = comparison({name: {"BFS": [50.0]} for name in ("overview", "A", "a", "b c", "b/c")})
    write(made, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.svg")} == {"overview", "overview_", "A", "a_", "b_c", "b_c_"}


def test_the_folder_has_all_numbers(sites: list[Path], user: str, tmp_path: Path) -> None:
    """A row for each run, means and differences as JSON without NaN, curves, pictures, and the page."""
    found = compare(
        ["BFS", f"short={user}.Short:sign=-1", f"{user}.Failing"], sites, seeds=[0, 4], budget=60, jobs=1,
        latency="recorded",
    )  # fmt: skip
    page = write(found, tmp_path / "new" / "out")
    folder = page.parent
    assert {path.name for path in folder.iterdir()} == {
        "index.html", "runs.csv", "summary.json", "curves.json", "one.png", "one.svg", "two.png", "two.svg",
        "overview.png", "overview.svg",
    }  # fmt: skip
    rows = list(csv.DictReader((folder / "runs.csv").open(newline="")))
    assert len(rows) == 12
    assert float(rows[0]["found"]) == found.runs[0].metrics["found"]
    assert rows[0]["requests_99"] == "inf"
    assert rows[-1]["error"] == "RuntimeError: no idea <b>"
    assert rows[-1]["found"] == ""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    data = json.loads((folder / "summary.json").read_text(), parse_constant=refuse)
    assert data["runs"] == {"planned": 12, "made": 12, "failed": 4, "interrupted": False}
    assert data["seeds"] == [0, 4]
    assert set(data["metrics"]) == set(METRICS)
    assert data["versions"]["numpy"] == np.__version__
    assert data["sites"][1]["exhaustive"]["worth"] > 10
    (cell,) = (c for c in data["table"] if (c["site"], c["policy"], c["metric"]) == ("one", "BFS", "requests_99"))
    assert (cell["mean"], cell["never"]) == ("never", 2)
    (pair,) = (p for p in data["paired"] if (p["policy"], p["metric"]) == ("short", "found"))
    assert pair["n"] == 4
    assert len(json.loads((folder / "curves.json").read_text())) == 8
    words = data["command"].split()
    assert words[:2] == ["focus", "compare"]
    assert f"short={user}.Short:sign=-1" in words
    assert words[words.index("--seeds") + 1] == "0,4"
    assert words[words.index("--latency") + 1] == "recorded"


@pytest.mark.slow
def test_a_folder_is_only_used_again_for_a_comparison(tmp_path: Path) -> None:
    """An earlier comparison is replaced with all its files; anything else in a folder stays as it was."""
    first = comparison({"old": {"BFS": [1.0, 2.0]}, "other": {"BFS": [1.0, 2.0]}})
    write(first, tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    write(comparison({"new": {"BFS": [1.0, 2.0]}}), tmp_path / "out", plots=False)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "index.html", "runs.csv", "summary.json", "curves.json", "notes.txt"
    }  # fmt: skip
    for content in ("{}", '{"format": "other"}', "[", "[]"):
        (tmp_path / "taken").mkdir(exist_ok=True)
        (tmp_path / "taken" / "summary.json").write_text(content)
        with pytest.raises(ConfigError, match="holds something other than a comparison"):
            write(first, tmp_path / "taken")
        assert (tmp_path / "taken" / "summary.json").read_text() == content
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is no folder"):
        write(first, tmp_path / "file" / "out")


def test_numbers_are_written_by_unit() -> None:
    """Infinite values are words, and large numbers can be read."""
    assert number(inf, "requests") == "never"
    assert number(1234567.0, "requests") == "1,234,567"
    assert number(0.5, "requests") == "0.5"


def test_an_unknown_metric_is_explained() -> None:
    """The error names what there is."""
    found = comparison({"s": {"BFS": [1.0]}})
    with pytest.raises(ConfigError, match="did you mean requests_90"):
        found.table("request_90")
