"""What a leader promises to its workers, one promise after the other."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import FilesGoal, Signal
from scrapy_focus.cluster.leader import RemoteGoal
from scrapy_focus.cluster.messages import Answer, Exchange, Hello, LeaderClosed
from scrapy_focus.core.outstanding import most_out
from scrapy_focus.core.types import NOT_NOW
from scrapy_focus.policies.branching.policy import BranchingBandit
from tests.cluster.fakes import LEASE, LINGER, FakeWorker, Realm, Site, many_links, seeds
from tests.jobs.walks import answer, link_to
from tests.made import PDF, Recording, link, links

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy_focus.cluster.leader import Leader


class Stage:
    """A leader with some workers that joined."""

    def __init__(self, folder: Path, *, workers: int = 2, found: int = 100, **how: Any) -> None:
        self.realm = Realm(folder / "crawl", **how)
        self.leader: Leader = self.realm.lead()
        self.site = Site(many_links(1))
        self.made = 0
        self.workers = [self.hire() for _ in range(workers)]
        self.leader.crawl.add([link_to(n) for n in range(1, 1 + found)])

    def hire(self, **how: Any) -> FakeWorker:
        """Let another worker join."""
        self.made += 1
        worker = FakeWorker(f"w{self.made}", self.site, self.realm.clock, **how)
        worker.join(self.leader)
        return worker

    def pass_(self, seconds: float) -> None:
        """Let time pass without messages."""
        self.realm.clock.now += seconds

    def lead_again(self, *, kill: bool = True) -> Leader:
        """Kill or close the leader, and have another one."""
        if kill:
            self.realm.kill(self.leader)
        else:
            self.leader.close()
        self.leader = self.realm.lead()
        return self.leader

    @property
    def used(self) -> int:
        """Requests that are charged."""
        return self.leader.crawl.budget.requests_used


@pytest.fixture
def stage(tmp_path: Path) -> Callable[..., Stage]:
    """Return what sets a stage."""
    return lambda **how: Stage(tmp_path, **how)


# Leases


def test_a_report_counts_once(stage: Callable[..., Stage]) -> None:
    """Its repeat, and one after the lease ended, is refused and counted; the page is fetched again by another one."""
    s = stage(found=1)
    first, second = s.workers
    [pick] = first.exchange(s.leader, 3).leases
    first.send(pick.id)
    s.pass_(LEASE + 1)
    second.exchange(s.leader)
    for _ in range(30):
        if leases := second.exchange(s.leader, 3).leases:
            break
        s.pass_(LEASE / 3)
    [again] = leases
    assert (again.key, again.id != pick.id) == (pick.key, True)
    second.send(again.id)
    second.conclude(again.id)
    message = second.message()
    second.hear(s.leader.exchange(message))
    assert s.leader.crawl.counts["outcomes"] == 1
    s.leader.exchange(message)
    first.conclude(pick.id)
    assert s.leader.exchange(first.message()).rejoin
    first.join(s.leader)
    assert first.lost == {pick.id}
    assert (s.leader.counts["refused"], s.leader.counts["expired"], s.leader.counts["lost_workers"]) == (1, 1, 1)
    assert (s.leader.crawl.counts["outcomes"], s.used) == (1, 2)


def test_what_an_exchange_names_is_renewed(stage: Callable[..., Stage]) -> None:
    """A lease that is named lives on; any other ends, and counts as sent, as its worker may have sent it."""
    s = stage()
    worker = s.workers[0]
    kept, forgotten = (lease.id for lease in worker.exchange(s.leader, 2).leases)
    del worker.waiting[forgotten]
    for _ in range(3):
        s.pass_(LEASE * 0.6)
        worker.exchange(s.leader)
    assert s.leader.crawl.leases.owners == {kept: worker.name}
    assert (s.leader.counts["expired"], s.used) == (1, 1)


def test_what_lies_ready_for_the_living_stays(stage: Callable[..., Stage]) -> None:
    """It was not given yet, so that its worker cannot name it."""
    s = stage(found=0, per_host=9)
    first, second = s.workers
    s.leader.crawl.add(links(*range(10), host="a"))
    first.exchange(s.leader, 1)
    s.leader.crawl.add(links(*range(10, 20), host="b"))
    second.exchange(s.leader, 1)
    before = dict(s.leader.crawl.leases.owners)
    assert len(before) > 3
    for _ in range(4):
        s.pass_(LEASE * 0.6)
        first.exchange(s.leader)
        second.exchange(s.leader)
    assert s.leader.crawl.leases.owners == before


def test_links_of_an_ignored_report_are_sent_again(stage: Callable[..., Stage]) -> None:
    """New ones are named in the answer, so that the worker sends them again when it finds them again."""
    s = stage(found=1)
    worker = s.workers[0]
    s.site.links = lambda n: [link_to(70), link_to(1)]
    [lease] = worker.exchange(s.leader, 1).leases
    worker.send(lease.id)
    worker.conclude(lease.id)
    message = worker.message()
    message = message._replace(said=[(*said[:1], lease.id + 100, *said[2:]) for said in message.said])
    assert s.leader.exchange(message).unplaced == [link_to(70).key]
    said = ("add", lease.id + 100, tuple(message.said[0][3]), message.said[0][4])
    assert s.leader.exchange(message._replace(said=[said])).unplaced == [link_to(70).key]
    assert s.leader.counts["refused"] == 2
    assert worker.exchange(s.leader).unplaced == []
    assert s.leader.crawl.counts["outcomes"] == 1


def test_who_leaves_has_sent_all_that_it_has(stage: Callable[..., Stage]) -> None:
    """Its remaining leases are queued again and cost nothing, like the grants that it returns."""
    s = stage()
    worker, other = s.workers
    worker.exchange(s.leader, 3, 4)
    assert s.used == 4
    assert not s.leader.leave(worker.name, worker.session, 4)
    assert set(s.leader.crawl.leases.owners.values()) == {other.name}
    assert (s.used, s.leader.counts["left"]) == (0, 1)
    assert s.leader.exchange(worker.message()).rejoin
    assert not s.leader.leave(worker.name, worker.session)
    assert s.leader.leave(other.name, other.session)
    assert s.leader.is_closed
    assert s.leader.leave(other.name, other.session)
    with pytest.raises(LeaderClosed):
        other.join(s.leader)


def test_what_lies_ready_for_the_dead_costs_nothing(stage: Callable[..., Stage]) -> None:
    """It never received them: only leases that it received count as sent."""
    s = stage(per_host=9, found=0)
    first, second = s.workers
    s.leader.crawl.add(links(*range(10), host="a"))
    first.exchange(s.leader, 4)
    s.leader.crawl.add(links(*range(10, 20), host="b"))
    second.exchange(s.leader, 4)
    member = s.leader._members[first.name]
    assert (len(member.held), len(member.ready)) == (8, 4)
    for _ in range(3):
        s.pass_(LEASE / 2)
        second.exchange(s.leader)
    assert s.leader.crawl.leases.owners == dict.fromkeys(second.waiting, second.name)
    assert (s.used, s.leader.counts["expired"]) == (4, 4)


# Joining


def test_a_lost_answer_costs_nothing(stage: Callable[..., Stage]) -> None:
    """Leases and grants of a lost answer are returned when the worker rejoins."""
    s = stage()
    worker = s.workers[0]
    worker.exchange(s.leader, 2, 1)
    worker.exchange(s.leader, 3, 2, is_lost=True)
    assert ([*s.leader.crawl.leases.owners.values()].count(worker.name), s.used) == (5, 2)
    welcome = worker.join(s.leader)
    mine = {pick_id for pick_id, owner in s.leader.crawl.leases.owners.items() if owner == worker.name}
    assert set(welcome.kept) == {*worker.waiting} == mine
    assert (s.used, s.leader.counts["undelivered"]) == (0, 3)


def test_an_old_session_is_over(stage: Callable[..., Stage]) -> None:
    """A message in it is ignored."""
    s = stage()
    worker = s.workers[0]
    old = worker.message(want=3, extra=2)
    worker.join(s.leader)
    assert s.leader.exchange(old) == Answer(rejoin=True)
    assert s.used == 0
    assert not s.leader.leave(worker.name, old.session)
    assert worker.name in s.leader._members


def test_other_settings_are_refused_and_named(stage: Callable[..., Stage]) -> None:
    """A worker receives the differences, and what to do."""
    s = stage()
    s.leader.agreed = {"policy": "A", "setting: DOWNLOAD_DELAY": "1"}
    welcome = s.leader.join(Hello("w", {"policy": "A", "setting: DOWNLOAD_DELAY": "2"}, [], [], 0))
    assert not welcome.session
    assert "DOWNLOAD_DELAY" in welcome.refused
    assert "same settings on all machines" in welcome.refused
    assert "w" not in s.leader._members
    assert s.leader.counts["refused_workers"] == 1


# Hosts


def test_each_host_has_one_worker(stage: Callable[..., Stage]) -> None:
    """A pick chosen for one worker is reserved for another that has its host."""
    s = stage(per_host=8, most_out=32)
    first, second = s.workers
    first.exchange(s.leader, 4)
    mine = {pick.host for pick in first.waiting.values()}
    for _ in range(6):
        second.work(s.leader, 4)
        first.exchange(s.leader, 0)
    assert not mine & {pick.host for pick in second.waiting.values()}
    assert {s.leader._hosts.owner(host) for host in mine} == {first.name}


def test_nobody_starves_where_others_have_enough(stage: Callable[..., Stage]) -> None:
    """With many workers that all have enough, the asking one gets picks of its own hosts in the same exchange."""
    s = stage(workers=12, per_host=100, most_out=400, found=0)
    for n, worker in enumerate(s.workers):
        s.leader.crawl.add([link(n, host=f"h{n}")])
        assert len(worker.exchange(s.leader, 1).leases) == 1
    s.leader.crawl.add([link(n, host=f"h{n // 50}") for n in range(12, 12 * 50)])
    got = s.workers[-1].exchange(s.leader, 3).leases
    assert [lease.host for lease in got] == ["h11"] * 3
    assert s.leader.counts["passed_over"] == 11


def test_few_lie_ready_for_others_where_few_may_be_out(stage: Callable[..., Stage]) -> None:
    """A worker that asks for nothing cannot hold all leases that are allowed."""
    s = stage(per_host=100, most_out=16, found=0)
    first, second = s.workers
    s.leader.crawl.add([link(n, host="of second") for n in range(50)])
    second.exchange(s.leader, 1)
    s.leader.crawl.add([link(n, host="other") for n in range(100, 150)])
    got = first.exchange(s.leader, 4).leases
    assert {lease.host for lease in got} == {"other"}
    assert len(s.leader._members[second.name].ready) == 16 // (2 * 2)


def test_hosts_of_the_dead_rest(stage: Callable[..., Stage]) -> None:
    """They rest until any delay is over, after a death as well as after a farewell."""
    s = stage(found=0)
    dead, living = s.workers
    s.leader.crawl.add(links(*range(20), host="one"))
    dead.exchange(s.leader, 1)
    dead.send(min(dead.waiting))
    s.pass_(LEASE + 2)
    living.exchange(s.leader)
    begin = s.realm.clock()
    for _ in range(100):
        if living.exchange(s.leader, 1).leases:
            break
        s.pass_(2.0)
    assert LINGER <= s.realm.clock() - begin <= LINGER + 4
    s.leader.leave(living.name, living.session)
    assert s.leader.is_closed


def test_a_returning_worker_keeps_its_hosts(stage: Callable[..., Stage]) -> None:
    """A new leader waits for workers with leases, and then leases the hosts that they name only to them."""
    s = stage(found=0, per_host=8)
    first, second = s.workers
    s.leader.crawl.add(links(*range(5), host="a") + links(*range(5, 10), host="b"))
    first.exchange(s.leader, 5)
    second.exchange(s.leader, 1)
    for pick_id in [*first.waiting][1:]:
        first.release(pick_id)
    first.exchange(s.leader)
    s.lead_again()
    second.join(s.leader)
    assert not second.exchange(s.leader, 5).leases
    first.join(s.leader)
    assert {lease.host for lease in second.exchange(s.leader, 5).leases} <= {"b"}
    assert {lease.host for lease in first.exchange(s.leader, 5).leases} <= {"a"}


def test_hosts_of_workers_that_may_return_are_closed(stage: Callable[..., Stage]) -> None:
    """After a while a new leader leases other hosts, and those once their workers did not return and they rested."""
    s = stage(found=0, per_host=8)
    first, second = s.workers
    s.leader.crawl.add(links(*range(7), host="a") + links(*range(10, 15), host="b"))
    first.exchange(s.leader, 3)
    s.leader.crawl.next = lambda busy, choose=s.leader.crawl.next: choose(["a"])
    second.exchange(s.leader, 1)
    s.lead_again()
    second.join(s.leader)
    s.pass_(11.0)
    assert {lease.host for lease in second.exchange(s.leader, 2).leases} == {"b"}
    s.pass_(LEASE - 5.0)
    second.exchange(s.leader)
    assert s.leader.counts["expired"] == 3
    for _ in range(20):
        s.pass_(5.0)
        second.work(s.leader)
    assert not len(s.leader.crawl.frontier)


def late_one(s: Stage, n_hosts: int) -> tuple[FakeWorker, FakeWorker]:
    """Return a worker that has all hosts, and a later one."""
    [first] = s.workers
    for n in range(n_hosts):
        s.leader.crawl.add(links(*range(50 * n, 50 * n + 50), host=f"h{n}"))
    while first.exchange(s.leader, 1).leases:
        pass
    return first, s.hire()


def work_both(s: Stage, first: FakeWorker, late: FakeWorker, want: int, seconds: float) -> set[str]:
    """Let the first fetch two pages and ask for so many picks every two seconds; return the other's hosts."""
    hosts = set()
    for _ in range(int(seconds / 2)):
        for pick_id in sorted(first.waiting)[:2]:
            first.release(pick_id)
        first.exchange(s.leader, want)
        hosts |= {lease.host for lease in late.exchange(s.leader, 1).leases}
        for pick_id in [*late.waiting]:
            late.release(pick_id)
        s.pass_(2.0)
    return hosts


def test_who_comes_late_gets_hosts_of_who_has_enough(stage: Callable[..., Stage]) -> None:
    """A share of them, after a while without work, and when they rested as long as after a death."""
    s = stage(workers=1, found=0, per_host=2, most_out=400)
    first, late = late_one(s, 8)
    assert not work_both(s, first, late, 2, LEASE / 3)
    assert s.leader.counts["handed_on"] == 0
    assert not work_both(s, first, late, 2, LINGER)
    assert s.leader.counts["handed_on"] == 4
    got = work_both(s, first, late, 2, LINGER)
    assert len(got) == 4
    assert not got & {pick.host for pick in first.waiting.values()}
    assert s.leader.counts["handed_on"] == 4


def test_nothing_is_handed_on_by_who_wants_more(stage: Callable[..., Stage]) -> None:
    """If delays are the limit, a second worker makes nothing faster."""
    s = stage(workers=1, found=0, per_host=2, most_out=400)
    first, late = late_one(s, 4)
    assert not work_both(s, first, late, 8, 3 * LINGER)
    assert s.leader.counts["handed_on"] == 0


def test_a_host_that_nobody_has_goes_to_who_has_least_to_do(stage: Callable[..., Stage]) -> None:
    """But only a few are reserved: a worker that asks for nothing may be dead, and then the asking one gets them."""
    s = stage(found=0, per_host=1, most_out=40)
    first, silent = s.workers
    s.leader.crawl.add([link(n, host=f"h{n}") for n in range(100)])
    for _ in range(4):
        first.exchange(s.leader, 5)
    enough = 40 // (2 * 2)
    assert (len(first.waiting), len(s.leader._members[silent.name].ready)) == (20, enough)
    assert s.leader.counts["passed_over"] == 0
    assert len(silent.exchange(s.leader, 100).leases) == 20


def test_hosts_without_leases_are_of_who_names_them(stage: Callable[..., Stage]) -> None:
    """A new leader does not know them by itself."""
    s = stage(found=0, per_host=8)
    first, second = s.workers
    s.leader.crawl.add([link(1, host="a"), link(2, host="b")])
    assert len(first.exchange(s.leader, 1).leases) == 1
    first.work(s.leader)
    s.lead_again()
    second.join(s.leader)
    first.join(s.leader)
    assert s.leader._hosts.owner("a") == first.name


# Leases in flight


def test_no_more_are_out_than_may_be(stage: Callable[..., Stage]) -> None:
    """By default as many as the rule allows after so many outcomes; leases in flight are never withdrawn."""
    s = stage(most_out=None, per_host=100, found=400)
    first, second = s.workers
    assert first.exchange(s.leader, 50).leases
    assert second.exchange(s.leader, 50).leases
    assert len(s.leader.crawl.leases.owners) == len(first.waiting) + len(second.waiting) == most_out(0)
    assert s.leader.counts["at_most_out"]
    s.leader.most_out = 4
    assert not first.exchange(s.leader, 5).leases
    assert len(s.leader.crawl.leases.owners) == most_out(0)
    for worker in s.workers:
        for pick_id in [*worker.waiting][2:]:
            worker.release(pick_id)
    second.exchange(s.leader)
    assert not first.exchange(s.leader, 5).leases
    first.release(min(first.waiting))
    assert len(first.exchange(s.leader, 5).leases) == 1


# The end


def test_the_crawl_is_not_over_for_its_budget_while_a_lease_is_out(stage: Callable[..., Stage]) -> None:
    """It may be returned unsent, and then another request can be sent for it."""
    s = stage(budget={"requests": 2})
    first, second = s.workers
    first.exchange(s.leader, 5, 1)
    assert s.used == 1
    assert (len(first.waiting), second.exchange(s.leader, 5, 5).granted) == (1, 0)
    first.send_more()
    assert s.leader.finished() == ""
    [pick_id] = first.waiting
    first.release(pick_id)
    assert first.exchange(s.leader).finished == ""
    [lease] = first.exchange(s.leader, 5).leases
    first.send(lease.id)
    first.conclude(lease.id)
    assert first.exchange(s.leader, 5).finished == "budget_requests"


def test_a_stop_ends_the_crawl_for_all(stage: Callable[..., Stage]) -> None:
    """Nothing more is leased or granted, but leases in flight are reported; the first reason counts."""
    s = stage()
    worker, other = s.workers
    worker.exchange(s.leader, 3)
    s.leader.stop("shutdown")
    s.leader.stop()
    assert other.exchange(s.leader, 3, 1)[1:5] == ([], 0, [], "shutdown")
    assert worker.work(s.leader, 3).finished == "shutdown"
    assert s.leader.crawl.counts["outcomes"] == 3
    assert s.leader.status()["finished"] == "shutdown"


def test_the_leader_closes_when_nobody_is_left(stage: Callable[..., Stage]) -> None:
    """The last worker was killed: when its leases ended, there is a checkpoint, and others may have the folder."""
    s = stage(workers=1)
    s.workers[0].exchange(s.leader, 3)
    s.pass_(LEASE / 2)
    s.leader.reap()
    assert not s.leader.is_closed
    for _ in range(3):
        s.pass_(LEASE)
        s.leader.reap()
    assert s.leader.is_closed
    assert (s.leader.counts["expired"], s.used) == (3, 3)
    assert s.realm.lead().crawl.leases.owners == {}


def test_a_new_leader_closes_if_nobody_comes(stage: Callable[..., Stage]) -> None:
    """It closes only after the workers with leases had time to rejoin."""
    s = stage()
    s.workers[0].exchange(s.leader, 3)
    before = s.leader.crawl.leases.owners
    assert s.lead_again().crawl.leases.owners == before
    s.pass_(LEASE - 1)
    s.leader.reap()
    assert (s.leader.is_closed, s.leader.crawl.leases.owners) == (False, before)
    s.pass_(LEASE)
    s.leader.reap()
    s.pass_(LEASE)
    s.leader.reap()
    assert (s.leader.is_closed, s.leader.crawl.leases.owners) == (True, {})


# What can be seen


def test_status_and_news_say_how_it_stands(stage: Callable[..., Stage]) -> None:
    """For the crawl of all workers, and for each of them."""
    s = stage(budget={"requests": 50}, most_out=9)
    first, second = s.workers
    first.exchange(s.leader, 4, 2)
    first.work(s.leader, 3)
    s.pass_(2.0)
    status = s.leader.status()
    rewards = sum(answer(pick).mime == PDF for pick in first.waiting.values())
    assert {name: status[name] for name in ("requests", "limit", "outcomes", "most_out", "joined", "finished")} == {
        "requests": 6 - 2, "limit": 50, "outcomes": 4, "most_out": 9, "joined": 2, "finished": "",
    }  # fmt: skip
    assert status["out"] == len(s.leader.crawl.leases.owners)
    assert status["workers"][first.name] == {
        "leases": len(first.waiting), "ready": 0, "hosts": len(s.leader._hosts.of(first.name)), "silent": 2.0,
        "granted": 0,
    }  # fmt: skip
    assert status["workers"][second.name]["leases"] == status["workers"][second.name]["ready"] > 0
    news = second.exchange(s.leader).news
    assert news is not None
    assert (news.waiting, news.out, news.rewards >= 0) == (len(s.leader.crawl.frontier), status["out"], True)
    assert news.counts["workers"] == 2
    assert (news.used["requests"], news.limits["requests"]) == (4, 50)
    assert rewards >= 0
    answered = s.leader.exchange(second.message()._replace(looks=True))
    assert answered.portrait is not None
    assert second.exchange(s.leader).portrait is None


def test_the_goal_of_a_leader_is_described_as_that_of_its_workers() -> None:
    """So that one process can resume what a cluster began."""
    goal = FilesGoal(types=[PDF])
    assert repr(RemoteGoal(goal)) == repr(goal)


def test_why_a_pick_was_chosen_travels_with_it(tmp_path: Path) -> None:
    """Also with one that lay ready."""
    s = Stage(tmp_path, policy=lambda: BranchingBandit(targets=[PDF], words=["page"]), found=60, per_host=20)
    s.leader.crawl.state.decisions.explains = True
    first, second = s.workers
    got = [
        *first.exchange(s.leader, 4).leases,
        *second.exchange(s.leader, 4).leases,
        *first.exchange(s.leader, 6).leases,
    ]
    assert len(got) > 8
    assert all(lease.why for lease in got)
    assert len(s.leader._whys) == sum(len(member.ready) for member in s.leader._members.values())


class Hearing(Recording):
    """Writes down what it hears."""

    def hear(self, signals: Any) -> None:
        self.calls.append(("hear", *signals))


class Later(Recording):
    """Wants no link now."""

    def place(self, found: Any, source: Any) -> Any:
        return [NOT_NOW] * len(found)


def test_links_that_a_policy_leaves_are_named(tmp_path: Path) -> None:
    """Their worker sends them again when it finds them again."""
    s = Stage(tmp_path, policy=Later, found=0)
    worker = s.workers[0]
    for _ in range(2):
        worker.add(links(5, 6))
        assert worker.exchange(s.leader).unplaced == [5, 6]


def test_what_sitemaps_say_reaches_the_policy(tmp_path: Path) -> None:
    """Signals arrive unchanged."""
    s = Stage(tmp_path, policy=Hearing, found=3)
    signal = Signal(link_to(1).key, "h1", 5.0, "sitemap")
    s.leader.exchange(Exchange(s.workers[0].name, s.workers[0].session, [("hear", [tuple(signal)])]))
    assert s.leader.crawl.policy.called("hear") == [(signal,)]


# Other crawls


def test_one_process_resumes_what_a_cluster_began(stage: Callable[..., Stage]) -> None:
    """Leases are queued again, counted as recovered and charged, as they may have been sent; and vice versa."""
    s = stage(found=20, workers=2)
    s.workers[0].exchange(s.leader, 3, 2)
    s.workers[1].work(s.leader)
    s.workers[1].work(s.leader)
    done, out = s.leader.crawl.counts["outcomes"], len(s.leader.crawl.leases.owners)
    used = s.used
    s.realm.kill(s.leader)
    crawl = s.realm.crawl(is_shared=False)
    assert (crawl.picks, crawl.leases.owners, crawl.budget.requests_used) == ({}, {}, used + out)
    assert len(crawl.recovered) == out
    alone = 0
    for _ in range(5):
        pick = crawl.next()
        assert pick is not None
        assert crawl.sent(pick.id)
        crawl.report(answer(pick))
        alone += 1
    crawl.close()
    leader = s.leader = s.realm.lead()
    assert leader.crawl.counts["outcomes"] == done + alone
    worker = s.hire()
    for _ in range(200):
        worker.work(leader)
        s.pass_(1.0)
    assert leader.crawl.counts["outcomes"] == 21  # with one that others link to
    leader.close()


def test_a_leader_keeps_what_was_learned(tmp_path: Path) -> None:
    """It is in the given file when the leader closes."""
    realm = Realm(tmp_path / "crawl", lambda: BranchingBandit(targets=[PDF], words=["page"]))
    leader = realm.lead(learned_to=str(tmp_path / "learned"))
    leader.crawl.add(seeds())
    worker = FakeWorker("w", Site(), realm.clock)
    for _ in range(8):
        worker.work(leader)
    leader.close()
    leader.close()
    assert (tmp_path / "learned").stat().st_size


# Disks


def fill_up(monkeypatch: pytest.MonkeyPatch, leader: Leader) -> None:
    """Make all further writes to the journal fail."""
    folder, write = leader.crawl.job.folder, os.write

    def written(file: int, content: bytes) -> int:
        if any(os.path.samestat(os.fstat(file), path.stat()) for path in folder.glob("journal.*")):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, content)

    monkeypatch.setattr("os.write", written)


@pytest.mark.parametrize("first", ["exchange", "join", "leave", "reap"])
def test_a_full_disk_ends_the_crawl_for_all(
    first: str, stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever call hits it, each worker receives the reason, and the crawl resumes elsewhere from the files."""
    s = stage(workers=3)
    a, b, c = s.workers
    a.exchange(s.leader, 3)
    b.exchange(s.leader, 2)
    b.exchange(s.leader, 2, is_lost=True)
    before = dict(s.leader.crawl.leases.owners)
    fill_up(monkeypatch, s.leader)
    if first == "exchange":
        said = a.work(s.leader)
        assert said[:5] == (False, (), 0, (), "storage")
        assert "No space left" in said.failed
    elif first == "join":
        assert "No space left" in b.join(s.leader).failed
    elif first == "leave":
        assert not s.leader.leave(a.name, a.session)
    else:
        s.pass_(LEASE * 0.8)
        c.exchange(s.leader)
        s.pass_(LEASE * 0.8)
        s.leader.reap()
    assert "No space left" in s.leader.failure
    monkeypatch.undo()
    again = s.realm.lead()  # the folder is free
    assert again.crawl.leases.owners.items() <= before.items()
    again.close()
    assert not s.leader.is_closed
    assert s.leader.exchange(c.message(want=3)).finished == "storage"
    if first in ("exchange", "leave"):
        assert "No space left" in b.join(s.leader).failed
    elif first == "join":
        assert s.leader.exchange(a.message()).failed
    assert s.leader.is_closed
    with pytest.raises(LeaderClosed):
        a.join(s.leader)


def test_who_is_not_heard_of_need_not_know_of_a_full_disk(
    stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time of a lease the leader closes without it, at any worker's call."""
    s = stage(workers=2)
    fill_up(monkeypatch, s.leader)
    assert s.workers[0].exchange(s.leader, 1).failed
    s.pass_(LEASE / 2)
    s.leader.reap()
    assert not s.leader.is_closed
    assert s.leader.join(Hello("new", {}, [], [], 0)).failed
    s.pass_(LEASE)
    with pytest.raises(LeaderClosed):
        s.leader.join(Hello("new", {}, [], [], 0))
