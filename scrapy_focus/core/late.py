"""Outcomes whose reward comes later: how long they stay open, and a warning if it never comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.core.printable import printable_logger

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Sequence

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.types import Link, Outcome

logger = printable_logger(__name__)

_SHORTEST = 1.0  # seconds for a late reward; below that none is expected at all


class Owed(NamedTuple):
    """An outcome whose reward comes later."""

    outcome: Outcome
    links: Sequence[Link]
    known: Sequence[int]
    since: float  # seconds of the clock


class LateRewards:
    """Keeps outcomes open for some seconds if their goal returned ``None``.

    That time shrinks, down to none, while no reward ever comes, so that a goal that forgets to return a number does
    not stop a crawl.

    Parameters
    ----------
    goal
        The goal that returns ``None``.
    clock
        Seconds, for durations.
    patience
        Seconds that an outcome is kept open.
    counts
        Where overdue rewards are counted, as ``reward/late``.
    """

    def __init__(self, goal: Goal, *, clock: Callable[[], float], patience: float, counts: Counter[str]) -> None:
        self.goal = goal
        self.clock = clock
        self.patience = patience
        self.counts = counts
        self._owed: dict[int, Owed] = {}  # by pick
        self._early: dict[int, float] = {}  # by pick: rewards that came before its outcome
        self._share = 1.0  # share of the patience in use
        self._share_since: float | None = None  # seconds of the clock; last change, or the first late reward
        self._hears = False  # rewards do arrive

    def __contains__(self, pick_id: int) -> bool:
        return pick_id in self._owed

    def __bool__(self) -> bool:
        return bool(self._owed)

    @property
    def ids(self) -> frozenset[int]:
        """The picks of open outcomes."""
        return frozenset(self._owed)

    def keep(self, outcome: Outcome, links: Sequence[Link], known: Sequence[int]) -> bool:
        """Keep an outcome open; ``False`` if no late reward is expected any more: its reward is 0."""
        if not self._share:
            self.counts["reward/late"] += 1
            return False
        self._owed[outcome.pick.id] = Owed(outcome, links, known, self.clock())
        return True

    def heard(self, pick_id: int) -> Owed | None:
        """Receive a reward; return its outcome, ``None`` if that is not open (any more)."""
        self._hears, self._share = True, 1.0
        return self._owed.pop(pick_id, None)

    def hold(self, pick_id: int, value: float) -> None:
        """Hold a reward that came before its outcome."""
        self._early[pick_id] = value

    def early(self, pick_id: int) -> float | None:
        """Return the reward held for a pick, if there is one."""
        return self._early.get(pick_id)

    def forget(self, pick_id: int) -> None:
        """Forget a pick that is not in flight any more."""
        self._early.pop(pick_id, None)
        self._owed.pop(pick_id, None)

    def overdue(self, *, everything: bool = False) -> Iterator[Owed]:
        """Yield outcomes whose reward is overdue, or all of them, and close them."""
        if not self._owed:
            return
        now = self.clock()
        late = [
            pick_id
            for pick_id, owed in self._owed.items()
            if everything or now - owed.since > self.patience * self._share
        ]
        if late:
            self._note(self._owed[late[0]].outcome)
        for pick_id in late:
            owed = self._owed.pop(pick_id)
            self.counts["reward/late"] += 1
            if not everything:
                self._lose_patience(owed.since, now)
            yield owed

    def _note(self, outcome: Outcome) -> None:
        """Warn once that a reward did not come, and explain what to do."""
        if not self.counts["reward/late"]:
            logger.warning(
                "The goal %s answered None for %s, which means that the reward comes later, through reward(); it did "
                "not come, and is 0. If none is to come, return a number from the goal, 0.0 for a page that is worth "
                "nothing; a function without a return answers None. Late rewards are counted as focus/reward/late",
                getattr(self.goal, "__qualname__", type(self.goal).__qualname__), outcome.pick.url,
            )  # fmt: skip

    def _lose_patience(self, since: float, now: float) -> None:
        """Halve the time for late rewards while none ever came, once per group of outcomes that are open together;
        the first group gets a second time.
        """
        if self._hears or (self._share_since is not None and since < self._share_since):
            return
        if self._share_since is not None:
            self._share = self._share / 2 if self.patience * self._share / 2 >= _SHORTEST else 0.0
        self._share_since = now
