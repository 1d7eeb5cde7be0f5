"""Reads sitemaps and feeds: URLs, titles, and the stated times of change.

Neither is parsed into a tree: they are read in pieces, so that a file of fifty megabytes takes no more memory than its
entries. Nothing that a document names is fetched, and entities that it declares cannot expand.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin

from lxml import etree

from scrapy_focus.web.linkurls import link_url
from scrapy_focus.web.listings import beginning, lists_urls, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lxml.etree import _Element

    from scrapy_focus.web.listings import Listing

#: Bytes of a sitemap, as the protocol allows.
LARGEST = 52_428_800
#: Bytes of a feed that are read: new entries come first.
LARGEST_FEED = 10_000_000
#: URLs of a sitemap, as the protocol allows.
MOST = 50_000

_PIECE = 1 << 14  # bytes: some milliseconds, with the entries processed
_ELEMENTS = 1_000_000  # that are read: of 50,000 entries, 20 each
_LONGEST = 4096  # characters of a text that are read
_BEFORE = b"\xef\xbb\xbf \t\r\n"  # a byte order mark, and blanks
_TITLE = 200  # characters that are kept
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
_ENTRIES = frozenset({"url", "sitemap", "item", "entry"})
_CHANGED = ("lastmod", "updated", "modified", "date_modified")  # elements for the time of change ...
_BEGAN = ("pubDate", "date", "published", "issued", "created", "date_published")  # ... and, without one, of publication
_FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json"})
_FEEDS = 10  # that a page may name


class Listed(NamedTuple):
    """An entry of a sitemap or feed. ``url`` may be relative to the listing, and ``""`` if it is missing."""

    url: str
    title: str = ""
    changed: str = ""  # when, as written
    is_listing: bool = False  # whether it is a sitemap itself


class Reading:
    """Reads a sitemap or feed: yields the entries of one piece at a time, so that the caller may pause.

    Parameters
    ----------
    body
        The body as received; it may be gzip.
    kind
        The result of :func:`~scrapy_focus.web.listings.listing_of`; only sitemaps and feeds are read. A sitemap may
        also be text with one URL on each line.
    largest, most
        Limits of bytes and entries.

    Attributes
    ----------
    cut
        Whether a limit was exceeded.
    """

    def __init__(self, body: bytes, kind: Listing, *, largest: int = LARGEST, most: int = MOST) -> None:
        self.body = body
        self.kind = kind
        self.largest = largest
        self.most = most
        self.cut = False

    def __iter__(self) -> Iterator[list[Listed]]:
        if self.kind not in ("sitemap", "feed"):
            return
        left = self.most
        for part in self._parts():
            if len(part) > left:
                self.cut = True
            yield part[:left]
            left -= len(part)
            if left <= 0:
                return

    def _parts(self) -> Iterator[list[Listed]]:
        first = beginning(self.body)
        if self.kind == "sitemap" and lists_urls(first):
            return self._text()
        return self._json() if first.lstrip(_BEFORE)[:1] == b"{" else self._xml()

    def _text(self) -> Iterator[list[Listed]]:
        last = b""
        for piece in self._pieces():
            words = (last + piece).split()  # at no cost for a million empty lines
            last = words.pop()[: _LONGEST + 1] if words and not piece[-1:].isspace() else b""
            yield [Listed(url) for word in words if (url := _text_of(word))]
        yield [Listed(url)] if (url := _text_of(last)) else []

    def _xml(self) -> Iterator[list[Listed]]:
        target = _Entries()
        parser = etree.XMLParser(
            target=target, recover=True, resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
        )
        try:
            for piece in self._pieces():
                parser.feed(piece)
                yield target.taken()
            parser.close()
        except _TooMany:
            self.cut = True
        except (etree.XMLSyntaxError, ValueError):  # everything before that is read
            pass
        yield target.taken()

    def _pieces(self) -> Iterator[bytes]:
        left = self.largest
        for piece in _inflated(self.body) if self.body.startswith(b"\x1f\x8b") else _slices(self.body):
            if len(piece) > left:
                self.cut = True
            yield piece[:left]
            left -= len(piece)
            if self.cut:
                return

    def _json(self) -> Iterator[list[Listed]]:
        try:
            items: Any = json.loads(whole(self.body))
            items = items["items"]
        except (ValueError, RecursionError, TypeError, KeyError):
            return
        if isinstance(items, list):
            yield [_listed(_texts(item), "feed") for item in items if isinstance(item, dict)]


def read_listing(body: bytes, kind: Listing, *, largest: int = LARGEST, most: int = MOST) -> Iterator[Listed]:
    """Yield the entries of a sitemap or feed in its order; see :class:`Reading`.

    Examples
    --------
    >>> list(read_listing(b"<rss><item><title>A</title><link>/a</link><pubDate>2026</pubDate></item></rss>", "feed"))
    [Listed(url='/a', title='A', changed='2026', is_listing=False)]
    """
    for part in Reading(body, kind, largest=largest, most=most):
        yield from part


def feeds_of_page(root: _Element, base: str, *, encoding: str = "utf-8") -> list[tuple[str, str]]:
    """Return URL and title of the feeds that a page in this encoding names for itself: ten at most."""
    found: dict[str, str] = {}
    for element in root.iter("link"):
        href = element.get("href")
        if not href or not _is_feed(element):
            continue
        url = link_url(base, href, encoding)
        if url.startswith(("http://", "https://")):
            found.setdefault(url, " ".join((element.get("title") or "").split())[:_TITLE])
        if len(found) == _FEEDS:
            break
    return list(found.items())


def _is_feed(link: _Element) -> bool:
    rels = (link.get("rel") or "").lower().split()
    mime = (link.get("type") or "").partition(";")[0].strip().lower()
    return "alternate" in rels and mime in _FEED_TYPES


class _TooMany(Exception):
    """Raised if there are more elements than the limit."""


class _Entries:
    """The target of an XML parser: keeps the entries of a sitemap or feed, and nothing else."""

    def __init__(self) -> None:
        self._found: list[Listed] = []
        self._elements = 0
        self._root = ""
        self._bases: list[str] = []  # of the open elements
        self._depth = 0  # within an entry
        self._entry: dict[str, str] = {}
        self._kind: Listing = ""
        self._texts: list[str] = []
        self._room = 0  # characters

    def taken(self) -> list[Listed]:
        """Return the entries since the last call."""
        found, self._found = self._found, []
        return found

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._elements += 1
        if self._elements > _ELEMENTS:
            raise _TooMany
        name = tag.rpartition("}")[2]
        if not self._bases:  # also of a second root, in a broken document
            self._root = self._root or name
        base = self._bases[-1] if self._bases else ""
        self._bases.append(_joined(base, attributes.get(_BASE, "")) if attributes else base)
        if self._depth:
            self._depth += 1
            if self._depth == 2:
                self._begin(name, attributes)
        elif name in _ENTRIES and len(self._bases) > 1:
            self._depth = 1
            self._entry = {"about": attributes.get(_ABOUT, "")}

    def _begin(self, name: str, attributes: Mapping[str, str]) -> None:
        self._texts, self._room = [], _LONGEST
        if name == "link" and "href" in attributes and attributes.get("rel", "alternate") == "alternate":
            self._entry.setdefault("href", _joined(self._bases[-1], attributes["href"].strip()[:_LONGEST]))
        elif name == "guid" and attributes.get("isPermaLink", "true") != "true":
            self._room = 0

    def data(self, text: str) -> None:
        if self._depth > 1 and self._room > 0:
            self._texts.append(text[: self._room])
            self._room -= len(text)

    def end(self, tag: str) -> None:
        base = self._bases.pop()
        if not self._depth:
            return
        if self._depth == 2:
            name, text = tag.rpartition("}")[2], "".join(self._texts).strip()
            if text:
                self._entry[name] = _joined(base, text) if name == "link" else text
        self._depth -= 1
        if not self._depth:
            kind = self._root if self._root in ("urlset", "sitemapindex") else "feed"
            self._found.append(_listed(self._entry, kind))

    def close(self) -> None:
        """End the document."""


def _listed(entry: Mapping[str, str], kind: str) -> Listed:
    """Return an entry from the texts of its elements."""
    changed = next((entry[name] for name in (*_CHANGED, *_BEGAN) if entry.get(name)), "")
    if kind != "feed":
        return Listed(entry.get("loc", ""), changed=changed, is_listing=kind == "sitemapindex")
    url = next((entry[name] for name in ("link", "href", "url", "external_url", "about") if entry.get(name)), "")
    guid = entry.get("guid", "")
    if not url and guid.startswith(("http://", "https://")):
        url = guid
    return Listed(url, " ".join(entry.get("title", "").split())[:_TITLE], changed)


def _texts(item: Mapping[Any, Any]) -> dict[str, str]:
    return {str(name): value[:_LONGEST].strip() for name, value in item.items() if isinstance(value, str)}


def _text_of(word: bytes) -> str:
    return word.decode("utf-8", "replace").strip("\ufeff") if len(word) <= _LONGEST else ""


def _joined(base: str, url: str) -> str:
    if not (base and url):
        return url or base
    try:
        return urljoin(base, url)
    except ValueError:
        return url


def _slices(body: bytes) -> Iterator[bytes]:
    for at in range(0, len(body), _PIECE):
        yield body[at : at + _PIECE]


def _inflated(body: bytes) -> Iterator[bytes]:
    """Yield the content of a gzip file, up to any damage."""
    inflater = zlib.decompressobj(wbits=31)
    waiting = body
    try:
        while waiting and not inflater.eof:
            if piece := inflater.decompress(waiting, _PIECE):
                yield piece
            waiting = inflater.unconsumed_tail
    except zlib.error:
        return
