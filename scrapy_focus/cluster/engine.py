"""The interface between a worker and its leader: all that an engine has to provide."""

from __future__ import annotations

from typing import Any, Protocol


class Engine(Protocol):
    """Carries calls to the single leader of a crawl, and creates it if there is none.

    Calls of one worker do not overlap. A failed call may have been executed: the leader and its workers tolerate that.
    """

    async def call(self, method: str, *args: Any) -> Any:
        """Call a method of the leader, and return its result.

        Raises
        ------
        Exception
            Whatever the leader or the engine raises; the worker tries again.
        """

    async def reset(self) -> None:
        """Disconnect after repeated failures, so that the next call finds the leader anew."""

    async def close(self) -> None:
        """Close: no more calls follow."""
