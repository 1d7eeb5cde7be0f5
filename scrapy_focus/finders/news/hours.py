"""The counts of a watch at the end of each hour.

A line has the counts since the watch began, which survive kills. So the activity of an hour is the difference between
two lines; if a kill loses a line, its counts move to the next hour.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.printable import printable_json
from scrapy_focus.finders.kit.records.lines import add_line

if TYPE_CHECKING:
    from collections.abc import Mapping

HOURS = Path(".focus", "hours.jsonl")
HOUR = 3600.0  # seconds

#: Counts of requests, bytes, and outcomes by kind.
Counts = dict[str, int]


class Hour(NamedTuple):
    """The counts of one hour."""

    began: float  # seconds since the epoch
    counts: Counts


class HourBook:
    """Writes the counts of a watch; if an hour has two lines, the last one counts.

    Parameters
    ----------
    folder
        The output folder. When it is opened, superseded lines are removed.

    Raises
    ------
    OSError
        If it cannot be written; raised by each method.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / HOURS
        lines = _read(self.path)
        if lines:
            text = "".join(f"{_line(hour, counts)}\n" for hour, counts in lines.items())
            write_atomically(self.path, text.encode())

    def note(self, at: float, counts: Mapping[str, int]) -> None:
        """Note the counts since the watch began, at a given time."""
        add_line(self.path, {"hour": int(at // HOUR), "counts": dict(counts)})


def read_hours(folder: Path) -> list[Hour]:
    """Return the counts of each hour with activity, in their order; unreadable lines are skipped.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    found, before = [], Counts()
    for hour, counts in sorted(_read(folder / HOURS).items()):
        more = {name: n - before.get(name, 0) for name, n in counts.items() if n > before.get(name, 0)}
        found.append(Hour(hour * HOUR, more))
        before = counts
    return [hour for hour in found if hour.counts]


def _read(path: Path) -> dict[int, Counts]:
    """Return the last counts of each hour."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return {}
    found: dict[int, Counts] = {}
    for line in lines:
        try:
            fields: Any = json.loads(line)
            hour, counts = fields["hour"], fields["counts"]
            if isinstance(hour, int):
                found[hour] = {str(name): int(n) for name, n in counts.items()}
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            continue
    return found


def _line(hour: int, counts: Counts) -> str:
    return printable_json({"hour": hour, "counts": counts})
