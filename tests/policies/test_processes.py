"""Every policy chooses the same in every process: what a killed crawl did is found again by replaying its inputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scrapy_focus import FilesGoal
from scrapy_focus.lab.recordings.importers.folder import record_site
from scrapy_focus.lab.replay.simulate import simulate
from scrapy_focus.lab.sites.portal.portal import TARGET_MIMES, StatisticsPortal
from scrapy_focus.policies.bases import Ordering
from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.focused import Focused
from scrapy_focus.policies.tagpath.offline import TagPathOffline
from scrapy_focus.policies.tagpath.oracles import Informed
from scrapy_focus.policies.tagpath.policy import TagPath
from tests.made import HANG
from tests.policies.test_contract import POLICIES
from tests.policies.test_memory import small

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_focus import Link, Outcome, Policy

ROOT = Path(__file__).parents[2]


class AsTheyHash(Ordering):
    """What must not be: an order that is another one in each process."""

    def rank(self, link: Link, source: Outcome | None) -> float:
        return float(hash(link.url))


MODES: dict[str, Callable[[], Policy]] = {
    **{cls.__name__: cls for cls in POLICIES if not (issubclass(cls, Informed) and cls().needs_truth)},
    "TagPath, items": partial(TagPath, probe=False, accounting="full"),
    "TagPath past its limits": lambda: small(TagPath(max_clusters=30)),
    "TagPathOffline past its limits": lambda: small(TagPathOffline(warmup=50)),
    "BranchingBandit, files": partial(BranchingBandit, targets=sorted(TARGET_MIMES), words=["data"]),
    "BranchingBandit past its limits": lambda: small(BranchingBandit()),
    "Focused, no warm-up": partial(Focused, warmup=0, batch=3),
    "AsTheyHash": AsTheyHash,
}


def choices(path: str) -> dict[str, str]:
    """Return a digest of all that each policy asks for on a recorded site, in order."""
    found = {}
    for name, make in MODES.items():
        harvest = simulate(make(), FilesGoal(types=TARGET_MIMES), path, budget=120, concurrency=4, latency=1.0, seed=3)
        found[name] = sha256("\n".join(harvest.asked).encode()).hexdigest()
    return found


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """What two processes chose whose strings hash differently."""
    path = tmp_path_factory.mktemp("site") / "portal.sqlite"
    record_site(StatisticsPortal(pages=200, seed=1, endless=False), path, root="http://portal.example/")
    words = (
        "import sys, json; from tests.policies.test_processes import choices; print(json.dumps(choices(sys.argv[1])))"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", words, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed}, cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )
        for seed in ("1", "2")
    ]  # fmt: skip
    try:
        return [json.loads(process.communicate(timeout=HANG)[0]) for process in started]
    finally:
        for process in started:
            process.kill()


@pytest.mark.few(2)
@pytest.mark.parametrize("name", [name for name in MODES if name != "AsTheyHash"])
def test_choices_are_the_same_in_every_process(chosen: list[dict[str, str]], name: str) -> None:
    """Neither a set of strings nor an address decides anything: with another PYTHONHASHSEED the same is asked for."""
    one, two = chosen
    assert one[name] == two[name]


def test_another_order_would_be_noticed(chosen: list[dict[str, str]]) -> None:
    """A policy that depends on how strings hash asks in another order, so the test above can fail."""
    one, two = chosen
    assert one["AsTheyHash"] != two["AsTheyHash"]
