"""The list of finds as a table for spreadsheets.

A spreadsheet runs whatever looks like a formula, and a terminal runs control characters. Names and links come from the
web, so no cell begins like a formula, and all characters are printable.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

from scrapy_focus.core.printable import printable

if TYPE_CHECKING:
    from scrapy_focus.finders.kit.page.output import Output

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last: full width
_LONGEST = 32_000  # characters that a cell of a spreadsheet takes
_ODD = re.compile(rf"\x1f[^\S\x1f]*[{re.escape(''.join(_FORMULA))}]")  # in cells, each behind a \x1f


def table(output: Output) -> bytes:
    """Return the table as CSV, one line per row of the finder's list.

    It is UTF-8 with a byte order mark, which spreadsheets expect.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([*output.table_columns, *map(harmless, output.further_columns())])
    for cells in output.table_rows():
        row = "\x1f".join(["", *map(str, cells)])
        is_odd = len(row) > _LONGEST or _ODD.search(row) or not row.replace("\x1f", "").isprintable()
        writer.writerow(map(harmless, cells) if is_odd else cells)
    return text.getvalue().encode("utf-8-sig", errors="backslashreplace")


def harmless(value: str | float) -> str | float:
    r"""Return a printable value for a cell; a text that looks like a formula gets an apostrophe in front.

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
    if first in _FORMULA or (first.isspace() and value.lstrip()[:1] in _FORMULA):
        return f"'{text}"
    return text
