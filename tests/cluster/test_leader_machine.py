"""Whatever workers, leaders and networks do: each link counts once, and no request too many is sent."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.cluster.fakes import LEASE, LINGER, FakeWorker, Realm, Site, seeds
from tests.examples import n_examples
from tests.jobs.walks import reachable

if TYPE_CHECKING:
    from scrapy_focus.cluster.leader import Leader
    from scrapy_focus.cluster.messages import Answer, Exchange

PER_HOST = 3
MOST = 7
whose = st.integers(0, 3)
which = st.integers(0, 30)


class Cluster(RuleBasedStateMachine):
    """Up to four workers at a time, and one leader after the other, against dictionaries."""

    leader: Leader

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.site = Site()
        self.workers: list[FakeWorker] = []
        self.dead: list[FakeWorker] = []
        self.outcomes: dict[int, float] = {}  # by key: what it was worth
        self.told: set[int] = set()  # keys of links that a leader received
        self.given: set[int] = set()  # ids of picks in all answers, those too that were lost
        self.keys: dict[int, int] = {}  # by id of these
        self.of_earlier: set[int] = set()  # leases of earlier leaders: they may have been given
        self.unheard: set[int] = set()  # leases that ended, and count as sent
        self.used = 0  # requests that are known to have gone out, or have to be taken for that
        self.granted: Counter[str] = Counter()  # as the leader has it
        self.asked: dict[str, tuple[str, float]] = {}  # by host: who asked it last with a lease, and when
        self.made = 0

    @initialize(budget=st.sampled_from([None, None, 12, 40]), every=st.sampled_from([3, 10**6]))
    def begin(self, budget: int | None, every: int) -> None:
        """Lead a crawl."""
        self.realm = Realm(
            self.folder / "crawl", every=every, budget={"requests": budget}, most_out=MOST, per_host=PER_HOST
        )
        self.budget = budget
        self.leader = self.realm.lead()
        self.come()
        self.workers[0].join(self.leader)
        self.workers[0].add(seeds())

    def teardown(self) -> None:
        """Finish all the remaining work."""
        if hasattr(self, "leader"):
            self.finish()
            self.leader.close()
        shutil.rmtree(self.folder)

    # Workers

    def worker(self, n: int) -> FakeWorker:
        """Return one of the living workers."""
        return self.workers[n % len(self.workers)]

    @precondition(lambda self: len(self.workers) < 4)
    @rule()
    def come(self) -> None:
        """Add another worker."""
        self.made += 1
        self.workers.append(FakeWorker(f"w{self.made}", self.site, self.realm.clock))

    @precondition(lambda self: len(self.workers) > 1)
    @rule(n=whose)
    def die(self, n: int) -> None:
        """A worker is killed."""
        worker = self.worker(n)
        self.workers.remove(worker)
        self.dead.append(worker)

    @rule(n=whose)
    def join(self, n: int) -> None:
        """Let a worker join or rejoin."""
        worker, owners = self.worker(n), dict(self.leader.crawl.leases.owners)
        holding, believed = worker.held, worker.granted
        welcome = worker.join(self.leader)
        mine = {pick_id for pick_id, owner in owners.items() if owner == worker.name}
        assert set(welcome.kept) == mine & holding
        assert self.leader.crawl.leases.owners == {
            id_: owner for id_, owner in owners.items() if id_ not in mine - holding
        }
        self.granted[worker.name] = min(self.granted[worker.name], believed)

    @rule(n=whose, want=st.integers(0, 6), extra=st.integers(0, 2), fate=st.sampled_from(["ok", "ok", "lost", "not"]))
    def exchange(self, n: int, want: int, extra: int, fate: str) -> None:
        """A worker reports and asks for more; message or answer may be lost."""
        worker = self.worker(n)
        if not worker.session:
            return
        message = worker.message(want, extra)
        if fate != "not":
            answer = self.hear(message)
        if fate == "ok":
            worker.hear(answer)
        else:
            worker.session = ""

    @rule(n=whose)
    def repeat(self, n: int) -> None:
        """A worker repeats a message that the leader may have received."""
        worker = self.worker(n)
        if worker.session:
            message = worker.message()
            self.hear(message)
            worker.hear(self.hear(message._replace(unused=0)))

    def hear(self, message: Exchange) -> Answer:
        """Send a message to the leader, and model its effect in dictionaries."""
        leader, worker, before = self.leader, message.worker, dict(self.leader.crawl.leases.owners)
        member = leader._members.get(worker)
        is_heard = member is not None and member.session == message.session
        refused = leader.counts["refused"]
        answer = leader.exchange(message)
        assert answer.rejoin != is_heard
        if not is_heard:
            assert leader.crawl.leases.owners == before
            return answer
        self.granted[worker] += answer.granted - message.unused
        gone, expected_refused = before.keys() - leader.crawl.leases.owners.keys(), 0
        for said in message.said:
            pick_id = said[1]
            links = said[3] if said[0] == "add" else said[4] if said[0] == "outcome" else []
            if pick_id is not None and before.get(pick_id) != worker:
                expected_refused += 1
                continue
            self.told.update(link[1] for link in links)
            if pick_id is None:
                continue
            self.used += said[2]
            assert pick_id in gone
            gone.discard(pick_id)
            before.pop(pick_id)
            if said[0] == "outcome":
                key = self.keys[pick_id]
                assert key not in self.outcomes, "it counted twice"
                self.outcomes[key] = said[3][8]
        assert leader.counts["refused"] == refused + expected_refused
        unheard = gone & (self.given | self.of_earlier)
        self.unheard |= unheard
        self.used += len(unheard)
        for lease in answer.leases:
            assert lease.id not in self.given, "an id was given twice"
            self.given.add(lease.id)
            self.keys[lease.id] = lease.key
            for other in [*self.workers, *self.dead]:
                if self.is_in_session(other):
                    assert lease.key not in {pick.key for pick in [*other.waiting.values(), *other.flying.values()]}
        assert len(answer.leases) <= message.want
        return answer

    @rule(n=whose, at=which)
    def send(self, n: int, at: int) -> None:
        """The request of a lease goes out, though its lease may have ended."""
        worker = self.worker(n)
        if worker.waiting:
            pick = [*worker.waiting.values()][at % len(worker.waiting)]
            worker.send(pick.id)
            if self.leader.crawl.leases.owners.get(pick.id) == worker.name:
                name, then = self.asked.get(pick.host, (worker.name, 0.0))
                assert name == worker.name or self.realm.clock() - then >= LINGER
                self.asked[pick.host] = worker.name, self.realm.clock()

    @rule(n=whose, at=which)
    def conclude(self, n: int, at: int) -> None:
        """A page was fetched."""
        worker = self.worker(n)
        if worker.flying:
            worker.conclude([*worker.flying][at % len(worker.flying)])

    @rule(n=whose, at=which)
    def release(self, n: int, at: int) -> None:
        """A lease was not fetched, or has to be fetched again."""
        worker = self.worker(n)
        if ids := [*worker.waiting, *worker.flying]:
            worker.release(ids[at % len(ids)])

    @rule(n=whose)
    def redirect(self, n: int) -> None:
        """A request is sent that was granted beyond one for each lease."""
        worker = self.worker(n)
        if worker.spare:
            worker.send_more()

    @precondition(lambda self: len(self.workers) > 1)
    @rule(n=whose)
    def leave(self, n: int) -> None:
        """Let a worker report everything, and leave."""
        worker = self.worker(n)
        if not worker.session or not self.is_in_session(worker):
            return
        for pick_id in [*worker.flying]:
            worker.conclude(pick_id)
        worker.hear(self.hear(worker.message()))
        self.granted[worker.name] -= worker.spare
        assert not self.leader.leave(worker.name, worker.session, worker.spare) or len(self.leader._members) == 0
        worker.waiting.clear()
        worker.spare = 0
        self.workers.remove(worker)
        if self.leader.is_closed:
            self.lead_again()

    # Leaders and time

    @rule(seconds=st.sampled_from([0.5, 5.0, LEASE / 2, LEASE + 2, 2 * LINGER]))
    def wait(self, seconds: float) -> None:
        """Let time pass without messages."""
        self.realm.clock.now += seconds

    @rule()
    def kill(self) -> None:
        """The leader is killed, and there is another one."""
        self.realm.kill(self.leader)
        self.lead_again()

    def lead_again(self) -> None:
        """Let another leader lead the crawl."""
        before = self.leader.crawl
        hosts = {before.picks[pick_id].host for pick_id in before.leases.owners}
        self.asked = {host: asked for host, asked in self.asked.items() if host in hosts}  # hosts with owners
        leases, used = dict(before.leases.owners), before.budget.requests_used
        self.leader = self.realm.lead()
        assert self.leader.crawl.leases.owners == leases
        assert self.leader.crawl.budget.requests_used == used
        self.of_earlier |= leases.keys()

    # What holds

    def is_in_session(self, worker: FakeWorker) -> bool:
        """Whether leader and worker agree that it takes part."""
        member = self.leader._members.get(worker.name)
        return member is not None and member.session == worker.session

    @invariant()
    def leases_are_within_bounds(self) -> None:
        """A host has one worker and few leases, and few leases are in flight; the counts are consistent."""
        leader, crawl = self.leader, self.leader.crawl
        by_host: dict[str, Counter[str]] = {}
        for pick_id, owner in crawl.leases.owners.items():
            by_host.setdefault(crawl.picks[pick_id].host, Counter())[owner] += 1
        assert all(len(owners) == 1 for owners in by_host.values())
        assert all(owners.total() <= PER_HOST for owners in by_host.values())
        assert len(crawl.leases.owners) <= MOST
        assert crawl.leases.owners.keys() == crawl.picks.keys() == leader._ends.keys()
        for name, member in leader._members.items():
            assert member.held == {pick_id for pick_id, owner in crawl.leases.owners.items() if owner == name}
            assert member.held >= set(member.ready)
        for host, tenure in leader._hosts._tenures.items():
            assert tenure.out == sum(by_host.get(host, Counter()).values())
            assert (host in leader._hosts.full) == (tenure.out >= PER_HOST)
            assert (host in leader._hosts.resting) == (tenure.owner == "")
        for name, hosts in leader._hosts._of.items():
            assert {host for host, tenure in leader._hosts._tenures.items() if tenure.owner == name} == hosts

    @invariant()
    def leases_are_of_those_who_have_them(self) -> None:
        """Who is in a session has no lease that the leader does not know to be its own."""
        for worker in [*self.workers, *self.dead]:
            if self.is_in_session(worker):
                assert all(self.leader.crawl.leases.owners.get(pick_id) == worker.name for pick_id in worker.held)

    @invariant()
    def what_is_charged_is_right(self) -> None:
        """Requests, rewards and outcomes are those of the dictionaries, and no request too many went out."""
        crawl = self.leader.crawl
        assert crawl.budget.requests_used == self.used + self.granted.total()
        assert +crawl.leases.granted == +self.granted
        assert crawl.rewards == sum(self.outcomes.values())
        assert crawl.counts["outcomes"] == len(self.outcomes)
        sent = self.site.sent.total() + self.site.extra.total()
        assert sent <= crawl.budget.requests_used + len(crawl.state.in_flight.unsent)
        assert self.site.sent.total() == len(self.site.sent)
        if self.budget is not None:
            assert crawl.budget.requests_used + len(crawl.state.in_flight.unsent) <= self.budget

    def finish(self) -> None:
        """Let the living fetch everything left: nothing is lost; only leases of the dead are charged in vain."""
        for _ in range(300):
            for n, worker in enumerate(self.workers):
                self.join(n)
                for pick_id in [*worker.waiting]:
                    worker.send(pick_id)
                for pick_id in [*worker.flying]:
                    worker.conclude(pick_id)
                self.exchange(n, 3, 0, "ok")
                self.leases_are_within_bounds()
            self.what_is_charged_is_right()
            self.realm.clock.now += 7.0
            if self.leader.finished() or not (len(self.leader.crawl.frontier) or self.leader.crawl.leases.owners):
                break
        else:
            raise AssertionError("it does not end")
        for worker in self.workers:
            while worker.outbox or worker.waiting or worker.spare:
                worker.join(self.leader)
                self.granted[worker.name] = min(self.granted[worker.name], worker.granted)
                for pick_id in [*worker.waiting]:
                    worker.release(pick_id)
                worker.hear(self.hear(worker.message()))
        if self.budget is None:
            assert self.outcomes.keys() == (reachable() if self.told else set())
            assert self.told <= self.outcomes.keys()
        charged = len(self.site.sent.keys() | self.unheard) + self.site.extra.total()
        of_the_dead = sum(self.granted[dead.name] - self.site.extra[dead.name] for dead in self.dead)
        assert self.leader.crawl.budget.requests_used == charged + of_the_dead


TestCluster = Cluster.TestCase
TestCluster.settings = settings(
    max_examples=n_examples(25), stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
