"""The list of what was found as a table that opens in a spreadsheet.

A spreadsheet runs what looks like a formula, and a terminal runs control characters. Names and links come from the web,
so no cell begins like a formula, and all of its characters show.
"""

from __future__ import annotations

import csv
import io
import re
from operator import attrgetter
from typing import TYPE_CHECKING

from scrapy_focus.core.printable import printable
from scrapy_focus.finders.kit.records.entities import HostSum, types_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_focus.finders.kit.page.report import Report

#: The table of each kind of crawl.
TABLES = {
    "files": "files.csv", "topic": "pages.csv", "importance": "importance.csv", "structured": "hosts.csv",
}  # fmt: skip
_COLUMNS = {
    "files": (
        "name", "kind", "size", "state", "host", "section", "url", "page", "anchor", "path", "crawl", "at", "mime",
        "sha256", "cut",
    ),
    "topic": ("title", "url", "relevance", "host", "domain", "language", "depth", "page", "anchor", "why", "at"),
    "importance": (
        "rank", "importance", "links", "fetched", "url", "title", "depth", "status", "page", "anchor", "at",
    ),
    "structured": ("host", "domain", "pages", "with_entities", "entities"),
}  # fmt: skip
_TYPES = 50  # of entities that have a column
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last: full width
_LONGEST = 32_000  # characters that a cell of a spreadsheet takes
_ODD = re.compile(rf"\x1f[^\S\x1f]*[{re.escape(''.join(_FORMULA))}]")  # in cells, each behind a \x1f


def table(report: Report) -> bytes:
    """Return the table as CSV: a line for each file, for each page that was read in a search for a topic, for each page
    that is known in a search for the most important ones, or for each host in a search for structured data.

    It is UTF-8 with the mark by which spreadsheets know it.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    columns = _COLUMNS[report.about]
    kinds: dict[str, Sequence[object]] = {
        "files": report.files, "topic": report.pages, "importance": report.ranking, "structured": report.read,
    }  # fmt: skip
    types = [name for name, _ in types_of(report.entities).most_common(_TYPES)]
    writer.writerow([*columns, *map(harmless, types)])
    cells_of = attrgetter(*columns)
    for row_of in kinds[report.about]:
        cells = cells_of(row_of)
        if isinstance(row_of, HostSum):
            cells = (*cells, *(row_of.types.get(name, 0) for name in types))
        row = "\x1f".join(["", *map(str, cells)])
        is_odd = len(row) > _LONGEST or _ODD.search(row) or not row.replace("\x1f", "").isprintable()
        writer.writerow(map(harmless, cells) if is_odd else cells)
    return text.getvalue().encode("utf-8-sig", errors="backslashreplace")


def harmless(value: str | float) -> str | float:
    r"""Return what a cell may hold, printable: a text that would be taken for a formula begins with an apostrophe.

    Examples
    --------
    >>> harmless("=1+1"), harmless(" @SUM(A1)"), harmless("a=b"), harmless(-1)
    ("'=1+1", "' @SUM(A1)", 'a=b', -1)
    >>> print(harmless("\x1b[2Ja"))
    \x1b[2Ja
    """
    if not isinstance(value, str):
        return value
    text, first = printable(value, _LONGEST), value[:1]
    return f"'{text}" if first in _FORMULA or (first.isspace() and value.lstrip()[:1] in _FORMULA) else text
