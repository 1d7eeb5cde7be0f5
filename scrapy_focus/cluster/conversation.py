"""A worker's conversation with its leader: reports are sent together, and again until they are answered."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from scrapy_focus.cluster.messages import LeaderClosed
from scrapy_focus.core.errors import ConfigError, FocusError, FolderInUseError, ResumeError
from scrapy_focus.core.printable import REASON, printable_logger, reason_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Set

    from scrapy_focus.cluster.engine import Engine
    from scrapy_focus.cluster.messages import Answer, Exchange, Hello, Said, Welcome
    from scrapy_focus.cluster.pending_requests import PendingRequests

logger = printable_logger(__name__)

_TOGETHER = 0.1  # seconds: reports within this time are sent together
_SOON = 0.02  # likewise, if a request waits, or few leases are left
_HUNGRY = 0.3  # seconds between two messages of an idle worker
_PATIENT = 5  # seconds at most between two attempts to reach the leader
_RESET = 4  # failures after which the connection is reset
_SHOWN = 20  # failures without success after which one is logged again
_FAREWELL = 60.0  # seconds for which a closing worker tries to reach the leader


class Talker(Protocol):
    """The owner of a conversation; :class:`~scrapy_focus.cluster.worker.Worker` is one."""

    name: str
    pending: PendingRequests  # requests that wait for the leader

    def want(self) -> int:
        """Return how many leases are wanted."""

    @property
    def is_hungry(self) -> bool:
        """Whether few leases are left."""

    def hello(self, unheard: Set[int]) -> Hello:
        """Return the joining message; ``unheard``: ids of picks reported or released without an answer."""

    def message(self, session: str, said: list[Said]) -> Exchange:
        """Return the next message to the leader."""

    def unsay(self, message: Exchange) -> None:
        """Handle a message that may not have reached the leader."""

    def heard(self, message: Exchange, answer: Answer) -> None:
        """Handle the leader's answer to a message."""

    def lose(self, lost: set[int]) -> None:
        """Handle leases that ended while it held them."""

    def refuse(self, why: str) -> None:
        """Handle the leader's refusal."""

    def fail(self, why: str) -> None:
        """Handle a leader that cannot write its files any more."""


class Conversation:
    """Talks with a leader as long as a worker has something to report or wants something.

    Parameters
    ----------
    talker
        The owner of the conversation.
    engine
        The connection to the leader.
    lease
        Seconds without a message after which the leader gives up a worker.
    where
        The crawl that the worker is part of, in words.
    counts
        Where failed calls are counted.
    """

    def __init__(self, talker: Talker, engine: Engine, *, lease: float, where: str, counts: Counter[str]) -> None:
        self.task: asyncio.Task[None] | None = None
        self.is_closing = False
        self.in_vain = False  # whether the last request for leases brought none
        self._talker = talker
        self._engine = engine
        self._lease = lease
        self._where = where
        self._counts = counts
        self._session = ""
        self._is_over = False  # refused, or failed for good
        self._outbox: list[Said] = []
        self._said: list[Said] = []  # without an answer yet
        self._kick = asyncio.Event()
        self._failures = 0
        self._failed_with: set[type[Exception]] = set()  # kinds of failures since the last answer
        self._missed_since = 0.0  # seconds of time.monotonic

    @property
    def n_unheard(self) -> int:
        """How many reports the leader did not answer yet."""
        return len(self._outbox) + len(self._said)

    def say(self, said: Said) -> None:
        """Add a report to the next message."""
        self._outbox.append(said)
        self.stir()

    def stir(self) -> None:
        """Wake up: there is something to report or to ask for."""
        if self.task is None:
            self.task = asyncio.ensure_future(self._converse())
        self._kick.set()

    async def end(self) -> None:
        """Wait until everything is reported, for a while."""
        if self.task is None:
            return
        try:
            await asyncio.wait_for(self.task, _FAREWELL)
        except TimeoutError:
            logger.warning(
                "%s could not be reached for %.0f s: this worker leaves, and others fetch its pages "
                "again", self._where, _FAREWELL,
            )  # fmt: skip

    async def _converse(self) -> None:
        while not self._is_over:
            try:
                if not self._session:
                    await self._join()
                    continue
                got = await self._exchange()
            except Exception as error:
                await self._give_way(error)
                continue
            self._answered()
            if not self._session or self._is_over:
                continue
            if self.is_closing and not (self._outbox or self._said or self._talker.pending):
                await self._leave()
                return
            await self._rest(got)

    async def _join(self) -> None:
        self._said, self._outbox = [*self._said, *self._outbox], []  # later reports come after these
        unheard = self._said
        hello = self._talker.hello({said[1] for said in unheard if said[0] in ("outcome", "release")})
        welcome: Welcome = await self._engine.call("join", hello)
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
        if lost := set(hello.holding) - kept:
            self._talker.lose(lost)
        self._said = []
        self._session = welcome.session

    async def _exchange(self) -> bool:
        """Send a message, and return whether leases arrived."""
        said = self._said = [*self._said, *self._outbox]
        self._outbox = []
        message = self._talker.message(self._session, said)
        try:
            answer: Answer = await self._engine.call("exchange", message)
        except BaseException:
            self._talker.unsay(message)
            raise
        if answer.rejoin:
            self._session = ""
            return True
        if answer.failed:
            self._fail_for_good(answer.failed)
            return False
        self._said = []
        self._talker.heard(message, answer)
        return bool(answer.leases)

    def _answered(self) -> None:
        """Note that the leader can be reached."""
        if self._failed_with:
            logger.info("%s answers again, after %.0f s", self._where, time.monotonic() - self._missed_since)
        self._failures = 0
        self._failed_with.clear()

    async def _rest(self, got: bool) -> None:
        """Wait until there is something to report, or the next message is due."""
        talker = self._talker
        if not talker.pending:
            wants = talker.want() > 0
            wait = _HUNGRY if wants else self._lease / 3
            self.in_vain = wants and not got  # it asked, and got nothing
            if self.in_vain and not self._outbox:
                self._kick.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._kick.wait(), wait)
            is_urgent = talker.pending.asks_for_more or self.is_closing or talker.is_hungry
            await asyncio.sleep(_SOON if is_urgent else _TOGETHER)
        self._kick.clear()

    async def _give_way(self, error: Exception) -> None:
        """Handle a failed call: end if the leader cannot admit this worker, and try again later otherwise."""
        if isinstance(error, ConfigError | ResumeError) and not isinstance(error, FolderInUseError):
            self._refuse(str(error))
        else:
            await self._fail(error)

    async def _fail(self, error: Exception) -> None:
        """Handle an unreachable leader: it may be gone, or the connection."""
        self._session = ""
        self._failures += 1
        self._counts["worker/failed_calls"] += 1
        if isinstance(error, LeaderClosed):
            logger.info("%s was closed; looking for another leader", self._where)
        elif type(error) not in self._failed_with or self._failures % _SHOWN == 0:
            said = f"{type(error).__name__}: {reason_of(error, REASON)}"
            logger.warning("no answer from %s (%s); trying again", self._where, said)
        if not self._failed_with:
            self._missed_since = time.monotonic()
        self._failed_with.add(type(error))
        if self._failures % _RESET == 0 and not isinstance(error, FocusError):  # else it was reached
            try:
                await self._engine.reset()
            except Exception as failure:
                logger.warning("the connection to %s could not be reset: %s", self._where, reason_of(failure))
        await asyncio.sleep(min(0.25 * self._failures, _PATIENT))

    def _refuse(self, why: str) -> None:
        self._is_over = True
        logger.error("this worker cannot join the crawl: %s", why)
        self._talker.refuse(why)

    def _fail_for_good(self, why: str) -> None:
        self._is_over = True
        self._talker.fail(why)

    async def _leave(self) -> None:
        unused = self._talker.pending.give_back()
        try:
            await self._engine.call("leave", self._talker.name, self._session, unused)
        except Exception as error:
            logger.warning("could not tell %s that this worker leaves: %s", self._where, reason_of(error))
