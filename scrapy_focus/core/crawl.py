"""The loop: links in, picks out, outcomes back. Every driver, live or simulated, uses it.

The crawl decides on an event, applies it, and passes it to its keeper. Its state changes only in
:meth:`CrawlState.apply <scrapy_focus.core.crawl_state.CrawlState.apply>`; applying the same events again gives the
same crawl. The order for an outcome is fixed. The goal sets the reward, the frontier settles the pick, the policy
places the links of the page with that reward known, and then learns. So ``learn`` is called exactly once for each
pick, and no policy handles partial credit.

The parts of :class:`~scrapy_focus.core.crawl_state.CrawlState` hold all state that events change. The loop asks them
for the next event and applies it.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from scrapy_focus.core.budget import Budget
from scrapy_focus.core.busy import parts_of
from scrapy_focus.core.clock import Clock
from scrapy_focus.core.contract import check_order, check_pieces, made, save_learned
from scrapy_focus.core.crawl_state import CrawlState
from scrapy_focus.core.errors import ConfigError, PolicyError
from scrapy_focus.core.events import Added, Concluded, Heard, Paced, Picked, Recovered, Released, Sent
from scrapy_focus.core.forecasts import Forecasts
from scrapy_focus.core.frontier import NamesHosts, Ranks
from scrapy_focus.core.goal import ItemsGoal
from scrapy_focus.core.guard import FAILED, Guard
from scrapy_focus.core.job_writer import JobWriter
from scrapy_focus.core.mission import Mission
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.core.room import check_most_waiting
from scrapy_focus.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from os import PathLike

    from scrapy_focus.core.events import Event
    from scrapy_focus.core.frontier import Drawn, Frontier, MakeFrontier, Ranked
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.keeper import Keeper
    from scrapy_focus.core.log import EventLog
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.poor import Poor
    from scrapy_focus.core.stop import StopRule
    from scrapy_focus.core.types import Link, Outcome, Pick, Signal, State

logger = printable_logger(__name__)

_PUT_LAST = 50  # links put last in a row before one is fetched all the same


class Crawl:
    """Passes links, picks and outcomes between frontier, goal and policy; owns budget, counts and checkpoints.

    Parameters
    ----------
    policy
        The policy; the crawl opens it.
    frontier
        Where links are queued: a function that makes it for the policy, such as
        :func:`~scrapy_focus.frontiers.memory.memory_frontier`, or a finished frontier.
    job
        Where to keep the crawl so that it survives its process, in place of ``frontier``: it brings its own. If it
        holds a crawl already, this one resumes it, and links that were in flight are queued again (``recovered`` has
        the keys).
    goal
        The value of an outcome; items scraped by default.
    mission
        What the policy knows of the goal beforehand; derived from the goal by default.
    budget
        Limits; none by default.
    stop
        When to stop; never by default.
    most_waiting
        Links that may be queued, sleeping ones not counted; no limit by default. If more are queued after links were
        placed, the policy gives up those that it wants least, until nine tenths of this number are left
        (``counts["link/dropped"]``).
    poor
        Recognises links that are fetched only when nothing else is left, wherever the policy places them; by default
        none are. In a crawl that revisits pages, which has no end, they are given up. Start requests are never poor.
    seed
        Seeds all randomness; a crawl with one request in flight and a seed repeats its choices.
    log
        Where to write decisions.
    explain
        Keep the policy's reason for its last choice in ``why``, see :meth:`Reason.record
        <scrapy_focus.core.reason.Reason.record>`.
    strict
        Let errors of a policy or goal through. Otherwise they are logged with its name and counted
        (``counts["error/..."]``), and the crawl continues. Links that could not be placed are queued in arm 0, first
        in first out, and leave it at the latest when the policy selects nothing. Where ``select`` failed, any queued
        link is taken. A reward that could not be computed is 0. Strict or not, any queued link is taken if a policy
        selects nothing although hosts are free, nothing is in flight and nothing due (``counts["select/none"]``).
    clock
        The time, in seconds since the epoch, or since any other beginning that all runs of the crawl share; the
        machine's by default. Durations are measured by a clock that nobody sets.
    patience
        Seconds to keep an outcome open whose goal returned ``None``; after that its reward is 0. They shrink, down to
        none, while :meth:`reward` is never called, so that a goal that forgets to return a number does not stop a
        crawl.
    counts
        Where to count; the driver of the crawl may count there, too.
    is_shared
        Whether others fetch the picks (:mod:`scrapy_focus.cluster`). Then picks that were in flight when an earlier
        run ended stay in flight when the crawl resumes, until their owner (:meth:`lease`) reports.

    Raises
    ------
    ConfigError
        If neither or both of ``frontier`` and ``job`` are given, or an argument has the wrong type.
    ResumeError
        If the job holds a crawl with another goal, mission, policy or parameters.
    PolicyError
        If there is a job, and the policy cannot be pickled.
    StorageError
        If the job cannot be read or written; also raised by every method that writes there.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        frontier: Frontier | MakeFrontier | None = None,
        job: Keeper | None = None,
        goal: Goal | None = None,
        mission: Mission | None = None,
        budget: Budget | None = None,
        stop: StopRule | None = None,
        most_waiting: int | None = None,
        poor: Poor | None = None,
        seed: int | None = None,
        log: EventLog | None = None,
        explain: bool = False,
        strict: bool = False,
        clock: Callable[[], float] | None = None,
        patience: float = 60.0,
        counts: Counter[str] | None = None,
        is_shared: bool = False,
    ) -> None:
        _check_places(frontier, job)
        check_pieces(policy, goal, stop)
        check_most_waiting(most_waiting)
        self.goal: Goal = goal if goal is not None else ItemsGoal()
        self.budget = budget if budget is not None else Budget()
        self.mission = mission if mission is not None else Mission.of(self.goal)
        if self.budget.rate is not None:
            self.mission = self.mission.at_rate(self.budget.rate.per_second)
        self.clock = time.monotonic if clock is None else clock  # for durations
        self.now = Clock() if clock is None else Clock(clock, clock)  # seconds since the epoch, over all runs
        self.counts: Counter[str] = counts if counts is not None else Counter()
        self.is_shared = is_shared
        self.where = ""  # the crawl that this one is part of, in words, where another machine leads it; none here
        self.guard = Guard(policy, self.goal, stop, log, counts=self.counts, strict=strict)
        self.budget.start(self.clock)
        keeps = policy.keeps(self.mission)
        if job is not None:
            self.frontier = job.open(self)
        else:
            self.frontier = made(frontier, keeps) if callable(frontier) else cast("Frontier", frontier)
        check_order(self.frontier, keeps, policy)
        self.state = CrawlState(
            self.guard, self.frontier, goal=self.goal, mission=self.mission, budget=self.budget, stop=stop, log=log,
            explains=explain, most_waiting=most_waiting, poor=poor, clock=self.clock, patience=patience,
            counts=self.counts, ranked=isinstance(keeps, Ranks),
        )  # fmt: skip
        self.job: Keeper | None = None  # where the crawl is kept, once everything in it is applied
        self._writer = JobWriter(self.state, self.now)
        self.sleepers = self.state.sleepers  # links that sleep until a time
        self.names_hosts = self.frontier if isinstance(self.frontier, NamesHosts) else None
        self.picks = self.state.picks  # in flight, by id
        self.recovered = self.state.in_flight.recovered  # keys in flight when a run was killed
        self.leases = self.state.leases  # of the machines that fetch for it
        self.stop = stop
        self.log = log
        self.comes_back = self.state.refetches.comes_back  # whether fetched pages may be queued again
        self.forecasts = Forecasts(self.guard, self.now)
        self._rewards = self.state.rewards
        self.found_at = self._rewards.found_at  # (requests used, rewards) at the last rewards
        self.is_kept = job is not None  # whether it survives its process
        restored = job is not None and job.restore(self.state)
        if not restored:
            policy.budget_rate = self.mission.rate
            policy.open(self.frontier, np.random.default_rng(seed), self.mission)
        if job is not None:
            self._begin(job, is_new=not restored)

    @property
    def policy(self) -> Policy:
        """The policy; :meth:`Guard.take_up <scrapy_focus.core.guard.Guard.take_up>` replaces it."""
        return self.guard.policy

    @property
    def why(self) -> dict[str, Any]:
        """The policy's explanation of its last choice, if it was asked."""
        return self.state.decisions.why

    @property
    def rewards(self) -> float:
        """The sum of all rewards so far."""
        return self._rewards.total

    # What a driver calls

    def add(self, links: Sequence[Link], source: Outcome | None = None) -> int:
        """Let the policy place links, and return how many it queued that were not queued before.

        ``source`` is the outcome of the page where they were found; ``None`` for seeds.
        """
        if source is not None and source.pick.id not in self.picks:
            raise PolicyError(
                f"links came for pick {source.pick.id} ({source.pick.url}), which is not in flight: give them to "
                "report(), or to add() before that"
            )
        before = len(self.frontier) + self.state.sleepers.asleep
        self.happen(Added(links, None if source is None else self._writer.noted(source), self.now()))
        added = len(self.frontier) + self.state.sleepers.asleep - before
        self.happen(self.state.room.make(self.now))
        self._writer.keep_up()
        return added

    def next(self, busy: Collection[str] = (), *, turns: Iterable[Collection[str]] | None = None) -> Pick | None:
        """Return the next pick to fetch, or ``None`` if nothing can be sent now.

        ``busy`` are the hosts that can take nothing now; if they are many, a :class:`~scrapy_focus.core.busy.Busy`
        with those closed for a while and the others. A pick reserves one request of the budget until :meth:`sent`.
        ``turns`` are several such sets to use instead: the first that leaves something to choose counts.
        """
        self.expire()
        self.wake()
        if not len(self.frontier):
            self.happen(self.state.poor_last.wake())
        if turns is not None:
            order = cast("Ranked | Drawn", self.frontier)
            first = next((each for each in turns if order.awake(each).any()), None)
            if first is None:
                return None
            busy = first
        if self.finished() or not self.budget.left(len(self.state.in_flight.unsent)) or not len(self.frontier):
            return None
        for _ in range(_PUT_LAST):
            pick = self._next(busy)
            if pick is None or pick.id not in self.state.in_flight.poor:
                return pick
            self.release(pick.id)
        return self._next(busy)

    def _next(self, busy: Collection[str]) -> Pick | None:
        """Return the next pick, poor or not."""
        at = self.now()
        if self.budget.next_turn(at) is not None:
            return None
        choices = self.state.choices
        closed, more = parts_of(busy)
        if closed is not choices.closed:
            self.happen(choices.close(closed))
            choices.closed = closed  # the same hosts, so that the next comparison is one of identity
        pick = choices.choose(busy, at)
        if pick is None and not len(self.frontier) and self.happen(self.state.poor_last.wake()):
            pick = choices.choose(busy, at)  # every queued link was put last
        if pick is not None:
            self.happen(Picked(pick.id, pick.key, tuple(more), at, (pick.url, pick.host, pick.depth, pick.payload)))
        return pick

    def sent(self, pick_id: int | None = None) -> bool:
        """Use one request of the budget, just before it is sent; ``False``: it must not be sent.

        ``pick_id`` is the pick that the request belongs to: redirects, retries and HEADs count for their pick. It is
        ``None`` for requests that belong to none, like robots.txt.
        """
        return self.budget.left() and self.happen(Sent(pick_id, self.budget.requests_used + 1, self.now()))

    def received(self, n_bytes: int | None) -> None:
        """Count the bytes of an answer; ``None``: the request was never sent, because no connection was made."""
        if n_bytes is None:
            self.happen(Sent(None, self.budget.requests_used - 1, self.now()))
        else:
            self.budget.bytes_used += n_bytes

    @property
    def bytes_used(self) -> int:
        """Bytes of all answers that were counted."""
        return self.budget.bytes_used

    def report(self, outcome: Outcome, links: Sequence[Link] = (), known: Sequence[int] = ()) -> None:
        """Report the outcome of a pick, with the links of its page in document order. Call it once for each pick.

        ``known`` are keys of further links of the page that were seen before.
        """
        deque(self.report_in_parts(outcome, links, known), maxlen=0)

    def report_in_parts(
        self, outcome: Outcome, links: Sequence[Link] = (), known: Sequence[int] = ()
    ) -> Iterator[None]:
        """Do what :meth:`report` does step by step, as an iterator that pauses after each 500 new links.

        The pick is in flight until the end.
        """
        outcome = outcome._replace(at=self.now())
        reward = self._rewards.of(outcome, links, known)
        self._rewards.heed()
        if reward is not None:
            yield from self._conclude(outcome, links, known, reward)

    def reward(self, pick_id: int, value: float) -> bool:
        """Set the reward of an outcome whose goal returned ``None``, even before it is reported; ``False`` if its
        pick is not in flight (any more).
        """
        owed = self._rewards.hear(pick_id, value)
        if owed is None:
            return self._rewards.hold(pick_id, value)
        deque(self._conclude(owed.outcome, owed.links, owed.known, float(value)), 0)
        return True

    def expire(self, *, everything: bool = False) -> None:
        """Give 0 to outcomes whose reward is overdue, or to all open ones when a crawl ends."""
        for owed in self._rewards.overdue(everything=everything):
            deque(self._conclude(owed.outcome, owed.links, owed.known, 0.0), 0)

    def release(self, pick_id: int) -> None:
        """Queue a pick again that was not sent, or is to be sent again; it does not count."""
        self._rewards.check_release(pick_id)
        self.happen(Released(pick_id))

    def hear(self, signals: Sequence[Signal]) -> None:
        """Pass reports of sitemaps, feeds or pings about known pages to the policy; others are dropped."""
        if known := self.state.signals.known(signals):
            self.happen(Heard(known, self.now()))
            self.counts["signal/heard"] += len(known)

    def wake(self, most: int | None = None) -> bool:
        """Wake up to ``most`` sleeping links that are due; return whether these were all.

        :meth:`next` wakes all of them. A driver that must not block that long calls this first, repeatedly.
        """
        event = self.state.sleepers.wake(self.now, most)
        if event is None:
            return True
        self.happen(event)
        due = self.state.sleepers.next_due if most is not None else None
        return due is None or due > event.at

    def knows(self, keys: Sequence[int]) -> list[State]:
        """Return the state of each key."""
        return self.frontier.states(keys)

    def finished(self) -> str:
        """Why the crawl is over (``budget_requests`` or the like, ``plateau``, ``cost_limit``), or ``""``."""
        return self.state.ending.why()

    @property
    def next_turn(self) -> float | None:
        """When the rate lets the next link be chosen, in seconds since the epoch; ``None``: now."""
        return None if self.budget.pace is None else self.budget.next_turn(self.now())

    def status(self, *, best: int = 0) -> Status:
        """Return the status of the crawl; ``best``: include so many of the best arms, and the forecasts."""
        waiting, at = self.frontier.waiting, self.now()
        turn, shown, rewards = self.budget.next_turn(at), self.forecasts, self._rewards
        due = shown.due()
        return Status(
            best_arms=shown.best_arms(best) if best else (),
            left=shown.left() if best else None,
            cost=shown.cost() if best else None,
            counts=MappingProxyType(self.counts),
            waiting=len(self.frontier),
            asleep=self.state.sleepers.asleep,
            next_due=self.state.sleepers.next_due,
            arms=len(waiting),
            awake=int(np.count_nonzero(waiting)),
            in_flight=len(self.picks),
            owed=rewards.late.ids,
            rewards=rewards.total,
            found_at=self.found_at,
            used=self.budget.state(),
            limits=self.budget.limits,
            finished=self.finished(),
            at=at,
            due=max((time for time in (due, turn) if time is not None), default=None),
            rate=self.budget.rate,
            recovered=frozenset(self.recovered),
            next_turn=turn,
            hosts=() if self.names_hosts is None else self.names_hosts.hosts,
            ends_in=self.state.ending.ends_in,
            said=rewards.said if best else (),
            alarm=rewards.alarm if best else "",
        )

    def checkpoint(self) -> None:
        """Let the job write a checkpoint, without waiting for it; does nothing without a job."""
        self._writer.checkpoint()

    def close(self, *, learned_to: str | PathLike[str] = "") -> None:
        """Close the frontier or the job, and the log. Idempotent. A missing checkpoint costs only time.

        ``learned_to`` is a file where the policy first saves what it learned. Write errors are logged, and counted as
        ``error/save`` or ``error/log``.
        """
        with ExitStack() as closing:
            closing.callback(self.state.decisions.close)
            closing.callback(self.frontier.close if self.job is None else self.job.close)
            if learned_to and self.guard.ask("save", save_learned, self.policy, learned_to) is not FAILED:
                logger.info("What was learned is in %s", learned_to)

    # Events

    def happen(self, event: Event | None) -> bool:
        """Apply an event, if there is one, and pass it to the job; return whether there was one."""
        if event is None:
            return False
        self.state.apply(event)
        if self.job is not None:
            self.job.tell(event)
        return True

    def _conclude(self, outcome: Outcome, links: Sequence[Link], known: Sequence[int], reward: float) -> Iterator[None]:
        reward = self._rewards.without_copies(outcome, reward)
        outcome = self._writer.noted(outcome._replace(reward=reward, at=self.now()))
        self.state.ending.doubt()
        *parts, links = self.state.placer.parts(links)
        for part in parts:
            self.happen(Added(part, outcome, self.now()))
            self.happen(self.state.room.make(self.now))
            yield
            outcome = outcome._replace(at=self.now())
        event = Concluded(outcome, links, known, {} if self.job is None else self.budget.state(), {})
        self.state.apply(event)
        self._writer.conclude(event)
        self.happen(self.state.room.make(self.now))
        self._writer.keep_up()

    # Persistence

    def _begin(self, job: Keeper, *, is_new: bool) -> None:
        """Pass events to the job from now on, and release the picks in flight when the last run ended.

        Where others fetch, they stay in flight. Requests granted in a run that nobody shares any more count as sent.
        """
        self.job = job
        self._writer.begin(job)
        self.state.ending.reason = ""
        self.now.not_before(self.state.last)
        if is_new:
            self._writer.checkpoint()
            job.flush()
        else:
            # May be below the number before the kill, or above it if the limit is lower now.
            self.happen(self.state.room.make(self.now))
            self._writer.keep_up()
        owners = self.state.leases.owners
        ended = [pick for pick in self.picks.values() if not (self.is_shared and pick.id in owners)]
        if keys := [pick.key for pick in ended]:
            self.happen(Recovered(keys))
        for pick in ended:
            if pick.id in owners and self.state.leases.is_reserved(pick.id):
                self.sent(pick.id)
            self.release(pick.id)
        if self.policy.budget_rate != self.mission.rate:
            self.happen(Paced(self.mission.rate))


def _check_places(frontier: object, job: object) -> None:
    """Raise :class:`~scrapy_focus.core.errors.ConfigError` unless exactly one place for links is given."""
    if (frontier is None) == (job is None):
        both = "both a frontier and a job were given" if job is not None else "neither a frontier nor a job was given"
        raise ConfigError(
            f"{both}; Crawl takes frontier=memory_frontier, or any other frontier, or else a job, which brings its own"
        )
    if isinstance(frontier, str):
        raise ConfigError(f"frontier is the text {frontier!r}; it takes a frontier, or the callable that makes one")
