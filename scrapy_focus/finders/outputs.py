"""Identify the finder that wrote a folder, and write its page, or a list of the crawls in the folders below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.core.errors import ConfigError, FocusError, StorageError
from scrapy_focus.core.printable import reason_of
from scrapy_focus.finders.files.output import FilesOutput
from scrapy_focus.finders.important.output import ImportantOutput
from scrapy_focus.finders.kit.page.folder import PAGE, write_page
from scrapy_focus.finders.kit.page.overview import listed, unreadable, write_overview
from scrapy_focus.finders.kit.page.report import report_of as read_report
from scrapy_focus.finders.kit.records.folder_names import MANIFEST, NEWS, PAGES, SKIPPED
from scrapy_focus.finders.kit.records.notes import NOTES, read_notes
from scrapy_focus.finders.news.output import write_news
from scrapy_focus.finders.news.watched import Gathering
from scrapy_focus.finders.structured.output import StructuredOutput
from scrapy_focus.finders.topic.output import TopicOutput

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.finders.kit.page.output import Output
    from scrapy_focus.finders.kit.page.overview import Listed
    from scrapy_focus.finders.kit.page.report import Report

#: In the order of detection: a search for important pages has a list of pages, too.
OUTPUTS: tuple[type[Output], ...] = (StructuredOutput, ImportantOutput, TopicOutput)


def output_of(folder: Path) -> type[Output]:
    """Return the output class of a folder, by the spider that wrote there last, or by the lists in it.

    Raises
    ------
    OSError
        If the notes in the folder cannot be read.
    """
    spider = read_notes(folder).last_run.get("spider")
    for output in OUTPUTS:
        if spider == output.spider or any((folder / name).exists() for name in output.lists):
            return output
    return FilesOutput


def report_of(folder: Path) -> Report:
    """Return everything that the page of a folder shows.

    Raises
    ------
    ConfigError
        If its list is damaged.
    StorageError
        If it cannot be read.
    OSError
        If the notes cannot be read.
    """
    return read_report(folder, output_of(folder))


def write_report(folder: Path) -> Path:
    """Write ``index.html`` and a table from the current content of a folder, and return the path of the page.

    The table is ``files.csv``, ``pages.csv``, ``importance.csv`` or ``hosts.csv``; a watched site has a feed,
    ``feed.xml``. If the folder has no results, but folders with crawls, its page lists these. It then links to their
    pages, and a missing one is written.

    Raises
    ------
    ConfigError
        If no crawl has written to the folder or to one in it, or its list is damaged.
    StorageError
        If it cannot be read, or the page cannot be written.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder; name the folder with the results of a crawl")
    if (folder / NEWS).exists():
        return write_news(folder, Gathering(folder))
    if not _has_results(folder):
        if crawls := sorted(each for each in folder.iterdir() if each.is_dir() and _has_results(each)):
            return write_overview(folder, [_listed(each) for each in crawls])
        raise ConfigError(
            f"{folder} has no results of a crawl: it has no {MANIFEST}, {PAGES}, {NEWS} or {NOTES}, and no folder "
            "in it has; name the folder of a crawl, or a folder of such folders"
        )
    try:
        output = output_of(folder)
    except OSError as error:
        raise StorageError(f"{folder} cannot be read: {reason_of(error)}") from error
    return write_page(folder, output)


def _has_results(folder: Path) -> bool:
    lists = [MANIFEST, SKIPPED, NEWS, str(NOTES), *(name for output in OUTPUTS for name in output.lists)]
    return any((folder / name).exists() for name in lists)


def _listed(folder: Path) -> Listed:
    """Return what a list of crawls shows of one of them, and write its page if it has none."""
    try:
        if not (folder / PAGE).exists():
            write_report(folder)
        if (folder / NEWS).exists():
            watched = Gathering(folder).read()
            return listed(folder, watched.notes, watched.n_new, "article")
        notes = read_notes(folder)
        output = output_of(folder)(folder, notes)
        return listed(folder, notes, len(output.finds), output.listed_noun)
    except (OSError, FocusError) as error:
        return unreadable(folder, error)
