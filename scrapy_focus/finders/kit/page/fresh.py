"""The table of watched pages: how often each was visited, how often it had changed, and when the next visit is due."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from scrapy_focus.core.abilities import WatchedPage
from scrapy_focus.core.files import write_atomically
from scrapy_focus.finders.kit.page.table import harmless
from scrapy_focus.finders.kit.records.times import time_of, time_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

FRESH = "fresh.csv"

_COLUMNS = (
    "url", "visits", "changes", "changes_a_day", "changes_a_day_low", "changes_a_day_high", "targets_a_day",
    "last_visit", "next_visit",
)  # fmt: skip


def write_fresh(folder: Path, pages: Iterable[WatchedPage]) -> None:
    """Write ``fresh.csv``, the most visited pages first; after a kill, the file is either the old or the new one.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for page in sorted(pages, key=lambda page: (-page.visits, page.url)):
        numbers = (_number(each) for each in (page.rate, page.low, page.high, page.targets))
        times = time_text(page.last), time_text(page.next)
        writer.writerow([harmless(page.url), page.visits, page.changes, *numbers, *times])
    write_atomically(folder / FRESH, text.getvalue().encode("utf-8-sig", errors="backslashreplace"))


def read_fresh(folder: Path) -> list[WatchedPage]:
    """Return the pages of a folder as last written; malformed rows are skipped.

    Raises
    ------
    OSError
        If the table cannot be read.
    """
    try:
        text = (folder / FRESH).read_text(encoding="utf-8-sig", errors="replace")
    except FileNotFoundError:
        return []
    found = (_page(row) for row in csv.DictReader(io.StringIO(text, newline="")))
    return [page for page in found if page is not None]


def _page(row: Mapping[str, str]) -> WatchedPage | None:
    try:
        rate, low, high, targets = (
            float(row[name]) for name in ("changes_a_day", "changes_a_day_low", "changes_a_day_high", "targets_a_day")
        )
        last = time_of(row["last_visit"])
        page = WatchedPage(
            row["url"], int(row["visits"]), int(row["changes"]), rate, low, high, targets,
            0.0 if last is None else last, time_of(row["next_visit"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError):
        return None
    return page if all(map(math.isfinite, (rate, low, high, targets))) else None


def _number(value: float) -> str:
    return f"{value:.4g}"
