"""A cluster in one process: its workers and their leader share an event loop."""

from __future__ import annotations

import asyncio
import pickle
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy_focus.making import make_leader

if TYPE_CHECKING:
    from scrapy_focus.cluster.leader import Leader


class NearEngine:
    """Reaches the leader of its address, and makes it where there is none; what is said is pickled, as if sent.

    The attributes are those of all engines: a test empties ``leaders`` to kill one.
    """

    leaders: ClassVar[dict[str, Leader]] = {}
    made: ClassVar[list[Leader]] = []
    latency: ClassVar[float] = 0.01  # seconds; much is said meanwhile

    def __init__(self, address: str, name: str, plan: Any) -> None:
        self.address = address
        self.plan = plan

    async def call(self, method: str, *args: Any) -> Any:
        """Call the leader."""
        await asyncio.sleep(self.latency)
        leader = self.leaders.get(self.address)
        if leader is None or (leader.is_closed and method == "join"):
            leader = self.leaders[self.address] = make_leader(self.plan)
            self.made.append(leader)
        answer = getattr(leader, method)(*pickle.loads(pickle.dumps(args)))
        return pickle.loads(pickle.dumps(answer))

    def pages(self) -> int:
        """Return how many pages the present leader knows."""
        leader = self.leaders.get(self.address)
        return 0 if leader is None else leader.crawl.counts["outcomes"]

    @classmethod
    def forget(cls) -> None:
        """Remove the leader; one that is not closed loses its files, like after a kill."""
        for leader in cls.made:
            if not leader.is_closed:
                leader.crawl.close()
        cls.leaders.clear()
        cls.made.clear()

    async def reset(self) -> None:
        """Look for the leader again after it closed."""
        leader = self.leaders.get(self.address)
        if leader is not None and leader.is_closed:
            del self.leaders[self.address]

    async def close(self) -> None:
        """Do nothing."""
