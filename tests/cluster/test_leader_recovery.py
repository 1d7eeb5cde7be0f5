"""A leader that is killed at any instant: the next one has learned the same, and chooses the same."""

from __future__ import annotations

import copy
import pickle
import random
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus.policies.branching.policy import BranchingBandit
from scrapy_focus.policies.foragers.policy import Foragers
from scrapy_focus.policies.importance import Importance
from scrapy_focus.policies.revisits import Revisits
from scrapy_focus.policies.tagpath.policy import TagPath
from scrapy_focus.policies.treeq.policy import TreeQ
from tests.cluster.fakes import FakeWorker, Realm, Site, many_links, seeds
from tests.jobs.test_recovery import plain
from tests.jobs.walks import PAGES, Circling, Rounds, all_waiting
from tests.made import PDF

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy_focus.cluster.leader import Leader

POLICIES = {
    "branching": partial(BranchingBandit, targets=[PDF], words=["page"]),
    "tagpath": partial(TagPath, batch=3),
    "tree": partial(TreeQ, keywords=["news"], rules={"warmup": 10}),
    "importance": partial(Importance, epsilon=0.01, work=30),
    "revisits": partial(Revisits, goal="copies", shortest=1.0, per_day=20_000.0),
    "foragers": partial(Foragers, fewest=8, most=12, shortest=0.0),
    "rounds": Rounds,
    "circling": Circling,
}
NEXT = 50


def known_of(leader: Leader) -> dict[str, Any]:
    """Return all of a crawl that is to outlive its leader."""
    crawl = leader.crawl
    policy = pickle.loads(pickle.dumps(crawl.policy))
    policy.now = 0.0  # when it was asked last, though nothing came of it
    if isinstance(policy, Foragers):
        policy._blocked = -1.0  # the same
    return {
        "policy": plain(policy),
        "waiting": {link.key: (link.url, link.host, place.arm, place.rank, place.method, plain(place.memo), place.after)
                    for link, place in all_waiting(crawl.frontier)},
        "owners": dict(crawl.leases.owners),
        "granted": +crawl.leases.granted,
        "unsent": set(crawl.state.in_flight.unsent),
        "used": crawl.budget.requests_used,
        "rewards": crawl.rewards,
        "counts": dict(crawl.counts),
        "states": crawl.frontier.states(list(range(8 * PAGES))),
    }  # fmt: skip


def walk(leader: Leader, workers: list[FakeWorker], rng: random.Random, realm: Realm) -> Iterator[None]:
    """Let workers act one after another, with up to 16 leases in flight."""
    while True:
        realm.clock.now += 0.2
        worker = rng.choice(workers)
        step = rng.random()
        if step < 0.3 and worker.waiting:
            worker.send(rng.choice([*worker.waiting]))
        elif step < 0.6 and worker.flying:
            worker.conclude(rng.choice([*worker.flying]))
        elif step < 0.64 and worker.waiting:
            worker.release(rng.choice([*worker.waiting]))
        elif step < 0.68 and worker.spare:
            worker.send_more()
        elif step >= 0.68:
            worker.exchange(leader, rng.randrange(1, 8), int(rng.random() < 0.2))
        yield


@pytest.mark.few(1)
@pytest.mark.parametrize("name", POLICIES)
def test_the_next_leader_knows_and_chooses_the_same(name: str, tmp_path: Path) -> None:
    """Killed after any step, with 16 picks out at three workers, a leader is replaced by its equal."""
    realm = Realm(tmp_path / "crawl", POLICIES[name], every=25, linger=1e6, lease=1e6)
    leader, rng = realm.lead(), random.Random(4)
    workers = [FakeWorker(f"w{n}", Site(many_links(8 * PAGES)), realm.clock) for n in range(3)]
    for worker in workers:
        worker.join(leader)
    workers[0].add(seeds())
    most = 0
    for number, _ in zip(range(150), walk(leader, workers, rng, realm), strict=False):
        most = max(most, len(leader.crawl.leases.owners))
        if number % 18:
            continue
        leader.crawl.job.flush()
        other = Realm(shutil.copytree(realm.folder, tmp_path / str(number)), POLICIES[name], linger=1e6, lease=1e6)
        other.clock = realm.clock
        again = other.lead()
        assert known_of(again) == known_of(leader)
        if number == 90:
            same_choices(leader, again, workers, realm)
        again.crawl.close()
    assert most == 16 or name == "foragers"  # each of whom waits for its page
    assert leader.crawl.counts["outcomes"] > 20
    leader.close()


def same_choices(leader: Leader, again: Leader, workers: list[FakeWorker], realm: Realm) -> None:
    """Let both lead the same workers from now on; all of these rejoin each."""
    double = copy.deepcopy(workers, {id(realm.clock): realm.clock})
    chosen: tuple[list[int], list[int]] = ([], [])
    for each, mine in ((leader, workers), (again, double)):
        for worker in mine:
            worker.join(each)
    rngs = random.Random(7), random.Random(7)
    for _ in range(100):
        realm.clock.now += 1.0
        for each, mine, rng, keys in zip((leader, again), (workers, double), rngs, chosen, strict=True):
            for worker in mine:
                for pick_id in [*worker.waiting]:
                    worker.send(pick_id)
                for pick_id in sorted(worker.flying):
                    if rng.random() < 0.6:
                        worker.conclude(pick_id)
                keys += [lease.key for lease in worker.exchange(each, 5).leases]
        assert chosen[0] == chosen[1]
        if len(chosen[0]) >= NEXT:
            return
    raise AssertionError(f"{len(chosen[0])} links were chosen")
