"""The rewards of outcomes: given by the goal, perhaps later, and summed up."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from scrapy_focus.core.contract import alarm_of, restore_goal, said_by, state_of_goal, worth
from scrapy_focus.core.errors import GoalError, PolicyError
from scrapy_focus.core.goal import SeesLinks, Warns
from scrapy_focus.core.guard import FAILED
from scrapy_focus.core.late import LateRewards
from scrapy_focus.core.printable import brief, printable_logger

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Container, Iterator, Sequence

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.guard import Guard
    from scrapy_focus.core.late import Owed
    from scrapy_focus.core.snapshot import Snapshot
    from scrapy_focus.core.types import Link, Outcome, Pick

logger = printable_logger(__name__)

_RECENT = 256  # rewards whose time is remembered


class Rewards:
    """Calls the goal, keeps outcomes open until their reward is known, and counts rewards.

    A crawl has one, and so does each worker of a crawl on several machines.

    Parameters
    ----------
    goal
        Returns the reward of an outcome.
    guard
        Calls the goal.
    picks
        The ids of picks in flight.
    clock
        Seconds, for durations.
    patience
        Seconds that an outcome without a reward is kept open.
    counts
        Where late rewards and alarms are counted.
    """

    def __init__(
        self,
        goal: Goal,
        guard: Guard,
        picks: Container[int],
        *,
        clock: Callable[[], float],
        patience: float,
        counts: Counter[str],
    ) -> None:
        self.total = 0.0
        self.found_at: deque[tuple[int, float]] = deque(maxlen=_RECENT)  # (requests used, rewards)
        self.late = LateRewards(goal, clock=clock, patience=patience, counts=counts)
        self._goal = goal
        warns = guard.ask("goal", isinstance, goal, Warns)  # which may read its alarm, and that may raise
        self._warner = cast("Warns", goal) if warns is True else None
        self._seer = cast("SeesLinks", goal) if guard.ask("goal", isinstance, goal, SeesLinks) is True else None
        self._guard = guard
        self._picks = picks
        self._counts = counts
        self._contents: set[int] = set()  # already counted, if each counts once

    # From a report to its reward

    def of(self, outcome: Outcome, links: Sequence[Link], known: Sequence[int]) -> float | None:
        """Return the reward of a reported outcome; ``None``: it is kept open, with the links of its page.

        Raises
        ------
        PolicyError
            If its pick is not in flight.
        """
        pick = outcome.pick
        if pick.id not in self._picks or pick.id in self.late:
            raise PolicyError(f"pick {pick.id} ({pick.url}) is not in flight: it was reported already")
        reward = self._guard.ask("goal", worth, self._goal, outcome)
        if reward is FAILED:
            return 0.0
        if reward is None:
            reward = self.late.early(pick.id)
        if reward is None and not self.late.keep(outcome, links, known):
            return 0.0
        return reward

    def hear(self, pick_id: int, value: float) -> Owed | None:
        """Return the outcome for which a reward came; ``None`` if it is not kept open (any more).

        Raises
        ------
        GoalError
            If the reward is not a finite number.
        """
        if not math.isfinite(value):
            raise GoalError(f"the reward of pick {pick_id} is {brief(value)}; it must be a finite number")
        return self.late.heard(pick_id)

    def hold(self, pick_id: int, value: float) -> bool:
        """Hold a reward that came before its outcome; ``False`` if its pick is not in flight."""
        if pick_id in self._picks:
            self.late.hold(pick_id, float(value))
            return True
        return False

    def overdue(self, *, everything: bool = False) -> Iterator[Owed]:
        """Yield outcomes whose reward is overdue, or all that are kept open: their reward is 0."""
        return self.late.overdue(everything=everything)

    def check_release(self, pick_id: int) -> None:
        """Raise :class:`~scrapy_focus.core.errors.PolicyError` for a pick that cannot be released (any more)."""
        if pick_id not in self._picks or pick_id in self.late:
            raise PolicyError(f"pick {pick_id} is not in flight: it was released or reported already")

    @property
    def shows_links(self) -> bool:
        """Whether the goal observes links."""
        return self._seer is not None

    def see_links(self, links: Sequence[Link], source: Outcome | None) -> None:
        """Show links to a goal that observes them, before the policy places them."""
        if self._seer is not None and links:
            self._guard.ask("goal", self._seer.see_links, links, source)

    # Totals

    def without_copies(self, outcome: Outcome, reward: float) -> float:
        """Return a reward, 0 for content that counted already."""
        if reward and outcome.content in self._contents:
            self._counts["reward/copy"] += 1
            return 0.0
        return reward

    def earn(self, pick: Pick, reward: float, content: int | None, requests: int) -> None:
        """Add the reward of an outcome, with the requests used so far; that of a HEAD is not counted."""
        if pick.method == "HEAD":
            return
        if content is not None:
            self._contents.add(content)
        if reward:
            self.total += reward
            self.found_at.append((requests, self.total))

    # The goal's view of the crawl

    @property
    def alarm(self) -> str:
        """The problem that the goal reports; ``""`` for none."""
        alarm = "" if self._warner is None else self._guard.ask("goal", alarm_of, self._warner)
        return "" if alarm is FAILED else alarm

    @property
    def said(self) -> list[str]:
        """The goal's description of the crawl, one sentence each."""
        said = self._guard.ask("goal", said_by, self._goal)
        return [] if said is FAILED else said

    def heed(self) -> None:
        """Count an outcome after which the goal raises an alarm, and log the first."""
        if alarm := self.alarm:
            self._counts["topic/drift"] += 1
            if self._counts["topic/drift"] == 1:
                logger.warning("%s", alarm)

    # Persistence

    def save(self) -> dict[str, Any]:
        """Return this part's fields of a snapshot."""
        return {
            "rewards": self.total,
            "found_at": list(self.found_at),
            "contents": sorted(self._contents),
            "goal": state_of_goal(self._goal),
            "said": self.said,
            "alarm": self.alarm,
        }

    def restore(self, state: Snapshot) -> None:
        """Restore a snapshot, including the goal's state."""
        restore_goal(self._goal, state.goal)
        self.total = state.rewards
        self.found_at.extend(state.found_at)
        self._contents.update(state.contents)
