"""Add up finds by type, host or section."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.printable import counted, printable
from scrapy_focus.finders.kit.sheets.tables import Cell, Row, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

STATES = ("new", "changed", "same", "gone", "unseen")
ROWS = 40  # of a table of sums
SECTIONS = "By section: the beginning of the address"  # caption of a table


class Sum(NamedTuple):
    """How many finds of a kind, host or section there are."""

    name: str
    files: int
    size: int  # the sum of their measures: bytes of files, say
    states: dict[str, int]  # finds in each state


class Sums(NamedTuple):
    """All finds, added up in several ways."""

    kinds: list[Sum]
    hosts: list[Sum]
    sections: list[Sum]
    size: int  # of all
    states: dict[str, int]  # of all; empty where unknown


def sums_by(
    finds: Iterable[Any], name: Callable[[Any], str], measure: Callable[[Any], int], state: Callable[[Any], str]
) -> list[Sum]:
    """Add up finds by a name, the most frequent first."""
    by_name: dict[str, list[Any]] = defaultdict(list)
    for find in finds:
        by_name[name(find)].append(find)
    sums = [
        Sum(each, len(alike), sum(map(measure, alike)), states_of(map(state, alike))) for each, alike in by_name.items()
    ]
    return sorted(sums, key=lambda each: (-each.files, each.name))


def states_of(states: Iterable[str]) -> dict[str, int]:
    """Return how many finds are in each state."""
    counts = Counter(states)
    return {state: counts[state] for state in STATES if counts[state]}


def sums_table(
    name: str, caption: str, heads: Sequence[str], sums: Sequence[Sum], *, measure: Callable[[int, int], str],
    states: Mapping[str, int], adds_up: bool = True,
) -> Table | None:  # fmt: skip
    """Return a table of sums with a bar for each number; ``None`` for a single row, which says nothing new.

    Parameters
    ----------
    name
        Name of the table on its page.
    caption
        Text above the table.
    heads
        Names of the columns for name, number and measure.
    sums
        One row each.
    measure
        Formats a number of finds and the sum of their measures.
    states
        States of all finds; each has a column, unless all finds are new.
    adds_up
        Whether the formatted measure is a part of a whole, and so has a bar.
    """
    if len(sums) < 2:
        return None
    shown = [state for state in STATES if state in states] if set(states) - {"new"} else []
    most_files, most_size = max(each.files for each in sums), max(each.size for each in sums)

    def row(name: str, alike: Sequence[Sum], *, has_bars: bool = True) -> Row:
        files, size = sum(each.files for each in alike), sum(each.size for each in alike)
        return Row(name, [
            Cell(f"{files:,}", bar=bar_of(files, most_files) if has_bars else None),
            Cell(measure(files, size), bar=bar_of(size, most_size) if has_bars and adds_up else None),
            *(Cell(f"{sum(each.states.get(state, 0) for each in alike):,}") for state in shown),
        ])  # fmt: skip

    rows = [row(printable(each.name) or "(unknown)", [each]) for each in sums[:ROWS]]
    if rest := sums[ROWS:]:
        rows.append(row(counted(len(rest), "other"), rest, has_bars=False))
    return Table(name, caption, [*heads, *(state.capitalize() for state in shown)], rows)


def bar_of(number: float, longest: float) -> float:
    """Return the length of a bar, where the longest has 100; a number above 0 is never invisible.

    Examples
    --------
    >>> bar_of(3, 4), bar_of(1, 10_000), bar_of(0, 0)
    (75.0, 0.5, 0.0)
    """
    if number <= 0 or longest <= 0:
        return 0.0
    return round(min(100.0, max(0.5, 100 * number / longest)), 1)
