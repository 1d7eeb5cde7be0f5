"""Workers and leaders that are killed with SIGKILL, repeatedly: nothing is missed, and nothing counts twice."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from killed import KilledSite

from scrapy_focus.jobs.doctor.status import read_status
from tests.cluster.hunting import Forks, SharedHunt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from killed import Asked

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL here")

ADDON = {"ADDONS": {"scrapy_focus.Addon": 500}}
BREADTH_FIRST = {**ADDON, "FOCUS_POLICY": "scrapy_focus.policies.orderings.BreadthFirst"}
LATER = {
    **BREADTH_FIRST, "FOCUS_GOAL": "tests.cluster.hunting.later", "EXTENSIONS": {"tests.cluster.hunting.Remembers": 1},
}  # fmt: skip
HEADS = {
    **ADDON, "FOCUS_POLICY": "scrapy_focus.policies.tagpath.TagPath",
    "FOCUS_POLICY_PARAMS": {"blocked": [], "probe": True},
}  # fmt: skip
TREE = {
    "SCHEDULER": "scrapy_focus.TreeFrontierScheduler", "FOCUS_POLICY": "scrapy_focus.policies.treeq.TreeQ",
    "FOCUS_POLICY_PARAMS": {"rules": {"tau": 4.0}},
}  # fmt: skip
LONG = {"FOCUS_CLUSTER_LEASE": 60.0}  # where no worker dies: none loses its leases because the machine is slow
LEASES = 16  # that a worker has at most on this small site, with as many requests granted beyond


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as running:
        yield running


@dataclass
class Reference:
    """The result of one process without kills."""

    answered: Counter[Asked]  # with 200
    items: Counter[str]
    requests: int


@pytest.fixture(scope="module")
def reference(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    with KilledSite(english=True) as site:
        folder = tmp_path_factory.mktemp("alone")
        alone = {"FOCUS_CLUSTER": "", "FEEDS": {}}
        hunt = SharedHunt(forks, site, folder, {**BREADTH_FIRST, **alone}, random.Random(0), workers=1)
        hunt.run([], led=False)
        return Reference(answered(site), hunt.items(), len(site.log))


def answered(site: KilledSite) -> Counter[Asked]:
    return Counter(asked for asked, status in site.answered if status == 200)


def hunt_down(forks: Forks, folder: Path, settings: dict[str, Any], plan: list[str], seed: int) -> SharedHunt:
    with KilledSite(english=True) as site:
        hunt = SharedHunt(forks, site, folder, settings, random.Random(seed))
        hunt.run(plan)
        return hunt


def check_all_done(hunt: SharedHunt, reference: Reference) -> None:
    """Fail unless every page was fetched and every item stored, and each of them counted once."""
    got = answered(hunt.site)
    assert not reference.answered.keys() - got.keys(), hunt
    assert hunt.items().keys() == hunt.feeds().keys() == reference.items.keys(), hunt
    assert not [item for item in hunt.items() if item.startswith("damaged")]
    assert read_status(hunt.folder / "job")["rewards"] == sum(reference.items.values()), hunt


def check_repeats(hunt: SharedHunt, reference: Reference) -> None:
    """Fail if more was fetched again than the workers had that were killed, or more was sent than was counted."""
    killed = sum(kill.startswith("worker") for kill in hunt.kills)
    again = answered(hunt.site) - reference.answered
    again = Counter({asked: n for asked, n in again.items() if asked.method != "HEAD" and asked.path != "/robots.txt"})
    assert sum(again.values()) <= killed * 2 * LEASES, (hunt, again)
    used, sent = read_status(hunt.folder / "job")["used"]["requests"], len(hunt.site.log)
    assert sent <= used <= sent + killed * 2 * LEASES, hunt


@pytest.mark.slow
def test_a_leader_is_killed(forks: Forks, tmp_path: Path, reference: Reference) -> None:
    """Its workers find the next one: nothing is fetched twice, and the budget equals the server's count."""
    hunt = hunt_down(forks, tmp_path, {**BREADTH_FIRST, **LONG}, ["leader"] * 3, 1)
    assert len(hunt.kills) == 3
    check_all_done(hunt, reference)
    check_repeats(hunt, reference)


@pytest.mark.slow
def test_workers_are_killed(forks: Forks, tmp_path: Path, reference: Reference) -> None:
    """Their pages are fetched again by others, each once."""
    hunt = hunt_down(forks, tmp_path, LATER, ["worker"] * 3, 2)
    assert len(hunt.kills) == 3
    check_all_done(hunt, reference)
    check_repeats(hunt, reference)


@pytest.mark.slow
def test_a_worker_and_the_leader_are_killed(forks: Forks, tmp_path: Path) -> None:
    """A budget is never exceeded, and is used up except for the leases of the dead."""
    settings = {**BREADTH_FIRST, "FOCUS_BUDGET_REQUESTS": 200}
    hunt = hunt_down(forks, tmp_path, settings, ["both"], 3)
    assert len(hunt.kills) == 2
    assert 200 - 2 * LEASES <= len(hunt.site.log) <= 200
    assert read_status(hunt.folder / "job")["used"]["requests"] == 200


@pytest.mark.slow
def test_a_budget_is_exact_through_kills_of_leaders(forks: Forks, tmp_path: Path) -> None:
    """As many requests in the log of the server as were allowed."""
    settings = {**BREADTH_FIRST, **LONG, "FOCUS_BUDGET_REQUESTS": 120}
    hunt = hunt_down(forks, tmp_path, settings, ["leader", "leader"], 4)
    assert len(hunt.kills) == 2
    assert len(hunt.site.log) == read_status(hunt.folder / "job")["used"]["requests"] == 120


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "settings", [BREADTH_FIRST, LATER, HEADS, TREE, ADDON], ids=["bf", "later", "heads", "tree", "default"]
)
def test_many_kills(forks: Forks, tmp_path: Path, reference: Reference, settings: dict[str, Any], seed: int) -> None:
    """Of all kinds and at any instant."""
    rng = random.Random(seed)
    plan = rng.choices(["worker", "leader", "both"], k=6)
    hunt = hunt_down(forks, tmp_path, settings, plan, seed)
    check_all_done(hunt, reference)
    check_repeats(hunt, reference)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "settings", [BREADTH_FIRST, LATER, HEADS, TREE, ADDON], ids=["bf", "later", "heads", "tree", "default"]
)
def test_leases_end(forks: Forks, tmp_path: Path, reference: Reference, settings: dict[str, Any], seed: int) -> None:
    """If a worker, the leader or all pause for longer than a lease, pages are fetched again, and none is lost."""
    rng = random.Random(seed)
    plan = rng.choices(["worker stops", "leader stops", "all stops", "leader"], k=4)
    hunt = hunt_down(forks, tmp_path, settings, plan, seed)
    check_all_done(hunt, reference)
    assert len(hunt.site.log) <= read_status(hunt.folder / "job")["used"]["requests"], hunt
