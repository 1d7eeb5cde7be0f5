"""How a worker reaches its leader: all that an engine has to do."""

from __future__ import annotations

from typing import Any, Protocol


class Engine(Protocol):
    """Carries calls to the one leader of a crawl, and makes that where there is none.

    Calls of one worker come one after the other. One that failed may have been executed: the leader and its workers
    bear that.
    """

    async def call(self, method: str, *args: Any) -> Any:
        """Call a method of the leader, and return what it returns.

        Raises
        ------
        Exception
            Whatever the leader or the engine raises; the worker tries again.
        """

    async def reset(self) -> None:
        """Calls failed again and again: leave, so that the next call finds the leader anew."""

    async def close(self) -> None:
        """No more calls come."""
