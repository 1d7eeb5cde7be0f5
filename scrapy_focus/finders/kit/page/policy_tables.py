"""The tables that a policy reports about itself: stored in the output folder, and shown on its page."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_focus.core.contract import tables_in
from scrapy_focus.core.errors import PolicyError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.printable import printable, printable_json
from scrapy_focus.core.shown_urls import web_link
from scrapy_focus.core.table_lines import text_of
from scrapy_focus.finders.kit.page.words import number_of
from scrapy_focus.finders.kit.sheets.tables import Cell, Row, Table, first_of

if TYPE_CHECKING:
    from scrapy_focus.core.abilities import PolicyTable

TABLES = Path(".focus", "tables.json")  # in the output folder

_ROWS = 100  # of a table on a page
_SHORT = 24  # characters of a text that is not wrapped
_LAST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


class Said(NamedTuple):
    """The latest tables of a policy."""

    policy: str  # its name
    at: float | None  # in seconds since the epoch; None: unknown
    tables: list[PolicyTable]

    @property
    def when(self) -> str:
        """The time as text; ``""`` where it is unknown."""
        if self.at is None:
            return ""
        return f"{datetime.fromtimestamp(min(max(self.at, 0.0), _LAST), UTC):%d %b %H:%M} UTC"


def write_tables(folder: Path, said: Said) -> None:
    """Store the tables of a policy, and replace the previous ones; after a kill, the file is either the old or the new.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    path = folder / TABLES
    if not said.tables:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = {"policy": said.policy, "at": said.at, "tables": [table._asdict() for table in said.tables]}
    write_atomically(path, printable_json(fields).encode())


def read_tables(folder: Path) -> Said:
    """Return the stored tables of a policy; none where it reported none, or where they are malformed.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    try:
        fields: Any = json.loads((folder / TABLES).read_bytes())
        tables = [(each["title"], each["columns"], each["rows"]) for each in fields["tables"]]
        return Said(printable(str(fields["policy"])), number_of(fields["at"]), tables_in(tables))
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError, TypeError, KeyError, PolicyError):
        return Said("", None, [])


def on_page(said: Said) -> list[Table]:
    """Return the tables of a policy as pages show them: URLs become links, and long tables are truncated."""
    return [_on_page(i, table) for i, table in enumerate(said.tables) if table.rows]


def _on_page(number: int, table: PolicyTable) -> Table:
    shown = table.rows[:_ROWS]
    kinds = [_kind([row[i] for row in shown]) for i in range(len(table.columns))]
    rows = []
    for head, *values in shown:
        cells = [Cell(text_of(value), kind, _link(value)) for value, kind in zip(values, kinds[1:], strict=True)]
        rows.append(Row(text_of(head), cells, _link(head)))
    caption = f"{table.title.rstrip('.')}.{first_of(len(table.rows), _ROWS)}"
    return Table(f"policy-{number}", caption, [*table.columns], rows)


def _kind(values: list[str | float]) -> str:
    """Return how a column is shown: texts are left-aligned, and long ones may wrap."""
    lengths = [len(text_of(value)) for value in values if isinstance(value, str)]
    if not lengths:
        return ""
    return "words" if max(lengths) > _SHORT else "name"


def _link(value: str | float) -> str:
    return web_link(value) if isinstance(value, str) else ""
