"""What a stored crawl did since its last checkpoint, read from its journals without changing them.

A resume reads the journals from the number on that the checkpoint notes, and stops where one is cut, damaged or missing.
This reads them the same way, and counts what a resume will find and what it will not.
"""

from __future__ import annotations

import pickle
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapy_focus.core.errors import StorageError
from scrapy_focus.jobs.journal import HEAD, journals_in, read_journal

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from scrapy_focus.jobs.journal import Event

_PICKLE = b"\x80\x05"  # how the body of a record begins


@dataclass(slots=True, kw_only=True)
class Tail:
    """The inputs of a crawl since a checkpoint, as far as they can be used."""

    first: int  # number of the journal with which a resume begins
    older: list[int]  # numbers of the journals that the checkpoint has made needless
    later: list[int] = field(default_factory=list)  # and of those that no resume reads, because of what comes before
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


def _count(tail: Tail, event: Event) -> None:
    """Count one event; nothing else here knows what an event holds, but :func:`_kind`.

    Raises
    ------
    ValueError, LookupError, TypeError
        If this version does not know it, or it does not fit those before it.
    """
    match event:
        case ("add", links, _):
            tail.found += len(links)
        case ("pick", pick_id, _, _):
            tail.flying.add(pick_id)
        case ("used", requests):
            tail.used["requests"] = requests
        case ("release", pick_id):
            tail.flying.remove(pick_id)
        case ("recovered", _):
            pass
        case ("outcome", (pick_id, method, *_, reward, _), links, _, used, counts):
            tail.flying.remove(pick_id)
            tail.found += len(links)
            tail.used.update(used)
            tail.counts.update(counts)
            tail.rewards += reward if method != "HEAD" else 0.0
        case _:
            raise ValueError("this version knows no such event")
    tail.events[_kind(event)] += 1


def _kind(event: Event) -> str:
    return str(event[0]) if event else ""


def read_tail(folder: Path, first: int, flying: Collection[int]) -> Tail:
    """Read the journals in a folder, beginning with number ``first``; ``flying`` are the picks in flight then.

    Raises
    ------
    StorageError
        If one of them is there and cannot be read.
    """
    numbers = journals_in(folder)
    tail = Tail(first=first, older=[number for number in numbers if number < first], flying=set(flying))
    number = first
    while number in numbers and not tail.why:
        tail.last, tail.end = number, 0
        _read(folder / f"journal.{number}", tail)
        number += 1
    tail.later = [later for later in numbers if later >= number]
    if not tail.why and (tail.later or not tail.last):
        tail.why = f"journal.{number} is missing"
    if tail.last:
        _count_lost(folder / f"journal.{tail.last}", tail.end, tail)
    for later in tail.later:
        _count_lost(folder / f"journal.{later}", 0, tail)
    return tail


def _read(path: Path, tail: Tail) -> None:
    kind = ""
    try:
        for event, end in read_journal(path):
            kind = _kind(event)
            _count(tail, event)
            tail.end = end
    except StorageError:
        raise
    except Exception as error:  # a record that is whole, and does not make sense
        tail.why = (
            f"{path.name} cannot be used from byte {tail.end:,} on: its event {kind!r} makes no sense ({error!r})"
        )
        return
    size = path.stat().st_size
    if size > tail.end:
        with path.open("rb") as file:
            file.seek(tail.end)
            head = file.read(HEAD.size)
        is_cut = len(head) < HEAD.size or tail.end + HEAD.size + HEAD.unpack(head)[0] > size
        tail.why = f"{path.name} is {'cut off' if is_cut else 'damaged'} at byte {tail.end:,} of {size:,}"


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
            found[_kind_of_body(body)] += 1
            at += size
        else:
            at += 1
        at = rest.find(_PICKLE, at)
    return found


def _kind_of_body(body: bytes) -> str:
    try:
        return _kind(pickle.loads(body))  # noqa: S301 (the user's own job directory)
    except Exception:  # whole, and of another version or project
        return "other"
