"""Writes what people open of a folder of what was found: a page, and a table for spreadsheets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy_focus.core.errors import ConfigError, StorageError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.printable import reason_of
from scrapy_focus.finders.kit.page.atom import FEED, atom
from scrapy_focus.finders.kit.page.news_page import news_page
from scrapy_focus.finders.kit.page.page import page
from scrapy_focus.finders.kit.page.report import report_of
from scrapy_focus.finders.kit.page.table import TABLES, table
from scrapy_focus.finders.kit.page.watched import Gathering
from scrapy_focus.finders.kit.records.entities import ENTITIES
from scrapy_focus.finders.kit.records.link_book import GRAPH
from scrapy_focus.finders.kit.records.listed import MANIFEST, SKIPPED
from scrapy_focus.finders.kit.records.news import NEWS
from scrapy_focus.finders.kit.records.notes import NOTES
from scrapy_focus.finders.kit.records.pages import PAGES

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "index.html"


def write_report(folder: Path) -> Path:
    """Write ``index.html`` and a table from what is in a folder now, and return the page.

    The table is ``files.csv``, ``pages.csv``, ``importance.csv`` or ``hosts.csv``; of a watched site there is a feed,
    see :func:`write_news`. Each is whole after a kill at any instant: the old one or the new one. A hundred thousand
    files take some seconds.

    Raises
    ------
    ConfigError
        If no crawl has written to the folder, or its list is damaged.
    StorageError
        If it cannot be read, or the page cannot be written.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; name the one in which a crawl stored what it found")
    if (folder / NEWS).exists():
        return write_news(folder, Gathering(folder))
    if not any((folder / name).exists() for name in (MANIFEST, SKIPPED, PAGES, ENTITIES, GRAPH, NOTES)):
        raise ConfigError(
            f"no crawl has stored anything in {folder}: it has no {MANIFEST}, {PAGES}, {NEWS} or {NOTES}; name the "
            "folder of a crawl"
        )
    try:
        report = report_of(folder)
    except OSError as error:
        raise StorageError(f"{folder} cannot be read: {reason_of(error)}") from error
    try:
        write_atomically(folder / TABLES[report.about], table(report))
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
