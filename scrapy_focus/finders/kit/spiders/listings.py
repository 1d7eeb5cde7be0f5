"""Reads sitemaps, feeds and catalogues of data sets as pages of links, each with its own kind of link."""

from __future__ import annotations

import re
import zlib
from itertools import chain, islice
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
from scrapy_focus.web.catalogues import Catalogue
from scrapy_focus.web.declared import next_in
from scrapy_focus.web.entries import LARGEST, LARGEST_FEED, MOST, feeds_of_page, read_listing
from scrapy_focus.web.linkurls import without_credentials
from scrapy_focus.web.listings import beginning, listing_of, lists_urls
from scrapy_focus.web.mime import extension
from scrapy_focus.web.poorlinks import REST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser

    from scrapy_focus.web.catalogues import Declared
    from scrapy_focus.web.listings import Listing

    #: Whether a file of a MIME type, ``""`` if unknown, at a URL is wanted.
    Wants = Callable[[str, str], bool]

_NAMED = 20  # sitemaps of a robots.txt that are requested
_INDEXED = 1000  # sitemaps of an index that are requested
_DEPTH = 2  # nested indexes
_NESTED = "sitemap_depth"  # key in the meta of a request
_FEW = 10  # pages of a sitemap that are queued at once ...
_UNREAD = 3000  # ... or else of which so many are skipped before reading stops: 50 milliseconds
_PAGES = 1000  # of a catalogue
_PAGE = "catalogue_page"  # keys in the meta of a request: the number of a page of a catalogue, from 0, ...
_BEFORE = "catalogue_before"  # ... and the checksum of the one before
_OF_FILE = re.compile(  # an extension, not of pages
    r"(?!(?:x?html?|shtml|php\d?|aspx?|jsp|do|cgi|pl|cfm|action)\Z)(?=.*[a-z])[a-z0-9]{1,5}"
)
_PAGE_OF_SITEMAP = "(sitemap)/url"  # a tag path
_REST = "sitemap_rest"  # key in the meta of a request for the pages of a sitemap
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


def links_of_listing(
    response: Response, kind: Listing, *, feeds: bool = False, wants: Wants | None = None, later: bool = False
) -> Iterator[scrapy.Request]:
    """Yield a request for each URL of a sitemap or catalogue, or of a feed that is named as a sitemap, lazily; none for
    any other kind of listing.

    Files that are wanted by their declared type or by their URL are a separate kind of link, as far as ``wants`` tells.
    With ``later``, a sitemap is read for them first, and the last request is for its pages: see :func:`is_rest`.

    ``feeds``: as in a crawl that revisits pages: yield entries of all feeds, and read more of a large sitemap.
    """
    if kind == "catalogue":
        yield from links_of_catalogue(response, Catalogue(response.body), wants)
    elif kind == "sitemap":
        yield from _links_of_sitemap(response, LARGEST if feeds else _READ, wants, later=later)
    elif kind == "feed" and (feeds or _NESTED in response.meta):
        yield from _links_of_feed(response)


def declared_request(base: str, source: str, file: Declared, wants: Wants | None) -> scrapy.Request | None:
    """Return the request for a file or page of a source such as ``(ckan)``; ``None`` if its URL is invalid."""
    is_file = wants is not None and not file.is_page and wants(file.mime, file.url)
    kind = "file" if is_file else "link"
    made = _request(base, file.url, f"{source}/{'page' if file.is_page else kind}")
    if made is not None and file.text:
        made.meta["link_text"] = file.text
    return made


def catalogue_request(base: str, url: str, source: str, lists: str = "") -> scrapy.Request | None:
    """Return the request for a page of a catalogue; ``lists``: the types that are looked for, as its text."""
    made = _request(base, url, f"{source}/catalogue", anchor=lists)
    if made is not None:
        made.meta["download_maxsize"] = LARGEST
    return made


def links_of_catalogue(
    response: Response, catalogue: Catalogue, wants: Wants | None = None, lists: str = ""
) -> Iterator[scrapy.Request]:
    """Yield a request for each file and page of a catalogue, and for its next page; see :func:`catalogue_request`."""
    source = "(ckan)" if "/api/3/action/" in response.url else "(catalogue)"
    for file in islice(chain.from_iterable(catalogue), MOST):
        if (made := declared_request(response.url, source, file, wants)) is not None:
            yield made
    checksum, page = zlib.crc32(response.body), page_of_catalogue(response)
    if response.meta.get(_BEFORE) == checksum or page >= _PAGES:
        return
    following = next_in(_link_headers(response)) or catalogue.next_page(response.url)
    if (made := catalogue_request(response.url, following, source, lists)) is not None:
        made.meta.update({_PAGE: page + 1, _BEFORE: checksum})
        yield made


def page_of_catalogue(response: Response) -> int:
    """Return the number of a page of a catalogue, from 0."""
    return int(response.meta.get(_PAGE, 0))


def _link_headers(response: Response) -> list[str]:
    return [value.decode("latin-1") for value in response.headers.getlist("Link")]


def _links_of_feed(response: Response) -> Iterator[scrapy.Request]:
    for entry in read_listing(response.body, "feed", largest=LARGEST_FEED):
        if (made := _request(response.url, entry.url, "(feed)/entry", anchor=entry.title)) is not None:
            yield made


def is_rest(message: scrapy.Request | Response) -> bool:
    """Whether a request or its response is for a sitemap that was read for its files, and this time for its pages."""
    return bool(message.meta.get(_REST))


def _links_of_sitemap(
    response: Response, largest: int, wants: Wants | None, *, later: bool
) -> Iterator[scrapy.Request]:
    """Yield a request for each entry; with ``later``, for the pages among many entries a single one."""
    pages: list[scrapy.Request] = []
    for made in _entries_of_sitemap(response, largest, wants):
        if not later or is_rest(response) or made.meta[LINK]["tag_path"] != _PAGE_OF_SITEMAP:
            yield made
            continue
        pages.append(made)
        if len(pages) > _UNREAD:
            break
    if len(pages) <= _FEW:
        yield from pages
        return
    rest = _request(response.url, response.url, "(sitemap)/rest", depth=response.meta.get(_NESTED, 0), anchor=REST)
    if rest is not None:
        rest.meta[_REST] = True
        yield rest.replace(dont_filter=True)


def _entries_of_sitemap(response: Response, largest: int, wants: Wants | None) -> Iterator[scrapy.Request]:
    depth = response.meta.get(_NESTED, 0)
    for n, entry in enumerate(read_listing(response.body, "sitemap", largest=largest)):
        if entry.is_listing and (depth >= _DEPTH or n >= _INDEXED):
            return
        place, nested = ("(sitemap)/sitemap", depth + 1) if entry.is_listing else (_PAGE_OF_SITEMAP, None)
        if not entry.is_listing and wants is not None:
            place = _kind_in_sitemap(entry.url, wants)
        if (made := _request(response.url, entry.url, place, depth=nested)) is not None:
            yield made


def _kind_in_sitemap(url: str, wants: Wants) -> str:
    """Return the tag path of an entry: of a wanted file, of a file whose name does not tell, or of a page."""
    if wants("", url):
        return "(sitemap)/file"
    return "(sitemap)/other" if _OF_FILE.fullmatch(extension(url)) else _PAGE_OF_SITEMAP


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
