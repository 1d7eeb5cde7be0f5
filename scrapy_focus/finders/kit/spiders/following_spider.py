"""Base class of spiders that follow links to any host."""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.utils.response import get_base_url

from scrapy_focus.core.printable import brief
from scrapy_focus.engine.known import known_on
from scrapy_focus.engine.marks import FOUND_ON
from scrapy_focus.features import existing
from scrapy_focus.web.html import page_links
from scrapy_focus.web.mime import BLOCKED_MIMES, DATA_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element
    from scrapy.http import HtmlResponse, Response

    from scrapy_focus.finders.kit.spiders.crawl_notes import CrawlNotes

_LINKS = 10_000  # links of a page that are read
_CHATTY = ("scrapy.addons", "scrapy.middleware", "scrapy.spidermiddlewares.httperror")  # loggers
_NO_PAGES = DATA_TYPES - {"text/plain", "application/octet-stream"}  # types that redirects and errors may have

#: MIME types that are not pages.
NO_PAGES = (*BLOCKED_MIMES, "font/*", *sorted(_NO_PAGES))
#: Settings of a crawl for pages on many hosts.
MANY_HOSTS = {
    "FOCUS_EXPLAIN": True,
    "FOCUS_OBEY": ["retry-after", "robots-errors", "crawl-delay", "nofollow", "noindex"],
    "FOCUS_BLOCKED_MIMES": [*NO_PAGES],
    "DOWNLOAD_TIMEOUT": 30,
    "DOWNLOAD_MAXSIZE": 10_000_000,
    "METAREFRESH_ENABLED": False,
    "REDIRECT_MAX_TIMES": 5,
    "RETRY_TIMES": 1,
    **existing({"FOCUS_IGNORE_PARAMETERS": True}),
    "LOG_LEVEL": "INFO",
}


class FollowingSpider(scrapy.Spider):
    """Makes the requests for links, and records them if the crawl keeps notes."""

    notes: CrawlNotes | None = None

    def link(self, response: Response, url: str, anchor: str, **more: Any) -> Iterator[scrapy.Request]:
        """Yield the request for a link of a page, with ``more`` in its ``meta``, if the link is a valid URL."""
        try:
            request = scrapy.Request(url, meta={FOUND_ON: response.url, "link_text": anchor, **more})
        except ValueError:
            self.logger.debug("Not a URL: %s on %s", brief(url), brief(response.url))
        else:
            if self.notes is not None:
                self.notes.link(response.url, request.url)
            yield request


def new_links(response: HtmlResponse, notes: CrawlNotes | None) -> Iterator[tuple[str, _Element]]:
    """Yield the URLs of unknown links of a page, with their elements, 10,000 at most.

    Known links are recorded in the notes, too.
    """
    known = known_on(response)

    def passes(url: str) -> bool:
        if known is None or not known.passes(url):
            return False
        if notes is not None:
            notes.link(response.url, url)
        return True

    root, base = response.selector.root, get_base_url(response)
    return islice(page_links(root, base, passes, encoding=response.encoding), _LINKS)


def be_quiet() -> None:
    """Limit the loggers of Scrapy that write a line per page or component to warnings."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
