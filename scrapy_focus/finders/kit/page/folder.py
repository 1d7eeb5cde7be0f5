"""Writes what people open of a folder of what was found: a page, and a table for spreadsheets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy_focus.core.errors import StorageError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.printable import reason_of
from scrapy_focus.finders.kit.page.atom import FEED, atom
from scrapy_focus.finders.kit.page.news_page import news_page
from scrapy_focus.finders.kit.page.page import page
from scrapy_focus.finders.kit.page.report import report_of
from scrapy_focus.finders.kit.page.table import table

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.finders.kit.page.output import Output
    from scrapy_focus.finders.kit.page.watched import Gathering

PAGE = "index.html"


def write_page(folder: Path, finder: type[Output]) -> Path:
    """Write ``index.html`` and the table of a finder from what is in its folder now, and return the page.

    Each is whole after a kill at any instant: the old one or the new one. A hundred thousand files take some seconds.

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
            "scrapy focus-report"
        ) from error
    return folder / PAGE


def write_news(folder: Path, gathering: Gathering) -> Path:
    """Write ``index.html`` and ``feed.xml`` from what is new on a watched site, and return the page.

    Each is whole after a kill at any instant: the old one or the new one.

    Raises
    ------
    StorageError
        If the folder cannot be read, or they cannot be written.
    """
    try:
        watched = gathering.read()
        made, roots = time.time(), watched.notes.runs[-1].get("roots") if watched.notes.runs else None
        urls = [str(url) for url in roots] if isinstance(roots, list) else []
        write_atomically(folder / FEED, atom(watched.articles, roots=urls, made=made))
        write_atomically(folder / PAGE, news_page(watched, made))
    except OSError as error:
        raise StorageError(
            f"the page of {folder} cannot be written: {reason_of(error)}; make room or choose another folder, and use "
            "scrapy focus-report"
        ) from error
    return folder / PAGE
