"""Crawls of several processes on Ray, killed at random instants: whatever dies, all is fetched and counted once.

How many kills there are of each kind is in the environment variable ``CLUSTER_KILLS``; by default few.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.raycrawls import Fleet, ManyHosts, Ray
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("ray", reason="Ray is not installed: pip install scrapy-focus[cluster]")
pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("CLUSTER_KILLS", "4"))
IN_ONE_CRAWL = 6


@pytest.fixture
def ray() -> Iterator[Ray]:
    """A cluster of one machine, which may be killed."""
    folder = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))  # a socket's path has at most 107 bytes
    with Ray(folder) as ray:
        yield ray
    shutil.rmtree(folder, ignore_errors=True)


def kill_and_check(ray: Ray, folder: Path, kinds: list[str], *, latency: float = 0.15) -> None:
    """Kill until there were enough kills, in as many crawls as it takes."""
    killed = 0
    for n in range(KILLS):
        rng = random.Random(f"{kinds} {n}")
        plan = [rng.choice(kinds) for _ in range(min(IN_ONE_CRAWL, KILLS - killed))]
        with (
            ManyHosts(800, 30, latency=latency) as site,
            Fleet(ray, site, folder / f"{kinds[0]}{n}", rng, 3) as fleet,
        ):
            fleet.run(plan)
            fleet.check()
            assert fleet.kills
            killed += len(fleet.kills)
        if killed >= KILLS:
            return


def test_without_kills_each_robots_txt_is_asked_for_once(ray: Ray, tmp_path: Path) -> None:
    with ManyHosts(800, 30) as site, Fleet(ray, site, tmp_path / "whole", random.Random(0), 3) as fleet:
        fleet.run([])
        fleet.check()
        assert set(site.robots.values()) == {1}
        assert len(site.robots) == 30


@pytest.mark.parametrize(
    "kinds",
    [["worker"], ["leader"], ["head"], ["both"], ["worker", "leader", "head", "both"]],
    ids=["a worker", "the leader", "the head and its raylet", "a worker and the leader", "any of them"],
)
def test_whatever_is_killed_all_pages_are_fetched_and_all_targets_counted_once(
    ray: Ray, tmp_path: Path, kinds: list[str]
) -> None:
    """No page is fetched twice, and no request lost, while no worker dies."""
    kill_and_check(ray, tmp_path, kinds)


@pytest.mark.parametrize("plan", [[], ["leader"] * 4], ids=["without kills", "with kills of the leader"])
def test_a_budget_is_exact_with_eight_workers(ray: Ray, tmp_path: Path, plan: list[str]) -> None:
    with (
        ManyHosts(5000, 60, latency=0.1) as site,
        Fleet(ray, site, tmp_path / "budget", random.Random(1), 8, FOCUS_BUDGET_REQUESTS=2500) as fleet,
    ):
        fleet.run(plan)
        assert len(site.log) == 2500
        assert fleet.status["used"]["requests"] == 2500
        assert set(site.fetched.values()) == {1}


def test_a_budget_is_never_exceeded_whatever_dies(ray: Ray, tmp_path: Path) -> None:
    with (
        ManyHosts(3000, 30, latency=0.1) as site,
        Fleet(ray, site, tmp_path / "limited", random.Random(2), 3, FOCUS_BUDGET_REQUESTS=700) as fleet,
    ):
        fleet.run(["worker", "leader", "both"])
        assert len(site.log) <= 700
        assert fleet.status["used"]["requests"] == 700


def test_hosts_are_asked_as_gently_as_by_one_process(ray: Ray, tmp_path: Path) -> None:
    """The delay between two requests to a host is kept, whichever worker sends them, and whichever dies."""
    with (
        ManyHosts(150, 12) as site,
        Fleet(
            ray, site, tmp_path / "gentle", random.Random(3), 3, DOWNLOAD_DELAY=0.5, RANDOMIZE_DOWNLOAD_DELAY=False
        ) as fleet,
    ):
        fleet.run(["leader"])
        fleet.check()
        gaps = site.gaps()
        assert gaps[len(gaps) // 20] > 0.4, gaps[:20]  # a busy process is late


def test_a_head_that_is_away_for_long_ends_no_worker(ray: Ray, tmp_path: Path) -> None:
    with ManyHosts(400, 30, latency=0.15) as site, Fleet(ray, site, tmp_path / "away", random.Random(4), 2) as fleet:
        while len(site.log) < 60:
            time.sleep(0.05)
        ray.kill()
        time.sleep(75)  # Ray itself ends a process after 60
        ray.start()
        fleet.run([], end=HANG)
        fleet.check()


@pytest.mark.parametrize("what", ["leader", "head"])
def test_a_leader_waits_for_its_missing_folder_and_does_not_start_again(ray: Ray, tmp_path: Path, what: str) -> None:
    """Whether Ray starts it again, or its workers make another one."""
    with ManyHosts(400, 30, latency=0.15) as site, Fleet(ray, site, tmp_path / "moved", random.Random(5), 2) as fleet:
        while len(site.log) < 100:
            time.sleep(0.05)
        ray.kill() if what == "head" else fleet.leader()
        shutil.move(fleet.job / "focus", tmp_path / "elsewhere")
        if what == "head":
            ray.start()
        while "no longer has a crawl" not in fleet.output():
            assert not fleet.is_over(), fleet.output()
            time.sleep(0.05)
        shutil.copytree(tmp_path / "elsewhere", fleet.job / "focus", dirs_exist_ok=True)
        fleet.run([])
        fleet.check()


def test_a_leader_that_was_started_again_for_nobody_ends(ray: Ray, tmp_path: Path) -> None:
    """As where it is killed after its last worker; the same command resumes the crawl."""
    with ManyHosts(400, 30, latency=0.15) as site, Fleet(ray, site, tmp_path / "alone", random.Random(8), 2) as fleet:
        while len(site.log) < 100:
            time.sleep(0.05)
        for process in fleet.processes:
            process.kill()
            process.wait()
        killed = ray.leader()
        fleet.leader()
        fleet._wait(lambda: ray.leader() not in (0, killed), HANG)
        fleet._wait(lambda: not ray.leader(), HANG)
        assert "no worker called it for 60 s" in (fleet.job / "leader.log").read_text()
        fleet.kills += ["worker", "leader"]
        fleet.processes = [fleet._start()]
        fleet.run([])
        fleet.check()


def test_a_worker_that_is_stopped_leaves_the_others_what_it_had(ray: Ray, tmp_path: Path) -> None:
    """SIGTERM ends it in peace, as without Ray; nothing it had is lost or counted as sent."""
    with ManyHosts(400, 30, latency=0.15) as site, Fleet(ray, site, tmp_path / "left", random.Random(6), 2) as fleet:
        while len(site.log) < 100:
            time.sleep(0.05)
        fleet.processes[0].terminate()
        fleet.run([])
        fleet.check()
        assert "SIGTERM received at" not in fleet.output()  # the trace of a crash, which it is not


def test_commands_show_a_crawl_and_end_it_for_all(ray: Ray, tmp_path: Path) -> None:
    with ManyHosts(3000, 30, latency=0.15) as site, Fleet(ray, site, tmp_path / "ended", random.Random(7), 2) as fleet:
        while len(site.log) < 100:
            time.sleep(0.05)
        status = json.loads(ray.command("focus-status", "--cluster", ray.address, "--json"))
        assert list(status) == ["ended"]
        assert len(status["ended"]["workers"]) == 2
        assert "workers     " in ray.command("focus-status", "--cluster", ray.address)
        assert "no crawl 'other' runs" in ray.command("focus-stop", "other", "--cluster", ray.address, expect=1)
        said = ray.command("focus-stop", "--cluster", ray.address)
        assert said.splitlines()[-1] == "ended is closed; the same command as before resumes it"
        assert not ray.leader()
        fleet.run([])
        assert fleet.status["state"] == "stopped"
        assert fleet.status["used"]["requests"] == len(site.log) < 3000
        assert "no crawl runs" in ray.command("focus-status", "--cluster", ray.address)
