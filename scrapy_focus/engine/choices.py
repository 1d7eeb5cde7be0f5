"""Chooses the next request, as late as possible and never more than can start now."""

from __future__ import annotations

import math
from time import monotonic
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.utils.asyncio import call_later

from scrapy_focus.core.crawl import Crawl
from scrapy_focus.core.outstanding import learns, most_out
from scrapy_focus.engine.inflight import Entry
from scrapy_focus.engine.marks import WHY
from scrapy_focus.engine.requests import MissingCallback
from scrapy_focus.engine.room import Room

if TYPE_CHECKING:
    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_focus.core.types import Pick
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.intake import Intake
    from scrapy_focus.engine.outcomes import Outcomes

_LONGEST = 60.0  # seconds until a policy without a choice is asked again
_SKIPPED = 50  # picks that are skipped in one call
_WOKEN = 100  # links woken in one batch
_WAKING = 0.01  # seconds spent on waking links in one turn of the event loop


class Choices:
    """Chooses the next request, and schedules the next look when none can start.

    Parameters
    ----------
    host
        The host of the crawl.
    intake
        Queues redirects.
    outcomes
        Reports the outcomes of picks.
    """

    def __init__(self, host: Host, intake: Intake, outcomes: Outcomes) -> None:
        self.host = host
        self.intake = intake
        self.outcomes = outcomes
        self.room = self._make_room()
        self.never = False  # the policy said last that no queued link will ever be due
        self._alarm: CallLaterResult | None = None  # when the engine asks again

    def next(self) -> Request | None:
        """Return the next request, ``None`` if none can start now."""
        host = self.host
        if (request := self.intake.redirects.next()) is not None:
            return request
        if 0 < host.config.max_inflight <= self.outcomes.in_flight:
            return None
        if self.room is not None and not self.room.is_left(len(self.outcomes.concluding)):
            self._look_when_due()
            return None
        for _ in range(_SKIPPED):
            pick = self._choose()
            if pick is None:
                break
            try:
                request = self._made(pick)
            except MissingCallback as error:
                self.outcomes.release(host.inflight.entries.pop(pick.id))
                host.fail(error)
                return None
            if request is not None:
                return request
        else:
            host.ask_again()
        self.outcomes.place_stuck()
        self._look_when_due()
        return None

    def set_alarm(self, seconds: float | None) -> None:
        """Schedule the engine's next request in so many seconds, and cancel an earlier schedule."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None if seconds is None else self.make_alarm(seconds)

    def make_alarm(self, seconds: float) -> CallLaterResult:
        """Call the engine in so many seconds."""
        return call_later(seconds, self.host.ask_again)

    def _make_room(self) -> Room | None:
        """Return the limit on picks in flight; ``None`` if there is no limit, or the leader of a cluster has it."""
        host, most = self.host, self.host.config.most_out
        if most == 0 or host.crawl.where or not (learns(host.policy) or most):
            return None
        return Room(host.inflight, host.slots, most=self._most_out, ask_again=host.ask_again)

    def _most_out(self) -> int:
        """How many picks may be in flight now; an outcome counts as learned even if its reward comes later."""
        host = self.host
        names_hosts = host.crawl.names_hosts if isinstance(host.crawl, Crawl) else None
        n_hosts = 0 if names_hosts is None else len(names_hosts.hosts)
        most = host.config.most_out or most_out(host.counts["outcomes"] + self.outcomes.n_owed, n_hosts)
        return min(most, host.crawler.engine.downloader.total_concurrency or most)

    def _choose(self) -> Pick | None:
        """Queue all due links, then let the crawl choose among the sendable ones of the highest priority."""
        host = self.host
        if host.crawl.sleepers.asleep > _WOKEN and not self._wake():
            host.ask_again()
            return None
        if not host.priorities:
            return host.crawl.next(host.slots.busy)
        return host.crawl.next(turns=host.priorities.turns(host.slots.busy))

    def _wake(self) -> bool:
        """Queue due links within a time limit; return whether all were queued."""
        until = monotonic() + _WAKING
        while not self.host.crawl.wake(_WOKEN):
            if monotonic() > until:
                return False
        return True

    def _made(self, pick: Pick) -> Request | None:
        """Return the request of a pick, ready to be sent; ``None`` if the pick failed, and has its outcome.

        Raises
        ------
        MissingCallback
            If the spider cannot rebuild the request.
        """
        host, entries = self.host, self.host.inflight.entries
        entry = entries[pick.id] = Entry(pick, monotonic())
        request = host.guard("unpack", None, host.requests.unpack, pick.key, pick.url, pick.payload)
        if request is None:
            entry.verdict = "lost"  # for example, its callback was removed since the last run
            self.outcomes.conclude(entry)
            return None
        if any(other.request is request for other in entries.values()):
            request = request.copy()
        for hook in host.features.hand_out:
            said = host.guard(hook.name, False, hook.call, entry, request)
            if isinstance(said, Request):
                request = said
            elif said:
                self.outcomes.conclude(entry)
                return None
        host.count_as_scrapy("dequeued", stored=bool(pick.payload))
        if host.config.explain:
            request.meta[WHY] = host.crawl.why
        return host.inflight.hand_out(entry, request)

    def _look_when_due(self) -> None:
        """Schedule the next wake-up: a link is due or has its turn, or a host becomes free.

        If none of these is expected, the crawl may end.
        """
        changes = [self.host.slots.changes_in(), None if self.room is None else self.room.changes_in()]
        times = [seconds for seconds in changes if seconds is not None]
        times += self._changes_of_crawl()
        if times:
            self.set_alarm(min(*times, _LONGEST))

    def _changes_of_crawl(self) -> list[float]:
        """Return the seconds until a link of the crawl may become sendable, one number for each reason."""
        crawl = self.host.crawl
        due, turn, is_idle = crawl.sleepers.next_due, crawl.next_turn, not self.outcomes.in_flight
        if due is None and turn is None and not is_idle:  # the usual case; needs no status
            return []
        status = crawl.status()
        moments = []
        if due is not None:
            moments.append(due)
        if status.waiting and turn is not None:
            moments.append(turn)
        if is_idle and status.waiting and status.due is not None and status.due > status.at:
            self.never = status.due == math.inf
            moments.append(status.due)
        return [max(0.0, moment - status.at) / self.host.speed for moment in moments]
