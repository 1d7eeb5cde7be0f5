"""Outcomes whose reward comes later: how long they are kept open, and what is said of a goal that forgets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.core.printable import printable_logger

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Sequence

    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.types import Link, Outcome

logger = printable_logger(__name__)

_SHORTEST = 1.0  # seconds for which a late reward is waited for, or not at all


class Owed(NamedTuple):
    """An outcome whose reward comes later."""

    outcome: Outcome
    links: Sequence[Link]
    known: Sequence[int]
    since: float  # seconds of the clock


class LateRewards:
    """Keeps outcomes open whose goal said ``None``, for so many seconds.

    They become fewer, down to none, while no reward ever comes: a goal that forgets to return a number does not stop a
    crawl.

    Parameters
    ----------
    goal
        Who says ``None``.
    clock
        Seconds, for durations.
    patience
        Seconds that an outcome is kept open.
    counts
        Where overdue ones are counted, as ``reward/late``.
    """

    def __init__(self, goal: Goal, *, clock: Callable[[], float], patience: float, counts: Counter[str]) -> None:
        self.goal = goal
        self.clock = clock
        self.patience = patience
        self.counts = counts
        self._owed: dict[int, Owed] = {}  # by pick
        self._early: dict[int, float] = {}  # by pick: rewards that came before its outcome
        self._share = 1.0  # of the patience that is had now
        self._share_since: float | None = None  # seconds of the clock; when a reward was late first, or that changed
        self._hears = False  # rewards do come later

    def __contains__(self, pick_id: int) -> bool:
        return pick_id in self._owed

    def __bool__(self) -> bool:
        return bool(self._owed)

    @property
    def ids(self) -> frozenset[int]:
        """The picks of outcomes that are kept open."""
        return frozenset(self._owed)

    def keep(self, outcome: Outcome, links: Sequence[Link], known: Sequence[int]) -> bool:
        """Keep an outcome open; ``False`` where nothing is waited for any more, and its reward is 0."""
        if not self._share:
            self.counts["reward/late"] += 1
            return False
        self._owed[outcome.pick.id] = Owed(outcome, links, known, self.clock())
        return True

    def heard(self, pick_id: int) -> Owed | None:
        """A reward came; return the outcome that it is for, ``None`` if it is not kept open (any more)."""
        self._hears, self._share = True, 1.0
        return self._owed.pop(pick_id, None)

    def hold(self, pick_id: int, value: float) -> None:
        """Hold a reward that came before the outcome that it is for."""
        self._early[pick_id] = value

    def early(self, pick_id: int) -> float | None:
        """Return the reward that is held for a pick, if one is."""
        return self._early.get(pick_id)

    def forget(self, pick_id: int) -> None:
        """A pick is not in flight any more."""
        self._early.pop(pick_id, None)
        self._owed.pop(pick_id, None)

    def overdue(self, *, everything: bool = False) -> Iterator[Owed]:
        """Yield outcomes whose reward is overdue, or all of them: none is kept open any longer."""
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
        """Say once that a reward did not come, and what to do about it."""
        if not self.counts["reward/late"]:
            logger.warning(
                "The goal %s answered None for %s, which means that the reward comes later, through reward(); it did "
                "not come, and is 0. If none is to come, return a number from the goal, 0.0 for a page that is worth "
                "nothing; a function without a return answers None. Late rewards are counted as focus/reward/late",
                getattr(self.goal, "__qualname__", type(self.goal).__qualname__), outcome.pick.url,
            )  # fmt: skip

    def _lose_patience(self, since: float, now: float) -> None:
        """Wait half as long for later rewards as long as none ever came, once for all that were waited for at a time;
        the first of them are waited for twice.
        """
        if self._hears or (self._share_since is not None and since < self._share_since):
            return
        if self._share_since is not None:
            self._share = self._share / 2 if self.patience * self._share / 2 >= _SHORTEST else 0.0
        self._share_since = now
