"""What a waiting link has beside its place in an order: kept by number, in memory or elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from scrapy_focus.core.types import Link, Method, State


class Record(NamedTuple):
    """What is kept of a link that waits or is in flight."""

    key: int
    url: str
    depth: int
    origin: int
    payload: bytes
    memo: bytes | None
    method: Method


class Records(ABC):
    """Records by number; memos are bytes, whatever they mean."""

    #: Whether the number of a record is its age, too.
    by_age: ClassVar[bool]
    #: The age of the record that came last: larger than that of each one before it.
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
        """Forget a record; its number may be used again."""

    def erase_many(self, numbers: Sequence[int]) -> None:
        """Forget many records."""
        for number in numbers:
            self.erase(number)

    @abstractmethod
    def read(self, numbers: Sequence[int]) -> list[Record]:
        """Return some records, in order."""

    def note(self, key: int, state: State) -> None:  # noqa: B027 (not everybody writes it down)
        """A key is fetched, probed or given up from now on."""

    def note_many(self, keys: NDArray[np.int64], state: State) -> None:  # noqa: B027 (likewise)
        """These keys, shape (n,), are fetched, probed or given up from now on."""

    def close(self) -> None:  # noqa: B027 (those in memory hold nothing open)
        """Release what is held open. Idempotent."""
