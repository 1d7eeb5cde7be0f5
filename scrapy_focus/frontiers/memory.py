"""All waiting links in this process: nothing to set up, nothing left behind."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from scrapy_focus.frontiers.indexed import IndexedFrontier, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Placement


class MemoryFrontier(IndexedFrontier):
    """A :class:`~scrapy_focus.frontiers.base.Frontier` that lives in memory.

    About 110 bytes a waiting link, beside its URL and payload. It ends with its process;
    :class:`~scrapy_focus.frontiers.sqlite.SqliteFrontier` does not.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unused: list[int] = []
        self._key = array("q")
        self._url: list[str] = []
        self._depth = array("i")
        self._origin = array("i")
        self._payload: list[bytes] = []
        self._memo: list[NDArray[np.float32] | None] = []
        self._head_first = bytearray()

    def _store(self, link: Link, host: int, placement: Placement, origin: int) -> int:
        if self._unused:
            number = self._unused.pop()
            self._key[number], self._url[number], self._depth[number] = link.key, link.url, link.depth
            self._origin[number], self._payload[number] = origin, link.payload
            self._replace(number, placement)
            return number
        self._key.append(link.key)
        self._url.append(link.url)
        self._depth.append(link.depth)
        self._origin.append(origin)
        self._payload.append(link.payload)
        self._memo.append(placement.memo)
        self._head_first.append(placement.method == "HEAD")
        return len(self._url) - 1

    def _replace(self, number: int, placement: Placement) -> None:
        self._memo[number] = placement.memo
        self._head_first[number] = placement.method == "HEAD"

    def _erase(self, number: int) -> None:
        self._url[number], self._payload[number], self._memo[number] = "", b"", None
        self._unused.append(number)

    def _read(self, numbers: Sequence[int]) -> list[Record]:
        return [
            Record(
                self._key[number],
                self._url[number],
                self._depth[number],
                self._origin[number],
                self._payload[number],
                self._memo[number],
                "HEAD" if self._head_first[number] else "GET",
            )
            for number in numbers
        ]
