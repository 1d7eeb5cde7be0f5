"""Counts and means of arms, including pulls in flight.

A confidence bonus that ignores the pulls in flight sends all of them to one arm. On a synthetic site with 64 in
flight, UCB found 9 % of the targets; it finds 16 % with one in flight, and 15 % when pulls are counted as they are
made. So ``pull`` counts when an arm is chosen, and rewards are added when they arrive.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scrapy_focus.core.abilities import PolicyTable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

#: Title of the table of :func:`reward_tables`, and the names of its columns.
REWARDS = "Mean rewards of groups of links"
REWARD_COLUMNS = (
    "groups with a reward", "mean", "deviation",
    "best", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th",
)  # fmt: skip


class ArmStats:
    """Pulls and summed rewards of arms, which are numbered from 0 and created on first use.

    Notes
    -----
    *Memory*: 16 bytes for each arm up to the largest number used, 32 at most. The code that numbers the arms sets the
    limit: clusters have ``max_clusters``, and a crawl allows fewer than a million arms.
    """

    def __init__(self) -> None:
        self._pulls = np.zeros(16)
        self._sums = np.zeros(16)
        self.n_arms = 0
        self._changed: set[int] | None = None  # noted from the first call of changes() on

    @property
    def pulls(self) -> NDArray[np.float64]:
        """How often each arm was pulled, shape (n_arms,). Read-only."""
        return _read_only(self._pulls[: self.n_arms])

    @property
    def sums(self) -> NDArray[np.float64]:
        """The total reward of each arm, shape (n_arms,). Read-only."""
        return _read_only(self._sums[: self.n_arms])

    @property
    def means(self) -> NDArray[np.float64]:
        """The reward of each arm per pull, shape (n_arms,); 0 for an arm that was never pulled."""
        return self._sums[: self.n_arms] / np.maximum(self._pulls[: self.n_arms], 1)

    def ensure(self, n_arms: int) -> None:
        """Create arms up to this number."""
        if n_arms > len(self._pulls):
            extra = max(n_arms, 2 * len(self._pulls)) - len(self._pulls)
            self._pulls = np.concatenate([self._pulls, np.zeros(extra)])
            self._sums = np.concatenate([self._sums, np.zeros(extra)])
        self.n_arms = max(self.n_arms, n_arms)

    def pull(self, arm: int) -> None:
        """Count a pull, when the arm is chosen."""
        self.ensure(arm + 1)
        self._pulls[arm] += 1
        self._note(arm)

    def unpull(self, arm: int) -> None:
        """Undo a pull that turned out not to be one."""
        self.ensure(arm + 1)
        self._pulls[arm] = max(0.0, self._pulls[arm] - 1)
        self._note(arm)

    def earn(self, arm: int, reward: float) -> None:
        """Add the reward of a pull of this arm."""
        self.ensure(arm + 1)
        self._sums[arm] += reward
        self._note(arm)

    def changes(self) -> set[int] | None:
        """Return the arms with a changed pull count or reward since the last call, or ``None``: any may have changed.

        It is ``None`` the first time, and after these stats were pickled. Without calls, it costs nothing.
        """
        changed, self._changed = self._changed, set()
        return changed

    def _note(self, arm: int) -> None:
        if self._changed is not None:
            self._changed.add(arm)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_changed": None}


def auer(stats: ArmStats, steps: int, *, alpha: float, epsilon: float = 1e-6) -> NDArray[np.float64]:
    """Return the AUER score of each arm, shape (n_arms,): mean + alpha * sqrt(ln(steps) / (pulls + epsilon)).

    An arm that was never pulled scores above all others.

    References
    ----------
    Kleinberg, Niculescu-Mizil, Sharma: Regret bounds for sleeping experts and bandits. Machine Learning 80 (2010).

    Examples
    --------
    >>> stats = ArmStats()
    >>> for arm, reward in [(0, 2.0), (0, 0.0), (1, 0.5)]:
    ...     stats.pull(arm)
    ...     stats.earn(arm, reward)
    >>> auer(stats, 10, alpha=1.0).round(3).tolist()
    [2.073, 2.017]
    """
    scores: NDArray[np.float64] = stats.pulls + epsilon
    np.divide(np.log(max(steps, 1)), scores, out=scores)  # in place: called at each choice
    np.sqrt(scores, out=scores)
    scores *= alpha
    scores += stats.means
    return scores


def reward_tables(rewards: ArrayLike, pulls: ArrayLike) -> list[PolicyTable]:
    """Return a table of one row: how many arms have a reward, and the mean rewards of these; none if no arm has one.

    First the mean and the standard deviation over these arms, then the means of the ten best. It shows whether few arms
    are much better than the others, as Table 6 and Figure 5 of the SB-CLASSIFIER paper do.

    Parameters
    ----------
    rewards, pulls
        Total reward of each arm, and its number of pulls, both of shape (n_arms,).

    Examples
    --------
    >>> [table] = reward_tables([12.0, 0.0, 1.0], [4, 7, 1])
    >>> dict(zip(table.columns, table.rows[0]))
    {'groups with a reward': 2, 'mean': 2.0, 'deviation': 1.0, 'best': 3.0, '2nd': 1.0}
    """
    totals, counts = np.asarray(rewards, np.float64), np.asarray(pulls, np.float64)
    means = np.sort(totals[totals > 0] / np.maximum(counts[totals > 0], 1))[::-1]
    if not len(means):
        return []
    numbers = [float(means.mean()), float(means.std()), *means.tolist()]
    row = (len(means), *(round(number, 4) for number in numbers[: len(REWARD_COLUMNS) - 1]))
    return [PolicyTable(REWARDS, REWARD_COLUMNS[: len(row)], [row])]


def rewards_in(tables: Sequence[PolicyTable]) -> tuple[float, ...]:
    """Return the row of :func:`reward_tables` that is among some tables; ``()`` if there is none."""
    return next((tuple(map(float, table.rows[0])) for table in tables if table.title == REWARDS and table.rows), ())


def _read_only(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    counts.flags.writeable = False
    return counts


class _Level(NamedTuple):
    """Arms with the same group and key."""

    order: float  # the negative key; no two levels of a group have the same
    group: float
    arms: list[int]  # a heap; some may have moved since, and one that returned may be here twice


class ArmHeaps:
    """The best arms, when a choice changes the scores of few: O(log n) for each changed arm.

    Arms are in groups, within which the one with the largest key is best at any time. Use their scores in one group;
    or, because the bonus of AUER is the same for all arms with as many pulls, their means in a group for each number
    of pulls.

    Notes
    -----
    *Memory*: about 120 bytes for each arm if many share a key, 400 to 600 if each has a different one.

    Examples
    --------
    >>> heaps = ArmHeaps()
    >>> for arm, mean in enumerate([0.5, 2.0, 1.0]):
    ...     heaps.put(arm, 0.0, mean)
    >>> [arm for arm in heaps.best_first(lambda group, key: key)]
    [1, 2, 0]
    """

    def __init__(self) -> None:
        self._groups: dict[float, list[_Level]] = {}  # a heap each
        self._levels: dict[tuple[float, float], _Level] = {}  # by group and order
        self._level_of: dict[int, _Level] = {}
        self._n_entries = 0  # in all levels

    def put(self, arm: int, group: float, key: float) -> None:
        """Put an arm into a group under a key, which is a number, and remove its earlier entry."""
        level = self._levels.get((group, -key))
        if level is None:
            level = self._levels[group, -key] = _Level(-key, group, [])
            heappush(self._groups.setdefault(group, []), level)
        elif self._level_of.get(arm) is level:
            return
        heappush(level.arms, arm)
        self._level_of[arm] = level
        self._n_entries += 1
        if self._n_entries + len(self._levels) > 64 + 3 * len(self._level_of):
            self._purge()

    def drop(self, arm: int) -> None:
        """Remove an arm, until it is put in again."""
        self._level_of.pop(arm, None)

    def best_first(self, value: Callable[[float, float], float]) -> Generator[int]:
        """Yield arms by value, largest first, the smallest number among equals.

        ``value`` maps a group and a key to the number to compare, and must not decrease with the key. Arms must not
        be put or dropped between making the generator and closing it.
        """
        aside: list[tuple[int, _Level]] = []
        try:
            while (level := self._best(value)) is not None:
                arm = heappop(level.arms)
                self._n_entries -= 1
                del self._level_of[arm]  # so that it comes once, even if it is here twice
                aside.append((arm, level))
                yield arm
        finally:
            for arm, level in aside:
                self.put(arm, level.group, -level.order)

    def _best(self, value: Callable[[float, float], float]) -> _Level | None:
        """Return the level whose smallest arm is the best of all."""
        best, leaders = -math.inf, list[float]()
        for group in list(self._groups):
            level = self._top(group)
            if level is None:
                continue
            found = value(group, -level.order)
            if not leaders or found > best:
                best, leaders = found, [group]
            elif found == best:
                leaders.append(group)
        equals = [level for group in leaders for level in self._equal_to_top(group, best, value)]
        return min(equals, key=_smallest_arm, default=None)

    def _top(self, group: float) -> _Level | None:
        """Return the level with the largest key that contains an arm."""
        heap = self._groups[group]
        while heap:
            if self._is_used(heap[0]):
                return heap[0]
            level = heappop(heap)
            del self._levels[group, level.order]
        del self._groups[group]
        return None

    def _equal_to_top(self, group: float, best: float, value: Callable[[float, float], float]) -> Iterator[_Level]:
        """Yield the levels of a group with the best value: more than one if a bonus rounds away the difference of
        keys.
        """
        heap = self._groups[group]
        ahead = [0]
        while ahead:
            at = ahead.pop()
            if at == 0 or (at < len(heap) and value(group, -heap[at].order) == best):
                if self._is_used(heap[at]):
                    yield heap[at]
                ahead += (2 * at + 1, 2 * at + 2)  # below it in the heap

    def _is_used(self, level: _Level) -> bool:
        """Drop outdated entries before the smallest arm of a level, and return whether there is one."""
        while level.arms and self._level_of.get(level.arms[0]) is not level:
            heappop(level.arms)
            self._n_entries -= 1
        return bool(level.arms)

    def _purge(self) -> None:
        """Drop all outdated entries."""
        for level in self._levels.values():
            if len(level.arms) > 1:
                level.arms[:] = sorted({arm for arm in level.arms if self._level_of.get(arm) is level})
            else:
                self._is_used(level)
        self._levels = {place: level for place, level in self._levels.items() if level.arms}
        self._groups = {}
        for level in self._levels.values():
            self._groups.setdefault(level.group, []).append(level)
        for heap in self._groups.values():
            heapify(heap)
        self._n_entries = len(self._level_of)


def _smallest_arm(level: _Level) -> int:
    return level.arms[0]
