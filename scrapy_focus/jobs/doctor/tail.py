"""What a stored crawl did since its last checkpoint, read from its journals without changing them or the crawl.

A resume goes through the journals from the number on that the checkpoint notes, and stops where one is cut, damaged or
missing. This goes the same way, beside it, and counts what a resume will find and what it will not.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scrapy_focus.core.errors import StorageError
from scrapy_focus.jobs.journal import HEAD, journals_in, read_journal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from scrapy_focus.jobs.journal import Event

_PICKLE = b"\x80\x05"  # how the body of a record begins


@dataclass(slots=True, kw_only=True)
class Tail:
    """The inputs of a crawl since a checkpoint, as far as they can be used."""

    first: int  # number of the journal that the checkpoint goes on with
    numbers: list[int]  # of all journals that are there
    events: Counter[str] = field(default_factory=Counter)  # how many of each kind
    found: int = 0  # links in them, known ones too
    flying: set[int]  # ids of the picks that have no outcome at the end
    counts: dict[str, int] = field(default_factory=dict)  # those of the crawl that changed, as they are at the end
    used: dict[str, float] = field(default_factory=dict)  # of the budget; empty: as at the checkpoint
    rewards: float = 0.0  # earned since
    last: int = 0  # number of the journal in which they end, 0: the first one is missing
    end: int = 0  # bytes of that one that can be used
    why: str = ""  # it cannot be used any further; "": it can
    lost_bytes: int = 0  # of all journals, behind that place
    lost: Counter[str] = field(default_factory=Counter)  # whole events behind that place, by kind

    @property
    def later(self) -> list[int]:
        """Return the numbers of the journals that a resume will not go through, because of what comes before."""
        return [number for number in self.numbers if number > max(self.last, self.first)]

    @property
    def older(self) -> list[int]:
        """Return the numbers of the journals that the checkpoint has made needless."""
        return [number for number in self.numbers if number < self.first]

    def add(self, event: Event) -> None:
        """Go through one event.

        Raises
        ------
        ValueError
            If it is none that this version knows, or does not fit those before it.
        """
        kind = str(event[0]) if event else ""
        check = _CHECKS.get(kind)
        try:
            if check is None or not check(self, *event[1:]):
                raise ValueError(f"an event {kind!r} is none that this version knows, or does not fit those before it")
        except TypeError as error:
            raise ValueError(
                f"an event {kind!r} has {len(event) - 1} parts, not those that this version knows"
            ) from error
        self.events[kind] += 1

    def _add(self, links: object, source: object) -> bool:
        if not (_are_links(links) and (source is None or self._is_known(source))):
            return False
        self.found += len(links)  # type: ignore[arg-type]
        return True

    def _pick(self, pick_id: object, key: object, busy: object) -> bool:
        if not (isinstance(pick_id, int) and isinstance(key, int) and isinstance(busy, list)) or pick_id in self.flying:
            return False
        self.flying.add(pick_id)
        return True

    def _used(self, requests: object) -> bool:
        if not isinstance(requests, int) or requests < 0:
            return False
        self.used["requests"] = requests
        return True

    def _release(self, pick_id: object) -> bool:
        if pick_id not in self.flying:
            return False
        self.flying.discard(pick_id)
        return True

    def _recovered(self, keys: object) -> bool:
        return isinstance(keys, list) and all(isinstance(key, int) for key in keys)

    def _outcome(self, record: Any, links: Any, also: Any, used: Any, counts: Any) -> bool:
        well = self._is_known(record) and _are_links(links) and isinstance(also, list)
        if not well or not isinstance(counts, dict) or not {"requests", "bytes", "seconds"} <= set(used):
            return False
        self.flying.discard(record[0])
        self.found += len(links)
        self.used.update(used)
        self.counts.update(counts)
        self.rewards += record[8] if record[1] != "HEAD" else 0.0
        return True

    def _is_known(self, record: Any) -> bool:
        return isinstance(record, tuple) and len(record) == 10 and record[0] in self.flying


_CHECKS: dict[str, Callable[..., bool]] = {
    "add": Tail._add, "outcome": Tail._outcome, "pick": Tail._pick, "recovered": Tail._recovered,
    "release": Tail._release, "used": Tail._used,
}  # fmt: skip


def read_tail(folder: Path, first: int, flying: Collection[int]) -> Tail:
    """Go through the journals in a folder, beginning with number ``first``; ``flying`` are the picks in flight then.

    Raises
    ------
    StorageError
        If one of them is there and cannot be read.
    """
    tail = Tail(first=first, numbers=journals_in(folder), flying=set(flying))
    if first not in tail.numbers:
        tail.why = f"journal.{first} is missing"
    number = first
    while not tail.why and number in tail.numbers:
        tail.last, tail.end = number, 0
        _read(folder / f"journal.{number}", tail)
        number += 1
    if not tail.why and tail.later:
        tail.why = f"journal.{number} is missing"
    if tail.last:
        _count_lost(folder / f"journal.{tail.last}", tail.end, tail)
    for later in tail.later:
        _count_lost(folder / f"journal.{later}", 0, tail)
    return tail


def _read(path: Path, tail: Tail) -> None:
    try:
        for event, end in read_journal(path):
            tail.add(event)
            tail.end = end
    except StorageError:
        raise
    except Exception as error:  # a record that is whole, and does not make sense
        tail.why = f"{path.name} cannot be used from byte {tail.end:,} on: {error}"
        return
    size = path.stat().st_size
    if size > tail.end:
        cut = "cut off" if _is_cut(path, tail.end) else "damaged"
        tail.why = f"{path.name} is {cut} at byte {tail.end:,} of {size:,}"


def _is_cut(path: Path, end: int) -> bool:
    with path.open("rb") as file:
        file.seek(end)
        rest = file.read()
    return len(rest) < HEAD.size or len(rest) - HEAD.size < HEAD.unpack(rest[: HEAD.size])[0]


def _count_lost(path: Path, start: int, tail: Tail) -> None:
    tail.lost_bytes += path.stat().st_size - start
    tail.lost.update(whole_events(path, start))


def whole_events(path: Path, start: int) -> Counter[str]:
    """Count the events of each kind in a journal from a byte on, also those with damage between them.

    Raises
    ------
    StorageError
        If the file cannot be read.
    """
    found: Counter[str] = Counter()
    try:
        with path.open("rb") as file:
            file.seek(start)
            rest = file.read()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    at = rest.find(_PICKLE)
    while at >= 0:
        size, checksum = HEAD.unpack(rest[at - HEAD.size : at]) if at >= HEAD.size else (0, 0)
        body = rest[at : at + size]
        if size and len(body) == size and zlib.crc32(body) == checksum:
            found[_kind(body)] += 1
            at += size
        else:
            at += 1
        at = rest.find(_PICKLE, at)
    return found


def _kind(body: bytes) -> str:
    """Return the kind of an event from its first bytes: what is lost is not made again."""
    return next((kind for kind in _CHECKS if kind.encode() in body[:32]), "other")


def _are_links(links: object) -> bool:
    return isinstance(links, list) and all(isinstance(link, tuple) and len(link) == 9 for link in links)
