"""A worker: what a scheduler has in place of a :class:`~scrapy_focus.core.crawl.Crawl` that another machine leads.

It answers at once, from a few leases that it has ahead; a coroutine talks to the leader, and nothing waits for that
but requests beyond one for each pick. Goals are asked here, where the page is; what they say travels.
"""

from __future__ import annotations

import time
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from scrapy_focus.cluster.asked_leader import AskedLeader
from scrapy_focus.cluster.conversation import Conversation
from scrapy_focus.cluster.crawl_news import CrawlNews
from scrapy_focus.cluster.held_leases import HeldLeases
from scrapy_focus.cluster.messages import Exchange, Hello, added_said, outcome_said
from scrapy_focus.cluster.told_links import ToldLinks
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
    """Leases picks of a crawl that another machine leads, and tells that leader what came of them.

    It has the methods of :class:`~scrapy_focus.core.crawl.Crawl` that a scheduler calls, and they mean the same here;
    what is said below is what differs.

    Parameters
    ----------
    engine
        How the leader is reached.
    name
        Of this worker; no other one ever has the same.
    policy
        Asked for nothing but what it reads and wants: it decides at the leader.
    goal
        What an outcome is worth.
    agreed
        What has to be equal for all workers, as text.
    slots
        Requests that are in flight here at most.
    ahead
        Leases that wait here, so that nothing waits for the leader.
    lease
        Seconds after which the leader gives up a worker that it does not hear of.
    linger
        Seconds for which a host that was asked is this worker's.
    where
        What it is part of, in words.
    patience
        Seconds that an outcome whose goal said ``None`` is kept open.
    counts
        Where to count.
    clock
        What time it is, as for a crawl.
    when_news
        Called when there is something to do.
    when_unplaced
        Called with the URLs of links that the policy left as they were; with ``None`` where that may be any.
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
        self.is_kept = True  # its leader survives
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
        self._told = ToldLinks(policy, comes_back=self.comes_back)
        self.asked = AskedLeader(self.budget)
        self._conversation = Conversation(self, engine, lease=lease, where=where, counts=self.counts)
        self._counts_once = counts_contents(goal)
        self._busy: Collection[str] = ()  # hosts that could take nothing when a pick was asked for last
        self._n_bytes = 0  # received, and not said yet
        self._refused = ""

    # What a scheduler calls: nothing here waits

    @property
    def rewards(self) -> float:
        """What all outcomes so far were worth."""
        return self._rewards.total

    def next(self, busy: Collection[str] = (), *, turns: Iterable[Collection[str]] | None = None) -> Pick | None:
        """Return the next lease whose host is not busy, and whose page is not in flight by a lease that ended."""
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
        """Use a request: that of a lease, or one of those that were granted beyond."""
        unsent = self.leases.unsent
        if pick_id in unsent:
            unsent.discard(pick_id)
        elif not (self.asked.use_spare() or (pick_id is None and self.leases.use_probe())):
            return False
        self.budget.requests_used += 1
        return True

    async def more(self) -> bool:
        """Wait until the leader grants one request more, and use it; ``False``: it does not."""
        if self._conversation.is_closing or self.finished():
            return False
        future = self.asked.more()
        self._conversation.stir()
        return await future or self._use_reserved()

    async def claim(self, pick_id: int, key: int) -> State:
        """Wait until the leader says what is known of the page to which a pick was redirected; ``NEW``: nobody else
        asks for that now, and it is this pick's.
        """
        if self._conversation.is_closing or self.finished():
            return State.NEW
        future = self.asked.claim(pick_id, key)
        self._conversation.stir()
        state = await future
        if state == State.FETCHED:
            self._told.fetched([key])
        elif state not in (State.NEW, State.FLYING):  # who has it may lose it
            self._told.add([key])
        return state

    def _use_reserved(self) -> bool:
        """Where nothing more is granted, use the request of a lease: what is under way goes before what is not."""
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
        """An answer came, of so many bytes; ``None``: its request never left."""
        if n_bytes is None:
            self.asked.spare += 1
            self.budget.requests_used -= 1
        else:
            self._n_bytes += n_bytes
            self.budget.bytes_used += n_bytes

    def add(self, links: Sequence[Link], source: Outcome | None = None) -> int:
        """Tell the leader of links; returns how many these are."""
        if source is not None and source.pick.id not in self.leases.flying:
            raise PolicyError(f"links came for pick {source.pick.id} ({source.pick.url}), which is not in flight")
        if links and (source is None or source.pick.id not in self.leases.lost):
            self._told.add([link.key for link in links])
            self._conversation.say(added_said(source, links, self._read(source.page) if source is not None else None))
        return len(links)

    def report(self, outcome: Outcome, links: Sequence[Link] = (), known: Sequence[int] = ()) -> None:
        """A pick came back: its reward is known here, and all else is for the leader."""
        outcome = outcome._replace(at=self.now())
        reward = self._rewards.of(outcome, links, known)
        if reward is not None:
            self._conclude(outcome, links, known, reward)

    def report_in_parts(
        self, outcome: Outcome, links: Sequence[Link] = (), known: Sequence[int] = ()
    ) -> Iterator[None]:
        """Do the same when the iterator is made, which never pauses: the leader places the links."""
        self.report(outcome, links, known)
        return iter(())

    def reward(self, pick_id: int, value: float) -> bool:
        """Say what an outcome is worth whose goal says ``None``, also before it is reported."""
        owed = self._rewards.hear(pick_id, value)
        if owed is None:
            return self._rewards.hold(pick_id, value)
        self._conclude(owed.outcome, owed.links, owed.known, float(value))
        return True

    def expire(self, *, everything: bool = False) -> None:
        """Give 0 to outcomes whose reward is overdue."""
        for owed in self._rewards.overdue(everything=everything):
            self._conclude(owed.outcome, owed.links, owed.known, 0.0)

    def release(self, pick_id: int) -> None:
        """A pick was never sent, or is to be sent again: it goes back to the leader."""
        self._rewards.check_release(pick_id)
        self.counts["released"] += 1
        is_lost = pick_id in self.leases.lost
        is_sent = self._land(pick_id)
        if not is_lost:
            self._conversation.say(("release", pick_id, is_sent))

    def hear(self, signals: Sequence[Signal]) -> None:
        """Tell the leader what sitemaps, feeds or pings say."""
        if signals and isinstance(self.policy, Hears):
            self._conversation.say(("hear", [tuple(signal) for signal in signals]))

    def finished(self) -> str:
        """Why the crawl is over, as the leader says."""
        return "refused" if self._refused else self._news.finished

    def knows(self, keys: Sequence[int]) -> list[State]:
        """Return what is known here about each key: the leader knows more."""
        return [self._told.state(key, self.leases.flying_keys) for key in keys]

    def wake(self, most: int | None = None) -> bool:
        """Say that all that are due wait: the leader sees to it."""
        return True

    @property
    def next_turn(self) -> float | None:
        """When the rate of the budget lets the next link be chosen, likewise."""
        return self._news.next_turn

    def status(self, *, best: int = 0) -> Status:
        """Return how this worker stands; how the crawl stands is in ``whole``."""
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
        """Do nothing: the leader writes them."""

    def close(self, *, learned_to: str | PathLike[str] = "") -> Awaitable[None]:
        """Say what is still to be said, and leave; to be awaited. What the policy learned is saved by the leader."""
        self._give_back_waiting()
        self._conversation.is_closing = True
        self._conversation.stir()
        return self._farewell()

    async def _farewell(self) -> None:
        await self._conversation.end()
        self.asked.give_up()
        await self.engine.close()

    # What is said of a pick

    def _conclude(self, outcome: Outcome, links: Sequence[Link], known: Sequence[int], reward: float) -> None:
        pick, outcome = outcome.pick, outcome._replace(reward=reward)
        self.counts["outcomes"] += 1
        if pick.id in self.leases.lost:  # its page is fetched again, so its links have to be new then
            self._land(pick.id)
            return
        if reward and pick.method == "GET":
            if self._counts_once:
                outcome = outcome._replace(content=getattr(outcome.page, "content", None))
            self._rewards.earn(pick, reward, None, self.budget.requests_used)
        fresh, keys = self._told.sort(links, known)
        self._told.fetched([pick.key, *outcome.also])
        is_sent = self._land(pick.id)
        self._conversation.say(outcome_said(outcome, fresh, keys, is_sent=is_sent, read=self._read(outcome.page)))

    def _read(self, page: Page | None) -> dict[str, Any] | None:
        """Return what a policy may read of a page, where it says that it reads pages."""
        if page is None or not self.policy.reads_outcome:
            return None
        return {
            "url": page.url, "status": page.status, "headers": dict(page.headers), "text": page.text, "kind": page.kind,
        }  # fmt: skip

    def _land(self, pick_id: int) -> bool:
        """A pick is not in flight any more; return whether its request went out."""
        self._rewards.late.forget(pick_id)
        return self.leases.land(pick_id)

    def _give_back_waiting(self) -> None:
        """Leases were not handed out, and will not be."""
        for pick_id in self.leases.give_back():
            self._conversation.say(("release", pick_id, False))

    # What the conversation asks for, as cluster/conversation.py says

    def want(self) -> int:
        """How many leases are wanted: those that can start now count, and all others where they are too many."""
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
        """Return how it comes, or comes back."""
        holding = [*self.leases.ids, *unheard]
        return Hello(self.name, self.agreed, holding, self.leases.recent_hosts(), self.asked.granted)

    def message(self, session: str, said: list[Said]) -> Exchange:
        """Return what it says and wants."""
        n_asked, claims, unused = self.asked.serve(), self.asked.claims, self.asked.give_back()
        self.asked.granted -= unused
        n_bytes, self._n_bytes = self._n_bytes, 0
        looks, self._news.wants_portrait = self._news.wants_portrait, False
        return Exchange(
            self.name, session, said, self.want(), n_asked + len(claims), unused, n_bytes, self.leases.ids, looks,
            claims,
        )  # fmt: skip

    def unsay(self, message: Exchange) -> None:
        """A message may not have reached the leader: bytes and looks are said again."""
        self._n_bytes += message.n_bytes
        self._news.wants_portrait = self._news.wants_portrait or message.looks

    def heard(self, message: Exchange, answer: Answer) -> None:
        """The leader answered."""
        if answer.unplaced:
            urls = self._told.forget_unplaced(answer.unplaced, message.said)
            if urls and self.when_unplaced is not None:
                self.when_unplaced(urls)
        self.asked.granted += answer.granted
        self.asked.take(answer.granted, message.extra - len(message.claims))
        self.asked.take_claims(answer.claimed)
        self._told.add([self.leases.take(lease).key for lease in answer.leases])
        self._news.take(answer)
        if self._news.finished or self._conversation.is_closing:
            self._give_back_waiting()
        if self.when_news is not None and self._is_awaited(answer):
            self.when_news()

    def _is_awaited(self, answer: Answer) -> bool:
        """Whether a spider that waits for the next request has to ask again: for leases, or as the crawl ends."""
        if answer.leases or self._news.finished:
            return True
        return answer.news is not None and not (answer.news.waiting or answer.news.out)

    def lose(self, lost: set[int]) -> None:
        """Leases ended that were held here: their pages are fetched again, here or elsewhere.

        What came of them told links that the leader may not have, so all links are told again when they come again.
        """
        self.counts["worker/lost_leases"] += len(lost)
        self.leases.lose(lost)
        for pick_id in lost:
            if pick_id in self._rewards.late:
                self._land(pick_id)  # nobody waits for its reward any more
        self._told.forget_all()
        if self.when_unplaced is not None:
            self.when_unplaced(None)

    def refuse(self, why: str) -> None:
        """It cannot take part."""
        self._refused = why
        self.asked.give_up()
        if self.when_news is not None:
            self.when_news()

    def fail(self, why: str) -> None:
        """The leader has what was said until now, and can write nothing any more."""
        self._news.finished = "storage"
        self.leases.waiting.clear()
        self.asked.give_up()
        if self.when_failed is not None:
            self.when_failed(StorageError(f"{self.where} cannot write its files any more: {why}"))
