"""The leader owns the crawl that all workers share. It is independent of engine and network.

Its calls do not overlap. Exactness is guaranteed here and by the journal of the crawl:

* A pick id is used only once, and is in the journal before a worker sees it: it is the fencing token. A worker's
  message about a pick counts if the lease still belongs to that worker; all others are refused, and counted.
* A lease reserves one request of the budget. Its worker reports whether that was sent. A lease that ends without a
  report counts as sent, since its worker may have sent it; one that its worker never received costs nothing.
* Requests beyond one for each pick are granted ahead and count as used; unsent ones are returned.
* A host belongs to its last worker until it has rested longer than any delay. So delays, cookies, robots.txt and
  connections stay in one downloader. A late worker gets hosts of workers with enough to do, after the same rest.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapy_focus.cluster.hosts import Hosts
from scrapy_focus.cluster.messages import (
    Answer,
    Hello,
    LeaderClosed,
    Lease,
    News,
    Portrait,
    Welcome,
    links_of,
    outcome_of,
)
from scrapy_focus.core.busy import Busy
from scrapy_focus.core.errors import FocusError, StorageError
from scrapy_focus.core.events import Leased
from scrapy_focus.core.outstanding import most_out
from scrapy_focus.core.printable import PARAGRAPH, printable_logger, reason_of
from scrapy_focus.core.types import Signal, State
from scrapy_focus.jobs.description import differences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from scrapy_focus.cluster.messages import Exchange, Said
    from scrapy_focus.core.crawl import Crawl
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.types import Link, Outcome, Pick

logger = printable_logger(__name__)

_READY = 16  # picks reserved for a worker at the request of others, at most
_GATHER = 10.0  # seconds for workers of an earlier leader to rejoin


class RemoteGoal:
    """The goal of a leader: its workers have the pages, and report the rewards.

    Parameters
    ----------
    goal
        The goal of the workers, used to describe this one.
    """

    def __init__(self, goal: Goal) -> None:
        self.goal = goal

    def __call__(self, outcome: Outcome) -> float:
        return outcome.reward

    def __repr__(self) -> str:
        return repr(self.goal)


@dataclass(slots=True)
class _Member:
    """A worker that has joined."""

    session: str
    seen: float  # seconds of the clock; time of its last message
    ready: deque[int] = field(default_factory=deque)  # ids of picks reserved for it
    held: set[int] = field(default_factory=set)  # ids of its leases, including reserved ones
    idle: float | None = None  # seconds of the clock; since when it asks in vain
    is_sated: bool = False  # whether its last request was met in full


class Leader:
    """Leases the picks of a crawl to workers, and passes their messages to the crawl.

    Parameters
    ----------
    crawl
        The crawl, made with ``is_shared=True`` and a :class:`RemoteGoal`. The leader closes it.
    agreed
        Values that have to be equal for all workers: names and values, as text.
    lease
        Seconds without a message after which the leases of a worker end.
    linger
        Seconds for which a host stays with its last worker: longer than any delay between two requests.
    rest
        Seconds for which a host rests after its worker left: as long as any delay; ``linger`` by default.
    per_host
        Leases of one host at a time.
    most_out
        Leases at a time, including reserved ones; by default, the number that
        :func:`~scrapy_focus.core.outstanding.most_out` allows after so many outcomes.
    learned_to
        The file in which the policy saves what it learned when the crawl is closed.
    clock
        Seconds, for durations.
    """

    def __init__(
        self,
        crawl: Crawl,
        *,
        agreed: Mapping[str, str] | None = None,
        lease: float = 30.0,
        linger: float = 60.0,
        rest: float | None = None,
        per_host: int = 8,
        most_out: int | None = None,
        learned_to: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.crawl = crawl
        self.agreed = dict(agreed or {})
        self.lease = lease
        self.most_out = most_out
        self.learned_to = learned_to
        self.clock = clock
        self.counts: Counter[str] = Counter()
        self.is_closed = False
        self.failure = ""  # why its files cannot be written any more
        self._members: dict[str, _Member] = {}
        self._hosts = Hosts(linger=linger, rest=rest, per_host=per_host)
        self._closed: frozenset[str] = frozenset()  # hosts that stay closed for a while
        self._closed_for: tuple[int, tuple[str, ...]] = (-1, ())  # the versions from which that was computed
        self._ends: dict[int, float] = {}  # by lease: when it ends without a message of its worker
        self._reaped = clock()
        self._stopped = ""
        self._claims: dict[int, int] = {}  # pick by the key of its redirect target
        self._claimed: dict[int, list[int]] = {}  # likewise, keys by pick
        self._whys: dict[int, dict[str, Any]] = {}  # by reserved lease: the policy's reason for its choice
        self._absent: set[str] = set()  # workers of an earlier leader that may rejoin
        self._since = now = clock()
        for pick_id, owner in [*crawl.leases.owners.items()]:  # of an earlier leader
            self._absent.add(owner)
            self._ends[pick_id] = now + lease
            self._hosts.take(crawl.picks[pick_id].host, owner, now)
        self._gather_until, self._back_until = now + min(lease, _GATHER), now + lease

    # Called by workers

    def join(self, hello: Hello) -> Welcome:
        """Admit a worker that joins, or that rejoins after it lost its session, and reconcile the leases.

        Leases that it does not name never reached it: they are released and cost nothing. Further requests that it was
        granted but never received are returned.
        """
        now = self.clock()
        if self.failure:
            self._close_when_told(now)
        if self.is_closed:
            raise LeaderClosed("the crawl was closed")
        if self.failure:
            return self._told(hello.worker, now)
        if said := differences(self.agreed, dict(hello.agreed)):
            self.counts["refused_workers"] += 1
            return Welcome(
                refused=f"its settings differ from those of the crawl: {said}; use the same settings on all "
                "machines, or end the crawl with focus stop"
            )
        try:
            return self._welcome(hello, now)
        except StorageError as error:
            self._fail(error)
            return self._told(hello.worker, now)

    def _welcome(self, hello: Hello, now: float) -> Welcome:
        worker, crawl = hello.worker, self.crawl
        self._absent.discard(worker)
        if (before := self._members.pop(worker, None)) is not None:
            before.ready.clear()
        member = self._members[worker] = _Member(secrets.token_hex(8), now)
        holding, kept = set(hello.holding), []
        for pick_id, owner in [*crawl.leases.owners.items()]:
            if owner != worker:
                continue
            if pick_id in holding:
                member.held.add(pick_id)
                self._ends[pick_id] = now + self.lease
                self._hosts.keep(crawl.picks[pick_id].host, worker, now)
                kept.append(pick_id)
            else:
                self._end(pick_id)
                crawl.release(pick_id)
                self.counts["undelivered"] += 1
        self._grant(worker, min(0, hello.granted - crawl.leases.granted[worker]))
        for host in hello.hosts:
            self._hosts.keep(host, worker, now)
        self.counts["joined"] += 1
        return Welcome(member.session, kept)

    def exchange(self, message: Exchange) -> Answer:
        """Process the reports and wishes of a worker."""
        now = self.clock()
        member = self._members.get(message.worker)
        if self.is_closed or member is None or member.session != message.session:
            return Answer(rejoin=True)
        member.seen = now
        if not self.failure:
            try:
                return self._exchange(message, member, now)
            except StorageError as error:
                self._fail(error)
        del self._members[message.worker]  # it knows
        self._close_when_told(now)
        return Answer(finished="storage", failed=self.failure)

    def _exchange(self, message: Exchange, member: _Member, now: float) -> Answer:
        self.counts["exchanges"] += 1
        self._renew(member, message.alive, now)
        self._grant(message.worker, -message.unused)  # before anything can make the budget look used up
        unplaced: list[int] = []
        for said in message.said:
            self._hear(message.worker, member, said, unplaced)
        if message.n_bytes:
            self.crawl.received(message.n_bytes)
        self.reap()
        granted = 0
        if message.extra > 0 and not self.finished():
            granted = self._grant(message.worker, message.extra)
        claimed = [int(self._claim(member, pick_id, key)) for pick_id, key in message.claims]
        leases = self._deal(message.worker, member, message.want, now) if message.want > 0 else []
        member.is_sated = len(leases) >= message.want
        return Answer(
            leases=leases,
            granted=granted,
            unplaced=unplaced,
            finished=self.finished(),
            news=self.news(),
            portrait=self.portrait() if message.looks else None,
            claimed=claimed,
        )

    def _renew(self, member: _Member, alive: Iterable[int], now: float) -> None:
        """Extend the leases that a worker says it has, and those reserved for it."""
        for pick_id in alive:
            if pick_id in member.held:
                self._ends[pick_id] = now + self.lease
        for pick_id in member.ready:
            self._ends[pick_id] = now + self.lease

    def leave(self, worker: str, session: str, unused: int = 0) -> bool:
        """Let a worker leave after its last report: its remaining leases were never sent.

        With the last worker, the leader closes; returns whether it did.
        """
        member = self._members.get(worker)
        if member is None or member.session != session or self.is_closed:
            return self.is_closed
        if not self.failure:
            try:
                self._grant(worker, -unused)
                for pick_id in [*member.held]:
                    self._end(pick_id)
                    self.crawl.release(pick_id)
            except StorageError as error:
                self._fail(error)
        self._part(worker)
        self.counts["left"] += 1
        if not self._members:
            self.close()
        return self.is_closed

    def stop(self, reason: str = "stopped") -> bool:
        """End the crawl for all workers: nothing more is leased, but leases in flight are still reported.

        Returns whether it is closed, which requires that no worker is active; call it until it is.
        """
        self._stopped = self._stopped or reason
        if not self.is_closed:
            self.reap()
            if not (self._members or self._absent):
                self.close()
        return self.is_closed

    def close(self) -> dict[str, Any]:
        """Write a checkpoint, and close the crawl. Idempotent. Returns :meth:`status`.

        A failure of the checkpoint is logged: the journal has everything.
        """
        status = self.status()
        if not self.is_closed:
            self.is_closed = True
            try:
                if not self.failure:
                    self.crawl.checkpoint()
            except FocusError as error:
                logger.error("The last checkpoint could not be written: %s", reason_of(error))
            finally:
                self._close_crawl()
        return status

    def _close_crawl(self) -> None:
        try:
            self.crawl.close(learned_to=self.learned_to)
        except FocusError as error:
            logger.error("The crawl could not be closed cleanly: %s", reason_of(error))

    def _fail(self, error: StorageError) -> None:
        """End the crawl and release its folder: its files are intact, but nothing can be added to them."""
        self.failure = reason_of(error, PARAGRAPH)
        logger.error("The leader ends the crawl for all workers: %s", self.failure)
        self._close_crawl()

    def _told(self, worker: str, now: float) -> Welcome:
        self._members.pop(worker, None)
        self._close_when_told(now)
        return Welcome(failed=self.failure)

    def _close_when_told(self, now: float) -> None:
        """Close once all active workers know that the crawl failed."""
        self._members = {name: each for name, each in self._members.items() if now - each.seen <= self.lease}
        self.is_closed = self.is_closed or not self._members

    # For inspection

    def finished(self) -> str:
        """Why the crawl is over, or ``""``; a used-up budget does not end it while a lease is in flight."""
        reason = self._stopped or self.crawl.finished()
        if reason.startswith("budget_requests") and self.crawl.leases.owners:
            return ""
        return reason

    def status(self) -> dict[str, Any]:
        """Return the state of crawl, workers, leases and hosts, as plain values."""
        crawl, now = self.crawl, self.clock()
        status = crawl.status()
        return {
            "finished": self.finished(),
            "requests": int(status.used["requests"]),
            "limit": status.limits["requests"],
            "seconds": status.used["seconds"],
            "rate": "" if status.rate is None else str(status.rate),
            "rewards": status.rewards,
            "outcomes": status.counts.get("outcomes", 0),
            "waiting": status.waiting,
            "asleep": status.asleep,
            "out": len(crawl.leases.owners),
            "most_out": self._most(),
            "hosts": len(self._hosts),
            "workers": {
                name: {
                    "leases": len(member.held),
                    "ready": len(member.ready),
                    "hosts": len(self._hosts.of(name)),
                    "silent": round(now - member.seen, 1),
                    "granted": crawl.leases.granted[name],
                }
                for name, member in self._members.items()
            },
            **self.counts,
        }

    def news(self) -> News:
        """Return the state of the crawl."""
        crawl, status = self.crawl, self.crawl.status()
        counts: dict[str, float] = dict(self.counts)
        counts |= {
            "workers": len(self._members), "leases": len(crawl.leases.owners), "most_out": self._most(),
            "hosts": len(self._hosts), "requests": status.used["requests"], "reward": status.rewards,
            "outcomes": status.counts.get("outcomes", 0), "waiting": status.waiting, "asleep": status.asleep,
            "arms": status.arms,
        }  # fmt: skip

        def from_now(at: float | None) -> float | None:
            if at is None:
                return None
            return max(0.0, at - status.at)

        return News(
            counts, status.waiting, status.asleep, len(crawl.leases.owners), status.arms, status.awake, status.rewards,
            dict(status.used), dict(status.limits), "" if status.rate is None else str(status.rate),
            from_now(status.next_due), from_now(status.next_turn), from_now(status.due),
        )  # fmt: skip

    def portrait(self, best: int = 10) -> Portrait:
        """Return the facts that are slow to compute."""
        status = self.crawl.status(best=best)
        return Portrait([*status.found_at], status.best_arms, status.left, status.cost, self.crawl.forecasts.tables())

    def reap(self) -> None:
        """End the leases of silent workers: their links are queued again, and their requests count as sent.

        If no worker is left, the leader closes. :meth:`exchange` does this too; an engine does it now and then, as the
        last worker may be killed.
        """
        now = self.clock()
        if self.is_closed or now - self._reaped < self.lease / 20:
            return
        self._reaped = now
        if self.failure:
            self._close_when_told(now)
            return
        try:
            self._reap(now)
        except StorageError as error:
            self._fail(error)
            self._close_when_told(now)
            return
        if not self._members and not self._absent and now - self._since > self.lease:
            self.close()

    def _reap(self, now: float) -> None:
        for worker, member in [*self._members.items()]:
            if now - member.seen > self.lease:
                for pick_id in [*member.ready]:  # it never received these
                    self._end(pick_id)
                    self.crawl.release(pick_id)
                self._part(worker)
                self.counts["lost_workers"] += 1
        for pick_id in [pick_id for pick_id, end in self._ends.items() if end < now]:
            self._end(pick_id)
            self._charge(pick_id)
            self.crawl.release(pick_id)
            self.counts["expired"] += 1
        if now > self._back_until:
            for worker in self._absent:
                self._hosts.gone(worker, now)
            self._absent.clear()
        self._hosts.forget(now)

    def _part(self, worker: str) -> None:
        del self._members[worker]
        self._hosts.gone(worker, self.clock())

    # Messages of workers

    def _hear(self, worker: str, member: _Member, said: Said, unplaced: list[int]) -> None:
        match said:
            case ("outcome", pick_id, is_sent, record, links, known):
                made = self._unclaimed(links, unplaced)
                if not self._is_fenced(member, pick_id):
                    outcome = outcome_of(record, self.crawl.picks)
                    self._end_used(pick_id, is_sent)
                    self.crawl.report(outcome, made, known)
                self._note_unplaced(made, unplaced)
            case ("release", pick_id, is_sent):
                if not self._is_fenced(member, pick_id):
                    self._end_used(pick_id, is_sent)
                    self.crawl.release(pick_id)
            case ("add", None, None, links):
                made = self._unclaimed(links, unplaced)
                self.crawl.add(made)
                self._note_unplaced(made, unplaced)
            case ("add", pick_id, record, links):
                made = self._unclaimed(links, unplaced)
                if not self._is_fenced(member, pick_id):
                    self.crawl.add(made, outcome_of(record, self.crawl.picks))
                self._note_unplaced(made, unplaced)
            case ("hear", signals):
                self.crawl.hear([Signal(*signal) for signal in signals])

    def _end_used(self, pick_id: int, is_sent: bool) -> None:
        """Count a lease as ended; its worker says whether its request was sent."""
        if is_sent:
            self._charge(pick_id)
        self._end(pick_id)

    def _grant(self, worker: str, n: int) -> int:
        """Grant a worker up to ``n`` requests beyond one for each pick; they count as used.

        Returns the number granted. A negative ``n`` returns that many unsent requests.
        """
        event = self.crawl.leases.grant(worker, n, self.crawl.now())
        self.crawl.happen(event)
        return 0 if event is None else event.n

    def _charge(self, pick_id: int) -> None:
        """Count the request of a lease once, even if an earlier leader was killed right after it was sent."""
        if self.crawl.leases.is_reserved(pick_id):
            self.crawl.sent(pick_id)

    def _unclaimed(self, values: Sequence[tuple[Any, ...]], unplaced: list[int]) -> list[Link]:
        """Return reported links without those to which a pick is redirected right now.

        If such a redirect fails, those links have to be reported again.
        """
        links = links_of(values)
        if not self._claims:
            return links
        unplaced += [link.key for link in links if link.key in self._claims]
        return [link for link in links if link.key not in self._claims]

    def _claim(self, member: _Member, pick_id: int, key: int) -> State:
        """Return the state of a redirect's target; if it is new, it is known until the pick has its outcome."""
        [state] = self.crawl.knows([key])
        if state != State.NEW or self._claims.get(key) == pick_id:
            return state
        if key in self._claims or pick_id not in member.held:
            return State.FLYING
        self._claims[key] = pick_id
        self._claimed.setdefault(pick_id, []).append(key)
        return state

    def _is_fenced(self, member: _Member, pick_id: int) -> bool:
        """Whether a lease does not belong to this worker, or no longer."""
        if pick_id in member.held:
            return False
        self.counts["refused"] += 1
        return True

    def _note_unplaced(self, links: Sequence[Link], unplaced: list[int]) -> None:
        keys = [link.key for link in links]
        unplaced += [key for key, state in zip(keys, self.crawl.knows(keys), strict=True) if state == State.NEW]

    # Leases

    def _most(self) -> int:
        """Return how many leases may be in flight now."""
        if self.most_out is not None:
            return self.most_out
        names_hosts = self.crawl.names_hosts
        n_hosts = len(self._hosts) if names_hosts is None else len(names_hosts.hosts)
        return most_out(self.crawl.counts["outcomes"], n_hosts)

    def _deal(self, worker: str, member: _Member, want: int, now: float) -> list[Lease]:
        """Return up to `want` leases for a worker."""
        if self.finished() or (self._absent and now < self._gather_until):
            return []
        self._choose(worker, member, want, now)
        given = [member.ready.popleft() for _ in range(min(want, len(member.ready)))]
        if given or member.held:
            member.idle = None
        else:
            self._share(member, now)
        return [Lease.of(self.crawl.picks[pick_id], self._whys.pop(pick_id, None)) for pick_id in given]

    def _choose(self, worker: str, member: _Member, want: int, now: float) -> None:
        """Choose the best picks of all hosts, and reserve each for the owner of its host.

        Ends when this worker has what it wants, or nothing more can be chosen.
        """
        crawl, hosts, most = self.crawl, self._hosts, self._most()
        enough = max(1, min(_READY, most // (2 * len(self._members))))
        busy, misses = self._busy(worker, enough), 0
        while len(member.ready) < want and misses <= len(self._members):  # more only if a policy chooses busy hosts
            if len(crawl.leases.owners) >= most:
                self.counts["at_most_out"] += 1
                break
            pick = crawl.next(busy)
            if pick is None:
                break
            owner = hosts.owner(pick.host) or self._newcomer(worker, enough)
            if owner != worker and len(self._members[owner].ready) >= enough:
                crawl.release(pick.id)
                self.counts["passed_over"] += 1
                busy, misses = self._busy(worker, enough), misses + 1
                continue
            self._lay_ready(pick, owner, now)

    def _share(self, member: _Member, now: float) -> None:
        """After a worker was idle for a while, have another one that has all it wants hand on some of its hosts."""
        if member.idle is None:
            member.idle = now
        sated = [name for name, each in self._members.items() if each.is_sated]
        if sated and now - member.idle >= self.lease / 3:
            busiest = max(sated, key=lambda name: len(self._members[name].held))
            self.counts["handed_on"] += self._hosts.hand_on(busiest, len(self._members), now)
            member.idle = now + self._hosts.rest  # they rest before they are free

    def _lay_ready(self, pick: Pick, owner: str, now: float) -> None:
        self.crawl.happen(Leased(pick.id, owner))
        if self.crawl.state.decisions.explains:
            self._whys[pick.id] = self.crawl.why
        self._ends[pick.id] = now + self.lease
        self._hosts.take(pick.host, owner, now)
        member = self._members[owner]
        member.held.add(pick.id)
        member.ready.append(pick.id)

    def _busy(self, worker: str, enough: int) -> Busy:
        """Return the hosts that must not be chosen.

        These are hosts with enough leases, resting hosts, and hosts of others who have enough reserved or may rejoin.
        All but the first kind rarely change.
        """
        others = [name for name, each in self._members.items() if name != worker and len(each.ready) >= enough]
        others += sorted(self._absent)
        key = self._hosts.version, tuple(others)
        if key != self._closed_for:
            self._closed_for = key
            self._closed = frozenset(self._hosts.resting.union(*map(self._hosts.of, others)))
        return Busy(self._closed, self._hosts.full)

    def _newcomer(self, worker: str, enough: int) -> str:
        """Return the worker that gets a host without owner: the one with least to do, or else the asking one.

        A worker with enough reserved picks gets none, as it may be dead.
        """
        members, hosts = self._members, self._hosts
        able = [name for name, each in members.items() if name == worker or len(each.ready) < enough]
        return min(able, key=lambda name: (len(members[name].held), len(hosts.of(name)), name != worker))

    def _end(self, pick_id: int) -> None:
        """End a lease."""
        owner = self.crawl.leases.owners[pick_id]
        del self._ends[pick_id]
        self._whys.pop(pick_id, None)
        if (member := self._members.get(owner)) is not None:
            member.held.discard(pick_id)
            if pick_id in member.ready:
                member.ready.remove(pick_id)
        for key in self._claimed.pop(pick_id, ()):
            del self._claims[key]
        self._hosts.leave(self.crawl.picks[pick_id].host, self.clock())
