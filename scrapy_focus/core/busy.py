"""Busy hosts, for crawls where many stay busy from one choice to the next."""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")

NOTHING: frozenset[str] = frozenset()


class Busy(Set[str]):
    """Hosts that are closed for a while, and a few more that are busy now; usable as a set of both.

    A reader that gets the same ``closed`` object again knows it already. So this costs no more than an empty set, in
    the journal too; another set costs its differences and one pass over its names.

    Parameters
    ----------
    closed
        Many hosts. Pass the same object while they are unchanged.
    more
        A few; some of them may also be closed.

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
    """Split some hosts into those closed for a while and the other busy ones."""
    return (busy.closed, busy.more) if isinstance(busy, Busy) else (NOTHING, busy)
