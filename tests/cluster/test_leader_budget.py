"""The budget of a crawl with eight workers: the leader's count equals the server's, whichever process is killed."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import Job, Plateau
from tests.cluster.fakes import LEASE, FakeWorker, Realm, Site, many_links, seeds
from tests.jobs.walks import answer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy_focus.cluster.leader import Leader

WORKERS = 8
BUDGET = 2500
PAGES = 6000


class Fleet:
    """Workers that fetch until the crawl is over; each tenth page needs a request more."""

    def __init__(
        self,
        realm: Realm,
        *,
        seed: int = 0,
        workers: int = WORKERS,
        want: int = 8,
        pages: int = PAGES,
        extra: float = 0.1,
    ) -> None:
        self.realm = realm
        self.want = want
        self.extra = extra  # probability that a worker asks for one more, eight times a step
        self.site = Site(many_links(pages))
        self.rng = random.Random(seed)
        self.leader: Leader = realm.lead()
        self.made = 0
        self.workers = [self.hire() for _ in range(workers)]
        self.dead: list[FakeWorker] = []
        self.workers[0].join(self.leader)
        self.workers[0].add(seeds())

    @property
    def requests(self) -> int:
        """Lines of the server's log."""
        return self.site.sent.total() + self.site.extra.total()

    def hire(self) -> FakeWorker:
        """Return one worker more."""
        self.made += 1
        return FakeWorker(f"w{self.made}", self.site, self.realm.clock)

    def step(self) -> str:
        """Let one worker do what it can, and return why the crawl is over."""
        self.realm.clock.now += 0.1
        worker, rng = self.rng.choice(self.workers), self.rng
        if not worker.session:
            worker.join(self.leader)
        for pick_id in [*worker.waiting]:
            if rng.random() < 0.8:
                worker.send(pick_id)
        for pick_id in [*worker.flying]:
            if rng.random() < 0.8:
                worker.conclude(pick_id)
        while worker.spare and rng.random() < 0.9:
            worker.send_more()
        more = sum(rng.random() < self.extra for _ in range(8)) if worker.waiting or worker.flying else 0
        missing = self.want - len(worker.waiting) - len(worker.flying)
        return worker.exchange(self.leader, max(0, missing), more).finished

    def run(self, *events: Callable[[], None], every: int = 100) -> str:
        """Let workers fetch until the crawl is over; one of these events happens after each so many steps."""
        for number in range(20_000):
            if why := self.step():
                return why
            if events and number % every == every - 1:
                self.rng.choice(events)()
        raise AssertionError("it does not end")

    def kill_leader(self) -> None:
        """Kill the leader, and make another one; half of the workers lose an answer with it."""
        for worker in self.workers[::2]:
            if worker.session:
                self.leader.exchange(worker.message(4, 1))
        self.realm.kill(self.leader)
        self.leader = self.realm.lead()
        for worker in self.workers:
            worker.session = ""

    def kill_worker(self) -> None:
        """Kill a worker, and begin another one."""
        worker = self.workers.pop(self.rng.randrange(len(self.workers)))
        self.dead.append(worker)
        self.workers.append(self.hire())


class Killed(BaseException):
    """The process of a leader ends here."""


def test_each_request_counts_once_wherever_in_a_call_the_leader_is_killed(tmp_path: Path) -> None:
    """It dies before any of the events of its calls is written, one after another, and its workers report all again."""
    whole = Fleet(Realm(tmp_path / "whole"), workers=2, pages=60, want=2)
    for _ in range(300):
        whole.step()
    for n in range(1, 40):
        fleet = Fleet(Realm(tmp_path / f"crawl{n}"), workers=2, pages=60, want=2)
        left = n

        def tell(event: Any, job: Any = fleet.leader.crawl.job) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise Killed
            Job.tell(job, event)

        fleet.leader.crawl.job.tell = tell
        with pytest.raises(Killed):
            fleet.run()
        fleet.realm.kill(fleet.leader)
        fleet.leader = fleet.realm.lead()
        for worker in fleet.workers:
            worker.session = ""
        for _ in range(300):
            fleet.step()
        crawl = fleet.leader.crawl
        assert not len(crawl.frontier)
        for worker in fleet.workers:
            while worker.spare:
                worker.send_more()
            worker.exchange(fleet.leader)
        assert not crawl.picks
        assert crawl.budget.requests_used == fleet.requests, f"killed before event {n}"
        assert crawl.counts["outcomes"] == whole.leader.crawl.counts["outcomes"] > 40
        fleet.leader.close()
    whole.leader.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("kills", [0, 100])
def test_a_budget_is_used_to_the_last_request(kills: int, tmp_path: Path) -> None:
    """2,500 requests are 2,500 lines in the server's log, for eight workers, and however often the leader is killed."""
    fleet = Fleet(Realm(tmp_path / "crawl", budget={"requests": BUDGET}, most_out=64, every=500))
    assert fleet.run(*([fleet.kill_leader] if kills else []), every=kills or 1) == "budget_requests"
    assert fleet.requests == BUDGET
    assert (fleet.realm.lives > 3) == bool(kills)
    assert max(fleet.site.fetched.values()) == 1
    assert fleet.site.extra.total() > 100
    fleet.leader.close()


def test_only_what_the_dead_held_is_charged_in_vain(tmp_path: Path) -> None:
    """Workers and leader are killed: never more requests than allowed, and fewer by no more than the dead had."""
    budget = BUDGET // 3
    fleet = Fleet(Realm(tmp_path / "crawl", budget={"requests": budget}, most_out=64, every=300), seed=1)
    why = fleet.run(fleet.kill_worker, fleet.kill_worker, fleet.kill_leader, every=150)
    assert why == "budget_requests"
    assert len(fleet.dead) > 5
    held = sum(len(dead.waiting) + dead.spare for dead in fleet.dead)
    undelivered = 5 * len(fleet.dead)  # an answer that was lost with a leader
    assert budget - held - undelivered <= fleet.requests <= budget
    fleet.leader.close()


def test_a_plateau_ends_the_crawl_for_all(tmp_path: Path) -> None:
    """When the leader's stop rule fires, all workers get the reason, and only leases in flight still count."""
    realm = Realm(tmp_path / "crawl", stop=partial(Plateau, window=20, slope=0.02, decay=0.5, patience=5), most_out=32)
    fleet = Fleet(realm, workers=3)
    fleet.site.answers = lambda pick: answer(pick) if pick.key < 300 else answer(pick)._replace(mime="text/html")
    assert fleet.run() == "plateau"
    rewards, out = fleet.leader.crawl.rewards, len(fleet.leader.crawl.leases.owners)
    assert 0 < out == len(fleet.leader.crawl.picks)
    fleet.site.answers = answer
    for worker in fleet.workers:
        said = worker.work(fleet.leader)
        assert (said.finished, said.leases, said.granted) == ("plateau", [], 0)
    assert not any(member.held - set(member.ready) for member in fleet.leader._members.values())
    assert fleet.leader.crawl.rewards >= rewards
    assert [fleet.leader.leave(each.name, each.session) for each in fleet.workers] == [False, False, True]
    assert fleet.leader.is_closed


def test_bytes_end_the_crawl(tmp_path: Path) -> None:
    """Bytes that the workers report are counted, also those of an earlier leader."""
    realm = Realm(tmp_path / "crawl", budget={"bytes": 1000})
    fleet = Fleet(realm, workers=2)
    fleet.step()
    first, second = fleet.workers
    for worker in fleet.workers:
        worker.session or worker.join(fleet.leader)
    assert not fleet.leader.exchange(first.message(n_bytes=600)).finished
    first.outbox.clear()
    first.work(fleet.leader)
    first.work(fleet.leader)  # an outcome: with it the journal knows
    fleet.kill_leader()
    second.join(fleet.leader)
    assert fleet.leader.crawl.budget.bytes_used == 600
    assert fleet.leader.exchange(second.message(n_bytes=400)).finished == "budget_bytes"
    assert not fleet.leader.exchange(second.message(want=5)).leases
    fleet.leader.close()


def test_a_rate_holds_for_all_workers_together(tmp_path: Path) -> None:
    """At two requests a second, so many are sent in all, by any workers, through deaths of leaders."""
    realm = Realm(tmp_path / "crawl", budget={"rate": "2/second"})
    fleet = Fleet(realm, workers=4, extra=0.005)
    begin = realm.clock()
    for number in range(600):
        fleet.step()
        assert fleet.requests <= 2 * (realm.clock() - begin) + 2 + fleet.site.extra.total()
        if number % 100 == 99:
            fleet.kill_leader()
    asked = fleet.requests / (realm.clock() - begin)
    assert 1.5 < asked <= 2.1
    news = fleet.leader.news()
    assert (news.rate, news.next_turn is not None) == ("2 requests a second", True)
    fleet.leader.close()


def test_leases_of_the_dead_wait_again(tmp_path: Path) -> None:
    """After the time of a lease, others fetch what a dead worker had."""
    fleet = Fleet(Realm(tmp_path / "crawl"), workers=2, pages=200)
    for _ in range(30):
        fleet.step()
    fleet.workers[1].exchange(fleet.leader, 4)
    fleet.kill_worker()
    fleet.realm.clock.now += LEASE + 1
    for _ in range(1000):
        if not fleet.leader.crawl.leases.owners and not len(fleet.leader.crawl.frontier):
            break
        fleet.step()
        fleet.realm.clock.now += 1.0
    assert fleet.leader.crawl.counts["outcomes"] == len(fleet.site.fetched)
    fleet.leader.close()
