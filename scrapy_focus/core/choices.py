"""How the next link is chosen: by the policy, or without it where it fails or returns nothing for ever."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from scrapy_focus.core.busy import NOTHING, Busy
from scrapy_focus.core.contract import due_of, selected
from scrapy_focus.core.errors import StorageError
from scrapy_focus.core.events import Closed
from scrapy_focus.core.guard import FAILED
from scrapy_focus.core.printable import printable_logger
from scrapy_focus.core.types import Link, Placement, State

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Sequence

    from scrapy_focus.core.events import Picked
    from scrapy_focus.core.frontier import Drawn, Frontier, Ranked
    from scrapy_focus.core.guard import Guard
    from scrapy_focus.core.snapshot import Snapshot
    from scrapy_focus.core.types import Pick

logger = printable_logger(__name__)


class Choice(NamedTuple):
    """A pick that was just chosen."""

    pick: Pick
    by_policy: bool  # False: the crawl chose in place of the policy


class Choices:
    """Lets the policy choose, and chooses for a policy that cannot.

    Parameters
    ----------
    frontier
        Where links are queued; replaced while a crawl is recovered.
    picks
        The picks in flight, by id.
    guard
        Calls the policy.
    ranked
        Whether the frontier is a :class:`~scrapy_focus.core.frontier.Ranked` rather than a ``Drawn``.
    counts
        Counts the choices made in place of the policy.
    """

    def __init__(
        self, frontier: Frontier, picks: dict[int, Pick], guard: Guard, *, ranked: bool, counts: Counter[str]
    ) -> None:
        self.frontier = frontier
        self.closed = NOTHING  # closed hosts, whatever else is busy at the next choice
        self.otherwise = 0  # choices that differed when they were repeated
        self._picks = picks
        self._guard = guard
        self._ranked = ranked
        self._counts = counts
        self._stranded: deque[int] = deque()  # keys of links that were placed in place of the policy
        self._last: Choice | None = None  # just made, and not in flight yet

    def close(self, hosts: frozenset[str]) -> Closed | None:
        """Return the event that closes these hosts and no others; ``None`` if they are closed already."""
        if hosts is self.closed or hosts == self.closed:
            return None
        return Closed(sorted(hosts - self.closed), sorted(self.closed - hosts))

    def apply_closed(self, event: Closed) -> None:
        """Close and open hosts."""
        self.closed = self.closed.difference(event.opened).union(event.hosts)

    def choose(self, busy: Collection[str], at: float) -> Pick | None:
        """Choose a link; :meth:`take` then takes it.

        The policy chooses; if it fails, any link is taken. If it returns nothing and the crawl would stall, a link
        that it never placed is taken, or else any.
        """
        choice = self._last = self._choose(busy, at)
        return None if choice is None else choice.pick

    def take(self, event: Picked) -> Choice:
        """Return the choice just made, or repeat that of an event."""
        choice, self._last = self._last, None
        return self._choose_again(event) if choice is None else choice

    def strand(self, links: Sequence[Link]) -> Sequence[Placement | None]:
        """Place links in place of a policy that failed, in order in arm 0; :meth:`choose` makes sure that they leave
        it.
        """
        first = self._counts["link/stranded"]
        self._stranded.extend(int(link.key) for link in links)
        self._counts["link/stranded"] += len(links)
        return [Placement(0, -float(first + i)) for i in range(1, len(links) + 1)]

    def _choose(self, busy: Collection[str], at: float) -> Choice | None:
        self._guard.policy.now = at
        pick = self._guard.ask("select", self._selected, busy)
        if pick is not FAILED and pick is not None:
            return Choice(pick, True)
        if pick is FAILED:
            pick = self._take_any(busy)
        elif not self._picks:
            pick = self._take_stranded(busy) or self._take_idle(busy)
        return None if pick is None else Choice(pick, False)

    def _selected(self, busy: Collection[str]) -> Pick | None:
        return selected(self._guard.policy.select(busy), self.frontier, self._picks)

    def _choose_again(self, event: Picked) -> Choice:
        """Repeat a choice of an earlier run: the recorded pick counts."""
        choice = self._choose(Busy(self.closed, event.busy) if self.closed else event.busy, event.at)
        if choice is not None and (choice.pick.id, choice.pick.key) == (event.id, event.key):
            return choice
        self.otherwise += choice is None or choice.by_policy
        if choice is not None:
            self.frontier.release(choice.pick)
            if choice.by_policy:
                self._guard.ask("release", self._guard.policy.release, choice.pick)
        pick = self.frontier.take(event.key, pick_id=event.id)
        if pick is None:  # the policy did not place it this time
            url, host, depth, payload = event.link
            self.frontier.push([Link(url, event.key, host, depth, payload=payload)], [Placement(0, 0.0)])
            pick = self.frontier.take(event.key, pick_id=event.id)
        if pick is None:
            raise StorageError(f"the journal has pick {event.id} of a link that is in flight already; see focus check")
        return Choice(pick, False)

    def _take_any(self, busy: Collection[str]) -> Pick | None:
        """Select in place of a policy that failed, after releasing the picks it had taken."""
        for pick in [pick for pick_id, pick in self.frontier.flying.items() if pick_id not in self._picks]:
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
        """Take the first queued link that the policy never placed."""
        for _ in range(len(self._stranded)):
            pick = self.frontier.take(self._stranded[0])
            if pick is not None and pick.host in busy:
                self.frontier.release(pick)
                self._stranded.rotate(-1)
                continue
            if pick is not None:
                return pick  # it may be released; its key goes once it is not queued
            self._stranded.popleft()
        return None

    def _take_idle(self, busy: Collection[str]) -> Pick | None:
        """Take any queued link with a free host when nothing is in flight and nothing due: the crawl would stall.

        A policy that is never due is left alone.
        """
        policy, waiter = self._guard.policy, self._guard.abilities.due
        due = None if waiter is None else self._guard.ask("due", due_of, waiter)
        if due is not FAILED and due is not None and due > policy.now:
            return None
        pick = self._take_any(busy)
        if pick is None:
            return None
        self._counts["select/none"] += 1
        if self._counts["select/none"] == 1:
            logger.warning(
                "select of %s chose nothing, though %d links are queued for free hosts, nothing is in flight, and "
                "due() names no future time: any of them is taken, now and whenever that happens again "
                "(focus/select/none). Let select() return a pick from an arm with queued links, or due() say "
                "when one may be chosen",
                type(policy).__qualname__, len(self.frontier) + 1,
            )  # fmt: skip
        return pick

    def save(self) -> dict[str, Any]:
        """Return this part's fields of a snapshot."""
        if len(self._stranded) > len(self.frontier) + len(self._picks):  # most are not queued any more
            states = zip(self._stranded, self.frontier.states(list(self._stranded)), strict=True)
            self._stranded = deque(key for key, state in states if state in (State.WAITING, State.FLYING))
        return {"stranded": list(self._stranded), "closed": sorted(self.closed)}

    def restore(self, state: Snapshot) -> None:
        """Restore the state of a snapshot."""
        self._stranded.extend(state.stranded)
        self.closed = frozenset(state.closed)
