"""Hosts that can take nothing now, where these are many and most of them stay the same from one choice to the next."""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")

NOTHING: frozenset[str] = frozenset()


class Busy(Set[str]):
    """Hosts that are closed for a while, and a few more that are busy now; a set of both like any other.

    Whoever is asked again with the same set ``closed`` knows it already. So it costs no more than an empty one, in the
    journal too; and another set costs what it differs in, and a look at its names.

    Parameters
    ----------
    closed
        Many hosts. Give the same object as long as these are the same.
    more
        A few; some of them may be closed, too.

    Examples
    --------
    >>> busy = Busy(frozenset(("a.test", "b.test")), ["c.test", "a.test"])
    >>> sorted(busy), "b.test" in busy
    (['a.test', 'b.test', 'c.test'], True)
    """

    __slots__ = ("closed", "more")

    def __init__(self, closed: frozenset[str], more: Collection[str] = ()) -> None:
        self.closed = closed
        self.more = more

    def __contains__(self, host: object) -> bool:
        return host in self.closed or host in self.more

    def __iter__(self) -> Iterator[str]:
        yield from self.closed
        yield from (host for host in dict.fromkeys(self.more) if host not in self.closed)

    def __len__(self) -> int:
        return len(self.closed) + sum(1 for host in dict.fromkeys(self.more) if host not in self.closed)

    def __bool__(self) -> bool:
        return bool(self.closed or self.more)

    @classmethod
    def _from_iterable(cls, hosts: Iterable[T]) -> set[T]:
        return set(hosts)  # what is united, cut or taken off

    def __repr__(self) -> str:
        return f"Busy({set(self.closed) or '{}'}, {list(self.more)})"


def parts_of(busy: Collection[str]) -> tuple[frozenset[str], Collection[str]]:
    """Return which of some hosts are closed for a while, and which are busy besides."""
    return (busy.closed, busy.more) if isinstance(busy, Busy) else (NOTHING, busy)
