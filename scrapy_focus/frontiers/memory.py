"""All waiting links in this process: nothing to set up, nothing left behind."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from scrapy_focus.frontiers.indexed import Record
from scrapy_focus.frontiers.vectors import VectorFrontier

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Method
    from scrapy_focus.frontiers.indexed import Memo


class MemoryFrontier(VectorFrontier):
    """A :class:`~scrapy_focus.core.frontier.Frontier` that lives in memory.

    About 110 bytes a waiting link, beside its URL and payload, or 90 and its vector. It ends with its process;
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
        self._memos: list[NDArray[np.float32] | None] = []
        self._head_first = bytearray()
        self._born = array("i")  # number of the record among all that there were
        self._stored = 0

    def _store(self, link: Link, host: int, origin: int, arm: int, rank: float, memo: Memo, method: Method) -> int:
        self._stored += 1
        if self._unused:
            number = self._unused.pop()
            self._key[number], self._url[number], self._depth[number] = link.key, link.url, link.depth
            self._origin[number], self._payload[number] = origin, link.payload
            self._born[number] = self._stored
            self._replace(number, arm, rank, memo, method)
            return number
        self._key.append(link.key)
        self._url.append(link.url)
        self._depth.append(link.depth)
        self._origin.append(origin)
        self._payload.append(link.payload)
        self._memos.append(None if isinstance(memo, bytes) else memo)
        self._head_first.append(method == "HEAD")
        self._born.append(self._stored)
        return len(self._url) - 1

    def _replace(self, number: int, arm: int, rank: float, memo: Memo, method: Method) -> None:
        self._memos[number] = None if isinstance(memo, bytes) else memo
        self._head_first[number] = method == "HEAD"

    def _erase(self, number: int) -> None:
        self._url[number], self._payload[number], self._memos[number] = "", b"", None
        self._unused.append(number)

    def _age(self, number: int) -> int:
        return self._born[number]

    def _read(self, numbers: Sequence[int]) -> list[Record]:
        return [
            Record(
                self._key[number],
                self._url[number],
                self._depth[number],
                self._origin[number],
                self._payload[number],
                self._memos[number],
                "HEAD" if self._head_first[number] else "GET",
            )
            for number in numbers
        ]
