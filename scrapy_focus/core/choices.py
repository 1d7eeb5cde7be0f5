"""How the next link is chosen: by the policy, or where it fails or chooses nothing for ever, without it."""

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
    by_policy: bool  # False: the crawl chose it for a policy that could not


class Choices:
    """Lets the policy choose, and chooses for a policy that cannot.

    Parameters
    ----------
    frontier
        Where links wait; another one while a crawl is recovered.
    picks
        The picks in flight, by id.
    guard
        How the policy is asked.
    ranked
        Whether the frontier is a :class:`~scrapy_focus.core.frontier.Ranked`, and else a ``Drawn``.
    counts
        Where it counts what it chose in place of the policy.
    """

    def __init__(
        self, frontier: Frontier, picks: dict[int, Pick], guard: Guard, *, ranked: bool, counts: Counter[str]
    ) -> None:
        self.frontier = frontier
        self.closed = NOTHING  # hosts that take nothing, whatever else is busy at the next choice
        self.otherwise = 0  # choices that came out otherwise when they were made again
        self._picks = picks
        self._guard = guard
        self._ranked = ranked
        self._counts = counts
        self._stranded: deque[int] = deque()  # keys of links that were placed for a policy that could not
        self._last: Choice | None = None  # just made, and not in flight yet

    def close(self, hosts: frozenset[str]) -> Closed | None:
        """Return the event after which these hosts are closed and no others; ``None`` where they are closed now."""
        if hosts is self.closed or hosts == self.closed:
            return None
        return Closed(sorted(hosts - self.closed), sorted(self.closed - hosts))

    def apply_closed(self, event: Closed) -> None:
        """Some hosts close, others open."""
        self.closed = self.closed.difference(event.opened).union(event.hosts)

    def choose(self, busy: Collection[str], at: float) -> Pick | None:
        """Choose a link, to be taken by :meth:`take`.

        The policy does; where it fails, any link is taken. Where it chooses nothing and nothing else would happen, a
        link is taken that it never placed, or else any.
        """
        choice = self._last = self._choose(busy, at)
        return None if choice is None else choice.pick

    def take(self, event: Picked) -> Choice:
        """Return the choice just made, or make that of an event once more."""
        choice, self._last = self._last, None
        return self._choose_again(event) if choice is None else choice

    def strand(self, links: Sequence[Link]) -> Sequence[Placement | None]:
        """Place links for a policy that could not, behind each other in arm 0; they leave it in any case, see
        :meth:`choose`.
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
        """Choose what was chosen before: what happened counts."""
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
            raise StorageError(
                f"the journal has pick {event.id} of a link that is in flight already; see scrapy focus-check"
            )
        return Choice(pick, False)

    def _take_any(self, busy: Collection[str]) -> Pick | None:
        """Select for a policy that failed to, after releasing what it had taken out already."""
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
                "select of %s chose nothing, though %d links wait for hosts that are free, nothing is in flight, and "
                "due() names no time to come: any of them is taken, now and whenever that happens again "
                "(focus/select/none). Let select() return a pick from an arm in which something waits, or due() say "
                "when one may be chosen",
                type(policy).__qualname__, len(self.frontier) + 1,
            )  # fmt: skip
        return pick

    def save(self) -> dict[str, Any]:
        """Return the fields of a snapshot that are kept here."""
        if len(self._stranded) > len(self.frontier) + len(self._picks):  # most of them wait no more
            states = zip(self._stranded, self.frontier.states(list(self._stranded)), strict=True)
            self._stranded = deque(key for key, state in states if state in (State.WAITING, State.FLYING))
        return {"stranded": list(self._stranded), "closed": sorted(self.closed)}

    def restore(self, state: Snapshot) -> None:
        """Be as at a snapshot."""
        self._stranded.extend(state.stranded)
        self.closed = frozenset(state.closed)
