"""Sitemaps and catalogues of data sets as pages of links, which wait in places of their own."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import scrapy
from lxml import etree
from scrapy import signals
from scrapy.utils.sitemap import Sitemap

from scrapy_focus.core.printable import brief, printable_logger
from scrapy_focus.engine.marks import LINK
from scrapy_focus.web.listings import listed_in, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser

logger = printable_logger(__name__)

_NAMED = 20  # sitemaps in a robots.txt that are asked for
_INDEXED = 1000  # in an index
_LISTED = 50_000  # URLs of a sitemap or catalogue, as the protocol allows
_DEPTH = 2  # indexes within each other
_NESTED = "sitemap_depth"  # in the meta of a request
_MAXSIZE = 52_428_800  # bytes of a sitemap, as the protocol allows


class NamedSitemaps:
    """Asks for the sitemaps that a robots.txt names, once it was read for the sake of a page.

    Each is a link without a page, in a place of its own: it costs a request and has to earn it, as all links have.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        crawler.signals.connect(self.on_parsed, signals.robots_parsed)

    def on_parsed(self, robotparser: RobotParser, request: scrapy.Request) -> None:
        """Let sitemaps wait with the scheduler; the handler of Scrapy's ``robots_parsed``."""
        named = getattr(getattr(robotparser, "rp", None), "sitemaps", ())  # Scrapy's parser has a Protego
        for url in islice(named, _NAMED):
            made = _request(request.url, url, "(robots.txt)/sitemap", depth=0)
            if made is not None and self.crawler.engine is not None:
                self.crawler.engine.crawl(made)


def links_of_listing(response: Response, kind: str) -> Iterator[scrapy.Request]:
    """Yield a request for each URL of a sitemap or catalogue, lazily; none for any other kind of listing."""
    body = whole(response.body)
    if kind == "catalogue":
        for url in islice(listed_in(body), _LISTED):
            if (made := _request(response.url, url, "(catalogue)/dataset")) is not None:
                yield made
    elif kind == "sitemap":
        yield from _links_of_sitemap(body, response)


def _links_of_sitemap(body: bytes, response: Response) -> Iterator[scrapy.Request]:
    depth = response.meta.get(_NESTED, 0)
    try:
        sitemap = Sitemap(body)
        is_index = sitemap.type == "sitemapindex"
        if is_index and depth >= _DEPTH:
            return
        for entry in islice(sitemap, _INDEXED if is_index else _LISTED):
            place, nested = ("(sitemap)/sitemap", depth + 1) if is_index else ("(sitemap)/url", None)
            made = _request(response.url, entry["loc"], place, depth=nested)
            if made is not None:
                yield made
    except (etree.XMLSyntaxError, StopIteration, ValueError) as error:
        logger.debug("%s is read up to where it is broken: %s", brief(response.url), error)


def _request(base: str, href: str, place: str, *, depth: int | None = None) -> scrapy.Request | None:
    """Return a request whose link stands in this place, ``None`` where it is none that can be asked for; ``depth``: of
    a sitemap, in how many others it is named.
    """
    meta: dict[str, Any] = {LINK: {"tag_path": place}}
    if depth is not None:
        meta |= {_NESTED: depth, "download_maxsize": _MAXSIZE}
    try:
        url = urljoin(base, href)
        return scrapy.Request(url, meta=meta) if url.startswith(("http://", "https://")) else None
    except ValueError:
        return None
