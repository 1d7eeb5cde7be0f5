"""Finds out what a crawl sends to some hosts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_focus.web.access import PLAIN, Access

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def access_of(crawler: Crawler) -> Access:
    """Return what the spider of a crawl has as ``access``; nothing for other spiders."""
    access = getattr(crawler.spider, "access", PLAIN)
    return access if isinstance(access, Access) else PLAIN
