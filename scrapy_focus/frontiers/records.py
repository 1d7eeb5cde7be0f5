"""The data of a queued link besides its place in an order: by number, in memory or elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Method, State


class Record(NamedTuple):
    """The data of a link that is queued or in flight."""

    key: int
    url: str
    depth: int
    origin: int
    payload: bytes
    memo: bytes | None
    method: Method


class Records(ABC):
    """Records by number; memos are opaque bytes."""

    #: Whether the number of a record is also its age.
    by_age: ClassVar[bool]
    #: The age of the newest record: larger than all before it.
    youngest: int = 0

    @abstractmethod
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
        """Keep a record, and return its number."""

    def store_many(
        self,
        links: Sequence[Link],
        hosts: Sequence[int],
        origin: int,
        arms: Sequence[int],
        memos: Sequence[bytes],
        methods: Sequence[Method],
    ) -> list[int]:
        """Keep a record of each link of one page, of rank 0 and for now, and return their numbers; their ages rise by
        one.
        """
        every = zip(links, hosts, arms, memos, methods, strict=True)
        return [self.store(link, host, origin, arm, 0.0, memo, method, 0.0) for link, host, arm, memo, method in every]

    @abstractmethod
    def replace(self, number: int, arm: int, rank: float, memo: bytes | None, method: Method, after: float) -> None:
        """Give a record another placement."""

    @abstractmethod
    def erase(self, number: int) -> None:
        """Forget a record; its number may be reused."""

    def erase_many(self, numbers: Sequence[int]) -> None:
        """Forget many records."""
        for number in numbers:
            self.erase(number)

    @abstractmethod
    def read(self, numbers: Sequence[int]) -> list[Record]:
        """Return some records, in order."""

    def note(self, key: int, state: State) -> None:  # noqa: B027 (not everybody writes it down)
        """Set the final state of a key: fetched, probed or given up."""

    def note_many(self, keys: NDArray[np.int64], state: State) -> None:  # noqa: B027 (likewise)
        """Set the final state of these keys, shape (n,): fetched, probed or given up."""

    def close(self) -> None:  # noqa: B027 (those in memory hold nothing open)
        """Close files and other resources. Idempotent."""
