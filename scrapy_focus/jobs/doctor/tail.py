"""Reads what a stored crawl did since its last checkpoint from its journals, without changing them.

A resume reads the journals from the number in the checkpoint, and stops where one is cut, damaged or missing. This
module reads them the same way, and counts what a resume will find and what it will lose.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapy_focus.core.errors import StorageError
from scrapy_focus.jobs.journal import HEAD, journals_in, read_journal, whole_behind
from scrapy_focus.jobs.plain import loads_plain
from scrapy_focus.jobs.records import OutcomeRecord

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from scrapy_focus.jobs.journal import Record


@dataclass(slots=True, kw_only=True)
class Tail:
    """The usable inputs of a crawl since a checkpoint."""

    first: int  # number of the first journal that a resume reads
    older: list[int]  # numbers of the journals made obsolete by the checkpoint
    later: list[int] = field(default_factory=list)  # numbers of those that no resume reads, after damage
    events: Counter[str] = field(default_factory=Counter)  # by kind
    found: int = 0  # links in them, including known ones
    flying: set[int]  # ids of the picks without outcome at the end
    counts: dict[str, int] = field(default_factory=dict)  # changed counts of the crawl, at the end
    used: dict[str, float] = field(default_factory=dict)  # of the budget, at the end; empty: as at the checkpoint
    rewards: float = 0.0  # earned since the checkpoint
    last: int = 0  # number of the last usable journal, 0: the first one is missing
    end: int = 0  # usable bytes of that one
    why: str = ""  # why the rest is unusable; "": all is usable
    lost_bytes: int = 0  # of all journals, after that point
    lost: Counter[str] = field(default_factory=Counter)  # whole events after that point, by kind


def _count(tail: Tail, event: Record) -> None:
    """Count one event; apart from :func:`_kind`, only this function knows the content of events.

    Raises
    ------
    ValueError, LookupError, TypeError
        If this version does not know it, or it does not fit the events before it.
    """
    match event:
        case ("add", links, _, _):
            tail.found += len(links)
        case ("pick", pick_id, *_):
            tail.flying.add(pick_id)
        case ("sent", _, requests, _) | ("grant", _, _, requests, _):
            tail.used["requests"] = requests
        case ("release", pick_id):
            tail.flying.remove(pick_id)
        case ("recovered", _) | ("give_up", _, _) | ("wake", _, _) | ("heard", _, _) | ("pace", _):
            pass
        case ("lease" | "close", _, _):
            pass
        case ("outcome", record, links, _, used, counts):
            outcome = OutcomeRecord(*record)
            tail.flying.remove(outcome.pick_id)
            tail.found += len(links)
            tail.used.update(used)
            tail.counts.update(counts)
            tail.rewards += outcome.reward if outcome.method != "HEAD" else 0.0
        case _:
            raise ValueError("this version does not know such an event")
    tail.events[_kind(event)] += 1


def _kind(event: Record) -> str:
    return str(event[0]) if event else ""


def read_tail(folder: Path, first: int, flying: Collection[int]) -> Tail:
    """Read the journals in a folder, starting with number ``first``; ``flying`` are the picks in flight then.

    Raises
    ------
    StorageError
        If one of them exists and cannot be read.
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
            tail.end, kind = end, ""
    except Exception as error:  # a whole record with invalid content
        if isinstance(error, StorageError) and isinstance(error.__cause__, OSError):
            raise
        tail.why = (
            f"{path.name} cannot be used from byte {tail.end:,} on: its event {kind!r:.40} is invalid "
            f"({str(error) or type(error).__name__})"
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
    tail.lost.update(_kind_of_body(body) for body in whole_behind(path, start))


def _kind_of_body(body: bytes) -> str:
    try:
        return _kind(loads_plain(body))
    except Exception:  # whole, but of another version or project
        return "other"
