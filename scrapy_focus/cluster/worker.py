"""A worker: what a scheduler has in place of a :class:`~scrapy_focus.core.crawl.Crawl` that another machine leads.

It answers at once, from a few leases that it has ahead; a coroutine talks to the leader, and nothing waits for that
but requests beyond one for each pick. Goals are asked here, where the page is; what they say travels.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, overload

from scrapy_focus.cluster.messages import Exchange, Hello, LeaderClosed, added_said, outcome_said
from scrapy_focus.core.budget import Budget, Rate
from scrapy_focus.core.clock import Clock
from scrapy_focus.core.contract import worth
from scrapy_focus.core.crawl import Status
from scrapy_focus.core.errors import (
    ConfigError,
    FocusError,
    FolderInUseError,
    GoalError,
    PolicyError,
    ResumeError,
    StorageError,
)
from scrapy_focus.core.late import LateRewards
from scrapy_focus.core.printable import brief, printable_logger, reason_of
from scrapy_focus.core.types import State
from scrapy_focus.frontiers.keys import KeySet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from scrapy_focus.cluster.engine import Engine
    from scrapy_focus.cluster.messages import Answer, News, Portrait, Said, Welcome
    from scrapy_focus.core.goal import Goal
    from scrapy_focus.core.policy import Policy, PolicyTable, WatchedPage
    from scrapy_focus.core.types import Link, Outcome, Page, Pick, Signal

logger = printable_logger(__name__)

_TOGETHER = 0.1  # seconds: what comes together goes together
_SOON = 0.02  # the same where somebody waits, or has little left
_HUNGRY = 0.3  # seconds between two questions of a worker that has nothing to do
_PATIENT = 5  # seconds at most between two attempts to reach the leader
_RESET = 4  # failures after which the way to the leader is looked for anew
_SHOWN = 20  # failures after which one is logged again, without an answer in between
_LOOKS = 5.0  # seconds between two portraits
_FAREWELL = 60.0  # seconds for which a worker that closes tries to reach the leader
_SHOWN_ERRORS = 3


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
        self.lease = lease
        self.linger = linger
        self.where = where
        self.counts: Counter[str] = counts if counts is not None else Counter()
        self.clock = time.monotonic if clock is None else clock
        self.when_news = when_news
        self.when_unplaced = when_unplaced
        self.when_failed = when_failed
        self.comes_back = policy.can("again")
        self.rewards = 0.0
        self.why: dict[str, Any] = {}
        self.budget = Budget()
        self.budget.start(self.clock)
        self._now = Clock() if clock is None else Clock(clock, clock)
        self._late = LateRewards(goal, clock=self.clock, patience=patience, counts=self.counts)
        self._counts_once = bool(getattr(goal, "stored", False))
        self._knows_keys = policy.known_by_key or policy.can("know")
        self._wants_links = bool(policy.wants_known) and not policy.known_by_key
        self._known_state = min(policy.wants_known, default=State.WAITING)
        self._waiting: deque[Pick] = deque()  # leased, and not handed out
        self._whys: dict[int, dict[str, Any]] = {}  # what the policy said of these, where that is asked for
        self._flying: dict[int, Pick] = {}
        self._flying_keys: set[int] = set()
        self._lost: set[int] = set()  # ids of these whose lease ended: nothing that comes of them counts
        self._unsent: set[int] = set()  # ids of leases whose request did not go out
        self._probes: set[int] = set()  # ids of picks in flight that are looked at with a HEAD
        self._told = KeySet()  # keys of links that the leader has from here, or gave out to here
        self._fetched = KeySet()  # keys of pages that were fetched here, where pages come back
        self._hosts: dict[str, float] = {}  # when a lease of each was here last, in seconds of time.monotonic
        self._busy: Collection[str] = ()  # hosts that could take nothing when a pick was asked for last
        self._spare = 0  # requests beyond one for each pick that were granted
        self._granted = 0  # the same, in all, without those that were given back
        self._asked: deque[asyncio.Future[bool]] = deque()  # who waits for one
        self._claims: deque[tuple[asyncio.Future[State], int, int]] = deque()  # redirects: picks and keys
        self._n_bytes = 0  # received, and not said yet
        self._outbox: list[Said] = []
        self._said: list[Said] = []  # without an answer yet
        self._found_at: deque[tuple[int, float]] = deque(maxlen=256)
        self._news: News | None = None
        self._news_at = time.monotonic()
        self._found_by_all: deque[tuple[int, float]] = deque(maxlen=256)
        self._portrait: Portrait | None = None
        self._looked = float("-inf")
        self._looks = True
        self._finished = ""
        self._refused = ""
        self._failed = False  # the leader, for good
        self._session = ""
        self._failures = 0
        self._in_vain = False  # whether nothing came when leases were asked for last
        self._kick = asyncio.Event()
        self._failed_with: set[type[Exception]] = set()  # kinds of failures since the last answer
        self._missed_since = 0.0  # seconds of time.monotonic
        self._conversation: asyncio.Task[None] | None = None
        self._closing = False

    # What a scheduler calls: nothing here waits

    @property
    def is_kept(self) -> bool:
        """Whether it survives its process: its leader does."""
        return True

    def next(self, busy: Collection[str] = (), *, turns: Iterable[Collection[str]] | None = None) -> Pick | None:
        """Return the next lease whose host is not busy, and whose page is not in flight by a lease that ended: links
        of the one would be known to the other.
        """
        self.expire()
        self._busy = busy = next(iter(turns), ()) if turns is not None else busy
        if not self.finished():
            for at, pick in enumerate(self._waiting):
                if pick.host not in busy and pick.key not in self._flying_keys:
                    del self._waiting[at]
                    self._flying[pick.id] = pick
                    self._flying_keys.add(pick.key)
                    if pick.method == "HEAD":
                        self._probes.add(pick.id)
                    self._hosts[pick.host] = time.monotonic()
                    self.why = self._whys.pop(pick.id, {})
                    self.counts["selected"] += 1
                    if self._want() > self.ahead // 2:
                        self._stir()
                    return pick
        if not self._in_vain:
            self._stir()
        return None

    def sent(self, pick_id: int | None = None) -> bool:
        """Use a request: that of a lease, or one of those that were granted beyond."""
        if pick_id in self._unsent:
            self._unsent.discard(pick_id)
        elif self._spare:
            self._spare -= 1
        elif pick_id is None and (probe := next(iter(self._probes & self._unsent), None)) is not None:
            self._unsent.discard(probe)  # a HEAD goes out by itself, in place of the request of its pick
        else:
            return False
        self.budget.requests_used += 1
        return True

    async def more(self) -> bool:
        """Wait until the leader grants one request more, and use it; ``False``: it does not."""
        if self._closing or self.finished():
            return False
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._asked.append(future)
        self._stir()
        return await future or self._use_reserved()

    async def claim(self, pick_id: int, key: int) -> State:
        """Wait until the leader says what is known of the page to which a pick was redirected; ``NEW``: nobody else
        asks for that now, and it is this pick's.
        """
        if self._closing or self.finished():
            return State.NEW
        future: asyncio.Future[State] = asyncio.get_running_loop().create_future()
        self._claims.append((future, pick_id, key))
        self._stir()
        state = await future
        if state not in (State.NEW, State.FLYING):  # who has it may lose it
            self._told.add(key)
            if state == State.FETCHED and self.comes_back:
                self._fetched.add(key)
        return state

    def _use_reserved(self) -> bool:
        """Where nothing more is granted, use the request of a lease: what is under way goes before what is not."""
        if self._closing or self.finished() or not self._unsent:
            return False
        if self._waiting:
            pick = self._waiting.pop()
            self._whys.pop(pick.id, None)
            self._unsent.discard(pick.id)
            self._say(("release", pick.id, True))
        else:
            self._unsent.discard(min(self._unsent))
        self.budget.requests_used += 1
        return True

    def received(self, n_bytes: int | None) -> None:
        """An answer came, of so many bytes; ``None``: its request never left."""
        if n_bytes is None:
            self._spare += 1
            self.budget.requests_used -= 1
        else:
            self._n_bytes += n_bytes
            self.budget.bytes_used += n_bytes

    def add(self, links: Sequence[Link], source: Outcome | None = None) -> int:
        """Tell the leader of links; returns how many these are."""
        if source is not None and source.pick.id not in self._flying:
            raise PolicyError(f"links came for pick {source.pick.id} ({source.pick.url}), which is not in flight")
        if links and (source is None or source.pick.id not in self._lost):
            self._note_told(links)
            self._say(added_said(source, links, self._read(source.page) if source is not None else None))
        return len(links)

    @overload
    def report(self, outcome: Outcome, links: Sequence[Link] = (), known: Sequence[int] = ()) -> None: ...
    @overload
    def report(
        self, outcome: Outcome, links: Sequence[Link] = (), known: Sequence[int] = (), *, in_parts: Literal[True]
    ) -> Iterator[None]: ...
    def report(
        self, outcome: Outcome, links: Sequence[Link] = (), known: Sequence[int] = (), *, in_parts: bool = False
    ) -> Iterator[None] | None:
        """A pick came back: its reward is known here, and all else is for the leader."""
        pick_id = outcome.pick.id
        if pick_id not in self._flying or pick_id in self._late:
            raise PolicyError(f"pick {pick_id} ({outcome.pick.url}) is not in flight: it was reported already")
        outcome = outcome._replace(at=self._now())
        reward = self._worth(outcome)
        if reward is None:
            reward = self._late.early(pick_id)
        if reward is not None or not self._late.keep(outcome, links, known):
            self._conclude(outcome, links, known, reward or 0.0)
        return iter(()) if in_parts else None

    def reward(self, pick_id: int, value: float) -> bool:
        """Say what an outcome is worth whose goal says ``None``, also before it is reported."""
        if not abs(value) < float("inf"):
            raise GoalError(f"the reward of pick {pick_id} is {brief(value)}; it must be a finite number")
        owed = self._late.heard(pick_id)
        if owed is not None:
            self._conclude(owed.outcome, owed.links, owed.known, float(value))
        elif pick_id in self._flying:
            self._late.hold(pick_id, float(value))
        else:
            return False
        return True

    def hear(self, signals: Sequence[Signal]) -> None:
        """Tell the leader what sitemaps, feeds or pings say."""
        if signals and self.policy.can("hear"):
            self._say(("hear", [tuple(signal) for signal in signals]))

    def tell_rules(self, text: str) -> None:
        """Tell the leader what was learned here of the APIs behind pages, for crawls that begin with it."""
        self._say(("rules", None, text))

    def expire(self, *, everything: bool = False) -> None:
        """Give 0 to outcomes whose reward is overdue."""
        for owed in self._late.overdue(everything=everything):
            self._conclude(owed.outcome, owed.links, owed.known, 0.0)

    def release(self, pick_id: int) -> None:
        """A pick was never sent, or is to be sent again: it goes back to the leader."""
        if pick_id not in self._flying or pick_id in self._late:
            raise PolicyError(f"pick {pick_id} is not in flight: it was released or reported already")
        self.counts["released"] += 1
        is_lost = pick_id in self._lost
        is_sent = self._land(pick_id)
        if not is_lost:
            self._say(("release", pick_id, is_sent))

    def finished(self) -> str:
        """Why the crawl is over, as the leader says."""
        return "refused" if self._refused else self._finished

    def knows(self, keys: Sequence[int]) -> list[State]:
        """Return what is known here about each key: the leader knows more."""
        return [self._state(key) for key in keys]

    def wake(self, most: int | None = None) -> bool:
        """Say that all that are due wait: the leader sees to it."""
        return True

    def watched(self, most: int) -> list[WatchedPage]:
        """Return nothing: the leader knows these pages."""
        return []

    def tables(self) -> list[PolicyTable]:
        """Return the tables of the policy as the leader showed them last."""
        self._look()
        return [] if self._portrait is None else [*self._portrait.tables]

    @property
    def asleep(self) -> int:
        """How many links wait until a time."""
        return 0 if self._news is None else self._news.asleep

    @property
    def next_due(self) -> float | None:
        """When the first of these is due, in seconds since the epoch."""
        return None if self._news is None else self._at(self._news.next_due)

    @property
    def next_turn(self) -> float | None:
        """When the rate of the budget lets the next link be chosen, likewise."""
        return None if self._news is None else self._at(self._news.next_turn)

    def status(self, *, best: int = 0) -> Status:
        """Return how this worker stands; how the crawl stands is in ``whole``."""
        if best:
            self._look()
        news, portrait = self._news, self._portrait
        waiting = len(self._waiting) + len(self._outbox) + len(self._said)
        if news is None:
            waiting += 1  # not known to be over
        else:
            waiting += news.waiting + max(0, news.out - len(self._flying) - len(self._waiting))
            dict.update(self.counts, {f"cluster/{name}": n for name, n in news.counts.items()})
        at = self._now()
        return Status(
            counts=MappingProxyType(self.counts),
            waiting=waiting,
            asleep=self.asleep,
            next_due=self.next_due,
            arms=0 if news is None else news.arms,
            awake=0 if news is None else news.awake,
            in_flight=len(self._flying),
            owed=self._late.ids,
            rewards=self.rewards,
            found_at=self._found_at,
            used=self.budget.state(),
            limits=self.budget.limits,
            finished=self.finished(),
            at=at,
            due=None if news is None else self._at(news.due),
            recovered=frozenset(),
            next_turn=self.next_turn,
            best_arms=() if portrait is None else portrait.best_arms[:best],
            left=portrait.left if best and portrait is not None else None,
            cost=portrait.cost if best and portrait is not None else None,
            whole=None if news is None else self._whole(news, at, best),
        )

    def checkpoint(self) -> None:
        """Do nothing: the leader writes them."""

    def close(self, *, learned_to: str | PathLike[str] = "") -> Awaitable[None]:
        """Say what is still to be said, and leave; to be awaited. What the policy learned is saved by the leader."""
        while self._waiting:
            self._give_back(self._waiting.popleft())
        self._closing = True
        self._stir()
        return self._farewell()

    # What is said

    def _conclude(self, outcome: Outcome, links: Sequence[Link], known: Sequence[int], reward: float) -> None:
        pick, outcome = outcome.pick, outcome._replace(reward=reward)
        if pick.id in self._lost:  # its page is fetched again, so its links have to be new then
            self.counts["outcomes"] += 1
            self._land(pick.id)
            return
        if reward and self._counts_once and pick.method == "GET":
            outcome = outcome._replace(content=getattr(outcome.page, "content", None))
        if reward and pick.method == "GET":
            self.rewards += reward
            self._found_at.append((self.budget.requests_used, self.rewards))
        self.counts["outcomes"] += 1
        fresh = [link for link in links if self._wants_links or link.key not in self._told]
        keys = [*known, *(link.key for link in links if link.key in self._told)] if self._knows_keys else []
        self._note_told(fresh)
        for key in (pick.key, *outcome.also):
            self._told.add(key)
            if self.comes_back:
                self._fetched.add(key)
        is_sent = self._land(pick.id)
        self._say(outcome_said(outcome, fresh, keys, is_sent=is_sent, read=self._read(outcome.page)))

    def _worth(self, outcome: Outcome) -> float | None:
        try:
            return worth(self.goal, outcome)
        except Exception as error:
            self.counts["error/goal"] += 1
            if self.counts["error/goal"] <= _SHOWN_ERRORS:
                logger.error(
                    "goal of %s failed: %s", type(self.goal).__qualname__, reason_of(error, 1000),
                    exc_info=not isinstance(error, FocusError),
                )  # fmt: skip
            return 0.0

    def _read(self, page: Page | None) -> dict[str, Any] | None:
        """Return what a policy may read of a page, where it says that it reads pages."""
        if page is None or not self.policy.reads_outcome:
            return None
        return {
            "url": page.url, "status": page.status, "headers": dict(page.headers), "text": page.text, "kind": page.kind,
        }  # fmt: skip

    def _note_told(self, links: Sequence[Link]) -> None:
        for link in links:
            self._told.add(link.key)

    def _land(self, pick_id: int) -> bool:
        """A pick is not in flight any more; return whether its request went out."""
        pick = self._flying.pop(pick_id)
        self._late.forget(pick_id)
        self._lost.discard(pick_id)
        self._flying_keys.discard(pick.key)
        self._probes.discard(pick_id)
        is_sent = pick_id not in self._unsent
        self._unsent.discard(pick_id)
        return is_sent

    def _give_back(self, pick: Pick) -> None:
        """A lease was not handed out."""
        self._unsent.discard(pick.id)
        self._whys.pop(pick.id, None)
        self._say(("release", pick.id, False))

    def _say(self, said: Said) -> None:
        self._outbox.append(said)
        self._stir()

    def _state(self, key: int) -> State:
        if key in self._flying_keys:
            return State.FLYING
        if self.comes_back and key in self._fetched:
            return State.FETCHED
        return self._known_state if key in self._told else State.NEW

    # What is known of the crawl

    def _at(self, seconds: float | None) -> float | None:
        """Return the time that was so many seconds away when the leader said so; if it came since, when that is
        asked again.
        """
        if seconds is None:
            return None
        speed = getattr(self.clock, "speed", 1.0)
        return self._now() + max(_HUNGRY * speed, seconds - (time.monotonic() - self._news_at) * speed)

    def _look(self) -> None:
        if time.monotonic() - self._looked > _LOOKS:
            self._looks = True

    def _whole(self, news: News, at: float, best: int) -> Status:
        portrait = self._portrait
        return Status(
            counts=MappingProxyType(news.counts),  # type: ignore[arg-type]
            waiting=news.waiting, asleep=news.asleep, next_due=self.next_due, arms=news.arms, awake=news.awake,
            in_flight=news.out, owed=frozenset(), rewards=news.rewards,
            found_at=self._found_by_all, used=news.used, limits=news.limits,
            finished=self._finished, at=at, due=self._at(news.due), recovered=frozenset(),
            rate=Rate.of(news.rate) if news.rate else None, next_turn=self.next_turn,
            best_arms=() if portrait is None else portrait.best_arms[:best],
            left=None if portrait is None else portrait.left, cost=None if portrait is None else portrait.cost,
        )  # fmt: skip

    # The conversation

    def _stir(self) -> None:
        """There is something to say, or something is wanted."""
        if self._conversation is None:
            self._conversation = asyncio.ensure_future(self._converse())
        self._kick.set()

    def _want(self) -> int:
        """How many leases are wanted: those that can start now count, and all others where they are too many."""
        if self._closing or self.finished():
            return 0
        ready = sum(pick.host not in self._busy for pick in self._waiting)
        room = 4 * (self.slots + self.ahead) - len(self._waiting)
        return max(0, min(self.slots + self.ahead - len(self._flying) - ready, room))

    async def _converse(self) -> None:
        while not (self._refused or self._failed):
            try:
                if not self._session:
                    await self._join()
                    continue
                got = await self._exchange()
            except Exception as error:
                if isinstance(error, ConfigError | ResumeError) and not isinstance(error, FolderInUseError):
                    self._refuse(str(error))
                else:
                    await self._fail(error)
                continue
            self._answered()
            if not self._session or self._failed:
                continue
            if self._closing and not (self._outbox or self._said or self._asked or self._claims):
                await self._leave()
                return
            await self._rest(got)

    def _answered(self) -> None:
        """The leader can be reached."""
        if self._failed_with:
            logger.info("%s answers again, after %.0f s", self.where, time.monotonic() - self._missed_since)
        self._failures = 0
        self._failed_with.clear()

    async def _rest(self, got: bool) -> None:
        """Wait until something is to be said, or it is time to be heard of."""
        if not (self._asked or self._claims):
            is_hungry = self._want() > 0
            wait = _HUNGRY if is_hungry else self.lease / 3
            self._in_vain = is_hungry and not got  # it was asked for, and there is nothing
            if self._in_vain and not self._outbox:
                self._kick.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._kick.wait(), wait)
            await asyncio.sleep(_SOON if self._asked or self._closing or self._want() > self.ahead // 2 else _TOGETHER)
        self._kick.clear()

    async def _fail(self, error: Exception) -> None:
        """The leader cannot be reached: it may be gone, or the way to it."""
        self._session = ""
        self._failures += 1
        self.counts["worker/failed_calls"] += 1
        if isinstance(error, LeaderClosed):
            logger.info("%s was closed; looking for another one", self.where)
        elif type(error) not in self._failed_with or self._failures % _SHOWN == 0:
            said = f"{type(error).__name__}: {reason_of(error, 300)}"
            logger.warning("no answer of %s (%s); trying again", self.where, said)
        if not self._failed_with:
            self._missed_since = time.monotonic()
        self._failed_with.add(type(error))
        if self._failures % _RESET == 0 and not isinstance(error, FocusError):  # else it was reached
            try:
                await self.engine.reset()
            except Exception as failure:
                logger.warning("the way to %s could not be reset: %s", self.where, reason_of(failure))
        await asyncio.sleep(min(0.25 * self._failures, _PATIENT))

    async def _join(self) -> None:
        self._said, self._outbox = [*self._said, *self._outbox], []  # what is said from now on comes after that
        unheard = self._said
        mine = {said[1] for said in unheard if said[0] in ("outcome", "release")}
        holding = [*(pick.id for pick in self._waiting), *self._flying, *mine]
        since = time.monotonic() - self.linger
        self._hosts = {host: at for host, at in self._hosts.items() if at > since}
        hello = Hello(self.name, self.agreed, holding, [*self._hosts], self._granted)
        welcome: Welcome = await self.engine.call("join", hello)
        if welcome.refused:
            self._refuse(welcome.refused)
            return
        if welcome.failed:
            self._fail_for_good(welcome.failed)
            return
        kept = set(welcome.kept)
        self._outbox = [
            *(said for said in unheard if said[0] == "hear" or said[1] is None or said[1] in kept), *self._outbox
        ]  # fmt: skip
        if lost := set(holding) - kept:
            self._lose(lost)
        self._said = []
        self._session = welcome.session

    def _lose(self, lost: set[int]) -> None:
        """Leases ended that were held here: their pages are fetched again, here or elsewhere.

        What came of them told links that the leader may not have, so all links are told again when they come again.
        """
        self.counts["worker/lost_leases"] += len(lost)
        self._waiting = deque(pick for pick in self._waiting if pick.id not in lost)
        self._lost |= lost & self._flying.keys()
        self._unsent -= lost - self._lost  # their requests are counted as sent
        for pick_id in lost:
            self._whys.pop(pick_id, None)
            if pick_id in self._late:
                self._land(pick_id)  # nobody waits for its reward any more
        self._told, self._fetched = KeySet(), KeySet()
        if self.when_unplaced is not None:
            self.when_unplaced(None)

    def _refuse(self, why: str) -> None:
        self._refused = why
        logger.error("this worker cannot take part: %s", why)
        self._answer_asked(0)
        self._answer_claims([State.NEW] * len(self._claims))
        if self.when_news is not None:
            self.when_news()

    def _fail_for_good(self, why: str) -> None:
        """The leader has what was said until now, and can write nothing any more."""
        self._failed, self._finished = True, "storage"
        self._waiting.clear()
        self._answer_asked(0)
        self._answer_claims([State.NEW] * len(self._claims))
        if self.when_failed is not None:
            self.when_failed(StorageError(f"{self.where} cannot write its files any more: {why}"))

    async def _exchange(self) -> bool:
        """Say what there is to say, and return whether anything came of it."""
        asked = [future for future in self._asked if not future.done()]
        self._asked = deque(asked)
        while asked and self._spare:  # what was given back by one is enough for another
            self._spare -= 1
            self.budget.requests_used += 1
            asked.pop(0)
            self._asked.popleft().set_result(True)
        self._said, self._outbox = [*self._said, *self._outbox], []
        unused, self._spare = self._spare, 0
        self._granted -= unused
        n_bytes, self._n_bytes = self._n_bytes, 0
        looks, self._looks = self._looks, False
        n_asked, claims = len(self._asked), [*self._claims]
        alive = [*(pick.id for pick in self._waiting), *self._flying]
        message = Exchange(
            self.name, self._session, self._said, self._want(), n_asked + len(claims), unused, n_bytes, alive, looks,
            [(pick_id, key) for _, pick_id, key in claims],
        )  # fmt: skip
        try:
            answer: Answer = await self.engine.call("exchange", message)
        except BaseException:
            self._n_bytes += n_bytes
            self._looks = self._looks or looks
            raise
        if answer.rejoin:
            self._session = ""
            return True
        if answer.failed:
            self._fail_for_good(answer.failed)
            return False
        self._forget_unplaced(answer.unplaced)
        self._said = []
        self._granted += answer.granted
        self._answer_asked(answer.granted, n_asked)
        self._answer_claims(answer.claimed)
        self._take(answer)
        return bool(answer.leases)

    def _take(self, answer: Answer) -> None:
        now = time.monotonic()
        for lease in answer.leases:
            pick = lease.pick()
            self._waiting.append(pick)
            self._unsent.add(pick.id)
            self._told.add(pick.key)
            self._hosts[pick.host] = now
            if lease.why is not None:
                self._whys[pick.id] = lease.why
        if answer.news is not None:
            self._news, self._news_at = answer.news, now
            used = int(answer.news.used["requests"])
            if not self._found_by_all or self._found_by_all[-1][0] < used:
                self._found_by_all.append((used, answer.news.rewards))
        if answer.portrait is not None:
            self._portrait, self._looked = answer.portrait, now
            self._found_by_all = deque(answer.portrait.found_at, maxlen=self._found_by_all.maxlen)
        self._finished = answer.finished
        if self._finished or self._closing:
            while self._waiting:
                self._give_back(self._waiting.popleft())
        over = answer.news is not None and not (answer.news.waiting or answer.news.out)
        if (answer.leases or self._finished or over) and self.when_news is not None:
            self.when_news()

    def _answer_asked(self, granted: int, n: int | None = None) -> None:
        """Let those go on that waited for a request more; the first of them get it."""
        for _ in range(len(self._asked) if n is None else n):
            future = self._asked.popleft()
            if future.done():  # it waits no more
                continue
            future.set_result(granted > 0)
            if granted > 0:
                granted -= 1
                self.budget.requests_used += 1
        self._spare += granted

    def _answer_claims(self, states: Sequence[int]) -> None:
        for state in states:
            future, *_ = self._claims.popleft()
            if not future.done():
                future.set_result(State(state))

    def _forget_unplaced(self, keys: Sequence[int]) -> None:
        """These links are as new as before: they are to be told again when they come again."""
        if keys:
            unplaced = set(keys)
            links = [link for said in self._said if said[0] in ("add", "outcome") for link in _links_in(said)]
            untold = {(url, key) for url, key, *_ in links if key in unplaced}
            for _, key in untold:
                self._told.discard(key)
            if untold and self.when_unplaced is not None:
                self.when_unplaced([url for url, _ in untold])

    async def _leave(self) -> None:
        unused, self._spare = self._spare, 0
        try:
            await self.engine.call("leave", self.name, self._session, unused)
        except Exception as error:
            logger.warning("%s did not hear that this worker leaves: %s", self.where, reason_of(error))

    async def _farewell(self) -> None:
        if self._conversation is not None:
            try:
                await asyncio.wait_for(self._conversation, _FAREWELL)
            except TimeoutError:
                logger.warning(
                    "%s could not be reached for %.0f s: this worker goes, and what it had is fetched "
                    "again by others", self.where, _FAREWELL,
                )  # fmt: skip
        self._answer_asked(0)
        self._answer_claims([State.NEW] * len(self._claims))
        await self.engine.close()


def _links_in(said: Said) -> list[tuple[Any, ...]]:
    match said:
        case ("add", _, _, links) | ("outcome", _, _, _, links, _):
            return list(links)
        case _:
            return []
