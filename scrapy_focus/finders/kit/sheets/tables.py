"""Tables as the templates show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Lead(NamedTuple):
    """A text that may lead somewhere."""

    text: str
    link: str


class Cell(NamedTuple):
    """What stands in a table, and how it is shown."""

    text: str
    kind: str = ""  # "best", "long": may be wrapped, "words": a text, "name": a short one, or as any other
    link: str = ""  # where it leads, "" if nowhere
    summary: str = ""  # of what can be folded out below
    more: Sequence[Lead] = ()  # that, if there is any


class Row(NamedTuple):
    """A row of a table."""

    head: str
    cells: list[Cell]
    link: str = ""  # where its head leads


class Table(NamedTuple):
    """A table of the page."""

    name: str  # its id
    caption: str
    heads: list[str]
    rows: list[Row]


def first_of(n: int, most: int) -> str:
    """Say that only the first rows of a table are shown, where there are more of them; ``""`` else.

    Examples
    --------
    >>> first_of(1200, 30), first_of(30, 30)
    (' The first 30 of 1,200 are shown.', '')
    """
    if n <= most:
        return ""
    return f" The first {most} of {n:,} are shown."
