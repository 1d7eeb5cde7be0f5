"""Write the page and the table for spreadsheets of an output folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.errors import StorageError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.printable import reason_of
from scrapy_focus.finders.kit.page.page import page
from scrapy_focus.finders.kit.page.report import report_of
from scrapy_focus.finders.kit.page.table import table

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.finders.kit.page.output import Output

PAGE = "index.html"


def write_page(folder: Path, finder: type[Output]) -> Path:
    """Write ``index.html`` and the table of a finder from the current content of its folder; return the page's path.

    After a kill, each is either the old or the new one, never a part. A hundred thousand files take some seconds.

    Raises
    ------
    ConfigError
        If the list of the folder is damaged.
    StorageError
        If it cannot be read, or the page cannot be written.
    """
    try:
        report = report_of(folder, finder)
    except OSError as error:
        raise StorageError(f"{folder} cannot be read: {reason_of(error)}") from error
    try:
        write_atomically(folder / report.output.table_name, table(report.output))
        write_atomically(folder / PAGE, page(report))
    except OSError as error:
        raise StorageError(
            f"the page of {folder} cannot be written: {reason_of(error)}; make room or choose another folder, and use "
            "focus report"
        ) from error
    return folder / PAGE
