"""A worker returns after its leases ended: what it still reports about them does not count, and hides nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_focus import FilesGoal, Outcome, PolicyError, State
from scrapy_focus.cluster.worker import Worker
from scrapy_focus.policies.orderings import BreadthFirst
from tests.cluster.fakes import LEASE, Realm
from tests.jobs.walks import link_to
from tests.made import HANG, PDF

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from scrapy_focus import Pick
    from scrapy_focus.cluster.leader import Leader

START, FOUND, THERE = link_to(0), link_to(1), link_to(2)


class Line:
    """An engine that reaches a leader, or another one after that closed without workers, unless it is cut."""

    def __init__(self, realm: Realm) -> None:
        self.realm = realm
        self.leader = realm.lead()
        self.calls = 0  # answered
        self.is_cut = False

    async def call(self, method: str, *args: Any) -> Any:
        await asyncio.sleep(0)
        if self.is_cut:
            raise ConnectionError("the line is cut")
        if self.leader.is_closed:
            self.leader = self.realm.lead()
        answer = getattr(self.leader, method)(*args)
        self.calls += 1
        return answer

    async def reset(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


class Scene:
    """A leader, and a worker that holds the lease of the first page."""

    def __init__(self, folder: Path, goal: Any) -> None:
        self.realm = Realm(folder)
        self.line = Line(self.realm)
        self.forgotten: list[list[str] | None] = []
        self.worker = Worker(
            self.line, name="one", policy=BreadthFirst(), goal=goal, slots=2, ahead=0, lease=0.1, when_unplaced=self.forgotten.append
        )  # fmt: skip

    @property
    def leader(self) -> Leader:
        """Who leads now."""
        return self.line.leader

    async def begin(self) -> Pick:
        """Tell of the first page, and get its lease."""
        self.worker.add([START])
        return await self.leased()

    async def leased(self) -> Pick:
        """Wait for a lease that can be fetched."""
        while (pick := self.worker.next()) is None:
            await asyncio.sleep(0.01)
        return pick

    async def told(self) -> None:
        """Wait until everything is reported and answered."""
        calls = self.line.calls
        while self.line.calls < calls + 2:
            self.worker.next()
            await asyncio.sleep(0.01)

    def cut(self) -> None:
        """Drop all messages of the worker from now on."""
        self.line.is_cut = True

    async def come_back(self) -> None:
        """Deliver its messages again, after its leases ended."""
        self.realm.clock.now += LEASE + 1
        self.leader.reap()
        self.line.is_cut = False
        while not self.worker.counts["worker/lost_leases"]:
            await asyncio.sleep(0.01)


def outcome_of(pick: Pick, **said: Any) -> Outcome:
    return Outcome(pick=pick, status=200, mime="text/html", **said)


def play(folder: Path, act: Callable[[Scene], Awaitable[None]], goal: Any = None) -> None:
    """Play a scene."""

    async def whole() -> None:
        scene = Scene(folder, goal or FilesGoal(types=[PDF]))
        await asyncio.wait_for(act(scene), HANG)
        scene.cut()
        if scene.worker._conversation.task is not None:
            scene.worker._conversation.task.cancel()
        scene.leader.close()

    asyncio.run(whole())


def links_at(scene: Scene) -> list[State]:
    return scene.leader.crawl.knows([FOUND.key])


def test_a_page_is_not_fetched_beside_itself(tmp_path: Path) -> None:
    """It waits for the request whose lease ended; the links of that request are new afterwards."""

    async def act(scene: Scene) -> None:
        worker = scene.worker
        first = await scene.begin()
        worker.sent(first.id)
        scene.cut()
        await scene.come_back()
        await scene.told()
        assert worker.next() is None
        assert first.key in [pick.key for pick in scene.leader.crawl.picks.values()], "it is leased again"
        worker.add([FOUND], outcome_of(first))
        worker.report(outcome_of(first), [FOUND])
        assert worker.knows([FOUND.key]) == [State.NEW]
        second = await scene.leased()
        assert (second.key, second.id > first.id) == (first.key, True)
        worker.report(outcome_of(second), [FOUND])
        await scene.told()
        assert links_at(scene) != [State.NEW]
        assert scene.leader.counts["refused"] == 0
        assert scene.leader.crawl.counts["outcomes"] == 1
        assert not worker.leases.lost

    play(tmp_path, act)


def test_unanswered_reports_are_sent_again(tmp_path: Path) -> None:
    """Links and redirect targets are sent again, also if known links are dropped early."""

    async def act(scene: Scene) -> None:
        worker = scene.worker
        first = await scene.begin()
        scene.cut()
        worker.report(outcome_of(first, also=(THERE.key,)), [FOUND])
        assert worker.knows([FOUND.key, THERE.key]) == [State.WAITING] * 2
        await scene.come_back()
        assert worker.knows([FOUND.key, THERE.key]) == [State.NEW] * 2
        assert scene.forgotten == [None]
        assert not worker.leases.lost, "it is not in flight"
        assert scene.leader.crawl.counts["outcomes"] == 0
        worker.report(outcome_of(await scene.leased()), [FOUND])
        await scene.told()
        assert links_at(scene) != [State.NEW]

    play(tmp_path, act)


def test_a_redirect_of_it_is_nobodys(tmp_path: Path) -> None:
    """It is not followed, and the target stays new, for the next lease of the page."""

    async def act(scene: Scene) -> None:
        worker = scene.worker
        first = await scene.begin()
        scene.cut()
        await scene.come_back()
        assert await worker.claim(first.id, THERE.key) == State.FLYING
        assert worker.knows([THERE.key]) == [State.NEW]
        worker.report(outcome_of(first))
        second = await scene.leased()
        assert await worker.claim(second.id, THERE.key) == State.NEW

    play(tmp_path, act)


def test_it_can_be_given_back(tmp_path: Path) -> None:
    """Nothing is reported about it, as another lease is in flight."""

    async def act(scene: Scene) -> None:
        worker = scene.worker
        first = await scene.begin()
        scene.cut()
        await scene.come_back()
        worker.release(first.id)
        second = await scene.leased()
        assert second.key == first.key
        await scene.told()
        assert scene.leader.counts["refused"] == 0
        with pytest.raises(PolicyError, match="not in flight"):
            worker.release(first.id)

    play(tmp_path, act)


def test_its_request_is_one_that_was_counted(tmp_path: Path) -> None:
    """A lease that ended unheard was counted as sent: its request goes out at no cost, once."""

    async def act(scene: Scene) -> None:
        worker = scene.worker
        first = await scene.begin()
        scene.cut()
        await scene.come_back()
        assert worker.sent(first.id)
        assert not worker.sent(first.id)

    play(tmp_path, act)


def test_nobody_waits_for_its_reward(tmp_path: Path) -> None:
    """A later reward from its goal is ignored, and its page can be fetched at once."""

    async def act(scene: Scene) -> None:
        worker = scene.worker
        first = await scene.begin()
        worker.report(outcome_of(first), [FOUND])
        assert worker.status().owed == {first.id}
        scene.cut()
        await scene.come_back()
        assert not worker.status().owed
        assert not worker.reward(first.id, 1.0)
        second = await scene.leased()
        assert second.key == first.key
        worker.report(outcome_of(second), [FOUND])
        assert worker.reward(second.id, 2.0)
        await scene.told()
        assert scene.leader.crawl.rewards == worker.rewards == 2.0

    def later(outcome: Outcome) -> None:
        """Report nothing yet."""

    play(tmp_path, act, later)
