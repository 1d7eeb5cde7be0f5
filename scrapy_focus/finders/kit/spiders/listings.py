"""Reads sitemaps, feeds and catalogues of data sets as pages of links, each with its own kind of link."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import scrapy
from scrapy import signals
from scrapy.http import HtmlResponse
from scrapy.utils.response import get_base_url

from scrapy_focus.core.abilities import FetchesAgain
from scrapy_focus.engine.host import host_of
from scrapy_focus.engine.marks import LINK
from scrapy_focus.engine.pages import can_be_read
from scrapy_focus.web.entries import LARGEST, LARGEST_FEED, MOST, feeds_of_page, read_listing
from scrapy_focus.web.linkurls import without_credentials
from scrapy_focus.web.listings import beginning, listed_in, listing_of, lists_urls, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser

    from scrapy_focus.web.listings import Listing

_NAMED = 20  # sitemaps of a robots.txt that are requested
_INDEXED = 1000  # sitemaps of an index that are requested
_DEPTH = 2  # nested indexes
_NESTED = "sitemap_depth"  # key in the meta of a request
_READ = 10_000_000  # bytes of a sitemap in a crawl that does not revisit pages


class NamedSitemaps:
    """Requests the sitemaps named in a robots.txt, once that was fetched for some page.

    Each is a link without a page, of a separate kind: its request must pay off, like that of any other link.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        crawler.signals.connect(self.on_parsed, signals.robots_parsed)

    def on_parsed(self, robotparser: RobotParser, request: scrapy.Request) -> None:
        """Queue the sitemaps; the handler of Scrapy's ``robots_parsed``."""
        named = getattr(getattr(robotparser, "rp", None), "sitemaps", ())  # Scrapy's parser has a Protego
        for url in islice(named, _NAMED):
            made = _request(request.url, url, "(robots.txt)/sitemap", depth=0)
            if made is not None and self.crawler.engine is not None:
                self.crawler.engine.crawl(made)


def comes_back(crawler: Crawler) -> bool:
    """Whether the policy of a running crawl revisits pages: then sitemaps and feeds announce new ones."""
    host = host_of(crawler)
    return host is not None and issubclass(host.policy, FetchesAgain)


def listing_in(response: Response) -> Listing:
    """Return the kind of listing by the first bytes of a response, whatever its declared type; ``""`` if it is none.

    Text with one URL per line counts as a sitemap if a sitemap was requested.
    """
    first = beginning(response.body)
    kind = listing_of(first)
    is_asked = _NESTED in response.meta or "sitemap" in response.url.lower()
    if not kind and is_asked and lists_urls(first):
        return "sitemap"
    return kind


def listing_links(response: Response, callback: Callable[..., Any] | None = None) -> Iterator[scrapy.Request]:
    """Yield a request for each feed that a page names, or for each entry of a sitemap or feed; otherwise none.

    For callbacks of spiders that revisit pages, in addition to their own links. Each kind of listing is a separate kind
    of link, and the title of an entry is its anchor.

    Examples
    --------
    ::

        def parse(self, response):
            yield from listing_links(response)
            if isinstance(response, HtmlResponse):
                yield from response.follow_all(css="a")
    """
    kind = listing_in(response)
    if not kind and isinstance(response, HtmlResponse):
        made = feeds_named_in(response)
    else:
        made = links_of_listing(response, kind, feeds=True)
    for request in made:
        yield request if callback is None else request.replace(callback=callback)


def feeds_named_in(response: HtmlResponse) -> Iterator[scrapy.Request]:
    """Yield a request for each feed that a page declares, ten at most."""
    if not can_be_read(response):
        return
    root, base = response.selector.root, get_base_url(response)
    for url, title in feeds_of_page(root, base, encoding=response.encoding):
        made = _request(response.url, url, "(page)/feed", anchor=title)
        if made is not None:
            made.meta["download_maxsize"] = LARGEST_FEED
            yield made


def links_of_listing(response: Response, kind: Listing, *, feeds: bool = False) -> Iterator[scrapy.Request]:
    """Yield a request for each URL of a sitemap or catalogue, or of a feed that is named as a sitemap, lazily; none for
    any other kind of listing.

    ``feeds``: as in a crawl that revisits pages: yield entries of all feeds, and read more of a large sitemap.
    """
    if kind == "catalogue":
        yield from _links_of_catalogue(response)
    elif kind == "sitemap":
        yield from _links_of_sitemap(response, LARGEST if feeds else _READ)
    elif kind == "feed" and (feeds or _NESTED in response.meta):
        yield from _links_of_feed(response)


def _links_of_catalogue(response: Response) -> Iterator[scrapy.Request]:
    for url in islice(listed_in(whole(response.body)), MOST):
        if (made := _request(response.url, url, "(catalogue)/dataset")) is not None:
            yield made


def _links_of_feed(response: Response) -> Iterator[scrapy.Request]:
    for entry in read_listing(response.body, "feed", largest=LARGEST_FEED):
        if (made := _request(response.url, entry.url, "(feed)/entry", anchor=entry.title)) is not None:
            yield made


def _links_of_sitemap(response: Response, largest: int) -> Iterator[scrapy.Request]:
    depth = response.meta.get(_NESTED, 0)
    for n, entry in enumerate(read_listing(response.body, "sitemap", largest=largest)):
        if entry.is_listing and (depth >= _DEPTH or n >= _INDEXED):
            return
        place, nested = ("(sitemap)/sitemap", depth + 1) if entry.is_listing else ("(sitemap)/url", None)
        if (made := _request(response.url, entry.url, place, depth=nested)) is not None:
            yield made


def _request(base: str, href: str, place: str, *, depth: int | None = None, anchor: str = "") -> scrapy.Request | None:
    """Return a request for a link in this place, ``None`` if it is not a valid URL; ``depth``: nesting of a sitemap."""
    link = {"tag_path": place}
    if anchor:
        link["anchor"] = anchor
    meta: dict[str, Any] = {LINK: link}
    if depth is not None:
        meta |= {_NESTED: depth, "download_maxsize": LARGEST}
    try:
        url = without_credentials(urljoin(base, href))
        if href and url.startswith(("http://", "https://")):
            return scrapy.Request(url, meta=meta)
    except ValueError:
        pass
    return None
