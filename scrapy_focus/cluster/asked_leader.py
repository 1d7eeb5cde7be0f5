"""What requests wait for: that the leader grants one more, or says what it knows of a redirect."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from scrapy_focus.core.types import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.core.budget import Budget


class AskedLeader:
    """Keeps who waits for the leader, and the requests that it granted beyond one for each pick.

    Parameters
    ----------
    budget
        Where the requests of this worker are counted.
    """

    def __init__(self, budget: Budget) -> None:
        self.spare = 0  # requests that were granted, and not used
        self.granted = 0  # the same, in all, without those that were given back
        self._budget = budget
        self._asked: deque[asyncio.Future[bool]] = deque()
        self._claims: deque[tuple[asyncio.Future[State], int, int]] = deque()  # redirects: picks and keys

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._asked or self._claims)

    @property
    def asks_for_more(self) -> bool:
        """Whether anybody waits for a request."""
        return bool(self._asked)

    @property
    def claims(self) -> list[tuple[int, int]]:
        """The picks that were redirected, each with the key to which."""
        return [(pick_id, key) for _, pick_id, key in self._claims]

    def more(self) -> asyncio.Future[bool]:
        """Return what is true once one request more is granted and used."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._asked.append(future)
        return future

    def claim(self, pick_id: int, key: int) -> asyncio.Future[State]:
        """Return what is once the state of a page to which a pick was redirected."""
        future: asyncio.Future[State] = asyncio.get_running_loop().create_future()
        self._claims.append((future, pick_id, key))
        return future

    def use_spare(self) -> bool:
        """Use a request that is granted already; ``False``: there is none."""
        if not self.spare:
            return False
        self.spare -= 1
        return True

    def serve(self) -> int:
        """Let those go on for whom requests are left that others gave back; return for how many one is asked."""
        asked = [future for future in self._asked if not future.done()]
        self._asked = deque(asked)
        while self._asked and self.use_spare():
            self._budget.requests_used += 1
            self._asked.popleft().set_result(True)
        return len(self._asked)

    def give_back(self) -> int:
        """Return how many requests are given back to the leader: all that are not used."""
        unused, self.spare = self.spare, 0
        return unused

    def take(self, granted: int, n: int) -> None:
        """So many requests were granted, for which the first ``n`` waited: the first of them get one each."""
        for _ in range(n):
            future = self._asked.popleft()
            if future.done():  # it waits no more
                continue
            future.set_result(granted > 0)
            if granted > 0:
                granted -= 1
                self._budget.requests_used += 1
        self.spare += granted

    def take_claims(self, states: Sequence[int]) -> None:
        """The leader answered the first claims."""
        for state in states:
            future, *_ = self._claims.popleft()
            if not future.done():
                future.set_result(State(state))

    def give_up(self) -> None:
        """Nobody answers any more: nothing is granted, and nobody else asks for a page."""
        self.take(0, len(self._asked))
        self.take_claims([State.NEW] * len(self._claims))
