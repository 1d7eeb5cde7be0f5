"""Read the list of skipped files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scrapy_focus.finders.kit.records.folder_names import SKIPPED
from scrapy_focus.finders.kit.records.lines import lines_of, text_in

if TYPE_CHECKING:
    from pathlib import Path


class Skipped(NamedTuple):
    """A possible file that was not fetched completely."""

    url: str
    reason: str
    page: str
    anchor: str


def read_skipped(folder: Path) -> list[Skipped]:
    """Return the skipped files, each URL once.

    Raises
    ------
    ConfigError, StorageError
        As :func:`~scrapy_focus.finders.kit.records.lines.lines_of`.
    """
    found = {}
    for line in lines_of(folder / SKIPPED):
        skipped = Skipped(*(text_in(line, name) for name in Skipped._fields))
        found[skipped.url] = skipped
    return [*found.values()]
