"""Requests that wait for the leader: for a further grant, or for the state of a redirect's target."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from scrapy_focus.core.types import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.core.budget import Budget


class PendingRequests:
    """Keeps the waiting requests, and the requests granted beyond one for each pick.

    Parameters
    ----------
    budget
        The budget of this worker.
    """

    def __init__(self, budget: Budget) -> None:
        self.spare = 0  # requests granted and not used
        self.granted = 0  # all requests granted, without returned ones
        self._budget = budget
        self._futures: deque[asyncio.Future[bool]] = deque()
        self._claims: deque[tuple[asyncio.Future[State], int, int]] = deque()  # redirects: picks and keys of targets

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._futures or self._claims)

    @property
    def asks_for_more(self) -> bool:
        """Whether any request waits for a grant."""
        return bool(self._futures)

    @property
    def claims(self) -> list[tuple[int, int]]:
        """The redirected picks, each with the key of the target."""
        return [(pick_id, key) for _, pick_id, key in self._claims]

    def more(self) -> asyncio.Future[bool]:
        """Return a future that is true once one more request is granted and used."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        return future

    def claim(self, pick_id: int, key: int) -> asyncio.Future[State]:
        """Return a future with the state of the target of a redirect."""
        future: asyncio.Future[State] = asyncio.get_running_loop().create_future()
        self._claims.append((future, pick_id, key))
        return future

    def use_spare(self) -> bool:
        """Use a request that is already granted; ``False``: there is none."""
        if not self.spare:
            return False
        self.spare -= 1
        return True

    def serve(self) -> int:
        """Serve waiting requests from returned grants; return how many further grants are needed."""
        waiting = [future for future in self._futures if not future.done()]
        self._futures = deque(waiting)
        while self._futures and self.use_spare():
            self._budget.requests_used += 1
            self._futures.popleft().set_result(True)
        return len(self._futures)

    def give_back(self) -> int:
        """Return the number of unused requests, which go back to the leader."""
        unused, self.spare = self.spare, 0
        return unused

    def take(self, granted: int, n: int) -> None:
        """Distribute granted requests to the first ``n`` waiting ones, in order."""
        for _ in range(n):
            future = self._futures.popleft()
            if future.done():  # it waits no more
                continue
            future.set_result(granted > 0)
            if granted > 0:
                granted -= 1
                self._budget.requests_used += 1
        self.spare += granted

    def take_claims(self, states: Sequence[int]) -> None:
        """Pass on the leader's answers to the first claims."""
        for state in states:
            future, *_ = self._claims.popleft()
            if not future.done():
                future.set_result(State(state))

    def give_up(self) -> None:
        """Stop waiting: no request is granted, and no other worker fetches the targets."""
        self.take(0, len(self._futures))
        self.take_claims([State.NEW] * len(self._claims))
