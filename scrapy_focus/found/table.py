"""The list of files as a table that opens in a spreadsheet.

A spreadsheet runs what looks like a formula. Names and links come from the web, so no cell begins like one.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy_focus.found.listed import Listed

_COLUMNS = (
    "name", "kind", "size", "state", "host", "section", "url", "page", "anchor", "path", "crawl", "at", "mime",
    "sha256",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last: full width
_LONGEST = 32_000  # characters that a cell of a spreadsheet takes


def table(files: Iterable[Listed]) -> bytes:
    """Return the table as CSV: a line for each file, UTF-8 with the mark by which spreadsheets know it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for file in files:
        writer.writerow([harmless(getattr(file, name)) for name in _COLUMNS])
    return text.getvalue().encode("utf-8-sig", errors="backslashreplace")


def harmless(value: str | int) -> str | int:
    r"""Return what a cell may hold: a text that a spreadsheet would take for a formula begins with an apostrophe.

    Examples
    --------
    >>> harmless("=1+1"), harmless(" @SUM(A1)"), harmless("a=b"), harmless(-1)
    ("'=1+1", "' @SUM(A1)", 'a=b', -1)
    """
    if isinstance(value, int):
        return value
    text = value.replace("\0", "")[:_LONGEST]
    first = text[:1]
    return f"'{text}" if first in _FORMULA or (first.isspace() and text.lstrip()[:1] in _FORMULA) else text
