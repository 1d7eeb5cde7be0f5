"""One forager: its knowledge, its position, and how it learns; it knows pages by their keys.

The numbers of the algorithms are those of the paper.

References
----------
Palotai, Farkas, Lorincz: Selection in scale-free small world (2005).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_focus.policies.foragers.slots import OpenLinks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from scrapy_focus.policies.foragers.rules import Rules
    from scrapy_focus.policies.foragers.td import Td

_SENT = 20_000  # documents that a forager remembers as sent
_OPEN = 5_000  # links of a path that it may still follow
_OFFERED = 1_000  # links from elsewhere that it has not followed yet


class Step:
    """One page of a path, and the pages looked at from there."""

    __slots__ = ("is_looked", "key", "reward", "value", "waits")

    def __init__(self, key: int, value: float) -> None:
        self.key = key
        self.value = value  # expected value when it was chosen
        self.reward = 0.0  # so far, of this page and those that were looked at
        self.is_looked = False  # whether the links of the page were looked at
        self.waits: dict[int, None] = {}  # keys of the pages still awaited


class Forager:
    """The knowledge and history of a forager.

    Parameters
    ----------
    number
        Its id; never reused.
    seat
        Its place among the others, from 0: a new forager may take the seat of a dead one.
    born
        Time of its birth, in seconds since the epoch.
    home
        The number of the host that it is limited to; -1: no limit.
    weblog
        Its starting points, each with its value.
    td
        Its values of states.
    rules
        The constants that it uses.
    """

    def __init__(
        self, number: int, *, seat: int, born: float, home: int, weblog: dict[int, float], td: Td, rules: Rules
    ) -> None:
        self.number = number
        self.seat = seat
        self.born = born
        self.home = home
        self.weblog = weblog
        self.td = td
        self.rules = rules
        self.score = rules.first
        self.children = 0
        self.sent = 0  # documents
        self.earned = 0  # of these, those that nobody had sent before
        self.requests = 0
        self.used = 0  # requests in this turn
        self.unasked = 0  # steps since the last request: those to recently visited pages
        self.path: list[tuple[int, float]] = []  # pages in order, each with the reward of its step
        self.open = OpenLinks()  # of the path
        self.offered: OrderedDict[int, None] = OrderedDict()  # links from elsewhere, open in each path until followed
        self.visited: set[int] = set()  # pages of the path
        self.step: Step | None = None  # its current page
        self.urls: dict[int, str] = {}  # of the pages of its weblog and its path
        self._before: NDArray[np.float32] | None = None  # state of the last page of the path
        self._had: OrderedDict[int, tuple[int, float]] = OrderedDict()  # by page: the version that it sent, and when

    def __getstate__(self) -> dict[str, Any]:
        n, had = len(self._had), self._had.values()
        keys, versions = np.fromiter(self._had, np.int64, n), np.fromiter((version for version, _ in had), np.int64, n)
        return {**self.__dict__, "_had": (keys, versions, np.fromiter((at for _, at in had), np.float64, n))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        keys, versions, times = (column.tolist() for column in state["_had"])
        had = zip(keys, zip(versions, times, strict=True), strict=True)
        self.__dict__.update(state, _had=OrderedDict(had))

    def is_over(self) -> bool:
        """Whether the path has ended, by its length or because no link is left (algorithm 11)."""
        return not self.path or len(self.path) > self.rules.steps or not self.open

    def learn_path(self) -> None:
        """Add the pages of the path to the weblog (algorithm 1).

        The value of a page is the reward of its step and all later ones of the path.
        """
        total = 0.0
        for key, reward in reversed(self.path):
            total += reward
            before = self.weblog.get(key)
            self.weblog[key] = total if before is None else (1 - self.rules.beta) * before + self.rules.beta * total
        self.keep_best()

    def keep_best(self) -> None:
        """Sort the weblog by value, and cut it to its maximum length."""
        best = sorted(self.weblog.items(), key=lambda entry: -entry[1])
        self.weblog = dict(best[: self.rules.weblog])

    def begin_path(self) -> None:
        """Forget the path (algorithm 11)."""
        self.path.clear()
        self.open.clear()
        self.visited.clear()
        self.discover(self.offered)
        self._before = None
        self.urls = {key: url for key, url in self.urls.items() if key in self.weblog}

    def go(self, key: int, value: float = 0.0) -> Step:
        """Begin a step to a page."""
        self.open.discard(key)
        self.offered.pop(key, None)
        self.visited.add(key)
        self.step = Step(key, value)
        return self.step

    def discover(self, links: Iterable[int]) -> None:
        """Open links of a page that the path has not visited, as many as there is room for (algorithm 12)."""
        for key in links:
            if len(self.open) >= _OPEN:
                return
            if key not in self.visited:
                self.open.add(key)

    def offer(self, key: int) -> None:
        """Open a link found elsewhere, until it is followed: pages on its paths may not have it."""
        self.offered[key] = None
        if len(self.offered) > _OFFERED:
            self.offered.popitem(last=False)
        self.discover([key])

    def wants_to_send(self, key: int, version: int, changed: float | None, now: float) -> bool:
        """Whether it sends a document: one that changed in the last hours and that it has not sent yet (algorithm 5).

        ``changed`` and ``now`` are in seconds since the epoch; ``None``: unknown.
        """
        if changed is None or now - changed > self.rules.hours * 3600:
            return False
        known = self._had.get(key)
        return known is None or known[0] != version

    def send(self, key: int, version: int, now: float, *, is_new: bool) -> None:
        """Send a document to the reinforcing agent; ``is_new``: nobody had sent it (algorithms 7 and 12)."""
        self._had[key] = (version, now)
        self._had.move_to_end(key)
        while len(self._had) > _SENT or now - next(iter(self._had.values()))[1] > self.rules.hours * 3600:
            self._had.popitem(last=False)
        self.sent += 1
        self.score -= self.rules.cost
        if is_new:
            self.earned += 1
            self.score += self.rules.gain
        if self.step is not None:
            self.step.reward += self.rules.reward if is_new else -self.rules.penalty

    def end_step(self, state: NDArray[np.float32], *, learns: bool) -> None:
        """Finish a step when all its pages have arrived: learn from it, if the forager learns the order of links
        (algorithm 4).

        ``state`` is that of the page of the step, shape (k,).
        """
        step, self.step = self.step, None
        if step is None:
            return
        self.path.append((step.key, step.reward))
        if learns and self._before is not None:
            self.td.step(self._before, step.reward, state)
        self._before = state

    def halve(self, rng: np.random.Generator) -> dict[int, float]:
        """Move the entries of a child's weblog out of this one: half of a full one, drawn at random (algorithm 6).

        Half of a weblog that is not full moves, and at least one entry stays.
        """
        keys: Sequence[int] = list(self.weblog)
        n = self.rules.weblog // 2 if len(keys) >= self.rules.weblog else len(keys) // 2
        moved = sorted(rng.choice(len(keys), n, replace=False).tolist()) if n else []
        return {keys[at]: self.weblog.pop(keys[at]) for at in moved}
