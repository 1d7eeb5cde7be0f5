"""All queued links in this process: nothing to set up, nothing left behind."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, ClassVar, overload

from scrapy_focus.core.frontier import Ranks, Vectors
from scrapy_focus.core.types import METHODS
from scrapy_focus.frontiers.drawn.frontier import DrawnFrontier
from scrapy_focus.frontiers.ranked.frontier import RankedFrontier
from scrapy_focus.frontiers.records import Record, Records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.core.frontier import Keeps
    from scrapy_focus.core.types import Link, Method

_RANKS = Ranks()


@overload
def memory_frontier(keeps: Ranks = _RANKS) -> RankedFrontier: ...
@overload
def memory_frontier(keeps: Vectors) -> DrawnFrontier: ...
@overload
def memory_frontier(keeps: Keeps) -> RankedFrontier | DrawnFrontier: ...
def memory_frontier(keeps: Keeps = _RANKS) -> RankedFrontier | DrawnFrontier:
    """Return an empty frontier that lives in memory and ends with its process.

    About 100 bytes a queued link, besides its URL and payload, or 80 and its vector.
    :func:`~scrapy_focus.frontiers.sqlite.frontier.sqlite_frontier` makes a frontier that takes less and is permanent.

    Parameters
    ----------
    keeps
        Links ordered by rank, or with vectors of a width.

    Raises
    ------
    FrontierError
        If the width of vectors is invalid.
    """
    if isinstance(keeps, Vectors):
        return DrawnFrontier(MemoryRecords(memos=False), keeps.width)
    return RankedFrontier(MemoryRecords(memos=True))


class MemoryRecords(Records):
    """Records in lists; the numbers of erased ones are reused."""

    by_age: ClassVar[bool] = False

    def __init__(self, *, memos: bool) -> None:
        """``memos``: whether memos are kept; an order may keep them, too."""
        self._unused: list[int] = []
        self._key = array("q")
        self._url: list[str] = []
        self._depth = array("i")
        self._origin = array("i")
        self._payload: list[bytes] = []
        self._memos: list[bytes | None] | None = [] if memos else None
        self._methods = bytearray()  # as in METHODS

    def store(
        self,
        link: Link,
        host: int,
        origin: int,
        arm: int,
        rank: float,
        memo: bytes | None,
        method: Method,
        after: float,
    ) -> int:
        self.youngest += 1
        if self._unused:
            number = self._unused.pop()
            self._key[number], self._url[number], self._depth[number] = link.key, link.url, link.depth
            self._origin[number], self._payload[number] = origin, link.payload
            self.replace(number, arm, rank, memo, method, after)
            return number
        self._key.append(link.key)
        self._url.append(link.url)
        self._depth.append(link.depth)
        self._origin.append(origin)
        self._payload.append(link.payload)
        if self._memos is not None:
            self._memos.append(memo)
        self._methods.append(METHODS.index(method))
        return len(self._url) - 1

    def replace(self, number: int, arm: int, rank: float, memo: bytes | None, method: Method, after: float) -> None:
        if self._memos is not None:
            self._memos[number] = memo
        self._methods[number] = METHODS.index(method)

    def erase(self, number: int) -> None:
        self._url[number], self._payload[number] = "", b""
        if self._memos is not None:
            self._memos[number] = None
        self._unused.append(number)

    def erase_many(self, numbers: Sequence[int]) -> None:
        self._unused.extend(numbers)  # their contents are freed when they are reused, which takes no time now

    def read(self, numbers: Sequence[int]) -> list[Record]:
        return [
            Record(
                self._key[number],
                self._url[number],
                self._depth[number],
                self._origin[number],
                self._payload[number],
                None if self._memos is None else self._memos[number],
                METHODS[self._methods[number]],
            )
            for number in numbers
        ]
