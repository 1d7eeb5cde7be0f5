"""The loop: links in, picks out, outcomes back. Every driver, live or simulated, goes through here.

The order in ``report`` is fixed: the goal sets the reward, the frontier settles the pick, the policy places the links of
the page with that reward known, and then learns. So ``learn`` comes exactly once for each pick, and no policy handles
partial credit.
"""

from __future__ import annotations

import json
import logging
import math
import pickle
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from scrapy_focus.core.budget import Budget
from scrapy_focus.core.errors import GoalError, PolicyError, ResumeError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.goals import ItemsGoal
from scrapy_focus.core.resume import checksums, describe, differences
from scrapy_focus.core.types import Link, Outcome, Pick, Placement, State
from scrapy_focus.frontiers.memory import MemoryFrontier

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from scrapy_focus.core.events import EventLog
    from scrapy_focus.core.goals import Goal
    from scrapy_focus.core.plateau import Plateau
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.frontiers.base import Frontier

logger = logging.getLogger(__name__)
T = TypeVar("T")

FORMAT = 1
_MOST_ARMS = 1_000_000
_SHOWN_ERRORS = 3  # with traceback; after that they are only counted


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
    """

    def __init__(
        self,
        policy: Policy,
        *,
        frontier: Frontier | None = None,
        goal: Goal | None = None,
        budget: Budget | None = None,
        plateau: Plateau | None = None,
        seed: int | None = None,
        log: EventLog | None = None,
        strict: bool = False,
        clock: Callable[[], float] = time.monotonic,
        patience: float = 60.0,
    ) -> None:
        self.policy = policy
        self.frontier: Frontier = frontier if frontier is not None else MemoryFrontier()
        self.goal: Goal = goal if goal is not None else ItemsGoal()
        self.budget = budget if budget is not None else Budget()
        self.plateau = plateau
        self.log = log
        self.strict = strict
        self.clock = clock
        self.patience = patience
        self.counts: Counter[str] = Counter()
        self.rewards = 0.0
        self.found_at: deque[tuple[int, float]] = deque(
            maxlen=256
        )  # (requests used, rewards) when the last rewards came
        self.stop_reason = ""
        self._flying: dict[int, Pick] = {}
        self._unsent: set[int] = set()
        self._owed: dict[int, tuple[Outcome, Sequence[Link], float]] = {}
        self._fallbacks = 0
        self.budget.start(clock)
        policy.open(self.frontier, np.random.default_rng(seed))

    @property
    def in_flight(self) -> int:
        """How many picks have no outcome yet."""
        return len(self._flying)

    def add(self, links: Sequence[Link], source: Outcome | None = None) -> int:
        """Let the policy place links, and say how many wait now that did not before.

        ``source`` is the outcome of the page that they were found on; ``None`` for seeds.
        """
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
        pick = self._guarded("select", lambda: self._select(busy), lambda: self._pop_any(busy))
        if pick is None and self.counts["error/place"]:
            pick = self.frontier.pop(0, busy)
        if pick is None:
            return None
        self._flying[pick.id] = pick
        self._unsent.add(pick.id)
        self.counts["selected"] += 1
        if self.log is not None:
            why: dict[str, Any] = self._guarded("explain", lambda: self.policy.explain(pick), dict)
            self._write(lambda log: log.pick(pick, why))
        return pick

    def sent(self, pick_id: int | None = None) -> bool:
        """Use one request of the budget, at the last moment before it goes out; ``False``: it must not go out.

        ``pick_id`` says for which pick it goes out, if for one: redirects, retries and HEADs of a pick count for it,
        and so does what belongs to none, like robots.txt.
        """
        if not self.budget.take():
            return False
        if pick_id is not None:
            self._unsent.discard(pick_id)
        return True

    def report(self, outcome: Outcome, links: Sequence[Link] = ()) -> None:
        """A pick came back, with the links of its page in document order. Once for each pick."""
        if outcome.pick.id not in self._flying or outcome.pick.id in self._owed:
            raise PolicyError(f"pick {outcome.pick.id} ({outcome.pick.url}) is not in flight: it was reported already")
        reward = self._guarded("goal", lambda: _number(self.goal, outcome), lambda: 0.0)
        if reward is None:
            self._owed[outcome.pick.id] = (outcome, links, self.clock())
        else:
            self._conclude(outcome, links, reward)

    def reward(self, pick_id: int, value: float) -> bool:
        """Say what an outcome was worth whose goal had said ``None``; ``False`` if nothing waits for it (any more)."""
        if not math.isfinite(value):
            raise GoalError(f"the reward of pick {pick_id} is {value!r}; it must be a finite number")
        owed = self._owed.pop(pick_id, None)
        if owed is None:
            return False
        self._conclude(owed[0], owed[1], float(value))
        return True

    def expire(self, *, everything: bool = False) -> None:
        """Give 0 to outcomes whose reward is overdue, or to all that wait for one when a crawl ends."""
        now = self.clock()
        for pick_id in [id_ for id_, (_, _, since) in self._owed.items() if everything or now - since > self.patience]:
            self.counts["reward/late"] += 1
            self.reward(pick_id, 0.0)

    def release(self, pick_id: int) -> None:
        """A pick was never sent, or is to be sent again: it waits again, and counts for nothing."""
        pick = self._flying.pop(pick_id)
        self._unsent.discard(pick_id)
        self.frontier.release(pick)
        self.counts["released"] += 1
        self._guarded("unselect", lambda: self.policy.unselect(pick), lambda: None)
        self._write(lambda log: log.release(pick))

    def finished(self) -> str:
        """Why the crawl is over (``budget_requests``, ``budget_bytes``, ``budget_seconds``, ``plateau``), or ``""``."""
        spent = self.budget.exhausted()  # not for good: a request may be given back
        return self.stop_reason or (f"budget_{spent}" if spent else "")

    def checkpoint(self, folder: Path) -> None:
        """Write the crawl to a folder: ``frontier.*``, ``policy.pickle``, and last ``crawl.json``."""
        folder.mkdir(parents=True, exist_ok=True)
        policy = pickle.dumps(self.policy, protocol=5)
        self.frontier.checkpoint(folder)
        write_atomically(folder / "policy.pickle", policy)
        state = {
            "format": FORMAT,
            "checksums": checksums(folder),
            "policy": describe(self.policy, self.goal),
            "budget": self.budget.state(),
            "plateau": None if self.plateau is None else self.plateau.state(),
            "counts": dict(self.counts),
            "rewards": self.rewards,
            "found_at": list(self.found_at),
        }
        write_atomically(folder / "crawl.json", json.dumps(state, indent=1).encode())

    def resume(self, folder: Path) -> None:
        """Go on where a checkpoint was written; call it before anything else.

        Raises
        ------
        ResumeError
            If the folder holds a crawl of another format, policy or parameters, or cannot be read.
        """
        try:
            state = json.loads((folder / "crawl.json").read_text())
            written = state["format"], state["policy"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ResumeError(
                f"{folder / 'crawl.json'} cannot be read ({error}); remove {folder} to start afresh"
            ) from error
        wanted = {"format": FORMAT, **describe(self.policy, self.goal)}
        if differing := differences({"format": written[0], **written[1]}, wanted):
            raise ResumeError(
                f"the crawl in {folder} cannot go on with other settings: {differing}; use the same settings, or another "
                "JOBDIR"
            )
        try:
            policy = pickle.loads((folder / "policy.pickle").read_bytes())  # noqa: S301 (the user's own job directory)
        except Exception as error:
            raise ResumeError(
                f"{folder / 'policy.pickle'} cannot be read ({error}); remove {folder} to start afresh"
            ) from error
        frontier = MemoryFrontier.resume(folder)
        if state.get("checksums") != checksums(folder):
            raise ResumeError(f"the files in {folder} are not of one checkpoint; remove the folder to start afresh")
        self.frontier = frontier
        self.policy = policy
        self.policy.attach(self.frontier)
        self.budget.restore(state["budget"])
        if self.plateau is not None and state["plateau"] is not None:
            self.plateau.restore(state["plateau"])
        self.counts.update(state["counts"])
        self.rewards = state["rewards"]
        self.found_at.extend((requests, rewards) for requests, rewards in state["found_at"])

    def close(self) -> None:
        """Close the frontier and the log. Idempotent."""
        self.frontier.close()
        if self.log is not None:
            self.log.close()

    def _write(self, entry: Callable[[EventLog], None]) -> None:
        log = self.log
        if log is not None:
            self._guarded("log", lambda: entry(log), lambda: None)

    def _select(self, busy: Collection[str]) -> Pick | None:
        pick = self.policy.select(busy)
        if pick is None:
            return None
        if not isinstance(pick, Pick) or pick.id not in self.frontier.flying or pick.id in self._flying:
            raise PolicyError(
                f"select() returned {pick!r}; return what frontier.pop() or take() gave just now, or None"
            )
        return pick

    def _pop_any(self, busy: Collection[str]) -> Pick | None:
        """Select for a policy that failed to, after putting back what it had taken out already."""
        for pick in [pick for pick_id, pick in self.frontier.flying.items() if pick_id not in self._flying]:
            self.frontier.release(pick)
        awake = self.frontier.awake(busy)
        return self.frontier.pop(int(np.argmax(awake > 0)), busy) if awake.any() else None

    def _place(self, links: Sequence[Link], source: Outcome | None, origin: int) -> int:
        placements = self._guarded(
            "place", lambda: _checked(self.policy.place(links, source), links), lambda: self._fall_back(links)
        )
        self.counts["link/given_up"] += placements.count(None)
        return self.frontier.push(links, placements, origin=origin)

    def _fall_back(self, links: Sequence[Link]) -> Sequence[Placement]:
        self._fallbacks += len(links)
        return [Placement(0, float(i - self._fallbacks)) for i in range(len(links), 0, -1)]

    def _conclude(self, outcome: Outcome, links: Sequence[Link], reward: float) -> None:
        pick = outcome.pick
        outcome = _with_reward(outcome, reward)
        del self._flying[pick.id]
        self._unsent.discard(pick.id)
        self.frontier.settle(pick)
        self.counts["outcomes"] += 1
        if pick.method == "HEAD":
            probed = Link(pick.url, pick.key, pick.host, pick.depth, state=State.PROBED, payload=pick.payload)
            self._place([probed], outcome, pick.origin)
        else:
            if reward:
                self.rewards += reward
                self.found_at.append((self.budget.requests_used, self.rewards))
            if links:
                self.add(links, outcome)
        self._guarded("learn", lambda: self.policy.learn(outcome), lambda: None)
        self._write(lambda log: log.outcome(outcome))
        if self.plateau is not None and self.plateau.reached(self.budget.requests_used, self.rewards):
            self.stop_reason = self.stop_reason or "plateau"

    def _guarded(self, what: str, call: Callable[[], T], instead: Callable[[], T]) -> T:
        """Call a policy or goal; where it raises, log and count that, and do something else instead."""
        try:
            return call()
        except Exception as error:
            if self.strict:
                raise
            self.counts[f"error/{what}"] += 1
            if self.counts[f"error/{what}"] <= _SHOWN_ERRORS:
                who = self.goal if what == "goal" else self.policy
                logger.exception("%s of %s failed: %s", what, type(who).__qualname__, error)
            return instead()


def _number(goal: Goal, outcome: Outcome) -> float | None:
    reward = goal(outcome)
    if reward is None:
        return None
    if isinstance(reward, (int, float, np.number)) and math.isfinite(reward):
        return float(reward)
    raise GoalError(f"the goal {goal!r} answered {reward!r}; return a finite number, or None if the reward comes later")


def _checked(placements: Sequence[Placement | None], links: Sequence[Link]) -> Sequence[Placement | None]:
    if len(placements) != len(links):
        raise PolicyError(
            f"place() gave {len(placements)} placements for {len(links)} links; return one Placement or None per link"
        )
    for place in placements:
        if place is None:
            continue
        well = isinstance(place.arm, (int, np.integer)) and isinstance(place.rank, (int, float, np.number))
        if (
            not well
            or place.method not in ("GET", "HEAD")
            or not 0 <= place.arm < _MOST_ARMS
            or place.rank != place.rank
        ):
            raise PolicyError(
                f"place() gave {place}; an arm is an integer from 0, without gaps, below {_MOST_ARMS:,}, a rank a number "
                "that is not NaN, a method GET or HEAD"
            )
    return placements


def _with_reward(outcome: Outcome, reward: float) -> Outcome:
    return Outcome(
        pick=outcome.pick, status=outcome.status, mime=outcome.mime, size=outcome.size, seconds=outcome.seconds,
        items=outcome.items, error=outcome.error, reward=reward, page=outcome.page,
    )  # fmt: skip
