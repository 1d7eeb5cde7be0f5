"""Write the page and the feed of a watch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy_focus.core.errors import StorageError
from scrapy_focus.core.files import write_atomically
from scrapy_focus.core.printable import reason_of
from scrapy_focus.finders.kit.page.folder import PAGE
from scrapy_focus.finders.kit.page.words import starts_of
from scrapy_focus.finders.news.atom import FEED, atom
from scrapy_focus.finders.news.news_page import news_page

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_focus.finders.news.watched import Gathering


def write_news(folder: Path, gathering: Gathering) -> Path:
    """Write ``index.html`` and ``feed.xml`` of a watched site, and return the path of the page.

    After a kill, each is either the old or the new one, never a part.

    Raises
    ------
    StorageError
        If the folder cannot be read, or they cannot be written.
    """
    try:
        watched = gathering.read()
        made, urls = time.time(), starts_of(watched.notes.last_run)
        write_atomically(folder / FEED, atom(watched.articles, roots=urls, made=made))
        write_atomically(folder / PAGE, news_page(watched, made))
    except OSError as error:
        raise StorageError(
            f"the page of {folder} cannot be written: {reason_of(error)}; make room or choose another folder, and use "
            "focus report"
        ) from error
    return folder / PAGE
