"""The loop: links in, picks out, outcomes back. Every driver, live or simulated, goes through here.

The order in ``report`` is fixed: the goal sets the reward, the frontier settles the pick, the policy places the links of
the page with that reward known, and then learns. So ``learn`` comes exactly once for each pick, and no policy handles
partial credit.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter, deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from scrapy_focus.core.budget import Budget
from scrapy_focus.core.contract import placed, selected, worth
from scrapy_focus.core.errors import GoalError, PolicyError, StorageError
from scrapy_focus.core.noted import NotedPage
from scrapy_focus.core.types import Link, Outcome, Pick, Placement, State
from scrapy_focus.frontiers.memory import MemoryFrontier
from scrapy_focus.goals.items import ItemsGoal
from scrapy_focus.jobs.recovery import record_outcome, recover, store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.log import EventLog
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.stop import StopRule
    from scrapy_focus.jobs.job import Job

logger = logging.getLogger(__name__)
T = TypeVar("T")

_SHOWN_ERRORS = 3  # with traceback; after that they are only counted
_OPEN = State.NEW, State.PROBED  # a link that gets no place then is given up


class Crawl:
    """Passes links, picks and outcomes between frontier, goal and policy; owns budget, counts and checkpoints.

    Parameters
    ----------
    policy
        Who decides. It is opened here.
    frontier
        Where links wait; a new :class:`~scrapy_focus.frontiers.memory.MemoryFrontier` by default.
    goal
        What an outcome is worth; items scraped by default.
    budget
        What may be used; nothing is limited by default.
    plateau
        When to stop; never by default.
    seed
        Of all randomness; a crawl with one request in flight and a seed makes the same choices again.
    log
        Where to write decisions.
    strict
        Let errors of a policy or goal through. Otherwise they are logged with its name and counted
        (``counts["error/..."]``), and the crawl goes on: links that could not be placed wait in arm 0, first in first
        out, and leave it at the latest when the policy selects nothing; where nothing could be selected, any waiting
        link is; a reward that could not be told is 0.
    clock
        Seconds that never go back.
    patience
        Seconds that an outcome whose goal said ``None`` is kept open; after that its reward is 0.
    job
        Where to keep the crawl, so that it survives its process; it brings its own frontier. If a crawl is in it
        already, this one goes on with it, and what was in flight waits again (``recovered`` has the keys).

    Raises
    ------
    ResumeError
        If the job has a crawl with another goal, policy or parameters.
    PolicyError
        If there is a job, and the policy cannot be pickled.
    StorageError
        If the job cannot be read or written; also raised by every method that writes there.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        frontier: Frontier | None = None,
        goal: Goal | None = None,
        budget: Budget | None = None,
        plateau: StopRule | None = None,
        seed: int | None = None,
        log: EventLog | None = None,
        strict: bool = False,
        clock: Callable[[], float] = time.monotonic,
        patience: float = 60.0,
        job: Job | None = None,
    ) -> None:
        self.policy = policy
        self.frontier: Frontier = (
            job.frontier if job is not None else frontier if frontier is not None else MemoryFrontier()
        )
        self.goal: Goal = goal if goal is not None else ItemsGoal()
        self.budget = budget if budget is not None else Budget()
        self.plateau = plateau
        self.log = log
        self.strict = strict
        self.clock = clock
        self.patience = patience
        self.counts: Counter[str] = Counter()
        self.rewards = 0.0
        self.found_at: deque[tuple[int, float]] = deque(maxlen=256)  # (requests used, rewards) at the last rewards
        self.stop_reason = ""
        self._flying: dict[int, Pick] = {}
        self._unsent: set[int] = set()
        self._unchosen: set[int] = set()
        self.recovered: set[int] = set()  # keys that were in flight when a run was killed, and have no outcome since
        self._owed: dict[int, tuple[Outcome, Sequence[Link], Collection[int], float]] = {}
        self.fallbacks = 0  # links that were placed first in, first out, for a policy that could not
        self._told: dict[str, int] = {}  # the counts that the journal has
        self.job: Job | None = None
        self.budget.start(clock)
        if job is None or job.is_new:
            policy.open(self.frontier, np.random.default_rng(seed))
        else:
            recover(self, job)
        if job is not None:
            self._keep_in(job)

    @property
    def owed(self) -> Collection[int]:
        """Ids of the picks that came back, and whose reward is not told yet."""
        return self._owed.keys()

    @property
    def in_flight(self) -> int:
        """How many picks have no outcome yet."""
        return len(self._flying)

    def add(self, links: Sequence[Link], source: Outcome | None = None) -> int:
        """Let the policy place links, and say how many wait now that did not before.

        ``source`` is the outcome of the page that they were found on; ``None`` for seeds.
        """
        if source is not None:
            source = self._noted(source)
        added = self._add(links, source)
        if self.job is not None:
            self.job.tell("add", list(map(tuple, links)), None if source is None else record_outcome(source))
            self._keep_up()
        return added

    def _add(self, links: Sequence[Link], source: Outcome | None) -> int:
        states = self.frontier.states([link.key for link in links])
        if self.policy.wants_known:
            links = [link._replace(state=state) for link, state in zip(links, states, strict=True)]
        else:
            fresh: dict[int, Link] = {}
            for link, state in zip(links, states, strict=True):
                if state == State.NEW:
                    fresh.setdefault(link.key, link)
            links = list(fresh.values())
        return self._place(links, source, -1 if source is None else source.pick.arm) if links else 0

    def next(self, busy: Collection[str] = ()) -> Pick | None:
        """Return the next pick to fetch, or ``None`` where nothing can be sent now.

        ``busy`` are the hosts that can take nothing now. A pick holds one request of the budget until :meth:`sent`.
        """
        self.expire()
        if self.finished() or not self.budget.left(len(self._unsent)) or not len(self.frontier):
            return None
        pick = self.choose(busy)
        if pick is None:
            return None
        self.depart(pick)
        if self.job is not None:
            self.job.frontier.amend(pick)
            self.job.tell("pick", pick.id, pick.key, list(busy))
        return pick

    def choose(self, busy: Collection[str]) -> Pick | None:
        """Let the policy choose, whatever the budget says: a part of :meth:`next` that is done again in a recovery."""
        frontier, mine = self.frontier, self._flying
        call = lambda: selected(self.policy.select(busy), frontier, mine)  # noqa: E731
        pick = self._guarded("select", call, lambda: self._pop_any(busy))
        return self.frontier.pop(0, busy) if pick is None and self.counts["error/place"] and not mine else pick

    def depart(self, pick: Pick, *, chosen: bool = True) -> None:
        """Take what was taken out of the frontier for a pick in flight; ``chosen``: by the policy, just now."""
        self.fly([pick], chosen=chosen)
        self.counts["selected"] += 1
        if self.log is not None:
            self._write(lambda log: log.pick(pick, self.explain(pick) if chosen else {}))

    def explain(self, pick: Pick) -> dict[str, Any]:
        """Say why the policy chose this pick, just now."""
        return self._guarded("explain", lambda: self.policy.explain(pick), dict)

    def sent(self, pick_id: int | None = None) -> bool:
        """Use one request of the budget, at the last moment before it goes out; ``False``: it must not go out.

        ``pick_id`` says for which pick it goes out, if for one: redirects, retries and HEADs of a pick count for it,
        and so does what belongs to none, like robots.txt.
        """
        if not self.budget.take():
            return False
        if pick_id is not None:
            self._unsent.discard(pick_id)
        if self.job is not None:
            self.job.tell("used", self.budget.requests_used)
        return True

    def give_back(self) -> None:
        """A request for which :meth:`sent` was called never left: no connection could be made."""
        self.budget.give_back()
        if self.job is not None:
            self.job.tell("used", self.budget.requests_used)

    def fly(self, picks: Iterable[Pick], *, chosen: bool = True) -> None:
        """Have picks in flight; where they were not chosen by this policy, it does not hear of their release."""
        for pick in picks:
            self._flying[pick.id] = pick
            self._unsent.add(pick.id)
            if not chosen:
                self._unchosen.add(pick.id)

    def report(self, outcome: Outcome, links: Sequence[Link] = (), also: Collection[int] = ()) -> None:
        """A pick came back, with the links of its page in document order. Once for each pick.

        ``also`` are other keys under which the page is known from now on: those that it was redirected to.
        """
        if outcome.pick.id not in self._flying or outcome.pick.id in self._owed:
            raise PolicyError(f"pick {outcome.pick.id} ({outcome.pick.url}) is not in flight: it was reported already")
        reward = self._guarded("goal", lambda: worth(self.goal, outcome), lambda: 0.0)
        if reward is None:
            self._owed[outcome.pick.id] = (outcome, links, also, self.clock())
        else:
            self._conclude(outcome, links, reward, also)

    def reward(self, pick_id: int, value: float) -> bool:
        """Say what an outcome was worth whose goal had said ``None``; ``False`` if nothing waits for it (any more)."""
        if not math.isfinite(value):
            raise GoalError(f"the reward of pick {pick_id} is {value!r}; it must be a finite number")
        owed = self._owed.pop(pick_id, None)
        if owed is None:
            return False
        self._conclude(*owed[:2], float(value), owed[2])
        return True

    def expire(self, *, everything: bool = False) -> None:
        """Give 0 to outcomes whose reward is overdue, or to all that wait for one when a crawl ends."""
        now = self.clock()
        for pick_id in [id_ for id_, (*_, since) in self._owed.items() if everything or now - since > self.patience]:
            self.counts["reward/late"] += 1
            self.reward(pick_id, 0.0)

    def release(self, pick_id: int) -> None:
        """A pick was never sent, or is to be sent again: it waits again, and counts for nothing."""
        pick = self._flying.pop(pick_id)
        self._unsent.discard(pick_id)
        self.put_back(pick, chosen=pick_id not in self._unchosen)
        self._unchosen.discard(pick_id)
        self.counts["released"] += 1
        self._write(lambda log: log.release(pick))
        if self.job is not None:
            self.job.tell("release", pick_id)

    def put_back(self, pick: Pick, *, chosen: bool = True) -> None:
        """Let a pick wait again as if it had never been chosen."""
        self.frontier.release(pick)
        if chosen:
            self._guarded("unselect", lambda: self.policy.unselect(pick), lambda: None)

    def finished(self) -> str:
        """Why the crawl is over (``budget_requests`` or the like, ``plateau``, ``cost_limit``), or ``""``."""
        spent = self.budget.exhausted()  # not for good: a request may be given back
        return self.stop_reason or (f"budget_{spent}" if spent else "")

    def checkpoint(self) -> None:
        """Let the job write everything as it is now, without waiting for it; does nothing without a job."""
        if self.job is not None:
            self.job.checkpoint(store(self, self.job))

    def close(self) -> None:
        """Close the frontier or the job, and the log. Idempotent. Without a checkpoint nothing is lost but time."""
        try:
            if self.job is not None:
                self.job.close()
            else:
                self.frontier.close()
        finally:
            if self.log is not None:
                self.log.close()

    def _keep_in(self, job: Job) -> None:
        """Write down from now on what this crawl is told."""
        self._told = dict(self.counts)
        if job.is_new:
            job.checkpoint(store(self, job))
            job.flush()
        self.job = job
        if keys := [pick.key for pick in self._flying.values()]:
            job.tell("recovered", keys)
            self.recovered.update(keys)
            self.counts["recovered"] += len(keys)
        for pick_id in [*self._flying]:
            self.release(pick_id)

    def _keep_up(self) -> None:
        if self.job is not None and self.job.due:
            self._guarded("checkpoint", self.checkpoint, self.job.postpone)

    def _noted(self, outcome: Outcome) -> Outcome:
        """Let the journal know what the policy reads of a page."""
        return outcome if self.job is None or outcome.page is None else replace(outcome, page=NotedPage(outcome.page))

    def _changes(self) -> dict[str, int]:
        """Return the counts that changed since they were asked for last."""
        changed = {name: value for name, value in self.counts.items() if self._told.get(name) != value}
        self._told.update(changed)
        return changed

    def _write(self, entry: Callable[[EventLog], None]) -> None:
        if (log := self.log) is not None:
            self._guarded("log", lambda: entry(log), lambda: None)

    def _pop_any(self, busy: Collection[str]) -> Pick | None:
        """Select for a policy that failed to, after putting back what it had taken out already."""
        for pick in [pick for pick_id, pick in self.frontier.flying.items() if pick_id not in self._flying]:
            self.frontier.release(pick)
        awake = self.frontier.awake(busy)
        return self.frontier.pop(int(np.argmax(awake > 0)), busy) if awake.any() else None

    def _place(self, links: Sequence[Link], source: Outcome | None, origin: int) -> int:
        return self.frontier.push(links, self.placements(links, source), origin=origin)

    def placements(self, links: Sequence[Link], source: Outcome | None = None) -> Sequence[Placement | None]:
        """Let the policy say where links should wait, without putting them there."""
        call, instead = lambda: placed(self.policy.place(links, source), links), lambda: self._fall_back(links)
        placements = self._guarded("place", call, instead)
        given_up = [not place and link.state in _OPEN for place, link in zip(placements, links, strict=True)]
        self.counts["link/given_up"] += sum(given_up)
        return placements

    def _fall_back(self, links: Sequence[Link]) -> Sequence[Placement]:
        self.fallbacks += len(links)
        return [Placement(0, float(i - self.fallbacks)) for i in range(len(links), 0, -1)]

    def _conclude(self, outcome: Outcome, links: Sequence[Link], reward: float, also: Collection[int]) -> None:
        outcome = self._noted(replace(outcome, reward=reward))
        self.conclude(outcome, links, also)
        if self.job is not None:
            record = record_outcome(outcome)
            self.job.tell("outcome", record, list(map(tuple, links)), list(also), self.budget.state(), self._changes())
            self._keep_up()

    def conclude(self, outcome: Outcome, links: Sequence[Link], also: Collection[int]) -> None:
        """Let the policy see an outcome whose reward is set: the part of :meth:`report` that is done again in a recovery."""
        pick, reward = outcome.pick, outcome.reward
        del self._flying[pick.id]
        self._unsent.discard(pick.id)
        self._unchosen.discard(pick.id)
        self.recovered.discard(pick.key)
        self.frontier.settle(pick)
        if also:
            self.frontier.push([Link("", key) for key in also], [None] * len(also))
        self.counts["outcomes"] += 1
        if pick.method == "HEAD":
            probed = Link(pick.url, pick.key, pick.host, pick.depth, state=State.PROBED, payload=pick.payload)
            self._place([probed], outcome, pick.origin)
        else:
            if reward:
                self.rewards += reward
                self.found_at.append((self.budget.requests_used, self.rewards))
            if links:
                self._add(links, outcome)
        self._guarded("learn", lambda: self.policy.learn(outcome), lambda: None)
        self._write(lambda log: log.outcome(outcome))
        cost = self._guarded("expected_cost", self.policy.expected_cost, lambda: None)
        if (rule := self.plateau) and rule.reached(self.budget.requests_used, self.rewards, cost):
            self.stop_reason = self.stop_reason or rule.reason

    def _guarded(self, what: str, call: Callable[[], T], instead: Callable[[], T]) -> T:
        """Call a policy or goal; where it raises, log and count that, and do something else instead."""
        try:
            return call()
        except StorageError:
            raise
        except Exception as error:
            if self.strict:
                raise
            self.counts[f"error/{what}"] += 1
            if self.counts[f"error/{what}"] <= _SHOWN_ERRORS:
                who = {"goal": self.goal, "log": self.log}.get(what, self.policy)
                logger.exception("%s of %s failed: %s", what, type(who).__qualname__, error)
            return instead()
