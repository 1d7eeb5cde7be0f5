"""A worker: the scheduler's stand-in for a :class:`~scrapy_focus.core.crawl.Crawl` that another machine leads.

It answers at once, from a few leases held ahead. A coroutine talks to the leader; only requests beyond one for each
pick wait for that. Goals run here, where the page is; rewards are sent to the leader.
"""

from __future__ import annotations

import time
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from scrapy_focus.cluster.conversation import Conversation
from scrapy_focus.cluster.crawl_news import CrawlNews
from scrapy_focus.cluster.held_leases import HeldLeases
from scrapy_focus.cluster.messages import Exchange, Hello, added_said, outcome_said
from scrapy_focus.cluster.pending_requests import PendingRequests
from scrapy_focus.cluster.sent_links import SentLinks
from scrapy_focus.core.abilities import FetchesAgain, Hears
from scrapy_focus.core.budget import Budget
from scrapy_focus.core.clock import Clock, speed_of
from scrapy_focus.core.errors import PolicyError, StorageError
from scrapy_focus.core.goal import counts_contents
from scrapy_focus.core.guard import Guard
from scrapy_focus.core.rewards import Rewards
from scrapy_focus.core.status import Status
from scrapy_focus.core.types import State

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
    from os import PathLike

    from scrapy_focus.cluster.engine import Engine
    from scrapy_focus.cluster.messages import Answer, Said
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.policy import Policy
    from scrapy_focus.core.types import Link, Outcome, Page, Pick, Signal


class Worker:
    """Leases picks of a crawl that another machine leads, and sends their outcomes to that leader.

    It has the methods of :class:`~scrapy_focus.core.crawl.Crawl` that a scheduler calls, with the same meaning; the
    docstrings here describe only the differences.

    Parameters
    ----------
    engine
        The connection to the leader.
    name
        The name of this worker; unique for all time.
    policy
        Used only for what it reads and wants; it decides at the leader.
    goal
        Computes the reward of an outcome.
    agreed
        Values that have to be equal for all workers, as text.
    slots
        Limit of requests in flight here.
    ahead
        Leases held here ahead, so that no request waits for the leader.
    lease
        Seconds without a message after which the leader gives up a worker.
    linger
        Seconds for which a host belongs to this worker after its last request.
    where
        The crawl that it is part of, in words.
    patience
        Seconds that an outcome without a reward (the goal returned ``None``) is kept open.
    counts
        Where to count.
    clock
        The current time, as for a crawl.
    when_news
        Called when there is something to do.
    when_unplaced
        Called with the URLs of links that the policy left unchanged; with ``None`` if that may be any.
    when_failed
        Called when the leader cannot write its files any more: the crawl ends.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        name: str,
        policy: Policy,
        goal: Goal,
        agreed: Mapping[str, str] | None = None,
        slots: int = 16,
        ahead: int = 8,
        lease: float = 30.0,
        linger: float = 60.0,
        where: str = "",
        patience: float = 60.0,
        counts: Counter[str] | None = None,
        clock: Callable[[], float] | None = None,
        when_news: Callable[[], None] | None = None,
        when_unplaced: Callable[[list[str] | None], None] | None = None,
        when_failed: Callable[[StorageError], None] | None = None,
    ) -> None:
        self.engine = engine
        self.name = name
        self.policy = policy
        self.goal = goal
        self.agreed = dict(agreed or {})
        self.slots = slots
        self.ahead = ahead
        self.where = where
        self.is_kept = True  # its leader stores the crawl
        self.counts: Counter[str] = counts if counts is not None else Counter()
        self.clock = time.monotonic if clock is None else clock
        self.when_news = when_news
        self.when_unplaced = when_unplaced
        self.when_failed = when_failed
        self.comes_back = isinstance(policy, FetchesAgain)
        self.why: dict[str, Any] = {}
        self.budget = Budget()
        self.budget.start(self.clock)
        self.now = Clock() if clock is None else Clock(clock, clock)
        self.leases = HeldLeases(linger)
        self.sleepers = self.forecasts = self._news = CrawlNews(self.now, speed_of(self.clock))
        self._rewards = Rewards(
            goal, Guard(policy, goal, counts=self.counts), self.leases.flying, clock=self.clock, patience=patience,
            counts=self.counts,
        )  # fmt: skip
        self._sent_links = SentLinks(policy, comes_back=self.comes_back)
        self.pending = PendingRequests(self.budget)
        self._conversation = Conversation(self, engine, lease=lease, where=where, counts=self.counts)
        self._counts_once = counts_contents(goal)
        self._busy: Collection[str] = ()  # hosts that were busy at the last choice
        self._n_bytes = 0  # received, and not reported yet
        self._refused = ""

    # Called by a scheduler: nothing here waits

    @property
    def rewards(self) -> float:
        """The sum of all rewards so far."""
        return self._rewards.total

    def next(self, busy: Collection[str] = (), *, turns: Iterable[Collection[str]] | None = None) -> Pick | None:
        """Return the next lease whose host is free, and whose page is not in flight by a lease that ended."""
        self.expire()
        self._busy = busy = next(iter(turns), ()) if turns is not None else busy
        handed_out = None if self.finished() else self.leases.hand_out(busy)
        if handed_out is None:
            if not self._conversation.in_vain:
                self._conversation.stir()
            return None
        pick, self.why = handed_out
        self.counts["selected"] += 1
        if self.is_hungry:
            self._conversation.stir()
        return pick

    def sent(self, pick_id: int | None = None) -> bool:
        """Use one request: that of a lease, or a further one that was granted."""
        unsent = self.leases.unsent
        if pick_id in unsent:
            unsent.discard(pick_id)
        elif not (self.pending.use_spare() or (pick_id is None and self.leases.use_probe())):
            return False
        self.budget.requests_used += 1
        return True

    async def more(self) -> bool:
        """Wait for the leader to grant one more request, and use it; ``False`` if it refuses."""
        if self._conversation.is_closing or self.finished():
            return False
        future = self.pending.more()
        self._conversation.stir()
        return await future or self._use_reserved()

    async def claim(self, pick_id: int, key: int) -> State:
        """Wait for the leader's state of the target of a redirect.

        With ``NEW``, no other worker fetches the page now, and it belongs to this pick.
        """
        if self._conversation.is_closing or self.finished():
            return State.NEW
        future = self.pending.claim(pick_id, key)
        self._conversation.stir()
        state = await future
        if state == State.FETCHED:
            self._sent_links.fetched([key])
        elif state not in (State.NEW, State.FLYING):  # its owner may lose it
            self._sent_links.add([key])
        return state

    def _use_reserved(self) -> bool:
        """If nothing more is granted, use the request of a lease: what is in flight takes precedence."""
        leases = self.leases
        if self._conversation.is_closing or self.finished() or not leases.unsent:
            return False
        if leases.waiting:
            self._conversation.say(("release", leases.give_back_last(), True))
        else:
            leases.unsent.discard(min(leases.unsent))
        self.budget.requests_used += 1
        return True

    def received(self, n_bytes: int | None) -> None:
        """Count a response of so many bytes; ``None``: its request was never sent."""
        if n_bytes is None:
            self.pending.spare += 1
            self.budget.requests_used -= 1
        else:
            self._n_bytes += n_bytes
            self.budget.bytes_used += n_bytes

    @property
    def bytes_used(self) -> int:
        """Bytes of all answers that were counted on all machines, according to the leader's last news."""
        news = self._news.news
        return max(self.budget.bytes_used, 0 if news is None else int(news.used["bytes"]))

    def add(self, links: Sequence[Link], source: Outcome | None = None) -> int:
        """Send links to the leader; return their number."""
        if source is not None and source.pick.id not in self.leases.flying:
            raise PolicyError(f"links came from pick {source.pick.id} ({source.pick.url}), which is not in flight")
        if links and (source is None or source.pick.id not in self.leases.lost):
            self._rewards.see_links(links, source)
            self._sent_links.add([link.key for link in links])
            self._conversation.say(added_said(source, links, self._read(source.page) if source is not None else None))
        return len(links)

    def report(self, outcome: Outcome, links: Sequence[Link] = (), known: Sequence[int] = ()) -> None:
        """Report an outcome: its reward is computed here, and everything else by the leader."""
        outcome = outcome._replace(at=self.now())
        reward = self._rewards.of(outcome, links, known)
        if reward is not None:
            self._conclude(outcome, links, known, reward)

    def report_in_parts(
        self, outcome: Outcome, links: Sequence[Link] = (), known: Sequence[int] = ()
    ) -> Iterator[None]:
        """Do the same at once, when the iterator is created: the leader places the links."""
        self.report(outcome, links, known)
        return iter(())

    def reward(self, pick_id: int, value: float) -> bool:
        """Set the reward of an outcome whose goal returned ``None``, even before it is reported."""
        owed = self._rewards.hear(pick_id, value)
        if owed is None:
            return self._rewards.hold(pick_id, value)
        self._conclude(owed.outcome, owed.links, owed.known, float(value))
        return True

    def expire(self, *, everything: bool = False) -> None:
        """Set overdue rewards to 0."""
        for owed in self._rewards.overdue(everything=everything):
            self._conclude(owed.outcome, owed.links, owed.known, 0.0)

    def release(self, pick_id: int) -> None:
        """Return a pick to the leader that was never sent, or has to be sent again."""
        self._rewards.check_release(pick_id)
        self.counts["released"] += 1
        is_lost = pick_id in self.leases.lost
        is_sent = self._land(pick_id)
        if not is_lost:
            self._conversation.say(("release", pick_id, is_sent))

    def hear(self, signals: Sequence[Signal]) -> None:
        """Send the leader what sitemaps, feeds or pings say."""
        if signals and isinstance(self.policy, Hears):
            self._conversation.say(("hear", [tuple(signal) for signal in signals]))

    def finished(self) -> str:
        """Why the crawl is over, according to the leader."""
        return "refused" if self._refused else self._news.finished

    def knows(self, keys: Sequence[int]) -> list[State]:
        """Return the state of each key as known here: the leader knows more."""
        return [self._sent_links.state(key, self.leases.flying_keys) for key in keys]

    def wake(self, most: int | None = None) -> bool:
        """Return that all due links are queued: the leader takes care of that."""
        return True

    @property
    def next_turn(self) -> float | None:
        """When the rate of the budget allows the next choice, likewise."""
        return self._news.next_turn

    def status(self, *, best: int = 0) -> Status:
        """Return the state of this worker; that of the crawl is in ``whole``."""
        if best:
            self._news.look()
        news, leases = self._news.news, self.leases
        waiting = len(leases.waiting) + self._conversation.n_unheard
        if news is None:
            waiting += 1  # not known to be over
        else:
            waiting += news.waiting + max(0, news.out - len(leases.flying) - len(leases.waiting))
            dict.update(self.counts, {f"cluster/{name}": n for name, n in news.counts.items()})
        at = self.now()
        return Status(
            counts=MappingProxyType(self.counts),
            waiting=waiting,
            asleep=self.sleepers.asleep,
            next_due=self.sleepers.next_due,
            arms=0 if news is None else news.arms,
            awake=0 if news is None else news.awake,
            in_flight=len(leases.flying),
            owed=self._rewards.late.ids,
            rewards=self.rewards,
            found_at=self._rewards.found_at,
            used=self.budget.state(),
            limits=self.budget.limits,
            finished=self.finished(),
            at=at,
            due=self._news.due,
            recovered=frozenset(),
            next_turn=self.next_turn,
            best_arms=self._news.best_arms(best),
            left=self._news.left if best else None,
            cost=self._news.cost if best else None,
            whole=self._news.whole(at, best),
        )

    def checkpoint(self) -> None:
        """Do nothing: the leader writes checkpoints."""

    def close(self, *, learned_to: str | PathLike[str] = "") -> Awaitable[None]:
        """Send what is left, and leave; to be awaited. The leader saves what the policy learned."""
        self._give_back_waiting()
        self._conversation.is_closing = True
        self._conversation.stir()
        return self._farewell()

    async def _farewell(self) -> None:
        await self._conversation.end()
        self.pending.give_up()
        await self.engine.close()

    # Messages about a pick

    def _conclude(self, outcome: Outcome, links: Sequence[Link], known: Sequence[int], reward: float) -> None:
        pick, outcome = outcome.pick, outcome._replace(reward=reward)
        self.counts["outcomes"] += 1
        if pick.id in self.leases.lost:  # its page is fetched again, and its links have to be new then
            self._land(pick.id)
            return
        if reward and pick.method == "GET":
            if self._counts_once:
                outcome = outcome._replace(content=getattr(outcome.page, "content", None))
            self._rewards.earn(pick, reward, None, self.budget.requests_used)
        self._rewards.see_links(links, outcome)
        fresh, keys = self._sent_links.sort(links, known)
        self._sent_links.fetched([pick.key, *outcome.also])
        is_sent = self._land(pick.id)
        self._conversation.say(outcome_said(outcome, fresh, keys, is_sent=is_sent, read=self._read(outcome.page)))

    def _read(self, page: Page | None) -> dict[str, Any] | None:
        """Return what a policy reads of a page, if it reads pages."""
        if page is None or not self.policy.reads_outcome:
            return None
        return {
            "url": page.url, "status": page.status, "headers": dict(page.headers), "text": page.text, "kind": page.kind,
        }  # fmt: skip

    def _land(self, pick_id: int) -> bool:
        """Remove a pick from those in flight; return whether its request was sent."""
        self._rewards.late.forget(pick_id)
        return self.leases.land(pick_id)

    def _give_back_waiting(self) -> None:
        """Return leases to the leader that were not handed out, and will not be."""
        for pick_id in self.leases.give_back():
            self._conversation.say(("release", pick_id, False))

    # Called by the conversation, see cluster/conversation.py

    def want(self) -> int:
        """Return how many leases are wanted: as many as can start now, and more if there are too many hosts."""
        if self._conversation.is_closing or self.finished():
            return 0
        waiting = self.leases.waiting
        ready = sum(pick.host not in self._busy for pick in waiting)
        room = 4 * (self.slots + self.ahead) - len(waiting)
        return max(0, min(self.slots + self.ahead - len(self.leases.flying) - ready, room))

    @property
    def is_hungry(self) -> bool:
        """Whether few leases are left."""
        return self.want() > self.ahead // 2

    def hello(self, unheard: Set[int]) -> Hello:
        """Return the message with which it joins or rejoins."""
        holding = [*self.leases.ids, *unheard]
        return Hello(self.name, self.agreed, holding, self.leases.recent_hosts(), self.pending.granted)

    def message(self, session: str, said: list[Said]) -> Exchange:
        """Return the next message to the leader."""
        n_asked, claims, unused = self.pending.serve(), self.pending.claims, self.pending.give_back()
        self.pending.granted -= unused
        n_bytes, self._n_bytes = self._n_bytes, 0
        looks, self._news.wants_portrait = self._news.wants_portrait, False
        return Exchange(
            self.name, session, said, self.want(), n_asked + len(claims), unused, n_bytes, self.leases.ids, looks,
            claims,
        )  # fmt: skip

    def unsay(self, message: Exchange) -> None:
        """Report bytes and portraits again that a lost message may have contained."""
        self._n_bytes += message.n_bytes
        self._news.wants_portrait = self._news.wants_portrait or message.looks

    def heard(self, message: Exchange, answer: Answer) -> None:
        """The leader answered."""
        if answer.unplaced:
            urls = self._sent_links.forget_unplaced(answer.unplaced, message.said)
            if urls and self.when_unplaced is not None:
                self.when_unplaced(urls)
        self.pending.granted += answer.granted
        self.pending.take(answer.granted, message.extra - len(message.claims))
        self.pending.take_claims(answer.claimed)
        self._sent_links.add([self.leases.take(lease).key for lease in answer.leases])
        self._news.take(answer)
        if self._news.finished or self._conversation.is_closing:
            self._give_back_waiting()
        if self.when_news is not None and self._is_awaited(answer):
            self.when_news()

    def _is_awaited(self, answer: Answer) -> bool:
        """Whether a waiting spider has to ask for a request again: for leases, or as the crawl ends."""
        if answer.leases or self._news.finished:
            return True
        return answer.news is not None and not (answer.news.waiting or answer.news.out)

    def lose(self, lost: set[int]) -> None:
        """Handle leases that ended while held here: their pages are fetched again, here or elsewhere.

        Their outcomes reported links that the leader may not have, so all links are sent when found again.
        """
        self.counts["worker/lost_leases"] += len(lost)
        self.leases.lose(lost)
        for pick_id in lost:
            if pick_id in self._rewards.late:
                self._land(pick_id)  # no reward is expected any more
        self._sent_links.forget_all()
        if self.when_unplaced is not None:
            self.when_unplaced(None)

    def refuse(self, why: str) -> None:
        """Stop: the leader refused this worker."""
        self._refused = why
        self.pending.give_up()
        if self.when_news is not None:
            self.when_news()

    def fail(self, why: str) -> None:
        """Stop: the leader has everything sent so far, but cannot write its files any more."""
        self._news.finished = "storage"
        self.leases.waiting.clear()
        self.pending.give_up()
        if self.when_failed is not None:
            self.when_failed(StorageError(f"{self.where} cannot write its files any more: {why}"))
