"""Tables as the templates show them."""

from __future__ import annotations

from typing import NamedTuple


class Cell(NamedTuple):
    """What stands in a table, and how it is shown."""

    text: str
    kind: str = ""  # "best", "long": may be wrapped, "words": a text, or as any other
    link: str = ""  # where it leads, "" if nowhere


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
