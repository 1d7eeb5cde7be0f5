"""How a worker talks with its leader."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy_focus.cluster.conversation import Conversation
from scrapy_focus.cluster.messages import Answer, Exchange, Hello, Welcome
from scrapy_focus.cluster.pending_requests import PendingRequests
from scrapy_focus.core.budget import Budget
from tests.made import HANG

if TYPE_CHECKING:
    from collections.abc import Set

HOUR = 3600.0


class Quiet:
    """Wants nothing, and receives what its requests are granted."""

    name = "quiet"
    is_hungry = False

    def __init__(self) -> None:
        self.pending = PendingRequests(Budget())

    def want(self) -> int:
        return 0

    def hello(self, unheard: Set[int]) -> Hello:
        return Hello(self.name, {}, sorted(unheard), [], 0)

    def message(self, session: str, said: list[Any]) -> Exchange:
        return Exchange(self.name, session, said, extra=self.pending.serve())

    def unsay(self, message: Exchange) -> None:
        pass

    def heard(self, message: Exchange, answer: Answer) -> None:
        self.pending.take(answer.granted, message.extra)

    def lose(self, lost: set[int]) -> None:
        raise AssertionError(lost)

    def refuse(self, why: str) -> None:
        raise AssertionError(why)

    def fail(self, why: str) -> None:
        raise AssertionError(why)


class Leading:
    """A leader that grants each request."""

    def __init__(self) -> None:
        self.heard: list[Exchange] = []
        self.is_heard = asyncio.Event()

    async def call(self, method: str, *args: Any) -> Any:
        await asyncio.sleep(0)
        if method == "join":
            return Welcome(session="one")
        if method == "exchange":
            self.heard.append(args[0])
            self.is_heard.set()
            return Answer(granted=args[0].extra)
        return None

    async def reset(self) -> None:
        raise AssertionError

    async def close(self) -> None:
        pass


async def begun() -> tuple[Quiet, Leading, Conversation]:
    """Return a worker that has sent its first message, and rests."""
    talker, leader = Quiet(), Leading()
    conversation = Conversation(talker, leader, lease=HOUR, where="here", counts=Counter())
    conversation.say(("hear", None))
    while len(leader.heard) < 2:  # the first reports, and any that were sent with them
        leader.is_heard.clear()
        await asyncio.wait_for(leader.is_heard.wait(), HANG)
    return talker, leader, conversation


def test_who_has_nothing_to_say_is_silent() -> None:
    """For a third of its lease, however often the loop turns."""

    async def rest() -> None:
        _, leader, conversation = await begun()
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(leader.heard) == 2
        conversation.is_closing = True
        conversation.stir()
        await asyncio.wait_for(conversation.end(), HANG)
        assert len(leader.heard) == 3

    asyncio.run(rest())


def test_a_request_that_is_to_be_granted_does_not_wait() -> None:
    """The next message would be due in twenty minutes."""

    async def ask() -> None:
        talker, leader, conversation = await begun()
        granted = talker.pending.more()
        conversation.stir()
        assert await asyncio.wait_for(granted, HANG)
        assert leader.heard[-1].extra == 1
        assert talker.pending.spare == 0
        conversation.is_closing = True
        conversation.stir()
        await asyncio.wait_for(conversation.end(), HANG)

    asyncio.run(ask())
