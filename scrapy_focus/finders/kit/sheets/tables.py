"""Tables for the templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Lead(NamedTuple):
    """A text that may be a link."""

    text: str
    link: str


class Cell(NamedTuple):
    """The content of a table cell, and how it is shown."""

    text: str
    kind: str = ""  # "best", "long": may wrap, "words": a text, "name": a short text, or ""
    link: str = ""  # its target, "" for none
    summary: str = ""  # of the fold-out list below
    more: Sequence[Lead] = ()  # the content of that list
    bar: float | None = None  # the length of a bar beside the text, from 0 to 100; None: no bar


class Row(NamedTuple):
    """A row of a table."""

    head: str
    cells: list[Cell]
    link: str = ""  # the target of its head


class Table(NamedTuple):
    """A table of the page."""

    name: str  # its id
    caption: str
    heads: list[str]
    rows: list[Row]


def first_of(n: int, most: int) -> str:
    """Say that only the first rows of a table are shown; ``""`` if all are.

    Examples
    --------
    >>> first_of(1200, 30), first_of(30, 30)
    (' The first 30 of 1,200 are shown.', '')
    """
    if n <= most:
        return ""
    return f" The first {most} of {n:,} are shown."
