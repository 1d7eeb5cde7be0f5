"""Reports exactly one outcome for each pick, through the hooks of all features.

The order is fixed: the outcome is derived and counted, the items of the page are written, the features see the outcome,
the links of the page get their places, and the crawl receives the outcome. A page with many links is processed in
slices, so that the event loop can handle responses and timers.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.core.errors import FocusError, StorageError
from scrapy_focus.core.placer import PART
from scrapy_focus.core.printable import brief
from scrapy_focus.core.types import Outcome, State
from scrapy_focus.engine.closing import connection_kind
from scrapy_focus.engine.feature import LISTENERS
from scrapy_focus.engine.feeds import flush_feeds
from scrapy_focus.engine.inflight import BodyStopped, BudgetExhausted, unwrap
from scrapy_focus.engine.turns import Turns, has_more

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy_focus.engine.feature import Hook
    from scrapy_focus.engine.host import Host
    from scrapy_focus.engine.inflight import Entry
    from scrapy_focus.engine.intake import Intake

_STUCK = 5.0  # seconds until the links of a page whose callback still runs are placed, if nothing else is left to do
_LOCATE = 500  # the order, among the hooks, in which links get their places


class _Owed(NamedTuple):
    """A pick whose reward comes later."""

    entry: Entry
    outcome: Outcome
    earned: float  # so far


class Outcomes:
    """Reports the outcomes of all requests that the engine has finished.

    Parameters
    ----------
    host
        The host of the crawl.
    intake
        Receives links that are placed before their page has an outcome.
    """

    def __init__(self, host: Host, intake: Intake) -> None:
        self.host = host
        self.intake = intake
        self.turns = Turns(self._step, host.ask_again)
        self.concluding: set[int] = set()  # picks whose outcomes take several turns
        self._owed: dict[int, _Owed] = {}  # by pick
        self._is_ending = False  # whether everything left is reported at once
        self._dropped = 0  # number of links given up by a full frontier, at the last cleanup of their requests
        host.features.on("read_page", lambda entry, _: host.links.locating(entry), name="locate", order=_LOCATE)

    @property
    def in_flight(self) -> int:
        """Return how many picks have no outcome yet."""
        return len(self.host.inflight.entries) + len(self._owed) + len(self.concluding)

    @property
    def n_owed(self) -> int:
        """Return how many picks have an outcome, but no reward yet."""
        return len(self._owed)

    def settle(self) -> None:
        """Place links that have no source page, and report every finished pick."""
        host = self.host
        self.intake.place()
        for entry in host.inflight.ended():
            if host.failed:  # nothing can be added to the files
                return
            self.conclude(entry)
        self.intake.take_back()
        if self._owed:
            host.crawl.expire()
            for pick_id in self._owed.keys() - host.crawl.status().owed:
                if (owed := self._owed.pop(pick_id, None)) is not None:
                    self._settle(owed)
        if (dropped := host.counts["link/dropped"]) != self._dropped:
            self._dropped = dropped
            host.links.forget_given_up()

    def conclude(self, entry: Entry) -> None:
        """Report the outcome of a pick that the engine has finished, over several turns if its page has many links."""
        host = self.host
        host.inflight.remove(entry)
        if isinstance(entry.failure, BudgetExhausted) and self._may_go_again(entry):
            self.release(entry)
            return
        outcome = self._drawn(entry)
        if outcome.pick.method == "HEAD":
            self._keep(entry)
        if host.crawl.is_kept and not flush_feeds(host.crawler):  # or a kill would lose items of a finished page
            raise StorageError("a feed cannot be written, see the log: make room, and start again with the same JOBDIR")
        for hook in host.features.outcome:
            outcome = self._as_seen(hook, entry, outcome)
        self.concluding.add(entry.pick.id)
        work = self._reporting(entry, outcome)
        takes_turns = entry.takes_turns or len(entry.links) > PART
        if takes_turns and not (host.stopping or self._is_ending):
            self.turns.add(work)
        else:
            deque(work, 0)

    def _may_go_again(self, entry: Entry) -> bool:
        """Whether a pick that the budget stopped is queued again: nothing was sent for it that cannot be sent again."""
        if isinstance(entry.failure, BodyStopped) and entry.request is not None and entry.request.method == "GET":
            return True
        return not entry.sent or bool(self.host.crawl.where) or entry.pick.method == "RENDER"

    def release(self, entry: Entry) -> None:
        """Queue a pick again whose request was never sent."""
        host = self.host
        for hook in host.features.give_back:
            host.guard(hook.name, None, hook.call, entry)
        self._keep(entry)
        host.links.release(entry.also)
        host.crawl.release(entry.pick.id)

    def reward(self, pick_id: int, value: float) -> None:
        """Set the reward of an outcome for which the goal returned ``None``."""
        crawl = self.host.crawl
        before = crawl.rewards
        crawl.reward(pick_id, value)
        owed = self._owed.get(pick_id)
        if owed is not None and not self._flies(owed.entry):
            del self._owed[pick_id]
            self._settle(owed._replace(earned=owed.earned + crawl.rewards - before))

    def place_stuck(self) -> None:
        """If nothing else is queued, place the links of pages whose callbacks are still running.

        They are placed as if the page had earned nothing, since nothing else is known.
        """
        host, now = self.host, monotonic()
        entries = host.inflight.entries.values()
        stuck = [entry for entry in entries if entry.links and now - entry.parsed_from > _STUCK]
        if not stuck or self.intake.redirects.waiting or host.crawl.status().waiting:
            return
        for entry in stuck:
            later, entry.links = entry.links[PART:], entry.links[:PART]
            outcome = entry.outcome(now)
            deque(self._working("locate", host.links.locating(entry)), 0)
            for hook in host.features.read_page:
                if hook.order >= LISTENERS:  # features read the page when it has its outcome
                    deque(self._working(hook.name, host.guard(hook.name, None, hook.call, entry, outcome)), 0)
            self.intake.add(entry.links, outcome)
            entry.links = later

    def finish(self) -> None:
        """Report everything that is left: the crawl ends."""
        host, waiting = self.host, self.intake.redirects.waiting
        self._is_ending = True
        self.turns.finish()
        for entry, _ in waiting:  # the next run starts with the URL that leads there
            host.inflight.remove(entry)
            self.release(entry)
        waiting.clear()
        for entry in list(host.inflight.entries.values()):
            self.conclude(entry)
        host.crawl.expire(everything=True)
        self.settle()
        while self.intake.is_waiting:
            self.settle()

    def _drawn(self, entry: Entry) -> Outcome:
        """Derive and count the outcome of a pick."""
        host = self.host
        outcome = entry.outcome(monotonic())
        leads_to = entry.leads_to
        if leads_to is not None and host.crawl.knows([leads_to]) != [State.NEW]:  # else its link comes later
            outcome = outcome._replace(also=(*outcome.also, leads_to))
        label = entry.label()
        host.count(f"outcome/{label}")
        host.closing.note(entry, label, outcome)
        if kind := connection_kind(entry):
            host.count(f"failure/{kind}")
        return outcome

    def _as_seen(self, hook: Hook, entry: Entry, outcome: Outcome) -> Outcome:
        """Return the outcome as a feature changes it: unchanged, or another one of the same pick."""
        changed = self.host.guard(hook.name, None, hook.call, entry, outcome)
        if changed is None:
            return outcome
        if isinstance(changed, Outcome) and changed.pick.id == outcome.pick.id:
            return changed
        said = f"outcome() of a feature returned {brief(changed)}; it takes an Outcome of the same pick, or None"
        self.host.note_error(hook.name, FocusError(said))
        return outcome

    def _reporting(self, entry: Entry, outcome: Outcome) -> Iterator[None]:
        crawl, pick = self.host.crawl, entry.pick
        earned = 0.0
        try:
            for hook in self.host.features.read_page:
                yield from self._working(hook.name, self.host.guard(hook.name, None, hook.call, entry, outcome))
            fresh = {link.key for link in entry.links}
            known = [key for key in entry.known if key not in fresh]
            before = crawl.rewards
            for _ in crawl.report_in_parts(outcome, entry.links, known):
                earned += crawl.rewards - before
                yield
                before = crawl.rewards  # other picks earn during the slices
            earned += crawl.rewards - before
        finally:
            self.concluding.discard(pick.id)
            self._owed[pick.id] = _Owed(entry, outcome, earned)
        if not self._flies(entry):
            self._settle(self._owed.pop(pick.id))

    def _working(self, name: str, work: Iterator[None] | None) -> Iterator[None]:
        while work is not None and self.host.guard(name, False, has_more, work):
            yield

    def _settle(self, owed: _Owed) -> None:
        """Call the hooks for a pick that has its outcome and its reward."""
        host, entry = self.host, owed.entry
        host.seen.concluded(entry.pick.key)
        host.seen.forget(host.links.concluded(entry))
        for hook in host.features.settled:
            host.guard(hook.name, None, hook.call, entry, owed.outcome, owed.earned)

    def _flies(self, entry: Entry) -> bool:
        """Whether the crawl has no reward of a pick yet."""
        return self.host.crawl.knows([entry.pick.key]) == [State.FLYING]

    def _step(self, work: Iterator[None]) -> bool:
        return not self.host.failed and self.host.guard("next_request", False, has_more, work)

    def _keep(self, entry: Entry) -> None:
        """Keep a request in memory again that is not stored as a record."""
        if not entry.pick.payload and entry.request is not None:
            self.host.requests.pack(entry.pick.key, unwrap(entry.request))
