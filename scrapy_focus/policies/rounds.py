"""Ways to follow a site without learning: start from nothing each day, or revisit known pages in turn.

These are the baselines that any revisiting policy has to beat.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from attrs import field

from scrapy_focus.core.frontier import Ranked
from scrapy_focus.core.parameters import configurable, parameter
from scrapy_focus.core.policy import Policy
from scrapy_focus.core.reason import Part, Reason, depth_of
from scrapy_focus.core.types import Placement, State
from scrapy_focus.frontiers.keys import KeyMap

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.types import Link, Outcome, Pick

DAY = 86_400.0
_APPEARED, _KNOWN, _NEW = range(3)  # arms
_WORDS = {
    "appeared": "appeared on a page that was fetched before",
    "known": "the turn of a page that was fetched before",
    "hub": "the turn of a page with many links",
    "new": "never fetched before, in the order of discovery",
}  # of a link, by its name in explain()
_NAMES = tuple(name for name in _WORDS if name != "hub")  # of arms
_RETRY = 3600.0  # seconds until a failed page is requested again, doubled each time
_LONGEST = 14 * DAY  # upper limit of that time
_FOR_NOW = (408, 429)  # errors below 500 that are temporary
_ROUND = 2.0**32  # between the ranks of two rounds: more than the links of one


class InTurn(Policy):
    """Revisits all known pages in turn, and fetches new links in between.

    A new link on a page that was visited before is fetched at once. Otherwise an unfetched link and a known page
    alternate, each in their order of arrival. So a known page is visited at equal intervals, however often it
    changes.

    Notes
    -----
    The crawl ends by a budget or a stop rule. It fetches as fast as it may: give it a rate (``FOCUS_BUDGET_RATE``).

    A failed page is requested again after an hour, and after twice as long each time, up to two weeks. A page that
    does not exist, or not any more, is dropped.

    Examples
    --------
    >>> from scrapy_focus import Crawl, Link, Outcome, memory_frontier
    >>> crawl = Crawl(InTurn(), frontier=memory_frontier, seed=0)
    >>> def visit(*found):
    ...     pick = crawl.next()
    ...     crawl.sent(pick.id)
    ...     crawl.report(Outcome(pick=pick, status=200, mime="text/html"), [Link(f"http://a/{i}", i) for i in found])
    ...     return pick.key
    >>> _ = crawl.add([Link("http://a/1", 1)])
    >>> visit(2, 3), visit(2, 3), visit(), visit(4), visit()
    (1, 1, 2, 1, 4)
    """

    summary: ClassVar[str] = "Revisits all known pages in turn, alternating with new ones."
    reads_page: ClassVar[bool] = False
    frontier: Ranked

    def __init__(self) -> None:
        self._n = 0  # that only counts up
        self._visited = 0  # pages fetched at least once
        self._is_new_next = True

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        has_appeared = source is not None and source.pick.arm == _KNOWN
        return [Placement(_APPEARED if has_appeared else _NEW, -self._next()) for _ in links]

    def select(self, busy: Collection[str]) -> Pick | None:
        arms = (_APPEARED, _NEW, _KNOWN) if self._is_new_next else (_APPEARED, _KNOWN, _NEW)
        pick = next((pick for arm in arms if (pick := self.frontier.pop(arm, busy)) is not None), None)
        if pick is not None:
            self._is_new_next = not self._is_new_next
        return pick

    def release(self, pick: Pick) -> None:
        self._is_new_next = not self._is_new_next

    def learn(self, outcome: Outcome) -> None:
        self._next()
        if not outcome.error and outcome.pick.arm != _KNOWN:
            self._visited += 1

    def again(self, outcome: Outcome) -> Placement | None:
        if outcome.error:
            return self._later(outcome)
        return Placement(_KNOWN, self.rank()) if self.comes_back(outcome) else None

    def comes_back(self, outcome: Outcome) -> bool:
        """Whether a fetched page is revisited. Called after :meth:`learn`."""
        return True

    def rank(self) -> float:
        """Return the rank of a known page; called once for each fetch of it."""
        return -self._next()

    def explain(self, pick: Pick) -> Reason:
        return _reason(pick, _NAMES[pick.arm])

    def _later(self, outcome: Outcome) -> Placement | None:
        """Put a page that failed for now to sleep in its arm; its memo counts the failures."""
        pick = outcome.pick
        misses = 0.0 if pick.memo is None else float(pick.memo[0])
        passes = outcome.status is None or outcome.status >= 500 or outcome.status in _FOR_NOW
        wait = _RETRY * 2.0**misses
        if wait > _LONGEST or not passes:
            return None
        return Placement(pick.arm, -self._next(), np.array([misses + 1], np.float32), after=self.now + wait)

    def _next(self) -> float:
        self._n += 1
        return float(self._n)


@configurable
class HubsInTurn(InTurn):
    """Revisits known pages with many links in turn, and fetches their new links in between.

    Like :class:`InTurn`, but only pages with many links are revisited: those list what is new. A page that once had
    so many remains one of them.

    Notes
    -----
    The crawl ends by a budget or a stop rule, as for :class:`InTurn`.
    """

    summary: ClassVar[str] = "Revisits known pages with many links in turn, alternating with new ones."

    links: int = parameter(
        "A page with at least so many different links is revisited. Links to places outside the crawl are not counted.",
        default=20,
        at_least=1,
    )

    def __attrs_post_init__(self) -> None:
        super().__init__()
        self._coming: dict[int, int] = {}  # links of pages that are being placed, by pick
        self._found = 0  # links of the page fetched last

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        self._count(source, len(links))
        return super().place(links, source)

    def know(self, keys: Sequence[int], source: Outcome) -> None:
        self._count(source, len(set(keys)))

    def learn(self, outcome: Outcome) -> None:
        super().learn(outcome)
        self._found = self._coming.pop(outcome.pick.id, 0)

    def comes_back(self, outcome: Outcome) -> bool:
        return outcome.pick.arm == _KNOWN or self._found >= self.links

    def explain(self, pick: Pick) -> Reason:
        return _reason(pick, "hub" if pick.arm == _KNOWN else _NAMES[pick.arm])

    def _count(self, source: Outcome | None, n: int) -> None:
        if source is not None:
            self._coming[source.pick.id] = self._coming.get(source.pick.id, 0) + n


class AtRandom(InTurn):
    """Revisits known pages at random, and fetches their new links in between.

    Like :class:`InTurn`, but the order of the known pages is random: the time between visits is exponentially
    distributed. While nothing new is found, each of them is equally likely to be next.

    Notes
    -----
    The crawl ends by a budget or a stop rule, as for :class:`InTurn`.
    """

    summary: ClassVar[str] = "Revisits known pages at random, alternating with new ones."

    def rank(self) -> float:
        return super().rank() - float(self.rng.exponential(2 * self._visited))


@configurable
class Restarts(Policy):
    """Breadth-first, from nothing each day.

    At the start of each round the seeds are fetched, and then the links of fetched pages, as if nothing were known
    yet. If a round is not finished when the next one starts, its remaining links are put behind all others.

    Notes
    -----
    The crawl ends by a budget or a stop rule. A crawl from nothing does not know whether a page has changed: no
    request is conditional, and each page gives all of its links.

    It remembers the seeds, and each link in 12 bytes. A seed whose request cannot be stored, because it carries more
    than plain values, is fetched in the first round only.
    """

    summary: ClassVar[str] = "Starts from nothing each day, breadth-first. What most crawlers do."
    never_ends: ClassVar[bool] = True
    reads_page: ClassVar[bool] = False
    wants_known: ClassVar[frozenset[State]] = frozenset((State.WAITING, State.FETCHED, State.GIVEN_UP))
    frontier: Ranked = field(init=False)

    every: float = parameter("Days from the start of a round to that of the next.", default=1.0, above=0)

    def open(self, frontier: Frontier, rng: np.random.Generator, mission: Mission) -> None:
        self.round = 0
        self._seeds: dict[int, Link] = {}
        self._found_in = KeyMap()  # by key of a link: the last round that found it
        self._placed = 0  # links, in all rounds
        self._began: float | None = None  # start of the first round
        self._next_round = 0.0  # start of the next one
        super().open(frontier, rng, mission)

    def place(self, links: Sequence[Link], source: Outcome | None) -> Sequence[Placement | None]:
        if source is None:
            self._see_seeds(links)
        else:
            self._begin_if_due(source)
        return [self._place(link) for link in links]

    def select(self, busy: Collection[str]) -> Pick | None:
        return self.frontier.pop(0, busy)

    def learn(self, outcome: Outcome) -> None:
        self._begin_if_due(outcome)
        seed = self._seeds.get(outcome.pick.key)
        if seed is not None:  # and not by again(), as pages with a known record
            self.frontier.push([seed], [Placement(0, _ROUND * (self.round + 1), after=self._next_round)])

    def _see_seeds(self, links: Sequence[Link]) -> None:
        if self._began is None:
            self._began = self._next_round = self.now
        self._seeds.update((link.key, link._replace(state=State.FETCHED)) for link in links if link.state == State.NEW)

    def _begin_if_due(self, outcome: Outcome) -> None:
        """Begin a round with the first seed that arrives when it is due."""
        if self._began is None or outcome.pick.key not in self._seeds or self.now < self._next_round:
            return
        self.round += 1
        length = self.every * DAY
        self._next_round = self._began + length * (math.floor((self.now - self._began) / length) + 1)
        for key in self._seeds:
            self._found_in.set(key, self.round)

    def _place(self, link: Link) -> Placement | None:
        if link.state != State.NEW and self._found_in.get(link.key, -1) == self.round:
            return None
        self._found_in.set(link.key, self.round)
        self._placed += 1
        return Placement(0, _ROUND * max(self.round, 1) - self._placed)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {**state, "_found_in": self._found_in.arrays()} if "_found_in" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_found_in" in state:
            self._found_in = KeyMap()
            self._found_in.update_many(*state["_found_in"])


def _reason(pick: Pick, name: str) -> Reason:
    return Reason(depth_of(pick), Part(_WORDS[name], {"link": name}))
