"""The next request: as late as possible, and never more than can start now."""

from __future__ import annotations

import math
from time import monotonic
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from scrapy_focus.core.crawl import Crawl
from scrapy_focus.core.outstanding import learns, most_out
from scrapy_focus.engine.inflight import Entry
from scrapy_focus.engine.marks import WHY
from scrapy_focus.engine.requests import MissingCallback
from scrapy_focus.engine.room import Room

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.utils.asyncio import CallLaterResult

    from scrapy_focus.core.types import Pick
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.intake import Intake
    from scrapy_focus.engine.outcomes import Outcomes

_LONGEST = 60.0  # seconds until the policy is asked again that has nothing yet
_SKIPPED = 50  # picks that are passed over at once
_WOKEN = 100  # links that slept, at once
_WAKING = 0.01  # seconds for which links are woken in one turn of the event loop


class Choices:
    """Chooses what is asked for next, and looks again when that may change.

    Parameters
    ----------
    host
        Of the crawl.
    intake
        Where redirects wait.
    outcomes
        Who reports what came back.
    """

    def __init__(self, host: Host, intake: Intake, outcomes: Outcomes) -> None:
        self.host = host
        self.intake = intake
        self.outcomes = outcomes
        self.room = self._make_room()
        self.never = False  # what waits is due at no time, as the policy said when it was asked last
        self._alarm: CallLaterResult | None = None  # when the engine is to ask again

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
        """Let the engine ask again in so many seconds, and at no other time that was set before."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None if seconds is None else self.make_alarm(seconds)

    def make_alarm(self, seconds: float) -> CallLaterResult:
        """Call the engine in so many seconds."""
        return call_later(seconds, self.host.ask_again)

    def _make_room(self) -> Room | None:
        """Return what bounds how many picks are out; ``None`` where nothing does, or the leader of a cluster."""
        host, most = self.host, self.host.config.most_out
        if most == 0 or host.crawl.where or not (learns(host.policy) or most):
            return None
        return Room(host.inflight, host.slots, most=self._most_out, ask_again=host.ask_again)

    def _most_out(self) -> int:
        """How many picks may be out now; what came back counts as learned, though its reward comes later."""
        host = self.host
        names_hosts = host.crawl.names_hosts if isinstance(host.crawl, Crawl) else None
        n_hosts = 0 if names_hosts is None else len(names_hosts.hosts)
        most = host.config.most_out or most_out(host.counts["outcomes"] + self.outcomes.n_owed, n_hosts)
        return min(most, host.crawler.engine.downloader.total_concurrency or most)

    def _choose(self) -> Pick | None:
        """Queue all links that are due, then let the crawl choose among the sendable ones of the highest priority."""
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
        """Return the request of a pick, ready to go out; ``None`` if the pick came to nothing, and has its outcome.

        Raises
        ------
        MissingCallback
            If the spider cannot make the request again.
        """
        host, entries = self.host, self.host.inflight.entries
        entry = entries[pick.id] = Entry(pick, monotonic())
        request = host.guard("unpack", None, host.requests.unpack, pick.key, pick.url, pick.payload)
        if request is None:
            entry.verdict = "lost"  # its callback is gone since the last run, say
            self.outcomes.conclude(entry)
            return None
        if any(other.request is request for other in entries.values()):
            request = request.copy()
        for hook in host.features.hand_out:
            if host.guard(hook.name, False, hook.call, entry, request):
                self.outcomes.conclude(entry)
                return None
        host.count_as_scrapy("dequeued", stored=bool(pick.payload))
        if host.config.explain:
            request.meta[WHY] = host.crawl.why
        return host.inflight.hand_out(entry, request)

    def _look_when_due(self) -> None:
        """Schedule the next wake-up: when a link is due or has its turn, or a host becomes free.

        If that never happens, the crawl may end.
        """
        changes = [self.host.slots.changes_in(), None if self.room is None else self.room.changes_in()]
        times = [seconds for seconds in changes if seconds is not None]
        times += self._changes_of_crawl()
        if times:
            self.set_alarm(min(*times, _LONGEST))

    def _changes_of_crawl(self) -> list[float]:
        """Return in how many seconds a link of the crawl may leave that cannot now."""
        crawl = self.host.crawl
        due, turn, is_idle = crawl.sleepers.next_due, crawl.next_turn, not self.outcomes.in_flight
        if due is None and turn is None and not is_idle:  # the usual case, without a status
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
