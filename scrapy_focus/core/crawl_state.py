"""The state of a crawl at one instant: its parts, and how each event changes them.

Applying the same events to the same state gives the same crawl. :class:`~scrapy_focus.core.crawl.Crawl` decides on
events now, or decided on them in an earlier run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.choices import Choices
from scrapy_focus.core.decisions import Decisions
from scrapy_focus.core.ending import Ending
from scrapy_focus.core.events import (
    Added,
    Closed,
    Concluded,
    GaveUp,
    Granted,
    Heard,
    Leased,
    Paced,
    Picked,
    Recovered,
    Released,
    Sent,
    Woke,
)
from scrapy_focus.core.in_flight import InFlight
from scrapy_focus.core.leases import Leases
from scrapy_focus.core.placer import Placer
from scrapy_focus.core.poor import LAST
from scrapy_focus.core.poor_last import PoorLast
from scrapy_focus.core.refetches import Refetches
from scrapy_focus.core.rewards import Rewards
from scrapy_focus.core.room import Room
from scrapy_focus.core.signals import Signals
from scrapy_focus.core.sleepers import Sleepers
from scrapy_focus.core.snapshot import Snapshot
from scrapy_focus.core.types import Placement, State

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from scrapy_focus.core.budget import Budget
    from scrapy_focus.core.events import Event
    from scrapy_focus.core.frontier import Frontier
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.guard import Guard
    from scrapy_focus.core.log import EventLog
    from scrapy_focus.core.mission import Mission
    from scrapy_focus.core.poor import Poor
    from scrapy_focus.core.stop import StopRule
    from scrapy_focus.core.types import Link, Outcome


class CrawlState:
    """Composes the parts of a crawl, and applies events to them.

    Each part has its own state, applies the events that change it, and saves and restores its fields of a snapshot.
    Parts don't know the crawl: a part returns the event that it wants to happen.

    Parameters
    ----------
    guard
        Calls the policy, goal, stop rule and log.
    frontier
        Where links are queued.
    goal, mission, budget, stop, log, most_waiting, poor, clock, patience, counts
        As for a crawl.
    explains
        Whether the policy is asked why it chose a link.
    ranked
        Whether the frontier is a :class:`~scrapy_focus.core.frontier.Ranked` rather than a ``Drawn``.
    """

    def __init__(
        self,
        guard: Guard,
        frontier: Frontier,
        *,
        goal: Goal,
        mission: Mission,
        budget: Budget,
        stop: StopRule | None,
        log: EventLog | None,
        explains: bool,
        most_waiting: int | None,
        poor: Poor | None,
        clock: Callable[[], float],
        patience: float,
        counts: Counter[str],
        ranked: bool,
    ) -> None:
        self.guard = guard
        self.frontier = frontier
        self.goal = goal
        self.mission = mission
        self.budget = budget
        self.counts = counts
        self.last = -math.inf  # time of the last event, in seconds since the epoch
        self.in_flight = InFlight(frontier, budget)
        self.picks = self.in_flight.picks
        self.leases = Leases(self.in_flight, budget)
        self.sleepers = Sleepers(frontier)
        self.room = Room(most_waiting, frontier, guard, counts)
        self.choices = Choices(frontier, self.picks, guard, ranked=ranked, counts=counts)
        self.decisions = Decisions(log, explains=explains, guard=guard)
        self.ending = Ending(stop, budget, guard)
        self.signals = Signals(frontier, guard)
        self.rewards = Rewards(goal, guard, self.picks, clock=clock, patience=patience, counts=counts)
        self.refetches = Refetches(frontier, self.sleepers, guard, counts)
        comes_back = self.refetches.comes_back
        self.poor_last = PoorLast(poor, self.sleepers, self.in_flight, self.room, comes_back=comes_back, counts=counts)
        self.placer = Placer(frontier, self.sleepers, guard, self.choices, self.poor_last, counts=counts)
        self._parts = (
            self.rewards, self.in_flight, self.leases, self.choices, self.ending, self.poor_last, self.decisions,
        )  # fmt: skip

    def apply(self, event: Event | Snapshot) -> None:
        """Apply an event, now or again when a crawl is recovered; a snapshot is the state before the first."""
        match event:
            case Picked():
                self._apply_picked(event)
            case Closed():
                self.choices.apply_closed(event)
            case Sent():
                self.last = event.at
                self.in_flight.apply_sent(event)
            case Concluded():
                self._apply_concluded(event)
            case Added():
                self.guard.policy.now = self.last = event.at
                self._show(event.links, event.source)
                self.placer.add(event.links, event.source)
            case Released():
                self._apply_released(event)
            case Recovered():
                self.counts["recovered"] += len(set(event.keys) - self.in_flight.recovered)
                self.in_flight.recovered.update(event.keys)
            case GaveUp():
                self.guard.policy.now = self.last = event.at
                self.room.apply(event)
            case Woke():
                self._apply_woke(event)
            case Heard():
                self.last = event.at
                self.signals.apply(event)
            case Paced():
                self.guard.policy.budget_rate = event.rate
            case Leased():
                self.leases.apply_leased(event)
            case Granted():
                self.last = event.at
                self.leases.apply_granted(event)
            case Snapshot():
                self._restore(event)

    def _apply_picked(self, event: Picked) -> None:
        pick, by_policy = self.choices.take(event)
        self.last = event.at
        self.in_flight.take_off(pick, event.at, by_policy=by_policy)
        if by_policy:
            self.poor_last.mark(pick)
        self.counts["selected"] += 1
        self.decisions.chosen(pick, by_policy=by_policy)

    def _apply_woke(self, event: Woke) -> None:
        if event.at < LAST:
            self.last = event.at
        else:
            self.counts["poor/rounds"] += 1
        self.sleepers.apply(event)

    def _land(self, pick_id: int) -> None:
        """Forget a pick: nobody fetches it or expects its reward any more."""
        self.in_flight.land(pick_id)
        self.leases.end(pick_id)
        self.rewards.late.forget(pick_id)

    def _apply_released(self, event: Released) -> None:
        pick = self.picks[event.pick_id]
        self._land(pick.id)
        is_poor = pick.id in self.in_flight.poor
        place = Placement(pick.arm, pick.rank, pick.memo, pick.method) if is_poor else None
        if place is not None and (place := self.poor_last.last_place(place)) is None:
            self.frontier.settle(pick)
        else:
            self.frontier.release(pick)
        if pick.id not in self.in_flight.unchosen:
            self.guard.ask("release", self.guard.policy.release, pick)
        if place is not None:
            self.placer.put_back(pick, place)
        self.in_flight.forget(pick.id)
        self.counts["released"] += 1
        self.decisions.released(pick)

    def _apply_concluded(self, event: Concluded) -> None:
        outcome, pick = event.outcome, event.outcome.pick
        policy = self.guard.policy
        policy.now = self.last = outcome.at
        if event.used:
            self.budget.restore(event.used)
        self._land(pick.id)
        self.in_flight.forget(pick.id)
        self.in_flight.recovered.discard(pick.key)
        self.frontier.settle(pick, outcome.also)
        self.counts["outcomes"] += 1
        self.rewards.earn(pick, outcome.reward, outcome.content, self.budget.requests_used)
        if pick.method == "HEAD":
            self.placer.place_probed(outcome)
        elif event.links or event.known:
            self._show(event.links, outcome)
            self.placer.add(event.links, outcome, event.known)
        self.guard.ask("learn", policy.learn, outcome)
        if self.poor_last.poor is not None:
            self.poor_last.poor.learn(outcome)
        self.refetches.place(outcome)
        self.decisions.concluded(outcome)
        self.ending.look(self.rewards.total)
        dict.update(self.counts, event.counts)

    def _show(self, links: Sequence[Link], source: Outcome | None) -> None:
        """Show a goal that observes links the new ones, each URL once: it depends on the policy whether others come."""
        if not self.rewards.shows_links:
            return
        new: dict[int, Link] = {}
        for link, state in zip(links, self.frontier.states([link.key for link in links]), strict=True):
            if state == State.NEW:
                new.setdefault(link.key, link)
        self.rewards.see_links([*new.values()], source)

    def _restore(self, state: Snapshot) -> None:
        """Restore a crawl to a checkpoint; later events are then applied."""
        self.guard.take_up(state.policy)
        self.last = state.at
        self.budget.restore(state.used)
        self.counts.update(state.counts)
        for part in self._parts:
            part.restore(state)

    def save(self, at: float) -> Snapshot:
        """Return the whole state of the crawl, in seconds since the epoch."""
        saved: dict[str, Any] = {}
        for part in self._parts:
            saved |= part.save()
        budget = self.budget
        return Snapshot(
            policy=self.guard.policy,
            at=at,
            used=budget.state(),
            limits=budget.limits,
            rate="" if budget.rate is None else str(budget.rate),
            counts=dict(self.counts),
            **saved,
        )
