"""The loop: links in, picks out, outcomes back. Every driver, live or simulated, goes through here.

The crawl decides what happens, applies it, and tells its keeper. :meth:`Crawl.apply` is the only place where its state
changes; whoever applies the same events again has the same crawl. The order for an outcome is fixed: the goal sets the
reward, the frontier settles the pick, the policy places the links of the page with that reward known, and then learns.
So ``learn`` comes exactly once for each pick, and no policy handles partial credit.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, TypeVar, cast, overload

import numpy as np

from scrapy_focus.core.budget import Budget
from scrapy_focus.core.busy import NOTHING, Busy, parts_of
from scrapy_focus.core.clock import Clock
from scrapy_focus.core.contract import (
    alarm_of,
    best_of,
    check_awake,
    check_order,
    check_pieces,
    cost_of,
    due_of,
    explained,
    gave_up,
    left_of,
    made,
    placed,
    placed_again,
    placed_to_render,
    restore_goal,
    said_by,
    selected,
    sleeping_of,
    state_of_goal,
    states_of,
    tables_of,
    worth,
)
from scrapy_focus.core.errors import ConfigError, FocusError, GoalError, PolicyError, StorageError
from scrapy_focus.core.events import (
    Added,
    Closed,
    Concluded,
    GaveUp,
    Granted,
    Heard,
    Leased,
    Paced,
    Picked,
    Recovered,
    Released,
    Sent,
    Woke,
)
from scrapy_focus.core.frontier import Ranks
from scrapy_focus.core.giving_up import give_up
from scrapy_focus.core.goal import ItemsGoal
from scrapy_focus.core.keeper import Snapshot
from scrapy_focus.core.late import LateRewards
from scrapy_focus.core.mission import Mission
from scrapy_focus.core.noted import NotedPage
from scrapy_focus.core.poor import LAST
from scrapy_focus.core.printable import brief, printable_logger, reason_of
from scrapy_focus.core.stop import CostLimit
from scrapy_focus.core.types import NOT_NOW, Link, Outcome, Pick, Placement, State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from scrapy_focus.core.budget import Rate
    from scrapy_focus.core.events import Event
    from scrapy_focus.core.frontier import Drawn, Frontier, MakeFrontier, Ranked
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.keeper import Keeper
    from scrapy_focus.core.log import EventLog
    from scrapy_focus.core.policy import Left, Policy, PolicyTable, WatchedPage
    from scrapy_focus.core.poor import Poor
    from scrapy_focus.core.stop import StopRule
    from scrapy_focus.core.types import Signal

logger = printable_logger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

_SHOWN_ERRORS = 3  # with traceback; after that they are only counted
_SHOWN_ONCE = frozenset({"best_arms", "due", "expected_cost", "expected_left", "tables"})  # asked again and again
_LONGEST = 1000  # characters of a reason
_RECENT = 256  # rewards of which it is remembered when they came
_PUT_LAST = 50  # links that are put last, one after the other, before one is fetched all the same
_WOKEN = 1000  # links that were put last, and wait at once when nothing else is left
PART = 500  # new links of a page that a policy places at once


class _Failure(Enum):
    """What an answer is replaced by where a policy or goal raised."""

    FAILED = "failed"


FAILED = _Failure.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How a crawl stands at one instant."""

    counts: Mapping[str, int]  # as they are written to the stats, without ``focus/``
    waiting: int  # links that may leave now
    asleep: int  # links that wait until a time, and poor ones that wait until nothing else is left
    next_due: float | None  # the first of these times, in seconds since the epoch; None: there is none
    arms: int  # that exist
    awake: int  # arms in which something waits
    in_flight: int  # picks without an outcome
    owed: frozenset[int]  # ids of those that came back, and whose reward comes later
    rewards: float
    found_at: Sequence[tuple[int, float]]  # (requests used, rewards) at the last rewards
    used: Mapping[str, float]  # requests, bytes, seconds
    limits: Mapping[str, float | None]  # of the same
    finished: str  # why it is over, "" if it is not
    at: float  # seconds since the epoch
    due: float | None  # when the next of those that wait may be chosen, likewise; None: now, or not known
    recovered: frozenset[int]  # keys that were in flight when a run was killed, and have no outcome since
    rate: Rate | None = None  # requests that may go out in the long run; None: as many as can
    next_turn: float | None = None  # when the rate lets the next link be chosen, likewise; None: now
    hosts: Sequence[str] = ()  # on which a link ever waited, where the frontier tells
    best_arms: Sequence[tuple[str, float, int]] = ()  # where asked for: name, reward, pulls
    left: Left | None = None  # where asked for: targets still to be found
    cost: float | None = None  # where asked for: requests that the next target is expected to cost
    ends_in: int | None = None  # requests after which a cost limit may end it at the earliest; None: there is none
    said: Sequence[str] = ()  # where asked for: what the goal tells of the crawl, a sentence each
    alarm: str = ""  # where asked for: what goes wrong, as the goal sees it
    whole: Status | None = None  # of the crawl of all machines, where this is what one of them does

    @property
    def unfollowed(self) -> int:
        """How many links were found and not followed: those that wait, and poor ones where nothing else sleeps."""
        return self.waiting + (self.asleep if self.next_due is None else 0)


class _Choice(NamedTuple):
    """A pick that was just chosen."""

    pick: Pick
    by_policy: bool  # and not by the crawl, for a policy that could not


class Crawl:
    """Passes links, picks and outcomes between frontier, goal and policy; owns budget, counts and checkpoints.

    Parameters
    ----------
    policy
        Who decides. It is opened here.
    frontier
        Where links wait: what makes it of what the policy keeps, such as
        :func:`~scrapy_focus.frontiers.memory.memory_frontier`, or one that is made already.
    job
        Where to keep the crawl, so that it survives its process, in place of ``frontier``: it brings its own. If a
        crawl is in it already, this one resumes that, and what was in flight waits again (``recovered`` has the keys).
    goal
        What an outcome is worth; items scraped by default.
    mission
        What the policy is given of what is looked for; by default what follows from the goal.
    budget
        What may be used; nothing is limited by default.
    stop
        When to stop; never by default.
    most_waiting
        Links that may wait, those that sleep not counted; any number by default. Where more do after links were placed,
        the policy gives up those that it wants least, until nine tenths of it wait (``counts["link/dropped"]``).
    poor
        Recognises links that are fetched when nothing else is left, wherever the policy places them; by default none
        are. In a crawl that fetches pages again, which has no end, they are given up. Start requests are never poor.
    seed
        Of all randomness; a crawl with one request in flight and a seed makes the same choices again.
    log
        Where to write decisions.
    explain
        Keep in ``why`` the reason of the policy for its last choice, see :meth:`Reason.record
        <scrapy_focus.core.reason.Reason.record>`.
    strict
        Let errors of a policy or goal through. Otherwise they are logged with its name and counted
        (``counts["error/..."]``), and the crawl continues: links that could not be placed wait in arm 0, first in first
        out, and leave it at the latest when the policy selects nothing; where nothing could be selected, any waiting
        link is; a reward that could not be told is 0. Strict or not, any waiting link is taken where a policy selects
        nothing though hosts are free, nothing is in flight and nothing due (``counts["select/none"]``).
    clock
        What time it is, in seconds since the epoch, or since any other beginning that all runs of the crawl share; by
        default that of the machine, while durations are measured by a clock that nobody sets.
    patience
        Seconds that an outcome whose goal said ``None`` is kept open; after that its reward is 0. They become fewer,
        down to none, while :meth:`reward` is never called: a goal that forgets to return a number does not stop a
        crawl.
    counts
        Where to count; whoever drives the crawl may count there, too.
    is_shared
        Whether others fetch what it chooses (:mod:`scrapy_focus.cluster`). Then what was in flight when an earlier run
        ended stays in flight when the crawl resumes, until its owner (:meth:`lease`) is heard of.

    Raises
    ------
    ConfigError
        If neither or both of ``frontier`` and ``job`` are given, or one of the pieces is not what it should be.
    ResumeError
        If the job has a crawl with another goal, mission, policy or parameters.
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
        if (frontier is None) == (job is None):
            both = (
                "both a frontier and a job were given" if job is not None else "neither a frontier nor a job was given"
            )
            raise ConfigError(
                f"{both}; Crawl takes frontier=memory_frontier, or any other place where links wait, or else a job, "
                "which brings its own"
            )
        check_pieces(policy, goal, stop)
        if most_waiting is not None and most_waiting < 1:
            raise ConfigError(f"most_waiting is {most_waiting}; it is at least 1, or None for any number of links")
        if isinstance(frontier, str):
            raise ConfigError(f"frontier is the text {frontier!r}; it takes a frontier, or the callable that makes one")
        self.policy = policy
        self.goal: Goal = goal if goal is not None else ItemsGoal()
        self.budget = budget if budget is not None else Budget()
        self.mission = mission if mission is not None else Mission.of(self.goal)
        if self.budget.rate is not None:
            self.mission = self.mission.at_rate(self.budget.rate.per_second)
        self.stop = stop
        self.most_waiting = most_waiting
        self._poor = poor
        self.log = log
        self.explains = explain
        self.strict = strict
        self.clock = time.monotonic if clock is None else clock  # for durations
        self._now = Clock() if clock is None else Clock(clock, clock)  # seconds since the epoch, over all runs
        self.counts: Counter[str] = counts if counts is not None else Counter()
        self._late = LateRewards(self.goal, clock=self.clock, patience=patience, counts=self.counts)
        self.rewards = 0.0
        self.found_at: deque[tuple[int, float]] = deque(maxlen=_RECENT)  # (requests used, rewards)
        self.why: dict[str, Any] = {}  # what the policy said of its last choice
        self.recovered: set[int] = set()  # keys that were in flight when a run was killed, and have no outcome since
        self.otherwise = 0  # choices that came out otherwise when they were made again
        self.stop_reason = ""
        self._wanted = states_of(policy)
        self._by_key = policy.known_by_key
        self._knows = policy.can("know")
        self._hears_signals = policy.can("hear")
        self.comes_back = policy.can("again")  # whether pages may wait again that were fetched
        self._renders = policy.can("render")
        self.is_shared = is_shared
        self.where = ""  # what it is part of, in words, where another machine leads it: here none does
        self.picks: dict[int, Pick] = {}  # in flight, by id
        self.owners: dict[int, str] = {}  # who else fetches a pick in flight, by its id
        self.granted: Counter[str] = Counter()  # requests beyond one for each pick, by the same
        self._contents: set[int] = set()  # that counted, where each counts once
        self._unsent: set[int] = set()
        self._closed = NOTHING  # hosts that take nothing, whichever the next choice is told of besides
        self._unchosen: set[int] = set()  # picks in flight that this policy did not choose
        self._poor_picks: set[int] = set()  # picks in flight that are put last when they are released
        self._stranded: deque[int] = deque()  # keys of links that were placed for a policy that could not
        self._told: dict[str, int] = {}  # the counts that the keeper has
        self._is_doubted = False  # whether it was said that nothing was found for long
        self._chosen: _Choice | None = None  # just now, and not in flight yet
        self._last = -math.inf  # when the last event was
        self.job: Keeper | None = None  # once everything that it kept is applied
        self.budget.start(self.clock)
        keeps = policy.keeps(self.mission)
        self._ranked = isinstance(keeps, Ranks)
        if job is not None:
            self.frontier: Frontier = job.open(self)
        elif callable(frontier):
            self.frontier = made(frontier, keeps)
        else:
            self.frontier = cast("Frontier", frontier)
        check_order(self.frontier, keeps, policy)
        self._sleeping = sleeping_of(self.frontier)
        restored = job is not None and job.restore(self)
        if not restored:
            policy.budget_rate = self.mission.rate
            policy.open(self.frontier, np.random.default_rng(seed), self.mission)
        if job is not None:
            self._begin_to_tell(job, is_new=not restored)

    def add(self, links: Sequence[Link], source: Outcome | None = None) -> int:
        """Let the policy place links, and return how many it let wait that did not before.

        ``source`` is the outcome of the page that they were found on; ``None`` for seeds.
        """
        if source is not None and source.pick.id not in self.picks:
            raise PolicyError(
                f"links came for pick {source.pick.id} ({source.pick.url}), which is not in flight: give them to "
                "report(), or to add() before that"
            )
        before = len(self.frontier) + self.asleep
        event = Added(links, None if source is None else self._noted(source), self._now())
        self.apply(event)
        self._tell(event)
        added = len(self.frontier) + self.asleep - before
        self._make_room()
        self._keep_up()
        return added

    def next(self, busy: Collection[str] = (), *, turns: Iterable[Collection[str]] | None = None) -> Pick | None:
        """Return the next pick to fetch, or ``None`` where nothing can be sent now.

        ``busy`` are the hosts that can take nothing now; where they are many, a :class:`~scrapy_focus.core.busy.Busy`
        of those that are so for a while, and the others. A pick holds one request of the budget until :meth:`sent`.
        ``turns`` are several such sets in its place: the first that leaves something to choose counts.
        """
        self.expire()
        self.wake()
        if not len(self.frontier):
            self._wake_last()
        if turns is not None:
            order = cast("Ranked | Drawn", self.frontier)
            first = next((each for each in turns if order.awake(each).any()), None)
            if first is None:
                return None
            busy = first
        if self.finished() or not self.budget.left(len(self._unsent)) or not len(self.frontier):
            return None
        for _ in range(_PUT_LAST):
            pick = self._next(busy)
            if pick is None or pick.id not in self._poor_picks:
                return pick
            self.release(pick.id)
        return self._next(busy)

    def _next(self, busy: Collection[str]) -> Pick | None:
        """Return the next pick, poor or not."""
        at = self._now()
        if self.budget.next_turn(at) is not None:
            return None
        closed, more = parts_of(busy)
        self._close(closed)
        choice = self._choose(busy, at)
        if choice is None and not len(self.frontier) and self._wake_last():  # all that waited was put last
            choice = self._choose(busy, at)
        self._chosen = choice
        if choice is None:
            return None
        pick = choice.pick
        event = Picked(pick.id, pick.key, tuple(more), at, (pick.url, pick.host, pick.depth, pick.payload))
        self.apply(event)
        self._tell(event)
        return pick

    def sent(self, pick_id: int | None = None) -> bool:
        """Use one request of the budget, at the last moment before it goes out; ``False``: it must not go out.

        ``pick_id`` says for which pick it goes out, if for one: redirects, retries and HEADs of a pick count for it,
        and so does what belongs to none, like robots.txt.
        """
        if not self.budget.left():
            return False
        event = Sent(pick_id, self.budget.requests_used + 1, self._now())
        self.apply(event)
        self._tell(event)
        return True

    def is_reserved(self, pick_id: int) -> bool:
        """Whether a pick in flight holds a request of the budget that did not go out yet, as far as is known."""
        return pick_id in self._unsent

    async def more(self) -> bool:
        """Wait until somebody else allows one request more, where :meth:`sent` did not; nobody does here."""
        return False

    async def claim(self, pick_id: int, key: int) -> State:
        """Wait until it is known whether somebody else asks for the page to which a pick was redirected; nobody does
        here.
        """
        return State.NEW

    def lease(self, pick_id: int, owner: str) -> None:
        """Somebody else fetches a pick in flight: one request of the budget is reserved for that until it is known
        whether it was :meth:`sent`.
        """
        event = Leased(pick_id, owner)
        self.apply(event)
        self._tell(event)

    def grant(self, owner: str, n: int) -> int:
        """Let somebody else send up to ``n`` requests beyond one for each pick; they count as used.

        Returns how many these are. Below 0, so many that were not sent are given back.
        """
        if n > 0 and self.budget.requests is not None:
            n = max(0, min(n, self.budget.requests - self.budget.requests_used - len(self._unsent)))
        if n:
            event = Granted(owner, n, self.budget.requests_used + n, self._now())
            self.apply(event)
            self._tell(event)
        return n

    def received(self, n_bytes: int | None) -> None:
        """An answer came, of so many bytes; ``None``: its request never left, as no connection could be made."""
        if n_bytes is not None:
            self.budget.bytes_used += n_bytes
            return
        event = Sent(None, self.budget.requests_used - 1, self._now())
        self.apply(event)
        self._tell(event)

    @overload
    def report(self, outcome: Outcome, links: Sequence[Link] = (), known: Sequence[int] = ()) -> None: ...
    @overload
    def report(
        self, outcome: Outcome, links: Sequence[Link] = (), known: Sequence[int] = (), *, in_parts: Literal[True]
    ) -> Iterator[None]: ...
    def report(
        self, outcome: Outcome, links: Sequence[Link] = (), known: Sequence[int] = (), *, in_parts: bool = False
    ) -> Iterator[None] | None:
        """A pick came back, with the links of its page in document order. Once for each pick.

        ``known`` are keys of further links of the page that were seen before. All is done when this returns, unless
        ``in_parts``: then after the last step of the iterator that is returned, which pauses after each 500 new links;
        the pick is in flight until the end.
        """
        parts = self._report(outcome, links, known)
        if in_parts:
            return parts
        deque(parts, maxlen=0)
        return None

    def reward(self, pick_id: int, value: float) -> bool:
        """Say what an outcome is worth whose goal says ``None``, also before it is reported; ``False`` if its pick is
        not in flight (any more).
        """
        if not math.isfinite(value):
            raise GoalError(f"the reward of pick {pick_id} is {brief(value)}; it must be a finite number")
        owed = self._late.heard(pick_id)
        if owed is not None:
            deque(self._conclude(owed.outcome, owed.links, owed.known, float(value)), 0)
        elif pick_id in self.picks:
            self._late.hold(pick_id, float(value))
        else:
            return False
        return True

    def hear(self, signals: Sequence[Signal]) -> None:
        """Let the policy see what sitemaps, feeds or pings say of pages that are known; all others are passed over."""
        if not self._hears_signals or not signals:
            return
        states = self.frontier.states([signal.key for signal in signals])
        known = [signal for signal, state in zip(signals, states, strict=True) if state != State.NEW]
        if known:
            event = Heard(known, self._now())
            self.apply(event)
            self._tell(event)
            self.counts["signal/heard"] += len(known)

    def expire(self, *, everything: bool = False) -> None:
        """Give 0 to outcomes whose reward is overdue, or to all that wait for one when a crawl ends."""
        for owed in self._late.overdue(everything=everything):
            deque(self._conclude(owed.outcome, owed.links, owed.known, 0.0), 0)

    def release(self, pick_id: int) -> None:
        """A pick was never sent, or is to be sent again: it waits again, and counts for nothing."""
        if pick_id not in self.picks or pick_id in self._late:
            raise PolicyError(f"pick {pick_id} is not in flight: it was released or reported already")
        event = Released(pick_id)
        self.apply(event)
        self._tell(event)

    def finished(self) -> str:
        """Why the crawl is over (``budget_requests`` or the like, ``plateau``, ``cost_limit``), or ``""``."""
        spent = self.budget.exhausted()  # not for good: a request may be refunded
        return self.stop_reason or (f"budget_{spent}" if spent else "")

    def status(self, *, best: int = 0) -> Status:
        """Return how the crawl stands; ``best``: with so many of the best arms, and what is expected to be left."""
        waiting, at = self.frontier.waiting, self._now()
        turn = self.budget.next_turn(at)
        due = self._ask("due", due_of, self.policy)
        best_arms = self._ask("best_arms", best_of, self.policy, best) if best else ()
        left = self._ask("expected_left", left_of, self.policy) if best else None
        cost = self._ask("expected_cost", cost_of, self.policy) if best else None
        return Status(
            counts=MappingProxyType(self.counts),
            waiting=len(self.frontier),
            asleep=self.asleep,
            next_due=self.next_due,
            arms=len(waiting),
            awake=int(np.count_nonzero(waiting)),
            in_flight=len(self.picks),
            owed=self._late.ids,
            rewards=self.rewards,
            found_at=self.found_at,
            used=self.budget.state(),
            limits=self.budget.limits,
            finished=self.finished(),
            at=at,
            due=max((time for time in (None if due is FAILED else due, turn) if time is not None), default=None),
            rate=self.budget.rate,
            recovered=frozenset(self.recovered),
            next_turn=turn,
            hosts=getattr(self.frontier, "hosts", ()),
            best_arms=() if best_arms is FAILED else best_arms,
            left=None if left is FAILED else left,
            cost=None if cost is FAILED else cost,
            ends_in=self.stop.left(self.budget.requests_used) if isinstance(self.stop, CostLimit) else None,
            said=self._said() if best else (),
            alarm=self._alarm() if best else "",
        )

    def watched(self, most: int) -> list[WatchedPage]:
        """Return up to ``most`` of the pages that come back, those with most visits first."""
        found = self._ask("watched", self.policy.watched, most)
        return [] if found is FAILED else found

    def tables(self) -> list[PolicyTable]:
        """Return the tables that the policy shows of itself, at the time it is; none where it fails."""
        policy, before = self.policy, self.policy.now
        policy.now = self._now()
        found = self._ask("tables", tables_of, policy)
        policy.now = before  # as that was told, and this is not
        return [] if found is FAILED else found

    @property
    def asleep(self) -> int:
        """How many links wait until a time."""
        return 0 if self._sleeping is None else self._sleeping.asleep

    @property
    def next_due(self) -> float | None:
        """When the first of these is due, in seconds since the epoch; ``None`` where none is due at a time."""
        due = None if self._sleeping is None else self._sleeping.next_due
        return None if due is None or due >= LAST else due

    @property
    def next_turn(self) -> float | None:
        """When the rate of the budget lets the next link be chosen, likewise; ``None``: now."""
        return None if self.budget.pace is None else self.budget.next_turn(self._now())

    @property
    def is_kept(self) -> bool:
        """Whether it survives its process."""
        return self.job is not None

    def knows(self, keys: Sequence[int]) -> list[State]:
        """Return what is known about each key."""
        return self.frontier.states(keys)

    def checkpoint(self) -> None:
        """Let the job write everything as it is now, without waiting for it; does nothing without a job."""
        if self.job is not None:
            self.job.checkpoint(self._snapshot())

    def close(self, *, learned_to: str | PathLike[str] = "") -> None:
        """Close the frontier or the job, and the log. Idempotent. Without a checkpoint nothing is lost but time.

        ``learned_to`` is the file in which the policy saves what it learned before that, if it is to. What cannot be
        written is logged, and counted as ``error/save`` or ``error/log``.
        """
        with ExitStack() as closing:
            if self.log is not None:
                closing.callback(self._ask, "log", self.log.close)
            closing.callback(self.frontier.close if self.job is None else self.job.close)
            if learned_to and self._ask("save", self.policy.save, learned_to) is not FAILED:
                logger.info("What was learned is in %s", learned_to)

    # What changes the state

    def apply(self, event: Event | Snapshot) -> None:
        """Let an event happen, now or once more when a crawl is recovered; a snapshot is the state before the first."""
        match event:
            case Picked():
                self._apply_picked(event)
            case Closed():
                self._closed = self._closed.difference(event.opened).union(event.hosts)
            case Sent():
                self._apply_sent(event)
            case Concluded():
                self._apply_concluded(event)
            case Added():
                self.policy.now = self._last = event.at
                self._add(event.links, event.source)
            case Released():
                self._apply_released(event)
            case Recovered():
                self.counts["recovered"] += len(set(event.keys) - self.recovered)
                self.recovered.update(event.keys)
            case GaveUp():
                self._apply_gave_up(event)
            case Woke():
                if event.at < LAST:
                    self._last = event.at
                else:
                    self.counts["poor/rounds"] += 1
                if self._sleeping is not None:
                    self._sleeping.wake(*(event if event.most is not None else (event.at,)))
            case Heard():
                self.policy.now = self._last = event.at
                self._ask("hear", self.policy.hear, event.signals)
            case Paced():
                self.policy.budget_rate = event.rate
            case Leased():
                self.owners[event.pick_id] = event.owner
            case Granted():
                self._apply_granted(event)
            case Snapshot():
                self._restore(event)

    def _apply_picked(self, event: Picked) -> None:
        choice, self._chosen, self._last = self._chosen, None, event.at
        pick, by_policy = self._choose_again(event) if choice is None else choice
        self.picks[pick.id] = pick
        self._unsent.add(pick.id)
        self.budget.take_turn(event.at)
        if not by_policy:
            self._unchosen.add(pick.id)
        elif self._is_poor(pick):
            self._poor_picks.add(pick.id)
        self.counts["selected"] += 1
        if self.explains or self.log is not None:
            why = self._ask("explain", explained, self.policy, pick) if by_policy else {}
            self.why = {} if why is FAILED else why
        if self.log is not None:
            self._ask("log", self.log.pick, pick, self.why)

    def _apply_sent(self, event: Sent) -> None:
        """Count a request; it takes a turn, unless its pick had one and this is its first."""
        self._last = event.at
        budget, has_turn = self.budget, event.pick_id in self._unsent
        if event.requests > budget.requests_used and not has_turn:
            budget.take_turn(event.at)
        budget.requests_used = event.requests
        if has_turn:
            self._unsent.remove(cast("int", event.pick_id))

    def _apply_granted(self, event: Granted) -> None:
        self._last = event.at
        self.granted[event.owner] += event.n
        self.budget.requests_used = event.requests
        for _ in range(event.n):  # turns that were taken stay so, as of a connection that was refused
            self.budget.take_turn(event.at)

    def _leave(self, pick_id: int) -> None:
        """Nobody fetches a pick any more that is over; give back its turn, if no request went out for it."""
        self._late.forget(pick_id)
        self.owners.pop(pick_id, None)
        if pick_id in self._unsent:
            self._unsent.remove(pick_id)
            self.budget.give_back_turn()

    def _apply_released(self, event: Released) -> None:
        pick = self.picks.pop(event.pick_id)
        self._leave(pick.id)
        is_poor = pick.id in self._poor_picks
        place = Placement(pick.arm, pick.rank, pick.memo, pick.method) if is_poor else None
        if place is not None and (place := self._last_place(place)) is None:
            self.frontier.settle(pick)
        else:
            self.frontier.release(pick)
        if pick.id not in self._unchosen:
            self._ask("release", self.policy.release, pick)
        self._unchosen.discard(pick.id)
        if place is not None:
            link = Link(pick.url, pick.key, pick.host, pick.depth, state=State.WAITING, payload=pick.payload)
            self.frontier.push([link], [place], origin=pick.origin)
        self._poor_picks.discard(pick.id)
        self.counts["released"] += 1
        if self.log is not None:
            self._ask("log", self.log.release, pick)

    def _apply_concluded(self, event: Concluded) -> None:
        outcome, pick = event.outcome, event.outcome.pick
        self.policy.now = self._last = outcome.at
        if event.used:
            self.budget.restore(event.used)
        del self.picks[pick.id]
        self._leave(pick.id)
        self._unchosen.discard(pick.id)
        self._poor_picks.discard(pick.id)
        self.recovered.discard(pick.key)
        self.frontier.settle(pick, outcome.also)
        self.counts["outcomes"] += 1
        if pick.method == "HEAD":
            probed = Link(pick.url, pick.key, pick.host, pick.depth, state=State.PROBED, payload=pick.payload)
            self._place([probed], outcome, pick.origin)
        else:
            if outcome.content is not None:
                self._contents.add(outcome.content)
            if outcome.reward:
                self.rewards += outcome.reward
                self.found_at.append((self.budget.requests_used, self.rewards))
            if event.links or event.known:
                self._add(event.links, outcome, event.known)
        self._ask("learn", self.policy.learn, outcome)
        if self._poor is not None:
            self._poor.learn(outcome)
        if self.comes_back and pick.method == "GET" and not outcome.once:
            self._place_again(outcome)
        if self._renders and outcome.scripted and pick.method == "GET" and not outcome.error:
            self._place_to_render(outcome)
        if self.log is not None:
            self._ask("log", self.log.outcome, outcome)
        if self.stop is not None:
            cost = self._ask("expected_cost", cost_of, self.policy)
            known = None if cost is FAILED else cost
            reached = self._ask("stop", self.stop.reached, self.budget.requests_used, self.rewards, known)
            if reached is not FAILED and reached:
                self.stop_reason = self.stop_reason or self.stop.reason
        dict.update(self.counts, event.counts)

    def _apply_gave_up(self, event: GaveUp) -> None:
        self.policy.now = self._last = event.at
        before = len(self.frontier)
        self._give_up(event.n)
        self.counts["link/dropped"] += before - len(self.frontier)

    def _give_up(self, n: int) -> None:
        """Let the policy give up waiting links; where it fails, or gives up fewer, others are."""
        left = len(self.frontier) - n
        self._ask("give_up", gave_up, self.policy, n)
        if len(self.frontier) > left:
            give_up(self.frontier, len(self.frontier) - left, np.random.default_rng(0))

    def _add(self, links: Sequence[Link], source: Outcome | None, known: Sequence[int] = ()) -> None:
        """Let the policy place links that are new or in a state that it wants, and know the keys of the others."""
        fresh: dict[int, Link] = {}
        wanted: list[Link] = []
        by_key: list[Link] = []
        others = list(known)
        if self._by_key and known:
            stated = [*zip(known, self.frontier.states(known), strict=True)]
            by_key = [Link("", key, state=state) for key, state in stated if state in self._wanted]
            others = [key for key, state in stated if state not in self._wanted]
        for link, state in zip(links, self.frontier.states([link.key for link in links]), strict=True):
            if self._by_key and state in self._wanted:
                by_key.append(Link("", link.key, state=state))
            elif self._wanted and (state == State.NEW or state in self._wanted):
                wanted.append(link if link.state == state else link._replace(state=state))
            elif state == State.NEW:
                fresh.setdefault(link.key, link)
            else:
                others.append(link.key)
        if placeable := [*by_key, *wanted] or list(fresh.values()):
            self._place(placeable, source, -1 if source is None else source.pick.arm)
        if self._knows and others and source is not None:
            self._ask("know", self.policy.know, others, source)

    def _place(self, links: Sequence[Link], source: Outcome | None, origin: int) -> None:
        """Let the policy say where links wait, and put them there."""
        placements: Sequence[Placement | None] | _Failure = self._ask("place", self._placements, links, source)
        if placements is FAILED:
            placements = self._fall_back(links)
        if self._poor is not None and source is not None:
            placements = [self._poor_last(link, place) for link, place in zip(links, placements, strict=True)]
        open_ = (State.NEW, State.PROBED)  # a link in such a state is given up where it gets no place
        given_up = [place is None and link.state in open_ for place, link in zip(placements, links, strict=True)]
        self.counts["link/given_up"] += sum(given_up)
        if any(place is NOT_NOW for place in placements):
            now = [(link, place) for link, place in zip(links, placements, strict=True) if place is not NOT_NOW]
            links, placements = [link for link, _ in now], [place for _, place in now]
        self.frontier.push(links, placements, origin=origin)

    def _is_poor(self, pick: Pick) -> bool:
        """Whether a pick is put last; none is from the first round of such links on, or they might wait for ever."""
        poor = self._poor
        if poor is None or pick.origin < 0 or self.counts["poor/rounds"]:
            return False
        return poor.is_barren(pick.url) or poor.is_poor(pick.url)

    def _poor_last(self, link: Link, place: Placement | None) -> Placement | None:
        """Return where a link waits that was placed, which is elsewhere if it is poor."""
        poor = cast("Poor", self._poor)
        if place is None or place is NOT_NOW or place.after or link.state == State.PROBED:
            return place
        return self._last_place(place) if poor.is_poor(link.url, link.anchor) else place

    def _last_place(self, place: Placement) -> Placement | None:
        """Return a place behind everything that waits; ``None`` where there is none, or too many have one."""
        self.counts["poor/links"] += 1
        if self.comes_back or (self.most_waiting is not None and self.asleep >= self.most_waiting):
            return None
        return place if self._sleeping is None else place._replace(after=LAST + self.counts["poor/rounds"])

    def _wake_last(self) -> bool:
        """Let poor links wait if nothing else is left to fetch; whether any do."""
        due = None if self._sleeping is None or self.picks else self._sleeping.next_due
        if due is None or due < LAST:
            return False
        event = Woke(LAST + self.counts["poor/rounds"], _WOKEN)
        self.apply(event)
        self._tell(event)
        return True

    def _placements(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        placements = placed(self.policy.place(links, source), links)
        if self._sleeping is None:
            check_awake(placements, self.frontier)
        return placements

    def _place_again(self, outcome: Outcome) -> None:
        """Let the policy say whether and where a page waits again."""
        place = self._ask("again", self._placement_of, placed_again, outcome)
        if place is FAILED or place is None:
            return
        self._wait_again(outcome, place)
        self.counts["link/again"] += 1

    def _place_to_render(self, outcome: Outcome) -> None:
        """Let the policy say whether and where a page waits to be rendered, unless it waits already."""
        if self.frontier.states([outcome.pick.key]) != [State.FETCHED]:
            return
        place = self._ask("render", self._placement_of, placed_to_render, outcome)
        if place is not FAILED and place is not None:
            self._wait_again(outcome, place)
            self.counts["link/render"] += 1

    def _wait_again(self, outcome: Outcome, place: Placement) -> None:
        pick = outcome.pick
        payload = pick.payload if outcome.payload is None else outcome.payload
        link = Link(pick.url, pick.key, pick.host, pick.depth, state=State.FETCHED, payload=payload)
        self.frontier.push([link], [place], origin=pick.origin)

    def _placement_of(
        self, placed_by: Callable[[Policy, Outcome], Placement | None], outcome: Outcome
    ) -> Placement | None:
        place = placed_by(self.policy, outcome)
        if self._sleeping is None:
            check_awake([place], self.frontier)
        return place

    def _fall_back(self, links: Sequence[Link]) -> Sequence[Placement | None]:
        """Place links for a policy that could not, behind each other in arm 0; they leave it in any case, see
        `_choose`.
        """
        first = self.counts["link/stranded"]
        self._stranded.extend(int(link.key) for link in links)
        self.counts["link/stranded"] += len(links)
        return [Placement(0, -float(first + i)) for i in range(1, len(links) + 1)]

    # Choosing

    def wake(self, most: int | None = None) -> bool:
        """Let links wait that slept and are due, so many of them at most; whether these are all.

        :meth:`next` does so for all of them. Who has no time to wait for that calls this before, again and again.
        """
        due = self.next_due
        if due is not None and due <= (at := self._now()):
            event = Woke(at, most)
            self.apply(event)
            self._tell(event)
            due = self.next_due if most is not None else None
            return due is None or due > at
        return True

    def _close(self, hosts: frozenset[str]) -> None:
        """Have these hosts closed and no others, and let the keeper know what is different now."""
        if hosts is not self._closed and hosts != self._closed:
            event = Closed(sorted(hosts - self._closed), sorted(self._closed - hosts))
            self.apply(event)
            self._tell(event)
        self._closed = hosts

    def _choose(self, busy: Collection[str], at: float) -> _Choice | None:
        """Let the policy choose; where it fails, any link; where it has nothing and nothing else would happen, one
        that it never placed, or else any.
        """
        self.policy.now = at
        pick = self._ask("select", self._selected, busy)
        if pick is not FAILED and pick is not None:
            return _Choice(pick, True)
        if pick is FAILED:
            pick = self._take_any(busy)
        elif not self.picks:
            pick = self._take_stranded(busy) or self._take_idle(busy)
        return None if pick is None else _Choice(pick, False)

    def _selected(self, busy: Collection[str]) -> Pick | None:
        return selected(self.policy.select(busy), self.frontier, self.picks)

    def _choose_again(self, event: Picked) -> _Choice:
        """Choose what was chosen before: what happened counts."""
        choice = self._choose(Busy(self._closed, event.busy) if self._closed else event.busy, event.at)
        if choice is not None and (choice.pick.id, choice.pick.key) == (event.id, event.key):
            return choice
        self.otherwise += choice is None or choice.by_policy
        if choice is not None:
            self.frontier.release(choice.pick)
            if choice.by_policy:
                self._ask("release", self.policy.release, choice.pick)
        pick = self.frontier.take(event.key, pick_id=event.id)
        if pick is None:  # the policy did not place it this time
            url, host, depth, payload = event.link
            self.frontier.push([Link(url, event.key, host, depth, payload=payload)], [Placement(0, 0.0)])
            pick = self.frontier.take(event.key, pick_id=event.id)
        if pick is None:
            raise StorageError(
                f"the journal has pick {event.id} of a link that is in flight already; see scrapy focus-check"
            )
        return _Choice(pick, False)

    def _take_any(self, busy: Collection[str]) -> Pick | None:
        """Select for a policy that failed to, after releasing what it had taken out already."""
        for pick in [pick for pick_id, pick in self.frontier.flying.items() if pick_id not in self.picks]:
            self.frontier.release(pick)
        order = cast("Ranked", self.frontier) if self._ranked else cast("Drawn", self.frontier)
        awake = order.awake(busy)
        if not awake.any():
            return None
        arm = int(np.argmax(awake > 0))
        if self._ranked:
            return cast("Ranked", self.frontier).pop(arm, busy)
        drawn = cast("Drawn", self.frontier)
        return drawn.take_drawn(int(drawn.draw({arm: 1}, np.random.default_rng(0), busy=busy).slots[0]))

    def _take_stranded(self, busy: Collection[str]) -> Pick | None:
        """Take the first link that waits though the policy never placed it."""
        for _ in range(len(self._stranded)):
            pick = self.frontier.take(self._stranded[0])
            if pick is not None and pick.host in busy:
                self.frontier.release(pick)
                self._stranded.rotate(-1)
                continue
            if pick is not None:
                return pick  # which may be released; its key goes when it waits no more
            self._stranded.popleft()
        return None

    def _take_idle(self, busy: Collection[str]) -> Pick | None:
        """Take any link that waits for a free host where nothing is in flight and nothing due: it would wait for ever.

        A policy whose links are due never is left alone.
        """
        due = self._ask("due", due_of, self.policy)
        if due is not FAILED and due is not None and due > self.policy.now:
            return None
        pick = self._take_any(busy)
        if pick is None:
            return None
        self.counts["select/none"] += 1
        if self.counts["select/none"] == 1:
            logger.warning(
                "select of %s chose nothing, though %d links wait for hosts that are free, nothing is in flight, and "
                "due() names no time to come: any of them is taken, now and whenever that happens again "
                "(focus/select/none). Let select() return a pick from an arm in which something waits, or due() say "
                "when one may be chosen",
                type(self.policy).__qualname__, len(self.frontier) + 1,
            )  # fmt: skip
        return pick

    # Outcomes

    def _report(self, outcome: Outcome, links: Sequence[Link], known: Sequence[int]) -> Iterator[None]:
        if outcome.pick.id not in self.picks or outcome.pick.id in self._late:
            raise PolicyError(f"pick {outcome.pick.id} ({outcome.pick.url}) is not in flight: it was reported already")
        outcome = outcome._replace(at=self._now())
        reward = self._ask("goal", worth, self.goal, outcome)
        self._heed()
        if reward is None:
            reward = self._late.early(outcome.pick.id)
        if reward is None and self._late.keep(outcome, links, known):
            return
        yield from self._conclude(outcome, links, known, 0.0 if reward is FAILED or reward is None else reward)

    def _doubt(self) -> None:
        """Say once that nothing was found for so long that any later such stretch would end the crawl."""
        used = self.budget.requests_used
        if self._is_doubted or not isinstance(self.stop, CostLimit) or (end := self.stop.gives_up_at(used)) is None:
            return
        self._is_doubted = True
        logger.warning(
            "nothing found in %d requests yet, and the next find is expected to cost more than %s: the crawl gives up "
            "at %d requests, unless something is found or links look better", used, f"{self.stop.limit:,.10g}", end,
        )  # fmt: skip

    def _heed(self) -> None:
        """Count an outcome after which the goal says that something goes wrong, and log the first."""
        if alarm := self._alarm():
            self.counts["topic/drift"] += 1
            if self.counts["topic/drift"] == 1:
                logger.warning("%s", alarm)

    def _alarm(self) -> str:
        alarm = self._ask("goal", alarm_of, self.goal)
        return "" if alarm is FAILED else alarm

    def _said(self) -> list[str]:
        said = self._ask("goal", said_by, self.goal)
        return [] if said is FAILED else said

    def _conclude(self, outcome: Outcome, links: Sequence[Link], known: Sequence[int], reward: float) -> Iterator[None]:
        if reward and outcome.content in self._contents:
            self.counts["reward/copy"] += 1
            reward = 0.0
        outcome = self._noted(outcome._replace(reward=reward, at=self._now()))
        self._doubt()
        *parts, links = self._parts(links)
        for part in parts:
            added = Added(part, outcome, self._now())
            self.apply(added)
            self._tell(added)
            self._make_room()
            yield
            outcome = outcome._replace(at=self._now())
        if self.job is None:
            self.apply(Concluded(outcome, links, known, {}, {}))
            self._make_room()
            return
        event = Concluded(outcome, links, known, self.budget.state(), {})
        self.apply(event)
        self.job.tell(event._replace(counts=self._changes()))
        self._make_room()
        self._keep_up()

    def _make_room(self) -> None:
        """Where more links wait than may, let the policy give up those that it wants least."""
        most, waiting = self.most_waiting, len(self.frontier)
        if most is None or waiting <= most:
            return
        is_first = not self.counts["link/dropped"]
        event = GaveUp(waiting - -(-most * 9 // 10), self._now())
        self.apply(event)
        self._tell(event)
        if is_first:
            logger.info(
                "%d links waited, more than the %d that may: the %d least wanted were given up, and so it is whenever "
                "there are so many again (focus/link/dropped)", waiting, most, self.counts["link/dropped"],
            )  # fmt: skip

    def _parts(self, links: Sequence[Link]) -> list[Sequence[Link]]:
        """Cut the links of a page into parts of which no more than so many are to be placed; one at least."""
        if len(links) <= PART:
            return [links]
        states = self.frontier.states([link.key for link in links])
        to_place = [i for i, state in enumerate(states) if state == State.NEW or state in self._wanted]
        cuts = [0, *to_place[PART::PART], len(links)]
        return [links[start:end] for start, end in pairwise(cuts)]

    def _noted(self, outcome: Outcome) -> Outcome:
        """Let the keeper know what the policy reads of a page."""
        return outcome if self.job is None or outcome.page is None else outcome._replace(page=NotedPage(outcome.page))

    def _changes(self) -> dict[str, int]:
        """Return the counts that changed since they were asked for last."""
        changed = {name: value for name, value in self.counts.items() if self._told.get(name) != value}
        self._told.update(changed)
        return changed

    # Keeping

    def _restore(self, state: Snapshot) -> None:
        """Be as a crawl was at a checkpoint; what came since is applied."""
        self.policy = state.policy
        restore_goal(self.goal, state.goal)
        self._last = state.at
        self.budget.restore(state.used)
        if self.stop is not None and state.stop is not None and state.stop.get("rule") == self.stop.reason:
            self.stop.restore(dict(state.stop))
        self.counts.update(state.counts)
        self.rewards = state.rewards
        self.found_at.extend(state.found_at)
        self.recovered.update(state.recovered)
        self._stranded.extend(state.stranded)
        self._unchosen.update(state.unchosen)
        for pick in self.frontier.flying.values():
            self.picks[pick.id] = pick._replace(chance=state.chances.get(pick.id))
        self._unsent.update(state.unsent)
        self.owners.update(state.owners)
        self.granted.update(state.granted)
        self._contents.update(state.contents)
        self._closed = frozenset(state.closed)
        if self._poor is not None:
            self._poor.restore(state.poor)

    def _snapshot(self) -> Snapshot:
        if len(self._stranded) > len(self.frontier) + len(self.picks):  # most of them wait no more
            states = zip(self._stranded, self.frontier.states(list(self._stranded)), strict=True)
            self._stranded = deque(key for key, state in states if state in (State.WAITING, State.FLYING))
        return Snapshot(
            policy=self.policy,
            at=self._now(),
            used=self.budget.state(),
            limits=self.budget.limits,
            rate="" if self.budget.rate is None else str(self.budget.rate),
            stop=None if self.stop is None else {"rule": self.stop.reason, **self.stop.state()},
            counts=dict(self.counts),
            rewards=self.rewards,
            found_at=list(self.found_at),
            recovered=sorted(self.recovered),
            stranded=list(self._stranded),
            unchosen=sorted(self._unchosen),
            unsent=sorted(self._unsent),
            owners=dict(self.owners),
            granted=dict(self.granted),
            contents=sorted(self._contents),
            closed=sorted(self._closed),
            poor={} if self._poor is None else self._poor.state(),
            chances={pick.id: pick.chance for pick in self.picks.values() if pick.chance is not None},
            log=None if self.log is None else self.log.mark(),
            goal=state_of_goal(self.goal),
            said=self._said(),
            alarm=self._alarm(),
        )

    def _begin_to_tell(self, job: Keeper, *, is_new: bool) -> None:
        """Tell the job from now on what happens, and release what was in flight when the last run ended.

        Where others fetch, it stays in flight. What they had in a run that nobody shares any more counts as sent.
        """
        self.job = job
        self._told = dict(self.counts)
        self.stop_reason = ""
        self._now.not_before(self._last)
        if is_new:
            job.checkpoint(self._snapshot())
            job.flush()
        else:
            self._make_room()  # as it was told, or not any more, before the kill; or fewer may wait now
            self._keep_up()
        ended = [*self.picks.values()]
        if self.is_shared:
            ended = [pick for pick in ended if pick.id not in self.owners]
        if keys := [pick.key for pick in ended]:
            event = Recovered(keys)
            self.apply(event)
            self._tell(event)
        for pick in ended:
            if pick.id in self.owners and self.is_reserved(pick.id):
                self.sent(pick.id)
            self.release(pick.id)
        if self.policy.budget_rate != self.mission.rate:
            paced = Paced(self.mission.rate)
            self.apply(paced)
            self._tell(paced)

    def _tell(self, event: Event) -> None:
        if self.job is not None:
            self.job.tell(event)

    def _keep_up(self) -> None:
        if self.job is not None and self.job.due and self._ask("checkpoint", self.checkpoint) is FAILED:
            self.job.postpone()

    def _ask(self, what: str, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | _Failure:
        """Ask a policy, a goal, a stop rule or a log; where it raises, log and count that, and answer ``FAILED``."""
        try:
            return question(*args, **kwargs)
        except StorageError:
            raise
        except Exception as error:
            if self.strict:
                raise
            self.counts[f"error/{what}"] += 1
            if self.counts[f"error/{what}"] <= (1 if what in _SHOWN_ONCE else _SHOWN_ERRORS):
                who = {"goal": self.goal, "log": self.log, "stop": self.stop}.get(what, self.policy)
                expected = isinstance(error, (FocusError, OSError) if what == "log" else FocusError)
                logger.error(  # a message that was expected says all that a traceback could
                    "%s of %s failed: %s", what, type(who).__qualname__, reason_of(error, _LONGEST),
                    exc_info=not expected,
                )  # fmt: skip
            return FAILED
